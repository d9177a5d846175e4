// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Physical GPUs that are shared, and the ledger of each GPU's promises.
 *
 * A GPU stays bound to its own driver. When that goes (unbind, unplug), its vGPUs are revoked at
 * once, and a work item unregisters the mdev parent, because that waits for VMMs. If the GPU leaves
 * sysfs before they have closed its vGPUs, the directories of these first move to
 * /sys/devices/vgpu-removed: deleted with the GPU's, they would be missing when the driver core
 * removes the vGPUs.
 */
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/kernfs.h>
#include <linux/major.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "vgpu_private.h"

#define VGPU_DRM_MAJOR		226
#define VGPU_REMOVED_NAME	"vgpu-removed"

/* Serialises the calls of /dev/vgpu-control; outermost. */
static DEFINE_MUTEX(control_lock);
static LIST_HEAD(gpus);
static DEFINE_MUTEX(gpus_lock);
/* Unregistering may wait for a VMM for long: not on a shared workqueue. */
static struct workqueue_struct *gpu_wq;
/* GPUs that nobody uses any more. */
static LLIST_HEAD(dead_gpus);
/* The place in sysfs of vGPUs whose GPU has left it. */
static struct device *vgpu_removed;

static struct class vgpu_soft_class = {
	.name = "vgpu-soft",
};

void vgpu_gpus_lock(void)
{
	mutex_lock(&gpus_lock);
}

void vgpu_gpus_unlock(void)
{
	mutex_unlock(&gpus_lock);
}

static struct vgpu_gpu *vgpu_gpu_find(const char *name)
{
	struct vgpu_gpu *gpu;

	lockdep_assert_held(&gpus_lock);
	list_for_each_entry(gpu, &gpus, node)
		if (!strcmp(gpu->name, name))
			return gpu;
	return NULL;
}

static void vgpu_gpu_free(struct vgpu_gpu *gpu)
{
	kfree(gpu->type_ptrs);
	kfree(gpu->types);
	kfree(gpu);
}

static bool vgpu_gpu_types_referenced(const struct vgpu_gpu *gpu)
{
	u32 i;

	for (i = 0; i < gpu->ntypes; i++)
		if (gpu->types[i].core.parent && kref_read(&gpu->types[i].core.kobj.kref))
			return true;
	return false;
}

/* How long after its last reference a kobject may still be at work; kernels that test kobjects release them late. */
#define VGPU_GPU_REST	(IS_ENABLED(CONFIG_DEBUG_KOBJECT_RELEASE) ? 10 * HZ : HZ)

/*
 * mdev's objects are in ours, and the core does not report when the last of them is gone (someone may
 * hold an mdev by its struct device). So what a GPU has in memory, some KiB, stays until another one is
 * shared a while later, or the module goes.
 */
static void vgpu_gpus_free_dead(void)
{
	struct llist_node *dead = llist_del_all(&dead_gpus);
	struct vgpu_gpu *gpu, *next;

	llist_for_each_entry_safe(gpu, next, dead, dead) {
		bool referenced = vgpu_gpu_types_referenced(gpu);

		if (!referenced && !gpu->unreferenced)
			gpu->unreferenced = jiffies ?: 1;
		if (!referenced && time_after(jiffies, gpu->unreferenced + VGPU_GPU_REST))
			vgpu_gpu_free(gpu);
		else
			llist_add(&gpu->dead, &dead_gpus);
	}
}

static void vgpu_gpu_release(struct kref *kref)
{
	struct vgpu_gpu *gpu = container_of(kref, struct vgpu_gpu, kref);

	put_device(gpu->dev);
	llist_add(&gpu->dead, &dead_gpus);
}

void vgpu_gpu_put(struct vgpu_gpu *gpu)
{
	kref_put(&gpu->kref, vgpu_gpu_release);
}

static void vgpu_gpu_unlist(struct vgpu_gpu *gpu)
{
	mutex_lock(&gpus_lock);
	list_del(&gpu->node);
	mutex_unlock(&gpus_lock);
}

/* Unregisters the parent, which removes its vGPUs and may wait for their VMMs. */
static void vgpu_gpu_unregister(struct vgpu_gpu *gpu)
{
	mdev_unregister_parent(&gpu->parent);
	if (gpu->soft)
		device_del(gpu->dev);
	vgpu_gpu_unlist(gpu);
	vgpu_gpu_put(gpu);
}

static void vgpu_gpu_unregister_work(struct work_struct *work)
{
	vgpu_gpu_unregister(container_of(work, struct vgpu_gpu, unregister_work));
}

static int vgpu_pci_match_name(struct device *dev, const void *name)
{
	return !strcmp(dev_name(dev), name);
}

/* 0: usable as a parent. Under the device's lock. */
static int vgpu_gpu_check_parent(struct device *dev)
{
	struct kernfs_node *types;

	if (to_pci_dev(dev)->class >> 16 != PCI_BASE_CLASS_DISPLAY)
		return -ENOTTY;
	if (!dev->driver)
		return -ENXIO;
	/* mdev's core would only log that. */
	types = sysfs_get_dirent(dev->kobj.sd, "mdev_supported_types");
	if (types) {
		sysfs_put(types);
		return -EBUSY;
	}
	return 0;
}

/* The parent device, with a reference. */
static struct device *vgpu_gpu_device(const char *name, bool soft)
{
	struct device *dev;

	if (soft)
		return device_create(&vgpu_soft_class, NULL, 0, NULL, "%s",
				     name + strlen(VGPU_SOFT_PREFIX));
	dev = bus_find_device(&pci_bus_type, NULL, name, vgpu_pci_match_name);
	return dev ?: ERR_PTR(-ENODEV);
}

static struct vgpu_gpu *vgpu_gpu_new(const struct vgpu_control_gpu *arg,
				     const struct vgpu_type_desc *descs)
{
	struct vgpu_gpu *gpu = kzalloc(sizeof(*gpu), GFP_KERNEL);
	u32 i;

	if (!gpu)
		return NULL;
	gpu->types = kcalloc(arg->ntypes, sizeof(*gpu->types), GFP_KERNEL);
	gpu->type_ptrs = kcalloc(arg->ntypes, sizeof(*gpu->type_ptrs), GFP_KERNEL);
	if (!gpu->types || !gpu->type_ptrs) {
		vgpu_gpu_free(gpu);
		return NULL;
	}

	kref_init(&gpu->kref);
	INIT_LIST_HEAD(&gpu->vgpus);
	INIT_WORK(&gpu->unregister_work, vgpu_gpu_unregister_work);
	strscpy(gpu->name, arg->gpu, sizeof(gpu->name));
	gpu->soft = strstarts(arg->gpu, VGPU_SOFT_PREFIX);
	gpu->vram_bytes = arg->vram_bytes;
	gpu->ntypes = arg->ntypes;
	for (i = 0; i < arg->ntypes; i++) {
		struct vgpu_type *type = &gpu->types[i];

		type->desc = descs[i];
		type->gpu = gpu;
		type->core.sysfs_name = type->desc.name;
		type->core.pretty_name = type->desc.name;
		gpu->type_ptrs[i] = &type->core;
	}
	return gpu;
}

/*
 * Under the device's lock, but not under gpus_lock: mdev's core creates attributes here whose
 * readers take that. A GPU that goes away meanwhile is found in the list and marked, and is
 * unregistered as soon as it is registered.
 */
static int vgpu_gpu_register(struct vgpu_gpu *gpu)
{
	int ret = gpu->soft ? 0 : vgpu_gpu_check_parent(gpu->dev);

	if (ret)
		return ret;
	if (!gpu->soft)
		gpu->owner = gpu->dev->driver->owner;
	mutex_lock(&gpus_lock);
	list_add_tail(&gpu->node, &gpus);
	mutex_unlock(&gpus_lock);
	ret = mdev_register_parent(&gpu->parent, gpu->dev, &vgpu_mdev_driver, gpu->type_ptrs,
				   gpu->ntypes);
	if (ret) {
		vgpu_gpu_unlist(gpu);
		return ret;
	}
	mutex_lock(&gpus_lock);
	gpu->registered = true;
	if (gpu->gone)
		queue_work(gpu_wq, &gpu->unregister_work);
	mutex_unlock(&gpus_lock);
	return 0;
}

/* 0: the name is free. EAGAIN: a GPU of that name has gone, but a VM still holds a vGPU of it. */
static int vgpu_gpu_name_free(const char *name)
{
	struct vgpu_gpu *gpu;
	int ret = 0;

	mutex_lock(&gpus_lock);
	gpu = vgpu_gpu_find(name);
	if (gpu)
		ret = gpu->gone ? -EAGAIN : -EEXIST;
	mutex_unlock(&gpus_lock);
	return ret;
}

static int vgpu_gpu_do_add(const struct vgpu_control_gpu *arg, const struct vgpu_type_desc *descs,
			   bool draining)
{
	struct vgpu_gpu *gpu;
	int ret;

	lockdep_assert_held(&control_lock);
	ret = vgpu_gpu_name_free(arg->gpu);
	if (ret)
		return ret;
	vgpu_gpus_free_dead();
	gpu = vgpu_gpu_new(arg, descs);
	if (!gpu)
		return -ENOMEM;
	gpu->draining = draining;
	gpu->dev = vgpu_gpu_device(gpu->name, gpu->soft);
	if (IS_ERR(gpu->dev)) {
		ret = PTR_ERR(gpu->dev);
		vgpu_gpu_free(gpu);
		return ret;
	}

	device_lock(gpu->dev);
	ret = vgpu_gpu_register(gpu);
	device_unlock(gpu->dev);
	if (ret) {
		if (gpu->soft)
			device_del(gpu->dev);
		vgpu_gpu_put(gpu);
	}
	return ret;
}

/* @keep: the caller gets a reference to the GPU, which is not shared any more. */
static int vgpu_gpu_do_remove(const char *name, struct vgpu_gpu **keep)
{
	struct vgpu_gpu *gpu;
	int ret = 0;

	lockdep_assert_held(&control_lock);
	mutex_lock(&gpus_lock);
	gpu = vgpu_gpu_find(name);
	if (!gpu || gpu->gone)
		ret = -ENODEV;
	else if (!list_empty(&gpu->vgpus))
		ret = -EBUSY;
	else
		gpu->gone = true;	/* no vGPU from now on */
	mutex_unlock(&gpus_lock);
	if (ret)
		return ret;
	if (keep) {
		kref_get(&gpu->kref);
		*keep = gpu;
	}
	vgpu_gpu_unregister(gpu);
	return 0;
}

int vgpu_gpu_add(const struct vgpu_control_gpu *arg, const struct vgpu_type_desc *descs)
{
	int ret;

	mutex_lock(&control_lock);
	ret = vgpu_gpu_do_add(arg, descs, false);
	mutex_unlock(&control_lock);
	return ret;
}

int vgpu_gpu_remove(const char *name)
{
	int ret;

	mutex_lock(&control_lock);
	ret = vgpu_gpu_do_remove(name, NULL);
	mutex_unlock(&control_lock);
	return ret;
}

static const struct vgpu_type_desc *vgpu_desc_find(const struct vgpu_control_gpu *arg,
						   const struct vgpu_type_desc *descs,
						   const char *name)
{
	u32 i;

	for (i = 0; i < arg->ntypes; i++)
		if (!strcmp(descs[i].name, name))
			return &descs[i];
	return NULL;
}

static bool vgpu_same_names(const struct vgpu_gpu *gpu, const struct vgpu_control_gpu *arg,
			    const struct vgpu_type_desc *descs)
{
	u32 i;

	if (gpu->ntypes != arg->ntypes)
		return false;
	for (i = 0; i < gpu->ntypes; i++)
		if (!vgpu_desc_find(arg, descs, gpu->types[i].desc.name))
			return false;
	return true;
}

/* 0: done. EAGAIN: the names differ. */
static int vgpu_gpu_set_in_place(const struct vgpu_control_gpu *arg,
				 const struct vgpu_type_desc *descs)
{
	struct vgpu_gpu *gpu = vgpu_gpu_find(arg->gpu);
	u32 i;

	if (!gpu || gpu->gone)
		return -ENODEV;
	if (!vgpu_same_names(gpu, arg, descs))
		return -EAGAIN;
	if (gpu->vram_promised > arg->vram_bytes)
		return -ENOSPC;
	gpu->vram_bytes = arg->vram_bytes;
	for (i = 0; i < gpu->ntypes; i++)
		gpu->types[i].desc = *vgpu_desc_find(arg, descs, gpu->types[i].desc.name);
	return 0;
}

/* Shares a GPU again as it was. */
static int vgpu_gpu_add_again(const struct vgpu_gpu *old)
{
	struct vgpu_control_gpu arg = { .vram_bytes = old->vram_bytes, .ntypes = old->ntypes };
	struct vgpu_type_desc *descs = kcalloc(old->ntypes, sizeof(*descs), GFP_KERNEL);
	int ret;
	u32 i;

	if (!descs)
		return -ENOMEM;
	strscpy(arg.gpu, old->name, sizeof(arg.gpu));
	for (i = 0; i < old->ntypes; i++)
		descs[i] = old->types[i].desc;
	ret = vgpu_gpu_do_add(&arg, descs, old->draining);
	kfree(descs);
	return ret;
}

/* Names are fixed with the registration, so the GPU is registered anew; with its old types if that fails. */
static int vgpu_gpu_replace(const struct vgpu_control_gpu *arg, const struct vgpu_type_desc *descs)
{
	struct vgpu_gpu *old;
	int ret = vgpu_gpu_do_remove(arg->gpu, &old);

	if (ret)
		return ret;
	ret = vgpu_gpu_do_add(arg, descs, old->draining);
	if (ret && vgpu_gpu_add_again(old))
		pr_err("%s: GPU %s is no longer shared: neither its new types nor the old ones can be registered\n",
		       VGPU_DRIVER_NAME, arg->gpu);
	vgpu_gpu_put(old);
	return ret;
}

int vgpu_gpu_set_types(const struct vgpu_control_gpu *arg, const struct vgpu_type_desc *descs)
{
	int ret;

	mutex_lock(&control_lock);
	mutex_lock(&gpus_lock);
	ret = vgpu_gpu_set_in_place(arg, descs);
	mutex_unlock(&gpus_lock);
	if (ret == -EAGAIN)
		ret = vgpu_gpu_replace(arg, descs);
	mutex_unlock(&control_lock);
	return ret;
}

int vgpu_gpu_drain(const char *name, bool on)
{
	struct vgpu_gpu *gpu;
	int ret = -ENODEV;

	mutex_lock(&gpus_lock);
	gpu = vgpu_gpu_find(name);
	if (gpu && !gpu->gone) {
		if (gpu->draining != on)
			dev_info(gpu->dev, "%s\n", on ? "drained: no new vGPU, and no VM can open one" :
						 "no longer drained");
		gpu->draining = on;
		ret = 0;
	}
	mutex_unlock(&gpus_lock);
	return ret;
}

/* 0: a VM may open it. Under gpus_lock, so that this holds until the vGPU is marked as open. */
int vgpu_gpu_check_open(struct vgpu *vgpu)
{
	lockdep_assert_held(&gpus_lock);
	if (!vgpu->gpu->draining)
		return 0;
	vgpu_log(vgpu, err, "can't be opened: its GPU %s is drained, until 'vgpuctl gpu resume' or 'vgpu-registrar resume'\n",
		 vgpu->gpu->name);
	return -EBUSY;
}

static u64 vgpu_gpu_free_bytes(const struct vgpu_gpu *gpu)
{
	if (gpu->gone || gpu->draining || gpu->vram_promised >= gpu->vram_bytes)
		return 0;
	return gpu->vram_bytes - gpu->vram_promised;
}

static u32 vgpu_type_index(const struct vgpu_type *type)
{
	return type - type->gpu->types;
}

/* What the type still allows of itself. */
static u32 vgpu_type_instances(const struct vgpu_type *type)
{
	u32 max = type->desc.max_instances;

	return max ? max - min(type->count, max) : U32_MAX;
}

/* How many vGPUs of a type fit on a GPU that has no others. */
u32 vgpu_type_most(const struct vgpu_type *type)
{
	u64 fit = div64_u64(type->gpu->vram_bytes, type->desc.vram_bytes);
	u32 max = type->desc.max_instances ?: U32_MAX;

	return min_t(u64, fit, max);
}

/* How many more vGPUs of a type fit; one that was announced may be smaller. Under gpus_lock. */
u32 vgpu_type_available(const struct vgpu_type *type)
{
	const struct vgpu_gpu *gpu = type->gpu;
	u64 free = vgpu_gpu_free_bytes(gpu);
	u64 fit = div64_u64(free, type->desc.vram_bytes);

	if (!fit && vgpu_announced_fits(&gpu->announced, vgpu_type_index(type), free,
					ktime_get_seconds()))
		fit = 1;
	return min_t(u64, fit, vgpu_type_instances(type));
}

static struct vgpu_type *vgpu_type_find(const struct vgpu_gpu *gpu, const char *sysfs_name)
{
	u32 i;

	for (i = 0; gpu->registered && i < gpu->ntypes; i++)
		if (!strcmp(kobject_name(&gpu->types[i].core.kobj), sysfs_name))
			return &gpu->types[i];
	return NULL;
}

int vgpu_gpu_announce(const struct vgpu_control_announce *arg)
{
	const struct vgpu_type *type = NULL;
	struct vgpu_gpu *gpu;
	int ret = 0;

	mutex_lock(&gpus_lock);
	gpu = vgpu_gpu_find(arg->gpu);
	/* mdev's core frees the names of the types of one that is gone. */
	if (gpu && !gpu->gone)
		type = vgpu_type_find(gpu, arg->type);
	if (!gpu || gpu->gone)
		ret = -ENODEV;
	else if (!type)
		ret = -ENOENT;
	else if (arg->vram_bytes > gpu->vram_bytes)
		ret = -ENOSPC;
	else
		vgpu_announce(&gpu->announced, arg->uuid, vgpu_type_index(type), arg->vram_bytes,
			      ktime_get_seconds());
	mutex_unlock(&gpus_lock);
	return ret;
}

static void vgpu_log_refusal(const struct vgpu_type *type, u64 bytes)
{
	const struct vgpu_type_desc *desc = &type->desc;
	const struct vgpu_gpu *gpu = type->gpu;

	if (!vgpu_type_instances(type))
		dev_err(gpu->dev, "no vGPU of type %s left: all %u exist\n", desc->name,
			desc->max_instances);
	else
		dev_err(gpu->dev, "no vGPU of type %s left: it needs %llu MiB, and %llu of %llu MiB are promised to others\n",
			desc->name, bytes >> 20, gpu->vram_promised >> 20, gpu->vram_bytes >> 20);
}

static struct vgpu_params vgpu_type_params(const struct vgpu_type_desc *desc)
{
	return (struct vgpu_params) {
		.vram_bytes = desc->vram_bytes,
		.window_bytes = desc->window_bytes,
		.weight = desc->weight,
		.cap = desc->cap,
		.priority = desc->priority,
		.scanouts = desc->scanouts,
		.cuda = desc->cuda,
	};
}

/* Enters a new vGPU into the ledger, with a reference to its GPU. */
int vgpu_gpu_admit(struct vgpu *vgpu)
{
	struct vgpu_type *type = vgpu->type;
	struct vgpu_gpu *gpu = type->gpu;
	u8 uuid[VGPU_UUID_LEN];
	int ret = 0;
	u64 bytes;

	vgpu_uuid_bytes(vgpu, uuid);
	mutex_lock(&gpus_lock);
	bytes = vgpu_announced_take(&gpu->announced, uuid, vgpu_type_index(type),
				    ktime_get_seconds()) ?: type->desc.vram_bytes;
	if (gpu->gone) {
		ret = -ENODEV;
	} else if (gpu->draining) {
		dev_err_ratelimited(gpu->dev, "no vGPU can be made: the GPU is drained, until 'vgpuctl gpu resume' or 'vgpu-registrar resume'\n");
		ret = -EBUSY;
	} else if (bytes > vgpu_gpu_free_bytes(gpu) || !vgpu_type_instances(type)) {
		vgpu_log_refusal(type, bytes);
		ret = -ENOSPC;
	} else {
		kref_get(&gpu->kref);
		vgpu->gpu = gpu;
		vgpu->params = vgpu_type_params(&type->desc);
		vgpu->params.vram_bytes = bytes;
		gpu->vram_promised += vgpu->params.vram_bytes;
		type->count++;
		list_add_tail(&vgpu->node, &gpu->vgpus);
	}
	mutex_unlock(&gpus_lock);
	return ret;
}

void vgpu_gpu_dismiss(struct vgpu *vgpu)
{
	mutex_lock(&gpus_lock);
	vgpu->gpu->vram_promised -= vgpu->params.vram_bytes;
	vgpu->type->count--;
	list_del_init(&vgpu->node);
	mutex_unlock(&gpus_lock);
}

int vgpu_gpu_set_vram(struct vgpu *vgpu, u64 bytes)
{
	struct vgpu_gpu *gpu = vgpu->gpu;
	int ret = 0;
	u64 others;

	mutex_lock(&gpus_lock);
	others = gpu->vram_promised - vgpu->params.vram_bytes;
	if (!bytes) {
		dev_err(vgpu_dev(vgpu), "vram_bytes must not be 0\n");
		ret = -EINVAL;
	} else if (bytes > gpu->vram_bytes || others > gpu->vram_bytes - bytes) {
		dev_err(vgpu_dev(vgpu), "cannot promise %llu MiB of VRAM: %llu of %llu MiB are promised to others\n",
			bytes >> 20, others >> 20, gpu->vram_bytes >> 20);
		ret = -ENOSPC;
	} else {
		gpu->vram_promised = others + bytes;
		spin_lock(&vgpu->params_lock);
		WRITE_ONCE(vgpu->params.vram_bytes, bytes);
		spin_unlock(&vgpu->params_lock);
	}
	mutex_unlock(&gpus_lock);
	return ret;
}

static int vgpu_dev_has_devt(struct device *dev, void *devt)
{
	if (dev->devt == *(dev_t *)devt && MAJOR(dev->devt))
		return 1;
	return device_for_each_child(dev, devt, vgpu_dev_has_devt);
}

/*
 * Whether a mapped file is the GPU's own: a device node somewhere below it (DRM), or a file of its driver
 * (i915's anonymous mappings, NVIDIA's nodes).
 */
bool vgpu_gpu_owns_file(struct vgpu_gpu *gpu, struct file *file)
{
	struct inode *inode = file_inode(file);
	dev_t devt = inode->i_rdev;

	if (gpu->soft)
		return false;
	if (S_ISCHR(inode->i_mode) && MAJOR(devt) == VGPU_DRM_MAJOR)
		return device_for_each_child(gpu->dev, &devt, vgpu_dev_has_devt);

	return gpu->owner && file->f_op->owner == gpu->owner;
}

/* Notifies all users and does not wait. */
static void vgpu_gpu_revoke(struct vgpu_gpu *gpu)
{
	struct vgpu *vgpu;

	lockdep_assert_held(&gpus_lock);
	if (gpu->gone)
		return;
	gpu->gone = true;
	list_for_each_entry(vgpu, &gpu->vgpus, node) {
		vgpu_device_revoke(vgpu);
		vgpu_engine_node_remove(vgpu);
	}
	if (gpu->registered)
		queue_work(gpu_wq, &gpu->unregister_work);
}

/*
 * Only the directories move: for the driver core the vGPUs stay the GPU's children, by which mdev
 * finds them. One that is in the list has not left sysfs: vgpu_gpu_dismiss() comes before that.
 */
static void vgpu_gpu_leaves_sysfs(struct vgpu_gpu *gpu)
{
	struct vgpu *vgpu;
	int ret;

	lockdep_assert_held(&gpus_lock);
	list_for_each_entry(vgpu, &gpu->vgpus, node) {
		/* After this, no event to udev is pending with a path that changes now. */
		vgpu_device_tell_over(vgpu);
		ret = kobject_move(&vgpu_dev(vgpu)->kobj, &vgpu_removed->kobj);
		if (ret)
			dev_err(vgpu_dev(vgpu), "can't be moved out of its GPU's directory: error %d\n",
				ret);
	}
}

static int vgpu_pci_notify(struct notifier_block *nb, unsigned long action, void *data)
{
	struct vgpu_gpu *gpu;

	if (action != BUS_NOTIFY_UNBIND_DRIVER && action != BUS_NOTIFY_DEL_DEVICE)
		return NOTIFY_DONE;
	mutex_lock(&gpus_lock);
	list_for_each_entry(gpu, &gpus, node) {
		if (gpu->dev != data)
			continue;
		vgpu_gpu_revoke(gpu);
		if (action == BUS_NOTIFY_DEL_DEVICE)
			vgpu_gpu_leaves_sysfs(gpu);
	}
	mutex_unlock(&gpus_lock);
	return NOTIFY_DONE;
}

static struct notifier_block vgpu_pci_notifier = {
	.notifier_call = vgpu_pci_notify,
};

int vgpu_gpus_init(void)
{
	int ret;

	gpu_wq = alloc_workqueue("vgpu-gpu", WQ_UNBOUND, 0);
	if (!gpu_wq)
		return -ENOMEM;
	ret = class_register(&vgpu_soft_class);
	if (ret)
		goto err_wq;
	vgpu_removed = root_device_register(VGPU_REMOVED_NAME);
	ret = PTR_ERR_OR_ZERO(vgpu_removed);
	if (ret)
		goto err_class;
	ret = bus_register_notifier(&pci_bus_type, &vgpu_pci_notifier);
	if (ret)
		goto err_removed;
	return 0;

err_removed:
	root_device_unregister(vgpu_removed);
err_class:
	class_unregister(&vgpu_soft_class);
err_wq:
	destroy_workqueue(gpu_wq);
	return ret;
}

/* No vGPU exists any more: they hold the module. */
void vgpu_gpus_exit(void)
{
	struct vgpu_gpu *gpu;

	bus_unregister_notifier(&pci_bus_type, &vgpu_pci_notifier);
	flush_workqueue(gpu_wq);
	while ((gpu = list_first_entry_or_null(&gpus, struct vgpu_gpu, node)))
		vgpu_gpu_unregister(gpu);
	root_device_unregister(vgpu_removed);
	class_unregister(&vgpu_soft_class);
	destroy_workqueue(gpu_wq);
	do {
		msleep(20);
		vgpu_gpus_free_dead();
	} while (!llist_empty(&dead_gpus));
}
