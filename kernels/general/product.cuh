/* SPDX-License-Identifier: MIT */
/* Products in d, c and z on operands of any strides. Nothing is packed. cp.async fills a ring of STAGES k
   tiles, with one barrier for each k tile. Fragments are double buffered across the barrier. d and z are
   multiplied by FP64 tensor cores, c by FMAs (warp.cuh). Every step of image ?gemm_general is this body with
   another tile. If a block has more warps than its tile needs, groups of warps share the q of each k tile.
   CHAIN > 0: sums of so many k tiles are added up, for which a thread needs twice the registers. */
#ifndef GPB_GENERAL_PRODUCT_CUH
#define GPB_GENERAL_PRODUCT_CUH

#include "kernels/epilogue.cuh"
#include "kernels/ffma/streamk.cuh"
#include "kernels/general/copy.cuh"
#include "kernels/general/warp.cuh"

template <class T, int BM, int BN, int BK, int STAGES, int THREADS, int SMEM, int WM_, int WN_,
          int CHAIN_ = 0>
struct gpb_general_shape {
    static constexpr int WM = WM_, WN = WN_, CHAIN = CHAIN_;
    static constexpr bool FMAS = sizeof(T) == 8 && sizeof(gpb_real<T>) == 4;       /* c */
    /* Where a thread has 8 x 8 results. With fewer the compiler mixes up the FMAs, and the SASS had as many
       stalls as before. */
    static constexpr bool SPLIT = FMAS && WM * WN >= 64 * 32;
    using warp = gpb_warp<T, WM, WN, SPLIT>;
    static constexpr int MEMBERS = 32 * (BM / WM) * (BN / WN), GROUPS = THREADS / MEMBERS, TM = warp::TM,
                         TN = warp::TN;
    template <gpb_order ORDER> using layout_a = gpb_side_layout<T, ORDER, BM, BK, warp::TWICE>;
    template <gpb_order ORDER>
    using layout_b = gpb_side_layout<T, ORDER, BN, BK, false, SPLIT && ORDER != GPB_ALONG_K>;
    template <class EDGE, class K>
    static constexpr int LONGER = FMAS || EDGE::ELEMENTS > K::ELEMENTS ? EDGE::ELEMENTS : K::ELEMENTS;
    /* Elements of a k tile of both operands, each in the longer layout that is used. */
    static constexpr int STAGE = LONGER<layout_a<GPB_ALONG_EDGE>, layout_a<GPB_ALONG_K>>
                                 + LONGER<layout_b<GPB_ALONG_EDGE>, layout_b<GPB_ALONG_K>>;
    static constexpr int SHARE = BK / GROUPS, STEPS = SHARE / warp::DEPTH;
    /* Blocks of a multiprocessor: as many as registers and shared memory allow. 32 sums of 8 bytes a thread
       need no more than 168 registers. */
    static constexpr int BLOCKS_R
        = 65536 / (sizeof(gpb_sum_of<T>) * TM * TN * (CHAIN ? 2 : 1) < 512 ? 168 : 256) / THREADS,
                         BLOCKS_S = 227 * 1024 / (SMEM + 1100),
                         BLOCKS = BLOCKS_R < BLOCKS_S ? BLOCKS_R : BLOCKS_S;
    static_assert(BM % WM == 0 && BN % WN == 0 && MEMBERS * GROUPS == THREADS, "each warp has its part");
    static_assert(STEPS * warp::DEPTH * GROUPS == BK && STAGES >= 2, "a buffer to read, one to fill");
    static_assert(SMEM == STAGES * STAGE * (int)sizeof(T), "see gemm.def");
    static_assert(GROUPS / 2 * BM * BN <= STAGES * STAGE, "room for the sums of groups");
    static __device__ __forceinline__ int member() { return gpb_thread() % MEMBERS; }
    static __device__ __forceinline__ int group() { return GROUPS == 1 ? 0 : gpb_thread() / MEMBERS; }
    static __device__ __forceinline__ int warp_i() { return member() / 32 % (BM / WM) * WM; }
    static __device__ __forceinline__ int warp_j() { return member() / 32 / (BM / WM) * WN; }
};

/* The tile's product, or a part of it, added to w's sums. */
template <class shape, gpb_unit UNIT, gpb_order ORDER_A, gpb_order ORDER_B, bool MIXED, class T, int BM,
          int BN, int BK, int STAGES, int THREADS>
static __device__ __forceinline__ void
gpb_general_loop(typename shape::warp &w, T *ring, const gpb_side<T> &side_a, const gpb_side<T> &side_b,
                 unsigned k_tiles, unsigned first)
{
    using warp = typename shape::warp;
    using LA = typename shape::template layout_a<ORDER_A>;
    using LB = typename shape::template layout_b<ORDER_B>;
    constexpr int STAGE = shape::STAGE, BYTES = sizeof(T), TILE_A = LA::ELEMENTS;
    gpb_side_copy<T, UNIT, ORDER_A, LA, BM, BK, THREADS> in_a(side_a);
    gpb_side_copy<T, LB::SPLIT ? GPB_UNIT_HALVES : UNIT, ORDER_B, LB, BN, BK, THREADS> in_b(side_b);
    const unsigned at = gpb_shared_address(ring);
    in_a.first(ring, first);
    in_b.first(ring + TILE_A, first);
    gpb_cp_async_commit();
#pragma unroll 1
    for (int s = 1; s < STAGES - 1; s++) {
        if (s < k_tiles) {
            in_a.template part<1>(at + s * STAGE * BYTES, 0);
            in_b.template part<1>(at + (s * STAGE + TILE_A) * BYTES, 0);
        }
        gpb_cp_async_commit();
    }
    int now = 0;
    unsigned later = at + (STAGES - 1) * STAGE * BYTES;
    gpb_cp_async_wait<STAGES - 2>();
    __syncthreads();
    const T *as = ring + shape::group() * shape::SHARE * LA::Q + shape::warp_i() * LA::PLACE
                  + warp::template offset_a<LA>();
    const T *bs = ring + TILE_A + shape::group() * shape::SHARE * LB::Q + shape::warp_j() * LB::PLACE
                  + warp::template offset_b<LB>();
    w.template begin<LA, LB>(as, bs);
    auto copy = [&](auto slot) __attribute__((always_inline)) {
        constexpr int SLOTS = warp::template SLOTS<shape::STEPS>;
        in_a.template part<SLOTS>(later, decltype(slot)::value);
        in_b.template part<SLOTS>(later + TILE_A * BYTES, decltype(slot)::value);
    };
    /* The next k tile is complete, and no thread reads this one any more. */
    auto turn = [&]() __attribute__((always_inline)) {
        gpb_cp_async_commit();
        gpb_cp_async_wait<STAGES - 2>();
        __syncthreads();
        const int step = now == STAGES - 1 ? -(STAGES - 1) * STAGE : STAGE;
        later = at + now * (STAGE * BYTES);
        now = now == STAGES - 1 ? 0 : now + 1;
        as += step;
        bs += step;
    };
    constexpr int CHAIN = shape::CHAIN;
    [[maybe_unused]] gpb_sum_of<T> total[CHAIN ? shape::TN : 1][CHAIN ? shape::TM : 1] = {};
#pragma unroll 1
    for (unsigned left = k_tiles; left; left--) {
        if (left < STAGES)                 /* there is no k tile STAGES - 1 further on */
            in_a.within = in_b.within = 0;
        gpb_each_number<0, shape::STEPS>([&](auto step) __attribute__((always_inline)) {
            w.template step<decltype(step)::value, shape::STEPS, LA, LB, MIXED>(as, bs, copy, turn);
        });
        if constexpr (CHAIN > 0)
            if ((k_tiles - left) % CHAIN == CHAIN - 1) gpb_bank(total, w.sum);
    }
    if constexpr (CHAIN > 0) gpb_bank(w.sum, total);
}

/* Stores w's sums to C. The old C of some columns is loaded before any of them is stored, because the
   compiler cannot know that stores do not alias it and would wait for each load separately. */
template <int BM, int BN, class shape, class T>
static __device__ __forceinline__ void gpb_general_store(const gpb_gemm_args &g, const gpb_piece &piece,
                                                         const typename shape::warp &w)
{
    using warp = typename shape::warp;
    constexpr int FEW = warp::COLS % 4 == 0 ? 4 : 2, ROWS = warp::ROWS;
    const gpb_tile<T> t = { g, piece.z, 0, 0, 0, NULL, NULL };
    const gpb_target<T> to = gpb_target_of(t);
    const gpb_origin at = gpb_origin_of<BM, BN>(g, piece);
    const int rows = (int)min(to.m - at.i0, (int64_t)BM) - shape::warp_i(),
              cols = (int)min(to.n - at.j0, (int64_t)BN) - shape::warp_j();
    if (to.is_crossed(at.i0, at.j0, BM, BN)) {
        constexpr int V = GPB_VECTOR<T>;
        const int64_t i = at.i0 + shape::warp_i(), j = at.j0 + shape::warp_j();
        auto place = [&](int x) __attribute__((always_inline)) {
            return gpb_place{ warp::row(x / V % ROWS) + x % V, warp::col(x / V / ROWS) };
        };
        auto value = [&](int x) __attribute__((always_inline)) {
            return gpb_vector_at<T>(w.unit(x / V % ROWS, x / V / ROWS), x % V);
        };
        constexpr int BYTES = GPB_IS_COMPLEX<T> && V > 1 ? 16 : 64;    /* c has no registers for more */
        gpb_store_crossed<V * ROWS * warp::COLS, BYTES>(to, i, j, place, value);
        return;
    }
    T *const c = gpb_global(to.c + at.i0 + shape::warp_i() + (at.j0 + shape::warp_j()) * to.ldc);
#pragma unroll
    for (int y0 = 0; y0 < warp::COLS; y0 += FEW) {
        gpb_vector<T> old[FEW][ROWS];
#pragma unroll
        for (int y = 0; y < FEW; y++)
#pragma unroll
            for (int x = 0; x < ROWS; x++) {
                const int i = warp::row(x), j = warp::col(y0 + y);
                old[y][x] = gpb_old_vector(to, c + i + j * to.ldc, j < cols ? rows - i : 0);
            }
#pragma unroll
        for (int y = 0; y < FEW; y++)
#pragma unroll
            for (int x = 0; x < ROWS; x++) {
                const int i = warp::row(x), j = warp::col(y0 + y);
                gpb_store_vector(to, c + i + j * to.ldc, j < cols ? rows - i : 0, w.unit(x, y0 + y),
                                 old[y][x]);
            }
    }
}

/* Calls multiply(unit, order of A, order of B, mixed) with constants. DMMA wants k tiles as they come, in
   four orders. A real number has no halves, and an element of 16 bytes is no part of a pair. */
template <int BYTES, class MULTIPLY>
static __device__ __forceinline__ void gpb_general_dmma(MULTIPLY multiply, gpb_unit unit, bool edge_a,
                                                        bool edge_b)
{
    constexpr gpb_unit LARGE = BYTES == 16 ? GPB_UNIT_WHOLE : GPB_UNIT_PAIR,
                       SMALL = BYTES == 16 ? GPB_UNIT_HALVES : GPB_UNIT_WHOLE;
    auto by_order = [&](auto unit) __attribute__((always_inline)) {
        const gpb_number<GPB_ALONG_EDGE> edge;
        const gpb_number<GPB_ALONG_K> k;
        const gpb_number<0> no;
        if (edge_a && edge_b) multiply(unit, edge, edge, no);
        else if (edge_a) multiply(unit, edge, k, no);
        else if (edge_b) multiply(unit, k, edge, no);
        else multiply(unit, k, k, no);
    };
    if (unit == LARGE) by_order(gpb_number<LARGE>());
    else by_order(gpb_number<SMALL>());
}

/* FMAs want k tiles along the edge. Pairs come along the edge alone. SPLIT: op(B) comes in halves anyway, and
   `unit` is op(A)'s. */
template <bool SPLIT, class MULTIPLY, class T>
static __device__ __forceinline__ void gpb_general_fmas(MULTIPLY multiply, const gpb_gemm_args &g,
                                                        gpb_unit unit, const gpb_side<T> &a,
                                                        const gpb_side<T> &b)
{
    const gpb_number<GPB_ALONG_EDGE> edge;
    const gpb_number<GPB_ALONG_EITHER> either;
    const gpb_number<SPLIT ? GPB_ALONG_EITHER : GPB_ALONG_EDGE> edge_b;
    const bool mixed = !g.conj_a != !g.conj_b, down = a.stride_mn == 1 && (SPLIT || b.stride_mn == 1);
    auto by_unit = [&](auto mixed) __attribute__((always_inline)) {
        if (unit == GPB_UNIT_HALVES) multiply(gpb_number<GPB_UNIT_HALVES>(), either, either, mixed);
        else if (unit == GPB_UNIT_PAIR && down) multiply(gpb_number<GPB_UNIT_PAIR>(), edge, edge_b, mixed);
        else multiply(gpb_number<GPB_UNIT_WHOLE>(), either, either, mixed);
    };
    if (mixed) by_unit(gpb_number<1>());
    else by_unit(gpb_number<0>());
}

/* Computes a tile, or a part of its k. */
template <class shape, class T, int BM, int BN, int BK, int STAGES, int THREADS>
static __device__ __forceinline__ void gpb_general(const gpb_tile<T> &t, const gpb_piece &piece)
{
    T *ring = (T *)gpb_general_memory();
    const unsigned k_tiles = gpb_k_tiles<BK>(t), first = (unsigned)(t.k - (int64_t)(k_tiles - 1) * BK);
    const gpb_side<T> side_a = { t.a + t.i0 * t.g.rsa, t.g.rsa, t.g.csa, t.g.m - t.i0 };
    const gpb_side<T> side_b = { t.b + t.j0 * t.g.csb, t.g.csb, t.g.rsb, t.g.n - t.j0 };
    /* One unit for both operands, the smaller one. */
    const gpb_unit unit_a = gpb_unit_of<BM>(side_a, first), unit_b = gpb_unit_of<BN>(side_b, first),
                   unit = unit_a > unit_b ? unit_a : unit_b;
    typename shape::warp w(t.g);
    auto multiply = [&](auto unit, auto order_a, auto order_b, auto mixed) __attribute__((always_inline)) {
        gpb_general_loop<shape, (gpb_unit)decltype(unit)::value, (gpb_order)decltype(order_a)::value,
                         (gpb_order)decltype(order_b)::value, decltype(mixed)::value, T, BM, BN, BK, STAGES,
                         THREADS>(w, ring, side_a, side_b, k_tiles, first);
    };
    if constexpr (shape::FMAS)
        gpb_general_fmas<shape::SPLIT>(multiply, t.g, shape::SPLIT ? unit_a : unit, side_a, side_b);
    else gpb_general_dmma<sizeof(T)>(multiply, unit, side_a.stride_mn == 1, side_b.stride_mn == 1);
    /* Or the order in which sums are stored would move them about in the loop. */
#pragma unroll
    for (int y = 0; y < shape::TN; y++) gpb_pin(w.sum[y]);
    if (shape::GROUPS > 1)
        gpb_gather_groups<shape::GROUPS, shape::MEMBERS>(w.sum, (gpb_sum_of<T> *)ring);
    __syncthreads();                       /* no thread reads the ring any more */
    if (piece.parts > 1 && !gpb_join_parts<shape>(t.g, piece, w.sum)) return;
    if (shape::group() == 0)
        gpb_general_store<BM, BN, shape, T>(t.g, piece, w);
}

/* A step: a row of gemm.def with the part of a tile that a warp multiplies, and CHAIN. */
#define GPB_GENERAL_STEP(p, name, ...)                                                                      \
    template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM> struct gpb_##p##_##name {          \
        using shape = gpb_general_shape<gpb_type_##p, BM, BN, BK, STAGES, THREADS, SMEM, __VA_ARGS__>;      \
        static __device__ __forceinline__ void run(const gpb_tile<gpb_type_##p> &t, const gpb_piece &piece) \
        {                                                                                                   \
            gpb_general<shape, gpb_type_##p, BM, BN, BK, STAGES, THREADS>(t, piece);                        \
        }                                                                                                   \
    };

#endif
