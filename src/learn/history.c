/* SPDX-License-Identifier: MIT */
/* The history of this program; see history.h. A program is known by a hash of its executable and its
   arguments. Its run is saved when what the GPU could have saved has doubled, because a program may be
   killed, and once more at its end. */
#include "src/learn/history.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dispatch/numbers.h"
#include "src/gpu/gpu.h"
#include "src/learn/file.h"
#include "src/learn/history_file.h"
#include "src/learn/ready.h"
#include "src/service/clock.h"
#include "src/service/log.h"
#include "src/service/option.h"
#include "src/service/thread.h"

/* A program that is not known is worth remembering from here on. A start costs several times that. */
#define WORTH_S 0.02
#define FIRST_SAVED_S 0.1
/* A start that seems to lose less beside the host's calls is a prediction's error. */
#define LEAST_LOST_S 0.01
/* The end of the program waits no longer for its file. Without a hang it takes less than 1 ms. */
#define END_S 0.05

static _Atomic double first_sign_s;      /* 0: none yet */
static atomic_bool unkept;               /* this process's run is not kept */
static _Atomic int64_t lost_ns, total_ns, late_ns, next_ns = (int64_t)(1e9 * FIRST_SAVED_S);

/* What the file said when it was read, once `read_once` is set. */
static gpb_history known;
static _Atomic double start_s[2], lost_s[2];
static atomic_bool read_once;

/* Of the thread that saves; one at a time. */
static atomic_flag saving = ATOMIC_FLAG_INIT;
static bool based;                       /* `base` holds the runs before this one */
static gpb_history base;
static atomic_bool measured[2];          /* start_s and lost_s are of this run */

/* ---- the file */

static bool file_path(char *path, size_t size)
{
    static const char ending[] = ".programs";
    if (!gpb_option_calibration(path, size) || strlen(path) + sizeof ending > size) return false;
    strcat(path, ending);
    return true;
}

/* FNV-1a. */
static uint64_t hash_bytes(uint64_t hash, const char *bytes, ssize_t count)
{
    for (ssize_t i = 0; i < count; i++) hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t hash_program(void)
{
    char bytes[4096];
    ssize_t count = readlink("/proc/self/exe", bytes, sizeof bytes);
    uint64_t hash = hash_bytes(0xcbf29ce484222325u, bytes, count);
    const int arguments = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    while (arguments >= 0 && (count = read(arguments, bytes, sizeof bytes)) > 0)
        hash = hash_bytes(hash, bytes, count);
    if (arguments >= 0) close(arguments);
    return hash;
}

static void load(gpb_history_file *kept, const char *path)
{
    size_t length;
    char *text = gpb_file_read(path, GPB_HISTORY_FILE_BYTES, &length);
    if (text && !gpb_history_file_parse(kept, text, length))
        gpb_log_debug("history: %s is not one; starting anew", path);
    free(text);
}

static void put_run(gpb_history_file *kept)
{
    const uint64_t program = hash_program();
    if (!based) base = gpb_history_file_find(kept, program);
    based = true;
    gpb_history_file_put(kept, program, gpb_start_remember(base, 1e-9 * (double)atomic_load(&total_ns),
                                                           1e-9 * (double)atomic_load(&late_ns)));
}

/* Reads the file again, because other programs write it, too. If two write at once, one of them is lost. */
static void save_into(gpb_history_file *kept, const char *path, char *text)
{
    load(kept, path);
    if (!atomic_load(&unkept) && (atomic_load(&total_ns) || gpb_history_known().runs)) put_run(kept);
    for (int active = 0; active < 2; active++) {
        if (!atomic_load(&measured[active])) continue;
        kept->start_s[active] = atomic_load(&start_s[active]);
        kept->lost_s[active] = atomic_load(&lost_s[active]);
    }
    const size_t length = gpb_history_file_print(kept, text, GPB_HISTORY_FILE_BYTES);
    const char *failure = length ? gpb_file_replace(path, text, length) : "its text is too long";
    gpb_log_debug("history: %s: %s", path, failure ? failure : "saved");
}

static void *save(void *unused)
{
    char path[4096];
    gpb_history_file *kept = calloc(1, sizeof *kept);
    char *text = malloc(GPB_HISTORY_FILE_BYTES);
    if (kept && text && file_path(path, sizeof path)) save_into(kept, path, text);
    free(kept);
    free(text);
    atomic_flag_clear(&saving);
    return unused;
}

static bool begin_to_save(void)
{
    char path[4096];
    if (!file_path(path, sizeof path) || atomic_flag_test_and_set(&saving)) return false;
    const bool begun = !gpb_thread_begin(save, 0);
    if (!begun) atomic_flag_clear(&saving);
    return begun;
}

static void wait_until_saved(void)
{
    const double until_s = gpb_clock_s() + END_S;
    while (atomic_flag_test_and_set(&saving))
        if (gpb_clock_s() < until_s) nanosleep(&(struct timespec){ 0, 100000 }, NULL);
        else return;
    atomic_flag_clear(&saving);
}

__attribute__((destructor)) static void end(void)
{
    const double total_s = 1e-9 * (double)atomic_load(&total_ns);
    if (atomic_load(&unkept) || (total_s < WORTH_S && gpb_history_known().runs == 0)) return;
    wait_until_saved();
    if (begin_to_save()) wait_until_saved();
}

/* ---- the beginning */

static void *begin(void *unused)
{
    char path[4096];
    gpb_history_file *kept = calloc(1, sizeof *kept);
    if (kept && file_path(path, sizeof path)) {
        load(kept, path);
        known = gpb_history_file_find(kept, hash_program());
        for (int active = 0; active < 2; active++) {
            atomic_store(&start_s[active], kept->start_s[active]);
            atomic_store(&lost_s[active], kept->lost_s[active]);
        }
        atomic_store(&read_once, true);
        if (known.runs > 0 && gpb_start_price(&known, gpb_ready_cost_s(false)) == 0) {
            gpb_log_debug("started: this program saved %.1f s in earlier runs", known.total_s);
            gpb_ready_begin();
        }
    }
    free(kept);
    return unused;
}

void gpb_history_begin(void)
{
    char path[4096];
    double none = 0;
    if (!atomic_compare_exchange_strong(&first_sign_s, &none, gpb_clock_s())) return;
    if (file_path(path, sizeof path)) gpb_thread_begin(begin, 0);
}

gpb_history gpb_history_known(void) { return atomic_load(&read_once) ? known : (gpb_history){ 0 }; }

double gpb_history_start_s(bool active)
{
    return atomic_load_explicit(&start_s[active], memory_order_relaxed);
}

double gpb_history_lost_s(bool active)
{
    return atomic_load_explicit(&lost_s[active], memory_order_relaxed);
}

void gpb_history_lose(double seconds) { atomic_fetch_add(&lost_ns, (int64_t)(1e9 * seconds)); }

/* The mean with what was known, because a start beside busy cores takes half as long again. */
static void add_to(_Atomic double *known_s, double seconds)
{
    const double before_s = atomic_load(known_s);
    atomic_store(known_s, before_s > 0 ? (before_s + seconds) / 2 : seconds);
}

/* Lost work is what host calls took beyond their prediction, which errs. So it is believed within bounds. */
void gpb_history_started(bool active, double seconds)
{
    const double lost = 1e-9 * (double)atomic_load(&lost_ns);
    add_to(&start_s[active], seconds);
    add_to(&lost_s[active], max(LEAST_LOST_S, min(lost, seconds)));
    atomic_store(&measured[active], true);
    begin_to_save();
}

void gpb_history_note(double saved_s)
{
    if (atomic_load(&unkept)) return;
    const int64_t ns = (int64_t)(1e9 * saved_s), total = atomic_fetch_add(&total_ns, ns) + ns;
    if (gpb_clock_s() >= atomic_load(&first_sign_s) + gpb_ready_start_s(false))
        atomic_fetch_add(&late_ns, ns);
    int64_t next = atomic_load(&next_ns);
    if (total >= next && atomic_compare_exchange_strong(&next_ns, &next, 2 * total)) begin_to_save();
}

void gpb_history_keep_nothing(void) { atomic_store(&unkept, true); }
