/* SPDX-License-Identifier: MIT */
/* See kept.h. */
#include "src/run/kept.h"

#include <stdlib.h>
#include <string.h>

#include "dispatch/numbers.h"
#include "kernels/solve_args.h"
#include "src/gpu/dma.h"
#include "src/gpu/kernels.h"

gpb_kept gpb_kept_of(const gpb_factor *f)
{
    return (gpb_kept){ .matrix = f->a, .n = f->n, .ld = f->lda, .type = f->type,
                       .uplo = gpb_factor_is_lu(f) ? 'G' : f->uplo };
}

void gpb_kept_keep(gpb_lane *lane, const gpb_factor *f, CUdeviceptr at, int64_t ld)
{
    lane->kept = gpb_kept_of(f);
    lane->kept.ld_arena = ld;
    lane->arena.kept = (int64_t)(at - lane->arena.at);
}

void gpb_kept_drop(gpb_lane *lane) { lane->arena.kept = 0; }

/* All jobs at once: so nothing needs to go on with them. */
bool gpb_kept_begin(gpb_kept_check *check, const gpb_factor *f)
{
    enum { PIECE = 512 << 10 };
    const int64_t e = (int64_t)gpb_type_bytes(f->type);
    const int64_t cols = max(max(1, PIECE / (f->n * e)), ceil_div(f->n, GPB_CREW_JOBS));
    memset(check, 0, sizeof *check);
    if (gpb_digest_own_key()) check->queue = calloc(1, sizeof *check->queue);
    if (!check->queue) return false;
    gpb_crew_begin(check->queue);
    gpb_digest_job job = { .a = f->a, .rows = f->n, .ld = f->lda, .element = (size_t)e,
                           .uplo = gpb_kept_of(f).uplo, .to = &check->host };
    for (; job.first < f->n; job.first = job.last) {
        job.last = min(f->n, job.first + cols);
        gpb_crew_post_digest(check->queue, &job);
    }
    return true;
}

CUresult gpb_kept_look(gpb_kept_check *check, gpb_lane *lane, CUdeviceptr work)
{
    const gpb_driver *driver = gpb_driver_get();
    const gpb_digest_key *key = gpb_digest_own_key();
    const gpb_kept *kept = &lane->kept;
    const int64_t all = kept->n * gpb_digest_blocks(kept->n, (int64_t)gpb_type_bytes(kept->type));
    const int64_t most = 8 * (int64_t)lane->device->sms, each = ceil_div(all, min(all, most));
    const int64_t blocks = ceil_div(all, each);
    const size_t bytes = (size_t)blocks * GPB_DIGEST_PASSES * sizeof(uint64_t);
    const CUdeviceptr polynomials = work + (CUdeviceptr)round_up((int64_t)sizeof *key, 256);
    gpb_digest_args args = { .a = gpb_pointer(gpb_kept_at(lane)), .lda = kept->ld_arena,
                             .rows = kept->n, .cols = kept->n, .each = each,
                             .key = gpb_pointer(work), .polynomials = gpb_pointer(polynomials),
                             .uplo = kept->uplo };
    const gpb_launch how = { .which = gpb_kernels_pass(GPB_PASS_digest, kept->type), .blocks = blocks,
                             .members = 1, .args = &args };
    memcpy(lane->table, key, sizeof *key);
    CUresult result = gpb_dma_send(work, lane->table, sizeof *key, lane->stream);
    if (!result) result = gpb_kernels_launch(lane->device, lane->stream, &how);
    if (!result) result = gpb_dma_fetch(lane->table, polynomials, bytes, lane->stream);
    if (!result) result = driver->cuStreamSynchronize(lane->stream);
    if (!result) gpb_digest_join(&check->device, (const void *)lane->table, blocks, each);
    return result;
}

bool gpb_kept_is_read(gpb_kept_check *check)
{
    while (gpb_crew_reap(check->queue)) continue;
    return check->queue->reaped == check->queue->posted;
}

bool gpb_kept_same(gpb_kept_check *check)
{
    bool same = true;
    gpb_crew_end(check->queue);
    for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++)
        same &= check->host.value[pass] == check->device.value[pass];
    return same;
}

void gpb_kept_end(gpb_kept_check *check)
{
    if (check->queue) gpb_crew_end(check->queue);
    free(check->queue);
    check->queue = NULL;
}
