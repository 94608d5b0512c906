/* SPDX-License-Identifier: MIT */
/* bench: our SGEMM and the ladder of kernels against cuBLAS, or SGEMM on host memory against its rivals. See
   --help. */
#include "tests/bench/bench.h"

#include <argp.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef GPB_LIBRARY
#define GPB_LIBRARY "libgpublas.so"
#endif

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

spread spread_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return (spread){ (values[(count - 1) / 2] + values[count / 2]) / 2, values[0], values[count - 1], count };
}

void must(int result, const char *what)
{
    if (result == 0) return;
    fprintf(stderr, "bench: %s: error %d\n", what, result);
    exit(1);
}

void *bench_memory(size_t bytes)
{
    void *p = malloc(bytes);
    if (p) return p;
    fprintf(stderr, "bench: no memory for %zu bytes\n", bytes);
    exit(1);
}

void *bench_symbol(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    if (symbol) return symbol;
    fprintf(stderr, "bench: %s\n", dlerror());
    exit(1);
}

bool bench_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at && (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ',')) return true;
    return !list;
}

bool bench_has_type(const bench_options *options, enum gpb_type type)
{
    return bench_listed(options->types, (char[2]){ gpb_type_of(type)->letter, 0 });
}

FILE *bench_csv(const char *path, const char *columns)
{
    if (!path) return NULL;
    FILE *csv = fopen(path, "w");
    if (!csv) {
        perror(path);
        exit(1);
    }
    const char *header = getenv("GPB_BENCH_HEADER");
    if (header) fprintf(csv, "%s\n", header);
    fprintf(csv, "%s\n", columns);
    return csv;
}

void sample_draw(sample *s, int m, int n, int k, const float *a, const float *b)
{
    gpb_problem p = { .m = m, .n = n, .k = k };
    gpb_problem_lay_out(&p);
    const gpb_call g = gpb_problem_call(&p, 1, 0, a, b, NULL);
    for (int x = 0; x < SAMPLES; x++) {
        int64_t i = random() % m, j = random() % n;
        s->at[x] = i + j * m;
        s->exact[x] = gpb_reference_at(&g, NULL, i, j, 0);
    }
}

sample_error sample_judge(const sample *s)
{
    double worst = 0, square = 0, whole = 0;
    for (int x = 0; x < SAMPLES; x++) {
        double error = fabs((double)s->got[x] - s->exact[x].value);
        if (isnan(error)) return (sample_error){ INFINITY, INFINITY };
        worst = fmax(worst, error / s->exact[x].product);
        square += error * error;
        whole += s->exact[x].value * s->exact[x].value;
    }
    return (sample_error){ worst * 0x1p24, sqrt(square / whole) };
}

double sgemm_flops(int m, int n, int k)
{
    const gpb_problem p = { .m = m, .n = n, .k = k };
    const gpb_call g = gpb_problem_call(&p, 1, 0, NULL, NULL, NULL);
    return gpb_test_flops(p.routine, &g);
}

enum {
    DEVICE = 1000, END_TO_END, OUT_OF_CORE, NEVER_SLOWER, PROCESSES, CALLERS, OVERHEAD, FIT, SUITES, MODES,
    SHAPES, SEED, TYPES, PAIRS, SUSTAINED, LEAST, PLAIN_BLAS, WORKER, CONTENDER, PROGRAM
};

static const struct argp_option arguments[] = {
    { "device", DEVICE, 0, 0, "Operands on the GPU: what the library does by itself, against cuBLAS", 0 },
    { "fit", FIT, 0, 0, "Every kernel and number of parts of k on random shapes: for tests/bench/fit.py", 0 },
    { "end-to-end", END_TO_END, 0, 0,
      "Host operands: this library, the host BLAS, NVBLAS, and cuBLAS between copies", 0 },
    { "out-of-core", OUT_OF_CORE, 0, 0,
      "The same for nine gigabytes of operands (s: 40000 x 40000 x 8192) with 4 GiB of device memory", 0 },
    { "never-slower", NEVER_SLOWER, 0, 0,
      "Random shapes: the library's choice against host and GPU, with 1, 4 and 16 host threads", 0 },
    { "processes", PROCESSES, 0, 0,
      "Whole programs, from start to exit, without and with the library preloaded", 0 },
    { "callers", CALLERS, 0, 0, "1 to 16 threads that call at once; small calls beside large ones", 0 },
    { "overhead", OVERHEAD, 0, 0, "What a call pays that goes to the host BLAS; what a plan costs", 0 },
    { "library", 'l', "PATH", 0, "The libgpublas.so to bench (default: the one of this build)", 0 },
    { "host-blas", 'b', "PATH", 0, "The host BLAS to compare with, and behind us (default: libopenblas.so.0)",
      0 },
    { "plain-blas", PLAIN_BLAS, "PATH", 0,
      "The BLAS behind NVBLAS: plain names, 32-bit integers (default: libopenblas.so.0)", 0 },
    { "nvblas", 'n', "PATH", 0, "NVBLAS (default: libnvblas.so of CUDA 13 or 12, if found)", 0 },
    { "csv", 'o', "FILE", 0, "Write the figures to FILE as well", 0 },
    { "kernel", 'k', "NAME", 0, "This kernel alone (fit: or several, with commas)", 0 },
    { "seconds", 's', "S", 0,
      "Ladder: after S seconds time each kernel once per shape; all else: take about S (default: 120)", 0 },
    { "suites", SUITES, "LIST", 0,
      "Device: some of squares,odd,shapes,thin,batched,beta,data,sustained; fit: their shapes instead of "
      "random ones", 0 },
    { "modes", MODES, "LIST", 0,
      "Device: some of fp32,ieee,tf32, for every suite (default: all; tf32 for squares alone; other data and "
      "on end: fp32)", 0 },
    { "types", TYPES, "LIST", 0, "All but the ladder, processes, overhead: some of s,d,c,z (default: s)", 0 },
    { "pairs", PAIRS, "LIST", 0, "Device: these transpositions alone, such as NN,TN (default: all)", 0 },
    { "sustained", SUSTAINED, "S", 0, "Device: seconds on end for each contender on a square (default: 2)",
      0 },
    { "least", LEAST, "N", 0, "Device: calls of each contender at least, however long they take (default: 7)",
      0 },
    { "shapes", SHAPES, "N", 0, "Fit, never-slower: this many shapes (default: 200, 300)", 0 },
    { "seed", SEED, "N", 0, "Fit, never-slower: other shapes (default: 1)", 0 },
    { "largest", 'm', "N", 0, "Leave out shapes with a side above N", 0 },
    { "worker", WORKER, "MODE", OPTION_HIDDEN, NULL, 0 },
    { "contender", CONTENDER, "NAME", OPTION_HIDDEN, NULL, 0 },
    { "program", PROGRAM, "NAME", OPTION_HIDDEN, NULL, 0 },
    { 0 }
};

typedef struct command { bench_options options; int (*run)(const bench_options *); } command;

static error_t parse(int key, char *text, struct argp_state *state)
{
    command *c = state->input;
    switch (key) {
    case DEVICE: c->run = bench_device; return 0;
    case FIT: c->run = bench_fit; return 0;
    case SUITES: c->options.suites = text; return 0;
    case MODES: c->options.modes = text; return 0;
    case TYPES: c->options.types = text; return 0;
    case PAIRS: c->options.pairs = text; return 0;
    case SUSTAINED: c->options.sustained = atof(text); return 0;
    case LEAST: c->options.least = atoi(text); return 0;
    case SHAPES: c->options.shapes = atoi(text); return 0;
    case SEED: c->options.seed = atoi(text); return 0;
    case END_TO_END: c->run = bench_end_to_end; return 0;
    case OUT_OF_CORE: c->run = bench_out_of_core; return 0;
    case NEVER_SLOWER: c->run = bench_never_slower; return 0;
    case PROCESSES: c->run = bench_processes; return 0;
    case CALLERS: c->run = bench_callers; return 0;
    case OVERHEAD: c->run = bench_overhead; return 0;
    case WORKER:
        c->run = bench_worker;
        c->options.worker = text;
        return 0;
    case PROGRAM:
        c->run = bench_program;
        c->options.program = text;
        return 0;
    case CONTENDER: c->options.contender = text; return 0;
    case PLAIN_BLAS: c->options.plain_blas = text; return 0;
    case 'l': c->options.library = text; return 0;
    case 'b': c->options.host_blas = text; return 0;
    case 'n': c->options.nvblas = text; return 0;
    case 'o': c->options.csv = text; return 0;
    case 'k': c->options.only = text; return 0;
    case 's': c->options.seconds = atof(text); return 0;
    case 'm': c->options.largest = atoi(text); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    static const char about[] =
        "Times every kernel of the ladder and cuBLAS, operands on the GPU, one completed "
        "call at a time; or what an option says.";
    static const struct argp argp = { arguments, parse, NULL, about, NULL, NULL, NULL };
    command c = { .run = bench_ladder };
    c.options = (bench_options){ .library = GPB_LIBRARY, .host_blas = "libopenblas.so.0",
                                 .plain_blas = "libopenblas.so.0", .seconds = 120, .types = "s",
                                 .sustained = 2, .least = 7,
                                 .seed = 1, .largest = 1 << 20 };
    argp_parse(&argp, argc, argv, 0, NULL, &c);
    return c.run(&c.options);
}
