// SPDX-License-Identifier: MIT
#include "worker.h"

#include <string.h>

#include "numbers.h"

/* Calls whose names end so take the stream 0 for that of the thread. */
static void *stream_of_call(unsigned int number, void *stream)
{
    const char *name = number < signatures_count ? signatures[number].name : NULL;
    size_t length = name ? strlen(name) : 0;

    return !stream && length > 5 && !strcmp(name + length - 5, "_ptsz") ? CU_STREAM_PER_THREAD
                                                                        : stream;
}

bool stream_is_capturing(unsigned int number, void *stream)
{
    CUresult (*ask)(void *, CUstreamCaptureStatus *) = driver_function(CALL_cuStreamIsCapturing);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    return ask && ask(stream_of_call(number, stream), &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CUresult stream_await(unsigned int number, void *stream)
{
    CUresult (*wait)(void *) = driver_function(CALL_cuStreamSynchronize);

    return wait ? wait(stream_of_call(number, stream)) : CUDA_ERROR_NOT_SUPPORTED;
}
