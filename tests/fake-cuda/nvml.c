// SPDX-License-Identifier: MIT
/*
 * NVML over the same card: memory of the card, the processes that have some of it, and limits of
 * cgroups.
 *
 *   FAKE_NVML_LIMITS   0: a driver that has no such limits
 *   FAKE_NVML_GONE     1: the driver is not loaded
 *   FAKE_NVML_FAILS    1: the library cannot be used; 2: the GPU is lost; 3: its memory is not
 *                      reported
 *   FAKE_NVML_ECC      errors that could not be corrected
 *   FAKE_NVML_OLD      1: a GPU that reports no more than its memory
 *   FAKE_NVML_SWITCH   1: links lead to switches, not to GPUs
 *   FAKE_NVML_VERSION  the driver's version; 580.95.05
 *   FAKE_NVML_LAG      for so many ms it says of a process's memory what it said before; 0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "card.h"
#include "nvml_abi.h"

/* More than Linux has. */
#define NOBODY (1u << 22)

/* Handles are their addresses. */
static char handles[CARD_DEVICES];
/* For tests: called after the processes were looked at, and before the caller knows them. */
void (*fake_after_processes)(void);

/* In the way of that number. */
static nvmlReturn_t failure(unsigned long long way)
{
    return card_setting("FAKE_NVML_FAILS", 0) == way ? NVML_ERROR_UNINITIALIZED : NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return card_setting("FAKE_NVML_GONE", 0) ? NVML_ERROR_DRIVER_NOT_LOADED : failure(1);
}

nvmlReturn_t nvmlShutdown(void)
{
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    const char *set = getenv("FAKE_NVML_VERSION");

    snprintf(version, length, "%s", set ? set : "580.95.05");
    return NVML_SUCCESS;
}

static int index_of(nvmlDevice_t of)
{
    return (int)((char *)of - handles);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *found)
{
    for (int i = 0; i < card_devices(); i++) {
        if (strcasecmp(address, card_pci(i)))
            continue;
        *found = (nvmlDevice_t)&handles[i];
        return NVML_SUCCESS;
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = (unsigned int)card_devices();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *found)
{
    if (index >= (unsigned int)card_devices())
        return NVML_ERROR_INVALID_ARGUMENT;
    *found = (nvmlDevice_t)&handles[index];
    return failure(2);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t of, unsigned int *index)
{
    *index = (unsigned int)index_of(of);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t of, unsigned int *number)
{
    return nvmlDeviceGetIndex(of, number);
}

static void address_of(int device, nvmlPciInfo_t *info)
{
    *info = (nvmlPciInfo_t){0};
    snprintf(info->busId, sizeof(info->busId), "0000%s", card_pci(device));
    sscanf(card_pci(device), "%x:%x:%x", &info->domain, &info->bus, &info->device);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t of, nvmlPciInfo_t *info)
{
    address_of(index_of(of), info);
    return NVML_SUCCESS;
}

/* Each has so many links to each other one. */
#define LINKS 2

/* Where it leads to; -1: there is no such link. */
static int other_end(nvmlDevice_t of, unsigned int link)
{
    int to = (int)(link / LINKS);

    to += to >= index_of(of);
    return to < card_devices() ? to : -1;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t of, unsigned int link, unsigned int *is_active)
{
    *is_active = 1;
    return other_end(of, link) < 0 ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t of, unsigned int link, unsigned int *version)
{
    *version = 4;
    return other_end(of, link) < 0 ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

/* The first one: reads and writes of the other's memory; all are there. */
nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t of, unsigned int link, int capability,
                                           unsigned int *has)
{
    (void)capability;
    *has = 1;
    return other_end(of, link) < 0 ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

/* A GPU. */
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t of, unsigned int link, int *type)
{
    *type = card_setting("FAKE_NVML_SWITCH", 0) ? NVML_NVLINK_DEVICE_TYPE_SWITCH
                                                : NVML_NVLINK_DEVICE_TYPE_GPU;
    return other_end(of, link) < 0 ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t of, unsigned int link,
                                                 nvmlPciInfo_t *info)
{
    int to = other_end(of, link);

    if (to < 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    address_of(to, info);
    return NVML_SUCCESS;
}

/* Those of an A100. */
nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t of, unsigned int *count)
{
    (void)of;
    *count = 6912;
    return card_setting("FAKE_NVML_OLD", 0) ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t of, unsigned int kind, unsigned int *mhz)
{
    (void)of;
    *mhz = kind == NVML_CLOCK_MEM ? 1215 : 1410;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t of, unsigned int *bits)
{
    (void)of;
    *bits = 5120;
    return card_setting("FAKE_NVML_OLD", 0) ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other, int what, int *status)
{
    (void)what;
    *status = 0;
    return one == other ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

/* NVML_TOPOLOGY_SINGLE: under one bridge. */
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other, int *level)
{
    *level = 10;
    return one == other ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t of, int *major, int *minor)
{
    int capability = (int)card_setting("FAKE_CUDA_CAPABILITY", 100);

    (void)of;
    *major = capability / 10;
    *minor = capability % 10;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t of, char *name, unsigned int length)
{
    (void)of;
    snprintf(name, length, "Fake");
    return NVML_SUCCESS;
}

/* A card that uses the host's memory (GB10). */
static int has_no_memory(void)
{
    const char *set = getenv("FAKE_NVML_MEMORY");

    return set && !strcmp(set, "unsupported");
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t of, nvmlMemory_t *memory)
{
    struct card card;

    if (has_no_memory())
        return NVML_ERROR_NOT_SUPPORTED;
    card_look(&card);
    card.used = index_of(of) ? 0 : card.used;
    *memory =
        (nvmlMemory_t){.total = card.total, .free = card.total - card.used, .used = card.used};
    return NVML_SUCCESS;
}

/* The driver keeps 1 MiB for itself. */
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t of, nvmlMemory_v2_t *memory)
{
    struct card card;

    if (has_no_memory())
        return NVML_ERROR_NOT_SUPPORTED;
    card_look(&card);
    card.used = index_of(of) ? 0 : card.used;
    *memory = (nvmlMemory_v2_t){.version = memory->version,
                                .total = card.total,
                                .reserved = 1 << 20,
                                .free = card.total - card.used,
                                .used = card.used};
    return failure(3);
}

/* What it says of the memory of each process now. */
static void update_told(void)
{
    uint64_t lag = card_setting("FAKE_NVML_LAG", 0) * 1000000u, now = card_now();
    struct card *card = card_lock();

    for (unsigned int i = 0; i < CARD_PROCESSES; i++) {
        struct card_process *process = &card->processes[i];

        if (process->told_at && now < process->told_at + lag)
            continue;
        process->told = process->used;
        process->told_at = now;
    }
    card_unlock();
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t of, unsigned int *count,
                                                     nvmlProcessInfo_v2_t *infos)
{
    unsigned int room = *count;
    struct card card;

    update_told();
    card_look(&card);
    *count = 0;
    for (unsigned int i = 0; i < CARD_PROCESSES; i++) {
        if (!card.processes[i].pid || index_of(of))
            continue;
        if (*count < room && infos)
            infos[*count] = (nvmlProcessInfo_v2_t){.pid = (unsigned int)card.processes[i].pid,
                                                   .usedGpuMemory = card.processes[i].told};
        ++*count;
    }
    if (fake_after_processes)
        fake_after_processes();
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

/* Who is on the card, and then a process that this one cannot see. */
static unsigned int pids(unsigned int *list)
{
    struct card card;
    unsigned int count = 0;

    card_look(&card);
    for (unsigned int i = 0; i < CARD_PROCESSES; i++)
        if (card.processes[i].pid)
            list[count++] = (unsigned int)card.processes[i].pid;
    list[count++] = NOBODY;
    return count;
}

static nvmlReturn_t room_for(unsigned int *room, unsigned int count, const void *list)
{
    unsigned int had = *room;

    *room = count;
    return had < count || !list ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* The last one is none. */
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t of, unsigned int kind, unsigned long long since,
                                  unsigned int *type, unsigned int *count, nvmlSample_t *samples)
{
    static const unsigned int busy[] = {40, 61, 250};
    unsigned int found = sizeof(busy) / sizeof(busy[0]);

    (void)of;
    if (kind != NVML_GPU_UTILIZATION_SAMPLES || card_setting("FAKE_NVML_OLD", 0))
        return NVML_ERROR_NOT_SUPPORTED;
    *type = NVML_VALUE_TYPE_UNSIGNED_INT;
    if (room_for(count, found, samples))
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < found; i++)
        samples[i] = (nvmlSample_t){.timeStamp = since + i + 1, .sampleValue = {.uiVal = busy[i]}};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t of, nvmlProcessUtilizationSample_t *list,
                                             unsigned int *count, unsigned long long since)
{
    unsigned int all[CARD_PROCESSES + 1], found = pids(all);
    nvmlReturn_t result = room_for(count, found, list);

    (void)of;
    for (unsigned int i = 0; i < found && result == NVML_SUCCESS; i++)
        list[i] =
            (nvmlProcessUtilizationSample_t){.pid = all[i], .timeStamp = since + 1, .smUtil = 7};
    return result;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t of,
                                                   nvmlProcessesUtilizationInfo_v1_t *info)
{
    unsigned int all[CARD_PROCESSES + 1], found = pids(all);
    nvmlReturn_t result = room_for(&info->processSamplesCount, found, info->procUtilArray);

    (void)of;
    for (unsigned int i = 0; i < found && result == NVML_SUCCESS; i++)
        info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
            .pid = all[i], .timeStamp = info->lastSeenTimeStamp + 1, .smUtil = 7};
    return result;
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t of,
                                                   nvmlProcessDetailList_v1_t *info)
{
    unsigned int all[CARD_PROCESSES + 1], found = pids(all);
    nvmlReturn_t result = room_for(&info->numProcArrayEntries, found, info->procArray);

    (void)of;
    for (unsigned int i = 0; i < found && result == NVML_SUCCESS; i++)
        info->procArray[i] = (nvmlProcessDetail_v1_t){.pid = all[i], .gpuInstanceId = info->mode};
    return result;
}

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t of, unsigned int *count, unsigned int *list)
{
    unsigned int all[CARD_PROCESSES + 1], found = pids(all);
    nvmlReturn_t result = room_for(count, found, list);

    (void)of;
    if (result == NVML_SUCCESS)
        memcpy(list, all, found * sizeof(*list));
    return result;
}

/* Each process encodes, and captures. */
nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t of, unsigned int *count,
                                          nvmlEncoderSessionInfo_t *list)
{
    unsigned int all[CARD_PROCESSES + 1], found = pids(all);
    nvmlReturn_t result = room_for(count, found, list);

    (void)of;
    for (unsigned int i = 0; i < found && result == NVML_SUCCESS; i++)
        list[i] = (nvmlEncoderSessionInfo_t){.sessionId = i + 1, .pid = all[i], .averageFps = 60};
    return list ? result : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t of, unsigned int *count,
                                      nvmlFBCSessionInfo_t *list)
{
    unsigned int all[CARD_PROCESSES + 1], found = pids(all);
    nvmlReturn_t result = room_for(count, found, list);

    (void)of;
    for (unsigned int i = 0; i < found && result == NVML_SUCCESS; i++)
        list[i] = (nvmlFBCSessionInfo_t){.sessionId = i + 1, .pid = all[i], .averageFPS = 60};
    return list ? result : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t of, unsigned int pid,
                                          nvmlAccountingStats_t *stats)
{
    (void)of;
    (void)pid;
    (void)stats;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t of, nvmlAccountingStats_v2_t *stats)
{
    (void)of;
    stats->maxMemoryUsage = stats->pid;
    return NVML_SUCCESS;
}

static struct card_cgroup *find(struct card *card, const char *path)
{
    for (int i = 0; i < CARD_CGROUPS; i++)
        if (!strcmp(card->cgroups[i].path, path))
            return &card->cgroups[i];
    return NULL;
}

static bool has_limits(void)
{
    return card_setting("FAKE_NVML_LIMITS", 1);
}

nvmlReturn_t nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t of, nvmlSetMemoryLimits_v1_t *limits)
{
    struct card_cgroup *cgroup;
    nvmlReturn_t result = NVML_SUCCESS;

    (void)of;
    if (!has_limits())
        return NVML_ERROR_NOT_SUPPORTED;
    if (access(limits->nameSpace, F_OK) || strlen(limits->nameSpace) >= CARD_PATH)
        return NVML_ERROR_NOT_FOUND;
    cgroup = find(card_lock(), limits->nameSpace);
    if (!cgroup)
        cgroup = find(card_get(), "");
    if (!cgroup)
        result = NVML_ERROR_INSUFFICIENT_SIZE;
    else if (!limits->softLimit && limits->hardLimit == NVML_DEVICE_MEMORY_LIMIT_MAX)
        *cgroup = (struct card_cgroup){0};
    else {
        strcpy(cgroup->path, limits->nameSpace);
        cgroup->soft = limits->softLimit;
        cgroup->hard = limits->hardLimit;
    }
    card_unlock();
    return result;
}

nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t of, nvmlGetMemoryLimits_v1_t *limits)
{
    const struct card_cgroup *cgroup;

    (void)of;
    if (!has_limits())
        return NVML_ERROR_NOT_SUPPORTED;
    cgroup = find(card_lock(), limits->nameSpace);
    limits->softLimit = cgroup ? cgroup->soft : 0;
    limits->hardLimit = cgroup ? cgroup->hard : NVML_DEVICE_MEMORY_LIMIT_MAX;
    limits->currentUsed = card_used_by(card_get(), limits->nameSpace);
    card_unlock();
    return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    return result == NVML_ERROR_NOT_FOUND ? "Not Found" : "Some Error";
}

static nvmlReturn_t is_old(void)
{
    return card_setting("FAKE_NVML_OLD", 0) ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t of, int sensor, unsigned int *degrees)
{
    (void)of;
    (void)sensor;
    *degrees = 42;
    return is_old();
}

nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t of, nvmlMarginTemperature_t *margin)
{
    (void)of;
    margin->marginTemperature = 45;
    return margin->version == NVML_MARGIN_TEMPERATURE_V1 ? is_old() : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t of, unsigned int *mw)
{
    (void)of;
    *mw = 78290;
    return is_old();
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t of, unsigned long long *mj)
{
    (void)of;
    *mj = 123456;
    return is_old();
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t of, int kind, int counter,
                                         unsigned long long *count)
{
    (void)of;
    (void)counter;
    *count = kind == NVML_MEMORY_ERROR_TYPE_UNCORRECTED ? card_setting("FAKE_NVML_ECC", 0) : 5;
    return is_old();
}

/* The names of before their second versions, which drivers have as well. */
nvmlReturn_t nvmlInit(void)
{
    return nvmlInit_v2();
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return nvmlInit_v2();
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    snprintf(version, length, "13.580.95.05");
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 13020;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *found)
{
    return nvmlDeviceGetHandleByIndex_v2(index, found);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t of, char *uuid, unsigned int length)
{
    int room = snprintf(uuid, length, "GPU-%02x000000-0000-4000-8000-000000000000",
                        0x3b + (unsigned int)index_of(of));

    return room < (int)length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}
