/* SPDX-License-Identifier: MIT */
/* "Does it work here?": the verdict and the report that ./libgpublas.so prints when it is run as a program,
   and gpublas_report. */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dispatch/kernel_table.h"
#include "include/gpublas.h"
#include "dispatch/policy.h"
#include "src/gpu/gpu.h"
#include "src/host/next.h"
#include "src/service/json.h"
#include "src/service/option.h"

#define PUBLIC __attribute__((visibility("default")))

/* The usual name of the host BLAS in that file. The file's own name tells, or the folder that Debian's
   alternatives link to. */
static const char *name_host(const char *file)
{
    static const struct { const char *in_path, *name; } known[] = {
        { "flexiblas", "FlexiBLAS" }, { "openblas", "OpenBLAS" }, { "blis", "BLIS" }, { "mkl", "MKL" },
        { "embedded", "the embedded BLAS" } };
    static char path[PATH_MAX];
    if (!realpath(file, path)) snprintf(path, sizeof path, "%s", file);
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    for (int whole = 0; whole < 2; whole++)
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (strstr(whole ? path : base, known[i].in_path)) return known[i].name;
    return base;
}

/* One line that says whether it works. False: something is wrong, and a second line says what to do. */
static bool judge(char *text, size_t size)
{
    const char *host = name_host(gpb_next_file(GPB_SYMBOL_sgemm_)), *gpu = NULL;
    int arch = 0;
    const int gpus = gpb_gpu_count(&gpu, &arch);
    if (arch) {
        snprintf(text, size,
                 "does not work: none of its kernels run on the GPU %s; calls go to %s\n"
                 "               build it with -DGPUBLAS_ARCHS=%d, or without that option for every GPU",
                 gpu, host, arch);
    } else if (!gpus && gpb_gpu_lost()) {
        snprintf(text, size,
                 "does not work: the GPU cannot be used (%s); calls go to %s unchanged\n"
                 "               nvidia-smi should list it, and GPUBLAS_DEVICES should not leave it out",
                 gpb_gpu_why(), host);
    } else if (!gpus) {
        snprintf(text, size, "no GPU here: calls go to %s unchanged", host);
    } else if (gpb_option_number(GPB_OPTION_OFFLOAD) == GPB_OFFLOAD_NEVER) {
        snprintf(text, size,
                 "works, but GPUBLAS_OFFLOAD=never: calls go to %s unchanged, and not to the GPU %s", host,
                 gpu);
    } else if (gpus > 1) {
        snprintf(text, size, "works: %d GPUs, the first %s, host BLAS %s", gpus, gpu, host);
    } else {
        snprintf(text, size, "works: GPU %s, host BLAS %s", gpu, host);
    }
    return !arch && (gpus || !gpb_gpu_lost());
}

enum { VERDICT = PATH_MAX + 1024 };

static const struct host { const char *what; enum gpb_symbol symbol; } hosts[] = {
    { "Fortran", GPB_SYMBOL_sgemm_ }, { "C", GPB_SYMBOL_cblas_sgemm },
    { "Fortran, 64-bit", GPB_SYMBOL_sgemm_64_ }, { "C, 64-bit", GPB_SYMBOL_cblas_sgemm64_ },
    { "LAPACK", GPB_SYMBOL_dgetrf_ }, { "LAPACK, 64-bit", GPB_SYMBOL_dgetrf_64_ } };

static void print_hosts(int fd, bool all)
{
    const char *file = gpb_next_file(GPB_SYMBOL_sgemm_);
    if (!all)
        dprintf(fd, "host BLAS      %s (a program that brings a BLAS, as NumPy does, keeps its own)\n", file);
    if (strcmp(file, "embedded") == 0)
        dprintf(fd, "               it is slow: install OpenBLAS (Debian: libopenblas0-pthread),\n"
                    "               or name a BLAS in GPUBLAS_HOST_BLAS\n");
    for (size_t i = 0; all && i < sizeof hosts / sizeof *hosts; i++)
        dprintf(fd, "%s%s: %s\n", i ? "               " : "host BLAS      ", hosts[i].what,
                gpb_next_file(hosts[i].symbol));
}

static bool report(int fd, bool all)
{
    char verdict[VERDICT];
    const bool good = judge(verdict, sizeof verdict);
    dprintf(fd, "%s\n", verdict);
    dprintf(fd, "libgpublas     %s\n", GPUBLAS_VERSION);
    gpb_gpu_report(fd, all);
    print_hosts(fd, all);
    if (!all) {
        gpb_option_print_set(fd);
        return good;
    }
    dprintf(fd, "\n");
    gpb_option_print(fd);
    dprintf(fd, "\nkernels, the values of GPUBLAS_KERNEL\n");
    for (int i = 0; i < gpb_kernel_count; i++)
        dprintf(fd, "%2d %c %-14s %s\n", gpb_kernels[i].step, gpb_type_of(gpb_kernels[i].type)->letter,
                gpb_kernels[i].name, gpb_kernels[i].idea);
    return good;
}

PUBLIC void gpublas_report(int fd)
{
    report(fd, true);
}

/* ---- the same as JSON */

static void put_hosts(int fd)
{
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        dprintf(fd, "%s\n  {\"interface\": \"%s\", \"file\": ", i ? "," : "", hosts[i].what);
        gpb_json_string(fd, gpb_next_file(hosts[i].symbol));
        dprintf(fd, ", \"found\": \"%s\"}", gpb_next_way(hosts[i].symbol));
    }
}

static void put_kernels(int fd)
{
    for (int i = 0; i < gpb_kernel_count; i++) {
        dprintf(fd, "%s\n  {\"name\": \"%s\", \"type\": \"%c\", \"step\": %d, \"idea\": ", i ? "," : "",
                gpb_kernels[i].name, gpb_type_of(gpb_kernels[i].type)->letter, gpb_kernels[i].step);
        gpb_json_string(fd, gpb_kernels[i].idea);
        dprintf(fd, "}");
    }
}

static void put_routines(int fd)
{
    static const struct { const char *stem, *types, *arguments; } rows[] = {
#define ARGUMENTS(stem, types, arguments) { #stem, types, arguments },
#include "src/host/arguments.def"
#undef ARGUMENTS
    };
    const char *comma = "";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (const char *type = rows[i].types; *type; type++, comma = ",")
            dprintf(fd,
                    "%s\n  {\"name\": \"%c%s\", \"stem\": \"%s\", \"type\": \"%c\", \"arguments\": \"%s\"}",
                    comma, *type, rows[i].stem, rows[i].stem, *type, rows[i].arguments);
}

static bool put_json(int fd)
{
    char verdict[VERDICT], path[PATH_MAX];
    const bool good = judge(verdict, sizeof verdict);
    dprintf(fd, "{\"gpublas\": \"%s\", \"works\": %s, \"verdict\": ", GPUBLAS_VERSION,
            good ? "true" : "false");
    gpb_json_string(fd, verdict);
    dprintf(fd, ",\n ");
    gpb_gpu_print_json(fd);
    dprintf(fd, ",\n \"hosts\": [");
    put_hosts(fd);
    dprintf(fd, "],\n \"calibration\": ");
    gpb_json_string(fd, gpb_option_calibration(path, sizeof path) ? path : NULL);
    dprintf(fd, ",\n \"options\": ");
    gpb_option_print_json(fd);
    dprintf(fd, ",\n \"kernels\": [");
    put_kernels(fd);
    dprintf(fd, "],\n \"routines\": [");
    put_routines(fd);
    dprintf(fd, "]}\n");
    return good;
}

static void print_help(const char *self)
{
    dprintf(STDOUT_FILENO,
            "libgpublas %s: a BLAS whose large products, and LAPACK's solvers, run on an NVIDIA GPU.\n"
            "All other calls go to the host's BLAS.\n\n"
            "LD_PRELOAD=%s PROGRAM: runs a program with it\n"
            "%s: says whether it works here\n"
            "%s --all: also lists every option and kernel; --json: the same as JSON\n\n"
            "Options are environment variables:\n\n",
            GPUBLAS_VERSION, self, self, self);
    gpb_option_print(STDOUT_FILENO);
}

/* `stack` is what the operating system and ld.so leave for a program's entry: the number of arguments, then
   the arguments. */
__attribute__((noreturn, used)) static void examine(const long *stack)
{
    char *const *arguments = (char *const *)(stack + 1);
    const char *self = stack[0] > 0 ? arguments[0] : "libgpublas.so",
               *what = stack[0] > 1 ? arguments[1] : "";
    if (strcmp(what, "--help") == 0) {
        print_help(self);
        exit(EXIT_SUCCESS);
    }
    const bool all = strcmp(what, "--all") == 0, json = strcmp(what, "--json") == 0;
    if (stack[0] > 2 || (*what && !all && !json)) {
        dprintf(STDERR_FILENO, "usage: %s [--all|--json|--help]\n", self);
        exit(2);
    }
    const bool good = json ? put_json(STDOUT_FILENO) : report(STDOUT_FILENO, all);
    if (!all && !json)
        dprintf(STDOUT_FILENO, "more           --all: every option and kernel; --help: how to use it\n");
    exit(good ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* The ELF entry point. The stack is as the operating system left it, and no constructor of this library has
   run. */
__attribute__((naked, noreturn, visibility("hidden"))) void gpb_doctor(void)
{
    __asm__("xorl %ebp, %ebp\n\t"
            "movq %rsp, %rdi\n\t"
            "andq $-16, %rsp\n\t"
            "call examine");
}

/* The program interpreter. An executable names one, a library usually does not. */
__attribute__((section(".interp"), used)) static const char interpreter[] = "/lib64/ld-linux-x86-64.so.2";
