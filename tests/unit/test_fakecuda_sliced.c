/* SPDX-License-Identifier: MIT */
/* The SLICED kernels of tests/fakecuda: slices that multiply to the right answer, guard words that leave
   blocks of C to another kernel, and each broken rule is found. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/sliced.h"
#include "tests/fakecuda/child.h"
#include "tests/reference.h"

typedef struct row {
    const char *symbol;
    enum gpb_type type;
    enum gpb_math math;
    enum gpb_form form;
    int bm, bn, threads, smem;
} row;

static const row rows[] = {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    { GPB_STR(GPB_GEMM_SYMBOL(p, name)), GPB_TYPE_##p, GPB_MATH_##math, GPB_FORM_##form, bm, bn, threads, \
      smem },
#include "kernels/gemm.def"
#undef KERNEL
};
enum { ROWS = sizeof rows / sizeof *rows };

static const struct slicer { const char *symbol; enum gpb_type type; int most, cluster; } slicers[] = {
#define SLICER(p, name, image, most, cluster) \
    { GPB_STR(GPB_SLICER_SYMBOL(p, name)), GPB_TYPE_##p, most, cluster },
#include "kernels/slicer.def"
#undef SLICER
};
enum { SLICERS = sizeof slicers / sizeof *slicers };

/* Two blocks of rows (of complex ones four) and three of columns, of which the last are shorter. k is a
   multiple neither of a chunk nor of eight. */
enum { M = 200, N = 300, K = 75, LDA = 203, LDB = 301, LDC = 205, AREA = 303 * 303 };
static const row *current;
static const struct slicer *slicer;
static float a[2 * AREA], b[2 * AREA], c_before[2 * LDC * N], c[2 * LDC * N];

/* The arguments of a launch of gpb_sslice and of a kernel after it. */
typedef struct state {
    gpb_slice_args slice;
    gpb_gemm_args gemm;
    CUdeviceptr a, b;
    uint32_t *flagged;
} state;

static int slices_of(const row *r)
{
    return r->math == GPB_MATH_BF16X6 ? 3 : r->math == GPB_MATH_FP16X3 ? 2 : 1;
}

static bool is_complex(const row *r) { return gpb_type_of(r->type)->kind == GPB_TYPE_COMPLEX; }
/* Sizes of the real product. */
static int64_t rows_of(const row *r) { return gpb_sliced_m(is_complex(r), M); }
static int64_t depth_of(const row *r) { return gpb_sliced_k(is_complex(r), K); }

/* The slicer of a type that takes any operand. */
static const struct slicer *any_slicer(enum gpb_type type)
{
    const struct slicer *s = slicers;
    while (s->type != type || s->most)
        s++;
    return s;
}

static CUfunction function_of(const row *r)
{
    CUfunction f = gpb_child_kernel(r->symbol);
    EXPECT(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, r->smem) == CUDA_SUCCESS);
    return f;
}

static CUresult launch(CUfunction f, int64_t x, int threads, int smem, void *arguments)
{
    return cuLaunchKernel(f, (unsigned)x, 1, 1, (unsigned)threads, 1, 1, (unsigned)smem, NULL,
                          (void *[]){ arguments }, NULL);
}

static CUresult launch_slicer(const gpb_slice_args *g)
{
    gpb_slice_args copy = *g;
    int64_t strips = GPB_SLICE_STRIPS(g->a.rows) + GPB_SLICE_STRIPS(g->b.rows);
    return launch(gpb_child_kernel(slicer->symbol), (strips ? strips : 1) * slicer->cluster,
                  GPB_SLICE_THREADS, 0, &copy);
}

static CUresult launch_gemm(const row *r, const gpb_gemm_args *g)
{
    gpb_gemm_args copy = *g;
    CUfunction f = function_of(r);
    CUlaunchAttribute size = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                               .value.clusterDim = { GPB_SLICED_CLUSTER, 1, 1 } };
    CUlaunchConfig config = { .gridDimX = 132, .gridDimY = 1, .gridDimZ = 1,
                              .blockDimX = (unsigned)r->threads, .blockDimY = 1, .blockDimZ = 1,
                              .sharedMemBytes = (unsigned)r->smem, .attrs = &size, .numAttrs = 1 };
    int clusters = 0;
    EXPECT(cuOccupancyMaxActiveClusters(&clusters, f, &config) == CUDA_SUCCESS && clusters > 0);
    return launch(f, clusters * GPB_SLICED_CLUSTER, r->threads, r->smem, &copy);
}

static gpb_call call_of(enum gpb_type type, char transa, char transb)
{
    gpb_reference_fill(a, 2 * AREA, 1);
    gpb_reference_fill(b, 2 * AREA, 2);
    gpb_reference_fill(c_before, 2 * LDC * N, 3);
    gpb_call q = { .type = type, .x[GPB_A].trans = transa, .x[GPB_B].trans = transb,
                   .x[GPB_C].uplo = 'G', .m = M, .n = N, .k = K, .x[GPB_A].ld = LDA, .x[GPB_B].ld = LDB,
                   .x[GPB_C].ld = LDC, .alpha = 0.75, .beta = -1.5, .x[GPB_A].base = a, .x[GPB_B].base = b,
                   .x[GPB_C].base = c, .batch = 1 };
    if (gpb_type_of(type)->kind == GPB_TYPE_COMPLEX) {
        q.alpha = __builtin_complex(0.75, -0.5);
        q.beta = __builtin_complex(-1.5, 0.25);
    }
    return q;
}

static CUdeviceptr aligned(size_t bytes) { return (gpb_child_device(bytes + 1024) + 1023) / 1024 * 1024; }

/* The arguments for row r, with memory for the slices and the workspace. */
static state prepare(const row *r, const gpb_call *q)
{
    const int slices = slices_of(r);
    const bool ta = q->x[GPB_A].trans != 'N', tb = q->x[GPB_B].trans != 'N';
    const int64_t m = rows_of(r), k = depth_of(r);
    slicer = slicer && slicer->type == r->type ? slicer : any_slicer(r->type);
    state s = { .a = gpb_child_upload(a, sizeof a), .b = gpb_child_upload(b, sizeof b),
                .flagged = gpb_child_pinned(4) };
    *s.flagged = 0;
    s.slice = (gpb_slice_args){ .k = k, .batch = 1, .slices = slices,
                                .conj_a = q->x[GPB_A].trans == 'C', .conj_b = q->x[GPB_B].trans == 'C',
                                .counters = (void *)gpb_child_device(GPB_SLICED_COUNTERS * 4),
                                .flagged = s.flagged };
    s.slice.a = (gpb_slice_operand){ .src = (void *)s.a, .rs = ta ? LDA : 1, .cs = ta ? 1 : LDA, .rows = m,
                                     .epoch = 7,
                                     .dst = (void *)aligned((size_t)gpb_sliced_bytes(m, k, slices)) };
    s.slice.b = (gpb_slice_operand){ .src = (void *)s.b, .rs = tb ? 1 : LDB, .cs = tb ? LDB : 1, .rows = N,
                                     .epoch = 8,
                                     .dst = (void *)aligned((size_t)gpb_sliced_bytes(N, k, slices)) };
    const int64_t room = gpb_sliced_partial_bytes(132 / GPB_SLICED_CLUSTER,
                                                 gpb_sliced_m(is_complex(r), r->bm) * r->bn);
    s.gemm = (gpb_gemm_args){
        .m = m, .n = N, .k = k, .a = s.slice.a.dst, .rsa = 1, .csa = 1, .b = s.slice.b.dst, .rsb = 1,
        .csb = 1, .c = (void *)gpb_child_upload(c_before, sizeof c_before), .ldc = LDC,
        .alpha = GPB_SCALAR_RE_IM(q->alpha), .beta = GPB_SCALAR_RE_IM(q->beta), .batch = 1,
        .counters = s.slice.counters, .epoch_a = 7, .epoch_b = 8,
        .partials = (void *)gpb_child_device((size_t)room)
    };
    s.gemm.stride_a = gpb_sliced_bytes(m, k, slices) / 4;
    s.gemm.stride_guard_a = s.gemm.stride_a / 2;
    s.gemm.stride_b = gpb_sliced_bytes(N, k, slices) / 4;
    s.gemm.stride_guard_b = s.gemm.stride_b / 2;
    s.gemm.guard_a = (void *)((CUdeviceptr)s.gemm.a + (CUdeviceptr)gpb_sliced_guard(m, k, slices));
    s.gemm.guard_b = (void *)((CUdeviceptr)s.gemm.b + (CUdeviceptr)gpb_sliced_guard(N, k, slices));
    return s;
}

/* The first kernel of a type that reads operands as they are and may be a fallback; NULL: there is none. */
static const row *strided(const row *of)
{
    for (const row *r = rows; r < rows + ROWS; r++)
        if (r->type == of->type && r->form == GPB_FORM_STRIDED && r->math == GPB_MATH_FMA
            && GPB_GUARD_ROWS(is_complex(of)) % r->bm == 0)
            return r;
    return NULL;
}

/* It computes all blocks at `level` and above, from the caller's operands. */
static CUresult fallback(const row *of, const state *s, int level)
{
    gpb_gemm_args g = s->gemm;
    const row *r = strided(of);
    g.m = M;
    g.k = K;
    g.a = (void *)s->a;
    g.rsa = s->slice.a.rs;
    g.csa = s->slice.a.cs;
    g.b = (void *)s->b;
    g.rsb = s->slice.b.cs;
    g.csb = s->slice.b.rs;
    g.level = level;
    g.conj_a = s->slice.conj_a;
    g.conj_b = s->slice.conj_b;
    return launch(function_of(r), GPB_TILES(M, N, r->bm, r->bn), r->threads, r->smem, &g);
}

static void fetch(const state *s)
{
    EXPECT(cuMemcpyDtoH(c, (CUdeviceptr)s->gemm.c, sizeof c) == CUDA_SUCCESS);
}

/* True if none of these rows of C has changed. */
static bool untouched(const row *r, int from, int to)
{
    const size_t reals = is_complex(r) ? 2 : 1;
    for (size_t j = 0; j < N; j++)
        if (memcmp(&c[reals * ((size_t)from + j * LDC)], &c_before[reals * ((size_t)from + j * LDC)],
                   sizeof *c * reals * (size_t)(to - from)))
            return false;
    return true;
}

static int right_answer(void)
{
    gpb_child_start();
    for (int trans = 0; trans < 7; trans++) {
        gpb_call q = call_of(current->type, "NNTTCCN"[trans], "NTNTNCC"[trans]);
        state s = prepare(current, &q);
        EXPECT(launch_slicer(&s.slice) == CUDA_SUCCESS && launch_gemm(current, &s.gemm) == CUDA_SUCCESS);
        fetch(&s);
        EXPECT(gpb_reference_check(current->math, &q, c_before, sizeof c) <= 1);
        EXPECT(current->math != GPB_MATH_TF32
               || gpb_reference_check(GPB_MATH_FMA, &q, c_before, sizeof c) > 1);
        EXPECT(*s.flagged == 0);
        /* Nothing is left for the fallback. */
        memcpy(c_before, c, sizeof c);
        if (strided(current))
            EXPECT(fallback(current, &s, 1) == CUDA_SUCCESS);
        fetch(&s);
        EXPECT(!memcmp(c_before, c, sizeof c));
    }
    return GPB_CHILD_OK;
}

static void test_right_answers(void **state)
{
    (void)state;
    for (current = rows; current < rows + ROWS; current++)
        for (slicer = slicers; current->form == GPB_FORM_SLICED && slicer < slicers + SLICERS;
             slicer++)
            if (slicer->type == current->type && (slices_of(current) < 3 || !slicer->most))
                assert_int_equal(gpb_child_run(right_answer, NULL), GPB_CHILD_OK);
    slicer = NULL;
}

static const row *row_of(enum gpb_type type, enum gpb_math math)
{
    for (const row *r = rows; r < rows + ROWS; r++)
        if (r->form == GPB_FORM_SLICED && r->type == type && r->math == math)
            return r;
    return NULL;
}

static void few(void) { for (int p = 0; p < K + 1 - GPB_SLICE_FEWEST; p++) a[130 + p * LDA] = 0; }
static void nan_(void) { a[130] = NAN; }
static void infinite(void) { a[130 + 5 * LDA] = -INFINITY; }
static void large(void) { a[130] = 0x1p61f; }
static void far(void) { a[130] = 0x1p-83f; }
static void small(void) { for (int p = 0; p < K; p++) a[130 + p * LDA] *= 0x1p-61f; }
static void wide(void) { a[130] = 0x1p-50f; }
/* As FP16 it loses nothing, but it is aligned as if it were 2^-14. */
static void exact_subnormal(void) { a[130] = 0x1p-38f; }
/* 0.95 * 2^-14 after the row's largest, in [2^-1, 1), has become 2^14 and more. At k = 75 two slices would
   lose that much of it. */
static void hardly_subnormal(void) { a[130] = 0.95f * 0x1p-29f; }

/* Sliced without a rest. */
static void count(void) { for (int p = 0; p < K; p++) a[130 + p * LDA] = (float)(2049 + 7 * p % 350); }
/* Without low slices as well. */
static void short_count(void) { for (int p = 0; p < K; p++) a[130 + p * LDA] = (float)(p % 5 - 1024); }
static void mixed_count(void)
{
    count();
    a[130 + 5 * LDA] = 0.3f;
}
static void at_the_edge(void) { a[130] = 0x1p-29f; }
static void below_the_edge(void) { a[130] = 0x1p-29f - 0x1p-35f; }

/* What is done to row 130 of A, and the level that its block gets. */
static const struct bad { void (*spoil)(void); int level; enum gpb_math math;
} bads[] = { { few, 2, GPB_MATH_FP16X3 },           { nan_, 2, GPB_MATH_FP16X3 },
             { infinite, 2, GPB_MATH_FP16X3 },      { large, 2, GPB_MATH_FP16X3 },
             { far, 2, GPB_MATH_FP16X3 },           { small, 2, GPB_MATH_FP16X3 },
             { wide, 1, GPB_MATH_FP16X3 },          { exact_subnormal, 1, GPB_MATH_FP16X3 },
             { exact_subnormal, 1, GPB_MATH_TF32 }, { hardly_subnormal, 1, GPB_MATH_TF32 } };
static const struct bad *bad;

static int marked(void)
{
    gpb_child_start();
    const row *r = row_of(GPB_TYPE_s, bad->math);
    gpb_call q = call_of(GPB_TYPE_s, 'N', 'N');
    bad->spoil();
    state s = prepare(r, &q);
    uint64_t words[3];
    EXPECT(launch_slicer(&s.slice) == CUDA_SUCCESS && launch_gemm(r, &s.gemm) == CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoH(words, (CUdeviceptr)s.gemm.guard_a, sizeof words) == CUDA_SUCCESS);
    fetch(&s);
    EXPECT(gpb_guard_level(words[0], 7) == 0 && gpb_guard_level(words[1], 7) == bad->level);
    EXPECT((words[2] == 7) == (bad->level == 1) && *s.flagged == 1);
    EXPECT(untouched(r, 128, M) && !untouched(r, 0, 1));
    if (bad->level == 1) {  /* BF16 slices, for this member only, and only if it needs them */
        const row *w = row_of(GPB_TYPE_s, GPB_MATH_BF16X6);
        state t = prepare(w, &q);
        t.slice.if_a = s.gemm.guard_a + gpb_sliced_guards(M);
        t.slice.if_b = s.gemm.guard_b + gpb_sliced_guards(N);
        t.slice.epoch_if_a = 7;
        t.slice.epoch_if_b = 8;
        t.gemm.guard_a = s.gemm.guard_a;
        t.gemm.guard_b = s.gemm.guard_b;
        t.gemm.c = s.gemm.c;
        t.gemm.level = 1;
        EXPECT(launch_slicer(&t.slice) == CUDA_SUCCESS && launch_gemm(w, &t.gemm) == CUDA_SUCCESS);
    }
    EXPECT(fallback(r, &s, 2) == CUDA_SUCCESS);
    fetch(&s);
    EXPECT(gpb_reference_check(bad->math, &q, c_before, sizeof c) <= 1);
    return GPB_CHILD_OK;
}

/* What is done to row 130, and whether the product of low slices then counts. No level, no flag, nothing
   for other kernels to do. */
static const struct unusual { void (*spoil)(void); bool full;
} unusuals[] = { { count, true },
                 { short_count, false },
                 { mixed_count, false },
                 { at_the_edge, false },
                 { below_the_edge, true } };
static const struct unusual *unusual;

static int full(void)
{
    gpb_child_start();
    const row *r = row_of(GPB_TYPE_s, GPB_MATH_FP16X3);
    gpb_call q = call_of(GPB_TYPE_s, 'N', 'N');
    unusual->spoil();
    state s = prepare(r, &q);
    uint64_t words[3];
    EXPECT(launch_slicer(&s.slice) == CUDA_SUCCESS && launch_gemm(r, &s.gemm) == CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoH(words, (CUdeviceptr)s.gemm.guard_a, sizeof words) == CUDA_SUCCESS);
    fetch(&s);
    EXPECT(gpb_guard_full(words[1], 7) == unusual->full && !gpb_guard_full(words[0], 7)
           && gpb_guard_level(words[1], 7) == 0);
    EXPECT(words[2] != 7 && *s.flagged == 0);
    EXPECT(gpb_reference_check(GPB_MATH_FMA, &q, c_before, sizeof c) <= 1);
    return GPB_CHILD_OK;
}

static void test_full(void **state)
{
    (void)state;
    for (unusual = unusuals; unusual < unusuals + sizeof unusuals / sizeof *unusuals; unusual++)
        assert_int_equal(gpb_child_run(full, NULL), GPB_CHILD_OK);
}

static void test_marks(void **state)
{
    (void)state;
    for (bad = bads; bad < bads + sizeof bads / sizeof *bads; bad++)
        assert_int_equal(gpb_child_run(marked, NULL), GPB_CHILD_OK);
}

/* Complex row 130 is rows 260 and 268 of the slices: block 2, which is complex rows 128 to 191. What is
   hostile of its imaginary parts alone is hostile of both. */
static void imaginary_nan(void) { a[2 * (130 + 4 * LDA) + 1] = NAN; }
static void imaginary_wide(void) { a[2 * (130 + 4 * LDA) + 1] = 0x1p-50f; }
static void real_alone(void) { for (int p = 0; p < K; p++) a[2 * (130 + p * LDA) + 1] = 0; }
static void few_reals(void)
{
    real_alone();
    for (int p = 0; p < K + 1 - GPB_SLICE_FEWEST; p++)
        a[2 * (130 + p * LDA)] = 0;
}
static const struct bad complex_bads[] = { { imaginary_nan, 2, GPB_MATH_FP16X3 },
                                           { imaginary_wide, 1, GPB_MATH_FP16X3 },
                                           { few_reals, 2, GPB_MATH_FP16X3 },
                                           { real_alone, 0, GPB_MATH_FP16X3 } };

static int marked_complex(void)
{
    gpb_child_start();
    const row *r = row_of(GPB_TYPE_c, bad->math);
    gpb_call q = call_of(GPB_TYPE_c, 'N', 'T');
    bad->spoil();
    state s = prepare(r, &q);
    uint64_t words[5];
    EXPECT(launch_slicer(&s.slice) == CUDA_SUCCESS && launch_gemm(r, &s.gemm) == CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoH(words, (CUdeviceptr)s.gemm.guard_a, sizeof words) == CUDA_SUCCESS);
    fetch(&s);
    for (int x = 0; x < 4; x++)
        EXPECT(gpb_guard_level(words[x], 7) == (x == 2 ? bad->level : 0));
    EXPECT((words[4] == 7) == (bad->level == 1) && *s.flagged == (bad->level > 0));
    EXPECT(untouched(r, 128, 192) == (bad->level > 0) && !untouched(r, 127, 128) && !untouched(r, 192, 193));
    if (bad->level && !strided(r))
        return GPB_CHILD_OK;
    if (bad->level)
        EXPECT(fallback(r, &s, 1) == CUDA_SUCCESS);
    fetch(&s);
    EXPECT(gpb_reference_check(bad->math, &q, c_before, sizeof c) <= 1);
    return GPB_CHILD_OK;
}

static void test_complex_marks(void **state)
{
    (void)state;
    for (bad = complex_bads; bad < complex_bads + sizeof complex_bads / sizeof *complex_bads; bad++)
        assert_int_equal(gpb_child_run(marked_complex, NULL), GPB_CHILD_OK);
}

/* What real and imaginary parts are multiplied by: powers of two, or GONE for 0. */
enum { GONE = -1000 };
static const struct parts { int of_a[2], of_b[2]; } families[] = {
    { { 0, 0 }, { 0, 0 } },       { { 0, -4 }, { 0, 0 } },     { { 0, 0 }, { 0, -4 } },
    { { 0, -4 }, { 0, -4 } },     { { 0, -8 }, { 0, -8 } },    { { 0, -12 }, { 0, -12 } },
    { { -12, 0 }, { 0, -12 } },   { { 0, -20 }, { 0, 0 } },    { { 0, -20 }, { 0, -20 } },
    { { 0, -25 }, { 0, -25 } },   { { 0, -40 }, { 0, -40 } },  { { 0, -40 }, { 0, 0 } },
    { { -40, 0 }, { 0, -40 } },   { { 0, -60 }, { 0, -60 } },  { { 0, GONE }, { 0, 0 } },
    { { 0, GONE }, { 0, -20 } },  { { 0, GONE }, { GONE, 0 } }, { { GONE, 0 }, { 0, -40 } },
    { { 30, -12 }, { -30, -40 } }, { { 0, GONE }, { 0, GONE } } };
static const struct parts *family;

static void scale_parts(float *x, int64_t count, const int powers[2])
{
    for (int64_t i = 0; i < count; i++) {
        const int power = powers[i % 2];
        x[i] = power == GONE ? 0 : ldexpf(x[i], power);
    }
}

/* Both parts of every result keep the bound of their own terms, by the bit model of tensor cores. */
static int keeps_bound(void)
{
    setenv("FAKECUDA_TENSOR", "1", 1);
    gpb_child_start();
    const row *r = row_of(GPB_TYPE_c, GPB_MATH_FP16X3), *w = row_of(GPB_TYPE_c, GPB_MATH_BF16X6);
    gpb_call q = call_of(GPB_TYPE_c, 'N', 'C');
    scale_parts(a, 2 * AREA, family->of_a);
    scale_parts(b, 2 * AREA, family->of_b);
    q.alpha = 1;
    q.beta = 0;
    state s = prepare(r, &q), t = prepare(w, &q);
    t.slice.if_a = s.gemm.guard_a + gpb_sliced_guards(2 * M);
    t.slice.if_b = s.gemm.guard_b + gpb_sliced_guards(N);
    t.slice.epoch_if_a = 7;
    t.slice.epoch_if_b = 8;
    t.gemm.guard_a = s.gemm.guard_a;
    t.gemm.guard_b = s.gemm.guard_b;
    t.gemm.c = s.gemm.c;
    t.gemm.level = 1;
    EXPECT(launch_slicer(&s.slice) == CUDA_SUCCESS && launch_gemm(r, &s.gemm) == CUDA_SUCCESS);
    EXPECT(launch_slicer(&t.slice) == CUDA_SUCCESS && launch_gemm(w, &t.gemm) == CUDA_SUCCESS);
    fetch(&s);
    double worst[2] = { 0, 0 };
    for (int64_t j = 0; j < N; j++)
        for (int64_t i = 0; i < M; i++)
            for (int part = 0; part < 2; part++) {
                const gpb_reference_element e = gpb_reference_part(&q, c_before, i, j, 0, part);
                const double error = gpb_reference_error(GPB_MATH_FMA, &q, e, &c[2 * (i + j * LDC)], part);
                worst[part] = error > worst[part] ? error : worst[part];
            }
    EXPECT(worst[0] <= 1 && worst[1] <= 1);
    return GPB_CHILD_OK;
}

static void test_complex_parts(void **state)
{
    (void)state;
    for (family = families; family < families + sizeof families / sizeof *families; family++)
        assert_int_equal(gpb_child_run(keeps_bound, NULL), GPB_CHILD_OK);
}

/* An operand that is there already keeps its own epoch. Another call's marks do not count. */
static int kept_operand(void)
{
    gpb_child_start();
    const row *r = row_of(GPB_TYPE_s, GPB_MATH_FP16X3);
    gpb_call q = call_of(GPB_TYPE_s, 'T', 'N');
    state s = prepare(r, &q);
    a[3] = INFINITY;
    CUdeviceptr spoilt = gpb_child_upload(a, sizeof a);
    gpb_slice_args first = s.slice;
    first.a.src = (void *)spoilt;
    first.a.epoch = 5;
    EXPECT(launch_slicer(&first) == CUDA_SUCCESS);            /* leaves 5 in the guard words of A */
    gpb_slice_args again = s.slice;
    again.b.rows = 0;
    again.b.dst = NULL;
    EXPECT(launch_slicer(&again) == CUDA_SUCCESS && launch_gemm(r, &s.gemm) == CUDA_SUCCESS);
    fetch(&s);
    gpb_reference_fill(a, AREA, 1);
    EXPECT(gpb_reference_check(GPB_MATH_FMA, &q, c_before, sizeof c) <= 1);
    return GPB_CHILD_OK;
}

static void test_kept(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_run(kept_operand, NULL), GPB_CHILD_OK);
}

/* Each breaks one rule of the launch. */
static void no_counters(state *s) { EXPECT(cuMemsetD8((CUdeviceptr)s->gemm.counters, 1, 4) == CUDA_SUCCESS); }
static void no_room(state *s) { s->gemm.partials = (void *)gpb_child_device(1024); }
static void shifted(state *s) { s->gemm.a = (const char *)s->gemm.a + 256; }
static void no_guards(state *s) { s->gemm.guard_b = NULL; }
static void no_epoch(state *s) { s->gemm.epoch_a = 0; }
static void wrong_guards(state *s) { s->gemm.guard_a++; }
static void deeper(state *s) { s->gemm.k = K + 32; }
static void in_parts(state *s) { s->gemm.splits = 2; }
static void not_filled(state *s)
{
    EXPECT(cuMemsetD8((CUdeviceptr)s->gemm.a + M * 64, 1, 64) == CUDA_SUCCESS);
}
static void (*const breaks[])(state *) = { no_counters,  no_room, shifted,  no_guards, no_epoch,
                                           wrong_guards, deeper,  in_parts, not_filled };
static void (*const *breach)(state *);

static int broken(void)
{
    gpb_child_start();
    const row *r = row_of(GPB_TYPE_s, GPB_MATH_FP16X3);
    gpb_call q = call_of(GPB_TYPE_s, 'N', 'T');
    state s = prepare(r, &q);
    EXPECT(launch_slicer(&s.slice) == CUDA_SUCCESS);
    (*breach)(&s);
    EXPECT(launch_gemm(r, &s.gemm) == CUDA_SUCCESS);
    EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
    return GPB_CHILD_OK;
}

static int used_twice(void)              /* the counters are not zero the second time */
{
    gpb_child_start();
    gpb_call q = call_of(GPB_TYPE_s, 'N', 'N');
    state s = prepare(row_of(GPB_TYPE_s, GPB_MATH_FP16X3), &q);
    EXPECT(launch_slicer(&s.slice) == CUDA_SUCCESS);
    for (int i = 0; i < 2; i++)
        EXPECT(launch_gemm(row_of(GPB_TYPE_s, GPB_MATH_FP16X3), &s.gemm) == CUDA_SUCCESS);
    EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
    return GPB_CHILD_OK;
}

static int too_deep(void)                /* for a slicer that holds strips in registers */
{
    gpb_child_start();
    gpb_call q = call_of(GPB_TYPE_s, 'N', 'N');
    state s = prepare(row_of(GPB_TYPE_s, GPB_MATH_FP16X3), &q);
    slicer = slicers;
    s.slice.k = slicer->most + 1;
    launch_slicer(&s.slice);
    return GPB_CHILD_OK;
}

static void test_broken_rules(void **state)
{
    (void)state;
    for (breach = breaks; breach < breaks + sizeof breaks / sizeof *breaks; breach++)
        assert_int_equal(gpb_child_run(broken, NULL), 86);
    assert_int_equal(gpb_child_run(used_twice, NULL), 86);
    assert_int_equal(gpb_child_run(too_deep, NULL), 86);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_answers), cmocka_unit_test(test_marks),
        cmocka_unit_test(test_full), cmocka_unit_test(test_kept),
        cmocka_unit_test(test_complex_marks),
        cmocka_unit_test(test_complex_parts),
        cmocka_unit_test(test_broken_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
