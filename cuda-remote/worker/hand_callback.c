// SPDX-License-Identifier: MIT
/*
 * Functions of the program that the driver calls. Ours are called in their place: they put down
 * what is to be called, and wait until a thread of the program, which asks for it by HAND_CALLED,
 * has done so. Streams must not go on before.
 */
#include "hand.h"
#include "worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

/* @is_kept: a graph may call it again. */
struct callback {
    struct hand_called what;
    bool is_kept;
};

/* What the program is to call; its place is on the stack of the driver's thread. */
struct due {
    struct due *next;
    struct hand_called what;
    const char *text; /* of what.value bytes */
    bool is_done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct due *first, *called;

static void await_program(struct due *due)
{
    struct due **at = &first;

    pthread_mutex_lock(&lock);
    while (*at)
        at = &(*at)->next;
    *at = due;
    pthread_cond_broadcast(&changed);
    while (!due->is_done)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void call_program(struct callback *callback, uint32_t result)
{
    struct due due = {.what = callback->what};

    due.what.result = result;
    await_program(&due);
    if (!callback->is_kept)
        free(callback);
}

struct callback *callback_new(const struct hand_callback *head)
{
    struct callback *callback = calloc(1, sizeof(*callback));

    if (callback) {
        callback->what = (struct hand_called){
            .function = head->function, .user = head->user, .stream = head->stream};
        callback->is_kept = true;
    }
    return callback;
}

struct hand_called callback_what(const void *callback)
{
    return ((const struct callback *)callback)->what;
}

void callback_call(void *data)
{
    call_program(data, CUDA_SUCCESS);
}

static void call_with_result(CUstream stream, CUresult result, void *data)
{
    (void)stream;
    call_program(data, result);
}

/* As the driver lays it out. */
struct notification {
    uint32_t kind;
    uint64_t value;
};

static void notify_program(const struct notification *what, void *data, void *registration)
{
    struct due due = {.what = ((struct callback *)data)->what};

    due.what.kind = HAND_CALLED_NOTIFY;
    due.what.result = what->kind;
    due.what.value = what->value;
    due.what.stream = object_number(OBJECT_CUasyncCallbackHandle, registration, 0);
    await_program(&due);
}

/* What the worker asks for itself is none of the program's errors. */
static void tell_log(void *data, uint32_t grave, const char *text, size_t bytes)
{
    struct due due = {.what = ((struct callback *)data)->what, .text = text};

    if (place_is_asking())
        return;
    due.what.kind = HAND_CALLED_LOG;
    due.what.result = grave;
    due.what.value = bytes < HAND_CALLED_TEXT ? bytes : HAND_CALLED_TEXT - 1;
    await_program(&due);
}

static CUresult register_callback(struct request *request, const struct hand_callback *head,
                                  struct callback *callback)
{
    void *function = driver_function(request->number), *made = NULL;
    bool is_log = request->number == CALL_cuLogsRegisterCallback;
    CUresult result;

    callback->is_kept = true;
    result =
        is_log ? ((CUresult(*)(void *, void *, void **))function)((void *)tell_log, callback, &made)
               : ((CUresult(*)(CUdevice, void *, void *, void **))function)(
                     (CUdevice)head->flags, (void *)notify_program, callback, &made);
    if (result == CUDA_SUCCESS)
        request->extra = object_number(
            is_log ? OBJECT_CUlogsCallbackHandle : OBJECT_CUasyncCallbackHandle, made, 0);
    return result;
}

/* The one before was done, if this is not the first. */
CUresult hand_called(struct request *request)
{
    struct hand_called *to = request_answer(request, sizeof(*to));
    char *text = request_answer(request, HAND_CALLED_TEXT);

    if (!to || !text)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    if (called) {
        called->is_done = true;
        called = NULL;
        pthread_cond_broadcast(&changed);
    }
    while (!first)
        pthread_cond_wait(&changed, &lock);
    called = first;
    first = first->next;
    *to = called->what;
    if (called->text)
        memcpy(text, called->text, called->what.value);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult make_user_object(struct request *request, const struct hand_callback *head,
                                 struct callback *callback)
{
    CUresult (*make)(void **, void *, void (*)(void *), unsigned int, unsigned int) =
        driver_function(request->number);
    void *made = NULL;
    CUresult result = make ? make(&made, callback, callback_call, head->count, head->flags)
                           : CUDA_ERROR_NOT_SUPPORTED;

    if (result == CUDA_SUCCESS)
        request->extra = object_number(OBJECT_CUuserObject, made, 0);
    return result;
}

static CUresult submit_callback(struct request *request, const struct hand_callback *head,
                                struct callback *callback)
{
    void *function = driver_function(request->number), *stream;

    if (!function)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (request->number == CALL_cuUserObjectCreate)
        return make_user_object(request, head, callback);
    if (request->number == CALL_cuDeviceRegisterAsyncNotification ||
        request->number == CALL_cuLogsRegisterCallback)
        return register_callback(request, head, callback);
    if (!object_find(OBJECT_CUstream, head->stream, &stream))
        return CUDA_ERROR_INVALID_HANDLE;
    callback->is_kept = stream_is_capturing(request->number, stream);
    switch (request->number) {
    case CALL_cuStreamAddCallback:
    case CALL_cuStreamAddCallback_ptsz:
        callback->what.kind = HAND_CALLED_STREAM;
        return ((CUresult(*)(void *, CUstreamCallback, void *, unsigned int))function)(
            stream, call_with_result, callback, head->flags);
    case CALL_cuLaunchHostFunc_v2:
    case CALL_cuLaunchHostFunc_v2_ptsz:
        return ((CUresult(*)(void *, CUhostFn, void *, unsigned int))function)(
            stream, callback_call, callback, head->flags);
    default:
        return ((CUresult(*)(void *, CUhostFn, void *))function)(stream, callback_call, callback);
    }
}

CUresult hand_callback(struct request *request)
{
    const struct hand_callback *head = (const void *)request->head;
    struct callback *callback;
    CUresult result;

    if (request->head_bytes < sizeof(*head)) {
        request->is_broken = true;
        return CUDA_ERROR_INVALID_VALUE;
    }
    callback = callback_new(head);
    if (!callback)
        return CUDA_ERROR_OUT_OF_MEMORY;
    callback->is_kept = false;
    result = submit_callback(request, head, callback);
    if (result != CUDA_SUCCESS)
        free(callback);
    return result;
}
