/* SPDX-License-Identifier: MIT */
/* What kernels compute: the reference computation, after every operand is translated and bounds-checked.
   Products of floats are exact in double and are summed there, in blocks, so that a program with real sizes
   gets its answer in reasonable time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fakecuda.h"

enum { MC = 128, NC = 64, KC = 128, MR = 8, NR = 4 };    /* block of C, depth, tile of C in registers */
typedef double vector __attribute__((vector_size(32)));

/* One block at a time, because the gate's mutex is held while kernels run. */
static double block_a[MC * KC] __attribute__((aligned(64)));
static double block_b[KC * NC] __attribute__((aligned(64)));
static double block_c[MC * NC] __attribute__((aligned(64)));    /* column-major, ld MC */

typedef gpb_fake_matrix matrix;

/* Rounds to the 10 explicit mantissa bits of TF32: to nearest, ties away from zero (cvt.rna). */
static float tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000) == 0x7f800000)
        return x;
    bits = (bits + 0x1000) & 0xffffe000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Copies rows x depth of `from` into panels of `width` rows. Each panel is depth-major, and the last is
   filled up with zeros. */
static void pack_block(double *to, int width, int rows, int depth, matrix from, bool round)
{
    for (int i = 0; i < rows; i += width, to += (size_t)width * (size_t)depth) {
        int filled = rows - i < width ? rows - i : width;
        if (filled < width)
            memset(to, 0, sizeof *to * (size_t)width * (size_t)depth);
        for (int p = 0; p < depth; p++)
            for (int r = 0; r < filled; r++) {
                float x = from.at[(i + r) * from.rs + p * from.cs];
                to[p * width + r] = (double)(round ? tf32(x) : x);
            }
    }
}

static inline __attribute__((always_inline)) void tile_body(int depth, const double *a, const double *b,
                                                            double *c)
{
    vector sum[NR][2];
    for (int j = 0; j < NR; j++)
        for (int h = 0; h < 2; h++)
            sum[j][h] = *(const vector *)(c + j * MC + h * 4);
    for (int p = 0; p < depth; p++) {
        vector a0 = *(const vector *)(a + p * MR), a1 = *(const vector *)(a + p * MR + 4);
        for (int j = 0; j < NR; j++) {
            double x = b[p * NR + j];
            sum[j][0] += a0 * x;
            sum[j][1] += a1 * x;
        }
    }
    for (int j = 0; j < NR; j++)
        for (int h = 0; h < 2; h++)
            *(vector *)(c + j * MC + h * 4) = sum[j][h];
}

__attribute__((target("avx2,fma"))) static void tile_avx2(int depth, const double *a, const double *b,
                                                          double *c)
{
    tile_body(depth, a, b, c);
}

static void tile_any(int depth, const double *a, const double *b, double *c) { tile_body(depth, a, b, c); }

/* Rounds block_c to FP32, as sums that leave the tensor cores are. */
static void round_block(int rows, int columns)
{
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++)
            block_c[j * MC + i] = (double)(float)block_c[j * MC + i];
}

/* block_c = the rows x columns block of op(A) op(B) that begins at a, b. */
static void multiply_block(int rows, int columns, int64_t k, matrix a, matrix b,
                           enum gpb_fake_rounding rounding)
{
    const bool round = rounding == GPB_FAKE_TF32;
    const int deepest = rounding == GPB_FAKE_CHUNKS ? GPB_SLICE_CHUNK : KC;
    void (*tile)(int, const double *, const double *, double *) =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? tile_avx2 : tile_any;
    for (int j = 0; j < (columns + NR - 1) / NR * NR; j++)
        memset(block_c + j * MC, 0, sizeof *block_c * (size_t)((rows + MR - 1) / MR * MR));
    for (int64_t p = 0; p < k; p += deepest) {
        int depth = k - p < deepest ? (int)(k - p) : deepest;
        pack_block(block_a, MR, rows, depth, (matrix){ a.at + p * a.cs, a.rs, a.cs }, round);
        pack_block(block_b, NR, columns, depth, (matrix){ b.at + p * b.rs, b.cs, b.rs }, round);
        for (int j = 0; j < columns; j += NR)
            for (int i = 0; i < rows; i += MR)
                tile(depth, block_a + i * depth, block_b + j * depth, block_c + j * MC + i);
        if (rounding == GPB_FAKE_CHUNKS)
            round_block(rows, columns);
    }
}

/* Rounds to FP32 at every step, in the reference BLAS's own order, so that results are netlib's bit for bit.
   LAPACK's suite has tests (STFSM) that fail with any other rounding, even a better one. (By the bound of
   names.h netlib's is worse, because beta C is rounded k times.) A's unit stride tells which of the
   reference's two loops it is. */
static void multiply_as_netlib(const gpb_gemm_args *g, matrix a, matrix b, float *c)
{
    const float alpha = (float)g->alpha[0], beta = (float)g->beta[0];
    for (int64_t j = 0; j < g->n; j++, c += g->ldc) {
        if (a.rs == 1) {
            for (int64_t i = 0; i < g->m; i++)
                c[i] = beta == 0 ? 0 : beta == 1 ? c[i] : beta * c[i];
            for (int64_t p = 0; p < g->k; p++) {
                const float scaled = alpha * b.at[p * b.rs + j * b.cs], *column = a.at + p * a.cs;
                for (int64_t i = 0; i < g->m; i++)
                    c[i] += scaled * column[i];
            }
        } else {
            for (int64_t i = 0; i < g->m; i++) {
                float sum = 0;
                for (int64_t p = 0; p < g->k; p++)
                    sum += a.at[i * a.rs + p * a.cs] * b.at[p * b.rs + j * b.cs];
                float x = g->k ? alpha * sum : 0;
                c[i] = beta == 0 ? x : x + beta * c[i];
            }
        }
    }
}

/* Eight rows of a column of sums, each a chain of FMAs; a: eight rows side by side. */
static inline __attribute__((always_inline)) void chains_body(int64_t k, const float *a, const float *b,
                                                              int64_t step, float *sum)
{
    float s[MR] = { 0 };
    for (int64_t p = 0; p < k; p++)
        for (int r = 0; r < MR; r++)
            s[r] = fmaf(a[p * MR + r], b[p * step], s[r]);
    memcpy(sum, s, sizeof s);
}

__attribute__((target("avx2,fma"))) static void chains_fma(int64_t k, const float *a, const float *b,
                                                           int64_t step, float *sum)
{
    chains_body(k, a, b, step, sum);
}

static void chains_any(int64_t k, const float *a, const float *b, int64_t step, float *sum)
{
    chains_body(k, a, b, step, sum);
}

/* What a kernel does with its sum: applies alpha, then beta. */
static void store(const gpb_gemm_args *g, float *to, float sum)
{
    const float x = (float)g->alpha[0] * sum;
    *to = g->beta[0] == 0 ? x : x + (float)g->beta[0] * *to;
}

static void multiply_by_fmas(const gpb_gemm_args *g, matrix a, matrix b, float *c)
{
    void (*chains)(int64_t, const float *, const float *, int64_t, float *) =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? chains_fma : chains_any;
    float *panel = calloc((size_t)g->k * MR + 1, sizeof *panel), sum[MR];
    if (!panel)
        gpb_fake_die("no memory");
    for (int64_t i0 = 0; i0 < g->m; i0 += MR) {
        const int64_t rows = g->m - i0 < MR ? g->m - i0 : MR;
        for (int64_t p = 0; p < g->k; p++)
            for (int64_t r = 0; r < MR; r++)
                panel[p * MR + r] = r < rows ? a.at[(i0 + r) * a.rs + p * a.cs] : 0;
        for (int64_t j = 0; j < g->n; j++) {
            chains(g->k, panel, b.at + j * b.cs, b.rs, sum);
            for (int64_t r = 0; r < rows; r++)
                store(g, c + i0 + r + j * g->ldc, sum[r]);
        }
    }
    free(panel);
}

/* TF32X3 kernels: block by block. */
static void multiply_directly(const gpb_gemm_args *g, matrix a, matrix b, float *c)
{
    static gpb_fake_sums sums;
    for (int64_t j0 = 0; j0 < g->n; j0 += NC)
        for (int64_t i0 = 0; i0 < g->m; i0 += MC) {
            const int rows = g->m - i0 < MC ? (int)(g->m - i0) : MC,
                      columns = g->n - j0 < NC ? (int)(g->n - j0) : NC;
            const matrix down = { a.at + i0 * a.rs, a.rs, a.cs }, across = { b.at + j0 * b.cs, b.rs, b.cs };
            gpb_gemm_args block = *g;
            block.m = rows;
            block.n = columns;
            if (!gpb_fake_direct(sums, rows, columns, g->k, down, across)) {
                multiply_by_fmas(&block, down, across, c + i0 + j0 * g->ldc);
                continue;
            }
            for (int j = 0; j < columns; j++)
                for (int i = 0; i < rows; i++)
                    store(g, c + i0 + i + (j0 + j) * g->ldc, sums[i][j]);
        }
}

void gpb_fake_multiply(const gpb_gemm_args *g, matrix a, matrix b, float *c, enum gpb_fake_rounding rounding)
{
    if (rounding == GPB_FAKE_NETLIB) {
        multiply_as_netlib(g, a, b, c);
        return;
    }
    if (g->k && rounding == GPB_FAKE_FMA)
        return multiply_by_fmas(g, a, b, c);
    if (g->k && rounding == GPB_FAKE_TF32X3)
        return multiply_directly(g, a, b, c);
    for (int64_t j0 = 0; j0 < g->n; j0 += NC)
        for (int64_t i0 = 0; i0 < g->m; i0 += MC) {
            int rows = g->m - i0 < MC ? (int)(g->m - i0) : MC,
                columns = g->n - j0 < NC ? (int)(g->n - j0) : NC;
            if (g->k)
                multiply_block(rows, columns, g->k, (matrix){ a.at + i0 * a.rs, a.rs, a.cs },
                               (matrix){ b.at + j0 * b.cs, b.rs, b.cs }, rounding);
            for (int j = 0; j < columns; j++)
                for (int i = 0; i < rows; i++) {
                    float *to = c + i0 + i + (j0 + j) * g->ldc;
                    double x = g->k ? g->alpha[0] * block_c[j * MC + i] : 0;
                    if (g->beta[0] != 0)
                        x += g->beta[0] * (double)*to;
                    *to = (float)x;
                }
        }
}

float *gpb_fake_matrix_at(int device, CUdeviceptr at, int64_t rows, int64_t columns, int64_t rs, int64_t cs,
                          const char *who)
{
    if (rows < 1 || columns < 1)
        return NULL;
    int64_t down = (rows - 1) * rs, across = (columns - 1) * cs;
    int64_t low = (down < 0 ? down : 0) + (across < 0 ? across : 0),
            high = (down > 0 ? down : 0) + (across > 0 ? across : 0);
    return gpb_fake_translate(device, at, low * 4, high * 4 + 4, who);
}

const void *gpb_fake_table_at(int device, const void *table, int64_t bytes, const char *who)
{
    return table ? gpb_fake_translate(device, (CUdeviceptr)table, 0, bytes, who) : NULL;
}

static int64_t padded(int64_t size, int tile) { return (size + tile - 1) / tile * tile; }

/* Checks a padded operand: aligned, unit row stride, zero outside rows x columns. */
static void check_padded(const gpb_fake_kernel *kernel, const char *name, CUdeviceptr device_at, matrix x,
                         const int64_t size[4])
{
    int64_t rows = size[0], columns = size[1], all_rows = size[2], all_columns = size[3];
    if (x.rs != 1 || x.cs % 4 || x.cs < all_rows || device_at % 256)
        gpb_fake_die("BAD LAUNCH of %s: padded %s at %#llx with strides %lld, %lld and %lld rows",
                     kernel->symbol, name, device_at, (long long)x.rs, (long long)x.cs, (long long)all_rows);
    for (int64_t j = 0; j < all_columns; j++)
        for (int64_t i = j < columns ? rows : 0; i < all_rows; i++)
            if (x.at[i + j * x.cs] != 0)
                gpb_fake_die("BAD LAUNCH of %s: padding of %s(%lld,%lld) is not zero", kernel->symbol, name,
                             (long long)i, (long long)j);
}

/* A kernel without guards writes the whole padded C, and promises nothing about the padding: so this makes it
   NaN. */
static void spoil_padding(const gpb_gemm_args *g, float *c, int64_t all_rows, int64_t all_columns)
{
    for (int64_t j = 0; j < all_columns; j++) {
        int64_t first = j < g->n ? g->m : 0;
        memset(c + first + j * g->ldc, 0xFF, sizeof *c * (size_t)(all_rows - first));
    }
}

void gpb_fake_each_block(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g, int64_t l,
                         gpb_fake_block_do *block, void *context)
{
    const int64_t rows = gpb_sliced_guards(g->m), cols = gpb_sliced_guards(g->n);
    const bool sliced = kernel->form == GPB_FORM_SLICED;
    if (!g->guard_a || !g->guard_b || !g->epoch_a || !g->epoch_b || GPB_GUARD % kernel->bm
        || GPB_GUARD % kernel->bn || g->level < 0 || g->level > 2 || (!sliced && !g->level))
        gpb_fake_die("BAD LAUNCH of %s: guard words %p, %p, epochs %llu, %llu, level %d", kernel->symbol,
                     (const void *)g->guard_a, (const void *)g->guard_b, (unsigned long long)g->epoch_a,
                     (unsigned long long)g->epoch_b, g->level);
    const uint64_t *a = gpb_fake_translate(device, (CUdeviceptr)(g->guard_a + l * g->stride_guard_a), 0,
                                           rows * 8, kernel->symbol);
    const uint64_t *b = gpb_fake_translate(device, (CUdeviceptr)(g->guard_b + l * g->stride_guard_b), 0,
                                           cols * 8, kernel->symbol);
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++) {
            const int level_a = gpb_guard_level(a[i], g->epoch_a),
                      level_b = gpb_guard_level(b[j], g->epoch_b);
            const int level = level_a > level_b ? level_a : level_b;
            if (sliced ? level == g->level : level >= g->level)
                block(context, i * GPB_GUARD, i + 1 < rows ? GPB_GUARD : g->m - i * GPB_GUARD, j * GPB_GUARD,
                      j + 1 < cols ? GPB_GUARD : g->n - j * GPB_GUARD);
        }
}

typedef gpb_fake_member member;

static void multiply_member(void *context, int64_t i, int64_t rows, int64_t j, int64_t columns)
{
    const member *x = context;
    gpb_gemm_args part = *x->g;
    matrix a = x->a, b = x->b;
    part.m = rows;
    part.n = columns;
    if (part.k) {
        a.at += i * a.rs;
        b.at += j * b.cs;
    }
    gpb_fake_multiply(&part, a, b, x->c + i + j * part.ldc, x->rounding);
}

/* Computes the split-K parts of a member: raw sums, one after another. */
static void multiply_parts(const gpb_fake_kernel *kernel, int device, const member *x, int64_t l)
{
    const gpb_gemm_args *g = x->g;
    const int64_t size = g->m * g->n,
                  depth = ((g->k + kernel->bk - 1) / kernel->bk + g->splits - 1) / g->splits * kernel->bk;
    float *parts = gpb_fake_matrix_at(device,
                                      (CUdeviceptr)((const float *)g->partials + l * g->splits * size), size,
                                      g->splits, 1, size, kernel->symbol);
    for (int64_t s = 0; s < g->splits; s++) {
        gpb_gemm_args raw = *g;
        const int64_t p = s * depth, left = p < g->k ? g->k - p : 0;
        raw.k = left < depth ? left : depth;
        raw.alpha[0] = 1;
        raw.beta[0] = 0;
        raw.ldc = g->m;
        member part = { &raw, x->a, x->b, parts + s * size, x->rounding };
        if (raw.k) {
            part.a.at += p * x->a.cs;
            part.b.at += p * x->b.rs;
        }
        multiply_member(&part, 0, g->m, 0, g->n);
    }
}

static enum gpb_fake_rounding rounding_of(const gpb_fake_kernel *kernel)
{
    const gpb_fake_options *options = gpb_fake_options_get();
    if (kernel->math == GPB_MATH_TF32)
        return GPB_FAKE_TF32;
    if (options->tensor)
        return kernel->math == GPB_MATH_FP16X3 ? GPB_FAKE_TF32X3 : GPB_FAKE_FMA;
    return options->netlib ? GPB_FAKE_NETLIB : GPB_FAKE_ONCE;
}

void gpb_fake_gemm(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g)
{
    bool padded_ab = kernel->form != GPB_FORM_STRIDED, padded_c = kernel->form == GPB_FORM_PADDED_C,
         cut = g->splits > 1;
    int64_t mp = padded_ab ? padded(g->m, kernel->bm) : g->m,
            np = padded_ab ? padded(g->n, kernel->bn) : g->n;
    int64_t kp = padded_ab ? padded(g->k, kernel->bk) : g->k;
    const gpb_gemm_item *items = gpb_fake_table_at(device, g->items, g->batch * (int64_t)sizeof *items,
                                                   kernel->symbol);
    if (cut && (padded_c || g->guard_a || g->alpha[0] == 0))
        gpb_fake_die("BAD LAUNCH of %s: %lld parts of k", kernel->symbol, (long long)g->splits);
    if (g->streamk_blocks)
        gpb_fake_streamk_check(kernel, device, g);
    for (int64_t l = 0; l < g->batch; l++) {
        CUdeviceptr at_a = (CUdeviceptr)(items ? items[l].a : g->a),
                    at_b = (CUdeviceptr)(items ? items[l].b : g->b);
        CUdeviceptr at_c = (CUdeviceptr)(items ? items[l].c : g->c);
        if (!items) {
            at_a += (CUdeviceptr)(l * g->stride_a * 4);
            at_b += (CUdeviceptr)(l * g->stride_b * 4);
            at_c += (CUdeviceptr)(l * g->stride_c * 4);
        }
        matrix a = { gpb_fake_matrix_at(device, at_a, mp, kp, g->rsa, g->csa, kernel->symbol), g->rsa,
                     g->csa };
        matrix b = { gpb_fake_matrix_at(device, at_b, kp, np, g->rsb, g->csb, kernel->symbol), g->rsb,
                     g->csb };
        if (padded_ab && g->k) {
            check_padded(kernel, "A", at_a, a, (const int64_t[]){ g->m, g->k, mp, kp });
            check_padded(kernel, "B", at_b, b, (const int64_t[]){ g->k, g->n, kp, np });
        }
        if (padded_c && (g->ldc % 4 || g->ldc < mp || at_c % 256 || g->beta[0] != 0))
            gpb_fake_die("BAD LAUNCH of %s: padded C at %#llx, ldc=%lld, beta=%g", kernel->symbol, at_c,
                         (long long)g->ldc, g->beta[0]);
        member x = { g, a, b, NULL, rounding_of(kernel) };
        if (cut) {
            multiply_parts(kernel, device, &x, l);
            continue;
        }
        x.c = gpb_fake_matrix_at(device, at_c, padded_c ? mp : g->m, padded_c ? np : g->n, 1, g->ldc,
                                 kernel->symbol);
        if (g->streamk_blocks)
            gpb_fake_streamk(kernel, device, &x, l);
        else if (g->guard_a)
            gpb_fake_each_block(kernel, device, g, l, multiply_member, &x);
        else
            multiply_member(&x, 0, g->m, 0, g->n);
        if (padded_c)
            spoil_padding(g, x.c, mp, np);
    }
}

/* Also spoils the partial sums that were added up, so that reading parts that no kernel has written gives
   NaN. */
void gpb_fake_reduce(int device, const gpb_reduce_args *g)
{
    const char *who = "gpb_sreduce";
    const gpb_gemm_item *items = gpb_fake_table_at(device, g->items, g->batch * (int64_t)sizeof *items, who);
    const int64_t size = g->m * g->n;
    if (g->splits < 2)
        gpb_fake_die("BAD LAUNCH of %s: %lld parts", who, (long long)g->splits);
    for (int64_t l = 0; l < g->batch; l++) {
        CUdeviceptr at = items ? (CUdeviceptr)items[l].c
                               : (CUdeviceptr)g->c + (CUdeviceptr)(l * g->stride_c * 4);
        float *parts = gpb_fake_matrix_at(device,
                                          (CUdeviceptr)((const float *)g->partials + l * g->splits * size),
                                          size, g->splits, 1, size, who);
        float *c = gpb_fake_matrix_at(device, at, g->m, g->n, 1, g->ldc, who);
        for (int64_t j = 0; j < g->n; j++)
            for (int64_t i = 0; i < g->m; i++) {
                float sum = 0, *to = c + i + j * g->ldc;
                for (int64_t s = 0; s < g->splits; s++)
                    sum += parts[s * size + i + j * g->m];
                double x = g->alpha[0] * (double)sum;
                *to = (float)(g->beta[0] == 0 ? x : x + g->beta[0] * (double)*to);
            }
        memset(parts, 0xFF, sizeof *parts * (size_t)(size * g->splits));
    }
}

void gpb_fake_pack(int device, const gpb_pack_args *g)
{
    const char *who = "gpb_spack";
    const void *const *items = gpb_fake_table_at(device, g->src_items, g->batch * (int64_t)sizeof *items,
                                                 who);
    if (g->rows > g->rows_padded || g->cols > g->cols_padded || g->ld < g->rows_padded)
        gpb_fake_die("BAD LAUNCH of %s: %lldx%lld into %lldx%lld, ld %lld", who, (long long)g->rows,
                     (long long)g->cols, (long long)g->rows_padded, (long long)g->cols_padded,
                     (long long)g->ld);
    for (int64_t l = 0; l < g->batch; l++) {
        CUdeviceptr at = items ? (CUdeviceptr)items[l]
                               : (CUdeviceptr)g->src + (CUdeviceptr)(l * g->stride_src * 4);
        const float *from = gpb_fake_matrix_at(device, at, g->rows, g->cols, g->rs, g->cs, who);
        CUdeviceptr at_to = (CUdeviceptr)g->dst + (CUdeviceptr)(l * g->stride_dst * 4);
        float *to = gpb_fake_matrix_at(device, at_to, g->rows_padded, g->cols_padded, 1, g->ld, who);
        for (int64_t j = 0; j < g->cols_padded; j++)
            for (int64_t i = 0; i < g->rows_padded; i++)
                to[i + j * g->ld] = i < g->rows && j < g->cols ? from[i * g->rs + j * g->cs] : 0;
    }
}

void gpb_fake_unpack(int device, const gpb_unpack_args *g)
{
    const char *who = "gpb_sunpack";
    void *const *items = gpb_fake_table_at(device, g->c_items, g->batch * (int64_t)sizeof *items, who);
    if (g->uplo != 'G' && g->uplo != 'U' && g->uplo != 'L')
        gpb_fake_die("BAD LAUNCH of %s: uplo %d", who, g->uplo);
    for (int64_t l = 0; l < g->batch; l++) {
        CUdeviceptr at = items ? (CUdeviceptr)items[l]
                               : (CUdeviceptr)g->c + (CUdeviceptr)(l * g->stride_c * 4);
        const float *w = gpb_fake_matrix_at(device, (CUdeviceptr)g->w + (CUdeviceptr)(l * g->stride_w * 4),
                                            g->m, g->n, 1, g->ldw, who);
        float *c = gpb_fake_matrix_at(device, at, g->m, g->n, 1, g->ldc, who);
        for (int64_t j = 0; j < g->n; j++)
            for (int64_t i = 0; i < g->m; i++) {
                int64_t row = i + g->row0, column = j + g->col0;
                float *to = c + i + j * g->ldc;
                if (g->uplo == 'G' || (g->uplo == 'U' ? row <= column : row >= column))
                    *to = g->beta[0] == 0 ? w[i + j * g->ldw]
                                          : (float)((double)w[i + j * g->ldw] + g->beta[0] * (double)*to);
            }
    }
}
