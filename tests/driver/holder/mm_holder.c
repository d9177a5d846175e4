// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * For the driver tests: what an engine, or the driver of its GPU, can do to those who look up the
 * engine's memory.
 *
 * A process that writes a number of milliseconds to /dev/vgpu-test-holder holds its own mmap_lock
 * for this time, like a long munmap(). The ioctls make dma-bufs whose faults are answered as a GPU's
 * driver may answer them.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/dma-buf.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "mm_holder.h"

#define HOLDER_MAX_BYTES	(64u << 20)

struct holder_pages {
	unsigned long count;
	struct page *page[];
};

static atomic_t holder_again = ATOMIC_INIT(0);
static bool holder_sigbus;
static unsigned int holder_delay_ms;
static atomic_t holder_count = ATOMIC_INIT(0);
static atomic_t holder_held = ATOMIC_INIT(0);
static unsigned int holder_ends;

static void holder_pages_free(struct holder_pages *pages)
{
	unsigned long i;

	for (i = 0; i < pages->count && pages->page[i]; i++)
		__free_page(pages->page[i]);
	kvfree(pages);
}

static struct holder_pages *holder_pages_new(unsigned long count)
{
	struct holder_pages *pages = kvzalloc(struct_size(pages, page, count), GFP_KERNEL);
	unsigned long i;

	if (!pages)
		return NULL;
	pages->count = count;
	for (i = 0; i < count; i++) {
		pages->page[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!pages->page[i]) {
			holder_pages_free(pages);
			return NULL;
		}
	}
	return pages;
}

static vm_fault_t holder_fault(struct vm_fault *vmf)
{
	struct holder_pages *pages = vmf->vma->vm_private_data;

	msleep(READ_ONCE(holder_delay_ms));
	if (atomic_dec_if_positive(&holder_again) >= 0)
		return VM_FAULT_NOPAGE;
	if (READ_ONCE(holder_sigbus) || vmf->pgoff >= pages->count)
		return VM_FAULT_SIGBUS;
	return vmf_insert_pfn(vmf->vma, vmf->address, page_to_pfn(pages->page[vmf->pgoff]));
}

static const struct vm_operations_struct holder_vm_ops = {
	.fault = holder_fault,
};

static int holder_mmap(struct dma_buf *buf, struct vm_area_struct *vma)
{
	vgpu_vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_private_data = buf->priv;
	vma->vm_ops = &holder_vm_ops;
	return 0;
}

static struct sg_table *holder_map(struct dma_buf_attachment *attachment, enum dma_data_direction dir)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static void holder_unmap(struct dma_buf_attachment *attachment, struct sg_table *table,
			 enum dma_data_direction dir)
{
}

static void holder_release(struct dma_buf *buf)
{
	holder_pages_free(buf->priv);
	atomic_dec(&holder_count);
}

static const struct dma_buf_ops holder_buf_ops = {
	.map_dma_buf = holder_map,
	.unmap_dma_buf = holder_unmap,
	.mmap = holder_mmap,
	.release = holder_release,
};

/* A descriptor, or a negative errno. */
static int holder_export(u64 size)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *buf;
	int fd;

	if (!size || size > HOLDER_MAX_BYTES || !PAGE_ALIGNED(size))
		return -EINVAL;
	info.ops = &holder_buf_ops;
	info.size = size;
	info.flags = O_RDWR;
	info.priv = holder_pages_new(size >> PAGE_SHIFT);
	if (!info.priv)
		return -ENOMEM;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf)) {
		holder_pages_free(info.priv);
		return PTR_ERR(buf);
	}
	atomic_inc(&holder_count);
	fd = dma_buf_fd(buf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(buf);
	return fd;
}

static long holder_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	struct holder_buffer buffer;
	struct holder_faults faults;

	switch (cmd) {
	case HOLDER_BUFFER:
		if (copy_from_user(&buffer, user, sizeof(buffer)))
			return -EFAULT;
		buffer.fd = holder_export(buffer.size);
		if (buffer.fd < 0)
			return buffer.fd;
		return copy_to_user(user, &buffer, sizeof(buffer)) ? -EFAULT : 0;
	case HOLDER_FAULTS:
		if (copy_from_user(&faults, user, sizeof(faults)))
			return -EFAULT;
		atomic_set(&holder_again, faults.again);
		WRITE_ONCE(holder_sigbus, faults.sigbus);
		WRITE_ONCE(holder_delay_ms, faults.delay_ms);
		return 0;
	case HOLDER_COUNT:
		return atomic_read(&holder_count);
	case HOLDER_HELD:
		return atomic_read(&holder_held);
	case HOLDER_LET_GO:
		WRITE_ONCE(holder_ends, holder_ends + 1);
		return 0;
	default:
		return -ENOTTY;
	}
}

static ssize_t holder_write(struct file *file, const char __user *user, size_t count, loff_t *ppos)
{
	unsigned int ms, ends = READ_ONCE(holder_ends);
	int ret = kstrtouint_from_user(user, count, 10, &ms);

	if (ret)
		return ret;
	if (mmap_write_lock_killable(current->mm))
		return -EINTR;
	atomic_inc(&holder_held);
	for (; ms && ends == READ_ONCE(holder_ends) && !fatal_signal_pending(current); ms -= min(ms, 20u))
		msleep(20);
	atomic_dec(&holder_held);
	mmap_write_unlock(current->mm);
	return count;
}

static const struct file_operations holder_fops = {
	.owner = THIS_MODULE,
	.write = holder_write,
	.unlocked_ioctl = holder_ioctl,
};

static struct miscdevice holder_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "vgpu-test-holder",
	.fops = &holder_fops,
	.mode = 0600,
};
module_misc_device(holder_device);

/* MODULE_IMPORT_NS() takes a name before 6.13, and a string since. */
MODULE_INFO(import_ns, "DMA_BUF");
MODULE_DESCRIPTION("memory that cannot be looked up at once");
MODULE_LICENSE("Dual MIT/GPL");
