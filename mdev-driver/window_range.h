/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Shared by window.c, which publishes ranges, window_look.c, which looks up their pages, and
 * window_fault.c, which maps them.
 */
#ifndef VGPU_WINDOW_RANGE_H
#define VGPU_WINDOW_RANGE_H

#include "vgpu_private.h"

enum vgpu_range_kind {
	VGPU_RANGE_SHMEM,
	VGPU_RANGE_DEVICE,
};

/*
 * ORPHAN: its engine is gone; nothing is looked up any more
 * DEAD: unpublished
 * ZAPPED: and out of the guest for good
 */
enum vgpu_range_phase {
	VGPU_RANGE_PUBLISHED,
	VGPU_RANGE_ORPHAN,
	VGPU_RANGE_DEAD,
	VGPU_RANGE_ZAPPED,
};

/*
 * What a range's table says of a page; 0: nothing yet.
 *
 * PRESENT: the engine has memory there, and its PFN is in the bits above. Shared memory is pinned.
 * LEAVING: and is being taken away: it must not be mapped again, and will be unpinned.
 * NONE: the engine has no memory there.
 */
#define VGPU_ENTRY_PRESENT	BIT(0)
#define VGPU_ENTRY_LEAVING	BIT(1)
#define VGPU_ENTRY_NONE		BIT(2)
#define VGPU_ENTRY_PFN_SHIFT	3

/*
 * Pages that are looked up and mapped together, aligned in the window. Following a PTE costs little
 * and keeps nothing. A page of shared memory stays pinned, so no more of them than a ring is likely
 * to use.
 */
#define VGPU_AROUND_DEVICE	PMD_SIZE
#define VGPU_AROUND_SHMEM	(16 * PAGE_SIZE)

/*
 * struct vgpu_range - a published range
 * @mm: the engine's address space, mmgrab()ed: a look-up may hold the range alone, and the notifier
 *	drops its own reference when it is removed
 * @file: the file that the engine had mapped there when it published
 * @table: what is known of its pages, in pieces for each 2 MiB of the window, which are made when
 *	they are needed; entries are under map_lock, and are entered only while the notifier's
 *	sequence has not changed
 * @phase: only forward, see vgpu_range_advance(); under map_lock
 */
struct vgpu_range {
	struct kref kref;
	struct interval_tree_node node;
	struct list_head reap;
	struct vgpu *vgpu;
	u64 offset;
	u64 size;
	unsigned long addr;
	enum vgpu_range_kind kind;
	struct mm_struct *mm;
	struct file *file;
	unsigned long **table;
	struct mmu_interval_notifier notifier;
	enum vgpu_range_phase phase;
};

/* The first page of the piece of @range's table that has @offset. */
static inline u64 vgpu_range_piece_start(const struct vgpu_range *range, u64 offset)
{
	return max_t(u64, round_down(offset, PMD_SIZE), range->offset);
}

/* And the end of that piece. */
static inline u64 vgpu_range_piece_end(const struct vgpu_range *range, u64 offset)
{
	return min_t(u64, round_down(offset, PMD_SIZE) + PMD_SIZE, range->offset + range->size);
}

static inline unsigned long **vgpu_range_piece(const struct vgpu_range *range, u64 offset)
{
	return &range->table[(offset >> PMD_SHIFT) - (range->offset >> PMD_SHIFT)];
}

/* The entry of a page; those of the same piece follow it. NULL: there is no piece yet. */
static inline unsigned long *vgpu_range_entry(const struct vgpu_range *range, u64 offset)
{
	unsigned long *piece = READ_ONCE(*vgpu_range_piece(range, offset));

	return piece ? piece + ((offset - vgpu_range_piece_start(range, offset)) >> PAGE_SHIFT) :
		       NULL;
}

static inline u64 vgpu_range_around(const struct vgpu_range *range)
{
	return range->kind == VGPU_RANGE_SHMEM ? VGPU_AROUND_SHMEM : VGPU_AROUND_DEVICE;
}

static inline bool vgpu_entry_maps(unsigned long entry)
{
	return (entry & (VGPU_ENTRY_PRESENT | VGPU_ENTRY_LEAVING)) == VGPU_ENTRY_PRESENT;
}

static inline unsigned long vgpu_entry_pfn(unsigned long entry)
{
	return entry >> VGPU_ENTRY_PFN_SHIFT;
}

void vgpu_range_put(struct vgpu_range *range);

/* The published range at an offset of the window, or NULL. Under map_lock. */
struct vgpu_range *vgpu_range_find(struct vgpu *vgpu, u64 offset);

/* Makes the piece of the table that has @offset. 0, or -ENOMEM. */
int vgpu_range_prepare(struct vgpu_range *range, u64 offset);

/*
 * The engine's VMA of the page at @addr, if it is still the published one, or NULL. Under @mm's
 * mmap_lock.
 */
struct vm_area_struct *vgpu_range_vma(struct vgpu_range *range, unsigned long addr);

/* Runs the worker of window_look.c, with a reference to the vGPU. */
void vgpu_window_look_up(struct vgpu *vgpu);

/*
 * window_look.c: has the page at @offset looked up, after vgpu_range_prepare(), and waits until its
 * entry says something, or the range is over, or the caller is killed. No lock may be held.
 */
void vgpu_range_await(struct vgpu_range *range, u64 offset);

#endif /* VGPU_WINDOW_RANGE_H */
