/* SPDX-License-Identifier: MIT */
/* The trace; see trace.h. */
#include "src/hub/trace.h"

#include <stdio.h>

#include "src/service/clock.h"
#include "src/service/events.h"
#include "src/service/log.h"
#include "src/service/option.h"
#include "src/service/ranges.h"
#include "src/service/text.h"

double gpb_trace_flops(const gpb_call *g)
{
    const double triangle = g->x[GPB_C].uplo == 'G' && !gpb_call_solves(g) ? 1 : 0.5;
    return gpb_type_of(g->type)->flops * triangle * (double)g->m * (double)g->n * (double)g->k
           * (double)g->batch * gpb_call_products(g);
}

/* alpha or beta for the trace: 1.5, or 1.5-2i. */
static void print_scalar(char *text, size_t size, gpb_scalar x)
{
    if (__imag__(x) == 0) snprintf(text, size, "%g", __real__(x));
    else snprintf(text, size, "%g%+gi", __real__(x), __imag__(x));
}

/* The model's prediction, "host/gpu" in ms. */
static void print_predicted(char *text, size_t size, double host_s, double gpu_s)
{
    if (host_s > 0) snprintf(text, size, "%.3f/%.3f", 1e3 * host_s, 1e3 * gpu_s);
    else snprintf(text, size, "-");
}

uint64_t gpb_trace_range(const gpb_call *g)
{
    char name[128];
    if (!gpb_option_profiled()) return 0;
    snprintf(name, sizeof name, "%s %lld x %lld x %lld, batch %lld", g->symbol,
             (long long)(g->row_major ? g->n : g->m), (long long)(g->row_major ? g->m : g->n),
             (long long)g->k, (long long)g->batch);
    return gpb_ranges_begin(name);
}

void gpb_trace_event(const gpb_host_call *record, const char *route, const gpb_outcome *out)
{
    const gpb_call *g = record->call;
    const double now_s = gpb_clock_s(), seconds = now_s - record->came_s;
    const bool row = g->row_major;
    char members[640];
    gpb_text text = { .at = members, .room = sizeof members - 1 };
    gpb_text_word(&text, "route", route);
    gpb_text_word(&text, "why", record->why);
    gpb_text_count(&text, "m", row ? g->n : g->m);
    gpb_text_count(&text, "n", row ? g->m : g->n);
    gpb_text_count(&text, "k", g->k);
    gpb_text_count(&text, "batch", g->batch);
    gpb_text_word(&text, "kernel", out->kernel ? out->kernel->name : "-");
    gpb_text_count(&text, "predicted_host_ns", (long long)(1e9 * record->host_s));
    gpb_text_count(&text, "predicted_gpu_ns", (long long)(1e9 * record->gpu_s));
    gpb_text_count(&text, "bytes_to_gpu", out->bytes_up);
    gpb_text_count(&text, "bytes_from_gpu", out->bytes_down);
    gpb_text_count(&text, "mflops_per_second",
                   seconds > 0 ? (long long)(1e-6 * gpb_trace_flops(g) / seconds) : 0);
    members[text.full ? 0 : text.length] = 0;
    gpb_events_add(*route == 'h' ? "host" : "gpu", g->symbol, record->came_s, now_s, members);
}

void gpb_trace(const gpb_host_call *record, const char *route, const gpb_outcome *out)
{
    const gpb_call *g = record->call;
    const double seconds = record->came_s > 0 ? gpb_clock_s() - record->came_s : 0;
    char splits[24] = "", predicted[64], alpha[48], beta[48];
    print_scalar(alpha, sizeof alpha, g->alpha);
    print_scalar(beta, sizeof beta, g->beta);
    if (out->splits > 1) snprintf(splits, sizeof splits, " splits=%d", out->splits);
    print_predicted(predicted, sizeof predicted, record->host_s, record->gpu_s);
    /* m, n, A and B as the caller sees them. A symmetric matrix is A on either side. */
    const bool row = g->row_major, second = gpb_call_mirrors(g, GPB_B);
    const bool sided = second || gpb_call_mirrors(g, GPB_A), exchanged = sided ? second : row;
    const gpb_matrix *a = &g->x[exchanged ? GPB_B : GPB_A], *b = &g->x[exchanged ? GPB_A : GPB_B];
    const char uplo = sided ? a->uplo : g->x[GPB_C].uplo;
    gpb_log_line(
        "%s order=%s%s%s ta=%c tb=%c m=%lld n=%lld k=%lld lda=%lld ldb=%lld ldc=%lld alpha=%s beta=%s "
        "batch=%lld "
        "route=%s why=\"%s\" kernel=%s%s%s%s%s%s predicted_ms=%s to_gpu=%lld from_gpu=%lld ms=%.3f "
        "gflops=%.1f",
        g->symbol, row ? "row" : "col", !sided ? "" : second != row ? " side=R" : " side=L",
        uplo == 'G'            ? ""
        : (uplo == 'U') != row ? " uplo=U"
                               : " uplo=L",
        a->trans, b->trans, (long long)(row ? g->n : g->m), (long long)(row ? g->m : g->n), (long long)g->k,
        (long long)a->ld, (long long)b->ld, (long long)g->x[GPB_C].ld, alpha, beta,
        (long long)g->batch, route, record->why, out->kernel ? out->kernel->name : "-", out->wide ? "+" : "",
        out->wide ? out->wide->name : "", out->fallback ? "+" : "", out->fallback ? out->fallback->name : "",
        splits, predicted, (long long)out->bytes_up, (long long)out->bytes_down, 1e3 * seconds,
        seconds > 0 ? 1e-9 * gpb_trace_flops(g) / seconds : 0.0);
}
