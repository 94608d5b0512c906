/* SPDX-License-Identifier: MIT */
/* Finds the BLAS behind us, with no configuration. In order: GPUBLAS_HOST_BLAS; the next library of the process (RTLD_NEXT); any other
   library of the process, however it was loaded (the wheels' OpenBLAS is RTLD_LOCAL and RTLD_NEXT does not see it); each of them also with
   integers of the other width (adapt.c); a known host by soname, only if the process has no BLAS; the embedded default. The only
   file besides driver.c that opens libraries.
   A search gives the same answer again, so two threads may both search and store it.
   Never RTLD_DEEPBIND: the host must call the program's xerbla_, not its own. */
#include "src/host/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/adapt.h"
#include "src/service/linker.h"
#include "src/service/log.h"
#include "src/service/option.h"

#define EMBEDDED_ONLY ((void *)1)
#define NO_HOST ((void *)1)

/* The names of the process's libraries, one after the other. */
typedef struct objects {
    size_t size, room, count;
    char *text;
} objects;

static void *base_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

static bool has_own(void *handle, const char *name, const void *base)
{
    void *address = dlsym(handle, name);
    return address && base_of(address) == base;
}

/* The program's own scope has this library: it was preloaded or linked, not opened by somebody. */
static bool is_global(void)
{
    void *program = dlopen(NULL, RTLD_LAZY);
    const bool global = program && has_own(program, "gpublas_version", base_of((void *)gpb_next));
    if (program) dlclose(program);
    return global;
}

/* In this library, in another copy of it, in libblastrampoline, whose names lead to whatever a program (Julia) chose, perhaps us later, or in
   a FlexiBLAS that may have opened us: all would only come back to a door, and FlexiBLAS may not be asked while it opens a library. */
static bool ours(const void *address)
{
    Dl_info info;
    if (!dladdr(address, &info)) return false;
    if (info.dli_fbase == base_of((void *)gpb_next)) return true;
    void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return false;
    const bool back = has_own(handle, "gpublas_version", info.dli_fbase) || has_own(handle, "lbt_forward", info.dli_fbase)
                      || (has_own(handle, "flexiblas_avail", info.dli_fbase) && !is_global());
    dlclose(handle);
    return back;
}

static void *lookup(void *handle, const char *name)
{
    void *address = dlsym(handle, name);
    return address && !ours(address) ? address : NULL;
}

/* Nor is another library that forwards BLAS to us a host: a probe of its isamax_ comes in by our door. */
static _Thread_local bool probing __attribute__((tls_model("initial-exec")));
static _Thread_local bool came_back __attribute__((tls_model("initial-exec")));

int64_t gpb_door_isamax_(const void *n, const float *x, const void *incx);
int64_t gpb_door_isamax_(const void *n, const float *x, const void *incx)      /* returned as the host did, whatever its width */
{
    int64_t (*next)(const void *, const float *, const void *);
    if (probing) return came_back = true;
    *(void **)&next = gpb_next(GPB_SYMBOL_isamax_);
    return next(n, x, incx);
}

/* Bits of the integers behind a library's plain names; 0: it has none that work; FORWARDS: they are ours. isamax_ of n = 2^64 - 2^32 + 3
   is 2 where 32 bits of n are read and 0 where 64 are (the probe of libblastrampoline). */
enum { FORWARDS = -1 };
static int plain_width(void *handle)
{
    union { void *address; int64_t (*call)(const int64_t *, const float *, const int64_t *); } isamax = { lookup(handle, "isamax_") };
    if (!isamax.address) return 0;
    static const float x[] = { 1, 2, 1 };
    const int64_t three = 3, n = (int64_t)0xffffffff00000003, incx = 1;
    probing = true, came_back = false;
    const bool works = (int32_t)isamax.call(&three, x, &incx) == 2;
    const int width = (int32_t)isamax.call(&n, x, &incx) == 2 ? 32 : 64;
    probing = false;
    return came_back ? FORWARDS : works ? width : 0;
}

/* The function of that routine, language and width in a library, under whichever spelling it has: the caller's own first. */
static void *offered(void *handle, const gpb_symbol_row *row)
{
    static const char *const spellings[2][2][3] = {
        { { "%s_", "scipy_%s_", NULL }, { "%s_64_", "scipy_%s_64_", "%s_" } },
        { { "cblas_%s", "scipy_cblas_%s", NULL }, { "cblas_%s64_", "cblas_%s_64", "cblas_%s" } } };
    bool wheel = strncmp(row->name, "scipy_", 6) == 0, plain = row->width == 32 && !wheel;
    int width = plain_width(handle);
    if (width == FORWARDS) return NULL;
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
    list->count++;
    return 0;
}

/* Memory is taken outside of the walk: in the midst of a fork malloc waits for its end, and the linker's lock is held in the walk. */
static objects all_objects(void)
{
    objects list = { 0, 0, 0, NULL };
    for (;;) {
        list.size = list.count = 0;
        dl_iterate_phdr(note_object, &list);
        if (list.size <= list.room) return list;
        free(list.text);
        list.room = 2 * list.size;
        list.text = malloc(list.room);
        if (!list.text) return (objects){ 0, 0, 0, NULL };
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

/* Calls visit with a handle of each library that the program brought, or of the newest of them, in load order, until it returns an
   address. (The names are taken first: dlopen inside dl_iterate_phdr would wait for a lock that it holds.) */
static void *newest_objects(size_t newest, void *(*visit)(void *handle, const char *file, const void *with), const void *with)
{
    const objects list = all_objects();
    size_t older = list.count > newest ? list.count - newest : 0;
    void *found = NULL;
    for (const char *name = NULL; !found && (name = next_object(&list, name));) {
        if (older && older--) continue;
        void *handle = was_opened(name) ? NULL : dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
        if (!handle) continue;
        found = pin(visit(handle, name, with));
        dlclose(handle);
    }
    free(list.text);
    return found;
}

static void *each_object(void *(*visit)(void *handle, const char *file, const void *with), const void *with)
{
    return newest_objects(SIZE_MAX, visit, with);
}

static void *visit_offered(void *handle, const char *file, const void *row)
{
    (void)file;
    return offered(handle, row);
}

/* A library whose plain names take 64-bit integers, and that defines them itself (not one that it needs). */
static void *visit_wide(void *handle, const char *file, const void *unused)
{
    (void)unused;
    void *isamax = lookup(handle, "isamax_");
    Dl_info info;
    return isamax && dladdr(isamax, &info) && strcmp(info.dli_fname, file) == 0 && plain_width(handle) == 64 ? isamax : NULL;
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
    if (!handle) gpb_log_warn("GPUBLAS_HOST_BLAS cannot be opened (%s); looking for another host BLAS", dlerror());
    else if (!offered(handle, &gpb_symbol_rows[GPB_SYMBOL_sgemm_]) && !offered(handle, &gpb_symbol_rows[GPB_SYMBOL_sgemm_64_]))
        gpb_log_warn("GPUBLAS_HOST_BLAS: %s has no SGEMM of its own", path);
    atomic_store(&kept, handle);
    return handle;
}

/* The known host BLAS from the disk whose GEMM has integers of that width, opened once; NULL if there is none. Where that of the other
   width has been opened, there is to be no second one. */
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
        if (handle && offered(handle, gemm)) host = handle;
    }
    atomic_store(&kept[width == 64], host ? host : NO_HOST);
    return host == NO_HOST ? NULL : host;
}

/* It returns a complex number through a hidden first argument, as MKL does by default: whoever links it knows, but a caller for whom we
   chose it does not. To such a function the address of n is the result's, and x's first element, 0, is n. */
static bool hides_result(const gpb_symbol_row *row, void *address)
{
    const size_t length = strlen(row->stem);
    if (row->language != GPB_LANGUAGE_F77 || length != 5 || strncmp(row->stem + 1, "dot", 3) != 0) return false;
    union { void *address; void (*call)(int64_t *, const double *, const int64_t *, const double *, const int64_t *, const int64_t *); }
        dot = { address };
    const int64_t one = 1;
    const double x[2] = { 0 };
    int64_t n[2] = { 1, 1 };
    dot.call(n, x, &one, x, &one, &one);
    return n[0] != 1;
}

/* From that host, which we chose. */
static void *known_offered(int width, const gpb_symbol_row *row)
{
    void *host = known_host(width), *address = host ? offered(host, row) : NULL;
    return address && hides_result(row, address) ? NULL : address;
}

/* As the program brought it. */
static void *in_process(const gpb_symbol_row *row)
{
    void *address = pin(lookup(RTLD_NEXT, row->name));
    if (address && plain_width(RTLD_NEXT) != FORWARDS) return address;
    return each_object(visit_offered, row);
}

/* Standing aside, a plain name is that of the next library, with 64-bit integers, unless the user named another; what this lacks is somebody
   else's or embedded. */
static void *search_aside(enum gpb_symbol symbol)
{
    void *address = named_host() ? NULL : pin(lookup(RTLD_NEXT, gpb_symbol_rows[symbol].name));
    return address ? address : gpb_next(symbol + 1);
}

/* With the caller's integers if there is one, else with the others; from the disk only where the process has no GEMM but the embedded one. */
static void *search(enum gpb_symbol symbol)
{
    const enum gpb_symbol twin = gpb_adapt_twin(symbol);
    const gpb_symbol_row *row = &gpb_symbol_rows[symbol], *other = twin == symbol ? NULL : &gpb_symbol_rows[twin];
    if (gpb_symbol_standing_aside() && gpb_symbol_plain(symbol)) return search_aside(symbol);
    void *address, *named = named_host();
    if (named == EMBEDDED_ONLY) return row->embedded;
    if (named && (address = offered(named, row))) return address;
    if (named && other && (address = offered(named, other))) return gpb_adapt(symbol, address);
    if ((address = in_process(row))) return address;
    if (other && (address = in_process(other))) return gpb_adapt(symbol, address);
    if (named || in_process(&gpb_symbol_rows[GPB_SYMBOL_sgemm_]) || in_process(&gpb_symbol_rows[GPB_SYMBOL_sgemm_64_])) return row->embedded;
    if ((address = known_offered(row->width, row))) return address;
    if (other && (address = known_offered(other->width, other))) return gpb_adapt(symbol, address);
    return row->embedded;
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
    if (address == row->embedded && row->language == GPB_LANGUAGE_C) {        /* it calls the Fortran name */
        gpb_next(row->width == 64 ? GPB_SYMBOL_sgemm_64_ : GPB_SYMBOL_sgemm_);
        return;
    }
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
    note_threads(&gpb_symbol_rows[symbol], gpb_adapt_behind(symbol, address));
    gpb_linker_leave(cancel);
    atomic_store_explicit(&found[symbol], address, memory_order_release);
    gpb_log_debug("the host's %s is in %s", gpb_symbol_rows[symbol].name, gpb_next_file(symbol));
    errno = before;
    return address;
}

const char *gpb_next_file(enum gpb_symbol symbol)
{
    Dl_info info;
    void *address = gpb_adapt_behind(symbol, gpb_next(symbol));
    if (address == gpb_symbol_rows[symbol].embedded) return "embedded";
    return dladdr(address, &info) ? info.dli_fname : "?";
}

/* The function with 64-bit integers that the caller's own library would have found without us. */
static void *wide_in_scope(enum gpb_symbol symbol, const void *caller)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) || !map) return NULL;
    void *handle = dlopen(*map->l_name ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD), *address = NULL;
    if (handle && plain_width(handle) == 64) {
        address = pin(lookup(handle, gpb_symbol_rows[symbol].name));
        if (!address) address = gpb_next(symbol + 1);
    }
    if (handle) dlclose(handle);
    return address;
}

static atomic_uint looks;                    /* that found other libraries than before */

void *gpb_next_wide(enum gpb_symbol symbol, const void *caller)
{
    /* What was found for a place that calls, as long as no library comes or goes. An entry is whole if both halves fit. */
    enum { PLACES = 512 };
    static struct { _Atomic uintptr_t check, target; } places[PLACES];
    static char none;
    const uintptr_t golden = 0x9e3779b97f4a7c15u;       /* spreads neighbours: Knuth's multiplicative hash */
    const uintptr_t key = ((uintptr_t)caller << 12 ^ symbol) + atomic_load(&looks) * golden, at = (key * golden >> 32) % PLACES;
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

typedef struct look {
    unsigned long long adds, changes, here, older;      /* libraries: so many came, came or went, are here, were when last looked */
    bool libcuda, blas_came;
} look;

static int note_changes(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    look *l = out;
    l->adds = info->dlpi_adds;
    l->changes = info->dlpi_adds + info->dlpi_subs;
    l->here = info->dlpi_adds - info->dlpi_subs;
    return 1;
}

static int note_names(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    look *l = out;
    const char *name = strrchr(info->dlpi_name, '/');
    name = name ? name + 1 : info->dlpi_name;
    if (strncmp(name, "libcuda.so", 10) == 0) l->libcuda = true;
    if (l->older) l->older--;
    else if (strstr(name, "blas") || strstr(name, "blis") || strstr(name, "mkl")) l->blas_came = true;
    return 0;
}

/* Plain names with 64-bit integers: those of the next library are everybody's; those of a library that the program loaded beside others
   are for who needs it. It asks the dynamic linker, which a thread may hold that waits for this one (a constructor): at a name's first call
   that is done anyway, later only if a BLAS is among the libraries that came, by its name. */
static void look_for_wide(unsigned long long came)
{
    Dl_info info;
    const int width = plain_width(RTLD_NEXT);
    void *isamax = width == 64 ? lookup(RTLD_NEXT, "isamax_") : width == 32 ? NULL : newest_objects(came, visit_wide, NULL);
    if (isamax && dladdr(isamax, &info)) gpb_symbol_stand_aside(info.dli_fname, width == 64);
}

bool gpb_next_look(uint64_t now)
{
    /* Between looks: 130 to 200 us; opening libcuda and making a context in it take a thousand times as long. */
    enum { CYCLES = 400000 };
    static _Atomic unsigned long long seen, seen_adds;
    static _Atomic uint64_t last;
    static atomic_bool libcuda;
    if (now && now - atomic_load_explicit(&last, memory_order_relaxed) < CYCLES)
        return atomic_load_explicit(&libcuda, memory_order_relaxed);
    if (now) atomic_store_explicit(&last, now, memory_order_relaxed);
    look l = { 0 };
    int cancel;
    if (!now) cancel = gpb_linker_enter();
    else if (!gpb_linker_try(&cancel)) return atomic_load(&libcuda);      /* beside a fork: at a later call */
    dl_iterate_phdr(note_changes, &l);
    if (l.changes != atomic_load(&seen) && !atomic_load(&opening)) {
        const unsigned long long came = l.adds - atomic_load(&seen_adds);
        l.older = l.here > came ? l.here - came : 0;
        dl_iterate_phdr(note_names, &l);
        if ((!now || l.blas_came) && !gpb_symbol_standing_aside()) look_for_wide(came);
        atomic_store(&libcuda, l.libcuda);
        atomic_store(&seen_adds, l.adds);
        atomic_store(&seen, l.changes);
        atomic_fetch_add(&looks, 1);
    }
    gpb_linker_leave(cancel);
    return atomic_load(&libcuda);
}
