/* SPDX-License-Identifier: MIT */
/* Cores; see cores.h. */
#include "src/service/cores.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "src/service/quota.h"

static atomic_int cores;                 /* 0: not found yet */

void gpb_cores_in_child(void) { atomic_store(&cores, 0); }

int gpb_cores_affinity(cpu_set_t *set)
{
    cpu_set_t mine;
    int count = sched_getaffinity(getpid(), sizeof *set, set) == 0 ? CPU_COUNT(set) : 0;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0 || CPU_COUNT(&mine) <= count) return count;
    *set = mine;
    return CPU_COUNT(set);
}

int gpb_cores(void)
{
    int count = atomic_load_explicit(&cores, memory_order_relaxed);
    if (count) return count;
    cpu_set_t set;
    int cancel;
    /* Opening and reading files are cancellation points, but a BLAS call must not be one. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    const int granted = gpb_quota_cores("");
    pthread_setcancelstate(cancel, NULL);
    count = gpb_cores_affinity(&set);
    if (!count) count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (count > granted) count = granted;
    if (count < 1) count = 1;
    atomic_store_explicit(&cores, count, memory_order_relaxed);
    return count;
}
