/* SPDX-License-Identifier: MIT */
/* The stores of the kernels whose products need Hopper's instructions, SLICED and MAPPED, as compiled for the
   GPU, on the CPU (emulate.h): sums are made up, one number for each element of C. All of C and either
   triangle, of a Hermitian matrix, too; every tile that a launch computes. Each element that C has is
   stored, with alpha and beta, and nothing else is written. And the tiles of sliced/mma.cuh. */
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/sliced/store.cuh"
/* Of the bodies, which are not run, shared memory is only declared. */
#pragma push_macro("__shared__")
#undef __shared__
#define __shared__ static
#include "kernels/mapped/product.cuh"
#undef __shared__
#define __shared__
#include "kernels/sliced/mma.cuh"
#pragma pop_macro("__shared__")

using complex = std::complex<double>;
static int failures, launches;
static gpb_gemm_args g;

/* The sum of row i and column j: a small integer, and so exact in every type. */
static double re_of(int64_t i, int64_t j) { return (double)((i * 31 + j * 17) % 512 - 200); }
static double im_of(int64_t i, int64_t j) { return (double)((i * 13 + j * 29) % 256 - 100); }

static double number(const float *x, int) { return *x; }
static double number(const double *x, int) { return *x; }
static double number(const float2 *x, int part) { return part ? x->y : x->x; }
static double number(const double2 *x, int part) { return part ? x->y : x->x; }

/* C, with a column more than it has and rows beyond, and what was there before. */
template <class T> struct matrix {
    std::vector<T> room, before;
    int64_t ld;
    matrix(int64_t n, int off) : room((size_t)((n + 5) * (n + 1)) + 4), ld(off ? n + 5 : (n + 3) / 4 * 4)
    {
        std::mt19937 numbers(5);
        float *at = (float *)room.data();
        for (size_t x = 0; x < room.size() * sizeof(T) / 4; x++) at[x] = 0;
        for (T &x : room) fill(x, numbers);
        before = room;
    }
    static void fill(float &x, std::mt19937 &numbers) { x = (float)(numbers() % 64); }
    static void fill(double &x, std::mt19937 &numbers) { x = (double)(numbers() % 64); }
    static void fill(float2 &x, std::mt19937 &numbers)
    {
        x = make_float2((float)(numbers() % 64), (float)(numbers() % 64));
    }
    static void fill(double2 &x, std::mt19937 &numbers)
    {
        x = make_double2((double)(numbers() % 64), (double)(numbers() % 64));
    }
};

/* Compares all that there is. */
template <class T> static const char *judge(const matrix<T> &c, int64_t n, int off)
{
    const complex alpha(g.alpha[0], g.alpha[1]), beta(g.beta[0], g.hermitian ? 0 : g.beta[1]);
    for (size_t x = 0; x < c.room.size(); x++) {
        const int64_t at = (int64_t)x - off, i = at < 0 ? n : at % c.ld, j = at < 0 ? n : at / c.ld;
        const complex old(number(&c.before[x], 0), GPB_IS_COMPLEX<T> ? number(&c.before[x], 1) : 0);
        const bool has = i < n && j < n && (!g.uplo || (g.uplo == 'U' ? i <= j : i >= j));
        complex wanted = old;
        if (has) wanted = alpha * complex(re_of(i, j), GPB_IS_COMPLEX<T> ? im_of(i, j) : 0) + beta * old;
        if (has && g.hermitian && i == j) wanted = wanted.real();
        if (number(&c.room[x], 0) != wanted.real()) return has ? "a value" : "beside C";
        if (GPB_IS_COMPLEX<T> && number(&c.room[x], 1) != wanted.imag()) return "an imaginary part";
    }
    return NULL;
}

static void report(const char *what, const char *kernel, int64_t n)
{
    launches++;
    if (!what) return;
    if (failures++ < 20)
        printf("WRONG: %s, n = %ld, triangle %c%s, beta %g: %s\n", kernel, (long)n, g.uplo ? g.uplo : 'G',
               g.hermitian ? " (Hermitian)" : "", g.beta[0], what);
}

template <class T> static void describe(matrix<T> &c, int64_t n, int off, int way)
{
    g = gpb_gemm_args();
    g.m = g.n = n;
    g.k = 32;
    g.c = c.room.data() + off;
    g.ldc = c.ld;
    g.alpha[0] = 2;
    g.beta[0] = way % 2 ? 0.5 : 0;
    g.batch = 1;
    g.uplo = "\0UL"[way / 2 % 3];
    g.hermitian = GPB_IS_COMPLEX<T> && g.uplo && way / 6 % 2;
    g.alpha[1] = GPB_IS_COMPLEX<T> && !g.hermitian ? -1 : 0;
    g.beta[1] = GPB_IS_COMPLEX<T> && !g.hermitian && way % 2 ? 1 : 0;
}

/* ---- MAPPED */

template <class shape, gpb_along A, gpb_along B> static void mapped_thread()
{
    if (threadIdx.x < GPB_MAPPED_PRODUCER) return;
    using lanes = gpb_lanes<typename shape::type, A, B>;
    const bool is_complex = GPB_IS_COMPLEX<typename shape::type>;
    const gpb_origin at = gpb_mapped_origin<shape>(g, 0);
    double sum[shape::NB][4 * shape::MB];
    for (int y = 0; y < shape::NB; y++)
        for (int x = 0; x < shape::MB; x++)
            for (int c = 0; c < 4; c++) {              /* columns of c[0] and c[1]; of c[2] another row, or */
                const int64_t i = at.i0 + shape::warp_i() + lanes::row(x, c / 2),     /* imaginary parts */
                              j = at.j0 + shape::warp_j() + lanes::col(y, c % 2);
                const double im = g.conj_a ? -im_of(i, j) : im_of(i, j);
                sum[y][4 * x + c] = is_complex && c / 2 ? im : re_of(i, j);
            }
    gpb_mapped_store_any<shape, A, B>(g, at, 0, sum);
}

template <class shape, gpb_along A, gpb_along B> static void mapped(const char *name, int64_t n)
{
    using T = typename shape::type;
    gpb_emulate_cluster = shape::SHARERS;
    for (int way = 0; way < (GPB_IS_COMPLEX<T> ? 12 : 6); way++)
        for (int off = 0; off < 2; off++) {
            matrix<T> c(n, off);
            describe(c, n, off, way);
            g.conj_a = GPB_IS_COMPLEX<T> && way % 5 == 0;
            const unsigned caps = shape::SHARERS == 2 ? GPB_CAP_PAIRS : GPB_CAP_NONE;
            const int64_t blocks = GPB_MAPPED_BLOCKS(g.uplo, n, n, shape::BM, shape::BN, caps);
            const int faults = gpb_emulate_run({ mapped_thread<shape, A, B>, { (unsigned)blocks, 1, 1 },
                                                 shape::THREADS, true, false, {}, {} });
            report(faults ? "as said above" : judge(c, n, off), name, n);
        }
}

template <class shape> static void mapped_orders(const char *name)
{
    for (int64_t n : { 1, 66, 131, 300 }) {
        mapped<shape, GPB_MAPPED_EDGE, GPB_MAPPED_EDGE>(name, n);
        mapped<shape, GPB_MAPPED_EDGE, GPB_MAPPED_K>(name, n);
        mapped<shape, GPB_MAPPED_K, GPB_MAPPED_EDGE>(name, n);
        mapped<shape, GPB_MAPPED_K, GPB_MAPPED_K>(name, n);
    }
}

/* ---- SLICED */

/* Tiles are ROW_BM x BN elements, of which a thread's warp has 16 rows of the real product. */
template <class T, int ROW_BM, int BN> static void sliced_thread()
{
    constexpr int REALS = GPB_REALS<T>, BM = REALS * ROW_BM;
    const unsigned tiles_m = (unsigned)((g.n + ROW_BM - 1) / ROW_BM);
    const int64_t first = blockIdx.x % tiles_m * BM, j0 = blockIdx.x / tiles_m * BN;
    const int row = threadIdx.x / 32 * 16, lane = threadIdx.x % 32;
    float sum[BN / 2];
    for (int x = 0; x < BN / 2; x++) {
        const int64_t i = first + row + lane / 4 + x % 4 / 2 * 8, j = j0 + x / 4 * 8 + lane % 4 * 2 + x % 2,
                      of = REALS == 2 ? gpb_sliced_complex_row(i) : i;
        sum[x] = (float)(REALS == 2 && i / 8 % 2 ? im_of(of, j) : re_of(of, j));
    }
    gpb_store_strip<T, BM, BN, 2>(g, 0, first, row, j0, sum);
}

template <class T, int ROW_BM, int BN> static void sliced(const char *name, int64_t n)
{
    constexpr int REALS = GPB_REALS<T>;
    std::vector<char> a(gpb_sliced_bytes(REALS * n, 32, 2)), b(gpb_sliced_bytes(n, 32, 2));
    for (int64_t i = 0; i < gpb_sliced_rows(REALS * n); i++)
        ((float *)(a.data() + gpb_sliced_scales(REALS * n, 32, 2)))[i] = 1;
    for (int64_t j = 0; j < gpb_sliced_rows(n); j++)
        ((float *)(b.data() + gpb_sliced_scales(n, 32, 2)))[j] = 1;
    for (int way = 0; way < 12; way++)
        for (int off = 0; off < 2; off++) {
            matrix<T> c(n, off);
            describe(c, n, off, way);
            g.m = REALS * n;
            g.a = a.data();
            g.b = b.data();
            const unsigned blocks = (unsigned)(GPB_TILES(n, n, ROW_BM, BN));
            const int faults = gpb_emulate_run({ sliced_thread<T, ROW_BM, BN>, { blocks, 1, 1 },
                                                 REALS * ROW_BM / 16 * 32, true, false, {}, {} });
            report(faults ? "as said above" : judge(c, n, off), name, n);
        }
}

/* ---- the tiles of sliced/mma.cuh */

template <int BM, int BN, int REALS> static void mma_tiles(int64_t n)
{
    for (char uplo : { '\0', 'U', 'L' }) {
        g = gpb_gemm_args();
        g.m = REALS * n;
        g.n = n;
        g.batch = 2;
        g.uplo = uplo;
        const int64_t rows = (g.m + BM - 1) / BM, cols = (n + BN - 1) / BN;
        const unsigned tiles = gpb_mma_tile<BM, BN, REALS>::tiles(g);
        std::vector<int> seen(2 * rows * cols);
        for (unsigned x = 0; x < 2 * tiles; x++) {
            const gpb_mma_tile<BM, BN, REALS> t(g, x);
            seen[(t.l * cols + t.j0 / BN) * rows + t.i0 / BM]++;
        }
        const char *wrong = NULL;
        for (int64_t l = 0; l < 2; l++)
            for (int64_t j = 0; j < cols; j++)
                for (int64_t i = 0; i < rows; i++) {
                    const int64_t top = i * BM / REALS, left = j * BN;
                    const bool meets = !uplo || (uplo == 'U' ? top < std::min(left + BN, n)
                                                             : std::min(top + BM / REALS, n) > left);
                    if (seen[(l * cols + j) * rows + i] != meets) wrong = "a tile";
                }
        report(wrong, "mma", n);
    }
}

int main()
{
    constexpr unsigned NONE = GPB_CAP_NONE, PAIRS = GPB_CAP_PAIRS;
    mapped_orders<gpb_mapped_shape<double, 128, 128, 32, 3, 384, 197632, NONE, 32, 64>>("d dmma_tma");
    mapped_orders<gpb_mapped_shape<double, 128, 64, 32, 4, 384, 197632, PAIRS, 32, 32>>("d dmma_tma_half");
    mapped_orders<gpb_mapped_shape<double, 64, 32, 32, 4, 256, 99328, NONE, 32, 16>>("d dmma_tma_small");
    mapped_orders<gpb_mapped_shape<double, 32, 32, 32, 6, 256, 99328, NONE, 16, 16>>("d dmma_tma_tiny");
    mapped_orders<gpb_mapped_shape<double2, 128, 64, 16, 4, 384, 197632, NONE, 32, 32>>("z dmma_tma");
    mapped_orders<gpb_mapped_shape<double2, 32, 32, 16, 6, 256, 99328, NONE, 16, 16>>("z dmma_tma_tiny");
    for (int64_t n : { 1, 66, 131, 300 }) {
        sliced<float, 128, 128>("s fp16x3", n);
        sliced<float, 128, 64>("s fp16x3_narrow", n);
        sliced<float2, 64, 128>("c fp16x3", n);
        sliced<float2, 64, 64>("c fp16x3_narrow", n);
        mma_tiles<128, 64, 1>(n);
        mma_tiles<128, 64, 2>(n);
    }
    printf("%d launches emulated, %d wrong\n", launches, failures);
    return failures != 0;
}
