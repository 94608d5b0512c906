/* SPDX-License-Identifier: MIT */
/* Factorisations and solves that stay on the GPU, while driver calls of theirs fail (test_resident.sh): what
   the caller gets is right each time, whoever computed it. Exit code: the number of wrong results.
   usage: resident [order [all | factors | triangles | tall | refined [device | device_a | device_b]]]. all:
   also a matrix that is not positive definite, and refined solutions, which have many steps; factors: those,
   but no triangles; triangles: no factorisations but those that inverses need; tall: those with a tall B
   alone; refined: dsgesv and dsposv alone; device: the matrices lie in device memory, or A or B alone does,
   and after a failure TRSM and TRMM may leave B as it was, and LAPACK's routines may give INFO = -3, because
   nobody can compute there: the last line says how often. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

void dgetrf_(const int *, const int *, double *, const int *, int *, int *);
void dgesv_(const int *, const int *, double *, const int *, int *, double *, const int *, int *);
void dgetrs_(const char *, const int *, const int *, const double *, const int *, const int *, double *,
             const int *, int *, size_t);
void dpotrf_(const char *, const int *, double *, const int *, int *, size_t);
void dposv_(const char *, const int *, const int *, double *, const int *, double *, const int *, int *,
            size_t);
void dsgesv_(const int *, const int *, double *, const int *, int *, const double *, const int *, double *,
             const int *, double *, float *, int *, int *);
void dsposv_(const char *, const int *, const int *, double *, const int *, const double *, const int *,
             double *, const int *, double *, float *, int *, int *, size_t);

void dgetri_(const int *, double *, const int *, const int *, double *, const int *, int *);
void dpotri_(const char *, const int *, double *, const int *, int *, size_t);
void dtrtrs_(const char *, const char *, const char *, const int *, const int *, const double *, const int *,
             double *, const int *, int *, size_t, size_t, size_t);
void dtrtri_(const char *, const char *, const int *, double *, const int *, int *, size_t, size_t);
void dtrsm_(const char *, const char *, const char *, const char *, const int *, const int *, const double *,
            const double *, const int *, double *, const int *, size_t, size_t, size_t, size_t);
void dtrmm_(const char *, const char *, const char *, const char *, const int *, const int *, const double *,
            const double *, const int *, double *, const int *, size_t, size_t, size_t, size_t);
void dgecon_(const char *, const int *, const double *, const int *, const double *, double *, double *,
             int *, int *, size_t);
void dpocon_(const char *, const int *, const double *, const int *, const double *, double *, double *,
             int *, int *, size_t);

enum { MOST = 1000, NRHS = 70 };
static double a[MOST * MOST], x[MOST * MOST], b[MOST * NRHS], y[MOST * NRHS];
static int ipiv[MOST], wrong, as_it_was, n = 300, ld = 303;

/* Bytes of a and x, of b and y, that are in use, and of a column behind them. */
static size_t least(size_t p, size_t q) { return p < q ? p : q; }
static size_t used(int columns) { return sizeof(double) * (size_t)ld * (size_t)(columns + 1); }
static size_t of_square(void) { return least(used(n), sizeof a); }
static size_t of_columns(void) { return least(used(NRHS), sizeof b); }

static double next(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53 - 0.5;
}

/* ---- where the matrices are for a call: here, or in device memory from X() and Y() to home() */

typedef struct matrix { double *here, *device; size_t (*bytes)(void); int sent; } matrix;
static matrix matrices[] = { { x, NULL, of_square, 0 }, { y, NULL, of_columns, 0 } };

static void to_device_memory(const char *which)
{
    device_enter();
    for (int i = 0; i < 2; i++)
        if ((!which[6] || which[7] == "ab"[i])
            && device_alloc(&matrices[i].device, i ? sizeof y : sizeof x))
            exit(102);
}

static double *sent(matrix *of)
{
    if (!of->device) return of->here;
    if (device_copy_to((uintptr_t)of->device, of->here, of->bytes())) exit(103);
    of->sent = 1;
    return of->device;
}
static double *X(void) { return sent(&matrices[0]); }
static double *Y(void) { return sent(&matrices[1]); }

static void home(void)
{
    for (int i = 0; i < 2; i++) {
        const matrix *of = &matrices[i];
        if (of->sent && device_copy_from(of->here, (uintptr_t)of->device, of->bytes())) exit(104);
        matrices[i].sent = 0;
    }
}

/* |A Y - B| for that A, op(A) if transposed, as a multiple of n eps |A| |Y|. */
static double residual(int transposed)
{
    double most = 0, of_a = 0, of_y = 0, sums[MOST];
    for (int i = 0; i < ld * n; i++) of_a = fmax(of_a, i % ld < n ? fabs(a[i]) : 0);
    for (int i = 0; i < ld * NRHS; i++) of_y = fmax(of_y, i % ld < n ? fabs(y[i]) : 0);
    for (int j = 0; j < NRHS; j++) {
        for (int i = 0; i < n; i++) sums[i] = -b[i + j * ld];
        for (int p = 0; p < n; p++)
            for (int i = 0; i < n; i++)          /* both ways along a column of A */
                if (transposed) sums[p] += a[i + p * ld] * y[i + j * ld];
                else sums[i] += a[i + p * ld] * y[p + j * ld];
        for (int i = 0; i < n; i++) most = fmax(most, fabs(sums[i]));
    }
    return most / (n * 0x1p-52 * of_a * of_y);
}

/* INFO of a matrix that cannot be used where it is, after a failure. */
static int is_unreached(int info)
{
    const int unreached = info == -3 && (matrices[0].device || matrices[1].device);
    as_it_was += unreached;
    return unreached;
}

static void check(const char *what, int info, int transposed)
{
    if (is_unreached(info)) return;
    const double found = info == 0 ? residual(transposed) : HUGE_VAL;
    for (int i = 0; i < ld * NRHS; i++)
        if (i % ld >= n && y[i] != 7) info = -100;       /* wrote behind a column */
    if (found < 10 && info == 0) return;
    printf("wrong: %s: INFO %d, residual %g\n", what, info, found);
    wrong++;
}

static void fresh(int positive)
{
    for (int i = 0; i < ld * n; i++) a[i] = i % ld < n ? next() : 7;
    for (int i = 0; i < ld * NRHS; i++) b[i] = i % ld < n ? next() : 7;
    for (int j = 0; positive && j < n; j++) {
        for (int i = 0; i < j; i++) a[j + i * ld] = a[i + j * ld];
        a[j + j * ld] = n;
    }
    memcpy(x, a, of_square());
    memcpy(y, b, of_columns());
}

/* ---- triangles and inverses, in a: a triangle of diagonal n, and NaN in what must not be read */

static void fresh_triangle(int order, char uplo, char diag)
{
    for (int i = 0; i < ld * order; i++) {
        const int row = i % ld, col = i / ld;
        const int inside = row == col ? diag == 'N' : (uplo == 'L') == (row > col);
        a[i] = row >= order || !inside ? NAN : row == col ? 2 + next() : next() / order;
    }
    memcpy(x, a, of_square());
}

/* Element (i, j) of op(A), with the ones and zeros that nobody reads. */
static double op(int i, int j, char uplo, char trans, char diag)
{
    const int row = trans == 'N' ? i : j, col = trans == 'N' ? j : i;
    if (row == col) return diag == 'U' ? 1 : a[row + col * ld];
    return (uplo == 'L') == (row > col) ? a[row + col * ld] : 0;
}

static int same_or_nan(double p, double q) { return p == q || (p != p && q != q); }

/* op(A) X = alpha B for the solve; X = alpha op(A) B for the product; from either side. m x n of b and y. */
static void check_triangular(int solves, char side, char uplo, char trans, char diag, int rows, int cols)
{
    static double of_a[MOST * MOST], of_in[MOST * MOST];         /* what is summed lies side by side */
    const double alpha = 0.75, *in = solves ? y : b, *out = solves ? b : y;
    const int order = side == 'L' ? rows : cols, others = side == 'L' ? cols : rows;
    double most = 0;
    for (int i = 0; i < order; i++)
        for (int p = 0; p < order; p++)
            of_a[i * order + p] = side == 'L' ? op(i, p, uplo, trans, diag) : op(p, i, uplo, trans, diag);
    for (int j = 0; j < others; j++)
        for (int p = 0; p < order; p++)
            of_in[j * order + p] = (solves ? 1 : alpha) * (side == 'L' ? in[p + j * ld] : in[j + p * ld]);
    for (int j = 0; j < others; j++)
        for (int i = 0; i < order; i++) {
            const double wanted = side == 'L' ? out[i + j * ld] : out[j + i * ld];
            double sum = solves ? -alpha * wanted : -wanted, bound = fabs(sum);
            for (int p = 0; p < order; p++) {
                const double product = of_a[i * order + p] * of_in[j * order + p];
                sum += product;
                bound += fabs(product);
            }
            if (!(fabs(sum) <= 4 * order * 0x1p-53 * bound)) most = HUGE_VAL;
        }
    for (int i = 0; i < ld * cols; i++)
        if (i % ld >= rows && y[i] != 7) most = HUGE_VAL;
    if (most == 0) return;
    printf("wrong: %s %c%c%c%c\n", solves ? "trsm" : "trmm", side, uplo, trans, diag);
    wrong++;
}

static void triangular(int solves, char side, char uplo, char trans, char diag)
{
    const double alpha = 0.75;
    const int few = 9, rows = side == 'L' ? n : few, cols = side == 'L' ? few : NRHS;
    const int width = side == 'L' ? cols : NRHS;
    fresh_triangle(side == 'L' ? n : NRHS, uplo, diag);
    for (int i = 0; i < ld * width; i++) b[i] = i % ld < rows ? next() : 7;
    memcpy(y, b, of_columns());
    (solves ? dtrsm_ : dtrmm_)(&side, &uplo, &trans, &diag, &rows, &width, &alpha, X(), &ld, Y(), &ld, 1, 1,
                               1, 1);
    home();
    if (matrices[1].device && !memcmp(y, b, of_columns())) as_it_was++;
    else check_triangular(solves, side, uplo, trans, diag, rows, width);
    if (memcmp(x, a, of_square())) wrong += printf("wrong: the triangle was written\n") > 0;
}

/* From the left, with so many columns that they come and go in two panels; of both some are checked. */
static void wide(int solves, char uplo, char trans)
{
    enum { WIDE = 2300 };
    const int columns[] = { 0, 2047, 2048, WIDE - 1 }, some = 4, all = WIDE;
    const double alpha = 0.75;
    const size_t bytes = sizeof(double) * (size_t)ld * WIDE;
    double *before = malloc(bytes), *after = malloc(bytes);
    if (!before || !after) exit(105);
    fresh_triangle(n, uplo, 'N');
    for (int i = 0; i < ld * WIDE; i++) before[i] = after[i] = i % ld < n ? next() : 7;
    double *of_b = after;
    if (matrices[0].device && (device_alloc(&of_b, bytes) || device_copy_to((uintptr_t)of_b, after, bytes)))
        exit(106);
    (solves ? dtrsm_ : dtrmm_)("L", &uplo, &trans, "N", &n, &all, &alpha, X(), &ld, of_b, &ld, 1, 1, 1, 1);
    home();
    if (of_b != after && device_copy_from(after, (uintptr_t)of_b, bytes)) exit(107);
    for (int i = 0; i < some; i++) {
        memcpy(b + i * ld, before + columns[i] * ld, sizeof(double) * (size_t)ld);
        memcpy(y + i * ld, after + columns[i] * ld, sizeof(double) * (size_t)ld);
    }
    if (matrices[0].device && !memcmp(before, after, bytes)) as_it_was++;
    else check_triangular(solves, 'L', uplo, trans, 'N', n, some);
    free(before);
    free(after);
}

/* From the right, with so many rows that they come and go in three panels; of each some are checked. */
static void tall(int solves, char uplo, char trans)
{
    enum { TALL = 2300, LD = TALL + 3 };
    const int of_panels[] = { 0, 1023, 1024, 2047, 2048, TALL - 1 }, all = TALL, ld_b = LD;
    const double alpha = 0.75;
    const size_t bytes = sizeof(double) * LD * (size_t)n;
    double *before = malloc(bytes), *after = malloc(bytes), *of_b = after;
    int right = 1;
    if (!before || !after) exit(105);
    fresh_triangle(n, uplo, 'N');
    for (int i = 0; i < LD * n; i++) before[i] = after[i] = i % LD < TALL ? next() : 7;
    if (matrices[1].device && (device_alloc(&of_b, bytes) || device_copy_to((uintptr_t)of_b, after, bytes)))
        exit(106);
    (solves ? dtrsm_ : dtrmm_)("R", &uplo, &trans, "N", &all, &n, &alpha, X(), &ld, of_b, &ld_b, 1, 1, 1, 1);
    home();
    if (of_b != after && device_copy_from(after, (uintptr_t)of_b, bytes)) exit(107);
    const double *in = solves ? after : before, *out = solves ? before : after;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < n; j++) {
            const double wanted = (solves ? alpha : 1) * out[of_panels[i] + j * LD];
            double sum = -wanted, bound = fabs(wanted);
            for (int p = 0; p < n; p++) {
                const double product = (solves ? 1 : alpha) * in[of_panels[i] + p * LD]
                                       * op(p, j, uplo, trans, 'N');
                sum += product;
                bound += fabs(product);
            }
            right &= fabs(sum) <= 4 * n * 0x1p-53 * bound;
        }
    for (int i = 0; i < LD * n; i++) right &= i % LD < TALL || after[i] == 7;
    if ((matrices[0].device || matrices[1].device) && !memcmp(before, after, bytes)) as_it_was++;
    else if (!right) wrong += printf("wrong: tall %s %c%c\n", solves ? "trsm" : "trmm", uplo, trans) > 0;
    free(before);
    free(after);
}

/* x, of which those elements count, is the inverse of the matrix that `element` gives: with a vector. */
static void check_inverse(const char *what, int info, double (*element)(int, int),
                          double (*inverse)(int, int))
{
    double v[MOST], xv[MOST], of_xv[MOST];
    int right = info == 0;
    for (int i = 0; i < n; i++) v[i] = next();
    for (int i = 0; i < n; i++) {
        xv[i] = of_xv[i] = 0;
        for (int j = 0; j < n; j++) xv[i] += inverse(i, j) * v[j];
        for (int j = 0; j < n; j++) of_xv[i] += fabs(inverse(i, j) * v[j]);
    }
    for (int i = 0; i < n; i++) {
        double sum = -v[i], bound = fabs(v[i]);
        for (int j = 0; j < n; j++) sum += element(i, j) * xv[j];
        for (int j = 0; j < n; j++) bound += fabs(element(i, j)) * of_xv[j];
        right &= fabs(sum) <= 1e3 * n * 0x1p-53 * bound;
    }
    if (right) return;
    printf("wrong: %s: INFO %d\n", what, info);
    wrong++;
}

static char the_uplo, the_diag;
static double full(int i, int j) { return a[i + j * ld]; }
static double full_inverse(int i, int j) { return x[i + j * ld]; }
static double symmetric_inverse(int i, int j)
{
    return (the_uplo == 'L') == (i > j) ? x[i + j * ld] : x[j + i * ld];
}
static double triangle(int i, int j) { return op(i, j, the_uplo, 'N', the_diag); }
static double triangle_inverse(int i, int j)
{
    if (i == j && the_diag == 'U') return 1;
    return i == j || (the_uplo == 'L') == (i > j) ? x[i + j * ld] : 0;
}

static void unwritten(const char *what, const double *before)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < ld; i++)
            if (i >= n || (i == j ? the_diag == 'U' : (the_uplo == 'L') != (i > j)))
                if (!same_or_nan(x[i + j * ld], before[i + j * ld])) {
                    printf("wrong: %s %c%c wrote (%d, %d)\n", what, the_uplo, the_diag, i, j);
                    wrong++;
                    return;
                }
}

/* A zero on the diagonal is INFO, and nothing is written. */
static void of_a_zero(void)
{
    const int nrhs = NRHS, place = n - 2;
    int info;
    x[place + place * ld] = 0;
    memcpy(a, x, of_square());
    memcpy(b, y, of_columns());
    for (int routine = 0; routine < 3; routine++) {
        info = 0;
        if (routine == 0) dpotri_(&the_uplo, &n, X(), &ld, &info, 1);
        else if (routine == 1) dtrtri_(&the_uplo, "N", &n, X(), &ld, &info, 1, 1);
        else dtrtrs_(&the_uplo, "T", "N", &n, &nrhs, X(), &ld, Y(), &ld, &info, 1, 1, 1);
        home();
        if (info == place + 1 && !memcmp(a, x, of_square()) && !memcmp(b, y, of_columns())) continue;
        printf("wrong: %s of a zero: INFO %d\n", routine == 2 ? "trtrs" : routine ? "trtri" : "potri", info);
        wrong++;
    }
}

/* The factors are in x, and what they are of has that norm. The estimate is that of the inverse or less. */
static void check_condition(char letter, double norm, double of_inverse)
{
    static double work[4 * MOST];
    static int iwork[MOST];
    double rcond = -1;
    int info = -1;
    if (letter == 'U' || letter == 'L') dpocon_(&letter, &n, X(), &ld, &norm, &rcond, work, iwork, &info, 1);
    else dgecon_(&letter, &n, X(), &ld, &norm, &rcond, work, iwork, &info, 1);
    home();
    const double ratio = rcond * norm * of_inverse;
    if (info == 0 && ratio > 0.9 && ratio < 10) return;
    printf("wrong: condition %c: INFO %d, %g times the true one\n", letter, info, ratio);
    wrong++;
}

/* The largest sum of a column's elements, or of a row's. */
static double norm(double (*element)(int, int), int rows)
{
    double most = 0;
    for (int j = 0; j < n; j++) {
        double sum = 0;
        for (int i = 0; i < n; i++) sum += fabs(rows ? element(j, i) : element(i, j));
        most = fmax(most, sum);
    }
    return most;
}

static void inverses(void)
{
    static double factors[MOST * MOST];
    static double work[64 * MOST];
    const int lwork = 64 * MOST;
    int info;
    fresh(0);
    dgetrf_(&n, &n, X(), &ld, ipiv, &info);
    home();
    memcpy(factors, x, of_square());
    dgetri_(&n, X(), &ld, ipiv, work, &lwork, &info);
    home();
    check_inverse("getri", info, full, full_inverse);
    const double of_columns = norm(full_inverse, 0), of_rows = norm(full_inverse, 1);
    memcpy(x, factors, of_square());
    check_condition('1', norm(full, 0), of_columns);
    check_condition('I', norm(full, 1), of_rows);
    for (const char *how = "LNUNLUUU"; *how; how += 2) {
        the_uplo = how[0];
        the_diag = how[1];
        fresh_triangle(n, the_uplo, the_diag);
        dtrtri_(&the_uplo, &the_diag, &n, X(), &ld, &info, 1, 1);
        home();
        check_inverse("trtri", info, triangle, triangle_inverse);
        unwritten("trtri", a);
        if (the_diag == 'U') continue;
        fresh(1);
        dpotrf_(&the_uplo, &n, X(), &ld, &info, 1);
        home();
        memcpy(factors, x, of_square());
        dpotri_(&the_uplo, &n, X(), &ld, &info, 1);
        home();
        check_inverse(the_uplo == 'L' ? "potri L" : "potri U", info, full, symmetric_inverse);
        unwritten("potri", a);
        const double of_inverse = norm(symmetric_inverse, 0);
        memcpy(x, factors, of_square());
        check_condition(the_uplo, norm(full, 0), of_inverse);
        of_a_zero();
    }
}

/* Pivots whose inverses are infinite. A = L L^T for an L of small integers, of which every third row is times
   2^-535. */
static double tiny_factor(int i, int j)
{
    const double integer = i == j ? 1 + i % 2 : i > j && i < j + 5 ? (7 * i + 3 * j) % 5 - 2 : 0;
    return integer * (i % 3 ? 1 : 0x1p-535);
}
static void tiny_pivots(char uplo)
{
    int info;
    for (int i = 0; i < ld * n; i++) {
        const int row = i % ld, col = i / ld, first = (row > col ? row : col) - 4;
        a[i] = row < n ? 0 : 7;
        for (int p = first > 0 ? first : 0; row < n && p <= row && p <= col; p++)
            a[i] += tiny_factor(row, p) * tiny_factor(col, p);
    }
    memcpy(x, a, of_square());
    dpotrf_(&uplo, &n, X(), &ld, &info, 1);
    home();
    double most = 0;
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) {
            const double found = uplo == 'L' ? x[i + j * ld] : x[j + i * ld], right = tiny_factor(i, j);
            const double error = fabs(found - right) / (i % 3 ? 1 : 0x1p-535);
            most = error <= most ? most : error;         /* NaN, too */
        }
    if ((info == 0 && most <= 1e-13) || is_unreached(info)) return;
    printf("wrong: potrf %c of tiny pivots: INFO %d, error %g\n", uplo, info, most);
    wrong++;
}

static void solves(int all)
{
    const int nrhs = NRHS;
    int info;
    fresh(0);
    dgesv_(&n, &nrhs, X(), &ld, ipiv, Y(), &ld, &info);
    home();
    check("gesv", info, 0);
    if (info == 0) {
        memcpy(y, b, of_columns());
        dgetrs_("T", &n, &nrhs, X(), &ld, ipiv, Y(), &ld, &info, 1);
        home();
        check("getrs T of gesv's factors", info, 1);
    }
    fresh(0);
    dgetrf_(&n, &n, X(), &ld, ipiv, &info);
    home();
    if (info == 0) dgetrs_("n", &n, &nrhs, X(), &ld, ipiv, Y(), &ld, &info, 1);
    home();
    check("getrf, getrs", info, 0);
    for (const char *uplo = "LU"; *uplo; uplo++) {
        fresh(1);
        dposv_(uplo, &n, &nrhs, X(), &ld, Y(), &ld, &info, 1);
        home();
        check(*uplo == 'L' ? "posv L" : "posv U", info, 0);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < ld; i++)
                if (info == 0 && (i >= n || (*uplo == 'L' ? i < j : i > j))
                    && x[i + j * ld] != a[i + j * ld]) {
                    printf("wrong: posv %c wrote (%d, %d)\n", *uplo, i, j);
                    wrong++;
                }
    }
    for (int bad = 0; all && bad < n; bad += 53) {
        fresh(1);
        x[bad + bad * ld] = -1;
        dpotrf_("L", &n, X(), &ld, &info, 1);
        home();
        if (info != bad + 1 && !is_unreached(info)) {
            printf("wrong: not positive definite at %d: INFO %d\n", bad + 1, info);
            wrong++;
        }
        /* What is still queued when the verdict is known must not meet the next call. */
        fresh(1);
        x[bad + bad * ld] = -1;
        dposv_("L", &n, &nrhs, X(), &ld, Y(), &ld, &info, 1);
        home();
        if ((info != bad + 1 || memcmp(y, b, of_columns())) && !is_unreached(info)) {
            printf("wrong: posv, not positive definite at %d: INFO %d, or B is changed\n", bad + 1, info);
            wrong++;
        }
        fresh(0);
        dgesv_(&n, &nrhs, X(), &ld, ipiv, Y(), &ld, &info);
        home();
        check("gesv after a matrix that is not definite", info, 0);
    }
    if (all) tiny_pivots('L'), tiny_pivots('U');
}

/* dsgesv, or dsposv of that triangle. large: beyond single precision, so that A is factored as it is. B is in
   host memory always. */
static void refined(char uplo, int large)
{
    static double work[MOST * NRHS];
    static float single[MOST * (MOST + NRHS)];
    const int nrhs = NRHS, lu = uplo == 'G';
    int info = -1, iter = -77;
    fresh(!lu);
    for (int i = 0; i < ld * n && large; i++) x[i] = a[i] *= i % ld < n ? 0x1p130 : 1;
    for (int i = 0; i < ld * NRHS; i++) y[i] = 7;
    if (lu) dsgesv_(&n, &nrhs, X(), &ld, ipiv, b, &ld, Y(), &ld, work, single, &iter, &info);
    else dsposv_(&uplo, &n, &nrhs, X(), &ld, b, &ld, Y(), &ld, work, single, &iter, &info, 1);
    home();
    check(lu ? "dsgesv" : "dsposv", info, 0);
    if (info == -3 || (large ? iter == -2 : iter >= 0 && memcmp(x, a, of_square()) == 0)) return;
    printf("wrong: refined by %c: ITER %d\n", uplo, iter);
    wrong++;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[2] : "";
    if (argc > 1) n = atoi(argv[1]);
    ld = n + 3;
    if (n < 1 || ld > MOST) return 100;
    if (argc > 3 && !strncmp(argv[3], "device", 6)) to_device_memory(argv[3]);
    if (!strcmp(what, "inverses")) {
        inverses();
        return wrong;
    }
    if (!strcmp(what, "tall")) {
        for (int how = 0; how < 8; how++) tall(how & 1, how & 2 ? 'L' : 'U', how & 4 ? 'N' : 'T');
        return wrong;
    }
    if (strcmp(what, "triangles") && strcmp(what, "refined")) solves(!strcmp(what, "all"));
    for (int how = 0; how < 6 && *what && strcmp(what, "triangles"); how++) refined("GLU"[how % 3], how > 2);
    if (!strcmp(what, "factors") || !strcmp(what, "refined")) {
        if (matrices[0].device || matrices[1].device) printf("as it was: %d\n", as_it_was);
        return wrong;
    }
    for (int how = 0; how < 32; how++)
        triangular(how & 1, how & 2 ? 'L' : 'R', how & 4 ? 'L' : 'U', how & 8 ? 'N' : 'T',
                   how & 16 ? 'N' : 'U');
    for (int how = 0; how < 8; how++) wide(how & 1, how & 2 ? 'L' : 'U', how & 4 ? 'N' : 'T');
    for (int how = 0; how < 8; how++) tall(how & 1, how & 2 ? 'L' : 'U', how & 4 ? 'N' : 'T');
    if (!as_it_was) inverses();
    if (matrices[0].device || matrices[1].device) printf("as it was: %d\n", as_it_was);
    return wrong;
}
