/* SPDX-License-Identifier: MIT */
/*
 * The kernel's resources, from its own counters: objects of every slab cache, large kmallocs,
 * vmalloc areas of the driver, shared memory, pinned pages, IOMMU groups, and pages that none of
 * these includes. The driver's own ledger is not used.
 */
#ifndef KERNEL_COUNTS_H
#define KERNEL_COUNTS_H

#include <glib.h>

typedef struct {
    GHashTable *slabs; /* cache name: objects */
    gint64 large_pages;
    gint64 shmem_pages;
    gint64 other_pages;
    gint64 vmalloc_areas;
    gint64 pins;
    gint64 iommu_groups;
} KernelCounts;

/* Number of counts that can be compared. */
#define KERNEL_COUNTS_MOST 8

/*
 * Waits for delayed frees, and drops the kernel's caches, so that the counts are exact. Takes some
 * seconds.
 */
KernelCounts *kernel_counts_take(void);
void kernel_counts_free(KernelCounts *counts);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(KernelCounts, kernel_counts_free)

/*
 * How many of the counts have grown from each of @counts[0..@n) to the next: pins, IOMMU groups and
 * vmalloc areas at all, the others by @least. The rest of the system changes those, too, but a leak
 * grows in every batch of lives, and other changes do not. Each is printed with its numbers.
 */
unsigned kernel_counts_grown(KernelCounts *const *counts, unsigned n, unsigned least);

#endif /* KERNEL_COUNTS_H */
