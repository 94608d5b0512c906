/* SPDX-License-Identifier: MIT */
/* The tiles of a square matrix that meet one of its triangles, and the order in which they are walked. Read
   by kernels, by the host, which launches so many blocks, and by tests.

   Of 'L' a row of tiles begins at the left edge and ends at the diagonal; of 'U' a column of tiles begins at
   the upper edge and ends there. Either is a line here, and its tiles are numbered along it. Each line is at
   least as long as the one before. Tiles' edges are powers of two. So the longer edge is a multiple of the
   shorter one, and along the diagonal lie squares of the longer edge, all tiles of which meet it.

   Lines are walked in bands of about eight times the longer edge, so that tiles that are computed at the same
   time share what they read in the level-2 cache. In a band, the tiles that all of its lines have come
   first, across the band; then what is left of each line, up to the diagonal. */
#ifndef GPB_TRIANGLE_H
#define GPB_TRIANGLE_H

#include "kernels/names.h"

#ifdef __CUDACC__
#define GPB_TRIANGLE_BOTH static __host__ __device__ __forceinline__
#else
#include <math.h>
#define GPB_TRIANGLE_BOTH static inline
#endif

/* Lines of a matrix of order n: tiles are `edge` across the line and `along` along it. */
typedef struct gpb_triangle_lines {
    unsigned edge, along, lines, longest;          /* longest: tiles of the last line */
} gpb_triangle_lines;

GPB_TRIANGLE_BOTH gpb_triangle_lines gpb_triangle_lines_of(int uplo, int64_t n, int bm, int bn)
{
    gpb_triangle_lines t;
    t.edge = (unsigned)(uplo == 'U' ? bn : bm);
    t.along = (unsigned)(uplo == 'U' ? bm : bn);
    t.lines = (unsigned)((n + t.edge - 1) / t.edge);
    t.longest = (unsigned)((n + t.along - 1) / t.along);
    return t;
}

/* Tiles of that line. */
GPB_TRIANGLE_BOTH unsigned gpb_triangle_line(const gpb_triangle_lines *t, unsigned line)
{
    const unsigned long long end = (unsigned long long)(line + 1) * t->edge;
    const unsigned tiles = (unsigned)((end + t->along - 1) / t->along);
    return tiles < t->longest ? tiles : t->longest;
}

/* How many times the longer edge has the shorter one. */
GPB_TRIANGLE_BOTH unsigned gpb_triangle_ratio(const gpb_triangle_lines *t)
{
    return t->edge > t->along ? t->edge / t->along : t->along / t->edge;
}

/* Tiles of all lines before that one, which is the first of a square on the diagonal. */
GPB_TRIANGLE_BOTH int64_t gpb_triangle_before(const gpb_triangle_lines *t, unsigned line)
{
    const int64_t squares = t->edge < t->along ? line / gpb_triangle_ratio(t) : line;
    return gpb_triangle_ratio(t) * (squares * (squares + 1) / 2);
}

/* The number of tiles that meet the triangle. */
GPB_TRIANGLE_BOTH int64_t gpb_triangle_tiles(int uplo, int64_t n, int bm, int bn)
{
    const gpb_triangle_lines t = gpb_triangle_lines_of(uplo, n, bm, bn);
    const unsigned ratio = gpb_triangle_ratio(&t), whole = t.edge < t.along ? t.lines / ratio * ratio
                                                                            : t.lines - 1;
    return gpb_triangle_before(&t, whole) + (int64_t)(t.lines - whole) * t.longest;
}

enum { GPB_TRIANGLE_BAND = 8 };            /* of the longer edge */

/* The band in which the tile lies, t = number / ratio: the largest b with 32 b b + 4 b <= t, which is what
   gpb_triangle_before says of its first line. */
GPB_TRIANGLE_BOTH unsigned gpb_triangle_band(unsigned t)
{
    const int64_t half = GPB_TRIANGLE_BAND / 2, square = half * GPB_TRIANGLE_BAND;
    int64_t b = (int64_t)((sqrtf(1 + 8 * (float)t) - 1) / (2 * GPB_TRIANGLE_BAND));
    while (square * b * b + half * b > t) b--;
    while (square * (b + 1) * (b + 1) + half * (b + 1) <= t) b++;
    return (unsigned)b;
}

typedef struct gpb_triangle_place {
    unsigned tile_m, tile_n;
} gpb_triangle_place;

/* The tile of that number, 0 to gpb_triangle_tiles - 1. */
GPB_TRIANGLE_BOTH gpb_triangle_place gpb_triangle_tile(int uplo, unsigned number, int64_t n, int bm, int bn)
{
    const gpb_triangle_lines t = gpb_triangle_lines_of(uplo, n, bm, bn);
    const unsigned ratio = gpb_triangle_ratio(&t);
    const unsigned first = gpb_triangle_band(number / ratio) * GPB_TRIANGLE_BAND
                           * (t.edge < t.along ? ratio : 1);
    const unsigned high = GPB_TRIANGLE_BAND * (t.edge < t.along ? ratio : 1);
    const unsigned lines = t.lines - first < high ? t.lines - first : high;
    const unsigned common = gpb_triangle_line(&t, first);
    unsigned rest = (unsigned)(number - gpb_triangle_before(&t, first)), line = first, at;
    if (rest < common * lines) {
        line += rest % lines;
        at = rest / lines;
    } else {
        rest -= common * lines;
        for (unsigned more; rest >= (more = gpb_triangle_line(&t, line) - common); line++) rest -= more;
        at = common + rest;
    }
    const gpb_triangle_place place = { uplo == 'U' ? at : line, uplo == 'U' ? line : at };
    return place;
}

/* The tiles that a launch computes: of an m x n block of C, or of the triangle of a square one. */
#define GPB_TILES_OF(uplo, m, n, bm, bn) \
    ((uplo) ? gpb_triangle_tiles(uplo, n, bm, bn) : GPB_TILES(m, n, bm, bn))
#define GPB_MAPPED_BLOCKS(uplo, m, n, bm, bn, caps) \
    ((caps) & GPB_CAP_PAIRS ? 2 * GPB_TILES_OF(uplo, m, n, bm, 2 * (bn)) : GPB_TILES_OF(uplo, m, n, bm, bn))

#endif
