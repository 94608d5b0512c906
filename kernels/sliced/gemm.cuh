/* SPDX-License-Identifier: MIT */
/* The SLICED kernels for Hopper. From two FP16 slices an operand they get FP32's accuracy, from one slice
   TF32's accuracy at twice TF32's rate, and from three BF16 slices FP32's accuracy for data that reach over
   many powers of two, at half the speed.

   A block has a producer and two consumers. One thread of the producer keeps the copy engine busy. A consumer
   is a warpgroup with 64 rows of the tile. Blocks are persistent, so copies for the next tile go on while
   this one's results are written. Blocks come in clusters of two, one above the other, and each fetches half
   of their common part of op(B) for both.

   With two slices, x y = xh yh + (xl yh + xh yl) / 2^11 + xl yl / 2^22. There are three sums, all in
   registers (ACCURACY.md says how accurate they are):
   part  xh yh of one chunk of 32 k, or of two or four if k is long (gpb_sliced_promotion_chunks), because
         tensor cores truncate their sums
   sum   of all parts, by FADD, which rounds to nearest
   low   xl yh + xh yl, which stays in the tensor cores; and xl yl, only in blocks that are FULL (README.md)

   While the tensor cores compute `low` of a chunk, its `part` is added to `sum`.

   With three slices, x = x0 + x1 + x2 exactly, and x y is taken as x0 y2 + x2 y0 + x1 y1 + x1 y0 + x0 y1 + x0
   y0, small products first, all in `part`. */
#ifndef GPB_SLICED_GEMM_CUH
#define GPB_SLICED_GEMM_CUH

#include "kernels/ring.cuh"
#include "kernels/sliced/store.cuh"
#include "kernels/sliced/work.cuh"

/* A stage has a chunk of both operands, the slices of A and then those of B, and the unit that begins with
   it. */
template <int BM, int BN, int STAGES, int SLICES>
struct gpb_stages : gpb_ring<STAGES, SLICES * (BM + BN) * 64> {
    static constexpr unsigned A = BM * 64, B = BN * 64;
    gpb_unit *units;

    /* Two lanes of each warp tell both blocks of the cluster that the warp has read `stage`. */
    __device__ __forceinline__ void release(unsigned stage) const
    {
        if (threadIdx.x % 32 < GPB_SLICED_CLUSTER)
            gpb_mbarrier_arrive(this->empty + stage * 8, threadIdx.x % 32);
    }
};

template <int REALS, int BM, int BN, int STAGES, int SLICES>
static __device__ __forceinline__ void gpb_produce(const gpb_gemm_args &g,
                                                   gpb_stages<BM, BN, STAGES, SLICES> ring)
{
    using ring_t = gpb_stages<BM, BN, STAGES, SLICES>;
    constexpr unsigned A = ring_t::A, HALF_B = ring_t::B / 2;
    const gpb_schedule<BM, BN, REALS> schedule(g, SLICES);
    const unsigned rank = gpb_cluster_rank();
    /* Bytes of a chunk's slice. They are computed each time, because the producer has few registers. */
    auto rows_a = [&] { return gpb_sliced_rows(gpb_fresh(g.m)) * 64; };
    auto rows_b = [&] { return gpb_sliced_rows(gpb_fresh(g.n)) * 64; };
    __shared__ gpb_unit u;                                                 /* one thread's own */
    for (unsigned x = blockIdx.x / GPB_SLICED_CLUSTER; x < schedule.last; x += schedule.clusters) {
        if (!schedule.unit(g, x, rank, u)) continue;
        const char *a = (const char *)g.a + 4 * (int64_t)u.l * g.stride_a
                        + (int64_t)u.from * SLICES * rows_a() + (int64_t)u.i0 * 64;
        const char *b = (const char *)g.b + 4 * (int64_t)u.l * g.stride_b
                        + (int64_t)u.from * SLICES * rows_b() + (int64_t)u.j0 * 64;
        b += rank * HALF_B;                                                /* this block's half of B's rows */
        ring.wait_empty();
        ring.units[ring.stage] = u;
        for (unsigned left = u.to - u.from; left; left--, ring.next()) {
            const unsigned barrier = ring.full + ring.stage * 8, to = ring.at();
            ring.wait_empty();
            gpb_mbarrier_expect(barrier, ring_t::BYTES);
#pragma unroll
            for (int s = 0; s < SLICES; s++, a += rows_a(), b += rows_b()) {
                gpb_bulk_copy(to + s * A, a, A, barrier);
                gpb_bulk_multicast(to + SLICES * A + s * ring_t::B + rank * HALF_B, b, HALF_B, barrier, 3);
            }
        }
    }
    ring.wait_empty();
    ring.units[ring.stage].to = ring.units[ring.stage].from = 0;
    gpb_mbarrier_expect(ring.full + ring.stage * 8, 0);
}

/* Issues the products of a chunk, and does not wait for `low` of two slices. inside: chunks that `part` holds
   already. more: `low` holds something. FULL: low times low as well, by way of `part`, which is empty then.
   Nothing else is computed meanwhile. */
template <int BM, int BN, int SLICES, bool FULL>
static __device__ __forceinline__ void gpb_multiply(float (&part)[BN / 2], float (&low)[BN / 2], unsigned a,
                                                    unsigned b, int inside, int more)
{
    using mma = gpb_wgmma<BN>;
    /* Steps of the descriptors. They never carry. */
    constexpr unsigned K16 = 32 >> 4, A = BM * 64 >> 4, B = BN * 64 >> 4;
    if (SLICES == 1) {
        gpb_pin(low);
        gpb_wgmma_fence();
        mma::fp16(low, a, b, more);
        mma::fp16(low, a + K16, b + K16, 1);
        gpb_wgmma_commit();
    } else if (SLICES == 2) {
        if (FULL) {
            gpb_pin(part);
            gpb_wgmma_fence();
            mma::fp16(part, a + A, b + B, 0);
            mma::fp16(part, a + (A + K16), b + (B + K16), 1);
            gpb_wgmma_commit();
            gpb_wgmma_wait<0>();
            gpb_pin(part);
            gpb_pin(low);
#pragma unroll
            for (int y = 0; y < BN / 2; y++) low[y] = fmaf(part[y], 0x1p-11f, low[y]);
        }
        gpb_pin(part);
        gpb_wgmma_fence();
        mma::fp16(part, a, b, inside);
        mma::fp16(part, a + K16, b + K16, 1);
        gpb_wgmma_commit();
        gpb_pin(low);
        mma::fp16(low, a + A, b, FULL ? 1 : more);
        mma::fp16(low, a, b + B, 1);
        mma::fp16(low, a + (A + K16), b + K16, 1);
        mma::fp16(low, a + K16, b + (B + K16), 1);
        gpb_wgmma_commit();
    } else {
        gpb_pin(part);
        gpb_wgmma_fence();
#pragma unroll
        for (int z = 0; z < 12; z++) {
            constexpr int of_a[6] = { 0, 2, 1, 1, 0, 0 }, of_b[6] = { 2, 0, 1, 0, 1, 0 };
            mma::bf16(part, a + (of_a[z / 2] * A + z % 2 * K16), b + (of_b[z / 2] * B + z % 2 * K16), z > 0);
        }
        gpb_wgmma_commit();
    }
}

/* Adds up all chunks of a unit, `most` of them in a part. Afterwards `low` is still being computed, and the
   last stage, `held`, is not released. */
template <int BM, int BN, int STAGES, int SLICES, bool FULL>
static __device__ __forceinline__ void
gpb_sum_chunks(gpb_stages<BM, BN, STAGES, SLICES> &ring, unsigned chunks, unsigned most, unsigned &held,
               float (&sum)[BN / 2], float (&part)[BN / 2], float (&low)[BN / 2])
{
    using ring_t = gpb_stages<BM, BN, STAGES, SLICES>;
    /* The same value in all lanes, and the compiler knows it, because wgmma reads uniform registers. */
    auto same = [](unsigned x) { return __shfl_sync(~0u, x, 0); };
    /* This warpgroup's 64 rows, in bytes from a slice's start. */
    const unsigned rows = same((threadIdx.x / GPB_GROUP - 1) * 64 * 64);
    unsigned inside = 0;                                                   /* chunks that `part` holds */
    held = ring.stage;
    for (unsigned left = chunks; left; left--) {
        const unsigned at = ring.data + same(ring.stage) * ring_t::BYTES, a = gpb_wgmma_operand(at + rows),
                       b = gpb_wgmma_operand(at + SLICES * ring_t::A);
        const int more = left < chunks;
        ring.wait_full();
        gpb_multiply<BM, BN, SLICES, FULL>(part, low, a, b, FULL ? 0 : inside, more);
        if (SLICES < 3) gpb_wgmma_wait<1>();
        else gpb_wgmma_wait<0>();
        if (more) ring.release(held);  /* the previous chunk's products are done */
        if (SLICES == 3 || FULL || (SLICES == 2 && (++inside == most || left == 1))) {
            inside = 0;
            gpb_pin(part);
#pragma unroll
            for (int y = 0; y < BN / 2; y++) sum[y] += part[y];
        }
        held = ring.stage;
        ring.next();
    }
}

template <class T, int BM, int BN, int STAGES, int SLICES>
static __device__ __forceinline__ void gpb_consume(const gpb_gemm_args &g,
                                                   gpb_stages<BM, BN, STAGES, SLICES> ring)
{
    constexpr int N = BN / 2;
    /* Kept in a register, not computed again for each chunk. */
    const unsigned most = (unsigned)gpb_fresh((int64_t)gpb_sliced_promotion_chunks(g.m, g.n, g.k));
    /* Each warp has its own copy in shared memory, because registers are scarce. */
    __shared__ gpb_unit kept[GPB_CONSUMERS * 4];
    gpb_unit &u = kept[threadIdx.x / 32 - GPB_GROUP / 32];
    /* This warp's first row of the tile. */
    auto row = [&] { return (threadIdx.x / 32 - GPB_GROUP / 32) * 16; };
    for (;;) {
        ring.wait_full();
        __syncwarp();
        u = ring.units[ring.stage];
        __syncwarp();
        const unsigned chunks = u.to - u.from;
        if (chunks == 0) return;
        float sum[N], part[N], low[N];
#pragma unroll
        /* All of them, because otherwise they would occupy registers while C is written. */
        for (int y = 0; y < N; y++) sum[y] = part[y] = low[y] = 0;
        unsigned held;
        if (SLICES == 2 && __any_sync(~0u, u.full))
            gpb_sum_chunks<BM, BN, STAGES, SLICES, SLICES == 2>(ring, chunks, most, held, sum, part, low);
        else gpb_sum_chunks<BM, BN, STAGES, SLICES, false>(ring, chunks, most, held, sum, part, low);
        gpb_wgmma_wait<0>();
        ring.release(held);
        if (SLICES < 3) {
            gpb_pin(low);
#pragma unroll
            for (int y = 0; y < N; y++) sum[y] = SLICES == 1 ? low[y] : fmaf(low[y], 0x1p-11f, sum[y]);
        } else {
            gpb_pin(sum);
        }
        if (u.parts == 1 || (u.parts && gpb_last_part(g, u, sum)))
            gpb_store_strip<T, BM, BN, SLICES>(g, u.l, u.i0, row(), u.j0, sum);
    }
}

/* ROW_BM, BN, ROW_BK: as in gemm.def, in elements of T. Everything but the stores is of the real product
   (sliced.h), whose tiles are twice as tall and as deep if T is complex. */
template <class T, int ROW_BM, int BN, int ROW_BK, int STAGES, int THREADS, int SMEM, int SLICES>
static __device__ __forceinline__ void gpb_sliced_gemm(const gpb_gemm_args &g)
{
    constexpr int BM = GPB_REALS<T> * ROW_BM, BK = GPB_REALS<T> * ROW_BK;
    using ring_t = gpb_stages<BM, BN, STAGES, SLICES>;
    static_assert(BM == 64 * GPB_CONSUMERS && BK == GPB_SLICE_CHUNK
                      && THREADS == GPB_GROUP * (1 + GPB_CONSUMERS),
                  "one producer, two consumers");
    static_assert(BM <= GPB_GUARD && GPB_GUARD % BN == 0 && SMEM == STAGES * ring_t::BYTES + 1024,
                  "see gemm.def");
    extern __shared__ char memory[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    __shared__ gpb_unit units[STAGES];
    ring_t ring;
    ring.data = (gpb_shared_address(memory) + 1023) / 1024 * 1024;
    ring.full = gpb_shared_address(full);
    ring.empty = gpb_shared_address(empty);
    ring.units = units;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            gpb_mbarrier_init(ring.full + s * 8, 1);
            /* Every consumer warp of both blocks arrives. */
            gpb_mbarrier_init(ring.empty + s * 8, GPB_CONSUMERS * 4 * GPB_SLICED_CLUSTER);
        }
        gpb_mbarrier_publish();
    }
    gpb_cluster_sync();
    gpb_grid_wait();
    if (threadIdx.x < GPB_GROUP) {
        gpb_registers_fewer<56>();
        if (threadIdx.x == 0) gpb_produce<GPB_REALS<T>>(g, ring);
    } else {
        gpb_registers_more<224>();
        gpb_consume<T>(g, ring);
    }
    __syncwarp();
    gpb_cluster_sync();  /* the other block may still arrive at our barriers */
}

#endif
