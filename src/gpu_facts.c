/* SPDX-License-Identifier: MIT */
/* What a decision may know of this machine: its cores, its GPUs, and where the operands of a call live. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "src/gpu_state.h"

static int cores(void)
{
    static _Atomic int kept;
    int count = atomic_load_explicit(&kept, memory_order_relaxed);
    if (count) return count;
    cpu_set_t set;
    count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (count < 1) count = 1;
    atomic_store(&kept, count);
    return count;
}

/* Asks the driver about an address. *ordinal: of its GPU; *context: that it belongs to. */
static CUresult ask(const void *pointer, bool *managed, bool *on_gpu, int *ordinal, CUcontext *context)
{
    unsigned memory = 0, is_managed = 0;
    CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                         CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT };
    void *values[] = { &memory, &is_managed, ordinal, context };
    CUresult result = gpb_driver_open(NULL)->cuPointerGetAttributes(4, attributes, values, (CUdeviceptr)(uintptr_t)pointer);
    *managed = !result && is_managed;
    *on_gpu = !result && memory == CU_MEMORYTYPE_DEVICE;
    return result;
}

/* Where one operand lives, and (if on a device of ours) which; a context is current. Memory of a context that is not the primary one is
   reachable only by copies: ELSEWHERE, like another GPU's. */
static enum gpb_place place_of(const void *pointer, int *device)
{
    bool managed, on_gpu;
    int ordinal = -1;
    CUcontext context = NULL;
    gpb_device *devices;
    const int count = gpb_gpu_devices(&devices);
    if (!pointer || ask(pointer, &managed, &on_gpu, &ordinal, &context)) return GPB_PLACE_HOST;
    if (managed) return GPB_PLACE_DEVICE;
    if (!on_gpu) return GPB_PLACE_HOST;
    for (int i = 0; i < count; i++)
        if (devices[i].ordinal == ordinal && (!context || context == devices[i].context)) {
            if (*device >= 0 && *device != i) return GPB_PLACE_ELSEWHERE;
            *device = i;
            return GPB_PLACE_DEVICE;
        }
    return GPB_PLACE_ELSEWHERE;
}

/* An allocation that the driver knows: addresses within it all live in the same place. */
typedef struct range {
    uintptr_t start;
    size_t bytes;
} range;

static range range_of(const void *pointer)
{
    CUdeviceptr start = 0;
    size_t bytes = 0;
    CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE };
    void *values[] = { &start, &bytes };
    CUresult result = gpb_driver_open(NULL)->cuPointerGetAttributes(2, attributes, values, (CUdeviceptr)(uintptr_t)pointer);
    return result ? (range){ 0 } : (range){ (uintptr_t)start, bytes };
}

/* A pointer array is where its members are; mixed, it is ELSEWHERE: copies find any address. The driver is asked once for each allocation
   that members come from in a row: 3000 questions would take 150 us, the whole batch of 1000 x 64^3 takes 30. */
static enum gpb_place place_of_all(const gpb_call *call, const void *single, const void *const *array, int *device)
{
    if (!array) return place_of(single, device);
    enum gpb_place first = place_of(array[0], device);
    range known = first == GPB_PLACE_DEVICE && call->batch > 1 ? range_of(array[0]) : (range){ 0 };
    for (int64_t i = 1; i < call->batch; i++) {
        if ((uintptr_t)array[i] - known.start < known.bytes) continue;
        if (place_of(array[i], device) != first) return GPB_PLACE_ELSEWHERE;
        if (first == GPB_PLACE_DEVICE) known = range_of(array[i]);
    }
    return first;
}

/* Makes a context of ours current, so that the driver answers. */
static bool enter(void)
{
    gpb_device *devices;
    return gpb_gpu_devices(&devices) && !gpb_driver_open(NULL)->cuCtxPushCurrent(devices[0].context);
}

static void leave(void)
{
    CUcontext popped;
    gpb_driver_open(NULL)->cuCtxPopCurrent(&popped);
}

enum gpb_place gpb_gpu_place(const void *pointer)
{
    int device = -1;
    if (!enter()) return GPB_PLACE_ELSEWHERE;      /* given up meanwhile: a copy will fail, a host's access would crash */
    enum gpb_place place = place_of(pointer, &device);
    leave();
    return place;
}

/* Before we are started, in a program that has libcuda: might this operand be on a GPU? Not if the program has not initialised CUDA itself,
   which is no reason for us to. Without a current context the driver may not say: then it might. */
static bool might_be_on_gpu(const void *pointer)
{
    bool managed, on_gpu;
    int ordinal;
    CUcontext context;
    if (!pointer || !gpb_driver_open(NULL)) return false;
    CUresult result = ask(pointer, &managed, &on_gpu, &ordinal, &context);
    return managed || on_gpu || result == CUDA_ERROR_INVALID_CONTEXT;
}

static bool any_might(const gpb_call *call)
{
    if (!call->c_array) return might_be_on_gpu(call->a) || might_be_on_gpu(call->b) || might_be_on_gpu(call->c);
    for (int64_t i = 0; i < call->batch; i++)
        if (might_be_on_gpu(call->a_array[i]) || might_be_on_gpu(call->b_array[i]) || might_be_on_gpu(call->c_array[i])) return true;
    return false;
}

void gpb_gpu_facts(const gpb_call *call, bool libcuda, gpb_facts *facts)
{
    /* Until a GPU is started: one like an A100 is presumed, so that only calls worth the start lead to it. The times are a little above
       what measured/h200.md has: context creation 0.41 s, launch and copies 11 us, one thread into a pinned ring 10 GB/s. */
    *facts = (gpb_facts){ .arch = 80, .sms = 108, .device_bytes = (int64_t)8 << 30, .link_gbs = 9, .launch_s = 20e-6, .start_s = 0.5,
                          .cores = cores(), .core_gflops = 50 };
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);     /* a thread that dies inside the driver would keep its locks */
    if (gpb_gpu_possible() && !gpb_gpu_started() && libcuda && any_might(call)) gpb_gpu_start();
    if (!gpb_gpu_possible()) {
        facts->arch = 0;
    } else if (enter()) {
        gpb_device *devices;
        int device = -1;
        gpb_gpu_devices(&devices);
        facts->start_s = 0;
        facts->arch = devices[0].arch, facts->sms = devices[0].sms, facts->device_bytes = devices[0].budget;
        facts->c = place_of_all(call, call->c, (const void *const *)call->c_array, &device);
        facts->a = place_of_all(call, call->a, call->a_array, &device);
        facts->b = place_of_all(call, call->b, call->b_array, &device);
        facts->device = device + 1;
        leave();
    }
    pthread_setcancelstate(cancel, NULL);
}
