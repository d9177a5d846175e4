# SPDX-License-Identifier: MIT
# make deb: builds Debian packages in the rig's Debian 13 tree (README.md here). make check-deb: checks their contents,
# and that they install, upgrade and purge, in throwaway trees. make check-upgrade: the same on a working host in the
# rig, and the driver's package on Debian 12; part of make soak. DEB_VERSION: another version than that of the checkout.

.PHONY: deb check-deb check-upgrade
deb:
	packaging/make-deb

check-deb:
	tests/packages/check make-install contents install

check-upgrade:
	tests/packages/check debian-12 host
