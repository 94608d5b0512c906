/* SPDX-License-Identifier: MIT */
/* The host's threads, with three hosts of the test's own: two like OpenBLAS with its own threads, and one
   that says a number and cannot be told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <dlfcn.h>

static int closes(void *handle) { return handle == NULL; }
#define dlclose closes
#include "src/host/host_threads.c"

enum { OWN_THREADS = 1, OPENMP = 2 };
static int open_threads = 16, open_kind = OWN_THREADS, set_calls;
static int open_get(void) { return open_threads; }
static int open_parallel(void) { return open_kind; }
static void open_set(int count)
{
    open_threads = count;
    set_calls++;
}
static int mkl_get(void) { return 12; }
static int second_threads = 8;
static int second_get(void) { return second_threads; }
static void second_set(int count) { second_threads = count; }

/* Their addresses are those of routines. */
static int dgemm_of_open, sgemm_of_open, dtrsm_of_mkl, dgemm_of_second;
static char open_handle, mkl_handle, second_handle;

void *gpb_objects_holding(const void *address)
{
    if (address == &dtrsm_of_mkl) return &mkl_handle;
    return address == &dgemm_of_second ? &second_handle : &open_handle;
}

void *gpb_probe_lookup(void *handle, const char *name)
{
    union { int (*call)(void); void *address; } get = { open_get }, parallel = { open_parallel },
                                                mkl = { mkl_get }, second = { second_get };
    union { void (*call)(int); void *address; } set = { open_set }, set_second = { second_set };
    if (handle == &mkl_handle) return strcmp(name, "MKL_Get_Max_Threads") == 0 ? mkl.address : NULL;
    if (handle == &second_handle)
        return strcmp(name, "openblas_get_num_threads") == 0   ? second.address
               : strcmp(name, "openblas_set_num_threads") == 0 ? set_second.address
               : strcmp(name, "openblas_get_parallel") == 0    ? parallel.address
                                                               : NULL;
    return strcmp(name, "scipy_openblas_get_num_threads64_") == 0   ? get.address
           : strcmp(name, "scipy_openblas_set_num_threads64_") == 0 ? set.address
           : strcmp(name, "scipy_openblas_get_parallel64_") == 0    ? parallel.address
                                                                    : NULL;
}

static int begin(void **state)
{
    (void)state;
    atomic_store(&here, hosts);
    for (int i = 0; i < HOSTS; i++) atomic_store(&listed[i], NULL);
    atomic_store(&lowered, 0);
    atomic_store(&orphaned, false);
    open_threads = 16;
    open_kind = OWN_THREADS;
    return 0;
}

/* Any routine tells. An embedded one says one thread, but only where nothing else is known. */
static void found(void **state)
{
    (void)state;
    assert_true(gpb_host_threads() == 0 && !gpb_host_threads_settable());
    gpb_host_threads_find(NULL);
    assert_true(gpb_host_threads() == 1 && !gpb_host_threads_settable());
    gpb_host_threads_find(&dgemm_of_open);
    assert_true(gpb_host_threads() == 16 && gpb_host_threads_settable());
    gpb_host_threads_find(NULL);
    assert_true(gpb_host_threads() == 16 && gpb_host_threads_settable());
    gpb_host_threads_find(&dtrsm_of_mkl);
    assert_true(gpb_host_threads() == 12 && !gpb_host_threads_settable());
}

static void openmp_is_let_be(void **state)
{
    (void)state;
    open_kind = OPENMP;
    gpb_host_threads_find(&sgemm_of_open);
    assert_true(gpb_host_threads() == 16 && !gpb_host_threads_settable() && gpb_host_threads_lower(6) == 0);
    assert_int_equal(open_threads, 16);
}

/* One call lowers it at a time. At least one thread is left. A number that is not larger stays. */
static void lowers(void **state)
{
    (void)state;
    gpb_host_threads_find(&dgemm_of_open);
    assert_true(gpb_host_threads_lower(16) == 0 && gpb_host_threads_lower(64) == 0);
    assert_true(gpb_host_threads_lower(6) == 16 && open_threads == 6);
    assert_true(gpb_host_threads_lower(4) == 0 && open_threads == 6);
    gpb_host_threads_restore();
    assert_int_equal(open_threads, 16);
    assert_true(gpb_host_threads_lower(0) == 16 && open_threads == 1);
    gpb_host_threads_restore();
    assert_true(gpb_host_threads_lower(6) == 16);
    open_threads = 3;                        /* by the program */
    gpb_host_threads_restore();
    assert_int_equal(open_threads, 3);
}

/* It is restored on the host that it was lowered on. */
static void another_host_meanwhile(void **state)
{
    (void)state;
    gpb_host_threads_find(&dgemm_of_open);
    assert_int_equal(gpb_host_threads_lower(6), 16);
    gpb_host_threads_find(&dtrsm_of_mkl);
    gpb_host_threads_restore();
    assert_int_equal(open_threads, 16);
}

/* NumPy's wheel has one OpenBLAS, SciPy's another. Whichever serves the call, it has few threads, and the
   program's number afterwards. Each is listed once. */
static void two_that_can_be_told(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * HOSTS; i++) gpb_host_threads_find(i % 2 ? &dgemm_of_open : &dgemm_of_second);
    assert_true(gpb_host_threads() == 16 && gpb_host_threads_lower(6) == 16);
    assert_true(open_threads == 6 && second_threads == 6);
    gpb_host_threads_restore();
    assert_true(open_threads == 16 && second_threads == 8);
    assert_true(gpb_host_threads_lower(10) == 16 && open_threads == 10 && second_threads == 8);
    open_threads = 3;                        /* by the program */
    gpb_host_threads_restore();
    assert_true(open_threads == 3 && second_threads == 8);
}

/* A child of a fork in the middle of another thread's call. */
static void in_a_child(void **state)
{
    (void)state;
    gpb_host_threads_find(&dgemm_of_open);
    assert_int_equal(gpb_host_threads_lower(6), 16);
    gpb_host_threads_in_child();
    set_calls = 0;
    gpb_host_threads_recover();
    gpb_host_threads_recover();
    assert_true(open_threads == 16 && set_calls == 1);
    assert_true(gpb_host_threads_lower(6) == 16 && open_threads == 6);
    gpb_host_threads_restore();
    gpb_host_threads_in_child();             /* of a fork beside no call */
    set_calls = 0;
    gpb_host_threads_recover();
    assert_true(open_threads == 16 && set_calls == 0);
}

int main(void)
{
    const struct CMUnitTest tests[]
        = { cmocka_unit_test_setup(found, begin), cmocka_unit_test_setup(openmp_is_let_be, begin),
            cmocka_unit_test_setup(lowers, begin), cmocka_unit_test_setup(another_host_meanwhile, begin),
            cmocka_unit_test_setup(two_that_can_be_told, begin), cmocka_unit_test_setup(in_a_child, begin) };
    return cmocka_run_group_tests_name("host_threads", tests, NULL, NULL);
}
