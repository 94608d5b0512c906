/* SPDX-License-Identifier: MIT */
/* Kernels on the CPU. Each CUDA thread of a block is a context of its own and runs until it meets a
   barrier; the next thread is picked at random. Faults are found and counted: barriers that not all
   threads meet at the same place, threads that end before one, asynchronous copies from outside the
   operands, misaligned ones, and those that nobody waits for; waits that do not end. (AddressSanitizer, with
   which this is built, finds the rest.)
   The blocks of a grid run one after the other, or, with GPB_EMULATE_TOGETHER defined, in turns, in random
   order and some ahead of others: each on a thread of the system, of which one runs at a time. So shared
   memory is that of a thread, and blocks can wait for each other, as those of a cluster and of a cooperative
   launch do. It is full of ones (NaN) when a block begins. (AddressSanitizer does not see what is read or
   written beside it.) */
#ifndef GPB_EMULATE_H
#define GPB_EMULATE_H

#include <cstdint>

struct gpb_emulate_dim {
    unsigned x, y, z;
};
/* The thread that runs now. */
struct gpb_emulate_place {
    gpb_emulate_dim thread, block, threads, grid;
};
extern gpb_emulate_place gpb_emulate_at;

/* Bytes that kernels may read. */
struct gpb_emulate_span {
    const char *low, *high;
};

struct gpb_emulate_launch {
    void (*body)();                      /* one thread */
    gpb_emulate_dim grid;
    unsigned threads;
    bool shuffled;                       /* blocks in any order, not in that of their numbers */
    bool early;                          /* copies are made at once, not only when they are waited for */
    gpb_emulate_span a, b;
    bool together = false;               /* blocks take turns; the whole grid is a cluster */
};
/* Runs a grid. Returns the number of faults, of which the first few are printed. */
int gpb_emulate_run(const gpb_emulate_launch &launch);

/* For kernels. place: file and line. */
void gpb_emulate_block_barrier(const char *place);
void gpb_emulate_warp_barrier(const char *place);
/* Of all blocks that run together; else the same as that of a block. */
void gpb_emulate_cluster_barrier(const char *place);
/* Before another look at what others are to change. */
void gpb_emulate_pause();
/* Of this many threads, any of them; numbers are below 16. */
void gpb_emulate_named_barrier(unsigned number, unsigned threads);
/* `whole` of the `bytes` (16 or 4) are copied; the others become 0. */
void gpb_emulate_copy(float *to, const float *from, int bytes, int whole);
void gpb_emulate_commit();
void gpb_emulate_wait(int left);
/* Shared memory has addresses of 32 bits. */
unsigned gpb_emulate_shared_address(const float *at);
float *gpb_emulate_shared(unsigned address);

/* Barriers in shared memory that count arrivals and bytes (mbarriers), by their address. */
void gpb_emulate_mbarrier_init(unsigned barrier, unsigned arrivals);
/* One arrival, which announces so many bytes. */
void gpb_emulate_mbarrier_arrive(unsigned barrier, unsigned bytes);
/* Waits until the phase with that parity has ended. */
void gpb_emulate_mbarrier_wait(unsigned barrier, unsigned parity);
/* A copy to `to` of which `bytes` are counted at the barrier: zeros where `from` is NULL. */
void gpb_emulate_mbarrier_copy(unsigned barrier, char *to, const char *from, unsigned bytes);
/* A store of 16 bytes to the shared memory of that block of the cluster, counted at its barrier. */
void gpb_emulate_mbarrier_store(unsigned barrier, unsigned block, unsigned to, const void *bytes);

/* What a warp does together: each thread shows some bytes, and sees those of all 32 threads in order,
   until it next shows some. */
enum { GPB_EMULATE_SHOWN = 96 };
const char *gpb_emulate_show(const void *what, int bytes, const char *place);
/* True if any thread of the block passes true. */
bool gpb_emulate_any(bool here, const char *place);
/* Products of the tensor cores so far. */
extern long gpb_emulate_products;

#endif
