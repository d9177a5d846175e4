// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Life of the virtual device: power on, reset, the loss of its engine, removal. This file decides
 * the order of steps; the other files only do their part.
 *
 * An epoch is the time between two resets. It begins clean: nothing published, pinned or in flight.
 */
#include <linux/moduleparam.h>

#include "vgpu_private.h"

/* The one that QEMU's virtio devices have; guests look at the device id only. */
#define VGPU_PCI_SUBSYSTEM_ID	0x1100

static unsigned int vgpu_reset_timeout_ms = 10000;
module_param_named(reset_timeout_ms, vgpu_reset_timeout_ms, uint, 0644);
MODULE_PARM_DESC(reset_timeout_ms, "how long a reset waits for the engine before it counts as lost, a guest for its memory, and a VM that is saved for its state");

unsigned int vgpu_device_patience_ms(void)
{
	return READ_ONCE(vgpu_reset_timeout_ms);
}

/* How long a write of the guest waits for the end of a reset. */
#define VGPU_RESET_PATIENCE_MS	100

static void vgpu_device_uevent(struct vgpu *vgpu)
{
	mutex_lock(&vgpu->tell_lock);
	if (!vgpu_is_removed(vgpu))
		kobject_uevent(&vgpu_dev(vgpu)->kobj, KOBJ_CHANGE);
	mutex_unlock(&vgpu->tell_lock);
}

/*
 * Notifies udev's listeners that an attribute has changed, so that they need not poll it. The
 * values are in the attributes, so the event has no details, and one event a second can represent
 * all excess ones. Process context; under vgpu->lock or not.
 */
void vgpu_device_tell(struct vgpu *vgpu)
{
	if (vgpu_is_removed(vgpu))
		return;
	if (__ratelimit(&vgpu->tell_limit))
		vgpu_device_uevent(vgpu);
	else
		schedule_delayed_work(&vgpu->tell_work, HZ);
}

void vgpu_device_tell_work(struct work_struct *work)
{
	vgpu_device_uevent(container_of(to_delayed_work(work), struct vgpu, tell_work));
}

/* After vgpu_device_revoke(): waits for the event that is being sent. None follows. */
void vgpu_device_tell_over(struct vgpu *vgpu)
{
	mutex_lock(&vgpu->tell_lock);
	mutex_unlock(&vgpu->tell_lock);
}

static void vgpu_device_set_failure(struct vgpu *vgpu, const char *reason)
{
	spin_lock(&vgpu->state_lock);
	strscpy(vgpu->failure, reason, sizeof(vgpu->failure));
	spin_unlock(&vgpu->state_lock);
}

/* Nothing else changes the phase. A step that is not in the table is a fault of this driver. */
void vgpu_device_step(struct vgpu *vgpu, enum vgpu_occasion occasion)
{
	struct vgpu_phase next = vgpu->phase;

	lockdep_assert_held(&vgpu->lock);
	if (WARN_ONCE(!vgpu_phase_step(&next, occasion),
		      "vGPU: occasion %d must not come in phase %d/%d/%d\n", occasion, next.engine,
		      next.device, next.vm))
		return;
	spin_lock(&vgpu->state_lock);
	WRITE_ONCE(vgpu->phase.engine, next.engine);
	WRITE_ONCE(vgpu->phase.device, next.device);
	WRITE_ONCE(vgpu->phase.vm, next.vm);
	spin_unlock(&vgpu->state_lock);
}

/*
 * Ends the epoch, by a reset or because the VMM closes the device. The engine, if it has been given
 * something, is told to release it; see vgpu_device_begin_reset().
 */
static void vgpu_device_end_epoch(struct vgpu *vgpu, enum vgpu_occasion occasion)
{
	enum vgpu_engine_phase engine = vgpu->phase.engine;
	u64 ended = vgpu->epoch++;

	lockdep_assert_held(&vgpu->lock);
	vgpu_queue_forget(vgpu);
	vgpu_mem_end_epoch(vgpu);
	vgpu_window_unpublish_all(vgpu);
	vgpu_display_off(vgpu);
	vgpu_migration_forget(vgpu);
	vgpu_device_step(vgpu, occasion);
	if (vgpu->phase.engine != engine) {
		vgpu->engine.event_epoch = ended;
		vgpu_engine_event(vgpu, VGPU_EVENT_RESET, 0);
	}
}

/*
 * Whether a reset can end: the engine has released everything, no guest memory is pinned any more, and if
 * an engine was lost, the next one is ready. Where none is to be expected, it need not be, unless memory
 * is lent: the processes of the last one may be alive.
 */
static bool vgpu_device_settled(struct vgpu *vgpu)
{
	enum vgpu_engine_phase engine = vgpu->phase.engine;

	if (vgpu_engine_must_release(engine) || !vgpu_mem_released(vgpu))
		return false;
	if (vgpu->phase.device != VGPU_DEVICE_IS_REVIVING || vgpu_engine_can_serve(engine))
		return true;
	return (engine == VGPU_ENGINE_IS_FAILED || vgpu_is_removed(vgpu)) && !vgpu_mem_is_lent(vgpu);
}

static void vgpu_device_end_reset(struct vgpu *vgpu)
{
	vgpu_queue_forget(vgpu);
	vgpu_mem_forget_loans(vgpu);
	vgpu_regs_reset(&vgpu->regs);
	vgpu->regs.num_capsets = vgpu->engine.num_capsets;
	vgpu_device_step(vgpu, VGPU_ON_SETTLED);
	wake_up_all(&vgpu->state_wait);
}

/*
 * To be called when the engine's state has changed: ends a reset that waits for it, and wakes all
 * other waiters.
 */
void vgpu_device_settle(struct vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	if (vgpu_is_resetting(vgpu) && vgpu_device_settled(vgpu))
		vgpu_device_end_reset(vgpu);
	wake_up_all(&vgpu->state_wait);
}

/* The engine has not let go in time. */
static void vgpu_device_lose_slow(struct vgpu *vgpu)
{
	if (vgpu_is_open(vgpu)) {
		vgpu_device_lose(vgpu, "the engine did not release everything in time when the guest reset the device");
		return;
	}
	vgpu_log(vgpu, warn, "the engine did not release in time what a VM had that has closed the device; the next VM needs another engine\n");
	vgpu_device_lose(vgpu, "the engine did not release everything in time when the VM closed the device");
}

/* A stock engine never does so. */
void vgpu_device_lose_stayer(struct vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	vgpu_log(vgpu, warn, "the engine answered the end of its VM instead of ending, so no other VM gets it; if it runs on, 'systemctl kill -s KILL vgpu-engine@%s' ends it\n",
		 dev_name(vgpu_dev(vgpu)));
	vgpu_device_lose(vgpu, "the engine did not end with its VM");
}

/* The time limit of a reset, and of an engine that has to let go of what a VM had. */
void vgpu_device_reset_work(struct work_struct *work)
{
	struct vgpu *vgpu = container_of(to_delayed_work(work), struct vgpu, reset_work);

	mutex_lock(&vgpu->lock);
	if (time_after_eq(jiffies, vgpu->reset_end)) {
		if (vgpu_engine_must_release(vgpu->phase.engine))
			vgpu_device_lose_slow(vgpu);
		if (vgpu_is_resetting(vgpu))
			vgpu_device_end_reset(vgpu);
	}
	mutex_unlock(&vgpu->lock);
}

static void vgpu_device_limit_reset(struct vgpu *vgpu)
{
	unsigned long timeout = msecs_to_jiffies(vgpu_device_patience_ms());

	vgpu->reset_end = jiffies + timeout;
	mod_delayed_work(system_wq, &vgpu->reset_work, timeout);
}

/*
 * Begins a reset. It ends when the engine has released the epoch. If the engine was lost, before or
 * meanwhile, it ends when the next one is ready, so that the guest's driver finds one. There is a
 * time limit for both. Until then the status does not read as 0 (virtio 1.2, 4.1.4.3.1), and writes
 * to the registers do nothing.
 */
static void vgpu_device_begin_reset(struct vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	vgpu_device_end_epoch(vgpu, VGPU_ON_RESET);
	vgpu_device_settle(vgpu);
	if (vgpu_is_resetting(vgpu))
		vgpu_device_limit_reset(vgpu);
}

/* Drops vgpu->lock while waiting. migration.lock may be held, for which only threads of the same VMM wait. */
static void vgpu_device_wait_reset(struct vgpu *vgpu, unsigned long timeout)
{
	if (!vgpu_is_resetting(vgpu))
		return;
	mutex_unlock(&vgpu->lock);
	vgpu_wait_timeout(vgpu->state_wait, !vgpu_is_resetting(vgpu), TASK_FREEZABLE_UNSAFE, timeout);
	mutex_lock(&vgpu->lock);
}

/* VFIO_DEVICE_RESET waits for the end, because the VMM cannot detect it otherwise. */
void vgpu_device_reset(struct vgpu *vgpu)
{
	vgpu_device_begin_reset(vgpu);
	vgpu_device_wait_reset(vgpu, MAX_SCHEDULE_TIMEOUT);
}

/*
 * The guest wrote 0 to the status. QEMU is stopped while this write lasts, and Linux reads the
 * status until it is 0, so this returns early. edk2 does not read it, but an engine usually
 * finishes within this time, and edk2's next writes wait, too.
 */
static void vgpu_device_guest_reset(struct vgpu *vgpu)
{
	vgpu_device_begin_reset(vgpu);
	vgpu_device_wait_reset(vgpu, msecs_to_jiffies(VGPU_RESET_PATIENCE_MS));
}

/*
 * The VMM closes the device; opening it again waits for the engine, for no longer than a reset does:
 * one that is well but never lets go would keep the device from every VM. An engine that has served
 * the VM is told even if the guest has reset the device since, or the engine is still busy with
 * that: it must not serve the next VM, which may be another customer's, so it is detached even if it
 * does not end by itself.
 */
void vgpu_device_power_off(struct vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	vgpu_device_end_epoch(vgpu, VGPU_ON_CLOSE);
	vgpu_regs_reset(&vgpu->regs);
	wake_up_all(&vgpu->state_wait);
	if (vgpu_engine_must_release(vgpu->phase.engine))
		vgpu_device_limit_reset(vgpu);
}

/* The device's state when a VMM opens it. */
int vgpu_device_power_on(struct vgpu *vgpu)
{
	int ret = vgpu_display_open(vgpu);

	lockdep_assert_held(&vgpu->lock);
	if (ret) {
		vgpu_device_step(vgpu, VGPU_ON_CLOSE);
		return ret;
	}
	vgpu_mem_forget_loans(vgpu);
	vgpu_window_open(vgpu);
	vgpu->window_bytes_open = vgpu->params.window_bytes;
	vgpu_pci_init(&vgpu->pci, vgpu->window_bytes_open, VGPU_PCI_SUBSYSTEM_ID);
	vgpu_regs_init(&vgpu->regs, vgpu->params.scanouts, vgpu->engine.num_capsets);
	vgpu_device_set_failure(vgpu, "");
	return 0;
}

void vgpu_device_needs_reset(struct vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	if (vgpu_regs_needs_reset(&vgpu->regs))
		vgpu_irq_config(vgpu);
}

/*
 * The guest's driver is up, or was where the VM was saved. Without an engine it gets errors instead of
 * no answer.
 */
bool vgpu_device_give_engine(struct vgpu *vgpu)
{
	bool lost = vgpu_is_lost(vgpu);

	lockdep_assert_held(&vgpu->lock);
	if (!lost && vgpu_engine_can_serve(vgpu->phase.engine)) {
		vgpu_device_step(vgpu, VGPU_ON_DRIVER_OK);
		return true;
	}
	if (!lost)
		vgpu_log(vgpu, warn, "no engine is running; the guest gets errors until it resets the device\n");
	vgpu_device_step(vgpu, VGPU_ON_DRIVER_ALONE);
	return false;
}

static void vgpu_device_driver_ok(struct vgpu *vgpu)
{
	if (!vgpu_device_give_engine(vgpu)) {
		vgpu_device_needs_reset(vgpu);
		return;
	}
	/* It works again. */
	vgpu_device_set_failure(vgpu, "");
	vgpu_engine_event(vgpu, VGPU_EVENT_KICK, BIT(VGPU_NUM_QUEUES) - 1);
}

/*
 * The guest has disabled bus mastering. From now on its memory may be another kernel's (kexec), so
 * nothing of this life may reach it, even if the next kernel enables bus mastering before it resets
 * the device. The engine has no access any more when this returns; unpinning may take longer. What is
 * lent is another driver's as well, which no reset of ours stops: the engine has to end who uses it, and
 * for that there is the reset.
 */
static void vgpu_device_stop(struct vgpu *vgpu)
{
	if (vgpu_mem_is_lent(vgpu)) {
		vgpu_device_reset(vgpu);
		return;
	}
	vgpu_regs_stop(&vgpu->regs);
	vgpu_queue_forget(vgpu);
	vgpu_mem_release_all(vgpu);
}

/* The guest has enabled it. Requests from before were not looked at, and nothing announces them. */
static void vgpu_device_go(struct vgpu *vgpu)
{
	if (vgpu_is_lost(vgpu))
		vgpu_queue_answer_lost(vgpu);
	else if (vgpu_regs_driver_ok(&vgpu->regs))
		vgpu_engine_event(vgpu, VGPU_EVENT_KICK, BIT(VGPU_NUM_QUEUES) - 1);
}

void vgpu_device_config_write(struct vgpu *vgpu, u64 offset, const void *buf, size_t len)
{
	bool master = vgpu_pci_bus_master(&vgpu->pci);
	struct vgpu_pci_cfg_access access;

	lockdep_assert_held(&vgpu->lock);
	vgpu_pci_write(&vgpu->pci, offset, buf, len);
	if (vgpu_pci_cfg_access(&vgpu->pci, offset, len, &access) && access.bar == VGPU_BAR_REGS)
		vgpu_device_write(vgpu, access.offset, access.data, access.len);
	if (master && !vgpu_pci_bus_master(&vgpu->pci))
		vgpu_device_stop(vgpu);
	if (!master && vgpu_pci_bus_master(&vgpu->pci))
		vgpu_device_go(vgpu);
}

void vgpu_device_config_read(struct vgpu *vgpu, u64 offset, void *buf, size_t len)
{
	struct vgpu_pci_cfg_access access;

	lockdep_assert_held(&vgpu->lock);
	if (vgpu_pci_cfg_access(&vgpu->pci, offset, len, &access)) {
		memset(access.data, 0, access.len);
		if (access.bar == VGPU_BAR_REGS)
			vgpu_device_read(vgpu, access.offset, access.data, access.len);
		else if (access.bar == VGPU_BAR_WINDOW)
			vgpu_window_read(access.offset, access.data, access.len);
	}
	vgpu_pci_read(&vgpu->pci, offset, buf, len);
}

/*
 * A doorbell without vgpu->lock, because the VM waits for it: a request that is just being copied
 * must not delay it. False: the write is none, or has to wait for a reset.
 */
bool vgpu_device_doorbell(struct vgpu *vgpu, u64 offset, size_t len)
{
	int q = vgpu_regs_doorbell(&vgpu->regs, offset, len);

	if (q < 0 || vgpu_is_resetting(vgpu))
		return false;
	vgpu_engine_kick(vgpu, q);
	/* vgpu_engine_detach() has the other: either this sees that the engine is lost, or the loss this chain. */
	smp_mb();
	if (vgpu_is_lost(vgpu)) {
		mutex_lock(&vgpu->lock);
		if (vgpu_is_lost(vgpu))
			vgpu_queue_answer_lost(vgpu);
		mutex_unlock(&vgpu->lock);
	}
	return true;
}

void vgpu_device_write(struct vgpu *vgpu, u64 offset, const void *buf, size_t len)
{
	u32 effects, q;

	lockdep_assert_held(&vgpu->lock);
	/* A driver that does not wait for the end of its reset is delayed until then. */
	vgpu_device_wait_reset(vgpu, msecs_to_jiffies(VGPU_RESET_PATIENCE_MS));
	if (vgpu_is_resetting(vgpu))
		return;

	effects = vgpu_regs_write(&vgpu->regs, offset, buf, len);
	if (effects & VGPU_EFFECT_RESET)
		vgpu_device_guest_reset(vgpu);
	if (effects & VGPU_EFFECT_DRIVER_OK)
		vgpu_device_driver_ok(vgpu);
	for (q = 0; q < VGPU_NUM_QUEUES; q++)
		if (effects & VGPU_EFFECT_KICK(q))
			vgpu_engine_kick(vgpu, q);
	if (effects & VGPU_EFFECT_KICKS && vgpu_is_lost(vgpu))
		vgpu_queue_answer_lost(vgpu);
}

void vgpu_device_read(struct vgpu *vgpu, u64 offset, void *buf, size_t len)
{
	lockdep_assert_held(&vgpu->lock);
	vgpu_regs_read(&vgpu->regs, offset, buf, len);
}

/*
 * The guest has lost its engine, whose programs may still use memory that was lent. It gives that to others
 * when it has its answers. So it gets them when the next engine is there, which is not started before all
 * processes of the last one have ended; but no later than a reset would end.
 */
bool vgpu_device_withholds_answers(struct vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	return !vgpu->engine.file && time_before(jiffies, vgpu->answers_end) && vgpu_mem_is_lent(vgpu);
}

/*
 * The engine has died, failed or is stuck. Rings stay readable, device memory is removed, and every
 * request gets an error, so that the guest neither hangs nor takes garbage for an answer.
 */
void vgpu_device_lose(struct vgpu *vgpu, const char *reason)
{
	bool lost = vgpu_is_open(vgpu) &&
		    (vgpu->phase.engine == VGPU_ENGINE_IS_BUSY || vgpu_regs_driver_ok(&vgpu->regs));

	lockdep_assert_held(&vgpu->lock);
	if (!vgpu->engine.file)
		return;
	vgpu_device_set_failure(vgpu, reason);
	vgpu_engine_detach(vgpu, lost ? VGPU_ON_ENGINE_LOST : VGPU_ON_ENGINE_LEFT);
	vgpu_window_keep_system_pages(vgpu);
	vgpu_mem_release_all(vgpu);
	vgpu_migration_forget(vgpu);
	vgpu->answers_end = jiffies + msecs_to_jiffies(vgpu_device_patience_ms());
	if (lost) {
		vgpu_log(vgpu, warn, "%s; the guest gets errors until it resets the device\n", reason);
		vgpu->stats.engine_losses++;
		if (vgpu_is_lost(vgpu))
			vgpu_device_needs_reset(vgpu);
		vgpu_queue_answer_lost(vgpu);
	}
	vgpu_device_settle(vgpu);
	vgpu_device_tell(vgpu);
}

/* By itself. One that ends because its VM has is no failure. */
void vgpu_device_engine_ends(struct vgpu *vgpu, const char *reason)
{
	lockdep_assert_held(&vgpu->lock);
	vgpu_device_lose(vgpu, vgpu->phase.engine == VGPU_ENGINE_IS_LEAVING ? "" : reason);
}

/*
 * What was noticed where vgpu->lock cannot be taken: the engine's address space has ended, or the vGPU
 * was told to go. Then its window is emptied; the notifiers of window.c have removed the GPU's own
 * memory from it, when the GPU's driver went away.
 */
void vgpu_device_look_work(struct work_struct *work)
{
	struct vgpu *vgpu = container_of(work, struct vgpu, look_work);

	mutex_lock(&vgpu->lock);
	if (vgpu_engine_mm_gone(vgpu->engine.attached))
		vgpu_device_engine_ends(vgpu, "the engine died");
	if (vgpu_is_removed(vgpu))
		vgpu_window_unpublish_all(vgpu);
	vgpu_device_settle(vgpu);
	mutex_unlock(&vgpu->lock);
}

/* Further answers for a guest that has lost its engine: see vgpu_queue_answer_lost(). */
void vgpu_device_answer_work(struct work_struct *work)
{
	struct vgpu *vgpu = container_of(to_delayed_work(work), struct vgpu, answer_work);

	mutex_lock(&vgpu->lock);
	if (vgpu_is_lost(vgpu))
		vgpu_queue_answer_lost(vgpu);
	mutex_unlock(&vgpu->lock);
}

/* A VMM that waits for an engine in open must not be waited for. */
void vgpu_device_leave(struct vgpu *vgpu)
{
	cmpxchg(&vgpu->exit, VGPU_STAYS, VGPU_LEAVES);
	wake_up_all(&vgpu->state_wait);
}

/*
 * The GPU or the mdev goes away: asks VMM and engine to leave, and refuses to publish from now on.
 * Does not wait; vgpu_device_look_work() does the rest.
 */
void vgpu_device_revoke(struct vgpu *vgpu)
{
	if (xchg(&vgpu->exit, VGPU_REMOVED) == VGPU_REMOVED)
		return;
	vgpu_engine_event(vgpu, VGPU_EVENT_REMOVED, 0);
	wake_up_all(&vgpu->state_wait);
	vgpu_irq_request(vgpu);
	queue_work(system_unbound_wq, &vgpu->look_work);
}
