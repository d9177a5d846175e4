// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The host-visible window: memory of the engine, faulted straight into the guest.
 *
 * A published range is only a promise. Pages are looked up when the guest touches them:
 *
 *   - shared memory (memfd): pinned, and kept when the engine dies, until the guest resets the
 *     device, so that rings stay readable;
 *   - device memory (dma-buf, DRM): the PTE of the engine is followed, under an MMU interval
 *     notifier that zaps. Nothing is kept, so that what the GPU's driver moves or recycles is gone
 *     from the guest before it is gone from the engine.
 *
 * The VMA is VM_IO | VM_MIXEDMAP with special PTEs. KVM follows PTEs of VM_IO mappings by itself.
 * VFIO's type1 takes pages by get_user_pages(), which special PTEs refuse, or else bare PFNs, but
 * only of VM_PFNMAP mappings and without ever giving them up again. So no page of the window can
 * become a DMA target of a physical device of the same VM.
 */
#include <linux/lockdep.h>
#include <linux/magic.h>
#include <linux/sched/mm.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/userfaultfd_k.h>
#include <linux/vmalloc.h>

#include "vgpu_private.h"

#include "trace.h"

#define VGPU_WINDOW_MAX_RANGES	16384
/*
 * Pages that one fault looks up and maps, powers of two. Following a PTE costs little and keeps nothing. A
 * page of shared memory stays pinned, so no more of them than a ring is likely to use.
 */
#define VGPU_FAULT_AROUND_DEVICE	512
#define VGPU_FAULT_AROUND_SHMEM		16

enum vgpu_range_kind {
	VGPU_RANGE_SHMEM,
	VGPU_RANGE_DEVICE,
};

/*
 * struct vgpu_range - a published range
 * @mm: the engine's address space, mmgrab()ed: a fault holds the range alone, and the notifier gives its own reference
 *	back when it is removed
 * @file: what the engine had mapped there when it published
 * @pages: of VGPU_RANGE_SHMEM: pinned so far; under map_lock
 * @dead: unpublished; under map_lock
 * @orphan: its engine is gone; what is in @pages is all there will be; under map_lock
 * @leaving: invalidations that are taking pages out of @pages: none of them may be mapped; under map_lock
 */
struct vgpu_range {
	struct kref kref;
	struct rb_node node;
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
	bool orphan;
	unsigned int leaving;
};

/*
 * struct vgpu_view - a VMM's mapping of the window, and what became of it when it was split
 * @opens: which of the VMMs that have had the device: the next one's window is not for this one to see
 */
struct vgpu_view {
	refcount_t vmas;
	struct vgpu *vgpu;
	u64 opens;
};

/* Pages found for a fault, before they are mapped; @page where they are pinned. */
struct vgpu_batch {
	u64 offset;
	unsigned int count;
	struct page *page[VGPU_FAULT_AROUND_SHMEM];
	unsigned long pfn[VGPU_FAULT_AROUND_DEVICE];
};

static void vgpu_window_zap(struct vgpu *vgpu, u64 offset, u64 size)
{
	unmap_mapping_range(vgpu->inode->i_mapping, offset, size, 1);
}

static struct vgpu_range *vgpu_range_find(struct vgpu *vgpu, u64 offset)
{
	struct rb_node *node = vgpu->window.ranges.rb_node;

	lockdep_assert_held(&vgpu->map_lock);
	while (node) {
		struct vgpu_range *range = rb_entry(node, struct vgpu_range, node);

		if (offset < range->offset)
			node = node->rb_left;
		else if (offset >= range->offset + range->size)
			node = node->rb_right;
		else
			return range;
	}
	return NULL;
}

static int vgpu_range_insert(struct vgpu *vgpu, struct vgpu_range *range)
{
	struct rb_node **link = &vgpu->window.ranges.rb_node, *parent = NULL;

	lockdep_assert_held(&vgpu->map_lock);
	while (*link) {
		struct vgpu_range *other = rb_entry(*link, struct vgpu_range, node);

		parent = *link;
		if (range->offset + range->size <= other->offset)
			link = &parent->rb_left;
		else if (range->offset >= other->offset + other->size)
			link = &parent->rb_right;
		else
			return -EEXIST;
	}
	rb_link_node(&range->node, parent, link);
	rb_insert_color(&range->node, &vgpu->window.ranges);
	vgpu->window.nranges++;
	vgpu->window.published_bytes += range->size;
	return 0;
}

static void vgpu_range_free(struct kref *kref)
{
	struct vgpu_range *range = container_of(kref, struct vgpu_range, kref);

	mmdrop(range->mm);
	fput(range->file);
	kvfree(range->pages);
	kfree(range);
}

/* Gives up the pinned pages of [first, first + count). Nobody maps them any more. */
static void vgpu_range_unpin(struct vgpu_range *range, u64 first, u64 count)
{
	u64 i;

	if (!range->pages)
		return;
	for (i = first; i < first + count; i++) {
		if (range->pages[i])
			unpin_user_page(range->pages[i]);
		range->pages[i] = NULL;
	}
}

static void vgpu_range_remove(struct vgpu_range *range)
{
	struct vgpu *vgpu = range->vgpu;

	mutex_lock(&vgpu->map_lock);
	range->dead = true;
	rb_erase(&range->node, &vgpu->window.ranges);
	vgpu->window.nranges--;
	vgpu->window.published_bytes -= range->size;
	mutex_unlock(&vgpu->map_lock);

	vgpu_window_zap(vgpu, range->offset, range->size);
	mmu_interval_notifier_remove(&range->notifier);
	vgpu_range_unpin(range, 0, range->size >> PAGE_SHIFT);
	kref_put(&range->kref, vgpu_range_free);
}

/*
 * The engine's memory changes. Pages without a reference of ours must be gone from the guest when this
 * returns; pinned ones go too, as the engine has unmapped or replaced them, but for its own end.
 */
static bool vgpu_range_invalidate(struct mmu_interval_notifier *notifier,
				  const struct mmu_notifier_range *event, unsigned long seq)
{
	struct vgpu_range *range = container_of(notifier, struct vgpu_range, notifier);
	unsigned long start = max(event->start, range->addr);
	unsigned long end = min_t(unsigned long, event->end, range->addr + range->size);
	struct vgpu *vgpu = range->vgpu;
	bool zap;

	if (!mmu_notifier_range_blockable(event))
		return false;

	mutex_lock(&vgpu->map_lock);
	mmu_interval_set_seq(notifier, seq);
	if (event->event == MMU_NOTIFY_RELEASE)
		range->orphan = true;
	zap = !range->orphan || range->kind == VGPU_RANGE_DEVICE;
	range->leaving += zap;
	mutex_unlock(&vgpu->map_lock);
	if (!zap)
		return true;

	/*
	 * Zapping calls the VMM's notifiers from the engine's. The order of the two address spaces is
	 * always this one: a VMM's window is never publishable, so it can't come back here. lockdep sees
	 * only one class for all of them.
	 */
	lockdep_off();
	vgpu_window_zap(vgpu, range->offset + (start - range->addr), end - start);
	lockdep_on();

	/* No fault has mapped them again: it saw the sequence change, or that they are leaving. */
	mutex_lock(&vgpu->map_lock);
	vgpu_range_unpin(range, (start - range->addr) >> PAGE_SHIFT, (end - start) >> PAGE_SHIFT);
	range->leaving--;
	mutex_unlock(&vgpu->map_lock);
	return true;
}

static const struct mmu_interval_notifier_ops vgpu_range_notifier_ops = {
	.invalidate = vgpu_range_invalidate,
};

/* What kind of memory a VMA of the engine is, or -EACCES for what no guest may see. */
static int vgpu_classify(struct vgpu *vgpu, struct vm_area_struct *vma)
{
	const unsigned long need = VM_SHARED | VM_READ | VM_WRITE;
	struct super_block *sb;

	if (!vma->vm_file || (vma->vm_flags & need) != need)
		return -EACCES;
	if (is_vm_hugetlb_page(vma) || userfaultfd_armed(vma))
		return -EACCES;

	sb = file_inode(vma->vm_file)->i_sb;
	/* memfds live on the kernel's own tmpfs mount, out of reach of paths. */
	if (sb->s_magic == TMPFS_MAGIC && (sb->s_flags & SB_KERNMOUNT))
		return (vma->vm_flags & (VM_PFNMAP | VM_MIXEDMAP)) ? VGPU_RANGE_DEVICE :
								     VGPU_RANGE_SHMEM;
	if (sb->s_magic == DMA_BUF_MAGIC || vgpu_gpu_owns_file(vgpu->gpu, vma->vm_file))
		return VGPU_RANGE_DEVICE;
	return -EACCES;
}

/* The engine's VMA for all of [addr, addr + size), as long as it is what was published. */
static struct vm_area_struct *vgpu_range_vma(struct vgpu_range *range, struct mm_struct *mm,
					     unsigned long addr, unsigned long size)
{
	struct vm_area_struct *vma = find_vma(mm, addr);

	if (!vma || vma->vm_start > addr || vma->vm_end < addr + size)
		return NULL;
	if (vma->vm_file != range->file || vgpu_classify(range->vgpu, vma) != (int)range->kind)
		return NULL;
	return vma;
}

static void vgpu_batch_drop(struct vgpu_batch *batch)
{
	unsigned int i;

	for (i = 0; i < VGPU_FAULT_AROUND_SHMEM; i++) {
		if (batch->page[i])
			unpin_user_page(batch->page[i]);
		batch->page[i] = NULL;
	}
	batch->count = 0;
}

static void vgpu_batch_pin(struct vgpu_batch *batch, struct mm_struct *mm, unsigned long addr)
{
	long n = vgpu_pin_remote(mm, addr, batch->count, FOLL_WRITE | FOLL_LONGTERM, batch->page);
	unsigned int i;

	batch->count = n > 0 ? n : 0;
	for (i = 0; i < batch->count; i++)
		batch->pfn[i] = page_to_pfn(batch->page[i]);
}

static void vgpu_batch_follow(struct vgpu_batch *batch, struct vm_area_struct *vma,
			      unsigned long addr)
{
	const unsigned int flags = FAULT_FLAG_WRITE | FAULT_FLAG_REMOTE;
	unsigned int i;

	for (i = 0; i < batch->count; i++, addr += PAGE_SIZE) {
		if (!vgpu_follow_pfn(vma, addr, &batch->pfn[i]))
			continue;
		if (fixup_user_fault(vma->vm_mm, addr, flags, NULL) ||
		    vgpu_follow_pfn(vma, addr, &batch->pfn[i]))
			break;
	}
	batch->count = i;
}

/* The stretch around @offset that one fault looks up: aligned, within the range and the VMA. */
static void vgpu_batch_around(struct vgpu_batch *batch, const struct vgpu_range *range,
			      const struct vm_fault *vmf, u64 offset)
{
	const u64 span = (range->kind == VGPU_RANGE_SHMEM ? VGPU_FAULT_AROUND_SHMEM :
							   VGPU_FAULT_AROUND_DEVICE) << PAGE_SHIFT;
	u64 vma_start = (u64)vmf->vma->vm_pgoff << PAGE_SHIFT;
	u64 vma_end = vma_start + (vmf->vma->vm_end - vmf->vma->vm_start);
	u64 start = max3(round_down(offset, span), range->offset, vma_start);
	u64 end = min3(round_down(offset, span) + span, range->offset + range->size, vma_end);

	memset(batch->page, 0, sizeof(batch->page));
	batch->offset = start;
	batch->count = (end - start) >> PAGE_SHIFT;
}

/*
 * Looks up the pages in the engine's address space. 0 with an empty batch: there is nothing any more.
 * Called with the VMM's mmap_lock or VMA lock held; no lock of ours.
 */
static int vgpu_range_lookup(struct vgpu_range *range, struct vgpu_batch *batch, u64 offset)
{
	struct mm_struct *mm = range->mm;
	unsigned int want = batch->count;
	struct vm_area_struct *vma;
	unsigned long addr;
	int ret = 0;

	batch->count = 0;
	if (!mmget_not_zero(mm))
		return 0;
	/* Nested inside the VMM's: see the lock order. */
	if (down_read_killable_nested(&mm->mmap_lock, SINGLE_DEPTH_NESTING)) {
		ret = -EINTR;
		goto out;
	}

	addr = range->addr + (batch->offset - range->offset);
	vma = vgpu_range_vma(range, mm, addr, (unsigned long)want << PAGE_SHIFT);
	if (vma) {
		batch->count = want;
		if (range->kind == VGPU_RANGE_SHMEM)
			vgpu_batch_pin(batch, mm, addr);
		else
			vgpu_batch_follow(batch, vma, addr);
	}
	up_read(&mm->mmap_lock);

	/* Neighbours that can't be had must not cost the page that was asked for. */
	if (batch->offset + ((u64)batch->count << PAGE_SHIFT) <= offset && want > 1) {
		vgpu_batch_drop(batch);
		batch->offset = offset;
		batch->count = 1;
		mmput_async(mm);
		return vgpu_range_lookup(range, batch, offset);
	}
out:
	/* Never the last reference's work under the VMM's mmap_lock. */
	mmput_async(mm);
	return ret;
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
 * Maps what was found. -EAGAIN: the engine's memory, or the VMM that has the device, has changed
 * meanwhile. -ENODATA: there is nothing, and a blank page is needed.
 */
static int vgpu_batch_map(struct vgpu_range *range, struct vgpu_batch *batch, struct vm_fault *vmf,
			  u64 offset, unsigned long seq, vm_fault_t *result)
{
	struct vgpu *vgpu = range->vgpu;
	unsigned int i;

	mutex_lock(&vgpu->map_lock);
	if (range->dead || mmu_interval_read_retry(&range->notifier, seq) || vgpu_view_over(vmf)) {
		mutex_unlock(&vgpu->map_lock);
		return -EAGAIN;
	}

	*result = VM_FAULT_NOPAGE;
	if (!batch->count && !vgpu_window_insert_blank(vgpu, vmf, offset, result)) {
		mutex_unlock(&vgpu->map_lock);
		return -ENODATA;
	}
	for (i = 0; i < batch->count; i++) {
		u64 at = batch->offset + ((u64)i << PAGE_SHIFT);
		struct page **slot = NULL;
		vm_fault_t ret;

		if (range->pages)
			slot = &range->pages[(at - range->offset) >> PAGE_SHIFT];
		if (slot && !*slot) {
			*slot = batch->page[i];
			batch->page[i] = NULL;
		}
		ret = vgpu_window_insert(vmf, at, slot ? page_to_pfn(*slot) : batch->pfn[i]);
		if (at == offset)
			*result = ret;
	}
	mutex_unlock(&vgpu->map_lock);
	return 0;
}

static int vgpu_range_fault(struct vgpu_range *range, struct vm_fault *vmf, u64 offset,
			    vm_fault_t *result)
{
	struct vgpu_batch *batch = kmalloc(sizeof(*batch), GFP_KERNEL);
	unsigned long seq;
	int ret;

	if (!batch)
		return -ENOMEM;
	seq = mmu_interval_read_begin(&range->notifier);
	vgpu_batch_around(batch, range, vmf, offset);
	ret = vgpu_range_lookup(range, batch, offset);
	trace_vgpu_window_fault(range->vgpu->minor, offset, batch->count);
	if (!ret)
		ret = vgpu_batch_map(range, batch, vmf, offset, seq, result);
	vgpu_batch_drop(batch);
	kfree(batch);
	return ret;
}

/*
 * Where no lookup is needed: the page is known, nothing is published, or its engine is gone. -EAGAIN: look it
 * up, with a reference to @range. -ESTALE: the mapping is of a VMM that had the device earlier.
 */
static int vgpu_window_fault_known(struct vgpu *vgpu, struct vm_fault *vmf, u64 offset,
				   struct vgpu_range **found, vm_fault_t *result)
{
	struct vgpu_range *range;
	struct page *page = NULL;
	int ret = 0;

	mutex_lock(&vgpu->map_lock);
	vgpu->stats.window_faults++;
	if (vgpu_view_over(vmf)) {
		mutex_unlock(&vgpu->map_lock);
		return -ESTALE;
	}
	range = vgpu_range_find(vgpu, offset);
	/* A guest that polls its ring faults between the zap and the unpinning: it must not get that page again. */
	if (range && range->pages && !range->leaving)
		page = range->pages[(offset - range->offset) >> PAGE_SHIFT];
	if (page) {
		*result = vgpu_window_insert(vmf, offset, page_to_pfn(page));
	} else if (range && !range->orphan) {
		kref_get(&range->kref);
		*found = range;
		ret = -EAGAIN;
	} else if (!vgpu_window_insert_blank(vgpu, vmf, offset, result)) {
		ret = -ENODATA;
	}
	mutex_unlock(&vgpu->map_lock);
	return ret;
}

static vm_fault_t vgpu_window_fault(struct vm_fault *vmf)
{
	struct vgpu_view *view = vmf->vma->vm_private_data;
	struct vgpu *vgpu = view->vgpu;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	vm_fault_t result = VM_FAULT_SIGBUS;
	int ret = -EAGAIN;

	while (ret == -EAGAIN && !fatal_signal_pending(current)) {
		struct vgpu_range *range = NULL;

		ret = vgpu_window_fault_known(vgpu, vmf, offset, &range, &result);
		if (range) {
			ret = vgpu_range_fault(range, vmf, offset, &result);
			kref_put(&range->kref, vgpu_range_free);
		}
		if (ret == -ENODATA)
			ret = vgpu_blank_prepare(vgpu, offset) ?: -EAGAIN;
		cond_resched();
	}
	return ret == -ENOMEM ? VM_FAULT_OOM : result;
}

static void vgpu_window_vma_open(struct vm_area_struct *vma)
{
	struct vgpu_view *view = vma->vm_private_data;

	refcount_inc(&view->vmas);
}

static void vgpu_window_vma_close(struct vm_area_struct *vma)
{
	struct vgpu_view *view = vma->vm_private_data;

	if (!refcount_dec_and_test(&view->vmas))
		return;
	vfio_put_device(&view->vgpu->vdev);
	kfree(view);
}

static const struct vm_operations_struct vgpu_window_vm_ops = {
	.open = vgpu_window_vma_open,
	.close = vgpu_window_vma_close,
	.fault = vgpu_window_fault,
};

/* @vma->vm_pgoff is relative to the window already. */
int vgpu_window_mmap(struct vgpu *vgpu, struct vm_area_struct *vma)
{
	u64 start = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 size = vma->vm_end - vma->vm_start;
	struct vgpu_view *view;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (start >= vgpu->window_bytes_open || size > vgpu->window_bytes_open - start)
		return -EINVAL;
	view = kzalloc(sizeof(*view), GFP_KERNEL_ACCOUNT);
	if (!view)
		return -ENOMEM;
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

/* Finds out what the engine wants to show, and keeps hold of its file. */
static int vgpu_range_inspect(struct vgpu_range *range)
{
	struct vm_area_struct *vma;
	int ret = -EACCES;

	mmap_read_lock(current->mm);
	vma = find_vma(current->mm, range->addr);
	if (vma && vma->vm_start <= range->addr &&
	    vma->vm_end >= range->addr + range->size) {
		ret = vgpu_classify(range->vgpu, vma);
		if (ret >= 0) {
			range->kind = ret;
			range->file = get_file(vma->vm_file);
			ret = 0;
		}
	}
	mmap_read_unlock(current->mm);
	return ret;
}

static struct vgpu_range *vgpu_range_new(struct vgpu *vgpu, const struct vgpu_window_range *arg)
{
	struct vgpu_range *range = kzalloc(sizeof(*range), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!range)
		return ERR_PTR(-ENOMEM);
	kref_init(&range->kref);
	range->vgpu = vgpu;
	range->offset = arg->offset;
	range->size = arg->size;
	range->addr = arg->addr;

	ret = vgpu_range_inspect(range);
	if (ret)
		goto err_free;
	if (range->kind == VGPU_RANGE_SHMEM) {
		range->pages = kvcalloc(arg->size >> PAGE_SHIFT, sizeof(*range->pages),
					GFP_KERNEL_ACCOUNT);
		ret = range->pages ? 0 : -ENOMEM;
	}
	if (!ret)
		ret = mmu_interval_notifier_insert(&range->notifier, current->mm, range->addr,
						   range->size, &vgpu_range_notifier_ops);
	if (!ret) {
		range->mm = current->mm;
		mmgrab(range->mm);
		return range;
	}

	fput(range->file);
	kvfree(range->pages);
err_free:
	kfree(range);
	return ERR_PTR(ret);
}

int vgpu_window_publish(struct vgpu *vgpu, const struct vgpu_window_range *arg)
{
	struct vgpu_range *range;
	int ret;

	lockdep_assert_held(&vgpu->lock);
	ret = vgpu_check_window_range(arg, vgpu->window_bytes_open, TASK_SIZE);
	if (ret)
		return ret;
	if (vgpu->window.nranges >= VGPU_WINDOW_MAX_RANGES)
		return -ENOSPC;

	range = vgpu_range_new(vgpu, arg);
	if (IS_ERR(range))
		return PTR_ERR(range);

	mutex_lock(&vgpu->map_lock);
	ret = vgpu_range_insert(vgpu, range);
	mutex_unlock(&vgpu->map_lock);
	if (ret) {
		mmu_interval_notifier_remove(&range->notifier);
		kref_put(&range->kref, vgpu_range_free);
		return ret;
	}
	vgpu_blank_drop(vgpu, arg->offset, arg->size);
	return 0;
}

int vgpu_window_unpublish(struct vgpu *vgpu, const struct vgpu_window_range *arg)
{
	struct vgpu_range *range;

	lockdep_assert_held(&vgpu->lock);
	if (arg->addr)
		return -EINVAL;
	mutex_lock(&vgpu->map_lock);
	range = vgpu_range_find(vgpu, arg->offset);
	mutex_unlock(&vgpu->map_lock);
	if (!range || range->offset != arg->offset || range->size != arg->size)
		return -ENOENT;
	vgpu_range_remove(range);
	return 0;
}

void vgpu_window_unpublish_all(struct vgpu *vgpu)
{
	struct rb_node *node;

	lockdep_assert_held(&vgpu->lock);
	while ((node = rb_first(&vgpu->window.ranges)))
		vgpu_range_remove(rb_entry(node, struct vgpu_range, node));
	if (vgpu->window_bytes_open)
		vgpu_blank_drop(vgpu, 0, vgpu->window_bytes_open);
}

/*
 * For the next VMM. A mapping outlives VFIO's descriptors, so an earlier one may still have one: it sees what it has
 * seen until now no more, and gets SIGBUS.
 */
void vgpu_window_open(struct vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	mutex_lock(&vgpu->map_lock);
	WRITE_ONCE(vgpu->window.opens, vgpu->window.opens + 1);
	mutex_unlock(&vgpu->map_lock);
	/* Blank pages that it has made since it was closed. */
	if (vgpu->window_bytes_open)
		vgpu_blank_drop(vgpu, 0, vgpu->window_bytes_open);
}

/* The engine is gone: device memory goes now, rings stay until the guest resets the device. */
void vgpu_window_keep_system_pages(struct vgpu *vgpu)
{
	struct rb_node *node;

	lockdep_assert_held(&vgpu->lock);
	mutex_lock(&vgpu->map_lock);
	for (node = rb_first(&vgpu->window.ranges); node; node = rb_next(node))
		rb_entry(node, struct vgpu_range, node)->orphan = true;
	mutex_unlock(&vgpu->map_lock);

	/* Only calls under vgpu->lock change the tree. */
	for (node = rb_first(&vgpu->window.ranges); node; node = rb_next(node)) {
		struct vgpu_range *range = rb_entry(node, struct vgpu_range, node);

		if (range->kind == VGPU_RANGE_DEVICE)
			vgpu_window_zap(vgpu, range->offset, range->size);
	}
}

void vgpu_window_init(struct vgpu *vgpu)
{
	vgpu->window.ranges = RB_ROOT;
	xa_init(&vgpu->window.blanks);
}
