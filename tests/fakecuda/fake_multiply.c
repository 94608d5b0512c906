/* SPDX-License-Identifier: MIT */
/* Products as kernels compute them, of operands that were translated and bounds-checked: in blocks, so that a
   program with real sizes gets its answer in reasonable time. Products of floats are exact in double, and are
   summed there unless FMAs are asked for. */
#include <math.h>
#include <string.h>

#include "tests/fakecuda/fakecuda.h"

/* Block of C in real numbers, its depth, a tile's columns and the bytes of one of its columns. */
enum { MC = 128, NC = 64, KC = 128, NR = GPB_FAKE_TILE_COLUMNS, TILE_BYTES = GPB_FAKE_TILE_BYTES };

#define LETTER d
#define ELEMENT double
#include "tests/fakecuda/fake_tile.h"
#define LETTER s
#define ELEMENT float
#include "tests/fakecuda/fake_tile.h"

typedef void tile(int depth, const void *a, const void *b, void *c);

/* One block at a time, because the gate's mutex is held while kernels run. Of floats only half is used.
   block_c: column-major, ld MC. */
static double block_a[MC * KC] __attribute__((aligned(TILE_BYTES)));
static double block_b[KC * NC] __attribute__((aligned(TILE_BYTES)));
static double block_c[MC * NC] __attribute__((aligned(TILE_BYTES)));

static bool is_single(enum gpb_type type) { return gpb_type_real_bytes(type) == sizeof(float); }

/* Real numbers in an element. */
static int reals_of(enum gpb_type type) { return (int)(gpb_type_bytes(type) / gpb_type_real_bytes(type)); }

/* An operand from element (i, j) on. */
static gpb_fake_operand operand_from(enum gpb_type type, gpb_fake_operand x, int64_t i, int64_t j)
{
    const int64_t bytes = (int64_t)gpb_type_bytes(type);
    x.at = x.at ? (const char *)x.at + (i * x.rs + j * x.cs) * bytes : NULL;
    return x;
}

gpb_fake_member gpb_fake_within(const gpb_fake_member *x, const gpb_fake_range *range, gpb_gemm_args *g)
{
    gpb_fake_member part = *x;
    *g = *x->g;
    g->m = range->rows;
    g->n = range->columns;
    g->k = range->depth;
    part.g = g;
    part.a = operand_from(x->type, x->a, range->i, range->p);
    part.b = operand_from(x->type, x->b, range->p, range->j);
    part.c = (char *)x->c + (range->i + range->j * g->ldc) * (int64_t)gpb_type_bytes(x->type);
    return part;
}

static gpb_fake_operand transposed(gpb_fake_operand x)
{
    return (gpb_fake_operand){ x.at, x.cs, x.rs, x.conj };
}

/* Rounds block_c to FP32, as sums that leave the tensor cores are. */
static void round_block(int rows, int columns)
{
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++)
            block_c[j * MC + i] = (double)(float)block_c[j * MC + i];
}

static tile *tile_for(bool wide)
{
    const bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return fma ? (wide ? tile_fma_d : tile_fma_s) : (wide ? tile_any_d : tile_any_s);
}

/* Fills whole tiles. */
static void clear_block(int rows, int columns, bool wide)
{
    const size_t bytes = wide ? sizeof(double) : sizeof(float),
                 filled = ((size_t)rows * bytes + TILE_BYTES - 1) / TILE_BYTES * TILE_BYTES;
    for (int j = 0; j < (columns + NR - 1) / NR * NR; j++)
        memset((char *)block_c + (size_t)j * MC * bytes, 0, filled);
}

/* block_c += packed panels of A and B, of that many real numbers. */
static void add_panels(int rows, int columns, int depth, bool wide)
{
    const int bytes = wide ? sizeof(double) : sizeof(float), height = TILE_BYTES / bytes;
    tile *add = tile_for(wide);
    for (int j = 0; j < columns; j += NR)
        for (int i = 0; i < rows; i += height)
            add(depth, (const char *)block_a + i * depth * bytes, (const char *)block_b + j * depth * bytes,
                (char *)block_c + (j * MC + i) * bytes);
}

/* block_c = the sums of a member of at most MC real rows and NC columns. */
static void sum_block(const gpb_fake_member *x, bool wide)
{
    const gpb_fake_element *element = gpb_fake_element_of(x->type);
    const int reals = reals_of(x->type), rows = (int)x->g->m, columns = (int)x->g->n;
    const int64_t deepest = (x->rounding == GPB_FAKE_CHUNKS ? GPB_SLICE_CHUNK : KC) / reals;
    const bool round = x->rounding == GPB_FAKE_TF32;
    const gpb_fake_packing left = { block_a, true, wide, round }, right = { block_b, false, wide, round };
    clear_block(rows * reals, columns, wide);
    for (int64_t p = 0; p < x->g->k; p += deepest) {
        const int depth = (int)(x->g->k - p < deepest ? x->g->k - p : deepest);
        element->pack(&left, operand_from(x->type, x->a, 0, p), rows, depth);
        element->pack(&right, transposed(operand_from(x->type, x->b, p, 0)), columns, depth);
        add_panels(rows * reals, columns, depth * reals, wide);
        if (x->rounding == GPB_FAKE_CHUNKS)
            round_block(rows, columns);
    }
}

static gpb_fake_matrix floats_of(gpb_fake_operand x) { return (gpb_fake_matrix){ x.at, x.rs, x.cs }; }

/* block_c = the sums of TF32X3 kernels. False: FMAs must compute these. */
static bool sum_directly(const gpb_fake_member *x)
{
    static gpb_fake_sums sums;
    const int rows = (int)x->g->m, columns = (int)x->g->n;
    if (!gpb_fake_direct(sums, rows, columns, x->g->k, floats_of(x->a), floats_of(x->b)))
        return false;
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++)
            ((float *)block_c)[j * MC + i] = sums[i][j];
    return true;
}

static void multiply_block(const gpb_fake_member *x)
{
    const bool direct = x->rounding == GPB_FAKE_TF32X3,
               wide = !is_single(x->type) || (!direct && x->rounding != GPB_FAKE_FMA);
    if (!direct || !sum_directly(x))
        sum_block(x, wide);
    gpb_fake_element_of(x->type)->store(x, block_c, MC, wide);
}

void gpb_fake_multiply_member(const gpb_fake_member *x)
{
    const int64_t m = x->g->m, n = x->g->n, down = MC / reals_of(x->type);
    if (x->rounding == GPB_FAKE_NETLIB) {
        gpb_fake_element_of(x->type)->netlib(x);
        return;
    }
    for (int64_t j = 0; j < n; j += NC)
        for (int64_t i = 0; i < m; i += down) {
            const gpb_fake_range range = { .i = i, .rows = m - i < down ? m - i : down, .j = j,
                                           .columns = n - j < NC ? n - j : NC, .depth = x->g->k };
            gpb_gemm_args g;
            const gpb_fake_member block = gpb_fake_within(x, &range, &g);
            multiply_block(&block);
        }
}

void gpb_fake_multiply(const gpb_gemm_args *g, gpb_fake_matrix a, gpb_fake_matrix b, float *c,
                       enum gpb_fake_rounding rounding)
{
    const gpb_fake_member x = { .g = g, .type = GPB_TYPE_s, .a = { .at = a.at, .rs = a.rs, .cs = a.cs },
                                .b = { .at = b.at, .rs = b.rs, .cs = b.cs }, .c = c, .rounding = rounding };
    gpb_fake_multiply_member(&x);
}
