/* SPDX-License-Identifier: MIT */
/* See sample.h. Rows that lie side by side are read together, because they share cache lines, and of long
   rows 256 elements, and the one on the diagonal, which may be larger than all others. 1024 took 0.4 ms
   at 4096 (H100, 2026-11-25): each is a cache line and a page of its own. */
#include "src/hub/sample.h"

#include <math.h>

#include "dispatch/numbers.h"
#include "kernels/residues.h"

enum { ROWS = 8, GROUPS = 2, THETAS = GPB_RESIDUE_THETAS, ELEMENTS = 256, AHEAD = 16 };

/* Rows of op(A), or columns of op(B): element p of row i is at[i row + p col], in real numbers; complex ones
   are two. */
typedef struct rows {
    const double *at;
    int64_t row, col, count, k;
    int parts;                   /* real numbers in an element */
    char uplo;                   /* of a matrix of which one triangle is stored: that one; else 'G' */
} rows;

/* Row i of a mirrored triangle is read where it is stored as a row. */
static rows rows_of(const gpb_call *g, enum gpb_operand which)
{
    const gpb_matrix *x = &g->x[which];
    const int64_t parts = gpb_type_is_complex(g->type) ? 2 : 1;
    const bool half = x->structure != GPB_GENERAL, along = !half && gpb_call_k_down(g, which);
    return (rows){ .at = gpb_matrix_member(x, 0, gpb_type_bytes(g->type)), .parts = (int)parts,
                   .row = (along ? x->ld : 1) * parts, .col = (along ? 1 : x->ld) * parts,
                   .count = gpb_call_extent(g, which), .k = g->k, .uplo = half ? x->uplo : 'G' };
}

/* A row's sum of squares, and how many of its numbers count from each share of their root mean square on. */
typedef struct measure {
    double squares[ROWS], floor[ROWS];
    int64_t many[ROWS][THETAS];
} measure;

static void add(measure *of, int row, double x, bool counts)
{
    if (!counts) of->squares[row] += x * x;
    for (int t = 0; counts && t < THETAS; t++)
        of->many[row][t] += fabs(x) >= of->floor[row] * gpb_residue_theta(t);
}

/* Elements from `from` to `to` of ROWS rows, and those on the diagonal: of these the real part, because a
   Hermitian matrix has no other. Returns how many numbers of each row that are. */
static int64_t read_rows(measure *of, const rows *r, int64_t first, int64_t from, int64_t to, bool counts)
{
    const double *at = r->at + first * r->row;
    const int64_t step = max(1, (to - from) / ELEMENTS);
    int64_t numbers = 0;
    for (int64_t p = from; p < to; p += step, numbers += r->parts) {
        const double *column = at + p * r->col;
        __builtin_prefetch(column + AHEAD * step * r->col);
        for (int row = 0; row < ROWS; row++)
            for (int part = 0; part < r->parts; part++) add(of, row, column[row * r->row + part], counts);
    }
    if (first + ROWS > r->k) return numbers;
    for (int row = 0; row < ROWS; row++)
        add(of, row, at[row * r->row + (first + row) * r->col], counts);
    return numbers + 1;
}

/* The guard's test (kernels/residues/README.md). NaN does not pass; zeros do. */
static bool passes(const measure *of, int row, int64_t numbers, double reals)
{
    double most = 0;
    for (int t = 0; t < THETAS; t++) {
        const double theta = gpb_residue_theta(t), share = (double)of->many[row][t] / (double)numbers;
        if ((2 * share - 1) * theta * theta > most) most = (2 * share - 1) * theta * theta;
    }
    return of->squares[row] == 0 || most * GPB_RESIDUE_KAPPA * sqrt(reals) >= 1;
}

/* True if none of ROWS rows from `first` on would be marked. */
static bool suit(const rows *r, int64_t first)
{
    const int64_t from = r->uplo == 'U' ? first + ROWS : 0, to = r->uplo == 'L' ? first : r->k;
    measure of = { .squares = { 0 } };
    const int64_t numbers = read_rows(&of, r, first, from, to, false);
    for (int row = 0; row < ROWS; row++) of.floor[row] = sqrt(of.squares[row] / (double)numbers);
    read_rows(&of, r, first, from, to, true);
    bool all = true;
    for (int row = 0; row < ROWS; row++) all &= passes(&of, row, numbers, (double)(r->k * r->parts));
    return all;
}

bool gpb_sample_suits_residues(const gpb_call *g, const gpb_facts *facts)
{
    for (int x = GPB_A; x <= GPB_B; x++) {
        const rows r = rows_of(g, (enum gpb_operand)x);
        if (!gpb_place_on_host(facts->where[x].place) || r.count <= GROUPS * ROWS || r.k < ROWS) continue;
        /* The longest rows of a triangle; else a third and two thirds of all. */
        for (int group = 1; group <= GROUPS; group++)
            if (!suit(&r, r.uplo == 'L'   ? r.count - group * ROWS
                          : r.uplo == 'U' ? (group - 1) * ROWS
                                          : r.count * group / (GROUPS + 1) / ROWS * ROWS)) return false;
    }
    return true;
}
