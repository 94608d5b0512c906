/* SPDX-License-Identifier: MIT */
/* What operands hold in all tests: the fills of fill.def, and poison around them. */
#ifndef GPB_FILL_H
#define GPB_FILL_H

#include <stdint.h>

#include "dispatch/type.h"

/* GPB_FILL_uniform, ... */
enum gpb_fill {
#define FILL(name, value) GPB_FILL_##name,
#include "tests/fill.def"
#undef FILL
    GPB_FILLS
};
extern const char *const gpb_fill_names[GPB_FILLS];

/* The next number of a fill (fill.def), rounded to the type; for a complex one both parts. */
double gpb_fill_draw(enum gpb_fill fill, enum gpb_type type, uint64_t *state);
void gpb_fill(enum gpb_fill fill, enum gpb_type type, void *x, int64_t count, uint64_t *state);
/* NaNs that say where they stood. */
void gpb_poison(enum gpb_type type, void *x, int64_t count);

#endif
