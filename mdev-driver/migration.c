// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * VFIO's migration of a vGPU (include/uapi/linux/vfio.h, VFIO_DEVICE_FEATURE_MIGRATION): the
 * states, and what is saved and loaded. migration_file.c has the file through which the VMM
 * transfers it, model/migration_data.h its content.
 *
 * What the GPU has computed for a guest cannot be moved. Registers, queues, requests in flight
 * and what the engine says of itself can: resources in guest memory, and the picture. Programs
 * that use the GPU lose it, as when a worker dies. A guest whose GPU is idle notices nothing.
 *
 * A VMM tracks the memory that we write by VFIO's type1, which counts every page as written that
 * is pinned.
 */
#include <linux/slab.h>

#include "migration.h"

static struct vgpu_state_identity vgpu_migration_identity(struct vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	return (struct vgpu_state_identity) {
		.window_bytes = vgpu->window_bytes_open,
		.vram_bytes = READ_ONCE(vgpu->params.vram_bytes),
		.features = vgpu->regs.device_features,
		.renderer = vgpu->engine.renderer,
		.num_scanouts = vgpu->regs.num_scanouts,
		.num_capsets = vgpu->regs.num_capsets,
	};
}

static void vgpu_migration_drop_body(struct vgpu_migration *migration)
{
	if (!IS_ERR(migration->body))
		kvfree(migration->body);
	migration->body = NULL;
}

/* The epoch is over, or the engine is lost: what was loaded for it is of no use. */
void vgpu_migration_forget(struct vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	kvfree(vgpu->migration.engine_state);
	vgpu->migration.engine_state = NULL;
}

static void vgpu_migration_drop_file(struct vgpu_migration *migration)
{
	if (!migration->file)
		return;
	vgpu_migration_file_end(migration->file);
	fput(migration->file);
	migration->file = NULL;
}

/*
 * The VM stops. From now on the driver writes nothing into its memory. The engine may still write what
 * it has pinned for writing, for the requests that it has: taking the pins away would make it, and
 * whoever waits for it, wait for the VM. What it writes then is saved only if the VMM has been saving
 * since before the stop (vgpu_migration_saves_answers()).
 */
static void vgpu_migration_stop(struct vgpu *vgpu)
{
	mutex_lock(&vgpu->lock);
	vgpu_device_step(vgpu, VGPU_ON_STOP);
	mutex_unlock(&vgpu->lock);
}

/* The guest of a saved VM may have missed an interrupt, and its monitor may be another one. */
static void vgpu_migration_wake_guest(struct vgpu *vgpu)
{
	u32 q;

	for (q = 0; q < VGPU_NUM_QUEUES; q++)
		vgpu_queue_interrupt(vgpu, q);
	if (vgpu_display_there(vgpu))
		vgpu_regs_display_changed(&vgpu->regs);
	vgpu_irq_config(vgpu);
}

/* The VM goes on, here or where it was loaded. */
static void vgpu_migration_go_on(struct vgpu *vgpu)
{
	struct vgpu_migration *migration = &vgpu->migration;
	u32 events = VGPU_EVENT_KICK;
	bool loaded;

	mutex_lock(&vgpu->lock);
	loaded = vgpu->phase.vm == VGPU_VM_IS_LOADED;
	vgpu_device_step(vgpu, VGPU_ON_GO);
	if (migration->engine_state)
		events |= VGPU_EVENT_LOAD;
	if (vgpu_regs_driver_ok(&vgpu->regs)) {
		vgpu_queue_deliver(vgpu);
		if (vgpu_is_lost(vgpu))
			vgpu_queue_answer_lost(vgpu);
		else
			vgpu_engine_event(vgpu, events, BIT(VGPU_NUM_QUEUES) - 1);
		if (loaded)
			vgpu_migration_wake_guest(vgpu);
	}
	mutex_unlock(&vgpu->lock);
}

/*
 * Whether the answers of the time since the stop are saved. A VMM that has been saving while the VM was
 * running (PRE_COPY) copies the pages that the engine could write after this step. One that stopped the
 * VM first may have copied them already, so the guest must not be told of a transfer that it does not
 * see: it gets errors. Answers that were loaded are of the same time as the memory.
 */
static bool vgpu_migration_saves_answers(const struct vgpu *vgpu)
{
	return vgpu->migration.state != VFIO_DEVICE_STATE_STOP || vgpu->phase.vm == VGPU_VM_IS_LOADED;
}

/* All that follows the header; a buffer of *size bytes. @state: the engine's. */
static u8 *vgpu_migration_pack(struct vgpu *vgpu, const void *state, size_t state_size, size_t *size)
{
	bool answers = vgpu_migration_saves_answers(vgpu);
	size_t chains = vgpu_queue_state_size(vgpu, answers);
	u8 *body, *at;

	lockdep_assert_held(&vgpu->lock);
	*size = VGPU_STATE_DEVICE_SIZE + chains + sizeof(u32) + state_size;
	if (*size > VGPU_STATE_BODY_MAX)
		return ERR_PTR(-E2BIG);
	body = kvmalloc(*size, GFP_KERNEL_ACCOUNT);
	if (!body)
		return ERR_PTR(-ENOMEM);
	vgpu_state_put_device(body, &vgpu->pci, &vgpu->regs, vgpu_is_lost(vgpu));
	at = body + VGPU_STATE_DEVICE_SIZE;
	vgpu_queue_state_put(vgpu, at, answers);
	at += chains;
	vgpu_put_le32(at, state_size);
	if (state_size)
		memcpy(at + sizeof(u32), state, state_size);
	return body;
}

/* A reset that waits for the engine ends in bounded time. */
static int vgpu_migration_wait_reset(struct vgpu *vgpu)
{
	long left = vgpu_wait_timeout(vgpu->state_wait, !vgpu_is_resetting(vgpu), TASK_FREEZABLE_UNSAFE,
				      msecs_to_jiffies(vgpu_device_patience_ms()) + HZ);

	return left > 0 ? 0 : left ?: -ETIMEDOUT;
}

static bool vgpu_migration_engine_said(struct vgpu *vgpu)
{
	return READ_ONCE(vgpu->migration.body) || READ_ONCE(vgpu->phase.engine) != VGPU_ENGINE_IS_BUSY;
}

/*
 * Asks an engine that the guest has used for its state. A lost one has none, and one that has not
 * got yet what was loaded for it would say nothing of that.
 */
static int vgpu_migration_ask_engine(struct vgpu *vgpu)
{
	struct vgpu_migration *migration = &vgpu->migration;
	unsigned int patience = vgpu_device_patience_ms();
	long left;

	mutex_lock(&vgpu->lock);
	migration->asked = vgpu->phase.engine == VGPU_ENGINE_IS_BUSY && !migration->engine_state;
	if (migration->asked)
		vgpu_engine_event(vgpu, VGPU_EVENT_SAVE, 0);
	mutex_unlock(&vgpu->lock);
	if (!migration->asked)
		return 0;

	left = vgpu_wait_timeout(vgpu->state_wait, vgpu_migration_engine_said(vgpu), TASK_FREEZABLE_UNSAFE,
				 msecs_to_jiffies(patience));
	mutex_lock(&vgpu->lock);
	migration->asked = false;
	mutex_unlock(&vgpu->lock);
	if (left < 0)
		return left;
	if (!left)
		vgpu_log(vgpu, err, "can't be saved: its engine did not answer in %u ms\n", patience);
	return left ? 0 : -ETIMEDOUT;
}

/* What is saved, if the engine had nothing to say. */
static int vgpu_migration_fill_body(struct vgpu *vgpu)
{
	struct vgpu_migration *migration = &vgpu->migration;
	struct vgpu_state_identity now = vgpu_migration_identity(vgpu);

	lockdep_assert_held(&vgpu->lock);
	/* The amount of memory may change while the VM runs; the target has accepted the earlier one. */
	now.vram_bytes = migration->identity.vram_bytes;
	/* The header was for another engine. */
	if (memcmp(&now, &migration->identity, sizeof(now)))
		return -EAGAIN;
	if (!migration->body)
		migration->body = vgpu_migration_pack(vgpu, migration->engine_state,
						      migration->engine_state ? migration->engine_size : 0,
						      &migration->body_size);
	return PTR_ERR_OR_ZERO(migration->body);
}

/* Completes the file. */
static int vgpu_migration_save(struct vgpu *vgpu)
{
	struct vgpu_migration *migration = &vgpu->migration;
	int ret = vgpu_migration_wait_reset(vgpu) ?: vgpu_migration_ask_engine(vgpu);

	mutex_lock(&vgpu->lock);
	ret = ret ?: vgpu_migration_fill_body(vgpu);
	mutex_unlock(&vgpu->lock);
	/* Only the engine makes another one, and it is not asked any more. */
	if (!ret)
		ret = vgpu_migration_file_complete(migration->file, migration->body, migration->body_size);
	vgpu_migration_drop_body(migration);
	return ret;
}

/* A new file for the VMM: to read, with the header in it, or to write. */
static struct file *vgpu_migration_open_file(struct vgpu *vgpu, bool save)
{
	struct vgpu_state_identity identity;
	struct file *file;

	mutex_lock(&vgpu->lock);
	identity = vgpu_migration_identity(vgpu);
	mutex_unlock(&vgpu->lock);
	if (!identity.renderer) {
		vgpu_log(vgpu, err, "can't be saved or loaded: its engine is missing, too old, or runs OpenGL itself\n");
		return ERR_PTR(-EOPNOTSUPP);
	}
	file = vgpu_migration_file_new(vgpu, &identity, save);
	if (!IS_ERR(file)) {
		vgpu->migration.file = get_file(file);
		vgpu->migration.identity = identity;
	}
	return file;
}

/* The engine's part of what was loaded. */
static int vgpu_migration_unpack_engine(struct vgpu *vgpu, const u8 *in, size_t left)
{
	struct vgpu_migration *migration = &vgpu->migration;
	size_t size = left < sizeof(u32) ? 0 : vgpu_get_le32(in);

	if (left < sizeof(u32) || left - sizeof(u32) != size || size > VGPU_STATE_MAX)
		return -EINVAL;
	if (!size || !vgpu_regs_driver_ok(&vgpu->regs))
		return 0;
	migration->engine_state = kvmemdup(in + sizeof(u32), size, GFP_KERNEL_ACCOUNT);
	migration->engine_size = size;
	return migration->engine_state ? 0 : -ENOMEM;
}

static int vgpu_migration_unpack(struct vgpu *vgpu, const u8 *in, size_t size)
{
	ssize_t chains;
	bool lost;
	int ret;

	lockdep_assert_held(&vgpu->lock);
	if (size < VGPU_STATE_DEVICE_SIZE)
		return -EINVAL;
	if (!vgpu_state_get_device(in, &vgpu->pci, &vgpu->regs, &lost))
		return -EINVAL;
	in += VGPU_STATE_DEVICE_SIZE;
	size -= VGPU_STATE_DEVICE_SIZE;
	chains = vgpu_queue_state_get(vgpu, in, size);
	if (chains < 0)
		return chains;
	ret = vgpu_migration_unpack_engine(vgpu, in + chains, size - chains);
	if (!ret && lost)
		vgpu_device_step(vgpu, VGPU_ON_DRIVER_ALONE);
	return ret;
}

/* A guest whose driver is up needs an engine. */
static void vgpu_migration_give_engine(struct vgpu *vgpu)
{
	if (!vgpu_regs_driver_ok(&vgpu->regs) || vgpu_device_give_engine(vgpu))
		return;
	vgpu_regs_needs_reset(&vgpu->regs);
	vgpu_migration_forget(vgpu);
}

/* Onto a device that was reset just now. */
static int vgpu_migration_load_here(struct vgpu *vgpu, const u8 *data, size_t size)
{
	struct vgpu_state_identity here = vgpu_migration_identity(vgpu);
	int ret = -EINVAL;

	lockdep_assert_held(&vgpu->lock);
	/* The reset has not ended; or another engine has come meanwhile. */
	if (vgpu_is_resetting(vgpu))
		return -EINTR;
	if (!vgpu_state_check_header(data, &here))
		ret = vgpu_migration_unpack(vgpu, data + VGPU_STATE_HEADER_SIZE, size - VGPU_STATE_HEADER_SIZE);
	if (!ret)
		return 0;
	vgpu_log(vgpu, err, "can't be loaded: what was saved is damaged, or the engine is another one now (%d)\n", ret);
	vgpu_queue_forget(vgpu);
	vgpu_migration_forget(vgpu);
	vgpu_regs_reset(&vgpu->regs);
	vgpu_pci_reset(&vgpu->pci);
	return ret;
}

/* The VMM has transferred everything. A device that cannot be loaded is as after a reset. */
static int vgpu_migration_load(struct vgpu *vgpu)
{
	size_t size;
	u8 *data = vgpu_migration_file_take(vgpu->migration.file, &size);
	int ret;

	if (IS_ERR(data))
		return PTR_ERR(data);
	mutex_lock(&vgpu->lock);
	vgpu_device_reset(vgpu);
	vgpu_pci_reset(&vgpu->pci);
	vgpu_device_step(vgpu, VGPU_ON_STOP);
	ret = vgpu_migration_load_here(vgpu, data, size);
	if (!ret) {
		vgpu_device_step(vgpu, VGPU_ON_LOAD);
		vgpu_migration_give_engine(vgpu);
	}
	mutex_unlock(&vgpu->lock);
	kvfree(data);
	return ret;
}

/* Two states, one step of VFIO's state machine apart. */
#define VGPU_STEP(from, to)	(VFIO_DEVICE_STATE_##from << 8 | VFIO_DEVICE_STATE_##to)

/* NULL, an error, or the file that the VMM gets. The state is @to if this does not fail. */
static struct file *vgpu_migration_step(struct vgpu *vgpu, enum vfio_device_mig_state to)
{
	struct vgpu_migration *migration = &vgpu->migration;
	struct file *file;
	int ret;

	lockdep_assert_held(&migration->lock);
	switch (migration->state << 8 | to) {
	/* Nothing of a vGPU accesses other devices, so it is always as if they were stopped. */
	case VGPU_STEP(RUNNING, RUNNING_P2P):
	case VGPU_STEP(RUNNING_P2P, RUNNING):
	case VGPU_STEP(PRE_COPY, PRE_COPY_P2P):
	case VGPU_STEP(PRE_COPY_P2P, PRE_COPY):
		return NULL;
	case VGPU_STEP(RUNNING_P2P, STOP):
		vgpu_migration_stop(vgpu);
		return NULL;
	case VGPU_STEP(STOP, RUNNING_P2P):
		vgpu_migration_go_on(vgpu);
		return NULL;
	case VGPU_STEP(RUNNING, PRE_COPY):
	case VGPU_STEP(RUNNING_P2P, PRE_COPY_P2P):
		return vgpu_migration_open_file(vgpu, true);
	case VGPU_STEP(PRE_COPY, RUNNING):
	case VGPU_STEP(PRE_COPY_P2P, RUNNING_P2P):
	case VGPU_STEP(STOP_COPY, STOP):
		vgpu_migration_drop_file(migration);
		return NULL;
	case VGPU_STEP(PRE_COPY_P2P, STOP_COPY):
		/* A VMM would reset the device if this failed; if it cannot read the state, the VM goes on. */
		vgpu_migration_stop(vgpu);
		ret = vgpu_migration_save(vgpu);
		if (ret)
			vgpu_migration_file_fail(migration->file, ret);
		return NULL;
	case VGPU_STEP(STOP, STOP_COPY):
		file = vgpu_migration_open_file(vgpu, true);
		ret = PTR_ERR_OR_ZERO(file) ?: vgpu_migration_save(vgpu);
		if (!ret)
			return file;
		if (!IS_ERR(file))
			fput(file);
		vgpu_migration_drop_file(migration);
		return ERR_PTR(ret);
	case VGPU_STEP(STOP, RESUMING):
		return vgpu_migration_open_file(vgpu, false);
	case VGPU_STEP(RESUMING, STOP):
		ret = vgpu_migration_load(vgpu);
		if (!ret)
			vgpu_migration_drop_file(migration);
		return ERR_PTR(ret);
	default:
		return ERR_PTR(-EINVAL);
	}
}

static struct file *vgpu_migration_set_state(struct vfio_device *vdev, enum vfio_device_mig_state target)
{
	struct vgpu *vgpu = vgpu_from_vdev(vdev);
	struct vgpu_migration *migration = &vgpu->migration;
	enum vfio_device_mig_state next;
	struct file *file = NULL;

	mutex_lock(&migration->lock);
	while (migration->state != target) {
		int ret = vfio_mig_get_next_state(vdev, migration->state, target, &next);

		file = ret ? ERR_PTR(ret) : vgpu_migration_step(vgpu, next);
		if (IS_ERR(file))
			break;
		migration->state = next;
	}
	mutex_unlock(&migration->lock);
	return file;
}

static int vgpu_migration_get_state(struct vfio_device *vdev, enum vfio_device_mig_state *state)
{
	struct vgpu *vgpu = vgpu_from_vdev(vdev);

	mutex_lock(&vgpu->migration.lock);
	*state = vgpu->migration.state;
	mutex_unlock(&vgpu->migration.lock);
	return 0;
}

/*
 * An estimate: the engine has not been asked. Its state is mostly lists of the guest's pages. A
 * VMM stops the VM when what is left takes less than some time, so too much is worse than too
 * little.
 */
static int __maybe_unused vgpu_migration_data_size(struct vfio_device *vdev, unsigned long *size)
{
	struct vgpu *vgpu = vgpu_from_vdev(vdev);

	*size = PAGE_SIZE + READ_ONCE(vgpu->mem.pinned_pages) * sizeof(struct vgpu_mem_entry);
	return 0;
}

static const struct vfio_migration_ops vgpu_migration_ops = {
	.migration_set_state = vgpu_migration_set_state,
	.migration_get_state = vgpu_migration_get_state,
	VGPU_MIGRATION_DATA_SIZE(vgpu_migration_data_size)
};

void vgpu_migration_init(struct vgpu *vgpu)
{
	mutex_init(&vgpu->migration.lock);
	vgpu->migration.state = VFIO_DEVICE_STATE_RUNNING;
	vgpu->vdev.migration_flags = VGPU_MIGRATION_FLAGS;
	vgpu->vdev.mig_ops = &vgpu_migration_ops;
}

/* VFIO_DEVICE_RESET, or the VMM has closed the device. The epoch is to be ended next. */
void vgpu_migration_reset(struct vgpu *vgpu)
{
	struct vgpu_migration *migration = &vgpu->migration;

	mutex_lock(&migration->lock);
	vgpu_migration_drop_file(migration);
	migration->state = VFIO_DEVICE_STATE_RUNNING;
	mutex_unlock(&migration->lock);
}

bool vgpu_migration_engine_asked(const struct vgpu *vgpu)
{
	lockdep_assert_held(&vgpu->lock);
	return vgpu->migration.asked && !vgpu->migration.body;
}

/*
 * The engine's answer, @state or @error. All is packed in this moment: what the engine answers to
 * the guest from now on, it has not said here.
 */
void vgpu_migration_engine_saves(struct vgpu *vgpu, const void *state, size_t size, int error)
{
	struct vgpu_migration *migration = &vgpu->migration;
	u8 *body = error ? ERR_PTR(error) : vgpu_migration_pack(vgpu, state, size, &migration->body_size);

	lockdep_assert_held(&vgpu->lock);
	WRITE_ONCE(migration->body, body);
	wake_up_all(&vgpu->state_wait);
}

/* VGPU_ENGINE_STATE_LOAD: the state, which the caller frees. */
void *vgpu_migration_engine_loads(struct vgpu *vgpu, u64 room, u64 *size)
{
	struct vgpu_migration *migration = &vgpu->migration;
	void *state = migration->engine_state;

	lockdep_assert_held(&vgpu->lock);
	if (!state || vgpu_is_stopped(vgpu))
		return ERR_PTR(-ENOENT);
	*size = migration->engine_size;
	if (room < *size)
		return ERR_PTR(-EMSGSIZE);
	migration->engine_state = NULL;
	return state;
}
