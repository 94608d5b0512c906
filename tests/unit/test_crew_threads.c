/* SPDX-License-Identifier: MIT */
/* The crew's workers as threads of somebody else's process: when they appear, what they may do, which
   cores they run on, how calls do without them, forks, and modes of arithmetic. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <xmmintrin.h>

#include "src/service/cores.h"
#include "src/service/thread.h"
#include "tests/unit/crew_load.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
/* A child of many threads cannot start threads or allocate under these runtimes, so there it works alone. */
#define SANITIZED 0
#endif

/* How many threads of this process are called gpublas-copy. With a key: only those whose line in /proc's
   status that begins with the key has this value. */
static int workers(const char *key, const char *value)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks);
    for (struct dirent *task; (task = readdir(tasks));) {
        char path[300], line[512];
        bool ours = false, same = !key;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *file = *task->d_name == '.' ? NULL : fopen(path, "r");
        while (file && fgets(line, sizeof line, file)) {
            if (strcmp(line, "Name:\tgpublas-copy\n") == 0) ours = true;
            if (key && strncmp(line, key, strlen(key)) == 0) same = strcmp(line + strlen(key), value) == 0;
        }
        if (file) fclose(file);
        if (!ours) continue;
        if (key) CHECK(same);
        count++;
    }
    closedir(tasks);
    return count;
}

static void wait_for_workers(int count)
{
    while (workers(NULL, NULL) < count) usleep(1000);  /* naming itself is the last thing that each does */
    CHECK(workers(NULL, NULL) == count);
}

static void traits_run(void)
{
    static gpb_crew_queue queue;
    CHECK(gpb_crew_size() == 4 && gpb_cores() >= 1);
    CHECK(workers(NULL, NULL) == 0);                         /* asking starts none */
    gpb_crew_begin(&queue);
    wait_for_workers(4);
    /* All but faults, KILL, STOP and two of glibc's own. */
    if (!SANITIZED) CHECK(workers("SigBlk:\t", "fffffffe3ffbfa27\n") == 4);
    sigset_t mine;
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    CHECK(!sigismember(&mine, SIGINT) && !sigismember(&mine, SIGTERM));
    gpb_crew_end(&queue);
    gpb_crew_begin(&queue);
    gpb_crew_end(&queue);
    wait_for_workers(4);
    CHECK(gpb_option_set("THREADS", "9") == 0);
    CHECK(gpb_crew_size() == 4);                             /* they have started */
}

static void traits(void **state)
{
    (void)state;
    in_child("5", traits_run);
}

/* This thread is bound to one core, as OpenMP does it. The process may use more cores, and so may the
   workers. */
static void *bound(void *set)
{
    static gpb_crew_queue queue;
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, (cpu_set_t *)set)) CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    gpb_crew_begin(&queue);
    gpb_crew_end(&queue);
    return NULL;
}

static void read_line(const char *key, char *value, size_t size)
{
    char line[512];
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file);
    *value = 0;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0) snprintf(value, size, "%s", line + strlen(key));
    fclose(file);
    CHECK(*value);
}

static void affinity_run(void)
{
    char allowed[512];
    cpu_set_t set;
    pthread_t thread;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    if (CPU_COUNT(&set) < 2) _exit(SKIPPED);
    read_line("Cpus_allowed:\t", allowed, sizeof allowed);
    CHECK(pthread_create(&thread, NULL, bound, &set) == 0);
    pthread_join(thread, NULL);
    CHECK(gpb_cores() >= 2 || access("/sys/fs/cgroup/cpu.max", R_OK) == 0);
    wait_for_workers(2);
    CHECK(workers("Cpus_allowed:\t", allowed) == 2);
}

static void one_core_run(void)
{
    cpu_set_t set, one;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &set)) CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(gpb_cores() == 1 && gpb_crew_size() == 0);
}

static void affinity(void **state)
{
    (void)state;
    in_child("0", one_core_run);
    in_child("3", affinity_run);
}

/* No thread can be had. The limit does not hold for root, so it becomes nobody first. */
static void no_threads_run(void)
{
    if (getuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(SKIPPED);
    const struct rlimit none = { 0, 0 };
    CHECK(setrlimit(RLIMIT_NPROC, &none) == 0);
    CHECK(gpb_crew_size() == 7);
    load *l = new_load();
    gpb_crew_begin(&l->queue);
    CHECK(gpb_crew_size() == 0 && workers(NULL, NULL) == 0);
    push(l, 2000, GPB_CREW_JOBS, true);
    gpb_crew_end(&l->queue);
    free(l);
}

static void no_threads(void **state)
{
    (void)state;
    in_child("8", no_threads_run);
}

static atomic_bool stop;

static void *busy(void *unused)
{
    load *l = new_load();
    while (!atomic_load(&stop)) {
        gpb_crew_begin(&l->queue);
        push(l, 300, 100, false);
        gpb_crew_end(&l->queue);
    }
    free(l);
    return unused;
}

static void fork_run(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, busy, NULL) == 0);
    load *l = new_load();
    for (int i = 0; i < 20; i++) {
        int status;
        usleep(i % 5 * 300);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            CHECK(gpb_crew_size() == 3 && (SANITIZED || workers(NULL, NULL) == 0));
            if (SANITIZED) CHECK(gpb_option_set("THREADS", "1") == 0);
            gpb_crew_begin(&l->queue);
            CHECK(gpb_crew_size() == (SANITIZED ? 0 : 3));
            push(l, 1000, 100, SANITIZED);
            gpb_crew_end(&l->queue);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
    free(l);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

static void forks(void **state)
{
    (void)state;
    in_child("4", fork_run);
}

/* ---- modes of arithmetic */

static atomic_uint sse_modes, x87_modes;

static void *tell_modes(void *unused)
{
    unsigned short x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    atomic_store(&x87_modes, x87);
    atomic_store(&sse_modes, _mm_getcsr());
    return unused;
}

/* The caller traps, flushes subnormals and rounds upwards. */
static void modes(void **state)
{
    const unsigned before = _mm_getcsr();
    const unsigned short trapping = 0x872, usual = 0x37f;
    (void)state;
    _mm_setcsr(0xc840 | _MM_MASK_UNDERFLOW | _MM_MASK_INEXACT);
    __asm__ volatile("fldcw %0" : : "m"(trapping));
    const int refused = gpb_thread_begin(tell_modes, 0);
    _mm_setcsr(before);
    __asm__ volatile("fldcw %0" : : "m"(usual));
    CHECK(refused == 0);
    while (!atomic_load(&sse_modes)) sched_yield();
    CHECK(atomic_load(&sse_modes) == 0x1f80);
    CHECK(atomic_load(&x87_modes) == usual);
}

static void handle_fork(void)
{
    gpb_cores_in_child();
    gpb_crew_in_child();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(traits), cmocka_unit_test(affinity),
                                        cmocka_unit_test(no_threads), cmocka_unit_test(forks),
                                        cmocka_unit_test(modes) };
    pthread_atfork(NULL, NULL, handle_fork);       /* as hub/fork.c does it in the library */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
