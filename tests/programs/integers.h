/* SPDX-License-Identifier: MIT */
/* One product of small integers, with the same bits on every route and from every host. For programs that
   test what happens around the product. */
#ifndef INTEGERS_H
#define INTEGERS_H

#include "matrix.h"

enum { N = 130 };
static float a[N * N], b[N * N], shared_c[N * N];
static int exact[N * N];
static int wrong;                /* checks that were wrong */

static inline void tell(bool right, const char *what)
{
    printf("%s %s\n", right ? "right" : "WRONG", what);
    wrong += !right;
}

static inline void fill(void)
{
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)(i * 7 % 11 - 5);
        b[i] = (float)(i * 5 % 7 - 3);
    }
    for (int j = 0; j < N; j++)
        for (int p = 0; p < N; p++)
            for (int i = 0; i < N; i++) exact[i + j * N] += (int)a[i + p * N] * (int)b[p + j * N];
}

/* C = A B, where C of N x N is full of NaN before. */
static inline void call(float *c)
{
    const int n = N;
    const float one = 1, zero = 0;
    memset(c, 0xff, sizeof shared_c);
    sgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
}

static inline bool is_right(const float *c)
{
    for (int i = 0; i < N * N; i++)
        if (c[i] != (float)exact[i]) return false;
    return true;
}

static inline bool multiply(float *c)
{
    call(c);
    return is_right(c);
}

#endif
