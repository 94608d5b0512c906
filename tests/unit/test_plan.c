/* SPDX-License-Identifier: MIT */
/* Plans for GPUs that nobody here owns: a table for people to review (plans.golden), the rules one by one,
   and properties of random plans. usage: test_plan plans.golden | test_plan --print */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "dispatch/cost.h"
#include "dispatch/decide.h"
#include "dispatch/kernel_pick.h"
#include "dispatch/numbers.h"
#include "dispatch/panels.h"
#include "dispatch/predict.h"
#include "dispatch/resident.h"
#include "dispatch/schedule.h"
#include "dispatch/streamk.h"
#include "kernels/sliced.h"
#include "tests/unit/golden.h"
#include "tests/unit/random.h"

#define GIB (INT64_C(1) << 30)
#define COUNT(array) ((int)(sizeof (array) / sizeof *(array)))

static const struct card { const char *name; gpb_facts facts; } cards[] = {
#define CARD(card, cc, count, gib, rate, launch, host_cores, gflops)                                      \
    { card, { .gpu = { .arch = (cc), .sms = (count), .bytes = (gib) * GIB },                              \
              .link = { rate, rate, 1.1 * (rate), launch }, .host = { host_cores, gflops },               \
              .learnt = { .host_ratio = 1, .gpu_ratio = 1 } } },
    /*    name     arch  SMs  GiB  GB/s  launch  cores  GFLOP/s each */
    CARD( "T4",    75,   40,  12,  10,   20e-6,  8,     40 )
    CARD( "small", 86,   20,   3,  10,   15e-6,  8,     60 )
    CARD( "A100",  80,  108,  32,  20,   15e-6,  16,    60 )
    CARD( "H100",  90,  132,  64,  45,   12e-6,  16,    73 )
    CARD( "H200",  90,  132, 112,  45,   12e-6,  16,    20 )
    CARD( "B200",  100, 148, 144,  45,   12e-6,  32,    73 )
};

static gpb_call gemm(int64_t m, int64_t n, int64_t k)
{
    static const void *const b = (const void *)4096;     /* another matrix than A */
    return (gpb_call){ .symbol = "sgemm_", .type = GPB_TYPE_s, .x[GPB_A].trans = 'N', .x[GPB_B].trans = 'N',
                       .x[GPB_B].base = b, .x[GPB_C].uplo = 'G', .m = m, .n = n, .k = k,
                       .alpha = 1, .batch = 1 };
}

/* SYRK: op(A) is n x k. */
static gpb_call syrk(char uplo, char trans, int64_t n, int64_t k)
{
    gpb_call call = gemm(n, n, k);
    call.routine = GPB_ROUTINE_SYRK;
    call.x[GPB_B].base = call.x[GPB_A].base;
    call.x[GPB_A].trans = trans;
    call.x[GPB_B].trans = trans == 'N' ? 'T' : 'N';
    call.x[GPB_C].uplo = uplo;
    return call;
}

/* ---- the golden */

static const struct question {
    int64_t m, n, k, batch;
    const char *trans, *place;      /* op(A) op(B), and a letter for types other than s; a b c: h host,
                                       p pinned, d device, e elsewhere */
    char uplo;
    double alpha, beta;
    gpb_policy policy;
} questions[] = {
    { 16, 16, 16, 1, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 128, 128, 128, 1, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 256, 256, 256, 1, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 512, 512, 512, 1, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 1024, 1024, 1024, 1, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 2048, 2048, 2048, 1, "NN", "hhh", 'G', 1, 1, { 0 } },
    { 3135, 3135, 3135, 1, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 4096, 4096, 4096, 1, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 4096, 4096, 4096, 1, "TC", "hhh", 'G', 1, 0, { 0 } },
    { 4096, 4096, 4096, 1, "NN", "hhh", 'G', 1, 0, { .math = GPB_POLICY_TF32 } },
    { 4096, 4096, 4096, 1, "NN", "hhh", 'G', 1, 0, { .math = GPB_POLICY_IEEE } },
    { 8192, 8192, 8192, 1, "NT", "hhh", 'L', 1, 0, { 0 } },
    { 30000, 30000, 30000, 1, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 100000, 100000, 100000, 1, "NN", "hhh", 'G', 1, 1, { 0 } },
    { 200000, 200000, 1000, 1, "TN", "hhh", 'U', 1, 1, { 0 } },
    { 2147483647, 64, 64, 1, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 64, 64, 2147483647, 1, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 64, 64, 65536, 1, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 8192, 1, 8192, 1, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 8192, 8192, 16, 1, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 768, 3072, 512, 1, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 64, 64, 64, 10000, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 1024, 1024, 1024, 10000, "NN", "hhh", 'G', 1, 0, { 0 } },
    { 1, 1, 1, 1, "NN", "ddd", 'G', 1, 0, { 0 } },
    { 256, 256, 4096, 1, "NN", "ddd", 'G', 1, 0, { 0 } },
    { 64, 64, 65536, 1, "NN", "ddd", 'G', 1, 0, { 0 } },
    { 64, 64, 65536, 1, "NN", "ddd", 'G', 1, 0, { .math = GPB_POLICY_IEEE } },
    { 1, 8192, 8192, 1, "NN", "ddd", 'G', 1, 0, { 0 } },
    { 16384, 16, 4096, 1, "TN", "ddd", 'G', 1, 0, { 0 } },
    { 8192, 8192, 16, 1, "NN", "ddd", 'G', 1, 0, { 0 } },
    { 128, 128, 128, 256, "NN", "ddd", 'G', 1, 0, { 0 } },
    { 512, 512, 512, 1, "NN", "ddd", 'G', 1, 0, { 0 } },
    { 1024, 1024, 1024, 1, "NN", "ddd", 'G', 1, 1, { 0 } },
    { 4096, 4096, 4096, 1, "NT", "ddd", 'G', 1, 1, { 0 } },
    { 4096, 4096, 4096, 1, "NT", "ddd", 'U', 1, 1, { 0 } },
    { 4096, 4096, 4096, 1, "NN", "dhh", 'G', 1, 0, { 0 } },
    { 4096, 4096, 4096, 1, "NN", "hhe", 'L', 1, 0, { 0 } },
    { 32768, 32768, 32768, 1, "NN", "ddd", 'G', 1, 0, { 0 } },
    { 4096, 4096, 0, 1, "NN", "hhh", 'G', 1, 0.5, { 0 } },
    { 4096, 4096, 4096, 1, "NN", "ddh", 'G', 0, 0.5, { 0 } },
    { 4096, 4096, 0, 1, "NN", "hhd", 'G', 1, 0.5, { 0 } },
    { 16, 16, 0, 1, "NN", "hhh", 'G', 1, 0.5, { .offload = GPB_OFFLOAD_ALWAYS } },
    { 16, 16, 16, 1, "NN", "hhh", 'G', 1, 0, { .offload = GPB_OFFLOAD_ALWAYS } },
    { 4096, 4096, 4096, 1, "NN", "hhh", 'G', 1, 0, { .offload = GPB_OFFLOAD_NEVER } },
    { 4000, 4000, 4000, 1, "NN", "hhh", 'G', 1, 1, { .kernel = "padded" } },
    { 4096, 4096, 4096, 1, "NN", "hhh", 'G', 1, 0, { .kernel = "tf32_2stage" } },
    { 4096, 4096, 4096, 1, "NN", "hhh", 'G', 1, 0, { .kernel = "no_such_row" } },
    { 16, 16, 16, 1, "NN", "ddd", 'G', 1, 0, { .kernel = "fp16x3" } },
    { 256, 256, 4096, 1, "NN", "ddd", 'G', 1, 0, { .kernel = "registers", .splits = 4 } },
    { 256, 256, 256, 1, "NNd", "hhh", 'G', 1, 0, { 0 } },
    { 1024, 1024, 1024, 1, "NNd", "hhh", 'G', 1, 0, { 0 } },
    { 8192, 8192, 16, 1, "NNd", "ddd", 'G', 1, 0, { 0 } },
    { 8192, 8192, 64, 1, "TNd", "ddd", 'G', 1, 0, { 0 } },
    { 8192, 8192, 128, 1, "NNd", "ddd", 'G', 1, 0, { 0 } },
    { 8192, 8192, 16, 1, "NNc", "ddd", 'G', 1, 0, { 0 } },
    { 8192, 8192, 16, 1, "NNz", "ddd", 'G', 1, 0, { 0 } },
    { 8192, 8192, 8192, 1, "NTd", "hhh", 'L', 1, 0, { 0 } },
    { 100000, 100000, 100000, 1, "NNd", "hhh", 'G', 1, 1, { 0 } },
    { 64, 64, 65536, 1, "NNd", "ddd", 'G', 1, 0, { 0 } },
    { 4096, 4096, 4096, 1, "NNd", "ddd", 'U', 1, 0, { .kernel = "dmma_small" } },
    { 256, 256, 256, 1, "NNc", "hhh", 'G', 1, 0, { 0 } },
    { 4096, 4096, 4096, 1, "NCc", "hhh", 'G', 1, 0, { 0 } },
    { 4096, 4096, 4096, 1, "NCc", "hhh", 'G', 1, 0, { .math = GPB_POLICY_IEEE } },
    { 16384, 16, 4096, 1, "CNc", "ddd", 'G', 1, 0, { 0 } },
    { 128, 128, 128, 256, "NNc", "ddd", 'G', 1, 0, { 0 } },
    { 256, 256, 256, 1, "NNz", "hhh", 'G', 1, 0, { 0 } },
    { 4096, 4096, 4096, 1, "NCz", "hhh", 'G', 1, 0, { 0 } },
    { 1, 8192, 8192, 1, "NNz", "ddd", 'G', 1, 0, { 0 } },
    { 4096, 4096, 4096, 1, "NNz", "hhh", 'G', 1, 0, { .kernel = "ffma" } },
    { 1024, 1024, 1024, 1, "NTs2", "hhh", 'U', 1, 1, { 0 } },
    { 4096, 4096, 4096, 1, "NTd2", "hhh", 'L', 1, 0, { 0 } },
    { 4096, 4096, 4096, 1, "CNz2", "dhh", 'L', 1, 0, { 0 } },
    { 100000, 100000, 100000, 1, "NTd2", "hhh", 'U', 1, 1, { 0 } },
    { 4096, 4096, 256, 1, "NTd2", "ddd", 'U', 1, 1, { 0 } },
    { 2048, 2048, 2048, 1, "NCz", "ddd", 'L', 1, 0, { 0 } },
    { 2048, 2048, 2048, 1, "CNz", "ddd", 'L', 1, 0, { 0 } },
    { 1024, 1024, 1024, 1, "NCz", "ddd", 'L', 1, 0, { 0 } },
    { 1024, 1024, 1024, 1, "NTd", "ddd", 'L', 1, 0, { 0 } },
};

static enum gpb_place place(char letter)
{
    return letter == 'h'   ? GPB_PLACE_HOST
           : letter == 'p' ? GPB_PLACE_PINNED
           : letter == 'd' ? GPB_PLACE_DEVICE
                           : GPB_PLACE_ELSEWHERE;
}

static enum gpb_type type_of(const struct question *q)
{
    enum gpb_type type = GPB_TYPE_s;
    while (q->trans[2] && gpb_type_of(type)->letter != q->trans[2]) type++;
    return type;
}

static const char *offload[] = { "", " offload=always", " offload=never" },
                  *math[] = { "", " math=ieee", " math=tf32" };

static void print_question(int fd, const struct question *q)
{
    dprintf(fd, "\n%lld x %lld x %lld", (long long)q->m, (long long)q->n, (long long)q->k);
    if (q->batch > 1) dprintf(fd, ", %lld times", (long long)q->batch);
    dprintf(fd, "  %s%s%.2s%s a,b,c:%s alpha=%g beta=%g%s%s%s%s", q->trans + 2, q->trans[2] ? " " : "",
            q->trans, q->uplo == 'U' ? " upper" : q->uplo == 'L' ? " lower" : "", q->place, q->alpha, q->beta,
            offload[q->policy.offload], math[q->policy.math], q->policy.kernel ? " kernel=" : "",
            q->policy.kernel ? q->policy.kernel : "");
    if (q->policy.splits) dprintf(fd, " splits=%d", q->policy.splits);
    dprintf(fd, "\n");
}

static void print_plan(int fd, const char *card, const gpb_plan *p)
{
    dprintf(fd, "  %-5s %s  %-8.2g %-8.2g", card, p->gpu ? "gpu " : "host", p->host_s * 1e3, p->gpu_s * 1e3);
    if (p->gpu) {
        int64_t arena = p->panel[GPB_A].bytes + p->panel[GPB_B].bytes + p->panel[GPB_C].bytes
                        + p->panel[GPB_A].bytes_packed + p->panel[GPB_B].bytes_packed
                        + p->panel[GPB_C].bytes_packed + p->bytes_parts;
        dprintf(fd, " %-13s", p->kernel->name);
        if (p->splits > 1) dprintf(fd, " k in %d parts", p->splits);
        if (p->streamk && p->bytes_parts) dprintf(fd, " k shared out");
        if (p->fallback) dprintf(fd, " fallback %s", p->fallback->name);
        dprintf(fd, " tile %lldx%lldx%lld", (long long)p->panel[GPB_A].extent,
                (long long)p->panel[GPB_B].extent, (long long)p->kc);
        if (p->group > 1) dprintf(fd, " by %lld", (long long)p->group);
        dprintf(fd, "  pack %c%c%c", p->panel[GPB_A].packs ? 'a' : '-', p->panel[GPB_B].packs ? 'b' : '-',
                p->panel[GPB_C].packs ? 'c' : '-');
        dprintf(fd, "  arena %.1f MiB ", (double)arena / (1 << 20));
    }
    dprintf(fd, " %s\n", p->why);
}

static void print_plans(int fd)
{
    dprintf(fd, "Question, then for each card: route, predicted ms on the host and on the GPU (at least, if "
                "small), how, why.\n");
    for (int i = 0; i < COUNT(questions); i++) {
        const struct question *q = &questions[i];
        gpb_call call = gemm(q->m, q->n, q->k);
        call.type = type_of(q);
        call.x[GPB_A].trans = q->trans[0];
        call.x[GPB_B].trans = q->trans[1];
        call.x[GPB_C].uplo = q->uplo;
        if (q->trans[2] && q->trans[3] == '2') call.routine = GPB_ROUTINE_SYR2K;
        call.alpha = q->alpha;
        call.beta = q->beta;
        call.batch = q->batch;
        print_question(fd, q);
        for (int c = 0; c < COUNT(cards); c++) {
            gpb_facts facts = cards[c].facts;
            facts.where[GPB_A].place = place(q->place[0]);
            facts.where[GPB_B].place = place(q->place[1]);
            facts.where[GPB_C].place = place(q->place[2]);
            gpb_plan plan = gpb_decide(&call, &facts, &q->policy);
            print_plan(fd, cards[c].name, &plan);
        }
    }
}

static void golden(void **state)
{
    assert_true(golden_matches(print_plans, *state));
}

/* ---- the rules */

static const gpb_facts *h200 = &cards[4].facts;

static gpb_plan ask(gpb_call call, gpb_facts facts, gpb_policy policy)
{
    return gpb_decide(&call, &facts, &policy);
}

/* thin16 and thin32 have no registers for totals. So k is cut into parts, as cuBLAS does, to keep chains
   of FMAs (k of a part * columns / 64) short. */
static void short_chains(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = { { 16384, 16, 16384 }, { 16384, 32, 16384 }, { 16384, 32, 4096 },
                                        { 4096, 16, 65536 }, { 8192, 32, 8192 } };
    for (int i = 0; i < COUNT(sizes); i++) {
        gpb_facts facts = *h200;
        facts.where[GPB_A].place = facts.where[GPB_B].place = facts.where[GPB_C].place = GPB_PLACE_DEVICE;
        const gpb_plan plan = ask(gemm(sizes[i][0], sizes[i][1], sizes[i][2]), facts,
                                  (gpb_policy){ .offload = GPB_OFFLOAD_ALWAYS });
        assert_memory_equal(plan.kernel->name, "thin", 4);
        assert_true(sizes[i][2] * plan.kernel->bn <= INT64_C(720) * 64 * plan.splits);
    }
}

static void order_of_the_rules(void **state)
{
    (void)state;
    gpb_facts device = *h200, none = *h200;
    device.where[GPB_C].place = GPB_PLACE_DEVICE;
    none.gpu.arch = 0;
    gpb_call big = gemm(4096, 4096, 4096), small = gemm(8, 8, 8), wide = big, empty = gemm(4096, 4096, 0);
    gpb_policy automatic = { 0 }, always = { .offload = GPB_OFFLOAD_ALWAYS },
               never = { .offload = GPB_OFFLOAD_NEVER };
    wide.type = GPB_TYPE_d;

    assert_string_equal(ask(wide, none, never).why, "GPUBLAS_OFFLOAD=never");
    assert_string_equal(ask(big, device, never).why, "GPUBLAS_OFFLOAD=never");
    assert_string_equal(ask(wide, none, always).why, "no GPU");
    assert_string_equal(ask(wide, device, automatic).why, "operand on the device");
    assert_string_equal(ask(wide, cards[0].facts, always).why, "no kernel for this GPU");
    assert_string_equal(ask(big, none, always).why, "no GPU");
    assert_string_equal(ask(small, device, automatic).why, "operand on the device");
    assert_string_equal(ask(empty, device, automatic).why, "operand on the device");
    assert_string_equal(ask(empty, *h200, automatic).why, "nothing to multiply");
    assert_string_equal(ask(empty, *h200, always).why, "nothing to multiply");
    assert_string_equal(ask(small, *h200, always).why, "GPUBLAS_OFFLOAD=always");
    assert_string_equal(ask(small, *h200, automatic).why, "too small for the GPU");
    assert_string_equal(ask(gemm(8192, 1, 8192), *h200, automatic).why, "faster on the host");
    assert_string_equal(ask(big, *h200, automatic).why, "faster on the GPU");
    assert_true(ask(small, device, automatic).gpu && ask(small, *h200, always).gpu
                && ask(big, *h200, automatic).gpu);
    assert_false(ask(small, *h200, automatic).gpu || ask(big, device, never).gpu
                 || ask(big, none, always).gpu);
    device.where[GPB_C].place = GPB_PLACE_HOST;
    device.where[GPB_A].place = GPB_PLACE_DEVICE;       /* A's place counts only if A is read */
    assert_string_equal(ask(empty, device, automatic).why, "nothing to multiply");
    assert_string_equal(ask(small, device, automatic).why, "operand on the device");
}

/* The triangle of a symmetric operand that comes whole is mirrored by a kernel, in its panel or, if it is
   there already, in room beside that. Else it is mirrored on its way up: a small one, where there is no
   kernel, and in panels. On another GPU it is the host's. */
static void symmetric_operands(void **state)
{
    (void)state;
    for (int side = 0; side < 2; side++)
        for (int form = 0; form < 2; form++) {
            gpb_call call = gemm(2000, 2000, 2000);
            call.routine = GPB_ROUTINE_SYMM;
            call.x[side].structure = form ? GPB_HERMITIAN : GPB_SYMMETRIC;
            call.x[side].uplo = 'U';
            gpb_facts facts = cards[4].facts;
            gpb_plan comes = ask(call, facts, (gpb_policy){ 0 });
            assert_true(comes.gpu && comes.mirrors);
            assert_true(gpb_predict_traffic(&comes, &call, &facts).up[side] == 2000 * 2000 * 4 / 2);
            assert_true(comes.gpu_s < ask(gemm(2000, 2000, 2000), facts, (gpb_policy){ 0 }).gpu_s);
            gpb_facts short_of_memory = facts, before_sm_80 = facts;
            short_of_memory.gpu.bytes = 12 << 20;
            before_sm_80.gpu.arch = 75;
            comes = ask(call, short_of_memory, (gpb_policy){ 0 });
            assert_true(comes.gpu && !comes.mirrors);
            comes = ask(call, before_sm_80, (gpb_policy){ .offload = GPB_OFFLOAD_ALWAYS });
            assert_true(comes.gpu && !comes.mirrors);
            gpb_call small = call;
            small.m = small.n = small.k = 500;
            comes = ask(small, facts, (gpb_policy){ .offload = GPB_OFFLOAD_ALWAYS });
            assert_true(comes.gpu && !comes.mirrors);
            facts.where[!side].place = facts.where[GPB_C].place = GPB_PLACE_DEVICE;
            assert_true(ask(call, facts, (gpb_policy){ 0 }).gpu);
            facts.where[side].place = GPB_PLACE_ELSEWHERE;
            assert_false(ask(call, facts, (gpb_policy){ .offload = GPB_OFFLOAD_ALWAYS }).gpu);
            facts.where[side].place = GPB_PLACE_DEVICE;
            const gpb_plan plan = ask(call, facts, (gpb_policy){ 0 });
            assert_true(plan.gpu && !plan.mirrors);
            assert_in_range(plan.bytes_mirrored, 2000 * 2000 * 4, 2048 * 2048 * 4);
            assert_string_equal(plan.why, "operand on the device");
            gpb_facts little = facts;
            little.gpu.bytes = gpb_plan_bytes(&plan);
            assert_true(ask(call, little, (gpb_policy){ 0 }).gpu);
            little.gpu.bytes = plan.bytes_mirrored;        /* and all else in place, or no plan */
            const gpb_plan least = ask(call, little, (gpb_policy){ 0 });
            assert_true(!least.gpu || gpb_plan_bytes(&least) == plan.bytes_mirrored);
            gpb_facts old = facts;
            old.gpu.arch = 75;
            assert_false(ask(call, old, (gpb_policy){ 0 }).gpu);
            call.alpha = 0;
            assert_true(ask(call, facts, (gpb_policy){ 0 }).gpu);
        }
}

static void start_must_pay(void **state)
{
    (void)state;
    gpb_facts cold = *h200;
    gpb_call call = gemm(4096, 4096, 4096);
    gpb_plan warm = ask(call, cold, (gpb_policy){ 0 });
    double saved = warm.host_s - warm.gpu_s;
    assert_true(warm.gpu && !warm.waits && saved > 0);
    cold.now.start_s = saved * 2.5;
    cold.now.start_cost_s = saved * 2.5;
    for (int calls = 1; calls <= 3; calls++) {
        /* The third fills the credit, but goes to the host as well. */
        gpb_plan plan = ask(call, cold, (gpb_policy){ 0 });
        assert_true(!plan.gpu && plan.waits && plan.starts == (calls == 3));
        assert_string_equal(plan.why,
                            calls < 3 ? "too little work so far to start the GPU" : "starting the GPU");
        cold.now.credit_s += plan.host_s - plan.gpu_s;
    }
    /* One start is enough. As soon as little of it is left, the call waits for it. */
    cold.now.starting = true;
    gpb_plan during = ask(call, cold, (gpb_policy){ 0 });
    assert_true(!during.gpu && during.waits && !during.starts);
    assert_string_equal(during.why, "starting the GPU");
    cold.now.start_s = saved / 2;
    gpb_plan waits = ask(call, cold, (gpb_policy){ 0 });        /* waits only as long as that pays */
    assert_true(waits.gpu && waits.wait_s > cold.now.start_s && waits.wait_s + waits.gpu_s < waits.host_s
                && warm.wait_s == 0);
    cold.now.credit_s = 0;
    cold.now.starting = false;       /* this call alone is worth the start */
    assert_true(ask(call, cold, (gpb_policy){ 0 }).gpu);
    cold.now.start_s = saved * 2.5;
    waits = ask(call, cold, (gpb_policy){ .offload = GPB_OFFLOAD_ALWAYS });
    assert_true(waits.gpu && waits.wait_s == GPB_PLAN_MAX_START_S);
    assert_false(ask(gemm(8, 8, 8), cold, (gpb_policy){ 0 }).waits);
}

/* What was learnt of the host and of the GPU, and other callers, change the decision. */
static void corrections(void **state)
{
    (void)state;
    gpb_call call = gemm(700, 700, 700);
    gpb_facts facts = *h200;
    gpb_plan plain = ask(call, facts, (gpb_policy){ 0 });
    assert_true(plain.gpu);
    const double ratio = 0.8 * plain.gpu_s / plain.host_s;
    facts.learnt.host_ratio = ratio;
    gpb_plan fast_host = ask(call, facts, (gpb_policy){ 0 });
    assert_false(fast_host.gpu);
    assert_true(fabs(fast_host.host_s / plain.host_s - ratio) < 1e-9);
    facts.learnt.gpu_ratio = 0.5;
    assert_true(ask(call, facts, (gpb_policy){ 0 }).gpu);
    facts.learnt.host_ratio = 1;
    facts.learnt.gpu_ratio = 1 / ratio;
    assert_false(ask(call, facts, (gpb_policy){ 0 }).gpu);
    facts.learnt.gpu_ratio = 1;
    facts.now.callers = 15;
    gpb_plan shared = ask(call, facts, (gpb_policy){ .offload = GPB_OFFLOAD_ALWAYS });
    assert_true(shared.gpu_s > 2 * plain.gpu_s && shared.gpu_s < 16 * plain.gpu_s
                && shared.host_s == 2 * plain.host_s);
    facts.now.host_callers = 3;
    assert_true(ask(call, facts, (gpb_policy){ .offload = GPB_OFFLOAD_ALWAYS }).host_s == 8 * plain.host_s);
}

/* A core does half as many operations a second in double as in single. A complex multiply-add is four of a
   real one, at the rate of its real type. */
static void host_of_each_type(void **state)
{
    (void)state;
    const gpb_facts *facts = &cards[0].facts;
    const double times[GPB_TYPES] = { 1, 2, 4, 8 };
    gpb_call call = gemm(4096, 4096, 4096);
    const double single = gpb_cost_host(&call, facts) - 1e-6;
    for (call.type = 0; call.type < GPB_TYPES; call.type++)
        assert_true(fabs((gpb_cost_host(&call, facts) - 1e-6) / single - times[call.type]) < 1e-9);
    /* SYR2K is two products. */
    gpb_call rank_k = syrk('L', 'T', 4096, 4096), rank_2k = rank_k;
    rank_2k.routine = GPB_ROUTINE_SYR2K;
    const double once = gpb_cost_host(&rank_k, facts) - 1e-6, both = gpb_cost_host(&rank_2k, facts) - 1e-6;
    assert_true(fabs(both / once - 2) < 1e-9);
}

/* Calls rejected by their sizes alone would never be faster on the GPU. What counts is how long the host
   takes (hub/routing.c): see host_of_each_type. */
static void too_few(void **state)
{
    (void)state;
    for (int c = 0; c < COUNT(cards); c++)
        for (int64_t n = 4; n < 256; n++) {
            gpb_facts facts = cards[c].facts;
            gpb_call call = gemm(n, n, n);
            for (facts.learnt.host_ratio = 0.25; facts.learnt.host_ratio < 8; facts.learnt.host_ratio *= 2)
                for (call.type = 0; call.type < GPB_TYPES; call.type++)
                    if ((double)(n * n * n * (1 << call.type)) < gpb_decide_too_few(&facts))
                        assert_false(ask(call, facts, (gpb_policy){ 0 }).gpu);
        }
    assert_true(gpb_decide_too_few(h200) > 16 * 16 * 16);
}

/* A guarded kernel, and no other, has a fallback for the blocks that it leaves. */
static void check_fallback(const gpb_plan *p)
{
    const gpb_kernel *q = p->fallback;
    assert_true(gpb_kernel_table_guarded(p->kernel) == (q != NULL));
    if (q)
        assert_true(q->form == GPB_FORM_STRIDED && q->math == GPB_MATH_FMA && GPB_GUARD % q->bm == 0
                    && GPB_GUARD % q->bn == 0);
}

/* Kernels of FP16 slices are chosen only if rows can have enough elements that count, in each part of k as
   well. */
static void check_slices(const gpb_call *g, const gpb_policy *policy, const gpb_plan *p)
{
    if (p->kernel->math != GPB_MATH_FP16X3 || (policy->kernel && !strcmp(policy->kernel, p->kernel->name)))
        return;
    const int64_t k = gpb_sliced_k(gpb_type_is_complex(g->type), g->k);
    assert_true(k >= 64 && gpb_call_multiplies(g));
    assert_true(p->splits == 1 || policy->splits || p->splits * INT64_C(128) < k + p->kernel->bk);
}

/* What each mode may compute with. */
static void modes(void **state)
{
    (void)state;
    gpb_facts facts = *h200;
    facts.where[GPB_A].place = facts.where[GPB_B].place = facts.where[GPB_C].place = GPB_PLACE_DEVICE;
    for (int64_t n = 1; n <= 16384; n *= 2)
        for (int64_t k = 1; k <= 65536; k *= 4) {
            gpb_plan fp32 = ask(gemm(n, n, k), facts, (gpb_policy){ 0 });
            gpb_plan ieee = ask(gemm(n, n, k), facts, (gpb_policy){ .math = GPB_POLICY_IEEE });
            gpb_plan tf32 = ask(gemm(n, n, k), facts, (gpb_policy){ .math = GPB_POLICY_TF32 });
            assert_true(ieee.kernel->math == GPB_MATH_FMA);
            assert_true(fp32.kernel->math == GPB_MATH_FMA
                        || (fp32.kernel->math == GPB_MATH_FP16X3 && k >= 64));
            assert_true((tf32.kernel->form != GPB_FORM_SLICED && tf32.kernel->math != GPB_MATH_FP16X3)
                        || k >= 64);
            check_fallback(&fp32);
            check_fallback(&ieee);
            check_fallback(&tf32);
            if (n >= 2048 && k >= 2048)
                assert_true(fp32.kernel->math == GPB_MATH_FP16X3 && tf32.kernel->math == GPB_MATH_TF32);
        }
    /* On predicted figures the default uses tensor cores on 80 alone. */
    static const int archs[] = { 75, 80, 86, 89, 100, 120 };
    for (int i = 0; i < COUNT(archs); i++) {
        facts.gpu.arch = archs[i];
        assert_int_equal(ask(gemm(8192, 8192, 8192), facts, (gpb_policy){ 0 }).kernel->math,
                         archs[i] == 80 ? GPB_MATH_FP16X3 : GPB_MATH_FMA);
    }
}

/* k is cut if C alone would leave most of the GPU idle, and never else. */
static void parts_of_k(void **state)
{
    (void)state;
    gpb_facts facts = *h200;
    facts.where[GPB_A].place = facts.where[GPB_B].place = facts.where[GPB_C].place = GPB_PLACE_DEVICE;
    gpb_policy ieee = { .math = GPB_POLICY_IEEE };
    assert_true(ask(gemm(64, 64, 65536), facts, ieee).splits > 8);
    assert_int_equal(ask(gemm(8192, 8192, 8192), facts, ieee).splits, 1);
    assert_int_equal(ask(gemm(64, 64, 16), facts, ieee).splits, 1);
    for (int64_t n = 16; n <= 1024; n *= 2)
        for (int64_t k = 1; k <= 16384; k += k / 8 + 1) {
            const gpb_call call = gemm(n, n, k);
            const gpb_plan plan = ask(call, facts, (gpb_policy){ 0 });
            check_slices(&call, &(gpb_policy){ 0 }, &plan);
        }
    gpb_call triangle = gemm(64, 64, 65536);
    triangle.x[GPB_C].uplo = 'U';
    assert_true(ask(triangle, facts, ieee).splits > 8);
    facts.gpu.bytes = 0;                       /* no room for partial sums */
    gpb_plan no_workspace = ask(gemm(64, 64, 65536), facts, ieee);
    assert_true(no_workspace.gpu && no_workspace.splits == 1
                && no_workspace.kernel->form == GPB_FORM_STRIDED);
}

static void forced_kernel(void **state)
{
    (void)state;
    gpb_call call = gemm(2048, 2048, 2048);
    for (int i = 0; i < gpb_kernel_count; i++) {
        gpb_policy policy = { .offload = GPB_OFFLOAD_ALWAYS, .kernel = gpb_kernels[i].name,
                              .splits = i % 2 ? 3 : 0 };
        enum gpb_form form = gpb_kernels[i].form;
        if (!gpb_kernel_table_serves(&gpb_kernels[i], h200->gpu.arch)) continue;
        /* SLICED, however small. */
        gpb_call tiny = gemm(8, 8, 8);
        call.type = tiny.type = gpb_kernels[i].type;
        gpb_plan plan = ask(call, *h200, policy), little = ask(tiny, *h200, policy);
        assert_ptr_equal(plan.kernel, &gpb_kernels[i]);
        assert_ptr_equal(little.kernel, &gpb_kernels[i]);
        assert_null(strstr(plan.why, "GPUBLAS_KERNEL"));
        const bool cuts = form != GPB_FORM_PADDED_C && !gpb_kernel_table_guarded(&gpb_kernels[i]);
        if (i % 2 || form != GPB_FORM_MAPPED) assert_int_equal(plan.splits, i % 2 && cuts ? 3 : 1);
        else assert_in_range(plan.splits, 1, 16);             /* as the strips want it */
        check_fallback(&plan);
        check_fallback(&little);
    }
    call.type = GPB_TYPE_s;
    gpb_plan unknown = ask(call, *h200, (gpb_policy){ .offload = GPB_OFFLOAD_ALWAYS, .kernel = "warp" });
    gpb_plan too_new = ask(call, cards[0].facts,
                           (gpb_policy){ .offload = GPB_OFFLOAD_ALWAYS, .kernel = "cp_async" });
    assert_true(unknown.gpu && unknown.kernel->math != GPB_MATH_TF32
                && strstr(unknown.why, "GPUBLAS_KERNEL"));
    assert_true(too_new.gpu && too_new.kernel->math == GPB_MATH_FMA
                && strstr(too_new.why, "GPUBLAS_KERNEL"));
    call.type = GPB_TYPE_z;                    /* has no kernel of that name */
    gpb_plan of_s = ask(call, *h200, (gpb_policy){ .offload = GPB_OFFLOAD_ALWAYS, .kernel = "fp16x3" });
    assert_true(of_s.gpu && of_s.kernel->type == GPB_TYPE_z && strstr(of_s.why, "GPUBLAS_KERNEL"));
}

/* A product of double on the device, with that leading dimension. */
static gpb_call doubles(int64_t n, int64_t ld)
{
    gpb_call call = gemm(n, n, n);
    call.type = GPB_TYPE_d;
    for (int x = 0; x < GPB_OPERANDS; x++) {
        call.x[x].base = (const void *)(uintptr_t)(4096 * (x + 1));
        call.x[x].ld = ld;
    }
    return call;
}

static const char *name_of(gpb_call call, gpb_facts facts)
{
    const gpb_policy ieee = { .offload = GPB_OFFLOAD_ALWAYS, .math = GPB_POLICY_IEEE };
    return ask(call, facts, ieee).kernel->name;
}

static bool is_tma(gpb_call call, gpb_facts facts) { return !strncmp(name_of(call, facts), "dmma_tma", 8); }

/* Which products of double go by residues: large ones of a depth that they can have, not if each operation is
   to be FP64's. */
static void by_residues(void **state)
{
    (void)state;
    gpb_facts facts = *h200;
    const gpb_policy fp32 = { .offload = GPB_OFFLOAD_ALWAYS }, ieee = { .offload = GPB_OFFLOAD_ALWAYS,
                                                                       .math = GPB_POLICY_IEEE };
    for (int x = 0; x < GPB_OPERANDS; x++) facts.where[x].place = GPB_PLACE_DEVICE;
    for (enum gpb_type type = GPB_TYPE_d; type < GPB_TYPES; type++) {
        if (gpb_type_real(type) != GPB_TYPE_d) continue;
        gpb_call large = doubles(8192, 8192), deep = doubles(8192, 8192), small = doubles(512, 512);
        large.type = deep.type = small.type = type;
        deep.k = GPB_RESIDUE_MAX_K + 1;
        const gpb_plan plan = ask(large, facts, fp32);
        assert_true(plan.kernel->form == GPB_FORM_RESIDUES && plan.slicer && plan.speculative);
        assert_true(plan.panel[GPB_A].packs && plan.panel[GPB_B].packs && !plan.panel[GPB_C].packs);
        check_fallback(&plan);
        assert_true(ask(large, facts, ieee).kernel->math == GPB_MATH_FMA);
        assert_true(ask(deep, facts, fp32).kernel->math == GPB_MATH_FMA);
        assert_true(ask(small, facts, fp32).kernel->math == GPB_MATH_FMA);
    }
}

/* Where operands come over the link, residues serve only if another kernel's run would be clearly longer. */
static void residues_over_the_link(void **state)
{
    (void)state;
    const gpb_policy always = { .offload = GPB_OFFLOAD_ALWAYS },
                     forced = { .offload = GPB_OFFLOAD_ALWAYS, .kernel = "int8x15" };
    gpb_call square = doubles(4096, 4096), large = doubles(16384, 16384);
    gpb_facts facts = *h200;
    square.k = 4096;
    large.k = 16384;
    assert_true(ask(square, facts, always).kernel->math == GPB_MATH_FMA);
    assert_true(ask(square, facts, forced).kernel->form == GPB_FORM_RESIDUES);
    assert_true(ask(large, facts, always).kernel->form == GPB_FORM_RESIDUES);
    /* Nothing that was measured counts. */
    facts.link.up_gbs = facts.link.down_gbs = 500;
    facts.now.callers = 3;
    assert_true(ask(square, facts, always).kernel->math == GPB_MATH_FMA);
    facts = *h200;
    for (int x = 0; x < GPB_OPERANDS; x++) facts.where[x].place = GPB_PLACE_DEVICE;
    assert_true(ask(square, facts, always).kernel->form == GPB_FORM_RESIDUES);
}

/* Which products of double tensor copies serve: on Hopper, where operands are aligned, or packed on the
   device. Operands that come from the host are not packed, because then they could not come in strips. */
static void mapped(void **state)
{
    (void)state;
    gpb_facts facts = *h200;
    assert_true(is_tma(doubles(4096, 4096), facts) && !is_tma(doubles(4097, 4097), facts));
    for (int x = 0; x < GPB_OPERANDS; x++) facts.where[x].place = GPB_PLACE_DEVICE;
    assert_string_equal(name_of(doubles(8192, 8192), facts), "dmma_tma");
    assert_string_equal(name_of(doubles(4096, 4096), facts), "dmma_tma");
    assert_string_equal(name_of(doubles(2048, 2048), facts), "dmma_tma");
    assert_string_equal(name_of(doubles(1024, 1024), facts), "dmma_tma_half");
    assert_string_equal(name_of(doubles(512, 512), facts), "dmma_tma_tiny");
    const gpb_policy auto_policy = { .math = GPB_POLICY_IEEE };
    const gpb_plan even = ask(doubles(4095, 4096), facts, auto_policy),
                   odd = ask(doubles(4096, 4097), facts, auto_policy);
    assert_true(even.kernel->form == GPB_FORM_MAPPED && !even.panel[GPB_A].packs && !even.panel[GPB_B].packs);
    assert_true(odd.kernel->form == GPB_FORM_MAPPED && odd.panel[GPB_A].packs && odd.panel[GPB_B].packs);
    assert_true(!odd.panel[GPB_C].packs);
    gpb_call call = doubles(4096, 4096);
    call.x[GPB_B].base = (const void *)(uintptr_t)(8192 + 8);
    const gpb_plan shifted = ask(call, facts, auto_policy);
    assert_true(!shifted.panel[GPB_A].packs
                && shifted.panel[GPB_B].packs == (shifted.kernel->form == GPB_FORM_MAPPED));
    call = doubles(4096, 4096);
    call.k = INT64_C(1) << 31;
    assert_false(is_tma(call, facts));
    facts.gpu.no_maps = true;
    assert_false(is_tma(doubles(4096, 4096), facts));
    assert_string_not_equal(ask(doubles(4096, 4096), facts,
                                (gpb_policy){ .math = GPB_POLICY_IEEE, .kernel = "dmma_tma" }).kernel->name,
                            "dmma_tma");
    facts.gpu.no_maps = false;
    static const int archs[] = { 80, 86, 89, 100, 120 };
    for (int i = 0; i < COUNT(archs); i++) {
        facts.gpu.arch = archs[i];
        for (int64_t n = 256; n <= 8192; n *= 2) assert_false(is_tma(doubles(n, n), facts));
    }
}

/* A launch behind others is chosen apart from the same launch by itself, also when both are remembered. */
static void queued(void **state)
{
    (void)state;
    gpb_call call = gemm(4032, 64, 64);
    const gpb_policy chosen = { .offload = GPB_OFFLOAD_AUTO };
    gpb_facts alone = *h200, behind;
    call.type = GPB_TYPE_z;
    for (int x = 0; x < GPB_OPERANDS; x++) alone.where[x].place = GPB_PLACE_DEVICE;
    behind = alone;
    behind.gpu.queued = true;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(gpb_kernel_pick(&call, &alone, &chosen, false).kernel->form, GPB_FORM_STRIDED);
        assert_int_equal(gpb_kernel_pick(&call, &behind, &chosen, false).kernel->form, GPB_FORM_MAPPED);
    }
}

/* The same of complex double, whose elements are aligned wherever the base is. */
static void mapped_complex(void **state)
{
    (void)state;
    gpb_facts facts = *h200;
    const gpb_policy ieee = { .math = GPB_POLICY_IEEE }, forced = { .math = GPB_POLICY_IEEE,
                                                                   .kernel = "dmma_tma" };
    gpb_call call = doubles(1023, 1025);
    call.type = GPB_TYPE_z;
    assert_true(is_tma(call, facts));
    for (int x = 0; x < GPB_OPERANDS; x++) facts.where[x].place = GPB_PLACE_DEVICE;
    const gpb_plan odd = ask(call, facts, ieee);
    assert_true(odd.kernel->form == GPB_FORM_MAPPED && !odd.panel[GPB_A].packs && !odd.panel[GPB_B].packs);
    call.x[GPB_B].base = (const void *)(uintptr_t)(8192 + 8);
    const gpb_plan shifted = ask(call, facts, forced);
    assert_true(shifted.kernel->form == GPB_FORM_MAPPED && !shifted.panel[GPB_A].packs
                && shifted.panel[GPB_B].packs);
    call = doubles(64, 64);
    call.type = GPB_TYPE_z;
    call.k = (INT64_C(1) << 30) - 512;
    assert_string_equal(ask(call, facts, forced).kernel->name, "dmma_tma");
    call.k = INT64_C(1) << 30;             /* two places in a map each */
    assert_string_not_equal(ask(call, facts, forced).kernel->name, "dmma_tma");
}

static void little_memory(void **state)
{
    (void)state;
    gpb_policy always = { .offload = GPB_OFFLOAD_ALWAYS };
    gpb_facts facts = *h200;
    for (facts.gpu.bytes = 0; facts.gpu.bytes < (INT64_C(6) << 18); facts.gpu.bytes += 1 << 14) {
        gpb_plan plan = ask(gemm(5000, 5000, 5000), facts, always);
        assert_false(plan.gpu);
        assert_string_equal(plan.why, "too little device memory");
    }
    /* Two buffers each for three panels of 256 x 256, without packing. */
    assert_true(ask(gemm(5000, 5000, 5000), facts, always).gpu);
    facts.gpu.bytes = 0;
    /* All operands are in place, so no memory is needed. */
    facts.where[GPB_A].place = facts.where[GPB_B].place = facts.where[GPB_C].place = GPB_PLACE_DEVICE;
    assert_true(ask(gemm(4096, 4096, 4096), facts, (gpb_policy){ 0 }).gpu);
}

/* ---- random calls and facts */

static int64_t up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

/* Bytes of a panel whose strips begin at multiples of 256. */
static __int128 strips(int64_t size, int64_t strip, int64_t depth, int64_t group_bytes)
{
    __int128 one = (__int128)min(size, strip) * depth * group_bytes;
    return (one + 255) / 256 * 256 * ((size - 1) / strip + 1);
}

/* Of the real product that a complex one is (kernels/sliced.h). */
static __int128 sliced_bytes(const gpb_plan *p, enum gpb_operand operand)
{
    const gpb_panels *x = &p->panel[operand];
    const int64_t strips = (x->extent - 1) / x->strip + 1, rows = min(x->extent, x->strip),
                  reals = gpb_type_is_complex(p->kernel->type) ? 2 : 1;
    if (p->kernel->form == GPB_FORM_RESIDUES)
        return (__int128)gpb_residue_bytes(reals == 2, operand == GPB_A, rows, p->kc) * p->group * strips;
    return (__int128)gpb_sliced_bytes(operand == GPB_A ? reals * rows : rows, reals * p->kc,
                                      gpb_plan_slices(p->kernel))
           * p->group * strips;
}

static void check_buffers(const gpb_call *g, const gpb_facts *f, const gpb_plan *p)
{
    const gpb_kernel *q = p->kernel;
    bool reads = g->k > 0 && g->alpha != 0;
    const int64_t element = (int64_t)gpb_type_bytes(g->type), group = p->group * element;
    const gpb_panels *x = p->panel, *xa = &x[GPB_A], *xb = &x[GPB_B];
    const __int128 area = (__int128)xa->extent * xb->extent;
    __int128 a = strips(xa->extent, xa->strip, p->kc, group);
    __int128 b = strips(xb->extent, xb->strip, p->kc, group);
    __int128 c = area * group;
    bool sliced = gpb_kernel_table_guarded(q);
    const int grain = sliced ? 1024 : 256;
    __int128 pa = sliced ? sliced_bytes(p, GPB_A)
                         : (__int128)up(xa->extent, q->bm) * up(p->kc, q->bk) * group;
    __int128 pb = sliced ? sliced_bytes(p, GPB_B)
                         : (__int128)up(p->kc, q->bk) * up(xb->extent, q->bn) * group;
    __int128 pc = (__int128)up(xa->extent, q->bm) * up(xb->extent, q->bn) * group;
    const gpb_kernel *largest = p->wide && p->wide->bm * p->wide->bn > q->bm * q->bn ? p->wide : q;
    const int64_t room = gpb_sliced_partial_bytes((f->gpu.sms + 1) / 2, largest->bm * largest->bn
                                                  * (gpb_type_is_complex(q->type) ? 2 : 1));
    bool shared = p->streamk && p->bytes_parts;
    const __int128 residues = (__int128)gpb_residue_product_bytes(gpb_type_is_complex(q->type), p->triangle,
                                                                  xa->extent, xb->extent) * p->group + 1024;
    const __int128 by_a = (__int128)min(xa->strip, xa->extent) * xb->extent,
                   by_b = (__int128)xa->extent * min(xb->strip, xb->extent);
    const bool both = xa->strip < xa->extent && xb->strip < xb->extent;
    const __int128 launch = both == (by_a > by_b) ? by_a : by_b;
    __int128 parts = q->form == GPB_FORM_RESIDUES ? residues : sliced ? room + 4 * GPB_SLICED_COUNTERS + 1024
                           : shared ? gpb_streamk_bytes(q, f->gpu.sms) : launch * p->splits * group;
    for (int i = 0; i < GPB_OPERANDS; i++) assert_in_range(x[i].buffers, 1, 2);
    bool away[GPB_OPERANDS];
    for (int i = 0; i < GPB_OPERANDS; i++) away[i] = f->where[i].place != GPB_PLACE_DEVICE;
    const int halves = g->routine == GPB_ROUTINE_SYR2K ? 2 : 1;     /* each side has rows of both matrices */
    if (halves == 2) away[GPB_A] = away[GPB_B] = away[GPB_A] || away[GPB_B];
    a *= halves;
    b *= halves;
    pa *= halves;
    pb *= halves;
    const struct { bool wanted; int count; int64_t bytes; __int128 least; } buffers[] = {
        { reads && away[GPB_A], x[GPB_A].buffers, x[GPB_A].bytes / x[GPB_A].buffers, a },
        { reads && away[GPB_B] && !p->one_matrix, x[GPB_B].buffers, x[GPB_B].bytes / x[GPB_B].buffers, b },
        { away[GPB_C], x[GPB_C].buffers, x[GPB_C].bytes / x[GPB_C].buffers, c },
        { x[GPB_A].packs, 1, x[GPB_A].bytes_packed, pa },
        { x[GPB_B].packs && !p->one_packed, 1, x[GPB_B].bytes_packed, pb },
        { x[GPB_C].packs, 1, x[GPB_C].bytes_packed, pc },
        { reads && (sliced || shared || p->splits > 1), 1, p->bytes_parts, parts },
    };
    __int128 sum = 0;
    for (int i = 0; i < COUNT(buffers); i++) {
        assert_true(buffers[i].bytes % grain == 0);
        if (buffers[i].wanted)
            assert_true(buffers[i].bytes >= buffers[i].least
                        && buffers[i].bytes < buffers[i].least + halves * grain);
        else assert_int_equal(buffers[i].bytes, 0);
        sum += buffers[i].bytes * buffers[i].count;
    }
    if (g->x[GPB_A].array) sum += 48 * p->group + 1024;
    assert_true(sum <= f->gpu.bytes);
}

static void check_tile(int64_t whole, int64_t tile)
{
    assert_true(tile == whole || (tile > 0 && tile < whole && tile % 256 == 0));
}

/* Tensor copies can read an operand with `down` rows, as stored. */
static bool is_mapped(const gpb_call *g, const gpb_facts *f, enum gpb_operand operand, int64_t down)
{
    const gpb_matrix *x = &g->x[operand];
    const int line = 16 / (int)gpb_type_bytes(g->type);
    return f->where[operand].place != GPB_PLACE_DEVICE
           ? down % line == 0
           : !x->array && (uintptr_t)x->base % 16 == 0 && x->ld % line == 0
                 && (g->batch == 1 || x->stride % line == 0);
}

static void check_forms(const gpb_call *g, const gpb_facts *f, const gpb_plan *p)
{
    const gpb_kernel *q = p->kernel;
    bool reads = g->k > 0 && g->alpha != 0, padded = q->form != GPB_FORM_STRIDED,
         sliced = gpb_kernel_table_guarded(q);
    const int64_t line = 256 / (int64_t)gpb_type_bytes(g->type);
    bool fine_a = !g->x[GPB_A].array && (uintptr_t)g->x[GPB_A].base % 256 == 0 && g->x[GPB_A].ld % line == 0
                  && (g->batch == 1 || g->x[GPB_A].stride % line == 0);
    bool fine_b = !g->x[GPB_B].array && (uintptr_t)g->x[GPB_B].base % 256 == 0 && g->x[GPB_B].ld % line == 0
                  && (g->batch == 1 || g->x[GPB_B].stride % line == 0);
    bool a = g->x[GPB_A].trans == 'N' && (f->where[GPB_A].place != GPB_PLACE_DEVICE || fine_a)
             && g->m % q->bm == 0 && g->k % q->bk == 0;
    bool b = g->x[GPB_B].trans == 'N' && (f->where[GPB_B].place != GPB_PLACE_DEVICE || fine_b)
             && g->n % q->bn == 0 && g->k % q->bk == 0;
    if (q->form == GPB_FORM_MAPPED) {
        a = is_mapped(g, f, GPB_A, g->x[GPB_A].trans == 'N' ? g->m : g->k);
        b = is_mapped(g, f, GPB_B, g->x[GPB_B].trans == 'N' ? g->k : g->n);
        assert_true((!(reads && !(a && b))) || (p->panel[GPB_A].strip == p->panel[GPB_A].extent
                                                && p->panel[GPB_B].strip == p->panel[GPB_B].extent));
    }
    assert_true(p->panel[GPB_A].packs == (reads && padded && (sliced || !a))
                && p->panel[GPB_B].packs == (reads && padded && (sliced || !b)));
    const bool whole = p->panel[GPB_A].strip == g->m && p->panel[GPB_B].strip == g->n,
               in_place = g->x[GPB_C].uplo != 'G' && f->where[GPB_C].place == GPB_PLACE_DEVICE,
               alone = whole && q->form != GPB_FORM_PADDED_C && !gpb_kernel_table_can(q, GPB_CAP_WHOLE)
                       && gpb_call_products(g) == 1;
    assert_true(p->panel[GPB_C].packs == (q->form == GPB_FORM_PADDED_C || (in_place && !alone)));
    assert_int_equal(p->triangle, in_place && alone ? g->x[GPB_C].uplo : 0);
}

/* Around the memory from which on Stream-K gets its share: what fits into less must fit into more. */
static void memory_for_streamk(void **state)
{
    (void)state;
    for (int i = 0; i < gpb_kernel_count; i++) {
        if (!(gpb_kernels[i].caps & GPB_CAP_STREAM_K)) continue;
        gpb_facts facts = *h200;
        const int64_t from = 8 * gpb_streamk_bytes(&gpb_kernels[i], facts.gpu.sms);
        for (int percent = 98; percent < 108; percent++) {
            gpb_call call = gemm(1858, 128, INT64_C(1) << 29);
            call.type = gpb_kernels[i].type;
            facts.gpu.bytes = from / 100 * percent;
            gpb_plan plan = ask(call, facts, (gpb_policy){ .offload = GPB_OFFLOAD_ALWAYS,
                                                           .kernel = gpb_kernels[i].name });
            assert_true(plan.gpu);
            check_buffers(&call, &facts, &plan);
        }
    }
}

static void random_plans(void **state)
{
    (void)state;
    int on_gpu = 0, cut = 0, deep = 0, grouped = 0, of[GPB_TYPES] = { 0 };
    for (int round = 0; round < 10000; round++) {
        static const double factors[] = { 1, -0.5, 0 };
        static const char *kernels[] = { NULL,           NULL,          NULL,     NULL,   "padded",
                                         "warp_strided", "tf32_3stage", "fp16x3", "dmma", "nothing",
                                         "dmma_tma",     "dmma_tma_half" };
        gpb_call call = gemm(size(below(5) ? 16 : 31), size(below(5) ? 16 : 31),
                             below(20) ? size(below(5) ? 16 : 31) : 0);
        call.x[GPB_A].trans = "NTC"[below(3)];
        call.x[GPB_B].trans = "NTC"[below(3)];
        call.type = below(2) ? GPB_TYPE_s : (enum gpb_type)below(GPB_TYPES);
        call.alpha = below(8) ? factors[below(2)] : 0;
        call.beta = factors[below(3)];
        const void *addresses = NULL;
        if (below(8) == 0) {
            const gpb_call one = syrk("UL"[below(2)], "NTC"[below(3)], call.m, call.k);
            for (int x = 0; x < GPB_OPERANDS; x++) call.x[x] = one.x[x];
            call.n = call.m;
        }
        if (below(4) == 0) call.batch = size(20);
        if (below(8) == 0) call.x[GPB_A].array = call.x[GPB_B].array = call.x[GPB_C].array = &addresses;
        if (below(5) == 0) {
            call.n = call.m;
            call.x[GPB_C].uplo = "UL"[below(2)];
        }
        if (below(200) == 0) {
            call.m = INT64_MAX - below(1000);
            call.n = INT64_MAX - below(1000);
        }
        gpb_facts facts = cards[below(COUNT(cards))].facts;
        facts.gpu.bytes = size(36);
        facts.gpu.sms = (int)size(7);
        facts.where[GPB_A].place = place("hhde"[below(4)]);
        facts.where[GPB_B].place = place("hhde"[below(4)]);
        facts.where[GPB_C].place = place("hhde"[below(4)]);
        gpb_policy policy = { (enum gpb_offload_when)below(2), (enum gpb_math_policy)below(3),
                              kernels[below(COUNT(kernels))], below(8) ? 0 : (int)below(64) };
        gpb_plan plan = gpb_decide(&call, &facts, &policy);

        assert_non_null(plan.why);
        if (!plan.gpu) continue;
        on_gpu++;
        of[call.type]++;
        assert_int_equal(plan.kernel->type, call.type);
        cut += plan.panel[GPB_B].extent < call.n;
        deep += plan.kc < call.k;
        grouped += plan.group < call.batch && plan.group > 1;
        check_tile(call.m, plan.panel[GPB_A].extent);
        check_tile(call.n, plan.panel[GPB_B].extent);
        check_tile(call.k, plan.kc);
        assert_true(plan.group >= 1 && plan.group <= call.batch);
        assert_true(facts.where[GPB_C].place == GPB_PLACE_DEVICE || plan.panel[GPB_A].extent <= 524288);
        __int128 blocks = up(plan.panel[GPB_A].extent, plan.kernel->bm) / plan.kernel->bm;
        assert_true(blocks * (up(plan.panel[GPB_B].extent, plan.kernel->bn) / plan.kernel->bn) <= INT32_MAX);
        assert_true(gpb_kernel_table_serves(plan.kernel, facts.gpu.arch));
        bool tf32 = policy.math == GPB_POLICY_TF32
                    || (policy.kernel && strcmp(policy.kernel, plan.kernel->name) == 0);
        assert_true(plan.kernel->math != GPB_MATH_TF32 || tf32);
        assert_true(plan.splits >= 1);
        check_fallback(&plan);
        check_slices(&call, &policy, &plan);
        check_buffers(&call, &facts, &plan);
        check_forms(&call, &facts, &plan);
        assert_true(isfinite(plan.host_s) && isfinite(plan.gpu_s) && plan.gpu_s > 0 && plan.host_s > 0);
    }
    /* The random calls reach every branch. */
    assert_true(on_gpu > 4000 && cut > 200 && deep > 100 && grouped > 50);
    for (int type = 0; type < GPB_TYPES; type++) assert_true(of[type] > 400);
}

/* The formula for the traffic against the schedule itself. */
static void traffic(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        gpb_call call = gemm(size(13), size(13), size(13));
        call.type = (enum gpb_type)(round % GPB_TYPES);
        const double element = (double)gpb_type_bytes(call.type);
        gpb_facts facts = *h200;
        facts.gpu.bytes = (size(24) + (1 << 21)) * (int64_t)element / 4;
        gpb_plan plan = ask(call, facts, (gpb_policy){ .offload = GPB_OFFLOAD_ALWAYS });
        assert_true(plan.gpu);
        gpb_schedule_cursor cursor = gpb_schedule_begin(&call, &plan);
        double moved = 0;
        for (const gpb_move *move; (move = gpb_schedule_next(&cursor));)
            moved += element
                     * (double)gpb_schedule_strip(move->block.size[move->operand],
                                                  plan.panel[move->operand].strip, move->strip)
                     * (double)move->depth;
        const gpb_traffic said = gpb_predict_traffic(&plan, &call, &facts);
        const bool exact = plan.kc == call.k
                           && (call.m % plan.panel[GPB_A].extent == 0 || plan.panel[GPB_A].extent == call.m);
        const double foreseen = said.up[GPB_A] + said.up[GPB_B];
        assert_true(moved >= foreseen * (exact ? 1 - 1e-9 : 0.6)
                    && moved <= foreseen * (exact ? 1 + 1e-9 : 1.4));
        assert_true(said.down == element * (double)call.m * (double)call.n && said.up[GPB_C] == 0);
    }
}

/* Every element of C is in one tile. The tile is computed when the strips that it needs have come, in
   panels that add up to k. */
static void schedule(void **state)
{
    (void)state;
    int strips = 0, deep = 0, blocks = 0, parts = 0;
    for (int round = 0; round < 3000; round++) {
        gpb_call call = gemm(size(11), size(11), size(11));
        call.type = (enum gpb_type)below(GPB_TYPES);
        gpb_facts facts = *h200;
        facts.gpu.bytes = (size(22) + (1 << 21)) * (int64_t)gpb_type_bytes(call.type) / 4;
        if (round % 3 == 0) facts.where[GPB_C].place = GPB_PLACE_DEVICE;
        gpb_plan plan = ask(call, facts, (gpb_policy){ .offload = GPB_OFFLOAD_ALWAYS });
        assert_true(plan.gpu);
        if (facts.where[GPB_C].place == GPB_PLACE_DEVICE)
            assert_true(plan.panel[GPB_A].strip == plan.panel[GPB_A].extent
                        && plan.panel[GPB_B].strip == plan.panel[GPB_B].extent);
        strips += plan.panel[GPB_A].strip < plan.panel[GPB_A].extent;
        deep += plan.kc < call.k;
        blocks += plan.panel[GPB_A].extent < call.m;
        parts += plan.splits > 1 && plan.kernel->form == GPB_FORM_MAPPED;
        gpb_schedule_cursor cursor = gpb_schedule_begin(&call, &plan);
        double done = 0, there[2] = { 0 };
        int64_t panel[2] = { 0 }, number = -1, depth = 0;
        for (const gpb_move *move; (move = gpb_schedule_next(&cursor));) {
            const gpb_region *t = &move->tile, *block = &move->block;
            const enum gpb_operand x = move->operand;
            assert_true(move->reads && (x == GPB_A || x == GPB_B));
            for (int y = 0; y < 2; y++)
                if (move->panel[y] != panel[y]) {
                    panel[y] = move->panel[y];
                    there[y] = 0;
                }
            assert_true((double)move->strip == there[x]);
            there[x]++;
            if (move->number != number) {
                number = move->number;
                depth = 0;
            }
            if (t->rows == 0) continue;
            assert_true(t->i >= block->i && t->i + t->rows <= block->i + block->rows);
            assert_true(t->j >= block->j && t->j + t->cols <= block->j + block->cols);
            assert_true((double)(t->i + t->rows - block->i) <= there[0] * (double)plan.panel[GPB_A].strip);
            assert_true((double)(t->j + t->cols - block->j) <= there[1] * (double)plan.panel[GPB_B].strip);
            const double elements = (double)t->rows * (double)t->cols;
            if (plan.splits > 1)
                assert_true(elements * plan.splits * (double)gpb_type_bytes(call.type)
                            <= (double)plan.bytes_parts);
            done += elements * (double)move->depth;
            if (t->rows == block->rows && t->cols == block->cols) depth += move->depth;
            if (t->rows == block->rows && t->cols == block->cols && move->last)
                assert_int_equal(depth, call.k);
        }
        assert_true(done == (double)call.m * (double)call.n * (double)call.k);
    }
    print_message("%d with strips, %d with panels of k, %d with blocks, %d with parts of k\n", strips, deep,
                  blocks, parts);
    assert_true(strips > 20 && deep > 20 && blocks > 20 && parts > 20);
}

/* What computes a triangle on the device alone, and what goes through a workspace of all of C. */
static void triangles_in_place(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        bool twofold, alone;
    } cases[] = { { NULL, false, true }, { NULL, true, true }, { "dmma_small", false, true },
                  { "dmma_thin8", false, false }, { "dmma_flat16", false, false } };
    for (size_t x = 0; x < sizeof cases / sizeof *cases; x++)
        for (int lower = 0; lower < 2; lower++) {
            gpb_call call = syrk("UL"[lower], 'N', 8192, 1024);
            gpb_facts facts = *h200;
            call.type = GPB_TYPE_d;
            if (cases[x].twofold) call.routine = GPB_ROUTINE_SYR2K;
            for (int i = 0; i < GPB_OPERANDS; i++) facts.where[i].place = GPB_PLACE_DEVICE;
            const gpb_plan plan = ask(call, facts, (gpb_policy){ .kernel = cases[x].kernel });
            assert_true(plan.gpu);
            assert_int_equal(plan.triangle, cases[x].alone ? "UL"[lower] : 0);
            assert_true(plan.panel[GPB_C].packs == !cases[x].alone);
            assert_true((plan.in_turn || plan.joined) == cases[x].twofold);
        }
}

/* SYR2K and HER2K of operands on the device: one launch of a kernel that loads by tensor maps, planned like a
   product of depth 2k; else two runs. If A comes from the host, through a workspace of all of C. */
static void joined_products(void **state)
{
    (void)state;
    const gpb_scalar turned = __builtin_complex(1.0, 0.5);
    static const struct {
        const char *kernel;
        enum gpb_type type;
        enum gpb_structure structure;
        bool turned, joins;
        int64_t k, ld;
        uintptr_t off;
        bool no_maps;
    } cases[] = {
        { NULL, GPB_TYPE_d, GPB_SYMMETRIC, false, true, 1024, 1024, 0, false },
        { "dmma_tma", GPB_TYPE_z, GPB_SYMMETRIC, true, true, 512, 1024, 0, false },
        { "dmma_tma_tiny", GPB_TYPE_z, GPB_HERMITIAN, false, true, 512, 1024, 0, false },
        { "dmma_tma", GPB_TYPE_d, GPB_SYMMETRIC, false, true, 1024, 1024, 0, false },
        { "dmma_tma_small", GPB_TYPE_z, GPB_HERMITIAN, false, true, 512, 1024, 0, false },
        { "dmma_tma", GPB_TYPE_d, GPB_SYMMETRIC, false, true, 2, 1024, 0, false },
        { "dmma_tma", GPB_TYPE_d, GPB_SYMMETRIC, false, false, 1, 1024, 0, false },
        { "dmma_tma", GPB_TYPE_z, GPB_HERMITIAN, true, false, 512, 1024, 0, false },
        { "dmma_tma", GPB_TYPE_d, GPB_SYMMETRIC, false, false, 1024, 1025, 0, false },
        { "dmma_tma", GPB_TYPE_d, GPB_SYMMETRIC, false, false, 1024, 1024, 8, false },
        { "dmma_tma", GPB_TYPE_d, GPB_SYMMETRIC, false, false, 1024, 1024, 0, true },
        { "dmma", GPB_TYPE_d, GPB_SYMMETRIC, false, false, 1024, 1024, 0, false },
        { NULL, GPB_TYPE_s, GPB_SYMMETRIC, false, false, 1024, 1024, 0, false },
        { NULL, GPB_TYPE_d, GPB_SYMMETRIC, false, false, 8192, 8192, 0, false },      /* by residues */
    };
    for (int x = 0; x < COUNT(cases); x++) {
        const int64_t n = cases[x].k > 1024 ? cases[x].k : 1024;
        gpb_call call = syrk('L', 'N', n, cases[x].k);
        gpb_facts facts = *h200;
        facts.gpu.no_maps = cases[x].no_maps;
        call.routine = GPB_ROUTINE_SYR2K;
        call.type = cases[x].type;
        call.x[GPB_C].structure = cases[x].structure;
        if (cases[x].turned) call.alpha = turned;
        for (int i = 0; i < GPB_OPERANDS; i++) {
            facts.where[i].place = GPB_PLACE_DEVICE;
            call.x[i].base = (void *)(((uintptr_t)i + 1) << 32);
            call.x[i].ld = n;
        }
        call.x[GPB_B].base = (char *)call.x[GPB_B].base + cases[x].off;
        call.x[GPB_B].ld = cases[x].ld;
        const gpb_policy policy = { .kernel = cases[x].kernel };
        const gpb_plan plan = ask(call, facts, policy);
        assert_true(plan.gpu && plan.triangle == 'L' && !plan.panel[GPB_C].packs);
        assert_true(plan.joined == cases[x].joins && plan.in_turn != plan.joined);
        facts.link.call_s *= 1000;         /* the same bits, whatever was measured */
        assert_true(ask(call, facts, policy).joined == plan.joined);
        facts.link.call_s /= 1000;
        facts.where[GPB_A].place = GPB_PLACE_HOST;
        const gpb_plan from_host = ask(call, facts, policy);
        assert_true(from_host.gpu && !from_host.joined && !from_host.in_turn && !from_host.triangle
                    && from_host.panel[GPB_C].packs);
        facts.where[GPB_A].place = GPB_PLACE_DEVICE;
        if (!plan.joined) continue;
        assert_int_equal(plan.kernel->form, GPB_FORM_MAPPED);
        gpb_call deep = gpb_call_alone(&call);
        deep.k *= 2;
        const gpb_policy whole = { .kernel = policy.kernel, .splits = 1 };         /* no Stream-K, either */
        if (policy.kernel && call.k % plan.kernel->bk == 0)
            assert_true(fabs(plan.gpu_s - ask(deep, facts, whole).gpu_s) < 1e-9);
    }
}

/* Small tiles wait for their tensor copies where neither operand is contiguous along k or of whole lines. */
static void copies_along_the_edge(void **state)
{
    (void)state;
    static const struct { const char *kernel; bool waits; } cases[] = {
        { "dmma_tma", false }, { "dmma_tma_small", true }, { "dmma_tma_tiny", true }
    };
    for (int x = 0; x < 2 * COUNT(cases); x++)
        for (enum gpb_type type = GPB_TYPE_d; type <= GPB_TYPE_z; type += GPB_TYPE_z - GPB_TYPE_d) {
            const bool lines = x % 2, waits = cases[x / 2].waits && !lines;
            double seconds[2];
            for (int t = 0; t < 2; t++) {
                gpb_call call = syrk('L', "NT"[t], lines ? 1024 : 1023, 1024);
                gpb_facts facts = *h200;
                call.type = type;
                for (int i = 0; i < GPB_OPERANDS; i++) {
                    facts.where[i].place = GPB_PLACE_DEVICE;
                    call.x[i].ld = 1024;
                }
                const gpb_policy whole = { .kernel = cases[x / 2].kernel, .splits = 1 };
                seconds[t] = ask(call, facts, whole).gpu_s;
            }
            assert_true(waits ? seconds[0] > 1.05 * seconds[1] : seconds[0] == seconds[1]);
        }
}

/* A strip that unlocks few tiles has its k cut, so that they fill the GPU: DSYMM's sixteen launches of 64
   tiles by 132 multiprocessors took 4.5 ms where whole rounds take 2.3 (H200). Not if the user says how. */
static void rounds(void **state)
{
    (void)state;
    gpb_call symm = gemm(4096, 4096, 4096);
    symm.type = GPB_TYPE_d;
    symm.routine = GPB_ROUTINE_SYMM;
    symm.x[GPB_A].structure = GPB_SYMMETRIC;
    symm.x[GPB_A].uplo = 'L';
    gpb_policy whole = { .splits = 1 };
    const gpb_plan cut = ask(symm, *h200, (gpb_policy){ 0 }), as_told = ask(symm, *h200, whole);
    assert_true(cut.kernel->form == GPB_FORM_MAPPED && as_told.kernel == cut.kernel && as_told.splits == 1);
    const double tiles = 4096.0 / cut.kernel->bm * (double)cut.panel[GPB_B].strip / cut.kernel->bn;
    assert_true(cut.splits * tiles > 0.9 * h200->gpu.sms && cut.usual_s < as_told.usual_s);
}

/* A prediction that is given up because it reaches the limit does not fall below it; else it is exact. */
static void limits(void **state)
{
    (void)state;
    for (int x = 0; x < 4 * GPB_TYPES; x++) {
        gpb_call call = gemm(512 << x / GPB_TYPES, 1024, 2048);
        call.type = (enum gpb_type)(x % GPB_TYPES);
        const gpb_plan plan = ask(call, *h200, (gpb_policy){ 0 });
        assert_true(plan.gpu);
        const gpb_predict_kernels kernels = gpb_predict_kernels_of(plan.kernel, 1e-4, &call, h200);
        const double exact = gpb_predict_run(&plan, &call, h200, &kernels, INFINITY);
        assert_true(gpb_predict_run(&plan, &call, h200, &kernels, nextafter(exact, INFINITY)) == exact);
        for (double share = 0; share <= 1; share += 0.125)
            assert_true(gpb_predict_run(&plan, &call, h200, &kernels, share * exact) >= share * exact);
    }
}

/* Of a triangle each element is in one tile, and of what lies outside only the rest of the diagonal's tiles.
   If A and B are one matrix it comes once, and every strip of B is one of A's that has come. So do the two
   matrices of SYR2K, which are of use for either side. */
static void triangles(void **state)
{
    (void)state;
    int strips = 0, once = 0, devices = 0;
    for (int round = 0; round < 1200; round++) {
        const char uplo = "UL"[below(2)];
        gpb_call call = syrk(uplo, "NTC"[below(3)], size(11), size(11));
        call.type = (enum gpb_type)below(GPB_TYPES);
        if (round % 4 == 0) call.x[GPB_B].base = "";                  /* GEMMTR */
        const bool twofold = round % 8 == 0;
        if (twofold) call.routine = GPB_ROUTINE_SYR2K;
        gpb_facts facts = *h200;
        if (round % 3 == 0) facts.gpu.bytes = (size(22) + (1 << 21)) * (int64_t)gpb_type_bytes(call.type) / 4;
        if (round % 5 == 0) facts.link.up_gbs = facts.link.down_gbs = 1;
        const bool on_device = round % 7 == 0 && !twofold;
        if (twofold) facts.gpu.bytes *= 2;
        if (twofold) facts.where[below(2)].place = below(2) ? GPB_PLACE_DEVICE : GPB_PLACE_HOST;
        if (on_device) {
            call = syrk(uplo, 'T', 4000 + size(9), size(12));
            for (int x = 0; x < GPB_OPERANDS; x++) facts.where[x].place = GPB_PLACE_DEVICE;
        }
        gpb_plan plan = ask(call, facts, (gpb_policy){ .offload = GPB_OFFLOAD_ALWAYS });
        assert_true(plan.gpu);
        const gpb_panels *a = &plan.panel[GPB_A], *b = &plan.panel[GPB_B];
        const int64_t most = max(a->strip, b->strip);
        const bool whole = a->extent == call.m && b->extent == call.n;
        const bool comes_once = !on_device && (round % 4 != 0 || twofold) && whole && a->strip == b->strip;
        assert_true(plan.one_matrix == comes_once);
        check_buffers(&call, &facts, &plan);
        assert_true((b->bytes == 0) == (plan.one_matrix || on_device));
        devices += on_device && plan.triangle == uplo && a->strip == call.n;
        gpb_schedule_cursor cursor = gpb_schedule_begin(&call, &plan);
        const enum gpb_operand leader = gpb_schedule_leader(&call, &plan);
        int64_t inside = 0, all = 0, tiles = 0, moves[2] = { 0 };
        for (const gpb_move *move; (move = gpb_schedule_next(&cursor));) {
            const gpb_region *t = &move->tile;
            moves[move->operand]++;
            if (plan.one_matrix) assert_true(moves[!leader] <= moves[leader]);
            tiles += t->rows > 0;
            for (int64_t j = t->j; j < t->j + t->cols; j++) {
                const gpb_matrix_rows rows = gpb_matrix_rows_of(uplo, t->i, t->rows, j);
                inside += (rows.last - rows.first) * move->depth;
            }
            all += t->rows * t->cols * move->depth;
        }
        if (plan.one_matrix) assert_int_equal(tiles, moves[leader]);       /* a launch a strip */
        assert_int_equal(inside, call.n * (call.n + 1) / 2 * call.k);
        if (whole) assert_true(all <= inside + most * call.n * call.k);
        const gpb_traffic said = gpb_predict_traffic(&plan, &call, &facts);
        const bool b_stays = twofold ? facts.where[GPB_B].place == GPB_PLACE_DEVICE
                                     : plan.one_matrix || on_device;
        assert_true((said.up[GPB_B] == 0) == b_stays);
        if (twofold && whole && !b_stays)
            assert_true(said.up[GPB_B] == (double)(call.n * call.k * (int64_t)gpb_type_bytes(call.type))
                                          * (plan.one_matrix ? 1 : 2));
        strips += a->strip < a->extent;
        once += plan.one_matrix;
    }
    print_message("%d with strips, %d of one matrix, %d on the device\n", strips, once, devices);
    assert_true(strips > 50 && once > 400 && devices > 50);
}

/* Other callers on the link, and its measured rates, may send a call to the host, but they do not change
   how it is summed. */
static void same_bits(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        gpb_call call = round ? gemm(size(13), size(13), size(14)) : gemm(500, 500, 4096);
        call.type = (enum gpb_type)(round % GPB_TYPES);
        const gpb_policy always = { .offload = GPB_OFFLOAD_ALWAYS };
        gpb_facts facts = *h200;
        const gpb_plan alone = ask(call, facts, always);
        facts.now.callers = 1 + round % 5;
        if (round & 1) {
            facts.link.up_gbs /= 3;
            facts.link.down_gbs /= 4;
            facts.link.dma_gbs /= 2;
            facts.link.call_s *= 3;
        }
        const gpb_plan beside = ask(call, facts, always);
        assert_ptr_equal(alone.kernel, beside.kernel);
        for (int x = 0; x < GPB_C; x++)
            assert_true(alone.panel[x].extent == beside.panel[x].extent
                        && alone.panel[x].strip == beside.panel[x].strip);
        assert_true(alone.kc == beside.kc && alone.group == beside.group && alone.splits == beside.splits);
        assert_true(alone.streamk == beside.streamk && alone.bytes_parts == beside.bytes_parts);
    }
}

/* A factorisation's room for products, in halves of its matrix: for residues where the GPU has such a kernel,
   for slices, or for parts alone. */
static void rooms_of_solvers(void **state)
{
    (void)state;
    enum { N = 4096, BASE = 64 << 20 };
    static const struct { enum gpb_type type; int arch, halves; } rooms[] = {
        { GPB_TYPE_d, 80, 1 }, { GPB_TYPE_d, 86, 1 }, { GPB_TYPE_d, 90, 8 }, { GPB_TYPE_d, 120, 1 },
        { GPB_TYPE_z, 80, 1 }, { GPB_TYPE_z, 90, 8 }, { GPB_TYPE_z, 100, 1 },
        { GPB_TYPE_s, 80, 4 }, { GPB_TYPE_s, 90, 4 }, { GPB_TYPE_c, 90, 4 }, { GPB_TYPE_s, 75, 1 }
    };
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        const gpb_resident work = { .system.a = { .type = rooms[i].type, .m = N, .n = N } };
        const int64_t half = (int64_t)N * N * (int64_t)gpb_type_bytes(rooms[i].type) / 2;
        assert_int_equal((gpb_resident_workspace(&work, rooms[i].arch) - BASE) / half, rooms[i].halves);
    }
}

int main(int count, char **arguments)
{
    golden_print(print_plans, count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(golden, count > 1 ? arguments[1] : "tests/unit/plans.golden"),
        cmocka_unit_test(queued),
        cmocka_unit_test(order_of_the_rules),
        cmocka_unit_test(symmetric_operands),
        cmocka_unit_test(start_must_pay),
        cmocka_unit_test(corrections),
        cmocka_unit_test(host_of_each_type),
        cmocka_unit_test(too_few),
        cmocka_unit_test(modes),
        cmocka_unit_test(parts_of_k),
        cmocka_unit_test(forced_kernel),
        cmocka_unit_test(by_residues), cmocka_unit_test(residues_over_the_link),
        cmocka_unit_test(mapped), cmocka_unit_test(mapped_complex),
        cmocka_unit_test(little_memory),
        cmocka_unit_test(memory_for_streamk),
        cmocka_unit_test(random_plans),
        cmocka_unit_test(traffic),
        cmocka_unit_test(schedule),
        cmocka_unit_test(rounds),
        cmocka_unit_test(triangles), cmocka_unit_test(triangles_in_place), cmocka_unit_test(joined_products),
        cmocka_unit_test(copies_along_the_edge),
        cmocka_unit_test(short_chains),
        cmocka_unit_test(limits),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(rooms_of_solvers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
