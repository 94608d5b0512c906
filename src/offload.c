/* SPDX-License-Identifier: MIT */
/* The hub: check, ask for a plan, run it, count, one line of trace. Data flows one way: door, hub, plan, run, kernel. */
#include "src/offload.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "src/gpu.h"
#include "src/log.h"
#include "src/next.h"
#include "src/option.h"
#include "src/stats.h"
#include "src/verify.h"

/* The frame in which this thread last entered the host BLAS. A host's cblas_sgemm may call sgemm_ by name (netlib, BLIS), which comes back
   to our door deeper in the stack: that is no new call. A frame, not a flag, so that a longjmp out of the host cannot leave it set for
   good (deeper calls come from near by). */
enum { NEAR = 65536 };
static _Thread_local char *inside __attribute__((tls_model("initial-exec")));

/* Nanoseconds that the GPU would have saved on calls that went to the host only because it was not started. */
static _Atomic int64_t credit_ns;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

bool gpb_offload_legal(const gpb_call *g)
{
    bool letters = (g->transa == 'N' || g->transa == 'T' || g->transa == 'C') && (g->transb == 'N' || g->transb == 'T' || g->transb == 'C')
                   && g->uplo;
    return letters && g->m >= 0 && g->n >= 0 && g->k >= 0 && g->batch >= 0 && g->lda >= most(1, gpb_call_rows_a(g))
           && g->ldb >= most(1, gpb_call_rows_b(g)) && g->ldc >= most(1, g->m);
}

/* Nothing to do, as the reference sees it. Not left to the host: A and B may be NULL here, and BLIS aborts on that, OpenBLAS 0.3.21 reads
   them. */
static bool quick_return(const gpb_call *g)
{
    return g->m == 0 || g->n == 0 || g->batch == 0 || (!gpb_call_multiplies(g) && g->beta == 1);
}

static double flops(const gpb_call *g)
{
    return (g->uplo == 'G' ? 2.0 : 1.0) * (double)g->m * (double)g->n * (double)g->k * (double)g->batch;
}

static void trace(const gpb_call *g, const char *route, const char *why, const gpb_outcome *out, double seconds)
{
    char splits[24] = "";
    if (out->splits > 1) snprintf(splits, sizeof splits, " splits=%d", out->splits);
    /* m, n, A, B as the caller knows them. */
    bool row = g->row_major;
    gpb_log_line("%s order=%s%s ta=%c tb=%c m=%lld n=%lld k=%lld lda=%lld ldb=%lld ldc=%lld alpha=%g beta=%g batch=%lld route=%s "
                 "why=\"%s\" kernel=%s%s%s%s%s%s to_gpu=%lld from_gpu=%lld ms=%.3f gflops=%.1f",
                 g->symbol, row ? "row" : "col", g->uplo == 'G' ? "" : (g->uplo == 'U') != row ? " uplo=U" : " uplo=L",
                 row ? g->transb : g->transa, row ? g->transa : g->transb, (long long)(row ? g->n : g->m), (long long)(row ? g->m : g->n),
                 (long long)g->k, (long long)(row ? g->ldb : g->lda), (long long)(row ? g->lda : g->ldb), (long long)g->ldc, g->alpha,
                 g->beta, (long long)g->batch, route, why, out->kernel ? out->kernel->name : "-", out->wide ? "+" : "",
                 out->wide ? out->wide->name : "", out->stand_in ? "+" : "", out->stand_in ? out->stand_in->name : "", splits, (long long)out->bytes_up, (long long)out->bytes_down, 1e3 * seconds,
                 seconds > 0 ? 1e-9 * flops(g) / seconds : 0.0);
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

/* True if C is done: on the GPU, or begun there and finished by the host. Else *plan says why not. */
static bool on_gpu(const gpb_call *call, gpb_facts *facts, const gpb_policy *user, gpb_plan *plan)
{
    const double begin_s = now_s();
    gpb_verify verify = gpb_verify_begin(call, facts);
    gpb_outcome out = gpb_gpu_call(call, facts, user, *plan);
    if (!gpb_verify_end(&verify, call, facts, &out)) out.failure = "wrong by GPUBLAS_VERIFY";
    if (out.failure) plan->why = out.failure;
    if (!out.done) return false;
    const double seconds = now_s() - begin_s;
    const bool failed = out.failure != NULL;
    gpb_stats_add(&(gpublas_stats_t){ .calls = 1, .gpu_calls = !failed, .host_calls = failed, .failed_calls = failed,
                                      .bytes_to_gpu = (uint64_t)out.bytes_up, .bytes_from_gpu = (uint64_t)out.bytes_down,
                                      .gpu_seconds = failed ? 0 : seconds, .gpu_flops = failed ? 0 : flops(call) });
    if (gpb_option_number(GPB_OPTION_VERBOSE))
        trace(call, failed ? "gpu+host" : "gpu", plan->why, &out, seconds);
    return true;
}

/* C = beta C. Not left to the host: A and B may be NULL. */
static void scale(const gpb_call *g)
{
    const float beta = (float)g->beta;
    for (int64_t l = 0; l < g->batch; l++) {
        float *c = g->c_array ? g->c_array[l] : (float *)g->c + l * g->stride_c;
        for (int64_t j = 0; j < g->n; j++)
            for (int64_t i = g->uplo == 'L' ? j : 0; i < (g->uplo == 'U' ? j + 1 : g->m); i++)
                c[i + j * g->ldc] = beta == 0 ? 0 : beta * c[i + j * g->ldc];
    }
}

static void count_host(const gpb_call *call, const char *why, double seconds)
{
    gpb_stats_add(&(gpublas_stats_t){ .calls = 1, .host_calls = 1 });
    if (gpb_option_number(GPB_OPTION_VERBOSE)) trace(call, "host", why, &(gpb_outcome){ 0 }, seconds);
}

static bool offload(const gpb_call *call, gpb_visit *visit)
{
    char *frame = __builtin_frame_address(0);
    *visit = (gpb_visit){ 0 };
    if (inside && frame < inside && inside - frame < NEAR) return false;
    inside = NULL;
    if (!gpb_offload_legal(call)) return false;
    if (quick_return(call)) return true;

    const gpb_policy user = policy();
    gpb_facts facts = { 0 };
    gpb_plan plan = gpb_plan_make(call, &facts, &user);      /* with no GPU at all: what forbids it comes first */
    if (call->precision == 's' && user.offload != GPB_OFFLOAD_NEVER) {
        gpb_gpu_facts(call, gpb_next_look(false), &facts);
        facts.credit_s = 1e-9 * (double)atomic_load_explicit(&credit_ns, memory_order_relaxed);
        plan = gpb_plan_make(call, &facts, &user);
        if (plan.gpu && facts.start_s > 0 && gpb_gpu_start()) {      /* now that the GPU itself is known */
            gpb_gpu_facts(call, gpb_next_look(false), &facts);
            plan = gpb_plan_make(call, &facts, &user);
        } else if (plan.waits) {
            atomic_fetch_add(&credit_ns, (int64_t)(1e9 * (plan.host_s - plan.gpu_s)));
        }
        /* An operand that the host cannot reach is the GPU's business even if it does not compute: it is fetched for the host. */
        if (gpb_gpu_started() && (plan.gpu || gpb_facts_on_gpu(&facts))) {
            if (on_gpu(call, &facts, &user, &plan)) return true;
        } else if (plan.gpu) {
            plan.why = gpb_gpu_why();
        }
    }
    if (call->precision == 's' && !gpb_call_multiplies(call)) {
        scale(call);
        count_host(call, "nothing to multiply", 0);
        return true;
    }
    *visit = (gpb_visit){ .call = call, .why = plan.why };
    if (gpb_option_number(GPB_OPTION_VERBOSE)) visit->begin_s = now_s();
    inside = frame;
    return false;
}

/* errno stays the caller's: a BLAS has none, and starting CUDA or a refused malloc would leave theirs. */
bool gpb_offload(const gpb_call *call, gpb_visit *visit)
{
    const int before = errno;
    const bool done = offload(call, visit);
    errno = before;
    return done;
}

void gpb_offload_done(const gpb_visit *visit)
{
    if (!visit->call) return;
    inside = NULL;
    count_host(visit->call, visit->why, visit->begin_s > 0 ? now_s() - visit->begin_s : 0);
}
