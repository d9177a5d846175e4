// SPDX-License-Identifier: MIT
/* What a program asks before it computes: the driver's version, its functions, names of errors. */
#include "remote.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

EXPORT CUresult cuInit(unsigned int flags);
CUresult cuInit(unsigned int flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : connect_worker();
}

/* Before cuInit(), too, as the driver's. */
EXPORT CUresult cuDriverGetVersion(int *version);
CUresult cuDriverGetVersion(int *version)
{
    CUresult result = version ? connect_state() : CUDA_ERROR_INVALID_VALUE;

    if (result == CUDA_ERROR_NOT_INITIALIZED)
        result = connect_worker();
    if (result == CUDA_SUCCESS)
        *version = connect_driver_version();
    return result;
}

EXPORT CUresult cuProfilerStart(void);
CUresult cuProfilerStart(void)
{
    return connect_state();
}

EXPORT CUresult cuProfilerStop(void);
CUresult cuProfilerStop(void)
{
    return connect_state();
}

/* Texts of the driver, which stay: for each name of a function there is one, and few errors are
 * asked for. */
struct text {
    struct text *next;
    uint64_t of;
    unsigned int number;
    char text[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct text *texts;

static const char *find_text(unsigned int number, uint64_t of)
{
    const struct text *at;

    pthread_mutex_lock(&lock);
    for (at = texts; at && (at->number != number || at->of != of); at = at->next)
        ;
    pthread_mutex_unlock(&lock);
    return at ? at->text : NULL;
}

static const char *keep_text(unsigned int number, uint64_t of, const char *text)
{
    struct text *made = malloc(sizeof(*made) + strlen(text) + 1);

    if (!made)
        return NULL;
    made->number = number;
    made->of = of;
    strcpy(made->text, text);
    pthread_mutex_lock(&lock);
    made->next = texts;
    texts = made;
    pthread_mutex_unlock(&lock);
    return made->text;
}

static CUresult get_text(unsigned int number, uint64_t of, const char **to)
{
    const struct hand_object head = {.object = of};
    char text[HAND_NAME_MOST] = "";
    struct exchange ask = {.number = number, .head = &head, .head_bytes = sizeof(head)};
    CUresult result = to ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    if (result != CUDA_SUCCESS)
        return result;
    *to = find_text(number, of);
    if (*to)
        return CUDA_SUCCESS;
    exchange_out(&ask, text, sizeof(text) - 1);
    ask.is_short = true;
    result = exchange_run(&ask);
    if (result == CUDA_SUCCESS)
        *to = keep_text(number, of, text);
    return result;
}

EXPORT CUresult cuFuncGetName(const char **name, CUfunction function);
CUresult cuFuncGetName(const char **name, CUfunction function)
{
    return get_text(CALL_cuFuncGetName, object_to_number((uintptr_t)function), name);
}

EXPORT CUresult cuKernelGetName(const char **name, void *kernel);
CUresult cuKernelGetName(const char **name, void *kernel)
{
    return get_text(CALL_cuKernelGetName, object_to_number((uintptr_t)kernel), name);
}

/* What this library itself returns while no worker can be asked. */
static const struct {
    CUresult error;
    const char *name, *text;
} own_errors[] = {
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY",
     "the host can't offer CUDA: its log says why, or its worker is of another version"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "the worker on the host has ended"},
};

static CUresult get_error_text(unsigned int number, CUresult error, const char **to)
{
    CUresult result = get_text(number, error, to);
    bool is_name = number == CALL_cuGetErrorName;

    for (size_t i = 0;
         result != CUDA_SUCCESS && to && i < sizeof(own_errors) / sizeof(own_errors[0]); i++)
        if (own_errors[i].error == error) {
            *to = is_name ? own_errors[i].name : own_errors[i].text;
            return CUDA_SUCCESS;
        }
    return result;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name);
CUresult cuGetErrorName(CUresult error, const char **name)
{
    return get_error_text(CALL_cuGetErrorName, error, name);
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text);
CUresult cuGetErrorString(CUresult error, const char **text)
{
    return get_error_text(CALL_cuGetErrorString, error, text);
}
