/* SPDX-License-Identifier: MIT */
/* The FFMA kernels except the ladder's, and those that slice their operands themselves, as compiled for
   the GPU, on the CPU (emulate.h). Values are compared with FP64; nothing is read outside the operands or
   written outside C; all threads are at the same barriers; k is whole, in parts and shared out by
   Stream-K; counters are zero afterwards; and the bits are the same for any order of threads and blocks
   and however late copies happen. This does not show races that barriers do not reveal, nor the order of
   memory. */
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "kernels/sgemm_ffma.cu"
#include "kernels/sgemm_direct.cu"
#include "kernels/sgemm_shapes.cu"

#define GPB_MINE_sgemm_ffma ~, KEEP
#define GPB_MINE_sgemm_direct ~, KEEP
#define GPB_MINE_sgemm_shapes ~, KEEP
#define COMMA ,
struct row {
    const char *name;
    void (*kernel)(gpb_gemm_args);
    int bm, bn, bk, threads;
    bool shares;                         /* k among blocks */
};
static const row rows[] = {
#define KERNEL(step, p, name, image, math, form, bm, bn, bk, stages, threads, smem, caps, idea) \
    GPB_ONLY(image)({ #name COMMA GPB_GEMM_SYMBOL(p, name) COMMA bm COMMA bn COMMA bk COMMA threads \
              COMMA !strcmp(#image, "sgemm_ffma") } COMMA)
#include "kernels/gemm.def"
#undef KERNEL
};

/* How the launch is made. SHARED: several rounds. MANY: many parts a tile, and parts that reach across
   tiles' ends, of a batch by addresses. GUARDED: only the blocks of every other 128 rows. */
enum how { WHOLE, PARTS, SHARED, MANY, GUARDED, HOWS };
static const char *const how_names[HOWS] = { "whole", "in parts", "shared", "in many parts", "guarded" };

struct problem {
    int64_t m, n, k;
    bool ta, tb, odd;                    /* odd: leading dimensions, and bases at multiples of 4 bytes only */
    how by;
    double alpha, beta;
    char uplo = 0;                       /* 'U', 'L': that triangle of C alone */
    bool has(int64_t i, int64_t j) const { return !uplo || (uplo == 'U' ? i <= j : i >= j); }
};
static int64_t batch_of(const problem &p) { return p.by == SHARED || p.by == MANY ? 2 : 1; }

static std::mt19937 numbers(7);
static float number() { return std::normal_distribution<float>()(numbers); }

/* A batch of matrices as op(X): x(i,j) of member l is at[l * stride + i * rs + j * cs]. All else is NaN.
   The last element is the last of the memory, or up to three floats before its end if the base must be
   aligned. */
struct operand {
    std::vector<float> room;
    float *at;
    int64_t rows, cols, rs, cs, stride, batch;
    operand(int64_t rows, int64_t cols, bool transposed, bool odd, int64_t batch, bool empty = false)
        : rows(rows), cols(cols), batch(batch)
    {
        const int64_t high = transposed ? cols : rows, ld = odd ? high + 3 : (high + 3) / 4 * 4;
        rs = transposed ? ld : 1, cs = transposed ? 1 : ld, stride = ld * (transposed ? rows : cols);
        room.assign(count() + 64, NAN);
        at = (float *)((uintptr_t)(room.data() + room.size() - count() - odd) / 16 * 16) + odd;
        for (int64_t l = 0; l < batch; l++)
            for (int64_t x = 0; x < rows * cols && !empty; x++) (*this)(l, x % rows, x / rows) = number();
    }
    float &operator()(int64_t l, int64_t i, int64_t j) { return at[l * stride + i * rs + j * cs]; }
    int64_t count() const
    {
        return rows && cols ? (batch - 1) * stride + (rows - 1) * rs + (cols - 1) * cs + 1 : 0;
    }
    gpb_emulate_span span() const { return { (const char *)at, (const char *)(at + count()) }; }
};

/* All arguments of a launch. */
struct setting {
    const row &r;
    const problem &p;
    operand a, b, c;
    std::vector<float> partials;
    std::vector<uint32_t> counters;
    std::vector<gpb_gemm_item> items;
    std::vector<uint64_t> guards;
    gpb_gemm_args g;
    setting(const row &r, const problem &p);
};

static gpb_gemm_args launched;
template <int ROW> static void thread_of() { rows[ROW].kernel(launched); }
enum { ROWS = sizeof rows / sizeof *rows };
template <int... ROW> static void (*body_of(std::integer_sequence<int, ROW...>, int row))()
{
    static void (*const bodies[])() = { thread_of<ROW>... };
    return bodies[row];
}

static void share(setting &s)
{
    const int64_t units = GPB_TILES_OF(s.p.uplo, s.p.m, s.p.n, s.r.bm, s.r.bn) * batch_of(s.p),
                  k_tiles = (s.p.k + s.r.bk - 1) / s.r.bk;
    const int64_t blocks = s.p.by == SHARED ? std::max<int64_t>(2, units * 2 / 5)
                                            : std::min(units * k_tiles, units * 3 + 1);
    const int64_t tiles_shared = s.p.by == MANY || units < blocks ? units : units % blocks + blocks;
    if (tiles_shared * k_tiles < blocks) return;            /* nothing to share: a plain launch */
    s.g.streamk_tiles = (unsigned)tiles_shared;
    s.g.streamk_blocks = (unsigned)blocks;
    s.partials.assign(2 * blocks * s.r.bm * s.r.bn, NAN);
    s.counters.assign(blocks, 0);
    s.g.partials = s.partials.data();
    s.g.counters = s.counters.data();
}

static void guard(setting &s)
{
    const size_t high = (s.p.m + GPB_GUARD - 1) / GPB_GUARD, wide = (s.p.n + GPB_GUARD - 1) / GPB_GUARD;
    s.guards.assign(high + wide, 3);                        /* stale */
    for (size_t x = 1; x < high; x += 2) s.guards[x] = x % 4 == 1 ? GPB_GUARD_EXTREME(7) : GPB_GUARD_WIDE(7);
    s.g.guard_a = s.guards.data();
    s.g.guard_b = s.guards.data() + high;
    s.g.epoch_a = 7;
    s.g.epoch_b = 9;
    s.g.level = 1;
}

setting::setting(const row &r, const problem &p)
    : r(r), p(p), a(p.m, p.k, p.ta, p.odd, batch_of(p)), b(p.k, p.n, p.tb, p.odd, batch_of(p)),
      c(p.m, p.n, false, p.odd, batch_of(p), p.beta == 0), g()
{
    g.m = p.m;
    g.n = p.n;
    g.k = p.k;
    g.alpha[0] = p.alpha;
    g.beta[0] = p.beta;
    g.batch = batch_of(p);
    g.a = a.at;
    g.rsa = a.rs;
    g.csa = a.cs;
    g.stride_a = a.stride;
    g.b = b.at;
    g.rsb = b.rs;
    g.csb = b.cs;
    g.stride_b = b.stride;
    g.c = c.at;
    g.ldc = c.cs;
    g.stride_c = c.stride;
    g.uplo = p.uplo;
    if (p.by == PARTS) {
        partials.assign(2 * p.m * p.n, NAN);
        g.splits = 2;
        g.partials = partials.data();
    }
    if (p.by == MANY) {
        for (int64_t l = 0; l < g.batch; l++)
            items.push_back({ &a.at[l * a.stride], &b.at[l * b.stride], &c.at[l * c.stride] });
        g.items = items.data();
        g.a = g.b = g.c = NULL;
    }
    if (r.shares && (p.by == SHARED || p.by == MANY) && p.k && p.alpha != 0) share(*this);
    if (p.by == GUARDED) guard(*this);
}

/* What was wrong with the launch, or NULL. before: C before it; faults: how many the emulation found. */
static const char *judge(setting &s, operand &before, int faults)
{
    const problem &p = s.p;
    const bool raw = p.by == PARTS;
    operand expected = before;
    expected.at = expected.room.data() + (before.at - before.room.data());
    double worst = 0;
    for (int64_t l = 0; l < batch_of(p); l++)
        for (int64_t j = 0; j < p.n; j++)
            for (int64_t i = 0; i < p.m; i++) {
                double sum = 0, weight = 0;
                for (int64_t q = 0; q < p.k && p.alpha != 0; q++) {
                    const double x = (double)s.a(l, i, q) * s.b(l, q, j);
                    sum += x;
                    weight += std::fabs(x);
                }
                const float now = s.c(l, i, j);
                const double old = p.beta == 0 || raw ? 0 : p.beta * before(l, i, j),
                             alpha = raw ? 1 : p.alpha;
                const double got = raw ? (double)s.partials[i + j * p.m] + s.partials[i + j * p.m + p.m * p.n]
                                       : now;
                const double bound = 0x1p-24 * ((p.k + 4) * std::fabs(alpha) * weight + 2 * std::fabs(old));
                if (!p.has(i, j) || (p.by == GUARDED && i / GPB_GUARD % 2 == 0)) continue;
                worst = std::max(worst, std::fabs(got - (alpha * sum + old)) <= bound ? 0 : 1.0);
                if (!raw) expected(l, i, j) = now;
            }
    if (faults) return "as said above";
    if (worst > 0) return "wrong values";
    if (memcmp(expected.room.data(), s.c.room.data(), 4 * s.c.room.size()))
        return "something beside C is spoilt";
    for (uint32_t x : s.counters)
        if (x) return "a counter is not zero";
    return NULL;
}

/* Runs twice: with blocks in order and late copies, and in any order with copies at once. */
static const char *run(setting &s, int number)
{
    const int64_t tiles = GPB_TILES_OF(s.p.uplo, s.p.m, s.p.n, s.r.bm, s.r.bn);
    const gpb_emulate_dim plain = { (unsigned)tiles, 1, (unsigned)(s.g.batch * (s.g.splits > 1 ? 2 : 1)) };
    const gpb_emulate_dim shared = { (unsigned)(s.g.streamk_blocks + tiles * s.g.batch - s.g.streamk_tiles),
                                     1, 1 };
    const std::vector<float> before = s.c.room;
    operand old = s.c;
    old.at = old.room.data() + (s.c.at - s.c.room.data());
    std::vector<float> first;
    for (int turn = 0; turn < 2; turn++) {
        s.c.room = before;
        for (float &x : s.partials) x = NAN;
        launched = s.g;
        const int faults = gpb_emulate_run({ body_of(std::make_integer_sequence<int, ROWS>(), number),
                                             s.g.streamk_blocks ? shared : plain, (unsigned)s.r.threads,
                                             turn == 1, turn == 1, s.a.span(), s.b.span() });
        if (const char *wrong = judge(s, old, faults)) return wrong;
        if (turn && memcmp(first.data(), s.c.room.data(), 4 * first.size()))
            return "the order of threads or blocks shows in the bits";
        first = s.c.room;
    }
    return NULL;
}

/* Counts with two odd k above 2^11. C is below 2^24 and so exact in FP32, by any kernel. */
static const char *run_counts(int number)
{
    const problem p = { 130, 3, 203, true, false, false, WHOLE, 1, 0 };
    setting s(rows[number], p);
    for (operand *x : { &s.a, &s.b })
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t j = 0; j < x->cols; j++) {
                const int64_t q = x == &s.a ? j : i, other = x == &s.a ? i : j;
                (*x)(0, i,
                     j) = (float)(q == 5 || q == 150 ? 2049 + 2 * (other * 7 % 170) : 64 + (q + other) % 32);
            }
    if (const char *wrong = run(s, number)) return wrong;
    for (int64_t i = 0; i < p.m; i++)
        for (int64_t j = 0; j < p.n; j++) {
            double sum = 0;
            for (int64_t q = 0; q < p.k; q++) sum += (double)s.a(0, i, q) * s.b(0, q, j);
            if (sum >= 0x1p24 || s.c(0, i, j) != sum) return "counts are not exact";
        }
    return NULL;
}

/* The rms of C's errors in units of 2^-24 |A||B|, with U(0,1), whose sums grow all along and show what is
   cut off or rounded. */
static double error_of(int number, const problem &p)
{
    setting s(rows[number], p);
    double squares = 0;
    for (operand *x : { &s.a, &s.b })
        for (int64_t at = 0; at < x->count(); at++)
            x->at[at] = std::uniform_real_distribution<float>()(numbers);
    if (run(s, number)) return INFINITY;
    for (int64_t j = 0; j < p.n; j++)
        for (int64_t i = 0; i < p.m; i++) {
            double sum = 0;
            for (int64_t q = 0; q < p.k; q++) sum += (double)s.a(0, i, q) * (double)s.b(0, q, j);
            squares += std::pow(((double)s.c(0, i, j) - sum) / sum * 0x1p24, 2);
        }
    return std::sqrt(squares / (double)(p.m * p.n));
}

/* None of these kernels adds up long chains. Tensor cores cut off each of their sums: 1.3 u if it is over
   16 k, 2.1 if it is over 32. A thread's FMAs in sequence: 0.23 u times the root of their number. A tile's
   FMAs are spread over `groups` of threads, so 0.23 sqrt(k) / groups, unless they are banked. */
static const struct { const char *name; int64_t m, n, k; bool ta, tb; double most; } chains[] = {
    { "tf32x3_thin", 60, 40, 128, false, false, 1.6 }, { "tf32x3_flat", 40, 60, 128, false, false, 1.6 },
    { "gemv1", 60, 1, 16384, false, false, 1.3 },      { "gemv1", 60, 1, 16384, true, false, 0.95 },
    { "gevm1", 1, 60, 16384, false, false, 0.95 },      { "gemv4", 60, 4, 16384, false, false, 1.3 },
    { "thin8", 60, 8, 16384, false, false, 1.3 },      { "flat8", 8, 60, 16384, false, false, 1.3 },
};

static int inaccurate()
{
    int wrong = 0;
    for (auto &x : chains) {
        int number = 0;
        while (strcmp(rows[number].name, x.name)) number++;
        const double rms = error_of(number, { x.m, x.n, x.k, x.ta, x.tb, false, WHOLE, 1, 0 });
        printf("%s, %ld x %ld x %ld: rms %.2f u of U(0,1), at most %.2f\n", x.name, (long)x.m, (long)x.n,
               (long)x.k, rms, x.most);
        wrong += !(rms <= x.most);
    }
    return wrong;
}

/* Arguments: names of kernels, if not all. */
int main(int argc, char **argv)
{
    auto wanted = [&](const char *name) {
        return argc == 1
               || std::any_of(argv + 1, argv + argc, [&](const char *x) { return !strcmp(x, name); });
    };
    static const int64_t sizes[][3] = { { 1, 1, 9 },      { 5, 3, 2 },     { 129, 131, 41 }, { 64, 300, 7 },
                                        { 257, 66, 100 }, { 130, 2, 203 }, { 140, 72, 64 },  { 70, 60, 0 },
                                        { 150, 150, 41 }, { 61, 61, 70 },  { 270, 270, 9 } };
    int runs = 0, wrong = 0, shared = 0, triangles = 0;
    for (int r = 0; r < ROWS; r++) {
        /* Not gevm1: its 390 tiles take minutes. */
        const char *inexact = wanted(rows[r].name) && rows[r].bm > 4 ? run_counts(r) : NULL;
        if (inexact) printf("WRONG: %s: %s\n", rows[r].name, inexact);
        wrong += inexact != NULL;
        for (size_t x = 0; x < sizeof sizes / sizeof *sizes; x++)
            for (int by = 0; by < HOWS; by++)
                for (int way = 0; way < 8; way++) {
                    if (!wanted(rows[r].name)) continue;
                    /* A third of all combinations, none of which is always left out. */
                    if ((way + by + (int)x) % 3) continue;
                    /* What a warp does together takes long here. */
                    if (!rows[r].shares && (way + 3 * by + (int)x) % 5) continue;
                    if (rows[r].bm * rows[r].bn < 1024
                        && GPB_TILES(sizes[x][0], sizes[x][1], rows[r].bm, rows[r].bn) > 4)
                        continue;
                    if (by == GUARDED && rows[r].bm > GPB_GUARD) continue;  /* such are nobody's fallback */
                    const problem p = {
                        sizes[x][0],           sizes[x][1],    sizes[x][2], (way & 1) != 0,
                        (way & 2) != 0,        (way & 4) != 0, (how)by,     runs % 9 == 8 ? 0 : 1.25,
                        (double)(runs % 3) / 2, sizes[x][0] == sizes[x][1] ? "UL"[runs % 2] : (char)0
                    };
                    setting s(rows[r], p);
                    const char *what = run(s, r);
                    runs++, shared += s.g.streamk_blocks > 0, triangles += p.uplo != 0;
                    if (!what) continue;
                    wrong++;
                    printf("WRONG: %s %ld x %ld x %ld %c%c%s%s, %s, %u of %u blocks: %s\n", rows[r].name,
                           (long)p.m, (long)p.n, (long)p.k, p.ta ? 'T' : 'N', p.tb ? 'T' : 'N',
                           p.odd ? ", odd" : "", p.uplo == 'U' ? ", upper" : p.uplo ? ", lower" : "",
                           how_names[by], s.g.streamk_tiles, s.g.streamk_blocks, what);
                }
    }
    if (argc == 1 || wanted("chains")) wrong += inaccurate();
    printf(
        "%d launches emulated twice, %d of them with k shared out, %d into triangles; %ld products of tensor "
        "cores; %d wrong\n",
        runs, shared, triangles, gpb_emulate_products, wrong);
    return wrong != 0 || (argc == 1 && (shared < 50 || triangles < 100 || gpb_emulate_products == 0));
}
