// SPDX-License-Identifier: MIT
#include "line.h"

#include "clock.h"

#include <glib.h>
#include <sys/mman.h>
#include <time.h>

struct line *line_new(void)
{
    struct line *line =
        mmap(NULL, sizeof(*line), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    g_assert_true(line != MAP_FAILED);
    return line;
}

void line_free(struct line *line)
{
    munmap(line, sizeof(*line));
}

uint64_t line_submit(struct line *line, uint64_t length_ns)
{
    uint64_t free_at = line->free_at, end;

    do {
        uint64_t now = clock_now();

        end = (free_at > now ? free_at : now) + length_ns;
    } while (!atomic_compare_exchange_weak(&line->free_at, &free_at, end));
    return end;
}

void line_await(uint64_t end_ns)
{
    struct timespec at = {.tv_sec = (time_t)(end_ns / NS_PER_S),
                          .tv_nsec = (long)(end_ns % NS_PER_S)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
        ;
}
