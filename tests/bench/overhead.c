/* SPDX-License-Identifier: MIT */
/* --overhead: nanoseconds that a call pays on its way through the library to the host BLAS, in each state
   that a process may be in, and what a plan costs by itself. Library and host BLAS take turns in one process,
   in blocks of calls. The figure is the median of the differences of neighbouring blocks. */
#include "tests/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/decide.h"
#include "tests/bench/worker.h"

enum { MAX_BLOCKS = 401, MIN_BLOCKS = 5, LARGEST = 64 };
#define BLOCK 100e-6             /* seconds of calls in a block, about */

typedef struct ask {
    int n;
    bool started;
    double seconds;
} ask;      /* started: the GPU is to have been used */
typedef struct answer { spread direct, library, more; double worst; int libcuda, gpu_calls, calls; } answer;

/* ---- the worker ---- */

static bool has_libcuda(void)
{
    char line[4096];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) found = found || strstr(line, "libcuda.so");
    if (maps) fclose(maps);
    return found;
}

static double through_library(const gpb_call *g, int calls)
{
    double start = seconds_now();
    for (int i = 0; i < calls; i++) contender_call(g);
    return (seconds_now() - start) / calls;
}

static double directly(const blas *host, const gpb_call *g, int calls)
{
    double start = seconds_now();
    for (int i = 0; i < calls; i++) blas_call(host, g);
    return (seconds_now() - start) / calls;
}

/* The first of each pair alternates. */
static int compare(const ask *q, const blas *host, const gpb_call *g, double seconds[3][MAX_BLOCKS],
                   int *calls)
{
    const double once = fmax(directly(host, g, 100), 1e-9), begun = seconds_now();
    int blocks = 0;
    *calls = (int)fmin(100000, fmax(10, BLOCK / once));
    through_library(g, *calls);
    for (; blocks < MAX_BLOCKS && (blocks < MIN_BLOCKS || seconds_now() - begun < q->seconds); blocks++) {
        if (blocks % 2) seconds[1][blocks] = through_library(g, *calls);
        seconds[0][blocks] = directly(host, g, *calls);
        if (blocks % 2 == 0) seconds[1][blocks] = through_library(g, *calls);
        seconds[2][blocks] = seconds[1][blocks] - seconds[0][blocks];
    }
    return blocks;
}

static void serve(const bench_options *options, const void *asked, void *answered)
{
    static double seconds[3][MAX_BLOCKS];
    const ask *q = asked;
    answer *r = answered;
    gpb_call g = host_call(q->n, q->n, q->n, 0);
    static memory from;
    check drawn;
    if (!from.in.at) {
        const gpb_call largest = host_call(LARGEST, LARGEST, LARGEST, 0);
        from = memory_make(room_of(&largest), false);
        memory_operands(&from, &g, false);
        if (q->started) contender_offload_one(&g);
    }
    memory_operands(&from, &g, false);
    check_draw(&drawn, &g, 8);
    contender_call(&g);
    r->worst = check_worst(&drawn, &g);
    const blas host = blas_open(options->host_blas, NULL);
    const uint64_t gpu_calls = contender_gpu_calls();
    int blocks = compare(q, &host, &g, seconds, &r->calls);
    r->direct = spread_of(seconds[0], blocks);
    r->library = spread_of(seconds[1], blocks);
    r->more = spread_of(seconds[2], blocks);
    r->gpu_calls = (int)(contender_gpu_calls() - gpu_calls);
    r->libcuda = has_libcuda();
}

const worker_mode overhead_mode = { "overhead", sizeof(ask), sizeof(answer), serve };

/* ---- plans ---- */

static double seconds_per_plan(const gpb_call *g, const gpb_facts *facts)
{
    enum { PLANS = 1000, ROUNDS = 51 };
    static const gpb_policy policy = { .offload = GPB_OFFLOAD_AUTO };
    double seconds[ROUNDS];
    int on_gpu = 0;
    for (int r = 0; r < ROUNDS; r++) {
        double start = seconds_now();
        for (int i = 0; i < PLANS; i++) on_gpu += gpb_decide(g, facts, &policy).gpu;
        seconds[r] = (seconds_now() - start) / PLANS;
    }
    (void)on_gpu;
    return spread_of(seconds, ROUNDS).median;
}

static void plans(FILE *csv)
{
    /* An H200 and its host, as evidence/machine.md has them. */
    gpb_facts facts = { .gpu.arch = 90,
                        .gpu.sms = 132,
                        .gpu.bytes = INT64_C(120) << 30,
                        .link.up_gbs = 50,
                        .link.down_gbs = 45,
                        .link.dma_gbs = 50,
                        .link.call_s = 12e-6,
                        .learnt.gpu_ratio = 1,
                        .host.cores = 16,
                        .host.core_gflops = 73,
                        .learnt.host_ratio = 1 };
    static const int sizes[] = { 4, 16, 64, 256, 512, 1024, 4096, 16384 };
    for (int device = 0; device < 2; device++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const gpb_call g = host_call(sizes[i], sizes[i], sizes[i], 0);
            facts.where[GPB_A].place = facts.where[GPB_B].place = facts.where[GPB_C].place = device
                ? GPB_PLACE_DEVICE
                : GPB_PLACE_HOST;
            facts.device = device;
            static const gpb_policy policy = { .offload = GPB_OFFLOAD_AUTO };
            double ns = 1e9 * seconds_per_plan(&g, &facts);
            const char *where = gpb_decide(&g, &facts, &policy).gpu ? "gpu" : "host";
            printf("a plan, operands on the %s, %5d: %7.1f ns (%s)\n", device ? "device" : "host", sizes[i],
                   ns, where);
            if (csv)
                fprintf(csv, "plan_%s,%d,,,,,,,%.1f,,,%s\n", device ? "device" : "host", sizes[i], ns, where);
        }
}

/* ---- the parent ---- */

/* never: nothing of CUDA is looked for. possible: a GPU may be there, and no call was worth its start.
   started: it has been used. The others are `never` and watched, all into /dev/null, so that no file system
   is in the figures. */
static const struct state {
    const char *name;
    enum contender_id id;
    bool started;
    const char *watch, *watched;
} states[] = {
    { "never", GPUBLAS_NEVER, false, NULL, NULL },
    { "possible", GPUBLAS_AUTO, false, NULL, NULL },
    { "started", GPUBLAS_AUTO, true, NULL, NULL },
    { "report", GPUBLAS_NEVER, false, "GPUBLAS_REPORT", "/dev/null" },
    { "trace", GPUBLAS_NEVER, false, "GPUBLAS_TRACE", "/dev/null" },
    { "verbose", GPUBLAS_NEVER, false, "GPUBLAS_VERBOSE", "1" },
};

int bench_overhead(const bench_options *options)
{
    static const int sizes[] = { 4, 16, LARGEST };
    enum { STATES = sizeof states / sizeof *states, SIZES = sizeof sizes / sizeof *sizes };
    /* Where the host takes 33 us for 64 and not 18, the library tries that size on the GPU
       (dispatch/README.md: three times at most). */
    enum { TRIES = 3 };
    FILE *csv = bench_csv(
        options->csv,
        "state,n,calls_a_block,blocks,direct_ns,direct_least_ns,library_ns,library_least_ns,overhead_ns,"
        "overhead_least_ns,overhead_most_ns,libcuda");
    int faults = 0;
    for (int i = 0; i < STATES; i++) {
        worker w = worker_start(options, "overhead", states[i].id,
                                (worker_setting){ .watch = states[i].watch, .watched = states[i].watched });
        for (int s = 0; s < SIZES; s++) {
            const ask q = { sizes[s], states[i].started, 0.8 * options->seconds / (STATES * SIZES) };
            answer r;
            if (!worker_ask(&w, &q, sizeof q, &r, sizeof r)) {
                faults++;
                break;
            }
            const bool tries = r.gpu_calls <= (states[i].started ? TRIES : 0);
            bool bad = !(r.worst <= 1) || !tries || (states[i].started && !r.libcuda);
            faults += bad;
            printf(
                "%-8s %2d^3: %8.1f ns directly, %8.1f through the library, %6.1f more (%.1f..%.1f), %s%s\n",
                states[i].name, q.n, 1e9 * r.direct.median, 1e9 * r.library.median, 1e9 * r.more.median,
                1e9 * r.more.least, 1e9 * r.more.most, r.libcuda ? "libcuda is there" : "no libcuda",
                bad ? "  WRONG, or not on the host, or not started" : "");
            if (csv)
                fprintf(csv, "%s,%d,%d,%d,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%s\n", states[i].name, q.n,
                        r.calls, r.more.count, 1e9 * r.direct.median, 1e9 * r.direct.least,
                        1e9 * r.library.median, 1e9 * r.library.least, 1e9 * r.more.median,
                        1e9 * r.more.least, 1e9 * r.more.most, r.libcuda ? "yes" : "no");
        }
        worker_end(&w);
    }
    plans(csv);
    if (csv) fclose(csv);
    printf("%d faults\n", faults);
    return faults != 0;
}
