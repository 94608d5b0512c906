/* SPDX-License-Identifier: MIT */
/* See factor.h. */
#include "dispatch/factor.h"

#include <float.h>

#include "dispatch/halves.h"

bool gpb_factor_legal(const gpb_factor *f)
{
    return f->uplo && f->m >= 0 && f->n >= 0 && f->lda >= max(1, f->m);
}

bool gpb_system_legal(const gpb_system *s)
{
    return gpb_factor_legal(&s->a) && s->trans && s->nrhs >= 0 && s->ldb >= max(1, s->a.n);
}

bool gpb_condition_legal(const gpb_condition *c)
{
    return gpb_factor_legal(&c->factors) && c->norm && c->anorm > 0 && c->anorm <= DBL_MAX;
}

static void *element(const gpb_factor *f, int64_t row, int64_t col)
{
    return (char *)f->a + (row + col * f->lda) * (int64_t)gpb_type_bytes(f->type);
}

/* The letter of the conjugate transpose; of real types T, which is the same. */
static char adjoint(enum gpb_type type) { return gpb_type_is_complex(type) ? 'C' : 'T'; }

/* Divides the m x n block at b by the triangle at a, on that side of it. */
static gpb_triangular solve_with(const gpb_factor *f, const void *a, char side, char uplo, char trans,
                                 char diag, int64_t m, int64_t n, void *b, int64_t ldb)
{
    return (gpb_triangular){ .symbol = f->symbol, .solves = true, .type = f->type, .width = f->width,
                             .side = side, .uplo = uplo, .trans = trans, .diag = diag, .m = m, .n = n,
                             .alpha = 1, .a = a, .lda = f->lda, .b = b, .ldb = ldb };
}

/* C += alpha op(A) op(B), with blocks of the matrix. */
static gpb_call product_of(const gpb_factor *f, double alpha, const void *a, char transa, const void *b,
                           char transb, const gpb_factor *c, int64_t k)
{
    const bool gemm = c->uplo == 'G', herk = !gemm && gpb_type_is_complex(f->type);
    return (gpb_call){ .symbol = f->symbol, .routine = gemm ? GPB_ROUTINE_GEMM : GPB_ROUTINE_SYRK,
                       .type = f->type, .width = f->width, .m = c->m, .n = c->n, .k = k, .alpha = alpha,
                       .beta = 1, .batch = 1,
                       .x = { { .base = a, .ld = f->lda, .trans = transa },
                              { .base = b, .ld = f->lda, .trans = transb },
                              { .base = c->a, .ld = f->lda, .trans = 'N', .uplo = c->uplo,
                                .structure = gemm   ? GPB_GENERAL
                                             : herk ? GPB_HERMITIAN
                                                    : GPB_SYMMETRIC } } };
}

/* The blocks on the diagonal. */
static gpb_factor_halves blocks_of(const gpb_factor *f, int64_t half)
{
    gpb_factor_halves to = { .first = *f, .second = *f };
    to.first.n = half;
    to.second.m = f->m - half;
    to.second.n = f->n - half;
    to.second.a = element(f, half, half);
    if (!gpb_factor_is_lu(f)) to.first.m = half;
    else to.second.ipiv = (char *)f->ipiv + half * (f->width / 8);
    return to;
}

gpb_factor_halves gpb_factor_cut(const gpb_factor *f, int64_t half)
{
    gpb_factor_halves to = blocks_of(f, half);
    const int64_t rest = to.second.n;
    void *below = element(f, half, 0), *beside = element(f, 0, half);
    const char h = adjoint(f->type);
    switch (f->uplo) {
    case 'L':
        to.triangular = solve_with(f, f->a, 'R', 'L', h, 'N', rest, half, below, f->lda);
        to.product = product_of(f, -1, below, 'N', below, h, &to.second, half);
        break;
    case 'U':
        to.triangular = solve_with(f, f->a, 'L', 'U', h, 'N', half, rest, beside, f->lda);
        to.product = product_of(f, -1, beside, h, beside, 'N', &to.second, half);
        break;
    default:
        to.triangular = solve_with(f, f->a, 'L', 'L', 'N', 'U', half, rest, beside, f->lda);
        to.product = product_of(f, -1, below, 'N', beside, 'N', &to.second, half);
    }
    return to;
}

gpb_factor_halves gpb_factor_halve(const gpb_factor *f)
{
    return gpb_factor_cut(f, gpb_halves_first(gpb_factor_order(f)));
}

/* A block of the matrix as what a product is added to. */
static gpb_factor block(const gpb_factor *f, int64_t row, int64_t col, int64_t m, int64_t n)
{
    return (gpb_factor){ .uplo = 'G', .m = m, .n = n, .a = element(f, row, col) };
}

/* Triangle and the rest at once, up to this order: the operations that are too many take some 5 us of double
   on an H100, a launch 10. */
enum { TOGETHER = 512 };

gpb_factor_halves gpb_factor_halve_panel(const gpb_factor *f)
{
    const int64_t half = gpb_halves_first(f->n), rest = f->n - half, beyond = f->m - f->n;
    const bool lower = f->uplo == 'L', together = beyond > 0 && rest <= TOGETHER;
    const char h = adjoint(f->type), transa = lower ? 'N' : h, transb = lower ? h : 'N';
    gpb_factor_halves to = blocks_of(f, half);
    to.first.m = f->m;
    const void *in_triangle = lower ? element(f, half, 0) : element(f, 0, half),
               *behind = lower ? element(f, f->n, 0) : element(f, 0, f->n);
    if (together) {
        const gpb_factor all = lower ? block(f, half, half, rest + beyond, rest)
                                     : block(f, half, half, rest, rest + beyond);
        to.product = product_of(f, -1, in_triangle, transa, in_triangle, transb, &all, half);
        return to;
    }
    gpb_factor square = to.second;
    square.m = rest;
    to.product = product_of(f, -1, in_triangle, transa, in_triangle, transb, &square, half);
    if (beyond == 0) return to;
    const gpb_factor other = lower ? block(f, f->n, half, beyond, rest) : block(f, half, f->n, rest, beyond);
    to.beyond = product_of(f, -1, lower ? behind : in_triangle, transa, lower ? in_triangle : behind, transb,
                           &other, half);
    return to;
}

gpb_factor_halves gpb_factor_multiply_halve(const gpb_factor *f)
{
    gpb_factor_halves to = blocks_of(f, gpb_halves_first(gpb_factor_order(f)));
    const int64_t half = to.first.n, rest = to.second.n;
    const bool lower = f->uplo == 'L';
    void *block = lower ? element(f, half, 0) : element(f, 0, half);
    const char h = adjoint(f->type);
    to.product = product_of(f, 1, block, lower ? h : 'N', block, lower ? 'N' : h, &to.first, rest);
    to.triangular = solve_with(f, to.second.a, lower ? 'L' : 'R', f->uplo, h, 'N', lower ? rest : half,
                               lower ? half : rest, block, f->lda);
    to.triangular.solves = false;
    return to;
}

gpb_system_solves gpb_system_solve(const gpb_system *s)
{
    const gpb_factor *f = &s->a;
    const bool lu = gpb_factor_is_lu(f);
    const char h = adjoint(f->type), lower = lu ? 'L' : f->uplo, upper = lu ? 'U' : f->uplo;
    const gpb_triangular l = solve_with(f, f->a, 'L', lower, lu ? s->trans : f->uplo == 'L' ? 'N' : h,
                                        lu ? 'U' : 'N', f->n, s->nrhs, s->b, s->ldb);
    const gpb_triangular u = solve_with(f, f->a, 'L', upper, lu ? s->trans : f->uplo == 'L' ? h : 'N', 'N',
                                        f->n, s->nrhs, s->b, s->ldb);
    return lu && s->trans != 'N' ? (gpb_system_solves){ u, l } : (gpb_system_solves){ l, u };
}
