/* SPDX-License-Identifier: MIT */
/* The GPUs of this process: started lazily, off for good after a fork or a sticky error. Free of CUDA's types, because a build without CUDA
   has hub/no_gpu.c behind this face. */
#ifndef GPB_GPU_H
#define GPB_GPU_H

#include <stdbool.h>

/* Starts the GPUs if that has not been tried yet, or waits for who is at it. False: there is none to be had, gpb_gpu_why() says why. */
bool gpb_gpu_start(void);
bool gpb_gpu_started(void);
/* Nobody has tried yet. */
bool gpb_gpu_untried(void);
/* A start is about to begin, perhaps in another thread: from here on a forked child has no GPU. */
void gpb_gpu_touch(void);
/* Seconds that a start is expected to take, with the devices that are known of by now. */
double gpb_gpu_start_s(void);
/* False once it is certain that no call will run on a GPU in this process. */
bool gpb_gpu_possible(void);
const char *gpb_gpu_why(void);
/* There are GPUs that could not be started, or are given up, or this is a forked child: what is in their memory is out of reach. */
bool gpb_gpu_lost(void);
/* The last of these: then the driver cannot be asked either. */
bool gpb_gpu_forked(void);
/* Gives the GPU up for the rest of the process: after a sticky error. */
void gpb_gpu_give_up(const char *why);
/* Before the GPU is started: this thread's context, if it has one, says which one the program uses. */
void gpb_gpu_note_device(void);
/* In a forked child: the GPU is off if it was started, or was about to be. */
void gpb_gpu_in_child(void);
/* The program is ending: nothing new is begun. */
bool gpb_gpu_leaving(void);
/* Then: a call that the host is to compute, or to finish, waits a moment for the end to come. */
void gpb_gpu_await_end(void);
/* This thread uses the driver without a lane; the end of the program waits for it as it waits for lanes. */
void gpb_gpu_occupy(bool now);

/* For the doctor: starts the GPUs. How many there are, the name of the first, and its architecture if no kernel of this build runs there (else 0). */
int gpb_gpu_count(const char **name, int *unserved_arch);
/* The same as text, a line each; `all`: also why each kernel that cannot run there cannot. */
void gpb_gpu_report(int fd, bool all);

#endif
