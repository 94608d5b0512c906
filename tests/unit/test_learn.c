/* SPDX-License-Identifier: MIT */
/* Corrections by class of calls: they converge, resist outliers, and lend to their neighbours. usage:
   test_learn */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "dispatch/learn.h"

static gpb_learn *fresh(void)
{
    static gpb_learn learnt;
    memset(&learnt, 0, sizeof learnt);
    return &learnt;
}

static gpb_learn_key key_of(int64_t m, int64_t n, int64_t k)
{
    gpb_call call = { .m = m, .n = n, .k = k, .batch = 1, .x[GPB_C].uplo = 'G' };
    return gpb_learn_key_of(&call);
}

static gpb_learn_cell cell(uint32_t ratio, uint32_t seen)
{
    return (gpb_learn_cell){ .ratio = ratio, .seen = seen & 63 };
}

static int class_of(int64_t m, int64_t n, int64_t k) { return key_of(m, n, k).class; }

/* The ratio of a size of that class that was never seen before, and one more call of another such size. */
static double ratio_of(gpb_learn *learnt, int class)
{
    return gpb_learn_ratio(learnt, (gpb_learn_key){ class, 0, 1 }, false);
}

static bool add(gpb_learn *learnt, int class, double modelled_s, double measured_s)
{
    static uint32_t tag = 1;
    tag++;
    return gpb_learn_add(learnt, (gpb_learn_key){ class, 1 + tag % (GPB_LEARN_KEPT - 1), tag % 0xffffff },
                         modelled_s, measured_s);
}

static void classes(void **state)
{
    (void)state;
    assert_true(class_of(1, 1, 1) >= 0 && class_of(INT64_MAX, INT64_MAX, INT64_MAX) < GPB_LEARN_CLASSES);
    assert_int_equal(class_of(512, 512, 512) + 3, class_of(1024, 1024, 1024));
    assert_int_equal(class_of(500, 500, 500), class_of(512, 400, 500));
    assert_int_not_equal(class_of(4096, 4096, 8), class_of(512, 512, 512));  /* 2^27 multiplications each */
    assert_int_not_equal(class_of(4096, 4096, 8), class_of(2048, 2048, 32));
    assert_int_not_equal(class_of(2048, 2048, 32), class_of(512, 512, 512));
    gpb_call triangle = { .m = 512, .n = 512, .k = 512, .batch = 2, .x[GPB_C].uplo = 'U' };
    assert_int_equal(gpb_learn_key_of(&triangle).class, class_of(512, 512, 512));
}

static double ratio_after(gpb_learn *learnt, int calls, double ratio)
{
    int class = class_of(512, 512, 512);
    for (int i = 0; i < calls; i++) add(learnt, class, 1e-3, ratio * 1e-3);
    return ratio_of(learnt, class);
}

static void converges(void **state)
{
    (void)state;
    assert_true(ratio_of(fresh(), 0) == 1);
    static const double truths[] = { 0.05, 0.3, 0.9, 1, 1.5, 4, 30 };
    for (int i = 0; i < 7; i++) {
        double reached = ratio_after(fresh(), 12, truths[i]);
        assert_true(reached > 0.95 * truths[i] && reached < 1.05 * truths[i]);
    }
    double moved = ratio_after(fresh(), 12, 1);
    gpb_learn *learnt = fresh();
    ratio_after(learnt, 12, 8);
    /* It follows changes, down and up. */
    moved = ratio_after(learnt, 60, 1);
    assert_true(moved > 0.99 && moved < 1.1);
    moved = ratio_after(learnt, 120, 3);
    assert_true(moved > 2.7 && moved <= 3.01);
}

static void exceptions(void **state)
{
    (void)state;
    gpb_learn *learnt = fresh();
    assert_true(ratio_after(learnt, 1, 30) == 1);  /* the first call starts threads and touches pages */
    assert_true(ratio_after(learnt, 1, 25) <= 2);              /* the second may be unlucky as well */
    double settled = ratio_after(fresh(), 20, 1);
    learnt = fresh();
    ratio_after(learnt, 20, 1);
    /* Every fourth call is disturbed. */
    for (int i = 0; i < 20; i++) settled = ratio_after(learnt, 1, i % 4 ? 1 : 50);
    assert_true(settled < 1.15);
    assert_true(ratio_after(fresh(), 1, -1) == 1 && ratio_after(fresh(), 9, 1e9) <= 64);
    learnt = fresh();
    add(learnt, class_of(8192, 8192, 8192), 0.5, 1.5);                       /* a long first call counts */
    assert_true(ratio_of(learnt, class_of(8192, 8192, 8192)) > 1.5);
}

static void lends(void **state)
{
    (void)state;
    gpb_learn *learnt = fresh();
    ratio_after(learnt, 20, 4);
    double near = ratio_of(learnt, class_of(1024, 512, 512)),
           far = ratio_of(learnt, class_of(8192, 8192, 8192));
    double other = ratio_of(learnt, class_of(4096, 4096, 8));
    assert_true(near > 3.5 && near < 4);
    assert_true(far == 1);                                     /* twelve octaves away */
    assert_true(other > 1.5 && other < near);
    const gpb_learn_key untried = key_of(1024, 512, 512), tried = key_of(512, 512, 512);
    assert_true(gpb_learn_ratio(learnt, untried, true) < 0.8 * near);
    assert_true(gpb_learn_ratio(learnt, tried, true) == gpb_learn_ratio(learnt, tried, false));
}

static void changes(void **state)
{
    (void)state;
    gpb_learn *learnt = fresh();
    int class = class_of(512, 512, 512);
    assert_false(add(learnt, class, 1e-3, 1));       /* the first */
    assert_true(add(learnt, class, 1e-3, 1.5e-3));
    int changed = 0;
    for (int i = 0; i < 20; i++) changed += add(learnt, class, 1e-3, 1.51e-3);
    assert_int_equal(changed, 1);                              /* it became certain */
    assert_false(gpb_learn_set(learnt, -1, cell(65536, 4)) || gpb_learn_set(learnt, 0, cell(65536, 9))
                 || gpb_learn_set(learnt, GPB_LEARN_CLASSES, cell(65536, 4))
                 || gpb_learn_set(learnt, 0, cell(1, 4)) || gpb_learn_set(learnt, 0, cell(UINT32_MAX, 4)));
    assert_true(gpb_learn_set(learnt, 0, cell(131072, 8)) && ratio_of(learnt, 0) == 2);
}

/* A size that was seen twice has a ratio of its own: that of its faster call at first, then one that
   follows as a class's does. That it is slower than its class is believed only gradually. The rest of the
   class goes on as before. */
static void sizes(void **state)
{
    (void)state;
    gpb_learn *learnt = fresh();
    const gpb_learn_key odd = key_of(521, 521, 521), even = key_of(520, 522, 521);
    assert_true(odd.class == even.class && (odd.place != even.place || odd.tag != even.tag));
    ratio_after(learnt, 20, 1);
    gpb_learn_add(learnt, odd, 1e-3, 3e-3);
    assert_true(gpb_learn_ratio(learnt, odd, false) < 1.1);
    gpb_learn_add(learnt, odd, 1e-3, 2e-3);
    double slower = gpb_learn_ratio(learnt, odd, false), others = gpb_learn_ratio(learnt, even, false);
    assert_true(others < 1.2 && slower > others + 0.05 && slower < others + 0.3);
    for (int i = 0; i < 20; i++) gpb_learn_add(learnt, odd, 1e-3, 1.5e-3);
    double reached = gpb_learn_ratio(learnt, odd, false);
    assert_true(gpb_learn_ratio(learnt, odd, true) == reached);
    assert_true(reached > 1.49 && reached < 1.6);
    assert_true(gpb_learn_ratio(learnt, even, false) < 1.6);
    /* There is room for four sizes in one place. A fifth replaces the one seen least, and one of the
       others only if all are certain. */
    for (uint32_t i = 1; i <= 4; i++) {
        const gpb_learn_key other = { odd.class, odd.place, odd.tag ^ i };
        gpb_learn_add(learnt, other, 1e-3, 1e-3);
        gpb_learn_add(learnt, other, 1e-3, 1e-3);
        assert_true(gpb_learn_ratio(learnt, other, false) == 1
                    && gpb_learn_ratio(learnt, odd, false) == reached);
    }
    for (uint32_t i = 1; i <= 4; i++)
        for (int calls = 0; calls < GPB_LEARN_SURE; calls++)
            gpb_learn_add(learnt, (gpb_learn_key){ odd.class, odd.place, odd.tag ^ i }, 1e-3, 1e-3);
    assert_true(gpb_learn_ratio(learnt, (gpb_learn_key){ odd.class, odd.place, odd.tag ^ 4 }, false) == 1);
}

/* A size known on one side only is to be tried on the other, three times at most. What those calls take is
   believed at once. */
static void tries(void **state)
{
    (void)state;
    static gpb_learn host, gpu;
    const gpb_learn_key key = key_of(521, 521, 521);
    gpb_facts facts;
    memset(&host, 0, sizeof host);
    memset(&gpu, 0, sizeof gpu);
    ratio_after(&host, 20, 1);
    ratio_after(&gpu, 20, 1);
    for (int calls = 0; calls < 4; calls++) {
        gpb_learn_facts(&host, &gpu, key, &facts);
        assert_false(facts.learnt.try_host || facts.learnt.try_gpu);
        gpb_learn_tried(&host, key);
        gpb_learn_add(&host, key, 1e-3, 2e-3);
    }
    gpb_learn_facts(&host, &gpu, key, &facts);
    assert_true(facts.learnt.try_gpu && !facts.learnt.try_host);
    gpb_learn_tried(&host, key);
    gpb_learn_facts(&host, &gpu, key, &facts);
    assert_true(facts.learnt.try_gpu);
    for (int i = 0; i < 3; i++) gpb_learn_tried(&host, key);
    gpb_learn_facts(&host, &gpu, key, &facts);
    assert_false(facts.learnt.try_gpu);
    gpb_learn_add(&gpu, key, 1e-3, 6e-3);
    gpb_learn_add(&gpu, key, 1e-3, 5e-3);
    gpb_learn_add(&gpu, key, 1e-3, 7e-3);
    gpb_learn_facts(&host, &gpu, key, &facts);
    assert_true(fabs(facts.learnt.gpu_ratio - 5) < 0.01 && !facts.learnt.try_gpu && !facts.learnt.try_host);
    for (int calls = 0; calls < 4; calls++) gpb_learn_add(&gpu, key, 1e-3, 5e-3);
    gpb_learn_facts(&host, &gpu, key, &facts);
    assert_true(fabs(facts.learnt.host_ratio - 2) < 0.1 && !facts.learnt.try_gpu && !facts.learnt.try_host);
}

static void *adds(void *learnt)
{
    for (int i = 0; i < 20000; i++)
        gpb_learn_add(learnt, (gpb_learn_key){ i % GPB_LEARN_CLASSES, (uint32_t)i % GPB_LEARN_KEPT, 5 }, 1,
                      2);
    return NULL;
}

static void threads(void **state)
{
    (void)state;
    gpb_learn *learnt = fresh();
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&thread[i], NULL, adds, learnt), 0);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < GPB_LEARN_CLASSES; i++) assert_true(ratio_of(learnt, i) == 2);
}

/* Sides and triangles of SYMM are sizes of their own, in classes apart from GEMM's. */
static void sides(void **state)
{
    (void)state;
    const gpb_call gemm = { .m = 512, .n = 512, .k = 512, .batch = 1, .x[GPB_C].uplo = 'G' };
    uint64_t hashes[5] = { gpb_learn_hash(&gemm) };
    for (int form = 0; form < 4; form++) {
        gpb_call symm = gemm;
        symm.routine = GPB_ROUTINE_SYMM;
        symm.x[form & 1].structure = GPB_SYMMETRIC;
        symm.x[form & 1].uplo = form & 2 ? 'U' : 'L';
        assert_int_not_equal(gpb_learn_key_of(&symm).class, gpb_learn_key_of(&gemm).class);
        hashes[form + 1] = gpb_learn_hash(&symm);
        for (int i = 0; i <= form; i++) assert_true(hashes[form + 1] != hashes[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sides),
        cmocka_unit_test(classes), cmocka_unit_test(converges), cmocka_unit_test(exceptions),
        cmocka_unit_test(lends), cmocka_unit_test(sizes), cmocka_unit_test(tries),
        cmocka_unit_test(changes), cmocka_unit_test(threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
