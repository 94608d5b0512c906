/* SPDX-License-Identifier: MIT */
/* The SLICED kernel for tensor cores without wgmma: FP32's accuracy from mma.sync (m16n8k16, FP16 to FP32),
   sm_80 and later.

   Numerics are as in gemm.cuh, but both sums are promoted after every chunk of 32 k. The tensor cores of
   sm_80, 86 and 89 keep one bit less than Hopper's (ACCURACY.md), so a sum over 64 k would already be less
   accurate than FP32. The sums of a chunk are computed for two column groups of a 16-row strip at a time,
   which takes eight registers each.

   A block has teams of four warps. Each team has its own tiles, ring of stages and barrier, so one multiplies
   while another waits. Blocks are persistent and have no clusters; any grid will do. A warp computes 64 rows
   by 32 columns. While it multiplies one strip of 16 rows, the next strip of A comes from shared memory to
   registers. With the last strip of a chunk, the first data of the next chunk come. */
#ifndef GPB_SLICED_MMA_CUH
#define GPB_SLICED_MMA_CUH

#include "kernels/ptx_sm90.cuh"
#include "kernels/sliced/ptx_mma.cuh"
#include "kernels/sliced/store.cuh"

constexpr int GPB_MMA_TEAM = 128;               /* threads */
constexpr int GPB_MMA_STRIPS = 4;               /* of 16 rows each, in a warp's part */
constexpr int GPB_MMA_ROWS = 16 * GPB_MMA_STRIPS;

/* A tile. Tiles are numbered through all members. */
template <int BM, int BN, int REALS> struct gpb_mma_tile {
    unsigned l, i0, j0;

    __device__ __forceinline__ gpb_mma_tile(const gpb_gemm_args &g, unsigned number)
    {
        const unsigned tiles_m = (unsigned)((g.m + BM - 1) / BM), tiles_n = (unsigned)((g.n + BN - 1) / BN),
                       each = tiles(g), x = number % each;
        l = number / each;
        if (g.uplo) {
            const gpb_triangle_place at = gpb_triangle_tile(g.uplo, x, g.n, BM / REALS, BN);
            i0 = at.tile_m * BM;
            j0 = at.tile_n * BN;
            return;
        }
        const gpb_origin at = gpb_origin_at<BM, BN>(x, tiles_m, tiles_n);
        i0 = (unsigned)at.i0;
        j0 = (unsigned)at.j0;
    }
    /* Tiles of a member. */
    static __device__ __forceinline__ unsigned tiles(const gpb_gemm_args &g)
    {
        return (unsigned)(g.uplo ? gpb_triangle_tiles(g.uplo, g.n, BM / REALS, BN)
                                 : GPB_TILES(g.m, g.n, BM, BN));
    }
    __device__ __forceinline__ bool wanted(const gpb_gemm_args &g) const
    {
        const uint64_t down = g.guard_a[l * g.stride_guard_a + i0 / GPB_GUARD],
                       across = g.guard_b[l * g.stride_guard_b + j0 / GPB_GUARD];
        return max(gpb_guard_level(down, g.epoch_a), gpb_guard_level(across, g.epoch_b)) == g.level;
    }
    /* True if the product of the low slices counts, too. */
    __device__ __forceinline__ bool full(const gpb_gemm_args &g) const
    {
        return gpb_guard_full(g.guard_a[l * g.stride_guard_a + i0 / GPB_GUARD], g.epoch_a)
               && gpb_guard_full(g.guard_b[l * g.stride_guard_b + j0 / GPB_GUARD], g.epoch_b);
    }
};

/* A team's ring of stages. A stage has a chunk of both operands: the slices of A, then those of B. */
template <int BM, int BN, int REALS, int STAGES> struct gpb_mma_ring {
    static constexpr unsigned A = BM * 64, B = BN * 64, BYTES = 2 * (A + B), ROUND = GPB_MMA_TEAM * 16;
    const char *a, *b;                          /* this thread's part of the next chunk */
    unsigned left;                              /* chunks to come */
    /* Shared-memory addresses: of the stages, of the next one to fill, of the next one to read. */
    unsigned data, to, from;

    __device__ __forceinline__ unsigned after(unsigned stage) const
    {
        return stage == data + (STAGES - 1) * BYTES ? data : stage + BYTES;
    }
    /* Issues one group of copies: the next chunk, or none if there is no more. */
    __device__ __forceinline__ void fetch(const gpb_gemm_args &g)
    {
        if (left) {
            /* bytes of a chunk's slice */
            const int64_t step_a = gpb_sliced_rows(g.m) * 64, step_b = gpb_sliced_rows(g.n) * 64;
            const unsigned at = to + threadIdx.x % GPB_MMA_TEAM * 16;
#pragma unroll
            for (unsigned x = 0; x < 2 * A; x += ROUND)
                gpb_cp_async16(at + x, a + (x >= A ? step_a + (x - A) : x));
#pragma unroll
            for (unsigned x = 0; x < 2 * B; x += ROUND)
                gpb_cp_async16(at + 2 * A + x, b + (x >= B ? step_b + (x - B) : x));
            a += 2 * step_a;
            b += 2 * step_b;
            to = after(to);
            left--;
        }
        gpb_cp_async_commit();
    }
    /* Finds the first tile to compute, from `number` on in this team's steps, and fills all stages with its
       first chunks. Returns false if there is none. */
    __device__ __forceinline__ bool begin(const gpb_gemm_args &g, unsigned &number, unsigned step)
    {
        const uint64_t tiles = (uint64_t)gpb_mma_tile<BM, BN, REALS>::tiles(g) * (uint64_t)g.batch;
        while (number < tiles && !gpb_mma_tile<BM, BN, REALS>(g, number).wanted(g)) number += step;
        if (number >= tiles) return false;
        const gpb_mma_tile<BM, BN, REALS> t(g, number);
        a = (const char *)g.a + 4 * (int64_t)t.l * g.stride_a + (int64_t)t.i0 * 64
            + threadIdx.x % GPB_MMA_TEAM * 16;
        b = (const char *)g.b + 4 * (int64_t)t.l * g.stride_b + (int64_t)t.j0 * 64
            + threadIdx.x % GPB_MMA_TEAM * 16;
        left = (unsigned)gpb_sliced_chunks(g.k);
        to = from = data;
#pragma unroll
        for (int s = 0; s < STAGES; s++) fetch(g);
        return true;
    }
};

/* What a warp multiplies of a chunk: two strips of A, one after the other, and all of its columns of B. */
template <int BM, int BN, int GROUPS> struct gpb_mma_fragments {
    unsigned a[2][2][2][4];                     /* [strip % 2][slice][half of the 32 k] */
    unsigned b[GROUPS][2][4];                   /* [8 columns][slice][8 k] */
    unsigned from_a, from_b;                    /* of this lane, from the start of a stage */

    /* Piece q of row r lies at q ^ r / 2 % 4 (sliced.h). All that is added to the lane's own row are
       multiples of 8. */
    __device__ __forceinline__ gpb_mma_fragments(unsigned row, unsigned col)
    {
        const unsigned lane = threadIdx.x % 32, swizzle = lane / 2 % 4;
        from_a = (row + lane % 16) * 64 + (lane / 16 ^ swizzle) * 16;
        from_b = 2 * BM * 64 + (col + lane % 8) * 64 + (lane / 8 ^ swizzle) * 16;
    }
    __device__ __forceinline__ void load_a(unsigned stage, int strip)
    {
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                gpb_ldmatrix4(a[strip % 2][s][h], stage + (from_a ^ h * 32) + s * BM * 64 + strip * 1024);
    }
    __device__ __forceinline__ void load_b(unsigned stage, int group)
    {
#pragma unroll
        for (int s = 0; s < 2; s++) gpb_ldmatrix4(b[group][s], stage + from_b + s * BN * 64 + group * 512);
    }
    /* low += xl yl / 2^11, for two column groups. */
    static __device__ __forceinline__ void low_low(float (&low)[2][4], const unsigned (&x)[2][2][4],
                                                   const unsigned (&y)[2][4], const unsigned (&z)[2][4])
    {
        const float zero[4] = { 0, 0, 0, 0 };
        float both[2][4];
        gpb_mma_fp16(both[0], x[1][0], y[1][0], y[1][1], zero);
        gpb_mma_fp16(both[1], x[1][0], z[1][0], z[1][1], zero);
        gpb_mma_fp16(both[0], x[1][1], y[1][2], y[1][3], both[0]);
        gpb_mma_fp16(both[1], x[1][1], z[1][2], z[1][3], both[1]);
#pragma unroll
        for (int i = 0; i < 8; i++) low[i / 4][i % 4] = fmaf(both[i / 4][i % 4], 0x1p-11f, low[i / 4][i % 4]);
    }
    /* sum += strip of A times two column groups, 32 k deep. Products into the same registers are three
       instructions apart. */
    __device__ __forceinline__ void multiply(float (&sum)[4 * GROUPS], int strip, int group, bool full) const
    {
        const unsigned (&x)[2][2][4] = a[strip % 2], (&y)[2][4] = b[group], (&z)[2][4] = b[group + 1];
        const float zero[4] = { 0, 0, 0, 0 };
        float part[2][4], low[2][4];
        gpb_mma_fp16(low[0], x[1][0], y[0][0], y[0][1], zero);
        gpb_mma_fp16(low[1], x[1][0], z[0][0], z[0][1], zero);
        gpb_mma_fp16(part[0], x[0][0], y[0][0], y[0][1], zero);
        gpb_mma_fp16(low[0], x[0][0], y[1][0], y[1][1], low[0]);
        gpb_mma_fp16(low[1], x[0][0], z[1][0], z[1][1], low[1]);
        gpb_mma_fp16(part[1], x[0][0], z[0][0], z[0][1], zero);
        gpb_mma_fp16(low[0], x[1][1], y[0][2], y[0][3], low[0]);
        gpb_mma_fp16(low[1], x[1][1], z[0][2], z[0][3], low[1]);
        gpb_mma_fp16(part[0], x[0][1], y[0][2], y[0][3], part[0]);
        gpb_mma_fp16(low[0], x[0][1], y[1][2], y[1][3], low[0]);
        gpb_mma_fp16(low[1], x[0][1], z[1][2], z[1][3], low[1]);
        gpb_mma_fp16(part[1], x[0][1], z[0][2], z[0][3], part[1]);
        if (full) low_low(low, x, y, z);
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum[4 * group + i] += fmaf(low[i / 4][i % 4], 0x1p-11f, part[i / 4][i % 4]);
    }
};

/* ROW_BM, ROW_BK: as of gpb_sliced_gemm. */
template <class T, int ROW_BM, int BN, int ROW_BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_sliced_mma(const gpb_gemm_args &g)
{
    constexpr int REALS = GPB_REALS<T>, BM = REALS * ROW_BM, BK = REALS * ROW_BK;
    using ring_t = gpb_mma_ring<BM, BN, REALS, STAGES>;
    constexpr int TEAMS = THREADS / GPB_MMA_TEAM, DOWN = BM / GPB_MMA_ROWS,
                  COLS = BN / (GPB_MMA_TEAM / 32 / DOWN), GROUPS = COLS / 8;
    static_assert(BK == GPB_SLICE_CHUNK && SMEM == TEAMS * STAGES * ring_t::BYTES, "see gemm.def");
    static_assert(BM % GPB_MMA_ROWS == 0 && COLS % 16 == 0 && GPB_GUARD % BM == 0 && GPB_GUARD % BN == 0,
                  "whole pairs of column groups");
    static_assert(ring_t::A % ring_t::ROUND == 0 && ring_t::B % ring_t::ROUND == 0, "whole rounds of copies");
    extern __shared__ __align__(128) char memory[];
    const unsigned team = threadIdx.x / GPB_MMA_TEAM, warp = threadIdx.x % GPB_MMA_TEAM / 32;
#if __CUDA_ARCH__ >= 900
    gpb_grid_wait();
#endif
    ring_t ring;
    ring.data = gpb_shared_address(memory) + team * STAGES * ring_t::BYTES;
    gpb_mma_fragments<BM, BN, GROUPS> f(warp % DOWN * GPB_MMA_ROWS, warp / DOWN * COLS);
    const unsigned step = gridDim.x * TEAMS;
    unsigned number = team * gridDim.x + blockIdx.x;  /* if tiles are few, one to a block */
    bool more = ring.begin(g, number, step);
    while (more) {
        float sum[GPB_MMA_STRIPS][4 * GROUPS] = {};
        const bool full = gpb_mma_tile<BM, BN, REALS>(g, number).full(g);
        gpb_cp_async_wait<STAGES - 1>();
        gpb_named_barrier(1 + team, GPB_MMA_TEAM);
#pragma unroll
        for (int group = 0; group < GROUPS; group++) f.load_b(ring.from, group);
        f.load_a(ring.from, 0);
#pragma unroll 1
        for (unsigned left = (unsigned)gpb_sliced_chunks(g.k); left; left--) {
#pragma unroll
            for (int strip = 0; strip < GPB_MMA_STRIPS; strip++) {
                if (strip < GPB_MMA_STRIPS - 1) {
                    f.load_a(ring.from, strip + 1);
                } else {                        /* every warp has read the stage */
                    gpb_cp_async_wait<STAGES - 2>();
                    gpb_named_barrier(1 + team, GPB_MMA_TEAM);
                    ring.fetch(g);
                    ring.from = ring.after(ring.from);
                    f.load_a(ring.from, 0);     /* after the last chunk this is never used */
                }
#pragma unroll
                for (int group = 0; group < GROUPS; group += 2) {
                    f.multiply(sum[strip], strip, group, full);
                    if (strip == GPB_MMA_STRIPS - 1) {
                        f.load_b(ring.from, group);
                        f.load_b(ring.from, group + 1);
                    }
                }
            }
        }
        gpb_named_barrier(1 + team, GPB_MMA_TEAM);
        const gpb_mma_tile<BM, BN, REALS> t(g, number);
        number += step;
        more = ring.begin(g, number, step);     /* its first chunks come while these results are stored */
        const unsigned place = (unsigned)gpb_fresh((int64_t)threadIdx.x) % GPB_MMA_TEAM / 32;
        const int row = place % DOWN * GPB_MMA_ROWS, col = place / DOWN * COLS;
#pragma unroll
        for (int strip = 0; strip < GPB_MMA_STRIPS; strip++)
            gpb_store_strip<T, BM, COLS, 2>(g, t.l, t.i0, row + strip * 16, t.j0 + col, sum[strip]);
    }
}

#endif
