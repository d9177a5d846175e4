// SPDX-License-Identifier: MIT
/*
 * Processes that use a device. If the device has a slice, only processes are listed that the caller
 * can see and that are in its cgroup or below it, as those of a container or a job are. Other
 * tenants' processes are not listed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"
#include "slice.h"

#define PROCESSES_MAX 4096
#define CGROUP_MAX    1024

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

static bool is_ours(unsigned int pid, const char *own)
{
    size_t length = strlen(own);
    char number[16], cgroup[CGROUP_MAX];

    snprintf(number, sizeof(number), "%u", pid);
    if (!cgroup_of(number, cgroup) || strncmp(cgroup, own, length))
        return false;
    return !cgroup[length] || cgroup[length] == '/' || (length && own[length - 1] == '/');
}

/* Moves our entries to the front and returns their count. Each entry starts with a process id. */
static unsigned int keep_ours(char *infos, unsigned int count, size_t size)
{
    char own[CGROUP_MAX];
    unsigned int kept = 0;

    if (!cgroup_of("self", own))
        return 0;
    for (unsigned int i = 0; i < count; i++) {
        unsigned int pid;

        memcpy(&pid, infos + i * size, sizeof(pid));
        if (is_ours(pid, own))
            memmove(infos + kept++ * size, infos + i * size, size);
    }
    return kept;
}

/* As NVML: *count is the room in @infos on entry, and the number of processes on return. */
static nvmlReturn_t give(unsigned int *count, void *infos, const char *found, unsigned int kept,
                         size_t size)
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

typedef nvmlReturn_t lister(nvmlDevice_t device, unsigned int *count, void *infos);

static nvmlReturn_t list(nvmlDevice_t device, unsigned int *count, void *infos, size_t size,
                         lister *function)
{
    unsigned int all = PROCESSES_MAX;
    nvmlReturn_t result;
    char *found;

    if (!count || !slice_of(device))
        return function(device, count, infos);
    found = calloc(PROCESSES_MAX, size);
    if (!found)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    result = function(device, &all, found);
    if (result == NVML_SUCCESS)
        result = give(count, infos, found, keep_ours(found, all, size), size);
    free(found);
    return result;
}

#define LIST(name, info)                                                                           \
    nvmlReturn_t name(nvmlDevice_t device, unsigned int *infoCount, info *infos)                   \
    {                                                                                              \
        return list(device, infoCount, infos, sizeof(info), (lister *)REAL(name));                 \
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
