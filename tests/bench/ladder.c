/* SPDX-License-Identifier: MIT */
/* The ladder: every kernel of the table and cuBLAS (default math), operands on the device, random data,
   buffers rotated through more memory than the L2 holds. All are timed alike, one completed call by the
   host's clock. The row cublas_events is cuBLAS by CUDA events, without the cost of a call. cuBLAS is only a
   reference, comes by dlopen, and may be missing. */
#include "tests/bench/bench.h"

#include "tests/bench/gpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 0: cuBLAS, 1: cuBLAS by events, then the kernels of the table. */
enum { CUBLAS, CUBLAS_EVENTS, FIRST };
static const gpu_kernel cublas_row = { .name = "cublas" }, events_row = { .name = "cublas_events" };
static int contenders(void) { return FIRST + gpu_kernel_count; }
static const gpu_kernel *contender(int i)
{
    return i == CUBLAS ? &cublas_row : i == CUBLAS_EVENTS ? &events_row : &gpu_kernels[i - FIRST];
}

typedef struct shape { int m, n, k; } shape;
static const shape shapes[] = {
    { 128, 128, 128 }, { 256, 256, 256 }, { 512, 512, 512 }, { 1022, 1022, 1022 }, { 1024, 1024, 1024 },
    { 2048, 2048, 512 }, { 2048, 2048, 1024 }, { 2048, 4096, 512 }, { 2048, 4096, 1024 },
    { 4096, 2048, 512 }, { 4096, 2048, 1024 }, { 4096, 4096, 512 }, { 4096, 4096, 1024 },
    { 2044, 2044, 2044 }, { 2048, 2048, 2048 }, { 3135, 3135, 3135 }, { 4088, 4088, 4088 },
    { 4096, 4096, 4096 },
    { 6132, 6132, 6132 }, { 8176, 8176, 8176 }, { 8192, 8192, 8192 },
};
enum {
    SHAPES = sizeof shapes / sizeof *shapes, MAX_CALLS = 100, MAX_SETS = 64, MAX_KERNELS = 256,
    L2 = 128 << 20, COMPARED = 4096
};

/* Operands: one stretch of device memory each, a set of buffers wherever one is needed. */
typedef struct stretch { gpu_address device; float *host; size_t floats; } stretch;
static stretch a, b, c;

static stretch stretch_make(size_t floats, uint64_t seed)
{
    stretch s = { 0, NULL, floats };
    MUST(cuMemAlloc_v2(&s.device, 4 * floats));
    if (!seed) return s;
    s.host = bench_memory(4 * floats);
    gpb_reference_fill(s.host, floats, seed);
    MUST(cuMemcpyHtoD_v2(s.device, s.host, 4 * floats));
    return s;
}

static float *at(stretch s, size_t set, int rows, int cols)
{
    size_t floats = ((size_t)rows * (size_t)cols + 63) / 64 * 64;
    return (float *)(uintptr_t)(s.device + 4 * (set * floats % (s.floats - floats + 1) / 64 * 64));
}

static size_t sets(shape s)
{
    size_t m = (size_t)s.m, n = (size_t)s.n, k = (size_t)s.k, count = L2 / (4 * (m * k + k * n + m * n)) + 2;
    return count < MAX_SETS ? count : MAX_SETS;
}

static void call(const gpu_kernel *who, shape s, size_t set)
{
    static const float one = 1, zero = 0;
    float *pa = at(a, set, s.m, s.k), *pb = at(b, set, s.k, s.n), *pc = at(c, set, s.m, s.n);
    const gpu_cublas_type *rival = &cublas.of[GPB_TYPE_s];
    if (who->step) ours.sgemm(102, 111, 111, s.m, s.n, s.k, 1, pa, s.m, pb, s.k, 0, pc, s.m);
    else
        must(rival->one(cublas.handle, 0, 0, s.m, s.n, s.k, &one, pa, s.m, pb, s.k, &zero, pc, s.m),
             "cublasSgemm");
}

static bool by_events(const gpu_kernel *who) { return strcmp(who->name, "cublas_events") == 0; }

static double timed(const gpu_kernel *who, shape s, size_t set)
{
    static void *begin, *end;
    float ms;
    if (!by_events(who)) {
        double start = seconds_now();
        call(who, s, set);
        if (!who->step) MUST(cuStreamSynchronize(NULL));
        return seconds_now() - start;
    }
    if (!begin) {
        MUST(cuEventCreate(&begin, 0));
        MUST(cuEventCreate(&end, 0));
    }
    MUST(cuEventRecord(begin, NULL));
    call(who, s, set);
    MUST(cuEventRecord(end, NULL));
    MUST(cuEventSynchronize(end));
    MUST(cuEventElapsedTime(&ms, begin, end));
    return 1e-3 * ms;
}

static double flops(shape s) { return sgemm_flops(s.m, s.n, s.k); }

/* About 40 ms of calls, or three of a slow kernel, or one of a slow kernel on a large shape or when the time
   is up. */
static spread measured(const gpu_kernel *who, shape s, bool hurry)
{
    double seconds[MAX_CALLS];
    size_t set = 0;
    call(who, s, set++ % sets(s));
    MUST(cuStreamSynchronize(NULL));
    seconds[0] = timed(who, s, set++ % sets(s));
    bool slow = flops(s) / seconds[0] < 2e12;
    int count = slow ? 3 : (int)fmin(MAX_CALLS, fmax(7, 0.04 / seconds[0]));
    if (hurry || (slow && s.m >= 6132)) count = 1;
    for (int i = 1; i < count; i++) seconds[i] = timed(who, s, set++ % sets(s));
    return spread_of(seconds, count);
}

/* The entries of the sample, poisoned before and fetched after one more call. */
static sample_error accuracy(const gpu_kernel *who, shape s, sample *sample)
{
    float poison;
    gpb_poison(GPB_TYPE_s, &poison, 1);
    gpu_address first = (uintptr_t)at(c, 0, s.m, s.n);
    for (int x = 0; x < SAMPLES; x++)
        MUST(cuMemcpyHtoD_v2(first + 4 * (gpu_address)sample->at[x], &poison, 4));
    call(who, s, 0);
    MUST(cuStreamSynchronize(NULL));
    for (int x = 0; x < SAMPLES; x++)
        MUST(cuMemcpyDtoH_v2(&sample->got[x], first + 4 * (gpu_address)sample->at[x], 4));
    return sample_judge(sample);
}

static bool runs(const gpu_kernel *who, const char *only)
{
    if (!who->step) return cublas.handle && (!by_events(who) || cuda.cuEventElapsedTime);
    return who->type == GPB_TYPE_s && gpu_runs(who) && (!only || !strcmp(only, who->name));
}

static void force(const gpu_kernel *who)
{
    if (!who->step) return;
    gpu_option("KERNEL", who->name);
    gpu_option("MATH", who->math == GPB_MATH_TF32 ? "tf32" : "fp32");
}

/* The squares worth a column at the end. */
static void summary(double rate[SHAPES][FIRST + MAX_KERNELS], const bench_options *options)
{
    printf("\nTFLOP/s, n x n x n; the last column: of cuBLAS at %d\n%-4s %-16s", COMPARED, "step", "kernel");
    for (int s = 0; s < SHAPES; s++)
        if (shapes[s].n == shapes[s].k && shapes[s].n <= options->largest) printf("%7d", shapes[s].n);
    printf("\n");
    for (int i = 0; i < contenders(); i++) {
        if (!runs(contender(i), options->only)) continue;
        printf("%-4d %-16s", contender(i)->step, contender(i)->name);
        for (int s = 0; s < SHAPES; s++)
            if (shapes[s].n == shapes[s].k && shapes[s].n <= options->largest)
                printf("%7.2f", 1e-12 * rate[s][i]);
        for (int s = 0; s < SHAPES && cublas.handle; s++)
            if (shapes[s].m == COMPARED && shapes[s].n == COMPARED && shapes[s].k == COMPARED
                && rate[s][0] > 0)
                printf("%6.1f%%", 100 * rate[s][i] / rate[s][0]);
        printf("\n");
    }
}

typedef struct run {
    const bench_options *options;
    const char *gpu;
    FILE *csv;
    double start;
    int faults;
} run;

/* One contender on one shape. Returns its flops a second. baseline: those of the first, which is cuBLAS. */
static double try_one(run *on, const gpu_kernel *who, shape s, sample *drawn, double baseline)
{
    force(who);
    const uint64_t before = gpu_calls();
    const sample_error error = accuracy(who, s, drawn);
    const spread t = measured(who, s, seconds_now() - on->start > on->options->seconds);
    const bool on_gpu = !who->step || gpu_calls() >= before + 2 + (uint64_t)t.count;
    const bool right = error.worst <= s.k + 4 + (who->math == GPB_MATH_TF32 ? 0x1p15 : 0);
    const double rate = flops(s) / t.median, of = who == &cublas_row ? rate : baseline;
    const double fraction = cublas.handle ? rate / of : NAN;      /* nan: no cuBLAS */
    printf("%5d %5d %5d  %-16s %9.4f %9.4f..%8.4f %9.0f %7.1f%% %9.2f %9.1e%s%s\n", s.m, s.n, s.k, who->name,
           1e3 * t.median, 1e3 * t.least, 1e3 * t.most, 1e-9 * rate, 100 * fraction, error.worst,
           error.frobenius, right ? "" : "  WRONG", on_gpu ? "" : "  NOT ON THE GPU");
    if (on->csv)
        fprintf(on->csv, "%s,%d,%d,%d,%d,%s,%d,%.6f,%.6f,%.6f,%.1f,%.4f,%.3f,%.3e\n", on->gpu, s.m, s.n, s.k,
                who->step, who->name, t.count, 1e3 * t.median, 1e3 * t.least, 1e3 * t.most, 1e-9 * rate,
                fraction, error.worst, error.frobenius);
    on->faults += !right || !on_gpu;
    fflush(NULL);
    return rate;
}

static void try_shape(run *on, shape s, double *rates)
{
    static sample drawn;
    sample_draw(&drawn, s.m, s.n, s.k, a.host, b.host);
    printf("\n%5s %5s %5s  %-16s %9s %19s %9s %8s %9s %9s\n", "m", "n", "k", "kernel", "ms", "least .. most",
           "GFLOP/s", "/cuBLAS", "error", "frobenius");
    for (int i = 0; i < contenders(); i++)
        if (runs(contender(i), on->options->only)) rates[i] = try_one(on, contender(i), s, &drawn, rates[0]);
}

int bench_ladder(const bench_options *options)
{
    static double rate[SHAPES][FIRST + MAX_KERNELS];
    char gpu[256];
    if (!gpu_open(gpu, sizeof gpu)) return 77;
    gpu_open_cublas();
    gpu_open_ours(options->library);
    run on = { .options = options, .gpu = gpu, .start = seconds_now() };
    on.csv = bench_csv(options->csv,
                       "gpu,m,n,k,step,kernel,calls,ms_median,ms_least,ms_most,gflops,of_cublas,"
                       "error_u,error_frobenius");
    const size_t largest = options->largest < 8192 ? (size_t)options->largest : 8192;
    const size_t floats = largest * largest + L2 / 4;
    a = stretch_make(floats, 1);
    b = stretch_make(floats, 2);
    c = stretch_make(floats, 0);
    printf(
        "%s. Operands on the device, NN, one completed call at a time; error: max |e|/(|A||B|) in units of "
        "2^-24\n",
        gpu);
    for (int x = 0; x < SHAPES; x++) {
        const shape s = shapes[x];
        if (s.m <= options->largest && s.n <= options->largest && s.k <= options->largest)
            try_shape(&on, s, rate[x]);
    }
    summary(rate, options);
    printf("%.0f s, %d faults\n", seconds_now() - on.start, on.faults);
    if (on.csv) fclose(on.csv);
    return on.faults != 0;
}
