/* SPDX-License-Identifier: MIT */
/* The checks of trmm.c in one type: LETTER, ELEMENT, ROUNDING (u), IS_COMPLEX. */
#define PASTE_(a, b, c) a##b##c
#define PASTE(a, b, c) PASTE_(a, b, c)
#define TRMM PASTE(, LETTER, trmm_)
#define NAME(stem) PASTE(stem, _, LETTER)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

void TRMM(const char *, const char *, const char *, const char *, const int *, const int *, const ELEMENT *,
          const ELEMENT *, const int *, ELEMENT *, const int *, size_t, size_t, size_t, size_t);

static ELEMENT NAME(of_a)[MOST], NAME(of_b)[MOST], NAME(before)[MOST];

static ELEMENT NAME(draw)(void)
{
    const double re = next(), im = IS_COMPLEX ? next() : 0;
    return (ELEMENT)(IS_COMPLEX ? re + im * I : re);
}
static double NAME(size)(double complex x) { return fabs(creal(x)) + fabs(cimag(x)); }

/* Element (i, j) of op(A), and whether there is one. */
static int NAME(stored)(int i, int j, char uplo, char trans, char diag, int lda, double complex *value)
{
    const int row = trans == 'N' ? i : j, col = trans == 'N' ? j : i;
    if (row != col && (uplo == 'L') != (row > col)) return 0;
    *value = row == col && diag == 'U' ? 1 : (double complex)NAME(of_a)[row + col * lda];
    if (trans == 'C') *value = conj(*value);
    return 1;
}

/* One column of B, or one row from the right, whose elements are `step` apart. */
static int NAME(is_right)(const ELEMENT *in, const ELEMENT *out, int64_t step, char side, char uplo,
                          char trans, char diag, int order, int lda, ELEMENT alpha)
{
    for (int i = 0; i < order; i++) {
        double complex sum = 0, a;
        double bound = 0;
        for (int p = 0; p < order; p++) {
            if (!NAME(stored)(side == 'L' ? i : p, side == 'L' ? p : i, uplo, trans, diag, lda, &a)) continue;
            const double complex scaled = (double complex)in[p * step] * (double complex)alpha;
            sum += a * scaled;
            bound += NAME(size)(a) * NAME(size)(scaled);
        }
        const double complex found = (double complex)out[i * step];
        if (!isfinite(bound)) {
            if (isfinite(NAME(size)(found))) return 0;
        } else if (!(NAME(size)(found - sum) <= 4 * (order + 8) * ROUNDING * bound)) {
            return 0;
        }
    }
    return 1;
}

static void NAME(one)(const struct shape *of, char side, char uplo, char trans, char diag, int infinite)
{
    const ELEMENT alpha = (ELEMENT)(IS_COMPLEX ? 0.75 - 0.5 * I : -1.25);
    const int m = side == 'L' ? of->order : of->others, n = side == 'L' ? of->others : of->order;
    const int lda = padded(of->order), ldb = padded(m), every = of->order < 300 ? 1 : (of->others + 3) / 4;
    ELEMENT *a = NAME(of_a), *b = NAME(of_b);
    for (int j = 0; j < of->order; j++)
        for (int i = 0; i < lda; i++) {
            const int inside = i == j ? diag == 'N' : i < of->order && (uplo == 'L') == (i > j);
            a[i + j * lda] = inside ? NAME(draw)() : (ELEMENT)NAN;
        }
    for (int j = 0; j < n; j++)
        for (int i = 0; i < ldb; i++) b[i + j * ldb] = i < m ? NAME(draw)() : 7;
    if (infinite) b[m / 2 + n / 2 * ldb] = (ELEMENT)INFINITY;
    const size_t bytes = sizeof *b * (size_t)ldb * (size_t)n;
    memcpy(NAME(before), b, bytes);
    if (on_device && (device_copy_to((uintptr_t)at_a, a, sizeof *a * (size_t)lda * (size_t)of->order)
                      || device_copy_to((uintptr_t)at_b, b, bytes)))
        exit(103);
    TRMM(&side, &uplo, &trans, &diag, &m, &n, &alpha, on_device ? at_a : a, &lda, on_device ? at_b : b, &ldb,
         1, 1, 1, 1);
    if (on_device && device_copy_from(b, (uintptr_t)at_b, bytes)) exit(104);
    if (on_device && !memcmp(b, NAME(before), bytes)) {
        as_it_was++;
        return;
    }
    int right = 1;
    for (int x = 0; x < of->others && right; x += every) {
        const int64_t at = side == 'L' ? (int64_t)x * ldb : x, step = side == 'L' ? 1 : ldb;
        right = NAME(is_right)(NAME(before) + at, b + at, step, side, uplo, trans, diag, of->order, lda,
                               alpha);
    }
    for (int j = 0; j < n; j++)
        for (int i = m; i < ldb; i++) right &= b[i + j * ldb] == 7;
    if (right) return;
    printf("wrong: " TEXT(LETTER) "trmm %c%c%c%c, order %d, %d others%s\n", side, uplo, trans, diag,
           of->order, of->others, infinite ? ", infinite" : "");
    wrong++;
}

static void NAME(all)(void)
{
    for (int z = 0; z < SHAPES; z++)
        for (int how = 0; how < 24 && shapes[z].order <= largest; how++)
            NAME(one)(&shapes[z], "LR"[how & 1], "UL"[how >> 1 & 1], "NTC"[how >> 3], "NU"[how >> 2 & 1],
                      z && (how + z) % 3 == 0);
}

#undef PASTE_
#undef PASTE
#undef TRMM
#undef NAME
#undef TEXT_
#undef TEXT
#undef LETTER
#undef ELEMENT
#undef ROUNDING
#undef IS_COMPLEX
