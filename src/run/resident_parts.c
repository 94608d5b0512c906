/* SPDX-License-Identifier: MIT */
#include "src/run/resident_parts.h"

#include <stddef.h>

#include "dispatch/numbers.h"
#include "kernels/solve_args.h"
#include "src/gpu/dma.h"
#include "src/gpu/kernels.h"
#include "src/run/run.h"

/* Beside the queueing, the copies go on, as far as they can. */
static void carry_on(gpb_residence *r)
{
    if (!r->result) r->result = gpb_carry_go_on(&r->up);
    if (!r->result) r->result = gpb_carry_go_on(&r->down);
}

/* The number of the column that the address in the arena is in: first those of A, then those of B, which lie
   before kept ones of A and have negative numbers there. */
static int64_t column_of(const gpb_residence *r, CUdeviceptr at)
{
    const int64_t column = r->ld * (int64_t)r->element;
    return at < r->a ? -ceil_div((int64_t)(r->a - at), column) : (int64_t)(at - r->a) / column;
}

/* The same of an address that a launch takes. The program's A and B may lie between each other. */
static int64_t column_at(const gpb_residence *r, const void *at)
{
    const int64_t e = (int64_t)r->element, of_b = (int64_t)((CUdeviceptr)(uintptr_t)at - r->of_b) / e;
    const bool in_b = of_b >= 0 && of_b / r->ldb < gpb_resident_b_cols(r->work)
                      && of_b % r->ldb < gpb_resident_b_rows(r->work);
    if (in_b) return column_of(r, r->b) + of_b / r->ldb;
    return (int64_t)((CUdeviceptr)(uintptr_t)at - r->of_a) / e / r->lda;
}

/* How many columns have come up once those of the block have. Panels of rows have the same columns. */
static int64_t come_before(const gpb_residence *r, int64_t first, int64_t last)
{
    int64_t before = 0, wanted = 0;
    for (int i = 0; i < (r->wanted ? r->wanted : r->up.count); i++) {
        const gpb_carry_matrix *x = &r->up.matrix[i];
        const int64_t at = column_of(r, x->arena), end = min(last, at + x->cols);
        if (at < last && first < at + x->cols) wanted = before + end - at;
        before += x->cols;
    }
    return wanted;
}

static CUresult launch_now(gpb_residence *r, enum gpb_pass pass, int64_t blocks, void *args, gpb_launch how)
{
    how.which = gpb_kernels_pass(pass, r->work->system.a.type);
    how.blocks = blocks;
    how.members = max(how.members, 1);
    how.args = args;
    return gpb_kernels_launch(r->lane->device, r->lane->stream, &how);
}

static void launch(gpb_residence *r, enum gpb_pass pass, int64_t blocks, void *args, gpb_launch how)
{
    carry_on(r);
    if (!r->result && !r->why) r->result = launch_now(r, pass, blocks, args, how);
}

void gpb_resident_launch_wide(gpb_residence *n, enum gpb_pass pass, int64_t blocks, void *args)
{
    carry_on(n);
    if (!n->result && !n->why) n->result = launch_now(n->wide, pass, blocks, args, (gpb_launch){ 0 });
}

void gpb_resident_narrow_from(gpb_residence *n, CUdeviceptr from, CUdeviceptr to, int64_t shift, int64_t cols,
                              char uplo)
{
    const CUdeviceptr first = (CUdeviceptr)(shift * n->ld);
    gpb_narrow_args args = { .from = gpb_pointer(from + first * n->wide->element),
                             .to = gpb_pointer(to + first * n->element), .ldfrom = n->ld, .ldto = n->ld,
                             .rows = n->work->system.a.n, .cols = cols, .shift = shift, .uplo = uplo,
                             .overflow = gpb_pointer(n->words + offsetof(gpb_refined_words, overflow)) };
    gpb_resident_launch_wide(n, GPB_PASS_narrow, GPB_TRAPEZOID_BLOCKS(args.rows, cols), &args);
}

/* The columns that the stream has, first those of A, then those of B. */
static void narrow_what_came(gpb_residence *r)
{
    const int64_t n = r->work->system.a.n, come = r->up.followed, of_a = min(come, n);
    const int64_t first = max(r->narrowed, n) - n;
    if (r->narrowed < of_a)
        gpb_resident_narrow_from(r, r->wide->a, r->a, r->narrowed, of_a - r->narrowed,
                                 r->work->system.a.uplo);
    if (come - n > first) gpb_resident_narrow_from(r, r->given, r->b, first, come - n - first, 'G');
    r->narrowed = max(r->narrowed, come);
}

/* The columns of the block at `at` are on the device for what is queued from here on. If they do not come by
   need, columns of B follow those of A, and what a part reads lies in columns before those that it writes. */
void gpb_resident_await(gpb_residence *r, const void *at, int64_t cols)
{
    const int64_t first = column_at(r, at);
    const int64_t wanted = r->by_need ? come_before(r, first, first + cols)
                                      : min(first + cols, gpb_carry_columns(&r->up));
    gpb_carry *down = r->down.count ? &r->down : NULL;
    if (!r->result && !r->why) r->result = gpb_carry_await(&r->up, wanted, down);
    if (r->wide) narrow_what_came(r);
}

/* The row and column of the whole matrix at which the block begins, which is on the diagonal. */
static int32_t first_of(const gpb_residence *r, const gpb_factor *block)
{
    const CUdeviceptr shift = (CUdeviceptr)(uintptr_t)block->a - r->of_a;
    return (int32_t)(shift / r->element / (CUdeviceptr)(r->lda + 1));
}

static void factor_panel(gpb_residence *r, const gpb_factor *f)
{
    const int32_t first = first_of(r, f);
    const int64_t blocks = GPB_PANEL_BLOCKS(f->m);
    const bool one_cluster = !r->no_clusters && gpb_kernels_have_clusters(r->lane->device)
                             && gpb_resident_one_cluster(f->m, r->lane->device->arch);
    gpb_panel_args args = { .m = f->m, .a = f->a, .lda = f->lda, .n = (int32_t)f->n, .first = first,
                            .ipiv = (int32_t *)gpb_pointer(r->ipiv) + first,
                            .moves = (gpb_row_move *)gpb_pointer(r->moves) + 2 * (int64_t)first,
                            .width = (int32_t *)gpb_pointer(r->width) + first, .info = gpb_pointer(r->info),
                            .slots = gpb_pointer(r->slots), .arrivals = gpb_pointer(r->arrivals),
                            .arrived = r->arrived };
    r->panel_width[first] = (int32_t)f->n;
    carry_on(r);
    if (r->result || r->why) return;
    if (one_cluster) {
        r->result = launch_now(r, GPB_PASS_panel_cluster, blocks, &args, (gpb_launch){ .one_cluster = true });
        if (!r->result || gpb_driver_sticky(r->result)) return;
        r->result = CUDA_SUCCESS;
        r->no_clusters = true;
    }
    launch(r, GPB_PASS_panel_grid, blocks, &args, (gpb_launch){ .cooperative = true });
    r->arrived += (uint32_t)(blocks * (f->n + 1));
}

static void swap(void *where, const gpb_factor *f, void *a, int64_t lda, int64_t cols, int64_t first,
                 int64_t last, bool backwards);

void gpb_resident_release(gpb_residence *r, int64_t columns)
{
    if (r->result || r->why) return;
    r->result = gpb_dma_fetch(r->lane->table, r->info, sizeof(int32_t), r->lane->stream);
    if (!r->result) r->result = gpb_carry_release(&r->down, columns);
}

/* Cholesky's columns are final as soon as their panel is. Not for each panel, because a release takes a copy
   of INFO. */
static void release_some(gpb_residence *r, int64_t columns)
{
    enum { SOME = 512 };
    if (r->releases && columns >= r->down.ready + SOME) gpb_resident_release(r, columns);
}

/* A panel has as many columns as pivots; of a wide block the rest is U. */
static int64_t factor(void *where, const gpb_factor *f)
{
    gpb_residence *r = where;
    if (!gpb_factor_is_lu(f)) {
        gpb_resident_await(r, f->a, f->uplo == 'L' ? f->n : f->m);
        const bool lower = f->uplo == 'L';
        const int64_t below = f->m - f->n, blocks = GPB_CHOLESKY_BLOCKS(below, r->element);
        gpb_cholesky_args args = { .a = f->a, .rs = lower ? 1 : f->lda, .cs = lower ? f->lda : 1,
                                   .below = below, .n = (int32_t)f->n, .first = first_of(r, f),
                                   .info = gpb_pointer(r->info), .arrivals = gpb_pointer(r->arrivals),
                                   .arrived = r->arrived };
        launch(r, GPB_PASS_cholesky, blocks, &args, (gpb_launch){ 0 });
        r->arrived += (uint32_t)blocks;
        release_some(r, args.first + f->n);
        return 0;
    }
    gpb_resident_await(r, f->a, f->n);
    gpb_factor panel = *f;
    panel.n = gpb_factor_order(f);
    factor_panel(r, &panel);
    if (f->n > panel.n) {
        const gpb_triangular rest = gpb_factor_cut(f, panel.n).triangular;
        swap(r, f, rest.b, f->lda, rest.n, 0, panel.n, false);
        gpb_resident_triangular(r, &rest);
    }
    return 0;
}

/* Any TRSM or TRMM as that of a lower triangle from the left. */
static gpb_triangle_args lower_from_left(const gpb_residence *r, const gpb_triangular *t)
{
    const bool left = t->side == 'L', transposed = t->trans != 'N';
    /* op(A) from the left; from the right it is op(A)^T, and B^T. */
    const bool flips = transposed == left, lower = (t->uplo == 'L') != flips;
    const int64_t n = gpb_triangular_order(t), e = (int64_t)r->element;
    gpb_triangle_args args = { .rsl = flips ? t->lda : 1, .csl = flips ? 1 : t->lda,
                                 .rsb = left ? 1 : t->ldb, .csb = left ? t->ldb : 1,
                                 .cols = left ? t->n : t->m, .alpha = GPB_SCALAR_RE_IM(t->alpha),
                                 .n = (int32_t)n, .unit = t->diag == 'U', .conj = t->trans == 'C' };
    const char *a = t->a;
    char *b = t->b;
    if (!lower) {                        /* from its last row upwards it is a lower triangle */
        a += (n - 1) * (args.rsl + args.csl) * e;
        b += (n - 1) * args.rsb * e;
        args.rsl = -args.rsl;
        args.csl = -args.csl;
        args.rsb = -args.rsb;
    }
    args.l = a;
    args.b = b;
    return args;
}

/* TRMM by the triangles of that order on the diagonal, the last of which may be smaller, from the B of `was`
   to the B of t. Counted from the last row upwards, the smaller one is the first. */
static void multiply_triangles(gpb_residence *r, const gpb_triangular *t, const gpb_triangular *was,
                               int64_t order)
{
    const gpb_triangle_args from = lower_from_left(r, was);
    gpb_multiply_args args = { .of = lower_from_left(r, t), .from = from.b, .rsf = from.rsb, .csf = from.csb,
                               .order = from.n };
    const int64_t triangles = ceil_div(args.order, order), last = args.order - (triangles - 1) * order;
    const bool upwards = args.of.rsl < 0;
    args.of.n = (int32_t)min(order, args.order);
    args.first = upwards ? (int32_t)last : args.of.n;
    launch(r, GPB_PASS_multiply,
           GPB_MULTIPLY_BLOCKS(args.of.cols, gpb_type_real_bytes(t->type), r->element), &args,
           (gpb_launch){ .members = triangles });
}

static void substitute(gpb_residence *r, const gpb_triangular *t, gpb_triangle_args args)
{
    const int real = (int)gpb_type_real_bytes(t->type);
    const int64_t share = ceil_div(args.cols, 8 * (int64_t)r->lane->device->sms);
    const int64_t least = GPB_SUBSTITUTE_LEAST(real, r->element);
    const int64_t groups = min(max(share, least), GPB_SUBSTITUTE_GROUPS);
    const int64_t blocks = GPB_SUBSTITUTE_BLOCKS(args.cols, groups);
    gpb_launch how = { .threads = (int)GPB_SUBSTITUTE_THREADS_OF(real, groups) };
    if (blocks <= r->lane->device->sms) {
        how.threads += GPB_SUBSTITUTE_HELPERS(real);
        how.smem = GPB_ALONE_SHARED(gpb_kernel_table_shared(r->lane->device->arch));
    }
    args.ready = gpb_resident_only_reads_a(r->work);
    launch(r, GPB_PASS_substitute, blocks, &args, how);
}

static void one_triangle(gpb_residence *r, const gpb_triangular *t)
{
    if (t->solves) substitute(r, t, lower_from_left(r, t));
    else multiply_triangles(r, t, t, gpb_triangular_order(t));
}

/* From its last row upwards a triangle is a lower one if the columns go backwards, too. */
void gpb_resident_invert(gpb_residence *r, const gpb_triangular *t)
{
    gpb_triangle_args args = lower_from_left(r, t);
    args.inverts = true;
    if (args.rsb < 0) {
        args.b = (char *)args.b + (args.cols - 1) * args.csb * (int64_t)r->element;
        args.csb = -args.csb;
    }
    substitute(r, t, args);
}

/* Halves for one column would be a launch every block, one after the other. */
static void one_column(gpb_residence *r, const gpb_triangular *t)
{
    const int64_t blocks = GPB_TRSV_BLOCKS(gpb_triangular_order(t), r->element);
    gpb_trsv_args args = { .of = lower_from_left(r, t), .arrivals = gpb_pointer(r->arrivals),
                           .arrived = r->arrived };
    launch(r, GPB_PASS_trsv, min(blocks, r->lane->device->sms), &args, (gpb_launch){ .cooperative = true });
    r->arrived += (uint32_t)blocks;
}

static void queue(gpb_residence *r, const gpb_call *call)
{
    carry_on(r);
    if (r->result || r->why) return;
    r->result = gpb_run_queue(r->lane, call, &r->facts, &r->policy, &r->why);
}

static void multiply(void *where, const gpb_call *call)
{
    gpb_residence *r = where;
    if (!call->m || !call->n || !call->k) return;
    for (int x = 0; x < GPB_OPERANDS; x++) gpb_resident_await(r, call->x[x].base, gpb_call_cols(call, x));
    queue(r, call);
}

void gpb_resident_triangular(void *where, const gpb_triangular *t)
{
    gpb_residence *r = where;
    if (t->m == 0 || t->n == 0) return;
    gpb_resident_await(r, t->b, t->n);
    const bool one = t->solves && (t->side == 'L' ? t->n : t->m) == 1;
    const bool fits = gpb_triangular_order(t) <= GPB_TRIANGLE_ORDER(r->element);
    if (one || fits) {
        gpb_resident_await(r, t->a, gpb_triangular_order(t));
        if (fits) one_triangle(r, t);
        else one_column(r, t);
        return;
    }
    const gpb_triangular_halves halves = gpb_triangular_halve(t);
    gpb_resident_triangular(r, &halves.first);
    multiply(r, &halves.product);
    gpb_resident_triangular(r, &halves.second);
}

/* All of B and of the triangle must have come, because no part waits for another. */
void gpb_resident_multiply_levels(gpb_residence *r, const gpb_triangular *t, const gpb_triangular *was)
{
    const int64_t order = gpb_triangular_order(t), least = gpb_resident_level(r->work);
    if (t->m == 0 || t->n == 0) return;
    gpb_resident_await(r, t->b, t->n);
    gpb_resident_await(r, t->a, order);
    multiply_triangles(r, t, was, least);
    for (int64_t half = least; half < order; half *= 2) {
        gpb_call products[2];
        const int count = gpb_triangular_level(t, was, half, products);
        for (int i = 0; i < count; i++) queue(r, &products[i]);
    }
}

/* The next columns whose exchanges one launch makes, of [from, to), in whole panels; backwards from `to`, of
   factors that came up, whose panels have their width at both ends. */
static int64_t exchanges_at_once(const gpb_residence *r, int64_t from, int64_t to, int64_t most,
                                 bool backwards)
{
    int64_t count = 0;
    if (to - from <= most) return to - from;
    if (!backwards) {
        while (count + r->panel_width[from + count] <= most) count += r->panel_width[from + count];
        return count;
    }
    while (count + r->panel_width[to - count - 1] <= most) count += r->panel_width[to - count - 1];
    return count;
}

static void swap(void *where, const gpb_factor *f, void *a, int64_t lda, int64_t cols, int64_t first,
                 int64_t last, bool backwards)
{
    gpb_residence *r = where;
    const int64_t top = first_of(r, f), rows = top + f->m;
    gpb_resident_await(r, a, cols);
    const int64_t most = gpb_resident_exchanges(rows, r->lane->device->arch);
    gpb_swap_args args = { .a = (char *)a - top * (int64_t)r->element, .lda = lda, .cols = cols,
                           .rows = rows, .moves = gpb_pointer(r->moves), .width = gpb_pointer(r->width),
                           .backwards = backwards };
    int64_t from = top + first, to = top + last;
    while (cols && from < to && !r->result && !r->why) {
        const int64_t count = exchanges_at_once(r, from, to, most, backwards);
        args.first = (int32_t)(backwards ? to - count : from);
        args.last = args.first + (int32_t)count;
        launch(r, GPB_PASS_swap, min(cols, 2 * r->lane->device->sms), &args,
               (gpb_launch){ .smem = GPB_SWAP_SHARED(rows, count) });
        if (backwards) to -= count;
        else from += count;
    }
}

void gpb_resident_identity(gpb_residence *r, void *at, int64_t rows, int64_t cols, int64_t below)
{
    gpb_identity_args args = { .a = at, .lda = r->ld, .rows = rows, .cols = cols, .below = below };
    launch(r, GPB_PASS_identity, min(cols, 2 * r->lane->device->sms), &args, (gpb_launch){ 0 });
}

void gpb_resident_copy(gpb_residence *r, CUdeviceptr from, CUdeviceptr to, int64_t rows, int64_t cols,
                       CUdeviceptr columns)
{
    gpb_trapezoid_args args = { .from = gpb_pointer(from), .to = gpb_pointer(to),
                                .columns = columns ? gpb_pointer(columns) : NULL, .ldfrom = r->ld,
                                .ldto = r->ld, .rows = rows, .cols = cols, .diagonal = -cols,
                                .lower = true };
    launch(r, GPB_PASS_trapezoid, GPB_TRAPEZOID_BLOCKS(rows, cols), &args, (gpb_launch){ 0 });
}

/* A panel of U needs all columns, so large ones would wait for the whole matrix to come. */
gpb_lapack_parts gpb_resident_parts(gpb_residence *r)
{
    enum { WIDE_PANELS = 1024 };
    const size_t e = r->element;
    const gpb_factor *f = &r->work->system.a;
    return (gpb_lapack_parts){ .leaf = gpb_factor_is_lu(f) ? GPB_PANEL_COLUMNS(e) : GPB_BLOCK_ORDER(e),
                               .factor = factor, .triangular = gpb_resident_triangular,
                               .multiply = multiply, .swap = swap,
                               .panels = f->uplo == 'L' ? INT64_MAX : WIDE_PANELS,
                               .counts_from_top = true, .where = r };
}
