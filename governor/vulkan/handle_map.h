/* SPDX-License-Identifier: MIT */
/*
 * From handles that are not dispatchable (memory, semaphores, swapchains) to records of ours.
 * Thread-safe; the map does not own the records.
 */
#ifndef GOVERNOR_VULKAN_HANDLE_MAP_H
#define GOVERNOR_VULKAN_HANDLE_MAP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct handle_entry {
    uint64_t handle; /* 0: nothing here */
    void *record;
};

struct handle_map {
    pthread_mutex_t lock;
    struct handle_entry *entries; /* open addressing; the number of entries is a power of two */
    size_t size;
    size_t used;
};

void handle_map_init(struct handle_map *map);

/* Calls @forget for every record that is left. */
void handle_map_destroy(struct handle_map *map, void (*forget)(void *record, void *data),
                        void *data);

/* False if there is no memory. */
bool handle_map_add(struct handle_map *map, uint64_t handle, void *record);

/* The record, or NULL. */
void *handle_map_find(struct handle_map *map, uint64_t handle);
void *handle_map_remove(struct handle_map *map, uint64_t handle);

#endif /* GOVERNOR_VULKAN_HANDLE_MAP_H */
