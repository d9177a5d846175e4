// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The host-visible window: memory of the engine, faulted straight into the guest.
 *
 * A published range is only a promise. Its pages are looked up when the guest touches them, and
 * entered in the range's table. An MMU interval notifier takes out of the table, and out of the
 * guest, what changes in the engine:
 *
 *   - shared memory (memfd) is pinned, and kept when the engine dies, until the guest resets the
 *     device, so that rings stay readable;
 *   - of device memory (dma-buf, DRM) the PTEs of the engine are followed. What the GPU's driver moves
 *     or recycles is gone from the guest before it is gone from the engine. The file is held, and
 *     with it the memory, only while the engine lives.
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

/*
 * Of look-ups and of reaping, an item of each for every vGPU. Not vgpu->work: an engine can hold up
 * both, and a reset must not wait for that. A look-up holds its vGPU, so that nobody who closes or
 * removes one waits for it.
 */
static struct workqueue_struct *vgpu_window_wq;

static void vgpu_window_zap(struct vgpu *vgpu, u64 offset, u64 size)
{
	unmap_mapping_range(vgpu->window_inode->i_mapping, offset, size, 1);
}

/* The first published range that has some of [@offset, @last], or NULL. */
static struct vgpu_range *vgpu_range_first(struct vgpu *vgpu, u64 offset, u64 last)
{
	struct interval_tree_node *node = interval_tree_iter_first(&vgpu->window.ranges, offset, last);

	return node ? container_of(node, struct vgpu_range, node) : NULL;
}

struct vgpu_range *vgpu_range_find(struct vgpu *vgpu, u64 offset)
{
	lockdep_assert_held(&vgpu->map_lock);
	return vgpu_range_first(vgpu, offset, offset);
}

static int vgpu_range_insert(struct vgpu *vgpu, struct vgpu_range *range)
{
	lockdep_assert_held(&vgpu->map_lock);
	range->node.start = range->offset;
	range->node.last = range->offset + range->size - 1;
	if (vgpu_range_first(vgpu, range->node.start, range->node.last))
		return -EEXIST;
	interval_tree_insert(&range->node, &vgpu->window.ranges);
	vgpu->window.nranges++;
	vgpu->window.published_bytes += range->size;
	return 0;
}

static void vgpu_range_advance(struct vgpu_range *range, enum vgpu_range_phase phase)
{
	lockdep_assert_held(&range->vgpu->map_lock);
	WRITE_ONCE(range->phase, max(range->phase, phase));
}

static u64 vgpu_range_pieces(const struct vgpu_range *range)
{
	u64 last = range->offset + range->size - 1;

	return (last >> PMD_SHIFT) - (range->offset >> PMD_SHIFT) + 1;
}

static void vgpu_range_free(struct kref *kref)
{
	struct vgpu_range *range = container_of(kref, struct vgpu_range, kref);
	u64 i;

	for (i = 0; i < vgpu_range_pieces(range); i++)
		kfree(range->table[i]);
	kvfree(range->table);
	mmdrop(range->mm);
	fput(range->file);
	kfree(range);
}

void vgpu_range_put(struct vgpu_range *range)
{
	kref_put(&range->kref, vgpu_range_free);
}

int vgpu_range_prepare(struct vgpu_range *range, u64 offset)
{
	unsigned long **slot = vgpu_range_piece(range, offset), *piece;
	u64 size = vgpu_range_piece_end(range, offset) - vgpu_range_piece_start(range, offset);

	if (READ_ONCE(*slot))
		return 0;
	piece = kcalloc(size >> PAGE_SHIFT, sizeof(*piece), GFP_KERNEL_ACCOUNT);
	if (!piece)
		return -ENOMEM;
	if (cmpxchg(slot, NULL, piece))
		kfree(piece);
	return 0;
}

/*
 * Takes what the table says of [@start, @end) back. Pinned pages are only marked, because the guest
 * may still have them: a guest that polls its ring faults between the zap and the unpinning, and must
 * not get that page again. One piece at a time, because faults of all other pages wait meanwhile.
 */
static void vgpu_range_forget(struct vgpu_range *range, u64 start, u64 end)
{
	u64 at, next;

	for (at = start; at < end; at = next) {
		unsigned long *entry = vgpu_range_entry(range, at), *last;

		next = min(vgpu_range_piece_end(range, at), end);
		if (!entry)
			continue;
		mutex_lock(&range->vgpu->map_lock);
		for (last = entry + ((next - at) >> PAGE_SHIFT); entry < last; entry++)
			if (range->kind == VGPU_RANGE_SHMEM && *entry & VGPU_ENTRY_PRESENT)
				*entry |= VGPU_ENTRY_LEAVING;
			else
				*entry = 0;
		mutex_unlock(&range->vgpu->map_lock);
	}
}

/* Unpins the marked pages of [@start, @end), which are not mapped any more. */
static void vgpu_range_unpin(struct vgpu_range *range, u64 start, u64 end)
{
	u64 at, next;

	for (at = start; at < end && range->kind == VGPU_RANGE_SHMEM; at = next) {
		unsigned long *entry = vgpu_range_entry(range, at), *last;

		next = min(vgpu_range_piece_end(range, at), end);
		if (!entry)
			continue;
		mutex_lock(&range->vgpu->map_lock);
		for (last = entry + ((next - at) >> PAGE_SHIFT); entry < last; entry++) {
			if (!(*entry & VGPU_ENTRY_LEAVING))
				continue;
			unpin_user_page(pfn_to_page(vgpu_entry_pfn(*entry)));
			*entry = 0;
		}
		mutex_unlock(&range->vgpu->map_lock);
		cond_resched();
	}
}

/*
 * For a range that nobody can access, any more or yet. Removing a notifier waits for invalidations, which
 * an engine can delay, so no lock may be held.
 */
void vgpu_range_reap(struct vgpu_range *range)
{
	mmu_interval_notifier_remove(&range->notifier);
	vgpu_range_forget(range, range->offset, range->offset + range->size);
	vgpu_range_unpin(range, range->offset, range->offset + range->size);
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
	vgpu_range_advance(range, VGPU_RANGE_DEAD);
	interval_tree_remove(&range->node, &vgpu->window.ranges);
	vgpu->window.nranges--;
	vgpu->window.published_bytes -= range->size;
	mutex_unlock(&vgpu->map_lock);
	wake_up_all(&vgpu->window.look_up_wait);

	vgpu_window_zap(vgpu, range->offset, range->size);

	mutex_lock(&vgpu->map_lock);
	vgpu_range_advance(range, VGPU_RANGE_ZAPPED);
	list_add_tail(&range->reap, &vgpu->window.reaped);
	mutex_unlock(&vgpu->map_lock);
	queue_work(vgpu_window_wq, &vgpu->window.reap_work);
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
	u64 start = range->offset + (max(event->start, range->addr) - range->addr);
	u64 end = range->offset + min_t(u64, event->end - range->addr, range->size);
	struct vgpu *vgpu = range->vgpu;
	bool zap;

	if (!mmu_notifier_range_blockable(event))
		return false;

	mutex_lock(&vgpu->map_lock);
	mmu_interval_set_seq(notifier, seq);
	if (event->event == MMU_NOTIFY_RELEASE)
		vgpu_range_advance(range, VGPU_RANGE_ORPHAN);
	zap = range->phase != VGPU_RANGE_ZAPPED &&
	      (range->phase != VGPU_RANGE_ORPHAN || range->kind == VGPU_RANGE_DEVICE);
	mutex_unlock(&vgpu->map_lock);
	if (event->event == MMU_NOTIFY_RELEASE)
		wake_up_all(&vgpu->window.look_up_wait);
	if (!zap)
		return true;

	/* Nothing is entered again meanwhile: a look-up sees the sequence change. */
	vgpu_range_forget(range, start, end);

	/*
	 * Zapping calls the VMM's notifiers from the engine's, and the engine's may have been called
	 * for any mapping that it has put there, a pin of ours, too. So pins have an address space of
	 * their own. A window of a VMM is in no engine. lockdep has only one class for all notifiers.
	 */
	lockdep_assert_not_held(&vgpu->window_inode->i_mapping->i_mmap_rwsem);
	lockdep_off();
	vgpu_window_zap(vgpu, start, end - start);
	lockdep_on();

	vgpu_range_unpin(range, start, end);
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
struct vm_area_struct *vgpu_range_vma(struct vgpu_range *range, unsigned long addr)
{
	struct vm_area_struct *vma = find_vma(range->mm, addr);

	if (!vma || vma->vm_start > addr)
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
	range->table = kvcalloc(vgpu_range_pieces(range), sizeof(*range->table), GFP_KERNEL_ACCOUNT);
	ret = -ENOMEM;
	if (!range->table)
		goto err_file;
	range->mm = current->mm;
	mmgrab(range->mm);
	ret = mmu_interval_notifier_insert(&range->notifier, range->mm, range->addr, range->size,
					   &vgpu_range_notifier_ops);
	if (ret)
		goto err_mm;
	return range;

err_mm:
	mmdrop(range->mm);
	kvfree(range->table);
err_file:
	fput(range->file);
err_free:
	kfree(range);
	return ERR_PTR(ret);
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
	struct vgpu_range *range;

	lockdep_assert_held(&vgpu->lock);
	while ((range = vgpu_range_first(vgpu, 0, ULONG_MAX)))
		vgpu_range_remove(range);
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
 * The engine is gone. Device memory is removed and given back now: a guest may never reset the device,
 * and the GPU's memory is others', too. Rings stay until then.
 */
void vgpu_window_keep_system_pages(struct vgpu *vgpu)
{
	struct vgpu_range *range, *next;

	lockdep_assert_held(&vgpu->lock);
	/* Only calls under vgpu->lock change the tree. */
	for (range = vgpu_range_first(vgpu, 0, ULONG_MAX); range; range = next) {
		next = vgpu_range_first(vgpu, range->node.last + 1, ULONG_MAX);
		if (range->kind == VGPU_RANGE_DEVICE) {
			vgpu_range_remove(range);
			continue;
		}
		mutex_lock(&vgpu->map_lock);
		vgpu_range_advance(range, VGPU_RANGE_ORPHAN);
		mutex_unlock(&vgpu->map_lock);
	}
	wake_up_all(&vgpu->window.look_up_wait);
}

void vgpu_window_look_up(struct vgpu *vgpu)
{
	get_device(&vgpu->vdev.device);
	if (!queue_work(vgpu_window_wq, &vgpu->window.look_up_work))
		vfio_put_device(&vgpu->vdev);
}

void vgpu_window_init(struct vgpu *vgpu)
{
	vgpu->window.ranges = RB_ROOT_CACHED;
	mutex_init(&vgpu->window.table_lock);
	xa_init(&vgpu->window.blanks);
	INIT_LIST_HEAD(&vgpu->window.look_ups);
	init_waitqueue_head(&vgpu->window.look_up_wait);
	INIT_WORK(&vgpu->window.look_up_work, vgpu_window_look_up_work);
	INIT_LIST_HEAD(&vgpu->window.reaped);
	INIT_WORK(&vgpu->window.reap_work, vgpu_window_reap_work);
}

/* No VMM has the device open any more. */
void vgpu_window_fini(struct vgpu *vgpu)
{
	flush_work(&vgpu->window.reap_work);
}

int vgpu_windows_init(void)
{
	vgpu_window_wq = alloc_workqueue("vgpu-window", WQ_UNBOUND | WQ_FREEZABLE, WQ_MAX_ACTIVE);
	return vgpu_window_wq ? 0 : -ENOMEM;
}

void vgpu_windows_exit(void)
{
	destroy_workqueue(vgpu_window_wq);
}
