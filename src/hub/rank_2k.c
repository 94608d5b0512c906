/* SPDX-License-Identifier: MIT */
/* SYR2K and HER2K as two products into the triangle: each is a call of its own, computed, learnt, finished
   after a failure and traced like any other. If the host is to compute the first, it computes all by its own
   function, because C is still the caller's. */
#include "src/hub/rank_2k.h"

#include "src/run/repair.h"

bool gpb_rank_2k_offload(const gpb_call *first, gpb_host_call *record)
{
    if (!gpb_offload(first, record)) {
        record->products = 2;                    /* the host computes both at once */
        record->host_s *= 2;
        record->gpu_s *= 2;
        record->modelled_s *= 2;
        return false;
    }
    const gpb_call second = gpb_call_second(first);
    gpb_host_call declined;
    if (gpb_offload(&second, &declined)) return true;
    gpb_repair_all(&second);
    gpb_offload_done(&declined);
    return true;
}
