/* SPDX-License-Identifier: MIT */
/* Tensor maps; see tensor_map.h. */
#include "src/gpu/tensor_map.h"

#if CUDA_VERSION >= 12000
_Static_assert(sizeof(gpb_tensor_map) == sizeof(CUtensorMap)
                   && _Alignof(gpb_tensor_map) >= _Alignof(CUtensorMap), "the kernel's is the driver's");

bool gpb_tensor_map_known(void)
{
    const gpb_driver *driver = gpb_driver_get();
    return driver && driver->cuTensorMapEncodeTiled;
}

/* One operand: `places` rows of op(A) or columns of op(B), from which step elements lead to the next, and
   step_k from one k to the next. One of the two is 1. */
typedef struct operand {
    const void *at;
    int64_t places, step, step_k, stride;
    int edge, sharers;                     /* places of a tile; blocks that share them */
} operand;

/* A map is of real numbers, because there is no type of 16 bytes: a complex one is two, side by side. */
static CUresult encode(const gpb_kernel *kernel, const gpb_gemm_args *args, const operand *x,
                       gpb_tensor_map *map, bool *in_lines)
{
    const uint64_t element = gpb_type_bytes(kernel->type), reals = gpb_type_is_complex(kernel->type) ? 2 : 1;
    /* As the kernel has it: op(A) and op(B) are along the edge if their first dimension is contiguous. */
    const bool along_k = x->step != 1;
    const int64_t other = along_k ? x->step : x->step_k, line = GPB_MAPPED_LINE / (int64_t)element;
    const int64_t members = x->stride ? args->batch : 1;
    *in_lines = GPB_MAPPED_IN_LINES(along_k, x->places, (int64_t)element);
    const int64_t first = along_k ? args->k : *in_lines ? line : x->places;
    const cuuint64_t extent[] = { (cuuint64_t)first * reals, (cuuint64_t)(along_k ? x->places : args->k),
                                  (cuuint64_t)(*in_lines ? x->places / line : 1), (cuuint64_t)members };
    /* A stride that is never taken must be one that is allowed. */
    const cuuint64_t stride[] = { (cuuint64_t)other * element, GPB_MAPPED_LINE,
                                  (cuuint64_t)(members > 1 ? x->stride : other) * element };
    const cuuint32_t box[] = { GPB_MAPPED_LINE / sizeof(double),
                               (cuuint32_t)GPB_MAPPED_BOX(along_k, x->edge, x->sharers, (int)element),
                               (cuuint32_t)(*in_lines ? x->edge / x->sharers / line : 1), 1 };
    const cuuint32_t every[] = { 1, 1, 1, 1 };
    return gpb_driver_get()->cuTensorMapEncodeTiled(
        (CUtensorMap *)(void *)map, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 4, (void *)(uintptr_t)x->at, extent,
        stride, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

CUresult gpb_tensor_map_bind(const gpb_kernel *kernel, const gpb_gemm_args *args, int products,
                             gpb_mapped_args *mapped)
{
    *mapped = (gpb_mapped_args){ .gemm = *args, .products = products };
    if (args->k == 0 || (args->alpha[0] == 0 && args->alpha[1] == 0)) return CUDA_SUCCESS;
    if (!gpb_tensor_map_known()) return CUDA_ERROR_NOT_SUPPORTED;
    const int sharers = gpb_kernel_table_can(kernel, GPB_CAP_PAIRS) ? 2 : 1;
    CUresult result = CUDA_SUCCESS;
    for (int x = 0; x < 2 * products && !result; x++) {
        const bool of_a = x == 0 || x == 3, left = x % 2 == 0;
        const int edge = left ? kernel->bm : kernel->bn, blocks = left ? sharers : 1;
        const operand as
            = of_a ? (operand){ args->a, args->m, args->rsa, args->csa, args->stride_a, edge, blocks }
                   : (operand){ args->b, args->n, args->csb, args->rsb, args->stride_b, edge, blocks };
        bool in_lines;
        result = encode(kernel, args, &as, &mapped->map[x], &in_lines);
        mapped->in_lines |= (unsigned)in_lines << x;
    }
    return result;
}
#else
bool gpb_tensor_map_known(void) { return false; }

CUresult gpb_tensor_map_bind(const gpb_kernel *kernel, const gpb_gemm_args *args, int products,
                             gpb_mapped_args *mapped)
{
    (void)kernel, (void)args, (void)products, (void)mapped;
    return CUDA_ERROR_NOT_SUPPORTED;
}
#endif
