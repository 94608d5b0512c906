/* SPDX-License-Identifier: MIT */
/* FP32's accuracy from TF32 tensor cores (wgmma) if one operand is large and the other thin. The large one is
   read only once, so slicing it in a pass of its own (slices.cuh) would cost more than the product. Here a
   block slices what it has copied, chunk by chunk of 32 k.

   X is the operand with ROWS rows to a tile, Y the other, with COLS: op(A) and op(B) transposed (thin), or
   the other way round (flat). A warp has 16 rows of X. It slices them in registers, where the tensor cores
   read them. It needs all of Y, which all warps slice together, one chunk ahead, into images in shared
   memory.

   x = big + small, both TF32 numbers: 11 bits, as FP16's, but FP32's exponents. So nothing is scaled, however
   far below its row's largest an element is. small big + big small are summed first, then big big on top, so
   that the tensor cores truncate small sums by little. Those sums are added to FP32 sums twice a chunk.

   These slices are not accurate enough for rows with few elements that count; for NaN, Inf, 2^+-60 and
   beyond; for elements below 2^-100, of which small has fewer than 11 bits; and for rows that are exact in
   two slices in both operands, where the product of the small parts, which is left out, may be what makes the
   sum exact (`gpb_watch`). A block that meets such rows begins again with FMAs. There are no guard words and
   no other kernel.

   Rows are placed as it suits: lane 4g + q has two neighbouring ones of X and, for each 16 columns, four
   neighbouring columns of Y. */
#ifndef GPB_SLICED_DIRECT_CUH
#define GPB_SLICED_DIRECT_CUH

#include <climits>

#include "kernels/epilogue.cuh"
#include "kernels/ptx_sm90.cuh"
#include "kernels/shapes/feed.cuh"
#include "kernels/sliced.h"

/* What a thread knows of R rows of an operand. Of each row it sees N of a chunk's 32 k, and other threads see
   the rest. */
template <int R, int N> struct gpb_watch {
    float above[R];                        /* a power of two above all elements so far; 0: all were 0 */
    /* Elements not below 2^-12 of that, counted as far as needed, with the flags WHOLE and SMALL. */
    int many[R];

    __device__ __forceinline__ gpb_watch()
    {
#pragma unroll
        for (int r = 0; r < R; r++) {
            above[r] = 0;
            many[r] = WHOLE;
        }
    }
    /* Looks at the next chunk, with all lanes of the warp. False: tensor cores are not accurate enough. NaN
       is not seen here, but makes sums that are NaN. */
    __device__ __forceinline__ bool look(const float (&x)[R][N])
    {
        float largest[R];
        unsigned least = ~0u;
        bool news = false, counts = false, good = true;
#pragma unroll
        for (int r = 0; r < R; r++) {
            largest[r] = 0;
#pragma unroll
            for (int y = 0; y < N; y++) largest[r] = fmaxf(largest[r], fabsf(x[r][y]));
#pragma unroll
            for (int y = 0; y < N; y += 2) least = min(min(least, size(x[r][y])), size(x[r][y + 1]));
            news |= largest[r] >= above[r] ? largest[r] > 0 : many[r] < ENOUGH;
        }
        if (__any_sync(~0u, news)) {
#pragma unroll
            for (int r = 0; r < R; r++) counts |= largest[r] >= above[r] ? largest[r] > 0 : seen(r) < ENOUGH;
            note(x);
            if (__any_sync(~0u, counts)) good = count(x, largest);
        }
        return good && least >= LEAST;
    }

    static constexpr float WINDOW = 0x1p12f;

    /* A number that all threads of a row add up. Below REST: elements that count. From REST on: threads that
       have seen an element that is not exact in big and small. From SMALL_ALONE on: threads that have seen
       none such, but one with a small part. counts: this thread's count is valid. */
    static constexpr unsigned REST = 1u << 16, SMALL_ALONE = 1u << 24, MANY = REST - 1;
    __device__ __forceinline__ unsigned tally(int r, bool counts) const
    {
        return (counts ? (unsigned)min(seen(r), 1024) : 0)
               + (many[r] >= 0      ? REST
                  : many[r] & SMALL ? SMALL_ALONE
                                    : 0);
    }
    static __device__ __forceinline__ bool is_whole(unsigned tally)
    {
        return tally >= SMALL_ALONE && tally % SMALL_ALONE < REST;
    }

private:
    /* Flags in `many`. WHOLE: all elements so far are exact in big and small. It makes `many` negative, so
       every chunk is looked at until one is not. SMALL, beside WHOLE: an element has a small part. */
    static constexpr int WHOLE = INT_MIN, SMALL = 1 << 30;
    /* Four lanes of a warp see a row of X, and the warp counts on for all of them: GPB_SLICE_MIN_K together.
       Eight threads, of other warps too, see a row of Y: twice as many, in case some see fewer. */
    static constexpr int ENOUGH = 16;
    static constexpr unsigned LEAST = 2 * ((127 - 100) << 23) - 1;

    /* A number in the order of magnitudes, except that 0 is the largest. */
    static __device__ __forceinline__ unsigned size(float x) { return 2 * __float_as_uint(x) - 1; }
    __device__ __forceinline__ int seen(int r) const { return many[r] & ~(WHOLE | SMALL); }
    __device__ __forceinline__ void note(const float (&x)[R][N])
    {
#pragma unroll
        for (int r = 0; r < R; r++) {
            unsigned bits = 0;
#pragma unroll
            for (int y = 0; y < N; y++) bits |= __float_as_uint(x[r][y]);
            if (bits & 3) many[r] = seen(r);
            else if (many[r] < 0 && bits & 0x1fff) many[r] |= SMALL;
        }
    }
    __device__ __forceinline__ bool count(const float (&x)[R][N], const float (&largest)[R])
    {
        bool good = true;
#pragma unroll
        for (int r = 0; r < R; r++) {
            /* Counts anew. The next elements may be four times as large before this happens again. */
            if (largest[r] >= above[r] && largest[r] > 0) {
                good &= largest[r] < 2 * __uint_as_float((127 + GPB_SLICE_REACH) << 23);
                above[r] = __uint_as_float((__float_as_uint(largest[r]) & 0x7f800000) + (3 << 23));
                many[r] &= WHOLE | SMALL;
            }
#pragma unroll
            for (int y = 0; y < N; y++) many[r] += fabsf(x[r][y]) * WINDOW >= above[r] && x[r][y] != 0;
        }
        return good;
    }
};

template <int ROWS, int COLS, int STAGES, int THREADS> struct gpb_direct {
    static constexpr int BK = 32, K_TILE = (ROWS + COLS) * BK, RESULTS = COLS / 2;
    static constexpr int IMAGE = COLS * BK;  /* floats of a slice of Y's chunk */
    static constexpr int BYTES = (STAGES * K_TILE + 2 * 2 * IMAGE + 2 * (ROWS + COLS) + 4) * 4;
    static_assert(ROWS == 128 && COLS == 64 && THREADS == 256 && STAGES == 3,
                  "a warp has 16 rows of X, and eight k of all of Y");
    static_assert(STAGES * K_TILE * 4 % 1024 == 0 && IMAGE * 4 % 1024 == 0, "where images may lie");
    /* SOON: chunks after which rows are judged for the first time. The second time is at the end. */
    static constexpr int SUM = GPB_DIRECT_SUM, SOON = 4;
    static_assert(2 * SUM == BK, "a chunk is two sums of the tensor cores");
    using feed_x = gpb_feed<ROWS, BK, THREADS, true>;
    using feed_y = gpb_feed<COLS, BK, THREADS, true>;
    using watch_x = gpb_watch<2, 8>;
    using watch_y = gpb_watch<2, 4>;
    using sums = float[RESULTS];               /* of the thread's two rows, as wgmma lays them out */

    /* This thread's two rows of X in the tile, and the first four of its columns. It has four more every 16
       columns. */
    static __device__ __forceinline__ int row(unsigned thread)
    {
        return (int)(thread / 32 * 16 + thread % 32 / 4 * 2);
    }
    static __device__ __forceinline__ int col(unsigned thread) { return (int)(thread % 4 * 4); }
    /* Result z is of row z / 2 % 2 and of this column. */
    static __device__ __forceinline__ constexpr int col_of(int z)
    {
        return z / 8 * 16 + z % 2 * 2 + z / 4 % 2;
    }
    /* Neither it nor values computed from it are kept from chunk to chunk. */
    static __device__ __forceinline__ unsigned thread_now()
    {
        return (unsigned)gpb_fresh((int64_t)threadIdx.x);
    }
    /* A stage of the ring is named by its first float; the next one and the one before it. */
    static __device__ __forceinline__ float *stage(int at) { return gpb_dynamic_memory() + at; }
    static __device__ __forceinline__ int after(int at)
    {
        return at == (STAGES - 1) * K_TILE ? 0 : at + K_TILE;
    }
    static __device__ __forceinline__ int before(int at)
    {
        return at == 0 ? (STAGES - 1) * K_TILE : at - K_TILE;
    }
    static __device__ __forceinline__ float *image(int which)
    {
        return gpb_dynamic_memory() + STAGES * K_TILE + which * (2 * IMAGE);
    }
    static __device__ __forceinline__ unsigned *tally()
    {
        return (unsigned *)(gpb_dynamic_memory() + STAGES * K_TILE + 4 * IMAGE);
    }
    /* Whether X, and Y, have a row that is exact in two slices. */
    static __device__ __forceinline__ unsigned *whole_rows() { return tally() + 2 * (ROWS + COLS); }
    static __device__ __forceinline__ bool both_whole() { return whole_rows()[0] && whole_rows()[1]; }

    /* ---- with tensor cores */

    /* x rounded to nearest to 11 bits, because 8193 x is rounded to 24 bits; to 10 bits within 2^-13 below a
       power of two. The rest of x is exact in FP32. The tensor cores see 11 bits of it, too: all but one unit
       in x's last place (three). */
    static __device__ __forceinline__ float big(float x) { return fmaf(x, -8192, fmaf(x, 8192, x)); }

    /* Reads k = 4y + q of the thread's two rows. */
    template <bool K_MAJOR>
    static __device__ __forceinline__ void read_x(float (&x)[2][8], const float *k_tile, unsigned thread)
    {
        const int q = thread % 4, i = row(thread);
#pragma unroll
        for (int y = 0; y < 8; y++) {
            if (K_MAJOR) {
                x[0][y] = k_tile[gpb_k_major_place<BK>(i, 0, y) + q],
                x[1][y] = k_tile[gpb_k_major_place<BK>(i + 1, 0, y) + q];
            } else {
                const float2 v = *(const float2 *)(k_tile + (4 * y + q) * ROWS + (i ^ gpb_swizzle(q)));
                x[0][y] = v.x;
                x[1][y] = v.y;
            }
        }
    }

    /* Two rows of Y, and four k of them from 4 piece on. */
    template <bool K_MAJOR> static __device__ __forceinline__ int row_y(unsigned thread, int r)
    {
        return (int)(K_MAJOR ? thread / 8 + 32 * r : thread % 32 * 2 + r);
    }
    template <bool K_MAJOR> static __device__ __forceinline__ int piece_y(unsigned thread)
    {
        return (int)(K_MAJOR ? thread % 8 : thread / 32);
    }
    template <bool K_MAJOR>
    static __device__ __forceinline__ void read_y(float (&x)[2][4], const float *k_tile, unsigned thread)
    {
        const int piece = piece_y<K_MAJOR>(thread);
        if (K_MAJOR) {
#pragma unroll
            for (int r = 0; r < 2; r++)
                *(float4 *)x[r] =
                    *(const float4 *)(k_tile + gpb_k_major_place<BK>(row_y<K_MAJOR>(thread, r), 0, piece));
        } else {
#pragma unroll
            for (int y = 0; y < 4; y++) {
                const float2 v = *(const float2 *)(k_tile + (4 * piece + y) * COLS
                                                   + (row_y<K_MAJOR>(thread, 0) ^ gpb_swizzle(y)));
                x[0][y] = v.x;
                x[1][y] = v.y;
            }
        }
    }

    /* Slices Y's chunk: big, and small behind it, in rows of 128 bytes whose 16-byte pieces lie in the tensor
       cores' 128-byte swizzle. Row 16w + 4z + 2h + e of Y is row 16w + 8e + 2z + h of the image. */
    template <bool K_MAJOR>
    static __device__ __forceinline__ bool cut_y(watch_y &watch, const float *k_tile, float *image)
    {
        const unsigned thread = thread_now();
        float x[2][4];
        read_y<K_MAJOR>(x, k_tile, thread);
        const bool good = watch.look(x);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int i = row_y<K_MAJOR>(thread, r),
                      place = i / 16 * 16 + i % 2 * 8 + i / 4 % 4 * 2 + i / 2 % 2;
            float *to = image + place * BK + ((piece_y<K_MAJOR>(thread) ^ place % 8) << 2);
            const float4 whole = make_float4(big(x[r][0]), big(x[r][1]), big(x[r][2]), big(x[r][3]));
            *(float4 *)to = whole;
            *(float4 *)(to + IMAGE) =
                make_float4(x[r][0] - whole.x, x[r][1] - whole.y, x[r][2] - whole.z, x[r][3] - whole.w);
        }
        gpb_wgmma_publish();
        return good;
    }

    /* Adds the products of SUM k of a chunk, from FIRST on, to FP32 sums, for the warpgroup's 64 rows. small
       big + big small come first, then big big on top, so that tensor cores truncate small sums by little. */
    template <int FIRST>
    static __device__ __forceinline__ void multiply(sums &sum, const float (&x)[2][8], const float *image)
    {
        constexpr int STEPS = SUM / 8, BEGIN = FIRST / 8;
        const unsigned whole = gpb_wgmma_operand(gpb_shared_address(image)) + 2 * BEGIN,
                       rest = whole + IMAGE * 4 / 16;
        float part[RESULTS];
        unsigned of[2][STEPS][4];              /* big, small; 8 k; in wgmma's layout */
#pragma unroll
        for (int s = 0; s < STEPS; s++)
#pragma unroll
            for (int z = 0; z < 4; z++) {
                const float here = x[z % 2][2 * (BEGIN + s) + z / 2], first = big(here);
                of[0][s][z] = __float_as_uint(first);
                of[1][s][z] = __float_as_uint(here - first);
            }
        gpb_pin(part);
        gpb_wgmma_fence();
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            gpb_wgmma<COLS>::tf32(part, of[1][s], whole + 2 * s, s);
            gpb_wgmma<COLS>::tf32(part, of[0][s], rest + 2 * s, 1);
        }
#pragma unroll
        for (int s = 0; s < STEPS; s++) gpb_wgmma<COLS>::tf32(part, of[0][s], whole + 2 * s, 1);
        gpb_wgmma_commit();
        gpb_wgmma_wait<0>();
        gpb_pin(part);
#pragma unroll
        for (int z = 0; z < RESULTS; z++) sum[z] += part[z];
    }

    /* k of the operands, chunk by chunk. */
    struct depth {
        int chunks, full, rest;                /* the last chunk may have only `rest` k */
        __device__ __forceinline__ depth(int64_t k)
            : chunks((int)((k + BK - 1) / BK)), full((int)(k / BK)), rest((int)(k % BK))
        {
        }
        __device__ __forceinline__ int of(int chunk) const { return chunk < full ? BK : rest; }
    };
    static __device__ __forceinline__ void clear(sums &sum)
    {
#pragma unroll
        for (int z = 0; z < RESULTS; z++) sum[z] = 0;
    }

    /* Whether every row of both operands that is not 0 has `fewest` elements that count, which are within
       2^24 of its largest, and is not tiny. A thread's count is void if it has seen only elements far below
       others' of the row. Behind the next barrier whole_rows() is known. */
    template <bool K_MAJOR_Y>
    static __device__ __forceinline__ bool enough(const watch_x &x, const watch_y &y, float fewest)
    {
        /* Floats that are not negative have the order of their bits as integers, too. */
        unsigned *above = tally(), *many = above + ROWS + COLS;
        const unsigned thread = thread_now();
        if (thread < ROWS + COLS) above[thread] = many[thread] = 0;
        if (thread < 2) whole_rows()[thread] = 0;
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 2; r++) {
            atomicMax(&above[row(thread) + r], __float_as_uint(x.above[r]));
            atomicMax(&above[ROWS + row_y<K_MAJOR_Y>(thread, r)], __float_as_uint(y.above[r]));
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int here = row(thread) + r, there = ROWS + row_y<K_MAJOR_Y>(thread, r);
            atomicAdd(&many[here], x.tally(r, x.above[r] * watch_x::WINDOW >= __uint_as_float(above[here])));
            atomicAdd(&many[there],
                      y.tally(r, y.above[r] * watch_y::WINDOW >= __uint_as_float(above[there])));
        }
        __syncthreads();
        if (thread >= ROWS + COLS || above[thread] == 0) return true;
        if (watch_x::is_whole(many[thread])) whole_rows()[thread >= ROWS] = 1;
        return above[thread] > (127u - GPB_SLICE_REACH + 3) << 23
               && (float)(many[thread] & watch_x::MANY) >= fewest;
    }

    template <bool K_MAJOR_Y>
    static __device__ __forceinline__ bool enough_soon(const watch_x &x, const watch_y &y, const depth &k)
    {
        const bool good = enough<K_MAJOR_Y>(x, y, GPB_SLICE_MIN_K / 2 * (float)SOON / (float)k.chunks);
        __syncthreads();
        return good && !both_whole();
    }

    /* Multiplies one chunk, whose Y is sliced already. Slices Y of the next chunk, and starts to copy the one
       behind that, Y first, because it is needed a chunk earlier. */
    template <bool K_MAJOR_X, bool K_MAJOR_Y>
    static __device__ __forceinline__ bool step(sums &sum, watch_x &x, watch_y &y, feed_x &fx, feed_y &fy,
                                                const depth &k, int chunk, int at)
    {
        const bool more = chunk + 2 < k.chunks;
        bool good = true;
        if (chunk + 1 < k.chunks)
            good = cut_y<K_MAJOR_Y>(y, stage(after(at)) + ROWS * BK, image((chunk + 1) % 2));
        /* Behind cut_y, because its fence would wait for this copy. */
        if (more) fy.template next<K_MAJOR_Y>(stage(before(at)) + ROWS * BK, k.of(chunk + 2));
        gpb_cp_async_commit();
        if (more) fx.template next<K_MAJOR_X>(stage(before(at)), k.of(chunk + 2));
        gpb_cp_async_commit();
        float raw[2][8];
        read_x<K_MAJOR_X>(raw, stage(at), thread_now());
        good &= x.look(raw);
        multiply<0>(sum, raw, image(chunk % 2));
        multiply<SUM>(sum, raw, image(chunk % 2));
        gpb_cp_async_wait<1>();
        return good;
    }

    /* Sums of earlier chunks. They are in local memory, because `volatile` keeps the compiler from finding
       registers for them. */
    struct bank {
        volatile float at[RESULTS];
        __device__ __forceinline__ void put(sums &sum, bool first)
        {
#pragma unroll
            for (int z = 0; z < RESULTS; z++) {
                at[z] = first ? sum[z] : at[z] + sum[z];
                sum[z] = 0;
            }
        }
        __device__ __forceinline__ void add_to(sums &sum) const
        {
#pragma unroll
            for (int z = 0; z < RESULTS; z++) sum[z] += at[z];
        }
    };

    /* Multiplies with tensor cores. False: they are not accurate enough, and sum is void. A row without half
       of its share of elements that count after SOON chunks will hardly have enough in the end, so the block
       gives up then. One-hot rows thus cost only the FMAs. Sums of GPB_DIRECT_BANK chunks are put aside,
       because longer chains of FP32 additions, two a chunk, would be too inexact. fetched: k tiles that the
       feeds have advanced. */
    template <bool K_MAJOR_X, bool K_MAJOR_Y>
    static __device__ __forceinline__ bool with_cores(sums &sum, feed_x &fx, feed_y &fy, const depth &k,
                                                      int &fetched)
    {
        watch_x x;
        watch_y y;
        bank kept;
        clear(sum);
#pragma unroll 1
        for (int chunk = 0; chunk < min(k.chunks, 2); chunk++) {
            fx.template next<K_MAJOR_X>(stage(chunk * K_TILE), k.of(chunk));
            fy.template next<K_MAJOR_Y>(stage(chunk * K_TILE) + ROWS * BK, k.of(chunk));
        }
        gpb_cp_async_commit();
        gpb_cp_async_wait<0>();
        __syncthreads();
        bool good = cut_y<K_MAJOR_Y>(y, stage(0) + ROWS * BK, image(0));
        int chunk = 0, at = 0;
#pragma unroll 1
        for (int stop = min(k.chunks, SOON);; stop = min(k.chunks, stop + GPB_DIRECT_BANK)) {
#pragma unroll 1
            for (; chunk < stop; chunk++, at = after(at)) {
                /* Otherwise this chunk is complete, and its image, and Y of the next chunk. */
                if (__syncthreads_or(!good)) {
                    fetched = min(chunk + 2, k.chunks);
                    return false;
                }
                good = step<K_MAJOR_X, K_MAJOR_Y>(sum, x, y, fx, fy, k, chunk, at);
            }
            if (stop == k.chunks) break;
            if (stop == SOON) good &= enough_soon<K_MAJOR_Y>(x, y, k);
            else kept.put(sum, stop == SOON + GPB_DIRECT_BANK);
        }
        good &= enough<K_MAJOR_Y>(x, y, GPB_SLICE_MIN_K);
        if (k.chunks > SOON + GPB_DIRECT_BANK) kept.add_to(sum);
        fetched = k.chunks;
        float strange = 0;                     /* NaN if a sum is not finite */
#pragma unroll
        for (int z = 0; z < RESULTS; z++) strange = fmaf(sum[z], 0, strange);
        return !__syncthreads_or(!(good && strange == 0)) && !both_whole();
    }

    /* ---- with FMAs, in increasing k */

    /* Reads four k, from k on (a multiple of 4), of N neighbouring rows of an operand with HEIGHT rows to a
       tile: x[r][q]. */
    template <bool K_MAJOR, int HEIGHT, int N>
    static __device__ __forceinline__ void read(float (&x)[N][4], const float *k_tile, int i, int k)
    {
        if (K_MAJOR) {
#pragma unroll
            for (int r = 0; r < N; r++)
                *(float4 *)x[r] = *(const float4 *)(k_tile + gpb_k_major_place<BK>(i + r, 0, k >> 2));
        } else {
#pragma unroll
            for (int q = 0; q < 4; q++) {
                const float *row = k_tile + (k + q) * HEIGHT + (i ^ gpb_swizzle(q));
                float at_once[N];
                if (N == 2) *(float2 *)at_once = *(const float2 *)row;
                else *(float4 *)at_once = *(const float4 *)row;
#pragma unroll
                for (int r = 0; r < N; r++) x[r][q] = at_once[r];
            }
        }
    }
    /* Beyond the end of k both operands are 0. */
    template <bool K_MAJOR_X, bool K_MAJOR_Y>
    static __device__ __forceinline__ void add(sums &sum, const float *k_tile, int depth)
    {
        const unsigned thread = thread_now();
#pragma unroll 1
        for (int p = 0; p < depth; p += 4) {
            float x[2][4];
            read<K_MAJOR_X, ROWS, 2>(x, k_tile, row(thread), p);
#pragma unroll
            for (int w = 0; w < COLS / 16; w++) {
                float y[4][4];
                read<K_MAJOR_Y, COLS, 4>(y, k_tile + ROWS * BK, 16 * w + col(thread), p);
#pragma unroll
                for (int q = 0; q < 4; q++)
#pragma unroll
                    for (int z = 8 * w; z < 8 * w + 8; z++)
                        sum[z] = __fmaf_rn(x[z / 2 % 2][q], y[z % 2 * 2 + z % 8 / 4][q], sum[z]);
            }
        }
    }

    template <bool K_MAJOR_X, bool K_MAJOR_Y>
    static __device__ __forceinline__ void with_fmas(sums &sum, feed_x &fx, feed_y &fy, const depth &k)
    {
        clear(sum);
        gpb_cp_async_wait<0>();
        __syncthreads();
        int to = 0, at = K_TILE;               /* two stages on, so back at the first by then */
#pragma unroll 1
        for (int chunk = -2; chunk < k.chunks; chunk++, to = after(to), at = after(at)) {
            if (chunk + 2 < k.chunks) {
                fx.template next<K_MAJOR_X>(stage(to), k.of(chunk + 2));
                fy.template next<K_MAJOR_Y>(stage(to) + ROWS * BK, k.of(chunk + 2));
            }
            gpb_cp_async_commit();
            if (chunk < 0) continue;
            gpb_cp_async_wait<2>();
            __syncthreads();
            add<K_MAJOR_X, K_MAJOR_Y>(sum, stage(at), k.of(chunk));
            __syncthreads();                   /* the next fetch goes there */
        }
    }

    template <bool K_MAJOR_X, bool K_MAJOR_Y>
    static __device__ __forceinline__ void product(sums &sum, feed_x &fx, feed_y &fy, int64_t depth_of_k)
    {
        const depth k(depth_of_k);
        int fetched;
        if (with_cores<K_MAJOR_X, K_MAJOR_Y>(sum, fx, fy, k, fetched)) return;
        fx.back(fetched);
        fy.back(fetched);
        with_fmas<K_MAJOR_X, K_MAJOR_Y>(sum, fx, fy, k);
    }

    /* ---- to C */

    template <bool FLAT>
    static __device__ __forceinline__ void store(const gpb_tile<float> &t, const sums &sum)
    {
        const gpb_target<float> to = gpb_target_of(t);
        const unsigned thread = threadIdx.x;
        const gpb_origin at = gpb_origin_of<FLAT ? COLS : ROWS, FLAT ? ROWS : COLS>(t.g);
        const int64_t i = at.i0 + (FLAT ? col(thread) : row(thread)),
                      j = at.j0 + (FLAT ? row(thread) : col(thread));
        const int rows = (int)min(to.m - i, (int64_t)ROWS), cols = (int)min(to.n - j, (int64_t)ROWS);
        float *c = gpb_global(to.c + i + j * to.ldc);
        auto down = [&](int z) { return FLAT ? col_of(z) : z / 2 % 2; };
        auto across = [&](int z) { return FLAT ? z / 2 % 2 : col_of(z); };
        const int below = (int)(i - j);    /* the diagonal */
        auto has = [&](int z) {
            const int d = below + down(z) - across(z);
            return !to.uplo || (to.uplo == 'U' ? d <= 0 : d >= 0);
        };
#pragma unroll
        for (int w = 0; w < COLS / 16; w++) {
            float old[8];
            auto limit = [&](int z) { return across(z) < cols && has(z) ? rows : 0; };
#pragma unroll
            for (int z = 8 * w; z < 8 * w + 8; z++)
                old[z % 8] =
                    to.beta == 0 ? 0 : gpb_load_within(down(z), limit(z), c + down(z) + across(z) * to.ldc);
#pragma unroll
            for (int z = 8 * w; z < 8 * w + 8; z++)
                gpb_store_within(down(z), limit(z), c + down(z) + across(z) * to.ldc,
                                 gpb_blend(to, sum[z], old[z % 8]));
        }
    }
};

template <int ROWS, int COLS, int STAGES, int THREADS, int SMEM, bool FLAT>
static __device__ __forceinline__ void gpb_direct_tile(const gpb_tile<float> &t)
{
    using direct = gpb_direct<ROWS, COLS, STAGES, THREADS>;
    static_assert(SMEM == direct::BYTES, "see gemm.def");
    const gpb_gemm_args &g = t.g;
    typename direct::feed_x fx(FLAT ? t.b : t.a, FLAT ? g.csb : g.rsa, FLAT ? g.rsb : g.csa,
                               FLAT ? t.j0 : t.i0, FLAT ? g.n : g.m);
    typename direct::feed_y fy(FLAT ? t.a : t.b, FLAT ? g.rsa : g.csb, FLAT ? g.csa : g.rsb,
                               FLAT ? t.i0 : t.j0, FLAT ? g.m : g.n);
    typename direct::sums sum;
    if (fx.k_major) {
        if (fy.k_major) direct::template product<true, true>(sum, fx, fy, t.k);
        else direct::template product<true, false>(sum, fx, fy, t.k);
    } else {
        if (fy.k_major) direct::template product<false, true>(sum, fx, fy, t.k);
        else direct::template product<false, false>(sum, fx, fy, t.k);
    }
    direct::template store<FLAT>(t, sum);
}

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_tf32x3_thin(const gpb_tile<float> &t)
{
    static_assert(BK == 32, "see gemm.def");
    gpb_direct_tile<BM, BN, STAGES, THREADS, SMEM, false>(t);
}

template <int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_tf32x3_flat(const gpb_tile<float> &t)
{
    static_assert(BK == 32, "see gemm.def");
    gpb_direct_tile<BN, BM, STAGES, THREADS, SMEM, true>(t);
}

#endif
