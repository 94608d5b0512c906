/* SPDX-License-Identifier: MIT */
/* The symbol table, from blas.def, and the binding of a trampoline's slot at its first call. */
#include "src/symbol.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "src/log.h"
#include "src/next.h"
#include "src/option.h"

/* Doors and embedded functions have a signature each; the table only needs their addresses. */
#define DOOR_(name) void gpb_door_##name(void);
#define NONE_(name)
#define SYMBOL(name, stem, language, width, door) door(name)
#include "src/symbols.h"
#undef DOOR_
#undef NONE_
#define SYMBOL(name, stem, language, width, door) void GPB_EMBEDDED_##language##_##width(stem)(void);
#define GPB_EMBEDDED_F77_32(stem) gpb_embedded_##stem##_
#define GPB_EMBEDDED_F77_64(stem) gpb_embedded_##stem##_64_
#define GPB_EMBEDDED_C_32(stem)   gpb_embedded_cblas_##stem
#define GPB_EMBEDDED_C_64(stem)   gpb_embedded_cblas_##stem##_64
#include "src/symbols.h"

const gpb_symbol_row gpb_symbol_rows[GPB_SYMBOLS] = {
#define DOOR_(name) (void *)gpb_door_##name
#define NONE_(name) NULL
#define SYMBOL(name, stem, language, width, door) \
    { #name, #stem, GPB_LANGUAGE_##language, width, door(name), (void *)GPB_EMBEDDED_##language##_##width(stem) },
#include "src/symbols.h"
};

extern _Atomic(void *) gpb_slots[GPB_SYMBOLS];      /* trampoline.S */

static atomic_bool aside;

/* sgemm_, cblas_sgemm: the names that mean 64-bit integers in an ILP64 build of the same name. */
static bool plain(const gpb_symbol_row *row)
{
    return row->width == 32 && strncmp(row->name, "scipy_", 6) != 0;
}

void *gpb_symbol_bind(unsigned number)
{
    const gpb_symbol_row *row = &gpb_symbol_rows[number];
    const int before = errno;                           /* the caller's: to it this is a BLAS call */
    gpb_next_look(0);
    bool ours = row->door && !(plain(row) && gpb_symbol_standing_aside());
    void *target = ours ? row->door : gpb_next(number);
    atomic_store(&gpb_slots[number], target);
    if (ours && plain(row) && gpb_symbol_standing_aside())      /* meanwhile, in another thread */
        atomic_store(&gpb_slots[number], target = gpb_next(number));
    errno = before;
    return target;
}

bool gpb_symbol_standing_aside(void)
{
    return atomic_load_explicit(&aside, memory_order_relaxed);
}

void gpb_symbol_stand_aside(const char *because_of)
{
    if (atomic_exchange(&aside, true)) return;
    gpb_log_warn("standing aside: %s uses the plain BLAS names with 64-bit integers", because_of);
    for (unsigned number = 0; number < GPB_SYMBOLS; number++)
        if (gpb_symbol_rows[number].door && plain(&gpb_symbol_rows[number]))
            atomic_store_explicit(&gpb_slots[number], gpb_next(number), memory_order_release);
}
