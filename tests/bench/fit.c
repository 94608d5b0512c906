/* SPDX-License-Identifier: MIT */
/* --fit: every kernel, with k cut into various numbers of parts, on random shapes. tests/bench/fit.py fits
   the cost model to these times and judges it by them. The calls go through the exported CBLAS on
   device operands, so all that a user pays is in them. Kernel "chosen:<mode>" is what the library does by
   itself. cuBLAS is there, too. */
#include "tests/bench/bench.h"
#include "tests/bench/gpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_SHAPES = 2000, MAX_TRIALS = 4096, MAX_ROUNDS = 6, TIMED = 2, LARGEST = 16384, MAX_PARTS = 512,
    HOPELESS = 25
};
#define MAX_FLOPS 0x1p39
#define MAX_PARTS_BYTES (INT64_C(1) << 28)                    /* of partial sums */
#define SLOW 2.0 /* this much slower than the best: visited once */
#define NEAR 1.2 /* no slower than this: visited in every round */
#define PATIENCE 0.05 /* seconds: a call that took longer is not repeated */

/* How a call may be computed. splits 0: the library decides. */
typedef struct trial {
    const gpu_kernel *kernel;
    const char *mode;
    int splits;
    bool is_cublas;
    double seconds[MAX_ROUNDS * (TIMED + 1)];
    int calls;
} trial;

static gpu_problem shapes[MAX_SHAPES];
static int hopeless[256]; /* random shapes in a row on which a kernel was far from the best */

static double uniform(void) { return (double)random() / 2147483648.0; }

/* Log-uniform in 1 .. largest; a quarter of the shapes of round numbers, as people have them; half
   aligned. */
static void draw(gpu_problem *p, enum gpb_type type, int largest)
{
    const double as_s = gpb_type_of(type)->flops / 2.0;
    int size[3];
    bool rounded = uniform() < 0.25, aligned = uniform() < 0.5;
    do {
        for (int x = 0; x < 3; x++) {
            size[x] = (int)pow(largest + 1, uniform());
            if (rounded && size[x] > 32) size[x] = (size[x] + 32) / 64 * 64;
        }
    } while (as_s * sgemm_flops(size[0], size[1], size[2]) > MAX_FLOPS);
    *p = (gpu_problem){ .suite = "fit" };
    p->of = (gpb_problem){ .type = type, .m = size[0], .n = size[1], .k = size[2], .batch = 1,
                           .offset = !aligned };
    p->of.transa = uniform() < 0.5 ? 'N' : 'T';
    p->of.transb = uniform() < 0.5 ? 'N' : 'T';
    gpb_problem_lay_out(&p->of);
    for (enum gpb_operand x = GPB_A; x < GPB_OPERANDS; x++)
        p->of.ld[x] = aligned ? (p->of.ld[x] + 63) / 64 * 64 : p->of.ld[x] | 1;
}

static int64_t tiles(const gpu_problem *p, const gpu_kernel *q)
{
    return ((int64_t)p->of.m + q->bm - 1) / q->bm * (((int64_t)p->of.n + q->bn - 1) / q->bn) * p->of.batch;
}

/* Numbers of parts that are worth a trial: each part has some slices (128 of k for FP16X3, as in
   dispatch/kernel_pick.c), and there are at most three parts for each place on the device. */
static bool worthwhile(const gpu_problem *p, const gpu_kernel *q, int splits)
{
    if (splits == 1) return true;
    const int part = q->math == GPB_MATH_FP16X3 ? 128 : 2 * q->bk;
    return q->form != GPB_FORM_SLICED && q->form != GPB_FORM_PADDED_C && (int64_t)splits * part <= p->of.k
        && tiles(p, q) * splits <= 6 * cuda.sms
        && (int64_t)gpb_type_bytes(p->of.type) * p->of.m * p->of.n * p->of.batch * splits <= MAX_PARTS_BYTES;
}

/* The next number of three significant bits: what dispatch/kernel_pick.c chooses among. */
static int next(int parts)
{
    int last = 1;
    while (parts >= 8 * last) last *= 2;
    return parts + last;
}

static int add_trials(const gpu_problem *p, const bench_options *options, trial *trials)
{
    static const char *const modes[] = { "fp32", "ieee", "tf32" };
    int count = 0;
    for (int i = 0; i < gpu_kernel_count; i++) {
        const gpu_kernel *q = &gpu_kernels[i];
        if (q->type != p->of.type || !gpu_runs(q) || (hopeless[i] >= HOPELESS && !options->suites)
            || (options->only && !strstr(options->only, q->name)))
            continue;
        for (int parts = 1; parts <= MAX_PARTS && count < MAX_TRIALS - 4; parts = next(parts))
            if (worthwhile(p, q, parts))
                trials[count++] = (trial){ .kernel = q, .mode = "forced", .splits = parts };
    }
    for (int x = 0; x < 3; x++) trials[count++] = (trial){ .mode = modes[x] };
    if (cublas.handle) trials[count++] = (trial){ .mode = "cublas", .is_cublas = true };
    return count;
}

static void prepare(const trial *t)
{
    char splits[16];
    if (t->is_cublas) return;
    snprintf(splits, sizeof splits, "%d",
             t->splits > 1 ? t->splits : 0); /* 1 would keep FFMA kernels from sharing out k */
    gpu_option("KERNEL", t->kernel ? t->kernel->name : NULL);
    gpu_option("SPLITS", splits);
    gpu_option("MATH", t->kernel ? "fp32" : t->mode);
}

/* A few calls one after the other. The first is not timed, because it may load an image, may grow memory, and
   finds another kernel's code in the caches. INFINITY, for good, if our library left one to the host. */
static double visit(const gpu_problem *p, trial *t, size_t *set)
{
    const uint64_t before = gpu_calls();
    double best = INFINITY;
    prepare(t);
    for (int x = 0; x <= TIMED; x++) {
        double seconds = gpu_timed(t->is_cublas ? GPU_CUBLAS : GPU_OURS, p, (*set)++, false);
        bool slow = seconds > PATIENCE;
        if (x > 0 || slow) {
            t->seconds[t->calls++] = seconds;
            best = fmin(best, seconds);
        }
        if (slow) break;
    }
    if (t->is_cublas || gpu_calls() > before) return best;
    return t->seconds[t->calls - 1] = INFINITY;
}

static double least(const trial *t)
{
    double seconds = t->seconds[0];
    for (int x = 1; x < t->calls; x++) seconds = fmin(seconds, t->seconds[x]);
    return seconds;
}

/* One of the kernels that the best is sought among. */
static bool counts(const trial *t) { return t->kernel && t->kernel->math != GPB_MATH_TF32; }

/* Every trial, then in rounds the ones that are not far from the best. */
static void measure(const gpu_problem *p, trial *trials, int count, double seconds)
{
    double best = INFINITY, start = seconds_now(), per_kernel[256];
    size_t set = 0;
    for (int i = 0; i < 256; i++) per_kernel[i] = INFINITY;
    for (int i = 0; i < count; i++) {
        double taken = visit(p, &trials[i], &set);
        if (counts(&trials[i])) best = fmin(best, taken);
        if (!trials[i].kernel) continue;
        double *kernels = &per_kernel[trials[i].kernel - gpu_kernels];
        *kernels = fmin(*kernels, taken);
    }
    for (int i = 0; i < gpu_kernel_count; i++)
        if (per_kernel[i] < INFINITY) hopeless[i] = per_kernel[i] > SLOW * best ? hopeless[i] + 1 : -HOPELESS;
    for (int x = 1; x < MAX_ROUNDS && (x < 4 || seconds_now() - start < seconds); x++)
        for (int i = 0; i < count; i++) {
            if (least(&trials[i]) >= (x < 2 ? SLOW : NEAR) * best) continue;
            double taken = visit(p, &trials[i], &set);
            if (counts(&trials[i])) best = fmin(best, taken);
        }
}

static void report(FILE *csv, const gpu_problem *p, trial *trials, int count, const char *const chosen[3])
{
    int first = 0; /* of the library's own choices, in the order of `chosen` */
    while (trials[first].kernel) first++;
    for (int i = 0; i < count; i++) {
        spread s = spread_of(trials[i].seconds, trials[i].calls);
        if (isinf(s.most)) continue;
        const char *name = trials[i].kernel ? trials[i].kernel->name
            : trials[i].is_cublas           ? "-"
                                            : chosen[i - first];
        fprintf(csv, "%c,%d,%d,%d,%c,%c,%d,%d,%d,%d,%d,%s,%s,%d,%d,%.3f,%.3f\n",
                gpb_type_of(p->of.type)->letter, p->of.m, p->of.n, p->of.k, p->of.transa, p->of.transb,
                p->of.ld[GPB_A], p->of.ld[GPB_B], p->of.ld[GPB_C], p->of.offset,
                p->of.batch, trials[i].mode, name, trials[i].splits, s.count, 1e6 * s.median, 1e6 * s.least);
    }
    fflush(csv);
}

/* How far the library's choice is from the best of its FP32-grade kernels, on this shape. */
static double regret_of(trial *trials, int count)
{
    double best = INFINITY, chosen = NAN;
    for (int i = 0; i < count; i++) {
        double median = spread_of(trials[i].seconds, trials[i].calls).median;
        if (counts(&trials[i])) best = fmin(best, median);
        if (!trials[i].kernel && !strcmp(trials[i].mode, "fp32")) chosen = median;
    }
    return chosen / fmin(best, chosen);
}

/* Random ones, or those of the suites of --device. Their number. */
static int make_shapes(const bench_options *options)
{
    int count = !options->shapes ? 200 : options->shapes < MAX_SHAPES ? options->shapes : MAX_SHAPES;
    srandom((unsigned)options->seed);
    if (options->suites) {
        int all;
        const gpu_problem *made = device_problems(options, &all);
        count = 0;
        for (int i = 0; i < all; i++)
            if (made[i].of.routine != GPB_TEST_gemm_batch && made[i].beta == 0 && !made[i].data)
                shapes[count++] = made[i];
    } else {
        enum gpb_type type = GPB_TYPE_s;                      /* of those asked for, in turn */
        for (int i = 0; i < count; i++, type = (type + 1) % GPB_TYPES) {
            while (!bench_has_type(options, type)) type = (type + 1) % GPB_TYPES;
            draw(&shapes[i], type, options->largest < LARGEST ? options->largest : LARGEST);
        }
    }
    return count;
}

int bench_fit(const bench_options *options)
{
    static trial trials[MAX_TRIALS];
    static double regrets[MAX_SHAPES];
    char gpu[256];
    if (!gpu_open(gpu, sizeof gpu)) return 77;
    gpu_open_cublas();
    gpu_open_ours(options->library);
    const int wanted = make_shapes(options);
    gpu_operands(shapes, wanted);
    FILE *csv = bench_csv(options->csv ? options->csv : "/dev/null",
                          "type,m,n,k,ta,tb,lda,ldb,ldc,shift,batch,mode,kernel,splits,calls,us_median,"
                          "us_least");
    fprintf(csv, "# %s, arch %d, %d SMs, seed %d\n", gpu, cuda.arch, cuda.sms, options->seed);
    double start = seconds_now(), logs = 0;
    int done = 0, judged = 0;
    for (; done < wanted && seconds_now() - start < options->seconds; done++) {
        const gpu_problem *p = &shapes[done];
        char names[3][64];
        static const char *const modes[] = { "fp32", "ieee", "tf32" };
        for (int x = 0; x < 3; x++) {
            prepare(&(trial){ .mode = modes[x] });
            gpu_choice(p, names[x], sizeof names[x]);
        }
        int count = add_trials(p, options, trials);
        measure(p, trials, count, (options->seconds - (seconds_now() - start)) / (wanted - done));
        report(csv, p, trials, count, (const char *const[3]){ names[0], names[1], names[2] });
        regrets[judged] = regret_of(trials, count);
        if (isfinite(regrets[judged])) logs += log(regrets[judged++]);
    }
    if (judged) {
        spread all = spread_of(regrets, judged);
        printf("%s: %d shapes, %.0f s; the library's choice (fp32) against the best of its kernels: "
               "geometric mean %.1f %%, median "
               "%.1f %%, 95th percentile %.1f %%, worst %.1f %%; %d shapes left to the host\n",
               gpu, judged, seconds_now() - start, 100 * exp(logs / judged) - 100, 100 * all.median - 100,
               100 * regrets[judged * 95 / 100] - 100, 100 * all.most - 100, done - judged);
    }
    fclose(csv);
    return 0;
}
