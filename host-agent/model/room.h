/* SPDX-License-Identifier: MIT */
/*
 * What a GPU has, and what of it is promised. The rules of the ledger:
 *
 *   VRAM of all slices                <= capacity (the GPU's VRAM times its overcommit factor)
 *   VRAM of guaranteed slices         <= the GPU's VRAM
 *   compute of all slices             <= 100 % times the overcommit factor
 *   compute of guaranteed slices      <= 100 %
 *
 * The driver holds the first of them whoever creates vGPUs; the others are the agent's.
 */
#ifndef MODEL_ROOM_H
#define MODEL_ROOM_H

#include "host-agent/model/slice.h"

#define ROOM_WHOLE_COMPUTE 100u

/**
 * Room - a GPU as the ledger sees it
 * @gpu: address
 * @ids: "1002:73bf"; "" where it has none
 * @name: as people know it
 * @numa_node: -1: not known
 * @gone: it was there a moment ago
 * @mode: that it has; NULL: it is shared
 * @switching: the mode that it is being switched to; NULL: none
 * @unhealthy: why it is; NULL: it is not
 * @containers_only: it has no vGPUs, because the kernel module is not loaded
 * @evicted: best-effort slices of the tenant that asks were stopped there not long ago
 * @vram: bytes it has
 * @capacity: bytes that may be promised
 */
typedef struct {
    char *gpu;
    char *ids;
    char *name;
    int numa_node;
    gboolean gone;
    char *mode;
    char *switching;
    gboolean draining;
    char *unhealthy;
    gboolean containers_only;
    gboolean evicted;
    guint64 vram;
    guint64 capacity;
    guint64 promised_vram;
    guint64 guaranteed_vram;
    guint promised_compute;
    guint guaranteed_compute;
    guint count;
} Room;

void room_free(Room *room);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Room, room_free)

/* Adds one slice. */
void room_add(Room *room, const Slice *slice);

/* Takes one that was counted out again. */
void room_subtract(Room *room, const Slice *slice);

/* NULL: @slice fits; else why not, as "4.0 GiB of 16.0 GiB are free". To be freed. */
char *room_refusal(const Room *room, const Slice *slice);

#endif
