/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *);
void dgesv_(const int *, const int *, double *, const int *, int *, double *, const int *, int *);

enum { N = 200 };
static double a[N * N], x[N * N], b[N * N];
static int ipiv[N];

int main(void)
{
    const int n = N;
    const double one = 1, zero = 0;
    double off = 0;
    int info;
    for (int i = 0; i < N * N; i++) {
        a[i] = i % 19 + (i % (N + 1) == 0 ? 1000 : 0);
        x[i] = i % 7;
    }
    dgemm_("N", "N", &n, &n, &n, &one, a, &n, x, &n, &zero, b, &n);
    dgesv_(&n, &n, a, &n, ipiv, b, &n, &info);
    for (int i = 0; i < N * N; i++) off = fmax(off, fabs(b[i] - x[i]));
    printf("%d %d\n", info, off < 1e-9);
    return 0;
}
