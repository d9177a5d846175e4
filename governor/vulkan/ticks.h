/* SPDX-License-Identifier: MIT */
/*
 * From a queue's timestamps to the time that its work took. Not thread-safe.
 */
#ifndef GOVERNOR_VULKAN_TICKS_H
#define GOVERNOR_VULKAN_TICKS_H

#include <stdbool.h>
#include <stdint.h>

struct ticks {
    uint32_t bits; /* of a timestamp that count: the rest is zero, and the counter goes round */
    double period; /* nanoseconds of a tick */
    bool has_ended;
    uint64_t end; /* of the work that ended last */
};

/*
 * Nanoseconds that work between @begin and @end has had to itself: what overlaps with the work that
 * ended before it has been counted there.
 */
uint64_t ticks_measure(struct ticks *ticks, uint64_t begin, uint64_t end);

#endif /* GOVERNOR_VULKAN_TICKS_H */
