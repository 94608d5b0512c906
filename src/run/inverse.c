/* SPDX-License-Identifier: MIT */
/* See inverse.h. */
#include "src/run/inverse.h"

#include <stdlib.h>

#include "dispatch/numbers.h"
#include "src/copy/crew.h"
#include "src/gpu/dma.h"
#include "src/gpu/kernels.h"
#include "src/run/resident_parts.h"

/* Columns at a time, if the host goes on. */
enum { OF_HOST = 64 };

const char *gpb_inverse_begin(gpb_residence *r)
{
    const gpb_factor *f = &r->work->system.a;
    r->inverse.columns = malloc((size_t)f->n * sizeof *r->inverse.columns);
    r->inverse.work = malloc((size_t)(f->n * OF_HOST) * r->element);
    if (!r->inverse.columns || !r->inverse.work) return "out of memory";
    return gpb_residence_columns(f, r->inverse.columns) ? NULL : "ipiv is of no factorisation";
}

void gpb_inverse_end(gpb_residence *r)
{
    free(r->inverse.columns);
    free(r->inverse.work);
    r->inverse = (gpb_lu_inverse){ 0 };
}

static CUdeviceptr entry(const gpb_residence *r, CUdeviceptr of, int64_t row, int64_t col)
{
    return of + (CUdeviceptr)(row + col * r->ld) * r->element;
}

int gpb_inverse_home(const gpb_residence *r, const gpb_carry_matrix *x, gpb_carry_matrix to[GPB_CARRY_MOST])
{
    to[0] = to[1] = *x;
    to[0].arena = r->b;
    to[0].uplo = 'U';
    to[1].arena = r->a;
    to[1].backwards = to[1].again = true;
    return 2;
}

static void release(gpb_residence *r, int64_t columns)
{
    if (r->on_host && !r->result && !r->why) r->result = gpb_carry_release(&r->down, columns);
}

/* U^-1 in B's place. */
static void invert_u(gpb_residence *r, const gpb_inverse *u)
{
    const int64_t block = gpb_resident_inverse_block(r->work);
    for (int64_t first = 0, last; first < u->n; first = last) {
        last = min(u->n, first + block);
        const gpb_inverse_columns next = gpb_inverse_next(u, first, last);
        gpb_triangular was = next.multiply, divide = next.divide;
        was.b = gpb_pointer(entry(r, r->a, 0, first));
        divide.a = gpb_pointer(entry(r, r->a, first, first));
        gpb_resident_await(r, was.b, last - first);
        gpb_resident_identity(r, next.block.a, u->n - first, last - first, 0);
        gpb_resident_multiply_levels(r, &next.multiply, &was);
        gpb_resident_triangular(r, &divide);
        /* From the left, so that a NaN or an infinity stays in its row, as LAPACK has it. */
        divide.side = 'L';
        divide.m = divide.n;
        divide.b = next.block.a;
        gpb_resident_triangular(r, &divide);
        release(r, last);
    }
}

/* X in A's place, where L is still needed: of each block it gives way first. */
static void divide_by_l(gpb_residence *r, const gpb_inverse *x)
{
    const gpb_lapack_parts parts = gpb_resident_parts(r);
    const int64_t block = gpb_resident_inverse_block(r->work);
    for (int64_t last = x->n, first; last > 0; last = first) {
        first = (last - 1) / block * block;
        const gpb_inverse_division by_l = gpb_inverse_divide(x, first, last, gpb_pointer(r->beside), r->ld);
        gpb_resident_copy(r, entry(r, r->a, first, first), r->beside, x->n - first, last - first, 0);
        gpb_resident_copy(r, entry(r, r->b, 0, first), entry(r, r->a, 0, first), x->n, last - first, 0);
        parts.multiply(r, &by_l.product);
        gpb_resident_triangular(r, &by_l.divide);
        release(r, x->n + x->n - first);
    }
}

/* X becomes the inverse, in B's place. */
static void order_columns(gpb_residence *r)
{
    const int64_t n = r->work->system.a.n;
    if (!r->result && !r->why) r->result = gpb_residence_send(r, r->inverse.columns, r->moves, 4 * n);
    gpb_resident_copy(r, r->a, r->b, n, n, r->moves);
}

void gpb_inverse_compute(gpb_residence *r)
{
    const gpb_factor *f = &r->work->system.a;
    gpb_inverse u = { .symbol = f->symbol, .type = f->type, .width = f->width, .uplo = 'U', .diag = 'N',
                      .n = f->n, .a = gpb_pointer(r->b), .lda = r->ld };
    invert_u(r, &u);
    u.a = gpb_pointer(r->a);
    divide_by_l(r, &u);
    if (!r->on_host) order_columns(r);
}

void gpb_inverse_finish(const gpb_residence *r)
{
    const gpb_factor *f = &r->work->system.a;
    const int64_t rows = GPB_COLUMNS_BYTES / (int64_t)r->element;
    int32_t *walk = r->inverse.work;
    gpb_columns_job job = { .ld = f->lda, .element = r->element, .walk = walk,
                            .count = gpb_columns_walk(r->inverse.columns, f->n, walk) };
    gpb_crew_queue *queue = calloc(1, sizeof *queue);
    if (queue) gpb_crew_begin(queue);
    for (int64_t row = 0; row < f->n; row += job.rows) {
        job.a = (char *)f->a + (size_t)row * r->element;
        job.rows = min(f->n - row, rows);
        if (!queue || !gpb_crew_post_columns(queue, &job)) gpb_columns_move(&job);
    }
    if (queue) gpb_crew_end(queue);
    free(queue);
}

void gpb_inverse_go_on(const gpb_residence *r, int64_t done)
{
    gpb_lapack_invert_lu_go_on(&r->work->system.a, done, r->inverse.work, OF_HOST);
}
