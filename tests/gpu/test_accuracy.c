/* SPDX-License-Identifier: MIT */
/* Is the library's FP32 as accurate as FP32 arithmetic? Every pattern of accuracy_data.def is computed at k =
   32..65536: by the library's own choice, by each kernel that slices operands for FP32's accuracy, by a plain
   FFMA kernel that does not cut k, and by cuBLAS if there is one. All are compared with FP64.
   Checked at each point: our result by the promised bound; against the FFMA kernel, by rms and by the largest
   error; the library's choice against cuBLAS.
   Usage: test_accuracy [--csv FILE] [--at K] [data ...]. GPB_TEST_LARGE=1: all k; GPB_TEST_FEW=1: one small
   k. --at: only that k. On a GPU (GPB_TEST_LARGE=1) C is then so large that sums leave the tensor cores as
   seldom as they ever do. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sliced.h"
#include "tests/gpu/accuracy.h"
#include "tests/gpu/placed.h"
#include "tests/gpu/trace.h"

/* "Never above" as far as a sample can tell. The rms of 4096 errors strays by 1 %. The largest of N = 4096 to
   16384 normal ones strays by 1/(2 ln N) = 6 %, a ratio of two by 8 %, and there are hundreds of points: 1.3
   is where chance ends. */
static const double RMS_NOISE = 1.02, MAX_NOISE = 1.3;
static const double AMPERE_RMS =
    1.6; /* 24 bits, eight products at once: positive data at k = 64 (by the model of fake_tensor.c, 1.53) */
static const double ROUNDING_RMS = 0.6, ROUNDING_RATIO = 2, ROUNDING_FREE = 0.1;
static const double CUBLAS_RMS = 1.2, CUBLAS_MAX = 1.5, CUBLAS_MEAN = 0.8;

static const struct row {
    const char *name, *image;
    enum gpb_type type;
    enum gpb_math math;
    enum gpb_form form;
} rows[] = {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    { #name, #image, GPB_TYPE_##p, GPB_MATH_##math, GPB_FORM_##form },
#include "kernels/gemm.def"
#undef KERNEL
};
enum { ROWS = sizeof rows / sizeof *rows };

typedef struct contender {
    const char *name, *kernel, *math;      /* kernel NULL: the library's choice; math NULL: cuBLAS */
    int points, failures;                  /* against the FFMA kernel */
    int beyond;                            /* the bound */
    double rms_logs, worst_rms, worst_max, worst_bound;
    double hostile_rms, hostile_max;       /* the worst ratios of hostile data */
    const char *hostile;
} contender;
enum { PLAIN, LIBRARY, FORCED };           /* places in `contenders`; the FFMA kernel is the first */
static contender contenders[32] = { { .name = "ffma", .kernel = "warp_strided", .math = "ieee" },
                                    { .name = "library", .math = "fp32" } };
static int contender_count = FORCED, cublas = -1;
static struct { int points, failures; double logs, worst_rms, worst_max; } against_cublas, on_tensor_cores;
static int guards_wrong, inexact, inexact_beyond;
static FILE *csv;
static int only_k;

static void add_contenders(void)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].type == GPB_TYPE_s
            && (rows[i].math == GPB_MATH_FP16X3 || rows[i].math == GPB_MATH_BF16X6
             || rows[i].form == GPB_FORM_SLICED)
            && kernel_runs(rows[i].image))
            contenders[contender_count++] = (contender){ .name = rows[i].name,
                                                         .kernel = rows[i].name,
                                                         .math = rows[i].math == GPB_MATH_TF32 ? "tf32"
                                                                                               : "fp32" };
    if (accuracy_cublas_open()) {
        cublas = contender_count;
        contenders[contender_count++] = (contender){ .name = "cublas" };
    } else printf("no cuBLAS here: the comparison with it is SKIPPED\n");
}

/* One product; `kernel` and `splits`: what the trace says. */
static void multiply(const contender *who, const placed *p, char *kernel, char *splits, size_t size)
{
    *kernel = *splits = 0;
    if (!who->math) {
        accuracy_cublas(GPB_TYPE_s, p->of.m, p->of.n, p->of.k, p->x[GPB_A].address, p->x[GPB_B].address,
                        p->x[GPB_C].address);
        return;
    }
    set_option("MATH", who->math);
    set_option("KERNEL", who->kernel);
    set_option("SPLITS", who == &contenders[PLAIN] ? "1" : NULL);
    trace_begin();
    placed_call(p, 1, 0);
    const char *trace = trace_end();
    trace_value(trace, "kernel", kernel, size);
    trace_value(trace, "splits", splits, size);
    char route[16];
    if (strcmp(trace_value(trace, "route", route, sizeof route), "gpu")) {
        fprintf(stderr, "%s: not on the GPU: %s\n", who->name, trace);
        exit(1);
    }
}

/* a / b, where nothing over nothing is even */
static double ratio(double a, double b) { return a == b ? 1 : b == 0 ? INFINITY : a / b; }

static bool is_above(double rms, double max, double rms_limit, double max_limit)
{
    return !(rms <= rms_limit) || !(max <= max_limit);
}

/* True of kernels that leave to others what FP16 slices are too coarse for, which the trace tells. STRIDED
   ones compute it with FMAs themselves. */
static bool marks(const char *kernel)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].form == GPB_FORM_SLICED && rows[i].math == GPB_MATH_FP16X3
            && !strcmp(rows[i].name, kernel))
            return true;
    return false;
}

/* True if the kernel's name in the trace says what the data's guard column does. Rows with few non-zeros are
   always marked. */
static bool guard_is_right(const accuracy_data *data, const contender *who, int64_t k, const char *kernel)
{
    bool marked = strchr(kernel, '+') != NULL;
    if (!who->kernel) return true;
    if (strncmp(kernel, who->kernel, strlen(who->kernel))) return false;
    if (!marks(who->kernel)) return true;
    return data->guard == GUARD_EITHER
        || (data->guard == GUARD_CLEAN ? k < 2 * GPB_SLICE_MIN_K || !marked : marked);
}

static double rms_limit(void) { return gpu_arch() < 90 ? AMPERE_RMS : RMS_NOISE; }

static bool is_coarse(const contender *who) { return !strcmp(who->math, "tf32"); }

static void judge_bound(contender *who, const accuracy_data *data, const accuracy_error *e, int64_t k)
{
    const double bound = is_coarse(who) ? e->bound_tf32 : e->bound;
    who->worst_bound = fmax(who->worst_bound, bound);
    if (bound <= 1) return;
    who->beyond++;
    printf("BEYOND THE BOUND: %s, %s, k %lld: %.3f times\n", data->name, who->name, (long long)k, bound);
}

static void note_hostile(contender *who, const accuracy_data *data, double rms, double max)
{
    if (rms > who->hostile_rms) {
        who->hostile_rms = rms;
        who->hostile = data->name;
    }
    who->hostile_max = fmax(who->hostile_max, max);
}

static void judge(contender *who, const accuracy_data *data, const accuracy_error *plain,
                  const accuracy_error *e, int64_t k)
{
    double rms = ratio(e->rms, plain->rms), max = ratio(e->max, plain->max);
    bool judged = data->result != RESULT_LIMIT && data->result != RESULT_HOSTILE;
    bool above = judged && is_above(rms, max, rms_limit(), MAX_NOISE);
    if (data->result == RESULT_ROUNDING)
        above = above && e->rms > ROUNDING_FREE && is_above(e->rms, rms, ROUNDING_RMS, ROUNDING_RATIO);
    who->points++;
    who->failures += above;
    who->rms_logs += log(fmax(rms, 1e-3));
    if (data->result == RESULT_HOSTILE) note_hostile(who, data, rms, max);
    if (judged && data->result != RESULT_ROUNDING) {
        who->worst_rms = fmax(who->worst_rms, rms);
        who->worst_max = fmax(who->worst_max, max);
    }
    if (above)
        printf("ABOVE FFMA: %s, %s, k %lld: rms %.3f, max %.3f times\n", data->name, who->name, (long long)k,
               rms, max);
    if (!e->wrong || data->result == RESULT_HOSTILE) return;
    *(data->result == RESULT_LIMIT ? &inexact_beyond : &inexact) += 1;
    printf("%s: %s, %s, k %lld: %lld places\n",
           data->result == RESULT_LIMIT ? "not exact, known" : "NOT EXACT", data->name, who->name,
           (long long)k, (long long)e->wrong);
}

/* Where cuBLAS happens to be exact, any error is infinitely above it. Such a point counts if our error is
   more than half a unit, or above the FFMA kernel's. */
static void judge_cublas(const char *name, const accuracy_error *ours, const accuracy_error *plain,
                         const accuracy_error *theirs, int64_t k, const char *kernel)
{
    double rms = ratio(ours->rms, theirs->rms), max = ratio(ours->max, theirs->max);
    if (theirs->max == 0 && ours->rms <= 0.5 && ours->rms <= RMS_NOISE * plain->rms) return;
    bool above = is_above(rms, max, CUBLAS_RMS, CUBLAS_MAX);
    against_cublas.points++;
    against_cublas.failures += above;
    against_cublas.logs += log(fmin(fmax(rms, 1e-3), 1e3));
    against_cublas.worst_rms = fmax(against_cublas.worst_rms, rms);
    against_cublas.worst_max = fmax(against_cublas.worst_max, max);
    if (marks(kernel)) {
        on_tensor_cores.points++;
        on_tensor_cores.logs += log(fmax(rms, 1e-3));
    }
    if (above)
        printf("ABOVE cuBLAS: %s, k %lld, %s: rms %.3f, max %.3f times\n", name, (long long)k, kernel, rms,
               max);
}

/* What a contender made of the operands. */
static accuracy_error try_contender(int i, const accuracy_data *data, placed *p, const accuracy_truth *t,
                                    float *c, bool *exact, char kernel[64], char splits[64])
{
    gpb_poison(GPB_TYPE_s, p->x[GPB_C].image, p->x[GPB_C].count);     /* what is not written shows */
    operand_put(&p->x[GPB_C]);
    multiply(&contenders[i], p, kernel, splits, 64);
    operand_get(&p->x[GPB_C], c);
    if (i == PLAIN) accuracy_note_exact(t, c, exact);
    return accuracy_measure(t, c, data->result >= RESULT_EXACT ? exact : NULL);
}

static void write_row(const accuracy_data *data, const placed *p, const char *who, const char *kernel,
                      const char *splits, const accuracy_error *e, const accuracy_error *plain)
{
    if (!csv) return;
    fprintf(csv, "%s,%d,%d,%d,%s,%s,%s,%.6g,%.6g,%.6g,%.4f,%.4f,%lld\n", data->name, p->of.m, p->of.n,
            p->of.k, who, kernel, splits, e->rms, e->max, e->frobenius, ratio(e->rms, plain->rms),
            ratio(e->max, plain->max), (long long)e->wrong);
}

static void check_guard(const accuracy_data *data, const contender *who, int k, const char *kernel)
{
    if (guard_is_right(data, who, k, kernel)) return;
    printf("GUARD: %s, %s, k %d: the trace says kernel=%s\n", data->name, who->name, k, kernel);
    guards_wrong++;
}

static void judge_all(const accuracy_data *data, const accuracy_error *errors, int k, const char *choice)
{
    printf("%-19s%6d  %-24s", data->name, k, choice);
    for (int i = 0; i < contender_count; i++)
        printf(" |%8.3f%8.2f%9.1e", errors[i].rms, errors[i].max, errors[i].frobenius);
    printf("\n");
    for (int i = 0; i < contender_count; i++)
        if (contenders[i].math) judge_bound(&contenders[i], data, &errors[i], k);
    for (int i = 0; i < contender_count; i++)
        if (contenders[i].math && !is_coarse(&contenders[i]))
            judge(&contenders[i], data, &errors[PLAIN], &errors[i], k);
    if (cublas >= 0 && data->result == RESULT_BOUNDED)
        judge_cublas(data->name, &errors[LIBRARY], &errors[PLAIN], &errors[cublas], k, choice);
    fflush(stdout);
}

static void try_point(const accuracy_data *data, placed *p, accuracy_truth *t, bool *exact)
{
    accuracy_fill(p->x[GPB_A].image, p->of.m, p->of.k, data->a, 1);
    accuracy_fill(p->x[GPB_B].image, p->of.n, p->of.k, data->b, 2);
    operand_put(&p->x[GPB_A]);
    operand_put(&p->x[GPB_B]);
    accuracy_truth_find(t);
    float *c = malloc(4 * (size_t)p->of.m * (size_t)p->of.n);
    accuracy_error errors[32];
    char kernel[64], splits[64], choice[64] = "";
    if (!c) exit(1);
    for (int i = 0; i < contender_count; i++) {
        errors[i] = try_contender(i, data, p, t, c, exact, kernel, splits);
        if (i == LIBRARY) snprintf(choice, sizeof choice, "%s", kernel);
        write_row(data, p, contenders[i].name, kernel, splits, &errors[i], &errors[PLAIN]);
        check_guard(data, &contenders[i], p->of.k, kernel);
    }
    judge_all(data, errors, p->of.k, choice);
    free(c);
}

static bool wanted(const char *name, int count, char **names)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return true;
    return count == 0;
}

/* All data at one k; the operands are made once. */
static void try_depth(int64_t size, int side, int64_t k, int count, char **names)
{
    const size_t places = (size_t)side * (size_t)side;
    placed p = { .of = { .m = (int)size,
                         .n = (int)size,
                         .k = (int)k,
                         .transa = 'T',
                         .transb = 'N',
                         .ld = { (int)k, (int)k, (int)size } } };
    p.x[GPB_A] = operand_make(PLACE_DEVICE, GPB_TYPE_s, size * k, 0);
    p.x[GPB_B] = operand_make(PLACE_DEVICE, GPB_TYPE_s, size * k, 0);
    p.x[GPB_C] = operand_make(PLACE_DEVICE, GPB_TYPE_s, size * size, 0);
    accuracy_truth t = {
        size, size, k, side, p.x[GPB_A].image, p.x[GPB_B].image, calloc(places, 8), calloc(places, 8)
    };
    bool *exact = calloc(places, 1);
    if (!t.value || !t.product || !exact) exit(1);
    for (int d = 0; d < accuracy_data_count; d++)
        if (wanted(accuracy_datas[d].name, count, names)) try_point(&accuracy_datas[d], &p, &t, exact);
    free(t.value);
    free(t.product);
    free(exact);
    operand_free(&p.x[GPB_A]);
    operand_free(&p.x[GPB_B]);
    operand_free(&p.x[GPB_C]);
}

static bool summary(void)
{
    bool right = guards_wrong == 0 && inexact == 0;
    printf("\nagainst the FFMA kernel, by point:         points  geometric mean   worst rms   worst max   "
           "above (%.2f rms, %.2f max)\n",
           rms_limit(), MAX_NOISE);
    for (int i = LIBRARY; i < contender_count; i++) {
        const contender *who = &contenders[i];
        if (!who->math || is_coarse(who)) continue;
        printf("%-42s %6d %15.3f %11.3f %11.3f %7d\n", who->name, who->points,
               exp(who->rms_logs / fmax(who->points, 1)), who->worst_rms, who->worst_max, who->failures);
        right = right && who->failures == 0;
    }
    printf("of the bound, at most; hostile data against the FFMA kernel, rms and max:\n");
    for (int i = 0; i < contender_count; i++) {
        const contender *who = &contenders[i];
        if (!who->math) continue;
        printf("%-42s %9.3f, %d beyond; %8.3f (%s) %8.3f\n", who->name, who->worst_bound, who->beyond,
               who->hostile_rms, who->hostile ? who->hostile : "-", who->hostile_max);
        right = right && who->beyond == 0;
    }
    if (cublas >= 0) {
        double mean = exp(against_cublas.logs / fmax(against_cublas.points, 1));
        printf("library against cuBLAS FP32: %d points, geometric mean of rms %.3f (of %.1f), worst rms %.3f "
               "(of %.1f), worst max %.3f "
               "(of %.1f), %d above\n",
               against_cublas.points, mean, CUBLAS_MEAN, against_cublas.worst_rms, CUBLAS_RMS,
               against_cublas.worst_max, CUBLAS_MAX, against_cublas.failures);
        printf("  where the tensor cores did all of it: %d points, geometric mean %.3f\n",
               on_tensor_cores.points, exp(on_tensor_cores.logs / fmax(on_tensor_cores.points, 1)));
        right = right && mean <= CUBLAS_MEAN && against_cublas.failures == 0;
    }
    printf("inexact where FP32 is exact: %d (and %d in data beyond the limit), guards not as told: %d\n%s\n",
           inexact, inexact_beyond, guards_wrong, right ? "PASSED" : "FAILED");
    return right;
}

static bool open_csv(const char *path)
{
    csv = fopen(path, "w");
    if (!csv) {
        perror(path);
        return false;
    }
    if (getenv("GPB_BENCH_HEADER")) fprintf(csv, "%s\n", getenv("GPB_BENCH_HEADER"));
    fprintf(csv, "data,m,n,k,who,kernel,splits,rms_u,max_u,frobenius,rms_to_ffma,max_to_ffma,not_exact\n");
    return true;
}

static void print_head(void)
{
    printf("|e| / (|A||B|) in units of 2^-24: rms, max; relative Frobenius error.\n%-19s%6s  %-24s", "data",
           "k", "the library's choice");
    for (int i = 0; i < contender_count; i++) printf(" | %-24s", contenders[i].name);
    printf("\n");
}

/* C is `size` squared, and `side` squared of it are looked at. */
static void try_depths(int count, char **names)
{
    static const int depths[] = { 32,   33,   47,   64,   100,  128,   256,   300,   512,  1000,
                                  1024, 2048, 4096, 5000, 8192, 16384, 30001, 32768, 65536 };
    const bool large = getenv("GPB_TEST_LARGE"), few = getenv("GPB_TEST_FEW");
    for (size_t i = 0; i < sizeof depths / sizeof *depths && !only_k; i++) {
        const int k = depths[i];
        if (few ? k != 64 : !large && k > 300) continue;
        if (large) try_depth(k <= 4096 ? 1024 : 512, k <= 4096 ? 128 : 64, k, count, names);
        else try_depth(few ? 65 : 150, few ? 33 : 50, k, count, names);
    }
    if (only_k) try_depth(large ? 2048 : 33, large ? 64 : 33, only_k, count, names);
}

int main(int argc, char **argv)
{
    setenv("FAKECUDA_NETLIB", "1", 1);     /* the software libcuda: FP32 at every step of FFMA kernels */
    if (!gpu_open()) return 77;
    if (argc > 2 && !strcmp(argv[1], "--csv")) {
        if (!open_csv(argv[2])) return 1;
        argc -= 2;
        argv += 2;
    }
    if (argc > 2 && !strcmp(argv[1], "--at")) {
        only_k = atoi(argv[2]);
        argc -= 2;
        argv += 2;
    }
    set_option("OFFLOAD", "always");
    add_contenders();
    print_head();
    try_depths(argc - 1, argv + 1);
    const bool right = summary();
    if (csv && fclose(csv)) {
        perror("csv");
        return 1;
    }
    return right ? 0 : 1;
}
