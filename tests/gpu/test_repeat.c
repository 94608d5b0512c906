/* SPDX-License-Identifier: MIT */
/* The same call gives the same bits, 100 times in a row (d, c, z: 25) and from eight threads at once: by
   every kernel in its type, with k whole (or Stream-K) and with split-K, and by the library's choice, on odd
   shapes. GPB_TEST_LARGE=1: shapes that fill a GPU. GPB_TEST_FEW=1: few repeats. GPB_TEST_TYPES=dcz: these
   types alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/placed.h"

enum { THREADS = 8 };
typedef struct kernel {
    const char *name, *image, *math, *splits;
    enum gpb_type type;
    bool ladder, cut, shares;
} kernel;
#define MATH(math) \
    (GPB_MATH_##math == GPB_MATH_FMA ? "ieee" : GPB_MATH_##math == GPB_MATH_TF32 ? "tf32" : "fp32")
/* ladder: the simple steps, which are slow, so they get small shapes. cut: run once more with k in three
   parts. shares: k may be shared out among blocks. */
static const kernel kernels[] = {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    { #name, #image, MATH(math), "0", GPB_TYPE_##p, GPB_TYPE_##p == GPB_TYPE_s && (step) < 20,       \
      GPB_FORM_##form != GPB_FORM_SLICED, (GPB_CAP_##caps & GPB_CAP_STREAM_K) != 0 },
#include "kernels/gemm.def"
#undef KERNEL
#define TYPE(letter, type, bytes, flops, kind)                                \
    { NULL, NULL, "fp32", "0", GPB_TYPE_##letter, false, false, true },        \
    { NULL, NULL, "ieee", "0", GPB_TYPE_##letter, false, false, true },        \
    { NULL, NULL, "ieee", "7", GPB_TYPE_##letter, false, false, true },        \
    { NULL, NULL, "tf32", "0", GPB_TYPE_##letter, false, false, true },
#include "dispatch/type.def"
#undef TYPE
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

typedef struct shape { int m, n, k; char ta, tb; enum place at; } shape;
static const shape small[] = { { 130, 66, 97, 'N', 'N', PLACE_DEVICE },
                               { 33, 17, 1031, 'T', 'N', PLACE_DEVICE },
                               { 65, 129, 40, 'N', 'T', PLACE_PAGEABLE },
                               { 20, 9, 2061, 'T', 'N', PLACE_DEVICE } };
/* The last is for kernels that may share k out among blocks. Others would only take long over it. */
static const shape large[] = {
    { 1022, 510, 1022, 'N', 'N', PLACE_DEVICE },   { 4097, 130, 515, 'N', 'T', PLACE_DEVICE },
    { 131, 65, 40001, 'T', 'N', PLACE_DEVICE },    { 1047, 500, 777, 'T', 'T', PLACE_DEVICE },
    { 1537, 130, 300, 'N', 'N', PLACE_PAGEABLE },  { 3, 2000, 3001, 'N', 'N', PLACE_DEVICE },
    { 2500, 2100, 2300, 'N', 'T', PLACE_PAGEABLE }
};
enum { SMALL = sizeof small / sizeof(shape), LARGE = sizeof large / sizeof(shape) };

static placed problems[2][LARGE];         /* by `is large`: A, B, and what C is before each call */
static double betas[2][LARGE];
static enum gpb_type type;                 /* of all problems */
static const kernel *current;
static double beta;                        /* of the problem at work: its beta and the first answer */
static void *first;

static int repeats(void) { return getenv("GPB_TEST_FEW") ? 5 : type == GPB_TYPE_s ? 100 : 25; }
static size_t bytes_of(const operand *o) { return (size_t)(o->offset + o->count) * gpb_type_bytes(o->type); }

/* C anew, the call, and its bits against the first answer's. */
static bool repeat(placed *p, void *c)
{
    operand_put(&p->x[GPB_C]);
    placed_call(p, __builtin_complex(0.7, -0.3), beta);
    operand_get(&p->x[GPB_C], c);
    return !memcmp(c, first, bytes_of(&p->x[GPB_C]));
}

static void *room(const placed *p)
{
    void *c = malloc(bytes_of(&p->x[GPB_C]));
    if (!c) abort();
    return c;
}

/* NULL if every answer was the first one. */
static void *caller(void *of)
{
    gpu_make_current(true);
    const placed *shared = of;
    placed mine = *shared;
    mine.x[GPB_C] = operand_make(shared->x[GPB_C].place, type, shared->x[GPB_C].count,
                                 shared->x[GPB_C].offset);
    memcpy(mine.x[GPB_C].image, shared->x[GPB_C].image, bytes_of(&shared->x[GPB_C]));
    void *c = room(shared);
    bool same = true;
    for (int i = 0; i < repeats() / THREADS + 1; i++) same = repeat(&mine, c) && same;
    free(c);
    operand_free(&mine.x[GPB_C]);
    return same ? NULL : of;
}

static int from_threads(placed *p)
{
    pthread_t threads[THREADS];
    int wrong = 0;
    for (int t = 0; t < THREADS; t++) assert_int_equal(pthread_create(&threads[t], NULL, caller, p), 0);
    for (int t = 0; t < THREADS; t++) {
        void *result;
        assert_int_equal(pthread_join(threads[t], &result), 0);
        wrong += result != NULL;
    }
    return wrong;
}

static int try_problem(placed *p)
{
    first = room(p);
    void *c = room(p);
    int64_t before = gpu_calls();
    repeat(p, first);
    int wrong = 0;
    for (int i = 1; i < repeats(); i++) wrong += !repeat(p, c);
    int threads = from_threads(p);
    assert_true(gpu_calls() > before + repeats());
    if (wrong || threads)
        printf("%c %s %s, %d x %d x %d: %d of %d repeats and %d of %d threads differ\n",
               gpb_type_of(type)->letter, current->name ? current->name : "the choice", current->math,
               p->of.m, p->of.n, p->of.k, wrong, repeats(), threads, THREADS);
    free(first);
    free(c);
    return wrong + threads;
}

static void test_kernel(void **state)
{
    current = *state;
    const int size = getenv("GPB_TEST_LARGE") && !current->ladder;
    int wrong = 0;
    set_option("KERNEL", current->name);
    set_option("MATH", current->math);
    for (int pass = 0; pass < (current->cut ? 2 : 1); pass++) {
        set_option("SPLITS", pass ? "3" : current->splits);
        for (int i = 0; i < (size ? LARGE : SMALL); i++) {
            if (size && i == LARGE - 1 && !current->shares && strcmp(current->image, "sgemm_ffma") != 0)
                continue;
            beta = betas[size][i];
            wrong += try_problem(&problems[size][i]);
        }
    }
    assert_int_equal(wrong, 0);
}

static void make(placed *p, const shape *s, double *its_beta)
{
    *p = (placed){
        .of = { .type = type, .m = s->m, .n = s->n, .k = s->k, .transa = s->ta, .transb = s->tb, .pad = 1,
                .offset = 1 },
        .at = { s->at, s->at, s->at }
    };
    *its_beta = s->k % 2 ? 0 : 1.3;
    placed_make(p);
    placed_fill_c(p, *its_beta);
}

static int make_problems(void **state)
{
    (void)state;
    for (int i = 0; i < SMALL; i++) make(&problems[0][i], &small[i], &betas[0][i]);
    for (int i = 0; i < LARGE && getenv("GPB_TEST_LARGE"); i++)
        make(&problems[1][i], &large[i], &betas[1][i]);
    return 0;
}

static int free_problems(void **state)
{
    (void)state;
    for (int i = 0; i < SMALL; i++) placed_free(&problems[0][i]);
    for (int i = 0; i < LARGE && getenv("GPB_TEST_LARGE"); i++) placed_free(&problems[1][i]);
    return 0;
}

static int run_type(void)
{
    struct CMUnitTest tests[KERNELS] = { 0 };
    static char names[KERNELS][40];
    size_t count = 0;
    for (int i = 0; i < KERNELS; i++) {
        if (kernels[i].type != type) continue;
        if (!(kernels[i].name ? kernel_runs(kernels[i].image) : type_runs(type))) continue;
        snprintf(names[i], sizeof names[i], "%c %s", gpb_type_of(type)->letter,
                 kernels[i].name ? kernels[i].name : "library");
        tests[count++] = (struct CMUnitTest){ names[i], test_kernel, NULL, NULL, (void *)&kernels[i] };
    }
    return count ? _cmocka_run_group_tests("repeat", tests, count, make_problems, free_problems) : 0;
}

int main(void)
{
    const char *types = getenv("GPB_TEST_TYPES");
    int failures = 0;
    if (!gpu_open()) return 77;
    set_option("OFFLOAD", "always");
    for (type = 0; type < GPB_TYPES; type++)
        if (!types || strchr(types, gpb_type_of(type)->letter)) failures += run_type();
    return failures != 0;
}
