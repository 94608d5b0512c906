/* SPDX-License-Identifier: MIT */
/* Copies one operand into shared memory, a k tile of ROWS x BK at a time, without registers and without
   making a thread wait.

   X is op(A), or op(B) transposed: rows x k. A k tile keeps the order that it has in memory. So 16 bytes can
   be copied at once in either order, and nothing is transposed:
   MN_MAJOR  X contiguous along its rows. X(i,q) is at to[q*ROWS + i]. If SWIZZLED it is at to[q*ROWS + (i ^
             gpb_swizzle(q))], for threads that read the same rows at several q (sliced/direct.cuh).
   K_MAJOR   X contiguous along k, or in neither direction. X(i,q) is in row i of BK floats, whose 16-byte
             pieces are permuted. Eight threads of a phase that read the same piece of rows 4 apart then find
             it at eight different places of 16 bytes. */
#ifndef GPB_SHAPES_FEED_CUH
#define GPB_SHAPES_FEED_CUH

#include "kernels/shapes/ptx_shapes.cuh"
#include "kernels/tile.cuh"

/* Where K_MAJOR keeps piece `piece` of row i + x. x is a compile-time constant that shares no bits with i,
   and i or x is a multiple of 4. In rows of 128 bytes and more the piece is at place piece ^ (row / 4 % 8).
   Rows of 64 bytes lie two to 128 bytes: the piece is at place piece ^ (row / 4 % 4), and every other 16 rows
   are exchanged with their neighbours. */
template <int BK> static __device__ __forceinline__ int gpb_k_major_place(int i, int x, int piece)
{
    static_assert(BK % 16 == 0, "pieces of a row meet eight places");
    constexpr int KEY = BK >= 32 ? 7 : 3;
    const int moved = (piece ^ (i >> 2 & KEY) ^ (x >> 2 & KEY)) << 2;
    if (BK >= 32)
        return i * BK + moved + x * BK;
    const int swapped = i >> 4 & 1, r = x ^ (x >> 4 & 1);
    if (x % 4)                             /* i is even */
        return i * BK + moved + (r & 1 ? r - swapped : r + swapped) * BK;
    return (i ^ swapped ^ (r & 1)) * BK + moved + x * BK;
}

static __device__ __forceinline__ int gpb_swizzle(int q) { return (q & 3) * 8; }

template <int ROWS, int BK, int THREADS, bool SWIZZLED = false> struct gpb_feed {
    const float *from;                     /* X(first row of the tile, first k of the next k tile) */
    int64_t rs, cs;
    int rows;                              /* of X that lie in the tile, at most ROWS */
    /* The order of a k tile, and whether its 16-byte pieces are aligned. */
    bool k_major, vec4;

    static_assert(THREADS % BK == 0 && THREADS % (ROWS / 4) == 0, "threads must share a k tile evenly");

    __device__ __forceinline__ gpb_feed(const float *x, int64_t rs, int64_t cs, int64_t i0, int64_t height)
        : from(gpb_global(x + i0 * rs)), rs(rs), cs(cs), rows((int)min(height - i0, (int64_t)ROWS))
    {
        k_major = rs != 1;
        vec4 = ((uintptr_t)from & 15) == 0 && (k_major ? cs == 1 && (rs & 3) == 0 : (cs & 3) == 0);
    }

    /* Copies the next k tile, of which k has `left` >= 1. What lies outside X becomes 0. k tiles wholly
       within X need no guards, which would cost more than the copying. */
    template <bool K_MAJOR> __device__ __forceinline__ void next(float *to, int64_t left)
    {
        const unsigned at = gpb_shared_address(to);
        if (rows == ROWS && left >= BK)
            copy<K_MAJOR, false>(at, BK);
        else
            copy<K_MAJOR, true>(at, (int)min(left, (int64_t)BK));
        from += BK * cs;
    }
    /* Goes back by that many k tiles. */
    __device__ __forceinline__ void back(int k_tiles) { from -= (int64_t)k_tiles * BK * cs; }

private:
    template <bool K_MAJOR, bool GUARD> __device__ __forceinline__ void copy(unsigned to, int depth) const
    {
        if (vec4)
            K_MAJOR ? k_major_vec4<GUARD>(to, depth) : mn_major_vec4<GUARD>(to, depth);
        else
            K_MAJOR ? k_major_scalar<GUARD>(to, depth) : mn_major_scalar<GUARD>(to, depth);
    }

    /* SWIZZLED kernels have no registers to keep values that are computed from it. */
    static __device__ __forceinline__ unsigned index()
    {
        return SWIZZLED ? (unsigned)gpb_fresh((int64_t)threadIdx.x) : threadIdx.x;
    }
    static __device__ __forceinline__ int clamp4(int x) { return max(0, min(x, 4)); }

    template <bool GUARD>
    static __device__ __forceinline__ void piece_of_4(unsigned to, const float *x, int count)
    {
        if (GUARD)
            gpb_cp_async16_of(to, x, 4 * count);
        else
            gpb_cp_async16(to, x);
    }

    template <bool GUARD>
    static __device__ __forceinline__ void piece_of_1(unsigned to, const float *x, bool inside)
    {
        if (GUARD)
            gpb_cp_async4_of(to, x, inside ? 4 : 0);
        else
            gpb_cp_async4(to, x);
    }

    template <bool GUARD> __device__ __forceinline__ void k_major_vec4(unsigned to, int depth) const
    {
        const unsigned thread = index();
        constexpr int PIECES = BK / 4, STEP = THREADS / PIECES, COUNT = (ROWS + STEP - 1) / STEP;
        const int piece = thread % PIECES, row = thread / PIECES, inside = clamp4(depth - 4 * piece);
        const float *x = from + row * rs + 4 * piece;
#pragma unroll
        for (int y = 0; y < COUNT; y++, x += STEP * rs) {
            const int i = row + y * STEP;
            if (ROWS % STEP == 0 || i < ROWS)
                piece_of_4<GUARD>(to + 4 * gpb_k_major_place<BK>(row, y * STEP, piece), x,
                                  i < rows ? inside : 0);
        }
    }

    /* If BK is 16, a multiprocessor holds more blocks, and a thread has fewer registers, so UNROLL is
       smaller. */
    template <bool GUARD> __device__ __forceinline__ void k_major_scalar(unsigned to, int depth) const
    {
        const unsigned thread = index();
        constexpr int STEP = THREADS / BK, COUNT = (ROWS + STEP - 1) / STEP;
        [[maybe_unused]] constexpr int UNROLL = BK < 32 ? 2 : 4;
        const int q = thread % BK, row = thread / BK;
        const float *x = from + row * rs + q * cs;
#pragma unroll UNROLL
        for (int y = 0; y < COUNT; y++, x += STEP * rs) {
            const int i = row + y * STEP;
            if (ROWS % STEP == 0 || i < ROWS)
                piece_of_1<GUARD>(to + 4 * (gpb_k_major_place<BK>(i, 0, q >> 2) + (q & 3)), x,
                                  i < rows && q < depth);
        }
    }

    template <bool GUARD> __device__ __forceinline__ void mn_major_vec4(unsigned to, int depth) const
    {
        const unsigned thread = index();
        constexpr int PIECES = ROWS / 4, STEP = THREADS / PIECES, COUNT = (BK + STEP - 1) / STEP;
        static_assert(!SWIZZLED || STEP % 4 == 0, "a thread's pieces are turned alike");
        const int i = thread % PIECES * 4, q = thread / PIECES, inside = clamp4(rows - i);
        const float *x = from + i + q * cs;
        to += 4 * (q * ROWS + (SWIZZLED ? i ^ gpb_swizzle(q) : i));
#pragma unroll
        for (int y = 0; y < COUNT; y++, x += STEP * cs)
            if (BK % STEP == 0 || q + y * STEP < BK)
                piece_of_4<GUARD>(to + 4 * y * STEP * ROWS, x, q + y * STEP < depth ? inside : 0);
    }

    template <bool GUARD> __device__ __forceinline__ void mn_major_scalar(unsigned to, int depth) const
    {
        const unsigned thread = index();
        constexpr int STEP = THREADS / ROWS, COUNT = (BK + STEP - 1) / STEP;
        [[maybe_unused]] constexpr int UNROLL = BK < 32 ? 2 : COUNT;
        static_assert(STEP * ROWS == THREADS, "rows must share the threads evenly");
        const int i = thread % ROWS, q = thread / ROWS;
        const float *x = from + i + q * cs;
        to += 4 * q * ROWS;
#pragma unroll UNROLL
        for (int y = 0; y < COUNT; y++, x += STEP * cs)
            if (BK % STEP == 0 || q + y * STEP < BK)
                piece_of_1<GUARD>(to + 4 * (y * STEP * ROWS + (SWIZZLED ? i ^ gpb_swizzle(q + y * STEP) : i)),
                                  x, i < rows && q + y * STEP < depth);
    }
};

#endif
