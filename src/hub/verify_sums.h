/* SPDX-License-Identifier: MIT */
/* The check of some rows and columns for one element type: the body of four. verify.c includes it once for
   each type, with LETTER and ELEMENT defined. Complex numbers are judged part by part, because a large real
   part must not hide errors of a small imaginary one.
   Sums of floats are formed in double. Sums of doubles are formed in long double, whose rounding errors are
   at most 2^-11 of the bound (x86 has 64 bits; others have more) and whose range is wider, so that they never
   overflow first. A pair of doubles would need fma() of libm, which the library does not link. */
#define REAL __typeof__(__real__(ELEMENT)0)
#define SUM __typeof__(_Generic((REAL)0, float: 0.0, double: 0.0L))
#define REALS ((int)(sizeof(ELEMENT) / sizeof(REAL)))    /* of an element; number 1 is the imaginary one */
#define PASTE(x, letter) x##_##letter
#define NAME_(x, letter) PASTE(x, letter)
#define NAME(x) NAME_(x, LETTER)
#define SINGLE (sizeof(REAL) == sizeof(float))

static inline SUM NAME(magnitude)(SUM x)
{
    return SINGLE ? (SUM)__builtin_fabs((double)x) : (SUM)__builtin_fabsl((long double)x);
}

/* One part of an element of A or B, in its place as stored or, of a symmetric one, as it would be. */
static inline SUM NAME(part)(const gpb_matrix *x, const void *base, int64_t row, int64_t col, int im)
{
    const REAL *at = base;
    const bool symmetric = x->structure != GPB_GENERAL;
    const bool mirrored = symmetric && (x->uplo == 'U' ? row > col : row < col);
    const SUM part = (SUM)at[(mirrored ? col + row * x->ld : row + col * x->ld) * REALS + im];
    if (im == 0 || x->structure != GPB_HERMITIAN) return part;
    return row == col ? 0 : mirrored ? -part : part;
}

/* Computes s->bs and s->babs. */
static void NAME(project_b)(const sight *s, const gpb_call *g)
{
    const gpb_matrix *b = &g->x[GPB_B];
    const bool transposed = gpb_matrix_transposed(b), conj = (b->trans == 'C') != b->conj;
    SUM *bs = s->bs, *babs = s->babs;
    for (int64_t p = 0; p < s->call->k; p++)
        for (int im = 0; im < REALS; im++) {
            SUM sum = 0, size = 0;
            for (int64_t j = s->j; j < s->j + s->cols; j++) {
                const SUM x = NAME(part)(b, b->base, transposed ? j : p, transposed ? p : j, im);
                sum += (SUM)sign(j - s->j) * x;
                size += NAME(magnitude)(x);
            }
            bs[p * REALS + im] = conj && im ? -sum : sum;
            babs[p * REALS + im] = size;
        }
}

/* Adds an element of A (or alpha) times one of B s to *want, and the absolute values to *size. */
static inline void NAME(add)(SUM *want, SUM *size, SUM re, SUM im, const SUM *bs, const SUM *babs)
{
    want[0] += re * bs[0];
    size[0] += NAME(magnitude)(re) * babs[0];
    if (REALS == 1) return;
    want[0] -= im * bs[REALS - 1];
    size[0] += NAME(magnitude)(im) * babs[REALS - 1];
    want[REALS - 1] += re * bs[REALS - 1] + im * bs[0];
    size[REALS - 1] += NAME(magnitude)(re) * babs[REALS - 1] + NAME(magnitude)(im) * babs[0];
}

/* Adds op(A)(i, p) (B s)(p). */
static inline void NAME(add_a)(const sight *s, const gpb_matrix *a, int64_t i, int64_t p, bool transposed,
                               bool conj)
{
    const int64_t row = transposed ? p : i, col = transposed ? i : p;
    const SUM re = NAME(part)(a, a->base, row, col, 0), im = NAME(part)(a, a->base, row, col, REALS - 1);
    NAME(add)((SUM *)s->product + i * REALS, (SUM *)s->magnitude + i * REALS, re, conj ? -im : im,
              (SUM *)s->bs + p * REALS, (SUM *)s->babs + p * REALS);
}

/* Adds alpha A (B s) and its magnitude to s->want and s->size for rows [from, to). */
static void NAME(project)(const sight *s, const gpb_call *g, int64_t from, int64_t to)
{
    const gpb_matrix *a = &g->x[GPB_A];
    const int64_t k = g->k;
    const size_t bytes = (size_t)g->m * REALS * sizeof(SUM);
    const bool conj = (a->trans == 'C') != a->conj;
    const double alpha[] = GPB_SCALAR_RE_IM(g->alpha);
    NAME(project_b)(s, g);
    memset(s->product, 0, bytes);
    memset(s->magnitude, 0, bytes);
    if (gpb_matrix_transposed(a))
        for (int64_t i = from; i < to; i++)
            for (int64_t p = 0; p < k; p++) NAME(add_a)(s, a, i, p, true, conj);
    else
        for (int64_t p = 0; p < k; p++)
            for (int64_t i = from; i < to; i++) NAME(add_a)(s, a, i, p, false, conj);
    for (int64_t i = from; i < to; i++)
        NAME(add)((SUM *)s->want + i * REALS, (SUM *)s->size + i * REALS, (SUM)alpha[0], (SUM)alpha[1],
                  (SUM *)s->product + i * REALS, (SUM *)s->magnitude + i * REALS);
}

/* The same of all that is added, from zero. */
static void NAME(project_all)(const sight *s, int64_t from, int64_t to)
{
    const size_t bytes = (size_t)s->call->m * REALS * sizeof(SUM);
    gpb_call member = *s->call;
    member.x[GPB_A].base = s->a;
    member.x[GPB_B].base = s->b;
    memset(s->want, 0, bytes);
    memset(s->size, 0, bytes);
    NAME(project)(s, &member, from, to);
    if (gpb_call_products(&member) == 1) return;
    const gpb_call second = gpb_call_second(&member);
    NAME(project)(s, &second, from, to);
}

/* Whether the sum may be right. Special values are judged as in tests/reference.c; in a group they hide the
   other elements. */
static bool NAME(agrees)(sight *s, SUM found, SUM wanted, SUM product, SUM before)
{
    const SUM u = SINGLE ? 0x1p-24L : 0x1p-53L, tiny = SINGLE ? 0x1p-148L : 0x1p-1073L;
    const SUM largest = SINGLE ? (SUM)FLT_MAX : (SUM)DBL_MAX, infinite = (SUM)__builtin_inf();
    const int products = gpb_call_products(s->call);
    const SUM steps = (SUM)(products * REALS) * (SUM)s->call->k + 4;
    const double alpha[] = GPB_SCALAR_RE_IM(s->call->alpha);
    const SUM scale = gpb_call_multiplies(s->call)
                      ? NAME(magnitude)((SUM)alpha[0]) + NAME(magnitude)((SUM)alpha[1]) : 0;
    const SUM bound = 4 * (steps * u * product + (REALS + products) * u * before)
                      + (s->coarse && SINGLE ? (SUM)0x1p-8 * product : 0)
                      + (SUM)s->cols * steps * tiny * (1 + scale);
    const bool may_overflow = !(product + before < largest), grouped = s->cols > 1;
    s->error = (double)NAME(magnitude)(found - wanted);
    s->bound = (double)bound;
    if (wanted != wanted) return grouped || found != found;
    if (NAME(magnitude)(wanted) == infinite) return found == wanted || found != found || grouped;
    if (found != found || NAME(magnitude)(found) == infinite) return may_overflow;
    return NAME(magnitude)(found - wanted) <= bound || may_overflow;
}

/* Checks one row of columns [s->j, s->j + s->cols). */
static bool NAME(check_row)(sight *s, int64_t i)
{
    const gpb_call *g = s->call;
    const double beta[] = GPB_SCALAR_RE_IM(g->beta);
    const bool multiplies = gpb_call_multiplies(g);
    SUM found[REALS], wanted[REALS], product[REALS], before[REALS];
    for (int im = 0; im < REALS; im++) {
        found[im] = before[im] = 0;
        wanted[im] = multiplies ? ((SUM *)s->want)[i * REALS + im] : 0;
        product[im] = multiplies ? ((SUM *)s->size)[i * REALS + im] : 0;
    }
    for (int64_t j = s->j; j < s->j + s->cols; j++) {
        const REAL *c = (const REAL *)s->c + (i + j * g->x[GPB_C].ld) * REALS;
        const SUM side = (SUM)sign(j - s->j);
        for (int im = 0; im < REALS; im++) found[im] += side * (SUM)c[im];
        if (!s->old) continue;
        const REAL *x = (const REAL *)s->old + (i + j * g->m) * REALS;
        const SUM old[] = { (SUM)x[0], (SUM)x[REALS - 1] };
        const SUM size[] = { NAME(magnitude)(old[0]), NAME(magnitude)(old[1]) };
        /* A real beta, or 1, which need not multiply. A complex product of 1 and an infinity has a NaN, which
           is right, too: there `before` is NaN and allows anything. */
        if (gpb_call_hermitian(g) || g->beta == 1)
            for (int im = 0; im < REALS; im++) {
                wanted[im] += side * (SUM)beta[0] * old[im];
                before[im] += NAME(magnitude)((SUM)beta[0]) * size[im];
                if (REALS == 2 && !gpb_call_hermitian(g)) before[im] += 0 * size[REALS - 1 - im];
            }
        else
            NAME(add)(wanted, before, side * (SUM)beta[0], side * (SUM)beta[1], old, size);
    }
    s->i = i;
    /* The imaginary part on a real diagonal is 0, whatever A and alpha are. */
    const bool real = gpb_call_hermitian(g) && s->cols == 1 && i == s->j;
    if (real && REALS == 2 && found[REALS - 1] != 0) return false;
    for (int im = 0; im < (real ? 1 : REALS); im++)
        if (!NAME(agrees)(s, found[im], wanted[im], product[im], before[im])) return false;
    return true;
}

/* Checks columns [s->j, s->j + s->cols), rows [from, to). */
static bool NAME(check_rows)(sight *s, int64_t from, int64_t to)
{
    if (from >= to) return true;
    if (gpb_call_multiplies(s->call)) NAME(project_all)(s, from, to);
    for (int64_t i = from; i < to; i++)
        if (!NAME(check_row)(s, i)) return false;
    return true;
}

enum { NAME(SUM_BYTES) = REALS * sizeof(SUM) };

#undef SINGLE
#undef NAME
#undef NAME_
#undef PASTE
#undef REALS
#undef SUM
#undef REAL
#undef ELEMENT
#undef LETTER
