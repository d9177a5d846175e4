/* SPDX-License-Identifier: MIT */
/*
 * Who used an engine when, of late. Time that several owners used at once is divided among them
 * equally, whatever the order in which their spans become known: who comes later to a time is
 * charged a part of it, and those before are given back theirs.
 *
 * Plain memory of a fixed size; not thread-safe. Times are ns of any one clock.
 */
#ifndef GOVERNOR_TIMELINE_H
#define GOVERNOR_TIMELINE_H

#include <stdint.h>

#define TIMELINE_SEGMENTS 128u
#define TIMELINE_OWNERS   8u

/* A time in which the same owners used the engine. */
struct timeline_segment {
    uint64_t begin_at;
    uint64_t end_at;
    uint32_t count;
    uint32_t owners[TIMELINE_OWNERS];
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

/* @ns: to be charged to @owner; below 0: given back. */
typedef void (*TimelineFunc)(void *data, uint32_t owner, double ns);

/*
 * @owner used the engine from @begin_at to @end_at. Returns how much of that was not known of it;
 * the rest changes nothing. @charge is called for @owner and for those that were there, too. A
 * ninth owner of one time is charged its part, and the others are given nothing back for it.
 */
uint64_t timeline_add(struct timeline *timeline, uint32_t owner, uint64_t begin_at, uint64_t end_at,
                      TimelineFunc charge, void *data);

/* The last segment that ends at @at or before; NULL: none is known. */
const struct timeline_segment *timeline_before(const struct timeline *timeline, uint64_t at);

#endif
