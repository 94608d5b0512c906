/* SPDX-License-Identifier: MIT */
/* routine.def as data. */
#ifndef GPB_ROUTINE_H
#define GPB_ROUTINE_H

#include "tests/fill.h"
#include "tests/reference.h"

/* GPB_TEST_gemm, ... */
enum gpb_test_routine {
#define ROUTINE(name, fmas, a, b, c, members, fill, check) GPB_TEST_##name,
#include "tests/routine.def"
#undef ROUTINE
    GPB_TEST_ROUTINES
};

enum gpb_test_members { GPB_MEMBERS_ONE, GPB_MEMBERS_STRIDED, GPB_MEMBERS_ARRAYS };

/* An operand before any transposition. */
typedef struct gpb_test_shape {
    int64_t rows, cols;
    enum gpb_structure structure;
} gpb_test_shape;

typedef struct gpb_test_row {
    const char *name;
    enum gpb_test_members members;
    double (*fmas)(double m, double n, double k);
    gpb_test_shape (*shape)(enum gpb_operand x, int64_t m, int64_t n, int64_t k);
    int products;                /* 2: of SYR2K and HER2K */
    void (*fill)(enum gpb_fill fill, enum gpb_type type, void *x, int64_t count, uint64_t *state);
    /* gpb_reference_check, or what a routine that is no product has in its place. The same for a sample. */
    double (*check)(enum gpb_math math, const gpb_call *call, const void *c_before, size_t bytes);
    double (*sample)(enum gpb_math math, const gpb_call *call, const void *c_before, size_t bytes,
                     int64_t sample, uint64_t *state);
} gpb_test_row;

const gpb_test_row *gpb_test_row_of(enum gpb_test_routine routine);

/* The shape of an operand; right: of a routine whose symmetric A is on the right. */
gpb_test_shape gpb_test_shape_of(enum gpb_test_routine routine, enum gpb_operand x, int64_t m, int64_t n,
                                 int64_t k, bool right);

/* True if one operand is symmetric or Hermitian, on either side. */
bool gpb_test_sided(enum gpb_test_routine routine);
/* Makes a column-major call one of such a routine: that operand on that side ('R', else left), with that
   triangle stored, k its order, no transpositions. Calls of other routines stay as they are. */
void gpb_test_put_side(enum gpb_test_routine routine, gpb_call *call, char side, char uplo);
/* Poisons what of a symmetric or Hermitian operand is not to be read. */
void gpb_test_poison_mirror(const gpb_call *call, enum gpb_operand x);

/* True if only a triangle of C is written. */
bool gpb_test_has_triangle(enum gpb_test_routine routine);

/* True if B is A once more. */
bool gpb_test_one_matrix(enum gpb_test_routine routine);
/* The letter that such a routine, or one of two products, takes instead of T or C, if its type allows just
   one of them. Other routines take any. */
char gpb_test_op(enum gpb_test_routine routine, enum gpb_type type, char trans);
/* Sets what the routine leaves no choice of: B if it is A once more, its letter if it follows from A's, the
   structure of C, and alpha and beta if they have to be real. */
void gpb_test_settle(enum gpb_test_routine routine, gpb_call *call);

/* Floating-point operations of a call, and bytes that it has to read and to write at least. */
double gpb_test_flops(enum gpb_test_routine routine, const gpb_call *call);
double gpb_test_bytes_read(enum gpb_test_routine routine, const gpb_call *call);
double gpb_test_bytes_written(enum gpb_test_routine routine, const gpb_call *call);
/* Bytes of one operand of it. */
double gpb_test_bytes(enum gpb_test_routine routine, const gpb_call *call, enum gpb_operand x);

#endif
