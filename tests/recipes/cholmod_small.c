/* SPDX-License-Identifier: MIT */
/* A band of 60, whose factor has dense blocks. */
#include <cholmod.h>
#include <stdio.h>

enum { N = 600, BAND = 60 };

int main(void)
{
    cholmod_common c;
    cholmod_start(&c);
    c.supernodal = CHOLMOD_SUPERNODAL;
    cholmod_triplet *t = cholmod_allocate_triplet(N, N, (size_t)N * (BAND + 1), -1, CHOLMOD_REAL, &c);
    for (int j = 0; j < N; j++)
        for (int i = j; i < N && i <= j + BAND; i++) {
            ((int *)t->i)[t->nnz] = i;
            ((int *)t->j)[t->nnz] = j;
            ((double *)t->x)[t->nnz++] = i == j ? 2 * BAND + 2 : -1;
        }
    cholmod_sparse *a = cholmod_triplet_to_sparse(t, 0, &c);
    cholmod_factor *l = cholmod_analyze(a, &c);
    cholmod_factorize(a, l, &c);
    cholmod_dense *b = cholmod_ones(N, 1, CHOLMOD_REAL, &c), *x = cholmod_solve(CHOLMOD_A, l, b, &c);
    double one[2] = { 1, 0 }, minus[2] = { -1, 0 };
    cholmod_sdmult(a, 0, minus, one, x, b, &c);
    printf("%d\n", cholmod_norm_dense(b, 0, &c) < 1e-12);
    return 0;
}
