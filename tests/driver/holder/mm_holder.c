// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * For t-stall: a process that writes a number of milliseconds to /dev/vgpu-test-holder holds its
 * own mmap_lock for this time, like a long munmap(), or a driver that waits for its GPU.
 */
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>

static ssize_t holder_write(struct file *file, const char __user *user, size_t count, loff_t *ppos)
{
	unsigned int ms;
	int ret = kstrtouint_from_user(user, count, 10, &ms);

	if (ret)
		return ret;
	if (mmap_write_lock_killable(current->mm))
		return -EINTR;
	for (; ms && !fatal_signal_pending(current); ms -= min(ms, 20u))
		msleep(20);
	mmap_write_unlock(current->mm);
	return count;
}

static const struct file_operations holder_fops = {
	.owner = THIS_MODULE,
	.write = holder_write,
};

static struct miscdevice holder_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "vgpu-test-holder",
	.fops = &holder_fops,
	.mode = 0600,
};
module_misc_device(holder_device);

MODULE_DESCRIPTION("holds the mmap_lock of the process that asks for it");
MODULE_LICENSE("Dual MIT/GPL");
