/* SPDX-License-Identifier: MIT */
/* Sums of products as tensor cores form them, bit by bit (FAKECUDA_TENSOR). NVIDIA documents none of it. Two
   independent studies found it (MMA-Sim, and the experiments of FTTN and MATLAB-tensor-core), and
   tests/gpu/test_hardware.c checks it on a GPU:
   - A fixed number of products and the old sum are added at once. All are aligned to the largest exponent
   among them and cut off, towards zero, a fixed number of bits below it. What is left is added exactly, and
   the result is cut to 24 bits, towards zero.
   - A product's exponent is the sum of its factors' exponents as stored. For mantissas 1.5 and 1.5 it is one
   too low, and an FP16 subnormal's is -14, however many zeros its mantissa begins with.
   Left out: results below 2^-126, which are rounded to nearest here. */
#include <string.h>

#include "tests/fakecuda/fakecuda.h"

typedef float floats __attribute__((vector_size(32)));
typedef int32_t ints __attribute__((vector_size(32)));
typedef double doubles __attribute__((vector_size(64)));
typedef int64_t longs __attribute__((vector_size(64)));

/* Exponents: of 0, of a sum of zeros; what is FARTHEST below the largest is cut off. */
enum { LANES = 8, NONE = -2000, LEAST = -700, FARTHEST = 120 };

#define LARGER(x, y) (((x) & ((x) > (y))) | ((y) & ((x) <= (y))))
#define SMALLER(x, y) (((x) & ((x) < (y))) | ((y) & ((x) >= (y))))

void gpb_fake_term(gpb_fake_terms *to, int p, int row, float x, int least)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 23 & 255) - 127;
    if (exponent < least)
        exponent = least;
    const uint32_t scale = (uint32_t)(127 - exponent) << 23;
    float by;
    memcpy(&by, &scale, sizeof by);
    to->mantissa[p][row] = x * by;
    to->exponent[p][row] = x == 0 ? NONE : exponent;
}

/* Eight sums of row i, from column j on. */
static inline __attribute__((always_inline)) void eight_body(float *sum, const gpb_fake_terms *a,
                                                             const gpb_fake_terms *b, int i, int j, int from,
                                                             gpb_fake_cores how)
{
    floats before;
    memcpy(&before, sum, sizeof before);
    const ints bits = (ints)before & 0x7fffffff, high = (bits >> 23) - 127,
               own = LARGER(high, (ints){ 0 } - 126);
    const floats mantissa = before * (floats)((127 - own) << 23);
    ints top = (own & (bits != 0)) | (NONE & (bits == 0));
    for (int p = from; p < from + how.terms; p++) {
        const ints e = a->exponent[p][i] + *(const ints *)&b->exponent[p][j];
        top = LARGER(e, top);
    }
    top = LARGER(top, (ints){ 0 } + LEAST);
    ints down = top - own;
    down = SMALLER(down, (ints){ 0 } + FARTHEST);
    ints halves[2] = { __builtin_convertvector(mantissa * (floats)((127 + how.bits - down) << 23), ints),
                       { 0 } };
    for (int p = 0; p < how.terms; p++) {
        const ints e = a->exponent[from + p][i] + *(const ints *)&b->exponent[from + p][j];
        down = top - e;
        down = SMALLER(down, (ints){ 0 } + FARTHEST);
        const floats product = a->mantissa[from + p][i] * *(const floats *)&b->mantissa[from + p][j];
        halves[p & 1] += __builtin_convertvector(product * (floats)((127 + how.bits - down) << 23), ints);
    }
    const doubles all = __builtin_convertvector(halves[0], doubles)
                        + __builtin_convertvector(halves[1], doubles);
    const longs up = (__builtin_convertvector(top, longs) + (1023 - how.bits)) << 52;
    const longs cut = (longs)(all * (doubles)up) & ~(((int64_t)1 << 29) - 1);
    const floats after = __builtin_convertvector((doubles)cut, floats);
    memcpy(sum, &after, sizeof after);
}

static inline __attribute__((always_inline)) void add_body(gpb_fake_sums to, const gpb_fake_terms *a,
                                                           const gpb_fake_terms *b, int from,
                                                           gpb_fake_cores how, int rows, int columns)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j += LANES)
            eight_body(to[i] + j, a, b, i, j, from, how);
}

__attribute__((target("avx2,fma"))) static void add_avx2(gpb_fake_sums to, const gpb_fake_terms *a,
                                                         const gpb_fake_terms *b, int from,
                                                         gpb_fake_cores how, int rows, int columns)
{
    add_body(to, a, b, from, how, rows, columns);
}

static void add_any(gpb_fake_sums to, const gpb_fake_terms *a, const gpb_fake_terms *b, int from,
                    gpb_fake_cores how, int rows, int columns)
{
    add_body(to, a, b, from, how, rows, columns);
}

void gpb_fake_cores_add(gpb_fake_sums to, const gpb_fake_terms *a, const gpb_fake_terms *b, int from,
                        gpb_fake_cores how, int rows, int columns)
{
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        add_avx2(to, a, b, from, how, rows, columns);
    else
        add_any(to, a, b, from, how, rows, columns);
}
