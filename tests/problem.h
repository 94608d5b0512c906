/* SPDX-License-Identifier: MIT */
/* One problem for a routine of routine.def: its type, its sizes, how its operands lie in memory and what they
   hold. Tests and benches describe what they compute by this, and add where the operands are. What lies
   around the elements of an operand is poison: NaNs that say where they stood, so that an answer shows their
   use, and a comparison shows that they were overwritten. */
#ifndef GPB_PROBLEM_H
#define GPB_PROBLEM_H

#include "tests/routine.h"

/* What is 0 is the first of its list, one member, or as small as may be. */
typedef struct gpb_problem {
    enum gpb_test_routine routine;
    enum gpb_type type;
    int m, n, k, batch;
    char transa, transb;                 /* N, T or C, also in lower case; transb counts for nothing where
                                            routine.def lets it follow from transa */
    char uplo;                           /* the triangle of C, or of a symmetric A: 'U' or 'L', as stored */
    char side;                           /* of such an A: 'R', else left; B is then the left operand's place,
                                            which is x[GPB_A] */
    bool row_major;
    int pad, offset;                     /* added to each leading dimension; elements between the allocation
                                            and the first of an operand */
    enum gpb_fill fill;
    int ld[GPB_OPERANDS];                /* may be given. gpb_problem_lay_out sets those that are 0 */
} gpb_problem;

/* Sets the leading dimensions that are 0, and k where another size says what it is. */
void gpb_problem_lay_out(gpb_problem *p);
/* Elements from an operand's first to its last. An operand is `lines` runs of `lead` elements each, ld apart:
   columns, or rows in row-major order. */
int64_t gpb_problem_span(const gpb_problem *p, enum gpb_operand x);
int gpb_problem_lead(const gpb_problem *p, enum gpb_operand x);
int64_t gpb_problem_lines(const gpb_problem *p, enum gpb_operand x);
/* True if an element of the allocation, counted from its beginning, is one of the operand's. */
bool gpb_problem_owns(const gpb_problem *p, enum gpb_operand x, int64_t at);

/* The call as the library's doors turn it into column-major: a row-major C = A B is C' = B' A'. Operands are
   given by the addresses of their first elements, in the order of the problem; b counts for nothing if B is A
   once more. */
gpb_call gpb_problem_call(const gpb_problem *p, gpb_scalar alpha, gpb_scalar beta, const void *a,
                          const void *b, void *c);

/* What the routine takes for op(A) where the problem says transa (gpb_test_op). */
char gpb_problem_op(const gpb_problem *p);

/* All of an operand's allocation, offset + span elements: its own are filled as the problem says, the others
   are poison. C with beta == 0 is all poison, because it is never read then. */
void gpb_problem_fill(const gpb_problem *p, enum gpb_operand x, void *allocation, uint64_t seed);
/* Poisons what of an operand that begins there is not to be read: the other triangle of a symmetric A, and
   the imaginary parts on a Hermitian diagonal. */
void gpb_problem_poison_mirror(const gpb_problem *p, enum gpb_operand x, void *first);
void gpb_problem_fill_c(const gpb_problem *p, gpb_scalar beta, void *allocation);

#endif
