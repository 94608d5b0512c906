/* SPDX-License-Identifier: MIT */
/* Pinned memory; see pinned.h. */
#include "src/copy/pinned.h"

#include <stdint.h>
#include <sys/mman.h>

enum { PAGE = 4096, HUGE_PAGE = 2 << 20 };

/* The driver can pin our own pages. Kernels use the host's addresses, so these must be valid on the
   device. */
static bool may_be_own(CUdevice device)
{
    const gpb_driver *driver = gpb_driver_get();
    int same = 0;
    const CUdevice_attribute asked = CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM;
    if (!driver->cuMemHostRegister || !driver->cuMemHostUnregister) return false;
    return !driver->cuDeviceGetAttribute(&same, asked, device) && same;
}

/* A forked child does not share these pages. Otherwise the first of the two to write, perhaps the parent,
   would get a copy, and the copy engines would keep the other one. The child gets empty pages (Linux 4.14 on)
   and not none, because without them valgrind's search for leaks faults at every eighth byte. */
static void keep_from_children(void *at, size_t size)
{
    if (madvise(at, size, MADV_WIPEONFORK)) madvise(at, size, MADV_DONTFORK);
}

/* Whole pages; a large block starts and ends at bounds of huge pages. NULL: no memory. */
static void *own_pages(size_t bytes)
{
    const size_t grain = bytes < HUGE_PAGE ? PAGE : HUGE_PAGE, size = (bytes + grain - 1) / grain * grain;
    char *room = mmap(NULL, size + grain, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return NULL;
    char *at = (char *)(((uintptr_t)room + grain - 1) / grain * grain);
    if (at > room) munmap(room, (size_t)(at - room));
    if (room + grain > at) munmap(at + size, (size_t)(room + grain - at));
    keep_from_children(at, size);
    if (grain == HUGE_PAGE) madvise(at, size, MADV_HUGEPAGE);
    return at;
}

static void drop_pages(gpb_pinned *pinned)
{
    const size_t grain = pinned->bytes < HUGE_PAGE ? PAGE : HUGE_PAGE;
    munmap(pinned->at, (pinned->bytes + grain - 1) / grain * grain);
    *pinned = (gpb_pinned){ 0 };
}

/* Another thread reset the device meanwhile. That is no reason to use the driver's memory instead, because
   the next reset would unmap that while we use it. */
static bool is_reset(CUresult result)
{
    return result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT;
}

CUresult gpb_pinned_ready(gpb_pinned *pinned, CUdevice device, size_t bytes)
{
    const gpb_driver *driver = gpb_driver_get();
    if (pinned->known) return CUDA_SUCCESS;
    if (!pinned->at && may_be_own(device)) {
        pinned->at = own_pages(bytes);
        pinned->own = pinned->at != NULL;
        pinned->bytes = pinned->own ? bytes : 0;
    }
    if (pinned->own) {
        const unsigned flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
        const CUresult refused = driver->cuMemHostRegister(pinned->at, bytes, flags);
        pinned->known = !refused || refused == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;      /* registered
                                                                                                  before a
                                                                                                  reset that
                                                                                                  was
                                                                                                  forgotten */
        if (pinned->known) return CUDA_SUCCESS;
        if (is_reset(refused)) return refused;
        drop_pages(pinned);
    }
    CUresult result = driver->cuMemHostAlloc(&pinned->at, bytes, CU_MEMHOSTALLOC_PORTABLE);
    pinned->known = !result;
    pinned->bytes = bytes;
    if (result) pinned->at = NULL;
    return result;
}

void gpb_pinned_forget(gpb_pinned *pinned)
{
    if (pinned->own) pinned->known = false;
    else *pinned = (gpb_pinned){ 0 };
}

void gpb_pinned_free(gpb_pinned *pinned)
{
    const gpb_driver *driver = gpb_driver_get();
    if (pinned->own) {
        if (pinned->known) driver->cuMemHostUnregister(pinned->at);
        drop_pages(pinned);
    } else if (pinned->at) {
        driver->cuMemFreeHost(pinned->at);
        *pinned = (gpb_pinned){ 0 };
    }
}
