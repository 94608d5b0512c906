/* SPDX-License-Identifier: MIT */
/* How a warp multiplies its WM x WN part of a tile, for each type: which elements its lanes read from shared
   memory (as[i + q*LDA], bs[j + q*LDB]), what they do with them, and where their sums lie in C.

   offset_a and offset_b are where a lane's first elements lie, which a thread computes once. Lanes are
   numbered lane = 4 g + t. A `unit` is 16 bytes of neighbouring rows of one column of C, which a
   lane has whole, so that a warp stores whole lines. */
#ifndef GPB_GENERAL_WARP_CUH
#define GPB_GENERAL_WARP_CUH

#include "kernels/element.cuh"
#include "kernels/general/ptx_general.cuh"

static __device__ __forceinline__ int gpb_lane_g() { return gpb_thread() % 32 / 4; }
static __device__ __forceinline__ int gpb_lane_t() { return gpb_thread() % 4; }

/* Both DMMA forms have their sums in 16 x 8 fragments of four. Unit s (0, 1) of a fragment is its c[s] and
   c[2+s]. */
template <int MB, int NB> struct gpb_dmma_sums {
    static constexpr int ROWS = MB, COLS = NB * 2, TM = MB * 4, TN = NB;
    double sum[NB][MB * 4] = {};
    __device__ __forceinline__ double2 unit(int row, int col) const
    {
        const double *c = &sum[col / 2][row * 4 + col % 2];
        return make_double2(c[0], c[2]);
    }
};

template <class T, int WM, int WN> struct gpb_warp;

/* Real numbers. Rows 2g and 2g+1 of 16 are what the instruction calls rows g and g+8, so one 16-byte read
   gives both and C has them side by side. If WN allows it, columns 2g and 2g+1 of 16 are column g of two
   instructions likewise. k may be permuted at will. */
template <int WM, int WN> struct gpb_warp<double, WM, WN> : gpb_dmma_sums<WM / 16, WN / 8> {
    static constexpr int DEPTH = 8, MB = WM / 16, NB = WN / 8;
    static constexpr bool PAIRED = NB % 2 == 0;
    static_assert(WM % 16 == 0 && WN % 8 == 0, "whole fragments");
    struct fragment {
        double a[MB][4], b[NB][2];
    };

    __device__ __forceinline__ gpb_warp(const gpb_gemm_args &) {}

    static __device__ __forceinline__ int offset_a(int lda) { return 2 * gpb_lane_g() + gpb_lane_t() * lda; }
    static __device__ __forceinline__ int offset_b(int ldb)
    {
        return (PAIRED ? 2 : 1) * gpb_lane_g() + gpb_lane_t() * ldb;
    }

    template <int LDA, int LDB>
    static __device__ __forceinline__ void read(fragment &f, const double *as, const double *bs)
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
#pragma unroll
            for (int x = 0; x < MB; x++) {
                const double2 v = *(const double2 *)(as + 16 * x + 4 * h * LDA);
                f.a[x][2 * h] = v.x;
                f.a[x][2 * h + 1] = v.y;
            }
#pragma unroll
            for (int y = 0; y < NB; y += PAIRED ? 2 : 1)
                if constexpr (PAIRED) {
                    const double2 v = *(const double2 *)(bs + 8 * y + 4 * h * LDB);
                    f.b[y][h] = v.x;
                    f.b[y + 1][h] = v.y;
                } else {
                    f.b[y][h] = bs[8 * y + 4 * h * LDB];
                }
        }
    }

    template <bool MIXED> __device__ __forceinline__ void multiply(const fragment &f)
    {
#pragma unroll
        for (int y = 0; y < NB; y++)
#pragma unroll
            for (int x = 0; x < MB; x++) gpb_dmma(&this->sum[y][4 * x], f.a[x], f.b[y]);
    }

    static __device__ __forceinline__ int row(int x) { return 16 * x + 2 * gpb_lane_g(); }
    static __device__ __forceinline__ int col(int y)
    {
        const int n = y / 2, s = y % 2;
        return PAIRED ? n / 2 * 16 + 4 * gpb_lane_t() + 2 * s + n % 2 : n * 8 + 2 * gpb_lane_t() + s;
    }
};

/* Complex numbers: 8 x 8 x 4 of them are one real 16 x 8 x 8. Rows g of the instruction are real parts, rows
   g+8 imaginary parts; k from 0 on are real parts of op(B), k from 4 on imaginary parts. So A's fragment is
   (re, im, -im, re) and B's is (re, im) of one element, and a lane's sums are both parts of its elements. */
template <int WM, int WN> struct gpb_warp<double2, WM, WN> : gpb_dmma_sums<WM / 8, WN / 8> {
    static constexpr int DEPTH = 4, MB = WM / 8, NB = WN / 8;
    static_assert(WM % 8 == 0 && WN % 8 == 0, "whole fragments");
    const unsigned conj_a, conj_b;         /* 2^31: the sign of imaginary parts changes */
    struct fragment {
        double2 a[MB], b[NB];
    };

    __device__ __forceinline__ gpb_warp(const gpb_gemm_args &g)
        : conj_a(g.conj_a ? 1u << 31 : 0), conj_b(g.conj_b ? 1u << 31 : 0)
    {
    }

    static __device__ __forceinline__ int offset_a(int lda) { return gpb_lane_g() + gpb_lane_t() * lda; }
    static __device__ __forceinline__ int offset_b(int ldb) { return gpb_lane_g() + gpb_lane_t() * ldb; }

    template <int LDA, int LDB>
    static __device__ __forceinline__ void read(fragment &f, const double2 *as, const double2 *bs)
    {
#pragma unroll
        for (int x = 0; x < MB; x++) f.a[x] = as[8 * x];
#pragma unroll
        for (int y = 0; y < NB; y++) f.b[y] = bs[8 * y];
    }

    template <bool MIXED> __device__ __forceinline__ void multiply(const fragment &f)
    {
        double b[NB][2];
#pragma unroll
        for (int y = 0; y < NB; y++) {
            b[y][0] = f.b[y].x;
            b[y][1] = gpb_with_sign(f.b[y].y, conj_b);
        }
#pragma unroll
        for (int x = 0; x < MB; x++) {
            const double im = gpb_with_sign(f.a[x].y, conj_a);
            const double a[4] = { f.a[x].x, im, gpb_with_sign(im, 1u << 31), f.a[x].x };
#pragma unroll
            for (int y = 0; y < NB; y++) gpb_dmma(&this->sum[y][4 * x], a, b[y]);
        }
    }

    static __device__ __forceinline__ int row(int x) { return 8 * x + gpb_lane_g(); }
    static __device__ __forceinline__ int col(int y) { return y / 2 * 8 + 2 * gpb_lane_t() + y % 2; }
};

/* Complex numbers of FP32, by FMAs. Lanes lie LM x LN over the part, and each has two neighbouring rows and
   two neighbouring columns at a time. Signs cost issue slots here. So if both operands are conjugated, or
   op(B) alone, the sums are the conjugates of what C needs, and MIXED says whether one operand is conjugated
   and the other is not: conj(a) b. */
template <int WM, int WN> struct gpb_warp<float2, WM, WN> {
    static constexpr int DEPTH = 1, LN = WN >= 4 * WM ? 16 : WM >= 4 * WN ? 2 : 4, LM = 32 / LN;
    static constexpr int TM = WM / LM, TN = WN / LN, ROWS = TM / 2, COLS = TN;
    static_assert(TM % 2 == 0 && TN % 2 == 0 && LM * LN == 32, "pairs of rows and columns");
    const unsigned flip;                   /* 2^31: the sign of the sums' imaginary parts changes */
    float2 sum[TN][TM] = {};
    struct fragment {
        float2 a[TM], b[TN];
    };

    __device__ __forceinline__ gpb_warp(const gpb_gemm_args &g) : flip(g.conj_b ? 1u << 31 : 0) {}
    static __device__ __forceinline__ int offset_a(int) { return gpb_thread() % LM * 2; }
    static __device__ __forceinline__ int offset_b(int) { return gpb_thread() % 32 / LM * 2; }

    template <int STEP, int N>
    static __device__ __forceinline__ void read_side(float2 (&to)[N], const float2 *from)
    {
#pragma unroll
        for (int x = 0; x < N; x += 2) {
            const float4 v = *(const float4 *)(from + x / 2 * STEP);
            to[x] = make_float2(v.x, v.y);
            to[x + 1] = make_float2(v.z, v.w);
        }
    }
    template <int LDA, int LDB>
    static __device__ __forceinline__ void read(fragment &f, const float2 *as, const float2 *bs)
    {
        read_side<2 * LM>(f.a, as);
        read_side<2 * LN>(f.b, bs);
    }

    /* Each part of a sum is one chain of FMAs. */
    template <bool MIXED> __device__ __forceinline__ void multiply(const fragment &f)
    {
#pragma unroll
        for (int y = 0; y < TN; y++)
#pragma unroll
            for (int z = 0; z < TM; z++) {
                const int x = y % 2 ? TM - 1 - z : z;
                float2 &c = sum[y][x];
                c.x = __fmaf_rn(f.a[x].x, f.b[y].x, c.x);
                c.y = __fmaf_rn(f.a[x].x, f.b[y].y, c.y);
                c.x = __fmaf_rn(MIXED ? f.a[x].y : -f.a[x].y, f.b[y].y, c.x);
                c.y = __fmaf_rn(MIXED ? -f.a[x].y : f.a[x].y, f.b[y].x, c.y);
            }
    }

    __device__ __forceinline__ float4 unit(int row, int col) const
    {
        const float2 v = sum[col][2 * row], w = sum[col][2 * row + 1];
        return make_float4(v.x, gpb_with_sign(v.y, flip), w.x, gpb_with_sign(w.y, flip));
    }
    static __device__ __forceinline__ int row(int x) { return x * 2 * LM + offset_a(0); }
    static __device__ __forceinline__ int col(int y) { return y / 2 * 2 * LN + offset_b(0) + y % 2; }
};

#endif
