/* SPDX-License-Identifier: MIT */
/* "Does it work here?": the page that ./libgpublas.so prints when run as a program, and gpublas_report. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dispatch/kernel_table.h"
#include "include/gpublas.h"
#include "src/gpu.h"
#include "src/next.h"
#include "src/option.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC void gpublas_report(int fd)
{
    dprintf(fd, "libgpublas     %s\n", gpublas_version());
    gpb_gpu_report(fd);
    static const struct { const char *what; enum gpb_symbol symbol; } hosts[] = {
        { "Fortran", GPB_SYMBOL_sgemm_ }, { "C", GPB_SYMBOL_cblas_sgemm },
        { "Fortran, 64-bit", GPB_SYMBOL_sgemm_64_ }, { "C, 64-bit", GPB_SYMBOL_cblas_sgemm64_ } };
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        dprintf(fd, "%s%s: %s\n", i ? "               " : "host BLAS      ", hosts[i].what, gpb_next_file(hosts[i].symbol));
    dprintf(fd, "\n");
    gpb_option_print(fd);
    dprintf(fd, "\nkernels, the values of GPUBLAS_KERNEL\n");
    for (int i = 0; i < gpb_kernel_count; i++)
        dprintf(fd, "%2d %-14s %s\n", gpb_kernels[i].step, gpb_kernels[i].name, gpb_kernels[i].idea);
}

/* The ELF entry point. A .so run as a program has a stack as the kernel left it, and none of its constructors were run. */
__attribute__((noreturn, force_align_arg_pointer, visibility("hidden"))) void gpb_doctor(void)
{
    gpublas_report(STDOUT_FILENO);
    exit(EXIT_SUCCESS);
}

/* The program interpreter, which an executable names and a library does not. */
__attribute__((section(".interp"), used)) static const char interpreter[] = "/lib64/ld-linux-x86-64.so.2";
