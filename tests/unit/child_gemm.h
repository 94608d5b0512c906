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

/* C as it is on the device. */
static void download(CUdeviceptr from) { EXPECT(cuMemcpyDtoH(c, from, bytes_of(IN_C)) == CUDA_SUCCESS); }

/* The worst error of c in units of the bound. */
static double error_of(enum gpb_math math, const gpb_call *q)
{
    return gpb_reference_check(math, q, c_before, bytes_of(IN_C));
}

#endif
