// SPDX-License-Identifier: MIT
/*
 * vgpu-memory-limit set GPU CGROUP BYTES
 * vgpu-memory-limit clear GPU CGROUP
 * vgpu-memory-limit show GPU CGROUP
 *
 * How much GPU memory the processes of a cgroup may have together, enforced by NVIDIA's driver
 * (615 or later), whatever library they use. As root on the host. GPU is a PCI address, CGROUP the
 * full path of a directory. Limits are set through NVML only: the driver keeps books of its own.
 *
 * No soft limit is ever set, and one that is there is removed: it is a guarantee, which the driver
 * also adds to the cgroups above, where it stays if the cgroup is removed with it.
 *
 * "show" prints the limit, or "max", and what is used, in bytes. Exit status: 0; 1: it failed; 2:
 * wrong call; 3: the driver, or the GPU in its mode, has no such limits.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml_abi.h"

enum { DONE = 0, FAILED = 1, WRONG_CALL = 2, HAS_NONE = 3 };

/* A limit is kept in pages: the driver may round it. */
#define ROUNDING (2ull << 20)

static struct {
    nvmlReturn_t (*init)(void);
    nvmlReturn_t (*find)(const char *address, nvmlDevice_t *device);
    const char *(*text)(nvmlReturn_t result);
    nvmlReturn_t (*set)(nvmlDevice_t device, nvmlSetMemoryLimits_v1_t *limits);
    nvmlReturn_t (*get)(nvmlDevice_t device, nvmlGetMemoryLimits_v1_t *limits);
} nvml;

static int print_failure(int status, const char *what, const char *why)
{
    fprintf(stderr, "vgpu-memory-limit: %s: %s\n", what, why);
    return status;
}

static int complain_of(const char *what, nvmlReturn_t result)
{
    bool has_none = result == NVML_ERROR_NOT_SUPPORTED || result == NVML_ERROR_FUNCTION_NOT_FOUND;

    return print_failure(has_none ? HAS_NONE : FAILED, what, nvml.text(result));
}

static bool look_up(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);

    *(void **)function = found;
    return found;
}

static int open_nvml(void)
{
    void *library = dlopen(VGPU_REAL_DIR "/libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    nvmlReturn_t result;

    if (!library)
        return print_failure(FAILED, "cannot load NVML", dlerror());
    if (!look_up(library, "nvmlInit_v2", &nvml.init) ||
        !look_up(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml.find) ||
        !look_up(library, "nvmlErrorString", &nvml.text))
        return print_failure(FAILED, "cannot use NVML", "it has none of the usual functions");
    if (!look_up(library, "nvmlDeviceSetMemoryLimits_v1", &nvml.set) ||
        !look_up(library, "nvmlDeviceGetMemoryLimits_v1", &nvml.get))
        return print_failure(HAS_NONE, "the driver cannot limit the GPU memory of a cgroup",
                             "version 615 or later is needed");
    result = nvml.init();
    return result ? complain_of("cannot use NVML", result) : DONE;
}

static int get_limits(nvmlDevice_t device, const char *cgroup, nvmlGetMemoryLimits_v1_t *limits)
{
    nvmlReturn_t result;

    *limits = (nvmlGetMemoryLimits_v1_t){.nameSpace = cgroup};
    result = nvml.get(device, limits);
    return result ? complain_of("cannot read the limit", result) : DONE;
}

static int set_limit(nvmlDevice_t device, const char *cgroup, unsigned long long bytes)
{
    nvmlSetMemoryLimits_v1_t limits = {.nameSpace = cgroup, .hardLimit = bytes};
    nvmlReturn_t result = nvml.set(device, &limits);
    nvmlGetMemoryLimits_v1_t seen;
    int status =
        result ? complain_of("cannot set the limit", result) : get_limits(device, cgroup, &seen);

    if (status || bytes == NVML_DEVICE_MEMORY_LIMIT_MAX)
        return status;
    if (seen.softLimit || seen.hardLimit < bytes || seen.hardLimit - bytes > ROUNDING)
        return print_failure(FAILED, "cannot set the limit",
                             "the driver has another one afterwards");
    return DONE;
}

static int show_limits(nvmlDevice_t device, const char *cgroup)
{
    nvmlGetMemoryLimits_v1_t seen;
    int status = get_limits(device, cgroup, &seen);

    if (status)
        return status;
    if (seen.hardLimit == NVML_DEVICE_MEMORY_LIMIT_MAX)
        printf("max %llu\n", seen.currentUsed);
    else
        printf("%llu %llu\n", seen.hardLimit, seen.currentUsed);
    return DONE;
}

/* 0: it is no number. */
static unsigned long long parse_bytes(const char *text)
{
    char *end;
    unsigned long long bytes;

    errno = 0;
    bytes = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno ? bytes : 0;
}

static int run_verb(const char *verb, nvmlDevice_t device, const char *cgroup,
                    unsigned long long bytes)
{
    if (!strcmp(verb, "show"))
        return show_limits(device, cgroup);
    return set_limit(device, cgroup, bytes ? bytes : NVML_DEVICE_MEMORY_LIMIT_MAX);
}

int main(int argc, char **argv)
{
    bool is_set = argc == 5 && !strcmp(argv[1], "set");
    bool is_other = argc == 4 && (!strcmp(argv[1], "clear") || !strcmp(argv[1], "show"));
    unsigned long long bytes = is_set ? parse_bytes(argv[4]) : 0;
    nvmlDevice_t device;
    nvmlReturn_t result;
    int status;

    if ((!is_set && !is_other) || (is_set && !bytes) || argv[3][0] != '/')
        return print_failure(WRONG_CALL, "usage",
                             "vgpu-memory-limit set GPU CGROUP BYTES | clear GPU CGROUP | "
                             "show GPU CGROUP");
    status = open_nvml();
    if (status)
        return status;
    result = nvml.find(argv[2], &device);
    return result ? complain_of(argv[2], result) : run_verb(argv[1], device, argv[3], bytes);
}
