/* SPDX-License-Identifier: MIT */
/* Workers, their seats and their sleep. No lock on a job's way: a queue's counters live in a seat, which is static, so a worker may look
   at any time; into the queue itself it looks only between taking a job and marking it done, and until that is reaped the queue stays. */
#include "src/copy/crew.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/service/clock.h"
#include "src/copy/contention.h"
#include "src/service/option.h"
#include "src/service/quota.h"
#include "src/service/thread.h"

enum {
    SEATS = 64,                      /* queues at once; 16 calls have 32 */
    WORKERS = 13,                    /* beside the conductor: 6 fill one direction of PCIe gen5, and both are used. Of 16 cores two are left to
                                        others: 16 callers of 2048 got 0.91 of one's work done, 0.84 beside 15 (H200: evidence/callers.md) */
    STACK = 128 << 10,
    SPIN_NS = 50000,                 /* a worker without work looks around this long: a sleeper takes about as long to come; */
    PATIENT_NS = 500000,             /* this long while there is a call, whose copying may have to wait for the link: 4096 took 0 to 12 %
                                        less in three runs, 11 % more in one (tests/bench/results/nvidia-h200/evidence/rings.md) */
    LOOKS = 32,                      /* between two glances at the clock, each with a yield: with more threads than cores 16 jobs of
                                        128 KiB took 160 us at the 90th percentile; without it 990, the slice of whoever spun */
    SLICE_NS = 2000000,
    FANOUT = 2                       /* sleepers that one who finds work wakes: a tree of them, however many jobs were posted */
};

typedef struct gpb_crew_seat {
    _Alignas(64) atomic_uint_fast64_t posted;        /* never reset: a number is one job for ever, and a stale one cannot be taken */
    gpb_crew_queue *queue;                           /* written before a post, read after taking */
    _Alignas(64) atomic_uint_fast64_t taken;
} seat;

static seat seats[SEATS];
static _Alignas(64) atomic_uint_fast64_t occupied;   /* a bit a seat */

/* Workers that look for work or are on their way to it (low half), and those that sleep or are about to (high half). Whoever wakes one
   moves it from the second to the first at once, so that the next post need not wake another; the ticket it leaves lets one sleeper go. */
enum { LOOKING = 1, ASLEEP = 1 << 16 };
static _Alignas(64) atomic_uint watch;
static _Alignas(64) atomic_uint tickets;

enum { NONE, STARTING, STARTED };
static atomic_int phase, size, cores;

static void futex(int operation, unsigned value)
{
    syscall(SYS_futex, &tickets, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* ---- jobs */

/* The seat's next job, now the caller's to do; or NULL. */
static gpb_crew_job *claim(seat *s)
{
    uint_fast64_t number = atomic_load_explicit(&s->taken, memory_order_relaxed);
    do
        if (number >= atomic_load(&s->posted)) return NULL;
    while (!atomic_compare_exchange_weak_explicit(&s->taken, &number, number + 1, memory_order_acq_rel, memory_order_relaxed));
    return &s->queue->jobs[(number - s->queue->first) % GPB_CREW_JOBS];
}

static void finish(gpb_crew_job *job)
{
    gpb_copy2d(&job->rectangle);
    atomic_store_explicit(&job->done, true, memory_order_release);
}

/* A job of the first occupied seat from *turn on that has one; the next turn begins behind it, so that every queue has its share. */
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

/* Jobs that nobody has taken. */
static uint64_t waiting(void)
{
    uint64_t sum = 0;
    for (uint64_t left = atomic_load(&occupied); left; left &= left - 1) {
        seat *s = &seats[__builtin_ctzll(left)];
        uint64_t taken = atomic_load_explicit(&s->taken, memory_order_relaxed), posted = atomic_load(&s->posted);
        if (posted > taken) sum += posted - taken;
    }
    return sum;
}

/* ---- sleeping and waking. Lost posts: a post is visible before its poster reads `watch`; a worker leaves LOOKING before it looks a last
   time, for sleep or for a job (all sequentially consistent). So the worker sees the post, or the poster sees that nobody looks. Beside
   threads of the host BLAS fewer may be awake (contention.h), and a post may wake nobody: then somebody is awake, for at least one may be, and
   whoever is, with a job in hand or on the way to one, looks again before it sleeps. */

/* So many more may be awake. While the workers are being created `size` is 0: none is held back. */
static int room(unsigned now)
{
    const int awake = atomic_load_explicit(&size, memory_order_relaxed) - (int)(now / ASLEEP);
    return gpb_contention_workers() - awake;
}

/* Wakes sleepers, at most `most`, while more jobs wait than workers are looking, and there is room for them. */
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

/* Back from ASLEEP to LOOKING, unless a ticket is already there for it, or as many as may be are awake, who will look. */
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
            if (atomic_compare_exchange_weak_explicit(&tickets, &now, now - 1, memory_order_acquire, memory_order_relaxed)) return;
        futex(FUTEX_WAIT, 0);
    }
}

/* A job, however long that takes to come. */
static gpb_crew_job *look(unsigned *turn)
{
    for (;; nap()) {
        const int64_t since = gpb_clock_ns();
        do {
            for (int i = 0; i < LOOKS; i++) {
                gpb_crew_job *job = take(turn);
                if (job) return job;
                __builtin_ia32_pause();
            }
            if (gpb_contention_is_high()) break;        /* who sleeps is woken at once, who has spun or yielded is not (EEVDF: it has had its share) */
            if (room(atomic_load_explicit(&watch, memory_order_relaxed)) < 0) break;      /* one too many beside the host's threads */
            sched_yield();
        } while (gpb_clock_ns() - since < (atomic_load_explicit(&occupied, memory_order_relaxed) ? PATIENT_NS : SPIN_NS));
    }
}

/* ---- the workers */

/* The larger of the affinities of the main thread and of this one, which OpenMP may have bound to a core. Its size; 0: unknown. */
static int widest(cpu_set_t *set)
{
    cpu_set_t mine;
    int count = sched_getaffinity(getpid(), sizeof *set, set) == 0 ? CPU_COUNT(set) : 0;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0 || CPU_COUNT(&mine) <= count) return count;
    *set = mine;
    return CPU_COUNT(set);
}

/* Who is woken beside a thread that spins runs at once only if the slice it asks for is shorter than the other's (EEVDF with slices of a
   thread's own: Linux 6.12; 2.8 ms are usual on 8 cores and more), and what it has begun to copy should be done by the slice's end. Older
   kernels ignore it. Policy and niceness stay as they came from the program. */
static void ask_for_slice(void)
{
    struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t slice, deadline, period; } attributes = { 0 };
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 || attributes.policy != SCHED_OTHER) return;
    attributes.slice = SLICE_NS;
    syscall(SYS_sched_setattr, 0, &attributes, 0);
}

static void *work(void *unused)
{
    static atomic_uint arrivals;
    unsigned turn = atomic_fetch_add(&arrivals, 1);
    cpu_set_t set;
    if (widest(&set)) sched_setaffinity(0, sizeof set, &set);        /* of its own it has what its creator had */
    pthread_setname_np(pthread_self(), "gpublas-copy");
    ask_for_slice();
    for (;;) {
        gpb_crew_job *job = look(&turn);
        atomic_fetch_sub(&watch, LOOKING);
        rouse(waiting(), FANOUT);
        do finish(job);
        while ((job = take(&turn)));
        atomic_fetch_add(&watch, LOOKING);
    }
    return unused;
}

int gpb_crew_cores(void)
{
    int count = atomic_load_explicit(&cores, memory_order_relaxed);
    if (count) return count;
    cpu_set_t set;
    const int granted = gpb_quota_cores("");
    count = widest(&set);
    if (!count) count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (count > granted) count = granted;
    if (count < 1) count = 1;
    atomic_store_explicit(&cores, count, memory_order_relaxed);
    return count;
}

int gpb_crew_size(void)
{
    if (atomic_load_explicit(&phase, memory_order_acquire) == STARTED) return atomic_load_explicit(&size, memory_order_relaxed);
    const int threads = (int)gpb_option_number(GPB_OPTION_THREADS);
    if (threads) return threads - 1;
    return gpb_crew_cores() > WORKERS ? WORKERS : gpb_crew_cores() - 1;
}

/* Only this thread is left: what the others were doing is forgotten, and the next call starts workers of its own. */
void gpb_crew_in_child(void)
{
    for (int i = 0; i < SEATS; i++) {
        atomic_store_explicit(&seats[i].posted, 0, memory_order_relaxed);
        atomic_store_explicit(&seats[i].taken, 0, memory_order_relaxed);
    }
    atomic_store(&occupied, 0);
    atomic_store(&watch, 0);
    atomic_store(&tickets, 0);
    atomic_store(&cores, 0);
    atomic_store(&size, 0);
    atomic_store(&phase, NONE);
}

/* Creates the workers, or as many as can be had. One thread does; others do not wait for it, they help themselves. */
static void start(void)
{
    int none = NONE, count = 0, refused = 0;
    const int wanted = gpb_crew_size();
    if (!atomic_compare_exchange_strong(&phase, &none, STARTING)) return;
    while (count < wanted && !refused) {
        atomic_fetch_add(&watch, LOOKING);
        refused = gpb_thread_begin(work, STACK);
        if (refused == EINVAL) refused = gpb_thread_begin(work, 0);      /* thread-local variables of the program fill the small stack */
        if (refused) atomic_fetch_sub(&watch, LOOKING);
        else count++;
    }
    atomic_store_explicit(&size, count, memory_order_relaxed);
    atomic_store_explicit(&phase, STARTED, memory_order_release);
}

/* ---- the conductor's side */

void gpb_crew_begin(gpb_crew_queue *queue)
{
    if (atomic_load_explicit(&phase, memory_order_acquire) == NONE) start();
    uint64_t before = atomic_load_explicit(&occupied, memory_order_relaxed), free;
    do free = ~before & (before + 1);                    /* its lowest zero; 0: there is none */
    while (free && !atomic_compare_exchange_weak(&occupied, &before, before | free));
    queue->posted = queue->reaped = 0;
    queue->seat = free ? &seats[__builtin_ctzll(free)] : NULL;
    if (!free) return;
    queue->first = atomic_load_explicit(&queue->seat->posted, memory_order_relaxed);
    queue->seat->queue = queue;
}

bool gpb_crew_post(gpb_crew_queue *queue, const gpb_copy2d_job *rectangle)
{
    if (queue->posted - queue->reaped == GPB_CREW_JOBS) return false;
    gpb_crew_job *job = &queue->jobs[queue->posted++ % GPB_CREW_JOBS];
    job->rectangle = *rectangle;
    atomic_store_explicit(&job->done, false, memory_order_relaxed);
    if (queue->seat) {
        atomic_store(&queue->seat->posted, queue->first + queue->posted);
        rouse(1, 1);
    } else {
        finish(job);
    }
    return true;
}

bool gpb_crew_reap(gpb_crew_queue *queue)
{
    if (queue->reaped == queue->posted) return false;
    if (!atomic_load_explicit(&queue->jobs[queue->reaped % GPB_CREW_JOBS].done, memory_order_acquire)) return false;
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
    if (queue->seat) atomic_fetch_and(&occupied, ~(UINT64_C(1) << (queue->seat - seats)));
    queue->seat = NULL;
}
