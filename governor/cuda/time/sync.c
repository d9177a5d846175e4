// SPDX-License-Identifier: MIT
/*
 * Where a program waits for a stream, or marks how far it is, its batch ends: what comes later is
 * not the GPU's time but the program's. And a stream that ends takes no more events.
 */
#include "meter.h"
#include "real.h"

#define CLOSES(name, close, parameters, ...)                                                       \
    CUresult name parameters                                                                       \
    {                                                                                              \
        if (!real_depth)                                                                           \
            close;                                                                                 \
        return DRIVER(name, __VA_ARGS__);                                                          \
    }

CLOSES(cuStreamSynchronize, meter_close(hStream, false), (CUstream hStream), hStream)
CLOSES(cuStreamSynchronize_ptsz, meter_close(hStream, true), (CUstream hStream), hStream)
CLOSES(cuStreamQuery, meter_close(hStream, false), (CUstream hStream), hStream)
CLOSES(cuStreamQuery_ptsz, meter_close(hStream, true), (CUstream hStream), hStream)
CLOSES(cuEventRecord, meter_close(hStream, false), (CUevent hEvent, CUstream hStream), hEvent,
       hStream)
CLOSES(cuEventRecord_ptsz, meter_close(hStream, true), (CUevent hEvent, CUstream hStream), hEvent,
       hStream)
CLOSES(cuEventRecordWithFlags, meter_close(hStream, false),
       (CUevent hEvent, CUstream hStream, unsigned int flags), hEvent, hStream, flags)
CLOSES(cuEventRecordWithFlags_ptsz, meter_close(hStream, true),
       (CUevent hEvent, CUstream hStream, unsigned int flags), hEvent, hStream, flags)
CLOSES(cuCtxSynchronize_v2, meter_close_all(ctx), (CUcontext ctx), ctx)
CLOSES(cuStreamDestroy, meter_stream_ends(hStream), (CUstream hStream), hStream)
CLOSES(cuStreamDestroy_v2, meter_stream_ends(hStream), (CUstream hStream), hStream)

CUresult cuCtxSynchronize(void)
{
    if (!real_depth)
        meter_close_all(NULL);
    return DRIVER(cuCtxSynchronize);
}
