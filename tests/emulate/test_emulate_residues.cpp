/* SPDX-License-Identifier: MIT */
/* Double by residues, on the CPU (emulate.h): operands of any layout to planes of bytes, products of those
   modulo each of the moduli, and C of their residues. Checked: C against integers that are computed here, the
   bound of kernels/residues/README.md, guard words, alpha, beta and edges; each modulus by itself. Only the
   tensor cores' part is done by plain loops. */
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "kernels/residues/combine.cuh"
#include "kernels/residues/quantize.cuh"

static std::mt19937_64 numbers(7);
static double draw() { return (double)(int64_t)numbers() * 0x1p-63; }
static int failures;
static void fail(const char *what, int64_t x, int64_t y)
{
    if (failures++ < 10) printf("%s: %lld %lld\n", what, (long long)x, (long long)y);
}

/* What the rows of an operand hold. Those from HALF on are marked. LEFT and RIGHT, of depth LIMIT_K, are made
   against the bound: they just pass (kappa is 217 of 245 that may be), and the large elements of one face
   zeros of the other. */
enum { LIMIT_K = 150 };
enum content {
    LEFT = -2, RIGHT, NORMAL, POSITIVE, COUNTS, ZEROS, SMALL, HALF, SPIKE, SPECIAL, HUGE_, TINY, CONTENTS
};

static double element(content what, int64_t i, int64_t p)
{
    const double x = draw();
    const double near_one = 1 + x / 64;
    switch (what) {
    case LEFT: return p < 70 ? near_one : p < 80 ? 0.18 * near_one : 0;
    case RIGHT: return p >= 80 ? near_one : p >= 70 ? 0.18 * near_one : 0;
    case POSITIVE: return std::fabs(x);
    case COUNTS: return std::floor(x * 1000);
    case ZEROS: return 0;
    case SMALL: return x * 0x1p-400;
    case HALF: return i % 128 == 5 && p % 2 ? 0 : x;
    case SPIKE: return i % 128 == 5 && p == 3 ? 0x1p60 : x;
    case SPECIAL: return i % 128 == 5 && p == 3 ? (i % 2 ? NAN : INFINITY) : x;
    case HUGE_: return i % 128 == 5 && p == 3 ? 0x1p481 : x;
    case TINY: return i % 128 == 5 ? x * 0x1p-1050 : x;
    default: return x + draw() + draw();
    }
}

/* An operand as a kernel reads it, of a type with that many reals, and its planes. */
struct operand {
    int reals, is_a, conj;
    int64_t rows, k, rs, cs;
    content what;
    std::vector<double> memory;
    std::vector<char> planes;

    operand(int reals_, bool is_a_, int64_t rows_, int64_t k_, bool k_major, bool conj_, content what_)
        : reals(reals_), is_a(is_a_), conj(conj_), rows(rows_), k(k_), rs(k_major ? k_ + 3 : 1),
          cs(k_major ? 1 : rows_ + 2), what(what_), memory(reals * ((rows - 1) * rs + (k - 1) * cs + 1), NAN),
          planes(gpb_residue_bytes(reals == 2, is_a, rows, k), 0x77)
    {
        for (int64_t i = 0; i < rows; i++)
            for (int64_t p = 0; p < k; p++)
                for (int y = 0; y < reals; y++) memory[reals * (i * rs + p * cs) + y] = element(what, i, p);
    }
    double at(int64_t i, int64_t p, int y) const
    {
        const double x = memory[reals * (i * rs + p * cs) + y];
        return y && conj ? -x : x;
    }
    gpb_slice_operand describe()
    {
        gpb_slice_operand x = {};
        x.src = memory.data();
        x.rs = rs;
        x.cs = cs;
        x.rows = rows;
        x.dst = planes.data();
        x.epoch = 99;
        return x;
    }
    int exponent(int64_t i) const
    {
        return ((const int *)(planes.data() + gpb_residue_exponents(reals == 2, is_a, rows, k)))[i];
    }
    /* Element p of row i as an integer. */
    long long number(int64_t i, int64_t p, int y) const { return llrint(ldexp(at(i, p, y), -exponent(i))); }
    uint64_t *guard() { return (uint64_t *)(planes.data() + gpb_residue_guard(reals == 2, is_a, rows, k)); }
    bool marked(int64_t i)
    {
        return gpb_guard_level(guard()[i / gpb_residue_guard_rows(reals == 2, is_a)], 99) != 0;
    }
    signed char residue(int plane, int64_t i, int64_t p) const
    {
        const int64_t padded = gpb_residue_rows(is_a, rows);
        return (signed char)planes[((plane * gpb_residue_chunks(k) + p / 128) * padded + i) * 128
                                   + ((p / 16 % 8) ^ (i % 8)) * 16 + p % 16];
    }
};

static gpb_slice_args slicing;
static gpb_gemm_args product;
template <class T> static void quantize_thread() { gpb_residues<T>(slicing); }
template <class T> static void combine_thread() { gpb_combine<T>(product); }

static int modulus(int l) { return (int)gpb_residue_table.of[l].p; }

/* Each plane has the residues of the numbers, and zeros behind k. */
static void check_planes(const operand &x)
{
    const int each = x.reals == 1 ? 1 : 3;
    for (int64_t i = 0; i < x.rows; i += 7)
        for (int64_t p = 0; p < gpb_residue_chunks(x.k) * 128; p++)
            for (int plane = 0; plane < each * GPB_RESIDUE_MODULI; plane++) {
                const int of = plane % each;
                const long long re = p < x.k ? x.number(i, p, 0) : 0,
                                im = p < x.k && x.reals == 2 ? x.number(i, p, 1) : 0,
                                number = of == 0 ? re : of == 1 ? im : re + im;
                if ((number - x.residue(plane, i, p)) % modulus(plane / each))
                    return fail("residue", plane, i);
            }
}

/* What the tensor cores leave, in the words where combine.cuh looks for them. */
template <class T> static void multiply(const operand &a, const operand &b, std::vector<unsigned> &residues)
{
    const gpb_residue_work<T> work(product);
    residues.assign(work.plane_words() * work.PLANES, 0xdeadbeef);
    for (unsigned plane = 0; plane < work.PLANES; plane++) {
        const gpb_modulus &by = gpb_residue_table.of[plane / (work.PLANES / GPB_RESIDUE_MODULI)];
        for (unsigned tile = 0; tile < work.tiles; tile++)
            for (unsigned thread = 0; thread < 256; thread++)
                for (unsigned y = 0; y < GPB_RESIDUE_WORDS; y++) {
                    const uint64_t unit = (uint64_t)plane * work.tiles + tile;
                    const gpb_residue_unit u = work.unit(unit);
                    const unsigned tile_m = u.tile_m, tile_n = u.tile_n;
                    const unsigned lane = thread % 32;
                    int sum[4] = {};
                    for (int e = 0; e < 4; e++) {
                        const int64_t i = tile_m * 128 + thread / 32 * 16 + lane / 4 + e / 2 * 8,
                                      j = tile_n * 256 + 8 * y + lane % 4 * 2 + e % 2;
                        for (int64_t p = 0; p < a.k && i < a.rows && j < b.rows; p++)
                            sum[e] += a.residue((int)plane, i, p) * b.residue((int)plane, j, p);
                    }
                    residues[work.word(unit, thread / 128, thread % 128)
                             + y * GPB_RESIDUE_GROUP] = gpb_reduce_sums(sum, by);
                }
    }
}

/* C(i,j) exactly, of the integers; and the sum of magnitudes of the true products. */
struct truth { __int128 part[2]; long double exact[2], size[2]; };
static truth truth_of(const operand &a, const operand &b, int64_t i, int64_t j)
{
    truth t = {};
    for (int64_t p = 0; p < a.k; p++)
        for (int x = 0; x < a.reals; x++)
            for (int y = 0; y < a.reals; y++) {
                const int to = x != y, sign = x && y ? -1 : 1;
                const long double both = (long double)a.at(i, p, x) * b.at(j, p, y);
                t.part[to] += sign * (__int128)a.number(i, p, x) * b.number(j, p, y);
                t.exact[to] += sign * both;
                t.size[to] += fabsl(both);
            }
    return t;
}

static bool has(int64_t i, int64_t j)
{
    return !product.uplo || (product.uplo == 'U' ? i <= j : i >= j);
}

static void check_c(operand &a, operand &b, const std::vector<double> &c, int64_t ldc, bool scaled)
{
    for (int64_t j = 0; j < b.rows; j++)
        for (int64_t i = 0; i < ldc; i++)
            for (int y = 0; y < a.reals; y++) {
                const double got = c[a.reals * (i + j * ldc) + y];
                if (i >= a.rows || a.marked(i) || b.marked(j) || !has(i, j)) {
                    if (got != 17) return fail("C that is not this kernel's", i, j);
                    continue;
                }
                const truth t = truth_of(a, b, i, j);
                const double product = ldexp((double)t.part[y], a.exponent(i) + b.exponent(j));
                const double right = scaled ? 2 * product + 17 * 0.5 : product, u = 0x1p-53;
                if (!(fabs(got - right) <= 4 * u * (fabs(right) + 17))) return fail("C of integers", i, j);
                const long double off = fabsl(scaled ? (long double)got - 2 * t.exact[y] - 8.5L
                                                     : got - t.exact[y]);
                if (!(off <= (a.reals * a.k + 4) * u * (scaled ? 2 * t.size[y] + 2 * 8.5L : t.size[y])))
                    return fail("bound", i, j);
                if (!scaled && a.what == COUNTS && b.what == COUNTS && got != (double)t.exact[y])
                    return fail("exactness", i, j);
            }
}

template <class T> static void check(operand &a, operand &b, bool scaled, char uplo = 0)
{
    const bool is_complex = a.reals == 2;
    uint32_t flagged = 0;
    slicing = {};
    slicing.a = a.describe();
    slicing.b = b.describe();
    slicing.k = a.k;
    slicing.batch = 1;
    slicing.conj_a = a.conj != 0;
    slicing.conj_b = b.conj != 0;
    slicing.flagged = &flagged;
    const unsigned strips = (unsigned)(GPB_SLICE_STRIPS(a.rows) + GPB_SLICE_STRIPS(b.rows));
    if (gpb_emulate_run({ quantize_thread<T>, { strips, 1, 1 }, GPB_SLICE_THREADS, true, false, {}, {} }))
        fail("faults of residues", a.rows, b.rows);
    bool any = false;
    for (operand *x : { &a, &b })
        for (int64_t i = 0; i < x->rows; i++) {
            const bool wrong = x->what >= HALF && i / 128 * 128 + 5 < x->rows
                               && (i / gpb_residue_guard_rows(is_complex, x->is_a)
                                   == (i / 128 * 128 + 5) / gpb_residue_guard_rows(is_complex, x->is_a));
            any |= wrong;
            if (x->marked(i) != wrong) fail("guard word", x->what, i);
        }
    if ((flagged != 0) != any) fail("flagged", a.what, b.what);
    if (a.what < HALF && b.what < HALF) {
        check_planes(a);
        check_planes(b);
    }
    const int64_t ldc = a.rows + 1;
    std::vector<double> c(a.reals * ldc * b.rows, 17);
    std::vector<unsigned> residues;
    product = {};
    product.m = a.rows;
    product.n = b.rows;
    product.k = a.k;
    product.a = a.planes.data();
    product.b = b.planes.data();
    product.c = c.data();
    product.ldc = ldc;
    product.alpha[0] = scaled ? 2 : 1;
    product.beta[0] = scaled ? 0.5 : 0;
    product.batch = 1;
    product.uplo = uplo;
    product.guard_a = a.guard();
    product.guard_b = b.guard();
    product.epoch_a = product.epoch_b = 99;
    multiply<T>(a, b, residues);
    product.partials = residues.data();
    const unsigned blocks = (unsigned)GPB_COMBINE_BLOCKS(uplo, a.rows, b.rows);
    if (gpb_emulate_run({ combine_thread<T>, { blocks, 1, 1 }, GPB_COMBINE_THREADS, true, false, {}, {} }))
        fail("faults of combine", a.rows, b.rows);
    if (is_complex && scaled) return;      /* beta C has an imaginary part of its own there */
    check_c(a, b, c, ldc, scaled);
}

/* Sums up to 2^30 in magnitude, by each modulus. */
static void check_sums()
{
    for (int l = 0; l < GPB_RESIDUE_MODULI; l++)
        for (int x = 0; x < 100000; x++) {
            const int edges[] = { (1 << 30) - x, x - (1 << 30), x, -x };
            const int sum = x < 3000 ? edges[x % 4] : (int)(numbers() >> 33) - (1 << 30);
            const int four[4] = { sum, 0, -1, 1 }, p = modulus(l);
            const unsigned got = gpb_reduce_sums(four, gpb_residue_table.of[l]);
            if ((int)(got & 0xff) != (int)(((long long)sum % p + p) % p) || (got >> 8 & 0xff) != 0
                || (int)(got >> 16 & 0xff) != p - 1 || got >> 24 != 1)
                return fail("sum", p, sum);
        }
}

int main()
{
    check_sums();
    for (int turn = 0; turn < 2 * CONTENTS; turn++) {
        const content what = (content)(turn % CONTENTS);
        const bool second = turn >= CONTENTS;
        const content other = what == COUNTS ? COUNTS : NORMAL;
        operand a(1, true, second ? 130 : 37, second ? 40 : 150, turn % 2, false, second ? other : what),
            b(1, false, second ? 140 : 21, second ? 40 : 150, turn % 3 == 0, false, second ? what : other);
        check<double>(a, b, turn % 5 == 1);
        operand za(2, true, second ? 70 : 19, 33, turn % 2, turn % 3 == 1, second ? other : what),
            zb(2, false, second ? 23 : 131, 33, turn % 3 == 0, turn % 2 == 0, second ? what : other);
        check<double2>(za, zb, false);
    }
    operand left(1, true, 37, LIMIT_K, false, false, LEFT), right(1, false, 21, LIMIT_K, true, false, RIGHT);
    check<double>(left, right, false);
    for (const char uplo : { 'U', 'L' }) {
        operand a(1, true, 270, 40, false, false, NORMAL), b(1, false, 270, 40, true, false, NORMAL);
        check<double>(a, b, uplo == 'U', uplo);
        operand za(2, true, 150, 33, false, false, NORMAL), zb(2, false, 150, 33, true, false, NORMAL);
        check<double2>(za, zb, false, uplo);
    }
    printf("residues: %d failures\n", failures);
    return failures != 0;
}
