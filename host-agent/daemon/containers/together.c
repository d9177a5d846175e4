/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/containers/together.h"

#include <string.h>

#include "host-agent/model/engines.h"

#define MOST_WEIGHT   10000u
#define MOST_PER_CENT 100u

/*
 * One container has both, by the door that shows their GPU itself; and one tenant: what another's user says of a
 * container changes nothing for it.
 */
static gboolean are_together(const Claims *claims, const Slice *a, const Slice *b)
{
    return a->door == SLICE_DOOR_NATIVE && b->door == SLICE_DOOR_NATIVE &&
           g_str_equal(a->gpu, b->gpu) && g_str_equal(a->tenant, b->tenant) &&
           claims_are_of_one(claims, a->uuid, b->uuid);
}

const char *together_first(const Slices *slices, const Claims *claims, const Slice *slice)
{
    const GPtrArray *all = slices_all(slices);
    const char *first = slice->uuid;

    if (slice->door != SLICE_DOOR_NATIVE)
        return first;
    for (guint i = 0; i < all->len; i++) {
        const Slice *other = g_ptr_array_index(all, i);

        if (strcmp(other->uuid, first) < 0 && are_together(claims, slice, other))
            first = other->uuid;
    }
    return first;
}

/* 0 and 100 are no cap. */
static guint cap_of_both(const Slice *a, const Slice *b)
{
    return a->cap && b->cap ? MIN(a->cap + b->cap, MOST_PER_CENT) : MOST_PER_CENT;
}

/* Nobody gets by a second slice what neither was promised: the lower priority holds for both. */
static void add(Slice *sum, const Slice *other)
{
    sum->vram += other->vram;
    sum->oversubscribe += other->oversubscribe;
    sum->weight = MIN(sum->weight + other->weight, MOST_WEIGHT);
    sum->cap = cap_of_both(sum, other);
    sum->compute = MIN(sum->compute + other->compute, MOST_PER_CENT);
    sum->priority = MIN(sum->priority, other->priority);
    sum->engines = engines_join(sum->engines, other->engines);
}

Slice *together_share(const Slices *slices, const Claims *claims, const Slice *slice)
{
    const GPtrArray *all = slices_all(slices);
    Slice *sum;

    if (together_first(slices, claims, slice) != slice->uuid)
        return NULL;
    sum = slice_copy(slice);
    for (guint i = 0; slice->door == SLICE_DOOR_NATIVE && i < all->len; i++) {
        const Slice *other = g_ptr_array_index(all, i);

        if (other != slice && are_together(claims, slice, other))
            add(sum, other);
    }
    return sum;
}
