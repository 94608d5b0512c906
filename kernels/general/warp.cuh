/* SPDX-License-Identifier: MIT */
/* How a warp multiplies its WM x WN part of a tile, for each type: which elements its lanes read from shared
   memory (LA, LB: gpb_side_layout), what they do with them, and where their sums lie in C. A k tile is
   multiplied in STEPS of DEPTH q. What a step needs first is read during the step before, in the last one
   behind `turn`, which goes to the next k tile. `copy` issues copies of a k tile further on, a few at a time:
   all at once they would delay the multiplications behind them (H200, d, NN at 4096: 48 TFLOP/s).

   offset_a and offset_b are where a lane's first elements lie, which a thread computes once. Lanes are
   numbered lane = 4 g + t. A `unit` is 16 bytes of neighbouring rows of one column of C, which a lane has
   whole, so that a warp stores whole lines. */
#ifndef GPB_GENERAL_WARP_CUH
#define GPB_GENERAL_WARP_CUH

#include "kernels/element.cuh"
#include "kernels/fragments.cuh"
#include "kernels/general/ptx_general.cuh"

/* A number that the compiler knows, to index registers by. */
template <int N> struct gpb_number {
    static constexpr int value = N;
};
/* does(gpb_number<FROM>), ..., does(gpb_number<TO - 1>). `#pragma unroll` is only a wish. */
template <int FROM, int TO, class DOES> static __device__ __forceinline__ void gpb_each_number(DOES does)
{
    if constexpr (FROM < TO) {
        does(gpb_number<FROM>());
        gpb_each_number<FROM + 1, TO>(does);
    }
}

/* Sums of MB x NB instructions in fragments of four, of which unit s (0, 1) is c[s] and c[2+s]. The fragments
   of op(A) are held for a step, and those of the next step are read during it. A fragment of op(B) is used by
   MB instructions only, so these come AHEAD of them into a ring of a few registers. */
template <class FRAGMENTS, int MB, int NB> struct gpb_dmma_warp : FRAGMENTS {
    using element = typename FRAGMENTS::element;
    static constexpr int ROWS = MB, COLS = NB * 2, TM = MB * 4, TN = NB;
    static constexpr int AHEAD = NB >= 4 ? 2 : 1, RING = 2 * AHEAD;
    static_assert(NB == 1 || NB % RING == 0, "a step begins where the ring does, or at its parity");
    double sum[NB][MB * 4] = {};
    double a[2][MB][4], b[RING][2];        /* a: of even and odd steps */

    __device__ __forceinline__ gpb_dmma_warp(const gpb_gemm_args &g) : FRAGMENTS(g.conj_a != 0, g.conj_b != 0)
    {
    }

    template <class LB> static __device__ __forceinline__ int offset_b()
    {
        return gpb_lane_g() * LB::PLACE + gpb_lane_t() * LB::Q;
    }
    template <class LA> __device__ __forceinline__ void read_a(double (&to)[MB][4], const element *as)
    {
#pragma unroll
        for (int x = 0; x < MB; x++)
            this->template load_a<LA>(to[x], as + x * FRAGMENTS::HIGH * LA::PLACE);
    }
    /* Before the first step. */
    template <class LA, class LB> __device__ __forceinline__ void begin(const element *as, const element *bs)
    {
        read_a<LA>(a[0], as);
#pragma unroll
        for (int y = 0; y < AHEAD; y++) this->template load_b<LB>(b[y], bs + y * 8 * LB::PLACE);
    }

    /* Slots of a k tile in which copies may be issued, all of them before `turn`. */
    template <int STEPS> static constexpr int SLOTS = STEPS * NB - AHEAD;

    template <int STEP, int STEPS, class LA, class LB, bool, class COPY, class TURN>
    __device__ __forceinline__ void step(const element *&as, const element *&bs, COPY copy, TURN turn)
    {
        constexpr int NEXT = (STEP + 1) % STEPS * FRAGMENTS::DEPTH, NOW = STEP * FRAGMENTS::DEPTH;
        double(&now)[MB][4] = a[STEP % 2];
        static_assert(STEPS % 2 == 0, "the first step is even");
#pragma unroll
        for (int x = 0; x < MB; x++) this->complete_a(now[x]);
        gpb_each_number<0, NB>([&](auto number) __attribute__((always_inline)) {
            constexpr int y = decltype(number)::value, at = STEP * NB + y, ahead = y + AHEAD;
            if constexpr (y == NB - AHEAD) {
                if constexpr (STEP == STEPS - 1) turn();
                read_a<LA>(a[(STEP + 1) % 2], as + NEXT * LA::Q);
            }
            if constexpr (at < SLOTS<STEPS>) copy(gpb_number<at>());
            this->template load_b<LB>(b[(at + AHEAD) % RING], bs + (ahead < NB ? NOW : NEXT) * LB::Q
                                                                  + ahead % NB * 8 * LB::PLACE);
#pragma unroll
            for (int x = 0; x < MB; x++) gpb_dmma(&sum[y][4 * x], now[x], b[at % RING]);
        });
    }

    __device__ __forceinline__ double2 unit(int row, int col) const
    {
        const double *c = &sum[col / 2][row * 4 + col % 2];
        return this->finish(c[0], c[2]);
    }
    static __device__ __forceinline__ int col(int y) { return y / 2 * 8 + 2 * gpb_lane_t() + y % 2; }
};

/* SPLIT: op(B) is SPLIT (copy.cuh). Of c alone. */
template <class T, int WM, int WN, bool SPLIT = false> struct gpb_warp;

template <int WM, int WN>
struct gpb_warp<double, WM, WN, false> : gpb_dmma_warp<gpb_real_fragments, WM / 16, WN / 8> {
    static_assert(WM % 16 == 0 && WN % 8 == 0, "whole fragments");
    using gpb_dmma_warp<gpb_real_fragments, WM / 16, WN / 8>::gpb_dmma_warp;
};

template <int WM, int WN>
struct gpb_warp<double2, WM, WN, false> : gpb_dmma_warp<gpb_complex_fragments, WM / 8, WN / 8> {
    static_assert(WM % 8 == 0 && WN % 8 == 0, "whole fragments");
    using gpb_dmma_warp<gpb_complex_fragments, WM / 8, WN / 8>::gpb_dmma_warp;
};

/* Complex numbers of FP32, by FMAs. Lanes lie LM x LN over the part, and each has two neighbouring rows and
   two neighbouring columns at a time. Signs cost issue slots here. So if both operands are conjugated, or
   op(B) alone, the sums are the conjugates of what C needs, and MIXED says whether one operand is conjugated
   and the other is not: conj(a) b.

   Registers lie in two banks, even and odd ones, and each bank gives an FMA one operand a clock. So an FMA
   takes one clock if one of its factors is still in the operand cache and the other one is not in the bank of
   the sum. Numbers that are read side by side have real parts in even registers, imaginary parts in odd ones.
   If both operands do, re c has no bank: it may not lie with re a and re b, nor with im a and im b. (The SASS
   has two stalls in three FMAs.) If op(B) is SPLIT, both parts of a number of an even column are in even
   registers, of an odd column in odd ones. Then sums of even columns go to odd registers, those of odd
   columns to even ones, and a part of op(A) stays in the cache while it meets all of op(B) (one stall in four
   FMAs). Which bank a sum gets is up to the compiler. Stores of sums in twos or fours mislead it, so there
   are none before alpha (ffma/thread_layout.cuh, ffma/streamk.cuh). */
template <int WM, int WN, bool SPLIT> struct gpb_warp<float2, WM, WN, SPLIT> {
    static constexpr int DEPTH = 1, LN = WN >= 4 * WM ? 16 : WM >= 4 * WN ? 2 : 4, LM = 32 / LN;
    static constexpr int TM = WM / LM, TN = WN / LN, ROWS = TM / 2, COLS = TN;
    static_assert(TM % 2 == 0 && TN % 2 == 0 && LM * LN == 32, "pairs of rows and columns");
    const gpb_gemm_args &g;
    float2 sum[TN][TM] = {};
    struct fragment {
        float2 a[TM], b[TN];
    };
    fragment even, odd;                    /* of even and odd steps */

    __device__ __forceinline__ gpb_warp(const gpb_gemm_args &g) : g(g) {}
    static constexpr bool TWICE = false;
    template <class> static __device__ __forceinline__ int offset_a() { return gpb_thread() % LM * 2; }
    template <class> static __device__ __forceinline__ int offset_b() { return gpb_thread() % 32 / LM * 2; }

    template <int STEP, bool TWOS, int N>
    static __device__ __forceinline__ void read_side(float2 (&to)[N], const float2 *from)
    {
#pragma unroll
        for (int x = 0; x < N; x += 2) {
            const float4 v = *(const float4 *)(from + x / 2 * STEP);
            to[x] = make_float2(v.x, TWOS ? v.z : v.y);
            to[x + 1] = make_float2(TWOS ? v.y : v.z, v.w);
        }
    }
    static __device__ __forceinline__ void read(fragment &f, const float2 *as, const float2 *bs)
    {
        read_side<2 * LM, false>(f.a, as);
        read_side<2 * LN, SPLIT>(f.b, bs);
    }
    /* Before the first step. */
    template <class, class> __device__ __forceinline__ void begin(const float2 *as, const float2 *bs)
    {
        read(even, as, bs);
    }

    template <int STEPS> static constexpr int SLOTS = STEPS;

    template <int STEP, int STEPS, class LA, class LB, bool MIXED, class COPY, class TURN>
    __device__ __forceinline__ void step(const float2 *&as, const float2 *&bs, COPY copy, TURN turn)
    {
        constexpr int NEXT = (STEP + 1) % STEPS;
        static_assert(STEPS % 2 == 0, "the first step is even");
        copy(gpb_number<STEP>());
        if (STEP == STEPS - 1) turn();
        read(STEP % 2 ? even : odd, as + NEXT * LA::Q, bs + NEXT * LB::Q);
        multiply<MIXED>(STEP % 2 ? odd : even);
    }

    /* Each part of a sum is one chain of FMAs, of which those with op(A)'s real part come first. */
    template <bool MIXED> __device__ __forceinline__ void multiply(const fragment &f)
    {
        auto first_re = [&](int x, int y) __attribute__((always_inline)) {
            sum[y][x].x = __fmaf_rn(f.a[x].x, f.b[y].x, sum[y][x].x);
        };
        auto first_im = [&](int x, int y) __attribute__((always_inline)) {
            sum[y][x].y = __fmaf_rn(f.a[x].x, f.b[y].y, sum[y][x].y);
        };
        auto second_re = [&](int x, int y) __attribute__((always_inline)) {
            sum[y][x].x = __fmaf_rn(MIXED ? f.a[x].y : -f.a[x].y, f.b[y].y, sum[y][x].x);
        };
        auto second_im = [&](int x, int y) __attribute__((always_inline)) {
            sum[y][x].y = __fmaf_rn(MIXED ? -f.a[x].y : f.a[x].y, f.b[y].x, sum[y][x].y);
        };
        if constexpr (SPLIT) {
            /* Back and forth: op(B)'s part stays where op(A)'s part changes. Real parts of op(A) change at
               column 0 and imaginary ones at the last column, where they and the sums are in other banks. */
#pragma unroll
            for (int x = 0; x < TM; x++)
#pragma unroll
                for (int z = 0; z < 2 * TN; z++) {
                    const int v = x % 2 ? 2 * TN - 1 - z : z;
                    if (v < TN) first_re(x, v);
                    else first_im(x, 2 * TN - 1 - v);
                }
#pragma unroll
            for (int x = 0; x < TM; x++)
#pragma unroll
                for (int z = 0; z < 2 * TN; z++) {
                    const int v = x % 2 ? 2 * TN - 1 - z : z;
                    if (v < TN) second_re(x, TN - 1 - v);
                    else second_im(x, v - TN);
                }
        } else {
#pragma unroll
            for (int y = 0; y < TN; y++)
#pragma unroll
                for (int z = 0; z < TM; z++) {
                    const int x = y % 2 ? TM - 1 - z : z;
                    first_re(x, y);
                    first_im(x, y);
                    second_re(x, y);
                    second_im(x, y);
                }
        }
    }

    __device__ __forceinline__ float4 unit(int row, int col) const
    {
        const float flip = g.conj_b ? -1 : 1;
        const float2 v = sum[col][2 * row], w = sum[col][2 * row + 1];
        return make_float4(v.x, __fmaf_rn(v.y, flip, 0), w.x, __fmaf_rn(w.y, flip, 0));
    }
    static __device__ __forceinline__ int row(int x) { return x * 2 * LM + offset_a<void>(); }
    static __device__ __forceinline__ int col(int y) { return y / 2 * 2 * LN + offset_b<void>() + y % 2; }
};

#endif
