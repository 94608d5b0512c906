/* SPDX-License-Identifier: MIT */
/* Tiles of one element type: the body of four. mirror.c includes it once for each type, with LETTER, ELEMENT
   and CONJUGATE(x) defined. A column of `to` has `side` elements. The program's numbers may lie at any
   address. */
#define PASTE(x, letter) x##_##letter
#define NAME_(x, letter) PASTE(x, letter)
#define NAME(x) NAME_(x, LETTER)

typedef ELEMENT NAME(loose) __attribute__((aligned(1), may_alias));

/* Rows [i, i + count), which are `count` stored columns. Columns farther on are fetched meanwhile, because
   the processor does not foresee such distances. */
static inline __attribute__((always_inline))
void NAME(turn_rows)(const tile *t, int64_t side, ELEMENT *restrict to, int64_t i, int64_t count,
                     bool conjugate)
{
    const NAME(loose) *from = (const NAME(loose) *)(const void *)t->mirror + i * t->ld;
    const int64_t bytes = t->cols * (int64_t)sizeof(ELEMENT);
    for (int64_t x = 0; x < count; x++)
        for (int64_t at = 0; at < bytes + LINE - 1; at += LINE)
            __builtin_prefetch((const char *)(from + (AHEAD + x) * t->ld) + at);
    for (int64_t j = 0; j < t->cols; j++)
        for (int64_t x = 0; x < count; x++) {
            const ELEMENT one = from[j + x * t->ld];
            to[i + x + j * side] = conjugate ? CONJUGATE(one) : one;
        }
}

static inline __attribute__((always_inline))
void NAME(turn_all)(const tile *t, int64_t side, ELEMENT *restrict to, bool conjugate)
{
    int64_t i = 0;
    for (; i + AT_ONCE <= t->rows; i += AT_ONCE) NAME(turn_rows)(t, side, to, i, AT_ONCE, conjugate);
    for (; i < t->rows; i++) NAME(turn_rows)(t, side, to, i, 1, conjugate);
}

/* A tile in the triangle that is not stored. */
static void NAME(turn)(const tile *t, int64_t side, void *to)
{
    if (t->hermitian) NAME(turn_all)(t, side, to, true);
    else NAME(turn_all)(t, side, to, false);
}

/* A tile that the diagonal crosses. */
static void NAME(cross)(const tile *t, int64_t side, void *to)
{
    const NAME(loose) *first = (const void *)t->first, *mirror = (const void *)t->mirror;
    for (int64_t j = 0; j < t->cols; j++)
        for (int64_t i = 0; i < t->rows; i++) {
            const int64_t below = t->row + i - t->col - j;
            const bool stored = t->uplo == 'U' ? below <= 0 : below >= 0;
            const ELEMENT one = stored ? first[i + j * t->ld] : mirror[j + i * t->ld];
            ELEMENT *place = (ELEMENT *)to + i + j * side;
            *place = t->hermitian && !stored ? CONJUGATE(one) : one;
            if (t->hermitian && below == 0) gpb_type_make_real(t->type, place);
        }
}

#undef PASTE
#undef NAME_
#undef NAME
#undef LETTER
#undef ELEMENT
#undef CONJUGATE
