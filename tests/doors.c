/* SPDX-License-Identifier: MIT */
/* See doors.h. tests/programs/extensions.c has others. */
#include "tests/doors.h"

#include "src/host/level3_abi.h"

enum { ROW = 101, COLUMN = 102 };

static int trans(char letter) { return letter == 'N' ? 111 : letter == 'T' ? 112 : 113; }

#define LETTER s
#define ELEMENT float
#define REAL float
#define SCALAR float
#define GIVEN(x) (x)
#define IS_COMPLEX 0
#include "tests/doors_typed.h"
#define LETTER d
#define ELEMENT double
#define REAL double
#define SCALAR double
#define GIVEN(x) (x)
#define IS_COMPLEX 0
#include "tests/doors_typed.h"
#define LETTER c
#define ELEMENT float _Complex
#define REAL float
#define SCALAR const float _Complex *
#define GIVEN(x) &(x)
#define IS_COMPLEX 1
#include "tests/doors_typed.h"
#define LETTER z
#define ELEMENT double _Complex
#define REAL double
#define SCALAR const double _Complex *
#define GIVEN(x) &(x)
#define IS_COMPLEX 1
#include "tests/doors_typed.h"

const gpb_test_door *const gpb_test_doors[GPB_TYPES] = {
#define TYPE(letter, type, bytes, flops, kind) doors_##letter,
#include "dispatch/type.def"
#undef TYPE
};
