/* SPDX-License-Identifier: MIT */
/* gpb_?residues, the RESIDUES kernels and gpb_?combine, by kernels/residues.h: exponents, guard words and all
   sizes as there. But where planes lie are the integers themselves, which have room there, and C is summed
   from them. (tests/emulate has residues.) */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/residues.h"
#include "tests/fakecuda/fakecuda.h"

/* One member of an operand. */
typedef struct residues {
    const char *who;
    int reals, is_a;                     /* real numbers of an element */
    int64_t rows, k;
    char *at;
} residues;

static int64_t *number_at(const residues *x, int64_t i, int64_t p)
{
    return (int64_t *)x->at + (i * x->k + p) * x->reals;
}

static int32_t *exponents_of(const residues *x)
{
    return (int32_t *)(x->at + gpb_residue_exponents(x->reals == 2, x->is_a, x->rows, x->k));
}

/* How many of a row's real numbers are at least that large. */
static int64_t count(const double *row, int64_t reals, double least)
{
    int64_t many = 0;
    for (int64_t x = 0; x < reals; x++) many += fabs(row[x]) >= least;
    return many;
}

/* True if the row's sums are as accurate as those of FMAs: kernels/residues/quantize.cuh. */
static bool is_plain(const double *row, int64_t reals, double top, double norm)
{
    double most = 0;
    if (top == 0)
        return true;
    if (!isfinite(norm) || top >= ldexp(1, GPB_RESIDUE_REACH + 1) || top < ldexp(1, -GPB_RESIDUE_REACH))
        return false;
    for (int x = 0; x < GPB_RESIDUE_THETAS; x++) {
        const double theta = gpb_residue_theta(x);
        const double f = (double)count(row, reals, theta * norm / sqrt((double)reals)) / (double)reals;
        most = fmax(most, (2 * f - 1) * theta * theta);
    }
    return most * GPB_RESIDUE_KAPPA * sqrt((double)reals) >= 1.001;
}

/* Makes row i of its real numbers. Returns false if it is to be marked. */
static bool make_row(const residues *to, int64_t i, const double *row)
{
    const int64_t reals = to->reals * to->k;
    double square = 0, top = 0;
    int exponent = 0;
    for (int64_t x = 0; x < reals; x++) {
        square += row[x] * row[x];
        top = isnan(row[x]) ? row[x] : fmax(top, fabs(row[x]));
    }
    const double norm = sqrt(square);
    const bool plain = is_plain(row, reals, isnan(norm) ? INFINITY : top, norm);
    if (plain && norm > 0) {
        const double fraction = frexp(norm, &exponent);
        exponent = (fraction * 0x1p59 <= GPB_RESIDUE_LIMIT ? 59 : 58) - exponent;
    }
    exponents_of(to)[i] = -exponent;
    for (int64_t x = 0; x < reals; x++)
        number_at(to, i, 0)[x] = plain ? llrint(ldexp(row[x], exponent)) : INT64_MIN;
    return plain;
}

/* One operand of a launch of gpb_?residues. */
typedef struct making {
    const gpb_fake_kernel *kernel;
    int device;
    const gpb_slice_args *g;
    const gpb_slice_operand *x;
    bool conj;
} making;

static void make_member(const making *m, const double *from, const residues *to)
{
    uint64_t *guard = (uint64_t *)(to->at + gpb_residue_guard(to->reals == 2, to->is_a, to->rows, to->k));
    double *row = malloc(sizeof *row * (size_t)(to->reals * to->k));
    if (!row)
        gpb_fake_die("no memory");
    for (int64_t i = 0; i < to->rows; i++) {
        for (int64_t p = 0; p < to->k; p++)
            for (int part = 0; part < to->reals; part++) {
                const double x = from[(i * m->x->rs + p * m->x->cs) * to->reals + part];
                row[p * to->reals + part] = part && m->conj ? -x : x;
            }
        if (make_row(to, i, row))
            continue;
        guard[i / gpb_residue_guard_rows(to->reals == 2, to->is_a)]
            = gpb_guard_word(GPB_MARK_EXTREME, m->x->epoch);
        if (m->g->flagged)
            *(uint32_t *)gpb_fake_translate(m->device, (CUdeviceptr)m->g->flagged, 0, 4, to->who) = 1;
    }
    free(row);
}

static void make_operand(const making *m, bool is_a)
{
    const gpb_slice_operand *x = m->x;
    const gpb_slice_args *g = m->g;
    const char *who = m->kernel->symbol;
    const int is_complex = gpb_fake_is_complex(m->kernel);
    const int64_t bytes = gpb_residue_bytes(is_complex, is_a, x->rows, g->k);
    const void *const *items = gpb_fake_table_at(m->device, x->src_items,
                                                 g->batch * (int64_t)sizeof *items, who);
    if (!x->epoch || (CUdeviceptr)x->dst % 1024 || g->k > GPB_RESIDUE_MAX_K)
        gpb_fake_die("BAD LAUNCH of %s: epoch %llu, to %p, k=%lld", who, (unsigned long long)x->epoch, x->dst,
                     (long long)g->k);
    for (int64_t l = 0; l < g->batch; l++) {
        const CUdeviceptr at = items ? (CUdeviceptr)items[l]
                                     : (CUdeviceptr)x->src
                                           + (CUdeviceptr)(l * x->stride) * gpb_type_bytes(m->kernel->type);
        const residues to = { who, 1 + is_complex, is_a, x->rows, g->k,
                              gpb_fake_translate(m->device, (CUdeviceptr)x->dst + (CUdeviceptr)(l * bytes), 0,
                                                 bytes, who) };
        make_member(m, gpb_fake_matrix_at(m->device, m->kernel->type, at, x->rows, g->k, x->rs, x->cs, who),
                    &to);
    }
}

void gpb_fake_residues(const gpb_fake_kernel *kernel, int device, const gpb_slice_args *g)
{
    if (g->slices != gpb_residue_planes(gpb_fake_is_complex(kernel)))
        gpb_fake_die("BAD LAUNCH of %s: %d planes", kernel->symbol, g->slices);
    if (g->a.rows)
        make_operand(&(making){ kernel, device, g, &g->a, g->conj_a != 0 }, true);
    if (g->b.rows)
        make_operand(&(making){ kernel, device, g, &g->b, g->conj_b != 0 }, false);
}

/* ---- the product and C */

/* The room for the residues of C. */
static char *product_at(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g, int64_t *bytes)
{
    *bytes = g->batch * gpb_residue_product_bytes(gpb_fake_is_complex(kernel), g->uplo, g->m, g->n);
    return gpb_fake_translate(device, (CUdeviceptr)g->partials, 0, *bytes, kernel->symbol);
}

enum { THERE = 0x5A, GONE = 0xFF };

/* Leaves a sign that there are residues. */
void gpb_fake_residues_gemm(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g)
{
    int64_t bytes;
    char *at = product_at(kernel, device, g, &bytes);
    if (g->splits > 1 || g->level)
        gpb_fake_die("BAD LAUNCH of %s: %lld parts of k, level %d", kernel->symbol, (long long)g->splits,
                     g->level);
    memset(at, THERE, 64);
    memset(at + bytes - 64, THERE, 64);
}

/* An operand's member, checked to be where it must be. */
static residues operand_at(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g, bool is_a,
                           int64_t l)
{
    const int is_complex = gpb_fake_is_complex(kernel);
    residues x = { kernel->symbol, 1 + is_complex, is_a, is_a ? g->m : g->n, g->k, NULL };
    const CUdeviceptr at = (CUdeviceptr)(is_a ? g->a : g->b),
                      guard = (CUdeviceptr)(is_a ? g->guard_a : g->guard_b);
    const int64_t stride = is_a ? g->stride_a : g->stride_b,
                  stride_guard = is_a ? g->stride_guard_a : g->stride_guard_b;
    const int64_t bytes = gpb_residue_bytes(is_complex, is_a, x.rows, x.k);
    if (at % 1024 || (stride * 4 != bytes && stride) || stride_guard * 8 != stride * 4
        || guard != at + (CUdeviceptr)gpb_residue_guard(is_complex, is_a, x.rows, x.k))
        gpb_fake_die("BAD LAUNCH of %s: operand at %#llx, guard words at %#llx, strides %lld, %lld",
                     kernel->symbol, at, guard, (long long)stride, (long long)stride_guard);
    x.at = gpb_fake_translate(device, at + (CUdeviceptr)(l * stride * 4), 0, bytes, kernel->symbol);
    return x;
}

typedef struct product {
    const gpb_gemm_args *g;
    residues a, b;
    double *c;
} product;

/* x *= by, as Fortran multiplies. */
static void scale(double x[2], const double by[2], int reals)
{
    const double re = x[0], im = x[1];
    x[0] = reals == 2 ? by[0] * re - by[1] * im : by[0] * re;
    x[1] = by[0] * im + by[1] * re;
}

static void combine_entry(const product *x, int64_t i, int64_t j)
{
    const int reals = x->a.reals;
    const int64_t *a = number_at(&x->a, i, 0), *b = number_at(&x->b, j, 0);
    __int128 re = 0, im = 0;
    for (int64_t p = 0; p < x->g->k; p++, a += reals, b += reals) {
        re += (__int128)a[0] * b[0];
        if (reals == 2) {
            re -= (__int128)a[1] * b[1];
            im += (__int128)a[0] * b[1] + (__int128)a[1] * b[0];
        }
    }
    const int exponent = exponents_of(&x->a)[i] + exponents_of(&x->b)[j];
    double sum[2] = { ldexp((double)re, exponent), ldexp((double)im, exponent) };
    double *to = x->c + (i + j * x->g->ldc) * reals;
    double old[2] = { 0, 0 };
    if (!gpb_fake_has(x->g, i, j))
        return;
    scale(sum, x->g->alpha, reals);
    if (x->g->beta[0] != 0 || x->g->beta[1] != 0) {
        memcpy(old, to, sizeof *to * (size_t)reals);
        if (x->g->hermitian) {
            old[0] *= x->g->beta[0];
            old[1] *= x->g->beta[0];
        } else if (x->g->beta[0] != 1 || x->g->beta[1] != 0) {
            scale(old, x->g->beta, reals);
        }
        sum[0] += old[0];
        sum[1] += old[1];
    }
    if (x->g->hermitian && i == j)
        sum[1] = 0;
    memcpy(to, sum, sizeof *to * (size_t)reals);
}

static void combine_block(void *context, int64_t i0, int64_t rows, int64_t j0, int64_t columns)
{
    for (int64_t j = j0; j < j0 + columns; j++)
        for (int64_t i = i0; i < i0 + rows; i++) combine_entry(context, i, j);
}

void gpb_fake_combine(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g)
{
    int64_t bytes;
    char *at = product_at(kernel, device, g, &bytes);
    const gpb_gemm_item *items = gpb_fake_table_at(device, g->items, g->batch * (int64_t)sizeof *items,
                                                   kernel->symbol);
    for (int x = 0; x < 64; x++)
        if (at[x] != THERE || at[bytes - 1 - x] != THERE)
            gpb_fake_die("BAD LAUNCH of %s: no residues of C", kernel->symbol);
    for (int64_t l = 0; l < g->batch; l++) {
        const CUdeviceptr c = items ? (CUdeviceptr)items[l].c
                                    : (CUdeviceptr)g->c
                                          + (CUdeviceptr)(l * g->stride_c) * gpb_type_bytes(kernel->type);
        product x = { g, operand_at(kernel, device, g, true, l), operand_at(kernel, device, g, false, l),
                      gpb_fake_matrix_at(device, kernel->type, c, g->m, g->n, 1, g->ldc, kernel->symbol) };
        gpb_fake_each_block(kernel, device, g, l, combine_block, &x);
    }
    memset(at, GONE, 64);
    memset(at + bytes - 64, GONE, 64);
}
