/* SPDX-License-Identifier: MIT */
/* See spare.h. */
#include "src/run/spare.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "dispatch/numbers.h"

/* In huge pages. In pages of 4 KiB, an H100's host took 30 of getri's 95 ms at 8192, and 9 of 24 at 4096, to
   make the copy's pages and to give them back. */
static char *room_for(size_t bytes)
{
    enum { HUGE_PAGE = 2 << 20 };
    if (bytes < HUGE_PAGE) return malloc(bytes);
    const size_t size = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char *room = aligned_alloc(HUGE_PAGE, size);
    if (room) madvise(room, size, MADV_HUGEPAGE);
    return room;
}

/* Columns of it as a rectangle, from the matrix to the copy. */
static gpb_copy2d_job job_of(const gpb_spare *s, int64_t col, int64_t cols)
{
    const gpb_carry_matrix *x = &s->of;
    const size_t e = gpb_type_bytes(x->type);
    return (gpb_copy2d_job){ .from = (const char *)x->caller + (size_t)(col * x->ld) * e,
                             .to = s->copy + (size_t)(col * x->rows) * e, .rows = x->rows, .cols = cols,
                             .ld_from = x->ld, .ld_to = x->rows, .element = e, .uplo = x->uplo,
                             .row0 = gpb_carry_row(x, 0), .col0 = col, .type = x->type,
                             .target = GPB_STORE_STREAMING };
}

bool gpb_spare_begin(gpb_spare *s, const gpb_carry_matrix *x)
{
    *s = (gpb_spare){ .of = *x, .copy = room_for((size_t)(x->rows * x->cols) * gpb_type_bytes(x->type)),
                      .queue = calloc(1, sizeof *s->queue) };
    if (!s->copy || !s->queue) {
        free(s->copy);
        free(s->queue);
        *s = (gpb_spare){ 0 };
        return false;
    }
    gpb_crew_begin(s->queue);
    return true;
}

bool gpb_spare_go_on(gpb_spare *s)
{
    enum { PIECE = 512 << 10 };
    if (!s->queue) return true;
    const size_t column = (size_t)s->of.rows * gpb_type_bytes(s->of.type);
    const int64_t most = max(1, (int64_t)(PIECE / column));
    while (s->posted < s->of.cols) {
        const int64_t cols = min(most, s->of.cols - s->posted);
        const gpb_copy2d_job job = job_of(s, s->posted, cols);
        if (!gpb_crew_post(s->queue, &job)) break;
        s->posted += cols;
    }
    while (gpb_crew_reap(s->queue)) continue;
    if (s->queue->reaped < s->queue->posted || s->posted < s->of.cols) {
        gpb_crew_help(s->queue);
        return false;
    }
    gpb_crew_end(s->queue);
    free(s->queue);
    s->queue = NULL;
    return true;
}

void gpb_spare_restore(const gpb_spare *s)
{
    gpb_copy2d_job back = job_of(s, 0, s->of.cols);
    back.from = s->copy;
    back.to = s->of.caller;
    back.ld_from = s->of.rows;
    back.ld_to = s->of.ld;
    gpb_copy2d(&back);
}

void gpb_spare_end(gpb_spare *s)
{
    if (s->queue) gpb_crew_end(s->queue);
    free(s->queue);
    free(s->copy);
    *s = (gpb_spare){ 0 };
}
