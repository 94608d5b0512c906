/* SPDX-License-Identifier: MIT */
/* Which tile of which batch member a thread block computes. */
#ifndef GPB_TILE_CUH
#define GPB_TILE_CUH

#include "kernels/element.cuh"
#include "kernels/gemm_args.h"
#include "kernels/names.h"
#include "kernels/ptx.cuh"
#include "kernels/triangle.h"

/* One tile of one batch member, elements of type T, as every kernel's body sees it. It holds only what the
   main loop needs, because registers are scarce. k >= 1. */
template <class T> struct gpb_tile {
    const gpb_gemm_args &g;                /* in the constant bank, so sizes and strides need no registers */
    unsigned z;  /* the member; with split-K, part z % splits of member z / splits */
    int64_t i0, j0, k;  /* the tile's first row and column of C; its depth, 0 if alpha is 0 */
    const T *a, *b;                        /* the member's operands, from the first k of the part on */
};

/* Tiles are walked in groups of this many rows of tiles, so that neighbouring blocks share panels of A and B
   in the level-2 cache. */
constexpr unsigned GPB_TILE_GROUP = 8;

/* Tells the compiler that p is an address of global memory. An address from the argument block could be of
   any kind. */
template <class T> static __device__ __forceinline__ T *gpb_global(T *p)
{
    __builtin_assume(__isGlobal(p));
    return p;
}

/* First row and column of this block's tile. Kernels with many results a thread compute it again for their
   epilogue instead of keeping it in registers. */
struct gpb_origin {
    int64_t i0, j0;
};

/* Tile `number`, in the order in which tiles are walked, and its origin. */
static __device__ __forceinline__ gpb_triangle_place gpb_place_at(unsigned number, unsigned tiles_m,
                                                                  unsigned tiles_n)
{
    const unsigned group = number / (GPB_TILE_GROUP * tiles_n), first = group * GPB_TILE_GROUP;
    const unsigned height = min(tiles_m - first, GPB_TILE_GROUP), place = number - first * tiles_n;
    return { first + place % height, place / height };
}
template <int BM, int BN>
static __device__ __forceinline__ gpb_origin gpb_origin_at(unsigned number, unsigned tiles_m,
                                                           unsigned tiles_n)
{
    const gpb_triangle_place at = gpb_place_at(number, tiles_m, tiles_n);
    return { (int64_t)at.tile_m * BM, (int64_t)at.tile_n * BN };
}

/* The same of a triangle of C. */
template <int BM, int BN>
static __device__ __forceinline__ gpb_origin gpb_origin_in_triangle(const gpb_gemm_args &g, unsigned number)
{
    const gpb_triangle_place at = gpb_triangle_tile(g.uplo, number, gpb_fresh(g.n), BM, BN);
    return { (int64_t)at.tile_m * BM, (int64_t)at.tile_n * BN };
}

/* Multiplied by the edges only where both ways meet: an origin that is kept then takes two registers. Of a
   kernel with WHOLE both it and what depends on it stay in uniform registers. */
template <int BM, int BN, bool WHOLE = false>
static __device__ __forceinline__ gpb_origin gpb_origin_of(const gpb_gemm_args &g)
{
    gpb_triangle_place at;
    if (!WHOLE && g.uplo) {
        at = gpb_triangle_tile(g.uplo, gpb_block(), gpb_fresh(g.n), BM, BN);
    } else {
        const unsigned tiles_m = (unsigned)((gpb_fresh(g.m) + BM - 1) / BM);
        at = gpb_place_at(gpb_block(), tiles_m, gridDim.x / tiles_m);
    }
    return { (int64_t)at.tile_m * BM, (int64_t)at.tile_n * BN };
}

/* The number of parts into which k is cut. */
static __device__ __forceinline__ unsigned gpb_splits_of(const gpb_gemm_args &g)
{
    const int64_t splits = gpb_fresh(g.splits);
    return splits > 1 ? (unsigned)splits : 1;
}

template <class T, int BK>
static __device__ __forceinline__ gpb_tile<T> gpb_tile_at(const gpb_gemm_args &g, unsigned z,
                                                          const gpb_origin &at)
{
    const unsigned splits = gpb_splits_of(g), l = z / splits;
    int64_t k = gpb_scalar<T>::is_zero(g.alpha) ? 0 : gpb_fresh(g.k);
    const T *a = g.items ? (const T *)g.items[l].a : (const T *)g.a + l * g.stride_a;
    const T *b = g.items ? (const T *)g.items[l].b : (const T *)g.b + l * g.stride_b;
    if (splits > 1) {                      /* each part gets whole k tiles; the last may get fewer, or none */
        const int64_t depth = ((k + BK - 1) / BK + splits - 1) / splits * BK, p = z % splits * depth;
        a += p * g.csa;
        b += p * g.rsb;
        k = max(min(depth, k - p), (int64_t)0);
    }
    return { g, z, at.i0, at.j0, k, gpb_global(a), gpb_global(b) };
}

template <class T, int BM, int BN, int BK, bool WHOLE = false>
static __device__ __forceinline__ gpb_tile<T> gpb_tile_of(const gpb_gemm_args &g, unsigned z)
{
    return gpb_tile_at<T, BK>(g, z, gpb_origin_of<BM, BN, WHOLE>(g));
}

/* True if this kernel is to compute the tile there: always without guard words, with them if the tile is at
   g.level or above. */
template <class T>
static __device__ __forceinline__ bool gpb_wanted_at(const gpb_gemm_args &g, unsigned l, const gpb_origin &at)
{
    constexpr int ROWS = GPB_GUARD_ROWS(GPB_IS_COMPLEX<T>);
    return gpb_guard_level(g.guard_a[l * g.stride_guard_a + at.i0 / ROWS], g.epoch_a) >= g.level
           || gpb_guard_level(g.guard_b[l * g.stride_guard_b + at.j0 / GPB_GUARD], g.epoch_b) >= g.level;
}

template <class T, int BM, int BN, bool WHOLE = false>
static __device__ __forceinline__ bool gpb_wanted(const gpb_gemm_args &g, unsigned l)
{
    return !g.guard_a || gpb_wanted_at<T>(g, l, gpb_origin_of<BM, BN, WHOLE>(g));
}

/* The number of k tiles, BK deep. 32 bits suffice for any memory. */
template <int BK, class T> static __device__ __forceinline__ unsigned gpb_k_tiles(const gpb_tile<T> &t)
{
    return (unsigned)((t.k + BK - 1) / BK);
}

/* Where a tile's results go: C of its member. */
template <class T> struct gpb_target {
    T *c;
    int64_t m, n, ldc;
    T alpha, beta;
    bool aligned;                          /* vectors of rows (element.cuh) begin at multiples of 16 bytes */
    bool raw;                              /* not times alpha: 1 + 0 i times an infinite part is NaN */
    int uplo, hermitian;                   /* as in gpb_gemm_args; of parts of k 0 */

    /* True if C(i,j), which is within m x n, is to be written. */
    __device__ __forceinline__ bool has(int64_t i, int64_t j) const
    {
        return !uplo || (uplo == 'U' ? i <= j : i >= j);
    }
    /* True unless all of a part of C is to be written. */
    __device__ __forceinline__ bool is_crossed(int64_t i, int64_t j, int rows, int cols) const
    {
        return uplo && (uplo == 'U' ? i + rows - 1 > j : i < j + cols - 1);
    }
};

template <class T> static __device__ __forceinline__ bool gpb_is_aligned(const T *c, int64_t ldc)
{
    return ((uintptr_t)c & 15) == 0 && (ldc & (GPB_VECTOR<T> - 1)) == 0;
}

template <class T> static __device__ __forceinline__ gpb_target<T> gpb_target_of(const gpb_tile<T> &t)
{
    const unsigned splits = gpb_splits_of(t.g);
    if (splits > 1) {                      /* raw, as one of the parts */
        T *part = (T *)t.g.partials + t.z * (t.g.m * t.g.n);
        return { gpb_global(part),
                 t.g.m,
                 t.g.n,
                 t.g.m,
                 gpb_scalar<T>::of({ 1, 0 }),
                 gpb_scalar<T>::of({ 0, 0 }),
                 gpb_is_aligned(part, t.g.m),
                 true,
                 0,
                 0 };
    }
    const gpb_gemm_item *items = (const gpb_gemm_item *)gpb_fresh((int64_t)t.g.items);
    T *c = items ? (T *)items[t.z].c : (T *)t.g.c + t.z * t.g.stride_c;
    return { gpb_global(c),
             t.g.m,
             t.g.n,
             t.g.ldc,
             gpb_scalar<T>::fresh(t.g.alpha),
             gpb_scalar<T>::fresh(t.g.beta),
             gpb_is_aligned(c, t.g.ldc),
             false,
             t.g.uplo,
             t.g.hermitian };
}

/* beta times an element of C. */
template <class T> static __device__ __forceinline__ T gpb_scaled_old(const gpb_target<T> &to, T old)
{
    if (GPB_IS_COMPLEX<T> && to.hermitian) return gpb_times_real(gpb_real_part(to.beta), old);
    return gpb_scaled(to.beta, old);
}

/* What is stored as C(i,j). below: i - j. */
template <class T>
static __device__ __forceinline__ T gpb_as_stored(const gpb_target<T> &to, int64_t below, T x)
{
    return GPB_IS_COMPLEX<T> && to.hermitian && below == 0 ? gpb_only_real(x) : x;
}

/* C = beta C for one tile, because with k == 0 there is nothing to multiply. */
template <int BM, int BN, class T> static __device__ __forceinline__ void gpb_tile_scale(const gpb_tile<T> &t)
{
    const gpb_target<T> to = gpb_target_of(t);
    for (int x = threadIdx.x; x < BM * BN; x += blockDim.x) {
        int64_t i = t.i0 + x % BM, j = t.j0 + x / BM;
        if (i < to.m && j < to.n && to.has(i, j)) {
            T *c = &to.c[i + j * to.ldc];
            const T x = gpb_is_zero(to.beta) ? T() : gpb_scaled_old(to, gpb_element_at(c));
            gpb_element_put(c, gpb_as_stored(to, i - j, x));
        }
    }
}

/* The body of every GEMM kernel. STEP computes this block's tile of each batch member, or the part of it,
   that belongs to this block. WHOLE: the kernel has that cap (names.h). */
template <class T, int BM, int BN, int BK, void (*STEP)(const gpb_tile<T> &), bool WHOLE = false>
static __device__ __forceinline__ void gpb_each_member(const gpb_gemm_args &g)
{
    gpb_grid_trigger();
    gpb_grid_wait();
    const unsigned splits = gpb_splits_of(g);
    for (unsigned z = blockIdx.z; z < (uint64_t)g.batch * splits; z += gridDim.z) {
        if (!gpb_wanted<T, BM, BN, WHOLE>(g, z / splits))
            continue;
        const gpb_tile<T> t = gpb_tile_of<T, BM, BN, BK, WHOLE>(g, z);
        if (t.k == 0)
            gpb_tile_scale<BM, BN>(t);
        else
            STEP(t);
        __syncthreads();                   /* before the next member overwrites shared memory */
    }
}

#endif
