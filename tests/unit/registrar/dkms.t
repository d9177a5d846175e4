#!/bin/bash
# SPDX-License-Identifier: MIT
#
# TAP: dkms can add, build, install and remove the files of install-dkms. Changes
# /usr/src, /var/lib/dkms and /lib/modules, so it is for a throwaway tree: make check-dkms.

set -u
package=mdev-vgpu/$(cat mdev-driver/VERSION)
kernel=$(find /lib/modules -mindepth 2 -maxdepth 2 -name build | head -n 1 | cut -d/ -f4)
. "$(dirname "$0")/../../lib/steps.bash"

module_is() {
    local found
    found=$(modinfo -k "$kernel" -F "$1" mdev_vgpu) || return
    [ "$found" = "$2" ] || { echo "$1 is \"$found\", not \"$2\""; return 1; }
}

# Whatever root's umask is.
all_readable() {
    local hidden
    hidden=$(find "/usr/src/${package/\//-}" ! -perm -o+r -o -type d ! -perm -o+x) || return
    [ -z "$hidden" ] || { echo "not readable by all: $hidden"; return 1; }
}

gone() { ! modinfo -k "$kernel" mdev_vgpu 2>/dev/null && [ ! -e "/var/lib/dkms/$package" ]; }

echo "TAP version 13"
echo "1..9"
echo "# kernel $kernel"
step "sources are installed" sh -c "umask 077; make -s install-dkms"
step "all can read them" all_readable
step "dkms add" dkms add "$package"
step "dkms build" dkms build "$package" -k "$kernel"
step "dkms install" dkms install "$package" -k "$kernel"
step "the kernel's module tree has this version" module_is version "${package#*/}"
step "under both licences" module_is license "Dual MIT/GPL"
step "dkms remove" dkms remove "$package" --all
step "nothing is left" gone
