// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The VMM's side of a vGPU: a VFIO PCI device (include/uapi/linux/vfio.h).
 */
#include <linux/lockdep.h>
#include <linux/pci_ids.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "vgpu_private.h"

#define VGPU_REGION_SHIFT	40
#define VGPU_REGION_MASK	GENMASK_ULL(VGPU_REGION_SHIFT - 1, 0)

/* The largest access that a VMM makes at once; longer ones are cut and continue with a new call. */
#define VGPU_ACCESS_MAX		8

static u64 vgpu_region_size(const struct vgpu *vgpu, u32 index)
{
	switch (index) {
	case VFIO_PCI_CONFIG_REGION_INDEX:
		return VGPU_PCI_CONFIG_SIZE;
	case VFIO_PCI_BAR0_REGION_INDEX + VGPU_BAR_REGS:
		return VGPU_BAR_REGS_SIZE;
	case VFIO_PCI_BAR0_REGION_INDEX + VGPU_BAR_MSIX:
		return VGPU_BAR_MSIX_SIZE;
	case VFIO_PCI_BAR0_REGION_INDEX + VGPU_BAR_WINDOW:
		return vgpu->window_bytes_open;
	case VGPU_REGION_PICTURE:
		return vgpu_display_there(vgpu) ? VGPU_PICTURE_SIZE : 0;
	case VGPU_REGION_EDID:
		return vgpu_display_there(vgpu) ? VGPU_EDID_REGION_SIZE : 0;
	default:
		return 0;
	}
}

static int vgpu_vfio_edid_caps(struct vfio_info_cap *caps)
{
	struct vfio_region_info_cap_type cap = {
		.header.id = VFIO_REGION_INFO_CAP_TYPE,
		.header.version = 1,
		.type = VFIO_REGION_TYPE_GFX,
		.subtype = VFIO_REGION_SUBTYPE_GFX_EDID,
	};

	return vfio_info_add_capability(caps, &cap.header, sizeof(cap));
}

static int vgpu_vfio_region_info(struct vfio_device *vdev, struct vfio_region_info *info,
				 struct vfio_info_cap *caps)
{
	struct vgpu *vgpu = vgpu_from_vdev(vdev);

	if (info->index >= VGPU_NUM_REGIONS)
		return -EINVAL;
	info->offset = (u64)info->index << VGPU_REGION_SHIFT;
	info->size = vgpu_region_size(vgpu, info->index);
	info->flags = 0;
	if (info->size)
		info->flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	if (info->index == VFIO_PCI_BAR0_REGION_INDEX + VGPU_BAR_WINDOW)
		info->flags |= VFIO_REGION_INFO_FLAG_MMAP;
	/* The VMM has nothing to show. */
	if (info->index == VGPU_REGION_PICTURE && info->size)
		info->flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_MMAP;
	return info->index == VGPU_REGION_EDID && info->size ? vgpu_vfio_edid_caps(caps) : 0;
}

static int vgpu_vfio_check_open(struct vgpu *vgpu)
{
	int ret;

	vgpu_gpus_lock();
	ret = vgpu_gpu_check_open(vgpu);
	vgpu_gpus_unlock();
	return ret;
}

/*
 * Marked as open under gpus_lock, so that a drain sees it. Readers of all tenants wait for that lock,
 * so the work that follows, which frees what the last VMM had, is done without it.
 */
static int vgpu_vfio_power_on(struct vgpu *vgpu)
{
	int ret;

	vgpu_gpus_lock();
	mutex_lock(&vgpu->lock);
	ret = vgpu_gpu_check_open(vgpu);
	if (!ret)
		vgpu_device_step(vgpu, VGPU_ON_OPEN);
	vgpu_gpus_unlock();
	ret = ret ?: vgpu_device_power_on(vgpu);
	mutex_unlock(&vgpu->lock);
	return ret;
}

static int vgpu_vfio_open(struct vfio_device *vdev)
{
	struct vgpu *vgpu = vgpu_from_vdev(vdev);
	int ret;

	/* Checked now to avoid a useless wait, and again after the wait, when it counts. */
	ret = vgpu_vfio_check_open(vgpu) ?: vgpu_engine_wait_ready(vgpu) ?: vgpu_vfio_power_on(vgpu);
	if (ret)
		return ret;
	vdev->log_ops = vgpu_vfio_by_iommufd(vdev) ? &vgpu_log_ops : NULL;
	vgpu_device_tell(vgpu);
	return 0;
}

static void vgpu_vfio_close(struct vfio_device *vdev)
{
	struct vgpu *vgpu = vgpu_from_vdev(vdev);

	vgpu_migration_reset(vgpu);
	mutex_lock(&vgpu->lock);
	vgpu_device_power_off(vgpu);
	vgpu_pci_reset(&vgpu->pci);
	vgpu_display_close(vgpu);
	mutex_unlock(&vgpu->lock);
	/* VFIO takes no pages back from a closed device. */
	flush_work(&vgpu->mem.release_work);
	vgpu_dirty_stop(vgpu);
	vgpu_irq_release_all(vgpu);
	flush_work(&vgpu->look_work);
	cancel_delayed_work_sync(&vgpu->answer_work);
	vgpu_device_tell(vgpu);
}

static void vgpu_region_read(struct vgpu *vgpu, u32 index, u64 offset, void *buf, size_t len)
{
	mutex_lock(&vgpu->lock);
	switch (index) {
	case VFIO_PCI_CONFIG_REGION_INDEX:
		vgpu_device_config_read(vgpu, offset, buf, len);
		break;
	case VFIO_PCI_BAR0_REGION_INDEX + VGPU_BAR_REGS:
		vgpu_device_read(vgpu, offset, buf, len);
		break;
	case VFIO_PCI_BAR0_REGION_INDEX + VGPU_BAR_WINDOW:
		vgpu_window_read(offset, buf, len);
		break;
	case VGPU_REGION_EDID:
		vgpu_edid_read(&vgpu->display.edid, offset, buf, len);
		break;
	default:
		/* VFIO's user keeps the MSI-X table, and the picture is accessed by mmap(). */
		memset(buf, 0, len);
	}
	mutex_unlock(&vgpu->lock);
}

static void vgpu_region_write(struct vgpu *vgpu, u32 index, u64 offset, const void *buf, size_t len)
{
	if (index == VFIO_PCI_BAR0_REGION_INDEX + VGPU_BAR_REGS && vgpu_device_doorbell(vgpu, offset, len))
		return;
	mutex_lock(&vgpu->lock);
	switch (index) {
	case VFIO_PCI_CONFIG_REGION_INDEX:
		vgpu_device_config_write(vgpu, offset, buf, len);
		break;
	case VFIO_PCI_BAR0_REGION_INDEX + VGPU_BAR_REGS:
		vgpu_device_write(vgpu, offset, buf, len);
		break;
	case VGPU_REGION_EDID:
		vgpu_display_write_edid(vgpu, offset, buf, len);
		break;
	}
	mutex_unlock(&vgpu->lock);
}

/* How much of an access to serve at once: naturally aligned, within the region. 0 at its end. */
static size_t vgpu_region_chunk(const struct vgpu *vgpu, u64 pos, size_t count, u32 *index)
{
	u64 offset = pos & VGPU_REGION_MASK, size;
	size_t chunk = VGPU_ACCESS_MAX;

	*index = pos >> VGPU_REGION_SHIFT;
	size = vgpu_region_size(vgpu, *index);
	if (offset >= size)
		return 0;
	count = min_t(u64, count, size - offset);
	while (chunk > count || offset % chunk)
		chunk /= 2;
	return chunk;
}

static ssize_t vgpu_vfio_access(struct vgpu *vgpu, char __user *user, size_t count, loff_t *ppos,
				bool write)
{
	size_t done = 0, chunk;
	u8 buf[VGPU_ACCESS_MAX];
	u32 index;

	while (done < count && !fatal_signal_pending(current)) {
		cond_resched();
		chunk = vgpu_region_chunk(vgpu, *ppos, count - done, &index);
		if (!chunk)
			break;
		if (write && copy_from_user(buf, user + done, chunk))
			return -EFAULT;
		if (write)
			vgpu_region_write(vgpu, index, *ppos & VGPU_REGION_MASK, buf, chunk);
		else
			vgpu_region_read(vgpu, index, *ppos & VGPU_REGION_MASK, buf, chunk);
		if (!write && copy_to_user(user + done, buf, chunk))
			return -EFAULT;
		done += chunk;
		*ppos += chunk;
	}
	return done ?: (count ? (fatal_signal_pending(current) ? -EINTR : -EINVAL) : 0);
}

static ssize_t vgpu_vfio_read(struct vfio_device *vdev, char __user *user, size_t count,
			      loff_t *ppos)
{
	return vgpu_vfio_access(vgpu_from_vdev(vdev), user, count, ppos, false);
}

static ssize_t vgpu_vfio_write(struct vfio_device *vdev, const char __user *user, size_t count,
			       loff_t *ppos)
{
	return vgpu_vfio_access(vgpu_from_vdev(vdev), (char __user *)user, count, ppos, true);
}

static int vgpu_vfio_mmap(struct vfio_device *vdev, struct vm_area_struct *vma)
{
	struct vgpu *vgpu = vgpu_from_vdev(vdev);
	u32 index = vma->vm_pgoff >> (VGPU_REGION_SHIFT - PAGE_SHIFT);

	vma->vm_pgoff &= VGPU_REGION_MASK >> PAGE_SHIFT;
	switch (index) {
	case VFIO_PCI_BAR0_REGION_INDEX + VGPU_BAR_WINDOW:
		return vgpu_window_mmap(vgpu, vma);
	case VGPU_REGION_PICTURE:
		return vgpu_display_mmap(vgpu, vma, false);
	default:
		return -EINVAL;
	}
}

static long vgpu_ioctl_info(void __user *arg)
{
	struct vfio_device_info info;
	size_t minsz = offsetofend(struct vfio_device_info, num_irqs);

	if (copy_from_user(&info, arg, minsz))
		return -EFAULT;
	if (info.argsz < minsz)
		return -EINVAL;
	info.flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET;
	info.num_regions = VGPU_NUM_REGIONS;
	info.num_irqs = VFIO_PCI_NUM_IRQS;
	return copy_to_user(arg, &info, minsz) ? -EFAULT : 0;
}

/* After @info, if the caller has left room; else it gets the required size. Takes @caps. */
static int vgpu_region_put_caps(struct vfio_region_info *info, struct vfio_info_cap *caps,
				void __user *arg)
{
	int ret = 0;

	if (!caps->size)
		return 0;
	info->flags |= VFIO_REGION_INFO_FLAG_CAPS;
	if (info->argsz < sizeof(*info) + caps->size) {
		info->argsz = sizeof(*info) + caps->size;
	} else {
		vfio_info_cap_shift(caps, sizeof(*info));
		if (copy_to_user(arg + sizeof(*info), caps->buf, caps->size))
			ret = -EFAULT;
		info->cap_offset = sizeof(*info);
	}
	kfree(caps->buf);
	return ret;
}

static long vgpu_ioctl_region_info(struct vgpu *vgpu, void __user *arg)
{
	struct vfio_info_cap caps = { .buf = NULL, .size = 0 };
	struct vfio_region_info info;
	size_t minsz = offsetofend(struct vfio_region_info, offset);
	int ret;

	if (copy_from_user(&info, arg, minsz))
		return -EFAULT;
	if (info.argsz < minsz)
		return -EINVAL;
	info.cap_offset = 0;
	ret = vgpu_vfio_region_info(&vgpu->vdev, &info, &caps) ?:
	      vgpu_region_put_caps(&info, &caps, arg);
	if (ret)
		return ret;
	return copy_to_user(arg, &info, minsz) ? -EFAULT : 0;
}

static long vgpu_ioctl_query_plane(struct vgpu *vgpu, void __user *arg)
{
	size_t minsz = offsetofend(struct vfio_device_gfx_plane_info, region_index);
	struct vfio_device_gfx_plane_info plane;
	int ret;

	if (copy_from_user(&plane, arg, minsz))
		return -EFAULT;
	if (plane.argsz < minsz)
		return -EINVAL;
	mutex_lock(&vgpu->lock);
	ret = vgpu_display_query_plane(vgpu, &plane);
	mutex_unlock(&vgpu->lock);
	if (ret)
		return ret;
	return copy_to_user(arg, &plane, minsz) ? -EFAULT : 0;
}

static long vgpu_ioctl_irq_info(void __user *arg)
{
	struct vfio_irq_info info;
	size_t minsz = offsetofend(struct vfio_irq_info, count);

	if (copy_from_user(&info, arg, minsz))
		return -EFAULT;
	if (info.argsz < minsz || info.index >= VFIO_PCI_NUM_IRQS)
		return -EINVAL;
	info.count = vgpu_irq_count(info.index);
	info.flags = info.count ? VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE : 0;
	return copy_to_user(arg, &info, minsz) ? -EFAULT : 0;
}

static long vgpu_ioctl_set_irqs(struct vgpu *vgpu, void __user *arg)
{
	size_t minsz = offsetofend(struct vfio_irq_set, count);
	struct vfio_irq_set hdr;
	size_t data_size = 0;
	void *data = NULL;
	int ret;

	if (copy_from_user(&hdr, arg, minsz))
		return -EFAULT;
	if (hdr.index >= VFIO_PCI_NUM_IRQS)
		return -EINVAL;
	ret = vfio_set_irqs_validate_and_prepare(&hdr, vgpu_irq_count(hdr.index), VFIO_PCI_NUM_IRQS,
						 &data_size);
	if (ret)
		return ret;
	if (data_size) {
		data = memdup_user(arg + minsz, data_size);
		if (IS_ERR(data))
			return PTR_ERR(data);
	}
	ret = vgpu_irq_set(vgpu, hdr.flags, hdr.index, hdr.start, hdr.count, data);
	kfree(data);
	return ret;
}

static long vgpu_ioctl_reset(struct vgpu *vgpu)
{
	vgpu_migration_reset(vgpu);
	mutex_lock(&vgpu->lock);
	vgpu_device_reset(vgpu);
	vgpu_pci_reset(&vgpu->pci);
	mutex_unlock(&vgpu->lock);
	return 0;
}

static long vgpu_vfio_ioctl(struct vfio_device *vdev, unsigned int cmd, unsigned long arg)
{
	struct vgpu *vgpu = vgpu_from_vdev(vdev);
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case VFIO_DEVICE_GET_INFO:
		return vgpu_ioctl_info(user);
	case VFIO_DEVICE_GET_REGION_INFO:
		return vgpu_ioctl_region_info(vgpu, user);
	case VFIO_DEVICE_GET_IRQ_INFO:
		return vgpu_ioctl_irq_info(user);
	case VFIO_DEVICE_SET_IRQS:
		return vgpu_ioctl_set_irqs(vgpu, user);
	case VFIO_DEVICE_RESET:
		return vgpu_ioctl_reset(vgpu);
	case VFIO_DEVICE_QUERY_GFX_PLANE:
		return vgpu_ioctl_query_plane(vgpu, user);
	default:
		return -ENOTTY;
	}
}

static void vgpu_vfio_request(struct vfio_device *vdev, unsigned int count)
{
	struct vgpu *vgpu = vgpu_from_vdev(vdev);

	if (!count)
		dev_notice(vgpu_dev(vgpu), "in use by a VM; asked it to release the device\n");
	vgpu_irq_request(vgpu);
}

/*
 * type1 calls this with its list of devices locked. Unpinning takes its lock of the container, and
 * inside that it takes the list's: this is VFIO's own order, and every mdev driver that pins must
 * follow it. A deadlock needs a VMM that unmaps memory of a container and adds a device to it, or closes
 * one, at the same time; such a VMM can't be killed, and keeps its vGPUs (docs/upstream.md). lockdep
 * would report it at the first pin of every boot. iommufd holds no lock here, so there lockdep sees
 * all of ours.
 */
static void vgpu_vfio_dma_unmap(struct vfio_device *vdev, u64 iova, u64 length)
{
	bool type1 = !vgpu_vfio_by_iommufd(vdev);

	if (type1)
		lockdep_off();
	vgpu_mem_dma_unmap(vgpu_from_vdev(vdev), iova, length);
	if (type1)
		lockdep_on();
}

static int vgpu_vfio_init(struct vfio_device *vdev)
{
	return vgpu_object_init(vgpu_from_vdev(vdev));
}

static void vgpu_vfio_release(struct vfio_device *vdev)
{
	vgpu_object_fini(vgpu_from_vdev(vdev));
	vgpu_vfio_released(vdev);
}

const struct vfio_device_ops vgpu_vfio_ops = {
	.name = VGPU_DRIVER_NAME,
	.init = vgpu_vfio_init,
	.release = vgpu_vfio_release,
	.open_device = vgpu_vfio_open,
	.close_device = vgpu_vfio_close,
	.read = vgpu_vfio_read,
	.write = vgpu_vfio_write,
	.mmap = vgpu_vfio_mmap,
	.ioctl = vgpu_vfio_ioctl,
	.request = vgpu_vfio_request,
	.dma_unmap = vgpu_vfio_dma_unmap,
	VGPU_VFIO_IOMMUFD_OPS
	VGPU_VFIO_REGION_INFO_OPS(vgpu_vfio_region_info)
};
