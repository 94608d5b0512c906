/* SPDX-License-Identifier: MIT */
/* The reference GEMM: products of floats are exact in double, their sum is off by k 2^-53 of it, far below any bound of ours. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference.h"

gpb_reference_element gpb_reference_at(const gpb_call *g, const float *c_before, int64_t i, int64_t j, int64_t l)
{
    const float *a = (const float *)g->a + l * g->stride_a, *b = (const float *)g->b + l * g->stride_b;
    gpb_reference_element e = { 0, 0, 0 };
    for (int64_t p = 0; g->alpha != 0 && p < g->k; p++) {
        double x = (double)(g->transa == 'N' ? a[i + p * g->lda] : a[p + i * g->lda]);
        double y = (double)(g->transb == 'N' ? b[p + j * g->ldb] : b[j + p * g->ldb]);
        e.value += x * y;
        e.product += fabs(x * y);
    }
    if (g->k > 0) {                                               /* k = 0: not even a NaN in alpha counts */
        e.value *= g->alpha;
        e.product *= fabs(g->alpha);
    }
    if (g->beta != 0) {
        double old = g->beta * (double)c_before[i + j * g->ldc + l * g->stride_c];
        e.value += old;
        e.old = fabs(old);
    }
    return e;
}

double gpb_reference_bound(enum gpb_math math, const gpb_call *g, gpb_reference_element e)
{
    double u = ldexp(1, -24), k = (double)g->k;
    /* the last term: each rounding may also lose half of the smallest float */
    double bound = (k + 4) * u * e.product + 2 * u * e.old + (k + 4) * ldexp(fmax(1, fabs(g->alpha)), -149);
    return math == GPB_MATH_TF32 ? bound + ldexp(e.product, -9) : bound;
}

/* One result against the truth, in units of the bound. */
static double error_of(enum gpb_math math, const gpb_call *g, gpb_reference_element e, float c)
{
    double value = (double)c;
    if (isnan(e.value) || isinf(e.value))
        return isnan(e.value) ? (isnan(value) ? 0 : INFINITY) : value == e.value ? 0 : INFINITY;
    /* sums that may leave the range of a float on their way may end in an infinity, or in NaN */
    double peak = fmax(e.product, g->alpha != 0 ? e.product / fabs(g->alpha) : 0) + e.old;
    if (!isfinite(value))
        return peak >= (double)FLT_MAX ? 0 : INFINITY;
    return fabs(value - e.value) / gpb_reference_bound(math, g, e);
}

static bool inside(const gpb_call *g, int64_t i, int64_t j)
{
    return i < g->m && j < g->n && (g->uplo == 'U' ? i <= j : g->uplo == 'L' ? i >= j : true);
}

double gpb_reference_check(enum gpb_math math, const gpb_call *g, const float *c_before, size_t bytes)
{
    const float *c = g->c;
    double worst = 0;
    unsigned char *owned = calloc(bytes / sizeof *c + 1, 1);      /* floats that the call had to write */
    if (!owned)
        return INFINITY;
    for (int64_t l = 0; l < g->batch; l++)
        for (int64_t j = 0; j < g->n; j++)
            for (int64_t i = 0; i < g->m; i++) {
                int64_t at = i + j * g->ldc + l * g->stride_c;
                if (!inside(g, i, j))
                    continue;
                owned[at] = 1;
                worst = fmax(worst, error_of(math, g, gpb_reference_at(g, c_before, i, j, l), c[at]));
            }
    for (size_t at = 0; at < bytes / sizeof *c; at++)
        if (!owned[at] && memcmp(&c[at], &c_before[at], sizeof *c))
            worst = INFINITY;
    free(owned);
    return worst;
}

void gpb_reference_fill(float *x, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) {                          /* splitmix64 */
        uint64_t z = seed += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        x[i] = (float)((double)((z ^ z >> 31) >> 40) / 8388608.0 - 1.0);
    }
}
