/* SPDX-License-Identifier: MIT */
/* Products that are thin, deep or small. One body for all of them; the rows of gemm.def differ in tile and threads.

   What such shapes lack is work for all multiprocessors: so tiles may be thin, k is cut into parts (tile.cuh), and within a block each
   group of threads, enough for the tile at TM x TN results each, takes every KS-th four of a slice's k; the groups' sums are added
   in shared memory at the end, in their order. What thin shapes wait for is memory: slices are copied STAGES - 1 ahead. */
#ifndef GPB_SHAPES_SLAB_CUH
#define GPB_SHAPES_SLAB_CUH

#include "kernels/shapes/feed.cuh"
#include "kernels/shapes/fold.cuh"

/* How LANES x OTHER thread places share an edge of a tile: T results of each, four neighbouring ones at a time (or all T < 4). */
template <int EDGE, int T, int WARP> struct gpb_edge {
    static constexpr int FOURS = T < 4 ? 1 : T / 4, WIDTH = T < 4 ? T : 4, STEP = WARP * WIDTH;
    static_assert(EDGE % (WARP * T) == 0 && WIDTH * FOURS == T, "threads must share the edge evenly");
    static_assert((WARP & (WARP - 1)) == 0 && (FOURS & (FOURS - 1)) == 0, "place() splits bits");

    /* First of the thread's results, from its place along the edge. */
    static __device__ __forceinline__ int first(int place) { return place / WARP * (WARP * T) + place % WARP * WIDTH; }
    /* Result x of the thread, from its first. */
    static __device__ __forceinline__ constexpr int nth(int x) { return x / WIDTH * STEP + x % WIDTH; }
};

template <int BM, int BN, int THREADS, int TM, int TN> struct gpb_slab_shape {
    static constexpr int LM = BM / TM, LN = BN / TN, GROUP = LM * LN, KS = THREADS / GROUP;
    static constexpr int SIDE = 32 / LM < 1 ? 1 : 32 / LM;
    static constexpr int WN = LM < 8 ? (LN < SIDE ? LN : SIDE) : (LN < 4 ? LN : 4), WM = LM < 32 / WN ? LM : 32 / WN;
    static_assert(GROUP * KS == THREADS && LM * TM == BM && LN * TN == BN, "groups of threads must share the block evenly");
    using edge_m = gpb_edge<BM, TM, WM>;
    using edge_n = gpb_edge<BN, TN, WN>;

    static __device__ __forceinline__ int group() { return threadIdx.x / GROUP; }
    /* This thread's places along the two edges: a warp is WM x WN, warps follow each other down the tile. */
    static __device__ __forceinline__ int row()
    {
        const int warp = threadIdx.x % GROUP / (WM * WN);
        return edge_m::first(threadIdx.x % WM + warp % (LM / WM) * WM);
    }
    static __device__ __forceinline__ int col()
    {
        const int warp = threadIdx.x % GROUP / (WM * WN);
        return edge_n::first(threadIdx.x / WM % WN + warp / (LM / WM) * WN);
    }
};

/* Four k of a thread's T rows (or columns): to[x][q], from piece `piece` of a slice. */
template <bool DEEP, class EDGE, int ROWS, int BK, int T>
static __device__ __forceinline__ void gpb_slab_fragment(float (&to)[T][4], const float *slice, int first, int piece)
{
    if (DEEP) {
#pragma unroll
        for (int x = 0; x < T; x++) {
            const float4 v = *(const float4 *)(slice + gpb_deep_place<BK>(first, EDGE::nth(x), piece));
            to[x][0] = v.x, to[x][1] = v.y, to[x][2] = v.z, to[x][3] = v.w;
        }
    } else {
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
            for (int x = 0; x < T; x += 4) {
                const float4 v = *(const float4 *)(slice + (4 * piece + q) * ROWS + first + EDGE::nth(x));
                to[x][q] = v.x, to[x + 1 < T ? x + 1 : x][q] = v.y, to[x + 2 < T ? x + 2 : x][q] = v.z, to[x + 3 < T ? x + 3 : x][q] = v.w;
            }
    }
}

/* The groups' sums, sums[group][j][i], to C. */
template <int BM, int BN, int KS, int THREADS>
static __device__ __forceinline__ void gpb_slab_store_groups(const gpb_tile &t, const float *sums)
{
    const gpb_target to = gpb_target_of(t);
    const int rows = (int)min(to.m - t.i0, (int64_t)BM), cols = (int)min(to.n - t.j0, (int64_t)BN);
    constexpr int WIDTH = BM % 4 ? 1 : 4;
    for (int x = threadIdx.x; x < BM * BN / WIDTH; x += THREADS) {
        const int i = x % (BM / WIDTH) * WIDTH, j = x / (BM / WIDTH);
        if (i >= rows || j >= cols) continue;
        float sum[WIDTH] = {};
#pragma unroll
        for (int g = 0; g < KS; g++)
#pragma unroll
            for (int r = 0; r < WIDTH; r++)
                sum[r] = g ? sum[r] + sums[(g * BN + j) * BM + i + r] : sums[(g * BN + j) * BM + i + r];
        float *c = gpb_global(to.c + t.i0 + i + (t.j0 + j) * to.ldc);
        if (WIDTH == 4)
            gpb_store4(to, c, rows - i, make_float4(sum[0], sum[1 % WIDTH], sum[2 % WIDTH], sum[3 % WIDTH]));
        else
            *c = gpb_blend(to, sum[0], to.beta == 0 ? 0 : *c);
    }
}

/* A thread's own results to C, where there is one group. */
template <int BM, int BN, class SHAPE, int TM, int TN>
static __device__ __forceinline__ void gpb_slab_store(const gpb_tile &t, const float (&acc)[TN][TM])
{
    const gpb_target to = gpb_target_of(t);
    const int i = SHAPE::row(), j = SHAPE::col();
    const int rows = (int)min(to.m - t.i0, (int64_t)BM) - i, cols = (int)min(to.n - t.j0, (int64_t)BN) - j;
    float *c = gpb_global(to.c + t.i0 + i + (t.j0 + j) * to.ldc);
#pragma unroll
    for (int s = 0; s < TN; s++)
        if (SHAPE::edge_n::nth(s) < cols)
#pragma unroll
            for (int r = 0; r < TM; r += 4)
                gpb_store4(to, c + SHAPE::edge_m::nth(r) + SHAPE::edge_n::nth(s) * to.ldc, rows - SHAPE::edge_m::nth(r),
                           make_float4(acc[s][r], acc[s][r + 1 < TM ? r + 1 : r], acc[s][r + 2 < TM ? r + 2 : r], acc[s][r + 3 < TM ? r + 3 : r]));
}

extern __shared__ __align__(16) float gpb_slab_memory[];

/* acc += a b' for four k. */
template <int TM, int TN>
static __device__ __forceinline__ void gpb_slab_outer(float (&acc)[TN][TM], const float (&a)[TM][4], const float (&b)[TN][4])
{
#pragma unroll
    for (int q = 0; q < 4; q++)
#pragma unroll
        for (int s = 0; s < TN; s++)
#pragma unroll
            for (int x = 0; x < TM; x++) {
                const int r = s % 2 ? TM - 1 - x : x;
                acc[s][r] = __fmaf_rn(a[r][q], b[s][q], acc[s][r]);
            }
}

/* Fours of k that a thread takes of a slice. */
template <int BM, int BN, int BK, int THREADS, int TM, int TN>
constexpr int gpb_slab_parts = BK / 4 / gpb_slab_shape<BM, BN, THREADS, TM, TN>::KS;

/* acc[s][r]: the sums of this thread's group. */
template <int BM, int BN, int BK, int STAGES, int THREADS, int TM, int TN, bool DEEPA, bool DEEPB>
static __device__ __forceinline__ void gpb_slab_multiply(const gpb_tile &t, gpb_feed<BM, BK, THREADS, gpb_slab_parts<BM, BN, BK, THREADS, TM, TN>> &fa,
                                                         gpb_feed<BN, BK, THREADS, gpb_slab_parts<BM, BN, BK, THREADS, TM, TN>> &fb,
                                                         float (&acc)[TN][TM])
{
    using shape = gpb_slab_shape<BM, BN, THREADS, TM, TN>;
    constexpr int SLICE = (BM + BN) * BK, PARTS = gpb_slab_parts<BM, BN, BK, THREADS, TM, TN>;
    const int i = shape::row(), j = shape::col();
    const unsigned memory = gpb_shared_address(gpb_slab_memory);
    int64_t ahead = t.k, left = t.k;       /* k not yet asked for; not yet multiplied */
    int in = 0, out = 0;                   /* where the slices are */
#pragma unroll 1
    for (int lead = 1; left > 0; ahead -= BK, lead++) {
        const bool filled = lead >= STAGES, whole = filled && ahead >= BK;
        const unsigned to = memory + 4 * in;
        if (filled) {
            gpb_cp_async_wait<STAGES - 2>();
            __syncthreads();               /* this slice is whole, and nobody reads the one before it any more */
        }
        if (!whole && ahead > 0) {
            fa.template slice<DEEPA>(to, ahead);
            fb.template slice<DEEPB>(to + 4 * BM * BK, ahead);
        }
        if (filled) {
            const float *slice = gpb_slab_memory + out;
            const int pieces = (int)(min(left, (int64_t)BK) + 3) / 4;
#pragma unroll 1
            for (int n = 0, piece = shape::group(); n < PARTS; n++, piece += shape::KS) {
                float a[TM][4], b[TN][4];
                if (piece < pieces) {
                    gpb_slab_fragment<DEEPA, typename shape::edge_m, BM, BK>(a, slice, i, piece);
                    gpb_slab_fragment<DEEPB, typename shape::edge_n, BN, BK>(b, slice + BM * BK, j, piece);
                }
                if (whole) {
                    fa.template part<DEEPA>(to, n);
                    fb.template part<DEEPB>(to + 4 * BM * BK, n);
                }
                if (piece < pieces)
                    gpb_slab_outer<TM, TN>(acc, a, b);
            }
            out = out == (STAGES - 1) * SLICE ? 0 : out + SLICE;
            left -= BK;
        }
        gpb_cp_async_commit();
        fa.next();
        fb.next();
        in = in == (STAGES - 1) * SLICE ? 0 : in + SLICE;
    }
    gpb_cp_async_wait<0>();
}

/* A group's sums to sums[group][j][i], where slices were. */
template <int BM, int BN, class SHAPE, int TM, int TN> static __device__ __forceinline__ void gpb_slab_put_sums(const float (&acc)[TN][TM])
{
    float *mine = gpb_slab_memory + (SHAPE::group() * BN + SHAPE::col()) * BM + SHAPE::row();
    __syncthreads();                       /* nobody reads slices any more */
#pragma unroll
    for (int s = 0; s < TN; s++)
#pragma unroll
        for (int r = 0; r < TM; r += 4) {
            float *at = mine + SHAPE::edge_n::nth(s) * BM + SHAPE::edge_m::nth(r);
            if (TM < 4)
                for (int x = 0; x < TM; x++) at[x] = acc[s][x];
            else
                *(float4 *)at = make_float4(acc[s][r], acc[s][r + 1 < TM ? r + 1 : r], acc[s][r + 2 < TM ? r + 2 : r], acc[s][r + 3 < TM ? r + 3 : r]);
        }
    __syncthreads();
}

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM, int TM, int TN>
static __device__ __forceinline__ void gpb_slab(const gpb_tile &t)
{
    using shape = gpb_slab_shape<BM, BN, THREADS, TM, TN>;
    static_assert(STAGES * (BM + BN) * BK * 4 == SMEM && (shape::KS == 1 || shape::KS * BM * BN * 4 <= SMEM),
                  "smem holds the slices, later the groups' sums");
    constexpr int PARTS = gpb_slab_parts<BM, BN, BK, THREADS, TM, TN>;
    static_assert(PARTS * shape::KS * 4 == BK, "groups must share a slice evenly");
    gpb_feed<BM, BK, THREADS, PARTS> fa(t.a, t.g.rsa, t.g.csa, t.i0, t.g.m);
    gpb_feed<BN, BK, THREADS, PARTS> fb(t.b, t.g.csb, t.g.rsb, t.j0, t.g.n);
    float acc[TN][TM] = {};
    if (fa.deep())
        if (fb.deep())
            gpb_slab_multiply<BM, BN, BK, STAGES, THREADS, TM, TN, true, true>(t, fa, fb, acc);
        else
            gpb_slab_multiply<BM, BN, BK, STAGES, THREADS, TM, TN, true, BN < 4>(t, fa, fb, acc);
    else if (fb.deep())
        gpb_slab_multiply<BM, BN, BK, STAGES, THREADS, TM, TN, BM < 4, true>(t, fa, fb, acc);
    else
        gpb_slab_multiply<BM, BN, BK, STAGES, THREADS, TM, TN, BM < 4, BN < 4>(t, fa, fb, acc);
    if (shape::KS == 1) {
        gpb_slab_store<BM, BN, shape>(t, acc);
    } else {
        gpb_slab_put_sums<BM, BN, shape>(acc);
        gpb_slab_store_groups<BM, BN, shape::KS, THREADS>(t, gpb_slab_memory);
    }
    gpb_fold<BM, BN, THREADS>(t);
}

#endif
