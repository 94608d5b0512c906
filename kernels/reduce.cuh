/* SPDX-License-Identifier: MIT */
/* gpb_sreduce adds up the parts of a product whose k was cut, then applies alpha and beta. Each part is one
   dense array, so outputs are walked as one array. With few parts a thread computes one output. With many,
   eight groups of threads each take a range of the parts, and their sums are added in pairs. The order
   depends only on the number of parts, so the bits are always the same. */
#ifndef GPB_REDUCE_CUH
#define GPB_REDUCE_CUH

#include "kernels/epilogue.cuh"

constexpr int GPB_REDUCE_GROUPS = GPB_REDUCE_THREADS / GPB_REDUCE_FEW;
static_assert(GPB_REDUCE_GROUPS == 8, "added up by pairs");

/* The sum of parts `from` to `to` of one output, eight at a time and in pairs. Each part is the sum of many
   products, so a chain of 16 additions would lose as much accuracy as the parts themselves did. All eight
   loads are in flight at once; with four running sums the compiler kept only two or three. */
template <class T>
static __device__ __forceinline__ T gpb_sum_parts(const T *part, int64_t size, unsigned from, unsigned to,
                                                  bool there)
{
    T sum = T();
    for (part += from * size; from < to; from += 8, part += 8 * size) {
        T x[8];
#pragma unroll
        for (unsigned y = 0; y < 8; y++) x[y] = there && from + y < to ? __ldcg(part + y * size) : T();
        sum = gpb_sum(sum, gpb_sum(gpb_sum(gpb_sum(x[0], x[4]), gpb_sum(x[1], x[5])),
                                   gpb_sum(gpb_sum(x[2], x[6]), gpb_sum(x[3], x[7]))));
    }
    return sum;
}

template <class T> static __device__ __forceinline__ void gpb_reduce(const gpb_reduce_args &g)
{
    __shared__ T sums[GPB_REDUCE_GROUPS][GPB_REDUCE_FEW];
    const bool many = GPB_REDUCE_MANY(g.splits);
    const int group = many ? threadIdx.x / GPB_REDUCE_FEW : 0,
              x = many ? threadIdx.x % GPB_REDUCE_FEW : threadIdx.x;
    const unsigned splits = (unsigned)g.splits, groups = many ? GPB_REDUCE_GROUPS : 1;
    const int64_t size = g.m * g.n, at = (int64_t)blockIdx.x * GPB_REDUCE_OUTPUTS(g.splits) + x;
    gpb_grid_trigger();
    gpb_grid_wait();
    const int64_t i = at % g.m, j = at / g.m;
    for (int64_t l = blockIdx.z; l < g.batch; l += gridDim.z) {
        T *c = g.items ? (T *)g.items[l].c : (T *)g.c + l * g.stride_c;
        const gpb_target<T> to = {
            c, g.m, g.n, g.ldc, gpb_scalar<T>::of(g.alpha), gpb_scalar<T>::of(g.beta), false,
            false, g.uplo, g.hermitian
        };
        const bool there = at < size && to.has(i, j);
        const T *part = (const T *)g.partials + l * g.splits * size + at;
        T sum = gpb_sum_parts(part, size, splits * group / groups, splits * (group + 1) / groups, there);
        if (many) {
            sums[group][x] = sum;
            __syncthreads();
            sum = gpb_sum(gpb_sum(gpb_sum(sums[0][x], sums[1][x]), gpb_sum(sums[2][x], sums[3][x])),
                          gpb_sum(gpb_sum(sums[4][x], sums[5][x]), gpb_sum(sums[6][x], sums[7][x])));
            __syncthreads();
        }
        if (there && group == 0) gpb_store(to, i, j, sum);
    }
}

/* gpb_<p>reduce. */
#define GPB_REDUCE_KERNEL(p)                                         \
    extern "C" __global__ void __launch_bounds__(GPB_REDUCE_THREADS) \
    GPB_REDUCE_SYMBOL(p)(const __grid_constant__ gpb_reduce_args g) { gpb_reduce<gpb_type_##p>(g); }

#endif
