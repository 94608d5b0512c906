/* SPDX-License-Identifier: MIT */
/* Symmetric and Hermitian matrices of one stored triangle made whole, by the kernel's source on the CPU
   (emulate.h): every element, and nothing beside them; or a few columns or rows of a matrix, with their
   mirror images, also where it is. What must not be read is NaN. And pieces of triangles copied: what lies
   beside them is neither read, which AddressSanitizer tells, nor written. */
#include <sanitizer/asan_interface.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels/element.cuh"
#include "kernels/solve/mirror.cuh"
#include "kernels/solve/trapezoid.cuh"

static gpb_mirror_args arguments;
template <class T> static void mirror_thread() { gpb_mirror<T>(arguments); }

/* In real numbers R, `parts` of an element. The `first` columns or rows; here: where the matrix is. */
template <class T, class R> static int wrong(int64_t n, int64_t first, bool lower, bool hermitian, bool here)
{
    const int parts = sizeof(T) / sizeof(R);
    const int64_t lda = n + 3, ldto = here ? lda : n + 5;
    std::vector<R> a(lda * n * parts, (R)NAN), to(ldto * n * parts, (R)7);
    const auto value = [](int64_t i, int64_t j, int part) { return (R)(1 + i * 1000 + j + part * 0.5); };
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = lower ? j : 0; i < (lower ? n : j + 1); i++)
            for (int part = 0; part < parts; part++)
                if (!(hermitian && i == j && part)) a[(i + j * lda) * parts + part] = value(i, j, part);
    if (here) to = a;
    const std::vector<R> before = to;
    arguments = gpb_mirror_args();
    arguments.a = here ? to.data() : a.data();
    arguments.lda = lda;
    arguments.to = to.data();
    arguments.ldto = ldto;
    arguments.n = n;
    arguments.first = first;
    arguments.lower = lower;
    arguments.hermitian = hermitian;
    int failures = gpb_emulate_run({ mirror_thread<T>, { (unsigned)GPB_MIRROR_BLOCKS(n, first), 1, 1 },
                                     GPB_MIRROR_THREADS, true, false, {}, {} });
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < ldto; i++)
            for (int part = 0; part < parts; part++) {
                const bool stored = lower ? i >= j : i <= j;
                const int64_t at = (i + j * ldto) * parts + part;
                R want = stored ? value(i, j, part) : value(j, i, part);
                if (part && hermitian) want = i == j ? 0 : stored ? want : -want;
                if (i >= n || (i >= first && j >= first)) want = before[at];
                if (memcmp(&to[at], &want, sizeof want) == 0 || to[at] == want) continue;
                if (failures++ < 3)
                    printf("wrong: order %d, %d of it, (%d, %d)\n", (int)n, (int)first, (int)i, (int)j);
            }
    return failures;
}

template <class T, class R> static int all(const char *type)
{
    int failures = 0;
    for (int64_t n : { 1, 2, 31, 32, 33, 64, 101 })
        for (int64_t first : { (int64_t)1, (int64_t)32, (int64_t)64, n })
            for (int how = 0; how < 8 && first <= n; how++)
                failures += wrong<T, R>(n, first, how & 1, how & 2, how & 4);
    printf("%s: %s\n", type, failures ? "WRONG" : "ok");
    return failures;
}

static gpb_trapezoid_args piece;
template <class T> static void trapezoid_thread() { gpb_trapezoid<T>(piece); }

template <class T> static int wrong_piece(int64_t rows, int64_t cols, int64_t diagonal, bool lower)
{
    const int64_t ldfrom = rows + 2, ldto = rows + 5;
    const auto belongs = [=](int64_t i, int64_t j) {
        return i < rows && (lower ? i >= j + diagonal : i <= j + diagonal);
    };
    std::vector<T> from(ldfrom * cols), to(ldto * cols);
    for (int64_t x = 0; x < ldfrom * cols; x++) {
        const double number = 1 + (double)x;
        memcpy(&from[x], &number, sizeof(T) < 8 ? 4 : 8);
        if (!belongs(x % ldfrom, x / ldfrom)) ASAN_POISON_MEMORY_REGION(&from[x], sizeof(T));
    }
    memset((void *)to.data(), 0xa5, to.size() * sizeof(T));
    const T canary = to[0];
    piece = { from.data(), to.data(), nullptr, ldfrom, ldto, rows, cols, diagonal, lower };
    const unsigned blocks = GPB_TRAPEZOID_BLOCKS(rows, cols);
    int failures = gpb_emulate_run({ trapezoid_thread<T>, { blocks, 1, 1 }, GPB_TRAPEZOID_THREADS, true,
                                     false, {}, {} });
    ASAN_UNPOISON_MEMORY_REGION(from.data(), from.size() * sizeof(T));
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < ldto; i++) {
            const T want = belongs(i, j) ? from[i + j * ldfrom] : canary;
            if (!memcmp(&to[i + j * ldto], &want, sizeof want)) continue;
            if (failures++ < 3)
                printf("wrong: %d x %d, diagonal %d, (%d, %d)\n", (int)rows, (int)cols, (int)diagonal,
                       (int)i, (int)j);
        }
    return failures;
}

/* Columns in the order that is given. */
template <class T> static int wrong_order(int64_t rows, int64_t cols)
{
    const int64_t ldfrom = rows + 1, ldto = rows + 3;
    std::vector<T> from(ldfrom * cols), to(ldto * cols);
    std::vector<int32_t> columns(cols);
    for (int64_t x = 0; x < ldfrom * cols; x++) {
        const double number = 1 + (double)x;
        memcpy(&from[x], &number, sizeof(T) < 8 ? 4 : 8);
    }
    for (int64_t j = 0; j < cols; j++) columns[j] = (int32_t)((5 * j + 3) % cols);
    piece = { from.data(), to.data(), columns.data(), ldfrom, ldto, rows, cols, -cols, true };
    const unsigned blocks = GPB_TRAPEZOID_BLOCKS(rows, cols);
    int failures = gpb_emulate_run({ trapezoid_thread<T>, { blocks, 1, 1 }, GPB_TRAPEZOID_THREADS, true,
                                     false, {}, {} });
    for (int64_t j = 0; j < cols; j++)
        failures += memcmp(&to[j * ldto], &from[columns[j] * ldfrom], rows * sizeof(T)) != 0;
    if (failures) printf("wrong: %d x %d, columns in another order\n", (int)rows, (int)cols);
    return failures;
}

template <class T> static int pieces(const char *type)
{
    int failures = wrong_order<T>(1, 1) + wrong_order<T>(300, 37);
    for (int64_t rows : { 1, 17, 256, 300 })
        for (int64_t cols : { 1, 16, 37 })
            for (int64_t diagonal : { -301, -5, -1, 0, 1, 20, 290, 400 })
                for (int lower = 0; lower < 2; lower++)
                    failures += wrong_piece<T>(rows, cols, diagonal, lower);
    printf("%s, pieces: %s\n", type, failures ? "WRONG" : "ok");
    return failures;
}

int main()
{
    return all<float, float>("s") + all<double, double>("d") + all<float2, float>("c")
           + all<double2, double>("z") + pieces<float>("s") + pieces<double>("d") + pieces<float2>("c")
           + pieces<double2>("z") > 0;
}
