// SPDX-License-Identifier: MIT
/*
 * Where a program waits for a stream, or marks how far it is, or makes it wait for something, its
 * batch ends: what comes later is not the GPU's time but the program's, or that of what the stream
 * waits for. And a stream that ends, or begins to capture, takes no more events. The table says
 * which functions those are.
 */
#include "meter.h"
#include "real.h"

#define ENDS(name, end, parameters, ...)                                                           \
    CUresult name parameters                                                                       \
    {                                                                                              \
        if (!real_depth)                                                                           \
            end;                                                                                   \
        return DRIVER(name, __VA_ARGS__);                                                          \
    }
#define CLOSES(name, own_default, stream, parameters, ...)                                         \
    ENDS(name, meter_close(stream, own_default), parameters, __VA_ARGS__)
#define LEAVES(name, own_default, stream, parameters, ...)                                         \
    ENDS(name, meter_leave(stream, own_default), parameters, __VA_ARGS__)
#include "closes.inc"

ENDS(cuCtxSynchronize_v2, meter_close_all(ctx), (CUcontext ctx), ctx)
ENDS(cuCtxRecordEvent, meter_close_all(hCtx), (CUcontext hCtx, CUevent hEvent), hCtx, hEvent)
ENDS(cuCtxWaitEvent, meter_close_all(hCtx), (CUcontext hCtx, CUevent hEvent), hCtx, hEvent)
ENDS(cuStreamDestroy, meter_stream_ends(hStream), (CUstream hStream), hStream)
ENDS(cuStreamDestroy_v2, meter_stream_ends(hStream), (CUstream hStream), hStream)

CUresult cuCtxSynchronize(void)
{
    if (!real_depth)
        meter_close_all(NULL);
    return DRIVER(cuCtxSynchronize);
}
