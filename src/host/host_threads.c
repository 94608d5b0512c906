/* SPDX-License-Identifier: MIT */
/* The host's threads; see host_threads.h. */
#include "src/host/host_threads.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/host/objects.h"
#include "src/host/probe.h"

/* BLIS returns 64 bits, of which the lower 32 are read. */
typedef int get_threads(void);
typedef void set_threads(int);

/* Of one host BLAS; NULL: it does not say, cannot be told. */
typedef struct functions {
    union { void *address; get_threads *call; } get;
    union { void *address; set_threads *call; } set;
} functions;

/* Those of the hosts that were found, each once, and of the last one. Programs have few: NumPy's wheel brings
   one and SciPy's another. A host is complete when it is listed. */
enum { HOSTS = 16 };
static functions hosts[HOSTS];
static _Atomic(const functions *) listed[HOSTS], here = hosts;
static atomic_int lowered;               /* 0, or the number that gpb_host_threads_lower has set, */
static int lowered_from[HOSTS];          /* of hosts that had so many; 0: of this one it was not set */
static atomic_bool orphaned;             /* it was lowered in the process that has forked this one */

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

void gpb_host_threads_find(const void *routine)
{
    static const struct { const char *get, *set, *parallel; } names[] = {
#define OPENBLAS(before, after)                                                                       \
    { before "openblas_get_num_threads" after, before "openblas_set_num_threads" after,               \
      before "openblas_get_parallel" after }
        OPENBLAS("", ""), OPENBLAS("", "64_"), OPENBLAS("scipy_", ""), OPENBLAS("scipy_", "64_"),
#undef OPENBLAS
        { "MKL_Get_Max_Threads", NULL, NULL }, { "bli_thread_get_num_threads", NULL, NULL } };
    static atomic_int count;
    functions its = { 0 };
    const functions *known;
    if (!routine && !gpb_host_threads()) its.get.call = one_thread;
    void *handle = routine ? gpb_objects_holding(routine) : NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && handle && !its.get.address; i++) {
        its.get.address = gpb_probe_lookup(handle, names[i].get);
        if (its.get.address && has_own_threads(handle, names[i].parallel))
            its.set.address = gpb_probe_lookup(handle, names[i].set);
    }
    if (handle) dlclose(handle);
    if (!its.get.address) return;
    for (int i = 1; i < HOSTS; i++)
        if ((known = atomic_load(&listed[i])) && known->get.address == its.get.address) {
            atomic_store(&here, known);
            return;
        }
    const int at = atomic_fetch_add(&count, 1) + 1;
    if (at >= HOSTS) return;
    hosts[at] = its;
    atomic_store(&listed[at], &hosts[at]);
    atomic_store(&here, &hosts[at]);
}

static int threads_of(const functions *host)
{
    const int count = host->get.address ? host->get.call() : 0;
    return host->get.address && count < 1 ? 1 : count;
}

int gpb_host_threads(void) { return threads_of(atomic_load_explicit(&here, memory_order_acquire)); }

bool gpb_host_threads_settable(void)
{
    return atomic_load_explicit(&here, memory_order_acquire)->set.address;
}

/* Of all hosts, because which one serves this call is not known here. */
int gpb_host_threads_lower(int most)
{
    int none = 0, largest = 0;
    most = most < 1 ? 1 : most;
    if (!gpb_host_threads_settable() || gpb_host_threads() <= most) return 0;
    if (!atomic_compare_exchange_strong(&lowered, &none, most)) return 0;
    for (int i = 1; i < HOSTS; i++) {
        const functions *host = atomic_load_explicit(&listed[i], memory_order_acquire);
        const int threads = host && host->set.address ? threads_of(host) : 0;
        lowered_from[i] = threads > most ? threads : 0;
        if (threads > most) host->set.call(most);
        if (lowered_from[i] > largest) largest = lowered_from[i];
    }
    if (!largest) atomic_store(&lowered, 0);
    return largest;
}

/* If the program has set another number meanwhile, that stays. */
void gpb_host_threads_restore(void)
{
    const int to = atomic_load(&lowered);
    for (int i = 1; i < HOSTS; i++) {
        const functions *host = lowered_from[i] ? atomic_load(&listed[i]) : NULL;
        if (host && threads_of(host) == to) host->set.call(lowered_from[i]);
    }
    atomic_store(&lowered, 0);
}

void gpb_host_threads_in_child(void) { atomic_store(&orphaned, atomic_load(&lowered) > 0); }

void gpb_host_threads_recover(void)
{
    if (atomic_load_explicit(&orphaned, memory_order_relaxed) && atomic_exchange(&orphaned, false))
        gpb_host_threads_restore();
}
