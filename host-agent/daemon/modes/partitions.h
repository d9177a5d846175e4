/* SPDX-License-Identifier: MIT */
/*
 * GPUs that cut themselves: one interface over SR-IOV and the vendors' own ways.
 */
#ifndef VGPUD_MODES_PARTITIONS_H
#define VGPUD_MODES_PARTITIONS_H

#include "lib/gpu.h"

/**
 * Partitioner - a way of cutting
 * @name: for people
 * @can: whether @gpu can be cut this way at all; may run programs
 * @list: names of the partitions that there are: PCI addresses, or the vendor's names; to be freed.
 * Only reads.
 * @most: how many it can have
 * @make: makes @count of them, 0: as many as can be; those that are there already are no error
 * where their number is right. May take long.
 * @remove: takes all away
 */
typedef struct {
    const char *name;
    gboolean (*can)(const char *root, const Gpu *gpu);
    GStrv (*list)(const char *root, const Gpu *gpu);
    guint (*most)(const Gpu *gpu);
    gboolean (*make)(const char *root, const Gpu *gpu, guint count, GError **error);
    gboolean (*remove)(const char *root, const Gpu *gpu, GError **error);
} Partitioner;

extern const Partitioner partitioner_sriov;
extern const Partitioner partitioner_mig;

/* The one for @gpu; NULL: it can't be cut. Not from the main loop. */
const Partitioner *partitioner_of(const char *root, const Gpu *gpu);

/* Partitions that @gpu has now, by whatever way. To be freed. */
GStrv partitioner_list(const char *root, const Gpu *gpu);

#endif
