/* SPDX-License-Identifier: MIT */
/* See ask.h. The facts are those of a started GPU and of operands in host memory, as far as the caller's
   addresses are. Nothing is noted or learnt. */
#include "src/hub/ask.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "dispatch/cost.h"
#include "dispatch/decide.h"
#include "dispatch/predict.h"
#include "include/gpublas.h"
#include "src/host/next.h"
#include "src/hub/routing.h"
#include "src/hub/trace.h"
#include "src/learn/ready.h"
#include "src/service/log.h"

#define PUBLIC __attribute__((visibility("default")))

static _Thread_local char *text __attribute__((tls_model("initial-exec")));
static _Thread_local size_t room __attribute__((tls_model("initial-exec")));
static _Thread_local size_t used __attribute__((tls_model("initial-exec")));

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const size_t at = used < room ? used : room;
    const int length = gpb_log_print(text + at, room - at, format, arguments);
    va_end(arguments);
    if (length > 0) used += (size_t)length;
}

bool gpb_ask_here(void) { return text != NULL; }

static void put_seconds(const char *name, double seconds)
{
    if (seconds > 0) put(", \"%s\": %.6g", name, seconds);
    else put(", \"%s\": null", name);
}

static void put_text(const char *name, const char *value)
{
    if (value) put(", \"%s\": \"%s\"", name, value);
    else put(", \"%s\": null", name);
}

static void put_routine(const char *symbol, enum gpb_type type, int64_t m, int64_t n)
{
    put("%s\n {\"routine\": \"%s\", \"type\": \"%c\", \"m\": %lld, \"n\": %lld", used ? "," : "[", symbol,
        gpb_type_of(type)->letter, (long long)m, (long long)n);
}

/* What the GPU would do, whether or not it is chosen. */
static void put_gpu(const gpb_call *call, const gpb_facts *facts, const gpb_plan *plan)
{
    const bool known = plan->gpu && plan->kernel;        /* what is resident has several */
    const gpb_traffic bytes = known ? gpb_predict_traffic(plan, call, facts) : (gpb_traffic){ .down = 0 };
    put_text("kernel", plan->kernel ? plan->kernel->name : NULL);
    put(", \"splits\": %d, \"bytes_to_gpu\": %.0f, \"bytes_from_gpu\": %.0f, \"device_bytes\": %lld",
        known && plan->splits > 1 ? plan->splits : 1,
        bytes.up[GPB_A] + bytes.up[GPB_B] + bytes.up[GPB_C], bytes.down,
        known ? (long long)gpb_plan_bytes(plan) : 0LL);
}

gpb_facts gpb_ask_on_device(const gpb_facts *facts)
{
    gpb_facts there = *facts;
    for (int x = 0; x < GPB_OPERANDS; x++) there.where[x] = (gpb_where){ GPB_PLACE_DEVICE, false, -1 };
    there.learnt.gpu_ratio = 1;                          /* it was learnt of calls with copies */
    return there;
}

void gpb_ask_answer(const gpb_call *call, const char *of, const gpb_facts *facts, const gpb_plan *plan,
                    const gpb_plan *forced, double device_s)
{
    const double host_s = forced->host_s > 0 ? forced->host_s
                        : facts->learnt.host_ratio * gpb_cost_host(call, facts);
    put_routine(call->symbol, call->type, call->m, call->n);
    put(", \"k\": %lld", (long long)call->k);
    put_text("product_of", of);
    put(", \"operations\": %.17g, \"route\": \"%s\"", gpb_trace_flops(call), plan->gpu ? "gpu" : "host");
    put_text("why", plan->why);
    put_seconds("host_seconds", host_s);
    put_seconds("gpu_seconds", forced->gpu ? forced->gpu_s : 0);
    put_seconds("device_seconds", forced->gpu ? device_s : 0);
    put_gpu(call, facts, forced);
    put(", \"host_threads\": %d, \"host_measured_to_modelled\": %.4g, \"gpu_measured_to_modelled\": %.4g",
        facts->host.cores, facts->learnt.host_ratio, facts->learnt.gpu_ratio);
    put(", \"up_bytes_per_second\": %.4g, \"down_bytes_per_second\": %.4g", 1e9 * facts->link.up_gbs,
        1e9 * facts->link.down_gbs);
    put(", \"tried\": %s", facts->learnt.try_host || facts->learnt.try_gpu ? "false" : "true");
    put(", \"start_cost_seconds\": %.4g}", facts->now.start_cost_s);
}

void gpb_ask_product(const gpb_call *call, const char *of)
{
    gpb_policy user = gpb_routing_policy();
    gpb_facts facts;
    const gpb_plan plan = gpb_routing_predict(call, &user, &facts);
    user.offload = GPB_OFFLOAD_ALWAYS;
    gpb_plan forced = gpb_decide(call, &facts, &user);
    const gpb_facts there = gpb_ask_on_device(&facts);
    const double device_s = gpb_decide(call, &there, &user).gpu_s;
    if (gpb_call_solves(call)) forced.kernel = NULL;
    gpb_ask_answer(call, of, &facts, &plan, &forced, device_s);
}

void gpb_ask_triangular(const gpb_triangular *t, int64_t leaf)
{
    if (gpb_triangular_order(t) > leaf) {
        const gpb_call largest = gpb_triangular_halve(t).product;
        gpb_ask_product(&largest, t->symbol);
        return;
    }
    put_routine(t->symbol, t->type, t->m, t->n);
    put(", \"k\": null, \"product_of\": null, \"route\": \"host\", "
        "\"why\": \"triangles of this order are the host's\"}");
}

static void begin(void)
{
    gpb_next(GPB_SYMBOL_sgemm_);         /* the host's threads are part of the prediction */
    if (gpb_routing_policy().offload != GPB_OFFLOAD_NEVER) gpb_ready_await(true, GPB_PLAN_MAX_START_S);
    if (!text) gpb_option_watch(1);
}

static size_t end(void)
{
    if (!text) return 0;
    put(used ? "]" : "[]");
    gpb_option_watch(-1);
    return used;
}

PUBLIC int gpublas_ask(char *answer, size_t size)
{
    if (answer && !size) return -1;
    const size_t length = answer ? 0 : end();
    if (answer) {
        begin();
        *answer = 0;
    }
    text = answer;
    room = size;
    used = 0;
    return length < INT_MAX ? (int)length : -1;
}

PUBLIC int gpublas_save_calibration(void)
{
    return gpb_ready_save_now() ? 0 : -1;
}
