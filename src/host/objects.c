/* SPDX-License-Identifier: MIT */
/* The libraries of the process; see objects.h. */
#include "src/host/objects.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- the names of all libraries */

/* One name after the other, each with its final zero. */
typedef struct names {
    size_t size, room, count;
    char *text;
} names;

static int add_name(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    names *list = out;
    const size_t length = strlen(info->dlpi_name) + 1;
    if (length == 1) return 0;
    if (list->size + length <= list->room) memcpy(list->text + list->size, info->dlpi_name, length);
    list->size += length;
    list->count++;
    return 0;
}

/* Memory is allocated outside of the walk, because the walk holds the linker's lock, and during a fork malloc
   waits until the fork is over. */
static names all_names(void)
{
    names list = { 0, 0, 0, NULL };
    for (;;) {
        list.size = list.count = 0;
        dl_iterate_phdr(add_name, &list);
        if (list.size <= list.room) return list;
        free(list.text);
        list.room = 2 * list.size;
        list.text = malloc(list.room);
        if (!list.text) return (names){ 0, 0, 0, NULL };
    }
}

static const char *next_name(const names *list, const char *name)
{
    name = name ? name + strlen(name) + 1 : list->text;
    return list->size && name < list->text + list->size ? name : NULL;
}

static bool is_among(const names *list, const char *wanted)
{
    for (const char *name = NULL; (name = next_name(list, name));)
        if (strcmp(name, wanted) == 0) return true;
    return false;
}

/* ---- libraries of ours */

/* The names of those that this file brought into the process. They are not part of the program. */
enum { MAX_OPENED = 64 };
static char *_Atomic opened[MAX_OPENED];
static atomic_int opening;               /* calls of gpb_objects_open under way: `opened` may lack a name */

bool gpb_objects_opening(void) { return atomic_load(&opening); }

static bool was_opened(const char *name)
{
    for (int i = 0; i < MAX_OPENED; i++) {
        const char *own = atomic_load(&opened[i]);
        if (own && strcmp(own, name) == 0) return true;
    }
    return false;
}

/* Never closed again, because OpenBLAS 0.3.21 crashes in its destructor, and because another thread may have
   found an address in it. */
void *gpb_objects_open(const char *name)
{
    atomic_fetch_add(&opening, 1);
    const names before = all_names();
    void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    const names after = all_names();
    int slot = 0;
    for (const char *came = NULL; (came = next_name(&after, came));) {
        if (is_among(&before, came) || was_opened(came)) continue;
        char *none = NULL, *own = strdup(came);
        while (slot < MAX_OPENED && !atomic_compare_exchange_strong(&opened[slot], &none, own)) {
            none = NULL;
            slot++;
        }
    }
    free(before.text);
    free(after.text);
    atomic_fetch_sub(&opening, 1);
    return handle;
}

/* ---- the library of an address. dladdr also looks for the nearest symbol, among 9,000 of OpenBLAS's: 40 to
   60 us, eight times for each name at its first call. A walk over 200 libraries takes 3. */

typedef struct holder { uintptr_t address, base; const char *name; } holder;

static int holds(struct dl_phdr_info *info, size_t size, void *out)
{
    (void)size;
    holder *of = out;
    uintptr_t first = UINTPTR_MAX;
    bool inside = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD) continue;
        if (begin < first) first = begin;
        inside |= of->address - begin < part->p_memsz;
    }
    if (!inside) return 0;
    of->base = first;
    of->name = info->dlpi_name;
    return 1;
}

static holder holder_of(const void *address)
{
    holder of = { .address = (uintptr_t)address };
    dl_iterate_phdr(holds, &of);
    return of;
}

uintptr_t gpb_objects_base(const void *address) { return holder_of(address).base; }

/* ---- handles */

/* The program itself has no name, and needs no handle. */
static void *open_again(const void *address, int flags)
{
    const holder of = holder_of(address);
    return of.name && *of.name ? dlopen(of.name, RTLD_LAZY | RTLD_NOLOAD | flags) : NULL;
}

void *gpb_objects_pin(void *address)
{
    if (address) open_again(address, RTLD_NODELETE);
    return address;
}

void *gpb_objects_holding(const void *address) { return open_again(address, 0); }

void *gpb_objects_scope(const void *code)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(code, &info, (void **)&map, RTLD_DL_LINKMAP) || !map) return NULL;
    const char *file = *map->l_name ? map->l_name : NULL;      /* NULL: the program itself */
    return dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
}

/* The names are copied first, because dlopen inside dl_iterate_phdr would wait for a lock that the walk
   holds. */
void *gpb_objects_find(size_t newest, gpb_objects_visitor *visit, const void *with)
{
    const names list = all_names();
    size_t older = list.count > newest ? list.count - newest : 0;
    void *found = NULL;
    for (const char *name = NULL; !found && (name = next_name(&list, name));) {
        if (older && older--) continue;
        void *handle = was_opened(name) ? NULL : dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
        if (!handle) continue;
        found = gpb_objects_pin(visit(handle, name, with));
        dlclose(handle);
    }
    free(list.text);
    return found;
}
