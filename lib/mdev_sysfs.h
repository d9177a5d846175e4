/* SPDX-License-Identifier: MIT */
/*
 * Registered GPUs as the kernel shows them: mdev parents, their types and vGPUs.
 */
#ifndef REGISTRAR_MDEV_SYSFS_H
#define REGISTRAR_MDEV_SYSFS_H

#include <glib.h>

/**
 * MdevType - one directory of mdev_supported_types
 * @name: with the vendor driver's name in front, as mdevctl takes it
 * @uuids: of the vGPUs that exist, sorted
 */
typedef struct {
    char *name;
    char *description;
    guint available;
    char **uuids;
} MdevType;

/* All mdev parents, named as in gpus.conf; other drivers' too: sysfs does not tell them apart. */
char **mdev_gpus(const char *root);

/* Types of a GPU, sorted by name; of MdevType; empty where it is no mdev parent. */
GPtrArray *mdev_types(const char *root, const char *gpu);

/* UUIDs of the vGPUs of a GPU, sorted. */
char **mdev_uuids(const char *root, const char *gpu);

/*
 * UUIDs of vGPUs that are still there though their GPU, this one or one that was removed, has lost its
 * driver; sorted. The GPU's types are gone then.
 */
char **mdev_left_over(const char *root, const char *gpu);

#endif
