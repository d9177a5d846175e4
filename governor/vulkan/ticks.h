/* SPDX-License-Identifier: MIT */
/* From a queue's timestamps to the time that its work took. Not thread-safe. */
#ifndef GOVERNOR_VULKAN_TICKS_H
#define GOVERNOR_VULKAN_TICKS_H

#include <stdbool.h>
#include <stdint.h>

struct ticks {
    uint32_t bits; /* valid bits of a timestamp: the rest is zero, and the counter wraps */
    double period; /* nanoseconds of a tick */
    bool has_ended;
    uint64_t end; /* of the last ended work */
};

/*
 * Nanoseconds that work between @begin and @end had to itself: its overlap with the work that ended
 * before it has been counted there.
 */
uint64_t ticks_measure(struct ticks *ticks, uint64_t begin, uint64_t end);

/* Nanoseconds from @from to @to, which may be earlier. */
int64_t ticks_between(const struct ticks *ticks, uint64_t from, uint64_t to);

#endif /* GOVERNOR_VULKAN_TICKS_H */
