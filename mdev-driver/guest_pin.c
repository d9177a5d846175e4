// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Guest memory that an engine has pinned (MEM_PIN) and maps, the backing of resources: objects, their
 * faults, and their release by a worker.
 */
#include <linux/iommu.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "guest_mem.h"

/*
 * struct vgpu_mem_span - a range of guest memory in an object
 * @node: its guest addresses; in mem.spans while anything of it may be pinned
 * @first: its first page in the object
 */
struct vgpu_mem_span {
	struct interval_tree_node node;
	struct vgpu_mem_object *object;
	u64 first;
};

/*
 * struct vgpu_mem_object - the result of a MEM_PIN
 * @node: its offsets; in mem.objects, but its place when it is gone is not looked at any more
 * @list: in mem.live or, when it is gone, in mem.dead until all of it is unpinned. Under mem.lock,
 *	like the following
 * @life: mem.life, or the object is gone
 * @filling: MEM_PIN works on it, and frees it if it is gone and in no list
 * @lent: another driver may have it, too, until MEM_UNPIN; counted in mem.lent
 * @offset: where the engine maps it
 * @pages: NULL if the VM has taken the page away, or it is not pinned yet; while the object is in the
 *	tree also under map_lock
 * @next_span, @next_page: what is to be unpinned next
 */
struct vgpu_mem_object {
	struct interval_tree_node node;
	struct list_head list;
	u64 life;
	bool filling;
	bool writable;
	bool lent;
	u64 offset;
	u64 npages;
	struct page **pages;
	u32 next_span;
	u64 next_page;
	u32 nspans;
	struct vgpu_mem_span spans[] __counted_by(nspans);
};

static bool vgpu_mem_gone(const struct vgpu_mem *mem, const struct vgpu_mem_object *object)
{
	return object->life != mem->life;
}

static struct vgpu_mem_object *vgpu_mem_find(struct vgpu *vgpu, u64 offset)
{
	struct interval_tree_node *node;

	lockdep_assert_held(&vgpu->map_lock);
	node = interval_tree_iter_first(&vgpu->mem.objects, offset, offset);
	return node ? container_of(node, struct vgpu_mem_object, node) : NULL;
}

/*
 * The most pages from page @page of an object that one call may pin, and so unpin: it must not cross a
 * multiple of that. iommufd accepts an unpinning of exactly what one call has pinned, less what the VM
 * has unmapped meanwhile.
 */
static u64 vgpu_mem_piece(u64 page)
{
	return VFIO_PIN_PAGES_MAX_ENTRIES - page % VFIO_PIN_PAGES_MAX_ENTRIES;
}

static u64 vgpu_span_pages(const struct vgpu_mem_span *span)
{
	return (span->node.last + 1 - span->node.start) >> PAGE_SHIFT;
}

/* Such a page is out of the engine, but still to be unpinned. */
static bool vgpu_page_is_marked(const struct page *page)
{
	return (unsigned long)page & 1;
}

/*
 * Unpins what is left of pages [first, first + count), which are of one span and begin at @iova: out of
 * the engine already. Returns how many pages, from the first, are dealt with.
 */
static u64 vgpu_mem_unpin_some(struct vgpu *vgpu, struct vgpu_mem_object *object, u64 first, u64 count,
			       u64 iova)
{
	struct page **pages = object->pages + first;
	u64 n = 0;

	lockdep_assert_held(&vgpu->mem.lock);
	count = min(count, vgpu_mem_piece(first));
	while (n < count && !pages[n])
		n++;
	if (n)
		return n;
	while (n < count && pages[n])
		n++;
	vfio_unpin_pages(&vgpu->vdev, iova, n);
	vgpu->mem.pinned_pages -= n;
	if (object->writable)
		vgpu_dirty_note(vgpu, iova, n);
	mutex_lock(&vgpu->map_lock);
	memset(pages, 0, n * sizeof(*pages));
	mutex_unlock(&vgpu->map_lock);
	return n;
}

/*
 * Marks pages by the lowest bit of the pointer, which is free: faults must not find them any more. Some
 * at a time, because eviction of other vGPUs' memory may wait for map_lock.
 */
static void vgpu_mem_mark(struct vgpu *vgpu, struct vgpu_mem_object *object, u64 first, u64 count)
{
	u64 i, n;

	for (; count; first += n, count -= n) {
		n = min_t(u64, count, VFIO_PIN_PAGES_MAX_ENTRIES);
		mutex_lock(&vgpu->map_lock);
		for (i = first; i < first + n; i++)
			if (object->pages[i])
				object->pages[i] = (void *)((unsigned long)object->pages[i] | 1);
		mutex_unlock(&vgpu->map_lock);
		cond_resched();
	}
}

/* Out of the engine, and of whoever has an export. */
static void vgpu_mem_zap(struct vgpu *vgpu, u64 offset, u64 size)
{
	unmap_mapping_range(vgpu->pins_inode->i_mapping, offset, size, 1);
	vgpu_exports_zap(vgpu, offset, size);
}

/*
 * Takes pages [first, first + count) of an object away, which are of one span and begin at @iova: out of
 * the table, out of the engine, then unpinned. Of one that is gone only the last is to be done.
 */
static void vgpu_mem_take_away(struct vgpu *vgpu, struct vgpu_mem_object *object, u64 first,
			       u64 count, u64 iova)
{
	u64 i, n;

	lockdep_assert_held(&vgpu->mem.lock);
	if (!vgpu_mem_gone(&vgpu->mem, object)) {
		vgpu_mem_mark(vgpu, object, first, count);
		vgpu_mem_zap(vgpu, object->offset + (first << PAGE_SHIFT), count << PAGE_SHIFT);
	}
	for (i = 0; i < count; i += n) {
		n = vgpu_mem_unpin_some(vgpu, object, first + i, count - i, iova + (i << PAGE_SHIFT));
		cond_resched();
	}
}

/*
 * Calls @fn for each part of [@iova, @last] that the engine can write, or could and that is still pinned,
 * or could before the VM took it away.
 */
void vgpu_mem_each_writable(struct vgpu *vgpu, u64 iova, u64 last, void (*fn)(void *data, u64 iova, u64 size),
			    void *data)
{
	struct interval_tree_node *node;

	lockdep_assert_held(&vgpu->mem.lock);
	for (node = interval_tree_iter_first(&vgpu->mem.spans, iova, last); node;
	     node = interval_tree_iter_next(node, iova, last)) {
		const struct vgpu_mem_span *span = container_of(node, struct vgpu_mem_span, node);
		u64 from = max_t(u64, iova, node->start), to = min_t(u64, last, node->last);

		if (span->object->writable)
			fn(data, from, to - from + 1);
	}
}

void vgpu_pins_unmap(struct vgpu *vgpu, u64 iova, u64 last)
{
	struct interval_tree_node *node;

	lockdep_assert_held(&vgpu->mem.lock);
	for (node = interval_tree_iter_first(&vgpu->mem.spans, iova, last); node;
	     node = interval_tree_iter_next(node, iova, last)) {
		struct vgpu_mem_span *span = container_of(node, struct vgpu_mem_span, node);
		u64 from = max_t(u64, iova, node->start), to = min_t(u64, last, node->last);

		vgpu_mem_take_away(vgpu, span->object, span->first + ((from - node->start) >> PAGE_SHIFT),
				   (to - from + PAGE_SIZE) >> PAGE_SHIFT, from);
	}
}

/*
 * Unpinning takes long: VFIO's type1 locks the VMM's address space for each page. And a task that is
 * being killed cannot do it at all, see struct vgpu_pin_work. So what was pinned is out of the engine at
 * once, by a new life or by vgpu_mem_retire(), and a worker unpins it.
 */
static void vgpu_mem_release_later(struct vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->mem.lock);
	WRITE_ONCE(vgpu->mem.releasing, true);
	queue_work(vgpu->work, &vgpu->mem.release_work);
}

void vgpu_mem_object_dispose(struct vgpu_mem_object *object)
{
	kvfree(object->pages);
	kvfree(object);
}

/* A piece of a dead object; at last the object, whose memory goes unless MEM_PIN still looks at it. */
static void vgpu_mem_release_some(struct vgpu *vgpu, struct vgpu_mem_object *object)
{
	struct vgpu_mem *mem = &vgpu->mem;

	for (; object->next_span < object->nspans; object->next_span++, object->next_page = 0) {
		struct vgpu_mem_span *span = &object->spans[object->next_span];
		u64 left = vgpu_span_pages(span) - object->next_page;

		/* Nothing of it was pinned yet. */
		if (RB_EMPTY_NODE(&span->node.rb))
			continue;
		if (left) {
			object->next_page += vgpu_mem_unpin_some(vgpu, object, span->first + object->next_page, left,
								 span->node.start + (object->next_page << PAGE_SHIFT));
			return;
		}
		interval_tree_remove(&span->node, &mem->spans);
	}
	list_del_init(&object->list);
	if (!object->filling)
		vgpu_mem_object_dispose(object);
}

/* True: there is more. */
static bool vgpu_mem_release_next(struct vgpu *vgpu)
{
	struct vgpu_mem *mem = &vgpu->mem;
	struct vgpu_mem_object *object;

	lockdep_assert_held(&mem->lock);
	object = list_first_entry_or_null(&mem->dead, struct vgpu_mem_object, list);
	if (object) {
		vgpu_mem_release_some(vgpu, object);
		return true;
	}
	vgpu_cache_drop_old(vgpu);
	WRITE_ONCE(mem->releasing, false);
	return false;
}

static void vgpu_mem_release_work(struct work_struct *work)
{
	struct vgpu *vgpu = container_of(work, struct vgpu, mem.release_work);
	bool more;

	do {
		mutex_lock(&vgpu->mem.lock);
		more = vgpu_mem_release_next(vgpu);
		mutex_unlock(&vgpu->mem.lock);
		cond_resched();
	} while (more);
	mutex_lock(&vgpu->lock);
	vgpu_device_settle(vgpu);
	mutex_unlock(&vgpu->lock);
}

/* Nothing is pinned any more of what was to be released. */
bool vgpu_mem_released(const struct vgpu *vgpu)
{
	return !READ_ONCE(vgpu->mem.releasing);
}

/* For an engine, without locks: its limits count what is still pinned. */
int vgpu_mem_wait_released(struct vgpu *vgpu)
{
	return vgpu_wait_timeout(vgpu->state_wait, vgpu_mem_released(vgpu), TASK_FREEZABLE,
				 MAX_SCHEDULE_TIMEOUT) < 0 ? -EINTR : 0;
}

/* All objects are gone, and out of the engine. The pages of rings and requests may be used again. */
void vgpu_mem_release_all(struct vgpu *vgpu)
{
	struct vgpu_mem *mem = &vgpu->mem;

	mutex_lock(&mem->lock);
	mem->life++;
	mem->ring_known = false;
	list_splice_tail_init(&mem->live, &mem->dead);
	mutex_lock(&vgpu->map_lock);
	mem->objects = RB_ROOT_CACHED;
	mutex_unlock(&vgpu->map_lock);
	if (mem->next_offset != VGPU_MEM_OFFSET_BASE)
		vgpu_mem_zap(vgpu, VGPU_MEM_OFFSET_BASE, mem->next_offset - VGPU_MEM_OFFSET_BASE);
	vgpu_mem_release_later(vgpu);
	mutex_unlock(&mem->lock);
}

/* The same for one object. */
static void vgpu_mem_retire(struct vgpu *vgpu, struct vgpu_mem_object *object)
{
	struct vgpu_mem *mem = &vgpu->mem;

	lockdep_assert_held(&mem->lock);
	mem->lent -= object->lent;
	object->life = 0;
	list_move_tail(&object->list, &mem->dead);
	mutex_lock(&vgpu->map_lock);
	interval_tree_remove(&object->node, &mem->objects);
	mutex_unlock(&vgpu->map_lock);
	vgpu_mem_zap(vgpu, object->offset, object->npages << PAGE_SHIFT);
	vgpu_mem_release_later(vgpu);
}

static void vgpu_mem_fill_blank(struct page *page)
{
	memset(page_address(page), 0xff, PAGE_SIZE);
}

/*
 * Frees the whole epoch, including pages that the engine has written where there was no memory: the
 * next epoch may be another VM's. Remaining mappings see another page from now on.
 */
void vgpu_mem_end_epoch(struct vgpu *vgpu)
{
	struct vgpu_mem *mem = &vgpu->mem;
	bool used = mem->epoch_offset != mem->next_offset;

	lockdep_assert_held(&vgpu->lock);
	mutex_lock(&vgpu->map_lock);
	mem->epoch_offset = mem->next_offset;
	mutex_unlock(&vgpu->map_lock);
	vgpu_mem_release_all(vgpu);
	if (!used)
		return;
	vgpu_mem_fill_blank(mem->blank);
	vgpu_mem_fill_blank(mem->stale);
}

static struct vgpu_mem_object *vgpu_mem_object_alloc(const struct vgpu_mem_pin *arg, u64 npages)
{
	struct vgpu_mem_object *object;

	object = kvzalloc(struct_size(object, spans, arg->nentries), GFP_KERNEL_ACCOUNT);
	if (!object)
		return NULL;
	object->nspans = arg->nentries;
	object->npages = npages;
	object->writable = arg->flags & VGPU_MEM_WRITE;
	INIT_LIST_HEAD(&object->list);
	object->pages = kvcalloc(npages, sizeof(*object->pages), GFP_KERNEL_ACCOUNT);
	if (object->pages)
		return object;
	kvfree(object);
	return NULL;
}

static bool vgpu_mem_too_much(const struct vgpu *vgpu, u64 npages)
{
	u64 limit = READ_ONCE(vgpu->params.vram_bytes) >> PAGE_SHIFT;
	u64 used = READ_ONCE(vgpu->mem.pinned_pages) + READ_ONCE(vgpu->mem.filling_pages);

	return used > limit || npages > limit - used;
}

/*
 * Makes an object for @arg and @entries, which belongs to nobody yet. Without locks: it is as large as
 * the engine wants, within the vGPU's limit.
 */
struct vgpu_mem_object *vgpu_mem_object_new(struct vgpu *vgpu, const struct vgpu_mem_pin *arg,
					    const struct vgpu_mem_entry *entries)
{
	struct vgpu_mem_object *object;
	u64 npages, first = 0;
	u32 i;
	int ret = vgpu_check_mem_entries(entries, arg->nentries, &npages) ?: vgpu_mem_wait_released(vgpu);

	if (ret)
		return ERR_PTR(ret);
	object = vgpu_mem_too_much(vgpu, npages) ? NULL : vgpu_mem_object_alloc(arg, npages);
	if (!object)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < arg->nentries; i++) {
		struct vgpu_mem_span *span = &object->spans[i];

		span->object = object;
		span->first = first;
		span->node.start = entries[i].iova;
		span->node.last = entries[i].iova + entries[i].size - 1;
		RB_CLEAR_NODE(&span->node.rb);
		first += entries[i].size >> PAGE_SHIFT;
	}
	return object;
}

/*
 * Gives the object its place, with nothing pinned yet. If this returns 0, call vgpu_mem_pin() without
 * vgpu->lock: pinning gigabytes under it would block the whole device.
 */
int vgpu_mem_admit(struct vgpu *vgpu, struct vgpu_mem_object *object)
{
	struct vgpu_mem *mem = &vgpu->mem;
	int ret = -ENOMEM;

	lockdep_assert_held(&vgpu->lock);
	if (!vgpu_pci_bus_master(&vgpu->pci))
		return -EFAULT;
	mutex_lock(&mem->lock);
	if (!vgpu_mem_too_much(vgpu, object->npages)) {
		object->filling = true;
		object->life = mem->life;
		object->offset = mem->next_offset;
		mem->next_offset += object->npages << PAGE_SHIFT;
		mem->filling_pages += object->npages;
		list_add_tail(&object->list, &mem->live);
		object->node.start = object->offset;
		object->node.last = mem->next_offset - 1;
		mutex_lock(&vgpu->map_lock);
		interval_tree_insert(&object->node, &mem->objects);
		mutex_unlock(&vgpu->map_lock);
		ret = 0;
	}
	mutex_unlock(&mem->lock);
	return ret;
}

/* Pins @n pages, from page @first of the object. @pages has room for them: no fault may see a page if the pin fails. */
static int vgpu_mem_pin_some(struct vgpu *vgpu, struct vgpu_mem_span *span, u64 first, u64 iova,
			     int n, struct page **pages)
{
	struct vgpu_mem_object *object = span->object;
	int prot = IOMMU_READ | (object->writable ? IOMMU_WRITE : 0), ret = -ESTALE;
	struct vgpu_mem *mem = &vgpu->mem;

	mutex_lock(&mem->lock);
	if (!vgpu_mem_may_pin(mem, iova, (u64)n << PAGE_SHIFT))
		ret = -EFAULT;
	else if (!vgpu_mem_gone(mem, object))
		ret = vfio_pin_pages(&vgpu->vdev, iova, n, prot, pages);
	if (ret == n) {
		if (RB_EMPTY_NODE(&span->node.rb))
			interval_tree_insert(&span->node, &mem->spans);
		mutex_lock(&vgpu->map_lock);
		memcpy(object->pages + first, pages, n * sizeof(*pages));
		mutex_unlock(&vgpu->map_lock);
		mem->pinned_pages += n;
		mem->filling_pages -= n;
		ret = 0;
	} else if (ret >= 0) {
		if (ret)
			vfio_unpin_pages(&vgpu->vdev, iova, ret);
		ret = -EFAULT;
	} else if (ret != -ENOMEM && ret != -ESTALE) {
		ret = -EFAULT;
	}
	mutex_unlock(&mem->lock);
	return ret;
}

/* @done: out, the number of pages pinned, also on failure. */
static int vgpu_mem_pin_all(struct vgpu *vgpu, struct vgpu_mem_object *object, struct page **pages, u64 *done)
{
	u32 i;

	for (i = 0; i < object->nspans; i++) {
		struct vgpu_mem_span *span = &object->spans[i];
		u64 iova = span->node.start, left = vgpu_span_pages(span);

		while (left) {
			int n = min(left, vgpu_mem_piece(*done));
			int ret = vgpu_mem_pin_some(vgpu, span, *done, iova, n, pages);

			if (ret)
				return ret;
			iova += (u64)n << PAGE_SHIFT;
			*done += n;
			left -= n;
			if (fatal_signal_pending(current))
				return -EINTR;
			cond_resched();
		}
	}
	return 0;
}

/*
 * Pins the object's pages, a piece at a time, so that a VM that unmaps memory does not wait long. Frees the object if it fails.
 * ESTALE: the epoch has ended meanwhile.
 */
int vgpu_mem_pin(struct vgpu *vgpu, struct vgpu_mem_object *object, struct vgpu_mem_pin *arg)
{
	struct page **pages = kmalloc_array(VFIO_PIN_PAGES_MAX_ENTRIES, sizeof(*pages), GFP_KERNEL);
	struct vgpu_mem *mem = &vgpu->mem;
	int ret = -ENOMEM;
	u64 done = 0;

	if (pages)
		ret = vgpu_mem_pin_all(vgpu, object, pages, &done);
	kfree(pages);

	mutex_lock(&mem->lock);
	mem->filling_pages -= object->npages - done;
	object->filling = false;
	if (vgpu_mem_gone(mem, object)) {
		/* The worker has finished with it, or will. */
		if (list_empty(&object->list))
			vgpu_mem_object_dispose(object);
		ret = -ESTALE;
	} else if (ret) {
		vgpu_mem_retire(vgpu, object);
	} else {
		arg->size = object->npages << PAGE_SHIFT;
		arg->offset = object->offset;
	}
	mutex_unlock(&mem->lock);
	if (ret)
		vgpu_mem_wait_released(vgpu);
	return ret;
}

/* The object that begins there, unless MEM_PIN still works on it. */
static struct vgpu_mem_object *vgpu_mem_find_pinned(struct vgpu *vgpu, u64 offset)
{
	struct vgpu_mem_object *object;

	lockdep_assert_held(&vgpu->mem.lock);
	mutex_lock(&vgpu->map_lock);
	object = vgpu_mem_find(vgpu, offset);
	mutex_unlock(&vgpu->map_lock);
	return object && object->offset == offset && !object->filling ? object : NULL;
}

/* The caller calls vgpu_mem_wait_released(). */
int vgpu_mem_unpin(struct vgpu *vgpu, u64 offset)
{
	struct vgpu_mem_object *object;

	lockdep_assert_held(&vgpu->lock);
	mutex_lock(&vgpu->mem.lock);
	object = vgpu_mem_find_pinned(vgpu, offset);
	if (object)
		vgpu_mem_retire(vgpu, object);
	mutex_unlock(&vgpu->mem.lock);
	return object ? 0 : -ENOENT;
}

/* A guest that disables bus mastering sees either the loan, or takes the object away before it. */
int vgpu_mem_lend(struct vgpu *vgpu, u64 offset, u64 *npages)
{
	struct vgpu_mem_object *object;
	int ret = 0;

	lockdep_assert_held(&vgpu->lock);
	mutex_lock(&vgpu->mem.lock);
	object = vgpu_mem_find_pinned(vgpu, offset);
	if (!object || !object->writable) {
		ret = -ENOENT;
	} else if (object->lent) {
		ret = -EBUSY;
	} else {
		*npages = object->npages;
		object->lent = true;
		vgpu->mem.lent++;
	}
	mutex_unlock(&vgpu->mem.lock);
	return ret;
}

void vgpu_mem_take_back(struct vgpu *vgpu, u64 offset)
{
	struct vgpu_mem_object *object;

	mutex_lock(&vgpu->mem.lock);
	object = vgpu_mem_find_pinned(vgpu, offset);
	if (object && object->lent) {
		object->lent = false;
		vgpu->mem.lent--;
	}
	mutex_unlock(&vgpu->mem.lock);
}

bool vgpu_mem_is_lent(struct vgpu *vgpu)
{
	bool lent;

	mutex_lock(&vgpu->mem.lock);
	lent = vgpu->mem.lent;
	mutex_unlock(&vgpu->mem.lock);
	return lent;
}

void vgpu_mem_forget_loans(struct vgpu *vgpu)
{
	mutex_lock(&vgpu->mem.lock);
	vgpu->mem.lent = 0;
	mutex_unlock(&vgpu->mem.lock);
}

struct page *vgpu_mem_page(struct vgpu *vgpu, u64 offset, u64 i)
{
	const struct vgpu_mem_object *object = vgpu_mem_find(vgpu, offset);
	struct page *page;

	if (!object || object->offset != offset || i >= object->npages)
		return NULL;
	page = object->pages[i];
	return page && !vgpu_page_is_marked(page) ? page : NULL;
}

struct page *vgpu_mem_get_page(struct vgpu *vgpu, u64 offset, u64 i)
{
	struct page *page;

	mutex_lock(&vgpu->map_lock);
	page = vgpu_mem_page(vgpu, offset, i);
	/* Of memory without pages of the kernel's, a device's, a VMM's mapping is none that could be exported. */
	if (page && pfn_valid(page_to_pfn(page)))
		get_page(page);
	else
		page = NULL;
	mutex_unlock(&vgpu->map_lock);
	return page;
}

static vm_fault_t vgpu_mem_fault(struct vm_fault *vmf)
{
	struct vgpu *vgpu = vmf->vma->vm_private_data;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	struct vgpu_mem_object *object;
	struct page *page = NULL;
	unsigned int noreclaim;
	vm_fault_t ret;

	if (vgpu_prepare_pte(vmf))
		return VM_FAULT_OOM;
	mutex_lock(&vgpu->map_lock);
	object = vgpu_mem_find(vgpu, offset);
	if (object)
		page = object->pages[(offset - object->offset) >> PAGE_SHIFT];
	if (!page || vgpu_page_is_marked(page))
		page = offset < vgpu->mem.epoch_offset ? vgpu->mem.stale : vgpu->mem.blank;
	noreclaim = memalloc_noreclaim_save();
	ret = vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(page));
	memalloc_noreclaim_restore(noreclaim);
	mutex_unlock(&vgpu->map_lock);
	return ret;
}

static const struct vm_operations_struct vgpu_mem_vm_ops = {
	.fault = vgpu_mem_fault,
};

/* The engine's mmap(); its file keeps the vGPU. */
int vgpu_mem_mmap(struct vgpu *vgpu, struct vm_area_struct *vma)
{
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 size = vma->vm_end - vma->vm_start;
	struct vgpu_mem_object *object;
	bool writable = false;
	int ret = -EINVAL;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	mutex_lock(&vgpu->map_lock);
	object = vgpu_mem_find(vgpu, offset);
	if (object && size <= (object->npages << PAGE_SHIFT) - (offset - object->offset)) {
		writable = object->writable;
		ret = (vma->vm_flags & VM_WRITE) && !writable ? -EACCES : 0;
	}
	mutex_unlock(&vgpu->map_lock);
	if (ret)
		return ret;

	/* Not under map_lock, which nests inside the VMA's own. */
	if (!writable)
		vgpu_vm_flags_clear(vma, VM_MAYWRITE);
	vgpu_vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	vma->vm_private_data = vgpu;
	vma->vm_ops = &vgpu_mem_vm_ops;
	return 0;
}

int vgpu_mem_init(struct vgpu *vgpu)
{
	mutex_init(&vgpu->mem.lock);
	vgpu->mem.life = 1;
	vgpu->mem.objects = RB_ROOT_CACHED;
	vgpu->mem.spans = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&vgpu->mem.live);
	INIT_LIST_HEAD(&vgpu->mem.dead);
	INIT_LIST_HEAD(&vgpu->mem.exports);
	INIT_WORK(&vgpu->mem.release_work, vgpu_mem_release_work);
	xa_init(&vgpu->mem.dirty.pages);
	vgpu_unmaps_init(&vgpu->mem);
	vgpu->mem.next_offset = VGPU_MEM_OFFSET_BASE;
	vgpu->mem.epoch_offset = VGPU_MEM_OFFSET_BASE;
	vgpu->mem.blank = alloc_page(GFP_KERNEL_ACCOUNT);
	vgpu->mem.stale = alloc_page(GFP_KERNEL_ACCOUNT);
	if (!vgpu->mem.blank || !vgpu->mem.stale) {
		vgpu_mem_fini(vgpu);
		return -ENOMEM;
	}
	vgpu_mem_fill_blank(vgpu->mem.blank);
	vgpu_mem_fill_blank(vgpu->mem.stale);
	return 0;
}

void vgpu_mem_fini(struct vgpu *vgpu)
{
	cancel_delayed_work_sync(&vgpu->mem.spare_work);
	if (vgpu->mem.blank)
		__free_page(vgpu->mem.blank);
	if (vgpu->mem.stale)
		__free_page(vgpu->mem.stale);
}
