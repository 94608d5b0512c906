/* SPDX-License-Identifier: MIT */
/* Searches for the rows and columns whose product a kernel gets most wrong: by its bound, and by the rms of
   one chain of FMAs. A list of families contains only what somebody thought of. This changes exponents,
   mantissas and signs, of one place of k or of many together, keeps a change if the error grows, and begins
   again at random. On the software libcuda (FAKECUDA_TENSOR) it searches the bit model, with guards and
   fallbacks.
   Usage: accuracy_search [KERNEL [K [STEPS [SEED]]]] (default: all kernels, some k, few steps). Fails if
   anything exceeds its bound. Prints the best finds gene by gene. Those worth keeping are families of
   accuracy_data.def. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/placed.h"

/* An element, of every row alike: its exponent, which mantissa, which sign. MANTISSAS and SIGNS: drawn by row
   and place. */
enum { PAIRS = 8, MAX_K = 4096, DEEPEST = 40, RESTARTS = 6 };
static const float mantissas[] = { 1,
                                   1.5f,
                                   1.25f,
                                   2 - 0x1p-10f,
                                   1 + 0x1p-10f,
                                   1 + 0x1p-11f,
                                   1 + 0x1p-12f,
                                   1 + 4093 * 0x1p-23f,
                                   1 + 4095 * 0x1p-23f,
                                   1 + 3 * 0x1p-12f,
                                   1 + 0x1p-23f,
                                   2 - 0x1p-23f,
                                   2 - 0x1p-12f };
enum { MANTISSAS = sizeof mantissas / sizeof *mantissas, DRAWN = MANTISSAS, SIGNS = 2 };
typedef struct gene {
    signed char exponent, mantissa, sign;
} gene; /* exponent > 0: the element is 0 */
typedef struct genome { gene a[MAX_K], b[MAX_K]; } genome;

static uint64_t state;
static uint64_t draw(uint64_t below)
{
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % below;
}

static float element(gene g)
{
    if (g.exponent > 0) return 0;
    const float mantissa = g.mantissa == DRAWN ? 1 + (float)draw(1 << 23) * 0x1p-23f
                                               : mantissas[(int)g.mantissa];
    const bool minus = g.sign == SIGNS ? draw(2) != 0 : g.sign == 1;
    return ldexpf(minus ? -mantissa : mantissa, g.exponent);
}

/* Changes one thing in some places of a row: one, or every 2nd, 4th, .., 32nd, from one place to another. */
static void change(gene *row, int k)
{
    const int step = 1 << draw(6), first = (int)draw((uint64_t)step), what = (int)draw(4);
    int from = (int)draw((uint64_t)k), to = (int)draw((uint64_t)k) + 1;
    const gene is = { (signed char)(1 - (int)draw(DEEPEST)), (signed char)draw(MANTISSAS + 1),
                      (signed char)draw(SIGNS + 1) };
    const int nudge = (int)draw(5) - 2;
    if (draw(2)) {
        from = 0;
        to = k;
    }
    if (draw(4) == 0) to = from + 1;
    for (int p = from; p < to; p++) {
        if (to != from + 1 && p % step != first) continue;
        if (what == 0) row[p] = is;
        else if (what == 1) row[p].mantissa = is.mantissa;
        else if (what == 2) row[p].sign = is.sign;
        else if (row[p].exponent <= 0)
            row[p].exponent = (signed char)fmax(-DEEPEST, fmin(0, row[p].exponent + nudge));
    }
}

typedef struct search {
    const char *kernel, *math;
    bool by_rms;
    placed p;
    double worst;                          /* so far */
    genome best;
} search;

/* What a kernel makes of the operands: of the bound at most, and the rms. */
typedef struct errors { double bound, rms; } errors;
static errors errors_of(search *s, const char *kernel, const char *math, float *c)
{
    errors e = { 0, 0 };
    const enum gpb_math is = strcmp(math, "tf32") ? GPB_MATH_FMA : GPB_MATH_TF32;
    const gpb_call g = gpb_problem_call(&s->p.of, 1, 0, s->p.x[GPB_A].image, s->p.x[GPB_B].image, NULL);
    set_option("MATH", math);
    set_option("KERNEL", kernel);
    placed_call(&s->p, 1, 0);
    operand_get(&s->p.x[GPB_C], c);
    for (int i = 0; i < PAIRS; i++)
        for (int j = 0; j < PAIRS; j++) {
            const gpb_reference_element wanted = gpb_reference_at(&g, NULL, i, j, 0);
            const double off = fabs((double)c[i + j * PAIRS] - wanted.value) / wanted.product * 0x1p24;
            e.bound = fmax(e.bound, gpb_reference_error(is, &g, wanted, &c[i + j * PAIRS], 0));
            if (wanted.product > 0) e.rms += off * off / (PAIRS * PAIRS);
        }
    e.rms = sqrt(e.rms);
    return e;
}

/* How bad it is. What was left to FMAs is not looked at, because their sums are the worst of all and nothing
   is to be found in them. */
static double judge(search *s, const genome *x)
{
    for (int i = 0; i < PAIRS; i++)
        for (int p = 0; p < s->p.of.k; p++) {
            operand_floats(&s->p.x[GPB_A])[i * s->p.of.k + p] = element(x->a[p]);
            operand_floats(&s->p.x[GPB_B])[i * s->p.of.k + p] = element(x->b[p]);
        }
    operand_put(&s->p.x[GPB_A]);
    operand_put(&s->p.x[GPB_B]);
    float c[PAIRS * PAIRS], chains[PAIRS * PAIRS];
    const errors ours = errors_of(s, s->kernel, s->math, c);
    const errors theirs = errors_of(s, "warp_strided", "ieee", chains);
    if (!memcmp(c, chains, sizeof c)) return 0;
    return s->by_rms ? ours.rms / fmax(theirs.rms, 0.1) : ours.bound;
}

static void begin(genome *x, int k)
{
    const int spread = (int)draw(draw(2) ? DEEPEST : 4);
    for (int p = 0; p < k; p++) {
        x->a[p] = (gene){ (signed char)-(int)draw((uint64_t)spread + 1), DRAWN, SIGNS };
        x->b[p] = (gene){ (signed char)-(int)draw((uint64_t)spread + 1), DRAWN, SIGNS };
    }
    for (int n = 0; n < 8; n++) change(draw(2) ? x->a : x->b, k);
}

static void run(search *s, int steps)
{
    static genome here, next;
    for (int restart = 0; restart < RESTARTS; restart++) {
        double value = -1;
        for (int step = 0; step < steps / RESTARTS; step++) {
            if (step == 0) begin(&next, s->p.of.k);
            else next = here;
            for (uint64_t changes = 1 + draw(3); changes && step; changes--)
                change(draw(2) ? next.a : next.b, s->p.of.k);
            const double now = judge(s, &next);
            if (now >= value) {
                value = now;
                here = next;
            }
        }
        if (value > s->worst) {
            s->worst = value;
            s->best = here;
        }
    }
}

static void show(const char *name, const gene *row, int k)
{
    printf("  %s:", name);
    for (int p = 0, count; p < k; p += count) {
        for (count = 1; p + count < k && !memcmp(&row[p], &row[p + count], sizeof *row); count++) {}
        if (row[p].exponent > 0) printf(" %dx0", count);
        else
            printf(" %dx%s%a*2^%d", count,
                   row[p].sign == SIGNS ? "+-"
                       : row[p].sign    ? "-"
                                        : "",
                   row[p].mantissa == DRAWN ? 0. : (double)mantissas[(int)row[p].mantissa], row[p].exponent);
    }
    printf("\n");
}

/* False if something is beyond the bound. */
static bool look(const char *kernel, const char *math, bool by_rms, int k, int steps)
{
    static search s;
    s = (search){ .kernel = kernel, .math = math, .by_rms = by_rms };
    s.p = (placed){
        .of = { .m = PAIRS, .n = PAIRS, .k = k, .transa = 'T', .transb = 'N', .ld = { k, k, PAIRS } }
    };
    s.p.x[GPB_A] = operand_make(PLACE_DEVICE, GPB_TYPE_s, PAIRS * k, 0);
    s.p.x[GPB_B] = operand_make(PLACE_DEVICE, GPB_TYPE_s, PAIRS * k, 0);
    s.p.x[GPB_C] = operand_make(PLACE_DEVICE, GPB_TYPE_s, PAIRS * PAIRS, 0);
    run(&s, steps);
    printf("%-14s k %5d: %s %.3f\n", kernel, k,
           by_rms ? "rms, of one chain of FMAs' or 0.1 u:" : "of the bound:", s.worst);
    if (steps > 1000 || (!by_rms && s.worst > 1)) {
        show("a", s.best.a, k);
        show("b", s.best.b, k);
    }
    fflush(stdout);
    operand_free(&s.p.x[GPB_A]);
    operand_free(&s.p.x[GPB_B]);
    operand_free(&s.p.x[GPB_C]);
    return by_rms || s.worst <= 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *kernel, *image, *math;
    } all[] = { { "fp16x3", "sgemm_sliced", "fp32" },
                { "bf16x6", "sgemm_sliced", "fp32" },
                { "fp16x3_mma", "sgemm_mma", "fp32" },
                { "tf32x3_thin", "sgemm_direct", "fp32" },
                { "fp16x1", "sgemm_sliced", "tf32" } };
    static const int depths[] = { 64, 256 };
    const int only = argc > 2 ? atoi(argv[2]) : 0, steps = argc > 3 ? atoi(argv[3]) : 300;
    bool right = only <= MAX_K;
    setenv("FAKECUDA_TENSOR", "1", 0);
    if (!gpu_open()) return 77;
    set_option("OFFLOAD", "always");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int d = 0; d < (only ? 1 : 2); d++) {
            if ((argc > 1 && strcmp(argv[1], all[i].kernel)) || !kernel_runs(all[i].image)) continue;
            state = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
            right = look(all[i].kernel, all[i].math, false, only ? only : depths[d], steps) && right;
            if (!strcmp(all[i].math, "fp32"))
                look(all[i].kernel, all[i].math, true, only ? only : depths[d], steps);
        }
    printf("%s\n", right ? "PASSED" : "FAILED");
    return !right;
}
