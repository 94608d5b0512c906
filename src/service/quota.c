/* SPDX-License-Identifier: MIT */
/* Quotas; see quota.h. A container usually sees its own group as the root. A service of systemd (CPUQuota=)
   is in a group far down, whose path is in /proc/self/cgroup. Each group is also bound by the groups above
   it. (Linux: admin-guide/cgroup-v2, scheduler/sched-bwc.) */
#include "src/service/quota.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/service/descriptor.h"

enum { LONGEST = 1024 };                 /* of a path; a deeper group is bound by the groups above it only */

/* The beginning of a file. False: it cannot be read. */
static bool read_text(const char *folder, const char *name, char *text, size_t size)
{
    char path[LONGEST + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = gpb_descriptor_open(path, O_RDONLY, 0);
    ssize_t length = file < 0 ? 0 : read(file, text, size - 1);
    if (file >= 0) close(file);
    text[length > 0 ? length : 0] = 0;
    return length > 0;
}

static int cores(long long granted, long long period)
{
    if (granted < 1 || period < 1 || granted / period >= INT_MAX) return INT_MAX;
    return (int)(granted / period + (granted % period != 0));
}

/* "200000 100000", or "max 100000". */
static int version_2(const char *folder)
{
    char text[64];
    long long granted, period;
    if (!read_text(folder, "cpu.max", text, sizeof text)) return INT_MAX;
    return sscanf(text, "%lld %lld", &granted, &period) == 2 ? cores(granted, period) : INT_MAX;
}

/* A quota of -1 means none. */
static int version_1(const char *folder)
{
    char granted[32], period[32];
    long long g, p;
    if (!read_text(folder, "cpu.cfs_quota_us", granted, sizeof granted)) return INT_MAX;
    if (!read_text(folder, "cpu.cfs_period_us", period, sizeof period)) return INT_MAX;
    return sscanf(granted, "%lld", &g) == 1 && sscanf(period, "%lld", &p) == 1 ? cores(g, p) : INT_MAX;
}

/* The smallest quota of that group and of those above it, up to the root of the mount. */
static int least_of(const char *root, const char *mount, const char *group, int (*of)(const char *folder))
{
    char folder[LONGEST];
    const int top = snprintf(folder, sizeof folder, "%s/sys/fs/cgroup%s", root, mount);
    if (top < 0 || (size_t)top >= sizeof folder) return INT_MAX;
    if (!strstr(group, "..") && strlen(group) < sizeof folder - (size_t)top) strcpy(folder + top, group);
    int least = of(folder);
    for (char *end; (end = strrchr(folder + top, '/')); ) {
        *end = 0;
        const int here = of(folder);
        if (here < least) least = here;
    }
    return least;
}

/* One line of /proc/self/cgroup: "0::/group" of version 2, "7:cpu,cpuacct:/group" of version 1. */
static int of_line(const char *root, char *line)
{
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) return INT_MAX;
    *controllers++ = 0;
    *group++ = 0;
    group[strcspn(group, "\n")] = 0;
    if (!*controllers) return least_of(root, "", group, version_2);
    char mount[64], *rest = NULL;
    snprintf(mount, sizeof mount, "/%s", controllers);
    int least = INT_MAX;
    for (char *one = strtok_r(controllers, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        if (strcmp(one, "cpu") != 0) continue;
        const int linked = least_of(root, "/cpu", group, version_1);
        const int whole = least_of(root, mount, group, version_1);
        least = linked < whole ? linked : whole;
    }
    return least;
}

int gpb_quota_cores(const char *root)
{
    char line[LONGEST], path[LONGEST];
    int least = least_of(root, "", "", version_2);
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = gpb_descriptor_stream(path);
    while (file && fgets(line, sizeof line, file)) {
        const int here = of_line(root, line);
        if (here < least) least = here;
    }
    if (file) fclose(file);
    return least;
}
