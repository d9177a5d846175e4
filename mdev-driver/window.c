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

#include "window_range.h"

#define VGPU_WINDOW_MAX_RANGES	16384

static void vgpu_window_zap(struct vgpu *vgpu, u64 offset, u64 size)
{
	unmap_mapping_range(vgpu->window_inode->i_mapping, offset, size, 1);
}

struct vgpu_range *vgpu_range_find(struct vgpu *vgpu, u64 offset)
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

void vgpu_range_put(struct vgpu_range *range)
{
	kref_put(&range->kref, vgpu_range_free);
}

/* Releases the pinned pages of [first, first + count). They are not mapped any more. */
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

/*
 * For a range that nobody can access any more. Removing a notifier waits for invalidations, which
 * an engine can delay, so no lock may be held.
 */
static void vgpu_range_reap(struct vgpu_range *range)
{
	mmu_interval_notifier_remove(&range->notifier);
	vgpu_range_unpin(range, 0, range->size >> PAGE_SHIFT);
	vgpu_range_put(range);
}

static void vgpu_window_reap_work(struct work_struct *work)
{
	struct vgpu *vgpu = container_of(work, struct vgpu, window.reap_work);
	struct vgpu_range *range, *next;
	LIST_HEAD(ranges);

	mutex_lock(&vgpu->map_lock);
	list_splice_init(&vgpu->window.reaped, &ranges);
	mutex_unlock(&vgpu->map_lock);
	list_for_each_entry_safe(range, next, &ranges, reap)
		vgpu_range_reap(range);
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

	vgpu_window_forget_found(vgpu, range);
	mutex_lock(&vgpu->map_lock);
	range->zapped = true;
	list_add_tail(&range->reap, &vgpu->window.reaped);
	mutex_unlock(&vgpu->map_lock);
	queue_work(system_unbound_wq, &vgpu->window.reap_work);
}

/*
 * The engine's memory changes. Pages without a reference of ours must be removed from the guest
 * when this returns. Pinned ones are removed, too, because the engine has unmapped or replaced
 * them, except at the engine's end. Of a range that was unpublished nothing is left there, and the
 * engine may have something else at that address already.
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
	zap = !range->zapped && (!range->orphan || range->kind == VGPU_RANGE_DEVICE);
	range->leaving += zap;
	mutex_unlock(&vgpu->map_lock);
	if (!zap)
		return true;

	/*
	 * Zapping calls the VMM's notifiers from the engine's, and the engine's may have been called
	 * for any mapping that it has put there, a pin of ours, too. So pins have an address space of
	 * their own. A window of a VMM is in no engine. lockdep has only one class for all notifiers.
	 */
	lockdep_assert_not_held(&vgpu->window_inode->i_mapping->i_mmap_rwsem);
	lockdep_off();
	vgpu_window_zap(vgpu, range->offset + (start - range->addr), end - start);
	lockdep_on();

	/*
	 * No fault has mapped them again: it saw the sequence change, or that they are being
	 * removed.
	 */
	mutex_lock(&vgpu->map_lock);
	vgpu_range_unpin(range, (start - range->addr) >> PAGE_SHIFT, (end - start) >> PAGE_SHIFT);
	range->leaving--;
	mutex_unlock(&vgpu->map_lock);
	return true;
}

static const struct mmu_interval_notifier_ops vgpu_range_notifier_ops = {
	.invalidate = vgpu_range_invalidate,
};

/* Whether a guest may see this kind of mapping; the mapped memory is checked separately. */
static bool vgpu_vma_fit(const struct vm_area_struct *vma)
{
	const unsigned long need = VM_SHARED | VM_READ | VM_WRITE;

	return vma->vm_file && (vma->vm_flags & need) == need &&
	       !is_vm_hugetlb_page((struct vm_area_struct *)vma) &&
	       !userfaultfd_armed((struct vm_area_struct *)vma);
}

static bool vgpu_vma_special(const struct vm_area_struct *vma)
{
	return vma->vm_flags & (VM_PFNMAP | VM_MIXEDMAP);
}

/* The kind of memory of an engine's VMA, or -EACCES for memory that no guest may see. */
static int vgpu_classify(struct vgpu *vgpu, struct vm_area_struct *vma)
{
	struct super_block *sb;

	if (!vgpu_vma_fit(vma))
		return -EACCES;
	sb = file_inode(vma->vm_file)->i_sb;
	/* memfds are on the kernel's own tmpfs mount, which has no paths. */
	if (sb->s_magic == TMPFS_MAGIC && (sb->s_flags & SB_KERNMOUNT))
		return vgpu_vma_special(vma) ? VGPU_RANGE_DEVICE : VGPU_RANGE_SHMEM;
	if (sb->s_magic == DMA_BUF_MAGIC || vgpu_gpu_owns_file(vgpu->gpu, vma->vm_file))
		return VGPU_RANGE_DEVICE;
	return -EACCES;
}

/* The kind of the file was checked when it was published, and the range holds the file. */
struct vm_area_struct *vgpu_range_vma(struct vgpu_range *range, struct mm_struct *mm,
				      unsigned long addr, unsigned long size)
{
	struct vm_area_struct *vma = find_vma(mm, addr);

	if (!vma || vma->vm_start > addr || vma->vm_end < addr + size)
		return NULL;
	if (vma->vm_file != range->file || !vgpu_vma_fit(vma))
		return NULL;
	if (range->kind == VGPU_RANGE_SHMEM && vgpu_vma_special(vma))
		return NULL;
	return vma;
}

/* Determines the memory that the engine wants to show, and takes a reference to its file. */
static int vgpu_range_inspect(struct vgpu_range *range)
{
	struct vm_area_struct *vma;
	int ret = -EACCES;

	if (mmap_read_lock_killable(current->mm))
		return -EINTR;
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

/*
 * Makes a range of the caller's memory at @arg->addr; vgpu_window_publish() then shows it. Waits for the caller's mmap_lock,
 * so no lock may be held.
 */
struct vgpu_range *vgpu_range_new(struct vgpu *vgpu, const struct vgpu_window_range *arg)
{
	struct vgpu_range *range;
	int ret;

	ret = vgpu_check_window_range(arg, READ_ONCE(vgpu->window_bytes_open), TASK_SIZE);
	if (ret)
		return ERR_PTR(ret);
	range = kzalloc(sizeof(*range), GFP_KERNEL_ACCOUNT);
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

/* Of a range that was not published. */
void vgpu_range_discard(struct vgpu_range *range)
{
	vgpu_range_reap(range);
}

/* @range is the window's if this returns 0, and else the caller's. */
int vgpu_window_publish(struct vgpu *vgpu, struct vgpu_range *range)
{
	u64 window = vgpu->window_bytes_open;
	int ret;

	lockdep_assert_held(&vgpu->lock);
	/* Another VM's window may be smaller than the one that it was made for. */
	if (range->offset >= window || range->size > window - range->offset)
		return -EINVAL;
	if (vgpu->window.nranges >= VGPU_WINDOW_MAX_RANGES)
		return -ENOSPC;
	mutex_lock(&vgpu->map_lock);
	ret = vgpu_range_insert(vgpu, range);
	mutex_unlock(&vgpu->map_lock);
	if (!ret)
		vgpu_blank_drop(vgpu, range->offset, range->size);
	return ret;
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
	vgpu_blank_drop_all(vgpu);
}

/*
 * For the next VMM. A mapping outlives VFIO's descriptors, so an earlier VMM may still have one:
 * its old pages are removed, and it gets SIGBUS.
 */
void vgpu_window_open(struct vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	mutex_lock(&vgpu->map_lock);
	WRITE_ONCE(vgpu->window.opens, vgpu->window.opens + 1);
	mutex_unlock(&vgpu->map_lock);
	/* Blank pages that it has made since it was closed. */
	vgpu_blank_drop_all(vgpu);
}

/*
 * The engine is gone: device memory is removed now, rings stay until the guest resets the device.
 */
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
	mutex_init(&vgpu->window.table_lock);
	xa_init(&vgpu->window.blanks);
	INIT_LIST_HEAD(&vgpu->window.found);
	INIT_LIST_HEAD(&vgpu->window.reaped);
	INIT_WORK(&vgpu->window.reap_work, vgpu_window_reap_work);
}

/* No VMM has the device open any more. */
void vgpu_window_fini(struct vgpu *vgpu)
{
	vgpu_window_forget_found(vgpu, NULL);
	flush_work(&vgpu->window.reap_work);
}
