/* SPDX-License-Identifier: MIT */
/* FP32's accuracy from FP16 tensor cores (wgmma) where one operand is large and the other thin: the large one is read once, so a pass that cuts
   it into slices first (slices.cuh) would cost more than the product. Here a block cuts what it has copied, chunk by chunk of 32 k.

   X is the operand with ROWS rows to a tile, Y the other, with COLS: op(A) and op(B) transposed (thin), or the other way round (flat).
   A warp has 16 rows of X, cut in registers, where the tensor cores fetch them, and all of Y, which all warps cut together, one chunk ahead,
   into the image of split.h in shared memory.

   Numerics as in gemm.cuh with sums promoted every chunk, but a row is scaled in each chunk by itself. The rules of slices.cuh hold chunk by
   chunk (`gpb_few_rows`). A block that meets a row they forbid begins again with FMAs: no guard words, no other kernel.

   Which k a place in a fragment stands for is free, if X and Y agree: place 2q + e + 8h of the 16 from 16s on (q: lane % 4) is k = 16s + q + 4e +
   8h, so that a thread's reads of either order (shapes/feed.cuh) meet different banks. Rows are free too: lane 4g + q has two neighbouring ones
   of X and, for each 16 columns, four neighbouring columns of Y. */
#ifndef GPB_SPLIT_DIRECT_CUH
#define GPB_SPLIT_DIRECT_CUH

#include <cuda_fp16.h>

#include "kernels/epilogue.cuh"
#include "kernels/ptx_sm90.cuh"
#include "kernels/shapes/feed.cuh"
#include "kernels/split.h"

/* R rows of an operand, chunk after chunk; a thread has N of the 32 k of each, other lanes of its warp the others: those whose number
   differs in the bits LANES. */
template <int R, int N, int LANES> struct gpb_few_rows {
    float back[R];                         /* 2^e: what undoes the scaling of the last chunk */
    __half2 high[R][N / 2], low[R][N / 2]; /* its slices */
    int base[R];                           /* exponent of the largest element when counting began anew, */
    __half2 many[R];                       /* and how many were counted since: all within 2^24 of the largest so far. Above 2048 not exact */

    __device__ __forceinline__ gpb_few_rows()
    {
#pragma unroll
        for (int r = 0; r < R; r++) base[r] = NEVER, many[r] = __float2half2_rn(0);
    }
    /* Cuts the next chunk. reach: powers of two that an element may lie below its row's largest. False: slices do not do it justice. */
    __device__ __forceinline__ bool cut(const float (*x)[N], int reach)
    {
        bool good = true, all = true;
        unsigned top[R];
#pragma unroll
        for (int r = 0; r < R; r++) {
            float largest = 0;                 /* NaN is not seen here, but makes sums that are NaN */
#pragma unroll
            for (int y = 0; y < N; y++) largest = fmaxf(largest, fabsf(x[r][y]));
#pragma unroll
            for (int lane = 1; lane < 32; lane *= 2)
                if (lane & LANES) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, lane));
            top[r] = __float_as_uint(largest == 0 ? 1 : largest) & EXPONENT;
            good &= top[r] - LOWEST <= HIGHEST - LOWEST;
            count(r, largest != 0, top[r]);
            back[r] = __uint_as_float(top[r] - (GPB_SPLIT_TOP << 23));
            all &= slice(r, x[r], __uint_as_float(2 * ONE + (GPB_SPLIT_TOP << 23) - top[r]));
        }
        if (all) return good;                  /* none is even 2^24 below its row's largest */
#pragma unroll
        for (int r = 0; r < R; r++) {
            unsigned least = ~0u;
#pragma unroll
            for (int y = 0; y < N; y++) least = min(least, 2 * __float_as_uint(x[r][y]) - 1);          /* 0 is the largest of these */
            good &= least >= 2 * (top[r] - (reach << 23)) - 1;
        }
        return good;
    }
    /* Whether every row that is not 0 has so many elements that count. */
    __device__ __forceinline__ bool enough(float fewest) const
    {
        bool good = true;
#pragma unroll
        for (int r = 0; r < R; r++) {
            float all = __low2float(many[r]) + __high2float(many[r]);
#pragma unroll
            for (int lane = 1; lane < 32; lane *= 2)
                if (lane & LANES) all += __shfl_xor_sync(~0u, all, lane);
            good &= base[r] == NEVER || all >= fewest;
        }
        return good;
    }

private:
    static constexpr unsigned ONE = 127u << 23, EXPONENT = 0x7f800000, LOWEST = (127u - GPB_SPLIT_REACH) << 23,
                              HIGHEST = (127u + GPB_SPLIT_REACH) << 23;
    static constexpr int NEVER = -1000, COUNTED = 12;      /* elements are counted down to 2^-12 of base, while none exceeds 2^12 of it */
    unsigned bar[R];                       /* two halves: what an element of the chunk must reach to be counted */

    __device__ __forceinline__ void count(int r, bool any, unsigned top)
    {
        const int exponent = (int)(top >> 23) - 127;
        if (any && exponent > base[r] + COUNTED) base[r] = exponent, many[r] = __float2half2_rn(0);
        const int lowest = min(GPB_SPLIT_TOP - COUNTED + base[r] - exponent, 15);
        bar[r] = (unsigned)(max(lowest, -14) + 15) * (0x400u * 0x10001u);
    }
    /* True: all elements count. */
    __device__ __forceinline__ bool slice(int r, const float (&x)[N], float scale)
    {
        __half2 least, counted = __float2half2_rn(0);
        *(unsigned *)&least = bar[r];
#pragma unroll
        for (int y = 0; y < N / 2; y++) {
            const float even = x[2 * y] * scale, odd = x[2 * y + 1] * scale;
            high[r][y] = __floats2half2_rn(even, odd);
            const float2 h = __half22float2(high[r][y]);
            low[r][y] = __floats2half2_rn((even - h.x) * 0x1p11f, (odd - h.y) * 0x1p11f);
            counted = __hadd2(counted, __hge2(__habs2(high[r][y]), least));
        }
        many[r] = __hadd2(many[r], counted);
        return __hbeq2(counted, __float2half2_rn(N / 2));
    }
};

template <int ROWS, int COLS, int STAGES, int THREADS> struct gpb_direct {
    static constexpr int BK = GPB_SPLIT_CHUNK, SLICE = (ROWS + COLS) * BK, RESULTS = COLS / 2;
    static constexpr int IMAGE = COLS * 64, BYTES = STAGES * SLICE * 4 + 2 * (2 * IMAGE + COLS * 4);        /* of a slice of Y's chunk; of all */
    static_assert(ROWS == 128 && COLS == 64 && THREADS == 256 && STAGES >= 3, "a warp has 16 rows of X, and eight lanes have two rows of Y");
    using feed_x = gpb_feed<ROWS, BK, THREADS, true>;
    using feed_y = gpb_feed<COLS, BK, THREADS, true>;
    using rows_x = gpb_few_rows<2, 8, 3>;
    using rows_y = gpb_few_rows<2, 4, 28>;
    using sums = float[RESULTS];               /* of the thread's two rows, as wgmma lays them out */

    /* This thread's two rows of X in the tile; the first four of its columns: there are four more, 16 on, and so forth. */
    static __device__ __forceinline__ int row(unsigned thread) { return (int)(thread / 32 * 16 + thread % 32 / 4 * 2); }
    static __device__ __forceinline__ int col(unsigned thread) { return (int)(thread % 4 * 4); }
    /* Result z is of row z / 2 % 2 and this column. */
    static __device__ __forceinline__ constexpr int col_of(int z) { return z / 8 * 16 + z / 4 % 2 * 2 + z % 2; }
    /* Not kept from chunk to chunk: neither it nor what is computed from it. */
    static __device__ __forceinline__ unsigned thread_now() { return (unsigned)gpb_fresh((int64_t)threadIdx.x); }
    static __device__ __forceinline__ float *stage(int chunk) { return gpb_dynamic_memory() + chunk % STAGES * SLICE; }
    static __device__ __forceinline__ float *image(int chunk) { return gpb_dynamic_memory() + STAGES * SLICE + chunk % 2 * (IMAGE / 2); }
    static __device__ __forceinline__ float *undo(int chunk) { return gpb_dynamic_memory() + STAGES * SLICE + IMAGE + chunk % 2 * COLS; }

    /* ---- with tensor cores */

    /* k = 4y + q of the thread's two rows. */
    template <bool DEEP> static __device__ __forceinline__ void read_x(float (&x)[2][8], const float *slice, unsigned thread)
    {
        const int q = thread % 4, i = row(thread);
#pragma unroll
        for (int y = 0; y < 8; y++) {
            if (DEEP) {
                x[0][y] = slice[gpb_deep_place<BK>(i, 0, y) + q], x[1][y] = slice[gpb_deep_place<BK>(i + 1, 0, y) + q];
            } else {
                const float2 v = *(const float2 *)(slice + (4 * y + q) * ROWS + (i ^ gpb_turn(q)));
                x[0][y] = v.x, x[1][y] = v.y;
            }
        }
    }

    /* Two rows of Y and half a piece of eight k: k = 8t + 2v + y / 2 + y % 2 * 4. Lane bits are 0, 1 the rows, 2 the half (v), 3, 4 the piece (t). */
    template <bool DEEP> static __device__ __forceinline__ void read_y(float (&x)[2][4], const float *slice, unsigned thread)
    {
        const int i = pair(thread), v = thread / 4 % 2, t = thread / 8 % 4;
        if (DEEP) {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const float2 lower = *(const float2 *)(slice + gpb_deep_place<BK>(i + r, 0, 2 * t) + 2 * v);
                const float2 upper = *(const float2 *)(slice + gpb_deep_place<BK>(i + r, 0, 2 * t + 1) + 2 * v);
                x[r][0] = lower.x, x[r][1] = upper.x, x[r][2] = lower.y, x[r][3] = upper.y;
            }
        } else {
#pragma unroll
            for (int y = 0; y < 4; y++) {
                const int k = 2 * v + y / 2;                               /* what is added to it changes nothing of the turn */
                const float2 f = *(const float2 *)(slice + (8 * t + 4 * (y % 2) + k) * COLS + (i ^ gpb_turn(k)));
                x[0][y] = f.x, x[1][y] = f.y;
            }
        }
    }
    static __device__ __forceinline__ int pair(unsigned thread) { return (int)(thread / 32 * 8 + thread % 4 * 2); }

    /* Y's chunk: both slices, and what undoes the scaling. Row 16w + 4z + 2h + e of Y is row 16w + 8h + 2z + e of the image. */
    template <bool DEEP> static __device__ __forceinline__ bool cut_y(rows_y &rows, int chunk, int reach)
    {
        const unsigned thread = thread_now();
        float x[2][4];
        read_y<DEEP>(x, stage(chunk) + ROWS * BK, thread);
        const bool good = rows.cut(x, reach);
        const int i = pair(thread), z = i / 4 % 4;
        char *to = (char *)image(chunk) + (i / 16 * 16 + i / 2 % 2 * 8 + 2 * z) * 64 + ((thread / 8 % 4 ^ z) << 4) + thread / 4 % 2 * 8;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            *(uint2 *)(to + r * 64) = *(const uint2 *)rows.high[r];
            *(uint2 *)(to + r * 64 + IMAGE) = *(const uint2 *)rows.low[r];
        }
        if (thread % 32 < 4) *(float2 *)(undo(chunk) + i) = make_float2(rows.back[0], rows.back[1]);
        gpb_wgmma_publish();
        return good;
    }

    /* A chunk's products, of the warpgroup's 64 rows, in two steps, so that one set of registers does: low high + high low; then, on top of
       2^-11 of that, high high. */
    static __device__ __forceinline__ void begin(float (&part)[RESULTS], const rows_x &x, int chunk)
    {
        const unsigned at = gpb_shared_address(image(chunk));
        gpb_pin(part);
        gpb_wgmma_fence();
#pragma unroll
        for (int s = 0; s < 2; s++) {
            gpb_wgmma<COLS>::fp16(part, pieces(x.low, s).x, gpb_wgmma_operand(at + 32 * s), s);
            gpb_wgmma<COLS>::fp16(part, pieces(x.high, s).x, gpb_wgmma_operand(at + 32 * s + IMAGE), 1);
        }
        gpb_wgmma_commit();
    }
    static __device__ __forceinline__ void go_on(float (&part)[RESULTS], const rows_x &x, int chunk)
    {
        const unsigned at = gpb_shared_address(image(chunk));
        gpb_wgmma_wait<0>();
        gpb_pin(part);
#pragma unroll
        for (int z = 0; z < RESULTS; z++) part[z] *= 0x1p-11f;
        gpb_pin(part);
        gpb_wgmma_fence();
#pragma unroll
        for (int s = 0; s < 2; s++) gpb_wgmma<COLS>::fp16(part, pieces(x.high, s).x, gpb_wgmma_operand(at + 32 * s), 1);
        gpb_wgmma_commit();
    }
    static __device__ __forceinline__ void end(sums &sum, float (&part)[RESULTS], const rows_x &x, int chunk, unsigned thread)
    {
        const float *back = undo(chunk) + col(thread);
        gpb_wgmma_wait<0>();
        gpb_pin(part);
#pragma unroll
        for (int w = 0; w < COLS / 16; w++) {
            const float4 four = *(const float4 *)(back + 16 * w);
            const float across[4] = { four.x, four.y, four.z, four.w };
#pragma unroll
            for (int z = 0; z < 8; z++)
                sum[8 * w + z] = fmaf(part[8 * w + z] * x.back[z / 2 % 2], across[z / 4 * 2 + z % 2], sum[8 * w + z]);
        }
    }
    /* Of 16 k, as wgmma takes it. */
    struct words {
        unsigned x[4];
    };
    static __device__ __forceinline__ words pieces(const __half2 (&slice)[2][4], int s)
    {
        return { { bits(slice[0][2 * s]), bits(slice[1][2 * s]), bits(slice[0][2 * s + 1]), bits(slice[1][2 * s + 1]) } };
    }
    static __device__ __forceinline__ unsigned bits(const __half2 &x) { return *(const unsigned *)&x; }

    template <bool DEEPX, bool DEEPY> static __device__ __forceinline__ void fetch(feed_x &fx, feed_y &fy, int chunk, int64_t k)
    {
        fx.template next<DEEPX>(stage(chunk), k - (int64_t)chunk * BK);
        fy.template next<DEEPY>(stage(chunk) + ROWS * BK, k - (int64_t)chunk * BK);
    }
    static __device__ __forceinline__ void clear(sums &sum)
    {
#pragma unroll
        for (int z = 0; z < RESULTS; z++) sum[z] = 0;
    }

    /* False: not what slices do justice to; sum is then worth nothing. Of Y the tensor cores are one chunk behind. Rows that have not half of
       their share of elements that count after SOON chunks will hardly have enough in the end: one-hot rows then cost the FMAs alone. */
    static constexpr int SOON = 4;
    template <bool DEEPX, bool DEEPY> static __device__ __forceinline__ bool with_cores(sums &sum, feed_x fx, feed_y fy, int64_t k)
    {
        const int chunks = (int)((k + BK - 1) / BK);
        const int reach = 26 + max(1, (31 - __clz((int)min(k, (int64_t)1 << 30))) / 2 - 2);            /* 2^26 max(2, sqrt(k) / 4) */
        rows_x x;
        rows_y y;
        clear(sum);
#pragma unroll 1
        for (int chunk = 0; chunk < min(chunks, 2); chunk++) fetch<DEEPX, DEEPY>(fx, fy, chunk, k);
        gpb_cp_async_commit();
        gpb_cp_async_wait<0>();
        __syncthreads();
        bool good = cut_y<DEEPY>(y, 0, reach);
        int chunk = 0;
#pragma unroll 1
        for (int stop = min(chunks, SOON);; stop = chunks) {
#pragma unroll 1
            for (; chunk < stop; chunk++) {
                gpb_cp_async_wait<0>();
                if (__syncthreads_or(!good)) return false;                 /* the chunk after this is whole, this one's image too */
                if (chunk + 1 < chunks) good &= cut_y<DEEPY>(y, chunk + 1, reach);
                if (chunk + 2 < chunks) fetch<DEEPX, DEEPY>(fx, fy, chunk + 2, k);     /* behind cut_y, whose fence would wait for it */
                gpb_cp_async_commit();
                const unsigned thread = thread_now();
                float raw[2][8], part[RESULTS];
                read_x<DEEPX>(raw, stage(chunk), thread);
                good &= x.cut(raw, reach);
                begin(part, x, chunk);
                go_on(part, x, chunk);
                end(sum, part, x, chunk, thread);
            }
            const float fewest = stop == chunks ? GPB_SPLIT_FEWEST : GPB_SPLIT_FEWEST / 2 * (float)SOON / (float)chunks;
            const bool enough_x = x.enough(fewest), enough_y = y.enough(fewest);       /* all lanes ask both */
            good &= enough_x && enough_y;
            if (stop == chunks) break;
        }
        float strange = 0;                     /* NaN where a sum is no number */
#pragma unroll
        for (int z = 0; z < RESULTS; z++) strange = fmaf(sum[z], 0, strange);
        return !__syncthreads_or(!(good && strange == 0));
    }

    /* ---- with FMAs, in increasing k */

    /* Four k, from k on (a multiple of 4), of N neighbouring rows of an operand with HEIGHT rows to a tile: x[r][q]. */
    template <bool DEEP, int HEIGHT, int N> static __device__ __forceinline__ void read(float (&x)[N][4], const float *slice, int i, int k)
    {
        if (DEEP) {
#pragma unroll
            for (int r = 0; r < N; r++) *(float4 *)x[r] = *(const float4 *)(slice + gpb_deep_place<BK>(i + r, 0, k >> 2));
        } else {
#pragma unroll
            for (int q = 0; q < 4; q++) {
                const float *row = slice + (k + q) * HEIGHT + (i ^ gpb_turn(q));
                float at_once[N];
                if (N == 2) *(float2 *)at_once = *(const float2 *)row;
                else *(float4 *)at_once = *(const float4 *)row;
#pragma unroll
                for (int r = 0; r < N; r++) x[r][q] = at_once[r];
            }
        }
    }
    /* What the last four of k lack is 0 in both operands. */
    template <bool DEEPX, bool DEEPY> static __device__ __forceinline__ void add(sums &sum, const float *slice, int depth)
    {
        const unsigned thread = thread_now();
#pragma unroll 1
        for (int p = 0; p < depth; p += 4) {
            float x[2][4];
            read<DEEPX, ROWS, 2>(x, slice, row(thread), p);
#pragma unroll
            for (int w = 0; w < COLS / 16; w++) {
                float y[4][4];
                read<DEEPY, COLS, 4>(y, slice + ROWS * BK, 16 * w + col(thread), p);
#pragma unroll
                for (int q = 0; q < 4; q++)
#pragma unroll
                    for (int z = 8 * w; z < 8 * w + 8; z++)
                        sum[z] = __fmaf_rn(x[z / 2 % 2][q], y[z % 8 / 4 * 2 + z % 2][q], sum[z]);
            }
        }
    }

    template <bool DEEPX, bool DEEPY> static __device__ __forceinline__ void with_fmas(sums &sum, feed_x fx, feed_y fy, int64_t k)
    {
        const int chunks = (int)((k + BK - 1) / BK);
        clear(sum);
        gpb_cp_async_wait<0>();
        __syncthreads();
#pragma unroll 1
        for (int chunk = -2; chunk < chunks; chunk++) {
            if (chunk + 2 < chunks) fetch<DEEPX, DEEPY>(fx, fy, chunk + 2, k);
            gpb_cp_async_commit();
            if (chunk < 0) continue;
            gpb_cp_async_wait<2>();
            __syncthreads();
            add<DEEPX, DEEPY>(sum, stage(chunk), (int)min(k - (int64_t)chunk * BK, (int64_t)BK));
            __syncthreads();                   /* its place is the next fetch's */
        }
    }

    template <bool DEEPX, bool DEEPY> static __device__ __forceinline__ void product(sums &sum, const feed_x &fx, const feed_y &fy, int64_t k)
    {
        if (!with_cores<DEEPX, DEEPY>(sum, fx, fy, k)) with_fmas<DEEPX, DEEPY>(sum, fx, fy, k);
    }

    /* ---- to C */

    template <bool FLAT> static __device__ __forceinline__ void store(const gpb_tile &t, const sums &sum)
    {
        const gpb_target to = gpb_target_of(t);
        const unsigned thread = threadIdx.x;
        const int64_t i = t.i0 + (FLAT ? col(thread) : row(thread)), j = t.j0 + (FLAT ? row(thread) : col(thread));
        const int rows = (int)min(to.m - i, (int64_t)ROWS), cols = (int)min(to.n - j, (int64_t)ROWS);
        float *c = gpb_global(to.c + i + j * to.ldc);
#pragma unroll
        for (int w = 0; w < COLS / 16; w++) {
            float old[8];
            auto down = [&](int z) { return FLAT ? col_of(z) : z / 2 % 2; };
            auto across = [&](int z) { return FLAT ? z / 2 % 2 : col_of(z); };
            auto limit = [&](int z) { return across(z) < cols ? rows : 0; };
#pragma unroll
            for (int z = 8 * w; z < 8 * w + 8; z++)
                old[z % 8] = to.beta == 0 ? 0 : gpb_load_within(down(z), limit(z), c + down(z) + across(z) * to.ldc);
#pragma unroll
            for (int z = 8 * w; z < 8 * w + 8; z++)
                gpb_store_within(down(z), limit(z), c + down(z) + across(z) * to.ldc, gpb_blend(to, sum[z], old[z % 8]));
        }
    }
};

template <int ROWS, int COLS, int STAGES, int THREADS, int SMEM, bool FLAT> static __device__ __forceinline__ void gpb_direct_tile(const gpb_tile &t)
{
    using direct = gpb_direct<ROWS, COLS, STAGES, THREADS>;
    static_assert(SMEM == direct::BYTES, "see gemm.def");
    const gpb_gemm_args &g = t.g;
    const typename direct::feed_x fx(FLAT ? t.b : t.a, FLAT ? g.csb : g.rsa, FLAT ? g.rsb : g.csa, FLAT ? t.j0 : t.i0, FLAT ? g.n : g.m);
    const typename direct::feed_y fy(FLAT ? t.a : t.b, FLAT ? g.rsa : g.csb, FLAT ? g.csa : g.rsb, FLAT ? t.i0 : t.j0, FLAT ? g.m : g.n);
    typename direct::sums sum;
    if (fx.deep) {
        if (fy.deep) direct::template product<true, true>(sum, fx, fy, t.k);
        else direct::template product<true, false>(sum, fx, fy, t.k);
    } else {
        if (fy.deep) direct::template product<false, true>(sum, fx, fy, t.k);
        else direct::template product<false, false>(sum, fx, fy, t.k);
    }
    direct::template store<FLAT>(t, sum);
}

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM> static __device__ __forceinline__ void gpb_fp16x3_thin(const gpb_tile &t)
{
    static_assert(BK == GPB_SPLIT_CHUNK, "see gemm.def");
    gpb_direct_tile<BM, BN, STAGES, THREADS, SMEM, false>(t);
}

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM> static __device__ __forceinline__ void gpb_fp16x3_flat(const gpb_tile &t)
{
    static_assert(BK == GPB_SPLIT_CHUNK, "see gemm.def");
    gpb_direct_tile<BN, BM, STAGES, THREADS, SMEM, true>(t);
}

#endif
