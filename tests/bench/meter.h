/* SPDX-License-Identifier: MIT */
/* The GPU's clock, power and temperature while a bench times something: NVML, by dlopen, asked by a thread
   every 15 ms. Without NVML every reading is empty. */
#ifndef GPB_BENCH_METER_H
#define GPB_BENCH_METER_H

#include <math.h>
#include <stdio.h>

/* Medians over the samples; NAN: not known. */
typedef struct reading {
    double sm_mhz, watts, celsius;
    char held[48]; /* what held the clock back in half of the samples or more, "+" between: "power"; "none";
                      "": not known */
} reading;
#define METER_EMPTY { NAN, NAN, NAN, "" }

/* The device with this PCI bus identifier ("0000:1b:00.0"; NULL: NVML's first). Once. */
void meter_open(const char *bus);
void meter_begin(void);
/* Since meter_begin; one sample, taken now, if it was too short for any. */
reading meter_end(void);
/* ",1980,693.1,61,power" and ",1980,693.1": empty fields for what is not known. */
void meter_print(FILE *csv, const reading *r);
void meter_print_short(FILE *csv, const reading *r);

#endif
