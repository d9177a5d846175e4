// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Looks up pages of the window in the engine's address space, for faults that do not find them in
 * their range's table.
 *
 * The engine or its GPU can make that take long, so each vGPU has a worker for it, and a fault only
 * waits. A worker has no signals: a GPU's driver says "come again" to every thread that has one
 * pending. There are three answers:
 *
 *   - a page;
 *   - none: there is no mapping, or its fault is SIGBUS;
 *   - again: the fault succeeds without a page (a GPU's driver that is busy, or whose GPU sleeps), or
 *     there is no memory at the moment. Nothing is entered, and the page is looked up again after a
 *     short pause.
 *
 * So a blank page never hides memory that the engine has.
 *
 * A fault inside KVM cannot be given up: it returns with a page, or with an error that stops the VM,
 * and until then the VMM cannot change a memory slot. So there is a limit for what is the engine's own
 * fault: it counts as lost if it keeps its mmap_lock, or has no answer but "again", for as long as a
 * reset would wait for it. While the GPU's driver is at work there is no limit but that driver's own:
 * a program of the host waits for a busy GPU as long.
 */
#include <linux/delay.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>

#include "window_range.h"

#include "trace.h"

#define VGPU_LOOK_UP_PAUSE_US	1000

/*
 * struct vgpu_look_up - a page that a fault waits for; on the fault's stack
 * @due: when it may be looked up (in jiffies); under map_lock
 * @done: its entry says something; written under map_lock
 */
struct vgpu_look_up {
	struct list_head node;
	struct vgpu_range *range;
	u64 offset;
	unsigned long due;
	bool done;
};

static int vgpu_range_follow(struct vgpu_range *range, unsigned long addr, unsigned long *pfn)
{
	struct vgpu_window *window = &range->vgpu->window;
	struct vm_area_struct *vma = vgpu_range_vma(range, addr);
	int ret;

	if (!vma)
		return -EFAULT;
	if (!vgpu_follow_pfn(vma, addr, pfn))
		return 0;
	WRITE_ONCE(window->gpu_at_work, true);
	ret = fixup_user_fault(range->mm, addr, FAULT_FLAG_WRITE | FAULT_FLAG_REMOTE, NULL);
	WRITE_ONCE(window->gpu_at_work, false);
	return ret ?: vgpu_follow_pfn(vma, addr, pfn);
}

static int vgpu_range_pin(struct vgpu_range *range, unsigned long addr, unsigned long *pfn)
{
	struct page *page;
	long n;

	if (!vgpu_range_vma(range, addr))
		return -EFAULT;
	n = vgpu_pin_remote(range->mm, addr, 1, FOLL_WRITE | FOLL_LONGTERM, &page);
	if (n == 1)
		*pfn = page_to_pfn(page);
	return n == 1 ? 0 : n ?: -EAGAIN;
}

/* Enters what was found, unless the engine's memory has changed since. */
static bool vgpu_range_enter(struct vgpu_range *range, u64 offset, unsigned long found,
			     unsigned long seq)
{
	unsigned long *entry = vgpu_range_entry(range, offset);
	bool entered;

	mutex_lock(&range->vgpu->map_lock);
	entered = range->phase < VGPU_RANGE_DEAD && !*entry && !mmu_interval_read_retry(&range->notifier, seq);
	if (entered)
		*entry = found;
	mutex_unlock(&range->vgpu->map_lock);
	return entered;
}

/*
 * Looks up one page, and enters it. 0: its entry says something; -EFAULT: the engine has no memory
 * there; anything else: again. Under the engine's mmap_lock.
 */
static int vgpu_range_look_at(struct vgpu_range *range, u64 offset, unsigned long seq)
{
	unsigned long addr = range->addr + (offset - range->offset), pfn = 0;
	bool shmem = range->kind == VGPU_RANGE_SHMEM;
	int ret;

	if (READ_ONCE(*vgpu_range_entry(range, offset)))
		return 0;
	ret = shmem ? vgpu_range_pin(range, addr, &pfn) : vgpu_range_follow(range, addr, &pfn);
	if (ret)
		return ret;
	if (vgpu_range_enter(range, offset, pfn << VGPU_ENTRY_PFN_SHIFT | VGPU_ENTRY_PRESENT, seq))
		return 0;
	if (shmem)
		unpin_user_page(pfn_to_page(pfn));
	return READ_ONCE(*vgpu_range_entry(range, offset)) ? 0 : -EAGAIN;
}

/*
 * Looks up the page at @offset, then its neighbours. That one of these is missing is not entered:
 * the engine may make it before it is touched.
 */
static void vgpu_range_look_around(struct vgpu_range *range, u64 offset, unsigned long seq)
{
	u64 around = vgpu_range_around(range);
	u64 at = max(round_down(offset, around), range->offset);
	u64 end = min(round_down(offset, around) + around, range->offset + range->size);
	unsigned int found = 0;
	int ret = vgpu_range_look_at(range, offset, seq);

	if (ret == -EFAULT)
		vgpu_range_enter(range, offset, VGPU_ENTRY_NONE, seq);
	for (; at < end && !ret; at += PAGE_SIZE) {
		ret = vgpu_range_look_at(range, at, seq);
		found += !ret;
		if (ret == -EFAULT)
			ret = 0;
	}
	trace_vgpu_window_fault(range->vgpu->minor, offset, found);
}

/*
 * @wait: for the engine's mmap_lock. What the look-up allocates, page tables for example, is charged to
 * the engine, whose memory it is: a worker belongs to nobody.
 */
static void vgpu_range_look_up(struct vgpu_range *range, u64 offset, bool wait)
{
	struct mem_cgroup *memcg, *old;
	unsigned long seq;

	/* The address space ends, and its notifier says so in a moment. */
	if (!mmget_not_zero(range->mm))
		return;
	memcg = get_mem_cgroup_from_mm(range->mm);
	old = set_active_memcg(memcg);
	seq = mmu_interval_read_begin(&range->notifier);
	/* Nobody kills a worker, but a long wait that could be killed does not count as a hung task. */
	if (wait ? !mmap_read_lock_killable(range->mm) : mmap_read_trylock(range->mm)) {
		vgpu_range_look_around(range, offset, seq);
		mmap_read_unlock(range->mm);
	}
	set_active_memcg(old);
	mem_cgroup_put(memcg);
	/* If this is the last reference, the address space ends; that is not the look-up's work. */
	mmput_async(range->mm);
}

static bool vgpu_look_up_over(const struct vgpu_look_up *look_up)
{
	return READ_ONCE(look_up->done) ||
	       READ_ONCE(look_up->range->phase) != VGPU_RANGE_PUBLISHED;
}

/* The first that is due, or NULL. @left: some will be. */
static struct vgpu_look_up *vgpu_look_ups_next(struct vgpu *vgpu, bool *left)
{
	struct vgpu_look_up *look_up;

	lockdep_assert_held(&vgpu->map_lock);
	*left = false;
	list_for_each_entry(look_up, &vgpu->window.look_ups, node) {
		if (vgpu_look_up_over(look_up))
			continue;
		if (time_after_eq(jiffies, look_up->due))
			return look_up;
		*left = true;
	}
	return NULL;
}

/* One look-up may have answered several. */
static void vgpu_look_ups_done(struct vgpu *vgpu)
{
	struct vgpu_look_up *look_up;

	lockdep_assert_held(&vgpu->map_lock);
	list_for_each_entry(look_up, &vgpu->window.look_ups, node)
		if (*vgpu_range_entry(look_up->range, look_up->offset))
			WRITE_ONCE(look_up->done, true);
	wake_up_all(&vgpu->window.look_up_wait);
}

void vgpu_window_look_up_work(struct work_struct *work)
{
	struct vgpu *vgpu = container_of(work, struct vgpu, window.look_up_work);
	struct vgpu_look_up *look_up;
	bool left;

	mutex_lock(&vgpu->map_lock);
	while ((look_up = vgpu_look_ups_next(vgpu, &left)) || left) {
		struct vgpu_range *range;
		u64 offset;

		if (!look_up) {
			mutex_unlock(&vgpu->map_lock);
			usleep_range(VGPU_LOOK_UP_PAUSE_US, 2 * VGPU_LOOK_UP_PAUSE_US);
			mutex_lock(&vgpu->map_lock);
			continue;
		}
		range = look_up->range;
		offset = look_up->offset;
		look_up->due = jiffies + 1;
		kref_get(&range->kref);
		/* From here on the fault may give up, and @look_up is gone. */
		mutex_unlock(&vgpu->map_lock);
		vgpu_range_look_up(range, offset, true);
		mutex_lock(&vgpu->map_lock);
		vgpu_look_ups_done(vgpu);
		mutex_unlock(&vgpu->map_lock);
		vgpu_range_put(range);
		mutex_lock(&vgpu->map_lock);
	}
	mutex_unlock(&vgpu->map_lock);
	vfio_put_device(&vgpu->vdev);
}

/* The engine of @range, if it is still attached, has had its time. */
static void vgpu_range_lose_engine(struct vgpu_range *range)
{
	struct vgpu *vgpu = range->vgpu;

	mutex_lock(&vgpu->lock);
	if (vgpu->engine.mm == range->mm)
		vgpu_device_lose(vgpu, "the engine's memory could not be looked up in time when the guest touched it");
	mutex_unlock(&vgpu->lock);
}

void vgpu_range_await(struct vgpu_range *range, u64 offset)
{
	unsigned long patience = msecs_to_jiffies(vgpu_device_patience_ms());
	struct vgpu_look_up look_up = { .range = range, .offset = offset, .due = jiffies };
	struct vgpu *vgpu = range->vgpu;

	/* Shared memory is usually to be had at once, and signals do not matter to it. */
	if (range->kind == VGPU_RANGE_SHMEM) {
		vgpu_range_look_up(range, offset, false);
		if (READ_ONCE(*vgpu_range_entry(range, offset)))
			return;
	}

	mutex_lock(&vgpu->map_lock);
	list_add_tail(&look_up.node, &vgpu->window.look_ups);
	mutex_unlock(&vgpu->map_lock);
	vgpu_window_look_up(vgpu);

	while (!vgpu_wait_timeout(vgpu->window.look_up_wait, vgpu_look_up_over(&look_up), 0, patience))
		if (!READ_ONCE(vgpu->window.gpu_at_work))
			vgpu_range_lose_engine(range);

	mutex_lock(&vgpu->map_lock);
	list_del(&look_up.node);
	mutex_unlock(&vgpu->map_lock);
}
