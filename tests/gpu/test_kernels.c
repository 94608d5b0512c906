/* SPDX-License-Identifier: MIT */
/* Every kernel of the table in its type, forced by name, and the library's own choice in each type, on device
   operands used in place: a grid of shapes, transpositions, conjugations, paddings, misaligned bases, alpha
   and beta, triangles, batches, and hard data, with k whole, with Stream-K and with split-K. GPB_TEST_LARGE=1
   adds large shapes, and GPB_TEST_LARGE=only has no others. GPB_TEST_FEW=1 leaves a few small ones, for
   compute-sanitizer. GPB_TEST_HALVES=1: a few, whose complex operands are aligned as real ones are (BLAS
   wants no more). GPB_TEST_TYPES=dcz: these types alone, each of which must have a kernel here. Arguments:
   names of kernels, to run only these. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/gpu/placed.h"

/* name NULL: the library's choice. */
typedef struct kernel {
    const char *name, *image;
    enum gpb_type type;
    enum gpb_math math;
    enum gpb_form form;
    unsigned caps;
} kernel;
static const kernel kernels[] = {
#define TYPE(letter, type, bytes, flops, kind)                                             \
    { NULL, NULL, GPB_TYPE_##letter, GPB_MATH_FP16X3, GPB_FORM_STRIDED, GPB_CAP_NONE },     \
    { NULL, NULL, GPB_TYPE_##letter, GPB_MATH_FMA, GPB_FORM_STRIDED, GPB_CAP_NONE },
#include "dispatch/type.def"
#undef TYPE
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    { #name, #image, GPB_TYPE_##p, GPB_MATH_##math, GPB_FORM_##form, GPB_CAP_##caps },
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
static const struct { enum gpb_type type; shape of; } strips[] = {
#define SLICER(p, name, image, most, cluster) { GPB_TYPE_##p, { 35, 20, most ? most - 3 : 16400 } },
#include "kernels/slicer.def"
#undef SLICER
};
/* Members of a batch: many small ones, and a few. */
static const struct { shape of; int batch; } batches[] = { { { 33, 17, 9 }, 37 }, { { 70, 130, 40 }, 3 } };
static const shape triangles[] = { { 1, 1, 5 }, { 65, 65, 33 }, { 136, 136, 96 }, { 200, 200, 17 } };
static const shape deep[] = { { 66, 9, 2061 } };      /* k that FFMA kernels share out */
/* The same for kernels that load by tensor maps, which share out a quarter of a round at least. */
static const shape shared[] = { { 770, 770, 2064 } };
static const shape medium[] = { { 256, 256, 256 }, { 257, 255, 259 },  { 511, 384, 100 }, { 1000, 50, 777 },
                                { 3, 1030, 515 },  { 1022, 1022, 64 }, { 65, 64, 4099 } };
/* test_panels has larger ones. The last: 48 pairs of tiles, whose parts of k go round several times on 66
   clusters. */
static const shape large[] = { { 4097, 2050, 515 }, { 2050, 5132, 1000 }, { 12200, 60, 2600 } };

static placed problems[MAX_PROBLEMS];
static int problem_count, first_strip;     /* strips come last */
static enum gpb_type type;                 /* of all problems */

static bool is_complex(void) { return gpb_type_of(type)->kind == GPB_TYPE_COMPLEX; }

/* Under compute-sanitizer s has more, for what all types share. */
static bool is_spare(void) { return getenv("GPB_TEST_FEW") && type != GPB_TYPE_s; }

static gpb_problem *add(shape s, const char *trans, int variant, enum gpb_fill fill)
{
    if (problem_count == MAX_PROBLEMS) abort();
    problems[problem_count] = (placed){ .of = { .type = type,
                                                .m = s.m,
                                                .n = s.n,
                                                .k = s.k,
                                                .transa = trans[0],
                                                .transb = trans[1],
                                                .row_major = variant & 1,
                                                .fill = fill,
                                                .pad = variant % 5 * (variant % 3),
                                                .offset = variant % 4 },
                                        .at = { PLACE_DEVICE, PLACE_DEVICE, PLACE_DEVICE } };
    return &problems[problem_count++].of;
}

/* Of a real type C is T. Of a complex one each operand is to be conjugated as often as transposed. */
static const char *pair(int x)
{
    static const char *const plain[] = { "NN", "TN", "NT", "TT", "CN", "nt" };
    static const char *const conjugated[] = { "NN", "CN", "NC", "TC", "CC", "nt", "CT", "tt" };
    return is_complex() ? conjugated[x % 8] : plain[x % 6];
}

/* Each shape with `each` of the transpositions; which, order, padding and alignment vary from one to the
   next, so that all combinations occur. */
static int variant;
static void add_all(const shape *shapes, size_t count, int each, enum gpb_fill fill)
{
    for (size_t s = 0; s < count; s++)
        for (int t = 0; t < each; t++) add(shapes[s], pair((each < 4 ? 2 * t : t) + (int)s), variant++, fill);
}
#define ADD(shapes, each, fill) add_all(shapes, sizeof(shapes) / sizeof(shape), each, fill)

/* By fixed distances and by addresses, and triangles of both sides. */
static void add_other_routines(void)
{
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        for (int t = 0; t < 4; t++) {
            gpb_problem *p = add(batches[i].of, pair(3 * t + (int)i), variant++, GPB_FILL_uniform);
            p->routine = t % 2 ? GPB_TEST_gemm_batch : GPB_TEST_gemm_batch_strided;
            p->batch = batches[i].batch;
        }
    static const enum gpb_test_routine with_triangles[] = { GPB_TEST_gemmtr, GPB_TEST_syrk, GPB_TEST_herk,
                                                            GPB_TEST_syr2k, GPB_TEST_her2k };
    for (size_t i = 0; i < sizeof triangles / sizeof *triangles; i++)
        for (int t = 0; t < 10; t++) {
            gpb_problem *p = add(triangles[i], pair(3 * t + (int)i), variant++, GPB_FILL_uniform);
            p->routine = with_triangles[t % 5];
            p->uplo = "UL"[t / 5];
        }
}

static void add_large(void)
{
    /* Aligned, so that kernels that load by tensor maps compute both products at once. Alpha is real in one
       of two neighbours. */
    static const enum gpb_test_routine twofold[] = { GPB_TEST_syr2k, GPB_TEST_her2k };
    ADD(medium, 3, GPB_FILL_uniform);
    ADD(shared, 2, GPB_FILL_uniform);
    for (int x = 0; x < 4; x++) {
        gpb_problem *p = add((shape){ 1026, 1026, 258 }, x % 2 ? "TN" : "NT", 0, GPB_FILL_uniform);
        p->routine = twofold[x / 2];
        p->uplo = "UL"[x % 2];
    }
    add(large[0], pair(2), 7, GPB_FILL_uniform);
    add(large[1], pair(1), 0, GPB_FILL_uniform);
    add(large[2], "NN", 3, GPB_FILL_uniform);
}

static void add_strips(void)
{
    for (size_t i = 0; i < sizeof strips / sizeof *strips; i++)
        if (strips[i].type == type) add_all(&strips[i].of, 1, 4, GPB_FILL_uniform);
}

static void make_problems(void)
{
    const char *large = getenv("GPB_TEST_LARGE");
    problem_count = first_strip = 0;
    if (getenv("GPB_TEST_FEW") || getenv("GPB_TEST_HALVES")) {
        ADD(few, is_spare() ? 3 : 6, GPB_FILL_uniform);
        ADD(sliced, is_spare() ? 2 : 4, GPB_FILL_uniform);
        ADD(deep, 1, GPB_FILL_uniform);
        ADD(shared, 1, GPB_FILL_uniform);
    } else if (large && !strcmp(large, "only")) {
        add_large();
    } else {
        ADD(small, 6, GPB_FILL_uniform);
        ADD(deep, 3, GPB_FILL_uniform);
        for (int i = 1; i < PLACED_FILLS; i++) ADD(few, 4, placed_fills[i]);
        add_other_routines();
        if (large) add_large();
        first_strip = problem_count;
        add_strips();
    }
    for (int i = 0; i < problem_count; i++) {
        if (getenv("GPB_TEST_HALVES")) problems[i].shift = (int)gpb_type_real_bytes(type);
        placed_make(&problems[i]);
    }
}

/* Under compute-sanitizer deep shapes are run only by the kernels that they test. */
static bool is_spared(const kernel *kernel, const placed *p)
{
    if (!getenv("GPB_TEST_FEW") || p->of.k <= 128) return false;
    if (!kernel->image) return true;
    if (p->of.m == shared[0].m) return kernel->form != GPB_FORM_MAPPED;
    if (p->of.k > 2048) return strcmp(kernel->image, "sgemm_ffma") && !(kernel->caps & GPB_CAP_STREAM_K);
    return type == GPB_TYPE_s && strcmp(kernel->image, "sgemm_direct");
}

/* TF32 promises nothing below 2^-126. */
static bool is_for(const kernel *kernel, int problem)
{
    const placed *p = &problems[problem];
    if (kernel->math == GPB_MATH_TF32 && p->of.fill == GPB_FILL_subnormal) return false;
    if (first_strip && problem >= first_strip && kernel->form != GPB_FORM_SLICED) return false;
    return !is_spared(kernel, p);
}

static void set_kernel(const kernel *kernel)
{
    set_option("KERNEL", kernel->name);
    set_option("MATH",
               kernel->math == GPB_MATH_TF32       ? "tf32"
                   : kernel->math == GPB_MATH_FMA ? "ieee"
                                                   : "fp32");
}

/* One call; its name if it is wrong. */
static bool is_right(const kernel *kernel, placed *p, const gpb_scalar scalars[2], const char *splits)
{
    if (placed_try(p, scalars[0], scalars[1], kernel->math)) return true;
    fprintf(stderr, "  GPUBLAS_KERNEL %s, GPUBLAS_SPLITS %s\n", kernel->name ? kernel->name : "unset",
            splits ? splits : "unset");
    return false;
}

/* How many of test_kernel's scalars. */
static int scalars_for(const placed *p)
{
    if (placed_is_large(p)) return 1;
    return is_spare() || (int64_t)p->of.m * p->of.n > 100000 ? 2 : 5;
}

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void test_kernel(void **state)
{
    const kernel *kernel = *state;
    /* no single-precision number has these */
    static const gpb_scalar scalars[][2] = { { -0.7 + 0.4i, 1.3 - 0.2i },
                                             { 1, 0 },
                                             { 2 - 1.0i, 1 },
                                             { 0, 0 },
                                             { 0, -0.5 + 0.25i } };
    static const char *const splits[] = { NULL, "3", NULL, "1" }; /* parts of k; NULL: the library's choice */
    const double began = now();
    set_kernel(kernel);
    int faults = 0, calls = 0;
    for (int i = 0; i < problem_count; i++) {
        placed *p = &problems[i];
        if (!is_for(kernel, i)) continue;
        set_option("SPLITS", splits[i % 4]);
        const int count = scalars_for(p);
        for (int s = 0; s < count && faults < 5; s++, calls++) {
            const int x = count == 1 ? i % 2 : s;
            int64_t before = gpu_calls();
            faults += !is_right(kernel, p, scalars[x], splits[i % 4]);
            if (scalars[x][0] == 0 || p->of.k == 0) continue;
            assert_int_equal(gpu_calls(), before + 1);
        }
    }
    printf("%d calls in %.1f s\n", calls, now() - began);
    assert_int_equal(faults, 0);
    assert_true(calls > 0);
}

static bool listed(const char *name, int count, char **names)
{
    for (int i = 0; i < count; i++)
        if (name && !strcmp(names[i], name)) return true;
    return count == 0;
}

static bool wanted(const kernel *kernel, int count, char **names)
{
    const char *types = getenv("GPB_TEST_TYPES");
    if (types && !strchr(types, gpb_type_of(kernel->type)->letter)) return false;
    if (!listed(kernel->name, count, names)) return false;
    return kernel->image ? kernel_runs(kernel->image) : type_runs(kernel->type);
}

/* The tests of one type. How many there are; adds up failures. */
static size_t run_type(int *failures, int count, char **names)
{
    static char title[KERNELS][40];
    struct CMUnitTest tests[KERNELS] = { 0 };
    size_t made = 0;
    for (int i = 0; i < KERNELS; i++) {
        if (kernels[i].type != type || !wanted(&kernels[i], count, names)) continue;
        snprintf(title[i], sizeof title[i], "%c %s", gpb_type_of(type)->letter,
                 kernels[i].name ? kernels[i].name : kernels[i].math == GPB_MATH_FMA ? "ieee" : "fp32");
        tests[made++] = (struct CMUnitTest){ title[i], test_kernel, NULL, NULL, (void *)&kernels[i] };
    }
    if (!made) return 0;
    make_problems();
    *failures += _cmocka_run_group_tests("kernels", tests, made, NULL, NULL);
    for (int i = 0; i < problem_count; i++) placed_free(&problems[i]);
    return made;
}

int main(int argc, char **argv)
{
    const char *types = getenv("GPB_TEST_TYPES");
    int failures = 0;
    if (!gpu_open()) return 77;
    set_option("OFFLOAD", "always");
    for (type = 0; type < GPB_TYPES; type++) {
        const char letter = gpb_type_of(type)->letter;
        const size_t made = run_type(&failures, argc - 1, argv + 1);
        if (made || (types && !strchr(types, letter))) continue;
        fprintf(stderr, "no kernel of type %c is run here\n", letter);
        failures += types != NULL;
    }
    return failures != 0;
}
