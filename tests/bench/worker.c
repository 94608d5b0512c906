/* SPDX-License-Identifier: MIT */
/* Contenders and their processes; see worker.h. */
#include "tests/bench/worker.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/gpublas.h"

static const worker_mode *const modes[] = { &end_to_end_mode, &never_slower_mode, &callers_mode,
                                            &overhead_mode };

/* ---- the parent's side ---- */

static const char *found(const char *wanted, const char *const *names)
{
    if (wanted) return *wanted ? wanted : NULL;        /* "": there is none */
    for (; *names; names++) {
        pid_t child = fork(); /* not in this process: NVBLAS reads its configuration when opened */
        int status = 0;
        if (child == 0) _exit(dlopen(*names, RTLD_NOW) ? 0 : 1);
        if (waitpid(child, &status, 0) == child && status == 0) return *names;
    }
    return NULL;
}

const contender *contenders_of(const bench_options *options)
{
    static contender all[CONTENDERS];
    static const char *const names[] = { "libnvblas.so.13", "libnvblas.so.12", "libnvblas.so", NULL };
    if (all[0].name) return all;
    const char *nvblas = found(options->nvblas, names);
    const contender made[CONTENDERS] = {
        [GPUBLAS_AUTO] = { "gpublas_auto", options->library, "auto", false, false },
        [GPUBLAS_ALWAYS] = { "gpublas_always", options->library, "always", false, false },
        [GPUBLAS_NEVER] = { "gpublas_never", options->library, "never", false, false },
        [HOST] = { "host", options->host_blas, NULL, false, false },
        [NVBLAS] = { "nvblas", nvblas, NULL, true, false },
        [NVBLAS_TUNED] = { "nvblas_tuned", nvblas, NULL, true, true },
        [COPY_CUBLAS] = { "copy_cublas", "libcuda.so.1", NULL, false, false },
    };
    memcpy(all, made, sizeof all);
    return all;
}

/* NVBLAS's configuration: the host BLAS behind it, all GPUs; tuned: what was found best
   (evidence/machine.md). */
static void write_configuration(const contender *who, const char *plain_blas, char *path)
{
    strcpy(path, "/tmp/gpublas-nvblas-XXXXXX");
    int file = mkstemp(path);
    FILE *conf = file < 0 ? NULL : fdopen(file, "w");
    if (!conf) {
        perror(path);
        exit(1);
    }
    fprintf(conf, "NVBLAS_LOGFILE /dev/null\nNVBLAS_CPU_BLAS_LIB %s\nNVBLAS_GPU_LIST ALL\n", plain_blas);
    if (who->tuned) fprintf(conf, "NVBLAS_AUTOPIN_MEM_ENABLED\nNVBLAS_TILE_DIM 4096\n");
    fclose(conf);
}

static void keep_cores(int wanted)
{
    cpu_set_t have, keep;
    CPU_ZERO(&keep);
    if (sched_getaffinity(0, sizeof have, &have)) return;
    for (int i = 0, kept = 0; i < CPU_SETSIZE && kept < wanted; i++) {
        if (CPU_ISSET(i, &have)) {
            CPU_SET(i, &keep);
            kept++;
        }
    }
    sched_setaffinity(0, sizeof keep, &keep);
}

static _Noreturn void become(const bench_options *options, const char *mode, const worker *w,
                             worker_setting setting)
{
    char threads[16], largest[16], shapes[16], seed[16];
    snprintf(threads, sizeof threads, "%d", setting.threads);
    snprintf(largest, sizeof largest, "%d", options->largest);
    snprintf(shapes, sizeof shapes, "%d", options->shapes);
    snprintf(seed, sizeof seed, "%d", options->seed);
    const char *nvblas = contenders_of(options)[NVBLAS].library;
    setenv("GPUBLAS_HOST_BLAS", options->host_blas, 1);
    if (w->who->offload) setenv("GPUBLAS_OFFLOAD", w->who->offload, 1);
    if (setting.memory) setenv("GPUBLAS_MEMORY", setting.memory, 1);
    if (setting.watch) setenv(setting.watch, setting.watched, 1);
    if (setting.watch && !freopen("/dev/null", "w", stderr)) _exit(126);
    if (setting.threads) setenv("OPENBLAS_NUM_THREADS", threads, 1);
    if (setting.cores) keep_cores(setting.cores);
    if (w->who->nvblas) setenv("NVBLAS_CONFIG_FILE", w->configuration, 1);
    execl("/proc/self/exe", "bench", "--worker", mode, "--contender", w->who->name, "--library",
          options->library, "--host-blas", options->host_blas, "--plain-blas", options->plain_blas,
          "--largest", largest, "--shapes", shapes, "--seed", seed, "--nvblas", nvblas ? nvblas : "",
          (char *)NULL);
    _exit(127);
}

worker worker_start(const bench_options *options, const char *mode, enum contender_id id,
                    worker_setting setting)
{
    worker w = { &contenders_of(options)[id], 0, 77, NULL, NULL, "" };
    int asks[2], answers[2];
    if (!w.who->library) return w;
    if (w.who->nvblas) write_configuration(w.who, options->plain_blas, w.configuration);
    signal(SIGPIPE, SIG_IGN);
    fflush(NULL);
    if (pipe2(asks, O_CLOEXEC) || pipe2(answers, O_CLOEXEC) || (w.pid = fork()) < 0) {
        perror("bench");
        exit(1);
    }
    if (w.pid == 0) {
        dup2(asks[0], STDIN_FILENO);
        dup2(answers[1], STDOUT_FILENO);
        become(options, mode, &w, setting);
    }
    close(asks[0]);
    close(answers[1]);
    w.asks = fdopen(asks[1], "w");
    w.answers = fdopen(answers[0], "r");
    return w;
}

void worker_end(worker *w)
{
    int status = -1;
    if (!w->pid) return;
    fclose(w->asks);
    fclose(w->answers);
    waitpid(w->pid, &status, 0);
    if (w->who->nvblas) unlink(w->configuration);
    w->code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    w->pid = 0;
}

/* Whoever was asked last may have left threads of a host BLAS behind. */
static bool threads_about;

bool worker_ask(worker *w, const void *ask, size_t ask_size, void *answer, size_t answer_size)
{
    if (!w->pid) return false;
    threads_about = strcmp(w->who->name, "copy_cublas") != 0
        && !(w->who->offload && !strcmp(w->who->offload, "always"));
    if (fwrite(ask, ask_size, 1, w->asks) == 1 && fflush(w->asks) == 0
        && fread(answer, answer_size, 1, w->answers) == 1)
        return true;
    worker_end(w);
    if (!w->code) w->code = 1;
    fprintf(stderr, "bench: %s has ended with %d\n", w->who->name, w->code);
    return false;
}

/* OpenBLAS's threads look for more work for 134 ms after a call, and NVBLAS's host is OpenBLAS. Whoever is
   asked next would share the cores with them. (With 40 ms here 512 took 0.15 ms in one series and 1.5 in
   another.) */
void worker_settle(void) { nanosleep(&(struct timespec){ 0, threads_about ? 160000000 : 40000000 }, NULL); }

bool worker_failed(const worker *w)
{
    return !w->pid && w->code && (w->who->offload || !strcmp(w->who->name, "host"));
}

/* ---- the worker's side ---- */

static struct { blas gemm; bool copies; int (*stats)(gpublas_stats_t *, size_t); } self;

/* Our library is called by the name that a program has from the host BLAS, because NumPy's wheel has only
   scipy_cblas_sgemm64_. */
static void open_contender(const bench_options *options)
{
    const char *spelling = NULL;
    const contender *who = contenders_of(options);
    while (strcmp(who->name, options->contender)) who++;
    if (!strcmp(who->name, "copy_cublas")) {
        self.copies = true;
        copy_open();
        return;
    }
    if (who->nvblas) spelling = "sgemm_";
    if (who->offload) spelling = blas_open(options->host_blas, NULL).spelling;
    self.gemm = blas_open(who->library, spelling);
    if (who->offload) self.stats = (__typeof__(self.stats))bench_symbol(self.gemm.library, "gpublas_stats");
}

void contender_call(const gpb_call *g)
{
    if (self.copies) copy_call(g);
    else blas_call(&self.gemm, g);
}

double contender_timed(const gpb_call *g)
{
    double start = seconds_now();
    contender_call(g);
    return seconds_now() - start;
}

bool contender_has_rows(void) { return self.copies || !self.gemm.fortran; }

static gpublas_stats_t stats(void)
{
    gpublas_stats_t seen = { 0 };
    if (self.stats) self.stats(&seen, sizeof seen);
    return seen;
}
uint64_t contender_calls(void) { return stats().calls; }
uint64_t contender_gpu_calls(void) { return stats().gpu_calls; }

double contender_warm(memory *from, enum gpb_type type, int n)
{
    gpb_call g = host_call(n, n, n, 0);
    g.type = type;
    memory_operands(from, &g, false);
    double start = seconds_now(), first = contender_timed(&g);
    for (int i = 0; seconds_now() - start < 3; i++) {
        if (self.stats ? contender_gpu_calls() > 0 : i > 2) break;
        contender_timed(&g);
    }
    nanosleep(&(struct timespec){ 0, 200000000 }, NULL); /* the host's threads go to sleep (worker_settle) */
    return first;
}

void contender_offload_one(const gpb_call *g)
{
    int (*set_option)(const char *, const char *);
    set_option = (__typeof__(set_option))bench_symbol(self.gemm.library, "gpublas_set_option");
    must(set_option("OFFLOAD", "always"), "gpublas_set_option");
    contender_call(g);
    must(set_option("OFFLOAD", "auto"), "gpublas_set_option");
}

int bench_worker(const bench_options *options)
{
    FILE *answers = fdopen(dup(STDOUT_FILENO), "w");
    dup2(STDERR_FILENO, STDOUT_FILENO);                /* whatever a library may print */
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        const worker_mode *mode = modes[i];
        if (strcmp(mode->name, options->worker)) continue;
        void *ask = bench_memory(mode->ask), *answer = bench_memory(mode->answer);
        open_contender(options);
        while (fread(ask, mode->ask, 1, stdin) == 1) {
            memset(answer, 0, mode->answer);
            mode->serve(options, ask, answer);
            if (fwrite(answer, mode->answer, 1, answers) != 1 || fflush(answers)) return 1;
        }
        _exit(0);                                      /* OpenBLAS 0.3.21 may crash in its destructor */
    }
    return 1;
}
