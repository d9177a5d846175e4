/* SPDX-License-Identifier: MIT */
/* Nanoseconds of the clocks that a load uses. */
#ifndef GOVERNOR_LOAD_CLOCK_H
#define GOVERNOR_LOAD_CLOCK_H

#include <errno.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_US UINT64_C(1000)

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static inline void sleep_until(uint64_t at_ns)
{
    struct timespec t = {.tv_sec = (time_t)(at_ns / NS_PER_S), .tv_nsec = (long)(at_ns % NS_PER_S)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        continue;
}

#endif /* GOVERNOR_LOAD_CLOCK_H */
