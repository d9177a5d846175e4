// SPDX-License-Identifier: GPL-2.0 OR MIT
/* /dev/vgpu-control: which GPUs are shared, and with which types (uapi/linux/vgpu.h). */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "vgpu_private.h"

static struct vgpu_type_desc *vgpu_control_copy_types(const struct vgpu_control_gpu *arg)
{
	struct vgpu_type_desc *descs;

	return memdup_user(u64_to_user_ptr(arg->types), arg->ntypes * sizeof(*descs));
}

static long vgpu_control_gpu(void __user *user,
			     int (*act)(const struct vgpu_control_gpu *arg,
					const struct vgpu_type_desc *descs))
{
	struct vgpu_type_desc *descs;
	struct vgpu_control_gpu arg;
	int ret;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	ret = vgpu_check_gpu(&arg);
	if (ret)
		return ret;
	descs = vgpu_control_copy_types(&arg);
	if (IS_ERR(descs))
		return PTR_ERR(descs);
	ret = vgpu_check_types(descs, arg.ntypes);
	if (!ret)
		ret = act(&arg, descs);
	kfree(descs);
	return ret;
}

static long vgpu_control_remove(void __user *user)
{
	struct vgpu_control_remove arg;
	int ret;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	ret = vgpu_check_remove(&arg);
	return ret ?: vgpu_gpu_remove(arg.gpu);
}

static long vgpu_control_drain(void __user *user)
{
	struct vgpu_control_drain arg;
	int ret;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	ret = vgpu_check_drain(&arg);
	return ret ?: vgpu_gpu_drain(arg.gpu, arg.flags & VGPU_DRAIN_ON);
}

static long vgpu_control_announce(void __user *user)
{
	struct vgpu_control_announce arg;
	int ret;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	ret = vgpu_check_announce(&arg);
	return ret ?: vgpu_gpu_announce(&arg);
}

static long vgpu_control_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case VGPU_CONTROL_ADD_GPU:
		return vgpu_control_gpu(user, vgpu_gpu_add);
	case VGPU_CONTROL_SET_TYPES:
		return vgpu_control_gpu(user, vgpu_gpu_set_types);
	case VGPU_CONTROL_REMOVE_GPU:
		return vgpu_control_remove(user);
	case VGPU_CONTROL_DRAIN_GPU:
		return vgpu_control_drain(user);
	case VGPU_CONTROL_ANNOUNCE:
		return vgpu_control_announce(user);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations vgpu_control_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = vgpu_control_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice vgpu_control_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "vgpu-control",
	.fops = &vgpu_control_fops,
	.mode = 0600,
};

int vgpu_control_init(void)
{
	return misc_register(&vgpu_control_device);
}

void vgpu_control_exit(void)
{
	misc_deregister(&vgpu_control_device);
}
