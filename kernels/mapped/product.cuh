/* SPDX-License-Identifier: MIT */
/* The MAPPED kernels: products in d and z by FP64 tensor cores, on operands that tensor copies can fetch. One
   thread of a producer warpgroup keeps a ring of stages filled, each two slabs of both operands (lanes.cuh).
   The other warps multiply, each its part of the tile. Nobody meets at a barrier of the block: a warp waits
   for a stage to be full, and tells the producer when it has read it. The copies take no registers and no
   issue slots of the warps that multiply, and put each operand where its fragments can be read as they come,
   without bank conflicts.

   With two products (gemm_args.h) the stages of the second follow those of the first. Only the producer knows
   which is which.

   With Stream-K (ffma/streamk.cuh) a block has up to three pieces of tiles, one after the other. The ring
   goes on from one to the next.

   With PAIRS two blocks of a cluster have tiles side by side. Each fetches half of their rows of op(A) for
   both, so a stage is empty when the warps of both have read it. */
#ifndef GPB_MAPPED_PRODUCT_CUH
#define GPB_MAPPED_PRODUCT_CUH

#include "kernels/epilogue.cuh"
#include "kernels/ffma/streamk.cuh"
#include "kernels/mapped/lanes.cuh"
#include "kernels/mapped/ptx_mapped.cuh"

constexpr int GPB_MAPPED_PRODUCER = 128;
/* k of a slab. */
template <class T> constexpr int GPB_MAPPED_SLAB = GPB_MAPPED_LINE / sizeof(T);

/* CHAIN > 0: sums of so many stages are added up. A warp that waits for memory has the time, and its few sums
   have registers. */
template <class T, int BM_, int BN_, int BK_, int STAGES_, int THREADS_, int SMEM, unsigned CAPS, int WM_,
          int WN_, int CHAIN_ = 0>
struct gpb_mapped_shape {
    using type = T;
    static constexpr int BM = BM_, BN = BN_, BK = BK_, STAGES = STAGES_, THREADS = THREADS_, WM = WM_,
                         WN = WN_, CHAIN = CHAIN_, SHARERS = CAPS & GPB_CAP_PAIRS ? 2 : 1;
    static constexpr bool STREAM_K = CAPS & GPB_CAP_STREAM_K;
    static constexpr int HIGH = gpb_lanes<T, GPB_MAPPED_K, GPB_MAPPED_K>::HIGH;
    static constexpr int MB = WM / HIGH, NB = WN / 8, WARPS = BM / WM * (BN / WN);
    static constexpr unsigned LINE = GPB_MAPPED_LINE, A = BM * LINE, B = BN * LINE, STAGE = 2 * (A + B);
    static constexpr int BLOCKS = GPB_MAPPED_PLACES(SMEM), CONSUMERS = THREADS - GPB_MAPPED_PRODUCER;
    /* Registers of a thread that multiplies; the producer's have 24. */
    static constexpr int REGISTERS = THREADS == 256 ? 232 : 240;
    /* The operand with the fewer steps has its fragments of a slab in registers, one slab ahead. */
    static constexpr bool HOLD_A = 2 * MB <= NB;
    static_assert(BM % WM == 0 && BN % WN == 0 && THREADS == GPB_MAPPED_PRODUCER + 32 * WARPS
                      && WARPS % 4 == 0, "a producer, and each warp has its part");
    static_assert(BK == 2 * GPB_MAPPED_SLAB<T> && SMEM == STAGES * STAGE + 1024, "see gemm.def");
    static_assert(REGISTERS * (THREADS - GPB_MAPPED_PRODUCER) + 24 * GPB_MAPPED_PRODUCER
                      <= 65536 / BLOCKS / THREADS / 8 * 8 * THREADS, "what the block is launched with");
    static __device__ __forceinline__ int warp() { return (gpb_thread() - GPB_MAPPED_PRODUCER) / 32; }
    static __device__ __forceinline__ int warp_i() { return warp() % (BM / WM) * WM; }
    static __device__ __forceinline__ int warp_j() { return warp() / (BM / WM) * WN; }
};

/* The ring of stages: shared-memory addresses, and where it is. */
template <class shape> struct gpb_mapped_ring {
    unsigned data, full, empty, stage = 0, phase = 0;
    __device__ __forceinline__ unsigned at() const { return stage * shape::STAGE; }
    __device__ __forceinline__ void next()
    {
        if (++stage == shape::STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
    __device__ __forceinline__ void wait_full() const { gpb_mbarrier_wait(full + stage * 8, phase); }
    __device__ __forceinline__ void wait_empty() const { gpb_mbarrier_wait(empty + stage * 8, phase ^ 1); }
    /* The warp has read that stage, which both blocks of a pair are told. */
    __device__ __forceinline__ void release(unsigned stage) const
    {
        __syncwarp();
        if (threadIdx.x % 32 < shape::SHARERS) gpb_mbarrier_arrive(empty + stage * 8, threadIdx.x % 32);
    }
};

/* With Stream-K: this block's pieces. They are less than two tiles' k, and so of three tiles at most. */
struct gpb_mapped_piece : gpb_piece {
    int i0, j0;                            /* the tile's origin, for which 24 registers have no room */
};
constexpr int GPB_MAPPED_PIECES = 3;
static __device__ __forceinline__ gpb_mapped_piece *gpb_mapped_pieces()
{
    __shared__ gpb_mapped_piece pieces[GPB_MAPPED_PIECES];
    return pieces;
}
template <class shape> static __device__ __forceinline__ bool gpb_mapped_shares(const gpb_gemm_args &g)
{
    return shape::STREAM_K && g.streamk_blocks;
}
/* For one thread. */
template <class shape> static __device__ __forceinline__ void gpb_mapped_find_pieces(const gpb_gemm_args &g)
{
    gpb_mapped_piece piece;
    for (int x = 0; x < GPB_MAPPED_PIECES; x++) {
        gpb_next_piece<shape::BM, shape::BN, shape::BK>(g, piece, x > 0);
        const gpb_origin at = gpb_origin_of<shape::BM, shape::BN>(g, piece);
        piece.i0 = (int)at.i0;
        piece.j0 = (int)at.j0;
        gpb_mapped_pieces()[x] = piece;
        if (piece.last) return;
    }
}
/* Number x of what this block computes: the member and part of k, as in gpb_tile; whether it is the last. */
template <class shape>
static __device__ __forceinline__ unsigned gpb_mapped_z(const gpb_gemm_args &g, unsigned x)
{
    return gpb_mapped_shares<shape>(g) ? gpb_mapped_pieces()[x].z : blockIdx.z + x * gridDim.z;
}
template <class shape>
static __device__ __forceinline__ bool gpb_mapped_ends(const gpb_gemm_args &g, unsigned x)
{
    if (gpb_mapped_shares<shape>(g)) return gpb_mapped_pieces()[x].last;
    return blockIdx.z + (x + 1) * (uint64_t)gridDim.z >= (uint64_t)g.batch * gpb_splits_of(g);
}

/* This block's tile, without Stream-K. That of a pair's second block may lie outside C. */
template <class shape> static __device__ __forceinline__ gpb_origin gpb_mapped_tile(const gpb_gemm_args &g)
{
    constexpr unsigned SHARERS = shape::SHARERS;
    const unsigned tiles_m = (unsigned)((gpb_fresh(g.m) + shape::BM - 1) / shape::BM);
    gpb_origin at = g.uplo
        ? gpb_origin_in_triangle<shape::BM, SHARERS * shape::BN>(g, gpb_block() / SHARERS)
        : gpb_origin_at<shape::BM, SHARERS * shape::BN>(gpb_block() / SHARERS, tiles_m,
                                                        gridDim.x / SHARERS / tiles_m);
    if (SHARERS > 1) at.j0 += gpb_cluster_rank() * shape::BN;
    return at;
}
static __device__ __forceinline__ gpb_origin gpb_mapped_piece_at(unsigned x)
{
    return { gpb_mapped_pieces()[x].i0, gpb_mapped_pieces()[x].j0 };
}
template <class shape>
static __device__ __forceinline__ gpb_origin gpb_mapped_origin(const gpb_gemm_args &g, unsigned x)
{
    return gpb_mapped_shares<shape>(g) ? gpb_mapped_piece_at(x) : gpb_mapped_tile<shape>(g);
}

/* The stages of part z % splits of a member, as gpb_tile_at cuts k: the first one, and how many. Those of a
   second product are counted behind the first's. */
struct gpb_mapped_stretch {
    unsigned first, stages;
};
template <int BK> static __device__ __forceinline__ unsigned gpb_mapped_stages(const gpb_gemm_args &g)
{
    return (unsigned)((gpb_fresh(g.k) + BK - 1) / BK);
}
template <int BK>
static __device__ __forceinline__ gpb_mapped_stretch gpb_mapped_k(const gpb_mapped_args &args, unsigned z)
{
    const unsigned splits = gpb_splits_of(args.gemm),
                   stages = gpb_mapped_stages<BK>(args.gemm) * (unsigned)args.products;
    if (splits == 1) return { 0, stages };             /* no divisions before the first copy */
    const unsigned depth = (stages + splits - 1) / splits, first = min(z % splits * depth, stages);
    return { first, min(depth, stages - first) };
}
/* The same of number x, or of its piece. With Stream-K there is one product. */
template <class shape>
static __device__ __forceinline__ gpb_mapped_stretch gpb_mapped_stretch_of(const gpb_mapped_args &args,
                                                                           unsigned x)
{
    const gpb_gemm_args &g = args.gemm;
    const gpb_piece &piece = gpb_mapped_pieces()[x];
    if (gpb_mapped_shares<shape>(g) && piece.parts > 1) return { piece.from, piece.to - piece.from };
    return gpb_mapped_k<shape::BK>(args, gpb_mapped_z<shape>(g, x));
}
/* What of these is the first (0) or the second (1) product's, counted from its own beginning. */
template <class shape, unsigned PRODUCT>
static __device__ __forceinline__ gpb_mapped_stretch gpb_mapped_k_of(const gpb_mapped_args &args, unsigned x)
{
    const gpb_mapped_stretch all = gpb_mapped_stretch_of<shape>(args, x);
    const unsigned each = gpb_mapped_stages<shape::BK>(args.gemm), begin = max(all.first, PRODUCT * each),
                   end = min(all.first + all.stages, (PRODUCT + 1) * each);
    return { begin - PRODUCT * each, end > begin ? end - begin : 0 };
}

/* EDGE places of a slab from `place` on, or this block's part of them for both blocks of a pair. Maps are of
   real numbers. */
template <class T, gpb_along ORDER, int EDGE, int SHARERS>
static __device__ __forceinline__ void gpb_mapped_fetch(unsigned to, const gpb_tensor_map *map, bool in_lines,
                                                        int place, int k, int member, unsigned barrier)
{
    constexpr int MINE = EDGE / SHARERS, LINE = GPB_MAPPED_SLAB<T>;
    const int first = SHARERS == 1 ? 0 : gpb_cluster_rank() * MINE;
    auto copy = [&](int x, int i, int j, int line) __attribute__((always_inline)) {
        const unsigned there = to + (first + x) * GPB_MAPPED_LINE;
        if (SHARERS == 1) gpb_tensor_copy(there, map, i * GPB_REALS<T>, j, line, member, barrier);
        else gpb_tensor_multicast(there, map, i * GPB_REALS<T>, j, line, member, barrier, 3);
    };
    if (ORDER == GPB_MAPPED_K) {
        copy(0, k, place + first, 0);
    } else if (in_lines) {
        copy(0, 0, k, (place + first) / LINE);
    } else {
        /* Not unrolled, because 24 registers have no room for the places of all boxes. */
#pragma unroll 1
        for (int x = 0; x < MINE; x += LINE) copy(x, place + first + x, k, 0);
    }
}

/* Fills stages with what of number x is that product's. Each product has code of its own, because 24
   registers have no room for the addresses of its maps. */
template <class shape, gpb_along A, gpb_along B, unsigned PRODUCT>
static __device__ __forceinline__ void gpb_mapped_fill(const gpb_mapped_args &args, const gpb_origin &at,
                                                       unsigned x, gpb_mapped_ring<shape> &ring)
{
    using T = typename shape::type;
    const gpb_gemm_args &g = args.gemm;
    const gpb_mapped_stretch stretch = gpb_mapped_k_of<shape, PRODUCT>(args, x);
    const int l = gpb_mapped_z<shape>(g, x) / gpb_splits_of(g), member_a = g.stride_a ? l : 0,
              member_b = g.stride_b ? l : 0;
    int k = (int)stretch.first * shape::BK;
#pragma unroll 1
    for (unsigned left = stretch.stages; left; left--, ring.next()) {
        const unsigned full = ring.full + ring.stage * 8;
        unsigned to = ring.data + ring.at();
        ring.wait_empty();
        gpb_mbarrier_expect(full, shape::STAGE);
#pragma unroll
        for (int x = 0; x < 2; x++, k += GPB_MAPPED_SLAB<T>, to += shape::A + shape::B) {
            gpb_mapped_fetch<T, A, shape::BM, shape::SHARERS>(to, &args.map[2 * PRODUCT],
                                                              args.in_lines >> 2 * PRODUCT & 1, (int)at.i0, k,
                                                              member_a, full);
            gpb_mapped_fetch<T, B, shape::BN, 1>(to + shape::A, &args.map[2 * PRODUCT + 1],
                                                 args.in_lines >> (2 * PRODUCT + 1) & 1, (int)at.j0, k,
                                                 member_b, full);
        }
    }
}

template <class shape, gpb_along A, gpb_along B>
static __device__ __forceinline__ void gpb_mapped_produce(const gpb_mapped_args &args,
                                                          gpb_mapped_ring<shape> ring)
{
    const gpb_gemm_args &g = args.gemm;
    gpb_origin at = gpb_mapped_origin<shape>(g, 0);
#pragma unroll 1
    for (unsigned x = 0;; x++) {
        if (gpb_mapped_shares<shape>(g)) at = gpb_mapped_piece_at(x);
        gpb_mapped_fill<shape, A, B, 0>(args, at, x, ring);
        gpb_mapped_fill<shape, A, B, 1>(args, at, x, ring);
        if (gpb_mapped_ends<shape>(g, x)) return;
    }
}

/* Multiplies `stages` stages of the ring, from the present one on. */
template <class shape, gpb_along A, gpb_along B>
static __device__ __forceinline__ void gpb_mapped_multiply(double (&sum)[shape::NB][4 * shape::MB],
                                                           const gpb_lanes<typename shape::type, A, B> &lanes,
                                                           gpb_mapped_ring<shape> &ring, unsigned stages)
{
    constexpr bool HOLD_A = shape::HOLD_A;
    constexpr int HELD = HOLD_A ? shape::MB : shape::NB, PASSING = HOLD_A ? shape::NB : shape::MB;
    constexpr int HOLD = HOLD_A ? 8 : 4, PASS = HOLD_A ? 4 : 8;
    static_assert(PASSING % 2 == 0, "a slab begins where its two buffers do");
    constexpr int CHAIN = shape::CHAIN;
    [[maybe_unused]] double total[CHAIN ? shape::NB : 1][CHAIN ? 4 * shape::MB : 1] = {};
    double held[2][HELD][HOLD], passing[2][PASS];
    auto hold = [&](double (&to)[HELD][HOLD], unsigned slab) __attribute__((always_inline)) {
#pragma unroll
        for (int x = 0; x < HELD; x++)
            if constexpr (HOLD_A) lanes.read_a(to[x], slab, x);
            else lanes.read_b(to[x], slab, x);
    };
    auto complete = [&](double (&a)[HELD][HOLD]) __attribute__((always_inline)) {
#pragma unroll
        for (int x = 0; x < HELD; x++)
            if constexpr (HOLD_A) lanes.complete_a(a[x]);
    };
    auto pass = [&](double (&to)[PASS], unsigned slab, int x) __attribute__((always_inline)) {
        if constexpr (HOLD_A) lanes.read_b(to, slab, x);
        else lanes.read_a(to, slab, x);
    };
    ring.wait_full();
    unsigned slab = ring.at();
    hold(held[0], slab);
    pass(passing[0], slab, 0);
#pragma unroll 1
    for (unsigned left = stages; left; left--) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const unsigned read = ring.stage;
            unsigned next = slab + shape::A + shape::B;
#pragma unroll
            for (int z = 0; z < PASSING; z++) {
                if (z == PASSING - 2) {
                    if (half == 1) {
                        ring.next();
                        next = ring.at();
                        if (left > 1) ring.wait_full();        /* else what is read now is not used */
                    }
                    hold(held[1 - half], next);
                }
                if (z + 1 < PASSING) pass(passing[(z + 1) % 2], slab, z + 1);
                else pass(passing[0], next, 0);
                if constexpr (!HOLD_A) lanes.complete_a(passing[z % 2]);
                else if (z == 0) complete(held[half]);
#pragma unroll
                for (int x = 0; x < HELD; x++)
                    if constexpr (HOLD_A) gpb_dmma16(&sum[z][4 * x], held[half][x], passing[z % 2]);
                    else gpb_dmma16(&sum[x][4 * z], passing[z % 2], held[half][x]);
            }
            if (half == 1) ring.release(read);
            slab = next;
        }
        if constexpr (CHAIN > 0)
            if (left % CHAIN == 1) gpb_bank(total, sum);       /* and so behind the last one */
    }
    if constexpr (CHAIN > 0) gpb_bank(sum, total);
}

/* Stores a warp's sums. Not ADD: beta is 0. WHOLE: all of the tile is in C, whose vectors are aligned, so
   that nothing has to be asked of each. The old C of some columns is loaded before any of them is stored,
   as in general/product.cuh. */
template <class shape, gpb_along A, gpb_along B, bool ADD, bool WHOLE>
static __device__ __forceinline__ void gpb_mapped_store(const gpb_gemm_args &g, const gpb_origin &at,
                                                        gpb_target<typename shape::type> to,
                                                        const double (&sum)[shape::NB][4 * shape::MB])
{
    using T = typename shape::type;
    using lanes = gpb_lanes<T, A, B>;
    constexpr int MB = shape::MB, NB = shape::NB, FEW = 2;
    if (!ADD) to.beta = T();               /* which the compiler then knows */
    if (WHOLE) to.aligned = true;          /* likewise */
    const int rows = WHOLE ? shape::BM : (int)min(to.m - at.i0, (int64_t)shape::BM) - shape::warp_i(),
              cols = WHOLE ? shape::BN : (int)min(to.n - at.j0, (int64_t)shape::BN) - shape::warp_j();
    const bool reads = ADD && !gpb_is_zero(to.beta);
    T *const c = gpb_global(to.c + at.i0 + shape::warp_i() + (at.j0 + shape::warp_j()) * to.ldc);
    auto each = [&](int y0, auto what) __attribute__((always_inline)) {
#pragma unroll
        for (int y = y0; y < y0 + FEW; y++)
#pragma unroll
            for (int v = 0; v < 2; v++)
#pragma unroll
                for (int x = 0; x < MB; x++)
                    what(x, y, v, c + lanes::col(y, v) * to.ldc,
                         WHOLE || lanes::col(y, v) < cols ? rows : 0);
    };
#pragma unroll
    for (int y0 = 0; y0 < NB; y0 += FEW) {
        double2 old[FEW][2][MB];
        each(y0, [&](int x, int y, int v, const T *from, int limit) __attribute__((always_inline)) {
            const int i = lanes::row(x, 0), j = lanes::row(x, 1);
            double2 &o = old[y - y0][v][x];
            if constexpr (lanes::UNITS) {
                o = gpb_old_vector(to, from + i, WHOLE ? 2 : limit - i);
            } else {
                o.x = reads && (WHOLE || i < limit) ? from[i] : 0;
                o.y = reads && (WHOLE || j < limit) ? from[j] : 0;
            }
        });
        each(y0, [&](int x, int y, int v, T *into, int limit) __attribute__((always_inline)) {
            const int i = lanes::row(x, 0), j = lanes::row(x, 1);
            const double2 s = lanes::unit(g, sum[y][4 * x + v], sum[y][4 * x + 2 + v]), o = old[y - y0][v][x];
            if constexpr (lanes::UNITS) {
                gpb_store_vector(to, into + i, WHOLE ? 2 : limit - i, s, o);
            } else {
                if (WHOLE || i < limit) into[i] = gpb_blend(to, s.x, o.x);
                if (WHOLE || j < limit) into[j] = gpb_blend(to, s.y, o.y);
            }
        });
    }
}

/* The same where the diagonal crosses the tile. */
template <class shape, gpb_along A, gpb_along B>
static __device__ __forceinline__ void
gpb_mapped_store_crossed(const gpb_gemm_args &g, const gpb_origin &at,
                         const gpb_target<typename shape::type> &to,
                         const double (&sum)[shape::NB][4 * shape::MB])
{
    using T = typename shape::type;
    using lanes = gpb_lanes<T, A, B>;
    constexpr int REALS = GPB_REALS<T>, EACH = 4 * shape::MB / REALS;      /* results of a step of columns */
    const int64_t i = at.i0 + shape::warp_i(), j = at.j0 + shape::warp_j();
    auto place = [&](int x) __attribute__((always_inline)) {
        const int z = x % EACH * REALS;
        return gpb_place{ lanes::row(z / 4, z % 4 / 2), lanes::col(x / EACH, x % 2) };
    };
    gpb_store_crossed<EACH * shape::NB>(to, i, j, place, [&](int x) __attribute__((always_inline)) {
        const double (&of)[4 * shape::MB] = sum[x / EACH];
        if constexpr (REALS == 1) return of[x % EACH];
        else return lanes::unit(g, of[x % EACH / 2 * 4 + x % 2], of[x % EACH / 2 * 4 + 2 + x % 2]);
    });
}

/* Stores a warp's sums of part z of that tile, whatever the tile is. */
template <class shape, gpb_along A, gpb_along B>
static __device__ __forceinline__ void gpb_mapped_store_any(const gpb_gemm_args &g, const gpb_origin &at,
                                                            unsigned z,
                                                            const double (&sum)[shape::NB][4 * shape::MB])
{
    using T = typename shape::type;
    const gpb_target<T> to = gpb_target_of(gpb_tile<T>{ g, z, 0, 0, 0, NULL, NULL });
    const bool crossed = to.uplo && to.is_crossed(at.i0, at.j0, shape::BM, shape::BN);
    const bool whole = to.aligned && at.i0 + shape::BM <= to.m && at.j0 + shape::BN <= to.n;
    if (crossed) gpb_mapped_store_crossed<shape, A, B>(g, at, to, sum);
    else if (whole && gpb_is_zero(to.beta)) gpb_mapped_store<shape, A, B, false, true>(g, at, to, sum);
    else if (whole) gpb_mapped_store<shape, A, B, true, true>(g, at, to, sum);
    else gpb_mapped_store<shape, A, B, true, false>(g, at, to, sum);
}

/* Adds up a tile's parts, as gpb_join_parts does, without the producer. True in the last block to finish one:
   its sums are then those of all parts in the order of k. */
template <class shape>
static __device__ __forceinline__ bool gpb_mapped_join(const gpb_gemm_args &g, const gpb_piece &piece,
                                                       double (&sum)[shape::NB][4 * shape::MB])
{
    constexpr int CONSUMERS = shape::CONSUMERS, EACH = 2 * shape::MB, PAIRS = shape::NB * EACH,
                  TILE = PAIRS * CONSUMERS;
    const unsigned me = gpb_thread() - GPB_MAPPED_PRODUCER, parts = piece.parts;
    double2 *const first = (double2 *)g.partials + (int64_t)piece.first_block * (2 * TILE) + me;
    auto place = [&](unsigned part) { return first + (int64_t)part * (2 * TILE) + (part ? 0 : TILE); };
    double2 *const mine = place(piece.part);
#pragma unroll
    for (int x = 0; x < PAIRS; x++)
        __stcg(mine + x * CONSUMERS,
               make_double2(sum[x / EACH][x % EACH * 2], sum[x / EACH][x % EACH * 2 + 1]));
    __shared__ unsigned earlier;
    __threadfence();
    gpb_named_barrier(1, CONSUMERS);
    /* The last one sets it to zero. */
    if (me == 0) earlier = atomicInc(g.counters + piece.first_block, parts - 1);
    gpb_named_barrier(1, CONSUMERS);
    if (earlier != parts - 1) return false;
    __threadfence();
    gpb_read_part<true, CONSUMERS>(sum, place(0));
#pragma unroll 1
    for (unsigned part = 1; part < parts; part++) gpb_read_part<false, CONSUMERS>(sum, place(part));
    return true;
}

template <class shape, gpb_along A, gpb_along B>
static __device__ __forceinline__ void gpb_mapped_consume(const gpb_mapped_args &args,
                                                          gpb_mapped_ring<shape> ring)
{
    using T = typename shape::type;
    const gpb_gemm_args &g = args.gemm;
    const gpb_lanes<T, A, B> lanes(g, ring.data + shape::warp_i() * shape::LINE,
                                   ring.data + shape::A + shape::warp_j() * shape::LINE);
#pragma unroll 1
    for (unsigned x = 0;; x++) {
        const unsigned stages = gpb_mapped_stretch_of<shape>(args, x).stages;
        double sum[shape::NB][4 * shape::MB] = {};
        if (stages) gpb_mapped_multiply<shape, A, B>(sum, lanes, ring, stages);
        /* Or the order in which sums are stored would move them about in the loop. */
#pragma unroll
        for (int y = 0; y < shape::NB; y++) gpb_pin(sum[y]);
        const bool cut = gpb_mapped_shares<shape>(g) && gpb_mapped_pieces()[x].parts > 1;
        if (!cut || gpb_mapped_join<shape>(g, gpb_mapped_pieces()[x], sum))
            gpb_mapped_store_any<shape, A, B>(g, gpb_mapped_origin<shape>(g, x), gpb_mapped_z<shape>(g, x),
                                              sum);
        if (gpb_mapped_ends<shape>(g, x)) return;
    }
}

/* C = beta C: there is nothing to multiply. */
template <class shape> static __device__ __forceinline__ void gpb_mapped_scale(const gpb_gemm_args &g)
{
    const gpb_origin at = gpb_mapped_origin<shape>(g, 0);
    for (unsigned z = blockIdx.z; z < (uint64_t)g.batch * gpb_splits_of(g); z += gridDim.z)
        gpb_tile_scale<shape::BM, shape::BN>(
            gpb_tile<typename shape::type>{ g, z, at.i0, at.j0, 0, NULL, NULL });
}

/* One order of each operand. */
template <class shape, gpb_along A, gpb_along B>
static __device__ __forceinline__ void gpb_mapped_in(const gpb_mapped_args &args,
                                                     const gpb_mapped_ring<shape> &ring)
{
    if (threadIdx.x < GPB_MAPPED_PRODUCER) {
        gpb_registers_fewer<24>();
        if (threadIdx.x == 0) gpb_mapped_produce<shape, A, B>(args, ring);
    } else {
        gpb_registers_more<shape::REGISTERS>();
        gpb_mapped_consume<shape, A, B>(args, ring);
    }
}

template <class shape> static __device__ __forceinline__ void gpb_mapped(const gpb_mapped_args &args)
{
    __shared__ __align__(8) uint64_t full[shape::STAGES], empty[shape::STAGES];
    const gpb_gemm_args &g = args.gemm;
    gpb_grid_trigger();
    if (g.k == 0 || gpb_scalar<typename shape::type>::is_zero(g.alpha)) {
        gpb_grid_wait();
        gpb_mapped_scale<shape>(g);
        return;
    }
    gpb_mapped_ring<shape> ring;
    ring.data = (gpb_shared_address(gpb_mapped_memory()) + 1023) / 1024 * 1024;
    ring.full = gpb_shared_address(full);
    ring.empty = gpb_shared_address(empty);
    if (threadIdx.x == 0) {
        for (int x = 0; x < 2 * args.products; x++) gpb_tensor_prefetch(&args.map[x]);
        for (int s = 0; s < shape::STAGES; s++) {
            gpb_mbarrier_init(ring.full + s * 8, 1);
            gpb_mbarrier_init(ring.empty + s * 8, shape::WARPS * shape::SHARERS);
        }
        gpb_mbarrier_publish();
        if (gpb_mapped_shares<shape>(g)) gpb_mapped_find_pieces<shape>(g);
    }
    if (shape::SHARERS == 1) __syncthreads();
    else gpb_cluster_sync();
    gpb_grid_wait();
    const bool edge_a = g.rsa == 1, edge_b = g.csb == 1;
    if (edge_a && edge_b) gpb_mapped_in<shape, GPB_MAPPED_EDGE, GPB_MAPPED_EDGE>(args, ring);
    else if (edge_a) gpb_mapped_in<shape, GPB_MAPPED_EDGE, GPB_MAPPED_K>(args, ring);
    else if (edge_b) gpb_mapped_in<shape, GPB_MAPPED_K, GPB_MAPPED_EDGE>(args, ring);
    else gpb_mapped_in<shape, GPB_MAPPED_K, GPB_MAPPED_K>(args, ring);
    __syncwarp();
    if (shape::SHARERS > 1) gpb_cluster_sync();        /* the other block may still arrive at our barriers */
}

/* A step: a row of gemm.def with the part of a tile that a warp multiplies, and CHAIN. */
#define GPB_MAPPED_STEP(p, name, ...)                                                   \
    template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM, unsigned CAPS> \
    using gpb_##p##_##name                                                              \
        = gpb_mapped_shape<gpb_type_##p, BM, BN, BK, STAGES, THREADS, SMEM, CAPS, __VA_ARGS__>;

#endif
