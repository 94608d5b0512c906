/* SPDX-License-Identifier: MIT */
/* The patterns of accuracy_data.def. Every element is a function of its place alone, so rows can be made in
   parallel. */
#include "tests/gpu/accuracy.h"

#include <math.h>
#include <stdlib.h>

enum { POOL = 1 << 18, GAP = 16 };         /* GAP: each sixteenth place in k is where spikes and holes lie */
static float pool[POOL];                   /* normal random numbers */

static uint64_t mixed(uint64_t z)          /* splitmix64's last steps */
{
    z += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static void make_pool(void)
{
    for (int i = 0; i < POOL; i += 2) {    /* Box and Muller */
        double radius = sqrt(-2 * log(((double)(mixed((uint64_t)i) >> 11) + 0.5) * 0x1p-53));
        double angle = 6.283185307179586 * (double)(mixed((uint64_t)i + 1) >> 11) * 0x1p-53;
        pool[i] = (float)(radius * cos(angle));
        pool[i + 1] = (float)(radius * sin(angle));
    }
}

/* A float from the pool, made its own in the low bits: FP32 data has 24 bits at every place. */
static float gauss(uint64_t bits) { return pool[bits % POOL] * (1 + (float)(bits >> 44) * 0x1p-30f); }
static float unit(uint64_t bits) { return ((float)(bits >> 40) + 0.5f) * 0x1p-24f; }       /* (0, 1) */
static float sign(uint64_t bits) { return bits & 1 ? -1 : 1; }

#define PATTERN(name) \
    static float name(int64_t row, int64_t p, int64_t k, uint64_t row_bits, uint64_t bits, int number)
#define UNUSED (void)row, (void)p, (void)k, (void)row_bits, (void)bits, (void)number

PATTERN(normal) { UNUSED; return gauss(bits); }
PATTERN(positive) { UNUSED; return unit(bits); }
PATTERN(uniform) { UNUSED; return 2 * unit(bits) - 1; }
PATTERN(wide) { UNUSED; return sign(bits) * exp2f((float)number * (2 * unit(bits) - 1)); }
PATTERN(lognormal) { UNUSED; return sign(bits >> 50) * expf((float)number * gauss(bits)); }
PATTERN(power) { UNUSED; return ldexpf(uniform(row, p, k, row_bits, bits, 0), number); }
PATTERN(integer) { UNUSED; return (float)((int64_t)(bits >> 20 & ((2u << number) - 1)) - (1 << number)); }
PATTERN(geometric) { UNUSED; return sign(bits) * rintf(exp2f((float)number * unit(bits))); }

/* One element of the row 2^number times the others, at one of the gaps. */
PATTERN(spike)
{
    UNUSED;
    int64_t at = (int64_t)(row_bits % (uint64_t)((k + GAP - 1) / GAP)) * GAP;
    return p == at ? ldexpf(1.5f, number) : gauss(bits);
}
PATTERN(gaps) { UNUSED; return p % GAP ? gauss(bits) : 0; }
PATTERN(gaps_rows) { UNUSED; return row % 3 ? gauss(bits) : 0; }
PATTERN(scaled) { UNUSED; return ldexpf(gauss(bits), (int)(row % (2 * number + 1)) - number); }
PATTERN(falling) { UNUSED; return gauss(bits) * exp2f(-(float)number * (float)p / (float)k); }
PATTERN(rising) { UNUSED; return gauss(bits) * exp2f((float)number * ((float)p / (float)k - 1)); }
PATTERN(hilbert) { UNUSED; return 1 / (float)(row + p + 1); }
PATTERN(tiny) { UNUSED; return p % GAP ? gauss(bits) : ldexpf(gauss(bits), -number); }
PATTERN(huge) { UNUSED; return p % GAP ? gauss(bits) : ldexpf(gauss(bits), number); }

/* Neighbours cancel: x and number * x (1 + 2^-12 of something). */
PATTERN(pairs)
{
    UNUSED;
    uint64_t pair = mixed(row_bits + (uint64_t)(p / 2));
    return p % 2 == 0 || number > 0 ? gauss(pair) : -gauss(pair) * (1 + 0x1p-12f * unit(bits));
}
PATTERN(diagonal) { UNUSED; return p == row % k ? number ? gauss(bits) : 1 : 0; }
PATTERN(permutation) { UNUSED; return p == (int64_t)(row_bits % (uint64_t)k) ? 1 : 0; }
PATTERN(identity) { UNUSED; return ldexpf(gauss(bits), -number) + (p == row % k ? 1.0f : 0.0f); }
PATTERN(band) { UNUSED; return llabs(p - row % k) <= number / 2 ? gauss(bits) : 0; }
PATTERN(triangle) { UNUSED; return p <= row ? gauss(bits) : 0; }

/* ---- chosen, not drawn. A row's spikes lie at every eighth place (from 0 on in op(A), from 4 on in op(B)),
   where the other operand has zeros: they make the row's scale, and nothing else. */
enum { SPIKES = 8 };
static float above(uint64_t bits) { return 1 + unit(bits); }               /* [1, 2) */
static bool is_spike(int64_t p, bool of_b) { return p % SPIKES == (of_b ? SPIKES / 2 : 0); }
/* A spike of 2^up, the zero that faces the other's, or small. */
static float hide(int64_t p, bool of_b, int up, float small)
{
    return is_spike(p, of_b) ? ldexpf(1, up) : is_spike(p, !of_b) ? 0 : small;
}

/* Spikes of 2^number hide normal numbers; of 2^number above what has scale 2^(-60 or 60). */
PATTERN(hidden_a) { UNUSED; return hide(p, false, number, gauss(bits)); }
PATTERN(hidden_b) { UNUSED; return hide(p, true, number, gauss(bits)); }
PATTERN(low_a) { UNUSED; return hide(p, false, -60, ldexpf(above(bits), -60 - number)); }
PATTERN(low_b) { UNUSED; return hide(p, true, -60, ldexpf(above(bits), -60 - number)); }
PATTERN(high_a) { UNUSED; return hide(p, false, 60, ldexpf(above(bits), 60 - number)); }
PATTERN(high_b) { UNUSED; return hide(p, true, 60, ldexpf(above(bits), 60 - number)); }
/* 2^-38 of the spikes, an FP16 subnormal without error, once in 16, facing the other's spikes; else what
   hardly counts beside the product. */
PATTERN(subnormal_a)
{
    UNUSED;
    return p % 16 == 4 ? 1 : is_spike(p, true) ? 0 : hide(p, false, 38, ldexpf(above(bits), 14));
}
PATTERN(subnormal_b)
{
    UNUSED;
    return p % 16 == 4 ? 0x1p24f : is_spike(p, true) || is_spike(p, false) ? 0 : above(bits);
}
/* What the guards just let pass: high misses as much as it may, half a unit of 2^-24. */
static float least_small(int64_t k)
{
    const float t = fmaxf(2, 0.25f * sqrtf((float)k));
    return (ceilf(0x1p11f / t) + 0.5f) * 0x1p-38f;
}
PATTERN(small_a) { UNUSED; return hide(p, false, 0, number ? sign(bits) * least_small(k) : least_small(k)); }
PATTERN(small_b) { UNUSED; return hide(p, true, 0, number ? sign(bits) * least_small(k) : least_small(k)); }
/* Both slices are rounded down as far as can be, and low times low is as large as can be; number 1: beside
   neighbours that are exact and cancel. */
static float worst(uint64_t bits) { return 1 + (float)(4093 - 4 * (int)(bits >> 20 & 15)) * 0x1p-23f; }
PATTERN(worst_a) { UNUSED; return number == 1 && p % 2 ? 1 : worst(bits); }
PATTERN(worst_b) { UNUSED; return number == 1 && p % 2 ? -1 : worst(bits); }
/* Sums that are cut off in one direction, for `number` k, against as many of the other sign that are
   exact. */
PATTERN(one_sided_a) { UNUSED; return p / number % 2 ? 1.5f : above(bits); }
PATTERN(one_sided_b) { UNUSED; return p / number % 2 ? -1.5f : above(bits); }
/* Only `number` neighbours of a row count; only they and their like, of 32 blocks. */
PATTERN(block) { UNUSED; return p / number == k / number / 2 ? above(bits) : 0; }
PATTERN(blocks) { UNUSED; return p / number % 32 == 1 ? above(bits) : 0; }
/* Powers of two over `number` binades. */
PATTERN(binades) { UNUSED; return sign(bits) * ldexpf(1, -(int)((bits >> 20) % (uint64_t)(number + 1))); }
/* Counts: two of 2^number + 1 .. 2399, odd, at the same places of all rows; all others are 0 or 1. */
PATTERN(counts)
{
    UNUSED;
    return p == k / 3 || p == 2 * k / 3 ? (float)((1 << number) + 1 + (int)(bits >> 20) % 176 * 2)
                                        : (float)(bits >> 20 & 1);
}
/* What accuracy_search found. 1 + 2^-11 is cut into 1 and 2^-11, whose product with itself is left out, where
   one element in 16 has 24 bits, so that the guards do not ask for it; and mantissas of 13 bits times 2 -
   2^-10, which lose most where sums are cut. */
PATTERN(tie)
{
    UNUSED;
    return (number ? sign(bits) : 1) * ldexpf(p % 16 == 3 ? above(bits) : 1 + 0x1p-11f, -(int)(p % 4));
}
PATTERN(cut_most_a) { UNUSED; return p % 2 ? 1 + 3 * 0x1p-12f : p % 4 ? 2 + 0x1p-9f : 1 + 0x1p-10f; }
PATTERN(cut_most_b) { UNUSED; return p % 4 ? 2 - 0x1p-10f : 1.25f; }
enum { FOUND_K = 64 };
typedef struct found { float x; int drawn; } found;
static const struct { found a, b; } founds[] = {
#define FOUND(a, drawn_a, b, drawn_b) { { a, drawn_a }, { b, drawn_b } },
#include "tests/gpu/accuracy_found.def"
#undef FOUND
};
static float found_element(found f, uint64_t bits)
{
    return f.x * (f.drawn & 1 ? sign(bits) : 1) * (f.drawn & 2 ? above(bits) : 1);
}
PATTERN(found_a) { UNUSED; return found_element(founds[number * FOUND_K + p % FOUND_K].a, bits); }
PATTERN(found_b) { UNUSED; return found_element(founds[number * FOUND_K + p % FOUND_K].b, bits); }
/* Each row at a scale of its own, spread over the exponents that slices take; small ones are hidden behind
   large. */
PATTERN(scales_a)
{
    UNUSED;
    return ldexpf(hide(p, false, number, gauss(bits)), (int)(row % 5 - 2) * (60 - number) / 2);
}
PATTERN(scales_b)
{
    UNUSED;
    return ldexpf(hide(p, true, number, gauss(bits)), (int)(2 - row % 5) * (60 - number) / 2);
}
PATTERN(sparse) { UNUSED; return bits >> 20 & (uint64_t)(number - 1) ? 0 : gauss(bits); }

const accuracy_data accuracy_datas[] = {
#define DATA(name, a, s, b, t, guard, exact) { #name, { a, s }, { b, t }, GUARD_##guard, RESULT_##exact },
#include "tests/gpu/accuracy_data.def"
#undef DATA
};
const int accuracy_data_count = sizeof accuracy_datas / sizeof *accuracy_datas;

typedef struct fill { float *x; int64_t k; accuracy_pattern pattern; uint64_t seed; } fill;

static void fill_row(int64_t row, void *what)
{
    const fill *f = what;
    float *x = f->x + row * f->k;
    uint64_t row_bits = mixed(f->seed ^ mixed((uint64_t)row));
    for (int64_t p = 0; p < f->k; p++)
        x[p] = f->pattern.of(row, p, f->k, row_bits, mixed(row_bits ^ (uint64_t)p << 20), f->pattern.number);
}

void accuracy_fill(float *x, int64_t rows, int64_t k, accuracy_pattern pattern, uint64_t seed)
{
    if (pool[0] == 0) make_pool();
    fill f = { x, k, pattern, seed };
    accuracy_parallel(fill_row, rows, &f);
}
