/* SPDX-License-Identifier: MIT */
/* Problems larger than the device memory that the library may use: GPUBLAS_MEMORY limits it far below the
   operands. All operands are on the host, or one or two of them on the device. GPB_TEST_LARGE=1: operands of
   a few hundred MB, a limit of 64 MB. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <complex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/gpublas.h"
#include "tests/gpu/placed.h"

static bool is_large(void) { return getenv("GPB_TEST_LARGE") != NULL; }

/* Bytes that the call sent to the GPU. */
static int64_t run(placed p, float alpha, float beta)
{
    gpublas_stats_t before, after;
    placed_make(&p);
    gpublas_stats(&before, sizeof before);
    assert_true(placed_try(&p, alpha, beta, GPB_MATH_FMA));
    gpublas_stats(&after, sizeof after);
    assert_int_equal(after.gpu_calls, before.gpu_calls + 1);
    placed_free(&p);
    return (int64_t)(after.bytes_to_gpu - before.bytes_to_gpu);
}

/* Each dimension in turn the one that does not fit. */
static void test_shapes(void **state)
{
    (void)state;
    static const int small[][3] = {
        { 700, 700, 700 }, { 1500, 40, 900 }, { 40, 1500, 900 }, { 50, 60, 20000 }, { 1200, 1200, 16 }
    };
    static const int large[][3] = { { 6132, 6132, 6132 },
                                    { 60000, 300, 1000 },
                                    { 300, 60000, 1000 },
                                    { 200, 200, 300000 },
                                    { 12000, 9000, 100 } };
    static const char *const kernels[] = { "tile_2d", "padded", "warp_tile", NULL };
    for (int i = 0; i < 20; i++) {
        const int *s = is_large() ? large[i % 5] : small[i % 5];
        set_option("KERNEL", kernels[i % 4]);
        placed p = { .of = { .m = s[0],
                             .n = s[1],
                             .k = s[2],
                             .transa = "NT"[i & 1],
                             .transb = "NT"[i >> 1 & 1],
                             .row_major = i >> 2 & 1,
                             .pad = i % 3 },
                     .at = { i == 11 ? PLACE_DEVICE : PLACE_PAGEABLE, i == 12 ? PLACE_PINNED : PLACE_PAGEABLE,
                             i == 13 || i == 14 ? PLACE_DEVICE : PLACE_PAGEABLE } };
        int64_t sent = run(p, i & 1 ? 1 : -0.5f, i & 2 ? 0 : 1.5f);
        int64_t once = (int64_t)p.of.m * p.of.k + (int64_t)p.of.k * p.of.n;
        if (!(i & 2)) once += (int64_t)p.of.m * p.of.n;
        if (i % 5 == 0)
            assert_true(sent > 4 * once);    /* no two of A, B, C fit: panels of something went twice */
    }
    set_option("KERNEL", NULL);
}

/* NaN and Inf cross panels as they cross one call, and integers stay exact. */
static void try_data(enum gpb_type type, int k)
{
    for (int i = 0; i < PLACED_FILLS; i++) {
        placed p = { .of = { .type = type, .m = 300, .n = 200, .k = k, .transa = 'N', .transb = 'N',
                             .fill = placed_fills[i] } };
        run(p, 1, 0);
        run(p, 2, 1);
    }
}

static void test_data(void **state)
{
    (void)state;
    try_data(GPB_TYPE_s, 4000);
}

static void test_data_of_types(void **state)
{
    (void)state;
    for (enum gpb_type type = GPB_TYPE_s + 1; type < GPB_TYPES; type++)
        try_data(type, is_large() ? 4000 : 2000);
}

/* Such shapes in d, c and z, conjugated too; triangles; batches by distances and by addresses; symmetric
   operands on either side. */
static void test_types(void **state)
{
    (void)state;
    static const int small[][3] = {
        { 700, 700, 700 }, { 1500, 40, 900 }, { 40, 1500, 900 }, { 50, 60, 20000 }, { 1200, 1200, 16 }
    };
    static const int large[][3] = { { 2100, 2100, 2100 }, { 20000, 300, 1000 }, { 300, 20000, 1000 },
                                    { 200, 200, 60000 }, { 5000, 4000, 100 } };
    static const enum gpb_test_routine others[] = { GPB_TEST_gemmtr, GPB_TEST_gemm_batch_strided,
                                                    GPB_TEST_gemm_batch, GPB_TEST_syrk, GPB_TEST_herk,
                                                    GPB_TEST_syr2k, GPB_TEST_her2k, GPB_TEST_symm,
                                                    GPB_TEST_hemm };
    enum { FORMS = 10 + sizeof others / sizeof *others };
    set_option("KERNEL", NULL);
    const int step = is_large() ? 1 : getenv("GPB_TEST_FEW") ? 8 : 2;
    for (int i = 0; i < 3 * FORMS; i += step) {
        const int form = i % FORMS;
        const bool is_gemm = form < 10;
        const int side = is_large() ? 1500 : 300;
        const int *s = !is_gemm     ? (const int[]){ side, side, i % 2 ? 100 : 300 }
                       : is_large() ? large[i % 5]
                                    : small[i % 5];
        placed p = { .of = { .routine = is_gemm ? GPB_TEST_gemm : others[form - 10],
                             .type = (enum gpb_type)(1 + i / FORMS), .m = s[0], .n = s[1], .k = s[2],
                             .transa = "NTC"[i % 3], .transb = "CNT"[i / 2 % 3], .row_major = i >> 2 & 1,
                             .pad = i % 3 },
                     .at = { form == 11 || form == 15 ? PLACE_DEVICE : PLACE_PAGEABLE, PLACE_PAGEABLE,
                             form == 13 || form == 15 || form == 17 ? PLACE_DEVICE : PLACE_PAGEABLE } };
        if (gpb_test_has_triangle(p.of.routine) || gpb_test_sided(p.of.routine)) p.of.uplo = "UL"[i & 1];
        else if (!is_gemm) p.of.batch = 5;
        if (gpb_test_sided(p.of.routine)) p.of.side = "RL"[i / FORMS % 2];
        placed_make(&p);
        const int64_t before = gpu_calls();
        assert_true(placed_try(&p, -0.5 + 0.25i, i & 2 ? 0 : 1.5 - 1.0i, GPB_MATH_FMA));
        assert_true(gpu_calls() > before);
        placed_free(&p);
    }
}

/* A batch in more groups than C has buffers, each of more loads than are on their way at once. No group may
   be computed before the last group in its buffer is home. A and B, on the device, delay none. The numbers
   are integers, so each sum is exact. */
static void test_groups(void **state)
{
    (void)state;
    enum { N = 33, K = 5, BATCH = 1500 };
    operand a = operand_make(PLACE_DEVICE, GPB_TYPE_s, BATCH * N * K, 0);
    operand b = operand_make(PLACE_DEVICE, GPB_TYPE_s, BATCH * N * K, 0);
    float *c = malloc(BATCH * N * N * sizeof *c);
    assert_non_null(c);
    float *in_a = operand_floats(&a), *in_b = operand_floats(&b);
    for (int i = 0; i < BATCH * N * K; i++) {
        in_a[i] = (float)(i % 13 - 6);
        in_b[i] = (float)(i % 11 - 5);
    }
    operand_put(&a);
    operand_put(&b);
    for (int beta = 0; beta < 2; beta++) {
        int wrong = 0;
        for (int i = 0; i < BATCH * N * N; i++) c[i] = (float)(i % 7);
        cblas_sgemm_batch_strided(COLUMN_MAJOR, NO_TRANS, NO_TRANS, N, N, K, 1, a.address, N, N * K,
                                  b.address, K, K * N, (float)beta, c, N, N * N, BATCH);
        for (int i = 0; i < BATCH * N * N; i++) {
            const int l = i / (N * N), row = i % N, col = i / N % N;
            float sum = (float)(beta * (i % 7));
            for (int p = 0; p < K; p++) sum += in_a[l * N * K + row + p * N] * in_b[l * N * K + p + col * K];
            wrong += c[i] != sum;
        }
        assert_int_equal(wrong, 0);
    }
    free(c);
    operand_free(&a);
    operand_free(&b);
}

/* Triangles in panels. The diagonal crosses some of these, and some lie beyond it. The numbers are integers,
   so each sum is exact. */
static void test_triangles(void **state)
{
    (void)state;
    enum { N = 900, K = 30 };
    float *a = malloc(N * K * sizeof *a), *b = malloc(K * N * sizeof *b), *c = malloc(N * N * sizeof *c);
    assert_true(a && b && c);
    for (int i = 0; i < N * K; i++) {
        a[i] = (float)(i % 13 - 6);
        b[i] = (float)(i % 11 - 5);
    }
    for (int upper = 0; upper < 2; upper++) {
        int wrong = 0;
        for (int i = 0; i < N * N; i++) c[i] = (float)(i % 7);
        cblas_sgemmtr(COLUMN_MAJOR, upper ? UPPER : LOWER, NO_TRANS, NO_TRANS, N, K, 1, a, N, b, K, 2, c, N);
        for (int i = 0; i < N * N; i++) {
            const int row = i % N, col = i / N;
            float sum = (float)(i % 7);
            if (upper ? row <= col : row >= col) {
                sum *= 2;
                for (int p = 0; p < K; p++) sum += a[row + p * N] * b[p + col * K];
            }
            wrong += c[i] != sum;
        }
        assert_int_equal(wrong, 0);
    }
    free(a);
    free(b);
    free(c);
}

/* Threads whose small calls never cease, and one thread that wants nearly all of the memory and gets it again
   and again. Without an order some call would sooner or later not end while others called, and then this test
   would not end either. */
enum { OTHERS = 15, ENOUGH = 30 };
static atomic_bool over;

static void *small_calls(void *unused)
{
    enum { N = 200, K = 20 };
    float *memory = calloc(N * K + K * N + N * N, sizeof *memory);
    while (memory && !over)
        cblas_sgemm(COLUMN_MAJOR, NO_TRANS, NO_TRANS, N, N, K, 1, memory, N, memory + N * K, K, 0,
                    memory + 2 * N * K, N);
    free(memory);
    return unused;
}

static void test_order(void **state)
{
    (void)state;
    pthread_t threads[OTHERS];
    placed p = { .of = { .m = 700, .n = 600, .k = 200, .transa = 'N', .transb = 'N' } };
    if (is_large()) {
        p.of.m = 3000;
        p.of.n = 3000;
        p.of.k = 1000;
    }
    placed_make(&p);
    placed_fill_c(&p, 0);
    for (int i = 0; i < OTHERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, small_calls, NULL), 0);
    for (int i = 0; i < ENOUGH; i++) placed_call(&p, 1, 0);
    over = true;
    for (int i = 0; i < OTHERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(placed_check(&p, 1, 0, GPB_MATH_FMA));
    placed_free(&p);
}

/* memory: the limit, which is set before the first call, because that starts the GPU. */
static bool begin(const char *memory)
{
    if (!gpu_open()) return false;
    set_option("MEMORY", memory);
    set_option("OFFLOAD", "always");
    return true;
}

static int run_types(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_types), cmocka_unit_test(test_data_of_types) };
    if (!begin(is_large() ? "64M" : "8M")) return 77;
    return cmocka_run_group_tests_name("panels of d, c, z", tests, NULL, NULL);
}

/* d, c and z want up to four times the memory, so they are a process of their own. */
int main(void)
{
    const pid_t child = fork();
    if (child == 0) _exit(run_types());
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 1;
    if (WEXITSTATUS(status)) return WEXITSTATUS(status);
    if (!begin(is_large() ? "64M" : "2M")) return 77;
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_shapes), cmocka_unit_test(test_data),
                                        cmocka_unit_test(test_groups), cmocka_unit_test(test_triangles),
                                        cmocka_unit_test(test_order) };
    return cmocka_run_group_tests_name("panels", tests, NULL, NULL);
}
