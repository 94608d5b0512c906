/* SPDX-License-Identifier: MIT */
/* The functions of include/gpublas.h (gpublas_report is in doctor.c, gpublas_report_calls in report.c,
   gpublas_ask and gpublas_save_calibration in ask.c). */
#include <string.h>

#include "include/gpublas.h"
#include "src/service/option.h"
#include "src/service/stats.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC const char *gpublas_version(void)
{
    return GPUBLAS_VERSION;
}

PUBLIC int gpublas_stats(gpublas_stats_t *stats, size_t size)
{
    gpublas_stats_t now;
    if (!stats) return -1;
    gpb_stats_read(&now);
    memcpy(stats, &now, size < sizeof now ? size : sizeof now);
    return 0;
}

PUBLIC int gpublas_set_option(const char *name, const char *value)
{
    return gpb_option_set(name, value);
}

PUBLIC int gpublas_get_option(const char *name, char *value, size_t size)
{
    return gpb_option_get(name, value, size);
}
