/* SPDX-License-Identifier: MIT */
/* The devices' primary contexts: whether each is the one that our streams, functions and memory are of. */
#ifndef GPB_CONTEXT_H
#define GPB_CONTEXT_H

#include "src/gpu/device.h"

bool gpb_context_same(const gpb_device *device);
/* Makes the context current, until gpb_context_exit; after a reset another one, in which all is made anew as it is needed. */
CUresult gpb_context_enter(gpb_device *device);
void gpb_context_exit(void);
/* Notes by what a context that was just made is to be known. */
void gpb_context_identify(gpb_device *device);
/* Given up: what is held of the machine is given back as soon as nobody is at work in it; never in a child or at the program's end. */
void gpb_context_let_go(void);
/* The context that an address on a GPU belongs to; NULL: none, or unknown. A context is current. */
CUcontext gpb_place_context(const void *pointer);
/* The program records a graph from a blocking stream, in whatever thread: the legacy stream, which waits for such streams, is not to be used.
   Nobody's work need then be followed there. A context is current. */
bool gpb_context_records_graph(void);

#endif
