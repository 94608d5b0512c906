/* SPDX-License-Identifier: MIT */
/* One wrapper for each PTX instruction of the mma.sync kernel, for sm_80. Shared memory is given by its
   address. */
#ifndef GPB_SLICED_PTX_MMA_CUH
#define GPB_SLICED_PTX_MMA_CUH

/* Copies 16 bytes from global to shared memory, past the level-1 cache. Both addresses are multiples of
   16. */
static __device__ __forceinline__ void gpb_cp_async16(unsigned to, const char *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(from) : "memory");
}

/* Loads four 8 x 8 matrices of FP16. Lane t gives the address of row t % 8 of matrix t / 8, and gets elements
   2 (t % 4) and the next of row t / 4 of each. */
static __device__ __forceinline__ void gpb_ldmatrix4(unsigned (&x)[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
}

/* d = c + A[16 x 16] B[16 x 8], FP16 to FP32. Of d lane t holds rows t / 4 (d[0], d[1]) and 8 below (d[2],
   d[3]), columns t % 4 * 2 and the next. */
static __device__ __forceinline__ void gpb_mma_fp16(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                                    unsigned b1, const float (&c)[4])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1),
                   "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

#endif
