/* SPDX-License-Identifier: MIT */
/* Workers, their seats and their sleep. No lock is on a job's way. A queue's counters live in a seat, which
   is static memory, so a worker may read them at any time. A worker reads the queue itself only between
   taking a job and marking it done, and the queue exists until that job is reaped. */
#include "src/copy/crew.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/copy/contention.h"
#include "src/copy/crowd.h"
#include "src/service/clock.h"
#include "src/service/cores.h"
#include "src/service/events.h"
#include "src/service/option.h"
#include "src/service/thread.h"

enum {
    SEATS = 64,                      /* queues at once; 16 calls have 32 */
    OF_A_CALL = 2,                   /* queues, one for each direction */
    WORKERS = 13,                    /* beside the calling thread. 6 fill one direction of PCIe gen5, and both
                                        are used. Two of 16 cores are left to others: with 13 workers, 16
                                        callers of 2048 got 0.91 of one caller's work done; with 15 workers,
                                        0.84 (H200: evidence/callers.md) */
    STACK = 128 << 10,
    SPIN_NS = 50000,                 /* a worker without work looks for it this long, because a sleeper takes
                                        about as long to come */
    PATIENT_NS = 500000,             /* and this long during a call, whose copying may have to wait for the
                                        link: 4096 took 0 to 12 % less time in three runs, and 11 % more in
                                        one (tests/bench/results/nvidia-h200/evidence/rings.md) */
    LOOKS = 32,                      /* attempts to find a job between two readings of the clock, which come
                                        with a yield: with more threads than cores, 16 jobs of 128 KiB took
                                        160 us at the 90th percentile; without the yield 990, because they
                                        waited for the time slices of spinning threads */
    SLICE_NS = 2000000,
    FANOUT = 2                       /* sleepers that a worker wakes if it finds work. So they wake in a tree,
                                        however many jobs were posted */
};

typedef struct gpb_crew_seat {
    _Alignas(64) atomic_uint_fast64_t posted;        /* never reset: a number means one job for ever, so a
                                                        stale number cannot be taken */
    gpb_crew_queue *queue;                           /* written before a post, read after taking */
    _Alignas(64) atomic_uint_fast64_t taken;
} seat;

static seat seats[SEATS];
static _Alignas(64) atomic_uint_fast64_t occupied;   /* one bit per seat */

/* Low half: workers that look for work or are on their way to it. High half: workers that sleep or are about
   to. The thread that wakes a worker moves it from the high half to the low half at once, so that the next
   post need not wake another. The ticket that it leaves lets one sleeper go. */
enum { LOOKING = 1, ASLEEP = 1 << 16 };
static _Alignas(64) atomic_uint watch;
static _Alignas(64) atomic_uint tickets;

enum { NONE, STARTING, STARTED };
static atomic_int phase, size;

static void futex(int operation, unsigned value)
{
    syscall(SYS_futex, &tickets, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* ---- jobs */

/* The seat's next job, which the caller must now do; or NULL. */
static gpb_crew_job *claim(seat *s)
{
    uint_fast64_t number = atomic_load_explicit(&s->taken, memory_order_relaxed);
    do
        if (number >= atomic_load(&s->posted)) return NULL;
    while (!atomic_compare_exchange_weak_explicit(&s->taken, &number, number + 1, memory_order_acq_rel,
                                                  memory_order_relaxed));
    return &s->queue->jobs[(number - s->queue->first) % GPB_CREW_JOBS];
}

static void do_job(const gpb_crew_job *job)
{
    switch (job->kind) {
    case GPB_CREW_COPY: gpb_copy2d(&job->of.rectangle); break;
    case GPB_CREW_DIGEST: gpb_digest_columns(&job->of.digest); break;
    case GPB_CREW_COLUMNS: gpb_columns_move(&job->of.columns); break;
    }
}

static size_t bytes_of(const gpb_crew_job *job)
{
    const gpb_copy2d_job *copy = &job->of.rectangle;
    const gpb_digest_job *digest = &job->of.digest;
    const gpb_columns_job *columns = &job->of.columns;
    switch (job->kind) {
    case GPB_CREW_DIGEST: return (size_t)(digest->rows * (digest->last - digest->first)) * digest->element;
    case GPB_CREW_COLUMNS: return (size_t)(columns->rows * columns->count) * columns->element;
    default: return (size_t)(copy->rows * copy->cols) * copy->element;
    }
}

static void do_traced(const gpb_crew_job *job)
{
    static const char *const names[] = { [GPB_CREW_COPY] = "copy", [GPB_CREW_DIGEST] = "digest",
                                         [GPB_CREW_COLUMNS] = "columns" };
    char members[64];
    const size_t bytes = bytes_of(job);
    const double begin_s = gpb_clock_s();
    do_job(job);
    snprintf(members, sizeof members, "\"bytes\": %zu", bytes);
    gpb_events_add("copy", names[job->kind], begin_s, gpb_clock_s(), members);
}

static void finish(gpb_crew_job *job)
{
    if (gpb_option_traces()) do_traced(job);
    else do_job(job);
    atomic_store_explicit(&job->done, true, memory_order_release);
}

/* A job of the first occupied seat from *turn on that has one. The next turn begins behind that seat, so that
   every queue gets its share. */
static gpb_crew_job *take(unsigned *turn)
{
    const unsigned first = *turn % SEATS;
    uint64_t left = atomic_load(&occupied);
    for (left = left >> first | left << (-first % SEATS); left; left &= left - 1) {
        unsigned at = (first + (unsigned)__builtin_ctzll(left)) % SEATS;
        gpb_crew_job *job = claim(&seats[at]);
        if (!job) continue;
        *turn = at + 1;
        return job;
    }
    return NULL;
}

/* The number of jobs that nobody has taken. */
static uint64_t waiting(void)
{
    uint64_t sum = 0;
    for (uint64_t left = atomic_load(&occupied); left; left &= left - 1) {
        seat *s = &seats[__builtin_ctzll(left)];
        const uint64_t taken = atomic_load_explicit(&s->taken, memory_order_relaxed);
        const uint64_t posted = atomic_load(&s->posted);
        if (posted > taken) sum += posted - taken;
    }
    return sum;
}

/* ---- sleeping and waking. No post is lost: a post is visible before its poster reads `watch`, and a worker
   leaves LOOKING before it looks a last time, for sleep or for a job (all sequentially consistent). So either
   the worker sees the post, or the poster sees that nobody looks.
   While the host BLAS's threads are active, fewer workers may be awake (contention.h), and a post may wake
   nobody. Then at least one worker is awake, because at least one may be. It has a job or is on its way to
   one, and looks again before it sleeps. */

/* How many more workers may be awake; negative: too many are. While the workers are being created `size` is
   0, and none is held back. */
static int room(unsigned now)
{
    const int awake = atomic_load_explicit(&size, memory_order_relaxed) - (int)(now / ASLEEP);
    return gpb_contention_workers() - awake;
}

/* Wakes at most `most` sleepers, if more jobs wait than workers look for work, and if more workers may be
   awake. */
static void rouse(uint64_t jobs, unsigned most)
{
    unsigned now = atomic_load(&watch), asleep, some;
    do {
        asleep = now / ASLEEP;
        if (!asleep || jobs <= now % ASLEEP) return;
        const int more = room(now);
        if (more <= 0) return;
        some = (unsigned)(jobs - now % ASLEEP < most ? jobs - now % ASLEEP : most);
        if (some > asleep) some = asleep;
        if (some > (unsigned)more) some = (unsigned)more;
    } while (!atomic_compare_exchange_weak(&watch, &now, now - some * ASLEEP + some * LOOKING));
    atomic_fetch_add_explicit(&tickets, some, memory_order_release);
    futex(FUTEX_WAKE, some);
}

/* Moves this worker from ASLEEP back to LOOKING. False: a ticket for it is already there, or as many workers
   are awake as may be, and one of them will look. */
static bool stay_up(void)
{
    unsigned now = atomic_load(&watch);
    while (now / ASLEEP && room(now) > 0)
        if (atomic_compare_exchange_weak(&watch, &now, now - ASLEEP + LOOKING)) return true;
    return false;
}

static void nap(void)
{
    atomic_fetch_add(&watch, ASLEEP - LOOKING);
    if (waiting() && stay_up()) return;
    for (;;) {
        unsigned now = atomic_load_explicit(&tickets, memory_order_relaxed);
        while (now)
            if (atomic_compare_exchange_weak_explicit(&tickets, &now, now - 1, memory_order_acquire,
                                                      memory_order_relaxed))
                return;
        futex(FUTEX_WAIT, 0);
    }
}

static int64_t patience_ns(void)
{
    return atomic_load_explicit(&occupied, memory_order_relaxed) ? PATIENT_NS : SPIN_NS;
}

/* Waits for a job, for ever if need be. */
static gpb_crew_job *await_job(unsigned *turn, gpb_crowd_worker *self)
{
    for (;; nap()) {
        const int64_t since = gpb_clock_ns();
        gpb_crowd_worker_looks(self, since);
        do {
            for (int i = 0; i < LOOKS; i++) {
                gpb_crew_job *job = take(turn);
                if (job) return job;
                __builtin_ia32_pause();
            }
            /* A sleeping thread runs as soon as it is woken. One that has spun or yielded does not, because
               it has had its share of the processor (EEVDF). */
            if (gpb_contention_is_high()) break;
            const bool too_many = room(atomic_load_explicit(&watch, memory_order_relaxed)) < 0;
            if (too_many) break;
            sched_yield();
        } while (gpb_clock_ns() - since < patience_ns());
        gpb_crowd_worker_sleeps(self);
    }
}

/* ---- the workers */

/* Asks for short time slices. A thread that is woken beside a spinning one runs at once only if its slice is
   shorter than the other's (EEVDF with a slice per thread: Linux 6.12; 2.8 ms are usual on 8 cores and more).
   The slice should still suffice for one job. Older kernels ignore this. Policy and niceness stay as the
   program set them. */
static void ask_for_slice(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t slice, deadline, period;
    } attributes = { 0 };
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
    if (attributes.policy != SCHED_OTHER) return;
    attributes.slice = SLICE_NS;
    syscall(SYS_sched_setattr, 0, &attributes, 0);
}

static void *work(void *unused)
{
    static atomic_uint arrivals;
    unsigned turn = atomic_fetch_add(&arrivals, 1);
    gpb_crowd_worker self = { 0 };
    cpu_set_t set;
    if (gpb_cores_affinity(&set)) sched_setaffinity(0, sizeof set, &set);      /* its own is its creator's */
    pthread_setname_np(pthread_self(), "gpublas-copy");
    ask_for_slice();
    for (;;) {
        gpb_crew_job *job = await_job(&turn, &self);
        atomic_fetch_sub(&watch, LOOKING);
        rouse(waiting(), FANOUT);
        do finish(job);
        while ((job = take(&turn)));
        atomic_fetch_add(&watch, LOOKING);
    }
    return unused;
}

int gpb_crew_size(void)
{
    const bool started = atomic_load_explicit(&phase, memory_order_acquire) == STARTED;
    if (started) return atomic_load_explicit(&size, memory_order_relaxed);
    const int threads = (int)gpb_option_number(GPB_OPTION_THREADS);
    if (threads) return threads - 1;
    return gpb_cores() > WORKERS ? WORKERS : gpb_cores() - 1;
}

/* Only this thread is left. The state of the others is forgotten, and the next call starts new workers. */
void gpb_crew_in_child(void)
{
    for (int i = 0; i < SEATS; i++) {
        atomic_store_explicit(&seats[i].posted, 0, memory_order_relaxed);
        atomic_store_explicit(&seats[i].taken, 0, memory_order_relaxed);
    }
    atomic_store(&occupied, 0);
    atomic_store(&watch, 0);
    atomic_store(&tickets, 0);
    atomic_store(&size, 0);
    atomic_store(&phase, NONE);
    gpb_crowd_in_child();
}

/* Creates the workers, or as many as the system allows. One thread does it. Others do not wait; they copy by
   themselves. */
static void start(void)
{
    int none = NONE, count = 0, refused = 0;
    const int wanted = gpb_crew_size();
    if (!atomic_compare_exchange_strong(&phase, &none, STARTING)) return;
    while (count < wanted && !refused) {
        atomic_fetch_add(&watch, LOOKING);
        refused = gpb_thread_begin(work, STACK);
        if (refused == EINVAL) refused = gpb_thread_begin(work, 0);      /* the program's thread-local
                                                                            variables fill the small stack */
        if (refused) atomic_fetch_sub(&watch, LOOKING);
        else count++;
    }
    atomic_store_explicit(&size, count, memory_order_relaxed);
    atomic_store_explicit(&phase, STARTED, memory_order_release);
}

/* ---- the calling thread's side */

void gpb_crew_begin(gpb_crew_queue *queue)
{
    if (atomic_load_explicit(&phase, memory_order_acquire) == NONE) start();
    uint64_t before = atomic_load_explicit(&occupied, memory_order_relaxed), free;
    do free = ~before & (before + 1);                    /* the lowest zero bit; 0: there is none */
    while (free && !atomic_compare_exchange_weak(&occupied, &before, before | free));
    if (!before) gpb_crowd_call_begins();
    else if (__builtin_popcountll(before) >= OF_A_CALL) gpb_crowd_disturb();
    queue->posted = queue->reaped = 0;
    queue->seat = free ? &seats[__builtin_ctzll(free)] : NULL;
    if (!free) return;
    queue->first = atomic_load_explicit(&queue->seat->posted, memory_order_relaxed);
    queue->seat->queue = queue;
}

/* The next job's place. NULL: there is none. */
static gpb_crew_job *place_for(gpb_crew_queue *queue, enum gpb_crew_kind kind)
{
    if (queue->posted - queue->reaped == GPB_CREW_JOBS) return NULL;
    gpb_crew_job *job = &queue->jobs[queue->posted % GPB_CREW_JOBS];
    job->kind = kind;
    return job;
}

static bool publish(gpb_crew_queue *queue, gpb_crew_job *job)
{
    queue->posted++;
    atomic_store_explicit(&job->done, false, memory_order_relaxed);
    if (queue->seat) {
        atomic_store(&queue->seat->posted, queue->first + queue->posted);
        rouse(1, 1);
    } else {
        finish(job);
    }
    return true;
}

bool gpb_crew_post(gpb_crew_queue *queue, const gpb_copy2d_job *rectangle)
{
    gpb_crew_job *job = place_for(queue, GPB_CREW_COPY);
    if (!job) return false;
    job->of.rectangle = *rectangle;
    return publish(queue, job);
}

bool gpb_crew_post_digest(gpb_crew_queue *queue, const gpb_digest_job *digest)
{
    gpb_crew_job *job = place_for(queue, GPB_CREW_DIGEST);
    if (!job) return false;
    job->of.digest = *digest;
    return publish(queue, job);
}

bool gpb_crew_post_columns(gpb_crew_queue *queue, const gpb_columns_job *columns)
{
    gpb_crew_job *job = place_for(queue, GPB_CREW_COLUMNS);
    if (!job) return false;
    job->of.columns = *columns;
    return publish(queue, job);
}

bool gpb_crew_reap(gpb_crew_queue *queue)
{
    if (queue->reaped == queue->posted) return false;
    const gpb_crew_job *job = &queue->jobs[queue->reaped % GPB_CREW_JOBS];
    if (!atomic_load_explicit(&job->done, memory_order_acquire)) return false;
    queue->reaped++;
    return true;
}

bool gpb_crew_help(gpb_crew_queue *queue)
{
    gpb_crew_job *job = queue->seat ? claim(queue->seat) : NULL;
    if (job) finish(job);
    return job != NULL;
}

void gpb_crew_end(gpb_crew_queue *queue)
{
    while (queue->reaped != queue->posted)
        if (!gpb_crew_reap(queue) && !gpb_crew_help(queue)) sched_yield();
    if (!queue->seat) return;
    const uint64_t mine = UINT64_C(1) << (queue->seat - seats);
    if (atomic_load(&occupied) == mine) gpb_crowd_call_ends();
    atomic_fetch_and(&occupied, ~mine);
    queue->seat = NULL;
}
