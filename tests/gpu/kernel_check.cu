/* SPDX-License-Identifier: MIT */
/* Checks every row of gemm.def of the images below on this machine's GPU by the bound of names.h on a grid of
   shapes, then times it. Links nothing of the library. test_kernels and tests/bench cover the other rows.
   nvcc -std=c++17 -O3 -I. -arch=native tests/gpu/kernel_check.cu -o kernel_check && ./kernel_check
   [KERNEL] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <vector>
#include "kernels/spack.cu"
#include "kernels/sgemm_ladder.cu"
#include "kernels/sgemm_async.cu"
#include "kernels/sgemm_tf32.cu"
#include "kernels/sgemm_ffma.cu"

struct row {
    const char *name, *image;
    const void *function;
    gpb_math math;
    gpb_form form;
    int bm, bn, bk, threads, smem;
};
#define GPB_COMMA ,
#define GPB_MINE_sgemm_ladder ~, KEEP
#define GPB_MINE_sgemm_async ~, KEEP
#define GPB_MINE_sgemm_tf32 ~, KEEP
#define GPB_MINE_sgemm_ffma ~, KEEP
static const row rows[] = {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    GPB_ONLY(image)                                                                                         \
    ({ #name, #image, (const void *)GPB_GEMM_SYMBOL(p, name), GPB_MATH_##math, GPB_FORM_##form, bm, bn, bk, \
       threads, smem } GPB_COMMA)
#include "kernels/gemm.def"
};

static void check(cudaError_t e, int line)
{
    if (e != cudaSuccess) {
        printf("line %d: %s\n", line, cudaGetErrorString(e));
        exit(1);
    }
}
#define CHECK(call) check(call, __LINE__)

static unsigned long long seed = 1;
static unsigned draw()
{
    return (unsigned)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33);
}
static float real() { return (float)draw() / (1u << 30) - 1; }
static int64_t up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

template <class T>
static void launch(const void *function, int64_t tiles, int64_t batch, int threads, int smem, const T &args)
{
    void *parameters[] = { (void *)&args };
    CHECK(cudaLaunchKernel(function, dim3((unsigned)tiles, 1, (unsigned)GPB_GRID_Z(batch)), dim3(threads),
                           parameters, smem, 0));
}

/* A device buffer that grows. */
struct buffer {
    char *at = nullptr;
    size_t size = 0;
    char *need(size_t bytes)
    {
        if (bytes > size) {
            CHECK(cudaDeviceSynchronize());
            CHECK(cudaFree(at));
            CHECK(cudaMalloc(&at, size = bytes + bytes / 2));
        }
        return at;
    }
};
static buffer pa, pb, pc, items_at;

static bool can_share(const row &r) { return !strcmp(r.image, "sgemm_ffma"); }

/* The launch of the kernel itself. How k is shared out: not; several rounds, and parts that reach over tiles'
   ends; many parts a tile. The counters are zero after it, or the next one is wrong. */
static void launch_gemm(const row &r, gpb_gemm_args g, int how)
{
    static buffer partials, counters;
    const int64_t tiles = GPB_TILES(g.m, g.n, r.bm, r.bn);
    const int64_t units = tiles * g.batch;
    const int64_t k_tiles = (g.k + r.bk - 1) / r.bk;
    int64_t blocks = 0;
    if (how == 1) blocks = std::max<int64_t>(2, units * 2 / 5);
    if (how == 2) blocks = std::min(5 * units - 1, (int64_t)GPB_MAX_STREAMK_BLOCKS);
    const int64_t tiles_shared = std::min(units, blocks ? units % blocks + blocks : 0);
    if (!blocks || !g.k || g.alpha[0] == 0 || blocks > GPB_MAX_STREAMK_BLOCKS
        || tiles_shared * k_tiles < blocks) {
        launch(r.function, tiles, g.batch, r.threads, r.smem, g);
        return;
    }
    if (!counters.at)
        CHECK(cudaMemset(counters.need(GPB_MAX_STREAMK_BLOCKS * 4), 0, GPB_MAX_STREAMK_BLOCKS * 4));
    g.streamk_tiles = (unsigned)tiles_shared;
    g.streamk_blocks = (unsigned)blocks;
    g.counters = (uint32_t *)counters.at;
    g.partials = partials.need(2 * blocks * r.bm * r.bn * 4);
    launch(r.function, blocks + units - tiles_shared, 1, r.threads, r.smem, g);
}

/* The product as the host will run it: PADDED rows through packing, PADDED_C also through unpacking. */
static void multiply(const row &r, gpb_gemm_args g, int how)
{
    const gpb_gemm_args called = g;
    std::vector<gpb_gemm_item> items(g.items ? g.batch : 0);
    std::vector<void *> single(items.size() * 3);
    void **at[3] = {};
    if (g.items) {
        CHECK(cudaMemcpy(items.data(), g.items, items.size() * sizeof items[0], cudaMemcpyDeviceToHost));
        for (size_t l = 0; l < items.size(); l++) {
            single[l] = (void *)items[l].a;
            single[items.size() + l] = (void *)items[l].b;
            single[2 * items.size() + l] = items[l].c;
        }
        at[0] = (void **)items_at.need(single.size() * sizeof(void *));
        CHECK(cudaMemcpy(at[0], single.data(), single.size() * sizeof(void *), cudaMemcpyHostToDevice));
        at[1] = at[0] + items.size();
        at[2] = at[1] + items.size();
    }
    if (r.form != GPB_FORM_STRIDED) {
        const int64_t m = up(g.m, r.bm), n = up(g.n, r.bn), k = up(g.k, r.bk);
        gpb_pack_args a = { g.a, g.rsa, g.csa, g.m, g.k, pa.need(std::max<int64_t>(1, m * k) * g.batch * 4),
                            m, m, k, g.batch, g.stride_a, m * k, at[0] };
        gpb_pack_args b = { g.b, g.rsb, g.csb, g.k, g.n, pb.need(std::max<int64_t>(1, k * n) * g.batch * 4),
                            k, k, n, g.batch, g.stride_b, k * n, at[1] };
        if (g.k) {
            launch((const void *)gpb_spack, GPB_TILES(m, k, GPB_PACK_TILE, GPB_PACK_TILE), g.batch,
                   GPB_PACK_THREADS, 0, a);
            launch((const void *)gpb_spack, GPB_TILES(k, n, GPB_PACK_TILE, GPB_PACK_TILE), g.batch,
                   GPB_PACK_THREADS, 0, b);
        }
        g.a = a.dst;
        g.b = b.dst;
        g.rsa = g.rsb = 1;
        g.csa = m;
        g.csb = std::max<int64_t>(k, 4);
        g.stride_a = m * k;
        g.stride_b = k * n;
        for (auto &item : items) {
            item.a = (float *)g.a + (&item - items.data()) * g.stride_a;
            item.b = (float *)g.b + (&item - items.data()) * g.stride_b;
        }
        if (r.form == GPB_FORM_PADDED_C) {
            g.c = pc.need(m * n * g.batch * 4);
            g.ldc = m;
            g.stride_c = m * n;
            g.beta[0] = 0;
            g.items = NULL;
            CHECK(cudaMemset(g.c, 255, m * n * g.batch * 4));
        }
        if (g.items)
            CHECK(cudaMemcpy((void *)g.items, items.data(), items.size() * sizeof items[0],
                             cudaMemcpyHostToDevice));
    }
    launch_gemm(r, g, how);
    if (r.form == GPB_FORM_PADDED_C) {
        gpb_unpack_args home = { g.m, g.n, g.c, g.ldc, called.c, called.ldc, { called.beta[0] }, 0, 0,
                                 g.batch, g.stride_c, called.stride_c, at[2], 'G' };
        launch((const void *)gpb_sunpack, GPB_TILES(g.m, g.n, GPB_PACK_TILE, GPB_PACK_TILE), g.batch,
               GPB_PACK_THREADS, 0, home);
    }
    CHECK(cudaGetLastError());
}

/* A product with its operands as plain dense matrices op(A), op(B), C of `batch` members, and what must come
   out. */
struct problem {
    int64_t m, n, k, batch;
    float alpha, beta;
    std::vector<float> a, b, c;
    std::vector<double> right, weight, old;     /* alpha AB + beta C; |alpha||A||B|; |beta C| */
};

static problem pose(int64_t m, int64_t n, int64_t k, int64_t batch, float alpha, float beta, bool special)
{
    problem p = { m, n, k, batch, alpha, beta };
    p.a.resize(m * k * batch);
    p.b.resize(k * n * batch);
    p.c.resize(m * n * batch);
    p.right.resize(m * n * batch);
    p.weight.resize(m * n * batch);
    p.old.resize(m * n * batch);
    for (float &x : p.a) x = real();
    for (float &x : p.b) x = real();
    for (float &x : p.c) x = beta == 0 ? NAN : real();
    if (special && k) {
        p.a[draw() % p.a.size()] = INFINITY;
        p.a[draw() % p.a.size()] = NAN;
        p.b[draw() % p.b.size()] = -INFINITY;
        p.b[draw() % p.b.size()] = 1e-41f;      /* a denormal */
    }
    for (int64_t l = 0; l < batch; l++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < m; i++) {
                double sum = 0, weight = 0;
                const float *a = &p.a[l * m * k], *b = &p.b[l * k * n];
                if (alpha != 0)
                    for (int64_t q = 0; q < k; q++) {
                        double product = (double)a[i + q * m] * b[q + j * k];
                        sum += product;
                        weight += fabs(product);
                    }
                int64_t x = i + j * m + l * m * n;
                p.old[x] = beta == 0 ? 0 : (double)beta * p.c[x];
                p.right[x] = (k && alpha != 0 ? alpha * sum : 0) + p.old[x];
                p.weight[x] = weight != 0 ? fabs(alpha) * weight : 0;
            }
    return p;
}

/* One way to lay a problem out in memory. */
struct layout {
    bool trans_a, trans_b, items;
    int pad;                                     /* extra rows of every leading dimension */
    int shift;                                   /* elements off the alignment */
    int how;                                     /* see launch_gemm */
};

/* Runs it and returns the worst |error| / bound, or infinity for anything else wrong. */
static double run(const row &r, const problem &p, const layout &y)
{
    static buffer da, db, dc, ditems;
    const int64_t m = p.m, n = p.n, k = p.k, guard = 64;
    const int64_t lda = (y.trans_a ? k : m) + y.pad, ldb = (y.trans_b ? n : k) + y.pad, ldc = m + y.pad;
    const int64_t size_a = lda * (y.trans_a ? m : k) + 3;
    const int64_t size_b = ldb * (y.trans_b ? k : n) + 5;
    const int64_t size_c = ldc * n + (y.pad ? 7 : 0);
    std::vector<float> a(size_a * p.batch + 2 * guard, NAN), b(size_b * p.batch + 2 * guard, NAN);
    std::vector<float> c(size_c * p.batch + 2 * guard), got(c.size());
    for (float &x : c) x = real();
    const int64_t base = guard + y.shift;
    for (int64_t l = 0; l < p.batch; l++) {
        for (int64_t q = 0; q < k; q++) {
            for (int64_t i = 0; i < m; i++)
                a[base + l * size_a + (y.trans_a ? q + i * lda : i + q * lda)] = p.a[l * m * k + i + q * m];
            for (int64_t j = 0; j < n; j++)
                b[base + l * size_b + (y.trans_b ? j + q * ldb : q + j * ldb)] = p.b[l * k * n + q + j * k];
        }
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < m; i++) c[base + l * size_c + i + j * ldc] = p.c[l * m * n + i + j * m];
    }
    float *fa = (float *)da.need(a.size() * 4);
    float *fb = (float *)db.need(b.size() * 4);
    float *fc = (float *)dc.need(c.size() * 4);
    CHECK(cudaMemcpy(fa, a.data(), a.size() * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(fb, b.data(), b.size() * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(fc, c.data(), c.size() * 4, cudaMemcpyHostToDevice));
    gpb_gemm_args g = { m, n, k, fa + base, y.trans_a ? lda : 1, y.trans_a ? 1 : lda, fb + base,
                        y.trans_b ? ldb : 1, y.trans_b ? 1 : ldb, fc + base, ldc, { p.alpha }, { p.beta },
                        p.batch, size_a, size_b, size_c, NULL };
    if (y.items) {
        std::vector<gpb_gemm_item> items;
        for (int64_t l = 0; l < p.batch; l++)
            items.push_back({ fa + base + l * size_a, fb + base + l * size_b, fc + base + l * size_c });
        g.items = (gpb_gemm_item *)ditems.need(items.size() * sizeof items[0]);
        CHECK(cudaMemcpy((void *)g.items, items.data(), items.size() * sizeof items[0],
                         cudaMemcpyHostToDevice));
        g.a = g.b = g.c = NULL;
    }
    multiply(r, g, y.how);
    CHECK(cudaMemcpy(got.data(), fc, c.size() * 4, cudaMemcpyDeviceToHost));

    double worst = 0;
    const double u = ldexp(1, -24), relative = (k + 4) * u + (r.math == GPB_MATH_TF32 ? ldexp(1, -9) : 0);
    for (int64_t l = 0; l < p.batch; l++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < m; i++) {
                int64_t at = base + l * size_c + i + j * ldc, x = i + j * m + l * m * n;
                double right = p.right[x];
                double error = fabs(got[at] - right);
                double bound = relative * p.weight[x] + 2 * u * fabs(p.old[x]) + 1e-44 * (k + 1);
                if (isnan(right) || isinf(right))
                    worst = (isnan(right) ? isnan(got[at]) : got[at] == right) ? worst : INFINITY;
                else
                    worst = isnan(error) ? INFINITY : std::max(worst, error / bound);
                c[at] = got[at];                 /* what is left is to be as it was */
            }
    return memcmp(c.data(), got.data(), c.size() * 4) ? INFINITY : worst;
}

static double test(const row &r, const std::vector<problem> &problems, int &runs)
{
    double worst = 0;
    for (size_t x = 0; x < problems.size(); x++)
        for (int each = 0; each < (can_share(r) ? 12 : 4); each++) {
            const int trans = each % 4;
            const problem &p = problems[x];
            const layout y = {
                (trans & 1) != 0,       (trans & 2) != 0,           p.batch > 1 && (x + trans) % 2,
                (int)((x + trans) % 5), (int)((x / 3 + trans) % 4), each / 4
            };
            double ratio = run(r, p, y);
            runs++;
            if (!(ratio <= 1) && worst <= 1)
                printf("  %s: m %ld n %ld k %ld batch %ld alpha %g beta %g trans %d%d items %d pad %d shift "
                       "%d shared %d: ratio %g\n",
                       r.name, (long)p.m, (long)p.n, (long)p.k, (long)p.batch, p.alpha, p.beta, y.trans_a,
                       y.trans_b, y.items, y.pad, y.shift, y.how, ratio);
            worst = std::max(worst, ratio);
        }
    return worst;
}

/* Columns 2^29 elements apart: offsets pass 2^31. A, B and C share one reservation, each with rows of its
   own. */
static double test_far(const row &r)
{
    const int64_t m = 130, n = 7, k = 6, ld = (int64_t)1 << 29, part = 1 << 20;
    static char *at;
    size_t free_bytes, total, bytes = (ld * (n - 1) + 4 * part) * 4;
    CHECK(cudaMemGetInfo(&free_bytes, &total));
    if (!at && free_bytes < bytes + (1u << 30))
        return -1;
    if (!at)
        CHECK(cudaMalloc(&at, bytes));
    problem p = pose(m, n, k, 1, 1.5f, 0.5f, false);
    float *a = (float *)at, *b = a + part, *c = b + part;
    CHECK(cudaMemcpy2D(a, ld * 4, p.a.data(), m * 4, m * 4, k, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2D(b, ld * 4, p.b.data(), k * 4, k * 4, n, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2D(c, ld * 4, p.c.data(), m * 4, m * 4, n, cudaMemcpyHostToDevice));
    multiply(r, { m, n, k, a, 1, ld, b, 1, ld, c, ld, { p.alpha }, { p.beta }, 1, 0, 0, 0, NULL }, 0);
    std::vector<float> got(m * n);
    CHECK(cudaMemcpy2D(got.data(), m * 4, c, ld * 4, m * 4, n, cudaMemcpyDeviceToHost));
    double worst = 0, relative = (k + 4) * ldexp(1, -24) + (r.math == GPB_MATH_TF32 ? ldexp(1, -9) : 0);
    for (size_t x = 0; x < got.size(); x++) {
        double ratio = fabs(got[x] - p.right[x]) / (relative * p.weight[x] + ldexp(1, -23) * fabs(p.old[x]));
        worst = isnan(ratio) ? INFINITY : std::max(worst, ratio);
    }
    return worst;
}

/* TFLOP/s of the kernel alone, NN, n a multiple of every tile. */
static double speed(const row &r, int64_t n, float *a, float *b, float *c)
{
    gpb_gemm_args g = { n, n, n, a, 1, n, b, 1, n, c, n, { 1 }, { 0 }, 1, 0, 0, 0, NULL };
    cudaEvent_t from, to;
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    std::vector<float> ms;
    for (int x = 0; x < 9; x++) {
        float t;
        CHECK(cudaEventRecord(from));
        launch(r.function, GPB_TILES(n, n, r.bm, r.bn), 1, r.threads, r.smem, g);
        CHECK(cudaEventRecord(to));
        CHECK(cudaEventSynchronize(to));
        CHECK(cudaEventElapsedTime(&t, from, to));
        if (x >= 2)
            ms.push_back(t);
    }
    std::sort(ms.begin(), ms.end());
    CHECK(cudaEventDestroy(from));
    CHECK(cudaEventDestroy(to));
    return 2e-9 * n * n * n / ms[ms.size() / 2];
}

int main(int argc, char **argv)
{
    std::vector<problem> problems;
    const int64_t sizes[] = { 1, 2, 3, 17, 31, 33, 64, 65, 127, 128, 129, 255, 256, 257 };
    const int count = sizeof sizes / sizeof *sizes;
    const float alphas[] = { 1, -0.75f, 1.5f }, betas[] = { 0, 1, 0.5f };
    int x = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++, x++)
            if ((i + j) % 2 == 0 || i == j + 1)
                problems.push_back(pose(sizes[i], sizes[j], sizes[(i * 5 + j * 3 + 1) % count],
                                        x % 4 == 3 && sizes[i] < 200 ? 3 : 1, alphas[x % 3], betas[x / 2 % 3],
                                        x % 7 == 0));
    problems.push_back(pose(300, 200, 100, 1, 1, 0, false));
    problems.push_back(pose(300, 200, 100, 2, 0.5f, 0.5f, true));
    problems.push_back(pose(128, 128, 1000, 1, 1, 1, false));
    for (int64_t k : { 0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 24, 31, 32, 33, 47, 48, 49 })
        problems.push_back(pose(129, 66, k, 1, 1.25f, k % 2 ? 0.5f : 0, false));
    problems.push_back(pose(50, 40, 0, 3, NAN, 0.5f, false));
    problems.push_back(pose(50, 40, 30, 1, 0, 0.5f, true));
    problems.push_back(pose(1, 1, 3, 70000, 1, 0.5f, false));
    problems.push_back(pose(650, 520, 700, 1, 1.5f, 0.5f, false));

    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    printf("%s, %d SMs\n%-15s %5s %5s %6s  %-5s %6s %9s %9s   TFLOP/s at 1024    2048    4096\n", device.name,
           device.multiProcessorCount, "kernel", "regs", "local", "shared", "right", "runs", "ratio", "far");
    const int64_t big = 4096;
    std::vector<float> noise(big * big);
    for (float &v : noise) v = real();
    float *a, *b, *c;
    CHECK(cudaMalloc(&a, big * big * 4));
    CHECK(cudaMalloc(&b, big * big * 4));
    CHECK(cudaMalloc(&c, big * big * 4));
    CHECK(cudaMemcpy(a, noise.data(), big * big * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b, noise.data(), big * big * 4, cudaMemcpyHostToDevice));
    int failed = 0;
    for (const row &r : rows) {
        if (argc > 1 && strcmp(argv[1], r.name))
            continue;
        cudaFuncAttributes f;
        CHECK(cudaFuncGetAttributes(&f, r.function));
        if (r.smem)
            CHECK(cudaFuncSetAttribute(r.function, cudaFuncAttributeMaxDynamicSharedMemorySize, r.smem));
        int runs = 0, blocks = 0;
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, r.function, r.threads, r.smem));
        double ratio = test(r, problems, runs), far = test_far(r);
        bool right = ratio <= 1 && far <= 1
            && f.localSizeBytes <= 64; /* more means that the main loop spills */
        if (can_share(r) && blocks < GPB_FFMA_BLOCKS(r.bm, r.bn, r.threads)) {
            printf("  %s: %d blocks a multiprocessor, dispatch/streamk.c counts on %d\n", r.name, blocks,
                   GPB_FFMA_BLOCKS(r.bm, r.bn, r.threads));
            right = false;
        }
        failed += !right;
        printf("%-15s %5d %5zu %6zu  %-5s %6d %9.3g %9.3g %18.2f %7.2f %7.2f\n", r.name, f.numRegs,
               f.localSizeBytes, f.sharedSizeBytes + r.smem, right ? "yes" : "NO", runs, ratio, far,
               speed(r, 1024, a, b, c), speed(r, 2048, a, b, c), speed(r, 4096, a, b, c));
        fflush(stdout);
    }
    printf("%s\n", failed ? "FAILED" : "all right");
    return failed != 0;
}
