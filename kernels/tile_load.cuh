/* SPDX-License-Identifier: MIT */
/* Copies from global to shared memory: with any strides and guards, or of padded operands 16 bytes at a time.
   Elements that the guards exclude are not read, so no address lies outside an operand's memory. */
#ifndef GPB_TILE_LOAD_CUH
#define GPB_TILE_LOAD_CUH

#include "kernels/tile.cuh"

/* to[row + col*LD] = from[row*rs + col*cs] for ROWS x COLS elements, and zero outside rows x cols.
   Neighbouring threads walk along the dimension that is contiguous in memory. If LD is odd, neither direction
   causes bank conflicts. */
template <int ROWS, int COLS, int LD, int THREADS, class T>
static __device__ __forceinline__ void gpb_load_strided(T *to, const T *from, int64_t rs, int64_t cs,
                                                        int64_t rows, int64_t cols)
{
    static_assert(THREADS % ROWS == 0 && THREADS % COLS == 0 && ROWS * COLS % THREADS == 0,
                  "threads must share the tile evenly");
    const bool down = rs == 1;
    const int row = down ? threadIdx.x % ROWS : threadIdx.x / COLS,
              col = down ? threadIdx.x / ROWS : threadIdx.x % COLS;
    const int down_step = down ? 0 : THREADS / COLS, across_step = down ? THREADS / ROWS : 0;
    const int last_row = (int)min(rows, (int64_t)ROWS) - row, last_col = (int)min(cols, (int64_t)COLS) - col;
    from += row * rs + col * cs;
    to += row + col * LD;
#pragma unroll
    for (int x = 0; x < ROWS * COLS / THREADS; x++) {
        *to = x * down_step < last_row && x * across_step < last_col ? *from : T();
        from += down_step * rs + across_step * cs;
        to += down_step + across_step * LD;
    }
}

/* The guarded tiles of op(A) and op(B) from depth p on: as[i + q*LDA], bs[q + j*LDB]. */
template <int BM, int BK, int LDA, int THREADS, class T>
static __device__ __forceinline__ void gpb_load_a(T *as, const gpb_tile<T> &t, int64_t p)
{
    gpb_load_strided<BM, BK, LDA, THREADS>(as, t.a + t.i0 * t.g.rsa + p * t.g.csa, t.g.rsa, t.g.csa,
                                           t.g.m - t.i0, t.k - p);
}

template <int BK, int BN, int LDB, int THREADS, class T>
static __device__ __forceinline__ void gpb_load_b(T *bs, const gpb_tile<T> &t, int64_t p)
{
    gpb_load_strided<BK, BN, LDB, THREADS>(bs, t.b + p * t.g.rsb + t.j0 * t.g.csb, t.g.rsb, t.g.csb, t.k - p,
                                           t.g.n - t.j0);
}

/* How threads share a padded tile of ROWS (contiguous in memory) x COLS, in vectors of V rows. A column is
   loaded by as many threads as a thread has loads, because then most loads of a thread lie in one column at
   offsets that are compile-time constants. But at least two threads load a column, so that a whole sector is
   loaded. */
template <int ROWS, int COLS, int THREADS, int V = 4> struct gpb_load_map {
    static constexpr int VECTORS = ROWS / V, COUNT = VECTORS * COLS / THREADS;
    /* threads per column */
    static constexpr int LANES = VECTORS / COUNT >= 2 ? VECTORS / COUNT : VECTORS >= 2 ? 2 : 1;
    /* loads per thread */
    static constexpr int DOWN = VECTORS / LANES, ACROSS = COUNT / DOWN;
    static constexpr int ROW_STEP = LANES * V, COL_STEP = THREADS / LANES;
    static_assert(COUNT * THREADS == VECTORS * COLS && DOWN * LANES == VECTORS && ACROSS * DOWN == COUNT
                      && COL_STEP * ACROSS == COLS,
                  "threads must share the tile evenly");

    /* This thread's first row and column of the tile. */
    static __device__ __forceinline__ int row() { return threadIdx.x % LANES * V; }
    static __device__ __forceinline__ int col() { return threadIdx.x / LANES; }
};

/* A padded tile in registers: fetched now, put into shared memory later. */
template <class T, int ROWS, int COLS, int THREADS>
struct gpb_register_tile : gpb_load_map<ROWS, COLS, THREADS, GPB_VECTOR<T>> {
    using map = gpb_load_map<ROWS, COLS, THREADS, GPB_VECTOR<T>>;
    gpb_vector<T> held[map::ACROSS][map::DOWN];

    /* from: this thread's first element, see row() and col(). */
    __device__ __forceinline__ void fetch(const T *from, int64_t ld)
    {
#pragma unroll
        for (int y = 0; y < map::ACROSS; y++)
#pragma unroll
            for (int x = 0; x < map::DOWN; x++)
                held[y][x] =
                    __ldg((const gpb_vector<T> *)(from + x * map::ROW_STEP + y * map::COL_STEP * ld));
    }

    /* to[row + col*LD] */
    template <int LD> __device__ __forceinline__ void put(T *to) const
    {
        to += map::row() + map::col() * LD;
#pragma unroll
        for (int y = 0; y < map::ACROSS; y++)
#pragma unroll
            for (int x = 0; x < map::DOWN; x++)
                *(gpb_vector<T> *)(to + x * map::ROW_STEP + y * map::COL_STEP * LD) = held[y][x];
    }

    /* to[offset(row) + col], so transposed. OFFSET tells where a row begins. */
    template <int (*OFFSET)(int)> __device__ __forceinline__ void put_transposed(T *to) const
    {
        to += OFFSET(map::row()) + map::col();
#pragma unroll
        for (int y = 0; y < map::ACROSS; y++)
#pragma unroll
            for (int x = 0; x < map::DOWN; x++) {
                T *origin = to + OFFSET(x * map::ROW_STEP) + y * map::COL_STEP, each[GPB_VECTOR<T>];
                gpb_vector_to(each, held[y][x]);
#pragma unroll
                for (int r = 0; r < GPB_VECTOR<T>; r++) origin[OFFSET(r)] = each[r];
            }
    }
};

/* Where row p of a transposed tile of COLS columns begins. PLAIN: rows follow each other. SKEWED: each group
   of four rows is shifted by 16 floats. Then the two threads that hold neighbouring fours of a column, and
   their 15 neighbours, store to different banks. Rows stay aligned to 16 bytes. */
template <int COLS> static __device__ __forceinline__ constexpr int gpb_plain(int p) { return p * COLS; }
template <int COLS> static __device__ __forceinline__ constexpr int gpb_skewed(int p)
{
    return p * COLS + p / 4 * 16;
}

#endif
