// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Answers for the queues of a device whose engine has died.
 */
#include <linux/virtio_gpu.h>

#include "lost.h"

#define HDR(field)	offsetof(struct virtio_gpu_ctrl_hdr, field)

static_assert(sizeof(struct virtio_gpu_ctrl_hdr) == VGPU_VQ_HEADER_SIZE,
	      "what is kept of a request is its header");

size_t vgpu_lost_response(const u8 header[VGPU_VQ_HEADER_SIZE], u8 resp[VGPU_VQ_HEADER_SIZE])
{
	u32 flags = vgpu_get_le32(header + HDR(flags));

	memset(resp, 0, VGPU_VQ_HEADER_SIZE);
	vgpu_put_le32(resp + HDR(type), VIRTIO_GPU_RESP_ERR_UNSPEC);
	if (flags & VIRTIO_GPU_FLAG_FENCE) {
		flags &= VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX;
		vgpu_put_le32(resp + HDR(flags), flags);
		vgpu_put_le64(resp + HDR(fence_id), vgpu_get_le64(header + HDR(fence_id)));
		vgpu_put_le32(resp + HDR(ctx_id), vgpu_get_le32(header + HDR(ctx_id)));
		resp[HDR(ring_idx)] = header[HDR(ring_idx)];
	}
	return VGPU_VQ_HEADER_SIZE;
}

int vgpu_lost_push(struct vgpu_vq *vq, const struct vgpu_guest_ops *ops, void *guest,
		   const struct vgpu_vq_chain *chain, bool *interrupt)
{
	u8 resp[VGPU_VQ_HEADER_SIZE];
	size_t size = vgpu_lost_response(chain->header, resp);

	if (size > chain->response_size)
		size = 0;
	return vgpu_vq_push(vq, ops, guest, chain, resp, size, interrupt);
}

int vgpu_lost_drain(struct vgpu_vq *vq, const struct vgpu_guest_ops *ops, void *guest,
		    struct vgpu_vq_desc *table, struct vgpu_vq_chain *chain, bool *interrupt)
{
	u8 header[VGPU_VQ_HEADER_SIZE];
	bool wanted;
	u16 i;
	int ret;

	*interrupt = false;
	for (i = 0; i < vq->size; i++) {
		ret = vgpu_vq_pop(vq, ops, guest, table, chain, header, sizeof(header), true);
		if (ret == -EAGAIN)
			return 0;
		if (!ret)
			ret = vgpu_lost_push(vq, ops, guest, chain, &wanted);
		if (ret)
			return ret;
		*interrupt |= wanted;
	}
	return -EAGAIN;
}
