/* SPDX-License-Identifier: MIT */
/* LAPACK's solvers as a Fortran or C program calls them: in four types and two widths of integers, on
   matrices of many families and shapes. Knows nothing of libgpublas. Prints a line for each type, routine and
   family with the largest residual, in units of eps n ||A|| as LAPACK's testers have it, and "wrong" lines.
   Usage: solvers WIDTHS LARGEST NAN [contained]: the widths of integers, 32, 64 or both; the largest order;
   the least order at which a NaN must be found by Cholesky; whether a NaN in a triangle must stay in what of
   the inverse depends on it, which netlib's own strtri does not always see to. If NAN is over 0 the host is
   OpenBLAS, whose own getrs puts 0 into INFO after illegal arguments. Exits with 1 if INFO, a pivot, an
   element that must not be touched, or a residual over 30 was wrong. */
#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DECLARE(p, tail, INT)                                                                             \
    void p##getrf##tail(const INT *, const INT *, void *, const INT *, INT *, INT *);                     \
    void p##getrs##tail(const char *, const INT *, const INT *, const void *, const INT *, const INT *,   \
                        void *, const INT *, INT *);                                                      \
    void p##gesv##tail(const INT *, const INT *, void *, const INT *, INT *, void *, const INT *, INT *); \
    void p##potrf##tail(const char *, const INT *, void *, const INT *, INT *);                           \
    void p##potrs##tail(const char *, const INT *, const INT *, const void *, const INT *, void *,        \
                        const INT *, INT *);                                                              \
    void p##posv##tail(const char *, const INT *, const INT *, void *, const INT *, void *, const INT *,  \
                       INT *);                                                                            \
    void p##getri##tail(const INT *, void *, const INT *, const INT *, void *, const INT *, INT *);       \
    void p##potri##tail(const char *, const INT *, void *, const INT *, INT *);                           \
    void p##lauum##tail(const char *, const INT *, void *, const INT *, INT *);                           \
    void p##trtri##tail(const char *, const char *, const INT *, void *, const INT *, INT *);             \
    void p##trtrs##tail(const char *, const char *, const char *, const INT *, const INT *, const void *, \
                        const INT *, void *, const INT *, INT *);                                         \
    void p##gecon##tail(const char *, const INT *, const void *, const INT *, const void *, void *,       \
                        void *, void *, INT *);                                                           \
    void p##pocon##tail(const char *, const INT *, const void *, const INT *, const void *, void *,       \
                        void *, void *, INT *);                                                           \
    void p##getrf2##tail(const INT *, const INT *, void *, const INT *, INT *, INT *);                    \
    void p##potrf2##tail(const char *, const INT *, void *, const INT *, INT *);                          \
    void p##laswp##tail(const INT *, void *, const INT *, const INT *, const INT *, const INT *, const INT *);
#define DECLARE_BOTH(p) DECLARE(p, _, int32_t) DECLARE(p, _64_, int64_t)
DECLARE_BOTH(s) DECLARE_BOTH(d) DECLARE_BOTH(c) DECLARE_BOTH(z)
/* Real routines have no rwork. */
#define DECLARE_REFINED(p, tail, INT)                                                                     \
    void p##gesv##tail(const INT *, const INT *, void *, const INT *, INT *, const void *, const INT *,   \
                       void *, const INT *, void *, void *, ...);                                         \
    void p##posv##tail(const char *, const INT *, const INT *, void *, const INT *, const void *,         \
                       const INT *, void *, const INT *, void *, void *, ...);
DECLARE_REFINED(ds, _, int32_t) DECLARE_REFINED(ds, _64_, int64_t)
DECLARE_REFINED(zc, _, int32_t) DECLARE_REFINED(zc, _64_, int64_t)

/* The routines of a type with integers of one width, called with addresses of 64-bit integers, whose lower
   halves a routine of the other width reads. ipiv and info are of its own width. */
typedef struct routines {
    char letter;
    int width;
    void (*getrf)(), (*getrs)(), (*gesv)(), (*potrf)(), (*potrs)(), (*posv)(), (*laswp)();
    void (*getri)(), (*trtri)(), (*trtrs)(), (*potri)(), (*lauum)();
    void (*getrf2)(), (*potrf2)(), (*gecon)(), (*pocon)();
    void (*refined_gesv)(), (*refined_posv)();       /* dsgesv, dsposv; d and z alone */
} routines;
#define REFINED(p, tail) (void (*)())p##gesv##tail, (void (*)())p##posv##tail
#define ROUTINES(p, tail, width, ...)                                                    \
    { #p[0], width, (void (*)())p##getrf##tail, (void (*)())p##getrs##tail,              \
      (void (*)())p##gesv##tail, (void (*)())p##potrf##tail, (void (*)())p##potrs##tail, \
      (void (*)())p##posv##tail, (void (*)())p##laswp##tail, (void (*)())p##getri##tail, \
      (void (*)())p##trtri##tail, (void (*)())p##trtrs##tail,                            \
      (void (*)())p##potri##tail, (void (*)())p##lauum##tail,                            \
      (void (*)())p##getrf2##tail, (void (*)())p##potrf2##tail,                          \
      (void (*)())p##gecon##tail, (void (*)())p##pocon##tail, __VA_ARGS__ }
static const routines all[] = { ROUTINES(s, _, 32, NULL, NULL),    ROUTINES(d, _, 32, REFINED(ds, _)),
                                ROUTINES(c, _, 32, NULL, NULL),    ROUTINES(z, _, 32, REFINED(zc, _)),
                                ROUTINES(s, _64_, 64, NULL, NULL), ROUTINES(d, _64_, 64, REFINED(ds, _64_)),
                                ROUTINES(c, _64_, 64, NULL, NULL), ROUTINES(z, _64_, 64, REFINED(zc, _64_)) };
static const routines *r;

typedef double complex number;

static bool is_complex(void) { return r->letter == 'c' || r->letter == 'z'; }
static bool is_single(void) { return r->letter == 's' || r->letter == 'c'; }
static double eps(void) { return is_single() ? 0x1p-24 : 0x1p-53; }
static size_t bytes(void) { return (size_t)(is_single() ? 4 : 8) * (is_complex() ? 2 : 1); }

static number get(const void *x, int64_t i)
{
    switch (r->letter) {
    case 's': return ((const float *)x)[i];
    case 'd': return ((const double *)x)[i];
    case 'c': return ((const float complex *)x)[i];
    default: return ((const double complex *)x)[i];
    }
}

static void put(void *x, int64_t i, number value)
{
    switch (r->letter) {
    case 's': ((float *)x)[i] = (float)creal(value); break;
    case 'd': ((double *)x)[i] = creal(value); break;
    case 'c': ((float complex *)x)[i] = (float complex)value; break;
    default: ((double complex *)x)[i] = value;
    }
}

static uint64_t seed = 1;
static double draw(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(int32_t)(seed >> 32) * 0x1p-31;
}
static number draw_number(void)
{
    const double re = draw();
    return is_complex() ? re + I * draw() : re;
}

/* ---- matrices: ld x n, padded with a number that must stay */

static const double PAD = 12345;
typedef struct matrix { int64_t m, n, ld; void *at; } matrix;

static matrix new_matrix(int64_t m, int64_t n, int64_t more)
{
    matrix x = { m, n, (m > 1 ? m : 1) + more, NULL };
    const size_t count = (size_t)(x.ld * (n > 1 ? n : 1));
    /* OpenBLAS 0.3.21's complex dot product reads an element behind the last, a leading dimension away. */
    x.at = malloc((count + (size_t)x.ld) * bytes());
    if (!x.at) abort();
    for (size_t i = 0; i < count; i++) put(x.at, (int64_t)i, PAD);
    return x;
}
static matrix copy_of(const matrix *x)
{
    matrix y = new_matrix(x->m, x->n, x->ld - (x->m > 1 ? x->m : 1));
    memcpy(y.at, x->at, (size_t)(x->ld * (x->n > 1 ? x->n : 1)) * bytes());
    return y;
}
static number at(const matrix *x, int64_t i, int64_t j) { return get(x->at, i + j * x->ld); }
static void set(const matrix *x, int64_t i, int64_t j, number value) { put(x->at, i + j * x->ld, value); }

static int failures;
static int64_t least_nan;
static const char *family, *routine;
static double worst;

static void wrong(const char *what, int64_t m, int64_t n, double value)
{
    failures++;
    printf("wrong: %c%s width %d, %s, %lld x %lld: %s (%g)\n", r->letter, routine, r->width, family,
           (long long)m, (long long)n, what, value);
}

static void check_padding(const matrix *x)
{
    for (int64_t j = 0; j < x->n; j++)
        for (int64_t i = x->m; i < x->ld; i++)
            if (at(x, i, j) != PAD) {
                wrong("wrote below the matrix", x->m, x->n, (double)i);
                return;
            }
}

/* A residual in units of eps n ||A||; NaN is wrong. */
static void check_residual(double residual, double norm, const matrix *x)
{
    const double ratio = residual == 0 ? 0 : residual / norm / (double)(x->n > 1 ? x->n : 1) / eps() / 2;
    if (!(ratio < 30)) wrong("residual", x->m, x->n, ratio);
    if (ratio > worst && x->n > 30) worst = ratio;      /* that of a few rows is chance */
}

/* The largest sum of a column's absolute values. */
static double norm_of(const matrix *x)
{
    double largest = 0;
    for (int64_t j = 0; j < x->n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < x->m; i++) sum += cabs(at(x, i, j));
        if (!(sum <= largest)) largest = sum;
    }
    return largest;
}

/* ---- families of matrices */

static void random_entries(const matrix *x)
{
    for (int64_t j = 0; j < x->n; j++)
        for (int64_t i = 0; i < x->m; i++) set(x, i, j, draw_number());
}
static void graded_rows(const matrix *x)
{
    for (int64_t j = 0; j < x->n; j++)
        for (int64_t i = 0; i < x->m; i++) set(x, i, j, ldexp(1, (int)(i * 37 % 81) - 40) * draw_number());
}
static void graded_columns(const matrix *x)
{
    for (int64_t j = 0; j < x->n; j++)
        for (int64_t i = 0; i < x->m; i++) set(x, i, j, ldexp(1, (int)(j * 37 % 81) - 40) * draw_number());
}
/* The pivots of the first 20 columns double: a growth of 2^20. */
static void wilkinson(const matrix *x)
{
    for (int64_t j = 0; j < x->n; j++)
        for (int64_t i = 0; i < x->m; i++)
            set(x, i, j, i == j ? 1 : j == x->n - 1 ? 1 : i > j && j < 20 ? -1 : 0);
}
static void hilbert(const matrix *x)
{
    for (int64_t j = 0; j < x->n; j++)
        for (int64_t i = 0; i < x->m; i++) set(x, i, j, 1.0 / (double)(i + j + 1));
}
static void kahan(const matrix *x)
{
    for (int64_t j = 0; j < x->n; j++)
        for (int64_t i = 0; i < x->m; i++)
            set(x, i, j, i > j ? 0 : pow(0.6, (double)(i < 60 ? i : 60)) * (i == j ? 1 : -0.8));
}
static const struct { const char *name; void (*fill)(const matrix *); bool solvable; } families[] = {
    { "random", random_entries, true },      { "graded rows", graded_rows, true },
    { "graded columns", graded_columns, true }, { "growth", wilkinson, false },
    { "Hilbert", hilbert, false },           { "Kahan", kahan, false } };
enum { FAMILIES = sizeof families / sizeof *families };

/* ---- LU */

static int64_t integer(const void *from, int64_t i)
{
    return r->width == 64 ? ((const int64_t *)from)[i] : ((const int32_t *)from)[i];
}

static int64_t getrf(const matrix *a, void *ipiv)
{
    int64_t info = -77;
    r->getrf(&a->m, &a->n, a->at, &a->ld, ipiv, &info);
    return integer(&info, 0);
}

static int64_t order_of(const matrix *x) { return x->m < x->n ? x->m : x->n; }

static int64_t *new_pivots(int64_t order)
{
    int64_t *ipiv = malloc((size_t)(order + 1) * sizeof *ipiv);
    if (!ipiv) abort();
    for (int64_t i = 0; i <= order; i++) ipiv[i] = -1;
    return ipiv;
}

static void check_pivots(const matrix *lu, const void *ipiv)
{
    const int64_t order = order_of(lu);
    for (int64_t i = 0; i < order; i++)
        if (integer(ipiv, i) < i + 1 || integer(ipiv, i) > lu->m) {
            wrong("a pivot", lu->m, lu->n, (double)i);
            return;
        }
    if (integer(ipiv, order) != -1) wrong("a pivot too many", lu->m, lu->n, (double)order);
    const double bound = is_complex() ? sqrt(2) * (1 + 4 * eps()) : 1;
    for (int64_t j = 0; j < order; j++)
        for (int64_t i = j + 1; i < lu->m; i++)
            if (cabs(at(lu, i, j)) > bound) {
                wrong("an element of L over 1", lu->m, lu->n, cabs(at(lu, i, j)));
                return;
            }
}

/* max |P A - L U| by columns. */
static double lu_residual(const matrix *a, const matrix *lu, const void *ipiv)
{
    const int64_t order = order_of(lu);
    matrix rest = copy_of(a);
    for (int64_t i = 0; i < order; i++) {
        const int64_t other = integer(ipiv, i) - 1;
        for (int64_t j = 0; j < a->n && other != i; j++) {
            const number kept = at(&rest, i, j);
            set(&rest, i, j, at(&rest, other, j));
            set(&rest, other, j, kept);
        }
    }
    double largest = 0;
    long double complex *column = malloc((size_t)(a->m + 1) * sizeof *column);
    for (int64_t j = 0; j < a->n; j++) {
        for (int64_t i = 0; i < a->m; i++) column[i] = at(&rest, i, j);
        for (int64_t p = 0; p < order && p <= j; p++) {
            const long double complex u = at(lu, p, j);
            column[p] -= u;
            for (int64_t i = p + 1; i < a->m; i++) column[i] -= (long double complex)at(lu, i, p) * u;
        }
        double sum = 0;
        for (int64_t i = 0; i < a->m; i++) sum += cabs((number)column[i]);
        if (!(sum <= largest)) largest = sum;
    }
    free(column);
    free(rest.at);
    return largest;
}

/* The factors by that routine: getrf or getrf2. */
static void test_lu(int64_t m, int64_t n, int f, bool second)
{
    routine = second ? "getrf2" : "getrf";
    family = families[f].name;
    matrix a = new_matrix(m, n, 3);
    families[f].fill(&a);
    matrix lu = copy_of(&a);
    int64_t *ipiv = new_pivots(order_of(&a));
    int64_t info = 0;
    if (!second) info = getrf(&lu, ipiv);
    else r->getrf2(&m, &n, lu.at, &lu.ld, ipiv, &info);
    info = integer(&info, 0);
    if (info != 0 && !(m > 0 && n > 0 && (f >= 3))) wrong("INFO", m, n, (double)info);
    check_padding(&lu);
    check_pivots(&lu, ipiv);
    if (m && n) check_residual(lu_residual(&a, &lu, ipiv), norm_of(&a), &a);
    free(a.at);
    free(lu.at);
    free(ipiv);
}

/* A column of zeros: its pivot is exactly 0, and the factorisation is completed. */
static void test_singular(int64_t m, int64_t n, int64_t zero)
{
    routine = "getrf";
    family = "singular";
    matrix a = new_matrix(m, n, 1);
    random_entries(&a);
    for (int64_t i = 0; i < m; i++) set(&a, i, zero, 0);
    if (zero + 3 < n)
        for (int64_t i = 0; i < m; i++) set(&a, i, zero + 3, 0);
    matrix lu = copy_of(&a);
    int64_t *ipiv = new_pivots(order_of(&a));
    const int64_t info = getrf(&lu, ipiv), wanted = zero < order_of(&a) ? zero + 1 : 0;
    if (info != wanted) wrong("INFO", m, n, (double)info);
    check_pivots(&lu, ipiv);
    check_residual(lu_residual(&a, &lu, ipiv), norm_of(&a), &a);
    free(a.at);
    free(lu.at);
    free(ipiv);
}

/* op(A) X - B by columns, over ||op(A)|| ||X||. */
static double system_residual(const matrix *a, char trans, const matrix *x, const matrix *b)
{
    double largest = 0;
    const double norm = norm_of(a);
    for (int64_t l = 0; l < x->n; l++) {
        double sum = 0, size = 0;
        for (int64_t i = 0; i < a->n; i++) {
            long double complex rest = at(b, i, l);
            for (int64_t j = 0; j < a->n; j++) {
                const number value = trans == 'N' ? at(a, i, j) : trans == 'T' ? at(a, j, i)
                                                                               : conj(at(a, j, i));
                rest -= (long double complex)value * at(x, j, l);
            }
            sum += cabs((number)rest);
            size += cabs(at(x, i, l));
        }
        const double ratio = sum == 0 ? 0 : sum / size / norm;
        if (!(ratio <= largest)) largest = ratio;
    }
    return largest;
}

/* getrf and getrs with each letter, and gesv. */
static void test_systems(int64_t n, int64_t nrhs, int f)
{
    family = families[f].name;
    matrix a = new_matrix(n, n, 2), b = new_matrix(n, nrhs, 4);
    families[f].fill(&a);
    random_entries(&b);
    matrix lu = copy_of(&a);
    int64_t *ipiv = new_pivots(n), info = -77;
    getrf(&lu, ipiv);
    routine = "getrs";
    for (const char *trans = "NTCn"; *trans; trans++) {
        matrix x = copy_of(&b), kept = copy_of(&lu);
        r->getrs(trans, &n, &nrhs, lu.at, &lu.ld, ipiv, x.at, &x.ld, &info);
        if (integer(&info, 0)) wrong("INFO", n, nrhs, (double)integer(&info, 0));
        if (memcmp(kept.at, lu.at, (size_t)(lu.ld * (n > 1 ? n : 1)) * bytes())) wrong("wrote A", n, nrhs, 0);
        check_padding(&x);
        check_residual(system_residual(&a, *trans == 'n' ? 'N' : *trans, &x, &b), 1, &a);
        free(x.at);
        free(kept.at);
    }
    routine = "gesv";
    matrix both = copy_of(&a), x = copy_of(&b);
    int64_t *again = new_pivots(n);
    info = -77;
    r->gesv(&n, &nrhs, both.at, &both.ld, again, x.at, &x.ld, &info);
    if (integer(&info, 0)) wrong("INFO", n, nrhs, (double)integer(&info, 0));
    check_padding(&both);
    check_padding(&x);
    if (nrhs) check_pivots(&both, again);           /* without right-hand sides OpenBLAS does not factor */
    check_residual(system_residual(&a, 'N', &x, &b), 1, &a);
    free(a.at); free(b.at); free(lu.at); free(both.at); free(x.at);
    free(ipiv); free(again);
}

/* ---- Cholesky */

/* M^H M / n + 1, graded by 2^+-10 on both sides if `graded`; NaN in the other triangle. */
static matrix positive(int64_t n, char uplo, bool graded)
{
    matrix m = new_matrix(n, n, 0), a = new_matrix(n, n, 2);
    random_entries(&m);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            number sum = i == j;
            const bool stored = uplo == 'U' ? i <= j : i >= j;
            for (int64_t p = 0; p < n && stored; p++) sum += conj(at(&m, p, i)) * at(&m, p, j) / (double)n;
            if (graded) sum *= ldexp(1, (int)(i * 37 % 21 + j * 37 % 21) - 20);
            set(&a, i, j, stored ? sum : (number)NAN);
            if (i == j && is_complex()) set(&a, i, j, creal(sum));
        }
    free(m.at);
    return a;
}

/* The stored triangle's element, or its mirror image. */
static number full(const matrix *a, char uplo, int64_t i, int64_t j)
{
    const bool stored = uplo == 'U' ? i <= j : i >= j;
    return stored ? at(a, i, j) : conj(at(a, j, i));
}

static matrix full_matrix(const matrix *a, char uplo)
{
    matrix whole = new_matrix(a->n, a->n, 0);
    for (int64_t j = 0; j < a->n; j++)
        for (int64_t i = 0; i < a->n; i++) set(&whole, i, j, full(a, uplo, i, j));
    return whole;
}

static void check_other_triangle(const matrix *a, char uplo)
{
    for (int64_t j = 0; j < a->n; j++)
        for (int64_t i = 0; i < a->n; i++)
            if ((uplo == 'U' ? i > j : i < j) && !isnan(creal(at(a, i, j)))) {
                wrong("wrote the other triangle", a->n, a->n, 0);
                return;
            }
}

static double cholesky_residual(const matrix *a, const matrix *l, char uplo)
{
    double largest = 0;
    for (int64_t j = 0; j < a->n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < a->n; i++) {
            const int64_t last = i < j ? i : j;
            long double complex rest = full(a, uplo, i, j);
            for (int64_t p = 0; p <= last; p++)
                rest -= uplo == 'L' ? (long double complex)at(l, i, p) * conj(at(l, j, p))
                                    : (long double complex)conj(at(l, p, i)) * at(l, p, j);
            sum += cabs((number)rest);
        }
        if (!(sum <= largest)) largest = sum;
    }
    return largest;
}

static void test_cholesky(int64_t n, int64_t nrhs, char uplo, bool graded)
{
    family = graded ? "positive, graded" : "positive";
    routine = "potrf";
    matrix a = positive(n, uplo, graded), whole = full_matrix(&a, uplo), l = copy_of(&a);
    int64_t info = -77;
    r->potrf(&uplo, &n, l.at, &l.ld, &info);
    if (integer(&info, 0)) wrong("INFO", n, n, (double)integer(&info, 0));
    check_padding(&l);
    check_other_triangle(&l, uplo);
    if (n) check_residual(cholesky_residual(&a, &l, uplo), norm_of(&whole), &a);
    routine = "potrf2";
    matrix again = copy_of(&a);
    r->potrf2(&uplo, &n, again.at, &again.ld, &info);
    if (integer(&info, 0)) wrong("INFO", n, n, (double)integer(&info, 0));
    check_other_triangle(&again, uplo);
    if (n) check_residual(cholesky_residual(&a, &again, uplo), norm_of(&whole), &a);
    free(again.at);
    matrix b = new_matrix(n, nrhs, 3);
    random_entries(&b);
    for (int both = 0; both < 2; both++) {
        routine = both ? "posv" : "potrs";
        matrix x = copy_of(&b), factors = copy_of(both ? &a : &l);
        info = -77;
        if (both) r->posv(&uplo, &n, &nrhs, factors.at, &factors.ld, x.at, &x.ld, &info);
        else r->potrs(&uplo, &n, &nrhs, factors.at, &factors.ld, x.at, &x.ld, &info);
        if (integer(&info, 0)) wrong("INFO", n, nrhs, (double)integer(&info, 0));
        check_padding(&x);
        check_other_triangle(&factors, uplo);
        if (n) check_residual(system_residual(&whole, 'N', &x, &b), 1, &a);
        free(x.at);
        free(factors.at);
    }
    free(a.at); free(whole.at); free(l.at); free(b.at);
}

/* A diagonal element that makes that leading minor not positive, or not a number. */
static void test_indefinite(int64_t n, char uplo, int64_t bad, double value)
{
    if (isnan(value) && n < least_nan) return;
    family = "not positive";
    for (int both = 0; both < 2; both++) {
        routine = both ? "posv" : "potrf";
        matrix a = positive(n, uplo, false), b = new_matrix(n, 2, 0), kept = copy_of(&b);
        set(&a, bad, bad, value);
        int64_t info = -77;
        const int64_t nrhs = 2;
        if (both) r->posv(&uplo, &n, &nrhs, a.at, &a.ld, b.at, &b.ld, &info);
        else r->potrf(&uplo, &n, a.at, &a.ld, &info);
        if (integer(&info, 0) != bad + 1) wrong("INFO", n, bad, (double)integer(&info, 0));
        check_other_triangle(&a, uplo);
        if (memcmp(b.at, kept.at, (size_t)(b.ld * 2) * bytes())) wrong("wrote B", n, bad, 0);
        free(a.at); free(b.at); free(kept.at);
    }
}

/* ---- systems by single precision, refined */

/* gesv or, of a triangle, posv, with those sizes. Returns INFO. */
static int64_t refine(char uplo, int64_t n, int64_t nrhs, void *a, int64_t lda, void *ipiv, const void *b,
                      int64_t ldb, void *x, int64_t ldx, int64_t *iter)
{
    const int64_t rows = n > 0 ? n : 0, cols = nrhs > 0 ? nrhs : 0;
    matrix work = new_matrix(rows, cols, 0), swork = new_matrix(rows, rows + cols, 0);
    double *rwork = malloc((size_t)(rows + 1) * sizeof *rwork);
    int64_t info = -77, count = -77;
    if (is_complex() && uplo == 'G')
        r->refined_gesv(&n, &nrhs, a, &lda, ipiv, b, &ldb, x, &ldx, work.at, swork.at, rwork, &count, &info);
    else if (uplo == 'G')
        r->refined_gesv(&n, &nrhs, a, &lda, ipiv, b, &ldb, x, &ldx, work.at, swork.at, &count, &info);
    else if (is_complex())
        r->refined_posv(&uplo, &n, &nrhs, a, &lda, b, &ldb, x, &ldx, work.at, swork.at, rwork, &count, &info);
    else
        r->refined_posv(&uplo, &n, &nrhs, a, &lda, b, &ldb, x, &ldx, work.at, swork.at, &count, &info);
    free(work.at); free(swork.at); free(rwork);
    *iter = integer(&count, 0);
    return integer(&info, 0);
}

/* What netlib promises of each column: max |B - A X| <= sqrt(n) ||A|| max |X| eps, the norm of rows. Returns
   the largest quotient of both sides. */
static double refined_residual(const matrix *a, const matrix *x, const matrix *b)
{
    double norm = 0, largest = 0;
    for (int64_t i = 0; i < a->n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < a->n; j++) sum += cabs(at(a, i, j));
        if (!(sum <= norm)) norm = sum;
    }
    for (int64_t l = 0; l < x->n; l++) {
        double rest = 0, size = 0;
        for (int64_t i = 0; i < a->n; i++) {
            long double complex of_row = at(b, i, l);
            for (int64_t j = 0; j < a->n; j++) of_row -= (long double complex)at(a, i, j) * at(x, j, l);
            rest = fmax(rest, cabs((number)of_row));
            size = fmax(size, cabs(at(x, i, l)));
        }
        const double ratio = rest == 0 ? 0 : rest / size / norm / sqrt((double)a->n) / eps();
        if (!(ratio <= largest)) largest = ratio;
    }
    return largest;
}

enum special { PLAIN, SINGULAR, NEARLY, BEYOND, BEYOND_B, NOT_A_NUMBER, NOT_A_NUMBER_B, INFINITE, ZERO_B,
               LOST_B, SPECIALS };
static const char *const specials[] = { "",        "singular", "nearly singular", "beyond single",
                                        "B beyond single", "NaN",  "NaN in B", "infinite", "B = 0",
                                        "a column of B is 0 in single precision, whose pivots are infinite" };

/* A column of zeros, or a diagonal element that is not positive; and so on. */
static void spoil(enum special how, bool lu, const matrix *a, const matrix *b)
{
    const int64_t n = a->n, bad = n / 2;
    for (int64_t i = 0; i < n && lu && how == SINGULAR; i++) set(a, i, bad, 0);
    if (!lu && how == SINGULAR) set(a, bad, bad, -1);
    for (int64_t i = 0; i < n && lu && how == NEARLY && n > 1; i++)
        set(a, i, bad, at(a, i, bad - 1) + 1e-12 * draw_number());
    if (how == BEYOND) set(a, bad, bad, 1e39);
    if (how == BEYOND_B) set(b, bad, 0, -1e39);
    if (how == NOT_A_NUMBER) set(a, bad, bad, NAN);
    if (how == NOT_A_NUMBER_B) set(b, bad, 0, NAN);
    if (how == INFINITE) set(a, bad, bad, INFINITY);
    for (int64_t j = 0; j < n && lu && how == LOST_B; j++)
        for (int64_t i = 0; i < n; i++) set(a, i, j, j == n - 1 ? 0x1p60 : i == j ? 1 : i > j ? -1 : 0);
    for (int64_t i = 0; i < n && how == LOST_B; i++) set(b, i, 0, 1e-304 * at(b, i, 0));
    for (int64_t l = 0; l < b->n && how == ZERO_B; l++)
        for (int64_t i = 0; i < n; i++) set(b, i, l, 0);
}

static bool all_numbers(const matrix *x)
{
    bool all = true;
    for (int64_t j = 0; j < x->n; j++)
        for (int64_t i = 0; i < x->m; i++)
            all &= isfinite(creal(at(x, i, j))) && isfinite(cimag(at(x, i, j)));
    return all;
}

static void check_iter(enum special how, bool lu, int64_t iter, const matrix *x)
{
    const bool beyond = how == BEYOND || how == BEYOND_B || how == INFINITE;
    const bool possible = (iter >= -3 && iter <= 30) || iter == -31;
    /* -1: the host never tries single precision. */
    if (!possible || (beyond && iter != -2 && iter != -1) || (how == SINGULAR && iter != -3 && iter != -1)
        || (how == ZERO_B && lu && iter > 0))
        wrong("ITER", x->m, x->n, (double)iter);
}

/* These take long, so not every order has them. */
static bool refines(int64_t n) { return r->refined_gesv && n != 3 && n != 64; }

static void test_refined(int64_t n, int64_t nrhs, char uplo, int f, enum special how)
{
    const bool lu = uplo == 'G', odd = how == NOT_A_NUMBER || how == NOT_A_NUMBER_B || how == INFINITE;
    static char name[64];                                  /* report prints it */
    snprintf(name, sizeof name, "%s %s", families[f].name, specials[how]);
    routine = lu ? "refined gesv" : "refined posv";
    family = name;
    matrix a = lu ? new_matrix(n, n, 2) : positive(n, uplo, f > 0), b = new_matrix(n, nrhs, 4);
    matrix x = new_matrix(n, nrhs, 1);
    if (lu) families[f].fill(&a);
    random_entries(&b);
    if (n && nrhs) spoil(how, lu, &a, &b);
    matrix whole = lu ? copy_of(&a) : full_matrix(&a, uplo), kept = copy_of(&a), given = copy_of(&b);
    int64_t *ipiv = new_pivots(n), iter;
    const int64_t info = refine(uplo, n, nrhs, a.at, a.ld, ipiv, b.at, b.ld, x.at, x.ld, &iter);
    const int64_t wanted = how == SINGULAR && n ? n / 2 + 1 : 0;
    if (!odd && info != wanted) wrong("INFO", n, nrhs, (double)info);
    if (n && nrhs) check_iter(how, lu, iter, &x);
    if (iter >= 0 && memcmp(a.at, kept.at, (size_t)(a.ld * n) * bytes())) wrong("wrote A", n, nrhs, 0);
    if (!odd && lu && iter < 0 && n && how != BEYOND && how != LOST_B)
        check_residual(lu_residual(&whole, &a, ipiv), norm_of(&whole), &whole);
    for (int64_t i = 0; i < n && lu && nrhs; i++)
        if (integer(ipiv, i) < i + 1 || integer(ipiv, i) > n) {
            wrong("a pivot", n, nrhs, (double)i);
            break;
        }
    if (!lu) check_other_triangle(&a, uplo);
    if (memcmp(b.at, given.at, (size_t)(b.ld * nrhs) * bytes())) wrong("wrote B", n, nrhs, 0);
    check_padding(&a);
    check_padding(&x);
    /* Pivots that grow by 2^n are not accurate in double precision, either. */
    const bool accurate = n && nrhs && !odd && !info && !(lu && how == LOST_B);
    const double ratio = accurate ? refined_residual(&whole, &x, &b) : 0;
    /* Of one row the limit is an eps, which rounding of a solve by Cholesky exceeds (netlib: 2.4). */
    if (!(ratio < (n < 3 ? 4 : 2))) wrong("over netlib's limit", n, nrhs, ratio);
    /* netlib's own dsgesv takes a NaN for a solution, and answers where calls are verified, too. */
    const char *offload = getenv("GPUBLAS_OFFLOAD");
    const bool ours = offload && !strcmp(offload, "always") && !getenv("GPUBLAS_VERIFY");
    if (how == LOST_B && ours && !all_numbers(&x)) wrong("NaN", n, nrhs, 0);
    if (odd && n && nrhs && !info && how != INFINITE && all_numbers(&x)) wrong("no NaN", n, nrhs, 0);
    free(a.at); free(b.at); free(x.at); free(whole.at); free(kept.at); free(given.at); free(ipiv);
}

/* ---- inverses */

/* max ||A X - 1|| by columns over ||A|| ||X||. */
static double inverse_residual(const matrix *a, const matrix *x)
{
    double largest = 0;
    for (int64_t j = 0; j < a->n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < a->n; i++) {
            long double complex rest = i == j;
            for (int64_t p = 0; p < a->n; p++) rest -= (long double complex)at(a, i, p) * at(x, p, j);
            sum += cabs((number)rest);
        }
        if (!(sum <= largest)) largest = sum;
    }
    return a->n ? largest / norm_of(a) / norm_of(x) : 0;
}

/* By the least work, by more, and by what the routine asks for. */
static void test_inverse(int64_t n, int f)
{
    family = families[f].name;
    routine = "getri";
    for (int64_t blocks = 0; blocks <= 5; blocks += blocks ? 4 : 1) {
        matrix a = new_matrix(n, n, 2), lu;
        families[f].fill(&a);
        lu = copy_of(&a);
        int64_t *ipiv = new_pivots(n), info = -77, lwork = -1;
        char ask[16];
        getrf(&lu, ipiv);
        r->getri(&n, lu.at, &lu.ld, ipiv, ask, &lwork, &info);
        const int64_t best = (int64_t)creal(get(ask, 0)), least = n > 1 ? n : 1;
        if (integer(&info, 0) || best < n) wrong("the best size of work", n, n, (double)best);
        lwork = blocks ? blocks * least : best > least ? best : least;
        matrix work = new_matrix(lwork, 1, 1);
        info = -77;
        r->getri(&n, lu.at, &lu.ld, ipiv, work.at, &lwork, &info);
        if (integer(&info, 0)) wrong("INFO", n, n, (double)integer(&info, 0));
        check_padding(&lu);
        check_padding(&work);
        if (creal(at(&work, 0, 0)) < (double)n) wrong("work's first element", n, n, creal(at(&work, 0, 0)));
        check_residual(inverse_residual(&a, &lu), 1, &a);
        free(a.at); free(lu.at); free(work.at); free(ipiv);
    }
}

/* Hilbert's with as much on the diagonal as keeps it positive. Its inverse is right only if the triangle's
   inverse is one from the side that the product with its adjoint needs. */
static matrix positive_hilbert(int64_t n, char uplo)
{
    matrix a = positive(n, uplo, false);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++)
            if (uplo == 'U' ? i <= j : i >= j)
                set(&a, i, j, 1.0 / (double)(i + j + 1) + (i == j ? 8 * (double)n * eps() : 0));
    return a;
}

/* potri of the factors of a positive matrix; lauum of the same triangle against plain sums. */
static void test_positive_inverse(int64_t n, char uplo, bool hilberts)
{
    family = hilberts ? "Hilbert, positive" : "positive";
    routine = "potri";
    matrix a = hilberts ? positive_hilbert(n, uplo) : positive(n, uplo, false);
    matrix whole = full_matrix(&a, uplo), x = copy_of(&a), l, square;
    int64_t info = -77;
    r->potrf(&uplo, &n, x.at, &x.ld, &info);
    l = copy_of(&x);
    info = -77;
    r->potri(&uplo, &n, x.at, &x.ld, &info);
    if (integer(&info, 0)) wrong("INFO", n, n, (double)integer(&info, 0));
    check_padding(&x);
    check_other_triangle(&x, uplo);
    matrix inverse = full_matrix(&x, uplo);
    check_residual(inverse_residual(&whole, &inverse), 1, &a);
    for (int64_t i = 0; i < n && is_complex(); i++)
        if (cimag(at(&x, i, i)) != 0) wrong("not real", n, i, cimag(at(&x, i, i)));
    routine = "lauum";
    square = copy_of(&l);
    info = -77;
    r->lauum(&uplo, &n, square.at, &square.ld, &info);
    if (integer(&info, 0)) wrong("INFO", n, n, (double)integer(&info, 0));
    check_padding(&square);
    check_other_triangle(&square, uplo);
    double largest = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            const bool stored = uplo == 'U' ? i <= j : i >= j;
            long double complex sum = 0;
            double size = 0;
            for (int64_t p = i > j ? i : j; p < n && stored; p++) {
                const number left = uplo == 'L' ? conj(at(&l, p, i)) : at(&l, i, p);
                const number right = uplo == 'L' ? at(&l, p, j) : conj(at(&l, j, p));
                sum += (long double complex)left * right;
                size += cabs(left) * cabs(right);
            }
            const double error = stored ? cabs((number)(sum - at(&square, i, j))) / size : 0;
            if (!(error <= largest)) largest = error;
            if (i == j && is_complex() && cimag(at(&square, i, i)) != 0) wrong("not real", n, i, 0);
        }
    if (n) check_residual(largest, 1, &a);
    if (n > 2) {
        family = "singular";
        routine = "potri";
        set(&l, n / 2, n / 2, 0);
        info = -77;
        r->potri(&uplo, &n, l.at, &l.ld, &info);
        if (integer(&info, 0) != n / 2 + 1) wrong("INFO", n, n, (double)integer(&info, 0));
    }
    free(a.at); free(whole.at); free(x.at); free(l.at); free(square.at); free(inverse.at);
}

/* ---- condition numbers */

static double norm_of_rows(const matrix *x)
{
    double largest = 0;
    for (int64_t i = 0; i < x->m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < x->n; j++) sum += cabs(at(x, i, j));
        if (!(sum <= largest)) largest = sum;
    }
    return largest;
}

/* rcond by gecon ('1', 'O', 'I') or pocon ('U', 'L'). */
static double reciprocal(char letter, const matrix *factors, double norm, int64_t *info)
{
    const bool lu = strchr("1OIoi", letter) != NULL;
    const float single = (float)norm;
    float of_single = -1;
    double of_double = -1;
    matrix work = new_matrix(4 * factors->n, 1, 1), other = new_matrix(2 * factors->n, 1, 1);
    *info = -77;
    (lu ? r->gecon : r->pocon)(&letter, &factors->n, factors->at, &factors->ld,
                               is_single() ? (const void *)&single : &norm,
                               is_single() ? (void *)&of_single : &of_double, work.at, other.at, info);
    *info = integer(info, 0);
    check_padding(&work);
    check_padding(&other);
    free(work.at);
    free(other.at);
    return is_single() ? of_single : of_double;
}

/* What is estimated is a column of the inverse or a mean of some: never more than the norm, and seldom less
   than a third of it. */
static void check_condition(char letter, const matrix *factors, double norm, double of_inverse)
{
    int64_t info;
    const double found = reciprocal(letter, factors, norm, &info), wanted = 1 / norm / of_inverse;
    if (info) wrong("INFO", factors->n, factors->n, (double)info);
    if (!(found >= 0.9 * wanted && found <= 10 * wanted))
        wrong("rcond over the true one", factors->n, factors->n, found / wanted);
}

static void test_condition(int64_t n, int f)
{
    family = families[f].name;
    routine = "gecon";
    matrix a = new_matrix(n, n, 2), lu, inverse;
    families[f].fill(&a);
    lu = copy_of(&a);
    int64_t *ipiv = new_pivots(n), info, lwork = n;
    getrf(&lu, ipiv);
    inverse = copy_of(&lu);
    matrix work = new_matrix(n, 1, 0), kept = copy_of(&lu);
    r->getri(&n, inverse.at, &inverse.ld, ipiv, work.at, &lwork, &info);
    for (const char *norm = "1OIoi"; *norm; norm++) {
        const bool rows = *norm == 'I' || *norm == 'i';
        check_condition(*norm, &lu, rows ? norm_of_rows(&a) : norm_of(&a),
                        rows ? norm_of_rows(&inverse) : norm_of(&inverse));
    }
    if (memcmp(kept.at, lu.at, (size_t)(lu.ld * n) * bytes())) wrong("wrote A", n, n, 0);
    const double zero = reciprocal('1', &lu, 0, &info);
    if (zero != 0 || info) wrong("rcond of norm 0", n, n, zero);
    set(&lu, n / 2, n / 2, 0);
    const double singular = reciprocal('I', &lu, 1, &info);
    if (singular != 0 || info) wrong("rcond of a singular matrix", n, n, singular);
    /* Real hosts divide by it and see nothing. */
    set(&lu, n / 2, n / 2, INFINITY);
    const double infinite = reciprocal('1', &lu, 1, &info);
    if (is_complex() && infinite > 0) wrong("rcond of factors with an infinity", n, n, infinite);
    free(a.at); free(lu.at); free(inverse.at); free(kept.at); free(work.at); free(ipiv);
}

static void test_positive_condition(int64_t n, char uplo, bool graded)
{
    family = graded ? "positive, graded" : "positive";
    routine = "pocon";
    matrix a = positive(n, uplo, graded), whole = full_matrix(&a, uplo), l = copy_of(&a), x;
    int64_t info;
    r->potrf(&uplo, &n, l.at, &l.ld, &info);
    x = copy_of(&l);
    r->potri(&uplo, &n, x.at, &x.ld, &info);
    matrix inverse = full_matrix(&x, uplo), kept = copy_of(&l);
    check_condition(uplo, &l, norm_of(&whole), norm_of(&inverse));
    if (memcmp(kept.at, l.at, (size_t)(l.ld * n) * bytes())) wrong("wrote A", n, n, 0);
    /* gecon tells in INFO of norms that are not finite, from some version on; pocon in none. */
    const double of_inf = reciprocal(uplo, &l, INFINITY, &info);
    if (of_inf != 0 || info) wrong("rcond of an infinite norm", n, n, (double)info);
    const double of_nan = reciprocal(uplo, &l, NAN, &info);
    if (!isnan(of_nan) || info) wrong("rcond of a norm that is NaN", n, n, (double)info);
    set(&l, n / 2, n / 2, 0);
    const double singular = reciprocal(uplo, &l, 1, &info);
    if (singular != 0 || info) wrong("rcond of a singular matrix", n, n, singular);
    free(a.at); free(whole.at); free(l.at); free(x.at); free(inverse.at); free(kept.at);
}

/* Factors whose solves leave the range of the type, though not its results; and those whose results do. */
static void test_range(int64_t n)
{
    family = "out of range";
    const double huge = is_single() ? 0x1p100 : 0x1p1000;
    for (int which = 0; which < 2; which++) {
        routine = which ? "pocon" : "gecon";
        matrix l = new_matrix(n, n, 0);
        int64_t info;
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < n; i++)
                set(&l, i, j, i == j ? 1 : which ? NAN : 0);
        for (int64_t j = 0; which && j < n; j++)
            for (int64_t i = j + 1; i < n; i++) set(&l, i, j, 0);
        set(&l, n - 1, n - 1, 1 / huge);
        double found = reciprocal(which ? 'L' : '1', &l, 1, &info);
        const double wanted = which ? 0 : 1 / huge;
        if (info || !(found <= 3 * wanted && found >= wanted / 3)) wrong("rcond of 1 / huge", n, n, found);
        set(&l, n - 1, 0, huge);           /* huge, taken from huge, over 1 / huge */
        found = reciprocal(which ? 'L' : '1', &l, 1, &info);
        if (info || found != 0) wrong("rcond beneath the range", n, n, found);
        free(l.at);
    }
}

/* A well-conditioned triangle, with NaN where nothing is to be read. */
static matrix triangle(int64_t n, char uplo, char diag)
{
    matrix a = new_matrix(n, n, 2);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < n; i++) {
            const bool stored = uplo == 'U' ? i < j : i > j;
            set(&a, i, j, stored ? draw_number() / 8 : i == j && diag == 'N' ? 1.5 + draw() / 2 : NAN);
        }
    return a;
}

/* op(A) as a full matrix. */
static matrix full_triangle(const matrix *a, char uplo, char diag, char trans)
{
    matrix whole = new_matrix(a->n, a->n, 0);
    for (int64_t j = 0; j < a->n; j++)
        for (int64_t i = 0; i < a->n; i++) {
            const bool stored = uplo == 'U' ? i < j : i > j;
            const number x = i == j && diag == 'U' ? 1 : stored || i == j ? at(a, i, j) : 0;
            if (trans == 'N') set(&whole, i, j, x);
            else set(&whole, j, i, trans == 'C' ? conj(x) : x);
        }
    return whole;
}

static void test_triangle(int64_t n, char uplo, char diag)
{
    static char kind[] = "triangle U N";
    kind[9] = uplo;
    kind[11] = diag;
    family = kind;
    routine = "trtri";
    matrix a = triangle(n, uplo, diag), x = copy_of(&a);
    int64_t info = -77;
    r->trtri(&uplo, &diag, &n, x.at, &x.ld, &info);
    if (integer(&info, 0)) wrong("INFO", n, n, (double)integer(&info, 0));
    check_padding(&x);
    check_other_triangle(&x, uplo);
    for (int64_t i = 0; i < n && diag == 'U'; i++)
        if (!isnan(creal(at(&x, i, i)))) wrong("wrote a unit diagonal", n, i, 0);
    matrix whole = full_triangle(&a, uplo, diag, 'N'), inverse = full_triangle(&x, uplo, diag, 'N');
    check_residual(inverse_residual(&whole, &inverse), 1, &a);
    free(whole.at); free(inverse.at); free(x.at);
    routine = "trtrs";
    for (const char *trans = "NTC"; *trans; trans++) {
        const int64_t nrhs = 20;
        matrix b = new_matrix(n, nrhs, 1), y;
        random_entries(&b);
        y = copy_of(&b);
        whole = full_triangle(&a, uplo, diag, *trans);
        info = -77;
        r->trtrs(&uplo, trans, &diag, &n, &nrhs, a.at, &a.ld, y.at, &y.ld, &info);
        if (integer(&info, 0)) wrong("INFO", n, nrhs, (double)integer(&info, 0));
        check_padding(&y);
        check_residual(system_residual(&whole, 'N', &y, &b), 1, &a);
        free(b.at); free(y.at); free(whole.at);
    }
    free(a.at);
}

/* Of an inverse only what depends on it has a NaN of the triangle: the rows of its own and those beyond it,
   where they meet such columns. */
static void test_spoilt_triangle(int64_t n, char uplo, char diag, int64_t row, int64_t col)
{
    family = "NaN in a triangle";
    routine = "trtri";
    const bool upper = uplo == 'U';
    matrix a = triangle(n, uplo, diag);
    int64_t info = -77;
    if (!upper) {
        const int64_t other = row;
        row = col;
        col = other;
    }
    set(&a, row, col, NAN);
    r->trtri(&uplo, &diag, &n, a.at, &a.ld, &info);
    if (integer(&info, 0)) wrong("INFO", n, n, (double)integer(&info, 0));
    int64_t spoilt = 0;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = upper ? 0 : j + 1; i < (upper ? j : n); i++) {
            const bool depends = upper ? i <= row && j >= col : i >= row && j <= col;
            spoilt += !depends && !isfinite(cabs(at(&a, i, j)));
        }
    if (spoilt) wrong("NaN of others", row, col, (double)spoilt);
    check_padding(&a);
    free(a.at);
}

/* A zero on the diagonal: its number is INFO, and nothing is written. */
static void test_singular_triangle(int64_t n, char uplo, int64_t zero)
{
    family = "singular";
    matrix a = triangle(n, uplo, 'N'), b = new_matrix(n, 20, 0);
    random_entries(&b);
    set(&a, zero, zero, 0);
    matrix kept = copy_of(&a), kept_b = copy_of(&b);
    const int64_t nrhs = 20;
    int64_t info = -77;
    routine = "trtri";
    r->trtri(&uplo, "N", &n, a.at, &a.ld, &info);
    if (integer(&info, 0) != zero + 1) wrong("INFO", n, zero, (double)integer(&info, 0));
    info = -77;
    routine = "trtrs";
    r->trtrs(&uplo, "N", "N", &n, &nrhs, a.at, &a.ld, b.at, &b.ld, &info);
    if (integer(&info, 0) != zero + 1) wrong("INFO", n, zero, (double)integer(&info, 0));
    if (memcmp(a.at, kept.at, (size_t)(a.ld * n) * bytes())) wrong("wrote A", n, zero, 0);
    if (memcmp(b.at, kept_b.at, (size_t)(b.ld * nrhs) * bytes())) wrong("wrote B", n, zero, 0);
    free(a.at); free(b.at); free(kept.at); free(kept_b.at);
}

/* NaN and Inf inside: the call ends, and the pivots are row numbers. */
static void test_not_numbers(int64_t n, double value)
{
    family = "NaN or Inf inside";
    routine = "getrf";
    matrix a = new_matrix(n, n, 0);
    random_entries(&a);
    set(&a, n / 2, n / 3, value);
    int64_t *ipiv = new_pivots(n);
    getrf(&a, ipiv);
    for (int64_t i = 0; i < n; i++)
        if (integer(ipiv, i) < i + 1 || integer(ipiv, i) > n) {
            wrong("a pivot", n, n, (double)integer(ipiv, i));
            break;
        }
    free(a.at);
    free(ipiv);
}

/* laswp forwards and backwards gives the matrix back, for distances of 1 and 2 between the numbers. */
static void test_exchanges(int64_t n)
{
    family = "exchanges";
    routine = "laswp";
    for (int64_t step = 1; step <= 2; step++) {
        matrix a = new_matrix(n, 70, 1), swapped;
        random_entries(&a);
        swapped = copy_of(&a);
        const int64_t first = 3, last = n - 2, cols = 70, back = -step;
        int64_t *ipiv = new_pivots(2 * n);
        for (int64_t i = first; i <= last; i++) {
            const int64_t other = i + (int64_t)((draw() + 1) / 2 * (double)(n - i)), place = first - 1
                                                                                      + (i - first) * step;
            if (r->width == 64) ipiv[place] = other;
            else ((int32_t *)ipiv)[place] = (int32_t)other;
        }
        r->laswp(&cols, swapped.at, &swapped.ld, &first, &last, ipiv, &step);
        matrix by_hand = copy_of(&a);
        for (int64_t i = first; i <= last; i++)
            for (int64_t j = 0; j < cols; j++) {
                const int64_t other = integer(ipiv, first - 1 + (i - first) * step) - 1;
                const number kept = at(&by_hand, i - 1, j);
                set(&by_hand, i - 1, j, at(&by_hand, other, j));
                set(&by_hand, other, j, kept);
            }
        const size_t size = (size_t)(a.ld * cols) * bytes();
        if (memcmp(by_hand.at, swapped.at, size)) wrong("forwards", n, cols, (double)step);
        r->laswp(&cols, swapped.at, &swapped.ld, &first, &last, ipiv, &back);
        if (memcmp(a.at, swapped.at, size)) wrong("backwards", n, cols, (double)step);
        free(a.at); free(swapped.at); free(by_hand.at); free(ipiv);
    }
}

/* ---- illegal arguments, reported to the program's own handler */

static char reported[8];
static int64_t parameter;
void xerbla_(const char *name, const int32_t *info, size_t length);
void xerbla_64_(const char *name, const int64_t *info, size_t length);
void xerbla_(const char *name, const int32_t *info, size_t length)
{
    snprintf(reported, sizeof reported, "%.*s", (int)(length < 6 ? length : 6), name);
    parameter = *info;
}
void xerbla_64_(const char *name, const int64_t *info, size_t length)
{
    const int32_t narrow = (int32_t)*info;
    xerbla_(name, &narrow, length);
}

static void expect_error(int64_t info, int64_t wanted)
{
    char name[8];
    snprintf(name, sizeof name, "%c%s", r->letter, routine);
    for (char *at = name; *at; at++) *at = (char)(*at - 'a' + 'A');
    while (strlen(name) < strlen(reported)) strcat(name, " ");
    if (least_nan && strcmp(routine, "getrs") == 0) info = r->width == 64 ? -wanted : (uint32_t)-wanted;
    if (integer(&info, 0) != -wanted) wrong("INFO", wanted, 0, (double)integer(&info, 0));
    if (strcmp(reported, name) || (int32_t)parameter != wanted)
        wrong("what xerbla got", wanted, 0, (double)parameter);
    reported[0] = 0;
}

static void test_illegal(void)
{
    const int64_t n = 40, less = 39, minus = -1, nrhs = 5;
    matrix a = new_matrix(n, n, 0), b = new_matrix(n, nrhs, 0);
    int64_t *ipiv = new_pivots(n), info;
    family = "illegal";
    routine = "getrf";
    info = 0; r->getrf(&minus, &n, a.at, &n, ipiv, &info); expect_error(info, 1);
    info = 0; r->getrf(&n, &minus, a.at, &n, ipiv, &info); expect_error(info, 2);
    info = 0; r->getrf(&n, &n, a.at, &less, ipiv, &info); expect_error(info, 4);
    routine = "getrs";
    info = 0; r->getrs("X", &n, &nrhs, a.at, &n, ipiv, b.at, &n, &info); expect_error(info, 1);
    info = 0; r->getrs("N", &minus, &nrhs, a.at, &n, ipiv, b.at, &n, &info); expect_error(info, 2);
    info = 0; r->getrs("N", &n, &minus, a.at, &n, ipiv, b.at, &n, &info); expect_error(info, 3);
    info = 0; r->getrs("N", &n, &nrhs, a.at, &less, ipiv, b.at, &n, &info); expect_error(info, 5);
    info = 0; r->getrs("N", &n, &nrhs, a.at, &n, ipiv, b.at, &less, &info); expect_error(info, 8);
    routine = "gesv";
    info = 0; r->gesv(&minus, &nrhs, a.at, &n, ipiv, b.at, &n, &info); expect_error(info, 1);
    info = 0; r->gesv(&n, &minus, a.at, &n, ipiv, b.at, &n, &info); expect_error(info, 2);
    info = 0; r->gesv(&n, &nrhs, a.at, &less, ipiv, b.at, &n, &info); expect_error(info, 4);
    info = 0; r->gesv(&n, &nrhs, a.at, &n, ipiv, b.at, &less, &info); expect_error(info, 7);
    routine = "potrf";
    info = 0; r->potrf("X", &n, a.at, &n, &info); expect_error(info, 1);
    info = 0; r->potrf("U", &minus, a.at, &n, &info); expect_error(info, 2);
    info = 0; r->potrf("L", &n, a.at, &less, &info); expect_error(info, 4);
    routine = "potrs";
    info = 0; r->potrs("X", &n, &nrhs, a.at, &n, b.at, &n, &info); expect_error(info, 1);
    info = 0; r->potrs("U", &n, &minus, a.at, &n, b.at, &n, &info); expect_error(info, 3);
    info = 0; r->potrs("L", &n, &nrhs, a.at, &less, b.at, &n, &info); expect_error(info, 5);
    info = 0; r->potrs("L", &n, &nrhs, a.at, &n, b.at, &less, &info); expect_error(info, 7);
    routine = "posv";
    info = 0; r->posv("X", &n, &nrhs, a.at, &n, b.at, &n, &info); expect_error(info, 1);
    info = 0; r->posv("U", &minus, &nrhs, a.at, &n, b.at, &n, &info); expect_error(info, 2);
    info = 0; r->posv("U", &n, &nrhs, a.at, &n, b.at, &less, &info); expect_error(info, 7);
    const int64_t none = 0;
    routine = "getri";
    info = 0; r->getri(&minus, a.at, &n, ipiv, b.at, &n, &info); expect_error(info, 1);
    info = 0; r->getri(&n, a.at, &less, ipiv, b.at, &n, &info); expect_error(info, 3);
    info = 0; r->getri(&n, a.at, &n, ipiv, b.at, &none, &info); expect_error(info, 6);
    routine = "potri";
    info = 0; r->potri("X", &n, a.at, &n, &info); expect_error(info, 1);
    info = 0; r->potri("U", &minus, a.at, &n, &info); expect_error(info, 2);
    info = 0; r->potri("L", &n, a.at, &less, &info); expect_error(info, 4);
    routine = "lauum";
    info = 0; r->lauum("X", &n, a.at, &n, &info); expect_error(info, 1);
    info = 0; r->lauum("U", &minus, a.at, &n, &info); expect_error(info, 2);
    info = 0; r->lauum("L", &n, a.at, &less, &info); expect_error(info, 4);
    routine = "trtri";
    info = 0; r->trtri("X", "N", &n, a.at, &n, &info); expect_error(info, 1);
    info = 0; r->trtri("U", "X", &n, a.at, &n, &info); expect_error(info, 2);
    info = 0; r->trtri("U", "N", &minus, a.at, &n, &info); expect_error(info, 3);
    info = 0; r->trtri("L", "U", &n, a.at, &less, &info); expect_error(info, 5);
    const double norm = 1, below = -1;
    const float norm_s = 1, below_s = -1;
    const void *const one = is_single() ? (const void *)&norm_s : &norm;
    const void *const negative = is_single() ? (const void *)&below_s : &below;
    routine = "gecon";
    info = 0; r->gecon("X", &n, a.at, &n, one, b.at, b.at, b.at, &info); expect_error(info, 1);
    info = 0; r->gecon("1", &minus, a.at, &n, one, b.at, b.at, b.at, &info); expect_error(info, 2);
    info = 0; r->gecon("O", &n, a.at, &less, one, b.at, b.at, b.at, &info); expect_error(info, 4);
    info = 0; r->gecon("I", &n, a.at, &n, negative, b.at, b.at, b.at, &info); expect_error(info, 5);
    routine = "pocon";
    info = 0; r->pocon("X", &n, a.at, &n, one, b.at, b.at, b.at, &info); expect_error(info, 1);
    info = 0; r->pocon("U", &minus, a.at, &n, one, b.at, b.at, b.at, &info); expect_error(info, 2);
    info = 0; r->pocon("L", &n, a.at, &less, one, b.at, b.at, b.at, &info); expect_error(info, 4);
    info = 0; r->pocon("L", &n, a.at, &n, negative, b.at, b.at, b.at, &info); expect_error(info, 5);
    routine = "trtrs";
    info = 0; r->trtrs("X", "N", "N", &n, &nrhs, a.at, &n, b.at, &n, &info); expect_error(info, 1);
    info = 0; r->trtrs("L", "X", "N", &n, &nrhs, a.at, &n, b.at, &n, &info); expect_error(info, 2);
    info = 0; r->trtrs("L", "N", "X", &n, &nrhs, a.at, &n, b.at, &n, &info); expect_error(info, 3);
    info = 0; r->trtrs("L", "N", "N", &n, &minus, a.at, &n, b.at, &n, &info); expect_error(info, 5);
    info = 0; r->trtrs("L", "N", "N", &n, &nrhs, a.at, &less, b.at, &n, &info); expect_error(info, 7);
    info = 0; r->trtrs("L", "N", "N", &n, &nrhs, a.at, &n, b.at, &less, &info); expect_error(info, 9);
    int64_t iter;
    void *const x = a.at, *const y = b.at;
    routine = is_complex() ? "cgesv" : "sgesv";
    if (r->refined_gesv) {
        expect_error(refine('G', minus, 1, x, n, ipiv, y, n, y, n, &iter), 1);
        expect_error(refine('G', n, minus, x, n, ipiv, y, n, y, n, &iter), 2);
        expect_error(refine('G', n, 1, x, less, ipiv, y, n, y, n, &iter), 4);
        expect_error(refine('G', n, 1, x, n, ipiv, y, less, y, n, &iter), 7);
        expect_error(refine('G', n, 1, x, n, ipiv, y, n, y, less, &iter), 9);
        routine = is_complex() ? "cposv" : "sposv";
        expect_error(refine('X', n, 1, x, n, ipiv, y, n, y, n, &iter), 1);
        expect_error(refine('U', minus, 1, x, n, ipiv, y, n, y, n, &iter), 2);
        expect_error(refine('U', n, minus, x, n, ipiv, y, n, y, n, &iter), 3);
        expect_error(refine('L', n, 1, x, less, ipiv, y, n, y, n, &iter), 5);
        expect_error(refine('L', n, 1, x, n, ipiv, y, less, y, n, &iter), 7);
        expect_error(refine('L', n, 1, x, n, ipiv, y, n, y, less, &iter), 9);
    }
    free(a.at); free(b.at); free(ipiv);
}

static void report(void)
{
    printf("%c%s %d %s: %.3f\n", r->letter, routine, r->width, family, worst);
    worst = 0;
    seed = 1;
}

int main(int count, char **words)
{
    if (count < 4) return 2;
    const char *widths = words[1];
    const int64_t largest = atoll(words[2]);
    least_nan = atoll(words[3]);
    const bool contained = count > 4;
    static const int64_t orders[] = { 0, 1, 2, 3, 31, 64, 100, 129, 300, 1000 };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        r = &all[i];
        if (strcmp(widths, "both") && atoi(widths) != r->width) continue;
        for (int f = 0; f < FAMILIES; f++) {
            for (size_t o = 0; o < sizeof orders / sizeof *orders && orders[o] <= largest; o++) {
                const int64_t n = orders[o];
                test_lu(n, n, f, false);
                test_lu(n, n / 2, f, false);
                test_lu(n / 3, n, f, false);
                test_lu(n, n, f, true);
            }
            report();
            for (size_t o = 0; o < sizeof orders / sizeof *orders && orders[o] <= largest; o++)
                for (int64_t nrhs = 0; nrhs <= 70 && families[f].solvable; nrhs = nrhs * 8 + 1)
                    test_systems(orders[o], nrhs, f);
            report();
            for (size_t o = 0; o < sizeof orders / sizeof *orders && orders[o] <= largest; o++)
                for (int64_t nrhs = 0; nrhs <= 70 && refines(orders[o]); nrhs = nrhs ? nrhs * 33 : 1)
                    for (const char *kind = f < 2 ? "GUL" : "G"; *kind; kind++)   /* positive: two families */
                        test_refined(orders[o], nrhs, *kind, f, PLAIN);
            for (size_t o = 0; o < sizeof orders / sizeof *orders && orders[o] <= largest; o++)
                if (families[f].solvable) test_inverse(orders[o], f);
            report();
            for (size_t o = 1; o < sizeof orders / sizeof *orders && orders[o] <= largest; o++)
                if (families[f].solvable) test_condition(orders[o], f);
        }
        for (size_t o = 1; o < sizeof orders / sizeof *orders && orders[o] <= largest; o++) {
            const int64_t n = orders[o];
            test_singular(n, n, 0);
            test_singular(n, n, n / 2);
            test_singular(n, n, n - 1);
            test_singular(2 * n, n, n / 2);
            if (n > 3) test_singular(n / 2, n, n / 4);
            test_not_numbers(n, NAN);
            test_not_numbers(n, INFINITY);
            if (n > 4) test_exchanges(n);
            if (n > 1) test_range(n);
            for (const char *kind = "GUL"; *kind && refines(n); kind++)
                for (int how = SINGULAR; how < SPECIALS; how++) test_refined(n, 3, *kind, 0, how);
        }
        report();
        for (const char *uplo = "UL"; *uplo; uplo++) {
            for (size_t o = 0; o < sizeof orders / sizeof *orders && orders[o] <= largest; o++) {
                const int64_t n = orders[o];
                test_cholesky(n, 1, *uplo, false);
                test_cholesky(n, 33, *uplo, true);
                test_positive_inverse(n, *uplo, false);
                /* netlib's of an upper triangle has 100 units. */
                if (*uplo == 'L') test_positive_inverse(n, 'L', true);
                if (n) test_positive_condition(n, *uplo, false);
                if (n) test_positive_condition(n, *uplo, true);
                for (int64_t bad = 0; bad < n; bad += n < 4 ? 1 : n / 2 - 1) {
                    test_indefinite(n, *uplo, bad, -1);
                    test_indefinite(n, *uplo, bad, 0);
                    test_indefinite(n, *uplo, bad, NAN);
                }
                if (n) test_indefinite(n, *uplo, n - 1, -1);
            }
            report();
            for (const char *diag = "NU"; *diag; diag++) {
                for (size_t o = 0; o < sizeof orders / sizeof *orders && orders[o] <= largest; o++) {
                    const int64_t n = orders[o];
                    if (contained && n > 1) test_spoilt_triangle(n, *uplo, *diag, n / 3, n / 2);
                    if (contained && n && *diag == 'N') test_spoilt_triangle(n, *uplo, 'N', n / 2, n / 2);
                    test_triangle(n, *uplo, *diag);
                }
                report();
            }
            for (size_t o = 1; o < sizeof orders / sizeof *orders && orders[o] <= largest; o++) {
                test_singular_triangle(orders[o], *uplo, 0);
                test_singular_triangle(orders[o], *uplo, orders[o] / 2);
                test_singular_triangle(orders[o], *uplo, orders[o] - 1);
            }
        }
        test_illegal();
    }
    printf("%d wrong\n", failures);
    return failures > 0;
}
