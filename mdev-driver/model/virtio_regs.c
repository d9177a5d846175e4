// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Registers of BAR 0. Reads are served from a small image of the section, so that any width works;
 * writes must access a register with its own width.
 */
#include <linux/virtio_config.h>
#include <linux/virtio_gpu.h>
#include <linux/virtio_pci.h>
#include <linux/virtio_ring.h>

#include "pci_config.h"
#include "virtio_regs.h"

#define COMMON_SIZE	sizeof(struct virtio_pci_common_cfg)
#define DEVICE_SIZE	sizeof(struct virtio_gpu_config)
#define DEVICE(field)	offsetof(struct virtio_gpu_config, field)

#define ISR_QUEUE	(1u << 0)
#define ISR_CONFIG	(1u << 1)

#define BIT64(n)	(1ULL << (n))

/* Without these a guest would use the device in an unsupported way. */
#define FEATURES_REQUIRED	(BIT64(VIRTIO_F_VERSION_1) | BIT64(VIRTIO_F_ACCESS_PLATFORM))

#define FEATURES_OFFERED						\
	(FEATURES_REQUIRED | BIT64(VIRTIO_RING_F_EVENT_IDX) |		\
	 BIT64(VIRTIO_RING_F_INDIRECT_DESC) | BIT64(VIRTIO_GPU_F_VIRGL) |	\
	 BIT64(VIRTIO_GPU_F_RESOURCE_BLOB) | BIT64(VIRTIO_GPU_F_CONTEXT_INIT))

/* Status bits that a driver sets; the device controls the others. */
#define STATUS_DRIVERS							\
	(VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER |		\
	 VIRTIO_CONFIG_S_FEATURES_OK | VIRTIO_CONFIG_S_DRIVER_OK |	\
	 VIRTIO_CONFIG_S_FAILED)

void vgpu_regs_init(struct vgpu_regs *regs, u32 num_scanouts, u32 num_capsets)
{
	memset(regs, 0, sizeof(*regs));
	regs->device_features = FEATURES_OFFERED;
	if (num_scanouts)
		regs->device_features |= BIT64(VIRTIO_GPU_F_EDID);
	regs->num_scanouts = num_scanouts;
	regs->num_capsets = num_capsets;
	vgpu_regs_reset(regs);
}

void vgpu_regs_reset(struct vgpu_regs *regs)
{
	unsigned int i;

	regs->driver_features = 0;
	regs->driver_features_beyond = false;
	regs->device_feature_select = 0;
	regs->driver_feature_select = 0;
	regs->config_vector = VIRTIO_MSI_NO_VECTOR;
	regs->queue_select = 0;
	regs->status = 0;
	regs->isr = 0;
	regs->events_read = 0;
	for (i = 0; i < VGPU_REGS_NUM_QUEUES; i++)
		vgpu_vq_reset(&regs->vq[i]);
}

/* The 32 bits of a feature word that a driver has selected. */
static u32 feature_word(u64 features, u32 select)
{
	return select < 2 ? (u32)(features >> (32 * select)) : 0;
}

/* The selected queue's place in vq[], or -1. */
static int selected_queue(const struct vgpu_regs *regs)
{
	if (regs->queue_select >= VGPU_REGS_NUM_QUEUES)
		return -1;
	return vgpu_index_nospec(regs->queue_select, VGPU_REGS_NUM_QUEUES);
}

static void queue_image(const struct vgpu_regs *regs, u8 *image)
{
	int q = selected_queue(regs);
	const struct vgpu_vq *vq;

	vgpu_put_le16(image + VIRTIO_PCI_COMMON_Q_MSIX, VIRTIO_MSI_NO_VECTOR);
	if (q < 0)
		return;

	vq = &regs->vq[q];
	vgpu_put_le16(image + VIRTIO_PCI_COMMON_Q_SIZE, vq->size);
	vgpu_put_le16(image + VIRTIO_PCI_COMMON_Q_MSIX, vq->vector);
	vgpu_put_le16(image + VIRTIO_PCI_COMMON_Q_ENABLE, vq->enabled);
	vgpu_put_le16(image + VIRTIO_PCI_COMMON_Q_NOFF, (u16)q);
	vgpu_put_le64(image + VIRTIO_PCI_COMMON_Q_DESCLO, vq->desc);
	vgpu_put_le64(image + VIRTIO_PCI_COMMON_Q_AVAILLO, vq->avail);
	vgpu_put_le64(image + VIRTIO_PCI_COMMON_Q_USEDLO, vq->used);
}

static void common_image(const struct vgpu_regs *regs, u8 *image)
{
	vgpu_put_le32(image + VIRTIO_PCI_COMMON_DFSELECT, regs->device_feature_select);
	vgpu_put_le32(image + VIRTIO_PCI_COMMON_DF,
		      feature_word(regs->device_features, regs->device_feature_select));
	vgpu_put_le32(image + VIRTIO_PCI_COMMON_GFSELECT, regs->driver_feature_select);
	vgpu_put_le32(image + VIRTIO_PCI_COMMON_GF,
		      feature_word(regs->driver_features, regs->driver_feature_select));
	vgpu_put_le16(image + VIRTIO_PCI_COMMON_MSIX, regs->config_vector);
	vgpu_put_le16(image + VIRTIO_PCI_COMMON_NUMQ, VGPU_REGS_NUM_QUEUES);
	image[VIRTIO_PCI_COMMON_STATUS] = regs->status;
	vgpu_put_le16(image + VIRTIO_PCI_COMMON_Q_SELECT, regs->queue_select);
	queue_image(regs, image);
}

static void device_image(const struct vgpu_regs *regs, u8 *image)
{
	vgpu_put_le32(image + DEVICE(events_read), regs->events_read);
	vgpu_put_le32(image + DEVICE(num_scanouts), regs->num_scanouts);
	vgpu_put_le32(image + DEVICE(num_capsets), regs->num_capsets);
}

/* Reads within one section; @buf is zeroed already. */
static void read_section(struct vgpu_regs *regs, u64 section, size_t at, u8 *buf, size_t len)
{
	u8 image[COMMON_SIZE] = { 0 };
	size_t size = 0;

	static_assert(DEVICE_SIZE <= COMMON_SIZE, "one image serves all sections");

	switch (section) {
	case VGPU_REGS_COMMON:
		common_image(regs, image);
		size = COMMON_SIZE;
		break;
	case VGPU_REGS_ISR:
		image[0] = regs->isr;
		size = sizeof(regs->isr);
		if (at == 0)
			regs->isr = 0;
		break;
	case VGPU_REGS_DEVICE:
		device_image(regs, image);
		size = DEVICE_SIZE;
		break;
	}
	if (at < size)
		memcpy(buf, image + at, vgpu_min_size(len, size - at));
}

void vgpu_regs_read(struct vgpu_regs *regs, u64 offset, void *buf, size_t len)
{
	u8 *dst = buf;

	memset(dst, 0, len);
	while (len && offset < VGPU_BAR_REGS_SIZE) {
		size_t at = offset % VGPU_REGS_SECTION;
		size_t part = vgpu_min_size(len, VGPU_REGS_SECTION - at);

		read_section(regs, offset - at, at, dst, part);
		dst += part;
		offset += part;
		len -= part;
	}
}

static bool features_acceptable(const struct vgpu_regs *regs)
{
	return !regs->driver_features_beyond &&
	       !(regs->driver_features & ~regs->device_features) &&
	       (regs->driver_features & FEATURES_REQUIRED) == FEATURES_REQUIRED;
}

static void start_queues(struct vgpu_regs *regs)
{
	unsigned int i;

	for (i = 0; i < VGPU_REGS_NUM_QUEUES; i++) {
		regs->vq[i].event_idx = regs->driver_features & BIT64(VIRTIO_RING_F_EVENT_IDX);
		regs->vq[i].indirect = regs->driver_features & BIT64(VIRTIO_RING_F_INDIRECT_DESC);
	}
}

/*
 * A driver sets ACKNOWLEDGE, DRIVER, FEATURES_OK, DRIVER_OK in this order; no step can be left out.
 */
static u32 write_status(struct vgpu_regs *regs, u8 value)
{
	const u8 known = VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER;
	const u8 over = VIRTIO_CONFIG_S_FAILED | VIRTIO_CONFIG_S_NEEDS_RESET;
	u8 status;

	if (!value)
		return VGPU_EFFECT_RESET;

	status = regs->status | (value & STATUS_DRIVERS);
	if (!(regs->status & VIRTIO_CONFIG_S_FEATURES_OK) &&
	    ((status & known) != known || !features_acceptable(regs)))
		status &= ~VIRTIO_CONFIG_S_FEATURES_OK;
	if (!(regs->status & VIRTIO_CONFIG_S_DRIVER_OK) &&
	    (!(status & VIRTIO_CONFIG_S_FEATURES_OK) || (status & over)))
		status &= ~VIRTIO_CONFIG_S_DRIVER_OK;

	value = status & ~regs->status;
	regs->status = status;
	if (!(value & VIRTIO_CONFIG_S_DRIVER_OK))
		return 0;
	start_queues(regs);
	return VGPU_EFFECT_DRIVER_OK;
}

static void write_driver_features(struct vgpu_regs *regs, u32 value)
{
	u32 select = regs->driver_feature_select;

	if (regs->status & VIRTIO_CONFIG_S_FEATURES_OK)
		return;
	if (select >= 2) {
		if (value)
			regs->driver_features_beyond = true;
		return;
	}
	regs->driver_features &= ~((u64)U32_MAX << (32 * select));
	regs->driver_features |= (u64)value << (32 * select);
}

static u16 vector_or_none(u64 value)
{
	return value < VGPU_MSIX_VECTORS ? (u16)value : VIRTIO_MSI_NO_VECTOR;
}

static void set_low(u64 *reg, u64 value)
{
	*reg = (*reg & ~(u64)U32_MAX) | value;
}

static void set_high(u64 *reg, u64 value)
{
	*reg = (*reg & U32_MAX) | value << 32;
}

/* The three addresses of a queue, each a 64-bit register or two of 32 bits. */
static void write_queue_address(struct vgpu_vq *vq, size_t at, u64 value, size_t len)
{
	u64 *reg;

	if (at < VIRTIO_PCI_COMMON_Q_AVAILLO)
		reg = &vq->desc;
	else if (at < VIRTIO_PCI_COMMON_Q_USEDLO)
		reg = &vq->avail;
	else
		reg = &vq->used;

	if (len == 8 && at % 8 == 0)
		*reg = value;
	else if (len == 4 && at % 8 == 0)
		set_low(reg, value);
	else if (len == 4 && at % 8 == 4)
		set_high(reg, value);
}

static bool queue_configurable(const struct vgpu_regs *regs, const struct vgpu_vq *vq)
{
	return (regs->status & VIRTIO_CONFIG_S_FEATURES_OK) &&
	       !(regs->status & VIRTIO_CONFIG_S_DRIVER_OK) && !vq->enabled;
}

static void write_queue(struct vgpu_regs *regs, size_t at, u64 value, size_t len)
{
	int q = selected_queue(regs);
	struct vgpu_vq *vq;

	if (q < 0)
		return;
	vq = &regs->vq[q];

	/* A driver that is removed resets the vector of an enabled queue. */
	if (at == VIRTIO_PCI_COMMON_Q_MSIX && len == 2)
		vq->vector = vector_or_none(value);
	if (!queue_configurable(regs, vq))
		return;

	if (at == VIRTIO_PCI_COMMON_Q_SIZE && len == 2)
		vq->size = (u16)value;
	else if (at == VIRTIO_PCI_COMMON_Q_ENABLE && len == 2)
		vq->enabled = value == 1 && vgpu_vq_valid(vq);
	else if (at >= VIRTIO_PCI_COMMON_Q_DESCLO && at < COMMON_SIZE)
		write_queue_address(vq, at, value, len);
}

static u32 write_common(struct vgpu_regs *regs, size_t at, u64 value, size_t len)
{
	if (at >= VIRTIO_PCI_COMMON_Q_SIZE) {
		write_queue(regs, at, value, len);
		return 0;
	}

	if (at == VIRTIO_PCI_COMMON_DFSELECT && len == 4)
		regs->device_feature_select = (u32)value;
	else if (at == VIRTIO_PCI_COMMON_GFSELECT && len == 4)
		regs->driver_feature_select = (u32)value;
	else if (at == VIRTIO_PCI_COMMON_GF && len == 4)
		write_driver_features(regs, (u32)value);
	else if (at == VIRTIO_PCI_COMMON_MSIX && len == 2)
		regs->config_vector = vector_or_none(value);
	else if (at == VIRTIO_PCI_COMMON_STATUS && len == 1)
		return write_status(regs, (u8)value);
	else if (at == VIRTIO_PCI_COMMON_Q_SELECT && len == 2)
		regs->queue_select = (u16)value;
	return 0;
}

/* The doorbell's offset identifies the queue; the value repeats it and is not needed. */
int vgpu_regs_doorbell(const struct vgpu_regs *regs, u64 offset, size_t len)
{
	u64 q = (offset - VGPU_REGS_NOTIFY) / VGPU_NOTIFY_MULTIPLIER;

	if (len != 2 || offset < VGPU_REGS_NOTIFY || offset % VGPU_NOTIFY_MULTIPLIER ||
	    q >= VGPU_REGS_NUM_QUEUES)
		return -1;
	q = vgpu_index_nospec(q, VGPU_REGS_NUM_QUEUES);
	return vgpu_regs_driver_ok(regs) && regs->vq[q].enabled ? (int)q : -1;
}

u32 vgpu_regs_write(struct vgpu_regs *regs, u64 offset, const void *buf, size_t len)
{
	size_t at = offset % VGPU_REGS_SECTION;
	u8 raw[sizeof(u64)] = { 0 };
	u64 value;
	int q;

	if (len > sizeof(raw))
		return 0;
	memcpy(raw, buf, len);
	value = vgpu_get_le64(raw);

	switch (offset - at) {
	case VGPU_REGS_NOTIFY:
		q = vgpu_regs_doorbell(regs, offset, len);
		return q < 0 ? 0 : VGPU_EFFECT_KICK(q);
	case VGPU_REGS_COMMON:
		return write_common(regs, at, value, len);
	case VGPU_REGS_DEVICE:
		if (at == DEVICE(events_clear) && len == 4)
			regs->events_read &= ~(u32)value;
		return 0;
	default:
		return 0;
	}
}

bool vgpu_regs_driver_ok(const struct vgpu_regs *regs)
{
	return regs->status & VIRTIO_CONFIG_S_DRIVER_OK;
}

void vgpu_regs_stop(struct vgpu_regs *regs)
{
	unsigned int i;

	regs->status &= ~VIRTIO_CONFIG_S_DRIVER_OK;
	for (i = 0; i < VGPU_REGS_NUM_QUEUES; i++)
		memset(regs->vq[i].inflight, 0, sizeof(regs->vq[i].inflight));
}

static bool vector_is_known(u16 vector)
{
	return vector_or_none(vector) == vector;
}

static bool status_is_known(const struct vgpu_regs *regs)
{
	const u8 known = VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER;

	if (regs->status & ~(STATUS_DRIVERS | VIRTIO_CONFIG_S_NEEDS_RESET))
		return false;
	if (!(regs->status & VIRTIO_CONFIG_S_FEATURES_OK))
		return !vgpu_regs_driver_ok(regs);
	return (regs->status & known) == known && features_acceptable(regs);
}

static bool queue_is_known(const struct vgpu_regs *regs, const struct vgpu_vq *vq)
{
	if (!vector_is_known(vq->vector))
		return false;
	return !vq->enabled || ((regs->status & VIRTIO_CONFIG_S_FEATURES_OK) && vgpu_vq_valid(vq));
}

bool vgpu_regs_resume(struct vgpu_regs *regs)
{
	unsigned int i;

	if (!status_is_known(regs) || !vector_is_known(regs->config_vector) ||
	    regs->isr & ~(ISR_QUEUE | ISR_CONFIG) || regs->events_read & ~VIRTIO_GPU_EVENT_DISPLAY)
		return false;
	for (i = 0; i < VGPU_REGS_NUM_QUEUES; i++)
		if (!queue_is_known(regs, &regs->vq[i]))
			return false;
	if (vgpu_regs_driver_ok(regs))
		start_queues(regs);
	return true;
}

bool vgpu_regs_needs_reset(struct vgpu_regs *regs)
{
	bool first = !(regs->status & VIRTIO_CONFIG_S_NEEDS_RESET);

	regs->status |= VIRTIO_CONFIG_S_NEEDS_RESET;
	return first && vgpu_regs_driver_ok(regs);
}

bool vgpu_regs_display_changed(struct vgpu_regs *regs)
{
	regs->events_read |= VIRTIO_GPU_EVENT_DISPLAY;
	return vgpu_regs_driver_ok(regs);
}

void vgpu_regs_raise(struct vgpu_regs *regs, bool config)
{
	regs->isr |= config ? ISR_CONFIG : ISR_QUEUE;
}
