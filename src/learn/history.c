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
#include "src/learn/at_load.h"
#include "src/learn/file.h"
#include "src/learn/history_file.h"
#include "src/learn/ready.h"
#include "src/service/clock.h"
#include "src/service/descriptor.h"
#include "src/service/hash.h"
#include "src/service/log.h"
#include "src/service/option.h"
#include "src/service/thread.h"
#include "src/service/traps.h"

/* A program that is not known is worth remembering from here on. A start costs several times that. */
#define WORTH_S 0.02
#define FIRST_SAVED_S 0.1
/* A start that seems to lose less beside the host's calls is a prediction's error. */
#define LEAST_LOST_S 0.01
/* The end of the program waits no longer for its file. Without a hang it takes less than 1 ms. */
#define END_S 0.05

static _Atomic double moment_s[GPB_START_MOMENTS];      /* when it was; 0: not yet */
static uint64_t environment;             /* gpb_option_environment when the library was loaded */
static atomic_bool loud;                 /* something happened that a start at load might have disturbed */
/* When the history had the GPU started in this run; GPB_START_MOMENTS: it did not. */
static _Atomic int started_at = GPB_START_MOMENTS;
static atomic_bool unkept;               /* this process's run is not kept */
static _Atomic int64_t lost_ns, total_ns, late_ns[GPB_START_MOMENTS],
                       next_ns = (int64_t)(1e9 * FIRST_SAVED_S);

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

static uint64_t hash_program(void)
{
    char bytes[4096];
    ssize_t count = readlink("/proc/self/exe", bytes, sizeof bytes);
    uint64_t hash = gpb_hash_bytes(GPB_HASH_BEGIN, bytes, count > 0 ? (size_t)count : 0);
    const int arguments = gpb_descriptor_open("/proc/self/cmdline", O_RDONLY, 0);
    while (arguments >= 0 && (count = read(arguments, bytes, sizeof bytes)) > 0)
        hash = gpb_hash_bytes(hash, bytes, (size_t)count);
    if (arguments >= 0) close(arguments);
    return hash;
}

/* Where it is noted that this program has the GPU started at load. Only that user can write there. */
static void table_path(char *path, size_t size)
{
    snprintf(path, size, "/dev/shm/gpublas-%ld", (long)geteuid());
}

/* The program's name there: another history has other conclusions. */
static uint64_t name_at_load(const char *history)
{
    return gpb_hash_bytes(hash_program(), history, strlen(history));
}

static void load(gpb_history_file *kept, const char *path)
{
    size_t length;
    char *text = gpb_file_read(path, GPB_HISTORY_FILE_BYTES, &length);
    if (text && !gpb_history_file_parse(kept, text, length))
        gpb_log_debug("history: %s is not one; starting anew", path);
    free(text);
}

static double seconds(_Atomic int64_t *ns) { return 1e-9 * (double)atomic_load(ns); }

/* What a start at the first call would have saved is not known of a run that had it at load. */
static gpb_start_run this_run(void)
{
    gpb_start_run run = { .total_s = seconds(&total_ns), .quiet = !atomic_load(&loud) };
    for (int at = 0; at < GPB_START_MOMENTS; at++) run.late_s[at] = seconds(&late_ns[at]);
    if (atomic_load(&started_at) == GPB_START_AT_LOAD)
        run.late_s[GPB_START_AT_FIRST_CALL] = base.late_s[GPB_START_AT_FIRST_CALL];
    return run;
}

static void put_run(gpb_history_file *kept, const char *path)
{
    char table[64];
    const uint64_t program = hash_program();
    if (!based) base = gpb_history_file_find(kept, program);
    based = true;
    const gpb_start_run run = this_run();
    const gpb_history now = gpb_start_remember(base, &run);
    gpb_history_file_put(kept, program, now);
    table_path(table, sizeof table);
    gpb_at_load_want(table, name_at_load(path), gpb_start_at_load(&now, gpb_ready_cost_s(false)));
}

/* Nothing was known of this program, and nothing of this run is worth it. */
static bool is_nothing(void)
{
    return seconds(&total_ns) < WORTH_S && gpb_history_known().runs == 0
           && atomic_load(&started_at) == GPB_START_MOMENTS;
}

/* Reads the file again, because other programs write it, too. If two write at once, one of them is lost. */
static void save_into(gpb_history_file *kept, const char *path, char *text)
{
    load(kept, path);
    if (!atomic_load(&unkept) && !is_nothing()) put_run(kept, path);
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

static void note_environment(void)
{
    if (gpb_option_environment() != environment) gpb_history_note_loud();
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

__attribute__((noinline)) static void finish(void)
{
    note_environment();
    if (atomic_load(&unkept) || is_nothing()) return;
    wait_until_saved();
    if (begin_to_save()) wait_until_saved();
}

__attribute__((destructor)) static void end(void)
{
    gpb_traps traps;
    gpb_traps_hold(&traps);
    finish();
    gpb_traps_release(&traps);
}

/* ---- the beginning */

static void start_at(enum gpb_start_moment moment)
{
    int none = GPB_START_MOMENTS;
    if (atomic_compare_exchange_strong(&started_at, &none, moment)) gpb_ready_begin();
}

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
        if (known.runs > 0 && gpb_start_price(&known, gpb_ready_cost_s(false)) == 0)
            start_at(GPB_START_AT_FIRST_CALL);
        const int at = atomic_load(&started_at);
        if (at < GPB_START_MOMENTS)
            gpb_log_debug("started%s: this program saved %.1f s in earlier runs",
                          at == GPB_START_AT_LOAD ? " at load" : "", known.total_s);
    }
    free(kept);
    return unused;
}

/* In a thread of its own, because a home folder may hang. */
static void begin_once(void)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    char path[4096];
    if (!atomic_flag_test_and_set(&begun) && file_path(path, sizeof path)) gpb_thread_begin(begin, 0);
}

static bool is_wanted_at_load(void)
{
    char path[4096], table[64];
    table_path(table, sizeof table);
    return file_path(path, sizeof path) && gpb_at_load_wanted(table, name_at_load(path));
}

void gpb_history_load(bool eager)
{
    atomic_store(&moment_s[GPB_START_AT_LOAD], gpb_clock_s());
    environment = gpb_option_environment();
    if (!eager && !is_wanted_at_load()) return;
    start_at(GPB_START_AT_LOAD);
    begin_once();
}

void gpb_history_begin(void)
{
    double none = 0;
    if (!atomic_compare_exchange_strong(&moment_s[GPB_START_AT_FIRST_CALL], &none, gpb_clock_s())) return;
    note_environment();
    begin_once();
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

void gpb_history_lose(double more_s) { atomic_fetch_add(&lost_ns, (int64_t)(1e9 * more_s)); }

/* The mean with what was known, because a start beside busy cores takes half as long again. */
static void add_to(_Atomic double *known_s, double now_s)
{
    const double before_s = atomic_load(known_s);
    atomic_store(known_s, before_s > 0 ? (before_s + now_s) / 2 : now_s);
}

/* Lost work is what host calls took beyond their prediction, which errs. So it is believed within bounds.
   Beside a start at load the program seldom computes. */
void gpb_history_started(bool active, double took_s)
{
    add_to(&start_s[active], took_s);
    if (atomic_load(&started_at) != GPB_START_AT_LOAD)
        add_to(&lost_s[active], max(LEAST_LOST_S, min(seconds(&lost_ns), took_s)));
    atomic_store(&measured[active], true);
    begin_to_save();
}

/* A start at that moment would be over, or is. */
static bool comes_late(enum gpb_start_moment at, bool on_gpu)
{
    if (atomic_load(&started_at) == (int)at) return on_gpu;
    const double moment = atomic_load(&moment_s[at]);
    return moment > 0 && gpb_clock_s() >= moment + gpb_ready_start_s(false);
}

void gpb_history_note(double saved_s, bool on_gpu)
{
    if (atomic_load(&unkept)) return;
    const int64_t ns = (int64_t)(1e9 * saved_s), total = atomic_fetch_add(&total_ns, ns) + ns;
    for (int at = 0; at < GPB_START_MOMENTS; at++)
        if (comes_late((enum gpb_start_moment)at, on_gpu)) atomic_fetch_add(&late_ns[at], ns);
    int64_t next = atomic_load(&next_ns);
    if (total >= next && atomic_compare_exchange_strong(&next_ns, &next, 2 * total)) begin_to_save();
}

void gpb_history_note_loud(void) { atomic_store(&loud, true); }

void gpb_history_keep_nothing(void) { atomic_store(&unkept, true); }
