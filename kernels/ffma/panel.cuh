/* SPDX-License-Identifier: MIT */
/* One operand on its way into shared memory, slice by slice, by cp.async: EDGE rows of op(A) or columns of op(B), BK deep, to
   to[place + q*LD]. Any strides, any alignment, nothing is packed beforehand. */
#ifndef GPB_FFMA_PANEL_CUH
#define GPB_FFMA_PANEL_CUH

#include "kernels/ffma/ptx_ffma.cuh"
#include "kernels/tile.cuh"

/* How a slice is copied. WIDE: 16 bytes along the edge, for operands that are contiguous and aligned there. ALONG: 4 bytes along the edge.
   DEEP: 4 bytes along k, transposed on the way. QUADS: 16 bytes along k, for operands that are contiguous and aligned there: by way of
   registers, in which four q are taken apart. A copy of 4 bytes takes one slot of the warp for itself and, with reads of fragments before
   it, three more that the compiler leaves empty: 32 for the 8 floats of a thread's share of a slice, where two loads and eight stores take
   ten. */
enum gpb_way { GPB_WIDE, GPB_ALONG, GPB_DEEP, GPB_QUADS };
/* The same direction, 4 bytes at a time. */
static __device__ __forceinline__ gpb_way gpb_by_4(gpb_way way) { return way == GPB_WIDE ? GPB_ALONG : way == GPB_QUADS ? GPB_DEEP : way; }

/* An operand as a tile sees it: strides along the edge and along k; rows (or columns) that are within the matrix, at most EDGE matter. */
struct gpb_side {
    const float *base;
    const int64_t &along, &deep;
    int64_t edge;
};

/* The way for slices that begin at depth `first`. */
template <int EDGE, bool QUADS> static __device__ __forceinline__ gpb_way gpb_way_of(const gpb_side &s, unsigned first)
{
    if (s.along != 1)
        return QUADS && s.deep == 1 && ((uintptr_t)(s.base + first) & 15) == 0 && (s.along & 3) == 0 ? GPB_QUADS : GPB_DEEP;
    const bool aligned = ((uintptr_t)(s.base + first * s.deep) & 15) == 0 && (s.deep & 3) == 0;
    return aligned && (s.edge >= EDGE || s.edge % 4 == 0) ? GPB_WIDE : GPB_ALONG;
}

/* Floats from one q to the next in shared memory. 4 more than the edge: eight threads side by side in k, and four such groups along the
   edge, store to 32 different banks; 16-byte reads stay aligned. */
template <int EDGE> constexpr int gpb_panel_ld = EDGE + 4;

/* The first slice, of which `depth` are within k: the rest is zero. DEEP: threads side by side take neighbours along k. */
template <int EDGE, int BK, int THREADS, bool DEEP>
static __device__ __forceinline__ void gpb_panel_first(const gpb_side &side, float *buffer, unsigned depth)
{
#pragma unroll 1
    for (int x = gpb_thread(); x < EDGE * BK; x += THREADS) {
        const int row = DEEP ? x / BK : x % EDGE, q = DEEP ? x % BK : x / EDGE;
        if (q >= depth)
            buffer[row + q * gpb_panel_ld<EDGE>] = 0;
        else if (row < side.edge)
            gpb_cp_async4(buffer + row + q * gpb_panel_ld<EDGE>, side.base + row * side.along + q * side.deep);
    }
}

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

    __device__ __forceinline__ void first(float *buffer, unsigned depth)
    {
        gpb_panel_first<EDGE, BK, THREADS, WAY == GPB_DEEP>(side, buffer, depth);
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

/* Lanes side by side take the quads of a row: a warp's stores of one q then go to 32 different banks (BK = 8: 16 rows, and 4 * LD is 16
   banks further on). */
template <int EDGE, int BK, int THREADS> struct gpb_panel<GPB_QUADS, EDGE, BK, THREADS> {
    static constexpr int LD = gpb_panel_ld<EDGE>, LANES = BK / 4, STEP = THREADS / LANES, COPIES = EDGE / STEP;
    static_assert(COPIES * STEP == EDGE && COPIES <= 32, "threads must share the slice evenly");

    const gpb_side &side;
    const float *from;
    unsigned within, to;
    float held[4];                         /* on its way */

    __device__ __forceinline__ gpb_panel(const gpb_side &side) : side(side), held{}
    {
        const int thread = gpb_thread(), row = thread / LANES, q = thread % LANES * 4;
        from = side.base + row * side.along + q;
        to = (row + q * LD) * 4;
        within = 0;
#pragma unroll
        for (int x = 0; x < COPIES; x++)
            within |= (unsigned)(row + x * STEP < side.edge) << x;
    }

    __device__ __forceinline__ void first(float *buffer, unsigned depth)
    {
        gpb_panel_first<EDGE, BK, THREADS, true>(side, buffer, depth);
        from += depth;
    }

    /* A copy is loaded in the first of the parts that fall to it, and stored in the last. All in one: nobody would wait for the loads to
       come, so 4 bytes at a time. */
    template <int PARTS> __device__ __forceinline__ void part(unsigned buffer, int number)
    {
        constexpr int EACH = PARTS / COPIES;
        static_assert(PARTS == 1 || (EACH > 1 && EACH * COPIES == PARTS), "a part to load, one to store");
        if constexpr (PARTS == 1) {
#pragma unroll
            for (int x = 0; x < 4 * COPIES; x++)
                gpb_cp_async4_if(within & 1u << x / 4, buffer + to + (x / 4 * STEP + x % 4 * LD) * 4,
                                 from + x / 4 * STEP * side.along + x % 4);
        } else {
            const int x = number / EACH;
            if (number % EACH == 0)
                gpb_load16_if(within & 1u << x, held, from + x * STEP * side.along);
            if (number % EACH == EACH - 1)
#pragma unroll
                for (int q = 0; q < 4; q++)
                    gpb_store_shared(buffer + to + (x * STEP + q * LD) * 4, held[q]);
        }
        if (number == PARTS - 1)
            from += BK;
    }
};

#endif
