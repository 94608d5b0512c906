/* SPDX-License-Identifier: MIT */
/* The constants of each modulus, computed by the compiler. */
#ifndef GPB_RESIDUES_MODULI_CUH
#define GPB_RESIDUES_MODULI_CUH

#include "kernels/residues.h"

/* Numbers of 128 bits, lowest word first. */
struct gpb_wide {
    unsigned word[4];
};

/* What quantize.cuh, multiply.cuh and combine.cuh need of modulus p. */
struct gpb_modulus {
    unsigned p;
    float inverse;                         /* 1 / p */
    int low, high;                         /* 2^(8 i) mod p in -128..127, a byte each: i = 0..3 and 4..7 */
    unsigned shift;                        /* the least multiple of p from 2^30 on */
    unsigned magic;                        /* 2^39 / p, rounded up */
};

/* A pair of neighbouring moduli, p of an even number and p' of the next. The last modulus is alone. */
struct gpb_moduli_pair {
    unsigned first, second;                /* 1 mod p and 0 mod p'; 0 mod p and 1 mod p' (alone: 1 and 0) */
    gpb_wide weight;                       /* q P / (p p'); q the inverse of P / (p p') modulo p p' */
};

enum { GPB_RESIDUE_PAIRS = (GPB_RESIDUE_MODULI + 1) / 2 };
struct gpb_moduli {
    gpb_modulus of[GPB_RESIDUE_MODULI];
    gpb_moduli_pair pair[GPB_RESIDUE_PAIRS];
    gpb_wide product;                      /* P */
    double inverse;                        /* 2^96 / P */
};

constexpr gpb_wide gpb_wide_times(gpb_wide x, unsigned y)
{
    unsigned long long carry = 0;
    for (int i = 0; i < 4; i++) {
        carry += (unsigned long long)x.word[i] * y;
        x.word[i] = (unsigned)carry;
        carry >>= 32;
    }
    return x;
}

/* As a double, a little too small. */
constexpr double gpb_wide_double(gpb_wide x)
{
    return x.word[3] * 0x1p96 + x.word[2] * 0x1p64 + x.word[1] * 0x1p32;
}

/* The inverse of x modulo p, both less than 2^16. */
constexpr unsigned gpb_inverse(unsigned x, unsigned p)
{
    unsigned q = 1;
    while (x * q % p != 1 % p) q++;
    return q;
}

constexpr gpb_moduli_pair gpb_moduli_pair_make(const unsigned (&all)[GPB_RESIDUE_MODULI], int x)
{
    const bool alone = x + 1 == GPB_RESIDUE_MODULI;
    const unsigned p = all[x], next = alone ? 1 : all[x + 1];
    unsigned rest = 1;
    gpb_wide others = { { 1, 0, 0, 0 } };
    for (int i = 0; i < GPB_RESIDUE_MODULI; i++)
        if (i != x && i != x + 1) {
            others = gpb_wide_times(others, all[i]);
            rest = rest * all[i] % (p * next);
        }
    return { alone ? 1 : next * gpb_inverse(next % p, p), alone ? 0 : p * gpb_inverse(p % next, next),
             gpb_wide_times(others, gpb_inverse(rest, p * next)) };
}

constexpr gpb_moduli gpb_moduli_make()
{
#define X(p) p,
    const unsigned all[] = { GPB_MODULI(X) };
#undef X
    gpb_moduli table = {};
    table.product = { { 1, 0, 0, 0 } };
    for (int l = 0; l < GPB_RESIDUE_MODULI; l++) {
        gpb_modulus &of = table.of[l];
        const unsigned p = all[l];
        unsigned power = 1, bytes[8] = {};
        for (int i = 0; i < 8; i++) {
            bytes[i] = (power >= 128 ? power - p : power) & 0xff;
            power = power * 256 % p;
        }
        of.p = p;
        of.inverse = 1.0f / (float)p;
        of.low = (int)(bytes[0] | bytes[1] << 8 | bytes[2] << 16 | bytes[3] << 24);
        of.high = (int)(bytes[4] | bytes[5] << 8 | bytes[6] << 16 | bytes[7] << 24);
        of.shift = ((1u << 30) + p - 1) / p * p;
        of.magic = (unsigned)(((1ull << 39) + p - 1) / p);
        table.product = gpb_wide_times(table.product, p);
    }
    for (int x = 0; x < GPB_RESIDUE_PAIRS; x++) table.pair[x] = gpb_moduli_pair_make(all, 2 * x);
    table.inverse = 0x1p96 / gpb_wide_double(table.product);
    return table;
}

static_assert(GPB_RESIDUE_LIMIT * GPB_RESIDUE_LIMIT * 2 * (1 + 0x1p-11)
                  <= gpb_wide_double(gpb_moduli_make().product),
              "a product of two rows of integers is less than P / 2");

static __constant__ gpb_moduli gpb_residue_table = gpb_moduli_make();

/* The residues of four sums in 0..p-1, a byte each. */
static __device__ __forceinline__ unsigned gpb_reduce_sums(const int *sum, const gpb_modulus &by)
{
    unsigned r[4];
#pragma unroll
    for (int y = 0; y < 4; y++) {
        const unsigned shifted = (unsigned)sum[y] + by.shift;
        r[y] = shifted - (__umulhi(shifted, by.magic) >> 7) * by.p;
    }
    return r[0] | r[1] << 8 | r[2] << 16 | r[3] << 24;
}

#endif
