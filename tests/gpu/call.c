/* SPDX-License-Identifier: MIT */
/* See call.h. */
#include "tests/gpu/call.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* What is the same in all types. */
typedef struct call {
    const gpb_problem *of;
    int order, ta, tb;
    gpb_element alpha, beta;
    void *const *at;
    const int64_t *stride;
} call;

gpb_scalar call_rounded(enum gpb_type type, gpb_scalar x)
{
    const gpb_element e = gpb_element_of(type, x);
    switch (type) {
#define TYPE(letter, type, bytes, flops, kind) case GPB_TYPE_##letter: return e.letter;
#include "dispatch/type.def"
#undef TYPE
    default: abort();
    }
}

static int cblas_trans(char trans)
{
    return toupper(trans) == 'N' ? NO_TRANS : toupper(trans) == 'T' ? TRANS : CONJ_TRANS;
}

static void gemm(const call *x)
{
    const gpb_problem *of = x->of;
    const int *ld = of->ld;
    switch (of->type) {
#define TYPE(letter, type, bytes, flops, kind)                                                        \
    case GPB_TYPE_##letter:                                                                           \
        cblas_##letter##gemm(x->order, x->ta, x->tb, of->m, of->n, of->k,                             \
                             CBLAS_PASS_##kind(x->alpha.letter), x->at[GPB_A], ld[GPB_A], x->at[GPB_B], \
                             ld[GPB_B], CBLAS_PASS_##kind(x->beta.letter), x->at[GPB_C], ld[GPB_C]);   \
        break;
#include "dispatch/type.def"
#undef TYPE
    default: abort();
    }
}

static void gemmtr(const call *x)
{
    const gpb_problem *of = x->of;
    const int *ld = of->ld, uplo = of->uplo == 'U' ? UPPER : LOWER;
    switch (of->type) {
#define TYPE(letter, type, bytes, flops, kind)                                                          \
    case GPB_TYPE_##letter:                                                                             \
        cblas_##letter##gemmtr(x->order, uplo, x->ta, x->tb, of->n, of->k,                              \
                               CBLAS_PASS_##kind(x->alpha.letter), x->at[GPB_A], ld[GPB_A], x->at[GPB_B], \
                               ld[GPB_B], CBLAS_PASS_##kind(x->beta.letter), x->at[GPB_C], ld[GPB_C]);   \
        break;
#include "dispatch/type.def"
#undef TYPE
    default: abort();
    }
}

static void syrk(const call *x)
{
    const gpb_problem *of = x->of;
    const int *ld = of->ld, uplo = of->uplo == 'U' ? UPPER : LOWER;
    switch (of->type) {
#define TYPE(letter, type, bytes, flops, kind)                                                          \
    case GPB_TYPE_##letter:                                                                             \
        cblas_##letter##syrk(x->order, uplo, x->ta, of->n, of->k, CBLAS_PASS_##kind(x->alpha.letter),   \
                             x->at[GPB_A], ld[GPB_A], CBLAS_PASS_##kind(x->beta.letter), x->at[GPB_C],  \
                             ld[GPB_C]);                                                                \
        break;
#include "dispatch/type.def"
#undef TYPE
    default: abort();
    }
}

static void herk(const call *x)
{
    const gpb_problem *of = x->of;
    const int *ld = of->ld, uplo = of->uplo == 'U' ? UPPER : LOWER;
    if (of->type == GPB_TYPE_c)
        cblas_cherk(x->order, uplo, x->ta, of->n, of->k, __real__ x->alpha.c, x->at[GPB_A], ld[GPB_A],
                    __real__ x->beta.c, x->at[GPB_C], ld[GPB_C]);
    else if (of->type == GPB_TYPE_z)
        cblas_zherk(x->order, uplo, x->ta, of->n, of->k, __real__ x->alpha.z, x->at[GPB_A], ld[GPB_A],
                    __real__ x->beta.z, x->at[GPB_C], ld[GPB_C]);
    else
        syrk(x);
}

static void syr2k(const call *x)
{
    const gpb_problem *of = x->of;
    const int *ld = of->ld, uplo = of->uplo == 'U' ? UPPER : LOWER;
    switch (of->type) {
#define TYPE(letter, type, bytes, flops, kind)                                                          \
    case GPB_TYPE_##letter:                                                                             \
        cblas_##letter##syr2k(x->order, uplo, x->ta, of->n, of->k, CBLAS_PASS_##kind(x->alpha.letter),  \
                              x->at[GPB_A], ld[GPB_A], x->at[GPB_B], ld[GPB_B],                         \
                              CBLAS_PASS_##kind(x->beta.letter), x->at[GPB_C], ld[GPB_C]);              \
        break;
#include "dispatch/type.def"
#undef TYPE
    default: abort();
    }
}

static void her2k(const call *x)
{
    const gpb_problem *of = x->of;
    const int *ld = of->ld, uplo = of->uplo == 'U' ? UPPER : LOWER;
    if (of->type == GPB_TYPE_c)
        cblas_cher2k(x->order, uplo, x->ta, of->n, of->k, &x->alpha.c, x->at[GPB_A], ld[GPB_A], x->at[GPB_B],
                     ld[GPB_B], __real__ x->beta.c, x->at[GPB_C], ld[GPB_C]);
    else if (of->type == GPB_TYPE_z)
        cblas_zher2k(x->order, uplo, x->ta, of->n, of->k, &x->alpha.z, x->at[GPB_A], ld[GPB_A], x->at[GPB_B],
                     ld[GPB_B], __real__ x->beta.z, x->at[GPB_C], ld[GPB_C]);
    else
        syr2k(x);
}

/* CBLAS has the symmetric operand before the other on either side. */
static void symm(const call *x)
{
    const gpb_problem *of = x->of;
    const bool right = of->side == 'R';
    const enum gpb_operand a = right ? GPB_B : GPB_A, b = right ? GPB_A : GPB_B;
    const int *ld = of->ld, uplo = of->uplo == 'U' ? UPPER : LOWER, side = right ? RIGHT : LEFT;
    const bool hermitian = of->routine == GPB_TEST_hemm;
    if (hermitian && of->type == GPB_TYPE_c)
        cblas_chemm(x->order, side, uplo, of->m, of->n, &x->alpha.c, x->at[a], ld[a], x->at[b], ld[b],
                    &x->beta.c, x->at[GPB_C], ld[GPB_C]);
    else if (hermitian && of->type == GPB_TYPE_z)
        cblas_zhemm(x->order, side, uplo, of->m, of->n, &x->alpha.z, x->at[a], ld[a], x->at[b], ld[b],
                    &x->beta.z, x->at[GPB_C], ld[GPB_C]);
    else switch (of->type) {
#define TYPE(letter, type, bytes, flops, kind)                                                          \
    case GPB_TYPE_##letter:                                                                             \
        cblas_##letter##symm(x->order, side, uplo, of->m, of->n, CBLAS_PASS_##kind(x->alpha.letter),     \
                             x->at[a], ld[a], x->at[b], ld[b], CBLAS_PASS_##kind(x->beta.letter),       \
                             x->at[GPB_C], ld[GPB_C]);                                                  \
        break;
#include "dispatch/type.def"
#undef TYPE
    default: abort();
    }
}

static void gemm_batch_strided(const call *x)
{
    const gpb_problem *of = x->of;
    const int *ld = of->ld;
    const int sa = (int)x->stride[GPB_A], sb = (int)x->stride[GPB_B], sc = (int)x->stride[GPB_C];
    switch (of->type) {
#define TYPE(letter, type, bytes, flops, kind)                                                          \
    case GPB_TYPE_##letter:                                                                             \
        cblas_##letter##gemm_batch_strided(                                                             \
            x->order, x->ta, x->tb, of->m, of->n, of->k, CBLAS_PASS_##kind(x->alpha.letter),             \
            x->at[GPB_A], ld[GPB_A], sa, x->at[GPB_B], ld[GPB_B], sb, CBLAS_PASS_##kind(x->beta.letter), \
            x->at[GPB_C], ld[GPB_C], sc, of->batch);                                                    \
        break;
#include "dispatch/type.def"
#undef TYPE
    default: abort();
    }
}

/* The addresses of an operand's members. */
static void **addresses(const call *x, enum gpb_operand o)
{
    void **all = malloc((size_t)x->of->batch * sizeof *all);
    if (!all) abort();
    for (int l = 0; l < x->of->batch; l++)
        all[l] = (char *)x->at[o] + l * x->stride[o] * (int64_t)gpb_type_bytes(x->of->type);
    return all;
}

static void gemm_batch(const call *x)
{
    const gpb_problem *of = x->of;
    void **a = addresses(x, GPB_A), **b = addresses(x, GPB_B), **c = addresses(x, GPB_C);
    switch (of->type) {
#define TYPE(letter, type, bytes, flops, kind)                                                             \
    case GPB_TYPE_##letter:                                                                                \
        cblas_##letter##gemm_batch(x->order, &x->ta, &x->tb, &of->m, &of->n, &of->k, &x->alpha.letter,     \
                                   (const CBLAS_ELEMENT_##kind(type) *const *)a, &of->ld[GPB_A],            \
                                   (const CBLAS_ELEMENT_##kind(type) *const *)b, &of->ld[GPB_B],            \
                                   &x->beta.letter, (CBLAS_ELEMENT_##kind(type) *const *)c, &of->ld[GPB_C], \
                                   1, &of->batch);                                                         \
        break;
#include "dispatch/type.def"
#undef TYPE
    default: abort();
    }
    free(a);
    free(b);
    free(c);
}

static void syrk_batch_strided(const call *x)
{
    const gpb_problem *of = x->of;
    const int *ld = of->ld, uplo = of->uplo == 'U' ? UPPER : LOWER;
    const int sa = (int)x->stride[GPB_A], sc = (int)x->stride[GPB_C];
    switch (of->type) {
#define TYPE(letter, type, bytes, flops, kind)                                                          \
    case GPB_TYPE_##letter:                                                                             \
        cblas_##letter##syrk_batch_strided(x->order, uplo, x->ta, of->n, of->k,                         \
                                           CBLAS_PASS_##kind(x->alpha.letter), x->at[GPB_A], ld[GPB_A], \
                                           sa, CBLAS_PASS_##kind(x->beta.letter), x->at[GPB_C],         \
                                           ld[GPB_C], sc, of->batch);                                   \
        break;
#include "dispatch/type.def"
#undef TYPE
    default: abort();
    }
}

static void syrk_batch(const call *x)
{
    const gpb_problem *of = x->of;
    const int uplo = of->uplo == 'U' ? UPPER : LOWER;
    void **a = addresses(x, GPB_A), **c = addresses(x, GPB_C);
    switch (of->type) {
#define TYPE(letter, type, bytes, flops, kind)                                                             \
    case GPB_TYPE_##letter:                                                                                \
        cblas_##letter##syrk_batch(x->order, &uplo, &x->ta, &of->n, &of->k, &x->alpha.letter,              \
                                   (const CBLAS_ELEMENT_##kind(type) *const *)a, &of->ld[GPB_A],            \
                                   &x->beta.letter, (CBLAS_ELEMENT_##kind(type) *const *)c, &of->ld[GPB_C], \
                                   1, &of->batch);                                                         \
        break;
#include "dispatch/type.def"
#undef TYPE
    default: abort();
    }
    free(a);
    free(c);
}

void call_through_cblas(const gpb_problem *of, gpb_scalar alpha, gpb_scalar beta,
                        void *const at[GPB_OPERANDS], const int64_t stride[GPB_OPERANDS])
{
    static void (*const routines[GPB_TEST_ROUTINES])(const call *) = {
        [GPB_TEST_gemm] = gemm,
        [GPB_TEST_gemmtr] = gemmtr,
        [GPB_TEST_syrk] = syrk,
        [GPB_TEST_herk] = herk,
        [GPB_TEST_syr2k] = syr2k,
        [GPB_TEST_her2k] = her2k,
        [GPB_TEST_symm] = symm,
        [GPB_TEST_hemm] = symm,
        [GPB_TEST_gemm_batch_strided] = gemm_batch_strided,
        [GPB_TEST_gemm_batch] = gemm_batch,
        [GPB_TEST_syrk_batch_strided] = syrk_batch_strided,
        [GPB_TEST_syrk_batch] = syrk_batch,
    };
    const call x = { of, of->row_major ? ROW_MAJOR : COLUMN_MAJOR, cblas_trans(gpb_problem_op(of)),
                     cblas_trans(of->transb), gpb_element_of(of->type, alpha), gpb_element_of(of->type, beta),
                     at, stride };
    routines[of->routine](&x);
}
