/* SPDX-License-Identifier: MIT */
#include <lapacke.h>
#include <math.h>
#include <stdio.h>

enum { N = 200 };
static double a[N * N], s[N * N], b[N];
static lapack_int ipiv[N];

int main(void)
{
    double off = 0;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) {
            a[i + j * N] = (i * 7 + j * 3) % 19 + (i == j ? 1000 : 0);
            s[i + j * N] = i == j ? N : 1;
            b[i] += a[i + j * N];
        }
    const lapack_int of_lu = LAPACKE_dgesv(LAPACK_COL_MAJOR, N, 1, a, N, ipiv, b, N);
    const lapack_int of_cholesky = LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', N, s, N);
    for (int i = 0; i < N; i++) off = fmax(off, fabs(b[i] - 1));
    printf("%d %d %d\n", (int)of_lu, (int)of_cholesky, off < 1e-9);
    return 0;
}
