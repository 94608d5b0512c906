/* SPDX-License-Identifier: MIT */
/* Factorisations and solves that stay on the GPU, while driver calls of theirs fail (test_resident.sh): what
   the caller gets is right each time, whoever computed it. Exit code: the number of wrong results.
   usage: resident [order [all]]. all: also a matrix that is not positive definite. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dgetrf_(const int *, const int *, double *, const int *, int *, int *);
void dgesv_(const int *, const int *, double *, const int *, int *, double *, const int *, int *);
void dgetrs_(const char *, const int *, const int *, const double *, const int *, const int *, double *,
             const int *, int *, size_t);
void dpotrf_(const char *, const int *, double *, const int *, int *, size_t);
void dposv_(const char *, const int *, const int *, double *, const int *, double *, const int *, int *,
            size_t);

enum { MOST = 1000, NRHS = 70 };
static double a[MOST * MOST], x[MOST * MOST], b[MOST * NRHS], y[MOST * NRHS];
static int ipiv[MOST], wrong, n = 300, ld = 303;

static double next(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53 - 0.5;
}

/* |A Y - B| for that A, op(A) if transposed, as a multiple of n eps |A| |Y|. */
static double residual(int transposed)
{
    double most = 0, of_a = 0, of_y = 0;
    for (int i = 0; i < ld * n; i++) of_a = fmax(of_a, i % ld < n ? fabs(a[i]) : 0);
    for (int i = 0; i < ld * NRHS; i++) of_y = fmax(of_y, i % ld < n ? fabs(y[i]) : 0);
    for (int j = 0; j < NRHS; j++)
        for (int i = 0; i < n; i++) {
            double sum = -b[i + j * ld];
            for (int p = 0; p < n; p++)
                sum += (transposed ? a[p + i * ld] : a[i + p * ld]) * y[p + j * ld];
            most = fmax(most, fabs(sum));
        }
    return most / (n * 0x1p-52 * of_a * of_y);
}

static void check(const char *what, int info, int transposed)
{
    const double found = info == 0 ? residual(transposed) : HUGE_VAL;
    for (int i = 0; i < ld * NRHS; i++)
        if (i % ld >= n && y[i] != 7) info = -100;       /* wrote behind a column */
    if (found < 10 && info == 0) return;
    printf("wrong: %s: INFO %d, residual %g\n", what, info, found);
    wrong++;
}

static void fresh(int positive)
{
    for (int i = 0; i < ld * n; i++) a[i] = i % ld < n ? next() : 7;
    for (int i = 0; i < ld * NRHS; i++) b[i] = i % ld < n ? next() : 7;
    for (int j = 0; positive && j < n; j++) {
        for (int i = 0; i < j; i++) a[j + i * ld] = a[i + j * ld];
        a[j + j * ld] = n;
    }
    memcpy(x, a, sizeof a);
    memcpy(y, b, sizeof b);
}

int main(int argc, char **argv)
{
    const int nrhs = NRHS;
    int info;
    if (argc > 1) n = atoi(argv[1]);
    ld = n + 3;
    if (n < 1 || ld > MOST) return 100;
    fresh(0);
    dgesv_(&n, &nrhs, x, &ld, ipiv, y, &ld, &info);
    check("gesv", info, 0);
    memcpy(y, b, sizeof b);
    dgetrs_("T", &n, &nrhs, x, &ld, ipiv, y, &ld, &info, 1);
    check("getrs T of gesv's factors", info, 1);
    fresh(0);
    dgetrf_(&n, &n, x, &ld, ipiv, &info);
    dgetrs_("n", &n, &nrhs, x, &ld, ipiv, y, &ld, &info, 1);
    check("getrf, getrs", info, 0);
    for (const char *uplo = "LU"; *uplo; uplo++) {
        fresh(1);
        dposv_(uplo, &n, &nrhs, x, &ld, y, &ld, &info, 1);
        check(*uplo == 'L' ? "posv L" : "posv U", info, 0);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < ld; i++)
                if ((i >= n || (*uplo == 'L' ? i < j : i > j)) && x[i + j * ld] != a[i + j * ld]) {
                    printf("wrong: posv %c wrote (%d, %d)\n", *uplo, i, j);
                    wrong++;
                }
    }
    for (int bad = 0; argc > 2 && bad < n; bad += 53) {
        fresh(1);
        x[bad + bad * ld] = -1;
        dpotrf_("L", &n, x, &ld, &info, 1);
        if (info != bad + 1) {
            printf("wrong: not positive definite at %d: INFO %d\n", bad + 1, info);
            wrong++;
        }
    }
    return wrong;
}
