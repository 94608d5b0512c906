/* SPDX-License-Identifier: MIT */
/* --processes: whole programs, from start to exit, by turns with the host BLAS alone and with the library
   preloaded. The programs are this one under another flag. It opens the host BLAS, and calls what the linker
   would bind for a program linked with it. */
#include "tests/bench/bench.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/gpublas.h"
#include "tests/bench/host.h"

/* ---- the programs ---- */

enum { JUDGED = 16 };

static int cut(const bench_options *options, int n) { return n < options->largest ? n : options->largest; }

/* A few random numbers again and again: making the operands is to take less time than a product of them. */
static float *filled(size_t floats, uint64_t seed, float scale)
{
    enum { PERIOD = 8191 };
    float *x = bench_memory(4 * floats);
    size_t made = floats < PERIOD ? floats : PERIOD;
    gpb_reference_fill(x, made, seed);
    for (size_t i = 0; i < made; i++) x[i] *= scale;
    for (; made < floats; made += PERIOD)
        memcpy(x + made, x, 4 * (floats - made < PERIOD ? floats - made : PERIOD));
    return x;
}

/* `calls` products of n^3, on eight sets of operands by turns. */
static double same_size(const bench_options *options, const blas *b, int n, int calls)
{
    n = cut(options, n);
    if (options->largest < 4 * n) calls = calls / 100 + 1;             /* a trial of the bench itself */
    const size_t floats = (size_t)n * (size_t)n, sets = calls < 8 ? 1 : 8;
    float *x = filled(sets * floats, 1, 1);
    float *y = filled(sets * floats, 2, 1);
    float *z = filled(sets * floats, 3, 0);
    gpb_call g = host_call(n, n, n, 0);
    check drawn;
    for (int i = 0; i < calls; i++) {
        const size_t set = (size_t)i % sets * floats;
        g.x[GPB_A].base = x + set;
        g.x[GPB_B].base = y + set;
        g.x[GPB_C].base = z + set;
        if (i == calls - 1) check_draw(&drawn, &g, JUDGED);
        blas_call(b, &g);
    }
    return check_worst(&drawn, &g);
}

/* A perceptron's training, 784 - 2048 - 2048 - 10, batches of 256: activations are columns. What is not a
   product, in plain loops. */
enum { INPUT = 784, HIDDEN = 2048, CLASSES = 10, BATCH = 256, STEPS = 200, LAYERS = 3 };

typedef struct layer { int in, out; float *weights, *gradient, *input, *error; } layer;

static gpb_call product(const float *a, char ta, const float *b, char tb, float *c, const int size[3])
{
    gpb_call g = host_call(size[0], size[1], size[2], 0);
    g.x[GPB_A].trans = ta;
    g.x[GPB_B].trans = tb;
    g.x[GPB_A].ld = gpb_call_rows(&g, GPB_A);
    g.x[GPB_B].ld = gpb_call_rows(&g, GPB_B);
    g.x[GPB_A].base = a;
    g.x[GPB_B].base = b;
    g.x[GPB_C].base = c;
    return g;
}

static void forward(const blas *b, layer *layers, float *output, int batch)
{
    for (int l = 0; l < LAYERS; l++) {
        float *to = l + 1 < LAYERS ? layers[l + 1].input : output;
        const gpb_call g = product(layers[l].weights, 'N', layers[l].input, 'N', to,
                                   (int[]){ layers[l].out, batch, layers[l].in });
        blas_call(b, &g);
        for (int i = 0; l + 1 < LAYERS && i < layers[l].out * batch; i++) to[i] = to[i] > 0 ? to[i] : 0;
    }
}

/* The worst error of the last gradient, if asked for. */
static double backward(const blas *b, layer *layers, int batch, bool judge)
{
    double worst = 0;
    for (int l = LAYERS - 1; l >= 0; l--) {
        layer *x = &layers[l];
        const gpb_call g = product(x->error, 'N', x->input, 'T', x->gradient,
                                   (int[]){ x->out, x->in, batch });
        check drawn;
        if (judge) check_draw(&drawn, &g, JUDGED);
        blas_call(b, &g);
        if (judge) worst = fmax(worst, check_worst(&drawn, &g));
        if (l > 0) {
            const gpb_call back = product(x->weights, 'T', x->error, 'N', layers[l - 1].error,
                                          (int[]){ x->in, batch, x->out });
            blas_call(b, &back);
            for (int i = 0; i < x->in * batch; i++)
                layers[l - 1].error[i] = x->input[i] > 0 ? layers[l - 1].error[i] : 0;
        }
        for (int i = 0; i < x->in * x->out; i++) x->weights[i] -= 1e-3f * x->gradient[i];
    }
    return worst;
}

static double training(const bench_options *options, const blas *b)
{
    const int hidden = cut(options, HIDDEN), input = cut(options, INPUT), batch = cut(options, BATCH);
    const int steps = options->largest < HIDDEN ? 3 : STEPS;
    layer layers[LAYERS] = { { .in = input, .out = hidden }, { .in = hidden, .out = hidden },
                             { .in = hidden, .out = CLASSES } };
    float *output = filled((size_t)(CLASSES * batch), 1, 0);
    float *wanted = filled((size_t)(CLASSES * batch), 2, 1);
    double worst = 0;
    for (int l = 0; l < LAYERS; l++) {
        size_t weights = (size_t)layers[l].in * (size_t)layers[l].out;
        layers[l].weights = filled(weights, (uint64_t)l + 3, 1 / sqrtf((float)layers[l].in));
        layers[l].gradient = filled(weights, 1, 0);
        layers[l].input = filled((size_t)(layers[l].in * batch), (uint64_t)l + 9, 1);
        layers[l].error = filled((size_t)(layers[l].out * batch), 1, 0);
    }
    for (int s = 0; s < steps; s++) {
        forward(b, layers, output, batch);
        for (int i = 0; i < CLASSES * batch; i++)
            layers[LAYERS - 1].error[i] = (output[i] - wanted[i]) / (float)batch;
        worst = backward(b, layers, batch, s == steps - 1);
    }
    return worst;
}

static double one_2048(const bench_options *options, const blas *b) { return same_size(options, b, 2048, 1); }
static double many_64(const bench_options *options, const blas *b)
{
    return same_size(options, b, 64, 10000);
}
static double many_256(const bench_options *options, const blas *b)
{
    return same_size(options, b, 256, 1000);
}

/* Linked with a BLAS, and never a product. */
static double no_sgemm(const bench_options *options, const blas *b)
{
    return options && b->call[GPB_TYPE_s] ? 0 : 1;
}

/* body NULL: /bin/true. */
static const struct program {
    const char *name;
    double (*body)(const bench_options *, const blas *);
} programs[] = {
    { "one_2048", one_2048 }, { "many_64", many_64 },   { "many_256", many_256 },
    { "training", training }, { "no_sgemm", no_sgemm }, { "true", NULL },
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

/* What was preloaded was in the way of the calls: or a time means nothing. */
static bool went_through(const struct program *p)
{
    int (*stats)(gpublas_stats_t *, size_t) = (__typeof__(stats))dlsym(RTLD_DEFAULT, "gpublas_stats");
    gpublas_stats_t seen = { 0 };
    if (!getenv("LD_PRELOAD")) return !stats;
    return stats && stats(&seen, sizeof seen) == 0 && (seen.calls > 0) == (p->body != no_sgemm);
}

int bench_program(const bench_options *options)
{
    for (int i = 0; i < PROGRAMS; i++) {
        if (!programs[i].body || strcmp(programs[i].name, options->program)) continue;
        const blas b = blas_as_linked(options->host_blas);
        double worst = programs[i].body(options, &b);
        bool through = went_through(&programs[i]);
        if (!(worst <= 1))
            fprintf(stderr, "bench: %s: an error of %g of the bound\n", options->program, worst);
        if (!through)
            fprintf(stderr, "bench: %s: its calls did not go where they should have\n", options->program);
        return !(worst <= 1) || !through;
    }
    return 2;
}

/* ---- the parent ---- */

enum { MIN_RUNS = 7, MAX_RUNS = 25, PRELOADED = 1 };

/* Seconds from fork to exit; *faults: its exit was not clean. */
static double timed(const bench_options *options, const struct program *p, bool preloaded, int *faults)
{
    char largest[16];
    int status = -1;
    snprintf(largest, sizeof largest, "%d", options->largest);
    fflush(NULL);
    const double start = seconds_now();
    pid_t child = fork();
    if (child == 0) {
        if (preloaded) setenv("LD_PRELOAD", options->library, 1);
        unsetenv("GPUBLAS_HOST_BLAS");                 /* found by itself, as a user has it */
        if (!p->body) execl("/bin/true", "true", (char *)NULL);
        else
            execl("/proc/self/exe", "bench", "--program", p->name, "--host-blas", options->host_blas,
                  "--largest", largest, (char *)NULL);
        _exit(127);
    }
    if (child < 0) must(-1, "fork");
    waitpid(child, &status, 0);
    const double seconds = seconds_now() - start;
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
        printf("%s%s: status %#x\n", p->name, preloaded ? ", preloaded" : "", (unsigned)status);
        ++*faults;
    }
    return seconds;
}

int bench_processes(const bench_options *options)
{
    FILE *csv =
        bench_csv(options->csv,
                  "program,runs,host_first_ms,host_ms,host_least_ms,host_most_ms,gpublas_first_ms,gpublas_ms,"
                  "gpublas_least_ms,gpublas_most_ms,ratio,more_ms");
    const double start = seconds_now();
    int faults = 0;
    printf("Whole processes, ms: median (least..most; first run). Host BLAS: %s\n", options->host_blas);
    for (int i = 0; i < PROGRAMS; i++) {
        double seconds[2][MAX_RUNS];
        double until = seconds_now() + (options->seconds - (seconds_now() - start)) / (PROGRAMS - i);
        int runs = 0;
        for (; runs < MAX_RUNS && (runs < MIN_RUNS || seconds_now() < until); runs++)
            for (int x = 0; x < 2; x++) {
                const int who = (runs + x) % 2;
                seconds[who][runs] = timed(options, &programs[i], who == PRELOADED, &faults);
            }
        const double first[2] = { seconds[0][0], seconds[PRELOADED][0] };
        const spread host = spread_of(seconds[0], runs), ours = spread_of(seconds[PRELOADED], runs);
        printf("%-9s host %9.3f (%.3f..%.3f; %.3f), preloaded %9.3f (%.3f..%.3f; %.3f): %.4f of it, %+.3f "
               "ms, %d runs\n",
               programs[i].name, 1e3 * host.median, 1e3 * host.least, 1e3 * host.most, 1e3 * first[0],
               1e3 * ours.median, 1e3 * ours.least, 1e3 * ours.most, 1e3 * first[1],
               ours.median / host.median, 1e3 * (ours.median - host.median), runs);
        if (csv)
            fprintf(csv, "%s,%d,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.4f,%.3f\n", programs[i].name, runs,
                    1e3 * first[0], 1e3 * host.median, 1e3 * host.least, 1e3 * host.most, 1e3 * first[1],
                    1e3 * ours.median, 1e3 * ours.least, 1e3 * ours.most, ours.median / host.median,
                    1e3 * (ours.median - host.median));
        fflush(NULL);
    }
    if (csv) fclose(csv);
    printf("%.0f s, %d faults\n", seconds_now() - start, faults);
    return faults != 0;
}
