/* SPDX-License-Identifier: MIT */
/* Every kind of door that a GEMM goes through, in all types, each as a function of a call in canonical form.
   For programs that are linked with -lgpublas. */
#ifndef GPB_DOORS_H
#define GPB_DOORS_H

#include "tests/routine.h"

enum { GPB_TEST_DOORS = 10, GPB_TEST_MEMBERS = 8 };      /* members: of a batch, at most */

typedef struct gpb_test_door {
    const char *name;
    void (*call)(const gpb_call *);
    enum gpb_test_routine routine;
    bool reports;                /* illegal arguments too, by their own letters and numbers */
} gpb_test_door;
/* GPB_TEST_DOORS of each type, in the same order. */
extern const gpb_test_door *const gpb_test_doors[GPB_TYPES];

#endif
