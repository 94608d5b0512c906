/* SPDX-License-Identifier: MIT */
/* --never-slower: random shapes, m, n and k log-uniform in 1 .. 8192, by the library's own choice, by the
   host BLAS alone, and on the GPU whatever the shape. Each of the three has a process for each type and
   number of host threads. All go through the shapes in the same order, pass by pass and by turns. So what the
   library learns on its way is in its times, and its first pass is reported by itself. */
#include "tests/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/worker.h"

enum { MAX_SHAPES = 1000, DEFAULT_SHAPES = 300, LARGEST = 8192, MAX_PASSES = 15, IN_A_ROW = 5, JUDGED = 6,
       MAX_CALLS = MAX_PASSES * IN_A_ROW };
#define SHORT 1e-3               /* seconds: shorter calls go several in a row, of which each counts */
#define GRACE 2e-6               /* seconds that the library may always take */
#define LASTING 50e-6            /* seconds of a call to which they mean nothing */

typedef struct ask {
    enum gpb_type type;
    int pass, shape;
    double each;
} ask; /* shape -1: go through them all; else: tell about that one */
typedef struct answer { double first, worst, on_gpu; spread seconds; } answer;

/* ---- the shapes: the same in all processes, and for all types ---- */

static double uniform(void) { return (double)random() / 2147483648.0; }

/* Of what is transposed, half is conjugated if that is another thing. */
static char draw_trans(enum gpb_type type)
{
    const double x = uniform();
    if (x < 0.5) return 'N';
    return x < 0.75 || gpb_type_of(type)->kind != GPB_TYPE_COMPLEX ? 'T' : 'C';
}

static gpb_call draw(enum gpb_type type, int largest)
{
    static const double alphas[] = { 1, 1, 1, -1, 0.5, 2 }, betas[] = { 0, 0, 0, 1, 1, 0.5 };
    int64_t size[3];
    for (int x = 0; x < 3; x++) size[x] = (int64_t)pow(largest + 1, uniform());
    gpb_call g = host_call(size[0], size[1], size[2], betas[random() % 6]);
    g.type = type;
    g.alpha = alphas[random() % 6];
    g.x[GPB_A].trans = draw_trans(type);
    g.x[GPB_B].trans = draw_trans(type);
    int64_t *ld[3] = { &g.x[GPB_A].ld, &g.x[GPB_B].ld, &g.x[GPB_C].ld };
    const int64_t rows[3] = { gpb_call_rows(&g, GPB_A), gpb_call_rows(&g, GPB_B), g.m };
    for (int x = 0; x < 3; x++)      /* half are packed, the others have up to a fifth more rows */
        *ld[x] = rows[x] + (uniform() < 0.5 ? 0 : (int64_t)(uniform() * (1 + (double)rows[x] / 5)));
    return g;
}

static int largest_of(const bench_options *options)
{
    return options->largest < LARGEST ? options->largest : LARGEST;
}

static int shapes_of(const bench_options *options, enum gpb_type type, gpb_call *shapes)
{
    const int wanted = options->shapes ? options->shapes : DEFAULT_SHAPES;
    const int count = wanted < MAX_SHAPES ? wanted : MAX_SHAPES;
    srandom((unsigned)options->seed);
    for (int i = 0; i < count; i++) shapes[i] = draw(type, largest_of(options));
    return count;
}

/* ---- the worker ---- */

static struct history {
    float seconds[MAX_CALLS];
    double first, spent, worst;
    int count;
    uint64_t calls, gpu_calls;
} history[MAX_SHAPES];

/* Twice whatever it takes, and then as long as it has not had its share of the time. */
static void visit(struct history *h, memory *from, gpb_call g, const ask *q)
{
    check drawn;
    if (q->pass > 1 && h->spent > q->each) return;
    memory_operands(from, &g, false);
    const uint64_t calls = contender_calls(), gpu_calls = contender_gpu_calls();
    double seconds = 0;
    for (int x = 0; x < IN_A_ROW && h->count < MAX_CALLS && (x == 0 || seconds < SHORT); x++) {
        if (q->pass == 1 && x == 0) check_draw(&drawn, &g, JUDGED);
        seconds = contender_timed(&g);
        if (q->pass == 1 && x == 0) h->worst = check_worst(&drawn, &g);
        if (q->pass == 0 && x == 0) h->first = seconds;
        else h->seconds[h->count++] = (float)seconds;
        h->spent += seconds;
    }
    h->calls += contender_calls() - calls;
    h->gpu_calls += contender_gpu_calls() - gpu_calls;
}

static void serve(const bench_options *options, const void *asked, void *answered)
{
    static gpb_call shapes[MAX_SHAPES];
    static memory from;
    static int count;
    const ask *q = asked;
    answer *r = answered;
    if (!from.in.at) {
        const int64_t n = largest_of(options);
        gpb_call most = host_call(n, n, n, 0);
        most.type = q->type;
        most.x[GPB_A].ld = most.x[GPB_B].ld = most.x[GPB_C].ld = n + n / 5 + 2;
        count = shapes_of(options, q->type, shapes);
        from = memory_make(room_of(&most), false);
    }
    for (int i = 0; q->shape < 0 && i < count; i++) visit(&history[i], &from, shapes[i], q);
    if (q->shape < 0) return;
    double seconds[MAX_CALLS];
    struct history *h = &history[q->shape];
    for (int x = 0; x < h->count; x++) seconds[x] = (double)h->seconds[x];
    *r = (answer){ h->first, h->worst, h->calls ? (double)h->gpu_calls / (double)h->calls : 0,
                   spread_of(seconds, h->count) };
}

const worker_mode never_slower_mode = { "never-slower", sizeof(ask), sizeof(answer), serve };

/* ---- the parent ---- */

enum { AUTO, ALONE, ALWAYS, WHO };
static const enum contender_id who[WHO] = { GPUBLAS_AUTO, HOST, GPUBLAS_ALWAYS };

/* What came of one shape: medians (`first`: the first pass) and their ratios. */
typedef struct regret {
    const gpb_call *g;
    double best, host, graced;   /* times min(host, GPU) + 2 us; the host; the host + 2 us */
    double first_best, first_graced;
    bool lasting;                /* min(host, GPU) is over LASTING */
} regret;

static int most_over_host(const void *a, const void *b)
{
    double x = ((const regret *)a)->graced, y = ((const regret *)b)->graced;
    return (x < y) - (x > y);
}

static void write_row(FILE *csv, worker_setting setting, const gpb_call *g, const answer *r,
                      const regret *over)
{
    if (!csv) return;
    fprintf(csv, "%d,%d,%d,%d,%d,%c,%c,%d,%d,%d,%g,%g,", setting.threads, setting.cores, (int)g->m, (int)g->n,
            (int)g->k, g->x[GPB_A].trans, g->x[GPB_B].trans, (int)g->x[GPB_A].ld, (int)g->x[GPB_B].ld,
            (int)g->x[GPB_C].ld, (double)g->alpha, (double)g->beta);
    for (int w = 0; w < WHO; w++)
        fprintf(csv, "%d,%.3f,%.3f,%.3f,%.3f,%.4f,", r[w].seconds.count, 1e6 * r[w].first,
                1e6 * r[w].seconds.median, 1e6 * r[w].seconds.least, 1e6 * r[w].seconds.most, r[w].worst);
    fprintf(csv, "%.3f,%.4f,%.4f,%.4f,%.4f,%.4f,%c\n", r[AUTO].on_gpu, over->best, over->host, over->graced,
            over->first_best, over->first_graced, gpb_type_of(g->type)->letter);
}

static void summary(worker_setting setting, regret *all, int count, int passes)
{
    double logs = 0, first_logs = 0, first_worst = 0, lasting_logs = 0;
    int above = 0, graced = 0, lasting = 0;
    for (int i = 0; i < count; i++) {
        logs += log(all[i].best);
        first_logs += log(all[i].first_best);
        lasting_logs += all[i].lasting ? log(all[i].best) : 0;
        lasting += all[i].lasting;
        first_worst = fmax(first_worst, all[i].first_graced);
        above += all[i].host > 1.25;
        graced += all[i].graced > 1.25;
    }
    qsort(all, (size_t)count, sizeof *all, most_over_host);
    printf("%cgemm, %d host threads%s, %d shapes, %d passes: %.4f of min(host, GPU) + 2 us (geometric "
           "mean; first pass %.4f; %.4f of the %d over 50 us), at worst %.3f of the host + 2 us (first pass "
           "%.2f); %d above 1.25 of the host, %d of the host + 2 us\n",
           gpb_type_of(all->g->type)->letter, setting.threads, setting.cores ? ", as many cores" : "", count,
           passes, exp(logs / count), exp(first_logs / count), lasting ? exp(lasting_logs / lasting) : 1,
           lasting, all[0].graced, first_worst, above, graced);
    for (int i = 0; i < 10 && i < count; i++)
        printf("   %6.3f of the host + 2 us, %6.3f of the host, %6.3f of the best: %c%c %d x %d x %d\n",
               all[i].graced, all[i].host, all[i].best, all[i].g->x[GPB_A].trans, all[i].g->x[GPB_B].trans,
               (int)all[i].g->m, (int)all[i].g->n, (int)all[i].g->k);
    fflush(stdout);
}

static regret regret_of(const gpb_call *g, const answer *r)
{
    const double auto_s = r[AUTO].seconds.median;
    const double host = r[ALONE].seconds.median;
    const double gpu = r[ALWAYS].seconds.median;
    return (regret){ g,
                     auto_s / (fmin(host, gpu) + GRACE),
                     auto_s / host,
                     auto_s / (host + GRACE),
                     r[AUTO].first / (fmin(r[ALONE].first, r[ALWAYS].first) + GRACE),
                     r[AUTO].first / (r[ALONE].first + GRACE),
                     fmin(host, gpu) > LASTING };
}

/* By turns until the time is up; two passes at least. */
static int go_through(worker *workers, enum gpb_type type, double until, double each)
{
    int pass = 0;
    for (; pass < MAX_PASSES && (pass < 2 || seconds_now() < until); pass++)
        for (int w = 0; w < WHO; w++) {
            const ask q = { type, pass, -1, each };
            answer none;
            worker_settle();
            worker_ask(&workers[(pass + w) % WHO], &q, sizeof q, &none, sizeof none);
        }
    return pass;
}

static int group(const bench_options *options, worker_setting setting, const gpb_call *shapes, int count,
                 double seconds, FILE *csv)
{
    static regret all[MAX_SHAPES];
    worker workers[WHO];
    int faults = 0;
    for (int w = 0; w < WHO; w++) workers[w] = worker_start(options, "never-slower", who[w], setting);
    const enum gpb_type type = shapes->type;
    int passes = go_through(workers, type, seconds_now() + 0.9 * seconds, 4 * seconds / WHO / count);
    for (int i = 0; i < count; i++) {
        answer r[WHO];
        const ask q = { type, 0, i, 0 };
        bool there = true;
        for (int w = 0; w < WHO; w++)
            there = worker_ask(&workers[w], &q, sizeof q, &r[w], sizeof r[w]) && there;
        if (!there) {
            faults++;
            break;
        }
        for (int w = 0; w < WHO; w++) {
            bool bad = !(r[w].worst <= 1) || (w == ALWAYS && r[w].on_gpu < 1);
            faults += bad;
            if (bad)
                printf("%s: %d x %d x %d: WRONG, or not on the GPU\n", workers[w].who->name, (int)shapes[i].m,
                       (int)shapes[i].n, (int)shapes[i].k);
        }
        all[i] = regret_of(&shapes[i], r);
        write_row(csv, setting, &shapes[i], r, &all[i]);
    }
    for (int w = 0; w < WHO; w++) worker_end(&workers[w]);
    if (!faults) summary(setting, all, count, passes);
    return faults;
}

#define COLUMNS_OF(who) \
    who "_calls," who "_first_us," who "_us," who "_least_us," who "_most_us," who "_error_of_bound,"
static const char columns[] = "threads,cores,m,n,k,ta,tb,lda,ldb,ldc,alpha,beta," COLUMNS_OF("auto")
    COLUMNS_OF("host")
        COLUMNS_OF("gpu") "auto_on_gpu,of_best,of_host,of_host_2us,first_of_best,first_of_host_2us,type";

int bench_never_slower(const bench_options *options)
{
    /* The last two: with the affinity of so many cores, from which host BLAS and library take their numbers
       of threads. */
    static const worker_setting settings[] = {
        { .threads = 16 }, { .threads = 4 }, { .threads = 1 },
        { .threads = 4, .cores = 4 }, { .threads = 1, .cores = 1 }
    };
    enum { SETTINGS = sizeof settings / sizeof *settings };
    /* z first: its two passes at least may take more than their share of the time, which the others then
       have less of */
    static const enum gpb_type order[GPB_TYPES] = { GPB_TYPE_z, GPB_TYPE_c, GPB_TYPE_d, GPB_TYPE_s };
    static gpb_call shapes[MAX_SHAPES];
    FILE *csv = bench_csv(options->csv, columns);
    const double start = seconds_now();
    int faults = 0, groups = 0;
    setenv("GPUBLAS_CALIBRATION", "off", 1); /* the first pass knows nothing of this machine */
    for (int t = 0; t < GPB_TYPES; t++) groups += bench_has_type(options, order[t]) ? SETTINGS : 0;
    for (int t = 0; t < GPB_TYPES; t++) {
        if (!bench_has_type(options, order[t])) continue;
        const int count = shapes_of(options, order[t], shapes);
        for (int i = 0; i < SETTINGS; i++, groups--) {
            const double left = options->seconds - (seconds_now() - start);
            faults += group(options, settings[i], shapes, count, fmax(left, 0) / groups, csv);
        }
    }
    if (csv) fclose(csv);
    printf("%.0f s, %d faults\n", seconds_now() - start, faults);
    return faults != 0;
}
