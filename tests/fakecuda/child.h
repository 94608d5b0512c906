/* SPDX-License-Identifier: MIT */
/* For tests that call libcuda themselves. Each test runs in a child, because FAKECUDA_* are read once and
   cuInit cannot be undone. */
#ifndef GPB_CHILD_H
#define GPB_CHILD_H

#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* WRONG: the data differ, which a test may want to see. */
enum { GPB_CHILD_OK = 0, GPB_CHILD_WRONG = 3, GPB_CHILD_BROKEN = 4 };

/* In a child: ends it if the condition does not hold. */
static inline void gpb_child_expect(bool holds, const char *what, int line)
{
    if (holds)
        return;
    fprintf(stderr, "line %d: %s\n", line, what);
    _exit(GPB_CHILD_BROKEN);
}
#define EXPECT(condition) gpb_child_expect(condition, #condition, __LINE__)

/* Runs body in a child with environment = { name, value, ..., NULL }. Returns its exit status, or 128 + the
   signal. */
static inline int gpb_child_run(int (*body)(void), const char *const *environment)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        for (; environment && *environment; environment += 2)
            setenv(environment[0], environment[1], 1);
        exit(body());
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Runs body with seeds 1 to count. Returns how many of them gave GPB_CHILD_WRONG, or -1 if one ended in a way
   other than that or OK. */
static inline int gpb_child_wrong_seeds(int (*body)(void), int count)
{
    int wrong = 0;
    for (int seed = 1; seed <= count; seed++) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        int status = gpb_child_run(body, (const char *[]){ "FAKECUDA_SEED", text, NULL });
        if (status != GPB_CHILD_OK && status != GPB_CHILD_WRONG)
            return -1;
        wrong += status == GPB_CHILD_WRONG;
    }
    return wrong;
}

/* Starts a device and makes its primary context current. */
static inline CUcontext gpb_child_start(void)
{
    CUcontext context;
    EXPECT(cuInit(0) == CUDA_SUCCESS);
    EXPECT(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    EXPECT(cuCtxPushCurrent(context) == CUDA_SUCCESS);
    return context;
}

static inline CUdeviceptr gpb_child_device(size_t bytes)
{
    CUdeviceptr at = 0;
    EXPECT(cuMemAlloc(&at, bytes) == CUDA_SUCCESS);
    return at;
}

static inline CUdeviceptr gpb_child_upload(const void *from, size_t bytes)
{
    CUdeviceptr at = gpb_child_device(bytes);
    EXPECT(cuMemcpyHtoD(at, from, bytes) == CUDA_SUCCESS);
    return at;
}

/* Not inlined, because gcc 12 would warn of a dangling `at` in every caller. */
__attribute__((noinline, unused)) static void *gpb_child_pinned(size_t bytes)
{
    void *at = NULL;
    EXPECT(cuMemHostAlloc(&at, bytes, 0) == CUDA_SUCCESS);
    return at;
}

static inline CUstream gpb_child_stream(unsigned flags)
{
    CUstream stream;
    EXPECT(cuStreamCreate(&stream, flags) == CUDA_SUCCESS);
    return stream;
}

static inline CUfunction gpb_child_kernel(const char *symbol)
{
    CUmodule module;
    CUfunction function;
    EXPECT(cuModuleLoadData(&module, "any image") == CUDA_SUCCESS);
    EXPECT(cuModuleGetFunction(&function, module, symbol) == CUDA_SUCCESS);
    return function;
}

#endif
