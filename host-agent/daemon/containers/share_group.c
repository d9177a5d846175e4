/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/containers/share_group.h"

#include <string.h>

#define MOST_WEIGHT   10000u
#define MOST_PER_CENT 100u

/*
 * One container uses both with the transport that exposes the GPU itself, and both have one tenant:
 * a claim by another tenant's user changes nothing for the container.
 */
static gboolean are_together(const Claims *claims, const Slice *a, const Slice *b)
{
    return a->transport == SLICE_TRANSPORT_NATIVE && b->transport == SLICE_TRANSPORT_NATIVE &&
           g_str_equal(a->gpu, b->gpu) && g_str_equal(a->tenant, b->tenant) &&
           claims_are_of_one(claims, a->uuid, b->uuid);
}

const char *share_group_first(const Slices *slices, const Claims *claims, const Slice *slice)
{
    const GPtrArray *all = slices_all(slices);
    const char *first = slice->uuid;

    if (slice->transport != SLICE_TRANSPORT_NATIVE)
        return first;
    for (guint i = 0; i < all->len; i++) {
        const Slice *other = g_ptr_array_index(all, i);

        if (strcmp(other->uuid, first) < 0 && are_together(claims, slice, other))
            first = other->uuid;
    }
    return first;
}

gboolean share_group_is_mixed(const Slices *slices, const Claims *claims, const Slice *slice)
{
    const GPtrArray *all = slices_all(slices);

    for (guint i = 0; i < all->len; i++) {
        const Slice *other = g_ptr_array_index(all, i);

        if (other->class != slice->class && are_together(claims, slice, other))
            return TRUE;
    }
    return FALSE;
}

/* 0 and 100 are no cap. */
static guint cap_of_both(const Slice *a, const Slice *b)
{
    return a->cap && b->cap ? MIN(a->cap + b->cap, MOST_PER_CENT) : MOST_PER_CENT;
}

/*
 * A second slice must not give more than either was promised: the lower priority applies to both.
 */
static void add_slice(Slice *sum, const Slice *other)
{
    sum->resident = slice_resident(sum) + slice_resident(other);
    sum->vram += other->vram;
    sum->oversubscribe += other->oversubscribe;
    sum->weight = MIN(sum->weight + other->weight, MOST_WEIGHT);
    sum->cap = cap_of_both(sum, other);
    sum->compute = MIN(sum->compute + other->compute, MOST_PER_CENT);
    sum->priority = MIN(sum->priority, other->priority);
    sum->engines = engines_join(sum->engines, other->engines);
}

Slice *share_group_share(const Slices *slices, const Claims *claims, const Slice *slice)
{
    const GPtrArray *all = slices_all(slices);
    Slice *sum;

    if (share_group_first(slices, claims, slice) != slice->uuid)
        return NULL;
    sum = slice_copy(slice);
    for (guint i = 0; slice->transport == SLICE_TRANSPORT_NATIVE && i < all->len; i++) {
        const Slice *other = g_ptr_array_index(all, i);

        if (other != slice && are_together(claims, slice, other))
            add_slice(sum, other);
    }
    return sum;
}
