// SPDX-License-Identifier: MIT
/* Memory that programs map themselves: what threads, GPUs and imports do at the same time. */
#include "kit.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BYTES (2 * MIB)

static CUmemAllocationProp on(int device)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
}

/* The call at which the driver holds a thread up, as one that waits for work does. */
static const char *held_up;
static pthread_t held_thread;
static sem_t is_in, may_go;

static void hold_up(const char *name)
{
    if (!held_up || strcmp(name, held_up) || !pthread_equal(pthread_self(), held_thread))
        return;
    sem_post(&is_in);
    sem_wait(&may_go);
}

/* As another process would have made it of its memory. */
static CUipcMemHandle handle_of(CUdeviceptr at, int device)
{
    CUipcMemHandle handle = {0};
    struct {
        int pid;
        CUdeviceptr at;
        uint64_t bytes;
        int device;
    } inside = {1, at, BYTES, device};

    memcpy(handle.reserved, &inside, sizeof(inside));
    return handle;
}

/* All that there is to do with memory of the device. */
static void use(int device, CUdeviceptr at)
{
    CUmemGenericAllocationHandle handle, again, imported;
    CUmemAllocationProp property = on(device);
    CUdeviceptr opened;
    int fd;

    ok(cuIpcOpenMemHandle_v2(&opened, handle_of(at, device), 1));
    ok(cuIpcCloseMemHandle(opened));
    ok(cuMemCreate(&handle, BYTES, &property, 0));
    ok(cuMemMap(at, BYTES, 0, handle, 0));
    ok(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at));
    ok(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ok(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ok(cuMemMap(at + BYTES, BYTES, 0, imported, 0));
    ok(cuMemRelease(imported));
    ok(cuMemRelease(handle));
    ok(cuMemRelease(again));
    ok(cuMemUnmap(at, 2 * BYTES));
    close(fd);
}

static CUdeviceptr addresses;

static void *use_first(void *name)
{
    held_thread = pthread_self();
    held_up = name;
    use(0, addresses);
    return NULL;
}

/* Whatever the driver holds up of one GPU's, the other one's thread goes on. */
static void apart(void)
{
    static const char *const names[] = {"cuMemCreate",
                                        "cuMemMap",
                                        "cuMemRetainAllocationHandle",
                                        "cuMemExportToShareableHandle",
                                        "cuMemImportFromShareableHandle",
                                        "cuMemRelease",
                                        "cuMemUnmap",
                                        "cuIpcOpenMemHandle_v2",
                                        "cuIpcCloseMemHandle"};
    void (**hook)(const char *) = kit_driver("fake_in_mapping");
    pthread_t thread;

    kit_context();
    sem_init(&is_in, 0, 0);
    sem_init(&may_go, 0, 0);
    *hook = hold_up;
    ok(cuMemAddressReserve(&addresses, 4 * BYTES, 0, 0, 0));
    for (unsigned int i = 0; i < G_N_ELEMENTS(names); i++) {
        /* A thread that is held up for good ends the test, not by its own time. */
        alarm(20);
        held_up = NULL;
        g_assert_cmpint(pthread_create(&thread, NULL, use_first, (void *)names[i]), ==, 0);
        sem_wait(&is_in);
        use(1, addresses + 2 * BYTES);
        use(0, addresses + 2 * BYTES);
        held_up = NULL;
        sem_post(&may_go);
        g_assert_cmpint(pthread_join(thread, NULL), ==, 0);
    }
    alarm(0);
    kit_charged(0);
    kit_charged_b(0);
}

static void test_apart(void)
{
    kit_open_devices("[slice]\n", "[slice]\n");
    kit_run(apart);
    kit_close();
}

static CUdeviceptr opened_by_thread;

static void *open_held_up(void *name)
{
    held_thread = pthread_self();
    held_up = name;
    ok(cuIpcOpenMemHandle_v2(&opened_by_thread, handle_of(7, 0), 1));
    return NULL;
}

static void *close_held_up(void *name)
{
    held_thread = pthread_self();
    held_up = name;
    ok(cuIpcCloseMemHandle(opened_by_thread));
    return NULL;
}

static void in_a_thread(void *(*program)(void *), const char *name, void (*meanwhile)(void))
{
    pthread_t thread;

    alarm(20);
    held_up = NULL;
    g_assert_cmpint(pthread_create(&thread, NULL, program, (void *)name), ==, 0);
    sem_wait(&is_in);
    meanwhile();
    sem_post(&may_go);
    g_assert_cmpint(pthread_join(thread, NULL), ==, 0);
    alarm(0);
}

static CUdeviceptr opened_here;

static void open_too(void)
{
    ok(cuIpcOpenMemHandle_v2(&opened_here, handle_of(7, 0), 1));
    kit_charged(BYTES);
}

/* Threads that open and close one memory at the same time count it right. */
static void opened_at_once(void)
{
    void (**hook)(const char *) = kit_driver("fake_in_mapping");

    kit_context();
    sem_init(&is_in, 0, 0);
    sem_init(&may_go, 0, 0);
    *hook = hold_up;
    in_a_thread(open_held_up, "opened", open_too);
    g_assert_cmpuint(opened_here, ==, opened_by_thread);
    kit_charged(BYTES);
    ok(cuIpcCloseMemHandle(opened_here));
    kit_charged(BYTES);
    in_a_thread(close_held_up, "cuIpcCloseMemHandle", open_too);
    kit_charged(BYTES);
    ok(cuIpcCloseMemHandle(opened_here));
    kit_charged(0);
    g_assert_cmpint(cuIpcCloseMemHandle(opened_here), !=, CUDA_SUCCESS);
    kit_charged(0);
}

/* What the driver refuses changes nothing. */
static void refused(void)
{
    CUmemAllocationProp property = on(0);
    CUmemGenericAllocationHandle handle, imported;
    CUdeviceptr at;
    int fd;

    kit_context();
    ok(cuMemAddressReserve(&at, 4 * BYTES, 0, 0, 0));
    ok(cuMemCreate(&handle, BYTES, &property, 0));
    kit_charged(BYTES);
    g_assert_cmpint(cuMemUnmap(at, BYTES), !=, CUDA_SUCCESS);
    g_assert_cmpint(cuMemMap(at, 2 * BYTES, 0, handle, 0), !=, CUDA_SUCCESS);
    ok(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ok(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ok(cuMemRelease(handle));
    kit_charged(0);
    g_assert_cmpint(cuMemMap(at, 2 * BYTES, 0, imported, 0), !=, CUDA_SUCCESS);
    kit_charged(0);
    ok(cuMemMap(at, BYTES, 0, imported, 0));
    kit_charged(BYTES);
    g_assert_cmpint(cuMemMap(at + BYTES, 2 * BYTES, 0, imported, 0), !=, CUDA_SUCCESS);
    kit_charged(BYTES);
    ok(cuMemRelease(imported));
    kit_charged(BYTES);
    ok(cuMemUnmap(at, BYTES));
    kit_charged(0);
    close(fd);
}

/* Descriptors that name their memory: of one that was imported twice, and mapped in parts. */
static void named_twice(void)
{
    CUmemGenericAllocationHandle one, other;
    CUmemAllocationProp property = on(0);
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    int fd;

    kit_context();
    ok(cuMemAddressReserve(&at, 64 * MIB, 0, 0, 0));
    ok(cuMemCreate(&handle, 30 * MIB, &property, 0));
    ok(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ok(cuMemRelease(handle));
    ok(cuMemImportFromShareableHandle(&one, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ok(cuMemImportFromShareableHandle(&other, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    kit_charged(0);
    ok(cuMemMap(at, 2 * MIB, 0, one, 0));
    ok(cuMemMap(at + 2 * MIB, 2 * MIB, 0, other, 0));
    kit_charged(2 * MIB);
    ok(cuMemMap(at + 4 * MIB, 28 * MIB, 2 * MIB, other, 0));
    kit_charged(30 * MIB);
    ok(cuMemMap(at + 32 * MIB, 28 * MIB, 2 * MIB, one, 0));
    kit_charged(30 * MIB);
    ok(cuMemUnmap(at, 64 * MIB));
    ok(cuMemRelease(one));
    kit_charged(30 * MIB);
    ok(cuMemRelease(other));
    kit_charged(0);
    close(fd);
}

static void run(const void *program)
{
    kit_open(64 * MIB);
    kit_run(program);
    kit_close();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mapping/apart", test_apart);
    g_test_add_data_func("/mapping/opened-at-once", opened_at_once, run);
    g_test_add_data_func("/mapping/refused", refused, run);
    g_test_add_data_func("/mapping/named-twice", named_twice, run);
    return g_test_run();
}
