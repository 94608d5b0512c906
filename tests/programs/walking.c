/* SPDX-License-Identifier: MIT */
/* Forks while another thread's first calls may walk the list of libraries: every walk takes 30 ms, and
   dl_iterate_phdr holds a lock meanwhile that nobody gives back to a child. The child multiplies. Knows
   nothing of libgpublas. Usage: walking MS: how long after the first call's begin the fork is. Exits with 0
   if the child was right, with 1 if not, with 2 on a usage error. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);

typedef int visitor(struct dl_phdr_info *, size_t, void *);

struct walk {
    visitor *visit;
    void *with;
    int seen;
};

static int visit_slowly(struct dl_phdr_info *info, size_t size, void *of)
{
    struct walk *walk = of;
    if (walk->seen++ == 0) usleep(30000);
    return walk->visit(info, size, walk->with);
}

/* Takes the place of the C library's, for all callers. */
int dl_iterate_phdr(visitor *visit, void *with)
{
    static int (*real)(visitor *, void *);
    struct walk slow = { visit, with, 0 };
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    return real(visit_slowly, &slow);
}

static int is_right(void)
{
    const int n = 2;
    const float x[4] = { 1, 2, 3, 4 }, one = 1, zero = 0;
    float y[4];
    sgemm_("N", "N", &n, &n, &n, &one, x, &n, x, &n, &zero, y, &n);
    return y[0] == 7 && y[3] == 22;
}

static atomic_bool done;

static void *first_calls(void *unused)
{
    while (!atomic_load(&done)) is_right();
    return unused;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    int status = 1;
    if (count != 2 || pthread_create(&thread, NULL, first_calls, NULL)) return 2;
    usleep((useconds_t)atoi(arguments[1]) * 1000);
    const pid_t child = fork();
    if (child == 0) {
        alarm(10);
        _exit(!is_right());
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        fprintf(stderr, "the child ended with %#x\n", (unsigned)status);
    atomic_store(&done, true);
    pthread_join(thread, NULL);
    return status != 0;
}
