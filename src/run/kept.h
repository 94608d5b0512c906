/* SPDX-License-Identifier: MIT */
/* Factors that a factorisation has left on the device, for the solves, inverses and estimates that follow it
   with the same matrix. They are used at once, and nothing of what comes of them goes to the program before
   the host's copy has proved to be the same, by a digest (kernels/digest.h) that the crew takes meanwhile. So
   the factors need not be sent again: 2.7 ms of 134 MB, as long as reading them takes the host's cores, but
   beside the GPU's work and not before it. */
#ifndef GPB_KEPT_H
#define GPB_KEPT_H

#include "dispatch/factor.h"
#include "src/copy/crew.h"
#include "src/gpu/lanes.h"

/* What a lane would have kept of these factors; of the device's side nothing. */
gpb_kept gpb_kept_of(const gpb_factor *factors);
/* The factors stay at that address of the lane's arena until a call needs the room. */
void gpb_kept_keep(gpb_lane *lane, const gpb_factor *factors, CUdeviceptr at, int64_t ld);
/* The lane's call has changed them, or has found that somebody has. */
void gpb_kept_drop(gpb_lane *lane);
static inline CUdeviceptr gpb_kept_at(const gpb_lane *lane)
{
    return lane->arena.at + (CUdeviceptr)lane->arena.kept;
}

/* All zero: there is nothing to be compared. */
typedef struct gpb_kept_check {
    gpb_digest host, device;
    gpb_crew_queue *queue;                   /* NULL: nobody reads the host's copy */
} gpb_kept_check;

/* The crew begins to read the host's copy. False: it cannot be told whether the copies are the same. */
bool gpb_kept_begin(gpb_kept_check *check, const gpb_factor *factors);
/* Takes the digest of the lane's copy, with memory of the device at `work`, and waits for it. */
CUresult gpb_kept_look(gpb_kept_check *check, gpb_lane *lane, CUdeviceptr work);
/* The crew has read the host's copy. Does not wait. */
bool gpb_kept_is_read(gpb_kept_check *check);
/* True: the copies are the same. Waits for the crew, or does its work. */
bool gpb_kept_same(gpb_kept_check *check);
/* The crew reads no more. */
void gpb_kept_end(gpb_kept_check *check);

#endif
