// SPDX-License-Identifier: MIT
#include "event_clock.h"

/* The two clocks may run apart by so much. */
#define DRIFT 20e-6

uint64_t event_clock_see(struct event_clock *clock, double after_ns, uint64_t now)
{
    double card = clock->card_ns + after_ns, offset = (double)now - card;

    if (clock->offset_ns != 0) {
        double known = clock->offset_ns + (after_ns > 0 ? after_ns * DRIFT : 0);

        offset = known < offset ? known : offset;
    }
    clock->offset_ns = offset;
    return (uint64_t)(card + offset);
}

void event_clock_restart(struct event_clock *clock)
{
    *clock = (struct event_clock){0};
}

void event_clock_advance(struct event_clock *clock, double after_ns)
{
    clock->card_ns += after_ns;
}
