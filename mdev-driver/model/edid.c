// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * VFIO's EDID region. The registers are those of struct vfio_region_gfx_edid.
 */
#include <linux/vfio.h>

#include "edid.h"

#define REG(field)	offsetof(struct vfio_region_gfx_edid, field)
#define REGS_SIZE	sizeof(struct vfio_region_gfx_edid)

static_assert(REGS_SIZE <= VGPU_EDID_BLOB_OFFSET, "registers end before the EDID");

void vgpu_edid_init(struct vgpu_edid *edid)
{
	memset(edid, 0, sizeof(*edid));
}

static void regs_image(const struct vgpu_edid *edid, u8 *image)
{
	vgpu_put_le32(image + REG(edid_offset), VGPU_EDID_BLOB_OFFSET);
	vgpu_put_le32(image + REG(edid_max_size), VGPU_EDID_MAX_SIZE);
	vgpu_put_le32(image + REG(edid_size), edid->size);
	vgpu_put_le32(image + REG(max_xres), VGPU_PICTURE_MAX_WIDTH);
	vgpu_put_le32(image + REG(max_yres), VGPU_PICTURE_MAX_HEIGHT);
	vgpu_put_le32(image + REG(link_state), edid->down ? VFIO_DEVICE_GFX_LINK_STATE_DOWN :
							   VFIO_DEVICE_GFX_LINK_STATE_UP);
}

void vgpu_edid_read(const struct vgpu_edid *edid, u64 offset, void *buf, size_t len)
{
	u8 image[REGS_SIZE] = { 0 };
	size_t at;

	memset(buf, 0, len);
	if (offset < REGS_SIZE) {
		regs_image(edid, image);
		memcpy(buf, image + offset, vgpu_min_size(len, REGS_SIZE - (size_t)offset));
	}
	if (offset < VGPU_EDID_BLOB_OFFSET || offset >= VGPU_EDID_REGION_SIZE)
		return;
	at = (size_t)(offset - VGPU_EDID_BLOB_OFFSET);
	memcpy(buf, edid->blob + at, vgpu_min_size(len, VGPU_EDID_MAX_SIZE - at));
}

static bool write_link_state(struct vgpu_edid *edid, u32 value)
{
	bool before = edid->down;

	if (value == VFIO_DEVICE_GFX_LINK_STATE_DOWN)
		edid->down = true;
	else if (value == VFIO_DEVICE_GFX_LINK_STATE_UP)
		edid->down = false;
	return edid->down != before;
}

static bool write_size(struct vgpu_edid *edid, u32 value)
{
	bool changed = value <= VGPU_EDID_MAX_SIZE && value != edid->size;

	if (changed)
		edid->size = value;
	return changed && !edid->down;
}

/* One register or more: a VMM may write two neighbours at once. */
static bool write_regs(struct vgpu_edid *edid, u64 offset, const u8 *buf, size_t len)
{
	bool tell = false;

	for (; len >= sizeof(u32); offset += sizeof(u32), buf += sizeof(u32), len -= sizeof(u32)) {
		if (offset == REG(link_state))
			tell |= write_link_state(edid, vgpu_get_le32(buf));
		else if (offset == REG(edid_size))
			tell |= write_size(edid, vgpu_get_le32(buf));
	}
	return tell;
}

bool vgpu_edid_write(struct vgpu_edid *edid, u64 offset, const void *buf, size_t len)
{
	size_t at;

	if (offset < VGPU_EDID_BLOB_OFFSET)
		return write_regs(edid, offset, buf, len);
	if (offset >= VGPU_EDID_REGION_SIZE)
		return false;
	at = (size_t)(offset - VGPU_EDID_BLOB_OFFSET);
	memcpy(edid->blob + at, buf, vgpu_min_size(len, VGPU_EDID_MAX_SIZE - at));
	return !edid->down && at < edid->size;
}

void vgpu_edid_describe(const struct vgpu_edid *edid, struct vgpu_display *display)
{
	display->state = edid->down ? 0 : VGPU_DISPLAY_CONNECTED;
	display->max_width = VGPU_PICTURE_MAX_WIDTH;
	display->max_height = VGPU_PICTURE_MAX_HEIGHT;
	display->edid_size = edid->size;
	memset(display->edid, 0, sizeof(display->edid));
	memcpy(display->edid, edid->blob, edid->size);
}
