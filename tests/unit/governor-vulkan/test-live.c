// SPDX-License-Identifier: MIT
/* The layer as it is installed, with a real arbiter: a slice that may have half of the GPU's time
 * and 64 MiB. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"
#include "host.h"

#define MIB    (1024u * 1024u)
#define ROUNDS 500000
/* Twenty of them are less than may be deferred at once, so none waits for a second. */
#define SHORT_ROUNDS 10000

static const char *const slices[] = {
    "one",
    "[slice]\nweight=100\ncap=50\nhard=true\npriority=0\nvram=67108864\n"
    "spill=0\nshare=0\nowner=0\n",
    NULL};

static void submit(struct gpu *gpu, VkCommandBuffer commands, uint32_t rounds, VkSemaphore wait,
                   uint64_t value)
{
    static const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = 1,
        .pWaitSemaphoreValues = &value,
    };
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = wait ? &values : NULL,
        .waitSemaphoreCount = wait ? 1 : 0,
        .pWaitSemaphores = &wait,
        .pWaitDstStageMask = &stage,
        .commandBufferCount = 1,
        .pCommandBuffers = &commands,
    };

    VK(vkQueueSubmit(gpu->queue, 1, &info, VK_NULL_HANDLE));
    gpu->expected += gpu_gain(rounds);
}

static void test_memory(void)
{
    struct gpu gpu;
    VkPhysicalDeviceMemoryProperties memory;
    VkDeviceMemory all, more;

    gpu_open(&gpu, NULL);
    vkGetPhysicalDeviceMemoryProperties(gpu.physical, &memory);
    g_assert_cmpuint(memory.memoryHeaps[0].size, ==, 64 * MIB);
    VK(gpu_allocate(&gpu, 63 * MIB, NULL, &all));
    g_assert_cmpint(gpu_allocate(&gpu, MIB, NULL, &more), ==, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    vkFreeMemory(gpu.device, all, NULL);
    VK(gpu_allocate(&gpu, 63 * MIB, NULL, &all));
    vkFreeMemory(gpu.device, all, NULL);
    gpu_close(&gpu);
}

static const char *const sharing[] = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, NULL};

/* What two processes of the slice tell each other. */
struct meeting {
    _Atomic int fd; /* the exporter's number of it, once there */
    _Atomic pid_t exporter;
};

static void export_to(struct meeting *meeting)
{
    VkExportMemoryAllocateInfo export = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
        .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    VkMemoryGetFdInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    PFN_vkGetMemoryFdKHR get;
    struct gpu gpu;
    int fd;

    gpu_open(&gpu, &(struct gpu_options){.extensions = sharing});
    get = (PFN_vkGetMemoryFdKHR)vkGetDeviceProcAddr(gpu.device, "vkGetMemoryFdKHR");
    VK(gpu_allocate(&gpu, 40 * MIB, &export, &info.memory));
    VK(get(gpu.device, &info, &fd));
    meeting->exporter = getpid();
    meeting->fd = fd;
    for (;;)
        pause();
}

/* With 64 MiB for the slice, the import is possible because it has been charged. */
static void import_from(struct meeting *meeting)
{
    VkImportMemoryFdInfoKHR import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    VkDeviceMemory shared, more = VK_NULL_HANDLE;
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    char path[64];
    struct gpu gpu;

    gpu_open(&gpu, &(struct gpu_options){.extensions = sharing});
    while (!meeting->fd)
        g_usleep(1000);
    g_snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)meeting->exporter, meeting->fd);
    import.fd = open(path, O_RDWR | O_CLOEXEC);
    g_assert_cmpint(import.fd, >=, 0);
    VK(gpu_allocate(&gpu, 40 * MIB, &import, &shared));
    g_assert_cmpint(gpu_allocate(&gpu, 30 * MIB, NULL, &more), ==, result);
    kill(meeting->exporter, SIGKILL);
    g_usleep(200000);
    g_assert_cmpint(gpu_allocate(&gpu, 30 * MIB, NULL, &more), ==, result);
    vkFreeMemory(gpu.device, shared, NULL);
    /* Until the other's end is seen, or the alarm comes. */
    for (; result != VK_SUCCESS; g_usleep(10000))
        result = gpu_allocate(&gpu, 60 * MIB, NULL, &more);
    vkFreeMemory(gpu.device, more, NULL);
    gpu_close(&gpu);
}

static pid_t start(void (*function)(struct meeting *meeting), struct meeting *meeting)
{
    pid_t pid = fork();

    g_assert_cmpint(pid, >=, 0);
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    function(meeting);
    _exit(0);
}

/*
 * Exported by one process and imported by another: charged once, also after the exporter has ended.
 */
static void test_shared(void)
{
    struct meeting *meeting =
        mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t exporter, importer;
    int status;

    g_assert_true(meeting != MAP_FAILED);
    exporter = start(export_to, meeting);
    importer = start(import_from, meeting);
    g_assert_cmpint(waitpid(importer, &status, 0), ==, importer);
    g_assert_cmpint(status, ==, 0);
    g_assert_cmpint(waitpid(exporter, &status, 0), ==, exporter);
    munmap(meeting, sizeof(*meeting));
}

/* How exactly a cap holds is the benchmark's matter; here, that all is done, and done right. */
static void test_capped(void)
{
    struct gpu gpu;
    VkCommandBuffer commands;

    gpu_open(&gpu, NULL);
    commands = gpu_record(&gpu, ROUNDS);
    for (int i = 0; i < 20; i++)
        submit(&gpu, commands, ROUNDS, NULL, 0);
    gpu_check(&gpu);
    gpu_close(&gpu);
}

/* The thread that signals is the one that would be waiting for its turn. */
static void test_wait_before_signal(void)
{
    struct gpu gpu;
    VkSemaphore timeline;
    VkCommandBuffer commands;
    VkSemaphoreSignalInfo signal = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO};

    gpu_open(&gpu, NULL);
    timeline = gpu_timeline(&gpu);
    commands = gpu_record(&gpu, SHORT_ROUNDS);
    signal.semaphore = timeline;
    for (signal.value = 1; signal.value <= 5; signal.value++) {
        for (int i = 0; i < 20; i++)
            submit(&gpu, commands, SHORT_ROUNDS, i % 2 ? NULL : timeline, signal.value);
        VK(vkSignalSemaphore(gpu.device, &signal));
        gpu_check(&gpu);
    }
    vkDestroySemaphore(gpu.device, timeline, NULL);
    gpu_close(&gpu);
}

int main(int argc, char **argv)
{
    struct host host;
    int failed;

    g_test_init(&argc, &argv, NULL);
    gpu_environment();
    /* Whoever waits for what never comes is ended. */
    alarm(120);
    host_up(&host, slices);
    host_enter(&host, "one");
    /* The first: its processes are forked by one that has no Vulkan yet. */
    g_test_add_func("/live/shared", test_shared);
    g_test_add_func("/live/memory", test_memory);
    g_test_add_func("/live/capped", test_capped);
    g_test_add_func("/live/wait-before-signal", test_wait_before_signal);
    failed = g_test_run();
    host_down(&host);
    return failed;
}
