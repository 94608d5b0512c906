/* SPDX-License-Identifier: MIT */
/* Batches of TRSM and SYRK against plain loops: all letters, four types, both languages and widths, both
   orders, strides, groups of different shapes and of none, illegal arguments. What must not be read is NaN,
   what must not be written is kept. Prints a line for each check; exit code: the number of wrong ones.
   usage: batches [device] [few]. device: operands in device memory; few: one type and form, for failures of
   driver calls (test_batches.sh) */
#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

enum { ROW = 101, COLUMN = 102, MEMBERS = 5, MOST = 66, PAD = 2, ROOM = (MOST + PAD) * (MOST + PAD) };

/* ---- xerbla_, which the library calls */

static int reported;
void xerbla_(const char *name, const int *info, size_t length);
void xerbla_(const char *name, const int *info, size_t length)
{
    (void)name;
    (void)length;
    reported = *info;
}
void cblas_xerbla(int info, const char *name, const char *form, ...);
void cblas_xerbla(int info, const char *name, const char *form, ...)
{
    (void)name;
    (void)form;
    reported = info;
}

static int wrong, device, few;
static void tell(bool right, const char *name)
{
    printf("%s %s\n", right ? "right" : "WRONG", name);
    wrong += !right;
}

/* ---- device memory */

/* Memory of all members of one operand: here, and where the call gets it. */
typedef struct memory { char *here, *callers; size_t bytes; } memory;

static memory new_memory(size_t bytes)
{
    memory m = { calloc(1, bytes), NULL, bytes };
    m.callers = m.here;
    if (device && device_alloc(&m.callers, bytes)) exit(103);
    return m;
}
static void send(const memory *m)
{
    if (device && device_copy_to((uintptr_t)m->callers, m->here, m->bytes)) exit(104);
}
static void drop(memory *m)
{
    if (device && device_free((uintptr_t)m->callers)) exit(106);
    free(m->here);
}
static void fetch(const memory *m)
{
    if (device && device_copy_from(m->here, (uintptr_t)m->callers, m->bytes)) exit(105);
}

/* ---- what is solved, and how it is to be passed */

typedef struct shape {
    char side, uplo, trans, diag;
    int m, n, members;                 /* of SYRK: n, k */
    double complex alpha, beta;
} shape;

enum form { FORTRAN, FORTRAN_64, C, C_ROWS, C_64, FORMS };
static const char *const forms[] = { "Fortran", "Fortran, 64 bits", "C", "C, rows", "C, 64 bits" };

static int c_trans(char x) { return x == 'N' ? 111 : x == 'T' ? 112 : 113; }
static int c_uplo(char x) { return x == 'U' ? 121 : 122; }
static int c_diag(char x) { return x == 'N' ? 131 : 132; }
static int c_side(char x) { return x == 'L' ? 141 : 142; }

static double next(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53 - 0.5;
}

#define LETTER s
#define ELEMENT float
#define SCALAR float
#define PASS(x) x
#include "batches_typed.h"
#define LETTER d
#define ELEMENT double
#define SCALAR double
#define PASS(x) x
#include "batches_typed.h"
#define LETTER c
#define ELEMENT float complex
#define SCALAR const void *
#define PASS(x) &x
#include "batches_typed.h"
#define LETTER z
#define ELEMENT double complex
#define SCALAR const void *
#define PASS(x) &x
#include "batches_typed.h"

/* ---- illegal arguments: numbers as of TRSM and SYRK, and of what comes behind them */

static void trsm_errors(void)
{
    static const struct { int number; char side, uplo, trans, diag; int m, n, lda, ldb, size; } cases[] = {
        { 1, 'X', 'U', 'N', 'N', 4, 4, 4, 4, 1 },  { 2, 'L', 'X', 'N', 'N', 4, 4, 4, 4, 1 },
        { 3, 'L', 'U', 'X', 'N', 4, 4, 4, 4, 1 },  { 4, 'L', 'U', 'N', 'X', 4, 4, 4, 4, 1 },
        { 5, 'L', 'U', 'N', 'N', -1, 4, 4, 4, 1 }, { 6, 'L', 'U', 'N', 'N', 4, -1, 4, 4, 1 },
        { 9, 'L', 'U', 'N', 'N', 4, 1, 3, 4, 1 },  { 9, 'R', 'U', 'N', 'N', 1, 4, 3, 4, 1 },
        { 11, 'L', 'U', 'N', 'N', 4, 1, 4, 3, 1 }, { 13, 'L', 'U', 'N', 'N', 4, 4, 4, 4, -1 },
    };
    bool right = true, right_strided = true;
    double a[2][16], b[2][16], one = 1;
    for (int i = 0; i < 32; i++) a[i / 16][i % 16] = b[i / 16][i % 16] = 1;
    for (int i = 0; i < 10; i++) {
        /* The second group is the illegal one, and the first is not computed. */
        const char side[] = { 'L', cases[i].side }, uplo[] = { 'L', cases[i].uplo },
                   trans[] = { 'N', cases[i].trans }, diag[] = { 'N', cases[i].diag };
        const int m[] = { 4, cases[i].m }, n[] = { 4, cases[i].n }, lda[] = { 4, cases[i].lda },
                  ldb[] = { 4, cases[i].ldb }, size[] = { 1, cases[i].size }, groups = 2, stride = 16;
        const double alpha[] = { 2, 2 }, *as[] = { a[0], a[1] };
        double *bs[] = { b[0], b[1] };
        reported = -1;
        dtrsm_batch_(side, uplo, trans, diag, m, n, alpha, as, lda, bs, ldb, &groups, size);
        right &= reported == cases[i].number;
        reported = -1;
        dtrsm_batch_strided_(side + 1, uplo + 1, trans + 1, diag + 1, m + 1, n + 1, &one, a[0], lda + 1,
                             &stride, b[0], ldb + 1, &stride, size + 1);
        const int number = cases[i].number == 11 ? 12 : cases[i].number == 13 ? 14 : cases[i].number;
        right_strided &= reported == number;
        for (int e = 0; e < 32; e++) right &= b[e / 16][e % 16] == 1;
    }
    const int minus = -1;
    reported = -1;
    dtrsm_batch_("L", "L", "N", "N", &minus, &minus, &one, NULL, &minus, NULL, &minus, &minus, &minus);
    right &= reported == 12;
    tell(right, "errors of dtrsm_batch_");
    tell(right_strided, "errors of dtrsm_batch_strided_");
    const int illegal = 7, left = 141, lower = 122, plain = 111, not_unit = 131, four = 4, size = 1;
    const double *as[] = { a[0] };
    double *bs[] = { b[0] };
    reported = -1;
    cblas_dtrsm_batch(COLUMN, &left, &lower, &illegal, &not_unit, &four, &four, &one, as, &four, bs, &four, 1,
                      &size);
    right = reported == 4;
    reported = -1;
    cblas_dtrsm_batch(99, &left, &lower, &plain, &not_unit, &four, &four, &one, as, &four, bs, &four, 1,
                      &size);
    right &= reported == 1;
    reported = -1;                                   /* each legal where the other is */
    cblas_dtrsm_batch(COLUMN, &lower, &left, &plain, &not_unit, &four, &four, &one, as, &four, bs, &four, 1,
                      &size);
    right &= reported == 2 && b[0][0] == 1;
    reported = -1;
    cblas_dtrsm_batch_strided(ROW, left, lower, plain, illegal, 4, 4, 1, a[0], 4, 16, b[0], 4, 16, 1);
    tell(right && reported == 5 && b[0][0] == 1, "errors of cblas_dtrsm_batch and its strided form");
}

static void syrk_errors(void)
{
    static const struct { int number; char uplo, trans; int n, k, lda, ldc, size; } cases[] = {
        { 1, 'X', 'N', 4, 4, 4, 4, 1 },  { 2, 'U', 'X', 4, 4, 4, 4, 1 },  { 3, 'U', 'N', -1, 4, 4, 4, 1 },
        { 4, 'U', 'N', 4, -1, 4, 4, 1 }, { 7, 'U', 'N', 4, 2, 3, 4, 1 },  { 7, 'U', 'T', 2, 4, 3, 4, 1 },
        { 10, 'L', 'N', 4, 4, 4, 3, 1 }, { 12, 'L', 'N', 4, 4, 4, 4, -1 },
    };
    bool right = true, right_strided = true;
    double a[16], c[16], one = 1;
    for (int i = 0; i < 16; i++) a[i] = c[i] = 1;
    for (int i = 0; i < 8; i++) {
        const int groups = 1, stride = 16;
        const double *as[] = { a };
        double *cs[] = { c };
        reported = -1;
        dsyrk_batch_(&cases[i].uplo, &cases[i].trans, &cases[i].n, &cases[i].k, &one, as, &cases[i].lda, &one,
                     cs, &cases[i].ldc, &groups, &cases[i].size);
        right &= reported == cases[i].number;
        reported = -1;
        dsyrk_batch_strided_(&cases[i].uplo, &cases[i].trans, &cases[i].n, &cases[i].k, &one, a,
                             &cases[i].lda, &stride, &one, c, &cases[i].ldc, &stride, &cases[i].size);
        const int number = cases[i].number == 10 ? 11 : cases[i].number == 12 ? 13 : cases[i].number;
        right_strided &= reported == number;
        for (int e = 0; e < 16; e++) right &= c[e] == 1;
    }
    tell(right, "errors of dsyrk_batch_");
    tell(right_strided, "errors of dsyrk_batch_strided_");
}

int main(int count, char **words)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < count; i++) {
        device |= strcmp(words[i], "device") == 0;
        few |= strcmp(words[i], "few") == 0;
    }
    if (device) device_enter();
    all_d();
    if (few) return wrong;
    all_s();
    all_c();
    all_z();
    if (device) return wrong;
    trsm_errors();
    syrk_errors();
    return wrong;
}
