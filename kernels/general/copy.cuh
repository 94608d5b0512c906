/* SPDX-License-Identifier: MIT */
/* Copies one operand into shared memory by cp.async, k tile by k tile: EDGE rows of op(A), or columns of
   op(B), BK deep, to to[place + q*LD]. Any strides; any address that real numbers of the type may have.
   Nothing is packed before. FP64 arithmetic leaves most issue slots free, so the order of copying, along the
   edge or along k, is a matter of values and not of types: ffma/operand_copy.cuh has no time for that. */
#ifndef GPB_GENERAL_COPY_CUH
#define GPB_GENERAL_COPY_CUH

#include "kernels/general/ptx_general.cuh"
#include "kernels/tile.cuh"

/* What one cp.async copies.
   PAIR    two elements of 8 bytes that are neighbours along the edge, at a multiple of 16 bytes
   WHOLE   an element, at a multiple of its size
   HALVES  a complex number in two, for operands that lie at odd multiples of a real number's size */
enum gpb_unit { GPB_UNIT_PAIR, GPB_UNIT_WHOLE, GPB_UNIT_HALVES };

/* An operand as a tile sees it: its strides along the edge and along k, and how many rows (or columns) lie
   within the matrix. Only the first EDGE of them matter. */
template <class T> struct gpb_side {
    const T *base;
    const int64_t &stride_mn, &stride_k;
    int64_t edge;
};

/* The largest unit for k tiles that begin at depth `first`. Pairs never reach over the edge. */
template <int EDGE, class T>
static __device__ __forceinline__ gpb_unit gpb_unit_of(const gpb_side<T> &s, unsigned first)
{
    if (sizeof(T) > sizeof(gpb_real<T>) && (uintptr_t)s.base % sizeof(T)) return GPB_UNIT_HALVES;
    if (sizeof(T) == 16 || s.stride_mn != 1) return GPB_UNIT_WHOLE;
    const bool aligned = ((uintptr_t)(s.base + first * s.stride_k) & 15) == 0 && s.stride_k % 2 == 0;
    return aligned && (s.edge >= EDGE || s.edge % 2 == 0) ? GPB_UNIT_PAIR : GPB_UNIT_WHOLE;
}

/* Elements from one q to the next in shared memory: 32 bytes more than the edge, so that the 16-byte reads of
   warp.cuh, four q by two places for eight lanes, meet all banks, and copies along k do. */
template <class T, int EDGE> constexpr int gpb_side_ld = EDGE + 32 / (int)sizeof(T);

template <class T, gpb_unit UNIT, int EDGE, int BK, int THREADS> struct gpb_side_copy {
    static constexpr int LD = gpb_side_ld<T, EDGE>, BYTES = sizeof(T);
    /* Places along the edge, in units. A k tile is copied in OUTER x INNER copies a thread. Along the edge
       these are one sequence. Along k, DEEP threads lie side by side and the sequence is restarted for other
       rows. */
    static constexpr int PLACES = UNIT == GPB_UNIT_PAIR ? EDGE / 2 : EDGE;
    static constexpr int DEEP = THREADS / PLACES < 4 ? 4 : THREADS / PLACES, HIGH = THREADS / DEEP;
    static constexpr int OUTER = PLACES > HIGH ? PLACES / HIGH : 1, INNER = BK > DEEP ? BK / DEEP : 1,
                         COPIES = OUTER * INNER;
    static_assert(THREADS % PLACES == 0 || PLACES % THREADS == 0, "threads must share the k tile evenly");
    static_assert(PLACES <= THREADS && (PLACES % HIGH == 0 || PLACES < HIGH) && (BK % DEEP == 0 || DEEP > BK),
                  "threads must share the k tile evenly");

    const gpb_side<T> &side;
    const T *from;                         /* this thread's first element of the next k tile */
    int64_t step_in, step_out;             /* elements from one copy to the next; to the next sequence */
    unsigned to, to_in, to_out;            /* the same in shared memory, in bytes; `to` within a buffer */
    unsigned within;                       /* bit x: the rows of sequence x are within the matrix */

    __device__ __forceinline__ gpb_side_copy(const gpb_side<T> &side) : side(side)
    {
        const int thread = gpb_thread();
        const bool down = UNIT == GPB_UNIT_PAIR || side.stride_mn == 1;
        const int row = down ? thread % PLACES * (UNIT == GPB_UNIT_PAIR ? 2 : 1) : thread / DEEP,
                  q = down ? thread / PLACES : thread % DEEP;
        const int down_q = THREADS / PLACES;           /* q between copies along the edge */
        from = side.base + row * side.stride_mn + q * side.stride_k;
        to = (row + q * LD) * BYTES;
        step_in = (down ? down_q : DEEP) * side.stride_k;
        to_in = (down ? down_q : DEEP) * LD * BYTES;
        step_out = down ? INNER * step_in : HIGH * side.stride_mn;
        to_out = down ? INNER * to_in : HIGH * BYTES;
        within = 0;
#pragma unroll
        for (int x = 0; x < OUTER; x++)
            within |= (unsigned)(row + (down ? 0 : x * HIGH) < min(side.edge, (int64_t)EDGE) && q < BK) << x;
    }

    static __device__ __forceinline__ void copy(unsigned on, unsigned to, const T *from)
    {
        if (UNIT == GPB_UNIT_PAIR) {
            gpb_cp_async_if<16>(on, to, from);
        } else if (UNIT == GPB_UNIT_WHOLE) {
            gpb_cp_async_if<BYTES>(on, to, from);
        } else {
            gpb_cp_async_if<BYTES / 2>(on, to, from);
            gpb_cp_async_if<BYTES / 2>(on, to + BYTES / 2, (const char *)from + BYTES / 2);
        }
    }

    /* Copies the first k tile, which has `depth` k. The rest of it is zero. */
    __device__ __forceinline__ void first(T *buffer, unsigned depth)
    {
        using each = gpb_side_copy<T, UNIT == GPB_UNIT_HALVES ? UNIT : GPB_UNIT_WHOLE, EDGE, BK, THREADS>;
#pragma unroll 1
        for (unsigned x = gpb_thread(); x < EDGE * BK; x += THREADS) {
            const bool down = side.stride_mn == 1;
            const unsigned row = down ? x % EDGE : x / BK, q = down ? x / EDGE : x % BK;
            T *place = buffer + row + q * LD;
            if (q >= depth)
                *place = T();
            else
                each::copy(row < side.edge, gpb_shared_at(place),
                           side.base + row * side.stride_mn + q * side.stride_k);
        }
        from += depth * side.stride_k;
    }

    /* Copies part `number` of PARTS of a whole k tile to the buffer at that address. The parts of a k tile
       are asked for in order, each once. */
    template <int PARTS> __device__ __forceinline__ void part(unsigned buffer, int number)
    {
#pragma unroll
        for (int copy_x = number * COPIES / PARTS; copy_x < (number + 1) * COPIES / PARTS; copy_x++) {
            const int x = copy_x / INNER, y = copy_x % INNER;
            copy(within & 1u << x, buffer + to + x * to_out + y * to_in, from + x * step_out + y * step_in);
        }
        if (number == PARTS - 1) from += BK * side.stride_k;
    }
};

#endif
