/* SPDX-License-Identifier: MIT */
/* Goldens are reviewed output. A test prints its table into a file descriptor, and the file x.golden
   beside it must say the same. `test_x --print > tests/unit/x.golden` rewrites it; people review the diff. */
#ifndef GPB_TESTS_GOLDEN_H
#define GPB_TESTS_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void golden_printer(int fd);

/* True if the printer prints exactly what the file says. Otherwise prints the first line that differs. */
static inline int golden_matches(golden_printer *print, const char *path)
{
    FILE *now = tmpfile(), *then = fopen(path, "r");
    char a[4096], b[4096];
    int line = 1, same = now && then;
    if (!then) fprintf(stderr, "cannot read %s\n", path);
    if (same) {
        print(fileno(now));
        rewind(now);
        for (;; line++) {
            char *x = fgets(a, sizeof a, now), *y = fgets(b, sizeof b, then);
            if (!x && !y) break;
            same = x && y && strcmp(a, b) == 0;
            if (same) continue;
            fprintf(stderr, "%s:%d\n  was: %s  now: %s", path, line, y ? y : "(end)\n", x ? x : "(end)\n");
            break;
        }
    }
    if (then) fclose(then);
    if (now) fclose(now);
    return same;
}

/* For the first line of main: `test_x --print` prints the table and exits. */
static inline void golden_print(golden_printer *print, int count, char **arguments)
{
    if (count < 2 || strcmp(arguments[1], "--print") != 0) return;
    print(STDOUT_FILENO);
    exit(0);
}

#endif
