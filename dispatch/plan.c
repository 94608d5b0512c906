/* SPDX-License-Identifier: MIT */
/* The decision; see plan.h. It reads from top to bottom: what forbids the GPU, what demands it, what it would cost. */
#include "dispatch/plan.h"

#include "dispatch/cost.h"
#include "dispatch/kernel_pick.h"
#include "dispatch/panels.h"

#define MARGIN 0.9      /* the GPU must be predicted this much faster: predictions err, and the host is the quieter choice */

static gpb_plan on_host(gpb_plan plan, const char *why)
{
    return (gpb_plan){ .why = why, .host_s = plan.host_s, .gpu_s = plan.gpu_s };
}

/* The panels of the fastest kernel that fits: a lean one needs the least memory. */
static bool make_panels(gpb_plan *plan, const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy)
{
    for (int lean = 0; lean < 2; lean++) {
        const gpb_choice best = gpb_kernel_pick(call, facts, policy, lean);
        plan->kernel = best.kernel, plan->stand_in = best.stand_in, plan->splits = best.splits;
        if (!plan->kernel || !gpb_panels_choose(plan, call, facts)) continue;
        plan->gpu_s = gpb_panels_seconds(plan, call, facts) + best.seconds;
        return true;
    }
    return false;
}

/* The user's kernel is another one than the plan's. */
static bool is_other(const gpb_plan *plan, const gpb_policy *policy)
{
    return policy->kernel && plan->kernel != gpb_kernel_table_find(policy->kernel);
}

gpb_plan gpb_plan_make(const gpb_call *call, const gpb_facts *facts, const gpb_policy *policy)
{
    gpb_plan plan = { 0 };
    bool reads = gpb_call_multiplies(call);
    bool on_device = !gpb_place_on_host(facts->c) || (reads && !(gpb_place_on_host(facts->a) && gpb_place_on_host(facts->b)));
    bool must = on_device || policy->offload == GPB_OFFLOAD_ALWAYS;

    if (policy->offload == GPB_OFFLOAD_NEVER) return on_host(plan, "GPUBLAS_OFFLOAD=never");
    if (call->precision != 's') return on_host(plan, "computed by the host in this precision");
    if (facts->arch == 0) return on_host(plan, "no GPU");
    if (!must && !reads) return on_host(plan, "nothing to multiply");

    /* Most calls are small: they are turned away by what the GPU costs whatever the kernel, before any kernel is looked at. */
    plan.mc = call->m, plan.nc = call->n, plan.kc = call->k, plan.group = call->batch;
    plan.host_s = gpb_cost_host(call, facts);
    plan.gpu_s = gpb_panels_seconds(&plan, call, facts);
    if (!must && facts->launch_s >= MARGIN * plan.host_s) return on_host(plan, "too small for the GPU");
    if (!must && plan.gpu_s >= MARGIN * plan.host_s) return on_host(plan, "faster on the host");

    if (!make_panels(&plan, call, facts, policy)) return on_host(plan, plan.kernel ? "too little device memory" : "no kernel for this GPU");
    double saved = plan.host_s - plan.gpu_s;
    if (!must && plan.gpu_s >= MARGIN * plan.host_s) return on_host(plan, "faster on the host");
    if (!must && facts->start_s > 0 && facts->credit_s + saved < facts->start_s) {
        plan = on_host(plan, "starting the GPU would not pay yet");
        plan.waits = true;
        return plan;
    }

    plan.gpu = true;
    plan.why = is_other(&plan, policy) ? "on the GPU, but GPUBLAS_KERNEL names none that can do this here"
             : on_device ? "operand on the device" : must ? "GPUBLAS_OFFLOAD=always" : "faster on the GPU";
    return plan;
}
