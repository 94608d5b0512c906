/* SPDX-License-Identifier: MIT */
/* Finds the BLAS behind us, with no configuration. In order: GPUBLAS_HOST_BLAS; the next library of the process (RTLD_NEXT); any other
   library of the process, however it was loaded (the wheels' OpenBLAS is RTLD_LOCAL and RTLD_NEXT does not see it); a known host by
   soname, only if the process has no BLAS; the embedded default. The only file besides driver.c that opens libraries.
   No locks: a search gives the same answer again, so two threads may both search and store it.
   Never RTLD_DEEPBIND: the host must call the program's xerbla_, not its own (research: conformance 6.3). */
#include "src/next.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/log.h"
#include "src/option.h"

#define EMBEDDED_ONLY ((void *)1)
#define NO_HOST ((void *)1)

typedef struct objects {
    int count, room;
    char **name;
} objects;

static void *base_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* In this library, or in another copy of it: both would only come back to a door. */
static bool ours(const void *address)
{
    Dl_info info;
    if (!dladdr(address, &info)) return false;
    if (info.dli_fbase == base_of((void *)gpb_next)) return true;
    void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return false;
    void *version = dlsym(handle, "gpublas_version");
    bool copy = version && base_of(version) == info.dli_fbase;
    dlclose(handle);
    return copy;
}

static void *lookup(void *handle, const char *name)
{
    void *address = dlsym(handle, name);
    return address && !ours(address) ? address : NULL;
}

/* Bits of the integers behind a library's plain names; 0: it has none. isamax_ of n = 2^64 - 2^32 + 3 is 2 where 32 bits of n are read
   and 0 where 64 are (the probe of libblastrampoline). */
static int plain_width(void *handle)
{
    union { void *address; int64_t (*call)(const int64_t *, const float *, const int64_t *); } isamax = { lookup(handle, "isamax_") };
    if (!isamax.address) return 0;
    static const float x[] = { 1, 2, 1 };
    int64_t n = (int64_t)0xffffffff00000003, incx = 1;
    return (int32_t)isamax.call(&n, x, &incx) == 2 ? 32 : 64;
}

/* The function of that routine, language and width in a library, under whichever spelling it has: the caller's own first. */
static void *offered(void *handle, const gpb_symbol_row *row)
{
    static const char *const spellings[2][2][3] = {
        { { "%s_", "scipy_%s_", NULL }, { "%s_64_", "scipy_%s_64_", "%s_" } },
        { { "cblas_%s", "scipy_cblas_%s", NULL }, { "cblas_%s64_", "cblas_%s_64", "cblas_%s" } } };
    bool wheel = strncmp(row->name, "scipy_", 6) == 0, plain = row->width == 32 && !wheel;
    int width = plain_width(handle);
    void *address = plain && width != 32 ? NULL : lookup(handle, row->name);
    for (int i = 0; i < 3 && !address; i++) {
        const char *spelling = spellings[row->language][row->width == 64][i];
        char name[64];
        if (!spelling) break;
        bool is_plain = strcmp(spelling, "%s_") == 0 || strcmp(spelling, "cblas_%s") == 0;
        if (is_plain && width != row->width) continue;
        snprintf(name, sizeof name, spelling, row->stem);
        address = lookup(handle, name);
    }
    return address;
}

static int note_object(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    objects *list = out;
    if (list->count == list->room) {
        int room = list->room ? 2 * list->room : 64;
        char **name = realloc(list->name, (size_t)room * sizeof *name);
        if (!name) return 1;
        list->name = name;
        list->room = room;
    }
    if (info->dlpi_name[0] && (list->name[list->count] = strdup(info->dlpi_name))) list->count++;
    return 0;
}

/* Calls visit with a handle of each library of the process, in load order, until it returns an address. (The names are taken first:
   dlopen inside dl_iterate_phdr would wait for a lock that it holds.) */
static void *each_object(void *(*visit)(void *handle, const char *file, const void *with), const void *with)
{
    objects list = { 0, 0, NULL };
    dl_iterate_phdr(note_object, &list);
    void *found = NULL;
    for (int i = 0; i < list.count; i++) {
        void *handle = found ? NULL : dlopen(list.name[i], RTLD_LAZY | RTLD_NOLOAD);
        if (handle) {
            found = visit(handle, list.name[i], with);
            dlclose(handle);
        }
        free(list.name[i]);
    }
    free(list.name);
    return found;
}

static void *visit_offered(void *handle, const char *file, const void *row)
{
    (void)file;
    return offered(handle, row);
}

/* Libraries that this file opened: their width says nothing about the program's. `opening` is not 0 while one is not noted yet. */
static _Atomic(void *) opened[16];
static atomic_int opening;

static void note_opened(const void *function)
{
    void *base = base_of(function);
    for (size_t i = 0; i < sizeof opened / sizeof *opened; i++) {
        void *free_place = NULL;
        if (atomic_compare_exchange_strong(&opened[i], &free_place, base) || free_place == base) return;
    }
}

static bool was_opened(const void *base)
{
    for (size_t i = 0; i < sizeof opened / sizeof *opened; i++)
        if (atomic_load(&opened[i]) == base) return true;
    return false;
}

static void *visit_wide(void *handle, const char *file, const void *act)
{
    void *isamax = lookup(handle, "isamax_");
    Dl_info info;
    /* Its own isamax_, not one of a library it needs. */
    if (isamax && dladdr(isamax, &info) && strcmp(info.dli_fname, file) == 0 && !was_opened(info.dli_fbase) && plain_width(handle) == 64) {
        if (act == note_opened) note_opened(isamax);
        else gpb_symbol_stand_aside(file);
    }
    return NULL;
}

static void *open_host(const char *name)
{
    atomic_fetch_add(&opening, 1);
    void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (handle) each_object(visit_wide, note_opened);      /* those that the program had were seen before: gpb_next_look */
    atomic_fetch_sub(&opening, 1);
    return handle;
}

/* The library that GPUBLAS_HOST_BLAS names, opened once; NULL if unset, EMBEDDED_ONLY for the word "embedded". */
static void *named_host(void)
{
    static _Atomic(void *) kept;
    void *handle = atomic_load(&kept);
    const char *path = gpb_option_text(GPB_OPTION_HOST_BLAS);
    if (handle || !path) return handle;
    if (strcmp(path, "embedded") == 0) return EMBEDDED_ONLY;
    handle = open_host(path);
    if (!handle) gpb_log_warn("GPUBLAS_HOST_BLAS: %s; looking for another", dlerror());
    else if (!offered(handle, &gpb_symbol_rows[GPB_SYMBOL_sgemm_]) && !offered(handle, &gpb_symbol_rows[GPB_SYMBOL_sgemm_64_]))
        gpb_log_warn("GPUBLAS_HOST_BLAS: %s exports no BLAS of its own", path);
    atomic_store(&kept, handle);
    return handle;
}

static bool fast(void *handle)
{
#define HOST(soname, which)
#define VENDOR(name) if (dlsym(handle, name)) return true;
#include "src/host.def"
#undef HOST
#undef VENDOR
    return false;
}

/* The known host BLAS from the disk whose GEMM has integers of that width, opened once; NULL if there is none. Of those that do not serve only
   the reference is closed again: OpenBLAS 0.3.21 crashes in its destructor. */
static void *known_host(int width)
{
    enum { ANY, FAST };
    static const struct { const char *soname; int which; } hosts[] = {
#define HOST(soname, which) { soname, which },
#define VENDOR(name)
#include "src/host.def"
#undef HOST
#undef VENDOR
    };
    static _Atomic(void *) kept[2];
    const gpb_symbol_row *gemm = &gpb_symbol_rows[width == 64 ? GPB_SYMBOL_sgemm_64_ : GPB_SYMBOL_sgemm_];
    void *host = atomic_load(&kept[width == 64]);
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts && !host; i++) {
        void *handle = open_host(hosts[i].soname);
        if (!handle) continue;
        if (hosts[i].which == FAST && !fast(handle)) dlclose(handle);
        else if (offered(handle, gemm)) host = handle;
    }
    atomic_store(&kept[width == 64], host ? host : NO_HOST);
    return host == NO_HOST ? NULL : host;
}

static void *search(enum gpb_symbol symbol)
{
    const gpb_symbol_row *row = &gpb_symbol_rows[symbol];
    void *named = named_host();
    if (named == EMBEDDED_ONLY) return row->embedded;
    void *address = named ? offered(named, row) : NULL;
    if (!address) address = lookup(RTLD_NEXT, row->name);
    if (!address && !gpb_symbol_standing_aside()) address = each_object(visit_offered, row);
    if (address) return address;
    /* Never a second BLAS: only where the process has no GEMM of this width but the embedded one. */
    const gpb_symbol_row *gemm = &gpb_symbol_rows[row->width == 64 ? GPB_SYMBOL_sgemm_64_ : GPB_SYMBOL_sgemm_];
    bool has_one = named || gpb_symbol_standing_aside() || each_object(visit_offered, gemm);
    void *host = has_one ? NULL : known_host(row->width);
    if (host) address = offered(host, row);
    return address ? address : row->embedded;
}

static _Atomic(void *) found[GPB_SYMBOLS];

void *gpb_next(enum gpb_symbol symbol)
{
    void *address = atomic_load_explicit(&found[symbol], memory_order_acquire);
    if (address) return address;
    address = search(symbol);
    atomic_store_explicit(&found[symbol], address, memory_order_release);
    gpb_log_debug("%s of the host is in %s", gpb_symbol_rows[symbol].name, gpb_next_file(symbol));
    return address;
}

const char *gpb_next_file(enum gpb_symbol symbol)
{
    Dl_info info;
    void *address = gpb_next(symbol);
    if (address == gpb_symbol_rows[symbol].embedded) return "embedded";
    return dladdr(address, &info) ? info.dli_fname : "?";
}

static int note_changes(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    *(unsigned long long *)out = info->dlpi_adds + info->dlpi_subs;
    return 1;
}

static void *visit_all(void *handle, const char *file, const void *libcuda)
{
    if (strstr(file, "libcuda.so")) *(bool *)libcuda = true;
    return visit_wide(handle, file, NULL);
}

bool gpb_next_look(void)
{
    static _Atomic unsigned long long seen;
    static atomic_bool libcuda;
    unsigned long long now = 0;
    dl_iterate_phdr(note_changes, &now);
    if (now == atomic_load_explicit(&seen, memory_order_acquire) || atomic_load(&opening))
        return atomic_load_explicit(&libcuda, memory_order_relaxed);
    bool here = false;
    each_object(visit_all, &here);
    atomic_store(&libcuda, here);
    dl_iterate_phdr(note_changes, &now);
    atomic_store_explicit(&seen, now, memory_order_release);
    return here;
}
