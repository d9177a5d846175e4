// SPDX-License-Identifier: MIT
/*
 * Processes that use a device. If the device has a slice, only processes are listed that the caller
 * can see and that are in its cgroup or below it, as those of a container or a job are. Other
 * tenants' processes are not listed.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"
#include "slice.h"

#define PROCESSES_MAX 4096
/* Of one tenant. */
#define SESSIONS_MAX 256
#define CGROUP_MAX   1024

/* The path in the unified hierarchy. False: the process is not visible here. */
static bool cgroup_of(const char *pid, char cgroup[CGROUP_MAX])
{
    char path[64], line[CGROUP_MAX];
    bool found = false;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%s/cgroup", pid);
    file = fopen(path, "re");
    if (!file)
        return false;
    while (!found && fgets(line, sizeof(line), file)) {
        found = !strncmp(line, "0::", 3);
        if (found) {
            line[strcspn(line, "\n")] = 0;
            memmove(cgroup, line + 3, strlen(line + 3) + 1);
        }
    }
    fclose(file);
    return found;
}

static bool is_in(unsigned int pid, const char *own)
{
    size_t length = strlen(own);
    char number[16], cgroup[CGROUP_MAX];

    snprintf(number, sizeof(number), "%u", pid);
    if (!cgroup_of(number, cgroup) || strncmp(cgroup, own, length))
        return false;
    return !cgroup[length] || cgroup[length] == '/' || (length && own[length - 1] == '/');
}

/**
 * struct entry - of a list
 * @pid_at: where it has its process
 */
struct entry {
    size_t size;
    size_t pid_at;
};

/* Moves our entries to the front and returns their count. */
static unsigned int keep_ours(char *infos, unsigned int count, struct entry entry)
{
    char own[CGROUP_MAX];
    unsigned int kept = 0;

    if (!cgroup_of("self", own))
        return 0;
    for (unsigned int i = 0; i < count; i++) {
        unsigned int pid;

        memcpy(&pid, infos + i * entry.size + entry.pid_at, sizeof(pid));
        if (is_in(pid, own))
            memmove(infos + kept++ * entry.size, infos + i * entry.size, entry.size);
    }
    return kept;
}

/* As NVML: *count is the room in @infos on entry, and the number of processes on return. */
static nvmlReturn_t give_found(unsigned int *count, void *infos, const char *found,
                               unsigned int kept, size_t size)
{
    unsigned int room = *count;

    *count = kept;
    if (!kept)
        return NVML_SUCCESS;
    if (room < kept)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (!infos)
        return NVML_ERROR_INVALID_ARGUMENT;
    memcpy(infos, found, kept * size);
    return NVML_SUCCESS;
}

/* Fills @infos as the driver does; @data: of the call. */
typedef nvmlReturn_t lister(nvmlDevice_t device, unsigned int *count, void *infos, void *data);

static nvmlReturn_t list_entries(nvmlDevice_t device, unsigned int *count, void *infos,
                                 struct entry entry, lister *function, void *data)
{
    unsigned int all = PROCESSES_MAX;
    nvmlReturn_t result;
    char *found;

    if (!count || !slice_of(device))
        return function(device, count, infos, data);
    found = calloc(PROCESSES_MAX, entry.size);
    if (!found)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    result = function(device, &all, found, data);
    if (result == NVML_SUCCESS)
        result = give_found(count, infos, found, keep_ours(found, all, entry), entry.size);
    free(found);
    return result;
}

/* name##_of() asks the driver. */
#define LISTER(name)                                                                               \
    static nvmlReturn_t name##_of(nvmlDevice_t device, unsigned int *count, void *infos,           \
                                  void *data)                                                      \
    {                                                                                              \
        (void)data;                                                                                \
        return DRIVER(name, device, count, infos);                                                 \
    }

#define LIST(name, info)                                                                           \
    LISTER(name)                                                                                   \
                                                                                                   \
    nvmlReturn_t name(nvmlDevice_t device, unsigned int *infoCount, info *infos)                   \
    {                                                                                              \
        return list_entries(device, infoCount, infos, (struct entry){.size = sizeof(info)},        \
                            name##_of, NULL);                                                      \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetAccountingPids, unsigned int)

/* Without room these two tell how many there are. */
#define LIST_SESSIONS(name, info)                                                                  \
    LISTER(name)                                                                                   \
                                                                                                   \
    nvmlReturn_t name(nvmlDevice_t device, unsigned int *sessionCount, info *sessionInfos)         \
    {                                                                                              \
        const struct entry entry = {.size = sizeof(info), .pid_at = offsetof(info, pid)};          \
        info found[SESSIONS_MAX];                                                                  \
                                                                                                   \
        if (!sessionInfos && sessionCount && slice_of(device)) {                                   \
            *sessionCount = SESSIONS_MAX;                                                          \
            sessionInfos = found;                                                                  \
        }                                                                                          \
        return list_entries(device, sessionCount, sessionInfos, entry, name##_of, NULL);           \
    }

LIST_SESSIONS(nvmlDeviceGetEncoderSessions, nvmlEncoderSessionInfo_t)
LIST_SESSIONS(nvmlDeviceGetFBCSessions, nvmlFBCSessionInfo_t)

/* The driver keeps accounts of processes that have ended, too, which are not in sight. */
static bool may_see(nvmlDevice_t device, unsigned int pid)
{
    char own[CGROUP_MAX];

    return !slice_of(device) || (cgroup_of("self", own) && is_in(pid, own));
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                          nvmlAccountingStats_t *stats)
{
    return may_see(device, pid) ? DRIVER(nvmlDeviceGetAccountingStats, device, pid, stats)
                                : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t device, nvmlAccountingStats_v2_t *stats)
{
    return !stats || may_see(device, stats->pid)
               ? DRIVER(nvmlDeviceGetAccountingStats_v2, device, stats)
               : NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t sample_processes(nvmlDevice_t device, unsigned int *count, void *infos,
                                     void *since)
{
    return DRIVER(nvmlDeviceGetProcessUtilization, device, infos, count,
                  *(const unsigned long long *)since);
}

/* With nothing to show, the driver says so in these two. */
static nvmlReturn_t unless_empty(nvmlReturn_t result, const unsigned int *count)
{
    return result == NVML_SUCCESS && count && !*count ? NVML_ERROR_NOT_FOUND : result;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t *utilization,
                                             unsigned int *processSamplesCount,
                                             unsigned long long lastSeenTimeStamp)
{
    const struct entry entry = {.size = sizeof(*utilization)};

    if (!slice_of(device))
        return DRIVER(nvmlDeviceGetProcessUtilization, device, utilization, processSamplesCount,
                      lastSeenTimeStamp);
    return unless_empty(list_entries(device, processSamplesCount, utilization, entry,
                                     sample_processes, &lastSeenTimeStamp),
                        processSamplesCount);
}

static nvmlReturn_t sample_all(nvmlDevice_t device, unsigned int *count, void *infos, void *of)
{
    nvmlProcessesUtilizationInfo_v1_t info = *(const nvmlProcessesUtilizationInfo_v1_t *)of;
    nvmlReturn_t result;

    info.processSamplesCount = *count;
    info.procUtilArray = infos;
    result = DRIVER(nvmlDeviceGetProcessesUtilizationInfo, device, &info);
    *count = info.processSamplesCount;
    return result;
}

nvmlReturn_t
nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                      nvmlProcessesUtilizationInfo_v1_t *processesUtilInfo)
{
    nvmlProcessesUtilizationInfo_v1_t *info = processesUtilInfo;
    const struct entry entry = {.size = sizeof(*info->procUtilArray),
                                .pid_at = offsetof(nvmlProcessUtilizationInfo_v1_t, pid)};

    if (!info || !slice_of(device))
        return DRIVER(nvmlDeviceGetProcessesUtilizationInfo, device, info);
    if (info->version != NVML_PROCESSES_UTILIZATION_V1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return unless_empty(list_entries(device, &info->processSamplesCount, info->procUtilArray, entry,
                                     sample_all, info),
                        &info->processSamplesCount);
}

static nvmlReturn_t detail_processes(nvmlDevice_t device, unsigned int *count, void *infos,
                                     void *of)
{
    nvmlProcessDetailList_v1_t info = *(const nvmlProcessDetailList_v1_t *)of;
    nvmlReturn_t result;

    info.numProcArrayEntries = *count;
    info.procArray = infos;
    result = DRIVER(nvmlDeviceGetRunningProcessDetailList, device, &info);
    *count = info.numProcArrayEntries;
    return result;
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                   nvmlProcessDetailList_v1_t *plist)
{
    const struct entry entry = {.size = sizeof(*plist->procArray)};

    if (!plist || !slice_of(device))
        return DRIVER(nvmlDeviceGetRunningProcessDetailList, device, plist);
    if (plist->version != NVML_PROCESS_DETAIL_LIST_V1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return list_entries(device, &plist->numProcArrayEntries, plist->procArray, entry,
                        detail_processes, plist);
}
