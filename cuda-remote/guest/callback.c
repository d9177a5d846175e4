// SPDX-License-Identifier: MIT
/* Functions of the program that the driver calls: a thread here asks the worker which, and calls
 * it. */
#include "remote.h"

#include <pthread.h>
#include <signal.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_running;

/* As the driver lays it out. */
typedef struct {
    unsigned int kind;
    uint64_t value;
} Notification;

typedef void (*NotificationFn)(Notification *what, void *user, void *registration);
typedef void (*LogFn)(void *user, unsigned int grave, char *text, size_t bytes);

static void call_function(const struct hand_called *what, char *text)
{
    void *function = (void *)(uintptr_t)what->function, *user = (void *)(uintptr_t)what->user;
    void *object = (void *)(uintptr_t)object_of_number(what->stream);
    Notification notification = {what->result, what->value};

    exchange_refuse(true);
    switch (what->kind) {
    case HAND_CALLED_STREAM:
        ((CUstreamCallback)function)(object, (CUresult)what->result, user);
        break;
    case HAND_CALLED_NOTIFY:
        ((NotificationFn)function)(&notification, user, object);
        break;
    case HAND_CALLED_LOG:
        ((LogFn)function)(user, what->result, text, (size_t)what->value);
        break;
    default:
        ((CUhostFn)function)(user);
    }
    exchange_refuse(false);
}

/* Without a worker nothing is called any more, as with a driver whose context is lost. */
static void *call_what_is_due(void *data)
{
    for (;;) {
        struct hand_called what = {.function = 0};
        char text[HAND_CALLED_TEXT] = "";
        struct exchange ask = {.number = HAND_CALLED, .head = &what, .head_bytes = 8};

        exchange_out(&ask, &what, sizeof(what));
        exchange_out(&ask, text, sizeof(text));
        if (exchange_run(&ask) != CUDA_SUCCESS)
            return data;
        call_function(&what, text);
    }
}

/* The program's signals are not this thread's, but its faults are. */
static bool start_thread(void)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t thread;
    bool ok;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ok = pthread_create(&thread, &attributes, call_what_is_due, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return ok;
}

bool callback_thread_runs(void)
{
    pthread_mutex_lock(&lock);
    if (!is_running)
        is_running = start_thread();
    pthread_mutex_unlock(&lock);
    return is_running;
}

static CUresult submit_callback(unsigned int number, const struct hand_callback *head,
                                uint64_t *made)
{
    struct exchange exchange_of = {.number = number, .head = head, .head_bytes = sizeof(*head)};
    CUresult result = connect_state();

    if (result != CUDA_SUCCESS)
        return result;
    if (!head->function)
        return CUDA_ERROR_INVALID_VALUE;
    if (!callback_thread_runs())
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = exchange_run(&exchange_of);
    if (made)
        *made = exchange_of.extra;
    return result;
}

#define HOST_FUNCTION(name)                                                                        \
    EXPORT CUresult name(CUstream stream, CUhostFn function, void *user);                          \
    CUresult name(CUstream stream, CUhostFn function, void *user)                                  \
    {                                                                                              \
        const struct hand_callback head = {object_to_number((uintptr_t)stream),                    \
                                           (uintptr_t)function, (uintptr_t)user, 0, 0};            \
                                                                                                   \
        return submit_callback(CALL_##name, &head, NULL);                                          \
    }
HOST_FUNCTION(cuLaunchHostFunc)
HOST_FUNCTION(cuLaunchHostFunc_ptsz)

#define WITH_FLAGS(name, type)                                                                     \
    EXPORT CUresult name(CUstream stream, type function, void *user, unsigned int flags);          \
    CUresult name(CUstream stream, type function, void *user, unsigned int flags)                  \
    {                                                                                              \
        const struct hand_callback head = {object_to_number((uintptr_t)stream),                    \
                                           (uintptr_t)function, (uintptr_t)user, flags, 0};        \
                                                                                                   \
        return submit_callback(CALL_##name, &head, NULL);                                          \
    }
WITH_FLAGS(cuLaunchHostFunc_v2, CUhostFn)
WITH_FLAGS(cuLaunchHostFunc_v2_ptsz, CUhostFn)
WITH_FLAGS(cuStreamAddCallback, CUstreamCallback)
WITH_FLAGS(cuStreamAddCallback_ptsz, CUstreamCallback)

EXPORT CUresult cuUserObjectCreate(void **object, void *user, CUhostFn function, unsigned int count,
                                   unsigned int flags);
CUresult cuUserObjectCreate(void **object, void *user, CUhostFn function, unsigned int count,
                            unsigned int flags)
{
    const struct hand_callback head = {0, (uintptr_t)function, (uintptr_t)user, flags, count};
    uint64_t made = 0;
    CUresult result =
        object ? submit_callback(CALL_cuUserObjectCreate, &head, &made) : CUDA_ERROR_INVALID_VALUE;

    if (result == CUDA_SUCCESS)
        *object = (void *)(uintptr_t)object_of_number(made);
    return result;
}

static CUresult register_function(unsigned int number, void *function, void *user,
                                  unsigned int device, void **made)
{
    const struct hand_callback head = {0, (uintptr_t)function, (uintptr_t)user, device, 0};
    uint64_t registration = 0;
    CUresult result =
        made ? submit_callback(number, &head, &registration) : CUDA_ERROR_INVALID_VALUE;

    if (result == CUDA_SUCCESS)
        *made = (void *)(uintptr_t)object_of_number(registration);
    return result;
}

EXPORT CUresult cuDeviceRegisterAsyncNotification(CUdevice device, NotificationFn function,
                                                  void *user, void **made);
CUresult cuDeviceRegisterAsyncNotification(CUdevice device, NotificationFn function, void *user,
                                           void **made)
{
    return register_function(CALL_cuDeviceRegisterAsyncNotification, (void *)function, user,
                             (unsigned int)device, made);
}

EXPORT CUresult cuLogsRegisterCallback(LogFn function, void *user, void **made);
CUresult cuLogsRegisterCallback(LogFn function, void *user, void **made)
{
    return register_function(CALL_cuLogsRegisterCallback, (void *)function, user, 0, made);
}
