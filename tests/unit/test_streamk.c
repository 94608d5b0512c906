/* SPDX-License-Identifier: MIT */
/* The rules of Stream-K (dispatch/streamk.h; for a SLICED kernel's last round kernels/sliced.h), the room
   that plans leave for it, and what the cost model predicts for it, on an H200 that is a struct. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dispatch/cost.h"
#include "dispatch/decide.h"
#include "dispatch/streamk.h"
#include "kernels/sliced.h"
#include "tests/unit/random.h"

static const gpb_facts h200 = { .gpu.arch = 90, .gpu.sms = 132, .gpu.bytes = INT64_C(112) << 30,
                                .link.up_gbs = 45, .link.down_gbs = 45, .link.dma_gbs = 50,
                                .link.call_s = 12e-6, .learnt.gpu_ratio = 1, .host.cores = 16,
                                .host.core_gflops = 20, .learnt.host_ratio = 1 };

static gpb_plan ask(int64_t n, int64_t k, const gpb_facts *facts, gpb_policy policy)
{
    const gpb_call call = { .symbol = "sgemm_", .type = GPB_TYPE_s, .x[GPB_A].trans = 'N',
                            .x[GPB_B].trans = 'N', .x[GPB_C].uplo = 'G', .m = n, .n = n, .k = k,
                            .alpha = 1, .batch = 1 };
    return gpb_decide(&call, facts, &policy);
}

/* The rules that a Stream-K launch keeps (gemm_args.h), whatever its size, and when there is one. */
static void shared_out(void **state)
{
    (void)state;
    const gpb_kernel *ffma = gpb_kernel_table_find("ffma", GPB_TYPE_s);
    const gpb_kernel *other = gpb_kernel_table_find("ffma_paired", GPB_TYPE_s);
    const struct { int64_t tiles, k, streamk_tiles, streamk_blocks; } cases[] = {
                  { 1024, 4096, 264 + 232, 264 },
                  { 1089, 4097, 264 + 33, 264 },
                  { 625, 3135, 264 + 97, 264 },
                  { 2304, 6132, 264 + 192, 264 },
                  { 4096, 8192, 264 + 136, 264 },
                  { 16384, 16384, 264 + 16, 264 },
                  { 96, 12288, 96, 264 },
                  { 16, 4096, 16, 264 },
                  { 1, 4096, 1, 32 },
                  { 256, 2048, 0, 0 },
                  { 528, 4096, 0, 0 },
                  { 64, 1024, 0, 0 },
                  { 1024, 64, 0, 0 },
                  { INT64_C(1) << 40, 64, 0, 0 } };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        const gpb_streamk streamk = gpb_streamk_choose(ffma, 90, 132, cases[i].tiles, cases[i].k);
        assert_int_equal(streamk.tiles, cases[i].streamk_tiles);
        assert_int_equal(streamk.blocks, cases[i].streamk_blocks);
        assert_int_equal(gpb_streamk_choose(other, 90, 132, cases[i].tiles, cases[i].k).blocks, 0);
        /* Not enough counters. */
        assert_int_equal(gpb_streamk_choose(ffma, 90, 1000, cases[i].tiles, cases[i].k).blocks, 0);
    }
    int shared = 0;
    for (int round = 0; round < 10000; round++) {
        const gpb_kernel *kernel = &gpb_kernels[GPB_KERNEL_s_ffma + below(6)];
        const int64_t tiles = size(14), k = size(20), k_tiles = (k + kernel->bk - 1) / kernel->bk;
        const int sms = 1 + (int)below(160);
        const gpb_streamk streamk = gpb_streamk_choose(kernel, 80 + 10 * (int)below(3), sms, tiles, k);
        assert_true(!streamk.blocks || kernel->bm * kernel->bn >= 128 * kernel->threads);
        if (!streamk.blocks) continue;
        shared++;
        assert_true(streamk.tiles >= 1 && streamk.tiles <= tiles && streamk.tiles * k_tiles >= streamk.blocks
                    && streamk.blocks <= GPB_MAX_STREAMK_BLOCKS);
        assert_true((tiles - streamk.tiles) % streamk.blocks == 0 && (streamk.tiles < 2 * streamk.blocks));
        assert_true(8 * (int64_t)streamk.blocks * kernel->bm * kernel->bn <= gpb_streamk_bytes(kernel, sms));
    }
    assert_in_range(shared, 1000, 5000);
}

/* Plans leave room for it if a launch will need it, GPUBLAS_SPLITS does not forbid it and memory is
   plentiful. */
static void room_to_share(void **state)
{
    (void)state;
    gpb_facts facts = h200;
    const gpb_policy ieee = { .math = GPB_POLICY_IEEE, .kernel = "ffma" },
                     whole = { .kernel = "ffma", .splits = 1 };
    const int64_t room = gpb_streamk_bytes(gpb_kernel_table_find("ffma", GPB_TYPE_s), facts.gpu.sms);
    assert_int_equal(room, INT64_C(2) * 264 * 128 * 128 * 4);
    assert_int_equal(ask(4096, 4096, &facts, ieee).bytes_parts, room);
    assert_int_equal(ask(2048, 2048, &facts, ieee).bytes_parts, room);      /* its strips do */
    facts.where[GPB_A].place = facts.where[GPB_B].place = facts.where[GPB_C].place = GPB_PLACE_DEVICE;
    assert_int_equal(ask(4096, 4096, &facts, ieee).bytes_parts, room);
    assert_int_equal(ask(2048, 2048, &facts, ieee).bytes_parts, 0);
    assert_int_equal(ask(4096, 4096, &facts, whole).bytes_parts, 0);
    assert_true(ask(4096, 4096, &facts, ieee).gpu_s < ask(4096, 4096, &facts, whole).gpu_s);
    assert_int_equal(ask(4096, 0, &facts, ieee).bytes_parts, 0);
    facts.gpu.bytes = 8 * room - 1;
    assert_int_equal(ask(4096, 4096, &facts, ieee).bytes_parts, 0);
}

/* ---- SLICED kernels */

static int64_t ceiling(int64_t x, int64_t y) { return (x + y - 1) / y; }

/* The time that gpb_sliced_tail_parts claims to minimise. */
static int64_t time_of(int64_t rest, int64_t clusters, int64_t chunks, int64_t parts, int slices)
{
    return parts == 1 ? chunks : ceiling(rest * parts, clusters) * (ceiling(chunks, parts) + 12 / slices);
}

static void check_last_round(int64_t rest, int64_t clusters, int64_t chunks, int slices)
{
    const int64_t parts = gpb_sliced_tail_parts((uint32_t)rest, (uint32_t)clusters, (uint32_t)chunks, slices);
    const bool counters = rest * GPB_SLICED_CLUSTER * GPB_SLICED_GROUPS <= GPB_SLICED_COUNTERS;
    const int64_t tile = 128 * 64, chosen = time_of(rest, clusters, chunks, parts, slices);
    assert_in_range(parts, 1, GPB_SLICED_MAX_PARTS);
    if (parts == 1 && !rest) return;
    if (parts > 1) {
        assert_true(counters && ceiling(rest * parts, clusters) <= GPB_SLICED_MAX_ROUNDS);
        assert_true(rest * parts * GPB_SLICED_CLUSTER * tile * 4 <= gpb_sliced_partial_bytes(clusters, tile));
    }
    if (2 * rest <= clusters && counters) {       /* one round, in as many parts as there are clusters for */
        const int64_t most = clusters / rest < 8 ? clusters / rest : 8,
                      deep = chunks / 2 > 1 ? chunks / 2 : 1;
        assert_int_equal(parts, most < deep ? most : deep);
    } else if (counters) {
        assert_true(parts == 1 || (chunks / parts >= GPB_SLICED_LATE_CHUNKS && chosen < chunks));
        for (int64_t other = 1; other <= 8; other++) {
            if (other > 1 && (chunks / other < 8 || rest * other > 4 * clusters)) continue;
            const int64_t would = time_of(rest, clusters, chunks, other, slices);
            assert_true(chosen < would || (chosen == would && parts <= other));
        }
    }
}

static void last_round(void **state)
{
    (void)state;
    const struct { uint32_t rest, clusters, chunks, parts;
    } cases[] = { { 48, 66, 384, 4 },  { 50, 66, 384, 5 },   { 40, 66, 384, 3 },  { 52, 66, 2048, 5 },
                  { 53, 66, 2048, 1 }, { 50, 66, 40, 1 },    { 61, 66, 98, 1 },   { 33, 66, 128, 2 },
                  { 65, 66, 64, 1 },   { 34, 66, 128, 5 },   { 34, 66, 16, 1 },   { 1, 66, 64, 8 },
                  { 1, 66, 5, 2 },     { 1, 66, 1, 1 },      { 20, 66, 2048, 3 }, { 0, 66, 64, 1 },
                  { 0, 1, 64, 1 },     { 257, 400, 4096, 1 } };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
        assert_int_equal(gpb_sliced_tail_parts(cases[i].rest, cases[i].clusters, cases[i].chunks, 2),
                         cases[i].parts);
    int several = 0;
    for (int round = 0; round < 100000; round++) {
        const int64_t clusters = 1 + below(round % 8 ? 80 : 600), rest = below(clusters), chunks = size(12);
        const int slices = 1 + (int)below(3);
        check_last_round(rest, clusters, chunks, slices);
        several += 2 * rest > clusters
                   && gpb_sliced_tail_parts((uint32_t)rest, (uint32_t)clusters, (uint32_t)chunks, slices) > 1;
    }
    assert_in_range(several, 5000, 50000);
}

/* 12288 x 128 x 12288: 48 pairs of tiles on 66 clusters. */
static void last_round_predicted(void **state)
{
    (void)state;
    const gpb_tuned tuned = { .blocks = 1, .per_share = 1, .tile_us = 2, .join_us = 6 };
    gpb_kernel_cost cost = { .kernel = &gpb_kernels[GPB_KERNEL_s_fp16x3], .tuned = &tuned, .tiles = 96,
                             .places = 132, .k_tiles = 384, .k_tile_s = 1e-6, .part_fixed_s = 6e-6 };
    const struct { double tiles, us; } cases[] = { { 96, 3 * 96 + 3 * 2 + 6 },
                  { 132, 384 + 2 },
                  { 132 + 96, 384 + 2 + 3 * 96 + 3 * 2 + 6 },
                  { 64, 192 + 2 + 6 },
                  { 120, 384 + 2 } };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        cost.tiles = cases[i].tiles;
        assert_in_range((int)(gpb_cost_seconds(&cost, 1) * 1e7 + 0.5), (int)(cases[i].us * 10) - 1,
                        (int)(cases[i].us * 10) + 1);
    }
    cost.kernel = gpb_kernel_table_find("fp16x3_mma", GPB_TYPE_s);
    cost.tiles = 96;     /* cuts none */
    assert_in_range((int)(gpb_cost_seconds(&cost, 1) * 1e7 + 0.5), 3859, 3861);
    cost.kernel = gpb_kernel_table_find("fp16x3", GPB_TYPE_s);
    cost.tiles = 1e300;      /* beyond all integers */
    assert_true(gpb_cost_seconds(&cost, 1) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(shared_out), cmocka_unit_test(room_to_share),
                                        cmocka_unit_test(last_round),
                                        cmocka_unit_test(last_round_predicted) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
