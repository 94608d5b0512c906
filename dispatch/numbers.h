/* SPDX-License-Identifier: MIT */
/* What C lacks of arithmetic. Without a prefix, for it is written often: for .c files, and for embedded.h, which is the body of four. */
#ifndef GPB_NUMBERS_H
#define GPB_NUMBERS_H

#include <stdint.h>

static inline int64_t least_int(int64_t a, int64_t b) { return a < b ? a : b; }
static inline double least_double(double a, double b) { return a < b ? a : b; }
static inline int64_t most_int(int64_t a, int64_t b) { return a > b ? a : b; }
static inline double most_double(double a, double b) { return a > b ? a : b; }

/* The lesser and the greater of two whole numbers, or of two of which one is not whole. */
#define least(a, b) _Generic((a) + (b), float: least_double, double: least_double, default: least_int)(a, b)
#define most(a, b) _Generic((a) + (b), float: most_double, double: most_double, default: most_int)(a, b)

/* x, or the bound that it is beyond. */
static inline double within(double x, double low, double high) { return most(low, least(x, high)); }

/* How many parts a size is cut into, the last perhaps smaller; 1 if there is nothing to cut. For sizes up to INT64_MAX. */
static inline int64_t parts(int64_t size, int64_t part) { return size > 0 ? (size - 1) / part + 1 : 1; }

static inline int64_t round_up(int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }

#endif
