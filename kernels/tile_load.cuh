/* SPDX-License-Identifier: MIT */
/* Global to shared memory: any strides with guards, or padded operands 16 bytes at a time. No index leaves an operand's own
   memory: what the guards refuse is not read. */
#ifndef GPB_TILE_LOAD_CUH
#define GPB_TILE_LOAD_CUH

#include "kernels/tile.cuh"

/* to[row + col*LD] = from[row*rs + col*cs] for ROWS x COLS elements; zero outside rows x cols. Neighbouring threads walk
   whichever dimension is contiguous in memory. With an odd LD neither way of storing meets a bank conflict. */
template <int ROWS, int COLS, int LD, int THREADS>
static __device__ __forceinline__ void gpb_load_strided(float *to, const float *from, int64_t rs, int64_t cs, int64_t rows, int64_t cols)
{
    static_assert(THREADS % ROWS == 0 && THREADS % COLS == 0 && ROWS * COLS % THREADS == 0, "threads must share the tile evenly");
    const bool down = rs == 1;
    const int row = down ? threadIdx.x % ROWS : threadIdx.x / COLS, col = down ? threadIdx.x / ROWS : threadIdx.x % COLS;
    const int down_step = down ? 0 : THREADS / COLS, across_step = down ? THREADS / ROWS : 0;
    const int last_row = (int)min(rows, (int64_t)ROWS) - row, last_col = (int)min(cols, (int64_t)COLS) - col;
    from += row * rs + col * cs;
    to += row + col * LD;
#pragma unroll
    for (int x = 0; x < ROWS * COLS / THREADS; x++) {
        *to = x * down_step < last_row && x * across_step < last_col ? *from : 0;
        from += down_step * rs + across_step * cs;
        to += down_step + across_step * LD;
    }
}

/* The guarded tiles of op(A) and op(B) at depth p: as[i + q*LDA], bs[q + j*LDB]. */
template <int BM, int BK, int LDA, int THREADS>
static __device__ __forceinline__ void gpb_load_a(float *as, const gpb_tile &t, int64_t p)
{
    gpb_load_strided<BM, BK, LDA, THREADS>(as, t.a + t.i0 * t.g.rsa + p * t.g.csa, t.g.rsa, t.g.csa, t.g.m - t.i0, t.k - p);
}

template <int BK, int BN, int LDB, int THREADS>
static __device__ __forceinline__ void gpb_load_b(float *bs, const gpb_tile &t, int64_t p)
{
    gpb_load_strided<BK, BN, LDB, THREADS>(bs, t.b + p * t.g.rsb + t.j0 * t.g.csb, t.g.rsb, t.g.csb, t.k - p, t.g.n - t.j0);
}

/* How threads share a padded tile, ROWS (contiguous in memory) x COLS, in groups of four rows. As many threads to a column as
   there are loads for, so that most of a thread's loads lie in one column, at offsets known to the compiler; but at least two,
   a whole sector. */
template <int ROWS, int COLS, int THREADS> struct gpb_share {
    static constexpr int QUADS = ROWS / 4, COUNT = QUADS * COLS / THREADS;
    static constexpr int LANES = QUADS / COUNT >= 2 ? QUADS / COUNT : QUADS >= 2 ? 2 : 1;     /* threads to a column */
    static constexpr int DOWN = QUADS / LANES, ACROSS = COUNT / DOWN;                       /* loads of a thread */
    static constexpr int ROW_STEP = LANES * 4, COL_STEP = THREADS / LANES;
    static_assert(COUNT * THREADS == QUADS * COLS && DOWN * LANES == QUADS && ACROSS * DOWN == COUNT && COL_STEP * ACROSS == COLS,
                  "threads must share the tile evenly");

    /* This thread's first row and column of the tile. */
    static __device__ __forceinline__ int row() { return threadIdx.x % LANES * 4; }
    static __device__ __forceinline__ int col() { return threadIdx.x / LANES; }
};

/* A padded tile on its way: fetched into registers now, put into shared memory later. */
template <int ROWS, int COLS, int THREADS> struct gpb_courier : gpb_share<ROWS, COLS, THREADS> {
    using share = gpb_share<ROWS, COLS, THREADS>;
    float4 held[share::ACROSS][share::DOWN];

    /* from: this thread's own first element, see row() and col(). */
    __device__ __forceinline__ void fetch(const float *from, int64_t ld)
    {
#pragma unroll
        for (int y = 0; y < share::ACROSS; y++)
#pragma unroll
            for (int x = 0; x < share::DOWN; x++)
                held[y][x] = __ldg((const float4 *)(from + x * share::ROW_STEP + y * share::COL_STEP * ld));
    }

    /* to[row + col*LD] */
    template <int LD> __device__ __forceinline__ void put(float *to) const
    {
        to += share::row() + share::col() * LD;
#pragma unroll
        for (int y = 0; y < share::ACROSS; y++)
#pragma unroll
            for (int x = 0; x < share::DOWN; x++)
                *(float4 *)(to + x * share::ROW_STEP + y * share::COL_STEP * LD) = held[y][x];
    }

    /* to[offset(row) + col]: transposed; OFFSET tells where a row begins. */
    template <int (*OFFSET)(int)> __device__ __forceinline__ void put_transposed(float *to) const
    {
        to += OFFSET(share::row()) + share::col();
#pragma unroll
        for (int y = 0; y < share::ACROSS; y++)
#pragma unroll
            for (int x = 0; x < share::DOWN; x++) {
                float *corner = to + OFFSET(x * share::ROW_STEP) + y * share::COL_STEP;
                corner[OFFSET(0)] = held[y][x].x;
                corner[OFFSET(1)] = held[y][x].y;
                corner[OFFSET(2)] = held[y][x].z;
                corner[OFFSET(3)] = held[y][x].w;
            }
    }
};

/* Where row p of a transposed tile of COLS columns begins. PLAIN: densely. SKEWED: each four rows lie 16 floats further on, so
   that the two threads that hold neighbouring fours of a column, and their 15 neighbours, store to different banks; rows stay
   aligned to 16 bytes. */
template <int COLS> static __device__ __forceinline__ constexpr int gpb_plain(int p) { return p * COLS; }
template <int COLS> static __device__ __forceinline__ constexpr int gpb_skewed(int p) { return p * COLS + p / 4 * 16; }

#endif
