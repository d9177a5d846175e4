// SPDX-License-Identifier: MIT
/*
 * vgpu-nvidia-readings [--once] [DIRECTORY]
 *
 * What NVIDIA's driver reports only through its library (NVML): for each of its GPUs a file with
 * the GPU's PCI address as its name, in DIRECTORY, /run/vgpu/readings if there is none, each 30 s,
 * or --once. Who writes to DIRECTORY/.wanted gets one at once, but not twice in half a second.
 * The registrar, vgpud, vgpuctl and arbiters read these files instead of loading the library.
 * Between two readings the library is closed, so that the driver can be unloaded.
 *
 * A GPU that the library cannot read keeps its file: its memory does not change while it has its
 * driver, and "time" says how old the rest is. The file goes when the driver does not list the GPU
 * any more, or is unloaded.
 *
 * A file has GKeyFile's form, one group "gpu": "time" of CLOCK_MONOTONIC in us, "memory" in bytes
 * without what the driver keeps for itself, and of that "memory_used" now, or "unified=true" if the
 * GPU uses the host's memory and the library does not report any, and what the GPU has of
 * "temperature" and "temperature_limit" in 1/1000 degree Celsius, "power" in uW, "energy" in uJ,
 * "ecc_uncorrectable" and "ecc_correctable" since the driver was loaded, "busy", how much of the
 * time since the last reading the GPU computed, in per cent, "flops" of 32 bits a second, and
 * "memory_bandwidth" in bytes a second, both as its highest clocks allow. The group "nvlink" has
 * the number of links that are up, by the address of the GPU at the other end, or "switch". The
 * groups "process_memory" and "process_busy" have bytes of memory, and per cent of the time in
 * which the GPU computed, by process id.
 *
 * Exit status: 0: the driver was unloaded, or --once; 1: it failed; 2: wrong call.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "nvml_abi.h"

enum { DONE = 0, FAILED = 1, WRONG_CALL = 2 };

#define DIRECTORY      "/run/vgpu/readings"
#define PERIOD_US      30000000ull
#define LEAST_US       500000ull
#define WANTED         ".wanted"
#define MOST_GPUS      64
#define MOST_SAMPLES   1024
#define MOST_PROCESSES 4096
#define ADDRESS        16

static struct {
    nvmlReturn_t (*init)(void);
    nvmlReturn_t (*shutdown)(void);
    const char *(*text)(nvmlReturn_t result);
    nvmlReturn_t (*count)(unsigned int *count);
    nvmlReturn_t (*at)(unsigned int index, nvmlDevice_t *device);
    nvmlReturn_t (*pci)(nvmlDevice_t device, nvmlPciInfo_t *info);
    nvmlReturn_t (*memory)(nvmlDevice_t device, nvmlMemory_v2_t *memory);
    /* Any of the following may be missing. */
    nvmlReturn_t (*temperature)(nvmlDevice_t device, unsigned int sensor, unsigned int *celsius);
    nvmlReturn_t (*margin)(nvmlDevice_t device, nvmlMarginTemperature_t *margin);
    nvmlReturn_t (*threshold)(nvmlDevice_t device, unsigned int kind, unsigned int *celsius);
    nvmlReturn_t (*power)(nvmlDevice_t device, unsigned int *mw);
    nvmlReturn_t (*energy)(nvmlDevice_t device, unsigned long long *mj);
    nvmlReturn_t (*ecc)(nvmlDevice_t device, unsigned int kind, unsigned int counter,
                        unsigned long long *count);
    nvmlReturn_t (*samples)(nvmlDevice_t device, unsigned int kind, unsigned long long since,
                            unsigned int *type, unsigned int *count, nvmlSample_t *samples);
    nvmlReturn_t (*processes)(nvmlDevice_t device, unsigned int *count,
                              nvmlProcessInfo_v2_t *infos);
    nvmlReturn_t (*utilization)(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                unsigned int *count, unsigned long long since);
    nvmlReturn_t (*cores)(nvmlDevice_t device, unsigned int *count);
    nvmlReturn_t (*most_clock)(nvmlDevice_t device, unsigned int kind, unsigned int *mhz);
    nvmlReturn_t (*bus_width)(nvmlDevice_t device, unsigned int *bits);
    nvmlReturn_t (*link_state)(nvmlDevice_t device, unsigned int link, unsigned int *is_active);
    nvmlReturn_t (*link_type)(nvmlDevice_t device, unsigned int link, int *type);
    nvmlReturn_t (*link_end)(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *info);
} nvml;

/* When the last reading began, by NVML's clock: CLOCK_REALTIME in us. 0: this is the first. */
static unsigned long long read_at;

static int print_failure(const char *what, const char *why)
{
    fprintf(stderr, "vgpu-nvidia-readings: %s: %s\n", what, why);
    return FAILED;
}

static bool look_up(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);

    *(void **)function = found;
    return found;
}

static int open_nvml(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        library = dlopen(VGPU_REAL_DIR "/libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return print_failure("cannot load NVIDIA's library", dlerror());
    if (!look_up(library, "nvmlInit_v2", &nvml.init) ||
        !look_up(library, "nvmlShutdown", &nvml.shutdown) ||
        !look_up(library, "nvmlErrorString", &nvml.text) ||
        !look_up(library, "nvmlDeviceGetCount_v2", &nvml.count) ||
        !look_up(library, "nvmlDeviceGetHandleByIndex_v2", &nvml.at) ||
        !look_up(library, "nvmlDeviceGetPciInfo_v3", &nvml.pci) ||
        !look_up(library, "nvmlDeviceGetMemoryInfo_v2", &nvml.memory))
        return print_failure("cannot use NVIDIA's library", "driver 510 or later is needed");
    look_up(library, "nvmlDeviceGetTemperature", &nvml.temperature);
    look_up(library, "nvmlDeviceGetMarginTemperature", &nvml.margin);
    look_up(library, "nvmlDeviceGetTemperatureThreshold", &nvml.threshold);
    look_up(library, "nvmlDeviceGetPowerUsage", &nvml.power);
    look_up(library, "nvmlDeviceGetTotalEnergyConsumption", &nvml.energy);
    look_up(library, "nvmlDeviceGetTotalEccErrors", &nvml.ecc);
    look_up(library, "nvmlDeviceGetSamples", &nvml.samples);
    look_up(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.processes);
    look_up(library, "nvmlDeviceGetProcessUtilization", &nvml.utilization);
    look_up(library, "nvmlDeviceGetNumGpuCores", &nvml.cores);
    look_up(library, "nvmlDeviceGetMaxClockInfo", &nvml.most_clock);
    look_up(library, "nvmlDeviceGetMemoryBusWidth", &nvml.bus_width);
    look_up(library, "nvmlDeviceGetNvLinkState", &nvml.link_state);
    look_up(library, "nvmlDeviceGetNvLinkRemoteDeviceType", &nvml.link_type);
    look_up(library, "nvmlDeviceGetNvLinkRemotePciInfo_v2", &nvml.link_end);
    return DONE;
}

static unsigned long long now_us(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (unsigned long long)time.tv_sec * 1000000 + (unsigned long long)time.tv_nsec / 1000;
}

/* The limit at which the GPU slows itself down; newer ones report how far away it is. */
static void print_temperature(FILE *file, nvmlDevice_t device)
{
    nvmlMarginTemperature_t margin = {.version = NVML_MARGIN_TEMPERATURE_V1};
    unsigned int celsius, limit;

    if (!nvml.temperature || nvml.temperature(device, NVML_TEMPERATURE_GPU, &celsius))
        return;
    fprintf(file, "temperature=%u\n", celsius * 1000);
    if (nvml.margin && !nvml.margin(device, &margin))
        fprintf(file, "temperature_limit=%d\n", ((int)celsius + margin.marginTemperature) * 1000);
    else if (nvml.threshold && !nvml.threshold(device, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, &limit))
        fprintf(file, "temperature_limit=%u\n", limit * 1000);
}

/* The mean of the samples that the driver still has. */
static void print_busy(FILE *file, nvmlDevice_t device)
{
    static nvmlSample_t samples[MOST_SAMPLES];
    unsigned int count = MOST_SAMPLES, type = 0, used = 0;
    unsigned long long sum = 0;

    if (!nvml.samples ||
        nvml.samples(device, NVML_GPU_UTILIZATION_SAMPLES, read_at, &type, &count, samples) ||
        type != NVML_VALUE_TYPE_UNSIGNED_INT)
        return;
    for (unsigned int i = 0; i < count && i < MOST_SAMPLES; i++) {
        /* Drivers have more than 100 now and then. */
        if (samples[i].sampleValue.uiVal > 100)
            continue;
        sum += samples[i].sampleValue.uiVal;
        used++;
    }
    if (used)
        fprintf(file, "busy=%llu\n", sum / used);
}

static void print_process_memory(FILE *file, nvmlDevice_t device)
{
    static nvmlProcessInfo_v2_t infos[MOST_PROCESSES];
    unsigned int count = MOST_PROCESSES;

    if (!nvml.processes || nvml.processes(device, &count, infos))
        return;
    fprintf(file, "[process_memory]\n");
    for (unsigned int i = 0; i < count && i < MOST_PROCESSES; i++)
        if (infos[i].usedGpuMemory != NVML_VALUE_NOT_AVAILABLE)
            fprintf(file, "%u=%llu\n", infos[i].pid, infos[i].usedGpuMemory);
}

static void print_process_busy(FILE *file, nvmlDevice_t device)
{
    static nvmlProcessUtilizationSample_t samples[MOST_PROCESSES];
    unsigned int count = MOST_PROCESSES;

    if (!nvml.utilization || nvml.utilization(device, samples, &count, read_at))
        return;
    fprintf(file, "[process_busy]\n");
    for (unsigned int i = 0; i < count && i < MOST_PROCESSES; i++)
        fprintf(file, "%u=%u\n", samples[i].pid, samples[i].smUtil);
}

/* A core multiplies and adds in each clock, and memory moves its bus's width twice. */
static void print_speeds(FILE *file, nvmlDevice_t device)
{
    unsigned int count, mhz;

    if (nvml.cores && nvml.most_clock && !nvml.cores(device, &count) &&
        !nvml.most_clock(device, NVML_CLOCK_SM, &mhz))
        fprintf(file, "flops=%llu\n", 2000000ull * count * mhz);
    if (nvml.bus_width && nvml.most_clock && !nvml.bus_width(device, &count) &&
        !nvml.most_clock(device, NVML_CLOCK_MEM, &mhz))
        fprintf(file, "memory_bandwidth=%llu\n", 2000000ull * (count / 8) * mhz);
}

static void format_address(const nvmlPciInfo_t *info, char *address)
{
    snprintf(address, ADDRESS, "%04x:%02x:%02x.0", info->domain & 0xffff, info->bus & 0xff,
             info->device & 0x1f);
}

/* The other end of a link that is up; false: it is not, or it is not known where it leads. */
static bool find_link_end(nvmlDevice_t device, unsigned int link, char *end)
{
    unsigned int is_active = 0;
    nvmlPciInfo_t info;
    int type = NVML_NVLINK_DEVICE_TYPE_GPU;

    if (nvml.link_state(device, link, &is_active) || !is_active)
        return false;
    if (nvml.link_type && !nvml.link_type(device, link, &type) &&
        type == NVML_NVLINK_DEVICE_TYPE_SWITCH) {
        strcpy(end, "switch");
        return true;
    }
    if (type != NVML_NVLINK_DEVICE_TYPE_GPU || nvml.link_end(device, link, &info))
        return false;
    format_address(&info, end);
    return true;
}

static void print_links(FILE *file, nvmlDevice_t device)
{
    char ends[NVML_NVLINK_MAX_LINKS][ADDRESS];
    unsigned int counts[NVML_NVLINK_MAX_LINKS] = {0}, found = 0;

    if (!nvml.link_state || !nvml.link_end)
        return;
    for (unsigned int link = 0; link < NVML_NVLINK_MAX_LINKS; link++) {
        unsigned int i = 0;

        if (!find_link_end(device, link, ends[found]))
            continue;
        while (strcmp(ends[i], ends[found]))
            i++;
        counts[i]++;
        if (i == found)
            found++;
    }
    if (found)
        fprintf(file, "[nvlink]\n");
    for (unsigned int i = 0; i < found; i++)
        fprintf(file, "%s=%u\n", ends[i], counts[i]);
}

static bool print_gpu(FILE *file, nvmlDevice_t device)
{
    nvmlMemory_v2_t memory = {.version = NVML_MEMORY_V2};
    nvmlReturn_t result = nvml.memory(device, &memory);
    unsigned long long number;
    unsigned int mw;

    if (result && result != NVML_ERROR_NOT_SUPPORTED)
        return false;
    fprintf(file, "[gpu]\ntime=%llu\n", now_us(CLOCK_MONOTONIC));
    if (result)
        fprintf(file, "unified=true\n");
    else
        fprintf(file, "memory=%llu\nmemory_used=%llu\n", memory.total - memory.reserved,
                memory.used);
    print_temperature(file, device);
    if (nvml.power && !nvml.power(device, &mw))
        fprintf(file, "power=%llu\n", mw * 1000ull);
    if (nvml.energy && !nvml.energy(device, &number))
        fprintf(file, "energy=%llu\n", number * 1000);
    if (nvml.ecc &&
        !nvml.ecc(device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &number))
        fprintf(file, "ecc_uncorrectable=%llu\n", number);
    if (nvml.ecc && !nvml.ecc(device, NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC, &number))
        fprintf(file, "ecc_correctable=%llu\n", number);
    print_busy(file, device);
    print_speeds(file, device);
    print_links(file, device);
    print_process_memory(file, device);
    print_process_busy(file, device);
    return true;
}

/* vgpud may have looked at the GPU when there was no reading yet: an event of udev's tells it. */
static void tell_udev(const char *address)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/uevent", address);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, "change", 6) < 0)
        print_failure(path, strerror(errno));
    close(fd);
}

/* NULL: it is written; otherwise why not. */
static const char *write_new(int directory, nvmlDevice_t device)
{
    int fd = openat(directory, ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    bool printed;

    if (!file)
        return strerror(errno);
    printed = print_gpu(file, device);
    if (fclose(file))
        return strerror(errno);
    return printed ? NULL : "NVIDIA's library does not report its memory";
}

/* Who reads it finds the old file or the new one. */
static void write_gpu(int directory, const char *address, nvmlDevice_t device)
{
    bool is_new = faccessat(directory, address, F_OK, 0) < 0;
    const char *why = write_new(directory, device);

    if (!why && renameat(directory, ".new", directory, address))
        why = strerror(errno);
    if (why) {
        print_failure(address, why);
        unlinkat(directory, ".new", 0);
    } else if (is_new) {
        tell_udev(address);
    }
}

/* The files of GPUs that are not among @count @addresses: they are gone. */
static void remove_others(int directory, char addresses[][ADDRESS], unsigned int count)
{
    DIR *dir = fdopendir(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        unsigned int i = 0;

        while (i < count && strcmp(entry->d_name, addresses[i]))
            i++;
        if (i == count && entry->d_name[0] != '.')
            unlinkat(directory, entry->d_name, 0);
    }
    if (dir)
        closedir(dir);
}

static bool find_gpu(unsigned int index, nvmlDevice_t *device, char *address)
{
    nvmlPciInfo_t info;

    if (nvml.at(index, device) || nvml.pci(*device, &info))
        return false;
    format_address(&info, address);
    return true;
}

static void read_gpus(int directory)
{
    char addresses[MOST_GPUS][ADDRESS];
    unsigned int count = 0, found = 0;
    bool all = !nvml.count(&count) && count <= MOST_GPUS;

    for (unsigned int i = 0; i < count && found < MOST_GPUS; i++) {
        nvmlDevice_t device;

        if (find_gpu(i, &device, addresses[found]))
            write_gpu(directory, addresses[found++], device);
        else
            all = false;
    }
    /* If one was not found, it is not known which of the other files is its own. */
    if (all)
        remove_others(directory, addresses, found);
}

static int stop_reading(int directory, nvmlReturn_t result, bool once)
{
    if (result == NVML_ERROR_DRIVER_NOT_LOADED)
        remove_others(directory, NULL, 0);
    if (once || result != NVML_ERROR_DRIVER_NOT_LOADED)
        return print_failure("cannot use NVIDIA's library", nvml.text(result));
    /* The driver was unloaded; who waits for the first reading must not wait on. */
    sd_notify(0, "READY=1");
    return DONE;
}

/* Whether one of the changes of the directory is somebody's who wants a reading. */
static bool is_wanted(int changes)
{
    _Alignas(struct inotify_event) char events[4096];
    ssize_t length = read(changes, events, sizeof(events));
    bool wanted = false;

    for (ssize_t at = 0; at < length;) {
        const struct inotify_event *event = (const struct inotify_event *)&events[at];

        wanted |= event->len && !strcmp(event->name, WANTED);
        at += (ssize_t)(sizeof(*event) + event->len);
    }
    return wanted;
}

/* @changes: of the directory; -1: nobody is heard. */
static void await_next(int changes)
{
    unsigned long long begin = now_us(CLOCK_MONOTONIC), until = begin + PERIOD_US, now = begin;

    while (now < until) {
        struct pollfd change = {.fd = changes, .events = POLLIN};

        poll(&change, 1, (int)((until - now) / 1000 + 1));
        if (change.revents && is_wanted(changes))
            until = begin + LEAST_US;
        now = now_us(CLOCK_MONOTONIC);
    }
}

static int watch_directory(const char *path)
{
    int changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (changes >= 0 && inotify_add_watch(changes, path, IN_CLOSE_WRITE) >= 0)
        return changes;
    print_failure(path, strerror(errno));
    if (changes >= 0)
        close(changes);
    return -1;
}

static int watch_gpus(int directory, int changes, bool once)
{
    for (;;) {
        unsigned long long now = now_us(CLOCK_REALTIME);
        nvmlReturn_t result = nvml.init();

        if (result)
            return stop_reading(directory, result, once);
        read_gpus(directory);
        nvml.shutdown();
        read_at = now;
        if (once)
            return DONE;
        sd_notify(0, "READY=1");
        await_next(changes);
    }
}

int main(int argc, char **argv)
{
    bool once = argc > 1 && !strcmp(argv[1], "--once");
    const char *path = argc > 1 + once ? argv[1 + once] : DIRECTORY;
    int directory;

    if (argc > 2 + once || path[0] != '/') {
        print_failure("usage", "vgpu-nvidia-readings [--once] [DIRECTORY]");
        return WRONG_CALL;
    }
    directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return print_failure(path, strerror(errno));
    return open_nvml() ? FAILED : watch_gpus(directory, once ? -1 : watch_directory(path), once);
}
