// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * mdev_vgpu: vGPUs on any physical GPU, as mediated devices that stock guests drive as virtio-gpu.
 */
#include <linux/module.h>

#include "vgpu_private.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static int __init vgpu_init(void)
{
	int ret;

	ret = vgpu_windows_init();
	if (ret)
		return ret;
	ret = vgpu_engine_class_init();
	if (ret)
		goto err_windows;
	ret = mdev_register_driver(&vgpu_mdev_driver);
	if (ret)
		goto err_engine;
	ret = vgpu_gpus_init();
	if (ret)
		goto err_driver;
	ret = vgpu_control_init();
	if (ret)
		goto err_gpus;
	return 0;

err_gpus:
	vgpu_gpus_exit();
err_driver:
	mdev_unregister_driver(&vgpu_mdev_driver);
err_engine:
	vgpu_engine_class_exit();
err_windows:
	vgpu_windows_exit();
	return ret;
}

static void __exit vgpu_exit(void)
{
	vgpu_control_exit();
	vgpu_gpus_exit();
	mdev_unregister_driver(&vgpu_mdev_driver);
	vgpu_engine_class_exit();
	vgpu_windows_exit();
}

module_init(vgpu_init);
module_exit(vgpu_exit);

MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Mediated virtual GPUs on any physical GPU");
MODULE_AUTHOR("mdev-vgpu");
MODULE_VERSION(VGPU_VERSION);
