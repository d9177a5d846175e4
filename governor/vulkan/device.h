/* SPDX-License-Identifier: MIT */
/* The layer's state of an instance, a device and its queues. */
#ifndef GOVERNOR_VULKAN_DEVICE_H
#define GOVERNOR_VULKAN_DEVICE_H

#include "dispatch.h"
#include "handle_map.h"
#include "learn.h"
#include "process.h"
#include "ticks.h"

struct layer_instance {
    VkInstance handle;
    struct instance_dispatch next;
    struct layer_slice *slices; /* of the process */
    pthread_mutex_t lock;       /* over what follows */
    struct physical *physicals; /* physical devices whose slice is known (physical.h) */
};

struct meter_slot;

/* The GPU's clock and CLOCK_MONOTONIC at one time; @read_at 0: not read yet. */
struct queue_clock {
    uint64_t tick;
    uint64_t host_ns;
    uint64_t read_at;
};

/*
 * The application orders its calls on a queue; @lock is between those and the queue's waiter
 * thread.
 */
struct layer_queue {
    struct layer_device *device;
    VkQueue handle;
    uint32_t family;
    uint32_t number; /* tells it apart in the process */
    enum governor_class class;
    pthread_mutex_t lock;
    pthread_cond_t submitted;
    pthread_cond_t drained;
    struct ticks ticks; /* 0 bits: the host's clock times the work */
    struct queue_clock clock;
    struct learned learned;
    struct meter_slot *first, *last; /* in flight, oldest first */
    struct meter_slot *idle;         /* kept for reuse */
    uint32_t slots;
    uint32_t stuck;       /* in flight and not begun: they wait for a signal */
    uint64_t host_end_ns; /* of the last ended work, by CLOCK_MONOTONIC */
    uint64_t notice_ns;   /* how much later than they are ends are seen: mean and deviation */
    uint64_t notice_deviation_ns;
    uint32_t visits;     /* waits in a row in which the application came for one end each */
    uint32_t unvisited;  /* retired by the waiter since the last one */
    bool watched;        /* the waiter waits for the oldest's fence */
    bool left;           /* the waiter sleeps, and will look by itself */
    uint64_t left_at_ns; /* host_end_ns at its last look */
    VkCommandPool commands;
    struct slot_chunk *chunks;
    _Atomic bool waiting; /* the thread exists */
    bool stopping;
    pthread_t waiter;
};

struct layer_device {
    void *key;
    VkDevice handle;
    struct layer_instance *instance;
    struct device_dispatch next;
    PFN_vkSetDeviceLoaderData set_loader_data;
    struct layer_slice *slice;
    GovernorMember *member; /* the slice's */
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t physical_devices;
    VkPhysicalDevice physical; /* the first of them */
    bool driver_tells;         /* the driver's own device memory */
    bool pages;                /* the driver pages device memory by itself */
    bool shares_fences;        /* the application may import and export them */
    bool timed_by_host;        /* its timestamps are the host's clock */
    bool calibrated;           /* its timestamps can be told in the host's clock */
    /*
     * Since some command buffer suspends a render pass, batches are not split between command
     * buffers.
     */
    _Atomic bool suspends;
    struct handle_map allocations;
    struct handle_map semaphores;
    struct handle_map swapchains;
    /* Of all its queues; if @has_classes, each has its own. */
    enum governor_class class;
    bool has_classes;
    uint32_t queue_count;
    struct layer_queue *queues;
};

static inline struct layer_instance *instance_of(const void *handle)
{
    return dispatch_find(&dispatch_instances, handle);
}

static inline struct layer_device *device_of(const void *handle)
{
    return dispatch_find(&dispatch_devices, handle);
}

/* A queue of @device. */
static inline struct layer_queue *device_queue(struct layer_device *device, VkQueue handle)
{
    for (uint32_t i = 0; i < device->queue_count; i++) {
        if (device->queues[i].handle == handle)
            return &device->queues[i];
    }
    return NULL;
}

/*
 * Whether the driver, or a layer below, has the device extension, whether the application uses it
 * or not.
 */
bool instance_has_extension(const struct layer_instance *instance, VkPhysicalDevice physical,
                            const char *name);

/* Whether the application uses it. */
bool device_enables(const VkDeviceCreateInfo *info, const char *extension);

/* The structure of @type in a chain of pNext, or NULL. */
const void *chain_find(const void *chain, VkStructureType type);

VKAPI_ATTR VkResult VKAPI_CALL layer_CreateInstance(const VkInstanceCreateInfo *info,
                                                    const VkAllocationCallbacks *allocator,
                                                    VkInstance *instance);
VKAPI_ATTR void VKAPI_CALL layer_DestroyInstance(VkInstance instance,
                                                 const VkAllocationCallbacks *allocator);
VKAPI_ATTR VkResult VKAPI_CALL layer_CreateDevice(VkPhysicalDevice physical,
                                                  const VkDeviceCreateInfo *info,
                                                  const VkAllocationCallbacks *allocator,
                                                  VkDevice *device);
VKAPI_ATTR void VKAPI_CALL layer_DestroyDevice(VkDevice device,
                                               const VkAllocationCallbacks *allocator);
VKAPI_ATTR VkResult VKAPI_CALL layer_DeviceWaitIdle(VkDevice device);

#endif /* GOVERNOR_VULKAN_DEVICE_H */
