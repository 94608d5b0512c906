/* SPDX-License-Identifier: MIT */
/* Every driver call failing, at every occurrence, once and from then on, with errors that pass and errors that stay; in and out of core,
   every form of kernel, three betas, operands in host and device memory. Each case is a child that makes three calls; preloaded, on the
   software libcuda (fakecuda_fail). Fine: C of each call, the canaries round it, one warning at most of a kind, and no call on the GPU
   after a sticky error. Usage: inject SEED OF [FOLDER]: one case in OF, picked by SEED, its log in FOLDER; inject CONFIGURATION RULE:
   that one, aloud, as printed. Exits with 1 if one was wrong. */
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/gpublas.h"
#include "tests/programs/matrix.h"

/* libcuda's own names, so that no CUDA header is needed; and the software one's control. */
static struct {
    int (*init)(unsigned), (*retain)(void **, int), (*push)(void *), (*alloc)(unsigned long long *, size_t);
    int (*up)(unsigned long long, const void *, size_t), (*down)(void *, unsigned long long, size_t);
    void (*fail)(const char *), (*pause)(int);
} cuda;
static int (*stats)(gpublas_stats_t *, size_t);
static bool aloud;

static const struct shape { const char *name, *trans; int m, n, k; const char *option, *value; } shapes[] = {
    { "in core", "NN", 100, 90, 80, "GPUBLAS_MEMORY", "" },           { "transposed", "TN", 70, 110, 60, "GPUBLAS_MEMORY", "" },
    { "panels", "NT", 560, 270, 530, "GPUBLAS_MEMORY", "1280K" },     { "FP16 slices", "NN", 140, 130, 96, "GPUBLAS_KERNEL", "fp16x3" },
    { "cut k", "TT", 60, 50, 200, "GPUBLAS_SPLITS", "3" },            { "packed", "NN", 90, 70, 50, "GPUBLAS_KERNEL", "padded" },
    { "k shared out", "TN", 20, 9, 33000, "GPUBLAS_KERNEL", "ffma" } };
static const float betas[] = { 0, 1, 0.5f };
static const struct place { const char *name; bool a, b, c; } places[] = {
    { "all in host memory", false, false, false }, { "C on the GPU", false, false, true }, { "A on the GPU", true, false, false },
    { "all on the GPU", true, true, true } };
static const char *const codes[] = { "2", "209", "200", "719", "46", "999", "999!" };
enum { SHAPES = sizeof shapes / sizeof *shapes, BETAS = 3, PLACES = 4, CODES = sizeof codes / sizeof *codes, CALLS = 3, PAD = 3,
    FUNCTIONS = 48 };

typedef struct occurrences { char function[40]; int count; } occurrences;

/* ---- in the child */

typedef struct operand {
    int rows, cols;
    float *host;                     /* rows + PAD a column, what the call gets or what is to go up */
    unsigned long long device;
} operand;

static operand make(int rows, int cols, bool up, int seed)
{
    operand x = { .rows = rows, .cols = cols, .host = malloc((size_t)(rows + PAD) * (size_t)cols * sizeof(float)) };
    for (int i = 0; i < (rows + PAD) * cols; i++) x.host[i] = (float)(2 * ((i * 7 + i / 13 * 5 + seed) % 5 - 2));
    const size_t bytes = (size_t)(rows + PAD) * (size_t)cols * sizeof(float);
    if (up && (cuda.alloc(&x.device, bytes) || cuda.up(x.device, x.host, bytes))) _exit(90);
    return x;
}

static float *where(const operand *x) { return x->device ? (float *)(uintptr_t)x->device : x->host; }
static float at(const operand *x, bool transposed, int i, int j) { return transposed ? x->host[j + i * (x->rows + PAD)]
    : x->host[i + j * (x->rows + PAD)]; }

/* Is C right? Of a large one, some elements are looked at, and all canaries. */
static bool is_right(const struct shape *s, float beta, const operand *a, const operand *b, const operand *c)
{
    const int step = s->m * s->n * s->k > 2000000 ? 17 : 1;
    const size_t count = (size_t)(c->rows + PAD) * (size_t)c->cols;
    float *now = c->host;
    if (c->device) {
        now = malloc(count * sizeof *now);
        if (!now || cuda.down(now, c->device, count * sizeof *now)) return true;      /* gone with its context: there is nothing to judge */
    }
    const operand again = make(c->rows, c->cols, false, 3), *old = &again;
    for (int j = 0; j < c->cols; j++)
        for (int i = 0; i < c->rows + PAD; i++) {
            if (i < c->rows && (i + j) % step) continue;
            double right = (double)old->host[i + j * (c->rows + PAD)];
            if (i < c->rows) {
                right = beta == 0 ? 0 : (double)beta * right;
                for (int p = 0; p < s->k; p++) right += (double)at(a, s->trans[0] == 'T', i, p) * (double)at(b, s->trans[1] == 'T', p, j);
            }
            if (now[i + j * (c->rows + PAD)] != (float)right) {
                if (aloud) printf("  C(%d,%d) is %g, not %g\n", i, j, (double)now[i + j * (c->rows + PAD)], right);
                return false;
            }
        }
    return true;
}

static void open_driver(void)
{
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW), *context;
    if (!libcuda || !(*(void **)&cuda.fail = dlsym(libcuda, "fakecuda_fail"))) _exit(91);
    *(void **)&cuda.pause = dlsym(libcuda, "fakecuda_pause");
    *(void **)&cuda.init = dlsym(libcuda, "cuInit"), *(void **)&cuda.retain = dlsym(libcuda, "cuDevicePrimaryCtxRetain");
    *(void **)&cuda.push = dlsym(libcuda, "cuCtxPushCurrent_v2"), *(void **)&cuda.alloc = dlsym(libcuda, "cuMemAlloc_v2");
    *(void **)&cuda.up = dlsym(libcuda, "cuMemcpyHtoD_v2"), *(void **)&cuda.down = dlsym(libcuda, "cuMemcpyDtoH_v2");
    cuda.pause(1);
    if (cuda.init(0) || cuda.retain(&context, 0) || cuda.push(context)) _exit(92);
}

static uint64_t gpu_calls(void)
{
    gpublas_stats_t now = { 0 };
    stats(&now, sizeof now);
    return now.gpu_calls;
}

/* Exits with 0, 1 (wrong), 2 (wrong, with operands on the GPU: a warning must say so), 3 (the GPU used after a sticky error). */
static _Noreturn void child(const struct shape *s, float beta, const struct place *place, const char *rule)
{
    const float one = 1;
    int worst = 0;
    bool lost = false;
    if (*s->value) setenv(s->option, s->value, 1);
    *(void **)&stats = dlsym(RTLD_DEFAULT, "gpublas_stats");
    if (!stats) _exit(93);
    open_driver();
    cuda.fail(rule);
    for (int call = 0; call < CALLS; call++) {
        const bool ta = s->trans[0] == 'T', tb = s->trans[1] == 'T';
        operand a = make(ta ? s->k : s->m, ta ? s->m : s->k, place->a && !lost, 1);
        operand b = make(tb ? s->n : s->k, tb ? s->k : s->n, place->b && !lost, 2), c = make(s->m, s->n, place->c && !lost, 3);
        const int lda = a.rows + PAD, ldb = b.rows + PAD, ldc = c.rows + PAD;
        const uint64_t before = gpu_calls();
        cuda.pause(0);
        sgemm_(&s->trans[0], &s->trans[1], &s->m, &s->n, &s->k, &one, where(&a), &lda, where(&b), &ldb, &beta, where(&c), &ldc);
        cuda.pause(1);
        if (lost && gpu_calls() != before) worst = 3;
        if (!is_right(s, beta, &a, &b, &c)) worst = most(worst, a.device || b.device || c.device ? 2 : 1);
        unsigned long long probe;
        lost = lost || cuda.alloc(&probe, 16);      /* memory is plenty: only a lost context refuses */
    }
    exit(worst);
}

/* ---- cases: numbers made of a configuration, a driver function, an occurrence, a code, once or from then on */

typedef struct plan { occurrences of[FUNCTIONS]; int functions; } plan;

static char folder[256] = ".";

/* Runs a child; returns its status, its stderr in text. */
static int run(int configuration, const char *rule, const char *log, char *text, size_t room)
{
    int pipes[2], status = 0;
    size_t length = 0;
    fflush(NULL);
    if (pipe(pipes)) abort();
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        dup2(pipes[1], 2), close(pipes[0]);
        if (log) setenv("FAKECUDA_LOG", log, 1);
        child(&shapes[configuration / BETAS / PLACES], betas[configuration / PLACES % BETAS], &places[configuration % PLACES], rule);
    }
    close(pipes[1]);
    for (ssize_t more; length + 1 < room && (more = read(pipes[0], text + length, room - 1 - length)) > 0;) length += (size_t)more;
    text[length] = 0;
    close(pipes[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid) abort();
    return status;
}

/* The driver calls of a configuration without a failure. */
static plan count_calls(int configuration)
{
    plan p = { .functions = 0 };
    char log[300], text[4096], line[200];
    snprintf(log, sizeof log, "%s/driver.log", folder);
    remove(log);
    const int status = run(configuration, "", log, text, sizeof text);
    FILE *file = fopen(log, "r");
    if (status || *text || !file) {
        printf("configuration %d without a failure: status %#x %s\n", configuration, (unsigned)status, text);
        exit(1);
    }
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, " ")] = 0;
        int i = 0;
        while (i < p.functions && strcmp(p.of[i].function, line)) i++;
        /* A pop cannot fail; without an answer on clusters a launch is as large as the GPU, which the software libcuda does not admit. */
        if (strcmp(line, "kernel") == 0 || strcmp(line, "cuCtxPopCurrent") == 0 || strstr(line, "Occupancy") || i == FUNCTIONS) continue;
        if (i == p.functions) memcpy(p.of[p.functions++].function, line, sizeof p.of[0].function - 1);
        p.of[i].count++;
    }
    fclose(file);
    return p;
}

static int lines_with(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) count++;
    return count;
}

/* True if the case went as it has to. */
static bool fine(int configuration, const char *rule)
{
    char text[8192];
    const int status = run(configuration, rule, NULL, text, sizeof text);
    const bool told = lines_with(text, "cannot be reached any more") == 1, one_each = lines_with(text, "the GPU failed") <= 1
                      && lines_with(text, "cannot be reached any more") <= 1 && lines_with(text, "gpublas: ") <= 2;
    const bool good = (status == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 2 && told)) && one_each;
    if (!good || aloud)
        printf("%s %d %s: %s, beta %g, %s: status %#x\n%s", good ? "fine" : "WRONG", configuration, rule,
            shapes[configuration / BETAS / PLACES].name,
               (double)betas[configuration / PLACES % BETAS], places[configuration % PLACES].name, (unsigned)status, text);
    return good;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    aloud = argc == 3 && strchr(argv[2], ':');
    if (aloud) return !fine(atoi(argv[1]), argv[2]);
    if (argc < 3) return 2;
    const unsigned seed = (unsigned)atoi(argv[1]), one_in = (unsigned)atoi(argv[2]);
    unsigned number = 0, cases = 0, wrong = 0;
    if (argc > 3) snprintf(folder, sizeof folder, "%s", argv[3]);
    for (int configuration = 0; configuration < SHAPES * BETAS * PLACES; configuration++) {
        const plan p = count_calls(configuration);
        for (int f = 0; f < p.functions; f++)
            for (int occurrence = 1; occurrence <= p.of[f].count; occurrence++)
                for (int kind = 0; kind < 2 * CODES; kind++) {
                    char rule[80];
                    if ((++number * 2654435761u >> 8) % one_in != seed % one_in) continue;
                    snprintf(rule, sizeof rule, "%s:%d%s:%s", p.of[f].function, occurrence, kind % 2 ? "+" : "", codes[kind / 2]);
                    cases++;
                    wrong += !fine(configuration, rule);
                }
    }
    printf("cases %u of %u, wrong %u\n", cases, number, wrong);
    return wrong > 0;
}
