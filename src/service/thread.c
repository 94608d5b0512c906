/* SPDX-License-Identifier: MIT */
/* Threads of our own; see thread.h. */
#include "src/service/thread.h"

#include <pthread.h>
#include <signal.h>

/* Signals that a thread's own instructions raise. If such a signal were blocked, it would end the process
   despite the program's handler (POSIX: undefined; Linux: the default action). */
static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

static _Thread_local bool own __attribute__((tls_model("initial-exec")));

bool gpb_thread_is_own(void) { return own; }

typedef union body {
    void *(*call)(void *);
    void *address;
} body;

static void *run(void *address)
{
    own = true;
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
