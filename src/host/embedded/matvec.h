/* SPDX-License-Identifier: MIT */
/* The bodies of Level 2. Full, band and packed matrices differ only in where a column begins and which rows
   it holds, so one body serves all three. */

/* The places of a matrix's columns: m rows, kl diagonals below the main one and ku above it. */
typedef struct columns {
    enum { FULL, BAND, PACKED } storage;
    T *a;
    int64_t m, kl, ku, lda;
} columns;

/* A full triangle has all of its diagonals; an upper one has none below the main one. */
static columns triangle(int storage, int uplo, const T *a, int64_t n, int64_t lda)
{
    bool upper = (uplo & ~CONJUGATED) == 'U';
    return (columns){storage, (T *)a, n, upper ? 0 : n, upper ? n : 0, lda};
}

static columns band_triangle(int uplo, const T *a, int64_t n, int64_t k, int64_t lda)
{
    bool upper = (uplo & ~CONJUGATED) == 'U';
    return (columns){BAND, (T *)a, n, upper ? 0 : k, upper ? k : 0, lda};
}

/* The address c with c[i] == A(i,j) for from <= i < to, the rows that column j holds. */
static T *column(const columns *s, int64_t j, int64_t *from, int64_t *to)
{
    *from = j > s->ku ? j - s->ku : 0;
    *to = s->kl < s->m - j ? j + s->kl + 1 : s->m;
    switch (s->storage) {
    case BAND: return s->a + j * s->lda + s->ku - j;
    case PACKED: return s->a + (s->kl ? j * (2 * s->m - j - 1) : j * (j + 1)) / 2;
    default: return s->a + j * s->lda;
    }
}

/* The rows of a triangle's column j without the diagonal. */
static T *off_diagonal(const columns *s, int64_t j, int64_t *from, int64_t *count)
{
    int64_t to;
    T *c = column(s, j, from, &to);
    if (s->kl) *from = j + 1;
    else to = j;
    *count = to - *from;
    return c;
}

/* y += alpha op(A) x, for n columns; trans is N, T, C, or N conjugated. */
static void general_matvec(int trans, const columns *s, int64_t n, T alpha, const T *x, int64_t incx, T *y,
                           int64_t incy)
{
    bool by_columns = (trans & ~CONJUGATED) == 'N', conjugate = trans == 'C' || trans & CONJUGATED;
    for (int64_t j = 0; j < n; j++) {
        int64_t from, to;
        const T *c = column(s, j, &from, &to);
        if (from >= to) break;                  /* the band has left the matrix at the bottom */
        if (by_columns) axpy(to - from, alpha * x[j * incx], c + from, 1, y + from * incy, incy, conjugate);
        else y[j * incy] += alpha * dot(to - from, c + from, 1, x + from * incx, incx, conjugate);
    }
}

/* y += alpha A x (or conj(A) x) for a symmetric or Hermitian A of which one triangle is stored. */
static void symmetric_matvec(bool conjugate, const columns *s, T alpha, const T *x, int64_t incx, T *y,
                             int64_t incy)
{
    for (int64_t j = 0; j < s->m; j++) {
        int64_t from, count;
        const T *c = off_diagonal(s, j, &from, &count);
        T scaled = alpha * x[j * incx];
        axpy(count, scaled, c + from, 1, y + from * incy, incy, conjugate);
        y[j * incy] += scaled * REAL(c[j])
                       + alpha * dot(count, c + from, 1, x + from * incx, incx, !conjugate);
    }
}

/* x = op(A) x, or solves op(A) x = b in place. A unit diagonal is not read. As in netlib's, zeros of x skip
   their column. */
static void triangular_matvec(bool solve, int trans, bool unit, const columns *s, T *x, int64_t incx)
{
    bool by_columns = (trans & ~CONJUGATED) == 'N', conjugate = trans == 'C' || trans & CONJUGATED;
    bool upper = !s->kl, ascending = (upper == by_columns) != solve;
    for (int64_t step = 0; step < s->m; step++) {
        int64_t j = ascending ? step : s->m - 1 - step, from, count;
        const T *c = off_diagonal(s, j, &from, &count);
        T *xj = x + j * incx, diagonal = unit ? 1 : conj_if(conjugate, c[j]);
        if (by_columns) {
            if (*xj == 0) continue;
            if (solve && !unit) *xj /= diagonal;
            axpy(count, solve ? -*xj : *xj, c + from, 1, x + from * incx, incx, conjugate);
            if (!solve && !unit) *xj *= diagonal;
        } else {
            T sum = dot(count, c + from, 1, x + from * incx, incx, conjugate);
            if (!unit) *xj = solve ? (*xj - sum) / diagonal : *xj * diagonal + sum;
            else *xj += solve ? -sum : sum;
        }
    }
}

/* A += alpha x y^T, with x and y conjugated if so said. Zeros of y skip their column. */
static void rank_one(const columns *s, int64_t n, T alpha, const T *x, int64_t incx, bool conj_x, const T *y,
                     int64_t incy, bool conj_y)
{
    for (int64_t j = 0; j < n; j++) {
        int64_t from, to;
        T *c = column(s, j, &from, &to), yj = y[j * incy];
        if (yj != 0) axpy(to - from, alpha * conj_if(conj_y, yj), x + from * incx, incx, c + from, 1, conj_x);
    }
}

/* A += alpha x y^H + conj(alpha) y x^H on a triangle. */
static void rank_two(const columns *s, T alpha, const T *x, int64_t incx, const T *y, int64_t incy,
                     bool conjugate)
{
    for (int64_t j = 0; j < s->m; j++) {
        int64_t from, to;
        T *c = column(s, j, &from, &to), xj = x[j * incx], yj = y[j * incy];
        if (xj == 0 && yj == 0) continue;
        axpy(to - from, alpha * conj_if(!conjugate, yj), x + from * incx, incx, c + from, 1, conjugate);
        axpy(to - from, CONJ(alpha) * conj_if(!conjugate, xj), y + from * incy, incy, c + from, 1, conjugate);
    }
}

/* A Hermitian update leaves a real diagonal. */
static void make_diagonal_real(const columns *s)
{
    for (int64_t j = 0, from, to; j < s->m; j++) {
        T *c = column(s, j, &from, &to);
        c[j] = REAL(c[j]);
    }
}
