/* SPDX-License-Identifier: MIT */
#ifndef GOVERNOR_CLOCK_H
#define GOVERNOR_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_US  1000ull
#define NS_PER_MS  1000000ull
#define NS_PER_S   1000000000ull
#define TIME_NEVER UINT64_MAX

/* CLOCK_MONOTONIC in ns. */
static inline uint64_t clock_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* CLOCK_BOOTTIME in ns, as /proc says when a process began. */
static inline uint64_t clock_since_boot(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

#endif
