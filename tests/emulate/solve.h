/* SPDX-License-Identifier: MIT */
/* What the tests of kernels/solve share: numbers of twice the precision, data, and matrices in memory of
   which only the elements that belong to them may be touched. */
#ifndef GPB_EMULATE_SOLVE_H
#define GPB_EMULATE_SOLVE_H

#include <sanitizer/asan_interface.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "kernels/solve/scalar.cuh"
#include "kernels/solve_args.h"

template <class R> struct twice_of { using type = double; };
template <> struct twice_of<double> { using type = __float128; };

/* Of twice the precision of T, and of an exponent that holds products of its numbers. */
template <class T> struct number {
    using part = typename twice_of<gpb_real<T>>::type;
    part re, im;
};
template <class T> static number<T> operator+(number<T> x, number<T> y)
{
    return { x.re + y.re, x.im + y.im };
}
template <class T> static number<T> operator-(number<T> x, number<T> y)
{
    return { x.re - y.re, x.im - y.im };
}
template <class T> static number<T> operator*(number<T> x, number<T> y)
{
    if (!GPB_IS_COMPLEX<T>) return { x.re * y.re, 0 };
    return { x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re };
}
template <class W> static W magnitude(W x) { return x < 0 ? -x : x; }
template <class T> static number<T> operator/(number<T> x, number<T> y)
{
    if (!GPB_IS_COMPLEX<T>) return { x.re / y.re, 0 };
    /* Smith's */
    const bool flat = magnitude(y.re) >= magnitude(y.im);
    const auto large = flat ? y.re : y.im, small = flat ? y.im : y.re, ratio = small / large;
    const auto scale = large + ratio * small;
    if (flat) return { (x.re + x.im * ratio) / scale, (x.im - x.re * ratio) / scale };
    return { (x.re * ratio + x.im) / scale, (x.im * ratio - x.re) / scale };
}
template <class T> static number<T> conjugate(number<T> x, bool conj = true)
{
    return { x.re, conj ? -x.im : x.im };
}
/* |re| + |im| */
template <class T> static typename number<T>::part size(number<T> x)
{
    return magnitude(x.re) + magnitude(x.im);
}
template <class T> static bool is_nan(number<T> x) { return x.re != x.re || x.im != x.im; }
template <class T> static bool is_finite(number<T> x) { return size(x) - size(x) == 0; }

template <class T> using numbers_of = std::vector<number<T>>;

template <class T> static number<T> value(T x)
{
    if constexpr (GPB_IS_COMPLEX<T>) return { x.x, x.y };
    else return { x, 0 };
}
template <class T> static T rounded(number<T> x)
{
    using R = gpb_real<T>;
    if constexpr (GPB_IS_COMPLEX<T>) return { (R)x.re, (R)x.im };
    else return (R)x.re;
}
template <class T> static T made(gpb_real<T> re, gpb_real<T> im) { return rounded<T>({ re, im }); }

/* The unit of rounding, and the smallest number, of which a result below the normal ones may be half off.
   COMPLEX: how many times as much the parts of a complex result may be off together. */
template <class T> constexpr gpb_real<T> UNIT = std::numeric_limits<gpb_real<T>>::epsilon() / 2;
template <class T> constexpr gpb_real<T> LEAST = std::numeric_limits<gpb_real<T>>::denorm_min();
template <class T> constexpr int COMPLEX = GPB_IS_COMPLEX<T> ? 4 : 1;
template <class T> constexpr bool SINGLE = sizeof(gpb_real<T>) == 4;
template <class T> constexpr char LETTER = GPB_IS_COMPLEX<T> ? SINGLE<T> ? 'c' : 'z' : SINGLE<T> ? 's' : 'd';

/* ---- data */

static std::mt19937_64 numbers(11);
static int below(int most) { return (int)(numbers() % (unsigned)most); }
static double uniform() { return (double)(int64_t)numbers() * 0x1p-63; }
template <class T> static gpb_real<T> power(int of_single, int of_double)
{
    return (gpb_real<T>)std::ldexp(1.0, SINGLE<T> ? of_single : of_double);
}

/* LOPSIDED: one part of a complex element is 2^-500 of the other (in single precision 2^-60). */
enum content { PLAIN, GRADED, LOPSIDED, LARGE, SMALL, CONTENTS };
template <class T> static gpb_real<T> scale_of(content what)
{
    return what == LARGE ? power<T>(100, 960) : what == SMALL ? power<T>(-110, -1000) : 1;
}
template <class T> static T element(content what)
{
    using R = gpb_real<T>;
    R part[2];
    for (R &x : part) x = (R)uniform() * scale_of<T>(what);
    if (what == GRADED)
        for (R &x : part) x *= (R)std::ldexp(1.0, below(31) - 15);
    if (what == LOPSIDED) part[below(2)] *= power<T>(-60, -500);
    return made<T>(part[0], part[1]);
}

/* ---- memory */

/* Others than its elements are not to be read (AddressSanitizer tells, but of two floats in eight bytes only
   the latter), and keep their bits. */
template <class T> class matrix {
    using R = gpb_real<T>;
    static constexpr int PARTS = GPB_REALS<T>, MARGIN = 16;
    std::vector<R> all, before;
    std::vector<char> ours;
    R *corner;

    static R canary()
    {
        R x;
        const uint64_t bits = sizeof(R) == 4 ? 0x7fc12345 : 0x7ff8123456789abc;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    static int64_t behind(int64_t count, int64_t stride) { return stride < 0 ? (1 - count) * stride : 0; }

public:
    const int64_t rows, cols, rs, cs;

    /* shift: in real numbers, from a multiple of an element's size. */
    matrix(int64_t rows_, int64_t cols_, int64_t rs_, int64_t cs_, int shift = 0)
        : all(((rows_ - 1) * std::abs(rs_) + (cols_ - 1) * std::abs(cs_) + 1) * PARTS + 2 * MARGIN,
              canary()),
          ours(all.size()), rows(rows_), cols(cols_), rs(rs_), cs(cs_)
    {
        corner = all.data() + MARGIN + shift + (behind(rows, rs) + behind(cols, cs)) * PARTS;
    }
    matrix(const matrix &) = delete;
    T *at(int64_t i = 0, int64_t j = 0) const { return (T *)(corner + (i * rs + j * cs) * PARTS); }
    void put(int64_t i, int64_t j, T x)
    {
        gpb_element_put(at(i, j), x);
        for (int part = 0; part < PARTS; part++) ours[(R *)at(i, j) - all.data() + part] = 1;
    }
    T get(int64_t i, int64_t j) const { return gpb_element_at(at(i, j)); }
    number<T> operator()(int64_t i, int64_t j) const { return value(get(i, j)); }

    void guard()
    {
        before = all;
        for (size_t x = 0, end; x < all.size(); x = end) {
            for (end = x; end < all.size() && ours[end] == ours[x];) end++;
            if (!ours[x]) ASAN_POISON_MEMORY_REGION(&all[x], (end - x) * sizeof(R));
        }
    }
    /* How many numbers have changed that are not its own, or, read_only, any. */
    int unguard(bool read_only)
    {
        int wrong = 0;
        ASAN_UNPOISON_MEMORY_REGION(all.data(), all.size() * sizeof(R));
        for (size_t x = 0; x < all.size(); x++)
            wrong += (read_only || !ours[x]) && memcmp(&all[x], &before[x], sizeof(R));
        if (wrong) printf("%c: %d numbers were written that were not to be\n", LETTER<T>, wrong);
        return wrong;
    }
    ~matrix() { ASAN_UNPOISON_MEMORY_REGION(all.data(), all.size() * sizeof(R)); }
};

/* ---- launches and errors */

static int failures;
enum { TOLD_FAILURES = 12 };
#define FAIL(...) ((void)(failures++ < TOLD_FAILURES && printf(__VA_ARGS__)))

/* Blocks together: those that wait for each other. Copies are made early and late in turn. */
static void launch(void (*body)(), int64_t blocks, unsigned threads, bool together, unsigned members = 1)
{
    static bool early;
    early = !early;
    const gpb_emulate_span all = { NULL, (const char *)UINTPTR_MAX };
    failures += gpb_emulate_run(
        { body, { (unsigned)blocks, 1, members }, threads, true, early, all, all, together });
}

/* The largest error found, in units of the bound. */
static double worst;
template <class W> static bool within(W error, W bound)
{
    if (bound > 0) worst = std::max(worst, (double)(error / bound));
    return error <= bound;
}

#endif
