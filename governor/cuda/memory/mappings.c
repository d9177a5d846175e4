// SPDX-License-Identifier: MIT
#include "mappings.h"

#include <stdlib.h>
#include <string.h>

unsigned int mappings_from(const struct mappings *mappings, uint64_t at)
{
    unsigned int low = 0, high = mappings->count;

    while (low < high) {
        unsigned int middle = low + (high - low) / 2;
        const struct mapping *mapping = &mappings->list[middle];

        if (mapping->at + (mapping->bytes - 1) < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct mapping *mappings_find(const struct mappings *mappings, uint64_t at)
{
    unsigned int index = mappings_from(mappings, at);

    return index < mappings->count && mappings->list[index].at <= at ? &mappings->list[index]
                                                                     : NULL;
}

bool mappings_make_room(struct mappings *mappings, unsigned int more)
{
    unsigned int room = mappings->room ? mappings->room : 16;
    struct mapping *list;

    while (room < mappings->count + more)
        room *= 2;
    if (room == mappings->room)
        return true;
    list = realloc(mappings->list, room * sizeof(*list));
    if (!list)
        return false;
    mappings->list = list;
    mappings->room = room;
    return true;
}

void mappings_add(struct mappings *mappings, const struct mapping *mapping)
{
    unsigned int index = mappings_from(mappings, mapping->at);

    memmove(&mappings->list[index + 1], &mappings->list[index],
            (mappings->count - index) * sizeof(*mappings->list));
    mappings->list[index] = *mapping;
    mappings->count++;
}

void mappings_remove(struct mappings *mappings, unsigned int index)
{
    mappings->count--;
    memmove(&mappings->list[index], &mappings->list[index + 1],
            (mappings->count - index) * sizeof(*mappings->list));
}
