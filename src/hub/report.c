/* SPDX-License-Identifier: MIT */
/* GPUBLAS_REPORT: what tally.h added up, as text or JSON, once at the end of the program. A destructor writes
   it, which runs after all handlers of exit: those in which programs still call us, and gpu.c's, which waits
   for calls on the GPU. A program that ends otherwise (_exit, a signal) writes nothing. Neither does one
   without calls, because a shell would overwrite the report of the program that it runs.
   Nothing here allocates or locks, because exit may be called in a signal handler. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

/* The table has so many lines, and one for the rest; JSON has all. */
enum { SHOWN = 30, LINES = 256, REASONS = 6 };

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

static line lines[LINES];                    /* the last one takes what finds no room */
static int line_count;
static line all = { .routine = "all" };

/* ---- where the program began */

static double begun_s;
static struct stat began_with;               /* its stderr */
static bool had_stderr = true;               /* nothing is known if the report was asked for later */

__attribute__((constructor)) static void begin(void)
{
    begun_s = gpb_clock_s();
    if (!gpb_option_reports()) return;
    had_stderr = fstat(STDERR_FILENO, &began_with) == 0;
}

/* If the program closed its stderr, a file of its own may have got that number. */
static bool stderr_is_the_same(void)
{
    struct stat now;
    if (!had_stderr || fstat(STDERR_FILENO, &now)) return false;
    return !began_with.st_ino || (now.st_dev == began_with.st_dev && now.st_ino == began_with.st_ino);
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

static line *line_of(const gpb_tally_kind *kind)
{
    line wanted = { .type = { kind->type }, .form = kind->form, .octave = kind->octave };
    if (!kind->symbol) return &lines[LINES - 1];
    name_routine(wanted.routine, sizeof wanted.routine, kind->symbol);
    wanted.part = is_made_of_products(wanted.routine);
    for (int i = 0; i < line_count; i++)
        if (strcmp(lines[i].routine, wanted.routine) == 0 && lines[i].form == wanted.form
            && lines[i].octave == wanted.octave)
            return &lines[i];
    if (line_count == LINES - 1) return &lines[LINES - 1];
    lines[line_count] = wanted;
    return &lines[line_count++];
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

static void take(const gpb_tally_kind *kind, const gpb_tally *amounts)
{
    line *to[] = { line_of(kind), &all };
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
static void sort(void)
{
    for (int i = 0; i < line_count; i++)
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

static void gather(void)
{
    gpb_tally_read(take);
    sort();
    if (calls_of(&lines[LINES - 1]) == 0) return;
    snprintf(lines[LINES - 1].routine, sizeof lines[LINES - 1].routine, "others");
    lines[line_count++] = lines[LINES - 1];
}

/* ---- writing */

static struct out { int fd, failed; size_t used; char bytes[8192]; } out;

static void flush(void)
{
    if (!out.failed) out.failed = gpb_log_write(out.fd, out.bytes, out.used);
    out.used = 0;
}

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
    char piece[512];
    va_list arguments;
    va_start(arguments, format);
    const int wanted = gpb_log_print(piece, sizeof piece, format, arguments);
    va_end(arguments);
    const size_t length = wanted < 0 ? 0 : min((size_t)wanted, sizeof piece - 1);
    if (out.used + length > sizeof out.bytes) flush();
    memcpy(out.bytes + out.used, piece, length);
    out.used += length;
}

static void put_string(const char *text)
{
    char room[GPB_JSON_LETTER];
    put("\"");
    for (; *text; text++) put("%s", gpb_json_letter(*text, room));
    put("\"");
}

static void put_amounts(const line *l)
{
    put("\"calls\": %.0f, ", calls_of(l));
#define AMOUNT(field, name) put("\"" name "\": %.17g, ", l->sum.field);
#include "src/hub/tally.def"
#undef AMOUNT
    put("\"gflops_per_second\": %.6g, \"reasons\": {", gflops_of(l));
    for (int i = 0; i < REASONS && l->reasons[i].why; i++) {
        put(i ? ", " : "");
        put_string(l->reasons[i].why);
        put(": %.0f", l->reasons[i].calls);
    }
    put("}");
}

static void put_json(void)
{
    put("{\"gpublas\": \"%s\", \"process\": %ld, \"program\": ", gpublas_version(), (long)getpid());
    put_string(program_invocation_short_name);
    put(", \"seconds\": %.6f, \"start_seconds\": %.6f,\n \"total\": {", gpb_clock_s() - begun_s,
        gpb_gpu_took_s());
    put_amounts(&all);
    put("},\n \"calls\": [");
    for (int i = 0; i < line_count; i++) {
        const line *l = &lines[i];
        put("%s\n  {\"routine\": \"%s\", \"type\": \"%s\", ", i ? "," : "", l->routine, l->type);
        put("\"part\": %s, ", l->part ? "true" : "false");
        put("\"size\": [%.0f, %.0f], ", size_from(l), 2 * size_from(l) - 1);
        put("\"shape\": \"%s\", ", forms[l->form]);
        put_amounts(l);
        put("}");
    }
    put("],\n \"warnings\": [");
    for (int i = 0; gpb_log_warning(i); i++) {
        put(i ? ", " : "");
        put_string(gpb_log_warning(i));
    }
    put("]}\n");
}

static void put_line(const line *l, const char *size)
{
    const gpb_tally *sum = &l->sum;
    char routine[sizeof l->routine + 1];
    snprintf(routine, sizeof routine, "%s%s", l->routine, l->part ? "*" : "");
    put("%-9s %-11s %-7s %8.0f %8.0f %8.0f %6.0f ", routine, size, forms[l->form], calls_of(l), sum->on_gpu,
        sum->on_host, sum->failed);
    put("%8.3f %8.3f %8.1f %8.1f %8.1f %8.3f  %s\n", sum->gpu_s, sum->host_s, 1e-6 * sum->bytes_up,
        1e-6 * sum->bytes_down, gflops_of(l), sum->saved_s, main_reason(l));
}

static void put_lines(void)
{
    line rest = { .routine = "others" };
    bool parts = false;
    for (int i = 0; i < line_count; i++) {
        char size[32] = "";
        parts |= lines[i].part;
        if (i >= SHOWN || !*lines[i].type) {
            add(&rest.sum, &lines[i].sum);
            for (int r = 0; r < REASONS; r++)
                add_reason(&rest, lines[i].reasons[r].why, lines[i].reasons[r].calls);
            continue;
        }
        snprintf(size, sizeof size, "%.0f-%.0f", size_from(&lines[i]), 2 * size_from(&lines[i]) - 1);
        put_line(&lines[i], size);
    }
    if (calls_of(&rest) > 0) put_line(&rest, "");
    put_line(&all, "");
    put("size: the cube root of m n k. small k: less than an eighth of the largest; thin: so is m or n\n");
    if (parts) put("*: products that larger calls are made of\n");
}

static void put_text(void)
{
    put("gpublas: report of %s, process %ld, after %.3f s\n", program_invocation_short_name, (long)getpid(),
        gpb_clock_s() - begun_s);
    put("%-9s %-11s %-7s %8s %8s %8s %6s %8s %8s %8s %8s %8s %8s  %s\n", "routine", "size", "shape", "calls",
        "on GPU", "on host", "failed", "GPU s", "host s", "MB up", "MB down", "GFLOP/s", "saved s",
        "why not on the GPU, most often");
    put_lines();
    if (gpb_gpu_took_s() > 0)
        put("starting the GPU took %.3f s; the host's calls took %.3f s longer meanwhile\n", gpb_gpu_took_s(),
            max(all.sum.lost_s, 0));
    put("against the host's predicted time the GPU %s %.3f s", all.sum.saved_s < 0 ? "lost" : "saved",
        all.sum.saved_s < 0 ? -all.sum.saved_s : all.sum.saved_s);
    if (all.sum.missed_s > 0)
        put(", and was predicted to save %.3f s more on calls that the host computed", all.sum.missed_s);
    put("\n");
    for (int i = 0; gpb_log_warning(i); i++)
        put("%s  %s\n", i ? "" : "warnings given:\n", gpb_log_warning(i));
}

/* ---- the end */

static void write_file(const char *wanted)
{
    const size_t length = strlen(wanted);
    const bool json = length > 5 && strcmp(wanted + length - 5, ".json") == 0;
    out.fd = gpb_output_open(wanted);
    if (out.fd < 0) out.failed = -out.fd;
    if (json) put_json();
    else put_text();
    flush();
    if (out.fd >= 0 && close(out.fd) && !out.failed) out.failed = errno;
    if (out.failed && stderr_is_the_same())
        gpb_log_warn("GPUBLAS_REPORT=%s: %s", wanted, gpb_output_reason(out.failed));
}

static void write_report(const char *where)
{
    gather();
    if (calls_of(&all) == 0) return;
    if (strcmp(where, "1") != 0) {
        write_file(where);
    } else if (stderr_is_the_same()) {
        out.fd = STDERR_FILENO;
        put_text();
        flush();
    }
}

__attribute__((destructor)) static void end(void)
{
    int cancel;
    if (!gpb_option_reports()) return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    write_report(gpb_option_text(GPB_OPTION_REPORT));
    pthread_setcancelstate(cancel, NULL);
}
