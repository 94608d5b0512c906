/* SPDX-License-Identifier: MIT */
/* Every driver call fails, at every occurrence, once and from then on, with errors that pass and errors that
   stay; GEMM, SYMM, SYRK, SYR2K and the Hermitian ones in four types, in and out of core, with every form of
   kernel, three betas, operands in host and device memory; TRSM, TRMM, gesv, posv, getri and potri, which
   stay on the GPU from the first column to the last, in host memory. Each case is a child that makes three
   calls, preloaded, on the software libcuda (fakecuda_fail). A case is right if C of each call is right, and
   what else it writes, the canaries around it live, there is at most one warning of a kind, and no call uses
   the GPU after a sticky error. Once a configuration, the parent makes the operands and the right C; children
   compare. Usage: inject SEED SLICES [FOLDER]: one slice of all cases; SLICES seeds in a row cover all of
   them; logs go to FOLDER. inject CONFIGURATION RULE: that case alone, with its output, as it was printed.
   Exits with 1 if one was wrong. */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MATRIX_OWN_PROTOTYPES
#include "include/gpublas.h"
#include "tests/programs/matrix.h"

typedef void gemm(const char *ta, const char *tb, const int *m, const int *n, const int *k, const void *alpha,
                  const void *a, const int *lda, const void *b, const int *ldb, const void *beta, void *c,
                  const int *ldc);
typedef void rank_k(const char *uplo, const char *trans, const int *n, const int *k, const void *alpha,
                    const void *a, const int *lda, const void *beta, void *c, const int *ldc);
typedef void rank_2k(const char *uplo, const char *trans, const int *n, const int *k, const void *alpha,
                     const void *a, const int *lda, const void *b, const int *ldb, const void *beta, void *c,
                     const int *ldc);
typedef void sided(const char *side, const char *uplo, const int *m, const int *n, const void *alpha,
                   const void *a, const int *lda, const void *b, const int *ldb, const void *beta, void *c,
                   const int *ldc);
gemm sgemm_, dgemm_, cgemm_, zgemm_;
sided ssymm_, dsymm_, chemm_, zhemm_;
rank_k ssyrk_, dsyrk_, cherk_, zherk_;
rank_2k ssyr2k_, dsyr2k_, cher2k_, zher2k_;
typedef void triangular(const char *side, const char *uplo, const char *trans, const char *diag, const int *m,
                        const int *n, const void *alpha, const void *a, const int *lda, void *b,
                        const int *ldb);
triangular strsm_, dtrsm_, ctrsm_, ztrsm_, strmm_, dtrmm_, ctrmm_, ztrmm_;
void dgesv_(const int *n, const int *nrhs, void *a, const int *lda, int *ipiv, void *b, const int *ldb,
            int *info);
void dgetri_(const int *n, void *a, const int *lda, const int *ipiv, void *work, const int *lwork, int *info);
void dposv_(const char *uplo, const int *n, const int *nrhs, void *a, const int *lda, void *b, const int *ldb,
            int *info);
void dsgesv_(const int *n, const int *nrhs, void *a, const int *lda, int *ipiv, const void *b, const int *ldb,
             void *x, const int *ldx, double *work, float *swork, int *iter, int *info);
void dsposv_(const char *uplo, const int *n, const int *nrhs, void *a, const int *lda, const void *b,
             const int *ldb, void *x, const int *ldx, double *work, float *swork, int *iter, int *info);
void dpotri_(const char *uplo, const int *n, void *a, const int *lda, int *info);

/* libcuda's own names, so that no CUDA header is needed, and the control of the software libcuda. */
static struct {
    int (*init)(unsigned), (*retain)(void **, int), (*push)(void *), (*alloc)(unsigned long long *, size_t);
    int (*up)(unsigned long long, const void *, size_t), (*down)(void *, unsigned long long, size_t);
    void (*fail)(const char *), (*pause)(int);
} cuda;
static int (*stats)(gpublas_stats_t *, size_t);
static bool aloud;

static const struct type { gemm *call; rank_k *rank_k; rank_2k *rank_2k; sided *sided;
                           triangular *trsm, *trmm; size_t bytes; bool is_double, is_complex;
} types[] = { ['s'] = { sgemm_, ssyrk_, ssyr2k_, ssymm_, strsm_, strmm_, sizeof(float), false, false },
              ['d'] = { dgemm_, dsyrk_, dsyr2k_, dsymm_, dtrsm_, dtrmm_, sizeof(double), true, false },
              ['c'] = { cgemm_, cherk_, cher2k_, chemm_, ctrsm_, ctrmm_, 2 * sizeof(float), false, true },
              ['z'] = { zgemm_, zherk_, zher2k_, zhemm_, ztrsm_, ztrmm_, 2 * sizeof(double), true, true } };
enum kind { PRODUCT, TRSM, TRMM, GESV, POSV, SGESV, SPOSV, GETRI, POTRI };
/* trans: of A and B, and then U or L: SYRK or HERK on that triangle, whose B is A once more. With a 2 behind,
   SYR2K or HER2K: two products, in the second of which A and B have changed places. With L or R behind, SYMM
   or HEMM with that triangle stored, of the operand on that side. Of TRSM and TRMM: trans, uplo, side. Of
   posv and potri: uplo in the second place. dsgesv and dsposv keep A and B, which is b. */
static const struct shape { const char *name; char type; const char *trans; int m, n, k;
                            const char *option, *value; enum kind kind;
} shapes[] = { { "in core", 's', "NN", 100, 90, 80, "GPUBLAS_MEMORY", "", PRODUCT },
               { "transposed", 's', "TN", 70, 110, 60, "GPUBLAS_MEMORY", "", PRODUCT },
               { "panels", 's', "NT", 560, 270, 530, "GPUBLAS_MEMORY", "1280K", PRODUCT },
               { "FP16 slices", 's', "NN", 140, 130, 96, "GPUBLAS_KERNEL", "fp16x3", PRODUCT },
               { "cut k", 's', "TT", 60, 50, 200, "GPUBLAS_SPLITS", "3", PRODUCT },
               { "packed", 's', "NN", 90, 70, 50, "GPUBLAS_KERNEL", "padded", PRODUCT },
               { "k shared out", 's', "TN", 20, 9, 33000, "GPUBLAS_KERNEL", "ffma", PRODUCT },
               { "panels", 'd', "TN", 530, 280, 270, "GPUBLAS_MEMORY", "2560K", PRODUCT },
               { "complex FP16 slices", 'c', "NC", 70, 130, 48, "GPUBLAS_KERNEL", "fp16x3", PRODUCT },
               { "conjugated, cut k", 'z', "CN", 60, 50, 100, "GPUBLAS_SPLITS", "3", PRODUCT },
               { "triangle, panels", 's', "NTL", 560, 560, 270, "GPUBLAS_MEMORY", "1280K", PRODUCT },
               { "triangle", 'd', "TNU", 300, 300, 90, "GPUBLAS_MEMORY", "", PRODUCT },
               { "Hermitian", 'z', "NCL", 70, 70, 50, "GPUBLAS_MEMORY", "", PRODUCT },
               { "Hermitian, FP16 slices", 'c', "CNU", 140, 140, 48, "GPUBLAS_KERNEL", "fp16x3", PRODUCT },
               { "two products", 'd', "TNU2", 90, 90, 70, "GPUBLAS_MEMORY", "", PRODUCT },
               { "two products, one launch", 'd', "NTL2", 61, 61, 70, "GPUBLAS_MEMORY", "", PRODUCT },
               { "two products, panels", 'd', "TNL2", 530, 530, 270, "GPUBLAS_MEMORY", "2560K", PRODUCT },
               { "two Hermitian products", 'z', "NCL2", 60, 60, 50, "GPUBLAS_MEMORY", "", PRODUCT },
               { "two products, FP16 slices", 'c', "NCU2", 140, 140, 48, "GPUBLAS_KERNEL", "fp16x3",
                 PRODUCT },
               { "symmetric on the right", 's', "NNLR", 90, 110, 110, "GPUBLAS_MEMORY", "", PRODUCT },
               { "symmetric, panels", 'd', "NNUL", 530, 280, 530, "GPUBLAS_MEMORY", "2560K", PRODUCT },
               { "Hermitian A, FP16 slices", 'c', "NNLL", 140, 130, 140, "GPUBLAS_KERNEL", "fp16x3",
                 PRODUCT },
               { "Hermitian on the right, cut k", 'z', "NNUR", 50, 70, 70, "GPUBLAS_SPLITS", "3", PRODUCT },
               { "a triangle alone", 'd', "NNUL", 370, 10, 370, "GPUBLAS_MEMORY", "", PRODUCT },
               { "a triangle alone on the right", 'z', "NNLR", 40, 300, 300, "GPUBLAS_MEMORY", "", PRODUCT },
               { "solve forwards", 'd', "NLL", 300, 40, 0, "GPUBLAS_MEMORY", "", TRSM },
               { "solve backwards, two panels", 's', "NUL", 60, 2100, 0, "GPUBLAS_MEMORY", "", TRSM },
               { "solve from the right", 'z', "NUR", 40, 200, 0, "GPUBLAS_MEMORY", "", TRSM },
               { "solve, transposed", 'c', "CLL", 150, 30, 0, "GPUBLAS_MEMORY", "", TRSM },
               { "triangle times B", 'd', "NUL", 300, 40, 0, "GPUBLAS_MEMORY", "", TRMM },
               { "triangle times B, two panels", 'c', "TLL", 60, 2100, 0, "GPUBLAS_MEMORY", "", TRMM },
               { "B times a triangle", 's', "NLR", 40, 200, 0, "GPUBLAS_MEMORY", "", TRMM },
               { "LU and solve", 'd', "NN", 200, 9, 0, "GPUBLAS_MEMORY", "", GESV },
               { "Cholesky and solve", 'd', "NL", 200, 9, 0, "GPUBLAS_MEMORY", "", POSV },
               { "Cholesky and solve, upper", 'd', "NU", 200, 9, 0, "GPUBLAS_MEMORY", "", POSV },
               { "LU refined", 'd', "NN", 200, 9, 0, "GPUBLAS_MEMORY", "", SGESV },
               { "Cholesky refined", 'd', "NU", 200, 9, 0, "GPUBLAS_MEMORY", "", SPOSV },
               { "inverse by LU", 'd', "NN", 200, 0, 0, "GPUBLAS_MEMORY", "", GETRI },
               { "inverse by Cholesky", 'd', "NL", 200, 0, 0, "GPUBLAS_MEMORY", "", POTRI },
               { "inverse by Cholesky, upper", 'd', "NU", 200, 0, 0, "GPUBLAS_MEMORY", "", POTRI } };
static const double betas[][2] = { { 0 }, { 1 }, { 0.5, 0.5 } };  /* and imaginary parts of complex ones */
static const struct place { const char *name; bool a, b, c;
} places[] = { { "all in host memory", false, false, false },
               { "C on the GPU", false, false, true },
               { "A on the GPU", true, false, false },
               { "all on the GPU", true, true, true } };
static const char *const codes[] = { "2", "209", "200", "719", "46", "999", "999!" };
enum { SHAPES = sizeof shapes / sizeof *shapes, BETAS = 3, PLACES = 4, CODES = sizeof codes / sizeof *codes,
       CALLS = 3, PAD = 3, FUNCTIONS = 48, MOST_PIVOTS = 200 };

typedef struct occurrences { char function[40]; int count; } occurrences;

/* ---- operands: made by the parent, whose memory the children have */

static const struct type *type;       /* of this configuration */

typedef struct operand {
    int rows, cols;
    void *host;                      /* rows + PAD a column: what the call gets, or what goes up */
    unsigned long long device;
} operand;
static operand a, b, c;              /* of this configuration; C as it is before a call */
static void *right;                  /* and after it, with all canaries */
static void *right_a;                /* A after it, of solves and what is beside them */
static int *pivots;                  /* of LU */

/* Real numbers of so many elements, and one of them. */
static int reals(int elements) { return elements * (type->is_complex ? 2 : 1); }
static double get(const void *x, int i)
{
    return type->is_double ? ((const double *)x)[i] : (double)((const float *)x)[i];
}
static void put(void *x, int i, double value)
{
    if (type->is_double) ((double *)x)[i] = value;
    else ((float *)x)[i] = (float)value;
}

static int elements(const operand *x) { return (x->rows + PAD) * x->cols; }
static size_t bytes_of(const operand *x) { return (size_t)elements(x) * type->bytes; }

static operand make(int rows, int cols, int seed)
{
    operand x = { .rows = rows, .cols = cols };
    x.host = malloc(bytes_of(&x));
    for (int i = 0; i < reals(elements(&x)); i++)
        put(x.host, i, 2 * ((i * 7 + i / 13 * 5 + seed) % 5 - 2));
    return x;
}

/* Real and imaginary part of an element of op(X). */
static void at(const operand *x, char trans, int i, int j, double of[2])
{
    const int row = trans == 'N' ? i : j, col = trans == 'N' ? j : i,
              first = reals(row + col * (x->rows + PAD));
    of[0] = get(x->host, first);
    of[1] = !type->is_complex ? 0 : trans == 'C' ? -get(x->host, first + 1) : get(x->host, first + 1);
}

static void add_product(double to[2], const double x[2], const double y[2])
{
    to[0] += x[0] * y[0] - x[1] * y[1];
    to[1] += x[0] * y[1] + x[1] * y[0];
}

/* 1, or for complex types 1 + i. */
static const double alpha[2] = { 1, 1 };

static bool is_twice(const struct shape *s) { return s->trans[2] && s->trans[3] == '2'; }
static bool is_sided(const struct shape *s) { return s->trans[2] && s->trans[3] && s->trans[3] != '2'; }
static bool is_rank_k(const struct shape *s) { return s->trans[2] && !s->trans[3]; }
static operand *symmetric_of(const struct shape *s) { return s->trans[3] == 'L' ? &a : &b; }

/* Makes the operand symmetric or Hermitian, or (hidden) NaN what of such a one is not to be read. */
static void mirror(const operand *x, char uplo, bool hidden)
{
    for (int j = 0; j < x->cols; j++)
        for (int i = 0; i < x->rows; i++) {
            const int to = reals(i + j * (x->rows + PAD)), from = reals(j + i * (x->rows + PAD));
            const bool image = uplo == 'U' ? i > j : i < j;
            if (image) put(x->host, to, hidden ? NAN : get(x->host, from));
            if (type->is_complex && (image || i == j))
                put(x->host, to + 1, hidden ? NAN : i == j ? 0 : -get(x->host, from + 1));
        }
}

/* The rows of op(X), or its columns, of k elements each: looked up once, and not for every product, which was
   a sixth of the test. */
typedef double number[2];
static number *lines_of(const operand *x, char trans, bool rows, int lines, int k)
{
    number *to = malloc(sizeof *to * (size_t)lines * (size_t)k);
    for (int l = 0; l < lines; l++)
        for (int p = 0; p < k; p++) at(x, trans, rows ? l : p, rows ? p : l, to[l * k + p]);
    return to;
}

/* Whole numbers below 2^24, exact in any order. */
static void make_operands(const struct shape *s, const double beta[2])
{
    const char ta = s->trans[0], tb = s->trans[1], uplo = s->trans[2];
    const bool twice = is_twice(s);
    const char written = is_sided(s) ? 0 : uplo;
    const bool complex_alpha = type->is_complex && !is_rank_k(s), complex_beta = type->is_complex && !written;
    const double alpha_here[2] = { alpha[0], complex_alpha ? alpha[1] : 0 },
                 conjugate[2] = { alpha_here[0], -alpha_here[1] },
                 beta_here[2] = { beta[0], complex_beta ? beta[1] : 0 };
    a = ta == 'N' ? make(s->m, s->k, 1) : make(s->k, s->m, 1);
    b = tb == 'N' ? make(s->k, s->n, 2) : make(s->n, s->k, 2);
    if (is_rank_k(s)) memcpy(b.host, a.host, bytes_of(&a));
    if (is_sided(s)) mirror(symmetric_of(s), uplo, false);
    c = make(s->m, s->n, 3);
    right = memcpy(malloc(bytes_of(&c)), c.host, bytes_of(&c));
    const int k = s->k;
    number *rows[2] = { lines_of(&a, ta, true, s->m, k), twice ? lines_of(&b, ta, true, s->m, k) : NULL };
    number *cols[2] = { lines_of(&b, tb, false, s->n, k), twice ? lines_of(&a, tb, false, s->n, k) : NULL };
    for (int j = 0; j < s->n; j++)
        for (int i = written == 'L' ? j : 0; i < (written == 'U' ? j + 1 : s->m); i++) {
            double sum[2] = { 0 }, second[2] = { 0 }, to[2] = { 0 }, x[2];
            const bool is_real = written && i == j;
            for (int p = 0; p < k; p++) add_product(sum, rows[0][i * k + p], cols[0][j * k + p]);
            for (int p = 0; p < k && twice; p++) add_product(second, rows[1][i * k + p], cols[1][j * k + p]);
            at(&c, 'N', i, j, x);
            add_product(to, alpha_here, sum);
            add_product(to, conjugate, second);
            add_product(to, beta_here, x);
            if (is_real) to[1] = 0;
            for (int part = 0; part < reals(1); part++)
                put(right, reals(i + j * (c.rows + PAD)) + part, to[part]);
        }
    for (int x = 0; x < 2; x++) {
        free(rows[x]);
        free(cols[x]);
    }
    if (is_sided(s)) mirror(symmetric_of(s), uplo, true);
}

/* ---- solves: A is made of triangles G whose rows that others go into come of no others, with powers of two
   on the diagonal, so that inverses have few bits and every route gives the same ones */

static double of_g(int row, int col)
{
    if (row == col) return 1 + row % 2;
    return row > col && row % 2 && col % 2 == 0 ? 0.25 * ((row * 7 + col * 3) % 5 - 2) : 0;
}
static double of_unit(int row, int col) { return row == col ? 1 : row % 2 == 0 ? 0 : of_g(row, col) / 2; }
static double of_inverse(int row, int col)                       /* of G */
{
    return row == col ? 1 / of_g(row, row) : -of_g(row, col) / of_g(row, row) / of_g(col, col);
}

static void put_real(const operand *x, void *to, int row, int col, double value)
{
    const int at = reals(row + col * (x->rows + PAD));
    put(to, at, value);
    if (type->is_complex) put(to, at + 1, isnan(value) ? value : 0);
}

/* Of op(A), or with side R of its transpose, that TRSM and TRMM are called with. */
static double of_triangle(const struct shape *s, int row, int col)
{
    const bool lower = s->trans[1] == 'L', turned = (s->trans[0] != 'N') != (s->trans[2] == 'R');
    return lower == turned ? of_g(col, row) : of_g(row, col);
}

/* B before the call and after it: X and M X, or of solves the other way round. */
static void make_columns(const struct shape *s, double (*element)(const struct shape *, int, int))
{
    const bool right_side = s->trans[0] && s->trans[1] && s->trans[2] == 'R';
    const int order = right_side ? s->n : s->m, others = right_side ? s->m : s->n;
    double *m = malloc(sizeof *m * (size_t)order * (size_t)order), part[2];
    for (int i = 0; i < order * order; i++) m[i] = element(s, i / order, i % order);
    c = make(s->m, s->n, 3);
    right = memcpy(malloc(bytes_of(&c)), c.host, bytes_of(&c));
    for (int k = 0; k < others; k++)
        for (int i = 0; i < order; i++) {
            const int row = right_side ? k : i, col = right_side ? i : k;
            double sum[2] = { 0 };
            for (int p = 0; p < order; p++) {
                at(&c, 'N', right_side ? k : p, right_side ? p : k, part);
                sum[0] += m[i * order + p] * part[0];
                sum[1] += m[i * order + p] * part[1];
            }
            for (int which = 0; which < reals(1); which++)
                put(right, reals(row + col * (c.rows + PAD)) + which, sum[which]);
        }
    if (s->kind != TRMM) {
        void *before = right;
        right = c.host;
        c.host = before;
    }
    free(m);
}

static double whole(const struct shape *s, int row, int col)     /* G G^T, or P L G^T */
{
    double sum = 0;
    for (int p = 0; p <= row && p <= col; p++)
        sum += (s->kind == POSV || s->kind == SPOSV ? of_g(row, p) : of_unit(row, p)) * of_g(col, p);
    return sum;
}
static double exchanged(const struct shape *s, int row, int col) { return whole(s, pivots[s->m + row], col); }

/* (G G^T)^-1, or (L G^T)^-1 */
static double inverse(const struct shape *s, int row, int col)
{
    double sum = 0;
    for (int p = row; p < s->m; p++) {
        const double of_l = p == col ? 1 : -of_unit(p, col);
        if (p >= col) sum += of_inverse(p, row) * (s->kind == POTRI ? of_inverse(p, col) : of_l);
    }
    return sum;
}

/* pivots[0 .. n): as getrf gives them. pivots[n + i]: the row of L G^T that is A's row i. */
static void make_pivots(int n)
{
    pivots = malloc(2 * sizeof *pivots * (size_t)n);
    for (int i = 0; i < n; i++) pivots[i] = i + 1 + (i * 7 + n) % (n - i);
    for (int i = 0; i < n; i++) pivots[n + i] = i;
    for (int i = n - 1; i >= 0; i--) {
        const int old = pivots[n + i];
        pivots[n + i] = pivots[n + pivots[i] - 1];
        pivots[n + pivots[i] - 1] = old;
    }
}

static bool is_refined(const struct shape *s) { return s->kind == SGESV || s->kind == SPOSV; }
static bool is_lu(const struct shape *s)
{
    return s->kind == GESV || s->kind == SGESV || s->kind == GETRI;
}
static double factors(const struct shape *s, int row, int col)
{
    if (is_lu(s)) return row > col ? of_unit(row, col) : of_g(col, row);
    return s->trans[1] == 'L' ? of_g(row, col) : of_g(col, row);
}
static double exchanged_inverse(const struct shape *s, int row, int col)
{
    return inverse(s, row, pivots[s->m + col]);
}

/* What of A nobody may read, in the other triangle, is NaN. */
static void fill_a(const struct shape *s, double (*element)(const struct shape *, int, int))
{
    for (int j = 0; j < a.cols; j++)
        for (int i = 0; i < a.rows; i++) {
            const bool stored = is_lu(s) || (s->trans[1] == 'L' ? i >= j : i <= j);
            put_real(&a, a.host, i, j, stored ? element(s, i, j) : NAN);
        }
}

static void make_solve(const struct shape *s)
{
    const bool inverts = s->kind == GETRI || s->kind == POTRI, by_triangle = s->kind <= TRMM;
    const int order = by_triangle && s->trans[2] == 'R' ? s->n : s->m;
    free(pivots);
    make_pivots(order);
    a = make(order, order, 1);
    b = make(1, 1, 2);
    if (inverts) {
        c = make(1, 1, 3);
        right = memcpy(malloc(bytes_of(&c)), c.host, bytes_of(&c));
    } else {
        make_columns(s, by_triangle ? of_triangle : is_lu(s) ? exchanged : whole);
    }
    fill_a(s, !inverts ? factors : is_lu(s) ? exchanged_inverse : inverse);
    right_a = memcpy(malloc(bytes_of(&a)), a.host, bytes_of(&a));
    if (is_refined(s)) {
        free(b.host);
        b = c;
        b.host = memcpy(malloc(bytes_of(&c)), c.host, bytes_of(&c));
    }
    fill_a(s, inverts || by_triangle ? factors : is_lu(s) ? exchanged : whole);
    if (is_refined(s)) memcpy(right_a, a.host, bytes_of(&a));
}

/* ---- in the child */

/* Places an operand on the GPU if it belongs there. A and B are only read; C is new each time. */
static operand place_one(const operand *from, bool up, bool is_new)
{
    operand x = *from;
    if (is_new) x.host = memcpy(malloc(bytes_of(from)), from->host, bytes_of(from));
    if (up && (cuda.alloc(&x.device, bytes_of(&x)) || cuda.up(x.device, x.host, bytes_of(&x)))) _exit(90);
    return x;
}

static void *where(const operand *x) { return x->device ? (void *)(uintptr_t)x->device : x->host; }

/* True if C and everything around it are right. */
static bool is_right(const operand *now, const void *wanted)
{
    void *x = now->host;
    if (now->device) {
        x = malloc(bytes_of(now));
        /* Lost with its context, so there is nothing to judge. */
        if (!x || cuda.down(x, now->device, bytes_of(now))) return true;
    }
    if (memcmp(x, wanted, bytes_of(now)) == 0) return true;
    for (int i = 0; i < reals(elements(now)); i++)
        if (get(x, i) != get(wanted, i) && !(isnan(get(x, i)) && isnan(get(wanted, i)))) {
            const int element = i / reals(1);
            if (aloud)
                printf("  %s(%d,%d) is %g, not %g\n", wanted == right ? "C" : "A",
                       element % (now->rows + PAD), element / (now->rows + PAD), get(x, i), get(wanted, i));
            return false;
        }
    return true;                                                              /* zeros of the other sign */
}

static void open_driver(void)
{
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW), *context;
    if (!libcuda || !(*(void **)&cuda.fail = dlsym(libcuda, "fakecuda_fail"))) _exit(91);
    *(void **)&cuda.pause = dlsym(libcuda, "fakecuda_pause");
    *(void **)&cuda.init = dlsym(libcuda, "cuInit");
    *(void **)&cuda.retain = dlsym(libcuda, "cuDevicePrimaryCtxRetain");
    *(void **)&cuda.push = dlsym(libcuda, "cuCtxPushCurrent_v2");
    *(void **)&cuda.alloc = dlsym(libcuda, "cuMemAlloc_v2");
    *(void **)&cuda.up = dlsym(libcuda, "cuMemcpyHtoD_v2");
    *(void **)&cuda.down = dlsym(libcuda, "cuMemcpyDtoH_v2");
    cuda.pause(1);
    if (cuda.init(0) || cuda.retain(&context, 0) || cuda.push(context)) _exit(92);
}

static uint64_t gpu_calls(void)
{
    gpublas_stats_t now = { 0 };
    stats(&now, sizeof now);
    return now.gpu_calls;
}

/* True if INFO and ITER are right, and B is as it was. */
static bool refine(const struct shape *s, void *of_a, const int *lda, int *ipiv, void *of_x, const int *ldx)
{
    int info = -1, iter = -1;
    double *work = malloc(sizeof *work * (size_t)(s->m * s->n));
    float *single = malloc(sizeof *single * (size_t)(s->m * (s->m + s->n)));
    if (s->kind == SGESV)
        dsgesv_(&s->m, &s->n, of_a, lda, ipiv, b.host, ldx, of_x, ldx, work, single, &iter, &info);
    else
        dsposv_(&s->trans[1], &s->m, &s->n, of_a, lda, b.host, ldx, of_x, ldx, work, single, &iter, &info);
    free(work);
    free(single);
    return info == 0 && iter >= 0 && !memcmp(b.host, c.host, bytes_of(&b));
}

/* True if INFO and what getrf gives beside it are right. */
static bool solve(const struct shape *s, const void *one, void *of_a, const int *lda, void *of_c,
                  const int *ldc)
{
    int info = 0, lwork = 64 * s->m, ipiv[MOST_PIVOTS] = { 0 };
    double *work = s->kind == GETRI ? malloc(sizeof *work * (size_t)lwork) : NULL;
    switch (s->kind) {
    case TRSM:
    case TRMM:
        (s->kind == TRSM ? type->trsm : type->trmm)(&s->trans[2], &s->trans[1], &s->trans[0], "N", &s->m,
                                                    &s->n, one, of_a, lda, of_c, ldc);
        break;
    case GESV: dgesv_(&s->m, &s->n, of_a, lda, ipiv, of_c, ldc, &info); break;
    case POSV: dposv_(&s->trans[1], &s->m, &s->n, of_a, lda, of_c, ldc, &info); break;
    case SGESV:
    case SPOSV: info = refine(s, of_a, lda, ipiv, of_c, ldc) ? 0 : -1; break;
    case GETRI: dgetri_(&s->m, of_a, lda, pivots, work, &lwork, &info); break;
    default: dpotri_(&s->trans[1], &s->m, of_a, lda, &info);
    }
    free(work);
    const bool pivoted = s->kind == GESV || s->kind == SGESV;
    return info == 0 && (!pivoted || !memcmp(ipiv, pivots, sizeof *ipiv * (size_t)s->m));
}

/* Exits with 0; 1 (wrong); 2 (wrong, with operands on the GPU, of which a warning must say so); 3 (the GPU
   was used after a sticky error). */
static _Noreturn void child(const struct shape *s, const double beta[2], const struct place *place,
                            const char *rule)
{
    double scalars[2][2];
    int worst = 0;
    for (int i = 0; i < 2; i++) {
        put(scalars[0], i, alpha[i]);
        put(scalars[1], i, beta[i]);
    }
    double one[2] = { 0 };
    bool lost = false;
    put(one, 0, 1);
    if (*s->value) setenv(s->option, s->value, 1);
    *(void **)&stats = dlsym(RTLD_DEFAULT, "gpublas_stats");
    if (!stats) _exit(93);
    open_driver();
    cuda.fail(rule);
    for (int call = 0; call < CALLS; call++) {
        const operand my_a = place_one(&a, place->a && !lost, right_a != NULL),
                      my_b = place_one(&b, place->b && !lost, false);
        const operand my_c = place_one(&c, place->c && !lost, true);
        const int lda = a.rows + PAD, ldb = b.rows + PAD, ldc = c.rows + PAD;
        const uint64_t before = gpu_calls();
        cuda.pause(0);
        if (s->kind != PRODUCT && !solve(s, one, my_a.host, &lda, my_c.host, &ldc)) worst = most(worst, 1);
        if (s->kind != PRODUCT)
            ;
        else if (is_twice(s))
            type->rank_2k(&s->trans[2], &s->trans[0], &s->n, &s->k, scalars[0], where(&my_a), &lda,
                          where(&my_b), &ldb, scalars[1], where(&my_c), &ldc);
        else if (is_sided(s) && s->trans[3] == 'L')
            type->sided("L", &s->trans[2], &s->m, &s->n, scalars[0], where(&my_a), &lda, where(&my_b), &ldb,
                        scalars[1], where(&my_c), &ldc);
        else if (is_sided(s))
            type->sided("R", &s->trans[2], &s->m, &s->n, scalars[0], where(&my_b), &ldb, where(&my_a), &lda,
                        scalars[1], where(&my_c), &ldc);
        else if (is_rank_k(s))
            type->rank_k(&s->trans[2], &s->trans[0], &s->n, &s->k, scalars[0], where(&my_a), &lda, scalars[1],
                         where(&my_c), &ldc);
        else
            type->call(&s->trans[0], &s->trans[1], &s->m, &s->n, &s->k, scalars[0], where(&my_a), &lda,
                       where(&my_b), &ldb, scalars[1], where(&my_c), &ldc);
        cuda.pause(1);
        if (lost && gpu_calls() != before) worst = 3;
        if (right_a && !is_right(&my_a, right_a)) worst = most(worst, 1);
        if (!is_right(&my_c, right)) worst = most(worst, my_a.device || my_b.device || my_c.device ? 2 : 1);
        unsigned long long probe;
        lost = lost || cuda.alloc(&probe, 16);      /* memory is plentiful, so only a lost context refuses */
    }
    exit(worst);
}

/* ---- cases: a number stands for a configuration, a driver function, an occurrence, a code, and once or
   from then on */

typedef struct plan { occurrences of[FUNCTIONS]; int functions; } plan;

static char folder[256] = ".";

/* Does what every child would do first: finds libcuda and makes its poison. */
static void warm(void)
{
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
    void (*make)(void);
    if (libcuda && (*(void **)&make = dlsym(libcuda, "fakecuda_warm"))) make();
}

/* The places of a configuration have the same operands. */
static void prepare(int configuration)
{
    const struct shape *s = &shapes[configuration / BETAS / PLACES];
    type = &types[(unsigned char)s->type];
    if (right && configuration % PLACES) return;
    free(a.host);
    free(b.host);
    free(c.host);
    free(right);
    free(right_a);
    right_a = NULL;
    if (s->kind == PRODUCT) make_operands(s, betas[configuration / PLACES % BETAS]);
    else make_solve(s);
}

/* Runs a child and returns its status; text receives its stderr. */
static int run(int configuration, const char *rule, const char *log, char *text, size_t room)
{
    int status = 0;
    fflush(NULL);
    if (ftruncate(STDERR_FILENO, 0)) abort();
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        if (log) setenv("FAKECUDA_LOG", log, 1);
        child(&shapes[configuration / BETAS / PLACES], betas[configuration / PLACES % BETAS],
              &places[configuration % PLACES], rule);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) abort();
    const ssize_t length = pread(STDERR_FILENO, text, room - 1, 0);
    text[length > 0 ? length : 0] = 0;
    return status;
}

/* The driver calls of a configuration without a failure. */
static plan count_calls(int configuration)
{
    plan p = { .functions = 0 };
    char log[300], text[4096], line[200];
    snprintf(log, sizeof log, "%s/driver.log", folder);
    remove(log);
    const int status = run(configuration, "", log, text, sizeof text);
    FILE *file = fopen(log, "r");
    if (status || *text || !file) {
        printf("configuration %d without a failure: status %#x %s\n", configuration, (unsigned)status, text);
        exit(1);
    }
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, " ")] = 0;
        int i = 0;
        while (i < p.functions && strcmp(p.of[i].function, line)) i++;
        /* A pop cannot fail. Without an answer on clusters a launch is as large as the GPU, which the
           software libcuda refuses. */
        if (strcmp(line, "kernel") == 0 || strcmp(line, "cuCtxPopCurrent") == 0 || strstr(line, "Occupancy")
            || i == FUNCTIONS)
            continue;
        if (i == p.functions) memcpy(p.of[p.functions++].function, line, sizeof p.of[0].function - 1);
        p.of[i].count++;
    }
    fclose(file);
    return p;
}

static int lines_with(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) count++;
    return count;
}

/* True if the case went as it must. */
static bool fine(int configuration, const char *rule)
{
    char text[8192];
    const int status = run(configuration, rule, NULL, text, sizeof text);
    const bool told = lines_with(text, "cannot be reached any more") == 1,
               one_each = lines_with(text, "the GPU failed") <= 1
                          && lines_with(text, "cannot be reached any more") <= 1
                          && lines_with(text, "gpublas: ") <= 2;
    const bool good = (status == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 2 && told)) && one_each;
    if (!good || aloud)
        printf("%s %d %s: %c, %s, beta %g, %s: status %#x\n%s", good ? "fine" : "WRONG", configuration, rule,
               shapes[configuration / BETAS / PLACES].type, shapes[configuration / BETAS / PLACES].name,
               betas[configuration / PLACES % BETAS][0], places[configuration % PLACES].name,
               (unsigned)status, text);
    return good;
}

/* By the case's name and not by its number, because the number of questions whether an event is over
   differs from run to run. FNV-1a. */
static unsigned slice_of(int configuration, const char *rule, unsigned slices)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)configuration;
    for (; *rule; rule++) hash = (hash ^ (unsigned char)*rule) * UINT64_C(1099511628211);
    return (unsigned)((hash >> 20) % slices);
}

/* Stderr becomes a file that can be read. It is there before the library is loaded, which says nothing into
   one that comes later. */
static void hear(char **arguments)
{
    static const char heard[] = "INJECT_HEARD";
    const int file = getenv(heard) ? -1 : memfd_create("stderr", 0);
    if (file < 0) return;
    if (fcntl(file, F_SETFL, O_APPEND) || dup2(file, STDERR_FILENO) < 0 || setenv(heard, "1", 1)) abort();
    execv("/proc/self/exe", arguments);
    abort();
}

int main(int argc, char **argv)
{
    hear(argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    warm();
    aloud = argc == 3 && strchr(argv[2], ':');
    if (aloud) {
        prepare(atoi(argv[1]));
        return !fine(atoi(argv[1]), argv[2]);
    }
    if (argc < 3) return 2;
    const unsigned slices = (unsigned)atoi(argv[2]), slice = (unsigned)atoi(argv[1]) % slices;
    unsigned number = 0, cases = 0, wrong = 0;
    if (argc > 3) snprintf(folder, sizeof folder, "%s", argv[3]);
    for (int configuration = 0; configuration < SHAPES * BETAS * PLACES; configuration++) {
        const enum kind kind = shapes[configuration / BETAS / PLACES].kind;
        if (kind != PRODUCT && configuration % (BETAS * PLACES)) continue;
        prepare(configuration);
        const plan p = count_calls(configuration);
        for (int f = 0; f < p.functions; f++)
            for (int occurrence = 1; occurrence <= p.of[f].count; occurrence++)
                for (int kind = 0; kind < 2 * CODES; kind++) {
                    char rule[80];
                    snprintf(rule, sizeof rule, "%s:%d%s:%s", p.of[f].function, occurrence,
                             kind % 2 ? "+" : "", codes[kind / 2]);
                    number++;
                    if (slice_of(configuration, rule, slices) != slice) continue;
                    cases++;
                    wrong += !fine(configuration, rule);
                }
    }
    printf("slice %u of %u: cases %u of %u, wrong %u\n", slice, slices, cases, number, wrong);
    return wrong > 0;
}
