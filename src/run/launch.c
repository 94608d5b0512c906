/* SPDX-License-Identifier: MIT */
/* Launches; see launch.h. Everything goes into one stream, so work runs in the order in which it is
   queued. */
#include "src/run/launch.h"

#include "dispatch/streamk.h"
#include "kernels/residues.h"
#include "kernels/sliced.h"
#include "kernels/solve_args.h"
#include "src/gpu/kernels.h"
#include "src/gpu/tensor_map.h"
#include "src/run/address_table.h"
#include "src/run/slice.h"

static CUresult launch_blocks(gpb_run *r, const gpb_kernel *kernel, gpb_gemm_args *args, int64_t blocks,
                              int64_t members)
{
    gpb_mapped_args mapped;
    gpb_launch how = { .which = gpb_kernels_number(kernel), .blocks = blocks, .members = members,
                       .args = args };
    if (kernel->form == GPB_FORM_MAPPED) {
        const CUresult result = gpb_tensor_map_bind(kernel, args, r->call->joined ? 2 : 1, &mapped);
        if (result) return result;
        how.args = &mapped;
    }
    return gpb_kernels_launch(r->lane->device, r->stream, &how);
}

static CUresult launch_kernel(gpb_run *r, const gpb_kernel *kernel, gpb_gemm_args *args, int64_t splits)
{
    const int64_t blocks
        = kernel->form == GPB_FORM_MAPPED
              ? GPB_MAPPED_BLOCKS(args->uplo, args->m, args->n, kernel->bm, kernel->bn, kernel->caps)
              : GPB_TILES_OF(args->uplo, args->m, args->n, kernel->bm, kernel->bn);
    return launch_blocks(r, kernel, args, blocks, args->batch * splits);
}

/* All of k in one launch; Stream-K for the first tiles if it pays. */
static CUresult multiply_whole(gpb_run *r, const gpb_kernel *kernel, gpb_gemm_args *args)
{
    const gpb_device *device = r->lane->device;
    const int64_t tiles = GPB_TILES_OF(args->uplo, args->m, args->n, kernel->bm, kernel->bn) * args->batch;
    gpb_streamk streamk = { 0 };
    if (r->plan->streamk && args->k && !r->call->joined)
        streamk = gpb_streamk_choose(kernel, device->arch, device->sms, tiles, args->k);
    if (!streamk.blocks) return launch_kernel(r, kernel, args, 1);
    args->streamk_tiles = (unsigned)streamk.tiles;
    args->streamk_blocks = (unsigned)streamk.blocks;
    args->partials = gpb_pointer(r->parts);
    args->counters = gpb_pointer(r->lane->counters);
    return launch_blocks(r, kernel, args, streamk.blocks + tiles - streamk.tiles, 1);
}

/* Split-K if the plan says so: a second launch adds up the partial sums. Else all of k at once. */
static CUresult multiply_in_parts(gpb_run *r, const gpb_kernel *kernel, gpb_gemm_args *args)
{
    const bool cut = args->k && r->plan->splits > 1 && r->parts;
    if (!cut) return multiply_whole(r, kernel, args);
    args->splits = r->plan->splits;
    args->partials = gpb_pointer(r->parts);
    gpb_reduce_args reduce = { .m = args->m, .n = args->n, .splits = args->splits, .partials = args->partials,
                               .c = args->c, .ldc = args->ldc, .alpha = { args->alpha[0], args->alpha[1] },
                               .beta = { args->beta[0], args->beta[1] }, .batch = args->batch,
                               .stride_c = args->stride_c, .items = args->items,
                               .uplo = args->uplo, .hermitian = args->hermitian };
    CUresult result = launch_kernel(r, kernel, args, args->splits);
    if (result) return result;
    return gpb_kernels_launch(r->lane->device, r->stream, &(gpb_launch){
        .which = gpb_kernels_pass(GPB_PASS_REDUCE, kernel->type),
        .blocks = GPB_REDUCE_BLOCKS(args->m, args->n, args->splits),
        .members = args->batch, .args = &reduce });
}

/* ---- kernels on slices and residues */

static const uint64_t *guard_words(const gpb_kernel *kernel, enum gpb_operand x, const gpb_view *slices,
                                   int64_t rows, int64_t k)
{
    const int64_t at = gpb_plan_guard(kernel, x, rows, k);
    return gpb_pointer(slices->at + (CUdeviceptr)at);
}

/* Where the guard words of both operands lie, and which epoch flags a block. */
static void point_to_guards(const gpb_run *r, const gpb_view *a, const gpb_view *b, gpb_gemm_args *args)
{
    args->guard_a = guard_words(r->plan->kernel, GPB_A, a, args->m, args->k);
    args->guard_b = guard_words(r->plan->kernel, GPB_B, b, args->n, args->k);
    args->stride_guard_a = a->member_stride * GPB_SLICE_UNIT / (int64_t)sizeof *args->guard_a;
    args->stride_guard_b = b->member_stride * GPB_SLICE_UNIT / (int64_t)sizeof *args->guard_b;
    args->epoch_a = r->x[GPB_A].epoch;
    args->epoch_b = r->x[GPB_B].epoch;
}

/* Computes the blocks at args.level, with as many clusters as the device holds. */
static CUresult launch_clusters(gpb_run *r, const gpb_kernel *kernel, gpb_gemm_args args)
{
    gpb_device *device = r->lane->device;
    const int which = gpb_kernels_number(kernel);
    CUfunction function;
    args.m = gpb_plan_sliced_rows(kernel, GPB_A, args.m);
    args.k = gpb_plan_sliced_k(kernel, args.k);
    args.counters = gpb_pointer(r->parts);
    args.partials = gpb_pointer(r->parts + GPB_SLICED_COUNTERS * sizeof *args.counters);
    /* This also finds out how many clusters fit. */
    CUresult result = gpb_kernels_find(device, which, &function);
    if (result) return result;
    return gpb_kernels_launch(device, r->stream, &(gpb_launch){
        .which = which, .blocks = (int64_t)device->clusters[which] * GPB_SLICED_CLUSTER, .members = 1,
        .args = &args });
}

/* The product of residues, then C. */
static CUresult launch_residues(gpb_run *r, const gpb_kernel *kernel, gpb_gemm_args args)
{
    gpb_device *device = r->lane->device;
    args.partials = gpb_pointer(r->parts);
    CUresult result = gpb_kernels_launch(device, r->stream, &(gpb_launch){
        .which = gpb_kernels_number(kernel), .blocks = device->sms, .members = 1, .args = &args });
    if (result) return result;
    return gpb_kernels_launch(device, r->stream, &(gpb_launch){
        .which = gpb_kernels_pass(GPB_PASS_COMBINE, kernel->type),
        .blocks = GPB_COMBINE_BLOCKS(args.uplo, args.m, args.n), .members = args.batch, .args = &args });
}

static CUresult multiply_wide(gpb_run *r, const gpb_launch_set *piece, gpb_gemm_args args, const gpb_view *c)
{
    gpb_view a, b;
    CUresult result = gpb_slice_wide(r, piece, &args, &a, &b);
    args.level = 1;
    if (!result) result = gpb_address_bind_args(r, &piece->tile, &a, &b, c, &args);
    return result ? result : launch_clusters(r, r->plan->wide, args);
}

/* Computes the blocks of C for which FP16 slices are not accurate enough: blocks at level 1 by the wide
   kernel if there is one, the others by the fallback kernel. args are those of the guarded kernel on this
   launch set, whose count is 1 if there is a wide kernel. */
static CUresult fallback(gpb_run *r, const gpb_launch_set *piece, gpb_gemm_args args, const gpb_view *c)
{
    const bool wide = r->plan->wide && multiply_wide(r, piece, args, c) == CUDA_SUCCESS;
    const gpb_view a = gpb_operand_view(r, GPB_A, false, piece), b = gpb_operand_view(r, GPB_B, false, piece);
    args.level = wide ? 2 : 1;
    r->last = args;
    CUresult result = gpb_address_bind_args(r, &piece->tile, &a, &b, c, &args);
    if (!result) result = launch_kernel(r, r->plan->fallback, &args, 1);
    /* In place, C then has all but the flagged blocks. */
    r->progress->blocks_missing = result && r->x[GPB_C].place == GPB_PLACE_DEVICE && !r->x[GPB_C].packed;
    return result;
}

/* With a wide kernel, for whose slices there is room for one strip, one rectangle after another. Else all at
   once: rectangles of narrow strips do not fill the GPU. (GEMM of double, 4096, of which all is flagged: 22.7
   ms one after another.) */
static CUresult fallback_each(gpb_run *r, const gpb_launch_set *pieces, gpb_gemm_args args, const gpb_view *c)
{
    CUresult result = CUDA_SUCCESS;
    if (!r->plan->wide) return fallback(r, pieces, args, c);
    gpb_launch_set piece = *pieces;
    gpb_view at = *c;
    const int64_t batch = args.batch / pieces->count;
    piece.count = 1;
    args.batch = batch;
    for (int64_t x = 0; x < pieces->count && !result; x++) {
        result = fallback(r, &piece, args, &at);
        piece.strip[piece.along]++;
        args.guard_a += args.stride_guard_a;
        args.guard_b += args.stride_guard_b;
        at.at += (CUdeviceptr)c->member_stride * r->element;
    }
    return result;
}

/* ---- launch sets */

/* Fills in the arguments for a launch set. beta is left to the caller. */
static CUresult describe(gpb_run *r, const gpb_move *move, const gpb_launch_set *piece, gpb_gemm_args *args,
                         gpb_view *c)
{
    const gpb_view a = gpb_operand_view(r, GPB_A, true, piece), b = gpb_operand_view(r, GPB_B, true, piece);
    const bool reads = move->reads;
    *c = gpb_operand_view_c(r, move, piece);
    args->conj_a = gpb_matrix_conjugated(&r->call->x[GPB_A]);
    args->conj_b = gpb_matrix_conjugated(&r->call->x[GPB_B]);
    args->m = piece->tile.rows;
    args->n = piece->tile.cols;
    args->batch = piece->tile.members * piece->count;
    args->uplo = r->plan->triangle;
    args->hermitian = args->uplo && gpb_call_hermitian(r->call);
    CUresult result = gpb_address_bind_args(r, &piece->tile, reads ? &a : NULL, reads ? &b : NULL, c, args);
    if (!result && reads && gpb_kernel_table_guarded(r->plan->kernel)) point_to_guards(r, &a, &b, args);
    return result;
}

/* Copies the tile from the workspace of C to C itself or to its buffer. */
static CUresult unpack(gpb_run *r, const gpb_move *move, gpb_scalar beta)
{
    const gpb_view *home = &r->x[GPB_C].source, *from = &r->x[GPB_C].ready;
    const gpb_region *t = &move->tile;
    const int64_t i = t->i - move->block.i, j = t->j - move->block.j;
    const CUdeviceptr w = from->at + (CUdeviceptr)(i + j * from->cs) * r->element,
                      c = home->at + (CUdeviceptr)(i + j * home->cs) * r->element;
    gpb_unpack_args args = { .m = t->rows, .n = t->cols, .w = gpb_pointer(w), .ldw = from->cs,
                             .c = gpb_pointer(c), .ldc = home->cs,
                             .beta = GPB_SCALAR_RE_IM(beta), .row0 = t->i, .col0 = t->j, .batch = t->members,
                             .stride_w = from->member_stride, .stride_c = home->member_stride,
                             .uplo = r->call->x[GPB_C].uplo,
                             .hermitian = gpb_call_hermitian(r->call) };
    if (home->scattered) args.c_items = gpb_pointer(gpb_address_table(r, GPB_C));
    return gpb_kernels_launch(r->lane->device, r->stream, &(gpb_launch){
        .which = gpb_kernels_pass(GPB_PASS_UNPACK, r->call->type),
        .blocks = GPB_TILES(t->rows, t->cols, GPB_PACK_TILE, GPB_PACK_TILE),
        .members = t->members, .args = &args });
}

/* The tile as one batch of equal rectangles, one for each strip of the operand that was there already, and a
   second set for the last strip if it is narrower. */
static int pieces_of(const gpb_run *r, const gpb_move *move, gpb_launch_set pieces[2])
{
    const enum gpb_operand along = move->operand == GPB_A ? GPB_B : GPB_A;
    const int64_t strip = r->x[along].strip, size = move->tile.size[along];
    const int64_t full = move->reads ? size / strip : 0, rest = move->reads ? size % strip : size;
    gpb_launch_set piece = { .tile = move->tile, .count = 1, .along = along };
    int count = 0;
    if (move->reads) {
        piece.strip[move->operand] = move->strip;
        piece.strip[along] = (move->tile.at[along] - move->block.at[along]) / strip;
    }
    if (full) {
        pieces[count] = piece;
        pieces[count].count = full;
        pieces[count].tile.size[along] = strip;
        count++;
    }
    if (rest) {
        pieces[count] = piece;
        pieces[count].tile.size[along] = rest;
        pieces[count].tile.at[along] += full * strip;
        pieces[count].strip[along] += full;
        count++;
    }
    return count;
}

/* A batch of TRSM. Upwards from its last row an upper triangle is a lower one. From the right, the triangle's
   view is that of its transpose, and so are the others of B and X. */
static CUresult solve(gpb_run *r, const gpb_move *move, const gpb_launch_set *piece)
{
    gpb_gemm_args given = { .alpha = GPB_SCALAR_RE_IM(r->call->alpha) };
    gpb_view c;
    CUresult result = describe(r, move, piece, &given, &c);
    const enum gpb_operand triangle = gpb_call_triangle(r->call);
    const gpb_matrix *a = &r->call->x[triangle];
    const bool right = triangle == GPB_B, lower = (a->uplo == 'L') == ((a->trans == 'N') != right);
    const int64_t n = move->depth;
    gpb_systems_args args = { .l = given.a, .rsl = given.rsa, .csl = given.csa, .stride_l = given.stride_a,
                              .b = given.b, .rsb = given.rsb, .csb = given.csb, .stride_b = given.stride_b,
                              .x = given.c, .rsx = 1, .csx = given.ldc, .stride_x = given.stride_c,
                              .items = given.items, .batch = given.batch, .cols = given.n,
                              .alpha = { given.alpha[0], given.alpha[1] }, .n = (int32_t)n,
                              .unit = a->diag == 'U', .conj = gpb_matrix_conjugated(a), .right = right };
    if (right) {
        args.l = given.b;
        args.rsl = given.csb;
        args.csl = given.rsb;
        args.stride_l = given.stride_b;
        args.b = given.a;
        args.rsb = given.csa;
        args.csb = given.rsa;
        args.stride_b = given.stride_a;
        args.rsx = given.ldc;
        args.csx = 1;
        args.cols = given.m;
    }
    if (!lower) {
        args.first_l = (n - 1) * (args.rsl + args.csl);
        args.first_b = (n - 1) * args.rsb;
        args.first_x = (n - 1) * args.rsx;
        args.rsl = -args.rsl;
        args.csl = -args.csl;
        args.rsb = -args.rsb;
        args.rsx = -args.rsx;
    }
    if (result) return result;
    const bool small = n <= GPB_SMALL_SYSTEM;
    return gpb_kernels_launch(r->lane->device, r->stream, &(gpb_launch){
        .which = gpb_kernels_systems(r->call), .members = 1, .args = &args,
        .blocks = small ? GPB_SMALL_SYSTEMS_BLOCKS(args.cols, args.batch)
                        : GPB_SYSTEMS_BLOCKS(args.cols, args.batch) });
}

/* The beta that the device applies: 0 if C goes home to host memory, because the crew adds beta C there; 1 if
   a part of the sum is there. */
static gpb_scalar beta_of(const gpb_run *r, const gpb_move *move)
{
    return !move->first || r->adds ? 1 : gpb_place_on_host(r->x[GPB_C].place) ? 0 : r->call->beta;
}

static CUresult multiply(gpb_run *r, const gpb_move *move, const gpb_launch_set *piece, bool with_fallback)
{
    const bool slices = gpb_kernel_table_guarded(r->plan->kernel);
    const gpb_scalar beta = r->x[GPB_C].packed && !r->adds ? 0 : beta_of(r, move);
    gpb_gemm_args args = { .k = move->reads ? move->depth : 0, .alpha = GPB_SCALAR_RE_IM(r->call->alpha),
                           .beta = GPB_SCALAR_RE_IM(beta) };
    gpb_view c;
    CUresult result = describe(r, move, piece, &args, &c);
    if (result) return result;
    if (!slices || !move->reads)
        return multiply_in_parts(r, slices ? r->plan->fallback : r->plan->kernel, &args);
    result = r->plan->kernel->form == GPB_FORM_RESIDUES ? launch_residues(r, r->plan->kernel, args)
                                                        : launch_clusters(r, r->plan->kernel, args);
    return result || !with_fallback ? result : fallback_each(r, piece, args, &c);
}

/* One product's part in the move. */
static CUresult launch_product(gpb_run *r, const gpb_move *move, bool with_fallback)
{
    gpb_launch_set pieces[2];
    CUresult result = move->reads ? gpb_operand_prepare(r, move) : CUDA_SUCCESS;
    if (result || move->tile.rows == 0) return result;
    result = gpb_operand_prepare_c(r, move);
    const int count = pieces_of(r, move, pieces);
    for (int i = 0; i < count && !result; i++) {
        if (gpb_call_solves(r->call) && move->reads) {
            result = solve(r, move, &pieces[i]);
            continue;
        }
        /* This also sets the SLICED kernel's counters to zero. */
        if (i && r->plan->kernel->form == GPB_FORM_SLICED) result = gpb_slice_strips(r, move);
        if (!result) result = multiply(r, move, &pieces[i], with_fallback);
    }
    return result;
}

CUresult gpb_launch_move(gpb_run *r, const gpb_move *move, bool with_fallback)
{
    CUresult result = launch_product(r, move, with_fallback);
    if (!result && r->second && move->reads) result = launch_product(r->second, move, with_fallback);
    if (result || move->tile.rows == 0 || !r->x[GPB_C].packed) return result;
    return unpack(r, move, beta_of(r, move));
}

/* Computes all of the tile again, because a block that one product flagged and the other did not has only the
   other's. The strips are prepared; slicing none sets the SLICED kernel's counters to zero. */
static CUresult launch_again(gpb_run *r, const gpb_move *move)
{
    gpb_launch_set pieces[2];
    const int count = pieces_of(r, move, pieces);
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < count && !result; i++) {
        if (r->plan->kernel->form == GPB_FORM_SLICED) result = gpb_slice_strips(r, move);
        if (!result) result = multiply(r, move, &pieces[i], true);
    }
    return result;
}

CUresult gpb_launch_fallback(gpb_run *r, const gpb_move *move)
{
    gpb_launch_set pieces[2];
    const int count = pieces_of(r, move, pieces);
    CUresult result = r->second ? launch_again(r, move) : CUDA_SUCCESS;
    if (r->second) return result ? result : launch_again(r->second, move);
    for (int i = 0; i < count && !result; i++) {
        const gpb_scalar beta = beta_of(r, move);
        gpb_gemm_args args = { .k = move->depth, .alpha = GPB_SCALAR_RE_IM(r->call->alpha),
                               .beta = GPB_SCALAR_RE_IM(beta) };
        gpb_view c;
        result = describe(r, move, &pieces[i], &args, &c);
        /* C in place has all but the flagged blocks, and it is not known here which these are. */
        if (result) r->progress->undrained = r->x[GPB_C].place == GPB_PLACE_DEVICE && !r->x[GPB_C].packed;
        else result = fallback_each(r, &pieces[i], args, &c);
    }
    return result;
}
