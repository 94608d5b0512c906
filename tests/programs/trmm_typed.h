/* SPDX-License-Identifier: MIT */
/* The checks of trmm.c in one type: LETTER, ELEMENT, ROUNDING (u), IS_COMPLEX. */
#define PASTE_(a, b, c) a##b##c
#define PASTE(a, b, c) PASTE_(a, b, c)
#define TRMM PASTE(, LETTER, trmm_)
#define NAME(stem) PASTE(stem, _, LETTER)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define EXACT __typeof__((ELEMENT)0 * 1.0)                /* the same in double */

void TRMM(const char *, const char *, const char *, const char *, const int *, const int *, const ELEMENT *,
          const ELEMENT *, const int *, ELEMENT *, const int *, size_t, size_t, size_t, size_t);

static ELEMENT NAME(of_a)[MOST], NAME(of_b)[MOST], NAME(before)[MOST];

static ELEMENT NAME(draw)(void)
{
    const double re = next(), im = IS_COMPLEX ? next() : 0;
    return (ELEMENT)(IS_COMPLEX ? re + im * I : re);
}
static double NAME(size)(EXACT x) { return IS_COMPLEX ? fabs(creal(x)) + fabs(cimag(x)) : fabs(creal(x)); }

/* One column of B, or one row from the right, whose elements are `step` apart. Of op(A) the elements of one
   row, or column from the right, that are inside its triangle are gone through. */
static int NAME(is_right)(const ELEMENT *in, const ELEMENT *out, int64_t step, char side, char uplo,
                          char trans, char diag, int order, int lda, ELEMENT alpha)
{
    static EXACT scaled[LONGEST];
    static double sizes[LONGEST];
    const int down = (side == 'L') == (trans == 'N');            /* an element of A to the next */
    const int64_t next_p = down ? lda : 1, next_i = down ? 1 : lda;
    const int before = (uplo == 'L') == down;                    /* the triangle is before the diagonal */
    for (int p = 0; p < order; p++) {
        scaled[p] = (EXACT)in[p * step] * (EXACT)alpha;
        sizes[p] = NAME(size)(scaled[p]);
    }
    for (int i = 0; i < order; i++) {
        EXACT sum = 0;
        double bound = 0;
        for (int p = before ? 0 : i; p < (before ? i + 1 : order); p++) {
            EXACT a = p == i && diag == 'U' ? 1 : (EXACT)NAME(of_a)[i * next_i + p * next_p];
            if (IS_COMPLEX && trans == 'C') a = (EXACT)conj(a);
            sum += a * scaled[p];
            bound += NAME(size)(a) * sizes[p];
        }
        const EXACT found = (EXACT)out[i * step];
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
#undef EXACT
#undef LETTER
#undef ELEMENT
#undef ROUNDING
#undef IS_COMPLEX
