/* SPDX-License-Identifier: MIT */
/* LAPACK's solvers by halves (host/lapack.h), whose products and solves are calls of their own. */
#include "src/hub/factor.h"

#include "dispatch/halves.h"
#include "src/host/lapack.h"
#include "src/host/level3.h"
#include "src/hub/offload.h"
#include "src/hub/routing.h"
#include "src/hub/solve.h"

static void multiply(const gpb_call *g)
{
    gpb_host_call declined;
    if (gpb_offload(g, &declined)) return;
    gpb_host_multiply(g);
    gpb_offload_done(&declined);
}

static void solve(const gpb_solve *s)
{
    if (!gpb_solve_offload(s)) gpb_host_trsm(s);
}

static gpb_lapack_parts parts_for(const gpb_factor *f)
{
    const int64_t leaf = gpb_halves_leaf(gpb_factor_order(f), gpb_routing_policy().offload);
    return (gpb_lapack_parts){ leaf, gpb_lapack_host_factor, solve, multiply };
}

/* The largest product is three eighths of the work of LU and of Cholesky. Three times as fast, it saves a
   quarter of the whole time, which pays for what the host's own routine does better than its parts. The
   factor is not measured. */
enum { FASTER = 3 };

static bool factor_pays(const gpb_factor *f)
{
    const gpb_lapack_parts parts = parts_for(f);
    if (!gpb_factor_legal(f) || gpb_factor_order(f) <= parts.leaf) return false;
    const gpb_call largest = gpb_factor_halve(f).product;
    return gpb_routing_gain(&largest) >= FASTER;
}

static bool solves_pay(const gpb_system *s)
{
    if (!gpb_system_legal(s) || s->nrhs == 0) return false;
    const gpb_system_solves to = gpb_system_solve(s);
    return gpb_solve_pays(&to.first);
}

bool gpb_factor_offload(const gpb_factor *f, int64_t *info)
{
    if (!factor_pays(f)) return false;
    const gpb_lapack_parts parts = parts_for(f);
    *info = gpb_lapack_factor(f, &parts);
    return true;
}

bool gpb_system_offload(const gpb_system *s, int64_t *info)
{
    if (!solves_pay(s)) return false;
    const gpb_lapack_parts parts = parts_for(&s->a);
    gpb_lapack_solve(s, &parts);
    *info = 0;
    return true;
}

bool gpb_system_factor_offload(const gpb_system *s, int64_t *info)
{
    if (!gpb_system_legal(s)) return false;
    const bool factor = factor_pays(&s->a), solves = solves_pay(s);
    if (!factor && !solves) return false;
    const gpb_lapack_parts parts = parts_for(&s->a);
    *info = factor ? gpb_lapack_factor(&s->a, &parts) : parts.factor(&s->a);
    if (*info == 0) gpb_lapack_solve(s, &parts);
    return true;
}
