/* SPDX-License-Identifier: MIT */
/* When to start the GPU behind a program's calls. */
#ifndef GPB_START_H
#define GPB_START_H

#include <stdbool.h>

enum { GPB_START_MAX_RUNS = 1000 };     /* more are not counted */

/* When a start can begin: as the library is loaded, or at the program's first call of BLAS. */
enum gpb_start_moment { GPB_START_AT_LOAD, GPB_START_AT_FIRST_CALL, GPB_START_MOMENTS };

/* What a run could have saved on the GPU, in seconds: by all its calls, and by the calls that came when a
   start at that moment would have been over. */
typedef struct gpb_start_run {
    double total_s, late_s[GPB_START_MOMENTS];
    bool quiet;                  /* nothing happened that a start at load might have disturbed */
} gpb_start_run;

/* The same of earlier runs of this program. The seconds are means in which the last run weighs a half. */
typedef struct gpb_history {
    int runs;                    /* 0: this program is not known */
    int quiet_runs;              /* the latest in a row that were quiet */
    double total_s, late_s[GPB_START_MOMENTS];
} gpb_history;

/* What the GPU must have been missed for, in seconds, before it is started for `cost_s`. 0: it is started at
   the first call. Without a history this is the rule of ski rental: who buys when the rent has paid for it
   pays at most twice the best price in hindsight (Karlin, Manasse, Rudolph, Sleator 1988). */
double gpb_start_price(const gpb_history *history, double cost_s);
/* True if the GPU is started when the program is loaded. Two quiet runs are asked for, because such a start
   comes before the program can choose a GPU, or fork. */
bool gpb_start_at_load(const gpb_history *history, double cost_s);
/* The history with one more run. */
gpb_history gpb_start_remember(gpb_history before, const gpb_start_run *run);

#endif
