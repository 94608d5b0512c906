/* SPDX-License-Identifier: MIT */
/* Many small systems, each by forward substitution, in one launch. A unit is up to WIDE columns of one system
   and as many threads of one warp. A thread has one column, of which N rows are in its registers. All threads
   of a unit multiply by the same element of the triangle at once, so that one read of shared memory serves
   them all and nothing is told from thread to thread. (With four threads a column an H100 waited for its
   shared memory.) The unit goes down its rows in blocks of N: what the blocks above have found is taken out
   first. Nothing is multiplied by a zero that stands for the other triangle. A conjugated triangle is the
   plain one for the conjugated B. */
#ifndef GPB_SYSTEMS_CUH
#define GPB_SYSTEMS_CUH

#include "kernels/ptx.cuh"
#include "kernels/solve/scalar.cuh"
#include "kernels/solve_args.h"
#include "kernels/tile.cuh"

template <class T, int N, int WIDE> struct gpb_unit {
    static constexpr int V = GPB_VECTOR<T>;
    /* Columns of N elements follow each other, 16 bytes further apart, so that threads that read 16 bytes of
       one column each meet different banks. */
    static constexpr int PITCH = N + V;
    struct __align__(16) room {
        T l[N][PITCH], b[WIDE][PITCH];     /* blocks of the triangle, of B and of X, column by column */
        T inverse[N];                      /* of the diagonal's elements, each times its scale */
        gpb_real<T> scale[N];
    };

    const gpb_systems_args &g;
    room &at;
    const T *l, *b;
    T *x;
    int64_t rows;
    int thread, cols;                      /* of the unit; both sizes are 0 if it does not exist */

    __device__ __forceinline__ gpb_unit(const gpb_systems_args &g, room &at)
        : g(g), at(at), thread(threadIdx.x % WIDE)
    {
        const int64_t units = (g.cols + WIDE - 1) / WIDE;
        const int64_t number = ((int64_t)blockIdx.x * GPB_SYSTEMS_THREADS + threadIdx.x) / WIDE;
        const int64_t member = number / units, col = number % units * WIDE;
        const bool exists = member < g.batch;
        rows = exists ? g.n : 0;
        cols = exists ? (int)min(g.cols - col, (int64_t)WIDE) : 0;
        const gpb_gemm_item *item = g.items && exists ? g.items + member : nullptr;
        const void *of_l = item ? g.right ? item->b : item->a : (const T *)g.l + member * g.stride_l;
        const void *of_b = item ? g.right ? item->a : item->b : (const T *)g.b + member * g.stride_b;
        void *of_x = item ? item->c : (T *)g.x + member * g.stride_x;
        l = (const T *)of_l + g.first_l;
        b = (const T *)of_b + g.first_b + col * g.csb;
        x = (T *)of_x + g.first_x + col * g.csx;
    }

    static __device__ __forceinline__ bool follow(int64_t stride) { return stride == 1 || stride == -1; }

    /* does(i, j) for the elements of a block's first `high` rows or `wide` columns, whichever lie apart from
       each other in memory. The block has J columns; threads follow each other in memory. */
    template <int J, class DOES>
    __device__ __forceinline__ void each(bool down, int high, int wide, DOES does) const
    {
        const int count = ((down ? wide * N : high * J) + WIDE - 1) / WIDE;
#pragma unroll 8
        for (int y = 0; y < count; y++) {
            const int number = y * WIDE + thread;
            does(down ? number % N : number / J, down ? number / N : number % J);
        }
    }

    static __device__ __forceinline__ void copy(bool on, T &to, const T *from)
    {
        constexpr int HALF = sizeof(gpb_real<T>);
        const unsigned place = gpb_shared_address(&to);
        if (!GPB_IS_COMPLEX<T> || (uintptr_t)from % sizeof(T) == 0) {
            gpb_cp_async_if<sizeof(T)>(on, place, from);
        } else {                           /* a complex number need not lie at a multiple of its size */
            gpb_cp_async_if<HALF>(on, place, from);
            gpb_cp_async_if<HALF>(on, place + HALF, (const char *)from + HALF);
        }
    }

    /* How many of the block's N rows exist. */
    __device__ __forceinline__ int high(int64_t i0) const { return (int)min(rows - i0, (int64_t)N); }

    /* Asks for the triangle's block from that row and column on. */
    __device__ __forceinline__ void fetch(int64_t i0, int64_t j0) const
    {
        const T *from = l + i0 * g.rsl + j0 * g.csl;
        const int there = high(i0), last = i0 == j0 ? !g.unit : N;
        const int wide = i0 == j0 ? there : N;
        each<N>(!follow(g.csl), there, wide, [&](int i, int j) __attribute__((always_inline)) {
            copy(i < there && j < i + last, at.l[j][i], from + i * g.rsl + j * g.csl);
        });
    }
    /* The same for a block of B. */
    __device__ __forceinline__ void fetch_b(int64_t i0) const
    {
        const T *from = b + i0 * g.rsb;
        const int there = high(i0);
        each<WIDE>(follow(g.rsb), there, cols, [&](int i, int c) __attribute__((always_inline)) {
            copy(i < there && c < cols, at.b[c][i], from + i * g.rsb + c * g.csb);
        });
    }

    /* The same for a block of X that the unit has written. */
    __device__ __forceinline__ void fetch_x(int64_t i0) const
    {
        const T *from = x + i0 * g.rsx;
        each<WIDE>(follow(g.rsx), N, cols, [&](int i, int c) __attribute__((always_inline)) {
            copy(c < cols, at.b[c][i], from + i * g.rsx + c * g.csx);
        });
    }
    __device__ __forceinline__ void write_x(int64_t i0) const
    {
        T *to = gpb_global(x) + i0 * g.rsx;
        const int there = high(i0);
        each<WIDE>(follow(g.rsx), there, cols, [&](int i, int c) __attribute__((always_inline)) {
            if (i < there && c < cols)
                gpb_element_put(to + i * g.rsx + c * g.csx, gpb_conjugate(at.b[c][i], g.conj));
        });
    }
    static __device__ __forceinline__ void await()
    {
        gpb_cp_async_commit();
        gpb_cp_async_wait<0>();
        __syncwarp();
    }

    /* Takes the block's column j times `by` out of the rows from FROM on. */
    template <int FROM> __device__ __forceinline__ void take(T (&y)[N], const T *column, T by) const
    {
#pragma unroll
        for (int i = FROM / V * V; i < N; i += V) {
            T few[V];
            gpb_vector_to(few, *(const gpb_vector<T> *)(column + i));
#pragma unroll
            for (int e = 0; e < V; e++)
                if (i + e >= FROM) y[i + e] = gpb_minus_product(y[i + e], few[e], by);
        }
    }

    /* 1 / (scale y), with a power of two as scale that makes it as precise as a division by y. */
    __device__ __forceinline__ void invert() const
    {
        for (int i = thread; i < N; i += WIDE) {
            const T one = gpb_from_real<T>(1);
            const T y = g.unit ? one : at.l[i][i];
            const gpb_real<T> scale = gpb_inverting_scale(y);
            at.inverse[i] = gpb_quotient(one, gpb_scaled(y, scale));
            at.scale[i] = scale;
        }
        __syncwarp();
    }

    template <int J> __device__ __forceinline__ void solve(T (&y)[N], int there) const
    {
        if constexpr (J < N) {
            if (J > 0 && J % 8 == 0 && J >= there) return;
            if (!g.unit) y[J] = gpb_scaled(gpb_times(y[J], at.inverse[J]), at.scale[J]);
            take<J + 1>(y, at.l[J], y[J]);
            solve<J + 1>(y, there);
        }
    }

    __device__ __forceinline__ void run() const
    {
        const T alpha = gpb_scalar<T>::of(g.alpha);
        const bool scales = g.alpha[0] != 1 || g.alpha[1] != 0;
        T y[N];
#pragma unroll 1
        for (int64_t i0 = 0; i0 < rows; i0 += N) {
            fetch(i0, 0);
            fetch_b(i0);
            await();
#pragma unroll
            for (int i = 0; i < N; i++) {
                y[i] = at.b[thread][i];
                if (scales) y[i] = gpb_product(alpha, y[i]);
                y[i] = gpb_conjugate(y[i], g.conj);
            }
            __syncwarp();
#pragma unroll 1
            for (int64_t j0 = 0; j0 < i0; j0 += N) {
                fetch_x(j0);
                await();
#pragma unroll 1
                for (int j = 0; j < N; j++) take<0>(y, at.l[j], gpb_conjugate(at.b[thread][j], g.conj));
                __syncwarp();
                fetch(i0, j0 + N);
                await();
            }
            invert();
            solve<0>(y, high(i0));
            __syncwarp();
#pragma unroll
            for (int i = 0; i < N; i++) at.b[thread][i] = y[i];
            __syncwarp();
            write_x(i0);
            __syncwarp();
        }
    }
};

template <class T, int N, int WIDE> static __device__ __forceinline__ void
gpb_systems_of(const gpb_systems_args &g)
{
    using unit = gpb_unit<T, N, WIDE>;
    __shared__ typename unit::room rooms[GPB_SYSTEMS_THREADS / WIDE];
    unit(g, rooms[threadIdx.x / WIDE]).run();
}

template <class T> static __device__ __forceinline__ void gpb_systems(const gpb_systems_args &g)
{
    gpb_systems_of<T, GPB_IS_COMPLEX<T> ? 16 : 32, GPB_SYSTEMS_COLUMNS>(g);
}
template <class T> static __device__ __forceinline__ void gpb_small_systems(const gpb_systems_args &g)
{
    gpb_systems_of<T, GPB_SMALL_SYSTEM, GPB_SMALL_SYSTEM>(g);
}

#endif
