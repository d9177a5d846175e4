// SPDX-License-Identifier: MIT
#include "scheduler_parts.h"

void slice_gather(struct sched_slice *slice)
{
    struct sample *all = &slice->sample;
    uint64_t began_first = UINT64_MAX, began_last = 0;

    all->in_flight_ns = 0;
    all->waiting = false;
    all->waiting_at_ns = 0;
    for (guint i = 0; i < slice->members->len; i++) {
        const struct sched_member *member = MEMBER(slice, i);
        const struct sample *own = &member->sample;

        all->ended_at_ns = MAX(all->ended_at_ns, own->ended_at_ns);
        began_last = MAX(began_last, own->began_at_ns);
        if (member->silent)
            continue;
        if (own->in_flight_ns && !member->stalled) {
            all->in_flight_ns += own->in_flight_ns;
            began_first = MIN(began_first, own->began_at_ns);
        }
        if (own->waiting && (!all->waiting || own->waiting_at_ns < all->waiting_at_ns))
            all->waiting_at_ns = own->waiting_at_ns;
        all->waiting |= own->waiting;
    }
    all->began_at_ns = all->in_flight_ns ? began_first : began_last;
}
