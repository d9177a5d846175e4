// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * An inode, and so an address space, per vGPU. All that the driver maps into a VMM or an engine is
 * linked there, so that one unmap_mapping_range() removes a page from all mappings. VFIO's own
 * files are not usable for this: before 6.10 all of them share one inode.
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

int vgpu_anon_inode_new(struct vgpu *vgpu)
{
	struct inode *inode;
	struct file *file;
	int ret;

	ret = simple_pin_fs(&vgpu_fs_type, &vgpu_fs_mount, &vgpu_fs_users);
	if (ret)
		return ret;

	inode = alloc_anon_inode(vgpu_fs_mount->mnt_sb);
	if (IS_ERR(inode)) {
		ret = PTR_ERR(inode);
		goto err_release;
	}

	ihold(inode);
	file = alloc_file_pseudo(inode, vgpu_fs_mount, "vgpu-window", O_RDWR, &vgpu_window_fops);
	if (IS_ERR(file)) {
		ret = PTR_ERR(file);
		iput(inode);
		goto err_iput;
	}

	vgpu->inode = inode;
	vgpu->window_file = file;
	return 0;

err_iput:
	iput(inode);
err_release:
	simple_release_fs(&vgpu_fs_mount, &vgpu_fs_users);
	return ret;
}

void vgpu_anon_inode_free(struct vgpu *vgpu)
{
	fput(vgpu->window_file);
	iput(vgpu->inode);
	simple_release_fs(&vgpu_fs_mount, &vgpu_fs_users);
}
