/* SPDX-License-Identifier: MIT */
/* Copies that the driver makes by itself between two places that it can reach: no crew, no ring. */
#ifndef GPB_DMA_H
#define GPB_DMA_H

#include "src/service/driver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes from a column to the next that cuMemcpy2D takes (CU_DEVICE_ATTRIBUTE_MAX_PITCH of all GPUs). */
#define GPB_DMA_MAX_PITCH INT64_C(2147483647)

/* rows x cols elements, column-major: ld apart at the caller's, ld_arena in the arena. Of a triangle ('U', 'L') only that part of each
   column moves; row0 and col0 say where the panel lies in the whole matrix. */
typedef struct gpb_dma_shape {
    int64_t rows, cols, ld, ld_arena;
    size_t element;
    char uplo;
    int64_t row0, col0;
} gpb_dma_shape;

/* Enqueues on the stream; the caller's memory is pinned or on a GPU. */
CUresult gpb_dma_copy(const gpb_dma_shape *panel, const void *callers, CUdeviceptr arena, bool up, CUstream stream);
/* Between memory on a GPU (with its ld) and ordinary memory (tight), whole and at once, when no lane can be had. Tried again, also another
   way, if the failure is one that passes. */
CUresult gpb_dma_copy_and_wait(const gpb_dma_shape *panel, const void *gpu, void *host, bool fetch);

#endif
