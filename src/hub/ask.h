/* SPDX-License-Identifier: MIT */
/* gpublas_ask: what would become of a thread's calls. While a thread asks, calls of the routines in
   host/arguments.def are not computed: the decision that they would lead to is written down as JSON. */
#ifndef GPB_ASK_H
#define GPB_ASK_H

#include <stdatomic.h>

#include "dispatch/facts.h"
#include "dispatch/plan.h"
#include "dispatch/triangular.h"
#include "src/service/option.h"

/* This thread asks. Only called where somebody is to be told of calls, so other calls take no notice. */
bool gpb_ask_here(void);
static inline bool gpb_ask_is_on(void)
{
    return atomic_load_explicit(&gpb_option_watched, memory_order_relaxed) && gpb_ask_here();
}
/* The answer for a product; of: what larger call it stands for, or NULL. */
void gpb_ask_product(const gpb_call *call, const char *of);
/* TRSM and TRMM: their largest product. */
void gpb_ask_triangular(const gpb_triangular *t, int64_t leaf);
/* The facts as they would be with all operands in device memory. */
gpb_facts gpb_ask_on_device(const gpb_facts *facts);
/* One answer. plan: as decided; forced: with the GPU as the only choice; device_s: what that would take with
   all operands in device memory. */
void gpb_ask_answer(const gpb_call *call, const char *of, const gpb_facts *facts, const gpb_plan *plan,
                    const gpb_plan *forced, double device_s);

#endif
