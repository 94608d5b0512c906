/* SPDX-License-Identifier: MIT */
/* The rule by which k is shared out (dispatch/share.h), and the room that plans leave for it, on an H200 that is a struct. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dispatch/plan.h"
#include "dispatch/share.h"
#include "kernels/gemm_args.h"
#include "tests/unit/random.h"

static const gpb_facts h200 = { .arch = 90, .sms = 132, .device_bytes = INT64_C(112) << 30, .up_gbs = 45, .down_gbs = 45, .dma_gbs = 50,
                                .call_s = 12e-6, .gpu_ratio = 1, .cores = 16, .core_gflops = 20, .host_ratio = 1 };

static gpb_plan ask(int64_t n, int64_t k, const gpb_facts *facts, gpb_policy policy)
{
    const gpb_call call = { .symbol = "sgemm_", .precision = 's', .transa = 'N', .transb = 'N', .uplo = 'G', .m = n, .n = n, .k = k,
                            .alpha = 1, .batch = 1 };
    return gpb_plan_make(&call, facts, &policy);
}

/* What a launch that shares out k keeps to (gemm_args.h), whatever its size; and when it does. */
static void shared_out(void **state)
{
    (void)state;
    const gpb_kernel *ffma = gpb_kernel_table_find("ffma"), *other = gpb_kernel_table_find("ffma_paired");
    const struct { int64_t tiles, k, shared, sharers; } cases[] = {
        { 1024, 4096, 264 + 232, 264 }, { 1089, 4097, 264 + 33, 264 }, { 625, 3135, 264 + 97, 264 }, { 2304, 6132, 264 + 192, 264 },
        { 4096, 8192, 264 + 136, 264 }, { 16384, 16384, 264 + 16, 264 }, { 96, 12288, 96, 264 }, { 16, 4096, 16, 264 }, { 1, 4096, 1, 32 },
        { 256, 2048, 0, 0 }, { 528, 4096, 0, 0 }, { 64, 1024, 0, 0 }, { 1024, 64, 0, 0 }, { INT64_C(1) << 40, 64, 0, 0 } };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        const gpb_share share = gpb_share_choose(ffma, 90, 132, cases[i].tiles, cases[i].k);
        assert_int_equal(share.tiles, cases[i].shared);
        assert_int_equal(share.sharers, cases[i].sharers);
        assert_int_equal(gpb_share_choose(other, 90, 132, cases[i].tiles, cases[i].k).sharers, 0);
        assert_int_equal(gpb_share_choose(ffma, 90, 1000, cases[i].tiles, cases[i].k).sharers, 0);      /* not counters enough */
    }
    int shared = 0;
    for (int round = 0; round < 10000; round++) {
        const gpb_kernel *kernel = &gpb_kernels[GPB_KERNEL_ffma + below(6)];
        const int64_t tiles = size(14), k = size(20), slices = (k + kernel->bk - 1) / kernel->bk;
        const int sms = 1 + (int)below(160);
        const gpb_share share = gpb_share_choose(kernel, 80 + 10 * (int)below(3), sms, tiles, k);
        assert_true(!share.sharers || kernel->bm * kernel->bn >= 128 * kernel->threads);
        if (!share.sharers) continue;
        shared++;
        assert_true(share.tiles >= 1 && share.tiles <= tiles && share.tiles * slices >= share.sharers && share.sharers <= GPB_MOST_SHARERS);
        assert_true((tiles - share.tiles) % share.sharers == 0 && (share.tiles < 2 * share.sharers));
        assert_true(8 * (int64_t)share.sharers * kernel->bm * kernel->bn <= gpb_share_bytes(kernel, sms));
    }
    assert_in_range(shared, 1000, 5000);
}

/* Plans leave room for that where a launch will need it, GPUBLAS_SPLITS does not forbid it and memory is plentiful. */
static void room_to_share(void **state)
{
    (void)state;
    gpb_facts facts = h200;
    const gpb_policy ieee = { .math = GPB_POLICY_IEEE, .kernel = "ffma" }, whole = { .kernel = "ffma", .splits = 1 };
    const int64_t room = gpb_share_bytes(gpb_kernel_table_find("ffma"), facts.sms);
    assert_int_equal(room, INT64_C(2) * 264 * 128 * 128 * 4);
    assert_int_equal(ask(4096, 4096, &facts, ieee).bytes_parts, room);
    assert_int_equal(ask(2048, 2048, &facts, ieee).bytes_parts, room);      /* its strips do */
    facts.a = facts.b = facts.c = GPB_PLACE_DEVICE;
    assert_int_equal(ask(4096, 4096, &facts, ieee).bytes_parts, room);
    assert_int_equal(ask(2048, 2048, &facts, ieee).bytes_parts, 0);
    assert_int_equal(ask(4096, 4096, &facts, whole).bytes_parts, 0);
    assert_true(ask(4096, 4096, &facts, ieee).gpu_s < ask(4096, 4096, &facts, whole).gpu_s);
    assert_int_equal(ask(4096, 0, &facts, ieee).bytes_parts, 0);
    facts.device_bytes = 8 * room - 1;
    assert_int_equal(ask(4096, 4096, &facts, ieee).bytes_parts, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(shared_out), cmocka_unit_test(room_to_share) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
