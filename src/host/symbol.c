/* SPDX-License-Identifier: MIT */
/* The symbol table, from blas.def, and the binding of a trampoline's slot at the first call. */
#include "src/host/symbol.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "src/host/next.h"
#include "src/host/watch.h"
#include "src/service/linker.h"
#include "src/service/log.h"
#include "src/service/traps.h"

/* Doors and embedded functions have different signatures; the table needs only their addresses. */
#define DOOR_(name) void gpb_door_##name(void);
#define NONE_(name)
#define SYMBOL(name, stem, language, width, door) door(name)
#include "src/host/symbols.h"
#undef DOOR_
#undef NONE_
#define SYMBOL(name, stem, language, width, door) void GPB_EMBEDDED_##language##_##width(stem)(void);
#define GPB_EMBEDDED_F77_32(stem) gpb_embedded_##stem##_
#define GPB_EMBEDDED_F77_64(stem) gpb_embedded_##stem##_64_
#define GPB_EMBEDDED_C_32(stem)   gpb_embedded_cblas_##stem
#define GPB_EMBEDDED_C_64(stem)   gpb_embedded_cblas_##stem##_64
#include "src/host/symbols.h"

const gpb_symbol_row gpb_symbol_rows[GPB_SYMBOLS] = {
#define DOOR_(name) (void *)gpb_door_##name
#define NONE_(name) NULL
#define SYMBOL(name, stem, language, width, door)               \
    { #name, #stem, GPB_LANGUAGE_##language, width, door(name), \
      (void *)GPB_EMBEDDED_##language##_##width(stem) },
#include "src/host/symbols.h"
};

/* trampoline.S: the target of each name, and the first target, which asks gpb_symbol_bind. */
extern _Atomic(void *) gpb_slots[GPB_SYMBOLS];
extern void *const gpb_lazies[GPB_SYMBOLS];

/* Callers whose plain names go to the host untouched: none; those that need the library that brought these
   names; all. */
enum aside { NOBODY, BY_CALLER, EVERYBODY };
static atomic_int aside;

bool gpb_symbol_plain(enum gpb_symbol symbol)
{
    return gpb_symbol_rows[symbol].width == 32 && strncmp(gpb_symbol_rows[symbol].name, "scipy_", 6) != 0;
}

bool gpb_symbol_standing_aside(void)
{
    return atomic_load_explicit(&aside, memory_order_relaxed) == EVERYBODY;
}

static void *target_of(unsigned number)
{
    void *door = gpb_symbol_rows[number].door;
    return door && !(gpb_symbol_plain(number) && gpb_symbol_standing_aside()) ? door : gpb_next(number);
}

/* The slot stays as it was if the caller decides where each call goes, and while nothing can be searched. */
__attribute__((noinline)) static void *settle(unsigned number, const void *caller)
{
    const bool plain = gpb_symbol_plain(number);
    if (plain && atomic_load(&aside) == BY_CALLER) {
        gpb_watch_scan(__builtin_ia32_rdtsc());
        void *wide = gpb_watch_wide(number, caller);
        return wide ? wide : target_of(number);
    }
    if (gpb_linker_is_held()) return target_of(number);
    gpb_watch_scan(0);
    const int before = atomic_load(&aside);
    if (plain && before == BY_CALLER) return settle(number, caller);
    void *target = target_of(number);
    atomic_store(&gpb_slots[number], target);
    if (!plain || atomic_load(&aside) == before) return target;
    atomic_store(&gpb_slots[number], gpb_lazies[number]);      /* another thread has stood aside meanwhile */
    return settle(number, caller);
}

static void (*_Atomic on_first)(void);

void gpb_symbol_on_first(void (*first)(void)) { atomic_store(&on_first, first); }

void *gpb_symbol_bind(unsigned number, const void *caller)
{
    const int before = errno;                           /* the caller's, to which this is a BLAS call */
    gpb_traps traps;
    gpb_traps_hold(&traps);
    void (*first)(void) = atomic_exchange(&on_first, NULL);
    if (first) first();
    void *target = settle(number, caller);
    gpb_traps_release(&traps);
    errno = before;
    return target;
}

static void bind_anew(void)
{
    for (unsigned number = 0; number < GPB_SYMBOLS; number++)
        if (gpb_symbol_plain(number))
            atomic_store_explicit(&gpb_slots[number], gpb_lazies[number], memory_order_release);
}

void gpb_symbol_ask_callers(void)
{
    int nobody = NOBODY;
    if (atomic_compare_exchange_strong(&aside, &nobody, BY_CALLER)) bind_anew();
}

void gpb_symbol_stand_aside(const char *because_of, bool all)
{
    const int to = all ? EVERYBODY : BY_CALLER;
    if (atomic_exchange(&aside, to) == to) return;
    gpb_log_warn("%s takes 64-bit integers under the plain BLAS names: %s go to it unchanged", because_of,
                 all ? "all calls of those names" : "calls of those names from libraries that need it");
    bind_anew();
}
