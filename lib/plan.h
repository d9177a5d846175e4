/* SPDX-License-Identifier: MIT */
/* What would be registered with the driver for one GPU: types with numbers in place of parts. */
#ifndef LIB_PLAN_H
#define LIB_PLAN_H

#include <glib.h>
#include <linux/vgpu.h>

#include "lib/gpus.h"
#include "lib/host_root.h"

/**
 * Plan - one GPU
 * @driver: of the GPU's bound driver; NULL for a soft GPU
 * @vram_source: the origin of that number
 * @capacity_bytes: promisable part of @vram_bytes, overcommitment included
 * @left_out: sentences about types that do not fit this GPU; of char *
 */
typedef struct {
    char *gpu;
    char *driver;
    guint64 vram_bytes;
    char *vram_source;
    guint64 capacity_bytes;
    guint ntypes;
    struct vgpu_type_desc types[VGPU_MAX_TYPES];
    GPtrArray *left_out;
} Plan;

void plan_free(Plan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Plan, plan_free)

/*
 * @types: of GpuType. Errors of hardware_find() and hardware_vram(); REGISTRAR_ERROR_CONFIG if the
 * GPU would have no type at all, or more than the driver accepts.
 */
Plan *plan_new(HostRoot *root, const GpuEntry *entry, const GPtrArray *types, GError **error);

#endif
