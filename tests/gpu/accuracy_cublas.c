/* SPDX-License-Identifier: MIT */
/* cuBLAS by dlopen, for comparison only. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/gpu/accuracy.h"

static void *handle;
static int (*sgemm)(void *, int, int, int, int, int, const float *, const float *, int, const float *, int,
                    const float *, float *, int);

bool accuracy_cublas_open(void)
{
    static const char *const names[] = { "libcublas.so.13", "libcublas.so.12",
                                         "/usr/local/cuda/lib64/libcublas.so.13",
                                         "/usr/local/cuda/lib64/libcublas.so.12" };
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    int (*create)(void **) = (int (*)(void **))dlsym(library, "cublasCreate_v2");
    sgemm = (__typeof__(sgemm))dlsym(library, "cublasSgemm_v2");
    return create && sgemm && create(&handle) == 0;
}

void accuracy_cublas(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    const float one = 1, zero = 0;
    int error = sgemm(handle, 1, 0, (int)m, (int)n, (int)k, &one, a, (int)k, b, (int)k, &zero, c, (int)m);
    if (!error) return;
    fprintf(stderr, "cublasSgemm: error %d\n", error);
    exit(1);
}
