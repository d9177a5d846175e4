// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * /dev/vgpu/<uuid>: the engine's side of a vGPU (uapi/linux/vgpu.h). One engine at a time; it is trusted with
 * its own vGPU and nothing else.
 */
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "engine.h"

#include "trace.h"

#define VGPU_MAX_NODES	1024

static unsigned int vgpu_engine_timeout_ms = 30000;
module_param_named(engine_timeout_ms, vgpu_engine_timeout_ms, uint, 0644);
MODULE_PARM_DESC(engine_timeout_ms, "how long opening a vGPU waits for its engine");

static dev_t vgpu_engine_devt;
static struct cdev vgpu_engine_cdev;
/* Minor to vGPU; a node holds no reference, an open file does. */
static DEFINE_IDR(vgpu_engine_idr);
static DEFINE_MUTEX(vgpu_engine_idr_lock);

static char *vgpu_engine_devnode(VGPU_DEVNODE_DEVICE *dev, umode_t *mode)
{
	if (mode)
		*mode = 0600;
	return kasprintf(GFP_KERNEL, "vgpu/%s", dev_name(dev));
}

/* Not "vgpu": the core makes a directory of this name beside that of the attributes. */
static struct class vgpu_engine_class = {
	.name = "vgpu_engine",
	.devnode = vgpu_engine_devnode,
};

/* Process context, and not under engine.wait.lock. */
void vgpu_engine_event(struct vgpu *vgpu, u32 events, u32 queues)
{
	struct vgpu_engine *engine = &vgpu->engine;

	spin_lock_irq(&engine->wait.lock);
	/* Work of an epoch that is over is dropped. */
	if (events & VGPU_EVENT_RESET) {
		engine->events &= ~(VGPU_EVENT_KICK | VGPU_EVENT_SAVE | VGPU_EVENT_LOAD);
		engine->kicked = 0;
	}
	engine->events |= events;
	engine->kicked |= queues;
	wake_up_locked_poll(&engine->wait, EPOLLIN);
	spin_unlock_irq(&engine->wait.lock);
}

/* A doorbell. Not under vgpu->lock in general, so that wait.lock protects the counter, too. */
void vgpu_engine_kick(struct vgpu *vgpu, u32 queue)
{
	struct vgpu_engine *engine = &vgpu->engine;

	trace_vgpu_doorbell(vgpu->minor, queue);
	spin_lock_irq(&engine->wait.lock);
	vgpu->stats.doorbells++;
	engine->events |= VGPU_EVENT_KICK;
	engine->kicked |= BIT(queue);
	wake_up_locked_poll(&engine->wait, EPOLLIN);
	spin_unlock_irq(&engine->wait.lock);
}

static bool vgpu_engine_settled(struct vgpu *vgpu)
{
	enum vgpu_engine_phase engine = READ_ONCE(vgpu->phase.engine);

	return READ_ONCE(vgpu->exit) != VGPU_STAYS || engine == VGPU_ENGINE_IS_FAILED ||
	       vgpu_engine_can_serve(engine);
}

/* For a VMM that opens the device. */
int vgpu_engine_wait_ready(struct vgpu *vgpu)
{
	unsigned long timeout = msecs_to_jiffies(READ_ONCE(vgpu_engine_timeout_ms));
	long left;

	/* VFIO's locks are held, and only threads of the same VMM wait for them. */
	left = vgpu_wait_timeout(vgpu->state_wait, vgpu_engine_settled(vgpu), TASK_FREEZABLE_UNSAFE,
				 timeout);
	if (left < 0)
		return left;
	if (READ_ONCE(vgpu->exit) != VGPU_STAYS)
		return -ENODEV;
	if (READ_ONCE(vgpu->phase.engine) == VGPU_ENGINE_IS_FAILED) {
		vgpu_log(vgpu, err, "can't be opened: its engine failed: %s\n", vgpu->failure);
		return -EIO;
	}
	if (!left) {
		vgpu_log(vgpu, err, "can't be opened: no engine became ready in %u ms; see 'systemctl status vgpu-engine@%s'\n",
			 vgpu_engine_timeout_ms, dev_name(vgpu_dev(vgpu)));
		return -ETIMEDOUT;
	}
	return 0;
}

/* VGPU_ON_ENGINE_LOST: of a VM that needs it; or VGPU_ON_ENGINE_LEFT. */
void vgpu_engine_detach(struct vgpu *vgpu, enum vgpu_occasion occasion)
{
	struct vgpu_engine *engine = &vgpu->engine;

	lockdep_assert_held(&vgpu->lock);
	vgpu_device_step(vgpu, occasion);
	WRITE_ONCE(engine->file, NULL);
	/* See vgpu_device_doorbell(). */
	smp_mb();
	WRITE_ONCE(engine->mm, NULL);
	vgpu_engine_mm_leave(engine->attached);
	engine->attached = NULL;
	/* A reader of the old file finds out. */
	wake_up_all(&engine->wait);
}

bool vgpu_engine_has_event(struct vgpu *vgpu, const struct file *file)
{
	return READ_ONCE(vgpu->engine.events) || READ_ONCE(vgpu->engine.file) != file;
}

/* Under engine.wait.lock. @event is zeroed. */
static void vgpu_engine_take_event_locked(struct vgpu *vgpu, struct vgpu_engine_event *event)
{
	struct vgpu_engine *engine = &vgpu->engine;

	event->events = engine->events;
	event->queues = engine->kicked;
	event->epoch = event->events & VGPU_EVENT_RESET ? engine->event_epoch : READ_ONCE(vgpu->epoch);
	engine->events = 0;
	engine->kicked = 0;
}

void vgpu_engine_take_event(struct vgpu *vgpu, struct vgpu_engine_event *event)
{
	spin_lock_irq(&vgpu->engine.wait.lock);
	if (vgpu->engine.events)
		vgpu_engine_take_event_locked(vgpu, event);
	spin_unlock_irq(&vgpu->engine.wait.lock);
}

static ssize_t vgpu_engine_read(struct file *file, char __user *user, size_t count, loff_t *ppos)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	struct vgpu_engine *engine = &vgpu->engine;
	struct vgpu_engine_event event = {};
	int ret = 0;

	if (count < sizeof(event))
		return -EINVAL;

	spin_lock_irq(&engine->wait.lock);
	if (!vgpu_engine_has_event(vgpu, file))
		ret = file->f_flags & O_NONBLOCK ? -EAGAIN :
		      wait_event_interruptible_locked_irq(engine->wait,
							  vgpu_engine_has_event(vgpu, file));
	if (!ret && engine->file != file)
		ret = -ENOTCONN;
	if (!ret)
		vgpu_engine_take_event_locked(vgpu, &event);
	spin_unlock_irq(&engine->wait.lock);

	if (ret)
		return ret;
	return copy_to_user(user, &event, sizeof(event)) ? -EFAULT : sizeof(event);
}

static __poll_t vgpu_engine_poll(struct file *file, struct poll_table_struct *wait)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	__poll_t mask = 0;

	poll_wait(file, &vgpu->engine.wait, wait);
	if (READ_ONCE(vgpu->engine.file) != file)
		return EPOLLERR;
	if (READ_ONCE(vgpu->engine.events))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (vgpu_is_removed(vgpu))
		mask |= EPOLLHUP;
	return mask;
}

static int vgpu_engine_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;

	if (READ_ONCE(vgpu->engine.file) != file || READ_ONCE(vgpu->engine.mm) != current->mm)
		return -EPERM;
	if (offset >= VGPU_PICTURE_OFFSET && offset < VGPU_MEM_OFFSET_BASE) {
		vma->vm_pgoff -= VGPU_PICTURE_OFFSET >> PAGE_SHIFT;
		return vgpu_display_mmap(vgpu, vma, true);
	}
	return vgpu_mem_mmap(vgpu, vma);
}

static int vgpu_engine_open(struct inode *inode, struct file *file)
{
	struct vgpu_engine_file *opened = kzalloc(sizeof(*opened), GFP_KERNEL_ACCOUNT);
	struct vgpu *vgpu;

	if (!opened)
		return -ENOMEM;
	mutex_lock(&vgpu_engine_idr_lock);
	vgpu = idr_find(&vgpu_engine_idr, iminor(inode));
	if (vgpu)
		get_device(&vgpu->vdev.device);
	mutex_unlock(&vgpu_engine_idr_lock);
	if (!vgpu) {
		kfree(opened);
		return -ENODEV;
	}
	opened->vgpu = vgpu;
	file->private_data = opened;
	/* Allows to remove this file's mappings: see anon_inode.c. */
	file->f_mapping = vgpu->pins_inode->i_mapping;
	return nonseekable_open(inode, file);
}

static int vgpu_engine_release(struct inode *inode, struct file *file)
{
	struct vgpu *vgpu = vgpu_from_file(file);

	mutex_lock(&vgpu->lock);
	if (vgpu->engine.file == file)
		vgpu_device_engine_ends(vgpu, "the engine went away");
	mutex_unlock(&vgpu->lock);
	flush_work(&vgpu->look_work);
	kfree(file->private_data);
	vfio_put_device(&vgpu->vdev);
	return 0;
}

static const struct file_operations vgpu_engine_fops = {
	.owner = THIS_MODULE,
	.open = vgpu_engine_open,
	.release = vgpu_engine_release,
	.read = vgpu_engine_read,
	.poll = vgpu_engine_poll,
	.mmap = vgpu_engine_mmap,
	.unlocked_ioctl = vgpu_engine_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

void vgpu_engine_init(struct vgpu *vgpu)
{
	init_waitqueue_head(&vgpu->engine.wait);
	vgpu->minor = -1;
}

int vgpu_engine_node_add(struct vgpu *vgpu)
{
	struct device *dev;
	int minor;

	mutex_lock(&vgpu_engine_idr_lock);
	minor = idr_alloc(&vgpu_engine_idr, vgpu, 0, VGPU_MAX_NODES, GFP_KERNEL);
	mutex_unlock(&vgpu_engine_idr_lock);
	if (minor == -ENOSPC)
		vgpu_log(vgpu, err, "can't be made: the host has %d vGPUs, and can't have more\n", VGPU_MAX_NODES);
	if (minor < 0)
		return minor;

	dev = device_create(&vgpu_engine_class, vgpu_dev(vgpu), MKDEV(MAJOR(vgpu_engine_devt), minor),
			    vgpu, "%s", dev_name(vgpu_dev(vgpu)));
	mutex_lock(&vgpu_engine_idr_lock);
	if (IS_ERR(dev)) {
		idr_remove(&vgpu_engine_idr, minor);
	} else {
		vgpu->node_dev = dev;
		vgpu->minor = minor;
	}
	mutex_unlock(&vgpu_engine_idr_lock);
	if (IS_ERR(dev))
		return PTR_ERR(dev);

	/* The GPU may have gone before its node existed and could be removed. */
	if (vgpu_is_removed(vgpu)) {
		vgpu_engine_node_remove(vgpu);
		return -ENODEV;
	}
	return 0;
}

/* Once, for the GPU's end or the vGPU's, whichever comes first. */
void vgpu_engine_node_remove(struct vgpu *vgpu)
{
	struct device *dev;

	/* No open from now on, but the number stays taken while its node exists. */
	mutex_lock(&vgpu_engine_idr_lock);
	dev = vgpu->node_dev;
	vgpu->node_dev = NULL;
	if (dev)
		idr_replace(&vgpu_engine_idr, NULL, vgpu->minor);
	mutex_unlock(&vgpu_engine_idr_lock);
	if (!dev)
		return;
	device_unregister(dev);
	mutex_lock(&vgpu_engine_idr_lock);
	idr_remove(&vgpu_engine_idr, vgpu->minor);
	mutex_unlock(&vgpu_engine_idr_lock);
}

int vgpu_engine_class_init(void)
{
	int ret;

	ret = class_register(&vgpu_engine_class);
	if (ret)
		return ret;
	ret = alloc_chrdev_region(&vgpu_engine_devt, 0, VGPU_MAX_NODES, "vgpu");
	if (ret)
		goto err_class;
	cdev_init(&vgpu_engine_cdev, &vgpu_engine_fops);
	vgpu_engine_cdev.owner = THIS_MODULE;
	ret = cdev_add(&vgpu_engine_cdev, vgpu_engine_devt, VGPU_MAX_NODES);
	if (ret)
		goto err_region;
	return 0;

err_region:
	unregister_chrdev_region(vgpu_engine_devt, VGPU_MAX_NODES);
err_class:
	class_unregister(&vgpu_engine_class);
	return ret;
}

void vgpu_engine_class_exit(void)
{
	cdev_del(&vgpu_engine_cdev);
	unregister_chrdev_region(vgpu_engine_devt, VGPU_MAX_NODES);
	class_unregister(&vgpu_engine_class);
	idr_destroy(&vgpu_engine_idr);
	/* The last engines' notifiers are freed by code of this module. */
	mmu_notifier_synchronize();
}
