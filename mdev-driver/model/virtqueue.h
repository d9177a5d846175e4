/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The device's side of a split virtqueue (virtio 1.2, 2.7), with EVENT_IDX and INDIRECT_DESC.
 *
 * Everything in guest memory is hostile and may change at any time: each descriptor is read once,
 * the copy is checked, then used. A broken rule breaks the queue (EPROTO) until it is reset.
 * The caller serialises the calls on one queue.
 */
#ifndef VGPU_MODEL_VIRTQUEUE_H
#define VGPU_MODEL_VIRTQUEUE_H

#include "platform.h"

#define VGPU_VQ_MAX_SIZE	256	/* entries of a ring */
#define VGPU_VQ_MAX_DESCS	1024	/* descriptors of a chain, indirect ones included */
#define VGPU_VQ_MAX_WRITE_SEGS	64	/* device-writable ones of a chain */
#define VGPU_VQ_HEADER_SIZE	24	/* sizeof(struct virtio_gpu_ctrl_hdr) */

/**
 * struct vgpu_guest_ops - access to guest memory
 *
 * Both return 0, or -EFAULT if any byte of the range is not accessible; then the others are
 * undefined. They may sleep. Ranges are never empty and never wrap. Two bytes at an even address
 * are one access, never torn: the guest changes its indices while they are read.
 */
struct vgpu_guest_ops {
	int (*read)(void *guest, u64 iova, void *buf, size_t len);
	int (*write)(void *guest, u64 iova, const void *buf, size_t len);
};

struct vgpu_vq_seg {
	u64 iova;
	u32 len;
};

/* A descriptor in guest memory (little endian). */
struct vgpu_vq_desc {
	u64 addr;
	u32 len;
	u16 flags;
	u16 next;
};

/**
 * struct vgpu_vq_chain - data of a chain between pop and push
 * @head: its first descriptor, which names it on the used ring
 * @nwrite: entries of @write
 * @header: first bytes of the request, zero-filled; enough to answer it with an error
 * @request_size: sum of the device-readable part
 * @response_size: sum of @write
 * @write: the device-writable part
 */
struct vgpu_vq_chain {
	u16 head;
	u16 nwrite;
	u8 header[VGPU_VQ_HEADER_SIZE];
	u64 request_size;
	u64 response_size;
	struct vgpu_vq_seg write[VGPU_VQ_MAX_WRITE_SEGS];
};

/**
 * struct vgpu_vq - one queue
 * @desc, @avail, @used: guest addresses, set by the guest's driver before @enabled
 * @size: entries, a power of two up to VGPU_VQ_MAX_SIZE
 * @vector: MSI-X vector or VIRTIO_MSI_NO_VECTOR
 * @broken: the guest broke a rule, or its memory is not accessible; only a reset helps
 * @told: that it is broken has been said: once, with the reason, until it is reset
 * @quiet: the consumer polls again: the guest is not asked to announce the next chain
 * @event_idx, @indirect: negotiated features, set when the driver is up
 * @next_avail, @next_used: progress, free running
 * @avail_idx: the guest's available index as last read; chains between it and @next_avail can
 *	be taken without reading it again
 * @inflight: bit per head that was popped and not yet pushed
 */
struct vgpu_vq {
	u64 desc;
	u64 avail;
	u64 used;
	u16 size;
	u16 vector;
	bool enabled;
	bool broken;
	bool told;
	bool quiet;
	bool event_idx;
	bool indirect;
	u16 next_avail;
	u16 next_used;
	u16 avail_idx;
	u64 inflight[VGPU_VQ_MAX_SIZE / 64];
};

/* State after reset of the device: disabled, offered size VGPU_VQ_MAX_SIZE. */
void vgpu_vq_reset(struct vgpu_vq *vq);

/*
 * Whether the size is allowed and the addresses are aligned and do not wrap; to be checked when the
 * guest enables the queue.
 */
bool vgpu_vq_valid(const struct vgpu_vq *vq);

/**
 * vgpu_vq_pop - take the next chain and copy its request
 * @table: scratch for VGPU_VQ_MAX_DESCS descriptors, the caller's
 * @chain: filled in
 * @buf, @size: destination of the request
 * @truncate: cut a larger request instead of refusing it
 *
 * 0; -EAGAIN: no chain; with EVENT_IDX, unless @quiet, avail_event has been set so that the next
 * one will be announced (the ring was checked once more after that); -EMSGSIZE: larger than @size,
 * chain->request_size has the size, nothing was taken; -EPROTO: broken (now or before); -EFAULT is
 * turned into -EPROTO.
 */
int vgpu_vq_pop(struct vgpu_vq *vq, const struct vgpu_guest_ops *ops, void *guest,
		struct vgpu_vq_desc *table, struct vgpu_vq_chain *chain,
		void *buf, size_t size, bool truncate);

/**
 * vgpu_vq_push - write the response and use the chain
 * @interrupt: set to whether the guest wants an interrupt for it
 *
 * 0; -ENOENT: not in flight; -EMSGSIZE: @size exceeds response_size, nothing was done; -EPROTO: the
 * rings are not accessible, or the queue was broken before. If the response cannot be written, the
 * chain is used with length 0 and the result is 0.
 */
int vgpu_vq_push(struct vgpu_vq *vq, const struct vgpu_guest_ops *ops, void *guest,
		 const struct vgpu_vq_chain *chain, const void *buf, size_t size,
		 bool *interrupt);

#endif /* VGPU_MODEL_VIRTQUEUE_H */
