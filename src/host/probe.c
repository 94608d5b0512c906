/* SPDX-License-Identifier: MIT */
/* What a library offers; see probe.h. Some libraries only forward BLAS, perhaps to us. They are no host,
   because a call would come back to our door for ever. Known ones are told by a name of their own, others by
   a call of their isamax_ that arrives at our door. */
#include "src/host/probe.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/host/objects.h"

/* ---- libraries that lead back to us */

static uintptr_t own_base(void) { return gpb_objects_base((const void *)(uintptr_t)gpb_probe_lookup); }

static bool has_own(void *handle, const char *name, uintptr_t base)
{
    void *address = dlsym(handle, name);
    return address && gpb_objects_base(address) == base;
}

/* The program's own scope has this library, because it was preloaded or linked, not opened by somebody. */
static bool is_global(void)
{
    void *program = dlopen(NULL, RTLD_LAZY);
    const bool global = program && has_own(program, "gpublas_version", own_base());
    if (program) dlclose(program);
    return global;
}

/* The address is in this library, in another copy of it, or in a library that would come back to a door:
   libblastrampoline, whose names lead to whatever a program (Julia) chose, perhaps us later, or a FlexiBLAS
   that may have opened us. (FlexiBLAS may not be called while it opens a library.) */
static bool is_ours(const void *address)
{
    const uintptr_t base = gpb_objects_base(address);
    if (!base) return false;
    if (base == own_base()) return true;
    void *handle = gpb_objects_holding(address);
    if (!handle) return false;
    const bool back = has_own(handle, "gpublas_version", base) || has_own(handle, "lbt_forward", base)
                      || (has_own(handle, "flexiblas_avail", base) && !is_global());
    dlclose(handle);
    return back;
}

void *gpb_probe_lookup(void *handle, const char *name)
{
    void *address = dlsym(handle, name);
    return address && !is_ours(address) ? address : NULL;
}

/* ---- what a library's functions do */

static _Thread_local bool probing __attribute__((tls_model("initial-exec")));
static _Thread_local bool came_back __attribute__((tls_model("initial-exec")));

bool gpb_probe_came_back(void)
{
    if (probing) came_back = true;
    return probing;
}

/* isamax_ of n = 2^64 - 2^32 + 3 is 2 if 32 bits of n are read, and 0 if 64 are (the probe of
   libblastrampoline). */
int gpb_probe_width(void *handle)
{
    union { void *address; int64_t (*call)(const int64_t *, const float *, const int64_t *); } isamax;
    static const float x[] = { 1, 2, 1 };
    const int64_t three = 3, n = (int64_t)0xffffffff00000003, incx = 1;
    isamax.address = gpb_probe_lookup(handle, "isamax_");
    if (!isamax.address) return 0;
    came_back = false;
    probing = true;
    const bool works = (int32_t)isamax.call(&three, x, &incx) == 2;
    const int width = (int32_t)isamax.call(&n, x, &incx) == 2 ? 32 : 64;
    probing = false;
    return came_back ? GPB_PROBE_FORWARDS : works ? width : 0;
}

void *gpb_probe_offered(void *handle, const gpb_symbol_row *row)
{
    static const char *const spellings[2][2][3] = {
        { { "%s_", "scipy_%s_", NULL }, { "%s_64_", "scipy_%s_64_", "%s_" } },
        { { "cblas_%s", "scipy_cblas_%s", NULL }, { "cblas_%s64_", "cblas_%s_64", "cblas_%s" } } };
    const bool wheel = strncmp(row->name, "scipy_", 6) == 0, plain = row->width == 32 && !wheel;
    const int width = gpb_probe_width(handle);
    if (width == GPB_PROBE_FORWARDS) return NULL;
    void *address = plain && width != 32 ? NULL : gpb_probe_lookup(handle, row->name);
    for (int i = 0; i < 3 && !address; i++) {
        const char *spelling = spellings[row->language][row->width == 64][i];
        char name[64];
        if (!spelling) break;
        const bool is_plain = strcmp(spelling, "%s_") == 0 || strcmp(spelling, "cblas_%s") == 0;
        if (is_plain && width != row->width) continue;
        snprintf(name, sizeof name, spelling, row->stem);
        address = gpb_probe_lookup(handle, name);
    }
    return address;
}

/* MKL does so by default. A program that links it knows; a caller for whom we chose the host does not. Such a
   function takes the address of n for the result's, and the first element of x, 0, for n. */
bool gpb_probe_hides_result(const gpb_symbol_row *row, void *address)
{
    const size_t length = strlen(row->stem);
    if (row->language != GPB_LANGUAGE_F77) return false;
    if (length != 5 || strncmp(row->stem + 1, "dot", 3) != 0) return false;
    union {
        void *address;
        void (*call)(int64_t *, const double *, const int64_t *, const double *, const int64_t *,
                     const int64_t *);
    } dot = { address };
    const int64_t one = 1;
    const double x[2] = { 0 };
    int64_t n[2] = { 1, 1 };
    dot.call(n, x, &one, x, &one, &one);
    return n[0] != 1;
}
