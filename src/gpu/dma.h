/* SPDX-License-Identifier: MIT */
/* Copies that the driver makes alone between two places that it can reach, without crew or ring. */
#ifndef GPB_DMA_H
#define GPB_DMA_H

#include "src/service/driver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest distance in bytes between columns that cuMemcpy2D accepts (CU_DEVICE_ATTRIBUTE_MAX_PITCH of all
   GPUs). */
#define GPB_DMA_MAX_PITCH INT64_C(2147483647)

/* rows x cols elements, column-major, with ld in the caller's matrix and ld_arena in the arena. Of a triangle
   ('U', 'L') only the rows of each column that lie inside it move; row0 and col0 say where the panel lies in
   the whole matrix. */
typedef struct gpb_dma_shape {
    int64_t rows, cols, ld, ld_arena;
    size_t element;
    char uplo;
    int64_t row0, col0;
} gpb_dma_shape;

/* Enqueues on the stream. The caller's memory is pinned or on a GPU. */
CUresult gpb_dma_copy(const gpb_dma_shape *panel, const void *callers, CUdeviceptr arena, bool up,
                      CUstream stream);
/* Enqueues a copy between the GPU and pinned memory of ours. */
CUresult gpb_dma_send(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult gpb_dma_fetch(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
/* Copies between memory on a GPU (with its ld) and ordinary memory (tight), at once, where no lane can be
   had. A failure that may pass is retried, also with simpler copies. */
CUresult gpb_dma_copy_and_wait(const gpb_dma_shape *panel, const void *gpu, void *host, bool fetch);

#endif
