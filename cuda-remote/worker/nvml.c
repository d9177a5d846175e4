// SPDX-License-Identifier: MIT
/*
 * A worker of a program that asks about its GPU and does not compute: it has NVML's door in place
 * of CUDA's. The door shows the slice's memory and processes, which are the slice's workers here.
 */
#include "worker.h"

#include "control_loop.h"
#include "nvml.h"
#include "nvml_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define LIBRARY        "libnvidia-ml.so.1"
#define TEXT_MOST      256u
#define PROCESSES_MOST 1024u

#define PROCESSES_IN_ANSWER (NVML_DATA_MOST / sizeof(nvmlProcessInfo_v2_t))

static void *functions[NVML_NUMBERS];
static nvmlReturn_t (*get_handle)(unsigned int, nvmlDevice_t *);

static void find_functions(void *library)
{
    static const char *const names[] = {
#define HAND(name)         [NVML_##name] = #name,
#define TEXT(name)         [NVML_##name] = #name,
#define NUMBER(name, type) [NVML_##name] = #name,
#define CHOICE(name)       [NVML_##name] = #name,
#define PAIR(name, type)   [NVML_##name] = #name,
#include "nvml.def"
#undef HAND
#undef TEXT
#undef NUMBER
#undef CHOICE
#undef PAIR
    };

    for (unsigned int i = 1; i < NVML_NUMBERS; i++)
        functions[i] = dlsym(library, names[i]);
    *(void **)&get_handle = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
}

/* Beside CUDA's door. */
static nvmlReturn_t load_library(const char *cuda)
{
    const char *end = strrchr(cuda, '/');
    nvmlReturn_t (*begin)(void);
    char path[4096];
    void *library;

    snprintf(path, sizeof(path), "%.*s" LIBRARY, end ? (int)(end + 1 - cuda) : 0, cuda);
    library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        worker_say("cannot load NVML: %s", dlerror());
        return NVML_ERROR_DRIVER_NOT_LOADED;
    }
    find_functions(library);
    *(void **)&begin = dlsym(library, "nvmlInit_v2");
    return begin && get_handle ? begin() : NVML_ERROR_DRIVER_NOT_LOADED;
}

static nvmlReturn_t give_text(void *function, nvmlDevice_t device, struct nvml_answer *answer)
{
    answer->bytes = TEXT_MOST;
    return ((nvmlReturn_t(*)(nvmlDevice_t, char *, unsigned int))function)(
        device, (char *)answer->data, TEXT_MOST);
}

static nvmlReturn_t give_choice(void *function, nvmlDevice_t device, unsigned int which,
                                struct nvml_answer *answer)
{
    unsigned int number = 0;
    nvmlReturn_t result = ((nvmlReturn_t(*)(nvmlDevice_t, unsigned int, unsigned int *))function)(
        device, which, &number);

    answer->number[0] = number;
    return result;
}

/* What is written is as wide as the function says, or less. */
static nvmlReturn_t give_numbers(void *function, nvmlDevice_t device, struct nvml_answer *answer)
{
    return ((nvmlReturn_t(*)(nvmlDevice_t, uint64_t *, uint64_t *))function)(
        device, &answer->number[0], &answer->number[1]);
}

static nvmlReturn_t give_structure(void *function, nvmlDevice_t device, size_t bytes,
                                   struct nvml_answer *answer)
{
    answer->bytes = bytes;
    return ((nvmlReturn_t(*)(nvmlDevice_t, void *))function)(device, answer->data);
}

/* A worker's name has the number of its program (control.c), which knows no other. */
static void name_program(nvmlProcessInfo_v2_t *process)
{
    char path[64], name[32] = "";
    unsigned int pid;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%u/comm", process->pid);
    file = fopen(path, "re");
    if (!file)
        return;
    if (fgets(name, sizeof(name), file) && sscanf(name, WORKER_NAME "%u", &pid) == 1)
        process->pid = pid;
    fclose(file);
}

/* Those from @first on. */
static nvmlReturn_t give_processes(void *function, nvmlDevice_t device, unsigned int first,
                                   struct nvml_answer *answer)
{
    nvmlProcessInfo_v2_t processes[PROCESSES_MOST], *to = (nvmlProcessInfo_v2_t *)answer->data;
    unsigned int count = PROCESSES_MOST, given = 0;
    nvmlReturn_t result =
        ((nvmlReturn_t(*)(nvmlDevice_t, unsigned int *, nvmlProcessInfo_v2_t *))function)(
            device, &count, processes);

    answer->number[0] = count;
    if (result != NVML_SUCCESS)
        return result;
    for (unsigned int i = first; i < count && given < PROCESSES_IN_ANSWER; i++, given++) {
        to[given] = processes[i];
        name_program(&to[given]);
    }
    answer->bytes = given * sizeof(*to);
    return result;
}

static nvmlReturn_t give_system(enum nvml_number number, void *function, struct nvml_answer *answer)
{
    if (number == NVML_nvmlSystemGetCudaDriverVersion_v2 || number == NVML_nvmlDeviceGetCount_v2)
        return ((nvmlReturn_t(*)(uint64_t *))function)(&answer->number[0]);
    answer->bytes = TEXT_MOST;
    return ((nvmlReturn_t(*)(char *, unsigned int))function)((char *)answer->data, TEXT_MOST);
}

static nvmlReturn_t answer_question(enum nvml_number number, unsigned int index, unsigned int which,
                                    struct nvml_answer *answer)
{
    void *function = number > NVML_NONE && number < NVML_NUMBERS ? functions[number] : NULL;
    nvmlDevice_t device;
    nvmlReturn_t result;

    if (!function)
        return NVML_ERROR_NOT_SUPPORTED;
    if (number <= NVML_nvmlDeviceGetCount_v2)
        return give_system(number, function, answer);
    result = get_handle(index, &device);
    if (result != NVML_SUCCESS)
        return result;
    switch (number) {
    case NVML_nvmlDeviceGetPciInfo_v3:
        return give_structure(function, device, sizeof(nvmlPciInfo_t), answer);
    case NVML_nvmlDeviceGetMemoryInfo:
        return give_structure(function, device, sizeof(nvmlMemory_t), answer);
    case NVML_nvmlDeviceGetMemoryInfo_v2:
        ((nvmlMemory_v2_t *)answer->data)->version = NVML_MEMORY_V2;
        return give_structure(function, device, sizeof(nvmlMemory_v2_t), answer);
    case NVML_nvmlDeviceGetUtilizationRates:
        return give_structure(function, device, 2 * sizeof(unsigned int), answer);
    case NVML_nvmlDeviceGetComputeRunningProcesses_v3:
    case NVML_nvmlDeviceGetGraphicsRunningProcesses_v3:
    case NVML_nvmlDeviceGetMPSComputeRunningProcesses_v3:
        return give_processes(function, device, which, answer);
#define HAND(name)
#define TEXT(name)                                                                                 \
    case NVML_##name:                                                                              \
        return give_text(function, device, answer);
#define NUMBER(name, type)                                                                         \
    case NVML_##name:                                                                              \
        return give_numbers(function, device, answer);
#define CHOICE(name)                                                                               \
    case NVML_##name:                                                                              \
        return give_choice(function, device, which, answer);
#define PAIR(name, type) NUMBER(name, type)
#include "nvml.def"
    default:
        return NVML_ERROR_NOT_SUPPORTED;
    }
}

bool nvml_is_asked(int socket)
{
    struct control_message message;
    ssize_t got = recv(socket, &message, sizeof(message), MSG_PEEK | MSG_TRUNC);

    return got == (ssize_t)sizeof(message) && message.magic == CONTROL_MAGIC &&
           message.kind == CONTROL_NVML;
}

int nvml_serve(int socket, const char *cuda)
{
    nvmlReturn_t loaded = load_library(cuda);
    struct control_message message;

    while (recv(socket, &message, sizeof(message), MSG_TRUNC) == (ssize_t)sizeof(message) &&
           message.magic == CONTROL_MAGIC && message.kind == CONTROL_NVML) {
        struct nvml_answer answer = {.reply = {.magic = CONTROL_MAGIC}};

        answer.reply.value =
            loaded != NVML_SUCCESS
                ? loaded
                : answer_question(message.bytes < NVML_NUMBERS ? (enum nvml_number)message.bytes
                                                               : NVML_NONE,
                                  (unsigned int)message.address,
                                  (unsigned int)(message.address >> 32), &answer);
        if (send(socket, &answer, sizeof(answer), MSG_NOSIGNAL) != (ssize_t)sizeof(answer))
            break;
    }
    return 0;
}
