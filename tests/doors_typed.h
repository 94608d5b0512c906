/* SPDX-License-Identifier: MIT */
/* The doors of one type: the body of four. doors.c includes it once for each type, with LETTER, ELEMENT and
   REAL (of which it is made) defined, SCALAR (how CBLAS passes alpha and beta), GIVEN(x), which makes one of
   x, and IS_COMPLEX, 0 or 1.
   The prototypes are the library's own. */
#define PASTE(x, letter, y) x##letter##y
#define NAME_(x, letter, y) PASTE(x, letter, y)
#define NAME(x) NAME_(x##_, LETTER, )
#define F77(x) NAME_(, LETTER, x##_)
#define CBLAS(x) NAME_(cblas_, LETTER, x)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

void F77(gemm)(GPB_F77_GEMM_PARAMS(ELEMENT, int));
void F77(gemm_64)(GPB_F77_GEMM_PARAMS(ELEMENT, int64_t));
void CBLAS(gemm)(GPB_CBLAS_GEMM_PARAMS(ELEMENT, SCALAR, int));
void CBLAS(gemm64_)(GPB_CBLAS_GEMM_PARAMS(ELEMENT, SCALAR, int64_t));
void F77(gemmtr)(GPB_F77_GEMMTR_PARAMS(ELEMENT, int));
void CBLAS(gemmtr)(GPB_CBLAS_GEMMTR_PARAMS(ELEMENT, SCALAR, int));
void CBLAS(gemm_batch)(GPB_CBLAS_GEMM_BATCH_PARAMS(ELEMENT, int));
void F77(gemm_batch_strided)(GPB_F77_GEMM_BATCH_STRIDED_PARAMS(ELEMENT, int));
void CBLAS(gemm_batch_strided)(GPB_CBLAS_GEMM_BATCH_STRIDED_PARAMS(ELEMENT, SCALAR, int));

void F77(syrk)(GPB_F77_SYRK_PARAMS(ELEMENT, ELEMENT, int));
void CBLAS(syrk64_)(GPB_CBLAS_SYRK_PARAMS(ELEMENT, SCALAR, int64_t));
void F77(syrk_batch_strided)(GPB_F77_SYRK_BATCH_STRIDED_PARAMS(ELEMENT, int));
void CBLAS(syrk_batch)(GPB_CBLAS_SYRK_BATCH_PARAMS(ELEMENT, int));
void F77(syr2k)(GPB_F77_SYR2K_PARAMS(ELEMENT, ELEMENT, int));
void CBLAS(syr2k64_)(GPB_CBLAS_SYR2K_PARAMS(ELEMENT, SCALAR, SCALAR, int64_t));

void F77(symm)(GPB_F77_SYMM_PARAMS(ELEMENT, int));
void CBLAS(symm64_)(GPB_CBLAS_SYMM_PARAMS(ELEMENT, SCALAR, int64_t));

#if IS_COMPLEX
void F77(hemm)(GPB_F77_SYMM_PARAMS(ELEMENT, int));
void CBLAS(hemm)(GPB_CBLAS_SYMM_PARAMS(ELEMENT, SCALAR, int));
void F77(herk)(GPB_F77_SYRK_PARAMS(ELEMENT, REAL, int));
void CBLAS(herk)(GPB_CBLAS_SYRK_PARAMS(ELEMENT, REAL, int));
void F77(her2k_64)(GPB_F77_SYR2K_PARAMS(ELEMENT, REAL, int64_t));
void CBLAS(her2k)(GPB_CBLAS_SYR2K_PARAMS(ELEMENT, SCALAR, REAL, int));
void F77(gemm3m)(GPB_F77_GEMM_PARAMS(ELEMENT, int));
void CBLAS(gemm3m64_)(GPB_CBLAS_GEMM_PARAMS(ELEMENT, SCALAR, int64_t));
#endif

/* The call's fields as the doors take them. */
typedef struct NAME(plain) {
    char transa, transb, uplo;
    int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, batch;
    ELEMENT alpha, beta;
    const ELEMENT *a, *b;
    ELEMENT *c;
} NAME(plain);

static NAME(plain) NAME(plain_of)(const gpb_call *g)
{
    const gpb_matrix *a = &g->x[GPB_A], *b = &g->x[GPB_B], *c = &g->x[GPB_C];
    return (NAME(plain)){ a->trans, b->trans, c->uplo, g->m, g->n, g->k, a->ld, b->ld, c->ld, a->stride,
                          b->stride, c->stride, g->batch, (ELEMENT)g->alpha, (ELEMENT)g->beta, a->base,
                          b->base, gpb_call_member(g, GPB_C, 0) };
}

static void NAME(through_f77)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    const int m = (int)p.m, n = (int)p.n, k = (int)p.k, lda = (int)p.lda, ldb = (int)p.ldb, ldc = (int)p.ldc;
    F77(gemm)(&p.transa, &p.transb, &m, &n, &k, &p.alpha, p.a, &lda, p.b, &ldb, &p.beta, p.c, &ldc);
}

static void NAME(through_f77_64)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    F77(gemm_64)(&p.transa, &p.transb, &p.m, &p.n, &p.k, &p.alpha, p.a, &p.lda, p.b, &p.ldb, &p.beta, p.c,
                 &p.ldc);
}

static void NAME(through_columns)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    CBLAS(gemm)(COLUMN, trans(p.transa), trans(p.transb), (int)p.m, (int)p.n, (int)p.k, GIVEN(p.alpha),
                p.a, (int)p.lda, p.b, (int)p.ldb, GIVEN(p.beta), p.c, (int)p.ldc);
}

/* Row-major with the operands exchanged is the same product. */
static void NAME(through_rows)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    CBLAS(gemm)(ROW, trans(p.transb), trans(p.transa), (int)p.n, (int)p.m, (int)p.k, GIVEN(p.alpha), p.b,
                (int)p.ldb, p.a, (int)p.lda, GIVEN(p.beta), p.c, (int)p.ldc);
}

static void NAME(through_rows_64)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    CBLAS(gemm64_)(ROW, trans(p.transb), trans(p.transa), p.n, p.m, p.k, GIVEN(p.alpha), p.b, p.ldb, p.a,
                   p.lda, GIVEN(p.beta), p.c, p.ldc);
}

static void NAME(through_triangle)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    const int n = (int)p.n, k = (int)p.k, lda = (int)p.lda, ldb = (int)p.ldb, ldc = (int)p.ldc;
    F77(gemmtr)(&p.uplo, &p.transa, &p.transb, &n, &k, &p.alpha, p.a, &lda, p.b, &ldb, &p.beta, p.c, &ldc);
}

static void NAME(through_triangle_rows)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    CBLAS(gemmtr)(ROW, p.uplo == 'U' ? 122 : 121, trans(p.transb), trans(p.transa), (int)p.n, (int)p.k,
                  GIVEN(p.alpha), p.b, (int)p.ldb, p.a, (int)p.lda, GIVEN(p.beta), p.c, (int)p.ldc);
}

static void NAME(through_strided)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    const int m = (int)p.m, n = (int)p.n, k = (int)p.k, lda = (int)p.lda, ldb = (int)p.ldb, ldc = (int)p.ldc,
        count = (int)p.batch;
    const int sa = (int)p.stride_a, sb = (int)p.stride_b, sc = (int)p.stride_c;
    F77(gemm_batch_strided)(&p.transa, &p.transb, &m, &n, &k, &p.alpha, p.a, &lda, &sa, p.b, &ldb, &sb,
                            &p.beta, p.c, &ldc, &sc, &count);
}

static void NAME(through_strided_rows)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    CBLAS(gemm_batch_strided)(ROW, trans(p.transb), trans(p.transa), (int)p.n, (int)p.m, (int)p.k,
                              GIVEN(p.alpha), p.b, (int)p.ldb, (int)p.stride_b, p.a, (int)p.lda,
                              (int)p.stride_a, GIVEN(p.beta), p.c, (int)p.ldc, (int)p.stride_c,
                              (int)p.batch);
}

/* The members in two groups of the same shape, or in one. */
static void NAME(through_groups)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    const ELEMENT *a[GPB_TEST_MEMBERS], *b[GPB_TEST_MEMBERS];
    ELEMENT *c[GPB_TEST_MEMBERS];
    const int first = (int)p.batch / 2, sizes[2] = { first ? first : (int)p.batch, (int)p.batch - first };
    int ta[2], tb[2], m[2], n[2], k[2], lda[2], ldb[2], ldc[2];
    ELEMENT alpha[2], beta[2];
    for (int i = 0; i < 2; i++) {
        ta[i] = trans(p.transa);
        tb[i] = trans(p.transb);
        m[i] = (int)p.m;
        n[i] = (int)p.n;
        k[i] = (int)p.k;
        lda[i] = (int)p.lda;
        ldb[i] = (int)p.ldb;
        ldc[i] = (int)p.ldc;
        alpha[i] = p.alpha;
        beta[i] = p.beta;
    }
    for (int64_t l = 0; l < p.batch; l++) {
        a[l] = p.a + l * p.stride_a;
        b[l] = p.b + l * p.stride_b;
        c[l] = p.c + l * p.stride_c;
    }
    CBLAS(gemm_batch)(COLUMN, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, first ? 2 : 1, sizes);
}

static void NAME(through_syrk)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    const int n = (int)p.n, k = (int)p.k, lda = (int)p.lda, ldc = (int)p.ldc;
    F77(syrk)(&p.uplo, &p.transa, &n, &k, &p.alpha, p.a, &lda, &p.beta, p.c, &ldc);
}

/* By rows op(A) is the transpose of what it is by columns, and so is C. */
static void NAME(through_syrk_rows_64)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    CBLAS(syrk64_)(ROW, p.uplo == 'U' ? 122 : 121, trans(p.transb), p.n, p.k, GIVEN(p.alpha), p.a, p.lda,
                   GIVEN(p.beta), p.c, p.ldc);
}

static void NAME(through_syrk_strided)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    const int n = (int)p.n, k = (int)p.k, lda = (int)p.lda, ldc = (int)p.ldc, count = (int)p.batch;
    const int sa = (int)p.stride_a, sc = (int)p.stride_c;
    F77(syrk_batch_strided)(&p.uplo, &p.transa, &n, &k, &p.alpha, p.a, &lda, &sa, &p.beta, p.c, &ldc, &sc,
                            &count);
}

/* One group, by rows. */
static void NAME(through_syrk_group)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    const ELEMENT *a[GPB_TEST_MEMBERS];
    ELEMENT *c[GPB_TEST_MEMBERS];
    const int n = (int)p.n, k = (int)p.k, lda = (int)p.lda, ldc = (int)p.ldc, count = (int)p.batch,
        uplo = p.uplo == 'U' ? 122 : 121, of_a = trans(p.transb);
    for (int64_t l = 0; l < p.batch; l++) {
        a[l] = p.a + l * p.stride_a;
        c[l] = p.c + l * p.stride_c;
    }
    CBLAS(syrk_batch)(ROW, &uplo, &of_a, &n, &k, &p.alpha, a, &lda, &p.beta, c, &ldc, 1, &count);
}

static void NAME(through_syr2k)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    const int n = (int)p.n, k = (int)p.k, lda = (int)p.lda, ldb = (int)p.ldb, ldc = (int)p.ldc;
    F77(syr2k)(&p.uplo, &p.transa, &n, &k, &p.alpha, p.a, &lda, p.b, &ldb, &p.beta, p.c, &ldc);
}

/* By rows A and B also change places. */
static void NAME(through_syr2k_rows_64)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    CBLAS(syr2k64_)(ROW, p.uplo == 'U' ? 122 : 121, trans(p.transb), p.n, p.k, GIVEN(p.alpha), p.b, p.ldb,
                    p.a, p.lda, GIVEN(p.beta), p.c, p.ldc);
}

/* A call of SYMM or HEMM as its doors take it: the symmetric operand is A on either side. By rows it is on
   the other side, and the other triangle is stored. */
typedef struct NAME(sided) {
    char side, uplo;
    int row_side, row_uplo;
    int64_t m, n, lda, ldb, ldc;
    const ELEMENT *a, *b;
} NAME(sided);

static NAME(sided) NAME(sided_of)(const gpb_call *g)
{
    const bool right = gpb_call_mirrors(g, GPB_B);
    const gpb_matrix *a = &g->x[right ? GPB_B : GPB_A], *b = &g->x[right ? GPB_A : GPB_B];
    return (NAME(sided)){ right ? 'R' : 'L', a->uplo, right ? 141 : 142, a->uplo == 'U' ? 122 : 121, g->m,
                          g->n, a->ld, b->ld, g->x[GPB_C].ld, a->base, b->base };
}

static void NAME(through_symm)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    const NAME(sided) s = NAME(sided_of)(g);
    const int m = (int)s.m, n = (int)s.n, lda = (int)s.lda, ldb = (int)s.ldb, ldc = (int)s.ldc;
    F77(symm)(&s.side, &s.uplo, &m, &n, &p.alpha, s.a, &lda, s.b, &ldb, &p.beta, p.c, &ldc);
}

static void NAME(through_symm_rows_64)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    const NAME(sided) s = NAME(sided_of)(g);
    CBLAS(symm64_)(ROW, s.row_side, s.row_uplo, s.n, s.m, GIVEN(p.alpha), s.a, s.lda, s.b, s.ldb,
                   GIVEN(p.beta), p.c, s.ldc);
}

#if IS_COMPLEX
static void NAME(through_her2k_64)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    const REAL beta = __real__ p.beta;
    F77(her2k_64)(&p.uplo, &p.transa, &p.n, &p.k, &p.alpha, p.a, &p.lda, p.b, &p.ldb, &beta, p.c, &p.ldc);
}

static void NAME(through_her2k_rows)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    CBLAS(her2k)(ROW, p.uplo == 'U' ? 122 : 121, trans(p.transb), (int)p.n, (int)p.k, GIVEN(p.alpha), p.b,
                 (int)p.ldb, p.a, (int)p.lda, __real__ p.beta, p.c, (int)p.ldc);
}

static void NAME(through_hemm)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    const NAME(sided) s = NAME(sided_of)(g);
    const int m = (int)s.m, n = (int)s.n, lda = (int)s.lda, ldb = (int)s.ldb, ldc = (int)s.ldc;
    F77(hemm)(&s.side, &s.uplo, &m, &n, &p.alpha, s.a, &lda, s.b, &ldb, &p.beta, p.c, &ldc);
}

static void NAME(through_hemm_rows)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    const NAME(sided) s = NAME(sided_of)(g);
    CBLAS(hemm)(ROW, s.row_side, s.row_uplo, (int)s.n, (int)s.m, GIVEN(p.alpha), s.a, (int)s.lda, s.b,
                (int)s.ldb, GIVEN(p.beta), p.c, (int)s.ldc);
}

static void NAME(through_herk)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    const int n = (int)p.n, k = (int)p.k, lda = (int)p.lda, ldc = (int)p.ldc;
    const REAL alpha = __real__ p.alpha, beta = __real__ p.beta;
    F77(herk)(&p.uplo, &p.transa, &n, &k, &alpha, p.a, &lda, &beta, p.c, &ldc);
}

static void NAME(through_herk_rows)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    CBLAS(herk)(ROW, p.uplo == 'U' ? 122 : 121, trans(p.transb), (int)p.n, (int)p.k, __real__ p.alpha, p.a,
                (int)p.lda, __real__ p.beta, p.c, (int)p.ldc);
}

static void NAME(through_3m)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    const int m = (int)p.m, n = (int)p.n, k = (int)p.k, lda = (int)p.lda, ldb = (int)p.ldb, ldc = (int)p.ldc;
    F77(gemm3m)(&p.transa, &p.transb, &m, &n, &k, &p.alpha, p.a, &lda, p.b, &ldb, &p.beta, p.c, &ldc);
}

static void NAME(through_3m_rows_64)(const gpb_call *g)
{
    const NAME(plain) p = NAME(plain_of)(g);
    CBLAS(gemm3m64_)(ROW, trans(p.transb), trans(p.transa), p.n, p.m, p.k, GIVEN(p.alpha), p.b, p.ldb, p.a,
                     p.lda, GIVEN(p.beta), p.c, p.ldc);
}
#endif

static const gpb_test_door NAME(doors)[IS_COMPLEX ? GPB_TEST_COMPLEX_DOORS : GPB_TEST_DOORS] = {
    { TEXT(F77(gemm)), NAME(through_f77), GPB_TEST_gemm, true },
    { TEXT(F77(gemm_64)), NAME(through_f77_64), GPB_TEST_gemm, false },
    { TEXT(CBLAS(gemm)) ", columns", NAME(through_columns), GPB_TEST_gemm, false },
    { TEXT(CBLAS(gemm)) ", rows", NAME(through_rows), GPB_TEST_gemm, false },
    { TEXT(CBLAS(gemm64_)) ", rows", NAME(through_rows_64), GPB_TEST_gemm, false },
    { TEXT(F77(gemmtr)), NAME(through_triangle), GPB_TEST_gemmtr, false },
    { TEXT(CBLAS(gemmtr)) ", rows", NAME(through_triangle_rows), GPB_TEST_gemmtr, false },
    { TEXT(F77(gemm_batch_strided)), NAME(through_strided), GPB_TEST_gemm_batch_strided, false },
    { TEXT(CBLAS(gemm_batch_strided)) ", rows", NAME(through_strided_rows), GPB_TEST_gemm_batch_strided,
      false },
    { TEXT(CBLAS(gemm_batch)), NAME(through_groups), GPB_TEST_gemm_batch, false },
    { TEXT(F77(syrk)), NAME(through_syrk), GPB_TEST_syrk, false },
    { TEXT(CBLAS(syrk64_)) ", rows", NAME(through_syrk_rows_64), GPB_TEST_syrk, false },
    { TEXT(F77(syrk_batch_strided)), NAME(through_syrk_strided), GPB_TEST_syrk_batch_strided, false },
    { TEXT(CBLAS(syrk_batch)) ", rows", NAME(through_syrk_group), GPB_TEST_syrk_batch, false },
    { TEXT(F77(syr2k)), NAME(through_syr2k), GPB_TEST_syr2k, false },
    { TEXT(CBLAS(syr2k64_)) ", rows", NAME(through_syr2k_rows_64), GPB_TEST_syr2k, false },
    { TEXT(F77(symm)), NAME(through_symm), GPB_TEST_symm, false },
    { TEXT(CBLAS(symm64_)) ", rows", NAME(through_symm_rows_64), GPB_TEST_symm, false },
#if IS_COMPLEX
    { TEXT(F77(herk)), NAME(through_herk), GPB_TEST_herk, false },
    { TEXT(CBLAS(herk)) ", rows", NAME(through_herk_rows), GPB_TEST_herk, false },
    { TEXT(F77(her2k_64)), NAME(through_her2k_64), GPB_TEST_her2k, false },
    { TEXT(CBLAS(her2k)) ", rows", NAME(through_her2k_rows), GPB_TEST_her2k, false },
    { TEXT(F77(hemm)), NAME(through_hemm), GPB_TEST_hemm, false },
    { TEXT(CBLAS(hemm)) ", rows", NAME(through_hemm_rows), GPB_TEST_hemm, false },
    { TEXT(F77(gemm3m)), NAME(through_3m), GPB_TEST_gemm, true },
    { TEXT(CBLAS(gemm3m64_)) ", rows", NAME(through_3m_rows_64), GPB_TEST_gemm, false },
#endif
};

#undef PASTE
#undef NAME_
#undef NAME
#undef F77
#undef CBLAS
#undef TEXT_
#undef TEXT
#undef LETTER
#undef ELEMENT
#undef REAL
#undef SCALAR
#undef GIVEN
#undef IS_COMPLEX
