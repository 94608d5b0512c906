/* SPDX-License-Identifier: MIT */
/* What the kernels share that take one triangle to the columns of B. A pass is for eight columns of the
   triangle, which come to shared memory two passes ahead. A warp has whole columns of B in registers, all
   that is left of them: after a round the registers move on by one, because an unrolled loop is slower: its
   instructions come from memory (18 us a launch instead of 11 for a block of 64: H200). A conjugated triangle
   is the plain one for the conjugated B. */
#ifndef GPB_TRIANGLE_CUH
#define GPB_TRIANGLE_CUH

#include "kernels/ptx.cuh"
#include "kernels/solve/ptx_solve.cuh"
#include "kernels/solve/scalar.cuh"
#include "kernels/solve/tile.cuh"
#include "kernels/solve_args.h"

/* COLUMNS: of a warp. */
template <class T, int COLUMNS> struct gpb_triangle {
    static constexpr int BYTES = sizeof(T), ORDER = GPB_TRIANGLE_ORDER(BYTES), PASS = 8;
    static constexpr int THREADS = GPB_TRIANGLE_THREADS;
    static constexpr int STRIDE = GPB_TRIANGLE_STRIDE(sizeof(T)), STAGES = 3;
    using column = T[STRIDE];                          /* rows follow each other */
    using columns = column[PASS];

    /* The columns that are next are there, and those before them may be overwritten. AHEAD: how many fetches
       go on. */
    template <int AHEAD = STAGES - 2> static __device__ __forceinline__ void await()
    {
        gpb_cp_async_wait<AHEAD>();
        __syncthreads();
    }
    static __device__ __forceinline__ int next(int stage, int by = 1) { return (stage + by) % STAGES; }

    static __device__ __forceinline__ int lane() { return threadIdx.x % 32; }
    /* Number c of the warp's columns. */
    static __device__ __forceinline__ int64_t col(int c)
    {
        return ((int64_t)blockIdx.x * (THREADS / 32) + threadIdx.x / 32) * COLUMNS + c;
    }

    /* Asks for the triangle's columns from `first` on, if there are any, and for no element beside it. */
    template <int COUNT>
    static __device__ __forceinline__ void fetch(column (&to)[COUNT], const gpb_triangle_args &g, int first)
    {
        /* Threads follow each other in memory's order. */
        const bool across = g.csl == 1 || g.csl == -1;
        const int thread = threadIdx.x % THREADS, ends = min(g.n, first + COUNT) - first;
        if (across) {
            const int s = thread % COUNT;
            int i = first + thread / COUNT;
            const T *from = (const T *)g.l + i * g.rsl + (first + s) * g.csl;
#pragma unroll 2
            for (; i < g.n; i += THREADS / COUNT, from += THREADS / COUNT * g.rsl)
                gpb_cp_async_if<sizeof(T)>(s < min(i + 1 - g.unit - first, ends),
                                           gpb_shared_address(&to[s][i]), from);
        } else {
            int i = first + thread;
            const T *row = (const T *)g.l + i * g.rsl + first * g.csl;
#pragma unroll 1
            for (; i < g.n; i += THREADS, row += THREADS * g.rsl) {
                const T *from = row;
#pragma unroll
                for (int s = 0; s < COUNT; s++, from += g.csl)
                    gpb_cp_async_if<sizeof(T)>(s < min(i + 1 - g.unit - first, ends),
                                               gpb_shared_address(&to[s][i]), from);
            }
        }
        gpb_cp_async_commit();
    }

    /* Also before the first column, where there is nothing to ask for, because what is waited for is
       counted. */
    template <int COUNT>
    static __device__ __forceinline__ void fetch_back(column (&to)[COUNT], const gpb_triangle_args &g,
                                                      int first)
    {
        fetch(to, g, first < 0 ? g.n : first);
    }

    static __device__ __forceinline__ T scaled(T y, const gpb_triangle_args &g)
    {
        if (g.alpha[0] != 1 || g.alpha[1] != 0) y = gpb_product(gpb_scalar<T>::of(g.alpha), y);
        return y;
    }
    /* alpha B(i, col(c)) as the plain triangle takes it; 0 where there is no B. */
    static __device__ __forceinline__ T read(const gpb_triangle_args &g, int i, int c)
    {
        const bool reads = col(c) < g.cols && i < g.n;
        const T y = reads ? gpb_element_at((const T *)g.b + i * g.rsb + col(c) * g.csb) : T();
        return gpb_conjugate(scaled(y, g), g.conj);
    }
    static __device__ __forceinline__ void write(const gpb_triangle_args &g, int i, int c, T x)
    {
        if (col(c) < g.cols && i < g.n)
            gpb_element_put((T *)g.b + i * g.rsb + col(c) * g.csb, gpb_conjugate(x, g.conj));
    }
};

/* WIDE columns a warp, each thread two rows of every 64, a round; the threads tell each other the eight rows
   of a pass. */
template <class T, int WIDE> struct gpb_triangle_in_rows : gpb_triangle<T, WIDE> {
    static constexpr int COLUMNS = WIDE;
    using triangle = gpb_triangle<T, COLUMNS>;
    static constexpr int PASS = triangle::PASS;
    static constexpr int ROUND = 2 * 32, ROUNDS = triangle::ORDER / ROUND;
    struct __align__(sizeof(T) < 16 ? 2 * sizeof(T) : 16) two { T x[2]; };

    static __device__ __forceinline__ void read(T (&x)[COLUMNS][2], const gpb_triangle_args &g, int round)
    {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
#pragma unroll
            for (int e = 0; e < 2; e++) x[c][e] = triangle::read(g, round + 2 * triangle::lane() + e, c);
    }
    static __device__ __forceinline__ void write(const gpb_triangle_args &g, int round,
                                                 const T (&x)[COLUMNS][2])
    {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
#pragma unroll
            for (int e = 0; e < 2; e++) triangle::write(g, round + 2 * triangle::lane() + e, c, x[c][e]);
    }

    /* The rows of one pass of the round x, to all threads of the warp. */
    static __device__ __forceinline__ void tell(T (&all)[PASS][COLUMNS], const T (&x)[COLUMNS][2], int pass)
    {
#pragma unroll
        for (int s = 0; s < PASS; s++)
#pragma unroll
            for (int c = 0; c < COLUMNS; c++)
                all[s][c] = gpb_shuffled(x[c][s % 2], (pass * PASS + s) / 2);
    }

    /* The pair of rows that this thread has in a round. */
    static __device__ __forceinline__ two pair(const typename triangle::columns &l, int s, int round)
    {
        return *(const two *)&l[s][round + 2 * triangle::lane()];
    }
};

/* Eight columns a warp, in tiles of HIGH rows, which are sums of the FP64 tensor cores: a round is a tile.
   Lanes are numbered lane = 4 g + t. An H200 takes 23 us for 256 x 256 and 26 for 256 x 4096 (substitute, d)
   where it took 25 and 70 in rows. */
template <class T> struct gpb_triangle_in_tiles : gpb_triangle<T, 8> {
    using triangle = gpb_triangle<T, 8>;
    using tile = gpb_tile<T>;
    static constexpr int PASS = triangle::PASS, HIGH = tile::HIGH, TILES = triangle::ORDER / HIGH;
    static constexpr int ROWS = tile::ROWS, STEPS = PASS / tile::DEPTH;
    static_assert(HIGH == 8 * ROWS, "a warp's columns are those of a tile");
    /* A tile's rows are a round, whose columns come together, one round ahead. */
    using columns = typename triangle::column[HIGH];
    static constexpr int SUMS = TILES + 1;
    using sums = double[SUMS][4];
    /* Eight rows of a warp's columns; of a stride with which lanes meet in no bank. */
    using rows = T[8][PASS + 16 / sizeof(T)];
    struct layout {                                    /* of the triangle's columns, for the fragments */
        static constexpr int PLACE = 1, Q = triangle::STRIDE;
    };

    /* does(element's place in B, whether there is one, the sums, e, s) for all of the lane's, tile by tile.
       Where there is none, the place is that of one that there is. Addresses are counted on, because to
       compute each anew is a dozen instructions, which come from memory. */
    template <class DOES>
    static __device__ __forceinline__ void each(double (*x)[4], const gpb_triangle_args &g, DOES does)
    {
        const int64_t first = triangle::col(2 * gpb_lane_t());
        T *at[ROWS][2];
#pragma unroll
        for (int e = 0; e < ROWS; e++)
#pragma unroll
            for (int s = 0; s < 2; s++)
                at[e][s] = (T *)g.b + min(ROWS * gpb_lane_g() + e, g.n - 1) * g.rsb
                           + min(first + s, g.cols - 1) * g.csb;
#pragma unroll
        for (int q = 0; q < TILES; q++)
#pragma unroll
            for (int e = 0; e < ROWS; e++) {
                const int row = q * HIGH + ROWS * gpb_lane_g() + e;
#pragma unroll
                for (int s = 0; s < 2; s++) {
                    does(at[e][s], row < g.n && first + s < g.cols, x[q], e, s);
                    if (row + HIGH < g.n) at[e][s] += HIGH * g.rsb;
                }
            }
    }
    static __device__ __forceinline__ void conjugate(double (*x)[4])
    {
#pragma unroll
        for (int q = 0; q < TILES; q++)
#pragma unroll
            for (int e = 0; e < ROWS; e++)
#pragma unroll
                for (int s = 0; s < 2; s++)
                    tile::set(x[q], e, s, gpb_conjugate(tile::get(x[q], e, s), true));
    }

    /* alpha B as the plain triangle takes it. */
    static __device__ __forceinline__ void read(double (*x)[4], const gpb_triangle_args &g)
    {
        const T alpha = gpb_scalar<T>::of(g.alpha);
        each(x, g, [](const T *at, bool, double(&to)[4], int e, int s) {
            tile::set(to, e, s, gpb_element_at(at));
        });
        if (g.alpha[0] != 1 || g.alpha[1] != 0)
#pragma unroll
            for (int q = 0; q < TILES; q++)
#pragma unroll
                for (int e = 0; e < ROWS; e++)
#pragma unroll
                    for (int s = 0; s < 2; s++)
                        tile::set(x[q], e, s, gpb_product(alpha, tile::get(x[q], e, s)));
        if (GPB_IS_COMPLEX<T> && g.conj) conjugate(x);
    }
    static __device__ __forceinline__ void write(double (*x)[4], const gpb_triangle_args &g)
    {
        if (GPB_IS_COMPLEX<T> && g.conj) conjugate(x);
        each(x, g, [](T *at, bool there, double(&of)[4], int e, int s) {
            if (there) gpb_element_put(at, tile::get(of, e, s));
        });
    }

    /* Adds to the rows from `round` on what the pass's columns make of its rows of B, of which a lane has
       rows t and t+4 of column g. Sums of rows that are not below the pass's are of no use afterwards. Those
       of tile q are afterwards at q + BY, where the tensor cores write them, because to move them at every
       pass took 2 of 34 us for 256 x 4096 (d, H200). */
    template <int BY>
    static __device__ __forceinline__ void add(sums &x, const typename triangle::column *of,
                                               const T (&of_b)[2], int round, int n)
    {
        /* So many that ptxas branches around them where there are no rows. Of two it made predicated
           instructions, which keep the tensor cores as busy as others: 6 of those 34 us. */
        constexpr int TOGETHER = 4;
        const tile signs;
        const T *l = &of[0][round] + tile::template offset_a<layout>();
        double b[STEPS][2];
#pragma unroll
        for (int s = 0; s < STEPS; s++) tile::operand(b[s], of_b, s);
#pragma unroll
        for (int p = 0; p < TILES; p += TOGETHER) {
            const int q = BY > 0 ? TILES - TOGETHER - p : p;
            /* To leave the loop here would cost a copy of all sums for each place where it is left. */
            if (round + q * HIGH >= n) continue;
            double a[TOGETHER][STEPS][4];
#pragma unroll
            for (int y = 0; y < TOGETHER; y++)
#pragma unroll
                for (int s = 0; s < STEPS; s++)
                    tile::template load_a<layout>(a[y][s],
                                                  l + (q + y) * HIGH + s * tile::DEPTH * triangle::STRIDE);
#pragma unroll
            for (int s = 0; s < STEPS; s++)
#pragma unroll
                for (int y = 0; y < TOGETHER; y++) {
                    if (q + y + BY < 0) continue;
                    signs.complete_a(a[y][s]);
                    gpb_dmma(x[q + y], a[y][s], b[s]);
                }
#pragma unroll
            for (int y = 0; y < TOGETHER; y++) {
                const int from = BY > 0 ? q + TOGETHER - 1 - y : q + y;
                if (from + BY >= 0)
#pragma unroll
                    for (int c = 0; c < 4; c++) x[from + BY][c] = x[from][c];
            }
        }
    }
};

template <class KERNEL, class... ARGS>
static __device__ __forceinline__ void gpb_triangle_run(const ARGS &...args)
{
    static_assert(sizeof(KERNEL) <= GPB_TRIANGLE_SHARED(KERNEL::triangle::BYTES), "as it is launched");
    ((KERNEL *)gpb_solve_memory())->run(args...);
}

#endif
