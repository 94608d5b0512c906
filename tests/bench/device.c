/* SPDX-License-Identifier: MIT */
/* --device: the exported names on operands in device memory, as a user calls them, against cuBLAS in the same
   run. Ours and cuBLAS take turns on rotating operands, and one completed call at a time is timed by the
   host's clock. cuBLAS is also timed by itself, because beside ours it finds a card that we have heated. We
   are compared with the better of the two. Squares are also run on end, one contender after the other. */
#include "tests/bench/bench.h"
#include "tests/bench/gpu.h"
#include "tests/bench/meter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PROBLEMS = 2048, MAX_CALLS = 201, RUN = 5, LONG = 512, MAX_ON_END = 1 << 17, FEW = 32 };
#define SHORT 1e-3                                            /* seconds */
/* Of a row's time: calls by turns, cuBLAS by itself, and by events. The rest goes into errors, the kernel's
   name and first calls. */
#define BY_TURNS 0.55
#define ALONE 0.15
#define BY_EVENTS 0.05

static gpu_problem problems[MAX_PROBLEMS];
static int count;
static enum gpb_type type;                                    /* of the problems that are being added */

static bool is_complex(void) { return gpb_type_of(type)->kind == GPB_TYPE_COMPLEX; }

/* NULL: not with these options. */
static gpu_problem *add(const char *suite, int m, int n, int k, const char *pair,
                        const bench_options *options)
{
    const bool odd = !strcmp(suite, "odd");
    if (m > options->largest || n > options->largest || count == MAX_PROBLEMS) return NULL;
    const bool is_rank_k = !strcmp(suite, "rank_k");
    if (!is_rank_k && !bench_listed(options->pairs, pair)) return NULL;
    if (!strcmp(suite, "squares") && options->largest < k) return NULL;
    gpu_problem *p = &problems[count++];
    *p = (gpu_problem){ .suite = suite, .beta = !strcmp(suite, "beta") };
    p->of = (gpb_problem){ .type = type, .m = m, .n = n, .k = k, .batch = 1, .transa = pair[0],
                           .transb = pair[1], .offset = odd };
    if (is_rank_k) {
        p->of.routine = is_complex() ? GPB_TEST_herk : GPB_TEST_syrk;
        p->of.uplo = 'L';
    }
    gpb_problem_lay_out(&p->of);
    for (enum gpb_operand x = GPB_A; x < GPB_OPERANDS && odd; x++) p->of.ld[x] |= 1;
    return p;
}

static void add_pairs(const char *suite, int m, int n, int k, const bench_options *options)
{
    static const char *const plain[] = { "NN", "NT", "TN", "TT" };
    static const char *const conjugated[] = { "NN", "NT", "TN", "CC" };
    for (int i = 0; i < 4; i++) add(suite, m, n, k, is_complex() ? conjugated[i] : plain[i], options);
}

static void squares(const bench_options *options)
{
    for (int n = options->largest < 512 ? options->largest : 512; n <= 16384; n *= 2) {
        if (is_complex() && n == 16384) add("squares", n, n, n, "NN", options);       /* seconds each */
        else add_pairs("squares", n, n, n, options);
    }
}

static void odd(const bench_options *options)
{
    static const int sizes[] = { 1022, 2044, 3135, 4097, 6132, 8176 };
    for (int i = 0; i < 6; i++) add_pairs("odd", sizes[i], sizes[i], sizes[i], options);
}

/* Shapes in which cuBLAS was found to be far from its best (2026-11-20), and m or n in 1 .. 16. */
static void shapes(const bench_options *options)
{
    static const struct { int m, n, k; } table[] = {
        { 64, 64, 65536 },    { 128, 128, 16384 },  { 16, 16384, 4096 }, { 16384, 16, 4096 },
        { 8192, 8192, 16 },   { 8192, 8192, 64 },   { 1000, 50, 100000 }, { 32, 32, 1000000 },
        { 768, 3072, 512 },   { 50257, 64, 768 },   { 12288, 128, 12288 },
        { 256, 256, 256 }, { 128, 128, 128 }, { 64, 64, 64 },
    };
    static const int thin[] = { 1, 2, 3, 4, 8, 16 };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        add_pairs("shapes", table[i].m, table[i].n, table[i].k, options);
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
        for (int how = 0; how < 3; how++) {
            gpu_problem *p = add("batched", table[i].n, table[i].n, table[i].n, "NN", options);
            if (!p) continue;
            p->of.batch = table[i].batch;
            p->of.routine = how == 0 ? GPB_TEST_gemm_batch_strided : GPB_TEST_gemm_batch;
            p->shuffled = how == 2;
        }
}

/* SYRK, of complex types HERK: squares, and the statistician's few columns of very many rows. */
static void rank_k(const bench_options *options)
{
    static const struct { int n, k; } tall[] = {
        { 12, 500000 }, { 64, 200000 }, { 256, 100000 }, { 1000, 60000 }
    };
    const char *const pairs[2] = { is_complex() ? "NC" : "NT", is_complex() ? "CN" : "TN" };
    for (int x = 0; x < 2; x++) {
        const int least = options->largest < 1024 ? options->largest : 1024;
        for (int n = least; n <= 16384 && n <= options->largest; n *= 2)
            if (n < 16384 || (x == 0 && type != GPB_TYPE_z)) add("rank_k", n, n, n, pairs[x], options);
        for (int i = 0; i < 4 && options->largest >= 1024; i++)
            add("rank_k", tall[i].n, tall[i].n, tall[i].k, pairs[x], options);
    }
}

/* C that is read: beta is 1. */
static void beta(const bench_options *options)
{
    for (int n = options->largest < 512 ? options->largest : 512; n <= 8192; n *= 2)
        add("beta", n, n, n, "NN", options);
    add("beta", 4095, 4095, 4095, "NN", options);
    add("beta", 8192, 8192, 64, "NN", options);
    add("beta", 8192, 8192, 16, "NN", options);
}

static void add_data(const data_kind *kind, int n, int k, const bench_options *options)
{
    gpu_problem *p = type == GPB_TYPE_s ? add("data", n, n, k, "NN", options) : NULL;
    if (p) p->data = kind;
}

/* Squares of each kind of data. Half zeros also where k is short, because slices want a least number of
   elements that are not zero. */
static void data(const bench_options *options)
{
    static const int depths[] = { 64, 96, 128, 160, 256 };
    const int n = options->largest < 4096 ? options->largest : 4096;
    for (int side = n; side <= 8192; side *= 2)
        for (int i = 0; i < data_kind_count; i++) add_data(&data_kinds[i], side, side, options);
    for (int i = 0; i < data_kind_count; i++)
        for (int x = 0; x < 5 && !strcmp(data_kinds[i].name, "half_zeros"); x++)
            add_data(&data_kinds[i], n, depths[x], options);
}

/* Two seconds of nothing else. */
static void sustained(const bench_options *options)
{
    for (int n = options->largest < 512 ? options->largest : 512; n <= 16384; n *= 2)
        add("sustained", n, n, n, "NN", options);
}

static const struct { const char *name; void (*make)(const bench_options *); } suites[] = {
    { "squares", squares }, { "odd", odd }, { "shapes", shapes }, { "batched", batched },
    { "beta", beta }, { "data", data }, { "sustained", sustained }, { "rank_k", rank_k },
};
/* suites: the only ones, unless the command line names modes; "thin" is among the shapes. Other types than s
   are then run in the first mode alone. */
static const struct {
    const char *name;
    int cublas;
    double slack;
    const char *suites;
} modes[] = {
    { "fp32", 0, 0, NULL },
    { "ieee", 0, 0, "squares,odd,shapes,thin,batched,beta" },
    { "tf32", 3, 0x1p15, "squares" },
};
enum { MODES = sizeof modes / sizeof *modes };

static bool wanted(const bench_options *options, size_t mode, const gpu_problem *p)
{
    const bool by_default = p->of.type == GPB_TYPE_s ? bench_listed(modes[mode].suites, p->suite) : mode == 0;
    return bench_listed(options->modes, modes[mode].name) && (options->modes || by_default);
}

typedef struct result {
    spread ours, cublas;                                      /* by turns; on end in the suite of that name */
    double alone, events;       /* medians of cuBLAS by itself, by the host's clock and by events */
    reading now;                /* the card by turns, and with cuBLAS by itself */
    reading cublas_now;
    gpu_error error, cublas_error, chain;
    int entries;
    bool on_gpu;
    char kernel[64];
} result;

static spread nothing(void) { return (spread){ NAN, NAN, NAN, 0 }; }
static bool is_sustained(const gpu_problem *p) { return !strcmp(p->suite, "sustained"); }

/* What cuBLAS needs by itself does not depend on our mode. So a problem's figures are kept for our next mode
   with the same mode of cuBLAS. */
static struct kept_alone { int math; double alone, events; reading now; } kept[MAX_PROBLEMS];

static int min_calls;

static int rounds_in(double seconds, double once)
{
    const double wanted = seconds / once;
    return wanted < min_calls ? min_calls : wanted > MAX_CALLS ? MAX_CALLS : (int)wanted;
}

/* As many rounds as `seconds` allow, and at least min_calls. Who goes first alternates. Short calls go in
   runs of a few, because the first one finds the rival's code in the caches, which no program's calls do. */
static void by_turns(result *r, const gpu_problem *p, double once, double seconds)
{
    static double t[2][MAX_CALLS];
    const int rivals = cublas.handle ? 2 : 1, rounds = rounds_in(seconds, once), run = once < SHORT ? RUN : 1;
    const uint64_t before = gpu_calls();
    size_t set = 2;
    meter_begin();
    for (int x = 0; x < rounds; x += run)
        for (int y = 0; y < rivals; y++) {
            int who = (x / run + y) % rivals;
            for (int z = x; z < x + run && z < rounds; z++)
                t[who][z] = gpu_timed((enum gpu_who)who, p, set++, false);
        }
    r->now = meter_end();
    r->on_gpu = gpu_calls() >= before + (uint64_t)rounds;
    r->ours = spread_of(t[GPU_OURS], rounds);
    if (rivals > 1) r->cublas = spread_of(t[GPU_CUBLAS], rounds);
}

static double median_alone(const gpu_problem *p, double once, double seconds, bool events)
{
    static double t[MAX_CALLS];
    const int rounds = rounds_in(seconds, once);
    for (int x = 0; x < rounds; x++) t[x] = gpu_timed(GPU_CUBLAS, p, (size_t)x, events);
    return spread_of(t, rounds).median;
}

static struct kept_alone alone(const gpu_problem *p, int math, double once, double seconds)
{
    struct kept_alone k = { math, NAN, NAN, METER_EMPTY };
    meter_begin();
    k.alone = median_alone(p, once, seconds, false);
    k.now = meter_end();
    if (cuda.cuEventElapsedTime) k.events = median_alone(p, once, seconds * BY_EVENTS / ALONE, true);
    return k;
}

/* One contender's calls, nothing between them, for so long. */
static spread on_end(enum gpu_who who, const gpu_problem *p, double seconds, reading *now)
{
    static double t[MAX_ON_END];
    const double start = seconds_now();
    size_t calls = 0;
    meter_begin();
    do t[calls % MAX_ON_END] = gpu_timed(who, p, calls, false);
    while (++calls < (size_t)min_calls || seconds_now() - start < seconds);
    *now = meter_end();
    return spread_of(t, (int)(calls < MAX_ON_END ? calls : MAX_ON_END));
}

static void measure_sustained(result *r, const gpu_problem *p, double seconds)
{
    const uint64_t before = gpu_calls();
    r->ours = on_end(GPU_OURS, p, seconds, &r->now);
    r->on_gpu = gpu_calls() >= before + (uint64_t)r->ours.count;
    if (cublas.handle) r->cublas = on_end(GPU_CUBLAS, p, seconds, &r->cublas_now);
    r->alone = r->cublas.median;
}

static void judge(result *r, const gpu_problem *p)
{
    gpu_truth(p);
    r->entries = gpu_truth_entries();
    r->chain = gpu_truth_chain(p);
    r->error = gpu_judged(GPU_OURS, p);
    r->cublas_error = cublas.handle ? gpu_judged(GPU_CUBLAS, p) : (gpu_error){ NAN, NAN };
}

static result measured(const gpu_problem *p, int math, double seconds, double sustained_seconds)
{
    result r = { .ours = nothing(), .cublas = nothing(), .alone = NAN, .events = NAN, .now = METER_EMPTY,
                 .cublas_now = METER_EMPTY };
    gpu_prepare(p);
    judge(&r, p);
    gpu_choice(p, r.kernel, sizeof r.kernel);
    const double once = gpu_timed(GPU_OURS, p, 1, false);
    const double theirs = cublas.handle ? gpu_timed(GPU_CUBLAS, p, 1, false) : 0;
    if (is_sustained(p)) {
        measure_sustained(&r, p, sustained_seconds);
        return r;
    }
    by_turns(&r, p, once + theirs, BY_TURNS * seconds);
    if (!cublas.handle) return r;
    struct kept_alone *k = &kept[p - problems];
    if (isnan(k->alone) || k->alone == 0 || k->math != math) *k = alone(p, math, theirs, ALONE * seconds);
    r.alone = k->alone;
    r.events = k->events;
    r.cublas_now = k->now;
    return r;
}

/* What we are compared with. */
static double rival(const result *r) { return fmin(r->cublas.median, r->alone); }

/* A chain of the type's FMAs has an error on the same entries. All modes but TF32's may not exceed it.
   FP16X3 kernels have a third of it or less on dense normal numbers, if their sums leave the tensor cores as
   often as they should. The rest is chance: two samples of so many entries may differ by that.
   Of a triangle with deep k there may be few entries off the diagonal, whose mean says nothing. Then no entry
   may be off by more than 4 roots of the number of products: of the chains of cuBLAS some are (7,227 u at k =
   500,000 in c), ours had 74 at most (rank_k.csv), and a slice that is missing shows as 2^11 and more. */
static bool is_right(const result *r, const gpu_problem *p, double slack)
{
    const double products = gpu_parts(p) * (double)p->of.k;
    if (gpb_test_has_triangle(p->of.routine) && r->entries * gpu_parts(p) < FEW)
        return r->error.worst <= 4 * sqrt(products) + 4 + slack;
    const bool in_slices = !p->data && p->of.k >= LONG && !strncmp(r->kernel, "fp16x3", 6);
    const double chance = 1.1 + 3 / sqrt(2.0 * r->entries * gpu_parts(p)), share = in_slices ? 0.45 : 1;
    return r->error.worst <= products + 4 + slack
        && (slack > 0 || r->error.rms <= fmax(chance * share * r->chain.rms, 0.05));
}

static const char *how_name(const gpu_problem *p)
{
    if (gpb_test_one_matrix(p->of.routine)) return gpb_test_row_of(p->of.routine)->name;
    if (p->of.batch == 1) return "one";
    return p->of.routine == GPB_TEST_gemm_batch_strided ? "strided" : p->shuffled ? "shuffled" : "array";
}

#define COLUMNS                                                                                  \
    "gpu,type,suite,mode,m,n,k,ta,tb,batch,how,calls,ms_median,ms_least,ms_most,cublas_ms_median,"    \
    "cublas_ms_least,cublas_ms_most,cublas_events_ms,ratio,tflops,cublas_tflops,kernel,error_u," \
    "cublas_error_u,data,cublas_alone_ms,rms_u,cublas_rms_u,chain_rms_u,entries,sm_mhz,watts,"   \
    "celsius,held,cublas_sm_mhz,cublas_watts"

static void write_csv(FILE *csv, const char *gpu, const char *mode, const gpu_problem *p, const result *r)
{
    double flops = gpu_flops(p);
    fprintf(csv, "%s,%c,%s,%s,%d,%d,%d,%c,%c,%d,%s,%d,", gpu, gpb_type_of(p->of.type)->letter, p->suite,
            mode, p->of.m, p->of.n, p->of.k, p->of.transa, p->of.transb, p->of.batch, how_name(p),
            r->ours.count);
    fprintf(csv, "%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,", 1e3 * r->ours.median, 1e3 * r->ours.least,
            1e3 * r->ours.most, 1e3 * r->cublas.median, 1e3 * r->cublas.least, 1e3 * r->cublas.most,
            1e3 * r->events);
    fprintf(csv, "%.4f,%.3f,%.3f,%s,%.3f,%.3f,", rival(r) / r->ours.median, 1e-12 * flops / r->ours.median,
            1e-12 * flops / rival(r), r->kernel, r->error.worst, r->cublas_error.worst);
    fprintf(csv, "%s,%.6f,%.4f,%.4f,%.4f,%d", data_name(p->data), 1e3 * r->alone, r->error.rms,
            r->cublas_error.rms, r->chain.rms, r->entries);
    meter_print(csv, &r->now);
    meter_print_short(csv, &r->cublas_now);
    fputc('\n', csv);
}

static void print_row(const char *mode, const gpu_problem *p, const result *r, bool right)
{
    printf("%c %-9s %s %5d %5d %7d %c%c %-12s %9.4f %7.2f %7.2f %6.3fx %-14s %5.1f %5.1f %6.3f %6.3f %5.0f "
           "%5.0f %s%s%s\n",
           gpb_type_of(p->of.type)->letter, p->suite, mode, p->of.m, p->of.n, p->of.k, p->of.transa,
           p->of.transb, p->data ? p->data->name : how_name(p), 1e3 * r->ours.median,
           1e-12 * gpu_flops(p) / r->ours.median,
           1e-12 * gpu_flops(p) / rival(r), rival(r) / r->ours.median, r->kernel, r->error.worst,
           r->cublas_error.worst, r->error.rms, r->chain.rms, r->now.sm_mhz, r->now.watts, r->now.held,
           right ? "" : " WRONG", r->on_gpu ? "" : " NOT ON THE GPU");
}

/* Geometric mean and least of ours/cuBLAS, a line for each suite and mode. */
static struct summary {
    enum gpb_type type;
    const char *suite, *mode;
    double logs, least;
    const gpu_problem *at;
    int cases, below;
} sums[96];

static void sum_up(const char *mode, const gpu_problem *p, double ratio)
{
    struct summary *s = sums;
    while (s->suite && (strcmp(s->suite, p->suite) || s->mode != mode || s->type != p->of.type)) s++;
    if (!s->suite) *s = (struct summary){ p->of.type, p->suite, mode, 0, INFINITY, p, 0, 0 };
    s->logs += log(ratio);
    s->cases++;
    s->below += ratio < 1;
    if (ratio < s->least) {
        s->least = ratio;
        s->at = p;
    }
}

static void summary(void)
{
    printf("\n  %-9s %-5s %5s %9s %7s %6s   at\n", "suite", "mode", "cases", "geo mean", "least", "below");
    for (struct summary *s = sums; s->suite; s++)
        printf("%c %-9s %-5s %5d %8.3fx %6.3fx %6d   %d x %d x %d %c%c\n", gpb_type_of(s->type)->letter,
               s->suite, s->mode, s->cases, exp(s->logs / s->cases), s->least, s->below, s->at->of.m,
               s->at->of.n, s->at->of.k, s->at->of.transa, s->at->of.transb);
}

/* For the picture: what the arithmetic units could do at the highest clock. */
static void write_peaks(FILE *csv)
{
    int khz;
    if (cuda.cuDeviceGetAttribute(&khz, 13, 0)) return;       /* CU_DEVICE_ATTRIBUTE_CLOCK_RATE */
    const double clocks = 1e-9 * khz * cuda.sms, lanes = cuda.arch == 75 || cuda.arch == 80 ? 64 : 128;
    fprintf(csv, "# peak FP32 FMA: %.1f TFLOP/s\n", 2 * lanes * clocks);
    if (cuda.arch == 90)
        fprintf(csv, "# peak FP16 tensor cores, three products: %.1f TFLOP/s\n", 4096 * clocks / 3);
}

const gpu_problem *device_problems(const bench_options *options, int *made)
{
    for (type = 0; type < GPB_TYPES; type++)
        for (size_t s = 0; s < sizeof suites / sizeof *suites && bench_has_type(options, type); s++)
            if (bench_listed(options->suites, suites[s].name)) suites[s].make(options);
    *made = count;
    return problems;
}

static int left;                                              /* rows of all modes that are still to come, */
static double end; /* and when they are to be done, without the seconds on end among them */

static void count_rows(const bench_options *options)
{
    end = seconds_now() + options->seconds;
    min_calls = options->least < MAX_CALLS ? options->least : MAX_CALLS;
    for (size_t x = 0; x < MODES; x++)
        for (int i = 0; i < count; i++) {
            if (!wanted(options, x, &problems[i])) continue;
            if (is_sustained(&problems[i])) end -= 2 * options->sustained;
            left++;
        }
}

/* A mode's rows; returns the faults. */
static int run_mode(const bench_options *options, size_t x, const char *gpu, FILE *csv)
{
    int faults = 0;
    gpu_option("MATH", modes[x].name);
    if (cublas.handle) must(cublas.set_math(cublas.handle, modes[x].cublas), "cublasSetMathMode");
    for (int i = 0; i < count; i++) {
        const gpu_problem *p = &problems[i];
        if (!wanted(options, x, p)) continue;
        const double each = (end - seconds_now()) / left--;
        const result r = measured(p, modes[x].cublas, fmax(each, 0), options->sustained);
        if (is_sustained(p)) end += 2 * options->sustained;
        const bool right = is_right(&r, p, modes[x].slack);
        faults += !right || !r.on_gpu;
        if (!isnan(rival(&r))) sum_up(modes[x].name, p, rival(&r) / r.ours.median);
        print_row(modes[x].name, p, &r, right);
        if (csv) write_csv(csv, gpu, modes[x].name, p, &r);
        fflush(NULL);
    }
    return faults;
}

static void open_all(const bench_options *options)
{
    char bus[32];
    const bool known = cuda.cuDeviceGetPCIBusId && !cuda.cuDeviceGetPCIBusId(bus, sizeof bus, 0);
    meter_open(known ? bus : NULL);
    gpu_open_cublas();
    gpu_open_ours(options->library);
    if (options->only) gpu_option("KERNEL", options->only);
    device_problems(options, &count);
    gpu_operands(problems, count);
}

int bench_device(const bench_options *options)
{
    char gpu[256];
    int faults = 0;
    if (!gpu_open(gpu, sizeof gpu)) return 77;
    open_all(options);
    FILE *csv = bench_csv(options->csv, COLUMNS);
    if (csv) write_peaks(csv);
    const double start = seconds_now();
    count_rows(options);
    printf("%s: median ms, TFLOP/s, those of cuBLAS's better figure, ratio, kernel/splits, max |e|/(|A||B|) "
           "in u: ours, cuBLAS's; rms: ours, a chain of FMAs; SM MHz, watts, what held the clock\n",
           gpu);
    for (size_t x = 0; x < MODES; x++)
        if (bench_listed(options->modes, modes[x].name)) faults += run_mode(options, x, gpu, csv);
    summary();
    printf("%.0f s, %d faults\n", seconds_now() - start, faults);
    if (csv) fclose(csv);
    return faults != 0;
}
