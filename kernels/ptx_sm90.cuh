/* SPDX-License-Identifier: MIT */
/* One wrapper for each PTX instruction that only sm_90 (clusters, mbarriers, bulk copies) or sm_90a (wgmma,
   setmaxnreg) has. */
#ifndef GPB_PTX_SM90_CUH
#define GPB_PTX_SM90_CUH

#include "kernels/ptx.cuh"

/* ---- thread-block clusters */

static __device__ __forceinline__ unsigned gpb_cluster_rank()
{
    unsigned x;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(x));
    return x;
}

/* A barrier for all threads of all blocks of the cluster. It orders their shared-memory accesses. */
static __device__ __forceinline__ void gpb_cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;"
                 ::: "memory");
}

/* Stores to the shared memory of block `rank`, at the place that `at` has in this one. */
static __device__ __forceinline__ void gpb_cluster_store(unsigned at, unsigned rank, unsigned x)
{
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                 "st.shared::cluster.u32 [there], %2;\n}"
                 :: "r"(at), "r"(rank), "r"(x) : "memory");
}

/* ---- mbarriers, by their shared-memory address */

static __device__ __forceinline__ void gpb_mbarrier_init(unsigned barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

/* Makes initialised barriers visible to the cluster and to the copy engine. */
static __device__ __forceinline__ void gpb_mbarrier_publish()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives and announces `bytes` that copies will bring. */
static __device__ __forceinline__ void gpb_mbarrier_expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
}

/* Arrives at the barrier at the same address in block `rank` of the cluster. */
static __device__ __forceinline__ void gpb_mbarrier_arrive(unsigned barrier, unsigned rank)
{
    asm volatile("{\n.reg .b32 at;\nmapa.shared::cluster.u32 at, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [at];\n}" :: "r"(barrier), "r"(rank) : "memory");
}

/* Waits until the phase with that parity ends. */
static __device__ __forceinline__ void gpb_mbarrier_wait(unsigned barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra ready;\nbra again;\nready:\n}" :: "r"(barrier), "r"(parity) : "memory");
}

/* The same, and sees what other blocks of the cluster have stored. */
static __device__ __forceinline__ void gpb_mbarrier_wait_cluster(unsigned barrier, unsigned parity)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra ready;\nbra again;\nready:\n}" :: "r"(barrier), "r"(parity) : "memory");
#endif
}

/* Stores 16 bytes to the shared memory of block `rank`, at the place that `at` has in this one, and counts
   them at its barrier of the same place. */
static __device__ __forceinline__ void gpb_cluster_store_async(unsigned at, unsigned rank, ulonglong2 x,
                                                               unsigned barrier)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .b32 there, its;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                 "mapa.shared::cluster.u32 its, %2, %1;\n"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 "
                 "[there], {%3, %4}, [its];\n}"
                 :: "r"(at), "r"(rank), "r"(barrier), "l"(x.x), "l"(x.y) : "memory");
#endif
}

/* ---- bulk copies, global to shared, in units of 16 bytes: to this block, or to the same address in every
   block of `mask` */

static __device__ __forceinline__ void gpb_bulk_copy(unsigned to, const void *from, unsigned bytes,
                                                     unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

static __device__ __forceinline__ void gpb_bulk_multicast(unsigned to, const void *from, unsigned bytes,
                                                          unsigned barrier, uint16_t mask)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1], %2, [%3], %4;"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier), "h"(mask) : "memory");
}

/* ---- registers of a warpgroup: N for each thread from here on */

template <int N> static __device__ __forceinline__ void gpb_registers_fewer()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(N));
}
template <int N> static __device__ __forceinline__ void gpb_registers_more()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(N));
}

/* ---- wgmma */

static __device__ __forceinline__ void gpb_wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
static __device__ __forceinline__ void gpb_wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int LEFT> static __device__ __forceinline__ void gpb_wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(LEFT) : "memory");
}

/* Makes what this thread has written to shared memory visible to wgmma of threads that meet it at a later
   barrier. */
static __device__ __forceinline__ void gpb_wgmma_publish()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* The lower half of the descriptor of a K-major operand, which is its address in shared memory. 16 bytes
   further on are 1 more, and the upper half is constant, so only 32 bits of a descriptor are computed. The
   upper half says: rows of 64 (or 128) bytes in a swizzle of the same size, eight rows to a group. `at` is a
   multiple of such a group, plus 32 bytes for each 16 k (8 k of TF32). PTX ISA, "Matrix descriptor
   format". */
static __device__ __forceinline__ unsigned gpb_wgmma_operand(unsigned at)
{
    return (at >> 4 & 0x3fff) | 1u << 16;
}
#define GPB_WGMMA_UPPER_64  "0x80000020"        /* 2 << 30 | 512 >> 4 */
#define GPB_WGMMA_UPPER_128 "0x40000040"        /* 1 << 30 | 1024 >> 4 */

/* The names of registers 0 to 31 of an instruction, those up to 63, and the variables they are bound to. */
#define GPB_LIST_32                                                                                        \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
    "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GPB_LIST_64                                                                                  \
    GPB_LIST_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GPB_BOUND_4(d, x)  "+f"(d[x]), "+f"(d[x + 1]), "+f"(d[x + 2]), "+f"(d[x + 3])
#define GPB_BOUND_16(d, x) \
    GPB_BOUND_4(d, x), GPB_BOUND_4(d, x + 4), GPB_BOUND_4(d, x + 8), GPB_BOUND_4(d, x + 12)
#define GPB_BOUND_32(d, x) GPB_BOUND_16(d, x), GPB_BOUND_16(d, x + 16)

/* d (+)= A[64 x 16] B[16 x N], FP16 or BF16 to FP32, by a warpgroup. Thread t holds rows t / 32 * 16 + t % 32
   / 4 (d[4x], d[4x + 1]) and 8 below (d[4x + 2], d[4x + 3]), columns 8x + t % 4 * 2 and the next. add == 0: d
   is overwritten. */
template <int N> struct gpb_wgmma;
#define GPB_WGMMA_64(name, type)                                                                     \
    static __device__ __forceinline__ void name(float (&d)[32], unsigned a, unsigned b, int add)     \
    {                                                                                                \
        asm volatile("{\n.reg .pred p;\n.reg .b32 upper;\n.reg .b64 a, b;\nsetp.ne.b32 p, %34, 0;\n" \
                     "mov.b32 upper, " GPB_WGMMA_UPPER_64                                            \
                     ";\nmov.b64 a, {%32, upper};\nmov.b64 b, {%33, upper};\n"                       \
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                     \
                     " {" GPB_LIST_32 "}, a, b, p, 1, 1, 0, 0;\n}"                                   \
                     : GPB_BOUND_32(d, 0) : "r"(a), "r"(b), "r"(add));                               \
    }
#define GPB_WGMMA_128(name, type)                                                                    \
    static __device__ __forceinline__ void name(float (&d)[64], unsigned a, unsigned b, int add)     \
    {                                                                                                \
        asm volatile("{\n.reg .pred p;\n.reg .b32 upper;\n.reg .b64 a, b;\nsetp.ne.b32 p, %66, 0;\n" \
                     "mov.b32 upper, " GPB_WGMMA_UPPER_64                                            \
                     ";\nmov.b64 a, {%64, upper};\nmov.b64 b, {%65, upper};\n"                       \
                     "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type                    \
                     " {" GPB_LIST_64 "}, a, b, p, 1, 1, 0, 0;\n}"                                   \
                     : GPB_BOUND_32(d, 0), GPB_BOUND_32(d, 32) : "r"(a), "r"(b), "r"(add));          \
    }
template <> struct gpb_wgmma<64> {
    GPB_WGMMA_64(fp16, "f16")
    GPB_WGMMA_64(bf16, "bf16")
    /* TF32, 8 k. The lower 13 bits of a number are ignored. A comes from registers: thread t holds rows t /
       32 * 16 + t % 32 / 4 (a[0], a[2]) and 8 below (a[1], a[3]), at k t % 4 and k t % 4 + 4. */
    static __device__ __forceinline__ void tf32(float (&d)[32], const unsigned (&a)[4], unsigned b, int add)
    {
        asm volatile("{\n.reg .pred p;\n.reg .b32 upper;\n.reg .b64 b;\nsetp.ne.b32 p, %37, 0;\n"
                     "mov.b32 upper, " GPB_WGMMA_UPPER_128
                     ";\nmov.b64 b, {%36, upper};\nwgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32"
                     " {" GPB_LIST_32 "}, {%32, %33, %34, %35}, b, p, 1, 1;\n}"
                     : GPB_BOUND_32(d, 0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add));
    }
};
template <> struct gpb_wgmma<128> { GPB_WGMMA_128(fp16, "f16") GPB_WGMMA_128(bf16, "bf16") };

#define GPB_LIST_128                                                                                     \
    GPB_LIST_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, " \
    "%81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, "    \
    "%100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, "   \
    "%116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define GPB_INT_4(d, x)  "+r"(d[x]), "+r"(d[x + 1]), "+r"(d[x + 2]), "+r"(d[x + 3])
#define GPB_INT_16(d, x) GPB_INT_4(d, x), GPB_INT_4(d, x + 4), GPB_INT_4(d, x + 8), GPB_INT_4(d, x + 12)
#define GPB_INT_64(d, x) GPB_INT_16(d, x), GPB_INT_16(d, x + 16), GPB_INT_16(d, x + 32), GPB_INT_16(d, x + 48)

/* d += A[64 x 32] B[32 x 256], signed bytes to INT32, with operands in rows of 128 bytes; else as above. */
static __device__ __forceinline__ void gpb_wgmma_s8(int (&d)[128], unsigned a, unsigned b)
{
    asm volatile("{\n.reg .b32 upper;\n.reg .b64 a, b;\nmov.b32 upper, " GPB_WGMMA_UPPER_128
                 ";\nmov.b64 a, {%128, upper};\nmov.b64 b, {%129, upper};\n"
                 "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {" GPB_LIST_128 "}, a, b, 1;\n}"
                 : GPB_INT_64(d, 0), GPB_INT_64(d, 64) : "r"(a), "r"(b));
}

#endif
