/* SPDX-License-Identifier: MIT */
/* Copies one operand into shared memory by cp.async, k tile by k tile: EDGE rows of op(A), or columns of
   op(B), BK deep. Any strides; any address that real numbers of the type may have. Nothing is packed
   before. */
#ifndef GPB_GENERAL_COPY_CUH
#define GPB_GENERAL_COPY_CUH

#include "kernels/general/ptx_general.cuh"
#include "kernels/tile.cuh"

/* What one cp.async copies.
   PAIR    two elements of 8 bytes that are neighbours in memory, at a multiple of 16 bytes
   WHOLE   an element, at a multiple of its size
   HALVES  a complex number in two, for operands that lie at odd multiples of a real number's size, and for
           layouts that are SPLIT */
enum gpb_unit { GPB_UNIT_PAIR, GPB_UNIT_WHOLE, GPB_UNIT_HALVES };

/* How a k tile is read from memory: along the edge, where the operand is contiguous in that direction, or
   along k. EITHER is decided as the kernel runs. */
enum gpb_order { GPB_ALONG_EDGE, GPB_ALONG_K, GPB_ALONG_EITHER };

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
    const bool down = s.stride_mn == 1, across = s.stride_k == 1;
    if (sizeof(T) == 16 || (!down && !across)) return GPB_UNIT_WHOLE;
    const bool aligned = ((uintptr_t)(s.base + first * s.stride_k) & 15) == 0
                         && (down ? s.stride_k : s.stride_mn) % 2 == 0;
    return aligned && (!down || s.edge >= EDGE || s.edge % 2 == 0) ? GPB_UNIT_PAIR : GPB_UNIT_WHOLE;
}

/* Where element (place, q) of a k tile lies in shared memory: at place*PLACE + q*Q. In the order in which it
   comes, so that nothing is transposed on the way; with EITHER always along the edge. Rows are longer than
   what they hold, so that lanes 4 g + t, which read places g or 2g at q = t (warp.cuh), meet all banks: by 32
   bytes; along k, if places are 2g and elements have 8 bytes, by 16; if elements have 16 bytes, by 64.
   SPLIT: complex numbers in twos along the edge, the real parts of both before the imaginary parts of both
   (warp.cuh has why). The first of two lies where it would lie anyway. */
template <class T, gpb_order ORDER, int EDGE, int BK, bool TWICE, bool SPLIT_ = false>
struct gpb_side_layout {
    static constexpr bool K = ORDER == GPB_ALONG_K, SPLIT = SPLIT_;
    static constexpr int PAD = (!K ? 32 : sizeof(T) == 16 ? 64 : TWICE ? 16 : 32) / (int)sizeof(T);
    static constexpr int PLACE = K ? BK + PAD : 1, Q = K ? 1 : EDGE + PAD,
                         ELEMENTS = K ? EDGE * PLACE : BK * Q;
    static_assert(!SPLIT || !K, "twos lie along the edge");
    /* Where an element begins, in bytes; how many bytes further its second half does. */
    static constexpr int BYTES = sizeof(T), HALF = SPLIT ? BYTES : BYTES / 2;
    static __device__ __forceinline__ int at(int place, int q)
    {
        return (place * PLACE + q * Q) * BYTES - (SPLIT ? place % 2 * (BYTES / 2) : 0);
    }
};

template <class T, gpb_unit UNIT, gpb_order ORDER, class LAYOUT, int EDGE, int BK, int THREADS>
struct gpb_side_copy {
    static constexpr int BYTES = sizeof(T), WIDE = UNIT == GPB_UNIT_PAIR ? 2 : 1;
    /* Threads that lie side by side in memory, and the distance of a thread's copies across them. */
    static constexpr int LANES_EDGE = EDGE / WIDE, STEP_EDGE = THREADS / LANES_EDGE,
                         LANES_K = ORDER == GPB_ALONG_EITHER ? BK : BK / WIDE, STEP_K = THREADS / LANES_K;
    static constexpr int COPIES_EDGE = STEP_EDGE < BK ? BK / STEP_EDGE : 1,
                         COPIES_K = STEP_K < EDGE ? EDGE / STEP_K : 1;
    static constexpr int COPIES = ORDER == GPB_ALONG_EDGE ? COPIES_EDGE
                                  : ORDER == GPB_ALONG_K  ? COPIES_K
                                  : COPIES_EDGE > COPIES_K ? COPIES_EDGE : COPIES_K;
    static_assert(THREADS % LANES_EDGE == 0 && THREADS % LANES_K == 0 && COPIES <= 32,
                  "threads must share the k tile evenly");
    static_assert(!LAYOUT::SPLIT || (UNIT == GPB_UNIT_HALVES && STEP_K % 2 == 0),
                  "a thread has the first or the second of each two");

    const gpb_side<T> &side;
    const T *from;                         /* this thread's first element of the next k tile */
    int64_t step;                          /* elements from one copy to the next */
    unsigned to, to_step;                  /* the same in shared memory, in bytes; `to` within a buffer */
    unsigned within;                       /* bit x: copy x is within the matrix and the k tile */

    static __device__ __forceinline__ bool along_edge(const gpb_side<T> &side)
    {
        return ORDER == GPB_ALONG_EITHER ? side.stride_mn == 1 : ORDER == GPB_ALONG_EDGE;
    }

    __device__ __forceinline__ gpb_side_copy(const gpb_side<T> &side) : side(side)
    {
        const int thread = gpb_thread();
        const bool down = along_edge(side);
        const int place = down ? thread % LANES_EDGE * WIDE : thread / LANES_K,
                  q = down ? thread / LANES_EDGE : thread % LANES_K * (ORDER == GPB_ALONG_EITHER ? 1 : WIDE);
        from = side.base + place * side.stride_mn + q * side.stride_k;
        to = LAYOUT::at(place, q);
        step = down ? STEP_EDGE * side.stride_k : STEP_K * side.stride_mn;
        to_step = (down ? STEP_EDGE * LAYOUT::Q : STEP_K * LAYOUT::PLACE) * BYTES;
        within = 0;
#pragma unroll
        for (int x = 0; x < COPIES; x++) {
            const int place_x = down ? place : place + x * STEP_K, q_x = down ? q + x * STEP_EDGE : q;
            within |= (unsigned)(place_x < min(side.edge, (int64_t)EDGE) && q_x < BK) << x;
        }
    }

    static __device__ __forceinline__ void copy(unsigned on, unsigned to, const T *from)
    {
        if (UNIT == GPB_UNIT_HALVES) {
            gpb_cp_async_if<BYTES / 2>(on, to, from);
            gpb_cp_async_if<BYTES / 2>(on, to + LAYOUT::HALF, (const char *)from + BYTES / 2);
        } else {
            gpb_cp_async_if<WIDE * BYTES>(on, to, from);
        }
    }

    /* Copies the first k tile, which has `depth` k. The rest of it is zero. */
    __device__ __forceinline__ void first(T *buffer, unsigned depth)
    {
        using each = gpb_side_copy<T, UNIT == GPB_UNIT_HALVES ? UNIT : GPB_UNIT_WHOLE, ORDER, LAYOUT, EDGE,
                                   BK, THREADS>;
        const bool down = along_edge(side);
#pragma unroll 1
        for (unsigned x = gpb_thread(); x < EDGE * BK; x += THREADS) {
            const unsigned place = down ? x % EDGE : x / BK, q = down ? x / EDGE : x % BK;
            char *at = (char *)buffer + LAYOUT::at(place, q);
            if (q < depth)
                each::copy(place < side.edge, gpb_shared_address(at),
                           side.base + place * side.stride_mn + q * side.stride_k);
            else if (LAYOUT::SPLIT)
                *(gpb_real<T> *)at = *(gpb_real<T> *)(at + LAYOUT::HALF) = 0;
            else
                *(T *)at = T();
        }
        from += depth * side.stride_k;
    }

    /* Copies part `number` of PARTS of a whole k tile to the buffer at that address. The parts of a k tile
       are asked for in order, each once. */
    template <int PARTS> __device__ __forceinline__ void part(unsigned buffer, int number)
    {
#pragma unroll
        for (int x = number * COPIES / PARTS; x < (number + 1) * COPIES / PARTS; x++)
            copy(within & 1u << x, buffer + to + x * to_step, from + x * step);
        if (number == PARTS - 1) from += BK * side.stride_k;
    }
};

#endif
