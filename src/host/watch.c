/* SPDX-License-Identifier: MIT */
/* Libraries that come and go; see watch.h. */
#include "src/host/watch.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "src/host/next.h"
#include "src/host/objects.h"
#include "src/host/probe.h"
#include "src/service/linker.h"

static atomic_uint changed_scans;        /* scans that found other libraries than the one before */

/* ---- what is here */

typedef struct scan {
    unsigned long long adds, changes;    /* libraries that ever came; that ever came or went */
    unsigned long long here, older;      /* libraries that are here; that were here at the last scan */
    bool libcuda, blas_came;
} scan;

static int count_changes(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    scan *l = out;
    l->adds = info->dlpi_adds;
    l->changes = info->dlpi_adds + info->dlpi_subs;
    l->here = info->dlpi_adds - info->dlpi_subs;
    return 1;
}

static int read_names(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    scan *l = out;
    const char *name = strrchr(info->dlpi_name, '/');
    name = name ? name + 1 : info->dlpi_name;
    if (strncmp(name, "libcuda.so", 10) == 0) l->libcuda = true;
    if (l->older) l->older--;
    else if (strstr(name, "blas") || strstr(name, "blis") || strstr(name, "mkl")) l->blas_came = true;
    return 0;
}

/* ---- plain names with 64-bit integers */

/* isamax_ of a library whose plain names take 64-bit integers, and that defines them itself, not through one
   that it needs. */
static void *visit_wide(void *handle, const char *file, const void *unused)
{
    (void)unused;
    void *isamax = gpb_probe_lookup(handle, "isamax_");
    Dl_info info;
    if (!isamax || !dladdr(isamax, &info) || strcmp(info.dli_fname, file) != 0) return NULL;
    return gpb_probe_width(handle) == 64 ? isamax : NULL;
}

/* If the next library's plain names take 64-bit integers, every caller means that. If those of a library do
   that the program loaded beside others, only callers that need this library mean it.
   Probing enters the dynamic linker, which a thread may hold that waits for this one (in a library's
   constructor). So it is done at a name's first call, which enters the linker anyway; later only if a library
   with the name of a BLAS came. */
static void look_for_wide(unsigned long long came)
{
    Dl_info info;
    const int width = gpb_probe_width(RTLD_NEXT);
    void *isamax = width == 64 ? gpb_probe_lookup(RTLD_NEXT, "isamax_")
                 : width == 32 ? NULL : gpb_objects_find(came, visit_wide, NULL);
    if (isamax && dladdr(isamax, &info)) gpb_symbol_stand_aside(info.dli_fname, width == 64);
}

/* The section of GPB_WATCH_WIDE_DOOR, named by the linker. */
extern const char __start_gpb_wide_doors[] __attribute__((visibility("hidden")));
extern const char __stop_gpb_wide_doors[] __attribute__((visibility("hidden")));

static bool is_wide_door(const void *caller)
{
    return (const char *)caller > __start_gpb_wide_doors && (const char *)caller <= __stop_gpb_wide_doors;
}

static void *wide_in_scope(enum gpb_symbol symbol, const void *caller)
{
    if (is_wide_door(caller)) return gpb_next(symbol + 1);
    void *handle = gpb_objects_scope(caller), *address = NULL;
    if (handle && gpb_probe_width(handle) == 64) {
        address = gpb_objects_pin(gpb_probe_lookup(handle, gpb_symbol_rows[symbol].name));
        if (!address) address = gpb_next(symbol + 1);
    }
    if (handle) dlclose(handle);
    return address;
}

void *gpb_watch_wide(enum gpb_symbol symbol, const void *caller)
{
    /* What was found for a calling place, as long as no library comes or goes. An entry is whole if both
       halves fit. */
    enum { PLACES = 512 };
    static struct { _Atomic uintptr_t check, target; } places[PLACES];
    static char none;
    const uintptr_t golden = 0x9e3779b97f4a7c15u;       /* spreads neighbours: Knuth's multiplicative hash */
    const uintptr_t key = ((uintptr_t)caller << 12 ^ symbol) + atomic_load(&changed_scans) * golden;
    const uintptr_t at = (key * golden >> 32) % PLACES;
    uintptr_t target = atomic_load(&places[at].target);
    if (!target || atomic_load(&places[at].check) != (key ^ target)) {
        const int cancel = gpb_linker_enter();
        void *address = wide_in_scope(symbol, caller);
        gpb_linker_leave(cancel);
        target = (uintptr_t)(address ? address : &none);
        atomic_store(&places[at].target, target);
        atomic_store(&places[at].check, key ^ target);
    }
    return target == (uintptr_t)&none ? NULL : (void *)target;
}

/* ---- scanning */

bool gpb_watch_scan(uint64_t now)
{
    /* Between scans: 130 to 200 us. Opening libcuda and making a context in it take a thousand times as
       long. */
    enum { CYCLES = 400000 };
    static _Atomic unsigned long long seen, seen_adds;
    static _Atomic uint64_t last;
    static atomic_bool libcuda;
    if (gpb_linker_spoiled() || (now && now - atomic_load_explicit(&last, memory_order_relaxed) < CYCLES))
        return atomic_load_explicit(&libcuda, memory_order_relaxed);
    if (now) atomic_store_explicit(&last, now, memory_order_relaxed);
    scan l = { 0 };
    int cancel;
    if (!now) cancel = gpb_linker_enter();
    else if (!gpb_linker_try(&cancel)) return atomic_load(&libcuda);      /* a fork: a later call scans */
    dl_iterate_phdr(count_changes, &l);
    if (l.changes != atomic_load(&seen) && !gpb_objects_opening()) {
        const unsigned long long came = l.adds - atomic_load(&seen_adds);
        l.older = l.here > came ? l.here - came : 0;
        dl_iterate_phdr(read_names, &l);
        const bool looks = (!now || l.blas_came) && !gpb_symbol_standing_aside();
        if (looks && gpb_linker_is_held()) {      /* a later call looks */
            gpb_linker_leave(cancel);
            return atomic_load(&libcuda);
        }
        if (looks) look_for_wide(came);
        atomic_store(&libcuda, l.libcuda);
        atomic_store(&seen_adds, l.adds);
        atomic_store(&seen, l.changes);
        atomic_fetch_add(&changed_scans, 1);
    }
    gpb_linker_leave(cancel);
    return atomic_load(&libcuda);
}
