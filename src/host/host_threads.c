/* SPDX-License-Identifier: MIT */
/* The host's threads; see host_threads.h. */
#include "src/host/host_threads.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "src/host/objects.h"
#include "src/host/probe.h"

/* BLIS returns 64 bits, of which the lower 32 are read. */
typedef int get_threads(void);
typedef void set_threads(int);

static _Atomic(get_threads *) get_here;
static _Atomic(set_threads *) set_here;
static atomic_int lowered;               /* 0, or the number that gpb_host_threads_leave_core has set */

static int one_thread(void) { return 1; }

/* OpenBLAS is told to use fewer threads only if it has threads of its own (1). Then the number is a plain
   variable. A build with OpenMP frees and makes buffers when it is set, perhaps beside another thread's
   call. */
static bool has_own_threads(void *handle, const char *parallel)
{
    union {
        void *address;
        get_threads *call;
    } kind = { parallel ? gpb_probe_lookup(handle, parallel) : NULL };
    return kind.address && kind.call() == 1;
}

void gpb_host_threads_find(const void *gemm)
{
    static const struct { const char *get, *set, *parallel; } names[] = {
#define OPENBLAS(before, after)                                                                       \
    { before "openblas_get_num_threads" after, before "openblas_set_num_threads" after,               \
      before "openblas_get_parallel" after }
        OPENBLAS("", ""), OPENBLAS("", "64_"), OPENBLAS("scipy_", ""), OPENBLAS("scipy_", "64_"),
#undef OPENBLAS
        { "MKL_Get_Max_Threads", NULL, NULL }, { "bli_thread_get_num_threads", NULL, NULL } };
    union { void *address; get_threads *call; } get = { NULL };
    union { void *address; set_threads *call; } set = { NULL };
    if (!gemm) get.call = one_thread;
    void *handle = gemm ? gpb_objects_holding(gemm) : NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && handle && !get.address; i++) {
        get.address = gpb_probe_lookup(handle, names[i].get);
        if (get.address && has_own_threads(handle, names[i].parallel))
            set.address = gpb_probe_lookup(handle, names[i].set);
    }
    if (handle) dlclose(handle);
    if (!get.call) return;
    atomic_store(&set_here, set.call);
    atomic_store(&get_here, get.call);
}

int gpb_host_threads(void)
{
    get_threads *get = atomic_load_explicit(&get_here, memory_order_acquire);
    const int count = get ? get() : 0;
    return get && count < 1 ? 1 : count;
}

bool gpb_host_threads_leave_core(int cores)
{
    set_threads *set = atomic_load_explicit(&set_here, memory_order_acquire);
    const int threads = set ? gpb_host_threads() : 0;
    int none = 0;
    if (threads < 2 || threads < cores || !atomic_compare_exchange_strong(&lowered, &none, threads - 1))
        return false;
    set(threads - 1);
    return true;
}

/* If the program has set another number meanwhile, that stays. */
void gpb_host_threads_take_core(void)
{
    const int threads = atomic_load(&lowered);
    if (gpb_host_threads() == threads) atomic_load(&set_here)(threads + 1);
    atomic_store(&lowered, 0);
}
