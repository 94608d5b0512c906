/* SPDX-License-Identifier: MIT */
/* A matrix times up to 16 vectors in d and z, by FP64 tensor cores. X is rows x k, Y is k x W, as in
   stream.cuh. Each element of X is used by one warp and goes straight from memory to the registers that the
   instruction reads it from; Y comes through the level-1 cache. So there is no shared memory to fill and no
   barrier to wait at before the end, and U steps of both are on their way in each warp all the time.

   A warp has MB fragments of rows and NB of columns. Groups of warps take chunks of U steps of k by turns,
   and their sums are added up in their order at the end. FMAs would do for a few columns (stream.cuh), but
   would be the limit from 8 on in z, and from 16 in d. */
#ifndef GPB_SHAPES_DMMA_CUH
#define GPB_SHAPES_DMMA_CUH

#include "kernels/epilogue.cuh"
#include "kernels/general/warp.cuh"

/* Which rows and k of a fragment of X a lane 4 g + t has: R rows, from row(fragment) on, and Q k, from t * Q
   on. The order of k is our own, and Y's the same, so neighbours lie side by side. In d X is the first
   operand of the instruction. In z that is Y, because a complex fragment of the first operand takes twice the
   registers, which would be lost while X is on its way. sum_row, sum_col: where the two pairs of sums lie
   that finish() takes. */
template <class T> struct gpb_straight;
template <> struct gpb_straight<double> : gpb_real_fragments {
    using gpb_real_fragments::gpb_real_fragments;
    static constexpr int R = 2, Q = 2, REALS = 4;      /* REALS: numbers that a lane loads of a fragment */
    template <int MB, int NB>
    __device__ __forceinline__ void multiply(double (&sum)[NB][MB][4], const double (&x)[MB][4],
                                             const double (&y)[NB][2]) const
    {
#pragma unroll
        for (int j = 0; j < NB; j++)
#pragma unroll
            for (int i = 0; i < MB; i++) gpb_dmma(sum[j][i], x[i], y[j]);
    }
    static __device__ __forceinline__ int sum_row(int i, int) { return row(i); }
    static __device__ __forceinline__ int sum_col(int j, int z) { return 8 * j + 2 * gpb_lane_t() + z; }
};
template <> struct gpb_straight<double2> : gpb_complex_fragments {
    static constexpr int R = 1, Q = 1, REALS = 2;
    __device__ __forceinline__ gpb_straight(bool conj_x, bool conj_y) : gpb_complex_fragments(conj_y, conj_x)
    {
    }
    template <int MB, int NB>
    __device__ __forceinline__ void multiply(double (&sum)[NB][MB][4], const double (&x)[MB][2],
                                             const double (&y)[NB][2]) const
    {
#pragma unroll
        for (int j = 0; j < NB; j++) {
            double whole[4] = { y[j][0], y[j][1] };
            complete_a(whole);
#pragma unroll
            for (int i = 0; i < MB; i++) gpb_dmma(sum[j][i], whole, x[i]);
        }
    }
    static __device__ __forceinline__ int sum_row(int i, int z) { return 8 * i + 2 * gpb_lane_t() + z; }
    static __device__ __forceinline__ int sum_col(int j, int) { return 8 * j + gpb_lane_g(); }
};

/* How X lies in memory: neighbours along rows, or along k, that can be read 16 bytes at a time; or any way.
   In z a single element has 16 bytes. */
enum gpb_straight_order { GPB_STRAIGHT_ROWS, GPB_STRAIGHT_K, GPB_STRAIGHT_ANY };

/* A fragment of X in the registers of the instruction. */
template <gpb_straight_order ORDER>
static __device__ __forceinline__ void gpb_straight_load(double (&to)[4], const double *const (&row)[2],
                                                       int64_t at, int64_t ks)
{
    if (ORDER == GPB_STRAIGHT_ROWS) {
        const double2 first = __ldcs((const double2 *)(row[0] + at)),
                      second = __ldcs((const double2 *)(row[0] + at + ks));
        to[0] = first.x;
        to[1] = first.y;
        to[2] = second.x;
        to[3] = second.y;
    } else if (ORDER == GPB_STRAIGHT_K) {
        const double2 first = __ldcs((const double2 *)(row[0] + at)),
                      second = __ldcs((const double2 *)(row[1] + at));
        to[0] = first.x;
        to[1] = second.x;
        to[2] = first.y;
        to[3] = second.y;
    } else {
        to[0] = __ldcs(row[0] + at);
        to[1] = __ldcs(row[1] + at);
        to[2] = __ldcs(row[0] + at + ks);
        to[3] = __ldcs(row[1] + at + ks);
    }
}
template <gpb_straight_order ORDER>
static __device__ __forceinline__ void gpb_straight_load(double (&to)[2], const double2 *const (&row)[1],
                                                       int64_t at, int64_t)
{
    const double2 x = ORDER == GPB_STRAIGHT_ANY ? gpb_element_ldcs(row[0] + at) : __ldcs(row[0] + at);
    to[0] = x.x;
    to[1] = x.y;
}

/* A fragment of Y. */
template <bool VECTOR>
static __device__ __forceinline__ void gpb_straight_few(double (&to)[2], const double *at, int64_t ks)
{
    if (VECTOR) {
        const double2 both = __ldg((const double2 *)at);
        to[0] = both.x;
        to[1] = both.y;
    } else {
        to[0] = __ldg(at);
        to[1] = __ldg(at + ks);
    }
}
template <bool VECTOR>
static __device__ __forceinline__ void gpb_straight_few(double (&to)[2], const double2 *at, int64_t)
{
    const double2 x = VECTOR ? __ldg(at) : gpb_element_ldg(at);
    to[0] = x.x;
    to[1] = x.y;
}

/* What a lane reads of X and Y: its rows and columns, at its first k. Those outside repeat the last one, and
   their results are not stored. */
template <class T, int MB, int NB> struct gpb_straight_side {
    const T *row[MB][gpb_straight<T>::R], *col[NB];
    int64_t ks, few_ks;                    /* from one k to the next, in X and in Y */
};

/* `chunks` chunks of U steps, `stride` k from one to the next. Y's fragments come as early as X's: a step
   ahead, all warps of a block would wait for the second-level cache at each step. */
template <gpb_straight_order ORDER, bool FEW, int U, class T, int MB, int NB>
static __device__ __forceinline__ void gpb_straight_loop(double (&sum)[NB][MB][4],
                                                       const gpb_straight<T> &fragments,
                                                       const gpb_straight_side<T, MB, NB> &s, int chunks,
                                                       int stride)
{
    constexpr int DEPTH = gpb_straight<T>::DEPTH;
    double x[U][MB][gpb_straight<T>::REALS], y[U][NB][2];
    int64_t at = 0, few_at = 0;            /* the next step of X and Y, from the lane's first k on */
    auto load = [&](int u) __attribute__((always_inline)) {
        const int step = u + 1 < U ? DEPTH : stride - (U - 1) * DEPTH;
#pragma unroll
        for (int j = 0; j < NB; j++) gpb_straight_few<FEW>(y[u][j], s.col[j] + few_at, s.few_ks);
#pragma unroll
        for (int i = 0; i < MB; i++) gpb_straight_load<ORDER>(x[u][i], s.row[i], at, s.ks);
        at = gpb_fresh(at + step * s.ks);
        few_at = gpb_fresh(few_at + step * s.few_ks);
    };
    auto chunk = [&](auto more) __attribute__((always_inline)) {
#pragma unroll
        for (int u = 0; u < U; u++) {
            fragments.multiply(sum, x[u], y[u]);
            if (decltype(more)::value) load(u);
        }
    };
    if (chunks <= 0) return;
#pragma unroll
    for (int u = 0; u < U; u++) load(u);
#pragma unroll 1
    for (; chunks > 1; chunks--) chunk(gpb_number<1>());
    chunk(gpb_number<0>());
}

static __device__ __forceinline__ void gpb_straight_put(double *to, double x) { to[0] = x; }
static __device__ __forceinline__ void gpb_straight_put(double *to, double2 x) { to[0] = x.x, to[1] = x.y; }

/* The k behind whole chunks, from `from` on: `left` of them. Beyond them there are zeros. */
template <class T, int MB, int NB>
static __device__ __forceinline__ void gpb_straight_rest(double (&sum)[NB][MB][4],
                                                       const gpb_straight<T> &fragments,
                                                       const gpb_straight_side<T, MB, NB> &s, int64_t from,
                                                       int left)
{
    using shape = gpb_straight<T>;
#pragma unroll 1
    for (int p = 0; p < left; p += shape::DEPTH) {
        double a[MB][shape::REALS], b[NB][2];
#pragma unroll
        for (int q = 0; q < shape::Q; q++) {
            const bool inside = p + gpb_lane_t() * shape::Q + q < left;
            const int64_t at = from + p + q;
#pragma unroll
            for (int x = 0; x < MB; x++)
#pragma unroll
                for (int r = 0; r < shape::R; r++)
                    gpb_straight_put(&a[x][2 * q + r],
                                     inside ? gpb_element_at(s.row[x][r] + at * s.ks) : T());
#pragma unroll
            for (int y = 0; y < NB; y++)
                gpb_straight_put(&b[y][q], inside ? gpb_element_at(s.col[y] + at * s.few_ks) : T());
        }
        fragments.multiply(sum, a, b);
    }
}

/* An operand from its tile's first row (or column) on, of which `edge` lie in the matrix. */
template <class T> struct gpb_straight_operand {
    const T *x;
    int64_t rs, ks;
    int edge;
    bool conj;
};

/* How warps share a tile, ROWS x W: WM rows each, and groups of them the chunks of k. */
template <class T, int ROWS, int W, int U, int THREADS, int WM> struct gpb_straight_shape {
    using type = gpb_straight<T>;
    static constexpr int MB = WM / type::HIGH, NB = W / 8, DOWN = ROWS / WM, GROUPS = THREADS / 32 / DOWN,
                         CHUNK = U * type::DEPTH;
    static_assert(MB * type::HIGH * DOWN == ROWS && NB * 8 == W && GROUPS * DOWN * 32 == THREADS,
                  "each warp has its part");
    static __device__ __forceinline__ int group() { return threadIdx.x / 32 / DOWN; }
    static __device__ __forceinline__ int row() { return threadIdx.x / 32 % DOWN * WM; }
};

/* A warp's sums. */
template <class shape, int U, class T, int MB, int NB>
static __device__ __forceinline__ void gpb_straight_sum_up(double (&sum)[NB][MB][4],
                                                         const gpb_straight<T> &fragments,
                                                         const gpb_straight_operand<T> &x,
                                                         const gpb_straight_operand<T> &y, int64_t k)
{
    using type = gpb_straight<T>;
    constexpr int V = GPB_VECTOR<T>, GROUPS = shape::GROUPS, CHUNK = shape::CHUNK;
    const int group = shape::group();
    const int64_t begin = (int64_t)group * CHUNK + gpb_lane_t() * type::Q;
    gpb_straight_side<T, MB, NB> s;
    s.ks = x.ks;
    s.few_ks = y.ks;
#pragma unroll
    for (int i = 0; i < MB; i++) {
        const int row = min(shape::row() + type::row(i), (x.edge - 1) / type::R * type::R);
#pragma unroll
        for (int r = 0; r < type::R; r++)
            s.row[i][r] = x.x + min(row + r, x.edge - 1) * x.rs + begin * x.ks;
    }
#pragma unroll
    for (int j = 0; j < NB; j++)
        s.col[j] = y.x + min(8 * j + gpb_lane_g(), y.edge - 1) * y.rs + begin * y.ks;
    /* 16 bytes at a time: an element of z, or two of d. */
    const bool base = ((uintptr_t)x.x & 15) == 0, few_base = ((uintptr_t)y.x & 15) == 0;
    const bool rows = base && (V == 1 || (x.rs == 1 && x.ks % V == 0 && x.edge % V == 0)),
               deep = base && x.ks == 1 && x.rs % V == 0,
               few = few_base && (V == 1 || (y.ks == 1 && y.rs % V == 0));
    const int64_t whole = k / CHUNK;       /* chunks, which the groups take by turns */
    const int chunks = (int)((whole - group + GROUPS - 1) / GROUPS);
    auto loop = [&](auto order) __attribute__((always_inline)) {
        constexpr gpb_straight_order ORDER = (gpb_straight_order)decltype(order)::value;
        if (few) gpb_straight_loop<ORDER, true, U>(sum, fragments, s, chunks, GROUPS * CHUNK);
        else gpb_straight_loop<ORDER, false, U>(sum, fragments, s, chunks, GROUPS * CHUNK);
    };
    if (rows) loop(gpb_number<GPB_STRAIGHT_ROWS>());
    else if (V > 1 && deep) loop(gpb_number<V == 1 ? GPB_STRAIGHT_ROWS : GPB_STRAIGHT_K>());
    else loop(gpb_number<GPB_STRAIGHT_ANY>());
    if (whole % GROUPS == group)
        gpb_straight_rest<T, MB, NB>(sum, fragments, s, (whole - group) * CHUNK, (int)(k - whole * CHUNK));
}

/* Adds up the groups' sums in shared memory, in their order, to sums[column][row]. One complex group's are
   added to zero: with conj(X) its imaginary parts are summed negated, and a zero has then not the sign that
   its real part has, if both come from underflow (test_special). */
template <class shape, int ROWS, int W, int THREADS, class T, int MB, int NB>
static __device__ __forceinline__ void gpb_straight_gather(T *sums, const gpb_straight<T> &fragments,
                                                         const double (&sum)[NB][MB][4])
{
    using type = gpb_straight<T>;
    T *const mine = sums + shape::group() * W * ROWS + shape::row();
#pragma unroll
    for (int j = 0; j < NB; j++)
#pragma unroll
        for (int i = 0; i < MB; i++)
#pragma unroll
            for (int z = 0; z < 2; z++)
                *(double2 *)(mine + type::sum_col(j, z) * ROWS + type::sum_row(i, z))
                    = fragments.finish(sum[j][i][z], sum[j][i][2 + z]);
    __syncthreads();
    for (int e = threadIdx.x; e < ROWS * W; e += THREADS)
        if (GPB_IS_COMPLEX<T> && shape::GROUPS == 1) sums[e] = gpb_sum(sums[e], T());
        else for (int g = 1; g < shape::GROUPS; g++) sums[e] = gpb_sum(sums[e], sums[g * W * ROWS + e]);
    __syncthreads();
}

/* op(A) is large and op(B) has at most BN columns, or the other way round. */
template <class T, int BM, int BN, int BK, int STAGES, int THREADS, int SMEM, int WM>
static __device__ __forceinline__ void gpb_straight_tile(const gpb_tile<T> &t)
{
    constexpr bool TALL = BM > BN;
    constexpr int ROWS = TALL ? BM : BN, W = TALL ? BN : BM;
    using shape = gpb_straight_shape<T, ROWS, W, STAGES, THREADS, WM>;
    __shared__ __align__(16) T sums[shape::GROUPS * ROWS * W];
    const gpb_gemm_args &g = t.g;
    const gpb_straight_operand<T> a = { gpb_global(t.a + t.i0 * g.rsa), g.rsa, g.csa,
                                      (int)min(g.m - t.i0, (int64_t)BM), g.conj_a != 0 },
                                b = { gpb_global(t.b + t.j0 * g.csb), g.csb, g.rsb,
                                      (int)min(g.n - t.j0, (int64_t)BN), g.conj_b != 0 };
    const gpb_straight_operand<T> &x = TALL ? a : b, &y = TALL ? b : a;
    const gpb_straight<T> fragments(x.conj, y.conj);
    double sum[shape::NB][shape::MB][4] = {};
    gpb_straight_sum_up<shape, STAGES>(sum, fragments, x, y, t.k);
    gpb_straight_gather<shape, ROWS, W, THREADS>(sums, fragments, sum);
    const gpb_target<T> to = gpb_target_of(t);
    for (int e = threadIdx.x; e < BM * BN; e += THREADS)
        gpb_store(to, t.i0 + e % BM, t.j0 + e / BM, sums[TALL ? e : e % BM * ROWS + e / BM]);
}

#endif
