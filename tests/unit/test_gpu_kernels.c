/* SPDX-License-Identifier: MIT */
/* Launches (src/gpu/kernels.c) on a driver of the test's own: grids that are too large, and clusters that
   fit nowhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/gpu/kernels.h"
#include "src/gpu/image.h"

static int launches, searches, held;
static unsigned blocks;
const void *const gpb_images[GPB_IMAGES];

static CUresult load(CUmodule *module, const void *image)
{
    (void)image;
    *module = (CUmodule)1;
    return CUDA_SUCCESS;
}
static CUresult find(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    (void)name;
    searches++;
    *function = (CUfunction)1;
    return CUDA_SUCCESS;
}
static CUresult attribute(CUfunction f, CUfunction_attribute a, int value)
{
    (void)f, (void)a, (void)value;
    return CUDA_SUCCESS;
}
static CUresult occupancy(int *clusters, CUfunction f, const CUlaunchConfig *c)
{
    (void)f;
    (void)c;
    *clusters = held;
    return CUDA_SUCCESS;
}
static CUresult launch(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                       unsigned bz, unsigned smem, CUstream s, void **params, void **extra)
{
    (void)f, (void)y, (void)z, (void)bx, (void)by, (void)bz, (void)smem, (void)s, (void)params, (void)extra;
    launches++;
    blocks = x;
    return CUDA_SUCCESS;
}
static const gpb_driver driver = { .cuModuleLoadData = load, .cuModuleGetFunction = find,
                                   .cuFuncSetAttribute = attribute, .cuOccupancyMaxActiveClusters = occupancy,
                                   .cuLaunchKernel = launch };
const gpb_driver *gpb_driver_get(void) { return &driver; }

static int of_form(enum gpb_form form)
{
    int which = 0;
    while (gpb_kernels[which].form != form) which++;
    return which;
}

static void test_grids(void **state)
{
    static gpb_device device = { .arch = 80, .sms = 100 };
    (void)state;
    gpb_launch l = { .which = of_form(GPB_FORM_STRIDED), .blocks = INT32_MAX, .members = 1 };
    assert_int_equal(gpb_kernels_launch(&device, NULL, &l), CUDA_SUCCESS);
    assert_true(launches == 1 && blocks == INT32_MAX);
    l.blocks = (INT64_C(1) << 32) + 1;                        /* as 32 bits: one block */
    assert_int_not_equal(gpb_kernels_launch(&device, NULL, &l), CUDA_SUCCESS);
    assert_int_equal(launches, 1);
}

static void test_clusters(void **state)
{
    static gpb_device some = { .arch = 90, .sms = 132 }, none = { .arch = 90, .sms = 132 };
    CUfunction f;
    const int which = of_form(GPB_FORM_SLICED);
    (void)state;
    held = 60;
    assert_int_equal(gpb_kernels_find(&some, which, &f), CUDA_SUCCESS);
    assert_int_equal(some.clusters[which], 60);
    held = 0;
    searches = 0;
    assert_int_not_equal(gpb_kernels_find(&none, which, &f), CUDA_SUCCESS);
    assert_int_not_equal(gpb_kernels_find(&none, which, &f), CUDA_SUCCESS);
    assert_int_equal(searches, 1);                            /* and is not asked for again */
    assert_int_equal(gpb_kernels_find(&none, of_form(GPB_FORM_STRIDED), &f), CUDA_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_grids), cmocka_unit_test(test_clusters) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
