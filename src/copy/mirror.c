/* SPDX-License-Identifier: MIT */
/* See mirror.h. The rectangle is cut into bands of columns, and each band where it enters and leaves the
   blocks on the diagonal. What lies in the stored triangle is copied. The rest is made tile by tile in a
   buffer that stays in the first cache, because a transposed element comes from another cache line than its
   neighbours, and the buffer is then copied like any rectangle. */
#include "src/copy/mirror.h"

#include "dispatch/numbers.h"

/* Bytes of a tile's column, and as many of the stored column that becomes a row of it. On two cores of an
   EPYC in a VM (2026-11-23) 3 to 4.5 GB/s of a matrix of 256 MiB were transposed so, where 8 to 11 of it were
   copied; columns of 512 bytes, 2 or 8 rows at once, and 4 or 16 columns ahead made no difference. */
enum { SIDE = 256, AT_ONCE = 4, AHEAD = 8, MOST = SIDE / sizeof(float), LINE = 64 };

/* A rectangle of the whole matrix, within the job's. first: its element (0, 0) as if it were stored; mirror:
   the mirror image of that element. */
typedef struct tile {
    const char *first, *mirror;
    int64_t row, col, rows, cols, ld;
    char uplo;
    bool hermitian;
    enum gpb_type type;
} tile;

#define LETTER s
#define ELEMENT float
#define CONJUGATE(x) (x)
#include "src/copy/mirror_typed.h"
#define LETTER d
#define ELEMENT double
#define CONJUGATE(x) (x)
#include "src/copy/mirror_typed.h"
#define LETTER c
#define ELEMENT float _Complex
#define CONJUGATE(x) __builtin_complex(__real__(x), -__imag__(x))
#include "src/copy/mirror_typed.h"
#define LETTER z
#define ELEMENT double _Complex
#define CONJUGATE(x) __builtin_complex(__real__(x), -__imag__(x))
#include "src/copy/mirror_typed.h"

static const struct {
    void (*turn)(const tile *t, int64_t side, void *to);
    void (*cross)(const tile *t, int64_t side, void *to);
} bodies[GPB_TYPES] = {
#define TYPE(letter, type, bytes, flops, kind) { turn_##letter, cross_##letter },
#include "dispatch/type.def"
#undef TYPE
};

/* The job's rectangle [row, row + rows) x [col, col + cols). */
static tile tile_of(const gpb_copy2d_job *r, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    const int64_t e = (int64_t)r->element, i = r->row0 + row, j = r->col0 + col;
    return (tile){ .first = r->from + (row + col * r->ld_from) * e,
                   .mirror = r->from + (j - r->row0 + (i - r->col0) * r->ld_from) * e,
                   .row = i, .col = j, .rows = rows, .cols = cols, .ld = r->ld_from, .uplo = r->uplo,
                   .hermitian = r->hermitian, .type = r->type };
}

static void copy_plain(const gpb_copy2d_job *r, const tile *t, const void *from, int64_t ld)
{
    gpb_copy2d_job plain = *r;
    plain.from = from;
    plain.to += (size_t)(t->row - r->row0 + (t->col - r->col0) * r->ld_to) * r->element;
    plain.rows = t->rows;
    plain.cols = t->cols;
    plain.ld_from = ld;
    plain.uplo = 'G';
    plain.mirrors = plain.hermitian = false;
    gpb_copy2d(&plain);
}

/* Rows [from, to) of a band, all of them in the triangle that is not stored, or crossed by the diagonal:
   these are one tile at most. */
static void copy_tiles(const gpb_copy2d_job *r, int64_t from, int64_t to, int64_t col, int64_t cols,
                       bool crossed)
{
    _Alignas(LINE) char buffer[SIDE * MOST];
    const int64_t side = SIDE / (int64_t)r->element;
    for (int64_t row = from; row < to; row += side) {
        const tile t = tile_of(r, row, min(side, to - row), col, cols);
        (crossed ? bodies[r->type].cross : bodies[r->type].turn)(&t, side, buffer);
        copy_plain(r, &t, buffer, side);
    }
}

static void copy_stored(const gpb_copy2d_job *r, int64_t from, int64_t to, int64_t col, int64_t cols)
{
    const tile t = tile_of(r, from, to - from, col, cols);
    if (from < to) copy_plain(r, &t, t.first, t.ld);
}

static int64_t within(int64_t row, const gpb_copy2d_job *r) { return max(0, min(row, r->rows)); }

void gpb_mirror(const gpb_copy2d_job *r)
{
    const int64_t side = SIDE / (int64_t)r->element;
    for (int64_t col = 0; col < r->cols; col += side) {
        const int64_t cols = min(side, r->cols - col);
        const int64_t above = within(r->col0 + col - r->row0, r),
                      below = within(r->col0 + col + cols - r->row0, r);
        if (r->uplo == 'U') copy_stored(r, 0, above, col, cols);
        else copy_tiles(r, 0, above, col, cols, false);
        copy_tiles(r, above, below, col, cols, true);
        if (r->uplo == 'L') copy_stored(r, below, r->rows, col, cols);
        else copy_tiles(r, below, r->rows, col, cols, false);
    }
}
