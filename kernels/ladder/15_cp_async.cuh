/* SPDX-License-Identifier: MIT */
/* Step 15. Step 14 with cp.async. Hardware copies from global to shared memory, without registers and without
   making a thread wait. op(A)'s tile comes 16 bytes at a time. op(B)'s, which is transposed on the way, comes
   4 bytes at a time, because only whole words can be moved. */
#ifndef GPB_LADDER_15_CP_ASYNC_CUH
#define GPB_LADDER_15_CP_ASYNC_CUH

#include "kernels/ladder/12_conflict_free.cuh"
#include "kernels/ptx.cuh"

/* Starts to copy a padded tile, ROWS (contiguous) x COLS, to to[row + col*LD]. */
template <int ROWS, int COLS, int LD, int THREADS>
static __device__ __forceinline__ void gpb_copy_async(float *to, const float *from, int64_t ld)
{
    using map = gpb_load_map<ROWS, COLS, THREADS>;
    to += map::row() + map::col() * LD;
    from += map::row() + map::col() * ld;
#pragma unroll
    for (int y = 0; y < map::ACROSS; y++)
#pragma unroll
        for (int x = 0; x < map::DOWN; x++)
            gpb_cp_async16(to + x * map::ROW_STEP + y * map::COL_STEP * LD,
                           from + x * map::ROW_STEP + y * map::COL_STEP * ld);
}

/* The same transposed, to to[OFFSET(row) + col]. */
template <int ROWS, int COLS, int (*OFFSET)(int), int THREADS>
static __device__ __forceinline__ void gpb_copy_transposed_async(float *to, const float *from, int64_t ld)
{
    using map = gpb_load_map<ROWS, COLS, THREADS>;
    to += OFFSET(map::row()) + map::col();
    from += map::row() + map::col() * ld;
#pragma unroll
    for (int y = 0; y < map::ACROSS; y++)
#pragma unroll
        for (int x = 0; x < map::DOWN; x++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                gpb_cp_async4(to + OFFSET(x * map::ROW_STEP + r) + y * map::COL_STEP,
                              from + x * map::ROW_STEP + r + y * map::COL_STEP * ld);
}

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_cp_async(const gpb_tile<float> &t)
{
    constexpr int X = 16, Y = THREADS / X, TM = BM / X, TN = BN / Y;
    static_assert(X * Y == THREADS && TM * X == BM && TN * Y == BN && TM % 4 == 0 && TN % 4 == 0,
                  "threads must share the tile evenly");
    static_assert(STAGES == 2, "one buffer to read, one to write");
    __shared__ __align__(16) float as[2][BK * BM], bs[2][gpb_skewed<BN>(BK)];
    const int i = threadIdx.x % X * 4, j = threadIdx.x / X * 4;
    const float *pa = t.a + t.i0, *pb = t.b + t.j0 * t.g.csb;
    float acc[TN][TM] = {};
    int now = 0;
    gpb_copy_async<BM, BK, BM, THREADS>(as[0], pa, t.g.csa);
    gpb_copy_transposed_async<BK, BN, gpb_skewed<BN>, THREADS>(bs[0], pb, t.g.csb);
    for (unsigned left = gpb_k_tiles<BK>(t) - 1;; left--, now ^= 1) {
        gpb_cp_async_commit();
        gpb_cp_async_wait<0>();
        __syncthreads();                   /* this tile is complete, and no thread reads the other buffer */
        if (left) {
            gpb_copy_async<BM, BK, BM, THREADS>(as[now ^ 1], pa += BK * t.g.csa, t.g.csa);
            gpb_copy_transposed_async<BK, BN, gpb_skewed<BN>, THREADS>(bs[now ^ 1], pb += BK, t.g.csb);
        }
        gpb_multiply_fragments<BM, BN, BK>(acc, as[now], bs[now], i, j);
        if (!left)
            break;
    }
    gpb_store_fragments<BM, BN, BM * 4 / TM, BN * 4 / TN, 4>(t, i, j, acc);
}

#endif
