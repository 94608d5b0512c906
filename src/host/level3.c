/* SPDX-License-Identifier: MIT */
/* See level3.h. The integers are 64 bits wide in memory in any case: if a process has two libraries, the name
   may lead to the other one, and a 32-bit library then reads the lower halves, which hold a 32-bit caller's
   sizes. */
#include "src/host/level3.h"

#include "src/host/level3_abi.h"
#include "src/host/next.h"

void gpb_host_gemm(const gpb_call *g)
{
    const gpb_matrix *a = &g->x[GPB_A], *b = &g->x[GPB_B], *c = &g->x[GPB_C];
    /* If k is 0, OpenBLAS makes NaN of alpha = NaN. */
    const gpb_element alpha = gpb_element_of(g->type, g->k ? g->alpha : 0);
    const gpb_element beta = gpb_element_of(g->type, g->beta);
    static const gpb_next_names gemms = GPB_NEXT_NAMES(gemm);
    void (*gemm)(GPB_F77_GEMM_PARAMS(void, int64_t), size_t, size_t);
    *(void **)&gemm = gpb_next_of(gemms, g->type, g->width);
    gemm(&a->trans, &b->trans, &g->m, &g->n, &g->k, &alpha, a->base, &a->ld, b->base, &b->ld, &beta,
         (void *)(uintptr_t)c->base, &c->ld, 1, 1);
}

/* HERK's alpha and beta are real. */
static void rank_k(const gpb_call *g)
{
    static const gpb_next_names syrks = GPB_NEXT_NAMES(syrk);
    static const gpb_next_names herks = GPB_NEXT_COMPLEX_NAMES(herk);
    const bool herk = gpb_call_hermitian(g);
    const gpb_matrix *a = &g->x[GPB_A], *c = &g->x[GPB_C];
    const enum gpb_type scalar = herk ? gpb_type_real(g->type) : g->type;
    const gpb_element alpha = gpb_element_of(scalar, g->alpha), beta = gpb_element_of(scalar, g->beta);
    void (*syrk)(GPB_F77_SYRK_PARAMS(void, void, int64_t), size_t, size_t);
    *(void **)&syrk = gpb_next_of(herk ? herks : syrks, g->type, g->width);
    syrk(&c->uplo, &a->trans, &g->n, &g->k, &alpha, a->base, &a->ld, &beta, (void *)(uintptr_t)c->base,
         &c->ld, 1, 1);
}

void gpb_host_multiply(const gpb_call *g)
{
    if (g->routine == GPB_ROUTINE_SYRK) rank_k(g);
    else gpb_host_gemm(g);
}

void gpb_host_triangular(const gpb_triangular *t)
{
    const gpb_element alpha = gpb_element_of(t->type, t->alpha);
    static const gpb_next_names trsms = GPB_NEXT_NAMES(trsm);
    static const gpb_next_names trmms = GPB_NEXT_NAMES(trmm);
    void (*compute)(GPB_F77_TRSM_PARAMS(void, int64_t), size_t, size_t, size_t, size_t);
    *(void **)&compute = gpb_next_of(t->solves ? trsms : trmms, t->type, t->width);
    compute(&t->side, &t->uplo, &t->trans, &t->diag, &t->m, &t->n, &alpha, t->a, &t->lda, t->b, &t->ldb, 1, 1,
            1, 1);
}

void gpb_host_triangular_rest(const gpb_triangular *t, int64_t done)
{
    const gpb_triangular_halves rest = gpb_triangular_rest(t, done);
    if (rest.second.n == 0) return;
    if (rest.product.k) gpb_host_multiply(&rest.product);
    gpb_host_triangular(&rest.second);
}
