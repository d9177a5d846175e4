// SPDX-License-Identifier: MIT
#include "parts.h"

#include <stdlib.h>

bool parts_make_room(struct parts *parts, unsigned int more)
{
    unsigned int room = parts->room ? parts->room : 16;
    struct part *list;

    if (more > UINT32_MAX / 4 - parts->count)
        return false;
    while (room < parts->count + more)
        room *= 2;
    if (room == parts->room)
        return true;
    list = realloc(parts->list, room * sizeof(*list));
    if (!list)
        return false;
    parts->list = list;
    parts->room = room;
    return true;
}

void parts_add(struct parts *parts, const struct part *part)
{
    parts->list[parts->count++] = *part;
}

static struct physical *take_part(struct parts *parts, unsigned int index)
{
    struct physical *physical = parts->list[index].physical;

    parts->list[index] = parts->list[--parts->count];
    return physical;
}

static bool is_within(uint64_t at, uint64_t length, uint64_t from, uint64_t of_length)
{
    return at >= from && at + length <= from + of_length;
}

#define IS_INSIDE(a, b, offset, extent)                                                            \
    is_within((a)->subresource.sparseLevel.offset, (a)->subresource.sparseLevel.extent,            \
              (b)->subresource.sparseLevel.offset, (b)->subresource.sparseLevel.extent)

static bool is_inside_level(const CUarrayMapInfo *a, const CUarrayMapInfo *b)
{
    return a->subresource.sparseLevel.level == b->subresource.sparseLevel.level &&
           a->subresource.sparseLevel.layer == b->subresource.sparseLevel.layer &&
           IS_INSIDE(a, b, offsetX, extentWidth) && IS_INSIDE(a, b, offsetY, extentHeight) &&
           IS_INSIDE(a, b, offsetZ, extentDepth);
}

static bool is_inside_tail(const CUarrayMapInfo *a, const CUarrayMapInfo *b)
{
    return a->subresource.miptail.layer == b->subresource.miptail.layer &&
           is_within(a->subresource.miptail.offset, a->subresource.miptail.size,
                     b->subresource.miptail.offset, b->subresource.miptail.size);
}

static bool is_inside(const CUarrayMapInfo *a, const CUarrayMapInfo *b)
{
    if (a->resource.array != b->resource.array || a->subresourceType != b->subresourceType)
        return false;
    return a->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL ? is_inside_tail(a, b)
                                                                          : is_inside_level(a, b);
}

void parts_rename(struct parts *parts, const void *array, const void *other)
{
    for (unsigned int i = 0; i < parts->count; i++) {
        if ((const void *)parts->list[i].info.resource.array == array)
            parts->list[i].info.resource.array = (CUarray)(uintptr_t)other;
    }
}

void parts_unmap(struct parts *parts, const CUarrayMapInfo *info, uint64_t change)
{
    for (unsigned int i = 0; i < parts->count; i++) {
        struct part *part = &parts->list[i];

        if (part->change || !is_inside(&part->info, info))
            continue;
        part->change = change;
        part->leaves = true;
    }
}

void parts_settle(struct parts *parts, uint64_t change)
{
    for (unsigned int i = 0; i < parts->count; i++) {
        if (parts->list[i].change == change) {
            parts->list[i].change = 0;
            parts->list[i].leaves = false;
        }
    }
}

struct physical *parts_take_changed(struct parts *parts, uint64_t change, bool leaves)
{
    for (unsigned int i = 0; i < parts->count; i++) {
        if (parts->list[i].change == change && parts->list[i].leaves == leaves)
            return take_part(parts, i);
    }
    return NULL;
}

struct physical *parts_take_of_array(struct parts *parts, const void *array)
{
    for (unsigned int i = 0; i < parts->count; i++) {
        if ((const void *)parts->list[i].info.resource.array == array)
            return take_part(parts, i);
    }
    return NULL;
}

struct physical *parts_take_of_context(struct parts *parts, CUcontext context)
{
    for (unsigned int i = 0; i < parts->count; i++) {
        if (parts->list[i].context == context)
            return take_part(parts, i);
    }
    return NULL;
}
