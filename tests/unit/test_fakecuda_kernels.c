/* SPDX-License-Identifier: MIT */
/* The kernels of tests/fakecuda: the right answer within the reference's bound, and each broken rule of a
   launch is found. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/gemm_args.h"
#include "tests/fakecuda/child.h"
#include "tests/reference.h"

typedef struct row {
    const char *symbol;
    enum gpb_math math;
    enum gpb_form form;
    int bm, bn, bk, threads, smem;
} row;

static const row rows[] = {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    { GPB_STR(GPB_GEMM_SYMBOL(p, name)), GPB_MATH_##math, GPB_FORM_##form, bm, bn, bk, threads, smem },
#include "kernels/gemm.def"
#undef KERNEL
};
enum { ROWS = sizeof rows / sizeof *rows, M = 67, N = 35, K = 29, LDA = 71, LDC = 69, BATCH = 3 };

#include "tests/unit/child_gemm.h"

static const row *strided = &rows[0], *padded, *padded_c;
static const row *current;               /* the row under test, for the child */

static int64_t up(int64_t size, int tile) { return (size + tile - 1) / tile * tile; }

static CUfunction kernel_of(const row *r)
{
    CUfunction f = gpb_child_kernel(r->symbol);
    EXPECT(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, r->smem) == CUDA_SUCCESS);
    return f;
}

static CUresult launch_gemm(const row *r, gpb_gemm_args *g)
{
    unsigned x = (unsigned)GPB_TILES(g->m, g->n, r->bm, r->bn),
             z = (unsigned)(g->batch * (g->splits > 1 ? g->splits : 1));
    return cuLaunchKernel(kernel_of(r), x, 1, z, (unsigned)r->threads, 1, 1, (unsigned)r->smem, NULL,
                          (void *[]){ g }, NULL);
}

static CUresult launch_tiles(const char *symbol, int64_t high, int64_t wide, void *arguments)
{
    unsigned x = (unsigned)GPB_TILES(high, wide, GPB_PACK_TILE, GPB_PACK_TILE);
    return cuLaunchKernel(gpb_child_kernel(symbol), x, 1, 1, GPB_PACK_THREADS, 1, 1, 0, NULL,
                          (void *[]){ arguments }, NULL);
}

/* Packs a device matrix for a padded kernel. *ld receives its leading dimension. */
static CUdeviceptr pack(CUdeviceptr from, int64_t rs, int64_t cs, const int64_t size[4], int64_t *ld)
{
    *ld = size[2] + 4;
    CUdeviceptr to = gpb_child_device((size_t)(*ld * size[3]) * 4);
    gpb_pack_args p = { .src = (void *)from, .rs = rs, .cs = cs, .rows = size[0], .cols = size[1],
                        .dst = (void *)to, .ld = *ld, .rows_padded = size[2], .cols_padded = size[3],
                        .batch = 1 };
    EXPECT(launch_tiles("gpb_spack", size[2], size[3], &p) == CUDA_SUCCESS);
    return to;
}

static CUresult launch_reduce(gpb_reduce_args *r)
{
    unsigned x = (unsigned)GPB_REDUCE_BLOCKS(r->m, r->n, r->splits);
    return cuLaunchKernel(gpb_child_kernel("gpb_sreduce"), x, 1, (unsigned)r->batch, GPB_REDUCE_THREADS, 1, 1,
                          0, NULL, (void *[]){ r }, NULL);
}

static int parts = 1;                    /* that k is cut into */

/* The launch and, if k is cut, the one that adds up its parts. */
static void launch_all(const row *r, gpb_gemm_args *g)
{
    if (parts > 1) {
        g->splits = parts;
        g->partials = (void *)gpb_child_device((size_t)(g->m * g->n * g->batch * parts) * 4);
    }
    EXPECT(launch_gemm(r, g) == CUDA_SUCCESS);
    if (parts == 1)
        return;
    gpb_reduce_args sum = { .m = g->m, .n = g->n, .splits = parts, .partials = g->partials, .c = g->c,
                            .ldc = g->ldc, .alpha = { g->alpha[0] }, .beta = { g->beta[0] },
                            .batch = g->batch, .stride_c = g->stride_c, .items = g->items };
    EXPECT(launch_reduce(&sum) == CUDA_SUCCESS);
}

/* Computes the call with row r on the fake device, packed as its form wants it. */
static void compute(const row *r, const gpb_call *q)
{
    gpb_gemm_args g = args_of(q);
    const CUdeviceptr da = (CUdeviceptr)g.a, db = (CUdeviceptr)g.b, dc = (CUdeviceptr)g.c;
    if (r->form != GPB_FORM_STRIDED) {
        g.a = (void *)pack(da, g.rsa, g.csa, (const int64_t[]){ M, K, up(M, r->bm), up(K, r->bk) }, &g.csa);
        g.b = (void *)pack(db, g.rsb, g.csb, (const int64_t[]){ K, N, up(K, r->bk), up(N, r->bn) }, &g.csb);
        g.rsa = g.rsb = 1;
    }
    if (r->form == GPB_FORM_PADDED_C) {
        g.ldc = up(M, r->bm) + 8;
        g.c = (void *)gpb_child_device((size_t)(g.ldc * up(N, r->bn)) * 4);
        g.beta[0] = 0;
    }
    launch_all(r, &g);
    memset(&g, 0xFF, sizeof g.m);                             /* the driver has its own copy */
    if (r->form == GPB_FORM_PADDED_C) {
        gpb_unpack_args u = { .m = M, .n = N, .w = g.c, .ldw = g.ldc, .c = (void *)dc, .ldc = LDC,
                              .beta = GPB_SCALAR_RE_IM(q->beta), .batch = 1,
                              .uplo = 'G' };
        EXPECT(launch_tiles("gpb_sunpack", M, N, &u) == CUDA_SUCCESS);
    }
    EXPECT(cuMemcpyDtoH(c, dc, sizeof c) == CUDA_SUCCESS);
}

static int right_answer(void)
{
    gpb_child_start();
    for (int trans = 0; trans < 4; trans++) {
        gpb_call q = call_of("NNTT"[trans], "NTNT"[trans], 1);
        compute(current, &q);
        EXPECT(gpb_reference_check(current->math, &q, c_before, sizeof c) <= 1);
        /* The error of TF32 must show, so that a caller who asked for FP32 and got this kernel finds out. */
        EXPECT(current->math != GPB_MATH_TF32
               || gpb_reference_check(GPB_MATH_FMA, &q, c_before, sizeof c) > 1);
    }
    return GPB_CHILD_OK;
}

static void test_right_answers(void **state)
{
    (void)state;
    for (current = rows; current < rows + ROWS; current++)
        if (current->form != GPB_FORM_SLICED)                 /* test_fakecuda_sliced.c */
            assert_int_equal(gpb_child_run(right_answer, NULL), GPB_CHILD_OK);
}

static int never_read(void)
{
    gpb_child_start();
    gpb_call q = call_of('N', 'N', 1);
    q.beta = 0;
    memset(c_before, 0xFF, sizeof c_before);                  /* NaN */
    compute(strided, &q);
    EXPECT(gpb_reference_check(GPB_MATH_FMA, &q, c_before, sizeof c) <= 1);
    gpb_gemm_args g = { .m = 1, .n = 2, .k = 0, .c = (void *)gpb_child_upload((float[]){ 1, 2 }, 8), .ldc = 1,
                        .alpha = { NAN }, .beta = { 3 },
                        .batch = 1 };
    EXPECT(launch_gemm(strided, &g) == CUDA_SUCCESS && cuMemcpyDtoH(c, (CUdeviceptr)g.c, 8) == CUDA_SUCCESS);
    EXPECT(c[0] == 3 && c[1] == 6);
    return GPB_CHILD_OK;
}

static int batches(void)
{
    gpb_child_start();
    const gpb_call q = call_of('T', 'N', BATCH);
    compute(strided, &q);
    EXPECT(gpb_reference_check(GPB_MATH_FMA, &q, c_before, sizeof c) <= 1);
    gpb_gemm_item items[BATCH];
    CUdeviceptr da = gpb_child_upload(a, sizeof a), db = gpb_child_upload(b, sizeof b),
                dc = gpb_child_upload(c_before, sizeof c_before);
    for (size_t l = 0; l < BATCH; l++)
        items[l] = (gpb_gemm_item){ (void *)(da + l * sizeof a / BATCH), (void *)(db + l * sizeof b / BATCH),
                                    (void *)(dc + l * sizeof c / BATCH) };
    gpb_gemm_args g = { .m = M, .n = N, .k = K, .rsa = LDA, .csa = 1, .rsb = 1, .csb = LDA, .ldc = LDC,
                        .alpha = GPB_SCALAR_RE_IM(q.alpha), .beta = GPB_SCALAR_RE_IM(q.beta), .batch = BATCH,
                        .items = (void *)gpb_child_upload(items, sizeof items) };
    launch_all(strided, &g);
    EXPECT(cuMemcpyDtoH(c, dc, sizeof c) == CUDA_SUCCESS);
    EXPECT(gpb_reference_check(GPB_MATH_FMA, &q, c_before, sizeof c) <= 1);
    return GPB_CHILD_OK;
}

/* Partial sums are destroyed once they have been added up. */
static int parts_once(void)
{
    gpb_child_start();
    gpb_gemm_args g = { .m = 2, .n = 1, .k = 2, .a = (void *)gpb_child_upload((float[]){ 1, 2, 3, 4 }, 16),
                        .rsa = 1, .csa = 2, .b = (void *)gpb_child_upload((float[]){ 1, 1 }, 8), .rsb = 1,
                        .csb = 2, .c = (void *)gpb_child_device(8), .ldc = 2, .alpha = { 1 }, .batch = 1,
                        .splits = 2, .partials = (void *)gpb_child_device(16) };
    gpb_reduce_args sum = {
        .m = 2, .n = 1, .splits = 2, .partials = g.partials, .c = g.c, .ldc = 2, .alpha = { 2 }, .batch = 1
    };
    EXPECT(launch_gemm(strided, &g) == CUDA_SUCCESS && launch_reduce(&sum) == CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoH(c, (CUdeviceptr)g.c, 8) == CUDA_SUCCESS && c[0] == 8 && c[1] == 12);
    EXPECT(launch_reduce(&sum) == CUDA_SUCCESS && cuMemcpyDtoH(c, (CUdeviceptr)g.c, 8) == CUDA_SUCCESS
           && isnan(c[0]));
    return GPB_CHILD_OK;
}

static void test_parts(void **state)
{
    (void)state;
    for (current = rows; current < rows + ROWS; current++)
        /* Up to more parts than k has elements, so that some parts are empty. */
        for (parts = 2; parts < 40; parts *= 5)
            if (current->form == GPB_FORM_STRIDED || current->form == GPB_FORM_PADDED)
                assert_int_equal(gpb_child_run(right_answer, NULL), GPB_CHILD_OK);
    parts = 3;
    assert_int_equal(gpb_child_run(batches, NULL), GPB_CHILD_OK);
    parts = 1;
    assert_int_equal(gpb_child_run(parts_once, NULL), GPB_CHILD_OK);
}

static int triangles(void)
{
    const float w[4] = { 1, 2, 3, 4 }, old[4] = { 10, 10, 10, 10 };
    /* The block's first row is row 1 of the whole matrix, its columns are 0 and 1. So U keeps only (1,1),
       and L the whole block. */
    const float want[2][4] = { { 10, 10, 8, 10 }, { 6, 7, 8, 9 } };
    gpb_child_start();
    for (int lower = 0; lower < 2; lower++) {
        gpb_unpack_args u = { .m = 2, .n = 2, .w = (void *)gpb_child_upload(w, 16), .ldw = 2,
                              .c = (void *)gpb_child_upload(old, 16), .ldc = 2, .beta = { 0.5 }, .row0 = 1,
                              .batch = 1, .uplo = lower ? 'L' : 'U' };
        EXPECT(launch_tiles("gpb_sunpack", 2, 2, &u) == CUDA_SUCCESS
               && cuMemcpyDtoH(c, (CUdeviceptr)u.c, 16) == CUDA_SUCCESS);
        EXPECT(!memcmp(c, want[lower], 16));
    }
    return GPB_CHILD_OK;
}

static void test_contract(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_run(never_read, NULL), GPB_CHILD_OK);
    assert_int_equal(gpb_child_run(batches, NULL), GPB_CHILD_OK);
    assert_int_equal(gpb_child_run(triangles, NULL), GPB_CHILD_OK);
}

/* A 4 x 4 x 4 call that is right for `current`, except for the one thing that `spoil` changes. */
static void (*spoil)(gpb_gemm_args *g, unsigned *grid, unsigned *threads);

static int spoilt(void)
{
    const row *r = current;
    gpb_child_start();
    bool pads = r->form != GPB_FORM_STRIDED;
    int64_t mp = pads ? r->bm : 4, np = pads ? r->bn : 4, kp = pads ? r->bk : 4;
    /* Room for rules of padded kernels to be broken inside the memory, because bounds have a test of their
       own. */
    size_t room = pads ? 1 << 17 : 0, bytes_a = (size_t)(mp * kp) * 4 + room,
           bytes_b = (size_t)(kp * np) * 4 + room;
    CUdeviceptr da = gpb_child_device(bytes_a), db = gpb_child_device(bytes_b);
    CUdeviceptr dc = gpb_child_device((size_t)(mp * np) * 4 + room);
    EXPECT(cuMemsetD8(da, 0, bytes_a) == CUDA_SUCCESS && cuMemsetD8(db, 0, bytes_b) == CUDA_SUCCESS);
    gpb_gemm_args g = { .m = 4, .n = 4, .k = 4, .a = (void *)da, .rsa = 1, .csa = mp, .b = (void *)db,
                        .rsb = 1, .csb = kp, .c = (void *)dc, .ldc = mp, .alpha = { 1 }, .batch = 1 };
    unsigned grid = 1, threads = (unsigned)r->threads;
    if (spoil)
        spoil(&g, &grid, &threads);
    EXPECT(cuLaunchKernel(kernel_of(r), grid, 1, 1, threads, 1, 1, (unsigned)r->smem, NULL, (void *[]){ &g },
                          NULL)
           == CUDA_SUCCESS);
    EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
    return GPB_CHILD_OK;
}

static void no_grid(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)g, (void)threads;
    *grid = 2;
}
static void no_block(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)g, (void)grid;
    *threads /= 2;
}
static void a_too_long(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    g->csa++;
}
static void c_too_long(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    g->ldc += 4;
}
static void a_of_host(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    g->a = a;
}
static void a_strided(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    g->rsa = g->csa;
    g->csa = 1;
}
static void b_shifted(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    g->b = (const float *)g->b + 16;
}
static void a_not_zero(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    EXPECT(cuMemsetD8((CUdeviceptr)((const float *)g->a + 4), 1, 4) == CUDA_SUCCESS);
}
static void b_not_zero(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    EXPECT(cuMemsetD8((CUdeviceptr)((const float *)g->b + 4 * g->csb), 1, 4) == CUDA_SUCCESS);
}
static void c_odd(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    g->ldc++;
}
static void some_beta(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    g->beta[0] = 1;
}

typedef void spoiler(gpb_gemm_args *, unsigned *, unsigned *);

static void expect_caught(const row *r, spoiler *const *list)
{
    current = r;
    spoil = NULL;
    assert_int_equal(gpb_child_run(spoilt, NULL), GPB_CHILD_OK);
    for (; *list; list++) {
        spoil = *list;
        assert_int_equal(gpb_child_run(spoilt, NULL), 86);
    }
}

static void test_broken_rules(void **state)
{
    (void)state;
    for (const row *r = rows; r < rows + ROWS; r++) {
        padded = r->form == GPB_FORM_PADDED ? r : padded;
        padded_c = r->form == GPB_FORM_PADDED_C ? r : padded_c;
    }
    expect_caught(strided, (spoiler *const[]){ no_grid, no_block, a_too_long, c_too_long, a_of_host, NULL });
    expect_caught(padded, (spoiler *const[]){ no_grid, a_strided, a_too_long, b_shifted, a_not_zero,
                                              b_not_zero, NULL });
    expect_caught(padded_c, (spoiler *const[]){ a_not_zero, c_odd, some_beta, NULL });
}

static int no_image(void)
{
    CUmodule module;
    gpb_child_start();
    return cuModuleLoadData(&module, "any") == CUDA_ERROR_NO_BINARY_FOR_GPU ? GPB_CHILD_OK : GPB_CHILD_BROKEN;
}

static int old_device(void)
{
    CUmodule module;
    CUfunction f;
    int value;
    gpb_child_start();
    EXPECT(cuModuleLoadData(&module, "any") == CUDA_SUCCESS);
    EXPECT(cuModuleGetFunction(&f, module, "gpb_sgemm_cp_async") == CUDA_ERROR_NOT_FOUND);
    EXPECT(cuModuleGetFunction(&f, module, "gpb_sgemm_none") == CUDA_ERROR_NOT_FOUND);
    EXPECT(cuModuleGetFunction(&f, module, "gpb_sgemm_naive") == CUDA_SUCCESS);
    EXPECT(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f) == CUDA_SUCCESS
           && value == 1024);
    EXPECT(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65 << 10)
           == CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10) == CUDA_SUCCESS);
    EXPECT(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) == CUDA_SUCCESS
           && value == 7);
    return GPB_CHILD_OK;
}

static void test_modules(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_run(no_image, (const char *[]){ "FAKECUDA_NO_IMAGE", "1", NULL }),
                     GPB_CHILD_OK);
    assert_int_equal(gpb_child_run(old_device, (const char *[]){ "FAKECUDA_ARCH", "75", NULL }),
                     GPB_CHILD_OK);
}

static void test_summary(void **state)
{
    (void)state;
    char path[] = "/tmp/test_fakecuda.XXXXXX", text[4096] = "";
    int file = mkstemp(path);
    assert_true(file >= 0);
    current = strided;
    assert_int_equal(gpb_child_run(right_answer, (const char *[]){ "FAKECUDA_SUMMARY", path, NULL }),
                     GPB_CHILD_OK);
    assert_true(read(file, text, sizeof text - 1) > 0);
    assert_string_equal(text, "kernel gpb_sgemm_naive launched=4 ran=4 shared=0\n");
    close(file);
    unlink(path);
}

/* The sample finds the same in a C without NaN, if C is large enough. */
static double sampled(const gpb_call *q)
{
    uint64_t seed = 1;
    return gpb_reference_sample(GPB_MATH_FMA, q, c_before, sizeof c, 100 * M * N, &seed);
}

/* The reference finds errors: a value off by more than the bound, a changed byte of padding, a lost NaN. */
static void test_reference(void **state)
{
    (void)state;
    gpb_call q = call_of('N', 'T', 1);
    memcpy(c, c_before, sizeof c);
    for (int64_t j = 0; j < N; j++)
        for (int64_t i = 0; i < M; i++)
            c[i + j * LDC] = (float)gpb_reference_at(&q, c_before, i, j, 0).value;
    assert_true(gpb_reference_check(GPB_MATH_FMA, &q, c_before, sizeof c) <= 1);
    assert_true(sampled(&q) <= 1);
    float right = c[5];
    gpb_reference_element e = gpb_reference_at(&q, c_before, 5, 0, 0);
    c[5] = (float)(e.value + 1.1 * gpb_reference_bound(GPB_MATH_FMA, &q, e));
    assert_true(gpb_reference_check(GPB_MATH_FMA, &q, c_before, sizeof c) > 1);
    assert_true(sampled(&q) > 1);
    c[5] = NAN;
    assert_true(isinf(gpb_reference_check(GPB_MATH_FMA, &q, c_before, sizeof c)));
    assert_true(isinf(sampled(&q)));
    c[5] = right;
    c[M] += 1;                                                /* between the columns */
    assert_true(isinf(gpb_reference_check(GPB_MATH_FMA, &q, c_before, sizeof c)));
    assert_true(isinf(sampled(&q)));
    c[M] = c_before[M];
    a[5] = NAN;                                               /* row 5 has to be NaN now, and is not */
    assert_true(isinf(gpb_reference_check(GPB_MATH_FMA, &q, c_before, sizeof c)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_answers), cmocka_unit_test(test_parts), cmocka_unit_test(test_contract),
        cmocka_unit_test(test_broken_rules), cmocka_unit_test(test_modules), cmocka_unit_test(test_summary),
        cmocka_unit_test(test_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
