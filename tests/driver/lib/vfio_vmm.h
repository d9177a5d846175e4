/* SPDX-License-Identifier: MIT */
/*
 * The VMM's side of VFIO: containers with a type1 IOMMU, groups, devices and their regions, guest
 * RAM. Functions that can fail return 0 (or a descriptor) or a negative errno. Nothing is printed.
 *
 * Mappings made here are not inherited by forked children (MADV_DONTFORK), so that a process that
 * plays another part does not hold a device open.
 */
#ifndef VFIO_VMM_H
#define VFIO_VMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/pci_regs.h>
#include <linux/vfio.h>

typedef struct {
    int fd;
    bool has_iommu;
} VmmContainer;

/* Guest RAM: a memfd, mapped here at @mem and for devices at @iova. */
typedef struct {
    int memfd;
    uint8_t *mem;
    size_t size;
    uint64_t iova;
} VmmRam;

typedef struct {
    int group;
    int fd;
    struct vfio_device_info info;
    struct vfio_region_info region[VFIO_PCI_NUM_REGIONS];
} VmmDevice;

int vmm_container_open(VmmContainer *container);
void vmm_container_close(VmmContainer *container);

/*
 * Opens the group of a device by its sysfs directory, adds it to the container and sets up the
 * IOMMU with the first one. Returns the group's descriptor.
 */
int vmm_group_attach(VmmContainer *container, const char *sysfs_device);
/* The reverse; closes the group. */
void vmm_group_detach(int group);

/* Opens a device of a group; for a vGPU this waits for its engine. Takes over @group. */
int vmm_device_open(VmmDevice *dev, int group, const char *name);
/* Container's group and device in one call, for a vGPU. */
int vmm_vgpu_open(VmmContainer *container, VmmDevice *dev, const char *uuid);
void vmm_device_close(VmmDevice *dev);

/* Registers of a region; @len 1, 2, 4 or 8. */
int vmm_region_read(const VmmDevice *dev, unsigned region, uint64_t offset, void *buf, size_t len);
int vmm_region_write(const VmmDevice *dev, unsigned region, uint64_t offset, const void *buf,
                     size_t len);
uint32_t vmm_config_read(const VmmDevice *dev, unsigned offset, size_t len);
void vmm_config_write(const VmmDevice *dev, unsigned offset, uint32_t value, size_t len);

/* Maps a part of a region, shared; MAP_FAILED with errno. */
void *vmm_region_mmap(const VmmDevice *dev, unsigned region, uint64_t offset, size_t size,
                      int prot);

int vmm_ram_new(VmmRam *ram, size_t size, uint64_t iova);
void vmm_ram_free(VmmRam *ram);
int vmm_ram_map(VmmContainer *container, const VmmRam *ram);

int vmm_dma_map(VmmContainer *container, void *addr, uint64_t iova, uint64_t size, uint32_t flags);
int vmm_dma_unmap(VmmContainer *container, uint64_t iova, uint64_t size);

/* Eventfds of the vectors [start, start + count); -1 removes one. */
int vmm_set_irqs(const VmmDevice *dev, unsigned index, unsigned start, unsigned count,
                 const int *eventfds);
/* VFIO_DEVICE_SET_IRQS with these flags and no data or bool data of value 1. */
int vmm_irq_action(const VmmDevice *dev, unsigned index, unsigned start, unsigned count,
                   uint32_t flags);
int vmm_device_reset(const VmmDevice *dev);

/* VFIO_DEVICE_FEATURE_MIGRATION's flags, or a negative errno. */
int vmm_migration_flags(const VmmDevice *dev);
/* A state of enum vfio_device_mig_state, or a negative errno. */
int vmm_migration_state(const VmmDevice *dev);
/* Sets it; *data: the descriptor to transfer the state with, -1 if there is none. */
int vmm_migration_set_state(const VmmDevice *dev, unsigned state, int *data);

/* Sums the eventfd's counts, 0 for none; waits @timeout_ms for the first. */
uint64_t vmm_eventfd_take(int fd, int timeout_ms);

#endif /* VFIO_VMM_H */
