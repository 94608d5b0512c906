/* SPDX-License-Identifier: MIT */
/* What the lanes of a warp read of a slab of double, and which results they have.
   A slab is 16 k of an operand: lines of 128 bytes in a 128-byte swizzle, so the 16 bytes `chunk` of a line
   are at line * 128 + (chunk ^ line % 8) * 16.
     along k     a line is a place (a row of op(A), a column of op(B)) and has 16 k
     along edge  a line is a k and has 16 places; 16 such lines, then the next 16 places
   Lanes are lane = 4 g + t. Which k a lane's four of an instruction are does not matter, as long as both
   operands agree. PAIRED: lane t has k 2t, 2t+1, 8+2t, 9+2t, so 16 bytes along k are two k of op(B), and
   lines of an operand along the edge are read from all banks. Else t, 4+t, 8+t, 12+t: then op(A) along k,
   which comes 8 bytes at a time because its registers lie that way, is read from all banks, too. Only where
   op(A) is along k and op(B) along the edge can there not be both: there nvcc reads 16 bytes of op(A) and
   moves registers. Rows and columns of an instruction are places in an order that makes it so. */
#ifndef GPB_MAPPED_LANES_CUH
#define GPB_MAPPED_LANES_CUH

#include "kernels/ptx.cuh"

enum gpb_along { GPB_MAPPED_EDGE, GPB_MAPPED_K };

template <class V> static __device__ __forceinline__ V gpb_shared_at(unsigned at)
{
    return *(const V *)__cvta_shared_to_generic(at);
}

/* at_a, at_b: shared-memory addresses of the warp's part of the first slab. */
template <gpb_along A, gpb_along B> struct gpb_lanes {
    static constexpr bool PAIRED = A == GPB_MAPPED_EDGE || B == GPB_MAPPED_EDGE;
    static constexpr int LINE = 128, NA = A == GPB_MAPPED_EDGE ? 2 : 4,
                         NB = B == GPB_MAPPED_K && PAIRED ? 2 : 4;
    unsigned a[NA], b[NB];                 /* addresses, which all slabs and steps have in common */

    static __device__ __forceinline__ int g() { return threadIdx.x % 32 / 4; }
    static __device__ __forceinline__ int t() { return threadIdx.x % 4; }
    /* The place, among 8, of row or column x of an instruction, along k. */
    static __device__ __forceinline__ int place(int x)
    {
        return PAIRED ? 4 * (x & 1) + (x >> 1) : 2 * (x & 3) + (x >> 2);
    }
    static __device__ __forceinline__ unsigned at(int line, int chunk)
    {
        return (unsigned)(line * LINE + (chunk ^ line % 8) * 16);
    }
    /* The lane's h-th k on a line along k. */
    static __device__ __forceinline__ unsigned at_k(int line, int h)
    {
        return PAIRED ? at(line, t() + h / 2 * 4) + h % 2 * 8 : at(line, 2 * h + t() / 2) + t() % 2 * 8;
    }

    __device__ __forceinline__ gpb_lanes(unsigned at_a, unsigned at_b)
    {
#pragma unroll
        for (int h = 0; h < NA; h++)
            a[h] = at_a + (A == GPB_MAPPED_EDGE ? at(2 * t() + h, g()) : at_k(place(g()), h));
#pragma unroll
        for (int h = 0; h < NB; h++)
            b[h] = at_b + (B == GPB_MAPPED_EDGE ? at(2 * t() + h % 2, g() / 2 + h / 2 * 4) + g() % 2 * 8
                           : PAIRED             ? at(place(g()), 4 * h + t())
                                                : at_k(place(g()), h));
    }
    /* Rows 16 x to 16 x + 15 of the warp's part of op(A). */
    __device__ __forceinline__ void read_a(double (&to)[8], unsigned slab, int x) const
    {
#pragma unroll
        for (int h = 0; h < 4; h++) {
            const unsigned from = slab + a[h % NA] + x * 16 * LINE;
            if (A == GPB_MAPPED_EDGE) {
                const double2 v = gpb_shared_at<double2>(from + h / 2 * 8 * LINE);
                to[2 * h] = v.x;
                to[2 * h + 1] = v.y;
            } else {
                to[2 * h] = gpb_shared_at<double>(from);
                to[2 * h + 1] = gpb_shared_at<double>(from + 8 * LINE);
            }
        }
    }
    /* Columns 8 y to 8 y + 7 of the warp's part of op(B). */
    __device__ __forceinline__ void read_b(double (&to)[4], unsigned slab, int y) const
    {
        if (B == GPB_MAPPED_K && PAIRED) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const double2 v = gpb_shared_at<double2>(slab + b[h % NB] + y * 8 * LINE);
                to[2 * h] = v.x;
                to[2 * h + 1] = v.y;
            }
        } else {
#pragma unroll
            for (int h = 0; h < 4; h++)
                to[h] = gpb_shared_at<double>(B == GPB_MAPPED_K
                    ? slab + b[h % NB] + y * 8 * LINE
                    : slab + b[(h % 2 + y % 2 * 2) % NB] + h / 2 * 8 * LINE + y / 2 * 16 * LINE);
        }
    }
    /* Rows of c[0] and c[2] of step x, columns of c[0] and c[1] of step y. Along the edge a lane's two rows
       are neighbours. */
    static __device__ __forceinline__ int row(int x, int half)
    {
        return 16 * x + (A == GPB_MAPPED_EDGE ? 2 * g() + half : place(g()) + 8 * half);
    }
    static __device__ __forceinline__ int col(int y, int half)
    {
        const int j = 2 * t() + half;
        return 8 * y + (B == GPB_MAPPED_EDGE ? j : place(j));
    }
};

#endif
