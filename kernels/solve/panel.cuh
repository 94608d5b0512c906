/* SPDX-License-Identifier: MIT */
/* LU of a panel with partial pivoting. A thread has one row in registers, and rows do not move before the
   end: a thread only counts where its row is by now. A column takes one exchange among the blocks: each
   shows the largest element that it has, and the row with it. So the pivot's row is known to all without a
   second step.
   What a column costs is latency: of the exchange, of the steps before and after it, and of fetching
   instructions. So blocks of a cluster write to each other's shared memory (more blocks than a cluster holds
   go through global memory), and the columns are a loop and not unrolled: with 150 KB of code,
   all of it used once, a column took 1.5 us (H200). For that the registers move by one place a column, which
   costs nothing, because the update writes to another register than it reads. The next column is updated
   before the others, so that its largest elements are looked for beside their update: 39 us for 4096 x 32 in
   double instead of 41 (H100). It is latency: half as many threads with two rows each took 42. */
#ifndef GPB_PANEL_CUH
#define GPB_PANEL_CUH

#include "kernels/ptx_sm90.cuh"
#include "kernels/solve/ptx_solve.cuh"
#include "kernels/solve/scalar.cuh"
#include "kernels/solve_args.h"

/* The largest element of a column among some rows: its size as bits, and the first row that has it. */
struct gpb_candidate {
    unsigned high, low, row;
};

static __device__ __forceinline__ gpb_candidate gpb_largest(gpb_candidate mine)
{
    gpb_candidate all;
    all.high = __reduce_max_sync(~0u, mine.high);
    all.low = __reduce_max_sync(~0u, mine.high == all.high ? mine.low : 0);
    all.row = __reduce_min_sync(~0u, mine.high == all.high && mine.low == all.low ? mine.row : ~0u);
    return all;
}

/* What a block shows: its candidate, the row in which that began, 1 / the element, and the rest of its row
   from this element on. */
template <class T> struct __align__(16) gpb_slot {
    gpb_candidate best;
    unsigned own;
    __align__(16) T inverse;
    __align__(16) T row[GPB_PANEL_COLUMNS(sizeof(T))];
};
template <class T> constexpr int GPB_SLOT_PIECES = sizeof(gpb_slot<T>) / 16;
static_assert(GPB_SLOT_PIECES<double> <= 32 && GPB_SLOT_PIECES<double2> <= 32, "a warp sends a slot");

/* The best of the blocks' candidates. Every warp finds it by itself. *from: the block that has it. */
static __device__ __forceinline__ gpb_candidate gpb_best_of_blocks(gpb_candidate mine, unsigned block,
                                                                   unsigned *from)
{
    const gpb_candidate best = gpb_largest(mine);
    *from = __reduce_min_sync(~0u, mine.row == best.row ? block : ~0u);
    return best;
}

/* Each block writes its slot into the shared memory of all blocks of the cluster, and each counts the bytes
   that have come. So nobody waits for stores to other places, as a barrier of the cluster would. A slot is
   written again two columns later, when its readers are done: they have sent the slot of the column between.
   */
template <class T> struct gpb_cluster_exchange {
    static __device__ __forceinline__ unsigned rank()
    {
#if __CUDA_ARCH__ >= 900
        return gpb_cluster_rank();
#else
        return blockIdx.x;
#endif
    }
    static __device__ __forceinline__ void sync()
    {
#if __CUDA_ARCH__ >= 900
        gpb_cluster_sync();
#endif
    }
    static __device__ __forceinline__ unsigned barrier(int column)
    {
        __shared__ unsigned long long barriers[2];
        return gpb_shared_address(&barriers[column % 2]);
    }
    /* No block may write to one that has not begun. */
    static __device__ __forceinline__ void begin()
    {
#if __CUDA_ARCH__ >= 900
        if (threadIdx.x == 0) {
            gpb_mbarrier_init(barrier(0), 1);
            gpb_mbarrier_init(barrier(1), 1);
            gpb_mbarrier_publish();
        }
#endif
        sync();
    }
    static __device__ __forceinline__ void all_have_read(const gpb_panel_args &, int) { sync(); }
    /* The slot of the pivot. `own` is complete when the block's threads come here. */
    static __device__ __forceinline__ const gpb_slot<T> *pivot(const gpb_panel_args &, const gpb_slot<T> *own,
                                                               int column)
    {
        __shared__ gpb_slot<T> slots[2][GPB_PANEL_CLUSTER];
        const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, blocks = gridDim.x;
        gpb_slot<T> *all = slots[column % 2];
        __syncthreads();
        if (blocks == 1) return own;
#if __CUDA_ARCH__ >= 900
        if (threadIdx.x == 0) gpb_mbarrier_expect(barrier(column), blocks * (unsigned)sizeof(gpb_slot<T>));
#endif
        if (warp < blocks && lane < GPB_SLOT_PIECES<T>)
            gpb_cluster_store_async(gpb_shared_address(&all[rank()]) + 16 * lane, warp,
                                    ((const ulonglong2 *)own)[lane], barrier(column));
        gpb_mbarrier_wait_cluster(barrier(column), column / 2 % 2);
        unsigned from;
        gpb_candidate mine = { 0, 0, ~0u };
        if (lane < blocks) mine = all[lane].best;
        gpb_best_of_blocks(mine, lane, &from);
        return &all[from];
    }
};

/* Slots in global memory, each word beside the number of its column. So a word that has come says so itself,
   and nobody waits for stores to be seen or for a counter: two trips to the L2 cache, for all candidates and
   for the best one's row. The first warp makes them, and the rest of its block waits for it. */
template <class T> struct gpb_grid_exchange {
    static constexpr unsigned WORDS = sizeof(gpb_slot<T>) / 4;
    static_assert(8 * WORDS <= GPB_PANEL_SLOT_BYTES, "the host makes room for slots");

    static __device__ __forceinline__ unsigned rank() { return blockIdx.x; }
    static __device__ __forceinline__ void begin() {}
    static __device__ __forceinline__ void all_have_read(const gpb_panel_args &g, int columns)
    {
        __syncthreads();
        if (threadIdx.x == 0) {
            const unsigned mine = (unsigned)columns + 1, all = g.arrived + mine * gridDim.x;
            __threadfence();
            atomicAdd(g.arrivals, mine);
            while ((int)(gpb_load_anew(g.arrivals) - all) < 0) {}
            __threadfence();
        }
        __syncthreads();
    }

    static __device__ __forceinline__ uint64_t *slot_of(const gpb_panel_args &g, int column, unsigned block)
    {
        return (uint64_t *)g.slots + ((unsigned)column % 2 * gridDim.x + block) * (uint64_t)WORDS;
    }
    /* No column before it in this factorisation has had that number. */
    static __device__ __forceinline__ uint32_t number_of(const gpb_panel_args &g, int column)
    {
        return g.arrived + 1 + (uint32_t)column;
    }
    /* Three words that a thread needs, `by` apart; where there is none, the first. */
    static __device__ __forceinline__ void read(uint32_t (&x)[3], const uint64_t *from, unsigned first,
                                                unsigned by, uint32_t number)
    {
        bool there;
        do {
            there = true;
#pragma unroll
            for (unsigned i = 0; i < 3; i++) {
                const uint64_t word = gpb_load_anew(from + (first + i * by < WORDS ? first + i * by : first));
                x[i] = (uint32_t)word;
                there &= (uint32_t)(word >> 32) == number;
            }
        } while (!there);
    }
    static __device__ __forceinline__ const gpb_slot<T> *pivot(const gpb_panel_args &g,
                                                               const gpb_slot<T> *own, int column)
    {
        static_assert(WORDS > 32 && WORDS <= 96, "a thread of a warp has three words at most");
        __shared__ gpb_slot<T> best_slot[2];
        const unsigned lane = threadIdx.x % 32;
        const uint32_t number = number_of(g, column);
        uint32_t *to = (uint32_t *)&best_slot[column % 2], words[3];
        __syncthreads();
        if (threadIdx.x < 32) {
            uint64_t *mine_to = slot_of(g, column, rank());
#pragma unroll
            for (unsigned w = lane; w < WORDS; w += 32)
                gpb_store_now(mine_to + w, (uint64_t)number << 32 | ((const uint32_t *)own)[w]);
            gpb_candidate mine = { 0, 0, ~0u };
            unsigned block = 0, from;
            for (unsigned b = lane; b < gridDim.x; b += 32) {
                read(words, slot_of(g, column, b), 0, 1, number);
                const gpb_candidate other = { words[0], words[1], words[2] };
                const bool better = other.high > mine.high || (other.high == mine.high
                                    && (other.low > mine.low || (other.low == mine.low
                                                                 && other.row < mine.row)));
                if (better) mine = other, block = b;
            }
            gpb_best_of_blocks(mine, block, &from);
            read(words, slot_of(g, column, from), lane, 32, number);
#pragma unroll
            for (unsigned i = 0; i < 3; i++)
                if (lane + 32 * i < WORDS) to[lane + 32 * i] = words[i];
        }
        __syncthreads();
        return &best_slot[column % 2];
    }
};

/* How a row's element of the column competes: NaN loses against all, but netlib begins with the first row. */
template <class T>
static __device__ __forceinline__ gpb_candidate gpb_compete(T x, bool active, int row, int column)
{
    const uint64_t bits = gpb_is_nan(x) ? (row == column ? ~(uint64_t)0 : 0) : gpb_size_bits(x);
    return { active ? (unsigned)(bits >> 32) : 0, active ? (unsigned)bits : 0, active ? (unsigned)row : ~0u };
}

/* The row and what it says of its first element, for others to read; of the row the first `count`, in
   halves. */
template <class T, int W>
static __device__ __forceinline__ void gpb_show(gpb_slot<T> *slot, gpb_candidate best, int own, T inverse,
                                                const T (&x)[W], int count)
{
    slot->best = best;
    slot->own = (unsigned)own;
    slot->inverse = inverse;
#pragma unroll
    for (int half = 0; half < W; half += W / 2) {
        if (half >= count) break;
#pragma unroll
        for (int i = half; i < half + W / 2; i += GPB_VECTOR<T>)
            *(gpb_vector<T> *)&slot->row[i] = gpb_vector_from(&x[i]);
    }
}

/* x[i - 1] = x[i] - factor row[i] for i from 2 on, of the first `count` elements, in steps. */
template <class T, int W>
static __device__ __forceinline__ void gpb_update_and_move(T (&x)[W], T factor, const T *row, int count)
{
    constexpr int STEP = 16;
#pragma unroll
    for (int c = 0; c < W; c += STEP) {
        if (c >= count) break;
#pragma unroll
        for (int i = c < 2 ? 2 : c; i < c + STEP; i++) x[i - 1] = gpb_minus_product(x[i], factor, row[i]);
    }
}

/* A row of n elements. Addresses are counted on, because to compute each anew is a dozen instructions, which
   come from memory. Behind the last element it is read again. */
template <class T, int W>
static __device__ __forceinline__ void gpb_row_read(T (&x)[W], const T *at, int64_t ld, int n)
{
#pragma unroll
    for (int j = 0; j < W; j++) {
        x[j] = gpb_element_at(at);
        if (j + 1 < n) at += ld;
    }
}
template <class T, int W>
static __device__ __forceinline__ void gpb_row_write(T *at, int64_t ld, int n, const T (&x)[W])
{
#pragma unroll
    for (int j = 0; j < W; j++, at += ld)
        if (j < n) gpb_element_put(at, x[j]);
}

template <class T, template <class> class EXCHANGE>
static __device__ __forceinline__ void gpb_panel(const gpb_panel_args &g)
{
    constexpr int W = GPB_PANEL_COLUMNS(sizeof(T));
    constexpr int WARPS = GPB_PANEL_THREADS / 32;
    __shared__ gpb_slot<T> own_slot[2];
    __shared__ gpb_candidate of_warp[2][WARPS];
    const int own = (int)(EXCHANGE<T>::rank() * GPB_PANEL_THREADS + threadIdx.x);
    T *factors = (T *)g.a + own, x[W];
    bool active = own < g.m;
    int row = own;
    gpb_row_read(x, (const T *)g.a + min((int64_t)own, g.m - 1), g.lda, g.n);
    EXCHANGE<T>::begin();
    gpb_candidate mine = gpb_largest(gpb_compete(x[0], active, row, 0));
    T inverse = gpb_pivot_inverse(x[0]);
    if (threadIdx.x % 32 == 0) of_warp[0][threadIdx.x / 32] = mine;
#pragma unroll 1
    for (int j = 0; j < g.n; j++, factors += g.lda) {
        __syncthreads();
        const gpb_candidate block = gpb_largest(of_warp[j % 2][threadIdx.x % WARPS]);
        gpb_slot<T> *slot = &own_slot[j % 2];
        if (threadIdx.x == 0 && block.row == ~0u) slot->best = block;
        if (active && (unsigned)row == block.row) gpb_show(slot, block, own, inverse, x, g.n - j);
        const gpb_slot<T> *pivot = EXCHANGE<T>::pivot(g, slot, j);
        const int at = (int)pivot->best.row;
        const bool singular = gpb_is_zero(pivot->row[0]);
        /* The pivot's row is complete. A warp of its block stores it where it began. */
        if (threadIdx.x < 32 && pivot->own / GPB_PANEL_THREADS == EXCHANGE<T>::rank()
            && threadIdx.x < g.n - j)
            gpb_element_put((T *)g.a + pivot->own + (j + (int)threadIdx.x) * g.lda, pivot->row[threadIdx.x]);
        const bool is_pivot = active && row == at;
        if (is_pivot) {
            g.ipiv[j] = g.first + at + 1;
            g.moves[j] = { g.first + j, g.first + own };
            if (singular) atomicMin(g.info, g.first + j + 1);
        }
        active = active && !is_pivot;
        row = is_pivot ? j : row == j ? at : row;
        const T factor = singular ? x[0] : gpb_by_pivot(x[0], pivot->row[0], pivot->inverse);
        if (active) gpb_element_put(factors, factor);
        x[0] = gpb_minus_product(x[1], factor, pivot->row[1]);
        /* While others wait for the reductions, the rest is updated. */
        mine = gpb_largest(gpb_compete(x[0], active, row, j + 1));
        inverse = gpb_pivot_inverse(x[0]);
        if (threadIdx.x % 32 == 0) of_warp[(j + 1) % 2][threadIdx.x / 32] = mine;
        gpb_update_and_move(x, factor, pivot->row, g.n - j);
    }
    /* The results lie in the rows in which the panel was. Rows that have another place now go there. */
    __syncthreads();
    const bool moves = own < g.m && row != own;
    if (moves) gpb_row_read(x, (const T *)g.a + own, g.lda, g.n);
    EXCHANGE<T>::all_have_read(g, g.n);
    if (moves) gpb_row_write((T *)g.a + row, g.lda, g.n, x);
    if (own < g.n) g.moves[g.n + own] = { g.first + row, g.first + own };
    /* At both ends, for those who go through panels backwards. */
    if (own == 0) g.width[0] = g.width[g.n - 1] = g.n;
}

#endif
