/* SPDX-License-Identifier: MIT */
/* Cholesky of one block and of the rows below it. Every thread block has all of the diagonal's block,
   because to factor it anew is faster than to wait for another, and some rows below: one for each thread, in
   shared memory.

   A pass is for eight columns. The last warp leads: it factors the next pass's part of the diagonal's block
   while the others take the columns of this pass out of theirs, because roots are a chain of latencies. In d
   a launch took 11.0 us behind another where it took 15.0 when each thread factored the part for itself (z:
   9.2 where 10.8; H200, 2026-11-27).

   Loops are short rather than unrolled, because a launch finds none of its instructions in the SM's cache and
   fetches them from memory, one line after the other. Whatever it did, a kernel of straight code took 11 ns
   for each instruction, 20 to 35 us for a launch (H100, 2026-11-26). And the kernel rehearses: it makes a
   first pass over nothing while the launch before it still runs, so that its instructions are there when its
   data are: 2 us a launch. */
#ifndef GPB_CHOLESKY_CUH
#define GPB_CHOLESKY_CUH

#include "kernels/ptx.cuh"
#include "kernels/solve/ptx_solve.cuh"
#include "kernels/solve/scalar.cuh"
#include "kernels/solve/tile.cuh"
#include "kernels/solve_args.h"

template <class T> struct gpb_cholesky_body {
    using real = gpb_real<T>;
    static constexpr int N = GPB_BLOCK_ORDER(sizeof(T)), PASS = GPB_CHOLESKY_PASS;
    static constexpr int ROWS = N + GPB_CHOLESKY_ROWS(sizeof(T)), STRIDE = GPB_CHOLESKY_STRIDE(sizeof(T));
    static_assert(ROWS + 32 == GPB_CHOLESKY_THREADS && N % PASS == 0 && PASS == 8, "what a block has");
    struct __align__(sizeof(T) < 16 ? 2 * sizeof(T) : 16) two { T x[2]; };
    struct layout {              /* of columns, for the fragments */
        static constexpr int PLACE = 1, Q = STRIDE;
    };

    T column[N][STRIDE];
    two part[PASS][PASS / 2];    /* L of the pass's rows, by the leader */
    real inverse[PASS];          /* 1 / the roots */
    real minor[PASS];            /* their squares */
    bool last;                   /* all others have read the diagonal's block: it may be overwritten */

    /* Elements of the row up to that column come to shared memory, where none is missed. A complex number may
       lie between multiples of its size. */
    __device__ __forceinline__ void fetch(const T *row, int64_t cs, int i, int most)
    {
        constexpr int REAL = sizeof(real);
#pragma unroll 1
        for (int j = 0; j <= most; j += 4)
#pragma unroll
            for (int next = j; next < j + 4; next++, row += cs)
#pragma unroll
                for (int piece = 0; piece < GPB_REALS<T>; piece++)
                    gpb_cp_async_if<REAL>(next <= most,
                                          gpb_shared_address((real *)&column[next][i] + piece),
                                          (const real *)row + piece);
        gpb_cp_async_commit();
        gpb_cp_async_wait<0>();
    }

    __device__ __forceinline__ two pair(int j, int row) const { return *(const two *)&column[j][row]; }

    /* The leader's lane has columns c, c+1 of row r of a part, as a tile's sums have them. */
    static __device__ __forceinline__ int lead_row() { return threadIdx.x % 32 / 4; }
    static __device__ __forceinline__ int lead_column() { return threadIdx.x % 4 * 2; }

    /* Takes the columns of the pass at `at` out of the part x at `first`. By FMAs it took 650 cycles in d. */
    __device__ __forceinline__ void lead_take(T (&x)[2], int first, int at) const
    {
        if constexpr (sizeof(real) == 8) {
            using tile = gpb_tile<T>;
            const tile of(true);
            double sums[4] = {};
#pragma unroll
            for (int e = 0; e < 2; e++) tile::set(sums, 0, e, x[e]);
#pragma unroll
            for (int q = 0; q < PASS; q += tile::DEPTH) {
                const T *row = &column[at + q + threadIdx.x % 4][first + lead_row()];
                double a[4], b[2];
                tile::template load_b<layout>(b, row);
                tile::row_alone(a, b);
                of.complete_a(a);
                gpb_dmma(sums, a, b);
            }
#pragma unroll
            for (int e = 0; e < 2; e++) x[e] = tile::get(sums, 0, e);
        } else {
#pragma unroll
            for (int s = 0; s < PASS; s++) {
                const T own = column[at + s][first + lead_row()];
                const two other = pair(at + s, first + lead_column());
#pragma unroll
                for (int e = 0; e < 2; e++)
                    x[e] = gpb_minus_product(x[e], own, gpb_conjugate(other.x[e], true));
            }
        }
    }

    /* Factors the part x, a column at a time. */
    __device__ __forceinline__ void lead_slowly(T (&x)[2])
    {
        const int lane = threadIdx.x % 32, r = lead_row(), c = lead_column();
#pragma unroll 1
        for (int s = 0; s < PASS; s++) {
            const int from = s / 2;                    /* the lane of four that has the column */
            const T here = s % 2 ? x[1] : x[0];
            const real d = gpb_real_part(gpb_shuffled(here, s * 4 + from)), by = gpb_inverse_root(d);
            const T own = gpb_scaled(gpb_shuffled(here, r * 4 + from), by);
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const T other = gpb_scaled(gpb_shuffled(here, (c + e) * 4 + from), by);
                if (c + e > s) x[e] = gpb_minus_product(x[e], own, gpb_conjugate(other, true));
                if (c + e == s) x[e] = own;
            }
            if (lane == s) minor[s] = d, inverse[s] = by;
        }
    }

    /* The same two columns at a time, if the minors of the first `order` are positive and ordinary numbers;
       else the result is wrong, and it returns false. The second one's minor is its determinant with the
       first, over the first, so that both roots are computed at once: a pair takes nine FP64 operations one
       after the other instead of twelve, and one exchange instead of two. */
    __device__ __forceinline__ bool lead(T (&x)[2], int order)
    {
        const int lane = threadIdx.x % 32, r = lead_row(), c = lead_column();
        bool ordinary = true;
#pragma unroll
        for (int s = 0; s < PASS; s += 2) {
            const int from = s / 2;                    /* the lane of four that has the columns */
            const T b = gpb_shuffled(x[0], s * 4 + 4 + from);
            const real a = gpb_real_part(gpb_shuffled(x[0], s * 4 + from)),
                       determinant = gpb_determinant(a, b, gpb_shuffled(x[1], s * 4 + 4 + from));
            T l[3][2];                                 /* of the own row, and of those that c, c+1 number */
#pragma unroll
            for (int y = 0; y < 3; y++)
#pragma unroll
                for (int e = 0; e < 2; e++) l[y][e] = gpb_shuffled(x[e], (y ? c + y - 1 : r) * 4 + from);
            const real first = gpb_fast_inverse_root(a),
                       second = a * first * gpb_fast_inverse_root(determinant);
            const T between = gpb_conjugate(gpb_scaled(b, first), true);
#pragma unroll
            for (int y = 0; y < 3; y++) {
                l[y][0] = gpb_scaled(l[y][0], first);
                l[y][1] = gpb_scaled(gpb_minus_product(l[y][1], l[y][0], between), second);
            }
#pragma unroll
            for (int e = 0; e < 2; e++) {
                T left = x[e];
#pragma unroll
                for (int y = 0; y < 2; y++)
                    left = gpb_minus_product(left, l[0][y], gpb_conjugate(l[1 + e][y], true));
                if (c > s) x[e] = left;
                if (c == s) x[e] = l[0][e];
            }
            /* Not by && and ||, which are branches. */
            ordinary &= (s >= order) | gpb_is_ordinary(a);
            ordinary &= (s + 1 >= order) | gpb_is_ordinary(determinant);
            if (lane == s) minor[s] = a, inverse[s] = first;
            if (lane == s + 1) minor[s + 1] = determinant * first * first, inverse[s + 1] = second;
        }
        return ordinary;
    }

    /* Shows the part. */
    __device__ __forceinline__ void lead_show(const T (&x)[2])
    {
#pragma unroll
        for (int e = 0; e < 2; e++) part[lead_column() + e][lead_row() / 2].x[lead_row() % 2] = x[e];
    }

    /* The pass's columns of the thread's row. */
    __device__ __forceinline__ void solve(T (&x)[PASS], int i, int at) const
    {
#pragma unroll
        for (int c = 0; c < PASS; c++) x[c] = column[at + c][i];
#pragma unroll
        for (int s = 0; s < PASS; s++) {
            x[s] = gpb_scaled(x[s], inverse[s]);
#pragma unroll
            for (int c = s + 1; c < PASS; c++)
                x[c] = gpb_minus_product(x[c], x[s], gpb_conjugate(part[s][c / 2].x[c % 2], true));
        }
    }

    /* Takes the pass's columns, of which x has the thread's row, out of the columns [from, end). */
    __device__ __forceinline__ void take(const T (&x)[PASS], int i, int at, int from, int end)
    {
        if constexpr (sizeof(real) == 8) {
            take_by_tiles(i / 32 * 32, at, from, end);
        } else {
#pragma unroll 1
            for (; from < end; from += PASS)
#pragma unroll (GPB_IS_COMPLEX<T> ? 1 : PASS / 2)
                for (int c = 0; c < PASS; c += 2) {
                    T *own[2] = { &column[from + c][i], &column[from + c + 1][i] };
                    T sum[2] = { *own[0], *own[1] };
#pragma unroll
                    for (int s = 0; s < PASS; s++) {
                        const two other = pair(at + s, from + c);
#pragma unroll
                        for (int e = 0; e < 2; e++)
                            sum[e] = gpb_minus_product(sum[e], x[s], gpb_conjugate(other.x[e], true));
                    }
#pragma unroll
                    for (int e = 0; e < 2; e++) *own[e] = sum[e];
                }
        }
    }

    /* The same of the warp's rows by FP64 tensor cores. With FMAs eight columns took 530 cycles. */
    __device__ __forceinline__ void take_by_tiles(int rows, int at, int from, int end)
    {
        using tile = gpb_tile<T>;
        constexpr int HIGH = tile::HIGH, TILES = 32 / HIGH, STEPS = PASS / tile::DEPTH;
        const tile of(true);
        double a[TILES][STEPS][4];
#pragma unroll
        for (int q = 0; q < TILES; q++)
#pragma unroll
            for (int step = 0; step < STEPS; step++) {
                const T *own = &column[at + step * tile::DEPTH][rows + q * HIGH];
                tile::template load_a<layout>(a[q][step], own + tile::template offset_a<layout>());
#pragma unroll
                for (int y = 0; y < tile::LOADED; y++) a[q][step][y] = -a[q][step][y];
                of.complete_a(a[q][step]);
            }
        const T *factors = &column[at + gpb_lane_t()][from + gpb_lane_g()];
        T *sums = &column[from + 2 * gpb_lane_t()][rows + tile::ROWS * gpb_lane_g()];
        /* Two passes' columns at once, because each waits for shared memory and for the tensor cores. */
#pragma unroll 1
        for (; from < end; from += 2 * PASS, factors += 2 * PASS, sums += 2 * PASS * STRIDE) {
            const int many = from + PASS < end ? 2 : 1;
            double b[2][STEPS][2], x[2][TILES][4];
#pragma unroll
            for (int two = 0; two < 2; two++) {
#pragma unroll
                for (int step = 0; step < STEPS; step++)
                    tile::template load_b<layout>(b[two][step],
                                                  factors + two * PASS + step * tile::DEPTH * STRIDE);
#pragma unroll
                for (int q = 0; q < TILES; q++)
#pragma unroll
                    for (int s = 0; s < 2; s++)
                        if (two < many)
                            tile::get_rows(x[two][q], s, sums + (two * PASS + s) * STRIDE + q * HIGH);
            }
#pragma unroll
            for (int step = 0; step < STEPS; step++)
#pragma unroll
                for (int two = 0; two < 2; two++)
#pragma unroll
                    for (int q = 0; q < TILES; q++) gpb_dmma(x[two][q], a[q][step], b[two][step]);
#pragma unroll
            for (int two = 0; two < 2; two++)
#pragma unroll
                for (int q = 0; q < TILES; q++)
#pragma unroll
                    for (int s = 0; s < 2; s++)
                        if (two < many)
                            tile::put_rows(sums + (two * PASS + s) * STRIDE + q * HIGH, x[two][q], s);
        }
    }

    /* A root whose last bit is right; of an infinite minor, whose inverse root is 0, too. */
    static __device__ __forceinline__ real root(real minor, real inverse)
    {
        if (inverse == 0) return minor;
        const real y = minor * inverse, rest = gpb_minus_product(-minor, -y, y);
        return gpb_minus_product(y, rest, inverse * real(0.5));
    }

    /* The first pass is the rehearsal. In the second the data come, and the leader alone has work. */
    __device__ __forceinline__ void run(const gpb_cholesky_args &g)
    {
        const int i = threadIdx.x;
        const bool leads = i >= ROWS;
        const int64_t row = i < N ? i : g.n + (int64_t)blockIdx.x * (ROWS - N) + i - N;
        const bool there = !leads && (i < N ? i < g.n : row < g.n + g.below);
        const int most = !there ? -1 : i < N ? i : g.n - 1;                /* the row's last column */
        T *to = (T *)g.a + row * g.rs;
        unsigned before = 0;
        bool stores = false;
#pragma unroll 1
        for (int first = -2 * PASS; first < g.n; first += PASS) {
            const bool rehearses = first < -PASS, begins = first == -PASS;
            const int at = max(first, 0), next = begins ? 0 : at + PASS, own = i - at;
            T x[PASS], ahead[2];
            real of = 1, by = 1;
            if (begins) {
                gpb_grid_wait();
                fetch(to, g.cs, i, most);
                __syncthreads();
            }
            if (leads) {
                const int from = next < N ? next : 0;      /* behind the last pass: what nobody writes */
#pragma unroll
                for (int e = 0; e < 2; e++) ahead[e] = column[from + lead_column() + e][from + lead_row()];
            } else if (!begins) {
                if ((unsigned)own < PASS) of = minor[own], by = inverse[own];
                solve(x, i, at);
#pragma unroll
                for (int s = 0; s < PASS; s++) column[at + s][i] = x[s];
            }
            __syncthreads();
            /* The count is asked for when all have read, and its answer is not waited for before it is
               needed. */
            if (begins && i == 0) {
                __threadfence();
                before = atomicAdd(g.arrivals, 1);
            }
            if (first == 0) {
                if (i == 0) {
                    last = before - g.arrived == gridDim.x - 1;
                    __threadfence();
                }
                __syncthreads();
                stores = i >= N || last;
            }
            if (leads) {
                if (next < g.n || rehearses) {
                    if (!begins) lead_take(ahead, next, at);
                    T found[2] = { ahead[0], ahead[1] };
                    if (!lead(found, g.n - next) && !rehearses) {
#pragma unroll
                        for (int e = 0; e < 2; e++) found[e] = ahead[e];
                        lead_slowly(found);
                    }
                    lead_show(found);
                }
            } else if (!begins) {
#pragma unroll
                for (int s = 0; s < PASS; s++) {
                    if (own == s) x[s] = gpb_from_real<T>(root(of, by));
                    if (stores && at + s <= most) gpb_element_put(to, x[s]);
                    if (!rehearses) to += g.cs;
                }
                const bool fails = most >= 0 && !(of > 0);                 /* if it is NaN, too */
                if (stores && fails) atomicMin(g.info, g.first + i + 1);
                take(x, i, at, at + PASS, rehearses ? 2 * PASS : g.n);
            }
            __syncthreads();
        }
    }
};

template <class T> static __device__ __forceinline__ void gpb_cholesky(const gpb_cholesky_args &g)
{
    constexpr int LEAST = 99 << 10;        /* that a block can have, of all GPUs from sm_80 on */
    static_assert(sizeof(gpb_cholesky_body<T>) <= GPB_ALONE_SHARED(LEAST), "as it is launched");
    ((gpb_cholesky_body<T> *)gpb_solve_memory())->run(g);
}

#endif
