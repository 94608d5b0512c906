/* SPDX-License-Identifier: MIT */
/* The devices' primary contexts, and whether each is still the one that our streams, functions and memory
   belong to. */
#ifndef GPB_CONTEXT_H
#define GPB_CONTEXT_H

#include "src/gpu/device.h"

bool gpb_context_same(const gpb_device *device);
/* Makes the context current until gpb_context_exit. After a reset it is a new one, in which everything is
   made again as it is needed. */
CUresult gpb_context_enter(gpb_device *device);
void gpb_context_exit(void);
/* Stores the identity of a context that was just made. */
void gpb_context_identify(gpb_device *device);
/* Once the GPU is given up, frees what is held of the machine as soon as no thread is at work in it. Does
   nothing in a forked child or at the program's end. */
void gpb_context_let_go(void);
/* The context that an address on a GPU belongs to; NULL if there is none or it is unknown. Needs a current
   context. */
CUcontext gpb_place_context(const void *pointer);
/* True if any thread of the program is recording a graph from a blocking stream. The legacy stream waits for
   such streams, so it must not be used then, and no work there needs to be waited for. Needs a current
   context. */
bool gpb_context_records_graph(void);

#endif
