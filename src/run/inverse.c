/* SPDX-License-Identifier: MIT */
/* See inverse.h. */
#include "src/run/inverse.h"

#include <stdlib.h>

#include "dispatch/numbers.h"
#include "kernels/solve_args.h"
#include "src/copy/crew.h"
#include "src/gpu/dma.h"
#include "src/gpu/kernels.h"
#include "src/run/resident_parts.h"

/* Columns at a time, if the host goes on. */
enum { OF_HOST = 64 };

const char *gpb_inverse_begin(gpb_residence *r)
{
    const gpb_factor *f = &r->work->system.a;
    if (!gpb_resident_inverts_lu(r->work)) return NULL;
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

/* The triangle that is inverted first, there. */
static gpb_inverse triangle(const gpb_residence *r, void *a, int64_t lda)
{
    const gpb_factor *f = &r->work->system.a;
    return (gpb_inverse){ .symbol = f->symbol, .type = f->type, .width = f->width,
                          .uplo = gpb_factor_is_lu(f) ? 'U' : f->uplo,
                          .diag = r->work->triangular ? r->work->triangular->diag : 'N', .n = f->n, .a = a,
                          .lda = lda };
}

/* A device gets the whole of it at the end, the host all that there is on the way to it. */
int gpb_inverse_home(const gpb_residence *r, const gpb_carry_matrix *x, gpb_carry_matrix to[GPB_CARRY_MOST])
{
    const bool lu = gpb_resident_inverts_lu(r->work), cholesky = !lu && !r->work->triangular;
    const gpb_inverse w = triangle(r, NULL, r->ld);
    to[0] = to[1] = *x;
    to[0].arena = r->b;
    to[0].uplo = w.uplo;
    to[0].backwards = w.uplo == 'L';
    to[1].arena = r->a;
    to[1].backwards = lu;
    to[1].again = true;
    if (r->on_host) return lu || cholesky ? 2 : 1;
    to[0].arena = cholesky ? r->a : r->b;
    to[0].uplo = x->uplo;
    return 1;
}

static void release(gpb_residence *r, int64_t columns)
{
    if (r->on_host && !r->result && !r->why) r->result = gpb_carry_release(&r->down, columns);
}

/* What A has where B has this. */
static void *in_a(const gpb_residence *r, const void *at)
{
    return gpb_pointer((CUdeviceptr)(uintptr_t)at - r->b + r->a);
}

static void invert_blocks(gpb_residence *r, const gpb_inverse *w, int64_t block);

/* Columns [first, last) of W, the inverse of A's triangle there, where B has the identity in their block. The
   block is divided from the right, as the rectangle is, so W T = I holds row by row, as LAPACK has it: what
   comes next multiplies W from the right. */
static void invert_columns(gpb_residence *r, const gpb_inverse *w, int64_t first, int64_t last)
{
    const int64_t most = GPB_TRIANGLE_ORDER((int64_t)r->element);
    const gpb_inverse_columns next = gpb_inverse_next(w, first, last);
    gpb_triangular was = next.multiply, divide = next.divide;
    was.b = in_a(r, was.b);
    divide.a = in_a(r, next.block.a);
    gpb_resident_multiply_levels(r, &next.multiply, &was);
    gpb_resident_triangular(r, &divide);
    divide.m = divide.n;
    divide.b = next.block.a;
    if (divide.n <= most) gpb_resident_invert(r, &divide);
    else invert_blocks(r, &next.block, most);
}

/* W by so many columns at a time. The whole of it is in B's place, and its columns come and go. Where a
   single block is the whole (z, orders from 129 to 256), its steps do so, too: with the same identity, and
   what they release is not released again. */
static void invert_blocks(gpb_residence *r, const gpb_inverse *w, int64_t block)
{
    const bool lower = w->uplo == 'L', whole = w->n == r->work->system.a.n;
    for (int64_t done = 0, n = w->n, first, last; done < n; done = lower ? n - first : last) {
        last = lower ? n - done : min(n, done + block);
        first = lower ? (last - 1) / block * block : done;
        if (whole) {
            void *at = gpb_inverse_at(w, first, first);
            gpb_resident_await(r, in_a(r, at), last - first);
            gpb_resident_identity(r, at, lower ? last - first : n - first, last - first, 0);
        }
        invert_columns(r, w, first, last);
        if (whole) release(r, lower ? n - first : last);
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

/* That of columns [first, last) of a Hermitian inverse, which rounding leaves imaginary parts. */
static void make_diagonal_real(gpb_residence *r, int64_t first, int64_t last)
{
    const size_t part = gpb_type_real_bytes(r->work->system.a.type);
    if (part == r->element || r->result || r->why) return;
    r->result = gpb_driver_get()->cuMemsetD2D32Async(entry(r, r->a, first, first) + part,
                                                     (size_t)(r->ld + 1) * r->element, 0, part / 4,
                                                     (size_t)(last - first), r->lane->stream);
}

/* W W^H, or W^H W of a lower W, in A's place. Nothing is multiplied by what lies beyond W's triangle. */
static void square(gpb_residence *r, const gpb_inverse *w)
{
    const gpb_lapack_parts parts = gpb_resident_parts(r);
    const int64_t block = gpb_resident_inverse_block(r->work), n = w->n;
    const bool lower = w->uplo == 'L';
    const char h = gpb_type_is_complex(w->type) ? 'C' : 'T';
    for (int64_t first = 0, last; first < n; first = last) {
        last = min(n, first + block);
        const int64_t row = lower ? first : 0;
        gpb_triangular t = { .symbol = w->symbol, .type = w->type, .width = w->width,
                             .side = lower ? 'L' : 'R', .uplo = w->uplo, .trans = h, .diag = 'N',
                             .m = lower ? n - first : last, .n = last - first, .alpha = 1,
                             .a = gpb_inverse_at(w, first, first), .lda = r->ld,
                             .b = gpb_pointer(entry(r, r->a, row, first)), .ldb = r->ld };
        gpb_triangular was = t;
        was.b = gpb_inverse_at(w, row, first);
        gpb_resident_multiply_levels(r, &t, &was);
        const gpb_call behind = { .symbol = w->symbol, .type = w->type, .width = w->width, .m = last,
                                  .n = last - first, .k = n - last, .alpha = 1, .beta = 1, .batch = 1,
                                  .x = { { .base = gpb_inverse_at(w, 0, last), .ld = r->ld, .trans = 'N' },
                                         { .base = gpb_inverse_at(w, first, last), .ld = r->ld, .trans = h },
                                         { .base = t.b, .ld = r->ld, .trans = 'N', .uplo = 'G' } } };
        if (!lower) parts.multiply(r, &behind);
        make_diagonal_real(r, first, last);
        release(r, n + last);
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
    const gpb_inverse w = triangle(r, gpb_pointer(r->b), r->ld), x = triangle(r, gpb_pointer(r->a), r->ld);
    invert_blocks(r, &w, gpb_resident_inverse_block(r->work));
    if (gpb_resident_inverts_lu(r->work)) {
        divide_by_l(r, &x);
        if (!r->on_host) order_columns(r);
    } else if (!r->work->triangular) {
        square(r, &w);
    }
}

void gpb_inverse_finish(const gpb_residence *r)
{
    const gpb_factor *f = &r->work->system.a;
    if (!r->inverse.columns) return;
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
    const gpb_factor *f = &r->work->system.a;
    const gpb_inverse t = triangle(r, f->a, f->lda);
    if (gpb_resident_inverts_lu(r->work)) gpb_lapack_invert_lu_go_on(f, done, r->inverse.work, OF_HOST);
    else if (r->work->triangular) gpb_lapack_invert_go_on(&t, done);
    else gpb_lapack_invert_cholesky_go_on(f, done);
}
