/* SPDX-License-Identifier: MIT */
/* Stream-K launches on tests/fakecuda: every kernel that can gives the right answer for any division of k,
   the bits show the division, and each broken rule is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/gemm_args.h"
#include "tests/fakecuda/child.h"
#include "tests/reference.h"

typedef struct row {
    const char *symbol, *image;
    enum gpb_type type;
    enum gpb_form form;
    int bm, bn, bk, threads, smem;
    unsigned caps;
} row;

static const row rows[] = {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    { GPB_STR(GPB_GEMM_SYMBOL(p, name)), #image, GPB_TYPE_##p, GPB_FORM_##form, bm, bn, bk, threads, smem, \
      GPB_CAP_##caps },
#include "kernels/gemm.def"
#undef KERNEL
};
enum { ROWS = sizeof rows / sizeof *rows, M = 150, N = 200, K = 133, LDA = 204, LDC = 151, BATCH = 2 };
static const row *current;

#include "tests/unit/child_gemm.h"

/* All kernels of sgemm_ffma have the code, though the host uses it of two. */
static bool can_share(const row *r) { return r->caps & GPB_CAP_STREAM_K || !strcmp(r->image, "sgemm_ffma"); }

static void choose(const row *r)
{
    current = r;
    type = r->type;
}

/* The call for the current row, with memory to share out all of its tiles among `blocks` blocks. The
   number of tiles is left to the caller. */
static gpb_gemm_args prepare(const gpb_call *q, unsigned blocks)
{
    static const uint32_t zeros[GPB_MAX_STREAMK_BLOCKS];
    gpb_gemm_args g = args_of(q);
    g.streamk_blocks = blocks;
    g.partials = (void *)gpb_child_device(bytes_of((size_t)(2 * (int)blocks * current->bm * current->bn)));
    g.counters = (void *)gpb_child_upload(zeros, sizeof zeros);
    return g;
}

static unsigned tiles(void) { return (unsigned)(GPB_TILES(M, N, current->bm, current->bn) * BATCH); }

static CUresult launch(const gpb_gemm_args *g, unsigned grid)
{
    gpb_gemm_args copy = *g;
    const bool maps = current->form == GPB_FORM_MAPPED;
    gpb_mapped_args mapped = maps ? mapped_of(g, current->bm, current->bn, current->caps)
                                  : (gpb_mapped_args){ 0 };
    const CUfunction f = gpb_child_kernel(current->symbol);
    EXPECT(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, current->smem)
           == CUDA_SUCCESS);
    return cuLaunchKernel(f, grid, 1, 1, (unsigned)current->threads, 1, 1, (unsigned)current->smem, NULL,
                          (void *[]){ maps ? (void *)&mapped : &copy }, NULL);
}

/* MAPPED kernels with maps of operands that are not transposed; their blocks share less than two tiles. */
static bool takes(const char *op, const gpb_gemm_args *g)
{
    return current->form != GPB_FORM_MAPPED
           || (!strcmp(op, "NN") && g->streamk_tiles < 2 * g->streamk_blocks);
}

/* All tiles shared out, evenly or not; then whole rounds and a shared rest, as the library does it. */
static int right_answer(void)
{
    gpb_child_start();
    for (int op = 0; op < ops_count(); op += 2) {
        const gpb_call q = call_of(ops[op], BATCH);
        const unsigned some = tiles() * 2 / 5,
                       many[] = { 1, tiles(), tiles() * 4 / 3, tiles() * 3 + 1, some > 1 ? some : 2 };
        for (int i = 0; i < 5; i++) {
            gpb_gemm_args g = prepare(&q, many[i]);
            g.streamk_tiles = i < 4 ? tiles() : tiles() % many[i] + many[i];
            if (!takes(ops[op], &g)) continue;
            EXPECT(launch(&g, g.streamk_blocks + tiles() - g.streamk_tiles) == CUDA_SUCCESS);
            download((CUdeviceptr)g.c);
            EXPECT(error_of(GPB_MATH_FMA, &q) <= 1);
        }
    }
    return GPB_CHILD_OK;
}

/* A test that compares bits must fail if the number of blocks changes. */
static int bits_tell(void)
{
    static gpb_element first[IN_C];
    gpb_child_start();
    const gpb_call q = call_of("NN", BATCH);
    for (unsigned more = 0; more < 3; more++) {
        gpb_gemm_args g = prepare(&q, tiles() * 2 + more / 2 * 3);
        g.streamk_tiles = tiles();
        EXPECT(launch(&g, g.streamk_blocks) == CUDA_SUCCESS);
        download((CUdeviceptr)g.c);
        if (more) EXPECT((memcmp(c, first, bytes_of(IN_C)) != 0) == (more == 2));
        memcpy(first, c, bytes_of(IN_C));
    }
    return GPB_CHILD_OK;
}

static void test_right_answers(void **state)
{
    (void)state;
    int count[GPB_TYPES] = { 0 };
    for (const row *r = rows; r < rows + ROWS; r++) {
        if (!can_share(r)) continue;
        choose(r);
        count[type]++;
        assert_int_equal(gpb_child_run(right_answer, NULL), GPB_CHILD_OK);
        assert_int_equal(gpb_child_run(bits_tell, NULL), GPB_CHILD_OK);
    }
    assert_int_equal(count[GPB_TYPE_s], 6);
    assert_int_equal(count[GPB_TYPE_d], 8);
    assert_int_equal(count[GPB_TYPE_c], 1);
    assert_int_equal(count[GPB_TYPE_z], 6);
}

static void (*spoil)(gpb_gemm_args *g, unsigned *grid);

static int spoilt(void)
{
    gpb_child_start();
    const gpb_call q = call_of("NN", BATCH);
    gpb_gemm_args g = prepare(&q, 2 * tiles());
    unsigned grid = g.streamk_blocks;
    g.streamk_tiles = tiles();
    if (spoil) spoil(&g, &grid);
    EXPECT(launch(&g, grid) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS);
    return GPB_CHILD_OK;
}

static void more_blocks(gpb_gemm_args *g, unsigned *grid)
{
    (void)g;
    ++*grid;
}
static void as_without(gpb_gemm_args *g, unsigned *grid) { *grid = tiles() / (unsigned)g->batch; }
static void in_parts(gpb_gemm_args *g, unsigned *grid)
{
    (void)grid;
    g->splits = 2;
}
static void no_k(gpb_gemm_args *g, unsigned *grid)
{
    (void)grid;
    g->k = 0;
}
static void no_alpha(gpb_gemm_args *g, unsigned *grid)
{
    (void)grid;
    g->alpha[0] = g->alpha[1] = 0;
}
static void all_but_none(gpb_gemm_args *g, unsigned *grid)
{
    *grid += g->streamk_tiles;
    g->streamk_tiles = 0;
}
static void too_many_tiles(gpb_gemm_args *g, unsigned *grid)
{
    --*grid;
    g->streamk_tiles++;
}
static void too_short(gpb_gemm_args *g, unsigned *grid)
{
    (void)grid;
    g->k = current->bk;
}
static void little_room(gpb_gemm_args *g, unsigned *grid)
{
    (void)grid;
    g->partials = (char *)g->partials + 1;
}
static void no_counters(gpb_gemm_args *g, unsigned *grid)
{
    (void)grid;
    g->counters = NULL;
}
static void counted(gpb_gemm_args *g, unsigned *grid)
{
    EXPECT(cuMemsetD8((CUdeviceptr)(g->counters + *grid - 1), 1, 4) == CUDA_SUCCESS);
}

static void test_broken_rules(void **state)
{
    static void (*const list[])(gpb_gemm_args *, unsigned *) = { more_blocks, as_without, in_parts, no_k,
                                                                 no_alpha, all_but_none, too_many_tiles,
                                                                 too_short, little_room,
                                                                 no_counters,    counted };
    bool done[GPB_TYPES] = { false };
    (void)state;
    for (const row *r = rows; r < rows + ROWS; r++) {
        if (!can_share(r) || done[r->type]) continue;         /* one row of each type */
        done[r->type] = true;
        choose(r);
        spoil = NULL;
        assert_int_equal(gpb_child_run(spoilt, NULL), GPB_CHILD_OK);
        for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
            spoil = list[i];
            assert_int_equal(gpb_child_run(spoilt, NULL), 86);
        }
    }
}

/* An asynchronous memset belongs to its stream and runs as late as that allows. */
static int memset_in_its_stream(void)
{
    uint32_t word = 7;
    gpb_child_start();
    CUstream stream = gpb_child_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr at = gpb_child_upload(&word, 4);
    EXPECT(cuMemsetD8Async(at, 0, 4, stream) == CUDA_SUCCESS && cuMemcpyDtoH(&word, at, 4) == CUDA_SUCCESS);
    if (word) return GPB_CHILD_WRONG;
    EXPECT(cuStreamSynchronize(stream) == CUDA_SUCCESS && cuMemcpyDtoH(&word, at, 4) == CUDA_SUCCESS
           && word == 0);
    return GPB_CHILD_OK;
}

static void test_memset(void **state)
{
    (void)state;
    assert_in_range(gpb_child_wrong_seeds(memset_in_its_stream, 40), 1, 39);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_right_answers),
                                        cmocka_unit_test(test_broken_rules), cmocka_unit_test(test_memset) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
