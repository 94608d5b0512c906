/* SPDX-License-Identifier: MIT */
/* The file of programs that have the GPU started at load: what was written is read, and nothing that another
   user may have written is believed. usage: test_at_load */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/learn/at_load.h"

#define PROGRAM UINT64_C(0x123456789abcdef1)
#define NEIGHBOUR (PROGRAM + 512)        /* of the same slot */

static char folder[] = "/tmp/gpublas-at-load-XXXXXX", path[64], other[64];

static int begin(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/table", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void remembers(void **state)
{
    (void)state;
    struct stat about;
    gpb_at_load_want(path, PROGRAM, false);
    assert_true(stat(path, &about) != 0);                            /* nothing is made for a no */
    gpb_at_load_want(path, PROGRAM, true);
    assert_true(stat(path, &about) == 0 && (about.st_mode & 0777) == 0600);
    assert_true(gpb_at_load_wanted(path, PROGRAM));
    assert_false(gpb_at_load_wanted(path, PROGRAM + 1) || gpb_at_load_wanted(path, NEIGHBOUR));
    gpb_at_load_want(path, PROGRAM + 1, true);
    gpb_at_load_want(path, NEIGHBOUR, false);                        /* not its own: nothing changes */
    assert_true(gpb_at_load_wanted(path, PROGRAM) && gpb_at_load_wanted(path, PROGRAM + 1));
    gpb_at_load_want(path, NEIGHBOUR, true);
    assert_true(gpb_at_load_wanted(path, NEIGHBOUR) && !gpb_at_load_wanted(path, PROGRAM));
    gpb_at_load_want(path, NEIGHBOUR, false);
    assert_false(gpb_at_load_wanted(path, NEIGHBOUR));
    assert_false(gpb_at_load_wanted(path, NEIGHBOUR % 512));         /* an empty slot is nobody's */
    assert_false(gpb_at_load_wanted(path, 0));
}

static void believes_only_its_user(void **state)
{
    (void)state;
    gpb_at_load_want(path, PROGRAM, true);
    assert_int_equal(chmod(path, 0620), 0);
    assert_false(gpb_at_load_wanted(path, PROGRAM));
    assert_int_equal(chmod(path, 0602), 0);
    assert_false(gpb_at_load_wanted(path, PROGRAM));
    assert_int_equal(chmod(path, 0600), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 1, 1), 0);
        assert_false(gpb_at_load_wanted(path, PROGRAM));
        assert_int_equal(chown(path, 0, 0), 0);
    }
    assert_true(gpb_at_load_wanted(path, PROGRAM));
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_false(gpb_at_load_wanted(path, PROGRAM));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(gpb_at_load_wanted(path, PROGRAM));                 /* and nobody waits for its other end */
    assert_int_equal(unlink(path), 0);
    assert_false(gpb_at_load_wanted(path, PROGRAM));
    assert_int_equal(truncate(other, 4), 0);
    assert_int_equal(rename(other, path), 0);
    assert_false(gpb_at_load_wanted(path, PROGRAM));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(remembers),
                                        cmocka_unit_test(believes_only_its_user) };
    return cmocka_run_group_tests(tests, begin, end);
}
