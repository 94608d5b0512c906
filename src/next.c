/* SPDX-License-Identifier: MIT */
/* Finds the BLAS behind us, with no configuration. In order: GPUBLAS_HOST_BLAS; the next library of the process (RTLD_NEXT); any other
   library of the process, however it was loaded (the wheels' OpenBLAS is RTLD_LOCAL and RTLD_NEXT does not see it); a known host by
   soname, only if the process has no BLAS; the embedded default. The only file besides driver.c that opens libraries.
   A search gives the same answer again, so two threads may both search and store it.
   Never RTLD_DEEPBIND: the host must call the program's xerbla_, not its own (research: conformance 6.3). */
#include "src/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/linker.h"
#include "src/log.h"
#include "src/option.h"

#define EMBEDDED_ONLY ((void *)1)
#define NO_HOST ((void *)1)

/* The names of the process's libraries, one after the other. */
typedef struct objects {
    size_t size, room;
    char *text;
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

/* We keep a host's addresses for good, so its library stays, also if the program closes it. */
static void *pin(void *address)
{
    Dl_info info;
    if (address && dladdr(address, &info)) dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    return address;
}

static int note_object(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    objects *list = out;
    const size_t length = strlen(info->dlpi_name) + 1;
    if (length == 1) return 0;
    if (list->size + length <= list->room) memcpy(list->text + list->size, info->dlpi_name, length);
    list->size += length;
    return 0;
}

/* Memory is taken outside of the walk: in the midst of a fork malloc waits for its end, and the linker's lock is held in the walk. */
static objects all_objects(void)
{
    objects list = { 0, 0, NULL };
    for (;;) {
        list.size = 0;
        dl_iterate_phdr(note_object, &list);
        if (list.size <= list.room) return list;
        free(list.text);
        list.room = 2 * list.size;
        list.text = malloc(list.room);
        if (!list.text) return (objects){ 0, 0, NULL };
    }
}

static const char *next_object(const objects *list, const char *name)
{
    name = name ? name + strlen(name) + 1 : list->text;
    return list->size && name < list->text + list->size ? name : NULL;
}

static bool is_among(const objects *list, const char *wanted)
{
    for (const char *name = NULL; (name = next_object(list, name));)
        if (strcmp(name, wanted) == 0) return true;
    return false;
}

/* Libraries that this file brought into the process, by name: they are no part of the program. `opening`: some may not be noted yet. */
enum { MOST_OPENED = 64 };
static char *_Atomic opened[MOST_OPENED];
static atomic_int opening;

static bool was_opened(const char *name)
{
    for (int i = 0; i < MOST_OPENED; i++) {
        const char *own = atomic_load(&opened[i]);
        if (own && strcmp(own, name) == 0) return true;
    }
    return false;
}

/* Calls visit with a handle of each library that the program brought, in load order, until it returns an address. (The names are taken
   first: dlopen inside dl_iterate_phdr would wait for a lock that it holds.) */
static void *each_object(void *(*visit)(void *handle, const char *file, const void *with), const void *with)
{
    const objects list = all_objects();
    void *found = NULL;
    for (const char *name = NULL; !found && (name = next_object(&list, name));) {
        void *handle = was_opened(name) ? NULL : dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
        if (!handle) continue;
        found = pin(visit(handle, name, with));
        dlclose(handle);
    }
    free(list.text);
    return found;
}

/* Standing aside: the plain name of the library whose plain names take 64-bit integers, wherever it was loaded. */
static void *visit_exact_wide(void *handle, const char *file, const void *row)
{
    (void)file;
    return plain_width(handle) == 64 ? lookup(handle, ((const gpb_symbol_row *)row)->name) : NULL;
}

static void *visit_offered(void *handle, const char *file, const void *row)
{
    (void)file;
    return offered(handle, row);
}

/* A library whose plain names take 64-bit integers, that defines them itself (not one that it needs) and that the program brought. */
static void *visit_wide(void *handle, const char *file, const void *unused)
{
    (void)unused;
    void *isamax = lookup(handle, "isamax_");
    Dl_info info;
    if (isamax && dladdr(isamax, &info) && strcmp(info.dli_fname, file) == 0 && plain_width(handle) == 64) gpb_symbol_stand_aside(file);
    return NULL;
}

/* Opens a host; what came with it is marked as ours. It is never closed again: OpenBLAS 0.3.21 crashes in its destructor, and another
   thread may have found an address in it. */
static void *open_host(const char *name)
{
    atomic_fetch_add(&opening, 1);
    const objects before = all_objects();
    void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    const objects after = all_objects();
    int slot = 0;
    for (const char *came = NULL; (came = next_object(&after, came));) {
        if (is_among(&before, came) || was_opened(came)) continue;
        char *none = NULL, *own = strdup(came);
        while (slot < MOST_OPENED && !atomic_compare_exchange_strong(&opened[slot], &none, own)) none = NULL, slot++;
    }
    free(before.text), free(after.text);
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

/* The known host BLAS from the disk whose GEMM has integers of that width, opened once; NULL if there is none. */
static void *known_host(int width)
{
    static const struct { const char *soname; int width; } hosts[] = {
#define HOST(soname, width) { soname, width },
#include "src/host.def"
#undef HOST
    };
    static _Atomic(void *) kept[2];
    const gpb_symbol_row *gemm = &gpb_symbol_rows[width == 64 ? GPB_SYMBOL_sgemm_64_ : GPB_SYMBOL_sgemm_];
    void *host = atomic_load(&kept[width == 64]);
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts && !host; i++) {
        void *handle = hosts[i].width == width ? open_host(hosts[i].soname) : NULL;
        if (handle && offered(handle, gemm)) host = handle;
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
    if (!address) address = pin(lookup(RTLD_NEXT, row->name));
    if (!address) address = each_object(gpb_symbol_standing_aside() ? visit_exact_wide : visit_offered, row);
    if (address) return address;
    /* Never a second BLAS: only where the process has no GEMM of this width but the embedded one. */
    const gpb_symbol_row *gemm = &gpb_symbol_rows[row->width == 64 ? GPB_SYMBOL_sgemm_64_ : GPB_SYMBOL_sgemm_];
    bool has_one = named || gpb_symbol_standing_aside() || each_object(visit_offered, gemm);
    void *host = has_one ? NULL : known_host(row->width);
    if (host) address = offered(host, row);
    return address ? address : row->embedded;
}

static _Atomic(void *) found[GPB_SYMBOLS];

typedef int get_threads(void);           /* BLIS's has 64 bits: the lower ones are read */
static _Atomic(get_threads *) host_threads;

static int one_thread(void) { return 1; }

/* How many threads the host multiplies with: by its own function beside the GEMM that was found in it. */
static void note_threads(const gpb_symbol_row *row, void *address)
{
    static const char *const names[] = { "openblas_get_num_threads", "openblas_get_num_threads64_", "scipy_openblas_get_num_threads",
                                         "scipy_openblas_get_num_threads64_", "MKL_Get_Max_Threads", "bli_thread_get_num_threads" };
    Dl_info info;
    if (strncmp(row->stem, "sgemm", 5) != 0) return;
    union { void *address; get_threads *call; } get = { NULL };
    if (address == row->embedded) get.call = one_thread;
    void *handle = get.call || !dladdr(address, &info) ? NULL : dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    for (size_t i = 0; i < sizeof names / sizeof *names && handle && !get.address; i++) get.address = lookup(handle, names[i]);
    if (handle) dlclose(handle);
    if (get.call) atomic_store(&host_threads, get.call);
}

int gpb_next_threads(void)
{
    get_threads *get = atomic_load_explicit(&host_threads, memory_order_acquire);
    const int count = get ? get() : 0;
    return get && count < 1 ? 1 : count;
}

void *gpb_next(enum gpb_symbol symbol)
{
    void *address = atomic_load_explicit(&found[symbol], memory_order_acquire);
    if (address) return address;
    const int before = errno, cancel = gpb_linker_enter();
    address = search(symbol);
    note_threads(&gpb_symbol_rows[symbol], address);
    gpb_linker_leave(cancel);
    atomic_store_explicit(&found[symbol], address, memory_order_release);
    gpb_log_debug("%s of the host is in %s", gpb_symbol_rows[symbol].name, gpb_next_file(symbol));
    errno = before;
    return address;
}

const char *gpb_next_file(enum gpb_symbol symbol)
{
    Dl_info info;
    void *address = gpb_next(symbol);
    if (address == gpb_symbol_rows[symbol].embedded) return "embedded";
    return dladdr(address, &info) ? info.dli_fname : "?";
}

typedef struct look {
    unsigned long long changes;
    bool libcuda, maybe_wide;
} look;

static int note_changes(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    ((look *)out)->changes = info->dlpi_adds + info->dlpi_subs;
    return 1;
}

static int note_names(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    look *l = out;
    const char *name = strrchr(info->dlpi_name, '/');
    name = name ? name + 1 : info->dlpi_name;
    l->changes = info->dlpi_adds + info->dlpi_subs;
    if (strncmp(name, "libcuda.so", 10) == 0) l->libcuda = true;
    if (strstr(name, "64") && (strstr(name, "blas") || strstr(name, "blis") || strstr(name, "mkl"))) l->maybe_wide = true;
    return 0;
}

bool gpb_next_look(uint64_t now)
{
    /* Between looks: 130 to 200 us; opening libcuda and making a context in it take a thousand times as long. */
    enum { CYCLES = 400000 };
    static _Atomic unsigned long long seen;
    static _Atomic uint64_t last;
    static atomic_bool libcuda;
    if (now && now - atomic_load_explicit(&last, memory_order_relaxed) < CYCLES)
        return atomic_load_explicit(&libcuda, memory_order_relaxed);
    if (now) atomic_store_explicit(&last, now, memory_order_relaxed);
    look l = { 0, false, false };
    int cancel;
    if (!now) cancel = gpb_linker_enter();
    else if (!gpb_linker_try(&cancel)) return atomic_load(&libcuda);      /* beside a fork: at a later call */
    dl_iterate_phdr(note_changes, &l);
    if (l.changes != atomic_load(&seen) && !atomic_load(&opening)) {
        dl_iterate_phdr(note_names, &l);
        if (l.maybe_wide) each_object(visit_wide, NULL);
        atomic_store(&libcuda, l.libcuda);
        atomic_store(&seen, l.changes);
    }
    gpb_linker_leave(cancel);
    return atomic_load(&libcuda);
}
