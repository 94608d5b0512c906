/* SPDX-License-Identifier: MIT */
/* The sums of SLICED kernels as tensor cores form them (FAKECUDA_TENSOR): which products, in which order, and
   when sums leave the tensor cores, as in kernels/sliced/gemm.cuh and mma.cuh; where k is cut, as in
   work.cuh. */
#include <math.h>
#include <string.h>

#include "tests/fakecuda/fakecuda.h"

/* GROUP: rows of pairs that work.cuh goes through together. */
enum { FP16_LEAST = -14, BF16_LEAST = -126, GROUP = 8 };

/* One block at a time, because the gate's mutex is held while kernels run. */
static gpb_fake_terms terms_a[3], terms_b[3];
static gpb_fake_sums part, low, whole;

typedef struct block {
    const gpb_fake_slices *of;
    int64_t i0, j0;
    int rows, columns;
    gpb_fake_cores cores;
    bool full;                           /* low times low counts, too */
} block;

/* Rows are filled up to 8. */
static void load(gpb_fake_terms *to, const gpb_fake_sliced *x, int64_t row, int rows, int64_t chunk)
{
    for (int s = 0; s < x->slices; s++)
        for (int i = 0; i < (rows + 7) / 8 * 8; i++)
            for (int p = 0; p < GPB_SLICE_CHUNK; p += 8) {
                float piece[8] = { 0 };
                if (i < rows)
                    gpb_fake_slice(x, row + i, chunk * GPB_SLICE_CHUNK + p, s, piece);
                for (int q = 0; q < 8; q++)
                    gpb_fake_term(&to[s], p + q, i, piece[q], x->slices == 3 ? BF16_LEAST : FP16_LEAST);
            }
}

/* Slice s of A times slice t of B, 16 k from p on. */
static void add(gpb_fake_sums to, const block *x, int s, int t, int p)
{
    for (int q = p; q < p + 16; q += x->cores.terms)
        gpb_fake_cores_add(to, &terms_a[s], &terms_b[t], q, x->cores, x->rows, x->columns);
}

static void promote(gpb_fake_sums to, const gpb_fake_sums from, const block *x)
{
    for (int i = 0; i < x->rows; i++)
        for (int j = 0; j < x->columns; j++)
            to[i][j] += from[i][j];
}

static void clear(gpb_fake_sums what, const block *x)
{
    for (int i = 0; i < x->rows; i++)
        memset(what[i], 0, sizeof what[i]);
}

static void add_low(gpb_fake_sums to, const block *x)
{
    for (int i = 0; i < x->rows; i++)
        for (int j = 0; j < x->columns; j++)
            to[i][j] = fmaf(low[i][j], 0x1p-11f, to[i][j]);
}

/* xh yh of a chunk, and the two products that count 2^-11 of it. */
static void add_chunk(const block *x)
{
    for (int p = 0; p < GPB_SLICE_CHUNK; p += 16) {
        add(part, x, 0, 0, p);
        add(low, x, 1, 0, p);
        add(low, x, 0, 1, p);
    }
}

/* low += xl yl / 2^11 of a chunk. */
static void add_low_low(const block *x)
{
    static gpb_fake_sums both;
    clear(both, x);
    for (int p = 0; p < GPB_SLICE_CHUNK; p += 16)
        add(both, x, 1, 1, p);
    for (int i = 0; i < x->rows; i++)
        for (int j = 0; j < x->columns; j++)
            low[i][j] = fmaf(both[i][j], 0x1p-11f, low[i][j]);
}

static void sum_two(gpb_fake_sums to, const block *x, int64_t from, int64_t end, int64_t most)
{
    for (int64_t chunk = from; chunk < end; chunk++) {
        load(terms_a, x->of->a, x->i0, x->rows, chunk);
        load(terms_b, x->of->b, x->j0, x->columns, chunk);
        if (x->full)
            add_low_low(x);
        add_chunk(x);
        if (!x->full && (chunk - from + 1) % most && chunk < end - 1)
            continue;
        promote(to, part, x);
        clear(part, x);
    }
    add_low(to, x);
}

/* mma.sync: both sums of every chunk are promoted, together. */
static void sum_two_by_chunks(gpb_fake_sums to, const block *x, int64_t chunks)
{
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        load(terms_a, x->of->a, x->i0, x->rows, chunk);
        load(terms_b, x->of->b, x->j0, x->columns, chunk);
        add_chunk(x);
        if (x->full)
            add_low_low(x);
        add_low(part, x);
        promote(to, part, x);
        clear(part, x);
        clear(low, x);
    }
}

static void sum_one(gpb_fake_sums to, const block *x, int64_t from, int64_t end)
{
    for (int64_t chunk = from; chunk < end; chunk++) {
        load(terms_a, x->of->a, x->i0, x->rows, chunk);
        load(terms_b, x->of->b, x->j0, x->columns, chunk);
        for (int p = 0; p < GPB_SLICE_CHUNK; p += 16)
            add(to, x, 0, 0, p);
    }
}

static void sum_three(gpb_fake_sums to, const block *x, int64_t from, int64_t end)
{
    static const int of_a[6] = { 0, 2, 1, 1, 0, 0 }, of_b[6] = { 2, 0, 1, 0, 1, 0 };
    for (int64_t chunk = from; chunk < end; chunk++) {
        load(terms_a, x->of->a, x->i0, x->rows, chunk);
        load(terms_b, x->of->b, x->j0, x->columns, chunk);
        for (int z = 0; z < 12; z++)
            add(part, x, of_a[z / 2], of_b[z / 2], z % 2 * 16);
        promote(to, part, x);
        clear(part, x);
    }
}

/* The chunks [from, end) of k, to `to`. */
static void sum_chunks(gpb_fake_sums to, const block *x, int64_t from, int64_t end)
{
    const gpb_gemm_args *g = x->of->g;
    const int forced = gpb_fake_options_get()->tensor, slices = x->of->a->slices;
    clear(to, x);
    clear(part, x);
    clear(low, x);
    if (slices == 3)
        sum_three(to, x, from, end);
    else if (slices == 1)
        sum_one(to, x, from, end);
    else
        sum_two(to, x, from, end,
                forced > 1 ? (uint32_t)forced : gpb_sliced_promotion_chunks(g->m, g->n, g->k));
}

/* The number of parts that the k of the tile at i0, j0 is cut into; numbered as in work.cuh. */
static uint32_t parts_of(const gpb_fake_slices *x, int64_t i0, int64_t j0)
{
    const int bm = gpb_fake_sliced_bm(x->kernel);
    const int64_t tiles_n = (x->g->n + x->kernel->bn - 1) / x->kernel->bn,
                  pairs = ((x->g->m + bm - 1) / bm + 1) / 2;
    const int64_t units = pairs * tiles_n * x->g->batch, full = units / GPB_FAKE_CLUSTERS * GPB_FAKE_CLUSTERS;
    const int64_t pair = i0 / bm / 2, first = pair / GROUP * GROUP,
                  height = pairs - first < GROUP ? pairs - first : GROUP;
    const int64_t unit = x->member * pairs * tiles_n + first * tiles_n + j0 / x->kernel->bn * height + pair
                         - first;
    return unit < full ? 1
                       : gpb_sliced_tail_parts((uint32_t)(units - full), GPB_FAKE_CLUSTERS,
                                               (uint32_t)gpb_sliced_chunks(x->g->k), x->a->slices);
}

static void sum_tile(const block *x, gpb_fake_sums to)
{
    const int64_t chunks = gpb_sliced_chunks(x->of->g->k), parts = parts_of(x->of, x->i0, x->j0);
    sum_chunks(to, x, 0, chunks / parts);
    for (int64_t y = 1; y < parts; y++) {
        sum_chunks(whole, x, chunks * y / parts, chunks * (y + 1) / parts);
        promote(to, whole, x);
    }
}

/* 16 terms at once and 25 bits on Hopper, 8 and 24 before it. */
static gpb_fake_cores cores_now(void)
{
    return gpb_fake_options_get()->arch >= 90 ? (gpb_fake_cores){ 16, 25 } : (gpb_fake_cores){ 8, 24 };
}

/* True if both guard words of the block say that low times low counts. */
static bool is_full(const gpb_fake_slices *of, int64_t i0, int64_t j0)
{
    const gpb_gemm_args *g = of->g;
    const CUdeviceptr down = (CUdeviceptr)(g->guard_a + of->member * g->stride_guard_a + i0 / GPB_GUARD);
    const CUdeviceptr across = (CUdeviceptr)(g->guard_b + of->member * g->stride_guard_b + j0 / GPB_GUARD);
    return of->a->slices == 2
           && gpb_guard_full(*(uint64_t *)gpb_fake_translate(of->device, down, 0, 8, of->kernel->symbol),
                             g->epoch_a)
           && gpb_guard_full(*(uint64_t *)gpb_fake_translate(of->device, across, 0, 8, of->kernel->symbol),
                             g->epoch_b);
}

void gpb_fake_slices_sum(const gpb_fake_slices *of, int64_t i0, int rows, int64_t j0, int columns,
                         gpb_fake_sums sums)
{
    static gpb_fake_sums tile;
    const bool clusters = gpb_fake_sliced_bm(of->kernel) == GPB_GUARD && of->kernel->threads == 384;
    for (int at = 0; at < columns; at += of->kernel->bn) {
        const block x = { of, i0, j0 + at, rows,
                          columns - at < of->kernel->bn ? columns - at : of->kernel->bn, cores_now(),
                          is_full(of, i0, j0) };
        if (clusters) {
            sum_tile(&x, tile);
        } else {
            clear(tile, &x);
            clear(part, &x);
            clear(low, &x);
            sum_two_by_chunks(tile, &x, gpb_sliced_chunks(of->g->k));
        }
        for (int i = 0; i < rows; i++)
            memcpy(sums[i] + at, tile[i], sizeof(float) * (size_t)x.columns);
    }
}
