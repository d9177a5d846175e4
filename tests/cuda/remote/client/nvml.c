// SPDX-License-Identifier: MIT
/* What a program of a slice is told of its GPU by NVML: what the driver tells it of its memory, and
 * itself as the one process. */
#include "client.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nvml_abi.h"

static void *library;

/* Called with what the function takes. */
#define NVML(name, ...)       ((nvmlReturn_t(*)())dlsym(library, #name))(__VA_ARGS__)
#define nvml_is(call, wanted) is((CUresult)(call), (int)(wanted))
#define nvml_ok(call)         nvml_is(call, NVML_SUCCESS)

static void check_memory_info(nvmlDevice_t device)
{
    nvmlMemory_v2_t second = {.version = NVML_MEMORY_V2};
    size_t left, total;
    nvmlMemory_t memory;

    ok(cuMemGetInfo_v2(&left, &total));
    nvml_ok(NVML(nvmlDeviceGetMemoryInfo, device, &memory));
    must(memory.total == total && memory.free == left && memory.used == total - left);
    nvml_ok(NVML(nvmlDeviceGetMemoryInfo_v2, device, &second));
    must(second.total == total && second.used == memory.used && !second.reserved);
    second.version = 1;
    nvml_is(NVML(nvmlDeviceGetMemoryInfo_v2, device, &second),
            NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

static void check_processes(nvmlDevice_t device)
{
    nvmlProcessInfo_v2_t processes[4];
    unsigned int count = 0;

    nvml_is(NVML(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, NULL),
            NVML_ERROR_INSUFFICIENT_SIZE);
    must(count == 1);
    nvml_ok(NVML(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, processes));
    must(count == 1 && processes[0].pid == (unsigned int)getpid());
    must(processes[0].usedGpuMemory >= 32 * MIB);
    nvml_ok(NVML(nvmlDeviceGetComputeRunningProcesses_v2, device, &count, processes));
}

static void check_facts_of(nvmlDevice_t device)
{
    char by_cuda[96], name[96], uuid[96], tiny[2];
    nvmlDevice_t same = NULL;
    unsigned int index = 7;
    nvmlPciInfo_t place;

    ok(cuDeviceGetName(by_cuda, sizeof(by_cuda), 0));
    nvml_ok(NVML(nvmlDeviceGetName, device, name, 96u));
    must(!strcmp(name, by_cuda));
    nvml_is(NVML(nvmlDeviceGetName, device, tiny, 2u), NVML_ERROR_INSUFFICIENT_SIZE);
    nvml_ok(NVML(nvmlDeviceGetIndex, device, &index));
    must(index == 0);
    nvml_ok(NVML(nvmlDeviceGetUUID, device, uuid, 96u));
    nvml_ok(NVML(nvmlDeviceGetHandleByUUID, uuid, &same));
    must(same == device);
    nvml_ok(NVML(nvmlDeviceGetPciInfo_v3, device, &place));
    same = NULL;
    nvml_ok(NVML(nvmlDeviceGetHandleByPciBusId_v2, place.busId, &same));
    must(same == device);
    nvml_is(NVML(nvmlDeviceGetHandleByUUID, "GPU-none", &same), NVML_ERROR_NOT_FOUND);
    nvml_is(NVML(nvmlDeviceSetPowerManagementLimit, device, 1u), NVML_ERROR_NOT_SUPPORTED);
    nvml_is(NVML(nvmlDeviceGetName, (nvmlDevice_t)name, name, 96u), NVML_ERROR_INVALID_ARGUMENT);
}

/* It has a connection of its own. */
static void check_in_child(nvmlDevice_t device)
{
    nvmlMemory_t memory = {.total = 0};
    pid_t child = fork();
    int status;

    if (!child)
        _exit(NVML(nvmlDeviceGetMemoryInfo, device, &memory) != NVML_SUCCESS || !memory.total);
    must(waitpid(child, &status, 0) == child && status == 0);
    nvml_ok(NVML(nvmlDeviceGetMemoryInfo, device, &memory));
}

static nvmlDevice_t begin_nvml(void)
{
    unsigned int count = 0;
    nvmlDevice_t device;

    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    must(library != NULL);
    nvml_is(NVML(nvmlDeviceGetCount_v2, &count), NVML_ERROR_UNINITIALIZED);
    nvml_ok(NVML(nvmlInit_v2));
    nvml_ok(NVML(nvmlDeviceGetCount_v2, &count));
    must(count >= 1);
    nvml_is(NVML(nvmlDeviceGetHandleByIndex_v2, count, &device), NVML_ERROR_INVALID_ARGUMENT);
    nvml_ok(NVML(nvmlDeviceGetHandleByIndex_v2, 0u, &device));
    return device;
}

static void end_nvml(void)
{
    unsigned int count;

    nvml_ok(NVML(nvmlShutdown));
    nvml_is(NVML(nvmlDeviceGetCount_v2, &count), NVML_ERROR_UNINITIALIZED);
}

static void check_beside_cuda(nvmlDevice_t device)
{
    begin_context();
    allocate_device(32 * MIB);
    check_memory_info(device);
    check_facts_of(device);
}

void check_nvml(void)
{
    nvmlDevice_t device = begin_nvml();

    check_beside_cuda(device);
    check_processes(device);
    check_in_child(device);
    end_nvml();
}

/* Behind an engine's or a guard's unit workers do not see each other, so none is listed. */
void check_nvml_of_unit(void)
{
    nvmlDevice_t device = begin_nvml();
    unsigned int count = 0;

    check_beside_cuda(device);
    nvml_ok(NVML(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, NULL));
    must(count == 0);
    check_in_child(device);
    end_nvml();
}

/* A child has no engine there (vm.c). */
void check_nvml_of_vm(void)
{
    nvmlDevice_t device = begin_nvml();

    check_beside_cuda(device);
    check_processes(device);
    end_nvml();
    nvml_ok(NVML(nvmlInit_v2));
    end_nvml();
}

void check_lost_nvml(void)
{
    nvmlDevice_t device = begin_nvml();
    nvmlMemory_t memory;

    puts("holding");
    fflush(stdout);
    while (NVML(nvmlDeviceGetMemoryInfo, device, &memory) == NVML_SUCCESS)
        usleep(1000);
    nvml_is(NVML(nvmlDeviceGetMemoryInfo, device, &memory), NVML_ERROR_DRIVER_NOT_LOADED);
    end_nvml();
}

/* There is no worker that could be asked. */
void check_no_nvml(void)
{
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    must(library != NULL);
    nvml_is(NVML(nvmlInit_v2), NVML_ERROR_DRIVER_NOT_LOADED);
}
