/* SPDX-License-Identifier: MIT */
/* What refines solutions by factors of single precision (dsgesv): copies between the precisions, the norm of
   the matrix, and netlib's criterion. */
#ifndef GPB_SOLVE_REFINE_CUH
#define GPB_SOLVE_REFINE_CUH

#include <float.h>
#include <math.h>

#include "kernels/element.cuh"
#include "kernels/solve_args.h"

template <class T> struct gpb_narrow_of { using type = T; };
template <> struct gpb_narrow_of<double> { using type = float; };
template <> struct gpb_narrow_of<double2> { using type = float2; };
template <class T> using gpb_narrow_type = typename gpb_narrow_of<T>::type;

/* From one precision to the other, rounded to nearest. */
static __device__ __forceinline__ void gpb_convert(float *to, float x) { *to = x; }
static __device__ __forceinline__ void gpb_convert(float *to, double x) { *to = (float)x; }
static __device__ __forceinline__ void gpb_convert(double *to, float x) { *to = x; }
static __device__ __forceinline__ void gpb_convert(float2 *to, float2 x) { *to = x; }
static __device__ __forceinline__ void gpb_convert(float2 *to, double2 x)
{
    *to = make_float2((float)x.x, (float)x.y);
}
static __device__ __forceinline__ void gpb_convert(double2 *to, float2 x) { *to = make_double2(x.x, x.y); }

/* False of NaN, as netlib's dlag2s. */
static __device__ __forceinline__ bool gpb_overflows(double x) { return x < -FLT_MAX || x > FLT_MAX; }
static __device__ __forceinline__ bool gpb_overflows(float) { return false; }
static __device__ __forceinline__ bool gpb_overflows(float2) { return false; }
static __device__ __forceinline__ bool gpb_overflows(double2 x)
{
    return gpb_overflows(x.x) || gpb_overflows(x.y);
}

static __device__ __forceinline__ float gpb_plus(float x, float y) { return __fadd_rn(x, y); }
static __device__ __forceinline__ double gpb_plus(double x, double y) { return __dadd_rn(x, y); }
template <class T> static __device__ __forceinline__ T gpb_plus(T x, T y)
{
    x.x = gpb_plus(x.x, y.x);
    x.y = gpb_plus(x.y, y.y);
    return x;
}

/* |x|, which sums of LAPACK's norms have, and |re| + |im|, which BLAS's maxima have. */
static __device__ __forceinline__ double gpb_absolute(float x) { return fabs((double)x); }
static __device__ __forceinline__ double gpb_absolute(double x) { return fabs(x); }
template <class T> static __device__ __forceinline__ double gpb_absolute(T x)
{
    return hypot((double)x.x, (double)x.y);
}
static __device__ __forceinline__ double gpb_size(float x) { return fabs((double)x); }
static __device__ __forceinline__ double gpb_size(double x) { return fabs(x); }
template <class T> static __device__ __forceinline__ double gpb_size(T x)
{
    return __dadd_rn(fabs((double)x.x), fabs((double)x.y));
}

/* A thread's row, and the first of its columns, as trapezoid.cuh has them. */
struct gpb_refine_place {
    int64_t i, j0;
    __device__ __forceinline__ explicit gpb_refine_place(int64_t rows)
    {
        const int64_t along = (rows + GPB_TRAPEZOID_THREADS - 1) / GPB_TRAPEZOID_THREADS;
        i = blockIdx.x % along * GPB_TRAPEZOID_THREADS + threadIdx.x;
        j0 = blockIdx.x / along * GPB_TRAPEZOID_COLUMNS;
    }
};

template <class T> static __device__ __forceinline__ void gpb_narrow(const gpb_narrow_args &g)
{
    using N = gpb_narrow_type<T>;
    const gpb_refine_place at(g.rows);
    bool overflows = false;
#pragma unroll 8
    for (int64_t j = at.j0; j < at.j0 + GPB_TRAPEZOID_COLUMNS; j++) {
        const int64_t i = at.i, diagonal = j + g.shift;
        if (i >= g.rows || j >= g.cols || (g.uplo == 'L' && i < diagonal) || (g.uplo == 'U' && i > diagonal))
            continue;
        T x = gpb_element_at((const T *)g.from + i + j * g.ldfrom);
        if (g.uplo != 'G' && i == diagonal) x = gpb_only_real(x);
        overflows |= gpb_overflows(x);
        gpb_convert((N *)g.to + i + j * g.ldto, x);
    }
    if (overflows) *g.overflow = 1;
}

template <class T> static __device__ __forceinline__ void gpb_correct(const gpb_correct_args &g)
{
    const gpb_refine_place at(g.rows);
#pragma unroll 4
    for (int64_t j = at.j0; j < at.j0 + GPB_TRAPEZOID_COLUMNS; j++) {
        if (at.i >= g.rows || j >= g.cols) continue;
        T *const x = (T *)g.x + at.i + j * g.ldx, more;
        gpb_convert(&more, ((const gpb_narrow_type<T> *)g.c)[at.i + j * g.ldc]);
        gpb_element_put(x, g.adds ? gpb_plus(gpb_element_at(x), more) : more);
        gpb_element_put((T *)g.r + at.i + j * g.ldr, gpb_element_at((const T *)g.b + at.i + j * g.ldb));
    }
}

/* A warp's threads have rows side by side, and each warp a share of the columns. */
template <class T> static __device__ __forceinline__ void gpb_norm(const gpb_norm_args &g)
{
    constexpr int ROWS = GPB_NORM_ROWS, SHARES = GPB_NORM_THREADS / ROWS;
    __shared__ double part[SHARES][ROWS];
    const int row = threadIdx.x % ROWS, share = threadIdx.x / ROWS;
    const int64_t i = (int64_t)blockIdx.x * ROWS + row;
    double sum = 0;
#pragma unroll 8
    for (int64_t j = share; j < g.cols; j += SHARES)
        if (i < g.rows) sum = __dadd_rn(sum, gpb_absolute(gpb_element_at((const T *)g.a + i + j * g.lda)));
    part[share][row] = sum;
    __syncthreads();
    if (share > 0 || i >= g.rows) return;
    for (int other = 1; other < SHARES; other++) sum = __dadd_rn(sum, part[other][row]);
    const unsigned long long bits = (unsigned long long)__double_as_longlong(sum) & INT64_MAX;
    atomicMax((unsigned long long *)g.norm, bits);
}

/* The larger of two numbers; NaN if one is. */
static __device__ __forceinline__ double gpb_larger(double x, double y) { return y > x || y != y ? y : x; }

/* The largest of a thread's elements, which are not negative. */
template <class T>
static __device__ __forceinline__ double gpb_largest(const void *a, int64_t lda, int64_t rows, int64_t col)
{
    double most = 0;
    for (int64_t i = threadIdx.x; i < rows; i += GPB_JUDGE_THREADS)
        most = gpb_larger(most, gpb_size(gpb_element_at((const T *)a + i + col * lda)));
    return most;
}

/* netlib accepts a NaN. Here one means double precision, if A is finite: where a column of B is 0 and pivots
   are infinite in single precision, netlib's solve skips the zeros, and ours makes NaN of 0 times Inf. */
template <class T> static __device__ __forceinline__ void gpb_judge(const gpb_judge_args &g)
{
    __shared__ double of_x[GPB_JUDGE_THREADS], of_r[GPB_JUDGE_THREADS];
    const int t = threadIdx.x;
    for (int64_t j = blockIdx.x; j < g.cols; j += gridDim.x) {
        of_x[t] = gpb_largest<T>(g.x, g.ldx, g.rows, j);
        of_r[t] = gpb_largest<T>(g.r, g.ldr, g.rows, j);
        for (int half = GPB_JUDGE_THREADS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (t >= half) continue;
            of_x[t] = gpb_larger(of_x[t], of_x[t + half]);
            of_r[t] = gpb_larger(of_r[t], of_r[t + half]);
        }
        if (t == 0) {
            const double norm = __longlong_as_double((long long)*g.norm);
            const double limit = __dmul_rn(__dmul_rn(norm, g.eps), sqrt((double)g.rows));
            const double most = __dmul_rn(of_x[0], limit);
            if (norm < INFINITY ? !(of_r[0] <= most) : of_r[0] > most) *g.worse = g.round;
        }
        __syncthreads();
    }
}

#endif
