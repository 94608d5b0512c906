/* SPDX-License-Identifier: MIT */
/* The rule; see streamk.h. Its figures are predictions for an H200. What it decides was measured there (ffma,
   2026-11-21, multiples of cuBLAS, the four transpositions, with k whole and with Stream-K): 3135 0.80 to
   0.92, 0.99 to 1.16; 4097 0.92 to 0.99, 1.00 to 1.12; 4096 0.95 to 1.02, 0.98 to 1.06; 8192 0.95 to 0.98,
   0.97 to 1.04; 12288 x 128 x 12288 in five parts 0.95, 1.00. 2048, for which it decides against Stream-K,
   0.96 to 1.02, 0.95 to 1.01. */
#include "dispatch/streamk.h"

#include "dispatch/generation.h"
#include "dispatch/numbers.h"
#include "kernels/gemm_args.h"

#define PEAK 0.8                  /* share of the FMA peak that the loop of a full round reaches */
/* Share of a round's time that is taken if a multiprocessor has one block to itself: ffma's last rounds,
   measured. */
#define ALONE 0.6
/* Seconds to write and read partial sums, and for the blocks that wait for no other but come last. */
#define JOIN_S 8e-6
#define JOIN_MAPPED_S 11e-6       /* with less, 768 x 3072 x 512 (d) takes 71 us, by smaller tiles 67 */
#define JOIN_GBS 130              /* at which one block reads the partial sums of a tile: 64 bytes a clock */
#define MARGIN 1.5  /* the gain must be this many times the cost, because whole tiles are the safer choice */
/* The least k for which Stream-K pays if the tiles do not fill one round. Below it, smaller tiles or split-K
   are measured to do well. */
#define DEEP 2048
#define MAX_PARTS 32             /* blocks to a tile */
/* MAPPED kernels share out a quarter of a round at least. With fewer tiles k is cut into parts of one size,
   because blocks that have come equally far read the same of an operand. Of d an H200 takes, in parts and
   shared out, 280 and 318 us for 1000 x 50 x 100000, 186 and 235 for SYRK of order 256 with k = 100000, but
   811 and 718 for 12288 x 128 x 12288, 1470 and 1258 for SYRK of order 1000 with k = 60000. */
#define FEW_MAPPED 4

/* Blocks of this kernel that a multiprocessor holds, by its launch bounds; 0: it has no Stream-K. */
static int blocks_of(const gpb_kernel *kernel)
{
    if (!gpb_kernel_table_can(kernel, GPB_CAP_STREAM_K)) return 0;
    return kernel->form == GPB_FORM_MAPPED
               ? GPB_MAPPED_PLACES(kernel->smem)
               : GPB_STREAMK_BLOCKS((int)gpb_type_bytes(kernel->type), kernel->bm, kernel->bn,
                                    kernel->threads);
}

/* Blocks in one round. */
static int places_of(const gpb_kernel *kernel, int sms)
{
    const int64_t places = (int64_t)blocks_of(kernel) * sms;
    return places <= GPB_MAX_STREAMK_BLOCKS ? (int)places : 0;
}

/* The time of a last round with that many blocks, in rounds. */
static double round_of(const gpb_kernel *kernel, int64_t blocks, int sms)
{
    return blocks ? max(ALONE, (double)ceil_div(blocks, sms) / blocks_of(kernel)) : 0;
}

double gpb_streamk_fixup_s(const gpb_kernel *kernel, gpb_streamk streamk)
{
    const double max_parts = (double)(streamk.blocks / streamk.tiles + 2);
    return (kernel->form == GPB_FORM_MAPPED ? JOIN_MAPPED_S : JOIN_S)
           + max_parts * (double)gpb_type_bytes(kernel->type) * kernel->bm * kernel->bn / (1e9 * JOIN_GBS);
}

gpb_streamk gpb_streamk_choose(const gpb_kernel *kernel, int arch, int sms, int64_t tiles, int64_t k)
{
    const int places = places_of(kernel, sms);
    const int64_t k_tiles = ceil_div(k, kernel->bk), rest = places ? tiles % places : 0;
    if (!rest || tiles > INT32_MAX / 2 || (tiles < places && !gpb_streamk_is_deep(k)))
        return (gpb_streamk){ 0 };
    if (kernel->form == GPB_FORM_MAPPED && FEW_MAPPED * tiles < places) return (gpb_streamk){ 0 };
    const bool few = tiles * MAX_PARTS < places;
    const gpb_streamk streamk = { tiles < places ? tiles : places + rest, few ? (int)tiles * MAX_PARTS
                                : places };
    const gpb_generation *generation = gpb_generation_of(arch);
    const double round_s = (double)kernel->bm * kernel->bn * kernel->bk * (double)k_tiles * blocks_of(kernel)
                           * gpb_generation_fma_s(generation, kernel->type) / PEAK;
    const double whole = (double)(tiles / places) + round_of(kernel, rest, sms);
    const double even = (double)tiles / streamk.blocks * (few ? round_of(kernel, streamk.blocks, sms) : 1);
    const bool pays = (whole - even) * round_s > MARGIN * gpb_streamk_fixup_s(kernel, streamk);
    return pays && streamk.tiles * k_tiles >= streamk.blocks ? streamk : (gpb_streamk){ 0 };
}

bool gpb_streamk_is_deep(int64_t k) { return k >= DEEP; }

int64_t gpb_streamk_bytes(const gpb_kernel *kernel, int sms)
{
    return 2 * (int64_t)gpb_type_bytes(kernel->type) * places_of(kernel, sms) * kernel->bm * kernel->bn;
}

bool gpb_streamk_fits(const gpb_kernel *kernel, int sms, int64_t device_bytes)
{
    const int64_t bytes = gpb_streamk_bytes(kernel, sms);
    return bytes > 0 && bytes <= device_bytes / 8;
}
