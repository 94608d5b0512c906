/* SPDX-License-Identifier: MIT */
/* Launches with Stream-K (kernels/ffma/streamk.cuh): the same parts, at the same places of the
   workspace, added up in the same order, so that the bits show how k was divided. As there, the part of k
   beyond whole k-tiles comes first; of MAPPED kernels last. Tiles are numbered down the columns. */
#include <stdlib.h>
#include <string.h>

#include "dispatch/numbers.h"
#include "tests/fakecuda/fakecuda.h"

/* Checks what gemm_args.h demands. */
void gpb_fake_streamk_check(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g)
{
    const int64_t tiles = GPB_TILES_OF(g->uplo, g->m, g->n, kernel->bm, kernel->bn) * g->batch,
                  k_tiles = ceil_div(g->k, kernel->bk);
    const int64_t room = INT64_C(2) * g->streamk_blocks * kernel->bm * kernel->bn
                         * (int64_t)gpb_type_bytes(kernel->type);
    if (g->splits > 1 || g->guard_a || g->k == 0 || (g->alpha[0] == 0 && g->alpha[1] == 0)
        || !g->streamk_tiles
        || g->streamk_tiles > tiles || g->streamk_tiles * k_tiles < g->streamk_blocks
        || g->streamk_blocks > GPB_MAX_STREAMK_BLOCKS
        || (kernel->form == GPB_FORM_MAPPED && g->streamk_tiles >= 2 * g->streamk_blocks))
        gpb_fake_die("BAD LAUNCH of %s: %u of %lld tiles shared out among %u, k=%lld, alpha=%g, %lld parts "
                     "of k, guard words %p",
                     kernel->symbol, g->streamk_tiles, (long long)tiles, g->streamk_blocks, (long long)g->k,
                     g->alpha[0], (long long)g->splits, (const void *)g->guard_a);
    char *partials = gpb_fake_translate(device, (CUdeviceptr)g->partials, 0, room, kernel->symbol);
    memset(partials, 0xFF, 256);
    memset(partials + room - 256, 0xFF, 256);
    const uint32_t *counters = gpb_fake_translate(device, (CUdeviceptr)g->counters, 0,
                                                  (int64_t)g->streamk_blocks * 4, kernel->symbol);
    for (unsigned i = 0; i < g->streamk_blocks; i++)
        if (counters[i])
            gpb_fake_die("BAD LAUNCH of %s: counter %u is not zero", kernel->symbol, i);
}

typedef gpb_fake_range part;

/* Sets k-tiles [from, to) of `k_tiles`. The first one is the part of k beyond whole k-tiles, or the last. */
static void set_depth(part *t, const gpb_fake_kernel *kernel, int64_t k, int64_t k_tiles, int64_t from,
                      int64_t to)
{
    const int64_t bk = kernel->bk, first = kernel->form == GPB_FORM_MAPPED ? bk : k - (k_tiles - 1) * bk;
    t->p = from ? first + (from - 1) * bk : 0;
    t->depth = min(first + (to - 1) * bk, k) - t->p;
}

/* Computes tile `number`, in as many parts as there are blocks that have k-tiles of it. */
static void multiply_shared(const gpb_fake_kernel *kernel, char *partials, const gpb_fake_member *x, part t,
                            int64_t number)
{
    const gpb_gemm_args *g = x->g;
    const int64_t k_tiles = ceil_div(g->k, kernel->bk), all = g->streamk_tiles * k_tiles,
                  start = number * k_tiles;
    const int64_t tile = (int64_t)kernel->bm * kernel->bn, bytes = (int64_t)gpb_type_bytes(x->type),
                  owner = ((start + 1) * g->streamk_blocks - 1) / all;
    char *const first = partials + (2 * owner + 1) * tile * bytes, *const second = first + tile * bytes;
    int64_t count = 0;
    for (int64_t at = start, end; at < start + k_tiles; at = end, count++) {
        gpb_gemm_args raw;
        end = min((owner + count + 1) * all / g->streamk_blocks, start + k_tiles);
        set_depth(&t, kernel, g->k, k_tiles, at - start, end - start);
        gpb_fake_member y = gpb_fake_within(x, &t, &raw);
        raw.beta[0] = raw.beta[1] = 0;
        raw.ldc = kernel->bm;
        y.raw = true;
        y.c = count ? second + (count - 1) * 2 * tile * bytes : first;
        gpb_fake_multiply_member(&y);
    }
    static const double none[2];
    const gpb_fake_parts parts = { first, second, count, 2 * tile, kernel->bm, t.rows, t.columns, g->alpha,
                                   g->uplo ? none : g->beta };
    if (!g->uplo) {
        gpb_fake_element_of(x->type)->add_up(&parts, (char *)x->c + (t.i + t.j * g->ldc) * bytes, g->ldc);
        return;
    }
    void *apart = gpb_fake_apart(x, &t);
    gpb_fake_element_of(x->type)->add_up(&parts, apart, t.rows);
    gpb_fake_keep_triangle(x, &t, apart);
    free(apart);
}

void gpb_fake_streamk(const gpb_fake_kernel *kernel, int device, const gpb_fake_member *x, int64_t l)
{
    const gpb_gemm_args *g = x->g;
    const int64_t down = ceil_div(g->m, kernel->bm),
                  tiles = GPB_TILES_OF(g->uplo, g->m, g->n, kernel->bm, kernel->bn);
    char *partials = gpb_fake_translate(device, (CUdeviceptr)g->partials, 0, 4, kernel->symbol);
    for (int64_t number = 0; number < tiles; number++) {
        gpb_triangle_place at = { (unsigned)(number % down), (unsigned)(number / down) };
        if (g->uplo)
            at = gpb_triangle_tile(g->uplo, (unsigned)number, g->n, kernel->bm, kernel->bn);
        part t = { .i = (int64_t)at.tile_m * kernel->bm, .j = (int64_t)at.tile_n * kernel->bn,
                   .depth = g->k };
        t.rows = min(kernel->bm, g->m - t.i);
        t.columns = min(kernel->bn, g->n - t.j);
        if (l * tiles + number < g->streamk_tiles) {
            multiply_shared(kernel, partials, x, t, l * tiles + number);
        } else {
            gpb_fake_multiply_part(x, &t);
        }
    }
}
