/* SPDX-License-Identifier: MIT */
/* The kernels of general/, of mapped/ but for those whose blocks come in pairs, and those of shapes/ in d, c
   and z, as compiled for the GPU, on the CPU (emulate.h). Values are compared with sums of twice the
   precision; nothing is read outside the operands or written outside C; operands lie at any multiple of a
   real number's size; k is whole, in parts and shared out by Stream-K; and the bits are the same for any
   order of threads and blocks and however late copies happen. Kernels of mapped/ compute two products,
   too. */
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cgemm_general.cu"
#include "kernels/cgemm_shapes.cu"
#include "kernels/dgemm_general.cu"
#include "kernels/dgemm_shapes.cu"
#include "kernels/dgemm_tma.cu"
#include "kernels/zgemm_general.cu"
#include "kernels/zgemm_shapes.cu"
#include "kernels/zgemm_tma.cu"

/* What is launched. One thread of a kernel: */
static gpb_gemm_args launched;
static gpb_mapped_args mapped;
template <void (*KERNEL)(gpb_gemm_args)> static void thread_of() { KERNEL(launched); }
template <void (*KERNEL)(gpb_mapped_args)> static void thread_of() { KERNEL(mapped); }

struct row {
    const char *name;
    char type;
    void (*thread)();
    gpb_form form;
    int bm, bn, bk, threads;
    unsigned caps;
    bool thin;                           /* of shapes/, but for short256 */
    bool shares() const { return caps & GPB_CAP_STREAM_K; }
};
#define COMMA ,
#define GPB_MINE_dgemm_general ~, KEEP
#define GPB_MINE_cgemm_general ~, KEEP
#define GPB_MINE_zgemm_general ~, KEEP
#define GPB_MINE_dgemm_shapes ~, KEEP
#define GPB_MINE_cgemm_shapes ~, KEEP
#define GPB_MINE_zgemm_shapes ~, KEEP
#define GPB_MINE_dgemm_tma ~, KEEP
#define GPB_MINE_zgemm_tma ~, KEEP
static const row rows[] = {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea)      \
    GPB_ONLY(image)({ #name COMMA #p[0] COMMA thread_of<GPB_GEMM_SYMBOL(p, name)> COMMA GPB_FORM_##form \
                      COMMA bm COMMA bn COMMA bk COMMA threads COMMA GPB_CAP_##caps COMMA    \
                      !strcmp(#image + 1, "gemm_shapes") && bm < 256 } COMMA)
#include "kernels/gemm.def"
#undef KERNEL
};
enum { ROWS = sizeof rows / sizeof *rows };

enum how { WHOLE, PARTS, SHARED, ITEMS, HOWS };
static const char *const how_names[HOWS] = { "whole", "in parts", "shared", "by addresses" };

struct problem {
    int64_t m, n, k;
    char ta, tb;
    int odd;                             /* real numbers that bases and leading dimensions are off */
    how by;
    double alpha[2], beta[2];
    char uplo = 0;                       /* 'U', 'L': that triangle of C alone */
    bool hermitian = false, joined = false;          /* joined: both products of SYR2K or HER2K */
    int64_t members() const { return joined ? 1 : 2; }
    bool has(int64_t i, int64_t j) const { return !uplo || (uplo == 'U' ? i <= j : i >= j); }
};

static std::mt19937 numbers(7);
using complex = std::complex<double>;

/* Two matrices as op(X) of elements that are PARTS reals R. All else is NaN, and the last element is the last
   of the memory. */
template <class R, int PARTS> struct operand {
    std::vector<R> room;
    R *at;
    int64_t rows, cols, rs, cs, stride;
    bool conj;
    operand(int64_t rows, int64_t cols, char trans, int odd, bool empty = false)
        : rows(rows), cols(cols), conj(trans == 'C' && PARTS == 2)
    {
        const int64_t high = trans == 'N' ? rows : cols, ld = odd ? high + 3 : (high + 3) / 4 * 4;
        rs = trans == 'N' ? 1 : ld;
        cs = trans == 'N' ? ld : 1;
        stride = ld * (trans == 'N' ? cols : rows);
        room.assign((size_t)(count() + 64), NAN);
        const int64_t off = odd % (16 / (int64_t)sizeof(R));
        at = (R *)((uintptr_t)(room.data() + room.size() - count() - off) / 16 * 16) + off;
        for (int64_t x = 0; x < 2 * rows * cols && !empty; x++)
            for (int part = 0; part < PARTS; part++)
                place(x / (rows * cols), x % rows, x / rows % cols)[part]
                    = std::normal_distribution<R>()(numbers);
    }
    R *place(int64_t l, int64_t i, int64_t j) { return at + (l * stride + i * rs + j * cs) * PARTS; }
    complex operator()(int64_t l, int64_t i, int64_t j) { return as(l, i, j, conj); }
    complex as(int64_t l, int64_t i, int64_t j, bool conj)
    {
        R *x = place(l, i, j);
        return { x[0], PARTS == 1 ? 0 : conj ? -x[1] : x[1] };
    }
    /* As gpb_tensor_map_bind has it. */
    void map(int number, bool edge_is_rows, int edge) const
    {
        constexpr int ELEMENT = PARTS * sizeof(R), LINE = GPB_MAPPED_LINE / ELEMENT;
        const bool along_k = (rs == 1) != edge_is_rows;
        const int64_t high = rs == 1 ? rows : cols, wide = rs == 1 ? cols : rows, ld = rs == 1 ? cs : rs;
        const bool in_lines = GPB_MAPPED_IN_LINES(along_k, high, ELEMENT);
        const int64_t first = (in_lines ? LINE : high) * PARTS, lines = in_lines ? high / LINE : 1;
        const int box = GPB_MAPPED_BOX(along_k, edge, 1, ELEMENT), at_once = in_lines ? edge / LINE : 1;
        const gpb_emulate_map map = { (const double *)at, { first, wide, lines, 2 },
                                      { ld * PARTS, LINE * PARTS, stride * PARTS }, { box, at_once } };
        memcpy(&mapped.map[number], &map, sizeof map);
        mapped.in_lines |= (unsigned)in_lines << number;
    }
    int64_t count() const { return (stride + (rows - 1) * rs + (cols - 1) * cs + 1) * PARTS; }
    gpb_emulate_span span() const { return { (const char *)at, (const char *)(at + count()) }; }
};

static void share(const row &r, gpb_gemm_args &g)
{
    const int64_t units = GPB_TILES_OF(g.uplo, g.m, g.n, r.bm, r.bn) * g.batch,
                  k_tiles = (g.k + r.bk - 1) / r.bk;
    const int64_t blocks = std::min(units * k_tiles, units * 3 + 1);
    g.streamk_tiles = (unsigned)units;
    g.streamk_blocks = (unsigned)blocks;
}

template <class R, int PARTS> struct trial {
    const row &r;
    const problem &p;
    operand<R, PARTS> a, b, c;
    std::vector<R> partials;
    std::vector<uint32_t> counters;
    std::vector<gpb_gemm_item> items;
    gpb_gemm_args g;

    trial(const row &r, const problem &p)
        : r(r), p(p), a(p.m, p.k, p.ta, p.odd), b(p.k, p.n, p.tb, p.odd),
          c(p.m, p.n, 'N', p.odd, p.beta[0] == 0 && p.beta[1] == 0), g()
    {
        g.m = p.m;
        g.n = p.n;
        g.k = p.k;
        for (int x = 0; x < PARTS; x++) {
            g.alpha[x] = p.alpha[x];
            g.beta[x] = p.beta[x];
        }
        g.batch = p.members();
        g.rsa = a.rs;
        g.csa = a.cs;
        g.rsb = b.rs;
        g.csb = b.cs;
        g.ldc = c.cs;
        g.stride_a = a.stride;
        g.stride_b = b.stride;
        g.stride_c = c.stride;
        g.conj_a = a.conj;
        g.conj_b = b.conj;
        g.uplo = p.uplo;
        g.hermitian = p.hermitian;
        if (p.by == ::PARTS) g.splits = 2;
        if (p.by == ITEMS) {
            for (int64_t l = 0; l < p.members(); l++)
                items.push_back({ a.place(l, 0, 0), b.place(l, 0, 0), c.place(l, 0, 0) });
            g.items = items.data();
        }
        if (p.by != ITEMS || r.form == GPB_FORM_MAPPED) {
            g.a = a.at;
            g.b = b.at;
            g.c = c.at;
        }
        if (p.by == SHARED && r.shares()) share(r, g);
        partials.assign((size_t)std::max<int64_t>(4 * p.m * p.n, 2 * g.streamk_blocks * r.bm * r.bn) * PARTS,
                        NAN);
        counters.assign(g.streamk_blocks + 1, 0);
        g.partials = partials.data();
        g.counters = counters.data();
    }

    complex got(int64_t l, int64_t i, int64_t j)
    {
        if (p.by != ::PARTS) return c(l, i, j);
        complex sum;
        for (int64_t s = 0; s < 2; s++) {
            const R *x = &partials[(size_t)(((2 * l + s) * p.n + j) * p.m + i) * PARTS];
            sum += complex(x[0], PARTS == 1 ? 0 : x[1]);
        }
        return sum;
    }

    /* A factor of the products that are added up, and its absolute value. */
    struct factor { long double re, im; double size; };
    static factor factor_of(complex x) { return { x.real(), x.imag(), std::abs(x) }; }

    /* Row i of op(A), or column j of op(B), of member l, one behind the other; those of the second product
       behind them. */
    std::vector<factor> factors(bool of_a, int64_t l, int64_t depth)
    {
        const int64_t lines = of_a ? p.m : p.n;
        std::vector<factor> all;
        all.reserve(lines * depth);
        for (int64_t line = 0; line < lines; line++)
            for (int64_t r = 0; r < depth; r++) {
                const int64_t q = r % p.k;
                if (of_a) all.push_back(factor_of(r < p.k ? a(l, line, q) : b.as(l, q, line, a.conj)));
                else all.push_back(factor_of(r < p.k ? b(l, q, line) : a.as(l, line, q, b.conj)));
            }
        return all;
    }

    /* What was wrong, or NULL. */
    const char *judge(operand<R, PARTS> &before, int faults)
    {
        const double u = sizeof(R) == 4 ? 0x1p-24 : 0x1p-53;
        const bool raw = p.by == ::PARTS;
        const int64_t depth = p.k * (p.joined ? 2 : 1);
        const complex alpha = raw ? 1 : complex(g.alpha[0], g.alpha[1]),
                      beta = raw ? 0 : complex(g.beta[0], p.hermitian ? 0 : g.beta[1]);
        operand<R, PARTS> expected = before;
        expected.at = expected.room.data() + (before.at - before.room.data());
        double worst = 0;
        for (int64_t l = 0; l < p.members(); l++) {
            const std::vector<factor> rows = factors(true, l, depth), columns = factors(false, l, depth);
            for (int64_t j = 0; j < p.n; j++)
                for (int64_t i = 0; i < p.m; i++) {
                    if (!p.has(i, j)) continue;
                    long double re = 0, im = 0;
                    double weight = 0;
                    const factor *x = rows.data() + i * depth, *y = columns.data() + j * depth;
                    for (int64_t r = 0; r < depth; r++, x++, y++) {
                        re += x->re * y->re - x->im * y->im;
                        im += x->re * y->im + x->im * y->re;
                        weight += x->size * y->size;
                    }
                    const std::complex<long double> sum(re, im);
                    complex old = beta == 0. ? 0 : before(l, i, j);
                    std::complex<long double> truth = std::complex<long double>(alpha) * sum
                                                      + std::complex<long double>(beta * old);
                    if (p.hermitian && i == j && !raw) {
                        truth = truth.real();
                        if (got(l, i, j).imag() != 0) worst = 1;
                    }
                    const double bound = u * ((2 * depth + 6) * std::abs(alpha) * weight
                                              + 6 * std::abs(beta) * std::abs(old));
                    const double off = (double)std::abs(std::complex<long double>(got(l, i, j)) - truth);
                    worst = std::max(worst, off <= bound ? 0 : 1.0);
                    for (int x = 0; x < PARTS && !raw; x++)
                        expected.place(l, i, j)[x] = c.place(l, i, j)[x];
                }
        }
        if (faults) return "as said above";
        if (worst > 0) return "wrong values";
        if (memcmp(expected.room.data(), c.room.data(), sizeof(R) * c.room.size()))
            return "something beside C is spoilt";
        for (uint32_t x : counters)
            if (x) return "a counter is not zero";
        return NULL;
    }

    /* Runs twice: with blocks in order and late copies, and in any order with copies at once. */
    const char *run()
    {
        const int64_t tiles = GPB_TILES_OF(p.uplo, p.m, p.n, r.bm, r.bn);
        const gpb_emulate_dim plain = { (unsigned)tiles, 1,
                                        (unsigned)(p.members() * (g.splits > 1 ? 2 : 1)) };
        const gpb_emulate_dim shared = { (unsigned)(g.streamk_blocks + tiles * 2 - g.streamk_tiles), 1, 1 };
        const std::vector<R> room = c.room;
        operand<R, PARTS> old = c;
        old.at = old.room.data() + (c.at - c.room.data());
        std::vector<R> first, first_parts;
        for (int turn = 0; turn < 2; turn++) {
            c.room = room;
            for (R &x : partials) x = NAN;
            launched = g;
            mapped = {};
            mapped.gemm = g;
            mapped.products = p.joined ? 2 : 1;
            a.map(0, true, r.bm);
            b.map(1, false, r.bn);
            b.map(2, false, r.bm);
            a.map(3, true, r.bn);
            const int faults = gpb_emulate_run({ r.thread, g.streamk_blocks ? shared : plain,
                                                 (unsigned)r.threads, turn == 1, turn == 1, a.span(),
                                                 b.span() });
            if (const char *wrong = judge(old, faults)) return wrong;
            if (turn && memcmp(first.data(), c.room.data(), sizeof(R) * first.size()))
                return "the order of threads or blocks shows in the bits";
            first = c.room;
        }
        return NULL;
    }
};

template <class R, int PARTS> static const char *run(int number, const problem &p)
{
    trial<R, PARTS> t(rows[number], p);
    return t.run();
}

/* True if that is right; else says what was wrong. */
static bool is_right(int number, const problem &p)
{
    const row &r = rows[number];
    const char *what = r.type == 'd'   ? run<double, 1>(number, p)
                       : r.type == 'c' ? run<float, 2>(number, p)
                                       : run<double, 2>(number, p);
    if (what)
        printf("WRONG: %c %s %ld x %ld x %ld %c%c off by %d, %s, triangle %c%s%s: %s\n", r.type, r.name,
               (long)p.m, (long)p.n, (long)p.k, p.ta, p.tb, p.odd, how_names[p.by], p.uplo ? p.uplo : 'G',
               p.hermitian ? " (Hermitian)" : "", p.joined ? ", joined" : "", what);
    return !what;
}

static bool is_wanted(const row &r, int argc, char **argv)
{
    bool wanted = argc == 1;
    for (int a = 1; a < argc; a++) wanted |= !strcmp(argv[a], r.name);
    return wanted;
}

/* Both products of SYR2K and HER2K in one launch: k that ends within a tile and with one, in each part of k
   what is of either product or of both. */
static void join(int number, int *runs, int *wrong)
{
    static const int64_t sizes[][2] = { { 40, 75 }, { 70, 64 }, { 33, 2 } };
    static const char ways[][3] = { "NT", "TN", "NC", "CN" };
    const row &r = rows[number];
    if (r.form != GPB_FORM_MAPPED || r.caps & GPB_CAP_PAIRS) return;
    for (int x = 0; x < 3; x++)
        for (int way = 0; way < (r.type == 'z' ? 4 : 2); way++, ++*runs) {
            const bool hermitian = way > 1;
            problem p = { sizes[x][0], sizes[x][0], sizes[x][1], ways[way][0], ways[way][1], 0,
                          (x + way) % 3 == 0 ? PARTS : (x + way) % 3 == 1 ? ITEMS : WHOLE,
                          { 1.25, hermitian ? 0 : -0.5 }, { *runs % 3 / 2., 0.75 }, "UL"[*runs % 2] };
            p.hermitian = hermitian;
            p.joined = true;
            *wrong += !is_right(number, p);
        }
}

/* Arguments: names of kernels, if not all. */
int main(int argc, char **argv)
{
    /* Kernels of shapes/ have many tiles for what is not thin, and take k in large chunks. */
    enum { ALL, THIN, OTHERS, TALL };
    static const int64_t sizes[][4] = { { 1, 1, 9, ALL }, { 5, 3, 2, ALL }, { 65, 131, 41, OTHERS },
                                        { 33, 17, 100, ALL }, { 140, 9, 70, OTHERS }, { 10, 130, 33, OTHERS },
                                        { 34, 6, 280, THIN }, { 6, 35, 280, THIN }, { 70, 70, 24, OTHERS },
                                        { 150, 150, 9, OTHERS }, { 70, 70, 90, THIN },
                                        { 270, 40, 100, TALL }, { 200, 96, 16, TALL } };
    static const char transs[] = "NTC";
    int runs = 0, wrong = 0, shared = 0, joined = 0;
    for (int number = 0; number < ROWS; number++) {
        if (!is_wanted(rows[number], argc, argv)) continue;
        join(number, &joined, &wrong);
        for (size_t x = 0; x < sizeof sizes / sizeof *sizes; x++)
            for (int by = 0; by < HOWS; by++)
                for (int way = 0; way < 9; way++) {
                    const row &r = rows[number];
                    /* Some of all combinations, none of which is always left out. What a warp does together
                       takes long here. */
                    if ((way + 2 * by + 4 * (int)x + number) % (r.type == 'c' ? 9 : 18)) continue;
                    if ((by == SHARED && !r.shares()) || r.caps & GPB_CAP_PAIRS) continue;
                    const int odd = (runs * 5 + runs / 4) % 4, even = r.type == 'z' ? odd / 2 * 2 : 0;
                    if (sizes[x][3] == (r.thin ? OTHERS : THIN)) continue;
                    if (sizes[x][3] == TALL && r.bm < 256) continue;
                    const bool triangle = sizes[x][0] == sizes[x][1] && !(r.caps & GPB_CAP_WHOLE);
                    const problem p = { sizes[x][0], sizes[x][1], sizes[x][2], transs[way % 3],
                                        transs[way / 3], r.form == GPB_FORM_MAPPED ? even : odd, (how)by,
                                        { 1.25, -0.5 },
                                        { (double)(runs % 3) / 2, runs % 3 ? 0.75 : 0 },
                                        triangle ? "UL"[runs % 2] : (char)0,
                                        triangle && r.type != 'd' && runs / 2 % 2 };
                    wrong += !is_right(number, p);
                    runs++;
                    shared += by == SHARED;
                }
    }
    printf("%d launches emulated twice, %d with k shared out, and %d of two products; %ld products of tensor "
           "cores; %d wrong\n", runs, shared, joined, gpb_emulate_products, wrong);
    return wrong != 0 || (argc == 1 && (shared < 5 || joined < 20 || gpb_emulate_products == 0));
}
