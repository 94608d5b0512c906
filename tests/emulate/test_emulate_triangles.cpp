/* SPDX-License-Identifier: MIT */
/* What takes a triangle to the columns of B, by the kernels' source on the CPU (emulate.h), in the four types
   of BLAS: substitution with one triangle, products with those of a diagonal, substitution with a triangle
   of any order, and of many small systems; and the identity. Bounds are of each element's residual, with
   twice the precision; so they hold for all data. Of a triangle nothing else may be read, nor the diagonal of
   a unit one. What is infinite or NaN stays in its column, and in the rows that it belongs to. */
#define __CUDA_ARCH__ 900
#include "kernels/solve/identity.cuh"
#include "kernels/solve/multiply.cuh"
#include "kernels/solve/substitute.cuh"
#include "kernels/solve/systems.cuh"
#include "kernels/solve/trsv.cuh"
#include "tests/emulate/solve.h"

/* ---- problems */

/* Rows and columns of the triangle are multiplied by powers of two, and rows of B by those that keep results
   in range. LARGE_ONES, SMALL_ONES: the diagonal's inverses are not as precise as it; of TINY they are
   infinite. TAKEN: in one row B divided by the diagonal is infinite, and what the rows above take from it
   makes it finite. HOLES: zeros on the diagonal, NaN and infinities. */
enum kind { EVEN, OF_ROWS, AT_ENDS, LARGE_ONES, SMALL_ONES, TINY, UNEVEN, TAKEN, HOLES, KINDS };
static const char *const NAMES[] = { "plain numbers", "rows of all exponents", "all exponents",
                                     "large numbers", "small numbers", "subnormal numbers",
                                     "lopsided numbers", "rows that are taken away", "holes" };

template <class T> struct problem {
    int n, cols;
    bool unit, conj;
    kind what;
    number<T> alpha;
    numbers_of<T> triangle, side;
    number<T> &l(int i, int j) { return triangle[i + j * n]; }
    number<T> &b(int i, int c) { return side[i + c * n]; }
    number<T> diagonal(int i) { return unit ? number<T>{ 1, 0 } : conjugate(l(i, i), conj); }
};

template <class T> static number<T> times(number<T> x, int exponent)
{
    const auto by = (typename number<T>::part)std::ldexp(1.0L, exponent);
    return { x.re * by, x.im * by };
}
template <class T> static void round_to_type(numbers_of<T> &all)
{
    for (number<T> &x : all) x = value(rounded<T>(x));
}

/* The last row but some of which B is what the rows above take from it, but for what rounding leaves. */
template <class T> static void take_away(problem<T> &p)
{
    const int row = p.n - 1 - below(std::min(p.n, 3));
    p.alpha = { 1, 0 };
    for (number<T> &x : p.side) x = times(x, SINGLE<T> ? 20 : 60);
    for (int j = 0; j < row; j++) p.l(row, j) = times(p.l(row, j), SINGLE<T> ? 95 : 900);
    p.l(row, row) = times(p.l(row, row), SINGLE<T> ? -20 : -90);
    for (int c = 0; c < p.cols && row; c++) {
        numbers_of<T> x(row);
        p.b(row, c) = {};
        for (int i = 0; i < row; i++) {
            x[i] = p.b(i, c);
            for (int j = 0; j < i; j++) x[i] = x[i] - conjugate(p.l(i, j), p.conj) * x[j];
            x[i] = x[i] / p.diagonal(i);
            p.b(row, c) = p.b(row, c) + conjugate(p.l(row, i), p.conj) * x[i];
        }
    }
}

template <class T> static void make_holes(problem<T> &p)
{
    const auto part = [] {
        const auto x = (typename number<T>::part)(below(2) ? NAN : below(2) ? INFINITY : -INFINITY);
        return below(2) && GPB_IS_COMPLEX<T> ? number<T>{ 1, x } : number<T>{ x, 0 };
    };
    const int row = below(p.n), which = below(3);
    if (which == 0) p.l(row, row) = {};
    if (which == 1 && row) p.l(row, below(row)) = part();
    if (which == 2) p.b(below(p.n), below(p.cols)) = part();
    p.b(row, below(p.cols)) = part();
}

template <class T>
static problem<T> made_problem(int n, int cols, kind what, int flags, bool product = false)
{
    const struct { int rows, cols, about; } spans[KINDS] = {
        {}, { SINGLE<T> ? 60 : 480, 0, 0 }, { SINGLE<T> ? 49 : 420, SINGLE<T> ? 70 : 540, 0 },
        { 0, 0, SINGLE<T> ? 61 : 499 }, { 0, 0, SINGLE<T> ? -61 : -499 }, { 0, 0, SINGLE<T> ? -69 : -531 } };
    const double alphas[] = { 1, -0.75, 1.5 };
    const auto span = spans[what];
    problem<T> p = { n, cols, flags % 2 == 1, flags / 2 % 2 == 1, what, { alphas[flags / 4 % 3], 0 },
                     numbers_of<T>(n * n), numbers_of<T>(n * cols) };
    if (GPB_IS_COMPLEX<T> && flags / 12 % 2) p.alpha.im = 1.25;
    const auto exponent = [&](int most) { return span.about + (most ? below(2 * most + 1) - most : 0); };
    const content of = what == UNEVEN ? LOPSIDED : PLAIN;
    std::vector<int> of_row(n), of_col(n);
    for (int i = 0; i < n; i++) of_row[i] = exponent(span.rows), of_col[i] = exponent(span.cols);
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) {
            number<T> x = times(value(element<T>(of)), -2);
            if (i == j) x = { below(2) ? 1 + x.re : -1 - x.re, x.im };
            if (i == j && GPB_IS_COMPLEX<T> && below(2)) x = { x.im, x.re };
            p.l(i, j) = times(x, of_row[i] + (p.unit ? -of_row[j] : of_col[j]));
        }
    for (int c = 0; c < cols; c++)
        for (int i = 0; i < n; i++)
            p.b(i, c) = times(value(element<T>(of)), product && !p.unit ? -of_col[i] : of_row[i]);
    if (what == TAKEN) take_away(p);
    if (what == HOLES) make_holes(p);
    round_to_type<T>(p.triangle);
    round_to_type<T>(p.side);
    return p;
}

/* by_smith: quotients of complex numbers whose divisor is rounded where that is subnormal. */
template <class T, class X> static bool is_solved(problem<T> &p, bool by_smith, const X &x)
{
    using W = typename number<T>::part;
    for (int c = 0; c < p.cols; c++) {
        bool broken = false;
        for (int i = 0; i < p.n; i++) {
            number<T> sum = p.alpha * p.b(i, c);
            const number<T> d = p.diagonal(i), own = x(i, c);
            W sizes = size(p.alpha) * size(p.b(i, c)) + size(d) * size(own);
            broken = broken || !is_finite(p.b(i, c)) || !is_finite(d) || size(d) == 0;
            for (int j = 0; j < i; j++) {
                const number<T> l = conjugate(p.l(i, j), p.conj), other = x(j, c);
                broken = broken || !is_finite(l);
                sum = sum - l * other;
                sizes += size(l) * size(other);
            }
            if (broken) {
                if (is_finite(own)) return false;
                continue;
            }
            const W least = (i + 4) * (1 + size(d)) + (by_smith && GPB_IS_COMPLEX<T> ? size(own) : 0);
            const W bound = COMPLEX<T> * ((i + 8) * (W)UNIT<T> * sizes + (W)LEAST<T> * least);
            if (!within(size(sum - d * own), bound)) return false;
        }
    }
    return true;
}

template <class T, class X> static bool is_product(problem<T> &p, const X &x)
{
    using W = typename number<T>::part;
    for (int c = 0; c < p.cols; c++)
        for (int i = 0; i < p.n; i++) {
            number<T> sum = {};
            W sizes = 0, least = i + 2;
            for (int j = 0; j <= i; j++) {
                const number<T> l = i == j ? p.diagonal(i) : conjugate(p.l(i, j), p.conj);
                sum = sum + l * (p.alpha * p.b(j, c));
                sizes += size(l) * size(p.alpha) * size(p.b(j, c));
                least += size(l);
            }
            const W bound = COMPLEX<T> * ((i + 8) * (W)UNIT<T> * sizes + (W)LEAST<T> * least);
            const bool right = is_finite(sum) ? within(size(sum - x(i, c)), bound) : !is_finite(x(i, c));
            if (!right) return false;
        }
    return true;
}

/* ---- in memory */

struct strides {
    int64_t rs, cs;
};
/* Rows or columns follow each other, or neither do; each way forwards and backwards. */
enum { WAYS = 9 };
static strides way(int which, int64_t rows, int64_t cols)
{
    if (which == WAYS - 1) return { 3, 3 * rows + 1 };
    const int64_t ld = (which % 2 ? cols : rows) + below(4), rs = which % 2 ? ld : 1, cs = which % 2 ? 1 : ld;
    return { which & 2 ? -rs : rs, which & 4 ? -cs : cs };
}
static int any_way() { return below(WAYS); }

/* Of the members of a batch side by side, number `member`. */
template <class T> static void put_triangle(matrix<T> &to, problem<T> &p, int member = 0)
{
    for (int j = 0; j < p.n; j++)
        for (int i = j + p.unit; i < p.n; i++) to.put(i, member * p.n + j, rounded<T>(p.l(i, j)));
}
template <class T> static void put_side(matrix<T> &to, problem<T> &p, int member = 0)
{
    for (int c = 0; c < p.cols; c++)
        for (int i = 0; i < p.n; i++) to.put(i, member * p.cols + c, rounded<T>(p.b(i, c)));
}
template <class T> static void put_anything(matrix<T> &to)
{
    for (int64_t j = 0; j < to.cols; j++)
        for (int64_t i = 0; i < to.rows; i++) to.put(i, j, made<T>(NAN, NAN));
}

template <class T> static void tell(const problem<T> &p, const char *kernel, const matrix<T> &l,
                                    const matrix<T> &b)
{
    FAIL("%c: %s of %s, %d x %d%s%s, alpha %g %g, strides %d %d and %d %d\n", LETTER<T>, kernel,
         NAMES[p.what], p.n, p.cols, p.unit ? ", unit" : "", p.conj ? ", conjugated" : "", (double)p.alpha.re,
         (double)p.alpha.im, (int)l.rs, (int)l.cs, (int)b.rs, (int)b.cs);
}

/* ---- one triangle */

static gpb_triangle_args triangle_args;
template <class T> static void substitute_thread() { gpb_substitute<T>(triangle_args); }
static gpb_trsv_args trsv_args;
template <class T> static void trsv_thread() { gpb_trsv<T>(trsv_args); }

enum by_kernel { SUBSTITUTE, TRSV };

template <class T> static void one_triangle(problem<T> p, by_kernel by)
{
    const char *const names[] = { "substitute", "trsv" };
    const strides of_l = way(any_way(), p.n, p.n), of_b = way(any_way(), p.n, p.cols);
    matrix<T> l(p.n, p.n, of_l.rs, of_l.cs), b(p.n, p.cols, of_b.rs, of_b.cs, below(GPB_REALS<T>));
    put_triangle(l, p);
    put_side(b, p);
    triangle_args = { l.at(), l.rs, l.cs, b.at(), b.rs, b.cs, p.cols,
                      { (double)p.alpha.re, (double)p.alpha.im }, p.n, p.unit, p.conj, false, below(2) };
    uint32_t arrivals = (uint32_t)-2;
    trsv_args = { triangle_args, &arrivals, arrivals };
    l.guard();
    b.guard();
    if (by == TRSV) {
        const int most = (int)GPB_TRSV_BLOCKS(p.n, sizeof(T));
        launch(trsv_thread<T>, most - below(std::min(most, 3)), GPB_TRSV_THREADS, true);
        if (arrivals != (uint32_t)(most - 2)) FAIL("%c: arrivals of %d blocks\n", LETTER<T>, most);
    } else {
        constexpr int REAL = sizeof(gpb_real<T>), MOST = GPB_SUBSTITUTE_GROUPS;
        constexpr int LEAST = GPB_SUBSTITUTE_LEAST(REAL, (int)sizeof(T));
        const int groups = LEAST + below(MOST - LEAST + 1);
        launch(substitute_thread<T>, GPB_SUBSTITUTE_BLOCKS(p.cols, groups),
               GPB_SUBSTITUTE_THREADS_OF(REAL, groups) + below(2) * GPB_SUBSTITUTE_HELPERS(REAL), false);
    }
    const bool kept = l.unguard(true) + b.unguard(false) == 0;
    if (!kept || !is_solved(p, true, b)) tell(p, names[by], l, b);
}

/* does(order, columns, kind, flags) for many of them. */
template <class T, class DOES> static void each_triangle(DOES does)
{
    constexpr int MOST = GPB_TRIANGLE_ORDER(sizeof(T));
    const struct { int n, cols; } sizes[] = { { 1, 1 }, { 2, 9 }, { 7, 8 }, { 8, 1 }, { 9, 3 }, { 15, 17 },
        { 33, 41 }, { 63, 5 }, { 64, 8 }, { 65, 1 }, { 100, 2 }, { MOST - 1, 1 }, { MOST, 9 } };
    int turn = below(24);
    for (const auto &s : sizes)
        for (int what = 0; what < KINDS; what++)
            for (int x = 0; x < (s.n < 64 ? 4 : 1); x++, turn += 5) does(s.n, s.cols, (kind)what, turn);
}

template <class T> static void substitutions()
{
    each_triangle<T>([](int n, int cols, kind what, int flags) {
        one_triangle(made_problem<T>(n, cols, what, flags), SUBSTITUTE);
    });
}

/* ---- the inverse of a triangle */

/* What column c's rows before c would be multiplied by must not show in them, nor in others. */
template <class T> static void inversion(int n, bool unit, bool backwards, bool infinite)
{
    using W = typename number<T>::part;
    const strides of_l = way(backwards ? WAYS - 1 : any_way(), n, n), of_b = way(any_way(), n, n);
    matrix<T> l(n, n, of_l.rs, of_l.cs), b(n, n, of_b.rs, of_b.cs, below(GPB_REALS<T>));
    const int bad_row = below(n), bad_col = below(bad_row + 1);
    const double bads[] = { NAN, INFINITY, 0 };
    for (int j = 0; j < n; j++)
        for (int i = j + unit; i < n; i++) {
            T x = element<T>(PLAIN);
            if (i == j) x = rounded<T>({ (W)(2 + uniform()), (W)uniform() });
            if (infinite && i == bad_row && j == bad_col) x = made<T>((gpb_real<T>)bads[below(2)], 0);
            l.put(i, j, rounded<T>({ value(x).re / (i == j ? 1 : 8), value(x).im / 8 }));
        }
    for (int c = 0; c < n; c++)
        for (int i = 0; i < n; i++) b.put(i, c, made<T>(i == c, 0));
    triangle_args = { l.at(), l.rs, l.cs, b.at(), b.rs, b.cs, n, { 1, 0 }, n, unit, false, true, false };
    l.guard();
    b.guard();
    constexpr int REAL = sizeof(gpb_real<T>), MOST = GPB_SUBSTITUTE_GROUPS;
    launch(substitute_thread<T>, GPB_SUBSTITUTE_BLOCKS(n, MOST),
           GPB_SUBSTITUTE_THREADS_OF(REAL, MOST) + below(2) * GPB_SUBSTITUTE_HELPERS(REAL), false);
    bool right = l.unguard(true) + b.unguard(false) == 0;
    for (int c = 0; c < n; c++) {
        for (int i = 0; i < c; i++) right = right && size(value(b.get(i, c))) == 0;
        bool clean = true;                             /* no element that is not finite took part so far */
        for (int i = c; i < n; i++) {
            number<T> sum = { (W)-(i == c), 0 };
            W sizes = 1;
            for (int k = c; k <= i - unit; k++) {
                sum = sum + value(l.get(i, k)) * value(b.get(k, c));
                sizes += size(value(l.get(i, k))) * size(value(b.get(k, c)));
            }
            if (unit) sum = sum + value(b.get(i, c));
            clean = clean && !(infinite && i == bad_row && bad_col >= c && bad_col <= i - unit);
            right = right && (!clean || size(sum) <= COMPLEX<T> * (i + 8) * (W)UNIT<T> * sizes);
        }
    }
    if (!right)
        FAIL("%c: inverse of order %d%s%s%s\n", LETTER<T>, n, unit ? ", unit" : "",
             backwards ? ", far apart" : "", infinite ? ", not finite" : "");
}

template <class T> static void inversions()
{
    constexpr int MOST = GPB_TRIANGLE_ORDER(sizeof(T));
    for (int n : { 1, 2, 9, 33, 65, MOST })
        for (int how = 0; how < (n < 65 ? 8 : 2); how++)
            inversion<T>(n, how & 2, how & 4, how & 1);
}

/* ---- products with the triangles of a diagonal */

static gpb_multiply_args multiply_args;
template <class T> static void multiply_thread() { gpb_multiply<T>(multiply_args); }

/* Triangles of order n, but the first and the last, if there are so many; B stays or is overwritten. */
template <class T>
static void diagonal(int count, int first, int n, int last, int cols, kind what, int flags)
{
    const bool in_place = below(2);
    std::vector<problem<T>> members;
    std::vector<int> begins;
    int order = 0;
    for (int z = 0; z < count; z++) {
        const int own = z == 0 ? first : z == count - 1 ? last : n;
        members.push_back(made_problem<T>(own, cols, what, flags, true));
        members[z].alpha = members[0].alpha;
        begins.push_back(order);
        order += own;
    }
    const strides of_l = way(any_way(), order, order), of_f = way(any_way(), order, cols),
                  of_b = in_place ? of_f : way(any_way(), order, cols);
    constexpr int REALS = GPB_REALS<T>;
    matrix<T> l(order, order, of_l.rs, of_l.cs), f(order, cols, of_f.rs, of_f.cs, below(REALS)),
        apart(order, cols, of_b.rs, of_b.cs, below(REALS));
    matrix<T> &b = in_place ? f : apart;
    put_anything(apart);
    for (int z = 0; z < count; z++) {
        problem<T> &p = members[z];
        for (int j = 0; j < p.n; j++)
            for (int i = j + p.unit; i < p.n; i++)
                l.put(begins[z] + i, begins[z] + j, rounded<T>(p.l(i, j)));
        for (int c = 0; c < cols; c++)
            for (int i = 0; i < p.n; i++) f.put(begins[z] + i, c, rounded<T>(p.b(i, c)));
    }
    const number<T> alpha = members[0].alpha;
    multiply_args = { { l.at(), l.rs, l.cs, b.at(), b.rs, b.cs, cols, { (double)alpha.re, (double)alpha.im },
                        n, members[0].unit, members[0].conj, false, false },
                      f.at(), f.rs, f.cs, order, first };
    l.guard();
    f.guard();
    apart.guard();
    launch(multiply_thread<T>, GPB_MULTIPLY_BLOCKS(cols, sizeof(gpb_real<T>), sizeof(T)),
           GPB_TRIANGLE_THREADS, false, count);
    bool right = l.unguard(true) + f.unguard(!in_place) + apart.unguard(in_place) == 0;
    for (int z = 0; z < count; z++)
        right = right && is_product(members[z], [&](int i, int c) { return b(begins[z] + i, c); });
    if (!right) tell(members[0], "multiply", l, b);
}

template <class T> static void products()
{
    each_triangle<T>([](int n, int cols, kind what, int flags) {
        diagonal<T>(1, n, n, n, cols, what, flags);
    });
    const struct { int count, first, n, last, cols; } sizes[] = { { 2, 1, 1, 1, 1 }, { 2, 3, 8, 8, 2 },
        { 2, 16, 16, 5, 9 }, { 3, 7, 33, 1, 3 }, { 3, 64, 64, 64, 4 }, { 5, 9, 9, 2, 40 },
        { 4, 65, 65, 9, 1 } };
    int turn = below(24);
    for (const auto &s : sizes)
        for (int what = 0; what < KINDS; what++)
            for (int x = 0; x < (s.n < 64 ? 4 : 1); x++, turn += 5)
                diagonal<T>(s.count, s.first, s.n, s.last, s.cols, (kind)what, turn);
}

template <class T> static void whole_triangles()
{
    constexpr int N = GPB_BLOCK_ORDER(sizeof(T));
    int turn = below(24);
    for (int n : { 1, 2, N / 2 + 1, N - 1, N, N + 1, 2 * N - 1, 2 * N, 4 * N + 3 })
        for (int what = 0; what < KINDS; what++)
            for (int x = 0; x < (n <= N ? 3 : 1); x++, turn += 5)
                one_triangle(made_problem<T>(n, 1, (kind)what, turn), TRSV);
}

/* ---- many systems */

static gpb_systems_args systems_args;
template <class T> static void systems_thread() { gpb_systems<T>(systems_args); }
template <class T> static void small_systems_thread() { gpb_small_systems<T>(systems_args); }

/* in_place: X is B. by_items: members have addresses, in another order than they lie. */
template <class T> static void many(int n, int cols, int batch, kind what, int flags, bool small)
{
    const bool in_place = below(2), by_items = below(2), from_right = below(2);
    const strides of_l = way(any_way(), n, n * batch), of_b = way(any_way(), n, cols * batch),
                  of_x = in_place ? of_b : way(any_way(), n, cols * batch);
    constexpr int REALS = GPB_REALS<T>;
    matrix<T> l(n, n * batch, of_l.rs, of_l.cs, below(REALS)),
        b(n, cols * batch, of_b.rs, of_b.cs, below(REALS)),
        apart(n, cols * batch, of_x.rs, of_x.cs, below(REALS));
    matrix<T> &x = in_place ? b : apart;
    std::vector<problem<T>> members;
    for (int member = 0; member < batch; member++) {
        members.push_back(made_problem<T>(n, cols, what, flags));
        put_triangle(l, members[member], member);
        put_side(b, members[member], member);
    }
    put_anything(apart);
    /* Elements (0, 0) lie so far behind what a member's address says. */
    const int64_t first_l = 7, first_b = -3, first_x = in_place ? first_b : 11;
    std::vector<gpb_gemm_item> items(batch);
    for (int z = 0; z < batch; z++) {
        const int member = batch - 1 - z;
        const T *of_l = l.at(0, member * n) - first_l, *of_b = b.at(0, member * cols) - first_b;
        items[z].a = from_right ? of_b : of_l;
        items[z].b = from_right ? of_l : of_b;
        items[z].c = x.at(0, member * cols) - first_x;
    }
    const number<T> alpha = members[0].alpha;
    systems_args = { l.at() - first_l, b.at() - first_b, x.at() - first_x, l.rs, l.cs, b.rs, b.cs, x.rs, x.cs,
                     n * l.cs, cols * b.cs, cols * x.cs, first_l, first_b, first_x,
                     by_items ? items.data() : NULL, batch, cols, { (double)alpha.re, (double)alpha.im }, n,
                     members[0].unit, members[0].conj, from_right };
    l.guard();
    b.guard();
    apart.guard();
    const int blocks = small ? GPB_SMALL_SYSTEMS_BLOCKS(cols, batch) : GPB_SYSTEMS_BLOCKS(cols, batch);
    launch(small ? small_systems_thread<T> : systems_thread<T>, blocks, GPB_SYSTEMS_THREADS, false);
    bool right = l.unguard(true) + b.unguard(!in_place) + apart.unguard(in_place) == 0;
    for (int member = 0; member < batch; member++)
        right = right && is_solved(members[member], false,
                                   [&](int i, int c) { return x(i, member * cols + c); });
    if (!right) tell(members[0], small ? "small systems" : "systems", l, b);
}

template <class T> static void many_systems()
{
    const struct { int n, cols, batch; } sizes[] = { { 1, 1, 1 }, { 5, 33, 3 }, { 16, 2, 5 }, { 17, 31, 2 },
        { 32, 1, 3 }, { 33, 32, 1 }, { 49, 3, 3 }, { 70, 40, 2 }, { 100, 1, 1 } },
        few[] = { { 1, 1, 9 }, { 2, 17, 3 }, { 7, 3, 5 }, { 11, 15, 4 }, { 15, 33, 2 }, { 16, 16, 6 },
                  { 16, 1, 1 } };
    int turn = below(24);
    for (int what = 0; what < KINDS; what++) {
        for (const auto &s : sizes)
            for (int x = 0; x < (s.n < 33 ? 3 : 1); x++, turn += 5)
                many<T>(s.n, s.cols, s.batch, (kind)what, turn, false);
        for (const auto &s : few)
            for (int x = 0; x < 3; x++, turn += 5) many<T>(s.n, s.cols, s.batch, (kind)what, turn, true);
    }
}

/* ---- the identity */

static gpb_identity_args identity_args;
template <class T> static void identity_thread() { gpb_identity<T>(identity_args); }

template <class T> static void identity(int64_t rows, int64_t cols, int64_t below_it)
{
    matrix<T> a(rows, cols, 1, rows + below(4), below(GPB_REALS<T>));
    put_anything(a);
    identity_args = { a.at(), a.cs, rows, cols, below_it };
    a.guard();
    launch(identity_thread<T>, 1 + below((int)cols), GPB_IDENTITY_THREADS, false);
    bool right = a.unguard(false) == 0;
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            right = right && a(i, j).re == (i == j + below_it) && a(i, j).im == 0;
    if (!right) FAIL("%c: the identity of %d x %d\n", LETTER<T>, (int)rows, (int)cols);
}

template <class T> static void run()
{
    const int before = failures;
    double of[4];
    const auto measured = [](void (*tests)()) {
        worst = 0;
        tests();
        return worst;
    };
    of[0] = measured(substitutions<T>);
    inversions<T>();
    of[1] = measured(products<T>);
    of[2] = measured(whole_triangles<T>);
    of[3] = measured(many_systems<T>);
    identity<T>(1, 1, 0);
    identity<T>(300, 7, 2);
    identity<T>(5, 9, 0);
    identity<T>(9, 20, -4);
    printf("%c: %d wrong; of their bounds: substitute %.2f, multiply %.2f, trsv %.2f, systems %.2f\n",
           LETTER<T>, failures - before, of[0], of[1], of[2], of[3]);
}

int main()
{
    run<gpb_type_s>();
    run<gpb_type_d>();
    run<gpb_type_c>();
    run<gpb_type_z>();
    return failures != 0;
}
