/* SPDX-License-Identifier: MIT */
/* Checks C = alpha A B + beta C in FP64 by random projections (Freivalds). For a group of columns with random
   signs s, C s must equal alpha A (B s) + beta C s within the sum of the columns' bounds. For a group of one
   column that is the exact check of each element. Groups grow with the problem, so that a check costs at most
   about a billion products. In a group of g columns a single wrong element must be about g times as far off
   to be found. */
#include "src/hub/verify.h"

#include <fcntl.h>
#include <float.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "dispatch/numbers.h"
#include "src/run/repair.h"
#include "src/service/log.h"
#include "src/service/option.h"
#include "src/service/stats.h"

#define INFINITE __builtin_inf()
/* Most products of A and B that the groups may cost; up to FIRST each column is a group. */
enum { PRODUCTS = 1 << 30, FIRST = 1 << 24 };

/* One member, and the columns [j, j + cols) of it that are checked together. */
typedef struct sight {
    const gpb_call *call;
    const float *a, *b, *c, *old;
    bool coarse;                 /* operands may have been rounded to TF32 */
    int64_t i, j, cols;          /* i: also the row that was found wrong */
    double found, wanted, bound;
    double *bs, *babs, *want, *size;      /* B s, |B| 1; alpha A (B s), |A| |B| 1: k and m elements */
} sight;

static double magnitude(double x) { return __builtin_fabs(x); }

static double sign(int64_t j) { return ((uint64_t)j * 0x9e3779b97f4a7c15u >> 40 & 1) ? -1 : 1; }

/* Computes s->want and s->size for rows [from, to). */
static void project(sight *s, int64_t from, int64_t to)
{
    const gpb_call *g = s->call;
    const bool ta = g->x[GPB_A].trans != 'N', tb = g->x[GPB_B].trans != 'N';
    for (int64_t p = 0; p < g->k; p++) {
        s->bs[p] = s->babs[p] = 0;
        for (int64_t j = s->j; j < s->j + s->cols; j++) {
            const double x = (double)(tb ? s->b[j + p * g->x[GPB_B].ld] : s->b[p + j * g->x[GPB_B].ld]);
            s->bs[p] += sign(j - s->j) * x;
            s->babs[p] += magnitude(x);
        }
    }
    memset(s->want, 0, (size_t)g->m * sizeof *s->want);
    memset(s->size, 0, (size_t)g->m * sizeof *s->size);
    for (int64_t p = 0; !ta && p < g->k; p++)
        for (int64_t i = from; i < to; i++) {
            const double x = (double)s->a[i + p * g->x[GPB_A].ld];
            s->want[i] += x * s->bs[p];
            s->size[i] += magnitude(x) * s->babs[p];
        }
    for (int64_t i = from; ta && i < to; i++)
        for (int64_t p = 0; p < g->k; p++) {
            const double x = (double)s->a[p + i * g->x[GPB_A].ld];
            s->want[i] += x * s->bs[p];
            s->size[i] += magnitude(x) * s->babs[p];
        }
}

/* Whether the sum may be right. Special values are judged as in tests/reference.c; in a group they hide the
   other elements. */
static bool agrees(sight *s, double product, double before)
{
    const double u = 0x1p-24, peak = product + before,
                 scale = gpb_call_multiplies(s->call) ? magnitude((double)s->call->alpha) : 0;
    s->bound = 4 * (((double)s->call->k + 4) * u * product + 2 * u * before)
               + (s->coarse ? 0x1p-8 * product : 0)
               + (double)s->cols * ((double)s->call->k + 4) * 0x1p-148 * (1 + scale);
    if (s->wanted != s->wanted) return s->cols > 1 || s->found != s->found;
    if (magnitude(s->wanted) == INFINITE) return s->found == s->wanted || s->found != s->found || s->cols > 1;
    if (s->found != s->found || magnitude(s->found) == INFINITE) return !(peak < FLT_MAX);
    return magnitude(s->found - s->wanted) <= s->bound || !(peak < FLT_MAX);
}

/* Checks columns [s->j, s->j + s->cols), rows [from, to). */
static bool check_rows(sight *s, int64_t from, int64_t to)
{
    const gpb_call *g = s->call;
    const double alpha = (double)g->alpha, beta = (double)g->beta;
    const bool multiplies = gpb_call_multiplies(g);
    if (from >= to) return true;
    if (multiplies) project(s, from, to);
    for (int64_t i = from; i < to; i++) {
        double product = 0, before = 0;
        s->wanted = s->found = 0;
        if (multiplies) {
            s->wanted = alpha * s->want[i];
            product = magnitude(alpha) * s->size[i];
        }
        for (int64_t j = s->j; j < s->j + s->cols; j++) {
            s->found += sign(j - s->j) * (double)s->c[i + j * g->x[GPB_C].ld];
            if (!s->old) continue;
            const double x = beta * (double)s->old[i + j * g->m];
            s->wanted += sign(j - s->j) * x;
            before += magnitude(x);
        }
        s->i = i;
        if (!agrees(s, product, before)) return false;
    }
    return true;
}

/* Checks a group of columns. In a triangle, first the rows that all of its columns have, then the rest column
   by column. */
static bool check_group(sight *s)
{
    const char uplo = s->call->x[GPB_C].uplo;
    const int64_t first = s->j, last = s->j + s->cols - 1, m = s->call->m;
    if (uplo == 'G') return check_rows(s, 0, m);
    bool right = uplo == 'U' ? check_rows(s, 0, first + 1) : check_rows(s, last, m);
    for (s->cols = 1, s->j = first; s->j <= last && right; s->j++) {
        right = uplo == 'U' ? check_rows(s, first + 1, s->j + 1) : check_rows(s, s->j, last);
        if (!right) break;
    }
    return right;
}

static int64_t group_of(const gpb_call *g)
{
    const double products = (double)g->m * (double)g->n * (double)g->k;
    const int64_t cols = products <= FIRST ? 1 : (int64_t)(products / PRODUCTS);
    return cols < 1 ? 1 : products > FIRST && cols < 32 ? 32 : cols;
}

/* True if all members are right, or there is no memory to check them. Else *s says where one is wrong. */
static bool is_right(const gpb_verify *verify, const gpb_call *g, sight *s)
{
    double *room = malloc((size_t)(2 * g->k + 2 * g->m + 1) * sizeof *room);
    bool right = true;
    if (!room) return true;
    s->bs = room;
    s->babs = room + g->k;
    s->want = room + 2 * g->k;
    s->size = s->want + g->m;
    for (int64_t l = 0; l < g->batch && right; l++) {
        s->a = gpb_call_member(g, GPB_A, l);
        s->b = gpb_call_member(g, GPB_B, l);
        s->c = gpb_call_member(g, GPB_C, l);
        s->old = verify->old ? verify->old + l * g->m * g->n : NULL;
        const int64_t group = group_of(g);
        for (int64_t j = 0; j < g->n && right; j += group) {
            s->j = j;
            s->cols = min(group, g->n - j);
            right = check_group(s);
        }
    }
    free(room);
    return right;
}

/* Copies between a member's C and a tight copy. Of a triangle only its own part, because the rest may be
   another thread's. */
static void copy(const gpb_call *g, float *tight, bool back)
{
    for (int64_t l = 0; l < g->batch; l++) {
        float *c = gpb_call_member(g, GPB_C, l);
        for (int64_t j = 0; j < g->n; j++) {
            const gpb_matrix_rows rows = gpb_matrix_rows_of(g->x[GPB_C].uplo, 0, g->m, j);
            float *column = c + j * g->x[GPB_C].ld, *kept = tight + (l * g->n + j) * g->m;
            memcpy((back ? column : kept) + rows.first, (back ? kept : column) + rows.first,
                   (size_t)(rows.last - rows.first) * sizeof(float));
        }
    }
}

gpb_verify gpb_verify_begin(const gpb_call *call, const gpb_facts *facts)
{
    gpb_verify verify = { .wanted = gpb_option_number(GPB_OPTION_VERIFY) && !gpb_facts_on_gpu(facts) };
    if (verify.wanted && call->beta != 0) {
        verify.old = malloc((size_t)call->m * (size_t)call->n * (size_t)call->batch * sizeof(float));
        verify.wanted = verify.old != NULL;
        if (verify.wanted) copy(call, verify.old, false);
        else gpb_log_debug("GPUBLAS_VERIFY: no memory for a copy of C; this call is not checked");
    }
    return verify;
}

static void write_matrix(int file, const float *at, int64_t rows, int64_t cols, int64_t ld)
{
    for (int64_t j = 0; j < cols; j++)
        if (write(file, at + j * ld, (size_t)rows * sizeof(float)) < 0) return;
}

/* Writes a header line, then the wrong member's A, B, C before the call (if beta is not 0) and C, column by
   column without padding. The file is new and only for this user. At most a few are written a process. */
static void dump(const sight *s)
{
    enum { MOST = 4 };
    static atomic_int dumps;
    const gpb_call *g = s->call;
    const char *folder = gpb_option_text(GPB_OPTION_VERIFY_DUMP);
    char path[1024];
    if (!folder || getauxval(AT_SECURE) || atomic_fetch_add(&dumps, 1) >= MOST) return;
    if (snprintf(path, sizeof path, "%s/gpublas-%d-%d.dump", folder, (int)getpid(), atomic_load(&dumps))
        >= (int)sizeof path)
        return;
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) {
        gpb_log_warn("GPUBLAS_VERIFY_DUMP: cannot create %s", path);
        return;
    }
    dprintf(file,
        "gpublas-dump uplo=%c transa=%c transb=%c m=%lld n=%lld k=%lld alpha=%a beta=%a wrong=%lld,%lld\n",
        g->x[GPB_C].uplo, g->x[GPB_A].trans, g->x[GPB_B].trans, (long long)g->m, (long long)g->n,
        (long long)g->k, (double)g->alpha, (double)g->beta, (long long)s->i, (long long)s->j);
    if (gpb_call_multiplies(g)) {
        write_matrix(file, s->a, gpb_call_rows(g, GPB_A), gpb_call_cols(g, GPB_A), g->x[GPB_A].ld);
        write_matrix(file, s->b, gpb_call_rows(g, GPB_B), gpb_call_cols(g, GPB_B), g->x[GPB_B].ld);
    }
    if (s->old) write_matrix(file, s->old, g->m, g->n, g->m);
    write_matrix(file, s->c, g->m, g->n, g->x[GPB_C].ld);
    close(file);
    gpb_log_warn("GPUBLAS_VERIFY_DUMP: the operands are saved in %s", path);
}

bool gpb_verify_end(gpb_verify *verify, const gpb_call *call, const gpb_facts *facts, const gpb_outcome *out)
{
    sight s = { .call = call, .coarse = (out->kernel && out->kernel->math == GPB_MATH_TF32)
        || gpb_option_number(GPB_OPTION_MATH) == GPB_POLICY_TF32 };
    const bool right = !verify->wanted || !out->done || is_right(verify, call, &s);
    if (!right) {
        int cancel;
        /* Writing is a cancellation point, and C is not right yet. */
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
        gpb_log_warn("GPUBLAS_VERIFY: %s m=%lld n=%lld k=%lld by kernel %s: "
                     "C(%lld,%lld) is wrong by %g, %g is allowed; "
                     "the host's result replaces it",
                     call->symbol, (long long)call->m, (long long)call->n, (long long)call->k,
                     out->kernel ? out->kernel->name : "-", (long long)s.i, (long long)s.j,
                     magnitude(s.found - s.wanted), s.bound);
        dump(&s);
        gpb_stats_add(&(gpublas_stats_t){ .wrong_calls = 1 });
        if (verify->old) copy(call, verify->old, true);
        gpb_call again = *call;
        /* OpenBLAS 0.3.21 passes a NaN of alpha on even if k is 0. */
        if (!gpb_call_multiplies(call)) again.alpha = 0;
        gpb_repair(&(gpb_job){ .call = &again, .facts = facts });
        pthread_setcancelstate(cancel, NULL);
    }
    free(verify->old);
    *verify = (gpb_verify){ 0 };
    return right;
}
