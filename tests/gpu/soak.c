/* SPDX-License-Identifier: MIT */
/* Random GEMMs by sixteen threads at once, through every kind of door, while a second process takes the GPU's
   memory and gives it back (pressure.h). Every answer must be right, and nothing may be lost: no call, no
   memory of the host or the device, and not the GPU, which must compute all that comes afterwards. A and B
   are windows into numbers that all threads read at once, read-only if they are in host memory. C lies
   between canaries. Each operand is in ordinary, pinned or device memory. Linked with -lgpublas.
   GPB_TEST_LARGE=1: sizes for a real GPU.
   Usage: soak SECONDS [SEED]. Exits with 1 if something was wrong, with 77 without a GPU. The last line is
   for a log: seed, seconds, calls, calls on the GPU, failed there, wrong. */
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "include/gpublas.h"
#include "tests/doors.h"
#include "tests/gpu/pressure.h"
#include "tests/gpu/placed.h"

enum { THREADS = 16, CANARIES = 32, HUNG_S = 120, FIRST = 8, AFTERWARDS = 64 };

/* Sizes up to `most` of a class, drawn with its weight. Now and then one thread has a `huge` one, more than
   MEMORY holds. MEMORY holds the smallest panels of every routine, or the host would compute it: SYR2K's take
   2.2 MB, two buffers of 256 x 200 of both matrices for either side and two of 256 x 256. The rest are counts
   of floats. */
static const struct scale {
    int most[4], huge[3];
    const char *memory;
    int64_t budget, numbers, pool, c, c_huge, c_elsewhere;
} scales[] = {
    { { 16, 48, 128, 224 }, { 900, 700, 200 }, "3M", 3 << 20, 1 << 20, 1 << 17, 1 << 17, 1 << 20, 1 << 15 },
    { { 200, 800, 2000, 6000 },
      { 12000, 12000, 3000 },
      "768M",
      768 << 20,
      150000000,
      40000000,
      37000000,
      147000000,
      4 << 20 }
};
static const int weights[] = { 40, 80, 97, 100 };
static const struct scale *scale;

static float *numbers;                   /* the host's, read-only; the others begin with the same */
static operand pools[PLACE_MANAGED];

typedef struct worker {
    int number;
    uint64_t random;
    float *c;                            /* ordinary memory for C, and for looking at any */
    operand elsewhere[PLACE_MANAGED];    /* the same in other places */
    pthread_t thread;
    char what[320];                      /* the call that it is in */
    _Atomic int64_t since;               /* when that began, in seconds; 0: it is done */
    int64_t longest;                     /* that one took, in seconds */
} worker;
static worker workers[THREADS];
static atomic_bool over;
static _Atomic uint64_t calls, wrong;

static int64_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static uint64_t draw(worker *w, uint64_t below) { return gpb_reference_draw(&w->random, below); }

/* ---- one call */

typedef struct task {
    gpb_call call, seen;                 /* as the library gets it, and by addresses that the host can read */
    const gpb_test_door *door;
    enum place at[3];
    const float *before;                 /* what C was, canaries and all. If beta is 0, its blocks hold NaN */
    int64_t count;                       /* floats of C, with CANARIES on both sides */
} task;

static int64_t span(const gpb_call *g, enum gpb_operand x)
{
    return (g->batch - 1) * g->x[x].stride + (gpb_call_cols(g, x) - 1) * g->x[x].ld + gpb_call_rows(g, x);
}

static int64_t draw_ld(worker *w, int64_t least)
{
    static const int more[] = { 0, 0, 0, 1, 3, 16, 61 };
    return least + more[draw(w, sizeof more / sizeof *more)];
}

/* A window of so many floats into the numbers, or into a pool that holds as many. */
static enum place draw_window(worker *w, int64_t count, const void **address, const void **seen)
{
    static const enum place places[] = { PLACE_PINNED, PLACE_DEVICE };
    const uint64_t kind = draw(w, 12);
    const enum place place = kind < 2 && count <= scale->pool ? places[kind] : PLACE_PAGEABLE;
    const int64_t room = place == PLACE_PAGEABLE ? scale->numbers : scale->pool;
    const int64_t at = (int64_t)draw(w, (uint64_t)(room - count + 1));
    *seen = numbers + at;
    *address = place == PLACE_PAGEABLE ? numbers + at : (float *)pools[place].address + at;
    return place;
}

static void draw_sizes(worker *w, int64_t size[3], bool huge)
{
    const int kind = (int)draw(w, 100);
    const int of = kind < weights[0] ? 0 : kind < weights[1] ? 1 : kind < weights[2] ? 2 : 3;
    for (int i = 0; i < 3; i++)
        size[i] = huge ? scale->huge[i] : 1 + (int64_t)draw(w, draw(w, 8) ? (uint64_t)scale->most[of] : 8);
}

static gpb_call draw_product(worker *w, const gpb_test_door *door, bool huge)
{
    static const float alphas[] = { 1, 1, -1, 0.5f, 2 }, betas[] = { 0, 1, 0.5f };
    int64_t size[3];
    draw_sizes(w, size, huge);
    gpb_call g = {
        .symbol = door->name, .type = GPB_TYPE_s, .m = size[0], .n = size[1], .k = size[2], .batch = 1
    };
    if (gpb_test_row_of(door->routine)->members != GPB_MEMBERS_ONE && !huge)
        g.batch = 1 + (int64_t)draw(w, 5);
    g.alpha = (double)alphas[draw(w, 5)];
    g.beta = (double)betas[draw(w, 3)];
    g.x[GPB_A].trans = "NTC"[draw(w, 3)];
    g.x[GPB_B].trans = "NTC"[draw(w, 3)];
    g.x[GPB_C].trans = 'N';
    g.x[GPB_C].uplo = 'G';
    if (gpb_test_has_triangle(door->routine)) {
        g.x[GPB_C].uplo = "UL"[draw(w, 2)];
        g.m = g.n;
    }
    gpb_test_settle(door->routine, &g);
    if (gpb_test_sided(door->routine))
        gpb_test_put_side(door->routine, &g, "LR"[draw(w, 2)], "UL"[draw(w, 2)]);
    return g;
}

static void draw_layout(worker *w, gpb_call *g)
{
    for (enum gpb_operand x = GPB_A; x < GPB_OPERANDS; x++) {
        const int64_t gap = x == GPB_A ? 0 : x == GPB_B ? 3 : (int64_t)draw(w, 9);
        g->x[x].ld = draw_ld(w, gpb_call_rows(g, x));
        g->x[x].stride = x == GPB_C || draw(w, 4) ? g->x[x].ld * gpb_call_cols(g, x) + gap : 0;
    }
}

/* False: larger than the memory that is there for it. */
static bool draw_call(worker *w, task *t, bool huge)
{
    t->door = &gpb_test_doors[GPB_TYPE_s][draw(w, GPB_TEST_DOORS)];
    gpb_call *g = &t->call;
    *g = draw_product(w, t->door, huge);
    draw_layout(w, g);
    const int64_t of_a = span(g, GPB_A), of_b = span(g, GPB_B);
    t->count = span(g, GPB_C) + 2 * CANARIES;
    if (of_a > scale->numbers || of_b > scale->numbers) return false;
    if (t->count + 16 > (huge ? scale->c_huge : scale->c)) return false;
    const void *a, *b;
    t->at[0] = draw_window(w, of_a, &g->x[GPB_A].base, &a);
    t->at[1] = draw_window(w, of_b, &g->x[GPB_B].base, &b);
    t->seen = *g;
    t->seen.x[GPB_A].base = a;
    t->seen.x[GPB_B].base = b;
    if (gpb_test_one_matrix(t->door->routine)) t->at[1] = t->at[0];
    gpb_test_settle(t->door->routine, g);
    gpb_test_settle(t->door->routine, &t->seen);
    return true;
}

/* C in its place, canaries round it. */
static void place_c(worker *w, task *t)
{
    const int64_t apart = (int64_t)draw(w, 4);       /* misaligned */
    const uint64_t kind = draw(w, 8);
    t->at[2] = t->count + apart <= scale->c_elsewhere && kind < 2 ? (kind ? PLACE_DEVICE : PLACE_PINNED)
                                                                  : PLACE_PAGEABLE;
    float *at = (t->at[2] == PLACE_PINNED ? (float *)w->elsewhere[PLACE_PINNED].address : w->c) + apart;
    t->before = numbers + draw(w, (uint64_t)(scale->numbers - t->count + 1));
    memcpy(at, t->before, (size_t)t->count * sizeof *at);
    gpb_call *g = &t->seen;
    g->x[GPB_C].base = at + CANARIES;
    for (int64_t l = 0; l < g->batch && g->beta == 0; l++)
        for (int64_t j = 0; j < g->n; j++) {
            const int64_t first = g->x[GPB_C].uplo == 'L' ? j : 0,
                rows = (g->x[GPB_C].uplo == 'U' ? j + 1 : g->m) - first;
            float *column = (float *)gpb_call_member(g, GPB_C, l) + j * g->x[GPB_C].ld;
            gpb_poison(GPB_TYPE_s, column + first, rows);
        }
    t->call.x[GPB_C].base = g->x[GPB_C].base;
    if (t->at[2] == PLACE_DEVICE) {
        operand view = { .place = PLACE_DEVICE,
                         .base = (float *)w->elsewhere[PLACE_DEVICE].address + apart,
                         .image = at,
                         .count = t->count };
        operand_put(&view);
        t->call.x[GPB_C].base = (float *)view.base + CANARIES;
    }
}

/* Everything around C is looked at, all of C for what cannot be, and some of it is compared with the
   reference. */
static double judge(worker *w, task *t)
{
    enum { PRODUCTS = 4000000, LEAST = 64 };
    const gpb_call *g = &t->seen;
    float *at = (float *)g->x[GPB_C].base - CANARIES;
    if (t->at[2] == PLACE_DEVICE)
        operand_get(&(operand){ .place = PLACE_DEVICE, .base = (float *)t->call.x[GPB_C].base - CANARIES,
                                .count = t->count }, at);
    if (memcmp(at, t->before, CANARIES * sizeof *at)) return INFINITY;
    const int64_t columns = g->n * g->batch;
    const int64_t wanted = columns > LEAST ? columns : LEAST;
    const int64_t affordable = LEAST + PRODUCTS / g->k;
    return gpb_test_row_of(t->door->routine)
        ->sample(GPB_MATH_FMA, g, t->before + CANARIES, (size_t)(t->count - CANARIES) * sizeof *at,
                 wanted < affordable ? wanted : affordable, &w->random);
}

static void describe(worker *w, const task *t)
{
    const gpb_call *g = &t->call;
    snprintf(
        w->what, sizeof w->what,
        "%s uplo=%c %c%c m=%lld n=%lld k=%lld lda=%lld ldb=%lld ldc=%lld alpha=%g beta=%g batch=%lld strides "
        "%lld %lld %lld, A %s B %s C %s",
        g->symbol, g->x[GPB_C].uplo, g->x[GPB_A].trans, g->x[GPB_B].trans, (long long)g->m, (long long)g->n,
        (long long)g->k, (long long)g->x[GPB_A].ld, (long long)g->x[GPB_B].ld, (long long)g->x[GPB_C].ld,
        (double)g->alpha, (double)g->beta, (long long)g->batch, (long long)g->x[GPB_A].stride,
        (long long)g->x[GPB_B].stride, (long long)g->x[GPB_C].stride, place_names[t->at[0]],
        place_names[t->at[1]], place_names[t->at[2]]);
}

/* Every other thread has a context of its own current while it calls. */
static void one(worker *w)
{
    task t;
    const bool huge = w->number == 0 && draw(w, 50) == 0, current = w->number % 2;
    while (!draw_call(w, &t, huge)) { }
    gpu_make_current(true);
    place_c(w, &t);
    if (!current) gpu_make_current(false);
    describe(w, &t);
    const void *context = gpu_current();
    const int64_t begin = now_s();
    w->since = begin;
    t.door->call(&t.call);
    w->since = 0;
    if (now_s() - begin > w->longest) w->longest = now_s() - begin;
    const bool kept = context == gpu_current();
    if (!current) gpu_make_current(true);
    const double worst = judge(w, &t);
    gpu_make_current(false);
    calls++;
    if (worst <= 1 && kept) return;
    wrong++;
    printf("WRONG, thread %d: %s: %g of the bound%s\n", w->number, w->what, worst,
           kept ? "" : "; the current context is another");
}

static void *work(void *of)
{
    worker *w = of;
    while (!over && wrong < 20) one(w);
    return of;
}

/* ---- the whole */

static float *memory(int64_t count)
{
    float *map = mmap(NULL, (size_t)count * sizeof *map, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
    if (map != MAP_FAILED) return map;
    perror("mmap");
    exit(1);
}

/* All memory of the test's own is touched here. From now on only the library makes this process grow. */
static void set_up(uint64_t seed)
{
    numbers = memory(scale->numbers);
    gpb_reference_fill(numbers, (size_t)scale->numbers, seed);
    mprotect(numbers, (size_t)scale->numbers * sizeof *numbers, PROT_READ);
    for (enum place p = PLACE_PINNED; p < PLACE_MANAGED; p++) {
        pools[p] = operand_make(p, GPB_TYPE_s, scale->pool, 0);
        memcpy(pools[p].image, numbers, (size_t)scale->pool * sizeof *numbers);
        operand_put(&pools[p]);
    }
    for (int i = 0; i < THREADS; i++) {
        worker *w = &workers[i];
        const int64_t count = i ? scale->c : scale->c_huge;
        *w = (worker){ .number = i, .random = seed * THREADS + (uint64_t)i, .c = memory(count) };
        memset(w->c, 0, (size_t)count * sizeof *w->c);
        for (enum place p = PLACE_PINNED; p < PLACE_MANAGED; p++)
            w->elsewhere[p] = operand_make(p, GPB_TYPE_s, scale->c_elsewhere, 0);
    }
}

static gpublas_stats_t stats(void)
{
    gpublas_stats_t now;
    if (gpublas_stats(&now, sizeof now)) exit(1);
    return now;
}

static int64_t resident_mib(void)
{
    long pages[2] = { 0 };
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &pages[0], &pages[1]) != 2) exit(1);
    fclose(file);
    return (int64_t)pages[1] * sysconf(_SC_PAGESIZE) >> 20;
}

/* A call that does not end is the worst of answers. */
static void watch(void)
{
    for (int i = 0; i < THREADS; i++) {
        const int64_t since = workers[i].since, now = now_s();
        if (since == 0 || now - since < HUNG_S) continue;
        printf("HUNG, more than %d s\n", HUNG_S);
        for (int j = 0; j < THREADS; j++) {
            const int64_t its = workers[j].since;
            printf("  thread %d: %s %lld s: %s\n", j, its ? "in" : "after", (long long)(its ? now - its : 0),
                   workers[j].what);
        }
        fflush(stdout);
        _exit(1);
    }
}

/* Threads until that second, or until too much is wrong. Returns by how many MiB the process has grown since
   two fifths of the time: on a busy machine it still grew by 76 MiB after a fifth of eight seconds. */
static int64_t soak(int64_t begin, int64_t end)
{
    int64_t early = 0, told = begin;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) exit(1);
    while (now_s() < end && wrong < 20) {
        usleep(100000);
        watch();
        if (!early && 5 * (now_s() - begin) >= 2 * (end - begin)) early = resident_mib();
        if (now_s() < told + 60) continue;
        told = now_s();
        const gpublas_stats_t s = stats();
        printf("%5lld s: calls %llu, on the GPU %llu, failed there %llu, wrong %llu, resident %lld MiB\n",
               (long long)(told - begin), (unsigned long long)s.calls, (unsigned long long)s.gpu_calls,
               (unsigned long long)s.failed_calls, (unsigned long long)wrong, (long long)resident_mib());
    }
    const int64_t late = resident_mib();
    over = true;
    for (int i = 0; i < THREADS; i++)
        for (struct timespec soon = { 0, 0 }; pthread_timedjoin_np(workers[i].thread, NULL, &soon);
             soon.tv_sec++) {
            watch();
            clock_gettime(CLOCK_REALTIME, &soon);
        }
    return early ? late - early : 0;
}

/* Bytes of device memory, beyond what the library may keep, that are gone since `before` bytes were free. It
   waits for a while, because a process that has ended may still be on its way out. */
static int64_t lost(size_t before)
{
    size_t total;
    int64_t gone = INT64_MAX;
    for (int i = 0; i < 50 && gone > 0; i++) {
        if (i) usleep(100000);
        gone = (int64_t)before - (int64_t)device_free(&total) - scale->budget - (int64_t)total / 64;
    }
    return gone;
}

static int failures;
__attribute__((format(printf, 2, 3))) static void expect(bool good, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("%s ", good ? "ok   " : "FAIL ");
    vprintf(format, list);
    printf("\n");
    va_end(list);
    failures += !good;
}

/* Calls of one thread when the pressure is over: how many of them were on the GPU. A GPU that is lost is seen
   soon. */
static int call_again(void)
{
    int again = 0;
    for (int i = 0; i < AFTERWARDS && i < again + FIRST; i++) {
        const int64_t before = gpu_calls();
        one(&workers[0]);
        if (gpu_calls() > before) again++;
        else printf("not on the GPU: %s\n", workers[0].what);
    }
    return again;
}

static void report(const gpublas_stats_t *s, const char *limit, uint64_t seed, int64_t seconds)
{
    int64_t longest = 0;
    for (int i = 0; i < THREADS; i++)
        if (workers[i].longest > longest) longest = workers[i].longest;
    printf("longest call %lld s\n", (long long)longest);
    printf("soak %s %llu: %d threads, %lld s: calls %llu, on the GPU %llu (%.0f GFLOP), by the host %llu, "
           "begun on "
           "the GPU and finished by the host %llu\n",
           limit, (unsigned long long)seed, THREADS, (long long)seconds, (unsigned long long)s->calls,
           (unsigned long long)s->gpu_calls, 1e-9 * s->gpu_flops,
           (unsigned long long)(s->host_calls - s->failed_calls), (unsigned long long)s->failed_calls);
    expect(s->calls == calls && s->gpu_calls + s->host_calls == s->calls, "every call counted once");
}

/* The soak itself, and what is left of it afterwards. */
static gpublas_stats_t try_all(int64_t begin, int64_t end, const char *limit, uint64_t seed)
{
    for (int i = 0; i < FIRST; i++) one(&workers[0]);
    const bool started = gpu_calls() > 0;
    size_t total;
    const size_t before = device_free(&total);
    pressure_begin();
    const int64_t grown = soak(begin, end), max_growth = 64 + (scale->c >> 18);
    const bool pressed = pressure_end();
    const gpublas_stats_t s = stats();
    report(&s, limit, seed, now_s() - begin);
    const int again = call_again();
    const int64_t gone = lost(before);
    expect(started && s.gpu_calls > FIRST, "calls on the GPU");
    expect(wrong == 0, "%llu of %llu wrong", (unsigned long long)wrong, (unsigned long long)calls);
    expect(again == AFTERWARDS, "%d of %d calls afterwards on the GPU", again, AFTERWARDS);
    expect(pressed, "device memory was held and freed all along");
    expect(!pressure_is_fake() || (s.failed_calls > 0 && s.host_calls > s.failed_calls),
           "some calls failed, for want of memory or later");
    expect(grown <= max_growth, "the process grew by %lld MiB since two fifths of the time (allowed: %lld)",
           (long long)grown, (long long)max_growth);
    expect(gone <= 0, "no device memory lost (beyond what may be kept: %lld bytes)", (long long)gone);
    return s;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && strcmp(argv[1], PRESSURE_ARGUMENT) == 0) return pressure_process();
    if (argc < 2 || atoi(argv[1]) <= 0) return 2;
    const int64_t begin = now_s(), end = begin + atoi(argv[1]);
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
    scale = &scales[getenv("GPB_TEST_LARGE") != NULL];
    pressure_start();
    if (!gpu_open()) return 77;
    set_option("MEMORY", scale->memory);
    set_option("OFFLOAD", "always");
    set_up(seed);
    const gpublas_stats_t s = try_all(begin, end, argv[1], seed);
    printf("log %llu,%d,%llu,%llu,%llu,%llu\n", (unsigned long long)seed, atoi(argv[1]),
           (unsigned long long)calls, (unsigned long long)s.gpu_calls, (unsigned long long)s.failed_calls,
           (unsigned long long)(failures && !wrong ? 1 : wrong));
    return failures > 0;
}
