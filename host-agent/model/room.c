/* SPDX-License-Identifier: MIT */
#include "host-agent/model/room.h"

#include "lib/units.h"

void room_free(Room *room)
{
    g_free(room->gpu);
    g_free(room->ids);
    g_free(room->name);
    g_free(room->mode);
    g_free(room->switching);
    g_free(room->unhealthy);
    g_free(room);
}

void room_add(Room *room, const Slice *slice)
{
    room->promised_vram += slice->vram;
    room->promised_compute += slice->compute;
    room->count++;
    if (slice->class != SLICE_GUARANTEED)
        return;
    room->guaranteed_vram += slice->vram;
    room->guaranteed_compute += slice->compute;
}

void room_subtract(Room *room, const Slice *slice)
{
    room->promised_vram -= slice->vram;
    room->promised_compute -= slice->compute;
    room->count--;
    if (slice->class != SLICE_GUARANTEED)
        return;
    room->guaranteed_vram -= slice->vram;
    room->guaranteed_compute -= slice->compute;
}

static char *vram_refusal(guint64 free, guint64 whole, const char *of)
{
    g_autofree char *left = size_format(free);
    g_autofree char *all = size_format(whole);

    return g_strdup_printf("%s of %s%s are free", left, all, of);
}

static guint64 rest(guint64 whole, guint64 used)
{
    return used < whole ? whole - used : 0;
}

/* The factor of overcommitment holds for compute as for memory. */
static guint compute_capacity(const Room *room)
{
    if (!room->vram)
        return ROOM_WHOLE_COMPUTE;
    return (guint)((double)ROOM_WHOLE_COMPUTE * (double)room->capacity / (double)room->vram + 0.5);
}

char *room_refusal(const Room *room, const Slice *slice)
{
    gboolean guaranteed = slice->class == SLICE_GUARANTEED;
    guint compute = compute_capacity(room);

    if (slice->vram > rest(room->capacity, room->promised_vram))
        return vram_refusal(rest(room->capacity, room->promised_vram), room->capacity, "");
    if (guaranteed && slice->vram > rest(room->vram, room->guaranteed_vram))
        return vram_refusal(rest(room->vram, room->guaranteed_vram), room->vram,
                            " for guaranteed slices");
    if (slice->compute > rest(compute, room->promised_compute))
        return g_strdup_printf("%" G_GUINT64_FORMAT " %% of its compute are free, of %u %%",
                               rest(compute, room->promised_compute), compute);
    if (guaranteed && slice->compute > rest(ROOM_WHOLE_COMPUTE, room->guaranteed_compute))
        return g_strdup_printf("%" G_GUINT64_FORMAT " %% of its compute are free for guaranteed "
                               "slices",
                               rest(ROOM_WHOLE_COMPUTE, room->guaranteed_compute));
    return NULL;
}
