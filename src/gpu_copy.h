/* SPDX-License-Identifier: MIT */
/* Moving one panel between the caller's memory and the arena, by pinned staging slots where the caller's is ordinary host memory. */
#ifndef GPB_GPU_COPY_H
#define GPB_GPU_COPY_H

#include "src/gpu_state.h"

/* rows x cols elements, column-major: ld apart at the caller's, tight (ld = rows) in the arena. Of a triangle ('U', 'L') only that part of
   each column moves; row0 and col0 say where the panel lies in the whole matrix. */
typedef struct gpb_panel {
    int64_t rows, cols, ld;
    size_t element;
    enum gpb_place place;        /* of the caller's: ELSEWHERE is asked for again, since a pointer array may be of both kinds */
    char uplo;
    int64_t row0, col0;
} gpb_panel;

/* Enqueues on the lane's stream; the caller's memory has been read on return, unless it is on a GPU. */
CUresult gpb_gpu_upload(gpb_lane *lane, const gpb_panel *panel, const void *from, CUdeviceptr to);
/* Waits for the lane's stream. *cols_done counts the columns that are home: each is either wholly written or untouched. */
CUresult gpb_gpu_download(gpb_lane *lane, const gpb_panel *panel, CUdeviceptr from, void *to, int64_t *cols_done);
/* Between memory on a GPU (with its ld) and ordinary memory (tight), whole and at once, when no lane can be had. */
CUresult gpb_gpu_bounce(const gpb_panel *panel, const void *gpu, void *host, bool fetch);
/* A few bytes of host memory, as they are. */
CUresult gpb_gpu_send(gpb_lane *lane, const void *from, size_t bytes, CUdeviceptr to);

#endif
