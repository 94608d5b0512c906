/* SPDX-License-Identifier: MIT */
/* Every kernel of the table, forced by name, on device operands used in place: a grid of shapes,
   transpositions, paddings, misaligned bases, alpha and beta, and hard data, with k whole, with Stream-K and
   with split-K. GPB_TEST_LARGE=1 adds large shapes. GPB_TEST_FEW=1 leaves a few small ones, for
   compute-sanitizer. Arguments: names of kernels, to run only these. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/placed.h"

typedef struct kernel { const char *name, *image; enum gpb_math math; enum gpb_form form; } kernel;
static const kernel kernels[] = {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    { #name, #image, GPB_MATH_##math, GPB_FORM_##form },
#include "kernels/gemm.def"
#undef KERNEL
};
enum { KERNELS = sizeof kernels / sizeof *kernels, MAX_PROBLEMS = 400 };

typedef struct shape { int m, n, k; } shape;
static const shape few[] = { { 1, 1, 1 }, { 33, 17, 9 }, { 129, 65, 37 }, { 130, 258, 20 } };
static const shape small[] = { { 1, 1, 1 },     { 1, 65, 33 },    { 67, 1, 31 },    { 5, 7, 0 },
                               { 2, 3, 1 },     { 31, 33, 8 },    { 32, 32, 32 },   { 63, 64, 65 },
                               { 64, 64, 16 },  { 127, 129, 17 }, { 128, 128, 15 }, { 129, 130, 33 },
                               { 200, 70, 131 } };
static const shape sliced[] = {
    { 130, 70, 163 }
};   /* k enough for slices cut on their way, ring and image filled more than once */
/* One for each row of slicer.def, which only SLICED kernels know. Each has the longest k that it takes,
   misaligned or not. */
static const shape strips[] = {
#define SLICER(p, name, image, most, cluster) { 35, 20, most ? most - 3 : 16400 },
#include "kernels/slicer.def"
#undef SLICER
};
static const shape deep[] = { { 66, 9, 2061 } };      /* k that FFMA kernels share out */
static const shape medium[] = { { 256, 256, 256 }, { 257, 255, 259 },  { 511, 384, 100 }, { 1000, 50, 777 },
                                { 3, 1030, 515 },  { 1022, 1022, 64 }, { 65, 64, 4099 } };
/* test_panels has larger ones. The last: 48 pairs of tiles, whose parts of k go round several times on 66
   clusters. */
static const shape large[] = { { 4097, 2050, 515 }, { 2050, 5132, 1000 }, { 12200, 60, 2600 } };

static placed problems[MAX_PROBLEMS];
static int problem_count, first_strip;     /* strips come last */

static void add(shape s, const char *trans, int variant, enum gpb_fill fill)
{
    if (problem_count == MAX_PROBLEMS) abort();
    problems[problem_count++] = (placed){ .of = { .m = s.m,
                                                  .n = s.n,
                                                  .k = s.k,
                                                  .transa = trans[0],
                                                  .transb = trans[1],
                                                  .row_major = variant & 1,
                                                  .fill = fill,
                                                  .pad = variant % 5 * (variant % 3),
                                                  .offset = variant % 4 },
                                          .at = { PLACE_DEVICE, PLACE_DEVICE, PLACE_DEVICE } };
}

/* Each shape with `each` of the transpositions; which, order, padding and alignment vary from one to the
   next, so that all combinations occur. */
static void add_all(const shape *shapes, size_t count, int each, enum gpb_fill fill)
{
    static const char *const trans[] = { "NN", "TN", "NT", "TT", "CN", "nt" };
    static int variant;
    for (size_t s = 0; s < count; s++)
        for (int t = 0; t < each; t++)
            add(shapes[s], trans[each < 4 ? (2 * t + (int)s) % 6 : t], variant++, fill);
}
#define ADD(shapes, each, fill) add_all(shapes, sizeof(shapes) / sizeof(shape), each, fill)

static int make_problems(void **state)
{
    (void)state;
    if (getenv("GPB_TEST_FEW")) {
        ADD(few, 6, GPB_FILL_uniform);
        ADD(sliced, 4, GPB_FILL_uniform);
        ADD(deep, 1, GPB_FILL_uniform);
    } else {
        ADD(small, 6, GPB_FILL_uniform);
        ADD(deep, 3, GPB_FILL_uniform);
        for (int i = 1; i < PLACED_FILLS; i++) ADD(few, 4, placed_fills[i]);
        if (getenv("GPB_TEST_LARGE")) {
            ADD(medium, 3, GPB_FILL_uniform);
            add(large[0], "NT", 7, GPB_FILL_uniform);
            add(large[1], "TN", 0, GPB_FILL_uniform);
            add(large[2], "NN", 3, GPB_FILL_uniform);
        }
        first_strip = problem_count;
        ADD(strips, 4, GPB_FILL_uniform);
    }
    for (int i = 0; i < problem_count; i++) placed_make(&problems[i]);
    return 0;
}

static int free_problems(void **state)
{
    (void)state;
    for (int i = 0; i < problem_count; i++) placed_free(&problems[i]);
    return 0;
}

/* Under compute-sanitizer deep shapes are run only by the kernels that they test. */
static bool is_spared(const kernel *kernel, const placed *p)
{
    const char *image = p->of.k > 2048 ? "sgemm_ffma" : p->of.k > 128 ? "sgemm_direct" : NULL;
    return getenv("GPB_TEST_FEW") && image && strcmp(kernel->image, image);
}

static void test_kernel(void **state)
{
    const kernel *kernel = *state;
    static const struct {
        float alpha, beta;
    } scalars[] = { { -0.7f, 1.3f }, { 1, 0 }, { 2, 1 }, { 0, 0 }, { 0, -0.5f } };
    static const char *const splits[] = { NULL, "3", NULL, "1" }; /* parts of k; NULL: the library's choice */
    set_option("KERNEL", kernel->name);
    set_option("MATH",
               kernel->math == GPB_MATH_TF32       ? "tf32"
                   : kernel->math == GPB_MATH_FMA ? "ieee"
                                                   : "fp32");
    int faults = 0;
    for (int i = 0; i < problem_count; i++) {
        placed *p = &problems[i];
        if (is_spared(kernel, p) || (first_strip && i >= first_strip && kernel->form != GPB_FORM_SLICED))
            continue;
        set_option("SPLITS", splits[i % 4]);
        if (kernel->math == GPB_MATH_TF32 && p->of.fill == GPB_FILL_subnormal)
            continue; /* TF32 promises nothing below 2^-126 */
        const int count = placed_is_large(p) ? 1 : (int64_t)p->of.m * p->of.n > 100000 ? 2 : 5;
        for (int s = 0; s < count && faults < 5; s++) {
            const int x = count == 1 ? i % 2 : s;
            int64_t before = gpu_calls();
            faults += !placed_try(p, scalars[x].alpha, scalars[x].beta, kernel->math);
            if (scalars[x].alpha != 0 && p->of.k) assert_int_equal(gpu_calls(), before + 1);
        }
    }
    assert_int_equal(faults, 0);
}

static bool wanted(const kernel *kernel, int count, char **names)
{
    if (!kernel_runs(kernel->image)) return false;
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], kernel->name)) return true;
    return count == 0;
}

int main(int argc, char **argv)
{
    if (!gpu_open()) return 77;
    set_option("OFFLOAD", "always");
    struct CMUnitTest tests[KERNELS] = { 0 };
    size_t count = 0;
    for (int i = 0; i < KERNELS; i++)
        if (wanted(&kernels[i], argc - 1, argv + 1))
            tests[count++] = (struct CMUnitTest){ kernels[i].name, test_kernel, NULL, NULL,
                                                  (void *)&kernels[i] };
        else fprintf(stderr, "not run on this GPU or not asked for: %s\n", kernels[i].name);
    return _cmocka_run_group_tests("kernels", tests, count, make_problems, free_problems);
}
