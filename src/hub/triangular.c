/* SPDX-License-Identifier: MIT */
/* TRSM and TRMM by halves (dispatch/triangular.h): each product is a call of its own, computed, learnt,
   finished after a failure and traced like any other. */
#include "src/hub/triangular.h"

#include "dispatch/halves.h"
#include "src/host/level3.h"
#include "src/hub/ask.h"
#include "src/hub/offload.h"
#include "src/hub/resident.h"
#include "src/hub/routing.h"

static void compute(const gpb_triangular *t, int64_t leaf)
{
    if (gpb_triangular_order(t) <= leaf) {
        gpb_host_triangular(t);
        return;
    }
    const gpb_triangular_halves halves = gpb_triangular_halve(t);
    compute(&halves.first, leaf);
    gpb_offload_or_host(&halves.product);
    compute(&halves.second, leaf);
}

static int64_t leaf_of(const gpb_triangular *t)
{
    return gpb_halves_leaf(gpb_triangular_order(t), gpb_routing_policy().offload);
}

bool gpb_triangular_pays(const gpb_triangular *t)
{
    if (gpb_triangular_order(t) <= leaf_of(t)) return false;
    if (!gpb_triangular_legal(t) || t->m == 0 || t->n == 0 || t->alpha == 0) return false;
    const gpb_call largest = gpb_triangular_halve(t).product;
    return gpb_routing_takes(&largest);
}

/* B = 0, wherever it is. */
static void clear(const gpb_triangular *t)
{
    const gpb_matrix none = { .ld = max(1, t->m), .trans = 'N' },
                     b = { .base = t->b, .ld = t->ldb, .trans = 'N', .uplo = 'G' };
    gpb_offload_or_host(&(gpb_call){ .symbol = t->symbol, .type = t->type, .width = t->width, .m = t->m,
                                     .n = t->n, .batch = 1, .x = { none, none, b } });
}

bool gpb_triangular_offload(const gpb_triangular *t)
{
    int64_t info;
    if (gpb_offload_is_inside()) return false;
    const bool some = gpb_triangular_legal(t) && t->m && t->n;
    if (some && t->alpha == 0) {
        clear(t);
        return true;
    }
    if (some) {
        const gpb_resident whole = gpb_resident_of_triangular(t);
        const enum gpb_resident_answer answer = gpb_resident_offload(&whole, &info);
        if (answer != GPB_RESIDENT_BY_CALLS) return answer == GPB_RESIDENT_DONE;
    }
    return gpb_triangular_by_calls(t);
}

/* Larger ones, and those that are alone, have products that fill a GPU. */
static bool is_one_by_one(const gpb_call *g)
{
    enum { MOST = 1024 };
    return g->batch > 0 && gpb_call_multiplies(g) && g->m && g->n && (g->batch == 1 || g->k > MOST);
}

bool gpb_triangular_batch(const gpb_call *g, gpb_host_call *record)
{
    if (!gpb_offload_legal(g) || !is_one_by_one(g)) return gpb_offload(g, record);
    const enum gpb_operand a = gpb_call_triangle(g);
    *record = (gpb_host_call){ 0 };
    for (int64_t l = 0; l < g->batch; l++) {
        const gpb_triangular t = gpb_triangular_of(g, gpb_call_member(g, a, l), g->x[a].ld,
                                                   gpb_call_member(g, GPB_C, l), g->x[GPB_C].ld);
        if (gpb_triangular_offload(&t)) continue;
        gpb_host_triangular(&t);
        gpb_routing_leave_host();
    }
    return true;
}

bool gpb_triangular_by_calls(const gpb_triangular *t)
{
    if (gpb_ask_is_on() && gpb_triangular_legal(t)) {
        gpb_ask_triangular(t, leaf_of(t));
        return true;
    }
    if (!gpb_triangular_pays(t)) return false;
    compute(t, leaf_of(t));
    return true;
}
