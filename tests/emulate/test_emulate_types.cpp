/* SPDX-License-Identifier: MIT */
/* The bodies that kernels of all types share (tile, tile_load, epilogue, pack, reduce), in the four types
   of BLAS, on the CPU (emulate.h). Each is compared with a plain loop. Numbers are small integers, so
   every right result is exact. */
#include <complex>
#include <cstdio>
#include <random>
#include <vector>

#include "kernels/pack.cuh"
#include "kernels/reduce.cuh"
#include "kernels/tile_load.cuh"

enum { BM = 32, BN = 32, BK = 16, THREADS = 64, M = 45, N = 38, K = 21, LDC = M + 3, SPLITS = 3, BATCH = 2 };

static std::mt19937 numbers(5);
static int digit() { return (int)(numbers() % 7) - 3; }

/* A type's elements as the reference has them, and the alpha and beta that a kernel gets. */
template <class T> struct field {
    using number = T;
    static T make(std::complex<double> x) { return (T)x.real(); }
    static std::complex<double> value(T x) { return { (double)x, 0 }; }
    static std::complex<double> draw() { return { (double)digit(), 0 }; }
};
template <class T> struct complex_field {
    static T make(std::complex<double> x) { return { (decltype(T::x))x.real(), (decltype(T::x))x.imag() }; }
    static std::complex<double> value(T x) { return { (double)x.x, (double)x.y }; }
    static std::complex<double> draw() { return { (double)digit(), (double)digit() }; }
};
template <> struct field<float2> : complex_field<float2> {};
template <> struct field<double2> : complex_field<double2> {};

template <class T> static std::vector<T> draw(size_t count)
{
    std::vector<T> x(count);
    for (T &y : x) y = field<T>::make(field<T>::draw());
    return x;
}

/* The plainest kernel that goes through tile.cuh, tile_load.cuh and epilogue.cuh: V rows of TN columns a
   thread. */
template <class T> static void step(const gpb_tile<T> &t)
{
    constexpr int V = GPB_VECTOR<T>, LDA = BM + 1, LDB = BK + 1, TN = BM / V * BN / THREADS;
    __shared__ T as[BK * LDA], bs[BN * LDB];
    T acc[TN][V] = {};
    const int i = threadIdx.x % (BM / V) * V, j = threadIdx.x / (BM / V) * TN;
    for (int64_t p = 0; p < t.k; p += BK) {
        gpb_load_a<BM, BK, LDA, THREADS>(as, t, p);
        gpb_load_b<BK, BN, LDB, THREADS>(bs, t, p);
        __syncthreads();
        for (int q = 0; q < BK; q++)
            for (int s = 0; s < TN; s++)
                for (int r = 0; r < V; r++)
                    acc[s][r] = gpb_sum(acc[s][r], gpb_product(as[i + r + q * LDA], bs[q + (j + s) * LDB]));
        __syncthreads();
    }
    gpb_store_fragments<BM, BN, BM, TN, TN>(t, i, j, acc);
}

static gpb_gemm_args gemm;
static gpb_reduce_args sum;
static gpb_pack_args packing;
static gpb_unpack_args unpacking;
template <class T> static void gemm_thread() { gpb_each_member<T, BM, BN, BK, step<T>>(gemm); }
template <class T> static void reduce_thread() { gpb_reduce<T>(sum); }
template <class T> static void pack_thread() { gpb_pack<T>(packing); }
template <class T> static void unpack_thread() { gpb_unpack<T>(unpacking); }

static int launch(void (*body)(), int64_t blocks, int64_t members, unsigned threads)
{
    const gpb_emulate_span all = { NULL, (const char *)UINTPTR_MAX };
    return gpb_emulate_run(
        { body, { (unsigned)blocks, 1, (unsigned)members }, threads, true, false, all, all });
}

template <class T> static bool is(T x, std::complex<double> expected)
{
    return field<T>::value(x) == expected;
}

/* C = alpha A B' + beta C, whole, and in parts that gpb_reduce adds up; beta == 0 reads no C. uplo: of C, or
   of a triangle, of a Hermitian matrix if beta is real. */
template <class T> static int multiply(bool in_parts, bool beta_is_zero, char uplo, bool hermitian)
{
    const int rows = uplo ? N : M;
    const std::vector<T> a = draw<T>(M * K * BATCH), b = draw<T>(N * K * BATCH),
                         before = draw<T>(LDC * N * BATCH);
    std::vector<T> c = before, parts(M * N * BATCH * SPLITS);
    const std::complex<double> alpha = field<T>::value(field<T>::make({ 2, -1 }));
    const std::complex<double> beta
        = beta_is_zero ? 0 : field<T>::value(field<T>::make({ -3, hermitian ? 0. : 2. }));
    gemm = gpb_gemm_args();
    gemm.uplo = uplo;
    gemm.hermitian = hermitian;
    gemm.m = rows;
    gemm.n = N;
    gemm.k = K;
    gemm.batch = BATCH;
    gemm.a = a.data();
    gemm.rsa = 1;
    gemm.csa = M;
    gemm.stride_a = M * K;
    gemm.b = b.data();
    gemm.rsb = N;
    gemm.csb = 1;
    gemm.stride_b = N * K;
    gemm.c = c.data();
    gemm.ldc = LDC;
    gemm.stride_c = LDC * N;
    gemm.alpha[0] = alpha.real();
    gemm.alpha[1] = alpha.imag();
    gemm.beta[0] = beta.real();
    gemm.beta[1] = beta.imag();
    gemm.splits = in_parts ? SPLITS : 0;
    gemm.partials = parts.data();
    int wrong = launch(gemm_thread<T>, GPB_TILES_OF(uplo, rows, N, BM, BN), BATCH * (in_parts ? SPLITS : 1),
                       THREADS);
    sum = { rows, N, SPLITS, parts.data(), c.data(), LDC, { alpha.real(), alpha.imag() },
            { beta.real(), beta.imag() }, BATCH, LDC * N, NULL, uplo, hermitian };
    if (in_parts)
        wrong += launch(reduce_thread<T>, GPB_REDUCE_BLOCKS(rows, N, SPLITS), BATCH, GPB_REDUCE_THREADS);
    for (int l = 0; l < BATCH; l++)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < LDC; i++) {
                std::complex<double> x = 0;
                const size_t at = (size_t)l * LDC * N + j * LDC + i;
                const bool has = i < rows && (!uplo || (uplo == 'U' ? i <= j : i >= j));
                for (int p = 0; p < K && has; p++)
                    x += field<T>::value(a[l * M * K + i + p * M])
                         * field<T>::value(b[l * N * K + j + p * N]);
                const std::complex<double> old = field<T>::value(before[at]);
                const std::complex<double> wanted = has ? alpha * x + beta * old : old;
                wrong += !is(c[at], has && hermitian && i == j ? wanted.real() : wanted);
            }
    return wrong;
}

/* A matrix stored row by row into a padded workspace, and from there onto C, whole, its upper triangle,
   or that of a Hermitian one. */
template <class T> static int there_and_back(bool triangle, bool hermitian)
{
    enum { ROWS = 64, COLS = 40 };
    const std::vector<T> from = draw<T>(M * N), before = draw<T>(LDC * N);
    std::vector<T> to = draw<T>(ROWS * COLS), c = before;
    const std::complex<double> beta = field<T>::value(field<T>::make({ 1, 2 }));
    packing = { from.data(), N, 1, M, N, to.data(), ROWS, ROWS, COLS, 1, 0, 0, NULL };
    int wrong = launch(pack_thread<T>, GPB_TILES(ROWS, COLS, GPB_PACK_TILE, GPB_PACK_TILE), 1,
                       GPB_PACK_THREADS);
    for (int j = 0; j < COLS; j++)
        for (int i = 0; i < ROWS; i++)
            wrong += !is(to[i + j * ROWS], i < M && j < N ? field<T>::value(from[i * N + j]) : 0);
    unpacking = { M, N, to.data(), ROWS, c.data(), LDC,  { beta.real(), beta.imag() },
                  0, 0, 1,         0,    0,        NULL, triangle ? 'U' : 'G', hermitian };
    wrong += launch(unpack_thread<T>, GPB_TILES(M, N, GPB_PACK_TILE, GPB_PACK_TILE), 1, GPB_PACK_THREADS);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < LDC; i++) {
            const std::complex<double> old = field<T>::value(before[i + j * LDC]);
            const bool written = i < M && (!triangle || i <= j), real = hermitian && i == j;
            const std::complex<double> wanted = written ? field<T>::value(from[i * N + j])
                                                              + (hermitian ? beta.real() : beta) * old : old;
            wrong += !is(c[i + j * LDC], real ? wanted.real() : wanted);
        }
    return wrong;
}

template <class T> static int run(char letter)
{
    int wrong = 0;
    for (int x = 0; x < 12; x++) wrong += multiply<T>(x & 1, x & 2, "\0UL"[x / 4], false);
    for (int x = 0; x < 8 && GPB_IS_COMPLEX<T>; x++) wrong += multiply<T>(x & 1, x & 2, "UL"[x / 4], true);
    for (int x = 0; x < 3; x++) wrong += there_and_back<T>(x > 0, x > 1);
    printf("%c: %d wrong\n", letter, wrong);
    return wrong;
}

int main()
{
    return run<gpb_type_s>('s') + run<gpb_type_d>('d') + run<gpb_type_c>('c') + run<gpb_type_z>('z') != 0;
}
