/* SPDX-License-Identifier: MIT */
/* Which block computes what in the SLICED kernels for Hopper, and how parts of k are added up
   (kernels/sliced/work.cuh as compiled for the GPU), on the CPU (emulate.h), with random numbers in place
   of products. Every wanted tile is stored once, with the sum of all its chunks; nothing is written beside
   the room for partial sums; counters stay in bounds; and the bits are the same for any order of blocks
   and threads. One block runs after the other, so this shows that no block waits for another. It does not
   show races or the order of memory. */
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels/sliced/work.cuh"

enum { BM = 128, BN = 64, N = BN / 2, THREADS = GPB_GROUP * (1 + GPB_CONSUMERS) };

struct problem {
    unsigned clusters, tiles_m, tiles_n, batch, chunks;
    int slices;
    bool marked;                         /* some rows and columns are at another level */
    unsigned parts;                      /* what the last round's units are cut into */
    char uplo = 0;                       /* 'U', 'L': only the tiles that meet that triangle */
};

static gpb_gemm_args g;
static int slices;
static std::vector<float> stored;        /* N values of each thread of a tile's consumers */
static std::vector<unsigned> stores;     /* by each consumer warpgroup of a tile */

/* What chunk `q` adds to value `x` of a tile. */
static float product(size_t x, unsigned q)
{
    const uint64_t mixed = (x * 2654435761u + q * 40503u + 12345) * UINT64_C(6364136223846793005);
    return (float)(int)(mixed >> 40) * 0x1p-24f - 0.25f;
}

static void thread()
{
    const unsigned tiles_m = (unsigned)((g.m + BM - 1) / BM), tiles_n = (unsigned)((g.n + BN - 1) / BN);
    if (threadIdx.x < GPB_GROUP) return;                    /* the producer's threads */
    const gpb_schedule<BM, BN> schedule(g, slices);
    for (unsigned x = blockIdx.x / GPB_SLICED_CLUSTER; x < schedule.last; x += schedule.clusters) {
        gpb_unit u;
        if (!schedule.unit(g, x, blockIdx.x % GPB_SLICED_CLUSTER, u)) continue;
        const size_t tile = ((size_t)u.l * tiles_n + u.j0 / BN) * tiles_m + u.i0 / BM;
        const size_t first = (tile * (THREADS - GPB_GROUP) + threadIdx.x - GPB_GROUP) * N;
        float sum[N] = {};
        for (unsigned q = u.from; q < u.to; q++)
            for (int y = 0; y < N; y++) sum[y] += product(first + y, q);
        if (!(u.parts == 1 || (u.parts && gpb_last_part(g, u, sum)))) continue;
        memcpy(&stored[first], sum, sizeof sum);
        if (threadIdx.x % GPB_GROUP == 0) stores[tile * GPB_CONSUMERS + threadIdx.x / GPB_GROUP - 1]++;
    }
}

static const char *judge(const problem &p, const std::vector<uint64_t> &rows,
                         const std::vector<uint64_t> &cols)
{
    for (unsigned l = 0; l < p.batch; l++)
        for (unsigned j = 0; j < p.tiles_n; j++)
            for (unsigned i = 0; i < p.tiles_m; i++) {
                const size_t tile = ((size_t)l * p.tiles_n + j) * p.tiles_m + i,
                             values = (size_t)(THREADS - GPB_GROUP) * N;
                const bool meets = !p.uplo || (p.uplo == 'U' ? i * BM <= j * BN + BN - 1
                                                             : i * BM + BM - 1 >= j * BN);
                const bool wanted = rows[i] != 7 && cols[j * BN / GPB_GUARD] != 7;
                for (int group = 0; group < GPB_CONSUMERS; group++)
                    if (meets && stores[tile * GPB_CONSUMERS + group] != wanted)
                        return "a tile is not stored once, or is none of this level's";
                for (size_t y = tile * values; y < (tile + 1) * values; y += 61) {
                    double sum = 0;
                    for (unsigned q = 0; q < p.chunks; q++) sum += (double)product(y, q);
                    if (meets && wanted && !(std::fabs(sum - stored[y]) <= 1e-4 * p.chunks))
                        return "not the sum of all chunks";
                }
            }
    return NULL;
}

static const char *run(const problem &p)
{
    const int64_t each = GPB_TILES_OF(p.uplo, p.tiles_m * BM - 5, p.tiles_n * BN - 5, 2 * BM, BN);
    const unsigned units = (unsigned)each * p.batch, rest = units % p.clusters;
    if (gpb_sliced_tail_parts(rest, p.clusters, p.chunks, p.slices) != p.parts) return "not in so many parts";
    std::vector<uint64_t> rows(p.tiles_m, 3), cols(p.tiles_n, 3);       /* stale */
    for (size_t x = 1; p.marked && x < rows.size(); x += 3) rows[x] = 7;
    if (p.marked && p.tiles_n * BN > GPB_GUARD) cols[0] = 7;
    std::vector<float> partials(gpb_sliced_partial_bytes(p.clusters, BM * BN) / 4), first;
    std::vector<uint32_t> counters(GPB_SLICED_COUNTERS);
    g = gpb_gemm_args();
    g.m = (int64_t)p.tiles_m * BM - 5;
    g.n = (int64_t)p.tiles_n * BN - 5;
    g.k = (int64_t)p.chunks * GPB_SLICE_CHUNK - 5;
    g.batch = p.batch;
    g.uplo = p.uplo;
    g.guard_a = rows.data();
    g.guard_b = cols.data();
    g.epoch_a = g.epoch_b = 7;
    slices = p.slices;
    g.partials = partials.data();
    g.counters = counters.data();
    for (int turn = 0; turn < 3; turn++) {
        stored.assign((size_t)p.batch * p.tiles_m * p.tiles_n * (THREADS - GPB_GROUP) * N, 0);
        stores.assign((size_t)p.batch * p.tiles_m * p.tiles_n * GPB_CONSUMERS, 0);
        for (float &x : partials) x = NAN;
        counters.assign(GPB_SLICED_COUNTERS, 0);
        if (gpb_emulate_run(
                { thread, { p.clusters * GPB_SLICED_CLUSTER, 1, 1 }, THREADS, turn > 0, false, {}, {} }))
            return "as said above";
        if (const char *wrong = judge(p, rows, cols)) return wrong;
        if (turn && memcmp(first.data(), stored.data(), 4 * first.size()))
            return "the order of threads or blocks shows in the bits";
        first = stored;
    }
    return NULL;
}

int main()
{
    static const problem problems[] = {
        { 11, 16, 1, 1, 384, 2, false, 4 },      /* 8 units: 32 parts in three rounds */
        { 11, 13, 1, 1, 200, 2, false, 3 },      /* 7: two; a unit of one tile */
        { 11, 34, 1, 1, 384, 1, true, 5 },       /* a whole round, then 6: 30 parts in three rounds */
        { 8, 9, 3, 3, 130, 3, true, 3 },         /* five whole rounds, then 5: 15 parts in two */
        { 6, 9, 2, 2, 130, 3, true, 3 },         /* three, then 2 */
        { 11, 4, 2, 1, 64, 2, false, 2 },        /* once around */
        { 5, 3, 1, 2, 40, 2, false, 1 },         /* 4: parts of a few chunks are not worth it */
        { 11, 8, 16, 1, 64, 2, true, 3, 'U' },
        { 11, 7, 14, 1, 384, 2, false, 2, 'L' },
        { 11, 7, 14, 2, 384, 2, false, 1, 'L' },
        { 66, 96, 1, 1, 384, 2, false, 4 } };    /* 12288 x 64 x 12288 */
    int wrong = 0;
    for (const problem &p : problems)
        if (const char *what = run(p)) {
            wrong++;
            printf("WRONG: %u x %u tiles, %u members, %u chunks on %u clusters: %s\n", p.tiles_m, p.tiles_n,
                   p.batch, p.chunks, p.clusters, what);
        }
    printf("%d launches emulated three times, %d wrong\n", (int)(sizeof problems / sizeof *problems), wrong);
    return wrong != 0;
}
