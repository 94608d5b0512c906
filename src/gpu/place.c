/* SPDX-License-Identifier: MIT */
/* What a decision may know of a call: the GPU that is or may be there, and where the operands live. */
#include <pthread.h>

#include "src/gpu/context.h"
#include "src/gpu/gpu.h"
#include "src/gpu/host_memory.h"
#include "src/gpu/place.h"
#include "src/gpu/tensor_map.h"
#include "src/service/log.h"

/* What the driver knows of an address. */
typedef struct known {
    bool on_gpu, managed, pinned;
    int ordinal;                 /* of its GPU */
    CUcontext context;           /* the context that it belongs to */
    uintptr_t start;             /* start of its allocation or registration; every address within it lives in
                                    the same place */
    size_t bytes;
} known;

/* Device memory that the host cannot reach, noted when the driver reports it, because later there may be no
   driver to ask. A range is the number of its first page and a count of 64 KiB pieces. Ranges that fall into
   the same slot are merged into one that covers both. */
enum { SEEN = 64, SEEN_PAGE = 4096, SEEN_PIECE = 65536 };
static _Atomic uint64_t seen[SEEN];
static atomic_bool any_seen;

static uint64_t seen_pieces(uintptr_t first, uintptr_t last)
{
    const uint64_t pieces = (last - first) / SEEN_PIECE + 1, most = (1 << 28) - 1;
    return pieces < most ? pieces : most;
}

static uintptr_t seen_first(uint64_t range) { return (range >> 28) * SEEN_PAGE; }
static uintptr_t seen_end(uint64_t range)
{
    return seen_first(range) + (range & ((1 << 28) - 1)) * SEEN_PIECE;
}

static void note_seen(uintptr_t start, size_t bytes)
{
    _Atomic uint64_t *place = &seen[start / (2 << 20) % SEEN];
    uint64_t before = atomic_load_explicit(place, memory_order_relaxed), now;
    do {
        uintptr_t first = start, last = start + (bytes ? bytes - 1 : 0);
        if (before && first >= seen_first(before) && last < seen_end(before)) return;
        if (before && seen_first(before) < first) first = seen_first(before);
        if (before && seen_end(before) - 1 > last) last = seen_end(before) - 1;
        now = first / SEEN_PAGE << 28 | seen_pieces(first / SEEN_PAGE * SEEN_PAGE, last);
    } while (!atomic_compare_exchange_weak(place, &before, now));
    atomic_store_explicit(&any_seen, true, memory_order_relaxed);
}

static bool was_on_gpu(const void *pointer)
{
    bool was = false;
    for (int i = 0; i < SEEN && atomic_load_explicit(&any_seen, memory_order_relaxed); i++) {
        const uint64_t range = atomic_load_explicit(&seen[i], memory_order_relaxed);
        was |= (uintptr_t)pointer >= seen_first(range) && (uintptr_t)pointer < seen_end(range);
    }
    return was;
}

static CUresult ask(const void *pointer, known *about)
{
    unsigned memory = 0, managed = 0;
    CUdeviceptr start = 0;
    *about = (known){ .ordinal = -1 };
    CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                         CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT,
                                         CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                         CU_POINTER_ATTRIBUTE_RANGE_SIZE };
    void *values[] = { &memory, &managed, &about->ordinal, &about->context, &start, &about->bytes };
    CUresult result = gpb_driver_get()->cuPointerGetAttributes(6, attributes, values,
                                                                    (CUdeviceptr)(uintptr_t)pointer);
    if (result) return result;
    about->managed = managed;
    about->on_gpu = memory == CU_MEMORYTYPE_DEVICE;
    about->pinned = memory == CU_MEMORYTYPE_HOST;
    about->start = (uintptr_t)start;
    if (about->on_gpu && !about->managed) note_seen(about->start, about->bytes);
    return result;
}

static bool reaches_over(const known *about, const void *pointer, size_t bytes)
{
    const uintptr_t offset = (uintptr_t)pointer - about->start;
    return offset < about->bytes && bytes <= about->bytes - offset;
}

/* Where these bytes live, and on which device if it is one of ours. Needs a current context. Memory of a
   context other than the primary one can only be copied, so it is ELSEWHERE, like another GPU's. */
static enum gpb_place place_of(const void *pointer, size_t bytes, int *device, known *about)
{
    gpb_device *devices;
    const int count = gpb_device_list(&devices);
    *about = (known){ 0 };
    if (!pointer) return GPB_PLACE_HOST;
    /* The driver is in distress. */
    if (ask(pointer, about)) return gpb_host_readable(pointer) ? GPB_PLACE_HOST : GPB_PLACE_ELSEWHERE;
    if (about->managed) return GPB_PLACE_DEVICE;
    if (about->pinned && reaches_over(about, pointer, bytes)) return GPB_PLACE_PINNED;
    if (!about->on_gpu) return GPB_PLACE_HOST;
    for (int i = 0; i < count; i++)
        if (devices[i].ordinal == about->ordinal
            && (!about->context || about->context == devices[i].context)) {
            if (*device >= 0 && *device != i) return GPB_PLACE_ELSEWHERE;
            *device = i;
            return GPB_PLACE_DEVICE;
        }
    return GPB_PLACE_ELSEWHERE;
}

/* All members of an operand: rows x cols elements of `bytes` bytes each. */
typedef struct extent {
    int64_t rows, cols, ld, stride, bytes;
} extent;

/* Bytes from the first element to the last. Saturates, because nothing pinned is that large. */
static size_t bytes_of(const extent *of, int64_t members)
{
    int64_t elements, strides, bytes;
    if (of->rows == 0 || of->cols == 0) return 0;
    if (of->stride < 0 || __builtin_mul_overflow(of->cols - 1, of->ld, &elements)
        || __builtin_mul_overflow(members - 1, of->stride, &strides)
        || __builtin_add_overflow(elements, of->rows, &elements)
        || __builtin_add_overflow(elements, strides, &elements)
        || __builtin_mul_overflow(elements, of->bytes, &bytes))
        return SIZE_MAX;
    return (size_t)bytes;
}

/* How many members, from the first on, lie in that allocation. Tests sixteen at a time, to save a branch for
   each. */
static int64_t members_within(const known *about, const void *const *array, int64_t batch, size_t bytes)
{
    enum { SIXTEEN = 16 };
    const uintptr_t room = about->bytes - bytes;
    int64_t done = 0;
    if (about->bytes < bytes) return done;
    for (bool all = true; done + SIXTEEN <= batch; done += SIXTEEN) {
        for (int i = 0; i < SIXTEEN; i++) all &= (uintptr_t)array[done + i] - about->start <= room;
        if (!all) return done;
    }
    return done;
}

/* Elements from one member to the next, if all are equally far apart and in ascending order; else < 0.
   Sixteen at a time, as above. */
static int64_t distance(const void *const *array, int64_t batch, size_t element)
{
    enum { SIXTEEN = 16 };
    const uintptr_t step = batch > 1 ? (uintptr_t)array[1] - (uintptr_t)array[0] : 0;
    uintptr_t uneven = step % element;
    int64_t l = 1;
    for (; l + SIXTEEN <= batch && !uneven; l += SIXTEEN)
        for (int i = 0; i < SIXTEEN; i++)
            uneven |= ((uintptr_t)array[l + i] - (uintptr_t)array[l + i - 1]) ^ step;
    for (; l < batch; l++) uneven |= ((uintptr_t)array[l] - (uintptr_t)array[l - 1]) ^ step;
    return uneven || step > INTPTR_MAX ? -1 : (int64_t)(step / element);
}

/* A pointer array lives where its members live. It is PINNED only if all are. If some are on the host and
   some on a GPU it is ELSEWHERE, because copies find any address. The driver is asked once for each run of
   members in one allocation: 3000 questions would take 150 us, and the whole batch of 1000 x 64^3 takes
   30. */
static gpb_where place_of_all(const gpb_call *call, enum gpb_operand x, int *device)
{
    const size_t element = gpb_call_element(call);
    const void *const *array = call->x[x].array;
    const extent all = { gpb_call_rows(call, x), gpb_call_cols(call, x), call->x[x].ld, call->x[x].stride,
                         (int64_t)element };
    known about;
    if (!array) {
        const enum gpb_place place = place_of(call->x[x].base, bytes_of(&all, call->batch), device, &about);
        return (gpb_where){ place, about.managed && !gpb_place_on_host(place), -1 };
    }
    const size_t bytes = bytes_of(&all, 1);
    enum gpb_place place = place_of(array[0], bytes, device, &about);
    bool reachable = about.managed || gpb_place_on_host(place);
    extent even = all;
    even.stride = distance(array, call->batch, element);
    if (place != GPB_PLACE_HOST && even.stride >= 0
        && reaches_over(&about, array[0], bytes_of(&even, call->batch)))
        return (gpb_where){ place, reachable && !gpb_place_on_host(place), even.stride };
    int64_t i = place == GPB_PLACE_HOST ? 1 : members_within(&about, array, call->batch, bytes);
    for (; i < call->batch; i++) {
        if (place != GPB_PLACE_HOST && reaches_over(&about, array[i], bytes)) continue;
        const enum gpb_place one = place_of(array[i], bytes, device, &about);
        reachable &= about.managed || gpb_place_on_host(one);
        if (one == place) continue;
        if (!gpb_place_on_host(one) || !gpb_place_on_host(place)) return (gpb_where){ GPB_PLACE_ELSEWHERE,
                                                                                      reachable, -1 };
        place = GPB_PLACE_HOST;
    }
    return (gpb_where){ place, reachable && !gpb_place_on_host(place), -1 };
}

/* Makes one of our contexts current, so that the driver answers. */
static bool enter(void)
{
    gpb_device *devices;
    if (!gpb_device_list(&devices)) return false;
    const CUresult result = gpb_context_enter(&devices[0]);
    if (!result) return true;
    gpb_log_debug("the GPU's CUDA context cannot be made current: %s", gpb_driver_error(result));
    /* Nothing else makes this fail (CUDA driver API). */
    if (gpb_gpu_started() && gpb_context_same(&devices[0])) gpb_gpu_give_up("the GPU's CUDA context is gone");
    return false;
}

enum gpb_place gpb_place_of(const void *pointer)
{
    int device = -1;
    known about;
    /* Given up meanwhile: a copy will fail cleanly, a host access would crash. */
    if (!enter()) return GPB_PLACE_ELSEWHERE;
    enum gpb_place place = place_of(pointer, 1, &device, &about);
    gpb_context_exit();
    return place;
}

CUcontext gpb_place_context(const void *pointer)
{
    known about;
    return ask(pointer, &about) || about.managed ? NULL : about.context;
}

bool gpb_place_surely_host(const gpb_call *call, bool libcuda)
{
    if (!gpb_gpu_possible() || (!libcuda && !gpb_gpu_started())) return true;
    return !call->x[GPB_C].array && gpb_host_memory((const void *[]){ call->x[GPB_A].base,
                                                                      call->x[GPB_B].base,
                                                                      call->x[GPB_C].base }, 3);
}

/* Before the GPU is started, in a program that has libcuda: might this operand be on a GPU? If the program
   has not initialised CUDA, it is not, and we do not initialise it to ask. Without a current context the
   driver may refuse to answer; then the operand might be. */
static bool might_be_on_gpu(const void *pointer)
{
    known about;
    if (!pointer || !gpb_driver_get()) return false;
    CUresult result = ask(pointer, &about);
    return (about.on_gpu && !about.managed) || result == CUDA_ERROR_INVALID_CONTEXT;
}

static bool any_might(const gpb_call *call)
{
    const int64_t members = call->x[GPB_C].array ? call->batch : 1;
    bool might = false;
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    for (int64_t l = 0; l < members && !might; l++)
        for (int x = 0; x < GPB_OPERANDS; x++) might |= might_be_on_gpu(gpb_call_member(call, x, l));
    pthread_setcancelstate(cancel, NULL);
    return might;
}

/* Recent answers of the driver, by page, so that a loop of small calls does not ask for each. An answer holds
   for a moment: to unmap a host page and have CUDA map memory there takes several system calls, and the last
   alone takes 50 us or more. MOMENT is in cycles: 20 to 40 us. There are no more PAGES because glibc has only
   some 1.6 KB of static TLS for all libraries opened later. */
enum { PAGES = 16, MOMENT = 80000 };
typedef struct probe {
    uintptr_t page : 62;
    bool on_gpu : 1, lost : 1;   /* lost: on_gpu was asked after the GPU was lost, and means that the host
                                    cannot reach the page */
    uint64_t at;
} probe;
static _Thread_local probe probes[PAGES] __attribute__((tls_model("initial-exec")));

static probe *probe_of(const void *pointer) { return &probes[(uintptr_t)pointer / 4096 % PAGES]; }

static bool is_fresh(const void *pointer, uint64_t now)
{
    const probe *g = probe_of(pointer);
    return g->page == (uintptr_t)pointer / 4096 && now - g->at < MOMENT;
}

/* One simple question; a context is made current only if the driver wants one. Any unclear answer counts as
   on_gpu, and gpb_place_facts looks closer. A thread cancelled inside the driver would keep its locks. */
static void ask_driver(const void *pointer, uint64_t now)
{
    unsigned memory = 0, managed = 0;
    CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED };
    void *values[] = { &memory, &managed };
    const gpb_driver *driver = gpb_driver_get();
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    CUresult result = driver->cuPointerGetAttributes(2, attributes, values, (CUdeviceptr)(uintptr_t)pointer);
    if (result == CUDA_ERROR_INVALID_CONTEXT && enter()) {
        result = driver->cuPointerGetAttributes(2, attributes, values, (CUdeviceptr)(uintptr_t)pointer);
        gpb_context_exit();
    }
    pthread_setcancelstate(cancel, NULL);
    *probe_of(pointer) = (probe){ .page = (uintptr_t)pointer / 4096, .at = now,
                                       .on_gpu = result || (memory == CU_MEMORYTYPE_DEVICE && !managed) };
}

bool gpb_place_probed_host(const gpb_call *call, uint64_t now)
{
    const void *const operands[] = { call->x[GPB_C].base, call->x[GPB_A].base, call->x[GPB_B].base };
    bool there = call->x[GPB_C].array;
    if (!gpb_gpu_started()) return !any_might(call);
    for (int i = 0; i < 3 && !there; i++) {
        if (!is_fresh(operands[i], now)) ask_driver(operands[i], now);
        there = probe_of(operands[i])->on_gpu;
    }
    return !there;
}

/* If false, no thread can reach managed memory while any kernel is at work (WSL2; before Pascal). So we
   launch none in such a call. */
static bool concurrent_access(void)
{
    gpb_device *devices;
    return !gpb_device_list(&devices) || devices[0].concurrent;
}

static void find_operands(const gpb_call *call, gpb_facts *facts)
{
    static const enum gpb_operand order[] = { GPB_C, GPB_A, GPB_B };  /* C's device is the one that counts */
    int device = -1;
    for (int i = 0; i < GPB_OPERANDS; i++) {
        gpb_where *where = &facts->where[order[i]];
        *where = place_of_all(call, order[i], &device);
        /* The driver's copies mirror nothing and copy rectangles, so the crew packs a pinned triangle. */
        const enum gpb_structure structure = order[i] == GPB_C ? GPB_GENERAL : call->x[order[i]].structure;
        if (where->place == GPB_PLACE_PINNED && structure != GPB_GENERAL) where->place = GPB_PLACE_HOST;
    }
    facts->device = device + 1;
    if (gpb_facts_managed(facts) && !concurrent_access()) facts->gpu.arch = 0;
}

void gpb_place_facts(const gpb_call *call, bool libcuda, gpb_facts *facts)
{
    /* Until a GPU is started, one like an A100 is assumed, so that only calls worth a start lead to one. */
    *facts = (gpb_facts){ .gpu.arch = 80, .gpu.sms = 108, .gpu.bytes = (int64_t)8 << 30 };
    const bool unstarted = gpb_gpu_possible() && !gpb_gpu_started() && libcuda;
    if (unstarted) gpb_gpu_note_device();
    if (unstarted && any_might(call)) gpb_gpu_start();
    if (!gpb_gpu_possible()) {
        facts->gpu.arch = 0;
    } else if (enter()) {
        gpb_device *devices;
        gpb_device_list(&devices);
        facts->gpu.arch = devices[0].arch;
        facts->gpu.sms = devices[0].sms;
        facts->gpu.bytes = devices[0].budget;
        facts->gpu.no_maps = !gpb_tensor_map_known();
        find_operands(call, facts);
        gpb_context_exit();
    } else if (gpb_gpu_started()) {
        /* Reset at this very moment: the driver cannot be asked where the operands live. */
        facts->gpu.arch = 0;
    }
}

/* Memory that no driver ever reported as a GPU's is the program's business, because a page that it provides
   on demand looks just like memory that is gone. If there still is a driver to ask (the GPU failed, or we may
   not use it), it is asked, and the answer holds for a moment. */
static bool is_gone(const void *pointer, uint64_t now)
{
    if (was_on_gpu(pointer)) return !gpb_host_readable(pointer);
    if (gpb_gpu_forked() || gpb_host_memory(&pointer, 1)) return false;
    probe *g = probe_of(pointer);
    if (!is_fresh(pointer, now) || !g->lost) {
        ask_driver(pointer, now);
        g->on_gpu = g->on_gpu && !gpb_host_readable(pointer);
        g->lost = true;
    }
    return g->on_gpu;
}

static bool any_gone(const gpb_call *call, const void *a, const void *b, const void *c, uint64_t now)
{
    return is_gone(c, now) || (gpb_call_multiplies(call) && (is_gone(a, now) || is_gone(b, now)));
}

bool gpb_place_unreachable(const gpb_call *call)
{
    if (!gpb_gpu_lost()) return false;
    const uint64_t now = __builtin_ia32_rdtsc();
    if (!call->x[GPB_C].array)
        return any_gone(call, call->x[GPB_A].base, call->x[GPB_B].base, call->x[GPB_C].base, now);
    for (int64_t i = 0; i < call->batch; i++)
        if (any_gone(call, call->x[GPB_A].array[i], call->x[GPB_B].array[i], call->x[GPB_C].array[i], now))
            return true;
    return false;
}
