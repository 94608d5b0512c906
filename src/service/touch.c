/* SPDX-License-Identifier: MIT */
/* Touching operands; see touch.h. Several workers of the crew would use a bad pointer at the same time. That
   cuts short a crash reporter that is made for one fault (Python's faulthandler lets the second fault end the
   process). So the calling thread uses the pointer first, before anything is begun, and the report names the
   call that is to blame. It touches both ends, because an error is mostly in the address or in the size;
   those of a triangle are on its diagonal. A hole in the middle is found by the first thread that comes to
   it. */
#include "src/service/touch.h"

#include <stdint.h>

static void read_one(const char *at) { (void)*(const volatile char *)at; }

/* The byte is not read first, because that would map a page of zeros, which writing C would have to
   replace. */
static void write_one(const char *at)
{
    __atomic_fetch_or((volatile char *)(uintptr_t)at, 0, __ATOMIC_RELAXED);
}

static void touch(const gpb_call *call, enum gpb_operand x, void (*one)(const char *))
{
    const size_t bytes = gpb_call_element(call);
    const int64_t last = (gpb_call_cols(call, x) - 1) * call->x[x].ld + gpb_call_rows(call, x) - 1;
    one(gpb_call_member(call, x, 0));
    one((const char *)gpb_call_member(call, x, call->batch - 1) + (size_t)last * bytes);
}

void gpb_touch(const gpb_call *call, const gpb_facts *facts)
{
    const bool reads = gpb_call_multiplies(call);
    if (reads && facts->where[GPB_A].place == GPB_PLACE_HOST) touch(call, GPB_A, read_one);
    if (reads && facts->where[GPB_B].place == GPB_PLACE_HOST) touch(call, GPB_B, read_one);
    if (facts->where[GPB_C].place == GPB_PLACE_HOST) touch(call, GPB_C, write_one);
}
