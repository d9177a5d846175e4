/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Registers of BAR 0: the virtio PCI common configuration, ISR, device configuration and
 * notification (virtio 1.2, 4.1.4), of a virtio-gpu device (5.7).
 *
 * The model changes its own state only. Other consequences of a write are returned as effects,
 * which the caller carries out.
 */
#ifndef VGPU_MODEL_VIRTIO_REGS_H
#define VGPU_MODEL_VIRTIO_REGS_H

#include "platform.h"
#include "virtqueue.h"

/* Layout of BAR 0, as the capabilities in config space announce it. */
#define VGPU_REGS_COMMON	0x0000
#define VGPU_REGS_ISR		0x1000
#define VGPU_REGS_DEVICE	0x2000
#define VGPU_REGS_NOTIFY	0x3000
#define VGPU_REGS_SECTION	0x1000
#define VGPU_NOTIFY_MULTIPLIER	4

#define VGPU_REGS_NUM_QUEUES	2

/* Effects of a register write. */
#define VGPU_EFFECT_RESET	(1u << 0)	/* status was written 0: call vgpu_regs_reset() */
#define VGPU_EFFECT_DRIVER_OK	(1u << 1)	/* DRIVER_OK went from 0 to 1 */
#define VGPU_EFFECT_KICK(q)	(1u << (8 + (q)))	/* doorbell of queue q */
#define VGPU_EFFECT_KICKS	(~0u << 8)		/* any doorbell */

/**
 * struct vgpu_regs - registers of one vGPU
 * @device_features: offered, fixed
 * @driver_features: accepted so far; final with FEATURES_OK
 * @driver_features_beyond: the driver accepted something above bit 63, which is never offered
 * @device_feature_select, @driver_feature_select, @queue_select: written by the driver
 * @config_vector: MSI-X vector of configuration changes, or VIRTIO_MSI_NO_VECTOR
 * @status: VIRTIO_CONFIG_S_*
 * @isr: bit 0: a queue interrupt, bit 1: a configuration change
 * @num_scanouts, @num_capsets: of struct virtio_gpu_config; they change only while @status is
 *	0, so the generation of the configuration is always 0
 * @events_read: of the same; the driver clears bits by events_clear
 */
struct vgpu_regs {
	u64 device_features;
	u64 driver_features;
	bool driver_features_beyond;
	u32 device_feature_select;
	u32 driver_feature_select;
	u16 config_vector;
	u16 queue_select;
	u8 status;
	u8 isr;
	u32 events_read;
	u32 num_scanouts;
	u32 num_capsets;
	struct vgpu_vq vq[VGPU_REGS_NUM_QUEUES];
};

/*
 * Offers VERSION_1, ACCESS_PLATFORM, EVENT_IDX, INDIRECT_DESC, GPU_F_VIRGL, RESOURCE_BLOB,
 * CONTEXT_INIT (and EDID if there are scanouts).
 */
void vgpu_regs_init(struct vgpu_regs *regs, u32 num_scanouts, u32 num_capsets);

/* Power-on state: status 0, queues reset, features cleared. Keeps num_scanouts and num_capsets. */
void vgpu_regs_reset(struct vgpu_regs *regs);

/* Any offset and length; bytes outside of registers read as 0. Reading the ISR clears it. */
void vgpu_regs_read(struct vgpu_regs *regs, u64 offset, void *buf, size_t len);

/*
 * Returns VGPU_EFFECT_*. A status of 0 does not change anything by itself: the caller first makes
 * the engine release the epoch, then calls vgpu_regs_reset(). Accesses of a width that the
 * specification does not allow for the register, or that start outside BAR 0, do nothing.
 * FEATURES_OK is refused (reads back 0) if VERSION_1 or ACCESS_PLATFORM is missing or an unknown
 * bit is set. Queue registers and features cannot be changed out of order, and bits of the status
 * can only be set.
 */
u32 vgpu_regs_write(struct vgpu_regs *regs, u64 offset, const void *buf, size_t len);

/*
 * The queue whose doorbell a write of @len bytes at @offset is, or -1. May be called while another
 * thread writes registers: the result is that of before or of after.
 */
int vgpu_regs_doorbell(const struct vgpu_regs *regs, u64 offset, size_t len);

bool vgpu_regs_driver_ok(const struct vgpu_regs *regs);

/*
 * Bus mastering was disabled: DRIVER_OK is cleared, as in QEMU's devices, and chains in flight are
 * forgotten. The driver resets the device next; if it sets DRIVER_OK instead, the queues continue
 * at their old positions.
 */
void vgpu_regs_stop(struct vgpu_regs *regs);

/*
 * The fields that a guest writes, and the queues' progress, were filled in from a saved device. Checks them and sets what
 * follows from them. False: no guest can have brought the device there.
 */
bool vgpu_regs_resume(struct vgpu_regs *regs);

/* Sets DEVICE_NEEDS_RESET; true if the guest must get a configuration interrupt for it. */
bool vgpu_regs_needs_reset(struct vgpu_regs *regs);

/* Sets VIRTIO_GPU_EVENT_DISPLAY; true as above. */
bool vgpu_regs_display_changed(struct vgpu_regs *regs);

/* Records a queue interrupt or configuration change in the ISR. */
void vgpu_regs_raise(struct vgpu_regs *regs, bool config);

#endif /* VGPU_MODEL_VIRTIO_REGS_H */
