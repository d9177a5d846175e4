// SPDX-License-Identifier: MIT
#include "own.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "charge.h"
#include "nvml_abi.h"

#define NVML_NAME     "/libnvidia-ml.so.1"
#define PROCESSES_MAX 4096
#define LOOKS         8

/* The name of the first PID namespace, whose number is the kernel's own. */
#define FIRST_NAMESPACE "pid:[4026531836]"
/* The first driver whose NVML lists a process by the id that it has in the caller's namespace. */
#define OWN_PIDS_MAJOR 565
#define OWN_PIDS_MINOR 57

static struct {
    nvmlReturn_t (*init)(void);
    nvmlReturn_t (*by_address)(const char *address, nvmlDevice_t *device);
    nvmlReturn_t (*processes)(nvmlDevice_t device, unsigned int *count,
                              nvmlProcessInfo_v2_t *infos);
    nvmlReturn_t (*version)(char *version, unsigned int length);
} nvml;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool usable;

/*
 * The door's NVML is opened first; it needs the driver's. The loader returns the first loaded
 * library of a name, and a program that opens libnvidia-ml.so.1 later must get the door's. Both
 * stay open.
 */
static void *open_library(void)
{
    return dlopen(VGPU_DOOR_DIR NVML_NAME, RTLD_NOW | RTLD_LOCAL)
               ? dlopen(VGPU_REAL_DIR NVML_NAME, RTLD_NOW | RTLD_NOLOAD)
               : NULL;
}

static bool is_in_first_namespace(void)
{
    char name[sizeof(FIRST_NAMESPACE)] = "";

    return readlink("/proc/self/ns/pid", name, sizeof(name)) == sizeof(name) - 1 &&
           !memcmp(name, FIRST_NAMESPACE, sizeof(name) - 1);
}

static unsigned int number_at(const char **text)
{
    unsigned int number = 0;

    while (**text >= '0' && **text <= '9')
        number = number * 10 + (unsigned int)(*(*text)++ - '0');
    *text += **text == '.';
    return number;
}

/* Else our process id is another's in the list. */
static bool lists_own_pids(void)
{
    char version[80] = "";
    const char *at = version;
    unsigned int major, minor;

    if (is_in_first_namespace())
        return true;
    if (!nvml.version || nvml.version(version, sizeof(version) - 1) != NVML_SUCCESS)
        return false;
    major = number_at(&at);
    minor = number_at(&at);
    return major > OWN_PIDS_MAJOR || (major == OWN_PIDS_MAJOR && minor >= OWN_PIDS_MINOR);
}

static void open_nvml(void)
{
    void *library = open_library();

    if (!library)
        return;
    *(void **)&nvml.init = dlsym(library, "nvmlInit_v2");
    *(void **)&nvml.by_address = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
    *(void **)&nvml.processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
    *(void **)&nvml.version = dlsym(library, "nvmlSystemGetDriverVersion");
    usable = nvml.init && nvml.by_address && nvml.processes && nvml.init() == NVML_SUCCESS &&
             lists_own_pids();
}

static uint64_t find_self(const nvmlProcessInfo_v2_t *infos, unsigned int count)
{
    unsigned int self = (unsigned int)getpid();

    for (unsigned int i = 0; i < count; i++) {
        if (infos[i].pid == self && infos[i].usedGpuMemory != NVML_VALUE_NOT_AVAILABLE)
            return infos[i].usedGpuMemory;
    }
    return 0;
}

/* GPU memory of this process; 0: not known, as in a container with its own process ids. */
static uint64_t used_by_self(const struct gpu *gpu)
{
    unsigned int count = PROCESSES_MAX;
    nvmlProcessInfo_v2_t *infos;
    nvmlDevice_t device;
    uint64_t used = 0;

    pthread_once(&once, open_nvml);
    if (!usable || nvml.by_address(gpu->pci, &device) != NVML_SUCCESS)
        return 0;
    infos = calloc(PROCESSES_MAX, sizeof(*infos));
    if (infos && nvml.processes(device, &count, infos) == NVML_SUCCESS)
        used = find_self(infos, count < PROCESSES_MAX ? count : PROCESSES_MAX);
    free(infos);
    return used;
}

/*
 * The process's memory by NVML, less that which was charged and is there; under own_lock. If a
 * charge changed between the two, another thread may have freed memory that NVML counted, so both
 * are read again. If that goes on, the least is taken.
 */
static uint64_t look_at_driver(struct gpu *gpu)
{
    uint64_t least = UINT64_MAX, changes;
    unsigned int looks = 0;

    do {
        uint64_t used, asked;

        changes = atomic_load(&gpu->changes);
        used = used_by_self(gpu);
        asked = atomic_load(&gpu->charged) - gpu->own - atomic_load(&gpu->displaced);
        used = used > asked ? used - asked : 0;
        least = used < least ? used : least;
    } while (changes != atomic_load(&gpu->changes) && ++looks < LOOKS);
    return least;
}

/* Under own_lock. @refusable: what is beyond the limit is not charged. */
static bool charge_own(struct gpu *gpu, uint64_t bytes, bool refusable)
{
    struct charge own = {.gpu = gpu, .bytes = gpu->own};
    uint64_t beyond = gpu->own_beyond;
    bool fits;

    if (!gpu->member)
        return false;
    if (bytes <= own.bytes)
        beyond = 0;
    else if (bytes < own.bytes + beyond)
        beyond = bytes - own.bytes;
    fits = charge_resize(&own, bytes - beyond);
    if (!fits && !refusable)
        beyond = bytes - own.bytes;
    gpu->own = own.bytes;
    if (beyond != gpu->own_beyond)
        governor_member_driver(gpu->member, beyond);
    gpu->own_beyond = beyond;
    return fits || !refusable;
}

bool own_settle(struct gpu *gpu)
{
    bool settled;

    pthread_mutex_lock(&gpu->own_lock);
    settled = charge_own(gpu, look_at_driver(gpu), true);
    pthread_mutex_unlock(&gpu->own_lock);
    return settled;
}

bool own_note(struct gpu *gpu)
{
    uint64_t before;
    bool shrank;

    pthread_mutex_lock(&gpu->own_lock);
    before = gpu->own + gpu->own_beyond;
    charge_own(gpu, look_at_driver(gpu), false);
    shrank = gpu->own + gpu->own_beyond < before;
    pthread_mutex_unlock(&gpu->own_lock);
    return shrank;
}
