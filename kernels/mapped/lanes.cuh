/* SPDX-License-Identifier: MIT */
/* What the lanes of a warp read of a slab, and which results they have.
   A slab is as many k of an operand as 128 bytes have elements (d 16, z 8): lines of 128 bytes in a 128-byte
   swizzle, so the 16 bytes `chunk` of a line are at line * 128 + (chunk ^ line % 8) * 16.
     along k     a line is a place (a row of op(A), a column of op(B)) and has the k of the slab
     along edge  a line is a k and has as many places; so many such lines, then the next places
   Lanes are lane = 4 g + t. Which k a lane's four of an instruction are does not matter, as long as both
   operands agree. */
#ifndef GPB_MAPPED_LANES_CUH
#define GPB_MAPPED_LANES_CUH

#include "kernels/element.cuh"
#include "kernels/gemm_args.h"

enum gpb_along { GPB_MAPPED_EDGE, GPB_MAPPED_K };

template <class V> static __device__ __forceinline__ V gpb_shared_at(unsigned at)
{
    return *(const V *)__cvta_shared_to_generic(at);
}

struct gpb_lane {
    static constexpr int LINE = 128;
    static __device__ __forceinline__ int g() { return threadIdx.x % 32 / 4; }
    static __device__ __forceinline__ int t() { return threadIdx.x % 4; }
    static __device__ __forceinline__ unsigned at(int line, int chunk)
    {
        return (unsigned)(line * LINE + (chunk ^ line % 8) * 16);
    }
};

/* HIGH: rows of op(A) in an instruction. UNITS: a lane's sums lie in C in whole units of 16 bytes, c[0] with
   c[2] and c[1] with c[3]. at_a, at_b: shared-memory addresses of the warp's part of the first slab. */
template <class T, gpb_along A, gpb_along B> struct gpb_lanes;

/* Real numbers. PAIRED: lane t has k 2t, 2t+1, 8+2t, 9+2t, so 16 bytes along k are two k of op(B), and lines
   of an operand along the edge are read from all banks. Else t, 4+t, 8+t, 12+t: then op(A) along k, which
   comes 8 bytes at a time because its registers lie that way, is read from all banks, too. Only where op(A)
   is along k and op(B) along the edge can there not be both: there nvcc reads 16 bytes of op(A) and moves
   registers. Rows and columns of an instruction are places in an order that makes it so. */
template <gpb_along A, gpb_along B> struct gpb_lanes<double, A, B> : gpb_lane {
    static constexpr bool PAIRED = A == GPB_MAPPED_EDGE || B == GPB_MAPPED_EDGE, UNITS = A == GPB_MAPPED_EDGE;
    static constexpr int HIGH = 16, NA = A == GPB_MAPPED_EDGE ? 2 : 4,
                         NB = B == GPB_MAPPED_K && PAIRED ? 2 : 4;
    unsigned a[NA], b[NB];                 /* addresses, which all slabs and steps have in common */

    /* The place, among 8, of row or column x of an instruction, along k. */
    static __device__ __forceinline__ int place(int x)
    {
        return PAIRED ? 4 * (x & 1) + (x >> 1) : 2 * (x & 3) + (x >> 2);
    }
    /* The lane's h-th k on a line along k. */
    static __device__ __forceinline__ unsigned at_k(int line, int h)
    {
        return PAIRED ? at(line, t() + h / 2 * 4) + h % 2 * 8 : at(line, 2 * h + t() / 2) + t() % 2 * 8;
    }

    __device__ __forceinline__ gpb_lanes(const gpb_gemm_args &, unsigned at_a, unsigned at_b)
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
    __device__ __forceinline__ void complete_a(double (&)[8]) const {}
    static __device__ __forceinline__ double2 unit(const gpb_gemm_args &, double x, double y)
    {
        return make_double2(x, y);
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

/* Complex numbers: 8 x 8 x 8 of them are one real 16 x 8 x 16. Rows g of the instruction are real parts, rows
   g+8 imaginary parts. Lane t has the complex k 2t and 2t+1, of each the real and the imaginary part of
   op(B). So A's registers are (re, im, -im, re) of one element, then of the next, and a lane's sums are both
   parts of its elements. Signs are those of general/warp.cuh. Line and chunk are g and 2t+h, in one order or
   the other. Eight lanes that read together have two g, of which one is odd, and four t, so they read from
   all banks in either direction. */
template <gpb_along A, gpb_along B> struct gpb_lanes<double2, A, B> : gpb_lane {
    static constexpr bool UNITS = true;
    static constexpr int HIGH = 8;
    unsigned a[2], b[2];
    unsigned third, fourth;                /* 2^31 if a sign changes: of a register after im, of the next */

    template <gpb_along X> static __device__ __forceinline__ unsigned at_h(int h)
    {
        return X == GPB_MAPPED_K ? at(g(), 2 * t() + h) : at(2 * t() + h, g());
    }
    __device__ __forceinline__ gpb_lanes(const gpb_gemm_args &args, unsigned at_a, unsigned at_b)
        : a{ at_a + at_h<A>(0), at_a + at_h<A>(1) }, b{ at_b + at_h<B>(0), at_b + at_h<B>(1) },
          third(!args.conj_a == !args.conj_b ? 1u << 31 : 0), fourth(third ^ 1u << 31)
    {
    }
    __device__ __forceinline__ void read_a(double (&to)[8], unsigned slab, int x) const
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const double2 v = gpb_shared_at<double2>(slab + a[h] + x * 8 * LINE);
            to[4 * h] = v.x;
            to[4 * h + 1] = v.y;
        }
    }
    __device__ __forceinline__ void read_b(double (&to)[4], unsigned slab, int y) const
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const double2 v = gpb_shared_at<double2>(slab + b[h] + y * 8 * LINE);
            to[2 * h] = v.x;
            to[2 * h + 1] = v.y;
        }
    }
    /* Just before the instructions that use it. gpb_fresh: as in general/warp.cuh. */
    __device__ __forceinline__ void complete_a(double (&to)[8]) const
    {
#pragma unroll
        for (int h = 0; h < 8; h += 4) {
            to[h + 2] = gpb_fresh(gpb_with_sign(to[h + 1], third));
            to[h + 3] = gpb_fresh(gpb_with_sign(to[h], fourth));
        }
    }
    static __device__ __forceinline__ double2 unit(const gpb_gemm_args &args, double re, double im)
    {
        return make_double2(re, args.conj_a ? 0.0 - im : im);      /* not -im: a sum of 0 stays +0 */
    }
    static __device__ __forceinline__ int row(int x, int) { return 8 * x + g(); }
    static __device__ __forceinline__ int col(int y, int half) { return 8 * y + 2 * t() + half; }
};

#endif
