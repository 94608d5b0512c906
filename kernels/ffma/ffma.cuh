/* SPDX-License-Identifier: MIT */
/* The FP32 kernels of every day: no packing, any strides; cp.async through a ring of STAGES slices, one barrier a slice, fragments double
   buffered across it. */
#ifndef GPB_FFMA_FFMA_CUH
#define GPB_FFMA_FFMA_CUH

#include "kernels/epilogue.cuh"
#include "kernels/ffma/lanes.cuh"
#include "kernels/ffma/panel.cuh"

template <int BM, int BN, int BK, int STAGES, int THREADS> struct gpb_ffma_shape {
    using lanes = gpb_lanes<BM, BN, THREADS>;
    static constexpr int LDA = gpb_panel_ld<BM>, LDB = gpb_panel_ld<BN>, PANEL_A = BK * LDA, STAGE = PANEL_A + BK * LDB;
    static constexpr int SHARE = BK / lanes::GROUPS;   /* q of a slice that a group takes */
    static constexpr int RING = STAGES * STAGE, ROOM = lanes::GROUPS / 2 * BM * BN, FLOATS = RING > ROOM ? RING : ROOM;
    static_assert(SHARE % 2 == 0 && SHARE * lanes::GROUPS == BK && STAGES >= 2, "two sets of fragments; a buffer to read, one to fill");
};

template <gpb_way WAY_A, gpb_way WAY_B, int BM, int BN, int BK, int STAGES, int THREADS, int TM, int TN>
static __device__ __forceinline__ void gpb_ffma_loop(float (&acc)[TN][TM], float *ring, const gpb_side &side_a, const gpb_side &side_b,
                                                     unsigned slices, unsigned first)
{
    using shape = gpb_ffma_shape<BM, BN, BK, STAGES, THREADS>;
    using lanes = typename shape::lanes;
    constexpr int LDA = shape::LDA, LDB = shape::LDB, SHARE = shape::SHARE, STAGE = shape::STAGE;
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
    float a[2][TM], b[2][TN];
    const float *as = ring + lanes::group() * SHARE * LDA + lanes::i(), *bs = ring + shape::PANEL_A + lanes::group() * SHARE * LDB + lanes::j();
    int now = 0;
    unsigned later = at + (STAGES - 1) * STAGE * 4;
    gpb_cp_async_wait<STAGES - 2>();
    __syncthreads();
    gpb_read4<TM / 4, lanes::STEP_M>(a[0], as);
    gpb_read4<TN / 4, lanes::STEP_N>(b[0], bs);
#pragma unroll 1
    for (unsigned left = slices; left; left--) {
        if (left < STAGES)                 /* the slice STAGES - 1 further on does not exist */
            in_a.within = in_b.within = 0;
#pragma unroll
        for (int q = 0; q < SHARE; q++) {
            const int next = (q + 1) % SHARE;
            in_a.template part<SHARE>(later, q);
            in_b.template part<SHARE>(later + shape::PANEL_A * 4, q);
            if (next == 0) {
                gpb_cp_async_commit();
                gpb_cp_async_wait<STAGES - 2>();
                __syncthreads();           /* the next slice is whole, and nobody reads this one any more */
                later = at + now * 4;
                now = now == (STAGES - 1) * STAGE ? 0 : now + STAGE;
            }
            gpb_read4<TM / 4, lanes::STEP_M>(a[next % 2], as + now + next * LDA);
            gpb_read4<TN / 4, lanes::STEP_N>(b[next % 2], bs + now + next * LDB);
            gpb_outer_snake(acc, a[q % 2], b[q % 2]);
        }
    }
}

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_ffma(const gpb_tile &t)
{
    using shape = gpb_ffma_shape<BM, BN, BK, STAGES, THREADS>;
    using lanes = typename shape::lanes;
    __shared__ __align__(16) float ring[shape::FLOATS];
    const unsigned slices = gpb_slices<BK>(t), first = (unsigned)(t.k - (int64_t)(slices - 1) * BK);
    const gpb_side side_a = { t.a + t.i0 * t.g.rsa, t.g.rsa, t.g.csa, t.g.m - t.i0 }, side_b = { t.b + t.j0 * t.g.csb, t.g.csb, t.g.rsb, t.g.n - t.j0 };
    const int ways = gpb_way_of<BM>(side_a, first) * 3 + gpb_way_of<BN>(side_b, first);
    float acc[lanes::TN][lanes::TM] = {};
    switch (ways) {
#define GPB_WAYS(a, b) case a * 3 + b: gpb_ffma_loop<a, b, BM, BN, BK, STAGES, THREADS>(acc, ring, side_a, side_b, slices, first); break;
        GPB_WAYS(GPB_WIDE, GPB_WIDE) GPB_WAYS(GPB_WIDE, GPB_ALONG) GPB_WAYS(GPB_WIDE, GPB_DEEP)
        GPB_WAYS(GPB_ALONG, GPB_WIDE) GPB_WAYS(GPB_ALONG, GPB_ALONG) GPB_WAYS(GPB_ALONG, GPB_DEEP)
        GPB_WAYS(GPB_DEEP, GPB_WIDE) GPB_WAYS(GPB_DEEP, GPB_ALONG) GPB_WAYS(GPB_DEEP, GPB_DEEP)
#undef GPB_WAYS
    }
    if (lanes::GROUPS > 1) {
        gpb_gather_groups<lanes::GROUPS, lanes::MEMBERS>(acc, ring);
        if (lanes::group())
            return;
    }
    gpb_store_fragments<BM, BN, lanes::STEP_M, lanes::STEP_N, 4>(t, lanes::i(), lanes::j(), acc);
}

#endif
