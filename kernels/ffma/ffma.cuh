/* SPDX-License-Identifier: MIT */
/* The general FP32 kernels. They pack nothing and take any strides. cp.async fills a ring of STAGES k tiles,
   with one barrier for each k tile. Fragments are double buffered across the barrier. */
#ifndef GPB_FFMA_FFMA_CUH
#define GPB_FFMA_FFMA_CUH

#include "kernels/ffma/operand_copy.cuh"
#include "kernels/ffma/streamk.cuh"
#include "kernels/ffma/store.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS> struct gpb_ffma_shape {
    using layout = gpb_thread_layout<BM, BN, THREADS>;
    static constexpr int LDA = gpb_operand_ld<BM>, LDB = gpb_operand_ld<BN>, TILE_A = BK * LDA,
                         STAGE = TILE_A + BK * LDB;
    static constexpr int SHARE = BK / layout::GROUPS;  /* q of a k tile that one group takes */
    /* If true, the FMAs of a q stand before the reads of the next fragments, and nothing is moved across one
       place in a k tile. `ffma` on an H200, multiples of cuBLAS without and with it: operands copied 4 bytes
       at a time 0.99 and 1.03 (NT), 1.08 and 1.11 (NN), 1.16 and 1.19 (TN) at 3135; 16 bytes at a time 1.06
       and 1.02 (NT at 4096). `ffma_paired`: 1.00 and 1.07 (NN at 1022), 1.02 and 1.08 (TN at 1024). The other
       kernels with 8 x 8 results do without it and were not measured. */
    template <gpb_copy_mode MODE_A, gpb_copy_mode MODE_B> static constexpr bool LATE
        = (layout::TN == 16 || layout::GROUPS == 2) && MODE_A != GPB_MN_VEC4 && MODE_B != GPB_MN_VEC4;
    /* Copies are started every BURST q. All of them at once would delay the reads of fragments (4 to 7
       TFLOP/s), but the compiler puts three empty slots before each burst. Measured: one copy at a time is
       2 % better for 8 x 16 results a thread, two for 8 x 8. */
    static constexpr int BURST = layout::TN == 16 ? 1 : 2;
    static constexpr int RING = STAGES * STAGE, ROOM = layout::GROUPS / 2 * BM * BN,
                         FLOATS = RING > ROOM ? RING : ROOM;
    static_assert(layout::MEMBERS / 32 * gpb_round_floats<layout> <= FLOATS, "gpb_store_tile's room");
    static_assert(SHARE % 2 == 0 && SHARE * layout::GROUPS == BK && STAGES >= 2,
                  "two sets of fragments; a buffer to read, one to fill");
};

/* acc = the tile's product. CHAIN > 0: sums of CHAIN k tiles each are added up. CHAIN == 0: one chain of
   additions for all of k. */
template <gpb_copy_mode MODE_A, gpb_copy_mode MODE_B, int CHAIN, int BM, int BN, int BK, int STAGES,
          int THREADS, int TM, int TN>
static __device__ __forceinline__ void
gpb_ffma_loop(float (&acc)[TN][TM], float *ring, const gpb_operand_view &side_a,
              const gpb_operand_view &side_b, unsigned k_tiles, unsigned first)
{
    using shape = gpb_ffma_shape<BM, BN, BK, STAGES, THREADS>;
    using layout = typename shape::layout;
    constexpr int LDA = shape::LDA, LDB = shape::LDB, SHARE = shape::SHARE, STAGE = shape::STAGE,
                  BURST = shape::BURST;
    constexpr bool LATE = shape::template LATE<MODE_A, MODE_B>;
    gpb_operand_copy<MODE_A, BM, BK, THREADS> in_a(side_a);
    gpb_operand_copy<MODE_B, BN, BK, THREADS> in_b(side_b);
    const unsigned at = gpb_shared_address(ring);
    in_a.first(ring, first);
    in_b.first(ring + shape::TILE_A, first);
    gpb_cp_async_commit();
#pragma unroll 1
    for (int s = 1; s < STAGES - 1; s++) {
        if (s < k_tiles) {
            in_a.template part<1>(at + s * STAGE * 4, 0);
            in_b.template part<1>(at + (s * STAGE + shape::TILE_A) * 4, 0);
        }
        gpb_cp_async_commit();
    }
    int now = 0;
    unsigned later = at + (STAGES - 1) * STAGE * 4;
    auto next_k_tile = [&]() __attribute__((always_inline)) {
        gpb_cp_async_commit();
        gpb_cp_async_wait<STAGES - 2>();
        __syncthreads();  /* the next k tile is complete, and no thread reads this one any more */
        later = at + now * 4;
        now = now == (STAGES - 1) * STAGE ? 0 : now + STAGE;
    };
    gpb_cp_async_wait<STAGES - 2>();
    __syncthreads();
    float a[2][TM], b[2][TN], total[CHAIN ? TN : 1][CHAIN ? TM : 1] = {};
    const float *as = ring + layout::group() * SHARE * LDA + layout::i();
    const float *bs = ring + shape::TILE_A + layout::group() * SHARE * LDB + layout::j();
    gpb_read4<TM / 4, layout::STEP_M>(a[0], as);
    gpb_read4<TN / 4, layout::STEP_N>(b[0], bs);
#pragma unroll 1
    for (unsigned left = k_tiles; left; left--) {
        if (left < STAGES)                 /* there is no k tile STAGES - 1 further on */
            in_a.within = in_b.within = 0;
#pragma unroll
        for (int q = 0; q < SHARE; q++) {
            const int next = (q + 1) % SHARE;
            if (q % BURST == 0) {
                in_a.template part<SHARE / BURST>(later, q / BURST);
                in_b.template part<SHARE / BURST>(later + shape::TILE_A * 4, q / BURST);
            }
            if (next == 0)
                next_k_tile();
            if constexpr (LATE) {
                gpb_outer_snake(acc, a[q % 2], b[q % 2]);
                if (q == 3)
                    gpb_fence_here(first);
            }
            gpb_read4<TM / 4, layout::STEP_M>(a[next % 2], as + now + next * LDA);
            gpb_read4<TN / 4, layout::STEP_N>(b[next % 2], bs + now + next * LDB);
            if constexpr (!LATE)
                gpb_outer_snake(acc, a[q % 2], b[q % 2]);
        }
        if constexpr (CHAIN > 0)
            if (left == 1 || (k_tiles - left) % CHAIN == CHAIN - 1)
                gpb_bank(total, acc);
    }
    /* Never used. They keep the last round's reads, so that all rounds are alike. */
    if constexpr (LATE) {
        gpb_pin(a[0]);
        gpb_pin(b[0]);
    }
    if constexpr (CHAIN > 0)
        gpb_bank(acc, total);
}

/* Computes a tile, or a part of its k. CHAIN: see gpb_ffma_loop. */
template <int CHAIN, int BM, int BN, int BK, int STAGES, int THREADS>
static __device__ __forceinline__ void gpb_ffma_tile(const gpb_tile<float> &t, const gpb_piece &piece)
{
    using shape = gpb_ffma_shape<BM, BN, BK, STAGES, THREADS>;
    using layout = typename shape::layout;
    __shared__ __align__(16) float ring[shape::FLOATS];
    const unsigned k_tiles = gpb_k_tiles<BK>(t), first = (unsigned)(t.k - (int64_t)(k_tiles - 1) * BK);
    const gpb_operand_view side_a = { t.a + t.i0 * t.g.rsa, t.g.rsa, t.g.csa, t.g.m - t.i0 };
    const gpb_operand_view side_b = { t.b + t.j0 * t.g.csb, t.g.csb, t.g.rsb, t.g.n - t.j0 };
    gpb_copy_mode mode_a = gpb_copy_mode_of<BM>(side_a, first), mode_b = gpb_copy_mode_of<BN>(side_b, first);
    if (mode_a + mode_b == GPB_MN_VEC4 + GPB_MN_SCALAR)
        mode_a = mode_b = GPB_MN_SCALAR;   /* not worth a loop of its own */
    float acc[layout::TN][layout::TM] = {};
    switch (mode_a * 3 + mode_b) {
#define LOOP(a, b)                                                                                          \
    case a * 3 + b:                                                                                         \
        gpb_ffma_loop<a, b, CHAIN, BM, BN, BK, STAGES, THREADS>(acc, ring, side_a, side_b, k_tiles, first); \
        break;
        LOOP(GPB_MN_VEC4, GPB_MN_VEC4)
        LOOP(GPB_MN_VEC4, GPB_K_MAJOR)
        LOOP(GPB_K_MAJOR, GPB_MN_VEC4)
        LOOP(GPB_K_MAJOR, GPB_K_MAJOR)
        LOOP(GPB_MN_SCALAR, GPB_MN_SCALAR)
        LOOP(GPB_MN_SCALAR, GPB_K_MAJOR)
        LOOP(GPB_K_MAJOR, GPB_MN_SCALAR)
#undef LOOP
    }
    if (layout::GROUPS > 1)
        gpb_gather_groups<layout::GROUPS, layout::MEMBERS>(acc, ring);
    __syncthreads();                       /* no thread reads the ring any more */
    if (piece.parts > 1 && !gpb_join_parts<layout>(t.g, piece, acc)) return;
    if (layout::group() == 0)
        gpb_store_tile<BM, BN, layout>(t.g, piece, ring, acc);
}

/* One chain of FMAs for each result. */
template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_ffma(const gpb_tile<float> &t, const gpb_piece &piece)
{
    gpb_ffma_tile<0, BM, BN, BK, STAGES, THREADS>(t, piece);
}

/* The same for other rows of gemm.def, which have other tiles. */
#define GPB_FFMA_ALSO(name)                                                                       \
    template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>                          \
    static __device__ __forceinline__ void name(const gpb_tile<float> &t, const gpb_piece &piece) \
    {                                                                                             \
        gpb_ffma_tile<0, BM, BN, BK, STAGES, THREADS>(t, piece);                                  \
    }
GPB_FFMA_ALSO(gpb_ffma_small)
GPB_FFMA_ALSO(gpb_ffma_paired)
GPB_FFMA_ALSO(gpb_ffma_grouped)
GPB_FFMA_ALSO(gpb_ffma_tall)
#undef GPB_FFMA_ALSO

/* Sums of 64 k each, added up. The fallback for tensor-core kernels, which sum in the same way where k is
   large. */
template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_ffma_blocked(const gpb_tile<float> &t, const gpb_piece &piece)
{
    gpb_ffma_tile<64 / BK, BM, BN, BK, STAGES, THREADS>(t, piece);
}

#endif
