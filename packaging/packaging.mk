# SPDX-License-Identifier: MIT
# make deb: Debian packages, made in the rig's Debian 13 tree (README.md here). make check-deb: what is in them, and that
# they install, upgrade and purge, in throwaway trees. make check-upgrade: the same on a host in the rig that works,
# and the driver's on Debian 12; part of make soak. DEB_VERSION: another version than that of the checkout.

.PHONY: deb check-deb check-upgrade
deb:
	packaging/make-deb

check-deb: deb
	$(RIG) build --with packaging/build-packages.txt -- prove -v $(addprefix tests/packages/,make-install.t contents.t install.t)

# Guests without systemd in them, as in make check-system.
check-upgrade: deb
	tests/packages/in-debian-12 prove -v tests/packages/debian-12.t
	$(RIG) build -- $(MAKE) --no-print-directory guest
	RIG_NAME=$${RIG_NAME:-upgrade} VGPU_GUEST_INIT=$${VGPU_GUEST_INIT:-/usr/local/lib/rig/init} prove -v --timer tests/packages/host.t
