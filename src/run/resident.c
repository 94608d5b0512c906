/* SPDX-License-Identifier: MIT */
/* See resident.h. All launches go into the lane's stream, so they need no waiting between them; the thread
   only queues. INFO and pivots stay on the device until the end. */
#include "src/run/resident.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/decide.h"
#include "dispatch/numbers.h"
#include "kernels/solve_args.h"
#include "src/gpu/context.h"
#include "src/gpu/dma.h"
#include "src/gpu/gpu.h"
#include "src/gpu/kernels.h"
#include "src/gpu/memory.h"
#include "src/host/condition.h"
#include "src/host/lapack.h"
#include "src/host/level3.h"
#include "src/run/carry.h"
#include "src/run/kept.h"
#include "src/run/run.h"
#include "src/run/spare.h"
#include "src/service/log.h"

/* INFO as it is before anything is wrong, of no pivot being 0. */
enum { NO_INFO = INT32_MAX };

/* What the parts of LAPACK's recursion work on. Operands of theirs are addresses in the arena. */
typedef struct resident {
    gpb_lane *lane;
    const gpb_resident *work;
    gpb_facts facts;                 /* of its products: all on the device */
    gpb_policy policy;
    CUdeviceptr a, b, ipiv, moves, width, info, arrivals, slots;
    int64_t ld;                      /* of A in the arena */
    uint32_t arrived;                /* the counter's value once all that is queued has run */
    gpb_carry up, down;
    bool by_need;                    /* what the first launches need comes up first, or is there */
    bool kept;                       /* the factors are those that the lane has kept, if the check says so */
    gpb_kept_check check;
    bool others;                     /* it does not: all is done anew */
    bool releases;                   /* Cholesky: columns go home as soon as they are final */
    int32_t found;                   /* INFO of the device or NO_INFO, once it is fetched */
    bool fetched;
    bool on_host;                    /* what is computed goes to ordinary host memory */
    gpb_spare spare;                 /* of what the results replace, if the host would need it */
    bool no_clusters;                /* none of that size fits: a part of a GPU, or others hold its memory */
    int32_t *panel_width;            /* of the panel that begins at a column; 0: none does */
    CUresult result;                 /* the first failure; nothing is queued after it */
    const char *why;                 /* of a failure that is no error of the driver's */
} resident;

static void *pointer(CUdeviceptr at) { return (void *)(uintptr_t)at; }
static size_t element(const resident *r) { return gpb_type_bytes(r->work->system.a.type); }

/* Beside the queueing, the copies go on, as far as they can. */
static void carry_on(resident *r)
{
    if (!r->result) r->result = gpb_carry_go_on(&r->up);
    if (!r->result) r->result = gpb_carry_go_on(&r->down);
}

/* The number of the column that the address is in: first those of A, then those of B, which lie before kept
   ones of A and have negative numbers there. */
static int64_t column_of(const resident *r, CUdeviceptr at)
{
    const int64_t column = r->ld * (int64_t)element(r);
    return at < r->a ? -ceil_div((int64_t)(r->a - at), column) : (int64_t)(at - r->a) / column;
}

/* How many columns have come up once those of the block have. */
static int64_t come_before(const resident *r, int64_t first, int64_t last)
{
    int64_t before = 0, wanted = 0;
    for (int i = 0; i < r->up.count; i++) {
        const gpb_carry_matrix *x = &r->up.matrix[i];
        const int64_t at = column_of(r, x->arena), end = min(last, at + x->cols);
        if (at < last && first < at + x->cols) wanted = before + end - at;
        before += x->cols;
    }
    return wanted;
}

/* The columns of the block at `at` are on the device for what is queued from here on. If they do not come by
   need, columns of B follow those of A, and what a part reads lies in columns before those that it writes. */
static void await(resident *r, const void *at, int64_t cols)
{
    const int64_t first = column_of(r, (CUdeviceptr)(uintptr_t)at);
    const int64_t wanted = r->by_need ? come_before(r, first, first + cols)
                                      : min(first + cols, gpb_carry_columns(&r->up));
    gpb_carry *down = r->down.count ? &r->down : NULL;
    if (!r->result && !r->why) r->result = gpb_carry_await(&r->up, wanted, down);
}

static CUresult launch_now(resident *r, enum gpb_pass pass, int64_t blocks, void *args, gpb_launch how)
{
    how.which = gpb_kernels_pass(pass, r->work->system.a.type);
    how.blocks = blocks;
    how.members = 1;
    how.args = args;
    return gpb_kernels_launch(r->lane->device, r->lane->stream, &how);
}

static void launch(resident *r, enum gpb_pass pass, int64_t blocks, void *args, gpb_launch how)
{
    carry_on(r);
    if (!r->result && !r->why) r->result = launch_now(r, pass, blocks, args, how);
}

/* ---- the parts */

/* The row and column of the whole matrix at which the block begins, which is on the diagonal. */
static int32_t first_of(const resident *r, const gpb_factor *block)
{
    const CUdeviceptr shift = (CUdeviceptr)(uintptr_t)block->a - r->a;
    return (int32_t)(shift / element(r) / (CUdeviceptr)(r->ld + 1));
}

static void factor_panel(resident *r, const gpb_factor *f)
{
    const int32_t first = first_of(r, f);
    const int64_t blocks = GPB_PANEL_BLOCKS(f->m);
    const bool one_cluster = !r->no_clusters && gpb_kernels_have_clusters(r->lane->device)
                             && gpb_resident_one_cluster(f->m, r->lane->device->arch);
    gpb_panel_args args = { .m = f->m, .a = f->a, .lda = f->lda, .n = (int32_t)f->n, .first = first,
                            .ipiv = (int32_t *)pointer(r->ipiv) + first,
                            .moves = (gpb_row_move *)pointer(r->moves) + 2 * (int64_t)first,
                            .width = (int32_t *)pointer(r->width) + first, .info = pointer(r->info),
                            .slots = pointer(r->slots), .arrivals = pointer(r->arrivals),
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

static void triangular(void *where, const gpb_triangular *t);
static void swap(void *where, const gpb_factor *f, void *a, int64_t lda, int64_t cols, int64_t first,
                 int64_t last, bool backwards);

/* Columns before that one go home, if no minor before it is wrong. */
static void release(resident *r, int64_t columns)
{
    if (r->result || r->why) return;
    r->result = gpb_dma_fetch(r->lane->table, r->info, sizeof(int32_t), r->lane->stream);
    if (!r->result) r->result = gpb_carry_release(&r->down, columns);
}

/* Cholesky's columns are final as soon as their panel is. Not for each panel, because a release takes a copy
   of INFO. */
static void release_some(resident *r, int64_t columns)
{
    enum { SOME = 512 };
    if (r->releases && columns >= r->down.ready + SOME) release(r, columns);
}

/* A panel has as many columns as pivots; of a wide block the rest is U. */
static int64_t factor(void *where, const gpb_factor *f)
{
    resident *r = where;
    if (!gpb_factor_is_lu(f)) {
        await(r, f->a, f->uplo == 'L' ? f->n : f->m);
        const bool lower = f->uplo == 'L';
        const int64_t below = f->m - f->n, blocks = GPB_CHOLESKY_BLOCKS(below, element(r));
        gpb_cholesky_args args = { .a = f->a, .rs = lower ? 1 : f->lda, .cs = lower ? f->lda : 1,
                                   .below = below, .n = (int32_t)f->n, .first = first_of(r, f),
                                   .info = pointer(r->info), .arrivals = pointer(r->arrivals),
                                   .arrived = r->arrived };
        launch(r, GPB_PASS_cholesky, blocks, &args, (gpb_launch){ 0 });
        r->arrived += (uint32_t)blocks;
        release_some(r, args.first + f->n);
        return 0;
    }
    await(r, f->a, f->n);
    gpb_factor panel = *f;
    panel.n = gpb_factor_order(f);
    factor_panel(r, &panel);
    if (f->n > panel.n) {
        const gpb_triangular rest = gpb_factor_cut(f, panel.n).triangular;
        swap(r, f, rest.b, f->lda, rest.n, 0, panel.n, false);
        triangular(r, &rest);
    }
    return 0;
}

/* Any TRSM or TRMM as that of a lower triangle from the left. */
static gpb_triangle_args lower_from_left(const resident *r, const gpb_triangular *t)
{
    const bool left = t->side == 'L', transposed = t->trans != 'N';
    /* op(A) from the left; from the right it is op(A)^T, and B^T. */
    const bool flips = transposed == left, lower = (t->uplo == 'L') != flips;
    const int64_t n = gpb_triangular_order(t), e = (int64_t)element(r);
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

static void one_triangle(resident *r, const gpb_triangular *t)
{
    gpb_triangle_args args = lower_from_left(r, t);
    launch(r, t->solves ? GPB_PASS_substitute : GPB_PASS_multiply, GPB_TRIANGLE_BLOCKS(args.cols), &args,
           (gpb_launch){ 0 });
}

/* Halves for one column would be a launch every block, one after the other. */
static void one_column(resident *r, const gpb_triangular *t)
{
    const int64_t blocks = GPB_TRSV_BLOCKS(gpb_triangular_order(t), element(r));
    gpb_trsv_args args = { .of = lower_from_left(r, t), .arrivals = pointer(r->arrivals),
                           .arrived = r->arrived };
    launch(r, GPB_PASS_trsv, min(blocks, r->lane->device->sms), &args, (gpb_launch){ .cooperative = true });
    r->arrived += (uint32_t)blocks;
}

static void multiply(void *where, const gpb_call *call)
{
    resident *r = where;
    if (!call->m || !call->n || !call->k) return;
    await(r, call->x[GPB_A].base, gpb_call_cols(call, GPB_A));
    await(r, call->x[GPB_C].base, call->n);
    carry_on(r);
    if (r->result || r->why) return;
    r->result = gpb_run_queue(r->lane, call, &r->facts, &r->policy, &r->why);
}

static void triangular(void *where, const gpb_triangular *t)
{
    resident *r = where;
    if (t->m == 0 || t->n == 0) return;
    await(r, t->b, t->n);
    const bool one = t->solves && (t->side == 'L' ? t->n : t->m) == 1;
    const bool fits = gpb_triangular_order(t) <= GPB_TRIANGLE_ORDER(element(r));
    if (one || fits) {
        await(r, t->a, gpb_triangular_order(t));
        if (fits) one_triangle(r, t);
        else one_column(r, t);
        return;
    }
    const gpb_triangular_halves halves = gpb_triangular_halve(t);
    triangular(r, &halves.first);
    multiply(r, &halves.product);
    triangular(r, &halves.second);
}

/* The next columns whose exchanges one launch makes, of [from, to), in whole panels; backwards from `to`. */
static int64_t exchanges_at_once(const resident *r, int64_t from, int64_t to, int64_t most, bool backwards)
{
    int64_t count = 0;
    if (to - from <= most) return to - from;
    if (!backwards) {
        while (count + r->panel_width[from + count] <= most) count += r->panel_width[from + count];
        return count;
    }
    for (int64_t col = to - 1; col >= from && to - col <= most; col--)
        if (r->panel_width[col]) count = to - col;
    return count;
}

static void swap(void *where, const gpb_factor *f, void *a, int64_t lda, int64_t cols, int64_t first,
                 int64_t last, bool backwards)
{
    resident *r = where;
    const int64_t top = first_of(r, f), rows = top + f->m;
    await(r, a, cols);
    const int64_t most = gpb_resident_exchanges(rows, r->lane->device->arch);
    gpb_swap_args args = { .a = (char *)a - top * (int64_t)element(r), .lda = lda, .cols = cols,
                           .rows = rows, .moves = pointer(r->moves), .width = pointer(r->width),
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

/* ---- pivots */

static CUresult fetch(resident *r, CUdeviceptr from, void *to, int64_t bytes)
{
    const gpb_driver *driver = gpb_driver_get();
    CUresult result = CUDA_SUCCESS;
    for (int64_t at = 0; at < bytes && !result; at += GPB_TABLE_BYTES) {
        const size_t size = (size_t)min(bytes - at, GPB_TABLE_BYTES);
        result = gpb_dma_fetch(r->lane->table, from + (CUdeviceptr)at, size, r->lane->stream);
        if (!result) result = driver->cuStreamSynchronize(r->lane->stream);
        if (!result) memcpy((char *)to + at, r->lane->table, size);
    }
    return result;
}

static CUresult send(resident *r, const void *from, CUdeviceptr to, int64_t bytes)
{
    const gpb_driver *driver = gpb_driver_get();
    CUresult result = CUDA_SUCCESS;
    for (int64_t at = 0; at < bytes && !result; at += GPB_TABLE_BYTES) {
        const size_t size = (size_t)min(bytes - at, GPB_TABLE_BYTES);
        memcpy(r->lane->table, (const char *)from + at, size);
        result = gpb_dma_send(to + (CUdeviceptr)at, r->lane->table, size, r->lane->stream);
        if (!result) result = driver->cuStreamSynchronize(r->lane->stream);
    }
    return result;
}

static void put_pivots(const gpb_factor *f, const int32_t *pivots)
{
    const int64_t order = gpb_factor_order(f);
    for (int64_t i = 0; i < order; i++)
        if (f->width == 64) ((int64_t *)f->ipiv)[i] = pivots[i];
        else ((int32_t *)f->ipiv)[i] = pivots[i];
}

/* The caller's pivots as moves, in panels of some width. False: they are not of a factorisation. */
static bool moves_of(const gpb_factor *f, gpb_row_move *moves, int32_t *width)
{
    enum { PANEL = 32 };
    int32_t at[2 * PANEL], from[2 * PANEL];
    for (int64_t first = 0; first < f->n; first += PANEL) {
        const int32_t n = (int32_t)min((int64_t)PANEL, f->n - first);
        int count = n;
        for (int i = 0; i < n; i++) at[i] = from[i] = (int32_t)first + i;
        for (int i = 0; i < n; i++) {
            const void *ipiv = (const char *)f->ipiv + (first + i) * (f->width / 8);
            const int64_t row = (f->width == 64 ? *(const int64_t *)ipiv : *(const int32_t *)ipiv) - 1;
            if (row < first + i || row >= f->n) return false;
            int other = 0;
            while (other < count && at[other] != row) other++;
            if (other == count) {
                at[count] = from[count] = (int32_t)row;
                count++;
            }
            const int32_t kept = from[i];
            from[i] = from[other];
            from[other] = kept;
        }
        for (int i = 0; i < 2 * n; i++) {
            const int which = i < count ? i : 0;           /* some moves twice, as panels have them */
            moves[2 * first + i] = (gpb_row_move){ at[which], from[which] };
        }
        width[first] = width[first + n - 1] = n;
    }
    return true;
}

/* Sends the pivots of factors that are there already. */
static void send_pivots(resident *r)
{
    const gpb_factor *f = &r->work->system.a;
    gpb_row_move *moves = calloc((size_t)(2 * f->n), sizeof *moves);
    if (!moves) r->why = "out of memory";
    else if (!moves_of(f, moves, r->panel_width)) r->why = "ipiv is of no factorisation";
    if (!r->why) r->result = send(r, moves, r->moves, 2 * f->n * (int64_t)sizeof *moves);
    if (!r->why && !r->result) r->result = send(r, r->panel_width, r->width, 4 * f->n);
    free(moves);
}

/* ---- the run */

static CUdeviceptr carve(CUdeviceptr *arena, int64_t bytes)
{
    const CUdeviceptr at = *arena;
    *arena += (CUdeviceptr)round_up(bytes, 256);
    return at;
}

/* Bytes of the products' workspace; 0: there is too little memory. It is the same whether factors are kept or
   come: the products' plans depend on it, and the same call must give the same bits. */
static int64_t workspace_of(const resident *r)
{
    const int64_t wanted = gpb_resident_workspace(r->work, r->lane->device->arch), least = wanted / 8;
    const int64_t left = r->lane->device->budget - gpb_resident_bytes(r->work);
    const int64_t workspace = round_up(min(wanted, left), 256) - 256;
    return workspace < least ? 0 : workspace;
}

static int64_t bytes_of_pivots(const resident *r)
{
    return round_up(8 + r->work->system.a.n * (4 + 2 * (int64_t)sizeof(gpb_row_move)), 256);
}

/* Bytes before factors that are to be kept: for as many right-hand sides as they have columns, or MANY, and
   for pivots; less where half of the device's memory does not suffice for all. */
static int64_t room_of(const resident *r, int64_t others)
{
    enum { MANY = 4096 };
    const gpb_factor *f = &r->work->system.a;
    if (!r->work->factors || !gpb_place_on_host(r->facts.where[GPB_A].place)) return 0;
    const int64_t b = gpb_resident_ld(r->work) * max(f->n, MANY) * (int64_t)element(r);
    const int64_t all = round_up(b, 256) + bytes_of_pivots(r);
    return max(0, min(all, r->lane->device->budget / 2 - others) / 256 * 256);
}

/* The products' workspace is the arena's beginning, where they look for it. */
static const char *provide(resident *r)
{
    const gpb_factor *f = &r->work->system.a;
    const int64_t order = gpb_factor_order(f), bytes = gpb_resident_bytes(r->work);
    const int64_t workspace = workspace_of(r), room = room_of(r, bytes + workspace);
    if (!workspace) return "too little device memory";
    if (!gpb_memory_arena(r->lane, bytes + workspace + room) || !gpb_memory_counters(r->lane))
        return gpb_gpu_started() ? "too little device memory" : gpb_gpu_why();
    CUdeviceptr at = r->lane->arena.at + (CUdeviceptr)(workspace + room);
    const int64_t e = (int64_t)element(r);
    r->facts.gpu.bytes = workspace;
    r->ld = gpb_resident_ld(r->work);
    r->a = at;
    r->b = at + (CUdeviceptr)(r->ld * f->n * e);
    at += (CUdeviceptr)round_up(r->ld * (f->n + gpb_resident_b_cols(r->work)) * e, 256);
    r->info = at;
    r->arrivals = at + 4;
    r->ipiv = at + 8;
    r->width = r->ipiv + 4 * (CUdeviceptr)order;
    r->moves = r->width + 4 * (CUdeviceptr)order;
    carve(&at, 8 + order * (4 + 4 + 2 * (int64_t)sizeof(gpb_row_move)));
    r->slots = at;
    r->panel_width = calloc((size_t)max(1, order), sizeof *r->panel_width);
    return r->panel_width ? NULL : "out of memory";
}

/* The same where the factors are that the lane has kept: B and the pivots lie before them. False: there is no
   room for that, or no factors any more. */
static bool provide_before_kept(resident *r)
{
    const int64_t n = r->work->system.a.n, before = r->lane->arena.kept, ld = r->lane->kept.ld_arena;
    const int64_t b = ld * gpb_resident_b_cols(r->work) * (int64_t)element(r), workspace = workspace_of(r);
    const bool fits = workspace && workspace + bytes_of_pivots(r) + b <= before;
    if (!before || !fits || !gpb_memory_arena(r->lane, before) || !r->lane->arena.kept
        || !gpb_memory_counters(r->lane))
        return false;
    r->facts.gpu.bytes = workspace;
    r->ld = ld;
    r->a = gpb_kept_at(r->lane);
    r->b = r->a - (CUdeviceptr)b;
    r->info = r->lane->arena.at + (CUdeviceptr)workspace;
    r->arrivals = r->info + 4;
    r->moves = r->info + 8;
    r->width = r->moves + 2 * sizeof(gpb_row_move) * (CUdeviceptr)n;
    r->panel_width = calloc((size_t)n, sizeof *r->panel_width);
    return r->panel_width != NULL;
}

/* The factors that such work begins with, which a lane may have kept. Those of LU are square. */
static bool begins_with_factors(const gpb_resident *w, const gpb_facts *facts)
{
    return !w->factors && !w->triangular && w->system.a.n > 0
           && gpb_place_on_host(facts->where[GPB_A].place);
}

/* Pinned memory goes through the ring like any other of the host's, because nobody knows how much a copy by
   the driver has written that fails. */
static enum gpb_place place_of(const gpb_facts *facts, enum gpb_operand x)
{
    const enum gpb_place place = facts->where[x].place;
    return gpb_place_on_host(place) ? GPB_PLACE_HOST : place;
}

/* A, B. */
static void matrices(const resident *r, const gpb_facts *facts, gpb_carry_matrix to[2])
{
    const gpb_system *s = &r->work->system;
    const gpb_factor *f = &s->a;
    to[0] = (gpb_carry_matrix){ .caller = f->a, .arena = r->a, .rows = f->m, .cols = f->n, .ld = f->lda,
                                .ld_arena = r->ld, .type = f->type, .uplo = f->uplo,
                                .unit = r->work->triangular && r->work->triangular->diag == 'U',
                                .place = place_of(facts, GPB_A) };
    to[1] = (gpb_carry_matrix){ .caller = s->b, .arena = r->b, .rows = gpb_resident_b_rows(r->work),
                                .cols = s->nrhs, .ld = s->ldb,
                                .ld_arena = r->ld, .type = f->type,
                                .uplo = r->work->inverts ? f->uplo : 'G',
                                .unit = r->work->inverts && to[0].unit,
                                .place = place_of(facts, GPB_B) };
}

/* Columns [first, last) of a matrix, as another one. */
static gpb_carry_matrix columns_of(const resident *r, const gpb_carry_matrix *x, int64_t first, int64_t last)
{
    const int64_t e = (int64_t)element(r);
    gpb_carry_matrix part = *x;
    part.caller = (char *)x->caller + first * x->ld * e;
    part.arena += (CUdeviceptr)(first * x->ld_arena * e);
    part.cols = last - first;
    part.shift = first;
    return part;
}

/* TRSM and TRMM from the left go through the triangle once for each panel of B. The first panel of B comes
   first and is computed while A comes, whose columns are needed from the first on or, block by block, from
   the last. Returns the number of pieces. */
static int by_need(const resident *r, const gpb_carry_matrix of[2], gpb_carry_matrix to[GPB_CARRY_MOST])
{
    const int64_t n = of[0].cols, cols = of[1].cols, panel = min(cols, gpb_resident_panel(r->work));
    const int64_t cuts[] = { n, 3 * n / 4, n / 2, 0 };
    const bool forwards = gpb_triangular_forwards(r->work->triangular);
    int count = 0;
    to[count++] = columns_of(r, &of[1], 0, panel);
    for (int i = 1; i < 4 && !forwards; i++) to[count++] = columns_of(r, &of[0], cuts[i], cuts[i - 1]);
    if (forwards) to[count++] = of[0];
    if (panel < cols) to[count++] = columns_of(r, &of[1], panel, cols);
    return count;
}

/* The program's work on its matrices on the device comes before their copies. */
static CUresult follow_program(const resident *r, const gpb_facts *facts)
{
    const gpb_driver *driver = gpb_driver_get();
    if (gpb_place_on_host(facts->where[GPB_A].place) && gpb_place_on_host(facts->where[GPB_B].place))
        return CUDA_SUCCESS;
    const CUresult result = gpb_driver_record(driver, r->lane->made_in, r->lane->after, CU_STREAM_LEGACY);
    return result ? result : driver->cuStreamWaitEvent(r->lane->up->stream, r->lane->after, 0);
}

/* False: kept factors are not those of the program's. */
static bool is_own(resident *r)
{
    if (!r->kept || r->result || r->why) return true;
    r->others = !gpb_kept_same(&r->check);
    if (r->others) r->why = "the factors have changed";
    return !r->others;
}

/* The first columns of B are computed, and go home if that is the host's memory. */
static void send_home(resident *r, int64_t columns)
{
    if (r->result || r->why || !r->on_host || !is_own(r)) return;
    if (gpb_resident_overwrites(r->work) && !r->down.spare) {
        if (!gpb_spare_begin(&r->spare, &r->down.matrix[0])) {
            r->why = "out of memory";
            return;
        }
        r->down.spare = &r->spare;
        gpb_spare_go_on(&r->spare);
    }
    r->result = gpb_carry_release(&r->down, columns);
}

/* TRSM, TRMM. From the left, columns of B are independent: some of them are computed and go home while others
   come. From the right, all of B goes home at the end. */
static void divide(resident *r)
{
    gpb_triangular t = *r->work->triangular;
    const int64_t cols = t.n, panel = t.side == 'L' ? gpb_resident_panel(r->work) : cols;
    t.a = pointer(r->a);
    t.lda = t.ldb = r->ld;
    for (int64_t first = 0; first < cols; first += panel) {
        t.b = pointer(r->b + (CUdeviceptr)(first * r->ld) * element(r));
        t.n = min(panel, cols - first);
        triangular(r, &t);
        send_home(r, first + t.n);
    }
}

static void *entry(const resident *r, CUdeviceptr of, int64_t row, int64_t col)
{
    return pointer(of + (CUdeviceptr)(row + col * r->ld) * element(r));
}

/* A part of the identity: element (i, j) is 1 if i = j + below. */
static void identity(resident *r, void *at, int64_t rows, int64_t cols, int64_t below)
{
    gpb_identity_args args = { .a = at, .lda = r->ld, .rows = rows, .cols = cols, .below = below };
    launch(r, GPB_PASS_identity, min(cols, 2 * r->lane->device->sms), &args, (gpb_launch){ 0 });
}

/* Columns [first, last) of a triangle's inverse, which has zeros where the triangle has. */
static void invert_triangle(resident *r, int64_t first, int64_t last)
{
    gpb_triangular t = *r->work->triangular;
    const bool lower = t.uplo == 'L';
    const int64_t row = lower ? first : 0;
    t.m = (lower ? t.n : last) - row;
    t.n = last - first;
    t.a = entry(r, r->a, row, row);
    t.b = entry(r, r->b, row, first);
    t.lda = t.ldb = r->ld;
    identity(r, t.b, t.m, t.n, first - row);
    triangular(r, &t);
}

/* Columns, or rows of the upper triangle, [first, last) of the inverse of A = L L^H or U^H U: what lies
   behind the diagonal is that of the trailing block's. */
static void invert_cholesky(resident *r, int64_t first, int64_t last, const gpb_lapack_parts *parts)
{
    gpb_system system = r->work->system;
    const int64_t behind = system.a.n - first;
    system.a.a = entry(r, r->a, first, first);
    system.a.m = system.a.n = behind;
    system.b = entry(r, r->b, first, first);
    system.nrhs = last - first;
    system.a.lda = system.ldb = r->ld;
    if (system.a.uplo == 'L') {
        identity(r, system.b, behind, system.nrhs, 0);
        gpb_lapack_solve(&system, parts);
        return;
    }
    /* X U^H U = I, from the right. */
    const gpb_system_solves from_left = gpb_system_solve(&system);
    gpb_triangular solves[] = { from_left.second, from_left.first };
    identity(r, system.b, system.nrhs, behind, 0);
    for (int i = 0; i < 2; i++) {
        solves[i].side = 'R';
        solves[i].m = system.nrhs;
        solves[i].n = behind;
        triangular(r, &solves[i]);
    }
}

/* Rows of an upper triangle go home at the end. */
static void invert(resident *r, const gpb_lapack_parts *parts)
{
    const gpb_system *s = &r->work->system;
    const int64_t n = s->a.n, panel = gpb_resident_panel(r->work);
    for (int64_t first = 0; first < n; first += panel) {
        const int64_t last = min(n, first + panel);
        if (r->work->triangular) {
            invert_triangle(r, first, last);
        } else if (gpb_factor_is_lu(&s->a)) {
            gpb_system part = *s;
            part.a.a = pointer(r->a);
            part.b = entry(r, r->b, 0, first);
            part.nrhs = last - first;
            part.a.lda = part.ldb = r->ld;
            identity(r, part.b, n, part.nrhs, first);
            gpb_lapack_solve(&part, parts);
        } else {
            invert_cholesky(r, first, last, parts);
            if (s->a.uplo == 'U' && last < n) continue;
        }
        send_home(r, last);
    }
}

/* Of LU, whose rows change places to the end, nothing goes home before all is computed. Then INFO and the
   pivots are known. */
static void fetch_results(resident *r)
{
    const gpb_factor *f = &r->work->system.a;
    if (r->fetched || r->result || r->why) return;
    r->fetched = true;
    r->result = fetch(r, r->info, &r->found, sizeof r->found);
    if (r->result || !gpb_factor_is_lu(f) || !r->work->factors) return;
    const int64_t order = gpb_factor_order(f);
    int32_t *pivots = malloc((size_t)max(1, order) * sizeof *pivots);
    if (!pivots) r->why = "out of memory";
    else r->result = fetch(r, r->ipiv, pivots, 4 * order);
    if (!r->result && !r->why) put_pivots(f, pivots);
    free(pivots);
}

/* Columns of B are independent: some of them are computed and go home while others are. LU's factors go home
   meanwhile. Cholesky's are on their way, and the verdict on them holds for B. */
static void solve(resident *r, gpb_system *system, const gpb_lapack_parts *parts)
{
    const gpb_resident *w = r->work;
    const int64_t of_a = w->factors ? w->system.a.n : 0, panel = gpb_resident_panel(w);
    const bool lu_home = w->factors && gpb_factor_is_lu(&w->system.a)
                         && r->up.matrix[0].place == GPB_PLACE_HOST;
    if (lu_home) fetch_results(r);
    if (lu_home && r->found != NO_INFO) return;
    if (lu_home && !r->result && !r->why) r->result = gpb_carry_release(&r->down, of_a);
    char *b = system->b;
    for (int64_t first = 0; first < w->system.nrhs; first += panel) {
        system->b = b + (size_t)(first * r->ld) * element(r);
        system->nrhs = min(panel, w->system.nrhs - first);
        gpb_lapack_solve(system, parts);
        const int64_t last = first + system->nrhs;
        if (r->releases) release(r, of_a + last);
        else if (lu_home || !w->factors) send_home(r, of_a + last);
    }
}

/* Queues all of the computation. A panel of U needs all columns, so large ones would wait for the whole
   matrix to come. */
static void compute(resident *r)
{
    enum { WIDE_PANELS = 1024 };
    gpb_system system = r->work->system;
    const size_t e = element(r);
    const bool lu = gpb_factor_is_lu(&system.a);
    const gpb_lapack_parts parts = { .leaf = lu ? GPB_PANEL_COLUMNS(e) : GPB_BLOCK_ORDER(e), .factor = factor,
                                     .triangular = triangular, .multiply = multiply, .swap = swap,
                                     .panels = system.a.uplo == 'L' ? INT64_MAX : WIDE_PANELS,
                                     .counts_from_top = true, .where = r };
    system.a.a = pointer(r->a);
    system.a.lda = system.ldb = r->ld;
    system.b = pointer(r->b);
    if (r->work->inverts) {
        invert(r, &parts);
        return;
    }
    if (r->work->triangular) {
        divide(r);
        return;
    }
    if (r->work->factors) gpb_lapack_factor(&system.a, &parts);
    if (r->work->solves) solve(r, &system, &parts);
}

/* All of it on the host. work: as many elements as A. */
static void host_alone(const gpb_resident *w, void *work)
{
    const gpb_factor *f = &w->system.a;
    if (!w->inverts) gpb_host_triangular(w->triangular);
    else if (w->triangular)
        gpb_lapack_host.invert(NULL, &(gpb_inverse){ .type = f->type, .width = f->width, .uplo = f->uplo,
                                                     .diag = w->triangular->diag, .n = f->n, .a = f->a,
                                                     .lda = f->lda });
    else if (gpb_factor_is_lu(f)) gpb_lapack_host_invert_lu(f, work, f->n * min(f->n, 64));
    else gpb_lapack_host_invert_cholesky(f);
}

/* The host computes what is not home: A is there up to some column, or all of it and B up to some. */
static void finish(resident *r, gpb_resident_outcome *out)
{
    const gpb_system *s = &r->work->system;
    const int64_t of_a = r->work->factors ? s->a.n : 0, done = r->down.done;
    if (gpb_resident_overwrites(r->work)) {
        gpb_spare_restore(&r->spare);
        host_alone(r->work, r->spare.copy);
        return;
    }
    if (r->work->triangular) {
        gpb_host_triangular_rest(r->work->triangular, done);
        return;
    }
    if (done < of_a) out->info = gpb_lapack_go_on(&s->a, done);
    if (!r->work->solves || out->info) return;
    gpb_system rest = *s;
    const int64_t there = done > of_a ? done - of_a : 0;
    rest.b = (char *)s->b + (size_t)(there * s->ldb) * element(r);
    rest.nrhs = s->nrhs - there;
    if (rest.nrhs) gpb_lapack_host_solve(&rest);
}

/* From the first column up to the last one home. */
static void run(resident *r, const gpb_facts *facts, gpb_resident_outcome *out)
{
    const bool lu = gpb_factor_is_lu(&r->work->system.a), factors = r->work->factors;
    const bool solves = r->work->solves, inverts = r->work->inverts;
    const int32_t start[2] = { NO_INFO, 0 };
    gpb_carry_matrix of[2];
    matrices(r, facts, of);
    r->found = NO_INFO;
    for (int x = 0; x < GPB_OPERANDS; x++)
        r->facts.where[x] = (gpb_where){ .place = GPB_PLACE_DEVICE };
    r->releases = factors && !lu && of[0].place == GPB_PLACE_HOST;
    r->on_host = of[1].place == GPB_PLACE_HOST;
    gpb_carry_matrix pieces[GPB_CARRY_MOST];
    const bool pieced = r->work->triangular && !inverts && r->work->triangular->side == 'L';
    r->by_need = pieced || r->kept;
    r->up = pieced    ? gpb_carry_begin(r->lane, true, pieces, by_need(r, of, pieces))
            : r->kept ? gpb_carry_begin(r->lane, true, of + 1, inverts ? 0 : solves)
                      : gpb_carry_begin(r->lane, true, of, inverts ? 1 : 1 + solves);
    r->down = gpb_carry_begin(r->lane, false, factors ? of : of + 1, factors + solves);
    if (!r->result) r->result = follow_program(r, facts);
    if (!r->result) r->result = send(r, start, r->info, sizeof start);
    if (!r->result && !factors && lu) send_pivots(r);
    *(int32_t *)(void *)r->lane->table = NO_INFO;
    if (r->releases) {
        r->down.verdict = (const int32_t *)(const void *)r->lane->table;
        r->down.fine = NO_INFO;
        compute(r);
        release(r, gpb_carry_columns(&r->down));
    } else {
        compute(r);
        if (!r->work->triangular && !inverts) fetch_results(r);
        if (r->found != NO_INFO) out->info = r->found;
        const bool a_here = gpb_place_on_host(facts->where[GPB_A].place);
        if (!lu && r->found != NO_INFO && a_here) r->why = "not definite";
        const int64_t all = r->found == NO_INFO ? gpb_carry_columns(&r->down) : of[0].cols;
        if (is_own(r) && !r->result && !r->why) r->result = gpb_carry_release(&r->down, all);
    }
    if (!r->result && !r->why) r->result = gpb_carry_finish(&r->down);
    const CUresult failed = r->result ? r->result : r->why ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
    gpb_carry_end(&r->up, failed);
    gpb_carry_end(&r->down, failed || gpb_carry_halted(&r->down) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS);
    if (failed) gpb_driver_get()->cuStreamSynchronize(r->lane->stream);
    const bool square = r->work->system.a.m == r->work->system.a.n;
    if (factors && square && of[0].place == GPB_PLACE_HOST && !failed && r->found == NO_INFO
        && !gpb_carry_halted(&r->down))
        gpb_kept_keep(r->lane, &r->work->system.a, r->a, r->ld);
    if (inverts) gpb_kept_drop(r->lane);             /* the inverse has taken the factors' place */
    out->bytes_up += r->up.bytes;
    out->bytes_down += r->down.bytes;
}

/* x = A^-1 x, or A^-H x, on the device. */
static bool solve_vector(void *where, void *x, bool adjoint)
{
    resident *r = where;
    gpb_system system = r->work->system;
    const int64_t bytes = system.a.n * (int64_t)element(r);
    system.a.a = pointer(r->a);
    system.a.lda = system.ldb = r->ld;
    system.b = pointer(r->b);
    system.nrhs = 1;
    system.trans = gpb_factor_is_lu(&system.a) && adjoint ? 'C' : 'N';
    if (!r->result && !r->why) r->result = send(r, x, r->b, bytes);
    const gpb_system_solves to = gpb_system_solve(&system);
    triangular(r, &to.first);
    triangular(r, &to.second);
    if (!r->result && !r->why) r->result = fetch(r, r->b, x, bytes);
    return !r->result && !r->why;
}

/* The factors go up, and vectors to and fro. If the inverse is too large, the host's routine knows how to go
   on with smaller vectors; where it cannot reach the factors, the norm is infinite. */
static void estimate(resident *r, const gpb_facts *facts, gpb_resident_outcome *out)
{
    const gpb_factor *f = &r->work->system.a;
    const uint32_t start = 0;
    gpb_carry_matrix of[2];
    matrices(r, facts, of);
    r->by_need = r->kept;
    r->up = gpb_carry_begin(r->lane, true, of, r->kept ? 0 : 1);
    if (!r->result) r->result = follow_program(r, facts);
    if (!r->result) r->result = send(r, &start, r->arrivals, sizeof start);
    char *x = malloc((size_t)f->n * (element(r) + 1));
    if (!x) r->why = "out of memory";
    const bool found = x && gpb_condition_inverse_norm(f->type, f->n, r->work->of_rows, x,
                                                       (signed char *)x + (size_t)f->n * element(r),
                                                       solve_vector, r, r->work->inverse_norm);
    free(x);
    is_own(r);
    if (!found && !r->result && !r->why) {
        *r->work->inverse_norm = HUGE_VAL;
        r->why = of[0].place == GPB_PLACE_HOST ? "nearly singular" : NULL;
    }
    gpb_carry_end(&r->up, r->why ? CUDA_ERROR_UNKNOWN : r->result);
    if (r->result) gpb_driver_get()->cuStreamSynchronize(r->lane->stream);
    out->bytes_up += r->up.bytes;
}

/* INFO of a zero on A's diagonal. NULL, or why it is not known. */
static const char *look_for_zero(const resident *r, const gpb_facts *facts, int64_t *info)
{
    const gpb_factor *f = &r->work->system.a;
    const size_t bytes = gpb_type_bytes(f->type);
    if (place_of(facts, GPB_A) == GPB_PLACE_HOST) {
        *info = gpb_lapack_singular(f->type, f->a, f->n, f->lda);
        return NULL;
    }
    const gpb_dma_shape diagonal = { .rows = 1, .cols = f->n, .ld = f->lda + 1, .element = bytes,
                                     .uplo = 'G' };
    void *home = malloc((size_t)f->n * bytes);
    if (!home) return "out of memory";
    const CUresult result = gpb_dma_copy_and_wait(&diagonal, f->a, home, true);
    if (!result) *info = gpb_lapack_singular(f->type, home, f->n, 0);
    free(home);
    return result ? gpb_driver_error(result) : NULL;
}

/* *rest: the host is to compute what is not home. */
static const char *run_on_lane(resident *r, const gpb_facts *facts, bool kept, gpb_resident_outcome *out,
                               bool *rest)
{
    const char *why = r->work->divides ? look_for_zero(r, facts, &out->info) : NULL;
    out->done = out->info != 0;
    if (why || out->done) return why;
    r->kept = kept && gpb_kept_begin(&r->check, &r->work->system.a) && provide_before_kept(r);
    if (!r->kept) {
        gpb_kept_end(&r->check);
        why = provide(r);
    }
    if (why) return why;
    if (r->kept) r->result = gpb_kept_look(&r->check, r->lane, r->lane->arena.at);
    if (r->work->inverse_norm) estimate(r, facts, out);
    else run(r, facts, out);
    const bool on_host = gpb_place_on_host(facts->where[GPB_A].place)
                         && gpb_place_on_host(facts->where[GPB_B].place);
    const bool failed = r->result || r->why;
    out->done = !failed || r->down.done > 0;
    *rest = out->done && on_host && (failed || gpb_carry_halted(&r->down));
    out->warn = r->result != CUDA_SUCCESS;
    if (out->warn) gpb_lanes_failed(r->lane, r->result);
    return out->warn ? gpb_driver_error(r->result) : r->why;
}

/* kept: on the lane that has kept the factors. False: there is none, or its factors are others, and nothing
   of the program's has changed. */
static bool attempt(const gpb_resident *work, const gpb_facts *facts, const gpb_policy *policy, bool kept,
                    gpb_resident_outcome *out)
{
    const gpb_kept wanted = gpb_kept_of(&work->system.a);
    resident r = { .work = work, .facts = *facts, .policy = *policy };
    r.lane = kept ? gpb_lanes_take_kept(facts, &wanted) : gpb_lanes_take(facts, true);
    if (kept && !r.lane) return false;
    out->failure = r.lane ? NULL : gpb_gpu_started() ? "no stream or pinned memory could be created"
                                                     : gpb_gpu_why();
    bool rest = false;
    if (r.lane) {
        r.facts.gpu.arch = r.lane->device->arch;
        r.facts.gpu.sms = r.lane->device->sms;
        out->failure = run_on_lane(&r, facts, kept, out, &rest);
        out->kept = r.kept;
        free(r.panel_width);
        gpb_kept_end(&r.check);
        if (r.others) gpb_kept_drop(r.lane);
        gpb_lanes_give(r.lane);
    }
    /* Without the lane, because the host's routines may call others of theirs through our doors. */
    if (rest) finish(&r, out);
    gpb_spare_end(&r.spare);
    return !r.others;
}

gpb_resident_outcome gpb_resident_run(const gpb_resident *work, const gpb_facts *facts,
                                      const gpb_policy *policy)
{
    gpb_resident_outcome out = { 0 };
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    gpb_driver_capture_mode(&mode);
    if (!begins_with_factors(work, facts) || !attempt(work, facts, policy, true, &out))
        attempt(work, facts, policy, false, &out);
    /* No warning, because the driver ends before the program does. */
    if (out.failure && gpb_gpu_leaving()) {
        out.warn = false;
        gpb_gpu_await_end();
    }
    gpb_driver_capture_mode(&mode);
    pthread_setcancelstate(cancel, NULL);
    return out;
}
