/* SPDX-License-Identifier: MIT */
/* Matrices for the programs of this folder: filled, multiplied in FP64 by plain loops, compared by the bound
   that SGEMM has to keep. Also the prototypes, as a BLAS user writes them. Nothing here knows of libgpublas.
 */
#ifndef MATRIX_H
#define MATRIX_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW = 101, COLUMN = 102, NO_TRANS = 111, TRANS = 112, CONJ_TRANS = 113, UPPER = 121, LOWER = 122 };

#ifndef MATRIX_OWN_PROTOTYPES
void sgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const float *alpha,
            const float *a, const int *lda, const float *b, const int *ldb, const float *beta, float *c,
            const int *ldc);
void cblas_sgemm(int layout, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc);
#endif

/* One product, column-major. uplo: 'G' all of C, else only that triangle. */
typedef struct product {
    char ta, tb;
    int m, n, k;
    float alpha;
    const float *a;
    int lda;
    const float *b;
    int ldb;
    float beta;
    float *c;
    int ldc;
    char uplo;
} product;

static inline bool transposed(char t) { return t != 'N' && t != 'n'; }
static inline int cblas_trans(char t)
{
    return !transposed(t) ? NO_TRANS : t == 'T' || t == 't' ? TRANS : CONJ_TRANS;
}
static inline int most(int x, int y) { return x > y ? x : y; }

/* Uniform in (-1, 1), the same sequence for the same seed. */
static inline float draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(*seed >> 32) * 0x1p-31f;
}

/* ld x columns elements, all of them filled, also the padding. Comparing whole buffers finds whoever writes
   there. */
static inline float *random_matrix(int ld, int columns, uint64_t seed)
{
    size_t count = (size_t)most(ld, 1) * (size_t)most(columns, 1);
    float *x = malloc(count * sizeof *x);
    if (!x) abort();
    for (size_t i = 0; i < count; i++) x[i] = draw(&seed);
    return x;
}

static inline bool inside(const product *p, int i, int j)
{
    return p->uplo == 'G' || (p->uplo == 'U' ? i <= j : i >= j);
}

/* Adds the products of one k to a column of sums. ThreadSanitizer need not see that operands are read once
   more, which took it a minute; it sees all that is read and written of C. */
__attribute__((no_sanitize("thread"))) static inline void add_to_column(const product *p, int j, int l,
                                                                        double *sum, double *size)
{
    const double b = transposed(p->tb) ? p->b[j + (size_t)l * (size_t)p->ldb]
                                       : p->b[l + (size_t)j * (size_t)p->ldb];
    const float *a = transposed(p->ta) ? p->a + l : p->a + (size_t)l * (size_t)p->lda;
    const size_t step = transposed(p->ta) ? (size_t)p->lda : 1;
    for (int i = 0; i < p->m; i++) {
        const double t = (double)a[(size_t)i * step] * b;
        sum[i] += t;
        size[i] += fabs(t);
    }
}

/* Is p->c what the product makes of `old`, the C from before, within (k+4) u |alpha||A||B| + 2u |beta C|; is
   all else in it untouched? Prints the first element that is not. */
static inline bool product_is_right(const product *p, const float *old)
{
    const double u = 0x1p-24;
    double *sum = malloc((size_t)most(p->m, 1) * 2 * sizeof *sum), *size = sum + p->m;
    if (!sum) abort();
    bool right = true;
    for (int j = 0; right && j < p->n; j++) {
        memset(sum, 0, (size_t)p->m * 2 * sizeof *sum);
        for (int l = 0; p->alpha != 0 && l < p->k; l++) add_to_column(p, j, l, sum, size);
        for (int i = 0; right && i < p->ldc; i++) {
            if (i >= p->m && j == p->n - 1) break;   /* beyond the last element nothing need exist */
            size_t at = (size_t)i + (size_t)j * (size_t)p->ldc;
            if (i >= p->m || !inside(p, i, j)) {
                right = memcmp(&p->c[at], &old[at], sizeof(float)) == 0;
                if (!right)
                    printf("  C(%d,%d) is not the call's to write, but was %g and is %g\n", i, j,
                           (double)old[at], (double)p->c[at]);
                continue;
            }
            double before = p->beta == 0 ? 0 : (double)p->beta * (double)old[at];
            double wanted = (double)p->alpha * sum[i] + before, found = p->c[at];
            double bound = (p->k + 4) * u * fabs((double)p->alpha) * size[i] + 2 * u * fabs(before)
                + 0x1p-149;
            if (isnan(wanted)) right = isnan(found);
            else right = isinf(wanted) ? found == wanted : fabs(found - wanted) <= bound;
            if (!right) printf("  C(%d,%d) is %.9g, wanted %.9g within %.3g\n", i, j, found, wanted, bound);
        }
    }
    free(sum);
    return right;
}

#endif
