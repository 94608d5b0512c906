/* SPDX-License-Identifier: MIT */
/* The FP64 tensor cores. */
#ifndef GPB_PTX_DMMA_CUH
#define GPB_PTX_DMMA_CUH

/* c += a b on the FP64 tensor cores, 16 x 8 x 8. With lane = 4 g + t: a[0] = A(g,t), a[1] = A(g+8,t), a[2] =
   A(g,t+4), a[3] = A(g+8,t+4); b[0] = B(t,g), b[1] = B(t+4,g); c[0] = C(g,2t), c[1] = C(g,2t+1), c[2] =
   C(g+8,2t), c[3] = C(g+8,2t+1). Each sum is a chain of FMAs. Before sm_90 there is only 8 x 8 x 4, which
   takes sm_90 as long as 16 x 8 x 4. */
static __device__ __forceinline__ void gpb_dmma(double *c, const double *a, const double *b)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                 "{%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#elif __CUDA_ARCH__ >= 800
#pragma unroll
    for (int x = 0; x < 4; x++)                        /* row g, then g + 8; k from t, then from t + 4 */
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(c[x % 2 * 2]), "+d"(c[x % 2 * 2 + 1]) : "d"(a[x]), "d"(b[x / 2]));
#endif
}

#endif
