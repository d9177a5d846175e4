/* SPDX-License-Identifier: MIT */
/*
 * A type of vGPU that a GPU offers, as sysfs has it
 * (Documentation/ABI/testing/sysfs-bus-vfio-mdev).
 */
#ifndef INVENTORY_MDEV_TYPE_H
#define INVENTORY_MDEV_TYPE_H

#include <glib.h>

/**
 * MdevType
 * @id: "amdgpu-vgpu-half"
 * @gpu: the GPU that offers it
 * @description: of one line; empty: there is none
 * @available: how many more of it the GPU can hold, if nothing else is made
 * @instances: how many there are
 */
typedef struct {
    char *id;
    char *gpu;
    char *description;
    guint available;
    guint instances;
} MdevType;

void mdev_type_free(MdevType *type);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MdevType, mdev_type_free)

/* What the GPU called @gpu, at @dir in sysfs, offers; of MdevType, in the order of their ids. */
GPtrArray *mdev_types_read(const char *gpu, const char *dir);

#endif
