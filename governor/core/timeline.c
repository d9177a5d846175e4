// SPDX-License-Identifier: MIT
#include "timeline.h"

#include <stdbool.h>
#include <string.h>

/*
 * An addition splits two segments at most, and fills the gaps between those that there are. So half
 * of the room has to be free before it.
 */
#define MOST_BEFORE (TIMELINE_SEGMENTS / 2 - 2)

static void insert(struct timeline *timeline, uint32_t at, const struct timeline_segment *segment)
{
    struct timeline_segment *place = &timeline->segments[at];
    struct timeline_segment copy = *segment;

    memmove(place + 1, place, (timeline->count - at) * sizeof(*place));
    *place = copy;
    timeline->count++;
}

static void take_out(struct timeline *timeline, uint32_t at, uint32_t count)
{
    struct timeline_segment *place = &timeline->segments[at];

    timeline->count -= count;
    memmove(place, place + count, (timeline->count - at) * sizeof(*place));
}

static void make_room(struct timeline *timeline)
{
    uint32_t excess = timeline->count > MOST_BEFORE ? timeline->count - MOST_BEFORE : 0;

    if (!excess)
        return;
    timeline->forgotten_until = timeline->segments[excess - 1].end_at;
    take_out(timeline, 0, excess);
}

/* The first segment that ends after @at. New spans are among the last. */
static uint32_t find(const struct timeline *timeline, uint64_t at)
{
    uint32_t i = timeline->count;

    while (i && timeline->segments[i - 1].end_at > at)
        i--;
    return i;
}

/* No segment begins before @at and ends after it. */
static void split(struct timeline *timeline, uint64_t at)
{
    uint32_t i = find(timeline, at);
    struct timeline_segment *segment = &timeline->segments[i];

    if (i == timeline->count || segment->begin_at >= at)
        return;
    insert(timeline, i, segment);
    segment->end_at = at;
    segment[1].begin_at = at;
}

static bool has(const struct timeline_segment *segment, uint32_t owner)
{
    for (uint32_t i = 0; i < segment->count; i++) {
        if (segment->owners[i] == owner)
            return true;
    }
    return false;
}

/* @owner uses @segment, too. */
static void share(struct timeline_segment *segment, uint32_t owner, TimelineFunc charge, void *data)
{
    double ns = (double)(segment->end_at - segment->begin_at);
    uint32_t count = segment->count;

    charge(data, owner, ns / (count + 1));
    if (count == TIMELINE_OWNERS)
        return;
    for (uint32_t i = 0; i < count; i++)
        charge(data, segment->owners[i], -ns / count / (count + 1));
    segment->owners[segment->count++] = owner;
}

static bool are_one(const struct timeline_segment *first, const struct timeline_segment *second)
{
    if (first->end_at != second->begin_at || first->count != second->count)
        return false;
    for (uint32_t i = 0; i < first->count; i++) {
        if (!has(second, first->owners[i]))
            return false;
    }
    return true;
}

/* Segments from @from to @to, and those beside them, that have become the same. */
static void merge(struct timeline *timeline, uint32_t from, uint32_t to)
{
    uint32_t i = to < timeline->count ? to : timeline->count - 1;

    for (; i && i + 1 > from; i--) {
        struct timeline_segment *segment = &timeline->segments[i];

        if (!are_one(segment - 1, segment))
            continue;
        segment[-1].end_at = segment->end_at;
        take_out(timeline, i, 1);
    }
}

uint64_t timeline_add(struct timeline *timeline, uint32_t owner, uint64_t begin_at, uint64_t end_at,
                      TimelineFunc charge, void *data)
{
    uint64_t at = begin_at, added = 0;
    uint32_t from, i;

    make_room(timeline);
    if (at < timeline->forgotten_until)
        at = timeline->forgotten_until;
    if (at >= end_at)
        return 0;
    split(timeline, at);
    split(timeline, end_at);
    for (from = i = find(timeline, at); at < end_at; i++) {
        struct timeline_segment *segment = &timeline->segments[i];
        bool there = i < timeline->count && segment->begin_at == at;

        if (!there) {
            bool more = i < timeline->count && segment->begin_at < end_at;
            uint64_t until = more ? segment->begin_at : end_at;

            insert(timeline, i, &(struct timeline_segment){.begin_at = at, .end_at = until});
        }
        if (!has(segment, owner)) {
            added += segment->end_at - segment->begin_at;
            share(segment, owner, charge, data);
        }
        at = segment->end_at;
    }
    merge(timeline, from, i);
    return added;
}

const struct timeline_segment *timeline_before(const struct timeline *timeline, uint64_t at)
{
    uint32_t i = find(timeline, at);

    return i ? &timeline->segments[i - 1] : NULL;
}
