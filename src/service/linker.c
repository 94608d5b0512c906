/* SPDX-License-Identifier: MIT */
/* A fork must not happen while a thread of ours is inside the dynamic linker. glibc gives the child new locks
   for loading (2.36: dl_load_lock and dl_load_tls_lock). But the lock under which dl_iterate_phdr walks stays
   as it was, and so does a library that is half loaded.
   No lock is held across a fork, because the fork handlers of other libraries run between ours. They may wait
   for a lock under which another thread calls BLAS, and they may call BLAS themselves. Instead a fork
   announces itself and waits for the threads inside, and threads that come later wait for the fork. Both
   waits end in milliseconds, but on a machine whose cores are all busy they may take a hundred. Both have a
   limit, because the two threads may be part of a deadlock. A thread enters a handful of times in a process's
   life, so a deadlock costs the limit that often.
   Libraries may be half mapped even so: libcuda opens some inside cuInit. A child that finds the linker at
   work stays out of it. */
#include "src/service/linker.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dispatch/numbers.h"
#include "src/service/clock.h"

enum { FORK_WAITS_NS = 100000000, THREAD_WAITS_NS = 200000000, PAUSE_NS = 20000 };
/* Longest that a call waits for a thread that holds the linker and sleeps, and for one that does not. */
#define HOLDER_SLEEPS_NS INT64_C(100000000)
#define HOLDER_WORKS_NS INT64_C(5000000000)

static atomic_int inside, waiting;       /* threads in the linker; threads that wait for forks to end */
static atomic_int forks;                 /* forks under way */
static atomic_uint begun, given_up;      /* forks so far; `begun` when a thread last gave up waiting */
static atomic_bool spoiled;              /* this is the child of a fork that found the linker at work */

/* Of this thread. depth: how many times it has entered (a library's constructor may enter again); counted:
   `inside` counts it; forking: how many forks it is in (a handler may fork); announced: `forks` counts the
   first of them. */
static _Thread_local int depth __attribute__((tls_model("initial-exec")));
static _Thread_local int forking __attribute__((tls_model("initial-exec")));
static _Thread_local bool counted __attribute__((tls_model("initial-exec")));
static _Thread_local bool announced __attribute__((tls_model("initial-exec")));

/* Libraries are being mapped or unmapped by some thread. libcuda opens several while it starts. */
extern struct r_debug _r_debug __attribute__((weak));
static volatile __typeof__(_r_debug.r_state) *state(void)
{
    struct r_debug *linker = &_r_debug;
    return linker ? &linker->r_state : NULL;
}

static bool changes(void) { return state() && *state() != RT_CONSISTENT; }

static bool pause_before(int64_t end_ns)
{
    if (gpb_clock_ns() >= end_ns) return false;
    nanosleep(&(struct timespec){ 0, PAUSE_NS }, NULL);
    return true;
}

/* Threads that wait for forks to end go first. Otherwise several threads that fork could keep them waiting
   for ever. */
void gpb_linker_before_fork(void)
{
    const int before = errno;
    int cancel;
    if (forking++ || depth) return;      /* libcuda forks inside cuInit; a constructor may */
    const int64_t turn_ns = gpb_clock_ns() + THREAD_WAITS_NS;      /* by then each of them has given up */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    while (atomic_load(&waiting) && pause_before(turn_ns));
    const int64_t end_ns = gpb_clock_ns() + FORK_WAITS_NS;
    announced = true;
    atomic_fetch_add(&begun, 1);
    atomic_fetch_add(&forks, 1);
    while ((atomic_load(&inside) || changes()) && pause_before(end_ns));
    pthread_setcancelstate(cancel, NULL);
    errno = before;
}

void gpb_linker_in_parent(void)
{
    if (--forking || !announced) return;
    announced = false;
    atomic_fetch_sub(&forks, 1);
}

/* Of all threads and forks, only this thread's are left. The program may open libraries in the child. glibc
   asserts that none is being mapped (dl_open_worker_begin: r_state == RT_CONSISTENT), and goes on with one
   that is half loaded, so it is told that nothing is. */
void gpb_linker_in_child(void)
{
    if (!depth && (atomic_load(&inside) || changes())) {
        atomic_store(&spoiled, true);
        if (changes()) *state() = RT_CONSISTENT;
    }
    if (--forking == 0) announced = false;
    atomic_store(&forks, announced);
    atomic_store(&inside, counted);
    atomic_store(&waiting, 0);
}

/* Either a fork that begins sees this thread inside, or this thread sees the fork. */
static bool go_in(void)
{
    counted = true;
    atomic_fetch_add(&inside, 1);
    if (!atomic_load(&forks)) return true;
    atomic_fetch_sub(&inside, 1);
    return counted = false;
}

/* A fork that does not end may wait for a lock that this thread holds. Then this thread goes in beside it,
   and no fork begins until it has left. One such wait per fork is enough. */
static void wait_and_go_in(void)
{
    const int64_t end_ns = gpb_clock_ns() + THREAD_WAITS_NS;
    bool in = false;
    atomic_fetch_add(&waiting, 1);
    while (!in && atomic_load(&given_up) != atomic_load(&begun) && pause_before(end_ns)) in = go_in();
    atomic_fetch_sub(&waiting, 1);
    if (in) return;
    atomic_store(&given_up, atomic_load(&begun));
    counted = true;
    atomic_fetch_add(&inside, 1);
}

int gpb_linker_enter(void)
{
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if (depth++ == 0 && !forking && !go_in()) wait_and_go_in();
    return cancel;
}

bool gpb_linker_try(int *cancel)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
    const bool in = depth || (!forking && go_in());
    if (in) depth++;
    else pthread_setcancelstate(*cancel, NULL);
    return in;
}

void gpb_linker_leave(int cancel)
{
    if (--depth == 0 && counted) {
        counted = false;
        atomic_fetch_sub(&inside, 1);
    }
    pthread_setcancelstate(cancel, NULL);
}

/* ---- who holds the linker */

/* glibc's locks for opening libraries, among what else is in its _rtld_global. Found when this library is
   loaded, because that takes the lock. */
static const atomic_int *words;
static size_t word_count;

__attribute__((constructor)) static void find_locks(void)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *at = dlsym(RTLD_DEFAULT, "_rtld_global");
    if (!at || !dladdr1(at, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol) return;
    word_count = symbol->st_size / sizeof *words;
    words = at;
}

/* The thread that holds one of them, unless it is this one: 0 if there is none. They are told by the words
   that a recursive pthread_mutex_t begins with while somebody has it (bits/struct_mutex.h), and by an owner
   that is a thread of this process. */
static int holder(void)
{
    enum { TAKEN, TIMES, OWNER, USERS, KIND, WORDS };
    const int me = (int)syscall(SYS_gettid);
    for (size_t i = 0; i + WORDS <= word_count; i += 2) {
        const atomic_int *lock = words + i;
        const int owner = lock[OWNER];
        if (lock[TAKEN] > 0 && lock[TIMES] > 0 && owner > 0 && owner != me && lock[USERS] == 1
            && lock[KIND] == PTHREAD_MUTEX_RECURSIVE && syscall(SYS_tgkill, getpid(), owner, 0) == 0)
            return owner;
    }
    return 0;
}

/* The CPU time of a thread of this process, by the clock that pthread_getcpuclockid names. */
static int64_t cpu_ns(int thread)
{
    enum { OF_THREAD_BY_SCHEDULER = 6 };
    struct timespec now = { 0, 0 };
    clock_gettime((clockid_t)(~(unsigned)thread << 3 | OF_THREAD_BY_SCHEDULER), &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Waits while somebody holds the linker. Returns who still does: a thread that has been asleep for a while,
   or has been at it for long. A thread that loads libraries is awake, and gives the lock back. */
static int await_holder(int now)
{
    const int64_t end_ns = gpb_clock_ns() + HOLDER_WORKS_NS;
    int64_t asleep_ns = gpb_clock_ns() + HOLDER_SLEEPS_NS, spent_ns = -1;
    int cancel, before = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    while (now && pause_before(min(asleep_ns, end_ns))) {
        const int64_t spent = cpu_ns(now);
        if (now != before || spent != spent_ns) asleep_ns = gpb_clock_ns() + HOLDER_SLEEPS_NS;
        before = now;
        spent_ns = spent;
        now = holder();
    }
    pthread_setcancelstate(cancel, NULL);
    return now;
}

/* One such wait for a holder is enough, because a constructor's thread may make thousands of calls. */
bool gpb_linker_is_held(void)
{
    static atomic_int waited_for;
    const int before = errno;
    int now = holder();
    if (now && now != atomic_load(&waited_for)) now = await_holder(now);
    if (now != atomic_load(&waited_for)) atomic_store(&waited_for, now);
    errno = before;
    return now;
}

bool gpb_linker_forking(void) { return forking; }

bool gpb_linker_spoiled(void) { return atomic_load_explicit(&spoiled, memory_order_relaxed); }
