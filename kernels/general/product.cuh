/* SPDX-License-Identifier: MIT */
/* Products in d, c and z on operands of any strides. Nothing is packed. cp.async fills a ring of STAGES k
   tiles, with one barrier for each k tile. Fragments are double buffered across the barrier. d and z are
   multiplied by FP64 tensor cores, c by FMAs (warp.cuh). Every step of image ?gemm_general is this body with
   another tile. If a block has more warps than its tile needs, groups of warps share the q of each k tile. */
#ifndef GPB_GENERAL_PRODUCT_CUH
#define GPB_GENERAL_PRODUCT_CUH

#include "kernels/epilogue.cuh"
#include "kernels/ffma/streamk.cuh"
#include "kernels/general/copy.cuh"
#include "kernels/general/warp.cuh"

template <class T, int BM, int BN, int BK, int STAGES, int THREADS, int SMEM, int WM_, int WN_>
struct gpb_general_shape {
    static constexpr int WM = WM_, WN = WN_;
    using warp = gpb_warp<T, WM, WN>;
    static constexpr int MEMBERS = 32 * (BM / WM) * (BN / WN), GROUPS = THREADS / MEMBERS, TM = warp::TM,
                         TN = warp::TN;
    static constexpr int LDA = gpb_side_ld<T, BM>, LDB = gpb_side_ld<T, BN>, TILE_A = BK * LDA,
                         STAGE = TILE_A + BK * LDB;
    static constexpr int SHARE = BK / GROUPS, STEPS = SHARE / warp::DEPTH;
    /* Blocks of a multiprocessor: as many as registers and shared memory allow. 32 sums of 8 bytes a thread
       need no more than 168 registers. */
    static constexpr int BLOCKS_R = 65536 / (sizeof(gpb_sum_of<T>) * TM * TN < 512 ? 168 : 256) / THREADS,
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
template <class shape, gpb_unit UNIT_A, gpb_unit UNIT_B, bool MIXED, class T, int BM, int BN, int BK,
          int STAGES, int THREADS>
static __device__ __forceinline__ void
gpb_general_loop(typename shape::warp &w, T *ring, const gpb_side<T> &side_a, const gpb_side<T> &side_b,
                 unsigned k_tiles, unsigned first)
{
    using warp = typename shape::warp;
    constexpr int LDA = shape::LDA, LDB = shape::LDB, STAGE = shape::STAGE, BYTES = sizeof(T);
    gpb_side_copy<T, UNIT_A, BM, BK, THREADS> in_a(side_a);
    gpb_side_copy<T, UNIT_B, BN, BK, THREADS> in_b(side_b);
    const unsigned at = gpb_shared_at(ring);
    in_a.first(ring, first);
    in_b.first(ring + shape::TILE_A, first);
    gpb_cp_async_commit();
#pragma unroll 1
    for (int s = 1; s < STAGES - 1; s++) {
        if (s < k_tiles) {
            in_a.template part<1>(at + s * STAGE * BYTES, 0);
            in_b.template part<1>(at + (s * STAGE + shape::TILE_A) * BYTES, 0);
        }
        gpb_cp_async_commit();
    }
    int now = 0;
    unsigned later = at + (STAGES - 1) * STAGE * BYTES;
    gpb_cp_async_wait<STAGES - 2>();
    __syncthreads();
    const T *as = ring + shape::group() * shape::SHARE * LDA + shape::warp_i() + warp::offset_a(LDA);
    const T *bs = ring + shape::TILE_A + shape::group() * shape::SHARE * LDB + shape::warp_j()
                  + warp::offset_b(LDB);
    w.template begin<LDA, LDB>(as, bs);
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
#pragma unroll 1
    for (unsigned left = k_tiles; left; left--) {
        if (left < STAGES)                 /* there is no k tile STAGES - 1 further on */
            in_a.within = in_b.within = 0;
        gpb_each_number<0, shape::STEPS>([&](auto step) __attribute__((always_inline)) {
            constexpr int s = decltype(step)::value;
            in_a.template part<shape::STEPS>(later, s);
            in_b.template part<shape::STEPS>(later + shape::TILE_A * BYTES, s);
            w.template step<s, shape::STEPS, LDA, LDB, MIXED>(as, bs, turn);
        });
    }
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

/* Computes a tile, or a part of its k. */
template <class T, int BM, int BN, int BK, int STAGES, int THREADS, int SMEM, int WM, int WN>
static __device__ __forceinline__ void gpb_general(const gpb_tile<T> &t, const gpb_piece &piece)
{
    using shape = gpb_general_shape<T, BM, BN, BK, STAGES, THREADS, SMEM, WM, WN>;
    T *ring = (T *)gpb_general_memory();
    const unsigned k_tiles = gpb_k_tiles<BK>(t), first = (unsigned)(t.k - (int64_t)(k_tiles - 1) * BK);
    const gpb_side<T> side_a = { t.a + t.i0 * t.g.rsa, t.g.rsa, t.g.csa, t.g.m - t.i0 };
    const gpb_side<T> side_b = { t.b + t.j0 * t.g.csb, t.g.csb, t.g.rsb, t.g.n - t.j0 };
    gpb_unit unit_a = gpb_unit_of<BM>(side_a, first), unit_b = gpb_unit_of<BN>(side_b, first);
    if (unit_a == GPB_UNIT_HALVES || unit_b == GPB_UNIT_HALVES)
        unit_a = unit_b = GPB_UNIT_HALVES; /* rare, and not worth loops of their own */
    typename shape::warp w(t.g);
    const bool mixed = !t.g.conj_a != !t.g.conj_b;
#define LOOP(a, b, mixed)                                                                                \
    gpb_general_loop<shape, GPB_UNIT_##a, GPB_UNIT_##b, mixed, T, BM, BN, BK, STAGES, THREADS>(          \
        w, ring, side_a, side_b, k_tiles, first)
    if constexpr (sizeof(T) == 16) {
        if (unit_a == GPB_UNIT_HALVES) LOOP(HALVES, HALVES, false);
        else LOOP(WHOLE, WHOLE, false);
    } else if constexpr (sizeof(T) == sizeof(gpb_real<T>)) {
        if (unit_a == GPB_UNIT_PAIR && unit_b == GPB_UNIT_PAIR) LOOP(PAIR, PAIR, false);
        else if (unit_a == GPB_UNIT_PAIR) LOOP(PAIR, WHOLE, false);
        else if (unit_b == GPB_UNIT_PAIR) LOOP(WHOLE, PAIR, false);
        else LOOP(WHOLE, WHOLE, false);
    } else if (unit_a == GPB_UNIT_HALVES) {
        if (mixed) LOOP(HALVES, HALVES, true);
        else LOOP(HALVES, HALVES, false);
    } else if (unit_a == GPB_UNIT_PAIR && unit_b == GPB_UNIT_PAIR) {
        if (mixed) LOOP(PAIR, PAIR, true);
        else LOOP(PAIR, PAIR, false);
    } else {
        if (mixed) LOOP(WHOLE, WHOLE, true);
        else LOOP(WHOLE, WHOLE, false);
    }
#undef LOOP
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

/* A step: a row of gemm.def with the part of a tile that a warp multiplies. */
#define GPB_GENERAL_STEP(p, name, wm, wn)                                                                   \
    template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM> struct gpb_##p##_##name {          \
        using shape = gpb_general_shape<gpb_type_##p, BM, BN, BK, STAGES, THREADS, SMEM, wm, wn>;           \
        static __device__ __forceinline__ void run(const gpb_tile<gpb_type_##p> &t, const gpb_piece &piece) \
        {                                                                                                   \
            gpb_general<gpb_type_##p, BM, BN, BK, STAGES, THREADS, SMEM, wm, wn>(t, piece);                 \
        }                                                                                                   \
    };

#endif
