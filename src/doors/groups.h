/* SPDX-License-Identifier: MIT */
/* Grouped batches (oneMKL): arrays with one entry for each group, and addresses of members in the order of
   the groups. A group is one gpb_call. Neighbouring groups of the same shape are joined, so that a thousand
   groups of one become one call. */
#ifndef GPB_GROUPS_H
#define GPB_GROUPS_H

#include "src/doors/door.h"

/* The arrays of a grouped call, whatever their types; NULL: the routine has none of that name. */
typedef struct gpb_groups {
    const char *symbol;
    enum gpb_type type;
    int width, layout;
    bool letters;                               /* side, uplo and so on are Fortran's letters, else CBLAS's
                                                   enumerations */
    const void *side, *uplo, *transa, *transb, *diag, *m, *n, *k, *lda, *ldb, *ldc, *size, *alpha, *beta;
    const void *const *a, *const *b, *const *c;
    int64_t count;
    /* Group g as a call. first: number of its first member. */
    gpb_call (*call)(const struct gpb_groups *groups, int64_t g, int64_t first);
} gpb_groups;

int64_t gpb_groups_integer(const gpb_groups *groups, const void *array, int64_t g);
/* A letter of BLAS; 0 if it is an enumerator that is not legal there. letter_of: gpb_trans, or another of
   door.h for the array's kind, because different kinds have the same letters (L is left, and lower). */
char gpb_groups_letter(const gpb_groups *groups, const void *array, int64_t g, char (*letter_of)(int));
gpb_scalar gpb_groups_scalar(const gpb_groups *groups, const void *array, int64_t g);
/* A group's call, but for its operands: of sizes and scalars those that the routine has. */
gpb_call gpb_groups_call(const gpb_groups *groups, int64_t g);
/* The members of the group in one of the arrays of addresses. */
gpb_matrix gpb_groups_operand(const gpb_groups *groups, const void *const *array, const void *ld, int64_t g,
                              int64_t first);

/* Consecutive groups that are one call. All zero is the place before the first. */
typedef struct gpb_join {
    int64_t g, count;                           /* first group, number of groups */
    int64_t first, members;                     /* first member, number of members */
} gpb_join;

/* Moves on to the next groups that can be joined, and makes *call of them. False: there are no more groups.
   */
bool gpb_groups_next(const gpb_groups *groups, gpb_join *at, gpb_call *call);
/* True if all are. The host must report an illegal group before anything is computed. */
bool gpb_groups_legal(const gpb_groups *groups);

/* The body of a grouped door. offload: gpb_offload, or another function like it. What it declines goes by
   host_call to the host's function of the same name, `next`, with pointers into the caller's arrays from
   group g and member `first` on, and a number of groups, `count`. all_call: with the caller's own arguments.
   */
#define GPB_GROUPED(name, offload, groups, INT, all_call, host_call)                   \
    gpb_host_call declined;                                                            \
    gpb_call call;                                                                     \
    *(void **)&next = gpb_next(GPB_SYMBOL_##name);                                     \
    if (!gpb_groups_legal(groups)) {                                                   \
        all_call;                                                                      \
        return;                                                                        \
    }                                                                                  \
    for (gpb_join at = { 0 }; gpb_groups_next(groups, &at, &call);) {                  \
        const int64_t g = at.g, first = at.first;                                      \
        const INT count = (INT)at.count;                                               \
        if (offload(&call, &declined)) continue;                                       \
        host_call;                                                                     \
        gpb_offload_done(&declined);                                                   \
    }
#define GPB_WRAP(...) __VA_ARGS__

#endif
