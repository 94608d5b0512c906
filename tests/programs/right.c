/* SPDX-License-Identifier: MIT */
/* For languages that load a library and call it: *right = 1 if a product of small integers by sgemm_ is
   exact. Knows nothing of libgpublas. */
#include "matrix.h"

void right(int *right)
{
    enum { M = 300, N = 290, K = 310 };
    static float a[M * K], b[K * N], c[M * N];
    const int m = M, n = N, k = K;
    const float one = 1, zero = 0;
    for (int i = 0; i < M * K; i++) a[i] = (float)(i % 7 - 3);
    for (int i = 0; i < K * N; i++) b[i] = (float)(i % 5 - 2);
    sgemm_("N", "N", &m, &n, &k, &one, a, &m, b, &k, &zero, c, &m);
    *right = 1;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < M; i++) {
            int exact = 0;
            for (int p = 0; p < K; p++) exact += (int)a[i + p * M] * (int)b[p + j * K];
            if (c[i + j * M] != (float)exact) *right = 0;
        }
}
