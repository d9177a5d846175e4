// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * VFIO's log of the guest memory that a vGPU may have written (VFIO_DEVICE_FEATURE_DMA_LOGGING), for VMMs
 * that use iommufd. VFIO's type1 tracks pinned pages by itself.
 *
 * A page counts as written if the driver has written to it since the last report; and if the engine
 * can write to it, or could since then. All is kept, whatever ranges a VMM asks for.
 */
#include <linux/bitops.h>
#include <linux/iova_bitmap.h>
#include <linux/module.h>

#include "vgpu_private.h"

/* Pages that an entry of the log has; its value is their bits. */
#define VGPU_DIRTY_CHUNK	32

/* Pages have been written, from @iova on. Without memory for that, all count as written from now on. */
void vgpu_dirty_note(struct vgpu *vgpu, u64 iova, u64 pages)
{
	struct vgpu_dirty *dirty = &vgpu->mem.dirty;
	u64 page = iova >> PAGE_SHIFT, end = page + pages;

	lockdep_assert_held(&vgpu->mem.lock);
	if (!dirty->on)
		return;
	while (page < end && !dirty->all) {
		unsigned long index = page / VGPU_DIRTY_CHUNK;
		unsigned int from = page % VGPU_DIRTY_CHUNK;
		unsigned int n = min_t(u64, end - page, VGPU_DIRTY_CHUNK - from);
		unsigned long bits = xa_to_value(xa_load(&dirty->pages, index));

		bits |= GENMASK(from + n - 1, from);
		if (xa_is_err(xa_store(&dirty->pages, index, xa_mk_value(bits), GFP_KERNEL_ACCOUNT)))
			dirty->all = true;
		page += n;
	}
}

/* Reports the pages [first, last] of the log and forgets them. */
static void vgpu_dirty_take(struct vgpu_dirty *dirty, u64 first, u64 last, struct iova_bitmap *bitmap)
{
	unsigned long index, bits, taken;
	unsigned int bit;
	void *entry;

	xa_for_each_range(&dirty->pages, index, entry, first / VGPU_DIRTY_CHUNK, last / VGPU_DIRTY_CHUNK) {
		u64 base = (u64)index * VGPU_DIRTY_CHUNK;

		bits = xa_to_value(entry);
		taken = bits & GENMASK(min_t(u64, last - base, VGPU_DIRTY_CHUNK - 1), max(first, base) - base);
		for_each_set_bit(bit, &taken, VGPU_DIRTY_CHUNK)
			iova_bitmap_set(bitmap, (base + bit) << PAGE_SHIFT, PAGE_SIZE);
		bits &= ~taken;
		/* This replaces an entry, so it needs no memory. */
		xa_store(&dirty->pages, index, bits ? xa_mk_value(bits) : NULL, GFP_KERNEL_ACCOUNT);
	}
}

static void vgpu_dirty_report(void *bitmap, u64 iova, u64 size)
{
	iova_bitmap_set(bitmap, iova, size);
}

static int vgpu_log_read_and_clear(struct vfio_device *vdev, unsigned long iova, unsigned long length,
				   struct iova_bitmap *bitmap)
{
	struct vgpu *vgpu = vgpu_from_vdev(vdev);
	struct vgpu_dirty *dirty = &vgpu->mem.dirty;
	u64 last = iova + length - 1;
	int ret = 0;

	mutex_lock(&vgpu->mem.lock);
	if (!dirty->on) {
		ret = -EINVAL;
	} else if (dirty->all) {
		iova_bitmap_set(bitmap, iova, length);
	} else {
		vgpu_dirty_take(dirty, iova >> PAGE_SHIFT, last >> PAGE_SHIFT, bitmap);
		vgpu_mem_each_writable(vgpu, iova, last, vgpu_dirty_report, bitmap);
	}
	mutex_unlock(&vgpu->mem.lock);
	return ret;
}

static int vgpu_log_start(struct vfio_device *vdev, struct rb_root_cached *ranges, u32 nnodes, u64 *page_size)
{
	struct vgpu *vgpu = vgpu_from_vdev(vdev);
	int ret = 0;

	*page_size = PAGE_SIZE;
	mutex_lock(&vgpu->mem.lock);
	if (vgpu->mem.dirty.on)
		ret = -EINVAL;
	vgpu->mem.dirty.on = true;
	mutex_unlock(&vgpu->mem.lock);
	return ret;
}

/* -EINVAL: it was not on. */
int vgpu_dirty_stop(struct vgpu *vgpu)
{
	struct vgpu_dirty *dirty = &vgpu->mem.dirty;
	int ret;

	mutex_lock(&vgpu->mem.lock);
	ret = dirty->on ? 0 : -EINVAL;
	dirty->on = false;
	dirty->all = false;
	xa_destroy(&dirty->pages);
	mutex_unlock(&vgpu->mem.lock);
	return ret;
}

static int vgpu_log_stop(struct vfio_device *vdev)
{
	return vgpu_dirty_stop(vgpu_from_vdev(vdev));
}

const struct vfio_log_ops vgpu_log_ops = {
	.log_start = vgpu_log_start,
	.log_stop = vgpu_log_stop,
	.log_read_and_clear = vgpu_log_read_and_clear,
};

VGPU_IMPORT_IOMMUFD;
