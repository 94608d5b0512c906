/* SPDX-License-Identifier: MIT */
/* Copies; see gpu_copy.h. The host side packs strides away here, so that the link only ever carries the elements themselves. */
#include "src/gpu_copy.h"

#include <string.h>

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Rows [*from, *to) of a column of the panel that belong to its triangle. */
static void rows_of(const gpb_panel *panel, int64_t col, int64_t *from, int64_t *to)
{
    int64_t diagonal = panel->col0 + col - panel->row0;
    *from = panel->uplo == 'L' ? least(most(diagonal, 0), panel->rows) : 0;
    *to = panel->uplo == 'U' ? least(most(diagonal + 1, 0), panel->rows) : panel->rows;
}

/* Between the caller's columns and a tight buffer that starts at column `col`, row `row`. */
static void pack(const gpb_panel *panel, const char *from, int64_t row, int64_t rows, int64_t col, int64_t cols, char *tight)
{
    const size_t e = panel->element;
    if (panel->uplo == 'G' && panel->ld == rows && rows == panel->rows) {
        memcpy(tight, from + (size_t)col * (size_t)panel->ld * e, (size_t)rows * (size_t)cols * e);
        return;
    }
    for (int64_t j = 0; j < cols; j++) {
        int64_t first, last;
        rows_of(panel, col + j, &first, &last);
        first = most(first, row), last = least(last, row + rows);
        if (first < last)
            memcpy(tight + (size_t)(j * rows + first - row) * e, from + (size_t)((col + j) * panel->ld + first) * e,
                   (size_t)(last - first) * e);
    }
}

static void unpack(const gpb_panel *panel, const char *tight, int64_t col, int64_t cols, char *to)
{
    const size_t e = panel->element;
    for (int64_t j = 0; j < cols; j++) {
        int64_t first, last;
        rows_of(panel, col + j, &first, &last);
        if (first < last)
            memcpy(to + (size_t)((col + j) * panel->ld + first) * e, tight + (size_t)(j * panel->rows + first) * e,
                   (size_t)(last - first) * e);
    }
}

/* At least `want` bytes (at most a slot) of the ring, once the copies that used them are done. */
static CUresult stage(gpb_lane *lane, gpb_ring *ring, size_t want, char **at)
{
    const gpb_driver *driver = gpb_driver_open(NULL);
    CUresult result = CUDA_SUCCESS;
    if (GPB_STAGE_BYTES - ring->used < want) {
        result = driver->cuEventRecord(ring->event[ring->now], lane->stream);
        if (result) return result;
        ring->pending[ring->now] = true;
        ring->now = (ring->now + 1) % GPB_STAGES;
        ring->used = 0;
        if (ring->pending[ring->now]) result = driver->cuEventSynchronize(ring->event[ring->now]);
        ring->pending[ring->now] = false;
    }
    *at = ring->slot[ring->now] + ring->used;
    ring->used += (want + 255) / 256 * 256;
    if (ring->used > GPB_STAGE_BYTES) ring->used = GPB_STAGE_BYTES;
    return result;
}

static CUresult copy_2d(gpb_lane *lane, const gpb_panel *panel, CUdeviceptr caller, CUdeviceptr arena, bool up)
{
    size_t tight = (size_t)panel->rows * panel->element, apart = (size_t)panel->ld * panel->element;
    CUDA_MEMCPY2D copy = {
        .srcMemoryType = up ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_DEVICE, .srcDevice = up ? caller : arena,
        .srcPitch = up ? apart : tight,
        .dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED, .dstDevice = up ? arena : caller,
        .dstPitch = up ? tight : apart,
        .WidthInBytes = tight, .Height = (size_t)panel->cols };
    return gpb_driver_open(NULL)->cuMemcpy2DAsync(&copy, lane->stream);
}

/* True if the panel goes by the ring: the caller has it in host memory. */
static bool staged(const gpb_panel *panel, const void *callers)
{
    return gpb_place_on_host(panel->place) || gpb_place_on_host(gpb_gpu_place(callers));
}

CUresult gpb_gpu_bounce(const gpb_panel *panel, const void *gpu, void *host, bool fetch)
{
    const gpb_driver *driver = gpb_driver_open(NULL);
    gpb_device *devices;
    CUcontext popped;
    if (gpb_gpu_devices(&devices) == 0) return CUDA_ERROR_NOT_INITIALIZED;
    size_t tight = (size_t)panel->rows * panel->element, apart = (size_t)panel->ld * panel->element;
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)gpu;
    CUDA_MEMCPY2D copy = { .WidthInBytes = tight, .Height = (size_t)panel->cols };
    if (fetch) {
        copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED, copy.srcDevice = at, copy.srcPitch = apart;
        copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = host, copy.dstPitch = tight;
    } else {
        copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = host, copy.srcPitch = tight;
        copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED, copy.dstDevice = at, copy.dstPitch = apart;
    }
    CUresult result = driver->cuCtxPushCurrent(devices[0].context);
    if (result) return result;
    result = driver->cuMemcpy2DAsync(&copy, CU_STREAM_LEGACY);
    if (!result) result = driver->cuStreamSynchronize(CU_STREAM_LEGACY);
    driver->cuCtxPopCurrent(&popped);
    return result;
}

CUresult gpb_gpu_send(gpb_lane *lane, const void *from, size_t bytes, CUdeviceptr to)
{
    const gpb_driver *driver = gpb_driver_open(NULL);
    CUresult result = CUDA_SUCCESS;
    for (size_t done = 0; done < bytes && !result;) {
        size_t chunk = bytes - done < GPB_STAGE_BYTES ? bytes - done : GPB_STAGE_BYTES;
        char *at;
        result = stage(lane, &lane->up, chunk, &at);
        if (result) break;
        memcpy(at, (const char *)from + done, chunk);
        result = driver->cuMemcpyHtoDAsync(to + done, at, chunk, lane->stream);
        done += chunk;
    }
    return result;
}

CUresult gpb_gpu_upload(gpb_lane *lane, const gpb_panel *panel, const void *from, CUdeviceptr to)
{
    const gpb_driver *driver = gpb_driver_open(NULL);
    const size_t e = panel->element;
    CUresult result = CUDA_SUCCESS;
    if (!staged(panel, from)) return copy_2d(lane, panel, (CUdeviceptr)(uintptr_t)from, to, true);
    const int64_t fit = (int64_t)(GPB_STAGE_BYTES / e);
    int64_t rows = least(panel->rows, fit), cols = panel->rows <= fit ? least(panel->cols, fit / panel->rows) : 1;
    for (int64_t col = 0; col < panel->cols && !result; col += cols)
        for (int64_t row = 0; row < panel->rows && !result; row += rows) {
            int64_t r = least(rows, panel->rows - row), c = least(cols, panel->cols - col);
            size_t bytes = (size_t)r * (size_t)c * e;
            char *at;
            result = stage(lane, &lane->up, bytes, &at);
            if (result) break;
            pack(panel, from, row, r, col, c, at);
            result = driver->cuMemcpyHtoDAsync(to + (size_t)(col * panel->rows + row) * e, at, bytes, lane->stream);
        }
    return result;
}

/* One column at a time: a copy of the driver's own cannot follow a triangle, and half a column must not be written. */
static CUresult download_columns(gpb_lane *lane, const gpb_panel *panel, CUdeviceptr from, CUdeviceptr to, int64_t *cols_done)
{
    const gpb_driver *driver = gpb_driver_open(NULL);
    CUresult result = CUDA_SUCCESS;
    if (panel->uplo == 'G') {
        result = copy_2d(lane, panel, to, from, false);
    } else {
        for (int64_t col = 0; col < panel->cols && !result; col++) {
            int64_t first, last;
            rows_of(panel, col, &first, &last);
            gpb_panel part = { .rows = last - first, .cols = 1, .ld = panel->ld, .element = panel->element, .uplo = 'G' };
            size_t shift = (size_t)first * panel->element;
            if (part.rows > 0)
                result = copy_2d(lane, &part, to + (size_t)(col * panel->ld) * panel->element + shift,
                                 from + (size_t)(col * panel->rows) * panel->element + shift, false);
        }
    }
    if (!result) result = driver->cuStreamSynchronize(lane->stream);
    if (!result) *cols_done = panel->cols;
    return result;
}

CUresult gpb_gpu_download(gpb_lane *lane, const gpb_panel *panel, CUdeviceptr from, void *to, int64_t *cols_done)
{
    const gpb_driver *driver = gpb_driver_open(NULL);
    gpb_ring *ring = &lane->down;
    *cols_done = 0;
    if (!staged(panel, to)) return download_columns(lane, panel, from, (CUdeviceptr)(uintptr_t)to, cols_done);
    size_t column = (size_t)panel->rows * panel->element;
    int64_t cols = most(1, least(panel->cols, (int64_t)(GPB_STAGE_BYTES / column)));
    CUresult result = CUDA_SUCCESS;
    /* One chunk travels while the one before it is unpacked. */
    for (int64_t col = 0, chunk = 0; *cols_done < panel->cols && !result; chunk++) {
        int slot = (int)(chunk % GPB_STAGES);
        int64_t c = least(cols, panel->cols - col);
        if (c > 0) {
            result = driver->cuMemcpyDtoHAsync(ring->slot[slot], from + (size_t)col * column, (size_t)c * column, lane->stream);
            if (!result) result = driver->cuEventRecord(ring->event[slot], lane->stream);
            col += c;
        }
        if (chunk == 0 || result) continue;
        int before = (int)((chunk - 1) % GPB_STAGES);
        int64_t ready = least(cols, panel->cols - *cols_done);
        result = driver->cuEventSynchronize(ring->event[before]);
        if (result) break;
        unpack(panel, ring->slot[before], *cols_done, ready, to);
        *cols_done += ready;
    }
    return result;
}
