// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * PCI configuration space of a vGPU: a table of bytes and a mask of the bits that a guest may
 * change. This is sufficient for BAR sizing: the address bits below a BAR's size are not writable.
 */
#include <linux/pci_regs.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_pci.h>

#include "pci_config.h"
#include "virtio_regs.h"

#define VIRTIO_VENDOR_ID	0x1af4
#define VIRTIO_MODERN_BASE	0x1040
#define VIRTIO_MODERN_REVISION	1
#define CLASS_DISPLAY_OTHER	0x0380

#define CAP_MSIX		0x40
#define CAP_COMMON		(CAP_MSIX + PCI_CAP_MSIX_SIZEOF)
#define CAP_NOTIFY		(CAP_COMMON + sizeof(struct virtio_pci_cap))
#define CAP_ISR			(CAP_NOTIFY + sizeof(struct virtio_pci_notify_cap))
#define CAP_DEVICE		(CAP_ISR + sizeof(struct virtio_pci_cap))
#define CAP_SHM			(CAP_DEVICE + sizeof(struct virtio_pci_cap))
#define CAP_CFG			(CAP_SHM + sizeof(struct virtio_pci_cap64))
#define CFG_DATA		(CAP_CFG + sizeof(struct virtio_pci_cap))
#define CFG_DATA_SIZE		4
#define CAP_END			(CFG_DATA + CFG_DATA_SIZE)

#ifndef PCI_CAP_MSIX_SIZEOF
#define PCI_CAP_MSIX_SIZEOF	12
#endif

#define MSIX_TABLE_OFFSET	0x000
#define MSIX_PBA_OFFSET		0x800

/* Shared memory id of the host-visible window: VIRTIO_GPU_SHM_ID_HOST_VISIBLE. */
#define SHM_ID_HOST_VISIBLE	1

static_assert(CAP_COMMON % 4 == 0 && CAP_END <= VGPU_PCI_CONFIG_SIZE,
	      "capabilities are dword aligned and fit");
static_assert(VGPU_REGS_NOTIFY + VGPU_REGS_SECTION == VGPU_BAR_REGS_SIZE,
	      "BAR 0 ends with its last section");

static void init_header(struct vgpu_pci *pci, u16 subsystem_id)
{
	u8 *c = pci->config;

	vgpu_put_le16(c + PCI_VENDOR_ID, VIRTIO_VENDOR_ID);
	vgpu_put_le16(c + PCI_DEVICE_ID, VIRTIO_MODERN_BASE + VIRTIO_ID_GPU);
	vgpu_put_le16(c + PCI_STATUS, PCI_STATUS_CAP_LIST);
	c[PCI_REVISION_ID] = VIRTIO_MODERN_REVISION;
	vgpu_put_le16(c + PCI_CLASS_DEVICE, CLASS_DISPLAY_OTHER);
	c[PCI_HEADER_TYPE] = PCI_HEADER_TYPE_NORMAL;
	vgpu_put_le16(c + PCI_SUBSYSTEM_VENDOR_ID, VIRTIO_VENDOR_ID);
	vgpu_put_le16(c + PCI_SUBSYSTEM_ID, subsystem_id);
	c[PCI_CAPABILITY_LIST] = CAP_MSIX;

	vgpu_put_le16(pci->wmask + PCI_COMMAND,
		      PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_INTX_DISABLE);
	/* A scratch byte for firmware; the interrupt pin is 0, so it is never used. */
	pci->wmask[PCI_INTERRUPT_LINE] = 0xff;
}

static void init_bars(struct vgpu_pci *pci)
{
	const u64 window_mask = ~(pci->window_bytes - 1);

	vgpu_put_le32(pci->wmask + PCI_BASE_ADDRESS_0, ~(u32)(VGPU_BAR_REGS_SIZE - 1));
	vgpu_put_le32(pci->wmask + PCI_BASE_ADDRESS_1, ~(u32)(VGPU_BAR_MSIX_SIZE - 1));
	vgpu_put_le32(pci->config + PCI_BASE_ADDRESS_2,
		      PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH);
	vgpu_put_le64(pci->wmask + PCI_BASE_ADDRESS_2, window_mask);
}

static void init_msix(struct vgpu_pci *pci)
{
	u8 *cap = pci->config + CAP_MSIX;

	cap[PCI_CAP_LIST_ID] = PCI_CAP_ID_MSIX;
	cap[PCI_CAP_LIST_NEXT] = CAP_COMMON;
	vgpu_put_le16(cap + PCI_MSIX_FLAGS, VGPU_MSIX_VECTORS - 1);
	vgpu_put_le32(cap + PCI_MSIX_TABLE, MSIX_TABLE_OFFSET | VGPU_BAR_MSIX);
	vgpu_put_le32(cap + PCI_MSIX_PBA, MSIX_PBA_OFFSET | VGPU_BAR_MSIX);
	vgpu_put_le16(pci->wmask + CAP_MSIX + PCI_MSIX_FLAGS,
		      PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
}

/* The part that all virtio capabilities begin with (virtio 1.2, 4.1.4). */
static u8 *init_virtio_cap(struct vgpu_pci *pci, u8 pos, u8 next, u8 type, u8 len)
{
	u8 *cap = pci->config + pos;

	cap[VIRTIO_PCI_CAP_VNDR] = PCI_CAP_ID_VNDR;
	cap[VIRTIO_PCI_CAP_NEXT] = next;
	cap[VIRTIO_PCI_CAP_LEN] = len;
	cap[VIRTIO_PCI_CAP_CFG_TYPE] = type;
	return cap;
}

static u8 *init_regs_cap(struct vgpu_pci *pci, u8 pos, u8 next, u8 type, u8 len, u32 offset)
{
	u8 *cap = init_virtio_cap(pci, pos, next, type, len);

	cap[VIRTIO_PCI_CAP_BAR] = VGPU_BAR_REGS;
	vgpu_put_le32(cap + VIRTIO_PCI_CAP_OFFSET, offset);
	vgpu_put_le32(cap + VIRTIO_PCI_CAP_LENGTH, VGPU_REGS_SECTION);
	return cap;
}

static void init_virtio_caps(struct vgpu_pci *pci)
{
	const u8 len = sizeof(struct virtio_pci_cap);
	u8 *cap;

	init_regs_cap(pci, CAP_COMMON, CAP_NOTIFY, VIRTIO_PCI_CAP_COMMON_CFG, len,
		      VGPU_REGS_COMMON);
	cap = init_regs_cap(pci, CAP_NOTIFY, CAP_ISR, VIRTIO_PCI_CAP_NOTIFY_CFG,
			    sizeof(struct virtio_pci_notify_cap), VGPU_REGS_NOTIFY);
	vgpu_put_le32(cap + VIRTIO_PCI_NOTIFY_CAP_MULT, VGPU_NOTIFY_MULTIPLIER);
	init_regs_cap(pci, CAP_ISR, CAP_DEVICE, VIRTIO_PCI_CAP_ISR_CFG, len, VGPU_REGS_ISR);
	init_regs_cap(pci, CAP_DEVICE, CAP_SHM, VIRTIO_PCI_CAP_DEVICE_CFG, len, VGPU_REGS_DEVICE);

	cap = init_virtio_cap(pci, CAP_SHM, CAP_CFG, VIRTIO_PCI_CAP_SHARED_MEMORY_CFG,
			      sizeof(struct virtio_pci_cap64));
	cap[VIRTIO_PCI_CAP_BAR] = VGPU_BAR_WINDOW;
	cap[offsetof(struct virtio_pci_cap, id)] = SHM_ID_HOST_VISIBLE;
	vgpu_put_le32(cap + VIRTIO_PCI_CAP_LENGTH, (u32)pci->window_bytes);
	vgpu_put_le32(cap + offsetof(struct virtio_pci_cap64, length_hi),
		      (u32)(pci->window_bytes >> 32));

	init_virtio_cap(pci, CAP_CFG, 0, VIRTIO_PCI_CAP_PCI_CFG, CAP_END - CAP_CFG);
	pci->wmask[CAP_CFG + VIRTIO_PCI_CAP_BAR] = 0xff;
	memset(pci->wmask + CAP_CFG + VIRTIO_PCI_CAP_OFFSET, 0xff, CAP_END - CAP_CFG - VIRTIO_PCI_CAP_OFFSET);
}

void vgpu_pci_init(struct vgpu_pci *pci, u64 window_bytes, u16 subsystem_id)
{
	memset(pci, 0, sizeof(*pci));
	pci->window_bytes = window_bytes;

	init_header(pci, subsystem_id);
	init_bars(pci);
	init_msix(pci);
	init_virtio_caps(pci);
}

void vgpu_pci_reset(struct vgpu_pci *pci)
{
	vgpu_pci_init(pci, pci->window_bytes, vgpu_get_le16(pci->config + PCI_SUBSYSTEM_ID));
}

void vgpu_pci_read(const struct vgpu_pci *pci, u64 offset, void *buf, size_t len)
{
	size_t inside = 0;

	if (offset < VGPU_PCI_CONFIG_SIZE) {
		inside = vgpu_min_size(len, VGPU_PCI_CONFIG_SIZE - (size_t)offset);
		memcpy(buf, pci->config + offset, inside);
	}
	memset((u8 *)buf + inside, 0xff, len - inside);
}

void vgpu_pci_write(struct vgpu_pci *pci, u64 offset, const void *buf, size_t len)
{
	const u8 *src = buf;
	size_t i, end;

	if (offset >= VGPU_PCI_CONFIG_SIZE)
		return;

	end = vgpu_min_size(len, VGPU_PCI_CONFIG_SIZE - (size_t)offset);
	for (i = 0; i < end; i++) {
		u8 *reg = &pci->config[offset + i];
		u8 mask = pci->wmask[offset + i];

		*reg = (*reg & ~mask) | (src[i] & mask);
	}
}

bool vgpu_pci_cfg_access(struct vgpu_pci *pci, u64 offset, size_t len, struct vgpu_pci_cfg_access *access)
{
	if (offset >= CAP_END || len > VGPU_PCI_CONFIG_SIZE || offset + len <= CFG_DATA)
		return false;
	access->bar = pci->config[CAP_CFG + VIRTIO_PCI_CAP_BAR];
	access->offset = vgpu_get_le32(pci->config + CAP_CFG + VIRTIO_PCI_CAP_OFFSET);
	access->len = vgpu_get_le32(pci->config + CAP_CFG + VIRTIO_PCI_CAP_LENGTH);
	access->data = pci->config + CFG_DATA;
	if (access->len != 1 && access->len != 2 && access->len != 4)
		return false;
	return access->offset % access->len == 0;
}

bool vgpu_pci_bus_master(const struct vgpu_pci *pci)
{
	return vgpu_get_le16(pci->config + PCI_COMMAND) & PCI_COMMAND_MASTER;
}
