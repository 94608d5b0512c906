/* SPDX-License-Identifier: MIT */
/* The CPU that runs CUDA threads; see emulate.h. */
#include "tests/emulate/emulate.h"

#include <link.h>
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <semaphore.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

enum state { RUNS, AT_BLOCK_BARRIER, AT_WARP_BARRIER, SHOWS, AT_NAMED_BARRIER, AT_CLUSTER_BARRIER, ENDED };
/* After so many turns of all threads in each of which they only waited, they would wait for ever. A block may
   run ahead of others by so many turns. */
enum { WARP = 32, STACK = 128 << 10, TOLD = 5, NAMES = 16, MOST_THREADS = 1024, PATIENCE = 10, AHEAD = 60 };

struct copy {
    float *to;
    const float *from;
    int bytes, whole;
};

/* Something that runs, or has stopped: its stack, as AddressSanitizer wants to know it, and where that ends
   while it stands still. */
struct context {
    const void *bottom;
    size_t bytes;
    void *top;
};

struct thread {
    context at;
    std::unique_ptr<char[]> stack;
    state now;
    bool waits;                          /* has only looked once more at what it waits for */
    const char *place;                   /* of the barrier */
    unsigned number, awaited;            /* its number, and how many threads meet at it */
    std::vector<copy> copies;            /* of all groups; those before `done` have been made */
    std::vector<size_t> groups;          /* where each ends; those before `over` have been waited for */
    size_t done, over;
    unsigned shows, votes;               /* how many times it has shown something, and voted */
};

/* Copies that an mbarrier counts; stores bring their bytes with them. */
struct counted {
    char *to;
    const char *from;
    unsigned bytes;
    char stored[16];
};
struct mbarrier {
    unsigned arrivals, missing;          /* of a phase; of this one */
    int64_t bytes;                       /* announced and not copied yet */
    unsigned phase;                      /* how many have ended */
    std::vector<counted> copies;         /* that have not been made */
};

struct block {
    std::vector<thread> threads;
    context scheduler;
    size_t current, ended;               /* the thread that runs; how many have ended */
    std::map<unsigned, mbarrier> mbarriers;
    /* What threads have shown and voted, in two places in turn. */
    char shown[2][MOST_THREADS][GPB_EMULATE_SHOWN];
    bool said[2][MOST_THREADS];
    /* Of one that runs together with others: */
    gpb_emulate_dim at;
    char *origin;                        /* of the addresses of its shared memory, once it has begun */
    bool moved, over;                    /* in its last turn something went on; it has ended */
    pthread_t system;
    sem_t turn;
};

gpb_emulate_place gpb_emulate_at;
static gpb_emulate_launch work;
static std::deque<block> blocks(1);
static block *here = &blocks[0];         /* the one that runs */
static sem_t turn_is_over;
static std::mt19937 random_numbers(1);
static int faults;
long gpb_emulate_products;
/* The origin of the addresses of shared memory. */
#ifdef GPB_EMULATE_TOGETHER
alignas(1024) static thread_local float origin[4];
#else
alignas(1024) static float origin[4];
#endif

static thread &self() { return here->threads[here->current]; }

static void fault(const char *what, const char *where)
{
    if (faults++ < TOLD)
        printf("WRONG: %s at %s, block %u, thread %zu\n", what, where, gpb_emulate_at.block.x,
               here->current);
}

static void give_up(const char *what, const char *where)
{
    fault(what, where);
    fflush(stdout);
    _exit(1);
}

/* ---- contexts. swapcontext took half of the time: it asks the system for the signal mask, and under
   AddressSanitizer it forgets what lies beside the variables of the whole stack. */

/* Leaves on the stack what a function has to keep, and where that ends in *from. Goes on at `to`. */
extern "C" void gpb_emulate_switch(void **from, void *to);
asm(R"(
    .text
    .type gpb_emulate_switch, @function
gpb_emulate_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size gpb_emulate_switch, . - gpb_emulate_switch
)");

/* from NULL: it does not come back. */
static void go_on(context *from, context &to)
{
    void *left, *fake = NULL;
    __sanitizer_start_switch_fiber(from ? &fake : NULL, to.bottom, to.bytes);
    gpb_emulate_switch(from ? &from->top : &left, to.top);
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
}

/* A stack on which that begins, which may not return. What went before did not either, but all that it called
   has: of AddressSanitizer's marks only those around its own variables and go_on's are left. To wipe those of
   the whole stack was 29 % of test_emulate_stores. */
static void lay_out(context &c, char *stack, void (*begin)())
{
    enum { KEPT = 6, MARKED = 2048 };    /* registers; bytes */
    ASAN_UNPOISON_MEMORY_REGION(stack + STACK - MARKED, MARKED);
    void **top = (void **)((uintptr_t)(stack + STACK) / 16 * 16) - 1;
    *top = NULL;                         /* where a function's caller would be */
    *--top = (void *)begin;
    top -= KEPT;
    memset(top, 0, KEPT * sizeof *top);
    c = { stack, STACK, top };
}

/* ---- what threads ask for */

static bool inside(const gpb_emulate_span &span, const char *from, int bytes)
{
    return from >= span.low && from + bytes <= span.high;
}

static bool allowed(const float *to, const float *from, int bytes, int whole)
{
    const char *at = (const char *)from;
    const bool ours = bytes == 0 || inside(work.a, at, bytes) || inside(work.b, at, bytes);
    const bool aligned = (((bytes ? (uintptr_t)from : 0) | (uintptr_t)to)) % whole == 0;
    if (!ours || !aligned) fault("a copy from outside the operands, or misaligned", "cp.async");
    return ours && aligned;
}

static void perform(const copy &c)
{
    memset(c.to, 0, c.whole);
    memcpy(c.to, c.from, c.bytes);
}

void gpb_emulate_copy(float *to, const float *from, int bytes, int whole)
{
    if (!allowed(to, from, bytes, whole)) return;
    if (work.early) perform({ to, from, bytes, whole });
    else self().copies.push_back({ to, from, bytes, whole });
}

void gpb_emulate_commit() { self().groups.push_back(self().copies.size()); }

void gpb_emulate_wait(int left)
{
    thread &t = self();
    for (; t.groups.size() - t.over > (size_t)left; t.over++)
        for (; t.done < t.groups[t.over]; t.done++) perform(t.copies[t.done]);
}

unsigned gpb_emulate_shared_address(const float *at)
{
    return (unsigned)((const char *)at - (const char *)origin);
}
float *gpb_emulate_shared(unsigned address) { return (float *)((char *)origin + (int)address); }

/* ---- mbarriers */

static mbarrier &mbarrier_at(block &b, unsigned at)
{
    const auto found = b.mbarriers.find(at);
    if (found == b.mbarriers.end()) give_up("a barrier that was not initialised", "an mbarrier");
    return found->second;
}

static void settle(mbarrier &b)
{
    if (b.missing || b.bytes) return;
    b.missing = b.arrivals;
    b.phase++;
}

static void perform(mbarrier &b, const counted &c)
{
    if (c.from) memcpy(c.to, c.from, c.bytes);
    else memcpy(c.to, c.stored, c.bytes);
    b.bytes -= c.bytes;
}

static void count(mbarrier &b, const counted &c)
{
    if (!work.early) b.copies.push_back(c);
    else perform(b, c);
    settle(b);
}

void gpb_emulate_mbarrier_init(unsigned at, unsigned arrivals)
{
    here->mbarriers[at] = { arrivals, arrivals, 0, 0, {} };
}

void gpb_emulate_mbarrier_arrive(unsigned at, unsigned bytes)
{
    mbarrier &b = mbarrier_at(*here, at);
    if (!b.missing) fault("more arrivals than a phase has", "an mbarrier");
    b.missing--;
    b.bytes += bytes;
    settle(b);
}

void gpb_emulate_mbarrier_copy(unsigned at, char *to, const char *from, unsigned bytes)
{
    if (from && !inside(work.a, from, bytes) && !inside(work.b, from, bytes)) {
        fault("a copy from outside the operands", "a tensor copy");
        from = NULL;
    }
    if (bytes > sizeof(counted::stored) && !from) give_up("zeros in larger pieces", "a tensor copy");
    count(mbarrier_at(*here, at), { to, from, bytes, {} });
}

void gpb_emulate_mbarrier_store(unsigned at, unsigned to_block, unsigned to, const void *bytes)
{
    if (to_block >= blocks.size() || !blocks[to_block].origin || blocks[to_block].over)
        give_up("a store to a block that has not begun, or has ended", "a cluster");
    block &there = blocks[to_block];
    counted c = { there.origin + (int)to, NULL, sizeof c.stored, {} };
    memcpy(c.stored, bytes, sizeof c.stored);
    count(mbarrier_at(there, at), c);
}

/* Others go first. */
void gpb_emulate_pause()
{
    self().waits = true;
    go_on(&self().at, here->scheduler);
}

/* Copies are made when somebody waits for them, or at once. */
void gpb_emulate_mbarrier_wait(unsigned at, unsigned parity)
{
    mbarrier &b = mbarrier_at(*here, at);
    while (b.phase % 2 == parity) {
        for (const counted &c : b.copies) perform(b, c);
        const bool any = !b.copies.empty();
        b.copies.clear();
        if (any) settle(b);
        if (b.phase % 2 == parity) gpb_emulate_pause();
    }
}

static void stop(state now, const char *place)
{
    thread &t = self();
    t.now = now;
    t.place = place;
    go_on(&t.at, here->scheduler);
}

void gpb_emulate_block_barrier(const char *place) { stop(AT_BLOCK_BARRIER, place); }
void gpb_emulate_warp_barrier(const char *place) { stop(AT_WARP_BARRIER, place); }
void gpb_emulate_cluster_barrier(const char *place)
{
    stop(work.together ? AT_CLUSTER_BARRIER : AT_BLOCK_BARRIER, place);
}
void gpb_emulate_named_barrier(unsigned number, unsigned count)
{
    if (number >= NAMES || count % WARP) fault("no such barrier", "a named barrier");
    self().number = number;
    self().awaited = count;
    stop(AT_NAMED_BARRIER, "a named barrier");
}

/* Two places in turn, because a thread that is ahead shows again only when all have seen what was shown
   before. */
const char *gpb_emulate_show(const void *what, int bytes, const char *place)
{
    const unsigned turn = self().shows++ % 2;
    memcpy(here->shown[turn][here->current], what, bytes);
    stop(SHOWS, place);
    return here->shown[turn][here->current / WARP * WARP];
}

bool gpb_emulate_any(bool vote, const char *place)
{
    const unsigned turn = self().votes++ % 2;
    bool *said = here->said[turn];
    said[here->current] = vote;
    gpb_emulate_block_barrier(place);
    return std::any_of(said, said + here->threads.size(), [](bool x) { return x; });
}

/* ---- a block */

static void start()
{
    __sanitizer_finish_switch_fiber(NULL, &here->scheduler.bottom, &here->scheduler.bytes);
    work.body();
    self().now = ENDED;
    go_on(NULL, here->scheduler);
}

#ifdef GPB_EMULATE_TOGETHER
/* What the program's own code has of each thread of the system: its shared memory. */
static int spoil(dl_phdr_info *info, size_t, void *)
{
    for (int x = 0; x < info->dlpi_phnum; x++)
        if (info->dlpi_phdr[x].p_type == PT_TLS)
            memset(info->dlpi_tls_data, 0xFF, info->dlpi_phdr[x].p_memsz);
    return 1;                            /* only of the first, which is the program */
}
#endif

static void begin_block()
{
#ifdef GPB_EMULATE_TOGETHER
    dl_iterate_phdr(spoil, NULL);
#endif
    if (work.threads > MOST_THREADS) give_up("so many threads", "a launch");
    here->threads.resize(work.threads);
    here->mbarriers.clear();
    here->ended = 0;
    for (thread &t : here->threads) {
        if (!t.stack) t.stack.reset(new char[STACK]);
        lay_out(t.at, t.stack.get(), start);
        t.now = RUNS;
        t.copies.clear();
        t.groups.clear();
        t.done = t.over = t.shows = t.votes = 0;
    }
}

/* True if all threads of [first, end) are at a barrier of that kind, and at the same one. Others may have
   ended if it does not count them. */
static bool meet(size_t first, size_t end, state at, bool ended_too)
{
    const char *place = NULL;
    for (size_t x = first; x < end; x++) {
        const thread &t = here->threads[x];
        if (ended_too && t.now == ENDED) continue;
        if (t.now != at) return false;
        if (!place) place = t.place;
        else if (place != t.place && strcmp(place, t.place)) return false;
    }
    return place;
}

/* Lets the threads at a named barrier go on if as many are there as it waits for, all with the same count.
   False: there are not. */
static bool release_named(unsigned number)
{
    std::vector<thread *> there;
    for (thread &t : here->threads)
        if (t.now == AT_NAMED_BARRIER && t.number == number) there.push_back(&t);
    if (there.empty() || there.size() != there[0]->awaited) return false;
    for (thread *t : there) {
        if (t->awaited != there.size())
            fault("threads that wait for different numbers of threads", "a named barrier");
        t->now = RUNS;
    }
    return true;
}

/* Lets threads go on that may. False: none may. */
static bool release()
{
    std::vector<thread> &threads = here->threads;
    bool any = false;
    for (unsigned number = 0; number < NAMES; number++) any = release_named(number) || any;
    for (size_t warp = 0; warp < threads.size(); warp += WARP)
        /* As the hardware has it: a thread that has ended is not waited for, but it shows nothing. */
        if (meet(warp, warp + WARP, AT_WARP_BARRIER, true) || meet(warp, warp + WARP, SHOWS, false)) {
            for (size_t x = warp; x < warp + WARP; x++)
                if (threads[x].now != ENDED) threads[x].now = RUNS;
            any = true;
        }
    if (any || here->ended == threads.size()) return any;
    if (!meet(0, threads.size(), AT_BLOCK_BARRIER, false)) return false;
    for (thread &t : threads) t.now = RUNS;
    return true;
}

/* Each thread that may run does so once. False: they only waited. */
static bool take_turns()
{
    std::vector<thread> &threads = here->threads;
    static std::vector<size_t> order;
    bool any = false;
    order.resize(threads.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_numbers);
    for (size_t x : order)
        if (threads[x].now == RUNS) {
            here->current = x;
            gpb_emulate_at.thread = { (unsigned)x, 0, 0 };
            threads[x].waits = false;
            go_on(&here->scheduler, threads[x].at);
            here->ended += threads[x].now == ENDED;
            any = any || !threads[x].waits;
        }
    if (release()) return true;
    const bool runs = std::any_of(threads.begin(), threads.end(),
                                  [](const thread &t) { return t.now == RUNS; });
    /* Or the hardware would hang, or go on with garbage. */
    if (!runs && here->ended < threads.size() && !meet(0, threads.size(), AT_CLUSTER_BARRIER, false)) {
        for (here->current = 0; self().now == ENDED;) here->current++;
        give_up("threads do not meet at one barrier", self().place);
    }
    return any;
}

static void end_block()
{
    for (here->current = 0; here->current < here->threads.size(); here->current++)
        if (self().done < self().copies.size()) fault("copies that nobody waited for", "the end");
    for (const auto &b : here->mbarriers)
        if (b.second.bytes || !b.second.copies.empty()) fault("copies that nobody waited for", "an mbarrier");
    here->current = 0;
}

/* So many turns in a row in which all only waited, after one more. */
static int wait_longer(int waited, bool moved)
{
    if (!moved && waited == PATIENCE) give_up("a wait that does not end", "all threads");
    return moved ? 0 : waited + 1;
}

static void run_block()
{
    begin_block();
    for (int waited = 0; here->ended < here->threads.size();) waited = wait_longer(waited, take_turns());
    end_block();
}

/* ---- blocks that run together */

static void *run_apart(void *of)
{
    block &b = *(block *)of;
    sem_wait(&b.turn);
    b.origin = (char *)origin;
    for (begin_block(); b.ended < b.threads.size();) {
        b.moved = take_turns();
        if (b.ended == b.threads.size()) break;
        sem_post(&turn_is_over);
        sem_wait(&b.turn);
    }
    end_block();
    b.moved = b.over = true;
    sem_post(&turn_is_over);
    return NULL;
}

/* If all threads of all blocks are at the cluster's barrier, they go on. */
static bool release_cluster()
{
    for (block &b : blocks) {
        here = &b;
        if (b.over || !b.origin || !meet(0, b.threads.size(), AT_CLUSTER_BARRIER, false)) return false;
    }
    for (block &b : blocks)
        for (thread &t : b.threads) t.now = RUNS;
    return true;
}

static void run_together(const gpb_emulate_launch &launch)
{
#ifndef GPB_EMULATE_TOGETHER
    give_up("blocks that would share their shared memory", "a launch");
#endif
    const unsigned count = launch.grid.x * launch.grid.z;
    std::vector<block *> left;
    while (blocks.size() < count) blocks.emplace_back();
    while (blocks.size() > count) blocks.pop_back();
    sem_init(&turn_is_over, 0, 0);
    for (unsigned x = 0; x < count; x++) {
        block &b = blocks[x];
        b.at = { x % launch.grid.x, 0, x / launch.grid.x };
        b.origin = NULL;
        b.over = false;
        sem_init(&b.turn, 0, 0);
        if (pthread_create(&b.system, NULL, run_apart, &b)) give_up("no thread of the system", "a launch");
        left.push_back(&b);
    }
    for (int waited = 0; !left.empty();) {
        bool moved = false;
        std::shuffle(left.begin(), left.end(), random_numbers);
        for (block *b : left) {
            int turns = random_numbers() % 8 ? 1 : AHEAD;
            do {
                here = b;
                gpb_emulate_at.block = b->at;
                sem_post(&b->turn);
                sem_wait(&turn_is_over);
                moved = moved || b->moved;
            } while (--turns && b->moved && !b->over);
            if (b->over) pthread_join(b->system, NULL);
        }
        left.erase(std::remove_if(left.begin(), left.end(), [](block *b) { return b->over; }), left.end());
        moved = release_cluster() || moved;
        waited = wait_longer(waited, moved);
    }
    here = &blocks[0];
}

int gpb_emulate_run(const gpb_emulate_launch &launch)
{
    work = launch;
    faults = 0;
    std::vector<unsigned> order(launch.grid.x * launch.grid.z);
    std::iota(order.begin(), order.end(), 0);
    if (launch.shuffled) std::shuffle(order.begin(), order.end(), random_numbers);
    gpb_emulate_at.threads = { launch.threads, 1, 1 };
    gpb_emulate_at.grid = launch.grid;
    if (launch.together) {
        run_together(launch);
        return faults;
    }
    for (unsigned x : order) {
        gpb_emulate_at.block = { x % launch.grid.x, 0, x / launch.grid.x };
        run_block();
    }
    return faults;
}
