/* SPDX-License-Identifier: MIT */
/* See condition.h. Sums are in double, of single precision too. */
#include "src/host/condition.h"

#include <math.h>

enum { MOST = 5 };               /* columns of the inverse that are looked at, as in LAPACK */

/* No hypot, which is libm's. */
static double modulus(double re, double im)
{
    const double x = fabs(re), y = fabs(im), large = x >= y ? x : y, small = x >= y ? y : x;
    return small == 0 ? large : large * sqrt(1 + small / large * (small / large));
}

#define LETTER s
#define ELEMENT float
#include "src/host/condition_typed.h"
#define LETTER d
#define ELEMENT double
#include "src/host/condition_typed.h"
#define LETTER c
#define ELEMENT float _Complex
#include "src/host/condition_typed.h"
#define LETTER z
#define ELEMENT double _Complex
#include "src/host/condition_typed.h"

static const struct bodies {
    double (*sum)(int64_t n, const void *x);
    int64_t (*largest)(int64_t n, const void *x);
    double (*size)(const void *x, int64_t i);
    bool (*take_signs)(int64_t n, void *x, signed char *signs);
    void (*set_unit)(int64_t n, void *x, int64_t j);
    void (*set_all)(int64_t n, void *x);
    void (*set_alternating)(int64_t n, void *x);
} all[GPB_TYPES] = {
#define TYPE(p, type, bytes, flops, kind) \
    { sum_##p, largest_##p, size_##p, take_signs_##p, set_unit_##p, set_all_##p, set_alternating_##p },
#include "dispatch/type.def"
#undef TYPE
};

bool gpb_condition_is_finite(enum gpb_type type, int64_t n, const void *a, int64_t lda)
{
    bool finite = true;
    for (int64_t i = 0; i < n; i++) finite &= isfinite(all[type].size(a, i + i * lda));
    return finite;
}

typedef struct estimate {
    const struct bodies *of;
    int64_t n;
    bool of_rows;
    void *x, *where;
    signed char *signs;
    gpb_condition_solve solve;
} estimate;

/* x = A^-1 x, of which the 1-norm is wanted, or the adjoint. *sum: of the moduli. */
static bool apply(const estimate *e, bool adjoint, double *sum)
{
    if (!e->solve(e->where, e->x, adjoint != e->of_rows)) return false;
    *sum = e->of->sum(e->n, e->x);
    return isfinite(*sum);
}

/* From columns of the inverse, each chosen by the gradient at the one before. *norm: that of the last one
   tried, though it be the smaller, as in LAPACK's LACN2; at first, that of the mean of all. */
static bool climb(const estimate *e, double *norm)
{
    double ignored;
    e->of->take_signs(e->n, e->x, e->signs);
    if (!apply(e, true, &ignored)) return false;
    int64_t j = e->of->largest(e->n, e->x);
    for (int column = 2; ; column++) {
        double sum;
        e->of->set_unit(e->n, e->x, j);
        if (!apply(e, false, &sum)) return false;
        const double before = *norm;
        *norm = sum;
        if (!e->of->take_signs(e->n, e->x, e->signs) || sum <= before) return true;
        if (!apply(e, true, &ignored)) return false;
        const int64_t last = j;
        j = e->of->largest(e->n, e->x);
        if (e->of->size(e->x, last) == e->of->size(e->x, j) || column >= MOST) return true;
    }
}

bool gpb_condition_inverse_norm(enum gpb_type type, int64_t n, bool of_rows, void *x, signed char *signs,
                                gpb_condition_solve solve, void *where, double *norm)
{
    const estimate e = { .of = &all[type], .n = n, .of_rows = of_rows, .x = x, .where = where, .signs = signs,
                         .solve = solve };
    double other;
    e.of->set_all(n, x);
    if (!apply(&e, false, norm)) return false;
    if (n == 1) return true;
    if (!climb(&e, norm)) return false;
    e.of->set_alternating(n, x);               /* for inverses made so that the climb misses them */
    if (!apply(&e, false, &other)) return false;
    other *= 2 / (3 * (double)n);
    if (other > *norm) *norm = other;
    return true;
}
