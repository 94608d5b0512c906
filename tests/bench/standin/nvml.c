/* SPDX-License-Identifier: MIT */
/* A stand-in for libnvidia-ml.so.1, so that what the benches ask of it is tried where there is no GPU: one
   device that never changes. */
#define EXPORT __attribute__((visibility("default")))

EXPORT int nvmlInit_v2(void) { return 0; }

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = device;
    return index != 0;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    *device = device;
    return *bus == 0;
}

EXPORT int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz)
{
    *mhz = 1234;
    return !device || type != 1;
}

EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    *milliwatts = 567800;
    return !device;
}

EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    *celsius = 43;
    return !device || sensor;
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *held)
{
    *held = 0x5;         /* idle, power */
    return !device;
}
