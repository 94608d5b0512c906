/* SPDX-License-Identifier: MIT */
/* See level3.h. The integers are 64 bits wide in memory in any case: if a process has two libraries, the name
   may lead to the other one, and a 32-bit library then reads the lower halves, which hold a 32-bit caller's
   sizes. */
#include "src/host/level3.h"

#include "src/host/level3_abi.h"
#include "src/host/next.h"

/* By type and width of integers. */
typedef struct names { enum gpb_symbol narrow, wide; } names;
static const names gemms[GPB_TYPES] = {
#define TYPE(letter, type, bytes, flops, kind) { GPB_SYMBOL_##letter##gemm_, GPB_SYMBOL_##letter##gemm_64_ },
#include "dispatch/type.def"
#undef TYPE
};
static const names trsms[GPB_TYPES] = {
#define TYPE(letter, type, bytes, flops, kind) { GPB_SYMBOL_##letter##trsm_, GPB_SYMBOL_##letter##trsm_64_ },
#include "dispatch/type.def"
#undef TYPE
};

static const names syrks[GPB_TYPES] = {
#define TYPE(letter, type, bytes, flops, kind) { GPB_SYMBOL_##letter##syrk_, GPB_SYMBOL_##letter##syrk_64_ },
#include "dispatch/type.def"
#undef TYPE
};
static const names herks[GPB_TYPES] = { [GPB_TYPE_c] = { GPB_SYMBOL_cherk_, GPB_SYMBOL_cherk_64_ },
                                        [GPB_TYPE_z] = { GPB_SYMBOL_zherk_, GPB_SYMBOL_zherk_64_ } };

static void *routine(const names of[GPB_TYPES], enum gpb_type type, int width)
{
    return gpb_next(width == 64 ? of[type].wide : of[type].narrow);
}

void gpb_host_gemm(const gpb_call *g)
{
    const gpb_matrix *a = &g->x[GPB_A], *b = &g->x[GPB_B], *c = &g->x[GPB_C];
    /* If k is 0, OpenBLAS makes NaN of alpha = NaN. */
    const gpb_element alpha = gpb_element_of(g->type, g->k ? g->alpha : 0);
    const gpb_element beta = gpb_element_of(g->type, g->beta);
    void (*gemm)(GPB_F77_GEMM_PARAMS(void, int64_t), size_t, size_t);
    *(void **)&gemm = routine(gemms, g->type, g->width);
    gemm(&a->trans, &b->trans, &g->m, &g->n, &g->k, &alpha, a->base, &a->ld, b->base, &b->ld, &beta,
         (void *)(uintptr_t)c->base, &c->ld, 1, 1);
}

/* HERK's alpha and beta are real. */
static void rank_k(const gpb_call *g)
{
    const bool herk = gpb_call_hermitian(g);
    const gpb_matrix *a = &g->x[GPB_A], *c = &g->x[GPB_C];
    const enum gpb_type scalar = herk ? gpb_type_real(g->type) : g->type;
    const gpb_element alpha = gpb_element_of(scalar, g->alpha), beta = gpb_element_of(scalar, g->beta);
    void (*syrk)(GPB_F77_SYRK_PARAMS(void, void, int64_t), size_t, size_t);
    *(void **)&syrk = routine(herk ? herks : syrks, g->type, g->width);
    syrk(&c->uplo, &a->trans, &g->n, &g->k, &alpha, a->base, &a->ld, &beta, (void *)(uintptr_t)c->base,
         &c->ld, 1, 1);
}

void gpb_host_multiply(const gpb_call *g)
{
    if (g->routine == GPB_ROUTINE_SYRK) rank_k(g);
    else gpb_host_gemm(g);
}

void gpb_host_trsm(const gpb_solve *s)
{
    const gpb_element alpha = gpb_element_of(s->type, s->alpha);
    void (*trsm)(GPB_F77_TRSM_PARAMS(void, int64_t), size_t, size_t, size_t, size_t);
    *(void **)&trsm = routine(trsms, s->type, s->width);
    trsm(&s->side, &s->uplo, &s->trans, &s->diag, &s->m, &s->n, &alpha, s->a, &s->lda, s->b, &s->ldb, 1, 1, 1,
         1);
}
