// SPDX-License-Identifier: MIT
/* Functions that are told of errors, and of a device. Here each is told once, when it is taken
 * away.
 */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

struct told {
    void *function, *user;
};

struct notification {
    unsigned int kind;
    uint64_t value;
};

static CUresult keep_function(void *function, void *user, void **made)
{
    struct told *told = malloc(sizeof(*told));

    if (!function || !made)
        return CUDA_ERROR_INVALID_VALUE;
    *told = (struct told){function, user};
    *made = told;
    return CUDA_SUCCESS;
}

CUresult cuLogsRegisterCallback(void *function, void *user, void **made)
{
    ENTER();
    return keep_function(function, user, made);
}

CUresult cuDeviceRegisterAsyncNotification(CUdevice device, void *function, void *user, void **made)
{
    ENTER();
    return device ? CUDA_ERROR_INVALID_DEVICE : keep_function(function, user, made);
}

CUresult cuLogsUnregisterCallback(struct told *told)
{
    char text[] = "an error";

    ENTER();
    if (!told)
        return CUDA_ERROR_INVALID_VALUE;
    ((void (*)(void *, unsigned int, char *, size_t))told->function)(told->user, 1, text,
                                                                     strlen(text));
    free(told);
    return CUDA_SUCCESS;
}

CUresult cuDeviceUnregisterAsyncNotification(CUdevice device, struct told *told)
{
    struct notification what = {1, 4711};

    ENTER();
    if (device || !told)
        return CUDA_ERROR_INVALID_VALUE;
    ((void (*)(struct notification *, void *, void *))told->function)(&what, told->user, told);
    free(told);
    return CUDA_SUCCESS;
}
