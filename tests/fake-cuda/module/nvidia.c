// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A kernel module that is called nvidia, for tests/system/61-cuda.t: what vgpud and container
 * runtimes see of NVIDIA's module, and nothing of what that does. It takes a PCI device by
 * driver_override only. It has a version in sysfs, /proc/driver/nvidia/gpus/ADDRESS/information,
 * and nodes that can be opened.
 */
#include <linux/fs.h>
#include <linux/kmod.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

static struct proc_dir_entry *gpus;

static int show_information(struct seq_file *file, void *unused)
{
	seq_puts(file, "Model: \t\t Fake\nDevice Minor: \t 0\n");
	return 0;
}

static int nvidia_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct proc_dir_entry *dir = proc_mkdir(pci_name(pdev), gpus);

	if (!dir || !proc_create_single("information", 0444, dir, show_information))
		return -ENOMEM;
	return 0;
}

static void nvidia_remove(struct pci_dev *pdev)
{
	remove_proc_subtree(pci_name(pdev), gpus);
}

/* None: only driver_override makes it take a device. */
static const struct pci_device_id nvidia_ids[] = { {} };

static struct pci_driver nvidia_driver = {
	.name = "nvidia",
	.id_table = nvidia_ids,
	.probe = nvidia_probe,
	.remove = nvidia_remove,
};

static int nvidia_open(struct inode *inode, struct file *file)
{
	return 0;
}

static const struct file_operations nvidia_fops = {
	.owner = THIS_MODULE,
	.open = nvidia_open,
};

/* As NVIDIA's: udev is not told of them, so it makes neither nodes nor links in /dev/char. */
#define NVIDIA_MAJOR 195

static int uvm_major;

/* Nodes are made by a program that the module starts, as NVIDIA's are by nvidia-modprobe. */
static int run(char *command)
{
	char *argv[] = { "/bin/sh", "-c", command, NULL };
	char *envp[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };

	return call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC);
}

static void remove_nodes(void)
{
	run("rm -f /dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm");
}

static int make_nodes(void)
{
	char command[192];

	remove_nodes();
	snprintf(command, sizeof(command),
		 "mknod -m 666 /dev/nvidia0 c %d 0 && mknod -m 666 /dev/nvidiactl c %d 255 && "
		 "mknod -m 666 /dev/nvidia-uvm c %d 0", NVIDIA_MAJOR, NVIDIA_MAJOR, uvm_major);
	return run(command) ? -EIO : 0;
}

static int register_numbers(void)
{
	int ret = register_chrdev(NVIDIA_MAJOR, "nvidia", &nvidia_fops);

	if (ret)
		return ret;
	uvm_major = register_chrdev(0, "nvidia-uvm", &nvidia_fops);
	if (uvm_major > 0)
		return 0;
	unregister_chrdev(NVIDIA_MAJOR, "nvidia");
	return uvm_major;
}

static void unregister_numbers(void)
{
	unregister_chrdev(uvm_major, "nvidia-uvm");
	unregister_chrdev(NVIDIA_MAJOR, "nvidia");
}

static int __init nvidia_init(void)
{
	int ret;

	gpus = proc_mkdir("driver/nvidia", NULL) ? proc_mkdir("driver/nvidia/gpus", NULL) : NULL;
	if (!gpus)
		return -ENOMEM;
	ret = register_numbers();
	if (ret)
		goto err_proc;
	ret = make_nodes();
	if (!ret)
		ret = pci_register_driver(&nvidia_driver);
	if (!ret)
		return 0;
	remove_nodes();
	unregister_numbers();
err_proc:
	remove_proc_subtree("driver/nvidia", NULL);
	return ret;
}
module_init(nvidia_init);

static void __exit nvidia_exit(void)
{
	pci_unregister_driver(&nvidia_driver);
	remove_nodes();
	unregister_numbers();
	remove_proc_subtree("driver/nvidia", NULL);
}
module_exit(nvidia_exit);

MODULE_DESCRIPTION("stands for NVIDIA's module in tests");
MODULE_VERSION("570.1");
MODULE_LICENSE("Dual MIT/GPL");
