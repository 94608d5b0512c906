/* SPDX-License-Identifier: MIT */
/* TRSM by halves (dispatch/solve.h): each product is a call of its own, computed, learnt, finished after a
   failure and traced like any other. */
#include "src/hub/solve.h"

#include "src/host/level3.h"
#include "src/hub/offload.h"
#include "src/hub/routing.h"

static void multiply(const gpb_call *g)
{
    gpb_host_call declined;
    if (gpb_offload(g, &declined)) return;
    gpb_host_gemm(g);
    gpb_offload_done(&declined);
}

static void solve(const gpb_solve *s, int64_t leaf)
{
    if (gpb_solve_order(s) <= leaf) {
        gpb_host_trsm(s);
        return;
    }
    const gpb_solve_halves halves = gpb_solve_halve(s);
    solve(&halves.first, leaf);
    multiply(&halves.product);
    solve(&halves.second, leaf);
}

bool gpb_solve_pays(const gpb_solve *s)
{
    const enum gpb_offload_when when = gpb_routing_policy().offload;
    const int64_t leaf = gpb_solve_leaf(s, when);
    if (when == GPB_OFFLOAD_NEVER || gpb_solve_order(s) <= leaf) return false;
    if (!gpb_solve_legal(s) || s->m == 0 || s->n == 0 || s->alpha == 0) return false;
    const gpb_call largest = gpb_solve_halve(s).product;
    return gpb_routing_takes(&largest);
}

bool gpb_solve_offload(const gpb_solve *s)
{
    if (!gpb_solve_pays(s)) return false;
    solve(s, gpb_solve_leaf(s, gpb_routing_policy().offload));
    return true;
}
