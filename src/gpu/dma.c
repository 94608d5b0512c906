/* SPDX-License-Identifier: MIT */
/* Copies made by the driver; see dma.h. */
#include "src/gpu/dma.h"

#include <time.h>

#include "dispatch/matrix.h"
#include "src/gpu/context.h"
#include "src/gpu/gpu.h"
#include "src/gpu/place.h"
#include "src/service/spans.h"

static CUresult copy_2d(const gpb_dma_shape *panel, CUdeviceptr caller, CUdeviceptr arena, bool up,
                        CUstream stream)
{
    const size_t tight = (size_t)panel->rows * panel->element,
                 apart = panel->cols > 1 ? (size_t)panel->ld * panel->element : tight;
    const size_t pitch = (size_t)panel->ld_arena * panel->element;
    /* Columns that follow each other are one to the driver, because within a GPU it is slow with many. */
    const bool one = apart == tight && pitch == tight
                     && tight * (size_t)panel->cols <= (size_t)GPB_DMA_MAX_PITCH;
    const size_t width = one ? tight * (size_t)panel->cols : tight;
    CUDA_MEMCPY2D copy = {
        .srcMemoryType = up ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_DEVICE,
        .srcDevice = up ? caller : arena, .srcPitch = one ? width : up ? apart : pitch,
        .dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED,
        .dstDevice = up ? arena : caller, .dstPitch = one ? width : up ? pitch : apart,
        .WidthInBytes = width, .Height = one ? 1 : (size_t)panel->cols };
    const int span = gpb_spans_open(stream);
    const CUresult result = gpb_driver_get()->cuMemcpy2DAsync(&copy, stream);
    gpb_spans_close(span, "link", up ? "to the GPU" : "from the GPU", tight * (size_t)panel->cols);
    return result;
}

CUresult gpb_dma_send(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    const int span = gpb_spans_open(stream);
    const CUresult result = gpb_driver_get()->cuMemcpyHtoDAsync(to, from, bytes, stream);
    gpb_spans_close(span, "link", "to the GPU", bytes);
    return result;
}

CUresult gpb_dma_fetch(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    const int span = gpb_spans_open(stream);
    const CUresult result = gpb_driver_get()->cuMemcpyDtoHAsync(to, from, bytes, stream);
    gpb_spans_close(span, "link", "from the GPU", bytes);
    return result;
}

static gpb_matrix_rows rows_of(const gpb_dma_shape *panel, int64_t col)
{
    return gpb_matrix_rows_of(panel->uplo, panel->row0, panel->rows, panel->col0 + col);
}

/* One driver copy cannot follow a triangle. By its documents it cannot reach columns farther apart than
   GPB_DMA_MAX_PITCH either (driver 580 on an H200 can). Both are copied column by column. */
CUresult gpb_dma_copy(const gpb_dma_shape *panel, const void *callers, CUdeviceptr arena, bool up,
                      CUstream stream)
{
    const CUdeviceptr caller = (CUdeviceptr)(uintptr_t)callers;
    const bool far = panel->cols > 1 && panel->ld * (int64_t)panel->element > GPB_DMA_MAX_PITCH;
    if (panel->uplo == 'G' && !far) return copy_2d(panel, caller, arena, up, stream);
    CUresult result = CUDA_SUCCESS;
    for (int64_t col = 0; col < panel->cols && !result; col++) {
        const gpb_matrix_rows rows = rows_of(panel, col);
        const int64_t count = rows.last - rows.first;
        const gpb_dma_shape column = { .rows = count, .cols = 1, .ld = count, .ld_arena = count,
                                       .element = panel->element };
        if (column.rows > 0)
            result = copy_2d(&column, caller + (CUdeviceptr)(col * panel->ld + rows.first) * panel->element,
                             arena + (CUdeviceptr)(col * panel->ld_arena + rows.first) * panel->element, up,
                             stream);
    }
    return result;
}

/* One attempt at gpb_dma_copy_and_wait, and the wait for it. plainly: column by column with the driver's
   simplest copies, which need least of it. */
static CUresult copy_once(const gpb_dma_shape *panel, CUdeviceptr gpu, char *host, bool fetch, bool plainly)
{
    const gpb_driver *driver = gpb_driver_get();
    const size_t tight = (size_t)panel->rows * panel->element, apart = (size_t)panel->ld * panel->element;
    CUDA_MEMCPY2D copy = { .WidthInBytes = tight, .Height = (size_t)panel->cols };
    CUstream stream = CU_STREAM_LEGACY;
    CUresult result = gpb_context_records_graph() ? driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)
                                                  : CUDA_SUCCESS;
    if (result) return result;
    if (fetch) {
        copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
        copy.srcDevice = gpu;
        copy.srcPitch = apart;
        copy.dstMemoryType = CU_MEMORYTYPE_HOST;
        copy.dstHost = host;
        copy.dstPitch = tight;
    } else {
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = host;
        copy.srcPitch = tight;
        copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
        copy.dstDevice = gpu;
        copy.dstPitch = apart;
    }
    if (!plainly) result = driver->cuMemcpy2DAsync(&copy, stream);
    for (int64_t col = 0; plainly && !result && col < panel->cols; col++) {
        const gpb_matrix_rows rows = rows_of(panel, col);
        char *at = host + (size_t)col * tight + (size_t)rows.first * panel->element;
        const CUdeviceptr there = gpu + (CUdeviceptr)col * apart + (CUdeviceptr)rows.first * panel->element;
        const size_t bytes = (size_t)(rows.last - rows.first) * panel->element;
        if (bytes)
            result = fetch ? driver->cuMemcpyDtoHAsync(at, there, bytes, stream)
                           : driver->cuMemcpyHtoDAsync(there, at, bytes, stream);
    }
    /* Wait even after a failure, because queued copies still use the host's memory. */
    const CUresult waited = driver->cuStreamSynchronize(stream);
    if (stream != CU_STREAM_LEGACY) driver->cuStreamDestroy(stream);
    return result && !gpb_driver_sticky(waited) ? result : waited;
}

/* What the program has queued in the operand's own context, which may be another GPU's, comes first. */
static CUresult await_other(const void *gpu, const gpb_device *device)
{
    const gpb_driver *driver = gpb_driver_get();
    const CUcontext context = gpb_place_context(gpu);
    CUcontext popped;
    if (!context || context == device->context || gpb_context_records_graph()) return CUDA_SUCCESS;
    CUresult result = driver->cuCtxPushCurrent(context);
    if (result) return result;
    result = driver->cuStreamSynchronize(CU_STREAM_LEGACY);
    driver->cuCtxPopCurrent(&popped);
    return result;
}

/* C cannot be computed without this copy, so failures that may pass are retried, for 85 ms in all. */
CUresult gpb_dma_copy_and_wait(const gpb_dma_shape *panel, const void *gpu, void *host, bool fetch)
{
    enum { TRIES = 10, FIRST_PAUSE_NS = 1000000 };
    gpb_device *devices;
    CUresult result = CUDA_ERROR_NOT_INITIALIZED;
    struct timespec pause = { .tv_nsec = FIRST_PAUSE_NS };
    for (int i = 0; i < TRIES && gpb_device_list(&devices) > 0; i++) {
        const bool plainly = i % 2 || panel->uplo != 'G'
                             || panel->ld * (int64_t)panel->element > GPB_DMA_MAX_PITCH;
        if (i && i % 2 == 0) {
            nanosleep(&pause, NULL);
            pause.tv_nsec *= 4;
        }
        result = gpb_context_enter(&devices[0]);
        if (!result) {
            result = await_other(gpu, &devices[0]);
            if (!result) result = copy_once(panel, (CUdeviceptr)(uintptr_t)gpu, host, fetch, plainly);
            gpb_context_exit();
        }
        if (!result || gpb_driver_sticky(result)) break;
    }
    return result;
}
