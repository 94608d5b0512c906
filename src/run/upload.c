/* SPDX-License-Identifier: MIT */
/* Strips of A and B on their way to the device; see pipeline.h. */
#include "dispatch/numbers.h"
#include "src/gpu/dma.h"
#include "src/run/carry.h"
#include "src/run/pipeline.h"

/* True if the panel's buffer is free: the kernels on the panel before the last have been queued. */
static bool has_buffer(const gpb_pipeline *f, const gpb_run_operand *x, const gpb_move *move)
{
    const int which = x->which;
    return move->panel[which] <= x->buffers || f->launch.ended
           || f->launch.move.panel[which] >= move->panel[which] - 1;
}

/* The event that the GPU must reach before the strip may be written; NULL: none. */
static CUevent buffer_event(const gpb_pipeline *f, const gpb_run_operand *x, const gpb_move *move)
{
    const int64_t number = move->panel[x->which];
    return number > x->buffers ? f->run.lane->freed[x->which][number % 2] : NULL;
}

/* Bytes across the columns of a chunk of a mirrored matrix, unless the strip is narrower: what is transposed
   is read as pieces of stored columns, and these are whole cache lines then. */
enum { ACROSS = 256 };

/* The row for copies, which know triangles with their diagonal alone. */
static int64_t row_of(const gpb_matrix *x, int64_t row)
{
    return x->structure != GPB_TRIANGULAR || x->diag != 'U' ? row : x->uplo == 'L' ? row - 1 : row + 1;
}

/* Bytes of the next chunk. The first ones are small, so that the copy engines begin soon. */
static size_t next_bytes(const gpb_staging *up)
{
    const size_t most = (size_t)GPB_STAGING_MIN << (up->made < 4 ? up->made : 4);
    return most > up->job_bytes ? up->job_bytes : most;
}

/* The next chunk of a strip of a triangle that is mirrored on the device. */
static gpb_chunk load_triangle(const gpb_run *r, const gpb_stage *w, const gpb_run_operand *x,
                               const gpb_stored *s)
{
    char *caller = gpb_matrix_member(&x->stored, 0, r->element);
    const gpb_carry_matrix strip = { .caller = caller + (size_t)(s->row + s->col * x->stored.ld) * r->element,
                                     .arena = gpb_operand_strip(r, &w->move), .rows = s->rows,
                                     .cols = s->cols, .ld = x->stored.ld, .ld_arena = x->ld,
                                     .type = r->call->type, .uplo = x->stored.uplo };
    return gpb_carry_chunk(&strip, true, w->col, s->cols, next_bytes(r->lane->up));
}

/* The next chunk of a strip that goes through the crew. */
static gpb_chunk load_up(const gpb_run *r, const gpb_stage *w, const gpb_run_operand *x, const gpb_stored *s)
{
    const size_t e = r->element, most = next_bytes(r->lane->up);
    const bool mirrors = gpb_call_mirrors(r->call, x->which);
    const bool stores_triangle = x->stored.structure != GPB_GENERAL;
    const int64_t fit = (int64_t)(most / e);
    const int64_t across = min(s->cols - w->col, mirrors ? ACROSS / (int64_t)e : 1);
    const bool whole = w->row == 0 && s->rows * across <= fit;
    const int64_t rows = whole ? s->rows : min(s->rows - w->row, fit / across);
    const int64_t cols = whole ? min(s->cols - w->col, fit / rows) : across;
    const char *from = gpb_matrix_member(&x->stored, w->move.block.member + w->member, e);
    const CUdeviceptr to = gpb_operand_strip(r, &w->move)
                           + (CUdeviceptr)(w->member * s->rows * s->cols + w->col * s->rows + w->row) * e;
    return (
        gpb_chunk){ .device = to,
                    .width = (size_t)rows * e,
                    .pitch = (size_t)s->rows * e,
                    .cols = cols,
                    .copy = { .from = from + (size_t)(s->row + w->row + (s->col + w->col) * x->stored.ld) * e,
                              .rows = rows,
                              .cols = cols,
                              .ld_from = x->stored.ld,
                              .ld_to = rows,
                              .element = e,
                              .uplo = stores_triangle ? x->stored.uplo : 'G',
                              .row0 = row_of(&x->stored, s->row + w->row),
                              .col0 = s->col + w->col,
                              .hermitian = mirrors && x->stored.structure == GPB_HERMITIAN,
                              .mirrors = mirrors,
                              .type = r->call->type } };
}

/* Copies a strip that the driver can read where it is: pinned, or on another GPU. Later strips are queued
   before this strip's kernels are, so the event that the kernels wait for is recorded right behind the
   strip. */
static CUresult copy_up(gpb_pipeline *f, const gpb_run *r, const gpb_stage *w, const gpb_stored *s)
{
    const gpb_run_operand *x = &r->x[w->move.operand];
    CUevent after = buffer_event(f, x, &w->move);
    CUresult result = after ? f->driver->cuStreamWaitEvent(r->lane->up->stream, after, 0) : CUDA_SUCCESS;
    const gpb_dma_shape panel = { .rows = s->rows, .cols = s->cols, .ld = x->stored.ld, .ld_arena = s->rows,
                                  .element = r->element, .uplo = 'G' };
    for (int64_t l = 0; l < w->move.block.members && !result; l++) {
        const char *from = gpb_matrix_member(&x->stored, w->move.block.member + l, r->element);
        result = gpb_dma_copy(&panel, from + (size_t)(s->row + s->col * x->stored.ld) * r->element,
                              gpb_operand_strip(r, &w->move)
                                  + (CUdeviceptr)(l * s->rows * s->cols) * r->element,
                              true, r->lane->up->stream);
        r->lane->up->bytes += (uint64_t)(s->rows * s->cols) * r->element;
    }
    if (result || r->lane->up->stream == r->stream) return result;
    return gpb_driver_record(f->driver, r->lane->made_in, r->lane->arrived[w->moves % GPB_STAGE_AHEAD],
                             r->lane->up->stream);
}

static bool offer(gpb_pipeline *f, const gpb_run *r, gpb_stage *w, const gpb_stored *s)
{
    const gpb_run_operand *x = &r->x[w->move.operand];
    gpb_chunk load = x->ld ? load_triangle(r, w, x, s) : load_up(r, w, x, s);
    if (w->member == 0 && w->row == 0 && w->col == 0) load.after = buffer_event(f, x, &w->move);
    if (!gpb_staging_push(r->lane->up, &load)) return false;
    w->row += load.copy.rows;
    if (x->ld || w->row == s->rows) {
        w->row = 0;
        w->col += load.cols;
    }
    if (w->col == s->cols) {
        w->col = 0;
        w->member++;
    }
    return true;
}

/* The crew copies strips in ordinary memory. The driver copies pinned strips and those that only it can
   reach. Of SYR2K the strip of either product comes, one behind the other. */
CUresult gpb_upload_push(gpb_pipeline *f, bool *busy)
{
    gpb_stage *w = &f->post;
    CUresult result = CUDA_SUCCESS;
    while (!w->ended && !result) {
        const gpb_run *r = w->product ? f->run.second : &f->run;
        const gpb_run_operand *x = &r->x[w->move.operand];
        if (gpb_operand_comes(r, &w->move)) {
            if (w->moves - f->launch.moves >= GPB_STAGE_AHEAD || !has_buffer(f, x, &w->move)) return result;
            const gpb_stored s = gpb_operand_stored(r, &w->move);
            if (x->place == GPB_PLACE_HOST) {
                while (w->member < w->move.block.members && offer(f, r, w, &s)) *busy = true;
                if (w->member < w->move.block.members) return result;
            } else {
                result = copy_up(f, r, w, &s);
            }
        }
        w->member = 0;
        if (w->product++ == 0 && f->run.second) continue;
        f->sent_by[w->moves % GPB_STAGE_AHEAD] = f->run.lane->up->made;
        *busy = true;
        gpb_stage_advance(w);
    }
    return result;
}

