/* SPDX-License-Identifier: MIT */
/* TRSM and TRMM by halves (dispatch/triangular.h): each product is a call of its own, computed, learnt,
   finished after a failure and traced like any other. */
#include "src/hub/triangular.h"

#include "dispatch/halves.h"
#include "src/host/level3.h"
#include "src/hub/offload.h"
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

bool gpb_triangular_offload(const gpb_triangular *t)
{
    if (!gpb_triangular_pays(t)) return false;
    compute(t, leaf_of(t));
    return true;
}
