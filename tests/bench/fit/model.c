/* SPDX-License-Identifier: MIT */
/* The cost model for tests/bench/fit.py, which loads this and dispatch/ as one shared library. So the
   constants are fitted to what the library uses. */
#include "dispatch/cost.h"
#include "dispatch/kernel_pick.h"

#include <math.h>
#include <string.h>

/* A line of the CSV of `bench --fit`; fit.py has the same struct. */
typedef struct fit_row {
    int64_t m, n, k, lda, ldb, ldc, ta, tb, shift, batch, kernel, splits;
    double seconds, weight;
} fit_row;

/* In tuned.def's order. */
typedef struct fit_constants {
    double blocks, share, alone, tile_us, fixed_us, join_us, load, store, ta, tb, misaligned, misaligned_c;
} fit_constants;
typedef struct fit_gpu { double arch, sms, fma_per_sm, ghz, memory_gbs, launch_us, pass, call_us; } fit_gpu;

static gpb_call call_of(const fit_row *r)
{
    const enum gpb_type type = gpb_kernels[r->kernel].type;
    void *base = (void *)(256 + gpb_type_bytes(type) * (size_t)r->shift);
    return (gpb_call){ .symbol = "fit", .type = type, .m = r->m, .n = r->n, .k = r->k, .alpha = 1,
                       .batch = r->batch,
                       .x = { { base, NULL, r->lda * (r->ta == 'N' ? r->k : r->m), r->lda,
                                .trans = (char)r->ta },
                              { base, NULL, r->ldb * (r->tb == 'N' ? r->n : r->k), r->ldb,
                                .trans = (char)r->tb },
                              { base, NULL, r->ldc * r->n, r->ldc, .uplo = 'G' } } };
}

static gpb_facts facts_of(const fit_gpu *g)
{
    return (gpb_facts){ .gpu.arch = (int)g->arch,
                        .gpu.sms = (int)g->sms,
                        .gpu.bytes = INT64_C(1) << 40,
                        .link.up_gbs = 50,
                        .link.down_gbs = 50,
                        .link.dma_gbs = 50,
                        .link.call_s = 1e-6 * g->call_us,
                        .host.cores = 16,
                        .host.core_gflops = 60,
                        .where[GPB_A].place = GPB_PLACE_DEVICE,
                        .where[GPB_B].place = GPB_PLACE_DEVICE,
                        .where[GPB_C].place = GPB_PLACE_DEVICE,
                        .device = 1 };
}

double fit_predict(const fit_row *r, const fit_constants *c, const fit_gpu *g)
{
    const gpb_call call = call_of(r);
    const gpb_facts facts = facts_of(g);
    gpb_generation gpu = *gpb_generation_of((int)g->arch);
    gpu.fma_per_sm = (int)g->fma_per_sm;
    gpu.ghz = g->ghz;
    gpu.memory_gbs = g->memory_gbs;
    gpu.launch_us = g->launch_us;
    gpu.pass = g->pass;
    const gpb_tuned tuned = GPB_TUNED((enum gpb_kernel_row)r->kernel, (int)g->arch, (int)c->blocks, c->share,
                                      c->alone, c->tile_us, c->fixed_us, c->join_us, c->load, c->store, c->ta,
                                      c->tb, c->misaligned, c->misaligned_c);
    const gpb_case on = gpb_cost_case(&call, &facts, &gpu);
    const gpb_kernel_cost cost = gpb_cost_kernel(&gpb_kernels[r->kernel], &tuned, &on);
    return 1e-6 * g->call_us + gpb_cost_seconds(&cost, (int)r->splits);
}

/* Sum of weighted squares of log(predicted / measured), those beyond 30 % counted less. */
double fit_loss(const fit_row *rows, int count, const fit_constants *c, const fit_gpu *g)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        double off = fabs(log(fit_predict(&rows[i], c, g) / rows[i].seconds));
        sum += rows[i].weight * (off < 0.3 ? off * off : 0.6 * off - 0.09);
    }
    return sum;
}

/* The model's choice by tuned.def as it was when this was compiled: the kernel's number, and the parts. math:
   as in gpb_policy. */
int fit_choose(const fit_row *r, const fit_gpu *g, int math, int *splits)
{
    const gpb_call call = call_of(r);
    const gpb_facts facts = facts_of(g);
    const gpb_policy policy = { .offload = GPB_OFFLOAD_ALWAYS, .math = (enum gpb_math_policy)math };
    const gpb_choice best = gpb_kernel_pick(&call, &facts, &policy, false);
    *splits = best.splits;
    return best.kernel ? (int)(best.kernel - gpb_kernels) : -1;
}

/* The letter of its type. */
int fit_type(int i) { return gpb_type_of(gpb_kernels[i].type)->letter; }
const char *fit_kernel(int i) { return i < gpb_kernel_count ? gpb_kernels[i].name : NULL; }
int fit_math(int i) { return (int)gpb_kernels[i].math; }
int fit_form(int i) { return (int)gpb_kernels[i].form; }
int fit_runs(int i, int arch) { return gpb_kernel_table_runs(gpb_kernels[i].image, arch); }
