// SPDX-License-Identifier: MIT
#include "timeline.h"

#include <glib.h>
#include <string.h>

/*
 * An addition splits two segments at most, and fills the gaps between those that there are. So half
 * of the room has to be free before it.
 */
#define MOST_BEFORE (TIMELINE_SEGMENTS / 2 - 2)
/* Each time that there is no room. */
#define FORGET_AT_ONCE 16u

static void timeline_insert(struct timeline *timeline, uint32_t at,
                            const struct timeline_segment *segment)
{
    struct timeline_segment *place = &timeline->segments[at];
    struct timeline_segment copy = *segment;

    copy.parts = g_memdup2(segment->parts, segment->count * sizeof(*segment->parts));
    memmove(place + 1, place, (timeline->count - at) * sizeof(*place));
    *place = copy;
    timeline->count++;
}

static void timeline_remove(struct timeline *timeline, uint32_t at, uint32_t count)
{
    struct timeline_segment *place = &timeline->segments[at];

    for (uint32_t i = 0; i < count; i++)
        g_free(place[i].parts);
    timeline->count -= count;
    memmove(place, place + count, (timeline->count - at) * sizeof(*place));
}

void timeline_clear(struct timeline *timeline)
{
    timeline_remove(timeline, 0, timeline->count);
}

static void timeline_make_room(struct timeline *timeline)
{
    uint32_t excess = timeline->count > MOST_BEFORE ? timeline->count - MOST_BEFORE : 0;

    if (!excess)
        return;
    excess = MAX(excess, FORGET_AT_ONCE);
    timeline->forgotten_until = timeline->segments[excess - 1].end_at;
    timeline_remove(timeline, 0, excess);
}

/* The first segment that ends after @at. New spans are among the last. */
static uint32_t timeline_find(const struct timeline *timeline, uint64_t at)
{
    uint32_t i = timeline->count;

    while (i && timeline->segments[i - 1].end_at > at)
        i--;
    return i;
}

/* No segment begins before @at and ends after it. */
static void timeline_split(struct timeline *timeline, uint64_t at)
{
    uint32_t i = timeline_find(timeline, at);
    struct timeline_segment *segment = &timeline->segments[i];

    if (i == timeline->count || segment->begin_at >= at)
        return;
    timeline_insert(timeline, i, segment);
    segment->end_at = at;
    segment[1].begin_at = at;
}

static struct timeline_part *segment_part(const struct timeline_segment *segment, uint32_t slice)
{
    for (uint32_t i = 0; i < segment->count; i++) {
        if (segment->parts[i].slice == slice)
            return &segment->parts[i];
    }
    return NULL;
}

bool timeline_has(const struct timeline_segment *segment, uint32_t slice)
{
    return segment_part(segment, slice) != NULL;
}

/* One more process of @slice uses @segment. */
static void segment_share(struct timeline_segment *segment, uint32_t slice, TimelineFunc charge,
                          void *data)
{
    double ns = (double)(segment->end_at - segment->begin_at);
    double before = segment->processes++, now = segment->processes;
    struct timeline_part *part;

    charge(data, slice, ns / now);
    for (uint32_t i = 0; i < segment->count; i++)
        charge(data, segment->parts[i].slice, -ns * segment->parts[i].processes / before / now);
    part = segment_part(segment, slice);
    if (part) {
        part->processes++;
        return;
    }
    segment->parts = g_renew(struct timeline_part, segment->parts, segment->count + 1);
    segment->parts[segment->count++] = (struct timeline_part){slice, 1};
}

static bool are_one(const struct timeline_segment *first, const struct timeline_segment *second)
{
    if (first->end_at != second->begin_at || first->count != second->count ||
        first->processes != second->processes)
        return false;
    for (uint32_t i = 0; i < first->count; i++) {
        const struct timeline_part *part = segment_part(second, first->parts[i].slice);

        if (!part || part->processes != first->parts[i].processes)
            return false;
    }
    return true;
}

/* Segments from @from to @to, and those beside them, that have become the same. */
static void timeline_merge(struct timeline *timeline, uint32_t from, uint32_t to)
{
    uint32_t i = to < timeline->count ? to : timeline->count - 1;

    for (; i && i + 1 > from; i--) {
        struct timeline_segment *segment = &timeline->segments[i];

        if (!are_one(segment - 1, segment))
            continue;
        segment[-1].end_at = segment->end_at;
        timeline_remove(timeline, i, 1);
    }
}

uint64_t timeline_add(struct timeline *timeline, uint32_t slice, uint64_t begin_at, uint64_t end_at,
                      TimelineFunc charge, void *data)
{
    uint64_t at, from_at;
    uint32_t from, i;

    timeline_make_room(timeline);
    at = from_at = MAX(begin_at, timeline->forgotten_until);
    if (at >= end_at)
        return 0;
    timeline_split(timeline, at);
    timeline_split(timeline, end_at);
    for (from = i = timeline_find(timeline, at); at < end_at; i++) {
        struct timeline_segment *segment = &timeline->segments[i];

        if (i == timeline->count || segment->begin_at != at) {
            bool more = i < timeline->count && segment->begin_at < end_at;
            uint64_t until = more ? segment->begin_at : end_at;

            timeline_insert(timeline, i,
                            &(struct timeline_segment){.begin_at = at, .end_at = until});
        }
        segment_share(segment, slice, charge, data);
        at = segment->end_at;
    }
    timeline_merge(timeline, from, i);
    return end_at - from_at;
}

const struct timeline_segment *timeline_before(const struct timeline *timeline, uint64_t at)
{
    uint32_t i = timeline_find(timeline, at);

    return i ? &timeline->segments[i - 1] : NULL;
}
