/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Shared by window.c, which publishes, and window_fault.c, which maps. */
#ifndef VGPU_WINDOW_RANGE_H
#define VGPU_WINDOW_RANGE_H

#include "vgpu_private.h"

enum vgpu_range_kind {
	VGPU_RANGE_SHMEM,
	VGPU_RANGE_DEVICE,
};

/*
 * struct vgpu_range - a published range
 * @mm: the engine's address space, mmgrab()ed: a fault holds the range alone, and the notifier
 *	drops its own reference when it is removed
 * @file: the file that the engine had mapped there when it published
 * @pages: of VGPU_RANGE_SHMEM: pinned so far; under map_lock
 * @dead: unpublished; under map_lock
 * @zapped: and out of the guest for good; under map_lock
 * @orphan: its engine is gone; no fault begins to look anything up; under map_lock
 * @leaving: invalidations that are taking pages out of @pages: none of them may be mapped;
 *	under map_lock
 */
struct vgpu_range {
	struct kref kref;
	struct rb_node node;
	struct list_head reap;
	struct vgpu *vgpu;
	u64 offset;
	u64 size;
	unsigned long addr;
	enum vgpu_range_kind kind;
	struct mm_struct *mm;
	struct file *file;
	struct page **pages;
	struct mmu_interval_notifier notifier;
	bool dead;
	bool zapped;
	bool orphan;
	unsigned int leaving;
};

void vgpu_range_put(struct vgpu_range *range);

/* The published range at an offset of the window, or NULL. Under map_lock. */
struct vgpu_range *vgpu_range_find(struct vgpu *vgpu, u64 offset);

/*
 * The engine's VMA for all of [addr, addr + size), if it is still the published one, or NULL. Under
 * @mm's mmap_lock.
 */
struct vm_area_struct *vgpu_range_vma(struct vgpu_range *range, struct mm_struct *mm,
				      unsigned long addr, unsigned long size);

/*
 * window_fault.c: drops the notes about @range for faults that will be repeated; NULL: all notes.
 */
void vgpu_window_forget_found(struct vgpu *vgpu, const struct vgpu_range *range);

#endif /* VGPU_WINDOW_RANGE_H */
