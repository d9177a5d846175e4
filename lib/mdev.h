/* SPDX-License-Identifier: MIT */
/* Mediated devices in sysfs: their places, and the types that GPUs offer. */
#ifndef LIB_MDEV_H
#define LIB_MDEV_H

#include <glib.h>

#include "lib/host_root.h"

/* The directory of all mediated devices. */
#define MDEV_DIR "/sys/bus/mdev/devices"

/* UUIDs of all of them, including other drivers', sorted. To be freed. */
GStrv mdev_list(HostRoot *root);

/* The path of the device @uuid in sysfs, whether it exists or not. To be freed. */
char *mdev_path(const char *uuid);

/* The number of its IOMMU group, as "16"; NULL: none. To be freed. */
char *mdev_group(HostRoot *root, const char *uuid);

/* The VFIO node by which a VM opens it; NULL: none. To be freed. */
char *mdev_node(HostRoot *root, const char *uuid);

/*
 * The types of the parent at @dir in sysfs, as MdevType's id, sorted; only our driver's: GPUs of
 * GVT-g and NVIDIA's vGPU are mdev parents, too. To be freed.
 */
GStrv mdev_type_ids(HostRoot *root, const char *dir);

/**
 * MdevType - a type of mediated devices that a GPU offers
 * @id: prefixed with the vendor driver's name, as mdevctl takes it
 * @gpu: the GPU that offers it, by the name in the request
 * @description: of one line; empty: none
 * @available: how many more of it the GPU can hold, if nothing else is made
 * @uuids: of the existing devices, sorted
 */
typedef struct {
    char *id;
    char *gpu;
    char *description;
    guint available;
    GStrv uuids;
} MdevType;

void mdev_type_free(MdevType *type);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MdevType, mdev_type_free)

/* The types of the GPU called @gpu, at @dir in sysfs; of MdevType, sorted by their ids. */
GPtrArray *mdev_types_of_device(HostRoot *root, const char *gpu, const char *dir);

/* The same for a GPU by its name in gpus.conf; empty if it is no mdev parent. */
GPtrArray *mdev_types(HostRoot *root, const char *gpu);

/*
 * All mdev parents, by their names in gpus.conf; including other drivers', because sysfs does not
 * tell them apart.
 */
GStrv mdev_gpus(HostRoot *root);

/* UUIDs of the vGPUs of a GPU, sorted. */
GStrv mdev_uuids(HostRoot *root, const char *gpu);

/*
 * UUIDs of remaining vGPUs whose GPU, this one or one that was removed, has lost its driver;
 * sorted. The GPU's types are gone then.
 */
GStrv mdev_left_over(HostRoot *root, const char *gpu);

#endif
