/* SPDX-License-Identifier: MIT */
/* When to start; see start.h. */
#include "dispatch/start.h"

#include "dispatch/numbers.h"

/* A run may be a quarter longer than those before. */
#define LONGER 1.25
enum { QUIET_RUNS = 2 };

/* A program that gains by a start at once has it. Another one is thought to be as short as it was, so its
   start waits until it has become longer than that. */
double gpb_start_price(const gpb_history *history, double cost_s)
{
    if (history->runs == 0) return cost_s;
    return history->late_s[GPB_START_AT_FIRST_CALL] >= cost_s ? 0 : cost_s + LONGER * history->total_s;
}

bool gpb_start_at_load(const gpb_history *history, double cost_s)
{
    return history->quiet_runs >= QUIET_RUNS && history->late_s[GPB_START_AT_LOAD] >= cost_s;
}

gpb_history gpb_start_remember(gpb_history before, const gpb_start_run *run)
{
    const bool first = before.runs == 0;
    gpb_history now = { .runs = min(before.runs + 1, GPB_START_MAX_RUNS),
                        .quiet_runs = run->quiet ? min(before.quiet_runs + 1, GPB_START_MAX_RUNS) : 0,
                        .total_s = first ? run->total_s : (before.total_s + run->total_s) / 2 };
    for (int at = 0; at < GPB_START_MOMENTS; at++) {
        const double late_s = first ? run->late_s[at] : (before.late_s[at] + run->late_s[at]) / 2;
        now.late_s[at] = min(late_s, now.total_s);
    }
    return now;
}
