/* SPDX-License-Identifier: MIT */
/* All eigenvalues and eigenvectors of A(i,j) = 1 / (1 + |i-j|) of order 600 by ELPA on a 2 x 2 grid: elpa
   1|2, by one stage or two. Prints its error, the first and last eigenvalue, and whether A v = lambda v. It
   knows nothing of libgpublas. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <elpa/elpa.h>

/* WORLD: Open MPI's MPI_COMM_WORLD as Fortran's programs have it. */
enum { N = 600, BLOCK = 32, P = 2, WORLD = 0 };

extern void Cblacs_pinfo(int *rank, int *processes);
extern void Cblacs_get(int context, int what, int *value);
extern void Cblacs_gridinit(int *context, const char *order, int rows, int cols);
extern void Cblacs_gridinfo(int context, int *rows, int *cols, int *row, int *col);
extern void Cblacs_exit(int goes_on);
extern void Cdgsum2d(int context, const char *scope, const char *topology, int m, int n, double *a, int lda,
                     int to_row, int to_col);

static double entry(int i, int j) { return 1.0 / (1 + abs(i - j)); }

/* The global index of a local one, of that process's rows or columns. */
static int global(int local, int process) { return (local / BLOCK * P + process) * BLOCK + local % BLOCK; }

static int count(int process)
{
    int local = 0;
    while (global(local, process) < N) local++;
    return local;
}

static void set(elpa_t of, const char *name, int value)
{
    int error;
    elpa_set(of, name, value, &error);
    if (error != ELPA_OK) {
        fprintf(stderr, "elpa_set %s: %d\n", name, error);
        exit(1);
    }
}

/* The largest error of A v - lambda v, of some vectors, whose parts all processes add up. */
static double residual(int context, const double *vectors, const double *values, int row, int col)
{
    const int rows = count(row), cols = count(col);
    double worst = 0, vector[N];
    for (int c = 0; c < N; c += N / 7) {
        for (int i = 0; i < N; i++) vector[i] = 0;
        for (int j = 0; j < cols; j++)
            for (int i = 0; i < rows && global(j, col) == c; i++)
                vector[global(i, row)] = vectors[i + (size_t)j * (size_t)rows];
        Cdgsum2d(context, "All", " ", N, 1, vector, N, -1, -1);
        for (int i = 0; i < N; i++) {
            double sum = -values[c] * vector[i];
            for (int k = 0; k < N; k++) sum += entry(i, k) * vector[k];
            worst = fmax(worst, fabs(sum));
        }
    }
    return worst;
}

static elpa_t solver(int stages, int row, int col, int context)
{
    int error;
    elpa_t of = elpa_allocate(&error);
    set(of, "na", N);
    set(of, "nev", N);
    set(of, "local_nrows", count(row));
    set(of, "local_ncols", count(col));
    set(of, "nblk", BLOCK);
    set(of, "mpi_comm_parent", WORLD);
    set(of, "process_row", row);
    set(of, "process_col", col);
    set(of, "blacs_context", context);
    if (elpa_setup(of) != ELPA_OK) exit(1);
    set(of, "solver", stages == 2 ? ELPA_SOLVER_2STAGE : ELPA_SOLVER_1STAGE);
    return of;
}

int main(int argc, char **argv)
{
    int rank, processes, context, row, col, error, grid = P;
    Cblacs_pinfo(&rank, &processes);
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "C", P, P);
    Cblacs_gridinfo(context, &grid, &grid, &row, &col);
    if (argc < 2 || processes != P * P || elpa_init(20211125) != ELPA_OK) return 1;
    const int rows = count(row), cols = count(col);
    const size_t bytes = (size_t)rows * (size_t)cols * sizeof(double);
    double *a = malloc(bytes), *vectors = malloc(bytes), values[N];
    for (int j = 0; j < cols; j++)
        for (int i = 0; i < rows; i++)
            a[i + (size_t)j * (size_t)rows] = entry(global(i, row), global(j, col));
    elpa_t of = solver(atoi(argv[1]), row, col, context);
    elpa_eigenvectors_a_h_a_d(of, a, values, vectors, &error);
    const double worst = residual(context, vectors, values, row, col);
    if (rank == 0) printf("%d %.9f %.9f %d\n", error, values[0], values[N - 1], worst < 1e-10);
    elpa_deallocate(of, &error);
    elpa_uninit(&error);
    Cblacs_exit(0);
    return 0;
}
