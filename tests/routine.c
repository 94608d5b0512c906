/* SPDX-License-Identifier: MIT */
/* See routine.h. */
#include "tests/routine.h"

#define ROUTINE(name, fmas, a, b, c, members, fill, check)  \
    static double fmas_##name(double m, double n, double k) \
    {                                                       \
        (void)m;                                            \
        (void)n;                                            \
        (void)k;                                            \
        return fmas;                                        \
    }
#include "tests/routine.def"
#undef ROUTINE

#define GENERAL(rows, cols) (gpb_test_shape){ rows, cols, GPB_GENERAL }
#define SYMMETRIC(rows) (gpb_test_shape){ rows, rows, GPB_SYMMETRIC }
#define HERMITIAN(rows) (gpb_test_shape){ rows, rows, GPB_HERMITIAN }
#define TRIANGULAR(rows) (gpb_test_shape){ rows, rows, GPB_TRIANGULAR }
#define AGAIN (gpb_test_shape){ 0, 0, GPB_GENERAL }
#define ROUTINE(name, fmas, a, b, c, members, fill, check)                                      \
    static gpb_test_shape shape_##name(enum gpb_operand x, int64_t m, int64_t n, int64_t k)     \
    {                                                                                           \
        (void)m;                                                                                \
        (void)n;                                                                                \
        (void)k;                                                                                \
        return x == GPB_A ? a : x == GPB_B ? b : c;                                             \
    }
#include "tests/routine.def"
#undef ROUTINE

#define PRODUCT 1
#define TWO_PRODUCTS 2
#define ANY gpb_fill
const gpb_test_row *gpb_test_row_of(enum gpb_test_routine routine)
{
    static const gpb_test_row rows[] = {
#define ROUTINE(name, fmas, a, b, c, members, fill, check) \
    { #name, GPB_MEMBERS_##members, fmas_##name, shape_##name, check, fill, gpb_reference_check, \
      gpb_reference_sample },
#include "tests/routine.def"
#undef ROUTINE
    };
    return &rows[routine];
}

gpb_test_shape gpb_test_shape_of(enum gpb_test_routine routine, enum gpb_operand x, int64_t m, int64_t n,
                                 int64_t k, bool right)
{
    const gpb_test_row *row = gpb_test_row_of(routine);
    if (!right || x == GPB_C) return row->shape(x, m, n, k);
    return x == GPB_B ? row->shape(GPB_A, n, n, k) : row->shape(GPB_B, m, n, k);
}

static gpb_test_shape shape_of(enum gpb_test_routine routine, const gpb_call *g, enum gpb_operand x)
{
    return gpb_test_shape_of(routine, x, g->m, g->n, g->k, gpb_call_mirrors(g, GPB_B));
}

bool gpb_test_sided(enum gpb_test_routine routine)
{
    return gpb_test_row_of(routine)->shape(GPB_A, 1, 1, 1).structure != GPB_GENERAL;
}

void gpb_test_put_side(enum gpb_test_routine routine, gpb_call *g, char side, char uplo)
{
    gpb_matrix *symmetric = &g->x[side == 'R' ? GPB_B : GPB_A];
    if (!gpb_test_sided(routine)) return;
    g->routine = GPB_ROUTINE_SYMM;
    g->k = side == 'R' ? g->n : g->m;
    g->x[GPB_A].trans = g->x[GPB_B].trans = 'N';
    g->x[GPB_C].uplo = 'G';
    symmetric->uplo = uplo == 'U' ? 'U' : 'L';
    symmetric->structure = gpb_type_is_complex(g->type)
                           ? gpb_test_row_of(routine)->shape(GPB_A, 1, 1, 1).structure : GPB_SYMMETRIC;
}

void gpb_test_poison_mirror(const gpb_call *g, enum gpb_operand x)
{
    const gpb_matrix *of = &g->x[x];
    const int64_t order = gpb_call_rows(g, x), real = (int64_t)gpb_type_real_bytes(g->type);
    for (int64_t j = 0; j < order && gpb_call_mirrors(g, x); j++) {
        const gpb_matrix_rows rows = gpb_matrix_rows_of(of->uplo == 'U' ? 'L' : 'U', 0, order, j);
        const int64_t first = rows.first + (of->uplo == 'U'), last = rows.last - (of->uplo == 'L');
        char *column = (char *)gpb_call_member(g, x, 0) + j * of->ld * (int64_t)gpb_call_element(g);
        if (first < last)
            gpb_poison(g->type, column + first * (int64_t)gpb_call_element(g), last - first);
        if (of->structure == GPB_HERMITIAN)
            gpb_poison(gpb_type_real(g->type), column + (2 * j + 1) * real, 1);
    }
}

bool gpb_test_has_triangle(enum gpb_test_routine routine)
{
    return gpb_test_row_of(routine)->shape(GPB_C, 1, 1, 1).structure != GPB_GENERAL;
}

bool gpb_test_one_matrix(enum gpb_test_routine routine)
{
    return gpb_test_row_of(routine)->shape(GPB_B, 1, 1, 1).rows == 0;
}

/* SYRK, SYR2K and the Hermitian ones: the letter of op(B) follows from that of op(A). */
static bool is_rank_k(enum gpb_test_routine routine)
{
    return gpb_test_one_matrix(routine) || gpb_test_row_of(routine)->products == 2;
}

static bool is_hermitian(enum gpb_test_routine routine, enum gpb_type type)
{
    const enum gpb_structure c = gpb_test_row_of(routine)->shape(GPB_C, 1, 1, 1).structure;
    return gpb_type_is_complex(type) && c == GPB_HERMITIAN;
}

char gpb_test_op(enum gpb_test_routine routine, enum gpb_type type, char trans)
{
    const bool any = trans == 'N' || !is_rank_k(routine) || !gpb_type_is_complex(type);
    return any ? trans : is_hermitian(routine, type) ? 'C' : 'T';
}

void gpb_test_settle(enum gpb_test_routine routine, gpb_call *g)
{
    gpb_matrix *a = &g->x[GPB_A], *b = &g->x[GPB_B];
    const bool one = gpb_test_one_matrix(routine);
    if (!is_rank_k(routine)) return;
    g->routine = one ? GPB_ROUTINE_SYRK : GPB_ROUTINE_SYR2K;
    a->trans = gpb_test_op(routine, g->type, a->trans);
    if (one) *b = *a;
    b->trans = a->trans != 'N' ? 'N' : is_hermitian(routine, g->type) ? 'C' : 'T';
    g->x[GPB_C].structure = gpb_test_row_of(routine)->shape(GPB_C, 1, 1, 1).structure;
    if (g->x[GPB_C].structure != GPB_HERMITIAN) return;
    if (one) g->alpha = __real__ g->alpha;
    g->beta = __real__ g->beta;
}

double gpb_test_flops(enum gpb_test_routine routine, const gpb_call *g)
{
    const double fmas = gpb_test_row_of(routine)->fmas((double)g->m, (double)g->n, (double)g->k);
    return gpb_type_of(g->type)->flops * fmas * (double)g->batch;
}

double gpb_test_bytes(enum gpb_test_routine routine, const gpb_call *g, enum gpb_operand x)
{
    const gpb_test_shape s = shape_of(routine, g, x);
    const double rows = (double)s.rows, cols = (double)s.cols;
    const double elements = s.structure == GPB_GENERAL ? rows * cols : rows * (rows + 1) / 2;
    return elements * (double)gpb_call_element(g) * (double)g->batch;
}

double gpb_test_bytes_read(enum gpb_test_routine routine, const gpb_call *g)
{
    return gpb_test_bytes(routine, g, GPB_A) + gpb_test_bytes(routine, g, GPB_B)
           + (g->beta == 0 ? 0 : gpb_test_bytes(routine, g, GPB_C));
}

double gpb_test_bytes_written(enum gpb_test_routine routine, const gpb_call *g)
{
    return gpb_test_bytes(routine, g, GPB_C);
}
