/* SPDX-License-Identifier: MIT */
/* The kernels of tests/fakecuda: the right answer within the reference's bound, and each broken rule of a
   launch is found. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/gemm_args.h"
#include "kernels/triangle.h"
#include "tests/fakecuda/child.h"
#include "tests/reference.h"

typedef struct row {
    const char *symbol;
    enum gpb_type type;
    enum gpb_math math;
    enum gpb_form form;
    int bm, bn, bk, threads, smem;
    unsigned caps;
} row;

static const row rows[] = {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    { GPB_STR(GPB_GEMM_SYMBOL(p, name)), GPB_TYPE_##p, GPB_MATH_##math, GPB_FORM_##form, bm, bn, bk,        \
      threads, smem, GPB_CAP_##caps },
#include "kernels/gemm.def"
#undef KERNEL
};
enum { ROWS = sizeof rows / sizeof *rows, M = 131, N = 35, K = 133, LDA = 137, LDC = 134, BATCH = 3 };

#include "tests/unit/child_gemm.h"

/* A few elements of the type: on the device, and back as alpha and beta are given. */
static CUdeviceptr upload_numbers(const gpb_scalar *x, int count)
{
    char elements[64 * sizeof(gpb_element)];
    for (int i = 0; i < count; i++) {
        const gpb_element e = gpb_element_of(type, x[i]);
        memcpy(elements + bytes_of((size_t)i), &e, bytes_of(1));
    }
    return gpb_child_upload(elements, bytes_of((size_t)count));
}

static gpb_scalar read_number(CUdeviceptr from, int i)
{
    const gpb_call of = { .type = type };
    gpb_element e;
    EXPECT(cuMemcpyDtoH(&e, from + bytes_of((size_t)i), bytes_of(1)) == CUDA_SUCCESS);
    const bool is_complex = gpb_type_of(type)->kind == GPB_TYPE_COMPLEX;
    return __builtin_complex(gpb_reference_value(&of, &e, 0),
                             is_complex ? gpb_reference_value(&of, &e, 1) : 0);
}

static const row *current;               /* the row under test, for the child */

/* The kernels around GEMM, by type. */
enum pass { PACK, UNPACK, REDUCE, PASSES };
static const char *const passes[GPB_TYPES][PASSES] = {
#define TYPE(p, type, bytes, flops, kind) \
    { GPB_STR(GPB_PACK_SYMBOL(p)), GPB_STR(GPB_UNPACK_SYMBOL(p)), GPB_STR(GPB_REDUCE_SYMBOL(p)) },
#include "dispatch/type.def"
#undef TYPE
};

/* The first row of that type and form, or NULL. */
static const row *row_of(enum gpb_type of, enum gpb_form form)
{
    for (const row *r = rows; r < rows + ROWS; r++)
        if (r->type == of && r->form == form)
            return r;
    return NULL;
}

/* Calls `what` with a STRIDED row of each type. */
static void for_all_types(void (*what)(const row *r))
{
    for (int of = 0; of < GPB_TYPES; of++) {
        const row *r = row_of((enum gpb_type)of, GPB_FORM_STRIDED);
        assert_non_null(r);
        what(r);
    }
}

/* Runs the body in a child with that row. */
static int run(int (*body)(void), const row *r)
{
    current = r;
    type = r->type;
    return gpb_child_run(body, NULL);
}

static int (*every_body)(void);
static void run_body(const row *r) { assert_int_equal(run(every_body, r), GPB_CHILD_OK); }
static void run_all_types(int (*body)(void))
{
    every_body = body;
    for_all_types(run_body);
}

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
    const bool maps = r->form == GPB_FORM_MAPPED;
    gpb_mapped_args mapped = { 0 };
    if (maps) mapped = mapped_of(g, r->bm, r->bn, r->caps);
    if (maps) x = (unsigned)GPB_MAPPED_BLOCKS(g->uplo, g->m, g->n, r->bm, r->bn, r->caps);
    return cuLaunchKernel(kernel_of(r), x, 1, z, (unsigned)r->threads, 1, 1, (unsigned)r->smem, NULL,
                          (void *[]){ maps ? (void *)&mapped : g }, NULL);
}

static CUresult launch_tiles(enum pass pass, int64_t high, int64_t wide, void *arguments)
{
    unsigned x = (unsigned)GPB_TILES(high, wide, GPB_PACK_TILE, GPB_PACK_TILE);
    return cuLaunchKernel(gpb_child_kernel(passes[type][pass]), x, 1, 1, GPB_PACK_THREADS, 1, 1, 0, NULL,
                          (void *[]){ arguments }, NULL);
}

/* Packs a device matrix for a padded kernel. *ld receives its leading dimension. */
static CUdeviceptr pack(CUdeviceptr from, int64_t rs, int64_t cs, const int64_t size[4], int64_t *ld)
{
    *ld = size[2] + 4;
    CUdeviceptr to = gpb_child_device(bytes_of((size_t)(*ld * size[3])));
    gpb_pack_args p = { .src = (void *)from, .rs = rs, .cs = cs, .rows = size[0], .cols = size[1],
                        .dst = (void *)to, .ld = *ld, .rows_padded = size[2], .cols_padded = size[3],
                        .batch = 1 };
    EXPECT(launch_tiles(PACK, size[2], size[3], &p) == CUDA_SUCCESS);
    return to;
}

static CUresult launch_reduce(gpb_reduce_args *r)
{
    unsigned x = (unsigned)GPB_REDUCE_BLOCKS(r->m, r->n, r->splits);
    return cuLaunchKernel(gpb_child_kernel(passes[type][REDUCE]), x, 1, (unsigned)r->batch,
                          GPB_REDUCE_THREADS, 1, 1, 0, NULL, (void *[]){ r }, NULL);
}

static int parts = 1;                    /* that k is cut into */

/* The launch and, if k is cut, the one that adds up its parts. */
static void launch_all(const row *r, gpb_gemm_args *g)
{
    if (parts > 1) {
        g->splits = parts;
        g->partials = (void *)gpb_child_device(bytes_of((size_t)(g->m * g->n * g->batch * parts)));
    }
    EXPECT(launch_gemm(r, g) == CUDA_SUCCESS);
    if (parts == 1)
        return;
    gpb_reduce_args sum = { .m = g->m, .n = g->n, .splits = parts, .partials = g->partials, .c = g->c,
                            .ldc = g->ldc, .batch = g->batch, .stride_c = g->stride_c, .items = g->items };
    memcpy(sum.alpha, g->alpha, sizeof sum.alpha);
    memcpy(sum.beta, g->beta, sizeof sum.beta);
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
        g.c = (void *)gpb_child_device(bytes_of((size_t)(g.ldc * up(N, r->bn))));
        g.beta[0] = g.beta[1] = 0;
    }
    launch_all(r, &g);
    memset(&g, 0xFF, sizeof g.m);                             /* the driver has its own copy */
    if (r->form == GPB_FORM_PADDED_C) {
        gpb_unpack_args u = { .m = M, .n = N, .w = g.c, .ldw = g.ldc, .c = (void *)dc, .ldc = LDC,
                              .beta = GPB_SCALAR_RE_IM(q->beta), .batch = 1,
                              .uplo = 'G' };
        EXPECT(launch_tiles(UNPACK, M, N, &u) == CUDA_SUCCESS);
    }
    download(dc);
}

static int right_answer(void)
{
    gpb_child_start();
    for (int op = 0; op < ops_count(); op++) {
        gpb_call q = call_of(ops[op], 1);
        compute(current, &q);
        EXPECT(error_of(current->math, &q) <= 1);
        /* The error of TF32 must show, so that a caller who asked for FP32 and got this kernel finds out. */
        EXPECT(current->math != GPB_MATH_TF32 || error_of(GPB_MATH_FMA, &q) > 1);
    }
    return GPB_CHILD_OK;
}

static void test_right_answers(void **state)
{
    (void)state;
    for (const row *r = rows; r < rows + ROWS; r++)
        /* test_fakecuda_sliced.c, test_fakecuda_residues.c */
        if (r->form != GPB_FORM_SLICED && r->form != GPB_FORM_RESIDUES)
            assert_int_equal(run(right_answer, r), GPB_CHILD_OK);
}

static int never_read(void)
{
    gpb_child_start();
    gpb_call q = call_of("NN", 1);
    q.beta = 0;
    memset(c_before, 0xFF, sizeof c_before);                  /* NaN */
    compute(current, &q);
    EXPECT(error_of(GPB_MATH_FMA, &q) <= 1);
    gpb_gemm_args g = { .m = 1, .n = 2, .k = 0,
                        .c = (void *)upload_numbers((gpb_scalar[]){ number(1, 1), number(2, 1) }, 2),
                        .ldc = 1, .alpha = { NAN }, .beta = { 3 }, .batch = 1 };
    EXPECT(launch_gemm(current, &g) == CUDA_SUCCESS);
    EXPECT(read_number((CUdeviceptr)g.c, 0) == number(3, 1));
    EXPECT(read_number((CUdeviceptr)g.c, 1) == number(6, 1));
    return GPB_CHILD_OK;
}

static int batches(void)
{
    gpb_child_start();
    const gpb_call q = call_of("TN", BATCH);
    compute(current, &q);
    EXPECT(error_of(GPB_MATH_FMA, &q) <= 1);
    gpb_gemm_item items[BATCH];
    gpb_gemm_args g = args_of(&q);
    for (size_t l = 0; l < BATCH; l++)
        items[l] = (gpb_gemm_item){ (const char *)g.a + l * bytes_of(IN_A / BATCH),
                                    (const char *)g.b + l * bytes_of(IN_A / BATCH),
                                    (char *)g.c + l * bytes_of(IN_C / BATCH) };
    const CUdeviceptr dc = (CUdeviceptr)g.c;
    g.a = g.b = g.c = NULL;
    g.stride_a = g.stride_b = g.stride_c = 0;
    g.items = (void *)gpb_child_upload(items, sizeof items);
    launch_all(current, &g);
    download(dc);
    EXPECT(error_of(GPB_MATH_FMA, &q) <= 1);
    return GPB_CHILD_OK;
}

/* Partial sums are destroyed once they have been added up. */
static int parts_once(void)
{
    gpb_child_start();
    const gpb_scalar of_a[] = { number(1, 2), number(2, 2), number(3, 2), number(4, 2) }, of_b[] = { 1, 1 };
    gpb_gemm_args g = { .m = 2, .n = 1, .k = 2, .a = (void *)upload_numbers(of_a, 4), .rsa = 1, .csa = 2,
                        .b = (void *)upload_numbers(of_b, 2), .rsb = 1, .csb = 2,
                        .c = (void *)gpb_child_device(bytes_of(2)), .ldc = 2, .alpha = { 1 }, .batch = 1,
                        .splits = 2, .partials = (void *)gpb_child_device(bytes_of(4)) };
    gpb_reduce_args sum = {
        .m = 2, .n = 1, .splits = 2, .partials = g.partials, .c = g.c, .ldc = 2, .alpha = { 2 }, .batch = 1
    };
    EXPECT(launch_gemm(current, &g) == CUDA_SUCCESS && launch_reduce(&sum) == CUDA_SUCCESS);
    EXPECT(read_number((CUdeviceptr)g.c, 0) == number(8, 2));
    EXPECT(read_number((CUdeviceptr)g.c, 1) == number(12, 2));
    EXPECT(launch_reduce(&sum) == CUDA_SUCCESS && isnan(__real__ read_number((CUdeviceptr)g.c, 0)));
    return GPB_CHILD_OK;
}

/* Parts are stored without alpha, and those beyond the end of k are zeros. */
static int parts_raw(void)
{
    gpb_child_start();
    gpb_gemm_args g = { .m = 1, .n = 1, .k = 1, .a = (void *)upload_numbers((gpb_scalar[]){ 5 }, 1), .rsa = 1,
                        .csa = 1, .b = (void *)upload_numbers((gpb_scalar[]){ number(1, 3) }, 1), .rsb = 1,
                        .csb = 1, .c = (void *)gpb_child_device(bytes_of(1)), .ldc = 1, .alpha = { INFINITY },
                        .batch = 1, .splits = 2, .partials = (void *)gpb_child_device(bytes_of(2)) };
    EXPECT(launch_gemm(current, &g) == CUDA_SUCCESS);
    EXPECT(read_number((CUdeviceptr)g.partials, 0) == number(5, 3)
           && read_number((CUdeviceptr)g.partials, 1) == 0);
    return GPB_CHILD_OK;
}

static void test_parts(void **state)
{
    (void)state;
    for (const row *r = rows; r < rows + ROWS; r++)
        /* Up to more parts than k has elements, so that some parts are empty. */
        for (parts = 2; parts < 40; parts *= 5)
            if (r->form == GPB_FORM_STRIDED || r->form == GPB_FORM_PADDED || r->form == GPB_FORM_MAPPED)
                assert_int_equal(run(right_answer, r), GPB_CHILD_OK);
    parts = 3;
    run_all_types(batches);
    parts = 1;
    run_all_types(parts_once);
    run_all_types(parts_raw);
}

/* The block's first row is row 1 of the whole matrix, its columns are 0 and 1. So U keeps only (1,1), and L
   the whole block. */
static int triangles(void)
{
    const gpb_scalar w[4] = { number(1, 1), number(2, 1), number(3, 1), number(4, 1) };
    const gpb_scalar beta = number(0.5, 0.5), old = number(10, -1);
    gpb_child_start();
    for (int lower = 0; lower < 2; lower++) {
        const gpb_scalar olds[4] = { old, old, old, old };
        gpb_unpack_args u = { .m = 2, .n = 2, .w = (void *)upload_numbers(w, 4), .ldw = 2,
                              .c = (void *)upload_numbers(olds, 4), .ldc = 2, .beta = GPB_SCALAR_RE_IM(beta),
                              .row0 = 1, .batch = 1, .uplo = lower ? 'L' : 'U' };
        EXPECT(launch_tiles(UNPACK, 2, 2, &u) == CUDA_SUCCESS);
        for (int i = 0; i < 4; i++)
            EXPECT(read_number((CUdeviceptr)u.c, i) == (lower || i == 2 ? w[i] + beta * old : old));
    }
    return GPB_CHILD_OK;
}

/* Every element where it belongs, the others zero, by rows and by columns. */
static int packs(void)
{
    gpb_scalar x[6];
    for (int i = 0; i < 6; i++) x[i] = number(i + 1, 2);
    gpb_child_start();
    for (int across = 0; across < 2; across++) {
        const int64_t size[4] = { 2, 3, 4, 5 }, rs = across ? 3 : 1, cs = across ? 1 : 2;
        int64_t ld;
        const CUdeviceptr at = pack(upload_numbers(x, 6), rs, cs, size, &ld);
        for (int64_t j = 0; j < 5; j++)
            for (int64_t i = 0; i < 4; i++)
                EXPECT(read_number(at, (int)(i + j * ld)) == (i < 2 && j < 3 ? x[i * rs + j * cs] : 0));
    }
    return GPB_CHILD_OK;
}

static void test_contract(void **state)
{
    (void)state;
    run_all_types(never_read);
    run_all_types(batches);
    run_all_types(triangles);
    run_all_types(packs);
}

/* A small call that is right for `current`, except for the one thing that `spoil` changes. */
static void (*spoil)(gpb_gemm_args *g, unsigned *grid, unsigned *threads);

static int spoilt(void)
{
    const row *r = current;
    gpb_child_start();
    const bool pads = r->form != GPB_FORM_STRIDED, maps = r->form == GPB_FORM_MAPPED;
    int64_t mp = pads ? r->bm : 4, np = pads ? r->bn : 4, kp = pads ? r->bk : 4;
    /* Room for rules of padded kernels to be broken inside the memory, because bounds have a test of their
       own. */
    size_t room = pads ? 1 << 17 : 0, bytes_a = bytes_of((size_t)(mp * kp)) + room,
           bytes_b = bytes_of((size_t)(kp * np)) + room;
    CUdeviceptr da = gpb_child_device(bytes_a), db = gpb_child_device(bytes_b);
    CUdeviceptr dc = gpb_child_device(bytes_of((size_t)(mp * np)) + room);
    EXPECT(cuMemsetD8(da, 0, bytes_a) == CUDA_SUCCESS && cuMemsetD8(db, 0, bytes_b) == CUDA_SUCCESS);
    gpb_gemm_args g = { .m = 4, .n = 4, .k = maps ? 3 : 4, .a = (void *)da, .rsa = 1, .csa = mp,
                        .b = (void *)db, .rsb = 1, .csb = kp, .c = (void *)dc, .ldc = mp,
                        .alpha = { 1 }, .batch = 1 };
    unsigned grid = 1, threads = (unsigned)r->threads;
    gpb_mapped_args mapped = { 0 };
    if (maps) mapped = mapped_of(&g, r->bm, r->bn, r->caps);
    if (maps) grid = (unsigned)GPB_MAPPED_BLOCKS(0, 4, 4, r->bm, r->bn, r->caps);
    if (spoil)
        spoil(maps ? &mapped.gemm : &g, &grid, &threads);
    EXPECT(cuLaunchKernel(kernel_of(r), grid, 1, 1, threads, 1, 1, (unsigned)r->smem, NULL,
                          (void *[]){ maps ? (void *)&mapped : &g }, NULL)
           == CUDA_SUCCESS);
    EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
    return GPB_CHILD_OK;
}

static void no_grid(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)g, (void)threads;
    ++*grid;
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
/* By half of an element, which suits complex types alone. */
static void a_too_far(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    g->a = (const char *)g->a + bytes_of(1) / 2;
}
static void a_misaligned(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    g->k = 1;
    g->a = (const char *)g->a + gpb_type_real_bytes(type) / 2;
}
static void c_too_long(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    g->ldc += 4;
}
static void c_too_far(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    g->ldc += 1 << 20;
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
    g->b = (const char *)g->b + bytes_of(16);
}
static void a_not_zero(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    EXPECT(cuMemsetD8((CUdeviceptr)g->a + bytes_of(4), 1, bytes_of(1)) == CUDA_SUCCESS);
}
static void b_not_zero(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    EXPECT(cuMemsetD8((CUdeviceptr)g->b + bytes_of(4 * (size_t)g->csb), 1, bytes_of(1)) == CUDA_SUCCESS);
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

static void complex_alpha(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    g->alpha[1] = 1;
}
static void complex_beta(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    g->beta[1] = 1;
}

typedef void spoiler(gpb_gemm_args *, unsigned *, unsigned *);

static void expect_caught(const row *r, spoiler *const *list)
{
    spoil = NULL;
    assert_int_equal(run(spoilt, r), GPB_CHILD_OK);
    for (; *list; list++) {
        spoil = *list;
        assert_int_equal(run(spoilt, r), 86);
    }
}

static void expect_strided_caught(const row *r)
{
    expect_caught(r, (spoiler *const[]){ no_grid, no_block, a_too_long, a_too_far, a_misaligned, c_too_long,
                                         a_of_host, NULL });
    if (gpb_type_of(r->type)->kind == GPB_TYPE_REAL)
        expect_caught(r, (spoiler *const[]){ complex_alpha, complex_beta, NULL });
}

static void test_broken_rules(void **state)
{
    (void)state;
    const row *padded = row_of(GPB_TYPE_s, GPB_FORM_PADDED),
              *padded_c = row_of(GPB_TYPE_s, GPB_FORM_PADDED_C);
    for_all_types(expect_strided_caught);
    expect_caught(padded, (spoiler *const[]){ no_grid, a_strided, a_too_long, b_shifted, a_not_zero,
                                              b_not_zero, NULL });
    expect_caught(padded_c, (spoiler *const[]){ a_not_zero, c_odd, some_beta, NULL });
}

static void deeper(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    g->k++;
}
static void wider(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    g->n++;
}

/* Of a second product there are no maps, and op(A) and op(B) lie differently. */
static void twofold(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    (void)grid, (void)threads;
    ((gpb_mapped_args *)(void *)((char *)g - offsetof(gpb_mapped_args, gemm)))->products = 2;
}
static void twofold_alike(gpb_gemm_args *g, unsigned *grid, unsigned *threads)
{
    twofold(g, grid, threads);
    g->rsb = g->csb;
    g->csb = 1;
}

/* Maps that describe anything but the operands. */
static void test_maps(void **state)
{
    (void)state;
    for (const row *r = rows; r < rows + ROWS; r++) {
        if (r->form != GPB_FORM_MAPPED) continue;
        expect_caught(r, (spoiler *const[]){ no_grid, no_block, a_too_long, a_strided, b_shifted, deeper,
                                             wider, a_of_host, c_too_far, twofold, twofold_alike, NULL });
        if (gpb_type_of(r->type)->kind == GPB_TYPE_REAL)
            expect_caught(r, (spoiler *const[]){ complex_alpha, complex_beta, NULL });
    }
}

/* What the driver refuses to encode. */
static int bad_maps(void)
{
    static const cuuint64_t good_extent[] = { 10, 20, 1, 1 }, good_stride[] = { 80, 128, 1600 };
    static const cuuint32_t good_box[] = { 16, 16, 1, 1 }, once[] = { 1, 1, 1, 1 };
    static const struct { int at; cuuint64_t extent[4], stride[3]; cuuint32_t box[4]; bool right; } maps[] = {
        { 0, { 10, 20, 1, 1 }, { 80, 128, 1600 }, { 16, 16, 1, 1 }, true },
        { 0, { 16, 20, 3, 1 }, { 400, 128, 400 }, { 16, 16, 8, 1 }, true },
        { 8, { 10, 20, 1, 1 }, { 80, 128, 1600 }, { 16, 16, 1, 1 }, false },
        { 0, { 10, 0, 1, 1 }, { 80, 128, 1600 }, { 16, 16, 1, 1 }, false },
        { 0, { 10, 20, 1, 0 }, { 80, 128, 1600 }, { 16, 16, 1, 1 }, false },
        { 0, { 10, 20, 1, 1 }, { 88, 128, 1600 }, { 16, 16, 1, 1 }, false },
        { 0, { 10, 20, 1, 1 }, { 80, 128, (cuuint64_t)1 << 40 }, { 16, 16, 1, 1 }, false },
        { 0, { 10, 20, 1, 1 }, { 80, 128, 1600 }, { 32, 16, 1, 1 }, false },
        { 0, { 10, 20, 1, 1 }, { 80, 128, 1600 }, { 15, 16, 1, 1 }, false },
        { 0, { 10, 20, 1, 1 }, { 80, 128, 1600 }, { 16, 257, 1, 1 }, false },
    };
    CUtensorMap map;
    gpb_child_start();
    const CUdeviceptr at = gpb_child_device(4096);
    for (int i = 0; i < (int)(sizeof maps / sizeof *maps); i++)
        EXPECT(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 4,
                                      (void *)(at + (CUdeviceptr)maps[i].at), maps[i].extent, maps[i].stride,
                                      maps[i].box, once, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
               == (maps[i].right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
    EXPECT(cuTensorMapEncodeTiled((CUtensorMap *)(void *)((char *)&map + 8), CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
                                  4, (void *)at, good_extent, good_stride, good_box, once,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
           == CUDA_ERROR_INVALID_VALUE);
    return GPB_CHILD_OK;
}

static void test_bad_maps(void **state)
{
    (void)state;
    assert_int_equal(gpb_child_run(bad_maps, NULL), GPB_CHILD_OK);
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
    current = rows;
    type = current->type;
    assert_int_equal(gpb_child_run(right_answer, (const char *[]){ "FAKECUDA_SUMMARY", path, NULL }),
                     GPB_CHILD_OK);
    assert_true(read(file, text, sizeof text - 1) > 0);
    assert_string_equal(text, "kernel gpb_sgemm_naive launched=5 ran=5 shared=0\n");
    close(file);
    unlink(path);
}

/* ---- bits */

/* The parts of C one after another, as the kernel is said to round them. */
#define TYPE(p, type, bytes, flops, kind)                                                                 \
    static type at_##p(const gpb_call *q, enum gpb_operand x, int64_t row, int64_t col)                   \
    {                                                                                                     \
        const gpb_matrix *of = &q->x[x];                                                                  \
        const type y = ((const type *)of->base)[of->trans == 'N' ? row + col * LDA : col + row * LDA];    \
        return (type)__builtin_complex(__real__ y, gpb_matrix_conjugated(of) ? -__imag__ y : __imag__ y); \
    }                                                                                                     \
    static type chain_##p(const gpb_call *q, int64_t i, int64_t j)                                        \
    {                                                                                                     \
        __typeof__(__real__(type)0) re = 0, im = 0;                                                       \
        for (int64_t l = 0; l < K; l++) {                                                                 \
            const type x = at_##p(q, GPB_A, i, l), y = at_##p(q, GPB_B, l, j);                            \
            re = FMA(__real__ x, __real__ y, re);                                                         \
            im = FMA(__imag__ x, __real__ y, im);                                                         \
            re = FMA(-__imag__ x, __imag__ y, re);                                                        \
            im = FMA(__real__ x, __imag__ y, im);                                                         \
        }                                                                                                 \
        return (type)__builtin_complex(re, im);                                                           \
    }                                                                                                     \
    static type netlib_##p(const gpb_call *q, int64_t i, int64_t j)                                       \
    {                                                                                                     \
        const type alpha = (type)q->alpha, beta = (type)q->beta;                                          \
        type sum = 0, old = ((const type *)c_before)[i + j * LDC], with = beta * old;                     \
        for (int64_t l = 0; l < K; l++) {                                                                 \
            const type x = at_##p(q, GPB_A, i, l), y = at_##p(q, GPB_B, l, j), scaled = alpha * y;        \
            sum += x * y;                                                                                 \
            with += scaled * x;                                                                           \
        }                                                                                                 \
        return q->x[GPB_A].trans == 'N' ? with : alpha * sum + beta * old;                                \
    }                                                                                                     \
    static type rounded_##p(const gpb_call *q, int64_t i, int64_t j, bool netlib)                         \
    {                                                                                                     \
        const type sum = netlib ? 0 : (type)q->alpha * chain_##p(q, i, j);                                \
        return netlib ? netlib_##p(q, i, j) : sum + (type)q->beta * ((const type *)c_before)[i + j * LDC]; \
    }                                                                                                     \
    static bool same_##p(const gpb_call *q, bool netlib)                                                  \
    {                                                                                                     \
        for (int64_t j = 0; j < N; j++)                                                                   \
            for (int64_t i = 0; i < M; i++)                                                               \
                if (((const type *)c)[i + j * LDC] != rounded_##p(q, i, j, netlib)) return false;         \
        return true;                                                                                      \
    }
#define FMA(x, y, z) _Generic(z, float: fmaf, double: fma)(x, y, z)
#include "dispatch/type.def"
#undef TYPE

static bool same_bits(const gpb_call *q, bool netlib)
{
    static bool (*const same[GPB_TYPES])(const gpb_call *, bool) = {
#define TYPE(p, type, bytes, flops, kind) same_##p,
#include "dispatch/type.def"
#undef TYPE
    };
    return same[type](q, netlib);
}

static int bits(void)
{
    const bool netlib = getenv("FAKECUDA_NETLIB");
    gpb_child_start();
    for (int op = 0; op < ops_count(); op++) {
        gpb_call q = call_of(ops[op], 1);
        compute(current, &q);
        if (!same_bits(&q, netlib)) return GPB_CHILD_WRONG;
        EXPECT(!same_bits(&q, !netlib));
    }
    return GPB_CHILD_OK;
}

/* FMAs in single precision only if asked for. */
static void expect_bits(const row *r)
{
    static const char *const options[] = { "FAKECUDA_NETLIB", "FAKECUDA_TENSOR" };
    current = r;
    type = r->type;
    for (int i = 0; i < 2; i++)
        assert_int_equal(gpb_child_run(bits, (const char *[]){ options[i], "1", NULL }), GPB_CHILD_OK);
    const bool single = gpb_type_real_bytes(type) == sizeof(float);
    assert_int_equal(gpb_child_run(bits, NULL), single ? GPB_CHILD_WRONG : GPB_CHILD_OK);
}

static void test_bits(void **state)
{
    (void)state;
    for_all_types(expect_bits);
}

/* The sample finds the same in a C without NaN, if C is large enough. */
static double sampled(const gpb_call *q)
{
    uint64_t seed = 1;
    return gpb_reference_sample(GPB_MATH_FMA, q, c_before, bytes_of(IN_C), 100 * M * N, &seed);
}

/* The reference finds errors: a value off by more than the bound, a changed byte of padding, a lost NaN. */
static void test_reference(void **state)
{
    (void)state;
    type = GPB_TYPE_s;
    gpb_call q = call_of("NT", 1);
    float *of_c = (float *)c;
    memcpy(c, c_before, sizeof c);
    for (int64_t j = 0; j < N; j++)
        for (int64_t i = 0; i < M; i++)
            of_c[i + j * LDC] = (float)gpb_reference_at(&q, c_before, i, j, 0).value;
    assert_true(error_of(GPB_MATH_FMA, &q) <= 1);
    assert_true(sampled(&q) <= 1);
    float right = of_c[5];
    gpb_reference_element e = gpb_reference_at(&q, c_before, 5, 0, 0);
    of_c[5] = (float)(e.value + 1.1 * gpb_reference_bound(GPB_MATH_FMA, &q, e));
    assert_true(error_of(GPB_MATH_FMA, &q) > 1);
    assert_true(sampled(&q) > 1);
    of_c[5] = NAN;
    assert_true(isinf(error_of(GPB_MATH_FMA, &q)));
    assert_true(isinf(sampled(&q)));
    of_c[5] = right;
    of_c[M] += 1;                                             /* between the columns */
    assert_true(isinf(error_of(GPB_MATH_FMA, &q)));
    assert_true(isinf(sampled(&q)));
    of_c[M] = ((float *)c_before)[M];
    ((float *)a)[5] = NAN;                                     /* row 5 has to be NaN now, and is not */
    assert_true(isinf(error_of(GPB_MATH_FMA, &q)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_answers), cmocka_unit_test(test_parts), cmocka_unit_test(test_contract),
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_bad_maps),
        cmocka_unit_test(test_broken_rules), cmocka_unit_test(test_modules), cmocka_unit_test(test_summary),
        cmocka_unit_test(test_reference), cmocka_unit_test(test_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
