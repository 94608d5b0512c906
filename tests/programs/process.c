/* SPDX-License-Identifier: MIT */
/* What the process around a BLAS call may expect to be left alone: its registers, signals, environment,
   CUDA context, and its way to end. Knows nothing of libgpublas. Values are small integers, so every route
   gives the same bits. Usage: process WHAT [COUNT]. Prints a line a check and exits with 1 if one was
   wrong, or as `exits` below says. An alarm ends what hangs. */
#include <dlfcn.h>
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "integers.h"

/* ---- state */

extern char **environ;

static uint64_t sum_of_environment(void)
{
    uint64_t sum = (uint64_t)(uintptr_t)environ;
    for (char **entry = environ; *entry; entry++)
        for (const char *at = *entry; *at; at++)
            sum = sum * 31 + (unsigned char)*at + (uint64_t)(uintptr_t)*entry;
    return sum;
}

static uint64_t sum_of_handlers(void)
{
    uint64_t sum = 0;
    for (int i = 1; i < NSIG; i++) {
        struct sigaction action;
        if (sigaction(i, NULL, &action) == 0)
            sum = sum * 31 + (uint64_t)(uintptr_t)action.sa_handler + (uint64_t)action.sa_flags;
    }
    return sum;
}

static void state(int count)
{
    const unsigned modes[] = { _MM_ROUND_NEAREST, _MM_ROUND_UP, _MM_ROUND_TOWARD_ZERO | _MM_FLUSH_ZERO_ON,
                               _MM_ROUND_DOWN | 0x40 };
    bool answers = true, control = true, x87 = true, error = true, mask = true, folder = true,
         environment = true, handlers = true;
    char before[4096], after[4096];
    sigset_t set = { 0 }, now = { 0 };               /* libc sets the first 64 bits alone */
    for (int round = 0; round < count; round++) {
        const unsigned mode = modes[round % 4];
        const uint64_t environ_sum = sum_of_environment(), handler_sum = sum_of_handlers();
        unsigned short x87_mode = (unsigned short)(0x37f | (round % 4) << 10), x87_now;
        if (!getcwd(before, sizeof before)) abort();
        sigemptyset(&set);
        sigaddset(&set, round % 2 ? SIGUSR1 : SIGPIPE);
        pthread_sigmask(SIG_SETMASK, &set, NULL);
        const unsigned kept = _mm_getcsr();
        __asm__ volatile("fldcw %0" : : "m"(x87_mode));
        _mm_setcsr((kept & ~0xe040u) | mode);        /* 0x40: denormals are zero */
        errno = 4711 + round;
        call(shared_c);
        error &= errno == 4711 + round;
        control &= (_mm_getcsr() & ~0x3fu) == (((kept & ~0xe040u) | mode) & ~0x3fu);
        _mm_setcsr(kept);
        __asm__ volatile("fnstcw %0" : "=m"(x87_now));
        x87 &= x87_now == x87_mode;
        __asm__ volatile("fninit");
        answers &= is_right(shared_c);
        pthread_sigmask(SIG_SETMASK, NULL, &now);
        mask &= memcmp(&set, &now, 128 / 8) == 0;
        folder &= getcwd(after, sizeof after) && strcmp(before, after) == 0;
        environment &= sum_of_environment() == environ_sum;
        handlers &= sum_of_handlers() == handler_sum;
    }
    tell(answers, "answers under every rounding mode");
    tell(control, "MXCSR");
    tell(x87, "x87 control word");
    tell(error, "errno");
    tell(mask, "signal mask");
    tell(folder, "working directory");
    tell(environment, "environment");
    tell(handlers, "signal handlers");
}

/* Routines of every kind, in the rounding mode that comes with the argument, on operands that need rounding.
   The mode stays, and C is as good as in that mode: the product rounded down is nowhere above the one rounded
   up, and they are not the same. */
void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *);
void dsyrk_(const char *, const char *, const int *, const int *, const double *, const double *, const int *,
            const double *, double *, const int *);
void dtrsm_(const char *, const char *, const char *, const char *, const int *, const int *, const double *,
            const double *, const int *, double *, const int *);

static void every_routine(double *product)
{
    enum { M = 300 };
    static double x[M * M], y[M * M], z[M * M];
    static int pivots[M];
    const int n = M, size = M * M;
    const double one = 1, zero = 0;
    int info;
    /* Not every BLAS has these. */
    void (*batch)(const char *, const char *, const int *, const int *, const int *, const double *,
                  const double *, const int *, const int *, const double *, const int *, const int *,
                  const double *, double *, const int *, const int *, const int *);
    void (*gesv)(const int *, const int *, double *, const int *, int *, double *, const int *, int *);
    void (*getri)(const int *, double *, const int *, const int *, double *, const int *, int *);
    void (*potrf)(const char *, const int *, double *, const int *, int *);
    *(void **)&batch = dlsym(RTLD_DEFAULT, "dgemm_batch_strided_");
    *(void **)&gesv = dlsym(RTLD_DEFAULT, "dgesv_");
    *(void **)&getri = dlsym(RTLD_DEFAULT, "dgetri_");
    *(void **)&potrf = dlsym(RTLD_DEFAULT, "dpotrf_");
    for (int i = 0; i < M * M; i++) {
        x[i] = (i % M == i / M ? M : 0) + (i * 7 % 11) / 11.0;
        y[i] = (i * 5 % 7) / 7.0;
    }
    dgemm_("N", "N", &n, &n, &n, &one, x, &n, y, &n, &zero, product, &n);
    if (batch) {
        const int half = M / 2, stride = half * M, two = 2;
        batch("N", "N", &n, &half, &n, &one, x, &n, &(const int){ 0 }, y, &n, &stride, &zero, z, &n, &stride,
              &two);
    }
    dsyrk_("L", "N", &n, &n, &one, y, &n, &zero, z, &n);
    dtrsm_("L", "L", "N", "N", &n, &n, &one, x, &n, y, &n);
    for (int i = 0; i < M * M; i++) z[i] = i % M == i / M ? M : 1 / (1.0 + i % M + i / M);
    if (potrf) potrf("L", &n, z, &n, &info);
    if (gesv) gesv(&n, &n, x, &n, pivots, y, &n, &info);
    if (getri) getri(&n, x, &n, pivots, z, &size, &info);
}

static void rounding(int only)
{
    static const int modes[] = { FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO, FE_TONEAREST };
    static double products[4][300 * 300];
    bool kept = true, ordered = true;
    int strictly = 0;
    for (int i = only ? 3 : 0; i < (only ? 4 : 3); i++) {
        fesetround(modes[i]);
        every_routine(products[i]);
        kept &= fegetround() == modes[i];
    }
    fesetround(FE_TONEAREST);
    for (int i = 0; i < 300 * 300; i++) {
        ordered &= products[0][i] <= products[1][i];
        strictly += products[0][i] < products[1][i];
    }
    tell(kept, "rounding modes");
    if (!only) tell(ordered && strictly > 1000, "rounded down and up, the product is enclosed");
}

/* Exceptions that the program traps: its own, in the host's arithmetic, and none of ours. Products of
   integers and the solution of 4 X = B are exact. What follows is up to the end of the program. */
static sigjmp_buf trapped;
static void on_trap(int number) { siglongjmp(trapped, number); }

static void traps(int caught)
{
    enum { M = 256 };
    static double x[M * M], y[M * M], z[M * M];
    static int pivots[M];
    const int n = M;
    const double one = 1;
    int info = 0;
    bool answers = true, control = true, flags = true;
    unsigned short x87_mode;
    void (*gesv)(const int *, const int *, double *, const int *, int *, double *, const int *, int *);
    *(void **)&gesv = dlsym(RTLD_DEFAULT, "dgesv_");
    for (int i = 0; i < M * M; i++) {
        x[i] = i % M == i / M ? 4 : 0;
        y[i] = i % 8;
    }
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_ALL_EXCEPT);
    for (int round = 0; round < 20; round++) {
        call(shared_c);
        if (round == 11) dgemm_("N", "N", &n, &n, &n, &one, x, &n, y, &n, &one, z, &n);
        if (gesv && round == 12) gesv(&n, &n, x, &n, pivots, y, &n, &info);
        __asm__ volatile("fnstcw %0" : "=m"(x87_mode));
        control &= (x87_mode & 0x3d) == 0 && (_mm_getcsr() & 0x1e80) == 0;
        flags &= !(_mm_getcsr() & 0x3d);             /* all but that of denormals */
        answers &= is_right(shared_c);
    }
    for (int i = 0; gesv && i < M * M; i++) answers &= y[i] == i % 8 / 4.0;
    tell(answers && info == 0, "answers while everything traps");
    tell(control, "what is trapped");
    tell(flags, "no exception is raised");
    if (!caught) return;
    signal(SIGFPE, on_trap);
    fedisableexcept(FE_ALL_EXCEPT);
    for (int i = 0; i < N * N; i++) a[i] /= 3;
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_ALL_EXCEPT);
    if (!sigsetjmp(trapped, 1)) {
        call(shared_c);
        return tell(false, "the host's exceptions are trapped");
    }
    signal(SIGFPE, SIG_DFL);
    tell(true, "the host's exceptions are trapped");
}

/* The current context of this thread: none, then one of the program's own. */
static void context(int count)
{
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW), *primary = NULL, *now = NULL;
    if (!libcuda) return tell(false, "no libcuda.so.1");
    int (*init)(unsigned), (*current)(void **), (*retain)(void **, int), (*push)(void *);
    *(void **)&init = dlsym(libcuda, "cuInit");
    *(void **)&current = dlsym(libcuda, "cuCtxGetCurrent");
    *(void **)&retain = dlsym(libcuda, "cuDevicePrimaryCtxRetain");
    *(void **)&push = dlsym(libcuda, "cuCtxPushCurrent_v2");
    if (init(0) || retain(&primary, 0)) return tell(false, "no device");
    bool none = true, own = true, answers = true;
    for (int round = 0; round < count; round++) {
        answers &= multiply(shared_c);
        none &= current(&now) == 0 && now == NULL;
    }
    if (push(primary)) return tell(false, "no context");
    for (int round = 0; round < count; round++) {
        answers &= multiply(shared_c);
        own &= current(&now) == 0 && now == primary;
    }
    tell(answers, "answers");
    tell(none, "no current context before and after");
    tell(own, "the program's own context before and after");
}

/* ---- signals */

static volatile sig_atomic_t alarms, profiles;
static sigjmp_buf back;
static char *forbidden;

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}
static void on_profile(int number)
{
    (void)number;
    profiles++;
}
static void on_fault(int number, siginfo_t *info, void *unused)
{
    (void)number, (void)unused;
    if (info->si_addr != forbidden) _exit(3);
    siglongjmp(back, 1);
}

static void handle(int number, void (*handler)(int))
{
    /* No SA_RESTART, so every slow system call is interrupted. */
    struct sigaction action = { .sa_handler = handler };
    sigaction(number, &action, NULL);
}

static bool still_handles(int number, void (*handler)(int))
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == handler
           && !(action.sa_flags & SA_RESTART);
}

static void signals(int count)
{
    const struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
    struct sigaction fault = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    bool answers = true;
    handle(SIGALRM, on_alarm);
    handle(SIGPROF, on_profile);
    sigaction(SIGSEGV, &fault, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    for (int round = 0; round < count || (alarms < 20 && round < 100000); round++)
        answers &= multiply(shared_c);
    setitimer(ITIMER_REAL, &never, NULL);
    setitimer(ITIMER_PROF, &never, NULL);
    tell(answers, "answers in a storm of SIGALRM and SIGPROF");
    tell(alarms >= 20, "SIGALRM was heard all along");
    tell(still_handles(SIGALRM, on_alarm) && still_handles(SIGPROF, on_profile),
         "their handlers are still there");
    forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool caught = sigsetjmp(back, 1) != 0;
    if (!caught) *(volatile char *)forbidden = 1;
    tell(caught, "the program's SIGSEGV handler gets the program's fault");
}

/* SIGINT in the middle of a call, whose handler leaves the call by siglongjmp. POSIX does not allow that,
   but interpreters have done it. Later calls are right. */
static void on_interrupt(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

static void interrupts(int count)
{
    handle(SIGALRM, on_interrupt);
    volatile int left = 0;
    volatile bool answers = true;
    for (volatile int round = 0; round < count; round++) {
        if (sigsetjmp(back, 1) == 0) {
            const struct itimerval soon = { { 0, 0 }, { 0, 300 + 211 * round } };
            setitimer(ITIMER_REAL, &soon, NULL);
            for (int again = 0; again < 100000; again++) call(shared_c);
        } else {
            left++;
        }
        answers = answers && multiply(shared_c);
    }
    tell(left == count, "every call was left");
    tell(answers, "and those after it are right");
}

/* ---- ways to end in the middle of other threads' calls; each exits with 7 */

static void *compute(void *unused)
{
    float *c = malloc(sizeof shared_c);
    for (;;)
        if (!c || !multiply(c)) _exit(1);
    return unused;
}

static void start_threads(void)
{
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, compute, NULL)) abort();
    }
    for (int i = 0; i < 3; i++)
        if (!multiply(shared_c)) _exit(1);
}

static void leave_now(int number)
{
    (void)number;
    _exit(7);
}
static void multiply_at_exit(void)
{
    if (!multiply(shared_c)) _exit(1);
}

static void ends(const char *how, int count)
{
    if (strcmp(how, "atexit") == 0) {                /* Before and after the library under test is loaded. */
        atexit(multiply_at_exit);
        if (!multiply(shared_c)) _exit(1);
        atexit(multiply_at_exit);
        exit(7);
    }
    if (strcmp(how, "once") == 0) exit(multiply(shared_c) ? 7 : 1);
    start_threads();
    usleep((useconds_t)(count * 137 % 5000));
    if (strcmp(how, "quick_exit") == 0) quick_exit(7);
    if (strcmp(how, "signal") == 0) {
        const struct itimerval soon = { { 0, 0 }, { 0, 1000 + count * 71 % 3000 } };
        handle(SIGALRM, leave_now);
        setitimer(ITIMER_REAL, &soon, NULL);
        for (;;) (void)multiply(shared_c);
    }
    if (strcmp(how, "return") != 0) exit(7);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const int count = argc > 2 ? atoi(argv[2]) : 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(100);
    fill();
    if (strcmp(what, "state") == 0) state(count);
    else if (strcmp(what, "rounding") == 0) rounding(argc > 2);
    else if (strcmp(what, "traps") == 0) traps(argc > 2);
    else if (strcmp(what, "context") == 0) context(count);
    else if (strcmp(what, "signals") == 0) signals(count);
    else if (strcmp(what, "interrupts") == 0) interrupts(count);
    else {
        ends(what, count);
        return 7;
    }
    return wrong > 0;
}
