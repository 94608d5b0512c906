/* SPDX-License-Identifier: MIT */
/* GEMM kernels, and those that pack, unpack and add up: every operand is translated and bounds-checked, and
   what a kernel may count on is checked. fake_multiply.c and fake_element.c compute. */
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fakecuda.h"

void *gpb_fake_matrix_at(int device, enum gpb_type type, CUdeviceptr at, int64_t rows, int64_t columns,
                         int64_t rs, int64_t cs, const char *who)
{
    const int64_t bytes = (int64_t)gpb_type_bytes(type);
    if (rows < 1 || columns < 1)
        return NULL;
    if (at % gpb_type_real_bytes(type))
        gpb_fake_die("MISALIGNED: %s uses %#llx", who, at);
    int64_t down = (rows - 1) * rs, across = (columns - 1) * cs;
    int64_t low = (down < 0 ? down : 0) + (across < 0 ? across : 0),
            high = (down > 0 ? down : 0) + (across > 0 ? across : 0);
    return gpb_fake_translate(device, at, low * bytes, high * bytes + bytes, who);
}

const void *gpb_fake_table_at(int device, const void *table, int64_t bytes, const char *who)
{
    return table ? gpb_fake_translate(device, (CUdeviceptr)table, 0, bytes, who) : NULL;
}

static int64_t padded(int64_t size, int tile) { return (size + tile - 1) / tile * tile; }

/* Checks a padded operand: aligned, unit row stride, zero outside rows x columns. */
static void check_padded(const gpb_fake_kernel *kernel, const char *name, CUdeviceptr device_at,
                         gpb_fake_operand x, const int64_t size[4])
{
    const int64_t bytes = (int64_t)gpb_type_bytes(kernel->type);
    int64_t rows = size[0], columns = size[1], all_rows = size[2], all_columns = size[3];
    if (x.rs != 1 || x.cs % 4 || x.cs < all_rows || device_at % 256)
        gpb_fake_die("BAD LAUNCH of %s: padded %s at %#llx with strides %lld, %lld and %lld rows",
                     kernel->symbol, name, device_at, (long long)x.rs, (long long)x.cs, (long long)all_rows);
    for (int64_t j = 0; j < all_columns; j++) {
        const int64_t first = j < columns ? rows : 0, length = (all_rows - first) * bytes;
        const int64_t zeros = gpb_fake_zeros((const char *)x.at + (first + j * x.cs) * bytes, length);
        if (zeros < length)
            gpb_fake_die("BAD LAUNCH of %s: padding of %s(%lld,%lld) is not zero", kernel->symbol, name,
                         (long long)(first + zeros / bytes), (long long)j);
    }
}

/* A kernel without guards writes the whole padded C, and promises nothing about the padding: so this makes it
   NaN. */
static void spoil_padding(const gpb_fake_member *x, int64_t all_rows, int64_t all_columns)
{
    const gpb_gemm_args *g = x->g;
    const int64_t bytes = (int64_t)gpb_type_bytes(x->type);
    for (int64_t j = 0; j < all_columns; j++) {
        int64_t first = j < g->n ? g->m : 0;
        memset((char *)x->c + (first + j * g->ldc) * bytes, 0xFF, (size_t)((all_rows - first) * bytes));
    }
}

void gpb_fake_each_block(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g, int64_t l,
                         gpb_fake_block_do *block, void *context)
{
    const bool leaves = kernel->form == GPB_FORM_SLICED || kernel->form == GPB_FORM_RESIDUES;
    const int high = GPB_GUARD_ROWS(gpb_fake_is_complex(kernel) && kernel->form != GPB_FORM_SLICED);
    const int64_t rows = (g->m + high - 1) / high, cols = gpb_sliced_guards(g->n);
    if (!g->guard_a || !g->guard_b || !g->epoch_a || !g->epoch_b || high % kernel->bm
        || GPB_GUARD % kernel->bn || g->level < 0 || g->level > 2 || (!leaves && !g->level))
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
            if (leaves ? level == g->level : level >= g->level)
                block(context, i * high, i + 1 < rows ? high : g->m - i * high, j * GPB_GUARD,
                      j + 1 < cols ? GPB_GUARD : g->n - j * GPB_GUARD);
        }
}

typedef gpb_fake_member member;

void gpb_fake_keep_triangle(const gpb_fake_member *x, const gpb_fake_range *range, const void *products)
{
    const gpb_gemm_args *g = x->g;
    const gpb_unpack_args args = { .m = range->rows, .n = range->columns, .ldw = range->rows, .ldc = g->ldc,
                                   .beta = { g->beta[0], g->beta[1] }, .row0 = range->i, .col0 = range->j,
                                   .batch = 1, .uplo = g->uplo, .hermitian = g->hermitian };
    char *c = (char *)x->c + (range->i + range->j * g->ldc) * (int64_t)gpb_type_bytes(x->type);
    gpb_fake_element_of(x->type)->unpack(&args, products, c);
}

void *gpb_fake_apart(const gpb_fake_member *x, const gpb_fake_range *range)
{
    void *apart = malloc((size_t)(range->rows * range->columns) * gpb_type_bytes(x->type));
    if (!apart)
        gpb_fake_die("no memory");
    return apart;
}

void gpb_fake_multiply_part(const gpb_fake_member *x, const gpb_fake_range *range)
{
    gpb_gemm_args g;
    member part = gpb_fake_within(x, range, &g);
    if (x->g->uplo) {
        part.c = gpb_fake_apart(x, range);
        g.ldc = range->rows;
        g.beta[0] = g.beta[1] = 0;
    }
    gpb_fake_multiply_member(&part);
    if (x->g->uplo) {
        gpb_fake_keep_triangle(x, range, part.c);
        free(part.c);
    }
}

static void multiply_member(void *context, int64_t i, int64_t rows, int64_t j, int64_t columns)
{
    const member *x = context;
    gpb_fake_multiply_part(x, &(gpb_fake_range){ i, rows, j, columns, 0, x->g->k });
}

/* Where member l begins, if there is no table. */
static CUdeviceptr member_at(enum gpb_type type, const void *first, int64_t stride, int64_t l)
{
    return (CUdeviceptr)first + (CUdeviceptr)(l * stride) * gpb_type_bytes(type);
}

/* The split-K parts of member l: raw sums, one after another. */
static char *parts_at(const gpb_fake_kernel *kernel, int device, const void *partials, int64_t size,
                      int64_t splits, int64_t l)
{
    const CUdeviceptr at = member_at(kernel->type, partials, splits * size, l);
    return gpb_fake_matrix_at(device, kernel->type, at, size, splits, 1, size, kernel->symbol);
}

static void multiply_parts(const gpb_fake_kernel *kernel, int device, const member *x, int64_t l)
{
    const gpb_gemm_args *g = x->g;
    const int64_t size = g->m * g->n,
                  depth = ((g->k + kernel->bk - 1) / kernel->bk + g->splits - 1) / g->splits * kernel->bk;
    char *parts = parts_at(kernel, device, g->partials, size, g->splits, l);
    for (int64_t s = 0; s < g->splits; s++) {
        const int64_t p = s * depth < g->k ? s * depth : g->k, left = g->k - p;
        gpb_gemm_args raw;
        const gpb_fake_range range = { 0, g->m, 0, g->n, p, left < depth ? left : depth };
        member part = gpb_fake_within(x, &range, &raw);
        raw.beta[0] = raw.beta[1] = 0;
        raw.ldc = g->m;
        part.raw = true;
        part.c = parts + s * size * (int64_t)gpb_type_bytes(kernel->type);
        gpb_fake_multiply_member(&part);
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

static bool is_zero(const double x[2]) { return x[0] == 0 && x[1] == 0; }

/* A and B of member l, checked. */
static member operands_of(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g,
                          const gpb_gemm_item *items, int64_t l)
{
    const bool pads = kernel->form == GPB_FORM_PADDED || kernel->form == GPB_FORM_PADDED_C;
    const int64_t mp = pads ? padded(g->m, kernel->bm) : g->m, np = pads ? padded(g->n, kernel->bn) : g->n,
                  kp = pads ? padded(g->k, kernel->bk) : g->k;
    const enum gpb_type type = kernel->type;
    const char *who = kernel->symbol;
    if (kernel->form == GPB_FORM_MAPPED) items = NULL;        /* A and B are where their maps say */
    const CUdeviceptr at_a = items ? (CUdeviceptr)items[l].a : member_at(type, g->a, g->stride_a, l),
                      at_b = items ? (CUdeviceptr)items[l].b : member_at(type, g->b, g->stride_b, l);
    const member x = {
        .g = g, .type = type, .rounding = rounding_of(kernel),
        .a = { gpb_fake_matrix_at(device, type, at_a, mp, kp, g->rsa, g->csa, who), g->rsa, g->csa,
               g->conj_a != 0 },
        .b = { gpb_fake_matrix_at(device, type, at_b, kp, np, g->rsb, g->csb, who), g->rsb, g->csb,
               g->conj_b != 0 }
    };
    if (pads && g->k) {
        check_padded(kernel, "A", at_a, x.a, (const int64_t[]){ g->m, g->k, mp, kp });
        check_padded(kernel, "B", at_b, x.b, (const int64_t[]){ g->k, g->n, kp, np });
    }
    return x;
}

/* rows x columns elements from strides rs and cs to others. */
static void copy_elements(char *to, int64_t to_rs, int64_t to_cs, const gpb_fake_operand *from,
                          int64_t rows, int64_t columns, int64_t bytes)
{
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            memcpy(to + (i * to_rs + j * to_cs) * bytes,
                   (const char *)from->at + (i * from->rs + j * from->cs) * bytes, (size_t)bytes);
}

/* Two products as one of their k tiles: each product's k is filled up with zeros. Makes the operands. */
static void join(const gpb_fake_kernel *kernel, member *x, gpb_gemm_args *g)
{
    const int64_t bytes = (int64_t)gpb_type_bytes(x->type), n = g->n, k = g->k, kp = padded(k, kernel->bk);
    char *a = calloc((size_t)(2 * kp * n), (size_t)bytes), *b = calloc((size_t)(2 * kp * n), (size_t)bytes);
    if (!a || !b)
        gpb_fake_die("no memory");
    copy_elements(a, 1, n, &x->a, n, k, bytes);
    copy_elements(b, 1, 2 * kp, &x->b, k, n, bytes);
    copy_elements(a + kp * n * bytes, n, 1, &x->b, k, n, bytes);
    copy_elements(b + kp * bytes, 2 * kp, 1, &x->a, n, k, bytes);
    g->k = 2 * kp;
    x->g = g;
    x->a = (gpb_fake_operand){ a, 1, n, x->a.conj };
    x->b = (gpb_fake_operand){ b, 1, 2 * kp, x->b.conj };
}

/* Computes member l, whose A and B are set. */
static void multiply_into(const gpb_fake_kernel *kernel, int device, member *x, CUdeviceptr at, int64_t l)
{
    const gpb_gemm_args *g = x->g;
    const bool pads = kernel->form == GPB_FORM_PADDED_C;
    const int64_t mp = pads ? padded(g->m, kernel->bm) : g->m, np = pads ? padded(g->n, kernel->bn) : g->n;
    if (pads && (g->ldc % 4 || g->ldc < mp || at % 256 || !is_zero(g->beta)))
        gpb_fake_die("BAD LAUNCH of %s: padded C at %#llx, ldc=%lld, beta=%g%+gi", kernel->symbol, at,
                     (long long)g->ldc, g->beta[0], g->beta[1]);
    x->c = gpb_fake_matrix_at(device, x->type, at, mp, np, 1, g->ldc, kernel->symbol);
    if (g->streamk_blocks)
        gpb_fake_streamk(kernel, device, x, l);
    else if (g->guard_a)
        gpb_fake_each_block(kernel, device, g, l, multiply_member, x);
    else
        multiply_member(x, 0, g->m, 0, g->n);
    if (pads)
        spoil_padding(x, mp, np);
}

void gpb_fake_gemm(const gpb_fake_kernel *kernel, int device, const gpb_gemm_args *g, int products)
{
    const bool cut = g->splits > 1, joins = products == 2 && g->k && !is_zero(g->alpha);
    const gpb_gemm_item *items = gpb_fake_table_at(device, g->items, g->batch * (int64_t)sizeof *items,
                                                   kernel->symbol);
    if (cut && (kernel->form == GPB_FORM_PADDED_C || g->guard_a || is_zero(g->alpha)))
        gpb_fake_die("BAD LAUNCH of %s: %lld parts of k", kernel->symbol, (long long)g->splits);
    if (g->streamk_blocks)
        gpb_fake_streamk_check(kernel, device, g);
    for (int64_t l = 0; l < g->batch; l++) {
        member x = operands_of(kernel, device, g, items, l);
        const CUdeviceptr at = items ? (CUdeviceptr)items[l].c
                                     : member_at(x.type, g->c, g->stride_c, l);
        gpb_gemm_args both = *g;
        if (joins)
            join(kernel, &x, &both);
        if (cut)
            multiply_parts(kernel, device, &x, l);
        else
            multiply_into(kernel, device, &x, at, l);
        if (joins) {
            free((void *)(uintptr_t)x.a.at);
            free((void *)(uintptr_t)x.b.at);
        }
    }
}

static void add_up_triangle(const gpb_fake_kernel *kernel, const gpb_reduce_args *g, gpb_fake_parts *parts,
                            void *c)
{
    static const double none[2];
    const gpb_gemm_args of = { .m = g->m, .n = g->n, .ldc = g->ldc, .beta = { g->beta[0], g->beta[1] },
                               .uplo = g->uplo, .hermitian = g->hermitian };
    const member x = { .g = &of, .type = kernel->type, .c = c };
    const gpb_fake_range all = { .rows = g->m, .columns = g->n };
    void *apart = gpb_fake_apart(&x, &all);
    parts->beta = none;
    gpb_fake_element_of(kernel->type)->add_up(parts, apart, g->m);
    gpb_fake_keep_triangle(&x, &all, apart);
    free(apart);
}

/* Also spoils the partial sums that were added up, so that reading parts that no kernel has written gives
   NaN. */
void gpb_fake_reduce(const gpb_fake_kernel *kernel, int device, const gpb_reduce_args *g)
{
    const gpb_gemm_item *items = gpb_fake_table_at(device, g->items, g->batch * (int64_t)sizeof *items,
                                                   kernel->symbol);
    const int64_t size = g->m * g->n, bytes = size * (int64_t)gpb_type_bytes(kernel->type);
    if (g->splits < 2)
        gpb_fake_die("BAD LAUNCH of %s: %lld parts", kernel->symbol, (long long)g->splits);
    for (int64_t l = 0; l < g->batch; l++) {
        const CUdeviceptr at = items ? (CUdeviceptr)items[l].c
                                     : member_at(kernel->type, g->c, g->stride_c, l);
        char *first = parts_at(kernel, device, g->partials, size, g->splits, l);
        void *c = gpb_fake_matrix_at(device, kernel->type, at, g->m, g->n, 1, g->ldc, kernel->symbol);
        gpb_fake_parts parts = { first, first + bytes, g->splits, size, g->m, g->m, g->n, g->alpha, g->beta };
        if (g->uplo)
            add_up_triangle(kernel, g, &parts, c);
        else
            gpb_fake_element_of(kernel->type)->add_up(&parts, c, g->ldc);
        memset(first, 0xFF, (size_t)(bytes * g->splits));
    }
}

void gpb_fake_pack(const gpb_fake_kernel *kernel, int device, const gpb_pack_args *g)
{
    const char *who = kernel->symbol;
    const void *const *items = gpb_fake_table_at(device, g->src_items, g->batch * (int64_t)sizeof *items,
                                                 who);
    if (g->rows > g->rows_padded || g->cols > g->cols_padded || g->ld < g->rows_padded)
        gpb_fake_die("BAD LAUNCH of %s: %lldx%lld into %lldx%lld, ld %lld", who, (long long)g->rows,
                     (long long)g->cols, (long long)g->rows_padded, (long long)g->cols_padded,
                     (long long)g->ld);
    for (int64_t l = 0; l < g->batch; l++) {
        const CUdeviceptr at = items ? (CUdeviceptr)items[l]
                                     : member_at(kernel->type, g->src, g->stride_src, l),
                          at_to = member_at(kernel->type, g->dst, g->stride_dst, l);
        gpb_fake_element_of(kernel->type)
            ->copy(g, gpb_fake_matrix_at(device, kernel->type, at, g->rows, g->cols, g->rs, g->cs, who),
                   gpb_fake_matrix_at(device, kernel->type, at_to, g->rows_padded, g->cols_padded, 1, g->ld,
                                      who));
    }
}

void gpb_fake_unpack(const gpb_fake_kernel *kernel, int device, const gpb_unpack_args *g)
{
    const char *who = kernel->symbol;
    void *const *items = gpb_fake_table_at(device, g->c_items, g->batch * (int64_t)sizeof *items, who);
    if (g->uplo != 'G' && g->uplo != 'U' && g->uplo != 'L')
        gpb_fake_die("BAD LAUNCH of %s: uplo %d", who, g->uplo);
    for (int64_t l = 0; l < g->batch; l++) {
        const CUdeviceptr at = items ? (CUdeviceptr)items[l]
                                     : member_at(kernel->type, g->c, g->stride_c, l),
                          at_w = member_at(kernel->type, g->w, g->stride_w, l);
        gpb_fake_element_of(kernel->type)
            ->unpack(g, gpb_fake_matrix_at(device, kernel->type, at_w, g->m, g->n, 1, g->ldw, who),
                     gpb_fake_matrix_at(device, kernel->type, at, g->m, g->n, 1, g->ldc, who));
    }
}
