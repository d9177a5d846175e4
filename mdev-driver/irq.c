// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Interrupts from the vGPU to the VMM: MSI-X vectors and VFIO's request to release the device. Each
 * is an eventfd from the VMM's VFIO_DEVICE_SET_IRQS.
 */
#include "vgpu_private.h"

u32 vgpu_irq_count(u32 index)
{
	switch (index) {
	case VFIO_PCI_MSIX_IRQ_INDEX:
		return VGPU_MSIX_VECTORS;
	case VFIO_PCI_REQ_IRQ_INDEX:
		return 1;
	default:
		return 0;
	}
}

static struct eventfd_ctx **vgpu_irq_slot(struct vgpu *vgpu, u32 index, u32 n)
{
	return index == VFIO_PCI_MSIX_IRQ_INDEX ? &vgpu->irq.msix[n] : &vgpu->irq.request;
}

static void vgpu_irq_replace(struct vgpu *vgpu, u32 index, u32 n, struct eventfd_ctx *ctx)
{
	struct eventfd_ctx **slot = vgpu_irq_slot(vgpu, index, n);
	struct eventfd_ctx *old;

	spin_lock(&vgpu->irq_lock);
	old = *slot;
	*slot = ctx;
	spin_unlock(&vgpu->irq_lock);
	if (old)
		eventfd_ctx_put(old);
}

static void vgpu_irq_signal(struct vgpu *vgpu, u32 index, u32 n)
{
	struct eventfd_ctx *ctx;

	spin_lock(&vgpu->irq_lock);
	ctx = *vgpu_irq_slot(vgpu, index, n);
	if (ctx)
		vgpu_eventfd_signal(ctx);
	spin_unlock(&vgpu->irq_lock);
}

static int vgpu_irq_set_eventfds(struct vgpu *vgpu, u32 index, u32 start, u32 count,
				 const s32 *fds)
{
	u32 i;

	for (i = 0; i < count; i++) {
		struct eventfd_ctx *ctx = NULL;

		if (fds[i] >= 0) {
			ctx = eventfd_ctx_fdget(fds[i]);
			if (IS_ERR(ctx))
				return PTR_ERR(ctx);
		}
		vgpu_irq_replace(vgpu, index, start + i, ctx);
	}
	return 0;
}

/* VFIO_DEVICE_SET_IRQS after the core's checks. It may name any range of the vectors. */
int vgpu_irq_set(struct vgpu *vgpu, u32 flags, u32 index, u32 start, u32 count, void *data)
{
	const u8 *bools = data;
	u32 i;

	if ((flags & VFIO_IRQ_SET_ACTION_TYPE_MASK) != VFIO_IRQ_SET_ACTION_TRIGGER)
		return -ENOTTY;

	switch (flags & VFIO_IRQ_SET_DATA_TYPE_MASK) {
	case VFIO_IRQ_SET_DATA_NONE:
		/* Without a count this disables the index, else it fires. */
		if (!count)
			for (i = 0; i < vgpu_irq_count(index); i++)
				vgpu_irq_replace(vgpu, index, i, NULL);
		for (i = start; i < start + count; i++)
			vgpu_irq_signal(vgpu, index, i);
		return 0;
	case VFIO_IRQ_SET_DATA_BOOL:
		for (i = 0; i < count; i++)
			if (bools[i])
				vgpu_irq_signal(vgpu, index, start + i);
		return 0;
	case VFIO_IRQ_SET_DATA_EVENTFD:
		return vgpu_irq_set_eventfds(vgpu, index, start, count, data);
	default:
		return -EINVAL;
	}
}

/* @vector may be VIRTIO_MSI_NO_VECTOR. */
void vgpu_irq_vector(struct vgpu *vgpu, u16 vector)
{
	if (vector >= VGPU_MSIX_VECTORS)
		return;
	vgpu->stats.interrupts++;
	vgpu_irq_signal(vgpu, VFIO_PCI_MSIX_IRQ_INDEX, vector);
}

void vgpu_irq_config(struct vgpu *vgpu)
{
	vgpu_regs_raise(&vgpu->regs, true);
	vgpu_irq_vector(vgpu, vgpu->regs.config_vector);
}

/* Asks the VMM to release the device. Process context. */
void vgpu_irq_request(struct vgpu *vgpu)
{
	vgpu_irq_signal(vgpu, VFIO_PCI_REQ_IRQ_INDEX, 0);
}

void vgpu_irq_release_all(struct vgpu *vgpu)
{
	u32 i;

	for (i = 0; i < VGPU_MSIX_VECTORS; i++)
		vgpu_irq_replace(vgpu, VFIO_PCI_MSIX_IRQ_INDEX, i, NULL);
	vgpu_irq_replace(vgpu, VFIO_PCI_REQ_IRQ_INDEX, 0, NULL);
}
