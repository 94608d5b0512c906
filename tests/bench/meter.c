/* SPDX-License-Identifier: MIT */
/* NVML's answers, sampled. See meter.h. The few types of NVML that are needed are written out here, so that
   its header is not. */
#include "tests/bench/meter.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "tests/bench/bench.h"

enum { EVERY_NS = 15000000, MAX_SAMPLES = 4096, SM_CLOCK = 1, POWER_INSTANT = 186 };

/* nvmlFieldValue_t. */
typedef struct field {
    unsigned id, scope;
    long long timestamp, latency_us;
    int type, result;
    union { unsigned as_unsigned; unsigned long long as_long; double as_double; } value;
} field;

static struct {
    int (*nvmlInit_v2)(void);
    int (*nvmlDeviceGetHandleByIndex_v2)(unsigned, void **);
    int (*nvmlDeviceGetHandleByPciBusId_v2)(const char *, void **);
    int (*nvmlDeviceGetClockInfo)(void *, int, unsigned *);
    int (*nvmlDeviceGetPowerUsage)(void *, unsigned *);
    int (*nvmlDeviceGetFieldValues)(void *, int, field *);
    int (*nvmlDeviceGetTemperature)(void *, int, unsigned *);
    int (*nvmlDeviceGetCurrentClocksThrottleReasons)(void *, unsigned long long *);
} nvml;

static const struct {
    unsigned long long bit;
    const char *name;
} reasons[] = {
    { 0x4, "power" }, { 0x8, "hw_slowdown" }, { 0x20, "sw_thermal" }, { 0x40, "hw_thermal" }, { 0x80,
      "power_brake" },
};
enum { REASONS = sizeof reasons / sizeof *reasons };

static struct {
    double sm_mhz[MAX_SAMPLES], watts[MAX_SAMPLES], celsius[MAX_SAMPLES];
    int held[REASONS], count, told;
} samples;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool on;
static void *device;

/* As it is now; before Hopper the driver may know an average over a second alone. */
static double watts_now(void)
{
    field f = { .id = POWER_INSTANT };
    unsigned milliwatts;
    if (nvml.nvmlDeviceGetFieldValues && !nvml.nvmlDeviceGetFieldValues(device, 1, &f) && !f.result)
        return 1e-3 * f.value.as_unsigned;
    return nvml.nvmlDeviceGetPowerUsage(device, &milliwatts) ? NAN : 1e-3 * milliwatts;
}

static void take(void)
{
    unsigned mhz, celsius;
    unsigned long long held;
    if (samples.count == MAX_SAMPLES) return;
    const int x = samples.count++;
    samples.sm_mhz[x] = nvml.nvmlDeviceGetClockInfo(device, SM_CLOCK, &mhz) ? NAN : mhz;
    samples.watts[x] = watts_now();
    samples.celsius[x] = nvml.nvmlDeviceGetTemperature(device, 0, &celsius) ? NAN : celsius;
    if (!nvml.nvmlDeviceGetCurrentClocksThrottleReasons
        || nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device, &held))
        return;
    samples.told++;
    for (int i = 0; i < REASONS; i++) samples.held[i] += (held & reasons[i].bit) != 0;
}

static void *watch(void *of)
{
    for (;;) {
        nanosleep(&(struct timespec){ 0, EVERY_NS }, NULL);
        pthread_mutex_lock(&lock);
        if (on) take();
        pthread_mutex_unlock(&lock);
    }
    return of;
}

/* Everything that is asked for is there; field values and reasons may be missing. */
static bool load(void *library)
{
    bool all = true;
#define FROM_NVML(f, needed) \
    all = ((nvml.f = (__typeof__(nvml.f))dlsym(library, #f)) != NULL || !(needed)) && all
    FROM_NVML(nvmlInit_v2, true);
    FROM_NVML(nvmlDeviceGetHandleByIndex_v2, true);
    FROM_NVML(nvmlDeviceGetHandleByPciBusId_v2, true);
    FROM_NVML(nvmlDeviceGetClockInfo, true);
    FROM_NVML(nvmlDeviceGetPowerUsage, true);
    FROM_NVML(nvmlDeviceGetTemperature, true);
    FROM_NVML(nvmlDeviceGetFieldValues, false);
    FROM_NVML(nvmlDeviceGetCurrentClocksThrottleReasons, false);
    return all;
}

void meter_open(const char *bus)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    pthread_t thread;
    int error = -1;
    if (library && load(library)) error = nvml.nvmlInit_v2();
    if (!error && (!bus || nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, &device)))
        error = nvml.nvmlDeviceGetHandleByIndex_v2(0, &device);
    if (!error) error = pthread_create(&thread, NULL, watch, NULL);
    if (!error) return;
    fprintf(stderr, "bench: clocks and watts are left out: %s, error %d\n", library ? "NVML" : dlerror(),
            error);
    device = NULL;
}

void meter_begin(void)
{
    pthread_mutex_lock(&lock);
    memset(samples.held, 0, sizeof samples.held);
    samples.count = samples.told = 0;
    on = device != NULL;
    pthread_mutex_unlock(&lock);
}

/* Of what is known; not counted among the samples: NANs. */
static double median(double *values)
{
    int count = 0;
    for (int x = 0; x < samples.count; x++)
        if (!isnan(values[x])) values[count++] = values[x];
    return count ? spread_of(values, count).median : NAN;
}

reading meter_end(void)
{
    reading r = METER_EMPTY;
    if (!device) return r;
    pthread_mutex_lock(&lock);
    on = false;
    if (!samples.count) take();
    r.sm_mhz = median(samples.sm_mhz);
    r.watts = median(samples.watts);
    r.celsius = median(samples.celsius);
    for (int i = 0; i < REASONS && samples.told; i++)
        if (2 * samples.held[i] >= samples.told)
            snprintf(r.held + strlen(r.held), sizeof r.held - strlen(r.held), "%s%s", *r.held ? "+" : "",
                     reasons[i].name);
    if (samples.told && !*r.held) snprintf(r.held, sizeof r.held, "none");
    pthread_mutex_unlock(&lock);
    return r;
}

static void print_number(FILE *csv, const char *format, double value)
{
    fputc(',', csv);
    if (!isnan(value)) fprintf(csv, format, value);
}

void meter_print_short(FILE *csv, const reading *r)
{
    print_number(csv, "%.0f", r->sm_mhz);
    print_number(csv, "%.1f", r->watts);
}

void meter_print(FILE *csv, const reading *r)
{
    meter_print_short(csv, r);
    print_number(csv, "%.0f", r->celsius);
    fprintf(csv, ",%s", r->held);
}
