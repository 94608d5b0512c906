/* SPDX-License-Identifier: MIT */
/* RESIDUES kernels: a product of bytes for each plane, modulo that plane's modulus. Planes of the same
   modulus come one after another, so that what they read stays in the level-2 cache as long as it can.

   A block has a producer and two consumers, like the SLICED kernels (sliced/gemm.cuh). Blocks are persistent.
   While one consumer reduces its sums, the tensor cores compute for the other. */
#ifndef GPB_RESIDUES_MULTIPLY_CUH
#define GPB_RESIDUES_MULTIPLY_CUH

#include "kernels/residues/moduli.cuh"
#include "kernels/residues/work.cuh"
#include "kernels/ring.cuh"

/* A stage has a chunk of the rows of both operands. */
template <int STAGES>
struct gpb_residue_ring : gpb_ring<STAGES, (GPB_RESIDUE_BM + GPB_RESIDUE_BN) * 128> {
    static constexpr unsigned A = GPB_RESIDUE_BM * 128, B = GPB_RESIDUE_BN * 128;

    /* One lane of each consumer's warps. */
    __device__ __forceinline__ void release(unsigned stage) const
    {
        if (threadIdx.x % 32 == 0) gpb_mbarrier_arrive(this->empty + stage * 8, 0);
    }
};

template <class T, int STAGES>
static __device__ __forceinline__ void gpb_residues_produce(const gpb_gemm_args &g,
                                                            gpb_residue_ring<STAGES> ring)
{
    using ring_t = gpb_residue_ring<STAGES>;
    const gpb_residue_work<T> work(g);
    const unsigned rows_a = work.tiles_m * GPB_RESIDUE_BM, rows_b = work.tiles_n * GPB_RESIDUE_BN;
    for (uint64_t x = blockIdx.x; x < work.units; x += gridDim.x) {
        const gpb_residue_unit u = work.unit(x);
        if (!work.wanted(g, u)) continue;
        const int64_t first = (int64_t)u.plane * work.chunks;
        const char *a = (const char *)g.a + 4 * (int64_t)u.l * g.stride_a
                        + (first * rows_a + u.tile_m * GPB_RESIDUE_BM) * 128;
        const char *b = (const char *)g.b + 4 * (int64_t)u.l * g.stride_b
                        + (first * rows_b + u.tile_n * GPB_RESIDUE_BN) * 128;
        for (unsigned left = work.chunks; left; left--, ring.next()) {
            const unsigned barrier = ring.full + ring.stage * 8, to = ring.at();
            ring.wait_empty();
            gpb_mbarrier_expect(barrier, ring_t::BYTES);
            gpb_bulk_copy(to, a, ring_t::A, barrier);
            gpb_bulk_copy(to + ring_t::A, b, ring_t::B, barrier);
            a += (int64_t)rows_a * 128;
            b += (int64_t)rows_b * 128;
        }
    }
}

template <class T, int STAGES>
static __device__ __forceinline__ void gpb_residues_consume(const gpb_gemm_args &g,
                                                            gpb_residue_ring<STAGES> ring)
{
    using ring_t = gpb_residue_ring<STAGES>;
    constexpr int N = GPB_RESIDUE_BN / 2;
    /* The same value in all lanes, and the compiler knows it, because wgmma reads uniform registers. */
    auto same = [](unsigned x) { return __shfl_sync(~0u, x, 0); };
    const gpb_residue_work<T> work(g);
    const unsigned group = same(threadIdx.x / GPB_RESIDUE_GROUP - 1);
    for (uint64_t x = blockIdx.x; x < work.units; x += gridDim.x) {
        const gpb_residue_unit u = work.unit(x);
        if (!work.wanted(g, u)) continue;
        int sum[N];
        unsigned held = ring.stage;
#pragma unroll
        for (int y = 0; y < N; y++) sum[y] = 0;
        for (unsigned left = work.chunks; left; left--) {
            const unsigned at = ring.data + same(ring.stage) * ring_t::BYTES,
                           a = gpb_wgmma_operand(at + group * 64 * 128),
                           b = gpb_wgmma_operand(at + ring_t::A);
            ring.wait_full();
            gpb_pin(sum);
            gpb_wgmma_fence();
#pragma unroll
            for (int q = 0; q < 4; q++) gpb_wgmma_s8(sum, a + 2 * q, b + 2 * q);
            gpb_wgmma_commit();
            gpb_wgmma_wait<1>();
            if (left < work.chunks) ring.release(held);    /* the previous chunk's products are done */
            held = ring.stage;
            ring.next();
        }
        gpb_wgmma_wait<0>();
        ring.release(held);
        gpb_pin(sum);
        const gpb_modulus &by = gpb_residue_table.of[u.plane / (GPB_REALS<T> == 1 ? 1 : 3)];
        unsigned *to = (unsigned *)g.partials + work.word(x, group, threadIdx.x % GPB_RESIDUE_GROUP);
#pragma unroll
        for (int y = 0; y < N / 4; y++) to[y * GPB_RESIDUE_GROUP] = gpb_reduce_sums(sum + 4 * y, by);
    }
}

template <class T, int STAGES, int SMEM>
static __device__ __forceinline__ void gpb_residues_multiply(const gpb_gemm_args &g)
{
    using ring_t = gpb_residue_ring<STAGES>;
    static_assert(SMEM == STAGES * ring_t::BYTES + 1024, "see gemm.def");
    extern __shared__ char memory[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    ring_t ring;
    ring.data = (gpb_shared_address(memory) + 1023) / 1024 * 1024;
    ring.full = gpb_shared_address(full);
    ring.empty = gpb_shared_address(empty);
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            gpb_mbarrier_init(ring.full + s * 8, 1);
            gpb_mbarrier_init(ring.empty + s * 8, GPB_RESIDUE_CONSUMERS * 4);
        }
        gpb_mbarrier_publish();
    }
    __syncthreads();
    gpb_grid_wait();
    if (threadIdx.x < GPB_RESIDUE_GROUP) {
        gpb_registers_fewer<56>();
        if (threadIdx.x == 0) gpb_residues_produce<T>(g, ring);
    } else {
        gpb_registers_more<224>();
        gpb_residues_consume<T>(g, ring);
    }
}

#endif
