/* SPDX-License-Identifier: MIT */
/* What a thread block computes: pieces, one after another.

   Usually these are its tile of each batch member, or of each part of a member's k, that belong to the block.
   With Stream-K, where tiles do not fill whole rounds of the GPU, the first `streamk_blocks` blocks divide
   the k of the first `streamk_tiles` tiles (one round and the rest) so that all get as many k tiles. A tile's
   k is then cut wherever one block's k tiles end. The blocks behind these take a whole tile each, in whole
   rounds. The Stream-K blocks come first, so that adding up parts delays nobody else.

   No block waits for another, and nothing depends on timing: the same call gives the same bits. */
#ifndef GPB_FFMA_STREAMK_CUH
#define GPB_FFMA_STREAMK_CUH

#include "kernels/ffma/thread_layout.cuh"
#include "kernels/tile.cuh"

/* One piece. It lies in shared memory, because the epilogue needs it again and registers are scarce. */
struct gpb_piece {
    unsigned z, tile;                      /* as in gpb_tile; the tile's number in the order of tiles */
    unsigned from, to;                     /* its k tiles, if there are several parts */
    unsigned part, parts;  /* number of this part of the tile's k, and of how many. 1: all of k */
    unsigned first_block;                  /* the block that has part 0 */
    bool last;                             /* this block's last piece */
};

template <int BM, int BN> static __device__ __forceinline__ unsigned gpb_tiles_n(const gpb_gemm_args &g)
{
    return (unsigned)((gpb_fresh(g.n) + BN - 1) / BN);
}
template <int BM, int BN> static __device__ __forceinline__ unsigned gpb_tiles_m(const gpb_gemm_args &g)
{
    return (unsigned)((gpb_fresh(g.m) + BM - 1) / BM);
}
template <int BM, int BN>
static __device__ __forceinline__ gpb_origin gpb_origin_of(const gpb_gemm_args &g, const gpb_piece &p)
{
    if (g.uplo) return gpb_origin_in_triangle<BM, BN>(g, p.tile);
    return gpb_origin_at<BM, BN>(p.tile, gpb_tiles_m<BM, BN>(g), gpb_tiles_n<BM, BN>(g));
}

/* This block's next piece, or its first if `before` is false. For one thread. A block has at least one
   piece. */
template <int BM, int BN, int BK>
static __device__ __forceinline__ void gpb_next_piece(const gpb_gemm_args &g, gpb_piece &p, bool before)
{
    const unsigned block = blockIdx.x;
    if (!g.streamk_blocks) {
        p.z = before ? p.z + gridDim.z : blockIdx.z;
        p.tile = block;
        p.parts = 1;
        p.last = p.z + (uint64_t)gridDim.z >= (uint64_t)g.batch * gpb_splits_of(g);
        return;
    }
    const unsigned tiles = g.uplo ? (unsigned)gpb_triangle_tiles(g.uplo, g.n, BM, BN)
                                  : gpb_tiles_m<BM, BN>(g) * gpb_tiles_n<BM, BN>(g);
    unsigned number = g.streamk_tiles + block - g.streamk_blocks;
    p.parts = 1;
    p.last = true;
    if (block < g.streamk_blocks) {
        const unsigned k_tiles = (unsigned)((g.k + BK - 1) / BK);
        const uint64_t all = (uint64_t)g.streamk_tiles * k_tiles, end = (block + 1) * all / g.streamk_blocks;
        number = before ? p.z * tiles + p.tile + 1 : (unsigned)(block * all / g.streamk_blocks / k_tiles);
        const uint64_t start = (uint64_t)number * k_tiles;             /* of this tile among all k tiles */
        p.from = before ? 0 : (unsigned)(block * all / g.streamk_blocks - start);
        p.to = (unsigned)min(end - start, (uint64_t)k_tiles);
        /* The last block whose k tiles begin at `start` or before. */
        p.first_block = (unsigned)(((start + 1) * g.streamk_blocks - 1) / all);
        p.parts = (unsigned)(((start + k_tiles) * g.streamk_blocks - 1) / all) - p.first_block + 1;
        p.part = block - p.first_block;
        p.last = start + p.to == end;
    }
    p.z = number / tiles;
    p.tile = number % tiles;
}

/* The tile of a piece, without the k that belongs to other blocks. The k beyond whole k tiles comes first. */
template <class T, int BK>
static __device__ __forceinline__ gpb_tile<T> gpb_tile_of(const gpb_gemm_args &g, const gpb_piece &p,
                                                          const gpb_origin &at)
{
    gpb_tile<T> t = gpb_tile_at<T, BK>(g, p.z, at);
    if (p.parts > 1) {
        const int64_t first = t.k - (int64_t)(gpb_k_tiles<BK>(t) - 1) * BK,
                      skip = p.from ? first + (int64_t)(p.from - 1) * BK : 0;
        t.k = first + (int64_t)(p.to - 1) * BK - skip;
        t.a += skip * g.csa;
        t.b += skip * g.rsb;
    }
    return t;
}

/* gpb_each_member for steps that can compute a part of a tile's k. */
template <class T, int BM, int BN, int BK, void (*STEP)(const gpb_tile<T> &, const gpb_piece &)>
static __device__ __forceinline__ void gpb_each_piece(const gpb_gemm_args &g)
{
    __shared__ gpb_piece piece;
    gpb_grid_trigger();
    gpb_grid_wait();
    for (bool before = false;; before = true) {
        if (threadIdx.x == 0)
            gpb_next_piece<BM, BN, BK>(g, piece, before);
        __syncthreads();
        const gpb_origin at = gpb_origin_of<BM, BN>(g, piece);
        if (!g.guard_a || gpb_wanted_at<T>(g, piece.z / gpb_splits_of(g), at)) {
            const gpb_tile<T> t = gpb_tile_of<T, BK>(g, piece, at);
            if (t.k == 0)
                gpb_tile_scale<BM, BN>(t);
            else
                STEP(t, piece);
        }
        if (piece.last) return;
        __syncthreads();                   /* before the next piece overwrites shared memory */
    }
}

/* Two sums side by side; of floats the second first, see gpb_join_parts. */
template <class R> struct gpb_pair_of;
template <> struct gpb_pair_of<float> { using type = float2; };
template <> struct gpb_pair_of<double> { using type = double2; };
template <> struct gpb_pair_of<float2> { using type = float4; };
static __device__ __forceinline__ float2 gpb_pair(float x, float y) { return make_float2(y, x); }
static __device__ __forceinline__ double2 gpb_pair(double x, double y) { return make_double2(x, y); }
static __device__ __forceinline__ float gpb_pair_first(float2 pair) { return pair.y; }
static __device__ __forceinline__ float gpb_pair_second(float2 pair) { return pair.x; }
static __device__ __forceinline__ double gpb_pair_first(double2 pair) { return pair.x; }
static __device__ __forceinline__ double gpb_pair_second(double2 pair) { return pair.y; }
static __device__ __forceinline__ float2 gpb_pair_first(float4 pair) { return make_float2(pair.x, pair.y); }
static __device__ __forceinline__ float2 gpb_pair_second(float4 pair) { return make_float2(pair.z, pair.w); }

/* Stores a pair; one of complex sums in four parts, see gpb_join_parts. */
template <class R>
static __device__ __forceinline__ void gpb_store_pair(typename gpb_pair_of<R>::type *to, R x, R y)
{
    __stcg(to, gpb_pair(x, y));
}
template <> __device__ __forceinline__ void gpb_store_pair<float2>(float4 *to, float2 x, float2 y)
{
    __stcg(&to->x, x.x);
    __stcg(&to->y, x.y);
    __stcg(&to->z, y.x);
    __stcg(&to->w, y.y);
}

/* acc = a part, or acc += a part, as gpb_join_parts stores it. */
template <bool FIRST, int MEMBERS, class R, int TM, int TN>
static __device__ __forceinline__ void gpb_read_part(R (&acc)[TN][TM],
                                                     const typename gpb_pair_of<R>::type *from)
{
    /* in flight at once; there are no registers for more */
    constexpr int PAIRS = TM * TN / 2, FEW = PAIRS < 64 / (int)sizeof(R) ? PAIRS : 64 / (int)sizeof(R);
    static_assert(PAIRS % FEW == 0, "no rest");
#pragma unroll
    for (int x0 = 0; x0 < PAIRS; x0 += FEW) {
        R v[2 * FEW];
#pragma unroll
        for (int x = 0; x < FEW; x++) {
            const typename gpb_pair_of<R>::type pair = __ldcg(from + (x0 + x) * MEMBERS);
            v[2 * x] = gpb_pair_first(pair);
            v[2 * x + 1] = gpb_pair_second(pair);
        }
        gpb_pin(v);
#pragma unroll
        for (int x = 0; x < 2 * FEW; x++) {
            R &sum = acc[(2 * x0 + x) / TM][(2 * x0 + x) % TM];
            sum = FIRST ? v[x] : gpb_sum(sum, v[x]);
        }
    }
}

/* Adds up a tile's parts. Returns true in the last block to finish one, and acc of group 0 is then the sum of
   all parts in the order of k. Sums are stored in pairs, those of FP32 the odd row first. Any order would do,
   but this one makes the compiler keep them in aligned pairs of registers all along, each in the bank that
   its factor out of `a` is not in (16-byte reads put row r into a register of r's parity). Otherwise the
   compiler now and then puts all of them into the factor's bank, and the loop takes half as long again.
   Complex sums are stored part by part: as twos or fours in either order, half of them were in the wrong bank
   in the loop of one kernel or another (general/warp.cuh). */
template <class layout, class R, int TM, int TN>
static __device__ __forceinline__ bool gpb_join_parts(const gpb_gemm_args &g, const gpb_piece &p,
                                                      R (&acc)[TN][TM])
{
    using pair = typename gpb_pair_of<R>::type;
    constexpr int PAIRS = TN * TM / 2, TILE = PAIRS * layout::MEMBERS;
    /* A block has at most one part 0 of several parts, and one part of another number: places 2 * block + 1
       and 2 * block. */
    pair *const first = (pair *)g.partials + (int64_t)p.first_block * (2 * TILE) + layout::member();
    auto place = [&](unsigned part) { return first + (int64_t)part * (2 * TILE) + (part ? 0 : TILE); };
    if (layout::group() == 0) {
        pair *const mine = place(p.part);
#pragma unroll
        for (int x = 0; x < PAIRS; x++)
            gpb_store_pair<R>(mine + x * layout::MEMBERS, acc[2 * x / TM][2 * x % TM],
                              acc[2 * x / TM][2 * x % TM + 1]);
    }
    __shared__ unsigned earlier;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        earlier = atomicInc(g.counters + p.first_block, p.parts - 1);  /* the last one sets it to zero */
    __syncthreads();
    if (earlier != p.parts - 1) return false;
    __threadfence();
    if (layout::group() == 0) {
        gpb_read_part<true, layout::MEMBERS>(acc, place(0));
#pragma unroll 1
        for (unsigned part = 1; part < p.parts; part++)
            gpb_read_part<false, layout::MEMBERS>(acc, place(part));
    }
    return true;
}

#endif
