/* SPDX-License-Identifier: MIT */
/* The checks of batches.c in one type: LETTER, ELEMENT, SCALAR (how CBLAS takes alpha) and PASS(alpha). They
   compute in double, or in double complex. */
#define WIDE __typeof__((ELEMENT)0 * 1.0)
#define PASTE3_(a, b, c) a##b##c
#define PASTE3(a, b, c) PASTE3_(a, b, c)
#define NAME(stem) PASTE3(stem, _, LETTER)
#define F77(stem) PASTE3(, LETTER, PASTE3(stem, _, ))
#define F77_64(stem) PASTE3(, LETTER, PASTE3(stem, _64, _))
#define CBLAS(stem) PASTE3(cblas_, LETTER, stem)
#define CBLAS_64(stem) PASTE3(cblas_, LETTER, PASTE3(stem, _64, ))
#define TEXT__(x) #x
#define TEXT_(x) TEXT__(x)
#define TEXT(stem) TEXT_(PASTE3(, LETTER, stem))

#define DECLARE(name, c_name, INT)                                                                           \
    void name(trsm_batch)(const char *, const char *, const char *, const char *, const INT *, const INT *,  \
                          const ELEMENT *, const ELEMENT *const *, const INT *, ELEMENT *const *,            \
                          const INT *, const INT *, const INT *);                                            \
    void name(trsm_batch_strided)(const char *, const char *, const char *, const char *, const INT *,       \
                                  const INT *, const ELEMENT *, const ELEMENT *, const INT *, const INT *,   \
                                  ELEMENT *, const INT *, const INT *, const INT *);                         \
    void name(syrk_batch)(const char *, const char *, const INT *, const INT *, const ELEMENT *,             \
                          const ELEMENT *const *, const INT *, const ELEMENT *, ELEMENT *const *,            \
                          const INT *, const INT *, const INT *);                                            \
    void name(syrk_batch_strided)(const char *, const char *, const INT *, const INT *, const ELEMENT *,     \
                                  const ELEMENT *, const INT *, const INT *, const ELEMENT *, ELEMENT *,     \
                                  const INT *, const INT *, const INT *);                                    \
    void c_name(trsm_batch)(int, const int *, const int *, const int *, const int *, const INT *,            \
                            const INT *, const ELEMENT *, const ELEMENT *const *, const INT *,               \
                            ELEMENT *const *, const INT *, INT, const INT *);                                \
    void c_name(trsm_batch_strided)(int, int, int, int, int, INT, INT, SCALAR, const ELEMENT *, INT, INT,    \
                                    ELEMENT *, INT, INT, INT);                                               \
    void c_name(syrk_batch)(int, const int *, const int *, const INT *, const INT *, const ELEMENT *,        \
                            const ELEMENT *const *, const INT *, const ELEMENT *, ELEMENT *const *,          \
                            const INT *, INT, const INT *);                                                  \
    void c_name(syrk_batch_strided)(int, int, int, INT, INT, SCALAR, const ELEMENT *, INT, INT, SCALAR,      \
                                    ELEMENT *, INT, INT, INT);
DECLARE(F77, CBLAS, int)
DECLARE(F77_64, CBLAS_64, int64_t)

/* All members of one call, with their elements as they were. */
typedef struct NAME(data) {
    const shape *of;
    bool rows;                             /* by rows: an element is where that of the transpose is */
    int lda, ldb;
    memory a, b;
    WIDE old_a[MEMBERS][ROOM], old_b[MEMBERS][ROOM];
} NAME(data);

/* An absolute value. (cabs took a third of the time. No sum is near the largest or the smallest number.) */
static inline double NAME(size)(WIDE x)
{
    return sizeof x == sizeof(double) ? fabs(creal(x)) : sqrt(creal(x) * creal(x) + cimag(x) * cimag(x));
}

/* op(X)(i, j) of a matrix whose element (i, j) is at x[i * rs + j * cs]. */
static WIDE NAME(op)(const WIDE *x, char trans, int i, int j, int rs, int cs)
{
    const WIDE value = trans == 'N' ? x[i * rs + j * cs] : x[j * rs + i * cs];
    return trans == 'C' ? (WIDE)conj(value) : value;
}

static ELEMENT *NAME(member)(const memory *x, bool callers, int l)
{
    return (ELEMENT *)(callers ? x->callers : x->here) + (size_t)l * ROOM;
}

/* Fills `rows` x `cols` of a member with ld, of the triangle `uplo` without its diagonal if `unit` ('G':
   all); the rest is NaN. by_rows: ld is from row to row. */
static void NAME(fill)(ELEMENT *x, int rows, int cols, int ld, bool by_rows, char uplo, bool unit)
{
    for (int e = 0; e < ROOM; e++) x[e] = NAN;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            const bool inside = uplo == 'G' || (i == j ? !unit : (uplo == 'L') == (i > j));
            const double complex value = next() + next() * I;      /* real types take the real part */
            const double complex strong = uplo == 'G' ? value : i == j ? 2 + value : value / 4;
            if (inside) x[by_rows ? i * ld + j : i + j * ld] = (ELEMENT)strong;
        }
}

static void NAME(drop)(NAME(data) *d)
{
    drop(&d->a);
    drop(&d->b);
    free(d);
}

static double NAME(unit)(void)
{
    return strchr("sc", TEXT_(LETTER)[0]) ? 0x1p-24 : 0x1p-53;
}

/* ---- TRSM */

static NAME(data) *NAME(solve_data)(const shape *s, bool rows)
{
    NAME(data) *d = calloc(1, sizeof *d);
    const int order = s->side == 'L' ? s->m : s->n;
    d->of = s;
    d->rows = rows;
    d->lda = order + PAD;
    d->ldb = (rows ? s->n : s->m) + PAD;
    d->a = new_memory(MEMBERS * ROOM * sizeof(ELEMENT));
    d->b = new_memory(MEMBERS * ROOM * sizeof(ELEMENT));
    for (int l = 0; l < s->members; l++) {
        ELEMENT *a = NAME(member)(&d->a, false, l), *b = NAME(member)(&d->b, false, l);
        NAME(fill)(a, order, order, d->lda, rows, s->uplo, s->diag == 'U');
        NAME(fill)(b, s->m, s->n, d->ldb, rows, 'G', false);
        for (int e = 0; e < ROOM; e++) {
            d->old_a[l][e] = a[e];
            d->old_b[l][e] = b[e];
        }
    }
    send(&d->a);
    send(&d->b);
    return d;
}

static bool NAME(same)(WIDE was, ELEMENT is)
{
    const WIDE now = is;
    return isnan(creal(was)) ? isnan(creal(now)) : was == now;
}

/* op(A)(i, p), with the diagonal and the other triangle as they count. */
static WIDE NAME(of_a)(const NAME(data) *d, int l, int i, int p)
{
    const shape *s = d->of;
    const int row = s->trans == 'N' ? i : p, col = s->trans == 'N' ? p : i;
    if (row != col && (s->uplo == 'L') != (row > col)) return 0;
    if (row == col && s->diag == 'U') return 1;
    return NAME(op)(d->old_a[l], s->trans, i, p, d->rows ? d->lda : 1, d->rows ? 1 : d->lda);
}

/* True if op(A) X = alpha B within a bound, or the same from the right, and nothing else has changed. */
static bool NAME(is_solved)(const NAME(data) *d)
{
    const shape *s = d->of;
    const int order = s->side == 'L' ? s->m : s->n, rs = d->rows ? d->ldb : 1, cs = d->rows ? 1 : d->ldb;
    bool right = true;
    fetch(&d->a);
    fetch(&d->b);
    for (int l = 0; l < s->members; l++) {
        const ELEMENT *x = NAME(member)(&d->b, false, l), *a = NAME(member)(&d->a, false, l);
        for (int e = 0; e < ROOM; e++) {
            const int i = d->rows ? e / d->ldb : e % d->ldb, j = d->rows ? e % d->ldb : e / d->ldb;
            right &= NAME(same)(d->old_a[l][e], a[e]);
            if (i >= s->m || j >= s->n) right &= NAME(same)(d->old_b[l][e], x[e]);
        }
        for (int i = 0; i < s->m; i++)
            for (int j = 0; j < s->n; j++) {
                WIDE sum = (WIDE)-s->alpha * d->old_b[l][i * rs + j * cs];
                double size = NAME(size)(sum);
                for (int p = 0; p < order; p++) {
                    const WIDE y = s->side == 'L' ? NAME(of_a)(d, l, i, p) : NAME(of_a)(d, l, p, j);
                    const WIDE v = s->side == 'L' ? x[p * rs + j * cs] : x[i * rs + p * cs];
                    if (y == 0) continue;
                    sum += y * v;
                    size += NAME(size)(y * v);
                }
                right &= NAME(size)(sum) <= 4 * (order + 8) * NAME(unit)() * size;
            }
    }
    return right;
}

static void NAME(addresses)(const memory *m, ELEMENT *at[MEMBERS], int members, bool scattered)
{
    for (int l = 0; l < members; l++) at[l] = NAME(member)(m, true, scattered ? (2 * l + 1) % members : l);
}

#define SOLVE_STRIDED(name, INT)                                                                            \
    do {                                                                                                    \
        const INT m = s->m, n = s->n, lda = d->lda, ldb = d->ldb, stride = ROOM, size = s->members;         \
        name(trsm_batch_strided)(&s->side, &s->uplo, &s->trans, &s->diag, &m, &n, &alpha, a, &lda, &stride, \
                                 b, &ldb, &stride, &size);                                                  \
    } while (0)
#define C_STRIDED(name, layout)                                                                         \
    name(trsm_batch_strided)(layout, c_side(s->side), c_uplo(s->uplo), c_trans(s->trans),               \
                             c_diag(s->diag), s->m, s->n, PASS(alpha), a, d->lda, ROOM, b, d->ldb, ROOM, \
                             s->members)

static void NAME(solve_strided)(const NAME(data) *d, enum form form)
{
    const shape *s = d->of;
    const ELEMENT alpha = (ELEMENT)s->alpha, *a = NAME(member)(&d->a, true, 0);
    ELEMENT *b = NAME(member)(&d->b, true, 0);
    switch (form) {
    case FORTRAN: SOLVE_STRIDED(F77, int); break;
    case FORTRAN_64: SOLVE_STRIDED(F77_64, int64_t); break;
    case C: C_STRIDED(CBLAS, COLUMN); break;
    case C_ROWS: C_STRIDED(CBLAS, ROW); break;
    default: C_STRIDED(CBLAS_64, COLUMN); break;
    }
}

/* As three groups, of which the second is empty. */
#define SOLVE_GROUPS(name, INT)                                                                             \
    do {                                                                                                    \
        const char side[] = { s->side, 'L', s->side }, uplo[] = { s->uplo, 'U', s->uplo },                  \
                   trans[] = { s->trans, 'N', s->trans }, diag[] = { s->diag, 'N', s->diag };               \
        const INT m[] = { s->m, 1, s->m }, n[] = { s->n, 1, s->n }, lda[] = { d->lda, 1, d->lda },          \
                  ldb[] = { d->ldb, 1, d->ldb }, size[] = { 1, 0, s->members - 1 }, groups = 3;             \
        name(trsm_batch)(side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, &groups, size);              \
    } while (0)
#define C_GROUPS(name, layout, INT)                                                                         \
    do {                                                                                                    \
        const int side[] = { c_side(s->side), 141, c_side(s->side) },                                       \
                  uplo[] = { c_uplo(s->uplo), 121, c_uplo(s->uplo) },                                       \
                  trans[] = { c_trans(s->trans), 111, c_trans(s->trans) },                                  \
                  diag[] = { c_diag(s->diag), 131, c_diag(s->diag) };                                       \
        const INT m[] = { s->m, 1, s->m }, n[] = { s->n, 1, s->n }, lda[] = { d->lda, 1, d->lda },          \
                  ldb[] = { d->ldb, 1, d->ldb }, size[] = { 1, 0, s->members - 1 };                         \
        name(trsm_batch)(layout, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, 3, size);            \
    } while (0)

static void NAME(solve_groups)(const NAME(data) *d, enum form form)
{
    const shape *s = d->of;
    const ELEMENT alpha[] = { (ELEMENT)s->alpha, 1, (ELEMENT)s->alpha };
    ELEMENT *b[MEMBERS], *a_at[MEMBERS];
    const ELEMENT *a[MEMBERS];
    NAME(addresses)(&d->a, a_at, s->members, true);
    NAME(addresses)(&d->b, b, s->members, true);
    for (int l = 0; l < s->members; l++) a[l] = a_at[l];
    switch (form) {
    case FORTRAN: SOLVE_GROUPS(F77, int); break;
    case FORTRAN_64: SOLVE_GROUPS(F77_64, int64_t); break;
    case C: C_GROUPS(CBLAS, COLUMN, int); break;
    case C_ROWS: C_GROUPS(CBLAS, ROW, int); break;
    default: C_GROUPS(CBLAS_64, COLUMN, int64_t); break;
    }
}

static void NAME(solves)(enum form form, bool groups)
{
    static const struct { int m, n; } sizes[] = { { 1, 1 }, { 7, 5 }, { 16, 16 }, { 5, 40 }, { 66, 20 },
                                                  { 20, 66 } };
    char name[80];
    bool right = true;
    for (int how = 0; how < 24; how++)
        for (int x = 0; x < (form == FORTRAN_64 || form == C_64 ? 3 : 6); x++) {
            const shape s = { .side = "LR"[how % 2], .uplo = "UL"[how / 2 % 2], .diag = "NU"[how / 4 % 2],
                              .trans = "NTC"[how / 8], .m = sizes[x].m, .n = sizes[x].n, .members = MEMBERS,
                              .alpha = x % 2 ? 1 : -0.5 };
            NAME(data) *d = NAME(solve_data)(&s, form == C_ROWS);
            (groups ? NAME(solve_groups) : NAME(solve_strided))(d, form);
            const bool solved = NAME(is_solved)(d);
            if (!solved)
                printf("  %c%c%c%c %d x %d\n", s.side, s.uplo, s.trans, s.diag, s.m, s.n);
            right &= solved;
            NAME(drop)(d);
        }
    snprintf(name, sizeof name, "%s%s, %s", TEXT(trsm_batch), groups ? "" : "_strided", forms[form]);
    tell(right, name);
}

/* Neighbouring groups that differ in one letter are calls of their own. */
static void NAME(mixed)(void)
{
    enum { GROUPS = 6, N = 7 };
    static const char side[] = "LLLLRR", uplo[] = "UULLLL", trans[] = "NTTTTN", diag[] = "NNNUUU";
    shape s[GROUPS];
    NAME(data) *d[GROUPS];
    const ELEMENT *a[GROUPS];
    ELEMENT *b[GROUPS], alpha[GROUPS];
    int n[GROUPS], ld[GROUPS], size[GROUPS];
    const int groups = GROUPS;
    bool right = true;
    for (int g = 0; g < GROUPS; g++) {
        s[g] = (shape){ side[g], uplo[g], trans[g], diag[g], N, N, 1, 1, 0 };
        d[g] = NAME(solve_data)(&s[g], false);
        a[g] = NAME(member)(&d[g]->a, true, 0);
        b[g] = NAME(member)(&d[g]->b, true, 0);
        alpha[g] = 1;
        n[g] = N;
        ld[g] = d[g]->lda;
        size[g] = 1;
    }
    F77(trsm_batch)(side, uplo, trans, diag, n, n, alpha, a, ld, b, ld, &groups, size);
    for (int g = 0; g < GROUPS; g++) {
        right &= NAME(is_solved)(d[g]);
        NAME(drop)(d[g]);
    }
    tell(right, TEXT(trsm_batch) ", groups of different letters");
}

/* alpha = 0 reads neither A nor B; a NaN in B stays in its column, a zero on a diagonal makes an infinity. */
static void NAME(special)(void)
{
    shape s = { 'L', 'L', 'N', 'N', 20, 6, MEMBERS, 0, 0 };
    NAME(data) *d = NAME(solve_data)(&s, false);
    bool right = true;
    ELEMENT *a = NAME(member)(&d->a, false, 1), *b = NAME(member)(&d->b, false, 1);
    for (int e = 0; e < ROOM; e++) a[e] = b[e] = NAN;
    send(&d->a);
    send(&d->b);
    NAME(solve_strided)(d, FORTRAN);
    fetch(&d->b);
    for (int l = 0; l < MEMBERS; l++)
        for (int i = 0; i < s.m; i++)
            for (int j = 0; j < s.n; j++) right &= NAME(member)(&d->b, false, l)[i + j * d->ldb] == 0;
    NAME(drop)(d);
    s.alpha = 1;
    d = NAME(solve_data)(&s, false);
    a = NAME(member)(&d->a, false, 2);
    b = NAME(member)(&d->b, false, 2);
    a[7 + 7 * d->lda] = 0;
    b[3 + 4 * d->ldb] = NAN;
    send(&d->a);
    send(&d->b);
    NAME(solve_strided)(d, C);
    fetch(&d->b);
    b = NAME(member)(&d->b, false, 2);
    for (int j = 0; j < s.n; j++)
        for (int i = 0; i < s.m; i++) {
            const double complex x = b[i + j * d->ldb];
            const bool finite = isfinite(creal(x)) && isfinite(cimag(x));
            right &= finite == (i < (j == 4 ? 3 : 7));
        }
    for (int i = 0; i < s.m; i++) right &= isfinite(creal(NAME(member)(&d->b, false, 3)[i]));
    NAME(drop)(d);
    tell(right, TEXT(trsm_batch_strided) ", alpha = 0, NaN and a zero on a diagonal");
}

/* Rows of A and B times powers of two that make a diagonal's inverse infinite, or inaccurate; the others of
   small integers, so that X is exact. (For a GPU: hosts multiply by the inverse.) */
static void NAME(scaled)(void)
{
    const shape s = { 'L', 'L', 'N', 'N', 40, 20, MEMBERS, 1, 0 };
    const bool is_double = NAME(unit)() < 0x1p-30;
    const double scales[] = { 1, is_double ? 0x1p-1065 : 0x1p-140, is_double ? 0x1p1010 : 0x1p115 };
    NAME(data) *d = NAME(solve_data)(&s, false);
    bool right = true;
    for (int l = 0; l < s.members; l++) {
        ELEMENT *a = NAME(member)(&d->a, false, l), *b = NAME(member)(&d->b, false, l);
        for (int i = 0; i < s.m; i++)
            for (int j = 0; j < i; j++) a[i + j * d->lda] = (i + 2 * j + l) % 5 - 2;
        for (int i = 0; i < s.m; i++) a[i * (1 + d->lda)] = (ELEMENT)((i % 2 ? 2 : -1) * (i % 4 < 2 ? 1 : I));
        for (int i = 0; i < s.m; i++)          /* of real types the third and fourth are 0 */
            if (a[i * (1 + d->lda)] == 0) a[i * (1 + d->lda)] = 1;
        for (int j = 0; j < s.n; j++)
            for (int i = s.m - 1; i >= 0; i--) {
                WIDE sum = 0;
                for (int p = 0; p <= i; p++) sum += (WIDE)a[i + p * d->lda] * ((p + j) % 3 - 1);
                b[i + j * d->ldb] = (ELEMENT)(sum * scales[(i + l) % 3]);
            }
        for (int i = 0; i < s.m; i++)
            for (int j = 0; j <= i; j++) a[i + j * d->lda] *= (ELEMENT)scales[(i + l) % 3];
    }
    send(&d->a);
    send(&d->b);
    NAME(solve_strided)(d, FORTRAN);
    fetch(&d->b);
    for (int l = 0; l < s.members; l++)
        for (int j = 0; j < s.n; j++)
            for (int i = 0; i < s.m; i++)
                right &= NAME(member)(&d->b, false, l)[i + j * d->ldb] == (i + j) % 3 - 1;
    NAME(drop)(d);
    tell(right, TEXT(trsm_batch_strided) ", rows of very different size");
}

/* ---- SYRK. A has no other triangle, C has. */

static NAME(data) *NAME(rank_k_data)(const shape *s, bool rows)
{
    NAME(data) *d = calloc(1, sizeof *d);
    const int high = s->trans == 'N' ? s->m : s->n, wide = s->trans == 'N' ? s->n : s->m;
    d->of = s;
    d->rows = rows;
    d->lda = (rows ? wide : high) + PAD;
    d->ldb = s->m + PAD;
    d->a = new_memory(MEMBERS * ROOM * sizeof(ELEMENT));
    d->b = new_memory(MEMBERS * ROOM * sizeof(ELEMENT));
    for (int l = 0; l < s->members; l++) {
        ELEMENT *a = NAME(member)(&d->a, false, l), *c = NAME(member)(&d->b, false, l);
        NAME(fill)(a, high, wide, d->lda, rows, 'G', false);
        NAME(fill)(c, s->m, s->m, d->ldb, rows, s->uplo, false);
        for (int e = 0; e < ROOM; e++) {
            d->old_a[l][e] = a[e];
            d->old_b[l][e] = c[e];
        }
    }
    send(&d->a);
    send(&d->b);
    return d;
}

static bool NAME(is_multiplied)(const NAME(data) *d)
{
    const shape *s = d->of;
    const int ra = d->rows ? d->lda : 1, ca = d->rows ? 1 : d->lda;
    bool right = true;
    fetch(&d->b);
    for (int l = 0; l < s->members; l++) {
        const ELEMENT *c = NAME(member)(&d->b, false, l);
        for (int e = 0; e < ROOM; e++) {
            const int i = d->rows ? e / d->ldb : e % d->ldb, j = d->rows ? e % d->ldb : e / d->ldb;
            if (i >= s->m || j >= s->m || (i != j && (s->uplo == 'L') != (i > j))) {
                right &= NAME(same)(d->old_b[l][e], c[e]);
                continue;
            }
            WIDE sum = (WIDE)s->beta * d->old_b[l][e];
            double size = 2 * NAME(size)(sum);
            for (int p = 0; p < s->n; p++) {
                const WIDE x = NAME(op)(d->old_a[l], s->trans, i, p, ra, ca),
                           y = NAME(op)(d->old_a[l], s->trans, j, p, ra, ca);
                const WIDE product = (WIDE)s->alpha * x * y;
                sum += product;
                size += NAME(size)(product);
            }
            right &= NAME(size)(sum - c[e]) <= 4 * (s->n + 8) * NAME(unit)() * size;
        }
    }
    return right;
}

#define RANK_K_STRIDED(name, INT)                                                                           \
    do {                                                                                                    \
        const INT n = s->m, k = s->n, lda = d->lda, ldc = d->ldb, stride = ROOM, size = s->members;         \
        name(syrk_batch_strided)(&s->uplo, &s->trans, &n, &k, alpha, a[0], &lda, &stride, beta, c[0], &ldc, \
                                 &stride, &size);                                                           \
    } while (0)
#define C_RANK_K_STRIDED(name, layout)                                                                      \
    name(syrk_batch_strided)(layout, c_uplo(s->uplo), c_trans(s->trans), s->m, s->n, PASS(alpha[0]), a[0],  \
                             d->lda, ROOM, PASS(beta[0]), c[0], d->ldb, ROOM, s->members)
#define RANK_K_GROUPS(name, INT)                                                                            \
    do {                                                                                                    \
        const char uplo[] = { s->uplo, s->uplo }, trans[] = { s->trans, s->trans };                         \
        const INT n[] = { s->m, s->m }, k[] = { s->n, s->n }, lda[] = { d->lda, d->lda },                   \
                  ldc[] = { d->ldb, d->ldb }, size[] = { 2, s->members - 2 }, groups = 2;                   \
        name(syrk_batch)(uplo, trans, n, k, alpha, a, lda, beta, c, ldc, &groups, size);                    \
    } while (0)
#define C_RANK_K_GROUPS(name, layout, INT)                                                                  \
    do {                                                                                                    \
        const int uplo[] = { c_uplo(s->uplo), c_uplo(s->uplo) },                                            \
                  trans[] = { c_trans(s->trans), c_trans(s->trans) };                                       \
        const INT n[] = { s->m, s->m }, k[] = { s->n, s->n }, lda[] = { d->lda, d->lda },                   \
                  ldc[] = { d->ldb, d->ldb }, size[] = { 2, s->members - 2 };                               \
        name(syrk_batch)(layout, uplo, trans, n, k, alpha, a, lda, beta, c, ldc, 2, size);                  \
    } while (0)

static void NAME(multiply)(const NAME(data) *d, enum form form, bool groups)
{
    const shape *s = d->of;
    const ELEMENT alpha[] = { (ELEMENT)s->alpha, (ELEMENT)s->alpha },
                  beta[] = { (ELEMENT)s->beta, (ELEMENT)s->beta };
    ELEMENT *c[MEMBERS], *a_at[MEMBERS];
    const ELEMENT *a[MEMBERS];
    NAME(addresses)(&d->a, a_at, s->members, groups);
    NAME(addresses)(&d->b, c, s->members, groups);
    for (int l = 0; l < s->members; l++) a[l] = a_at[l];
    switch (2 * form + groups) {
    case 2 * FORTRAN: RANK_K_STRIDED(F77, int); break;
    case 2 * FORTRAN + 1: RANK_K_GROUPS(F77, int); break;
    case 2 * FORTRAN_64: RANK_K_STRIDED(F77_64, int64_t); break;
    case 2 * FORTRAN_64 + 1: RANK_K_GROUPS(F77_64, int64_t); break;
    case 2 * C: C_RANK_K_STRIDED(CBLAS, COLUMN); break;
    case 2 * C + 1: C_RANK_K_GROUPS(CBLAS, COLUMN, int); break;
    case 2 * C_ROWS: C_RANK_K_STRIDED(CBLAS, ROW); break;
    case 2 * C_ROWS + 1: C_RANK_K_GROUPS(CBLAS, ROW, int); break;
    case 2 * C_64: C_RANK_K_STRIDED(CBLAS_64, COLUMN); break;
    default: C_RANK_K_GROUPS(CBLAS_64, COLUMN, int64_t); break;
    }
}

static void NAME(rank_ks)(enum form form, bool groups)
{
    static const struct { int n, k; } sizes[] = { { 1, 1 }, { 7, 5 }, { 16, 16 }, { 40, 66 }, { 66, 20 } };
    char name[80];
    bool right = true;
    for (int how = 0; how < 4; how++)
        for (int x = 0; x < 5; x++) {
            const shape s = { .uplo = "UL"[how % 2], .trans = "NT"[how / 2], .m = sizes[x].n,
                              .n = sizes[x].k, .members = MEMBERS, .alpha = -0.5, .beta = 2 };
            NAME(data) *d = NAME(rank_k_data)(&s, form == C_ROWS);
            NAME(multiply)(d, form, groups);
            const bool multiplied = NAME(is_multiplied)(d);
            if (!multiplied) printf("  %c%c n=%d k=%d\n", s.uplo, s.trans, s.m, s.n);
            right &= multiplied;
            NAME(drop)(d);
        }
    snprintf(name, sizeof name, "%s%s, %s", TEXT(syrk_batch), groups ? "" : "_strided", forms[form]);
    tell(right, name);
}

static void NAME(all)(void)
{
    for (int form = 0; form < (few ? 1 : FORMS); form++)
        for (int groups = 0; groups < 2; groups++) {
            NAME(solves)((enum form)form, groups);
            NAME(rank_ks)((enum form)form, groups);
        }
    NAME(special)();
    if (device) NAME(scaled)();
    NAME(mixed)();
}

#undef WIDE
#undef PASTE3_
#undef PASTE3
#undef NAME
#undef F77
#undef F77_64
#undef CBLAS
#undef CBLAS_64
#undef TEXT__
#undef TEXT_
#undef TEXT
#undef DECLARE
#undef SOLVE_STRIDED
#undef C_STRIDED
#undef SOLVE_GROUPS
#undef C_GROUPS
#undef RANK_K_STRIDED
#undef C_RANK_K_STRIDED
#undef RANK_K_GROUPS
#undef C_RANK_K_GROUPS
#undef LETTER
#undef ELEMENT
#undef SCALAR
#undef PASS
