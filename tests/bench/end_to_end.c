/* SPDX-License-Identifier: MIT */
/* End to end: one GEMM on host memory, as an unmodified program calls it, by each contender in a process of
   its own, by turns. --types: SGEMM in many ways; d, c and z in the plainest, pinned and as sub-matrices.
   --out-of-core: the same for one product that is far larger than the device memory that it may use. */
#include "tests/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/gpu.h"
#include "tests/bench/worker.h"

enum { MAX_CALLS = 21, WARM_UP = 2048, TWICE = 2 };
#define LONG_SECONDS 4           /* of one call by the host (16384 takes 7.5 s, evidence/machine.md), which is
                                    timed once then and not warmed up */
#define MAX_SECONDS 0.4          /* of calls of a case by one contender, unless three take longer */
#define PATIENCE 3.0             /* seconds after which three are too many */

/* Where operands lie. fresh: never seen before. again: where those of the last call were. pinned: page-locked
   by the program. */
enum where { FRESH, AGAIN, PINNED };
static const char *const places[] = { "fresh", "again", "pinned" };

/* What one worker is asked: one case. `inside`: sub-matrices of matrices with twice the rows. */
typedef struct ask {
    enum gpb_type type;
    int64_t m, n, k;
    double beta, seconds;
    bool row_major, inside, once;
    enum where where;
    room room;                   /* of the memory that operands come from */
} ask;
typedef struct answer { spread seconds; double worst, first, on_gpu; bool none; } answer;

/* ---- the worker ---- */

static memory pinned_memory(room r)
{
    char gpu[256];
    void *at;
    if (!gpu_open(gpu, sizeof gpu)) exit(77);
    MUST(cuMemHostAlloc(&at, r.in + r.out, 1));  /* CU_MEMHOSTALLOC_PORTABLE */
    return memory_at(at, r);
}

static double first_call;        /* the process's first, GPU start and all: 0 as yet */

/* In mode `auto` calls that are worth it start the GPU. Here that happens before the first call that is
   timed. --processes measures what the start costs. */
static memory *memory_for(const ask *q)
{
    static memory ordinary, pinned;
    if (!ordinary.in.at) {
        const double each = (double)gpb_type_bytes(q->type);
        const double room = 0.9 * sqrt(fmin((double)q->room.in / 2, (double)q->room.out) / each);
        ordinary = memory_make(q->room, true);
        if (!q->once) first_call = contender_warm(&ordinary, q->type, (int)fmin(WARM_UP, room));
    }
    if (q->where != PINNED) return &ordinary;
    if (!pinned.in.at) pinned = pinned_memory(q->room);
    return &pinned;
}

static gpb_call call_of(const ask *q)
{
    gpb_call g = host_call(q->m, q->n, q->k, q->beta);
    g.type = q->type;
    g.row_major = q->row_major;
    if (q->inside) {
        g.x[GPB_A].ld *= TWICE;
        g.x[GPB_B].ld *= TWICE;
        g.x[GPB_C].ld *= TWICE;
    }
    return g;
}

/* Writing memory anew takes longer than a call. */
static bool goes_on(const ask *q, double spent, double begun)
{
    return spent < q->seconds && seconds_now() - begun < 2 * q->seconds;
}

static void serve(const bench_options *options, const void *asked, void *answered)
{
    const ask *q = asked;
    answer *r = answered;
    gpb_call g = call_of(q);
    double seconds[MAX_CALLS], spent = 0;
    check drawn;
    int count = 0;
    (void)options;
    if (q->row_major && !contender_has_rows()) {
        r->none = true;
        return;
    }
    memory *from = memory_for(q);
    memory_operands(from, &g, q->inside);
    if (!q->once) contender_timed(&g);
    const uint64_t calls = contender_calls(), gpu_calls = contender_gpu_calls();
    const double begun = seconds_now();
    do {
        if (q->where != AGAIN && !q->once) memory_operands(from, &g, q->inside);
        check_draw(&drawn, &g, CHECKED);
        spent += seconds[count++] = contender_timed(&g);
    } while (!q->once && count < MAX_CALLS && (count < 3 ? spent < PATIENCE : goes_on(q, spent, begun)));
    if (contender_calls() > calls)
        r->on_gpu = (double)(contender_gpu_calls() - gpu_calls) / (double)(contender_calls() - calls);
    r->seconds = spread_of(seconds, count);
    r->worst = check_worst(&drawn, &g);
    r->first = first_call;
}

const worker_mode end_to_end_mode = { "end-to-end", sizeof(ask), sizeof(answer), serve };

/* ---- the cases ---- */

#define ID(x) (1u << (x))
#define OURS (ID(GPUBLAS_AUTO) | ID(GPUBLAS_ALWAYS))
#define RIVALS (ID(NVBLAS) | ID(NVBLAS_TUNED) | ID(COPY_CUBLAS))

/* Sizes up to `most`, of d, c and z up to `most_types` (0: none). who: a bit each. The host BLAS is not asked
   again for what makes no difference to it. Groups with cores come last, because they need processes of their
   own. */
static const struct group {
    enum where where;
    bool row_major, inside;
    double beta;
    int cores, most, most_types;
    unsigned who;
} groups[] = {
    { FRESH, false, false, 0, 0, 16384, 16384, OURS | RIVALS | ID(HOST) },
    { FRESH, false, false, 1, 0, 16384, 0, OURS | ID(NVBLAS_TUNED) | ID(COPY_CUBLAS) },
    { FRESH, false, false, 1, 0, 8192, 0, ID(NVBLAS) | ID(HOST) },
    { FRESH, true, false, 0, 0, 16384, 0, OURS },
    { FRESH, true, false, 1, 0, 16384, 0, OURS },
    { AGAIN, false, false, 0, 0, 8192, 0, OURS | RIVALS },
    { FRESH, false, true, 0, 0, 8192, 4096, OURS | ID(NVBLAS_TUNED) | ID(COPY_CUBLAS) },
    { FRESH, false, true, 1, 0, 8192, 0, OURS },
    { PINNED, false, false, 0, 0, 8192, 4096, OURS | RIVALS },
    { PINNED, false, false, 1, 0, 8192, 0, OURS | ID(COPY_CUBLAS) },
    { FRESH, false, false, 0, 4, 8192, 0, OURS },
    { FRESH, false, false, 0, 4, 4096, 0, ID(HOST) },
};
static const int sizes[] = { 512, 1024, 2048, 3135, 4096, 6000, 8192, 16384 };
enum { GROUPS = sizeof groups / sizeof *groups, SIZES = sizeof sizes / sizeof *sizes };

/* Of d, c and z powers of two, and of z no 16384, whose operands are as large as s's of 32768. */
static bool is_for(enum gpb_type type, const struct group *group, int size)
{
    if (type == GPB_TYPE_s) return size <= group->most;
    return size <= group->most_types && !(size & (size - 1)) && !(type == GPB_TYPE_z && size > 8192);
}

/* Who is asked that. 16384 of d and c takes NVBLAS 10 s a call and the host twice that (an H200's machine,
   2026-11-24), which is more than the stage has. */
static unsigned asked(enum gpb_type type, const struct group *group, int size)
{
    if (!is_for(type, group, size)) return 0;
    return group->who & (type != GPB_TYPE_s && size > 8192 ? OURS : ~0u);
}

static bool is_for_any(enum gpb_type type, const struct group *group)
{
    return type == GPB_TYPE_s ? group->most > 0 : group->most_types > 0;
}

/* Room for two calls' operands, because while one call is at work the other's operands leave the caches.
   Pinned memory is dear, so it has room for one call, and so has what holds 16384 of more than four bytes. */
static room room_of_type(const bench_options *options, enum gpb_type type, const struct group *group)
{
    int64_t n = sizes[0];
    for (int i = 0; i < SIZES; i++)
        if (sizes[i] <= options->largest && is_for(type, group, sizes[i])) n = sizes[i];
    if (options->largest < n) n = options->largest;
    const bool pinned = group->where == PINNED, is_s = type == GPB_TYPE_s;
    const gpb_call call = call_of(&(ask){ .type = type, .m = n, .n = n, .k = n,
                                          .inside = is_s && n <= 8192 && !pinned });
    const room one = room_of(&call);
    return pinned || (!is_s && n > 8192) ? one : (room){ 2 * one.in, 2 * one.out };
}

/* A process has as much memory, pageable and pinned, as its largest question of any type wants. That of
   pageable memory is in the first group. */
static room room_for(const bench_options *options, const struct group *group)
{
    if (group->cores) return room_of_type(options, GPB_TYPE_s, group);
    room most = { 0, 0 };
    for (enum gpb_type type = 0; type < GPB_TYPES; type++) {
        if (!bench_has_type(options, type)) continue;
        const room r = room_of_type(options, type, group->where == PINNED ? group : groups);
        most = (room){ r.in > most.in ? r.in : most.in, r.out > most.out ? r.out : most.out };
    }
    return most;
}

static void write_row(FILE *csv, const contender *who, const ask *q, const worker_setting *setting,
                      const answer *r)
{
    const gpb_call g = call_of(q);
    const double ideal = host_ideal(&g, setting->cores);
    if (!csv) return;
    fprintf(csv, "%s,%d,%d,%d,%g,%s,%s,%s,%d,%s,%d,", who->name, (int)q->m, (int)q->n, (int)q->k, q->beta,
            q->row_major ? "row" : "column", places[q->where], q->inside ? "inside" : "packed",
            setting->cores, setting->memory ? setting->memory : "all", r->seconds.count);
    fprintf(csv, "%.6f,%.6f,%.6f,%.1f,%.4f,%.3f,%.6f,%.4f,%.3f,%c\n", 1e3 * r->seconds.median,
            1e3 * r->seconds.least, 1e3 * r->seconds.most, 1e-9 * host_flops(&g) / r->seconds.median,
            r->worst, r->on_gpu, 1e3 * ideal, ideal / r->seconds.median, 1e3 * r->first,
            gpb_type_of(q->type)->letter);
    fflush(csv);
}

static const char columns[] =
    "contender,m,n,k,beta,order,memory,layout,cores,device_memory,calls,ms_median,ms_least,ms_most,gflops,"
    "error_of_bound,on_gpu,ideal_ms,of_ideal,first_call_ms,type";

/* One question to one contender; the faults of its answer. */
static int ask_one(worker *w, const ask *q, const worker_setting *setting, FILE *csv)
{
    answer r;
    worker_settle();
    if (!worker_ask(w, q, sizeof *q, &r, sizeof r)) {
        printf("%13s", w->code == 77 ? "-" : "failed");
        return worker_failed(w);
    }
    if (r.none) {
        printf("%13s", "-");
        return 0;
    }
    const gpb_call g = call_of(q);
    const bool always = w->who->offload && !strcmp(w->who->offload, "always");
    const bool bad = !(r.worst <= 1) || (always && r.on_gpu < 1);
    write_row(csv, w->who, q, setting, &r);
    printf(" %9.3f%s%2.0f", 1e3 * r.seconds.median, bad ? "!" : " ",
           fmin(99, 100 * host_ideal(&g, setting->cores) / r.seconds.median));
    fflush(stdout);
    return bad;
}

typedef struct run { const bench_options *options; FILE *csv; double start; int left, faults; } run;

static double seconds_left(const run *on) { return on->options->seconds - (seconds_now() - on->start); }

/* Of one call by the host at 1 TFLOP/s, half of it in d and z: more than 16 cores take. */
static double host_seconds(const ask *q)
{
    const gpb_call g = call_of(q);
    return host_flops(&g) / (gpb_type_real_bytes(q->type) == sizeof(float) ? 1e12 : 0.5e12);
}

static void ask_contender(run *on, const struct group *group, enum gpb_type type, int64_t n, worker *w,
                          bool is_host)
{
    const worker_setting setting = { .cores = group->cores };
    ask q = { type, n, n, n, group->beta, 0, group->row_major, group->inside, false, group->where,
              room_for(on->options, group) };
    q.once = is_host && host_seconds(&q) > LONG_SECONDS;
    const double share = seconds_left(on) / (on->left > 0 ? on->left-- : 1);
    if (q.once && seconds_left(on) < host_seconds(&q)) {
        printf("%13s", "no time");
        return;
    }
    /* the rest: warming up, writing memory anew, the answer */
    q.seconds = fmax(0, fmin(MAX_SECONDS, 0.6 * share));
    on->faults += ask_one(w, &q, &setting, on->csv);
}

static void all_sizes(run *on, const struct group *group, enum gpb_type type, worker *workers)
{
    printf("%cgemm, %s, %s-major, %s, beta %g%s\n", gpb_type_of(type)->letter, places[group->where],
           group->row_major ? "row" : "column", group->inside ? "ld = 2 rows" : "packed", group->beta,
           group->cores ? ", on 4 cores" : "");
    for (int s = 0; s < SIZES; s++) {
        const int64_t n = sizes[s] < on->options->largest || s ? sizes[s] : on->options->largest;
        const unsigned who = asked(type, group, sizes[s]);
        if (n > on->options->largest || !who) continue;
        printf("%6d", (int)n);
        for (int id = 0; id < CONTENDERS; id++) {
            if (id == GPUBLAS_NEVER) continue;
            if (who & ID(id)) ask_contender(on, group, type, n, &workers[id], id == HOST);
            else printf("%13s", "");
        }
        printf("\n");
    }
}

/* Questions of a type, of which there are at most so many. */
static int questions(enum gpb_type type)
{
    int count = 0;
    for (int i = 0; i < GROUPS; i++)
        for (int s = 0; s < SIZES; s++) count += __builtin_popcount(asked(type, &groups[i], sizes[s]));
    return count;
}

/* All groups of a type. *cores: what the workers that there are have been given. */
static void all_groups(run *on, enum gpb_type type, worker *workers, int *cores)
{
    for (int i = 0; i < GROUPS; i++) {
        if (!is_for_any(type, &groups[i])) continue;
        for (int id = 0; id < CONTENDERS && groups[i].cores != *cores; id++) {
            worker_end(&workers[id]);
            if (id == GPUBLAS_NEVER || (groups[i].cores && ID(id) & RIVALS)) continue;
            workers[id] = worker_start(on->options, "end-to-end", (enum contender_id)id,
                                       (worker_setting){ .cores = groups[i].cores });
        }
        *cores = groups[i].cores;
        all_sizes(on, &groups[i], type, workers);
    }
}

int bench_end_to_end(const bench_options *options)
{
    /* z beside d, because memory is written anew for other real numbers; the longest questions last */
    static const enum gpb_type order[GPB_TYPES] = { GPB_TYPE_s, GPB_TYPE_z, GPB_TYPE_d, GPB_TYPE_c };
    run on = { options, bench_csv(options->csv, columns), seconds_now(), 0, 0 };
    worker workers[CONTENDERS] = { { 0 } };
    int cores = -1;
    printf("n x n x n, operands in host memory: ms, per cent of the ideal; !: wrong. Host BLAS: %s\n%6s",
           options->host_blas, "");
    for (int id = 0; id < CONTENDERS; id++)
        if (id != GPUBLAS_NEVER) printf(" %12.12s", contenders_of(options)[id].name);
    printf("\n");
    for (int t = 0; t < GPB_TYPES; t++)
        if (bench_has_type(options, order[t])) on.left += questions(order[t]);
    for (int t = 0; t < GPB_TYPES; t++)
        if (bench_has_type(options, order[t])) all_groups(&on, order[t], workers, &cores);
    for (int id = 0; id < CONTENDERS; id++) worker_end(&workers[id]);
    if (on.csv) fclose(on.csv);
    printf("%.0f s, %d faults\n", seconds_now() - on.start, on.faults);
    return on.faults != 0;
}

/* In s 40000 x 40000 x 8192. In other types about as many bytes: 28000 x 28000 x 5734 in d and c, 20000 x
   20000 x 4096 in z. */
static ask beyond_memory(const bench_options *options, enum gpb_type type)
{
    const double of_s = (double)gpb_type_bytes(GPB_TYPE_s) / (double)gpb_type_bytes(type);
    const int64_t most = (int64_t)(40 * sqrt(of_s)) * 1000;
    const int64_t side = options->largest < most ? options->largest : most, k = side / 5 * 1024 / 1000;
    ask q = { type, side, side, k > 0 ? k : 1, 0, 1.5, false, false, false, FRESH, { 0, 0 } };
    const gpb_call g = call_of(&q);
    q.room = room_of(&g);
    return q;
}

/* 4 GiB where C takes 6.4e9 bytes, or as much less as C is less. */
static int mebibytes_for(const ask *q)
{
    const double c = (double)gpb_type_bytes(q->type) * (double)q->m * (double)q->n;
    return (int)(fmax(4294967296.0 * c / 6.4e9, 2 << 20) / (1 << 20));
}

/* One contender, in a process that has all of the memory for nine gigabytes of operands. */
static void ask_beyond(run *on, enum gpb_type type, enum contender_id id)
{
    ask q = beyond_memory(on->options, type);
    const gpb_call g = call_of(&q);
    char memory[32];
    snprintf(memory, sizeof memory, "%dM", mebibytes_for(&q));
    const worker_setting setting = { .memory = contenders_of(on->options)[id].offload ? memory : NULL };
    worker w = worker_start(on->options, "end-to-end", id, setting);
    q.once = id == HOST && host_seconds(&q) > LONG_SECONDS;
    printf("%cgemm %5d x %5d x %4d, device memory %5s (ideal %.3f ms) %-14s", gpb_type_of(type)->letter,
           (int)q.m, (int)q.n, (int)q.k, setting.memory ? memory : "all", 1e3 * host_ideal(&g, 0),
           w.who->name);
    on->faults += ask_one(&w, &q, &setting, on->csv);
    printf("   after %.0f s\n", seconds_now() - on->start);
    worker_end(&w);
}

/* One after the other. Ours come first in all types, because a rival's call has no bound that is known; the
   host BLAS, which runs once (22 s at 1.2 TFLOP/s), last. */
int bench_out_of_core(const bench_options *options)
{
    static const enum contender_id who[] = { GPUBLAS_ALWAYS, GPUBLAS_AUTO, NVBLAS_TUNED, COPY_CUBLAS, NVBLAS,
                                             HOST };
    run on = { options, bench_csv(options->csv, columns), seconds_now(), 0, 0 };
    printf("Operands beyond the device memory: ms, per cent of the ideal; !: wrong\n");
    for (size_t i = 0; i < sizeof who / sizeof *who; i++)
        for (enum gpb_type type = 0; type < GPB_TYPES; type++) {
            const bool has_time = i < 2 || seconds_left(&on) > 0;
            if (has_time && bench_has_type(options, type)) ask_beyond(&on, type, who[i]);
        }
    if (on.csv) fclose(on.csv);
    printf("%.0f s, %d faults\n", seconds_now() - on.start, on.faults);
    return on.faults != 0;
}
