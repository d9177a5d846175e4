// SPDX-License-Identifier: MIT
/*
 * libnvidia-ml.so.1 of a program whose GPU is elsewhere: it asks a worker of its own on the host,
 * by the way that CUDA has there (wire/nvml.h). Nothing happens when it is loaded.
 */
#include "nvml.h"

#include "nvml_abi.h"
#include "lost_memory.h"
#include "transport.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Handles are places here, and nothing is read there. */
#define DEVICES_MOST 64u

static const char devices[DEVICES_MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned int users;
static const struct transport *transport; /* NULL: there is no worker */
static pid_t connected_pid;

/* With the lock. */
static void leave_worker(void)
{
    if (transport)
        transport->close();
    transport = NULL;
}

/*
 * Another thread may have had the lock, which is not in the child. Of its parent's connection the
 * child has a descriptor and no memory, while nothing else can have taken their places.
 */
static void begin_child(void)
{
    pthread_mutex_init(&lock, NULL);
    lost_memory_begin_child();
    leave_worker();
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, begin_child);
}

/* With the lock. A process that was made without fork()'s handlers keeps its parent's descriptor.
 */
static bool connect_worker(void)
{
    const char *path, *why;

    if (transport && connected_pid == getpid())
        return true;
    transport = transport_find(CONTROL_MINOR_NVML, &path, &why);
    connected_pid = getpid();
    return transport;
}

static nvmlReturn_t ask_worker(enum nvml_number number, unsigned int device, unsigned int which,
                               struct nvml_answer *answer)
{
    const struct control_message question = nvml_question(number, device, which);
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    bool is_answered = false;

    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    if (connect_worker()) {
        is_answered = transport->ask(&question, sizeof(question), answer, sizeof(*answer)) &&
                      answer->reply.magic == CONTROL_MAGIC && answer->reply.result == CONTROL_OK &&
                      answer->bytes <= NVML_DATA_MOST;
        if (!is_answered)
            leave_worker();
    }
    pthread_mutex_unlock(&lock);
    return is_answered ? (nvmlReturn_t)answer->reply.value : NVML_ERROR_DRIVER_NOT_LOADED;
}

/* About one GPU. */
static nvmlReturn_t ask_device(enum nvml_number number, nvmlDevice_t device, unsigned int which,
                               struct nvml_answer *answer)
{
    uintptr_t index = (uintptr_t)device - (uintptr_t)devices;

    if (!users)
        return NVML_ERROR_UNINITIALIZED;
    if (index >= DEVICES_MOST)
        return NVML_ERROR_INVALID_ARGUMENT;
    return ask_worker(number, (unsigned int)index, which, answer);
}

static nvmlReturn_t ask_system(enum nvml_number number, struct nvml_answer *answer)
{
    return users ? ask_worker(number, 0, 0, answer) : NVML_ERROR_UNINITIALIZED;
}

static nvmlReturn_t put_text(nvmlReturn_t result, struct nvml_answer *answer, char *to,
                             unsigned int room)
{
    if (result != NVML_SUCCESS)
        return result;
    answer->data[NVML_DATA_MOST - 1] = 0;
    if (!to)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen((const char *)answer->data) >= room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, (const char *)answer->data);
    return NVML_SUCCESS;
}

#define TEXT(name)                                                                                 \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, char *to, unsigned int room);                    \
    nvmlReturn_t name(nvmlDevice_t device, char *to, unsigned int room)                            \
    {                                                                                              \
        struct nvml_answer answer;                                                                 \
                                                                                                   \
        return put_text(ask_device(NVML_##name, device, 0, &answer), &answer, to, room);           \
    }
#define NUMBER(name, type)                                                                         \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, type *to);                                       \
    nvmlReturn_t name(nvmlDevice_t device, type *to)                                               \
    {                                                                                              \
        struct nvml_answer answer;                                                                 \
        nvmlReturn_t result =                                                                      \
            to ? ask_device(NVML_##name, device, 0, &answer) : NVML_ERROR_INVALID_ARGUMENT;        \
                                                                                                   \
        if (result == NVML_SUCCESS)                                                                \
            *to = (type)answer.number[0];                                                          \
        return result;                                                                             \
    }
#define CHOICE(name)                                                                               \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned int which, unsigned int *to);           \
    nvmlReturn_t name(nvmlDevice_t device, unsigned int which, unsigned int *to)                   \
    {                                                                                              \
        struct nvml_answer answer;                                                                 \
        nvmlReturn_t result =                                                                      \
            to ? ask_device(NVML_##name, device, which, &answer) : NVML_ERROR_INVALID_ARGUMENT;    \
                                                                                                   \
        if (result == NVML_SUCCESS)                                                                \
            *to = (unsigned int)answer.number[0];                                                  \
        return result;                                                                             \
    }
#define PAIR(name, type)                                                                           \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, type *one, type *other);                         \
    nvmlReturn_t name(nvmlDevice_t device, type *one, type *other)                                 \
    {                                                                                              \
        struct nvml_answer answer;                                                                 \
        nvmlReturn_t result = one && other ? ask_device(NVML_##name, device, 0, &answer)           \
                                           : NVML_ERROR_INVALID_ARGUMENT;                          \
                                                                                                   \
        if (result != NVML_SUCCESS)                                                                \
            return result;                                                                         \
        *one = (type)answer.number[0];                                                             \
        *other = (type)answer.number[1];                                                           \
        return result;                                                                             \
    }
#define HAND(name)
#include "nvml.def"

/* A structure, of which as many bytes are the worker's. */
static nvmlReturn_t ask_structure(enum nvml_number number, nvmlDevice_t device, void *to,
                                  size_t bytes)
{
    struct nvml_answer answer;
    nvmlReturn_t result = to ? ask_device(number, device, 0, &answer) : NVML_ERROR_INVALID_ARGUMENT;

    if (result == NVML_SUCCESS && answer.bytes != bytes)
        return NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS)
        memcpy(to, answer.data, bytes);
    return result;
}

/* nvmlUtilization_t: two numbers. */
EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, unsigned int *rates);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, unsigned int *rates)
{
    return ask_structure(NVML_nvmlDeviceGetUtilizationRates, device, rates, 2 * sizeof(*rates));
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    return ask_structure(NVML_nvmlDeviceGetPciInfo_v3, device, info, sizeof(*info));
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    return ask_structure(NVML_nvmlDeviceGetMemoryInfo, device, memory, sizeof(*memory));
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    if (memory && memory->version != NVML_MEMORY_V2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return ask_structure(NVML_nvmlDeviceGetMemoryInfo_v2, device, memory, sizeof(*memory));
}

/*
 * As the driver: *count is the room on entry, and the number of processes on return. An answer has
 * a part of them, and all of it may have changed before the next one.
 */
static nvmlReturn_t list_processes(enum nvml_number number, nvmlDevice_t device,
                                   unsigned int *count, nvmlProcessInfo_v2_t *to)
{
    unsigned int room = count ? *count : 0, found = 0, all = 0;

    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    do {
        struct nvml_answer answer;
        nvmlReturn_t result = ask_device(number, device, found, &answer);
        unsigned int given = (unsigned int)(answer.bytes / sizeof(*to));

        if (result != NVML_SUCCESS)
            return result;
        all = (unsigned int)answer.number[0];
        *count = all;
        if (!given)
            break;
        if (room < all)
            return NVML_ERROR_INSUFFICIENT_SIZE;
        if (!to)
            return NVML_ERROR_INVALID_ARGUMENT;
        given = given < room - found ? given : room - found;
        memcpy(to + found, answer.data, given * sizeof(*to));
        found += given;
    } while (found < all);
    *count = found;
    return NVML_SUCCESS;
}

#define PROCESSES(name)                                                                            \
    EXPORT nvmlReturn_t name##_v3(nvmlDevice_t device, unsigned int *count,                        \
                                  nvmlProcessInfo_v2_t *to);                                       \
    nvmlReturn_t name##_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *to)     \
    {                                                                                              \
        return list_processes(NVML_##name##_v3, device, count, to);                                \
    }                                                                                              \
    EXPORT nvmlReturn_t name##_v2(nvmlDevice_t device, unsigned int *count,                        \
                                  nvmlProcessInfo_v2_t *to);                                       \
    nvmlReturn_t name##_v2(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *to)     \
    {                                                                                              \
        return list_processes(NVML_##name##_v3, device, count, to);                                \
    }
PROCESSES(nvmlDeviceGetComputeRunningProcesses)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)

/* A worker that can't ask the driver says so with the first answer. */
EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags);
nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    struct nvml_answer answer;
    nvmlReturn_t result = ask_worker(NVML_nvmlDeviceGetCount_v2, 0, 0, &answer);

    (void)flags;
    if (result == NVML_SUCCESS)
        users++;
    return result;
}

EXPORT nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

EXPORT nvmlReturn_t nvmlInit(void);
nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

/* The last one ends the worker. */
EXPORT nvmlReturn_t nvmlShutdown(void);
nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t result = NVML_SUCCESS;

    pthread_mutex_lock(&lock);
    if (!users)
        result = NVML_ERROR_UNINITIALIZED;
    else if (--users == 0 && connected_pid == getpid())
        leave_worker();
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *to, unsigned int room);
nvmlReturn_t nvmlSystemGetDriverVersion(char *to, unsigned int room)
{
    struct nvml_answer answer;

    return put_text(ask_system(NVML_nvmlSystemGetDriverVersion, &answer), &answer, to, room);
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *to, unsigned int room);
nvmlReturn_t nvmlSystemGetNVMLVersion(char *to, unsigned int room)
{
    struct nvml_answer answer;

    return put_text(ask_system(NVML_nvmlSystemGetNVMLVersion, &answer), &answer, to, room);
}

static nvmlReturn_t get_system_number(enum nvml_number number, unsigned int *to)
{
    struct nvml_answer answer;
    nvmlReturn_t result = to ? ask_system(number, &answer) : NVML_ERROR_INVALID_ARGUMENT;

    if (result == NVML_SUCCESS)
        *to = (unsigned int)answer.number[0];
    return result;
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return get_system_number(NVML_nvmlSystemGetCudaDriverVersion_v2, (unsigned int *)version);
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version);
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    return get_system_number(NVML_nvmlDeviceGetCount_v2, count);
}

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int *count);
nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    unsigned int count = 0;
    nvmlReturn_t result = nvmlDeviceGetCount_v2(&count);

    if (result != NVML_SUCCESS)
        return result;
    if (!device || index >= count || index >= DEVICES_MOST)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = (nvmlDevice_t)(uintptr_t)&devices[index];
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    uintptr_t at = (uintptr_t)device - (uintptr_t)devices;

    if (!index || at >= DEVICES_MOST)
        return NVML_ERROR_INVALID_ARGUMENT;
    *index = (unsigned int)at;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    char is[256];

    for (unsigned int i = 0; uuid && nvmlDeviceGetHandleByIndex_v2(i, device) == NVML_SUCCESS; i++)
        if (nvmlDeviceGetUUID(*device, is, sizeof(is)) == NVML_SUCCESS && !strcmp(is, uuid))
            return NVML_SUCCESS;
    return users ? NVML_ERROR_NOT_FOUND : NVML_ERROR_UNINITIALIZED;
}

/* A domain has four digits, or eight. */
static bool is_place(const nvmlPciInfo_t *info, const char *place)
{
    return !strcasecmp(info->busId + strspn(info->busId, "0"), place + strspn(place, "0"));
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *place, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *place, nvmlDevice_t *device)
{
    nvmlPciInfo_t info;

    for (unsigned int i = 0; place && nvmlDeviceGetHandleByIndex_v2(i, device) == NVML_SUCCESS; i++)
        if (nvmlDeviceGetPciInfo_v3(*device, &info) == NVML_SUCCESS && is_place(&info, place))
            return NVML_SUCCESS;
    return users ? NVML_ERROR_NOT_FOUND : NVML_ERROR_UNINITIALIZED;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t result);
const char *nvmlErrorString(nvmlReturn_t result)
{
    static const char *const texts[] = {
        [NVML_SUCCESS] = "Success",
        [NVML_ERROR_UNINITIALIZED] = "Uninitialized",
        [NVML_ERROR_INVALID_ARGUMENT] = "Invalid Argument",
        [NVML_ERROR_NOT_SUPPORTED] = "Not Supported",
        [NVML_ERROR_NO_PERMISSION] = "Insufficient Permissions",
        [NVML_ERROR_NOT_FOUND] = "Not Found",
        [NVML_ERROR_INSUFFICIENT_SIZE] = "Insufficient Size",
        [NVML_ERROR_DRIVER_NOT_LOADED] = "Driver Not Loaded",
        [NVML_ERROR_FUNCTION_NOT_FOUND] = "Function Not Found",
        [NVML_ERROR_ARGUMENT_VERSION_MISMATCH] = "Argument version mismatch",
    };
    size_t at = (size_t)result;

    return at < sizeof(texts) / sizeof(texts[0]) && texts[at] ? texts[at] : "Unknown Error";
}
