/* SPDX-License-Identifier: MIT */
/* See json.h. */
#include "src/service/json.h"

#include <stdio.h>
#include <string.h>

const char *gpb_json_letter(char byte, char room[GPB_JSON_LETTER])
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char code = (unsigned char)byte;
    if (byte == '"' || byte == '\\') memcpy(room, (char[]){ '\\', byte, 0 }, 3);
    else if (code < ' ' || code > '~')
        memcpy(room, (char[]){ '\\', 'u', '0', '0', digits[code / 16], digits[code % 16], 0 }, 7);
    else memcpy(room, (char[]){ byte, 0 }, 2);
    return room;
}

void gpb_json_string(int fd, const char *text)
{
    char page[512], room[GPB_JSON_LETTER];
    size_t used = 0;
    if (!text) {
        dprintf(fd, "null");
        return;
    }
    dprintf(fd, "\"");
    for (; *text; text++) {
        used += (size_t)snprintf(page + used, sizeof page - used, "%s", gpb_json_letter(*text, room));
        if (used + GPB_JSON_LETTER < sizeof page && text[1]) continue;
        dprintf(fd, "%s", page);
        used = 0;
    }
    dprintf(fd, "\"");
}
