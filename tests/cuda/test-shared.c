// SPDX-License-Identifier: MIT
/* Memory that processes of a slice share is charged once, until the last of them has freed it. */
#include "kit.h"

#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT (64 * MIB)

/* Between exporter and importer: a line each way, with a descriptor. */
static int line[2];

static void send_fd(int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec data = {.iov_base = "x", .iov_len = 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    g_assert_cmpint(sendmsg(line[0], &message, 0), ==, 1);
}

static int receive_fd(void)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    char byte;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control.bytes)};
    int fd;

    g_assert_cmpint(recvmsg(line[1], &message, 0), ==, 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    return fd;
}

static void tell(int end)
{
    g_assert_cmpint(write(line[end], "x", 1), ==, 1);
}

static void hear(int end)
{
    char byte;

    g_assert_cmpint(read(line[end], &byte, 1), ==, 1);
}

static void both(void (*exporter)(void), void (*importer)(void))
{
    unsigned int one, other;

    kit_open(LIMIT);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, line), ==, 0);
    one = kit_start(exporter);
    other = kit_start(importer);
    kit_await(one);
    kit_await(other);
    kit_charged(0);
    close(line[0]);
    close(line[1]);
    kit_close();
}

static void ipc_exporter(void)
{
    CUipcMemHandle handle, again;
    CUdeviceptr dptr;

    kit_context();
    ok(cuMemAlloc_v2(&dptr, 40 * MIB));
    ok(cuIpcGetMemHandle(&handle, dptr));
    ok(cuIpcGetMemHandle(&again, dptr));
    kit_charged(40 * MIB);
    g_assert_cmpint(write(line[0], &handle, sizeof(handle)), ==, sizeof(handle));
    hear(0);
    ok(cuMemFree_v2(dptr));
    /* The other still has it. */
    kit_charged(40 * MIB);
    tell(0);
}

static void ipc_importer(void)
{
    CUipcMemHandle handle;
    CUdeviceptr dptr, never;

    kit_context();
    g_assert_cmpint(read(line[1], &handle, sizeof(handle)), ==, sizeof(handle));
    ok(cuIpcOpenMemHandle_v2(&dptr, handle, 1));
    kit_charged(40 * MIB);
    full(cuMemAlloc_v2(&never, 30 * MIB));
    tell(1);
    hear(1);
    ok(cuIpcCloseMemHandle(dptr));
    kit_charged(0);
}

static void test_ipc(void)
{
    both(ipc_exporter, ipc_importer);
}

/* As a pod's second container has. */
static void importer_with_own_ids(void)
{
    int status;
    pid_t pid;

    g_assert_cmpint(unshare(CLONE_NEWPID), ==, 0);
    pid = fork();
    if (pid == 0) {
        g_assert_cmpint(getpid(), ==, 1);
        ipc_importer();
        _exit(0);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, 0);
}

static void test_ipc_of_pod(void)
{
    both(ipc_exporter, importer_with_own_ids);
}

static CUmemAllocationProp shareable(void)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
    };
}

static void physical_exporter(void)
{
    CUmemAllocationProp property = shareable();
    CUmemGenericAllocationHandle handle;
    int fd;

    kit_context();
    ok(cuMemCreate(&handle, 40 * MIB, &property, 0));
    ok(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    send_fd(fd);
    hear(0);
    ok(cuMemRelease(handle));
    kit_charged(40 * MIB);
    tell(0);
}

static void physical_importer(void)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;

    kit_context();
    ok(cuCtxSetCurrent(NULL));
    ok(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)receive_fd(),
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ok(cuMemAddressReserve(&at, 40 * MIB, 0, 0, 0));
    ok(cuMemMap(at, 40 * MIB, 0, handle, 0));
    ok(cuMemRelease(handle));
    kit_charged(40 * MIB);
    tell(1);
    hear(1);
    ok(cuMemUnmap(at, 40 * MIB));
    kit_charged(0);
}

static void test_physical(void)
{
    both(physical_exporter, physical_importer);
}

/* What another slice's process exported is charged to who imports it, and may be too much. */
static void stranger(void)
{
    CUipcMemHandle handle = {0};
    CUdeviceptr dptr, own;
    struct {
        int pid;
        CUdeviceptr dptr;
        uint64_t bytes;
    } inside = {1, 4096, 30 * MIB};

    memcpy(handle.reserved, &inside, sizeof(inside));
    kit_context();
    ok(cuIpcOpenMemHandle(&dptr, handle, 1));
    kit_charged(30 * MIB);
    ok(cuIpcCloseMemHandle(dptr));
    kit_charged(0);
    ok(cuMemAlloc_v2(&own, 40 * MIB));
    full(cuIpcOpenMemHandle_v2(&dptr, handle, 1));
    kit_charged(40 * MIB);
    ok(cuMemFree_v2(own));
}

static void test_stranger(void)
{
    kit_open(LIMIT);
    kit_run(stranger);
    kit_close();
}

/* A handle as another process would have made it of memory on the second device. */
static CUipcMemHandle handle_of_second(CUdeviceptr at, uint64_t bytes)
{
    CUipcMemHandle handle = {0};
    struct {
        int pid;
        CUdeviceptr dptr;
        uint64_t bytes;
        int device;
    } inside = {1, at, bytes, 1};

    memcpy(handle.reserved, &inside, sizeof(inside));
    return handle;
}

/* Of slice a. Its own charge ends with it. */
static void parts_exporter(void)
{
    CUmemAllocationProp property = shareable();
    CUmemGenericAllocationHandle handle;
    int fd;

    kit_enter("a");
    ok(cuMemCreate(&handle, 40 * MIB, &property, 0));
    ok(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    send_fd(fd);
}

/* Of slice b: it is charged as far as it has ever mapped what it imported, and no further. */
static void parts_importer(void)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;

    kit_enter("b");
    ok(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)receive_fd(),
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ok(cuMemAddressReserve(&at, 64 * MIB, 0, 0, 0));
    ok(cuMemMap(at, 2 * MIB, 0, handle, 0));
    kit_charged_b(2 * MIB);
    ok(cuMemMap(at + 2 * MIB, 28 * MIB, 2 * MIB, handle, 0));
    kit_charged_b(30 * MIB);
    ok(cuMemMap(at + 30 * MIB, 2 * MIB, 4 * MIB, handle, 0));
    kit_charged_b(30 * MIB);
    full(cuMemMap(at + 32 * MIB, 10 * MIB, 30 * MIB, handle, 0));
    kit_charged_b(30 * MIB);
    ok(cuMemUnmap(at, 32 * MIB));
    ok(cuMemRelease(handle));
    kit_charged_b(0);
}

static void test_parts(void)
{
    unsigned int one, other;

    kit_open_two("[slice]\n", "[slice]\nvram=33554432\n");
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, line), ==, 0);
    one = kit_start(parts_exporter);
    other = kit_start(parts_importer);
    kit_await(one);
    kit_await(other);
    close(line[0]);
    close(line[1]);
    kit_close();
}

/* As collectives do: each has its own card's context and opens the others' memory. */
static void peer(void)
{
    CUipcMemHandle handle = handle_of_second(1, 30 * MIB);
    CUdeviceptr dptr, never;

    kit_context();
    ok(cuIpcOpenMemHandle_v2(&dptr, handle, 1));
    kit_charged_b(30 * MIB);
    kit_charged(0);
    ok(cuIpcCloseMemHandle(dptr));
    kit_charged_b(0);
    handle = handle_of_second(2, 80 * MIB);
    full(cuIpcOpenMemHandle_v2(&never, handle, 1));
    kit_charged_b(0);
}

static void test_peer(void)
{
    kit_open_devices("[slice]\nvram=20971520\n", "[slice]\nvram=67108864\n");
    kit_run(peer);
    kit_close();
}

/* The driver gives one address however often, until it was closed as often. */
static void twice(void)
{
    CUipcMemHandle handle = handle_of_second(1, 30 * MIB);
    CUdeviceptr dptr, again, other;

    kit_context();
    ok(cuIpcOpenMemHandle_v2(&dptr, handle, 1));
    ok(cuIpcOpenMemHandle(&again, handle, 1));
    g_assert_cmpuint(dptr, ==, again);
    kit_charged_b(30 * MIB);
    ok(cuIpcCloseMemHandle(dptr));
    /* What is given back is not waited for, but comes before this. */
    ok(cuIpcOpenMemHandle(&other, handle_of_second(2, 2 * MIB), 1));
    kit_charged_b(32 * MIB);
    ok(cuIpcCloseMemHandle(again));
    kit_charged_b(2 * MIB);
    ok(cuIpcCloseMemHandle(other));
    kit_charged_b(0);
    g_assert_cmpint(cuIpcCloseMemHandle(again), !=, CUDA_SUCCESS);
}

static void test_twice(void)
{
    kit_open_devices("[slice]\n", "[slice]\n");
    kit_run(twice);
    kit_close();
}

/* CUmulticastObjectProp. */
struct multicast {
    unsigned int devices;
    size_t bytes;
    unsigned long long handle_types;
    unsigned long long flags;
};
CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const struct multicast *of);
CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device);

/* It is no memory: what is bound to it has been charged. */
static void multicast(void)
{
    const struct multicast of = {.devices = 1, .bytes = 2 * LIMIT, .handle_types = 1};
    CUmemGenericAllocationHandle made, imported;
    CUdeviceptr at;
    int fd;

    kit_context();
    ok(cuMulticastCreate(&made, &of));
    ok(cuMemExportToShareableHandle(&fd, made, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ok(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ok(cuMulticastAddDevice(imported, 0));
    ok(cuMemAddressReserve(&at, of.bytes, 0, 0, 0));
    ok(cuMemMap(at, of.bytes, 0, imported, 0));
    kit_charged(0);
    ok(cuMemUnmap(at, of.bytes));
    ok(cuMemRelease(imported));
    ok(cuMemRelease(made));
    close(fd);
}

/* By a driver that says nothing of it, and by one that says where it is. */
static void test_multicast(void)
{
    for (int i = 0; i < 2; i++) {
        if (i)
            g_setenv("FAKE_CUDA_MULTICAST_PROPERTIES", "1", TRUE);
        kit_open(LIMIT);
        kit_run(multicast);
        kit_close();
    }
    g_unsetenv("FAKE_CUDA_MULTICAST_PROPERTIES");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/shared/ipc", test_ipc);
    g_test_add_func("/shared/ipc-of-pod", test_ipc_of_pod);
    g_test_add_func("/shared/physical", test_physical);
    g_test_add_func("/shared/parts", test_parts);
    g_test_add_func("/shared/stranger", test_stranger);
    g_test_add_func("/shared/peer", test_peer);
    g_test_add_func("/shared/twice", test_twice);
    g_test_add_func("/shared/multicast", test_multicast);
    return g_test_run();
}
