/* SPDX-License-Identifier: MIT */
/* The kernels of solve.def for the type of the including image. */
#ifndef GPB_SOLVE_INSTANCE_CUH
#define GPB_SOLVE_INSTANCE_CUH

#include "kernels/names.h"
#include "kernels/solve/cholesky.cuh"
#include "kernels/solve/digest.cuh"
#include "kernels/solve/identity.cuh"
#include "kernels/solve/mirror.cuh"
#include "kernels/solve/multiply.cuh"
#include "kernels/solve/panel.cuh"
#include "kernels/solve/refine.cuh"
#include "kernels/solve/substitute.cuh"
#include "kernels/solve/swap.cuh"
#include "kernels/solve/systems.cuh"
#include "kernels/solve/trapezoid.cuh"
#include "kernels/solve/trsv.cuh"

template <class T> static __device__ __forceinline__ void gpb_panel_cluster(const gpb_panel_args &g)
{
    gpb_panel<T, gpb_cluster_exchange>(g);
}
template <class T> static __device__ __forceinline__ void gpb_panel_grid(const gpb_panel_args &g)
{
    gpb_panel<T, gpb_grid_exchange>(g);
}

/* What solve.def says of a kernel's beginning. */
#define GPB_BEGINS_follows   ((void)0)
#define GPB_BEGINS_waits     gpb_grid_wait()
#define GPB_BEGINS_rehearses ((void)0)

/* The type's own: with the most of any type ptxas would give tiles half of their registers. */
#undef GPB_SUBSTITUTE_THREADS
#define GPB_SOLVE_REAL sizeof(gpb_real<GPB_TYPE_NAME(GPB_SOLVE_TYPE)>)
#define GPB_SUBSTITUTE_THREADS \
    (GPB_SUBSTITUTE_THREADS_OF(GPB_SOLVE_REAL, GPB_SUBSTITUTE_GROUPS) \
     + GPB_SUBSTITUTE_HELPERS(GPB_SOLVE_REAL))

/* Define GPB_SOLVE_TYPE as the type's letter. The next launch may begin beside this one, because it waits
   before it reads anything that this one, or one before it, may still write. Of few threads at least two
   blocks are to fit on an SM: without that ptxas spilled sums of gpb_dmultiply to make it three. */
#define SOLVE(name, arguments, threads, begins)                                                   \
    extern "C" __global__ void __launch_bounds__(threads, (threads) <= 128 ? 2 : 1)               \
    GPB_SOLVE_SYMBOL(GPB_SOLVE_TYPE, name)(const __grid_constant__ gpb_##arguments##_args g)      \
    {                                                                                             \
        gpb_grid_trigger();                                                                       \
        GPB_BEGINS_##begins;                                                                      \
        gpb_##name<GPB_TYPE_NAME(GPB_SOLVE_TYPE)>(g);                                             \
    }
#include "kernels/solve.def"
#undef SOLVE

#endif
