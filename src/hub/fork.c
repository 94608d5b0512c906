/* SPDX-License-Identifier: MIT */
/* What a fork of the program means to each room, in one place and one order. The handlers are registered when
   the library is loaded, because a fork already in progress does not run handlers that are registered
   meanwhile. If a first call registered them, the child of a fork beside it would find the dynamic linker
   locked by that call (one process in 130, with eight threads forking). */
#include <pthread.h>

#include "src/copy/crew.h"
#include "src/gpu/gpu.h"
#include "src/learn/history.h"
#include "src/service/cores.h"
#include "src/service/linker.h"
#include "src/service/option.h"

static void in_child(void)
{
    gpb_linker_in_child();
    gpb_option_in_child();
    gpb_cores_in_child();
    gpb_crew_in_child();
    gpb_gpu_in_child();
    gpb_history_keep_nothing();
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(gpb_linker_before_fork, gpb_linker_in_parent, in_child);
}
