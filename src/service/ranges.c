/* SPDX-License-Identifier: MIT */
/* See ranges.h. NVTX is headers of the CUDA Toolkit: they load the library that a profiler names in
   NVTX_INJECTION64_PATH, and call it. A build without them has no ranges. */
#include "src/service/ranges.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#include <stdatomic.h>

/* Two threads may create the domain at once. To a profiler two domains of one name are one. */
static nvtxDomainHandle_t domain(void)
{
    static _Atomic(nvtxDomainHandle_t) created;
    nvtxDomainHandle_t known = atomic_load(&created);
    if (!known) atomic_store(&created, known = nvtxDomainCreateA("libgpublas"));
    return known;
}

uint64_t gpb_ranges_begin(const char *name)
{
    const nvtxEventAttributes_t event = { .version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                          .messageType = NVTX_MESSAGE_TYPE_ASCII, .message.ascii = name };
    return nvtxDomainRangeStartEx(domain(), &event);
}

void gpb_ranges_end(uint64_t range)
{
    if (range) nvtxDomainRangeEnd(domain(), range);
}
#else
uint64_t gpb_ranges_begin(const char *name)
{
    (void)name;
    return 0;
}

void gpb_ranges_end(uint64_t range) { (void)range; }
#endif
