/* SPDX-License-Identifier: MIT */
/* The CPU that runs CUDA threads; see emulate.h. */
#include "tests/emulate/emulate.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <vector>

enum state { RUNS, AT_BLOCK_BARRIER, AT_WARP_BARRIER, AT_NAMED_BARRIER, ENDED };
enum { WARP = 32, STACK = 128 << 10, TOLD = 5, NAMES = 16 };

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
    std::vector<char> stack;
    state now;
    const char *place;                   /* of the barrier */
    unsigned number, awaited;            /* its number, and how many threads meet at it */
    std::vector<copy> copies;            /* of all groups; those before `done` have been made */
    std::vector<size_t> groups;          /* where each ends; those before `over` have been waited for */
    size_t done, over;
    unsigned shows, votes;               /* how many times it has shown something, and voted */
};

gpb_emulate_place gpb_emulate_at;
static gpb_emulate_launch work;
static std::vector<thread> threads;
static context scheduler;
static size_t current;
static std::mt19937 random_numbers(1);
static int faults;
long gpb_emulate_products;
alignas(1024) static float origin[4];      /* origin of the addresses of shared memory */

static void fault(const char *what, const char *where)
{
    if (faults++ < TOLD)
        printf("WRONG: %s at %s, block %u, thread %zu\n", what, where, gpb_emulate_at.block.x, current);
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

/* A stack on which that begins, which may not return. */
static void lay_out(context &c, std::vector<char> &stack, void (*begin)())
{
    enum { KEPT = 6 };                   /* registers */
    ASAN_UNPOISON_MEMORY_REGION(stack.data(), stack.size());     /* what went before did not return either */
    void **top = (void **)((uintptr_t)(stack.data() + stack.size()) / 16 * 16) - 1;
    *top = NULL;                         /* where a function's caller would be */
    *--top = (void *)begin;
    top -= KEPT;
    memset(top, 0, KEPT * sizeof *top);
    c = { stack.data(), stack.size(), top };
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
    else threads[current].copies.push_back({ to, from, bytes, whole });
}

void gpb_emulate_commit() { threads[current].groups.push_back(threads[current].copies.size()); }

void gpb_emulate_wait(int left)
{
    thread &t = threads[current];
    for (; t.groups.size() - t.over > (size_t)left; t.over++)
        for (; t.done < t.groups[t.over]; t.done++) perform(t.copies[t.done]);
}

unsigned gpb_emulate_shared_address(const float *at)
{
    return (unsigned)((const char *)at - (const char *)origin);
}
float *gpb_emulate_shared(unsigned address) { return (float *)((char *)origin + (int)address); }

/* ---- mbarriers */

struct counted {
    char *to;
    const char *from;
    unsigned bytes;
};
struct mbarrier {
    unsigned arrivals, missing;          /* of a phase; of this one */
    int64_t bytes;                       /* announced and not copied yet */
    unsigned phase;                      /* how many have ended */
    std::vector<counted> copies;         /* that have not been made */
};
static std::map<unsigned, mbarrier> mbarriers;

static mbarrier &mbarrier_at(unsigned at)
{
    const auto found = mbarriers.find(at);
    if (found == mbarriers.end()) {
        fault("a barrier that was not initialised", "an mbarrier");
        exit(1);
    }
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
    else memset(c.to, 0, c.bytes);
    b.bytes -= c.bytes;
}

void gpb_emulate_mbarrier_init(unsigned at, unsigned arrivals)
{
    mbarriers[at] = { arrivals, arrivals, 0, 0, {} };
}

void gpb_emulate_mbarrier_arrive(unsigned at, unsigned bytes)
{
    mbarrier &b = mbarrier_at(at);
    if (!b.missing) fault("more arrivals than a phase has", "an mbarrier");
    b.missing--;
    b.bytes += bytes;
    settle(b);
}

void gpb_emulate_mbarrier_copy(unsigned at, char *to, const char *from, unsigned bytes)
{
    mbarrier &b = mbarrier_at(at);
    if (from && !inside(work.a, from, bytes) && !inside(work.b, from, bytes)) {
        fault("a copy from outside the operands", "a tensor copy");
        from = NULL;
    }
    if (!work.early) b.copies.push_back({ to, from, bytes });
    else perform(b, { to, from, bytes });
    settle(b);
}

/* Copies are made when somebody waits for them, or at once. */
void gpb_emulate_mbarrier_wait(unsigned at, unsigned parity)
{
    enum { PATIENCE = 1000000 };
    mbarrier &b = mbarrier_at(at);
    for (int turns = 0; b.phase % 2 == parity; turns++) {
        for (const counted &c : b.copies) perform(b, c);
        const bool any = !b.copies.empty();
        b.copies.clear();
        if (any) settle(b);
        if (turns == PATIENCE) {
            fault("a wait that does not end", "an mbarrier");
            exit(1);
        }
        if (b.phase % 2 == parity) go_on(&threads[current].at, scheduler);
    }
}

static void stop(state now, const char *place)
{
    thread &t = threads[current];
    t.now = now;
    t.place = place;
    go_on(&t.at, scheduler);
}

void gpb_emulate_block_barrier(const char *place) { stop(AT_BLOCK_BARRIER, place); }
void gpb_emulate_warp_barrier(const char *place) { stop(AT_WARP_BARRIER, place); }
void gpb_emulate_named_barrier(unsigned number, unsigned count)
{
    if (number >= NAMES || count % WARP) fault("no such barrier", "a named barrier");
    threads[current].number = number;
    threads[current].awaited = count;
    stop(AT_NAMED_BARRIER, "a named barrier");
}

/* Two places in turn, because a thread that is ahead shows again only when all have seen what was shown
   before. */
const char *gpb_emulate_show(const void *what, int bytes, const char *place)
{
    static char shown[2][1024][GPB_EMULATE_SHOWN];
    const unsigned turn = threads[current].shows++ % 2;
    memcpy(shown[turn][current], what, bytes);
    gpb_emulate_warp_barrier(place);
    return shown[turn][current / WARP * WARP];
}

bool gpb_emulate_any(bool here, const char *place)
{
    static bool said[2][1024];
    const unsigned turn = threads[current].votes++ % 2;
    said[turn][current] = here;
    gpb_emulate_block_barrier(place);
    return std::any_of(said[turn], said[turn] + threads.size(), [](bool x) { return x; });
}

/* ---- a block */

static void start()
{
    __sanitizer_finish_switch_fiber(NULL, &scheduler.bottom, &scheduler.bytes);
    work.body();
    threads[current].now = ENDED;
    go_on(NULL, scheduler);
}

static void begin_block()
{
    threads.resize(work.threads);
    mbarriers.clear();
    for (thread &t : threads) {
        t.stack.resize(STACK);
        lay_out(t.at, t.stack, start);
        t.now = RUNS;
        t.copies.clear();
        t.groups.clear();
        t.done = t.over = t.shows = t.votes = 0;
    }
}

/* True if all threads of [first, end) are at a barrier of that kind, and at the same one. */
static bool meet(size_t first, size_t end, state at)
{
    for (size_t x = first; x < end; x++)
        if (threads[x].now != at || strcmp(threads[x].place, threads[first].place)) return false;
    return true;
}

/* Lets the threads at a named barrier go on if as many are there as it waits for, all with the same count.
   False: there are not. */
static bool release_named(unsigned number)
{
    std::vector<thread *> here;
    for (thread &t : threads)
        if (t.now == AT_NAMED_BARRIER && t.number == number) here.push_back(&t);
    if (here.empty() || here.size() != here[0]->awaited) return false;
    for (thread *t : here) {
        if (t->awaited != here.size())
            fault("threads that wait for different numbers of threads", "a named barrier");
        t->now = RUNS;
    }
    return true;
}

/* Lets threads go on that may. False: none may. */
static bool release(size_t ended)
{
    bool any = false;
    for (unsigned number = 0; number < NAMES; number++) any = release_named(number) || any;
    for (size_t warp = 0; warp < threads.size(); warp += WARP)
        if (meet(warp, warp + WARP, AT_WARP_BARRIER)) {
            for (size_t x = warp; x < warp + WARP; x++) threads[x].now = RUNS;
            any = true;
        }
    if (any || ended == threads.size()) return any;
    if (!meet(0, threads.size(), AT_BLOCK_BARRIER)) return false;
    for (thread &t : threads) t.now = RUNS;
    return true;
}

static void run_block()
{
    std::vector<size_t> order(work.threads);
    std::iota(order.begin(), order.end(), 0);
    begin_block();
    for (size_t ended = 0; ended < threads.size();) {
        std::shuffle(order.begin(), order.end(), random_numbers);
        for (size_t x : order)
            if (threads[x].now == RUNS) {
                current = x;
                gpb_emulate_at.thread = { (unsigned)x, 0, 0 };
                go_on(&scheduler, threads[x].at);
                ended += threads[x].now == ENDED;
            }
        const bool runs = std::any_of(threads.begin(), threads.end(),
                                      [](const thread &t) { return t.now == RUNS; });
        /* Or the hardware would hang, or go on with garbage. */
        if (!release(ended) && !runs && ended < threads.size()) {
            for (current = 0; threads[current].now == ENDED;) current++;
            fault("threads do not meet at one barrier", threads[current].place);
            exit(1);
        }
    }
    for (current = 0; current < threads.size(); current++)
        if (threads[current].done < threads[current].copies.size())
            fault("copies that nobody waited for", "the end");
    for (const auto &b : mbarriers)
        if (b.second.bytes || !b.second.copies.empty()) fault("copies that nobody waited for", "an mbarrier");
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
    for (unsigned x : order) {
        gpb_emulate_at.block = { x % launch.grid.x, 0, x / launch.grid.x };
        run_block();
    }
    return faults;
}
