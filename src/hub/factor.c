/* SPDX-License-Identifier: MIT */
/* LAPACK's solvers by halves (host/lapack.h), whose products and solves are calls of their own. */
#include "src/hub/factor.h"

#include <stdlib.h>

#include "dispatch/halves.h"
#include "src/host/lapack.h"
#include "src/host/level3.h"
#include "src/hub/ask.h"
#include "src/hub/offload.h"
#include "src/hub/resident.h"
#include "src/hub/routing.h"
#include "src/hub/triangular.h"

static void triangular(void *where, const gpb_triangular *t)
{
    (void)where;
    if (gpb_triangular_offload(t)) return;
    gpb_host_triangular(t);
    gpb_routing_leave_host();
}

static void multiply(void *where, const gpb_call *call)
{
    (void)where;
    gpb_offload_or_host(call);
}

static gpb_lapack_parts parts_for(int64_t order)
{
    gpb_lapack_parts parts = gpb_lapack_host;
    parts.leaf = gpb_halves_leaf(order, gpb_routing_policy().offload);
    parts.triangular = triangular;
    parts.multiply = multiply;
    return parts;
}

/* The largest product is three eighths of the work of LU and of Cholesky. Three times as fast, it saves a
   quarter of the whole time, which pays for what the host's own routine does better than its parts. The
   factor itself is not measured. */
enum { FASTER = 3 };

/* True of orders that are cut into halves at all. */
static bool is_cut(enum gpb_type type, int64_t order)
{
    const int64_t least = gpb_halves_least(type, gpb_routing_policy().offload);
    return order > parts_for(order).leaf && order >= least;
}

static bool factor_pays(const gpb_factor *f)
{
    if (!gpb_factor_legal(f) || !is_cut(f->type, gpb_factor_order(f))) return false;
    const gpb_call largest = gpb_factor_halve(f).product;
    return gpb_routing_gain(&largest) >= FASTER;
}

static bool solves_pay(const gpb_system *s)
{
    if (!gpb_system_legal(s) || s->nrhs == 0) return false;
    const gpb_system_solves to = gpb_system_solve(s);
    return gpb_triangular_pays(&to.first);
}

bool gpb_factor_offload(const gpb_factor *f, int64_t *info)
{
    if (!gpb_factor_legal(f)) return false;
    const gpb_resident whole = { .system = { .a = *f }, .factors = true };
    const enum gpb_resident_answer answer = gpb_resident_offload(&whole, info);
    if (answer != GPB_RESIDENT_BY_CALLS) return answer == GPB_RESIDENT_DONE;
    if (!factor_pays(f)) return false;
    const gpb_lapack_parts parts = parts_for(gpb_factor_order(f));
    *info = gpb_lapack_factor(f, &parts);
    return true;
}

bool gpb_system_offload(const gpb_system *s, int64_t *info)
{
    if (!gpb_system_legal(s)) return false;
    const gpb_resident whole = { .system = *s, .solves = true };
    const enum gpb_resident_answer answer = gpb_resident_offload(&whole, info);
    if (answer != GPB_RESIDENT_BY_CALLS) return answer == GPB_RESIDENT_DONE;
    if (!solves_pay(s)) return false;
    const gpb_lapack_parts parts = parts_for(s->a.n);
    gpb_lapack_solve(s, &parts);
    *info = 0;
    return true;
}

bool gpb_system_factor_offload(const gpb_system *s, int64_t *info)
{
    if (!gpb_system_legal(s)) return false;
    const gpb_resident whole = { .system = *s, .factors = true, .solves = s->nrhs > 0 };
    const enum gpb_resident_answer answer = gpb_resident_offload(&whole, info);
    if (answer != GPB_RESIDENT_BY_CALLS) return answer == GPB_RESIDENT_DONE;
    const bool factor = factor_pays(&s->a), solves = solves_pay(s);
    if (!factor && !solves) return false;
    const gpb_lapack_parts parts = parts_for(s->a.n);
    *info = factor ? gpb_lapack_factor(&s->a, &parts) : parts.factor(NULL, &s->a);
    if (*info == 0 && solves) gpb_lapack_solve(s, &parts);
    else if (*info == 0) gpb_lapack_host_solve(s);
    return true;
}

/* There is no way by calls, because the host's routine makes such calls itself. */
bool gpb_system_refine_offload(const gpb_system *s, const void *given, int64_t ldgiven, int64_t *iter,
                               int64_t *info)
{
    if (!gpb_system_legal(s) || ldgiven < max(1, s->a.n) || s->nrhs == 0) return false;
    const gpb_resident whole = { .system = *s, .factors = true, .solves = true, .given = given,
                                 .ldgiven = ldgiven, .iter = iter };
    *iter = 0;
    return gpb_resident_offload(&whole, info) == GPB_RESIDENT_DONE;
}

static bool square_pays(const gpb_factor *f)
{
    if (!gpb_factor_legal(f) || !is_cut(f->type, f->n)) return false;
    const gpb_call largest = gpb_factor_multiply_halve(f).product;
    return gpb_routing_gain(&largest) >= FASTER;
}

/* lauum is decided by its largest product. */
static bool answer_square(const gpb_factor *f)
{
    if (!gpb_factor_legal(f)) return false;
    const gpb_call largest = gpb_factor_multiply_halve(f).product;
    gpb_ask_product(&largest, f->symbol);
    return true;
}

bool gpb_square_offload(const gpb_factor *f, int64_t *info)
{
    *info = 0;
    if (gpb_ask_is_on()) return answer_square(f);
    if (!square_pays(f)) return false;
    const gpb_lapack_parts parts = parts_for(f->n);
    gpb_lapack_square(f, &parts);
    return true;
}

bool gpb_cholesky_inverse_offload(const gpb_factor *f, int64_t *info)
{
    if (!gpb_factor_legal(f)) return false;
    const gpb_resident whole = gpb_resident_of_factors(f);
    const enum gpb_resident_answer answer = gpb_resident_offload(&whole, info);
    if (answer != GPB_RESIDENT_BY_CALLS) return answer == GPB_RESIDENT_DONE;
    if (!square_pays(f)) return false;
    const gpb_lapack_parts parts = parts_for(f->n);
    *info = gpb_lapack_invert_cholesky(f, &parts);
    return true;
}

bool gpb_inverse_offload(const gpb_inverse *t, int64_t *info)
{
    if (!gpb_inverse_legal(t)) return false;
    const gpb_triangular solve = gpb_resident_solve_of(t);
    const gpb_resident whole = gpb_resident_of_inverse(&solve);
    const enum gpb_resident_answer answer = gpb_resident_offload(&whole, info);
    if (answer != GPB_RESIDENT_BY_CALLS) return answer == GPB_RESIDENT_DONE;
    const gpb_lapack_parts parts = parts_for(t->n);
    if (!is_cut(t->type, t->n) || t->n <= 2 * parts.leaf) return false;
    const gpb_inverse_halves halves = gpb_inverse_halve(t);
    const gpb_call largest = gpb_triangular_halve(&halves.left).product;
    if (gpb_routing_gain(&largest) < FASTER) return false;
    *info = gpb_lapack_invert(t, &parts);
    return true;
}

bool gpb_triangular_system_offload(const gpb_triangular *s, int64_t *info)
{
    if (!gpb_triangular_legal(s) || !s->m || !s->n) return false;
    gpb_resident whole = gpb_resident_of_triangular(s);
    whole.divides = s->diag == 'N';
    const enum gpb_resident_answer answer = gpb_resident_offload(&whole, info);
    if (answer != GPB_RESIDENT_BY_CALLS) return answer == GPB_RESIDENT_DONE;
    *info = whole.divides ? gpb_lapack_singular(s->type, s->a, s->m, s->lda) : 0;
    return *info || gpb_triangular_by_calls(s);
}

/* There is no way by calls: what they would send for each product is the matrix. */
bool gpb_condition_offload(const gpb_condition *c, int64_t *info)
{
    if (!gpb_condition_legal(c)) return false;
    double norm = 0;
    const gpb_resident whole = { .system = { .a = c->factors, .trans = 'N' }, .inverse_norm = &norm,
                                 .of_rows = c->norm == 'I' };
    if (gpb_resident_offload(&whole, info) != GPB_RESIDENT_DONE) return false;
    *c->rcond = norm > 0 ? 1 / norm / c->anorm : 0;
    return true;
}

/* Blocks of an eighth of the columns: the product of each brings up what lies behind it, three and a half
   times the matrix in all. */
bool gpb_lu_inverse_offload(const gpb_factor *lu, int64_t *info)
{
    if (!gpb_factor_legal(lu)) return false;
    const gpb_resident whole = gpb_resident_of_factors(lu);
    const enum gpb_resident_answer answer = gpb_resident_offload(&whole, info);
    if (answer != GPB_RESIDENT_BY_CALLS) return answer == GPB_RESIDENT_DONE;
    const gpb_lapack_parts parts = parts_for(lu->n);
    if (!is_cut(lu->type, lu->n)) return false;
    const int64_t columns = max(parts.leaf, ceil_div(lu->n, 8));
    gpb_call middle = gpb_factor_halve(lu).product;
    middle.m = lu->n;
    middle.n = columns;
    if (gpb_routing_gain(&middle) < FASTER) return false;
    void *work = malloc((size_t)(lu->n * columns) * gpb_type_bytes(lu->type));
    if (!work) return false;
    *info = gpb_lapack_invert_lu(lu, work, columns, &parts);
    free(work);
    return true;
}
