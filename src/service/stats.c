/* SPDX-License-Identifier: MIT */
/* The counters; see stats.h. */
#include "src/service/stats.h"

#include <stdatomic.h>

static struct shard {
    _Alignas(128) _Atomic uint64_t on_host;
#define COUNT(field) _Atomic uint64_t field;
#define SUM(field) _Atomic double field;
#include "src/service/stats.def"
#undef COUNT
#undef SUM
} shards[GPB_STATS_SHARDS];

unsigned gpb_stats_shard(void)
{
    static _Thread_local unsigned own __attribute__((tls_model("initial-exec")));
    static atomic_uint threads;
    if (!own) own = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % GPB_STATS_SHARDS;
    return own - 1;
}

static struct shard *own_shard(void) { return &shards[gpb_stats_shard()]; }

/* stats.def and gpublas_stats_t must have the same fields with the same types. */
struct as_listed {
#define COUNT(field) uint64_t field;
#define SUM(field) double field;
#include "src/service/stats.def"
#undef COUNT
#undef SUM
};
#define AGREE(field, type)                                                                      \
    _Static_assert(offsetof(struct as_listed, field) == offsetof(gpublas_stats_t, field)        \
        && _Generic(((gpublas_stats_t *)0)->field, type: 1, default: 0),                        \
        "stats.def and gpublas_stats_t differ: " #field);
#define COUNT(field) AGREE(field, uint64_t)
#define SUM(field) AGREE(field, double)
#include "src/service/stats.def"
#undef COUNT
#undef SUM
_Static_assert(sizeof(struct as_listed) == sizeof(gpublas_stats_t),
               "stats.def lacks a field of gpublas_stats_t");

static void count(_Atomic uint64_t *total, uint64_t more)
{
    if (more) atomic_fetch_add_explicit(total, more, memory_order_relaxed);
}

static void sum(_Atomic double *total, double more)
{
    double old = atomic_load_explicit(total, memory_order_relaxed);
    if (more == 0) return;
    while (!atomic_compare_exchange_weak_explicit(total, &old, old + more, memory_order_relaxed,
                                                  memory_order_relaxed)) { }
}

void gpb_stats_add(const gpublas_stats_t *more)
{
    struct shard *own = own_shard();
#define COUNT(field) count(&own->field, more->field);
#define SUM(field) sum(&own->field, more->field);
#include "src/service/stats.def"
#undef COUNT
#undef SUM
}

void gpb_stats_host(void) { count(&own_shard()->on_host, 1); }

void gpb_stats_read(gpublas_stats_t *stats)
{
    *stats = (gpublas_stats_t){ 0 };
    for (int i = 0; i < GPB_STATS_SHARDS; i++) {
        const uint64_t on_host = atomic_load_explicit(&shards[i].on_host, memory_order_relaxed);
        stats->calls += on_host;
        stats->host_calls += on_host;
#define COUNT(field) stats->field += atomic_load_explicit(&shards[i].field, memory_order_relaxed);
#define SUM(field) COUNT(field)
#include "src/service/stats.def"
    }
#undef COUNT
#undef SUM
}
