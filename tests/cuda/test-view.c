// SPDX-License-Identifier: MIT
/* How much memory there is: CUDA and NVML show the slice, bounded by what the card has free. */
#include "kit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nvml_abi.h"

#define LIMIT (64 * MIB)
#define CARD  8589934592ull

/* As programs declare them. */
nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *degrees);
nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t device, int api, int *restricted);
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *milliwatts);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                  nvmlProcessInfo_v1_t *infos);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_v2_t *infos);

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t *utilization,
                                             unsigned int *count, unsigned long long since);
nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   nvmlProcessesUtilizationInfo_v1_t *info);
nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                   nvmlProcessDetailList_v1_t *list);
nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count,
                                         unsigned int *pids);
nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                          nvmlAccountingStats_t *stats);
nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t device, nvmlAccountingStats_v2_t *stats);
nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned int *count,
                                          nvmlEncoderSessionInfo_t *infos);
nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t device, unsigned int *count,
                                      nvmlFBCSessionInfo_t *infos);

static void cuda(void)
{
    size_t free, total;
    unsigned int old_free, old_total;
    CUdeviceptr dptr;

    kit_context();
    ok(cuDeviceTotalMem_v2(&total, 0));
    g_assert_cmpuint(total, ==, LIMIT);
    ok(cuMemGetInfo_v2(&free, &total));
    g_assert_cmpuint(total, ==, LIMIT);
    g_assert_cmpuint(free, ==, LIMIT);
    ok(cuMemAlloc_v2(&dptr, 4 * MIB));
    ok(cuMemGetInfo_v2(&free, &total));
    g_assert_cmpuint(total, ==, LIMIT);
    g_assert_cmpuint(free, ==, LIMIT - 4 * MIB);
    ok(cuMemGetInfo_v2(NULL, &total));
    ok(cuMemGetInfo_v2(&free, NULL));
    g_assert_cmpuint(total, ==, LIMIT);
    g_assert_cmpuint(free, ==, LIMIT - 4 * MIB);
    ok(cuMemGetInfo(&old_free, &old_total));
    g_assert_cmpuint(old_free, ==, LIMIT - 4 * MIB);
    g_assert_cmpuint(old_total, ==, LIMIT);
    ok(cuDeviceTotalMem(&old_total, 0));
    g_assert_cmpuint(old_total, ==, LIMIT);
}

static void test_cuda(void)
{
    kit_open(LIMIT);
    kit_run(cuda);
    kit_close();
}

static uint64_t total_by_nvml(unsigned int index)
{
    nvmlMemory_t memory;
    nvmlDevice_t device;

    g_assert_cmpint(nvmlInit_v2(), ==, 0);
    g_assert_cmpint(nvmlDeviceGetHandleByIndex_v2(index, &device), ==, 0);
    g_assert_cmpint(nvmlDeviceGetMemoryInfo(device, &memory), ==, 0);
    return memory.total;
}

/* CUDA_VISIBLE_DEVICES: the first device of CUDA is the second card, with that card's slice. */
static void visible(void)
{
    CUdeviceptr dptr;
    size_t total;

    kit_context();
    ok(cuDeviceTotalMem_v2(&total, 0));
    g_assert_cmpuint(total, ==, 2 * LIMIT);
    ok(cuDeviceTotalMem_v2(&total, 1));
    g_assert_cmpuint(total, ==, LIMIT);
    g_assert_cmpuint(total_by_nvml(0), ==, LIMIT);
    g_assert_cmpuint(total_by_nvml(1), ==, 2 * LIMIT);
    ok(cuMemAlloc_v2(&dptr, LIMIT + MIB));
    kit_charged(0);
    kit_charged_b(LIMIT + 2 * MIB);
    g_assert_cmpint(cuMemAlloc_v2(&dptr, LIMIT), ==, CUDA_ERROR_OUT_OF_MEMORY);
}

static void test_visible(void)
{
    g_setenv("CUDA_VISIBLE_DEVICES", "1,0", TRUE);
    kit_open_devices("[slice]\nvram=67108864\n", "[slice]\nvram=134217728\n");
    kit_run(visible);
    kit_close();
    g_unsetenv("CUDA_VISIBLE_DEVICES");
}

/* The slice's, not the process's. */
static void others(void)
{
    size_t free, total;
    CUdeviceptr dptr;

    kit_context();
    if (kit_live.reports[0].ready++) {
        ok(cuMemGetInfo_v2(&free, &total));
        g_assert_cmpuint(free, ==, LIMIT - 8 * MIB);
        kit_live.reports[0].go = 1;
        return;
    }
    ok(cuMemAlloc_v2(&dptr, 8 * MIB));
    kit_live.reports[0].done = 1;
    while (!kit_live.reports[0].go)
        g_usleep(1000);
}

static void test_others(void)
{
    unsigned int first;

    kit_open(LIMIT);
    first = kit_start(others);
    while (!kit_live.reports[0].done)
        g_usleep(1000);
    kit_run(others);
    kit_await(first);
    kit_close();
}

/* A card that is fuller than the slice is shown as it is. */
static void full_card(void)
{
    bool (*take)(uint64_t bytes) = NULL;
    size_t free, total;

    kit_context();
    *(void **)&take = kit_driver("card_take");
    g_assert_true(take(CARD - 10 * MIB));
    ok(cuMemGetInfo_v2(&free, &total));
    g_assert_cmpuint(total, ==, LIMIT);
    g_assert_cmpuint(free, ==, 10 * MIB);
}

static void test_full_card(void)
{
    kit_open(LIMIT);
    kit_run(full_card);
    kit_close();
}

/* As NVML has it, in a process that has 4 MiB of its memory. */
static nvmlDevice_t device_in_use(void)
{
    nvmlDevice_t device;
    CUdeviceptr dptr;

    kit_context();
    ok(cuMemAlloc_v2(&dptr, 4 * MIB));
    g_assert_cmpint(nvmlInit_v2(), ==, 0);
    g_assert_cmpint(nvmlDeviceGetHandleByIndex_v2(0, &device), ==, 0);
    return device;
}

static void nvml(void)
{
    nvmlMemory_v2_t memory_v2 = {.version = 3};
    unsigned int degrees, milliwatts;
    int restricted;
    nvmlMemory_t memory;
    nvmlDevice_t device;

    device = device_in_use();
    g_assert_cmpint(nvmlDeviceGetMemoryInfo(device, &memory), ==, 0);
    g_assert_cmpuint(memory.total, ==, LIMIT);
    g_assert_cmpuint(memory.used, ==, 4 * MIB);
    g_assert_cmpuint(memory.free, ==, LIMIT - 4 * MIB);
    g_assert_cmpint(nvmlDeviceGetMemoryInfo_v2(device, &memory_v2), ==, 0);
    g_assert_cmpuint(memory_v2.total, ==, LIMIT);
    g_assert_cmpuint(memory_v2.used, ==, 4 * MIB);
    g_assert_cmpuint(memory_v2.reserved, ==, 0);
    g_assert_cmpuint(memory_v2.version, ==, 3);
    /* A card that uses the host's memory has none to report, but the slice has a size. */
    g_setenv("FAKE_NVML_MEMORY", "unsupported", TRUE);
    memory = (nvmlMemory_t){0};
    g_assert_cmpint(nvmlDeviceGetMemoryInfo(device, &memory), ==, 0);
    g_assert_cmpuint(memory.total, ==, LIMIT);
    g_assert_cmpuint(memory.free, ==, LIMIT - 4 * MIB);
    memory_v2 = (nvmlMemory_v2_t){.version = 3};
    g_assert_cmpint(nvmlDeviceGetMemoryInfo_v2(device, &memory_v2), ==, 0);
    g_assert_cmpuint(memory_v2.total, ==, LIMIT);
    g_assert_cmpuint(memory_v2.used, ==, 4 * MIB);
    g_unsetenv("FAKE_NVML_MEMORY");
    /* What passes, and what this driver is too old for. */
    g_assert_cmpint(nvmlDeviceGetTemperature(device, 0, &degrees), ==, 0);
    g_assert_cmpuint(degrees, ==, 42);
    g_assert_cmpint(nvmlDeviceGetEnforcedPowerLimit(device, &milliwatts), ==,
                    NVML_ERROR_NOT_SUPPORTED);
    g_assert_cmpint(nvmlDeviceGetAPIRestriction(device, 0, &restricted), ==,
                    NVML_ERROR_FUNCTION_NOT_FOUND);
    /* Both libraries are one member. */
    live_await(&kit_live, "a", "members", 1);
}

static void test_nvml(void)
{
    kit_open(LIMIT);
    kit_run(nvml);
    kit_close();
}

/* Of the card's processes those of our cgroup that are in sight: not process 1. */
static void processes(void)
{
    unsigned int count = 0, self = (unsigned int)getpid();
    nvmlProcessInfo_v2_t infos[8];
    nvmlProcessInfo_v1_t old[8];
    nvmlDevice_t device = device_in_use();

    g_assert_cmpint(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL), ==,
                    NVML_ERROR_INSUFFICIENT_SIZE);
    g_assert_cmpuint(count, ==, 1);
    count = 8;
    g_assert_cmpint(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos), ==, 0);
    g_assert_cmpuint(count, ==, 1);
    g_assert_cmpuint(infos[0].pid, ==, self);
    g_assert_cmpuint(infos[0].usedGpuMemory, ==, 4 * MIB);
    count = 8;
    g_assert_cmpint(nvmlDeviceGetComputeRunningProcesses(device, &count, old), ==, 0);
    g_assert_cmpuint(count, ==, 1);
    g_assert_cmpuint(old[0].pid, ==, self);
}

static void test_processes(void)
{
    kit_open(LIMIT);
    kit_run(processes);
    kit_close();
}

/* The card has a process that is not in sight; so have these lists. */
static void other_lists(void)
{
    nvmlProcessesUtilizationInfo_v1_t info = {.version = NVML_PROCESSES_UTILIZATION_V1,
                                              .lastSeenTimeStamp = 5};
    nvmlProcessDetailList_v1_t list = {.version = NVML_PROCESS_DETAIL_LIST_V1, .mode = 1};
    nvmlProcessUtilizationInfo_v1_t uses[8];
    nvmlProcessUtilizationSample_t samples[8];
    nvmlProcessDetail_v1_t details[8];
    unsigned int count = 0, self = (unsigned int)getpid(), pids[8], hidden;
    nvmlDevice_t device = device_in_use();
    nvmlAccountingStats_v2_t stats = {0};

    g_assert_cmpint(nvmlDeviceGetProcessUtilization(device, NULL, &count, 5), ==,
                    NVML_ERROR_INSUFFICIENT_SIZE);
    g_assert_cmpuint(count, ==, 1);
    g_assert_cmpint(nvmlDeviceGetProcessUtilization(device, samples, &count, 5), ==, 0);
    g_assert_cmpuint(count, ==, 1);
    g_assert_cmpuint(samples[0].pid, ==, self);
    g_assert_cmpuint(samples[0].timeStamp, ==, 6);
    g_assert_cmpint(nvmlDeviceGetProcessesUtilizationInfo(device, &info), ==,
                    NVML_ERROR_INSUFFICIENT_SIZE);
    g_assert_cmpuint(info.processSamplesCount, ==, 1);
    info.procUtilArray = uses;
    g_assert_cmpint(nvmlDeviceGetProcessesUtilizationInfo(device, &info), ==, 0);
    g_assert_cmpuint(info.processSamplesCount, ==, 1);
    g_assert_true(info.procUtilArray == uses);
    g_assert_cmpuint(uses[0].pid, ==, self);
    g_assert_cmpuint(uses[0].timeStamp, ==, 6);
    list.numProcArrayEntries = 8;
    list.procArray = details;
    g_assert_cmpint(nvmlDeviceGetRunningProcessDetailList(device, &list), ==, 0);
    g_assert_cmpuint(list.numProcArrayEntries, ==, 1);
    g_assert_cmpuint(details[0].pid, ==, self);
    g_assert_cmpuint(details[0].gpuInstanceId, ==, 1);
    count = 8;
    g_assert_cmpint(nvmlDeviceGetAccountingPids(device, &count, pids), ==, 0);
    g_assert_cmpuint(count, ==, 1);
    g_assert_cmpuint(pids[0], ==, self);
    hidden = 1u << 22;
    g_assert_cmpint(nvmlDeviceGetAccountingStats(device, self, NULL), ==, 0);
    g_assert_cmpint(nvmlDeviceGetAccountingStats(device, hidden, NULL), ==, NVML_ERROR_NOT_FOUND);
    stats.pid = self;
    g_assert_cmpint(nvmlDeviceGetAccountingStats_v2(device, &stats), ==, 0);
    g_assert_cmpuint(stats.maxMemoryUsage, ==, self);
    stats = (nvmlAccountingStats_v2_t){.pid = hidden};
    g_assert_cmpint(nvmlDeviceGetAccountingStats_v2(device, &stats), ==, NVML_ERROR_NOT_FOUND);
    g_assert_cmpuint(stats.maxMemoryUsage, ==, 0);
    /* Whose entries the door does not know. */
    list.version = sizeof(list) | 2u << 24;
    g_assert_cmpint(nvmlDeviceGetRunningProcessDetailList(device, &list), ==,
                    NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

static void test_other_lists(void)
{
    kit_open(LIMIT);
    kit_run(other_lists);
    kit_close();
}

/* So have these, which tell without room how many there are. */
static void sessions(void)
{
    unsigned int count = 0, self = (unsigned int)getpid();
    nvmlEncoderSessionInfo_t encoders[8];
    nvmlFBCSessionInfo_t captures[8];
    nvmlDevice_t device = device_in_use();

    g_assert_cmpint(nvmlDeviceGetEncoderSessions(device, &count, NULL), ==, 0);
    g_assert_cmpuint(count, ==, 1);
    g_assert_cmpint(nvmlDeviceGetEncoderSessions(device, &count, encoders), ==, 0);
    g_assert_cmpuint(count, ==, 1);
    g_assert_cmpuint(encoders[0].pid, ==, self);
    g_assert_cmpuint(encoders[0].averageFps, ==, 60);
    count = 0;
    g_assert_cmpint(nvmlDeviceGetFBCSessions(device, &count, captures), ==,
                    NVML_ERROR_INSUFFICIENT_SIZE);
    g_assert_cmpint(nvmlDeviceGetFBCSessions(device, &count, captures), ==, 0);
    g_assert_cmpuint(count, ==, 1);
    g_assert_cmpuint(captures[0].pid, ==, self);
    g_assert_cmpuint(captures[0].averageFPS, ==, 60);
}

static void test_sessions(void)
{
    kit_open(LIMIT);
    kit_run(sessions);
    kit_close();
}

static void card(void)
{
    nvmlMemory_t memory;
    nvmlDevice_t device;
    size_t free, total;

    kit_context();
    ok(cuMemGetInfo_v2(&free, &total));
    g_assert_cmpuint(total, ==, CARD);
    g_assert_cmpint(nvmlDeviceGetHandleByIndex_v2(0, &device), ==, 0);
    g_assert_cmpint(nvmlDeviceGetMemoryInfo(device, &memory), ==, 0);
    g_assert_cmpuint(memory.total, ==, CARD);
}

static void test_no_slice(void)
{
    kit_open(0);
    kit_run(card);
    kit_close();
}

/* A program that only looks, and begins to while the arbiter is gone, sees its slice when it is
 * back. */
static void gap(void)
{
    nvmlMemory_t memory;
    nvmlDevice_t device;

    g_assert_cmpint(nvmlInit_v2(), ==, 0);
    g_assert_cmpint(nvmlDeviceGetHandleByIndex_v2(0, &device), ==, 0);
    g_assert_cmpint(nvmlDeviceGetMemoryInfo(device, &memory), ==, 0);
    live_start_arbiter(&kit_live);
    g_assert_cmpint(nvmlDeviceGetMemoryInfo(device, &memory), ==, 0);
    g_assert_cmpuint(memory.total, ==, LIMIT);
}

static void test_gap(void)
{
    kit_open(LIMIT);
    live_kill_arbiter(&kit_live, SIGKILL);
    kit_run(gap);
    kit_close();
}

/* An arbiter that never answers. */
static int listen_at(const char *path)
{
    g_autofree char *slice = g_path_get_dirname(path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    g_assert_cmpint(g_mkdir_with_parents(slice, 0755), ==, 0);
    g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, sizeof(address)), ==, 0);
    g_assert_cmpint(listen(fd, 8), ==, 0);
    return fd;
}

static void *look(void *data)
{
    nvmlMemory_t memory;

    g_assert_cmpint(nvmlDeviceGetMemoryInfo(data, &memory), ==, 0);
    return NULL;
}

/* A child of a process of which a thread is joining has no part of that. */
static void child_while_joining(void)
{
    g_autofree char *dir = g_build_filename(kit_live.root, "own", NULL);
    g_autofree char *path = g_build_filename(dir, "0000:3b:00.0/x/governor.sock", NULL);
    int listener = listen_at(path), connection, status;
    nvmlDevice_t device;
    pthread_t thread;
    pid_t child;

    g_setenv("VGPU_GOVERNOR_SLICES", dir, TRUE);
    g_assert_cmpint(nvmlInit_v2(), ==, 0);
    g_assert_cmpint(nvmlDeviceGetHandleByIndex_v2(0, &device), ==, 0);
    g_assert_cmpint(pthread_create(&thread, NULL, look, device), ==, 0);
    connection = accept(listener, NULL, NULL);
    g_assert_cmpint(connection, >=, 0);
    g_assert_cmpint(unlink(path), ==, 0);
    child = fork();
    if (!child) {
        alarm(20);
        close(listener);
        close(connection);
        look(device);
        _exit(0);
    }
    close(listener);
    close(connection);
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_cmpint(status, ==, 0);
    g_assert_cmpint(pthread_join(thread, NULL), ==, 0);
}

static void test_child_while_joining(void)
{
    kit_open(0);
    kit_run(child_while_joining);
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/view/cuda", test_cuda);
    g_test_add_func("/view/visible", test_visible);
    g_test_add_func("/view/others", test_others);
    g_test_add_func("/view/full-card", test_full_card);
    g_test_add_func("/view/nvml", test_nvml);
    g_test_add_func("/view/processes", test_processes);
    g_test_add_func("/view/other-lists", test_other_lists);
    g_test_add_func("/view/sessions", test_sessions);
    g_test_add_func("/view/no-slice", test_no_slice);
    g_test_add_func("/view/gap", test_gap);
    g_test_add_func("/view/child-while-joining", test_child_while_joining);
    return g_test_run();
}
