// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Two inodes, and so address spaces, per vGPU: what the driver maps into a VMM, the window, is linked
 * in one, and what it maps into an engine, guest memory, in the other. So one unmap_mapping_range()
 * removes a page from all mappings. VFIO's own files are not usable for this: before 6.10 all of them
 * share one inode.
 *
 * They are two because taking guest memory out of an engine may take pages out of the window in turn
 * (vgpu_range_invalidate()), and the lock of one address space can't be taken twice: a writer that
 * waits for it comes between.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "vgpu_private.h"

#define VGPU_FS_MAGIC	0x76677075	/* "vgpu" */

static int vgpu_fs_init_context(struct fs_context *fc)
{
	return init_pseudo(fc, VGPU_FS_MAGIC) ? 0 : -ENOMEM;
}

/* Mounted only while there are vGPUs: the mount holds the module. */
static struct file_system_type vgpu_fs_type = {
	.name = VGPU_DRIVER_NAME,
	.owner = THIS_MODULE,
	.init_fs_context = vgpu_fs_init_context,
	.kill_sb = kill_anon_super,
};

static struct vfsmount *vgpu_fs_mount;
static int vgpu_fs_users;

static const struct file_operations vgpu_window_fops = { };

static int vgpu_anon_inodes_make(struct vgpu *vgpu)
{
	struct inode *window, *pins;
	struct file *file;

	pins = alloc_anon_inode(vgpu_fs_mount->mnt_sb);
	if (IS_ERR(pins))
		return PTR_ERR(pins);
	window = alloc_anon_inode(vgpu_fs_mount->mnt_sb);
	if (IS_ERR(window)) {
		iput(pins);
		return PTR_ERR(window);
	}
	ihold(window);
	file = alloc_file_pseudo(window, vgpu_fs_mount, "vgpu-window", O_RDWR, &vgpu_window_fops);
	if (IS_ERR(file)) {
		iput(window);
		iput(window);
		iput(pins);
		return PTR_ERR(file);
	}
	vgpu->pins_inode = pins;
	vgpu->window_inode = window;
	vgpu->window_file = file;
	return 0;
}

int vgpu_anon_inodes_new(struct vgpu *vgpu)
{
	int ret;

	ret = simple_pin_fs(&vgpu_fs_type, &vgpu_fs_mount, &vgpu_fs_users);
	if (ret)
		return ret;

	ret = vgpu_anon_inodes_make(vgpu);
	if (ret)
		simple_release_fs(&vgpu_fs_mount, &vgpu_fs_users);
	return ret;
}

void vgpu_anon_inodes_free(struct vgpu *vgpu)
{
	fput(vgpu->window_file);
	iput(vgpu->window_inode);
	iput(vgpu->pins_inode);
	simple_release_fs(&vgpu_fs_mount, &vgpu_fs_users);
}
