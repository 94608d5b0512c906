/* SPDX-License-Identifier: MIT */
/* Solves with one vector for gecon and pocon, whose matrices may be nearly singular: before anything could
   overflow, the vector is made smaller by a power of two. */

/* Below it sums of 2^20 products, each at most as large, stay finite. */
static const R TOP = sizeof(R) == sizeof(float) ? (R)0x1p100f : (R)0x1p1000;

/* x 2^up is meant. largest: of the elements of A. */
typedef struct scaled_solve {
    const gpb_factor *factors;
    T *x;
    R largest;
    int64_t up;
} scaled_solve;

static void make_smaller(scaled_solve *s)
{
    enum { SHIFT = 32 };
    for (int64_t i = 0; i < s->factors->n; i++) s->x[i] *= (R)0x1p-32;
    s->up += SHIFT;
}

/* One triangle. False: it is singular, or something is not finite. */
static bool solve_scaled(scaled_solve *s, char uplo, bool adjoint, bool unit)
{
    const int64_t n = s->factors->n;
    const columns t = triangle(FULL, uplo, s->factors->a, n, s->factors->lda);
    const bool forwards = (uplo == 'L') != adjoint;
    R largest = 0;
    for (int64_t step = 0; step < n; step++) {
        const int64_t j = forwards ? step : n - 1 - step;
        int64_t from, count;
        const T *c = off_diagonal(&t, j, &from, &count), d = t.a[j + j * t.lda];
        if (adjoint) {
            for (; largest * s->largest > TOP; largest *= (R)0x1p-32) make_smaller(s);
            s->x[j] -= dot(count, c + from, 1, s->x + from, 1, true);
        }
        if (!unit) {
            if (d == 0) return false;
            for (; ABS1(s->x[j]) > TOP * ABS1(d); largest *= (R)0x1p-32) make_smaller(s);
            s->x[j] /= adjoint ? CONJ(d) : d;
        }
        if (!isfinite(ABS1(s->x[j]))) return false;
        if (!adjoint) {
            while (ABS1(s->x[j]) * s->largest > TOP) make_smaller(s);
            axpy(count, -s->x[j], c + from, 1, s->x + from, 1, false);
        }
        if (ABS1(s->x[j]) > largest) largest = ABS1(s->x[j]);
    }
    return true;
}

/* By LU's factors or Cholesky's. */
static bool solve_for_condition(void *where, void *x, bool adjoint)
{
    scaled_solve *s = where;
    const char uplo = s->factors->uplo;
    const bool lu = uplo == 'G';
    s->x = x;
    s->up = 0;
    for (int i = 0; i < 2; i++) {
        const bool first = i == 0, upper = lu ? first == adjoint : uplo == 'U';
        const bool turned = lu ? adjoint : first == upper;
        if (!solve_scaled(s, upper ? 'U' : 'L', turned, lu && !upper)) return false;
    }
    for (; s->up > 0; s->up -= 32)
        for (int64_t i = 0; i < s->factors->n; i++) s->x[i] *= (R)0x1p32;
    return true;
}

/* The reciprocal condition number from factors and the norm of A, in work for n elements and room for n
   bytes. 0 if the inverse is singular or too large for the type. */
static R reciprocal_condition(const gpb_factor *f, bool of_rows, R norm, T *work, signed char *signs)
{
    scaled_solve s = { .factors = f };
    double inverse;
    for (int64_t j = 0; j < f->n; j++) {
        const bool lu = f->uplo == 'G';
        const T *column = (const T *)f->a + j * f->lda;
        for (int64_t i = f->uplo == 'L' ? j : 0; i < (lu || f->uplo == 'L' ? f->n : j + 1); i++) {
            const R size = ABS1(column[i]);
            if (!(size <= s.largest)) s.largest = size;
            if (isnan(size)) return size;
        }
    }
    const bool finite = isfinite(s.largest)
                        && gpb_condition_inverse_norm(TYPE_OF_P, f->n, of_rows, work, signs,
                                                      solve_for_condition, &s, &inverse);
    return finite && inverse > 0 ? (R)(1 / inverse / (double)norm) : 0;
}
