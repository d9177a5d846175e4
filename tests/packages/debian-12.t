#!/bin/bash
# SPDX-License-Identifier: MIT
#
# TAP: on Debian 12 the driver's package, the same file as on 13, is installed by apt and builds the module for that
# release's kernel; purged, it leaves nothing. For a throwaway tree: make check-deb.

set -u
. "$(dirname "$0")/../lib/steps.bash"
kernel=$(find /lib/modules -mindepth 2 -maxdepth 2 -name build | head -n 1 | cut -d/ -f4)
export DEBIAN_FRONTEND=noninteractive

module_is_there() { dkms status | grep "^mdev-vgpu/.*: installed" && modinfo -k "$kernel" -F vermagic mdev_vgpu | grep "^$kernel "; }
gone() { ! ls -d /usr/src/mdev-vgpu-* /var/lib/dkms/mdev-vgpu 2>/dev/null && ! modinfo -k "$kernel" mdev_vgpu 2>/dev/null; }

echo "TAP version 13"
echo "1..5"
step "this is Debian 12" grep -x 'VERSION_ID="12"' /etc/os-release
step "apt installs it" apt-get -q install -y --no-install-recommends "$PWD"/build/deb/mdev-vgpu-dkms_*.deb
step "DKMS has built the module for $kernel" module_is_there
step "purged" apt-get -q purge -y mdev-vgpu-dkms
step "nothing is left" gone
