/* SPDX-License-Identifier: MIT */
/* The kernels that refine solutions (kernels/solve/refine.cuh), by their source on the CPU (emulate.h), in
   four types: copies between the precisions, of triangles too, whose other elements are neither read, which
   AddressSanitizer tells, nor written; numbers beyond single precision; norms; netlib's criterion, with NaN
   in all places. */
#include <sanitizer/asan_interface.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels/solve/refine.cuh"

static int failures;
template <class T> constexpr char LETTER = 's';
template <> constexpr char LETTER<double> = 'd';
template <> constexpr char LETTER<float2> = 'c';
template <> constexpr char LETTER<double2> = 'z';
#define FAIL(...) (failures++ < 20 ? printf(__VA_ARGS__) : 0)

template <class T> static T number(double re, double im)
{
    if constexpr (GPB_IS_COMPLEX<T>) return { (gpb_real<T>)re, (gpb_real<T>)im };
    else return (T)re;
}
template <class T> static std::complex<double> value(T x)
{
    if constexpr (GPB_IS_COMPLEX<T>) return { (double)x.x, (double)x.y };
    else return (double)x;
}

static double draw()
{
    static uint64_t seed = 1;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(int32_t)(seed >> 32) * 0x1p-31;
}

template <class T> static std::vector<T> matrix(int64_t ld, int64_t cols)
{
    std::vector<T> a(ld * cols);
    for (T &x : a) x = number<T>(draw(), draw());
    return a;
}

static void launch(void (*thread)(), unsigned blocks, int threads)
{
    failures += gpb_emulate_run({ thread, { blocks, 1, 1 }, (unsigned)threads, true, false, {}, {} });
}

/* ---- to single precision and back */

static gpb_narrow_args narrow_args;
template <class T> static void narrow_thread() { gpb_narrow<T>(narrow_args); }

static bool inside(char uplo, int64_t i, int64_t diagonal)
{
    return uplo == 'G' || (uplo == 'L' ? i >= diagonal : i <= diagonal);
}

/* bad: put into the element (rows / 2, cols / 2), or its imaginary part. */
template <class T>
static void narrow(int64_t rows, int64_t cols, int64_t shift, char uplo, double bad, bool imaginary)
{
    using N = gpb_narrow_type<T>;
    const int64_t ld = rows + 3, ldto = rows + 5, at = rows / 2 + cols / 2 * ld;
    std::vector<T> from = matrix<T>(ld, cols);
    std::vector<N> to = matrix<N>(ldto, cols);
    const std::vector<N> before = to;
    if (bad != 0) from[at] = imaginary ? number<T>(1, bad) : number<T>(bad, 1);
    int32_t overflow = 0;
    narrow_args = { from.data(), to.data(), ld, ldto, rows, cols, shift, &overflow, uplo };
    for (int64_t x = 0; x < ld * cols; x++)
        if (x % ld >= rows || !inside(uplo, x % ld, x / ld + shift))
            ASAN_POISON_MEMORY_REGION(&from[x], sizeof(T));
    launch(narrow_thread<T>, GPB_TRAPEZOID_BLOCKS(rows, cols), GPB_TRAPEZOID_THREADS);
    ASAN_UNPOISON_MEMORY_REGION(from.data(), from.size() * sizeof(T));
    const bool on_diagonal = uplo != 'G' && rows / 2 == cols / 2 + shift;
    const bool counts = !imaginary || (GPB_IS_COMPLEX<T> && !on_diagonal);
    const bool beyond = sizeof(gpb_real<T>) == 8 && fabs(bad) > FLT_MAX && counts
                        && inside(uplo, rows / 2, cols / 2 + shift);
    if (overflow != beyond) FAIL("%c narrow: overflow %d of %g, %c\n", LETTER<T>, overflow, bad, uplo);
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < ldto; i++) {
            const bool mine = i < rows && inside(uplo, i, j + shift);
            const T x = mine ? from[i + j * ld] : T();
            N wanted = before[i + j * ldto];
            const bool real = uplo != 'G' && i == j + shift;
            if (mine) wanted = number<N>(value(x).real(), real ? 0 : value(x).imag());
            if (mine && bad != 0 && i == rows / 2 && j == cols / 2) continue;
            if (value(to[i + j * ldto]) != value(wanted))
                FAIL("%c narrow %c %d x %d: (%d, %d)\n", LETTER<T>, uplo, (int)rows, (int)cols, (int)i,
                     (int)j);
        }
}

static gpb_correct_args correct_args;
template <class T> static void correct_thread() { gpb_correct<T>(correct_args); }

template <class T> static void correct(int64_t rows, int64_t cols, bool adds)
{
    using N = gpb_narrow_type<T>;
    const int64_t ld = rows + 2;
    std::vector<N> c = matrix<N>(ld, cols);
    std::vector<T> b = matrix<T>(ld, cols), x = matrix<T>(ld, cols), r = matrix<T>(ld, cols);
    const std::vector<T> x0 = x, r0 = r;
    correct_args = { c.data(), b.data(), x.data(), r.data(), ld, ld, ld, ld, rows, cols, adds };
    launch(correct_thread<T>, GPB_TRAPEZOID_BLOCKS(rows, cols), GPB_TRAPEZOID_THREADS);
    for (int64_t i = 0; i < ld * cols; i++) {
        const bool mine = i % ld < rows;
        const std::complex<double> more = value(c[i]), was = value(x0[i]);
        const std::complex<double> sum = adds ? was + more : more;
        const T wanted = mine ? number<T>(sum.real(), sum.imag()) : x0[i];
        if (value(x[i]) != value(wanted) || value(r[i]) != value(mine ? b[i] : r0[i]))
            FAIL("%c correct %d x %d: %d\n", LETTER<T>, (int)rows, (int)cols, (int)i);
    }
}

/* ---- norms */

static gpb_norm_args norm_args;
template <class T> static void norm_thread() { gpb_norm<T>(norm_args); }

template <class T> static void norm(int64_t rows, int64_t cols, double bad)
{
    const int64_t ld = rows + 1;
    std::vector<T> a = matrix<T>(ld, cols);
    if (bad != 0) a[rows - 1 + (cols - 1) * ld] = number<T>(bad, 0);
    uint64_t bits = 0;
    double found, largest = 0;
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < cols; j++) sum += std::abs(value(a[i + j * ld]));
        if (!(sum <= largest)) largest = sum;
    }
    norm_args = { a.data(), ld, rows, cols, &bits };
    launch(norm_thread<T>, GPB_NORM_BLOCKS(rows), GPB_NORM_THREADS);
    memcpy(&found, &bits, sizeof found);
    const bool same = bad != 0 ? found == bad || (bad != bad && found != found)
                               : fabs(found - largest) <= 1e-14 * largest;
    if (!same) FAIL("%c norm %d x %d: %g, not %g\n", LETTER<T>, (int)rows, (int)cols, found, largest);
}

/* ---- the criterion */

static gpb_judge_args judge_args;
template <class T> static void judge_thread() { gpb_judge<T>(judge_args); }

/* The largest of R is `quotient` times the limit in one column, and half of it in the others. x_at, r_at:
   where a NaN is in X and in R, -1: nowhere. One is worse than any number if the norm is finite. */
template <class T>
static void judge(int64_t rows, int64_t cols, unsigned blocks, double quotient, int64_t x_at, int64_t r_at,
                  double norm = 3)
{
    const int64_t ld = rows + 1, chosen = cols / 2;
    const double eps = 0x1p-10, limit = 3 * eps * sqrt((double)rows);
    std::vector<T> x = matrix<T>(ld, cols), r = matrix<T>(ld, cols);
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++) {
            const bool largest = i == (j * 7 + 3) % rows;
            const double of_r = 2 * limit * (j == chosen ? quotient : 0.5);
            x[i + j * ld] = largest ? number<T>(-2, 0) : number<T>(0.5, 0.5);
            r[i + j * ld] = largest ? number<T>(-of_r, 0) : T();
        }
    for (int64_t j = 0; j < cols; j++) x[rows + j * ld] = r[rows + j * ld] = number<T>(1e9, 1e9);
    if (x_at >= 0) x[x_at + chosen * ld] = number<T>(NAN, 0);
    if (r_at >= 0) r[r_at + chosen * ld] = number<T>(NAN, 0);
    int32_t worse = 0;
    uint64_t bits;
    memcpy(&bits, &norm, sizeof bits);
    judge_args = { x.data(), r.data(), ld, ld, rows, cols, &bits, eps, &worse, 5 };
    launch(judge_thread<T>, blocks, GPB_JUDGE_THREADS);
    const bool wanted = norm == 3 && (quotient > 1 || x_at >= 0 || r_at >= 0);
    if (worse != (wanted ? 5 : 0))
        FAIL("%c judge %d x %d, %g: %d\n", LETTER<T>, (int)rows, (int)cols, quotient, worse);
}

template <class T> static void all()
{
    for (int64_t rows : { 1, 31, 256, 300 })
        for (int64_t cols : { 1, 16, 37 })
            for (int64_t shift : { 0, 3, 140 })
                for (char uplo : { 'G', 'L', 'U' }) {
                    narrow<T>(rows, cols, shift, uplo, 0, false);
                    for (double bad : { (double)FLT_MAX, 1e39, -1e39, (double)INFINITY, (double)NAN })
                        for (bool imaginary : { false, true })
                            narrow<T>(rows, cols, shift, uplo, bad, imaginary);
                }
    for (int64_t rows : { 1, 256, 300 })
        for (int64_t cols : { 1, 17 })
            for (bool adds : { false, true }) correct<T>(rows, cols, adds);
    for (int64_t rows : { 1, 32, 33, 100 })
        for (int64_t cols : { 1, 8, 100 })
            for (double bad : { 0.0, (double)INFINITY, (double)NAN }) norm<T>(rows, cols, bad);
    for (int64_t rows : { 1, 2, 255, 600 })
        for (int64_t cols : { 1, 5 })
            for (double quotient : { 0.9, 1.1 }) {
                judge<T>(rows, cols, 2, quotient, -1, -1);
                for (int64_t at : { int64_t(0), rows / 2, rows - 1 }) {
                    judge<T>(rows, cols, 1, quotient, at, -1);
                    judge<T>(rows, cols, 1, quotient, -1, at);
                    judge<T>(rows, cols, 1, quotient, at, at);
                    for (double norm : { (double)INFINITY, (double)NAN })
                        judge<T>(rows, cols, 1, quotient, at, at, norm);
                }
            }
    printf("%c: %d failures so far\n", LETTER<T>, failures);
}

int main()
{
    all<float>();
    all<double>();
    all<float2>();
    all<double2>();
    return failures > 0;
}
