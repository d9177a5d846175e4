/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Answers for the queues of a device whose engine has died. A guest's driver waits for every chain
 * that it made available, so each gets an error, until the guest resets the device.
 */
#ifndef VGPU_MODEL_LOST_H
#define VGPU_MODEL_LOST_H

#include "platform.h"
#include "virtqueue.h"

/*
 * Builds the answer to a request that begins with @header: VIRTIO_GPU_RESP_ERR_UNSPEC, with the
 * request's fence if it had one. Returns the answer's size.
 */
size_t vgpu_lost_response(const u8 header[VGPU_VQ_HEADER_SIZE], u8 resp[VGPU_VQ_HEADER_SIZE]);

/*
 * Answers one chain that is in flight. A chain without room for the answer is used with length 0.
 * Results as of vgpu_vq_push(), except -EMSGSIZE.
 */
int vgpu_lost_push(struct vgpu_vq *vq, const struct vgpu_guest_ops *ops, void *guest,
		   const struct vgpu_vq_chain *chain, bool *interrupt);

/**
 * vgpu_lost_drain - take and answer available chains, a ring's size of them at most
 * @table: scratch as for vgpu_vq_pop()
 * @chain: scratch
 * @interrupt: set to whether the guest wants an interrupt for any of them, whatever the result
 *
 * 0: nothing is left, the next chain will be announced; -EAGAIN: there may be more, call again;
 * -EPROTO: the queue is broken.
 */
int vgpu_lost_drain(struct vgpu_vq *vq, const struct vgpu_guest_ops *ops, void *guest,
		    struct vgpu_vq_desc *table, struct vgpu_vq_chain *chain, bool *interrupt);

#endif /* VGPU_MODEL_LOST_H */
