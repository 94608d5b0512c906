/* SPDX-License-Identifier: MIT */
/* The sums of a tile of C, in registers: each one chain of FMAs, in increasing k. fake_multiply.c includes
   this for sums in double and in float, with LETTER and ELEMENT defined. a: TILE_BYTES of rows side by side
   for each k. b: NR columns side by side. c: column-major, ld MC. */
#define PASTE(x, letter) x##_##letter
#define NAME_(x, letter) PASTE(x, letter)
#define NAME(x) NAME_(x, LETTER)

typedef ELEMENT NAME(vector) __attribute__((vector_size(TILE_BYTES / 2)));

/* sum += a x, rounded once. fused: the compiler has an instruction for that. */
static inline __attribute__((always_inline)) void NAME(add)(NAME(vector) *sum, const NAME(vector) *a,
                                                            ELEMENT x, bool fused)
{
    if (fused)
        *sum += *a * x;
    else
        for (size_t l = 0; l < sizeof *sum / sizeof x; l++)
            (*sum)[l] = (ELEMENT)_Generic((ELEMENT)0, float: fmaf, default: fma)((*a)[l], x, (*sum)[l]);
}

static inline __attribute__((always_inline)) void NAME(tile_body)(int depth, const ELEMENT *a,
                                                                  const ELEMENT *b, ELEMENT *c, bool fused)
{
    enum { LANES = sizeof(NAME(vector)) / sizeof(ELEMENT) };
    NAME(vector) sum[NR][2];
    for (int j = 0; j < NR; j++)
        for (int h = 0; h < 2; h++)
            sum[j][h] = *(const NAME(vector) *)(c + j * MC + h * LANES);
    for (int p = 0; p < depth; p++)
        for (int j = 0; j < NR; j++)
            for (int h = 0; h < 2; h++)
                NAME(add)(&sum[j][h], (const NAME(vector) *)a + 2 * p + h, b[p * NR + j], fused);
    for (int j = 0; j < NR; j++)
        for (int h = 0; h < 2; h++)
            *(NAME(vector) *)(c + j * MC + h * LANES) = sum[j][h];
}

__attribute__((target("avx2,fma"))) static void NAME(tile_fma)(int depth, const void *a, const void *b,
                                                               void *c)
{
    NAME(tile_body)(depth, a, b, c, true);
}

static void NAME(tile_any)(int depth, const void *a, const void *b, void *c)
{
    NAME(tile_body)(depth, a, b, c, false);
}

#undef PASTE
#undef NAME_
#undef NAME
#undef LETTER
#undef ELEMENT
