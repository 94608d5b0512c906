/* SPDX-License-Identifier: MIT */
/* The hub: check, ask for a plan, run it, count, one line of trace. Data flows one way: door, hub, plan, run, kernel. */
#include "src/hub/offload.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "dispatch/decide.h"
#include "dispatch/numbers.h"
#include "src/service/clock.h"
#include "src/copy/crew.h"
#include "src/copy/contention.h"
#include "src/gpu/gpu.h"
#include "src/gpu/place.h"
#include "src/learn/ready.h"
#include "src/run/compute.h"
#include "src/service/linker.h"
#include "src/service/log.h"
#include "src/learn/machine.h"
#include "src/host/next.h"
#include "src/service/option.h"
#include "src/service/stats.h"
#include "src/service/touch.h"
#include "src/hub/verify.h"

/* The frame in which this thread last entered the host BLAS. A host's cblas_sgemm may call sgemm_ by name (netlib, BLIS), which comes back
   to our door deeper in the stack: that is no new call. A frame, not a flag, so that a longjmp out of the host cannot leave it set for
   good (deeper calls come from near by). */
enum { NEAR = 65536 };
static _Thread_local char *inside __attribute__((tls_model("initial-exec")));

/* Nanoseconds that the GPU would have saved on calls that went to the host only because it was not started. */
static _Atomic int64_t credit_ns;

static double loaded_s;
__attribute__((constructor)) static void note_load(void) { loaded_s = gpb_clock_s(); }

bool gpb_offload_legal(const gpb_call *g)
{
    bool legal = g->m >= 0 && g->n >= 0 && g->k >= 0 && g->batch >= 0 && g->x[GPB_C].uplo;
    for (int x = 0; x < GPB_OPERANDS; x++) legal &= g->x[x].ld >= max(1, gpb_call_rows(g, x));
    for (int x = 0; x < GPB_C; x++) legal &= g->x[x].trans == 'N' || g->x[x].trans == 'T' || g->x[x].trans == 'C';
    return legal;
}

/* Nothing to do, as the reference sees it. Not left to the host: A and B may be NULL here, and BLIS aborts on that, OpenBLAS 0.3.21 reads
   them. */
static bool quick_return(const gpb_call *g)
{
    return g->m == 0 || g->n == 0 || g->batch == 0 || (!gpb_call_multiplies(g) && g->beta == 1);
}

static double flops(const gpb_call *g)
{
    const double triangle = g->x[GPB_C].uplo == 'G' ? 1 : 0.5;
    return gpb_type_of(g->type)->flops * triangle * (double)g->m * (double)g->n * (double)g->k * (double)g->batch;
}

/* For the trace; a complex number that is no real one is NaN there. */
static double real(gpb_scalar x) { return x == (double)x || x != x ? (double)x : __builtin_nan(""); }

/* What the model said, "host/gpu" in ms. */
static void print_predicted(char *text, size_t size, double host_s, double gpu_s)
{
    if (host_s > 0) snprintf(text, size, "%.3f/%.3f", 1e3 * host_s, 1e3 * gpu_s);
    else snprintf(text, size, "-");
}

/* With all that the caller waited for. */
static void trace(const gpb_host_call *visit, const char *route, const gpb_outcome *out)
{
    const gpb_call *g = visit->call;
    const double seconds = visit->came_s > 0 ? gpb_clock_s() - visit->came_s : 0;
    char splits[24] = "", predicted[64];
    if (out->splits > 1) snprintf(splits, sizeof splits, " splits=%d", out->splits);
    print_predicted(predicted, sizeof predicted, visit->host_s, visit->gpu_s);
    /* m, n, A, B as the caller knows them. */
    const bool row = g->row_major;
    const char uplo = g->x[GPB_C].uplo;
    const gpb_matrix *a = &g->x[row ? GPB_B : GPB_A], *b = &g->x[row ? GPB_A : GPB_B];
    gpb_log_line("%s order=%s%s ta=%c tb=%c m=%lld n=%lld k=%lld lda=%lld ldb=%lld ldc=%lld alpha=%g beta=%g batch=%lld route=%s "
                 "why=\"%s\" kernel=%s%s%s%s%s%s predicted_ms=%s to_gpu=%lld from_gpu=%lld ms=%.3f gflops=%.1f",
                 g->symbol, row ? "row" : "col", uplo == 'G' ? "" : (uplo == 'U') != row ? " uplo=U" : " uplo=L", a->trans, b->trans,
                 (long long)(row ? g->n : g->m), (long long)(row ? g->m : g->n), (long long)g->k, (long long)a->ld, (long long)b->ld,
                 (long long)g->x[GPB_C].ld, real(g->alpha), real(g->beta), (long long)g->batch, route, visit->why,
                 out->kernel ? out->kernel->name : "-", out->wide ? "+" : "", out->wide ? out->wide->name : "",
                 out->fallback ? "+" : "", out->fallback ? out->fallback->name : "", splits, predicted, (long long)out->bytes_up,
                 (long long)out->bytes_down, 1e3 * seconds, seconds > 0 ? 1e-9 * flops(g) / seconds : 0.0);
}

static gpb_policy policy(void)
{
    const char *kernel = gpb_option_text(GPB_OPTION_KERNEL);
    if (kernel && !gpb_kernel_table_find(kernel)) {
        gpb_log_warn("GPUBLAS_KERNEL=%s: there is no kernel of that name; choosing by shape", kernel);
        kernel = NULL;
    }
    return (gpb_policy){ .offload = (enum gpb_offload_when)gpb_option_number(GPB_OPTION_OFFLOAD),
                         .math = (enum gpb_math_policy)gpb_option_number(GPB_OPTION_MATH), .kernel = kernel,
                         .splits = (int)gpb_option_number(GPB_OPTION_SPLITS) };
}

/* Calls that are on the GPU now: small, large. */
static atomic_int running[2];

/* Those of its kind share the link with it, and of the other kind one at a time. */
static int callers(bool large)
{
    return atomic_load_explicit(&running[large], memory_order_relaxed) + (atomic_load_explicit(&running[!large], memory_order_relaxed) > 0);
}

/* Calls that threads of the host BLAS share out among them now, and whether this thread's is one of them: counted while there is a GPU to
   choose instead. */
static atomic_int on_host;
static _Thread_local bool shared_out __attribute__((tls_model("initial-exec")));

/* Of one thread's work OpenBLAS makes several's from 2^18 multiplications on. */
static void enter_host(const gpb_call *g)
{
    shared_out = gpb_gpu_started() && (double)g->m * (double)g->n * (double)g->k * (double)g->batch > 0x1p18 && gpb_next_threads() != 1;
    if (shared_out) atomic_fetch_add_explicit(&on_host, 1, memory_order_relaxed);
}

/* Also by the next call of a thread that has left the host by a longjmp. Calls at once: with OpenMP each caller has threads of its own.
   OpenBLAS's own threads serve one call at a time, so of those it is too many: the process is crowded rather too soon. */
static void leave_host(void)
{
    if (!shared_out) return;
    shared_out = false;
    const int calls = atomic_fetch_sub_explicit(&on_host, 1, memory_order_relaxed);
    gpb_contention_begin(calls * gpb_next_threads(), gpb_crew_cores());
}

/* True if C is done: on the GPU, or begun there and finished by the host. Else *plan says why not. */
static bool run_on_gpu(const gpb_call *call, gpb_facts *facts, const gpb_policy *user, gpb_plan *plan, double came_s)
{
    const bool large = gpb_facts_large(call, facts);
    if (plan->gpu) gpb_touch(call, facts);
    const bool alone = atomic_fetch_add(&running[large], 1) == 0 && !atomic_load(&running[!large]) && plan->gpu && !gpb_ready_is_near();
    const double begin_s = gpb_clock_s();
    gpb_verify verify = gpb_verify_begin(call, facts);
    gpb_outcome out = gpb_compute(call, facts, user, *plan);
    atomic_fetch_sub(&running[large], 1);
    if (!gpb_verify_end(&verify, call, facts, &out)) out.failure = "wrong by GPUBLAS_VERIFY";
    if (out.failure) plan->why = out.failure;
    if (!out.done) return false;
    const double seconds = gpb_clock_s() - begin_s;
    const bool failed = out.failure != NULL;
    gpb_stats_add(&(gpublas_stats_t){ .calls = 1, .gpu_calls = !failed, .host_calls = failed, .failed_calls = failed,
                                      .bytes_to_gpu = (uint64_t)out.bytes_up, .bytes_from_gpu = (uint64_t)out.bytes_down,
                                      .gpu_seconds = failed ? 0 : seconds, .gpu_flops = failed ? 0 : flops(call) });
    const bool verified = gpb_option_number(GPB_OPTION_VERIFY);      /* which takes longer than the call */
    const bool telling = alone && !failed && !verified && !gpb_facts_managed(facts);      /* where managed pages lie is not known */
    if (telling && gpb_machine_gpu_took(call, facts, plan->gpu_s / facts->learnt.gpu_ratio, seconds)) gpb_ready_save();
    if (gpb_option_number(GPB_OPTION_VERBOSE))
        trace(&(gpb_host_call){ .call = call, .why = plan->why, .host_s = plan->host_s, .gpu_s = plan->gpu_s, .came_s = came_s },
              failed ? "gpu+host" : "gpu", &out);
    return true;
}

/* C = beta C. Not left to the host: A and B may be NULL. */
static void scale(const gpb_call *g)
{
    const float beta = (float)g->beta;
    for (int64_t l = 0; l < g->batch; l++)
        for (int64_t j = 0; j < g->n; j++) {
            const gpb_matrix_rows rows = gpb_matrix_rows_of(g->x[GPB_C].uplo, 0, g->m, j);
            float *column = (float *)gpb_call_member(g, GPB_C, l) + j * g->x[GPB_C].ld;
            for (int64_t i = rows.first; i < rows.last; i++) column[i] = beta == 0 ? 0 : beta * column[i];
        }
}

static void count_host(const gpb_host_call *visit)
{
    gpb_stats_host();
    if (gpb_option_number(GPB_OPTION_VERBOSE)) trace(visit, "host", &(gpb_outcome){ 0 });
}

/* Sizes that the host was found to be faster at, as hashes: facts and plan cost half a microsecond. What was learnt since is part of the
   hash; two sizes that share one by chance would share a decision about speed, no more. */
enum { REMEMBERED = 256 };
static _Atomic uint64_t host_memo[REMEMBERED];

static uint64_t hash_of(const gpb_call *call)
{
    return gpb_learn_hash(call) ^ (uint64_t)gpb_machine_age() << 32;
}

/* So few multiplications, or of sizes so well known, that nothing need be asked. One call in 256 of a thread is looked at all the same: the
   host is learnt from it. */
static bool is_known_hosts(const gpb_call *g)
{
    static _Thread_local unsigned calls __attribute__((tls_model("initial-exec")));
    if (++calls % 256 == 0) return false;
    if ((double)g->m * (double)g->n * (double)g->k * (double)g->batch < gpb_machine_too_few()) return true;
    const uint64_t hash = hash_of(g);
    return atomic_load_explicit(&host_memo[hash % REMEMBERED], memory_order_relaxed) == hash;
}

/* Long calls have the time to be looked at, and are learnt from each time. */
static void remember(const gpb_call *g, const gpb_plan *plan)
{
    const uint64_t hash = hash_of(g);
    _Atomic uint64_t *place = &host_memo[hash % REMEMBERED];
    const bool settled = !plan->gpu && !plan->waits && !plan->tries && plan->missed_s == 0;
    if (settled && plan->host_s < 2e-4) atomic_store_explicit(place, hash, memory_order_relaxed);
    else if (atomic_load_explicit(place, memory_order_relaxed) == hash) atomic_store_explicit(place, 0, memory_order_relaxed);
}

/* The facts and the plan; the GPU started if the plan asks for it, behind this call or, if that is worth waiting for, before it. */
static gpb_plan decide(const gpb_call *call, bool libcuda, const gpb_policy *user, gpb_facts *facts)
{
    for (bool waited = false;; waited = true) {
        gpb_place_facts(call, libcuda, facts);
        gpb_machine_facts(call, facts);
        facts->now.starting = gpb_ready_is_near();
        facts->now.start_s = gpb_ready_left_s();
        facts->now.callers = callers(gpb_facts_large(call, facts));
        facts->now.host_callers = atomic_load_explicit(&on_host, memory_order_relaxed);
        facts->now.age_s = gpb_clock_s() - loaded_s;
        facts->now.credit_s = 1e-9 * (double)atomic_load_explicit(&credit_ns, memory_order_relaxed);
        const gpb_plan plan = gpb_decide(call, facts, user);
        if (plan.missed_s > 0 && gpb_contention_missed(plan.missed_s, 1 - plan.host_s / plan.gpu_s)) continue;      /* the first of that while */
        if (plan.waits) atomic_fetch_add(&credit_ns, (int64_t)(1e9 * (plan.host_s - plan.gpu_s)));
        /* A GPU that was started at once, for an operand that lies on it, is measured as soon as calls from host memory come. */
        const bool unmeasured = plan.gpu && user->offload == GPB_OFFLOAD_AUTO && !gpb_facts_on_gpu(facts) && gpb_gpu_started();
        if (plan.starts || unmeasured) gpb_ready_begin();
        if (plan.tries) gpb_machine_tried(call, facts, plan.gpu);
        if (!plan.gpu || facts->now.start_s == 0 || waited) return plan;
        if (!gpb_ready_await(user->offload == GPB_OFFLOAD_AUTO, plan.wait_s)) return plan;
    }
}

/* What sends a call to the host at a glance, or NULL. Most calls are small, and take the host less than a microsecond: facts and plan cost
   half of one. */
static const char *reject_fast(const gpb_call *call, bool *libcuda)
{
    const uint64_t now = __builtin_ia32_rdtsc();       /* 10 to 20 ns: once a call */
    const enum gpb_offload_when when = (enum gpb_offload_when)gpb_option_number(GPB_OPTION_OFFLOAD);
    *libcuda = gpb_next_look(now) && call->type == GPB_TYPE_s && when != GPB_OFFLOAD_NEVER;
    if (gpb_linker_forking()) return "called by a fork's handler";
    const bool unseen = gpb_place_surely_host(call, *libcuda);
    const char *forbidden = gpb_decide_forbids(call, when, unseen, !unseen || gpb_gpu_possible());
    if (forbidden || when != GPB_OFFLOAD_AUTO || !is_known_hosts(call)) return forbidden;
    return unseen || gpb_place_probed_host(call, now) ? gpb_decide_too_small : NULL;
}

/* True: C is done. False: the host's, and *visit is told what is known of the call. */
static bool done_by_gpu(const gpb_call *call, bool libcuda, gpb_host_call *visit)
{
    const gpb_policy user = policy();
    gpb_facts facts;
    gpb_plan plan = decide(call, libcuda, &user, &facts);
    /* An operand that the host cannot reach is the GPU's business even if it does not compute: it is fetched for the host. */
    const bool there = gpb_facts_c_on_gpu(&facts) || (gpb_call_multiplies(call) && gpb_facts_on_gpu(&facts));
    if (user.offload == GPB_OFFLOAD_AUTO && !there) remember(call, &plan);
    if (gpb_gpu_started() && (plan.gpu || there)) {
        if (run_on_gpu(call, &facts, &user, &plan, visit->came_s)) return true;
    } else if (plan.gpu) {
        plan.why = gpb_gpu_why();
    }
    visit->why = plan.why, visit->host_s = plan.host_s, visit->gpu_s = plan.gpu_s;
    visit->modelled_s = facts.now.callers || facts.now.host_callers ? 0 : plan.host_s / facts.learnt.host_ratio, visit->threads = facts.host.cores;
    return false;
}

static bool offload(const gpb_call *call, gpb_host_call *visit)
{
    char *frame = __builtin_frame_address(0);
    bool libcuda;
    *visit = (gpb_host_call){ 0 };
    if (inside && frame < inside && inside - frame < NEAR) return false;
    inside = NULL;
    leave_host();
    if (!gpb_offload_legal(call)) return false;
    if (quick_return(call)) return true;
    if (gpb_option_number(GPB_OPTION_VERBOSE)) visit->came_s = gpb_clock_s();
    visit->why = reject_fast(call, &libcuda);
    if (!visit->why && done_by_gpu(call, libcuda, visit)) return true;
    visit->call = call;
    if (gpb_place_unreachable(call)) {
        gpb_log_warn(GPB_PLACE_UNREACHED, call->symbol, "cannot be reached any more", "not computed");
        return true;
    }
    if (call->type == GPB_TYPE_s && !gpb_call_multiplies(call)) {
        scale(call);
        count_host(visit);
        return true;
    }
    if (visit->modelled_s > 0) visit->begin_s = gpb_clock_s();
    enter_host(call);
    inside = frame;
    return false;
}

/* errno stays the caller's: a BLAS has none, and starting CUDA or a refused malloc would leave theirs. */
bool gpb_offload(const gpb_call *call, gpb_host_call *visit)
{
    const int before = errno;
    const bool done = offload(call, visit);
    errno = before;
    return done;
}

void gpb_offload_done(const gpb_host_call *visit)
{
    if (!visit->call) return;
    inside = NULL;
    leave_host();
    const double seconds = visit->begin_s > 0 ? gpb_clock_s() - visit->begin_s : 0;
    if (visit->modelled_s > 0) gpb_machine_host_took(visit->call, visit->threads, visit->modelled_s, seconds);
    count_host(visit);
}
