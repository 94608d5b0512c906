/* SPDX-License-Identifier: MIT */
/* The kernels of solve.def on tests/fakecuda: the right answer in all types, nothing touched beside it, and
   each broken rule of a launch is found. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/names.h"
#include "kernels/solve_args.h"
#include "tests/digest.h"
#include "tests/fakecuda/child.h"
#include "tests/fill.h"

enum { SHARED = 227 << 10 };       /* that a block can have */
/* Rows of a panel of three blocks, of one with more than a cluster of 8, and of one with more than any
   cluster. */
enum { ROWS = 2 * GPB_PANEL_THREADS + 5, MANY = 9 * GPB_PANEL_THREADS, MOST = 17 * GPB_PANEL_THREADS,
       FIRST = 7, PAD = 3, COLUMNS = 96, COLS = 38 };

enum solver {
#define SOLVE(name, arguments, threads, begins) solver_##name,
#include "kernels/solve.def"
#undef SOLVE
    SOLVERS
};
static const int threads[SOLVERS] = {
#define SOLVE(name, arguments, threads, begins) threads,
#include "kernels/solve.def"
#undef SOLVE
};
static const char *const symbols[GPB_TYPES][SOLVERS] = {
#define OF(p, name) [GPB_TYPE_##p][solver_##name] = GPB_STR(GPB_SOLVE_SYMBOL(p, name)),
#define SOLVE(name, arguments, threads, begins) OF(s, name) OF(d, name) OF(c, name) OF(z, name)
#include "kernels/solve.def"
#undef SOLVE
#undef OF
};

/* ---- elements of any type */

static enum gpb_type type;

static size_t bytes_of(int64_t elements) { return (size_t)elements * gpb_type_bytes(type); }
static double unit_of(void) { return gpb_type_real_bytes(type) == 4 ? 0x1p-24 : 0x1p-53; }
static int widest(void) { return GPB_PANEL_COLUMNS(bytes_of(1)); }
static int order(void) { return GPB_BLOCK_ORDER(bytes_of(1)); }

static gpb_scalar get(const void *x, int64_t i)
{
    gpb_element e;
    memcpy(&e, (const char *)x + bytes_of(i), bytes_of(1));
    switch (type) {
#define TYPE(letter, type, bytes, flops, kind) case GPB_TYPE_##letter: return e.letter;
#include "dispatch/type.def"
#undef TYPE
    default: return 0;
    }
}

static void put(void *x, int64_t i, gpb_scalar value)
{
    const gpb_element e = gpb_element_of(type, value);
    memcpy((char *)x + bytes_of(i), &e, bytes_of(1));
}

static double size(gpb_scalar x) { return fabs(__real__ x) + fabs(__imag__ x); }
static gpb_scalar conjugate(gpb_scalar x) { return __builtin_complex(__real__ x, -__imag__ x); }
static gpb_scalar product(gpb_scalar x, gpb_scalar y) { return GPB_PRODUCT_COMPLEX(x, y); }
static bool is_nan(gpb_scalar x) { return isnan(__real__ x) || isnan(__imag__ x); }

/* Memory of so many elements, at random. Never freed, because it is a child's. */
static void *elements(int64_t count, uint64_t seed)
{
    void *x = malloc(bytes_of(count));
    EXPECT(x != NULL);
    gpb_fill(GPB_FILL_uniform, type, x, count, &seed);
    return x;
}

static void *copy_of(const void *x, int64_t count) { return memcpy(elements(count, 1), x, bytes_of(count)); }

static void *download(CUdeviceptr from, size_t bytes)
{
    void *to = malloc(bytes);
    EXPECT(to != NULL && cuMemcpyDtoH(to, from, bytes) == CUDA_SUCCESS);
    return to;
}

/* ---- launches */

static CUresult launch_as(enum solver solver, unsigned grid, int64_t smem, CUlaunchAttribute *attributes,
                          unsigned count, void *arguments)
{
    const CUfunction f = gpb_child_kernel(symbols[type][solver]);
    if (solver == solver_panel_cluster)
        EXPECT(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1) == CUDA_SUCCESS);
    if (smem > 37 << 10)
        EXPECT(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)smem)
               == CUDA_SUCCESS);
    const int real = (int)gpb_type_real_bytes(type), most = GPB_SUBSTITUTE_GROUPS;
    const int substitutes = GPB_SUBSTITUTE_THREADS_OF(real, most);
    const int of_block = solver == solver_substitute ? substitutes : threads[solver];
    const CUlaunchConfig config = { .gridDimX = grid, .gridDimY = 1, .gridDimZ = 1, .blockDimY = 1,
                                    .blockDimX = (unsigned)of_block, .blockDimZ = 1,
                                    .sharedMemBytes = (unsigned)smem, .attrs = attributes,
                                    .numAttrs = count };
    return cuLaunchKernelEx(&config, f, (void *[]){ arguments }, NULL);
}

static CUlaunchAttribute cluster_of(unsigned blocks)
{
    return (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                .value.clusterDim = { blocks, 1, 1 } };
}

static CUlaunchAttribute cooperative(void)
{
    return (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1 };
}

static CUresult launch_panel(bool in_cluster, gpb_panel_args *g)
{
    const unsigned blocks = (unsigned)GPB_PANEL_BLOCKS(g->m);
    CUlaunchAttribute how = in_cluster ? cluster_of(blocks) : cooperative();
    return launch_as(in_cluster ? solver_panel_cluster : solver_panel_grid, blocks, 0, &how, 1, g);
}

static CUresult launch_swap(gpb_swap_args *g)
{
    return launch_as(solver_swap, (unsigned)(g->cols < 5 ? g->cols : 5),
                     GPB_SWAP_SHARED(g->rows, g->last - g->first), NULL, 0, g);
}

/* ---- panels */

/* Pivots of a matrix and a counter, on the device. */
typedef struct pivots {
    CUdeviceptr ipiv, moves, width, info, slots, arrivals;
} pivots;

static pivots make_pivots(void)
{
    const int32_t none = INT32_MAX;
    const uint32_t arrived = UINT32_MAX - 3;                  /* it wraps around */
    const size_t bytes = 2 * GPB_PANEL_SLOT_BYTES * GPB_PANEL_BLOCKS(MOST);
    const CUdeviceptr slots = gpb_child_device(bytes);
    EXPECT(cuMemsetD8(slots, 0x77, bytes) == CUDA_SUCCESS);   /* of no column */
    return (pivots){ gpb_child_device(COLUMNS * 4), gpb_child_device(COLUMNS * 2 * sizeof(gpb_row_move)),
                     gpb_child_device(COLUMNS * 4), gpb_child_upload(&none, sizeof none), slots,
                     gpb_child_upload(&arrived, sizeof arrived) };
}

/* The panel at row and column `at` of that matrix. The numbers of its rows begin with `first`. */
static gpb_panel_args panel_of(const pivots *p, CUdeviceptr a, int64_t rows, int64_t lda, int at, int width,
                               int first)
{
    uint32_t arrived;
    EXPECT(cuMemcpyDtoH(&arrived, p->arrivals, sizeof arrived) == CUDA_SUCCESS);
    return (gpb_panel_args){
        .m = rows - at, .n = width, .a = (void *)(a + bytes_of(at + at * lda)), .lda = lda,
        .first = first + at, .ipiv = (int32_t *)p->ipiv + at, .moves = (gpb_row_move *)p->moves + 2 * at,
        .width = (int32_t *)p->width + at, .info = (int32_t *)p->info, .slots = (void *)p->slots,
        .arrivals = (uint32_t *)p->arrivals, .arrived = arrived
    };
}

static void exchange_rows(void *a, int64_t lda, int64_t cols, int64_t x, int64_t y)
{
    for (int64_t j = 0; j < cols; j++) {
        const gpb_scalar old = get(a, x + j * lda);
        put(a, x + j * lda, get(a, y + j * lda));
        put(a, y + j * lda, old);
    }
}

/* The moves of a panel, all at once, are its exchanges one after the other. */
static void check_moves(const gpb_panel_args *g, const int32_t *ipiv)
{
    const gpb_row_move *moves = download((CUdeviceptr)g->moves, (size_t)g->n * 2 * sizeof *moves);
    const int32_t *width = download((CUdeviceptr)g->width, (size_t)g->n * 4);
    int32_t *row = malloc((size_t)g->m * sizeof *row);
    bool *moved = calloc((size_t)g->m, sizeof *moved);
    EXPECT(row && moved && width[0] == g->n && width[g->n - 1] == g->n);
    for (int32_t i = 0; i < g->m; i++)
        row[i] = i;
    for (int j = 0; j < g->n; j++) {
        const int32_t at = ipiv[j] - g->first - 1, old = row[at];
        row[at] = row[j];
        row[j] = old;
    }
    for (int x = 0; x < 2 * g->n; x++) {
        EXPECT(row[moves[x].to - g->first] == moves[x].from - g->first);
        moved[moves[x].to - g->first] = true;
    }
    for (int32_t i = 0; i < g->m; i++)
        EXPECT(moved[i] || row[i] == i);
}

/* P A = L U, part by part, and each pivot is the largest of its column. before: A, whose rows this moves. */
static void check_factors(const gpb_panel_args *g, const int32_t *ipiv, void *before, const void *after)
{
    /* A complex pivot may be shorter than what it divides, by the square root of 2. */
    const double most = gpb_type_is_complex(type) ? 2.00001 : 1;
    for (int j = 0; j < g->n; j++)
        exchange_rows(before, g->lda, g->n, j, ipiv[j] - g->first - 1);
    for (int j = 0; j < g->n; j++)
        for (int64_t i = 0; i < g->m; i++) {
            gpb_scalar sum = get(before, i + j * g->lda);
            double bound = size(sum);
            for (int k = 0; k <= j && k <= i; k++) {
                const gpb_scalar l = k < i ? get(after, i + k * g->lda) : 1, u = get(after, k + j * g->lda);
                EXPECT(k == i || size(l) <= most);
                sum -= product(l, u);
                bound += size(l) * size(u);
            }
            EXPECT(size(sum) <= (2 * g->n + 8) * unit_of() * bound);
        }
}

static int64_t panel_rows;               /* what `panel` computes */
static int panel_width;
static bool in_cluster, singular;

static int panel(void)
{
    gpb_child_start();
    const int64_t lda = panel_rows + PAD, count = lda * panel_width;
    const int zero = singular ? panel_width / 2 : panel_width;
    void *before = elements(count, 1);
    for (int64_t i = 0; i < panel_rows && singular; i++) {
        put(before, i + zero * lda, 0);
        put(before, i + (panel_width - 1) * lda, 0);          /* the first one counts */
    }
    const CUdeviceptr a = gpb_child_upload(before, bytes_of(count));
    const pivots p = make_pivots();
    gpb_panel_args g = panel_of(&p, a, panel_rows, lda, 0, panel_width, FIRST);
    EXPECT(launch_panel(in_cluster, &g) == CUDA_SUCCESS);
    const int32_t *ipiv = download(p.ipiv, (size_t)g.n * 4), *info = download(p.info, 4);
    const uint32_t *arrivals = download(p.arrivals, 4);
    void *after = download(a, bytes_of(count));
    EXPECT(*info == (singular ? FIRST + zero + 1 : INT32_MAX));
    EXPECT(*arrivals == g.arrived + (in_cluster ? 0 : (uint32_t)(GPB_PANEL_BLOCKS(g.m) * (g.n + 1))));
    for (int j = 0; j < g.n; j++)        /* between the columns */
        EXPECT(!memcmp((char *)after + bytes_of(j * lda + g.m), (char *)before + bytes_of(j * lda + g.m),
                       bytes_of(PAD)));
    check_moves(&g, ipiv);
    check_factors(&g, ipiv, before, after);
    return GPB_CHILD_OK;
}

/* One column, whose pivot is known. */
static int32_t pivot_of(const gpb_scalar *column, int count, gpb_scalar *after)
{
    char x[8 * sizeof(gpb_element)];
    for (int i = 0; i < count; i++)
        put(x, i, column[i]);
    const CUdeviceptr a = gpb_child_upload(x, bytes_of(count));
    const pivots p = make_pivots();
    gpb_panel_args g = panel_of(&p, a, count, count, 0, 1, 0);
    EXPECT(launch_panel(true, &g) == CUDA_SUCCESS);
    const void *factors = download(a, bytes_of(count));
    for (int i = 0; i < count; i++)
        after[i] = get(factors, i);
    return *(int32_t *)download(p.ipiv, 4);
}

/* The first of equals; NaN only where the column begins; infinity before all numbers; by |re| + |im|. */
static int pivots_of_columns(void)
{
    const bool complex = gpb_type_is_complex(type);
    gpb_scalar after[4];
    gpb_child_start();
    EXPECT(pivot_of((gpb_scalar[]){ 1, -2, 2, 2 }, 4, after) == 2);
    EXPECT(after[0] == -2 && after[1] == -0.5 && after[2] == -1 && after[3] == -1);
    EXPECT(pivot_of((gpb_scalar[]){ 1, NAN, 4, NAN }, 4, after) == 3);
    EXPECT(after[0] == 4 && is_nan(after[1]) && after[2] == 0.25 && is_nan(after[3]));
    EXPECT(pivot_of((gpb_scalar[]){ NAN, 5, INFINITY }, 3, after) == 1 && is_nan(after[1]));
    EXPECT(pivot_of((gpb_scalar[]){ 0, 5, -INFINITY }, 3, after) == 3 && after[2] == 0);
    EXPECT(pivot_of((gpb_scalar[]){ 0, NAN, 0 }, 3, after) == 1 && after[0] == 0 && is_nan(after[1]));
    EXPECT(pivot_of((gpb_scalar[]){ 4, __builtin_complex(3.0, 3.0) }, 2, after) == (complex ? 2 : 1));
    return GPB_CHILD_OK;
}

/* A NaN in one row spoils that row, and the rows below from the step on in which it is the pivot. */
static int panel_of_nan(void)
{
    gpb_child_start();
    char x[9 * sizeof(gpb_element)];
    for (int i = 0; i < 9; i++)
        put(x, i, (const double[]){ 4, 2, 1, 1, NAN, 1, 1, 1, 8 }[i]);
    const CUdeviceptr a = gpb_child_upload(x, bytes_of(9));
    const pivots p = make_pivots();
    gpb_panel_args g = panel_of(&p, a, 3, 3, 0, 3, 0);
    EXPECT(launch_panel(false, &g) == CUDA_SUCCESS);
    const int32_t *ipiv = download(p.ipiv, 12), *info = download(p.info, 4);
    const void *after = download(a, bytes_of(9));
    EXPECT(ipiv[0] == 1 && ipiv[1] == 2 && ipiv[2] == 3 && *info == INT32_MAX);
    EXPECT(get(after, 0) == 4 && get(after, 3) == 1 && is_nan(get(after, 4)) && is_nan(get(after, 8)));
    return GPB_CHILD_OK;
}

/* ---- Cholesky */

/* A positive definite matrix: M M^H + 1, both triangles. */
static void *positive(int n)
{
    const void *m = elements((int64_t)n * n, 3);
    void *a = elements((int64_t)n * n, 3);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            gpb_scalar sum = i == j;
            for (int k = 0; k < n; k++)
                sum += product(get(m, i + k * n), conjugate(get(m, j + k * n)));
            put(a, i + j * n, sum);
        }
    return a;
}

/* The first n columns of a matrix of order `all`. */
static gpb_cholesky_args cholesky_of(CUdeviceptr a, int n, int all, bool upper, CUdeviceptr info)
{
    const uint32_t before = 0xFFFFFFFF;            /* it may overflow */
    return (gpb_cholesky_args){ .a = (void *)a, .rs = upper ? all : 1, .cs = upper ? 1 : all,
                                .below = all - n, .n = n, .first = FIRST, .info = (int32_t *)info,
                                .arrivals = (uint32_t *)gpb_child_upload(&before, sizeof before),
                                .arrived = before };
}

static CUresult launch_cholesky(gpb_cholesky_args *g)
{
    const uint32_t blocks = (uint32_t)GPB_CHOLESKY_BLOCKS(g->below, bytes_of(1));
    const unsigned shared = GPB_ALONE_SHARED(SHARED);
    const CUresult result = launch_as(solver_cholesky, blocks, shared, NULL, 0, g);
    EXPECT(*(uint32_t *)download((CUdeviceptr)g->arrivals, sizeof blocks) == g->arrived + blocks);
    return result;
}

static int cholesky(void)
{
    gpb_child_start();
    const int below[] = { 0, 5, (int)GPB_CHOLESKY_ROWS(bytes_of(1)) + 1 };
    const int32_t none = INT32_MAX;
    for (int which = 0; which < 6; which++) {
        const bool upper = which % 2;
        const int n = order() - 3, all = n + below[which / 2];
        const void *a = positive(all);
        void *half = copy_of(a, (int64_t)all * all);
        const int64_t rs = upper ? all : 1, cs = upper ? 1 : all;
        for (int j = 0; j < all; j++)
            for (int i = 0; i < (j < n ? j : all); i++)
                put(half, i * rs + j * cs, NAN);              /* never read */
        const CUdeviceptr at = gpb_child_upload(half, bytes_of((int64_t)all * all)),
                          info = gpb_child_upload(&none, sizeof none);
        gpb_cholesky_args g = cholesky_of(at, n, all, upper, info);
        EXPECT(launch_cholesky(&g) == CUDA_SUCCESS);
        const void *l = download(at, bytes_of((int64_t)all * all));
        EXPECT(*(int32_t *)download(info, 4) == INT32_MAX);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < all; i++) {
                gpb_scalar sum = get(half, i * rs + j * cs);
                double bound = size(sum);
                for (int k = 0; k <= j && i >= j; k++) {
                    const gpb_scalar x = get(l, i * rs + k * cs), y = get(l, j * rs + k * cs);
                    sum -= product(x, conjugate(y));
                    bound += size(x) * size(y);
                }
                EXPECT(i < j ? is_nan(get(l, i * rs + j * cs))
                             : size(sum) <= (2 * n + 8) * unit_of() * bound);
            }
    }
    return GPB_CHILD_OK;
}

static int cholesky_fails(void)
{
    gpb_child_start();
    for (int bad = 0; bad < 3; bad++) {
        const int32_t before = bad == 2 ? 1 : INT32_MAX;      /* an earlier failure stays */
        void *a = positive(6);
        put(a, 3 + 3 * 6, bad ? -1 : NAN);
        const CUdeviceptr at = gpb_child_upload(a, bytes_of(36)),
                          info = gpb_child_upload(&before, sizeof before);
        gpb_cholesky_args g = cholesky_of(at, 6, 6, false, info);
        EXPECT(launch_cholesky(&g) == CUDA_SUCCESS);
        EXPECT(*(int32_t *)download(info, 4) == (bad == 2 ? 1 : FIRST + 4));
    }
    return GPB_CHILD_OK;
}

/* ---- triangles */

/* Where element (0, 0) lies of an n x cols matrix with such strides that fills its memory. */
static int64_t origin(int64_t rows, int64_t cols, int64_t rs, int64_t cs)
{
    return (rs < 0 ? (1 - rows) * rs : 0) + (cs < 0 ? (1 - cols) * cs : 0);
}

static enum solver with;                  /* substitute, multiply or trsv */

static CUresult launch_triangle(const gpb_triangle_args *of)
{
    const bool multiplies = with == solver_multiply;
    const size_t real = gpb_type_real_bytes(type);
    const unsigned blocks = (unsigned)(multiplies ? GPB_MULTIPLY_BLOCKS(of->cols, real, (int)bytes_of(1))
                                                  : GPB_SUBSTITUTE_BLOCKS(of->cols, GPB_SUBSTITUTE_GROUPS));
    const int64_t shared = multiplies ? GPB_TRIANGLE_SHARED((int)bytes_of(1))
                                      : GPB_SUBSTITUTE_SHARED(real, (int)bytes_of(1));
    gpb_multiply_args one = { .of = *of, .from = of->b, .rsf = of->rsb, .csf = of->csb, .order = of->n,
                              .first = of->n };
    if (with != solver_trsv)
        return launch_as(with, blocks, shared, NULL, 0,
                         multiplies ? (void *)&one : (void *)(uintptr_t)of);
    const uint32_t before = 0xFFFFFFFF;            /* it may overflow */
    const CUdeviceptr arrivals = gpb_child_upload(&before, sizeof before);
    gpb_trsv_args g = { .of = *of, .arrivals = (uint32_t *)arrivals, .arrived = before };
    CUlaunchAttribute how = cooperative();
    const uint32_t counted = (uint32_t)GPB_TRSV_BLOCKS(of->n, bytes_of(1));
    const CUresult result = launch_as(with, counted > 2 ? 2 : counted, 0, &how, 1, &g);
    EXPECT(*(uint32_t *)download(arrivals, sizeof before) == before + counted);
    return result;
}

static void triangle_with(int n, int64_t rsl, int64_t csl, int64_t rsb, int64_t csb, bool unit, bool conj)
{
    const int cols = with == solver_trsv ? 1 : COLS;
    const int64_t l0 = origin(n, n, rsl, csl), b0 = origin(n, cols, rsb, csb), in_b = (int64_t)n * cols;
    const gpb_scalar alpha = unit ? 1 : __builtin_complex(0.5, gpb_type_is_complex(type) ? 0.25 : 0);
    void *l = elements((int64_t)n * n, 5), *b = elements(in_b, 6);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            const int64_t at = l0 + i * rsl + j * csl;
            if (i < j || (unit && i == j))
                put(l, at, NAN);                              /* never read */
            else
                put(l, at, i == j ? get(l, at) + 4 : get(l, at) / n);
        }
    /* Without the first and the last element, if those are on a diagonal that is not read. */
    const int64_t skip = unit && n > 1 ? 1 : 0;
    const CUdeviceptr at_l = gpb_child_upload((char *)l + bytes_of(skip), bytes_of((int64_t)n * n - 2 * skip))
                             - bytes_of(skip),
                      at_b = gpb_child_upload(b, bytes_of(in_b));
    gpb_triangle_args g = { .l = (void *)(at_l + bytes_of(l0)), .rsl = rsl, .csl = csl,
                              .b = (void *)(at_b + bytes_of(b0)), .rsb = rsb, .csb = csb, .cols = cols,
                              .alpha = GPB_SCALAR_RE_IM(alpha), .n = n, .unit = unit, .conj = conj };
    EXPECT(launch_triangle(&g) == CUDA_SUCCESS);
    const void *x = download(at_b, bytes_of(in_b));
    /* L X = alpha B, or X = alpha L B. */
    const bool solves = with != solver_multiply;
    const void *right = solves ? b : x, *in = solves ? x : b;
    for (int c = 0; c < cols; c++)
        for (int i = 0; i < n; i++) {
            gpb_scalar sum = product(solves ? alpha : 1, get(right, b0 + i * rsb + c * csb));
            double bound = 2 * size(sum);
            for (int j = 0; j <= i; j++) {
                const gpb_scalar y = unit && i == j ? 1 : get(l, l0 + i * rsl + j * csl),
                                 v = product(solves ? 1 : alpha, get(in, b0 + j * rsb + c * csb));
                sum -= product(conj ? conjugate(y) : y, v);
                bound += 2 * size(y) * size(v);
            }
            EXPECT(size(sum) <= (n + 8) * unit_of() * bound);
        }
}

static int triangle(void)
{
    gpb_child_start();
    for (int how = 0; how < 64; how++) {
        const bool one = with == solver_trsv;
        const int columns = one ? 1 : COLS, most = one ? 2 * order() + 5 : GPB_TRIANGLE_ORDER(bytes_of(1));
        const int n = how & 1 ? most : how & 2 ? 5 : 1;
        const int sign_l = how & 4 ? -1 : 1, sign_b = how & 8 ? -1 : 1;
        const bool unit = how & 16, conj = how & 32, across = (how ^ how >> 2) & 1;
        triangle_with(n, sign_l * (across ? n : 1), sign_l * (across ? 1 : n),
                      sign_b * (across ? columns : 1), across ? 1 : n, unit, conj);
    }
    triangle_with(7, 1, 7, 1, -7, false, true);
    return GPB_CHILD_OK;
}

/* ---- systems: members n x n, and of B and X n x AT_ONCE, in one piece of memory each */

enum { SYSTEMS = 3, AT_ONCE = 70 };

static gpb_systems_args systems_of(CUdeviceptr l, CUdeviceptr b, CUdeviceptr x, int n)
{
    return (gpb_systems_args){ .l = (void *)l, .b = (void *)b, .x = (void *)x, .rsl = 1, .csl = n,
                               .rsb = 1, .csb = n, .rsx = AT_ONCE, .csx = 1, .stride_l = n * n,
                               .stride_b = n * AT_ONCE, .stride_x = n * AT_ONCE, .batch = SYSTEMS,
                               .cols = AT_ONCE, .alpha = { 0.5 }, .n = n };
}

static CUresult launch_systems(bool small, unsigned more, gpb_systems_args *g)
{
    return launch_as(small ? solver_small_systems : solver_systems,
                     (unsigned)(small ? GPB_SMALL_SYSTEMS_BLOCKS(g->cols, g->batch)
                                      : GPB_SYSTEMS_BLOCKS(g->cols, g->batch)) + more,
                     0, NULL, 0, g);
}

/* The triangle is the upper one if it is walked backwards; then it is the lower one from its end. */
static void systems_with(int n, bool small, bool backwards, bool listed, bool right)
{
    const int64_t in_l = (int64_t)n * n * SYSTEMS, in_b = (int64_t)n * AT_ONCE * SYSTEMS;
    void *l = elements(in_l, 5), *b = elements(in_b, 6);
    for (int64_t e = 0; e < in_l; e++) {
        const int64_t i = e % n, j = e / n % n;
        if (backwards ? i > j : i < j) put(l, e, NAN);
        else put(l, e, i == j ? get(l, e) + 4 : get(l, e) / n);
    }
    const CUdeviceptr at_l = gpb_child_upload(l, bytes_of(in_l)),
                      at_b = gpb_child_upload(b, bytes_of(in_b)),
                      at_x = gpb_child_upload(b, bytes_of(in_b));
    gpb_systems_args g = systems_of(at_l, at_b, at_x, n);
    gpb_gemm_item items[SYSTEMS];
    for (int m = 0; m < SYSTEMS; m++) {
        const void *of_l = (void *)(at_l + bytes_of(m * g.stride_l)),
                   *of_b = (void *)(at_b + bytes_of(m * g.stride_b));
        items[m] = (gpb_gemm_item){ right ? of_b : of_l, right ? of_l : of_b,
                                    (void *)(at_x + bytes_of(m * g.stride_x)) };
    }
    if (listed) {
        g.items = (void *)gpb_child_upload(items, sizeof items);
        g.l = g.b = NULL;
        g.x = NULL;
        g.right = right;
    }
    if (backwards) {
        g.first_l = (n - 1) * (g.rsl + g.csl);
        g.first_b = (n - 1) * g.rsb;
        g.first_x = (n - 1) * g.rsx;
        g.rsl = -g.rsl;
        g.csl = -g.csl;
        g.rsb = -g.rsb;
        g.rsx = -g.rsx;
    }
    EXPECT(launch_systems(small, 0, &g) == CUDA_SUCCESS);
    const void *x = download(at_x, bytes_of(in_b));
    EXPECT(!memcmp(download(at_b, bytes_of(in_b)), b, bytes_of(in_b)));
    for (int64_t m = 0; m < SYSTEMS; m++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < AT_ONCE; c++) {
                gpb_scalar sum = 0.5 * get(b, m * n * AT_ONCE + i + c * n);
                double bound = 2 * size(sum);
                for (int64_t p = backwards ? i : 0; p < (backwards ? n : i + 1); p++) {
                    const gpb_scalar y = get(l, m * n * n + i + p * n),
                                     v = get(x, (m * n + p) * AT_ONCE + c);
                    sum -= product(y, v);
                    bound += 2 * size(y) * size(v);
                }
                EXPECT(size(sum) <= (n + 8) * unit_of() * bound);
            }
}

static int systems(void)
{
    gpb_child_start();
    for (int how = 0; how < 6; how++) {
        systems_with(16, true, how % 2, how > 1, how > 3);
        systems_with(100, false, how % 2, how > 1, how > 3);
    }
    return GPB_CHILD_OK;
}

/* An infinite element of B and the zeros of the other triangle make no NaN. */
static int multiply_infinite(void)
{
    gpb_child_start();
    enum { N = 20, AT = 11 };
    void *l = elements(N * N, 5), *b = elements(N, 6);
    put(b, AT, INFINITY);
    const CUdeviceptr at_l = gpb_child_upload(l, bytes_of(N * N)), at_b = gpb_child_upload(b, bytes_of(N));
    gpb_triangle_args g = { .l = (void *)at_l, .rsl = 1, .csl = N, .b = (void *)at_b, .rsb = 1, .csb = N,
                            .cols = 1, .alpha = { 1 }, .n = N };
    with = solver_multiply;
    EXPECT(launch_triangle(&g) == CUDA_SUCCESS);
    const void *x = download(at_b, bytes_of(N));
    for (int i = 0; i < N; i++)
        EXPECT(isfinite(__real__ get(x, i)) == (i < AT));
    return GPB_CHILD_OK;
}

static int identity(void)
{
    gpb_child_start();
    enum { HIGH = 13, WIDE = 9 };
    const int64_t lda = HIGH + PAD, count = lda * WIDE;
    for (int64_t below = -3; below <= HIGH; below++) {
        void *a = elements(count, 7), *before = copy_of(a, count);
        const CUdeviceptr at = gpb_child_upload(a, bytes_of(count));
        gpb_identity_args g = { .a = (void *)at, .lda = lda, .rows = HIGH, .cols = WIDE, .below = below };
        EXPECT(launch_as(solver_identity, 4, 0, NULL, 0, &g) == CUDA_SUCCESS);
        const void *x = download(at, bytes_of(count));
        for (int64_t i = 0; i < count; i++)
            EXPECT(get(x, i) == (i % lda >= HIGH ? get(before, i) : i % lda == i / lda + below ? 1 : 0));
    }
    return GPB_CHILD_OK;
}

/* ---- exchanges of rows */

/* Three panels of different widths, whose exchanges are then made in another matrix: all of them, or without
   the first panel's. */
static int swap(void)
{
    gpb_child_start();
    const int w = widest(), widths[] = { w, 5, w - 1 }, columns = 2 * w + 4;
    enum { COLS_OF_B = 7 };
    const int64_t lda = ROWS + PAD;
    const CUdeviceptr a = gpb_child_upload(elements(lda * columns, 8), bytes_of(lda * columns));
    const pivots p = make_pivots();
    for (int i = 0, at = 0; i < 3; at += widths[i++]) {
        gpb_panel_args g = panel_of(&p, a, ROWS, lda, at, widths[i], 0);
        EXPECT(launch_panel(i % 2 == 0, &g) == CUDA_SUCCESS);
    }
    const int32_t *ipiv = download(p.ipiv, (size_t)columns * 4);
    for (int first = 0; first <= w; first += w) {
        void *b = elements(lda * COLS_OF_B, 9), *right = copy_of(b, lda * COLS_OF_B);
        const CUdeviceptr at = gpb_child_upload(b, bytes_of(lda * COLS_OF_B));
        gpb_swap_args g = { .a = (void *)at, .lda = lda, .cols = COLS_OF_B, .rows = ROWS,
                            .moves = (void *)p.moves, .width = (void *)p.width, .first = first,
                            .last = columns };
        EXPECT(launch_swap(&g) == CUDA_SUCCESS);
        for (int j = first; j < columns; j++)
            exchange_rows(right, lda, COLS_OF_B, j, ipiv[j] - 1);
        EXPECT(!memcmp(download(at, bytes_of(lda * COLS_OF_B)), right, bytes_of(lda * COLS_OF_B)));
        g.backwards = 1;
        EXPECT(launch_swap(&g) == CUDA_SUCCESS);
        EXPECT(!memcmp(download(at, bytes_of(lda * COLS_OF_B)), b, bytes_of(lda * COLS_OF_B)));
    }
    return GPB_CHILD_OK;
}

/* ---- the rules */

/* A launch that is right, except for one thing. Ends as each rule says. */
enum rule { NOTHING, GRID, THREADS, NO_ATTRIBUTE, SHORT, WIDE, LDA, BEYOND, ARRIVED, MISALIGNED, HOST, LAST,
            ROW, COMPLEX, SMEM, STALE };
static enum rule rule;

static bool broken(enum rule which) { return rule == which; }

static int panel_rules(void)
{
    gpb_child_start();
    const int64_t lda = ROWS;
    const CUdeviceptr a = gpb_child_upload(elements(lda * 4, 1), bytes_of(lda * 4));
    const pivots p = make_pivots();
    gpb_panel_args g = panel_of(&p, a, ROWS, lda, 0, 4, 0);
    if (broken(SHORT)) g.m = 3;
    if (broken(WIDE)) g.n = 33;
    if (broken(LDA)) g.lda--;
    if (broken(BEYOND)) g.ipiv += COLUMNS - 3;
    if (broken(ARRIVED)) g.arrived++;
    const uint64_t stale = (uint64_t)(g.arrived + (uint32_t)g.n) << 32;
    if (broken(STALE)) EXPECT(cuMemcpyHtoD(p.slots + 8, &stale, sizeof stale) == CUDA_SUCCESS);
    if (broken(MISALIGNED)) g.moves = (void *)((char *)g.moves + 2);
    static int32_t of_host[4];
    if (broken(HOST)) g.width = of_host;
    const unsigned blocks = (unsigned)GPB_PANEL_BLOCKS(g.m);
    CUlaunchAttribute how = in_cluster ? cluster_of(blocks) : cooperative();
    EXPECT(launch_as(in_cluster ? solver_panel_cluster : solver_panel_grid, blocks + broken(GRID) * blocks, 0,
                     &how, !broken(NO_ATTRIBUTE), &g) == CUDA_SUCCESS);
    EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
    return GPB_CHILD_OK;
}

static int block_rules(void)
{
    gpb_child_start();
    const CUdeviceptr a = gpb_child_upload(elements(16, 1), bytes_of(16)), b = gpb_child_device(bytes_of(16)),
                      info = gpb_child_upload(&(int32_t){ INT32_MAX }, 4);
    gpb_cholesky_args c = cholesky_of(a, 4, 4, false, info);
    gpb_triangle_args s = { .l = (void *)a, .rsl = 1, .csl = 4, .b = (void *)b, .rsb = 1, .csb = 4,
                              .cols = 4, .alpha = { 1, broken(COMPLEX) }, .n = 4 };
    if (broken(WIDE)) c.n = order() + 1;
    if (broken(BEYOND)) s.rsb = -1;
    if (broken(LDA)) s.csl = 5;
    if (broken(HOST)) c.info = &(int32_t){ 0 };
    EXPECT(launch_as(solver_cholesky, 1, GPB_ALONE_SHARED(SHARED), NULL, 0, &c)
           == CUDA_SUCCESS);
    const int64_t shared = GPB_SUBSTITUTE_SHARED(gpb_type_real_bytes(type), bytes_of(1));
    EXPECT(launch_as(solver_substitute, 1 + broken(GRID), shared, NULL, 0, &s) == CUDA_SUCCESS);
    EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
    return GPB_CHILD_OK;
}

static int vector_rules(void)
{
    gpb_child_start();
    enum { N = 150 };
    const uint32_t none = 0;
    const CUdeviceptr l = gpb_child_upload(elements(N * N, 1), bytes_of(N * N)),
                      b = gpb_child_upload(elements(N, 2), bytes_of(N)),
                      arrivals = gpb_child_upload(&none, sizeof none);
    gpb_trsv_args g = { .of = { .l = (void *)l, .rsl = 1, .csl = N, .b = (void *)b, .rsb = 1, .csb = N,
                                .cols = 1 + broken(WIDE), .alpha = { 1, broken(COMPLEX) }, .n = N },
                        .arrivals = (uint32_t *)arrivals, .arrived = broken(ARRIVED) };
    if (broken(BEYOND)) g.of.rsb = 2;
    if (broken(LDA)) g.of.csl++;
    if (broken(MISALIGNED)) g.arrivals = (uint32_t *)(arrivals + 2);
    const unsigned blocks = (unsigned)GPB_TRSV_BLOCKS(N, bytes_of(1)) + broken(GRID);
    CUlaunchAttribute how = cooperative();
    EXPECT(launch_as(solver_trsv, blocks, 0, &how, !broken(NO_ATTRIBUTE), &g) == CUDA_SUCCESS);
    EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
    return GPB_CHILD_OK;
}

/* ---- digests */

enum { PARTS = 3 };

static int digest_rules(void)
{
    gpb_child_start();
    enum { ORDER = 90 };
    const int64_t lda = ORDER + PAD, count = lda * ORDER, unit = (int64_t)bytes_of(1) / 4;
    const int64_t all = gpb_digest_blocks(ORDER, 4 * unit) * ORDER, each = (all + PARTS - 1) / PARTS;
    uint32_t *a = elements(count, 7);
    gpb_digest_key *key = malloc(sizeof *key);
    EXPECT(key != NULL);
    for (int i = 0; i < GPB_DIGEST_KEYS; i++) key->word[i] = 0x9e3779b9u * (uint32_t)(i + 1);
    for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) key->point[pass] = GPB_DIGEST_PRIME / (pass + 2);
    const uint64_t nothing[PARTS][GPB_DIGEST_PASSES] = { 0 };
    const CUdeviceptr at = gpb_child_upload(a, bytes_of(count)), of_key = gpb_child_upload(key, sizeof *key);
    const CUdeviceptr to = gpb_child_upload(nothing, sizeof nothing);
    for (const char *uplo = "GLU"; *uplo; uplo++) {
        gpb_digest_args g = { .a = (void *)at, .lda = rule == LDA ? ORDER - 1 : lda, .rows = ORDER,
                              .cols = rule == BEYOND ? ORDER + PAD : ORDER, .each = each,
                              .key = (void *)(rule == HOST ? (CUdeviceptr)key : of_key),
                              .polynomials = (void *)(rule == MISALIGNED ? to + 4 : to), .uplo = *uplo };
        EXPECT(launch_as(solver_digest, rule == GRID ? PARTS + 1 : PARTS, 0, NULL, 0, &g) == CUDA_SUCCESS);
        const uint64_t *got = download(to, sizeof nothing);
        for (int64_t part = 0; part < PARTS; part++)
            for (int pass = 0; pass < GPB_DIGEST_PASSES; pass++) {
                const int64_t first = part * each, last = first + each < all ? first + each : all;
                EXPECT(*got++ == gpb_digest_by_words(key, pass, a, unit, ORDER, lda, *uplo, first, last));
            }
    }
    return GPB_CHILD_OK;
}

static int systems_rules(void)
{
    gpb_child_start();
    enum { N = 16 };
    void *l = elements(N * N * SYSTEMS, 1);
    const int64_t in_b = (int64_t)N * AT_ONCE * SYSTEMS;
    const CUdeviceptr at_l = gpb_child_upload(l, bytes_of(N * N * SYSTEMS)),
                      b = gpb_child_upload(elements(in_b, 2), bytes_of(in_b)),
                      x = gpb_child_device(bytes_of(in_b));
    gpb_systems_args g = systems_of(at_l, b, x, N);
    if (broken(WIDE)) g.n++;
    if (broken(BEYOND)) g.first_x++;
    if (broken(LDA)) g.stride_l++;
    if (broken(HOST)) g.items = (gpb_gemm_item[SYSTEMS]){ 0 };
    if (broken(COMPLEX)) g.alpha[1] = 1;
    EXPECT(launch_systems(true, broken(GRID), &g) == CUDA_SUCCESS);
    EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
    return GPB_CHILD_OK;
}

static int swap_rules(void)
{
    gpb_child_start();
    gpb_row_move moves[] = { { 0, 2 }, { 1, 3 }, { 2, 0 }, { 3, 1 } };
    if (broken(ROW)) moves[0].from = 4;
    if (broken(WIDE)) moves[2] = (gpb_row_move){ 0, 1 };      /* row 0 from two rows */
    const CUdeviceptr a = gpb_child_upload(elements(8, 1), bytes_of(8)),
                      at = gpb_child_upload(moves, sizeof moves),
                      width = gpb_child_upload((int32_t[]){ 2, 2 }, 8);
    gpb_swap_args g = { .a = (void *)a, .lda = 4, .cols = 2, .rows = 4, .moves = (void *)at,
                        .width = (void *)width, .last = 2 };
    if (broken(LAST)) g.last = 1;
    if (broken(LDA)) g.lda++;
    const int64_t smem = GPB_SWAP_SHARED(g.rows, g.last) + 4 * broken(SMEM);
    EXPECT(launch_as(solver_swap, 2 + broken(GRID), smem, NULL, 0, &g) == CUDA_SUCCESS);
    EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
    return GPB_CHILD_OK;
}

/* What a driver refuses: clusters that the GPU has not, or that were not asked for; more blocks than the GPU
   holds; shared memory that was not asked for. */
static int refused(void)
{
    gpb_child_start();
    const bool none = getenv("FAKECUDA_NO_CLUSTERS");
    const CUdeviceptr a = gpb_child_device(bytes_of(MOST));
    EXPECT(cuMemsetD8(a, 0, bytes_of(MOST)) == CUDA_SUCCESS);
    const pivots p = make_pivots();
    gpb_panel_args g = panel_of(&p, a, MANY, MOST, 0, 1, 0);
    CUlaunchAttribute of_nine = cluster_of(9), all = cooperative();
    CUlaunchConfig config = { .gridDimX = 9, .gridDimY = 1, .gridDimZ = 1, .blockDimX = GPB_PANEL_THREADS,
                              .blockDimY = 1, .blockDimZ = 1, .attrs = &of_nine, .numAttrs = 1 };
    const CUfunction f = gpb_child_kernel(symbols[type][solver_panel_cluster]);
    EXPECT(cuLaunchKernelEx(&config, f, (void *[]){ &g }, NULL) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    EXPECT(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 2)
           == CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1) == CUDA_SUCCESS);
    EXPECT(cuLaunchKernelEx(&config, f, (void *[]){ &g }, NULL)
           == (none ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS));
    g.m = MOST;
    EXPECT(launch_panel(true, &g) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
    config.gridDimX = 133;
    config.attrs = &all;
    const CUfunction grid = gpb_child_kernel(symbols[type][solver_panel_grid]);
    EXPECT(cuLaunchKernelEx(&config, grid, (void *[]){ &g }, NULL)
           == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    const CUfunction swaps = gpb_child_kernel(symbols[type][solver_swap]);
    gpb_swap_args s = { .a = (void *)a, .lda = MOST, .cols = 1, .rows = 10000 };
    EXPECT(cuLaunchKernel(swaps, 1, 1, 1, GPB_SWAP_THREADS, 1, 1, GPB_SWAP_SHARED(10000, 0), NULL,
                          (void *[]){ &s }, NULL) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(launch_swap(&s) == CUDA_SUCCESS);
    EXPECT(cuFuncSetAttribute(swaps, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 << 10)
           == CUDA_ERROR_INVALID_VALUE);
    return GPB_CHILD_OK;
}

/* ---- tests */

static void all_types(int (*body)(void))
{
    for (int of = 0; of < GPB_TYPES; of++) {
        type = (enum gpb_type)of;
        assert_int_equal(gpb_child_run(body, NULL), GPB_CHILD_OK);
    }
}

static void panels(int64_t rows, int width, bool zeros)
{
    panel_rows = rows;
    singular = zeros;
    for (int of = 0; of < GPB_TYPES; of++) {
        type = (enum gpb_type)of;
        panel_width = width < widest() ? width : widest();
        assert_int_equal(gpb_child_run(panel, NULL), GPB_CHILD_OK);
    }
}

static void test_panels(void **state)
{
    (void)state;
    for (int cluster = 0; cluster < 2; cluster++) {
        in_cluster = cluster;
        panels(1, 1, false);
        panels(20, 20, false);
        panels(5, 3, true);
        panels(ROWS, 32, false);
        panels(ROWS, 32, true);
        panels(MANY, 3, false);
    }
    in_cluster = false;
    panels(MOST, 2, false);
    all_types(pivots_of_columns);
    all_types(panel_of_nan);
}

static void test_cholesky(void **state)
{
    (void)state;
    all_types(cholesky);
    all_types(cholesky_fails);
}

static void test_triangles(void **state)
{
    (void)state;
    with = solver_substitute;
    all_types(triangle);
    with = solver_multiply;
    all_types(triangle);
    all_types(multiply_infinite);
    with = solver_trsv;
    all_types(triangle);
}

static void test_systems(void **state)
{
    (void)state;
    all_types(systems);
}

static void test_identity(void **state)
{
    (void)state;
    all_types(identity);
}

static void test_swap(void **state)
{
    (void)state;
    all_types(swap);
}

static void expect_caught(int (*body)(void), const enum rule *rules)
{
    rule = NOTHING;
    all_types(body);
    type = GPB_TYPE_d;
    for (; *rules; rules++) {
        rule = *rules;
        assert_int_equal(gpb_child_run(body, NULL), 86);
    }
}

static void test_broken_rules(void **state)
{
    (void)state;
    for (int cluster = 0; cluster < 2; cluster++) {
        in_cluster = cluster;
        expect_caught(panel_rules, (enum rule[]){ GRID, NO_ATTRIBUTE, SHORT, WIDE, LDA, BEYOND, MISALIGNED,
                                                  HOST, cluster ? NOTHING : ARRIVED,
                                                  cluster ? NOTHING : STALE, NOTHING });
    }
    expect_caught(block_rules, (enum rule[]){ GRID, WIDE, LDA, BEYOND, HOST, COMPLEX, NOTHING });
    expect_caught(vector_rules, (enum rule[]){ GRID, NO_ATTRIBUTE, WIDE, LDA, BEYOND, ARRIVED, MISALIGNED,
                                               COMPLEX, NOTHING });
    expect_caught(digest_rules, (enum rule[]){ GRID, LDA, BEYOND, MISALIGNED, HOST, NOTHING });
    expect_caught(systems_rules, (enum rule[]){ GRID, WIDE, LDA, BEYOND, HOST, COMPLEX, NOTHING });
    expect_caught(swap_rules, (enum rule[]){ GRID, WIDE, LDA, LAST, ROW, SMEM, NOTHING });
    type = GPB_TYPE_s;
    in_cluster = true;
    rule = NOTHING;
    assert_int_equal(gpb_child_run(panel_rules, (const char *[]){ "FAKECUDA_ARCH", "80", NULL }),
                     GPB_CHILD_BROKEN);
}

static void test_refused(void **state)
{
    (void)state;
    all_types(refused);
    assert_int_equal(gpb_child_run(refused, (const char *[]){ "FAKECUDA_NO_CLUSTERS", "1", NULL }),
                     GPB_CHILD_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_panels), cmocka_unit_test(test_cholesky), cmocka_unit_test(test_triangles),
        cmocka_unit_test(test_systems), cmocka_unit_test(test_identity),
        cmocka_unit_test(test_swap), cmocka_unit_test(test_broken_rules), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
