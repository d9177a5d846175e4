// SPDX-License-Identifier: MIT
#include "handle_map.h"

#include <stdlib.h>

#define FIRST_SIZE 64

void handle_map_init(struct handle_map *map)
{
    *map = (struct handle_map){0};
    pthread_mutex_init(&map->lock, NULL);
}

void handle_map_destroy(struct handle_map *map, void (*forget)(void *record, void *data),
                        void *data)
{
    for (size_t i = 0; i < map->size; i++) {
        if (map->entries[i].handle)
            forget(map->entries[i].record, data);
    }
    free(map->entries);
    pthread_mutex_destroy(&map->lock);
}

static size_t home_of(const struct handle_map *map, uint64_t handle)
{
    return (size_t)(handle * 0x9E3779B97F4A7C15u >> 32) & (map->size - 1);
}

/* Where @handle is, or would be. */
static size_t place_of(const struct handle_map *map, uint64_t handle)
{
    size_t at = home_of(map, handle);

    while (map->entries[at].handle && map->entries[at].handle != handle)
        at = (at + 1) & (map->size - 1);
    return at;
}

static bool grow_map(struct handle_map *map)
{
    struct handle_map larger = {.size = map->size ? map->size * 2 : FIRST_SIZE};

    larger.entries = calloc(larger.size, sizeof(*larger.entries));
    if (!larger.entries)
        return false;
    for (size_t i = 0; i < map->size; i++) {
        if (map->entries[i].handle)
            larger.entries[place_of(&larger, map->entries[i].handle)] = map->entries[i];
    }
    free(map->entries);
    map->entries = larger.entries;
    map->size = larger.size;
    return true;
}

bool handle_map_add(struct handle_map *map, uint64_t handle, void *record)
{
    bool fits;

    pthread_mutex_lock(&map->lock);
    fits = map->used * 2 < map->size || grow_map(map);
    if (fits) {
        map->entries[place_of(map, handle)] = (struct handle_entry){handle, record};
        map->used++;
    }
    pthread_mutex_unlock(&map->lock);
    return fits;
}

void *handle_map_find(struct handle_map *map, uint64_t handle)
{
    void *record = NULL;

    if (!handle)
        return NULL;
    pthread_mutex_lock(&map->lock);
    if (map->size)
        record = map->entries[place_of(map, handle)].record;
    pthread_mutex_unlock(&map->lock);
    return record;
}

/* Moves back entries that are found only through the hole at @hole. */
static void close_hole(struct handle_map *map, size_t hole)
{
    size_t mask = map->size - 1;
    size_t at = hole;

    for (;;) {
        at = (at + 1) & mask;
        if (!map->entries[at].handle)
            break;
        if (((at - home_of(map, map->entries[at].handle)) & mask) < ((at - hole) & mask))
            continue;
        map->entries[hole] = map->entries[at];
        hole = at;
    }
    map->entries[hole] = (struct handle_entry){0};
}

void *handle_map_remove(struct handle_map *map, uint64_t handle)
{
    void *record = NULL;

    if (!handle)
        return NULL;
    pthread_mutex_lock(&map->lock);
    if (map->size) {
        size_t at = place_of(map, handle);

        record = map->entries[at].record;
        if (record) {
            close_hole(map, at);
            map->used--;
        }
    }
    pthread_mutex_unlock(&map->lock);
    return record;
}
