/* SPDX-License-Identifier: MIT */
/* See resident.h. */
#include "dispatch/resident.h"

#include "dispatch/kernel_table.h"
#include "dispatch/numbers.h"
#include "kernels/solve_args.h"

gpb_resident gpb_resident_of_triangular(const gpb_triangular *t)
{
    const int64_t order = gpb_triangular_order(t);
    return (gpb_resident){ .system = { .a = { .symbol = t->symbol, .type = t->type, .width = t->width,
                                              .uplo = t->uplo, .m = order, .n = order,
                                              .a = (void *)(uintptr_t)t->a, .lda = t->lda },
                                       .trans = 'N', .nrhs = t->n, .b = t->b, .ldb = t->ldb },
                           .solves = true, .triangular = t };
}

gpb_resident gpb_resident_of_factors(const gpb_factor *f)
{
    return (gpb_resident){ .system = { .a = *f, .trans = 'N', .nrhs = f->n, .b = f->a, .ldb = f->lda },
                           .solves = true, .inverts = true, .divides = true };
}

gpb_triangular gpb_resident_solve_of(const gpb_inverse *t)
{
    return (gpb_triangular){ .symbol = t->symbol, .solves = true, .type = t->type, .width = t->width,
                             .side = 'L', .uplo = t->uplo, .trans = 'N', .diag = t->diag, .m = t->n,
                             .n = t->n, .alpha = 1, .a = t->a, .lda = t->lda, .b = t->a, .ldb = t->lda };
}

gpb_resident gpb_resident_of_inverse(const gpb_triangular *t)
{
    gpb_resident w = gpb_resident_of_triangular(t);
    w.inverts = true;
    w.divides = t->diag == 'N';
    return w;
}

/* TRMM from the right by an upper triangle: columns need those of B before them. */
bool gpb_resident_backwards(const gpb_resident *w)
{
    const gpb_triangular *t = w->triangular;
    return t && !t->solves && t->side == 'R' && (t->uplo == 'U') == (t->trans == 'N');
}

bool gpb_resident_by_rows(const gpb_resident *w)
{
    return w->triangular && !w->inverts && w->triangular->side == 'R';
}

enum { PANEL_GRAIN = 64 };         /* panels begin where tensor copies can read them */

/* Each panel takes as many launches as all columns would: 1.0 ms for 1024 of order 4096, 1.5 for 2048 (d,
   H100). It pays to have more of them where they come up meanwhile, too. A panel of TRSM should not take much
   longer than the next one's way: of order 8192 (d, H200) 2048 columns took 25.4 to 26.2 ms in all and 1024
   26.3 to 28.0, but of TRMM 24.6 to 25.2 and 21.9 to 22.4. */
static int64_t usual_panel(const gpb_resident *w, int64_t all)
{
    enum { LEAST = 2048, LEAST_UP = 1024 };
    const bool up = w->triangular && !w->inverts;
    const int64_t least = !up                       ? LEAST
                          : !w->triangular->solves ? LEAST_UP
                                                   : clamp(w->system.a.n / 4, LEAST_UP, LEAST);
    return round_up(max(least, ceil_div(all, GPB_RESIDENT_PANELS)), PANEL_GRAIN);
}

/* The first panel of TRSM from the left is computed while A comes, so it may be wide, and what the last one
   takes comes last. In sixteenths of B. Of order 4096 6.22 ms where four of one width took 6.37, of order
   8192 23.4 and 24.8 (d, H200, medians of 9 and 4 calls by turns). Others gain nothing: TRMM 5.8 and 6.2,
   from the right TRSM 6.55 and 6.72. */
static const int8_t narrowing[] = { 6, 4, 4, 2 }, deep_narrowing[] = { 6, 2, 3, 3, 2 };

static bool narrows(const gpb_resident *w, int64_t all)
{
    enum { LEAST = 4096 };
    const gpb_triangular *t = w->triangular;
    return t && !w->inverts && t->solves && t->side == 'L' && min(all, t->m) >= LEAST
           && all <= 2 * t->m;
}

gpb_resident_panels gpb_resident_cut(const gpb_resident *w)
{
    enum { DEEP = 6144, SHARES = 16 };
    const int64_t all = gpb_resident_by_rows(w) ? gpb_resident_b_rows(w) : gpb_resident_b_cols(w);
    const int64_t panel = usual_panel(w, all);
    const bool unequal = narrows(w, all), deep = w->system.a.n >= DEEP;
    const int8_t *share = deep ? deep_narrowing : narrowing;
    gpb_resident_panels to = { 0 };
    for (int64_t at = 0; at < all;) {
        to.first[to.count] = at;
        at += unequal ? round_up(ceil_div(all * share[to.count], SHARES), PANEL_GRAIN) : panel;
        to.count++;
    }
    to.first[to.count] = all;
    return to;
}

/* The last block is what the link does behind the computation: a sixteenth. Smaller blocks than a triangle's
   launch are not worth one. Other sizes were not tried. */
int64_t gpb_resident_inverse_block(const gpb_resident *w)
{
    enum { LEAST = 256, BLOCKS = 16 };
    return max(LEAST, round_up(ceil_div(w->system.a.n, BLOCKS), 64));
}

/* A triangle's launch takes longer for its operations than a product does, but a level more is a batch of
   small products. At 4096 an H200 takes 1.69, 1.77, 1.85 ms in d for triangles of 256, 128, 64, in s 0.97,
   0.99, 0.99, in c 2.45 and 2.74 for 128 and 64 (256 was not measured), in z 4.93 and 5.05. */
int64_t gpb_resident_level(const gpb_resident *w)
{
    enum { OF_C = 128 };
    const enum gpb_type type = w->system.a.type;
    return type == GPB_TYPE_c ? OF_C : GPB_TRIANGLE_ORDER(gpb_type_bytes(type));
}

int64_t gpb_resident_beside(const gpb_resident *w)
{
    return gpb_resident_inverts_lu(w) ? gpb_resident_inverse_block(w) : 0;
}

int64_t gpb_resident_b_rows(const gpb_resident *w)
{
    return w->triangular ? w->triangular->m : w->system.a.n;
}

int64_t gpb_resident_b_cols(const gpb_resident *w)
{
    return w->inverse_norm ? 1 : w->solves ? w->system.nrhs : 0;
}

/* Of TRSM and TRMM: B's size, and half of the triangle's order deep. */
static gpb_call product_like(const gpb_triangular *t)
{
    const int64_t k = max(1, gpb_triangular_order(t) / 2), ld = max(max(t->lda, t->ldb), t->m);
    return (gpb_call){ .symbol = t->symbol, .type = t->type, .width = t->width, .m = t->m, .n = t->n, .k = k,
                       .alpha = 1, .beta = 0, .batch = 1,
                       .x = { { .base = t->a, .ld = ld, .trans = 'N' },
                              { .base = t->b, .ld = max(ld, k), .trans = 'N' },
                              { .base = t->b, .ld = ld, .trans = 'N', .uplo = 'G' } } };
}

/* Multiplications of LAPACK's counts: n^3 / 6 for a triangle's inverse, 1/3 and 2/3 from factors. */
static gpb_call inverse_like(const gpb_resident *w)
{
    const gpb_factor *f = &w->system.a;
    const int64_t k = (w->triangular ? 1 : gpb_factor_is_lu(f) ? 4 : 2) * f->n / 6;
    const gpb_matrix a = { .base = f->a, .ld = f->lda, .trans = 'N' };
    gpb_matrix c = a;
    c.uplo = 'G';
    return (gpb_call){ .symbol = f->symbol, .type = f->type, .width = f->width, .m = f->n, .n = f->n,
                       .k = max(1, k), .alpha = 1, .beta = 0, .batch = 1, .x = { a, a, c } };
}

/* A goes up. Some eight pairs of solves with one vector are as many operations as a product with so many
   columns. */
static gpb_call estimate_like(const gpb_resident *w)
{
    enum { SOLVES = 8 };
    const gpb_factor *f = &w->system.a;
    const gpb_matrix a = { .base = f->a, .ld = f->lda, .trans = 'N' };
    gpb_matrix c = a;
    c.uplo = 'G';
    return (gpb_call){ .symbol = f->symbol, .type = f->type, .width = f->width, .m = f->n, .n = SOLVES,
                       .k = f->n, .alpha = 1, .beta = 0, .batch = 1, .x = { a, a, c } };
}

gpb_call gpb_resident_equivalent(const gpb_resident *w)
{
    if (w->inverse_norm) return estimate_like(w);
    if (w->inverts) return inverse_like(w);
    if (w->triangular) return product_like(w->triangular);
    const gpb_factor *f = &w->system.a;
    const double m = (double)f->m, n = (double)f->n, order = (double)gpb_factor_order(f);
    /* Multiplications of LAPACK's counts: LU of m x n; Cholesky half of that of n x n. One division in all,
       because the smallest systems come here, too. */
    const double lu = order * (m * n - (m + n) * order * 0.5 + order * order * (1.0 / 3));
    const double factor = !w->factors ? 0 : gpb_factor_is_lu(f) ? lu : n * n * n * (1.0 / 6);
    const double solve = w->solves ? n * n * (double)w->system.nrhs : 0;
    const int64_t cols = max(1, f->n + (w->solves ? w->system.nrhs : 0));
    const double k = (factor + solve) / (max(m, 1) * (double)cols);
    const void *b = w->solves ? w->system.b : f->a;
    const int64_t ld = max(f->lda, w->solves ? w->system.ldb : 1);
    return (gpb_call){ .symbol = f->symbol, .type = f->type, .width = f->width, .m = f->m, .n = cols,
                       .k = max(1, (int64_t)k), .alpha = 1, .beta = 0, .batch = 1,
                       .x = { { .base = f->a, .ld = ld, .trans = 'N' },
                              { .base = w->given ? w->given : b, .ld = max(ld, (int64_t)k), .trans = 'N' },
                              { .base = w->solves ? b : f->a, .ld = ld, .trans = 'N', .uplo = 'G' } } };
}

static double steps_s(const gpb_resident *w, double lu, double cholesky, double solve)
{
    const double factor = !w->factors ? 0 : gpb_factor_is_lu(&w->system.a) ? lu : cholesky;
    return (double)gpb_factor_order(&w->system.a) * (factor + (w->solves ? solve : 0));
}

/* Seconds for each column, with what the small products between panels take more than a large one. Together
   with the product, d from host memory, 512 to 8192, it says of getrf 1.3, 2.4, 5.6, 15, 48 ms and of potrf
   0.5, 0.9, 2.7, 8.5, 31. An H100 took 1.1, 2.3, 5.3, 13, 38 and 0.4, 0.6, 1.3, 3.3, 12 (2026-11-27,
   solvers.csv): the product's copies are those of whole matrices. Not measured on other generations. */
double gpb_resident_gpu_steps_s(const gpb_resident *w)
{
    /* An estimate: sixteen triangles with one vector, which comes up and goes home eight times. */
    const double START = 3e-4, VECTORS = 5e-4, TRIANGLES = 0.5e-6;
    if (w->inverse_norm) return START + VECTORS + TRIANGLES * (double)w->system.a.n;
    return START + steps_s(w, 1.5e-6, 0.1e-6, 0.3e-6);
}

/* OpenBLAS on 16 cores, d, 512 to 4096: what getrf and potrf take beyond as many operations of its GEMM (the
   same run). Inverses, 512 to 4096: getri 8 to 35 us, potri 3.2 to 11, trtri taken as half of that. One core
   waits for nobody. Estimates are one thread's: 0.27 s at 8192 (../shared/research/level3.md, 0). */
double gpb_resident_host_steps_s(const gpb_resident *w, int cores)
{
    const double waiting = (double)min(cores - 1, 15) / 15, BYTE = 5e-10, n = (double)w->system.a.n;
    if (w->inverse_norm) return BYTE * n * n * (double)gpb_type_bytes(w->system.a.type);
    const double inverse = w->triangular ? 1.5e-6 : gpb_factor_is_lu(&w->system.a) ? 5.5e-6 : 3e-6;
    return waiting * steps_s(w, 5.5e-6, 2.2e-6, w->inverts ? inverse : 0);
}

int64_t gpb_resident_ld(const gpb_resident *w)
{
    enum { OF_FOUR_BYTES = 8 };
    const int64_t of_b = w->solves ? gpb_resident_b_rows(w) : 1;
    return round_up(max(max(1, w->system.a.m), of_b), OF_FOUR_BYTES);
}

gpb_resident gpb_resident_narrow(const gpb_resident *w)
{
    gpb_resident narrow = { .system = w->system, .factors = true, .solves = true };
    narrow.system.a.type = gpb_type_narrow(w->system.a.type);
    narrow.system.a.a = narrow.system.b = NULL;
    return narrow;
}

int64_t gpb_resident_refined_bytes(const gpb_resident *w)
{
    enum { WORDS = 256 };                /* the norm, and two flags */
    if (!w->given) return 0;
    const enum gpb_type type = w->system.a.type;
    const int64_t ld = gpb_resident_ld(w), nrhs = w->system.nrhs;
    return WORDS + round_up(2 * ld * nrhs * (int64_t)gpb_type_bytes(type), 256)
           + round_up(ld * (w->system.a.n + nrhs) * (int64_t)gpb_type_bytes(gpb_type_narrow(type)), 256);
}

int64_t gpb_resident_bytes(const gpb_resident *w)
{
    const gpb_factor *f = &w->system.a;
    const int64_t element = (int64_t)gpb_type_bytes(f->type), ld = gpb_resident_ld(w);
    const int64_t cols = f->n + gpb_resident_b_cols(w) + gpb_resident_beside(w);
    const int64_t pivots = 8 + gpb_factor_order(f) * (4 + 4 + 2 * (int64_t)sizeof(gpb_row_move));
    const int64_t slots = 2 * GPB_PANEL_BLOCKS(f->m) * GPB_PANEL_SLOT_BYTES;
    return round_up(ld * cols * element, 256) + round_up(pivots, 256) + round_up(slots, 256)
           + gpb_resident_refined_bytes(w);
}

int64_t gpb_resident_results(const gpb_resident *w)
{
    const bool multiplies = w->triangular && !w->triangular->solves;
    const int64_t bytes = gpb_resident_ld(w) * gpb_resident_b_cols(w)
                          * (int64_t)gpb_type_bytes(w->system.a.type);
    return multiplies ? round_up(bytes, 256) : 0;
}

/* Such a GPU has a kernel of that form for that type. */
static bool has_form(enum gpb_type type, enum gpb_form form, int arch)
{
    for (int i = 0; i < gpb_kernel_count; i++)
        if (gpb_kernels[i].type == type && gpb_kernels[i].form == form
            && gpb_kernel_table_serves(&gpb_kernels[i], arch))
            return true;
    return false;
}

int64_t gpb_resident_workspace(const gpb_resident *w, int arch)
{
    /* The residues of the largest product, of a quarter and twice a half of the matrix, are 2.3 times as
       large as a matrix of double, and 3.5 times as one of double complex (kernels/residues.h). Kernels that
       take the operands as they are need room for parts of small products alone. */
    enum { LEAST = 64 << 20, PARTS = 1, SLICES = 4, RESIDUES = 8 };
    const gpb_factor *f = &w->system.a;
    const int halves = w->inverse_norm                             ? 0
                       : has_form(f->type, GPB_FORM_RESIDUES, arch) ? RESIDUES
                       : has_form(f->type, GPB_FORM_SLICED, arch)   ? SLICES
                                                                    : PARTS;
    return LEAST + halves * gpb_resident_ld(w) * f->n * (int64_t)gpb_type_bytes(f->type) / 2;
}

/* Beside what it has of its own. */
int64_t gpb_resident_swap_shared(int arch)
{
    enum { OWN = 11 << 10 };
    const int64_t kib = arch == 80 || arch == 87 ? 163 : arch >= 90 && arch < 120 ? 227 : 99;
    return (kib << 10) - OWN;
}

int64_t gpb_resident_exchanges(int64_t rows, int arch)
{
    const int64_t fit = (gpb_resident_swap_shared(arch) - GPB_SWAP_SHARED(rows, 0)) / GPB_SWAP_SHARED(0, 1);
    return max(0, min(fit, GPB_SWAP_MOST));
}

/* Clusters of 16 blocks are allowed on sm_90 and sm_100, and tried up to sm_120, which has none (a GPU that
   refuses them gets the panel by a grid); of 8 everywhere from sm_90 on. */
bool gpb_resident_one_cluster(int64_t rows, int arch)
{
    const int64_t most = arch < 90 ? 0 : arch < 120 ? GPB_PANEL_CLUSTER : 8;
    return GPB_PANEL_BLOCKS(rows) <= most;
}

bool gpb_resident_fits(const gpb_resident *w, int arch, int sms)
{
    enum { FEWEST_EXCHANGES = 1024 };
    const gpb_factor *f = &w->system.a;
    if (arch < 80) return false;
    if (!gpb_factor_is_lu(f) || w->inverse_norm) return true;
    return gpb_resident_exchanges(f->m, arch) >= FEWEST_EXCHANGES
           && (!w->factors || gpb_resident_one_cluster(f->m, arch) || GPB_PANEL_BLOCKS(f->m) <= sms);
}
