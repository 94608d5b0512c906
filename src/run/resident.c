/* SPDX-License-Identifier: MIT */
#include "src/run/resident.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/numbers.h"
#include "src/gpu/dma.h"
#include "src/gpu/gpu.h"
#include "src/gpu/kernels.h"
#include "src/host/condition.h"
#include "src/host/lapack.h"
#include "src/gpu/context.h"
#include "src/gpu/place.h"
#include "src/host/level3.h"
#include "src/run/inverse.h"
#include "src/run/refined.h"
#include "src/run/run.h"

static const char *const indefinite = "not definite";

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
static void matrices(const gpb_residence *r, const gpb_facts *facts, gpb_carry_matrix to[2])
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
                                .place = place_of(facts, r->work->given ? GPB_C : GPB_B) };
}

/* Columns [first, last) of a matrix, as another one. */
static gpb_carry_matrix columns_of(const gpb_residence *r, const gpb_carry_matrix *x, int64_t first,
                                   int64_t last)
{
    const int64_t e = (int64_t)r->element;
    gpb_carry_matrix part = *x;
    part.caller = (char *)x->caller + first * x->ld * e;
    part.arena += (CUdeviceptr)(first * x->ld_arena * e);
    part.cols = last - first;
    part.shift = first;
    return part;
}

/* The same of rows. */
static gpb_carry_matrix rows_of(const gpb_residence *r, const gpb_carry_matrix *x, int64_t first,
                                int64_t last)
{
    const int64_t e = (int64_t)r->element;
    gpb_carry_matrix part = *x;
    part.caller = (char *)x->caller + first * e;
    part.arena += (CUdeviceptr)(first * e);
    part.rows = last - first;
    return part;
}

/* Columns or rows of B that are computed together: all, unless they come and go meanwhile. */
static gpb_resident_panels panels_of(const gpb_residence *r)
{
    const int64_t all = gpb_resident_by_rows(r->work) ? gpb_resident_b_rows(r->work)
                                                      : gpb_resident_b_cols(r->work);
    return r->on_host ? gpb_resident_cut(r->work) : (gpb_resident_panels){ all > 0, { 0, all } };
}

/* TRSM and TRMM from the right go through the triangle once for each panel of B's rows. Returns the number of
   panels. */
static int panels_of_rows(const gpb_residence *r, const gpb_carry_matrix *b, gpb_carry_matrix *to)
{
    const gpb_resident_panels panels = panels_of(r);
    for (int x = 0; x < panels.count; x++) to[x] = rows_of(r, b, panels.first[x], panels.first[x + 1]);
    return panels.count;
}

/* The first of them comes first, and the triangle behind it. */
static int rows_by_need(const gpb_residence *r, const gpb_carry_matrix of[2],
                        gpb_carry_matrix to[GPB_CARRY_MOST])
{
    const int count = panels_of_rows(r, &of[1], to);
    if (r->a_stays) return count;
    memmove(to + 2, to + 1, (size_t)(count - 1) * sizeof *to);
    to[1] = of[0];
    return count + 1;
}

/* TRSM and TRMM from the left go through the triangle once for each panel of B. The first panel of B comes
   first and is computed while A comes, if it does, whose columns are needed from the first on or, block by
   block, from the last. Returns the number of pieces. */
static int by_need(const gpb_residence *r, const gpb_carry_matrix of[2], gpb_carry_matrix to[GPB_CARRY_MOST])
{
    if (gpb_resident_by_rows(r->work)) return rows_by_need(r, of, to);
    const int64_t n = of[0].cols, cols = of[1].cols, panel = panels_of(r).first[1];
    const int64_t cuts[] = { n, 3 * n / 4, n / 2, 0 };
    const bool forwards = gpb_triangular_forwards(r->work->triangular);
    int count = 0;
    to[count++] = columns_of(r, &of[1], 0, panel);
    for (int i = 1; i < 4 && !forwards && !r->a_stays; i++)
        to[count++] = columns_of(r, &of[0], cuts[i], cuts[i - 1]);
    if (forwards && !r->a_stays) to[count++] = of[0];
    if (panel < cols) to[count++] = columns_of(r, &of[1], panel, cols);
    return count;
}

/* All of the program's matrices are in the host's memory. */
static bool all_on_host(const gpb_facts *facts)
{
    bool all = true;
    for (int x = 0; x < GPB_OPERANDS; x++) all &= gpb_place_on_host(facts->where[x].place);
    return all;
}

static bool can_stay(const gpb_carry_matrix *x)
{
    return gpb_residence_can_stay(x->place, x->caller, x->ld * (int64_t)gpb_type_bytes(x->type));
}

/* Matrices on the device are used where they are, if nobody could tell: a triangle or factors, because they
   are only read, and B, because the arena has it as it was. (Cholesky writes to the other triangle of the
   arena's matrix.) An H100 took 0.31 of 2.37 ms to copy A to the arena and B home (dtrsm of order 4096). */
static void decide_who_stays(gpb_residence *r, const gpb_carry_matrix of[2])
{
    const gpb_resident *w = r->work;
    if (w->factors || w->inverts || r->kept) return;
    r->a_stays = can_stay(&of[0]);
    r->b_stays = w->solves && !w->inverse_norm && can_stay(&of[1]);
    if (r->a_stays) {
        r->of_a = (CUdeviceptr)(uintptr_t)of[0].caller;
        r->lda = of[0].ld;
    }
    if (r->b_stays) {
        r->of_b = (CUdeviceptr)(uintptr_t)of[1].caller;
        r->ldb = of[1].ld;
    }
}

/* Copies home what has come of a B that stays. Nothing else of it has been written. */
static CUresult put_back(const gpb_residence *r)
{
    CUresult result = CUDA_SUCCESS;
    int64_t before = 0;
    for (int i = 0; i < r->up.count; before += r->up.matrix[i++].cols) {
        const gpb_carry_matrix *x = &r->up.matrix[i];
        const gpb_dma_shape shape = { .rows = x->rows, .cols = clamp(r->up.moved - before, 0, x->cols),
                                      .ld = x->ld, .ld_arena = x->ld_arena, .element = r->element,
                                      .uplo = 'G' };
        if (x->arena >= r->b && shape.cols && !result)
            result = gpb_dma_copy(&shape, x->caller, x->arena, false, r->lane->stream);
    }
    const CUresult waited = gpb_driver_get()->cuStreamSynchronize(r->lane->stream);
    return result ? result : waited;
}

/* Something is home, or was about to be copied home by the driver. */
static bool has_written(const gpb_carry *down)
{
    int64_t before = 0;
    bool written = down->done > 0;
    for (int i = 0; i < down->count; before += down->matrix[i++].cols)
        written |= down->matrix[i].place != GPB_PLACE_HOST && down->queued > before;
    return written;
}

/* The program's work on its matrices on the device comes before their copies, and before the launches; on
   another GPU, too. Nothing of it can be waited for while a graph is recorded. */
static CUresult follow_program(const gpb_residence *r, const gpb_facts *facts)
{
    const gpb_driver *driver = gpb_driver_get();
    const gpb_system *s = &r->work->system;
    const void *const at[GPB_OPERANDS] = { s->a.a, r->work->given ? r->work->given : s->b, s->b };
    CUresult result = CUDA_SUCCESS;
    if (all_on_host(facts) || gpb_context_records_graph()) return result;
    for (int x = 0; x < GPB_OPERANDS && !result; x++)
        if (gpb_where_is(facts, x, GPB_PLACE_ELSEWHERE) && at[x])
            result = gpb_run_follow(r->lane, r->lane->stream, gpb_place_context(at[x]));
    if (!result) result = gpb_driver_record(driver, r->lane->made_in, r->lane->after, CU_STREAM_LEGACY);
    if (!result && r->a_stays) result = driver->cuStreamWaitEvent(r->lane->stream, r->lane->after, 0);
    return result ? result : driver->cuStreamWaitEvent(r->lane->up->stream, r->lane->after, 0);
}

/* False: kept factors are not those of the program's. Waits for the crew. */
static bool is_own(gpb_residence *r)
{
    if (!r->kept || r->result || r->why) return !r->others;
    r->others = !gpb_kept_same(&r->check);
    if (r->others) r->why = "the factors have changed";
    return !r->others;
}

/* Kept factors have proved to be the program's. */
static bool may_write(void *residence)
{
    gpb_residence *r = residence;
    return !r->kept || (gpb_kept_is_read(&r->check) && is_own(r));
}

/* The first columns of B are computed, and go home if that is the host's memory. */
static void send_home(gpb_residence *r, int64_t columns)
{
    if (r->result || r->why || !r->on_host) return;
    r->result = gpb_carry_release(&r->down, columns);
}

static void *entry(const gpb_residence *r, CUdeviceptr of, int64_t row, int64_t col)
{
    return gpb_pointer(of + (CUdeviceptr)(row + col * r->ld) * r->element);
}

/* TRSM, TRMM. Columns of B are independent, from the right its rows: some of them are computed and go home
   while others come. TRMM goes by levels where B is elsewhere than its result. */
static void divide(gpb_residence *r)
{
    const bool by_rows = gpb_resident_by_rows(r->work);
    gpb_triangular t = *r->work->triangular;
    const gpb_resident_panels panels = panels_of(r);
    const int64_t cols = t.n;
    t.a = gpb_pointer(r->of_a);
    t.lda = r->lda;
    t.ldb = r->ldb;
    for (int x = 0; x < panels.count; x++) {
        const int64_t first = panels.first[x], last = panels.first[x + 1];
        const int64_t i = by_rows ? first : 0, j = by_rows ? 0 : first;
        t.b = gpb_pointer(r->of_b + (CUdeviceptr)(i + j * r->ldb) * r->element);
        *(by_rows ? &t.m : &t.n) = last - first;
        if (by_rows && r->on_host) r->wanted = min(x + 1 + !r->a_stays, r->up.count);
        if (t.solves || r->of_b == r->b) {
            gpb_resident_triangular(r, &t);
        } else {
            gpb_triangular was = t;
            was.b = entry(r, r->b, i, j);
            was.ldb = r->ld;
            gpb_resident_multiply_levels(r, &t, &was);
        }
        send_home(r, by_rows ? (x + 1) * cols : last);
    }
}

/* Of LU, whose rows change places to the end, nothing goes home before all is computed. Then INFO and the
   pivots are known. */
static void fetch_results(gpb_residence *r)
{
    const gpb_factor *f = &r->work->system.a;
    if (r->fetched || r->result || r->why) return;
    r->fetched = true;
    r->result = gpb_residence_fetch(r, r->info, &r->found, sizeof r->found);
    if (r->result || !gpb_factor_is_lu(f) || !r->work->factors) return;
    const int64_t order = gpb_factor_order(f);
    int32_t *pivots = malloc((size_t)max(1, order) * sizeof *pivots);
    if (!pivots) r->why = "out of memory";
    else r->result = gpb_residence_fetch(r, r->ipiv, pivots, 4 * order);
    if (!r->result && !r->why) gpb_residence_put_pivots(f, pivots);
    free(pivots);
}

/* Columns of B are independent: some of them are computed and go home while others are. LU's factors go home
   meanwhile. Cholesky's are on their way, and the verdict on them holds for B. */
static void solve(gpb_residence *r, gpb_system *system, const gpb_lapack_parts *parts)
{
    const gpb_resident *w = r->work;
    const int64_t of_a = w->factors ? w->system.a.n : 0;
    const gpb_resident_panels panels = panels_of(r);
    const bool lu_home = w->factors && gpb_factor_is_lu(&w->system.a)
                         && r->up.matrix[0].place == GPB_PLACE_HOST;
    if (lu_home) fetch_results(r);
    if (lu_home && r->found != GPB_NO_INFO) return;
    if (lu_home && !r->result && !r->why) r->result = gpb_carry_release(&r->down, of_a);
    char *b = system->b;
    for (int x = 0; x < panels.count; x++) {
        const int64_t first = panels.first[x], last = panels.first[x + 1];
        system->b = b + (size_t)(first * r->ldb) * r->element;
        system->nrhs = last - first;
        gpb_lapack_solve(system, parts);
        if (r->releases) gpb_resident_release(r, of_a + last);
        else if (lu_home || !w->factors) send_home(r, of_a + last);
    }
}

/* Queues all of the computation. */
static void compute(gpb_residence *r)
{
    gpb_system system = r->work->system;
    const gpb_lapack_parts parts = gpb_resident_parts(r);
    system.a.a = gpb_pointer(r->of_a);
    system.a.lda = r->lda;
    system.b = gpb_pointer(r->of_b);
    system.ldb = r->ldb;
    if (r->work->inverts) {
        gpb_inverse_compute(r);
        return;
    }
    if (r->work->triangular) {
        divide(r);
        return;
    }
    if (r->work->factors) gpb_lapack_factor(&system.a, &parts);
    if (r->work->solves) solve(r, &system, &parts);
}

/* TRSM, TRMM: the columns but the first `done` that are home. */
static void finish_columns(const gpb_residence *r, const gpb_triangular *t, int64_t done)
{
    gpb_triangular others = *t;
    others.n -= done;
    if (!gpb_resident_backwards(r->work)) gpb_host_triangular_rest(t, done);
    else if (others.n) gpb_host_triangular(&others);
}

/* The same from the right: whole panels of rows are home, and some columns of the next one. */
static void finish_rows(const gpb_residence *r, const gpb_triangular *t, int64_t done)
{
    const gpb_resident_panels panels = panels_of(r);
    const int home = t->n ? (int)(done / t->n) : 0;
    int64_t first = panels.first[home];
    if (t->n && done % t->n) {
        const int64_t rows = panels.first[home + 1] - first;
        const gpb_triangular begun = gpb_triangular_rows(t, first, rows);
        finish_columns(r, &begun, done % t->n);
        first += rows;
    }
    if (first >= t->m) return;
    const gpb_triangular others = gpb_triangular_rows(t, first, t->m - first);
    gpb_host_triangular(&others);
}

/* The host computes what is not home: A is there up to some column, or all of it and B up to some. If the
   device has said that A is not positive definite, and B is in its memory, the host leaves A as its own
   LAPACK does; should it find A definite by a hair, the device's INFO stays. */
static void finish(gpb_residence *r, gpb_resident_outcome *out)
{
    const gpb_system *s = &r->work->system;
    const int64_t of_a = r->work->factors ? s->a.n : 0, done = r->down.done;
    if (r->work->inverts) {
        gpb_inverse_go_on(r, done);
        return;
    }
    if (r->work->triangular) {
        if (gpb_resident_by_rows(r->work)) finish_rows(r, r->work->triangular, done);
        else finish_columns(r, r->work->triangular, done);
        return;
    }
    if (done < of_a) {
        const int64_t info = gpb_lapack_go_on(&s->a, done);
        const bool first = out->info && out->info <= done;          /* of a column that is home */
        if (!first && (info || r->why != indefinite)) out->info = info;
    }
    if (!r->work->solves || out->info) return;
    gpb_system rest = *s;
    const int64_t there = done > of_a ? done - of_a : 0;
    rest.b = (char *)s->b + (size_t)(there * s->ldb) * r->element;
    rest.nrhs = s->nrhs - there;
    for (int64_t j = there; r->work->given && j < s->nrhs; j++)
        memcpy((char *)s->b + (size_t)(j * s->ldb) * r->element,
               (const char *)r->work->given + (size_t)(j * r->work->ldgiven) * r->element,
               (size_t)s->a.n * r->element);
    if (rest.nrhs) gpb_lapack_host_solve(&rest);
}

/* After a refinement that did not suffice: X is B, and there are no panels yet. */
static void begin_anew(gpb_residence *r)
{
    const gpb_system *s = &r->work->system;
    gpb_resident_copy(r, r->given, r->b, s->a.n, s->nrhs, 0);
    memset(r->panel_width, 0, (size_t)s->a.n * sizeof *r->panel_width);
}

/* A chunk of a ring has one column at least, and half of the ring always has room for it. */
static bool fits_into_rings(const gpb_residence *r, const gpb_carry_matrix of[2])
{
    const size_t most = min(r->lane->up->size, r->lane->down->size) / 2;
    bool fits = true;
    for (int i = 0; i < 2; i++)
        fits &= of[i].place != GPB_PLACE_HOST || (size_t)of[i].rows * r->element <= most;
    return fits;
}

/* From the first column up to the last one home. */
static void run(gpb_residence *r, const gpb_facts *facts, gpb_resident_outcome *out)
{
    const bool lu = gpb_factor_is_lu(&r->work->system.a), factors = r->work->factors;
    const bool solves = r->work->solves, inverts = r->work->inverts;
    gpb_carry_matrix of[2];
    matrices(r, facts, of);
    if (!fits_into_rings(r, of)) {
        r->why = "columns too long";
        return;
    }
    r->found = GPB_NO_INFO;
    for (int x = 0; x < GPB_OPERANDS; x++)
        r->facts.where[x] = (gpb_where){ .place = GPB_PLACE_DEVICE };
    r->releases = factors && !lu && all_on_host(facts);
    r->on_host = of[1].place == GPB_PLACE_HOST;
    decide_who_stays(r, of);
    /* All of B is copied before anything is computed, because beside launches the copy takes as long as it
       saves. In pieces of 2, 2, 4, 8, ... MB it took 45 of 436 us of TRSM of order 2048, and 111 of 1770 of
       4096 (d, H200). */
    of[1].at_once = r->a_stays;
    gpb_carry_matrix pieces[GPB_CARRY_MOST];
    const bool by_rows = r->on_host && gpb_resident_by_rows(r->work);
    const bool pieced = by_rows || (r->work->triangular && !inverts && r->work->triangular->side == 'L');
    r->by_need = pieced || r->kept || r->there || r->a_stays || inverts;
    r->up = pieced                  ? gpb_carry_begin(r->lane, true, pieces, by_need(r, of, pieces))
            : r->there              ? gpb_carry_begin(r->lane, true, of, 0)
            : r->kept || r->a_stays ? gpb_carry_begin(r->lane, true, of + 1, inverts ? 0 : solves)
                                    : gpb_carry_begin(r->lane, true, of, inverts ? 1 : 1 + solves);
    gpb_carry_matrix home[2] = { of[0], of[1] };
    home[1].arena = r->of_b;
    home[1].backwards = gpb_resident_backwards(r->work);
    r->down = by_rows ? gpb_carry_begin(r->lane, false, pieces, panels_of_rows(r, &home[1], pieces))
              : inverts
              ? gpb_carry_begin(r->lane, false, pieces, gpb_inverse_home(r, &of[1], pieces))
              : gpb_carry_begin(r->lane, false, factors ? home : home + 1, r->b_stays ? 0 : factors + solves);
    r->down.may_write = may_write;
    r->down.of = r;
    if (!r->result) r->result = follow_program(r, facts);
    if (!r->result) r->result = gpb_residence_begin(r);
    if (inverts) r->why = gpb_inverse_begin(r);
    else if (!r->result && !factors && lu) gpb_residence_send_pivots(r);
    if (r->there) begin_anew(r);
    *(int32_t *)(void *)r->lane->table = GPB_NO_INFO;
    if (r->releases) {
        r->down.verdict = (const int32_t *)(const void *)r->lane->table;
        r->down.fine = GPB_NO_INFO;
        compute(r);
        gpb_resident_release(r, gpb_carry_columns(&r->down));
    } else {
        compute(r);
        if (!r->work->triangular && !inverts) fetch_results(r);
        if (r->found != GPB_NO_INFO) out->info = r->found;
        const bool a_here = gpb_place_on_host(facts->where[GPB_A].place);
        if (!lu && r->found != GPB_NO_INFO && a_here) r->why = indefinite;
        const int64_t all = r->found == GPB_NO_INFO ? gpb_carry_columns(&r->down) : of[0].cols;
        if (is_own(r) && !r->result && !r->why) r->result = gpb_carry_release(&r->down, all);
    }
    if (!r->result && !r->why) r->result = gpb_carry_finish(&r->down);
    if (!r->result && r->b_stays) r->result = gpb_driver_get()->cuStreamSynchronize(r->lane->stream);
    const CUresult failed = r->result ? r->result : r->why ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
    gpb_carry_end(&r->up, failed);
    gpb_carry_end(&r->down, failed || gpb_carry_halted(&r->down) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS);
    /* What is still queued behind a verdict writes to the arena, and INFO to the table, which the lane's next
       call fills at once. */
    if (failed || gpb_carry_halted(&r->down)) gpb_driver_get()->cuStreamSynchronize(r->lane->stream);
    const bool put = failed && r->b_stays && !put_back(r);
    out->overwritten = failed && !put && (r->b_stays || has_written(&r->down));
    const bool square = r->work->system.a.m == r->work->system.a.n;
    if (factors && square && !r->work->given && of[0].place == GPB_PLACE_HOST && !failed
        && r->found == GPB_NO_INFO && !gpb_carry_halted(&r->down))
        gpb_kept_keep(r->lane, &r->work->system.a, r->a, r->ld);
    if (inverts) gpb_kept_drop(r->lane);             /* the inverse has taken the factors' place */
    out->bytes_up += r->up.bytes;
    out->bytes_down += r->down.bytes;
}

/* X by factors of single precision. False: they do not suffice, and A and B are on the device. If the GPU
   fails, the host begins anew, because A and B are as they were. */
static bool refine(gpb_residence *r, const gpb_facts *facts, gpb_resident_outcome *out)
{
    const gpb_resident *w = r->work;
    gpb_refined refined;
    gpb_carry_matrix of[2];
    matrices(r, facts, of);
    gpb_carry_matrix from[2] = { of[0], of[1] };
    from[1].caller = (void *)(uintptr_t)w->given;
    from[1].arena = r->given;
    from[1].ld = w->ldgiven;
    from[1].place = place_of(facts, GPB_B);
    for (int x = 0; x < GPB_OPERANDS; x++)
        r->facts.where[x] = (gpb_where){ .place = GPB_PLACE_DEVICE };
    gpb_refined_begin(&refined, r, from);
    refined.narrow.result = follow_program(r, facts);
    const int64_t iter = gpb_refined_run(&refined);
    gpb_refined_end(&refined);
    r->result = refined.narrow.result;
    r->why = refined.narrow.why;
    out->bytes_up += refined.narrow.up.bytes;
    *w->iter = r->result || r->why ? 0 : iter;
    r->there = *w->iter < 0;
    if (r->there) return false;
    r->down = gpb_carry_begin(r->lane, false, of + 1, 1);
    fetch_results(r);
    if (!r->result && !r->why) r->result = gpb_carry_release(&r->down, w->system.nrhs);
    if (!r->result && !r->why) r->result = gpb_carry_finish(&r->down);
    gpb_carry_end(&r->down, r->why ? CUDA_ERROR_UNKNOWN : r->result);
    out->overwritten = (r->result || r->why) && of[1].place != GPB_PLACE_HOST && has_written(&r->down);
    out->bytes_down += r->down.bytes;
    return true;
}

/* x = A^-1 x, or A^-H x, on the device. */
static bool solve_vector(void *where, void *x, bool adjoint)
{
    gpb_residence *r = where;
    gpb_system system = r->work->system;
    const int64_t bytes = system.a.n * (int64_t)r->element;
    system.a.a = gpb_pointer(r->of_a);
    system.a.lda = r->lda;
    system.b = gpb_pointer(r->b);
    system.ldb = r->ld;
    system.nrhs = 1;
    system.trans = gpb_factor_is_lu(&system.a) && adjoint ? 'C' : 'N';
    if (!r->result && !r->why) r->result = gpb_residence_send(r, x, r->b, bytes);
    const gpb_system_solves to = gpb_system_solve(&system);
    gpb_resident_triangular(r, &to.first);
    gpb_resident_triangular(r, &to.second);
    if (!r->result && !r->why) r->result = gpb_residence_fetch(r, r->b, x, bytes);
    return !r->result && !r->why;
}

/* The factors go up, and vectors to and fro. If the inverse is too large, the host's routine knows how to go
   on with smaller vectors; where it cannot reach the factors, the norm is infinite. */
static void estimate(gpb_residence *r, const gpb_facts *facts, gpb_resident_outcome *out)
{
    const gpb_factor *f = &r->work->system.a;
    const uint32_t start = 0;
    gpb_carry_matrix of[2];
    matrices(r, facts, of);
    decide_who_stays(r, of);
    r->by_need = r->kept || r->a_stays;
    r->up = gpb_carry_begin(r->lane, true, of, r->kept || r->a_stays ? 0 : 1);
    if (!r->result) r->result = follow_program(r, facts);
    if (!r->result) r->result = gpb_residence_send(r, &start, r->arrivals, sizeof start);
    char *x = malloc((size_t)f->n * (r->element + 1));
    if (!x) r->why = "out of memory";
    const bool found = x && gpb_condition_inverse_norm(f->type, f->n, r->work->of_rows, x,
                                                       (signed char *)x + (size_t)f->n * r->element,
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

/* A's diagonal, where the host reads it. */
typedef struct diagonal {
    const void *at;
    int64_t ld;
    void *home;                  /* to be freed */
} diagonal;

/* NULL, or why it cannot be read. */
static const char *find_diagonal(const gpb_residence *r, const gpb_facts *facts, diagonal *d)
{
    const gpb_factor *f = &r->work->system.a;
    const size_t bytes = gpb_type_bytes(f->type);
    *d = (diagonal){ .at = f->a, .ld = f->lda };
    if (place_of(facts, GPB_A) == GPB_PLACE_HOST) return NULL;
    const gpb_dma_shape along = { .rows = 1, .cols = f->n, .ld = f->lda + 1, .element = bytes, .uplo = 'G' };
    *d = (diagonal){ .home = malloc((size_t)f->n * bytes) };
    if (!d->home) return "out of memory";
    d->at = d->home;
    CUresult result = follow_program(r, facts);
    if (!result) result = gpb_driver_get()->cuStreamSynchronize(r->lane->up->stream);
    if (!result) result = gpb_dma_copy_and_wait(&along, f->a, d->home, true);
    return result ? gpb_driver_error(result) : NULL;
}

/* INFO of a zero on A's diagonal. NULL, or why it is not known. */
static const char *look_for_zero(const gpb_residence *r, const gpb_facts *facts, gpb_resident_outcome *out)
{
    const gpb_factor *f = &r->work->system.a;
    diagonal d;
    const char *why = find_diagonal(r, facts, &d);
    if (!why) out->info = gpb_lapack_singular(f->type, d.at, f->n, d.ld);
    free(d.home);
    out->done = out->info != 0;
    return why;
}

/* Divided by an infinity, finite numbers are 0 here, and the inverse seems the better for it. The host's
   routine has its own answer; where it cannot reach the factors, the norm is infinite. */
static const char *look_for_infinity(const gpb_residence *r, const gpb_facts *facts,
                                     gpb_resident_outcome *out)
{
    const gpb_factor *f = &r->work->system.a;
    diagonal d;
    const char *why = find_diagonal(r, facts, &d);
    const bool finite = why || gpb_condition_is_finite(f->type, f->n, d.at, d.ld);
    free(d.home);
    if (finite) return why;
    if (place_of(facts, GPB_A) == GPB_PLACE_HOST) return "an infinity on the diagonal";
    *r->work->inverse_norm = HUGE_VAL;
    out->done = true;
    return NULL;
}

/* *rest: the host is to compute what is not home. */
static const char *run_on_lane(gpb_residence *r, const gpb_facts *facts, bool kept, gpb_resident_outcome *out,
                               bool *rest)
{
    /* Real hosts divide by an infinity, too. */
    const bool looks = r->work->inverse_norm && gpb_type_is_complex(r->work->system.a.type);
    const char *why = r->work->divides ? look_for_zero(r, facts, out)
                    : looks ? look_for_infinity(r, facts, out) : NULL;
    if (why || out->done) return why;
    r->kept = kept && gpb_kept_begin(&r->check, &r->work->system.a) && gpb_residence_provide_before_kept(r);
    if (!r->kept) {
        gpb_kept_end(&r->check);
        why = gpb_residence_provide(r);
    }
    if (why) return why;
    if (r->kept) r->result = gpb_kept_look(&r->check, r->lane, r->lane->arena.at);
    const bool refined = r->work->given && refine(r, facts, out);
    if (r->work->inverse_norm) estimate(r, facts, out);
    else if (!refined) run(r, facts, out);
    const bool failed = r->result || r->why, here = all_on_host(facts), of_a = r->why == indefinite;
    out->done = !failed || of_a || (here && r->down.done > 0 && !refined);
    *rest = of_a || (out->done && here && (failed || gpb_carry_halted(&r->down)));
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
    gpb_residence r = { .work = work, .facts = *facts, .policy = *policy,
                        .element = gpb_type_bytes(work->system.a.type) };
    r.lane = kept ? gpb_lanes_take_kept(facts, &wanted) : gpb_lanes_take(facts, true);
    if (kept && !r.lane) return false;
    out->failure = r.lane ? NULL : gpb_gpu_started() ? "no stream or pinned memory could be created"
                                                     : gpb_gpu_why();
    bool rest = false;
    if (r.lane) {
        r.facts.gpu.arch = r.lane->device->arch;
        r.facts.gpu.sms = r.lane->device->sms;
        r.facts.gpu.queued = true;
        out->failure = run_on_lane(&r, facts, kept, out, &rest);
        out->kept = r.kept;
        free(r.panel_width);
        gpb_kept_end(&r.check);
        if (r.others) gpb_kept_drop(r.lane);
        gpb_lanes_give(r.lane);
    }
    /* Without the lane, because the host's routines may call others of theirs through our doors. */
    if (rest) finish(&r, out);
    else if (out->done && r.on_host && work->inverts) gpb_inverse_finish(&r);
    gpb_inverse_end(&r);
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
