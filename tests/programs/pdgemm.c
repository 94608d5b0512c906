/* SPDX-License-Identifier: MIT */
/* PDGEMM by four ranks, 2 x 2: `pdgemm n nb` multiplies matrices of order n in blocks of nb. Rank 0 prints
   the sum of C, whose elements are whole numbers, and the seconds. A(i,j) = (i + 2 j) mod 7, B(i,j) =
   (3 i + j) mod 5. No headers of ScaLAPACK are needed. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
void Cblacs_exit(int go_on);
int numroc_(const int *n, const int *nb, const int *coordinate, const int *source, const int *processes);
void descinit_(int *desc, const int *m, const int *n, const int *mb, const int *nb, const int *rsrc,
               const int *csrc, const int *context, const int *lld, int *info);
void pdgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k,
             const double *alpha, const double *a, const int *ia, const int *ja, const int *desca,
             const double *b, const int *ib, const int *jb, const int *descb, const double *beta, double *c,
             const int *ic, const int *jc, const int *descc);
void dgsum2d_(const int *context, const char *scope, const char *top, const int *m, const int *n, double *a,
              const int *lda, const int *row, const int *column);

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The global index of a local one, both from 0. */
static int global(int local, int nb, int coordinate, int processes)
{
    return (local / nb * processes + coordinate) * nb + local % nb;
}

int main(int count, char **arguments)
{
    enum { SIDE = 2 };
    const int n = count > 1 ? atoi(arguments[1]) : 0, nb = count > 2 ? atoi(arguments[2]) : 64;
    const int zero = 0, one = 1, all = -1, side = SIDE;
    const double alpha = 1, beta = 0;
    int context, rows, columns, row, column, info, desc[9];
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "R", SIDE, SIDE);
    Cblacs_gridinfo(context, &rows, &columns, &row, &column);
    const int m_local = numroc_(&n, &nb, &row, &zero, &side);
    const int n_local = numroc_(&n, &nb, &column, &zero, &side);
    const int ld = m_local > 1 ? m_local : 1;
    const size_t size = (size_t)ld * (size_t)(n_local > 1 ? n_local : 1) * sizeof(double);
    double *a = malloc(size), *b = malloc(size), *c = malloc(size), sum = 0;
    descinit_(desc, &n, &n, &nb, &nb, &zero, &zero, &context, &ld, &info);
    if (!a || !b || !c || info) return 1;
    for (int j = 0; j < n_local; j++)
        for (int i = 0; i < m_local; i++) {
            const int gi = global(i, nb, row, SIDE), gj = global(j, nb, column, SIDE);
            a[i + (size_t)j * (size_t)ld] = (gi + 2 * gj) % 7;
            b[i + (size_t)j * (size_t)ld] = (3 * gi + gj) % 5;
        }
    const double begin = seconds();
    pdgemm_("N", "N", &n, &n, &n, &alpha, a, &one, &one, desc, b, &one, &one, desc, &beta, c, &one, &one,
            desc);
    const double took = seconds() - begin;
    for (int j = 0; j < n_local; j++)
        for (int i = 0; i < m_local; i++) sum += c[i + (size_t)j * (size_t)ld];
    dgsum2d_(&context, "A", " ", &one, &one, &sum, &one, &all, &all);
    if (!row && !column) printf("sum %.0f\nseconds %.4f\n", sum, took);
    Cblacs_exit(0);
    return 0;
}
