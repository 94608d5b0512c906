/* SPDX-License-Identifier: MIT */
/* Tiles of C on their way home; see pipeline.h. */
#include "dispatch/numbers.h"
#include "src/gpu/dma.h"
#include "src/run/launch.h"
#include "src/run/pipeline.h"

CUresult gpb_download_copy_c(gpb_pipeline *f, const gpb_move *move, int64_t l, int64_t col, int64_t cols,
                             bool up)
{
    gpb_run *r = &f->run;
    gpb_staging *staging = up ? r->lane->up : r->lane->down;
    const gpb_region *t = &move->tile, *block = &move->block;
    const gpb_dma_shape panel = { .rows = t->rows, .cols = cols, .ld = r->x[GPB_C].stored.ld,
                                  .ld_arena = block->rows, .element = r->element,
                              .uplo = r->call->x[GPB_C].uplo, .row0 = t->i, .col0 = t->j + col };
    const int64_t at = l * block->rows * block->cols + t->i - block->i
                       + (t->j + col - block->j) * block->rows;
    const char *callers = gpb_matrix_member(&r->x[GPB_C].stored, t->member + l, r->element);
    staging->bytes += (uint64_t)(t->rows * cols) * r->element;
    return gpb_dma_copy(&panel, callers + (size_t)(t->i + (t->j + col) * r->x[GPB_C].stored.ld) * r->element,
                        gpb_operand_block(r, move) + (CUdeviceptr)at * r->element, up,
                        up ? r->stream : staging->stream);
}

bool gpb_download_direct(const gpb_run *r)
{
    return r->x[GPB_C].place == GPB_PLACE_ELSEWHERE
           || (r->x[GPB_C].place == GPB_PLACE_PINNED && r->call->beta == 0 && !gpb_call_solves(r->call)
               && !gpb_call_hermitian(r->call));
}

static gpb_chunk load_down(const gpb_pipeline *f, const gpb_stage *w)
{
    const gpb_run *r = &f->run;
    const gpb_region *t = &w->move.tile, *block = &w->move.block;
    const size_t e = r->element, column = (size_t)t->rows * e;
    /* The driver's copy makes one of each column where they are far apart, and any of them may fail. */
    const bool far = r->x[GPB_C].stored.ld * (int64_t)e > GPB_DMA_MAX_PITCH;
    const int64_t whole = r->call->x[GPB_C].uplo == 'G' && !far ? t->cols : 1,
                  fit = gpb_download_direct(r) ? whole : (int64_t)((size_t)r->plan->load_bytes / column);
    const int64_t cols = min(t->cols - w->col, fit ? fit : 1);
    const int64_t at = w->member * block->rows * block->cols + t->i - block->i
                       + (t->j - block->j + w->col) * block->rows;
    char *to = gpb_matrix_member(&r->x[GPB_C].stored, t->member + w->member, e);
    gpb_chunk load = { .device = gpb_operand_block(r, &w->move) + (CUdeviceptr)at * e, .width = column,
                       .pitch = (size_t)block->rows * e,
                      .cols = cols, .count = cols,
                      .copy = { .to = to + (size_t)(t->i + (t->j + w->col) * r->x[GPB_C].stored.ld) * e,
                                .rows = t->rows, .cols = cols, .ld_from = t->rows,
                                .ld_to = r->x[GPB_C].stored.ld, .element = e, .uplo = r->call->x[GPB_C].uplo,
                                .row0 = t->i, .col0 = t->j + w->col, .adds = r->call->beta != 0,
                                .hermitian = gpb_call_hermitian(r->call), .type = r->call->type,
                                .beta = r->call->beta } };
    load.copy.target = f->run.plan->past_caches ? GPB_STORE_STREAMING : GPB_STORE_PREFETCHED;
    load.direct = gpb_download_direct(r);
    load.opens = w->member == 0 && w->col == 0;
    load.ends_member = w->col + cols == t->cols;
    load.ends_tile = load.ends_member && w->member + 1 == t->members;
    return load;
}

/* Prepares for a tile's first chunk, which must wait for the tile's kernels. If the tile was computed before
   a flag was seen, the fallback kernels are launched first. */
static CUresult open_tile(gpb_pipeline *f, const gpb_stage *w)
{
    gpb_lane *lane = f->run.lane;
    const bool one_stream = lane->down->stream == f->run.stream;
    CUresult result = CUDA_SUCCESS;
    if (f->fallback_queued && w->tiles < f->fallback_queued_from) {
        result = gpb_launch_fallback(&f->run, &w->move);
        if (!result && !one_stream)
            result = gpb_driver_record(f->driver, lane->made_in, lane->tile[w->tiles % GPB_STAGE_AHEAD],
                                       f->run.stream);
    }
    if (result || one_stream) return result;
    return f->driver->cuStreamWaitEvent(lane->down->stream, lane->tile[w->tiles % GPB_STAGE_AHEAD], 0);
}

/* Pulls as many chunks as there is room for. *whole: all of the tile's chunks are queued. */
static CUresult fetch_tile(gpb_pipeline *f, gpb_stage *w, bool *whole, bool *busy)
{
    gpb_lane *lane = f->run.lane;
    CUresult result = CUDA_SUCCESS;
    *whole = false;
    while (!*whole && !result) {
        const gpb_chunk load = load_down(f, w);
        if (!gpb_staging_has_room(lane->down, &load)) return result;
        if (load.opens) result = open_tile(f, w);
        if (!result && load.direct)
            result = gpb_download_copy_c(f, &w->move, w->member, w->col, load.cols, false);
        if (!result) result = gpb_staging_pull(lane->down, &load);
        if (result) return result;
        *busy = true;
        *whole = load.ends_tile;
        w->col += load.cols;
        if (load.ends_member) {
            w->col = 0;
            w->member++;
        }
    }
    return result;
}

CUresult gpb_download_pull(gpb_pipeline *f, bool *busy)
{
    gpb_stage *w = &f->fetch;
    CUresult result = CUDA_SUCCESS;
    while (f->home && !w->ended && !result) {
        if (gpb_stage_ends_tile(&w->move)) {
            bool whole = false;
            if (f->launch.tiles > w->tiles) result = fetch_tile(f, w, &whole, busy);
            if (result || !whole) return result;
        }
        const int64_t block = w->move.panel[GPB_C];
        gpb_stage_advance(w);
        *busy = true;
        if (f->run.x[GPB_C].buffers > 1 && (w->ended || w->move.panel[GPB_C] != block))
            result = gpb_driver_record(f->driver, f->run.lane->made_in, f->run.lane->home[block % 2],
                                       f->run.lane->down->stream);
    }
    return result;
}

bool gpb_download_flagged(const gpb_pipeline *f)
{
    return f->run.plan->speculative && !f->fallback_queued && *(volatile uint32_t *)f->run.lane->flagged;
}

/* A block of C is flagged after all. The tiles from this one on were computed without the fallback kernels,
   so they are fetched again. */
static void fetch_again(gpb_pipeline *f)
{
    gpb_staging *down = f->run.lane->down;
    f->fallback_queued = true;
    f->fallback_queued_from = f->launch.tiles;
    for (uint64_t x = down->moved; x < down->made; x++) gpb_staging_chunk(down, x)->lost = true;
    f->fetch = f->land;
}

/* A flag that matters for a tile was set, if at all, before the tile's kernels ran. So it is seen here. */
CUresult gpb_download_drain(gpb_pipeline *f, bool *busy)
{
    gpb_staging *down = f->run.lane->down;
    CUresult result = CUDA_SUCCESS;
    while (down->moved < down->made) {
        bool arrived;
        result = gpb_staging_arrived(down, &arrived);
        if (result || !arrived) return result;
        const gpb_chunk *load = gpb_staging_chunk(down, down->moved);
        if (load->opens && gpb_download_flagged(f)) fetch_again(f);
        const bool ends = load->ends_tile && !load->lost;
        gpb_staging_drain(down);
        *busy = true;
        if (ends) gpb_stage_to_tile(&f->land, true);
    }
    return result;
}

void gpb_download_commit(gpb_pipeline *f, bool *busy)
{
    gpb_progress *progress = f->run.progress;
    for (const gpb_chunk *load; f->home && (load = gpb_staging_drained(f->run.lane->down));) {
        *busy = true;
        if (load->lost) continue;
        progress->cols += load->count;
        if (load->ends_member) {
            progress->members++;
            progress->cols = 0;
        }
        if (load->ends_tile) {
            progress->tiles++;
            progress->members = 0;
        }
    }
}

