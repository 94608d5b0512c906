/* SPDX-License-Identifier: MIT */
/* The element types of BLAS on the device, and the arithmetic on them that all types share (tile.cuh,
   tile_load.cuh, epilogue.cuh, pack.cuh, reduce.cuh). Each product and each sum is rounded once and never
   contracted into an FMA. */
#ifndef GPB_ELEMENT_CUH
#define GPB_ELEMENT_CUH

#include <stdint.h>

#include "kernels/ptx.cuh"

/* By BLAS letter. A complex number has its real part in x and its imaginary part in y. */
using gpb_type_s = float;
using gpb_type_d = double;
using gpb_type_c = float2;
using gpb_type_z = double2;
#define GPB_TYPE_NAME_(p) gpb_type_##p
#define GPB_TYPE_NAME(p) GPB_TYPE_NAME_(p)

template <class T> constexpr bool GPB_IS_COMPLEX = false;
template <> constexpr bool GPB_IS_COMPLEX<float2> = true;
template <> constexpr bool GPB_IS_COMPLEX<double2> = true;
template <class T> constexpr int GPB_REALS = GPB_IS_COMPLEX<T> ? 2 : 1;

/* x, or -x if sign is 2^31. */
static __device__ __forceinline__ double gpb_with_sign(double x, unsigned sign)
{
    return __hiloint2double(__double2hiint(x) ^ (int)sign, __double2loint(x));
}

/* A real number of the type, and what kernels of general/ sum up in: d and z as real numbers. */
template <class T> struct gpb_real_of { using type = T; using sum = T; };
template <> struct gpb_real_of<float2> { using type = float; using sum = float2; };
template <> struct gpb_real_of<double2> { using type = double; using sum = double; };
template <class T> using gpb_real = typename gpb_real_of<T>::type;
template <class T> using gpb_sum_of = typename gpb_real_of<T>::sum;

/* One element of memory that others own. A complex number may lie at any multiple of a real number's size,
   so it is read and written in two. */
static __device__ __forceinline__ float gpb_element_at(const float *x) { return *x; }
static __device__ __forceinline__ double gpb_element_at(const double *x) { return *x; }
static __device__ __forceinline__ float2 gpb_element_at(const float2 *x)
{
    return make_float2(((const float *)x)[0], ((const float *)x)[1]);
}
static __device__ __forceinline__ double2 gpb_element_at(const double2 *x)
{
    return make_double2(((const double *)x)[0], ((const double *)x)[1]);
}
static __device__ __forceinline__ void gpb_element_put(float *to, float x) { *to = x; }
static __device__ __forceinline__ void gpb_element_put(double *to, double x) { *to = x; }
static __device__ __forceinline__ void gpb_element_put(float2 *to, float2 x)
{
    ((float *)to)[0] = x.x;
    ((float *)to)[1] = x.y;
}
static __device__ __forceinline__ void gpb_element_put(double2 *to, double2 x)
{
    ((double *)to)[0] = x.x;
    ((double *)to)[1] = x.y;
}

/* The same of memory that nobody writes, by the read-only path; and of what is read once, past other data of
   the caches. */
static __device__ __forceinline__ float gpb_element_ldg(const float *x) { return __ldg(x); }
static __device__ __forceinline__ double gpb_element_ldg(const double *x) { return __ldg(x); }
static __device__ __forceinline__ float2 gpb_element_ldg(const float2 *x)
{
    return make_float2(__ldg((const float *)x), __ldg((const float *)x + 1));
}
static __device__ __forceinline__ double2 gpb_element_ldg(const double2 *x)
{
    return make_double2(__ldg((const double *)x), __ldg((const double *)x + 1));
}
static __device__ __forceinline__ float gpb_element_ldcs(const float *x) { return __ldcs(x); }
static __device__ __forceinline__ double gpb_element_ldcs(const double *x) { return __ldcs(x); }
static __device__ __forceinline__ float2 gpb_element_ldcs(const float2 *x)
{
    return make_float2(__ldcs((const float *)x), __ldcs((const float *)x + 1));
}
static __device__ __forceinline__ double2 gpb_element_ldcs(const double2 *x)
{
    return make_double2(__ldcs((const double *)x), __ldcs((const double *)x + 1));
}

/* The conjugate of x, or x. Of sums the second form: 0 - im and not -im, so that a sum of 0 stays +0. */
template <class T> static __device__ __forceinline__ T gpb_conj_if(bool conj, T x)
{
    if constexpr (GPB_IS_COMPLEX<T>) x.y = conj ? -x.y : x.y;
    return x;
}
template <class T> static __device__ __forceinline__ T gpb_flip_if(bool flip, T x)
{
    if constexpr (GPB_IS_COMPLEX<T>) x.y = flip ? 0 - x.y : x.y;
    return x;
}

/* x without its imaginary part. */
static __device__ __forceinline__ float gpb_only_real(float x) { return x; }
static __device__ __forceinline__ double gpb_only_real(double x) { return x; }
static __device__ __forceinline__ float2 gpb_only_real(float2 x) { return make_float2(x.x, 0); }
static __device__ __forceinline__ double2 gpb_only_real(double2 x) { return make_double2(x.x, 0); }

static __device__ __forceinline__ float gpb_real_part(float x) { return x; }
static __device__ __forceinline__ double gpb_real_part(double x) { return x; }
static __device__ __forceinline__ float gpb_real_part(float2 x) { return x.x; }
static __device__ __forceinline__ double gpb_real_part(double2 x) { return x.x; }

/* A complex number times a real one, which real numbers are multiplied by as always. */
static __device__ __forceinline__ float gpb_times_real(double x, float y) { return __fmul_rn((float)x, y); }
static __device__ __forceinline__ double gpb_times_real(double x, double y) { return __dmul_rn(x, y); }
static __device__ __forceinline__ float2 gpb_times_real(double x, float2 y)
{
    return make_float2(gpb_times_real(x, y.x), gpb_times_real(x, y.y));
}
static __device__ __forceinline__ double2 gpb_times_real(double x, double2 y)
{
    return make_double2(gpb_times_real(x, y.x), gpb_times_real(x, y.y));
}

/* What one load or store moves: 16 bytes of neighbouring elements. */
template <class T> struct gpb_vector_of;
template <> struct gpb_vector_of<float> { using type = float4; };
template <> struct gpb_vector_of<double> { using type = double2; };
template <> struct gpb_vector_of<float2> { using type = float4; };
template <> struct gpb_vector_of<double2> { using type = double2; };
template <class T> using gpb_vector = typename gpb_vector_of<T>::type;
template <class T> constexpr int GPB_VECTOR = 16 / sizeof(T);

static __device__ __forceinline__ float4 gpb_vector_from(const float *x)
{
    return make_float4(x[0], x[1], x[2], x[3]);
}
static __device__ __forceinline__ double2 gpb_vector_from(const double *x)
{
    return make_double2(x[0], x[1]);
}
static __device__ __forceinline__ float4 gpb_vector_from(const float2 *x)
{
    return make_float4(x[0].x, x[0].y, x[1].x, x[1].y);
}
static __device__ __forceinline__ double2 gpb_vector_from(const double2 *x) { return x[0]; }

static __device__ __forceinline__ void gpb_vector_to(float (&x)[4], float4 v)
{
    x[0] = v.x;
    x[1] = v.y;
    x[2] = v.z;
    x[3] = v.w;
}
static __device__ __forceinline__ void gpb_vector_to(double (&x)[2], double2 v) { x[0] = v.x, x[1] = v.y; }
static __device__ __forceinline__ void gpb_vector_to(float2 (&x)[2], float4 v)
{
    x[0] = make_float2(v.x, v.y);
    x[1] = make_float2(v.z, v.w);
}
static __device__ __forceinline__ void gpb_vector_to(double2 (&x)[1], double2 v) { x[0] = v; }

/* The first `count` elements of the vector at x, at least one. The others are not read and become 0. */
static __device__ __forceinline__ float4 gpb_vector_within(const float *x, int count)
{
    return make_float4(x[0], count > 1 ? x[1] : 0, count > 2 ? x[2] : 0, count > 3 ? x[3] : 0);
}
static __device__ __forceinline__ double2 gpb_vector_within(const double *x, int count)
{
    return make_double2(x[0], count > 1 ? x[1] : 0);
}
static __device__ __forceinline__ float4 gpb_vector_within(const float2 *x, int count)
{
    const float2 first = gpb_element_at(x), second = count > 1 ? gpb_element_at(x + 1) : float2();
    return make_float4(first.x, first.y, second.x, second.y);
}
static __device__ __forceinline__ double2 gpb_vector_within(const double2 *x, int)
{
    return gpb_element_at(x);
}

static __device__ __forceinline__ bool gpb_is_zero(float x) { return x == 0; }
static __device__ __forceinline__ bool gpb_is_zero(double x) { return x == 0; }
static __device__ __forceinline__ bool gpb_is_zero(float2 x) { return x.x == 0 && x.y == 0; }
static __device__ __forceinline__ bool gpb_is_zero(double2 x) { return x.x == 0 && x.y == 0; }

static __device__ __forceinline__ float gpb_sum(float x, float y) { return __fadd_rn(x, y); }
static __device__ __forceinline__ double gpb_sum(double x, double y) { return __dadd_rn(x, y); }
static __device__ __forceinline__ float2 gpb_sum(float2 x, float2 y)
{
    return make_float2(gpb_sum(x.x, y.x), gpb_sum(x.y, y.y));
}
static __device__ __forceinline__ double2 gpb_sum(double2 x, double2 y)
{
    return make_double2(gpb_sum(x.x, y.x), gpb_sum(x.y, y.y));
}

/* total += sum, sum = 0: where a chain of FMAs ends and the next one begins. */
template <class T, int N, int M>
static __device__ __forceinline__ void gpb_bank(T (&total)[N][M], T (&sum)[N][M])
{
#pragma unroll
    for (int x = 0; x < N; x++)
#pragma unroll
        for (int y = 0; y < M; y++) {
            total[x][y] = gpb_sum(total[x][y], sum[x][y]);
            sum[x][y] = T();
        }
}

static __device__ __forceinline__ float gpb_product(float x, float y) { return __fmul_rn(x, y); }
static __device__ __forceinline__ double gpb_product(double x, double y) { return __dmul_rn(x, y); }
static __device__ __forceinline__ float2 gpb_product(float2 x, float2 y)
{
    return make_float2(gpb_sum(gpb_product(x.x, y.x), -gpb_product(x.y, y.y)),
                       gpb_sum(gpb_product(x.x, y.y), gpb_product(x.y, y.x)));
}
static __device__ __forceinline__ double2 gpb_product(double2 x, double2 y)
{
    return make_double2(gpb_sum(gpb_product(x.x, y.x), -gpb_product(x.y, y.y)),
                        gpb_sum(gpb_product(x.x, y.y), gpb_product(x.y, y.x)));
}

/* beta C. A beta of 1 multiplies nothing, as in the reference: 1 times an infinity has a NaN beside it in
   complex arithmetic. */
template <class T> static __device__ __forceinline__ T gpb_scaled(T beta, T old)
{
    if constexpr (GPB_IS_COMPLEX<T>) return beta.x == 1 && beta.y == 0 ? old : gpb_product(beta, old);
    else return gpb_product(beta, old);
}

/* acc += x y. Each part of a complex sum is one chain of FMAs. */
static __device__ __forceinline__ void gpb_fma(float &acc, float x, float y) { acc = __fmaf_rn(x, y, acc); }
static __device__ __forceinline__ void gpb_fma(double &acc, double x, double y) { acc = __fma_rn(x, y, acc); }
template <class T> static __device__ __forceinline__ void gpb_fma(T &acc, T x, T y)
{
    gpb_fma(acc.x, x.x, y.x);
    gpb_fma(acc.y, x.x, y.y);
    gpb_fma(acc.x, -x.y, y.y);
    gpb_fma(acc.y, x.y, y.x);
}

/* x of the lane whose number differs in that bit. */
static __device__ __forceinline__ float gpb_shuffle_xor(float x, int bit)
{
    return __shfl_xor_sync(~0u, x, bit);
}
static __device__ __forceinline__ double gpb_shuffle_xor(double x, int bit)
{
    return __shfl_xor_sync(~0u, x, bit);
}
template <class T> static __device__ __forceinline__ T gpb_shuffle_xor(T x, int bit)
{
    return { gpb_shuffle_xor(x.x, bit), gpb_shuffle_xor(x.y, bit) };
}

/* An element from its real and imaginary part in the arguments: alpha or beta. */
template <class T> struct gpb_scalar {
    static __device__ __forceinline__ T of(const double (&x)[2]) { return (T)x[0]; }
    /* The same, but read at this place instead of being kept in registers from earlier. */
    static __device__ __forceinline__ T fresh(const double (&x)[2]) { return (T)gpb_fresh(x[0]); }
    static __device__ __forceinline__ bool is_zero(const double (&x)[2]) { return gpb_fresh(x[0]) == 0; }
};
template <class T> struct gpb_scalar_complex {
    static __device__ __forceinline__ T of(const double (&x)[2])
    {
        return { (decltype(T::x))x[0], (decltype(T::x))x[1] };
    }
    static __device__ __forceinline__ T fresh(const double (&x)[2])
    {
        return { (decltype(T::x))gpb_fresh(x[0]), (decltype(T::x))gpb_fresh(x[1]) };
    }
    static __device__ __forceinline__ bool is_zero(const double (&x)[2])
    {
        return gpb_fresh(x[0]) == 0 && gpb_fresh(x[1]) == 0;
    }
};
template <> struct gpb_scalar<float2> : gpb_scalar_complex<float2> {};
template <> struct gpb_scalar<double2> : gpb_scalar_complex<double2> {};

#endif
