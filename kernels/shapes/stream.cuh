/* SPDX-License-Identifier: MIT */
/* A matrix times a few vectors. Every element of the large operand X is used about once, so it goes straight
   from memory to registers. X is rows x k, Y is k x W with W <= 4, and R(i,w) are the results.

   Signs cost time in the loop. So if X is conjugated, what is summed is the conjugate of R: X times conj(Y),
   whose signs change as its few elements are loaded. */
#ifndef GPB_SHAPES_STREAM_CUH
#define GPB_SHAPES_STREAM_CUH

#include "kernels/epilogue.cuh"

template <class T> struct gpb_stream_side {
    const T *x;                            /* X(first row of the tile, first k) */
    int64_t rs, cs;
    int rows;                              /* of X in the tile */
    uint32_t tile;                         /* its number along the rows */
};

/* Y(p,w) is from[w][p * ks]. Columns outside Y repeat the last one, and their results are not stored. */
template <class T, int W> struct gpb_stream_few {
    const T *from[W];
    int64_t ks;
    bool conj, vector;                     /* vector: can be read 16 bytes at a time along k */
    __device__ __forceinline__ void load(T (&y)[W], int64_t p) const
    {
#pragma unroll
        for (int w = 0; w < W; w++) y[w] = gpb_conj_if(conj, gpb_element_ldg(from[w] + p * ks));
    }
};

/* FMAs in one chain before the sum is added to a total, because a thread may add up thousands. */
constexpr int GPB_STREAM_CHAIN = 64;

/* X contiguous along its rows. A thread has a vector's number of ROWS rows (neighbours if VECTOR) and every
   GROUPS-th k, with U of them in flight. */
template <int ROWS, int THREADS, int U, bool VECTOR, class T, int W>
static __device__ __forceinline__ void gpb_stream_mn_major(const gpb_stream_side<T> &s,
                                                           const gpb_stream_few<T, W> &few, int64_t k,
                                                           T *sums)
{
    constexpr int V = GPB_VECTOR<T>, LANES = ROWS / V, GROUPS = THREADS / LANES;
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    const T *x = s.x + (VECTOR ? V * lane : lane) + group * s.cs;
    int row[V];
#pragma unroll
    for (int r = 0; r < V; r++) row[r] = VECTOR ? r : min(lane + r * LANES, s.rows - 1) - lane;
    T acc[W][V] = {}, total[W][V] = {};
    int64_t p = group;
    int rounds = 0;
    auto load = [&](T (&to)[V]) {
        if (VECTOR) {
            gpb_vector_to(to, __ldcs((const gpb_vector<T> *)x));
        } else {
#pragma unroll
            for (int r = 0; r < V; r++) to[r] = gpb_element_ldcs(x + row[r]);
        }
        x += GROUPS * s.cs;
    };
    auto add = [&](const T (&v)[V], const T (&y)[W]) {
#pragma unroll
        for (int w = 0; w < W; w++)
#pragma unroll
            for (int r = 0; r < V; r++) gpb_fma(acc[w][r], v[r], y[w]);
    };
#pragma unroll 1
    for (; p + (U - 1) * GROUPS < k; p += U * GROUPS) {
        T v[U][V], y[U][W];
#pragma unroll
        for (int u = 0; u < U; u++) load(v[u]);
#pragma unroll
        for (int u = 0; u < U; u++) few.load(y[u], p + u * GROUPS);
#pragma unroll
        for (int u = 0; u < U; u++) add(v[u], y[u]);
        if (++rounds % (GPB_STREAM_CHAIN / U) == 0) gpb_bank(total, acc);
    }
#pragma unroll 1
    for (; p < k; p += GROUPS) {
        T v[V], y[W];
        load(v);
        few.load(y, p);
        add(v, y);
    }
    gpb_bank(total, acc);
#pragma unroll
    for (int w = 0; w < W; w++)
#pragma unroll
        for (int r = 0; r < V; r++)
            sums[(group * W + w) * ROWS + (VECTOR ? V * lane + r : lane + r * LANES)] = total[w][r];
    __syncthreads();
    for (int e = threadIdx.x; e < ROWS * W; e += THREADS) {
        T sum = sums[e];
        for (int g = 1; g < GROUPS; g++) sum = gpb_sum(sum, sums[g * W * ROWS + e]);
        sums[e] = sum;                     /* only this thread has read it */
    }
    __syncthreads();
}

/* The sums of a warp's R rows, of which each lane has a part. */
template <int ROWS, class T, int R, int W>
static __device__ __forceinline__ void gpb_stream_lanes(T (&acc)[R][W], T *sums)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int w = 0; w < W; w++) {
            for (int o = 16; o; o /= 2) acc[r][w] = gpb_sum(acc[r][w], gpb_shuffle_xor(acc[r][w], o));
            if (lane == 0) sums[w * ROWS + warp * R + r] = acc[r][w];
        }
    __syncthreads();
}

/* X contiguous along k. A warp has ROWS / warps rows, and its lanes lie along k with a vector each. */
template <int ROWS, int THREADS, bool VECTOR, class T, int W>
static __device__ __forceinline__ void gpb_stream_k_major(const gpb_stream_side<T> &s,
                                                          const gpb_stream_few<T, W> &few, int64_t k, T *sums)
{
    constexpr int V = GPB_VECTOR<T>, WARPS = THREADS / 32, R = ROWS / WARPS;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const T *x[R];
#pragma unroll
    for (int r = 0; r < R; r++) x[r] = s.x + min(warp * R + r, s.rows - 1) * s.rs;
    /* For more than one column there are no registers. Their chains are shorter than cuBLAS's anyway. */
    constexpr bool BANKS = W == 1;
    T acc[R][W] = {}, total[BANKS ? R : 1][W] = {};
    int64_t p = 0;
    auto load_x = [&](T (&v)[V], const T *x) {
        if (VECTOR) {
            gpb_vector_to(v, __ldcs((const gpb_vector<T> *)(x + p) + lane));
        } else {
#pragma unroll
            for (int q = 0; q < V; q++) v[q] = gpb_element_ldcs(x + (p + lane + 32 * q) * s.cs);
        }
    };
    auto load_y = [&](T (&y)[V][W]) {
        if (VECTOR && few.vector) {
#pragma unroll
            for (int w = 0; w < W; w++) {
                T v[V];
                gpb_vector_to(v, __ldg((const gpb_vector<T> *)(few.from[w] + p) + lane));
#pragma unroll
                for (int q = 0; q < V; q++) y[q][w] = gpb_conj_if(few.conj, v[q]);
            }
        } else {
#pragma unroll
            for (int q = 0; q < V; q++) few.load(y[q], p + (VECTOR ? V * lane + q : lane + 32 * q));
        }
    };
#pragma unroll 1
    for (; p + 32 * V <= k; p += 32 * V) {
        if constexpr (BANKS)
            if (p % (GPB_STREAM_CHAIN * 32) == 0) gpb_bank(total, acc);
        T v[R][V], y[V][W];
#pragma unroll
        for (int r = 0; r < R; r++) load_x(v[r], x[r]);
        load_y(y);
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int q = 0; q < V; q++)
#pragma unroll
                for (int w = 0; w < W; w++) gpb_fma(acc[r][w], v[r][q], y[q][w]);
    }
#pragma unroll 1
    for (p += lane; p < k; p += 32) {
        T y[W];
        few.load(y, p);
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int w = 0; w < W; w++) gpb_fma(acc[r][w], gpb_element_at(x[r] + p * s.cs), y[w]);
    }
    if constexpr (BANKS) gpb_bank(acc, total);
    gpb_stream_lanes<ROWS>(acc, sums);
}

/* The same where a warp has few rows and one column, and an element is a vector: then there are registers
   for U elements of each row on their way. Every tile begins at another k and goes round, because rows 128 KB
   apart that are all read at the same k meet in few of the memory's channels. */
template <int ROWS, int THREADS, int U, bool VECTOR, class T>
static __device__ __forceinline__ void gpb_stream_around(const gpb_stream_side<T> &s,
                                                         const gpb_stream_few<T, 1> &few, int64_t k, T *sums)
{
    constexpr int R = ROWS / (THREADS / 32), STEP = U * 32;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t steps = k / STEP, begin = steps ? s.tile % steps * STEP : 0;
    const T *x[R];
    T acc[R][1] = {}, total[R][1] = {};
#pragma unroll
    for (int r = 0; r < R; r++) x[r] = s.x + min(warp * R + r, s.rows - 1) * s.rs;
    auto add = [&](int64_t p, const T (&v)[R]) {
        T y[1];
        if (few.vector) y[0] = gpb_conj_if(few.conj, __ldg((const gpb_vector<T> *)few.from[0] + p));
        else few.load(y, p);
#pragma unroll
        for (int r = 0; r < R; r++) gpb_fma(acc[r][0], v[r], y[0]);
    };
    int64_t p = begin;
#pragma unroll 1
    for (int64_t step = 0; step < steps; step++) {
        T v[U][R];
        if (p % (GPB_STREAM_CHAIN * 32) == 0) gpb_bank(total, acc);
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int r = 0; r < R; r++) {
                const T *from = x[r] + (p + u * 32 + lane) * s.cs;
                v[u][r] = VECTOR ? __ldcs((const gpb_vector<T> *)from) : gpb_element_ldcs(from);
            }
#pragma unroll
        for (int u = 0; u < U; u++) add(p + u * 32 + lane, v[u]);
        p = p + STEP == steps * STEP ? 0 : p + STEP;
    }
#pragma unroll 1
    for (p = steps * STEP + lane; p < k; p += 32) {
        T v[R];
#pragma unroll
        for (int r = 0; r < R; r++) v[r] = gpb_element_at(x[r] + p * s.cs);
        add(p, v);
    }
    gpb_bank(acc, total);
    gpb_stream_lanes<ROWS>(acc, sums);
}

template <int ROWS, int THREADS, int U, class T, int W>
static __device__ __forceinline__ void gpb_stream(const gpb_stream_side<T> &s,
                                                  const gpb_stream_few<T, W> &few, int64_t k, T *sums)
{
    constexpr int V = GPB_VECTOR<T>;
    const bool base = ((uintptr_t)s.x & 15) == 0;
    if (s.rs == 1)
        base && (s.cs & (V - 1)) == 0 && s.rows == ROWS
            ? gpb_stream_mn_major<ROWS, THREADS, U, true>(s, few, k, sums)
            : gpb_stream_mn_major<ROWS, THREADS, U, false>(s, few, k, sums);
    else if constexpr (W == 1 && V == 1)
        base ? gpb_stream_around<ROWS, THREADS, 16 * (THREADS / 32) / ROWS, true>(s, few, k, sums)
             : gpb_stream_around<ROWS, THREADS, 16 * (THREADS / 32) / ROWS, false>(s, few, k, sums);
    else
        base && (s.rs & (V - 1)) == 0 && s.cs == 1
            ? gpb_stream_k_major<ROWS, THREADS, true>(s, few, k, sums)
            : gpb_stream_k_major<ROWS, THREADS, false>(s, few, k, sums);
}

/* Y from its first column on: `width` columns, which lie ws apart. */
template <int W, class T>
static __device__ __forceinline__ gpb_stream_few<T, W> gpb_stream_few_of(const T *y, int64_t ks, int64_t ws,
                                                                         int width, bool conj)
{
    gpb_stream_few<T, W> few;
#pragma unroll
    for (int w = 0; w < W; w++) few.from[w] = y + min(w, width - 1) * ws;
    few.ks = ks;
    few.conj = conj;
    few.vector = ks == 1 && ((uintptr_t)y & 15) == 0 && (W == 1 || (ws & (GPB_VECTOR<T> - 1)) == 0);
    return few;
}

/* op(A) is large and op(B) has at most BN columns, or the other way round. */
template <class T, int BM, int BN, int BK, int STAGES, int THREADS, int SMEM>
static __device__ __forceinline__ void gpb_stream_tile(const gpb_tile<T> &t)
{
    constexpr bool TALL = BM > BN;
    constexpr int ROWS = TALL ? BM : BN, W = TALL ? BN : BM;
    __shared__ T sums[THREADS * GPB_VECTOR<T> * W];
    const gpb_gemm_args &g = t.g;
    const int rows = (int)min(g.m - t.i0, (int64_t)BM), cols = (int)min(g.n - t.j0, (int64_t)BN);
    const T *a = gpb_global(t.a + t.i0 * g.rsa), *b = gpb_global(t.b + t.j0 * g.csb);
    const bool mixed = !g.conj_a != !g.conj_b;
    if (TALL)
        gpb_stream<ROWS, THREADS, STAGES>(gpb_stream_side<T>{ a, g.rsa, g.csa, rows, (uint32_t)(t.i0 / BM) },
                                          gpb_stream_few_of<W>(b, g.rsb, g.csb, cols, mixed), t.k, sums);
    else
        gpb_stream<ROWS, THREADS, STAGES>(gpb_stream_side<T>{ b, g.csb, g.rsb, cols, (uint32_t)(t.j0 / BN) },
                                          gpb_stream_few_of<W>(a, g.csa, g.rsa, rows, mixed), t.k, sums);
    const gpb_target<T> to = gpb_target_of(t);
    const bool flip = TALL ? g.conj_a : g.conj_b;
    for (int e = threadIdx.x; e < BM * BN; e += THREADS)
        gpb_store(to, t.i0 + e % BM, t.j0 + e / BM,
                  gpb_flip_if(flip, sums[TALL ? e : e % BM * ROWS + e / BM]));
}

#endif
