// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The address space of an engine. The engine ends with it, even if another process still holds the
 * file.
 *
 * mmu_notifier_unregister() waits for all running notifiers of the machine. So a work item calls
 * it, and the next engine has its own object.
 */
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "engine.h"

struct vgpu_engine_mm {
	struct mmu_notifier notifier;
	struct vgpu *vgpu;
	struct list_head reap;
	bool gone;
};

static void vgpu_engine_mm_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct vgpu_engine_mm *attached = container_of(notifier, struct vgpu_engine_mm, notifier);

	WRITE_ONCE(attached->gone, true);
	schedule_work(&attached->vgpu->lost_work);
}

static const struct mmu_notifier_ops vgpu_engine_mm_ops = {
	.release = vgpu_engine_mm_release,
};

/* Of the calling process. Waits for its mmap_lock. */
struct vgpu_engine_mm *vgpu_engine_mm_new(struct vgpu *vgpu)
{
	struct vgpu_engine_mm *attached = kzalloc(sizeof(*attached), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!attached)
		return ERR_PTR(-ENOMEM);
	attached->vgpu = vgpu;
	attached->notifier.ops = &vgpu_engine_mm_ops;
	ret = mmu_notifier_register(&attached->notifier, current->mm);
	if (ret) {
		kfree(attached);
		return ERR_PTR(ret);
	}
	return attached;
}

void vgpu_engine_mm_free(struct vgpu_engine_mm *attached)
{
	mmu_notifier_unregister(&attached->notifier, attached->notifier.mm);
	kfree(attached);
}

bool vgpu_engine_mm_gone(const struct vgpu_engine_mm *attached)
{
	return attached && READ_ONCE(attached->gone);
}

static void vgpu_engine_mm_reap_work(struct work_struct *work)
{
	struct vgpu *vgpu = container_of(work, struct vgpu, engine.reap_work);
	struct vgpu_engine_mm *attached, *next;
	LIST_HEAD(list);

	mutex_lock(&vgpu->map_lock);
	list_splice_init(&vgpu->engine.reaped, &list);
	mutex_unlock(&vgpu->map_lock);
	list_for_each_entry_safe(attached, next, &list, reap)
		vgpu_engine_mm_free(attached);
}

/* Without waiting. */
void vgpu_engine_mm_leave(struct vgpu_engine_mm *attached)
{
	struct vgpu *vgpu = attached->vgpu;

	mutex_lock(&vgpu->map_lock);
	list_add_tail(&attached->reap, &vgpu->engine.reaped);
	mutex_unlock(&vgpu->map_lock);
	queue_work(system_unbound_wq, &vgpu->engine.reap_work);
}

void vgpu_engine_mm_init(struct vgpu *vgpu)
{
	INIT_LIST_HEAD(&vgpu->engine.reaped);
	INIT_WORK(&vgpu->engine.reap_work, vgpu_engine_mm_reap_work);
}

/* No engine's file is open any more. */
void vgpu_engine_mm_fini(struct vgpu *vgpu)
{
	flush_work(&vgpu->engine.reap_work);
}
