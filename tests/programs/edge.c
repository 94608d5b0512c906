/* SPDX-License-Identifier: MIT */
/* A child of a process that has used its GPU. Its operands are at the edge of what may be asked: the last
   four bytes of a mapping, and pages that a handler provides on demand. Its small calls make no system
   call. Nothing here knows of libgpublas. Prints a line a check. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integers.h"

static void provide(int signal, siginfo_t *about, void *unused)
{
    (void)signal, (void)unused;
    mprotect((void *)((uintptr_t)about->si_addr / 4096 * 4096), 4096, PROT_READ | PROT_WRITE);
}

static float scalar(const float *x, const float *y, float *z)
{
    const int n = 1;
    const float one = 1, zero = 0;
    sgemm_("N", "N", &n, &n, &n, &one, x, &n, y, &n, &zero, z, &n);
    return *z;
}

static void last_of_a_mapping(void)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    float *x = (float *)(void *)(pages + 4092), three = 3, result = -1;
    munmap(pages + 4096, 4096);
    *x = 2;
    tell(scalar(x, &three, &result) == 6, "an operand that is the last of its mapping");
}

static void on_demand(void)
{
    const struct sigaction action = { .sa_sigaction = provide, .sa_flags = SA_SIGINFO };
    float three = 3, *result = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &action, NULL);
    tell(scalar(&three, &three, result) == 9, "a page that comes on demand");
}

/* From now on any system call but exit ends the process. (Strict mode would not do, because it also
   forbids rdtsc.) */
static void forbid_system_calls(void)
{
    struct sock_filter filter[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
                                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS) };
    const struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void no_system_calls(void)
{
    float *x = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool right = true;
    for (int i = 0; i < 3; i++) x[i] = 2;
    scalar(x, x + 1, x + 2);
    pid_t child = fork();
    if (child == 0) {
        scalar(x, x + 1, x + 2);
        forbid_system_calls();
        for (int i = 0; i < 1000; i++) {
            x[2] = -1;
            right &= scalar(x, x + 1, x + 2) == 4;
        }
        syscall(SYS_exit, right ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    tell(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a thousand small calls without a system call");
}

int main(void)
{
    fill();
    tell(multiply(shared_c), "in the parent");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        last_of_a_mapping();
        on_demand();
        no_system_calls();
        fflush(stdout);
        _exit(wrong != 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status);
}
