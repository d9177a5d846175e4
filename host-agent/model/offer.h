/* SPDX-License-Identifier: MIT */
/*
 * What a GPU offers as a type, and what follows for a slice: its defaults, and what a member of a
 * tenant may request without an administrator. Quotas bound VRAM, compute and number. Weight,
 * priority and cap are at the cost of the neighbours on the GPU, so the type bounds them.
 */
#ifndef MODEL_OFFER_H
#define MODEL_OFFER_H

#include <linux/vgpu.h>

#include "host-agent/model/slice.h"
#include "lib/definition.h"
#include "lib/vgpu.h"

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
void adopt_vgpu(Slice *slice, const Vgpu *vgpu);

/* The type's values, as defaults. */
void adopt_type(Slice *slice, const Offer *offer);

/* The definition's values; the rest is unchanged. */
void adopt_definition(Slice *slice, const Definition *definition);

#endif
