/* SPDX-License-Identifier: MIT */
/* The options of option.def. They come from the environment, which is read once, at the first question, or
   from gpublas_set_option. Any thread may ask and set at any time; asking costs one plain load. */
#ifndef GPB_OPTION_H
#define GPB_OPTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gpb_option {
#define OPTION(name, kind, standard, range, help) GPB_OPTION_##name,
#include "src/service/option.def"
#undef OPTION
    GPB_OPTIONS
};

/* CHOICE: the index of the word; INT: the number; BYTES: bytes; STRING: 0. */
int64_t gpb_option_number(enum gpb_option option);
/* STRING: the text, or NULL if unset; it stays valid for ever, and equal texts have the same address. Other
   kinds: NULL. */
const char *gpb_option_text(enum gpb_option option);
/* Calls are to be told of: VERBOSE, REPORT or TRACE is on, a profiler is attached, or gpb_option_watch was
   called. One load, because every call asks. */
extern atomic_bool gpb_option_watched;
/* One more or one less who is to be told of calls: by 1, -1. */
void gpb_option_watch(int more);
/* REPORT is on. */
bool gpb_option_reports(void);
/* TRACE is on. */
bool gpb_option_traces(void);
/* A profiler was attached when the program began, and it is no program with more rights than its user. */
bool gpb_option_profiled(void);
/* Sets an option by its name, with or without GPUBLAS_, in any case; value NULL or "": the default. Returns
   0, or -1 for an unknown name or a bad value; then nothing has changed. */
int gpb_option_set(const char *name, const char *value);
/* Copies the value as text, "" for an unset STRING. Returns its length, or -1 for an unknown name. A length
   above size - 1 means that the copy was cut. */
int gpb_option_get(const char *name, char *value, size_t size);
/* Writes the path of the calibration file, which GPUBLAS_CALIBRATION or the user's cache folder determines.
   False: there is no such file, for example in a program with more rights than its user. */
bool gpb_option_calibration(char *path, size_t size);
/* This process's rank on its machine, as a launcher says (launcher.def); -1: none does. *by: the variable. */
int64_t gpb_option_local_rank(const char **by);
/* A hash of all options and of the environment's variables that CUDA reads. */
uint64_t gpb_option_environment(void);
/* Prints the table of names, values, defaults and helps. */
void gpb_option_print(int fd);
/* The same as a JSON array. */
void gpb_option_print_json(int fd);
/* Prints one line with the options that differ from their defaults. */
void gpb_option_print_set(int fd);
/* For a forked child: another thread of the parent may have been setting an option. */
void gpb_option_in_child(void);

#endif
