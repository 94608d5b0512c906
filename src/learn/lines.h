/* SPDX-License-Identifier: MIT */
/* Texts of lines: a name, then whole numbers with one space between two. */
#ifndef GPB_LINES_H
#define GPB_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text that is being printed. If it becomes too long, `used` ends at size - 1. */
typedef struct gpb_lines_page {
    char *text;
    size_t used, size;
} gpb_lines_page;

__attribute__((format(printf, 2, 3))) void gpb_lines_put(gpb_lines_page *to, const char *format, ...);
/* The printed text's length; 0 if it did not fit. */
size_t gpb_lines_length(const gpb_lines_page *page);

/* The next line, in which a zero has replaced the newline; NULL after the last line, or if that has no
   newline. */
char *gpb_lines_next(char **at);
/* The text after `name` and a space, if the line begins so; else NULL. */
const char *gpb_lines_after(const char *line, const char *name);
/* Reads `count` numbers of at most 18 digits, with one space between two, and then the line's end. */
bool gpb_lines_numbers(const char *at, int64_t *number, int count);

#endif
