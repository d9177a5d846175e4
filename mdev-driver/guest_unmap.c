// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Guest memory that the VM is taking away: nothing of it is pinned until its call has ended.
 *
 * type1 drops its lock and notifies one device after the other, then it checks the range. If
 * something was pinned meanwhile, it starts over, and after ten times it calls BUG(). Two vGPUs of
 * one VM could cause that: each pins while type1 notifies the other. VFIO does not report the end
 * of its call. But the kernel releases a file that a task has dropped by fput() when that task
 * returns to user space, so each struct vgpu_unmap is such a file's, except the spare one, which has a
 * time limit.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "guest_mem.h"

/* Longer than any VMM needs for one call. */
#define VGPU_UNMAP_PATIENCE	HZ

static void vgpu_unmap_end(struct vgpu_mem *mem, struct vgpu_unmap *unmap)
{
	lockdep_assert_held(&mem->lock);
	list_del_init(&unmap->node);
	WRITE_ONCE(mem->unmaps_ended, mem->unmaps_ended + 1);
	wake_up_all(&mem->unmap_wait);
}

static int vgpu_unmap_release(struct inode *inode, struct file *file)
{
	struct vgpu_unmap *unmap = file->private_data;
	struct vgpu *vgpu = unmap->vgpu;

	mutex_lock(&vgpu->mem.lock);
	vgpu_unmap_end(&vgpu->mem, unmap);
	mutex_unlock(&vgpu->mem.lock);
	kfree(unmap);
	vfio_put_device(&vgpu->vdev);
	return 0;
}

static const struct file_operations vgpu_unmap_fops = {
	.owner = THIS_MODULE,
	.release = vgpu_unmap_release,
};

/* The last call for which there was no memory has surely ended. */
static void vgpu_unmap_spare_work(struct work_struct *work)
{
	struct vgpu_mem *mem = container_of(to_delayed_work(work), struct vgpu_mem, spare_work);

	mutex_lock(&mem->lock);
	if (time_after_eq(jiffies, mem->spare_end))
		vgpu_unmap_end(mem, &mem->spare);
	mutex_unlock(&mem->lock);
}

/* One record for all, from the lowest address to the highest: it may refuse too much, but never too little. */
static void vgpu_unmap_use_spare(struct vgpu_mem *mem, u64 iova, u64 last)
{
	struct vgpu_unmap *spare = &mem->spare;

	mutex_lock(&mem->lock);
	if (list_empty(&spare->node)) {
		spare->iova = iova;
		spare->last = last;
		list_add(&spare->node, &mem->unmaps);
	} else {
		spare->iova = min(spare->iova, iova);
		spare->last = max(spare->last, last);
	}
	mem->spare_end = jiffies + VGPU_UNMAP_PATIENCE;
	mod_delayed_work(system_wq, &mem->spare_work, VGPU_UNMAP_PATIENCE);
	mutex_unlock(&mem->lock);
}

/* The caller drops it by fput() when the pages are unpinned. NULL: out of memory, or of files. */
static struct file *vgpu_unmap_new(struct vgpu *vgpu, u64 iova, u64 last)
{
	struct vgpu_unmap *unmap = kzalloc(sizeof(*unmap), GFP_KERNEL);
	struct file *file;

	if (!unmap)
		return NULL;
	file = anon_inode_getfile("[vgpu-unmap]", &vgpu_unmap_fops, unmap, 0);
	if (IS_ERR(file)) {
		kfree(unmap);
		return NULL;
	}
	get_device(&vgpu->vdev.device);
	unmap->vgpu = vgpu;
	unmap->iova = iova;
	unmap->last = last;
	mutex_lock(&vgpu->mem.lock);
	list_add(&unmap->node, &vgpu->mem.unmaps);
	mutex_unlock(&vgpu->mem.lock);
	return file;
}

static bool vgpu_mem_unmapping(const struct vgpu_mem *mem, u64 iova, u64 size)
{
	const struct vgpu_unmap *unmap;

	lockdep_assert_held(&mem->lock);
	list_for_each_entry(unmap, &mem->unmaps, node)
		if (iova <= unmap->last && iova + size - 1 >= unmap->iova)
			return true;
	return false;
}

bool vgpu_mem_may_pin(struct vgpu_mem *mem, u64 iova, u64 size)
{
	long patience = VGPU_UNMAP_PATIENCE;

	if (likely(list_empty(&mem->unmaps)))
		return true;
	while (vgpu_mem_unmapping(mem, iova, size)) {
		unsigned int ended = mem->unmaps_ended;

		if (!patience)
			return false;
		mutex_unlock(&mem->lock);
		/* The condition must not sleep, so it cannot take mem.lock and look at the list. */
		patience = wait_event_timeout(mem->unmap_wait, READ_ONCE(mem->unmaps_ended) != ended,
					      patience);
		mutex_lock(&mem->lock);
	}
	return true;
}

/* Called by VFIO when the VM unmaps; may come at any time, from any thread of the VMM. */
void vgpu_mem_dma_unmap(struct vgpu *vgpu, u64 iova, u64 length)
{
	u64 last = iova + length - 1;
	struct file *unmap = vgpu_unmap_new(vgpu, iova, last);
	struct vgpu_mem *mem = &vgpu->mem;

	if (!unmap)
		vgpu_unmap_use_spare(mem, iova, last);
	mutex_lock(&mem->lock);
	vgpu_cache_unmap(vgpu, iova, last);
	vgpu_pins_unmap(vgpu, iova, last);
	mutex_unlock(&mem->lock);
	if (unmap)
		fput(unmap);
}

void vgpu_unmaps_init(struct vgpu_mem *mem)
{
	INIT_LIST_HEAD(&mem->unmaps);
	INIT_LIST_HEAD(&mem->spare.node);
	INIT_DELAYED_WORK(&mem->spare_work, vgpu_unmap_spare_work);
	init_waitqueue_head(&mem->unmap_wait);
}
