/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * VFIO's EDID region (VFIO_REGION_TYPE_GFX, VFIO_REGION_SUBTYPE_GFX_EDID in linux/vfio.h): the
 * VMM's description of the monitor. Registers of 32 bits first, then the EDID itself.
 *
 * The order for a VMM: link down, size, EDID, link up. Writes while the link is up count as well,
 * so that a VMM that does not follow the order is not ignored.
 */
#ifndef VGPU_MODEL_EDID_H
#define VGPU_MODEL_EDID_H

#include "platform.h"
#include "../uapi/linux/vgpu.h"

#define VGPU_EDID_BLOB_OFFSET	1024
#define VGPU_EDID_REGION_SIZE	(VGPU_EDID_BLOB_OFFSET + VGPU_EDID_MAX_SIZE)

/**
 * struct vgpu_edid - the monitor
 * @down: the VMM has turned it off. It is on before the VMM has written anything, because QEMU
 *	writes only if it shows the picture by OpenGL
 * @size: bytes of @blob that count, at most VGPU_EDID_MAX_SIZE
 */
struct vgpu_edid {
	bool down;
	u32 size;
	u8 blob[VGPU_EDID_MAX_SIZE];
};

/* The monitor's state when a VMM opens the device. */
void vgpu_edid_init(struct vgpu_edid *edid);

/* Any offset and length; bytes outside of it read as 0. */
void vgpu_edid_read(const struct vgpu_edid *edid, u64 offset, void *buf, size_t len);

/*
 * True: the guest must be notified. Writes to registers that are read-only, of half a register, of
 * an unknown link state or of a size above VGPU_EDID_MAX_SIZE do nothing.
 */
bool vgpu_edid_write(struct vgpu_edid *edid, u64 offset, const void *buf, size_t len);

/* The part of it that the engine gets. */
void vgpu_edid_describe(const struct vgpu_edid *edid, struct vgpu_display *display);

#endif /* VGPU_MODEL_EDID_H */
