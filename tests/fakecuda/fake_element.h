/* SPDX-License-Identifier: MIT */
/* What kernels do with elements of one type: the body of four. fake_element.c includes it once for each type,
   with LETTER and ELEMENT defined. Complex numbers are multiplied as in Fortran and in kernels/element.cuh,
   with four products and two sums, because C's * would guess at infinities. */
#define REAL __typeof__(__real__(ELEMENT)0)
#define WIDE __typeof__((ELEMENT)0 * 1.0)                /* the same in double */
#define REALS ((int)(sizeof(ELEMENT) / sizeof(REAL)))
#define PASTE(x, letter) x##_##letter
#define NAME_(x, letter) PASTE(x, letter)
#define NAME(x) NAME_(x, LETTER)

static WIDE NAME(scalar)(const double x[2]) { return (WIDE)__builtin_complex(x[0], x[1]); }

static inline ELEMENT NAME(times)(ELEMENT x, ELEMENT y)
{
    return (ELEMENT)__builtin_complex(__real__ x * __real__ y - __imag__ x * __imag__ y,
                                      __real__ x * __imag__ y + __imag__ x * __real__ y);
}

static inline WIDE NAME(times_wide)(WIDE x, WIDE y)
{
    return (WIDE)__builtin_complex(__real__ x * __real__ y - __imag__ x * __imag__ y,
                                   __real__ x * __imag__ y + __imag__ x * __real__ y);
}

/* beta C: 1 multiplies nothing. */
static inline ELEMENT NAME(scaled)(ELEMENT beta, ELEMENT old)
{
    return beta == 1 ? old : NAME(times)(beta, old);
}

static inline WIDE NAME(scaled_wide)(WIDE beta, WIDE old)
{
    return beta == 1 ? old : NAME(times_wide)(beta, old);
}

/* An element of an operand. */
static inline ELEMENT NAME(element)(gpb_fake_operand x, int64_t i, int64_t j)
{
    ELEMENT y = ((const ELEMENT *)x.at)[i * x.rs + j * x.cs];
    return x.conj ? (ELEMENT)__builtin_complex(__real__ y, -__imag__ y) : y;
}

/* Sums of the reference's second loop: of SIDE rows at once, each in its own order. Real and imaginary parts
   lie apart, for the compiler's vectors. */
typedef REAL NAME(lanes) __attribute__((vector_size(32), aligned(sizeof(REAL))));

static inline __attribute__((always_inline)) void NAME(dots_body)(const gpb_fake_member *x, REAL *rows)
{
    enum { LANES = sizeof(NAME(lanes)) / sizeof(REAL) };
    const gpb_gemm_args *g = x->g;
    const ELEMENT alpha = (ELEMENT)NAME(scalar)(g->alpha), beta = (ELEMENT)NAME(scalar)(g->beta);
    for (int64_t first = 0; first < g->m; first += SIDE) {
        const int64_t high = g->m - first < SIDE ? g->m - first : SIDE;
        for (int64_t p = 0; p < g->k; p++)
            for (int64_t i = 0; i < SIDE; i++) {
                const ELEMENT y = NAME(element)(x->a, first + (i < high ? i : 0), p);
                rows[2 * p * SIDE + i] = __real__ y;
                rows[(2 * p + 1) * SIDE + i] = __imag__ y;
            }
        for (int64_t j = 0; j < g->n; j++) {
            NAME(lanes) re[SIDE / LANES] = { { 0 } }, im[SIDE / LANES] = { { 0 } };
            for (int64_t p = 0; p < g->k; p++) {
                const ELEMENT y = NAME(element)(x->b, p, j);
                const NAME(lanes) *real = (const NAME(lanes) *)(rows + 2 * p * SIDE),
                                  *imaginary = real + SIDE / LANES;
                for (int i = 0; i < SIDE / LANES; i++)
                    if (REALS == 1) {
                        re[i] += real[i] * __real__ y;
                    } else {
                        re[i] += real[i] * __real__ y - imaginary[i] * __imag__ y;
                        im[i] += real[i] * __imag__ y + imaginary[i] * __real__ y;
                    }
            }
            for (int64_t i = 0; i < high; i++) {
                ELEMENT *c = (ELEMENT *)x->c + first + i + j * g->ldc;
                const ELEMENT sum = (ELEMENT)__builtin_complex(re[i / LANES][i % LANES],
                                                                 im[i / LANES][i % LANES]);
                const ELEMENT y = x->raw ? sum : g->k ? NAME(times)(alpha, sum) : 0;
                *c = beta == 0 ? y : y + NAME(scaled)(beta, *c);
            }
        }
    }
}

__attribute__((target("avx2"))) static void NAME(dots_avx2)(const gpb_fake_member *x, REAL *rows)
{
    NAME(dots_body)(x, rows);
}

static void NAME(dots)(const gpb_fake_member *x)
{
    REAL *rows = malloc(sizeof *rows * (size_t)(2 * x->g->k * SIDE + 1));
    if (!rows)
        gpb_fake_die("no memory");
    if (__builtin_cpu_supports("avx2"))
        NAME(dots_avx2)(x, rows);
    else
        NAME(dots_body)(x, rows);
    free(rows);
}

/* Rounds at every step, in the reference BLAS's own order, so that results are netlib's bit for bit. LAPACK's
   suite has tests (STFSM) that fail with any other rounding, even a better one. (By the bound of names.h
   netlib's is worse, because beta C is rounded k times.) A's unit stride tells which of the reference's two
   loops it is. */
static void NAME(netlib)(const gpb_fake_member *x)
{
    const gpb_gemm_args *g = x->g;
    const ELEMENT alpha = (ELEMENT)NAME(scalar)(g->alpha), beta = (ELEMENT)NAME(scalar)(g->beta);
    gpb_fake_operand a = x->a;
    ELEMENT *c = x->c;
    if (a.rs != 1) {
        NAME(dots)(x);
        return;
    }
    a.rs = 1;                            /* a constant, for the compiler */
    for (int64_t j = 0; j < g->n; j++, c += g->ldc) {
        for (int64_t i = 0; i < g->m; i++)
            c[i] = beta == 0 ? 0 : beta == 1 ? c[i] : NAME(times)(beta, c[i]);
        for (int64_t p = 0; p < g->k; p++) {
            const ELEMENT factor = NAME(element)(x->b, p, j);
            const ELEMENT scaled = x->raw ? factor : NAME(times)(alpha, factor);
            for (int64_t i = 0; i < g->m; i++)
                c[i] += NAME(times)(scaled, NAME(element)(a, i, p));
        }
    }
}

/* Rounds to the 10 explicit mantissa bits of TF32: to nearest, ties away from zero (cvt.rna). */
static REAL NAME(tf32)(REAL real)
{
    const float x = (float)real;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000) == 0x7f800000)
        return real;
    bits = (bits + 0x1000) & 0xffffe000;
    float rounded;
    memcpy(&rounded, &bits, sizeof rounded);
    return (REAL)rounded;
}

/* A complex number as the 2 x 2 matrix (re -im; im re), whose first column, but for its sign, is also what a
   factor to the right of it looks like. */
static inline REAL NAME(entry)(ELEMENT x, int row, int column, bool is_square)
{
    const REAL y = row == column ? __real__ x : __imag__ x;
    return is_square && row < column ? -y : y;
}

/* What is the same for all elements is known to the compiler, and a whole panel has a loop of known length:
   with variables this was a ninth of test_inject. */
static inline __attribute__((always_inline)) void NAME(pack_line)(void *to, gpb_fake_operand from, int i,
                                                                  int p, int filled, int width, bool wide,
                                                                  int lines, bool round)
{
    for (int r = 0; r < filled; r++)
        for (int q = 0; q < REALS; q++) {
            REAL x = NAME(entry)(NAME(element)(from, (i + r) / lines, p), (i + r) % lines, q, lines > 1);
            x = round ? NAME(tf32)(x) : x;
            if (wide)
                ((double *)to)[(p * REALS + q) * width + r] = (double)x;
            else
                ((float *)to)[(p * REALS + q) * width + r] = (float)x;
        }
}

static inline __attribute__((always_inline)) void NAME(pack_as)(const gpb_fake_packing *how,
                                                                gpb_fake_operand from, int rows, int depth,
                                                                bool wide, bool is_left, bool round)
{
    const int bytes = wide ? sizeof(double) : sizeof(float), lines = is_left ? REALS : 1,
              width = is_left ? GPB_FAKE_TILE_BYTES / bytes : GPB_FAKE_TILE_COLUMNS;
    for (int i = 0, all = rows * lines; i < all; i += width) {
        char *to = (char *)how->to + (size_t)i * (size_t)(depth * REALS) * (size_t)bytes;
        if (all - i >= width) {
            for (int p = 0; p < depth; p++)
                NAME(pack_line)(to, from, i, p, width, width, wide, lines, round);
            continue;
        }
        memset(to, 0, (size_t)(width * depth * REALS) * (size_t)bytes);
        for (int p = 0; p < depth; p++)
            NAME(pack_line)(to, from, i, p, all - i, width, wide, lines, round);
    }
}

static inline __attribute__((always_inline)) void NAME(pack_side)(const gpb_fake_packing *how,
                                                                  gpb_fake_operand from, int rows, int depth,
                                                                  bool wide, bool is_left)
{
    if (how->round)
        NAME(pack_as)(how, from, rows, depth, wide, is_left, true);
    else if (from.rs == 1) {
        from.rs = 1;                     /* a constant, for the compiler */
        NAME(pack_as)(how, from, rows, depth, wide, is_left, false);
    } else {
        NAME(pack_as)(how, from, rows, depth, wide, is_left, false);
    }
}

static void NAME(pack)(const gpb_fake_packing *how, gpb_fake_operand from, int rows, int depth)
{
    from.conj = from.conj && REALS > 1;
    if (how->wide && how->is_left)
        NAME(pack_side)(how, from, rows, depth, true, true);
    else if (how->wide)
        NAME(pack_side)(how, from, rows, depth, true, false);
    else if (how->is_left)
        NAME(pack_side)(how, from, rows, depth, false, true);
    else
        NAME(pack_side)(how, from, rows, depth, false, false);
}

/* alpha sum + beta C, rounded once if sums are in double. (For d and z, which have nothing wider, that is at
   every step.) */
static void NAME(store)(const gpb_fake_member *x, const void *sums, int64_t ld, bool wide)
{
    const gpb_gemm_args *g = x->g;
    const WIDE alpha = NAME(scalar)(g->alpha), beta = NAME(scalar)(g->beta);
    for (int64_t j = 0; j < g->n; j++)
        for (int64_t i = 0; i < g->m; i++) {
            ELEMENT *to = (ELEMENT *)x->c + i + j * g->ldc;
            if (wide) {
                WIDE sum;
                memcpy(&sum, (const double *)sums + j * ld + i * REALS, sizeof sum);
                const WIDE y = x->raw ? sum : g->k ? NAME(times_wide)(alpha, sum) : 0;
                *to = (ELEMENT)(beta == 0 ? y : y + NAME(scaled_wide)(beta, (WIDE)*to));
            } else {
                ELEMENT sum;
                memcpy(&sum, (const REAL *)sums + j * ld + i * REALS, sizeof sum);
                const ELEMENT y = x->raw ? sum : g->k ? NAME(times)((ELEMENT)alpha, sum) : 0;
                *to = beta == 0 ? y : y + NAME(scaled)((ELEMENT)beta, *to);
            }
        }
}

/* Rounds at every step, as kernels do: where alpha times the sum overflows, infinite beta C must give NaN. */
static void NAME(add_up)(const gpb_fake_parts *x, void *to, int64_t ldc)
{
    const ELEMENT alpha = (ELEMENT)NAME(scalar)(x->alpha), beta = (ELEMENT)NAME(scalar)(x->beta);
    for (int64_t j = 0; j < x->columns; j++)
        for (int64_t i = 0; i < x->rows; i++) {
            ELEMENT *c = (ELEMENT *)to + i + j * ldc, sum = 0;
            for (int64_t y = 0; y < x->count; y++) {
                const ELEMENT *part = y ? (const ELEMENT *)x->second + (y - 1) * x->stride : x->first;
                sum += part[i + j * x->ld];
            }
            const ELEMENT value = NAME(times)(alpha, sum);
            *c = beta == 0 ? value : value + NAME(scaled)(beta, *c);
        }
}

static void NAME(copy)(const gpb_pack_args *g, const void *from, void *to)
{
    for (int64_t j = 0; j < g->cols_padded; j++) {
        const ELEMENT *x = (const ELEMENT *)from + j * g->cs;
        ELEMENT *y = (ELEMENT *)to + j * g->ld;
        const int64_t rows = j < g->cols ? g->rows : 0;
        if (g->rs == 1)
            memcpy(y, x, sizeof *y * (size_t)rows);
        else
            for (int64_t i = 0; i < rows; i++) y[i] = x[i * g->rs];
        memset(y + rows, 0, sizeof *y * (size_t)(g->rows_padded - rows));
    }
}

static void NAME(unpack)(const gpb_unpack_args *g, const void *from, void *to)
{
    const WIDE beta = NAME(scalar)(g->beta);
    for (int64_t j = 0; j < g->n; j++)
        for (int64_t i = 0; i < g->m; i++) {
            const int64_t row = i + g->row0, column = j + g->col0;
            const ELEMENT w = ((const ELEMENT *)from)[i + j * g->ldw];
            ELEMENT *c = (ELEMENT *)to + i + j * g->ldc;
            const bool real = g->hermitian && row == column;
            if (g->uplo != 'G' && (g->uplo == 'U' ? row > column : row < column)) continue;
            const WIDE old = g->hermitian ? __real__ beta * (WIDE)*c : NAME(scaled_wide)(beta, (WIDE)*c);
            const ELEMENT new = beta == 0 ? w : (ELEMENT)((WIDE)w + old);
            *c = real ? (ELEMENT)__real__ new : new;
        }
}

#undef REAL
#undef WIDE
#undef REALS
#undef PASTE
#undef NAME_
#undef NAME
#undef LETTER
#undef ELEMENT
