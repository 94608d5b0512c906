/* SPDX-License-Identifier: MIT */
/* The library on the software libcuda, whose queued work runs late and in any order that CUDA allows: what
   calls must wait for, and what they must not share. Each test runs in one child a seed. usage: test_races */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "include/gpublas.h"
#include "tests/fakecuda/child.h"

void cblas_sgemm(int layout, int transa, int transb, int m, int n, int k, float alpha, const float *a,
                 int lda, const float *b, int ldb, float beta, float *c, int ldc);
void cblas_sgemm_batch(int layout, const int *transa, const int *transb, const int *m, const int *n,
                       const int *k, const float *alpha, const float **a, const int *lda, const float **b,
                       const int *ldb, const float *beta, float **c, const int *ldc, int groups,
                       const int *size);
enum { COLUMNS = 102, NO_TRANS = 111 };

enum { SEEDS = 6 };

/* Small integers, so that every sum is exact. */
static void fill(float *x, int count, int salt)
{
    for (int i = 0; i < count; i++) x[i] = (float)((i * 7 + salt * 13 + i / 24) % 9 - 4);
}

/* c = a b + beta before, m x n and k deep, columns without gaps. */
static bool is_right(const int size[3], const float *c, const float *a, const float *b, float beta,
                     const float *before)
{
    const int m = size[0], n = size[1], k = size[2];
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            float sum = beta == 0 ? 0 : beta * before[i + j * m];
            for (int p = 0; p < k; p++) sum += a[i + p * m] * b[p + j * k];
            if (c[i + j * m] != sum) return false;
        }
    return true;
}

/* ---- what the program has queued on its legacy stream comes first */

enum where { HOST, HERE, ELSEWHERE, WHERES };     /* ELSEWHERE: on another GPU than the current context's */

/* An operand whose values come later. A copy of them is queued, and CUDA promises no more. */
static float *queued(enum where where, CUcontext other, float *image, size_t bytes)
{
    CUdeviceptr at;
    CUcontext popped;
    if (where == HOST) return image;
    if (where == ELSEWHERE) EXPECT(cuCtxPushCurrent(other) == CUDA_SUCCESS);
    at = gpb_child_device(bytes);
    if (where == ELSEWHERE) EXPECT(cuCtxPopCurrent(&popped) == CUDA_SUCCESS);
    float *pinned = gpb_child_pinned(bytes);
    memcpy(pinned, image, bytes);
    EXPECT(cuMemcpyHtoDAsync(at, pinned, bytes, CU_STREAM_LEGACY) == CUDA_SUCCESS);
    return (float *)(uintptr_t)at;
}

/* memory: NULL, or the value of GPUBLAS_MEMORY that makes the call run in panels, with a stream for each
   direction. */
static int follows_legacy(const enum where where[3], const int size[3], const char *memory)
{
    static float a[1 << 18], b[1 << 18], c[1 << 18], before[1 << 18];
    const int m = size[0], n = size[1], k = size[2];
    CUcontext second;
    gpb_child_start();
    EXPECT(cuDevicePrimaryCtxRetain(&second, 1) == CUDA_SUCCESS);
    EXPECT(!gpublas_set_option("OFFLOAD", "always") && (!memory || !gpublas_set_option("MEMORY", memory)));
    fill(a, m * k, 1);
    fill(b, k * n, 2);
    fill(c, m * n, 3);
    fill(before, m * n, 3);
    /* In a call before this one, because a first call takes so long that what is queued has run meanwhile. */
    cblas_sgemm(COLUMNS, NO_TRANS, NO_TRANS, m, n, k, 1, a, m, b, k, 2, c, m);
    EXPECT(is_right(size, c, a, b, 2, before));
    fill(c, m * n, 3);
    float *at_a = queued(where[0], second, a, sizeof *a * (size_t)(m * k)),
          *at_b = queued(where[1], second, b, sizeof *b * (size_t)(k * n));
    float *at_c = queued(where[2], second, c, sizeof *c * (size_t)(m * n));
    cblas_sgemm(COLUMNS, NO_TRANS, NO_TRANS, m, n, k, 1, at_a, m, at_b, k, 2, at_c, m);
    if (at_c != c)
        EXPECT(cuMemcpyDtoH(c, (CUdeviceptr)(uintptr_t)at_c, sizeof *c * (size_t)(m * n)) == CUDA_SUCCESS);
    gpublas_stats_t stats;
    EXPECT(!gpublas_stats(&stats, sizeof stats) && stats.gpu_calls == 2 && stats.failed_calls == 0);
    return is_right(size, c, a, b, 2, before) ? GPB_CHILD_OK : GPB_CHILD_WRONG;
}

static int case_number;
static void places_of_case(enum where where[3])
{
    where[0] = case_number % WHERES;
    where[1] = case_number / WHERES % WHERES;
    where[2] = case_number / WHERES / WHERES;
}

static int whole(void)
{
    enum where where[3];
    places_of_case(where);
    return follows_legacy(where, (const int[]){ 24, 20, 28 }, NULL);
}

static int in_panels(void)
{
    enum where where[3];
    places_of_case(where);
    return follows_legacy(where, (const int[]){ 520, 30, 500 }, "700K");
}

static void test_legacy(void **state)
{
    (void)state;
    setenv("FAKECUDA_DEVICES", "2", 1);
    for (case_number = 0; case_number < WHERES * WHERES * WHERES;
         case_number += getenv("GPB_TEST_FEW") ? 5 : 1) {
        const int wrong = gpb_child_wrong_seeds(whole, SEEDS),
                  wrong_panels = gpb_child_wrong_seeds(in_panels, SEEDS / 2);
        if (wrong || wrong_panels)
            fail_msg("places %d %d %d: %d and %d seeds", case_number % 3, case_number / 3 % 3,
                     case_number / 9, wrong, wrong_panels);
    }
    unsetenv("FAKECUDA_DEVICES");
}

/* ---- lanes share nothing: while one call's table of addresses is on its way to the kernels, others write
   theirs */

enum { THREADS = 4, ROUNDS = 60, MEMBERS = 9, N = 24, FLOATS = N * N };
static CUcontext context;

static void *batches(void *number)
{
    static const int none = NO_TRANS, n = N, members = MEMBERS;
    static const float one = 1, zero = 0;
    static float a[THREADS][MEMBERS][FLOATS], b[THREADS][MEMBERS][FLOATS];
    const int t = *(int *)number;
    const float *as[MEMBERS], *bs[MEMBERS];
    float *cs[MEMBERS], c[FLOATS];
    EXPECT(cuCtxPushCurrent(context) == CUDA_SUCCESS);
    for (int x = 0; x < MEMBERS; x++) {
        fill(a[t][x], FLOATS, t + x);
        fill(b[t][x], FLOATS, 3 * t + x);
        as[x] = (const float *)(uintptr_t)gpb_child_upload(a[t][x], sizeof c);
        bs[x] = (const float *)(uintptr_t)gpb_child_upload(b[t][x], sizeof c);
        /* Not at equal distances. */
        cs[x] = (float *)(uintptr_t)gpb_child_device(sizeof c * (size_t)(1 + x % 2));
    }
    for (int round = 0; round < ROUNDS; round++) {
        cblas_sgemm_batch(COLUMNS, &none, &none, &n, &n, &n, &one, as, &n, bs, &n, &zero, cs, &n, 1,
                          &members);
        const int x = round % MEMBERS;
        EXPECT(cuMemcpyDtoH(c, (CUdeviceptr)(uintptr_t)cs[x], sizeof c) == CUDA_SUCCESS);
        if (!is_right((const int[]){ N, N, N }, c, a[t][x], b[t][x], 0, NULL)) return number;
        /* Wrong until then. */
        EXPECT(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)cs[(round + 1) % MEMBERS], a[t][x], sizeof c)
               == CUDA_SUCCESS);
    }
    return NULL;
}

static int tables(void)
{
    pthread_t thread[THREADS];
    int number[THREADS], wrong = 0;
    context = gpb_child_start();
    EXPECT(!gpublas_set_option("OFFLOAD", "always"));
    for (int t = 0; t < THREADS; t++) number[t] = t;
    for (int t = 0; t < THREADS; t++) EXPECT(!pthread_create(&thread[t], NULL, batches, &number[t]));
    for (int t = 0; t < THREADS; t++) {
        void *is_wrong;
        EXPECT(!pthread_join(thread[t], &is_wrong));
        wrong += is_wrong != NULL;
    }
    return wrong ? GPB_CHILD_WRONG : GPB_CHILD_OK;
}

static void test_tables(void **state)
{
    (void)state;
    setenv("FAKECUDA_DAWDLE", "1", 1);
    assert_int_equal(gpb_child_wrong_seeds(tables, getenv("GPB_TEST_FEW") ? 1 : SEEDS), 0);
    unsetenv("FAKECUDA_DAWDLE");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_legacy), cmocka_unit_test(test_tables) };
    return cmocka_run_group_tests_name("races", tests, NULL, NULL);
}
