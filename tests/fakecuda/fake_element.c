/* SPDX-License-Identifier: MIT */
/* What kernels do with elements, by type. */
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fakecuda.h"

enum { SIDE = 16 };                      /* rows whose sums are formed together */

#define LETTER s
#define ELEMENT float
#include "tests/fakecuda/fake_element.h"
#define LETTER d
#define ELEMENT double
#include "tests/fakecuda/fake_element.h"
#define LETTER c
#define ELEMENT float _Complex
#include "tests/fakecuda/fake_element.h"
#define LETTER z
#define ELEMENT double _Complex
#include "tests/fakecuda/fake_element.h"

int64_t gpb_fake_zeros(const void *at, int64_t bytes)
{
    const char *x = at;
    int64_t zeros = 0;
    for (uint64_t words[8]; bytes - zeros >= (int64_t)sizeof words; zeros += (int64_t)sizeof words) {
        uint64_t any = 0;
        memcpy(words, x + zeros, sizeof words);
        for (int y = 0; y < 8; y++) any |= words[y];
        if (any) break;
    }
    while (zeros < bytes && !x[zeros]) zeros++;
    return zeros;
}

const gpb_fake_element *gpb_fake_element_of(enum gpb_type type)
{
    static const gpb_fake_element of[GPB_TYPES] = {
#define TYPE(p, type, bytes, flops, kind) \
    { netlib_##p, pack_##p, store_##p, add_up_##p, copy_##p, unpack_##p },
#include "dispatch/type.def"
#undef TYPE
    };
    return &of[type];
}
