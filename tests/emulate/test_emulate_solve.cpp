/* SPDX-License-Identifier: MIT */
/* Panels of LU, row exchanges and blocks of Cholesky, by the kernels' source on the CPU (emulate.h), in the
   four types of BLAS. The blocks of a cluster, and those of a grid that wait for each other, take turns at
   random. Bounds are of each element's residual, by the factors that were found, with twice the precision; so
   they hold for all data. Where all of an elimination is exact, and where NaN decides, pivots and factors are
   those of netlib's getf2. */
#define __CUDA_ARCH__ 900
#include <climits>

#include "kernels/solve/cholesky.cuh"
#include "kernels/solve/panel.cuh"
#include "kernels/solve/swap.cuh"
#include "tests/emulate/solve.h"

/* ---- panels */

static gpb_panel_args panel_args;
template <class T> static void cluster_thread() { gpb_panel<T, gpb_cluster_exchange>(panel_args); }
template <class T> static void grid_thread() { gpb_panel<T, gpb_grid_exchange>(panel_args); }

/* netlib's getf2. exact: no number of it was rounded. Sizes are compared as the type has them. Behind a
   finite pivot whose parts have an infinite sum, quotients in the type are other ones, so only `told` columns
   are. */
template <class T> struct elimination {
    numbers_of<T> a;
    std::vector<int> ipiv;
    int64_t m;
    int n, told, info = 0;
    bool exact = true;

    number<T> &at(int64_t i, int64_t j) { return a[i + j * m]; }
    gpb_real<T> measure(number<T> x)
    {
        using R = gpb_real<T>;
        return std::fabs((R)x.re) + std::fabs((R)x.im);
    }
    number<T> kept(number<T> x)
    {
        const number<T> y = value(rounded<T>(x));
        exact = exact && x.re == y.re && x.im == y.im;
        return x;
    }
    /* Each of its terms is rounded, too, where numbers are subnormal. */
    number<T> product(number<T> x, number<T> y)
    {
        kept({ x.re * y.re, x.im * y.im });
        kept({ x.re * y.im, x.im * y.re });
        return x * y;
    }
    elimination(const numbers_of<T> &a_, int64_t m_, int n_) : a(a_), ipiv(n_), m(m_), n(n_), told(n_)
    {
        for (int j = 0; j < n; j++) {
            int64_t best = j;
            for (int64_t i = j + 1; i < m; i++)
                if (measure(at(i, j)) > measure(at(best, j))) best = i;
            ipiv[j] = (int)best + 1;
            for (int k = 0; k < n; k++) std::swap(at(j, k), at(best, k));
            const number<T> pivot = at(j, j);
            const bool singular = pivot.re == 0 && pivot.im == 0;
            if (told == n && is_finite(pivot) && !std::isfinite(measure(pivot))) told = j + 1;
            if (singular && !info) info = j + 1;
            for (int64_t i = j + 1; i < m; i++) {
                if (!singular) at(i, j) = kept(at(i, j) / pivot);
                for (int k = j + 1; k < n; k++) at(i, k) = kept(at(i, k) - product(at(i, j), at(j, k)));
            }
        }
    }
};

/* What a panel is judged by: residuals; the exact elimination; its pivots and INFO alone. */
enum judge { RESIDUAL, EXACT, PIVOTS };
static int exact_ones, judged;

/* PA = LU by those pivots, each pivot the largest of its column. */
template <class T> static bool is_factored(const numbers_of<T> &permuted, const matrix<T> &lu, int n)
{
    using W = typename number<T>::part;
    for (int j = 0; j < n; j++)
        for (int64_t i = 0; i < lu.rows; i++) {
            const int last = (int)std::min<int64_t>(i, j);
            number<T> sum = {};
            W sizes = 0;
            for (int k = 0; k <= last; k++) {
                const number<T> l = k == i ? number<T>{ 1, 0 } : lu(i, k), term = l * lu(k, j);
                sum = sum + term;
                sizes += size(l) * size(lu(k, j));
            }
            const W pivot = size(lu(j, j)), least = COMPLEX<T> * (W)LEAST<T>;
            const W bound = COMPLEX<T> * (last + 6) * (W)UNIT<T> * sizes + least * (last + 2)
                            + (i > j ? least * pivot : 0);
            if (!within(size(permuted[i + j * lu.rows] - sum), bound)) return false;
            if (i > j && !(size(lu(i, j) * lu(j, j)) <= pivot * (1 + 16 * (W)UNIT<T>) + least * (1 + pivot)))
                return false;
        }
    return true;
}

/* Row i of the result was row from[i]. */
static std::vector<int> permutation(const int32_t *ipiv, int n, int64_t m, int first)
{
    std::vector<int> from(m);
    for (int64_t i = 0; i < m; i++) from[i] = (int)i;
    for (int j = 0; j < n; j++) std::swap(from[j], from[ipiv[j] - 1 - first]);
    return from;
}

template <class T> static void factor(int64_t m, int n, const numbers_of<T> &a, judge by, bool grid,
                                      const char *what)
{
    const int64_t blocks = GPB_PANEL_BLOCKS(m);
    const int first = below(3) * 37, before = below(2) ? INT_MAX : first + 1;
    matrix<T> lu(m, n, 1, m + below(4), below(2) * (int)(GPB_REALS<T> == 2));
    for (int j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) lu.put(i, j, rounded<T>(a[i + j * m]));
    std::vector<int32_t> ipiv(n), width(n, -1);
    std::vector<gpb_row_move> moves(2 * n);
    std::vector<uint64_t> slots(2 * GPB_PANEL_SLOT_BYTES / 8 * blocks, (uint64_t)1 << 62);
    int32_t info = before;
    uint32_t arrivals = (uint32_t)-5;
    panel_args = { m, lu.at(), lu.cs, n, first, ipiv.data(), moves.data(), width.data(), &info, slots.data(),
                   &arrivals, arrivals };
    lu.guard();
    launch(grid ? grid_thread<T> : cluster_thread<T>, blocks, GPB_PANEL_THREADS, true);
    bool right = lu.unguard(false) == 0 && width[0] == n && width[n - 1] == n;
    right = right && (!grid || arrivals == (uint32_t)(-5 + blocks * (n + 1)));
    for (int j = 0; j < n; j++) right = right && ipiv[j] - 1 - first >= j && ipiv[j] - 1 - first < m;
    if (right) {
        const std::vector<int> from = permutation(ipiv.data(), n, m, first);
        numbers_of<T> permuted(m * n);
        for (int64_t i = 0; i < m; i++) {
            for (int j = 0; j < n; j++) permuted[i + j * m] = a[from[i] + j * m];
            if (i < n) right = right && moves[i].to == first + i && moves[i].from == first + from[i];
            if (from[i] < n)
                right = right && moves[n + from[i]].to == first + i
                        && moves[n + from[i]].from == first + from[i];
        }
        elimination<T> wanted(a, m, n);
        judged += by == EXACT;
        if (by == RESIDUAL) right = right && is_factored(permuted, lu, n) && info == before;
        else if (by == PIVOTS || wanted.exact) {
            exact_ones += by == EXACT;
            const int found = wanted.info ? std::min(before, first + wanted.info) : before;
            right = right && (info == found || wanted.told < n);
            for (int j = 0; j < wanted.told; j++) {
                right = right && ipiv[j] == first + wanted.ipiv[j];
                for (int64_t i = 0; i < m && by == EXACT; i++)
                    right = right && size(lu(i, j) - wanted.at(i, j)) == 0;
            }
        }
    }
    if (!right)
        FAIL("%c: a panel of %s, %d x %d, %s\n", LETTER<T>, what, (int)m, n, grid ? "grid" : "cluster");
}

template <class T> static numbers_of<T> random_panel(int64_t m, int n, content what)
{
    numbers_of<T> a(m * n);
    for (number<T> &x : a) x = value(element<T>(what));
    return a;
}

/* Small integers, many of the same size, in rows of that rank; times a power of two. */
template <class T> static numbers_of<T> integers(int64_t m, int n, int rank, gpb_real<T> scale)
{
    const auto unit = [] {
        const int x = below(4), sign = below(2) ? 1 : -1;
        const bool is_im = x == 3 && GPB_IS_COMPLEX<T>;
        return value(made<T>((gpb_real<T>)(x && !is_im ? sign : 0), (gpb_real<T>)(is_im ? sign : 0)));
    };
    numbers_of<T> l(m * rank), u(rank * n), a(m * n);
    for (auto &x : l) x = unit();
    for (auto &x : u) x = unit();
    for (int k = 0; k < rank && k < n; k++) u[k + k * rank] = { 1, 0 };
    for (int j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) {
            for (int k = 0; k < rank; k++)
                if (k <= i && k <= j) a[i + j * m] = a[i + j * m] + l[i + k * m] * u[k + j * rank];
            a[i + j * m] = a[i + j * m] * number<T>{ scale, 0 };
        }
    return a;
}

template <class T> static void panels()
{
    constexpr int WIDEST = GPB_PANEL_COLUMNS(sizeof(T));
    struct { int64_t m; int n; } sizes[] = { { 1, 1 }, { 2, 1 }, { 2, 2 }, { 3, 3 }, { 5, 4 }, { 7, 7 },
        { 9, 8 }, { 33, 9 }, { 31, 5 }, { 512, 3 }, { 32, WIDEST }, { 300, WIDEST - 1 }, { 513, 6 },
        { 1100, 4 } };
    for (int what = 0; what < CONTENTS; what++)
        for (const auto &s : sizes) {
            const bool many = s.m > GPB_PANEL_THREADS;
            if ((s.n > 9 || many) && what > GRADED && (what + s.n) % 2) continue;
            factor<T>(s.m, s.n, random_panel<T>(s.m, s.n, (content)what), RESIDUAL, false, "random data");
            if (s.n < 10)
                factor<T>(s.m, s.n, random_panel<T>(s.m, s.n, (content)what), RESIDUAL, true, "random data");
        }
    /* As many blocks as a cluster may have, and more than a warp has lanes. */
    const int64_t most = GPB_PANEL_CLUSTER * GPB_PANEL_THREADS - 9, more = 34 * GPB_PANEL_THREADS;
    factor<T>(most, 3, random_panel<T>(most, 3, PLAIN), RESIDUAL, false, "many rows");
    if (sizeof(T) == 4) factor<T>(more, 2, random_panel<T>(more, 2, PLAIN), RESIDUAL, true, "many rows");
    /* Pivots whose inverse is infinite, or subnormal; ties; columns of zeros. */
    const gpb_real<T> scales[] = { 1, power<T>(-149, -1074), power<T>(-145, -1060), power<T>(-127, -1023),
                                   power<T>(-126, -1022), power<T>(121, 1017), power<T>(125, 1021) };
    for (const gpb_real<T> scale : scales)
        for (int x = 0; x < 12; x++) {
            const int64_t m = x == 11 ? 700 : 3 + below(6);
            const int n = 1 + below((int)std::min<int64_t>(m, 6)), rank = x % 3 ? n : 1 + below(n);
            numbers_of<T> a = integers<T>(m, n, rank, scale);
            if (x % 4 == 1) {
                const int zeros = below(n);
                for (int64_t i = 0; i < m; i++) a[i + zeros * m] = {};
            }
            if (x == 10) std::fill(a.begin(), a.end(), number<T>{});
            factor<T>(m, n, a, EXACT, x % 2, "integers");
        }
    /* The diagonal alone, and one element of each column, over all exponents. */
    for (int x = 0; x < 4; x++) {
        const int n = 8;
        const int64_t m = 9;
        numbers_of<T> a(m * n);
        for (int j = 0; j < n; j++)
            a[(x % 2 ? m - 1 - j : j) + j * m] = value(made<T>(power<T>(-149 + 39 * j, -1074 + 299 * j), 0));
        factor<T>(m, n, a, EXACT, x / 2, "powers of two");
    }
    /* NaN where netlib's search begins wins, and elsewhere never; infinities are the largest; sums of parts
       that are infinite tie. */
    const gpb_real<T> infinity = INFINITY, nan = NAN, largest = std::numeric_limits<gpb_real<T>>::max();
    for (int x = 0; x < 24; x++) {
        const int64_t m = x == 23 ? 600 : 7;
        const int n = 4, rows = x == 23 ? 600 : 7;
        numbers_of<T> a = random_panel<T>(m, n, PLAIN);
        const int col = x % 3 == 2 ? below(n) : 0;
        const auto special = [&](int kind) {
            return value(kind == 0 ? made<T>(nan, 1) : kind == 1 ? made<T>(infinity, 1)
                         : kind == 2 ? made<T>(1, GPB_IS_COMPLEX<T> ? -infinity : 0)
                                     : made<T>(-largest, largest));
        };
        a[(x % 2 ? 0 : 1 + below(rows - 1)) + col * m] = special(x / 6);
        a[below(rows) + col * m] = special(x % 4);
        if (x % 6 == 5)                                    /* zeros and NaN alone */
            for (int64_t i = 0; i < m; i++)
                if (!is_nan(a[i + col * m])) a[i + col * m] = {};
        factor<T>(m, n, a, PIVOTS, x % 2, "NaN and infinities");
    }
}

/* ---- row exchanges */

static gpb_swap_args swap_args;
template <class T> static void swap_thread() { gpb_swap<T>(swap_args); }

template <class T> static void exchange(int64_t rows, int panels, int most, bool backwards)
{
    std::vector<gpb_row_move> moves;
    std::vector<int32_t> width, ipiv;
    const int64_t cols = rows <= 40 ? 37 : 3;              /* more than the blocks take at once */
    for (int p = 0; p < panels; p++) {
        const int first = (int)ipiv.size(), n = (int)std::min<int64_t>(rows - first, 1 + below(most));
        if (n < 1) break;
        for (int j = 0; j < n; j++) ipiv.push_back(first + j + below((int)rows - first - j) + 1);
        const std::vector<int> from = permutation(&ipiv[first], n, rows - first, first);
        moves.resize(2 * (first + n));
        width.resize(first + n, -1);
        width[first] = width[first + n - 1] = n;
        for (int64_t i = 0; i < rows - first; i++) {
            if (i < n) moves[2 * first + i] = { (int)(first + i), first + from[i] };
            if (from[i] < n) moves[2 * first + n + from[i]] = { (int)(first + i), first + from[i] };
        }
    }
    const int last = (int)ipiv.size(), begin = below(2) && width[0] < last ? width[0] : 0;
    const int count = last - begin;
    matrix<T> a(rows, cols, 1, rows + 3, (int)(GPB_REALS<T> == 2));
    std::vector<int> at(rows);
    for (int64_t i = 0; i < rows; i++) {
        at[i] = (int)i;
        for (int64_t c = 0; c < cols; c++) a.put(i, c, made<T>((int)i, (int)c));
    }
    for (int y = 0; y < count; y++) {
        const int j = backwards ? last - 1 - y : begin + y;
        std::swap(at[j], at[ipiv[j] - 1]);
    }
    swap_args = { a.at(), a.cs, cols, rows, moves.data(), width.data(), begin, last, backwards };
    if (GPB_SWAP_SHARED(rows, count) > GPB_EMULATE_SOLVE_SHARED) FAIL("no room for %d rows\n", (int)rows);
    a.guard();
    launch(swap_thread<T>, 2, GPB_SWAP_THREADS, false);
    bool right = a.unguard(false) == 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < cols; c++)
            right = right && size(a(i, c) - value(made<T>(at[i], (int)c))) == 0;
    if (!right) FAIL("%c: exchanges of %d rows, %d pivots\n", LETTER<T>, (int)rows, count);
    /* What lies behind the shared memory that the launch asks for, of the block that ran last. */
    const char *shared = gpb_solve_memory();
    for (int x = GPB_SWAP_SHARED((int)rows, count); x < GPB_EMULATE_SOLVE_SHARED; x++)
        if (shared[x] != -1) {
            FAIL("%c: exchanges of %d rows write behind their shared memory\n", LETTER<T>, (int)rows);
            break;
        }
}

template <class T> static void exchanges()
{
    for (int backwards = 0; backwards < 2; backwards++) {
        exchange<T>(1, 1, 1, backwards);
        exchange<T>(5, 9, 2, backwards);
        exchange<T>(40, 3, 9, backwards);
        exchange<T>(1000, 30, 32, backwards);
        exchange<T>(1500, 3, 16, backwards);               /* few of many rows */
        exchange<T>(1100, 1, 32, backwards);
        exchange<T>(900, 4, 256, backwards);
    }
}

/* ---- Cholesky */

static gpb_cholesky_args cholesky_args;
template <class T> static void cholesky_thread() { gpb_cholesky<T>(cholesky_args); }

/* What is wrong with a matrix: nothing; at one column the leading minor is negative, 0 or NaN. */
enum defect { SOUND, NEGATIVE, ZERO, NOT_A_NUMBER };

/* Of order n, with rows below, positive definite; rows and columns are multiplied by powers of two. The
   column of L in the middle has `small` on its diagonal, whose square is what its minor is left with. */
template <class T> static numbers_of<T> positive(int n, int64_t rows, int low, int high, double small = 1)
{
    using R = gpb_real<T>;
    numbers_of<T> factor((n + rows) * n), a((n + rows) * n);
    std::vector<R> scale(n + rows);
    for (R &x : scale) x = (R)std::ldexp(1.0, low + (high > low ? below(high - low + 1) : 0));
    for (int64_t i = 0; i < n + rows; i++)
        for (int k = 0; k < n; k++)
            factor[i + k * (n + rows)] = k > i ? number<T>{}
                : k == i ? number<T>{ (1 + uniform() / 4) * (k == n / 2 ? small : 1), 0 }
                : number<T>{ uniform() / 4, GPB_IS_COMPLEX<T> ? uniform() / 4 : 0 };
    for (int j = 0; j < n; j++)
        for (int64_t i = j; i < n + rows; i++) {
            number<T> sum = {};
            for (int k = 0; k <= j; k++)
                sum = sum + factor[i + k * (n + rows)] * conjugate(factor[j + k * (n + rows)]);
            a[i + j * (n + rows)] = value(rounded<T>({ sum.re * scale[i] * scale[j],
                                                       sum.im * scale[i] * scale[j] }));
        }
    return a;
}

template <class T> static void decompose(numbers_of<T> a, int n, int64_t rows, bool upper, defect what, int p,
                                         const char *of)
{
    using W = typename number<T>::part;
    const int64_t all = n + rows, ld = (upper ? n : all) + below(3);
    if (what == NEGATIVE) a[p + p * all].re = -a[p + p * all].re;
    if (what == NOT_A_NUMBER) a[p + p * all].re = NAN;
    if (what == ZERO) {
        for (int k = 0; k < p; k++) a[p + k * all] = {};
        a[p + p * all] = {};
    }
    matrix<T> l(all, n, upper ? ld + rows : 1, upper ? 1 : ld, below(2) * (int)(GPB_REALS<T> == 2));
    for (int j = 0; j < n; j++)
        for (int64_t i = j; i < all; i++) {
            if (i == j) a[i + j * all].im = GPB_IS_COMPLEX<T> ? NAN : 0;       /* of no meaning */
            l.put(i, j, rounded<T>(a[i + j * all]));
        }
    const int64_t blocks = GPB_CHOLESKY_BLOCKS(rows, (int64_t)sizeof(T));
    const int first = below(2) * 64;
    int32_t info = INT_MAX;
    uint32_t arrivals = (uint32_t)-1;
    cholesky_args = { l.at(), l.rs, l.cs, rows, n, first, &info, &arrivals, arrivals };
    l.guard();
    launch(cholesky_thread<T>, blocks, GPB_CHOLESKY_THREADS, true);
    bool right = l.unguard(false) == 0 && arrivals == (uint32_t)(blocks - 1)
                 && info == (what ? first + p + 1 : INT_MAX);
    /* Columns before the defect are right; it is found by one that is. */
    for (int j = 0; j < (what ? p : n) && right; j++) {
        right = right && l(j, j).im == 0 && l(j, j).re > 0;
        for (int64_t i = j; i < all && right; i++) {
            number<T> sum = a[i + j * all];
            W sizes = 0, least = j + 2 + l(j, j).re;
            if (i == j) sum.im = 0;
            for (int k = 0; k <= j; k++) {
                sum = sum - l(i, k) * conjugate(l(j, k));
                sizes += size(l(i, k)) * size(l(j, k));
                least += (size(l(i, k)) + size(l(j, k))) * (1 + l(k, k).re);
            }
            if (i == j) sum.im = 0;
            right = within(size(sum), COMPLEX<T> * ((j + 8) * (W)UNIT<T> * sizes + (W)LEAST<T> * least));
        }
    }
    if (!right)
        FAIL("%c: Cholesky of %s, order %d and %d rows, %s, defect %d at %d, INFO %d\n", LETTER<T>, of, n,
             (int)rows, upper ? "upper" : "lower", what, p, info);
}

/* A diagonal of infinities: its root is infinite, and the columns below are 0. */
template <class T> static void infinite_cholesky(int n, int p)
{
    matrix<T> l(n, n, 1, n, 0);
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++)
            l.put(i, j, rounded<T>({ i != j ? 0.25 : j == p ? (double)INFINITY : 4.0, 0 }));
    int32_t info = INT_MAX;
    uint32_t arrivals = (uint32_t)-1;
    cholesky_args = { l.at(), l.rs, l.cs, 0, n, 0, &info, &arrivals, arrivals };
    l.guard();
    launch(cholesky_thread<T>, GPB_CHOLESKY_BLOCKS(0, (int64_t)sizeof(T)), GPB_CHOLESKY_THREADS, true);
    bool right = l.unguard(false) == 0 && info == INT_MAX && l(p, p).re == INFINITY;
    for (int i = p + 1; i < n; i++) right = right && l(i, p).re == 0 && l(i, i).re > 1;
    if (!right) FAIL("%c: Cholesky of order %d with an infinity at %d, INFO %d\n", LETTER<T>, n, p, info);
}

template <class T> static void blocks_of_cholesky()
{
    constexpr int MOST = GPB_BLOCK_ORDER(sizeof(T));
    struct { int n; int64_t below; } sizes[] = { { 1, 0 }, { 1, 3 }, { 2, 0 }, { 3, 1 }, { 4, 0 }, { 5, 70 },
        { 7, 0 }, { 8, 1 }, { 9, 130 }, { 15, 0 }, { 16, 33 }, { 17, 0 }, { MOST - 1, 64 }, { MOST, 200 } };
    struct { int low, high; const char *name; } scales[] = {
        { 0, 0, "plain numbers" }, { SINGLE<T> ? -50 : -480, SINGLE<T> ? 50 : 480, "all exponents" },
        { SINGLE<T> ? 60 : 500, SINGLE<T> ? 60 : 500, "large numbers" },
        { SINGLE<T> ? -60 : -500, SINGLE<T> ? -60 : -500, "small numbers" },
        { SINGLE<T> ? -69 : -531, SINGLE<T> ? -69 : -531, "subnormal numbers" } };
    for (const auto &s : sizes)
        for (const auto &scale : scales)
            decompose<T>(positive<T>(s.n, s.below, scale.low, scale.high), s.n, s.below, below(2), SOUND, 0,
                         scale.name);
    for (const auto &s : sizes)
        decompose<T>(positive<T>(s.n, s.below, 0, 0, SINGLE<T> ? 0x1p-6 : 0x1p-18), s.n, s.below, below(2),
                     SOUND, 0, "nearly singular data");
    for (int n : { 1, 2, 9, MOST })
        for (int p : { 0, n / 2, n - 1 }) infinite_cholesky<T>(n, p);
    for (int what = NEGATIVE; what <= NOT_A_NUMBER; what++)
        for (int n : { 1, 2, 9, MOST })
            for (int p : { 0, n / 2, n - 1 })
                decompose<T>(positive<T>(n, n % 4 * 40, 0, 0), n, n % 4 * 40, p % 2, (defect)what, p, "data");
}

template <class T> static void run()
{
    const int before = failures;
    worst = exact_ones = judged = 0;
    panels<T>();
    const double of_panels = worst;
    exchanges<T>();
    worst = 0;
    blocks_of_cholesky<T>();
    printf("%c: %d wrong; panels %.2f of the bound, Cholesky %.2f; %d of %d eliminations exact\n", LETTER<T>,
           failures - before, of_panels, worst, exact_ones, judged);
}

int main()
{
    run<gpb_type_s>();
    run<gpb_type_d>();
    run<gpb_type_c>();
    run<gpb_type_z>();
    return failures != 0;
}
