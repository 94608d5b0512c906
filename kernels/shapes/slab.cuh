/* SPDX-License-Identifier: MIT */
/* Products that are thin, deep or small. All of them have one body, and the rows of gemm.def differ in tile
   and threads.

   Such products have too little work for all multiprocessors. So tiles may be thin, k is cut into parts
   (tile.cuh), and within a block each group of threads, which is enough for the tile at TM x TN results each,
   takes every KS-th four k of a k tile. At the end the groups' sums are added in shared memory, in their
   order. Thin products wait for memory, so k tiles are copied STAGES - 1 ahead. */
#ifndef GPB_SHAPES_SLAB_CUH
#define GPB_SHAPES_SLAB_CUH

#include "kernels/epilogue.cuh"
#include "kernels/shapes/feed.cuh"

/* How threads share an edge of a tile, with WARP threads of a warp along it. Each has T results, four
   neighbouring ones at a time. */
template <int EDGE, int T, int WARP> struct gpb_edge {
    static constexpr int STEP = WARP * 4;
    static_assert(EDGE % (WARP * T) == 0 && T % 4 == 0, "threads must share the edge evenly");
    static_assert((WARP & (WARP - 1)) == 0 && (T & (T - 1)) == 0, "nth() disturbs none of first()'s bits");

    /* The first of the thread's results, from its place along the edge. */
    static __device__ __forceinline__ int first(int place)
    {
        return place / WARP * (WARP * T) + place % WARP * 4;
    }
    /* Result x of the thread, relative to its first. */
    static __device__ __forceinline__ constexpr int nth(int x) { return x / 4 * STEP + x % 4; }
};

template <int BM, int BN, int THREADS, int TM, int TN> struct gpb_slab_shape {
    static constexpr int LM = BM / TM, LN = BN / TN, GROUP = LM * LN, KS = THREADS / GROUP;
    static constexpr int SIDE = 32 / LM < 1 ? 1 : 32 / LM;
    static constexpr int WN = LM < 8 ? (LN < SIDE ? LN : SIDE) : (LN < 4 ? LN : 4),
                         WM = LM < 32 / WN ? LM : 32 / WN;
    static_assert(GROUP * KS == THREADS && LM * TM == BM && LN * TN == BN,
                  "groups of threads must share the block evenly");
    using edge_m = gpb_edge<BM, TM, WM>;
    using edge_n = gpb_edge<BN, TN, WN>;

    static __device__ __forceinline__ int group() { return threadIdx.x / GROUP; }
    /* This thread's places along the two edges. A warp is WM x WN, and warps follow each other down the
       tile. */
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

/* Four k of a thread's T rows (or columns), from piece `piece` of a k tile: to[x][q]. */
template <bool K_MAJOR, class EDGE, int ROWS, int BK, int T>
static __device__ __forceinline__ void gpb_slab_fragment(float (&to)[T][4], const float *k_tile, int first,
                                                         int piece)
{
    if (K_MAJOR) {
#pragma unroll
        for (int x = 0; x < T; x++) {
            const float4 v = *(const float4 *)(k_tile + gpb_k_major_place<BK>(first, EDGE::nth(x), piece));
            to[x][0] = v.x;
            to[x][1] = v.y;
            to[x][2] = v.z;
            to[x][3] = v.w;
        }
    } else {
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
            for (int x = 0; x < T; x += 4) {
                const float4 v = *(const float4 *)(k_tile + (4 * piece + q) * ROWS + first + EDGE::nth(x));
                to[x][q] = v.x;
                to[x + 1][q] = v.y;
                to[x + 2][q] = v.z;
                to[x + 3][q] = v.w;
            }
    }
}

/* Where result (i,j) of a group lies within four rows. Permuted, so that the threads of a warp store to
   different banks. */
static __device__ __forceinline__ int gpb_slab_moved(int i, int j)
{
    return ((j >> 2) ^ ((i >> 5) << 1)) & 3;
}

/* Stores the groups' sums, sums[group][j][i], to C. Each thread adds four rows in the order of the groups. */
template <int BM, int BN, int KS, int THREADS>
static __device__ __forceinline__ void gpb_slab_store(const gpb_tile<float> &t, const float *sums)
{
    const gpb_target<float> to = gpb_target_of(t);
    const int rows = (int)min(to.m - t.i0, (int64_t)BM), cols = (int)min(to.n - t.j0, (int64_t)BN);
#pragma unroll 2
    for (int x = threadIdx.x; x < BM * BN / 4; x += THREADS) {
        const int i = x % (BM / 4) * 4, j = x / (BM / 4), moved = gpb_slab_moved(i, j);
        if (i >= rows || j >= cols) continue;
        float4 sum = *(const float4 *)(sums + j * BM + i);
#pragma unroll
        for (int g = 1; g < KS; g++) {
            const float4 v = *(const float4 *)(sums + (g * BN + j) * BM + i);
            sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
        }
        if (moved & 1) sum = make_float4(sum.y, sum.x, sum.w, sum.z);
        if (moved & 2) sum = make_float4(sum.z, sum.w, sum.x, sum.y);
        if (to.uplo)
#pragma unroll
            for (int r = 0; r < 4; r++) gpb_store(to, t.i0 + i + r, t.j0 + j, gpb_vector_at<float>(sum, r));
        else
            gpb_store_vector(to, gpb_global(to.c + t.i0 + i + (t.j0 + j) * to.ldc), rows - i, sum);
    }
}

/* Stores a thread's own results to C if there is one group. Through shared memory 8192 x 8192 x 16 took 12 %
   longer. Columns are loaded before they are stored, see ffma/store.cuh. */
template <int BM, int BN, class SHAPE, int BYTES = 64, int TM, int TN>
static __device__ __forceinline__ void gpb_slab_store_own(const gpb_tile<float> &t,
                                                          const float (&acc)[TN][TM])
{
    using edge_m = typename SHAPE::edge_m;
    using edge_n = typename SHAPE::edge_n;
    const gpb_target<float> to = gpb_target_of(t);
    const int i = SHAPE::row(), j = SHAPE::col();
    const int rows = (int)min(to.m - t.i0, (int64_t)BM) - i, cols = (int)min(to.n - t.j0, (int64_t)BN) - j;
    if (to.is_crossed(t.i0, t.j0, BM, BN)) {
        auto place = [&](int x) __attribute__((always_inline)) {
            return gpb_place{ edge_m::nth(x % TM), edge_n::nth(x / TM) };
        };
        auto value = [&](int x) __attribute__((always_inline)) { return acc[x / TM][x % TM]; };
        gpb_store_crossed<TM * TN, BYTES>(to, t.i0 + i, t.j0 + j, place, value);
        return;
    }
    float *c = gpb_global(to.c + t.i0 + i + (t.j0 + j) * to.ldc);
    constexpr int AT_ONCE = 2;
    auto at = [&](int s, int r) { return c + edge_m::nth(r) + edge_n::nth(s) * to.ldc; };
    auto here = [&](int s, int r) { return edge_n::nth(s) < cols ? rows - edge_m::nth(r) : 0; };
#pragma unroll
    for (int s0 = 0; s0 < TN; s0 += AT_ONCE) {
        float4 old[AT_ONCE][TM / 4];
#pragma unroll
        for (int s = 0; s < AT_ONCE; s++)
#pragma unroll
            for (int r = 0; r < TM; r += 4)
                old[s][r / 4] = gpb_old_vector(to, at(s0 + s, r), here(s0 + s, r));
#pragma unroll
        for (int s = 0; s < AT_ONCE; s++)
#pragma unroll
            for (int r = 0; r < TM; r += 4) {
                const float *four = &acc[s0 + s][r];
                gpb_store_vector(to, at(s0 + s, r), here(s0 + s, r),
                                 make_float4(four[0], four[1], four[2], four[3]), old[s][r / 4]);
            }
    }
}

/* Exchanges the rows of eight lanes. Before, each lane has four neighbouring rows. Afterwards it has rows 8z
   + gpb_slab_across_row(), z = 0..3, so that the rows stored at once are neighbours. Two of a row's five
   bits, which are the lane's number and x's, change places with two others. */
static __device__ __forceinline__ int gpb_slab_across_row()
{
    return threadIdx.x % 2 * 4 + threadIdx.x / 4 % 2 * 2 + threadIdx.x / 2 % 2;
}
static __device__ __forceinline__ void gpb_slab_across(float *x)
{
    const bool upper4 = threadIdx.x & 4, upper2 = threadIdx.x & 2;
#pragma unroll
    for (int z = 0; z < 2; z++) {
        const float other = __shfl_xor_sync(~0u, upper4 ? x[z] : x[z + 2], 4);
        x[z] = upper4 ? other : x[z];
        x[z + 2] = upper4 ? x[z + 2] : other;
    }
#pragma unroll
    for (int z = 0; z < 4; z += 2) {
        const float other = __shfl_xor_sync(~0u, upper2 ? x[z] : x[z + 1], 2);
        x[z] = upper2 ? other : x[z];
        x[z + 1] = upper2 ? x[z + 1] : other;
    }
}

/* The same if C is not aligned. Four floats of a lane, 16 bytes from the next lane's, would become four
   stores, each to all sectors of a column. 8192 x 8192 x 16 on an H200 with C not aligned: 157 us. short128,
   which stores that way, takes 287. */
template <int BM, int BN, class SHAPE, int TM, int TN>
static __device__ __forceinline__ void gpb_slab_store_across(const gpb_tile<float> &t, float (&acc)[TN][TM])
{
    using edge_m = typename SHAPE::edge_m;
    using edge_n = typename SHAPE::edge_n;
    static_assert(edge_m::STEP == 32, "eight lanes have 32 rows");
    const gpb_target<float> to = gpb_target_of(t);
    const int i = SHAPE::row() / 32 * 32 + gpb_slab_across_row(), j = SHAPE::col();
    const int rows = (int)min(to.m - t.i0, (int64_t)BM) - i, cols = (int)min(to.n - t.j0, (int64_t)BN) - j;
    float *c = gpb_global(to.c + t.i0 + i + (t.j0 + j) * to.ldc);
#pragma unroll
    for (int s = 0; s < TN; s++) {
#pragma unroll
        for (int r = 0; r < TM; r += 4) gpb_slab_across(acc[s] + r);
        gpb_pin(acc[s]);
    }
#pragma unroll
    for (int s = 0; s < TN; s++)
#pragma unroll
        for (int r = 0; r < TM; r += 4) {
            const int limit = edge_n::nth(s) < cols ? rows - edge_m::nth(r) : 0;
            /* gpb_fresh keeps the compiler from computing all addresses in advance. */
            float *at = (float *)gpb_fresh((int64_t)(c + edge_m::nth(r) + edge_n::nth(s) * to.ldc));
            float old[4] = {};
            if (to.beta != 0)
#pragma unroll
                for (int z = 0; z < 4; z++) old[z] = gpb_load_within(8 * z, limit, at + 8 * z);
#pragma unroll
            for (int z = 0; z < 4; z++)
                gpb_store_within(8 * z, limit, at + 8 * z, gpb_blend(to, acc[s][r + z], old[z]));
        }
}

/* acc += a b' for four k. The inner loop walks the operand whose registers alternate between the two banks
   (in MN_MAJOR four neighbouring rows lie in four registers), back and forth. The other operand stays in the
   operand cache. */
template <bool ALONG_N, int TM, int TN>
static __device__ __forceinline__ void gpb_slab_outer(float (&acc)[TN][TM], const float (&a)[TM][4],
                                                      const float (&b)[TN][4])
{
    constexpr int OUTER = ALONG_N ? TM : TN, INNER = ALONG_N ? TN : TM;
#pragma unroll
    for (int q = 0; q < 4; q++)
#pragma unroll
        for (int y = 0; y < OUTER; y++)
#pragma unroll
            for (int x = 0; x < INNER; x++) {
                const int z = y % 2 ? INNER - 1 - x : x, s = ALONG_N ? z : y, r = ALONG_N ? y : z;
                acc[s][r] = __fmaf_rn(a[r][q], b[s][q], acc[s][r]);
            }
}

/* If a thread has at most 32 results, there are registers for totals, to which it adds its sum every so many
   FMAs. With 64 results the totals lay in local memory, and 16384 x 16 x 16384 took a quarter longer. For
   such kernels k is cut instead (dispatch/kernel_pick.c). */
constexpr int GPB_SLAB_CHAIN = 64;

/* acc[s][r]: the sums of this thread's group. */
template <int BM, int BN, int BK, int STAGES, int THREADS, int TM, int TN, bool K_MAJOR_A, bool K_MAJOR_B>
static __device__ __forceinline__ void gpb_slab_multiply(const gpb_tile<float> &t,
                                                         gpb_feed<BM, BK, THREADS> &fa,
                                                         gpb_feed<BN, BK, THREADS> &fb, float (&acc)[TN][TM])
{
    using shape = gpb_slab_shape<BM, BN, THREADS, TM, TN>;
    constexpr int K_TILE = (BM + BN) * BK;
    constexpr bool BANKS = GPB_BANKS(BM, BN);
    const int i = shape::row(), j = shape::col();
    float total[BANKS ? TN : 1][BANKS ? TM : 1] = {};
    int k_tiles = 0;
    int64_t ahead = t.k, left = t.k;       /* k not yet copied; k not yet multiplied */
    float *in = gpb_slab_memory;
    const float *out = gpb_slab_memory;
#pragma unroll 1
    for (int lead = 1; left > 0; ahead -= BK, lead++) {
        const bool filled = lead >= STAGES;
        if (filled) {
            gpb_cp_async_wait<STAGES - 2>();
            __syncthreads();               /* this k tile is complete, and no thread reads the one before */
        }
        if (ahead > 0) {
            fa.template next<K_MAJOR_A>(in, ahead);
            fb.template next<K_MAJOR_B>(in + BM * BK, ahead);
        }
        gpb_cp_async_commit();
        in = in == gpb_slab_memory + (STAGES - 1) * K_TILE ? gpb_slab_memory : in + K_TILE;
        if (!filled) continue;
        const int pieces = (int)(min(left, (int64_t)BK) + 3) / 4;
#pragma unroll 1
        for (int piece = shape::group(); piece < pieces; piece += shape::KS) {
            float a[TM][4], b[TN][4];
            gpb_slab_fragment<K_MAJOR_A, typename shape::edge_m, BM, BK>(a, out, i, piece);
            gpb_slab_fragment<K_MAJOR_B, typename shape::edge_n, BN, BK>(b, out + BM * BK, j, piece);
            gpb_slab_outer<K_MAJOR_A && !K_MAJOR_B, TM, TN>(acc, a, b);
        }
        out = out == gpb_slab_memory + (STAGES - 1) * K_TILE ? gpb_slab_memory : out + K_TILE;
        left -= BK;
        if constexpr (BANKS)
            if (++k_tiles % (GPB_SLAB_CHAIN * shape::KS / BK) == 0) gpb_bank(total, acc);
    }
    if constexpr (BANKS) gpb_bank(acc, total);
    gpb_cp_async_wait<0>();
}

/* Puts a group's sums to sums[group][j][i], where k tiles were. One float at a time, because with stores of
   four the compiler would keep the sums in fours all along, in the register banks that their factors lie
   in. */
template <int BM, int BN, class SHAPE, int TM, int TN>
static __device__ __forceinline__ void gpb_slab_put_sums(const float (&acc)[TN][TM])
{
    const int i = SHAPE::row(), j = SHAPE::col();
    float *mine = gpb_slab_memory + SHAPE::group() * BM * BN;
    __syncthreads();                       /* no thread reads k tiles any more */
#pragma unroll
    for (int s = 0; s < TN; s++)
#pragma unroll
        for (int r = 0; r < TM; r++) {
            const int row = i + SHAPE::edge_m::nth(r), col = j + SHAPE::edge_n::nth(s);
            mine[col * BM + (row ^ gpb_slab_moved(row, col))] = acc[s][r];
        }
    __syncthreads();
}

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM, int TM, int TN>
static __device__ __forceinline__ void gpb_slab(const gpb_tile<float> &t)
{
    using shape = gpb_slab_shape<BM, BN, THREADS, TM, TN>;
    static_assert(SMEM >= STAGES * (BM + BN) * BK * 4 && (shape::KS == 1 || SMEM >= shape::KS * BM * BN * 4),
                  "shared memory holds the k tiles, later the groups' sums");
    gpb_feed<BM, BK, THREADS> fa(t.a, t.g.rsa, t.g.csa, t.i0, t.g.m);
    gpb_feed<BN, BK, THREADS> fb(t.b, t.g.csb, t.g.rsb, t.j0, t.g.n);
    float acc[TN][TM] = {};
    if (fa.k_major)
        if (fb.k_major)
            gpb_slab_multiply<BM, BN, BK, STAGES, THREADS, TM, TN, true, true>(t, fa, fb, acc);
        else
            gpb_slab_multiply<BM, BN, BK, STAGES, THREADS, TM, TN, true, false>(t, fa, fb, acc);
    else if (fb.k_major)
        gpb_slab_multiply<BM, BN, BK, STAGES, THREADS, TM, TN, false, true>(t, fa, fb, acc);
    else
        gpb_slab_multiply<BM, BN, BK, STAGES, THREADS, TM, TN, false, false>(t, fa, fb, acc);
    if constexpr (shape::KS == 1) {
        const gpb_target<float> to = gpb_target_of(t);
        if (to.aligned || to.is_crossed(t.i0, t.j0, BM, BN)) gpb_slab_store_own<BM, BN, shape>(t, acc);
        else gpb_slab_store_across<BM, BN, shape>(t, acc);
    } else {
        gpb_slab_put_sums<BM, BN, shape>(acc);
        gpb_slab_store<BM, BN, shape::KS, THREADS>(t, gpb_slab_memory);
    }
}

#endif
