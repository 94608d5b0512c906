/* SPDX-License-Identifier: MIT */
/* pilaenv_, which ScaLAPACK's PBLAS asks for its logical block: how deep the products are that it makes of
   its own. Its answer is 32 (PBLAS/SRC/pilaenv.f), and a product of k = 32 moves more than it computes. PBLAS
   calls its own function through the linker, so ours comes first where we are preloaded, or linked before
   it. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>

#include "src/host/objects.h"
#include "src/host/probe.h"
#include "src/service/linker.h"
#include "src/service/option.h"

#define NETLIBS 32

/* Integers of 32 or 64 bits: the first is only passed on, and who expects 32 reads the lower half. */
typedef int64_t pilaenv(const void *ictxt, const char *prec);

/* The function that the library with that code has without us, or the next one of the program. */
static pilaenv *find(const void *caller)
{
    union { void *address; pilaenv *function; } found = { NULL };
    if (gpb_linker_spoiled()) return NULL;
    const int before = errno, cancel = gpb_linker_enter();
    void *scope = gpb_objects_scope(caller);
    if (scope) {
        found.address = gpb_objects_pin(gpb_probe_lookup(scope, "pilaenv_"));
        dlclose(scope);
    }
    if (!found.address) found.address = gpb_objects_pin(gpb_probe_lookup(RTLD_NEXT, "pilaenv_"));
    gpb_linker_leave(cancel);
    errno = before;
    return found.function;
}

__attribute__((visibility("default"))) int64_t pilaenv_(const void *ictxt, const char *prec)
{
    static _Thread_local struct { const void *caller; pilaenv *function; } last
        __attribute__((tls_model("initial-exec")));
    const void *caller = __builtin_return_address(0);
    const int64_t block = gpb_option_number(GPB_OPTION_PBLAS_BLOCK);
    if (block) return block;
    if (last.caller != caller) {
        last.function = find(caller);
        last.caller = caller;
    }
    return last.function ? last.function(ictxt, prec) : NETLIBS;
}
