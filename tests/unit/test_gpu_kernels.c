/* SPDX-License-Identifier: MIT */
/* Launches (src/gpu/kernels.c) on a driver of the test's own: grids that are too large, clusters that fit
   nowhere, and what is launched for each type. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/gpu/kernels.h"
#include "src/gpu/image.h"

static int launches, searches, held;
static unsigned blocks;
static const char *found;                /* the name, and in which image */
static enum gpb_image where;

/* An image is its row of images.def here, and so is a module. */
const void *const gpb_images[GPB_IMAGES] = {
#define IMAGE(name, p, arch) &gpb_image_rows[GPB_IMAGE_##name],
#include "kernels/images.def"
#undef IMAGE
};

static CUresult load(CUmodule *module, const void *image)
{
    *module = (CUmodule)image;
    return CUDA_SUCCESS;
}
static CUresult find(CUfunction *function, CUmodule module, const char *name)
{
    where = (enum gpb_image)((const gpb_image_row *)(const void *)module - gpb_image_rows);
    found = name;
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

/* Each type's kernels are its own, in images of that type. */
static void test_types(void **state)
{
    static gpb_device device = { .arch = 90, .sms = 132 };
    static const char *const names[GPB_PASSES] = { [GPB_PASS_PACK] = "pack", [GPB_PASS_UNPACK] = "unpack",
                                                   [GPB_PASS_REDUCE] = "reduce",
                                                   [GPB_PASS_COMBINE] = "combine",
#define SOLVE(name, arguments, threads, begins) [GPB_PASS_##name] = #name,
#include "kernels/solve.def"
#undef SOLVE
    };
    CUfunction f;
    (void)state;
    held = 60;
    for (int type = 0; type < GPB_TYPES; type++)
        for (int pass = 0; pass < GPB_PASSES; pass++) {
            char name[32];
            if (pass == GPB_PASS_COMBINE && gpb_type_real((enum gpb_type)type) == GPB_TYPE_s) continue;
            snprintf(name, sizeof name, "gpb_%c%s", gpb_type_of((enum gpb_type)type)->letter, names[pass]);
            const int which = gpb_kernels_pass((enum gpb_pass)pass, (enum gpb_type)type);
            assert_int_equal(gpb_kernels_find(&device, which, &f), CUDA_SUCCESS);
            assert_string_equal(found, name);
            assert_int_equal(gpb_image_rows[where].type, type);
        }
    for (int which = 0; which < GPB_KERNELS; which++) {
        assert_int_equal(gpb_kernels_find(&device, which, &f), CUDA_SUCCESS);
        assert_string_equal(found, gpb_kernels[which].symbol);
        assert_int_equal(gpb_image_rows[where].type, gpb_kernels[which].type);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_grids), cmocka_unit_test(test_clusters),
                                        cmocka_unit_test(test_types) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
