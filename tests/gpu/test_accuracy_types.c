/* SPDX-License-Identifier: MIT */
/* Are d, c and z as accurate as promised, and as cuBLAS? The patterns of accuracy_data.def at some k: by the
   library's own choice, by each kernel that cuts operands, in c also by one chain of FMAs, and by cuBLAS
   if there is one. All are compared with twice the type's precision, complex results part by part.
   Real and imaginary parts are patterns of their own. The elements of d and z get 29 random bits below the 24
   of a pattern, except where results are to be exact. The first kinds of data come again with imaginary parts
   far smaller or larger than the real ones.
   Checked at each point: the promised bound, and that sums of small integers are exact; in c also against the
   chain of FMAs, by rms and by the largest error; the library's choice against cuBLAS, by rms.
   Usage: test_accuracy_types [--csv FILE] [data ...]. GPB_TEST_LARGE=1: deeper and larger.
   GPB_TEST_TYPES=dcz: these alone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/accuracy.h"
#include "tests/gpu/placed.h"
#include "tests/gpu/trace.h"

/* As in test_accuracy: where chance ends. Against cuBLAS the goals of issue 18. */
static const double RMS_NOISE = 1.02, MAX_NOISE = 1.3, CUBLAS_RMS = 1.2, CUBLAS_MEAN = 1;
/* In u. Where two terms outweigh all others (spike120 in c: real and imaginary parts have a spike each), a
   sum of blocks rounds the second one before it is added, a chain of FMAs does not: 0.50 to 0.52 for 0.42. */
static const double ROUNDED_TWICE = 0.55;

/* What A and B hold: imaginary parts are 2^a and 2^b times what the pattern says. */
typedef struct kind { const accuracy_data *data; int a, b; } kind;
static const struct { int a, b; } ratios[] = { { 0, 0 }, { -24, 0 }, { -24, -24 }, { 24, -24 }, { -60, 10 } };
enum { RATIOS = sizeof ratios / sizeof *ratios, WITH_RATIOS = 8 };

typedef struct contender {
    const char *name, *kernel, *math, *splits;                   /* math NULL: cuBLAS */
    int points, beyond, above, inexact;    /* beyond the bound; above the chain of FMAs; not exact */
    double of_bound, worst_rms;
} contender;
enum { LIBRARY, MOST = 16 };
static contender contenders[MOST];
static int contender_count, chain, cublas;                        /* their places; -1: none */
static struct { int points, above; double logs, worst_rms, worst_max; } against_cublas;
static enum gpb_type type;
static FILE *csv;

static bool is_complex(void) { return gpb_type_of(type)->kind == GPB_TYPE_COMPLEX; }
static bool is_double(void) { return gpb_type_real_bytes(type) == sizeof(double); }
static int parts(void) { return is_complex() ? 2 : 1; }
static double unit(void) { return is_double() ? 0x1p-53 : 0x1p-24; }

static void add(contender who) { contenders[contender_count++] = who; }

static void add_contenders(void)
{
    static const struct { const char *name, *image; enum gpb_type type; enum gpb_math math; } rows[] = {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    { #name, #image, GPB_TYPE_##p, GPB_MATH_##math },
#include "kernels/gemm.def"
#undef KERNEL
    };
    contender_count = 0;
    chain = cublas = -1;
    add((contender){ .name = "library", .math = "fp32" });
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].type == type && kernel_runs(rows[i].image)
            && (rows[i].math == GPB_MATH_FP16X3 || rows[i].math == GPB_MATH_BF16X6
                || rows[i].math == GPB_MATH_INT8X15))
            add((contender){ .name = rows[i].name, .kernel = rows[i].name, .math = "fp32" });
    if (type == GPB_TYPE_c) {
        chain = contender_count;
        add((contender){ .name = "ffma", .kernel = "ffma", .math = "ieee", .splits = "1" });
    }
    if (accuracy_cublas_open()) {
        cublas = contender_count;
        add((contender){ .name = "cublas" });
    }
}

/* ---- data */

typedef struct filling {
    const float *part[2];
    void *to;
    int64_t k;
    double scale;                          /* of imaginary parts */
    bool deep;
    uint64_t seed;
} filling;

static void fill_row(int64_t row, void *what)
{
    const filling *f = what;
    uint64_t state = f->seed + (uint64_t)row * 0x9e3779b97f4a7c15u;
    for (int64_t p = row * f->k; p < (row + 1) * f->k; p++)
        for (int part = 0; part < parts(); part++) {
            double x = (double)f->part[part][p] * (part ? f->scale : 1);
            if (f->deep) x *= 1 + (double)(gpb_reference_draw(&state, UINT64_MAX) >> 35) * 0x1p-53;
            if (is_double()) ((double *)f->to)[p * parts() + part] = x;
            else ((float *)f->to)[p * parts() + part] = (float)x;
        }
}

static void fill(operand *o, int64_t rows, int64_t k, const accuracy_data *data, accuracy_pattern pattern,
                 int ratio, uint64_t seed)
{
    float *x[2] = { NULL, NULL };
    for (int part = 0; part < parts(); part++) {
        x[part] = malloc(sizeof(float) * (size_t)(rows * k));
        if (!x[part]) exit(1);
        accuracy_fill(x[part], rows, k, pattern, seed + 2 * (uint64_t)part);
    }
    filling f = { { x[0], x[1] }, o->image, k, ldexp(1, ratio), is_double() && data->result != RESULT_EXACT,
                  seed };
    accuracy_parallel(fill_row, rows, &f);
    for (int part = 0; part < 2; part++) free(x[part]);
    operand_put(o);
}

/* ---- the truth: some rows, and as many columns */

typedef struct truth {
    gpb_call call;
    int side;
    gpb_reference_element (*at)[GPB_REFERENCE_SUMS];     /* [x + y * side][part] */
    bool *exact;                           /* where the chain of FMAs is */
} truth;

static int64_t entry_of(const truth *t, int64_t x)
{
    return accuracy_place(t->call.m, t->side, (int)x % t->side)
        + accuracy_place(t->call.n, t->side, (int)x / t->side) * t->call.m;
}

static void find(int64_t x, void *what)
{
    const truth *t = what;
    const int64_t entry = entry_of(t, x);
    gpb_reference_sums(&t->call, entry % t->call.m, entry / t->call.m, 0, t->at[x]);
}

typedef struct error { double rms, max, of_bound; int64_t wrong; } error;

/* True if the type's every order of summation is exact, as far as the data tell. */
static bool is_to_be_exact(const truth *t, const accuracy_data *data, int64_t x, int part)
{
    if (t->at[x][part].product == 0) return true;
    if (data->result != RESULT_EXACT) return false;
    return is_double() || (t->exact[x * 2 + part] && t->at[x][part].product <= ACCURACY_EXACT_SUM);
}

static double off_at(const truth *t, const void *c, int64_t x, int part)
{
    const char *at = (const char *)c + entry_of(t, x) * (int64_t)gpb_type_bytes(type);
    const double off = fabs(gpb_reference_value(&t->call, at, part) - t->at[x][part].value
                            - t->at[x][part].rest);
    return isnan(off) ? INFINITY : off;
}

static error measure(const truth *t, const accuracy_data *data, const void *c)
{
    error e = { 0, 0, 0, 0 };
    int64_t count = 0;
    for (int64_t x = 0; x < (int64_t)t->side * t->side; x++)
        for (int part = 0; part < parts(); part++) {
            const gpb_reference_element *truly = &t->at[x][part];
            const double off = off_at(t, c, x, part);
            e.wrong += off != 0 && is_to_be_exact(t, data, x, part);
            if (truly->product == 0) continue;
            const double u = off / truly->product / unit();
            e.max = fmax(e.max, u);
            e.rms += u * u;
            e.of_bound = fmax(e.of_bound, off / gpb_reference_bound(GPB_MATH_FMA, &t->call, *truly));
            count++;
        }
    e.rms = count ? sqrt(e.rms / (double)count) : 0;
    return e;
}

static void note_exact(truth *t, const void *c)
{
    for (int64_t x = 0; x < (int64_t)t->side * t->side; x++)
        for (int part = 0; part < parts(); part++) t->exact[x * 2 + part] = off_at(t, c, x, part) == 0;
}

/* ---- one product by each contender */

static void multiply(const contender *who, const placed *p, char kernel[64])
{
    char route[16];
    snprintf(kernel, 64, "-");
    if (!who->math) {
        accuracy_cublas(type, p->of.m, p->of.n, p->of.k, p->x[GPB_A].address, p->x[GPB_B].address,
                        p->x[GPB_C].address);
        return;
    }
    set_option("MATH", who->math);
    set_option("KERNEL", who->kernel);
    set_option("SPLITS", who->splits);
    trace_begin();
    placed_call(p, 1, 0);
    const char *trace = trace_end();
    trace_value(trace, "kernel", kernel, 64);
    if (!strcmp(trace_value(trace, "route", route, sizeof route), "gpu")) return;
    fprintf(stderr, "%s: not on the GPU: %s\n", who->name, trace);
    exit(1);
}

static void compute(const contender *who, placed *p, void *c, char kernel[64])
{
    gpb_poison(type, p->x[GPB_C].image, p->x[GPB_C].count);       /* what is not written shows */
    operand_put(&p->x[GPB_C]);
    multiply(who, p, kernel);
    operand_get(&p->x[GPB_C], c);
}

static double ratio(double a, double b) { return a == b ? 1 : b == 0 ? INFINITY : a / b; }

static void tell(const char *what, const contender *who, const kind *of, int k, double x)
{
    printf("%s: %c, %s, parts 2^%d 2^%d, %s, k %d: %.3f\n", what, gpb_type_of(type)->letter, of->data->name,
           of->a, of->b, who->name, k, x);
}

static void judge(contender *who, const kind *of, const error *e, const error *plain, int k)
{
    const enum accuracy_result result = of->data->result;
    who->points++;
    who->of_bound = fmax(who->of_bound, e->of_bound);
    if (!(e->of_bound <= 1) && ++who->beyond) tell("BEYOND THE BOUND", who, of, k, e->of_bound);
    if (e->wrong && ++who->inexact) tell("NOT EXACT, places", who, of, k, (double)e->wrong);
    if (!plain || of->a || of->b || (result != RESULT_BOUNDED && result != RESULT_FEW)) return;
    const double rms = ratio(e->rms, plain->rms), max = ratio(e->max, plain->max);
    who->worst_rms = fmax(who->worst_rms, rms);
    if ((rms <= RMS_NOISE || e->rms <= ROUNDED_TWICE) && max <= MAX_NOISE) return;
    who->above++;
    tell("ABOVE THE CHAIN OF FMAs", who, of, k, rms);
}

/* Where cuBLAS happens to be exact, half a unit is allowed. */
static void judge_cublas(const kind *of, const error *ours, const error *theirs, int k)
{
    const double rms = ratio(ours->rms, theirs->rms);
    if (of->data->result != RESULT_BOUNDED || of->a || of->b) return;
    if (theirs->max == 0 && ours->rms <= 0.5) return;
    against_cublas.points++;
    against_cublas.logs += log(fmin(fmax(rms, 1e-3), 1e3));
    against_cublas.worst_rms = fmax(against_cublas.worst_rms, rms);
    against_cublas.worst_max = fmax(against_cublas.worst_max, ratio(ours->max, theirs->max));
    if (rms <= CUBLAS_RMS) return;
    against_cublas.above++;
    tell("ABOVE cuBLAS", &contenders[LIBRARY], of, k, rms);
}

static void write_row(const kind *of, const placed *p, const contender *who, const char *kernel,
                      const error *e, const error *plain, const error *theirs)
{
    if (!csv) return;
    fprintf(csv, "%c,%s,%d,%d,%d,%d,%d,%s,%s,%.6g,%.6g,%.6g,%lld,", gpb_type_of(type)->letter,
            of->data->name, of->a, of->b, p->of.m, p->of.n, p->of.k, who->name, kernel, e->rms, e->max,
            e->of_bound, (long long)e->wrong);
    if (plain) fprintf(csv, "%.4f", ratio(e->rms, plain->rms));
    fprintf(csv, theirs ? ",%.4f\n" : ",\n", theirs ? ratio(e->rms, theirs->rms) : 0);
}

static void try_point(const kind *of, placed *p, truth *t, void *c)
{
    error errors[MOST];
    char kernels[MOST][64];
    fill(&p->x[GPB_A], p->of.m, p->of.k, of->data, of->data->a, of->a, 1);
    fill(&p->x[GPB_B], p->of.n, p->of.k, of->data, of->data->b, of->b, 2);
    accuracy_parallel(find, (int64_t)t->side * t->side, t);
    if (chain >= 0) {
        compute(&contenders[chain], p, c, kernels[chain]);
        note_exact(t, c);
    }
    for (int i = 0; i < contender_count; i++) {
        compute(&contenders[i], p, c, kernels[i]);
        errors[i] = measure(t, of->data, c);
    }
    const error *plain = chain < 0 ? NULL : &errors[chain], *theirs = cublas < 0 ? NULL : &errors[cublas];
    for (int i = 0; i < contender_count; i++) {
        write_row(of, p, &contenders[i], kernels[i], &errors[i], plain, theirs);
        if (contenders[i].math) judge(&contenders[i], of, &errors[i], plain, p->of.k);
    }
    if (theirs) judge_cublas(of, &errors[LIBRARY], theirs, p->of.k);
}

/* ---- all points */

static bool is_listed(const char *name, int count, char **names)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return true;
    return count == 0;
}

static void try_data(placed *p, truth *t, void *c, int count, char **names)
{
    for (int d = 0; d < accuracy_data_count; d++) {
        const int most = is_complex() && d < WITH_RATIOS ? RATIOS : 1;
        if (!is_listed(accuracy_datas[d].name, count, names)) continue;
        for (int r = 0; r < most; r++)
            try_point(&(kind){ &accuracy_datas[d], ratios[r].a, ratios[r].b }, p, t, c);
    }
}

static void try_depth(int size, int side, int k, int count, char **names)
{
    const size_t places = (size_t)side * (size_t)side;
    placed p = { .of = { .type = type, .m = size, .n = size, .k = k, .transa = is_complex() ? 'C' : 'T',
                         .transb = 'N', .ld = { k, k, size } } };
    p.x[GPB_A] = operand_make(PLACE_DEVICE, type, (int64_t)size * k, 0);
    p.x[GPB_B] = operand_make(PLACE_DEVICE, type, (int64_t)size * k, 0);
    p.x[GPB_C] = operand_make(PLACE_DEVICE, type, (int64_t)size * size, 0);
    truth t = { gpb_problem_call(&p.of, 1, 0, p.x[GPB_A].image, p.x[GPB_B].image, NULL), side,
                calloc(places, sizeof *t.at), calloc(places, 2) };
    void *c = malloc(gpb_type_bytes(type) * (size_t)size * (size_t)size);
    if (!t.at || !t.exact || !c) exit(1);
    try_data(&p, &t, c, count, names);
    free(c);
    free(t.at);
    free(t.exact);
    for (enum gpb_operand x = GPB_A; x < GPB_OPERANDS; x++) operand_free(&p.x[x]);
}

static bool summary(void)
{
    const char letter = gpb_type_of(type)->letter;
    bool right = true;
    for (int i = 0; i < contender_count; i++) {
        const contender *who = &contenders[i];
        if (!who->math) continue;
        printf("%c %-16s %5d points, at most %.4f of the bound, %d beyond, %d not exact", letter, who->name,
               who->points, who->of_bound, who->beyond, who->inexact);
        if (chain >= 0) printf("; worst rms to FMAs %.3f, %d above", who->worst_rms, who->above);
        printf("\n");
        right = right && !who->beyond && !who->inexact && !who->above && who->points > 0;
    }
    if (cublas < 0) {
        printf("no cuBLAS here: the comparison with it is SKIPPED\n");
        return right;
    }
    const double mean = exp(against_cublas.logs / fmax(against_cublas.points, 1));
    printf("%c library against cuBLAS: %d points, geometric mean of rms %.3f (of %.1f), worst rms %.3f (of "
           "%.1f), worst max %.3f, %d above\n",
           letter, against_cublas.points, mean, CUBLAS_MEAN, against_cublas.worst_rms, CUBLAS_RMS,
           against_cublas.worst_max, against_cublas.above);
    return right && mean <= CUBLAS_MEAN && against_cublas.above == 0;
}

/* C is large enough on a GPU for sums to leave the tensor cores seldom. */
static bool try_type(int count, char **names)
{
    memset(&against_cublas, 0, sizeof against_cublas);
    add_contenders();
    if (getenv("GPB_TEST_LARGE")) {
        try_depth(1024, 48, 64, count, names);
        try_depth(1024, 48, 1000, count, names);
        try_depth(512, 48, 8192, count, names);
    } else {
        try_depth(65, 20, 64, count, names);
        try_depth(70, 10, 301, count, names);
    }
    const bool right = summary();
    fflush(stdout);
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
    fprintf(csv, "type,data,parts_a,parts_b,m,n,k,who,kernel,rms_u,max_u,of_bound,not_exact,rms_to_ffma,"
                 "rms_to_cublas\n");
    return true;
}

int main(int argc, char **argv)
{
    const char *types = getenv("GPB_TEST_TYPES");
    bool right = true;
    setenv("FAKECUDA_NETLIB", "1", 1);     /* the software libcuda: every step of FMA kernels is rounded */
    if (!gpu_open()) return 77;
    if (argc > 2 && !strcmp(argv[1], "--csv")) {
        if (!open_csv(argv[2])) return 1;
        argc -= 2;
        argv += 2;
    }
    set_option("OFFLOAD", "always");
    for (type = GPB_TYPE_s + 1; type < GPB_TYPES; type++)
        if ((!types || strchr(types, gpb_type_of(type)->letter)) && type_runs(type))
            right = try_type(argc - 1, argv + 1) && right;
    if (csv && fclose(csv)) {
        perror("csv");
        return 1;
    }
    printf("%s\n", right ? "PASSED" : "FAILED");
    return right ? 0 : 1;
}
