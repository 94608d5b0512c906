/* SPDX-License-Identifier: MIT */
/* SGEMM of several shapes, checked against FP64, for scripts that make the GPU fail. Some shapes are
   larger than the device memory that the library may use. C lies in a larger array of canaries. With an
   argument: deep products, for which FFMA kernels use Stream-K. Exits with the number of wrong calls. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);

static float draw(void)
{
    static unsigned long long state = 88172645463325252ull;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (float)((double)(state >> 11) / 4503599627370496.0 - 1);
}

/* op(X), which lies as `trans` says: its k numbers of a row lie side by side, and zeros behind them. */
enum { LANES = 4 };
static int rounded(int k) { return (k + LANES - 1) / LANES * LANES; }
static double *along_k(const float *x, char trans, int rows, int k, int ld)
{
    double *copy = calloc((size_t)rows * (size_t)rounded(k), sizeof *copy);
    for (int i = 0; i < rows; i++)
        for (int p = 0; p < k; p++)
            copy[(size_t)i * (size_t)rounded(k) + (size_t)p]
                = (double)x[trans == 'N' ? (size_t)i + (size_t)p * (size_t)ld
                                         : (size_t)p + (size_t)i * (size_t)ld];
    return copy;
}

/* The sum of products, and that of their absolute values. */
static void dot(const double *x, const double *y, int k, double *sum, double *size)
{
    typedef double pair __attribute__((vector_size(2 * sizeof(double)), aligned(sizeof(double))));
    typedef long long bits __attribute__((vector_size(sizeof(pair))));
    const bits no_sign = { INT64_MAX, INT64_MAX };
    pair sums[2] = { { 0 } }, sizes[2] = { { 0 } };
    for (int p = 0; p < k; p += LANES)
        for (int h = 0; h < 2; h++) {
            const pair product = *(const pair *)(x + p + 2 * h) * *(const pair *)(y + p + 2 * h);
            sums[h] += product;
            sizes[h] += (pair)((bits)product & no_sign);
        }
    *sum = sums[0][0] + sums[0][1] + sums[1][0] + sums[1][1];
    *size = sizes[0][0] + sizes[0][1] + sizes[1][0] + sizes[1][1];
}

static int wrong(int m, int n, int k, char ta, char tb, float alpha, float beta)
{
    const int pad = 3, lda = (ta == 'N' ? m : k) + pad, ldb = (tb == 'N' ? k : n) + pad, ldc = m + pad;
    const size_t na = (size_t)lda * (size_t)(ta == 'N' ? k : m),
                 nb = (size_t)ldb * (size_t)(tb == 'N' ? n : k), nc = (size_t)ldc * (size_t)n;
    float *a = malloc(na * 4), *b = malloc(nb * 4), *c = malloc(nc * 4), *before = malloc(nc * 4);
    int bad = 0;
    for (size_t i = 0; i < na; i++) a[i] = draw();
    for (size_t i = 0; i < nb; i++) b[i] = draw();
    for (size_t i = 0; i < nc; i++)
        c[i] = before[i] = (int)(i % (size_t)ldc) >= m ? -77 : beta == 0 ? NAN : draw();
    sgemm_(&ta, &tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
    double *of_a = along_k(a, ta, m, k, lda), *of_b = along_k(b, tb == 'N' ? 'T' : 'N', n, k, ldb);
    for (int j = 0; j < n && !bad; j++)
        for (int i = 0; i < ldc && !bad; i++) {
            const float now = c[i + (size_t)j * (size_t)ldc], old = before[i + (size_t)j * (size_t)ldc];
            if (i >= m) {
                bad = now != -77;
            } else if ((i + 7 * j) % 11 == 0 || i + 1 == m || j + 1 == n) {
                double sum, size;
                dot(of_a + (size_t)i * (size_t)rounded(k), of_b + (size_t)j * (size_t)rounded(k), k, &sum,
                    &size);
                double right = alpha * sum + (beta == 0 ? 0 : (double)beta * old), u = ldexp(1, -24);
                /* k roundings in the host's own order, and one of beta C a panel. */
                bad = !(fabs(now - right)
                        <= (k + 4) * u
                                   * (fabs((double)alpha) * size + (beta == 0 ? 0 : fabs((double)beta * old)))
                               + 1e-30);
            }
            if (bad)
                printf("wrong: %d x %d x %d %c%c beta %g: C(%d,%d) = %g\n", m, n, k, ta, tb, beta, i, j, now);
        }
    free(a);
    free(b);
    free(c);
    free(before);
    free(of_a);
    free(of_b);
    return bad;
}

int main(int argc, char **argv)
{
    int count = 0;
    (void)argv;
    for (int i = 0; i < 4; i++) {
        char ta = "NT"[i & 1], tb = "NT"[i >> 1];
        float beta = (float)(i % 3) / 2;
        if (argc > 1) {
            count += i == 1 ? wrong(1030, 1100, 2060, ta, tb, 1, beta)
                            : wrong(20, 150, 33000, ta, tb, -0.5f, beta);
            continue;
        }
        count += wrong(64, 48, 32, ta, tb, 1, beta);
        count += wrong(700, 600, 90, ta, tb, -0.5f, beta);
        count += wrong(300, 500, 1100, ta, tb, 1, 1 - beta);
    }
    return count;
}
