/* SPDX-License-Identifier: MIT */
/* Callers of BLAS with 32-bit and with 64-bit integers in one process. Knows nothing of libgpublas.
   -DUSER=int (or int64_t): a library whose function uses_blas calls plain names with integers of that
   kind, surrounded by others. The program: widths LIBRARY ... opens each with RTLD_LOCAL in turn, and
   after each calls uses_blas of all that have one, twice. Then it prints the BLAS libraries of the
   process, as "blas: PATH". "forward:PATH" makes libblastrampoline's mimic forward to that. -DCALLS: the
   program itself also calls the plain names; -DSCIPY: it calls scipy_sgemm_ alone; -DDOT: zdotu_. Exits
   with 1 if something is wrong. */
#include <complex.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(CALLS) || defined(SCIPY)
#ifndef USER
#define USER int
#endif
#define uses_blas uses_blas_itself
#endif
#ifdef SCIPY
#define sgemm_ scipy_sgemm_
#endif

#ifdef USER
typedef USER integer;
void sgemm_(const char *, const char *, const integer *, const integer *, const integer *, const float *,
            const float *, const integer *, const float *, const integer *, const float *, float *,
            const integer *);
integer isamax_(const integer *, const float *, const integer *);
double ddot_(const integer *, const double *, const integer *, const double *, const integer *);

/* C = A A of ones, n x n. */
static int product_is_right(int size)
{
    const integer n[] = { (integer)size, (integer)-1 };
    const float one = 1, zero = 0;
    const size_t elements = (size_t)size * (size_t)size;
    float *a = malloc(2 * sizeof *a * elements), *c = a + elements;
    int right = 1;
    if (!a) return 0;
    for (size_t i = 0; i < elements; i++) a[i] = 1;
    sgemm_("N", "N", n, n, n, &one, a, n, a, n, &zero, c, n);
    for (size_t i = 0; i < elements; i++) right &= c[i] == (float)size;
    free(a);
    return right;
}

int uses_blas(void);
int uses_blas(void)
{
    int wrong = !product_is_right(3) + !product_is_right(700);
#if !defined(SCIPY) && !defined(NO_DOT)
    const integer sizes[] = { 3, 1, 7, 1 };       /* n = 3 and 1 with others behind them, as on any stack */
    const double x[] = { 1, 2, 3 };
    const float y[] = { 1, -5, 3, 9 };
    wrong += ddot_(&sizes[0], x, &sizes[1], x, &sizes[3]) != 14;
    wrong += isamax_(&sizes[0], y, &sizes[1]) != 2;
#endif
    return wrong;
}
#undef uses_blas
#endif

#if !defined(USER) || defined(CALLS) || defined(SCIPY)
static int all_use(void **libraries, int count)
{
    int wrong = 0;
    for (int i = 0; i < 2 * count; i++) {
        int (*uses)(void);
        *(void **)&uses = dlsym(libraries[i % count], "uses_blas");
        if (uses) wrong += uses();
    }
    return wrong;
}

static void tell(void)
{
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, " r-xp ")
            && (strstr(line, "blas.so") || strstr(line, "blas64.so") || strstr(line, "blas-")
                || strstr(line, "openblas")))
            printf("blas: %s", strchr(line, '/'));
    if (maps) fclose(maps);
}

int main(int argc, char **argv)
{
    void *libraries[16];
    int count = 0, wrong = 0;
    for (int i = 1; i < argc && count < 16; i++) {
        void (*forward)(const char *);
        *(void **)&forward = dlsym(RTLD_DEFAULT, "lbt_forward");
        if (strncmp(argv[i], "forward:", 8) == 0) forward(argv[i] + 8);
        else if (!(libraries[count++] = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL))) {
            printf("%s\n", dlerror());
            return 2;
        }
        wrong += all_use(libraries, count);
    }
#if defined(CALLS) || defined(SCIPY)
    wrong += uses_blas_itself() + uses_blas_itself();
#endif
#ifdef DOT
    double _Complex zdotu_(const int *, const double _Complex *, const int *, const double _Complex *,
                           const int *);
    const double _Complex x[] = { 1 + 2 * I, 3 - I };
    const int two = 2, one = 1;
    wrong += zdotu_(&two, x, &one, x, &one) != 5 - 2 * I;
#endif
    tell();
    return wrong != 0;
}
#endif
