/* SPDX-License-Identifier: MIT */
/* Libraries that mimic, with plain loops, BLAS hosts that are not installed here. -DWIDE: libmwblas.so
   (MATLAB), whose plain names take 64-bit integers, though nothing in the file's name says so; it
   complains if it is given 32-bit ones. -DWHEEL: a wheel's own names with 32-bit integers. -DHIDDEN:
   libmkl_rt.so.2, whose plain names take 32-bit integers and return complex results through a hidden first
   argument. -DFORWARDER: names that jump to a library chosen at run time, the one that the variable
   BACKEND names. -DLATE, with libblastrampoline's mark: or later to the one that lbt_forward is given.
   -DFLEXI, with FlexiBLAS's mark: it opens that one before its own names work, and crashes if called
   meanwhile. */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(WIDE)
typedef int64_t integer;
#define SGEMM sgemm_
#elif defined(WHEEL)
typedef int32_t integer;
#define SGEMM scipy_sgemm_
#else
typedef int32_t integer;
#define SGEMM sgemm_
#endif
void SGEMM(const char *, const char *, const integer *, const integer *, const integer *, const float *,
           const float *, const integer *, const float *, const integer *, const float *, float *,
           const integer *);
integer isamax_(const integer *n, const float *x, const integer *incx);

#ifdef FORWARDER
static void *backend;
static int (*its_isamax)(const integer *, const float *, const integer *);
static void (*its_sgemm)(const char *, const char *, const integer *, const integer *, const integer *,
                         const float *, const float *, const integer *, const float *, const integer *,
                         const float *, float *, const integer *, size_t, size_t);

static void load(const char *path)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    int (*isamax)(const integer *, const float *, const integer *) = NULL;
    const float x[] = { 1, 2, 1 };
    const integer n = 3, one = 1;
    if (library) *(void **)&isamax = dlsym(library, "isamax_");
    if (!isamax || isamax(&n, x, &one) != 2) {
        printf("no BLAS in %s: %s\n", path, dlerror());
        exit(9);
    }
    backend = library;
    its_isamax = isamax;
    *(void **)&its_sgemm = dlsym(backend, "sgemm_");
}

#ifdef LATE
void lbt_forward(const char *path);
void lbt_forward(const char *path) { load(path); }
#endif

#ifdef FLEXI
int flexiblas_avail(void);
int flexiblas_avail(void) { return 1; }
#endif

__attribute__((constructor)) static void choose(void) { if (getenv("BACKEND")) load(getenv("BACKEND")); }

integer isamax_(const integer *n, const float *x, const integer *incx)
{
#ifdef LATE
    if (!backend) fprintf(stderr, "no backend\n");
#elif defined(FLEXI)
    if (!backend) abort();
#endif
    return backend ? its_isamax(n, x, incx) : 0;
}

void SGEMM(const char *ta, const char *tb, const integer *m, const integer *n, const integer *k,
           const float *alpha, const float *a, const integer *lda, const float *b, const integer *ldb,
           const float *beta, float *c, const integer *ldc)
{
    its_sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 1, 1);
}
#else

#ifndef WHEEL
integer isamax_(const integer *n, const float *x, const integer *incx)
{
    integer at = 0;
    if (*n < 1 || *incx < 1) return 0;
    for (integer i = 1; i < *n; i++)
        if (fabsf(x[i * *incx]) > fabsf(x[at * *incx])) at = i;
    return at + 1;
}
#endif

#ifdef HIDDEN
typedef struct { double re, im; } number;
void zdotu_(number *result, const int *n, const number *x, const int *incx, const number *y, const int *incy);
void zdotu_(number *result, const int *n, const number *x, const int *incx, const number *y, const int *incy)
{
    number sum = { 0, 0 };
    for (int i = 0; i < *n; i++) {
        const number a = x[i * *incx], b = y[i * *incy];
        sum.re += a.re * b.re - a.im * b.im;
        sum.im += a.re * b.im + a.im * b.re;
    }
    *result = sum;
}
#endif

void SGEMM(const char *ta, const char *tb, const integer *m, const integer *n, const integer *k,
           const float *alpha, const float *a, const integer *lda, const float *b, const integer *ldb,
           const float *beta, float *c, const integer *ldc)
{
    if ((int64_t)*m >> 40 || (int64_t)*n >> 40 || (int64_t)*k >> 40 || (int64_t)*lda >> 40
        || (int64_t)*ldb >> 40 || (int64_t)*ldc >> 40) {
        fprintf(stderr, "sizes that are none: m = %lld\n", (long long)*m);
        return;
    }
    for (integer j = 0; j < *n; j++)
        for (integer i = 0; i < *m; i++) {
            float sum = 0;
            for (integer p = 0; p < *k; p++)
                sum += (*ta == 'N' ? a[i + p * *lda] : a[p + i * *lda])
                       * (*tb == 'N' ? b[p + j * *ldb] : b[j + p * *ldb]);
            c[i + j * *ldc] = *alpha * sum + (*beta == 0 ? 0 : *beta * c[i + j * *ldc]);
        }
}
#endif
