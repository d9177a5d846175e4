// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * /dev/vgpu/<uuid>: the engine's side of a vGPU (uapi/linux/vgpu.h). One engine at a time; it is trusted with
 * its own vGPU and nothing else.
 */
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "vgpu_private.h"

#define VGPU_MAX_NODES	1024

/* struct vgpu_engine_file - an open /dev/vgpu/<uuid>; @attached: once for each, under vgpu->lock */
struct vgpu_engine_file {
	struct vgpu *vgpu;
	bool attached;
};

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

/* Not "vgpu": the core makes a directory of this name beside the attributes' one. */
static struct class vgpu_engine_class = {
	.name = "vgpu_engine",
	.devnode = vgpu_engine_devnode,
};

/* Any context but under engine.wait.lock. */
void vgpu_engine_event(struct vgpu *vgpu, u32 events, u32 queues)
{
	struct vgpu_engine *engine = &vgpu->engine;

	spin_lock_irq(&engine->wait.lock);
	/* What was to be done in an epoch that is over is not to be done. */
	if (events & VGPU_EVENT_RESET) {
		engine->events &= ~VGPU_EVENT_KICK;
		engine->kicked = 0;
	}
	engine->events |= events;
	engine->kicked |= queues;
	wake_up_locked_poll(&engine->wait, EPOLLIN);
	spin_unlock_irq(&engine->wait.lock);
}

static bool vgpu_engine_settled(struct vgpu *vgpu)
{
	const struct vgpu_engine *engine = &vgpu->engine;

	return READ_ONCE(vgpu->leaving) || READ_ONCE(engine->failed) ||
	       (READ_ONCE(engine->ready) && READ_ONCE(engine->clean));
}

/* For a VMM that opens the device. */
int vgpu_engine_wait_ready(struct vgpu *vgpu)
{
	unsigned long timeout = msecs_to_jiffies(READ_ONCE(vgpu_engine_timeout_ms));
	long left;

	left = wait_event_killable_timeout(vgpu->state_wait, vgpu_engine_settled(vgpu), timeout);
	if (left < 0)
		return left;
	if (READ_ONCE(vgpu->leaving))
		return -ENODEV;
	if (READ_ONCE(vgpu->engine.failed)) {
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

static struct vgpu *vgpu_from_file(const struct file *file)
{
	const struct vgpu_engine_file *opened = file->private_data;

	return opened->vgpu;
}

static void vgpu_engine_mm_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct vgpu *vgpu = container_of(notifier, struct vgpu, engine.notifier);

	/* The engine's process is at its end, whoever else still holds its file. */
	WRITE_ONCE(vgpu->engine.mm_gone, true);
	schedule_work(&vgpu->lost_work);
}

static const struct mmu_notifier_ops vgpu_engine_mm_ops = {
	.release = vgpu_engine_mm_release,
};

void vgpu_engine_detach(struct vgpu *vgpu)
{
	struct vgpu_engine *engine = &vgpu->engine;

	lockdep_assert_held(&vgpu->lock);
	WRITE_ONCE(engine->file, NULL);
	engine->ready = false;
	engine->used = false;
	mmu_notifier_unregister(&engine->notifier, engine->mm);
	mmdrop(engine->mm);
	engine->mm = NULL;
	/* A reader of the old file finds out. */
	wake_up_all(&engine->wait);
}

static int vgpu_engine_attach(struct vgpu *vgpu, struct file *file)
{
	struct vgpu_engine_file *opened = file->private_data;
	struct vgpu_engine *engine = &vgpu->engine;
	int ret;

	lockdep_assert_held(&vgpu->lock);
	if (vgpu->removed)
		return -ENODEV;
	if (engine->file || opened->attached)
		return -EBUSY;

	engine->mm_gone = false;
	engine->notifier.ops = &vgpu_engine_mm_ops;
	ret = mmu_notifier_register(&engine->notifier, current->mm);
	if (ret)
		return ret;
	engine->mm = current->mm;
	mmgrab(engine->mm);
	engine->events = 0;
	engine->kicked = 0;
	engine->used = false;
	engine->clean = true;
	engine->failed = false;
	opened->attached = true;
	WRITE_ONCE(engine->file, file);
	vgpu_device_tell(vgpu);
	return 0;
}

static void vgpu_engine_fill_info(struct vgpu *vgpu, struct vgpu_engine_info *info)
{
	lockdep_assert_held(&vgpu->lock);
	info->api_version = VGPU_API_VERSION;
	info->state = (vgpu->open ? VGPU_STATE_OPEN : 0) |
		      (vgpu_regs_driver_ok(&vgpu->regs) ? VGPU_STATE_DRIVER_OK : 0) |
		      (vgpu->lost ? VGPU_STATE_LOST : 0) |
		      (vgpu->removed ? VGPU_STATE_REMOVED : 0);
	info->epoch = vgpu->epoch;
	info->num_queues = VGPU_NUM_QUEUES;
	info->queue_size = VGPU_VQ_MAX_SIZE;
	info->vram_bytes = vgpu->params.vram_bytes;
	info->window_bytes = vgpu->open ? vgpu->window_bytes_open : vgpu->params.window_bytes;
	info->weight = vgpu->params.weight;
	info->cap = vgpu->params.cap;
	info->priority = vgpu->params.priority;
	info->num_scanouts = vgpu->params.scanouts;
	vgpu_uuid_bytes(vgpu, info->uuid);
	strscpy(info->gpu, vgpu->gpu->name, sizeof(info->gpu));
	strscpy(info->type, vgpu->type->name, sizeof(info->type));
}

static long vgpu_ioctl_engine_info(struct vgpu *vgpu, void __user *user)
{
	struct vgpu_engine_info info = {};

	if (copy_from_user(&info, user, offsetofend(struct vgpu_engine_info, flags)))
		return -EFAULT;
	if (info.argsz < sizeof(info) || info.flags)
		return -EINVAL;
	vgpu_gpus_lock();
	mutex_lock(&vgpu->lock);
	vgpu_engine_fill_info(vgpu, &info);
	mutex_unlock(&vgpu->lock);
	vgpu_gpus_unlock();
	return copy_to_user(user, &info, sizeof(info)) ? -EFAULT : 0;
}

static long vgpu_ioctl_ready(struct vgpu *vgpu, void __user *user)
{
	struct vgpu_engine_ready ready;

	if (copy_from_user(&ready, user, sizeof(ready)))
		return -EFAULT;
	if (ready.argsz < sizeof(ready) || ready.flags ||
	    memchr_inv(ready.reserved, 0, sizeof(ready.reserved)))
		return -EINVAL;
	if (!ready.num_capsets || ready.num_capsets > 63)
		return -EINVAL;
	if (vgpu->engine.ready)
		return -EALREADY;
	vgpu->engine.num_capsets = ready.num_capsets;
	vgpu->engine.ready = true;
	/* A guest that has not looked yet may see the new number, another only after a reset. */
	if (vgpu->open && !vgpu->regs.status)
		vgpu->regs.num_capsets = ready.num_capsets;
	wake_up_all(&vgpu->state_wait);
	vgpu_device_tell(vgpu);
	return 0;
}

static long vgpu_ioctl_reset_done(struct vgpu *vgpu, void __user *user)
{
	struct vgpu_engine_epoch done;

	if (copy_from_user(&done, user, sizeof(done)))
		return -EFAULT;
	if (done.argsz < sizeof(done) || done.flags)
		return -EINVAL;
	if (vgpu->engine.clean || done.epoch != vgpu->engine.event_epoch)
		return -ESTALE;
	vgpu->engine.clean = true;
	wake_up_all(&vgpu->state_wait);
	return 0;
}

static long vgpu_ioctl_pop(struct vgpu *vgpu, void __user *user)
{
	struct vgpu_queue_pop pop;
	int ret;

	if (copy_from_user(&pop, user, sizeof(pop)))
		return -EFAULT;
	if (pop.argsz < sizeof(pop) || pop.flags & ~(VGPU_POP_TRUNCATE | VGPU_POP_POLL) ||
	    pop.queue >= VGPU_NUM_QUEUES)
		return -EINVAL;
	if (pop.epoch != vgpu->epoch || vgpu->lost)
		return -ESTALE;
	pop.queue = array_index_nospec(pop.queue, VGPU_NUM_QUEUES);
	ret = vgpu_queue_pop(vgpu, &pop);
	if (ret && ret != -EMSGSIZE)
		return ret;
	if (copy_to_user(user, &pop, sizeof(pop))) {
		/* Nobody knows the token, so nobody would answer. */
		if (!ret)
			vgpu_queue_abandon(vgpu, pop.queue, pop.token);
		return -EFAULT;
	}
	return ret;
}

static long vgpu_ioctl_push(struct vgpu *vgpu, void __user *user)
{
	struct vgpu_queue_push push;
	u8 small[256];
	void *buf = small;
	int ret = -EFAULT;

	if (copy_from_user(&push, user, sizeof(push)))
		return -EFAULT;
	if (push.argsz < sizeof(push) || push.flags || push.queue >= VGPU_NUM_QUEUES)
		return -EINVAL;
	if (push.size > VGPU_REQUEST_MAX)
		return -EMSGSIZE;
	if (push.epoch != vgpu->epoch || vgpu->lost)
		return -ESTALE;
	push.queue = array_index_nospec(push.queue, VGPU_NUM_QUEUES);
	if (push.size > sizeof(small)) {
		buf = kvmalloc(push.size, GFP_KERNEL_ACCOUNT);
		if (!buf)
			return -ENOMEM;
	}
	if (!copy_from_user(buf, u64_to_user_ptr(push.buf), push.size))
		ret = vgpu_queue_push(vgpu, &push, buf);
	if (buf != small)
		kvfree(buf);
	return ret;
}

static long vgpu_ioctl_mem_pin(struct vgpu *vgpu, void __user *user)
{
	struct vgpu_mem_entry *entries;
	struct vgpu_mem_pin pin;
	int ret;

	if (copy_from_user(&pin, user, sizeof(pin)))
		return -EFAULT;
	if (pin.argsz < sizeof(pin) || pin.flags & ~VGPU_MEM_WRITE || pin.reserved)
		return -EINVAL;
	if (!vgpu->open || vgpu->lost || pin.epoch != vgpu->epoch)
		return -ESTALE;
	if (!pin.nentries || pin.nentries > VGPU_MEM_MAX_ENTRIES)
		return -EINVAL;
	entries = vmemdup_user(u64_to_user_ptr(pin.entries), (size_t)pin.nentries * sizeof(*entries));
	if (IS_ERR(entries))
		return PTR_ERR(entries);
	ret = vgpu_mem_pin(vgpu, &pin, entries);
	kvfree(entries);
	if (ret)
		return ret;
	if (copy_to_user(user, &pin, sizeof(pin))) {
		vgpu_mem_unpin(vgpu, pin.offset);
		return -EFAULT;
	}
	return 0;
}

static long vgpu_ioctl_mem_unpin(struct vgpu *vgpu, void __user *user)
{
	struct vgpu_mem_unpin unpin;

	if (copy_from_user(&unpin, user, sizeof(unpin)))
		return -EFAULT;
	if (unpin.argsz < sizeof(unpin) || unpin.flags)
		return -EINVAL;
	if (!vgpu->open || vgpu->lost || unpin.epoch != vgpu->epoch)
		return -ESTALE;
	return vgpu_mem_unpin(vgpu, unpin.offset);
}

static long vgpu_ioctl_window(struct vgpu *vgpu, void __user *user, bool publish)
{
	struct vgpu_window_range range;

	if (copy_from_user(&range, user, sizeof(range)))
		return -EFAULT;
	if (range.argsz < sizeof(range) || range.flags)
		return -EINVAL;
	if (!vgpu->open || vgpu->lost || vgpu->removed || range.epoch != vgpu->epoch)
		return -ESTALE;
	return publish ? vgpu_window_publish(vgpu, &range) : vgpu_window_unpublish(vgpu, &range);
}

static long vgpu_ioctl_display(struct vgpu *vgpu, void __user *user)
{
	struct vgpu_display *display;
	long ret = 0;

	display = kzalloc(sizeof(*display), GFP_KERNEL);
	if (!display)
		return -ENOMEM;
	if (copy_from_user(display, user, offsetof(struct vgpu_display, edid)))
		ret = -EFAULT;
	else if (display->argsz < sizeof(*display) || display->flags ||
		 memchr_inv(display->reserved, 0, sizeof(display->reserved)))
		ret = -EINVAL;
	else if (!vgpu_display_there(vgpu))
		ret = -ENODEV;
	if (!ret) {
		vgpu_edid_describe(&vgpu->display.edid, display);
		if (copy_to_user(user, display, sizeof(*display)))
			ret = -EFAULT;
	}
	kfree(display);
	return ret;
}

static long vgpu_ioctl_set_scanout(struct vgpu *vgpu, void __user *user)
{
	struct vgpu_scanout scanout;

	if (copy_from_user(&scanout, user, sizeof(scanout)))
		return -EFAULT;
	if (!vgpu->open || vgpu->lost || scanout.epoch != vgpu->epoch)
		return -ESTALE;
	return vgpu_display_set_scanout(vgpu, &scanout);
}

static long vgpu_ioctl_fail(struct vgpu *vgpu, void __user *user)
{
	struct vgpu_engine_fail fail;

	if (copy_from_user(&fail, user, sizeof(fail)))
		return -EFAULT;
	if (fail.argsz < sizeof(fail) || fail.flags || !vgpu_text_ok(fail.reason, sizeof(fail.reason)))
		return -EINVAL;
	vgpu_log(vgpu, err, "its engine gave up: %s\n", fail.reason);
	vgpu_device_lose(vgpu, fail.reason);
	strscpy(vgpu->failure, fail.reason, sizeof(vgpu->failure));
	vgpu->engine.failed = true;
	wake_up_all(&vgpu->state_wait);
	vgpu_device_tell(vgpu);
	return 0;
}

/* Calls of the attached engine, under vgpu->lock. */
static long vgpu_engine_call(struct vgpu *vgpu, unsigned int cmd, void __user *user)
{
	switch (cmd) {
	case VGPU_ENGINE_READY:
		return vgpu_ioctl_ready(vgpu, user);
	case VGPU_ENGINE_RESET_DONE:
		return vgpu_ioctl_reset_done(vgpu, user);
	case VGPU_ENGINE_QUEUE_POP:
		return vgpu_ioctl_pop(vgpu, user);
	case VGPU_ENGINE_QUEUE_PUSH:
		return vgpu_ioctl_push(vgpu, user);
	case VGPU_ENGINE_MEM_PIN:
		return vgpu_ioctl_mem_pin(vgpu, user);
	case VGPU_ENGINE_MEM_UNPIN:
		return vgpu_ioctl_mem_unpin(vgpu, user);
	case VGPU_ENGINE_WINDOW_PUBLISH:
		return vgpu_ioctl_window(vgpu, user, true);
	case VGPU_ENGINE_WINDOW_UNPUBLISH:
		return vgpu_ioctl_window(vgpu, user, false);
	case VGPU_ENGINE_FAIL:
		return vgpu_ioctl_fail(vgpu, user);
	case VGPU_ENGINE_DISPLAY:
		return vgpu_ioctl_display(vgpu, user);
	case VGPU_ENGINE_SET_SCANOUT:
		return vgpu_ioctl_set_scanout(vgpu, user);
	default:
		return -ENOTTY;
	}
}

static long vgpu_engine_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	void __user *user = (void __user *)arg;
	long ret;

	if (cmd == VGPU_ENGINE_INFO)
		return vgpu_ioctl_engine_info(vgpu, user);

	mutex_lock(&vgpu->lock);
	if (cmd == VGPU_ENGINE_ATTACH)
		ret = vgpu_engine_attach(vgpu, file);
	else if (vgpu->engine.file != file)
		ret = -ENOTCONN;
	else if (vgpu->engine.mm != current->mm)
		ret = -EPERM;
	else
		ret = vgpu_engine_call(vgpu, cmd, user);
	mutex_unlock(&vgpu->lock);
	return ret;
}

static bool vgpu_engine_has_event(struct vgpu *vgpu, struct file *file)
{
	return vgpu->engine.events || READ_ONCE(vgpu->engine.file) != file;
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
	if (!ret) {
		event.events = engine->events;
		event.queues = engine->kicked;
		event.epoch = event.events & VGPU_EVENT_RESET ? engine->event_epoch :
								READ_ONCE(vgpu->epoch);
		engine->events = 0;
		engine->kicked = 0;
	}
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
	if (READ_ONCE(vgpu->removed))
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
	/* So that what this file maps can be taken away: see anon_inode.c. */
	file->f_mapping = vgpu->inode->i_mapping;
	return nonseekable_open(inode, file);
}

static int vgpu_engine_release(struct inode *inode, struct file *file)
{
	struct vgpu *vgpu = vgpu_from_file(file);

	mutex_lock(&vgpu->lock);
	if (vgpu->engine.file == file)
		vgpu_device_lose(vgpu, "the engine went away");
	mutex_unlock(&vgpu->lock);
	flush_work(&vgpu->lost_work);
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
	vgpu->engine.clean = true;
	vgpu->minor = -1;
}

int vgpu_engine_node_add(struct vgpu *vgpu)
{
	struct device *dev;
	int minor;

	mutex_lock(&vgpu_engine_idr_lock);
	minor = idr_alloc(&vgpu_engine_idr, vgpu, 0, VGPU_MAX_NODES, GFP_KERNEL);
	mutex_unlock(&vgpu_engine_idr_lock);
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

	/* The GPU may have gone before the node was there to be removed. */
	if (READ_ONCE(vgpu->removed)) {
		vgpu_engine_node_remove(vgpu);
		return -ENODEV;
	}
	return 0;
}

/* Once, whoever comes first: the GPU's end or the vGPU's. */
void vgpu_engine_node_remove(struct vgpu *vgpu)
{
	struct device *dev;

	/* No open from now on, but the number stays taken while its node is there. */
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
}
