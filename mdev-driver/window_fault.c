// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Faults in a VMM's mapping of the window.
 *
 * A page that is known is mapped at once. Any other is looked up in the engine's address space, and the engine or its GPU
 * can make that take long. The VMM's mmap_lock must not be held meanwhile: it would stop each thread of the VMM that maps
 * memory, and each reader of its /proc. So the fault drops it, notes what it has found, and returns VM_FAULT_RETRY; the next
 * fault finds the note. The mmap_locks of two address spaces are never nested.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "window_range.h"

#include "trace.h"

/*
 * Pages that one fault looks up and maps, powers of two. Following a PTE costs little and keeps nothing. A
 * page of shared memory stays pinned, so no more of them than a ring is likely to use.
 */
#define VGPU_FAULT_AROUND_DEVICE	512
#define VGPU_FAULT_AROUND_SHMEM		16

/* Most notes at once. The oldest is dropped for a new one; its fault then looks again. */
#define VGPU_FOUND_MAX	16

/*
 * struct vgpu_view - a VMM's mapping of the window, and the parts into which it was split
 * @file: its release puts the vGPU, which is too much work under an mmap_lock
 * @opens: which of the VMMs that have opened the device made it: it must not show the next one's
 * window
 */
struct vgpu_view {
	refcount_t vmas;
	struct file *file;
	struct vgpu *vgpu;
	u64 opens;
};

/*
 * struct vgpu_found - a note: the result of a look-up in the engine's address space
 * @seq: of the range's notifier: the note is valid until the engine's memory changes
 * @offset: of the first page, in the window
 * @count: 0: the engine has no memory there
 * @page: of VGPU_RANGE_SHMEM, pinned, until the range has them
 * @pfn: of VGPU_RANGE_DEVICE
 */
struct vgpu_found {
	struct list_head node;
	struct vgpu_range *range;
	unsigned long seq;
	u64 offset;
	unsigned int count;
	struct page *page[VGPU_FAULT_AROUND_SHMEM];
	unsigned long pfn[VGPU_FAULT_AROUND_DEVICE];
};

static void vgpu_found_drop_pages(struct vgpu_found *found)
{
	unsigned int i;

	for (i = 0; i < VGPU_FAULT_AROUND_SHMEM; i++) {
		if (found->page[i])
			unpin_user_page(found->page[i]);
		found->page[i] = NULL;
	}
	found->count = 0;
}

static void vgpu_found_free(struct vgpu_found *found)
{
	vgpu_found_drop_pages(found);
	vgpu_range_put(found->range);
	kfree(found);
}

/* Takes all notes, or those about @range, out of the list. Under map_lock; they are freed without it. */
static void vgpu_found_take(struct vgpu *vgpu, const struct vgpu_range *range, struct list_head *taken)
{
	struct vgpu_found *found, *next;

	lockdep_assert_held(&vgpu->map_lock);
	list_for_each_entry_safe(found, next, &vgpu->window.found, node)
		if (!range || found->range == range)
			list_move(&found->node, taken);
}

static void vgpu_found_free_all(struct list_head *taken)
{
	struct vgpu_found *found, *next;

	list_for_each_entry_safe(found, next, taken, node)
		vgpu_found_free(found);
}

void vgpu_window_forget_found(struct vgpu *vgpu, const struct vgpu_range *range)
{
	LIST_HEAD(taken);

	mutex_lock(&vgpu->map_lock);
	vgpu_found_take(vgpu, range, &taken);
	mutex_unlock(&vgpu->map_lock);
	vgpu_found_free_all(&taken);
}

/* The note about @offset, or NULL. Outdated ones are moved to @over. */
static struct vgpu_found *vgpu_found_find(struct vgpu *vgpu, const struct vgpu_range *range, u64 offset,
					  struct list_head *over)
{
	struct vgpu_found *found, *next;

	lockdep_assert_held(&vgpu->map_lock);
	list_for_each_entry_safe(found, next, &vgpu->window.found, node) {
		u64 size = (u64)max(found->count, 1u) << PAGE_SHIFT;

		if (found->range != range || offset < found->offset || offset - found->offset >= size)
			continue;
		if (!mmu_interval_read_retry(&found->range->notifier, found->seq))
			return found;
		list_move(&found->node, over);
	}
	return NULL;
}

static void vgpu_found_pin(struct vgpu_found *found, struct mm_struct *mm, unsigned long addr)
{
	long n = vgpu_pin_remote(mm, addr, found->count, FOLL_WRITE | FOLL_LONGTERM, found->page);

	found->count = n > 0 ? n : 0;
}

static void vgpu_found_follow(struct vgpu_found *found, struct vm_area_struct *vma, unsigned long addr)
{
	const unsigned int flags = FAULT_FLAG_WRITE | FAULT_FLAG_REMOTE;
	unsigned int i;

	for (i = 0; i < found->count; i++, addr += PAGE_SIZE) {
		if (!vgpu_follow_pfn(vma, addr, &found->pfn[i]))
			continue;
		if (fixup_user_fault(vma->vm_mm, addr, flags, NULL) ||
		    vgpu_follow_pfn(vma, addr, &found->pfn[i]))
			break;
	}
	found->count = i;
}

/* Looks up @found->count pages; fewer may be found. No lock is held. */
static int vgpu_found_look(struct vgpu_found *found, struct mm_struct *mm)
{
	struct vgpu_range *range = found->range;
	unsigned long addr = range->addr + (found->offset - range->offset);
	struct vm_area_struct *vma;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	vma = vgpu_range_vma(range, mm, addr, (unsigned long)found->count << PAGE_SHIFT);
	if (!vma)
		found->count = 0;
	else if (range->kind == VGPU_RANGE_SHMEM)
		vgpu_found_pin(found, mm, addr);
	else
		vgpu_found_follow(found, vma, addr);
	mmap_read_unlock(mm);
	return 0;
}

static int vgpu_found_look_around(struct vgpu_found *found, u64 offset)
{
	struct vgpu_range *range = found->range;
	struct mm_struct *mm = range->mm;
	unsigned int want = found->count;
	int ret;

	found->seq = mmu_interval_read_begin(&range->notifier);
	if (!mmget_not_zero(mm)) {
		found->offset = offset;
		found->count = 0;
		return 0;
	}
	ret = vgpu_found_look(found, mm);
	/* Neighbours that are not available must not cost the requested page. */
	if (!ret && found->offset + ((u64)found->count << PAGE_SHIFT) <= offset) {
		vgpu_found_drop_pages(found);
		found->offset = offset;
		if (want > 1) {
			found->count = 1;
			ret = vgpu_found_look(found, mm);
		}
	}
	/* If this is the last reference, the address space ends; that is not this thread's work. */
	mmput_async(mm);
	trace_vgpu_window_fault(range->vgpu->minor, offset, found->count);
	return ret;
}

/* Gives pages of shared memory to the range; keeps anything else as a note. Takes @found. */
static void vgpu_found_keep(struct vgpu_found *found)
{
	struct vgpu_range *range = found->range;
	struct vgpu *vgpu = range->vgpu;
	struct vgpu_found *drop = found;
	unsigned int i, notes = 0;
	struct vgpu_found *other;

	mutex_lock(&vgpu->map_lock);
	if (range->dead || mmu_interval_read_retry(&range->notifier, found->seq)) {
		/* Out of date already: the fault will look again. */
	} else if (range->pages && found->count) {
		struct page **slot = &range->pages[(found->offset - range->offset) >> PAGE_SHIFT];

		for (i = 0; i < found->count; i++)
			if (!slot[i])
				swap(slot[i], found->page[i]);
	} else {
		drop = NULL;
		list_for_each_entry(other, &vgpu->window.found, node)
			notes++;
		if (notes >= VGPU_FOUND_MAX) {
			drop = list_first_entry(&vgpu->window.found, struct vgpu_found, node);
			list_del(&drop->node);
		}
		list_add_tail(&found->node, &vgpu->window.found);
	}
	mutex_unlock(&vgpu->map_lock);
	if (drop)
		vgpu_found_free(drop);
}

/*
 * The area around the fault that is looked up or mapped at once: aligned, within the range and the
 * VMA, and within the page table that the fault has.
 */
static void vgpu_fault_around(const struct vm_fault *vmf, const struct vgpu_range *range, u64 *start,
			      u64 *end)
{
	const u64 span = (range->kind == VGPU_RANGE_SHMEM ? VGPU_FAULT_AROUND_SHMEM :
							   VGPU_FAULT_AROUND_DEVICE) << PAGE_SHIFT;
	const struct vm_area_struct *vma = vmf->vma;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	unsigned long table = vmf->address & PMD_MASK;
	u64 first = offset - (vmf->address - max(table, vma->vm_start));
	u64 last = offset + (min(table + PMD_SIZE, vma->vm_end) - vmf->address);

	*start = max3(round_down(offset, span), range->offset, first);
	*end = min3(round_down(offset, span) + span, range->offset + range->size, last);
}

static bool vgpu_view_over(const struct vm_fault *vmf)
{
	const struct vgpu_view *view = vmf->vma->vm_private_data;

	lockdep_assert_held(&view->vgpu->map_lock);
	return view->opens != view->vgpu->window.opens;
}

static vm_fault_t vgpu_window_insert(struct vm_fault *vmf, u64 offset, unsigned long pfn)
{
	unsigned long addr = vmf->vma->vm_start + offset -
			     ((u64)vmf->vma->vm_pgoff << PAGE_SHIFT);
	unsigned int noreclaim = memalloc_noreclaim_save();
	vm_fault_t ret = vgpu_insert_mixed(vmf->vma, addr, pfn);

	memalloc_noreclaim_restore(noreclaim);
	return ret;
}

/* False: there is no blank page yet. */
static bool vgpu_window_insert_blank(struct vgpu *vgpu, struct vm_fault *vmf, u64 offset,
				     vm_fault_t *result)
{
	struct page *page = vgpu_blank_find(vgpu, offset);

	if (page)
		*result = vgpu_window_insert(vmf, offset, page_to_pfn(page));
	return page;
}

/*
 * Maps the known pages of shared memory around the fault. False: the touched page is not among
 * them.
 */
static bool vgpu_range_map_pages(struct vgpu_range *range, struct vm_fault *vmf, u64 offset,
				 vm_fault_t *result)
{
	u64 at, end;

	/*
	 * A guest that polls its ring faults between the zap and the unpinning: it must not get
	 * that page again.
	 */
	if (!range->pages || range->leaving || !range->pages[(offset - range->offset) >> PAGE_SHIFT])
		return false;
	vgpu_fault_around(vmf, range, &at, &end);
	for (; at < end; at += PAGE_SIZE) {
		struct page *page = range->pages[(at - range->offset) >> PAGE_SHIFT];
		vm_fault_t ret;

		if (!page)
			continue;
		ret = vgpu_window_insert(vmf, at, page_to_pfn(page));
		if (at == offset)
			*result = ret;
	}
	return true;
}

/*
 * Maps the memory of a note, within the fault's page table. False: there is none, and no blank page
 * yet.
 */
static bool vgpu_found_map(const struct vgpu_found *found, struct vm_fault *vmf, u64 offset,
			   vm_fault_t *result)
{
	u64 at, end;

	if (!found->count)
		return vgpu_window_insert_blank(found->range->vgpu, vmf, offset, result);
	vgpu_fault_around(vmf, found->range, &at, &end);
	at = max(at, found->offset);
	end = min(end, found->offset + ((u64)found->count << PAGE_SHIFT));
	for (; at < end; at += PAGE_SIZE) {
		vm_fault_t ret = vgpu_window_insert(vmf, at,
						    found->pfn[(at - found->offset) >> PAGE_SHIFT]);

		if (at == offset)
			*result = ret;
	}
	return true;
}

/*
 * Maps what is known. -EAGAIN: it has to be looked up, with a reference to @range. -ENODATA: a blank page is needed. -ESTALE:
 * the mapping is of a VMM that had the device earlier.
 */
static int vgpu_window_map_known(struct vgpu *vgpu, struct vm_fault *vmf, u64 offset,
				 struct vgpu_range **looked_up, vm_fault_t *result)
{
	struct vgpu_found *found = NULL;
	struct vgpu_range *range;
	LIST_HEAD(over);
	int ret = 0;

	mutex_lock(&vgpu->map_lock);
	range = vgpu_range_find(vgpu, offset);
	if (range && !range->orphan)
		found = vgpu_found_find(vgpu, range, offset, &over);

	*result = VM_FAULT_NOPAGE;
	if (vgpu_view_over(vmf)) {
		*result = VM_FAULT_SIGBUS;
		ret = -ESTALE;
	} else if (range && vgpu_range_map_pages(range, vmf, offset, result)) {
		ret = 0;
	} else if (found) {
		ret = vgpu_found_map(found, vmf, offset, result) ? 0 : -ENODATA;
		if (!ret)
			list_move(&found->node, &over);
	} else if (range && !range->orphan) {
		kref_get(&range->kref);
		*looked_up = range;
		ret = -EAGAIN;
	} else if (!vgpu_window_insert_blank(vgpu, vmf, offset, result)) {
		ret = -ENODATA;
	}
	mutex_unlock(&vgpu->map_lock);

	vgpu_found_free_all(&over);
	return ret;
}

/* Drops the VMM's mmap_lock, so @vmf->vma may be gone when this returns. Takes the reference to @range. */
static vm_fault_t vgpu_window_look_up(struct vm_fault *vmf, struct vgpu_range *range, u64 offset)
{
	struct vgpu *vgpu = range->vgpu;
	struct vgpu_found *found = NULL;
	u64 start, end;

	/* KVM and a VMM's own access can wait; nobody else uses the window. */
	if (!(vmf->flags & FAULT_FLAG_ALLOW_RETRY) || (vmf->flags & FAULT_FLAG_RETRY_NOWAIT)) {
		vgpu_range_put(range);
		return vmf->flags & FAULT_FLAG_ALLOW_RETRY ? VM_FAULT_RETRY : VM_FAULT_SIGBUS;
	}
	found = kzalloc(sizeof(*found), GFP_KERNEL_ACCOUNT);
	if (!found) {
		vgpu_range_put(range);
		return VM_FAULT_OOM;
	}
	vgpu_fault_around(vmf, range, &start, &end);
	found->range = range;
	found->offset = start;
	found->count = (end - start) >> PAGE_SHIFT;

	/* From here on the VMA does not hold the vGPU. */
	get_device(&vgpu->vdev.device);
	mmap_read_unlock(vmf->vma->vm_mm);
	if (vgpu_found_look_around(found, offset))
		vgpu_found_free(found);
	else
		vgpu_found_keep(found);
	vfio_put_device(&vgpu->vdev);
	return VM_FAULT_RETRY;
}

/* A fault that is repeated is one. */
static void vgpu_window_count(struct vgpu *vgpu, const struct vm_fault *vmf)
{
	if (!(vmf->flags & FAULT_FLAG_TRIED))
		WRITE_ONCE(vgpu->stats.window_faults, vgpu->stats.window_faults + 1);
}

/*
 * The fault's page table, unless another fault has mapped all of its PMD since the kernel looked:
 * then this one is repeated. 0: it is there, and stays.
 */
static vm_fault_t vgpu_window_table(struct vgpu *vgpu, struct vm_fault *vmf)
{
	vm_fault_t ret = 0;

	mutex_lock(&vgpu->window.table_lock);
	if (pmd_leaf(READ_ONCE(*vmf->pmd)))
		ret = VM_FAULT_NOPAGE;
	else if (vgpu_prepare_pte(vmf))
		ret = VM_FAULT_OOM;
	mutex_unlock(&vgpu->window.table_lock);
	return ret;
}

static vm_fault_t vgpu_window_fault(struct vm_fault *vmf)
{
	struct vgpu_view *view = vmf->vma->vm_private_data;
	struct vgpu *vgpu = view->vgpu;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	struct vgpu_range *range = NULL;
	vm_fault_t result = vgpu_window_table(vgpu, vmf);
	int ret;

	if (result)
		return result;
	result = VM_FAULT_SIGBUS;
	vgpu_window_count(vgpu, vmf);
	do {
		ret = vgpu_window_map_known(vgpu, vmf, offset, &range, &result);
		if (ret == -ENODATA)
			ret = vgpu_blank_prepare(vgpu, offset) ?: -EAGAIN;
		cond_resched();
	} while (ret == -EAGAIN && !range && !fatal_signal_pending(current));
	if (range)
		return vgpu_window_look_up(vmf, range, offset);
	return ret == -ENOMEM ? VM_FAULT_OOM : result;
}

/* The offset of the fault's PMD in the window, if it is aligned, and all of it device memory of one range. */
static bool vgpu_fault_pmd(const struct vm_fault *vmf, const struct vgpu_range *range, u64 *start)
{
	const struct vm_area_struct *vma = vmf->vma;
	unsigned long table = vmf->address & PMD_MASK;

	if (table < vma->vm_start || vma->vm_end - table < PMD_SIZE)
		return false;
	*start = ((u64)vmf->pgoff << PAGE_SHIFT) - (vmf->address - table);
	return range->kind == VGPU_RANGE_DEVICE && !range->orphan &&
	       IS_ALIGNED(*start, PMD_SIZE) && *start >= range->offset &&
	       *start + PMD_SIZE <= range->offset + range->size;
}

/* The memory of all of the PMD at @start is in one piece, and aligned as it is. */
static bool vgpu_found_fits_pmd(const struct vgpu_found *found, u64 start)
{
	unsigned int i;

	if (found->offset != start || found->count != PMD_SIZE >> PAGE_SHIFT ||
	    !IS_ALIGNED(found->pfn[0], PMD_SIZE >> PAGE_SHIFT))
		return false;
	for (i = 1; i < found->count; i++)
		if (found->pfn[i] != found->pfn[0] + i)
			return false;
	return true;
}

/*
 * Maps the fault's PMD as a whole, if it is known to fit. -EAGAIN: it has to be looked up, with a
 * reference to @range. The note of what does not fit is left for the PTEs.
 */
static int vgpu_window_map_pmd(struct vgpu *vgpu, struct vm_fault *vmf, u64 offset,
			       struct vgpu_range **looked_up, vm_fault_t *result)
{
	struct vgpu_found *found;
	struct vgpu_range *range;
	LIST_HEAD(over);
	int ret = 0;
	u64 start;

	*result = VM_FAULT_FALLBACK;
	mutex_lock(&vgpu->map_lock);
	range = vgpu_range_find(vgpu, offset);
	if (range && !vgpu_view_over(vmf) && vgpu_fault_pmd(vmf, range, &start)) {
		found = vgpu_found_find(vgpu, range, offset, &over);
		if (!found) {
			kref_get(&range->kref);
			*looked_up = range;
			ret = -EAGAIN;
		} else if (vgpu_found_fits_pmd(found, start)) {
			*result = vgpu_insert_pmd(vmf, found->pfn[0]);
			list_move(&found->node, &over);
		}
	}
	mutex_unlock(&vgpu->map_lock);

	vgpu_found_free_all(&over);
	return ret;
}

/*
 * KVM maps a guest's memory no larger than the host's PTE or PMD, and each of its faults is an exit.
 * Whoever can't wait here gets PTEs.
 */
static vm_fault_t __maybe_unused vgpu_window_huge_fault(struct vm_fault *vmf, unsigned int order)
{
	const unsigned int no_wait = FAULT_FLAG_VMA_LOCK | FAULT_FLAG_RETRY_NOWAIT;
	struct vgpu_view *view = vmf->vma->vm_private_data;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	struct vgpu_range *range = NULL;
	struct vgpu *vgpu = view->vgpu;
	vm_fault_t result;
	int ret;

	if (order != PMD_SHIFT - PAGE_SHIFT || !pmd_none(*vmf->pmd) || vmf->flags & no_wait ||
	    !(vmf->flags & FAULT_FLAG_ALLOW_RETRY))
		return VM_FAULT_FALLBACK;
	mutex_lock(&vgpu->window.table_lock);
	ret = vgpu_window_map_pmd(vgpu, vmf, offset, &range, &result);
	mutex_unlock(&vgpu->window.table_lock);
	if (!ret && result == VM_FAULT_FALLBACK)
		return result;
	vgpu_window_count(vgpu, vmf);
	return range ? vgpu_window_look_up(vmf, range, offset) : result;
}

static void vgpu_window_vma_open(struct vm_area_struct *vma)
{
	struct vgpu_view *view = vma->vm_private_data;

	refcount_inc(&view->vmas);
}

static void vgpu_window_vma_close(struct vm_area_struct *vma)
{
	struct vgpu_view *view = vma->vm_private_data;

	if (refcount_dec_and_test(&view->vmas))
		fput(view->file);
}

static int vgpu_view_release(struct inode *inode, struct file *file)
{
	struct vgpu_view *view = file->private_data;

	vfio_put_device(&view->vgpu->vdev);
	kfree(view);
	return 0;
}

static const struct file_operations vgpu_view_fops = {
	.owner = THIS_MODULE,
	.release = vgpu_view_release,
};

/* Without map_pages, so that faults always hold the mmap_lock, not only a VMA's own lock. */
static const struct vm_operations_struct vgpu_window_vm_ops = {
	.open = vgpu_window_vma_open,
	.close = vgpu_window_vma_close,
	.fault = vgpu_window_fault,
	VGPU_HUGE_FAULT_OPS(vgpu_window_huge_fault)
};

/* @vma->vm_pgoff is relative to the window already. */
int vgpu_window_mmap(struct vgpu *vgpu, struct vm_area_struct *vma)
{
	u64 start = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 size = vma->vm_end - vma->vm_start;
	struct vgpu_view *view;
	int ret;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (start >= vgpu->window_bytes_open || size > vgpu->window_bytes_open - start)
		return -EINVAL;
	view = kzalloc(sizeof(*view), GFP_KERNEL_ACCOUNT);
	if (!view)
		return -ENOMEM;
	view->file = anon_inode_getfile("[vgpu-view]", &vgpu_view_fops, view, 0);
	if (IS_ERR(view->file)) {
		ret = PTR_ERR(view->file);
		kfree(view);
		return ret;
	}
	refcount_set(&view->vmas, 1);
	view->vgpu = vgpu;
	view->opens = READ_ONCE(vgpu->window.opens);
	get_device(&vgpu->vdev.device);

	vma_set_file(vma, vgpu->window_file);
	vgpu_vm_flags_set(vma, VM_IO | VM_MIXEDMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	vma->vm_private_data = view;
	vma->vm_ops = &vgpu_window_vm_ops;
	return 0;
}
