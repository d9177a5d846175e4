/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * PCI configuration space of a vGPU: a modern virtio-gpu function (virtio 1.2, 4.1), 1af4:1050,
 * class 0380, 256 bytes, no PCI Express capability (legal behind a root port).
 *
 *   BAR 0	32-bit	virtio registers: common, ISR, device config, notify (virtio_regs.h)
 *   BAR 1	32-bit	MSI-X table and pending bits, nothing else
 *   BAR 2/3	64-bit prefetchable	the host-visible window, shared memory id 1
 *
 * Capabilities: MSI-X; virtio common, notify, isr, device; shared memory (type 8, id 1); access by config space (type 5).
 */
#ifndef VGPU_MODEL_PCI_CONFIG_H
#define VGPU_MODEL_PCI_CONFIG_H

#include "platform.h"

#define VGPU_PCI_CONFIG_SIZE	256

#define VGPU_BAR_REGS		0
#define VGPU_BAR_MSIX		1
#define VGPU_BAR_WINDOW		2

#define VGPU_BAR_REGS_SIZE	0x4000
#define VGPU_BAR_MSIX_SIZE	0x1000

/* One for configuration changes, one per queue. */
#define VGPU_MSIX_VECTORS	3

/**
 * struct vgpu_pci - config space of one vGPU
 * @config: the bytes that the guest reads
 * @wmask: bits the guest may change
 * @window_bytes: size of BAR 2, a power of two
 */
struct vgpu_pci {
	u8 config[VGPU_PCI_CONFIG_SIZE];
	u8 wmask[VGPU_PCI_CONFIG_SIZE];
	u64 window_bytes;
};

/* Power-on state. @subsystem_id: low 16 bits shown as PCI subsystem id. */
void vgpu_pci_init(struct vgpu_pci *pci, u64 window_bytes, u16 subsystem_id);

/* Back to power-on state (FLR, VFIO_DEVICE_RESET); keeps window_bytes. */
void vgpu_pci_reset(struct vgpu_pci *pci);

/* Any offset and length; outside the space reads 0xff and writes do nothing. */
void vgpu_pci_read(const struct vgpu_pci *pci, u64 offset, void *buf, size_t len);
void vgpu_pci_write(struct vgpu_pci *pci, u64 offset, const void *buf, size_t len);

/**
 * struct vgpu_pci_cfg_access - an access to a BAR by the window in config space (virtio 1.2,
 * 4.1.4.9)
 * @data: in config space: @len bytes, 1, 2 or 4
 */
struct vgpu_pci_cfg_access {
	u8 bar;
	u32 offset;
	u32 len;
	u8 *data;
};

/*
 * Whether an access to [offset, offset + len) of config space is one to a BAR. A write has stored
 * its data when the access is made; a read fetches its data afterwards. The caller must refuse
 * offsets outside of the BAR.
 */
bool vgpu_pci_cfg_access(struct vgpu_pci *pci, u64 offset, size_t len, struct vgpu_pci_cfg_access *access);

/* PCI_COMMAND_MASTER, set by the guest. */
bool vgpu_pci_bus_master(const struct vgpu_pci *pci);

#endif /* VGPU_MODEL_PCI_CONFIG_H */
