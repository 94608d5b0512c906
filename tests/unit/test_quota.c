/* SPDX-License-Identifier: MIT */
/* Quotas of cgroups of both versions, nested and hidden, in folders of the test's own. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/service/quota.h"

static char root[] = "/tmp/gpublas.XXXXXX";

/* Writes root/path, and makes its folders. */
static void put(const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(whole, 0700);
        *at = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static int begin(void **state)
{
    (void)state;
    strcpy(root, "/tmp/gpublas.XXXXXX");
    return !mkdtemp(root);
}

static int end(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

static void none(void **state)
{
    (void)state;
    assert_int_equal(gpb_quota_cores(root), INT_MAX);
    put("/proc/self/cgroup", "0::/\n");
    assert_int_equal(gpb_quota_cores(root), INT_MAX);
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    assert_int_equal(gpb_quota_cores(root), INT_MAX);
}

/* A container whose group is the root; without /proc as well. */
static void container(void **state)
{
    (void)state;
    put("/sys/fs/cgroup/cpu.max", "250000 100000\n");
    assert_int_equal(gpb_quota_cores(root), 3);
    put("/proc/self/cgroup", "0::/../outside\n");
    assert_int_equal(gpb_quota_cores(root), 3);
}

/* A service of systemd: the quota is its own, or that of the slice around it. */
static void nested(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/system.slice/deep/one.service\n");
    put("/sys/fs/cgroup/system.slice/deep/one.service/cpu.max", "400000 100000\n");
    assert_int_equal(gpb_quota_cores(root), 4);
    put("/sys/fs/cgroup/system.slice/deep/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/system.slice/cpu.max", "50000 100000\n");
    assert_int_equal(gpb_quota_cores(root), 1);
}

static void version_one(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "12:cpuset:/a\n7:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    assert_int_equal(gpb_quota_cores(root), INT_MAX);
    put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "600000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
    assert_int_equal(gpb_quota_cores(root), 6);
    /* A container of version 1, whose group is the root of the mount. */
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(gpb_quota_cores(root), 2);
}

static void nonsense(void **state)
{
    char line[4000];
    (void)state;
    memset(line, 'x', sizeof line);
    memcpy(line, "0::/", 4);
    line[sizeof line - 1] = 0;
    put("/proc/self/cgroup", line);
    put("/sys/fs/cgroup/cpu.max", "700000 0\n");
    assert_int_equal(gpb_quota_cores(root), INT_MAX);
    put("/sys/fs/cgroup/cpu.max", "999999999999999999 1\n");
    assert_int_equal(gpb_quota_cores(root), INT_MAX);
    put("/sys/fs/cgroup/cpu.max", "-5 100000\n");
    assert_int_equal(gpb_quota_cores(root), INT_MAX);
    put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    assert_int_equal(gpb_quota_cores(root), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(none, begin, end),
        cmocka_unit_test_setup_teardown(container, begin, end),
        cmocka_unit_test_setup_teardown(nested, begin, end),
        cmocka_unit_test_setup_teardown(version_one, begin, end),
        cmocka_unit_test_setup_teardown(nonsense, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
