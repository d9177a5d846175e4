// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The file through which a VMM transfers a saved vGPU: a buffer that grows, and is read or written once. */
#include <linux/anon_inodes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "migration.h"

/*
 * struct vgpu_migration_file
 * @identity: of the vGPU
 * @data, @room: the buffer; @size of it are used
 * @read: how far the VMM has read
 * @complete: nothing more will come; a VMM then gets @error, if there is one
 * @ended: the vGPU has left the state that the file belongs to. Set without the lock: that is held
 *	while a VMM's memory is copied, and such a copy may never end
 */
struct vgpu_migration_file {
	struct mutex lock;
	struct vgpu *vgpu;
	struct vgpu_state_identity identity;
	u8 *data;
	size_t room;
	size_t size;
	size_t read;
	bool complete;
	int error;
	bool ended;
};

/* Room for @more bytes. */
static int vgpu_migration_file_grow(struct vgpu_migration_file *file, size_t more)
{
	size_t room = max_t(size_t, file->room, PAGE_SIZE);
	u8 *data;

	if (more > VGPU_STATE_HEADER_SIZE + VGPU_STATE_BODY_MAX - file->size)
		return -EFBIG;
	while (room < file->size + more)
		room *= 2;
	if (room == file->room)
		return 0;
	data = kvmalloc(room, GFP_KERNEL_ACCOUNT);
	if (!data)
		return -ENOMEM;
	if (file->size)
		memcpy(data, file->data, file->size);
	kvfree(file->data);
	file->data = data;
	file->room = room;
	return 0;
}

static ssize_t vgpu_migration_file_read(struct file *filp, char __user *user, size_t count, loff_t *ppos)
{
	struct vgpu_migration_file *file = filp->private_data;
	ssize_t ret;

	mutex_lock(&file->lock);
	ret = min(count, file->size - file->read);
	if (READ_ONCE(file->ended))
		ret = -ENODEV;
	else if (file->error)
		ret = file->error;
	else if (!ret && count && !file->complete)
		ret = -ENOMSG;
	else if (copy_to_user(user, file->data + file->read, ret))
		ret = -EFAULT;
	else
		file->read += ret;
	mutex_unlock(&file->lock);
	return ret;
}

/* When the header is there: a VMM transfers it before it stops the VM. */
static int vgpu_migration_file_check(const struct vgpu_migration_file *file)
{
	const char *why = vgpu_state_check_header(file->data, &file->identity);

	if (!why)
		return 0;
	vgpu_log(file->vgpu, err, "the saved vGPU can't go on here: %s\n", why);
	return -EINVAL;
}

static ssize_t vgpu_migration_file_write(struct file *filp, const char __user *user, size_t count, loff_t *ppos)
{
	struct vgpu_migration_file *file = filp->private_data;
	size_t before;
	ssize_t ret;

	mutex_lock(&file->lock);
	before = file->size;
	ret = READ_ONCE(file->ended) ? -ENODEV : vgpu_migration_file_grow(file, count);
	if (!ret && copy_from_user(file->data + before, user, count))
		ret = -EFAULT;
	if (!ret) {
		file->size += count;
		if (before < VGPU_STATE_HEADER_SIZE && file->size >= VGPU_STATE_HEADER_SIZE)
			ret = vgpu_migration_file_check(file);
		/* It is not a vGPU's, whatever else comes. */
		if (ret)
			WRITE_ONCE(file->ended, true);
	}
	mutex_unlock(&file->lock);
	return ret ?: count;
}

static long vgpu_migration_file_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	size_t minsz = offsetofend(struct vfio_precopy_info, dirty_bytes);
	struct vgpu_migration_file *file = filp->private_data;
	struct vfio_precopy_info info = {};
	int ret = 0;

	if (cmd != VFIO_MIG_GET_PRECOPY_INFO)
		return -ENOTTY;
	if (copy_from_user(&info, (void __user *)arg, minsz))
		return -EFAULT;
	if (info.argsz < minsz)
		return -EINVAL;
	mutex_lock(&file->lock);
	info.initial_bytes = file->size - file->read;
	info.dirty_bytes = 0;
	if (READ_ONCE(file->ended) || file->complete)
		ret = READ_ONCE(file->ended) ? -ENODEV : -EINVAL;
	mutex_unlock(&file->lock);
	return ret ?: (copy_to_user((void __user *)arg, &info, minsz) ? -EFAULT : 0);
}

static int vgpu_migration_file_release(struct inode *inode, struct file *filp)
{
	struct vgpu_migration_file *file = filp->private_data;

	vfio_put_device(&file->vgpu->vdev);
	kvfree(file->data);
	kfree(file);
	return 0;
}

static const struct file_operations vgpu_saving_fops = {
	.owner = THIS_MODULE,
	.read = vgpu_migration_file_read,
	.unlocked_ioctl = vgpu_migration_file_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.release = vgpu_migration_file_release,
};

static const struct file_operations vgpu_loading_fops = {
	.owner = THIS_MODULE,
	.write = vgpu_migration_file_write,
	.release = vgpu_migration_file_release,
};

struct file *vgpu_migration_file_new(struct vgpu *vgpu, const struct vgpu_state_identity *identity, bool save)
{
	struct vgpu_migration_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	struct file *filp;
	int ret;

	if (!file)
		return ERR_PTR(-ENOMEM);
	mutex_init(&file->lock);
	file->vgpu = vgpu;
	file->identity = *identity;
	ret = save ? vgpu_migration_file_grow(file, VGPU_STATE_HEADER_SIZE) : 0;
	if (!ret && save) {
		vgpu_state_put_header(file->data, identity);
		file->size = VGPU_STATE_HEADER_SIZE;
	}
	filp = ret ? ERR_PTR(ret) : anon_inode_getfile("[vgpu-migration]", save ? &vgpu_saving_fops : &vgpu_loading_fops,
						       file, save ? O_RDONLY : O_WRONLY);
	if (IS_ERR(filp)) {
		kvfree(file->data);
		kfree(file);
		return filp;
	}
	get_device(&vgpu->vdev.device);
	stream_open(filp->f_inode, filp);
	return filp;
}

int vgpu_migration_file_complete(struct file *filp, const u8 *body, size_t size)
{
	struct vgpu_migration_file *file = filp->private_data;
	int ret;

	if (mutex_lock_killable(&file->lock))
		return -EINTR;
	ret = vgpu_migration_file_grow(file, size);
	if (!ret) {
		memcpy(file->data + file->size, body, size);
		file->size += size;
		file->complete = true;
	}
	mutex_unlock(&file->lock);
	return ret;
}

void vgpu_migration_file_fail(struct file *filp, int error)
{
	struct vgpu_migration_file *file = filp->private_data;

	if (mutex_lock_killable(&file->lock))
		return;
	file->complete = true;
	file->error = error;
	mutex_unlock(&file->lock);
}

u8 *vgpu_migration_file_take(struct file *filp, size_t *size)
{
	struct vgpu_migration_file *file = filp->private_data;
	u8 *data = ERR_PTR(-EINVAL);

	if (mutex_lock_killable(&file->lock))
		return ERR_PTR(-EINTR);
	if (!READ_ONCE(file->ended) && file->size >= VGPU_STATE_HEADER_SIZE) {
		data = file->data;
		*size = file->size;
		file->data = NULL;
		WRITE_ONCE(file->ended, true);
	}
	mutex_unlock(&file->lock);
	return data;
}

void vgpu_migration_file_end(struct file *filp)
{
	struct vgpu_migration_file *file = filp->private_data;

	WRITE_ONCE(file->ended, true);
}
