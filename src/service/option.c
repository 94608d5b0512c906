/* SPDX-License-Identifier: MIT */
/* The options; see option.h. This is the only file that reads the environment. */
#include "src/service/option.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "src/service/hash.h"
#include "src/service/json.h"
#include "src/service/log.h"

#define PREFIX "GPUBLAS_"
#define PREFIX_LENGTH (sizeof PREFIX - 1)

enum kind { CHOICE, INT, BYTES, STRING };

static const struct row {
    const char *name;
    enum kind kind;
    const char *standard, *range, *help;
} rows[GPB_OPTIONS] = {
#define OPTION(name, kind, standard, range, help) { #name, kind, standard, range, help },
#include "src/service/option.def"
#undef OPTION
};

static _Atomic int64_t numbers[GPB_OPTIONS];
static _Atomic(const char *) texts[GPB_OPTIONS];
atomic_bool gpb_option_watched;
static atomic_bool loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t setting = PTHREAD_MUTEX_INITIALIZER;

/* The thread that held the lock may not exist in the child. */
void gpb_option_in_child(void) { setting = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; }

/* Every text ever set, once each. It is kept for ever, because a reader may hold any of them. Under
   `setting`. */
static const char *keep(const char *text)
{
    static struct kept { struct kept *next; char text[]; } *all;
    for (struct kept *one = all; one; one = one->next)
        if (strcmp(one->text, text) == 0) return one->text;
    struct kept *one = malloc(sizeof *one + strlen(text) + 1);
    if (!one) return NULL;
    strcpy(one->text, text);
    one->next = all;
    all = one;
    return one->text;
}

static bool parse_choice(const char *range, const char *text, int64_t *number)
{
    size_t length = strlen(text);
    for (int64_t index = 0;; index++) {
        size_t word = strcspn(range, "|");
        *number = index;
        if (word == length && strncasecmp(range, text, length) == 0) return true;
        if (!range[word]) return false;
        range += word + 1;
    }
}

static bool parse_int(const char *range, const char *text, int64_t *number)
{
    char *end;
    int64_t least = strtoll(range, &end, 10), most = strtoll(end + 2, NULL, 10);
    errno = 0;
    *number = strtoll(text, &end, 10);
    return end != text && !*end && !errno && *number >= least && *number <= most;
}

static bool parse_bytes(const char *text, int64_t *number)
{
    static const char units[] = "KMGT";
    char *end;
    if (!isdigit((unsigned char)*text)) return false;
    errno = 0;
    *number = strtoll(text, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (errno || end[*end ? 1 : 0] || (*end && !unit) || *number > INT64_MAX >> shift) return false;
    *number <<= shift;
    return true;
}

static bool is_report(const char *text) { return text && strcmp(text, "0") != 0; }

static atomic_int watchers;
static atomic_bool profiled;

/* After each change. */
static void note_watched(void)
{
    atomic_store(&gpb_option_watched, atomic_load(&numbers[GPB_OPTION_VERBOSE]) != 0
                                      || is_report(atomic_load(&texts[GPB_OPTION_REPORT]))
                                      || atomic_load(&texts[GPB_OPTION_TRACE]) || atomic_load(&watchers) > 0
                                      || atomic_load(&profiled));
}

/* Parses the value and stores it. False: nothing changed. */
static bool store(enum gpb_option option, const char *value)
{
    const struct row *row = &rows[option];
    int64_t number = 0;
    if (!value || !*value) value = row->standard;
    if (row->kind == STRING) {
        const char *text = value ? keep(value) : NULL;
        if (value && !text) return false;
        atomic_store_explicit(&texts[option], text, memory_order_release);
        return true;
    }
    bool good = row->kind == CHOICE ? parse_choice(row->range, value, &number)
              : row->kind == INT ? parse_int(row->range, value, &number) : parse_bytes(value, &number);
    if (good) atomic_store_explicit(&numbers[option], number, memory_order_relaxed);
    return good;
}

/* The option of that name, without prefix, in any case; or GPB_OPTIONS. */
static enum gpb_option find(const char *name, size_t length)
{
    enum gpb_option option = 0;
    for (; option < GPB_OPTIONS; option++)
        if (strlen(rows[option].name) == length && strncasecmp(rows[option].name, name, length) == 0) break;
    return option;
}

/* Edit distance (insert, delete or replace one letter) of two names. b has at most 31 letters, as the table's
   names have. */
static int distance(const char *a, size_t a_length, const char *b)
{
    int line[32];
    int b_length = (int)strlen(b);
    for (int j = 0; j <= b_length; j++) line[j] = j;
    for (size_t i = 0; i < a_length; i++) {
        int diagonal = line[0];
        line[0] = (int)i + 1;
        for (int j = 1; j <= b_length; j++) {
            int best = diagonal + (toupper((unsigned char)a[i]) != b[j - 1]);
            diagonal = line[j];
            if (line[j] + 1 < best) best = line[j] + 1;
            if (line[j - 1] + 1 < best) best = line[j - 1] + 1;
            line[j] = best;
        }
    }
    return line[b_length];
}

static void warn_unknown(const char *name, size_t length)
{
    enum gpb_option nearest = 0;
    int least = 4;                               /* a name that differs in more than three letters is another
                                                    word, not a slip */
    for (enum gpb_option option = 0; option < GPB_OPTIONS; option++) {
        int far = distance(name, length, rows[option].name);
        if (far >= least || far >= (int)length) continue;
        least = far;
        nearest = option;
    }
    if (least < 4)
        gpb_log_warn_each("warning: unknown option " PREFIX "%.*s; did you mean " PREFIX "%s?", (int)length,
                          name, rows[nearest].name);
    else
        gpb_log_warn_each("warning: unknown option " PREFIX "%.*s", (int)length, name);
}

/* secure_getenv, because a program with more rights than its user must not obey the user's options. Nor does
   it learn of unknown names. */
static void load(void)
{
    for (enum gpb_option option = 0; option < GPB_OPTIONS; option++) {
        char name[PREFIX_LENGTH + 32];
        snprintf(name, sizeof name, PREFIX "%s", rows[option].name);
        const char *value = secure_getenv(name);
        if (store(option, value)) continue;
        store(option, NULL);
        const struct row *row = &rows[option];
        const char *what = row->kind == BYTES ? "a number of bytes" : row->kind == INT ? "in " : "one of ";
        gpb_log_warn_each("warning: %s=%s is not %s%s; using %s", name, value, what, row->range,
                          row->standard);
    }
    for (char **entry = environ; entry && *entry && !getauxval(AT_SECURE); entry++) {
        if (strncmp(*entry, PREFIX, PREFIX_LENGTH) != 0) continue;
        const char *name = *entry + PREFIX_LENGTH;
        size_t length = strcspn(name, "=");
        bool exact = false;
        for (enum gpb_option option = 0; option < GPB_OPTIONS; option++)
            exact |= strlen(rows[option].name) == length && strncmp(rows[option].name, name, length) == 0;
        if (!exact) warn_unknown(name, length);
    }
    const char *const injection = secure_getenv("NVTX_INJECTION64_PATH");
    atomic_store(&profiled, injection && *injection);
    note_watched();
    atomic_store_explicit(&loaded, true, memory_order_release);
}

static inline void ready(void)
{
    if (!atomic_load_explicit(&loaded, memory_order_acquire)) pthread_once(&once, load);
}

int64_t gpb_option_number(enum gpb_option option)
{
    ready();
    return atomic_load_explicit(&numbers[option], memory_order_relaxed);
}

const char *gpb_option_text(enum gpb_option option)
{
    ready();
    return atomic_load_explicit(&texts[option], memory_order_acquire);
}

void gpb_option_watch(int more)
{
    ready();
    pthread_mutex_lock(&setting);
    atomic_fetch_add(&watchers, more);
    note_watched();
    pthread_mutex_unlock(&setting);
}

bool gpb_option_reports(void) { return is_report(gpb_option_text(GPB_OPTION_REPORT)); }

bool gpb_option_profiled(void)
{
    ready();
    return atomic_load_explicit(&profiled, memory_order_relaxed);
}

bool gpb_option_traces(void) { return gpb_option_text(GPB_OPTION_TRACE) != NULL; }

bool gpb_option_calibration(char *path, size_t size)
{
    const char *named = gpb_option_text(GPB_OPTION_CALIBRATION);
    const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    int length = -1;
    if (getauxval(AT_SECURE) || (named && strcasecmp(named, "off") == 0)) return false;
    if (named) length = snprintf(path, size, "%s", named);
    else if (cache && *cache == '/') length = snprintf(path, size, "%s/gpublas/calibration", cache);
    else if (home && *home == '/') length = snprintf(path, size, "%s/.cache/gpublas/calibration", home);
    return length > 0 && (size_t)length < size;
}

int64_t gpb_option_local_rank(const char **by)
{
    static const char *const variables[] = {
#define LAUNCHER(variable, launchers) #variable,
#include "src/service/launcher.def"
#undef LAUNCHER
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *text = secure_getenv(*by = variables[i]);
        int64_t rank;
        if (text && isdigit((unsigned char)*text) && parse_int("0..2147483647", text, &rank)) return rank;
    }
    return -1;
}

/* A sum, because the order of the variables does not matter. */
uint64_t gpb_option_environment(void)
{
    static const char *const prefixes[] = { "CUDA_", "NVIDIA_" };
    uint64_t sum = GPB_HASH_BEGIN;
    for (enum gpb_option option = 0; option < GPB_OPTIONS; option++) {
        const char *text = gpb_option_text(option);
        const int64_t number = gpb_option_number(option);
        sum = gpb_hash_bytes(sum, &number, sizeof number);
        if (text) sum = gpb_hash_bytes(sum, text, strlen(text));
    }
    for (char **entry = environ; entry && *entry; entry++)
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
            if (strncmp(*entry, prefixes[i], strlen(prefixes[i])) == 0)
                sum += gpb_hash_bytes(GPB_HASH_BEGIN, *entry, strlen(*entry));
    return sum;
}

static enum gpb_option find_public(const char *name)
{
    if (!name) return GPB_OPTIONS;
    if (strncasecmp(name, PREFIX, PREFIX_LENGTH) == 0) name += PREFIX_LENGTH;
    return find(name, strlen(name));
}

int gpb_option_set(const char *name, const char *value)
{
    enum gpb_option option = find_public(name);
    if (option == GPB_OPTIONS) return -1;
    ready();
    pthread_mutex_lock(&setting);
    const bool good = store(option, value);
    note_watched();
    pthread_mutex_unlock(&setting);
    if (good && option == GPB_OPTION_VERBOSE) gpb_log_note_stderr();      /* lines are asked for there */
    return good ? 0 : -1;
}

/* As the user would write it: 1073741824 bytes as 1G. */
static int print_bytes(char *value, size_t size, int64_t bytes)
{
    static const char units[][2] = { "", "K", "M", "G", "T" };
    int unit = 0;
    for (; unit < 4 && bytes && bytes % 1024 == 0; unit++) bytes /= 1024;
    return snprintf(value, size, "%" PRId64 "%s", bytes, units[unit]);
}

static int print_value(enum gpb_option option, char *value, size_t size)
{
    const struct row *row = &rows[option];
    int64_t number = gpb_option_number(option);
    const char *text = gpb_option_text(option), *word = row->range;
    switch (row->kind) {
    case STRING: return snprintf(value, size, "%s", text ? text : "");
    case BYTES: return print_bytes(value, size, number);
    case INT: return snprintf(value, size, "%" PRId64, number);
    default: break;
    }
    while (number--) word += strcspn(word, "|") + 1;
    return snprintf(value, size, "%.*s", (int)strcspn(word, "|"), word);
}

int gpb_option_get(const char *name, char *value, size_t size)
{
    enum gpb_option option = find_public(name);
    return option == GPB_OPTIONS ? -1 : print_value(option, value, size);
}

void gpb_option_print(int fd)
{
    dprintf(fd, "%-19s %-12s %-8s %s\n", "option", "value", "default", "meaning");
    for (enum gpb_option option = 0; option < GPB_OPTIONS; option++) {
        const struct row *row = &rows[option];
        char value[256];
        print_value(option, value, sizeof value);
        const bool ranged = row->kind == CHOICE || row->kind == INT;
        dprintf(fd, PREFIX "%-11s %-12s %-8s ", row->name, *value ? value : "-",
                row->standard ? row->standard : "-");
        if (ranged) dprintf(fd, "(%s) ", row->range);
        dprintf(fd, "%s\n", row->help);
    }
}

/* name: of a member of a JSON object, with the comma before it. */
static void print_member(int fd, const char *name, const char *text)
{
    dprintf(fd, ", \"%s\": ", name);
    gpb_json_string(fd, text);
}

void gpb_option_print_json(int fd)
{
    static const char *const kinds[] = { [CHOICE] = "choice", [INT] = "integer", [BYTES] = "bytes",
                                         [STRING] = "text" };
    for (enum gpb_option option = 0; option < GPB_OPTIONS; option++) {
        const struct row *row = &rows[option];
        char value[4096];
        print_value(option, value, sizeof value);
        dprintf(fd, "%s\n  {\"name\": \"" PREFIX "%s\", \"kind\": \"%s\"", option ? "," : "[", row->name,
                kinds[row->kind]);
        print_member(fd, "value", *value ? value : NULL);
        print_member(fd, "default", row->standard);
        print_member(fd, "range", *row->range ? row->range : NULL);
        print_member(fd, "help", row->help);
        dprintf(fd, "}");
    }
    dprintf(fd, "]");
}

void gpb_option_print_set(int fd)
{
    bool any = false;
    dprintf(fd, "options       ");
    for (enum gpb_option option = 0; option < GPB_OPTIONS; option++) {
        char value[256];
        print_value(option, value, sizeof value);
        if (strcmp(value, rows[option].standard ? rows[option].standard : "") == 0) continue;
        dprintf(fd, " " PREFIX "%s=%s", rows[option].name, value);
        any = true;
    }
    dprintf(fd, any ? "\n" : " all as by default\n");
}
