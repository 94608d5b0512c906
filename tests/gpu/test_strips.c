/* SPDX-License-Identifier: MIT */
/* Operands in ordinary memory that come in many strips and chunks: three or more strips of A and of B, and
   operands that span more than 4 GiB, in all types. Each product has rank two and small integers, so that
   every result is exact. All of C is checked. Of a triangle a sample is, against the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/gpu/placed.h"

/* A matrix as it is stored, in sparse pages. What lies between its columns was never written and takes no
   memory. */
typedef struct matrix {
    int64_t rows, cols, ld;
    size_t bytes;
    char *at;
} matrix;

static enum gpb_type type;               /* of all matrices */
static int parts(void) { return gpb_type_of(type)->kind == GPB_TYPE_COMPLEX ? 2 : 1; }
static bool is_single(void) { return gpb_type_real_bytes(type) == sizeof(float); }

static void put(const matrix *x, int64_t i, int64_t j, int part, int value)
{
    const int64_t at = (i + j * x->ld) * parts() + part;
    if (is_single()) ((float *)x->at)[at] = (float)value;
    else ((double *)x->at)[at] = value;
}

static double get(const matrix *x, int64_t i, int64_t j, int part)
{
    const int64_t at = (i + j * x->ld) * parts() + part;
    return is_single() ? (double)((const float *)x->at)[at] : ((const double *)x->at)[at];
}

static matrix matrix_make(int64_t rows, int64_t cols, int64_t pad)
{
    matrix x = { .rows = rows, .cols = cols, .ld = rows + pad };
    x.bytes = (size_t)(x.ld * cols) * gpb_type_bytes(type);
    x.at = mmap(NULL, x.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(x.at, MAP_FAILED);
    return x;
}

static void matrix_free(matrix *x) { munmap(x->at, x->bytes); }

/* Small integers that tell places apart. No shift by a few, by a tile or by a strip leaves them as they are.
   */
static int number(int64_t i, int salt)
{
    return (int)((uint64_t)(i * 4 + salt) * 0x9e3779b97f4a7c15u >> 61) - 4;
}

/* A few rows of op(A), or columns of op(B), far from the first, have only SHORT elements. Slices leave their
   blocks of C to another kernel. */
enum { SHORT = 8 };
static int64_t thin_from;                /* INT64_MAX: none have */
static char uplo;                        /* of C, 0: all of it is written */
static bool is_written(int64_t i, int64_t j) { return !uplo || (uplo == 'U' ? i <= j : i >= j); }
static bool is_thin(int64_t at) { return at >= thin_from && at - thin_from < 100; }

/* Element (i, p) of op(A), and (p, j) of op(B). Then C holds sums over p alone, the same for all of it, or
   for all of a kind. */
static int of_a(int64_t i, int64_t p)
{
    return p >= SHORT && is_thin(i) ? 0 : number(i, 0) * number(p, 1) + number(i, 2) * number(p, 3);
}
static int of_b(int64_t p, int64_t j)
{
    return p >= SHORT && is_thin(j) ? 0 : number(p, 4) * number(j, 5) + number(p, 6) * number(j, 7);
}

/* Complex elements are 1 + `imaginary` i times that. */
enum { IMAGINARY_A = 1, IMAGINARY_B = -2 };
static void fill(matrix *x, bool transposed, int (*of)(int64_t, int64_t), int imaginary)
{
    for (int64_t j = 0; j < x->cols; j++)
        for (int64_t i = 0; i < x->rows; i++) {
            const int value = transposed ? of(j, i) : of(i, j);
            put(x, i, j, 0, value);
            if (parts() > 1) put(x, i, j, 1, imaginary * value);
        }
}

/* Results that are not alpha A B + beta C, C having been full of sevens. */
static int64_t count_wrong(const matrix *c, int64_t k, int alpha, int beta)
{
    int64_t sums[2][4] = { { 0 } }, wrong = 0;      /* of all p, of the first SHORT */
    for (int64_t p = 0; p < k; p++)
        for (int x = 0; x < 8; x++)
            if (x < 4 || p < SHORT) sums[x / 4][x % 4] += number(p, x & 2 ? 3 : 1) * number(p, x & 1 ? 6 : 4);
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i = 0; i < c->rows; i++) {
            if (!is_written(i, j)) {
                wrong += get(c, i, j, 0) != 7;
                continue;
            }
            const int64_t *sum = sums[is_thin(i) || is_thin(j)];
            const int64_t u[2] = { number(i, 0), number(i, 2) }, v[2] = { number(j, 5), number(j, 7) };
            int64_t product = 0;
            for (int x = 0; x < 4; x++) product += u[x / 2] * sum[x] * v[x % 2];
            const int64_t real = parts() > 1 ? 1 - IMAGINARY_A * IMAGINARY_B : 1;
            wrong += get(c, i, j, 0) != (double)(alpha * product * real + beta * 7);
            if (parts() > 1)
                wrong += get(c, i, j, 1) != (double)(alpha * product * (IMAGINARY_A + IMAGINARY_B));
        }
    return wrong;
}

/* pad: added to each leading dimension. */
static void try(int m, int n, int k, const char *trans, int64_t pad, int alpha, int beta)
{
    const bool ta = trans[0] == 'T', tb = trans[1] == 'T';
    crash_at_once();
    matrix a = matrix_make(ta ? k : m, ta ? m : k, pad);
    matrix b = matrix_make(tb ? n : k, tb ? k : n, pad);
    matrix c = matrix_make(m, n, pad);
    fill(&a, ta, of_a, IMAGINARY_A);
    fill(&b, tb, of_b, IMAGINARY_B);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) put(&c, i, j, 0, 7);          /* its pages are full of zeros */
    const gpb_problem of = { .routine = uplo ? GPB_TEST_gemmtr : GPB_TEST_gemm, .uplo = uplo,
                             .type = type, .m = m, .n = n, .k = k, .transa = trans[0], .transb = trans[1],
                             .ld = { (int)a.ld, (int)b.ld, (int)c.ld } };
    const int64_t before = gpu_calls();
    call_through_cblas(&of, alpha, beta, (void *const[]){ a.at, b.at, c.at }, (int64_t[GPB_OPERANDS]){ 0 });
    const int64_t wrong = count_wrong(&c, k, alpha, beta);
    if (wrong)
        fprintf(stderr, "%c, %d x %d x %d %s, ld + %lld: %lld results are wrong\n",
                gpb_type_of(type)->letter, m, n, k, trans, (long long)pad, (long long)wrong);
    assert_int_equal(wrong, 0);
    assert_int_equal(gpu_calls(), before + 1);
    matrix_free(&a);
    matrix_free(&b);
    matrix_free(&c);
}

/* By FMAs, and by slices, whose strips are cut one by one. k is so short that all of C is left to others, or
   only a few rows and columns are like that. */
static void test_strips(void **state)
{
    (void)state;
    thin_from = INT64_MAX;
    static const char *const trans[] = { "NN", "NT", "TN", "TT" };
    static const char *const kernels[] = { NULL, "ffma", "fp16x3" };
    for (int i = 0; i < (getenv("GPB_TEST_FEW") ? 3 : 12); i++) {
        set_option("KERNEL", kernels[i % 3]);
        if (i % 2) try(1024, 8192, 40, trans[i % 4], i % 3, 1, i % 5 - 1);
        else try(8192, 1024, 40, trans[i % 4], i % 3, -1, i % 5 - 1);
    }
    set_option("KERNEL", NULL);
    try(8192, 1024, 256, "NN", 0, 1, 1);           /* both operands in strips */
    try(40, 60, 20000, "TN", 1, 1, 1);             /* columns of several loads */
    set_option("KERNEL", "fp16x3");
    for (int i = 0; i < 4; i++) {
        static const int size[][2] = { { 8192, 1024 }, { 2048, 2000 }, { 512, 6000 }, { 6000, 300 } };
        thin_from = i % 2 ? 1300 : 5000;
        try(size[i][0], size[i][1], i ? 128 : 256, trans[i], i, 1, i % 2);
    }
    thin_from = INT64_MAX;
    set_option("KERNEL", NULL);
}

/* The same in d, c and z by the library's choice; c is sliced, too. */
static void test_types(void **state)
{
    (void)state;
    thin_from = INT64_MAX;
    for (type = GPB_TYPE_s + 1; type < GPB_TYPES; type++) {
        set_option("KERNEL", NULL);
        try(8192, 1024, 40, "NN", 0, 1, 1);
        try(1024, 8192, 40, "TT", 2, -1, 0);
        try(4096, 1024, 256, "NT", 1, 1, 2);
        try(40, 60, 20000, "TN", 1, 1, 1);
        if (type != GPB_TYPE_c) continue;
        set_option("KERNEL", "fp16x3");
        try(8192, 1024, 40, "NN", 0, 1, 1);
        thin_from = 1300;
        try(2048, 2000, 128, "NT", 1, 1, 1);
        try(6000, 300, 256, "TT", 2, 1, 0);
        thin_from = INT64_MAX;
    }
    type = GPB_TYPE_s;
    set_option("KERNEL", NULL);
}

/* Both triangles of a C of n x n, from operands of n x k that come in three strips and more. */
static void try_triangle(enum gpb_test_routine routine, enum gpb_type of, int n, int k)
{
    for (int i = 0; i < 2; i++) {
        placed p = { .of = { .routine = routine, .type = of, .m = n, .n = n, .k = k, .uplo = "LU"[i],
                             .transa = i ? gpb_type_is_complex(of) ? 'C' : 'T' : 'N', .pad = i },
                     .at = { PLACE_PAGEABLE, PLACE_PAGEABLE, PLACE_PAGEABLE } };
        const bool sliced = of == GPB_TYPE_s || of == GPB_TYPE_c;
        const enum gpb_math math = sliced ? GPB_MATH_FP16X3 : GPB_MATH_FMA;
        if (routine == GPB_TEST_syrk || routine == GPB_TEST_syr2k) p.of.transa = i ? 'T' : 'N';
        placed_make(&p);
        const int64_t before = gpu_calls();
        assert_true(placed_try(&p, -0.5, i ? 0 : 1.5, math));
        assert_int_equal(gpu_calls(), before + 1);
        placed_free(&p);
    }
}

/* In strips by slices (s, c) and by kernels that read operands as they are (d, z); and so deep that these cut
   the k of each strip's launch, products of two operands too. */
static void test_parts(void **state)
{
    (void)state;
    thin_from = INT64_MAX;
    set_option("KERNEL", NULL);
    try_triangle(GPB_TEST_syrk, GPB_TYPE_s, 1280, 128);
    try_triangle(GPB_TEST_syr2k, GPB_TYPE_s, 1280, 256);
    try_triangle(GPB_TEST_syrk, GPB_TYPE_d, 768, 256);
    try_triangle(GPB_TEST_herk, GPB_TYPE_c, 768, 128);
    try_triangle(GPB_TEST_her2k, GPB_TYPE_c, 1024, 256);
    try_triangle(GPB_TEST_syrk, GPB_TYPE_d, 1024, 2048);
    try_triangle(GPB_TEST_syr2k, GPB_TYPE_d, 1280, 1024);
    try_triangle(GPB_TEST_herk, GPB_TYPE_z, 1024, 1024);
    try_triangle(GPB_TEST_her2k, GPB_TYPE_z, 1024, 1024);
    type = GPB_TYPE_d;
    try(512, 512, 2048, "NN", 0, 1, 1);
    try(1280, 1280, 1024, "TT", 1, -1, 0);
    type = GPB_TYPE_z;
    try(1024, 1024, 1024, "NT", 1, 1, 2);
    type = GPB_TYPE_s;
    try(512, 512, 1024, "TN", 0, 1, 1);
}

/* Triangles by slices, of which strips between others are marked: launches along either operand find the
   marks of each strip. */
static void test_marks(void **state)
{
    (void)state;
    set_option("KERNEL", "fp16x3");
    for (int i = 0; i < 4; i++) {
        uplo = "UL"[i % 2];
        thin_from = 300 + 500 * (i / 2);
        try(1280, 1280, 128, i / 2 ? "TN" : "NN", i, 1, i % 3);
    }
    set_option("KERNEL", NULL);
    uplo = 0;
    thin_from = INT64_MAX;
}

/* One row of A, far from the first, or one column of B, has elements of 2^20 and 2^-20. Blocks with it are
   sliced again for a kernel with a wider range, and no other block and not the other operand says so. */
static void try_wide(int row, int col)
{
    enum { M = 700, N = 600, K = 256 };
    matrix a = matrix_make(M, K, 0), b = matrix_make(K, N, 0), c = matrix_make(M, N, 0);
    const gpb_problem of = { .type = type, .m = M, .n = N, .k = K, .transa = 'N', .transb = 'N',
                             .ld = { M, K, M } };
    const float wide[2] = { 0x1p20f, 0x1p-20f }, *x = (float *)a.at, *y = (float *)b.at;
    int64_t wrong = 0;
    fill(&a, false, of_a, 0);
    fill(&b, false, of_b, 0);
    for (int p = 0; p < K; p++) {
        if (row >= 0) ((float *)a.at)[row + p * M] *= wide[p % 2];
        if (col >= 0) ((float *)b.at)[p + col * K] *= wide[p % 2];
    }
    call_through_cblas(&of, 1, 0, (void *const[]){ a.at, b.at, c.at }, (int64_t[GPB_OPERANDS]){ 0 });
    for (int j = 0; j < N; j++)
        for (int i = 0; i < M; i++) {
            double sum = 0, size = 0;
            for (int p = 0; p < K; p++) {
                const double product = (double)x[i + p * M] * (double)y[p + j * K];
                sum += product;
                size += product < 0 ? -product : product;
            }
            const double error = get(&c, i, j, 0) - sum;
            wrong += !(error <= 0x1p-20 * size && -error <= 0x1p-20 * size);
        }
    assert_int_equal(wrong, 0);
    matrix_free(&a);
    matrix_free(&b);
    matrix_free(&c);
}

static void test_wide(void **state)
{
    (void)state;
    type = GPB_TYPE_s;
    thin_from = INT64_MAX;
    set_option("KERNEL", "fp16x3");
    try_wide(400, -1);
    try_wide(-1, 450);
    set_option("KERNEL", NULL);
}

/* Each column 16 MiB from the next: 8 to 10 GiB from the first to the last, in several loads each way. */
static void test_spans(void **state)
{
    (void)state;
    thin_from = INT64_MAX;
    static const char *const trans[] = { "NN", "TT" };
    for (type = 0; type < GPB_TYPES; type++)
        for (int i = type == GPB_TYPE_z; i < (type == GPB_TYPE_d ? 1 : 2); i++) {
            const int each = (1 << 24) / (int)gpb_type_bytes(type);
            try(700, 600, 500, trans[i], each + 5 - (i ? 500 : 700), 1, i);
        }
    type = GPB_TYPE_s;
}

int main(void)
{
    if (!gpu_open()) return 77;
    set_option("OFFLOAD", "always");
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_strips), cmocka_unit_test(test_types),
                                        cmocka_unit_test(test_parts), cmocka_unit_test(test_marks),
                                        cmocka_unit_test(test_wide),
                                        cmocka_unit_test(test_spans) };
    return cmocka_run_group_tests_name("strips", tests, NULL, NULL);
}
