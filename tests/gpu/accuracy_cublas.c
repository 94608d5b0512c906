/* SPDX-License-Identifier: MIT */
/* cuBLAS by dlopen, for comparison only. */
#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/gpu/accuracy.h"

static void *handle;
typedef int gemm(void *, int, int, int, int, int, const void *, const void *, int, const void *, int,
                 const void *, void *, int);
static gemm *gemms[GPB_TYPES];

bool accuracy_cublas_open(void)
{
    static const char *const names[] = { "libcublas.so.13", "libcublas.so.12",
                                         "/usr/local/cuda/lib64/libcublas.so.13",
                                         "/usr/local/cuda/lib64/libcublas.so.12" };
    void *library = NULL;
    bool found = true;
    if (handle) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    int (*create)(void **) = (int (*)(void **))dlsym(library, "cublasCreate_v2");
    for (enum gpb_type t = 0; t < GPB_TYPES; t++) {
        char name[32];
        snprintf(name, sizeof name, "cublas%cgemm_v2", toupper(gpb_type_of(t)->letter));
        gemms[t] = (gemm *)dlsym(library, name);
        found = found && gemms[t];
    }
    return create && found && create(&handle) == 0;
}

void accuracy_cublas(enum gpb_type type, int64_t m, int64_t n, int64_t k, const void *a, const void *b,
                     void *c)
{
    const gpb_element one = gpb_element_of(type, 1), zero = gpb_element_of(type, 0);
    const int op = gpb_type_of(type)->kind == GPB_TYPE_COMPLEX ? 2 : 1;
    int error = gemms[type](handle, op, 0, (int)m, (int)n, (int)k, &one, a, (int)k, b, (int)k, &zero, c,
                            (int)m);
    if (!error) return;
    fprintf(stderr, "cublas?gemm: error %d\n", error);
    exit(1);
}
