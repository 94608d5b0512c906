/* SPDX-License-Identifier: MIT */
/* When to start; see start.h. */
#include "dispatch/start.h"

/* A run may be a quarter longer than those before. */
#define LONGER 1.25

/* A program that gains by a start at once has it. Another one is thought to be as short as it was, so its
   start waits until it has become longer than that. */
double gpb_start_price(const gpb_history *history, double cost_s)
{
    if (history->runs == 0) return cost_s;
    return history->late_s >= cost_s ? 0 : cost_s + LONGER * history->total_s;
}

gpb_history gpb_start_remember(gpb_history before, double total_s, double late_s)
{
    if (before.runs == 0) return (gpb_history){ 1, total_s, late_s };
    return (gpb_history){ before.runs < GPB_START_MAX_RUNS ? before.runs + 1 : GPB_START_MAX_RUNS,
                          (before.total_s + total_s) / 2, (before.late_s + late_s) / 2 };
}
