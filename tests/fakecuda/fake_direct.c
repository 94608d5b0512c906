/* SPDX-License-Identifier: MIT */
/* TF32X3 kernels as in kernels/sliced/direct.cuh (FAKECUDA_TENSOR): each operand as two TF32 numbers, three
   products, sums of 16 k. The kernel's `watch` checks piece by piece, this checks whole rows. If a tile
   has a row for which tensor cores are not accurate enough, FMAs compute it. */
#include <math.h>
#include <string.h>

#include "tests/fakecuda/fakecuda.h"

static const gpb_fake_cores TF32 = { 8, 25 };
/* WINDOW: elements within this many powers of two of a row's largest count. */
enum { FARTHEST = -100, LEAST = -126, WINDOW = 9 };

/* True if row i of x has enough elements that count, none that is tiny, and all are finite. */
static bool is_fit(gpb_fake_matrix x, int64_t i, int64_t k)
{
    float largest = 0, least = INFINITY;
    int many = 0;
    for (int64_t p = 0; p < k; p++) {
        const float size = fabsf(x.at[i * x.rs + p * x.cs]);
        if (!(size < INFINITY))
            return false;
        largest = fmaxf(largest, size);
        if (size != 0)
            least = fminf(least, size);
    }
    if (largest == 0)
        return true;
    const int top = ilogbf(largest);
    const float counts = ldexpf(1, top - WINDOW);
    for (int64_t p = 0; p < k; p++)
        many += fabsf(x.at[i * x.rs + p * x.cs]) >= counts;
    return top <= GPB_SLICE_REACH && top > -GPB_SLICE_REACH && least >= ldexpf(1, FARTHEST)
           && many >= GPB_SLICE_MIN_K;
}

/* True if row i is cut without a rest, and some of it into two numbers. Such a row may need the product of
   the small ones, which is not formed, for its sum to be exact. */
static bool is_whole(gpb_fake_matrix x, int64_t i, int64_t k)
{
    uint32_t all = 0;
    for (int64_t p = 0; p < k; p++) {
        uint32_t bits;
        memcpy(&bits, &x.at[i * x.rs + p * x.cs], sizeof bits);
        all |= bits;
    }
    return (all & 0x1fff) && !(all & 3);
}

static bool any_whole(gpb_fake_matrix x, int rows, int64_t k)
{
    for (int i = 0; i < rows; i++)
        if (is_whole(x, i, k))
            return true;
    return false;
}

static bool are_fit(gpb_fake_matrix x, int rows, int64_t k)
{
    for (int i = 0; i < rows; i++)
        if (!is_fit(x, i, k))
            return false;
    return true;
}

static float cut(float x)       /* tensor cores see 19 of the 32 bits */
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0xffffe000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Chunk p of x's rows: of[0] big, of[1] small. */
static void load(gpb_fake_terms of[2], gpb_fake_matrix x, int rows, int64_t p, int64_t k)
{
    for (int q = 0; q < GPB_SLICE_CHUNK; q++)
        for (int i = 0; i < (rows + 7) / 8 * 8; i++) {
            const float value = i < rows && p + q < k ? x.at[i * x.rs + (p + q) * x.cs] : 0;
            const float big = fmaf(value, -8192, fmaf(value, 8192, value));
            gpb_fake_term(&of[0], q, i, cut(big), LEAST);
            gpb_fake_term(&of[1], q, i, cut(value - big), LEAST);
        }
}

/* The products of the k of one sum from q on, small ones first. */
static void add_products(gpb_fake_sums sums, const gpb_fake_terms x[2], const gpb_fake_terms y[2], int q,
                         int rows, int columns)
{
    static gpb_fake_sums part;
    memset(part, 0, sizeof part);
    for (int s = q; s < q + GPB_DIRECT_SUM; s += TF32.terms) {
        gpb_fake_cores_add(part, &x[1], &y[0], s, TF32, rows, columns);
        gpb_fake_cores_add(part, &x[0], &y[1], s, TF32, rows, columns);
    }
    for (int s = q; s < q + GPB_DIRECT_SUM; s += TF32.terms)
        gpb_fake_cores_add(part, &x[0], &y[0], s, TF32, rows, columns);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            sums[i][j] += part[i][j];
}

static void put_aside(gpb_fake_sums to, gpb_fake_sums sums)
{
    for (size_t i = 0; i < sizeof(gpb_fake_sums) / sizeof *to; i++)
        for (size_t j = 0; j < sizeof *to / sizeof **to; j++) {
            to[i][j] += sums[i][j];
            sums[i][j] = 0;
        }
}

/* As kernels/sliced/direct.cuh has it: the first four chunks are looked at more closely, so sums are put
   aside four later. */
enum { SOON = 4 };

bool gpb_fake_direct(gpb_fake_sums sums, int rows, int columns, int64_t k, gpb_fake_matrix a,
                     gpb_fake_matrix b)
{
    static gpb_fake_terms x[2], y[2];
    static gpb_fake_sums kept;
    memset(sums, 0, sizeof(gpb_fake_sums));
    memset(kept, 0, sizeof kept);
    const gpb_fake_matrix across = { b.at, b.cs, b.rs };
    if (!are_fit(a, rows, k) || !are_fit(across, columns, k)
        || (any_whole(a, rows, k) && any_whole(across, columns, k)))
        return false;
    for (int64_t p = 0; p < k; p += GPB_SLICE_CHUNK) {
        const int64_t chunk = p / GPB_SLICE_CHUNK - SOON;
        if (chunk > 0 && chunk % GPB_DIRECT_BANK == 0)
            put_aside(kept, sums);
        load(x, a, rows, p, k);
        load(y, across, columns, p, k);
        for (int q = 0; q < GPB_SLICE_CHUNK; q += GPB_DIRECT_SUM)
            add_products(sums, x, y, q, rows, columns);
    }
    put_aside(kept, sums);
    memcpy(sums, kept, sizeof kept);
    return true;
}
