/* SPDX-License-Identifier: MIT */
/* SGEMM for tests that launch kernels themselves: arrays, a call on them, and a kernel's arguments for that
   call. Include it where M, N, K, LDA, LDC and BATCH are defined. */
#ifndef GPB_CHILD_GEMM_H
#define GPB_CHILD_GEMM_H

#include "kernels/gemm_args.h"
#include "tests/fakecuda/child.h"
#include "tests/reference.h"

static float a[LDA * LDA * BATCH], b[LDA * LDA * BATCH], c_before[LDC * N * BATCH], c[LDC * N * BATCH];

static gpb_call call_of(char transa, char transb, int64_t batch)
{
    gpb_reference_fill(a, LDA * LDA * BATCH, 1);
    gpb_reference_fill(b, LDA * LDA * BATCH, 2);
    gpb_reference_fill(c_before, LDC * N * BATCH, 3);
    return (gpb_call){ .type = GPB_TYPE_s, .m = M, .n = N, .k = K, .batch = batch,
                       .alpha = 0.75, .beta = -1.5,
                       .x = { { .base = a, .ld = LDA, .stride = LDA * LDA, .trans = transa },
                              { .base = b, .ld = LDA, .stride = LDA * LDA, .trans = transb },
                              { .base = c, .ld = LDC, .stride = LDC * N, .uplo = 'G' } } };
}

/* With the operands on the device. C has what c_before has. */
static gpb_gemm_args args_of(const gpb_call *q)
{
    const bool ta = q->x[GPB_A].trans != 'N', tb = q->x[GPB_B].trans != 'N';
    return (gpb_gemm_args){
        .m = M, .n = N, .k = K, .batch = q->batch,
        .a = (void *)gpb_child_upload(a, sizeof a), .rsa = ta ? LDA : 1, .csa = ta ? 1 : LDA,
        .b = (void *)gpb_child_upload(b, sizeof b), .rsb = tb ? LDA : 1, .csb = tb ? 1 : LDA,
        .c = (void *)gpb_child_upload(c_before, sizeof c_before), .ldc = LDC,
        .stride_a = q->x[GPB_A].stride, .stride_b = q->x[GPB_B].stride, .stride_c = q->x[GPB_C].stride,
        .alpha = GPB_SCALAR_RE_IM(q->alpha), .beta = GPB_SCALAR_RE_IM(q->beta)
    };
}

#endif
