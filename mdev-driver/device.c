// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Life of the virtual device: power on, reset, the loss of its engine, removal. What happens in which
 * order is decided here; the other files only do their part.
 *
 * An epoch is the time between two resets. It begins clean: nothing published, pinned or in flight.
 */
#include <linux/moduleparam.h>

#include "vgpu_private.h"

#include "trace.h"

/* The one that virtio devices of QEMU carry; guests look at the device id only. */
#define VGPU_PCI_SUBSYSTEM_ID	0x1100

static unsigned int vgpu_reset_timeout_ms = 10000;
module_param_named(reset_timeout_ms, vgpu_reset_timeout_ms, uint, 0644);
MODULE_PARM_DESC(reset_timeout_ms, "how long a reset waits for the engine before it counts as lost");

/*
 * Tells udev's listeners that an attribute has changed which they need not poll for then. What and how is in the
 * attributes, so the event says nothing more, and one event a second can stand for all those that are too many. Process
 * context; under vgpu->lock or not.
 */
void vgpu_device_tell(struct vgpu *vgpu)
{
	if (READ_ONCE(vgpu->removed))
		return;
	if (__ratelimit(&vgpu->tell_limit))
		kobject_uevent(&vgpu_dev(vgpu)->kobj, KOBJ_CHANGE);
	else
		schedule_delayed_work(&vgpu->tell_work, HZ);
}

/* vgpu->lock keeps the vGPU from being removed meanwhile. */
void vgpu_device_tell_work(struct work_struct *work)
{
	struct vgpu *vgpu = container_of(to_delayed_work(work), struct vgpu, tell_work);

	mutex_lock(&vgpu->lock);
	if (!vgpu->removed)
		kobject_uevent(&vgpu_dev(vgpu)->kobj, KOBJ_CHANGE);
	mutex_unlock(&vgpu->lock);
}

/* Ends the epoch. The engine is told to let go of what it has; see vgpu_device_reset(). */
static void vgpu_device_end_epoch(struct vgpu *vgpu)
{
	u64 ended = vgpu->epoch++;

	lockdep_assert_held(&vgpu->lock);
	vgpu_queue_forget(vgpu);
	vgpu_mem_end_epoch(vgpu);
	vgpu_window_unpublish_all(vgpu);
	vgpu_display_off(vgpu);
	vgpu->lost = false;
	if (vgpu->engine.file && vgpu->engine.used) {
		vgpu->engine.used = false;
		vgpu->engine.clean = false;
		vgpu->engine.event_epoch = ended;
		vgpu_engine_event(vgpu, VGPU_EVENT_RESET, 0);
	}
}

static bool vgpu_device_let_go(struct vgpu *vgpu)
{
	return !READ_ONCE(vgpu->engine.file) || READ_ONCE(vgpu->engine.clean);
}

/* Whether a reset need not wait any longer; @engine: for a new engine, too. */
static bool vgpu_device_settled(struct vgpu *vgpu, bool engine)
{
	if (READ_ONCE(vgpu->removed) || READ_ONCE(vgpu->engine.failed))
		engine = false;
	return vgpu_device_let_go(vgpu) && (!engine || READ_ONCE(vgpu->engine.ready));
}

/* Drops vgpu->lock while waiting. */
static void vgpu_device_wait_settled(struct vgpu *vgpu, bool engine)
{
	unsigned long timeout = msecs_to_jiffies(READ_ONCE(vgpu_reset_timeout_ms));
	long left;

	vgpu->resetting++;
	mutex_unlock(&vgpu->lock);
	left = wait_event_killable_timeout(vgpu->state_wait, vgpu_device_settled(vgpu, engine),
					   timeout);
	mutex_lock(&vgpu->lock);
	vgpu->resetting--;
	if (!left && !vgpu_device_let_go(vgpu))
		vgpu_device_lose(vgpu, "the engine did not let go in time when the guest reset the device");
}

/*
 * Reset by the guest (status 0), the VMM (VFIO_DEVICE_RESET) or the end of the VMM. With @wait it
 * returns only when the engine has let go, and where the last one was lost, when the next one is
 * ready, so that the guest's driver finds one; without, opening the device again waits for both.
 */
void vgpu_device_reset(struct vgpu *vgpu, bool wait)
{
	bool was_lost = vgpu->lost;

	lockdep_assert_held(&vgpu->lock);
	vgpu_device_end_epoch(vgpu);
	if (wait)
		vgpu_device_wait_settled(vgpu, was_lost);
	vgpu_regs_reset(&vgpu->regs);
	vgpu->regs.num_capsets = vgpu->engine.num_capsets;
	vgpu->lost = false;
}

/* The device as it is when a VMM opens it. */
int vgpu_device_power_on(struct vgpu *vgpu)
{
	int ret = vgpu_display_open(vgpu);

	lockdep_assert_held(&vgpu->lock);
	if (ret)
		return ret;
	vgpu_window_open(vgpu);
	vgpu->window_bytes_open = vgpu->params.window_bytes;
	vgpu_pci_init(&vgpu->pci, vgpu->window_bytes_open, VGPU_PCI_SUBSYSTEM_ID);
	vgpu_regs_init(&vgpu->regs, vgpu->params.scanouts, vgpu->engine.num_capsets);
	vgpu->failure[0] = '\0';
	return 0;
}

void vgpu_device_needs_reset(struct vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	if (vgpu_regs_needs_reset(&vgpu->regs))
		vgpu_irq_config(vgpu);
}

/* The guest's driver is up. Without an engine it gets errors, not silence. */
static void vgpu_device_driver_ok(struct vgpu *vgpu)
{
	if (!vgpu->engine.ready || !vgpu->engine.clean) {
		vgpu_log(vgpu, warn, "no engine is running; the guest gets errors until it resets the device\n");
		vgpu->lost = true;
		vgpu_device_needs_reset(vgpu);
		return;
	}
	vgpu->engine.used = true;
	/* It works again. */
	vgpu->failure[0] = '\0';
	vgpu_engine_event(vgpu, VGPU_EVENT_KICK, BIT(VGPU_NUM_QUEUES) - 1);
}

/*
 * The guest has turned bus mastering off: from now on its memory may be another kernel's (kexec), so nothing of this life
 * may reach it, even if the next kernel turns bus mastering on before it resets the device.
 */
static void vgpu_device_stop(struct vgpu *vgpu)
{
	vgpu_regs_stop(&vgpu->regs);
	vgpu_queue_forget(vgpu);
	vgpu_mem_release_all(vgpu);
}

void vgpu_device_config_write(struct vgpu *vgpu, u64 offset, const void *buf, size_t len)
{
	bool master = vgpu_pci_bus_master(&vgpu->pci);

	lockdep_assert_held(&vgpu->lock);
	vgpu_pci_write(&vgpu->pci, offset, buf, len);
	if (master && !vgpu_pci_bus_master(&vgpu->pci))
		vgpu_device_stop(vgpu);
}

static void vgpu_device_kick(struct vgpu *vgpu, u32 queue)
{
	vgpu->stats.doorbells++;
	trace_vgpu_doorbell(vgpu->minor, queue);
	if (vgpu->lost)
		vgpu_queue_answer_lost(vgpu);
	else
		vgpu_engine_event(vgpu, VGPU_EVENT_KICK, BIT(queue));
}

void vgpu_device_write(struct vgpu *vgpu, u64 offset, const void *buf, size_t len)
{
	u32 effects, q;

	lockdep_assert_held(&vgpu->lock);
	/* One of the VM's processors waits for a reset; what others do meanwhile is void. */
	if (vgpu->resetting)
		return;

	effects = vgpu_regs_write(&vgpu->regs, offset, buf, len);
	if (effects & VGPU_EFFECT_RESET)
		vgpu_device_reset(vgpu, true);
	if (effects & VGPU_EFFECT_DRIVER_OK)
		vgpu_device_driver_ok(vgpu);
	for (q = 0; q < VGPU_NUM_QUEUES; q++)
		if (effects & VGPU_EFFECT_KICK(q))
			vgpu_device_kick(vgpu, q);
}

void vgpu_device_read(struct vgpu *vgpu, u64 offset, void *buf, size_t len)
{
	lockdep_assert_held(&vgpu->lock);
	vgpu_regs_read(&vgpu->regs, offset, buf, len);
}

/*
 * The engine has died, failed or is stuck. Rings stay readable, device memory goes, and every request
 * gets an error, so that the guest neither hangs nor takes garbage for an answer.
 */
void vgpu_device_lose(struct vgpu *vgpu, const char *reason)
{
	bool in_use = vgpu->engine.used || vgpu_regs_driver_ok(&vgpu->regs);

	lockdep_assert_held(&vgpu->lock);
	if (!vgpu->engine.file)
		return;
	vgpu_engine_detach(vgpu);
	strscpy(vgpu->failure, reason, sizeof(vgpu->failure));
	vgpu_window_keep_system_pages(vgpu);
	vgpu_mem_release_all(vgpu);
	if (in_use && vgpu->open) {
		vgpu_log(vgpu, warn, "%s; the guest gets errors until it resets the device\n", reason);
		vgpu->stats.engine_losses++;
		vgpu->lost = true;
		vgpu_device_needs_reset(vgpu);
		vgpu_queue_answer_lost(vgpu);
	}
	wake_up_all(&vgpu->state_wait);
	vgpu_device_tell(vgpu);
}

/* Goes on with what could not be done where it was noticed. */
void vgpu_device_lost_work(struct work_struct *work)
{
	struct vgpu *vgpu = container_of(work, struct vgpu, lost_work);

	mutex_lock(&vgpu->lock);
	if (vgpu->engine.file && READ_ONCE(vgpu->engine.mm_gone))
		vgpu_device_lose(vgpu, "the engine died");
	else if (vgpu->lost && vgpu->open)
		vgpu_queue_answer_lost(vgpu);
	mutex_unlock(&vgpu->lock);
}

/* The GPU or the mdev goes away: nothing of the GPU stays reachable, and all are asked to leave. */
void vgpu_device_revoke(struct vgpu *vgpu)
{
	mutex_lock(&vgpu->lock);
	if (!vgpu->removed) {
		WRITE_ONCE(vgpu->leaving, true);
		WRITE_ONCE(vgpu->removed, true);
		vgpu_window_unpublish_all(vgpu);
		vgpu_engine_event(vgpu, VGPU_EVENT_REMOVED, 0);
		wake_up_all(&vgpu->state_wait);
	}
	mutex_unlock(&vgpu->lock);
	vgpu_irq_request(vgpu);
}
