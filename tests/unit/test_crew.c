/* SPDX-License-Identifier: MIT */
/* The crew: every job once, in order, with and without workers, asleep or awake, by many calls at once, over a fork. Each case runs in a
   child, since GPUBLAS_THREADS counts until the workers have started; the parent has one thread. A hang is for ctest's timeout to see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/crew.h"
#include "src/option.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0      /* their runtimes lack what a child of many threads needs to start threads and to allocate: there it works alone */
#endif

enum { SKIPPED = 77 };

/* In a child: says where it went wrong, and ends it. */
#define CHECK(what) ((what) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what), _exit(1)))

static void in_child(const char *threads, void (*run)(void))
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        CHECK(gpb_option_set("THREADS", threads) == 0);
        run();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) skip();
    assert_int_equal(status, 0);
}

/* A queue and the numbers that its jobs add to counters: a job that is done twice, or not before it is reaped, shows. */
typedef struct load {
    gpb_crew_queue queue;
    int64_t posted, reaped;
    float from[64], to[GPB_CREW_JOBS][64];
} load;

static load *new_load(void)
{
    load *l = calloc(1, sizeof *l);
    CHECK(l);
    for (int i = 0; i < 64; i++) l->from[i] = (float)(i + 1);
    return l;
}

static bool post(load *l)
{
    const int slot = (int)(l->posted % GPB_CREW_JOBS), size = 1 + (int)(l->posted % 64);
    gpb_rectangle job = { .from = (char *)l->from, .to = (char *)l->to[slot], .rows = size, .cols = 1, .ld_from = size, .ld_to = size,
                          .element = 4, .uplo = 'G', .adds = true, .beta = 1 };
    if (!gpb_crew_post(&l->queue, &job)) return false;
    l->posted++;
    return true;
}

static bool reap(load *l)
{
    if (!gpb_crew_reap(&l->queue)) return false;
    const int slot = (int)(l->reaped % GPB_CREW_JOBS), size = 1 + (int)(l->reaped % 64);
    l->reaped++;
    CHECK(l->reaped <= l->posted);
    for (int i = 0; i < 64; i++) CHECK(l->to[slot][i] == (i < size ? (float)(i + 1) : 0));
    memset(l->to[slot], 0, sizeof l->to[slot]);
    return true;
}

/* So many jobs through the queue, at most `ahead` of them at a time. */
static void push(load *l, int64_t jobs, int64_t ahead, bool helps)
{
    for (const int64_t last = l->posted + jobs; l->reaped < last;) {
        bool moved = false;
        while (l->posted < last && l->posted - l->reaped < ahead && post(l)) moved = true;
        while (reap(l)) moved = true;
        if (!moved && !((helps || gpb_crew_size() == 0) && gpb_crew_help(&l->queue))) sched_yield();
    }
    CHECK(!gpb_crew_reap(&l->queue) && !gpb_crew_help(&l->queue));
}

/* ---- cases */

static void once_each_run(void)
{
    load *l = new_load();
    gpb_crew_begin(&l->queue);
    CHECK(gpb_crew_size() == 3);
    push(l, 20000, GPB_CREW_JOBS, false);
    push(l, 20000, 5, false);
    push(l, 20000, GPB_CREW_JOBS, true);
    gpb_crew_end(&l->queue);
    free(l);
}

static void once_each(void **state)
{
    (void)state;
    in_child("4", once_each_run);
}

static void alone_run(void)
{
    load *l = new_load();
    gpb_crew_begin(&l->queue);
    CHECK(gpb_crew_size() == 0);
    CHECK(!gpb_crew_help(&l->queue) && !gpb_crew_reap(&l->queue));
    for (int i = 0; i < GPB_CREW_JOBS; i++) CHECK(post(l));
    CHECK(!post(l) && !reap(l));                     /* full, and nobody works */
    CHECK(gpb_crew_help(&l->queue));
    CHECK(!post(l));                                 /* done is not yet reaped */
    CHECK(reap(l) && !reap(l));
    CHECK(post(l) && !post(l));
    push(l, 10000, GPB_CREW_JOBS, true);
    gpb_crew_end(&l->queue);
    free(l);
}

static void alone(void **state)
{
    (void)state;
    in_child("1", alone_run);
}

static void full_run(void)
{
    static char from[1 << 18], to[1 << 18];
    gpb_crew_queue *queue = calloc(1, sizeof *queue);
    gpb_rectangle job = { .from = from, .to = to, .rows = 0, .cols = 1, .element = 16, .uplo = 'G' };
    int64_t posted = 0, reaped = 0, refused = 0;
    CHECK(queue);
    gpb_crew_begin(queue);
    while (posted < 100000) {
        if (gpb_crew_post(queue, &job)) posted++;
        else CHECK(posted - reaped == GPB_CREW_JOBS), refused++;
        if (posted - reaped == GPB_CREW_JOBS) reaped += gpb_crew_reap(queue);
    }
    CHECK(refused);
    while (reaped < posted) reaped += gpb_crew_reap(queue);
    gpb_crew_end(queue);
    free(queue);
}

static void full(void **state)
{
    (void)state;
    in_child("3", full_run);
}

/* A call with two queues: number 0 floods, number 7 has a job now and then. */
static void *produce(void *number)
{
    const int64_t small = *(int *)number;
    load *up = new_load(), *down = new_load();
    for (int round = 0; round < 20; round++) {
        gpb_crew_begin(&up->queue);
        gpb_crew_begin(&down->queue);
        for (int i = 0; i < 10; i++) {
            push(up, 400 >> small, GPB_CREW_JOBS >> small, small % 2);
            push(down, 300 >> small, 1 + (GPB_CREW_JOBS >> small), small % 3);
        }
        gpb_crew_end(&down->queue);
        gpb_crew_end(&up->queue);
    }
    free(up), free(down);
    return NULL;
}

static void together(int count, void *(*run)(void *))
{
    pthread_t threads[16];
    int numbers[16];
    for (int i = 0; i < count; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, run, &numbers[i]) == 0);
    }
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

static void producers_run(void) { together(8, produce); }

static void producers(void **state)
{
    (void)state;
    in_child("6", producers_run);
    in_child("1", producers_run);
}

/* A flood in one queue does not keep the jobs of another waiting: while it lasts, thousands of others come through. The flood is of
   rectangles of a KiB that are never helped with; it ends when the others are through. */
static atomic_bool others_are_through;

static void *flood(void *unused)
{
    load *l = new_load();
    gpb_crew_begin(&l->queue);
    while (!atomic_load(&others_are_through)) {
        while (post(l)) { }
        while (reap(l)) { }
        sched_yield();
    }
    while (l->reaped < l->posted)
        if (!reap(l)) sched_yield();
    gpb_crew_end(&l->queue);
    free(l);
    return unused;
}

static void flooded_run(void)
{
    pthread_t thread;
    load *l = new_load();
    CHECK(pthread_create(&thread, NULL, flood, NULL) == 0);
    gpb_crew_begin(&l->queue);
    push(l, 2000, 1, false);
    gpb_crew_end(&l->queue);
    atomic_store(&others_are_through, true);
    pthread_join(thread, NULL);
    free(l);
}

static void flooded(void **state)
{
    (void)state;
    in_child("2", flooded_run);
}

/* Queues come and go, their memory with them. */
static void *cycle(void *unused)
{
    for (int i = 0; i < 10000; i++) {
        load *l = malloc(sizeof *l);
        CHECK(l);
        memset(&l->queue, 0xa5, sizeof l->queue.jobs[0]);        /* whatever was there before */
        l->posted = l->reaped = 0;
        for (int j = 0; j < 4; j++) {
            memset(l->to[j], 0, sizeof l->to[j]);
            l->from[j] = (float)(j + 1);
        }
        gpb_crew_begin(&l->queue);
        push(l, i % 4, 4, i % 2);
        gpb_crew_end(&l->queue);
        memset(&l->queue, 0x5a, sizeof l->queue);
        free(l);
    }
    return unused;
}

static void cycles_run(void) { together(3, cycle); }

static void cycles(void **state)
{
    (void)state;
    in_child("4", cycles_run);
}

/* More queues than there are seats: the last ones are served by their own callers. */
static void crowd_run(void)
{
    enum { CROWD = 70 };
    load *l[CROWD];
    for (int i = 0; i < CROWD; i++) l[i] = new_load(), gpb_crew_begin(&l[i]->queue);
    for (int i = 0; i < CROWD; i++)
        for (int j = 0; j < 100; j++) CHECK(post(l[i]));
    for (int i = CROWD; i-- > 0;) push(l[i], 100, 7, false);
    for (int i = 0; i < CROWD; i++) gpb_crew_end(&l[i]->queue), free(l[i]);
}

static void crowd(void **state)
{
    (void)state;
    in_child("3", crowd_run);
}

/* Workers that sleep are woken by a post, one after the other by each other. */
static void asleep_run(void)
{
    load *l = new_load();
    gpb_crew_begin(&l->queue);
    for (int round = 0; round < 100; round++) {
        usleep(round % 10 * 400);            /* they look around for 50 us: awake, asleep and just falling asleep */
        push(l, 1 + round % 32, GPB_CREW_JOBS, false);
    }
    gpb_crew_end(&l->queue);
    usleep(20000);                           /* and with no queue at all for a while */
    gpb_crew_begin(&l->queue);
    push(l, 500, GPB_CREW_JOBS, false);
    gpb_crew_end(&l->queue);
    free(l);
}

static void asleep(void **state)
{
    (void)state;
    in_child("9", asleep_run);
    in_child("2", asleep_run);
}

/* ---- the workers as threads */

/* Threads of this process that are called gpublas-copy; of each, the line of /proc's status that begins so is this. */
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
    while (workers(NULL, NULL) < count) usleep(1000);        /* each names itself, last of all */
    CHECK(workers(NULL, NULL) == count);
}

static void traits_run(void)
{
    static gpb_crew_queue queue;
    CHECK(gpb_crew_size() == 4 && gpb_crew_cores() >= 1);
    CHECK(workers(NULL, NULL) == 0);                         /* asking starts none */
    gpb_crew_begin(&queue);
    wait_for_workers(4);
    if (!SANITIZED) CHECK(workers("SigBlk:\t", "fffffffe7ffbfeff\n") == 4);      /* all but KILL, STOP and glibc's own two */
    sigset_t mine;
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    CHECK(!sigismember(&mine, SIGINT) && !sigismember(&mine, SIGTERM));
    gpb_crew_end(&queue);
    gpb_crew_begin(&queue);
    gpb_crew_end(&queue);
    wait_for_workers(4);
    CHECK(gpb_option_set("THREADS", "9") == 0);
    CHECK(gpb_crew_size() == 4);                             /* they are there */
}

static void traits(void **state)
{
    (void)state;
    in_child("5", traits_run);
}

/* This thread is bound to one core, as OpenMP does it; the process may use more, and so may the workers. */
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
    CHECK(gpb_crew_cores() >= 2 || access("/sys/fs/cgroup/cpu.max", R_OK) == 0);
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
    CHECK(gpb_crew_cores() == 1 && gpb_crew_size() == 0);
}

static void affinity(void **state)
{
    (void)state;
    in_child("0", one_core_run);
    in_child("3", affinity_run);
}

/* No thread to be had (for root the limit does not hold: it becomes nobody first). */
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

/* ---- fork */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_each), cmocka_unit_test(alone),    cmocka_unit_test(full),       cmocka_unit_test(producers),
        cmocka_unit_test(flooded),   cmocka_unit_test(cycles),   cmocka_unit_test(crowd),      cmocka_unit_test(asleep),
        cmocka_unit_test(traits),    cmocka_unit_test(affinity), cmocka_unit_test(no_threads), cmocka_unit_test(forks) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
