/* SPDX-License-Identifier: MIT */
/* What the clusters of a SLICED kernel compute, in which order, and how parts are added up. A unit is a pair
   of tiles of C, one above the other, one for each block of the cluster. Both need the same part of op(B).
   Whole rounds of units go to all clusters alike. The units of the last, incomplete round are cut along k
   (gpb_sliced_tail_parts). No part of a unit waits for another, because the last one to finish adds them up,
   so parts may run in different rounds. Nothing depends on timing: the same call gives the same bits. */
#ifndef GPB_SLICED_WORK_CUH
#define GPB_SLICED_WORK_CUH

#include "kernels/sliced.h"
#include "kernels/tile.cuh"

/* Rows of pairs that are walked together. They then read about as much of A as of B. */
constexpr unsigned GPB_UNIT_GROUP = 8;

constexpr int GPB_GROUP = 128;                  /* threads of a warpgroup */
constexpr int GPB_CONSUMERS = GPB_SLICED_GROUPS;

/* What one block computes next. The producer finds it and leaves it in shared memory for the consumers. */
struct gpb_unit {
    /* Member; first row and column of the tile, or the row of the cluster's other tile if there is none. */
    unsigned l, i0, j0;
    unsigned from, to;                          /* chunks of k; none: all work is done */
    unsigned short part, parts;  /* k of the tile is cut into parts; 0 parts: nothing to store */
    unsigned slot;                              /* the tile's number among those that are cut */
    unsigned full;                              /* the product of the low slices counts, too */
};

/* BM: rows of the real product, of which an element of C has REALS. */
template <int BM, int BN, int REALS = 1> struct gpb_schedule {
    /* each: units of a member */
    unsigned tiles_m, tiles_n, pairs, each, units, clusters, chunks, full, parts, last;

    __device__ __forceinline__ gpb_schedule(const gpb_gemm_args &g, int slices)
    {
        tiles_m = (unsigned)((g.m + BM - 1) / BM);
        tiles_n = (unsigned)((g.n + BN - 1) / BN);
        pairs = (tiles_m + 1) / 2;
        each = g.uplo ? (unsigned)gpb_triangle_tiles(g.uplo, g.n, 2 * BM / REALS, BN) : pairs * tiles_n;
        units = each * (unsigned)g.batch;
        clusters = gridDim.x / GPB_SLICED_CLUSTER;
        chunks = (unsigned)gpb_sliced_chunks(g.k);
        full = units / clusters * clusters;
        const unsigned rest = units - full;
        parts = gpb_sliced_tail_parts(rest, clusters, chunks, slices);
        last = full + rest * parts;
    }

    /* The pair of tiles of that number, of one member. */
    __device__ __forceinline__ gpb_triangle_place pair(const gpb_gemm_args &g, unsigned x) const
    {
        if (g.uplo) return gpb_triangle_tile(g.uplo, x, g.n, 2 * BM / REALS, BN);
        const unsigned first = x / (GPB_UNIT_GROUP * tiles_n) * GPB_UNIT_GROUP,
                       height = min(pairs - first, GPB_UNIT_GROUP), place = x - first * tiles_n;
        return { first + place % height, place / height };
    }

    /* Sets u to unit x (x < last) for block `rank` of the cluster. Returns false if neither block has
       anything to do. */
    __device__ __forceinline__ bool unit(const gpb_gemm_args &g, unsigned x, unsigned rank, gpb_unit &u) const
    {
        u.parts = 1;
        u.part = 0;
        u.slot = 0;
        if (x >= full) {
            const unsigned rest = units - full, late = x - full;
            u.parts = (unsigned short)parts;
            u.part = (unsigned short)(late / rest);
            u.slot = late % rest * GPB_SLICED_CLUSTER + rank;
            x = full + late % rest;
        }
        u.from = (unsigned)((uint64_t)chunks * u.part / u.parts);
        u.to = (unsigned)((uint64_t)chunks * (u.part + 1) / u.parts);
        u.l = x / each;
        const gpb_triangle_place place = pair(g, x % each);
        const unsigned upper = place.tile_m * 2, tile_m = upper + rank;
        const uint64_t *rows = g.guard_a + u.l * g.stride_guard_a, *cols = g.guard_b + u.l * g.stride_guard_b;
        u.j0 = place.tile_n * BN;
        const uint64_t across = cols[u.j0 / GPB_GUARD];
        uint64_t down = 0;
        auto wanted = [&](unsigned tile) {
            if (tile >= tiles_m) return false;
            down = rows[tile * BM / GPB_GUARD];
            return max(gpb_guard_level(across, g.epoch_b), gpb_guard_level(down, g.epoch_a)) == g.level;
        };
        /* In this order, because `down` must be the tile's own. */
        const bool there = wanted(tile_m ^ 1), here = wanted(tile_m);
        u.i0 = (tile_m < tiles_m ? tile_m : upper) * BM;
        u.full = here && gpb_guard_full(across, g.epoch_b) && gpb_guard_full(down, g.epoch_a);
        if (!here) u.parts = 0;
        return here || there;
    }
};

/* Adds up the parts of a tile whose k was cut. The last part to finish returns true, and sum is then the sum
   of all, in order. */
template <int N>
static __device__ __forceinline__ bool gpb_last_part(const gpb_gemm_args &g, const gpb_unit &u,
                                                     float (&sum)[N])
{
    const unsigned group = threadIdx.x / GPB_GROUP - 1, thread = threadIdx.x % GPB_GROUP,
                   tile = u.slot * GPB_CONSUMERS + group;
    float *parts = (float *)g.partials + (int64_t)tile * u.parts * (N * GPB_GROUP) + thread;
#pragma unroll
    for (int x = 0; x < N; x++) __stcg(parts + u.part * (N * GPB_GROUP) + x * GPB_GROUP, sum[x]);
    __shared__ unsigned before[GPB_CONSUMERS];
    __threadfence();
    gpb_named_barrier(1 + group, GPB_GROUP);
    if (thread == 0) before[group] = atomicAdd(g.counters + tile, 1);
    gpb_named_barrier(1 + group, GPB_GROUP);
    if (before[group] != u.parts - 1) return false;
    __threadfence();
    for (unsigned part = 0; part < u.parts; part++, parts += N * GPB_GROUP)
#pragma unroll
        for (int x = 0; x < N; x++) sum[x] = (part ? sum[x] : 0) + __ldcg(parts + x * GPB_GROUP);
    return true;
}

#endif
