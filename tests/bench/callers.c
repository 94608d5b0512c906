/* SPDX-License-Identifier: MIT */
/* --callers: threads of one process that call at once. (a) 1 to 16 of them, each with its own operands: what
   all of them get done, compared with one alone. (b) Small calls alone, and beside 15 threads of large ones:
   how long they take. */
#include "tests/bench/bench.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/worker.h"

enum { MAX_THREADS = 16, MAX_CALLS = 1 << 16, LARGE = 4096, MIDDLE = 2048, SMALL = 512 };

/* `callers` threads of n^3; small > 0: and one of small^3, whose times are asked for. */
typedef struct ask {
    enum gpb_type type;
    int n, callers, small;
    double seconds;
    int room_n, room_callers;
} ask;
typedef struct answer {
    double seconds, worst, on_gpu;
    int calls, least, most;      /* of all callers of n^3; of the slowest and the busiest of them */
    int small_calls;
    double median, p95, slowest; /* seconds of a small call */
    double pinned;               /* bytes, since the process's start */
} answer;

/* ---- the worker ---- */

typedef struct caller {
    pthread_t thread;
    gpb_call call;
    pthread_barrier_t *start;
    double until_after, ended;   /* seconds from the start */
    double *seconds;             /* of each call; NULL: not asked for */
    int calls;
    double worst;
} caller;

static void *work(void *of)
{
    caller *c = of;
    check drawn;
    pthread_barrier_wait(c->start);
    const double start = seconds_now();
    do {
        check_draw(&drawn, &c->call, 8);
        double t = contender_timed(&c->call);
        if (c->seconds && c->calls < MAX_CALLS) c->seconds[c->calls] = t;
        c->calls++;
    } while (seconds_now() - start < c->until_after);
    c->ended = seconds_now() - start;
    c->worst = check_worst(&drawn, &c->call);
    return NULL;
}

static void tell(const ask *q, caller *callers, answer *r)
{
    r->least = q->callers ? INT_MAX : 0;
    for (int i = 0; i < q->callers; i++) {
        r->calls += callers[i].calls;
        if (callers[i].calls < r->least) r->least = callers[i].calls;
        if (callers[i].calls > r->most) r->most = callers[i].calls;
        r->seconds = fmax(r->seconds, callers[i].ended);
    }
    for (int i = 0; i < q->callers + (q->small > 0); i++) r->worst = fmax(r->worst, callers[i].worst);
    if (!q->small) return;
    caller *small = &callers[q->callers];
    r->small_calls = small->calls;
    int kept = small->calls < MAX_CALLS ? small->calls : MAX_CALLS;
    const spread s = spread_of(small->seconds, kept);
    r->median = s.median;
    r->slowest = s.most;
    r->p95 = small->seconds[(int)(0.95 * (kept - 1) + 0.5)];      /* sorted by now */
}

static gpb_call square(enum gpb_type type, int n)
{
    gpb_call g = host_call(n, n, n, 0);
    g.type = type;
    return g;
}

static void serve(const bench_options *options, const void *asked, void *answered)
{
    static memory from;
    static double seconds[MAX_CALLS];
    static caller callers[MAX_THREADS + 1];
    const ask *q = asked;
    const int count = q->callers + (q->small > 0);
    pthread_barrier_t start;
    answer *r = answered;
    (void)options;
    if (!from.in.at) {
        const gpb_call most = square(q->type, q->room_n);
        const room one = room_of(&most);
        from = memory_make((room){ one.in * (size_t)q->room_callers, one.out * (size_t)q->room_callers },
                           false);
        contender_warm(&from, q->type, q->room_n < MIDDLE ? q->room_n : MIDDLE);
    }
    const uint64_t calls = contender_calls(), gpu_calls = contender_gpu_calls();
    memset(callers, 0, sizeof callers);
    from.in.used = from.out.used = 0;                         /* no two of them on one C */
    pthread_barrier_init(&start, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) {
        const int n = i < q->callers ? q->n : q->small;
        callers[i] = (caller){ .call = square(q->type, n), .start = &start, .until_after = q->seconds,
                               .seconds = i < q->callers ? NULL : seconds };
        memory_operands(&from, &callers[i].call, false);
        if (i > 0 && pthread_create(&callers[i].thread, NULL, work, &callers[i])) must(-1, "pthread_create");
    }
    work(&callers[0]);
    for (int i = 1; i < count; i++) pthread_join(callers[i].thread, NULL);
    pthread_barrier_destroy(&start);
    tell(q, callers, r);
    r->pinned = (double)pinned_bytes();
    if (contender_calls() > calls)
        r->on_gpu = (double)(contender_gpu_calls() - gpu_calls) / (double)(contender_calls() - calls);
}

const worker_mode callers_mode = { "callers", sizeof(ask), sizeof(answer), serve };

/* ---- the parent ---- */

static const enum contender_id who[] = { GPUBLAS_ALWAYS, GPUBLAS_AUTO, HOST };
enum { WHO = sizeof who / sizeof *who };

typedef struct run {
    const bench_options *options;
    FILE *csv;
    enum gpb_type type;
    worker workers[WHO];         /* of that type, because each has as much memory as that needs */
    double start;
    int left, faults;
} run;

static int cut(const run *on, int n) { return n < on->options->largest ? n : on->options->largest; }

static double flops_of(const run *on, int n)
{
    const gpb_call g = square(on->type, cut(on, n));
    return host_flops(&g);
}

/* False: no answer. `one` is what one caller alone gets done, in flops a second. `alone` is the median of a
   small call alone. 0: this is that call. */
static bool ask_one(run *on, int w, ask q, answer *r, double one, double alone)
{
    const double left = on->options->seconds - (seconds_now() - on->start);
    q.type = on->type;
    q.n = cut(on, q.n);
    q.small = cut(on, q.small);
    q.seconds = fmax(0.02, 0.8 * left / (on->left > 0 ? on->left : 1));
    q.room_n = cut(on, LARGE);
    q.room_callers = MAX_THREADS;
    on->left--;
    worker_settle();
    if (!worker_ask(&on->workers[w], &q, sizeof q, r, sizeof *r)) {
        on->faults += worker_failed(&on->workers[w]);
        return false;
    }
    const bool always = who[w] == GPUBLAS_ALWAYS, bad = !(r->worst <= 1) || (always && r->on_gpu < 1);
    const double rate = r->calls ? flops_of(on, q.n) * r->calls / r->seconds : 0;
    const char letter = gpb_type_of(on->type)->letter;
    on->faults += bad;
    printf("%cgemm %-15s %2d callers of %4d: %9.1f GFLOP/s, %.2f of one, %d..%d calls each", letter,
           on->workers[w].who->name, q.callers, q.n, 1e-9 * rate, one > 0 ? rate / one : 1, r->least,
           r->most);
    if (q.small)
        printf("; beside them %d: %.3f ms, p95 %.3f, %.2f of alone", q.small, 1e3 * r->median, 1e3 * r->p95,
               alone > 0 ? r->median / alone : 1);
    printf(", %.0f MiB pinned%s\n", r->pinned / (1 << 20), bad ? "  WRONG, or not on the GPU" : "");
    if (on->csv)
        fprintf(on->csv, "%s,%d,%d,%d,%.3f,%d,%d,%.1f,%.4f,%d,%d,%.6f,%.6f,%.6f,%.4f,%.3f,%.4f,%.2f,%c\n",
                on->workers[w].who->name, q.n, q.callers, q.small, r->seconds, r->calls, r->least,
                1e-9 * rate, one > 0 ? rate / one : 1, r->most, r->small_calls, 1e3 * r->median, 1e3 * r->p95,
                1e3 * r->slowest, alone > 0 ? r->median / alone : 1, r->on_gpu, r->worst,
                r->pinned / (1 << 20), letter);
    fflush(NULL);
    return true;
}

static void throughput(run *on, int n)
{
    static const int counts[] = { 1, 2, 4, 8, 16 };
    double one[WHO] = { 0 };
    answer r;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int w = 0; w < WHO; w++) {
            if (who[w] == HOST && n == LARGE) continue;      /* 2 s a call where 16 want the same cores */
            if (!ask_one(on, w, (ask){ .n = n, .callers = counts[i] }, &r, one[w], 0)) continue;
            if (i == 0) one[w] = flops_of(on, n) * r.calls / r.seconds;
        }
}

/* The small caller alone, then beside so many large ones that each core has one caller. */
static void latency(run *on)
{
    for (int w = 0; w < WHO; w++) {
        answer alone, beside;
        if (who[w] == HOST
            || !ask_one(on, w, (ask){ .n = LARGE, .callers = 0, .small = SMALL }, &alone, 0, 0))
            continue;
        ask_one(on, w, (ask){ .n = LARGE, .callers = 15, .small = SMALL }, &beside, 0, alone.median);
    }
}

int bench_callers(const bench_options *options)
{
    enum { QUESTIONS = 5 * WHO + 5 * (WHO - 1) + 2 * (WHO - 1) };          /* of a type */
    run on = { .options = options, .start = seconds_now() };
    on.csv = bench_csv(
        options->csv,
        "contender,n,callers,small,seconds,calls,least_calls,gflops,of_one,most_calls,small_calls,"
        "small_ms_median,small_ms_p95,small_ms_most,small_of_alone,on_gpu,error_of_bound,pinned_mib,type");
    for (enum gpb_type type = 0; type < GPB_TYPES; type++)
        on.left += bench_has_type(options, type) ? QUESTIONS : 0;
    for (on.type = 0; on.type < GPB_TYPES; on.type++) {
        if (!bench_has_type(options, on.type)) continue;
        for (int w = 0; w < WHO; w++)
            on.workers[w] = worker_start(options, "callers", who[w], (worker_setting){ 0 });
        latency(&on);
        throughput(&on, MIDDLE);
        throughput(&on, LARGE);
        for (int w = 0; w < WHO; w++) worker_end(&on.workers[w]);
    }
    if (on.csv) fclose(on.csv);
    printf("%.0f s, %d faults\n", seconds_now() - on.start, on.faults);
    return on.faults != 0;
}
