/* SPDX-License-Identifier: MIT */
/* Vector loops for Levels 1 and 2. Strides are signed; a vector is given by the address of element 0. */

/* Element 0 of a BLAS vector. If the increment is negative, BLAS passes the address of the last element. */
#define FIRST(x, n, inc) ((inc) < 0 ? (x) - ((int64_t)(n) - 1) * (inc) : (x))

static inline T conj_if(bool conjugate, T x) { return conjugate ? CONJ(x) : x; }

static inline __attribute__((always_inline)) void
axpy_loop(int64_t n, T alpha, const T *restrict x, int64_t incx, T *restrict y, int64_t incy, bool conjugate)
{
    for (int64_t i = 0; i < n; i++) y[i * incy] += alpha * conj_if(conjugate, x[i * incx]);
}

/* y += alpha x, with x conjugated if `conjugate`. Unit strides are constants, so that their loop is
   vectorised. */
static void axpy(int64_t n, T alpha, const T *x, int64_t incx, T *y, int64_t incy, bool conjugate)
{
    if (incx == 1 && incy == 1) axpy_loop(n, alpha, x, 1, y, 1, conjugate);
    else axpy_loop(n, alpha, x, incx, y, incy, conjugate);
}

/* In eight partial sums, because one sum would wait for every addition and may not be vectorised. */
static inline __attribute__((always_inline)) T dot_loop(int64_t n, const T *x, int64_t incx, const T *y,
                                                        int64_t incy, bool conjugate)
{
    enum { PARTS = 8 };
    T part[PARTS] = {0};
    int64_t i = 0;
    for (; i + PARTS <= n; i += PARTS)
        for (int64_t l = 0; l < PARTS; l++)
            part[l] += conj_if(conjugate, x[(i + l) * incx]) * y[(i + l) * incy];
    for (; i < n; i++) part[0] += conj_if(conjugate, x[i * incx]) * y[i * incy];
    for (int half = PARTS / 2; half; half /= 2)
        for (int l = 0; l < half; l++) part[l] += part[l + half];
    return part[0];
}

/* The sum of x y, with x conjugated if `conjugate`. */
static T dot(int64_t n, const T *x, int64_t incx, const T *y, int64_t incy, bool conjugate)
{
    if (incx == 1 && incy == 1) return dot_loop(n, x, 1, y, 1, conjugate);
    return dot_loop(n, x, incx, y, incy, conjugate);
}

/* x = beta x; if beta is 0, x is not read. */
static void scale_vector(int64_t n, T beta, T *x, int64_t incx)
{
    if (beta == 1) return;
    for (int64_t i = 0; i < n; i++) x[i * incx] = beta == 0 ? 0 : beta * x[i * incx];
}
