// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What the guest sees in its window where nothing is published: pages of VGPU_WINDOW_BLANK, each offset
 * its own.
 *
 * Not zeros: a zero in a feedback slot of Venus reads as VK_SUCCESS. Not 0xff bytes: the counter of a
 * timeline semaphore would have reached every value. Not one page for all: what a program writes into a
 * buffer that is gone would be read in a slot of another. Not SIGBUS: that stops the VM.
 * They are made when touched, count as memory of the VMM, and go with the epoch or when something
 * is published there.
 */
#include <linux/xarray.h>

#include "vgpu_private.h"

/* The blank page of @offset, or NULL: then vgpu_blank_prepare() it. */
struct page *vgpu_blank_find(struct vgpu *vgpu, u64 offset)
{
	lockdep_assert_held(&vgpu->map_lock);
	return xa_load(&vgpu->window.blanks, offset >> PAGE_SHIFT);
}

/* Allocates, so not under map_lock. */
int vgpu_blank_prepare(struct vgpu *vgpu, u64 offset)
{
	struct page *page = alloc_page(GFP_KERNEL_ACCOUNT);
	int ret;

	if (!page)
		return -ENOMEM;
	memset64(page_address(page), VGPU_WINDOW_BLANK, PAGE_SIZE / sizeof(u64));
	ret = xa_insert(&vgpu->window.blanks, offset >> PAGE_SHIFT, page, GFP_KERNEL_ACCOUNT);
	if (ret)
		__free_page(page);
	return ret == -EBUSY ? 0 : ret;
}

/* Takes the blank pages of a stretch away from the guest, with all else that is mapped there. */
void vgpu_blank_drop(struct vgpu *vgpu, u64 offset, u64 size)
{
	unsigned long first = offset >> PAGE_SHIFT, last = (offset + size - 1) >> PAGE_SHIFT;
	struct page *page, *next;
	unsigned long index;
	LIST_HEAD(pages);

	mutex_lock(&vgpu->map_lock);
	xa_for_each_range(&vgpu->window.blanks, index, page, first, last) {
		xa_erase(&vgpu->window.blanks, index);
		list_add(&page->lru, &pages);
	}
	mutex_unlock(&vgpu->map_lock);

	unmap_mapping_range(vgpu->inode->i_mapping, offset, size, 1);

	list_for_each_entry_safe(page, next, &pages, lru) {
		list_del(&page->lru);
		__free_page(page);
	}
}
