/* SPDX-License-Identifier: MIT */
/* gpb_sslice and the SLICED kernels, by kernels/sliced.h: real slices at their real places, so that a wrong
   place or a stale word shows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fakecuda.h"

/* Eight neighbours of a row at once: a piece, 16 bytes of a chunk. AVX2 has an instruction for most lines. */
enum { PIECE = 8 };
typedef float floats __attribute__((vector_size(4 * PIECE)));
typedef uint32_t words __attribute__((vector_size(4 * PIECE)));
typedef int32_t ints __attribute__((vector_size(4 * PIECE)));
typedef uint16_t halves __attribute__((vector_size(2 * PIECE)));
#define PICK(which, x, y) (((which) & (x)) | (~(which) & (y)))
#define INLINE static inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wpsabi"          /* no vector is passed, because all is inline */

static float exact_power(int exponent)
{
    const uint32_t bits = (uint32_t)(127 + exponent) << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* To FP16, to nearest, ties to even. Below 2^-14 in units of 2^-24, the last place of 0.5. */
INLINE words half_of(floats x)
{
    const words bits = (words)x & 0x7fffffff, sign = (words)x >> 16 & 0x8000;
    const ints size = (ints)bits, small = (ints)((floats)bits + 0.5f) - 0x3f000000,
               usual = (ints)((bits + 0xfff + (bits >> 13 & 1)) >> 13) - (112 << 10);
    ints half = PICK(size < 0x38800000, small, usual);
    half = PICK(size >= 0x477ff000, 0x7c00, half);            /* 65520 */
    half = PICK(size > 0x7f800000, 0x7e00, half);
    return (words)half | sign;
}

INLINE floats float_of(words half)
{
    const words low = (half & 0x7fff) << 13, size = (words)((floats)low * 0x1p112f);
    return (floats)(PICK((words)((ints)low >= 0x1f << 23), low | 0xff << 23, size) | (half & 0x8000) << 16);
}

/* To BF16, to nearest, ties to even, and back. */
INLINE words brief_of(floats x)
{
    const words bits = (words)x, is_nan = (words)((ints)(bits & 0x7fffffff) > 0x7f800000);
    return PICK(is_nan, 0x7fc0, (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

INLINE floats float_of_brief(words brief) { return (floats)(brief << 16); }

typedef gpb_fake_sliced sliced;

enum { CHUNK_BYTES = 2 * GPB_SLICE_CHUNK };

/* Row i of a chunk, CHUNK_BYTES in an order of their own. */
static char *chunk_at(const sliced *x, int64_t i, int64_t chunk, int slice)
{
    return x->at + ((chunk * x->slices + slice) * gpb_sliced_rows(x->rows) + i) * CHUNK_BYTES;
}

/* p: a multiple of PIECE. */
static char *piece_at(const sliced *x, int64_t i, int64_t p, int slice)
{
    const int64_t piece = (p / PIECE % 4) ^ (i / 2 % 4);
    return chunk_at(x, i, p / GPB_SLICE_CHUNK, slice) + piece * (2 * PIECE);
}

INLINE floats read_piece(const sliced *x, int64_t i, int64_t p, int slice)
{
    halves bits;
    memcpy(&bits, piece_at(x, i, p, slice), sizeof bits);
    const words wide = __builtin_convertvector(bits, words);
    return x->slices == 3 ? float_of_brief(wide) : float_of(wide);
}

void gpb_fake_slice(const gpb_fake_sliced *x, int64_t i, int64_t p, int slice, float to[PIECE])
{
    const floats piece = read_piece(x, i, p, slice);
    memcpy(to, &piece, sizeof piece);
}

/* False for a row that fills up. */
static bool has_row(const sliced *x, int64_t i)
{
    return x->two ? gpb_sliced_complex_row(i) < x->rows / 2 : i < x->rows;
}

/* Where the rows that fill up end, of which i is one. They lie side by side in each chunk. */
static int64_t filling_end(const sliced *x, int64_t i)
{
    while (i < gpb_sliced_rows(x->rows) && !has_row(x, i)) i++;
    return i;
}

static float *scales_of(const sliced *x)
{
    return (float *)(x->at + gpb_sliced_scales(x->rows, x->k, x->slices));
}

/* The mark (gemm_args.h) of a row, from the bits of its largest element and the number of elements within
   2^24 of that. */
static int row_mark(uint32_t largest, int64_t many, int64_t k)
{
    const bool extreme = abs((int)(largest >> 23) - 127) > GPB_SLICE_REACH || many < gpb_sliced_fewest(k);
    return largest && extreme ? GPB_MARK_EXTREME : 0;
}

/* The error that slices may have for an element, in units of half a unit in the last place: slices.cuh. */
static float tolerance(const sliced *x) { return x->slices == 1 ? 2 : fmaxf(2, 0.25f * sqrtf((float)x->k)); }

/* The marks of elements that are scaled to x and have the errors `missed`. zero: they were 0 before. */
INLINE ints element_marks(const sliced *of, ints zero, floats x, floats missed, float t)
{
    const int top = of->slices == 3 ? GPB_SLICE_WIDE_TOP : GPB_SLICE_TOP;
    const float least = exact_power(top - GPB_SLICE_SPREAD);
    const floats size = (floats)((words)x & 0x7fffffff), error = (floats)((words)missed & 0x7fffffff);
    ints mark = { 0 };
    if (of->slices == 2)
        mark = (size < 0x1p-14f) & GPB_MARK_FULL;
    if (of->slices < 3)
        mark = PICK((t * size < 0x1p-13f) | (error > t * 0x1p-24f * size), GPB_MARK_WIDE, mark);
    return ~zero & PICK(size < least, GPB_MARK_EXTREME, mark);
}

/* Cuts elements p to p + 7 of row i, which are x, into their slices. Returns their marks. */
INLINE ints cut(const sliced *to, int64_t i, int64_t p, floats x, float scale, float tolerance)
{
    const floats scaled = x * scale;
    floats rest = scaled;
    for (int s = 0; s < to->slices; s++) {
        const float up = to->slices < 3 && s ? 0x1p11f : 1, down = to->slices < 3 && s ? 0x1p-11f : 1;
        const words slice = to->slices == 3 ? brief_of(rest) : half_of(rest * up);
        rest -= (to->slices == 3 ? float_of_brief(slice) : float_of(slice)) * down;
        const halves bits = __builtin_convertvector(slice, halves);
        memcpy(piece_at(to, i, p, s), &bits, sizeof bits);
    }
    const floats none = { 0 };
    return element_marks(to, x == 0, scaled, to->slices == 1 ? none : rest, tolerance);
}

/* Cuts row i into its slices. Returns its mark. A row without rest has elements of at most 22 bits, some of
   more than 11. Behind the row are zeros, up to whole chunks. */
INLINE int slice_row_body(const sliced *to, int64_t i, const float *row)
{
    const int64_t length = gpb_sliced_chunks(to->k) * GPB_SLICE_CHUNK;
    const float t = tolerance(to);
    uint32_t largest = 0, all = 0, many = 0;
    for (int64_t p = 0; p < length; p++) {
        uint32_t bits;
        memcpy(&bits, row + p, sizeof bits);
        bits &= 0x7fffffff;
        largest = bits > largest ? bits : largest;
        all |= bits;
    }
    const uint32_t least = largest > 24u << 23 ? largest - (24u << 23) : 1;
    for (int64_t p = 0; p < length; p++) {
        uint32_t bits;
        memcpy(&bits, row + p, sizeof bits);
        many += (bits & 0x7fffffff) >= least;
    }
    const unsigned top = largest ? largest >> 23 : 127;
    const int at = (int)top - 127;
    const int inside = at > GPB_SLICE_REACH ? GPB_SLICE_REACH : at < -GPB_SLICE_REACH ? -GPB_SLICE_REACH : at;
    const int exponent = largest ? inside - (to->slices == 3 ? GPB_SLICE_WIDE_TOP : GPB_SLICE_TOP) : 0;
    const float scale = ldexpf(1, -exponent);
    int mark = row_mark(largest, many, to->k);
    if (to->slices == 2 && !mark && (all & 0x1fff) && !(all & 3))
        mark = GPB_MARK_FULL;
    scales_of(to)[i] = ldexpf(1, exponent);
    ints marks = { 0 };
    for (int64_t p = 0; p < length; p += PIECE) {
        floats x;
        memcpy(&x, row + p, sizeof x);
        const ints of = cut(to, i, p, x, scale, t);
        marks = PICK(of > marks, of, marks);
    }
    for (int x = 0; x < PIECE; x++) mark = marks[x] > mark ? marks[x] : mark;
    return mark;
}

__attribute__((target("avx2"))) static int slice_row_avx2(const sliced *to, int64_t i, const float *row)
{
    return slice_row_body(to, i, row);
}

static int slice_row(const sliced *to, int64_t i, const float *row)
{
    return __builtin_cpu_supports("avx2") ? slice_row_avx2(to, i, row) : slice_row_body(to, i, row);
}

/* Rows that fill up. */
static void clear_rows(const sliced *to, int64_t i, int64_t end)
{
    for (int64_t row = i; row < end; row++) scales_of(to)[row] = 1;
    for (int64_t chunk = 0; chunk < gpb_sliced_chunks(to->k); chunk++)
        for (int s = 0; s < to->slices; s++)
            memset(chunk_at(to, i, chunk, s), 0, (size_t)((end - i) * CHUNK_BYTES));
}

/* Raises the guard word of row i's block to `mark`, unless it is higher already. GPB_MARK_WIDE also sets the
   word behind all of them. */
static void set_mark(const sliced *of, int64_t i, int mark, uint64_t epoch)
{
    uint64_t *guard = (uint64_t *)(of->at + gpb_sliced_guard(of->rows, of->k, of->slices)),
             *word = guard + i / GPB_GUARD;
    if (mark > gpb_guard_mark(*word, epoch))
        *word = gpb_guard_word(mark, epoch);
    if (mark == GPB_MARK_WIDE)
        guard[gpb_sliced_guards(of->rows)] = epoch;
}

/* False if gpb_sslice must leave member l as it is. */
static bool is_wanted(const char *who, int device, const gpb_slice_args *g, int64_t l)
{
    if (!g->if_a)
        return true;
    const uint64_t *a = gpb_fake_translate(device, (CUdeviceptr)(g->if_a + l * g->stride_if_a), 0, 8, who);
    const uint64_t *b = gpb_fake_translate(device, (CUdeviceptr)(g->if_b + l * g->stride_if_b), 0, 8, who);
    return *a == g->epoch_if_a || *b == g->epoch_if_b;
}

/* What slice_operand slices, and how. row: room for a row, with zeros behind it up to whole chunks. */
typedef struct slicing {
    const gpb_fake_kernel *kernel;
    const gpb_slice_args *g;
    const gpb_slice_operand *x;
    bool is_a;
    float *row;
} slicing;

/* Real row i of an operand, to s->row. */
static void spell_row(const slicing *s, const sliced *to, const float *from, int64_t i)
{
    const gpb_slice_operand *x = s->x;
    if (!gpb_fake_is_complex(s->kernel)) {
        for (int64_t p = 0; p < to->k; p++) s->row[p] = from[i * x->rs + p * x->cs];
        return;
    }
    const bool conj = s->is_a ? s->g->conj_a : s->g->conj_b, imaginary = to->two && i / 8 % 2;
    for (int64_t p = 0; p < to->k; p += 2) {
        const float *at = from + 2 * ((to->two ? gpb_sliced_complex_row(i) : i) * x->rs + p / 2 * x->cs);
        const float im = conj ? -at[1] : at[1];
        s->row[p] = imaginary ? im : at[0];
        s->row[p + 1] = imaginary ? at[0] : to->two ? -im : im;
    }
}

static void slice_member(const slicing *s, int device, const float *from, const sliced *to)
{
    for (int64_t i = 0; i < gpb_sliced_rows(to->rows); i++) {
        if (!has_row(to, i)) {
            const int64_t end = filling_end(to, i);
            clear_rows(to, i, end);
            i = end - 1;
            continue;
        }
        spell_row(s, to, from, i);
        const int mark = slice_row(to, i, s->row);
        set_mark(to, i, mark, s->x->epoch);
        if (mark >= GPB_MARK_WIDE && s->g->flagged)
            *(uint32_t *)gpb_fake_translate(device, (CUdeviceptr)s->g->flagged, 0, 4, s->kernel->symbol) = 1;
    }
}

static void slice_operand(const gpb_fake_kernel *kernel, int device, const gpb_slice_args *g, bool is_a)
{
    const gpb_slice_operand *x = is_a ? &g->a : &g->b;
    const char *who = kernel->symbol;
    const bool is_complex = gpb_fake_is_complex(kernel), two = is_complex && is_a;
    const void *const *items = gpb_fake_table_at(device, x->src_items, g->batch * (int64_t)sizeof *items,
                                                 who);
    const int64_t bytes = gpb_sliced_bytes(x->rows, g->k, g->slices);
    if (!x->epoch || (CUdeviceptr)x->dst % 1024 || (is_complex && g->k % 2) || (two && x->rows % 2))
        gpb_fake_die("BAD LAUNCH of %s: epoch %llu, to %p, %lld rows, k=%lld", who,
                     (unsigned long long)x->epoch, x->dst, (long long)x->rows, (long long)g->k);
    const slicing s = { kernel, g, x, is_a,
                        calloc((size_t)gpb_sliced_chunks(g->k), sizeof(float) * GPB_SLICE_CHUNK) };
    if (!s.row)
        gpb_fake_die("no memory");
    for (int64_t l = 0; l < g->batch; l++) {
        CUdeviceptr at = items ? (CUdeviceptr)items[l]
                               : (CUdeviceptr)x->src
                                     + (CUdeviceptr)(l * x->stride) * gpb_type_bytes(kernel->type);
        const float *from = gpb_fake_matrix_at(device, kernel->type, at, two ? x->rows / 2 : x->rows,
                                               is_complex ? g->k / 2 : g->k, x->rs, x->cs, who);
        const sliced to = { x->rows, g->k, two, g->slices,
                            gpb_fake_translate(device, (CUdeviceptr)x->dst + (CUdeviceptr)(l * bytes), 0,
                                               bytes, who) };
        if (is_wanted(who, device, g, l))
            slice_member(&s, device, from, &to);
    }
    free(s.row);
}

void gpb_fake_slicer(const gpb_fake_kernel *kernel, int device, const gpb_slice_args *g)
{
    if (g->slices < 1 || g->slices > 3)
        gpb_fake_die("BAD LAUNCH of %s: %d slices", kernel->symbol, g->slices);
    memset(gpb_fake_translate(device, (CUdeviceptr)g->counters, 0, GPB_SLICED_COUNTERS * 4, kernel->symbol),
           0, GPB_SLICED_COUNTERS * 4);
    if (g->a.rows)
        slice_operand(kernel, device, g, true);
    if (g->b.rows)
        slice_operand(kernel, device, g, false);
}

/* ---- the GEMM */

/* Dies unless all of the rows that fill up is zero. */
static void check_filling(const char *who, const sliced *x, int64_t i, int64_t end)
{
    const int64_t bytes = (end - i) * CHUNK_BYTES;
    for (int64_t chunk = 0; chunk < gpb_sliced_chunks(x->k); chunk++)
        for (int s = 0; s < x->slices; s++) {
            const int64_t zeros = gpb_fake_zeros(chunk_at(x, i, chunk, s), bytes);
            if (zeros < bytes)
                gpb_fake_die("BAD LAUNCH of %s: filling at row %lld is not zero", who,
                             (long long)(i + zeros / CHUNK_BYTES));
        }
}

/* Row i as its slices add up, up to whole chunks. */
INLINE void join_row_body(const sliced *x, int64_t i, float *to)
{
    for (int64_t p = 0; p < gpb_sliced_chunks(x->k) * GPB_SLICE_CHUNK; p += PIECE) {
        floats sum = { 0 };
        for (int s = x->slices - 1; s >= 0; s--)
            sum += read_piece(x, i, p, s) * (x->slices == 2 && s ? 0x1p-11f : 1);
        memcpy(to + p, &sum, sizeof sum);
    }
}

__attribute__((target("avx2"))) static void join_row_avx2(const sliced *x, int64_t i, float *to)
{
    join_row_body(x, i, to);
}

static void join_row(const sliced *x, int64_t i, float *to)
{
    if (__builtin_cpu_supports("avx2"))
        join_row_avx2(x, i, to);
    else
        join_row_body(x, i, to);
}

/* The numbers that the slices stand for, scaled, row by row. The rows and k that fill up must be zeros. */
static float *join(const char *who, const sliced *x)
{
    const int64_t rows = gpb_sliced_rows(x->rows), k = gpb_sliced_chunks(x->k) * GPB_SLICE_CHUNK;
    float *joined = calloc((size_t)(rows * x->k), sizeof *joined), *row = malloc(sizeof *row * (size_t)k);
    if (!joined || !row)
        gpb_fake_die("no memory");
    for (int64_t i = 0; i < rows; i++) {
        if (!has_row(x, i)) {
            const int64_t end = filling_end(x, i);
            check_filling(who, x, i, end);
            i = end - 1;
            continue;
        }
        join_row(x, i, row);
        memcpy(joined + i * x->k, row, sizeof *row * (size_t)x->k);
        for (int64_t p = x->k; p < k; p++)
            if (row[p] != 0)
                gpb_fake_die("BAD LAUNCH of %s: filling at row %lld, k %lld is not zero", who, (long long)i,
                             (long long)p);
    }
    free(row);
    return joined;
}

/* An operand's member, checked to be where it must be. */
static sliced operand_at(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g, bool is_a,
                         int64_t l)
{
    const int slices = kernel->math == GPB_MATH_BF16X6 ? 3 : kernel->math == GPB_MATH_FP16X3 ? 2 : 1;
    sliced x = { is_a ? g->m : g->n, g->k, is_a && gpb_fake_is_complex(kernel), slices, NULL };
    const CUdeviceptr at = (CUdeviceptr)(is_a ? g->a : g->b),
                      guard = (CUdeviceptr)(is_a ? g->guard_a : g->guard_b);
    const int64_t stride = is_a ? g->stride_a : g->stride_b,
                  stride_guard = is_a ? g->stride_guard_a : g->stride_guard_b;
    const int64_t bytes = gpb_sliced_bytes(x.rows, x.k, x.slices);
    /* At level 1 the guard words belong to other slices. Members may share an operand: one member for each
       strip of the other. */
    const bool own = guard == at + (CUdeviceptr)gpb_sliced_guard(x.rows, x.k, x.slices)
                     && stride_guard * 8 == stride * 4;
    if (at % 1024 || (stride * 4 != bytes && stride) || (g->level == 0 && !own))
        gpb_fake_die("BAD LAUNCH of %s: operand at %#llx, guard words at %#llx, strides %lld, %lld",
                     kernel->symbol, at, guard, (long long)stride, (long long)stride_guard);
    x.at = gpb_fake_translate(device, at + (CUdeviceptr)(l * stride * 4), 0, bytes, kernel->symbol);
    return x;
}

typedef struct product {
    const gpb_fake_kernel *kernel;
    const gpb_gemm_args *g;
    sliced a, b;
    gpb_fake_slices of;
    float *joined_a, *joined_b;          /* NULL until a block is computed, because slices that nothing needs
                                            may be missing */
    void *c;
} product;

/* The sums of a block's scaled operands. */
static void sum_block(product *x, int64_t i0, int rows, int64_t j0, int columns, gpb_fake_sums sums)
{
    static float exact[GPB_GUARD * GPB_GUARD];
    const int64_t k = x->g->k;
    const gpb_gemm_args raw = { .m = rows, .n = columns, .k = k, .ldc = rows, .alpha = { 1 } };
    if (!x->joined_a) {
        x->joined_a = join(x->kernel->symbol, &x->a);
        x->joined_b = join(x->kernel->symbol, &x->b);
    }
    if (gpb_fake_options_get()->tensor)
        return gpb_fake_slices_sum(&x->of, i0, rows, j0, columns, sums);
    gpb_fake_multiply(&raw, (gpb_fake_matrix){ x->joined_a + i0 * k, k, 1 },
                      (gpb_fake_matrix){ x->joined_b + j0 * k, 1, k }, exact, GPB_FAKE_CHUNKS);
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < rows; i++)
            sums[i][j] = exact[i + j * rows];
}

/* The sum of row i and column j, scaled back. */
static float scale_back(const product *x, float sum, int64_t i, int64_t j)
{
    const float up = scales_of(&x->a)[i], across = scales_of(&x->b)[j];
    return x->a.slices < 3 ? sum * up * across : sum * fmaxf(up, across) * fminf(up, across);
}

/* Computes a block of C: the sums of scaled operands, scaled back, then one FP32 rounding at each step, as in
   kernels/sliced/store.cuh. */
static void multiply_block(void *context, int64_t i0, int64_t rows, int64_t j0, int64_t columns)
{
    product *x = context;
    static gpb_fake_sums sums;
    sum_block(x, i0, (int)rows, j0, (int)columns, sums);
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++) {
            float *to = (float *)x->c + i0 + i + (j0 + j) * x->g->ldc;
            if (!gpb_fake_has(x->g, i0 + i, j0 + j))
                continue;
            const float sum = (float)x->g->alpha[0] * scale_back(x, sums[i][j], i0 + i, j0 + j);
            *to = x->g->beta[0] == 0 ? sum : sum + (float)x->g->beta[0] * *to;
        }
}

/* (x[0], x[1]) *= y, as Fortran multiplies. */
static void multiply_complex(float x[2], const double y[2])
{
    const float re = x[0], im = x[1], by_re = (float)y[0], by_im = (float)y[1];
    x[0] = by_re * re - by_im * im;
    x[1] = by_re * im + by_im * re;
}

/* The same for complex C. The rows that end a block are followed by filling, up to a multiple of 16. */
static void multiply_complex_block(void *context, int64_t i0, int64_t rows, int64_t j0, int64_t columns)
{
    product *x = context;
    static gpb_fake_sums sums;
    const gpb_gemm_args *g = x->g;
    sum_block(x, i0, (int)((rows + 15) / 16 * 16), j0, (int)columns, sums);
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows / 2; i++) {
            const int64_t re = i / 8 * 16 + i % 8, im = re + 8;
            float *to = (float *)x->c + 2 * (i0 / 2 + i + (j0 + j) * g->ldc);
            float sum[2] = { scale_back(x, sums[re][j], i0 + re, j0 + j),
                             scale_back(x, sums[im][j], i0 + im, j0 + j) };
            if (!gpb_fake_has(g, i0 / 2 + i, j0 + j))
                continue;
            multiply_complex(sum, g->alpha);
            if (g->beta[0] != 0 || g->beta[1] != 0) {
                if (g->hermitian) {
                    to[0] *= (float)g->beta[0];
                    to[1] *= (float)g->beta[0];
                } else if (g->beta[0] != 1 || g->beta[1] != 0) {
                    multiply_complex(to, g->beta);
                }
                sum[0] += to[0];
                sum[1] += to[1];
            }
            if (g->hermitian && i0 / 2 + i == j0 + j)
                sum[1] = 0;
            memcpy(to, sum, sizeof sum);
        }
}

/* Checks that there is room for the tiles whose k is cut and that the counters are zero. Then spoils both. */
static void use_workspace(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g)
{
    const int64_t room = gpb_sliced_partial_bytes(GPB_FAKE_CLUSTERS,
                                                  gpb_fake_sliced_bm(kernel) * kernel->bn);
    char *parts = gpb_fake_translate(device, (CUdeviceptr)g->partials, 0, room, kernel->symbol);
    uint32_t *counters = gpb_fake_translate(device, (CUdeviceptr)g->counters, 0, GPB_SLICED_COUNTERS * 4,
                                            kernel->symbol);
    memset(parts, 0xFF, 256);
    memset(parts + room - 256, 0xFF, 256);
    for (int i = 0; i < GPB_SLICED_COUNTERS; i++)
        if (counters[i])
            gpb_fake_die("BAD LAUNCH of %s: counter %d is not zero", kernel->symbol, i);
    memset(counters, 0xFF, GPB_SLICED_COUNTERS * 4);
}

void gpb_fake_sliced_gemm(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g)
{
    const gpb_gemm_item *items = gpb_fake_table_at(device, g->items, g->batch * (int64_t)sizeof *items,
                                                   kernel->symbol);
    const bool is_complex = gpb_fake_is_complex(kernel);
    if (g->splits > 1 || (is_complex && (g->m % 2 || g->k % 2)))
        gpb_fake_die("BAD LAUNCH of %s: %lld parts of k, m=%lld, k=%lld", kernel->symbol,
                     (long long)g->splits, (long long)g->m, (long long)g->k);
    use_workspace(kernel, device, g);
    for (int64_t l = 0; l < g->batch; l++) {
        const CUdeviceptr at = items ? (CUdeviceptr)items[l].c
                                     : (CUdeviceptr)g->c
                                           + (CUdeviceptr)(l * g->stride_c) * gpb_type_bytes(kernel->type);
        product x = { kernel, g, operand_at(kernel, device, g, true, l),
                      operand_at(kernel, device, g, false, l), { 0 }, NULL, NULL,
                      gpb_fake_matrix_at(device, kernel->type, at, is_complex ? g->m / 2 : g->m, g->n, 1,
                                         g->ldc, kernel->symbol) };
        x.of = (gpb_fake_slices){ kernel, device, g, l, &x.a, &x.b };
        gpb_fake_each_block(kernel, device, g, l, is_complex ? multiply_complex_block : multiply_block, &x);
        free(x.joined_a);
        free(x.joined_b);
    }
}
