// SPDX-License-Identifier: MIT
#include "dispatch.h"

#include <pthread.h>

struct dispatch_map dispatch_instances;
struct dispatch_map dispatch_devices;

/* Serializes changes of both maps. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

/* A removed key's place: entries after it must still be found. */
static char removed;

#define LOAD(name) next->name = (PFN_vk##name)get(owner, "vk" #name);
#define LOAD_KHR(name)                                                                             \
    LOAD(name)                                                                                     \
    if (!next->name)                                                                               \
        next->name = (PFN_vk##name)get(owner, "vk" #name "KHR");
#define LOAD_KHR_ONLY(name) next->name = (PFN_vk##name)get(owner, "vk" #name "KHR");

void dispatch_load_instance(struct instance_dispatch *next, VkInstance owner,
                            PFN_vkGetInstanceProcAddr get, enum properties2 properties2)
{
    next->GetInstanceProcAddr = get;
    INSTANCE_COMMANDS(LOAD)
    if (properties2 == PROPERTIES2_CORE) {
        INSTANCE_COMMANDS_KHR(LOAD_KHR)
    } else if (properties2 == PROPERTIES2_EXTENSION) {
        INSTANCE_COMMANDS_KHR(LOAD_KHR_ONLY)
    }
}

void dispatch_load_device(struct device_dispatch *next, VkDevice owner, PFN_vkGetDeviceProcAddr get)
{
    DEVICE_COMMANDS(LOAD)
    DEVICE_COMMANDS_KHR(LOAD_KHR)
    if (!next->GetCalibratedTimestampsKHR)
        next->GetCalibratedTimestampsKHR =
            (PFN_vkGetCalibratedTimestampsKHR)get(owner, "vkGetCalibratedTimestampsEXT");
    next->GetDeviceProcAddr = get;
}

bool dispatch_map_add(struct dispatch_map *map, void *key, void *value)
{
    uint32_t start = dispatch_hash(key);
    bool added = false;

    pthread_mutex_lock(&changing);
    for (uint32_t i = 0; i < DISPATCH_MAP_SLOTS && !added; i++) {
        uint32_t at = (start + i) % DISPATCH_MAP_SLOTS;
        void *found = atomic_load(&map->slots[at].key);

        if (found && found != &removed)
            continue;
        atomic_store(&map->slots[at].value, value);
        atomic_store_explicit(&map->slots[at].key, key, memory_order_release);
        added = true;
    }
    pthread_mutex_unlock(&changing);
    return added;
}

void dispatch_map_remove(struct dispatch_map *map, void *key)
{
    pthread_mutex_lock(&changing);
    for (uint32_t at = 0; at < DISPATCH_MAP_SLOTS; at++) {
        if (atomic_load(&map->slots[at].key) == key)
            atomic_store(&map->slots[at].key, &removed);
    }
    pthread_mutex_unlock(&changing);
}
