/* SPDX-License-Identifier: MIT */
/* For libFuzzer (clang -fsanitize=fuzzer): what the library reads of the world. The first byte says what the
   rest is: a calibration file, an option and its value, a name of the environment that is no option, or a
   history of programs. */
#include <stdlib.h>
#include <string.h>

/* Its statics are looked at, too. */
#include "src/service/option.c"
#include "src/learn/history_file.h"
#include "src/learn/machine_file.h"

#define KEY "GPU of a name, driver 1"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* How many were good, for the script, because a run that only saw refusals would prove little. */
static long files, options;
__attribute__((destructor)) static void tell(void)
{
    printf("taken: files %ld options %ld\n", files, options);
}

static void demand(bool holds)
{
    if (!holds) __builtin_trap();
}

static bool same(const gpb_machine *x, const gpb_machine *y) { return memcmp(x, y, sizeof *x) == 0; }

/* What is refused changes nothing; what is taken is within its bounds, can be written, and read again as the
   same. */
static void calibration(const char *text, size_t length)
{
    static gpb_machine machine, before, again;
    static char page[GPB_MACHINE_FILE_BYTES];
    memset(&machine, 0, sizeof machine);
    memset(&before, 0, sizeof before);
    memset(&again, 0, sizeof again);
    if (!gpb_machine_file_parse(&machine, KEY, text, length)) {
        demand(same(&machine, &before));
        return;
    }
    files++;
    demand(machine.dma_mbs >= 0 && machine.dma_mbs <= 2000000 && machine.launch_ns >= 0
           && machine.launch_ns <= 10000000);
    const size_t printed = gpb_machine_file_print(&machine, KEY, page, sizeof page);
    demand(printed > 0 && printed < sizeof page && gpb_machine_file_parse(&again, KEY, page, printed));
    demand(machine.dma_mbs == again.dma_mbs && machine.core_mbs == again.core_mbs
           && machine.launch_ns == again.launch_ns);
}

/* The same of a history of programs. */
static void history(const char *text, size_t length)
{
    static gpb_history_file kept, again;
    static char page[GPB_HISTORY_FILE_BYTES];
    memset(&kept, 0, sizeof kept);
    if (!gpb_history_file_parse(&kept, text, length)) {
        demand(kept.programs == 0 && kept.start_s[0] == 0);
        return;
    }
    files++;
    demand(kept.programs <= GPB_HISTORY_PROGRAMS);
    const size_t printed = gpb_history_file_print(&kept, page, sizeof page);
    demand(printed > 0 && gpb_history_file_parse(&again, page, printed) && again.programs == kept.programs);
}

/* name=value: a good value can be asked for, and set again to what is then said; a bad one leaves the option
   as it was. */
static void option(const char *name, size_t length)
{
    char *own = strndup(name, length);
    char *value = own ? strchr(own, '=') : NULL;
    char before[256];
    char after[256];
    char again[256];
    if (value) *value++ = 0;
    if (value && gpb_option_get(own, before, sizeof before) >= 0) {
        options++;
        const int changed = gpb_option_set(own, value), said = gpb_option_get(own, after, sizeof after);
        demand(said >= 0 && (changed == 0 || strcmp(before, after) == 0));
        if (changed == 0 && said < (int)sizeof after) {
            demand(gpb_option_set(own, after) == 0 && gpb_option_get(own, again, sizeof again) == said);
            demand(strcmp(after, again) == 0);
        }
    } else if (value) {
        demand(gpb_option_set(own, value) == -1);
    }
    free(own);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const char *rest = (const char *)data + 1;
    switch (data[0] % 4) {
    case 0: calibration(rest, size - 1); break;
    case 1: option(rest, size - 1); break;
    case 2: warn_unknown(rest, size - 1); break;
    default: history(rest, size - 1);
    }
    return 0;
}
