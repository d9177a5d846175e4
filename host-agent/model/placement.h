/* SPDX-License-Identifier: MIT */
/* What GPUs offer, and the choice of one for each vGPU. */
#ifndef MODEL_PLACEMENT_H
#define MODEL_PLACEMENT_H

#include <linux/vgpu.h>

#include "lib/vgpu.h"
#include "host-agent/model/admission.h"
#include "host-agent/model/request.h"
#include "host-agent/model/slice.h"

/*
 * What a GPU offers as a type, and what follows for a slice: its defaults, and what a member of a
 * tenant may request without an administrator. Quotas bound VRAM, compute and number. Weight,
 * priority and cap are at the cost of the neighbours on the GPU, so the type or the promise bounds
 * them.
 */

/**
 * Offer - a type on a GPU
 * @id: the name in sysfs
 * @oversubscribe: bytes of host memory beyond the VRAM
 * @cpu, @memory: of the engine, from the type (GpuType)
 */
typedef struct {
    const char *id;
    const struct vgpu_type_desc *desc;
    SliceClass class;
    guint compute;
    guint64 oversubscribe;
    guint cpu;
    guint64 memory;
} Offer;

/* The weight of a slice that is a whole GPU, as in types.d/10-default.conf. */
#define WHOLE_WEIGHT 800u

/*
 * @wanted has at most its type's weight and priority and at least as tight a cap, or those of
 * @before; and no more engines of the GPU than @before.
 * @before: the slice as it is; NULL: it is new. @offer: NULL: the type is unknown, and offers
 * nothing. AGENT_ERROR_NOT_AUTHORIZED names the value that is too high.
 */
gboolean entitlement_check(const Slice *wanted, const Slice *before, const Offer *offer,
                           GError **error);

/*
 * A slice that was not made by vgpud is adopted: it takes the vGPU's values from the driver's
 * attributes or from mdevctl's configuration.
 */

/* The driver's values. */
void adopt_vgpu(Slice *slice, HostRoot *root, const Vgpu *vgpu);

/* The type's values, as defaults. */
void adopt_type(Slice *slice, const Offer *offer);

/* The definition's values; the rest is unchanged. */
void adopt_definition(Slice *slice, const Definition *definition);

/* Chooses GPUs for vGPUs. Pure: the arguments have all of the input. */

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
 * AGENT_ERROR_NO_ROOM, or _NO_ROOM_NOW if it can be waited for, whose message gives the reason for
 * each GPU.
 */
GPtrArray *placement_find(const Placement *placement, const Request *request, GError **error);

#endif
