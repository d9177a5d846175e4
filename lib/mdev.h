/* SPDX-License-Identifier: MIT */
/*
 * Mediated devices as the kernel shows them: where they are, and what GPUs offer.
 */
#ifndef LIB_MDEV_H
#define LIB_MDEV_H

#include <glib.h>

/* The directory that has all of them. To be freed. */
char *mdev_dir(const char *root);

/* UUIDs of all of them, others' too, sorted. To be freed. */
GStrv mdev_list(const char *root);

/* Where sysfs has the device @uuid, whether it is there or not. To be freed. */
char *mdev_path(const char *root, const char *uuid);

/* The number of its IOMMU group, as "16"; NULL: there is none. To be freed. */
char *mdev_group(const char *root, const char *uuid);

/* VFIO's node by which a VM opens it; NULL: there is none. To be freed. */
char *mdev_node(const char *root, const char *uuid);

/**
 * MdevType - a type of mediated devices that a GPU offers
 * @id: with the vendor driver's name in front, as mdevctl takes it
 * @gpu: the GPU that offers it, named as it was asked for
 * @description: of one line; empty: there is none
 * @available: how many more of it the GPU can hold, if nothing else is made
 * @uuids: of the devices that exist, sorted
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

/* What the GPU called @gpu, at @dir in sysfs, offers; of MdevType, sorted by their ids. */
GPtrArray *mdev_types_of_device(const char *gpu, const char *dir);

/* The same of a GPU as gpus.conf names it; empty if it is no mdev parent. */
GPtrArray *mdev_types(const char *root, const char *gpu);

/* All mdev parents, named as in gpus.conf; other drivers' too: sysfs does not tell them apart. */
GStrv mdev_gpus(const char *root);

/* UUIDs of the vGPUs of a GPU, sorted. */
GStrv mdev_uuids(const char *root, const char *gpu);

/*
 * UUIDs of vGPUs that are still there though their GPU, this one or one that was removed, has lost its
 * driver; sorted. The GPU's types are gone then.
 */
GStrv mdev_left_over(const char *root, const char *gpu);

#endif
