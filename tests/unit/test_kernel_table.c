/* SPDX-License-Identifier: MIT */
/* What must hold for every row of the kernel table, and the table itself for review (kernels.golden).
   usage: test_kernel_table kernels.golden | test_kernel_table --print */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "dispatch/kernel_table.h"
#include "kernels/gemm_args.h"
#include "tests/unit/golden.h"

static void print_kernels(int fd)
{
    static const char *math[] = { "FMA", "TF32", "FP16X3", "BF16X6", "INT8X15" };
    static const char *form[] = { "STRIDED", "PADDED", "PADDED_C", "SLICED", "MAPPED", "RESIDUES" };
    for (int i = 0; i < gpb_kernel_count; i++) {
        const gpb_kernel *q = &gpb_kernels[i];
        const gpb_image_row *image = &gpb_image_rows[q->image];
        dprintf(fd, "%2d %-13s %-23s %-12s sm_%-3s %-6s %-8s", q->step, q->name, q->symbol, image->name,
                image->arch, math[q->math], form[q->form]);
        dprintf(fd, " %3dx%3dx%2d stages %d threads %4d dynamic shared %5d  %s\n", q->bm, q->bn, q->bk,
                q->stages, q->threads, q->smem, q->idea);
    }
}

static void golden(void **state)
{
    assert_true(golden_matches(print_kernels, *state));
}

static int is_power_of_two(int x) { return x > 0 && (x & (x - 1)) == 0; }

static void rows_hold(void **state)
{
    (void)state;
    assert_int_equal(gpb_kernel_count, GPB_KERNELS);
    for (int i = 0; i < gpb_kernel_count; i++) {
        const gpb_kernel *q = &gpb_kernels[i];
        char symbol[64];
        snprintf(symbol, sizeof symbol, "gpb_%cgemm_%s", gpb_type_of(q->type)->letter, q->name);
        assert_string_equal(q->symbol, symbol);
        assert_int_equal(q->type, gpb_image_rows[q->image].type);
        for (int j = 0; j < i; j++)
            assert_true(gpb_kernels[j].type != q->type || gpb_kernels[j].step != q->step);
        /* Names are unique, because the first match is this row. */
        assert_ptr_equal(gpb_kernel_table_find(q->name, q->type), q);
        /* kernel_pick.c masks. */
        assert_true(is_power_of_two(q->bm) && is_power_of_two(q->bn) && is_power_of_two(q->bk));
        /* panels.c cuts at 256. STRIDED kernels guard their edges. */
        assert_true(q->form == GPB_FORM_STRIDED
                    || (256 % q->bm == 0 && 256 % q->bn == 0 && 256 % q->bk == 0));
        assert_true(q->threads % 32 == 0 && q->threads <= 1024);
        /* Threads share a tile evenly, or groups of them share a k-tile. SLICED, MAPPED and RESIDUES kernels
           have a producer. */
        assert_true(q->form >= GPB_FORM_SLICED || q->bm * q->bn % q->threads == 0
                    || q->threads % (q->bm * q->bn) == 0);
        assert_true(q->form != GPB_FORM_SLICED || (GPB_GUARD % q->bm == 0 && GPB_GUARD % q->bn == 0));
        assert_true(q->smem >= 0 && q->smem <= gpb_kernel_table_shared(90) && q->stages >= 1);
        /* A GPU with less shared memory is served by other rows, which is so of d, c and z alone. */
        assert_true(q->type != GPB_TYPE_s || !gpb_kernel_table_runs(q->image, 89)
                    || gpb_kernel_table_serves(q, gpb_kernel_table_runs(q->image, 75) ? 75 : 89));
    }
}

/* On any GPU that a type has kernels for, some row takes any operands in place. */
static void one_takes_all(void **state)
{
    (void)state;
    static const int archs[] = { 75, 80, 86, 89, 90, 100, 120 };
    for (enum gpb_type type = 0; type < GPB_TYPES; type++)
        for (int a = type == GPB_TYPE_s ? 0 : 1; a < (int)(sizeof archs / sizeof *archs); a++) {
            int count = 0;
            for (int i = 0; i < gpb_kernel_count; i++)
                count += gpb_kernels[i].type == type && gpb_kernels[i].form == GPB_FORM_STRIDED
                         && gpb_kernels[i].math == GPB_MATH_FMA
                         && gpb_kernel_table_serves(&gpb_kernels[i], archs[a]);
            assert_true(count > 0);
        }
}

/* KiB of shared memory that a block may have, by CUDA's table of compute capabilities. */
static void shared_memory(void **state)
{
    (void)state;
    static const struct { int arch, kib; } gpus[] = { { 75, 64 }, { 80, 163 }, { 86, 99 }, { 87, 163 },
                                                      { 89, 99 }, { 90, 227 }, { 100, 227 }, { 120, 99 } };
    int refused = 0;
    for (int a = 0; a < (int)(sizeof gpus / sizeof *gpus); a++)
        for (int i = 0; i < gpb_kernel_count; i++) {
            const gpb_kernel *q = &gpb_kernels[i];
            const bool runs = gpb_kernel_table_runs(q->image, gpus[a].arch),
                       fits = q->smem <= gpus[a].kib << 10;
            assert_int_equal(gpb_kernel_table_serves(q, gpus[a].arch), runs && fits);
            refused += runs && !fits;
        }
    assert_true(refused > 0);
}

static void runs(void **state)
{
    (void)state;
    assert_true(gpb_kernel_table_runs(GPB_IMAGE_sgemm_ladder, 75)
                && gpb_kernel_table_runs(GPB_IMAGE_sgemm_ladder, 120));
    assert_false(gpb_kernel_table_runs(GPB_IMAGE_sgemm_ladder, 70)
                 || gpb_kernel_table_runs(GPB_IMAGE_sgemm_async, 75));
    assert_true(gpb_kernel_table_runs(GPB_IMAGE_sgemm_async, 80)
                && gpb_kernel_table_runs(GPB_IMAGE_sgemm_tf32, 90));
    assert_null(gpb_kernel_table_find("no_such_row", GPB_TYPE_s));
    assert_null(gpb_kernel_table_find("", GPB_TYPE_s));
}

int main(int count, char **arguments)
{
    golden_print(print_kernels, count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(golden, count > 1 ? arguments[1] : "tests/unit/kernels.golden"),
        cmocka_unit_test(rows_hold),
        cmocka_unit_test(one_takes_all),
        cmocka_unit_test(shared_memory),
        cmocka_unit_test(runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
