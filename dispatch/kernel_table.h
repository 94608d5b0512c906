/* SPDX-License-Identifier: MIT */
/* kernels/images.def and kernels/gemm.def as constant data. */
#ifndef GPB_KERNEL_TABLE_H
#define GPB_KERNEL_TABLE_H

#include "dispatch/matrix.h"
#include "dispatch/type.h"
#include "kernels/names.h"

enum gpb_image {
#define IMAGE(name, p, arch) GPB_IMAGE_##name,
#include "kernels/images.def"
#undef IMAGE
    GPB_IMAGES
};

typedef struct gpb_image_row {
    const char *name;
    enum gpb_type type;
    const char *arch;     /* "75": that compute capability and later; "90a": exactly that one */
} gpb_image_row;

typedef struct gpb_kernel {
    int step;             /* of the ladder */
    const char *name;     /* value of GPUBLAS_KERNEL */
    const char *symbol;   /* in the image: gpb_sgemm_naive */
    enum gpb_image image;
    enum gpb_type type;   /* of its operands and of C */
    enum gpb_math math;
    enum gpb_form form;
    int bm, bn, bk, stages, threads, smem;
    unsigned caps;        /* bits of enum gpb_cap */
    const char *idea;
} gpb_kernel;

/* The rows' indices in gpb_kernels. */
enum gpb_kernel_row {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    GPB_KERNEL_##p##_##name,
#include "kernels/gemm.def"
#undef KERNEL
    GPB_KERNELS
};

/* The kernel that makes the slices or residues for a guarded kernel: a row of slicer.def. */
typedef struct gpb_slicer {
    const char *symbol;   /* in the image */
    enum gpb_type type;   /* of the operands */
    enum gpb_image image;
    int64_t max_k;        /* largest k of operands that it slices, into at most two slices; 0: any */
    int blocks;           /* blocks per strip */
} gpb_slicer;

enum gpb_slicer_row {
#define SLICER(p, name, image, most, cluster) GPB_SLICER_##p##_##name,
#include "kernels/slicer.def"
#undef SLICER
    GPB_SLICERS
};

extern const gpb_slicer gpb_slicers[GPB_SLICERS];
extern const gpb_image_row gpb_image_rows[GPB_IMAGES];
extern const gpb_kernel gpb_kernels[];
extern const int gpb_kernel_count;

/* A tile's extent: rows of op(A), columns of op(B). */
static inline int gpb_kernel_table_edge(const gpb_kernel *kernel, enum gpb_operand x)
{
    return x == GPB_A ? kernel->bm : kernel->bn;
}

static inline bool gpb_kernel_table_can(const gpb_kernel *kernel, enum gpb_cap cap)
{
    return kernel->caps & cap;
}

/* True of kernels whose operands go through a slicer (slicer.def), and which leave blocks of C whose guard
   words are set (gemm_args.h) to others. */
static inline bool gpb_kernel_table_guarded(const gpb_kernel *kernel)
{
    return kernel->form == GPB_FORM_SLICED || kernel->form == GPB_FORM_RESIDUES;
}

/* The row of that name for that type, or NULL. */
const gpb_kernel *gpb_kernel_table_find(const char *name, enum gpb_type type);
/* True if there is a row of that name, for any type. */
bool gpb_kernel_table_knows(const char *name);
/* The first row of slicer.def that runs there and cuts operands of that type and depth k into that many
   slices. */
const gpb_slicer *gpb_kernel_table_slicer(enum gpb_type type, int arch, int64_t k, int slices);
/* True if a GPU of compute capability `arch` (major*10 + minor) can run this image. */
int gpb_kernel_table_runs(enum gpb_image image, int arch);
/* The most shared memory that a thread block can have there, in bytes (CUDA's table of compute
   capabilities). */
int gpb_kernel_table_shared(int arch);
/* True if such a GPU can run this kernel: the image, with as much shared memory. */
bool gpb_kernel_table_serves(const gpb_kernel *kernel, int arch);

#endif
