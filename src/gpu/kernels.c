/* SPDX-License-Identifier: MIT */
/* Finds functions in images and launches them. A function that was found once is read without a lock, because
   a call of 10 us has no time for the driver's search by name. One lock guards loading. */
#include "src/gpu/kernels.h"

#include <pthread.h>
#include <stdatomic.h>

#include "dispatch/numbers.h"
#include "dispatch/resident.h"
#include "kernels/residues.h"
#include "kernels/sliced.h"
#include "kernels/solve_args.h"
#include "src/service/clock.h"
#include "src/service/spans.h"
#include "src/gpu/image.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Early launches (programmatic dependent launch, sm_90 and up) of the kernels that wait by themselves: 1 us
   of 23 at n = 1024, 0.1 ms of 2.2 in the launches of a dpotrf of 4096. Only code built for sm_90 or later
   waits for the launch before it. Code that the driver compiles from older PTX does not. */
static bool may_be_early(const gpb_device *device) { return gpb_kernels_have_clusters(device); }

bool gpb_kernels_have_clusters(const gpb_device *device)
{
    return GPB_NEWEST_ARCH >= 90 && device->arch >= 90;
}

typedef struct row {
    enum gpb_image image;
    const char *symbol;
    int threads, smem;
    int most_smem;               /* of a launch that asks for more than smem */
    bool big_clusters;           /* it may be launched in clusters of more than 8 blocks */
    bool early;                  /* its blocks may start before the launch before it has ended, for which
                                    they wait themselves */
} row;

enum { BEGINS_follows = false, BEGINS_waits = true, BEGINS_rehearses = true };     /* solve.def: early? */

/* By type, then by pass. */
#define PASS(p, pass, image, symbol, threads, early)                                            \
    [GPB_TYPE_##p * GPB_PASSES + GPB_PASS_##pass] =                                             \
        { image, GPB_STR(symbol), threads, 0, 0, false, early }
static const row passes[GPB_TYPES * GPB_PASSES] = {
#define TYPE(p, type, bytes, flops, kind)                                                      \
    PASS(p, PACK, GPB_IMAGE_##p##pack, GPB_PACK_SYMBOL(p), GPB_PACK_THREADS, false),           \
    PASS(p, UNPACK, GPB_IMAGE_##p##pack, GPB_UNPACK_SYMBOL(p), GPB_PACK_THREADS, false),       \
    PASS(p, REDUCE, GPB_IMAGE_##p##pack, GPB_REDUCE_SYMBOL(p), GPB_REDUCE_THREADS, true),
#include "dispatch/type.def"
#undef TYPE
    PASS(d, COMBINE, GPB_IMAGE_dgemm_residues, GPB_COMBINE_SYMBOL(d), GPB_COMBINE_THREADS, true),
    PASS(z, COMBINE, GPB_IMAGE_zgemm_residues, GPB_COMBINE_SYMBOL(z), GPB_COMBINE_THREADS, true),
#define SOLVE_OF(p, name, threads, begins)                                                \
    PASS(p, name, GPB_IMAGE_##p##solve, GPB_SOLVE_SYMBOL(p, name), threads, BEGINS_##begins)
#define SOLVE(name, arguments, threads, begins)                                           \
    SOLVE_OF(s, name, threads, begins), SOLVE_OF(d, name, threads, begins),               \
    SOLVE_OF(c, name, threads, begins), SOLVE_OF(z, name, threads, begins),
#include "kernels/solve.def"
#undef SOLVE
};

static row row_of(int which, int arch)
{
    if (which < GPB_KERNELS) {
        const gpb_kernel *kernel = &gpb_kernels[which];
        return (row){ kernel->image, kernel->symbol, kernel->threads, kernel->smem, 0, false, true };
    }
    if (which >= GPB_FUNCTION_SLICERS) {
        const gpb_slicer *of = &gpb_slicers[which - GPB_FUNCTION_SLICERS];
        return (row){ of->image, of->symbol, GPB_SLICE_THREADS, 0, 0, false, false };
    }
    row pass = passes[which - GPB_FUNCTION_PASSES];
    const int number = (which - GPB_FUNCTION_PASSES) % GPB_PASSES;
    pass.big_clusters = number == GPB_PASS_panel_cluster;
    const enum gpb_type type = (enum gpb_type)((which - GPB_FUNCTION_PASSES) / GPB_PASSES);
    const size_t bytes = gpb_type_bytes(type), real = gpb_type_real_bytes(type);
    const int most = gpb_kernel_table_shared(arch);
    if (number == GPB_PASS_substitute) {
        pass.smem = (int)GPB_SUBSTITUTE_SHARED(real, bytes);
        pass.most_smem = GPB_ALONE_SHARED(most);
    }
    if (number == GPB_PASS_swap) pass.most_smem = (int)gpb_resident_swap_shared(arch);
    if (number == GPB_PASS_multiply) pass.smem = (int)GPB_TRIANGLE_SHARED(bytes);
    if (number == GPB_PASS_cholesky) pass.smem = GPB_ALONE_SHARED(most);
    return pass;
}

/* Under the lock. An image that cannot be loaded is not tried again, unless memory was short, because that
   passes. Then it is tried again after ten times as long as the attempt took, so calls spend at most a tenth
   of their time on it. */
static CUresult load(gpb_device *device, enum gpb_image image)
{
    const int64_t now = gpb_clock_ns();
    const bool later = device->missing[image] == CUDA_ERROR_OUT_OF_MEMORY && now >= device->again_ns[image];
    if (device->module[image] || (device->missing[image] && !later)) return device->missing[image];
    device->missing[image] = gpb_driver_get()->cuModuleLoadData(&device->module[image],
                                                                     gpb_images[image]);
    device->again_ns[image] = gpb_clock_ns() + 10 * (gpb_clock_ns() - now);
    return device->missing[image];
}

/* A function that takes more dynamic shared memory must say so. 48 KB are allowed without, but what it has of
   its own counts. */
enum { DYNAMIC = 47 * 1024 };

/* Under the lock. */
static CUresult find(gpb_device *device, const row *of, CUfunction *function)
{
    const gpb_driver *driver = gpb_driver_get();
    CUresult result = load(device, of->image);
    if (!result) result = driver->cuModuleGetFunction(function, device->module[of->image], of->symbol);
    const int smem = (int)max(of->smem, of->most_smem);
    if (!result && smem > DYNAMIC)
        result = driver->cuFuncSetAttribute(*function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, smem);
#if CUDA_VERSION >= 11080
    /* Clusters of more than 8 blocks are not on every GPU. Where they are not, launches of them fail. */
    if (!result && of->big_clusters)
        result = driver->cuFuncSetAttribute(*function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                                            1);
#endif
    return result;
}

static bool in_clusters(const gpb_kernel *kernel)
{
    return kernel->form == GPB_FORM_SLICED || gpb_kernel_table_can(kernel, GPB_CAP_PAIRS);
}

/* How many clusters of two blocks of a kernel the device holds at once: not all multiprocessors of a group
   may find partners. 0: none fits, as on a small MIG instance or where others hold the shared memory. */
static int max_clusters(const gpb_device *device, const gpb_kernel *kernel, CUfunction function)
{
    int clusters = device->sms / GPB_SLICED_CLUSTER;
#if CUDA_VERSION >= 11080
    const gpb_driver *driver = gpb_driver_get();
    CUlaunchAttribute size = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                               .value.clusterDim = { GPB_SLICED_CLUSTER, 1, 1 } };
    const CUlaunchConfig config = { .gridDimX = (unsigned)(clusters * GPB_SLICED_CLUSTER),
                                    .gridDimY = 1, .gridDimZ = 1, .blockDimX = (unsigned)kernel->threads,
                                    .blockDimY = 1, .blockDimZ = 1, .sharedMemBytes = (unsigned)kernel->smem,
                                    .attrs = &size, .numAttrs = 1 };
    int held = 0;
    if (driver->cuOccupancyMaxActiveClusters
        && !driver->cuOccupancyMaxActiveClusters(&held, function, &config) && held < clusters)
        clusters = held;
#endif
    return clusters;
}

CUresult gpb_kernels_find(gpb_device *device, int which, CUfunction *function)
{
    *function = atomic_load_explicit(&device->function[which], memory_order_acquire);
    if (*function) return CUDA_SUCCESS;
    const row of = row_of(which, device->arch);
    pthread_mutex_lock(&lock);
    CUresult result = find(device, &of, function);
    if (!result && which < GPB_KERNELS && in_clusters(&gpb_kernels[which])) {
        device->clusters[which] = max_clusters(device, &gpb_kernels[which], *function);
        /* Never asked for again. */
        if (device->clusters[which] <= 0) result = device->missing[of.image] = CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!result) atomic_store_explicit(&device->function[which], *function, memory_order_release);
    pthread_mutex_unlock(&lock);
    return result;
}

void gpb_kernels_forget(gpb_device *device)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < GPB_FUNCTIONS; i++)
        atomic_store_explicit(&device->function[i], NULL, memory_order_release);
    for (int i = 0; i < GPB_IMAGES; i++) {
        device->module[i] = NULL;
        device->missing[i] = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
}

#if CUDA_VERSION >= 11080
/* What the launch asks for beside its grid. Returns how many. */
static unsigned attributes_of(const gpb_device *device, const gpb_launch *launch, const row *of,
                              CUlaunchAttribute *attrs)
{
    unsigned count = 0;
    if (of->early && may_be_early(device))
        attrs[count++] = (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                              .value.programmaticStreamSerializationAllowed = 1 };
    if (launch->one_cluster)
        attrs[count++] = (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                              .value.clusterDim = { (unsigned)launch->blocks, 1, 1 } };
    if (launch->cooperative)
        attrs[count++] = (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1 };
    return count;
}
#endif

static CUresult queue(gpb_device *device, CUstream stream, const gpb_launch *launch, const row *of)
{
    const gpb_driver *driver = gpb_driver_get();
    const unsigned x = (unsigned)launch->blocks, z = (unsigned)GPB_GRID_Z(launch->members),
                   threads = (unsigned)(launch->threads ? launch->threads : of->threads);
    const unsigned smem = (unsigned)max(of->smem, launch->smem);
    void *params[] = { launch->args };
    CUfunction function;
    if (launch->blocks > INT32_MAX) return CUDA_ERROR_INVALID_VALUE;      /* the limit of a grid */
    CUresult result = gpb_kernels_find(device, launch->which, &function);
    if (result) return result;
#if CUDA_VERSION >= 11080
    CUlaunchAttribute attrs[3];
    const unsigned count = driver->cuLaunchKernelEx ? attributes_of(device, launch, of, attrs) : 0;
    if (count) {
        const CUlaunchConfig config = { .gridDimX = x, .gridDimY = 1, .gridDimZ = z, .blockDimX = threads,
                                        .blockDimY = 1, .blockDimZ = 1, .sharedMemBytes = smem,
                                        .hStream = stream, .attrs = attrs, .numAttrs = count };
        return driver->cuLaunchKernelEx(&config, function, params, NULL);
    }
#endif
    if (launch->one_cluster || launch->cooperative) return CUDA_ERROR_NOT_SUPPORTED;
    return driver->cuLaunchKernel(function, x, 1, z, threads, 1, 1, smem, stream, params, NULL);
}

CUresult gpb_kernels_launch(gpb_device *device, CUstream stream, const gpb_launch *launch)
{
    const row of = row_of(launch->which, device->arch);
    const int span = gpb_spans_open(stream);
    const CUresult result = queue(device, stream, launch, &of);
    gpb_spans_close(span, "kernel", of.symbol, 0);
    return result;
}
