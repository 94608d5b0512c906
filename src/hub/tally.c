/* SPDX-License-Identifier: MIT */
/* What the report adds up; see tally.h. Hash tables in static memory, one for each of stats.h's shards, so
   that threads seldom share a cache line. Pages that no call comes to take no memory. */
#include "src/hub/tally.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "dispatch/numbers.h"
#include "src/service/option.h"
#include "src/service/stats.h"

/* A program has a few dozen kinds of calls. The last row has what found no other. */
enum { ROWS = 256, ALL_ROWS = GPB_STATS_SHARDS * (ROWS + 1), ELONGATED = 8 };

static struct row {
    _Alignas(128) _Atomic uint64_t key;      /* of the kind; 0: the row is free */
    gpb_tally_kind kind;                     /* to be read once `named` is set */
    atomic_bool named;
#define AMOUNT(field, name) _Atomic double field;
#include "src/hub/tally.def"
#undef AMOUNT
} rows[ALL_ROWS];

/* The exponent of a double, because log2 is in libm. */
static int octave_of(double product)
{
    uint64_t bits;
    memcpy(&bits, &product, sizeof bits);
    return ((int)(bits >> 52) - 1023) / 3;
}

static gpb_tally_kind kind_of(const gpb_call *g, const char *why)
{
    const int64_t k = max(g->k, 1), least = min(min(g->m, g->n), k), most = max(max(g->m, g->n), k);
    const bool elongated = least < most / ELONGATED;
    return (gpb_tally_kind){
        .symbol = g->symbol, .why = why, .type = gpb_type_of(g->type)->letter,
        .form = !elongated ? GPB_TALLY_SQUARE : least == k ? GPB_TALLY_SMALL_K : GPB_TALLY_THIN,
        .octave = octave_of((double)g->m * (double)g->n * (double)k) };
}

/* Two kinds with one key would be added up as one. That is less likely than a flipped bit. */
static uint64_t key_of(const gpb_tally_kind *kind)
{
    const uint64_t shape = (uint64_t)kind->octave * 4 + kind->form;
    uint64_t key = ((uintptr_t)kind->symbol + (shape << 48)) * UINT64_C(0x9e3779b97f4a7c15);
    key = (key ^ key >> 32 ^ (uintptr_t)kind->why) * UINT64_C(0xd6e8feb86659fd93);
    return (key ^ key >> 32) | 1;
}

static struct row *row_of(const gpb_tally_kind *kind)
{
    struct row *own = &rows[gpb_stats_shard() * (ROWS + 1)];
    const uint64_t key = key_of(kind);
    for (unsigned i = 0; i < ROWS; i++) {
        struct row *row = &own[(key + i) % ROWS];
        uint64_t there = atomic_load_explicit(&row->key, memory_order_relaxed);
        if (there == key) return row;
        if (there || !atomic_compare_exchange_strong(&row->key, &there, key)) {
            if (there == key) return row;
            continue;
        }
        row->kind = *kind;
        atomic_store_explicit(&row->named, true, memory_order_release);
        return row;
    }
    return &own[ROWS];
}

static void sum(_Atomic double *total, double more)
{
    double old = atomic_load_explicit(total, memory_order_relaxed);
    if (more == 0) return;
    while (!atomic_compare_exchange_weak_explicit(total, &old, old + more, memory_order_relaxed,
                                                  memory_order_relaxed)) { }
}

void gpb_tally_add(const gpb_call *call, const char *why, const gpb_tally *amounts)
{
    const gpb_tally_kind kind = kind_of(call, why);
    struct row *row = row_of(&kind);
#define AMOUNT(field, name) sum(&row->field, amounts->field);
#include "src/hub/tally.def"
#undef AMOUNT
    gpb_stats_add(&(gpublas_stats_t){ .host_seconds = amounts->host_s, .saved_seconds = amounts->saved_s,
                                      .missed_seconds = amounts->missed_s });
}

/* A row without a name is the last one, or a thread is naming it now. */
void gpb_tally_read(void (*take)(void *into, const gpb_tally_kind *kind, const gpb_tally *amounts),
                    void *into)
{
    static const gpb_tally_kind others;
    for (struct row *row = rows; row < rows + ALL_ROWS; row++) {
        const gpb_tally amounts = {
#define AMOUNT(field, name) .field = atomic_load_explicit(&row->field, memory_order_relaxed),
#include "src/hub/tally.def"
#undef AMOUNT
        };
        if (amounts.on_gpu + amounts.on_host + amounts.failed == 0) continue;
        take(into, atomic_load_explicit(&row->named, memory_order_acquire) ? &row->kind : &others, &amounts);
    }
}

/* Rows that were never used are only read, because a page that is written takes memory. */
void gpb_tally_in_child(void)
{
    for (int i = 0; gpb_option_reports() && i < ALL_ROWS; i++)
        if (atomic_load(&rows[i].key) || i % (ROWS + 1) == ROWS) memset((void *)&rows[i], 0, sizeof rows[i]);
}
