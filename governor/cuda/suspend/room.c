// SPDX-License-Identifier: MIT
#include "room.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "nvml_abi.h"

#define LOCK_DIR      "/run/vgpu-suspend"
#define PROCESSES_MAX 1024
/*
 * What a driver may need more than a process had: of that, and at most. Not on a card that nobody
 * else uses, where all of it was before.
 */
#define EXTRA_PERCENT 3
#define EXTRA_MAX     (64ull << 20)

static struct {
    nvmlReturn_t (*init)(void);
    nvmlReturn_t (*find)(const char *address, nvmlDevice_t *device);
    nvmlReturn_t (*memory)(nvmlDevice_t device, nvmlMemory_v2_t *memory);
    nvmlReturn_t (*processes)(nvmlDevice_t device, unsigned int *count,
                              nvmlProcessInfo_v2_t *infos);
} nvml;

static nvmlDevice_t device;
static const char *address;
static char text[512];

static const char *lock_gpu(void)
{
    const char *directory = getenv("RUNTIME_DIRECTORY");
    char path[256];
    int fd, rc = -1;

    directory = directory ? directory : LOCK_DIR;
    mkdir(directory, 0700);
    snprintf(path, sizeof(path), "%s/%s", directory, address);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    do
        rc = fd < 0 ? -1 : flock(fd, LOCK_EX);
    while (fd >= 0 && rc && errno == EINTR);
    if (rc == 0)
        return NULL;
    snprintf(text, sizeof(text), "%s cannot be %s: %s", path, fd < 0 ? "opened" : "locked",
             strerror(errno));
    return text;
}

static bool look_up(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);

    *(void **)function = found;
    return found;
}

const char *room_open(const char *library, const char *gpu)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

    if (!handle)
        return dlerror();
    if (!look_up(handle, "nvmlInit_v2", &nvml.init) ||
        !look_up(handle, "nvmlDeviceGetHandleByPciBusId_v2", &nvml.find) ||
        !look_up(handle, "nvmlDeviceGetMemoryInfo_v2", &nvml.memory) ||
        !look_up(handle, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.processes))
        return "NVML cannot tell the GPU's free memory: driver 570 or later is needed";
    if (nvml.init() || nvml.find(gpu, &device)) {
        snprintf(text, sizeof(text), "NVML does not find GPU %s", gpu);
        return text;
    }
    address = gpu;
    return lock_gpu();
}

static bool is_among(const int *pids, unsigned int count, unsigned int pid)
{
    for (unsigned int i = 0; i < count; i++)
        if ((unsigned int)pids[i] == pid)
            return true;
    return false;
}

/* In @bytes what those processes have on the GPU now, in @others whether there are others. False:
 * the driver does not say. */
static bool read_resident(const int *pids, unsigned int count, uint64_t *bytes, bool *others)
{
    static nvmlProcessInfo_v2_t infos[PROCESSES_MAX];
    unsigned int found = PROCESSES_MAX;

    *bytes = 0;
    *others = false;
    if (nvml.processes(device, &found, infos))
        return false;
    for (unsigned int i = 0; i < found && i < PROCESSES_MAX; i++) {
        if (!is_among(pids, count, infos[i].pid))
            *others = true;
        else if (infos[i].usedGpuMemory == NVML_VALUE_NOT_AVAILABLE)
            return false;
        else
            *bytes += infos[i].usedGpuMemory;
    }
    return true;
}

const char *room_look(const int *pids, unsigned int count, uint64_t bytes)
{
    nvmlMemory_v2_t memory = {.version = NVML_MEMORY_V2};
    uint64_t resident, needed, extra;
    nvmlReturn_t result;
    bool others;

    if (!address)
        return NULL;
    result = nvml.memory(device, &memory);
    if (result == NVML_ERROR_NOT_SUPPORTED)
        return NULL;
    if (result) {
        snprintf(text, sizeof(text), "NVML does not tell how much memory of GPU %s is free",
                 address);
        return text;
    }
    /* Of several, those that are back already would count twice. */
    if (!read_resident(pids, count, &resident, &others))
        return NULL;
    needed = bytes > resident ? bytes - resident : 0;
    extra = needed / 100 * EXTRA_PERCENT;
    if (others)
        needed += extra < EXTRA_MAX ? extra : EXTRA_MAX;
    if (needed <= memory.free)
        return NULL;
    snprintf(text, sizeof(text),
             "GPU %s has %llu MiB of free memory, and %llu MiB would come back to it; end or "
             "suspend other programs that use it, and resume again",
             address, memory.free >> 20, (unsigned long long)needed >> 20);
    return text;
}
