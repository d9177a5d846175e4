# SPDX-License-Identifier: MIT
# install-dkms: the module's sources in /usr/src, where "dkms install mdev-vgpu/VERSION" finds them.

DKMS_DIR = $(DESTDIR)/usr/src/mdev-vgpu-$(VERSION)

.PHONY: install-dkms
install-dkms: $(MODULE_SRC)
	rm -rf $(DKMS_DIR)
	install -d -m 0755 $(DKMS_DIR)
	tar -C mdev-driver --owner=0 --group=0 -cf - $(MODULE_SRC:mdev-driver/%=%) | tar -C $(DKMS_DIR) -xf -
	sed 's/@VERSION@/$(VERSION)/' mdev-driver/dkms/dkms.conf.in > $(DKMS_DIR)/dkms.conf
	chmod -R u=rwX,go=rX $(DKMS_DIR)

# In the rig's Debian tree; KERNEL=6.1 or backports for other kernels than 6.12.
.PHONY: check-dkms
check-dkms:
	$(RIG) build --kernel $(or $(KERNEL),6.12) -- tests/prove -v tests/unit/registrar/dkms.t
