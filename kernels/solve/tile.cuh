/* SPDX-License-Identifier: MIT */
/* A warp's tile of sums by FP64 tensor cores, as the solvers' kernels have them. */
#ifndef GPB_SOLVE_TILE_CUH
#define GPB_SOLVE_TILE_CUH

#include "kernels/fragments.cuh"

/* The fragments, and a lane's sums: number (e, s) is at row ROWS g + e and column 2t + s of a tile. get_rows
   and put_rows: its rows of one column, which lie side by side. LOADED: of an operand's four numbers, before
   complete_a. conj_b: the second operand is conjugated. */
template <class T> struct gpb_tile;
template <> struct gpb_tile<double> : gpb_real_fragments {
    static constexpr int ROWS = 2, LOADED = 4;
    static __device__ __forceinline__ double get(const double (&x)[4], int e, int s) { return x[2 * e + s]; }
    static __device__ __forceinline__ void set(double (&x)[4], int e, int s, double y) { x[2 * e + s] = y; }
    static __device__ __forceinline__ void operand(double (&to)[2], const double (&of)[2], int)
    {
        to[0] = of[0];
        to[1] = of[1];
    }
    static __device__ __forceinline__ void get_rows(double (&x)[4], int s, const double *from)
    {
        const double2 both = *(const double2 *)from;
        x[s] = both.x;
        x[2 + s] = both.y;
    }
    static __device__ __forceinline__ void put_rows(double *to, const double (&x)[4], int s)
    {
        *(double2 *)to = make_double2(x[s], x[2 + s]);
    }
    static __device__ __forceinline__ void row_alone(double (&a)[4], const double (&b)[2])
    {
        a[0] = -b[0];
        a[2] = -b[1];
        a[1] = a[3] = 0;
    }
    __device__ __forceinline__ gpb_tile(bool = false) : gpb_real_fragments(false, false) {}
};
template <> struct gpb_tile<double2> : gpb_complex_fragments {
    static constexpr int ROWS = 1, LOADED = 2;
    static __device__ __forceinline__ double2 get(const double (&x)[4], int, int s)
    {
        return make_double2(x[s], x[2 + s]);
    }
    static __device__ __forceinline__ void set(double (&x)[4], int, int s, double2 y)
    {
        x[s] = y.x;
        x[2 + s] = y.y;
    }
    static __device__ __forceinline__ void operand(double (&to)[2], const double2 (&of)[2], int step)
    {
        to[0] = of[step].x;
        to[1] = of[step].y;
    }
    static __device__ __forceinline__ void get_rows(double (&x)[4], int s, const double2 *from)
    {
        set(x, 0, s, *from);
    }
    static __device__ __forceinline__ void put_rows(double2 *to, const double (&x)[4], int s)
    {
        *to = get(x, 0, s);
    }
    static __device__ __forceinline__ void row_alone(double (&a)[4], const double (&b)[2])
    {
        a[0] = -b[0];
        a[1] = -b[1];
    }
    __device__ __forceinline__ gpb_tile(bool conj_b = false) : gpb_complex_fragments(false, conj_b) {}
};

#endif
