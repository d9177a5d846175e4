/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Where a vGPU is in its life: its engine, its device and its VM, and what may happen to them when.
 */
#ifndef VGPU_MODEL_PHASE_H
#define VGPU_MODEL_PHASE_H

#include "platform.h"

/*
 * NONE, FAILED: no engine is attached; the last one gave up
 * STARTING: it is, and not ready
 * FRESH: it has served no VM
 * BUSY: it has been given something in this epoch
 * RELEASING: the guest has reset the device, and not everything of that epoch is released
 * RESTING: it has released everything, but has served the VM that has the device open
 * LEAVING: that VM has closed the device: the engine must end, and serves no other
 */
enum vgpu_engine_phase {
	VGPU_ENGINE_IS_NONE,
	VGPU_ENGINE_IS_FAILED,
	VGPU_ENGINE_IS_STARTING,
	VGPU_ENGINE_IS_FRESH,
	VGPU_ENGINE_IS_BUSY,
	VGPU_ENGINE_IS_RELEASING,
	VGPU_ENGINE_IS_RESTING,
	VGPU_ENGINE_IS_LEAVING,
	VGPU_ENGINE_PHASES,
};

/*
 * CLOSED: no VM has it open
 * LIVE: requests go to the engine
 * RESETTING: a reset waits for the engine, or until guest memory is unpinned
 * REVIVING: and for a new engine
 * LOST: the engine has died in this epoch, or there was none: the driver answers with errors
 */
enum vgpu_device_phase {
	VGPU_DEVICE_IS_CLOSED,
	VGPU_DEVICE_IS_LIVE,
	VGPU_DEVICE_IS_RESETTING,
	VGPU_DEVICE_IS_REVIVING,
	VGPU_DEVICE_IS_LOST,
	VGPU_DEVICE_PHASES,
};

/*
 * STOPPED: the driver must leave its memory as it is
 * LOADED: likewise, and it was saved elsewhere: it has not run here yet
 */
enum vgpu_vm_phase {
	VGPU_VM_RUNS,
	VGPU_VM_IS_STOPPED,
	VGPU_VM_IS_LOADED,
	VGPU_VM_PHASES,
};

/*
 * What happens. ENGINE_LEFT: nobody needed it; ENGINE_LOST: a guest did. FAILED: the engine that left
 * just now gave up. DRIVER_ALONE: a guest's driver is up, and no engine can serve it. SETTLED: the
 * reset has ended.
 */
enum vgpu_occasion {
	VGPU_ON_ATTACH,
	VGPU_ON_READY,
	VGPU_ON_RELEASED,
	VGPU_ON_ENGINE_LEFT,
	VGPU_ON_ENGINE_LOST,
	VGPU_ON_FAILED,
	VGPU_ON_OPEN,
	VGPU_ON_DRIVER_OK,
	VGPU_ON_DRIVER_ALONE,
	VGPU_ON_RESET,
	VGPU_ON_SETTLED,
	VGPU_ON_CLOSE,
	VGPU_ON_STOP,
	VGPU_ON_LOAD,
	VGPU_ON_GO,
	VGPU_OCCASIONS,
};

struct vgpu_phase {
	enum vgpu_engine_phase engine;
	enum vgpu_device_phase device;
	enum vgpu_vm_phase vm;
};

/* Changes @phase as phase.c's tables say. False, and no change: that must not happen now. */
bool vgpu_phase_step(struct vgpu_phase *phase, enum vgpu_occasion occasion);

/* The engine is ready, and has nothing of an earlier epoch. */
static inline bool vgpu_engine_can_serve(enum vgpu_engine_phase engine)
{
	return engine == VGPU_ENGINE_IS_FRESH || engine == VGPU_ENGINE_IS_BUSY ||
	       engine == VGPU_ENGINE_IS_RESTING;
}

/* It has something of an earlier one. */
static inline bool vgpu_engine_must_release(enum vgpu_engine_phase engine)
{
	return engine == VGPU_ENGINE_IS_RELEASING || engine == VGPU_ENGINE_IS_LEAVING;
}

#endif /* VGPU_MODEL_PHASE_H */
