/* SPDX-License-Identifier: MIT */
/* Asks the GPU what its tensor cores do with sums of products: how many products are added at once, at how
   many bits they are cut off, in which direction, and what FP16's subnormals count as. NVIDIA documents none
   of this, and the promised accuracy rests on the answers (tests/fakecuda/fake_tensor.c implements them). So
   this fails if a GPU or a driver answers otherwise. The questions are products of one row and one column by
   the library's own kernels, with numbers that have no slice but the first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sliced.h"
#include "tests/gpu/placed.h"
#include "tests/gpu/trace.h"

/* What there is to know. */
typedef struct answers {
    int terms;                 /* products that are aligned to each other at once */
    int bits;                  /* that are kept below the largest exponent */
    int to_zero;              /* what is cut off is cut towards zero, positive or negative */
    int result_to_zero;       /* the result too */
    int with_sum;             /* the sum before is aligned with them */
    int plain;                /* 1.5 x 1.5 counts as 2^0: factors' exponents alone */
    int clamped;              /* 2^-17, a subnormal of FP16, counts as 2^-14 */
} answers;

static const struct kernel {
    const char *name, *image;
    bool fp16;
    answers expected, before_hopper;
} kernels[] = {
    { "fp16x3", "sgemm_sliced", true, { 16, 25, true, true, true, true, true }, { 0 } },
    { "bf16x6", "sgemm_sliced", false, { 16, 25, true, true, true, true, false }, { 0 } },
    { "tf32x3_thin", "sgemm_direct", false, { 8, 25, true, true, true, true, false }, { 0 } },
    { "fp16x3_mma",
      "sgemm_mma",
      true,
      { 16, 25, true, true, true, true, true },
      { 8, 24, true, true, true, true, true } },
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

typedef struct term { int p; float a, b; } term;       /* at place p of k */

/* Rows must have elements that count, and a scale of their own. So 64 elements in each operand, from FREE on,
   are 2^0 and face zeros. */
enum { FREE = 32, SHORT = FREE + 2 * GPB_SLICE_MIN_K, LONG = 16384 };

/* The row times the column. NaN, with a message, if another kernel did it. */
static double ask(const char *kernel, int k, int count, const term *terms)
{
    placed p = { .of = { .m = 1, .n = 1, .k = k, .transa = 'T', .transb = 'N', .ld = { k, k, 1 } } };
    float c[1];
    char ran[64];
    p.x[GPB_A] = operand_make(PLACE_DEVICE, GPB_TYPE_s, k, 0);
    p.x[GPB_B] = operand_make(PLACE_DEVICE, GPB_TYPE_s, k, 0);
    p.x[GPB_C] = operand_make(PLACE_DEVICE, GPB_TYPE_s, 1, 0);
    memset(p.x[GPB_A].image, 0, 4 * (size_t)k);
    memset(p.x[GPB_B].image, 0, 4 * (size_t)k);
    operand_floats(&p.x[GPB_C])[0] = NAN;
    float *a = operand_floats(&p.x[GPB_A]), *b = operand_floats(&p.x[GPB_B]);
    for (int x = FREE; x < SHORT; x++) (x % 2 ? a : b)[x] = 1;
    for (int x = 0; x < count; x++) {
        a[terms[x].p] = terms[x].a;
        b[terms[x].p] = terms[x].b;
    }
    operand_put(&p.x[GPB_A]);
    operand_put(&p.x[GPB_B]);
    operand_put(&p.x[GPB_C]);
    set_option("KERNEL", kernel);
    trace_begin();
    placed_call(&p, 1, 0);
    trace_value(trace_end(), "kernel", ran, sizeof ran);
    operand_get(&p.x[GPB_C], c);
    operand_free(&p.x[GPB_A]);
    operand_free(&p.x[GPB_B]);
    operand_free(&p.x[GPB_C]);
    if (!strcmp(ran, kernel)) return (double)c[0];
    printf("%s: the trace says kernel=%s\n", kernel, ran);
    return NAN;
}

/* a b + x - a b, x = number 2^exponent: what is left of x. */
static double left_of(const char *kernel, int k, float a, float b, double number, int exponent)
{
    const int down = exponent / 2;
    const term terms[] = { { 0, a, b },
                           { 2, ldexpf((float)number, down), ldexpf(1, exponent - down) },
                           { 1, a, -b } };
    return ask(kernel, k, 3, terms);
}

static int ask_bits(const char *kernel)
{
    int bits = 1;
    while (bits < 28 && left_of(kernel, SHORT, 1, 1, 1, -bits - 1) == ldexp(1, -bits - 1)) bits++;
    return bits;
}

/* 1 - 1 at 0 and 1, and at p what does not outlive that: in how many places is it lost? */
static int ask_terms(const char *kernel, int bits)
{
    int terms = 2;
    for (int p = 2; p < FREE; p++) {
        const term three[] = { { 0, 1, 1 }, { 1, 1, -1 }, { p, 0x1p-14f, ldexpf(1, 13 - bits) } };
        terms += ask(kernel, SHORT, 3, three) == 0;
    }
    return terms;
}

/* 1 in the first sum, -1 and something small in the next. */
static bool ask_with_sum(const char *kernel, int terms, int bits)
{
    const term three[] = { { 0, 1, 1 }, { terms, 1, -1 }, { terms + 1, 0x1p-14f, ldexpf(1, 13 - bits) } };
    return ask(kernel, SHORT, 3, three) == 0;
}

/* 2 + 2^-23 + 2^-24: three quarters of a unit in FP32's last place. */
static bool ask_result(const char *kernel)
{
    const term terms[] = { { 0, 1, 1 }, { 1, 1, 1 }, { 2, 0x1p-12f, 0x1p-11f }, { 3, 0x1p-12f, 0x1p-12f } };
    return ask(kernel, SHORT, 4, terms) == 2;
}

static answers ask_all(const struct kernel *x)
{
    answers is = { .bits = ask_bits(x->name) };
    const double unit = ldexp(1, -is.bits);
    is.terms = ask_terms(x->name, is.bits);
    is.to_zero = left_of(x->name, SHORT, 1, 1, 1.75, -is.bits) == unit
        && left_of(x->name, SHORT, 1, 1, -1.75, -is.bits) == -unit;
    is.result_to_zero = ask_result(x->name);
    is.with_sum = ask_with_sum(x->name, is.terms, is.bits);
    is.plain = left_of(x->name, SHORT, 1.5f, 1.5f, 1, -is.bits) == unit;
    if (!x->fp16) return is;
    /* rows are scaled to 2^14: 2^-31 is FP16's 2^-17. Where it is not 2^-14 that counts, sums are cut at
       2^-31 - bits. */
    is.clamped = left_of(x->name, LONG, 0x1p-31f, 1, 1, -28 - is.bits) == ldexp(1, -28 - is.bits) &&
                 left_of(x->name, LONG, 0x1p-31f, 1, 1, -29 - is.bits) == 0;
    return is;
}

static void show(const char *who, const answers *is, bool fp16)
{
    printf("%-22s %2d products at once, %d bits, cut %s, results %s, sum before %s, 1.5 x 1.5 as %s%s\n", who,
           is->terms, is->bits, is->to_zero ? "towards zero" : "OTHERWISE",
           is->result_to_zero ? "towards zero" : "ROUNDED", is->with_sum ? "with them" : "APART",
           is->plain ? "2^0" : "2^1",
           !fp16             ? ""
               : is->clamped ? ", 2^-17 as 2^-14"
                             : ", 2^-17 as ITSELF");
}

int main(void)
{
    int wrong = 0, asked = 0;
    setenv("FAKECUDA_TENSOR", "1", 1);     /* the software libcuda: sums as tensor cores have them */
    if (!gpu_open()) return 77;
    set_option("OFFLOAD", "always");
    for (int i = 0; i < KERNELS; i++) {
        if (!kernel_runs(kernels[i].image)) continue;
        const answers *expected = gpu_arch() < 90 ? &kernels[i].before_hopper : &kernels[i].expected;
        const answers is = ask_all(&kernels[i]);
        asked++;
        show(kernels[i].name, &is, kernels[i].fp16);
        if (!memcmp(&is, expected, sizeof is)) continue;
        show("  expected", expected, kernels[i].fp16);
        wrong++;
    }
    printf("%d kernels asked, %d otherwise than expected\n%s\n", asked, wrong,
           asked && !wrong ? "PASSED" : "FAILED");
    return !asked || wrong;
}
