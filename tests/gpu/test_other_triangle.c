/* SPDX-License-Identifier: MIT */
/* The triangle that a routine does not have is another thread's, which writes there all the time: results are
   right, so nobody has read there, and what it has written is there still. Of A in SYMM, TRMM, TRSM and
   potrs, of C in SYRK and SYR2K, and of the matrix of potrf; and of the Hermitian ones. Of small integers
   and few bits, so that every result is exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <complex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/placed.h"

enum routine { SYMM, TRMM, TRSM, POTRS, SYRK, SYR2K, POTRF, ROUTINES };
enum { OTHER = 10, MOST = 1500 };
static const char *const names[] = { "symm", "trmm", "trsm", "potrs", "syrk", "syr2k", "potrf" };

typedef double complex number;
typedef struct triangle {
    float *at;
    enum routine routine;
    int order, reals;                    /* reals: of an element */
    char uplo, side;
} triangle;

/* ---- the routines, as Fortran calls them */

typedef void product(const char *side, const char *uplo, const int *m, const int *n, const void *alpha,
                     const void *a, const int *lda, const void *b, const int *ldb, const void *beta, void *c,
                     const int *ldc);
typedef void triangular(const char *side, const char *uplo, const char *trans, const char *diag, const int *m,
                        const int *n, const void *alpha, const void *a, const int *lda, void *b,
                        const int *ldb);
typedef void rank_k(const char *uplo, const char *trans, const int *n, const int *k, const void *alpha,
                    const void *a, const int *lda, const void *beta, void *c, const int *ldc);
typedef void rank_2k(const char *uplo, const char *trans, const int *n, const int *k, const void *alpha,
                     const void *a, const int *lda, const void *b, const int *ldb, const void *beta, void *c,
                     const int *ldc);
typedef void factor(const char *uplo, const int *n, void *a, const int *lda, int *info);
typedef void solve(const char *uplo, const int *n, const int *nrhs, const void *a, const int *lda, void *b,
                   const int *ldb, int *info);
product ssymm_, chemm_;
triangular strmm_, ctrmm_, strsm_, ctrsm_;
rank_k ssyrk_, cherk_;
rank_2k ssyr2k_, cher2k_;
factor spotrf_, cpotrf_;
solve spotrs_, cpotrs_;

static int rows_of(const triangle *t) { return t->side == 'R' ? OTHER : t->order; }

/* b: order x OTHER, or with side R the other way round. c: as large; for SYMM's result and SYR2K's B. */
static void call(const triangle *t, float *b, float *c)
{
    const bool is_real = t->reals == 1;
    const float one[] = { 1, 0 }, zero[] = { 0, 0 };
    const int n = t->order, few = OTHER, m = rows_of(t), cols = t->side == 'R' ? n : few;
    int info = 0;
    switch (t->routine) {
    case SYMM:
        (is_real ? ssymm_ : chemm_)(&t->side, &t->uplo, &m, &cols, one, t->at, &n, b, &m, zero, c, &m);
        break;
    case TRMM:
        (is_real ? strmm_ : ctrmm_)(&t->side, &t->uplo, "N", "N", &m, &cols, one, t->at, &n, b, &m);
        break;
    case TRSM:
        (is_real ? strsm_ : ctrsm_)(&t->side, &t->uplo, "N", "N", &m, &cols, one, t->at, &n, b, &m);
        break;
    case POTRS: (is_real ? spotrs_ : cpotrs_)(&t->uplo, &n, &few, t->at, &n, b, &n, &info); break;
    case SYRK: (is_real ? ssyrk_ : cherk_)(&t->uplo, "N", &n, &few, one, b, &n, one, t->at, &n); break;
    case SYR2K:
        (is_real ? ssyr2k_ : cher2k_)(&t->uplo, "N", &n, &few, one, b, &n, c, &n, one, t->at, &n);
        break;
    default: (is_real ? spotrf_ : cpotrf_)(&t->uplo, &n, t->at, &n, &info);
    }
    assert_int_equal(info, 0);
}

/* ---- what is in the triangle, and what comes of it */

static number value(const triangle *t, int row, int col)
{
    return (row * 7 + col * 3) % 5 - 2 + (t->reals == 2 ? I * ((row * 2 + col * 5) % 3 - 1) : 0);
}

/* Of a lower triangle G. Rows that others go into come of no others, and the diagonal has powers of two, so
   that its inverse has few bits. */
static number of_g(const triangle *t, int row, int col)
{
    if (row == col) return 1 + row % 2;
    return row > col && row % 2 && col % 2 == 0 ? value(t, row, col) : 0;
}

static bool is_stored(const triangle *t, int row, int col)
{
    return t->uplo == 'U' ? row <= col : row >= col;
}

/* G, or G^H. */
static number of_triangle(const triangle *t, int row, int col)
{
    return t->uplo == 'L' ? of_g(t, row, col) : conj(of_g(t, col, row));
}

static number hermitian(const triangle *t, int row, int col)
{
    if (row == col) return creal(value(t, row, col));
    return is_stored(t, row, col) ? value(t, row, col) : conj(value(t, col, row));
}

/* G G^H */
static number square(const triangle *t, int row, int col)
{
    const int last = row < col ? row : col;
    number sum = 0;
    for (int p = 0; p < last; p += 2) sum += of_g(t, row, p) * conj(of_g(t, col, p));
    return sum + of_g(t, row, last) * conj(of_g(t, col, last));
}

/* Element (row, col) as it is before a call. */
static number before(const triangle *t, int row, int col)
{
    if (t->routine == POTRF) return square(t, row, col);
    return t->routine == SYMM || t->routine == SYRK || t->routine == SYR2K ? hermitian(t, row, col)
                                                                           : of_triangle(t, row, col);
}

/* The two operands of small integers. */
static number of_x(const triangle *t, int row, int col) { return value(t, row + 1, 2 * col); }
static number of_y(const triangle *t, int row, int col) { return value(t, 3 * row, col + 2); }

static number after(const triangle *t, int row, int col)
{
    number sum = t->routine == POTRF ? of_triangle(t, row, col) : before(t, row, col);
    for (int p = 0; p < OTHER && t->routine == SYRK; p++) sum += of_x(t, row, p) * conj(of_x(t, col, p));
    for (int p = 0; p < OTHER && t->routine == SYR2K; p++)
        sum += of_x(t, row, p) * conj(of_y(t, col, p)) + of_y(t, row, p) * conj(of_x(t, col, p));
    return sum;
}

static void put(float *to, const triangle *t, int64_t at, number x)
{
    to[at * t->reals] = (float)creal(x);
    if (t->reals == 2) to[at * t->reals + 1] = (float)cimag(x);
}
static number get(const float *from, const triangle *t, int64_t at)
{
    return (double)from[at * t->reals] + (t->reals == 2 ? I * (double)from[at * t->reals + 1] : 0);
}
static int64_t in_triangle(const triangle *t, int row, int col) { return row + (int64_t)col * t->order; }
static int64_t in_b(const triangle *t, int row, int col)
{
    return t->side == 'R' ? col + (int64_t)row * OTHER : row + (int64_t)col * t->order;
}

/* y = M x, or with side R M^T x, of the matrix that the triangle stands for. */
static void multiply(const triangle *t, const number *x, number *y)
{
    static number middle[MOST];
    for (int i = 0; i < t->order; i++) {
        y[i] = middle[i] = 0;
        for (int p = i; p < t->order; p++) middle[i] += conj(of_g(t, p, i)) * x[p];
        for (int p = 0; p < t->order && t->routine != POTRS; p++)
            y[i] += (t->side == 'R' ? before(t, p, i) : before(t, i, p)) * x[p];
    }
    for (int i = 0; i < t->order && t->routine == POTRS; i++)
        for (int p = 0; p <= i; p++) y[i] += of_g(t, i, p) * middle[p];
}

/* B before the call and after it: X and M X, or for solves the other way round. */
static void make_b(const triangle *t, float *first, float *last)
{
    static number x[MOST], y[MOST];
    const bool solves = t->routine == TRSM || t->routine == POTRS;
    for (int col = 0; col < OTHER; col++) {
        for (int i = 0; i < t->order; i++) x[i] = y[i] = of_x(t, i, col);
        if (t->routine <= POTRS) multiply(t, x, y);
        for (int i = 0; i < t->order; i++) {
            put(first, t, in_b(t, i, col), solves ? y[i] : x[i]);
            put(last, t, in_b(t, i, col), solves ? x[i] : y[i]);
        }
    }
}

/* ---- the other thread */

static atomic_bool over;
static atomic_int lost;

/* What it wrote is what it finds. */
static void *scribble(void *of)
{
    const triangle *t = of;
    bool last = false;
    float old = 0;
    for (float x = 1e6f; !last; old = x++) {
        last = over;
        for (int j = 0; j < t->order; j++)
            for (int i = 0; i < t->order; i++)
                for (int part = 0; part < t->reals && !is_stored(t, i, j); part++) {
                    float *to = &t->at[in_triangle(t, i, j) * t->reals + part];
                    if (old != 0 && *to != old) lost++;
                    *to = x;
                }
    }
    return of;
}

static void beside(triangle *t, int calls)
{
    const size_t count = (size_t)OTHER * (size_t)t->order * (size_t)t->reals;
    const size_t square_count = (size_t)t->order * (size_t)t->order;
    float *first = malloc(count * sizeof *first), *last = malloc(count * sizeof *last);
    float *b = malloc(count * sizeof *b), *c = malloc(count * sizeof *c);
    float *old = malloc(square_count * (size_t)t->reals * sizeof *old);
    const bool writes = t->routine >= SYRK;
    pthread_t writer;
    t->at = calloc(square_count * (size_t)t->reals, sizeof *t->at);
    assert_true(first && last && b && c && old && t->at);
    make_b(t, first, last);
    for (int j = 0; j < t->order; j++)
        for (int i = 0; i < t->order; i++)
            if (is_stored(t, i, j)) put(old, t, in_triangle(t, i, j), before(t, i, j));
    over = false;
    lost = 0;
    assert_int_equal(pthread_create(&writer, NULL, scribble, t), 0);
    for (int round = 0; round < calls; round++) {
        for (int j = 0; j < t->order; j++)
            for (int i = 0; i < t->order; i++)
                if (is_stored(t, i, j) && (writes || round == 0))
                    put(t->at, t, in_triangle(t, i, j), get(old, t, in_triangle(t, i, j)));
        memcpy(b, first, count * sizeof *b);
        for (int i = 0; i < OTHER * t->order; i++) put(c, t, i, of_y(t, i % t->order, i / t->order));
        const int64_t on_gpu = gpu_calls();
        call(t, b, c);
        assert_int_equal(gpu_calls(), on_gpu + 1);
        const float *found = t->routine == SYMM ? c : b;
        for (size_t i = 0; i < count; i++)
            if (found[i] != last[i])
                fail_msg("%s %c%c, %d reals: B[%zu] is %g, not %g", names[t->routine], t->side, t->uplo,
                         t->reals, i, (double)found[i], (double)last[i]);
        for (int j = 0; j < t->order; j++)
            for (int i = 0; i < t->order; i++)
                if (is_stored(t, i, j) && get(t->at, t, in_triangle(t, i, j)) != after(t, i, j))
                    fail_msg("%s %c%c, %d reals: (%d, %d) is wrong", names[t->routine], t->side, t->uplo,
                             t->reals, i, j);
    }
    over = true;
    pthread_join(writer, NULL);
    if (lost)
        fail_msg("%s %c%c, %d reals: %d writes of the other thread's are gone", names[t->routine], t->side,
                 t->uplo, t->reals, (int)lost);
    free(t->at);
    free(first);
    free(last);
    free(b);
    free(c);
    free(old);
}

static void test_beside(void **state)
{
    (void)state;
    const bool large = getenv("GPB_TEST_LARGE"), few = getenv("GPB_TEST_FEW");
    const int orders[] = { 300, large ? MOST : few ? 300 : 530 }, calls = few ? 2 : 6;
    for (enum routine routine = 0; routine < ROUTINES; routine++)
        for (int form = 0; form < 8; form++) {
            triangle t = { .routine = routine, .order = orders[(form ^ form >> 1 ^ form >> 2) & 1],
                           .reals = 1 + (form & 1), .uplo = "UL"[form >> 1 & 1], .side = "LR"[form >> 2] };
            if (routine > TRSM && t.side == 'R') continue;
            beside(&t, calls);
        }
}

int main(void)
{
    if (!gpu_open()) return 77;
    set_option("OFFLOAD", "always");
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_beside) };
    return cmocka_run_group_tests_name("other_triangle", tests, NULL, NULL);
}
