/* SPDX-License-Identifier: MIT */
/* C = alpha acc + beta C, or acc alone as one of the parts of a product. Each product and the sum is rounded
   once. beta == 0 never reads C. Nothing outside m x n is touched. */
#ifndef GPB_EPILOGUE_CUH
#define GPB_EPILOGUE_CUH

#include "kernels/tile.cuh"

template <class T> static __device__ __forceinline__ T gpb_blend(const gpb_target<T> &to, T acc, T old)
{
    const T product = GPB_IS_COMPLEX<T> && to.raw ? acc : gpb_product(to.alpha, acc);
    return gpb_is_zero(to.beta) ? product : gpb_sum(product, gpb_scaled_old(to, old));
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

/* C(i,j), or 0 where C has none or is not read. */
template <class T>
static __device__ __forceinline__ T gpb_old(const gpb_target<T> &to, int64_t i, int64_t j)
{
    const bool there = i < to.m && j < to.n && to.has(i, j) && !gpb_is_zero(to.beta);
    return there ? gpb_element_at(to.c + i + j * to.ldc) : T();
}

/* Stores one result, C(i,j), if C has it. */
template <class T>
static __device__ __forceinline__ void gpb_store(const gpb_target<T> &to, int64_t i, int64_t j, T acc, T old)
{
    if (i < to.m && j < to.n && to.has(i, j))
        gpb_element_put(to.c + i + j * to.ldc, gpb_as_stored(to, i - j, gpb_blend(to, acc, old)));
}
template <class T>
static __device__ __forceinline__ void gpb_store(const gpb_target<T> &to, int64_t i, int64_t j, T acc)
{
    gpb_store(to, i, j, acc, gpb_old(to, i, j));
}

/* The same of the part of C that begins at C(i,j). Its places take 32 bits, and so few registers: the order
   of a triangle has no more. */
struct gpb_place {
    int i, j;
};
template <class T> struct gpb_part {
    const gpb_target<T> &to;
    T *c;
    int rows, cols, below;                 /* of C from there on, up to MOST; from the diagonal to C(i,j) */

    __device__ __forceinline__ gpb_part(const gpb_target<T> &to, int64_t i, int64_t j)
        : to(to), c(to.c + i + j * to.ldc), rows(within(to.m - i)), cols(within(to.n - j)),
          below((int)(i - j))
    {
    }
    static __device__ __forceinline__ int within(int64_t size)
    {
        constexpr int64_t MOST = 1 << 20;
        return (int)min(size, MOST);
    }
    __device__ __forceinline__ bool has(const gpb_place &at) const
    {
        const int d = below + at.i - at.j;
        return at.i < rows && at.j < cols && (!to.uplo || (to.uplo == 'U' ? d <= 0 : d >= 0));
    }
    __device__ __forceinline__ T old(const gpb_place &at) const
    {
        return has(at) && !gpb_is_zero(to.beta) ? gpb_element_at(c + at.i + at.j * to.ldc) : T();
    }
    __device__ __forceinline__ void store(const gpb_place &at, T acc, T old) const
    {
        if (has(at))
            gpb_element_put(c + at.i + at.j * to.ldc,
                            gpb_as_stored(to, below + at.i - at.j, gpb_blend(to, acc, old)));
    }
};

/* Stores a thread's COUNT results where the diagonal crosses the tile: value(x) to place(x) from C(i,j) on.
   So many BYTES of old values of C are loaded before any result is stored, because the compiler cannot know
   that stores do not alias them. */
template <int COUNT, int BYTES = 64, class T, class PLACE, class VALUE>
static __device__ __forceinline__ void gpb_store_crossed(const gpb_target<T> &to, int64_t i, int64_t j,
                                                         PLACE place, VALUE value)
{
    constexpr int FEW = COUNT < BYTES / (int)sizeof(T) ? COUNT : BYTES / (int)sizeof(T);
    static_assert(COUNT % FEW == 0, "no rest");
    const gpb_part<T> part(to, i, j);
#pragma unroll
    for (int x0 = 0; x0 < COUNT; x0 += FEW) {
        T old[FEW];
#pragma unroll
        for (int x = 0; x < FEW; x++) old[x] = part.old(place(x0 + x));
#pragma unroll
        for (int x = 0; x < FEW; x++) part.store(place(x0 + x), value(x0 + x), old[x]);
    }
}

/* Component r of a vector. */
template <class T> static __device__ __forceinline__ T gpb_vector_at(gpb_vector<T> v, int r)
{
    T each[GPB_VECTOR<T>];
    gpb_vector_to(each, v);
    return each[r];
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
    if (to.is_crossed(at.i0, at.j0, BM, BN)) {
        auto place = [&](int x) __attribute__((always_inline)) {
            const int s = x / TM, r = x % TM;
            return gpb_place{ r / V * STEP_M + r % V, s / GROUP * STEP_N + s % GROUP };
        };
        auto value = [&](int x) __attribute__((always_inline)) { return acc[x / TM][x % TM]; };
        gpb_store_crossed<TM * TN>(to, at.i0 + i, at.j0 + j, place, value);
        return;
    }
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
