/* SPDX-License-Identifier: MIT */
/* A BLAS loaded in the ways that programs load one. Usage: launch close|space|deep|spin LIBRARY. Opens the
   library, computes with what it exports, closes it, and exits with 7 if all was right. space: in a name
   space of its own (dlmopen); deep: with RTLD_DEEPBIND; spin: opens, uses and closes it again and again. */
#include <dlfcn.h>
#include <unistd.h>

typedef void gemm(const char *, const char *, const int *, const int *, const int *, const float *,
                  const float *, const int *, const float *, const int *, const float *, float *,
                  const int *);
static gemm *opened;
#define sgemm_ opened                /* the name that integers.h calls */
#define MATRIX_OWN_PROTOTYPES
#include "integers.h"

static bool use(const char *how, const char *path)
{
    void *library = strcmp(how, "space") == 0
                        ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW)
                        : dlopen(path, RTLD_NOW | (strcmp(how, "deep") == 0 ? RTLD_DEEPBIND : 0));
    if (!library) {
        printf("%s\n", dlerror());
        return false;
    }
    *(void **)&opened = dlsym(library, "sgemm_");
    const bool right = opened && multiply(shared_c) && multiply(shared_c);
    return dlclose(library) == 0 && right;
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    alarm(60);
    fill();
    bool right = use(argv[1], argv[2]);
    for (int i = 0; i < 50 && strcmp(argv[1], "spin") == 0; i++) right &= use(argv[1], argv[2]);
    return right ? 7 : 1;
}
