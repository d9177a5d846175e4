// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The driver's own access to guest memory, for rings and requests: through a small cache of pinned
 * pages.
 */
#include <linux/highmem.h>
#include <linux/iommu.h>
#include <linux/sched/signal.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "guest_mem.h"

/*
 * A task that is being killed cannot pin, and what it unpins stays in its VM's account. If that is the
 * engine in the middle of a request, the guest's ring must not count as broken because of it: a worker
 * does it then.
 */
struct vgpu_pin_work {
	struct work_struct work;
	struct vgpu *vgpu;
	u64 iova;
	int prot;
	struct page *page;
	int ret;
};

static void vgpu_pin_page_work(struct work_struct *work)
{
	struct vgpu_pin_work *pin = container_of(work, struct vgpu_pin_work, work);

	if (pin->page)
		vfio_unpin_pages(&pin->vgpu->vdev, pin->iova, 1);
	else
		pin->ret = vfio_pin_pages(&pin->vgpu->vdev, pin->iova, 1, pin->prot, &pin->page);
}

static void vgpu_pin_by_worker(struct vgpu_pin_work *pin)
{
	INIT_WORK_ONSTACK(&pin->work, vgpu_pin_page_work);
	schedule_work(&pin->work);
	flush_work(&pin->work);
	destroy_work_on_stack(&pin->work);
}

static int vgpu_pin_page(struct vgpu *vgpu, u64 iova, int prot, struct page **page)
{
	struct vgpu_pin_work pin = { .vgpu = vgpu, .iova = iova, .prot = prot };
	int ret = vfio_pin_pages(&vgpu->vdev, iova, 1, prot, page);

	if (ret == 1 || !fatal_signal_pending(current))
		return ret;
	vgpu_pin_by_worker(&pin);
	*page = pin.page;
	return pin.ret;
}

static void vgpu_cache_drop(struct vgpu *vgpu, struct vgpu_cached_page *slot)
{
	struct vgpu_pin_work pin = { .vgpu = vgpu, .iova = slot->iova, .page = slot->page };

	if (slot->page && fatal_signal_pending(current))
		vgpu_pin_by_worker(&pin);
	else if (slot->page)
		vfio_unpin_pages(&vgpu->vdev, slot->iova, 1);
	slot->page = NULL;
}

/*
 * For writing, too, if the VM allows that, because a page that is read is often written next. A
 * guest with its own IOMMU maps requests for reading only.
 */
static bool vgpu_cache_fill(struct vgpu *vgpu, struct vgpu_cached_page *slot, u64 iova, bool write)
{
	int ret;

	slot->writable = true;
	ret = vgpu_pin_page(vgpu, iova, IOMMU_READ | IOMMU_WRITE, &slot->page);
	if (ret == -EPERM && !write) {
		slot->writable = false;
		ret = vgpu_pin_page(vgpu, iova, IOMMU_READ, &slot->page);
	}
	if (ret != 1) {
		slot->page = NULL;
		/* The others mean that the VM has not mapped it, or not for this: EINVAL of type1, ENOENT of iommufd. */
		if (ret != -EINVAL && ret != -ENOENT && ret != -EPERM)
			vgpu->mem.pin_error = ret;
		return false;
	}
	slot->iova = iova;
	return true;
}

/* The place of a page of a ring. So none of them is searched for, and no large request evicts it. */
static struct vgpu_cached_page *vgpu_ring_slot(struct vgpu_mem *mem, u64 iova)
{
	unsigned int i;

	for (i = 0; i < VGPU_RING_PARTS; i++) {
		u64 page = (iova - mem->ring[i]) >> PAGE_SHIFT;

		if (page < VGPU_RING_PART_PAGES)
			return &mem->cache[i * VGPU_RING_PART_PAGES + page];
	}
	return NULL;
}

/* The slot that has the page at @iova, or else the one to be used for it. */
static struct vgpu_cached_page *vgpu_cache_slot(struct vgpu_mem *mem, u64 iova)
{
	struct vgpu_cached_page *victim = vgpu_ring_slot(mem, iova);
	unsigned int i;

	if (victim)
		return victim;
	victim = &mem->cache[VGPU_RING_PAGES];
	for (i = VGPU_RING_PAGES; i < ARRAY_SIZE(mem->cache); i++) {
		struct vgpu_cached_page *slot = &mem->cache[i];

		if (slot->page && slot->iova == iova)
			return slot;
		if (!slot->page || (victim->page && slot->used < victim->used))
			victim = slot;
	}
	return victim;
}

/*
 * The pinned page at @iova, or NULL if the VM has not mapped it for that access. May drop mem.lock
 * and take it again.
 */
static struct page *vgpu_cache_get(struct vgpu *vgpu, u64 iova, bool write)
{
	struct vgpu_mem *mem = &vgpu->mem;
	struct vgpu_cached_page *slot = vgpu_cache_slot(mem, iova);

	if (!slot->page || slot->iova != iova || (write && !slot->writable)) {
		if (!vgpu_mem_may_pin(mem, iova, PAGE_SIZE))
			return NULL;
		/* Again, because the lock may have been dropped. */
		slot = vgpu_cache_slot(mem, iova);
		vgpu_cache_drop(vgpu, slot);
		if (!vgpu_cache_fill(vgpu, slot, iova, write))
			return NULL;
	}
	slot->used = ++mem->clock;
	/* What is used again need not be unpinned. */
	slot->life = mem->life;
	return slot->page;
}

/* The addresses do not change between two resets: the driver has enabled the queues. */
static void vgpu_mem_learn_rings(struct vgpu *vgpu)
{
	struct vgpu_mem *mem = &vgpu->mem;
	u32 q;

	for (q = 0; q < VGPU_NUM_QUEUES; q++) {
		const struct vgpu_vq *vq = &vgpu->regs.vq[q];

		mem->ring[3 * q] = vq->desc & PAGE_MASK;
		mem->ring[3 * q + 1] = vq->avail & PAGE_MASK;
		mem->ring[3 * q + 2] = vq->used & PAGE_MASK;
	}
	mem->ring_known = true;
}

void vgpu_mem_begin(struct vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	mutex_lock(&vgpu->mem.lock);
	vgpu->mem.pin_error = 0;
	if (!vgpu->mem.ring_known && vgpu_regs_driver_ok(&vgpu->regs))
		vgpu_mem_learn_rings(vgpu);
}

void vgpu_mem_end(struct vgpu *vgpu)
{
	mutex_unlock(&vgpu->mem.lock);
}

/*
 * Two bytes at an even address are a ring's index, which the other side reads and writes at the
 * same time: one access, never two halves.
 */
static void vgpu_page_copy(struct page *page, size_t offset, void *buf, size_t len, bool write)
{
	void *at = kmap_local_page(page) + offset;

	if (len == sizeof(u16) && IS_ALIGNED(offset, sizeof(u16))) {
		if (write)
			WRITE_ONCE(*(u16 *)at, get_unaligned((u16 *)buf));
		else
			put_unaligned(READ_ONCE(*(u16 *)at), (u16 *)buf);
	} else if (write) {
		memcpy(at, buf, len);
	} else {
		memcpy(buf, at, len);
	}
	kunmap_local(at);
}

static int vgpu_guest_access(struct vgpu *vgpu, u64 iova, void *buf, size_t len, bool write)
{
	lockdep_assert_held(&vgpu->mem.lock);
	if (!vgpu_is_open(vgpu) || iova + len < iova)
		return -EFAULT;
	while (len) {
		size_t in_page = offset_in_page(iova);
		size_t n = min(len, PAGE_SIZE - in_page);
		struct page *page = vgpu_cache_get(vgpu, iova & PAGE_MASK, write);

		if (!page)
			return -EFAULT;
		vgpu_page_copy(page, in_page, buf, n, write);
		if (write)
			vgpu_dirty_note(vgpu, iova & PAGE_MASK, 1);
		iova += n;
		buf += n;
		len -= n;
	}
	return 0;
}

static int vgpu_guest_read(void *guest, u64 iova, void *buf, size_t len)
{
	return vgpu_guest_access(guest, iova, buf, len, false);
}

static int vgpu_guest_write(void *guest, u64 iova, const void *buf, size_t len)
{
	return vgpu_guest_access(guest, iova, (void *)buf, len, true);
}

const struct vgpu_guest_ops vgpu_guest_ops = {
	.read = vgpu_guest_read,
	.write = vgpu_guest_write,
};

void vgpu_cache_unmap(struct vgpu *vgpu, u64 iova, u64 last)
{
	struct vgpu_mem *mem = &vgpu->mem;
	unsigned int i;

	lockdep_assert_held(&mem->lock);
	for (i = 0; i < ARRAY_SIZE(mem->cache); i++)
		if (mem->cache[i].page && mem->cache[i].iova >= iova && mem->cache[i].iova <= last)
			vgpu_cache_drop(vgpu, &mem->cache[i]);
}

void vgpu_cache_drop_old(struct vgpu *vgpu)
{
	struct vgpu_mem *mem = &vgpu->mem;
	unsigned int i;

	lockdep_assert_held(&mem->lock);
	for (i = 0; i < ARRAY_SIZE(mem->cache); i++)
		if (mem->cache[i].life != mem->life)
			vgpu_cache_drop(vgpu, &mem->cache[i]);
}
