/* SPDX-License-Identifier: MIT */
/*
 * Which slices used an engine when, of late. Time that several processes used at once is divided
 * among them equally, whatever the order in which their spans become known: whoever comes later to
 * a time is charged a part of it, and those before are given back theirs. All that is charged of a
 * time is that time, however many used it.
 *
 * Not thread-safe. Times are ns of any one clock.
 */
#ifndef GOVERNOR_TIMELINE_H
#define GOVERNOR_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#define TIMELINE_SEGMENTS 1024u

/* So many processes of @slice. */
struct timeline_part {
    uint32_t slice;
    uint32_t processes;
};

/* A time in which the same ones used the engine. @parts: @count of them, of its own memory. */
struct timeline_segment {
    uint64_t begin_at;
    uint64_t end_at;
    uint32_t processes;
    uint32_t count;
    struct timeline_part *parts;
};

/**
 * struct timeline
 * @segments: @count of them, by time, without overlap
 * @forgotten_until: what was before is not known any more, and what is said of it is not charged
 */
struct timeline {
    struct timeline_segment segments[TIMELINE_SEGMENTS];
    uint32_t count;
    uint64_t forgotten_until;
};

/* All zero at first. */
void timeline_clear(struct timeline *timeline);

/* @ns: to be charged to @slice; below 0: given back. */
typedef void (*TimelineFunc)(void *data, uint32_t slice, double ns);

/*
 * A process of @slice, which has not said so before, used the engine from @begin_at to @end_at.
 * Returns how much of that was charged: without what is forgotten. @charge is called for @slice,
 * and then for all that were there.
 */
uint64_t timeline_add(struct timeline *timeline, uint32_t slice, uint64_t begin_at, uint64_t end_at,
                      TimelineFunc charge, void *data);

/* The last segment that ends at @at or before; NULL: none is known. */
const struct timeline_segment *timeline_before(const struct timeline *timeline, uint64_t at);
/* Whether a process of @slice used it. */
bool timeline_has(const struct timeline_segment *segment, uint32_t slice);

#endif
