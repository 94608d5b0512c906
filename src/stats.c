/* SPDX-License-Identifier: MIT */
/* The counters; see stats.h. */
#include "src/stats.h"

#include <stdatomic.h>

#define COUNT(field) static _Atomic uint64_t total_##field;
#define SUM(field) static _Atomic double total_##field;
#include "src/stats.def"
#undef COUNT
#undef SUM

/* stats.def and gpublas_stats_t name the same fields, all of them, with the same types. */
struct as_listed {
#define COUNT(field) uint64_t field;
#define SUM(field) double field;
#include "src/stats.def"
#undef COUNT
#undef SUM
};
#define AGREE(field, type)                                                                                              \
    _Static_assert(offsetof(struct as_listed, field) == offsetof(gpublas_stats_t, field)                                \
        && _Generic(((gpublas_stats_t *)0)->field, type: 1, default: 0), "stats.def and gpublas_stats_t differ: " #field);
#define COUNT(field) AGREE(field, uint64_t)
#define SUM(field) AGREE(field, double)
#include "src/stats.def"
#undef COUNT
#undef SUM
_Static_assert(sizeof(struct as_listed) == sizeof(gpublas_stats_t), "stats.def lacks a field of gpublas_stats_t");

static void count(_Atomic uint64_t *total, uint64_t more)
{
    if (more) atomic_fetch_add_explicit(total, more, memory_order_relaxed);
}

static void sum(_Atomic double *total, double more)
{
    double old = atomic_load_explicit(total, memory_order_relaxed);
    if (more == 0) return;
    while (!atomic_compare_exchange_weak_explicit(total, &old, old + more, memory_order_relaxed, memory_order_relaxed)) { }
}

void gpb_stats_add(const gpublas_stats_t *more)
{
#define COUNT(field) count(&total_##field, more->field);
#define SUM(field) sum(&total_##field, more->field);
#include "src/stats.def"
#undef COUNT
#undef SUM
}

void gpb_stats_read(gpublas_stats_t *stats)
{
#define COUNT(field) stats->field = atomic_load_explicit(&total_##field, memory_order_relaxed);
#define SUM(field) stats->field = atomic_load_explicit(&total_##field, memory_order_relaxed);
#include "src/stats.def"
#undef COUNT
#undef SUM
}
