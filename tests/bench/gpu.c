/* SPDX-License-Identifier: MIT */
/* The driver, cuBLAS and our library, opened by name; see gpu.h. */
#include "tests/bench/gpu.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench.h"

struct gpu_driver cuda;
struct gpu_cublas cublas;
struct gpu_ours ours;

const gpu_kernel gpu_kernels[] = {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    { #name, GPB_TYPE_##p, step, #image, GPB_MATH_##math, GPB_FORM_##form, bm, bn, bk },
#include "kernels/gemm.def"
#undef KERNEL
};
const int gpu_kernel_count = sizeof gpu_kernels / sizeof *gpu_kernels;

bool gpu_open(char *name, int size)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int device, major, minor;
    void *context;
    if (!library) {
        fprintf(stderr, "bench: no GPU: %s\n", dlerror());
        return false;
    }
#define LOAD(f) cuda.f = (__typeof__(cuda.f))bench_symbol(library, #f)
    LOAD(cuInit);
    LOAD(cuDeviceGet);
    LOAD(cuDeviceGetName);
    LOAD(cuDeviceGetAttribute);
    LOAD(cuDevicePrimaryCtxRetain);
    LOAD(cuCtxPushCurrent_v2);
    LOAD(cuMemAlloc_v2);
    LOAD(cuMemFree_v2);
    LOAD(cuMemHostAlloc);
    LOAD(cuMemcpyHtoD_v2);
    LOAD(cuMemcpyDtoH_v2);
    LOAD(cuMemcpy2DAsync_v2); LOAD(cuStreamSynchronize);
    LOAD(cuEventCreate); LOAD(cuEventRecord); LOAD(cuEventSynchronize);
    cuda.cuEventElapsedTime = (__typeof__(cuda.cuEventElapsedTime))dlsym(library, "cuEventElapsedTime");
    cuda.cuDeviceGetPCIBusId = (__typeof__(cuda.cuDeviceGetPCIBusId))dlsym(library, "cuDeviceGetPCIBusId");
    if (cuda.cuInit(0) || cuda.cuDeviceGet(&device, 0)) {
        fprintf(stderr, "bench: no GPU\n");
        return false;
    }
    MUST(cuDeviceGetName(name, size, device));
    MUST(cuDeviceGetAttribute(&major, 75, device)); /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR */
    MUST(cuDeviceGetAttribute(&minor, 76, device));
    MUST(cuDeviceGetAttribute(&cuda.sms, 16, device));        /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */
    if (cuda.cuDeviceGetAttribute(&cuda.l2, 38, device))
        cuda.l2 = 64 << 20; /* CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE */
    cuda.arch = 10 * major + minor;
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxPushCurrent_v2(context));
    return true;
}

/* Their names have the type as a capital. */
static void open_cublas_type(void *library, enum gpb_type type)
{
    const char letter = (char)toupper(gpb_type_of(type)->letter);
    gpu_cublas_type *to = &cublas.of[type];
    char name[64];
#define FROM_CUBLAS_TYPE(f, format)               \
    snprintf(name, sizeof name, format, letter);   \
    to->f = (__typeof__(to->f))bench_symbol(library, name)
    FROM_CUBLAS_TYPE(one, "cublas%cgemm_v2");
    FROM_CUBLAS_TYPE(strided, "cublas%cgemmStridedBatched");
    FROM_CUBLAS_TYPE(batched, "cublas%cgemmBatched");
    FROM_CUBLAS_TYPE(rank_k, gpb_type_is_complex(type) ? "cublas%cherk_v2" : "cublas%csyrk_v2");
}

void gpu_open_cublas(void)
{
    void *library = dlopen("libcublas.so.13", RTLD_NOW);
    if (!library) library = dlopen("libcublas.so.12", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "bench: cuBLAS is left out: %s\n", dlerror());
        return;
    }
#define FROM_CUBLAS(f, name) cublas.f = (__typeof__(cublas.f))bench_symbol(library, name)
    FROM_CUBLAS(create, "cublasCreate_v2");
    FROM_CUBLAS(set_math, "cublasSetMathMode");
    for (enum gpb_type t = 0; t < GPB_TYPES; t++) open_cublas_type(library, t);
    int error = cublas.create(&cublas.handle);
    if (error) fprintf(stderr, "bench: cuBLAS is left out: cublasCreate: error %d\n", error);
    if (error) cublas.handle = NULL;
}

void gpu_open_ours(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    if (!library) must(-1, dlerror());
#define FROM_OURS(f, name) ours.f = (__typeof__(ours.f))bench_symbol(library, name)
#define TYPE(letter, type, bytes, flops, kind)                                     \
    FROM_OURS(letter##gemm, "cblas_" #letter "gemm");                               \
    FROM_OURS(letter##gemm_batch, "cblas_" #letter "gemm_batch");                   \
    FROM_OURS(letter##gemm_batch_strided, "cblas_" #letter "gemm_batch_strided");
#include "dispatch/type.def"
#undef TYPE
    FROM_OURS(ssyrk, "cblas_ssyrk");
    FROM_OURS(dsyrk, "cblas_dsyrk");
    FROM_OURS(cherk, "cblas_cherk");
    FROM_OURS(zherk, "cblas_zherk");
    FROM_OURS(set_option, "gpublas_set_option");
    FROM_OURS(stats, "gpublas_stats");
    gpu_option("OFFLOAD", "always");
}

void gpu_option(const char *name, const char *value)
{
    if (ours.set_option(name, value) == 0) return;
    fprintf(stderr, "bench: the library does not take %s=%s\n", name, value ? value : "");
    exit(1);
}

uint64_t gpu_calls(void)
{
    gpublas_stats_t stats = { 0 };
    ours.stats(&stats, sizeof stats);
    return stats.gpu_calls;
}

/* "75" in images.def: that compute capability and later; "90a": exactly that one. */
bool gpu_runs(const gpu_kernel *kernel)
{
    static const struct { const char *image, *arch; } images[] = {
#define IMAGE(name, p, arch) { #name, #arch },
#include "kernels/images.def"
#undef IMAGE
    };
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
        if (strcmp(images[i].image, kernel->image)) continue;
        char *rest;
        int least = (int)strtol(images[i].arch, &rest, 10);
        return *rest ? cuda.arch == least : cuda.arch >= least;
    }
    return false;
}
