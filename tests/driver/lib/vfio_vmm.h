/* SPDX-License-Identifier: MIT */
/*
 * The VMM's side of VFIO: containers, devices and their regions, guest RAM. With
 * DRIVER_IOMMU=iommufd in the environment a container is an IOAS of /dev/iommu and a device is
 * opened by its own node, else they are a container with a type1 IOMMU and a device of a group.
 * Functions that can fail return 0 (or a descriptor) or a negative errno. Nothing is printed.
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
    bool iommufd;
    bool has_iommu;
    uint32_t ioas;
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

bool vmm_by_iommufd(void);
/*
 * Kilobytes that this process is charged for as the VMM, for pages that devices have pinned: type1
 * counts them as locked, iommufd as pinned (and, for the limit, by user).
 */
uint64_t vmm_charged_kb(void);
int vmm_container_open(VmmContainer *container);
void vmm_container_close(VmmContainer *container);
/* iommufd only: one more address space of the same file, which @first closes. */
int vmm_container_another(const VmmContainer *first, VmmContainer *other);

/* Opens a device by its sysfs directory and name, in a container. */
int vmm_device_open(VmmContainer *container, VmmDevice *dev, const char *sysfs_device,
                    const char *name);
/* The same for a vGPU, which waits for its engine. */
int vmm_vgpu_open(VmmContainer *container, VmmDevice *dev, const char *uuid);
void vmm_device_close(VmmDevice *dev);
/* iommufd only: to another IOAS, or away from any. */
int vmm_device_attach(const VmmContainer *container, const VmmDevice *dev);
int vmm_device_detach(const VmmDevice *dev);

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

/*
 * VFIO's log of written guest memory, by iommufd only. A report sets a bit for each page of
 * VMM_LOG_PAGE bytes that may have been written since the last one.
 */
#define VMM_LOG_PAGE 4096
int vmm_log_start(const VmmDevice *dev, uint64_t iova, uint64_t size);
int vmm_log_stop(const VmmDevice *dev);
int vmm_log_report(const VmmDevice *dev, uint64_t iova, uint64_t size, uint64_t *bitmap);

/* Sums the eventfd's counts, 0 for none; waits @timeout_ms for the first. */
uint64_t vmm_eventfd_take(int fd, int timeout_ms);

#endif /* VFIO_VMM_H */
