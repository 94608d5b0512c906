/* SPDX-License-Identifier: MIT */
/* Arithmetic of the solvers' kernels in four types: what element.cuh has not, because products need no
   division. */
#ifndef GPB_SOLVE_SCALAR_CUH
#define GPB_SOLVE_SCALAR_CUH

#include "kernels/element.cuh"

static __device__ __forceinline__ float gpb_negated(float x) { return -x; }
static __device__ __forceinline__ double gpb_negated(double x) { return -x; }
static __device__ __forceinline__ float2 gpb_negated(float2 x) { return make_float2(-x.x, -x.y); }
static __device__ __forceinline__ double2 gpb_negated(double2 x) { return make_double2(-x.x, -x.y); }

/* z - x y, by FMAs. */
static __device__ __forceinline__ float gpb_minus_product(float z, float x, float y)
{
    return __fmaf_rn(-x, y, z);
}
static __device__ __forceinline__ double gpb_minus_product(double z, double x, double y)
{
    return __fma_rn(-x, y, z);
}
static __device__ __forceinline__ float2 gpb_minus_product(float2 z, float2 x, float2 y)
{
    return make_float2(__fmaf_rn(x.y, y.y, __fmaf_rn(-x.x, y.x, z.x)),
                       __fmaf_rn(-x.y, y.x, __fmaf_rn(-x.x, y.y, z.y)));
}
static __device__ __forceinline__ double2 gpb_minus_product(double2 z, double2 x, double2 y)
{
    return make_double2(__fma_rn(x.y, y.y, __fma_rn(-x.x, y.x, z.x)),
                        __fma_rn(-x.y, y.x, __fma_rn(-x.x, y.y, z.y)));
}

/* z + x y, by FMAs. */
template <class T> static __device__ __forceinline__ T gpb_plus_product(T z, T x, T y)
{
    return gpb_minus_product(z, gpb_negated(x), y);
}

/* A complex number times a real one. */
static __device__ __forceinline__ float gpb_scaled(float x, float y) { return __fmul_rn(x, y); }
static __device__ __forceinline__ double gpb_scaled(double x, double y) { return __dmul_rn(x, y); }
static __device__ __forceinline__ float2 gpb_scaled(float2 x, float y)
{
    return make_float2(__fmul_rn(x.x, y), __fmul_rn(x.y, y));
}
static __device__ __forceinline__ double2 gpb_scaled(double2 x, double y)
{
    return make_double2(__dmul_rn(x.x, y), __dmul_rn(x.y, y));
}

/* x y, each part of a complex one by an FMA. */
static __device__ __forceinline__ float gpb_times(float x, float y) { return __fmul_rn(x, y); }
static __device__ __forceinline__ double gpb_times(double x, double y) { return __dmul_rn(x, y); }
static __device__ __forceinline__ float2 gpb_times(float2 x, float2 y)
{
    return make_float2(__fmaf_rn(-x.y, y.y, x.x * y.x), __fmaf_rn(x.y, y.x, x.x * y.y));
}
static __device__ __forceinline__ double2 gpb_times(double2 x, double2 y)
{
    return make_double2(__fma_rn(-x.y, y.y, x.x * y.x), __fma_rn(x.y, y.x, x.x * y.y));
}

static __device__ __forceinline__ float gpb_conjugate(float x, bool) { return x; }
static __device__ __forceinline__ double gpb_conjugate(double x, bool) { return x; }
static __device__ __forceinline__ float2 gpb_conjugate(float2 x, bool conj)
{
    return make_float2(x.x, conj ? -x.y : x.y);
}
static __device__ __forceinline__ double2 gpb_conjugate(double2 x, bool conj)
{
    return make_double2(x.x, conj ? -x.y : x.y);
}

/* x / y. Complex numbers by the method of R. L. Smith (CACM 5, 1962), as Fortran's compilers do, so that
   |y|^2 need not be representable. */
static __device__ __forceinline__ float gpb_quotient(float x, float y) { return __fdiv_rn(x, y); }
static __device__ __forceinline__ double gpb_quotient(double x, double y) { return __ddiv_rn(x, y); }
template <class T> static __device__ __forceinline__ T gpb_complex_quotient(T x, T y)
{
    const bool flat = fabs(y.x) >= fabs(y.y);
    const auto large = flat ? y.x : y.y, ratio = gpb_quotient(flat ? y.y : y.x, large);
    const auto scale = large + ratio * (flat ? y.y : y.x);
    const auto re = flat ? x.x + x.y * ratio : x.x * ratio + x.y;
    const auto im = flat ? x.y - x.x * ratio : x.y * ratio - x.x;
    return { gpb_quotient(re, scale), gpb_quotient(im, scale) };
}
static __device__ __forceinline__ float2 gpb_quotient(float2 x, float2 y)
{
    return gpb_complex_quotient(x, y);
}
static __device__ __forceinline__ double2 gpb_quotient(double2 x, double2 y)
{
    return gpb_complex_quotient(x, y);
}

/* 1 / x within two units in the last place, without a branch: a division has one for numbers that are not
   normal, which every warp would take in which one thread has a zero. 0, infinite or NaN if x or 1 / x is
   not normal. */
static __device__ __forceinline__ float gpb_fast_inverse(float x)
{
    const float y = gpb_inverse_estimate(x);
    return __fmaf_rn(__fmaf_rn(-x, y, 1), y, y);
}
static __device__ __forceinline__ double gpb_fast_inverse(double x)
{
    double y = gpb_inverse_estimate(x);
    y = __fma_rn(__fma_rn(-x, y, 1), y, y);
    return __fma_rn(__fma_rn(-x, y, 1), y, y);
}
template <class T> static __device__ __forceinline__ bool gpb_is_usual(T x) { return isfinite(x) && x != 0; }

/* What a pivot's row brings so that the others need not divide: of real numbers 1 / pivot. Complex numbers
   are divided. */
static __device__ __forceinline__ float gpb_pivot_inverse(float x) { return gpb_fast_inverse(x); }
static __device__ __forceinline__ double gpb_pivot_inverse(double x) { return gpb_fast_inverse(x); }
static __device__ __forceinline__ float2 gpb_pivot_inverse(float2 x) { return x; }
static __device__ __forceinline__ double2 gpb_pivot_inverse(double2 x) { return x; }

/* x / y, where inverse is 1 / y or not usual, as a product with a correction that makes it the rounded
   quotient but for rare cases. */
template <class T> static __device__ __forceinline__ T gpb_divided(T x, T y, T inverse)
{
    const T q = x * inverse, better = gpb_minus_product(q, gpb_minus_product(-x, -q, y), inverse);
    if (!gpb_is_usual(inverse)) return gpb_quotient(x, y);
    return isfinite(better) ? better : q;
}
static __device__ __forceinline__ float gpb_by_pivot(float x, float y, float inverse)
{
    return gpb_divided(x, y, inverse);
}
static __device__ __forceinline__ double gpb_by_pivot(double x, double y, double inverse)
{
    return gpb_divided(x, y, inverse);
}
static __device__ __forceinline__ float2 gpb_by_pivot(float2 x, float2 y, float2)
{
    return gpb_quotient(x, y);
}
static __device__ __forceinline__ double2 gpb_by_pivot(double2 x, double2 y, double2)
{
    return gpb_quotient(x, y);
}

/* Whether 1 / x keeps x's precision and can stand for the division by x. */
template <class T> static __device__ __forceinline__ bool gpb_inverts_real(T x, T least, T most)
{
    return fabs(x) > least && fabs(x) < most;
}
static __device__ __forceinline__ bool gpb_inverts(float x)
{
    return gpb_inverts_real(x, 1e-36f, 1e36f);
}
static __device__ __forceinline__ bool gpb_inverts(double x) { return gpb_inverts_real(x, 1e-300, 1e300); }
static __device__ __forceinline__ bool gpb_inverts(float2 x) { return gpb_inverts(fabsf(x.x) + fabsf(x.y)); }
static __device__ __forceinline__ bool gpb_inverts(double2 x) { return gpb_inverts(fabs(x.x) + fabs(x.y)); }

/* LAPACK's measure of a pivot, |re| + |im|, as bits whose order is that of the numbers. */
static __device__ __forceinline__ uint64_t gpb_size_bits(float x)
{
    return (uint64_t)__float_as_uint(fabsf(x)) << 32;
}
static __device__ __forceinline__ uint64_t gpb_size_bits(double x)
{
    return (uint64_t)__double_as_longlong(fabs(x));
}
static __device__ __forceinline__ uint64_t gpb_size_bits(float2 x)
{
    return gpb_size_bits(__fadd_rn(fabsf(x.x), fabsf(x.y)));
}
static __device__ __forceinline__ uint64_t gpb_size_bits(double2 x)
{
    return gpb_size_bits(__dadd_rn(fabs(x.x), fabs(x.y)));
}
static __device__ __forceinline__ bool gpb_is_finite(float x) { return isfinite(x); }
static __device__ __forceinline__ bool gpb_is_finite(double x) { return isfinite(x); }
static __device__ __forceinline__ bool gpb_is_finite(float2 x) { return isfinite(x.x) && isfinite(x.y); }
static __device__ __forceinline__ bool gpb_is_finite(double2 x) { return isfinite(x.x) && isfinite(x.y); }
static __device__ __forceinline__ bool gpb_is_nan(float x) { return x != x; }
static __device__ __forceinline__ bool gpb_is_nan(double x) { return x != x; }
static __device__ __forceinline__ bool gpb_is_nan(float2 x) { return x.x != x.x || x.y != x.y; }
static __device__ __forceinline__ bool gpb_is_nan(double2 x) { return x.x != x.x || x.y != x.y; }

/* Whether x is positive, and x and 1 / x are normal, told from x's sign and exponent, by integers beside what
   is computed of x. */
static __device__ __forceinline__ bool gpb_is_ordinary(float x)
{
    return (__float_as_uint(x) >> 23) - 4 < 247;
}
static __device__ __forceinline__ bool gpb_is_ordinary(double x)
{
    return ((unsigned)__double2hiint(x) >> 20) - 4 < 2039;
}

/* Of the Hermitian 2 x 2 matrix with a and c on its diagonal. */
static __device__ __forceinline__ float gpb_determinant(float a, float b, float c)
{
    return __fmaf_rn(a, c, -(b * b));
}
static __device__ __forceinline__ double gpb_determinant(double a, double b, double c)
{
    return __fma_rn(a, c, -(b * b));
}
static __device__ __forceinline__ float gpb_determinant(float a, float2 b, float2 c)
{
    return __fmaf_rn(a, c.x, -__fmaf_rn(b.x, b.x, b.y * b.y));
}
static __device__ __forceinline__ double gpb_determinant(double a, double2 b, double2 c)
{
    return __fma_rn(a, c.x, -__fma_rn(b.x, b.x, b.y * b.y));
}

/* 1 / sqrt(x) within a unit in the last place, of ordinary x without a branch. */
static __device__ __forceinline__ float gpb_fast_inverse_root(float x)
{
    const float y = rsqrtf(x);
    return __fmaf_rn(y * 0.5f, __fmaf_rn(-x * y, y, 1), y);
}
static __device__ __forceinline__ double gpb_fast_inverse_root(double x)
{
    const double y = gpb_inverse_root_estimate(x);
    const double e = __fma_rn(-x * y, y, 1);                 /* from 2^-20 to 2^-58 */
    return __fma_rn(y * e, __fma_rn(e, 0.375, 0.5), y);
}
static __device__ __forceinline__ float gpb_inverse_root(float x) { return rsqrtf(x); }
static __device__ __forceinline__ double gpb_inverse_root(double x) { return rsqrt(x); }
static __device__ __forceinline__ float gpb_shuffled(float x, int lane) { return __shfl_sync(~0u, x, lane); }
static __device__ __forceinline__ double gpb_shuffled(double x, int lane)
{
    return __shfl_sync(~0u, x, lane);
}
static __device__ __forceinline__ float2 gpb_shuffled(float2 x, int lane)
{
    return make_float2(gpb_shuffled(x.x, lane), gpb_shuffled(x.y, lane));
}
static __device__ __forceinline__ double2 gpb_shuffled(double2 x, int lane)
{
    return make_double2(gpb_shuffled(x.x, lane), gpb_shuffled(x.y, lane));
}

template <class T> static __device__ __forceinline__ T gpb_from_real(gpb_real<T> x);
template <> __device__ __forceinline__ float gpb_from_real<float>(float x) { return x; }
template <> __device__ __forceinline__ double gpb_from_real<double>(double x) { return x; }
template <> __device__ __forceinline__ float2 gpb_from_real<float2>(float x) { return make_float2(x, 0); }
template <> __device__ __forceinline__ double2 gpb_from_real<double2>(double x) { return make_double2(x, 0); }

/* A power of two that makes of x a number whose inverse has its precision; 1 if x is one. */
template <class T> static __device__ __forceinline__ gpb_real<T> gpb_inverting_scale(T x)
{
    constexpr gpb_real<T> LARGE = (gpb_real<T>)(sizeof(gpb_real<T>) == 4 ? 0x1p60 : 0x1p200);
    const bool is_small = gpb_size_bits(x) < gpb_size_bits(gpb_from_real<T>(1));
    return gpb_inverts(x) ? 1 : is_small ? LARGE : 1 / LARGE;
}

#endif
