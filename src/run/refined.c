/* SPDX-License-Identifier: MIT */
/* See refined.h. */
#include "src/run/refined.h"

#include <float.h>
#include <stddef.h>

#include "dispatch/numbers.h"
#include "kernels/solve_args.h"
#include "src/gpu/kernels.h"
#include "src/run/run.h"

/* netlib's ITER of an element beyond single precision, of a factorisation that fails, and after the last
   round. */
enum { OVERFLOW = -2, NO_FACTORS = -3, ROUNDS = 30, NOT_CONVERGED = -ROUNDS - 1 };

void gpb_refined_begin(gpb_refined *f, gpb_residence *wide, const gpb_carry_matrix from[2])
{
    gpb_residence *n = &f->narrow;
    f->work = gpb_resident_narrow(wide->work);
    *n = *wide;
    n->work = &f->work;
    n->wide = wide;
    n->element = gpb_type_bytes(f->work.system.a.type);
    n->a = wide->narrow;
    n->b = n->a + (CUdeviceptr)(n->ld * f->work.system.a.n) * n->element;
    gpb_residence_in_arena(n);
    n->up = gpb_carry_begin(n->lane, true, from, 2);
}

/* Of a Cholesky factorisation one triangle of A has come. The norm and the products want all of it. */
static void complete(gpb_residence *n)
{
    const gpb_factor *a = &n->wide->work->system.a;
    gpb_mirror_args args = { .a = gpb_pointer(n->wide->a), .lda = n->ld, .to = gpb_pointer(n->wide->a),
                             .ldto = n->ld, .n = a->n, .first = a->n, .lower = a->uplo == 'L',
                             .hermitian = gpb_type_is_complex(a->type) };
    if (!gpb_factor_is_lu(a))
        gpb_resident_launch_wide(n, GPB_PASS_mirror, GPB_MIRROR_BLOCKS(a->n, a->n), &args);
}

static void find_norm(gpb_residence *n)
{
    const int64_t order = n->work->system.a.n;
    gpb_norm_args args = { .a = gpb_pointer(n->wide->a), .lda = n->ld, .rows = order, .cols = order,
                           .norm = gpb_pointer(n->words + offsetof(gpb_refined_words, norm)) };
    gpb_resident_launch_wide(n, GPB_PASS_norm, GPB_NORM_BLOCKS(order), &args);
}

/* X = C or X += C, where C is the narrow solution. R = B - A X. */
static void correct(gpb_residence *n, bool adds)
{
    const gpb_residence *wide = n->wide;
    const gpb_system *s = &wide->work->system;
    const int64_t order = s->a.n, ld = n->ld;
    gpb_correct_args args = { .c = gpb_pointer(n->b), .b = gpb_pointer(n->given), .x = gpb_pointer(wide->b),
                              .r = gpb_pointer(n->residual), .ldc = ld, .ldb = ld, .ldx = ld, .ldr = ld,
                              .rows = order, .cols = s->nrhs, .adds = adds };
    const gpb_call product = { .symbol = s->a.symbol, .type = s->a.type, .width = s->a.width, .m = order,
                               .n = s->nrhs, .k = order, .alpha = -1, .beta = 1, .batch = 1,
                               .x = { { .base = gpb_pointer(wide->a), .ld = ld, .trans = 'N' },
                                      { .base = gpb_pointer(wide->b), .ld = ld, .trans = 'N' },
                                      { .base = args.r, .ld = ld, .trans = 'N', .uplo = 'G' } } };
    gpb_resident_launch_wide(n, GPB_PASS_correct, GPB_TRAPEZOID_BLOCKS(order, s->nrhs), &args);
    if (!n->result && !n->why) n->result = gpb_run_queue(n->lane, &product, &n->facts, &n->policy, &n->why);
}

/* Whether each residual is small enough goes into the words. */
static void judge(gpb_residence *n, int round)
{
    const gpb_system *s = &n->wide->work->system;
    gpb_judge_args args = { .x = gpb_pointer(n->wide->b), .r = gpb_pointer(n->residual), .ldx = n->ld,
                            .ldr = n->ld, .rows = s->a.n, .cols = s->nrhs,
                            .norm = gpb_pointer(n->words + offsetof(gpb_refined_words, norm)),
                            .eps = DBL_EPSILON / 2,
                            .worse = gpb_pointer(n->words + offsetof(gpb_refined_words, worse)),
                            .round = round };
    gpb_resident_launch_wide(n, GPB_PASS_judge, min(s->nrhs, 4 * n->lane->device->sms), &args);
}

static void solve(gpb_residence *n, const gpb_lapack_parts *parts)
{
    gpb_system system = n->work->system;
    system.a.a = gpb_pointer(n->a);
    system.b = gpb_pointer(n->b);
    system.a.lda = system.ldb = n->ld;
    gpb_lapack_solve(&system, parts);
}

static void begin(gpb_residence *n, const gpb_lapack_parts *parts)
{
    const gpb_refined_words none = { 0 };
    gpb_factor f = n->work->system.a;
    f.a = gpb_pointer(n->a);
    f.lda = n->ld;
    if (!n->result) n->result = gpb_residence_send(n, &none, n->words, sizeof none);
    if (!n->result) n->result = gpb_residence_begin(n);
    if (!n->result && !n->why) gpb_lapack_factor(&f, parts);
    if (!n->result && !n->why) solve(n, parts);
    complete(n);
    find_norm(n);
}

int64_t gpb_refined_run(gpb_refined *f)
{
    gpb_residence *n = &f->narrow;
    const gpb_lapack_parts parts = gpb_resident_parts(n);
    const int64_t nrhs = n->work->system.nrhs;
    int32_t info = GPB_NO_INFO;
    begin(n, &parts);
    for (int round = 0; round <= ROUNDS; round++) {
        gpb_refined_words words = { 0 };
        if (round) gpb_resident_narrow_from(n, n->residual, n->b, 0, nrhs, 'G');
        if (round) solve(n, &parts);
        correct(n, round > 0);
        judge(n, round + 1);
        if (!n->result && !n->why) n->result = gpb_residence_fetch(n, n->words, &words, sizeof words);
        if (!n->result && !n->why && !round) n->result = gpb_residence_fetch(n, n->info, &info, sizeof info);
        if (words.overflow) return OVERFLOW;
        if (info != GPB_NO_INFO) return NO_FACTORS;
        if (n->result || n->why || words.worse <= round) return round;
    }
    return NOT_CONVERGED;
}

void gpb_refined_end(gpb_refined *f)
{
    gpb_residence *n = &f->narrow;
    const CUresult failed = n->result ? n->result : n->why ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
    gpb_carry_end(&n->up, failed);
    /* What is queued still reads what has come, and writes to the arena. */
    if (failed) gpb_driver_get()->cuStreamSynchronize(n->lane->stream);
}
