/* SPDX-License-Identifier: MIT */
/* The layer's state of an instance, a device, its queues and their work, which its files share. */
#ifndef GOVERNOR_VULKAN_LAYER_STATE_H
#define GOVERNOR_VULKAN_LAYER_STATE_H

#include "dispatch.h"
#include "handle_map.h"
#include "lane.h"
#include "learn.h"
#include "process.h"
#include "ticks.h"

/* The layer's own function for vk@name, by Vulkan's type of it. */
#define LAYER_COMMAND(name) extern __typeof__(*(PFN_vk##name)NULL) layer_##name

struct layer_instance {
    VkInstance handle;
    struct instance_dispatch next;
    struct layer_slice *slices; /* of the process */
    pthread_mutex_t lock;       /* over what follows */
    struct physical *physicals; /* physical devices whose slice is known (physical.h) */
};

struct meter_work {
    uint64_t key;      /* of its command buffers, see learn.h */
    uint32_t commands; /* how many */
    bool waits;        /* for semaphores */
    bool deferred;     /* waits for something that is not signalled */
    bool wrap;         /* command buffers of ours may be next to its own */
    bool known;        /* what was measured of the same work lately stands in for a measurement */
    VkFence fence;     /* the application's, or VK_NULL_HANDLE */
    uint64_t most_ns;  /* maximum charge; 0: no bound */
};

struct meter_slot {
    struct meter_slot *next; /* in flight or idle */
    VkFence fence;
    VkFence ends_by; /* the fence of its submission: @fence or the application's own */
    bool ended;      /* the end is known, and @ends_by must not be queried any more */
    /* NULL if the queue has no timestamps */
    VkCommandBuffer begin, end;
    VkEvent begun;                  /* set by begin */
    const volatile uint64_t *ticks; /* of begin and end, valid once the fence is signalled */

    uint64_t marker; /* of free work, see mark.c; 0: it is metered work */
    struct meter_work work;
    struct lane_work lane; /* its debit, and how far it has come */
    uint64_t seen_ns;      /* its end, seen by a thread that was not to retire it; 0: by none */
};

/* Slots that share a query pool and the buffer that results are copied to. */
#define SLOTS_IN_CHUNK 32
#define SLOT_TICKS     2 /* begin and end */

struct slot_chunk {
    struct slot_chunk *next;
    VkQueryPool queries;
    VkBuffer results;
    VkDeviceMemory memory;
    struct meter_slot slots[SLOTS_IN_CHUNK];
};

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

/* extensions.c */
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

#endif /* GOVERNOR_VULKAN_LAYER_STATE_H */
