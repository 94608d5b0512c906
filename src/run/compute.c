/* SPDX-License-Identifier: MIT */
/* One call on the GPU, from a lane to the last byte of C, and what happens after a failure. C is committed
   tile by tile, so the host BLAS can always finish the rest. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "dispatch/decide.h"
#include "src/gpu/context.h"
#include "src/gpu/gpu.h"
#include "src/gpu/kernels.h"
#include "src/gpu/memory.h"
#include "src/gpu/place.h"
#include "src/run/compute.h"
#include "src/run/run.h"
#include "src/run/repair.h"
#include "src/service/log.h"

/* Makes a plan that this lane's device can carry out, and gets memory for it. NULL, or the reason for
   failure. It waits for memory that other calls hold, because a smaller plan would add in another order, and
   the same call must give the same bits. Only if the device turns out to have less memory is a smaller plan
   made, or the host takes the call. */
static const char *provide(gpb_lane *lane, const gpb_call *call, gpb_facts *facts, const gpb_policy *policy,
                           gpb_plan *plan)
{
    const gpb_device *device = lane->device;
    bool fits = facts->gpu.arch == device->arch && facts->gpu.sms == device->sms
                && gpb_run_bytes(call, plan) <= device->budget;
    for (int64_t most = device->budget; plan->gpu; fits = false) {
        if (!fits) {
            facts->gpu.arch = device->arch;
            facts->gpu.sms = device->sms;
            facts->gpu.bytes = most;
            *plan = gpb_decide(call, facts, policy);
            if (!plan->gpu) break;
        }
        const int64_t bytes = gpb_run_bytes(call, plan);
        if (gpb_memory_arena(lane, bytes) && (!plan->streamk || gpb_memory_counters(lane))) return NULL;
        if (!gpb_gpu_started()) return gpb_gpu_why();
        most = bytes / 2;
    }
    return plan->why;
}

/* Finds the kernels that the plan needs. NULL, or why one cannot be had on this device. */
static const char *find_kernels(gpb_lane *lane, const gpb_call *call, const gpb_plan *plan)
{
    gpb_device *device = lane->device;
    const bool sliced = gpb_kernel_table_guarded(plan->kernel);
    const enum gpb_type type = plan->kernel->type;
    int which[8], count = 0;
    which[count++] = gpb_kernels_number(plan->kernel);
    if (sliced) {
        which[count++] = gpb_kernels_number(plan->fallback);
        which[count++] = gpb_kernels_slicer(plan->slicer);
    }
    if (plan->kernel->form == GPB_FORM_RESIDUES) which[count++] = gpb_kernels_pass(GPB_PASS_COMBINE, type);
    const bool packs = !sliced && (plan->panel[GPB_A].packs || plan->panel[GPB_B].packs);
    if (packs) which[count++] = gpb_kernels_pass(GPB_PASS_PACK, type);
    if (plan->panel[GPB_C].packs) which[count++] = gpb_kernels_pass(GPB_PASS_UNPACK, type);
    if (plan->bytes_mirrored || plan->mirrors) which[count++] = gpb_kernels_pass(GPB_PASS_mirror, type);
    if (gpb_call_solves(call)) which[count++] = gpb_kernels_systems(call);
    if (plan->splits > 1) which[count++] = gpb_kernels_pass(GPB_PASS_REDUCE, type);
    CUresult result = CUDA_SUCCESS;
    CUfunction function;
    for (int i = 0; i < count && !result; i++) result = gpb_kernels_find(device, which[i], &function);
    return result ? gpb_driver_error(result) : NULL;
}

/* Plans again without slices or tensor maps if kernels on these cannot be had, for example because no cluster
   of theirs fits. STRIDED FMA kernels do it then. NULL, or the reason for failure. */
static const char *do_without(gpb_lane *lane, const gpb_call *call, gpb_facts *facts,
                              const gpb_policy *policy, gpb_plan *plan)
{
    const gpb_policy plain = { .offload = policy->offload, .math = GPB_POLICY_IEEE,
                               .splits = policy->splits };
    facts->gpu.no_maps = true;
    *plan = gpb_decide(call, facts, &plain);
    const char *why = plan->gpu ? provide(lane, call, facts, &plain, plan) : plan->why;
    return why ? why : find_kernels(lane, call, plan);
}

/* Runs the job on a lane. Its plan may become a smaller one. NULL, or the reason for failure; *warn: it is
   worth a warning. */
static const char *run_on_lane(gpb_lane *lane, gpb_job *job, gpb_facts *facts, const gpb_policy *policy,
                               bool *warn)
{
    const char *failure = provide(lane, job->call, facts, policy, &job->plan);
    *warn = !failure;
    if (!failure) failure = find_kernels(lane, job->call, &job->plan);
    const gpb_kernel *kernel = job->plan.kernel;
    const bool replaceable = kernel && (gpb_kernel_table_guarded(kernel) || kernel->form == GPB_FORM_MAPPED);
    if (failure && *warn && replaceable && gpb_gpu_started())
        failure = do_without(lane, job->call, facts, policy, &job->plan);
    if (failure) return failure;
    const CUresult result = gpb_run_job(lane, job);
    if (!result) return NULL;
    gpb_lanes_failed(lane, result);
    return gpb_driver_error(result);
}

static const char *why_no_lane(void)
{
    if (gpb_gpu_leaving()) return "the program is ending";
    return gpb_gpu_started() ? "no stream or pinned memory could be created" : gpb_gpu_why();
}

/* The GPU has computed or begun some of C. */
static bool has_begun(const gpb_progress *p)
{
    return p->tiles || p->members || p->cols || p->steps || p->blocks_missing || p->undrained;
}

/* After a failure: two runs can still compute what was joined. */
static bool goes_in_turn(const gpb_job *job) { return job->call->joined && !has_begun(&job->progress); }

/* NULL, or the reason why the GPU has not computed all of it. */
static const char *run_on_gpu(gpb_job *job, gpb_facts *facts, const gpb_policy *policy)
{
    bool warn = true;
    gpb_lane *lane = gpb_lanes_take(facts, gpb_facts_large(job->call, facts));
    const char *failure = lane ? run_on_lane(lane, job, facts, policy, &warn) : why_no_lane();
    if (lane) gpb_lanes_give(lane);
    /* No warning, because the driver ends before the program does. */
    if (failure && gpb_gpu_leaving()) gpb_gpu_await_end();
    else if (failure && warn && !goes_in_turn(job))
        gpb_log_warn("the GPU failed (%s); the host computes%s", failure,
                     gpb_gpu_started() ? " this call" : " all calls from now on");
    return failure;
}

/* Has the host compute the rest. False: nobody can. */
static bool finish(const gpb_job *job)
{
    errno = 0;                       /* gpb_offload keeps the caller's */
    if (!job->progress.undrained && gpb_repair(job)) return true;
    const char *what = has_begun(&job->progress)
        ? "was partly overwritten and is neither the result nor what it was" : GPB_PLACE_UNBEGUN;
    const char *why = errno == ENOMEM ? "does not fit into the host's memory" : "cannot be reached any more";
    gpb_log_warn(GPB_PLACE_UNREACHED, job->call->symbol, why, what);
    return false;
}

/* must: what is left undone is finished here in any case. */
static gpb_outcome one(const gpb_call *call, gpb_facts *facts, const gpb_policy *policy, gpb_plan plan,
                       bool must)
{
    gpb_job job = { .call = call, .facts = facts, .plan = plan };
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    int cancel;
    /* A thread that is cancelled here would keep its lane or a lock. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    gpb_driver_capture_mode(&mode);
    gpb_outcome out = { .failure = plan.gpu ? run_on_gpu(&job, facts, policy) : plan.why };
    out.kernel = gpb_call_solves(call) ? NULL : job.plan.kernel;
    out.splits = job.plan.splits;
    if (job.progress.fell_back) {
        out.wide = job.plan.wide;
        out.fallback = job.plan.fallback;
    }
    out.bytes_up = job.progress.bytes_up;
    out.bytes_down = job.progress.bytes_down;
    /* If no operand was touched and all are in host memory, the door passes the caller's own arguments to the
       host. Else the host computes here what is left of C. */
    out.done = !out.failure || must || has_begun(&job.progress)
               || (gpb_facts_on_gpu(facts) && !goes_in_turn(&job));
    out.lost = out.failure && out.done && !finish(&job);
    free(job.progress.flagged_blocks);
    gpb_driver_capture_mode(&mode);
    pthread_setcancelstate(cancel, NULL);
    return out;
}

/* The two products of SYR2K or HER2K, one behind the other. Behind the first one C is not the caller's any
   more. */
static gpb_outcome in_turn(const gpb_call *call, gpb_facts *facts, const gpb_policy *policy, gpb_plan plan)
{
    const gpb_call behind = gpb_call_second(call), first = gpb_call_alone(call),
                   second = gpb_call_alone(&behind);
    const gpb_outcome before = one(&first, facts, policy, plan, false);
    if (!before.done || before.lost) return before;
    gpb_outcome out = one(&second, facts, policy, gpb_decide(&second, facts, policy), true);
    if (before.failure) out.failure = before.failure;
    if (!out.fallback) out.fallback = before.fallback;
    if (!out.wide) out.wide = before.wide;
    out.bytes_up += before.bytes_up;
    out.bytes_down += before.bytes_down;
    return out;
}

gpb_outcome gpb_compute(const gpb_call *call, gpb_facts *facts, const gpb_policy *policy, gpb_plan plan)
{
    if (plan.in_turn) return in_turn(call, facts, policy, plan);
    if (!plan.joined) return one(call, facts, policy, plan, false);
    const gpb_call both = gpb_call_joined(call);
    const gpb_outcome out = one(&both, facts, policy, plan, false);
    if (out.done) return out;
    facts->gpu.no_maps = true;           /* the kernels that can do both */
    return in_turn(call, facts, policy, gpb_decide(call, facts, policy));
}
