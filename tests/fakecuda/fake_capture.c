/* SPDX-License-Identifier: MIT */
/* FAKECUDA_CAPTURE: another thread of the program is recording a graph from a blocking stream, in CUDA's
   default mode. Two things would spoil that and end the process. One is a call that CUDA regards as unsafe at
   that time, because it is not recorded and the graph might depend on it, unless the calling thread has
   declared that it knows. The other is any use of the legacy stream. */
#include <string.h>

#include "tests/fakecuda/fakecuda.h"

static __thread CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static bool is_unsafe(const char *function)
{
    static const char *const names[] = { "cuMemAlloc",         "cuMemFree",           "cuMemHostAlloc",
                                         "cuMemHostRegister",  "cuMemHostUnregister", "cuMemsetD8",
                                         "cuModuleLoadData",   "cuModuleUnload",      "cuEventQuery",
                                         "cuEventSynchronize", "cuStreamQuery",       "cuStreamSynchronize",
                                         "cuCtxSynchronize",   "cuMemcpyHtoD_v2",     "cuMemcpyDtoH_v2" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        /* Also with its version; also cuMemAllocManaged, cuMemFreeHost. */
        if (strncmp(function, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

void gpb_fake_check_capture(const char *function)
{
    if (gpb_fake_options_get()->capture && mode != CU_STREAM_CAPTURE_MODE_RELAXED && is_unsafe(function))
        gpb_fake_die("CAPTURE SPOILED: %s while another thread records a graph", function);
}

void gpb_fake_check_legacy(void)
{
    if (gpb_fake_options_get()->capture)
        gpb_fake_die("CAPTURE SPOILED: the legacy stream is used while another thread records a graph");
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *exchanged)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_INIT);
    if (!r && (unsigned)*exchanged > CU_STREAM_CAPTURE_MODE_RELAXED)
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r) {
        const CUstreamCaptureMode before = mode;
        mode = *exchanged;
        *exchanged = before;
    }
    return gpb_fake_leave(__func__, r);
}

/* Allowed, because asking spoils nothing. */
CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    CUresult r = gpb_fake_enter(__func__, GPB_FAKE_NEED_CONTEXT);
    const bool legacy = !handle || handle == CU_STREAM_LEGACY;
    if (!r)
        r = legacy && gpb_fake_options_get()->capture ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT :
            gpb_fake_stream_find(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (!r)
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return gpb_fake_leave(__func__, r);
}
