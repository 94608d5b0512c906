/* SPDX-License-Identifier: MIT */
/* Addresses of the host; see host_memory.h. The operating system keeps these three areas for the program, and
   a driver that needs addresses for device memory maps them elsewhere. Any other mapping proves nothing,
   because it may have been replaced by CUDA's memory since. */
#include "src/gpu/host_memory.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/service/descriptor.h"

typedef struct area {
    uintptr_t from, to;
} area;

enum { AREAS = 4 };
static area data[AREAS];                 /* writable segments of the program */
static uintptr_t heap;                   /* where the brk area begins */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool is_within(area of, uintptr_t at) { return at - of.from < of.to - of.from; }

/* The program's headers are where the kernel says, or the dynamic linker where it was started by hand.
   dl_iterate_phdr has them too, but under a lock that stays held for ever in the child of a fork beside it. A
   program without PT_PHDR lies where it was linked. */
static void note_data(void)
{
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    const size_t number = headers ? getauxval(AT_PHNUM) : 0;
    uintptr_t moved = 0;
    int count = 0;
    for (size_t i = 0; i < number; i++)
        if (headers[i].p_type == PT_PHDR) moved = (uintptr_t)headers - headers[i].p_vaddr;
    for (size_t i = 0; i < number && count < AREAS; i++) {
        const uintptr_t from = moved + headers[i].p_vaddr;
        if (headers[i].p_type == PT_LOAD && (headers[i].p_flags & PF_W))
            data[count++] = (area){ from, from + headers[i].p_memsz };
    }
}

/* start_brk: the 47th field of /proc/self/stat (man 5 proc), the 45th after the name, which ends with the
   last parenthesis. */
static uintptr_t start_of_heap(void)
{
    char text[1024], *at;
    int file = gpb_descriptor_open("/proc/self/stat", O_RDONLY, 0);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[length < 0 ? 0 : length] = 0;
    at = strrchr(text, ')');
    for (int field = 0; at && field < 45; field++) at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

/* open and read are cancellation points, but a BLAS call must not be one. */
static void find(void)
{
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    note_data();
    heap = start_of_heap();
    if (!heap) heap = (uintptr_t)sbrk(0);      /* addresses below stay unknown */
    pthread_setcancelstate(cancel, NULL);
}

/* Of the main thread glibc reads /proc/self/maps. */
static area stack_of_thread(void)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t bytes = 0;
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    const int failed = pthread_getattr_np(pthread_self(), &attributes);
    pthread_setcancelstate(cancel, NULL);
    if (failed) return (area){ 0, 0 };
    pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_destroy(&attributes);
    return (area){ (uintptr_t)low, (uintptr_t)low + bytes };
}

/* True for the part of this thread's stack between here and its top. A program that switches stacks itself is
   not on its thread's stack: then nothing is known. */
static bool is_on_stack(uintptr_t at)
{
    static _Thread_local area stack __attribute__((tls_model("initial-exec")));
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!stack.to) stack = stack_of_thread();
    return is_within(stack, here) && at >= here && at < stack.to;
}

static bool is_data(uintptr_t at)
{
    for (int i = 0; i < AREAS; i++)
        if (is_within(data[i], at)) return true;
    return false;
}

bool gpb_host_memory(const void *const *pointers, int count)
{
    pthread_once(&once, find);
    const area brk = { heap, (uintptr_t)sbrk(0) };
    for (int i = 0; i < count; i++) {
        const uintptr_t at = (uintptr_t)pointers[i];
        if (!is_within(brk, at) && !is_data(at) && !is_on_stack(at)) return false;
    }
    return true;
}

/* The operating system copies the signal set before it looks at `how`, which is invalid here: so the result
   is EFAULT or EINVAL. None of our pages is touched, and a container's seccomp filter allows the call. It
   reads the aligned eight bytes around the address, because these lie in one page and an operand may be the
   last of a mapping. */
bool gpb_host_readable(const void *pointer)
{
    const int before = errno;
    const uintptr_t at = (uintptr_t)pointer / 8 * 8;
    const bool readable = !at || syscall(SYS_rt_sigprocmask, ~0, at, NULL, (size_t)8) == 0 || errno != EFAULT;
    errno = before;
    return readable;
}
