/* SPDX-License-Identifier: MIT */
/* The options of option.def: from the environment (read once, at the first question) or from gpublas_set_option.
   Any thread may ask or set at any time; asking costs one plain load. */
#ifndef GPB_OPTION_H
#define GPB_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gpb_option {
#define OPTION(name, kind, standard, range, help) GPB_OPTION_##name,
#include "src/service/option.def"
#undef OPTION
    GPB_OPTIONS
};

/* CHOICE: index of the word; INT: the number; BYTES: bytes. Of a STRING: 0. */
int64_t gpb_option_number(enum gpb_option option);
/* STRING: the text, or NULL if unset. It stays valid for ever, and equal texts are one address. Of the other kinds: NULL. */
const char *gpb_option_text(enum gpb_option option);
/* By name, with or without GPUBLAS_, in any case; value NULL or "": back to the default. 0, or -1: unknown name or bad value,
   nothing changed. */
int gpb_option_set(const char *name, const char *value);
/* Copies the value as text, "" for an unset STRING. Its length (which may exceed size - 1: then cut), or -1: unknown name. */
int gpb_option_get(const char *name, char *value, size_t size);
/* Where GPUBLAS_CALIBRATION, or the user's cache folder, says that the machine's calibration lies. False: nowhere, as in a program with
   more rights than its user. */
bool gpb_option_calibration(char *path, size_t size);
/* Another number after each successful gpb_option_set: what was derived from options and kept is stale when it differs. */
unsigned gpb_option_generation(void);
/* The table of name, value, default and help, as text. */
void gpb_option_print(int fd);
/* One line of those that are not as by default, as text. */
void gpb_option_print_set(int fd);
/* In a forked child: another thread of the parent may have been setting an option. */
void gpb_option_in_child(void);

#endif
