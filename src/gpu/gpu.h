/* SPDX-License-Identifier: MIT */
/* The GPUs of this process: started when first needed, off for good after a fork or a sticky error. No CUDA
   types appear here, because in a build without CUDA hub/no_gpu.c implements these functions. */
#ifndef GPB_GPU_H
#define GPB_GPU_H

#include <stdbool.h>

/* Starts the GPUs if no thread has tried that yet, or waits for the thread that is doing it. False: no GPU
   can be had, and gpb_gpu_why() says why. */
bool gpb_gpu_start(void);
bool gpb_gpu_started(void);
/* No start has been tried yet. */
bool gpb_gpu_untried(void);
/* A start is about to begin, perhaps in another thread. A child forked from here on has no GPU. */
void gpb_gpu_touch(void);
/* Seconds that a start is expected to take, with the devices known so far. */
double gpb_gpu_start_s(void);
/* Seconds that starting the GPUs took in this process; 0: they were not started. */
double gpb_gpu_took_s(void);
/* The program has a context on one of the GPUs. Asks libcuda, and opens it if the process has not. */
bool gpb_gpu_in_use(void);
/* False once it is certain that no call will run on a GPU in this process. */
bool gpb_gpu_possible(void);
const char *gpb_gpu_why(void);
/* GPUs exist but could not be started or were given up, or this is a forked child: their memory is out of
   reach. */
bool gpb_gpu_lost(void);
/* This is a forked child, so the driver cannot be asked either. */
bool gpb_gpu_forked(void);
/* Gives the GPU up for the rest of the process, after a sticky error. */
void gpb_gpu_give_up(const char *why);
/* Called before the GPU is started: this thread's context, if it has one, tells which GPU the program
   uses. */
void gpb_gpu_note_device(void);
/* Called in a forked child: turns the GPU off if it was started or about to be. */
void gpb_gpu_in_child(void);
/* The program is ending, so nothing new begins. */
bool gpb_gpu_leaving(void);
/* At the program's end: a call that the host is to compute or finish waits a moment for the end to come. */
void gpb_gpu_await_end(void);
/* This thread uses the driver without a lane. The end of the program waits for it as it waits for lanes. */
void gpb_gpu_occupy(bool now);

/* For the doctor: starts the GPUs and returns how many there are. *name: of the first. *unserved_arch: its
   architecture if no kernel of this build runs there, else 0. */
int gpb_gpu_count(const char **name, int *unserved_arch);
/* Prints the same as text, one line each. all: also why kernels cannot run there, one line a kernel. */
void gpb_gpu_report(int fd, bool all);
/* Writes members of a JSON object: "driver", "why_none", "devices". */
void gpb_gpu_print_json(int fd);

#endif
