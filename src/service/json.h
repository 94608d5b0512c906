/* SPDX-License-Identifier: MIT */
/* Texts as JSON strings. */
#ifndef GPB_JSON_H
#define GPB_JSON_H

enum { GPB_JSON_LETTER = 8 };

/* One byte of a text as it stands in a string, written to `room`. Bytes beyond ASCII count as Latin-1,
   because a text may be cut within a letter of UTF-8. */
const char *gpb_json_letter(char byte, char room[GPB_JSON_LETTER]);
/* Writes the whole string, with its quotes, to a file descriptor; null if text is NULL. */
void gpb_json_string(int fd, const char *text);

#endif
