/* SPDX-License-Identifier: MIT */
/* The tiles of a triangle (kernels/triangle.h), for every shape of tile in gemm.def, the pairs of SLICED and
   MAPPED kernels and many orders: each tile that meets the triangle has one number, and no other tile has
   any. Tiles with neighbouring numbers share what they read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dispatch/kernel_table.h"
#include "dispatch/numbers.h"
#include "kernels/triangle.h"

static bool meets(char uplo, int64_t n, int64_t i, int64_t j, int bm, int bn)
{
    return uplo == 'U' ? i < min(j + bn, n) : min(i + bm, n) > j;
}

/* Every number's tile, once. */
static void check(char uplo, int64_t n, int bm, int bn)
{
    const int64_t rows = ceil_div(n, bm), cols = ceil_div(n, bn), tiles = gpb_triangle_tiles(uplo, n, bm, bn);
    char *seen = calloc((size_t)(rows * cols), 1);
    int64_t wanted = 0;
    assert_non_null(seen);
    for (int64_t x = 0; x < tiles; x++) {
        const gpb_triangle_place at = gpb_triangle_tile(uplo, (unsigned)x, n, bm, bn);
        assert_true(at.tile_m < rows && at.tile_n < cols && !seen[at.tile_m + at.tile_n * rows]++);
    }
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++) {
            assert_int_equal(seen[i + j * rows], meets(uplo, n, i * bm, j * bn, bm, bn));
            wanted += seen[i + j * rows];
        }
    assert_int_equal(wanted, tiles);
    free(seen);
}

static void check_orders(int bm, int bn)
{
    const int longer = max(bm, bn);
    for (int64_t n = 1; n <= 20 * longer; n += n < 3 * longer ? longer / 8 + 1 : longer * 3 / 2 + 1)
        for (int turned = 0; turned < 2; turned++) check("UL"[turned], n, bm, bn);
    for (int64_t n = longer; n <= 20 * longer; n += longer)
        for (int off = -1; off <= 1; off++) check("UL"[n / longer % 2], n + off, bm, bn);
}

static void every_tile(void **state)
{
    (void)state;
    for (int x = 0; x < gpb_kernel_count; x++) {
        const gpb_kernel *kernel = &gpb_kernels[x];
        check_orders(kernel->bm, kernel->bn);
        if (kernel->form == GPB_FORM_SLICED) check_orders(2 * kernel->bm, kernel->bn);
        if (gpb_kernel_table_can(kernel, GPB_CAP_PAIRS)) check_orders(kernel->bm, 2 * kernel->bn);
    }
}

/* The band of a number, up to the largest that a launch may have. */
static void bands(void **state)
{
    (void)state;
    for (uint64_t t = 0; t <= INT32_MAX; t += t < 100000 ? 1 : 9973) {
        const uint64_t b = gpb_triangle_band((unsigned)t);
        assert_true(32 * b * b + 4 * b <= t && 32 * (b + 1) * (b + 1) + 4 * (b + 1) > t);
    }
}

/* What 132 blocks side by side read: at most a third more panels than a square of tiles would, but for the
   first bands. */
static void shared_panels(void **state)
{
    (void)state;
    enum { N = 32768, EDGE = 128, ROUND = 132, SIDE = N / EDGE };
    for (int turned = 0; turned < 2; turned++) {
        const int64_t tiles = gpb_triangle_tiles("UL"[turned], N, EDGE, EDGE);
        int64_t panels = 0, rounds = 0;
        for (int64_t first = 0; first + ROUND <= tiles; first += ROUND, rounds++) {
            char down[SIDE] = { 0 }, across[SIDE] = { 0 };
            for (int64_t x = first; x < first + ROUND; x++) {
                const gpb_triangle_place at = gpb_triangle_tile("UL"[turned], (unsigned)x, N, EDGE, EDGE);
                panels += !down[at.tile_m]++;
                panels += !across[at.tile_n]++;
            }
        }
        assert_true((double)panels / (double)rounds < 31);        /* a square: 23 */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_tile), cmocka_unit_test(bands),
                                        cmocka_unit_test(shared_panels) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
