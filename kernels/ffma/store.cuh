/* SPDX-License-Identifier: MIT */
/* Stores a tile's results to C: four rows at a time if C's alignment allows it, else through shared memory,
   so that a warp always writes whole lines. Four columns of the old C are loaded before any is stored,
   because the compiler cannot know that stores do not alias them and would wait for each load separately. */
#ifndef GPB_FFMA_STORE_CUH
#define GPB_FFMA_STORE_CUH

#include "kernels/epilogue.cuh"
#include "kernels/ffma/streamk.cuh"

/* One round of a warp: WM rows by STEP_N columns. */
template <class layout> constexpr int gpb_round_ld = layout::WM + 4;
template <class layout> constexpr int gpb_round_floats = gpb_round_ld<layout> * layout::STEP_N;

/* Stores columns g*STEP_N .. of the warp's part through `room`, which are gpb_round_floats of the warp's own.
   c is C at the warp's first row and column, which is `first`. rows, cols: how much of it is within C.
   Neighbours in a warp write neighbouring rows. Straight from the registers they would write 4 bytes of each
   16. */
template <class layout>
static __device__ __forceinline__ void gpb_store_round(const gpb_target<float> &to, float *room,
                                                       const float (&acc)[layout::TN][layout::TM], int g,
                                                       float *c, const gpb_origin &first, int rows,
                                                       int cols)
{
    constexpr int LD = gpb_round_ld<layout>;
    const int lane = gpb_thread() % 32;
    float *mine = room + layout::lane_i() + layout::lane_j() * LD;
    __syncwarp();
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
        for (int x = 0; x < layout::TM / 4; x++) {
            const float *four = &acc[4 * g + s][4 * x];
            *(float4 *)(mine + s * LD + x * layout::STEP_M) = make_float4(four[0], four[1], four[2], four[3]);
        }
    __syncwarp();
    c += g * layout::STEP_N * to.ldc + lane;
#pragma unroll 1
    for (int s = 0; s < layout::STEP_N; s += 4, c += 4 * to.ldc) {
        float old[4][layout::WM / 32] = {};
        auto inside = [&](int y, int x) {
            const int i = lane + 32 * x, j = g * layout::STEP_N + s + y;
            return i < rows && j < cols && to.has(first.i0 + i, first.j0 + j);
        };
#pragma unroll
        for (int y = 0; to.beta != 0 && y < 4; y++)
#pragma unroll
            for (int x = 0; x < layout::WM / 32; x++)
                if (inside(y, x)) old[y][x] = c[y * to.ldc + 32 * x];
#pragma unroll
        for (int y = 0; y < 4; y++)
#pragma unroll
            for (int x = 0; x < layout::WM / 32; x++)
                if (inside(y, x))
                    c[y * to.ldc + 32 * x] = gpb_blend(to, room[(s + y) * LD + lane + 32 * x], old[y][x]);
    }
}

/* `ring` has a round's floats for each warp, and no thread uses it any more. */
template <int BM, int BN, class layout>
static __device__ __forceinline__ void gpb_store_tile(const gpb_gemm_args &g, const gpb_piece &piece,
                                                      float *ring, const float (&acc)[layout::TN][layout::TM])
{
    const gpb_tile<float> t = { g, piece.z, 0, 0, 0, NULL, NULL };
    const gpb_target<float> to = gpb_target_of(t);
    const gpb_origin at = gpb_origin_of<BM, BN>(g, piece);
    const int rows = (int)min(to.m - at.i0, (int64_t)BM) - layout::warp_i(),
              cols = (int)min(to.n - at.j0, (int64_t)BN) - layout::warp_j();
    float *c = gpb_global(to.c + at.i0 + layout::warp_i() + (at.j0 + layout::warp_j()) * to.ldc);
    if (!to.aligned || to.m % 4 || to.is_crossed(at.i0, at.j0, BM, BN)) {
        const gpb_origin first = { at.i0 + layout::warp_i(), at.j0 + layout::warp_j() };
        float *room = ring + gpb_thread() / 32 * gpb_round_floats<layout>;
#pragma unroll
        for (int g = 0; g < layout::TN / 4; g++)
            gpb_store_round<layout>(to, room, acc, g, c, first, rows, cols);
        return;
    }
    const int i = layout::lane_i(), j = layout::lane_j();
    c += i + j * to.ldc;
#pragma unroll
    for (int g = 0; g < layout::TN / 4; g++, c += layout::STEP_N * to.ldc) {
        float4 old[4][layout::TM / 4] = {};
        auto inside = [&](int s, int x) {
            return j + g * layout::STEP_N + s < cols && i + x * layout::STEP_M < rows;
        };
        auto at = [&](int s, int x) { return (float4 *)(c + s * to.ldc + x * layout::STEP_M); };
#pragma unroll
        for (int s = 0; to.beta != 0 && s < 4; s++)
#pragma unroll
            for (int x = 0; x < layout::TM / 4; x++)
                if (inside(s, x)) old[s][x] = *at(s, x);
#pragma unroll
        for (int s = 0; s < 4; s++)
#pragma unroll
            for (int x = 0; x < layout::TM / 4; x++)
                if (inside(s, x))
                    __stwb(at(s, x),
                           gpb_blend_vector(to, *(const float4 *)&acc[4 * g + s][4 * x], old[s][x]));
    }
}

#endif
