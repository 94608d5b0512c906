/* SPDX-License-Identifier: MIT */
/* The cost model; see cost.h. Its figures are from shared/measured/h200.md (one H200 and 16 cores of its host, 2026-11-20). */
#include "dispatch/cost.h"

#include <math.h>

#include "dispatch/kernel_pick.h"

/* FP32 FMA lanes of an SM and a usual clock, by the first architecture that has them. 90: the H200's 1.98 GHz, 66.9 TFLOP/s on
   132 SMs. */
static const struct { int arch, lanes; double ghz; } multiprocessors[] = {
    { 75, 64, 1.35 }, { 80, 64, 1.41 }, { 86, 128, 1.70 }, { 89, 128, 2.40 }, { 90, 128, 1.98 }, { 100, 128, 1.90 },
    { 120, 128, 2.40 },
};

static double sm_flops(int arch)
{
    int i = sizeof multiprocessors / sizeof *multiprocessors - 1;
    while (i > 0 && multiprocessors[i].arch > arch) i--;
    return 2e9 * multiprocessors[i].lanes * multiprocessors[i].ghz;
}

static double least(double a, double b) { return a < b ? a : b; }
static double most(double a, double b) { return a > b ? a : b; }

/* ceil, of x >= 0. */
static double whole(double x)
{
    if (x > 1e18) return x;
    double below = (double)(int64_t)x;
    return below < x ? below + 1 : x;
}

/* The cube root of x >= 1 to a few digits, without libm (which every preloaded process would have to map). */
static double cube_root(double x)
{
    int exponent;
    frexp(x, &exponent);
    double root = ldexp(1, (exponent + 1) / 3);
    for (int i = 0; i < 4; i++) root -= (root - x / (root * root)) / 3;
    return root;
}

/* p cores on a problem of edge d do the work of p d / (d + 20 p): OpenBLAS on 16 cores reached 0.46, 0.83, 0.77, 0.99, 1 of its
   best rate at d = 512, 1024, 2048, 4096, 8192; the model says 0.62, 0.76, 0.86, 0.93, 0.96. Skinny problems go at memory's pace:
   10 GB/s a core, 63 in all. */
double gpb_cost_host(const gpb_call *call, const gpb_facts *facts)
{
    double m = (double)call->m, n = (double)call->n, k = gpb_call_multiplies(call) ? (double)call->k : 0;
    double cores = facts->cores, triangle = call->uplo == 'G' ? 1 : 0.5, batch = (double)call->batch;
    double edge = cube_root(m * n * k), flops = 2 * m * n * k * triangle * batch;
    double bytes = 4 * (m * k + k * n + 2 * m * n * triangle) * batch;
    double compute = k > 0 ? flops * (edge + 20 * cores) / (edge * cores * facts->core_gflops * 1e9) : 0;
    return 1e-6 + most(compute, bytes / (1e9 * least(10 * cores, 63)));
}

/* Staging overlaps copying by the CPU with copying by the GPU from the second chunk on; the first, of each of three operands,
   goes through one after the other: 1 MiB at twice one core's 10 GB/s. */
double gpb_cost_link(double bytes, const gpb_facts *facts)
{
    return bytes / (facts->link_gbs * 1e9) + least(bytes, 3 << 20) / 20e9;
}

static double round_up(int64_t x, int multiple)
{
    return multiple * whole((double)x / multiple);
}

/* Whole waves of whole tiles: that is what small and skinny C cost. An SM is at full speed from 512 threads on, at 5/8 with 128.
   A pass of packing costs a launch and reads and writes its operand at about 10 GB/s an SM. */
double gpb_cost_kernel(const gpb_kernel *kernel, double share, const gpb_call *call, const gpb_facts *facts)
{
    double m = round_up(call->m, kernel->bm), n = round_up(call->n, kernel->bn);
    double k = gpb_call_multiplies(call) ? (double)call->k : 0, batch = (double)call->batch;
    double tile = (double)kernel->bm * kernel->bn;
    double waves = whole(m * n * batch / (tile * facts->sms));
    double threads = least(waves * kernel->threads, 512);
    double busy = 1.25 * threads / (threads + 128);
    double compute = waves * 2 * tile * (k + 2 * kernel->bk) / (sm_flops(facts->arch) * share * busy);
    gpb_packing packs = gpb_kernel_packing(kernel, call, facts);
    double passes = packs.a + packs.b + packs.c;
    double bytes = 8 * batch * ((packs.a ? m * k : 0) + (packs.b ? k * n : 0) + (packs.c ? m * n : 0));
    return compute + passes * 3e-6 + bytes / (facts->sms * 1e10);
}
