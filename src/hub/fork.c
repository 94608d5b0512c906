/* SPDX-License-Identifier: MIT */
/* What a fork of the program means to each room, in one place and one order. The handlers are registered when
   the library is loaded, because a fork already in progress does not run handlers that are registered
   meanwhile. If a first call registered them, the child of a fork beside it would find the dynamic linker
   locked by that call (one process in 130, with eight threads forking). */
#include <pthread.h>

#include "src/copy/crew.h"
#include "src/gpu/gpu.h"
#include "src/host/host_threads.h"
#include "src/hub/tally.h"
#include "src/learn/history.h"
#include "src/service/cores.h"
#include "src/service/events.h"
#include "src/service/linker.h"
#include "src/service/log.h"
#include "src/service/option.h"
#include "src/service/thread.h"

static void in_child(void)
{
    gpb_linker_in_child();
    gpb_option_in_child();
    gpb_log_in_child();
    gpb_tally_in_child();
    gpb_events_in_child();
    gpb_cores_in_child();
    gpb_crew_in_child();
    gpb_host_threads_in_child();
    gpb_gpu_in_child();
    gpb_history_keep_nothing();
}

/* libcuda forks while our thread starts it. That is not the program's fork. */
static void in_parent(void)
{
    gpb_linker_in_parent();
    if (!gpb_thread_is_own()) gpb_history_note_loud();
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(gpb_linker_before_fork, in_parent, in_child);
}
