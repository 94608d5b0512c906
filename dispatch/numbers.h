/* SPDX-License-Identifier: MIT */
/* Arithmetic that C lacks. The names have no prefix because they are written often. Only .c files include
   this, and embedded.h, which is the body of four. */
#ifndef GPB_NUMBERS_H
#define GPB_NUMBERS_H

#include <stdint.h>

static inline int64_t min_int(int64_t a, int64_t b) { return a < b ? a : b; }
static inline double min_double(double a, double b) { return a < b ? a : b; }
static inline int64_t max_int(int64_t a, int64_t b) { return a > b ? a : b; }
static inline double max_double(double a, double b) { return a > b ? a : b; }

/* The smaller and the larger of two numbers: as whole numbers if both are, else as doubles. */
#define min(a, b) _Generic((a) + (b), float: min_double, double: min_double, default: min_int)(a, b)
#define max(a, b) _Generic((a) + (b), float: max_double, double: max_double, default: max_int)(a, b)

/* x, or the bound that it exceeds. */
static inline double clamp(double x, double low, double high) { return max(low, min(x, high)); }

/* size / step, rounded up, and at least 1. For sizes up to INT64_MAX. */
static inline int64_t ceil_div(int64_t size, int64_t step) { return size > 0 ? (size - 1) / step + 1 : 1; }

static inline int64_t round_up(int64_t size, int64_t multiple)
{
    return (size + multiple - 1) / multiple * multiple;
}

#endif
