/* SPDX-License-Identifier: MIT */
/* A program that uses CUDA itself beside its BLAS, and knows nothing of libgpublas. Usage: cuda WHAT.
   Prints a line a check. Linked with libcuda. With HOST defined: a host BLAS whose sgemm_ calls host_hook
   first. */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "integers.h"

#ifdef HOST
void (*host_hook)(void);
int isamax_(const int *n, const float *x, const int *step)
{
    (void)x;
    (void)step;
    return *n > 0;
}

void sgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const float *alpha,
            const float *x, const int *ldx, const float *y, const int *ldy, const float *beta, float *c,
            const int *ldc)
{
    if (host_hook) host_hook();
    host_hook = NULL;
    for (int j = 0; j < *n; j++)
        for (int i = 0; i < *m; i++) {
            float sum = 0;
            for (int p = 0; p < *k; p++)
                sum += x[*ta == 'N' ? i + p * *ldx : p + i * *ldx]
                       * y[*tb == 'N' ? p + j * *ldy : j + p * *ldy];
            c[i + j * *ldc] = *alpha * sum + (*beta == 0 ? 0 : *beta * c[i + j * *ldc]);
        }
}
#else
typedef unsigned long long address;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuMemAlloc_v2(address *, size_t), cuMemFree_v2(address);
int cuMemAllocManaged(address *, size_t, unsigned), cuMemcpyHtoD_v2(address, const void *, size_t),
    cuMemcpyDtoH_v2(void *, address, size_t);
int cuMemsetD8Async(address, unsigned char, size_t, void *), cuThreadExchangeStreamCaptureMode(int *),
    cuMemGetInfo_v2(size_t *, size_t *);
int cuMemHostRegister_v2(void *, size_t, unsigned), cuStreamSynchronize(void *),
    cuDevicePrimaryCtxGetState(int, unsigned *, int *);

void zherk_(const char *, const char *, const int *, const int *, const double *, const void *, const int *,
            const double *, void *, const int *);

/* Not every BLAS has it. */
typedef void triangular(const char *, const char *, const char *, const int *, const int *, const float *,
                        const float *, const int *, const float *, const int *, const float *, float *,
                        const int *);

static void *enter(int device)
{
    void *context = NULL;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context)) {
        printf("no device %d\n", device);
        exit(77);
    }
    return context;
}

static void times(int n, const float *x, const float *y, float *z)
{
    const float one = 1, zero = 0;
    sgemm_("N", "N", &n, &n, &n, &one, x, &n, y, &n, &zero, z, &n);
}

static bool all(const float *x, size_t count, float value)
{
    for (size_t i = 0; i < count; i++)
        if (x[i] != value) return false;
    return true;
}

/* Managed memory, which the host reaches as well. */
static void managed(void)
{
    enum { LARGE = 1000 };
    address at;
    bool small = true;
    enter(0);
    if (cuMemAllocManaged(&at, 3 * sizeof(float) * LARGE * LARGE, 1)) exit(77);
    float *x = (float *)(uintptr_t)at;
    for (int i = 0; i < 3 * LARGE * LARGE; i++) x[i] = 1;
    for (int i = 0; i < 600; i++) {
        times(4, x, x + 16, x + 32);
        small &= all(x + 32, 16, 4);
    }
    tell(small, "small products of managed memory");
    for (int i = 0; i < 3 * LARGE * LARGE; i++) x[i] = 1;
    for (int i = 0; i < 3; i++) times(LARGE, x, x + LARGE * LARGE, x + 2 * LARGE * LARGE);
    tell(all(x + 2 * LARGE * LARGE, LARGE * LARGE, LARGE), "large products of managed memory");
}

/* While another thread records a graph (FAKECUDA_CAPTURE): operands on the device, for which a call would
   follow the legacy stream, and managed operands. */
static void graph(void)
{
    int mode = 2;
    address device[3], both;
    enter(0);
    cuThreadExchangeStreamCaptureMode(&mode);
    for (int i = 0; i < 3; i++)
        if (cuMemAlloc_v2(&device[i], sizeof a)) exit(77);
    if (cuMemAllocManaged(&both, 3 * sizeof a, 1)) exit(77);
    cuThreadExchangeStreamCaptureMode(&mode);
    float *x = (float *)(uintptr_t)both;
    memcpy(x, a, sizeof a);
    memcpy(x + N * N, b, sizeof b);
    times(N, x, x + N * N, x + 2 * N * N);
    tell(is_right(x + 2 * N * N), "managed memory, beside a graph");
    const float *p[] = { (float *)(uintptr_t)device[0], (float *)(uintptr_t)device[1] };
    times(N, p[0], p[1], (float *)(uintptr_t)device[2]);
    times(N, x, p[1], (float *)(uintptr_t)device[2]);
    tell(true, "device memory, beside a graph");
}

/* Operands of another GPU, with work queued for them there when the call comes. */
static void elsewhere(void)
{
    address x, y;
    bool right = true;
    enter(1);
    if (cuMemAlloc_v2(&x, sizeof a) || cuMemAlloc_v2(&y, sizeof b)) exit(77);
    for (int round = 0; round < 30; round++) {
        cuMemcpyHtoD_v2(x, a, sizeof a);
        cuMemcpyHtoD_v2(y, b, sizeof b);
        cuMemsetD8Async(x, 0, sizeof a, NULL);
        memset(shared_c, 0xff, sizeof shared_c);
        times(N, (float *)(uintptr_t)x, (float *)(uintptr_t)y, shared_c);
        right &= all(shared_c, N * N, 0);
        cuStreamSynchronize(NULL);
    }
    tell(right, "what was queued on the operand's own GPU came first");
}

/* A Hermitian C of another GPU, which nobody but the driver copies: its diagonal becomes real all the same,
   and the infinite imaginary parts that it has are not read. */
static void hermitian(void)
{
    enum { SIDE = 40, DEPTH = 12 };
    static double x[SIDE * DEPTH][2], c[SIDE * SIDE][2], now[SIDE * SIDE][2];
    const int n = SIDE, k = DEPTH;
    const double alpha = 2, beta = 3;
    address there;
    bool diagonal = true, upper = true, lower = true;
    enter(1);
    if (cuMemAlloc_v2(&there, sizeof c)) exit(77);
    for (int i = 0; i < 2 * SIDE * DEPTH; i++) x[i / 2][i % 2] = i % 7 - 3;
    for (int i = 0; i < 2 * SIDE * SIDE; i++) c[i / 2][i % 2] = i % 5 - 2;
    for (int i = 0; i < SIDE; i++) c[i + i * SIDE][1] = 1 / (alpha - 2);
    cuMemcpyHtoD_v2(there, c, sizeof c);
    zherk_("U", "N", &n, &k, &alpha, x, &n, &beta, (void *)(uintptr_t)there, &n);
    cuMemcpyDtoH_v2(now, there, sizeof now);
    for (int at = 0; at < SIDE * SIDE; at++) {
        const int i = at % SIDE, j = at / SIDE;
        double re = 0, im = 0;
        for (int p = 0; p < DEPTH; p++) {
            const double *u = x[i + p * SIDE], *v = x[j + p * SIDE];
            re += u[0] * v[0] + u[1] * v[1];
            im += u[1] * v[0] - u[0] * v[1];
        }
        const bool re_right = now[at][0] == alpha * re + beta * c[at][0];
        if (i == j) diagonal &= re_right && now[at][1] == 0;
        else if (i < j) upper &= re_right && now[at][1] == alpha * im + beta * c[at][1];
        else lower &= now[at][0] == c[at][0] && now[at][1] == c[at][1];
    }
    tell(diagonal, "a real diagonal on another GPU");
    tell(upper, "the triangle");
    tell(lower, "the other one is as it was");
}

/* Pinned columns that lie farther apart than cuMemcpy2D can express. */
static void pitch(void)
{
    const int m = 64, n = 2, k = 2, ld = (1 << 29) + 16;
    const float one = 1, zero = 0, ones[] = { 1, 1, 1, 1 };
    const size_t bytes = sizeof(float) * ((size_t)ld + (size_t)m);
    enter(0);
    float *x = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
          c[2 * 64];
    if (x == MAP_FAILED || cuMemHostRegister_v2(x, bytes, 0)) exit(77);
    for (int i = 0; i < m; i++) {
        x[i] = 1;
        x[i + (size_t)ld] = 2;
    }
    sgemm_("N", "N", &m, &n, &k, &one, x, &ld, ones, &k, &zero, c, &m);
    tell(all(c, 2 * 64, 3), "columns 2 GiB apart");
}

/* Device memory that a call has used and no call needs any more: the program can have it. */
static void hold(void)
{
    enum { LARGE = 2500, DEEP = 16 };
    const int n = LARGE, k = DEEP;
    const float one = 1, zero = 0;
    const size_t wanted = (size_t)100 << 20;
    float *x = malloc(sizeof(float) * LARGE * DEEP), *z = malloc(sizeof(float) * LARGE * LARGE);
    size_t before, after, total;
    address own;
    enter(0);
    cuMemGetInfo_v2(&before, &total);
    for (int i = 0; i < LARGE * DEEP; i++) x[i] = 1;
    sgemm_("N", "N", &n, &n, &k, &one, x, &n, x, &k, &zero, z, &n);
    tell(all(z, (size_t)LARGE * LARGE, DEEP), "a product");
    cuMemGetInfo_v2(&after, &total);
    tell(after < before && cuMemAlloc_v2(&own, wanted) != 0,
         "which leaves the program too little device memory");
    for (int i = 0; i < 50 && cuMemAlloc_v2(&own, wanted); i++)
        nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
    cuMemFree_v2(own);
    cuMemGetInfo_v2(&after, &total);
    tell(before - after < 64 << 10, "until it has been idle for two seconds");
    sgemm_("N", "N", &n, &n, &k, &one, x, &n, x, &k, &zero, z, &n);
    tell(all(z, (size_t)LARGE * LARGE, DEEP), "and another product");
}

static void *computes(void *unused)
{
    tell(multiply(shared_c), "a product");
    return unused;
}

/* The program has chosen its second GPU, by this thread's context or by another thread's. */
static void own(void)
{
    enter(1);
    computes(NULL);
}

static void others(void)
{
    pthread_t thread;
    enter(1);
    if (pthread_create(&thread, NULL, computes, NULL)) abort();
    pthread_join(thread, NULL);
}

/* The program has no context yet and gets one after the product. */
static void later(void)
{
    void *context;
    computes(NULL);
    tell(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, 0) == 0, "the GPU is there for the program");
}

/* A triangle on the device that the host finishes (FAKECUDA_FAIL), while another thread writes the other
   triangle. Here the host BLAS itself plays that thread. */
static address triangle_c;
static void other_triangle(void)
{
    const float seven = 7;
    for (int j = 1; j < N; j++)
        for (int i = 0; i < j; i++)
            cuMemcpyHtoD_v2(triangle_c + sizeof(float) * (size_t)(i + j * N), &seven, sizeof seven);
}

static void triangle(void)
{
    const int n = N;
    const float one = 1, zero = 0;
    void (**hook)(void) = (void (**)(void))dlsym(RTLD_DEFAULT, "host_hook");
    triangular *sgemmtr;
    *(void **)&sgemmtr = dlsym(RTLD_DEFAULT, "sgemmtr_");
    enter(0);
    if (!hook || !sgemmtr || cuMemAlloc_v2(&triangle_c, sizeof a)) exit(77);
    *hook = other_triangle;
    sgemmtr("L", "N", "N", &n, &n, &one, a, &n, b, &n, &zero, (float *)(uintptr_t)triangle_c, &n);
    cuMemcpyDtoH_v2(shared_c, triangle_c, sizeof shared_c);
    bool lower = true, upper = true;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) {
            if (i >= j) lower &= shared_c[i + j * N] == (float)exact[i + j * N];
            else upper &= shared_c[i + j * N] == 7;
        }
    tell(lower, "the triangle");
    tell(upper, "the other one, as another thread has written it meanwhile");
}

/* A GPU that is given up (FAKECUDA_FAIL) in a program that does not use it: nothing of it is kept. */
static void lost(void)
{
    int active = 1;
    unsigned flags;
    for (int i = 0; i < 3; i++) computes(NULL);
    for (int i = 0; i < 50 && active; i++) {
        nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
        if (cuInit(0) || cuDevicePrimaryCtxGetState(0, &flags, &active)) break;
    }
    tell(!active, "the context is gone, and all that was in it");
    computes(NULL);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } what[] = { { "managed", managed }, { "graph", graph }, { "elsewhere", elsewhere }, { "pitch", pitch },
                 { "hold", hold },       { "lost", lost },   { "triangle", triangle },   { "own", own },
                 { "others", others },   { "later", later },     { "hermitian", hermitian } };
    alarm(120);
    fill();
    for (size_t i = 0; i < sizeof what / sizeof *what; i++)
        if (count > 1 && strcmp(arguments[1], what[i].name) == 0) what[i].run();
    return wrong != 0;
}
#endif
