/* SPDX-License-Identifier: MIT */
/* Forward substitution with one triangle. Substitution and not a product with the inverse, whose error grows
   with the condition of the triangle. In a pass, of eight rows, a thread solves for all of them in its
   columns, so that threads need not talk between rows. Its time is that of a chain: rows are solved for,
   others are brought up to date with them, and the next rows are solved for. */
#ifndef GPB_SUBSTITUTE_CUH
#define GPB_SUBSTITUTE_CUH

#include <stddef.h>

#include <type_traits>

#include "kernels/solve/triangle.cuh"

/* The diagonal, and the solve for the rows of a pass. */
template <class T> struct gpb_division {
    using triangle = gpb_triangle<T, 1>;               /* the columns of a warp do not matter */
    static constexpr int PASS = triangle::PASS;
    T inverse[triangle::ORDER];

    /* How rows are divided: not at all; by products with inverses, if these are as good; by divisions. */
    enum by { UNIT, INVERSES, DIVISIONS };

    /* Ones stand for the inverses of what is not there. */
    __device__ __forceinline__ by invert(const gpb_triangle_args &g)
    {
        bool usual = true;
#pragma unroll 2
        for (int i = threadIdx.x; i < triangle::ORDER; i += blockDim.x) {
            const T one = gpb_from_real<T>(1);
            const T y = i < g.n && !g.unit ? gpb_element_at((const T *)g.l + i * (g.rsl + g.csl)) : one;
            inverse[i] = gpb_quotient(one, y);
            usual = usual && gpb_inverts(y);
        }
        usual = __syncthreads_and(usual);
        return g.unit ? UNIT : usual ? INVERSES : DIVISIONS;
    }

    template <by HOW, int COLUMNS>
    __device__ __forceinline__ void solve(T (&found)[PASS][COLUMNS], const typename triangle::column *of,
                                          const gpb_triangle_args &g, int first) const
    {
#pragma unroll
        for (int s = 0; s < PASS; s++) {
#pragma unroll
            for (int c = 0; c < COLUMNS; c++)
                if (HOW == INVERSES) found[s][c] = gpb_times(found[s][c], inverse[first + s]);
                else if (HOW == DIVISIONS && first + s < g.n)
                    found[s][c] = gpb_quotient(found[s][c], of[s][first + s]);
#pragma unroll
            for (int r = s + 1; r < PASS; r++) {
                const T y = of[s][first + r];
#pragma unroll
                for (int c = 0; c < COLUMNS; c++)
                    found[r][c] = gpb_minus_product(found[r][c], y, found[s][c]);
            }
        }
    }
    template <int COLUMNS>
    __device__ __forceinline__ void solve(by how, T (&found)[PASS][COLUMNS],
                                          const typename triangle::column *of, const gpb_triangle_args &g,
                                          int first) const
    {
        if (how == INVERSES) solve<INVERSES>(found, of, g, first);
        else if (how == UNIT) solve<UNIT>(found, of, g, first);
        else solve<DIVISIONS>(found, of, g, first);
    }
};

/* A warp's columns are its own from the first row to the last. A block may have as many warps more, which
   fetch the triangle for those that solve: fetching was a sixth of a pass. */
template <class T> struct gpb_substitute_tiles : gpb_triangle_in_tiles<T> {
    using in_tiles = gpb_triangle_in_tiles<T>;
    using triangle = typename in_tiles::triangle;
    using tile = gpb_tile<T>;
    static constexpr int PASS = triangle::PASS, HIGH = in_tiles::HIGH, TILES = in_tiles::TILES;
    static constexpr int ROWS = in_tiles::ROWS;
    typename in_tiles::columns l[2];
    gpb_division<T> division;
    typename in_tiles::rows told[triangle::THREADS / 32];

    /* The pass's rows of column g to each of its lanes. They are the half `half` of the tile. */
    static __device__ __forceinline__ void tell(T (&all)[PASS][1], typename in_tiles::rows &through,
                                                const double (&x)[4], int half)
    {
        const int g = gpb_lane_g(), t = gpb_lane_t(), row = g * ROWS - half * PASS;
        __syncwarp();
        if (row >= 0 && row < PASS)
#pragma unroll
            for (int s = 0; s < 2; s++)
#pragma unroll
                for (int e = 0; e < ROWS; e++) through[2 * t + s][row + e] = tile::get(x, e, s);
        __syncwarp();
#pragma unroll
        for (int s = 0; s < PASS; s++) all[s][0] = through[g][s];
    }

    /* Row first + t. */
    static __device__ __forceinline__ T mine(const T (&all)[PASS][1], int first)
    {
        const int t = gpb_lane_t();
        const T low = t & 1 ? all[first + 1][0] : all[first][0];
        const T high = t & 1 ? all[first + 3][0] : all[first + 2][0];
        return t & 2 ? high : low;
    }

    __device__ __forceinline__ void run(const gpb_triangle_args &g)
    {
        const int64_t col = triangle::col(gpb_lane_g());
        T *to = (T *)g.b + gpb_lane_t() * g.rsb + col * g.csb;
        double x[in_tiles::SUMS][4];
        const bool helps = threadIdx.x >= triangle::THREADS;
        const bool fetches = helps || blockDim.x == triangle::THREADS;
        if (!g.ready) gpb_grid_wait();
        if (fetches) triangle::fetch(l[0], g, 0);
        const auto how = division.invert(g);
        gpb_grid_wait();
        if (!helps) in_tiles::read(x, g);
#pragma unroll 1
        for (int round = 0; round < g.n; round += HIGH) {
            const auto &of = l[round / HIGH % 2];
            triangle::template await<0>();
            if (fetches) triangle::fetch(l[(round / HIGH + 1) % 2], g, round + HIGH);
            if (helps) continue;
#pragma unroll
            for (int half = 0; half < ROWS; half++) {
                if (round + half * PASS >= g.n) break;
                const int first = round + half * PASS;
                T found[PASS][1], own[2], minus[2];
                tell(found, told[threadIdx.x / 32], x[0], half);
                division.solve(how, found, of + half * PASS, g, first);
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    own[h] = mine(found, 4 * h);
                    minus[h] = gpb_negated(own[h]);
                    if (col < g.cols && first + 4 * h + gpb_lane_t() < g.n)
                        gpb_element_put(to, gpb_conjugate(own[h], g.conj));
                    to += 4 * g.rsb;
                }
                if (half < ROWS - 1) in_tiles::template add<0>(x, of + half * PASS, minus, round, g.n);
                else in_tiles::template add<-1>(x, of + half * PASS, minus, round, g.n);
            }
        }
    }
};

/* A group of four warps has eight columns of B, and each of these warps every fourth tile of them: HIGH rows,
   of which a lane has ROWS that lie side by side, from ROWS g on, in columns 2t and 2t+1. In a round, of a
   tile's rows, the warp that has them first takes out of them what the last round has found, solves for them
   pass by pass, and shows them to the others, which meanwhile take the same out of their tiles and fetch the
   triangle. So few warps hold what is on the chain. There instructions count, because a warp gets one in four
   cycles or more, so addresses are counted on and not computed anew. An H200 takes 25 us for 256 x 4096 in s
   and 47 in c, where it took 38 and 85 with whole columns in each warp. */
template <class T> struct gpb_substitute_together {
    using triangle = gpb_triangle<T, 8>;
    using division = gpb_division<T>;
    static constexpr int PASS = triangle::PASS, ORDER = triangle::ORDER, WARPS = GPB_SUBSTITUTE_WARPS;
    static constexpr int ROWS = 16 / sizeof(T), HIGH = GPB_SUBSTITUTE_HIGH(sizeof(T));
    static constexpr int TILES = ORDER / HIGH / WARPS;
    static constexpr int COLUMN = sizeof(typename triangle::column), APART = WARPS * HIGH * sizeof(T);
    using sums = T[TILES][ROWS][2];
    static_assert(HIGH == 8 * ROWS && TILES * WARPS * HIGH == ORDER, "each warp has as many tiles");

    typename triangle::column l[2][HIGH];              /* a round's columns, but not their diagonal block */
    T diagonal[2][HIGH][HIGH + ROWS];                  /* that of a round, column by column */
    division by;
    /* Of each group. `shown`: X's rows of this round and of the last. `told`: rows that are to be solved for,
       column by column. Strides are such that lanes meet in no bank. */
    struct __align__(16) group {
        T shown[2][HIGH][8], told[8][PASS + ROWS];
    } groups[GPB_SUBSTITUTE_GROUPS];

    /* Asks for a round's columns of the triangle, from `first` on, below their diagonal block. A warp takes
       32 neighbours in memory at once, as far as there are; `warp` of `warps` its share. */
    static __device__ __forceinline__ void fetch(typename triangle::column (&to)[HIGH],
                                                 const gpb_triangle_args &g, int first, int warp, int warps)
    {
        const bool across = g.csl == 1 || g.csl == -1;
        const int lane = triangle::lane(), top = first + HIGH;
        if (across) {
            constexpr int AT_ONCE = 32 / HIGH;         /* rows */
            const int s = lane % HIGH;
            int i = top + AT_ONCE * warp + lane / HIGH;
            unsigned at = gpb_shared_address(&to[s][i]);
            const T *from = (const T *)g.l + i * g.rsl + (first + s) * g.csl;
#pragma unroll 4
            for (; i < g.n; i += AT_ONCE * warps) {
                gpb_cp_async_if<sizeof(T)>(true, at, from);
                at += AT_ONCE * warps * sizeof(T);
                from += AT_ONCE * warps * g.rsl;
            }
        } else {
            const T *column = (const T *)g.l + (top + lane) * g.rsl + (first + warp) * g.csl;
            const int64_t down = 32 * g.rsl, right = warps * g.csl;
#pragma unroll 1
            for (int s = warp; s < HIGH; s += warps, column += right) {
                const T *from = column;
                unsigned at = gpb_shared_address(&to[s][top + lane]);
#pragma unroll 1
                for (int i = top + lane; i < g.n; i += 32) {
                    gpb_cp_async_if<sizeof(T)>(true, at, from);
                    at += 32 * sizeof(T);
                    from += down;
                }
            }
        }
    }
    /* The same of the diagonal block, and of no element beside the triangle. */
    static __device__ __forceinline__ void fetch_diagonal(T (&to)[HIGH][HIGH + ROWS],
                                                          const gpb_triangle_args &g, int first, int warp,
                                                          int warps)
    {
        const bool across = g.csl == 1 || g.csl == -1;
#pragma unroll 1
        for (int e = 32 * warp + triangle::lane(); e < HIGH * HIGH; e += 32 * warps) {
            const int i = across ? e / HIGH : e % HIGH, s = across ? e % HIGH : e / HIGH;
            gpb_cp_async_if<sizeof(T)>(first + i < g.n && s + g.unit <= i, gpb_shared_address(&to[s][i]),
                                       (const T *)g.l + (first + i) * g.rsl + (first + s) * g.csl);
        }
    }

    /* x = of(x) of all that is left. */
    template <class OF> static __device__ __forceinline__ void become(sums &x, OF of)
    {
#pragma unroll
        for (int q = 0; q < TILES; q++)
#pragma unroll
            for (int e = 0; e < ROWS; e++)
#pragma unroll
                for (int s = 0; s < 2; s++) x[q][e][s] = of(x[q][e][s], q, e, s);
    }
    /* alpha B as the plain triangle takes it, from row and column on; 0 where there is no B. */
    static __device__ __forceinline__ void read(sums &x, const gpb_triangle_args &g, int row, int64_t col)
    {
        const T *at = (const T *)g.b + row * g.rsb + col * g.csb;
        become(x, [&](T, int q, int e, int s) {
            const int below = q * WARPS * HIGH + e;
            const bool there = row + below < g.n && col + s < g.cols;
            return there ? gpb_element_at(at + below * g.rsb + s * g.csb) : T();
        });
        const T alpha = gpb_scalar<T>::of(g.alpha);
        if (g.alpha[0] != 1 || g.alpha[1] != 0)
            become(x, [&](T y, int, int, int) { return gpb_product(alpha, y); });
        if (GPB_IS_COMPLEX<T> && g.conj)
            become(x, [](T y, int, int, int) { return gpb_conjugate(y, true); });
    }

    /* Takes out of COUNT tiles, from x[FIRST] on, what a pass's columns of the triangle make of the pass's X
       at `shown`. The lane's rows of them begin at `of`. BYTES: from column to column. */
    template <int COUNT, int FIRST, int BYTES>
    static __device__ __forceinline__ void take(sums &x, unsigned shown, unsigned of)
    {
#pragma unroll
        for (int k = 0; k < PASS; k++) {
            T known[2];
            gpb_shared_get(known, shown + k * 8 * sizeof(T));
#pragma unroll
            for (int q = FIRST; q < FIRST + COUNT; q++) {
                T y[ROWS];
                gpb_shared_get(y, of + (q - FIRST) * APART + k * BYTES);
#pragma unroll
                for (int e = 0; e < ROWS; e++)
#pragma unroll
                    for (int s = 0; s < 2; s++) x[q][e][s] = gpb_minus_product(x[q][e][s], y[e], known[s]);
            }
        }
    }
    /* The same of a round and of all tiles but the first, as far as there are rows of them. */
    static __device__ __forceinline__ void take_others(sums &x, unsigned shown, unsigned of, int tiles)
    {
#pragma unroll 1
        for (int p = 0; p < HIGH / PASS; p++) {
            if (TILES > 3 && tiles > 3) take<TILES - 1, 1, COLUMN>(x, shown, of);
            else if (TILES > 2 && tiles > 2) take<TILES / 2, 1, COLUMN>(x, shown, of);
            else if (tiles > 1) take<1, 1, COLUMN>(x, shown, of);
            shown += PASS * 8 * sizeof(T);
            of += PASS * COLUMN;
        }
    }

    /* Eight rows of a column. l: where in the diagonal block they are; inverse: of the first. there: how many
       of the rows are. */
    template <typename division::by HOW>
    static __device__ __forceinline__ void solve(T (&x)[PASS], unsigned l, unsigned inverse, int there)
    {
#pragma unroll
        for (int s = 0; s < PASS; s++) {
            T y[PASS], one;
#pragma unroll
            for (int v = (s + (HOW != division::DIVISIONS)) / ROWS; v < PASS / ROWS; v++) {
                T some[ROWS];
                gpb_shared_get(some, l + s * sizeof diagonal[0][0] + 16 * v);
#pragma unroll
                for (int e = 0; e < ROWS; e++) y[v * ROWS + e] = some[e];
            }
            if (HOW == division::INVERSES) {
                gpb_shared_get(one, inverse + s * sizeof(T));
                x[s] = gpb_times(x[s], one);
            } else if (HOW == division::DIVISIONS && s < there) {
                x[s] = gpb_quotient(x[s], y[s]);
            }
#pragma unroll
            for (int r = s + 1; r < PASS; r++) x[r] = gpb_minus_product(x[r], y[r], x[s]);
        }
    }

    /* Of a group the warp with tiles `member`, `member` + WARPS ... */
    __device__ __forceinline__ void substitute(const gpb_triangle_args &g, int in_group, int member)
    {
        constexpr unsigned SHOWN = sizeof groups[0].shown[0], DIAGONAL = sizeof diagonal[0];
        const int lane_g = triangle::lane() / 4, t = triangle::lane() % 4;
        const int groups_here = blockDim.x / (32 * WARPS);
        const int64_t col = ((int64_t)blockIdx.x * groups_here + in_group) * 8;
        sums x;
        if (!g.ready) gpb_grid_wait();
        fetch_diagonal(diagonal[0], g, 0, in_group * WARPS + member, groups_here * WARPS);
        gpb_cp_async_commit();
        const auto how = by.invert(g);
        gpb_grid_wait();
        read(x, g, member * HIGH + ROWS * lane_g, col + 2 * t);

        const unsigned at_l = gpb_shared_kept(l), at_diagonal = gpb_shared_kept(diagonal);
        const unsigned at_group = gpb_shared_kept(&groups[in_group]), told = at_group + offsetof(group, told);
        const unsigned tell = told + (2 * t * (PASS + ROWS) + ROWS * lane_g % PASS) * sizeof(T);
        const unsigned hear = told + lane_g * (PASS + ROWS) * sizeof(T), see = at_group + 2 * t * sizeof(T);
        const unsigned show = at_group + lane_g * sizeof(T), seen = at_group + (8 * t + lane_g) * sizeof(T);
        const int pass = ROWS * lane_g / PASS;         /* of the tile's, in which the lane's rows are */
        unsigned tile = at_l + (member * HIGH + ROWS * lane_g) * sizeof(T);
        unsigned inverses = gpb_shared_kept(by.inverse);
        unsigned odd = 0;                              /* a round of odd number: 1 */
        int own = member * HIGH;                       /* the first row of x[0] */
        T *to = (T *)g.b + t * g.rsb + (col + lane_g) * g.csb;
#pragma unroll 1
        for (int first = 0;; first += HIGH) {
            const unsigned last_shown = see + (odd ^ 1) * SHOWN, last_l = tile + (odd ^ 1) * HIGH * COLUMN;
            const int from_turn = (member - first / HIGH) & (WARPS - 1);
            const bool solves = from_turn == 0 && first < g.n;
            gpb_cp_async_wait<0>();
            __syncthreads();
            if (first + HIGH < g.n && from_turn) {
                const int warp = in_group * (WARPS - 1) + from_turn - 1, warps = groups_here * (WARPS - 1);
                fetch(l[odd], g, first, warp, warps);
                fetch_diagonal(diagonal[odd ^ 1], g, first + HIGH, warp, warps);
            }
            gpb_cp_async_commit();
            if (first && own < g.n)
#pragma unroll 1
                for (int p = 0; p < HIGH / PASS; p++)
                    take<1, 0, COLUMN>(x, last_shown + p * PASS * 8 * sizeof(T), last_l + p * PASS * COLUMN);
            if (solves) {
                unsigned block = at_diagonal + odd * DIAGONAL, shows = show + odd * SHOWN;
#pragma unroll 1
                for (int p = 0; p < HIGH / PASS; p++) {
                    T found[PASS];
                    if (pass == p)
#pragma unroll
                        for (int s = 0; s < 2; s++) {
                            T rows[ROWS];
#pragma unroll
                            for (int e = 0; e < ROWS; e++) rows[e] = x[0][e][s];
                            gpb_shared_put(tell + s * sizeof groups[0].told[0], rows);
                        }
                    __syncwarp();
#pragma unroll
                    for (int v = 0; v < PASS / ROWS; v++) {
                        T some[ROWS];
                        gpb_shared_get(some, hear + 16 * v);
#pragma unroll
                        for (int e = 0; e < ROWS; e++) found[v * ROWS + e] = some[e];
                    }
                    const unsigned rows = block + p * PASS * sizeof(T);
                    if (how == division::INVERSES) solve<division::INVERSES>(found, rows, inverses, PASS);
                    else if (how == division::UNIT) solve<division::UNIT>(found, rows, 0, PASS);
                    else solve<division::DIVISIONS>(found, rows, 0, g.n - first - p * PASS);
                    /* The four lanes g have the same. */
#pragma unroll
                    for (int s = 0; s < PASS; s++)
                        gpb_shared_put(shows + s * sizeof groups[0].shown[0][0], found[s]);
                    __syncwarp();
                    if (p < HIGH / PASS - 1)
                        take<1, 0, sizeof diagonal[0][0]>(x, see + odd * SHOWN + p * PASS * 8 * sizeof(T),
                                                          block + ROWS * lane_g * sizeof(T));
                    block += PASS * sizeof diagonal[0][0];
                    shows += PASS * 8 * sizeof(T);
                    inverses += PASS * sizeof(T);
                }
            } else {
                inverses += HIGH * sizeof(T);
            }
            if (first && first < g.n)
                take_others(x, last_shown, last_l + APART, (g.n - own + WARPS * HIGH - 1) / (WARPS * HIGH));
            /* What the last round has found, by the warp that has found it. */
            if (first && from_turn == WARPS - 1)
#pragma unroll
                for (int h = 0; h < HIGH / 4; h++) {
                    T y;
                    gpb_shared_get(y, seen + (odd ^ 1) * SHOWN + h * 4 * 8 * sizeof(T));
                    if (col + lane_g < g.cols && first - HIGH + 4 * h + t < g.n)
                        gpb_element_put(to + 4 * h * g.rsb, gpb_conjugate(y, g.conj));
                }
            if (first >= g.n) break;
            if (first) to += HIGH * g.rsb;
            odd ^= 1;
            if (!solves) continue;
            /* The registers move on, because an unrolled loop over tiles is slower: its instructions come
               from memory. */
            own += WARPS * HIGH;
            tile += APART;
            become(x, [&](T, int q, int e, int s) {
                return q < TILES - 1 ? x[min(q + 1, TILES - 1)][e][s] : T();
            });
        }
    }

    /* The warps that solve in the same round are on different schedulers. */
    __device__ __forceinline__ void run(const gpb_triangle_args &g)
    {
        const int warp = threadIdx.x / 32;
        substitute(g, warp / WARPS, (warp + warp / WARPS) % WARPS);
    }
};

/* Those of the block's columns of an inverse that are not finite, anew, each by a warp. Before, zeros above
   the diagonal were multiplied by all of L, which makes NaN of an infinite L. If it made none, nothing was
   wrong. */
template <class T>
static __device__ __forceinline__ void gpb_invert_again(const gpb_triangle_args &g, int columns)
{
    const int lane = threadIdx.x % 32;
    const int64_t first = (int64_t)blockIdx.x * columns, last = min(first + columns, g.cols);
    __syncthreads();
#pragma unroll 1
    for (int64_t c = first + threadIdx.x / 32; c < last; c += blockDim.x / 32) {
        T *x = (T *)g.b + c * g.csb;
        bool finite = true;
#pragma unroll 2
        for (int i = lane; i < g.n; i += 32) finite = gpb_is_finite(gpb_element_at(x + i * g.rsb)) && finite;
        if (__all_sync(~0u, finite)) continue;
#pragma unroll 1
        for (int i = 0; i < g.n; i++) {
            const T *l = (const T *)g.l + i * g.rsl;
            T sum = T();
#pragma unroll 1
            for (int k = (int)c + lane; k < i; k += 32)
                sum = gpb_minus_product(sum, gpb_element_at(l + k * g.csl), gpb_element_at(x + k * g.rsb));
#pragma unroll
            for (int other = 16; other; other /= 2) sum = gpb_sum(sum, gpb_shuffled(sum, lane ^ other));
            if (i == c) sum = gpb_from_real<T>(1);
            if (i >= c && !g.unit) sum = gpb_quotient(sum, gpb_element_at(l + i * g.csl));
            if (lane == 0) gpb_element_put(x + i * g.rsb, sum);
            __syncwarp();
        }
    }
}

template <class T> static __device__ __forceinline__ void gpb_substitute(const gpb_triangle_args &g)
{
    using by = std::conditional_t<GPB_TRIANGLE_TILED(sizeof(gpb_real<T>)), gpb_substitute_tiles<T>,
                                  gpb_substitute_together<T>>;
    static_assert(sizeof(by) <= GPB_SUBSTITUTE_SHARED(sizeof(gpb_real<T>), sizeof(T)), "as it is launched");
    ((by *)gpb_solve_memory())->run(g);
    constexpr int OF_GROUP = GPB_SUBSTITUTE_THREADS_OF(sizeof(gpb_real<T>), 1);
    if (g.inverts) gpb_invert_again<T>(g, 8 * min((int)blockDim.x / OF_GROUP, GPB_SUBSTITUTE_GROUPS));
}

#endif
