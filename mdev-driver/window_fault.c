// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Faults in a VMM's mapping of the window.
 *
 * A fault maps what its range's table says. If that is nothing yet, the page has to be looked up in
 * the engine's address space, and the engine or its GPU can make that take long. The VMM's mmap_lock
 * must not be held meanwhile: it would stop each thread of the VMM that maps memory, and each reader
 * of its /proc. So the fault drops it, waits for the look-up (window_look.c), and returns
 * VM_FAULT_RETRY.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "window_range.h"

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
 * The area around the fault that is mapped at once: aligned, within the range and the VMA, and
 * within the page table that the fault has.
 */
static void vgpu_fault_around(const struct vm_fault *vmf, const struct vgpu_range *range, u64 *start,
			      u64 *end)
{
	const u64 around = vgpu_range_around(range);
	const struct vm_area_struct *vma = vmf->vma;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	unsigned long table = vmf->address & PMD_MASK;
	u64 first = offset - (vmf->address - max(table, vma->vm_start));
	u64 last = offset + (min(table + PMD_SIZE, vma->vm_end) - vmf->address);

	*start = max3(round_down(offset, around), range->offset, first);
	*end = min3(round_down(offset, around) + around, range->offset + range->size, last);
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

static unsigned long vgpu_range_known(const struct vgpu_range *range, u64 offset)
{
	unsigned long *entry = vgpu_range_entry(range, offset);

	lockdep_assert_held(&range->vgpu->map_lock);
	return entry ? *entry : 0;
}

/* Maps the page at @offset, and what else is known around the fault. */
static vm_fault_t vgpu_window_insert_around(struct vm_fault *vmf, const struct vgpu_range *range,
					    u64 offset)
{
	vm_fault_t result = VM_FAULT_NOPAGE;
	u64 at, end;

	vgpu_fault_around(vmf, range, &at, &end);
	for (; at < end; at += PAGE_SIZE) {
		unsigned long known = vgpu_range_known(range, at);
		vm_fault_t ret;

		if (!vgpu_entry_maps(known))
			continue;
		ret = vgpu_window_insert(vmf, at, vgpu_entry_pfn(known));
		if (at == offset)
			result = ret;
	}
	return result;
}

/*
 * Maps what is known. -EAGAIN: it has to be looked up, with a reference to @range. -ENODATA: a blank
 * page is needed. -ESTALE: the mapping is of a VMM that had the device earlier.
 */
static int vgpu_window_map_known(struct vgpu *vgpu, struct vm_fault *vmf, u64 offset,
				 struct vgpu_range **unknown, vm_fault_t *result)
{
	struct vgpu_range *range;
	unsigned long known;
	int ret = 0;

	mutex_lock(&vgpu->map_lock);
	range = vgpu_range_find(vgpu, offset);
	known = range ? vgpu_range_known(range, offset) : 0;
	if (vgpu_view_over(vmf)) {
		*result = VM_FAULT_SIGBUS;
		ret = -ESTALE;
	} else if (vgpu_entry_maps(known)) {
		*result = vgpu_window_insert_around(vmf, range, offset);
	} else if (range && range->phase == VGPU_RANGE_PUBLISHED && !(known & VGPU_ENTRY_NONE)) {
		kref_get(&range->kref);
		*unknown = range;
		ret = -EAGAIN;
	} else if (!vgpu_window_insert_blank(vgpu, vmf, offset, result)) {
		ret = -ENODATA;
	} else if (known & VGPU_ENTRY_NONE) {
		/* For this fault only: the engine may make the file longer. */
		*vgpu_range_entry(range, offset) = 0;
	}
	mutex_unlock(&vgpu->map_lock);
	return ret;
}

/*
 * Drops the VMM's mmap_lock, so @vmf->vma may be gone when this returns. Takes the reference to
 * @range.
 */
static vm_fault_t vgpu_window_wait(struct vm_fault *vmf, struct vgpu_range *range, u64 offset)
{
	struct vgpu *vgpu = range->vgpu;
	vm_fault_t ret = VM_FAULT_RETRY;

	/* From here on the VMA does not hold the vGPU. */
	get_device(&vgpu->vdev.device);
	/* KVM and a VMM's own access can wait; nobody else uses the window. */
	if (!(vmf->flags & FAULT_FLAG_ALLOW_RETRY)) {
		ret = VM_FAULT_SIGBUS;
	} else if (vgpu_range_prepare(range, offset)) {
		ret = VM_FAULT_OOM;
	} else if (!(vmf->flags & FAULT_FLAG_RETRY_NOWAIT)) {
		mmap_read_unlock(vmf->vma->vm_mm);
		vgpu_range_await(range, offset);
	}
	vgpu_range_put(range);
	vfio_put_device(&vgpu->vdev);
	return ret;
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
		return vgpu_window_wait(vmf, range, offset);
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
	return range->kind == VGPU_RANGE_DEVICE && range->phase == VGPU_RANGE_PUBLISHED &&
	       IS_ALIGNED(*start, PMD_SIZE) && *start >= range->offset &&
	       *start + PMD_SIZE <= range->offset + range->size;
}

/* Whether the memory of all of the PMD at @start is known, in one piece, and aligned as it is. */
static bool vgpu_range_fits_pmd(const struct vgpu_range *range, u64 start, unsigned long *pfn)
{
	const unsigned long *entry = vgpu_range_entry(range, start);
	unsigned int i;

	*pfn = vgpu_entry_pfn(entry[0]);
	for (i = 0; i < PTRS_PER_PTE; i++)
		if (!vgpu_entry_maps(entry[i]) || vgpu_entry_pfn(entry[i]) != *pfn + i)
			return false;
	return IS_ALIGNED(*pfn, PTRS_PER_PTE);
}

/*
 * Maps the fault's PMD as a whole, if it is known to fit; else its pages are left for PTEs. -EAGAIN:
 * it has to be looked up, with a reference to @range.
 */
static int vgpu_window_map_pmd(struct vgpu *vgpu, struct vm_fault *vmf, u64 offset,
			       struct vgpu_range **unknown, vm_fault_t *result)
{
	struct vgpu_range *range;
	unsigned long pfn;
	int ret = 0;
	u64 start;

	*result = VM_FAULT_FALLBACK;
	mutex_lock(&vgpu->map_lock);
	range = vgpu_range_find(vgpu, offset);
	if (range && !vgpu_view_over(vmf) && vgpu_fault_pmd(vmf, range, &start)) {
		if (!vgpu_range_known(range, offset)) {
			kref_get(&range->kref);
			*unknown = range;
			ret = -EAGAIN;
		} else if (vgpu_range_fits_pmd(range, start, &pfn)) {
			*result = vgpu_insert_pmd(vmf, pfn);
		}
	}
	mutex_unlock(&vgpu->map_lock);
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
	return range ? vgpu_window_wait(vmf, range, offset) : result;
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
