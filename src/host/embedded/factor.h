/* SPDX-License-Identifier: MIT */
/* LU, Cholesky and inverses of a few columns, without blocks: the ends of LAPACK's solvers by halves
   (src/host/lapack.c). */

enum { LEAF = 16 };

static void exchange_rows(int64_t n, T *a, int64_t lda, int64_t row, int64_t other)
{
    for (int64_t j = 0; j < n && row != other; j++) {
        T kept = a[row + j * lda];
        a[row + j * lda] = a[other + j * lda];
        a[other + j * lda] = kept;
    }
}

/* The row of the first largest element of a column, by |re| + |im| as in netlib's i?amax. */
static int64_t pivot_row(int64_t n, const T *x)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (ABS1(x[i]) > ABS1(x[best])) best = i;
    return best;
}

/* A pivot so small that its reciprocal would overflow divides instead. */
static void divide_column(int64_t n, T *x, T pivot)
{
    const R least = sizeof(R) == sizeof(float) ? 0x1p-126 : 0x1p-1022;
    const T inverse = 1 / pivot;
    const bool reciprocal = ABS1(pivot) >= least;
    for (int64_t i = 0; i < n; i++) x[i] = reciprocal ? x[i] * inverse : x[i] / pivot;
}

static int64_t factor_lu(const gpb_factor *f)
{
    T *a = f->a;
    int64_t info = 0;
    for (int64_t j = 0; j < gpb_factor_order(f); j++) {
        T *column = a + j * f->lda;
        const int64_t pivot = j + pivot_row(f->m - j, column + j);
        if (f->width == 64) ((int64_t *)f->ipiv)[j] = pivot + 1;
        else ((int32_t *)f->ipiv)[j] = (int32_t)(pivot + 1);
        if (column[pivot] != 0) {
            exchange_rows(f->n, a, f->lda, j, pivot);
            divide_column(f->m - j - 1, column + j + 1, column[j]);
        } else if (!info) {
            info = j + 1;
        }
        for (int64_t l = j + 1; l < f->n; l++)
            axpy(f->m - j - 1, -a[j + l * f->lda], column + j + 1, 1, a + j + 1 + l * f->lda, 1, false);
    }
    return info;
}

/* Column j of L, from the rows of L that are known to its left. U^H U is treated as L L^H whose L lies on its
   side, conjugated. */
static int64_t factor_cholesky(const gpb_factor *f)
{
    T *a = f->a;
    const bool lower = f->uplo == 'L';
    const int64_t down = lower ? 1 : f->lda, right = lower ? f->lda : 1;
    for (int64_t j = 0; j < f->n; j++) {
        T *row = a + j * down, *diagonal = row + j * right;
        const R square = REAL(*diagonal) - REAL(dot(j, row, right, row, right, true));
        *diagonal = square;
        if (!(square > 0)) return j + 1;
        const R root = sizeof(R) == sizeof(float) ? sqrtf(square) : sqrt(square);
        *diagonal = root;
        for (int64_t i = j + 1; i < f->n; i++) {
            T *below = a + i * down;
            below[j * right] = (below[j * right] - dot(j, row, right, below, right, true)) / root;
        }
    }
    return 0;
}

/* Column by column of the upper triangle, row by row of the lower one, which is an upper one on its side: the
   element on the diagonal, then the part before it, by the triangle that is inverted already. */
static void invert_leaf(void *where, const gpb_inverse *t)
{
    (void)where;
    T *a = t->a;
    const bool upper = t->uplo == 'U', unit = t->diag == 'U';
    const int64_t down = upper ? 1 : t->lda, right = upper ? t->lda : 1;
    for (int64_t j = 0; j < t->n; j++) {
        T *column = a + j * right, inverse = unit ? 1 : 1 / column[j * down];
        if (!unit) column[j * down] = inverse;
        for (int64_t i = 0; i < j; i++) {
            T sum = unit ? column[i * down] : 0;
            for (int64_t p = unit ? i + 1 : i; p < j; p++) sum += a[i * down + p * right] * column[p * down];
            column[i * down] = -sum * inverse;
        }
    }
}

/* Row by row of L^H L, from rows of L that are still there; U U^H on its side, as in factor_cholesky. */
static void square_leaf(void *where, const gpb_factor *f)
{
    (void)where;
    T *a = f->a;
    const bool lower = f->uplo == 'L';
    const int64_t down = lower ? 1 : f->lda, right = lower ? f->lda : 1;
    for (int64_t i = 0; i < f->n; i++) {
        T *row = a + i * down, *below = row + i * right;
        for (int64_t j = 0; j <= i; j++)
            row[j * right] = dot(f->n - i, below, down, row + j * right, down, true);
        *below = REAL(*below);
    }
}

static int64_t factor_leaf(void *where, const gpb_factor *f)
{
    (void)where;
    return gpb_factor_is_lu(f) ? factor_lu(f) : factor_cholesky(f);
}

static const gpb_lapack_parts on_host = { .leaf = LEAF, .factor = factor_leaf, .invert = invert_leaf,
                                          .square = square_leaf, GPB_LAPACK_HOST_LEVEL3 };
