/* SPDX-License-Identifier: MIT */
/* GEMM for tests that launch kernels themselves: arrays, a call on them, and a kernel's arguments for that
   call. Include it where M, N, K, LDA, LDC and BATCH are defined. */
#ifndef GPB_CHILD_GEMM_H
#define GPB_CHILD_GEMM_H

#include "kernels/gemm_args.h"
#include "tests/fakecuda/child.h"
#include "tests/fill.h"
#include "tests/reference.h"

/* Elements of a or b, and of c. */
enum { IN_A = LDA * LDA * BATCH, IN_C = LDC * N * BATCH };

static enum gpb_type type;               /* of all elements */
static gpb_element a[IN_A], b[IN_A], c_before[IN_C], c[IN_C];      /* with room for the largest type */

static size_t bytes_of(size_t elements) { return elements * gpb_type_bytes(type); }

/* x, and for a complex type x + factor x i. */
static gpb_scalar number(double x, double factor)
{
    return __builtin_complex(x, gpb_type_of(type)->kind == GPB_TYPE_COMPLEX ? factor * x : 0);
}

/* op(A) and op(B) side by side: 'R' is conjugated, not transposed. Real types take 'C' for 'T'. */
static const char *const ops[] = { "NN", "NT", "TN", "TT", "CC", "CN", "NC", "RT", "TR" };
static int ops_count(void) { return gpb_type_of(type)->kind == GPB_TYPE_COMPLEX ? 9 : 5; }

static gpb_matrix operand_of(const void *base, char op)
{
    return (gpb_matrix){ .base = base, .ld = LDA, .stride = LDA * LDA, .trans = op == 'R' ? 'N' : op,
                         .conj = op == 'R' };
}

static gpb_call call_of(const char op[2], int64_t batch)
{
    gpb_fill(GPB_FILL_uniform, type, a, IN_A, &(uint64_t){ 1 });
    gpb_fill(GPB_FILL_uniform, type, b, IN_A, &(uint64_t){ 2 });
    gpb_fill(GPB_FILL_uniform, type, c_before, IN_C, &(uint64_t){ 3 });
    return (gpb_call){ .type = type, .m = M, .n = N, .k = K, .batch = batch,
                       .alpha = number(0.75, 0.5), .beta = number(-1.5, -0.25),
                       .x = { operand_of(a, op[0]), operand_of(b, op[1]),
                              { .base = c, .ld = LDC, .stride = LDC * N, .uplo = 'G' } } };
}

/* With the operands on the device. C has what c_before has. */
static gpb_gemm_args args_of(const gpb_call *q)
{
    const bool ta = q->x[GPB_A].trans != 'N', tb = q->x[GPB_B].trans != 'N';
    return (gpb_gemm_args){
        .m = M, .n = N, .k = K, .batch = q->batch,
        .a = (void *)gpb_child_upload(a, bytes_of(IN_A)), .rsa = ta ? LDA : 1, .csa = ta ? 1 : LDA,
        .b = (void *)gpb_child_upload(b, bytes_of(IN_A)), .rsb = tb ? LDA : 1, .csb = tb ? 1 : LDA,
        .c = (void *)gpb_child_upload(c_before, bytes_of(IN_C)), .ldc = LDC,
        .stride_a = q->x[GPB_A].stride, .stride_b = q->x[GPB_B].stride, .stride_c = q->x[GPB_C].stride,
        .conj_a = gpb_matrix_conjugated(&q->x[GPB_A]), .conj_b = gpb_matrix_conjugated(&q->x[GPB_B]),
        .alpha = GPB_SCALAR_RE_IM(q->alpha), .beta = GPB_SCALAR_RE_IM(q->beta)
    };
}

/* The maps of a MAPPED kernel whose operands are not transposed. */
static gpb_mapped_args mapped_of(const gpb_gemm_args *g, int high, int wide, int caps)
{
    gpb_mapped_args m = { .gemm = *g, .products = 1 };
    const cuuint64_t element = bytes_of(1), reals = element / 8;
    const cuuint32_t line = (cuuint32_t)(128 / element), once[] = { 1, 1, 1, 1 };
    const cuuint32_t bm = (cuuint32_t)high / (caps & GPB_CAP_PAIRS ? 2 : 1);
    const bool lines = g->m % line == 0;
    const bool many_a = g->batch > 1 && g->stride_a, many_b = g->batch > 1 && g->stride_b;
    const cuuint64_t members = (cuuint64_t)g->batch,
                     apart_a = many_a ? (cuuint64_t)g->stride_a * element : 16,
                     apart_b = many_b ? (cuuint64_t)g->stride_b * element : 16;
    const struct side {
        gpb_tensor_map *to;
        const void *at;
        cuuint64_t extent[4], stride[3];
        cuuint32_t box[4];
    } sides[] = { { &m.map[0], g->a,
                    { (lines ? line : (cuuint64_t)g->m) * reals, (cuuint64_t)g->k,
                      lines ? (cuuint64_t)g->m / line : 1, many_a ? members : 1 },
                    { (cuuint64_t)g->csa * element, 128, apart_a },
                    { 16, line, lines ? bm / line : 1, 1 } },
                  { &m.map[1], g->b,
                    { (cuuint64_t)g->k * reals, (cuuint64_t)g->n, 1, many_b ? members : 1 },
                    { (cuuint64_t)g->csb * element, 128, apart_b },
                    { 16, (cuuint32_t)wide, 1, 1 } } };
    m.in_lines = g->k && lines;
    for (int x = 0; x < 2 && g->k; x++)
        EXPECT(cuTensorMapEncodeTiled((CUtensorMap *)(void *)sides[x].to, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 4,
                                      (void *)(uintptr_t)sides[x].at, sides[x].extent, sides[x].stride,
                                      sides[x].box, once, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    return m;
}

/* C as it is on the device. */
static void download(CUdeviceptr from) { EXPECT(cuMemcpyDtoH(c, from, bytes_of(IN_C)) == CUDA_SUCCESS); }

/* The worst error of c in units of the bound. */
static double error_of(enum gpb_math math, const gpb_call *q)
{
    return gpb_reference_check(math, q, c_before, bytes_of(IN_C));
}

#endif
