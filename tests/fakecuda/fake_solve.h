/* SPDX-License-Identifier: MIT */
/* What the kernels of solve.def compute, of one type: the body of four. fake_solve.c includes it once for
   each type, with LETTER and ELEMENT defined. The order of operations is that of kernels/solve, but products
   are rounded before they are subtracted, and every division is a division. */
#define REAL __typeof__(__real__(ELEMENT)0)
#define PASTE(x, letter) x##_##letter
#define NAME_(x, letter) PASTE(x, letter)
#define NAME(x) NAME_(x, LETTER)

static inline ELEMENT NAME(times)(ELEMENT x, ELEMENT y) { return (ELEMENT)GPB_PRODUCT_COMPLEX(x, y); }

static inline ELEMENT NAME(conjugate)(ELEMENT x)
{
    return (ELEMENT)__builtin_complex(__real__ x, -__imag__ x);
}

static inline REAL NAME(magnitude)(REAL x) { return x < 0 ? -x : x; }

/* What pivots are compared by. */
static inline REAL NAME(size)(ELEMENT x)
{
    return NAME(magnitude)(__real__ x) + NAME(magnitude)(__imag__ x);
}

/* Smith's division, as in kernels/solve/scalar.cuh. */
static ELEMENT NAME(quotient)(ELEMENT x, ELEMENT y)
{
    if (sizeof(ELEMENT) == sizeof(REAL))
        return x / y;
    const bool flat = NAME(magnitude)(__real__ y) >= NAME(magnitude)(__imag__ y);
    const REAL large = flat ? __real__ y : __imag__ y, small = flat ? __imag__ y : __real__ y;
    const REAL ratio = small / large, scale = large + ratio * small;
    const REAL re = flat ? __real__ x + __imag__ x * ratio : __real__ x * ratio + __imag__ x;
    const REAL im = flat ? __imag__ x - __real__ x * ratio : __imag__ x * ratio - __real__ x;
    return (ELEMENT)__builtin_complex(re / scale, im / scale);
}

/* The first row of the largest element from row j on. No comparison with a NaN is true, so NaN wins only in
   row j itself. */
static int64_t NAME(largest)(const ELEMENT *column, int64_t j, int64_t m)
{
    int64_t best = j;
    REAL most = NAME(size)(column[j]);
    for (int64_t i = j + 1; i < m; i++)
        if (NAME(size)(column[i]) > most) {
            best = i;
            most = NAME(size)(column[i]);
        }
    return best;
}

/* Row pivots[j] and row j are exchanged in step j. Returns the number of the first column whose pivot is 0,
   from 1 on, or 0. */
static int NAME(panel)(int64_t m, int n, void *at, int64_t lda, int64_t *pivots)
{
    ELEMENT *a = at;
    int singular = 0;
    for (int j = 0; j < n; j++) {
        ELEMENT *column = a + j * lda;
        pivots[j] = NAME(largest)(column, j, m);
        for (int i = 0; i < n; i++) {
            const ELEMENT x = a[j + i * lda];
            a[j + i * lda] = a[pivots[j] + i * lda];
            a[pivots[j] + i * lda] = x;
        }
        const ELEMENT pivot = column[j];
        if (pivot == 0) singular = singular ? singular : j + 1;
        for (int64_t r = j + 1; r < m && pivot != 0; r++)
            column[r] = NAME(quotient)(column[r], pivot);
        for (int i = j + 1; i < n; i++) {
            ELEMENT *to = a + i * lda;
            const ELEMENT factor = to[j];
            for (int64_t r = j + 1; r < m; r++)
                to[r] -= NAME(times)(column[r], factor);
        }
    }
    return singular;
}

/* Returns the number of the first leading minor that is not positive, from 1 on, or 0. Goes on after it, as
   the kernel does. below: that many rows, divided by L^H. */
static int NAME(cholesky)(int n, void *at, int64_t rs, int64_t cs, void *at_below, int64_t below)
{
    ELEMENT *a = at, *b = at_below;
    int failed = 0;
    for (int j = 0; j < n; j++) {
        ELEMENT *column = a + j * cs;
        const REAL minor = __real__ column[j * rs];
        failed = failed || minor > 0 ? failed : j + 1;
        const REAL root = (REAL)sqrt((double)minor), inverse = 1 / root;
        column[j * rs] = root;
        for (int i = j + 1; i < n; i++)
            column[i * rs] *= inverse;
        for (int k = j + 1; k < n; k++)
            for (int i = k; i < n; i++)
                a[i * rs + k * cs] -= NAME(times)(column[i * rs], NAME(conjugate)(column[k * rs]));
        for (int64_t i = 0; i < below; i++)
            b[i * rs + j * cs] *= inverse;
        for (int k = j + 1; k < n; k++) {
            const ELEMENT y = NAME(conjugate)(column[k * rs]);
            for (int64_t i = 0; i < below; i++)
                b[i * rs + k * cs] -= NAME(times)(b[i * rs + j * cs], y);
        }
    }
    return failed;
}

/* g's triangle, which is read, by rows. */
static void NAME(block)(const gpb_triangle_args *g, const void *at_l, ELEMENT l[MOST][MOST])
{
    for (int j = 0; j < g->n; j++)
        for (int i = g->unit ? j + 1 : j; i < g->n; i++) {
            const ELEMENT y = ((const ELEMENT *)at_l)[i * g->rsl + j * g->csl];
            l[i][j] = g->conj ? NAME(conjugate)(y) : y;
        }
}

/* Rows of some columns of B. Real and imaginary parts lie apart, for the compiler's vectors. Sums of a row
   stay in registers: column by column this was a quarter of test_resident. */
typedef REAL NAME(lanes) __attribute__((vector_size(32)));
typedef struct NAME(rows) {
    NAME(lanes) re[MOST][VECTORS], im[MOST][VECTORS];
} NAME(rows);

/* Row i, of which rows before it are subtracted in increasing order, or added in decreasing order. */
static inline __attribute__((always_inline)) void NAME(row_body)(const gpb_triangle_args *g, bool solves,
                                                                 ELEMENT l[MOST][MOST], NAME(rows) *x, int i,
                                                                 int vectors)
{
    enum { LANES = sizeof(NAME(lanes)) / sizeof(REAL), COMPLEX = sizeof(ELEMENT) > sizeof(REAL) };
    NAME(lanes) re[VECTORS], im[VECTORS];
    for (int v = 0; v < vectors; v++) {
        re[v] = x->re[i][v];
        im[v] = x->im[i][v];
    }
    for (int v = 0; v < vectors && !g->unit && !solves; v++)
        for (int w = 0; w < LANES; w++) {
            const ELEMENT y = NAME(times)(l[i][i], (ELEMENT)__builtin_complex(re[v][w], im[v][w]));
            re[v][w] = __real__ y;
            im[v][w] = __imag__ y;
        }
    for (int step = 0; step < i; step++) {
        const int j = solves ? step : i - 1 - step;
        const REAL y = __real__ l[i][j], z = __imag__ l[i][j];
        for (int v = 0; v < vectors; v++) {
            const NAME(lanes) r = x->re[j][v], q = x->im[j][v];
            const NAME(lanes) real = COMPLEX ? y * r - z * q : y * r, imaginary = y * q + z * r;
            re[v] = solves ? re[v] - real : re[v] + real;
            if (COMPLEX)
                im[v] = solves ? im[v] - imaginary : im[v] + imaginary;
        }
    }
    for (int v = 0; v < vectors && !g->unit && solves; v++)
        for (int w = 0; w < LANES; w++) {
            const ELEMENT y = NAME(quotient)((ELEMENT)__builtin_complex(re[v][w], im[v][w]), l[i][i]);
            re[v][w] = __real__ y;
            im[v][w] = __imag__ y;
        }
    for (int v = 0; v < vectors; v++) {
        x->re[i][v] = re[v];
        x->im[i][v] = im[v];
    }
}

static inline __attribute__((always_inline)) void NAME(rows_body)(const gpb_triangle_args *g, bool solves,
                                                                  ELEMENT l[MOST][MOST], NAME(rows) *x,
                                                                  int vectors)
{
    for (int i = 0; i < g->n && solves; i++)
        vectors > 1 ? NAME(row_body)(g, true, l, x, i, VECTORS) : NAME(row_body)(g, true, l, x, i, 1);
    for (int i = g->n - 1; i >= 0 && !solves; i--)
        vectors > 1 ? NAME(row_body)(g, false, l, x, i, VECTORS) : NAME(row_body)(g, false, l, x, i, 1);
}

__attribute__((target("avx2"))) static void NAME(rows_avx2)(const gpb_triangle_args *g, bool solves,
                                                            ELEMENT l[MOST][MOST], NAME(rows) *x,
                                                            int vectors)
{
    NAME(rows_body)(g, solves, l, x, vectors);
}

static void NAME(rows_any)(const gpb_triangle_args *g, bool solves, ELEMENT l[MOST][MOST], NAME(rows) *x,
                           int vectors)
{
    NAME(rows_body)(g, solves, l, x, vectors);
}

/* Either of them, with all columns of B, which is read at f. */
static void NAME(triangle)(const gpb_triangle_args *g, bool solves, const void *at_l, const void *at_f,
                           int64_t rsf, int64_t csf, void *at_b)
{
    enum { LANES = sizeof(NAME(lanes)) / sizeof(REAL) };
    static ELEMENT l[MOST][MOST];        /* because one kernel runs at a time */
    static NAME(rows) x;
    const ELEMENT alpha = (ELEMENT)__builtin_complex(g->alpha[0], g->alpha[1]);
    const bool scales = g->alpha[0] != 1 || g->alpha[1] != 0, avx2 = __builtin_cpu_supports("avx2");
    NAME(block)(g, at_l, l);
    for (int64_t c = 0, width; c < g->cols; c += width) {
        const int64_t left = g->cols - c;
        width = left < VECTORS * LANES ? left : VECTORS * LANES;
        const int vectors = width > LANES ? VECTORS : 1;
        const ELEMENT *f = (const ELEMENT *)at_f + c * csf;
        ELEMENT *b = (ELEMENT *)at_b + c * g->csb;
        for (int i = 0; i < g->n; i++)
            for (int64_t w = 0; w < vectors * LANES; w++) {
                /* Lanes beyond the last column compute the first again. */
                const ELEMENT y = f[i * rsf + (w < width ? w : 0) * csf];
                const ELEMENT start = scales ? NAME(times)(alpha, y) : y;
                x.re[i][w / LANES][w % LANES] = __real__ start;
                x.im[i][w / LANES][w % LANES] = __imag__ start;
            }
        (avx2 ? NAME(rows_avx2) : NAME(rows_any))(g, solves, l, &x, vectors);
        for (int i = 0; i < g->n; i++)
            for (int64_t w = 0; w < width; w++)
                b[i * g->rsb + w * g->csb] = (ELEMENT)__builtin_complex(x.re[i][w / LANES][w % LANES],
                                                                        x.im[i][w / LANES][w % LANES]);
    }
}

/* Each column from its diagonal on. */
static void NAME(invert)(const gpb_triangle_args *g, const ELEMENT *l, ELEMENT *b)
{
    for (int64_t c = 0; c < g->cols; c++)
        for (int64_t i = 0; i < g->n; i++) {
            ELEMENT x = i == c;
            for (int64_t k = c; k < i; k++)
                x -= NAME(times)(l[i * g->rsl + k * g->csl], b[k * g->rsb + c * g->csb]);
            if (i >= c && !g->unit) x = NAME(quotient)(x, l[i * (g->rsl + g->csl)]);
            b[i * g->rsb + c * g->csb] = x;
        }
}
static void NAME(substitute)(const gpb_triangle_args *g, const void *at_l, void *at_b)
{
    if (g->inverts) {
        NAME(invert)(g, at_l, at_b);
        return;
    }
    NAME(triangle)(g, true, at_l, at_b, g->rsb, g->csb, at_b);
}
static void NAME(multiply)(const gpb_triangle_args *g, const void *at_l, const void *at_f, int64_t rsf,
                           int64_t csf, void *at_b)
{
    NAME(triangle)(g, false, at_l, at_f, rsf, csf, at_b);
}

/* A triangle of any order, and one column. */
static void NAME(trsv)(const gpb_triangle_args *g, const void *at_l, void *at_b)
{
    const ELEMENT *l = at_l, alpha = (ELEMENT)__builtin_complex(g->alpha[0], g->alpha[1]);
    const bool scales = g->alpha[0] != 1 || g->alpha[1] != 0;
    ELEMENT *b = at_b;
    for (int64_t i = 0; i < g->n; i++) {
        ELEMENT x = b[i * g->rsb];
        if (scales) x = NAME(times)(alpha, x);
        for (int64_t j = 0; j < i; j++) {
            const ELEMENT y = l[i * g->rsl + j * g->csl];
            x -= NAME(times)(g->conj ? NAME(conjugate)(y) : y, b[j * g->rsb]);
        }
        if (!g->unit) {
            const ELEMENT y = l[i * (g->rsl + g->csl)];
            x = NAME(quotient)(x, g->conj ? NAME(conjugate)(y) : y);
        }
        b[i * g->rsb] = x;
    }
}

/* X = alpha L^-1 B of one system. A column is solved before it is written, because X may be B. work: n
   elements. */
static void NAME(system)(const gpb_systems_args *g, const void *at_l, const void *at_b, void *at_x,
                         void *work)
{
    ELEMENT *x = work;
    const ELEMENT alpha = (ELEMENT)__builtin_complex(g->alpha[0], g->alpha[1]);
    const bool scales = g->alpha[0] != 1 || g->alpha[1] != 0;
    for (int64_t c = 0; c < g->cols; c++) {
        for (int64_t i = 0; i < g->n; i++) {
            const ELEMENT b = ((const ELEMENT *)at_b)[i * g->rsb + c * g->csb];
            x[i] = scales ? NAME(times)(alpha, b) : b;
        }
        for (int64_t j = 0; j < g->n; j++)
            for (int64_t i = g->unit ? j + 1 : j; i < g->n; i++) {
                const ELEMENT y = ((const ELEMENT *)at_l)[i * g->rsl + j * g->csl];
                const ELEMENT l = g->conj ? NAME(conjugate)(y) : y;
                if (i == j)
                    x[i] = NAME(quotient)(x[i], l);
                else
                    x[i] -= NAME(times)(l, x[j]);
            }
        for (int64_t i = 0; i < g->n; i++)
            ((ELEMENT *)at_x)[i * g->rsx + c * g->csx] = x[i];
    }
}

#undef REAL
#undef PASTE
#undef NAME_
#undef NAME
#undef LETTER
#undef ELEMENT
