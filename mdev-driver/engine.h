/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Shared by engine.c (the node), engine_calls.c, engine_exchange.c and guest_export.c (its ioctls), and
 * engine_mm.c (the engine's address space).
 */
#ifndef VGPU_ENGINE_H
#define VGPU_ENGINE_H

#include <linux/fs.h>

#include "vgpu_private.h"

/* struct vgpu_engine_file - an open /dev/vgpu/<uuid>; @attached: once for each, under vgpu->lock */
struct vgpu_engine_file {
	struct vgpu *vgpu;
	bool attached;
};

static inline struct vgpu *vgpu_from_file(const struct file *file)
{
	const struct vgpu_engine_file *opened = file->private_data;

	return opened->vgpu;
}

bool vgpu_engine_has_event(struct vgpu *vgpu, const struct file *file);
/* What read() would return now, without waiting. */
void vgpu_engine_take_event(struct vgpu *vgpu, struct vgpu_engine_event *event);

/* Takes vgpu->lock if the caller is the attached engine; else returns the errno with the reason. */
int vgpu_engine_enter(struct file *file);
void vgpu_engine_leave(struct file *file);

/* The epoch of a call's argument is over, or no VM is open. Under vgpu->lock. */
bool vgpu_engine_epoch_over(const struct vgpu *vgpu, u64 epoch);

long vgpu_ioctl_exchange(struct file *file, void __user *user);
bool vgpu_export_offered(void);
long vgpu_ioctl_mem_export(struct file *file, void __user *user);
long vgpu_engine_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

struct vgpu_engine_mm *vgpu_engine_mm_new(struct vgpu *vgpu);
void vgpu_engine_mm_leave(struct vgpu_engine_mm *attached);

#endif /* VGPU_ENGINE_H */
