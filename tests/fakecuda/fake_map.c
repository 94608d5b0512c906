/* SPDX-License-Identifier: MIT */
/* Tensor maps: the driver's rules, and whether a MAPPED kernel's maps are those that it counts on. A map here
   holds the very numbers that it was made from. */
#include <string.h>

#include "tests/fakecuda/fakecuda.h"

#if CUDA_VERSION >= 12000
typedef struct map {
    uint64_t magic;                      /* of an encoded map */
    uint64_t at, extent[4], stride[3];
    uint32_t box[4];
    uint8_t rank, type, swizzle, fill;
} map;
_Static_assert(sizeof(map) <= sizeof(CUtensorMap), "a map has room");
static const uint64_t magic = 0x70616d726f736e65;

static int element_bytes(CUtensorMapDataType type)
{
    switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8: return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return 2;
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64: return 8;
    default: return type >= 0 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ ? 4 : 0;
    }
}

/* The rules of cuTensorMapEncodeTiled without interleaving (CUDA driver API, "Tensor Map Object
   Management"). */
static bool is_legal(const void *to, int element, cuuint32_t rank, const void *at, const cuuint64_t *extent,
                     const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *every, int line)
{
    const uint64_t widest = (uint64_t)1 << 32, longest = (uint64_t)1 << 40;
    if ((uintptr_t)to % 64 || !element || rank < 1 || rank > 5 || !at || (uintptr_t)at % 16 || !extent || !box
        || !every || (rank > 1 && !stride))
        return false;
    for (cuuint32_t d = 0; d < rank; d++)
        if (!extent[d] || extent[d] > widest || !box[d] || box[d] > 256 || !every[d] || every[d] > 8)
            return false;
    for (cuuint32_t d = 0; d + 1 < rank; d++)
        if (stride[d] % 16 || stride[d] >= longest)
            return false;
    const int width = (int)box[0] * element;
    return width % 16 == 0 && (!line || width <= line);
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank, void *at,
                                const cuuint64_t *extent, const cuuint64_t *stride, const cuuint32_t *box,
                                const cuuint32_t *every, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill)
{
    static const int lines[] = { [CU_TENSOR_MAP_SWIZZLE_NONE] = 0, [CU_TENSOR_MAP_SWIZZLE_32B] = 32,
                                 [CU_TENSOR_MAP_SWIZZLE_64B] = 64, [CU_TENSOR_MAP_SWIZZLE_128B] = 128 };
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r && (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || rank != 4))
        r = CUDA_ERROR_NOT_SUPPORTED;    /* what nobody here uses */
    if (!r && ((unsigned)swizzle > CU_TENSOR_MAP_SWIZZLE_128B
               || (unsigned)promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B
               || (unsigned)fill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
               || !is_legal(to, element_bytes(type), rank, at, extent, stride, box, every, lines[swizzle])))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r && gpb_fake_options_get()->arch < 90)
        r = CUDA_ERROR_NOT_SUPPORTED;
    if (!r) {
        map x = { .magic = magic, .at = (uintptr_t)at, .rank = (uint8_t)rank, .type = (uint8_t)type,
                  .swizzle = (uint8_t)swizzle, .fill = (uint8_t)fill };
        memcpy(x.extent, extent, sizeof x.extent);
        memcpy(x.stride, stride, sizeof x.stride);
        memcpy(x.box, box, sizeof x.box);
        memset(to, 0, sizeof *to);
        memcpy(to, &x, sizeof x);
    }
    return gpb_fake_leave(__func__, r);
}

/* Dies unless the map is of an operand of `places` x k elements, from which step and step_k lead to the next.
   kernels/mapped: boxes of 16 real numbers along the contiguous dimension. Of the other one, all places of a
   tile that a block fetches, or as many k as 128 bytes have places; of the third, lines of all of a tile's
   places, or one. */
static void check_map(const gpb_fake_kernel *kernel, const char *name, const gpb_tensor_map *in,
                      const void *at, int64_t places, int64_t k, int64_t step, int64_t step_k, int64_t batch,
                      int64_t stride, int fetched, bool in_lines)
{
    const uint64_t bytes = gpb_type_bytes(kernel->type);
    const uint64_t reals = gpb_type_is_complex(kernel->type) ? 2 : 1;
    const bool along_k = step != 1;
    const uint64_t other = (uint64_t)(along_k ? step : step_k) * bytes;
    map x;
    memcpy(&x, in, sizeof x);
    const uint32_t line = (uint32_t)(128 / bytes), lines = (uint32_t)fetched / line;
    const bool whole = !along_k && places % line == 0;
    const uint64_t first = (uint64_t)(along_k ? k : whole ? line : places) * reals;
    const uint64_t extent[] = { first, (uint64_t)(along_k ? places : k),
                                whole ? (uint64_t)places / line : 1, stride ? (uint64_t)batch : 1 };
    const uint64_t strides[] = { other, 128, (uint64_t)stride * bytes };
    const uint32_t box[] = { 16, along_k ? (uint32_t)fetched : line, whole ? lines : 1, 1 };
    const bool one = extent[3] == 1;
    if ((along_k ? step_k : step) != 1 || x.magic != magic || x.at != (uintptr_t)at || x.rank != 4
        || x.type != CU_TENSOR_MAP_DATA_TYPE_FLOAT64 || x.swizzle != CU_TENSOR_MAP_SWIZZLE_128B || x.fill
        || memcmp(x.extent, extent, sizeof extent) || memcmp(x.stride, strides, one ? 16 : sizeof strides)
        || memcmp(x.box, box, sizeof box) || in_lines != whole)
        gpb_fake_die("BAD LAUNCH of %s: the map of %s is of %llux%llux%llux%llu at %#llx, strides %llu, "
                     "%llu, boxes %ux%ux%ux%u, and the operand %llux%llux%llux%llu at %p, strides %lld, "
                     "%lld, %lld", kernel->symbol, name, (unsigned long long)x.extent[0],
                     (unsigned long long)x.extent[1], (unsigned long long)x.extent[2],
                     (unsigned long long)x.extent[3], (unsigned long long)x.at,
                     (unsigned long long)x.stride[0], (unsigned long long)x.stride[2], x.box[0], x.box[1],
                     x.box[2], x.box[3], (unsigned long long)extent[0], (unsigned long long)extent[1],
                     (unsigned long long)extent[2], (unsigned long long)extent[3], at, (long long)step,
                     (long long)step_k, (long long)stride);
}

static void check_maps(const gpb_fake_kernel *kernel, const gpb_mapped_args *x)
{
    const gpb_gemm_args *g = &x->gemm;
    const int high = kernel->bm / (kernel->caps & GPB_CAP_PAIRS ? 2 : 1), wide = kernel->bn;
    const gpb_tensor_map *map = x->map;
    const unsigned lines = x->in_lines;
    check_map(kernel, "A", &map[0], g->a, g->m, g->k, g->rsa, g->csa, g->batch, g->stride_a, high, lines & 1);
    check_map(kernel, "B", &map[1], g->b, g->n, g->k, g->csb, g->rsb, g->batch, g->stride_b, wide,
              lines >> 1 & 1);
    if (x->products == 1)
        return;
    check_map(kernel, "B^T", &map[2], g->b, g->n, g->k, g->csb, g->rsb, g->batch, g->stride_b, high,
              lines >> 2 & 1);
    check_map(kernel, "A^T", &map[3], g->a, g->m, g->k, g->rsa, g->csa, g->batch, g->stride_a, wide,
              lines >> 3 & 1);
}
#else
static void check_maps(const gpb_fake_kernel *kernel, const gpb_mapped_args *x)
{
    (void)x;
    gpb_fake_die("BAD LAUNCH of %s: this driver has no tensor maps", kernel->symbol);
}
#endif

void gpb_fake_mapped(const gpb_fake_kernel *kernel, int device, const gpb_mapped_args *x)
{
    const gpb_gemm_args *g = &x->gemm;
    const int64_t most = INT32_MAX / (gpb_type_is_complex(kernel->type) ? 2 : 1) - 256;
    const bool right = x->products == 1
                       || (x->products == 2 && g->m == g->n && g->batch == 1 && g->k <= most / 2
                           && (g->rsa == 1) == (g->csb == 1));
    if (g->m > most || g->n > most || g->k > most || g->batch > most || g->guard_a || !right)
        gpb_fake_die("BAD LAUNCH of %s: m=%lld n=%lld k=%lld batch=%lld, %d products", kernel->symbol,
                     (long long)g->m, (long long)g->n, (long long)g->k, (long long)g->batch, x->products);
    if (g->k && (g->alpha[0] != 0 || g->alpha[1] != 0)) check_maps(kernel, x);
    gpb_fake_gemm(kernel, device, g, x->products);
}
