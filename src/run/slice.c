/* SPDX-License-Identifier: MIT */
/* Slicing; see slice.h. */
#include "src/run/slice.h"

#include <stdatomic.h>
#include <sys/random.h>
#include <unistd.h>

#include "dispatch/numbers.h"
#include "kernels/sliced.h"
#include "src/gpu/kernels.h"
#include "src/run/address_table.h"
#include "src/service/clock.h"

/* Where a process's epochs begin: not 0, and random, because device memory may hold what another process
   wrote there. */
static uint64_t first_epoch(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = (uint64_t)gpb_clock_ns() ^ (uint64_t)getpid() << 40;
    return seed ? seed : 1;
}

/* 64 bits; each epoch is a large odd number above the last. */
uint64_t gpb_slice_epoch(void)
{
    static _Atomic uint64_t last;
    uint64_t epoch = atomic_load_explicit(&last, memory_order_relaxed);
    if (epoch == 0)
        atomic_compare_exchange_strong_explicit(&last, &epoch, first_epoch(), memory_order_relaxed,
                                                memory_order_relaxed);
    do
        epoch = atomic_fetch_add_explicit(&last, 0x9e3779b97f4a7c15, memory_order_relaxed)
                + 0x9e3779b97f4a7c15;
    while (epoch == 0);
    return epoch;
}

/* The operand as gpb_sslice gets it. */
static gpb_slice_operand to_slice(const gpb_run *r, enum gpb_operand which, const gpb_launch_set *piece,
                                  CUdeviceptr to, uint64_t epoch)
{
    const gpb_view raw = gpb_operand_view(r, which, false, piece);
    const int64_t rows = gpb_plan_sliced_rows(r->plan->kernel, which, piece->tile.size[which]);
    gpb_slice_operand s = { .src = gpb_pointer(raw.at), .rs = raw.rs, .cs = raw.cs,
                            .rows = rows, .stride = raw.member_stride,
                            .dst = gpb_pointer(to), .epoch = epoch };
    if (raw.scattered) s.src_items = (const void *const *)(uintptr_t)gpb_address_table(r, which);
    return s;
}

/* args: all but what is the same in every launch. k is the operands' own. */
static CUresult launch_slicer(gpb_run *r, gpb_slice_args *args)
{
    args->k = gpb_plan_sliced_k(r->plan->kernel, args->k);
    args->conj_a = gpb_matrix_conjugated(&r->call->x[GPB_A]);
    args->conj_b = gpb_matrix_conjugated(&r->call->x[GPB_B]);
    const gpb_slicer *slicer = gpb_kernel_table_slicer(r->call->type, r->lane->device->arch, args->k,
                                                       args->slices);
    const int64_t strips = GPB_SLICE_STRIPS(args->a.rows) + GPB_SLICE_STRIPS(args->b.rows);
    args->counters = gpb_pointer(r->parts);
    args->flagged = r->lane->flagged;
    return gpb_kernels_launch(r->lane->device, r->stream,
                              &(gpb_launch){ .which = gpb_kernels_slicer(slicer),
                                             .blocks = (strips ? strips : 1) * slicer->blocks,
                                             .members = args->batch, .args = args });
}

/* The operand's strip that has come, if it is not sliced yet. */
static gpb_slice_operand unsliced_strip(gpb_run *r, enum gpb_operand which, const gpb_move *move)
{
    gpb_run_operand *x = &r->x[which];
    const int64_t strip = x->unsliced;
    if (strip < 0) return (gpb_slice_operand){ 0 };
    gpb_launch_set piece = { .tile = move->block, .count = 1 };
    piece.strip[which] = strip;
    piece.tile.size[which] = min(x->strip, move->block.size[which] - strip * x->strip);
    x->unsliced = GPB_OPERAND_NO_STRIP;
    return to_slice(r, which, &piece, x->packed + (CUdeviceptr)(strip * x->ready_strip), x->epoch);
}

CUresult gpb_slice_strips(gpb_run *r, const gpb_move *move)
{
    gpb_slice_args args = { .k = move->depth, .batch = move->block.members,
                            .slices = gpb_plan_slices(r->plan->kernel) };
    args.a = unsliced_strip(r, GPB_A, move);
    args.b = unsliced_strip(r, GPB_B, move);
    return launch_slicer(r, &args);
}

gpb_view gpb_slice_view(const gpb_kernel *kernel, enum gpb_operand which, CUdeviceptr at, int64_t rows,
                        int64_t k)
{
    return (gpb_view){ .at = at, .rs = 1, .cs = 1,
                       .member_stride = gpb_plan_sliced_bytes(kernel, which, rows, k) / GPB_SLICE_UNIT };
}

CUresult gpb_slice_wide(gpb_run *r, const gpb_launch_set *piece, const gpb_gemm_args *of, gpb_view *a,
                        gpb_view *b)
{
    const uint64_t epoch = gpb_slice_epoch();
    const gpb_region *t = &piece->tile;
    const int64_t rows = gpb_plan_sliced_rows(r->plan->wide, GPB_A, t->rows);
    gpb_slice_args args = { .k = of->k, .batch = t->members, .slices = gpb_plan_slices(r->plan->wide),
                            .if_a = of->guard_a + gpb_sliced_guards(rows),
                            .if_b = of->guard_b + gpb_sliced_guards(t->cols),
                            .stride_if_a = of->stride_guard_a, .stride_if_b = of->stride_guard_b,
                            .epoch_if_a = of->epoch_a, .epoch_if_b = of->epoch_b };
    args.a = to_slice(r, GPB_A, piece, r->x[GPB_A].wide, epoch);
    args.b = to_slice(r, GPB_B, piece, r->x[GPB_B].wide, epoch);
    *a = gpb_slice_view(r->plan->wide, GPB_A, r->x[GPB_A].wide, t->rows, of->k);
    *b = gpb_slice_view(r->plan->wide, GPB_B, r->x[GPB_B].wide, t->cols, of->k);
    return launch_slicer(r, &args);
}
