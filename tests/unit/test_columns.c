/* SPDX-License-Identifier: MIT */
/* A matrix's columns in another order, in place: against a copy, in jobs of any rows, with elements of every
   size; nothing else is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "src/copy/columns.h"
#include "tests/unit/random.h"

enum { MOST = 67 };

/* How the columns are ordered: as they are; backwards; one cycle; pairs; at random. */
static void draw(int how, int32_t *from, int64_t n)
{
    for (int64_t j = 0; j < n; j++) from[j] = (int32_t)j;
    for (int64_t j = 0; j < n; j++) {
        switch (how) {
        case 1: from[j] = (int32_t)(n - 1 - j); break;
        case 2: from[j] = (int32_t)((j + 1) % n); break;
        case 3: from[j] = (int32_t)((j ^ 1) < n ? j ^ 1 : j); break;
        case 4: {
            const int64_t other = j + below(n - j);
            const int32_t here = from[j];
            from[j] = from[other];
            from[other] = here;
            break;
        }
        default: break;
        }
    }
}

static void check(int how, int64_t rows, int64_t n, size_t element, int64_t each)
{
    const int64_t ld = rows + 3;
    const size_t column = (size_t)ld * element, bytes = column * (size_t)n;
    int32_t from[MOST], was[MOST], walk[MOST];
    char *a = malloc(bytes), *wanted = malloc(bytes);
    assert_true(a && wanted);
    for (size_t i = 0; i < bytes; i++) a[i] = (char)below(256);
    memcpy(wanted, a, bytes);
    draw(how, from, n);
    memcpy(was, from, sizeof from);
    for (int64_t j = 0; j < n; j++)
        memcpy(wanted + (size_t)j * column, a + (size_t)was[j] * column, (size_t)rows * element);
    gpb_columns_job job = { .ld = ld, .element = element, .walk = walk,
                            .count = gpb_columns_walk(from, n, walk) };
    if (how == 0) assert_int_equal(job.count, 0);
    assert_true(job.count <= n);
    for (int64_t row = 0; row < rows; row += each) {
        job.a = a + (size_t)row * element;
        job.rows = rows - row < each ? rows - row : each;
        gpb_columns_move(&job);
    }
    assert_memory_equal(a, wanted, bytes);
    free(a);
    free(wanted);
}

static void orders(void **unused)
{
    (void)unused;
    for (int how = 0; how < 5; how++)
        for (int64_t n = 1; n <= MOST; n += n < 6 ? 1 : 20)
            for (size_t element = 4; element <= 16; element *= 2) {
                check(how, 5, n, element, 5);
                check(how, 7, n, element, 3);
                check(how, 1100, n, element, 1100);
                check(how, 513, n, element, 200);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(orders) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
