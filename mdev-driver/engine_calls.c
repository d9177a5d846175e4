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

static bool vgpu_epoch_over(const struct vgpu *vgpu, u64 epoch)
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
	info->num_queues = VGPU_NUM_QUEUES;
	info->queue_size = VGPU_VQ_MAX_SIZE;
	info->vram_bytes = params.vram_bytes;
	info->window_bytes = vgpu_is_open(vgpu) ? vgpu->window_bytes_open : params.window_bytes;
	info->weight = params.weight;
	info->cap = params.cap;
	info->priority = params.priority;
	info->num_scanouts = params.scanouts;
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

static long vgpu_ioctl_ready(struct file *file, void __user *user)
{
	struct vgpu_engine_ready ready;
	int ret;

	if (copy_from_user(&ready, user, sizeof(ready)))
		return -EFAULT;
	if (ready.argsz < sizeof(ready) || ready.flags || ready.reserved0 ||
	    memchr_inv(ready.reserved, 0, sizeof(ready.reserved)))
		return -EINVAL;
	if (!ready.num_capsets || ready.num_capsets > 63)
		return -EINVAL;
	ret = vgpu_engine_enter(file);
	if (ret)
		return ret;
	ret = vgpu_engine_ready(vgpu_from_file(file), ready.num_capsets, ready.renderer);
	vgpu_engine_leave(file);
	return ret;
}

static long vgpu_ioctl_reset_done(struct file *file, void __user *user)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	struct vgpu_engine_epoch done;
	int ret;

	if (copy_from_user(&done, user, sizeof(done)))
		return -EFAULT;
	if (done.argsz < sizeof(done) || done.flags)
		return -EINVAL;
	ret = vgpu_engine_enter(file);
	if (ret)
		return ret;
	if (!vgpu_engine_must_release(vgpu->phase.engine) || done.epoch != vgpu->engine.event_epoch) {
		ret = -ESTALE;
	} else if (vgpu->phase.engine == VGPU_ENGINE_IS_LEAVING) {
		vgpu_device_lose_stayer(vgpu);
		ret = -ENOTCONN;
	} else {
		vgpu_device_step(vgpu, VGPU_ON_RELEASED);
		vgpu_device_settle(vgpu);
	}
	vgpu_engine_leave(file);
	return ret;
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
		ret = vgpu_epoch_over(vgpu, pin->epoch) ? -ESTALE : vgpu_mem_admit(vgpu, object);
		vgpu_engine_leave(file);
	}
	if (!ret)
		return vgpu_mem_pin(vgpu, object, pin);
	vgpu_mem_object_dispose(object);
	return ret;
}

static int vgpu_mem_unpin_of(struct file *file, u64 epoch, u64 offset)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	int ret = vgpu_engine_enter(file);

	if (ret)
		return ret;
	ret = vgpu_epoch_over(vgpu, epoch) ? -ESTALE : vgpu_mem_unpin(vgpu, offset);
	vgpu_engine_leave(file);
	/* For the engine it is done, even if it is killed meanwhile. */
	if (!ret)
		vgpu_mem_wait_released(vgpu);
	return ret;
}

static long vgpu_ioctl_mem_pin(struct file *file, void __user *user)
{
	struct vgpu_mem_entry *entries;
	struct vgpu_mem_pin pin;
	int ret;

	if (copy_from_user(&pin, user, sizeof(pin)))
		return -EFAULT;
	if (pin.argsz < sizeof(pin) || pin.flags & ~VGPU_MEM_WRITE || pin.reserved)
		return -EINVAL;
	if (!pin.nentries || pin.nentries > VGPU_MEM_MAX_ENTRIES)
		return -EINVAL;
	entries = vmemdup_user(u64_to_user_ptr(pin.entries), (size_t)pin.nentries * sizeof(*entries));
	if (IS_ERR(entries))
		return PTR_ERR(entries);
	ret = vgpu_mem_pin_entries(file, &pin, entries);
	kvfree(entries);
	if (ret)
		return ret;
	if (copy_to_user(user, &pin, sizeof(pin))) {
		vgpu_mem_unpin_of(file, pin.epoch, pin.offset);
		return -EFAULT;
	}
	return 0;
}

static long vgpu_ioctl_mem_unpin(struct file *file, void __user *user)
{
	struct vgpu_mem_unpin unpin;

	if (copy_from_user(&unpin, user, sizeof(unpin)))
		return -EFAULT;
	if (unpin.argsz < sizeof(unpin) || unpin.flags)
		return -EINVAL;
	return vgpu_mem_unpin_of(file, unpin.epoch, unpin.offset);
}

static int vgpu_window_check(const struct vgpu *vgpu, u64 epoch)
{
	return vgpu_epoch_over(vgpu, epoch) || vgpu_is_removed(vgpu) ? -ESTALE : 0;
}

static long vgpu_ioctl_publish(struct file *file, const struct vgpu_window_range *arg)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	struct vgpu_range *range;
	int ret = vgpu_engine_enter(file);

	if (ret)
		return ret;
	ret = vgpu_window_check(vgpu, arg->epoch);
	vgpu_engine_leave(file);
	if (ret)
		return ret;
	range = vgpu_range_new(vgpu, arg);
	if (IS_ERR(range))
		return PTR_ERR(range);
	ret = vgpu_engine_enter(file);
	if (!ret) {
		ret = vgpu_window_check(vgpu, arg->epoch) ?: vgpu_window_publish(vgpu, range);
		vgpu_engine_leave(file);
	}
	if (ret)
		vgpu_range_discard(range);
	return ret;
}

static long vgpu_ioctl_unpublish(struct file *file, const struct vgpu_window_range *arg)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	int ret = vgpu_engine_enter(file);

	if (ret)
		return ret;
	ret = vgpu_window_check(vgpu, arg->epoch) ?: vgpu_window_unpublish(vgpu, arg);
	vgpu_engine_leave(file);
	return ret;
}

static long vgpu_ioctl_window(struct file *file, void __user *user, bool publish)
{
	struct vgpu_window_range range;

	if (copy_from_user(&range, user, sizeof(range)))
		return -EFAULT;
	if (range.argsz < sizeof(range) || range.flags)
		return -EINVAL;
	return publish ? vgpu_ioctl_publish(file, &range) : vgpu_ioctl_unpublish(file, &range);
}

static int vgpu_engine_display(struct file *file, struct vgpu_display *display)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	int ret = vgpu_engine_enter(file);

	if (ret)
		return ret;
	if (vgpu_display_there(vgpu))
		vgpu_edid_describe(&vgpu->display.edid, display);
	else
		ret = -ENODEV;
	vgpu_engine_leave(file);
	return ret;
}

static long vgpu_ioctl_display(struct file *file, void __user *user)
{
	struct vgpu_display *display;
	long ret;

	display = kzalloc(sizeof(*display), GFP_KERNEL);
	if (!display)
		return -ENOMEM;
	if (copy_from_user(display, user, offsetof(struct vgpu_display, edid)))
		ret = -EFAULT;
	else if (display->argsz < sizeof(*display) || display->flags ||
		 memchr_inv(display->reserved, 0, sizeof(display->reserved)))
		ret = -EINVAL;
	else
		ret = vgpu_engine_display(file, display);
	if (!ret && copy_to_user(user, display, sizeof(*display)))
		ret = -EFAULT;
	kfree(display);
	return ret;
}

static long vgpu_ioctl_set_scanout(struct file *file, void __user *user)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	struct vgpu_scanout scanout;
	int ret;

	if (copy_from_user(&scanout, user, sizeof(scanout)))
		return -EFAULT;
	ret = vgpu_check_scanout(&scanout) ?: vgpu_engine_enter(file);
	if (ret)
		return ret;
	ret = vgpu_epoch_over(vgpu, scanout.epoch) ? -ESTALE :
						     vgpu_display_set_scanout(vgpu, &scanout);
	vgpu_engine_leave(file);
	return ret;
}

/* Copies an argument of STATE_SAVE and STATE_LOAD. */
static int vgpu_get_engine_state(struct vgpu_engine_state *arg, void __user *user)
{
	if (copy_from_user(arg, user, sizeof(*arg)))
		return -EFAULT;
	if (arg->argsz < sizeof(*arg) || arg->flags || memchr_inv(arg->reserved, 0, sizeof(arg->reserved)))
		return -EINVAL;
	return 0;
}

/* EAGAIN: @state is wanted. @error: the engine has one that cannot be taken. */
static int vgpu_state_saved(struct file *file, const struct vgpu_engine_state *arg, const void *state, int error)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	int ret = vgpu_engine_enter(file);

	if (ret)
		return ret;
	if (vgpu_epoch_over(vgpu, arg->epoch) || !vgpu_migration_engine_asked(vgpu))
		ret = -ESTALE;
	else if (!state && !error)
		ret = -EAGAIN;
	else
		vgpu_migration_engine_saves(vgpu, state, arg->size, error);
	vgpu_engine_leave(file);
	return ret;
}

static long vgpu_ioctl_state_save(struct file *file, void __user *user)
{
	struct vgpu_engine_state arg;
	void *state = NULL;
	int ret = vgpu_get_engine_state(&arg, user);

	if (!ret)
		ret = vgpu_state_saved(file, &arg, NULL, 0);
	/* It was asked for it, so that memory is needed. */
	if (ret != -EAGAIN)
		return ret;
	if (arg.size > VGPU_STATE_MAX)
		return vgpu_state_saved(file, &arg, NULL, -EMSGSIZE) ?: -EMSGSIZE;
	state = kvmalloc(max_t(u64, arg.size, 1), GFP_KERNEL_ACCOUNT);
	if (!state)
		return vgpu_state_saved(file, &arg, NULL, -ENOMEM) ?: -ENOMEM;
	ret = copy_from_user(state, u64_to_user_ptr(arg.buf), arg.size) ? -EFAULT : vgpu_state_saved(file, &arg, state, 0);
	kvfree(state);
	return ret;
}

static long vgpu_ioctl_state_load(struct file *file, void __user *user)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	struct vgpu_engine_state arg;
	void *state = NULL;
	long ret = vgpu_get_engine_state(&arg, user);

	ret = ret ?: vgpu_engine_enter(file);
	if (ret)
		return ret;
	if (vgpu_epoch_over(vgpu, arg.epoch))
		ret = -ESTALE;
	else
		state = vgpu_migration_engine_loads(vgpu, arg.size, &arg.size);
	vgpu_engine_leave(file);
	ret = ret ?: PTR_ERR_OR_ZERO(state);
	if (!ret && copy_to_user(u64_to_user_ptr(arg.buf), state, arg.size))
		ret = -EFAULT;
	if (!IS_ERR(state))
		kvfree(state);
	if ((!ret || ret == -EMSGSIZE) && copy_to_user(user, &arg, sizeof(arg)))
		ret = -EFAULT;
	return ret;
}

static long vgpu_ioctl_fail(struct file *file, void __user *user)
{
	struct vgpu *vgpu = vgpu_from_file(file);
	struct vgpu_engine_fail fail;
	int ret;

	if (copy_from_user(&fail, user, sizeof(fail)))
		return -EFAULT;
	if (fail.argsz < sizeof(fail) || fail.flags || !vgpu_text_ok(fail.reason, sizeof(fail.reason)))
		return -EINVAL;
	ret = vgpu_engine_enter(file);
	if (ret)
		return ret;
	vgpu_log(vgpu, err, "its engine gave up: %s\n", fail.reason);
	vgpu_device_lose(vgpu, fail.reason);
	vgpu_device_step(vgpu, VGPU_ON_FAILED);
	vgpu_device_settle(vgpu);
	vgpu_device_tell(vgpu);
	vgpu_engine_leave(file);
	return 0;
}

/* Calls of the attached engine. */
static long vgpu_engine_call(struct file *file, unsigned int cmd, void __user *user)
{
	switch (cmd) {
	case VGPU_ENGINE_READY:
		return vgpu_ioctl_ready(file, user);
	case VGPU_ENGINE_RESET_DONE:
		return vgpu_ioctl_reset_done(file, user);
	case VGPU_ENGINE_QUEUE_EXCHANGE:
		return vgpu_ioctl_exchange(file, user);
	case VGPU_ENGINE_MEM_PIN:
		return vgpu_ioctl_mem_pin(file, user);
	case VGPU_ENGINE_MEM_UNPIN:
		return vgpu_ioctl_mem_unpin(file, user);
	case VGPU_ENGINE_WINDOW_PUBLISH:
		return vgpu_ioctl_window(file, user, true);
	case VGPU_ENGINE_WINDOW_UNPUBLISH:
		return vgpu_ioctl_window(file, user, false);
	case VGPU_ENGINE_FAIL:
		return vgpu_ioctl_fail(file, user);
	case VGPU_ENGINE_DISPLAY:
		return vgpu_ioctl_display(file, user);
	case VGPU_ENGINE_SET_SCANOUT:
		return vgpu_ioctl_set_scanout(file, user);
	case VGPU_ENGINE_STATE_SAVE:
		return vgpu_ioctl_state_save(file, user);
	case VGPU_ENGINE_STATE_LOAD:
		return vgpu_ioctl_state_load(file, user);
	default:
		return -ENOTTY;
	}
}

long vgpu_engine_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;
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
	return ret ?: vgpu_engine_call(file, cmd, user);
}
