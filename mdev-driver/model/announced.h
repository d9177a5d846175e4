/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * vGPUs of a GPU that are about to be made with other memory than their type's (VGPU_CONTROL_ANNOUNCE).
 * Nothing is reserved for them: who announces keeps the ledger, and the GPU's own one has the last word.
 */
#ifndef VGPU_MODEL_ANNOUNCED_H
#define VGPU_MODEL_ANNOUNCED_H

#include "platform.h"
#include "../uapi/linux/vgpu.h"

/**
 * struct vgpu_announced - one of them
 * @type: index into the GPU's types
 * @vram_bytes: 0: the entry is unused
 * @until: the second from which on it counts no longer
 */
struct vgpu_announced {
	u8 uuid[VGPU_UUID_LEN];
	u32 type;
	u64 vram_bytes;
	u64 until;
};

/* All zero at first. */
struct vgpu_announcements {
	struct vgpu_announced list[VGPU_ANNOUNCE_MAX];
};

/*
 * Takes the place of what was announced for the UUID before; if all entries are in use, of the oldest one.
 * @vram_bytes: 0: forget it. @now: in seconds; never decreases.
 */
void vgpu_announce(struct vgpu_announcements *all, const u8 uuid[VGPU_UUID_LEN], u32 type,
		   u64 vram_bytes, u64 now);

/* What a vGPU is going to have, which is forgotten by this; 0: nothing was announced of this type. */
u64 vgpu_announced_take(struct vgpu_announcements *all, const u8 uuid[VGPU_UUID_LEN], u32 type,
			u64 now);

/* Whether one of the type needs no more than @free. */
bool vgpu_announced_fits(const struct vgpu_announcements *all, u32 type, u64 free, u64 now);

#endif /* VGPU_MODEL_ANNOUNCED_H */
