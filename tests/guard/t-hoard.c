// SPDX-License-Identifier: MIT
/*
 * A client that frees its GPU memory, and keeps it all the same: by the mapping that a child
 * process has of each allocation. It prints how much of it there is when the next allocation fails,
 * or --most MiB; then it lets go of all, and prints whether as much can be had again.
 *
 * With --shared MiB it does the same with plain shared memory, by descriptors that it keeps after
 * it has disconnected from the guard (VTEST_SOCKET_NAME), and prints how much of it is still there.
 */
#include "vtest.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

#define PIECE_MIB   8u
#define MIB         (1u << 20)
#define MOST_PIECES 1024u
#define GPUS        8u
#define SHARED_MIB  64u /* in one blob, of one client */

struct gpu {
    VkPhysicalDevice physical;
    VkDevice device;
    uint32_t memory_type;
};

static void fail_call(const char *what, long result)
{
    fprintf(stderr, "t-hoard: %s failed: %ld\n", what, result);
    exit(EXIT_FAILURE);
}

/* Memory that the CPU sees: it is what clients are given descriptors of. */
static uint32_t visible_type(VkPhysicalDevice physical)
{
    VkPhysicalDeviceMemoryProperties memory;

    vkGetPhysicalDeviceMemoryProperties(physical, &memory);
    for (uint32_t i = 0; i < memory.memoryTypeCount; i++) {
        if (memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)
            return i;
    }
    fail_call("looking for memory that can be mapped", 0);
    return 0;
}

static void open_gpu(struct gpu *gpu)
{
    static const float priority = 1;
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo instance_info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                                .pApplicationInfo = &application};
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo device_info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                            .queueCreateInfoCount = 1,
                                            .pQueueCreateInfos = &queue};
    VkPhysicalDevice found[GPUS];
    uint32_t count = GPUS;
    VkInstance instance;
    VkResult result = vkCreateInstance(&instance_info, NULL, &instance);

    if (result != VK_SUCCESS)
        fail_call("vkCreateInstance", result);
    result = vkEnumeratePhysicalDevices(instance, &count, found);
    if (result != VK_SUCCESS || count == 0)
        fail_call("vkEnumeratePhysicalDevices", result);
    gpu->physical = found[0];
    result = vkCreateDevice(gpu->physical, &device_info, NULL, &gpu->device);
    if (result != VK_SUCCESS)
        fail_call("vkCreateDevice", result);
    gpu->memory_type = visible_type(gpu->physical);
}

/* Has whatever is mapped now. */
static pid_t start_holder(void)
{
    pid_t pid = fork();

    if (pid < 0)
        fail_call("fork", pid);
    while (pid == 0)
        pause();
    return pid;
}

/* Who has a piece of memory that has been freed; 0: there was none to be had. */
static pid_t hoard_one(const struct gpu *gpu)
{
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .allocationSize = PIECE_MIB * MIB,
                                       .memoryTypeIndex = gpu->memory_type};
    VkDeviceMemory memory;
    void *map = NULL;
    pid_t holder = 0;

    if (vkAllocateMemory(gpu->device, &info, NULL, &memory) != VK_SUCCESS)
        return 0;
    if (vkMapMemory(gpu->device, memory, 0, VK_WHOLE_SIZE, 0, &map) == VK_SUCCESS) {
        memset(map, 1, PIECE_MIB * MIB);
        holder = start_holder();
        vkUnmapMemory(gpu->device, memory);
        vkFreeMemory(gpu->device, memory, NULL);
    }
    /* Else Venus knows only now that there was none; it takes freeing that for a fatal mistake. */
    return holder;
}

static unsigned hoard(const struct gpu *gpu, pid_t *holders, unsigned most)
{
    unsigned count = 0;

    while (count < most && (holders[count] = hoard_one(gpu)))
        count++;
    return count;
}

static void let_go(const pid_t *holders, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        kill(holders[i], SIGKILL);
        waitpid(holders[i], NULL, 0);
    }
}

static int connect_guard(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("VTEST_SOCKET_NAME");
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    if (!path || strlen(path) >= sizeof(address.sun_path))
        fail_call("VTEST_SOCKET_NAME", 0);
    strcpy(address.sun_path, path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        fail_call("connecting to the guard", fd);
    return fd;
}

/* The descriptor that follows an answer. */
static int receive_fd(int connection)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    char byte;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control.bytes)};
    int fd = -1;

    if (recvmsg(connection, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    return fd;
}

/* Shared memory with content, of a client that has left. */
static int hoard_shared(void)
{
    static const uint32_t name[] = {4, VTEST_CREATE_RENDERER, 0x72646f68};
    static const uint32_t rest[] = {
        1, VTEST_CONTEXT_INIT, 4, 6, VTEST_RESOURCE_CREATE_BLOB, 2, 1, SHARED_MIB * MIB, 0, 0, 0,
    };
    uint32_t answer[VTEST_HEADER_WORDS + 1];
    int connection = connect_guard(), fd;
    void *map;

    if (write(connection, name, sizeof(name)) != (ssize_t)sizeof(name) ||
        write(connection, rest, sizeof(rest)) != (ssize_t)sizeof(rest) ||
        recv(connection, answer, sizeof(answer), MSG_WAITALL) != (ssize_t)sizeof(answer))
        fail_call("a blob of shared memory", 0);
    fd = receive_fd(connection);
    map = mmap(NULL, SHARED_MIB * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        fail_call("mapping a blob of shared memory", fd);
    memset(map, 1, SHARED_MIB * MIB);
    close(connection);
    return fd;
}

static unsigned long mib_of(const int *fds, unsigned count)
{
    unsigned long blocks = 0;
    struct stat status;

    for (unsigned i = 0; i < count; i++) {
        if (fstat(fds[i], &status) < 0)
            fail_call("fstat", fds[i]);
        blocks += (unsigned long)status.st_blocks;
    }
    return blocks * 512 / MIB;
}

static int shared(unsigned mib)
{
    static int fds[MOST_PIECES];
    unsigned count = mib / SHARED_MIB;
    unsigned long left = mib;

    for (unsigned i = 0; i < count; i++)
        fds[i] = hoard_shared();
    for (unsigned tries = 0; tries < 100 && left; tries++) {
        usleep(100000);
        left = mib_of(fds, count);
    }
    printf("shared %u MiB, left %lu MiB\n", count * SHARED_MIB, left);
    return left ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* What follows the option @name. */
static unsigned read_option(int argc, char **argv, const char *name, unsigned piece)
{
    unsigned mib = argc == 3 && !strcmp(argv[1], name) ? (unsigned)atoi(argv[2]) : 0;

    return mib / piece <= MOST_PIECES ? mib / piece * piece : 0;
}

int main(int argc, char **argv)
{
    unsigned most = read_option(argc, argv, "--most", PIECE_MIB);
    unsigned of_shared = read_option(argc, argv, "--shared", SHARED_MIB);
    static pid_t holders[MOST_PIECES];
    struct gpu gpu;
    unsigned count, again = 0;

    if (of_shared)
        return shared(of_shared);
    if (!most)
        fail_call("usage: t-hoard --most MIB | --shared MIB", 0);
    open_gpu(&gpu);
    count = hoard(&gpu, holders, most / PIECE_MIB);
    printf("hoarded %u MiB\n", count * PIECE_MIB);
    fflush(stdout);
    let_go(holders, count);
    for (unsigned tries = 0; tries < 100 && again < count; tries++) {
        usleep(100000);
        again = hoard(&gpu, holders, count);
        let_go(holders, again);
    }
    printf("again %u MiB\n", again * PIECE_MIB);
    return again == count ? EXIT_SUCCESS : EXIT_FAILURE;
}
