/* SPDX-License-Identifier: MIT */
/* Copies one operand into shared memory by cp.async, k tile by k tile: EDGE rows of op(A), or columns of
   op(B), BK deep, to to[place + q*LD]. Any strides, any alignment, and nothing is packed before. */
#ifndef GPB_FFMA_OPERAND_COPY_CUH
#define GPB_FFMA_OPERAND_COPY_CUH

#include "kernels/ffma/ptx_ffma.cuh"
#include "kernels/tile.cuh"

/* How a k tile is copied.
   MN_VEC4    16 bytes along the edge, for operands that are contiguous and aligned there
   MN_SCALAR  4 bytes along the edge
   K_MAJOR    4 bytes along k, transposed on the way */
enum gpb_copy_mode { GPB_MN_VEC4, GPB_MN_SCALAR, GPB_K_MAJOR };

/* An operand as a tile sees it: its strides along the edge and along k, and how many rows (or columns) lie
   within the matrix. Only the first EDGE of them matter. */
struct gpb_operand_view {
    const float *base;
    const int64_t &stride_mn, &stride_k;
    int64_t edge;
};

/* The mode for k tiles that begin at depth `first`. */
template <int EDGE>
static __device__ __forceinline__ gpb_copy_mode gpb_copy_mode_of(const gpb_operand_view &s, unsigned first)
{
    if (s.stride_mn != 1) return GPB_K_MAJOR;
    const bool aligned = ((uintptr_t)(s.base + first * s.stride_k) & 15) == 0 && (s.stride_k & 3) == 0;
    return aligned && (s.edge >= EDGE || s.edge % 4 == 0) ? GPB_MN_VEC4 : GPB_MN_SCALAR;
}

/* Floats from one q to the next in shared memory. 4 more than the edge, so that eight threads side by side in
   k, and four such groups along the edge, store to 32 different banks, and 16-byte reads stay aligned. */
template <int EDGE> constexpr int gpb_operand_ld = EDGE + 4;

template <gpb_copy_mode MODE, int EDGE, int BK, int THREADS> struct gpb_operand_copy {
    static constexpr int LD = gpb_operand_ld<EDGE>;
    /* LANES threads lie along the edge (K_MAJOR: along k) and STEP across. They copy a k tile in PASSES, with
       ROWS copies a thread in each. These copies are LANES apart, which is a constant of the instructions. */
    static constexpr int LANES = MODE == GPB_MN_VEC4     ? EDGE / 4
                                 : MODE == GPB_MN_SCALAR ? 32
                                                         : 8,
                         STEP = THREADS / LANES;
    static constexpr int ROWS = MODE == GPB_MN_VEC4 ? 1 : (MODE == GPB_MN_SCALAR ? EDGE : BK) / LANES;
    static constexpr int PASSES = ((MODE == GPB_K_MAJOR ? EDGE : BK) + STEP - 1) / STEP,
                         COPIES = ROWS * PASSES;
    static_assert(THREADS % LANES == 0 && COPIES <= 32, "threads must share the k tile evenly");

    const gpb_operand_view &side;
    const float *from;                     /* this thread's first element of the next pass */
    /* Bit x is set if copy x (MN_SCALAR: of a pass) is within the matrix and the k tile. */
    unsigned within;
    unsigned to;                           /* this thread's first float in a buffer, in bytes */

    __device__ __forceinline__ gpb_operand_copy(const gpb_operand_view &side) : side(side)
    {
        const int thread = gpb_thread(), fast = thread % LANES, slow = thread / LANES;
        const int row = MODE == GPB_MN_VEC4     ? fast * 4
                        : MODE == GPB_MN_SCALAR ? fast
                                                : slow,
                  q = MODE == GPB_K_MAJOR ? fast : slow;
        from = side.base + row * side.stride_mn + q * side.stride_k;
        to = (row + q * LD) * 4;
        within = 0;
#pragma unroll
        for (int x = 0; x < (MODE == GPB_K_MAJOR ? PASSES : ROWS); x++)
            within |= (unsigned)(row + x * (MODE == GPB_K_MAJOR ? STEP : LANES) < side.edge && q < BK) << x;
    }

    /* Copies the first k tile, which has `depth` k. The rest of it is zero. */
    __device__ __forceinline__ void first(float *buffer, unsigned depth)
    {
#pragma unroll 1
        for (int x = gpb_thread(); x < EDGE * BK; x += THREADS) {
            const int row = MODE == GPB_K_MAJOR ? x / BK : x % EDGE,
                      q = MODE == GPB_K_MAJOR ? x % BK : x / EDGE;
            if (q >= depth)
                buffer[row + q * LD] = 0;
            else if (row < side.edge)
                gpb_cp_async4(buffer + row + q * LD, side.base + row * side.stride_mn + q * side.stride_k);
        }
        from += depth * side.stride_k;
    }

    /* Copies part `number` of PARTS of a whole k tile to the buffer at that address. The parts of a k tile
       are asked for in order, each once. */
    template <int PARTS> __device__ __forceinline__ void part(unsigned buffer, int number)
    {
#pragma unroll
        for (int copy = number * COPIES / PARTS; copy < (number + 1) * COPIES / PARTS; copy++) {
            const int x = copy / ROWS, y = copy % ROWS;
            if (MODE == GPB_MN_VEC4)
                gpb_cp_async_if<16>(within, buffer + to + x * STEP * LD * 4, from);
            else if (MODE == GPB_MN_SCALAR)
                gpb_cp_async_if<4>(within & 1u << y, buffer + to + (y * LANES + x * STEP * LD) * 4,
                                   from + y * LANES);
            else
                gpb_cp_async_if<4>(within & 1u << x, buffer + to + (x * STEP + y * LANES * LD) * 4,
                                   from + y * LANES * side.stride_k);
            if (y == ROWS - 1) {
                if (MODE != GPB_K_MAJOR)
                    from += STEP * side.stride_k;
                else
                    from += x < PASSES - 1 ? STEP * side.stride_mn
                                           : BK * side.stride_k - (PASSES - 1) * STEP * side.stride_mn;
            }
        }
    }
};

#endif
