/* SPDX-License-Identifier: MIT */
/* Memory. Device addresses lie in a reservation that nothing can touch, with a gap after each allocation; the
   bytes are elsewhere. Fresh memory is full of 0xFF: NaN as a float, absurd as a size. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fakecuda/fakecuda.h"

#define GAP   ((CUdeviceptr)65536)       /* between allocations, so that an access past an end hits nothing */
#define PIECE ((size_t)4 << 20)  /* of poison, mapped repeatedly: poisoning a gigabyte costs 256 mappings */

static gpb_fake_block *blocks;           /* sorted by start */
static size_t block_count, block_room;
static CUdeviceptr reservation, reservation_end, cursor;
static uint64_t used[GPB_FAKE_DEVICES], next_id = 1;

static uint64_t rounded(size_t bytes) { return ((uint64_t)bytes + 511) / 512 * 512; }

/* Index of the first block that starts after `at`. */
static size_t after(CUdeviceptr at)
{
    size_t low = 0, high = block_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks[middle].start <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

gpb_fake_block *gpb_fake_block_find(CUdeviceptr at)
{
    size_t i = after(at);
    return i && at - blocks[i - 1].start < blocks[i - 1].bytes ? &blocks[i - 1] : NULL;
}

bool gpb_fake_is_device_address(const void *at)
{
    return (CUdeviceptr)at >= reservation && (CUdeviceptr)at < reservation_end;
}

void *gpb_fake_translate(int device, CUdeviceptr at, int64_t low, int64_t high, const char *who)
{
    if (low >= high)
        return NULL;
    gpb_fake_block *block = gpb_fake_block_find(at + (CUdeviceptr)low);
    if (!block)
        gpb_fake_die("OUT OF BOUNDS: %s uses %#llx%+lld..%+lld: nothing is allocated there", who, at,
                     (long long)low, (long long)high);
    if (at + (CUdeviceptr)high > block->start + block->bytes)
        gpb_fake_die("OUT OF BOUNDS: %s uses %#llx%+lld..%+lld: the allocation is %#llx, %zu bytes", who, at,
                     (long long)low, (long long)high, block->start, block->bytes);
    if (block->place == GPB_FAKE_PLACE_DEVICE && device >= 0 && block->context->device != device)
        gpb_fake_die("OUT OF BOUNDS: %s on device %d uses memory of device %d", who, device,
                     block->context->device);
    return (void *)((uintptr_t)block->storage + (uintptr_t)(at - block->start));
}

/* One piece of poison as a file: every private mapping of it reads 0xFF until written. */
static int poison(void)
{
    static int file = -1;
    if (file >= 0)
        return file;
    file = memfd_create("poison", MFD_CLOEXEC);
    char *piece = file < 0 || ftruncate(file, (off_t)PIECE)
                      ? MAP_FAILED
                      : mmap(NULL, PIECE, PROT_WRITE, MAP_SHARED, file, 0);
    if (piece == MAP_FAILED)
        gpb_fake_die("no memory for poison");
    memset(piece, 0xFF, PIECE);
    munmap(piece, PIECE);
    return file;
}

/* For a program that will fork many times: its children find the poison ready. */
__attribute__((visibility("default"))) void fakecuda_warm(void);
void fakecuda_warm(void) { (void)poison(); }

static size_t mapped_size(size_t bytes) { return (bytes + PIECE - 1) / PIECE * PIECE; }

/* Pinned memory lies between two forbidden pages, because the program writes there by itself, and no copy of
   ours would see an access past an end. */
static char *guarded_new(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (bytes + page - 1) / page * page;
    char *map = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
         *storage = map + page;
    if (map == MAP_FAILED)
        return NULL;
    for (size_t at = 0; at < size; at += PIECE)
        if (mmap(storage + at, size - at < PIECE ? size - at : PIECE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, poison(), 0)
            == MAP_FAILED)
            gpb_fake_die("no memory for %zu pinned bytes", bytes);
    return storage;
}

/* The rest of the last page must still be poison; else something was written beyond the end. */
static void guarded_free(char *storage, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (bytes + page - 1) / page * page;
    for (size_t at = bytes; at < size; at++)
        if (storage[at] != (char)0xFF)
            gpb_fake_die("OUT OF BOUNDS: byte %zu behind %zu pinned bytes was written", at - bytes, bytes);
    munmap(storage - page, size + 2 * page);
}

static char *storage_new(size_t bytes, enum gpb_fake_place place)
{
    if (place == GPB_FAKE_PLACE_PINNED)
        return guarded_new(bytes);
    if (bytes < PIECE) {                 /* from malloc, so that sanitizers check it, too */
        void *storage = NULL;
        if (posix_memalign(&storage, 4096, bytes))
            return NULL;
        return memset(storage, 0xFF, bytes);
    }
    size_t size = mapped_size(bytes);
    char *storage = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                         0);
    if (storage == MAP_FAILED)
        return NULL;
    for (size_t at = 0; at < size; at += PIECE)
        if (mmap(storage + at, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                 poison(), 0)
            == MAP_FAILED)
            gpb_fake_die("no memory for an allocation of %zu bytes", bytes);
    return storage;
}

static void storage_free(char *storage, size_t bytes, enum gpb_fake_place place)
{
    if (place == GPB_FAKE_PLACE_PINNED)
        guarded_free(storage, bytes);
    else if (bytes < PIECE)
        free(storage);
    else
        munmap(storage, mapped_size(bytes));
}

/* A free range of device addresses, as far as possible from what was freed last, so that a stale address
   finds nothing. Aligned to 256 bytes, which is all that CUDA promises, and not to 512. 0: the process may
   not have more (RLIMIT_AS). */
static CUdeviceptr address_new(size_t bytes)
{
    if (!reservation) {
        const uint64_t least = (uint64_t)gpb_fake_options_get()->devices * gpb_fake_options_get()->memory * 4;
        uint64_t size = least + (64ull << 30);
        void *at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED)                /* valgrind has 128 GiB for everything */
            at = mmap(NULL, size = least, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED)
            return 0;
        reservation = cursor = (CUdeviceptr)at;
        reservation_end = reservation + size;
    }
    for (int wrapped = 0; wrapped < 2; wrapped++, cursor = reservation) {
        CUdeviceptr at = cursor;
        for (size_t i = after(at); ; i++) {
            if (i && blocks[i - 1].start + blocks[i - 1].bytes + GAP > at
                && blocks[i - 1].start < reservation_end && blocks[i - 1].start >= reservation)
                at = blocks[i - 1].start + blocks[i - 1].bytes + GAP;
            at = (at + 511) / 512 * 512 + 256;
            CUdeviceptr next = i < block_count && blocks[i].start < reservation_end ? blocks[i].start
                                                                                    : reservation_end;
            if (at + bytes + GAP <= next) {
                cursor = at + bytes + GAP;
                return at;
            }
            if (next == reservation_end)
                break;
        }
    }
    gpb_fake_die("no device addresses left");
}

static void insert(gpb_fake_block block)
{
    if (block_count == block_room) {
        block_room = block_room ? 2 * block_room : 64;
        blocks = realloc(blocks, block_room * sizeof *blocks);
        if (!blocks)
            gpb_fake_die("no memory");
    }
    size_t i = after(block.start);
    memmove(&blocks[i + 1], &blocks[i], (block_count - i) * sizeof *blocks);
    blocks[i] = block;
    block_count++;
}

static CUresult allocate(CUdeviceptr *out, size_t bytes, enum gpb_fake_place place, bool pooled)
{
    CUcontext context = gpb_fake_current();
    uint64_t *total = &used[context->device];
    if (!out || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (place == GPB_FAKE_PLACE_DEVICE && (bytes > gpb_fake_options_get()->memory ||
                                           *total + rounded(bytes) > gpb_fake_options_get()->memory))
        return CUDA_ERROR_OUT_OF_MEMORY;
    char *storage = storage_new(bytes, place);
    CUdeviceptr start = storage && place == GPB_FAKE_PLACE_DEVICE ? address_new(bytes) : (CUdeviceptr)storage;
    if (storage && !start)
        storage_free(storage, bytes, place);
    if (!start)
        return CUDA_ERROR_OUT_OF_MEMORY;
    insert((gpb_fake_block){ start, bytes, storage, place, false, context, next_id++, pooled });
    if (place == GPB_FAKE_PLACE_DEVICE)
        *total += rounded(bytes);
    *out = start;
    return CUDA_SUCCESS;
}

static void discard(gpb_fake_block *block)
{
    if (block->place == GPB_FAKE_PLACE_DEVICE)
        used[block->context->device] -= rounded(block->bytes);
    if (!block->registered)
        storage_free(block->storage, block->bytes, block->place);
    block_count--;
    memmove(block, block + 1, (size_t)(blocks + block_count - block) * sizeof *block);
}

/* As in CUDA, freeing waits for the work of the context. */
static CUresult release(CUdeviceptr start, bool pinned)
{
    gpb_fake_block *block = gpb_fake_block_find(start);
    if (!start && !pinned)
        return CUDA_SUCCESS;
    if (!block || block->start != start || (block->place == GPB_FAKE_PLACE_PINNED) != pinned
        || block->registered)
        return CUDA_ERROR_INVALID_VALUE;
    gpb_fake_finish_context(block->context);
    discard(block);
    return CUDA_SUCCESS;
}

void gpb_fake_memory_end(void)
{
    for (size_t i = 0; i < block_count; i++)
        if (blocks[i].place == GPB_FAKE_PLACE_PINNED && blocks[i].bytes >= PIECE)
            mprotect(blocks[i].storage, mapped_size(blocks[i].bytes), PROT_NONE);
}

void gpb_fake_memory_release(CUcontext context)
{
    for (size_t i = block_count; i-- > 0;)
        if (blocks[i].context == context)
            discard(&blocks[i]);
}

void gpb_fake_memory_rewind(void) { cursor = reservation; }

CUresult cuMemGetInfo(size_t *free_bytes, size_t *total)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r) {
        *total = gpb_fake_options_get()->memory;
        *free_bytes = *total - used[gpb_fake_current()->device];
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuMemAlloc(CUdeviceptr *out, size_t bytes)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r)
        r = allocate(out, bytes, GPB_FAKE_PLACE_DEVICE, false);
    return gpb_fake_leave(__func__, r);
}

CUresult cuMemFree(CUdeviceptr start)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r)
        r = release(start, false);
    return gpb_fake_leave(__func__, r);
}

/* Runs in the order of a stream. The caller gets the address at once, because the memory is not given to
   others meanwhile. Freeing waits for that stream alone, and returns a pool's memory to the device, as with a
   release threshold of 0. */
CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream handle)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r && !gpb_fake_stream_find(handle))
        r = CUDA_ERROR_INVALID_HANDLE;
    if (!r)
        r = allocate(out, bytes, GPB_FAKE_PLACE_DEVICE, true);
    return gpb_fake_leave(__func__, r);
}

CUresult cuMemFreeAsync(CUdeviceptr start, CUstream handle)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    CUstream stream = r ? NULL : gpb_fake_stream_find(handle);
    gpb_fake_block *block = stream ? gpb_fake_block_find(start) : NULL;
    if (!r)
        r = !stream ? CUDA_ERROR_INVALID_HANDLE
            : !block || block->start != start || block->place != GPB_FAKE_PLACE_DEVICE
                ? CUDA_ERROR_INVALID_VALUE
                : CUDA_SUCCESS;
    if (!r) {
        gpb_fake_finish_stream(stream);
        discard(gpb_fake_block_find(start));
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned int flags)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    CUdeviceptr start = 0;
    if (!r && (!out || flags > 7))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && !(r = allocate(&start, bytes, GPB_FAKE_PLACE_PINNED, false)))
        *out = (void *)start;
    return gpb_fake_leave(__func__, r);
}

CUresult cuMemFreeHost(void *start)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r)
        r = release((CUdeviceptr)start, true);
    return gpb_fake_leave(__func__, r);
}

/* Pages do not matter here. */
CUresult cuMemHostRegister(void *at, size_t bytes, unsigned int flags)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    const CUdeviceptr start = (CUdeviceptr)at;
    if (!r && (!at || !bytes || flags > 15 || gpb_fake_is_device_address(at)))
        r = CUDA_ERROR_INVALID_VALUE;
    const size_t next = r ? 0 : after(start);
    if (!r && (gpb_fake_block_find(start) || (next < block_count && blocks[next].start < start + bytes)))
        r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (!r)
        insert((gpb_fake_block){ start, bytes, at, GPB_FAKE_PLACE_PINNED, true, gpb_fake_current(),
                                 next_id++, false });
    return gpb_fake_leave(__func__, r);
}

CUresult cuMemHostUnregister(void *at)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    gpb_fake_block *block = r ? NULL : gpb_fake_block_find((CUdeviceptr)at);
    if (!r && (!block || block->start != (CUdeviceptr)at || !block->registered))
        r = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    if (!r) {
        gpb_fake_finish_context(block->context);
        discard(block);
    }
    return gpb_fake_leave(__func__, r);
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned int flags)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    if (!r && flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        r = allocate(out, bytes, GPB_FAKE_PLACE_MANAGED, false);
    return gpb_fake_leave(__func__, r);
}

/* One attribute of a pointer. block NULL: CUDA does not know the memory, so everything is 0, except that
   there is no device. */
static CUresult attribute(CUpointer_attribute which, void *out, const gpb_fake_block *block, CUdeviceptr at)
{
    bool pinned = block && block->place == GPB_FAKE_PLACE_PINNED,
         managed = block && block->place == GPB_FAKE_PLACE_MANAGED;
    switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)out = block && !block->pooled ? block->context : NULL;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = !block ? 0 : pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)out = block ? at : 0; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: *(void **)out = pinned || managed ? (void *)at : NULL; break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(uint64_t *)out = block ? block->id : 0; break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)out = managed; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)out = block ? block->context->device : CU_DEVICE_INVALID;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)out = block ? block->start : 0; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)out = block ? block->bytes : 0; break;
    case CU_POINTER_ATTRIBUTE_MAPPED: *(int *)out = block != NULL; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* Answers without a current context, too, as driver 580 does (H200); but not after a sticky error. */
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *which, void **out, CUdeviceptr at)
{
    CUresult r = gpb_fake_enter(__func__, gpb_fake_current() && gpb_fake_current()->alive
                                              ? GPB_FAKE_NEED_CONTEXT
                                              : GPB_FAKE_NEED_INIT);
    for (unsigned i = 0; !r && i < count; i++)
        r = attribute(which[i], out[i], gpb_fake_block_find(at), at);
    return gpb_fake_leave(__func__, r);
}
