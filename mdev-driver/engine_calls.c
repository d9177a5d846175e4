// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The ioctls of /dev/vgpu/<uuid> (uapi/linux/vgpu.h).
 *
 * An engine can delay any access to its memory for ever. So each call copies its argument first,
 * works under vgpu->lock, and copies the result after it has dropped the lock.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "engine.h"

/* 0: the caller is the attached engine; else the errno with the reason. */
static int vgpu_engine_check(const struct file *file)
{
	struct vgpu *vgpu = vgpu_from_file(file);

	if (READ_ONCE(vgpu->engine.file) != file)
		return -ENOTCONN;
	return READ_ONCE(vgpu->engine.mm) == current->mm ? 0 : -EPERM;
}

int vgpu_engine_enter(struct file *file)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	int ret;

	mutex_lock(&vgpu->lock);
	ret = vgpu_engine_check(file);
	if (ret)
		mutex_unlock(&vgpu->lock);
	return ret;
}

void vgpu_engine_leave(struct file *file)
{
	mutex_unlock(&vgpu_from_file(file)->lock);
}

bool vgpu_engine_epoch_over(const struct vgpu *vgpu, u64 epoch)
{
	return !vgpu_is_open(vgpu) || vgpu_is_lost(vgpu) || epoch != vgpu->epoch;
}

static void vgpu_engine_fill_info(struct vgpu *vgpu, struct vgpu_engine_info *info)
{
	struct vgpu_params params;

	lockdep_assert_held(&vgpu->lock);
	spin_lock(&vgpu->params_lock);
	params = vgpu->params;
	spin_unlock(&vgpu->params_lock);

	info->api_version = VGPU_API_VERSION;
	info->state = (vgpu_is_open(vgpu) ? VGPU_STATE_OPEN : 0) |
		      (vgpu_regs_driver_ok(&vgpu->regs) ? VGPU_STATE_DRIVER_OK : 0) |
		      (vgpu_is_lost(vgpu) ? VGPU_STATE_LOST : 0) |
		      (vgpu_is_removed(vgpu) ? VGPU_STATE_REMOVED : 0);
	info->epoch = vgpu->epoch;
	info->features = VGPU_FEATURE_STATE;
	if (vgpu_export_offered())
		info->features |= VGPU_FEATURE_EXPORT;
	info->num_queues = VGPU_NUM_QUEUES;
	info->queue_size = VGPU_VQ_MAX_SIZE;
	info->vram_bytes = params.vram_bytes;
	info->window_bytes = vgpu_is_open(vgpu) ? vgpu->window_bytes_open : params.window_bytes;
	info->weight = params.weight;
	info->cap = params.cap;
	info->priority = params.priority;
	info->num_scanouts = params.scanouts;
	info->cuda = params.cuda;
	vgpu_uuid_bytes(vgpu, info->uuid);
	strscpy(info->gpu, vgpu->gpu->name, sizeof(info->gpu));
	strscpy(info->type, vgpu->type->desc.name, sizeof(info->type));
}

static long vgpu_ioctl_engine_info(struct vgpu *vgpu, void __user *user)
{
	struct vgpu_engine_info info = {};

	if (copy_from_user(&info, user, offsetofend(struct vgpu_engine_info, flags)))
		return -EFAULT;
	if (info.argsz < sizeof(info) || info.flags)
		return -EINVAL;
	mutex_lock(&vgpu->lock);
	vgpu_engine_fill_info(vgpu, &info);
	mutex_unlock(&vgpu->lock);
	return copy_to_user(user, &info, sizeof(info)) ? -EFAULT : 0;
}

static int vgpu_engine_may_attach(struct vgpu *vgpu, const struct vgpu_engine_file *opened)
{
	lockdep_assert_held(&vgpu->lock);
	if (vgpu_is_removed(vgpu))
		return -ENODEV;
	return vgpu->engine.file || opened->attached ? -EBUSY : 0;
}

static void vgpu_engine_attach(struct vgpu *vgpu, struct file *file, struct vgpu_engine_mm *attached)
{
	struct vgpu_engine_file *opened = file->private_data;
	struct vgpu_engine *engine = &vgpu->engine;

	lockdep_assert_held(&vgpu->lock);
	engine->mm = current->mm;
	engine->attached = attached;
	spin_lock_irq(&engine->wait.lock);
	/* A GPU that goes away does not take vgpu->lock: its event may have come just before. */
	engine->events = vgpu_is_removed(vgpu) ? VGPU_EVENT_REMOVED : 0;
	engine->kicked = 0;
	spin_unlock_irq(&engine->wait.lock);
	opened->attached = true;
	/* All processes of the last one have ended. */
	vgpu_mem_forget_loans(vgpu);
	vgpu_device_step(vgpu, VGPU_ON_ATTACH);
	WRITE_ONCE(engine->file, file);
	vgpu_device_tell(vgpu);
}

static long vgpu_ioctl_attach(struct file *file)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	struct vgpu_engine_mm *attached;
	int ret;

	/*
	 * Checked here so that a refused call is cheap, and again below, where the check is
	 * authoritative.
	 */
	mutex_lock(&vgpu->lock);
	ret = vgpu_engine_may_attach(vgpu, file->private_data);
	mutex_unlock(&vgpu->lock);
	if (ret)
		return ret;
	attached = vgpu_engine_mm_new(vgpu);
	if (IS_ERR(attached))
		return PTR_ERR(attached);
	mutex_lock(&vgpu->lock);
	ret = vgpu_engine_may_attach(vgpu, file->private_data);
	if (!ret)
		vgpu_engine_attach(vgpu, file, attached);
	mutex_unlock(&vgpu->lock);
	if (ret)
		vgpu_engine_mm_leave(attached);
	return ret;
}

static int vgpu_engine_ready(struct vgpu *vgpu, u32 num_capsets, u64 renderer)
{
	if (vgpu->phase.engine != VGPU_ENGINE_IS_STARTING)
		return -EALREADY;
	vgpu->engine.num_capsets = num_capsets;
	vgpu->engine.renderer = renderer;
	vgpu_device_step(vgpu, VGPU_ON_READY);
	/* A guest that has not read it yet may see the new number, another only after a reset. */
	if (vgpu_is_open(vgpu) && !vgpu->regs.status)
		vgpu->regs.num_capsets = num_capsets;
	vgpu_device_settle(vgpu);
	vgpu_device_tell(vgpu);
	return 0;
}

static int vgpu_call_ready(struct vgpu *vgpu, void *arg)
{
	const struct vgpu_engine_ready *ready = arg;

	if (ready->reserved0 || memchr_inv(ready->reserved, 0, sizeof(ready->reserved)))
		return -EINVAL;
	if (!ready->num_capsets || ready->num_capsets > 63)
		return -EINVAL;
	return vgpu_engine_ready(vgpu, ready->num_capsets, ready->renderer);
}

static int vgpu_call_reset_done(struct vgpu *vgpu, void *arg)
{
	const struct vgpu_engine_epoch *done = arg;
	enum vgpu_engine_phase engine = vgpu->phase.engine;

	if (!vgpu_engine_must_release(engine) || done->epoch != vgpu->engine.event_epoch)
		return -ESTALE;
	if (engine == VGPU_ENGINE_IS_LEAVING) {
		vgpu_device_lose_stayer(vgpu);
		return -ENOTCONN;
	}
	vgpu_device_step(vgpu, VGPU_ON_RELEASED);
	vgpu_device_settle(vgpu);
	return 0;
}

static int vgpu_mem_pin_entries(struct file *file, struct vgpu_mem_pin *pin,
				const struct vgpu_mem_entry *entries)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	struct vgpu_mem_object *object = vgpu_mem_object_new(vgpu, pin, entries);
	int ret;

	if (IS_ERR(object))
		return PTR_ERR(object);
	ret = vgpu_engine_enter(file);
	if (!ret) {
		/* A reset has taken all pins back, and until a driver is up again the memory is not the device's. */
		if (vgpu_engine_epoch_over(vgpu, pin->epoch) || vgpu->phase.engine != VGPU_ENGINE_IS_BUSY)
			ret = -ESTALE;
		else
			ret = vgpu_mem_admit(vgpu, object);
		vgpu_engine_leave(file);
	}
	if (!ret)
		return vgpu_mem_pin(vgpu, object, pin);
	vgpu_mem_object_dispose(object);
	return ret;
}

static int vgpu_call_mem_pin(struct file *file, void *arg)
{
	struct vgpu_mem_pin *pin = arg;
	struct vgpu_mem_entry *entries;
	int ret;

	if (pin->reserved || !pin->nentries || pin->nentries > VGPU_MEM_MAX_ENTRIES)
		return -EINVAL;
	entries = vmemdup_user(u64_to_user_ptr(pin->entries), (size_t)pin->nentries * sizeof(*entries));
	if (IS_ERR(entries))
		return PTR_ERR(entries);
	ret = vgpu_mem_pin_entries(file, pin, entries);
	kvfree(entries);
	return ret;
}

static int vgpu_mem_unpin_of(struct file *file, u64 epoch, u64 offset)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	int ret = vgpu_engine_enter(file);

	if (ret)
		return ret;
	ret = vgpu_engine_epoch_over(vgpu, epoch) ? -ESTALE : vgpu_mem_unpin(vgpu, offset);
	vgpu_engine_leave(file);
	/* For the engine it is done, even if it is killed meanwhile. */
	if (!ret)
		vgpu_mem_wait_released(vgpu);
	return ret;
}

static void vgpu_undo_mem_pin(struct file *file, void *arg)
{
	const struct vgpu_mem_pin *pin = arg;

	vgpu_mem_unpin_of(file, pin->epoch, pin->offset);
}

static int vgpu_call_mem_unpin(struct file *file, void *arg)
{
	const struct vgpu_mem_unpin *unpin = arg;

	return vgpu_mem_unpin_of(file, unpin->epoch, unpin->offset);
}

static int vgpu_window_check(const struct vgpu *vgpu, u64 epoch)
{
	return vgpu_engine_epoch_over(vgpu, epoch) || vgpu_is_removed(vgpu) ? -ESTALE : 0;
}

static int vgpu_call_publish(struct file *file, void *arg)
{
	const struct vgpu_window_range *what = arg;
	struct vgpu *vgpu = vgpu_from_file(file);
	struct vgpu_range *range;
	int ret = vgpu_engine_enter(file);

	if (ret)
		return ret;
	ret = vgpu_window_check(vgpu, what->epoch);
	vgpu_engine_leave(file);
	if (ret)
		return ret;
	range = vgpu_range_new(vgpu, what);
	if (IS_ERR(range))
		return PTR_ERR(range);
	ret = vgpu_engine_enter(file);
	if (!ret) {
		ret = vgpu_window_check(vgpu, what->epoch) ?: vgpu_window_publish(vgpu, range);
		vgpu_engine_leave(file);
	}
	if (ret)
		vgpu_range_reap(range);
	return ret;
}

static int vgpu_call_unpublish(struct vgpu *vgpu, void *arg)
{
	const struct vgpu_window_range *range = arg;

	return vgpu_window_check(vgpu, range->epoch) ?: vgpu_window_unpublish(vgpu, range);
}

static int vgpu_call_display(struct vgpu *vgpu, void *arg)
{
	struct vgpu_display *display = arg;

	if (memchr_inv(display->reserved, 0, sizeof(display->reserved)))
		return -EINVAL;
	if (!vgpu_display_there(vgpu))
		return -ENODEV;
	vgpu_edid_describe(&vgpu->display.edid, display);
	return 0;
}

static int vgpu_call_set_scanout(struct vgpu *vgpu, void *arg)
{
	const struct vgpu_scanout *scanout = arg;
	int ret = vgpu_check_scanout(scanout);

	if (ret)
		return ret;
	return vgpu_engine_epoch_over(vgpu, scanout->epoch) ? -ESTALE : vgpu_display_set_scanout(vgpu, scanout);
}

/* EAGAIN: @state is wanted. @error: the engine has one that cannot be taken. */
static int vgpu_state_saved(struct file *file, const struct vgpu_engine_state *arg,
			    const void *state, int error)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	int ret = vgpu_engine_enter(file);

	if (ret)
		return ret;
	if (vgpu_engine_epoch_over(vgpu, arg->epoch) || !vgpu_migration_engine_asked(vgpu))
		ret = -ESTALE;
	else if (!state && !error)
		ret = -EAGAIN;
	else
		vgpu_migration_engine_saves(vgpu, state, arg->size, error);
	vgpu_engine_leave(file);
	return ret;
}

static int vgpu_call_state_save(struct file *file, void *arg)
{
	const struct vgpu_engine_state *save = arg;
	void *state;
	int ret;

	if (memchr_inv(save->reserved, 0, sizeof(save->reserved)))
		return -EINVAL;
	ret = vgpu_state_saved(file, save, NULL, 0);
	/* It was asked for it, so that memory is needed. */
	if (ret != -EAGAIN)
		return ret;
	if (save->size > VGPU_STATE_MAX)
		return vgpu_state_saved(file, save, NULL, -EMSGSIZE) ?: -EMSGSIZE;
	state = kvmalloc(max_t(u64, save->size, 1), GFP_KERNEL_ACCOUNT);
	if (!state)
		return vgpu_state_saved(file, save, NULL, -ENOMEM) ?: -ENOMEM;
	if (copy_from_user(state, u64_to_user_ptr(save->buf), save->size))
		ret = -EFAULT;
	else
		ret = vgpu_state_saved(file, save, state, 0);
	kvfree(state);
	return ret;
}

static int vgpu_call_state_load(struct file *file, void *arg)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	struct vgpu_engine_state *load = arg;
	void *state = ERR_PTR(-ESTALE);
	int ret;

	if (memchr_inv(load->reserved, 0, sizeof(load->reserved)))
		return -EINVAL;
	ret = vgpu_engine_enter(file);
	if (ret)
		return ret;
	if (!vgpu_engine_epoch_over(vgpu, load->epoch))
		state = vgpu_migration_engine_loads(vgpu, load->size, &load->size);
	vgpu_engine_leave(file);
	if (IS_ERR(state))
		return PTR_ERR(state);
	ret = copy_to_user(u64_to_user_ptr(load->buf), state, load->size) ? -EFAULT : 0;
	kvfree(state);
	return ret;
}

static int vgpu_call_fail(struct vgpu *vgpu, void *arg)
{
	const struct vgpu_engine_fail *fail = arg;

	if (!vgpu_text_ok(fail->reason, sizeof(fail->reason)))
		return -EINVAL;
	vgpu_log(vgpu, err, "its engine gave up: %s\n", fail->reason);
	vgpu_device_lose(vgpu, fail->reason);
	vgpu_device_step(vgpu, VGPU_ON_FAILED);
	vgpu_device_settle(vgpu);
	vgpu_device_tell(vgpu);
	return 0;
}

/*
 * struct vgpu_engine_call - a call of the attached engine
 * @flags: that its argument may have
 * @locked: does it, under vgpu->lock; the argument is a copy
 * @unlocked: takes that itself, because it waits for what an engine can delay
 * @undo: if the engine cannot be given the result
 */
struct vgpu_engine_call {
	unsigned int cmd;
	u32 flags;
	int (*locked)(struct vgpu *vgpu, void *arg);
	int (*unlocked)(struct file *file, void *arg);
	void (*undo)(struct file *file, void *arg);
};

static const struct vgpu_engine_call vgpu_engine_calls[] = {
	{ .cmd = VGPU_ENGINE_READY, .locked = vgpu_call_ready },
	{ .cmd = VGPU_ENGINE_RESET_DONE, .locked = vgpu_call_reset_done },
	{ .cmd = VGPU_ENGINE_MEM_PIN, .flags = VGPU_MEM_WRITE, .unlocked = vgpu_call_mem_pin,
	  .undo = vgpu_undo_mem_pin },
	{ .cmd = VGPU_ENGINE_MEM_UNPIN, .unlocked = vgpu_call_mem_unpin },
	{ .cmd = VGPU_ENGINE_WINDOW_PUBLISH, .unlocked = vgpu_call_publish },
	{ .cmd = VGPU_ENGINE_WINDOW_UNPUBLISH, .locked = vgpu_call_unpublish },
	{ .cmd = VGPU_ENGINE_FAIL, .locked = vgpu_call_fail },
	{ .cmd = VGPU_ENGINE_DISPLAY, .locked = vgpu_call_display },
	{ .cmd = VGPU_ENGINE_SET_SCANOUT, .locked = vgpu_call_set_scanout },
	{ .cmd = VGPU_ENGINE_STATE_SAVE, .unlocked = vgpu_call_state_save },
	{ .cmd = VGPU_ENGINE_STATE_LOAD, .unlocked = vgpu_call_state_load },
};

static int vgpu_engine_do(struct file *file, const struct vgpu_engine_call *call, void *arg)
{
	int ret;

	if (call->unlocked)
		return call->unlocked(file, arg);
	ret = vgpu_engine_enter(file);
	if (ret)
		return ret;
	ret = call->locked(vgpu_from_file(file), arg);
	vgpu_engine_leave(file);
	return ret;
}

/* Copies the argument, which begins with argsz and flags, and back what the engine is to get. */
static long vgpu_engine_serve(struct file *file, const struct vgpu_engine_call *call,
			      void __user *user)
{
	bool returns = _IOC_DIR(call->cmd) & _IOC_READ;
	size_t size = _IOC_SIZE(call->cmd);
	u32 *arg = memdup_user(user, size);
	int ret = -EINVAL;

	if (IS_ERR(arg))
		return PTR_ERR(arg);
	if (arg[0] >= size && !(arg[1] & ~call->flags))
		ret = vgpu_engine_do(file, call, arg);
	/* EMSGSIZE has the size that it should be. */
	if (returns && (!ret || ret == -EMSGSIZE) && copy_to_user(user, arg, size)) {
		if (call->undo)
			call->undo(file, arg);
		ret = -EFAULT;
	}
	kfree(arg);
	return ret;
}

long vgpu_engine_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	unsigned int i;
	int ret;

	if (cmd == VGPU_ENGINE_INFO)
		return vgpu_ioctl_engine_info(vgpu_from_file(file), user);
	if (cmd == VGPU_ENGINE_ATTACH)
		return vgpu_ioctl_attach(file);
	/*
	 * Refuses an unauthorized caller before its argument is read. Each call checks again when
	 * it has copied it.
	 */
	ret = vgpu_engine_check(file);
	if (ret)
		return ret;
	if (cmd == VGPU_ENGINE_QUEUE_EXCHANGE)
		return vgpu_ioctl_exchange(file, user);
	if (cmd == VGPU_ENGINE_MEM_EXPORT)
		return vgpu_ioctl_mem_export(file, user);
	for (i = 0; i < ARRAY_SIZE(vgpu_engine_calls); i++)
		if (vgpu_engine_calls[i].cmd == cmd)
			return vgpu_engine_serve(file, &vgpu_engine_calls[i], user);
	return -ENOTTY;
}
