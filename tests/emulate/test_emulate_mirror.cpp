/* SPDX-License-Identifier: MIT */
/* Symmetric and Hermitian matrices of one stored triangle made whole, by the kernel's source on the CPU
   (emulate.h): every element, and nothing beside them; or a few columns or rows of a matrix, with their
   mirror images, also where it is. What must not be read is NaN. */
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels/element.cuh"
#include "kernels/solve/mirror.cuh"

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

int main()
{
    return all<float, float>("s") + all<double, double>("d") + all<float2, float>("c")
           + all<double2, double>("z") > 0;
}
