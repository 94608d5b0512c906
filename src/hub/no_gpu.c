/* SPDX-License-Identifier: MIT */
/* Implements gpu.h, place.h, ready.h, history.h, compute.h, repair.h and verify.h for a build without CUDA
   (-DGPUBLAS_CUDA=OFF), where there never is a GPU. */
#include "src/gpu/gpu.h"
#include "src/gpu/place.h"
#include "src/learn/history.h"
#include "src/learn/ready.h"
#include "src/hub/verify.h"
#include "src/run/repair.h"
#include "src/run/resident.h"

#include <stdio.h>

static const char why[] = "this build of libgpublas has no CUDA";

bool gpb_gpu_start(void) { return false; }
void gpb_ready_begin(void) { }
bool gpb_ready_await(bool measured, double most_s)
{
    (void)measured;
    (void)most_s;
    return false;
}
bool gpb_ready_is_near(void) { return false; }
double gpb_ready_left_s(bool active)
{
    (void)active;
    return 0;
}
double gpb_ready_cost_s(bool active)
{
    (void)active;
    return 0;
}
void gpb_history_load(bool eager) { (void)eager; }
void gpb_history_begin(void) { }
void gpb_history_keep_nothing(void) { }
void gpb_history_lose(double more_s) { (void)more_s; }
void gpb_history_note(double saved_s, bool on_gpu)
{
    (void)saved_s;
    (void)on_gpu;
}
void gpb_history_note_loud(void) { }
gpb_history gpb_history_known(void) { return (gpb_history){ 0 }; }
bool gpb_gpu_started(void) { return false; }
double gpb_gpu_took_s(void) { return 0; }
bool gpb_gpu_in_use(void) { return false; }
void gpb_ready_save(void) { }
bool gpb_ready_save_now(void) { return false; }
bool gpb_gpu_possible(void) { return false; }
bool gpb_gpu_lost(void) { return false; }
void gpb_gpu_in_child(void) { }
const char *gpb_gpu_why(void) { return why; }

bool gpb_place_surely_host(const gpb_call *call, bool libcuda)
{
    (void)call, (void)libcuda;
    return true;
}

bool gpb_place_probed_host(const gpb_call *call, uint64_t now)
{
    (void)call, (void)now;
    return true;
}

void gpb_place_facts(const gpb_call *call, bool libcuda, gpb_facts *facts)
{
    (void)call, (void)libcuda;
    *facts = (gpb_facts){ 0 };       /* gpb_machine_facts adds the rest */
}

bool gpb_place_unreachable(const gpb_call *call)
{
    (void)call;
    return false;
}

gpb_outcome gpb_compute(const gpb_call *call, gpb_facts *facts, const gpb_policy *policy, gpb_plan plan)
{
    (void)call, (void)facts, (void)policy, (void)plan;
    return (gpb_outcome){ .failure = why };
}

gpb_resident_outcome gpb_resident_run(const gpb_resident *work, const gpb_facts *facts,
                                      const gpb_policy *policy)
{
    (void)work, (void)facts, (void)policy;
    return (gpb_resident_outcome){ .failure = why };
}

int gpb_gpu_count(const char **name, int *unserved_arch)
{
    (void)name, (void)unserved_arch;
    return 0;
}

void gpb_gpu_report(int fd, bool all)
{
    (void)all;
    dprintf(fd, "GPU            none: %s\n", why);
}

void gpb_gpu_print_json(int fd)
{
    dprintf(fd, "\"driver\": null, \"why_none\": \"%s\", \"devices\": []", why);
}

gpb_verify gpb_verify_begin(const gpb_call *call, const gpb_facts *facts)
{
    (void)call, (void)facts;
    return (gpb_verify){ 0 };
}

bool gpb_verify_end(gpb_verify *verify, const gpb_call *call, const gpb_facts *facts, const gpb_outcome *out)
{
    (void)verify, (void)call, (void)facts, (void)out;
    return true;
}
