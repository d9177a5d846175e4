// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The mdev driver: sysfs "create" makes a vGPU, "remove" removes it. */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "vgpu_private.h"

void vgpu_uuid_bytes(const struct vgpu *vgpu, u8 out[VGPU_UUID_LEN])
{
	uuid_t uuid;
	char text[UUID_STRING_LEN + 1];

	/* mdev keeps a guid_t; RFC 9562's order differs in the first three fields. */
	snprintf(text, sizeof(text), "%pUl", &vgpu->mdev->uuid);
	if (!uuid_parse(text, &uuid))
		export_uuid(out, &uuid);
}

/* Limits of one vGPU's log messages, and of its events. */
#define VGPU_LOG_INTERVAL	(10 * HZ)
#define VGPU_LOG_BURST		10
#define VGPU_TELL_INTERVAL	HZ
#define VGPU_TELL_BURST		10

int vgpu_object_init(struct vgpu *vgpu)
{
	int ret = -ENOMEM;

	mutex_init(&vgpu->pop_lock);
	mutex_init(&vgpu->lock);
	mutex_init(&vgpu->map_lock);
	spin_lock_init(&vgpu->irq_lock);
	spin_lock_init(&vgpu->params_lock);
	spin_lock_init(&vgpu->state_lock);
	mutex_init(&vgpu->tell_lock);
	init_waitqueue_head(&vgpu->state_wait);
	INIT_LIST_HEAD(&vgpu->node);
	INIT_WORK(&vgpu->look_work, vgpu_device_look_work);
	INIT_DELAYED_WORK(&vgpu->answer_work, vgpu_device_answer_work);
	INIT_DELAYED_WORK(&vgpu->reset_work, vgpu_device_reset_work);
	INIT_DELAYED_WORK(&vgpu->tell_work, vgpu_device_tell_work);
	ratelimit_state_init(&vgpu->log_limit, VGPU_LOG_INTERVAL, VGPU_LOG_BURST);
	ratelimit_state_init(&vgpu->tell_limit, VGPU_TELL_INTERVAL, VGPU_TELL_BURST);
	ratelimit_set_flags(&vgpu->tell_limit, RATELIMIT_MSG_ON_RELEASE);
	vgpu_migration_init(vgpu);
	vgpu_window_init(vgpu);
	vgpu_engine_init(vgpu);

	/* A queue's name is short; these are the first digits of the UUID. */
	vgpu->work = alloc_ordered_workqueue("vgpu-%.8s", WQ_FREEZABLE, dev_name(vgpu->vdev.dev));
	if (!vgpu->work)
		return -ENOMEM;
	vgpu->table = kvcalloc(VGPU_VQ_MAX_DESCS, sizeof(*vgpu->table), GFP_KERNEL);
	vgpu->chain = kzalloc(sizeof(*vgpu->chain), GFP_KERNEL);
	vgpu->bounce = kvmalloc(VGPU_BOUNCE_SIZE, GFP_KERNEL);
	if (!vgpu->table || !vgpu->chain || !vgpu->bounce)
		goto err_free;
	ret = vgpu_mem_init(vgpu);
	if (ret)
		goto err_free;
	ret = vgpu_anon_inodes_new(vgpu);
	if (ret)
		goto err_mem;
	return 0;

err_mem:
	vgpu_mem_fini(vgpu);
err_free:
	kvfree(vgpu->bounce);
	kfree(vgpu->chain);
	kvfree(vgpu->table);
	destroy_workqueue(vgpu->work);
	return ret;
}

void vgpu_object_fini(struct vgpu *vgpu)
{
	cancel_delayed_work_sync(&vgpu->tell_work);
	cancel_delayed_work_sync(&vgpu->reset_work);
	flush_work(&vgpu->look_work);
	cancel_delayed_work_sync(&vgpu->answer_work);
	destroy_workqueue(vgpu->work);
	vgpu_window_fini(vgpu);
	vgpu_blank_drop_all(vgpu);
	vgpu_anon_inodes_free(vgpu);
	vgpu_mem_fini(vgpu);
	kvfree(vgpu->bounce);
	kfree(vgpu->chain);
	kvfree(vgpu->table);
	put_device(mdev_dev(vgpu->mdev));
	if (vgpu->gpu)
		vgpu_gpu_put(vgpu->gpu);
}

static int vgpu_mdev_probe(struct mdev_device *mdev)
{
	struct vgpu_type *type = container_of(mdev->type, struct vgpu_type, core);
	struct vgpu *vgpu;
	int ret;

	vgpu = vfio_alloc_device(vgpu, vdev, mdev_dev(mdev), &vgpu_vfio_ops);
	if (IS_ERR(vgpu))
		return PTR_ERR(vgpu);
	/* The engine's file may outlive the mdev. */
	get_device(mdev_dev(mdev));
	vgpu->mdev = mdev;
	vgpu->type = type;
	dev_set_drvdata(mdev_dev(mdev), vgpu);

	ret = vgpu_gpu_admit(vgpu);
	if (ret)
		goto err_put;
	ret = vfio_register_emulated_iommu_dev(&vgpu->vdev);
	if (ret)
		goto err_dismiss;
	ret = vgpu_engine_node_add(vgpu);
	if (ret)
		goto err_unregister;
	return 0;

err_unregister:
	vfio_unregister_group_dev(&vgpu->vdev);
err_dismiss:
	vgpu_gpu_dismiss(vgpu);
err_put:
	vfio_put_device(&vgpu->vdev);
	return ret;
}

static void vgpu_mdev_remove(struct mdev_device *mdev)
{
	struct vgpu *vgpu = dev_get_drvdata(mdev_dev(mdev));

	vgpu_device_leave(vgpu);
	/* Waits until the VMM has closed it, and asks repeatedly. */
	vfio_unregister_group_dev(&vgpu->vdev);
	vgpu_device_revoke(vgpu);
	flush_work(&vgpu->look_work);
	vgpu_engine_node_remove(vgpu);
	vgpu_gpu_dismiss(vgpu);
	cancel_delayed_work_sync(&vgpu->tell_work);
	vfio_put_device(&vgpu->vdev);
}

static unsigned int vgpu_mdev_available(struct mdev_type *core)
{
	unsigned int n;

	vgpu_gpus_lock();
	n = vgpu_type_available(container_of(core, struct vgpu_type, core));
	vgpu_gpus_unlock();
	return n;
}

/*
 * What a vGPU of the type is; num_heads, framebuffer and max_instance say it in the words of
 * NVIDIA's types, which CloudStack and oVirt read.
 */
static ssize_t vgpu_mdev_description(struct mdev_type *core, char *buf)
{
	const struct vgpu_type *type = container_of(core, struct vgpu_type, core);
	const struct vgpu_type_desc *desc = &type->desc;
	ssize_t n;

	vgpu_gpus_lock();
	n = sysfs_emit(buf, "%s%svram=%lluM window=%lluM weight=%u cap=%u%% priority=%u "
		       "num_heads=%u framebuffer=%lluM max_instance=%u%s%s\n",
		       desc->description, desc->description[0] ? "; " : "",
		       desc->vram_bytes >> 20, desc->window_bytes >> 20, desc->weight, desc->cap,
		       desc->priority, desc->scanouts, desc->vram_bytes >> 20, vgpu_type_most(type),
		       desc->scanouts ? " display" : "", desc->cuda ? " cuda" : "");
	vgpu_gpus_unlock();
	return n;
}

struct mdev_driver vgpu_mdev_driver = {
	.device_api = VFIO_DEVICE_API_PCI_STRING,
	.probe = vgpu_mdev_probe,
	.remove = vgpu_mdev_remove,
	.get_available = vgpu_mdev_available,
	.show_description = vgpu_mdev_description,
	.driver = {
		.name = VGPU_DRIVER_NAME,
		.owner = THIS_MODULE,
		.mod_name = KBUILD_MODNAME,
		.dev_groups = vgpu_mdev_groups,
	},
};
