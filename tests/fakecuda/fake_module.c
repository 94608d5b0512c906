/* SPDX-License-Identifier: MIT */
/* Modules and kernels: the rows of gemm.def, slicer.def and solve.def by name, and the rules of a launch. The
   contents of an image are not used. */
#include <stdlib.h>
#include <string.h>

#include "kernels/residues.h"
#include "tests/fakecuda/fakecuda.h"

enum image {
#define IMAGE(name, p, arch) IMAGE_##name,
#include "kernels/images.def"
#undef IMAGE
    IMAGES
};
static const char *const image_arch[IMAGES] = {
#define IMAGE(name, p, arch) [IMAGE_##name] = GPB_STR(arch),
#include "kernels/images.def"
#undef IMAGE
};

static const gpb_fake_kernel kernels[] = {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea)             \
    { GPB_STR(GPB_GEMM_SYMBOL(p, name)), GPB_FAKE_GEMM, GPB_TYPE_##p, IMAGE_##image, GPB_MATH_##math,       \
      GPB_FORM_##form, bm, bn, bk, threads, smem, GPB_CAP_##caps, 0, 0 },
#include "kernels/gemm.def"
#undef KERNEL
#define PASS(p, spelling, what, blocks)                                              \
    { .symbol = GPB_STR(spelling(p)), .role = GPB_FAKE_##what, .type = GPB_TYPE_##p, \
      .image = IMAGE_##p##pack, .threads = blocks },
#define TYPE(p, type, bytes, flops, kind)                \
    PASS(p, GPB_PACK_SYMBOL, PACK, GPB_PACK_THREADS)     \
    PASS(p, GPB_UNPACK_SYMBOL, UNPACK, GPB_PACK_THREADS) \
    PASS(p, GPB_REDUCE_SYMBOL, REDUCE, GPB_REDUCE_THREADS)
#include "dispatch/type.def"
#undef TYPE
#undef PASS
#define COMBINE(p)                                                                                          \
    { .symbol = GPB_STR(GPB_COMBINE_SYMBOL(p)), .role = GPB_FAKE_COMBINE, .type = GPB_TYPE_##p,             \
      .form = GPB_FORM_RESIDUES, .bm = GPB_GUARD_ROWS(GPB_TYPE_##p == GPB_TYPE_z), .bn = GPB_GUARD,          \
      .image = IMAGE_##p##gemm_residues, .threads = GPB_COMBINE_THREADS },
    COMBINE(d) COMBINE(z)
#undef COMBINE
#define SLICER(p, name, of, most, blocks)                                                                  \
    { .symbol = GPB_STR(GPB_SLICER_SYMBOL(p, name)), .role = GPB_FAKE_SLICER, .type = GPB_TYPE_##p,         \
      .image = IMAGE_##of, .threads = GPB_SLICE_THREADS, .cluster = blocks, .max_k = most },
#include "kernels/slicer.def"
#undef SLICER
#define SOLVER(p, name, blocks)                                                                     \
    { .symbol = GPB_STR(GPB_SOLVE_SYMBOL(p, name)), .role = GPB_FAKE_##name, .type = GPB_TYPE_##p, \
      .image = IMAGE_##p##solve, .threads = blocks },
#define SOLVE(name, arguments, blocks, begins) \
    SOLVER(s, name, blocks) SOLVER(d, name, blocks) SOLVER(c, name, blocks) SOLVER(z, name, blocks)
#include "kernels/solve.def"
#undef SOLVE
#undef SOLVER
};
enum { KERNELS = sizeof kernels / sizeof *kernels };
static uint64_t launched[KERNELS], ran[KERNELS], shared[KERNELS];     /* shared: launches with Stream-K */

struct CUmod_st {
    CUmodule next;
    CUcontext context;
    struct CUfunc_st functions[KERNELS];
};
static CUmodule modules, graves;         /* graves: modules from before a reset */

static CUmodule find_module(CUmodule module)
{
    CUmodule m = modules;
    while (m && m != module)
        m = m->next;
    for (CUmodule g = graves; g && !m; g = g->next)
        if (g == module)
            gpb_fake_stale("a module");
    return m;
}

static bool is_function(CUfunction function)
{
    for (CUmodule m = modules; m; m = m->next)
        if (function >= m->functions && function < m->functions + KERNELS)
            return true;
    for (CUmodule g = graves; g; g = g->next)
        if (function >= g->functions && function < g->functions + KERNELS)
            gpb_fake_stale("a function");
    return false;
}

void gpb_fake_module_release(CUcontext context)
{
    for (CUmodule *link = &modules; *link;) {
        CUmodule m = *link;
        if (m->context == context) {
            *link = m->next;
            free(m);
        } else {
            link = &m->next;
        }
    }
}

void gpb_fake_module_reset(CUcontext context)
{
    for (CUmodule *link = &modules; *link;) {
        CUmodule m = *link;
        if (m->context == context) {
            *link = m->next;
            m->next = graves;
            graves = m;
        } else {
            link = &m->next;
        }
    }
}

/* Shared memory that a kernel has of its own, if it is much: solve/swap.cuh's moves and widths. */
static int own_shared(const gpb_fake_kernel *kernel) { return kernel->role == GPB_FAKE_swap ? 11 << 10 : 0; }

/* 48 KB, of which even other kernels have some of their own. */
static int default_limit(const gpb_fake_kernel *kernel)
{
    const int own = own_shared(kernel);
    return (48 << 10) - (own ? own : 1 << 10);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r)
        r = !module || !image                  ? CUDA_ERROR_INVALID_VALUE
            : gpb_fake_options_get()->no_image ? CUDA_ERROR_NO_BINARY_FOR_GPU
                                               : r;
    CUmodule m = r ? NULL : calloc(1, sizeof *m);
    if (!r && !m)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!r) {
        m->context = gpb_fake_current();
        for (int i = 0; i < KERNELS; i++)
            m->functions[i] = (struct CUfunc_st){ .kernel = &kernels[i], .context = m->context,
                                                  .dynamic_limit = default_limit(&kernels[i]) };
        m->next = modules;
        *module = modules = m;
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuModuleUnload(CUmodule module)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r && !find_module(module))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r) {
        gpb_fake_finish_context(module->context);
        CUmodule *link = &modules;
        while (*link != module)
            link = &(*link)->next;
        *link = module->next;
        free(module);
    }
    return gpb_fake_leave(__func__, r);
}

/* A kernel is found if its image has code for this device. If the image's row names a letter, the compute
   capability must be exactly that one. */
static bool has_code(const gpb_fake_kernel *kernel)
{
    char *letter;
    int device = gpb_fake_options_get()->arch;
    long least = strtol(image_arch[kernel->image], &letter, 10);
    return *letter ? device == least : device >= least;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r && !find_module(module))
        r = CUDA_ERROR_INVALID_HANDLE;
    int i = 0;
    while (!r && i < KERNELS && strcmp(kernels[i].symbol, name))
        i++;
    if (!r && (i == KERNELS || !has_code(&kernels[i])))
        r = CUDA_ERROR_NOT_FOUND;
    if (!r)
        *function = &module->functions[i];
    return gpb_fake_leave(__func__, r);
}

/* False: that is no attribute of a function, or no value of it. */
static bool set_attribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    switch ((int)attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || value > gpb_fake_opt_in_bytes() - own_shared(function->kernel)) return false;
        function->dynamic_limit = value;
        return true;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return value >= -1 && value <= 100;
#if CUDA_VERSION >= 11080
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        function->big_clusters = value == 1;
        return value == 0 || value == 1;
#endif
    default: return false;
    }
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r && !is_function(function))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r && !set_attribute(function, attribute, value))
        r = CUDA_ERROR_INVALID_VALUE;
    return gpb_fake_leave(__func__, r);
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r)
        r = !is_function(function) ? CUDA_ERROR_INVALID_HANDLE :
            attribute >= CU_FUNC_ATTRIBUTE_MAX ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (!r)
        switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = function->kernel->threads; break;
        case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 64; break;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = gpb_fake_options_get()->arch; break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = function->dynamic_limit; break;
        default: *value = 0;
        }
    return gpb_fake_leave(__func__, r);
}

/* cluster: blocks of one that the launch asks for, if it is more than one. */
typedef struct shape { unsigned grid[3], block[3], smem, cluster, cooperative; } shape;

/* What the driver itself refuses. */
static bool launchable(CUfunction function, const shape *s)
{
    for (int i = 0; i < 3; i++)
        if (!s->grid[i] || !s->block[i] || s->grid[i] > (i ? 65535 : 2147483647))
            return false;
    return (uint64_t)s->block[0] * s->block[1] * s->block[2] <= 1024
           && (int64_t)s->smem <= function->dynamic_limit;
}

/* Checks the shape that kernels/names.h and kernels/solve_args.h ask for. Any other would compute garbage in
   silence. */
static void check_shape(const char *name, const shape *s, const shape *right)
{
    if (memcmp(s, right, sizeof *s))
        gpb_fake_die(
            "BAD LAUNCH of %s: grid (%u,%u,%u), block (%u,%u,%u), %u bytes, cluster %u, cooperative %u, "
            "not (%u,1,%u), (%u,1,1), %u, %u, %u",
            name, s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1], s->block[2], s->smem,
            s->cluster, s->cooperative, right->grid[0], right->grid[2], right->block[0], right->smem,
            right->cluster, right->cooperative);
}

static shape shape_of(int64_t tiles, int64_t batch, int threads, int smem)
{
    return (shape){ { (unsigned)tiles, 1, (unsigned)GPB_GRID_Z(batch) },
                    { (unsigned)threads, 1, 1 },
                    (unsigned)smem, 0, 0 };
}

static void check_sizes(const char *name, int64_t m, int64_t n, int64_t k, int64_t batch)
{
    if (m < 1 || n < 1 || k < 0 || batch < 1)
        gpb_fake_die("BAD LAUNCH of %s: m=%lld n=%lld k=%lld batch=%lld", name, (long long)m, (long long)n,
                     (long long)k, (long long)batch);
}

/* A real type's kernel reads real parts alone. */
static void check_scalars(const gpb_fake_kernel *row, const double *alpha, const double *beta)
{
    if (gpb_type_of(row->type)->kind == GPB_TYPE_REAL && (alpha[1] != 0 || beta[1] != 0))
        gpb_fake_die("BAD LAUNCH of %s: alpha=%g%+gi beta=%g%+gi", row->symbol, alpha[0], alpha[1], beta[0],
                     beta[1]);
}

/* The same of the kernels of solve.def: copies the block and returns the right shape. */
static shape take_solver(gpb_fake_launch *l, const shape *s, const void *from)
{
    const gpb_fake_kernel *row = l->function->kernel;
    shape right = { 0 };
    if (row->role == GPB_FAKE_cholesky) {
        gpb_cholesky_args *g = memcpy(&l->arguments.cholesky, from, sizeof *g);
        check_sizes(row->symbol, g->n, g->n, g->below, 1);
        const int bytes = (int)gpb_type_bytes(row->type), most = gpb_fake_opt_in_bytes();
        right = shape_of(GPB_CHOLESKY_BLOCKS(g->below, bytes), 1, row->threads, GPB_ALONE_SHARED(most));
    } else if (row->role == GPB_FAKE_identity) {
        gpb_identity_args *g = memcpy(&l->arguments.identity, from, sizeof *g);
        check_sizes(row->symbol, g->rows, g->cols, 0, 1);
        right = shape_of(s->grid[0] < g->cols ? s->grid[0] : g->cols, 1, row->threads, 0);
    } else if (row->role == GPB_FAKE_mirror) {
        gpb_mirror_args *g = memcpy(&l->arguments.mirror, from, sizeof *g);
        check_sizes(row->symbol, g->n, g->n, 0, 1);
        right = shape_of(GPB_MIRROR_BLOCKS(g->n, g->first), 1, row->threads, 0);
    } else if (row->role == GPB_FAKE_trapezoid) {
        gpb_trapezoid_args *g = memcpy(&l->arguments.trapezoid, from, sizeof *g);
        check_sizes(row->symbol, g->rows, g->cols, 0, 1);
        right = shape_of(GPB_TRAPEZOID_BLOCKS(g->rows, g->cols), 1, row->threads, 0);
    } else if (row->role == GPB_FAKE_narrow) {
        gpb_narrow_args *g = memcpy(&l->arguments.narrow, from, sizeof *g);
        check_sizes(row->symbol, g->rows, g->cols, 0, 1);
        right = shape_of(GPB_TRAPEZOID_BLOCKS(g->rows, g->cols), 1, row->threads, 0);
    } else if (row->role == GPB_FAKE_correct) {
        gpb_correct_args *g = memcpy(&l->arguments.correct, from, sizeof *g);
        check_sizes(row->symbol, g->rows, g->cols, 0, 1);
        right = shape_of(GPB_TRAPEZOID_BLOCKS(g->rows, g->cols), 1, row->threads, 0);
    } else if (row->role == GPB_FAKE_norm) {
        gpb_norm_args *g = memcpy(&l->arguments.norm, from, sizeof *g);
        check_sizes(row->symbol, g->rows, g->cols, 0, 1);
        right = shape_of(GPB_NORM_BLOCKS(g->rows), 1, row->threads, 0);
    } else if (row->role == GPB_FAKE_judge) {
        gpb_judge_args *g = memcpy(&l->arguments.judge, from, sizeof *g);
        check_sizes(row->symbol, g->rows, g->cols, 0, 1);
        right = shape_of(s->grid[0] < g->cols ? s->grid[0] : g->cols, 1, row->threads, 0);
    } else if (row->role == GPB_FAKE_digest) {
        gpb_digest_args *g = memcpy(&l->arguments.digest, from, sizeof *g);
        const int64_t blocks = gpb_digest_blocks(g->rows, (int64_t)gpb_type_bytes(row->type)) * g->cols;
        check_sizes(row->symbol, g->rows, g->cols, g->each - 1, 1);
        right = shape_of((blocks + g->each - 1) / g->each, 1, row->threads, 0);
    } else if (row->role == GPB_FAKE_multiply) {
        gpb_multiply_args *g = memcpy(&l->arguments.multiply, from, sizeof *g);
        check_sizes(row->symbol, g->of.n, g->of.cols, g->order - g->first, g->first);
        check_scalars(row, g->of.alpha, g->of.alpha);
        const int64_t triangles = 1 + (g->order - g->first + g->of.n - 1) / g->of.n;
        right = shape_of(GPB_MULTIPLY_BLOCKS(g->of.cols, gpb_type_real_bytes(row->type),
                                             (int)gpb_type_bytes(row->type)),
                         triangles, row->threads, GPB_TRIANGLE_SHARED((int)gpb_type_bytes(row->type)));
    } else if (row->role == GPB_FAKE_substitute) {
        gpb_triangle_args *g = memcpy(&l->arguments.triangle, from, sizeof *g);
        check_sizes(row->symbol, g->n, g->cols, 0, 1);
        check_scalars(row, g->alpha, g->alpha);
        const int bytes = (int)gpb_type_bytes(row->type), real = (int)gpb_type_real_bytes(row->type);
        int groups = GPB_SUBSTITUTE_LEAST(real, bytes);
        while (groups < GPB_SUBSTITUTE_GROUPS && (int)s->block[0] > GPB_SUBSTITUTE_THREADS_OF(real, groups))
            groups++;
        const int alone = GPB_ALONE_SHARED(gpb_fake_opt_in_bytes()), helps = (int)s->smem == alone;
        right = shape_of(GPB_SUBSTITUTE_BLOCKS(g->cols, groups), 1,
                         GPB_SUBSTITUTE_THREADS_OF(real, groups) + helps * GPB_SUBSTITUTE_HELPERS(real),
                         helps ? alone : GPB_SUBSTITUTE_SHARED(real, bytes));
    } else if (row->role == GPB_FAKE_trsv) {
        gpb_trsv_args *g = memcpy(&l->arguments.trsv, from, sizeof *g);
        const int blocks = GPB_TRSV_BLOCKS(g->of.n, gpb_type_bytes(row->type));
        check_sizes(row->symbol, g->of.n, g->of.cols, 0, 1);
        check_scalars(row, g->of.alpha, g->of.alpha);
        right = shape_of(s->grid[0] < (unsigned)blocks ? s->grid[0] : (unsigned)blocks, 1, row->threads, 0);
        right.cooperative = 1;
    } else if (row->role == GPB_FAKE_systems || row->role == GPB_FAKE_small_systems) {
        gpb_systems_args *g = memcpy(&l->arguments.systems, from, sizeof *g);
        check_sizes(row->symbol, g->n, g->cols, 0, g->batch);
        check_scalars(row, g->alpha, g->alpha);
        right = shape_of(row->role == GPB_FAKE_systems ? GPB_SYSTEMS_BLOCKS(g->cols, g->batch)
                                                       : GPB_SMALL_SYSTEMS_BLOCKS(g->cols, g->batch),
                         1, row->threads, 0);
    } else if (row->role == GPB_FAKE_swap) {
        gpb_swap_args *g = memcpy(&l->arguments.swap, from, sizeof *g);
        check_sizes(row->symbol, g->rows, g->cols, (int64_t)g->last - g->first, 1);
        right = shape_of(s->grid[0] < g->cols ? s->grid[0] : g->cols, 1, row->threads,
                         (int)GPB_SWAP_SHARED(g->rows, g->last - g->first));
    } else {
        gpb_panel_args *g = memcpy(&l->arguments.panel, from, sizeof *g);
        const bool in_cluster = row->role == GPB_FAKE_panel_cluster;
        check_sizes(row->symbol, g->m, g->n, 0, 1);
        /* Its code for older GPUs reads nothing from other blocks, nor from its own. */
        if (in_cluster && gpb_fake_options_get()->arch < 90)
            gpb_fake_die("BAD LAUNCH of %s: this GPU has no clusters", row->symbol);
        right = shape_of(GPB_PANEL_BLOCKS(g->m), 1, row->threads, 0);
        right.cluster = in_cluster && right.grid[0] > 1 ? right.grid[0] : 0;
        right.cooperative = !in_cluster;
    }
    return right;
}

/* A triangle of C: that of a square one, and only complex ones are Hermitian. */
static void check_triangle(const gpb_fake_kernel *row, int uplo, int hermitian, int64_t m, int64_t n)
{
    const bool whole = row->form == GPB_FORM_PADDED_C || row->caps & GPB_CAP_WHOLE;
    if ((uplo && uplo != 'U' && uplo != 'L') || (uplo && m != n) || (hermitian && !uplo)
        || (hermitian && !gpb_fake_is_complex(row)) || (uplo && whole))
        gpb_fake_die("BAD LAUNCH of %s: triangle %d of %lldx%lld, hermitian %d", row->symbol, uplo,
                     (long long)m, (long long)n, hermitian);
}

/* Of a GEMM kernel's launch. */
static const gpb_gemm_args *gemm_of(const gpb_fake_launch *l)
{
    return l->function->kernel->form == GPB_FORM_MAPPED ? &l->arguments.mapped.gemm : &l->arguments.gemm;
}

/* Copies the argument block, as the driver does, and checks the shape of the launch against it. */
static void take_arguments(gpb_fake_launch *l, const shape *s, const void *from)
{
    const gpb_fake_kernel *row = l->function->kernel;
    shape right = { 0 };
    if (row->role == GPB_FAKE_GEMM && row->form == GPB_FORM_SLICED) {
        gpb_gemm_args *g = memcpy(&l->arguments.gemm, from, sizeof *g);
        check_sizes(row->symbol, g->m, g->n, g->k - 1, g->batch);
        check_scalars(row, g->alpha, g->beta);
        check_triangle(row, g->uplo, g->hermitian, g->m, gpb_sliced_m(gpb_fake_is_complex(row), g->n));
        right = shape_of(GPB_FAKE_CLUSTERS * GPB_SLICED_CLUSTER, 1, row->threads, row->smem);
    } else if (row->form == GPB_FORM_RESIDUES) {
        gpb_gemm_args *g = memcpy(&l->arguments.gemm, from, sizeof *g);
        check_sizes(row->symbol, g->m, g->n, g->k - 1, g->batch);
        check_scalars(row, g->alpha, g->beta);
        check_triangle(row, g->uplo, g->hermitian, g->m, g->n);
        right = row->role == GPB_FAKE_COMBINE
                ? shape_of(GPB_COMBINE_BLOCKS(g->uplo, g->m, g->n), g->batch, row->threads, 0)
                : shape_of(GPB_FAKE_SMS, 1, row->threads, row->smem);
    } else if (row->role == GPB_FAKE_GEMM) {
        const bool mapped = row->form == GPB_FORM_MAPPED;
        memcpy(&l->arguments, from, mapped ? sizeof l->arguments.mapped : sizeof l->arguments.gemm);
        const gpb_gemm_args *g = gemm_of(l);
        check_sizes(row->symbol, g->m, g->n, g->k, g->batch);
        check_scalars(row, g->alpha, g->beta);
        check_triangle(row, g->uplo, g->hermitian, g->m, g->n);
        int64_t tiles = GPB_TILES_OF(g->uplo, g->m, g->n, row->bm, row->bn),
                members = g->batch * (g->splits > 1 ? g->splits : 1);
        if (g->streamk_blocks) {
            if (mapped && l->arguments.mapped.products != 1)
                gpb_fake_die("BAD LAUNCH of %s: Stream-K of two products", row->symbol);
            tiles = g->streamk_blocks + tiles * g->batch - g->streamk_tiles;
            members = 1;
        } else if (mapped) {
            tiles = GPB_MAPPED_BLOCKS(g->uplo, g->m, g->n, row->bm, row->bn, row->caps);
        }
        right = shape_of(tiles, members, row->threads, row->smem);
    } else if (row->role == GPB_FAKE_REDUCE) {
        gpb_reduce_args *g = memcpy(&l->arguments.reduce, from, sizeof *g);
        check_sizes(row->symbol, g->m, g->n, 0, g->batch);
        check_scalars(row, g->alpha, g->beta);
        check_triangle(row, g->uplo, g->hermitian, g->m, g->n);
        right = shape_of(GPB_REDUCE_BLOCKS(g->m, g->n, g->splits), g->batch, row->threads, 0);
    } else if (row->role == GPB_FAKE_SLICER) {
        gpb_slice_args *g = memcpy(&l->arguments.slice, from, sizeof *g);
        int64_t strips = GPB_SLICE_STRIPS(g->a.rows) + GPB_SLICE_STRIPS(g->b.rows);
        check_sizes(row->symbol, g->a.rows + 1, g->b.rows + 1, g->k - 1, g->batch);
        if (row->max_k && (g->k > row->max_k || g->slices > 2))
            gpb_fake_die("BAD LAUNCH of %s: k=%lld", row->symbol, (long long)g->k);
        right = shape_of((strips ? strips : 1) * row->cluster, g->batch, row->threads, 0);
    } else if (row->role > GPB_FAKE_SLICER) {
        right = take_solver(l, s, from);
    } else if (row->role == GPB_FAKE_PACK) {
        gpb_pack_args *g = memcpy(&l->arguments.pack, from, sizeof *g);
        check_sizes(row->symbol, g->rows_padded, g->cols_padded, 0, g->batch);
        right = shape_of(GPB_TILES(g->rows_padded, g->cols_padded, GPB_PACK_TILE, GPB_PACK_TILE), g->batch,
                         GPB_PACK_THREADS, 0);
    } else {
        gpb_unpack_args *g = memcpy(&l->arguments.unpack, from, sizeof *g);
        check_sizes(row->symbol, g->m, g->n, 0, g->batch);
        check_scalars(row, g->beta, g->beta);
        right = shape_of(GPB_TILES(g->m, g->n, GPB_PACK_TILE, GPB_PACK_TILE), g->batch, GPB_PACK_THREADS, 0);
    }
    check_shape(row->symbol, s, &right);
}

static CUresult launch(CUfunction function, const shape *s, CUstream handle, void **parameters)
{
    CUstream stream = gpb_fake_stream_find(handle);
    if (!is_function(function) || !stream || function->context != gpb_fake_current()
        || stream->context != function->context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!parameters || !launchable(function, s))
        return CUDA_ERROR_INVALID_VALUE;
    gpb_fake_launch *l = calloc(1, sizeof *l);
    if (!l)
        return CUDA_ERROR_OUT_OF_MEMORY;
    l->function = function;
    take_arguments(l, s, parameters[0]);
    gpb_fake_push(stream, GPB_FAKE_LAUNCH)->launch = l;
    launched[function->kernel - kernels]++;
    shared[function->kernel - kernels] += function->kernel->role == GPB_FAKE_GEMM
                                          && gemm_of(l)->streamk_blocks;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int smem,
                        CUstream stream, void **parameters, void **extra)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r && extra)
        r = CUDA_ERROR_NOT_SUPPORTED;
    if (!r)
        r = launch(function,
                   &(shape){ { grid_x, grid_y, grid_z }, { block_x, block_y, block_z }, smem, 0, 0 },
                   stream, parameters);
    return gpb_fake_leave(__func__, r);
}

#if CUDA_VERSION >= 11080
/* Clusters of 8 blocks are allowed on all GPUs that have clusters, of 16 on some, and if asked for. */
static CUresult take_cluster(CUfunction function, const CUlaunchAttribute *x, shape *s)
{
    const gpb_fake_options *options = gpb_fake_options_get();
    const unsigned blocks = x->value.clusterDim.x;
    const unsigned most = options->arch < 90 || options->no_clusters          ? 1
                          : function->big_clusters && options->arch < 120 ? 16
                                                                              : 8;
    if (!blocks || blocks > most || x->value.clusterDim.y != 1 || x->value.clusterDim.z != 1)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    s->cluster = blocks > 1 ? blocks : 0;
    return s->grid[0] % blocks ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult take_attribute(CUfunction function, const CUlaunchAttribute *x, shape *s)
{
    switch ((int)x->id) {
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: return take_cluster(function, x, s);
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        s->cooperative = x->value.cooperative != 0;
        /* A multiprocessor has registers for one block of panel_grid, which alone may ask for this. */
        return s->cooperative && s->grid[0] > GPB_FAKE_SMS ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
                                                           : CUDA_SUCCESS;
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **parameters, void **extra)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    shape s = { { c->gridDimX, c->gridDimY, c->gridDimZ }, { c->blockDimX, c->blockDimY, c->blockDimZ },
                c->sharedMemBytes, 0, 0 };
    if (!r && extra)
        r = CUDA_ERROR_NOT_SUPPORTED;
    if (!r && !is_function(function))
        r = CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; !r && i < c->numAttrs; i++)
        r = take_attribute(function, &c->attrs[i], &s);
    if (!r)
        r = launch(function, &s, c->hStream, parameters);
    return gpb_fake_leave(__func__, r);
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const CUlaunchConfig *c)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r && !is_function(function))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r
        && (c->numAttrs != 1 || c->attrs[0].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            || c->attrs[0].value.clusterDim.x != GPB_SLICED_CLUSTER
            || (int)c->sharedMemBytes > function->dynamic_limit))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        *clusters = gpb_fake_options_get()->no_clusters ? 0 : GPB_FAKE_CLUSTERS;
    return gpb_fake_leave(__func__, r);
}
#endif

void gpb_fake_launch_run(const gpb_fake_launch *l)
{
    const gpb_fake_kernel *kernel = l->function->kernel;
    int device = l->function->context->device;
    switch (kernel->role) {
    case GPB_FAKE_GEMM:
        if (kernel->form == GPB_FORM_SLICED)
            gpb_fake_sliced_gemm(kernel, device, &l->arguments.gemm);
        else if (kernel->form == GPB_FORM_MAPPED)
            gpb_fake_mapped(kernel, device, &l->arguments.mapped);
        else if (kernel->form == GPB_FORM_RESIDUES)
            gpb_fake_residues_gemm(kernel, device, &l->arguments.gemm);
        else
            gpb_fake_gemm(kernel, device, &l->arguments.gemm, 1);
        break;
    case GPB_FAKE_PACK: gpb_fake_pack(kernel, device, &l->arguments.pack); break;
    case GPB_FAKE_UNPACK: gpb_fake_unpack(kernel, device, &l->arguments.unpack); break;
    case GPB_FAKE_REDUCE: gpb_fake_reduce(kernel, device, &l->arguments.reduce); break;
    case GPB_FAKE_COMBINE: gpb_fake_combine(kernel, device, &l->arguments.gemm); break;
    case GPB_FAKE_SLICER:
        if (gpb_type_real_bytes(kernel->type) == sizeof(double))
            gpb_fake_residues(kernel, device, &l->arguments.slice);
        else
            gpb_fake_slicer(kernel, device, &l->arguments.slice);
        break;
    case GPB_FAKE_panel_cluster:
    case GPB_FAKE_panel_grid: gpb_fake_panel(kernel, device, &l->arguments.panel); break;
    case GPB_FAKE_cholesky: gpb_fake_cholesky(kernel, device, &l->arguments.cholesky); break;
    case GPB_FAKE_substitute:
        gpb_fake_substitute(kernel, device, &l->arguments.triangle);
        break;
    case GPB_FAKE_multiply: gpb_fake_triangles(kernel, device, &l->arguments.multiply); break;
    case GPB_FAKE_systems:
    case GPB_FAKE_small_systems: gpb_fake_systems(kernel, device, &l->arguments.systems); break;
    case GPB_FAKE_digest: gpb_fake_digest(kernel, device, &l->arguments.digest); break;
    case GPB_FAKE_mirror: gpb_fake_mirror(kernel, device, &l->arguments.mirror); break;
    case GPB_FAKE_narrow: gpb_fake_narrow(kernel, device, &l->arguments.narrow); break;
    case GPB_FAKE_correct: gpb_fake_correct(kernel, device, &l->arguments.correct); break;
    case GPB_FAKE_norm: gpb_fake_norm(kernel, device, &l->arguments.norm); break;
    case GPB_FAKE_judge: gpb_fake_judge(kernel, device, &l->arguments.judge); break;
    case GPB_FAKE_trapezoid: gpb_fake_trapezoid(kernel, device, &l->arguments.trapezoid); break;
    case GPB_FAKE_identity: gpb_fake_identity(kernel, device, &l->arguments.identity); break;
    case GPB_FAKE_trsv: gpb_fake_trsv(kernel, device, &l->arguments.trsv); break;
    case GPB_FAKE_swap: gpb_fake_swap(kernel, device, &l->arguments.swap); break;
    }
    ran[kernel - kernels]++;
}

void gpb_fake_kernels_summary(void (*line)(const char *format, ...))
{
    for (int i = 0; i < KERNELS; i++)
        if (launched[i])
            line("kernel %s launched=%llu ran=%llu shared=%llu\n", kernels[i].symbol,
                 (unsigned long long)launched[i], (unsigned long long)ran[i], (unsigned long long)shared[i]);
}
