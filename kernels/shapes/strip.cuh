/* SPDX-License-Identifier: MIT */
/* Short k, where writing C is nearly all of the traffic. A block walks down a tall tile, ROWS rows at a time,
   and starts to copy the operands of the next rows before it multiplies and writes these. A block with only
   one tile would first wait for its operands and at last for its stores: of the 118 us of 8192 x 8192 x 16 on
   an H200, only 66 are C's way to memory and 45 the products'. */
#ifndef GPB_SHAPES_STRIP_CUH
#define GPB_SHAPES_STRIP_CUH

#include "kernels/shapes/slab.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS, int ROWS, int TM, int TN, bool K_MAJOR_A,
          bool K_MAJOR_B>
static __device__ __forceinline__ void gpb_strip_walk(const gpb_tile<float> &t)
{
    using shape = gpb_slab_shape<ROWS, BN, THREADS, TM, TN>;
    constexpr int K_TILE = (ROWS + BN) * BK;
    const gpb_gemm_args &g = t.g;
    const int height = (int)min(g.m - t.i0, (int64_t)BM);
    auto feed_a = [&](int row) { return gpb_feed<ROWS, BK, THREADS>(t.a, g.rsa, g.csa, t.i0 + row, g.m); };
    auto feed_b = [&] { return gpb_feed<BN, BK, THREADS>(t.b, g.csb, g.rsb, t.j0, g.n); };
    auto fa = feed_a(0);
    auto fb = feed_b();
    float acc[TN][TM] = {};
    /* k not yet copied, of the rows from row_ahead on; and not yet multiplied, of those from `row` on. */
    int64_t ahead = t.k, left = t.k;
    int row_ahead = 0, row = 0;
    float *in = gpb_slab_memory;
    const float *out = gpb_slab_memory;
#pragma unroll 1
    for (int lead = 1; row < height; lead++) {
        const bool filled = lead >= STAGES;
        if (filled) {
            gpb_cp_async_wait<STAGES - 2>();
            __syncthreads();               /* this k tile is complete, and no thread reads the one before */
        }
        if (row_ahead < height) {
            fa.template next<K_MAJOR_A>(in, ahead);
            fb.template next<K_MAJOR_B>(in + ROWS * BK, ahead);
            ahead -= BK;
            if (ahead <= 0) {
                row_ahead += ROWS;
                ahead = t.k;
                fa = feed_a(row_ahead);
                fb = feed_b();
            }
        }
        gpb_cp_async_commit();
        in = in == gpb_slab_memory + (STAGES - 1) * K_TILE ? gpb_slab_memory : in + K_TILE;
        if (!filled) continue;
        const int pieces = (int)(min(left, (int64_t)BK) + 3) / 4;
#pragma unroll 1
        for (int piece = 0; piece < pieces; piece++) {
            float a[TM][4], b[TN][4];
            gpb_slab_fragment<K_MAJOR_A, typename shape::edge_m, ROWS, BK>(a, out, shape::row(), piece);
            gpb_slab_fragment<K_MAJOR_B, typename shape::edge_n, BN, BK>(b, out + ROWS * BK, shape::col(),
                                                                         piece);
            gpb_slab_outer<K_MAJOR_A && !K_MAJOR_B, TM, TN>(acc, a, b);
        }
        out = out == gpb_slab_memory + (STAGES - 1) * K_TILE ? gpb_slab_memory : out + K_TILE;
        left -= BK;
        if (left > 0) continue;
        gpb_slab_store_own<ROWS, BN, shape, 16>({ g, t.z, t.i0 + row, t.j0, t.k, t.a, t.b }, acc);
#pragma unroll
        for (int s = 0; s < TN; s++)
#pragma unroll
            for (int r = 0; r < TM; r++) acc[s][r] = 0;
        row += ROWS;
        left = t.k;
    }
    gpb_cp_async_wait<0>();
}

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM, int ROWS, int TM, int TN>
static __device__ __forceinline__ void gpb_strip(const gpb_tile<float> &t)
{
    static_assert(SMEM >= STAGES * (ROWS + BN) * BK * 4 && BM % ROWS == 0
                      && gpb_slab_shape<ROWS, BN, THREADS, TM, TN>::KS == 1,
                  "see gemm.def");
    const bool k_major_a = t.g.rsa != 1, k_major_b = t.g.csb != 1;
    if (k_major_a)
        if (k_major_b) gpb_strip_walk<BM, BN, BK, STAGES, THREADS, ROWS, TM, TN, true, true>(t);
        else gpb_strip_walk<BM, BN, BK, STAGES, THREADS, ROWS, TM, TN, true, false>(t);
    else if (k_major_b) gpb_strip_walk<BM, BN, BK, STAGES, THREADS, ROWS, TM, TN, false, true>(t);
    else gpb_strip_walk<BM, BN, BK, STAGES, THREADS, ROWS, TM, TN, false, false>(t);
}

#endif
