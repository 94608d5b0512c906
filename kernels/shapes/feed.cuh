/* SPDX-License-Identifier: MIT */
/* One operand's way into shared memory, a slice of ROWS x BK at a time, without a thread waiting and without registers.

   X stands for op(A), or for op(B) transposed: rows x k. A slice keeps the order that it has in memory, so that 16 bytes can be
   copied at once in either case and nothing is transposed:
   DOWN (X contiguous along its rows)  X(i,q) at to[q*ROWS + i]
   DEEP (along k, or neither way)      X(i,q) in row i of BK floats, its 16-byte pieces moved about: threads that read the same
                                       piece of rows 4 apart, eight of them in a phase, then meet eight places of 16 bytes. */
#ifndef GPB_SHAPES_FEED_CUH
#define GPB_SHAPES_FEED_CUH

#include "kernels/shapes/ptx_shapes.cuh"
#include "kernels/tile.cuh"

/* Where DEEP keeps piece `piece` of row i + x; x is known when compiling and disturbs none of i's bits, and i is a multiple of 4 or
   x is one. Rows of 128 bytes and more: the piece goes to place piece ^ (row / 4 % 8). Rows of 64 bytes lie two to 128: the piece goes
   to place piece ^ (row / 4 % 4), and every other 16 rows change places with their neighbours. */
template <int BK> static __device__ __forceinline__ int gpb_deep_place(int i, int x, int piece)
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

/* PARTS: a whole slice can be asked for in so many portions, one between two multiplications: a burst of copies would hold up the reads of
   shared memory behind it. */
template <int ROWS, int BK, int THREADS, int PARTS> struct gpb_feed {
    const float *from;                     /* X(first row of the tile, first k of the next slice) */
    int64_t rs, cs;
    int rows;                              /* of X that lie in the tile, at most ROWS */
    bool wide;                             /* 16 bytes at a time */

    __device__ __forceinline__ gpb_feed(const float *x, int64_t rs, int64_t cs, int64_t i0, int64_t height)
        : from(gpb_global(x + i0 * rs)), rs(rs), cs(cs), rows((int)min(height - i0, (int64_t)ROWS))
    {
        wide = ((uintptr_t)from & 15) == 0 && (deep() ? cs == 1 && (rs & 3) == 0 : (cs & 3) == 0 && (rows & 3) == 0);
    }

    /* A tile of fewer than four rows has no use for DOWN. */
    __device__ __forceinline__ bool deep() const { return ROWS < 4 || rs != 1; }

    /* Portion n of the next slice, all of whose k exist. Rows outside X are not copied: what they give is not stored. */
    template <bool DEEP> __device__ __forceinline__ void part(unsigned to, int n) const
    {
        if (wide)
            copy<DEEP, 4, false>(to, n, BK);
        else
            copy<DEEP, 1, false>(to, n, BK);
    }

    /* The next slice, of which k has `left` >= 1; the others become 0. */
    template <bool DEEP> __device__ __forceinline__ void slice(unsigned to, int64_t left) const
    {
        const int depth = (int)min(left, (int64_t)BK);
#pragma unroll 1
        for (int n = 0; n < PARTS; n++)
            if (wide)
                copy<DEEP, 4, true>(to, n, depth);
            else
                copy<DEEP, 1, true>(to, n, depth);
    }

    /* After a slice has been asked for. */
    __device__ __forceinline__ void next() { from += BK * cs; }

private:
    /* Threads lie along what is contiguous, WIDTH elements each, and step across it. */
    template <bool DEEP, int WIDTH, bool GUARD> __device__ __forceinline__ void copy(unsigned to, int n, int depth) const
    {
        constexpr int FAST = (DEEP ? BK : ROWS) / WIDTH > 0 ? (DEEP ? BK : ROWS) / WIDTH : 1, SLOW = DEEP ? ROWS : BK;
        constexpr int STEP = THREADS / FAST, COUNT = (SLOW + STEP - 1) / STEP, EACH = (COUNT + PARTS - 1) / PARTS;
        static_assert(STEP * FAST == THREADS, "threads must share the slice evenly");
        const int fast = threadIdx.x % FAST * WIDTH, slow = threadIdx.x / FAST;
        const int64_t step = DEEP ? rs : cs;
        const float *x = from + (slow + n * EACH * STEP) * step + (DEEP ? fast * cs : fast);
#pragma unroll
        for (int z = 0; z < EACH; z++, x += STEP * step) {
            const int y = (n * EACH + z) * STEP, s = slow + y;
            const bool row = (DEEP ? s : fast) < rows, exists = (EACH * PARTS == COUNT && SLOW % STEP == 0) || s < SLOW;
            const unsigned at = to + 4 * (DEEP ? gpb_deep_place<BK>(slow, y, fast >> 2) + fast % 4 : s * ROWS + fast);
            if (GUARD) {
                const int have = row ? max(0, min(depth - (DEEP ? fast : s), DEEP ? WIDTH : 1)) * (DEEP ? 1 : WIDTH) : 0;
                if (exists)
                    WIDTH == 4 ? gpb_cp_async16_of(at, x, 4 * have) : gpb_cp_async4_of(at, x, 4 * have);
            } else if (exists && row) {
                WIDTH == 4 ? gpb_cp_async16(at, x) : gpb_cp_async4(at, x);
            }
        }
    }
};

#endif
