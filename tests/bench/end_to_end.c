/* SPDX-License-Identifier: MIT */
/* End to end: sgemm_ on ordinary pageable host memory, as an unmodified program calls it. Each contender runs in a process of its
   own, which opens one library and times it: ours (auto, always), the host BLAS alone, NVBLAS in front of the same host BLAS. */
#include "tests/bench/bench.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/gpublas.h"

static const int sizes[] = { 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192 };
enum { SIZES = sizeof sizes / sizeof *sizes, MOST_CALLS = 20, WARM_UP = 2048 };

/* The Fortran names of a BLAS, plain or in a Python wheel. */
static const struct { const char *symbol; bool wide; } spellings[] = {
    { "sgemm_", false }, { "scipy_sgemm_", false }, { "scipy_sgemm_64_", true }, { "sgemm_64_", true }
};
typedef void narrow(const char *, const char *, const int32_t *, const int32_t *, const int32_t *, const float *, const float *,
                    const int32_t *, const float *, const int32_t *, const float *, float *, const int32_t *, size_t, size_t);
typedef void wide(const char *, const char *, const int64_t *, const int64_t *, const int64_t *, const float *, const float *,
                  const int64_t *, const float *, const int64_t *, const float *, float *, const int64_t *, size_t, size_t);

static void *sgemm;
static bool is_wide;
static int (*stats)(gpublas_stats_t *, size_t);        /* NULL: not ours */

static double timed(int n, const float *a, const float *b, float *c)
{
    const float one = 1, zero = 0;
    int64_t n64 = n;
    double start = seconds_now();
    if (is_wide) ((wide *)sgemm)("N", "N", &n64, &n64, &n64, &one, a, &n64, b, &n64, &zero, c, &n64, 1, 1);
    else ((narrow *)sgemm)("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n, 1, 1);
    return seconds_now() - start;
}

static void load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "bench: %s\n", dlerror());
        exit(77);
    }
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings && !sgemm; i++) {
        sgemm = dlsym(library, spellings[i].symbol);
        is_wide = spellings[i].wide;
    }
    if (!sgemm) bench_symbol(library, "sgemm_");
    stats = (__typeof__(stats))dlsym(library, "gpublas_stats");
}

/* One line a size: n calls median least most error. The GPU's start is not timed: `auto` may want a few calls for it to pay. */
int bench_worker(const bench_options *options)
{
    int largest = sizes[0];
    for (int i = 0; i < SIZES; i++)
        if (sizes[i] <= options->largest) largest = sizes[i];
    size_t floats = (size_t)largest * (size_t)largest;
    float *a = bench_memory(4 * floats), *b = bench_memory(4 * floats), *c = bench_memory(4 * floats);
    load(options->library);
    gpb_reference_fill(a, floats, 1);
    gpb_reference_fill(b, floats, 2);
    memset(c, 0, 4 * floats);
    double start = seconds_now(), first = timed(sizes[0], a, b, c);
    for (int i = 0; i < 40 && seconds_now() - start < 3; i++) timed(largest < WARM_UP ? largest : WARM_UP, a, b, c);
    printf("first %.6f\n", first);
    for (int i = 0; i < SIZES && sizes[i] <= largest; i++) {
        static sample drawn;
        double seconds[MOST_CALLS];
        int n = sizes[i], count = 1;
        timed(n, a, b, c);
        seconds[0] = timed(n, a, b, c);
        count = (int)fmin(MOST_CALLS, fmax(3, 0.5 / seconds[0]));
        for (int x = 1; x < count; x++) seconds[x] = timed(n, a, b, c);
        spread t = spread_of(seconds, count);
        sample_draw(&drawn, n, n, n, a, b);
        for (int x = 0; x < SAMPLES; x++) drawn.got[x] = c[drawn.at[x]];
        printf("%d %d %.9f %.9f %.9f %.3f\n", n, count, t.median, t.least, t.most, sample_judge(&drawn).worst);
        fflush(stdout);
    }
    gpublas_stats_t seen = { 0 };
    if (stats && !stats(&seen, sizeof seen)) printf("gpu %.4f\n", (double)seen.gpu_calls / (double)seen.calls);
    return 0;
}

typedef struct contender {
    const char *name, *library;
    const char *offload;                               /* GPUBLAS_OFFLOAD, or NULL: not ours */
    bool nvblas, pinned;
} contender;

/* NVBLAS's configuration: the host BLAS behind it, all GPUs. */
static void write_configuration(const contender *who, const char *host_blas, char *path)
{
    int file = mkstemp(path);
    FILE *conf = file < 0 ? NULL : fdopen(file, "w");
    if (!conf) {
        perror(path);
        exit(1);
    }
    fprintf(conf, "NVBLAS_LOGFILE /dev/null\nNVBLAS_CPU_BLAS_LIB %s\nNVBLAS_GPU_LIST ALL\n", host_blas);
    if (who->pinned) fprintf(conf, "NVBLAS_AUTOPIN_MEM_ENABLED\n");
    fclose(conf);
}

static FILE *start(const contender *who, const bench_options *options, const char *configuration, pid_t *child)
{
    int ends[2];
    char largest[32];
    snprintf(largest, sizeof largest, "%d", options->largest);
    if (pipe(ends) || (*child = fork()) < 0) {
        perror("bench");
        exit(1);
    }
    if (*child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        setenv("GPUBLAS_HOST_BLAS", options->host_blas, 1);
        if (who->offload) setenv("GPUBLAS_OFFLOAD", who->offload, 1);
        setenv("NVBLAS_CONFIG_FILE", configuration, 1);
        execl("/proc/self/exe", "bench", "--worker", "--library", who->library, "--largest", largest, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    return fdopen(ends[0], "r");
}

/* What came of one contender: medians, 0 where there is none; the share of calls on the GPU, 0 if not ours. */
typedef struct outcome { double seconds[SIZES], on_gpu; int code, wrong; } outcome;

static outcome run(const contender *who, const bench_options *options, FILE *csv)
{
    char configuration[] = "/tmp/gpublas-nvblas-XXXXXX", text[256];
    pid_t child;
    double first = 0;
    outcome out = { { 0 }, 0, 0, 0 };
    if (who->nvblas) write_configuration(who, options->host_blas, configuration);
    FILE *lines = start(who, options, configuration, &child);
    while (lines && fgets(text, sizeof text, lines)) {
        int n, calls;
        double median, least, most, error;
        if (sscanf(text, "first %lf", &first) == 1 || sscanf(text, "gpu %lf", &out.on_gpu) == 1) continue;
        if (sscanf(text, "%d %d %lf %lf %lf %lf", &n, &calls, &median, &least, &most, &error) != 6) continue;
        for (int i = 0; i < SIZES; i++)
            if (sizes[i] == n) out.seconds[i] = median;
        if (csv)
            fprintf(csv, "%s,%d,%d,%.6f,%.6f,%.6f,%.1f,%.3f,%.3f\n", who->name, n, calls, 1e3 * median, 1e3 * least, 1e3 * most,
                    2e-9 * n * n * n / median, error, 1e3 * first);
        out.wrong += !(error <= n + 4);
    }
    int status = -1;
    if (lines) fclose(lines);
    waitpid(child, &status, 0);
    if (who->nvblas) unlink(configuration);
    out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    return out;
}

static const char *found(const char *wanted, const char *const *names)
{
    if (wanted) return wanted;
    for (; *names; names++) {
        pid_t child = fork();                          /* not in this process: NVBLAS reads its configuration when opened */
        int status = 0;
        if (child == 0) _exit(dlopen(*names, RTLD_NOW) ? 0 : 1);
        if (waitpid(child, &status, 0) == child && status == 0) return *names;
    }
    return NULL;
}

int bench_end_to_end(const bench_options *options)
{
    static const char *const nvblas[] = { "libnvblas.so.13", "libnvblas.so.12", "libnvblas.so", NULL };
    const char *rival = found(options->nvblas, nvblas);
    const contender contenders[] = {
        { "gpublas_auto", options->library, "auto", false, false },
        { "gpublas_always", options->library, "always", false, false },
        { "host", options->host_blas, NULL, false, false },
        { "nvblas", rival, NULL, true, false },
        { "nvblas_autopin", rival, NULL, true, true },
    };
    enum { CONTENDERS = sizeof contenders / sizeof *contenders };
    FILE *csv = bench_csv(options->csv, "contender,n,calls,ms_median,ms_least,ms_most,gflops,error_u,first_call_ms");
    int faults = 0;
    printf("SGEMM n x n x n on pageable host memory, GFLOP/s. Host BLAS: %s\n%-16s", options->host_blas, "");
    for (int s = 0; s < SIZES; s++) printf("%8d", sizes[s]);
    printf("\n");
    for (int i = 0; i < CONTENDERS; i++) {
        if (!contenders[i].library) {
            printf("%-16s not found\n", contenders[i].name);
            continue;
        }
        fflush(NULL);
        const contender *who = &contenders[i];
        outcome out = run(who, options, csv);
        bool always = who->offload && !strcmp(who->offload, "always");
        bool bad = out.wrong || (out.code && !who->nvblas) || (always && out.on_gpu == 0);
        faults += bad;
        printf("%-16s", who->name);
        for (int s = 0; s < SIZES; s++)
            if (out.seconds[s] > 0) printf("%8.0f", 2e-9 * sizes[s] * sizes[s] * sizes[s] / out.seconds[s]);
        if (who->offload) printf("  %.0f%% of the calls on the GPU", 100 * out.on_gpu);
        printf("%s\n", bad ? "  FAULT" : out.code ? "  did not run" : "");
    }
    if (csv) fclose(csv);
    printf("%d faults\n", faults);
    return faults != 0;
}
