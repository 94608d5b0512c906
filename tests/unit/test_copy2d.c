/* SPDX-License-Identifier: MIT */
/* Copies of a rectangle: every byte of the target is compared with a loop over elements. Buffers end where
   the rectangle does, so that a sanitizer sees any step outside. Of a matrix that is mirrored, the triangle
   that is not stored is NaNs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/copy/copy2d.h"

enum { SHIFT = 4 };      /* bytes by which both sides are off the allocation's alignment */

static bool inside(const gpb_copy2d_job *r, int64_t i, int64_t j)
{
    int64_t row = r->row0 + i, col = r->col0 + j;
    return r->uplo == 'G' || (r->uplo == 'U' ? row <= col : row >= col);
}

/* Bytes from the first element to the last of this many columns. */
static size_t span(const gpb_copy2d_job *r, int64_t ld)
{
    return r->rows > 0 && r->cols > 0 ? (size_t)((r->cols - 1) * ld + r->rows) * r->element : 0;
}

static void expect(const gpb_copy2d_job *r, char *to)
{
    for (int64_t j = 0; j < r->cols; j++)
        for (int64_t i = 0; i < r->rows; i++) {
            const char *source = r->from + (size_t)(i + j * r->ld_from) * r->element;
            char *target = to + (size_t)(i + j * r->ld_to) * r->element;
            if (!inside(r, i, j)) continue;
            if (!r->adds) {
                memcpy(target, source, r->element);
                continue;
            }
            float a, b;
            memcpy(&a, source, sizeof a);
            memcpy(&b, target, sizeof b);
            /* Volatile, so that each is rounded to a float. */
            volatile float scaled = (float)r->beta * b, sum = a + scaled;
            memcpy(target, (const float *)&sum, sizeof b);
        }
}

/* Random bytes. Floats have many magnitudes and both signs; none is special. */
static void fill(char *bytes, size_t count, bool floats)
{
    static uint32_t seed = 1;
    for (size_t i = 0; i + 4 <= count; i += 4) {
        seed = seed * 1664525 + 1013904223;
        uint32_t word = floats ? (seed & 0x807fffff) | ((seed >> 8 & 31) + 112) << 23 : seed;
        memcpy(bytes + i, &word, sizeof word);
    }
}

static void check(gpb_copy2d_job r)
{
    const size_t from = span(&r, r.ld_from), to = span(&r, r.ld_to);
    char *source = malloc(SHIFT + from + 1), *kept = malloc(from + 1), *target = malloc(SHIFT + to + 1),
         *right = malloc(to + 1);
    fill(source, SHIFT + from, r.adds);
    fill(target, SHIFT + to, r.adds);
    source = realloc(source, SHIFT + from);
    target = realloc(target, SHIFT + to);       /* not a byte more than may be touched */
    assert_true(source && target && kept && right);
    memcpy(kept, source + SHIFT, from);
    memcpy(right, target + SHIFT, to);
    r.from = source + SHIFT;
    r.to = target + SHIFT;
    expect(&r, right);
    gpb_copy2d(&r);
    if (memcmp(right, r.to, to) != 0 || memcmp(kept, r.from, from) != 0)
        fail_msg("element %zu uplo %c %lld x %lld ld %lld -> %lld at %lld, %lld target %d adds %d beta %g",
                 r.element, r.uplo, (long long)r.rows, (long long)r.cols, (long long)r.ld_from,
                 (long long)r.ld_to, (long long)r.row0, (long long)r.col0, r.target, r.adds, (double)r.beta);
    free(source);
    free(target);
    free(kept);
    free(right);
}

/* For the triangles: all positions in the whole matrix, and with the diagonal outside on either side. */
static void placed(gpb_copy2d_job r)
{
    static const int64_t places[][2] = { { 0, 0 }, { 1, 0 },   { 0, 1 },  { 5, 2 },
                                         { 2, 6 }, { 300, 0 }, { 0, 300 } };
    for (const char *uplo = "GUL"; *uplo; uplo++)
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            r.uplo = *uplo;
            r.row0 = places[p][0];
            r.col0 = places[p][1];
            check(r);
        }
}

static void shaped(gpb_copy2d_job r)
{
    static const int64_t sizes[] = { 0, 1, 2, 3, 7, 16, 33 }, gaps[] = { 0, 1, 5 };
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 7; j++)
            for (int l = 0; l < 9; l++) {
                r.rows = sizes[i];
                r.cols = sizes[j];
                r.ld_from = r.rows + gaps[l / 3];
                r.ld_to = r.rows + gaps[l % 3];
                placed(r);
            }
}

static void copies(void **state)
{
    (void)state;
    for (enum gpb_store_hint target = GPB_STORE_CACHED; target <= GPB_STORE_STREAMING; target++)
        for (size_t element = 4; element <= 16; element *= 2)
            shaped((gpb_copy2d_job){ .element = element, .target = target });
}

static void adds(void **state)
{
    static const float betas[] = { 1, -1, 0.3f, 3.25f };
    (void)state;
    for (int i = 0; i < 4; i++) shaped((gpb_copy2d_job){ .element = 4, .adds = true, .beta = betas[i] });
}

/* As long as the jobs of a call, with and without gaps, because memcpy and the vector loop treat such
   lengths differently. */
static void long_runs(void **state)
{
    (void)state;
    for (int64_t rows = 40; rows < 5000; rows = rows * 10 + 9)
        for (int gap = 0; gap < 2; gap++) {
            gpb_copy2d_job r = { .element = 4, .uplo = 'G', .rows = rows, .cols = 130000 / rows,
                                 .ld_from = rows, .ld_to = rows + 7 * gap, .beta = -0.7f };
            for (r.target = GPB_STORE_CACHED; r.target <= GPB_STORE_STREAMING; r.target++) check(r);
            r.adds = true;
            r.target = GPB_STORE_PREFETCHED;
            check(r);
        }
}

/* Numbers for which two roundings differ from one: in 1 + beta * to a fused operation would leave 2^-24. */
static void two_roundings(void **state)
{
    float from = -1, to = 1 + 0x1p-12f;
    (void)state;
    gpb_copy2d_job r = { .from = (char *)&from, .to = (char *)&to, .rows = 1, .cols = 1, .ld_from = 1,
                         .ld_to = 1, .element = 4, .uplo = 'G', .adds = true, .beta = 1 + 0x1p-12f };
    gpb_copy2d(&r);
    assert_true(to == 0x1p-11f);
}

/* Small whole numbers, so that each type's answer is exact. */
static void adds_each_type(void **state)
{
    (void)state;
    for (enum gpb_type type = 0; type < GPB_TYPES; type++) {
        const bool complex = gpb_type_of(type)->kind == GPB_TYPE_COMPLEX;
        const gpb_scalar i = complex ? __builtin_complex(0.0, 1.0) : 0;
        const gpb_element from[] = { gpb_element_of(type, 3 - 5 * i), gpb_element_of(type, -7 + 2 * i) };
        const gpb_element wanted[] = { gpb_element_of(type, (3 - 5 * i) + (2 + 3 * i) * (11 + 4 * i)),
                                       gpb_element_of(type, (-7 + 2 * i) + (2 + 3 * i) * (6 - i)) };
        gpb_element to[] = { gpb_element_of(type, 11 + 4 * i), gpb_element_of(type, 6 - i) };
        for (int at = 0; at < 2; at++) {
            gpb_copy2d(&(gpb_copy2d_job){ .from = (const char *)&from[at], .to = (char *)&to[at], .rows = 1,
                                          .cols = 1, .ld_from = 1, .ld_to = 1, .uplo = 'G', .adds = true,
                                          .element = gpb_type_bytes(type), .type = type,
                                          .beta = 2 + 3 * i });
            assert_memory_equal(&to[at], &wanted[at], gpb_type_bytes(type));
        }
    }
}

/* ---- mirrored */

enum { ORDER = 150, GAP = 3, AROUND = 0x5a };    /* a tile has 64 floats a side */

static bool is_stored(char uplo, int64_t row, int64_t col) { return uplo == 'U' ? row <= col : row >= col; }

/* Element (row, col) of a matrix with ORDER + GAP elements a column, as the whole matrix has it. */
static gpb_element whole(const char *matrix, const gpb_copy2d_job *r, int64_t row, int64_t col)
{
    const bool stored = is_stored(r->uplo, row, col);
    gpb_element x;
    memcpy(&x, matrix + (size_t)(stored ? row + col * r->ld_from : col + row * r->ld_from) * r->element,
           r->element);
    if (r->hermitian && r->type == GPB_TYPE_c)
        x.c = __builtin_complex(__real__ x.c, row == col ? 0 : stored ? __imag__ x.c : -__imag__ x.c);
    if (r->hermitian && r->type == GPB_TYPE_z)
        x.z = __builtin_complex(__real__ x.z, row == col ? 0 : stored ? __imag__ x.z : -__imag__ x.z);
    return x;
}

/* The stored triangle has random numbers, and NaNs as imaginary parts on a Hermitian diagonal. */
static char *make_matrix(const gpb_copy2d_job *r)
{
    const size_t count = (size_t)((ORDER - 1) * r->ld_from + ORDER), real = gpb_type_real_bytes(r->type);
    char *matrix = malloc(SHIFT + count * r->element);
    assert_non_null(matrix);
    fill(matrix, SHIFT + count * r->element, true);
    for (int64_t at = 0; at < (int64_t)count; at++) {
        const int64_t row = at % r->ld_from, col = at / r->ld_from;
        char *element = matrix + SHIFT + (size_t)at * r->element;
        if (row >= ORDER || !is_stored(r->uplo, row, col)) memset(element, 0xff, r->element);
        else if (r->hermitian && row == col) memset(element + real, 0xff, r->element - real);
    }
    return matrix;
}

static void check_mirrored(gpb_copy2d_job r, const char *matrix)
{
    const size_t bytes = (size_t)(r.cols * r.ld_to) * r.element;
    char *target = malloc(SHIFT + bytes), *right = malloc(SHIFT + bytes);
    assert_true(target && right);
    memset(target, AROUND, SHIFT + bytes);
    memset(right, AROUND, SHIFT + bytes);
    for (int64_t j = 0; j < r.cols; j++)
        for (int64_t i = 0; i < r.rows; i++) {
            const gpb_element x = whole(matrix, &r, r.row0 + i, r.col0 + j);
            memcpy(right + SHIFT + (size_t)(i + j * r.ld_to) * r.element, &x, r.element);
        }
    r.from = matrix + (size_t)(r.row0 + r.col0 * r.ld_from) * r.element;
    r.to = target + SHIFT;
    gpb_copy2d(&r);
    if (memcmp(target, right, SHIFT + bytes) != 0)
        fail_msg("type %d%s uplo %c %lld x %lld ld %lld at %lld, %lld target %d", (int)r.type,
                 r.hermitian ? " Hermitian" : "", r.uplo, (long long)r.rows, (long long)r.cols,
                 (long long)r.ld_to, (long long)r.row0, (long long)r.col0, r.target);
    free(target);
    free(right);
}

/* Rectangles above the diagonal, below it and across it, at its ends, and all of the matrix. */
static void mirrored(gpb_copy2d_job r)
{
    static const int64_t at[][4] = { { 0, 0, 1, 1 },     { 0, 0, ORDER, ORDER }, { 2, 90, 33, 47 },
                                     { 80, 1, 67, 66 },  { 10, 15, 70, 65 },     { 70, 3, 9, 140 },
                                     { 1, 60, 149, 5 },  { 149, 149, 1, 1 },     { 0, 149, 150, 1 },
                                     { 149, 0, 1, 150 }, { 63, 64, 66, 64 },     { 64, 63, 3, 70 } };
    char *matrix = make_matrix(&r);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        for (int gap = 0; gap < 2; gap++) {
            r.row0 = at[i][0];
            r.col0 = at[i][1];
            r.rows = at[i][2];
            r.cols = at[i][3];
            r.ld_to = r.rows + 5 * gap;
            check_mirrored(r, matrix + SHIFT);
        }
    free(matrix);
}

static void mirrors(void **state)
{
    (void)state;
    for (enum gpb_type type = 0; type < GPB_TYPES; type++)
        for (int hermitian = 0; hermitian <= gpb_type_is_complex(type); hermitian++)
            for (enum gpb_store_hint target = GPB_STORE_CACHED; target <= GPB_STORE_STREAMING; target++)
                for (const char *uplo = "UL"; *uplo; uplo++)
                    mirrored((gpb_copy2d_job){ .element = gpb_type_bytes(type), .type = type, .uplo = *uplo,
                                               .ld_from = ORDER + GAP, .mirrors = true,
                                               .hermitian = hermitian, .target = target });
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(copies), cmocka_unit_test(adds),
                                        cmocka_unit_test(mirrors),
                                        cmocka_unit_test(adds_each_type),
                                        cmocka_unit_test(long_runs), cmocka_unit_test(two_roundings) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
