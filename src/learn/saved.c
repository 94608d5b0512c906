/* SPDX-License-Identifier: MIT */
/* The saved calibration; see saved.h. */
#include "src/learn/saved.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "include/gpublas.h"
#include "src/gpu/device.h"
#include "src/gpu/gpu.h"
#include "src/learn/file.h"
#include "src/learn/machine_file.h"
#include "src/service/clock.h"
#include "src/service/cores.h"
#include "src/service/descriptor.h"
#include "src/service/driver.h"
#include "src/service/log.h"
#include "src/service/option.h"
#include "src/service/thread.h"

/* The machine that the figures are true of, in one line. */
static void name_machine(const gpb_device *device, char *key, size_t size)
{
    char line[256], cpu[128] = "?";
    int driver = 0;
    FILE *file = gpb_descriptor_stream("/proc/cpuinfo");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "model name : %127[^\n]", cpu) != 1) { }
    if (file) fclose(file);
    gpb_driver_get()->cuDriverGetVersion(&driver);
    snprintf(key, size, "%s, %d cores, %s, CUDA %d, libgpublas %s", cpu, gpb_cores(), device->name, driver,
             GPUBLAS_VERSION);
}

bool gpb_saved_write(void)
{
    char path[4096], key[GPB_MACHINE_KEY_BYTES];
    gpb_device *devices;
    if (!gpb_device_list(&devices) || gpb_gpu_leaving() || !gpb_option_calibration(path, sizeof path))
        return false;
    name_machine(&devices[0], key, sizeof key);
    const char *failure = gpb_machine_file_save(&gpb_machine_here, key, path);
    gpb_log_debug("calibration: %s: %s", path, failure ? failure : "saved");
    return !failure;
}

enum { UNREAD, READING, READ };
static atomic_int reading = UNREAD;
static char *text;                       /* the file's, once `reading` is READ */
static size_t length;

#define READ_S 0.25                      /* from the end of the start; without a hang it takes 250 us */

static void *read_file(void *unused)
{
    char path[4096];
    if (gpb_option_calibration(path, sizeof path))
        text = gpb_file_read(path, GPB_MACHINE_FILE_BYTES, &length);
    atomic_store(&reading, READ);
    return unused;
}

void gpb_saved_read(void)
{
    atomic_store(&reading, READING);
    if (gpb_thread_begin(read_file, 0)) atomic_store(&reading, UNREAD);
}

bool gpb_saved_load(void)
{
    char key[GPB_MACHINE_KEY_BYTES];
    gpb_device *devices;
    if (!gpb_device_list(&devices)) return false;
    name_machine(&devices[0], key, sizeof key);
    const double until_s = gpb_clock_s() + READ_S;
    while (atomic_load(&reading) == READING && gpb_clock_s() < until_s)
        nanosleep(&(struct timespec){ 0, 200000 }, NULL);
    if (atomic_load(&reading) != READ || !text) return false;
    const bool known = gpb_machine_file_parse(&gpb_machine_here, key, text, length);
    free(text);
    text = NULL;
    return known;
}
