/* SPDX-License-Identifier: MIT */
/* What SLICED kernels know of complex numbers, on the CPU (emulate.h): the slicers of a complex operand, in
   any layout, make bit by bit what those of a real one make of the real matrix that sliced.h says it stands
   for; sums are stored where they belong; and a fallback asks the right guard words. */
#include <cmath>
#include <complex>
#include <cstdio>
#include <random>
#include <vector>

#include "kernels/sliced/slices_sm90.cuh"
#include "kernels/sliced/store.cuh"

/* Guard words: what lay there, and what is written. Strips that are looked at: those with rows, and one
   without. */
enum { BEFORE = 5, EPOCH = 9, STRIPS = 5 };

static std::mt19937 numbers(3);
static float draw() { return (float)((int)(numbers() % 2000001) - 1000000) * 1e-6f; }

/* ---- slicing */

/* What an operand holds. The last four mark its rows: FULL, WIDE, EXTREME, EXTREME. */
enum content { ORDINARY, SMALL_PARTS, COUNTS, FAR_PARTS, SPECIAL, SPARSE, CONTENTS };

static float2 element(content what, int64_t i, int64_t p)
{
    const float2 x = { draw(), draw() };
    switch (what) {
    case SMALL_PARTS: return i % 2 ? float2{ x.x, x.y * 0x1p-9f } : float2{ x.x * 0x1p-7f, x.y };
    case COUNTS: return { std::floor(x.x * 100000), std::floor(x.y * 100000) };
    case FAR_PARTS: return { x.x, x.y * 0x1p-30f };
    case SPECIAL:
        return i == 3 && p == 7 ? float2{ x.x, -NAN } : i == 5 && p == 2 ? float2{ -INFINITY, 0 } : x;
    case SPARSE: return p % 19 ? float2{ 0, 0 } : float2{ x.x, 0 };
    default: return x;
    }
}

struct problem {
    bool is_a, conj;
    int64_t rows, k, rs, cs;
    int base;                             /* how many floats above a multiple of 16 bytes it begins */
    content what;
    int slices;
    bool by_items;
};

/* A complex operand between NaNs, and the real matrix that it stands for, row by row. */
struct operand {
    std::vector<float> memory, real;
    float *first;

    explicit operand(const problem &x)
    {
        memory.assign(2 * ((x.rows - 1) * x.rs + (x.k - 1) * x.cs + 1) + x.base + 4, NAN);
        first = memory.data() + (16 - (uintptr_t)memory.data() % 16) % 16 / 4 + x.base;
        memory.resize(first - memory.data() + 2 * ((x.rows - 1) * x.rs + (x.k - 1) * x.cs + 1));
        real.assign(gpb_sliced_m(x.is_a, x.rows) * 2 * x.k, 0);
        for (int64_t i = 0; i < x.rows; i++)
            for (int64_t p = 0; p < x.k; p++) {
                float2 y = element(x.what, i, p);
                memcpy((void *)(first + 2 * (i * x.rs + p * x.cs)), &y, sizeof y);
                if (x.conj) y.y = -y.y;
                put(x, i, p, y);
            }
    }
    /* Row i of op(A) is rows i and rows + i of `real`: where those go is `row`. */
    void put(const problem &x, int64_t i, int64_t p, float2 y)
    {
        float *to = &real[i * 2 * x.k + 2 * p], *below = to + x.rows * 2 * x.k;
        to[0] = y.x;
        to[1] = x.is_a ? -y.y : y.y;
        if (!x.is_a) return;
        below[0] = y.y;
        below[1] = y.x;
    }
    /* The row of `real` that row i of the slices has; -1: zeros. */
    static int64_t row(const problem &x, int64_t i)
    {
        if (!x.is_a) return i < x.rows ? i : -1;
        const int64_t of = i / 16 * 8 + i % 8;
        return of < x.rows ? of + (i / 8 % 2 ? x.rows : 0) : -1;
    }
};

static gpb_slice_args args;
static unsigned strip;
static gpb_side side;
static uint32_t flagged, ignored, *on;

template <class T, int SLICES> static void plain_thread()
{
    gpb_slice_strip<T, SLICES>(args.a, side, args.k, on, strip, 0);
}
template <class T, int SLICES, int OCTETS, int BLOCKS> static void held_thread()
{
    gpb_slice_held<T, SLICES, OCTETS, BLOCKS>(args.a, side, args.k, on, strip, 0);
}

/* A slicer of either type, for one strip. */
struct slicer {
    void (*complex)(), (*real)();
    unsigned blocks;
};
template <int SLICES> static slicer slicer_of(int number)
{
    switch (number) {
    case 1: return { held_thread<float2, SLICES, 1, 1>, held_thread<float, SLICES, 1, 1>, 1 };
    case 2: return { held_thread<float2, SLICES, 2, 1>, held_thread<float, SLICES, 2, 1>, 1 };
    case 3: return { held_thread<float2, SLICES, 1, 3>, held_thread<float, SLICES, 1, 3>, 3 };
    default: return { plain_thread<float2, SLICES>, plain_thread<float, SLICES>, 1 };
    }
}

static std::vector<char> workspace(const gpb_slice_operand &x, int64_t k, int slices)
{
    std::vector<char> all(gpb_sliced_bytes(x.rows, k, slices) + 16, 0x55);
    uint64_t *guard = (uint64_t *)(all.data() + gpb_sliced_guard(x.rows, k, slices));
    for (int64_t y = 0; y <= gpb_sliced_guards(x.rows); y++) guard[y] = BEFORE;
    return all;
}

/* Slices the operand to `to`. A strip's cluster runs twice, because only the second run has what all blocks
   found (ptx_sm90.cuh); what the first one writes goes elsewhere. */
static int run(void (*thread)(), unsigned blocks, std::vector<char> &to)
{
    const gpb_emulate_span all = { NULL, (const char *)UINTPTR_MAX };
    std::vector<char> elsewhere = to;
    int wrong = 0;
    flagged = 0;
    for (strip = 0; strip < STRIPS; strip++)
        for (int turn = blocks > 1 ? 0 : 1; turn < 2; turn++) {
            args.a.dst = turn ? to.data() : elsewhere.data();
            on = turn ? &flagged : &ignored;
            wrong += gpb_emulate_run({ thread, { blocks, 1, 1 }, GPB_SLICE_THREADS, true, false, all, all });
        }
    return wrong;
}

/* True if the row of the real slices is the row of the complex ones, but for the signs of filling zeros. */
static bool same_row(const problem &x, const char *of_complex, int64_t i, const char *of_real, int64_t row)
{
    const int64_t k = 2 * x.k, rows = gpb_sliced_rows(args.a.rows);
    for (int64_t p = 0; p < gpb_sliced_chunks(k) * GPB_SLICE_CHUNK; p++)
        for (int s = 0; s < x.slices; s++) {
            auto at = [&](int64_t r) {
                return ((p / GPB_SLICE_CHUNK * x.slices + s) * rows + r) * 64 + (p / 8 % 4 ^ r / 2 % 4) * 16
                       + p % 8 * 2;
            };
            uint16_t here, there = 0;
            memcpy(&here, of_complex + at(i), 2);
            if (row >= 0) memcpy(&there, of_real + at(row), 2);
            const bool filling = row < 0 || p >= k;
            if (filling ? here & 0x7fff : here != there) return false;
        }
    const float *scales = (const float *)(of_complex + gpb_sliced_scales(args.a.rows, k, x.slices)),
                *real = (const float *)(of_real + gpb_sliced_scales(args.a.rows, k, x.slices));
    return scales[i] == (row < 0 ? 1 : real[row]);
}

static const char *slice(const problem &x, int number)
{
    const slicer by = x.slices == 1   ? slicer_of<1>(number)
                      : x.slices == 2 ? slicer_of<2>(number)
                                      : slicer_of<3>(0);
    operand data(x);
    const void *items[] = { data.first };
    args = gpb_slice_args();
    args.k = 2 * x.k;
    args.a.epoch = EPOCH;
    args.a.rows = gpb_sliced_m(x.is_a, x.rows);
    std::vector<char> of_complex = workspace(args.a, args.k, x.slices), of_real = of_complex;
    args.a.src = x.by_items ? NULL : data.first;
    args.a.src_items = x.by_items ? items : NULL;
    args.a.rs = x.rs;
    args.a.cs = x.cs;
    side = { x.is_a, x.conj };
    int wrong = run(by.complex, by.blocks, of_complex);
    const uint32_t flagged_first = flagged;
    args.a.src = data.real.data();
    args.a.src_items = NULL;
    args.a.rs = args.k;
    args.a.cs = 1;
    wrong += run(by.real, by.blocks, of_real);
    if (wrong) return "as said above";
    if (flagged != flagged_first) return "flagged";
    for (int64_t i = 0; i < STRIPS * GPB_SLICE_STRIP; i++)
        if (!same_row(x, of_complex.data(), i, of_real.data(), operand::row(x, i)))
            return "slices, or a scale";
    const int64_t guard = gpb_sliced_guard(args.a.rows, args.k, x.slices);
    return memcmp(&of_complex[guard], &of_real[guard], of_complex.size() - guard) ? "guard words" : NULL;
}

/* The four layouts: m or k contiguous (at 16 bytes and at others), neither. */
static problem layout(int number, problem x)
{
    const int64_t ld[] = { x.rows + 3, x.k + x.k % 2 + 2, (x.k | 1) + 2, x.k + 5, x.rows * 3 + 1 };
    x.rs = number == 0 ? 1 : number == 4 ? 3 : ld[number];
    x.cs = number == 0 || number == 4 ? ld[number] : 1;
    x.base = number == 0 ? 1 : number == 2 ? 2 : number == 3 ? 3 : 0;
    return x;
}

static int slice_all()
{
    int wrong = 0, count = 0;
    const int64_t deep[] = { 45, 128, 131, 250, 380 };
    for (int what = 0; what < CONTENTS; what++)
        for (int way = 0; way < 5; way++)
            for (int which = 0; which < 4; which++)
                for (int number = 0; number < 4; number++) {
                    if ((what + way + which + number) % 3) continue;       /* a third is enough */
                    const int turn = count++;
                    problem x = { which % 2 == 0, which / 2 == 1, which % 2 ? 21 : 13, deep[turn % 5],
                                  0, 0, 0, (content)what, 1 + turn % 3, turn % 4 == 1 };
                    const int64_t most[] = { 1 << 20, 128, 256, 384 };     /* what threads can hold */
                    if (x.k > most[number]) x.k = most[number] - turn % 5;
                    if (number && x.slices == 3) x.slices = 2;
                    x = layout(way, x);
                    if (const char *how = slice(x, number)) {
                        wrong++;
                        printf("WRONG: %s%s, %d slices by %d, %lld x %lld, layout %d, content %d: %s\n",
                               x.is_a ? "A" : "B", x.conj ? " conjugated" : "", x.slices, number,
                               (long long)x.rows, (long long)x.k, way, what, how);
                    }
                }
    printf("%d operands sliced, %d wrong\n", count, wrong);
    return wrong;
}

/* ---- storing */

enum { M = 45, N = 70, LDC = M + 2, BN = 64, K = 40, BATCH = 2 };
static gpb_gemm_args gemm;
static unsigned member;

/* The sum of row i of the slices and column j: small integers. */
static float sum_at(int64_t i, int64_t j) { return (float)((i * 7 + j * 5) % 23 - 11); }

template <class T, int SLICES> static void store_thread()
{
    const int lane = threadIdx.x % 32;
    const int64_t i0 = blockIdx.x * 16, j0 = blockIdx.z * BN;
    float sum[BN / 2];
    for (int x = 0; x < BN / 2; x++)      /* ptx_sm90.cuh says where wgmma leaves them */
        sum[x] = sum_at(i0 + lane / 4 + x / 2 % 2 * 8, j0 + x / 4 * 8 + lane % 4 * 2 + x % 2);
    gpb_store_strip<T, 16, BN, SLICES>(gemm, member, i0, 0, j0, sum);
}

static std::complex<double> value(float x) { return x; }
static std::complex<double> value(float2 x) { return { x.x, x.y }; }
static void make(float &x, std::complex<double> y) { x = (float)y.real(); }
static void make(float2 &x, std::complex<double> y) { x = { (float)y.real(), (float)y.imag() }; }

/* C and what it becomes. It may begin at any multiple of 4 bytes. Behind M rows of each column are NaNs, and
   so is all of it unless it is read. */
template <class T, int SLICES> struct storing {
    static constexpr bool COMPLEX = GPB_IS_COMPLEX<T>;
    static constexpr int64_t REALS = GPB_REALS<T>, ALL = LDC * N * BATCH;
    std::vector<char> a, b;
    int64_t bytes_a, bytes_b;
    std::vector<float> memory;
    float *c;
    std::vector<std::complex<double>> before;
    std::complex<double> alpha, beta;
    gpb_gemm_item items[BATCH];

    storing(bool reads, int base, bool by_items)
    {
        alpha = { 2, COMPLEX ? -1. : 0. };
        if (reads) beta = { COMPLEX ? 0. : -3., COMPLEX ? 2. : 0. };
        gemm = gpb_gemm_args();
        gemm.m = gpb_sliced_m(COMPLEX, M);
        gemm.n = N;
        gemm.k = gpb_sliced_k(COMPLEX, K);
        gemm.batch = BATCH;
        gemm.alpha[0] = alpha.real();
        gemm.alpha[1] = alpha.imag();
        gemm.beta[0] = beta.real();
        gemm.beta[1] = beta.imag();
        put_scales();
        put_c(reads, base);
        for (int l = 0; l < BATCH; l++) items[l] = { NULL, NULL, c + REALS * LDC * N * l };
        gemm.c = by_items ? NULL : c;
        gemm.items = by_items ? items : NULL;
        gemm.ldc = LDC;
        gemm.stride_c = LDC * N;
    }
    float *up(int l) { return (float *)&a[l * bytes_a + gpb_sliced_scales(gemm.m, gemm.k, SLICES)]; }
    float *across(int l) { return (float *)&b[l * bytes_b + gpb_sliced_scales(N, gemm.k, SLICES)]; }
    /* The row of the slices that has the real part of row i. */
    static int64_t row(int64_t i) { return COMPLEX ? i / 8 * 16 + i % 8 : i; }
    void put_scales()
    {
        bytes_a = gpb_sliced_bytes(gemm.m, gemm.k, SLICES);
        bytes_b = gpb_sliced_bytes(N, gemm.k, SLICES);
        a.resize(bytes_a * BATCH);
        b.resize(bytes_b * BATCH);
        gemm.a = a.data();
        gemm.b = b.data();
        gemm.stride_a = bytes_a / 4;
        gemm.stride_b = bytes_b / 4;
        for (int l = 0; l < BATCH; l++) {
            for (int64_t i = 0; i < M; i++)
                up(l)[row(i)] = up(l)[row(i) + (COMPLEX ? 8 : 0)] = std::ldexp(1.0f, (int)((i + l) % 5) - 2);
            for (int64_t j = 0; j < N; j++) across(l)[j] = std::ldexp(1.0f, (int)((j + l) % 3) - 1);
        }
    }
    void put_c(bool reads, int base)
    {
        memory.assign(REALS * ALL + base + 4, NAN);
        c = memory.data() + (16 - (uintptr_t)memory.data() % 16) % 16 / 4 + base;
        for (int64_t x = 0; x < ALL; x++) {
            before.push_back({ (double)(numbers() % 9), COMPLEX ? (double)(numbers() % 9) : 0 });
            T y;
            make(y, before[x]);
            if (reads && x % LDC < M) memcpy((void *)(c + REALS * x), &y, sizeof y);
        }
    }
    /* True if element x of C is as it should be. */
    bool right(int64_t x)
    {
        const int l = (int)(x / (LDC * N));
        const int64_t i = x % LDC, j = x / LDC % N;
        T y;
        memcpy((void *)&y, c + REALS * x, sizeof y);
        const std::complex<double> is = value(y);
        if (i >= M) return std::isnan(is.real()) && (!COMPLEX || std::isnan(is.imag()));
        const std::complex<double> sum = { sum_at(row(i), j), COMPLEX ? sum_at(row(i) + 8, j) : 0 };
        const double scale = (double)up(l)[row(i)] * across(l)[j];
        return is == alpha * sum * scale + (beta == 0. ? 0. : beta * before[x]);
    }
};

template <class T, int SLICES> static int store(bool reads, int base, bool by_items)
{
    storing<T, SLICES> x(reads, base, by_items);
    const gpb_emulate_span all = { NULL, (const char *)UINTPTR_MAX };
    const unsigned down = (unsigned)gpb_sliced_rows(gemm.m) / 16, across = (N + BN - 1) / BN;
    int wrong = 0;
    for (member = 0; member < BATCH; member++)
        wrong += gpb_emulate_run({ store_thread<T, SLICES>, { down, 1, across }, 32, true, false, all, all });
    for (int64_t y = 0; y < x.ALL; y++) wrong += !x.right(y);
    return wrong;
}

template <class T> static int store_all(const char *name)
{
    int wrong = 0;
    for (int way = 0; way < 8; way++) {
        const int base = way / 2 % 4;
        wrong += store<T, 2>(way % 2, base, way > 4) + store<T, 3>(way % 2, base, way <= 4);
    }
    printf("%s: %d wrong\n", name, wrong);
    return wrong;
}

/* ---- guard words */

/* The fallback asks the guard word of its rows: one for 128 rows, of complex ones for 64. */
template <class T> static int ask_guards(const char *name)
{
    const uint64_t rows[] = { BEFORE, GPB_GUARD_EXTREME(EPOCH), BEFORE, BEFORE }, columns[] = { BEFORE };
    const int64_t high = GPB_IS_COMPLEX<T> ? 64 : 128;
    gemm = gpb_gemm_args();
    gemm.guard_a = rows;
    gemm.guard_b = columns;
    gemm.epoch_a = gemm.epoch_b = EPOCH;
    gemm.level = 2;
    int wrong = 0;
    for (int64_t i = 0; i < 4 * high; i += 32)
        wrong += gpb_wanted_at<T>(gemm, 0, { i, 0 }) != (i / high == 1);
    printf("%s: %d guard words wrong\n", name, wrong);
    return wrong;
}

int main()
{
    return slice_all() + store_all<float>("s") + store_all<float2>("c") + ask_guards<float>("s")
               + ask_guards<float2>("c")
           != 0;
}
