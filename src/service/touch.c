/* SPDX-License-Identifier: MIT */
/* Touching operands; see touch.h. Workers of the crew that meet a bad pointer meet it together, and a reporter of crashes that is made for one
   (Python's faulthandler lets the second fault end the process) is cut short. The caller's thread meets it alone, before anything is begun, and
   the report names the call that is to blame. Both ends, for what is amiss is mostly the address or the size: a hole in the middle is met by
   whoever comes to it. */
#include "src/service/touch.h"

#include <stdint.h>

static void read_one(const float *at) { (void)*(const volatile char *)at; }

/* Not read first: a page of zeros mapped for that would have to be replaced when C is written. */
static void write_one(const float *at) { __atomic_fetch_or((volatile char *)(uintptr_t)at, 0, __ATOMIC_RELAXED); }

static void touch(const void *base, const void *const *array, int64_t between, int64_t batch, int64_t last, void (*one)(const float *))
{
    const float *first = array ? array[0] : base, *end = array ? array[batch - 1] : first + (batch - 1) * between;
    one(first);
    one(end + last);
}

void gpb_touch(const gpb_call *call, const gpb_facts *facts)
{
    const int64_t last_a = (gpb_call_cols_a(call) - 1) * call->lda + gpb_call_rows_a(call) - 1;
    const int64_t last_b = (gpb_call_cols_b(call) - 1) * call->ldb + gpb_call_rows_b(call) - 1;
    const int64_t last_c = (call->n - 1) * call->ldc + call->m - 1;
    const bool reads = gpb_call_multiplies(call);
    if (reads && facts->a == GPB_PLACE_HOST) touch(call->a, call->a_array, call->stride_a, call->batch, last_a, read_one);
    if (reads && facts->b == GPB_PLACE_HOST) touch(call->b, call->b_array, call->stride_b, call->batch, last_b, read_one);
    if (facts->c == GPB_PLACE_HOST) touch(call->c, (const void *const *)call->c_array, call->stride_c, call->batch, last_c, write_one);
}
