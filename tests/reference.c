/* SPDX-License-Identifier: MIT */
/* The reference GEMM: products of floats are exact in double, their sum is off by k 2^-53 of it, far below any bound of ours. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference.h"

gpb_reference_element gpb_reference_at(const gpb_call *g, const float *c_before, int64_t i, int64_t j, int64_t l)
{
    const float *a = (const float *)g->x[GPB_A].base + l * g->x[GPB_A].stride,
        *b = (const float *)g->x[GPB_B].base + l * g->x[GPB_B].stride;
    gpb_reference_element e = { 0, 0, 0 };
    for (int64_t p = 0; g->alpha != 0 && p < g->k; p++) {
        double x = (double)(g->x[GPB_A].trans == 'N' ? a[i + p * g->x[GPB_A].ld] : a[p + i * g->x[GPB_A].ld]);
        double y = (double)(g->x[GPB_B].trans == 'N' ? b[p + j * g->x[GPB_B].ld] : b[j + p * g->x[GPB_B].ld]);
        e.value += x * y;
        e.product += fabs(x * y);
    }
    if (g->k > 0) {                                               /* k = 0: not even a NaN in alpha counts */
        e.value *= g->alpha;
        e.product *= fabs((double)g->alpha);
    }
    if (g->beta != 0) {
        double old = g->beta * (double)c_before[i + j * g->x[GPB_C].ld + l * g->x[GPB_C].stride];
        e.value += old;
        e.old = fabs(old);
    }
    return e;
}

double gpb_reference_bound(enum gpb_math math, const gpb_call *g, gpb_reference_element e)
{
    double u = ldexp(1, -24), k = (double)g->k;
    /* the last term: each rounding may also lose half of the smallest float */
    double bound = (k + 4) * u * e.product + 2 * u * e.old + (k + 4) * ldexp(fmax(1, fabs((double)g->alpha)),
                                                                             -149);
    return math == GPB_MATH_TF32 ? bound + ldexp(e.product, -9) : bound;
}

/* One result against the truth, in units of the bound. */
static double error_of(enum gpb_math math, const gpb_call *g, gpb_reference_element e, float c)
{
    double value = (double)c;
    if (isnan(e.value) || isinf(e.value))
        return isnan(e.value) ? (isnan(value) ? 0 : INFINITY) : value == e.value ? 0 : INFINITY;
    /* sums that may leave the range of a float on their way may end in an infinity, or in NaN */
    double peak = fmax(e.product, g->alpha != 0 ? e.product / fabs((double)g->alpha) : 0) + e.old;
    if (!isfinite(value))
        return peak >= (double)FLT_MAX ? 0 : INFINITY;
    return fabs(value - e.value) / gpb_reference_bound(math, g, e);
}

static bool inside(const gpb_call *g, int64_t i, int64_t j)
{
    return i < g->m && j < g->n && (g->x[GPB_C].uplo == 'U' ? i <= j : g->x[GPB_C].uplo == 'L' ? i >= j : true);
}

double gpb_reference_check(enum gpb_math math, const gpb_call *g, const float *c_before, size_t bytes)
{
    const float *c = g->x[GPB_C].base;
    double worst = 0;
    unsigned char *owned = calloc(bytes / sizeof *c + 1, 1);      /* floats that the call had to write */
    if (!owned)
        return INFINITY;
    for (int64_t l = 0; l < g->batch; l++)
        for (int64_t j = 0; j < g->n; j++)
            for (int64_t i = 0; i < g->m; i++) {
                int64_t at = i + j * g->x[GPB_C].ld + l * g->x[GPB_C].stride;
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

/* Rows of column j that the call writes. */
static void rows_of(const gpb_call *g, int64_t j, int64_t *first, int64_t *last)
{
    *first = g->x[GPB_C].uplo == 'L' && j < g->m ? j : g->x[GPB_C].uplo == 'L' ? g->m : 0;
    *last = g->x[GPB_C].uplo == 'U' && j + 1 < g->m ? j + 1 : g->m;
}

/* True if nothing between the blocks has changed, and all in them is finite. */
static bool is_whole(const gpb_call *g, const float *c_before, size_t bytes)
{
    const float *c = g->x[GPB_C].base;
    int64_t from = 0, first, last, end = (int64_t)(bytes / sizeof *c);
    for (int64_t l = 0; l < g->batch; l++)
        for (int64_t j = 0; j < g->n; j++) {
            rows_of(g, j, &first, &last);
            const int64_t at = j * g->x[GPB_C].ld + l * g->x[GPB_C].stride, gap = at + first - from;
            if (gap > 0 && memcmp(c + from, c_before + from, (size_t)gap * sizeof *c))
                return false;
            float sum = 0;                                        /* NaN if one of them is not finite */
            for (int64_t i = first; i < last; i++)
                sum += c[at + i] * 0;
            if (sum != 0)
                return false;
            from = at + last;
        }
    return from >= end || !memcmp(c + from, c_before + from, (size_t)(end - from) * sizeof *c);
}

double gpb_reference_sample(enum gpb_math math, const gpb_call *g, const float *c_before, size_t bytes, int64_t sample, uint64_t *state)
{
    const int64_t columns = g->n * g->batch;
    double worst = is_whole(g, c_before, bytes) ? 0 : INFINITY;
    for (int64_t x = 0, first, last; x < sample && columns > 0 && worst <= 1; x++) {
        const int64_t column = sample < columns ? (int64_t)gpb_reference_draw(state, (uint64_t)columns) : x % columns;
        const int64_t j = column % g->n, l = column / g->n;
        rows_of(g, j, &first, &last);
        if (first >= last)
            continue;
        const int64_t i = first + (int64_t)gpb_reference_draw(state, (uint64_t)(last - first));
        worst = fmax(worst, error_of(math, g, gpb_reference_at(g, c_before, i, j, l),
                                     ((const float *)g->x[GPB_C].base)[i + j * g->x[GPB_C].ld + l * g->x[GPB_C].stride]));
    }
    return worst;
}

static uint64_t next_random(uint64_t *state)                      /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint64_t gpb_reference_draw(uint64_t *state, uint64_t below) { return next_random(state) % below; }

void gpb_reference_fill(float *x, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        x[i] = (float)((double)(next_random(&seed) >> 40) / 8388608.0 - 1.0);
}
