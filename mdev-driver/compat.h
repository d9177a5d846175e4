/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The differences of the kernels that the module is built for (6.1, 6.12, 7.3), so that no other
 * file checks for a version.
 */
#ifndef VGPU_COMPAT_H
#define VGPU_COMPAT_H

#include <linux/device/class.h>
#include <linux/eventfd.h>
#include <linux/mm.h>
#include <linux/shmem_fs.h>
#include <linux/version.h>
#include <linux/vfio.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define vgpu_eventfd_signal(ctx)	eventfd_signal(ctx, 1)
#else
#define vgpu_eventfd_signal(ctx)	eventfd_signal(ctx)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vgpu_vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}

static inline void vgpu_vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#else
#define vgpu_vm_flags_set(vma, flags)	vm_flags_set(vma, flags)
#define vgpu_vm_flags_clear(vma, flags)	vm_flags_clear(vma, flags)
#endif

/* Moved in 6.12. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#include <asm/unaligned.h>
#else
#include <linux/unaligned.h>
#endif

/* An annotation that 6.1 does not have. */
#ifndef __counted_by
#define __counted_by(member)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define VGPU_DEVNODE_DEVICE		struct device
#define VGPU_VFIO_IOMMUFD_OPS
#else
#define VGPU_DEVNODE_DEVICE		const struct device
#define VGPU_VFIO_IOMMUFD_OPS				\
	.bind_iommufd = vfio_iommufd_emulated_bind,	\
	.unbind_iommufd = vfio_iommufd_emulated_unbind,	\
	.attach_ioas = vfio_iommufd_emulated_attach_ioas,	\
	.detach_ioas = vfio_iommufd_emulated_detach_ioas,
#endif

/*
 * VFIO's migration while the VM runs, and the size of what is left, are of 6.2. Without, a VM is
 * saved when it is stopped, and a target that does not fit is found then.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define VGPU_MIGRATION_FLAGS	(VFIO_MIGRATION_STOP_COPY | VFIO_MIGRATION_P2P)
#define VFIO_DEVICE_STATE_PRE_COPY	6
#define VFIO_DEVICE_STATE_PRE_COPY_P2P	7
#define VGPU_MIGRATION_DATA_SIZE(fn)

struct vfio_precopy_info {
	__u32 argsz;
	__u32 flags;
	__aligned_u64 initial_bytes;
	__aligned_u64 dirty_bytes;
};

#define VFIO_MIG_GET_PRECOPY_INFO	_IO(VFIO_TYPE, VFIO_BASE + 21)
#else
#define VGPU_MIGRATION_FLAGS	(VFIO_MIGRATION_STOP_COPY | VFIO_MIGRATION_P2P | VFIO_MIGRATION_PRE_COPY)
#define VGPU_MIGRATION_DATA_SIZE(fn)	.migration_get_data_size = fn,
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
static inline void *kvmemdup(const void *src, size_t len, gfp_t gfp)
{
	void *copy = kvmalloc(len, gfp);

	if (copy)
		memcpy(copy, src, len);
	return copy;
}
#endif

/* The end of a device's release callback. Before 6.2 the core leaves it to the driver to free the device. */
static inline void vgpu_vfio_released(struct vfio_device *vdev)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
	vfio_free_device(vdev);
#endif
}

/* Whether the VMM uses iommufd; else it is VFIO's type1. */
static inline bool vgpu_vfio_by_iommufd(const struct vfio_device *vdev)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
	return false;
#else
	return vdev->iommufd_access;
#endif
}

/* The name space of iova_bitmap_set(), which is there if the kernel has iommufd. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define VGPU_IMPORT_IOMMUFD	MODULE_IMPORT_NS(IOMMUFD)
#else
#define VGPU_IMPORT_IOMMUFD	MODULE_IMPORT_NS("IOMMUFD")
#endif

/* Since 6.19 the core answers VFIO_DEVICE_GET_REGION_INFO and asks the driver by a callback. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
#define VGPU_VFIO_REGION_INFO_OPS(fn)
#else
#define VGPU_VFIO_REGION_INFO_OPS(fn)	.get_region_info_caps = fn,
#endif

/* Shared memory whose pages are accounted when they are allocated. */
static inline struct file *vgpu_shmem_file_setup(const char *name, loff_t size)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
	return shmem_file_setup(name, size, VM_NORESERVE);
#else
	return shmem_file_setup(name, size, mk_vma_flags(VMA_NORESERVE_BIT));
#endif
}

/* Calls @file's mmap() for a VMA that was another file's. */
static inline int vgpu_mmap_file(struct file *file, struct vm_area_struct *vma)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
	return call_mmap(file, vma);
#else
	return vfs_mmap(file, vma);
#endif
}

static inline long vgpu_pin_remote(struct mm_struct *mm, unsigned long addr, unsigned long n,
				   unsigned int flags, struct page **pages)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	return pin_user_pages_remote(mm, addr, n, flags, pages, NULL, NULL);
#else
	return pin_user_pages_remote(mm, addr, n, flags, pages, NULL);
#endif
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#include <linux/pfn_t.h>

static inline vm_fault_t vgpu_insert_mixed(struct vm_area_struct *vma, unsigned long addr,
					   unsigned long pfn)
{
	return vmf_insert_mixed(vma, addr, __pfn_to_pfn_t(pfn, PFN_DEV));
}
#else
#define vgpu_insert_mixed(vma, addr, pfn)	vmf_insert_mixed(vma, addr, pfn)
#endif

/* Before 6.4 every fault holds the mmap_lock. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define FAULT_FLAG_VMA_LOCK	0
#endif

/*
 * Device memory by a whole PMD. Before 6.12 KVM and the core take such a mapping for ordinary
 * memory. Not writable by itself: if the fault's PMD has a page table meanwhile, it stays.
 */
#ifdef CONFIG_ARCH_SUPPORTS_PMD_PFNMAP
#define VGPU_HUGE_FAULT_OPS(fn)	.huge_fault = fn,

static inline vm_fault_t vgpu_insert_pmd(struct vm_fault *vmf, unsigned long pfn)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
	return vmf_insert_pfn_pmd(vmf, __pfn_to_pfn_t(pfn, PFN_DEV), false);
#else
	return vmf_insert_pfn_pmd(vmf, pfn, false);
#endif
}
#else
#define VGPU_HUGE_FAULT_OPS(fn)
#define vgpu_insert_pmd(vmf, pfn)	VM_FAULT_FALLBACK
#endif

/* The PFN that a present, writable PTE of @vma maps at @addr; -EAGAIN if there is none. */
static inline int vgpu_follow_pfn(struct vm_area_struct *vma, unsigned long addr,
				  unsigned long *pfn)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
	spinlock_t *ptl;
	pte_t *pte;
	int ret;

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
	if (follow_pte(vma->vm_mm, addr, &pte, &ptl))
#else
	if (follow_pte(vma, addr, &pte, &ptl))
#endif
		return -EAGAIN;
	__acquire(ptl);	/* sparse cannot see it in follow_pte() */
	*pfn = pte_pfn(*pte);
	ret = pte_write(*pte) ? 0 : -EAGAIN;
	pte_unmap_unlock(pte, ptl);
	return ret;
#else
	struct follow_pfnmap_args args = { .vma = vma, .address = addr };
	int ret;

	if (follow_pfnmap_start(&args))
		return -EAGAIN;
	*pfn = args.pfn;
	ret = args.writable ? 0 : -EAGAIN;
	follow_pfnmap_end(&args);
	return ret;
#endif
}

static inline int vgpu_pte_is_there(pte_t *pte, unsigned long addr, void *data)
{
	return 0;
}

/*
 * Allocates the fault's page table, if there is none. Later, under map_lock, it would be allocated
 * without reclaim, from the kernel's reserves.
 */
static inline int vgpu_prepare_pte(struct vm_fault *vmf)
{
	return apply_to_page_range(vmf->vma->vm_mm, vmf->address & PAGE_MASK, PAGE_SIZE,
				   vgpu_pte_is_there, NULL);
}

#endif /* VGPU_COMPAT_H */
