# SPDX-License-Identifier: MIT
# mdev_vgpu.ko: `make module [KVER=6.12.0-…]`, in build/module-$(KVER)/, so that several kernels' builds
# lie side by side and the sources stay clean.

KVER ?= $(shell uname -r)
KERNEL_BUILD ?= /lib/modules/$(KVER)/build
MODULE_OUT := build/module-$(KVER)
MODULE_SRC := $(wildcard mdev-driver/*.[ch] mdev-driver/model/*.[ch] mdev-driver/uapi/linux/*.h) \
	mdev-driver/Kbuild mdev-driver/VERSION

.PHONY: module
module: $(MODULE_OUT)/mdev_vgpu.ko

$(MODULE_OUT)/mdev_vgpu.ko: $(MODULE_SRC)
	@mkdir -p $(MODULE_OUT)
	tar -C mdev-driver -cf - $(MODULE_SRC:mdev-driver/%=%) | tar -C $(MODULE_OUT) -xf -
	$(MAKE) -C $(KERNEL_BUILD) M=$(abspath $(MODULE_OUT)) $(MODULE_FLAGS) modules
	@touch $@
