/* SPDX-License-Identifier: MIT */
/* Image: steps 20 to 24, the FP32 kernels of every day. */
#define GPB_MINE_sgemm_ffma ~, KEEP
#include "kernels/ffma/ffma.cuh"
/* Here 128 or 64 results a thread take what registers there are (without that, sums move about and the operand banks collide); of fewer
   results, three blocks of 128 threads are 5 to 8 % faster at 1024 than two, and eight groups need more than the usual 128 registers. */
#pragma push_macro("GPB_BLOCKS")
#undef GPB_BLOCKS
#define GPB_BLOCKS(bm, bn, threads) (65536 / ((bm) * (bn) / (threads) < 64 ? 168 : 256) / (threads))
#include "kernels/instance.cuh"
#pragma pop_macro("GPB_BLOCKS")
#undef GPB_MINE_sgemm_ffma
