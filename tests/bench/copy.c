/* SPDX-License-Identifier: MIT */
/* The contender copy_cublas does what a program does that is written for CUDA in a minute. Buffers on the
   device are kept, the driver copies from where the operands lie, and nothing overlaps. */
#include <stdlib.h>

#include <cuda.h>

#include "tests/bench/gpu.h"
#include "tests/bench/worker.h"

typedef struct buffer { gpu_address at; size_t bytes; } buffer;

void copy_open(void)
{
    char name[256];
    if (!gpu_open(name, sizeof name)) exit(77);
    gpu_open_cublas();
    if (!cublas.handle) exit(77);
}

static gpu_address device_room(buffer *b, size_t bytes)
{
    if (bytes <= b->bytes) return b->at;
    if (b->bytes) MUST(cuMemFree_v2(b->at));
    MUST(cuMemAlloc_v2(&b->at, bytes));
    b->bytes = bytes;
    return b->at;
}

typedef struct block { void *host; int64_t ld, rows, cols; size_t each; } block;

static size_t bytes_of(block b) { return b.each * (size_t)(b.rows * b.cols); }

/* Packed on the device, whatever it is on the host. */
static void copy(gpu_address device, block b, bool up)
{
    const size_t width = b.each * (size_t)b.rows, height = (size_t)b.cols;
    if (b.ld == b.rows) {
        if (up) MUST(cuMemcpyHtoD_v2(device, b.host, width * height));
        else MUST(cuMemcpyDtoH_v2(b.host, device, width * height));
        return;
    }
    CUDA_MEMCPY2D copy = { .WidthInBytes = width, .Height = height };
    if (up) {
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = b.host;
        copy.srcPitch = b.each * (size_t)b.ld;
        copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.dstDevice = device;
        copy.dstPitch = width;
    } else {
        copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.srcDevice = device;
        copy.srcPitch = width;
        copy.dstMemoryType = CU_MEMORYTYPE_HOST;
        copy.dstHost = b.host;
        copy.dstPitch = b.each * (size_t)b.ld;
    }
    MUST(cuMemcpy2DAsync_v2(&copy, NULL));
    MUST(cuStreamSynchronize(NULL));
}

static int cublas_trans(const gpb_call *g, enum gpb_operand x)
{
    return g->x[x].trans == 'N' ? 0 : g->x[x].trans == 'T' ? 1 : 2;
}

void copy_call(const gpb_call *g)
{
    static buffer buffers[3];
    const size_t each = gpb_call_element(g);
    const block a = { (void *)(uintptr_t)g->x[GPB_A].base, g->x[GPB_A].ld, gpb_call_rows(g, GPB_A),
                      gpb_call_cols(g, GPB_A), each };
    const block b = { (void *)(uintptr_t)g->x[GPB_B].base, g->x[GPB_B].ld, gpb_call_rows(g, GPB_B),
                      gpb_call_cols(g, GPB_B), each };
    const block c = { gpb_call_member(g, GPB_C, 0), g->x[GPB_C].ld, g->m, g->n, each };
    const gpb_element alpha = gpb_element_of(g->type, g->alpha), beta = gpb_element_of(g->type, g->beta);
    gpu_address at_a = device_room(&buffers[0], bytes_of(a));
    gpu_address at_b = device_room(&buffers[1], bytes_of(b));
    gpu_address at_c = device_room(&buffers[2], bytes_of(c));
    copy(at_a, a, true);
    copy(at_b, b, true);
    if (g->beta != 0) copy(at_c, c, true);
    must(cublas.of[g->type].one(cublas.handle, cublas_trans(g, GPB_A), cublas_trans(g, GPB_B), (int)g->m,
                                  (int)g->n, (int)g->k, &alpha, (void *)(uintptr_t)at_a, (int)a.rows,
                                  (void *)(uintptr_t)at_b, (int)b.rows, &beta, (void *)(uintptr_t)at_c,
                                  (int)c.rows),
         "cublas?gemm");
    copy(at_c, c, false);
}
