/* SPDX-License-Identifier: MIT */
/* When to start the GPU behind a program's calls. */
#ifndef GPB_START_H
#define GPB_START_H

enum { GPB_START_MAX_RUNS = 1000 };     /* more are not counted */

/* What earlier runs of this program could have saved on the GPU, in seconds: by all their calls, and by the
   calls that came when a start at the program's first sign of BLAS would have been over. Both are means in
   which the last run weighs a half. */
typedef struct gpb_history {
    int runs;                    /* 0: this program is not known */
    double total_s, late_s;
} gpb_history;

/* What the GPU must have been missed for, in seconds, before it is started for `cost_s`. 0: it is started at
   the first sign. Without a history this is the rule of ski rental: who buys when the rent has paid for it
   pays at most twice the best price in hindsight (Karlin, Manasse, Rudolph, Sleator 1988). */
double gpb_start_price(const gpb_history *history, double cost_s);
/* The history with one more run. */
gpb_history gpb_start_remember(gpb_history before, double total_s, double late_s);

#endif
