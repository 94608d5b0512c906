/* SPDX-License-Identifier: MIT */
/* A program that links one BLAS library, whichever it is, and uses all kinds of its names: computed and
   forwarded ones, functions that return float, double, int and complex, hidden string lengths, an xerbla_
   of its own. The operands are small integers, so every sum is exact and the output is the same on any
   BLAS. With an argument it also names the BLAS libraries in the process, on stderr. */
#include "matrix.h"
#include <complex.h>
#include <link.h>

float sdot_(const int *, const float *, const int *, const float *, const int *);
double ddot_(const int *, const double *, const int *, const double *, const int *);
float snrm2_(const int *, const float *, const int *);
int isamax_(const int *, const float *, const int *);
float complex cdotc_(const int *, const float complex *, const int *, const float complex *, const int *);
double complex zdotu_(const int *, const double complex *, const int *, const double complex *, const int *);
void sgemv_(const char *, const int *, const int *, const float *, const float *, const int *, const float *,
            const int *, const float *, float *, const int *, size_t);
void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *, size_t, size_t);
void strsm_(const char *, const char *, const char *, const char *, const int *, const int *, const float *,
            const float *, const int *, float *, const int *, size_t, size_t, size_t, size_t);
void cblas_ssyrk(int, int, int, int, int, float, const float *, int, float, float *, int);
float cblas_sasum(int, const float *, int);

static int reported;
void xerbla_(const char *name, const int *info, size_t length);
void xerbla_(const char *name, const int *info, size_t length)
{
    (void)name, (void)length;
    reported = *info;
}

static int tell(struct dl_phdr_info *object, size_t size, void *nothing)
{
    (void)size, (void)nothing;
    const char *base = strrchr(object->dlpi_name, '/');
    base = base ? base + 1 : object->dlpi_name;
    if (strstr(base, "blas") || strstr(base, "blis") || strstr(base, "mkl") || strstr(base, "atlas"))
        fprintf(stderr, "blas: %s\n", object->dlpi_name);
    return 0;
}

enum { N = 96 };

int main(int count, char **words)
{
    (void)words;
    static float a[N * N], b[N * N], c[N * N];
    static double da[N * N], dc[N * N];
    float complex u[3] = { 1 + 2 * I, 3 - I, -2 + 5 * I }, v[3] = { 2 - I, 1 + I, 4 };
    double complex s[2] = { 1 + I, 2 }, t[2] = { 3, 1 - I };
    const int n = N, one = 1, two = 2, three = 3, bad = -1;
    const float f1 = 1, f0 = 0;
    const double d1 = 1, d0 = 0;
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)(i % 7 - 3);
        b[i] = (float)(i % 5 - 2);
        da[i] = a[i];
    }
    a[17] = -9;
    sgemm_("N", "t", &n, &n, &n, &f1, a, &n, b, &n, &f0, c, &n);
    printf("sgemm_ %g %g\n", (double)c[0], (double)c[N * N - 1]);
    cblas_sgemm(ROW, NO_TRANS, TRANS, N, N, N, 1, a, N, b, N, 0, c, N);
    printf("cblas_sgemm %g %g\n", (double)c[1], (double)c[N * N - 2]);
    sgemm_("N", "N", &bad, &n, &n, &f1, a, &n, b, &n, &f0, c, &n);
    printf("xerbla_ %d\n", reported);
    dgemm_("T", "N", &n, &n, &n, &d1, da, &n, da, &n, &d0, dc, &n, 1, 1);
    printf("dgemm_ %g\n", dc[N + 2]);
    printf("sdot_ %g, ddot_ %g, snrm2_ %g, isamax_ %d\n", (double)sdot_(&n, a, &one, b, &two),
           ddot_(&n, da, &one, da, &two), (double)snrm2_(&one, a + 17, &one), isamax_(&n, a, &one));
    float complex x = cdotc_(&three, u, &one, v, &one);
    double complex y = zdotu_(&two, s, &one, t, &one);
    printf("cdotc_ %g%+gi, zdotu_ %g%+gi\n", (double)crealf(x), (double)cimagf(x), creal(y), cimag(y));
    sgemv_("T", &n, &n, &f1, a, &n, b, &one, &f0, c, &one, 1);
    printf("sgemv_ %g\n", (double)c[5]);
    cblas_ssyrk(COLUMN, UPPER, NO_TRANS, N, N, 1, a, N, 0, c, N);
    printf("cblas_ssyrk %g, cblas_sasum %g\n", (double)c[3 * N + 1], (double)cblas_sasum(N, a, 1));
    for (int i = 0; i < N; i++) a[i + N * i] = 2;
    strsm_("L", "U", "N", "N", &one, &n, &f1, a, &n, b, &n, 1, 1, 1, 1);
    printf("strsm_ %g\n", (double)b[0]);
    if (count > 1) dl_iterate_phdr(tell, NULL);
    return 0;
}
