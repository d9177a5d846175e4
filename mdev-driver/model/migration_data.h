/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A saved vGPU as bytes, little endian, for VFIO's migration:
 *
 *   header	VGPU_STATE_HEADER_SIZE bytes: what source and target must have in common. It is the part that a VMM transfers
 *		while the VM still runs, so that a wrong target is refused before anything is stopped
 *   device	VGPU_STATE_DEVICE_SIZE bytes: config space, registers, queues
 *   chains	32 bits: how many are in flight; then each
 *   engine	32 bits: its size; then what the engine has said of itself (uapi/linux/vgpu.h)
 *
 * What is read may be anybody's: whatever a guest and an engine could not have done is refused.
 */
#ifndef VGPU_MODEL_MIGRATION_DATA_H
#define VGPU_MODEL_MIGRATION_DATA_H

#include "pci_config.h"
#include "platform.h"
#include "virtio_regs.h"

#define VGPU_STATE_VERSION	1
#define VGPU_STATE_HEADER_SIZE	64
#define VGPU_STATE_DEVICE_SIZE	(32 + VGPU_PCI_CONFIG_SIZE + VGPU_REGS_NUM_QUEUES * 32)

/* Bytes of everything but the header; an engine has said much less. */
#define VGPU_STATE_BODY_MAX	(64u << 20)

/**
 * struct vgpu_state_identity - what a guest knows of its device and keeps
 * @vram_bytes: the target may have more
 * @renderer: of the engine, see struct vgpu_engine_ready
 */
struct vgpu_state_identity {
	u64 window_bytes;
	u64 vram_bytes;
	u64 features;
	u64 renderer;
	u32 num_scanouts;
	u32 num_capsets;
};

void vgpu_state_put_header(u8 *out, const struct vgpu_state_identity *identity);

/* NULL: the saved vGPU can go on here. Else a sentence that says why not. */
const char *vgpu_state_check_header(const u8 *in, const struct vgpu_state_identity *here);

/* @lost: the guest has lost its engine and must reset the device. */
void vgpu_state_put_device(u8 *out, const struct vgpu_pci *pci, const struct vgpu_regs *regs, bool lost);

/* Into a device that has just been reset. False: no guest can have made this; @pci and @regs are undefined then. */
bool vgpu_state_get_device(const u8 *in, struct vgpu_pci *pci, struct vgpu_regs *regs, bool *lost);

/**
 * struct vgpu_state_chain - a chain in flight
 * @chain: without its request_size
 * @answered: the engine has answered with @response; else the guest gets an error
 */
struct vgpu_state_chain {
	u32 queue;
	struct vgpu_vq_chain chain;
	bool answered;
	const u8 *response;
	u32 response_len;
};

size_t vgpu_state_chain_size(const struct vgpu_vq_chain *chain, size_t response_len);
void vgpu_state_put_chain(u8 *out, u32 queue, const struct vgpu_vq_chain *chain, bool answered,
			  const void *response, size_t response_len);

/*
 * Reads one from [in, in + left) and notes in @regs that it is in flight. Returns its size; 0: it
 * is not one. @chain->response points into @in.
 */
size_t vgpu_state_get_chain(const u8 *in, size_t left, struct vgpu_regs *regs, struct vgpu_state_chain *chain);

#endif /* VGPU_MODEL_MIGRATION_DATA_H */
