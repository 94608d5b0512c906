/* SPDX-License-Identifier: MIT */
/* The FP32 kernels of every day: no packing, any strides; cp.async through a ring of STAGES slices, one barrier a slice, fragments double
   buffered across it. */
#ifndef GPB_FFMA_FFMA_CUH
#define GPB_FFMA_FFMA_CUH

#include "kernels/ffma/panel.cuh"
#include "kernels/ffma/streamk.cuh"
#include "kernels/ffma/store.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS> struct gpb_ffma_shape {
    using lanes = gpb_lanes<BM, BN, THREADS>;
    static constexpr int LDA = gpb_panel_ld<BM>, LDB = gpb_panel_ld<BN>, PANEL_A = BK * LDA, STAGE = PANEL_A + BK * LDB;
    static constexpr int SHARE = BK / lanes::GROUPS;   /* q of a slice that a group takes */
    /* A q's reads of fragments stand behind its FMAs, not before them, and nothing is moved across one place in a slice. `ffma` on an H200,
       multiples of cuBLAS without and with it: operands copied 4 bytes at a time 0.99 and 1.03 (NT), 1.08 and 1.11 (NN), 1.16 and 1.19 (TN)
       at 3135; 16 bytes at a time 1.06 and 1.02 (NT at 4096). `ffma_paired` 1.00 and 1.07 (NN at 1022), 1.02 and 1.08 (TN at 1024); the other
       kernels of 8 x 8 results do without, unmeasured. */
    template <gpb_way WAY_A, gpb_way WAY_B> static constexpr bool LATE
        = (lanes::TN == 16 || lanes::GROUPS == 2) && WAY_A != GPB_WIDE && WAY_B != GPB_WIDE;
    /* Copies are started every so many q. All at once would hold up the reads of fragments (4 to 7 TFLOP/s), but the compiler puts three
       empty slots before each burst: measured, one at a time is 2 % better for 8 x 16 results a thread, two for 8 x 8. */
    static constexpr int BURST = lanes::TN == 16 ? 1 : 2;
    static constexpr int RING = STAGES * STAGE, ROOM = lanes::GROUPS / 2 * BM * BN, FLOATS = RING > ROOM ? RING : ROOM;
    static_assert(lanes::MEMBERS / 32 * gpb_round_floats<lanes> <= FLOATS, "gpb_store_tile's room");
    static_assert(SHARE % 2 == 0 && SHARE * lanes::GROUPS == BK && STAGES >= 2, "two sets of fragments; a buffer to read, one to fill");
};

/* acc = the tile's product. CHAIN > 0: sums of so many slices each are added up, instead of one chain of additions for all of k. */
template <gpb_way WAY_A, gpb_way WAY_B, int CHAIN, int BM, int BN, int BK, int STAGES, int THREADS, int TM, int TN>
static __device__ __forceinline__ void gpb_ffma_loop(float (&acc)[TN][TM], float *ring, const gpb_side &side_a, const gpb_side &side_b,
                                                     unsigned slices, unsigned first)
{
    using shape = gpb_ffma_shape<BM, BN, BK, STAGES, THREADS>;
    using lanes = typename shape::lanes;
    constexpr int LDA = shape::LDA, LDB = shape::LDB, SHARE = shape::SHARE, STAGE = shape::STAGE, BURST = shape::BURST;
    constexpr bool LATE = shape::template LATE<WAY_A, WAY_B>;
    gpb_panel<WAY_A, BM, BK, THREADS> in_a(side_a);
    gpb_panel<WAY_B, BN, BK, THREADS> in_b(side_b);
    const unsigned at = gpb_shared_address(ring);
    in_a.first(ring, first);
    in_b.first(ring + shape::PANEL_A, first);
    gpb_cp_async_commit();
#pragma unroll 1
    for (int s = 1; s < STAGES - 1; s++) {
        if (s < slices) {
            in_a.template part<1>(at + s * STAGE * 4, 0);
            in_b.template part<1>(at + (s * STAGE + shape::PANEL_A) * 4, 0);
        }
        gpb_cp_async_commit();
    }
    int now = 0;
    unsigned later = at + (STAGES - 1) * STAGE * 4;
    auto next_slice = [&]() __attribute__((always_inline)) {
        gpb_cp_async_commit();
        gpb_cp_async_wait<STAGES - 2>();
        __syncthreads();                   /* the next slice is whole, and nobody reads this one any more */
        later = at + now * 4;
        now = now == (STAGES - 1) * STAGE ? 0 : now + STAGE;
    };
    gpb_cp_async_wait<STAGES - 2>();
    __syncthreads();
    float a[2][TM], b[2][TN], total[CHAIN ? TN : 1][CHAIN ? TM : 1] = {};
    const float *as = ring + lanes::group() * SHARE * LDA + lanes::i();
    const float *bs = ring + shape::PANEL_A + lanes::group() * SHARE * LDB + lanes::j();
    gpb_read4<TM / 4, lanes::STEP_M>(a[0], as);
    gpb_read4<TN / 4, lanes::STEP_N>(b[0], bs);
#pragma unroll 1
    for (unsigned left = slices; left; left--) {
        if (left < STAGES)                 /* the slice STAGES - 1 further on does not exist */
            in_a.within = in_b.within = 0;
#pragma unroll
        for (int q = 0; q < SHARE; q++) {
            const int next = (q + 1) % SHARE;
            if (q % BURST == 0) {
                in_a.template part<SHARE / BURST>(later, q / BURST);
                in_b.template part<SHARE / BURST>(later + shape::PANEL_A * 4, q / BURST);
            }
            if (next == 0)
                next_slice();
            if constexpr (LATE) {
                gpb_outer_snake(acc, a[q % 2], b[q % 2]);
                if (q == 3)
                    gpb_fence_here(first);
            }
            gpb_read4<TM / 4, lanes::STEP_M>(a[next % 2], as + now + next * LDA);
            gpb_read4<TN / 4, lanes::STEP_N>(b[next % 2], bs + now + next * LDB);
            if constexpr (!LATE)
                gpb_outer_snake(acc, a[q % 2], b[q % 2]);
        }
        if constexpr (CHAIN > 0)
            if (left == 1 || (slices - left) % CHAIN == CHAIN - 1)
                gpb_move_sum(total, acc);
    }
    if constexpr (LATE) {                  /* never used: so that the last round has its last reads, too, and is like any other */
        gpb_pin(a[0]);
        gpb_pin(b[0]);
    }
    if constexpr (CHAIN > 0)
        gpb_move_sum(acc, total);
}

/* A tile, or a part of its k. CHAIN: see gpb_ffma_loop. */
template <int CHAIN, int BM, int BN, int BK, int STAGES, int THREADS>
static __device__ __forceinline__ void gpb_ffma_tile(const gpb_tile<float> &t, const gpb_piece &piece)
{
    using shape = gpb_ffma_shape<BM, BN, BK, STAGES, THREADS>;
    using lanes = typename shape::lanes;
    __shared__ __align__(16) float ring[shape::FLOATS];
    const unsigned slices = gpb_slices<BK>(t), first = (unsigned)(t.k - (int64_t)(slices - 1) * BK);
    const gpb_side side_a = { t.a + t.i0 * t.g.rsa, t.g.rsa, t.g.csa, t.g.m - t.i0 };
    const gpb_side side_b = { t.b + t.j0 * t.g.csb, t.g.csb, t.g.rsb, t.g.n - t.j0 };
    gpb_way way_a = gpb_way_of<BM>(side_a, first), way_b = gpb_way_of<BN>(side_b, first);
    if (way_a + way_b == GPB_WIDE + GPB_ALONG)
        way_a = way_b = GPB_ALONG;         /* not worth a loop of its own */
    float acc[lanes::TN][lanes::TM] = {};
    switch (way_a * 3 + way_b) {
#define GPB_WAYS(a, b) \
    case a * 3 + b: gpb_ffma_loop<a, b, CHAIN, BM, BN, BK, STAGES, THREADS>(acc, ring, side_a, side_b, slices, first); break;
        GPB_WAYS(GPB_WIDE, GPB_WIDE) GPB_WAYS(GPB_WIDE, GPB_DEEP) GPB_WAYS(GPB_DEEP, GPB_WIDE) GPB_WAYS(GPB_DEEP, GPB_DEEP)
        GPB_WAYS(GPB_ALONG, GPB_ALONG) GPB_WAYS(GPB_ALONG, GPB_DEEP) GPB_WAYS(GPB_DEEP, GPB_ALONG)
#undef GPB_WAYS
    }
    if (lanes::GROUPS > 1)
        gpb_gather_groups<lanes::GROUPS, lanes::MEMBERS>(acc, ring);
    __syncthreads();                       /* nobody reads the ring any more */
    if (piece.parts > 1 && !gpb_join_parts<BM, BN, lanes>(t.g, piece, acc)) return;
    if (lanes::group() == 0)
        gpb_store_tile<BM, BN, lanes>(t.g, piece, ring, acc);
}

/* One chain of FMAs a result. */
template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_ffma(const gpb_tile<float> &t, const gpb_piece &piece)
{
    gpb_ffma_tile<0, BM, BN, BK, STAGES, THREADS>(t, piece);
}

/* The same: rows of gemm.def with other tiles. */
#define GPB_FFMA_ALSO(name)                                                    \
    template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>      \
    static __device__ __forceinline__ void name(const gpb_tile<float> &t, const gpb_piece &piece)                       \
    {                                                                          \
        gpb_ffma_tile<0, BM, BN, BK, STAGES, THREADS>(t, piece);               \
    }
GPB_FFMA_ALSO(gpb_ffma_small)
GPB_FFMA_ALSO(gpb_ffma_paired)
GPB_FFMA_ALSO(gpb_ffma_grouped)
GPB_FFMA_ALSO(gpb_ffma_tall)
#undef GPB_FFMA_ALSO

/* Sums of 64 k each, added up: the stand-in for tensor-core kernels that do the same, where k is large. */
template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_ffma_blocked(const gpb_tile<float> &t, const gpb_piece &piece)
{
    gpb_ffma_tile<64 / BK, BM, BN, BK, STAGES, THREADS>(t, piece);
}

#endif
