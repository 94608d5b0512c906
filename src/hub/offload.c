/* SPDX-License-Identifier: MIT */
/* The hub: checks the call, asks for a plan, runs it, counts, writes one line of trace. Data flows one way:
   door, hub, plan, run, kernel. */
#include "src/hub/offload.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

#include "dispatch/decide.h"
#include "dispatch/numbers.h"
#include "src/copy/crowd.h"
#include "src/copy/scale.h"
#include "src/gpu/gpu.h"
#include "src/gpu/place.h"
#include "src/host/level3.h"
#include "src/hub/ask.h"
#include "src/hub/routing.h"
#include "src/hub/sample.h"
#include "src/hub/tally.h"
#include "src/hub/trace.h"
#include "src/hub/verify.h"
#include "src/learn/history.h"
#include "src/learn/machine.h"
#include "src/learn/ready.h"
#include "src/run/compute.h"
#include "src/service/clock.h"
#include "src/service/log.h"
#include "src/service/option.h"
#include "src/service/ranges.h"
#include "src/service/stats.h"
#include "src/service/touch.h"
#include "src/service/traps.h"

/* The frame in which this thread last entered the host BLAS. A host's cblas_sgemm may call sgemm_ by name
   (netlib, BLIS). That call comes back to our door deeper in the stack and is not a new one. This is a frame
   and not a flag, so that a longjmp out of the host cannot leave it set for good. Such inner calls come from
   at most NEAR bytes deeper. */
enum { NEAR = 65536 };
static _Thread_local char *inside __attribute__((tls_model("initial-exec")));

static bool is_inside(const char *frame) { return inside && frame < inside && inside - frame < NEAR; }

bool gpb_offload_is_inside(void) { return is_inside(__builtin_frame_address(0)); }

bool gpb_offload_legal(const gpb_call *g)
{
    bool legal = g->m >= 0 && g->n >= 0 && g->k >= 0 && g->batch >= 0 && g->x[GPB_C].uplo;
    for (int x = 0; x < GPB_OPERANDS; x++) legal &= g->x[x].ld >= max(1, gpb_call_rows(g, x));
    for (int x = 0; x < GPB_C; x++) {
        legal &= g->x[x].trans == 'N' || g->x[x].trans == 'T' || g->x[x].trans == 'C';
        legal &= g->x[x].uplo || !gpb_call_mirrors(g, x);
        legal &= (g->x[x].uplo && g->x[x].diag) || g->x[x].structure != GPB_TRIANGULAR;
    }
    return legal;
}

/* True if the reference would do nothing. Such calls do not go to the host, because A and B may be NULL: BLIS
   aborts on that, and OpenBLAS 0.3.21 reads them. */
static bool quick_return(const gpb_call *g)
{
    return g->m == 0 || g->n == 0 || g->batch == 0 || (!gpb_call_multiplies(g) && g->beta == 1);
}

static void tell_came(const gpb_call *call, gpb_host_call *record)
{
    record->came_s = gpb_clock_s();
    record->range = gpb_trace_range(call);
}

/* The trace and the report, of a call that the GPU computed or began. */
static void tell_gpu(const gpb_host_call *record, const gpb_outcome *out)
{
    const bool failed = out->failure != NULL;
    if (record->came_s == 0) return;
    if (gpb_option_number(GPB_OPTION_VERBOSE)) gpb_trace(record, failed ? "gpu+host" : "gpu", out);
    if (gpb_option_traces()) gpb_trace_event(record, failed ? "gpu+host" : "gpu", out);
    if (!gpb_option_reports()) return;
    const double seconds = gpb_clock_s() - record->came_s;
    gpb_tally_add(record->call, record->why,
                  &(gpb_tally){ .on_gpu = !failed, .failed = failed, .gpu_s = seconds,
                                .bytes_up = (double)out->bytes_up, .bytes_down = (double)out->bytes_down,
                                .flops = gpb_trace_flops(record->call),
                                .saved_s = record->host_s > 0 ? record->host_s - seconds : 0 });
}

/* The same of a call on the host. The GPU may be predicted to be faster all the same: it may not be started
   yet. */
static void count_host(const gpb_host_call *record, double lost_s)
{
    gpb_stats_host();
    if (record->came_s == 0) return;
    if (gpb_option_number(GPB_OPTION_VERBOSE)) gpb_trace(record, "host", &(gpb_outcome){ 0 });
    if (gpb_option_traces()) gpb_trace_event(record, "host", &(gpb_outcome){ 0 });
    if (!gpb_option_reports()) return;
    const double missed_s = record->gpu_s > 0 ? record->host_s - record->gpu_s : 0;
    gpb_tally_add(record->call, record->why,
                  &(gpb_tally){ .on_host = 1, .host_s = gpb_clock_s() - record->came_s,
                                .flops = gpb_trace_flops(record->call),
                                .missed_s = max(missed_s, 0), .lost_s = lost_s });
}

/* True if C is done, by the GPU alone or finished by the host. Else plan->why says why not. */
static bool run_on_gpu(const gpb_call *call, gpb_facts *facts, const gpb_policy *user, gpb_plan *plan,
                       double came_s)
{
    const bool large = gpb_facts_large(call, facts);
    if (plan->gpu) gpb_touch(call, facts);
    const bool alone = gpb_routing_enter_gpu(large) && plan->gpu && !gpb_ready_is_near();
    const double begin_s = gpb_clock_s();
    gpb_verify verify = gpb_verify_begin(call, facts);
    gpb_outcome out = gpb_compute(call, facts, user, *plan);
    gpb_routing_leave_gpu(large);
    if (!gpb_verify_end(&verify, call, facts, &out)) out.failure = "found wrong by GPUBLAS_VERIFY";
    if (out.failure) plan->why = out.failure;
    if (!out.done) return false;
    const double seconds = gpb_clock_s() - begin_s;
    const bool failed = out.failure != NULL;
    gpb_stats_add(&(gpublas_stats_t){ .calls = 1, .gpu_calls = !failed, .host_calls = failed,
                                      .failed_calls = failed, .bytes_to_gpu = (uint64_t)out.bytes_up,
                                      .bytes_from_gpu = (uint64_t)out.bytes_down,
                                      .gpu_seconds = failed ? 0 : seconds,
                                      .gpu_flops = failed ? 0 : gpb_trace_flops(call) });
    gpb_routing_copied(facts, out.bytes_up, out.bytes_down);
    const bool verified = gpb_option_number(GPB_OPTION_VERIFY);  /* the check takes longer than the call */
    /* A crowd that nobody knew of when the call was planned. */
    const bool crowded = !facts->learnt.contended && gpb_crowd_is_suspected();
    /* It is not known where managed pages are. */
    const bool telling = alone && !failed && !verified && !crowded && !gpb_facts_managed(facts);
    if (telling && gpb_machine_gpu_took(call, facts, plan->gpu_s / facts->learnt.gpu_ratio, seconds))
        gpb_ready_save();
    tell_gpu(&(gpb_host_call){ .call = call, .why = plan->why, .host_s = plan->host_s,
                               .gpu_s = plan->gpu_s, .came_s = came_s }, &out);
    return true;
}

/* C = beta C. Not left to the host, because A and B may be NULL. */
static void scale(const gpb_call *g)
{
    const gpb_matrix *c = &g->x[GPB_C];
    for (int64_t l = 0; l < g->batch; l++)
        for (int64_t j = 0; j < g->n; j++) {
            char *column = (char *)gpb_call_member(g, GPB_C, l) + (size_t)(j * c->ld) * gpb_call_element(g);
            gpb_scale_column(g, g->beta, column, gpb_matrix_rows_of(c->uplo, 0, g->m, j), j);
        }
}

/* A RESIDUES kernel is worth it only if a sample of the operands says so. It looks at their numbers alone, so
   that the same call has the same bits. */
static gpb_plan sampled(const gpb_call *call, const gpb_policy *user, gpb_facts *facts, const gpb_plan *plan)
{
    const bool residues = plan->gpu && plan->kernel && plan->kernel->form == GPB_FORM_RESIDUES;
    facts->gpu.no_residues = residues && !user->kernel && !gpb_sample_suits_residues(call, facts);
    return facts->gpu.no_residues ? gpb_decide(call, facts, user) : *plan;
}

/* True: C is done. False: the host must compute it, and *record holds what is known of the call. */
static bool done_by_gpu(const gpb_call *call, bool libcuda, gpb_host_call *record)
{
    const gpb_policy user = gpb_routing_policy();
    gpb_facts facts;
    gpb_plan plan = gpb_routing_decide(call, libcuda, &user, &facts);
    plan = sampled(call, &user, &facts, &plan);
    /* An operand that the host cannot reach is fetched for it, so such a call enters gpb_compute even if the
       host is to compute it. */
    const bool there = gpb_facts_c_on_gpu(&facts) || (gpb_call_multiplies(call) && gpb_facts_on_gpu(&facts));
    if (user.offload == GPB_OFFLOAD_AUTO && !there) gpb_routing_remember(call, &plan);
    if (gpb_gpu_started() && (plan.gpu || there)) {
        if (run_on_gpu(call, &facts, &user, &plan, record->came_s)) return true;
    } else if (plan.gpu) {
        plan.why = gpb_gpu_why();
    }
    record->why = plan.why;
    record->host_s = plan.host_s;
    record->gpu_s = plan.gpu_s;
    record->modelled_s = facts.now.callers || facts.now.host_callers ? 0
                                                                    : plan.host_s / facts.learnt.host_ratio;
    record->threads = facts.host.cores;
    record->leaves_core = plan.leaves_core;
    record->missed_s = plan.missed_s;
    record->tries = plan.tries;
    return false;
}

__attribute__((noinline)) static bool offload(const gpb_call *call, unsigned mxcsr, gpb_host_call *record)
{
    char *frame = __builtin_frame_address(0);
    bool libcuda;
    *record = (gpb_host_call){ .traps = gpb_traps_any(mxcsr) };
    if (is_inside(frame)) return false;
    inside = NULL;
    gpb_routing_leave_host();
    if (!gpb_offload_legal(call)) return false;
    if (quick_return(call)) return true;
    if (gpb_ask_is_on()) {
        gpb_ask_product(call, NULL);
        return true;
    }
    if (atomic_load_explicit(&gpb_option_watched, memory_order_relaxed)) tell_came(call, record);
    record->why = gpb_routing_reject_fast(call, mxcsr, &libcuda);
    if (!record->why && done_by_gpu(call, libcuda, record)) return true;
    record->call = call;
    if (gpb_place_unreachable(call)) {
        gpb_log_warn(GPB_PLACE_UNREACHED, call->symbol, "cannot be reached any more", GPB_PLACE_UNBEGUN);
        return true;
    }
    if (!gpb_call_multiplies(call)) {
        scale(call);
        count_host(record, 0);
        return true;
    }
    if (record->modelled_s > 0) record->begin_s = gpb_clock_s();
    gpb_routing_enter_host(call, record);
    inside = frame;
    return false;
}

/* errno stays the caller's, because a BLAS sets none, but starting CUDA or a failed malloc does. */
bool gpb_offload(const gpb_call *call, gpb_host_call *record)
{
    const int before = errno;
    gpb_traps traps;
    gpb_traps_hold(&traps);
    const bool done = offload(call, traps.mode, record);
    if (done) gpb_ranges_end(record->range);
    gpb_traps_release(&traps);
    errno = before;
    return done;
}

__attribute__((noinline)) static void note_done(const gpb_host_call *record)
{
    inside = NULL;
    gpb_routing_leave_host();
    gpb_ranges_end(record->range);
    const double seconds = record->begin_s > 0 ? gpb_clock_s() - record->begin_s : 0;
    const double lost_s = seconds > 0 && gpb_ready_is_near() ? seconds - record->host_s : 0;
    if (lost_s != 0) gpb_history_lose(lost_s);
    if (record->modelled_s > 0)
        gpb_machine_host_took(record->call, record->threads, record->modelled_s, seconds);
    count_host(record, lost_s);
}

void gpb_offload_done(const gpb_host_call *record)
{
    gpb_traps traps;
    if (!record->call) return;
    if (record->traps) gpb_traps_hold(&traps);
    note_done(record);
    if (record->traps) gpb_traps_release(&traps);
}

void gpb_offload_or_host(const gpb_call *call)
{
    gpb_host_call declined;
    if (gpb_offload(call, &declined)) return;
    gpb_host_multiply(call);
    gpb_offload_done(&declined);
}
