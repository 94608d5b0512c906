/* SPDX-License-Identifier: MIT */
/* See fill.h. */
#include "tests/fill.h"

#include <math.h>
#include <string.h>

#include "tests/reference.h"

const char *const gpb_fill_names[GPB_FILLS] = {
#define FILL(name, value) #name,
#include "tests/fill.def"
#undef FILL
};

static bool is_double(enum gpb_type type) { return type == GPB_TYPE_d || type == GPB_TYPE_z; }

/* Nothing that overflows on its way, because it depends on the order of a sum whether that ends in an
   infinity or in NaN. And no subnormal number times a large one, where it counts whether alpha comes
   first. */
static double hostile(int which)
{
    static const double some[] = { NAN, INFINITY, -INFINITY, 0, -0.0, 0x1p-149, -0x1p-130, 1.5 };
    return some[which];
}

double gpb_fill_draw(enum gpb_fill fill, enum gpb_type type, uint64_t *state)
{
    const uint64_t bits = gpb_reference_draw(state, UINT64_MAX);
    const int odd = (int)(bits & 2047);
    const double x = is_double(type) ? (double)(bits >> 11) * 0x1p-52 - 1
                                     : (double)(bits >> 40) * 0x1p-23 - 1;
    const double tiny = is_double(type) ? 0x1p-514 : 0x1p-66;
    switch (fill) {
#define FILL(name, value) case GPB_FILL_##name: return value;
#include "tests/fill.def"
#undef FILL
    default: return x;
    }
}

/* Real numbers in an element. */
static int parts_of(enum gpb_type type) { return gpb_type_of(type)->kind == GPB_TYPE_COMPLEX ? 2 : 1; }

void gpb_fill(enum gpb_fill fill, enum gpb_type type, void *x, int64_t count, uint64_t *state)
{
    for (int64_t i = 0; i < count * parts_of(type); i++) {
        const double value = gpb_fill_draw(fill, type, state);
        if (is_double(type)) ((double *)x)[i] = value;
        else ((float *)x)[i] = (float)value;
    }
}

static void *element(enum gpb_type type, void *x, int64_t at)
{
    return (char *)x + at * (int64_t)gpb_type_bytes(type);
}

/* One element, by its place. */
static void poison(enum gpb_type type, void *x, int64_t at)
{
    const uint32_t payload = 0x200000 | ((uint32_t)at & 0x1fffff);        /* no NaN of arithmetic has it */
    const uint32_t bits = 0x7fc00000u | payload;
    const uint64_t wide = 0x7ff8000000000000u | payload;
    for (int part = 0; part < parts_of(type); part++) {
        if (is_double(type)) memcpy((double *)x + part, &wide, sizeof wide);
        else memcpy((float *)x + part, &bits, sizeof bits);
    }
}

void gpb_poison(enum gpb_type type, void *x, int64_t count)
{
    for (int64_t at = 0; at < count; at++) poison(type, element(type, x, at), at);
}
