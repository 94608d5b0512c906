/* SPDX-License-Identifier: MIT */
/* The checks of kept.c in one type: LETTER, ELEMENT, REAL, ROUNDING (u), IS_COMPLEX or not. */
#define PASTE_(a, b, c) a##b##c
#define PASTE(a, b, c) PASTE_(a, b, c)
#define F77(stem) PASTE(, LETTER, PASTE(stem, _, ))
#define NAME(stem) PASTE(stem, _, LETTER)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define HERE TEXT(LETTER)[0]

void F77(getrf)(const int *, const int *, ELEMENT *, const int *, int *, int *);
void F77(gesv)(const int *, const int *, ELEMENT *, const int *, int *, ELEMENT *, const int *, int *);
void F77(getrs)(const char *, const int *, const int *, const ELEMENT *, const int *, const int *, ELEMENT *,
                const int *, int *, size_t);
void F77(getri)(const int *, ELEMENT *, const int *, const int *, ELEMENT *, const int *, int *);
void F77(potrf)(const char *, const int *, ELEMENT *, const int *, int *, size_t);
void F77(potrs)(const char *, const int *, const int *, const ELEMENT *, const int *, ELEMENT *, const int *,
                int *, size_t);
void F77(potri)(const char *, const int *, ELEMENT *, const int *, int *, size_t);
#ifdef IS_COMPLEX
#define OF_ESTIMATE REAL
#else
#define OF_ESTIMATE int
#endif
void F77(gecon)(const char *, const int *, const ELEMENT *, const int *, const REAL *, REAL *, ELEMENT *,
                OF_ESTIMATE *, int *, size_t);
void F77(pocon)(const char *, const int *, const ELEMENT *, const int *, const REAL *, REAL *, ELEMENT *,
                OF_ESTIMATE *, int *, size_t);
void F77(gemm)(const char *, const char *, const int *, const int *, const int *, const ELEMENT *,
               const ELEMENT *, const int *, const ELEMENT *, const int *, const ELEMENT *, ELEMENT *,
               const int *, size_t, size_t);

static ELEMENT NAME(x)[MOST * MOST], NAME(b)[MOST * NRHS], NAME(y)[MOST * NRHS], NAME(t)[MOST * NRHS],
    NAME(big)[MOST * MOST], NAME(work)[64 * MOST];

static ELEMENT NAME(draw)(void)
{
    ELEMENT value = (REAL)next();
#ifdef IS_COMPLEX
    value += (REAL)next() * I;
#endif
    return value;
}
static ELEMENT NAME(conjugate)(ELEMENT value)
{
#ifdef IS_COMPLEX
    return creal(value) - cimag(value) * I;
#else
    return value;
#endif
}
static double NAME(size)(ELEMENT value) { return cabs((double complex)value); }

/* A matrix in x, Hermitian and dominant if it is Cholesky's, and B in b and y. */
static void NAME(fresh)(int positive)
{
    ELEMENT *x = NAME(x);
    for (int i = 0; i < ld * n; i++) x[i] = i % ld < n ? NAME(draw)() : 7;
    for (int j = 0; positive && j < n; j++) {
        for (int i = 0; i < j; i++) x[j + i * ld] = NAME(conjugate)(x[i + j * ld]);
        x[j + j * ld] = n;
    }
    for (int i = 0; i < ld * NRHS; i++) NAME(b)[i] = i % ld < n ? NAME(draw)() : 7;
    memcpy(NAME(y), NAME(b), sizeof NAME(b));
}

/* t = T t for the triangle of x's, its diagonal 1 if unit. */
static void NAME(multiply)(char uplo, int adjoint, int unit)
{
    static ELEMENT to[MOST];
    for (int c = 0; c < NRHS; c++) {
        ELEMENT *v = NAME(t) + c * ld;
        for (int i = 0; i < n; i++) {
            to[i] = 0;
            for (int j = 0; j < n; j++) {
                const int row = adjoint ? j : i, col = adjoint ? i : j;
                if (row != col && (uplo == 'L') != (row > col)) continue;
                const ELEMENT e = NAME(x)[row + col * ld];
                to[i] += (row == col && unit ? 1 : adjoint ? NAME(conjugate)(e) : e) * v[j];
            }
        }
        memcpy(v, to, sizeof *to * (size_t)n);
    }
}

/* What the factors in x say of y: whether they times it are b. uplo: of Cholesky; 'G': P L U. */
static int NAME(solved)(char uplo)
{
    double worst = 0, of_y = 0;
    memcpy(NAME(t), NAME(y), sizeof NAME(y));
    if (uplo == 'G') {
        NAME(multiply)('U', 0, 0);
        NAME(multiply)('L', 0, 1);
        for (int c = 0; c < NRHS; c++)
            for (int i = n - 1; i >= 0; i--) {
                ELEMENT *at = &NAME(t)[i + c * ld], *from = &NAME(t)[ipiv[i] - 1 + c * ld];
                const ELEMENT kept = *at;
                *at = *from;
                *from = kept;
            }
    } else {
        NAME(multiply)(uplo, uplo == 'L', 0);
        NAME(multiply)(uplo, uplo == 'U', 0);
    }
    for (int i = 0; i < ld * NRHS; i++)
        if (i % ld < n) {
            worst = fmax(worst, NAME(size)(NAME(t)[i] - NAME(b)[i]));
            of_y = fmax(of_y, NAME(size)(NAME(y)[i]));
        } else if (NAME(y)[i] != 7) {
            return 0;
        }
    return worst <= 50.0 * n * ROUNDING * (1 + of_y * n);
}

/* Solves with what is in x. again: whether the factors are to be sent. */
static void NAME(solve)(char uplo, int again, const char *what)
{
    const int nrhs = NRHS;
    int info = -1;
    memcpy(NAME(y), NAME(b), sizeof NAME(b));
    sent();
    if (uplo == 'G') F77(getrs)("N", &n, &nrhs, NAME(x), &ld, ipiv, NAME(y), &ld, &info, 1);
    else F77(potrs)(&uplo, &n, &nrhs, NAME(x), &ld, NAME(y), &ld, &info, 1);
    const double of_b = (double)n * NRHS * sizeof(ELEMENT), matrix = (double)n * n * sizeof(ELEMENT);
    const int was_sent = (double)sent() - of_b > 0.45 * matrix;
    expect(info == 0 && NAME(solved)(uplo), what, HERE);
    expect(again == was_sent, again ? "factors not sent again" : "factors sent again", HERE);
    if (again != was_sent) printf("  %s, %c\n", what, uplo);
}

static void NAME(factor)(char uplo)
{
    int info = -1;
    NAME(fresh)(uplo != 'G');
    if (uplo == 'G') F77(getrf)(&n, &n, NAME(x), &ld, ipiv, &info);
    else F77(potrf)(&uplo, &n, NAME(x), &ld, &info, 1);
    expect(info == 0, "factorisation", HERE);
}

static double NAME(estimate)(char uplo)
{
    OF_ESTIMATE of_estimate[2 * MOST];
    const REAL norm = 1;
    REAL rcond = -1;
    int info = -1;
    if (uplo == 'G') F77(gecon)("1", &n, NAME(x), &ld, &norm, &rcond, NAME(work), of_estimate, &info, 1);
    else F77(pocon)(&uplo, &n, NAME(x), &ld, &norm, &rcond, NAME(work), of_estimate, &info, 1);
    return info == 0 ? rcond : -1;
}

/* Flips the last bit of an element of x, or back. */
static void NAME(flip)(int i, int j) { *(unsigned char *)&NAME(x)[i + j * ld] ^= 1; }

static void NAME(changed)(char uplo)
{
    const int at[][2] = { { 0, 0 }, { n - 1, n - 1 }, { n / 2, n / 3 }, { n / 3, n / 2 }, { n - 1, 0 },
                          { 0, n - 1 }, { 17, 17 } };
    for (int p = 0; p < (int)(sizeof at / sizeof *at); p++) {
        const int i = at[p][0], j = at[p][1], inside = uplo == 'G' || i == j || (uplo == 'L') == (i > j);
        NAME(factor)(uplo);
        NAME(solve)(uplo, 0, "the factors are kept");
        memcpy(NAME(big), NAME(y), sizeof NAME(y));
        NAME(flip)(i, j);
        NAME(solve)(uplo, inside, "a bit of the factors was changed");
        NAME(flip)(i, j);
        NAME(solve)(uplo, inside, "and changed back");
        expect(!memcmp(NAME(big), NAME(y), sizeof NAME(y)), "the same bits, kept and sent", HERE);
    }
    /* Another matrix in its place, which differs much, and columns that have changed places. */
    NAME(factor)(uplo);
    for (int i = 0; i < ld * n; i++) NAME(x)[i] *= i % ld < n ? 2 : 1;
    NAME(solve)(uplo, 1, "twice the factors");
    NAME(factor)(uplo);
    for (int i = 0; i < n && uplo == 'G'; i++) {
        const ELEMENT kept = NAME(x)[i];
        NAME(x)[i] = NAME(x)[i + ld];
        NAME(x)[i + ld] = kept;
    }
    if (uplo == 'G') NAME(solve)(uplo, 1, "two columns have changed places");
}

static void NAME(inverts)(char uplo)
{
    const int lwork = 64 * MOST;
    int info = -1;
    NAME(factor)(uplo);
    memcpy(NAME(big), NAME(x), sizeof NAME(x));
    sent();
    if (uplo == 'G') F77(getri)(&n, NAME(x), &ld, ipiv, NAME(work), &lwork, &info);
    else F77(potri)(&uplo, &n, NAME(x), &ld, &info, 1);
    expect(info == 0 && (double)sent() < 0.1 * n * n * sizeof(ELEMENT), "inverse: factors sent again", HERE);
    /* A column of the inverse, that the factors solve. */
    for (int i = 0; i < n; i++)
        NAME(y)[i] = uplo == 'G' || (uplo == 'L') == (i >= n / 2)
                     ? NAME(x)[i + n / 2 * ld] : NAME(conjugate)(NAME(x)[n / 2 + i * ld]);
    for (int i = 0; i < ld * NRHS; i++) NAME(b)[i] = i == n / 2 ? 1 : i % ld < n ? 0 : 7;
    for (int i = 0; i < ld * NRHS; i++) if (i >= n) NAME(y)[i] = i % ld < n ? 0 : 7;
    memcpy(NAME(x), NAME(big), sizeof NAME(x));
    expect(NAME(solved)(uplo), "inverse", HERE);
    NAME(solve)(uplo, 1, "after an inverse has taken the factors' place");
    NAME(factor)(uplo);
    NAME(flip)(n / 2, n / 2);
    memcpy(NAME(big), NAME(x), sizeof NAME(x));
    if (uplo == 'G') F77(getri)(&n, NAME(x), &ld, ipiv, NAME(work), &lwork, &info);
    else F77(potri)(&uplo, &n, NAME(x), &ld, &info, 1);
    expect(info == 0 && (double)sent() > 0.45 * n * n * sizeof(ELEMENT), "inverse of changed factors", HERE);
}

static void NAME(estimates)(char uplo)
{
    NAME(factor)(uplo);
    sent();
    const double kept = NAME(estimate)(uplo), little = (double)sent();
    NAME(flip)(n / 2, n / 2);
    const double changed = NAME(estimate)(uplo), much = (double)sent();
    const double matrix = (double)n * n * sizeof(ELEMENT);
    expect(kept > 0 && fabs(changed - kept) <= 1e-3 * kept, "estimates", HERE);
    expect(little < 0.1 * matrix && much > 0.45 * matrix, "which estimate had to send", HERE);
    /* The same, but nearly singular: the change decides. */
    NAME(factor)(uplo);
    NAME(x)[n - 1 + (n - 1) * ld] *= (REAL)1e-6;
    expect(NAME(estimate)(uplo) < 1e-3 * kept, "estimate of changed factors", HERE);
}

static void NAME(others)(char uplo)
{
    const int nrhs = NRHS;
    const ELEMENT alpha = 1, beta = 0;
    int info = -1;
    /* Solves leave them. */
    NAME(factor)(uplo);
    for (int i = 0; i < 3; i++) NAME(solve)(uplo, 0, "one solve after the other");
    /* Beyond what is kept, another matrix's factors. */
    ELEMENT *of_another = malloc(sizeof NAME(x));
    NAME(fresh)(1);
    memcpy(of_another, NAME(x), sizeof NAME(x));
    NAME(factor)(uplo);
    F77(potrf)("L", &n, of_another, &ld, &info, 1);
    NAME(solve)(uplo, 1, "another factorisation between");
    free(of_another);
    /* A product between may or may not need their place, but must not be taken for them. */
    NAME(factor)(uplo);
    F77(gemm)("N", "N", &n, &n, &n, &alpha, NAME(x), &ld, NAME(x), &ld, &beta, NAME(big), &ld, 1, 1);
    memcpy(NAME(y), NAME(b), sizeof NAME(b));
    if (uplo == 'G') F77(getrs)("N", &n, &nrhs, NAME(x), &ld, ipiv, NAME(y), &ld, &info, 1);
    else F77(potrs)(&uplo, &n, &nrhs, NAME(x), &ld, NAME(y), &ld, &info, 1);
    expect(info == 0 && NAME(solved)(uplo), "after a product", HERE);
    /* The factors of gesv. */
    if (uplo != 'G') return;
    NAME(fresh)(0);
    F77(gesv)(&n, &nrhs, NAME(x), &ld, ipiv, NAME(y), &ld, &info);
    expect(info == 0 && NAME(solved)('G'), "gesv", HERE);
    NAME(solve)('G', 0, "gesv's factors");
    /* As the other triangle's they are others. */
    ELEMENT *x = NAME(x);
    for (int j = 0; j < n; j++) x[j + j * ld] += n;
    memcpy(NAME(y), NAME(b), sizeof NAME(b));
    F77(potrs)("U", &n, &nrhs, x, &ld, NAME(y), &ld, &info, 1);
    expect(info == 0 && NAME(solved)('U'), "LU's as Cholesky's", HERE);
}

/* So many columns that they go home in two panels, the first while the second is computed; NRHS of them are
   checked. Had any gone before it was seen that the factors have changed, they would be divided twice. */
static void NAME(wide)(char uplo)
{
    const int wide = 2300;
    const size_t column = (size_t)ld * sizeof(ELEMENT);
    ELEMENT *before = malloc(column * (size_t)wide), *after = malloc(column * (size_t)wide);
    int info = -1;
    if (!before || !after) exit(101);
    for (int i = 0; i < ld * wide; i++) before[i] = i % ld < n ? NAME(draw)() : 7;
    for (int changes = 0; changes < 2; changes++) {
        memcpy(after, before, column * (size_t)wide);
        NAME(factor)(uplo);
        if (changes) NAME(flip)(n / 2, n / 2);
        if (uplo == 'G') F77(getrs)("N", &n, &wide, NAME(x), &ld, ipiv, after, &ld, &info, 1);
        else F77(potrs)(&uplo, &n, &wide, NAME(x), &ld, after, &ld, &info, 1);
        for (int c = 0; c < NRHS; c++) {
            const int from = c * (wide - 1) / (NRHS - 1);
            memcpy(NAME(b) + c * ld, before + from * ld, column);
            memcpy(NAME(y) + c * ld, after + from * ld, column);
        }
        expect(info == 0 && NAME(solved)(uplo), changes ? "two panels, changed" : "two panels", HERE);
    }
    free(before);
    free(after);
}

static void NAME(all)(void)
{
    for (const char *uplo = "GLU"; *uplo; uplo++) {
        NAME(changed)(*uplo);
        NAME(inverts)(*uplo);
        NAME(estimates)(*uplo);
        NAME(others)(*uplo);
    }
    NAME(wide)('G');
    NAME(wide)('U');
}

#undef PASTE_
#undef PASTE
#undef F77
#undef NAME
#undef TEXT_
#undef TEXT
#undef HERE
#undef OF_ESTIMATE
#undef LETTER
#undef ELEMENT
#undef REAL
#undef ROUNDING
#undef IS_COMPLEX
