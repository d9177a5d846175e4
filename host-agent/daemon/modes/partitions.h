/* SPDX-License-Identifier: MIT */
/* GPUs with hardware partitions: one interface over SR-IOV and the vendors' own methods. */
#ifndef VGPUD_MODES_PARTITIONS_H
#define VGPUD_MODES_PARTITIONS_H

#include "lib/gpu.h"
#include "lib/host_root.h"

/**
 * Partitioner - a method of partitioning
 * @name: for people
 * @can: whether @gpu supports this method at all; may run programs
 * @list: names of the existing partitions: PCI addresses, or the vendor's names; to be freed. Only
 * reads.
 * @most: maximum number
 * @make: makes @count of them, 0: the maximum; existing ones are no error if their number is right.
 * May take long.
 * @remove: removes all
 */
typedef struct {
    const char *name;
    gboolean (*can)(HostRoot *root, const Gpu *gpu);
    GStrv (*list)(HostRoot *root, const Gpu *gpu);
    guint (*most)(const Gpu *gpu);
    gboolean (*make)(HostRoot *root, const Gpu *gpu, guint count, GError **error);
    gboolean (*remove)(HostRoot *root, const Gpu *gpu, GError **error);
} Partitioner;

extern const Partitioner partitioner_sriov;
extern const Partitioner partitioner_mig;

/* The one for @gpu; NULL: it cannot be partitioned. Not from the main loop. */
const Partitioner *partitioner_of(HostRoot *root, const Gpu *gpu);

/* Present partitions of @gpu, of any method. To be freed. */
GStrv partitioner_list(HostRoot *root, const Gpu *gpu);

#endif
