// SPDX-License-Identifier: GPL-2.0 OR MIT
/* vGPUs that are about to be made with other memory than their type's. */
#include "announced.h"

static bool vgpu_announced_counts(const struct vgpu_announced *entry, u64 now)
{
	return entry->vram_bytes && now < entry->until;
}

void vgpu_announce(struct vgpu_announcements *all, const u8 uuid[VGPU_UUID_LEN], u32 type,
		   u64 vram_bytes, u64 now)
{
	struct vgpu_announced *entry = &all->list[0];
	u32 i;

	for (i = 0; i < VGPU_ANNOUNCE_MAX; i++) {
		struct vgpu_announced *other = &all->list[i];

		if (!memcmp(other->uuid, uuid, VGPU_UUID_LEN)) {
			entry = other;
			break;
		}
		if (!vgpu_announced_counts(other, now))
			other->until = 0;
		if (other->until < entry->until)
			entry = other;
	}
	/* One that is only forgotten must not displace another. */
	if (!vram_bytes && i == VGPU_ANNOUNCE_MAX)
		return;
	memcpy(entry->uuid, uuid, VGPU_UUID_LEN);
	entry->type = type;
	entry->vram_bytes = vram_bytes;
	entry->until = vram_bytes ? now + VGPU_ANNOUNCE_SECONDS : 0;
}

u64 vgpu_announced_take(struct vgpu_announcements *all, const u8 uuid[VGPU_UUID_LEN], u32 type,
			u64 now)
{
	u64 bytes;
	u32 i;

	for (i = 0; i < VGPU_ANNOUNCE_MAX; i++) {
		struct vgpu_announced *entry = &all->list[i];

		if (memcmp(entry->uuid, uuid, VGPU_UUID_LEN) || entry->type != type)
			continue;
		bytes = vgpu_announced_counts(entry, now) ? entry->vram_bytes : 0;
		entry->vram_bytes = 0;
		return bytes;
	}
	return 0;
}

bool vgpu_announced_fits(const struct vgpu_announcements *all, u32 type, u64 free, u64 now)
{
	u32 i;

	for (i = 0; i < VGPU_ANNOUNCE_MAX; i++) {
		const struct vgpu_announced *entry = &all->list[i];

		if (entry->type == type && vgpu_announced_counts(entry, now) &&
		    entry->vram_bytes <= free)
			return true;
	}
	return false;
}
