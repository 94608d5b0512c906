/* SPDX-License-Identifier: MIT */
#include <gsl/gsl_blas.h>
#include <stdio.h>

int main(void)
{
    gsl_matrix *a = gsl_matrix_alloc(200, 200), *c = gsl_matrix_calloc(200, 200);
    double sum = 0;
    for (size_t x = 0; x < 40000; x++) a->data[x] = (double)(x * 7919 % 19);
    gsl_blas_dgemm(CblasNoTrans, CblasTrans, 1, a, a, 0, c);
    for (size_t x = 0; x < 40000; x++) sum += c->data[x];
    printf("%.0f\n", sum);
    return 0;
}
