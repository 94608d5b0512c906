/* SPDX-License-Identifier: MIT */
/* Programs started at load; see at_load.h. The file is a table of SLOTS hashes, each in the slot of its
   remainder. Slots are read and written whole, so processes need no lock. */
#include "src/learn/at_load.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "src/learn/file.h"

enum { SLOTS = 512 };

static off_t place_of(uint64_t program) { return (off_t)(program % SLOTS * sizeof program); }

static uint64_t slot(int table, uint64_t program)
{
    uint64_t found = 0;
    return pread(table, &found, sizeof found, place_of(program)) == sizeof found ? found : 0;
}

bool gpb_at_load_wanted(const char *path, uint64_t program)
{
    size_t bytes;
    const int before = errno, table = gpb_file_open(path, O_RDONLY, &bytes);
    const bool wanted = table >= 0 && program && slot(table, program) == program;
    if (table >= 0) close(table);
    errno = before;
    return wanted;
}

void gpb_at_load_want(const char *path, uint64_t program, bool wanted)
{
    const uint64_t none = 0;
    size_t bytes;
    const int table = gpb_file_open(path, wanted ? O_RDWR | O_CREAT : O_RDWR, &bytes);
    if (table < 0) return;
    if ((slot(table, program) == program) != wanted)
        (void)!pwrite(table, wanted ? &program : &none, sizeof program, place_of(program));
    close(table);
}
