/* SPDX-License-Identifier: MIT */
/* GPUBLAS_REPORT: what tally.h added up, as text or JSON, at the end of the program, and when it asks for it.
   A destructor writes the one at the end. It runs after all handlers of exit: those in which programs still
   call us, and gpu.c's, which waits for calls on the GPU. A program that ends otherwise (_exit, a signal)
   writes nothing. Neither does one without calls, because a shell would overwrite the report of the program
   that it runs.
   Nothing at the end allocates or locks, because exit may be called in a signal handler. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dispatch/numbers.h"
#include "include/gpublas.h"
#include "src/gpu/gpu.h"
#include "src/hub/tally.h"
#include "src/service/clock.h"
#include "src/service/json.h"
#include "src/service/log.h"
#include "src/service/option.h"
#include "src/service/output.h"
#include "src/service/traps.h"

/* The table has so many lines, and one for the rest; JSON has all. */
enum { SHOWN = 30, LINES = 256, REASONS = 6, DOORS = 256 };

static const char *const forms[] = { [GPB_TALLY_SQUARE] = "", [GPB_TALLY_SMALL_K] = "small k",
                                     [GPB_TALLY_THIN] = "thin" };

/* Calls of one routine and shape, under any of the routine's exported names. */
typedef struct line {
    char routine[24];
    char type[2];
    bool part;                               /* a product that a larger call is made of */
    enum gpb_tally_form form;
    int octave;
    gpb_tally sum;
    struct reason { const char *why; double calls; } reasons[REASONS];      /* of calls that the GPU did not
                                                                               compute */
} line;

/* One report, gathered and being written. Each call of gpublas_report_calls has its own, so that threads may
   write theirs at once, and the end does not meet one that is half done. */
typedef struct report {
    line lines[LINES];                       /* the last one takes what finds no room */
    int line_count;
    line all;
    struct door { const char *symbol; double calls; } doors[DOORS];    /* by exported name, as they came */
    int fd, failed;                          /* failed: an errno */
    size_t used;
    char bytes[8192];
} report;

/* ---- where the program began */

static double begun_s;

__attribute__((constructor)) static void begin(void)
{
    begun_s = gpb_clock_s();
}

/* ---- from kinds of calls to lines */

static void add(gpb_tally *to, const gpb_tally *more)
{
#define AMOUNT(field, name) to->field += more->field;
#include "src/hub/tally.def"
#undef AMOUNT
}

/* cblas_sgemm, sgemm_, sgemm_64_ and scipy_cblas_sgemm64_ are all sgemm. */
static void name_routine(char *routine, size_t size, const char *symbol)
{
    static const char *const before[] = { "scipy_", "cblas_" };
    static const char *const after[] = { "64_", "_" };
    for (int i = 0; i < 2; i++)
        if (strncmp(symbol, before[i], strlen(before[i])) == 0) symbol += strlen(before[i]);
    snprintf(routine, size, "%s", symbol);
    for (int i = 0; i < 2; i++) {
        const size_t length = strlen(routine), cut = strlen(after[i]);
        if (length > cut && strcmp(routine + length - cut, after[i]) == 0) routine[length - cut] = 0;
    }
}

/* True of TRSM, TRMM and LAPACK's solvers. */
static bool is_made_of_products(const char *routine)
{
    static const char *const products[] = { "gemm", "symm", "hemm", "syrk", "herk", "syr2k", "her2k" };
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (strstr(routine, products[i])) return false;
    return true;
}

static line *line_of(report *r, const gpb_tally_kind *kind)
{
    line wanted = { .type = { kind->type }, .form = kind->form, .octave = kind->octave };
    if (!kind->symbol) return &r->lines[LINES - 1];
    name_routine(wanted.routine, sizeof wanted.routine, kind->symbol);
    wanted.part = is_made_of_products(wanted.routine);
    for (line *l = r->lines; l < r->lines + r->line_count; l++)
        if (strcmp(l->routine, wanted.routine) == 0 && l->form == wanted.form && l->octave == wanted.octave)
            return l;
    if (r->line_count == LINES - 1) return &r->lines[LINES - 1];
    r->lines[r->line_count] = wanted;
    return &r->lines[r->line_count++];
}

static void add_reason(line *to, const char *why, double calls)
{
    for (int i = 0; i < REASONS && calls > 0 && why; i++) {
        struct reason *reason = &to->reasons[i];
        if (reason->why && strcmp(reason->why, why) != 0) continue;
        reason->why = why;
        reason->calls += calls;
        return;
    }
}

/* A program calls a few dozen symbols; what finds no room is in no line of its own. */
static void add_to_door(report *r, const char *symbol, double calls)
{
    for (struct door *door = r->doors; symbol && door < r->doors + DOORS; door++) {
        if (door->symbol && strcmp(door->symbol, symbol) != 0) continue;
        door->symbol = symbol;
        door->calls += calls;
        return;
    }
}

static void take(void *into, const gpb_tally_kind *kind, const gpb_tally *amounts)
{
    report *r = into;
    line *to[] = { line_of(r, kind), &r->all };
    add_to_door(r, kind->symbol, amounts->on_gpu + amounts->on_host + amounts->failed);
    for (int i = 0; i < 2; i++) {
        add(&to[i]->sum, amounts);
        add_reason(to[i], kind->why, amounts->on_host + amounts->failed);
    }
}

static double calls_of(const line *l) { return l->sum.on_gpu + l->sum.on_host + l->sum.failed; }
static double seconds_of(const line *l) { return l->sum.gpu_s + l->sum.host_s; }
static double gflops_of(const line *l)
{
    return seconds_of(l) > 0 ? 1e-9 * l->sum.flops / seconds_of(l) : 0;
}

/* The least size of the line's calls. */
static double size_from(const line *l) { return (double)(INT64_C(1) << l->octave); }

/* What took longest comes first. */
static void sort(line *lines, int count)
{
    for (int i = 0; i < count; i++)
        for (int j = i; j > 0 && seconds_of(&lines[j]) > seconds_of(&lines[j - 1]); j--) {
            const line moved = lines[j];
            lines[j] = lines[j - 1];
            lines[j - 1] = moved;
        }
}

static const char *main_reason(const line *l)
{
    const struct reason *most = l->reasons;
    for (int i = 1; i < REASONS; i++)
        if (l->reasons[i].calls > most->calls) most = &l->reasons[i];
    return most->why ? most->why : "-";
}

/* *r: all zero. */
static void gather(report *r)
{
    line *others = &r->lines[LINES - 1];
    snprintf(r->all.routine, sizeof r->all.routine, "all");
    gpb_tally_read(take, r);
    sort(r->lines, r->line_count);
    if (calls_of(others) == 0) return;
    snprintf(others->routine, sizeof others->routine, "others");
    r->lines[r->line_count++] = *others;
}

/* ---- writing */

static void flush(report *r)
{
    if (!r->failed) r->failed = gpb_log_write(r->fd, r->bytes, r->used);
    r->used = 0;
}

__attribute__((format(printf, 2, 3))) static void put(report *r, const char *format, ...)
{
    char piece[512];
    va_list arguments;
    va_start(arguments, format);
    const int wanted = gpb_log_print(piece, sizeof piece, format, arguments);
    va_end(arguments);
    const size_t length = wanted < 0 ? 0 : min((size_t)wanted, sizeof piece - 1);
    if (r->used + length > sizeof r->bytes) flush(r);
    memcpy(r->bytes + r->used, piece, length);
    r->used += length;
}

static void put_string(report *r, const char *text)
{
    char room[GPB_JSON_LETTER];
    put(r, "\"");
    for (; *text; text++) put(r, "%s", gpb_json_letter(*text, room));
    put(r, "\"");
}

static void put_amounts(report *r, const line *l)
{
    put(r, "\"calls\": %.0f, ", calls_of(l));
#define AMOUNT(field, name) put(r, "\"" name "\": %.17g, ", l->sum.field);
#include "src/hub/tally.def"
#undef AMOUNT
    put(r, "\"gflops_per_second\": %.6g, \"reasons\": {", gflops_of(l));
    for (int i = 0; i < REASONS && l->reasons[i].why; i++) {
        put(r, i ? ", " : "");
        put_string(r, l->reasons[i].why);
        put(r, ": %.0f", l->reasons[i].calls);
    }
    put(r, "}");
}

static void put_json(report *r)
{
    put(r, "{\"gpublas\": \"%s\", \"process\": %ld, \"program\": ", GPUBLAS_VERSION, (long)getpid());
    put_string(r, program_invocation_short_name);
    put(r, ", \"seconds\": %.6f, \"start_seconds\": %.6f,\n \"total\": {", gpb_clock_s() - begun_s,
        gpb_gpu_took_s());
    put_amounts(r, &r->all);
    put(r, "},\n \"calls\": [");
    for (int i = 0; i < r->line_count; i++) {
        const line *l = &r->lines[i];
        put(r, "%s\n  {\"routine\": \"%s\", \"type\": \"%s\", ", i ? "," : "", l->routine, l->type);
        put(r, "\"part\": %s, ", l->part ? "true" : "false");
        put(r, "\"size\": [%.0f, %.0f], ", size_from(l), 2 * size_from(l) - 1);
        put(r, "\"shape\": \"%s\", ", forms[l->form]);
        put_amounts(r, l);
        put(r, "}");
    }
    put(r, "],\n \"symbols\": {");
    for (int i = 0; i < DOORS && r->doors[i].symbol; i++)
        put(r, "%s\"%s\": %.0f", i ? ", " : "", r->doors[i].symbol, r->doors[i].calls);
    put(r, "},\n \"warnings\": [");
    for (int i = 0; gpb_log_warning(i); i++) {
        put(r, i ? ", " : "");
        put_string(r, gpb_log_warning(i));
    }
    put(r, "]}\n");
}

static void put_line(report *r, const line *l, const char *size)
{
    const gpb_tally *sum = &l->sum;
    char routine[sizeof l->routine + 1];
    snprintf(routine, sizeof routine, "%s%s", l->routine, l->part ? "*" : "");
    put(r, "%-9s %-11s %-7s %8.0f %8.0f %8.0f %6.0f ", routine, size, forms[l->form], calls_of(l),
        sum->on_gpu, sum->on_host, sum->failed);
    put(r, "%8.3f %8.3f %8.1f %8.1f %8.1f %8.3f  %s\n", sum->gpu_s, sum->host_s, 1e-6 * sum->bytes_up,
        1e-6 * sum->bytes_down, gflops_of(l), sum->saved_s, main_reason(l));
}

static void put_lines(report *r)
{
    line rest = { .routine = "others" };
    bool parts = false;
    for (int i = 0; i < r->line_count; i++) {
        const line *l = &r->lines[i];
        char size[32] = "";
        parts |= l->part;
        if (i >= SHOWN || !*l->type) {
            add(&rest.sum, &l->sum);
            for (int j = 0; j < REASONS; j++) add_reason(&rest, l->reasons[j].why, l->reasons[j].calls);
            continue;
        }
        snprintf(size, sizeof size, "%.0f-%.0f", size_from(l), 2 * size_from(l) - 1);
        put_line(r, l, size);
    }
    if (calls_of(&rest) > 0) put_line(r, &rest, "");
    put_line(r, &r->all, "");
    put(r, "size: the cube root of m n k. small k: less than an eighth of the largest; thin: so is m or n\n");
    if (parts) put(r, "*: products that larger calls are made of\n");
}

static void put_text(report *r)
{
    const gpb_tally *sum = &r->all.sum;
    put(r, "gpublas: report of %s, process %ld, after %.3f s\n", program_invocation_short_name,
        (long)getpid(), gpb_clock_s() - begun_s);
    put(r, "%-9s %-11s %-7s %8s %8s %8s %6s %8s %8s %8s %8s %8s %8s  %s\n", "routine", "size", "shape",
        "calls", "on GPU", "on host", "failed", "GPU s", "host s", "MB up", "MB down", "GFLOP/s", "saved s",
        "why not on the GPU, most often");
    put_lines(r);
    if (gpb_gpu_took_s() > 0)
        put(r, "starting the GPU took %.3f s; the host's calls took %.3f s longer meanwhile\n",
            gpb_gpu_took_s(), max(sum->lost_s, 0));
    put(r, "against the host's predicted time the GPU %s %.3f s", sum->saved_s < 0 ? "lost" : "saved",
        sum->saved_s < 0 ? -sum->saved_s : sum->saved_s);
    if (sum->missed_s > 0)
        put(r, ", and was predicted to save %.3f s more on calls that the host computed", sum->missed_s);
    put(r, "\n");
    for (int i = 0; gpb_log_warning(i); i++)
        put(r, "%s  %s\n", i ? "" : "warnings given:\n", gpb_log_warning(i));
}

static void write_to(report *r, int fd, bool json)
{
    r->fd = fd;
    if (json) put_json(r);
    else put_text(r);
    flush(r);
}

/* ---- when the program asks */

__attribute__((noinline)) static int report_calls(int fd, int json)
{
    report *r = calloc(1, sizeof *r);
    if (!r) return ENOMEM;
    gather(r);
    int failed = calls_of(&r->all) == 0 && !gpb_option_reports() ? ENODATA : 0;
    if (!failed) {
        write_to(r, fd, json);
        failed = r->failed;
    }
    free(r);
    return failed;
}

__attribute__((visibility("default"))) int gpublas_report_calls(int fd, int json)
{
    gpb_traps traps;
    gpb_traps_hold(&traps);
    const int failed = report_calls(fd, json);
    gpb_traps_release(&traps);
    if (failed) errno = failed;
    return failed ? -1 : 0;
}

/* ---- the end */

static void write_file(report *r, const char *wanted)
{
    const size_t length = strlen(wanted);
    const int fd = gpb_output_open(wanted);
    if (fd < 0) r->failed = -fd;
    write_to(r, fd, length > 5 && strcmp(wanted + length - 5, ".json") == 0);
    if (fd >= 0 && close(fd) && !r->failed) r->failed = errno;
    if (r->failed) gpb_log_warn("GPUBLAS_REPORT=%s: %s", wanted, gpb_output_reason(r->failed));
}

__attribute__((noinline)) static void write_report(const char *where)
{
    static report at_end;
    gather(&at_end);
    if (calls_of(&at_end.all) == 0) return;
    if (strcmp(where, "1") != 0) write_file(&at_end, where);
    else if (gpb_log_is_heard()) write_to(&at_end, STDERR_FILENO, false);
}

__attribute__((destructor)) static void end(void)
{
    int cancel;
    if (!gpb_option_reports()) return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    gpb_traps traps;
    gpb_traps_hold(&traps);
    write_report(gpb_option_text(GPB_OPTION_REPORT));
    gpb_traps_release(&traps);
    pthread_setcancelstate(cancel, NULL);
}
