/* SPDX-License-Identifier: MIT */
/* C = alpha acc + beta C, or acc alone as one of the parts of a product. Each product and the sum is rounded
   once. beta == 0 never reads C. Nothing outside m x n is touched. */
#ifndef GPB_EPILOGUE_CUH
#define GPB_EPILOGUE_CUH

#include "kernels/tile.cuh"

template <class T> static __device__ __forceinline__ T gpb_blend(const gpb_target<T> &to, T acc, T old)
{
    if (GPB_IS_COMPLEX<T> && to.raw) return acc;
    const T product = gpb_product(to.alpha, acc);
    return gpb_is_zero(to.beta) ? product : gpb_sum(product, gpb_scaled(to.beta, old));
}

template <class T>
static __device__ __forceinline__ gpb_vector<T> gpb_blend_vector(const gpb_target<T> &to, gpb_vector<T> acc,
                                                                 gpb_vector<T> old)
{
    T x[GPB_VECTOR<T>], y[GPB_VECTOR<T>];
    gpb_vector_to(x, acc);
    gpb_vector_to(y, old);
#pragma unroll
    for (int r = 0; r < GPB_VECTOR<T>; r++) x[r] = gpb_blend(to, x[r], y[r]);
    return gpb_vector_from(x);
}

/* The same for FP32 without arrays, because the compiler makes slower code of those. */
static __device__ __forceinline__ float4 gpb_blend_vector(const gpb_target<float> &to, float4 acc, float4 old)
{
    return make_float4(gpb_blend(to, acc.x, old.x), gpb_blend(to, acc.y, old.y), gpb_blend(to, acc.z, old.z),
                       gpb_blend(to, acc.w, old.w));
}

/* Stores one result, C(i,j). */
template <class T>
static __device__ __forceinline__ void gpb_store(const gpb_target<T> &to, int64_t i, int64_t j, T acc)
{
    if (i < to.m && j < to.n) {
        T *c = to.c + i + j * to.ldc;
        gpb_element_put(c, gpb_blend(to, acc, gpb_is_zero(to.beta) ? T() : gpb_element_at(c)));
    }
}

/* The old values of a vector in one column of C, from c[0] on. The first `rows` elements are within C, which
   may be none or all; the others become 0. C is not read if beta is 0. */
template <class T>
static __device__ __forceinline__ gpb_vector<T> gpb_old_vector(const gpb_target<T> &to, const T *c, int rows)
{
    if (gpb_is_zero(to.beta) || rows <= 0) return gpb_vector<T>();
    if (to.aligned && rows >= GPB_VECTOR<T>) return *(const gpb_vector<T> *)c;
    return gpb_vector_within(c, rows);
}

/* Stores a vector of results, as far as it is within C. */
template <class T>
static __device__ __forceinline__ void gpb_store_vector(const gpb_target<T> &to, T *c, int rows,
                                                        gpb_vector<T> acc, gpb_vector<T> old)
{
    const gpb_vector<T> all = gpb_blend_vector(to, acc, old);
    if (to.aligned && rows >= GPB_VECTOR<T>) {
        __stwb((gpb_vector<T> *)c, all);   /* an assignment would become four 4-byte stores in half of all
                                              places */
        return;
    }
    T each[GPB_VECTOR<T>];
    gpb_vector_to(each, all);
#pragma unroll
    for (int r = 0; r < GPB_VECTOR<T>; r++)
        if (r < rows) gpb_element_put(c + r, each[r]);
}
template <class T>
static __device__ __forceinline__ void gpb_store_vector(const gpb_target<T> &to, T *c, int rows,
                                                        gpb_vector<T> acc)
{
    gpb_store_vector(to, c, rows, acc, gpb_old_vector(to, c, rows));
}

/* Stores a thread's results in vectors of V rows. acc[s][V*x + r] is row i + x*STEP_M + r of the tile and
   column j + s/GROUP*STEP_N + s%GROUP. */
template <int BM, int BN, int STEP_M, int STEP_N, int GROUP, class T, int TM, int TN>
static __device__ __forceinline__ void gpb_store_fragments(const gpb_tile<T> &t, int i, int j,
                                                           const T (&acc)[TN][TM])
{
    constexpr int V = GPB_VECTOR<T>;
    const gpb_target<T> to = gpb_target_of(t);
    const gpb_origin at = gpb_origin_of<BM, BN>(t.g);
    const int rows = (int)min(to.m - at.i0, (int64_t)BM) - i, cols = (int)min(to.n - at.j0, (int64_t)BN) - j;
    T *c = to.c + at.i0 + i + (at.j0 + j) * to.ldc;
#pragma unroll
    for (int s = 0; s < TN; s++) {
        const int at = s / GROUP * STEP_N + s % GROUP;
        if (at < cols)
#pragma unroll
            for (int x = 0; x < TM / V; x++)
                gpb_store_vector(to, c + x * STEP_M, rows - x * STEP_M, gpb_vector_from(&acc[s][V * x]));
        c += (s % GROUP == GROUP - 1 ? STEP_N - GROUP + 1 : 1) * to.ldc;
    }
}

#endif
