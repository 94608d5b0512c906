/* SPDX-License-Identifier: MIT */
/* One call on the GPU, from a lane to the last byte of C, and what is done when that fails: C is committed piece by piece, so the host BLAS
   can always finish what is left. */
#include "src/gpu.h"
#include "src/gpu_run.h"
#include "src/host_finish.h"
#include "src/log.h"

/* A plan that fits what this lane can hold now, and the memory for it. NULL, or what stands in the way. */
static const char *provide(gpb_lane *lane, const gpb_call *call, gpb_facts *facts, const gpb_policy *policy, gpb_plan *plan)
{
    int64_t room = gpb_gpu_room(lane);
    if (lane->device->arch != facts->arch) {
        facts->arch = lane->device->arch, facts->sms = lane->device->sms;
        *plan = gpb_plan_make(call, facts, policy);
    }
    while (plan->gpu) {
        int64_t bytes = gpb_gpu_run_bytes(call, plan), panels = gpb_gpu_panel_bytes(plan);
        if (bytes <= room && gpb_gpu_arena(lane, bytes)) return NULL;
        if (!gpb_gpu_started()) return gpb_gpu_why();
        if (bytes <= room) room = bytes / 2;      /* the device has less than the budget says */
        facts->device_bytes = room - (bytes - panels);
        *plan = gpb_plan_make(call, facts, policy);
    }
    return plan->why;
}

/* NULL, or why the kernels that the plan needs cannot be had on this device. */
static const char *find_kernels(gpb_lane *lane, const gpb_plan *plan)
{
    CUfunction function;
    CUresult result = gpb_gpu_function(lane->device, plan->kernel->image, plan->kernel->symbol, &function);
    if (!result && (plan->pack_a || plan->pack_b || plan->pack_c)) result = gpb_gpu_pack_function(lane->device, &function);
    return result ? gpb_driver_error(result) : NULL;
}

gpb_outcome gpb_gpu_call(const gpb_call *call, gpb_facts *facts, const gpb_policy *policy, gpb_plan plan)
{
    gpb_outcome out = { 0 };
    gpb_progress progress = { 0 };
    CUresult result = CUDA_SUCCESS;
    gpb_lane *lane = gpb_gpu_take(facts);
    if (!lane) {
        out.failure = gpb_gpu_why();
    } else {
        out.failure = provide(lane, call, facts, policy, &plan);
        if (!out.failure) out.failure = find_kernels(lane, &plan);
        if (!out.failure) result = gpb_gpu_run(lane, call, &plan, facts, &progress);
        if (result) out.failure = gpb_driver_error(result);
        gpb_gpu_give(lane);
    }
    if (gpb_gpu_sticky(result)) gpb_gpu_give_up(out.failure);
    if (out.failure)
        gpb_log_warn("the GPU failed (%s): the host computes%s", out.failure, gpb_gpu_started() ? " this call" : " from now on");
    out.kernel = plan.kernel, out.bytes_up = progress.bytes_up, out.bytes_down = progress.bytes_down;
    /* Untouched operands in host memory: the caller's own arguments go to the host. Else what is left is the host's, piece by piece. */
    bool on_device = facts->a != GPB_PLACE_HOST || facts->b != GPB_PLACE_HOST || facts->c != GPB_PLACE_HOST;
    bool begun = progress.tiles || progress.members || progress.cols;
    out.done = !out.failure || begun || on_device;
    if (out.failure && out.done && !gpb_host_finish(call, &plan, facts, &progress))
        gpb_log_warn("%s: an operand in GPU memory cannot be reached any more, C is not computed", call->symbol);
    return out;
}
