/* SPDX-License-Identifier: MIT */
/* See columns.h. */
#include "src/copy/columns.h"

#include <string.h>

int64_t gpb_columns_walk(int32_t *from, int64_t n, int32_t *walk)
{
    int64_t count = 0;
    for (int64_t first = 0; first < n; first++) {
        if (from[first] < 0) continue;
        const bool stays = from[first] == first;
        for (int64_t j = first, next; from[j] >= 0; j = next) {
            next = from[j];
            from[j] = -1;
            if (!stays) walk[count++] = (int32_t)(j == first ? ~j : j);
        }
    }
    return count;
}

void gpb_columns_move(const gpb_columns_job *job)
{
    const size_t column = (size_t)job->ld * job->element;
    const int64_t most = GPB_COLUMNS_BYTES / (int64_t)job->element;
    char first[GPB_COLUMNS_BYTES];
    for (int64_t row = 0; row < job->rows; row += most) {
        const int64_t rows = job->rows - row < most ? job->rows - row : most;
        const size_t bytes = (size_t)rows * job->element;
        char *a = job->a + (size_t)row * job->element, *to = NULL;
        for (int64_t i = 0; i < job->count; i++) {
            const int32_t j = job->walk[i];
            char *here = a + (size_t)(j < 0 ? ~j : j) * column;
            if (j >= 0) {
                memcpy(to, here, bytes);
            } else {
                if (to) memcpy(to, first, bytes);
                memcpy(first, here, bytes);
            }
            to = here;
        }
        if (to) memcpy(to, first, bytes);
    }
}
