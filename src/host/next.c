/* SPDX-License-Identifier: MIT */
/* Finds the BLAS behind us, with no configuration. In this order:
   1. the library that GPUBLAS_HOST_BLAS names;
   2. the libraries of the process: the next one (RTLD_NEXT), then any other, however it was loaded (the
      OpenBLAS of the wheels is RTLD_LOCAL, so RTLD_NEXT does not see it);
   3. a known host by soname, only if the process has no BLAS;
   4. the embedded BLAS. It is the first choice in a child whose list of libraries may be half made
      (gpb_linker_spoiled), and serves calls while nothing can be searched (gpb_linker_is_held).
   Each of 1 to 3 is asked for the caller's width of integers first, then for the other width (adapt.c).
   A search gives the same answer again, so two threads may both search and store it.
   Hosts are never opened with RTLD_DEEPBIND, because they must call the program's xerbla_, not their own. */
#include "src/host/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "src/host/adapt.h"
#include "src/host/host_threads.h"
#include "src/host/objects.h"
#include "src/host/probe.h"
#include "src/service/linker.h"
#include "src/service/log.h"
#include "src/service/option.h"
#include "src/service/traps.h"

#define EMBEDDED_ONLY ((void *)1)
#define NO_HOST ((void *)1)

/* ---- searching */

/* A host that we opened may call plain names: netlib's CBLAS and all of LAPACK do. */
static void *open_host(const char *path)
{
    void *handle = gpb_objects_open(path);
    if (handle && gpb_probe_width(handle) == 64) gpb_symbol_ask_callers();
    return handle;
}

/* The library that GPUBLAS_HOST_BLAS names, opened once; NULL if unset, EMBEDDED_ONLY for the word
   "embedded". */
static void *named_host(void)
{
    static _Atomic(void *) kept;
    void *handle = atomic_load(&kept);
    const char *path = gpb_option_text(GPB_OPTION_HOST_BLAS);
    if (handle || !path) return handle;
    if (strcmp(path, "embedded") == 0) return EMBEDDED_ONLY;
    handle = open_host(path);
    if (!handle)
        gpb_log_warn("GPUBLAS_HOST_BLAS cannot be opened (%s); looking for another host BLAS", dlerror());
    else if (!gpb_probe_offered(handle, &gpb_symbol_rows[GPB_SYMBOL_sgemm_])
             && !gpb_probe_offered(handle, &gpb_symbol_rows[GPB_SYMBOL_sgemm_64_]))
        gpb_log_warn("GPUBLAS_HOST_BLAS: %s has no SGEMM of its own", path);
    atomic_store(&kept, handle);
    return handle;
}

/* The known host BLAS on this machine whose GEMM has integers of that width, opened once; NULL if there is
   none. If a host of the other width has been opened, no second one is, so the answer is NULL. */
static void *known_host(int width)
{
    static const struct { const char *soname; int width; } hosts[] = {
#define HOST(soname, width) { soname, width },
#include "src/host/host.def"
#undef HOST
    };
    static _Atomic(void *) kept[2];
    const gpb_symbol_row *gemm = &gpb_symbol_rows[width == 64 ? GPB_SYMBOL_sgemm_64_ : GPB_SYMBOL_sgemm_];
    void *host = atomic_load(&kept[width == 64]), *other = atomic_load(&kept[width != 64]);
    if (!host && other && other != NO_HOST) return NULL;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts && !host; i++) {
        void *handle = hosts[i].width == width ? open_host(hosts[i].soname) : NULL;
        if (handle && gpb_probe_offered(handle, gemm)) host = handle;
    }
    atomic_store(&kept[width == 64], host ? host : NO_HOST);
    return host == NO_HOST ? NULL : host;
}

/* The function of the row in that host. We chose the host, so its functions must be what every caller
   expects. */
static void *known_offered(int width, const gpb_symbol_row *row)
{
    void *host = known_host(width), *address = host ? gpb_probe_offered(host, row) : NULL;
    return address && gpb_probe_hides_result(row, address) ? NULL : address;
}

static void *visit_offered(void *handle, const char *file, const void *row)
{
    (void)file;
    return gpb_probe_offered(handle, row);
}

/* The function of the row in a library that the program brought. */
static void *in_process(const gpb_symbol_row *row)
{
    void *address = gpb_objects_pin(gpb_probe_lookup(RTLD_NEXT, row->name));
    if (address && gpb_probe_width(RTLD_NEXT) != GPB_PROBE_FORWARDS) return address;
    return gpb_objects_find(GPB_OBJECTS_ALL, visit_offered, row);
}

/* While we stand aside, a plain name takes 64-bit integers. It is the next library's, unless the user named a
   host. If the next library lacks it, it is searched under its 64-bit name. */
static void *search_aside(enum gpb_symbol symbol)
{
    const char *name = gpb_symbol_rows[symbol].name;
    void *address = NULL;
    if (!gpb_linker_spoiled() && !named_host()) address = gpb_objects_pin(gpb_probe_lookup(RTLD_NEXT, name));
    return address ? address : gpb_next(symbol + 1);
}

/* A host is opened from the disk only if the process has no GEMM but the embedded one. */
static void *search(enum gpb_symbol symbol, const char **way)
{
    const enum gpb_symbol twin = gpb_adapt_twin(symbol);
    const gpb_symbol_row *row = &gpb_symbol_rows[symbol];
    const gpb_symbol_row *other = twin == symbol ? NULL : &gpb_symbol_rows[twin];
    *way = "the next library of the process, because plain names take 64-bit integers there";
    if (gpb_symbol_standing_aside() && gpb_symbol_plain(symbol)) return search_aside(symbol);
    void *address, *named = gpb_linker_spoiled() ? EMBEDDED_ONLY : named_host();
    *way = named == EMBEDDED_ONLY ? "inside libgpublas" : "named by GPUBLAS_HOST_BLAS";
    if (named == EMBEDDED_ONLY) return row->embedded;
    if (named && (address = gpb_probe_offered(named, row))) return address;
    if (named && other && (address = gpb_probe_offered(named, other))) return gpb_adapt(symbol, address);
    *way = "in the process";
    if ((address = in_process(row))) return address;
    if (other && (address = in_process(other))) return gpb_adapt(symbol, address);
    *way = "inside libgpublas";
    if (named) return row->embedded;
    if (in_process(&gpb_symbol_rows[GPB_SYMBOL_sgemm_])) return row->embedded;
    if (in_process(&gpb_symbol_rows[GPB_SYMBOL_sgemm_64_])) return row->embedded;
    *way = "a known name, opened because the process has no BLAS";
    if ((address = known_offered(row->width, row))) return address;
    if (other && (address = known_offered(other->width, other))) return gpb_adapt(symbol, address);
    *way = "inside libgpublas";
    return row->embedded;
}

/* ---- what was found */

static _Atomic(void *) found[GPB_SYMBOLS];
static _Atomic(const char *) ways[GPB_SYMBOLS];

/* Any routine of Level 3 or LAPACK tells. The embedded C functions call Fortran's names, each of which is
   searched for when it is called. */
static void note_threads(const gpb_symbol_row *row, const void *address)
{
    const bool embedded = address == row->embedded;
    if (!row->door || (embedded && row->language == GPB_LANGUAGE_C)) return;
    gpb_host_threads_find(embedded ? NULL : address);
}

/* For a call that can wait for no search. */
static void *embedded_for_now(enum gpb_symbol symbol)
{
    const bool wide = gpb_symbol_standing_aside() && gpb_symbol_plain(symbol);
    return gpb_symbol_rows[wide ? symbol + 1 : symbol].embedded;
}

void *gpb_next(enum gpb_symbol symbol)
{
    void *address = atomic_load_explicit(&found[symbol], memory_order_acquire);
    if (address) return address;
    if (gpb_linker_is_held()) return embedded_for_now(symbol);
    const int before = errno, cancel = gpb_linker_enter();
    gpb_traps traps;
    gpb_traps_hold(&traps);
    const char *way;
    address = search(symbol, &way);
    note_threads(&gpb_symbol_rows[symbol], gpb_adapt_behind(symbol, address));
    gpb_linker_leave(cancel);
    atomic_store_explicit(&ways[symbol], way, memory_order_relaxed);
    atomic_store_explicit(&found[symbol], address, memory_order_release);
    gpb_log_debug("the host's %s is in %s", gpb_symbol_rows[symbol].name, gpb_next_file(symbol));
    gpb_traps_release(&traps);
    errno = before;
    return address;
}

const char *gpb_next_way(enum gpb_symbol symbol)
{
    gpb_next(symbol);
    return atomic_load_explicit(&ways[symbol], memory_order_relaxed);
}

const char *gpb_next_file(enum gpb_symbol symbol)
{
    Dl_info info;
    void *address = gpb_adapt_behind(symbol, gpb_next(symbol));
    if (address == gpb_symbol_rows[symbol].embedded) return "embedded";
    return dladdr(address, &info) ? info.dli_fname : "?";
}
