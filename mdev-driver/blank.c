// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The guest's view of its window where nothing is published: pages of VGPU_WINDOW_BLANK, a separate
 * one for each offset.
 *
 * Not zeros: a zero in a feedback slot of Venus reads as VK_SUCCESS. Not 0xff bytes: the counter of
 * a timeline semaphore would have reached every value. Not one page for all: a program's write into
 * a buffer that is gone would be read in a slot of another. Not SIGBUS: that stops the VM. They are
 * made when touched, count as memory of the VMM, and are freed with the epoch or when something is
 * published there. A guest may touch all of its window, so there are VGPU_BLANK_MAX of them at
 * most: then one is taken from another offset, where a new one is made when that is touched again.
 */
#include <linux/xarray.h>

#include "vgpu_private.h"

/* 16 MiB: usually more than programs have mapped when an engine dies. */
#define VGPU_BLANK_MAX	4096

/* The blank page of @offset. NULL: call vgpu_blank_prepare() for it. */
struct page *vgpu_blank_find(struct vgpu *vgpu, u64 offset)
{
	lockdep_assert_held(&vgpu->map_lock);
	return xa_load(&vgpu->window.blanks, offset >> PAGE_SHIFT);
}

/*
 * A page that is not mapped any more, if another one is not allowed; else NULL. In the order of
 * offsets, in a circle.
 */
static struct page *vgpu_blank_recycle(struct vgpu *vgpu)
{
	unsigned long *index = &vgpu->window.blank_next;
	struct page *page = NULL;
	loff_t offset;

	mutex_lock(&vgpu->map_lock);
	if (vgpu->window.nblanks >= VGPU_BLANK_MAX) {
		page = xa_find(&vgpu->window.blanks, index, ULONG_MAX, XA_PRESENT);
		if (!page) {
			*index = 0;
			page = xa_find(&vgpu->window.blanks, index, ULONG_MAX, XA_PRESENT);
		}
		offset = (loff_t)*index << PAGE_SHIFT;
		xa_erase(&vgpu->window.blanks, (*index)++);
		vgpu->window.nblanks--;
	}
	mutex_unlock(&vgpu->map_lock);
	if (page)
		unmap_mapping_range(vgpu->window_inode->i_mapping, offset, PAGE_SIZE, 1);
	return page;
}

/* Allocates, so not under map_lock. */
int vgpu_blank_prepare(struct vgpu *vgpu, u64 offset)
{
	struct page *page = vgpu_blank_recycle(vgpu) ?: alloc_page(GFP_KERNEL_ACCOUNT);
	struct xarray *blanks = &vgpu->window.blanks;
	unsigned long index = offset >> PAGE_SHIFT;
	bool used = false;
	int ret;

	if (!page)
		return -ENOMEM;
	memset64(page_address(page), VGPU_WINDOW_BLANK, PAGE_SIZE / sizeof(u64));

	ret = xa_reserve(blanks, index, GFP_KERNEL_ACCOUNT);
	mutex_lock(&vgpu->map_lock);
	/*
	 * Another thread may have been faster, or have taken the reserved one: the fault looks
	 * again.
	 */
	if (!ret && !xa_load(blanks, index))
		used = !xa_is_err(xa_store(blanks, index, page, GFP_NOWAIT | __GFP_NOWARN));
	vgpu->window.nblanks += used;
	mutex_unlock(&vgpu->map_lock);
	if (!used)
		__free_page(page);
	return ret;
}

/*
 * Takes the blank pages of a range away from the guest, with everything else that is mapped there.
 */
void vgpu_blank_drop(struct vgpu *vgpu, u64 offset, u64 size)
{
	unsigned long first = offset >> PAGE_SHIFT, last = (offset + size - 1) >> PAGE_SHIFT;
	struct page *page, *next;
	unsigned long index;
	LIST_HEAD(pages);

	mutex_lock(&vgpu->map_lock);
	xa_for_each_range(&vgpu->window.blanks, index, page, first, last) {
		xa_erase(&vgpu->window.blanks, index);
		vgpu->window.nblanks--;
		list_add(&page->lru, &pages);
	}
	mutex_unlock(&vgpu->map_lock);

	unmap_mapping_range(vgpu->window_inode->i_mapping, offset, size, 1);

	list_for_each_entry_safe(page, next, &pages, lru) {
		list_del(&page->lru);
		__free_page(page);
		cond_resched();
	}
}

/*
 * Whatever the size of the window is. A fault of an earlier VMM may make a page while the next one
 * opens the device, whose window may be smaller.
 */
void vgpu_blank_drop_all(struct vgpu *vgpu)
{
	vgpu_blank_drop(vgpu, 0, VGPU_WINDOW_MAX_BYTES);
}
