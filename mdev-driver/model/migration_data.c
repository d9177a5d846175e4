// SPDX-License-Identifier: GPL-2.0 OR MIT
/* A saved vGPU as bytes. */
#include <linux/virtio_config.h>

#include "migration_data.h"

static const u8 magic[8] = "vgpu-st";

/* Offsets in the header. */
#define H_MAGIC		0
#define H_VERSION	8
#define H_SIZE		12
#define H_WINDOW	16
#define H_VRAM		24
#define H_FEATURES	32
#define H_RENDERER	40
#define H_SCANOUTS	48
#define H_CAPSETS	52

void vgpu_state_put_header(u8 *out, const struct vgpu_state_identity *identity)
{
	memset(out, 0, VGPU_STATE_HEADER_SIZE);
	memcpy(out + H_MAGIC, magic, sizeof(magic));
	vgpu_put_le32(out + H_VERSION, VGPU_STATE_VERSION);
	vgpu_put_le32(out + H_SIZE, VGPU_STATE_HEADER_SIZE);
	vgpu_put_le64(out + H_WINDOW, identity->window_bytes);
	vgpu_put_le64(out + H_VRAM, identity->vram_bytes);
	vgpu_put_le64(out + H_FEATURES, identity->features);
	vgpu_put_le64(out + H_RENDERER, identity->renderer);
	vgpu_put_le32(out + H_SCANOUTS, identity->num_scanouts);
	vgpu_put_le32(out + H_CAPSETS, identity->num_capsets);
}

const char *vgpu_state_check_header(const u8 *in, const struct vgpu_state_identity *here)
{
	if (memcmp(in + H_MAGIC, magic, sizeof(magic)))
		return "it is not the state of a vGPU";
	if (vgpu_get_le32(in + H_VERSION) != VGPU_STATE_VERSION ||
	    vgpu_get_le32(in + H_SIZE) != VGPU_STATE_HEADER_SIZE)
		return "it was saved by another version of the driver";
	if (vgpu_get_le64(in + H_WINDOW) != here->window_bytes)
		return "its window has another size";
	if (vgpu_get_le64(in + H_VRAM) > here->vram_bytes)
		return "it has more memory";
	if (vgpu_get_le32(in + H_SCANOUTS) != here->num_scanouts)
		return "only one of them has a display";
	if (vgpu_get_le64(in + H_FEATURES) != here->features)
		return "it was saved by another version of the driver";
	if (vgpu_get_le32(in + H_CAPSETS) != here->num_capsets || vgpu_get_le64(in + H_RENDERER) != here->renderer)
		return "the Vulkan driver or virglrenderer there is another one";
	return NULL;
}

/* Offsets in the device. */
#define D_FEATURES	0
#define D_DFSELECT	8
#define D_GFSELECT	12
#define D_EVENTS	16
#define D_VECTOR	20
#define D_QSELECT	22
#define D_STATUS	24
#define D_ISR		25
#define D_FLAGS		26
#define D_CONFIG	32
#define D_QUEUES	(D_CONFIG + VGPU_PCI_CONFIG_SIZE)

#define FLAG_LOST	(1u << 0)
#define FLAG_BEYOND	(1u << 1)	/* driver_features_beyond */

/* Offsets in a queue. */
#define Q_DESC		0
#define Q_AVAIL		8
#define Q_USED		16
#define Q_SIZE		24
#define Q_VECTOR	26
#define Q_NEXT_AVAIL	28
#define Q_NEXT_USED	30
#define Q_BYTES		32

static_assert(D_QUEUES + VGPU_REGS_NUM_QUEUES * Q_BYTES == VGPU_STATE_DEVICE_SIZE, "the queues are last");

/* A ring of @size entries needs no bits above these. */
#define SIZE_ENABLED	0x8000u
#define SIZE_BROKEN	0x4000u

static_assert(VGPU_VQ_MAX_SIZE < SIZE_BROKEN, "the flags are beside the size");

static void put_queue(u8 *out, const struct vgpu_vq *vq)
{
	u16 size = vq->size;

	/* A guest may write any size, until it enables the queue. */
	if (size >= SIZE_BROKEN)
		size = 0;
	size |= (vq->enabled ? SIZE_ENABLED : 0) | (vq->broken ? SIZE_BROKEN : 0);
	vgpu_put_le64(out + Q_DESC, vq->desc);
	vgpu_put_le64(out + Q_AVAIL, vq->avail);
	vgpu_put_le64(out + Q_USED, vq->used);
	vgpu_put_le16(out + Q_SIZE, size);
	vgpu_put_le16(out + Q_VECTOR, vq->vector);
	vgpu_put_le16(out + Q_NEXT_AVAIL, vq->next_avail);
	vgpu_put_le16(out + Q_NEXT_USED, vq->next_used);
}

static void get_queue(const u8 *in, struct vgpu_vq *vq)
{
	u16 size = vgpu_get_le16(in + Q_SIZE);

	vq->desc = vgpu_get_le64(in + Q_DESC);
	vq->avail = vgpu_get_le64(in + Q_AVAIL);
	vq->used = vgpu_get_le64(in + Q_USED);
	vq->size = size & (SIZE_BROKEN - 1);
	vq->enabled = size & SIZE_ENABLED;
	vq->broken = size & SIZE_BROKEN;
	vq->told = vq->broken;
	vq->vector = vgpu_get_le16(in + Q_VECTOR);
	vq->next_avail = vgpu_get_le16(in + Q_NEXT_AVAIL);
	vq->next_used = vgpu_get_le16(in + Q_NEXT_USED);
	/* The guest's index is read again. */
	vq->avail_idx = vq->next_avail;
}

void vgpu_state_put_device(u8 *out, const struct vgpu_pci *pci, const struct vgpu_regs *regs, bool lost)
{
	unsigned int q;

	memset(out, 0, VGPU_STATE_DEVICE_SIZE);
	vgpu_put_le64(out + D_FEATURES, regs->driver_features);
	vgpu_put_le32(out + D_DFSELECT, regs->device_feature_select);
	vgpu_put_le32(out + D_GFSELECT, regs->driver_feature_select);
	vgpu_put_le32(out + D_EVENTS, regs->events_read);
	vgpu_put_le16(out + D_VECTOR, regs->config_vector);
	vgpu_put_le16(out + D_QSELECT, regs->queue_select);
	out[D_STATUS] = regs->status;
	out[D_ISR] = regs->isr;
	out[D_FLAGS] = (lost ? FLAG_LOST : 0) | (regs->driver_features_beyond ? FLAG_BEYOND : 0);
	vgpu_pci_read(pci, 0, out + D_CONFIG, VGPU_PCI_CONFIG_SIZE);
	for (q = 0; q < VGPU_REGS_NUM_QUEUES; q++)
		put_queue(out + D_QUEUES + q * Q_BYTES, &regs->vq[q]);
}

bool vgpu_state_get_device(const u8 *in, struct vgpu_pci *pci, struct vgpu_regs *regs, bool *lost)
{
	unsigned int q;

	regs->driver_features = vgpu_get_le64(in + D_FEATURES);
	regs->driver_features_beyond = in[D_FLAGS] & FLAG_BEYOND;
	regs->device_feature_select = vgpu_get_le32(in + D_DFSELECT);
	regs->driver_feature_select = vgpu_get_le32(in + D_GFSELECT);
	regs->events_read = vgpu_get_le32(in + D_EVENTS);
	regs->config_vector = vgpu_get_le16(in + D_VECTOR);
	regs->queue_select = vgpu_get_le16(in + D_QSELECT);
	regs->status = in[D_STATUS];
	regs->isr = in[D_ISR];
	for (q = 0; q < VGPU_REGS_NUM_QUEUES; q++)
		get_queue(in + D_QUEUES + q * Q_BYTES, &regs->vq[q]);
	*lost = in[D_FLAGS] & FLAG_LOST;
	vgpu_pci_write(pci, 0, in + D_CONFIG, VGPU_PCI_CONFIG_SIZE);
	return vgpu_regs_resume(regs);
}

/* Offsets in a chain; its segments follow, then the response. */
#define C_QUEUE		0
#define C_ANSWERED	1
#define C_HEAD		2
#define C_NWRITE	4
#define C_RESPONSE	8
#define C_HEADER	16
#define C_BYTES		(C_HEADER + VGPU_VQ_HEADER_SIZE)
#define SEG_BYTES	12

static size_t segs_size(const struct vgpu_vq_chain *chain)
{
	return C_BYTES + (size_t)chain->nwrite * SEG_BYTES;
}

size_t vgpu_state_chain_size(const struct vgpu_vq_chain *chain, size_t response_len)
{
	return segs_size(chain) + response_len;
}

void vgpu_state_put_chain(u8 *out, u32 queue, const struct vgpu_vq_chain *chain, bool answered,
			  const void *response, size_t response_len)
{
	unsigned int i;

	memset(out, 0, C_BYTES);
	out[C_QUEUE] = (u8)queue;
	out[C_ANSWERED] = answered;
	vgpu_put_le16(out + C_HEAD, chain->head);
	vgpu_put_le16(out + C_NWRITE, chain->nwrite);
	vgpu_put_le32(out + C_RESPONSE, (u32)response_len);
	memcpy(out + C_HEADER, chain->header, VGPU_VQ_HEADER_SIZE);
	for (i = 0; i < chain->nwrite; i++) {
		u8 *seg = out + C_BYTES + i * SEG_BYTES;

		vgpu_put_le64(seg, chain->write[i].iova);
		vgpu_put_le32(seg + 8, chain->write[i].len);
	}
	if (response_len)
		memcpy(out + segs_size(chain), response, response_len);
}

/* As walking the queue would have: no segment wraps, and the length of all fits into the used ring. */
static bool get_segs(const u8 *in, struct vgpu_vq_chain *chain)
{
	unsigned int i;

	chain->response_size = 0;
	for (i = 0; i < chain->nwrite; i++, in += SEG_BYTES) {
		struct vgpu_vq_seg *seg = &chain->write[i];

		seg->iova = vgpu_get_le64(in);
		seg->len = vgpu_get_le32(in + 8);
		if (!seg->len || seg->iova + (seg->len - 1) < seg->iova)
			return false;
		chain->response_size += seg->len;
	}
	return chain->response_size <= U32_MAX;
}

/* A queue has each head in flight once. */
static bool note_in_flight(struct vgpu_regs *regs, u32 queue, u16 head)
{
	struct vgpu_vq *vq = &regs->vq[vgpu_index_nospec(queue, VGPU_REGS_NUM_QUEUES)];
	u64 bit = 1ull << head % 64;

	if (!vgpu_regs_driver_ok(regs) || !vq->enabled || head >= vq->size)
		return false;
	head = vgpu_index_nospec(head, VGPU_VQ_MAX_SIZE);
	if (vq->inflight[head / 64] & bit)
		return false;
	vq->inflight[head / 64] |= bit;
	return true;
}

size_t vgpu_state_get_chain(const u8 *in, size_t left, struct vgpu_regs *regs, struct vgpu_state_chain *chain)
{
	if (left < C_BYTES)
		return 0;
	chain->queue = in[C_QUEUE];
	chain->answered = in[C_ANSWERED];
	chain->chain.head = vgpu_get_le16(in + C_HEAD);
	chain->chain.nwrite = vgpu_get_le16(in + C_NWRITE);
	chain->chain.request_size = 0;
	chain->response_len = vgpu_get_le32(in + C_RESPONSE);
	memcpy(chain->chain.header, in + C_HEADER, VGPU_VQ_HEADER_SIZE);
	if (chain->queue >= VGPU_REGS_NUM_QUEUES || chain->chain.nwrite > VGPU_VQ_MAX_WRITE_SEGS ||
	    left < segs_size(&chain->chain) || left - segs_size(&chain->chain) < chain->response_len)
		return 0;
	if (!get_segs(in + C_BYTES, &chain->chain) || chain->response_len > chain->chain.response_size ||
	    !note_in_flight(regs, chain->queue, chain->chain.head))
		return 0;
	chain->response = in + segs_size(&chain->chain);
	return segs_size(&chain->chain) + chain->response_len;
}
