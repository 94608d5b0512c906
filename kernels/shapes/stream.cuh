/* SPDX-License-Identifier: MIT */
/* A matrix times a few vectors. Every element of the large operand X is used about once, so it goes straight
   from memory to registers. X is rows x k, Y is k x W with W <= 4, and R(i,w) are the results. */
#ifndef GPB_SHAPES_STREAM_CUH
#define GPB_SHAPES_STREAM_CUH

#include "kernels/epilogue.cuh"

struct gpb_stream_side {
    const float *x;                        /* X(first row of the tile, first k) */
    int64_t rs, cs;
    int rows;                              /* of X in the tile */
};

/* Y(p,w). Columns outside Y repeat the last one, and their results are not stored. */
template <int W>
static __device__ __forceinline__ void gpb_stream_few(float (&y)[W], const float *const (&from)[W],
                                                      int64_t offset)
{
#pragma unroll
    for (int w = 0; w < W; w++) y[w] = __ldg(from[w] + offset);
}

/* FMAs in one chain before the sum is added to a total, because a thread may add up thousands. */
constexpr int GPB_STREAM_CHAIN = 64;
template <int N, int M>
static __device__ __forceinline__ void gpb_stream_bank(float (&total)[N][M], float (&acc)[N][M])
{
#pragma unroll
    for (int x = 0; x < N; x++)
#pragma unroll
        for (int y = 0; y < M; y++) {
            total[x][y] += acc[x][y];
            acc[x][y] = 0;
        }
}

/* X contiguous along its rows. A thread has four of ROWS rows (neighbours if VEC4) and every GROUPS-th k,
   with U of them in flight. */
template <int ROWS, int W, int THREADS, int U, bool VEC4>
static __device__ __forceinline__ void gpb_stream_mn_major(const gpb_stream_side &s,
                                                           const float *const (&from)[W], int64_t ys,
                                                           int64_t k, float *sums)
{
    constexpr int LANES = ROWS / 4, GROUPS = THREADS / LANES;
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    const float *x = s.x + (VEC4 ? 4 * lane : lane) + group * s.cs;
    int row[4];
#pragma unroll
    for (int r = 0; r < 4; r++) row[r] = VEC4 ? r : min(lane + r * LANES, s.rows - 1) - lane;
    float acc[W][4] = {}, total[W][4] = {};
    int64_t p = group;
    int rounds = 0;
    auto load = [&](float (&to)[4]) {
        if (VEC4) {
            const float4 v = __ldcs((const float4 *)x);
            to[0] = v.x;
            to[1] = v.y;
            to[2] = v.z;
            to[3] = v.w;
        } else {
#pragma unroll
            for (int r = 0; r < 4; r++) to[r] = __ldcs(x + row[r]);
        }
        x += GROUPS * s.cs;
    };
    auto add = [&](const float (&v)[4], const float (&y)[W]) {
#pragma unroll
        for (int w = 0; w < W; w++)
#pragma unroll
            for (int r = 0; r < 4; r++) acc[w][r] = fmaf(v[r], y[w], acc[w][r]);
    };
#pragma unroll 1
    for (; p + (U - 1) * GROUPS < k; p += U * GROUPS) {
        float v[U][4], y[U][W];
#pragma unroll
        for (int u = 0; u < U; u++) load(v[u]);
#pragma unroll
        for (int u = 0; u < U; u++) gpb_stream_few<W>(y[u], from, (p + u * GROUPS) * ys);
#pragma unroll
        for (int u = 0; u < U; u++) add(v[u], y[u]);
        if (++rounds % (GPB_STREAM_CHAIN / U) == 0) gpb_stream_bank(total, acc);
    }
#pragma unroll 1
    for (; p < k; p += GROUPS) {
        float v[4], y[W];
        load(v);
        gpb_stream_few<W>(y, from, p * ys);
        add(v, y);
    }
    gpb_stream_bank(total, acc);
#pragma unroll
    for (int w = 0; w < W; w++)
#pragma unroll
        for (int r = 0; r < 4; r++)
            sums[(group * W + w) * ROWS + (VEC4 ? 4 * lane + r : lane + r * LANES)] = total[w][r];
    __syncthreads();
    for (int e = threadIdx.x; e < ROWS * W; e += THREADS) {
        float sum = sums[e];
        for (int g = 1; g < GROUPS; g++) sum += sums[g * W * ROWS + e];
        sums[e] = sum;                     /* only this thread has read it */
    }
    __syncthreads();
}

/* X contiguous along k. A warp has ROWS / warps rows, and its lanes lie along k with four elements each.
   y_vec4: Y can be read 16 bytes at a time, too. */
template <int ROWS, int W, int THREADS, bool VEC4>
static __device__ __forceinline__ void gpb_stream_k_major(const gpb_stream_side &s,
                                                          const float *const (&from)[W], int64_t ys,
                                                          bool y_vec4, int64_t k, float *sums)
{
    constexpr int WARPS = THREADS / 32, R = ROWS / WARPS;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float *x[R];
#pragma unroll
    for (int r = 0; r < R; r++) x[r] = s.x + min(warp * R + r, s.rows - 1) * s.rs;
    /* For more than one column there are no registers. Their chains are shorter than cuBLAS's anyway. */
    constexpr bool BANKS = W == 1;
    float acc[R][W] = {}, total[BANKS ? R : 1][W] = {};
    int64_t p = 0;
    auto load_x = [&](float (&v)[4], const float *x) {
        if (VEC4) {
            const float4 f = __ldcs((const float4 *)(x + p) + lane);
            v[0] = f.x;
            v[1] = f.y;
            v[2] = f.z;
            v[3] = f.w;
        } else {
#pragma unroll
            for (int q = 0; q < 4; q++) v[q] = __ldcs(x + (p + lane + 32 * q) * s.cs);
        }
    };
    auto load_y = [&](float (&y)[4][W]) {
        if (VEC4 && y_vec4) {
#pragma unroll
            for (int w = 0; w < W; w++) {
                const float4 f = __ldg((const float4 *)(from[w] + p) + lane);
                y[0][w] = f.x;
                y[1][w] = f.y;
                y[2][w] = f.z;
                y[3][w] = f.w;
            }
        } else {
#pragma unroll
            for (int q = 0; q < 4; q++)
                gpb_stream_few<W>(y[q], from, (p + (VEC4 ? 4 * lane + q : lane + 32 * q)) * ys);
        }
    };
#pragma unroll 1
    for (; p + 128 <= k; p += 128) {
        if constexpr (BANKS)
            if (p % (GPB_STREAM_CHAIN * 32) == 0) gpb_stream_bank(total, acc);
        float v[R][4], y[4][W];
#pragma unroll
        for (int r = 0; r < R; r++) load_x(v[r], x[r]);
        load_y(y);
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int q = 0; q < 4; q++)
#pragma unroll
                for (int w = 0; w < W; w++) acc[r][w] = fmaf(v[r][q], y[q][w], acc[r][w]);
    }
#pragma unroll 1
    for (p += lane; p < k; p += 32) {
        float y[W];
        gpb_stream_few<W>(y, from, p * ys);
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int w = 0; w < W; w++) acc[r][w] = fmaf(x[r][p * s.cs], y[w], acc[r][w]);
    }
    if constexpr (BANKS) gpb_stream_bank(acc, total);
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int w = 0; w < W; w++) {
            for (int o = 16; o; o /= 2) acc[r][w] += __shfl_xor_sync(~0u, acc[r][w], o);
            if (lane == 0) sums[w * ROWS + warp * R + r] = acc[r][w];
        }
    __syncthreads();
}

template <int ROWS, int W, int THREADS, int U>
static __device__ __forceinline__ void gpb_stream(const gpb_stream_side &s, const float *y, int64_t ys,
                                                  int64_t ws, int width, int64_t k, float *sums)
{
    const float *from[W];
#pragma unroll
    for (int w = 0; w < W; w++) from[w] = y + min(w, width - 1) * ws;
    const bool base = ((uintptr_t)s.x & 15) == 0,
               y_vec4 = ys == 1 && ((uintptr_t)y & 15) == 0 && (W == 1 || (ws & 3) == 0);
    if (s.rs == 1)
        base && (s.cs & 3) == 0 && s.rows == ROWS
            ? gpb_stream_mn_major<ROWS, W, THREADS, U, true>(s, from, ys, k, sums)
            : gpb_stream_mn_major<ROWS, W, THREADS, U, false>(s, from, ys, k, sums);
    else
        base && (s.rs & 3) == 0 && s.cs == 1
            ? gpb_stream_k_major<ROWS, W, THREADS, true>(s, from, ys, y_vec4, k, sums)
            : gpb_stream_k_major<ROWS, W, THREADS, false>(s, from, ys, false, k, sums);
}

/* op(A) is large and op(B) has at most BN columns, or the other way round. */
template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_stream_tile(const gpb_tile<float> &t)
{
    constexpr bool TALL = BM > BN;
    constexpr int ROWS = TALL ? BM : BN, W = TALL ? BN : BM;
    __shared__ float sums[THREADS * 4 * W];
    const gpb_gemm_args &g = t.g;
    if (TALL)
        gpb_stream<ROWS, W, THREADS, STAGES>(
            { gpb_global(t.a + t.i0 * g.rsa), g.rsa, g.csa, (int)min(g.m - t.i0, (int64_t)BM) },
            gpb_global(t.b + t.j0 * g.csb), g.rsb, g.csb, (int)min(g.n - t.j0, (int64_t)BN), t.k, sums);
    else
        gpb_stream<ROWS, W, THREADS, STAGES>(
            { gpb_global(t.b + t.j0 * g.csb), g.csb, g.rsb, (int)min(g.n - t.j0, (int64_t)BN) },
            gpb_global(t.a + t.i0 * g.rsa), g.csa, g.rsa, (int)min(g.m - t.i0, (int64_t)BM), t.k, sums);
    const gpb_target<float> to = gpb_target_of(t);
    for (int e = threadIdx.x; e < BM * BN; e += THREADS)
        gpb_store(to, t.i0 + e % BM, t.j0 + e / BM, sums[TALL ? e : e % BM * ROWS + e / BM]);
}

#endif
