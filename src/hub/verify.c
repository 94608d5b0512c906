/* SPDX-License-Identifier: MIT */
/* Checks C = alpha A B + beta C, more precisely than it was computed, by random projections (Freivalds). For
   a group of columns with random signs s, C s must equal alpha A (B s) + beta C s within the sum of the
   columns' bounds. For a group of one column that is the exact check of each element. Groups grow with the
   problem, so that a check costs at most about a billion products. In a group of g columns a single wrong
   element must be about g times as far off to be found. verify_sums.h has the sums. */
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
#include "src/copy/copy2d.h"
#include "src/run/repair.h"
#include "src/service/descriptor.h"
#include "src/service/log.h"
#include "src/service/option.h"
#include "src/service/stats.h"

/* Most products of A and B that the groups may cost; up to FIRST each column is a group. */
enum { PRODUCTS = 1 << 30, FIRST = 1 << 24 };

/* One member, and the columns [j, j + cols) of it that are checked together. */
typedef struct sight {
    const gpb_call *call;
    const void *a, *b, *c, *old;
    bool coarse;                 /* operands may have been rounded to TF32 */
    int64_t i, j, cols;          /* i: also the row that was found wrong */
    double error, bound;
    void *bs, *babs;             /* B s, |B| 1: k sums */
    void *product, *magnitude;   /* A (B s), |A| |B| 1: m sums */
    void *want, *size;           /* the same times alpha, and of SYR2K added up over both products */
} sight;

static double sign(int64_t j) { return ((uint64_t)j * 0x9e3779b97f4a7c15u >> 40 & 1) ? -1 : 1; }

#define LETTER s
#define ELEMENT float
#include "src/hub/verify_sums.h"
#define LETTER d
#define ELEMENT double
#include "src/hub/verify_sums.h"
#define LETTER c
#define ELEMENT float _Complex
#include "src/hub/verify_sums.h"
#define LETTER z
#define ELEMENT double _Complex
#include "src/hub/verify_sums.h"

static const struct {
    size_t bytes;                /* of a sum */
    bool (*check_rows)(sight *s, int64_t from, int64_t to);
} checks[GPB_TYPES] = {
#define TYPE(letter, type, bytes, flops, kind) { SUM_BYTES_##letter, check_rows_##letter },
#include "dispatch/type.def"
#undef TYPE
};

static bool check_rows(sight *s, int64_t from, int64_t to)
{
    return checks[s->call->type].check_rows(s, from, to);
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
    const double products = (double)g->m * (double)g->n * (double)g->k * (gpb_type_of(g->type)->flops / 2)
                            * gpb_call_products(g);
    const int64_t cols = products <= FIRST ? 1 : (int64_t)(products / PRODUCTS);
    return cols < 1 ? 1 : products > FIRST && cols < 32 ? 32 : cols;
}

/* True if all members are right, or there is no memory to check them. Else *s says where one is wrong. */
static bool is_right(const gpb_verify *verify, const gpb_call *g, sight *s)
{
    const size_t element = gpb_call_element(g), sum = checks[g->type].bytes;
    const size_t k = (size_t)g->k * sum, m = (size_t)g->m * sum;
    char *room = malloc(2 * k + 4 * m + sum);
    bool right = true;
    if (!room) return true;
    s->bs = room;
    s->babs = room + k;
    s->want = room + 2 * k;
    s->size = room + 2 * k + m;
    s->product = room + 2 * k + 2 * m;
    s->magnitude = room + 2 * k + 3 * m;
    for (int64_t l = 0; l < g->batch && right; l++) {
        s->a = gpb_call_member(g, GPB_A, l);
        s->b = gpb_call_member(g, GPB_B, l);
        s->c = gpb_call_member(g, GPB_C, l);
        s->old = verify->old ? verify->old + (size_t)(l * g->m * g->n) * element : NULL;
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
static void copy(const gpb_call *g, char *tight, bool back)
{
    const size_t element = gpb_call_element(g);
    for (int64_t l = 0; l < g->batch; l++) {
        char *c = gpb_call_member(g, GPB_C, l);
        for (int64_t j = 0; j < g->n; j++) {
            const gpb_matrix_rows rows = gpb_matrix_rows_of(g->x[GPB_C].uplo, 0, g->m, j);
            char *column = c + (size_t)(j * g->x[GPB_C].ld + rows.first) * element;
            char *kept = tight + (size_t)((l * g->n + j) * g->m + rows.first) * element;
            memcpy(back ? column : kept, back ? kept : column,
                   (size_t)(rows.last - rows.first) * element);
            if (!back && gpb_call_hermitian(g))
                gpb_type_make_real(g->type, kept + (size_t)(j - rows.first) * element);
        }
    }
}

gpb_verify gpb_verify_begin(const gpb_call *call, const gpb_facts *facts)
{
    gpb_verify verify = { .wanted = gpb_option_number(GPB_OPTION_VERIFY) && !gpb_facts_on_gpu(facts)
                                    && !gpb_call_solves(call) };
    if (verify.wanted && call->beta != 0) {
        verify.old = malloc((size_t)call->m * (size_t)call->n * (size_t)call->batch * gpb_call_element(call));
        verify.wanted = verify.old != NULL;
        if (verify.wanted) copy(call, verify.old, false);
        else gpb_log_debug("GPUBLAS_VERIFY: no memory for a copy of C; this call is not checked");
    }
    return verify;
}

static void write_matrix(int file, const char *at, int64_t rows, int64_t cols, int64_t ld, size_t element)
{
    for (int64_t j = 0; j < cols; j++)
        if (gpb_log_write(file, at + (size_t)(j * ld) * element, (size_t)rows * element)) return;
}

/* Writes A or B; of a matrix of which one triangle is stored, all of it. */
static void write_operand(int file, const gpb_call *g, enum gpb_operand x, const char *at)
{
    const gpb_matrix *of = &g->x[x];
    const int64_t rows = gpb_call_rows(g, x), cols = gpb_call_cols(g, x);
    const size_t element = gpb_call_element(g);
    gpb_copy2d_job job = { .from = at, .rows = rows, .cols = cols, .ld_from = of->ld, .ld_to = rows,
                           .element = element, .uplo = of->uplo, .mirrors = true,
                           .hermitian = of->structure == GPB_HERMITIAN, .type = g->type };
    if (!gpb_call_mirrors(g, x)) {
        write_matrix(file, at, rows, cols, of->ld, element);
    } else if ((job.to = malloc((size_t)rows * (size_t)cols * element))) {
        gpb_copy2d(&job);
        write_matrix(file, job.to, rows, cols, rows, element);
        free(job.to);
    }
}

/* Writes a header line, then the wrong member's A, B, C before the call (if beta is not 0) and C, column by
   column without padding. The file is new and only for this user. At most a few are written a process. */
static void dump(const sight *s)
{
    enum { MAX_DUMPS = 4 };
    static atomic_int dumps;
    const gpb_call *g = s->call;
    const size_t element = gpb_call_element(g);
    const double alpha[] = GPB_SCALAR_RE_IM(g->alpha), beta[] = GPB_SCALAR_RE_IM(g->beta);
    const char *folder = gpb_option_text(GPB_OPTION_VERIFY_DUMP);
    char path[1024];
    if (!folder || getauxval(AT_SECURE) || atomic_fetch_add(&dumps, 1) >= MAX_DUMPS) return;
    if (snprintf(path, sizeof path, "%s/gpublas-%d-%d.dump", folder, (int)getpid(), atomic_load(&dumps))
        >= (int)sizeof path)
        return;
    const int file = gpb_descriptor_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file < 0) {
        gpb_log_warn("GPUBLAS_VERIFY_DUMP: cannot create %s", path);
        return;
    }
    char header[512];
    snprintf(header, sizeof header,
        "gpublas-dump type=%c uplo=%c transa=%c transb=%c m=%lld n=%lld k=%lld alpha=%a beta=%a "
        "wrong=%lld,%lld alpha_imaginary=%a beta_imaginary=%a products=%d\n",
        gpb_type_of(g->type)->letter, g->x[GPB_C].uplo, g->x[GPB_A].trans, g->x[GPB_B].trans, (long long)g->m,
        (long long)g->n, (long long)g->k, alpha[0], beta[0], (long long)s->i, (long long)s->j, alpha[1],
        beta[1], gpb_call_products(g));
    gpb_log_write(file, header, strlen(header));
    if (gpb_call_multiplies(g)) {
        write_operand(file, g, GPB_A, s->a);
        write_operand(file, g, GPB_B, s->b);
    }
    if (s->old) write_matrix(file, s->old, g->m, g->n, g->m, element);
    write_matrix(file, s->c, g->m, g->n, g->x[GPB_C].ld, element);
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
                     s.error, s.bound);
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
