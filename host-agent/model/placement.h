/* SPDX-License-Identifier: MIT */
/* Chooses GPUs for vGPUs. Pure: the arguments have all of the input. */
#ifndef MODEL_PLACEMENT_H
#define MODEL_PLACEMENT_H

#include "host-agent/model/request.h"
#include "host-agent/model/room.h"
#include "host-agent/model/tenant.h"

/**
 * Candidate - a GPU, and the slice as it would be there: a type's size depends on the GPU's
 * @slice: without UUID; NULL if the GPU has no such type
 */
typedef struct {
    Room *room;
    Slice *slice;
} Candidate;

Candidate *candidate_new(Room *room, Slice *slice);
void candidate_free(Candidate *candidate);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Candidate, candidate_free)

/* The distance of two GPUs; smaller is nearer. */
typedef guint (*DistanceFunc)(const char *gpu, const char *other, void *data);

/**
 * Placement - the input besides the request
 * @candidates: of Candidate; their rooms are filled as slices are placed
 * @slices: of Slice, all of the host: for jobs and replicas
 * @tenant: NULL: none
 */
typedef struct {
    const GPtrArray *candidates;
    const GPtrArray *slices;
    const Tenant *tenant;
    DistanceFunc distance;
    void *data;
} Placement;

/*
 * A slice for each of the request's UUIDs, in their order; of Slice. All or none: if not all fit,
 * AGENT_ERROR_NO_ROOM, whose message gives the reason for each GPU.
 */
GPtrArray *placement_find(const Placement *placement, const Request *request, GError **error);

#endif
