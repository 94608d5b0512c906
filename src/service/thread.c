/* SPDX-License-Identifier: MIT */
/* Threads of our own; see thread.h. */
#include "src/service/thread.h"

#include <pthread.h>
#include <signal.h>
#include <xmmintrin.h>

/* Signals that a thread's own instructions raise. If such a signal were blocked, it would end the process
   despite the program's handler (POSIX: undefined; Linux: the default action). */
static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

static _Thread_local bool own __attribute__((tls_model("initial-exec")));

bool gpb_thread_is_own(void) { return own; }

typedef union body {
    void *(*call)(void *);
    void *address;
} body;

/* A thread begins with the modes of arithmetic of the one that started it: it would trap, round and flush as
   that caller wished, for all callers after it. */
static void take_default_modes(void)
{
    enum { MASKED_TO_NEAREST = 0x1f80 };
    _mm_setcsr(MASKED_TO_NEAREST);
    __asm__ volatile("fninit");
}

static void *run(void *address)
{
    own = true;
    take_default_modes();
    return (body){ .address = address }.call(NULL);
}

static int create(void *(*call)(void *), size_t stack)
{
    pthread_t thread;
    pthread_attr_t attributes;
    int refused = pthread_attr_init(&attributes);
    if (refused) return refused;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack) refused = pthread_attr_setstacksize(&attributes, stack);
    if (!refused) refused = pthread_create(&thread, &attributes, run, (body){ .call = call }.address);
    pthread_attr_destroy(&attributes);
    return refused;
}

int gpb_thread_begin(void *(*call)(void *), size_t stack)
{
    sigset_t most, before;
    sigfillset(&most);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&most, faults[i]);
    pthread_sigmask(SIG_SETMASK, &most, &before);
    const int refused = create(call, stack);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return refused;
}
