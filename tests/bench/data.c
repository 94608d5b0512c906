/* SPDX-License-Identifier: MIT */
/* Operands as programs have them, in addition to the pattern of gpu_problem.c. What the guards of the kernels
   find in them costs time. */
#include <math.h>
#include <stdlib.h>

#include "tests/bench/bench.h"
#include "tests/bench/gpu.h"

/* Primes, so that sums of one of each hardly ever repeat. */
enum { FIRST = 1048573, SECOND = 1048571, BLOCK = 128 };
static double *first, *second;

static double uniform(uint64_t *state)
{
    return ((double)gpb_reference_draw(state, UINT64_C(1) << 52) + 0.5) * 0x1p-52;
}

static double *make_normals(int count, uint64_t seed)
{
    double *x = bench_memory(sizeof *x * (size_t)count);
    for (int i = 0; i < count; i++)
        x[i] = sqrt(-log(uniform(&seed))) * cos(6.283185307179586 * uniform(&seed)); /* variance 1/2 */
    return x;
}

/* Element (i, q) of op(A), or (q, i) of op(B), which is number x in memory; k: of the product. */
typedef float draw(size_t x, int i, int q, int k);

/* Rounded from doubles: some lie far below 2^-24, as in every large sample. */
static float normal(size_t x, int i, int q, int k)
{
    (void)i, (void)q, (void)k;
    return (float)(first[x % FIRST] + second[x % SECOND]);
}

/* One element that two slices cannot hold beside its row. */
static float one_small(size_t x, int i, int q, int k)
{
    return i == 0 && q == k / 2 ? 0x1.555556p-34f : normal(x, i, q, k);
}

static float one_nan(size_t x, int i, int q, int k)
{
    return i == 0 && q == k / 2 ? NAN : normal(x, i, q, k);
}

/* What a rectifier leaves. */
static float half_zeros(size_t x, int i, int q, int k) { return fmaxf(normal(x, i, q, k), 0); }

/* A row in each block of them over forty powers of two. */
static float wide_row(size_t x, int i, int q, int k)
{
    return i % BLOCK ? normal(x, i, q, k) : ldexpf(normal(x, i, q, k), -(q % 41));
}

/* Eight bits, as weights that were trained or kept so. */
static float bf16(size_t x, int i, int q, int k)
{
    union { float value; uint32_t bits; } y = { normal(x, i, q, k) };
    y.bits = (y.bits + 0x7fff + (y.bits >> 16 & 1)) & 0xffff0000u;
    return y.value;
}

/* Of 16 bits: above 2^11, where one FP16 slice ends. */
static float integer(size_t x, int i, int q, int k)
{
    return rintf(fmodf(normal(x, i, q, k) * 12345, 32767));
}

const data_kind data_kinds[] = { { "continuous", normal, normal },     { "one_small", one_small, normal },
                                 { "wide_row", wide_row, normal },     { "one_nan", one_nan, normal },
                                 { "half_zeros", half_zeros, normal }, { "bf16_weights", normal, bf16 },
                                 { "integers", integer, integer } };
const int data_kind_count = sizeof data_kinds / sizeof *data_kinds;

const char *data_name(const data_kind *kind) { return kind ? kind->name : "normal"; }

void data_fill(const gpu_problem *p, bool is_b, float *to)
{
    draw *const one = is_b ? p->data->b : p->data->a;
    const bool down = is_b ? p->of.transb == 'T'
                           : p->of.transa == 'N'; /* neighbours in memory are neighbours in i, not in q */
    const int ld = is_b ? p->of.ld[GPB_B] : p->of.ld[GPB_A], cols = down ? p->of.k : is_b ? p->of.n : p->of.m;
    const size_t apart = is_b ? 12345677 : 0;                  /* B is not A again */
    if (!first) {
        first = make_normals(FIRST, 1);
        second = make_normals(SECOND, 2);
    }
    for (int x = 0; x < cols; x++)
        for (int y = 0; y < ld; y++) {
            const size_t at = (size_t)x * (size_t)ld + (size_t)y;
            to[at] = one(at + apart, down ? y : x, down ? x : y, p->of.k);
        }
}
