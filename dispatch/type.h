/* SPDX-License-Identifier: MIT */
/* type.def as data. */
#ifndef GPB_TYPE_H
#define GPB_TYPE_H

#include <stddef.h>
#include <string.h>

/* GPB_TYPE_s, GPB_TYPE_d, GPB_TYPE_c, GPB_TYPE_z */
enum gpb_type {
#define TYPE(letter, type, bytes, flops, kind) GPB_TYPE_##letter,
#include "dispatch/type.def"
#undef TYPE
    GPB_TYPES
};

enum gpb_type_kind { GPB_TYPE_REAL, GPB_TYPE_COMPLEX };

typedef struct gpb_type_row {
    char letter;
    size_t bytes;                /* of one element */
    int flops;                   /* of one multiply-add */
    enum gpb_type_kind kind;
} gpb_type_row;

static inline const gpb_type_row *gpb_type_of(enum gpb_type type)
{
    static const gpb_type_row rows[GPB_TYPES] = {
#define TYPE(letter, type, bytes, flops, kind) { #letter[0], bytes, flops, GPB_TYPE_##kind },
#include "dispatch/type.def"
#undef TYPE
    };
    return &rows[type];
}

static inline size_t gpb_type_bytes(enum gpb_type type) { return gpb_type_of(type)->bytes; }

/* Bytes of a real number of that type: of an element, or of half of a complex one. */
static inline size_t gpb_type_real_bytes(enum gpb_type type)
{
    const gpb_type_row *row = gpb_type_of(type);
    return row->kind == GPB_TYPE_COMPLEX ? row->bytes / 2 : row->bytes;
}

static inline int gpb_type_is_complex(enum gpb_type type)
{
    return gpb_type_of(type)->kind == GPB_TYPE_COMPLEX;
}

/* The type of its real and imaginary parts. */
static inline enum gpb_type gpb_type_real(enum gpb_type type)
{
    return gpb_type_real_bytes(type) == gpb_type_bytes(GPB_TYPE_s) ? GPB_TYPE_s : GPB_TYPE_d;
}

/* The type of the same kind in single precision. */
static inline enum gpb_type gpb_type_narrow(enum gpb_type type)
{
    return gpb_type_is_complex(type) ? GPB_TYPE_c : GPB_TYPE_s;
}

/* Sets the element's imaginary part, if it has one, to 0. */
static inline void gpb_type_make_real(enum gpb_type type, void *element)
{
    const size_t real = gpb_type_real_bytes(type);
    memset((char *)element + real, 0, gpb_type_bytes(type) - real);
}

/* True if the element is 0, of either sign. */
static inline int gpb_type_is_zero(enum gpb_type type, const void *element)
{
    switch (type) {
#define TYPE(letter, type, bytes, flops, kind) case GPB_TYPE_##letter: return *(const type *)element == 0;
#include "dispatch/type.def"
#undef TYPE
    default: return 0;
    }
}

/* A product of numbers of that kind, without side effects in x and y. Of complex numbers it is Fortran's:
   C's own would make infinities of some NaNs and call a function for each product. */
#define GPB_PRODUCT_REAL(x, y) ((x) * (y))
#define GPB_PRODUCT_COMPLEX(x, y)                                            \
    __builtin_complex(__real__(x) * __real__(y) - __imag__(x) * __imag__(y), \
                      __real__(x) * __imag__(y) + __imag__(x) * __real__(y))

/* alpha or beta of any type, exactly. */
typedef double _Complex gpb_scalar;

/* Its real and imaginary part, as an initializer of double[2]. No call of creal, which is libm's. */
#define GPB_SCALAR_RE_IM(x) { __real__(x), __imag__(x) }

/* One element, as a BLAS of that type takes it. */
typedef union gpb_element {
#define TYPE(letter, type, bytes, flops, kind) type letter;
#include "dispatch/type.def"
#undef TYPE
} gpb_element;

static inline gpb_element gpb_element_of(enum gpb_type type, gpb_scalar x)
{
    gpb_element element = { 0 };
    switch (type) {
#define TYPE(letter, type, bytes, flops, kind) case GPB_TYPE_##letter: element.letter = (type)x; break;
#include "dispatch/type.def"
#undef TYPE
    default: break;
    }
    return element;
}

#endif
