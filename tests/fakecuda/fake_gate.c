/* SPDX-License-Identifier: MIT */
/* The gate of tests/fakecuda: every call enters and leaves here. One mutex, the options, injected failures,
   the log. */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/fakecuda/fakecuda.h"

enum { RULES = 16 };
/* FAKECUDA_FAIL: calls first to last of function ("any": of all functions) return code. */
typedef struct rule {
    char function[64];
    long first, last, calls;
    int code;
    bool sticky;
} rule;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int owner;                 /* the process that called cuInit, or 0 */
static const atomic_bool *own;           /* in that process true; in its children the kernel makes it false */
static gpb_fake_options options = { .seed = 1, .memory = 1ull << 30, .arch = 90, .devices = 1 };
static rule rules[RULES];
static int rule_count;
static CUresult sticky;
static int log_file = -1, summary_file = -1;
static bool paused;                      /* fakecuda_pause */
/* Exit has reached the driver, as in a real driver's destructor: no call succeeds any more. */
static bool over;
static uint64_t random_state;

void gpb_fake_die(const char *format, ...)
{
    char line[512] = "fakecuda: ";
    va_list list;
    va_start(list, format);
    vsnprintf(line + 10, sizeof line - 11, format, list);
    va_end(list);
    strcat(line, "\n");
    (void)!write(STDERR_FILENO, line, strlen(line));
    _exit(86);
}

/* The length of a function's name without its version: "cuMemAlloc_v2" counts as cuMemAlloc. */
static int base_length(const char *function)
{
    const char *version = strstr(function, "_v");
    return version ? (int)(version - function) : (int)strlen(function);
}

static bool exported(const char *function)
{
    Dl_info self;
    void *library = dladdr((void *)(uintptr_t)cuInit, &self) ? dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                                                             : NULL;
    bool found = false;
    for (int version = 1; library && !found && version <= 4; version++) {
        char name[80];
        snprintf(name, sizeof name, version == 1 ? "%s" : "%s_v%d", function, version);
        found = dlsym(library, name) != NULL;
    }
    if (library)
        dlclose(library);
    return found;
}

static uint64_t bytes_of(const char *text)
{
    char *end;
    uint64_t bytes = strtoull(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (end == text || (*end && (!shift || end[1])))
        gpb_fake_die("bad FAKECUDA_MEMORY: %s", text);
    return bytes << shift;
}

static int open_log(const char *variable)
{
    const char *path = getenv(variable);
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (path && file < 0)
        gpb_fake_die("cannot open %s=%s", variable, path);
    return file;
}

/* The errors after which CUDA's context is lost for good. */
static bool is_sticky(int code)
{
    return code == 46 || code == 214 || code == 220 || code == 700 || code == 702 || code == 710
           || (code >= 714 && code <= 719);
}

/* Reads function:count:code, where count is a number, a number and +, or *; and code is a number, with ! if
   it must be sticky. Returns where it ends. */
static const char *read_rule(const char *text)
{
    rule *r = &rules[rule_count++];
    char count[16], more = 0;
    int length = 0;
    if (rule_count > RULES
        || sscanf(text, "%63[^:]:%15[0-9*+]:%d%n%c", r->function, count, &r->code, &length, &more) < 3
        || (strcmp(r->function, "any") && !exported(r->function)))
        gpb_fake_die("bad FAKECUDA_FAIL: %s", text);
    r->calls = 0;
    r->first = *count == '*' ? 1 : atol(count);
    r->last = strpbrk(count, "*+") ? LONG_MAX : r->first;
    r->sticky = is_sticky(r->code) || more == '!';
    length += more == '!';
    if (text[length] && text[length] != ',')
        gpb_fake_die("bad FAKECUDA_FAIL: %s", text);
    return text + length;
}

static void read_rules(const char *text)
{
    for (rule_count = 0; text && *text; text += *text == ',')
        text = read_rule(text);
}

/* For programs that inject one fault after another and call the driver themselves. fakecuda_fail replaces
   FAKECUDA_FAIL. While fakecuda is paused, no call fails (except after a sticky error), counts or is
   logged. */
__attribute__((visibility("default"))) void fakecuda_fail(const char *text);
__attribute__((visibility("default"))) void fakecuda_pause(int pause);

void fakecuda_fail(const char *text)
{
    gpb_fake_options_get();
    pthread_mutex_lock(&lock);
    read_rules(text);
    pthread_mutex_unlock(&lock);
}

void fakecuda_pause(int pause)
{
    gpb_fake_options_get();
    pthread_mutex_lock(&lock);
    paused = pause;
    pthread_mutex_unlock(&lock);
}

static void read_environment(void)
{
    const char *text;
    if ((text = getenv("FAKECUDA_SEED")))
        options.seed = strtoull(text, NULL, 10);
    if ((text = getenv("FAKECUDA_MEMORY")))
        options.memory = bytes_of(text);
    if ((text = getenv("FAKECUDA_ARCH")))
        options.arch = atoi(text);
    if ((text = getenv("FAKECUDA_DEVICES")))
        options.devices = atoi(text);
    if (options.devices < 0 || options.devices > GPB_FAKE_DEVICES)
        gpb_fake_die("bad FAKECUDA_DEVICES: %s", text);
    if ((text = getenv("FAKECUDA_MODE")))
        options.mode = atoi(text);
    if ((text = getenv("FAKECUDA_START_MS")))
        options.start_ms = atoi(text);
    if ((text = getenv("CUDA_VISIBLE_DEVICES")) && (!*text || *text == '-'))
        options.devices = 0;
    text = getenv("FAKECUDA_NO_IMAGE");
    options.no_image = text && *text != '0';
    text = getenv("FAKECUDA_NO_CLUSTERS");
    options.no_clusters = text && *text != '0';
    text = getenv("FAKECUDA_NETLIB");
    options.netlib = text && *text != '0';
    if ((text = getenv("FAKECUDA_TENSOR")))
        options.tensor = atoi(text);
    text = getenv("FAKECUDA_ENGINE");
    options.engine = text && *text != '0';
    text = getenv("FAKECUDA_CAPTURE");
    options.capture = text && *text != '0';
    text = getenv("FAKECUDA_STALE");
    options.stale = text && *text != '0';
    text = getenv("FAKECUDA_DAWDLE");
    options.dawdle = text && *text != '0';
    text = getenv("FAKECUDA_LEAVE");
    options.leave = text && *text != '0';
    random_state = options.seed;
    if ((text = getenv("FAKECUDA_WRONG")))
        options.wrong = atoi(text);
    read_rules(getenv("FAKECUDA_FAIL"));
    log_file = open_log("FAKECUDA_LOG");
    summary_file = open_log("FAKECUDA_SUMMARY");
}

const gpb_fake_options *gpb_fake_options_get(void)
{
    pthread_once(&once, read_environment);
    return &options;
}

uint64_t gpb_fake_random(uint64_t below)      /* splitmix64 */
{
    uint64_t x = random_state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return (x ^ x >> 31) % below;
}

bool gpb_fake_forked(void)
{
    int pid = atomic_load(&owner);
    return pid && (own ? !atomic_load(own) : pid != (int)getpid());
}

/* Without it each call asks the kernel twice who it is, which was a fifth of LAPACK's suite. */
static void mark_own(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    atomic_bool *mark = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mark == MAP_FAILED || madvise(mark, page, MADV_WIPEONFORK))
        return;
    atomic_store(mark, true);
    own = mark;
}

/* Acts as the GPU: runs work that is ready, whatever the program is doing, until the driver ends. It holds
   the mutex only for one operation at a time, so that memory and threads of the program are in use
   meanwhile. */
static void *run_engine(void *unused)
{
    for (bool gone = false, busy; !gone;) {
        pthread_mutex_lock(&lock);
        gone = over;
        busy = !gone && gpb_fake_run_next();
        pthread_mutex_unlock(&lock);
        if (!busy)
            nanosleep(&(struct timespec){ 0, 10000 }, NULL);
    }
    return unused;
}

/* Under the lock, at the first cuInit. */
static void start_engine(void)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, run_engine, NULL) || pthread_detach(thread))
        gpb_fake_die("no thread for FAKECUDA_ENGINE");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void gpb_fake_initialised(void)
{
    if (!atomic_load(&owner))
        mark_own();
    if (options.engine && !atomic_load(&owner))
        start_engine();
    atomic_store(&owner, (int)getpid());
}

bool gpb_fake_lost(void) { return sticky != CUDA_SUCCESS; }

static CUresult injected(const char *function)
{
    const int length = rule_count ? base_length(function) : 0;
    bool fatal = false;
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < rule_count && !paused; i++) {
        rule *r = &rules[i];
        if (strcmp(r->function, "any")
            && ((int)strlen(r->function) != length || strncmp(r->function, function, (size_t)length)))
            continue;
        r->calls++;
        if (r->calls >= r->first && r->calls <= r->last) {
            result = (CUresult)r->code;
            fatal = r->sticky;
        }
    }
    /* A wait reports a failure: some of the queued work has run, some has not. */
    if (result != CUDA_SUCCESS && strstr(function, "Synchronize") && !sticky && gpb_fake_random(2))
        gpb_fake_run_some();
    if (fatal)
        sticky = result;
    return result;
}

CUresult gpb_fake_enter(const char *function, enum gpb_fake_need need)
{
    gpb_fake_options_get();
    if (gpb_fake_forked())               /* does not touch the mutex, which a thread that is gone may hold */
        return need == GPB_FAKE_NEED_NOTHING ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&lock);
    if (over)
        return CUDA_ERROR_DEINITIALIZED;
    CUresult before = sticky, result = injected(function);
    if (result != CUDA_SUCCESS)
        return result;
    if (need >= GPB_FAKE_NEED_INIT && !atomic_load(&owner))
        return CUDA_ERROR_NOT_INITIALIZED;
    if (need == GPB_FAKE_NEED_CONTEXT && !gpb_fake_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    gpb_fake_check_capture(function);
    if (need == GPB_FAKE_NEED_CONTEXT && !gpb_fake_current()->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return need == GPB_FAKE_NEED_CONTEXT ? before : CUDA_SUCCESS;
}

CUresult gpb_fake_leave(const char *function, CUresult result)
{
    if (log_file >= 0 && !paused) {
        char line[160];
        int length = snprintf(line, sizeof line, "%.*s thread=%ld result=%d\n", base_length(function),
                              function, syscall(SYS_gettid), (int)result);
        (void)!write(log_file, line, (size_t)length);
    }
    const bool dawdles = options.dawdle && gpb_fake_random(4) == 0;
    if (!gpb_fake_forked())
        pthread_mutex_unlock(&lock);
    if (dawdles)
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    return result;
}

static void summary_line(const char *format, ...)
{
    char line[160];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (log_file >= 0)
        (void)!write(log_file, line, (size_t)length);
    if (summary_file >= 0)
        (void)!write(summary_file, line, (size_t)length);
}

/* Waits for a thread that may still be inside at exit, so that the counters are complete. */
__attribute__((destructor)) static void end(void)
{
    if (gpb_fake_forked())
        return;
    pthread_mutex_lock(&lock);
    over = true;
    if (log_file >= 0 || summary_file >= 0)
        gpb_fake_kernels_summary(summary_line);
    for (CUstream stream = gpb_fake_streams; options.leave && stream; stream = stream->next)
        if (stream->head && !gpb_fake_lost())
            gpb_fake_die("AT THE END: the driver goes while the GPU has work to do");
    if (options.leave)
        gpb_fake_memory_end();
    pthread_mutex_unlock(&lock);
}
