/* SPDX-License-Identifier: MIT */
/* See cores.h. */
#include "tests/gpu/cores.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

typedef struct share {
    void (*what)(void *, int64_t);
    void *of;
    int64_t from, to;
} share;

static void *do_share(void *of)
{
    const share *s = of;
    for (int64_t x = s->from; x < s->to; x++) s->what(s->of, x);
    return NULL;
}

void cores_each(int64_t count, int64_t steps, void (*what)(void *, int64_t), void *of)
{
    enum { MOST = 16, WORTH_A_THREAD = 1 << 18 };
    const int64_t worth = count * steps / WORTH_A_THREAD, cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int64_t most = cores < MOST ? cores : MOST, shared = worth < 1 ? 1 : worth < most ? worth : most;
    share shares[MOST];
    pthread_t threads[MOST];
    bool started[MOST] = { false };
    for (int64_t t = 0; t < shared; t++) {
        shares[t] = (share){ what, of, count * t / shared, count * (t + 1) / shared };
        started[t] = t > 0 && !pthread_create(&threads[t], NULL, do_share, &shares[t]);
    }
    for (int64_t t = 0; t < shared; t++)
        if (!started[t]) do_share(&shares[t]);
    for (int64_t t = 0; t < shared; t++)
        if (started[t]) pthread_join(threads[t], NULL);
}
