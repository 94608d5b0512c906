/* SPDX-License-Identifier: MIT */
/* How a warp's lanes share the operands of gpb_dmma, and its sums, for double and double complex numbers. LA
   and LB say how op(A) and op(B) lie in shared memory: neighbours in a column of op(A), or in a row of op(B),
   are PLACE elements apart, and the next q lies Q further. Lanes are numbered lane = 4 g + t. */
#ifndef GPB_FRAGMENTS_CUH
#define GPB_FRAGMENTS_CUH

#include "kernels/element.cuh"
#include "kernels/ptx_dmma.cuh"

static __device__ __forceinline__ int gpb_lane_g() { return gpb_thread() % 32 / 4; }
static __device__ __forceinline__ int gpb_lane_t() { return gpb_thread() % 4; }

/* The fragments of DMMA on real numbers. Rows 2g and 2g+1 of 16 are what the instruction calls rows g and
   g+8, so C has them side by side, and one 16-byte read gives both if they are neighbours here, in the
   order in which the instruction wants its registers. All else comes 8 bytes at a time, because two
   columns at once, or two q, would have to be taken apart. */
struct gpb_real_fragments {
    using element = double;
    static constexpr int DEPTH = 8, HIGH = 16;         /* q of a step; rows of a fragment */
    static constexpr bool TWICE = true;                /* lanes read rows 2g */

    __device__ __forceinline__ gpb_real_fragments(bool, bool) {}
    template <class LA> static __device__ __forceinline__ int offset_a()
    {
        return 2 * gpb_lane_g() * LA::PLACE + gpb_lane_t() * LA::Q;
    }

    template <class LA> static __device__ __forceinline__ void load_a(double (&to)[4], const double *as)
    {
        if constexpr (LA::PLACE == 1) {
            const double2 first = *(const double2 *)as, second = *(const double2 *)(as + 4 * LA::Q);
            to[0] = first.x;
            to[1] = first.y;
            to[2] = second.x;
            to[3] = second.y;
        } else {
            to[0] = as[0];
            to[1] = as[LA::PLACE];
            to[2] = as[4 * LA::Q];
            to[3] = as[4 * LA::Q + LA::PLACE];
        }
    }
    template <class LB> static __device__ __forceinline__ void load_b(double (&to)[2], const double *bs)
    {
        to[0] = bs[0];
        to[1] = bs[4 * LB::Q];
    }
    __device__ __forceinline__ void complete_a(double (&)[4]) const {}
    __device__ __forceinline__ double2 finish(double x, double y) const { return make_double2(x, y); }
    static __device__ __forceinline__ int row(int x) { return 16 * x + 2 * gpb_lane_g(); }
};

/* On complex numbers: 8 x 8 x 4 of them are one real 16 x 8 x 8. Rows g of the instruction are real parts,
   rows g+8 imaginary parts; k from 0 on are real parts of op(B), k from 4 on imaginary parts. So A's fragment
   is (re, im, -im, re) and B's is (re, im) of one element, and a lane's sums are both parts of its elements.
   With (re, im, im, -re) they are a conj(b). The other two conjugations are the conjugates of these. */
struct gpb_complex_fragments {
    using element = double2;
    static constexpr int DEPTH = 4, HIGH = 8;
    static constexpr bool TWICE = false;
    /* 2^31 if a sign changes: of a[2]; of a[3]. */
    const unsigned third, fourth;
    const bool flip;                       /* the sign of the sums' imaginary parts changes */

    __device__ __forceinline__ gpb_complex_fragments(bool conj_a, bool conj_b)
        : third(conj_a == conj_b ? 1u << 31 : 0), fourth(third ^ 1u << 31), flip(conj_a)
    {
    }
    template <class LA> static __device__ __forceinline__ int offset_a()
    {
        return gpb_lane_g() * LA::PLACE + gpb_lane_t() * LA::Q;
    }

    template <class> static __device__ __forceinline__ void load_a(double (&to)[4], const double2 *as)
    {
        const double2 x = *as;
        to[0] = x.x;
        to[1] = x.y;
    }
    template <class> static __device__ __forceinline__ void load_b(double (&to)[2], const double2 *bs)
    {
        const double2 x = *bs;
        to[0] = x.x;
        to[1] = x.y;
    }
    /* Not before the step, because the instructions before would wait for it. gpb_fresh, because the compiler
       would else make a copy of all four for each instruction that uses them; what comes from shared memory
       stays as it is for the same reason. */
    __device__ __forceinline__ void complete_a(double (&a)[4]) const
    {
        a[2] = gpb_fresh(gpb_with_sign(a[1], third));
        a[3] = gpb_fresh(gpb_with_sign(a[0], fourth));
    }
    __device__ __forceinline__ double2 finish(double re, double im) const
    {
        return make_double2(re, flip ? 0.0 - im : im);      /* not -im: a sum of 0 stays +0 */
    }
    static __device__ __forceinline__ int row(int x) { return 8 * x + gpb_lane_g(); }
};

#endif
