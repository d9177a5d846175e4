/* SPDX-License-Identifier: MIT */
/*
 * On which GPUs vGPUs are put. Pure: everything that it goes by is in its arguments.
 */
#ifndef MODEL_PLACEMENT_H
#define MODEL_PLACEMENT_H

#include "host-agent/model/request.h"
#include "host-agent/model/room.h"
#include "host-agent/model/tenant.h"

/**
 * Candidate - a GPU, and what the slice would be there: a type's size depends on the GPU's
 * @slice: without UUID; NULL where the GPU has no such type
 */
typedef struct {
    Room *room;
    Slice *slice;
} Candidate;

Candidate *candidate_new(Room *room, Slice *slice);
void candidate_free(Candidate *candidate);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Candidate, candidate_free)

/* How far two GPUs are from each other; smaller is nearer. */
typedef guint (*DistanceFunc)(const char *gpu, const char *other, void *data);

/**
 * Placement - what is gone by besides the request
 * @candidates: of Candidate; their rooms are filled as slices are put there
 * @slices: of Slice, all of the host: for jobs and replicas
 * @tenant: NULL: nobody's
 */
typedef struct {
    const GPtrArray *candidates;
    const GPtrArray *slices;
    const Tenant *tenant;
    DistanceFunc distance;
    void *data;
} Placement;

/*
 * A slice for each of the request's UUIDs, in their order; of Slice. All or none: where not all have room,
 * AGENT_ERROR_NO_ROOM, whose message says of each GPU why not.
 */
GPtrArray *placement_find(const Placement *placement, const Request *request, GError **error);

#endif
