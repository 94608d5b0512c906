/* SPDX-License-Identifier: MIT */
/* A tile's results to C: four rows at a time where C allows it, else by way of shared memory, so that a warp always writes whole lines. Of
   the old C four columns are loaded before they are stored: the compiler, which cannot know that stores go elsewhere, would wait for each
   load by itself. */
#ifndef GPB_FFMA_STORE_CUH
#define GPB_FFMA_STORE_CUH

#include "kernels/epilogue.cuh"
#include "kernels/ffma/streamk.cuh"

/* One round of a warp: WM rows, STEP_N columns. */
template <class lanes> constexpr int gpb_round_ld = lanes::WM + 4;
template <class lanes> constexpr int gpb_round_floats = gpb_round_ld<lanes> * lanes::STEP_N;

/* Columns g*STEP_N .. of the warp's part, through `room` (gpb_round_floats, the warp's own). c: C of the warp's corner; rows, cols: what
   of it is within C. Neighbours in a warp write neighbouring rows; straight from the registers they would write 4 bytes of each 16. */
template <class lanes>
static __device__ __forceinline__ void gpb_store_round(const gpb_target<float> &to, float *room, const float (&acc)[lanes::TN][lanes::TM], int g,
                                                       float *c, int rows, int cols)
{
    constexpr int LD = gpb_round_ld<lanes>;
    const int lane = gpb_thread() % 32;
    float *mine = room + lanes::lane_i() + lanes::lane_j() * LD;
    __syncwarp();
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
        for (int x = 0; x < lanes::TM / 4; x++) {
            const float *four = &acc[4 * g + s][4 * x];
            *(float4 *)(mine + s * LD + x * lanes::STEP_M) = make_float4(four[0], four[1], four[2], four[3]);
        }
    __syncwarp();
    c += g * lanes::STEP_N * to.ldc + lane;
#pragma unroll 1
    for (int s = 0; s < lanes::STEP_N; s += 4, c += 4 * to.ldc) {
        float old[4][lanes::WM / 32] = {};
        auto inside = [&](int y, int x) { return lane + 32 * x < rows && g * lanes::STEP_N + s + y < cols; };
#pragma unroll
        for (int y = 0; to.beta != 0 && y < 4; y++)
#pragma unroll
            for (int x = 0; x < lanes::WM / 32; x++)
                if (inside(y, x)) old[y][x] = c[y * to.ldc + 32 * x];
#pragma unroll
        for (int y = 0; y < 4; y++)
#pragma unroll
            for (int x = 0; x < lanes::WM / 32; x++)
                if (inside(y, x)) c[y * to.ldc + 32 * x] = gpb_blend(to, room[(s + y) * LD + lane + 32 * x], old[y][x]);
    }
}

/* `ring` has a round's floats for each warp, and nobody else uses it any more. */
template <int BM, int BN, class lanes>
static __device__ __forceinline__ void gpb_store_tile(const gpb_gemm_args &g, const gpb_piece &piece, float *ring,
                                                      const float (&acc)[lanes::TN][lanes::TM])
{
    const gpb_tile<float> t = { g, piece.z, 0, 0, 0, NULL, NULL };
    const gpb_target<float> to = gpb_target_of(t);
    const gpb_corner at = gpb_corner_of<BM, BN>(g, piece);
    const int rows = (int)min(to.m - at.i0, (int64_t)BM) - lanes::warp_i(), cols = (int)min(to.n - at.j0, (int64_t)BN) - lanes::warp_j();
    float *c = gpb_global(to.c + at.i0 + lanes::warp_i() + (at.j0 + lanes::warp_j()) * to.ldc);
    if (!to.aligned || to.m % 4) {
        float *room = ring + gpb_thread() / 32 * gpb_round_floats<lanes>;
#pragma unroll
        for (int g = 0; g < lanes::TN / 4; g++)
            gpb_store_round<lanes>(to, room, acc, g, c, rows, cols);
        return;
    }
    const int i = lanes::lane_i(), j = lanes::lane_j();
    c += i + j * to.ldc;
#pragma unroll
    for (int g = 0; g < lanes::TN / 4; g++, c += lanes::STEP_N * to.ldc) {
        float4 old[4][lanes::TM / 4] = {};
        auto inside = [&](int s, int x) { return j + g * lanes::STEP_N + s < cols && i + x * lanes::STEP_M < rows; };
        auto at = [&](int s, int x) { return (float4 *)(c + s * to.ldc + x * lanes::STEP_M); };
#pragma unroll
        for (int s = 0; to.beta != 0 && s < 4; s++)
#pragma unroll
            for (int x = 0; x < lanes::TM / 4; x++)
                if (inside(s, x)) old[s][x] = *at(s, x);
#pragma unroll
        for (int s = 0; s < 4; s++)
#pragma unroll
            for (int x = 0; x < lanes::TM / 4; x++)
                if (inside(s, x)) __stwb(at(s, x), gpb_blend_vector(to, *(const float4 *)&acc[4 * g + s][4 * x], old[s][x]));
    }
}

#endif
