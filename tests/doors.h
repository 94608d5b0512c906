/* SPDX-License-Identifier: MIT */
/* Every kind of door, in all types, each as a function of a call in canonical form.
   For programs that are linked with -lgpublas. */
#ifndef GPB_DOORS_H
#define GPB_DOORS_H

#include "tests/routine.h"

enum { GPB_TEST_DOORS = 18, GPB_TEST_COMPLEX_DOORS = 26 };      /* those of real and of complex types */
enum { GPB_TEST_MEMBERS = 8 };                                  /* of a batch, at most */

typedef struct gpb_test_door {
    const char *name;
    void (*call)(const gpb_call *);
    enum gpb_test_routine routine;
    bool reports;                /* illegal arguments too, by their own letters and numbers */
} gpb_test_door;
/* Those of each type, in the same order; complex types have some more behind the others. */
extern const gpb_test_door *const gpb_test_doors[GPB_TYPES];

static inline int gpb_test_doors_of(enum gpb_type type)
{
    return gpb_type_is_complex(type) ? GPB_TEST_COMPLEX_DOORS : GPB_TEST_DOORS;
}

#endif
