/* SPDX-License-Identifier: MIT */
/* How a block's threads share its tile, and what each does with its part of one q. */
#ifndef GPB_FFMA_THREAD_LAYOUT_CUH
#define GPB_FFMA_THREAD_LAYOUT_CUH

#include "kernels/element.cuh"

/* A thread has TM x TN results in groups of 4 x 4. A warp has 8 x 4 threads, so its tile is one rectangle and
   its 32 threads read only WM + WN floats for each q. 8 x 16 results if the tile has so many, else 8 x 8,
   because with fewer the reads of shared memory would be the limit. If threads are left over, the block has
   GROUPS copies of the tile's threads, and each takes its share of the q of a k tile. */
template <int BM, int BN, int THREADS> struct gpb_thread_layout {
    static constexpr int TM = 8, TN = BM * BN / THREADS >= 128 ? 16 : 8, STEP_M = 32, STEP_N = 16;
    static constexpr int WM = STEP_M * TM / 4, WN = STEP_N * TN / 4, MEMBERS = BM * BN / (TM * TN),
                         GROUPS = THREADS / MEMBERS;
    static_assert(BM % WM == 0 && BN % WN == 0 && MEMBERS * GROUPS == THREADS, "each warp has its part");
    static __device__ __forceinline__ int member() { return gpb_thread() % MEMBERS; }
    static __device__ __forceinline__ int group() { return GROUPS == 1 ? 0 : gpb_thread() / MEMBERS; }
    static __device__ __forceinline__ int warp_i() { return member() / 32 % (BM / WM) * WM; }
    static __device__ __forceinline__ int warp_j() { return member() / 32 / (BM / WM) * WN; }
    static __device__ __forceinline__ int lane_i() { return gpb_thread() / 2 % 8 * 4; }
    static __device__ __forceinline__ int lane_j()
    {
        const int x = gpb_thread();
        return (x % 2 + x % 32 / 16 * 2) * 4;
    }
    static __device__ __forceinline__ int i() { return warp_i() + lane_i(); }
    static __device__ __forceinline__ int j() { return warp_j() + lane_j(); }
};

/* to[4x .. 4x+3] = from[x * STEP ..], for each x. */
template <int COUNT, int STEP>
static __device__ __forceinline__ void gpb_read4(float (&to)[4 * COUNT], const float *from)
{
#pragma unroll
    for (int x = 0; x < COUNT; x++) {
        const float4 v = *(const float4 *)(from + x * STEP);
        to[4 * x] = v.x;
        to[4 * x + 1] = v.y;
        to[4 * x + 2] = v.z;
        to[4 * x + 3] = v.w;
    }
}

/* acc += a b', back and forth: the next column begins with the element of `a` that is still in the operand
   cache. Then hardly an FMA reads three registers of which two lie in one bank (8 % faster than column by
   column). */
template <int TM, int TN>
static __device__ __forceinline__ void gpb_outer_snake(float (&acc)[TN][TM], const float (&a)[TM],
                                                       const float (&b)[TN])
{
#pragma unroll
    for (int s = 0; s < TN; s++)
#pragma unroll
        for (int x = 0; x < TM; x++) {
            const int r = s % 2 ? TM - 1 - x : x;
            acc[s][r] = __fmaf_rn(a[r], b[s], acc[s][r]);
        }
}

/* Sums of MEMBERS threads in shared memory. Parts of complex numbers lie apart: see gpb_gather_groups. */
template <class R, int MEMBERS> struct gpb_apart {
    R *at;
    __device__ __forceinline__ gpb_apart(R *room) : at(room + threadIdx.x % MEMBERS) {}
    __device__ __forceinline__ void put(int x, R value) const { at[x * MEMBERS] = value; }
    __device__ __forceinline__ R get(int x) const { return at[x * MEMBERS]; }
};
template <int MEMBERS> struct gpb_apart<float2, MEMBERS> {
    float *at;
    __device__ __forceinline__ gpb_apart(float2 *room) : at((float *)room + threadIdx.x % MEMBERS) {}
    __device__ __forceinline__ void put(int x, float2 value) const
    {
        at[2 * x * MEMBERS] = value.x;
        at[(2 * x + 1) * MEMBERS] = value.y;
    }
    __device__ __forceinline__ float2 get(int x) const
    {
        return make_float2(at[2 * x * MEMBERS], at[(2 * x + 1) * MEMBERS]);
    }
};

/* Adds the groups' sums into the first group's in a fixed order, halves onto halves. `room` holds GROUPS/2
   tiles. One float at a time, because with stores of two or four the compiler would keep sums in twos or
   fours all along, in the banks that their factors lie in. */
template <int GROUPS, int MEMBERS, class R, int TM, int TN>
static __device__ __forceinline__ void gpb_gather_groups(R (&acc)[TN][TM], R *room)
{
    const int group = threadIdx.x / MEMBERS;
#pragma unroll 1
    for (int half = GROUPS / 2; half; half /= 2) {
        const gpb_apart<R, MEMBERS> place(room + group % half * (TM * TN * MEMBERS));
        __syncthreads();
        if (group >= half && group < 2 * half)
#pragma unroll
            for (int x = 0; x < TM * TN; x++)
                place.put(x, acc[x / TM][x % TM]);
        __syncthreads();
        if (group < half)
#pragma unroll
            for (int x = 0; x < TM * TN; x++)
                acc[x / TM][x % TM] = gpb_sum(acc[x / TM][x % TM], place.get(x));
    }
}

#endif
