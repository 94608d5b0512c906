/* SPDX-License-Identifier: MIT */
/* What the blocks of a RESIDUES kernel compute, in which order, and where they leave it. */
#ifndef GPB_RESIDUES_WORK_CUH
#define GPB_RESIDUES_WORK_CUH

#include "kernels/residues.h"
#include "kernels/tile.cuh"

constexpr int GPB_RESIDUE_GROUP = 128;     /* threads of a warpgroup, which has 64 rows of a tile */
constexpr int GPB_RESIDUE_CONSUMERS = 2;
/* Words of four results that a thread has of a tile. Word y: columns 8 y + lane % 4 * 2 and the next, of row
   lane / 4 of the warp's 16 and then of the row 8 below. */
constexpr int GPB_RESIDUE_WORDS = GPB_RESIDUE_BN / 8;
/* Rows of tiles that are walked together. The blocks of an H200 then read about as much of A as of B. */
constexpr unsigned GPB_RESIDUE_WALK = 16;

/* A tile of one plane of one member. */
struct gpb_residue_unit {
    unsigned l, plane, tile_m, tile_n;
};

template <class T> struct gpb_residue_work {
    static constexpr unsigned PLANES = (GPB_REALS<T> == 1 ? 1 : 3) * GPB_RESIDUE_MODULI;
    unsigned tiles_m, tiles_n, tiles, chunks;              /* tiles: those that are computed */
    uint64_t units;
    const gpb_gemm_args &args;

    __device__ __forceinline__ explicit gpb_residue_work(const gpb_gemm_args &g) : args(g)
    {
        tiles_m = (unsigned)(gpb_residue_rows(1, g.m) / GPB_RESIDUE_BM);
        tiles_n = (unsigned)(gpb_residue_rows(0, g.n) / GPB_RESIDUE_BN);
        chunks = (unsigned)gpb_residue_chunks(g.k);
        tiles = (unsigned)GPB_TILES_OF(g.uplo, g.m, g.n, GPB_RESIDUE_BM, GPB_RESIDUE_BN);
        units = (uint64_t)tiles * PLANES * (uint64_t)g.batch;
    }
    __device__ __forceinline__ gpb_residue_unit unit(uint64_t x) const
    {
        const uint64_t plane = x / tiles;
        const gpb_residue_unit u = tile((unsigned)(x % tiles));
        return { (unsigned)(plane / PLANES), (unsigned)(plane % PLANES), u.tile_m, u.tile_n };
    }
    /* The tile of that number in the order of the walk. */
    __device__ __forceinline__ gpb_residue_unit tile(unsigned number) const
    {
        if (args.uplo) {
            const gpb_triangle_place at = gpb_triangle_tile(args.uplo, number, args.n, GPB_RESIDUE_BM,
                                                            GPB_RESIDUE_BN);
            return { 0, 0, at.tile_m, at.tile_n };
        }
        const unsigned first = number / (GPB_RESIDUE_WALK * tiles_n) * GPB_RESIDUE_WALK,
                       height = min(tiles_m - first, GPB_RESIDUE_WALK), place = number - first * tiles_n;
        return { 0, 0, first + place % height, place / height };
    }
    /* True if a part of the tile is not marked. */
    __device__ __forceinline__ bool wanted(const gpb_gemm_args &g, const gpb_residue_unit &u) const
    {
        bool down = false, across = false;
#pragma unroll
        for (int64_t i = 0; i < GPB_RESIDUE_BM; i += GPB_GUARD_ROWS(GPB_IS_COMPLEX<T>))
            down |= row_is_plain(g, u.l, u.tile_m * GPB_RESIDUE_BM + i);
#pragma unroll
        for (int64_t j = 0; j < GPB_RESIDUE_BN; j += GPB_GUARD)
            across |= column_is_plain(g, u.l, u.tile_n * GPB_RESIDUE_BN + j);
        return down && across;
    }
    __device__ __forceinline__ bool row_is_plain(const gpb_gemm_args &g, unsigned l, int64_t i) const
    {
        const uint64_t *word = g.guard_a + l * g.stride_guard_a + i / GPB_GUARD_ROWS(GPB_IS_COMPLEX<T>);
        return i < g.m && gpb_guard_level(*word, g.epoch_a) == 0;
    }
    __device__ __forceinline__ bool column_is_plain(const gpb_gemm_args &g, unsigned l, int64_t j) const
    {
        return j < g.n
               && gpb_guard_level(g.guard_b[l * g.stride_guard_b + j / GPB_GUARD], g.epoch_b) == 0;
    }
    /* Of unit x, word 0 of that thread of the group's 64 rows. The next is GPB_RESIDUE_GROUP words further,
       the same of the next plane plane_words(). */
    static __device__ __forceinline__ int64_t word(uint64_t x, unsigned group, unsigned thread)
    {
        return ((int64_t)x * GPB_RESIDUE_CONSUMERS + group) * (GPB_RESIDUE_WORDS * GPB_RESIDUE_GROUP)
               + thread;
    }
    __device__ __forceinline__ int64_t plane_words() const
    {
        return (int64_t)tiles * (GPB_RESIDUE_BM * GPB_RESIDUE_BN / 4);
    }
};

#endif
