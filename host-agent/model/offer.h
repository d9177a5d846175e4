/* SPDX-License-Identifier: MIT */
/*
 * What a GPU offers as a type, and what follows from it for a slice: what it has if nobody says
 * otherwise, and what a member of a tenant may ask for without an administrator. Quotas bound VRAM, compute and number;
 * weight, priority and cap, which are at the cost of the neighbours on the GPU, are bounded by the type.
 */
#ifndef MODEL_OFFER_H
#define MODEL_OFFER_H

#include <linux/vgpu.h>

#include "host-agent/model/slice.h"
#include "lib/definition.h"
#include "lib/vgpu.h"

/**
 * Offer - a type on a GPU
 * @id: as sysfs has it
 * @oversubscribe: bytes of host memory beyond the VRAM
 * @cpu, @memory: of the engine, as the type has them (GpuType)
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

/*
 * @wanted has at most its type's weight and priority and at least as tight a cap, or what @before had of them; and no more
 * engines of the GPU than @before.
 * @before: the slice as it is; NULL: it is new. @offer: NULL: the type is not known, and has nothing. AGENT_ERROR_NOT_AUTHORIZED with what is too much.
 */
gboolean entitlement_check(const Slice *wanted, const Slice *before, const Offer *offer,
                           GError **error);

/*
 * A slice of somebody else's making is adopted: what others have said of a vGPU, in the driver's
 * attributes or in mdevctl's configuration, is taken into it.
 */

/* As the driver has it. */
void adopt_vgpu(Slice *slice, const Vgpu *vgpu);

/* What the type has, where nobody says otherwise. */
void adopt_type(Slice *slice, const Offer *offer);

/* What the definition says; all else stays. */
void adopt_definition(Slice *slice, const Definition *definition);

#endif
