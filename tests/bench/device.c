/* SPDX-License-Identifier: MIT */
/* --device: the exported names on operands in device memory, as a user calls them, against cuBLAS in the same run. Ours and cuBLAS
   by turns, on rotating operands, one completed call at a time by the host's clock; cuBLAS by events too, for information. */
#include "tests/bench/bench.h"
#include "tests/bench/gpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PROBLEMS = 1024, MOST_CALLS = 201, RUN = 5 };
#define SHORT 1e-3                                            /* seconds */

static problem problems[MOST_PROBLEMS];
static int count;

static int odd_ld(int rows) { return rows | 1; }

static void add(const char *suite, int m, int n, int k, const char *pair, const bench_options *options)
{
    bool odd = !strcmp(suite, "odd");
    int rows_a = pair[0] == 'N' ? m : k, rows_b = pair[1] == 'N' ? k : n;
    if (m > options->largest || n > options->largest || count == MOST_PROBLEMS) return;
    if (!strcmp(suite, "squares") && options->largest < k) return;
    problems[count++] = (problem){ suite, m, n, k, pair[0], pair[1], odd ? odd_ld(rows_a) : rows_a, odd ? odd_ld(rows_b) : rows_b,
                                   odd ? odd_ld(m) : m, 1, STRIDED, odd,
                                   !strcmp(suite, "beta") };
}

static void add_pairs(const char *suite, int m, int n, int k, const bench_options *options)
{
    static const char *const pairs[] = { "NN", "NT", "TN", "TT" };
    for (int i = 0; i < 4; i++) add(suite, m, n, k, pairs[i], options);
}

static void squares(const bench_options *options)
{
    for (int n = options->largest < 512 ? options->largest : 512; n <= 16384; n *= 2) add_pairs("squares", n, n, n, options);
}

static void odd(const bench_options *options)
{
    static const int sizes[] = { 1022, 2044, 3135, 4097, 6132, 8176 };
    for (int i = 0; i < 6; i++) add_pairs("odd", sizes[i], sizes[i], sizes[i], options);
}

/* The second table of shared/measured/h200.md, and m or n in 1 .. 16. */
static void shapes(const bench_options *options)
{
    static const struct { int m, n, k; } table[] = {
        { 64, 64, 65536 }, { 128, 128, 16384 }, { 16, 16384, 4096 }, { 16384, 16, 4096 }, { 8192, 8192, 16 }, { 8192, 8192, 64 },
        { 1000, 50, 100000 }, { 32, 32, 1000000 }, { 768, 3072, 512 }, { 50257, 64, 768 }, { 12288, 128, 12288 },
        { 256, 256, 256 }, { 128, 128, 128 }, { 64, 64, 64 },
    };
    static const int thin[] = { 1, 2, 3, 4, 8, 16 };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) add_pairs("shapes", table[i].m, table[i].n, table[i].k, options);
    for (int i = 0; i < 6; i++)
        for (int n = 4096; n <= 8192; n *= 2) {
            add_pairs("thin", thin[i], n, n, options);
            add_pairs("thin", n, thin[i], n, options);
        }
}

static void batched(const bench_options *options)
{
    static const struct { int batch, n; } table[] = { { 1000, 64 }, { 256, 128 }, { 64, 512 } };
    for (int i = 0; i < 3; i++)
        for (enum batch_how how = STRIDED; how <= SHUFFLED; how++) {
            int before = count;
            add("batched", table[i].n, table[i].n, table[i].n, "NN", options);
            if (count > before) problems[count - 1].batch = table[i].batch, problems[count - 1].how = how;
        }
}

/* C that is read: beta is 1. */
static void beta(const bench_options *options)
{
    for (int n = options->largest < 512 ? options->largest : 512; n <= 8192; n *= 2) add("beta", n, n, n, "NN", options);
    add("beta", 4095, 4095, 4095, "NN", options);
    add("beta", 8192, 8192, 64, "NN", options);
    add("beta", 8192, 8192, 16, "NN", options);
}

static const struct { const char *name; void (*make)(const bench_options *); } suites[] = {
    { "squares", squares }, { "odd", odd }, { "shapes", shapes }, { "batched", batched },
    { "beta", beta },
};
/* suite: the only one, unless the command line names some. */
static const struct { const char *name; int cublas; double slack; const char *suite; } modes[] = {
    { "fp32", 0, 0, NULL }, { "ieee", 0, 0, NULL }, { "tf32", 3, 0x1p15, "squares" } };

static bool listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at && (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ',')) return true;
    return !list;
}

static bool wanted(const bench_options *options, size_t mode, const problem *p)
{
    return listed(options->modes, modes[mode].name) && (options->suites || !modes[mode].suite || !strcmp(modes[mode].suite, p->suite));
}

typedef struct result { spread ours, cublas, events; double error, cublas_error; bool on_gpu; char kernel[64]; } result;

static spread nothing(void) { return (spread){ NAN, NAN, NAN, 0 }; }

/* As many rounds as `seconds` allow, three at least; who goes first alternates. Short calls go in runs of a few: the first finds the
   rival's code in the caches, as no program's calls do. */
static result measured(const problem *p, double seconds)
{
    static double t[2][MOST_CALLS], events[MOST_CALLS];
    const int rivals = cublas.handle ? 2 : 1;
    const uint64_t before = gpu_calls();
    size_t set = 1;
    result r = { nothing(), nothing(), nothing(), gpu_error(GPU_OURS, p), cublas.handle ? gpu_error(GPU_CUBLAS, p) : NAN, false, "" };
    gpu_choice(p, r.kernel, sizeof r.kernel);
    for (int who = 0; who < rivals; who++) t[who][0] = gpu_timed((enum gpu_who)who, p, set++, false);
    double once = t[0][0] + (rivals > 1 ? t[1][0] : 0), wanted = seconds / once;
    int rounds = wanted < 3 ? 3 : wanted > MOST_CALLS ? MOST_CALLS : (int)wanted;
    int run = once < SHORT ? RUN : 1;
    for (int x = 0; x < rounds; x += run)
        for (int y = 0; y < rivals; y++) {
            int who = (x / run + y) % rivals;
            for (int z = x; z < x + run && z < rounds; z++) t[who][z] = gpu_timed((enum gpu_who)who, p, set++, false);
        }
    r.on_gpu = gpu_calls() >= before + 3 + (uint64_t)rounds;
    r.ours = spread_of(t[0], rounds);
    if (rivals == 1) return r;
    r.cublas = spread_of(t[1], rounds);
    int more = cuda.cuEventElapsedTime ? 1 + rounds / 4 : 0;
    for (int x = 0; x < more; x++) events[x] = gpu_timed(GPU_CUBLAS, p, set++, true);
    if (more) r.events = spread_of(events, more);
    return r;
}

static const char *how_name(const problem *p)
{
    static const char *const names[] = { "strided", "array", "shuffled" };
    return p->batch > 1 ? names[p->how] : "one";
}

static void write_csv(FILE *csv, const char *gpu, const char *mode, const problem *p, const result *r)
{
    double flops = problem_flops(p);
    fprintf(csv, "%s,%s,%s,%d,%d,%d,%c,%c,%d,%s,%d,", gpu, p->suite, mode, p->m, p->n, p->k, p->ta, p->tb, p->batch,
            how_name(p), r->ours.count);
    fprintf(csv, "%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,", 1e3 * r->ours.median, 1e3 * r->ours.least, 1e3 * r->ours.most,
            1e3 * r->cublas.median, 1e3 * r->cublas.least, 1e3 * r->cublas.most, 1e3 * r->events.median);
    fprintf(csv, "%.4f,%.3f,%.3f,%s,%.3f,%.3f\n", r->cublas.median / r->ours.median, 1e-12 * flops / r->ours.median,
            1e-12 * flops / r->cublas.median, r->kernel, r->error, r->cublas_error);
}

/* Geometric mean and least of ours/cuBLAS, a line for each suite and mode. */
static struct summary { const char *suite, *mode; double logs, least; const problem *at; int cases, below; } sums[24];

static void sum_up(const char *mode, const problem *p, double ratio)
{
    struct summary *s = sums;
    while (s->suite && (strcmp(s->suite, p->suite) || s->mode != mode)) s++;
    if (!s->suite) *s = (struct summary){ p->suite, mode, 0, INFINITY, p, 0, 0 };
    s->logs += log(ratio), s->cases++, s->below += ratio < 1;
    if (ratio < s->least) s->least = ratio, s->at = p;
}

static void summary(void)
{
    printf("\n%-8s %-5s %5s %9s %7s %6s   at\n", "suite", "mode", "cases", "geo mean", "least", "below");
    for (struct summary *s = sums; s->suite; s++)
        printf("%-8s %-5s %5d %8.3fx %6.3fx %6d   %d x %d x %d %c%c\n", s->suite, s->mode, s->cases, exp(s->logs / s->cases), s->least,
               s->below, s->at->m, s->at->n, s->at->k, s->at->ta, s->at->tb);
}

/* For the picture: what the arithmetic units could do at the highest clock. */
static void write_peaks(FILE *csv)
{
    int khz;
    if (cuda.cuDeviceGetAttribute(&khz, 13, 0)) return;       /* CU_DEVICE_ATTRIBUTE_CLOCK_RATE */
    const double clocks = 1e-9 * khz * cuda.sms, lanes = cuda.arch == 75 || cuda.arch == 80 ? 64 : 128;
    fprintf(csv, "# peak FP32 FMA: %.1f TFLOP/s\n", 2 * lanes * clocks);
    if (cuda.arch == 90) fprintf(csv, "# peak FP16 tensor cores, three products: %.1f TFLOP/s\n", 4096 * clocks / 3);
}

const problem *device_problems(const bench_options *options, int *made)
{
    for (size_t s = 0; s < sizeof suites / sizeof *suites; s++)
        if (listed(options->suites, suites[s].name)) suites[s].make(options);
    *made = count;
    return problems;
}

int bench_device(const bench_options *options)
{
    char gpu[256];
    int faults = 0, left = 0;
    if (!gpu_open(gpu, sizeof gpu)) return 77;
    gpu_open_cublas();
    gpu_open_ours(options->library);
    if (options->only) gpu_option("KERNEL", options->only);
    device_problems(options, &count);
    gpu_operands(problems, count);
    FILE *csv = bench_csv(options->csv, "gpu,suite,mode,m,n,k,ta,tb,batch,how,calls,ms_median,ms_least,ms_most,cublas_ms_median,"
                                        "cublas_ms_least,cublas_ms_most,cublas_events_ms,ratio,tflops,cublas_tflops,kernel,error_u,"
                                        "cublas_error_u");
    if (csv) write_peaks(csv);
    double start = seconds_now();
    for (size_t x = 0; x < 3; x++)
        for (int i = 0; i < count; i++) left += wanted(options, x, &problems[i]);
    printf("%s: median ms, TFLOP/s, cuBLAS's TFLOP/s, ratio, kernel/splits, max |e|/(|A||B|) in 2^-24: ours, cuBLAS's\n", gpu);
    for (size_t x = 0; x < 3; x++) {
        if (!listed(options->modes, modes[x].name)) continue;
        gpu_option("MATH", modes[x].name);
        if (cublas.handle) must(cublas.set_math(cublas.handle, modes[x].cublas), "cublasSetMathMode");
        for (int i = 0; i < count; i++) {
            const problem *p = &problems[i];
            if (!wanted(options, x, p)) continue;
            double each = (options->seconds - (seconds_now() - start)) / left--;
            result r = measured(p, fmax(0.7 * each, 0));      /* the rest: errors, warming up, events */
            bool right = r.error <= p->k + 4 + modes[x].slack;
            faults += !right || !r.on_gpu;
            if (!isnan(r.cublas.median)) sum_up(modes[x].name, p, r.cublas.median / r.ours.median);
            printf("%-7s %s %5d %5d %7d %c%c %s %9.4f %7.2f %7.2f %6.3fx %-14s %5.1f %5.1f%s%s\n", p->suite, modes[x].name, p->m, p->n,
                   p->k, p->ta, p->tb, how_name(p), 1e3 * r.ours.median,
                   1e-12 * problem_flops(p) / r.ours.median, 1e-12 * problem_flops(p) / r.cublas.median,
                   r.cublas.median / r.ours.median, r.kernel, r.error, r.cublas_error, right ? "" : " WRONG",
                   r.on_gpu ? "" : " NOT ON THE GPU");
            if (csv) write_csv(csv, gpu, modes[x].name, p, &r);
            fflush(NULL);
        }
    }
    summary();
    printf("%.0f s, %d faults\n", seconds_now() - start, faults);
    if (csv) fclose(csv);
    return faults != 0;
}
