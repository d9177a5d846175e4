// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The picture of a vGPU with a display, and the monitor on which a VMM shows it.
 *
 * The picture is shared memory. The engine maps and writes it, the VMM maps and reads it, and none
 * of it passes through the driver. It has the size of the largest picture, so a mapping never
 * becomes too small; pages are allocated when they are touched. Each VMM that opens the device gets
 * its own file: a mapping outlives the VFIO file, and its owner must not see the picture of the
 * next VM.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/lockdep.h>
#include <linux/shmem_fs.h>

#include "vgpu_private.h"

bool vgpu_display_there(const struct vgpu *vgpu)
{
	return vgpu->params.scanouts;
}

/* The page faults' lock, because mmap() reads them, too. Takes the references. */
static void vgpu_display_replace(struct vgpu *vgpu, struct file *picture, struct file *shown)
{
	mutex_lock(&vgpu->map_lock);
	swap(vgpu->display.picture, picture);
	swap(vgpu->display.shown, shown);
	mutex_unlock(&vgpu->map_lock);
	if (picture)
		fput(picture);
	if (shown)
		fput(shown);
}

/*
 * A file of the same memory that cannot be written. Flags of a mapping are not enough for a VMM:
 * remap_file_pages() makes another mapping of its file, with the flags that the file allows.
 */
static struct file *vgpu_display_read_only(struct file *picture)
{
	struct inode *inode = file_inode(picture);
	struct file *shown;

	ihold(inode);
	shown = alloc_file_pseudo(inode, picture->f_path.mnt, "vgpu-picture", O_RDONLY, picture->f_op);
	if (IS_ERR(shown))
		iput(inode);
	return shown;
}

int vgpu_display_open(struct vgpu *vgpu)
{
	struct file *picture, *shown;

	lockdep_assert_held(&vgpu->lock);
	vgpu_edid_init(&vgpu->display.edid);
	vgpu_display_off(vgpu);
	if (!vgpu_display_there(vgpu))
		return 0;
	picture = vgpu_shmem_file_setup("vgpu-picture", VGPU_PICTURE_SIZE);
	if (IS_ERR(picture))
		return PTR_ERR(picture);
	shown = vgpu_display_read_only(picture);
	if (IS_ERR(shown)) {
		fput(picture);
		return PTR_ERR(shown);
	}
	vgpu_display_replace(vgpu, picture, shown);
	return 0;
}

void vgpu_display_close(struct vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	vgpu_display_off(vgpu);
	vgpu_display_replace(vgpu, NULL, NULL);
}

void vgpu_display_off(struct vgpu *vgpu)
{
	memset(&vgpu->display.scanout, 0, sizeof(vgpu->display.scanout));
}

int vgpu_display_set_scanout(struct vgpu *vgpu, const struct vgpu_scanout *scanout)
{
	lockdep_assert_held(&vgpu->lock);
	if (!vgpu_display_there(vgpu))
		return -ENODEV;
	vgpu->display.scanout = *scanout;
	return 0;
}

/*
 * VFIO_DEVICE_QUERY_GFX_PLANE. Only the type region is offered: QEMU prefers dma-bufs if both are,
 * and then does not start without OpenGL. -ENOTTY: no display.
 */
int vgpu_display_query_plane(struct vgpu *vgpu, struct vfio_device_gfx_plane_info *plane)
{
	const struct vgpu_scanout *scanout = &vgpu->display.scanout;

	lockdep_assert_held(&vgpu->lock);
	if (!vgpu_display_there(vgpu))
		return -ENOTTY;
	if (plane->flags == (VFIO_GFX_PLANE_TYPE_PROBE | VFIO_GFX_PLANE_TYPE_REGION))
		return 0;
	if (plane->flags != VFIO_GFX_PLANE_TYPE_REGION)
		return -EINVAL;

	/* No format: no picture yet; the VMM then shows the firmware's. */
	plane->drm_format = scanout->drm_format;
	plane->drm_format_mod = 0;
	plane->width = scanout->width;
	plane->height = scanout->height;
	plane->stride = scanout->stride;
	plane->size = scanout->stride * scanout->height;
	plane->x_pos = 0;
	plane->y_pos = 0;
	plane->x_hot = 0;
	plane->y_hot = 0;
	plane->region_index = VGPU_REGION_PICTURE;
	return 0;
}

/* @vma->vm_pgoff is relative to the picture already. A VMM gets a read-only mapping. */
int vgpu_display_mmap(struct vgpu *vgpu, struct vm_area_struct *vma, bool writable)
{
	u64 start = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 size = vma->vm_end - vma->vm_start;
	struct file *picture;
	int ret;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (start >= VGPU_PICTURE_SIZE || size > VGPU_PICTURE_SIZE - start)
		return -EINVAL;
	if (!writable) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vgpu_vm_flags_clear(vma, VM_MAYWRITE);
	}

	mutex_lock(&vgpu->map_lock);
	picture = writable ? vgpu->display.picture : vgpu->display.shown;
	if (picture)
		get_file(picture);
	mutex_unlock(&vgpu->map_lock);
	if (!picture)
		return -ENODEV;
	vgpu_vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma_set_file(vma, picture);
	ret = vgpu_mmap_file(picture, vma);
	fput(picture);
	return ret;
}

/* The VMM's side of the monitor. */
void vgpu_display_write_edid(struct vgpu *vgpu, u64 offset, const void *buf, size_t len)
{
	lockdep_assert_held(&vgpu->lock);
	if (vgpu_edid_write(&vgpu->display.edid, offset, buf, len) &&
	    vgpu_regs_display_changed(&vgpu->regs))
		vgpu_irq_config(vgpu);
}
