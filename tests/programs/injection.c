/* SPDX-License-Identifier: MIT */
/* A profiler's library: NVTX loads it by NVTX_INJECTION64_PATH. On stderr it prints the ranges of the domain
   "libgpublas": "range <name>" as each begins; at the program's end, how many began, and how many did not
   end. */
#include <nvtx3/nvToolsExt.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char ours[] = "libgpublas";
static atomic_ullong begun, open_now;

static nvtxDomainHandle_t create(const char *name)
{
    return strcmp(name, ours) ? NULL : (nvtxDomainHandle_t)ours;
}

static nvtxRangeId_t begin(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    if ((const char *)domain != ours || event->messageType != NVTX_MESSAGE_TYPE_ASCII) return 0;
    fprintf(stderr, "range %s\n", event->message.ascii);
    atomic_fetch_add(&open_now, 1);
    return atomic_fetch_add(&begun, 1) + 1;
}

static void end(nvtxDomainHandle_t domain, nvtxRangeId_t range)
{
    if ((const char *)domain == ours && range) atomic_fetch_sub(&open_now, 1);
}

__attribute__((destructor)) static void count(void)
{
    fprintf(stderr, "begun %llu, open %llu\n", begun, open_now);
}

static void put(NvtxFunctionTable table, unsigned size, int which, NvtxFunctionPointer function)
{
    if ((unsigned)which < size) *table[which] = function;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables)
{
    NvtxFunctionTable table;
    unsigned size;
    const NvtxExportTableCallbacks *callbacks = tables(NVTX_ETID_CALLBACKS);
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
    put(table, size, NVTX_CBID_CORE2_DomainCreateA, (NvtxFunctionPointer)create);
    put(table, size, NVTX_CBID_CORE2_DomainRangeStartEx, (NvtxFunctionPointer)begin);
    put(table, size, NVTX_CBID_CORE2_DomainRangeEnd, (NvtxFunctionPointer)end);
    return 1;
}
