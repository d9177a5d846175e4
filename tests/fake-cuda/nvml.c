// SPDX-License-Identifier: MIT
/* NVML over the same card: memory of the card, and the processes that have some of it. */
#include <stdio.h>
#include <string.h>

#include "card.h"
#include "nvml_abi.h"

static char device;

nvmlReturn_t nvmlInit_v2(void)
{
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void)
{
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *found)
{
    if (strcasecmp(address, card_pci()))
        return NVML_ERROR_INVALID_ARGUMENT;
    *found = (nvmlDevice_t)&device;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *found)
{
    if (index)
        return NVML_ERROR_INVALID_ARGUMENT;
    *found = (nvmlDevice_t)&device;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t of, nvmlPciInfo_t *info)
{
    (void)of;
    *info = (nvmlPciInfo_t){0};
    snprintf(info->busId, sizeof(info->busId), "0000%s", card_pci());
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t of, nvmlMemory_t *memory)
{
    struct card card;

    (void)of;
    card_look(&card);
    *memory =
        (nvmlMemory_t){.total = card.total, .free = card.total - card.used, .used = card.used};
    return NVML_SUCCESS;
}

/* The driver keeps 1 MiB for itself. */
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t of, nvmlMemory_v2_t *memory)
{
    struct card card;

    (void)of;
    card_look(&card);
    *memory = (nvmlMemory_v2_t){.version = memory->version,
                                .total = card.total,
                                .reserved = 1 << 20,
                                .free = card.total - card.used,
                                .used = card.used};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t of, unsigned int *count,
                                                     nvmlProcessInfo_v2_t *infos)
{
    unsigned int room = *count;
    struct card card;

    (void)of;
    card_look(&card);
    *count = 0;
    for (unsigned int i = 0; i < CARD_PROCESSES; i++) {
        if (!card.processes[i].pid)
            continue;
        if (*count < room && infos)
            infos[*count] = (nvmlProcessInfo_v2_t){.pid = (unsigned int)card.processes[i].pid,
                                                   .usedGpuMemory = card.processes[i].used};
        ++*count;
    }
    return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t of, unsigned int *count,
                                                  nvmlProcessInfo_v1_t *infos)
{
    nvmlProcessInfo_v2_t all[CARD_PROCESSES];
    unsigned int found = CARD_PROCESSES, room = *count;

    nvmlDeviceGetComputeRunningProcesses_v3(of, &found, all);
    for (unsigned int i = 0; i < found && i < room && infos; i++)
        infos[i] = (nvmlProcessInfo_v1_t){.pid = all[i].pid, .usedGpuMemory = all[i].usedGpuMemory};
    *count = found;
    return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t of, int sensor, unsigned int *degrees)
{
    (void)of;
    (void)sensor;
    *degrees = 42;
    return NVML_SUCCESS;
}
