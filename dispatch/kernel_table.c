/* SPDX-License-Identifier: MIT */
/* The two lists of kernels/ as data; see kernel_table.h. */
#include "dispatch/kernel_table.h"

#include <stddef.h>
#include <string.h>

const gpb_image_row gpb_image_rows[GPB_IMAGES] = {
#define IMAGE(name, p, arch) { #name, GPB_TYPE_##p, #arch },
#include "kernels/images.def"
#undef IMAGE
};

const gpb_kernel gpb_kernels[] = {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea)              \
    { step, #name, GPB_STR(GPB_GEMM_SYMBOL(p, name)), GPB_IMAGE_##image, GPB_TYPE_##p, GPB_MATH_##math,   \
      GPB_FORM_##form, bm, bn, bk, stages, threads, smem, GPB_CAP_##caps, idea },
#include "kernels/gemm.def"
#undef KERNEL
};

const gpb_slicer gpb_slicers[GPB_SLICERS] = {
#define SLICER(p, name, image, most, cluster)                                                                \
    { GPB_STR(GPB_SLICER_SYMBOL(p, name)), GPB_TYPE_##p, GPB_IMAGE_##image, most, cluster },
#include "kernels/slicer.def"
#undef SLICER
};

const int gpb_kernel_count = GPB_KERNELS;

const gpb_kernel *gpb_kernel_table_find(const char *name, enum gpb_type type)
{
    for (int i = 0; i < gpb_kernel_count; i++)
        if (gpb_kernels[i].type == type && strcmp(gpb_kernels[i].name, name) == 0) return &gpb_kernels[i];
    return NULL;
}

bool gpb_kernel_table_knows(const char *name)
{
    bool knows = false;
    for (int type = 0; type < GPB_TYPES; type++)
        knows |= gpb_kernel_table_find(name, (enum gpb_type)type) != NULL;
    return knows;
}

int gpb_kernel_table_runs(enum gpb_image image, int arch)
{
    const char *text = gpb_image_rows[image].arch;
    int least = 0;
    while (*text >= '0' && *text <= '9') least = 10 * least + (*text++ - '0');
    return *text ? arch == least : arch >= least;
}

int gpb_kernel_table_shared(int arch)
{
    const bool is_large = arch == 80 || arch == 87;           /* A100, Orin; 86 and 89 have less */
    return (arch < 80 ? 64 : is_large ? 163 : arch < 90 ? 99 : arch < 120 ? 227 : 99) << 10;
}

bool gpb_kernel_table_serves(const gpb_kernel *kernel, int arch)
{
    return gpb_kernel_table_runs(kernel->image, arch) && kernel->smem <= gpb_kernel_table_shared(arch);
}

const gpb_slicer *gpb_kernel_table_slicer(enum gpb_type type, int arch, int64_t k, int slices)
{
    const gpb_slicer *slicer = gpb_slicers;
    for (;; slicer++) {                    /* the last row of a type takes any operand on any GPU */
        const bool takes = !slicer->max_k || (k <= slicer->max_k && slices <= 2);
        if (slicer->type == type && takes && gpb_kernel_table_runs(slicer->image, arch)) return slicer;
    }
}
