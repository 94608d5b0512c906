/* SPDX-License-Identifier: MIT */
/* One operand on its way into shared memory, slice by slice, by cp.async: EDGE rows of op(A) or columns of op(B), BK deep, to
   to[place + q*LD]. Any strides, any alignment, nothing is packed beforehand. */
#ifndef GPB_FFMA_PANEL_CUH
#define GPB_FFMA_PANEL_CUH

#include "kernels/ffma/ptx_ffma.cuh"
#include "kernels/tile.cuh"

/* How a slice is copied. WIDE: 16 bytes along the edge, for operands that are contiguous and aligned there. ALONG: 4 bytes along the edge.
   DEEP: 4 bytes along k, transposed on the way. */
enum gpb_way { GPB_WIDE, GPB_ALONG, GPB_DEEP };

/* An operand as a tile sees it: strides along the edge and along k; rows (or columns) that are within the matrix, at most EDGE matter. */
struct gpb_side {
    const float *base;
    const int64_t &along, &deep;
    int64_t edge;
};

/* The way for slices that begin at depth `first`. */
template <int EDGE> static __device__ __forceinline__ gpb_way gpb_way_of(const gpb_side &s, unsigned first)
{
    if (s.along != 1) return GPB_DEEP;
    const bool aligned = ((uintptr_t)(s.base + first * s.deep) & 15) == 0 && (s.deep & 3) == 0;
    return aligned && (s.edge >= EDGE || s.edge % 4 == 0) ? GPB_WIDE : GPB_ALONG;
}

/* Floats from one q to the next in shared memory. 4 more than the edge: eight threads side by side in k, and four such groups along the
   edge, store to 32 different banks; 16-byte reads stay aligned. */
template <int EDGE> constexpr int gpb_panel_ld = EDGE + 4;

template <gpb_way WAY, int EDGE, int BK, int THREADS> struct gpb_panel {
    static constexpr int LD = gpb_panel_ld<EDGE>;
    /* Threads lie LANES along the edge (DEEP: along k) and STEP across. A slice takes PASSES of them, each ROWS copies a thread, LANES
       apart, which are constants of the instructions. */
    static constexpr int LANES = WAY == GPB_WIDE ? EDGE / 4 : WAY == GPB_ALONG ? 32 : 8, STEP = THREADS / LANES;
    static constexpr int ROWS = WAY == GPB_WIDE ? 1 : (WAY == GPB_ALONG ? EDGE : BK) / LANES;
    static constexpr int PASSES = ((WAY == GPB_DEEP ? EDGE : BK) + STEP - 1) / STEP, COPIES = ROWS * PASSES;
    static_assert(THREADS % LANES == 0 && COPIES <= 32, "threads must share the slice evenly");

    const gpb_side &side;
    const float *from;                     /* this thread's next pass */
    unsigned within;                       /* bit x is set where copy x (ALONG: of a pass) is within the matrix and the slice */
    unsigned to;                           /* this thread's first float of a buffer, in bytes */

    __device__ __forceinline__ gpb_panel(const gpb_side &side) : side(side)
    {
        const int thread = gpb_thread(), fast = thread % LANES, slow = thread / LANES;
        const int row = WAY == GPB_WIDE ? fast * 4 : WAY == GPB_ALONG ? fast : slow, q = WAY == GPB_DEEP ? fast : slow;
        from = side.base + row * side.along + q * side.deep;
        to = (row + q * LD) * 4;
        within = 0;
#pragma unroll
        for (int x = 0; x < (WAY == GPB_DEEP ? PASSES : ROWS); x++)
            within |= (unsigned)(row + x * (WAY == GPB_DEEP ? STEP : LANES) < side.edge && q < BK) << x;
    }

    /* The first slice, of which `depth` are within k: the rest is zero. */
    __device__ __forceinline__ void first(float *buffer, unsigned depth)
    {
#pragma unroll 1
        for (int x = gpb_thread(); x < EDGE * BK; x += THREADS) {
            const int row = WAY == GPB_DEEP ? x / BK : x % EDGE, q = WAY == GPB_DEEP ? x % BK : x / EDGE;
            if (q >= depth)
                buffer[row + q * LD] = 0;
            else if (row < side.edge)
                gpb_cp_async4(buffer + row + q * LD, side.base + row * side.along + q * side.deep);
        }
        from += depth * side.deep;
    }

    /* Part `number` of PARTS of a whole slice, to the buffer at that address. The parts of a slice are asked for in order, each once. */
    template <int PARTS> __device__ __forceinline__ void part(unsigned buffer, int number)
    {
#pragma unroll
        for (int copy = number * COPIES / PARTS; copy < (number + 1) * COPIES / PARTS; copy++) {
            const int x = copy / ROWS, y = copy % ROWS;
            if (WAY == GPB_WIDE)
                gpb_cp_async16_if(within, buffer + to + x * STEP * LD * 4, from);
            else if (WAY == GPB_ALONG)
                gpb_cp_async4_if(within & 1u << y, buffer + to + (y * LANES + x * STEP * LD) * 4, from + y * LANES);
            else
                gpb_cp_async4_if(within & 1u << x, buffer + to + (x * STEP + y * LANES * LD) * 4, from + y * LANES * side.deep);
            if (y == ROWS - 1) {
                if (WAY != GPB_DEEP)
                    from += STEP * side.deep;
                else
                    from += x < PASSES - 1 ? STEP * side.along : BK * side.deep - (PASSES - 1) * STEP * side.along;
            }
        }
    }
};

#endif
