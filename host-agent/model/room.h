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
 * @blocked: why nothing new is put there (a sentence's end, as "it is being drained"); NULL: it may be
 * @vram: bytes it has
 * @capacity: bytes that may be promised
 */
typedef struct {
    char *gpu;
    char *ids;
    char *name;
    int numa_node;
    char *blocked;
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
