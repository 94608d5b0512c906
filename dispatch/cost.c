/* SPDX-License-Identifier: MIT */
/* The cost model; see cost.h. The figures of the host and the link are from
   tests/bench/results/nvidia-h200/evidence/machine.md (one H200 and 16 cores of its host, 2026-11-20). Those
   of the kernels are in tuned.def. */
#include "dispatch/cost.h"

#include <math.h>

#include "dispatch/numbers.h"
#include "dispatch/packing.h"
#include "dispatch/plan.h"
#include "kernels/sliced.h"

/* ceil(x) for x >= 0. */
static double whole(double x)
{
    if (x > 1e18) return x;
    double below = (double)(int64_t)x;
    return below < x ? below + 1 : x;
}

/* The cube root of x >= 1 to a few digits, without libm, which every preloaded process would have to map. */
static double cube_root(double x)
{
    int exponent;
    frexp(x, &exponent);
    double root = ldexp(1, (exponent + 1) / 3);
    for (int i = 0; i < 4; i++) root -= (root - x / (root * root)) / 3;
    return root;
}

#define CACHED 0x1p25            /* bytes that fit into a host's last cache */

/* p cores on a problem of edge d do the work of p d / (d + 20 p). OpenBLAS on 16 cores reached 0.46, 0.83,
   0.77, 0.99, 1 of its best rate at d = 512, 1024, 2048, 4096, 8192; the model says 0.62, 0.76, 0.86, 0.93,
   0.96. Skinny problems run at the speed of memory, 10 GB/s a core and 63 in all, or at that of the caches if
   they may fit there: with k = 1 to 20 and up to 8 MB one core moved 27 to 80 GB/s, four 50 to 95, sixteen 30
   to 150 (`--never-slower`, 2026-11-21). If the model takes the host for too fast, the host is tried and its
   speed learnt. If it takes the host for too slow, the host is never tried. */
double gpb_cost_host(const gpb_call *call, const gpb_facts *facts)
{
    double m = (double)call->m, n = (double)call->n, k = (double)gpb_call_depth(call);
    double batch = (double)call->batch;
    double cores = facts->host.cores, triangle = call->x[GPB_C].uplo == 'G' ? 1 : 0.5;
    double share = gpb_call_solves(call) ? 0.5 : triangle;
    double edge = cube_root(m * n * k), flops = gpb_type_of(call->type)->flops * m * n * k * share * batch;
    flops *= gpb_call_products(call);
    const double b = gpb_call_one_matrix(call) ? 0 : k * n;
    double bytes = (double)gpb_call_element(call) * (m * k + b + 2 * m * n * triangle) * batch;
    const double gflops = gpb_facts_core_gflops(facts, call->type);
    double compute = k > 0 ? flops * (edge + 20 * cores) / (edge * cores * gflops * 1e9) : 0;
    const double near = min(bytes, CACHED), far = bytes - near;
    return 1e-6 + max(compute, 1e-9 * (near / min(40 * cores, 120) + far / min(10 * cores, 63)));
}

double gpb_cost_link(double bytes, enum gpb_place place, bool up, const gpb_facts *facts)
{
    double gbs = place == GPB_PLACE_HOST ? (up ? facts->link.up_gbs : facts->link.down_gbs)
                 : facts->link.dma_gbs;
    return place == GPB_PLACE_DEVICE ? 0 : bytes / (1e9 * gbs);
}

/* One core copies 10 GB/s. About 128 KiB of a large operand must be in the ring before the link begins (the
   first chunk up has 32 KiB, run/upload.c), and as much is still to be copied when it ends (a job of the last
   chunk home has 32 to 256 KiB, staging.h). */
double gpb_cost_reach(double bytes, enum gpb_place place)
{
    return place == GPB_PLACE_HOST ? min(bytes, 128 << 10) / 10e9 : 0;
}

/* ---- kernels ---- */

enum { VECTOR = 16 };            /* bytes that a thread loads at once */

static bool is_misaligned(const gpb_call *call, const gpb_facts *facts, enum gpb_operand x)
{
    const uint64_t column = (uint64_t)call->x[x].ld * gpb_call_element(call);
    return gpb_where_is(facts, x, GPB_PLACE_DEVICE)
           && ((uintptr_t)call->x[x].base % VECTOR != 0 || column % VECTOR != 0);
}

/* How often the call's depth is gone through in a launch. */
static int depths(const gpb_call *call) { return gpb_call_products(call) / gpb_call_apart(call); }

gpb_case gpb_cost_case(const gpb_call *call, const gpb_facts *facts, const gpb_generation *gpu)
{
    const double byte_s = 1e-9 / gpu->memory_gbs;
    gpb_case on = { .call = call, .facts = facts, .m = (double)call->m, .n = (double)call->n,
                    .k = (double)gpb_call_depth(call) * depths(call),
                    .batch = (double)call->batch, .sms = facts->gpu.sms,
                    .element = (double)gpb_call_element(call),
                    .peak_s = gpb_generation_fma_s(gpu, call->type),
                    .byte_s = byte_s, .passed_s = byte_s / gpu->pass,
                    .launch_s = 1e-6 * gpu->launch_us, .streamk = true };
    on.triangle = gpb_packing_into_triangle(call, facts);
    for (int x = 0; x < GPB_OPERANDS; x++) {
        on.elements[x] = gpb_call_elements(call, x) * (x == GPB_C ? 1 : depths(call));
        on.misaligned[x] = is_misaligned(call, facts, x);
    }
    if (on.triangle) on.elements[GPB_C] *= 0.5;
    return on;
}

static double transposed(const gpb_tuned *tuned, const gpb_case *on, enum gpb_operand x)
{
    return gpb_matrix_transposed(&on->call->x[x]) ? tuned->trans[x] : 1;
}

/* How much slower the kernel reads the operand where it is, because of the way it is stored. */
static double slowdown(const gpb_tuned *tuned, const gpb_case *on, enum gpb_operand x)
{
    return transposed(tuned, on, x) * (on->misaligned[x] ? tuned->misaligned : 1);
}

/* The same for the loop over k of a kernel that reads operands in place. (A MAPPED one: copies_s.) */
static double hindrance(const gpb_kernel *kernel, const gpb_tuned *tuned, const gpb_case *on)
{
    return kernel->form == GPB_FORM_STRIDED ? slowdown(tuned, on, GPB_A) * slowdown(tuned, on, GPB_B) : 1;
}

/* Seconds for which a k tile of a MAPPED kernel keeps a multiprocessor busy with tensor copies. They take
   about the same, of 1 KB or 2. A k tile is two slabs of as many k as a line has places
   (kernels/mapped/lanes.cuh). Of an operand that is contiguous along k, or whose places are whole lines, a
   copy brings all of its slab, else a line of places. So small tiles are slow if neither is. If copies were
   all, each would take (H100, NT, a copy a line, ns): DSYRK 1024 in tiles of 32 x 32 37, 256 x 256 x 100000
   of 64 x 32 34; ZHERK 1024 31, 2048 32. These calls with op(A) transposed take 0.81, 0.97, 0.64 and 0.81 as
   long. */
#define COPY_S 33e-9
static double copies_s(const gpb_kernel *kernel, const gpb_case *on)
{
    double copies = 0;
    if (kernel->form != GPB_FORM_MAPPED) return 0;
    for (int x = 0; x < GPB_C; x++) {
        const bool packs = gpb_packing_of(kernel, on->call, on->facts, x),
                   shares = x == GPB_A && gpb_kernel_table_can(kernel, GPB_CAP_PAIRS);
        const int places = gpb_kernel_table_edge(kernel, x) / (shares ? 2 : 1), line = kernel->bk / 2;
        const bool along_k = packs ? x == GPB_B : gpb_call_k_down(on->call, x);
        const bool whole_lines = (x == GPB_A ? on->call->m : on->call->n) % line == 0;
        copies += along_k || whole_lines ? 2 : 2.0 * places / line;
    }
    return copies * COPY_S;
}

/* The least per_share and per_alone (cost.h) that these copies leave. */
static double least_share(const gpb_kernel *kernel, const gpb_case *on)
{
    const double copies = copies_s(kernel, on);
    return copies > 0 ? copies / ((double)kernel->bm * kernel->bn * kernel->bk * on->peak_s) : 0;
}

/* Behind another launch of a queue a MAPPED kernel takes as long as by itself, and others so much longer.
   With this the kernels of z for the shapes of LAPACK's recursions are 1.015 times from the best, by the
   figures of single calls 1.093; of d 1.017 and 1.016 (H200: evidence/choice.md). s and c have no MAPPED
   kernels, so their choice is the same either way. */
#define BEHIND_S 2e-6
static double behind_s(const gpb_kernel *kernel, const gpb_case *on)
{
    return on->facts->gpu.queued && kernel->form != GPB_FORM_MAPPED ? BEHIND_S : 0;
}

/* Number of tiles along a size, the last perhaps incomplete. Their edges are powers of two. */
static double along(int64_t size, int shift)
{
    return (double)((size >> shift) + ((size & ((INT64_C(1) << shift) - 1)) != 0));
}

static int shift(int edge) { return __builtin_ctz((unsigned)edge); }

/* Tiles of a member's C: `rows` by `cols` of them, or those of a triangle of order n. */
static double tiles_in(const gpb_kernel *kernel, double rows, double cols, int bm, const gpb_case *on)
{
    enum { EXACT = 1 << 20 };    /* beyond it half of them will do */
    const int uplo = gpb_packing_triangle(kernel, on->call, on->facts);
    if (!uplo || cols == 0) return rows * cols;
    return on->call->n > EXACT ? 0.5 * rows * cols
           : (double)gpb_triangle_tiles(uplo, on->call->n, bm, kernel->bn);
}

/* How Stream-K would cut the call's k in one launch. */
static gpb_streamk share_of(const gpb_kernel *kernel, double tiles, const gpb_case *on)
{
    const gpb_facts *facts = on->facts;
    if (!on->streamk || on->k == 0 || on->call->joined || tiles > INT32_MAX
        || !gpb_streamk_fits(kernel, facts->gpu.sms, facts->gpu.bytes))
        return (gpb_streamk){ 0 };
    return gpb_streamk_choose(kernel, facts->gpu.arch, facts->gpu.sms, (int64_t)tiles, on->call->k);
}

/* The slicer of operands of any depth reads them twice, and so moves half as much again (slicer.def). */
static double readings(const gpb_kernel *kernel, const gpb_case *on)
{
    if (kernel->form != GPB_FORM_SLICED) return 1;
    const int64_t k = gpb_plan_sliced_k(kernel, on->call->k);
    const gpb_slicer *slicer
        = gpb_kernel_table_slicer(kernel->type, on->facts->gpu.arch, k, gpb_plan_slices(kernel));
    return slicer->max_k ? 1 : 1.5;
}

/* True if one slicing serves as both operands. */
static bool is_made_once(const gpb_kernel *kernel, const gpb_case *on)
{
    return gpb_packing_one(kernel, on->call, on->facts);
}

/* Seconds of the passes before and after the kernel: packing, slicing, unpacking. Each pass over an operand
   is a launch, but one launch slices both. */
static double passes_s(const gpb_kernel *kernel, const gpb_tuned *tuned, const gpb_case *on)
{
    double passed = 0;
    int launches = 0;
    for (int x = 0; x < GPB_OPERANDS; x++) {
        if (!gpb_packing_of(kernel, on->call, on->facts, x)) continue;
        if (x == GPB_B && is_made_once(kernel, on)) continue;
        passed += on->elements[x] * (x == GPB_C ? 1 : slowdown(tuned, on, x) * readings(kernel, on));
        launches += x != GPB_B || kernel->form != GPB_FORM_SLICED;
    }
    return launches * on->launch_s + 2 * on->element * passed * on->passed_s;
}

/* The same around a RESIDUES kernel, where they are most of what a small product costs: bytes of both
   operands to planes, which takes two readings, and from the planes of C to C. */
static double residues_s(const gpb_kernel *kernel, const gpb_tuned *tuned, const gpb_case *on, double result)
{
    const double planes = gpb_plan_slices(kernel);
    double made = 0;
    for (int x = 0; x < (is_made_once(kernel, on) ? GPB_B : GPB_C); x++)
        made += on->elements[x] * (2 * on->element + planes) * slowdown(tuned, on, x);
    const double combined = on->elements[GPB_C] * (planes + result)
                            * (on->misaligned[GPB_C] ? tuned->misaligned_c : 1);
    return 2 * on->launch_s + (made * tuned->per_load + combined * tuned->per_store) * on->byte_s;
}

gpb_kernel_cost gpb_cost_kernel(const gpb_kernel *kernel, const gpb_tuned *tuned, const gpb_case *on)
{
    const gpb_call *call = on->call;
    const bool sliced = kernel->form == GPB_FORM_SLICED, residues = kernel->form == GPB_FORM_RESIDUES;
    const int shift_m = shift(kernel->bm), shift_n = shift(kernel->bn), shift_k = shift(kernel->bk);
    /* A SLICED kernel computes tiles in pairs, one above the other: kernels/sliced/work.cuh. */
    const int high = sliced ? 2 : 1;
    const double rows = along(call->m, sliced ? shift_m + 1 : shift_m), cols = along(call->n, shift_n);
    /* Bytes that it reads of an element: two slices of two bytes of each real number, or one slice. op(A) of
       a complex product has each twice. */
    const double slices = sliced && kernel->math == GPB_MATH_TF32 ? on->element / 2 : on->element;
    const double element = sliced && gpb_type_is_complex(kernel->type) ? 1.5 * slices : slices;
    const double result = call->beta != 0 ? 2 * on->element : on->element;
    const double places = on->sms * tuned->blocks, per_place = 1 / places, least = least_share(kernel, on);
    const double tiles = high * tiles_in(kernel, rows, cols, high * kernel->bm, on) * on->batch;
    return (gpb_kernel_cost){
        .kernel = kernel, .tuned = tuned,
        .per_share = max(tuned->per_share, least), .per_alone = max(tuned->per_alone, least),
        .tiles = tiles,
        .places = places, .per_place = per_place, .per_sm = per_place * tuned->blocks,
        .k_tiles = on->k > 0 ? along(call->k, shift_k) * depths(call) : 0,
        .k_tile_s = (double)kernel->bm * kernel->bn * kernel->bk * on->peak_s * hindrance(kernel, tuned, on),
        .memory_s = residues ? 0 : (element * (on->elements[GPB_A] + on->elements[GPB_B]) * tuned->per_load
                     + result * on->elements[GPB_C] * tuned->per_store
                       * (on->misaligned[GPB_C] ? tuned->misaligned_c : 1)) * on->byte_s,
        .other_s = tuned->fixed_us * 1e-6 + behind_s(kernel, on)
                   + (residues ? residues_s(kernel, tuned, on, result) : passes_s(kernel, tuned, on)),
        .part_s = 2 * on->element * on->elements[GPB_C] * on->passed_s, .part_fixed_s = tuned->join_us * 1e-6,
        .streamk = share_of(kernel, tiles, on),
    };
}

/* The time of two things that go on at once: the longer one, and more if they are close, because they then
   slow each other down. If equal, half as much again. */
static double together(double a, double b) { return (a * a + a * b + b * b) / (a + b + 1e-30); }

/* Whole rounds of pairs of tiles, then an incomplete one, which is cut along k and may then take several
   rounds: kernels/sliced/work.cuh. fp16x3_mma computes single tiles and cuts none. Its figures in tuned.def
   are predictions that were fitted with parts that take one round, so they are used with such parts. */
static double in_clusters(const gpb_kernel_cost *c)
{
    const uint32_t clusters = (uint32_t)max(1, (int)c->places / GPB_SLICED_CLUSTER);
    const uint32_t chunks = (uint32_t)min(c->k_tiles, 1e9);
    const double units = c->tiles / GPB_SLICED_CLUSTER, rounds = (double)(int64_t)min(units / clusters, 1e15);
    const uint32_t rest = (uint32_t)min(units - rounds * clusters, clusters);
    const bool once = !gpb_kernel_table_can(c->kernel, GPB_CAP_CUTS_TAIL);
    const uint32_t parts = !rest ? 1 : once ? gpb_sliced_tail_parts_once(rest, clusters, chunks)
                                            : gpb_sliced_tail_parts(rest, clusters, chunks,
                                                              gpb_plan_slices(c->kernel));
    const uint32_t last = (rest * parts + clusters - 1) / clusters;        /* rounds that the parts take */
    double k_tiles = c->k_tiles * rounds + last * whole(c->k_tiles / parts);
    double fixed = (rounds + last) * c->tuned->tile_us * 1e-6 + (parts > 1 ? c->part_fixed_s : 0);
    return together(k_tiles * c->k_tile_s * c->tuned->per_share, c->memory_s) + fixed + c->other_s;
}

/* Rounds of tiles of one plane. tile_us is that of all planes of a tile. */
static double in_planes(const gpb_kernel_cost *c)
{
    const double planes = gpb_plan_slices(c->kernel);
    const double rounds = whole(c->tiles * planes * c->per_place) / planes;
    return rounds * (c->k_tiles * c->k_tile_s * c->tuned->per_share + c->tuned->tile_us * 1e-6) + c->other_s;
}

/* Every Stream-K block has the same number of k-tiles; whole tiles follow in whole rounds. */
static double in_equal_shares(const gpb_kernel_cost *c)
{
    const gpb_tuned *t = c->tuned;
    const double rounds = c->tiles / c->streamk.blocks;
    const double side_by_side = whole(c->streamk.blocks * c->per_sm - 1e-9);
    const double loop = rounds * max(t->per_alone, side_by_side * t->per_share);
    return together(loop * c->k_tiles * c->k_tile_s, c->memory_s) + whole(rounds) * t->tile_us * 1e-6
           + gpb_streamk_fixup_s(c->kernel, c->streamk) + c->other_s;
}

/* Blocks are handed out one by one: whole waves of as many as the GPU holds, then a last one that may be
   smaller. r blocks on a multiprocessor run at r times the rate of one, up to the multiprocessor's best. */
double gpb_cost_seconds(const gpb_kernel_cost *c, int splits)
{
    if (c->kernel->form == GPB_FORM_SLICED) return in_clusters(c);
    if (c->kernel->form == GPB_FORM_RESIDUES) return in_planes(c);
    if (splits <= 1 && c->streamk.blocks) return in_equal_shares(c);
    const gpb_tuned *t = c->tuned;
    const bool cut = splits > 1;
    double blocks = cut ? c->tiles * splits : c->tiles;
    double k_tiles = cut ? whole(c->k_tiles / splits) : c->k_tiles;
    double waves = (double)(int64_t)min(blocks * c->per_place + 1e-9, 1e15);
    double rest = whole((blocks - waves * c->places) * c->per_sm - 1e-9);
    double loop = waves * t->blocks * c->per_share + (rest > 0 ? max(c->per_alone, rest * c->per_share) : 0);
    double fixed = (waves + (rest > 0)) * t->tile_us * 1e-6
                   + (cut ? c->part_fixed_s + splits * c->part_s : 0);
    return together(loop * k_tiles * c->k_tile_s, c->memory_s) + fixed + c->other_s;
}

double gpb_cost_min_cut(const gpb_kernel_cost *c)
{
    double loop = c->tiles * c->per_sm * c->k_tiles * c->k_tile_s * c->per_share;
    return max(loop, c->memory_s) + c->tuned->tile_us * 1e-6 + c->part_fixed_s + 2 * c->part_s + c->other_s;
}

double gpb_cost_min(const gpb_kernel *kernel, const gpb_tuned *tuned, const gpb_case *on)
{
    const int shift_m = shift(kernel->bm), shift_n = shift(kernel->bn);
    double rows = along(on->call->m, shift_m) * kernel->bm, cols = along(on->call->n, shift_n) * kernel->bn;
    double fixed = (tuned->fixed_us + tuned->tile_us) * 1e-6
                   + (gpb_kernel_table_guarded(kernel) ? on->launch_s : 0);
    double fmas = rows * cols * on->k * on->batch * (on->triangle ? 0.5 : 1);
    double share = max(tuned->per_share, least_share(kernel, on));
    double loop = fmas * on->peak_s * share * hindrance(kernel, tuned, on);
    /* the least that any form reads */
    double bytes = 0.5 * on->element * (on->elements[GPB_A] + on->elements[GPB_B]) * tuned->per_load
                   + on->element * on->elements[GPB_C] * tuned->per_store;
    return max(loop, bytes * on->byte_s * on->sms) / on->sms + fixed;
}
