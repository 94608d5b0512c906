/* SPDX-License-Identifier: MIT */
/* The first product, and more, of a process that is short of something. Knows nothing of libgpublas.
   Usage: limits memlock|nofile|nproc|as [KIB]|stack [KIB]|seccomp. Exits with 1 if a product was wrong, 2
   if the limit cannot be set here. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "integers.h"

static bool limit(int what, rlim_t most)
{
    return setrlimit(what, &(struct rlimit){ most, most }) == 0;
}

static void *compute(void *unused)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one);
    for (int i = 0; i < 3; i++) tell(multiply(shared_c), "in a thread");
    pthread_mutex_unlock(&one);
    return unused;
}

/* 128 KiB is the stack of musl's threads and of many thread pools. */
static void small_stacks(int kib)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)kib << 10);
    if (pthread_create(&thread, &attributes, compute, NULL)) exit(2);
    pthread_join(thread, NULL);
}

/* System calls that Docker's default profile refuses and that a library of this kind might use (moby,
   profiles/seccomp/default.json). */
static bool as_docker(void)
{
    static const int refused[] = { SYS_userfaultfd, SYS_perf_event_open, SYS_mbind, SYS_get_mempolicy,
                                   SYS_set_mempolicy, SYS_move_pages, SYS_migrate_pages, SYS_process_vm_readv,
                                   SYS_process_vm_writev, SYS_ptrace, SYS_kcmp, SYS_keyctl, SYS_add_key,
                                   SYS_bpf, SYS_unshare, SYS_setns, SYS_mount, SYS_io_uring_setup,
                                   SYS_personality };
    enum { COUNT = sizeof refused / sizeof *refused };
    struct sock_filter filter[COUNT + 3] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                      offsetof(struct seccomp_data, nr)) };
    for (int i = 0; i < COUNT; i++)
        filter[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)refused[i],
                                                     (unsigned char)(COUNT - i), 0);
    filter[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    const struct sock_fprog program = { COUNT + 3, filter };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
           && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 && syscall(SYS_unshare, 0) < 0
           && errno == EPERM;
}

/* Limits the address space to what the process has now, plus `room` KiB. (OpenBLAS 0.3.21 waits for ever
   for 32 MiB of its own.) */
static bool no_more_addresses(int room)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld", &pages) != 1) return false;
    fclose(file);
    return limit(RLIMIT_AS, (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)room << 10))
           && mmap(NULL, ((size_t)room << 10) + (1 << 20), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                  == MAP_FAILED;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const bool threads = strcmp(what, "stack") == 0;
    bool set = threads;
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(60);
    fill();
    printf("%s\n", what);
    if (strcmp(what, "memlock") == 0) set = limit(RLIMIT_MEMLOCK, 0);
    if (strcmp(what, "nofile") == 0) set = limit(RLIMIT_NOFILE, 0) && dup(1) < 0;
    if (strcmp(what, "nproc") == 0) {                /* root has no such limit */
        pthread_t thread;
        set = (getuid() || setuid(65534) == 0) && limit(RLIMIT_NPROC, 0)
              && pthread_create(&thread, NULL, compute, NULL) == EAGAIN;
    }
    if (strcmp(what, "as") == 0) set = no_more_addresses(argc > 2 ? atoi(argv[2]) : 512);
    if (strcmp(what, "seccomp") == 0) set = as_docker();
    if (!set) return 2;
    if (threads) small_stacks(argc > 2 ? atoi(argv[2]) : 128);
    for (int i = 0; i < 3 && !threads; i++) tell(multiply(shared_c), what);
    return wrong > 0;
}
