/* SPDX-License-Identifier: MIT */
/* Short k in d, c and z, where writing C is most of the work. As strip.cuh for s: a block walks down a tall
   tile, ROWS rows at a time, and asks for the operands of the next rows before it multiplies and writes
   these. Warps multiply as those of general/ do (general/warp.cuh).

   op(A) comes in a ring of STAGES k tiles. op(B) has HELD buffers beside it: a k of so many k tiles comes
   once and stays for the whole walk, a longer one comes again with each ROWS rows. Three blocks are on a
   multiprocessor. Four, with 128 registers a thread, keep some of them in local memory: 214 us in place of
   192 for 8192 x 8192 x 16 in d on an H100. */
#ifndef GPB_SHAPES_SHORT_CUH
#define GPB_SHAPES_SHORT_CUH

#include "kernels/epilogue.cuh"
#include "kernels/general/copy.cuh"
#include "kernels/general/warp.cuh"
#include "kernels/shapes/ptx_shapes.cuh"

/* Copies k tiles of one operand: EDGE rows of op(A), or columns of op(B), BK deep. In the order ALONG_K they
   come in pieces of 16 bytes that lie along k. ALONG_EDGE takes anything, in such pieces if they lie along
   the edge, else element by element. op(B) comes in this order alone: it comes once, and the other order was
   no faster. */
template <class T, gpb_order ORDER, int EDGE, int BK, int THREADS, bool TWICE> struct gpb_short_feed {
    using layout = gpb_side_layout<T, ORDER, EDGE, BK, TWICE>;
    static constexpr int BYTES = sizeof(T), V = GPB_VECTOR<T>;
    const T *base;                         /* of the tile: its first row (or column), its first k */
    const int64_t &stride_mn, &stride_k;

    /* True if ALONG_K serves. */
    static __device__ __forceinline__ bool is_along_k(const T *base, int64_t stride_mn, int64_t stride_k)
    {
        return ORDER == GPB_ALONG_K && stride_k == 1 && stride_mn != 1 && (uintptr_t)base % 16 == 0
               && stride_mn % V == 0;
    }

    /* The first `places` x `depth` elements of the k tile at `from`. The others become 0: of those beyond k,
       op(A)'s and op(B)'s would be multiplied with each other. */
    __device__ __forceinline__ void copy(T *to, const T *from, int64_t places, int64_t depth) const
    {
        const unsigned at = gpb_shared_address(to);
        if (places >= EDGE && depth >= BK) by_unit<false>(at, from, EDGE, BK);
        else by_unit<true>(at, from, (int)min(places, (int64_t)EDGE), (int)min(depth, (int64_t)BK));
    }

private:
    template <bool GUARD>
    __device__ __forceinline__ void by_unit(unsigned to, const T *from, int places, int depth) const
    {
        if (ORDER == GPB_ALONG_K)
            by_piece<GPB_UNIT_PAIR, GUARD>(to, from, places, depth);
        else if (GPB_IS_COMPLEX<T> && (uintptr_t)base % BYTES)
            by_piece<GPB_UNIT_HALVES, GUARD>(to, from, places, depth);
        else if (V > 1 && stride_mn == 1 && (uintptr_t)base % 16 == 0 && stride_k % V == 0)
            by_piece<GPB_UNIT_PAIR, GUARD>(to, from, places, depth);
        else
            by_piece<GPB_UNIT_WHOLE, GUARD>(to, from, places, depth);
    }

    template <gpb_unit UNIT, bool GUARD>
    __device__ __forceinline__ void by_piece(unsigned to, const T *from, int places, int depth) const
    {
        constexpr bool K = ORDER == GPB_ALONG_K;
        /* W: elements of a piece. Threads side by side in memory, if it lies along the edge; along k. */
        constexpr int W = UNIT == GPB_UNIT_PAIR ? V : 1, LANES = K ? EDGE : EDGE / W,
                      LANES_K = K ? BK / W : BK, COPIES = EDGE * BK / W / THREADS;
        static_assert(THREADS % LANES == 0 && THREADS % LANES_K == 0 && COPIES * THREADS * W == EDGE * BK,
                      "threads share a k tile evenly");
        const int thread = gpb_thread();
        const bool down = !K && (UNIT == GPB_UNIT_PAIR || stride_mn == 1);
        const int place = down ? thread % LANES * W : thread / LANES_K,
                  q = down ? thread / LANES : thread % LANES_K * (K ? W : 1);
        const int next_place = down ? 0 : THREADS / LANES_K, next_q = down ? THREADS / LANES : 0;
        const T *x = from + place * stride_mn + q * stride_k;
        const int64_t step = down ? (THREADS / LANES) * stride_k : (THREADS / LANES_K) * stride_mn;
        [[maybe_unused]] constexpr int UNROLL = GUARD ? 1 : COPIES;
#pragma unroll UNROLL
        for (int y = 0; y < COPIES; y++, x += step) {
            const int i = place + y * next_place, d = q + y * next_q;
            const int there = K ? (i < places ? max(0, min(depth - d, W)) : 0)
                                : (d < depth ? max(0, min(places - i, W)) : 0);
            const unsigned at = to + (i * layout::PLACE + d * layout::Q) * BYTES;
            if (UNIT == GPB_UNIT_HALVES) {
                const int half = GUARD ? there * BYTES / 2 : BYTES / 2;
                gpb_cp_async_of<BYTES / 2>(at, x, half);
                gpb_cp_async_of<BYTES / 2>(at + BYTES / 2, (const char *)x + BYTES / 2, half);
            } else {
                gpb_cp_async_of<W * BYTES>(at, x, GUARD ? there * BYTES : W * BYTES);
            }
        }
    }
};

/* Transposes four numbers of four lanes, whose numbers differ in the bits LOW and 2 LOW. */
template <int LOW, class T> static __device__ __forceinline__ void gpb_short_across(T (&x)[4])
{
    const bool upper2 = gpb_thread() & 2 * LOW, upper1 = gpb_thread() & LOW;
#pragma unroll
    for (int z = 0; z < 2; z++) {
        const T other = gpb_shuffle_xor(upper2 ? x[z] : x[z + 2], 2 * LOW);
        x[z] = upper2 ? other : x[z];
        x[z + 2] = upper2 ? x[z + 2] : other;
    }
#pragma unroll
    for (int z = 0; z < 4; z += 2) {
        const T other = gpb_shuffle_xor(upper1 ? x[z] : x[z + 1], LOW);
        x[z] = upper1 ? other : x[z];
        x[z + 1] = upper1 ? x[z + 1] : other;
    }
}

template <class T, int BM, int BN, int BK, int STAGES, int THREADS, int SMEM, int ROWS, int WM, int WN>
struct gpb_short {
    using warp = gpb_warp<T, WM, WN>;
    static constexpr bool FMAS = sizeof(T) == 8 && GPB_IS_COMPLEX<T>;
    static constexpr int V = GPB_VECTOR<T>;
    template <gpb_order ORDER> using feed_a = gpb_short_feed<T, ORDER, ROWS, BK, THREADS, warp::TWICE>;
    using feed_b = gpb_short_feed<T, GPB_ALONG_EDGE, BN, BK, THREADS, false>;
    using LB = typename feed_b::layout;
    static constexpr gpb_order K_A = FMAS ? GPB_ALONG_EDGE : GPB_ALONG_K;  /* FMAs want it along the edge */
    static constexpr int EDGE_TILE_A = feed_a<GPB_ALONG_EDGE>::layout::ELEMENTS,
                         K_TILE_A = feed_a<K_A>::layout::ELEMENTS,
                         TILE_A = EDGE_TILE_A > K_TILE_A ? EDGE_TILE_A : K_TILE_A, TILE_B = LB::ELEMENTS,
                         HELD = (SMEM / (int)sizeof(T) - STAGES * TILE_A) / TILE_B,
                         STEPS = BK / warp::DEPTH;
    static_assert(BM % ROWS == 0 && 32 * (ROWS / WM) * (BN / WN) == THREADS, "each warp has its part");
    static_assert(STAGES >= 2 && HELD >= STAGES && SMEM == (STAGES * TILE_A + HELD * TILE_B) * sizeof(T),
                  "see gemm.def");

    static __device__ __forceinline__ int warp_i() { return gpb_thread() / 32 % (ROWS / WM) * WM; }
    static __device__ __forceinline__ int warp_j() { return gpb_thread() / 32 / (ROWS / WM) * WN; }

    /* Stores w's sums to the ROWS rows from row i0 on. */
    static __device__ __forceinline__ void store(const gpb_tile<T> &t, int64_t i0, const warp &w)
    {
        const gpb_target<T> to = gpb_target_of(t);
        const int64_t i = i0 + warp_i(), j = t.j0 + warp_j();
        const bool crossed = to.is_crossed(i0, t.j0, ROWS, BN),
                   plain = !crossed && gpb_is_zero(to.beta) && i + WM <= to.m && j + WN <= to.n;
        if (to.aligned && plain) store_all(to, i, j, w);
        else if (to.aligned && !crossed) store_vectors(to, i, j, w);
        else if (FMAS && plain && (uintptr_t)to.c % sizeof(T) == 0) store_across<FMAS>(to, i, j, w);
        else store_across<false>(to, i, j, w);
    }

    /* The usual case, without guards. The hint that C is not read again soon has the level-2 cache write it
       to memory sooner: 8192 x 8192 x 16 on an H100 in d 182 us in place of 191, in z 355 in place of 380. */
    static __device__ __forceinline__ void store_all(const gpb_target<T> &to, int64_t i, int64_t j,
                                                     const warp &w)
    {
        T *const c = gpb_global(to.c + i + warp::row(0) + (j + warp::col(0)) * to.ldc);
#pragma unroll
        for (int y = 0; y < warp::COLS; y++)
#pragma unroll
            for (int x = 0; x < warp::ROWS; x++)
                __stcs((gpb_vector<T> *)(c + (warp::col(y) - warp::col(0)) * to.ldc + warp::row(x)
                                         - warp::row(0)),
                       gpb_blend_vector(to, w.unit(x, y), gpb_vector<T>()));
    }

    /* The old C of two columns is loaded before either is stored: general/product.cuh has why. */
    static __device__ __forceinline__ void store_vectors(const gpb_target<T> &to, int64_t i, int64_t j,
                                                         const warp &w)
    {
        constexpr int FEW = 2;
        const int rows = (int)min(to.m - i, (int64_t)WM), cols = (int)min(to.n - j, (int64_t)WN);
        T *const c = gpb_global(to.c + i + (j + warp::col(0)) * to.ldc);
#pragma unroll
        for (int y0 = 0; y0 < warp::COLS; y0 += FEW) {
            gpb_vector<T> old[FEW][warp::ROWS];
            auto at = [&](int x, int y) __attribute__((always_inline)) {
                return c + (warp::col(y0 + y) - warp::col(0)) * to.ldc + warp::row(x);
            };
            auto here = [&](int x, int y) __attribute__((always_inline)) {
                return warp::col(y0 + y) < cols ? rows - warp::row(x) : 0;
            };
#pragma unroll
            for (int y = 0; y < FEW; y++)
#pragma unroll
                for (int x = 0; x < warp::ROWS; x++) old[y][x] = gpb_old_vector(to, at(x, y), here(x, y));
#pragma unroll
            for (int y = 0; y < FEW; y++)
#pragma unroll
                for (int x = 0; x < warp::ROWS; x++)
                    gpb_store_vector(to, at(x, y), here(x, y), w.unit(x, y0 + y), old[y][x]);
        }
    }

    /* C is not aligned, or the diagonal of a triangle crosses the rows. Elements of 8 bytes, 16 from those of
       the next lane, would be stores to parts of all sectors. So the four lanes that have the same rows of
       four pairs of columns exchange what they have, and 32 lanes store 32 rows of a column. PLAIN: all of it
       is within C, nothing of C is read, and elements lie at multiples of their size. Only c, where
       instructions are the limit, has need of it (550 to 346 us). In d it gave 3 % and took 12 registers. */
    template <bool PLAIN>
    static __device__ __forceinline__ void store_across(const gpb_target<T> &to, int64_t i, int64_t j,
                                                        const warp &w)
    {
        constexpr int COUNT = V == 1 ? warp::ROWS : 4, LOW = FMAS ? 8 : 1;
        static_assert(V == 1 || warp::ROWS * V == COUNT, "four rows a lane");
        const gpb_part<T> part(to, i, j);
        const int number = gpb_thread() / LOW % 4, row = warp::row(number / 2) + number % 2,
                  col = warp::col(0) - 2 * number;
        T *const c = gpb_global(part.c + row + col * to.ldc);
#pragma unroll
        for (int y = 0; y < warp::COLS; y++) {
            auto at = [&](int x) __attribute__((always_inline)) {
                return V == 1 ? gpb_place{ warp::row(x), warp::col(y) }
                              : gpb_place{ row, col + warp::col(y) - warp::col(0) + 2 * x };
            };
            T value[COUNT], old[COUNT];
#pragma unroll
            for (int x = 0; x < COUNT; x++) value[x] = gpb_vector_at<T>(w.unit(x / V, y), x % V);
            if constexpr (V > 1) gpb_short_across<LOW>(value);
            if constexpr (PLAIN) {
                /* gpb_fresh keeps the compiler from computing all addresses in advance. */
                T *const column = (T *)gpb_fresh((int64_t)(c + (warp::col(y) - warp::col(0)) * to.ldc));
#pragma unroll
                for (int x = 0; x < COUNT; x++) column[2 * x * to.ldc] = gpb_blend(to, value[x], T());
            } else {
#pragma unroll
                for (int x = 0; x < COUNT; x++) old[x] = part.old(at(x));
#pragma unroll
                for (int x = 0; x < COUNT; x++) part.store(at(x), value[x], old[x]);
            }
        }
    }

    /* Asks for the old values of C that the rows from row i0 on need, if any. They come to the level-2
       cache. */
    static __device__ __forceinline__ void expect(const gpb_tile<T> &t, int64_t i0)
    {
        const gpb_target<T> to = gpb_target_of(t);
        if (gpb_is_zero(to.beta)) return;
        constexpr int LINE = 128 / sizeof(T), LINES = ROWS / LINE;
        static_assert(ROWS % LINE == 0, "whole lines");
        for (int x = gpb_thread(); x < LINES * BN; x += THREADS) {
            const int64_t i = i0 + x % LINES * LINE, j = t.j0 + x / LINES;
            if (i < to.m && j < to.n) gpb_prefetch(to.c + i + j * to.ldc);
        }
    }

    template <gpb_order ORDER, bool MIXED> static __device__ __forceinline__ void walk(const gpb_tile<T> &t)
    {
        using LA = typename feed_a<ORDER>::layout;
        T *const ring_a = (T *)gpb_general_memory(), *const ring_b = ring_a + STAGES * TILE_A;
        const gpb_gemm_args &g = t.g;
        const feed_a<ORDER> in_a = { t.a + t.i0 * g.rsa, g.rsa, g.csa };
        const feed_b in_b = { t.b + t.j0 * g.csb, g.csb, g.rsb };
        const int height = (int)min(g.m - t.i0, (int64_t)BM), k_tiles = (int)gpb_k_tiles<BK>(t),
                  last = (int)(t.k - (int64_t)(k_tiles - 1) * BK);
        /* What is copied next: k tile `ahead` of the rows from row_ahead on, to buffer `stage` of op(A). */
        int ahead = 0, row_ahead = 0, stage = 0;
        auto buffer_b = [&](int k_tile) __attribute__((always_inline)) {
            return ring_b + (k_tiles <= HELD ? k_tile : stage) * TILE_B;
        };
        auto fetch = [&]() __attribute__((always_inline)) {
            if (row_ahead < height) {
                const int depth = ahead == k_tiles - 1 ? last : BK;
                const int64_t from = (int64_t)ahead * BK;
                in_a.copy(ring_a + stage * TILE_A, in_a.base + row_ahead * g.rsa + from * g.csa,
                          g.m - t.i0 - row_ahead, depth);
                if (k_tiles > HELD || row_ahead == 0)
                    in_b.copy(buffer_b(ahead), in_b.base + from * g.rsb, g.n - t.j0, depth);
                if (++ahead == k_tiles) {
                    ahead = 0;
                    row_ahead += ROWS;
                }
            }
            gpb_cp_async_commit();
            stage = stage == STAGES - 1 ? 0 : stage + 1;
        };
#pragma unroll 1
        for (int s = 0; s < STAGES; s++) fetch();
        expect(t, t.i0);
        warp w(g);
        const T *as, *bs;
        int k_tile = 0, row = 0;
        /* After STAGES k tiles the buffer to be filled next is the one that is read. */
        auto look = [&]() __attribute__((always_inline)) {
            as = ring_a + stage * TILE_A + warp_i() * LA::PLACE + warp::template offset_a<LA>();
            bs = buffer_b(k_tile) + warp_j() * LB::PLACE + warp::template offset_b<LB>();
        };
        /* The next k tile is complete. No thread reads this one any more, so another takes its place. */
        auto turn = [&]() __attribute__((always_inline)) {
            gpb_cp_async_wait<STAGES - 2>();
            __syncthreads();
            fetch();
            k_tile = k_tile == k_tiles - 1 ? 0 : k_tile + 1;
            look();
        };
        auto nothing = [](auto) __attribute__((always_inline)) {};
        gpb_cp_async_wait<STAGES - 1>();
        __syncthreads();
        look();
        w.template begin<LA, LB>(as, bs);
#pragma unroll 1
        while (row < height) {
            gpb_each_number<0, STEPS>([&](auto step) __attribute__((always_inline)) {
                w.template step<decltype(step)::value, STEPS, LA, LB, MIXED>(as, bs, nothing, turn);
            });
            if (k_tile) continue;          /* of the next k tile: not all of these rows' k */
#pragma unroll
            for (int y = 0; y < warp::TN; y++) gpb_pin(w.sum[y]);
            store(t, t.i0 + row, w);
#pragma unroll
            for (int y = 0; y < warp::TN; y++)
#pragma unroll
                for (int x = 0; x < warp::TM; x++) w.sum[y][x] = gpb_sum_of<T>();
            row += ROWS;
            if (row < height) expect(t, t.i0 + row);
            w.template begin<LA, LB>(as, bs);      /* again, so that they take no registers meanwhile */
        }
        gpb_cp_async_wait<0>();
    }

    static __device__ __forceinline__ void run(const gpb_tile<T> &t)
    {
        const T *const a = t.a + t.i0 * t.g.rsa;
        if (FMAS && !t.g.conj_a != !t.g.conj_b) walk<GPB_ALONG_EDGE, FMAS>(t);
        else if (feed_a<K_A>::is_along_k(a, t.g.rsa, t.g.csa)) walk<K_A, false>(t);
        else walk<GPB_ALONG_EDGE, false>(t);
    }
};

#endif
