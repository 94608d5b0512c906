/* SPDX-License-Identifier: MIT */
/* See resident.h. Facts, plan, start of the GPU, trace and report are those of a product of as many
   operations (gpb_resident_equivalent). */
#include "src/hub/resident.h"

#include <errno.h>
#include <stdatomic.h>

#include "dispatch/decide.h"
#include "src/gpu/gpu.h"
#include "src/gpu/place.h"
#include "src/host/lapack.h"
#include "src/hub/ask.h"
#include "src/hub/routing.h"
#include "src/hub/tally.h"
#include "src/hub/trace.h"
#include "src/run/resident.h"
#include "src/service/clock.h"
#include "src/service/cores.h"
#include "src/service/log.h"
#include "src/service/option.h"
#include "src/service/ranges.h"
#include "src/service/stats.h"
#include "src/service/touch.h"
#include "src/service/traps.h"

/* INFO of a matrix that nobody can reach: as of an illegal argument, because LAPACK has no other. */
enum { UNREACHED = -3 };

/* Touches A and B as they will be read or written, so that a bad pointer faults in the caller's thread: as
   A and C of a product A * A, and as its C. */
static void touch(const gpb_resident *w, const gpb_facts *facts)
{
    const gpb_system *s = &w->system;
    const int64_t b_rows = gpb_resident_b_rows(w);
    const gpb_matrix a = { .base = s->a.a, .ld = s->a.lda, .trans = 'N', .uplo = 'G' },
                     b = { .base = s->b, .ld = s->ldb, .trans = 'N', .uplo = 'G' };
    gpb_call call = { .type = s->a.type, .m = s->a.m, .n = s->a.n, .k = s->a.n, .alpha = 1, .batch = 1,
                      .x = { a, a, a } };
    gpb_facts only = *facts;
    only.where[GPB_B].place = GPB_PLACE_DEVICE;
    const bool writes_a = (w->factors && !w->given) || w->inverts;
    only.where[GPB_C].place = writes_a ? facts->where[GPB_A].place : GPB_PLACE_DEVICE;
    gpb_touch(&call, &only);
    if (!w->solves || w->inverts) return;
    call.m = b_rows;
    call.n = s->nrhs;
    call.k = 0;
    call.x[GPB_C] = b;
    only.where[GPB_C] = facts->where[w->given ? GPB_C : GPB_B];
    gpb_touch(&call, &only);
    if (!w->given) return;
    call.k = s->nrhs;
    call.x[GPB_A] = (gpb_matrix){ .base = w->given, .ld = w->ldgiven, .trans = 'N', .uplo = 'G' };
    only.where[GPB_A] = facts->where[GPB_B];
    only.where[GPB_C].place = GPB_PLACE_DEVICE;
    gpb_touch(&call, &only);
}

static void tell(const gpb_host_call *record, const gpb_resident_outcome *out, double ran_s)
{
    const bool failed = out->failure != NULL;
    const double flops = gpb_trace_flops(record->call);
    gpb_stats_add(&(gpublas_stats_t){ .calls = 1, .gpu_calls = !failed, .host_calls = failed,
                                      .failed_calls = failed, .bytes_to_gpu = (uint64_t)out->bytes_up,
                                      .bytes_from_gpu = (uint64_t)out->bytes_down,
                                      .gpu_seconds = failed ? 0 : ran_s,
                                      .gpu_flops = failed ? 0 : flops });
    if (record->came_s == 0) return;
    const double seconds = gpb_clock_s() - record->came_s;
    const gpb_outcome product = { .done = true, .failure = out->failure, .bytes_up = out->bytes_up,
                                  .bytes_down = out->bytes_down };
    if (gpb_option_number(GPB_OPTION_VERBOSE)) gpb_trace(record, failed ? "gpu+host" : "gpu", &product);
    if (gpb_option_traces()) gpb_trace_event(record, failed ? "gpu+host" : "gpu", &product);
    if (gpb_option_reports())
        gpb_tally_add(record->call, record->why,
                      &(gpb_tally){ .on_gpu = !failed, .failed = failed, .gpu_s = seconds,
                                    .bytes_up = (double)out->bytes_up, .bytes_down = (double)out->bytes_down,
                                    .flops = flops,
                                    .saved_s = record->host_s > 0 ? record->host_s - seconds : 0 });
}

/* From the plan of the product to that of the factorisation, whose `gpu` says whether to go. *slower: the GPU
   would be, as far as is known. The steps of a factorisation can make the GPU faster where it is not for the
   product, or the host. */
static gpb_plan settle(const gpb_resident *w, const gpb_policy *user, const gpb_facts *facts, gpb_plan plan,
                       bool *slower)
{
    const double MARGIN = 1.2;
    *slower = false;
    plan.gpu_s += gpb_resident_gpu_steps_s(w);
    if (plan.host_s > 0) plan.host_s += gpb_resident_host_steps_s(w, facts->host.cores);
    const bool must = user->offload == GPB_OFFLOAD_ALWAYS || gpb_facts_on_gpu(facts);
    const bool pays = must ? plan.gpu : plan.host_s > MARGIN * plan.gpu_s;
    if (!gpb_gpu_started()) plan.why = plan.gpu ? gpb_gpu_why() : plan.why;
    else if (!pays) {
        *slower = plan.host_s > 0;
        plan.why = plan.gpu ? "faster on the host" : plan.why;
    } else if (!gpb_resident_fits(w, facts->gpu.arch, facts->gpu.sms)) {
        plan.why = facts->gpu.arch < 80 ? "before sm_80" : "too many rows";
    } else {
        plan.why = plan.gpu ? plan.why : "faster on the GPU";
        plan.gpu = true;
        return plan;
    }
    plan.gpu = false;
    return plan;
}

static gpb_plan decide(const gpb_resident *w, const gpb_call *call, const gpb_policy *user, gpb_facts *facts,
                       bool *slower)
{
    /* Where a product of as many operations is known to be the host's, the steps beside it may still be slow
       there. */
    const double LONG = 1e-3;
    bool libcuda;
    const gpb_plan rejected = { .why = gpb_routing_reject_fast(call, gpb_traps_mode(), &libcuda) };
    const bool steps = rejected.why == gpb_decide_too_small
                       && gpb_resident_host_steps_s(w, gpb_cores()) > LONG;
    *facts = (gpb_facts){ 0 };
    *slower = rejected.why && !steps;
    if (*slower) return rejected;
    return settle(w, user, facts, gpb_routing_decide(call, libcuda, user, facts), slower);
}

static void ask(const gpb_resident *w)
{
    const gpb_call call = gpb_resident_equivalent(w);
    gpb_policy always, user = gpb_routing_policy();
    always = user;
    gpb_facts facts;
    bool slower;
    const gpb_plan plan = settle(w, &user, &facts, gpb_routing_predict(&call, &user, &facts), &slower);
    always.offload = GPB_OFFLOAD_ALWAYS;
    gpb_plan forced = settle(w, &always, &facts, gpb_decide(&call, &facts, &always), &slower);
    const gpb_facts there = gpb_ask_on_device(&facts);
    const double device_s = settle(w, &always, &there, gpb_decide(&call, &there, &always), &slower).gpu_s;
    forced.kernel = NULL;                /* its products have kernels of their own */
    gpb_ask_answer(&call, NULL, &facts, &plan, &forced, device_s);
}

/* The host cannot reach one of the matrices. */
static bool is_unreachable(const gpb_facts *facts)
{
    bool unreachable = false;
    for (int x = 0; x < GPB_OPERANDS; x++) unreachable |= gpb_facts_unreachable(facts, x);
    return unreachable;
}

__attribute__((noinline)) static enum gpb_resident_answer by_gpu_or_host(const gpb_resident *w, int64_t *info)
{
    const gpb_policy user = gpb_routing_policy();
    const gpb_call call = gpb_resident_equivalent(w);
    const bool watched = atomic_load_explicit(&gpb_option_watched, memory_order_relaxed);
    const double came_s = watched ? gpb_clock_s() : 0;
    double begin_s = 0;
    gpb_facts facts;
    bool slower = false;
    gpb_routing_leave_host();
    const gpb_plan plan = decide(w, &call, &user, &facts, &slower);
    gpb_resident_outcome out = { .failure = plan.why };
    /* VERIFY checks products. By calls, a factorisation is made of them; that is done where the host can
       reach the matrices. */
    if (gpb_option_number(GPB_OPTION_VERIFY) && !is_unreachable(&facts)) return GPB_RESIDENT_BY_CALLS;
    if (plan.gpu) {
        const bool large = gpb_facts_large(&call, &facts);
        touch(w, &facts);
        begin_s = gpb_clock_s();
        const uint64_t range = gpb_trace_range(&call);
        gpb_routing_enter_gpu(large);
        out = gpb_resident_run(w, &facts, &user);
        gpb_routing_leave_gpu(large);
        gpb_ranges_end(range);
        gpb_routing_copied(&facts, out.bytes_up, out.bytes_down);
    }
    const bool unreached = !out.done && (out.overwritten || is_unreachable(&facts)
                                         || gpb_place_unreachable(&call));
    if (out.warn && !(unreached && gpb_gpu_started()))
        gpb_log_warn("the GPU failed (%s); the host computes%s", out.failure,
                     gpb_gpu_started() ? " this call" : " all calls from now on");
    if (out.done) {
        const char *kept = out.kept ? "the factors are on the GPU still" : plan.why;
        const char *why = out.failure ? out.failure : kept;
        const gpb_host_call record = { .call = &call, .why = why, .host_s = plan.host_s, .gpu_s = plan.gpu_s,
                                       .came_s = came_s };
        tell(&record, &out, gpb_clock_s() - begin_s);
        *info = out.info;
    } else if (unreached) {
        gpb_log_warn("%s: cannot use a matrix in GPU memory there (%s); %s", call.symbol, out.failure,
                     out.overwritten ? "what was to be written is neither the result nor what it was"
                                     : "it is as it was");
        *info = UNREACHED;
        return GPB_RESIDENT_DONE;
    }
    if (out.done) return GPB_RESIDENT_DONE;
    if (!slower) return GPB_RESIDENT_BY_CALLS;
    gpb_routing_enter_host(&call, &(gpb_host_call){ .missed_s = plan.missed_s, .tries = plan.tries });
    return GPB_RESIDENT_HOST;
}

enum gpb_resident_answer gpb_resident_offload(const gpb_resident *w, int64_t *info)
{
    const int before = errno;
    const bool nothing = gpb_factor_order(&w->system.a) == 0
                         || (!w->factors && !w->inverse_norm && w->system.nrhs == 0);
    const bool forbidden = gpb_lapack_inside_host();
    if (!nothing && gpb_ask_is_on()) {
        ask(w);
        *info = 0;
        return GPB_RESIDENT_DONE;
    }
    if (nothing || forbidden) return GPB_RESIDENT_BY_CALLS;
    gpb_traps traps;
    gpb_traps_hold(&traps);
    const enum gpb_resident_answer answer = by_gpu_or_host(w, info);
    gpb_traps_release(&traps);
    errno = before;
    return answer;
}
