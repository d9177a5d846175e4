// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The address space of an engine. The engine ends with it, even if another process still holds the
 * file.
 *
 * mmu_notifier_unregister() waits for all running notifiers of the machine. Another engine can
 * delay these, and an engine can end thousands of times a second. So nobody waits:
 * mmu_notifier_put() frees the object later, and the next engine has its own.
 */
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "engine.h"

/* @lock: of @vgpu, which is NULL after the engine has left */
struct vgpu_engine_mm {
	struct mmu_notifier notifier;
	spinlock_t lock;
	struct vgpu *vgpu;
	bool gone;
};

static void vgpu_engine_mm_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct vgpu_engine_mm *attached = container_of(notifier, struct vgpu_engine_mm, notifier);

	spin_lock(&attached->lock);
	WRITE_ONCE(attached->gone, true);
	if (attached->vgpu)
		queue_work(system_unbound_wq, &attached->vgpu->look_work);
	spin_unlock(&attached->lock);
}

static void vgpu_engine_mm_free(struct mmu_notifier *notifier)
{
	kfree(container_of(notifier, struct vgpu_engine_mm, notifier));
}

static const struct mmu_notifier_ops vgpu_engine_mm_ops = {
	.release = vgpu_engine_mm_release,
	.free_notifier = vgpu_engine_mm_free,
};

/* Of the calling process. Waits for its mmap_lock. */
struct vgpu_engine_mm *vgpu_engine_mm_new(struct vgpu *vgpu)
{
	struct vgpu_engine_mm *attached = kzalloc(sizeof(*attached), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!attached)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&attached->lock);
	attached->vgpu = vgpu;
	attached->notifier.ops = &vgpu_engine_mm_ops;
	ret = mmu_notifier_register(&attached->notifier, current->mm);
	if (ret) {
		kfree(attached);
		return ERR_PTR(ret);
	}
	return attached;
}

/* Without waiting. The vGPU hears nothing more of it. */
void vgpu_engine_mm_leave(struct vgpu_engine_mm *attached)
{
	spin_lock(&attached->lock);
	attached->vgpu = NULL;
	spin_unlock(&attached->lock);
	mmu_notifier_put(&attached->notifier);
}

bool vgpu_engine_mm_gone(const struct vgpu_engine_mm *attached)
{
	return attached && READ_ONCE(attached->gone);
}
