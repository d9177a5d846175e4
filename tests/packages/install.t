#!/bin/bash
# SPDX-License-Identifier: MIT
#
# TAP: the packages of build/deb are installed by apt, upgraded to another build, removed and purged, and leave the
# system's files as they were. No daemon runs here. Changes the whole system, so it is for a throwaway tree: make check-deb.

set -u
. "$(dirname "$0")/../lib/steps.bash"
kernel=$(find /lib/modules -mindepth 2 -maxdepth 2 -name build | head -n 1 | cut -d/ -f4)
work=$(mktemp -d)
export DEBIAN_FRONTEND=noninteractive

# The system's files except logs, caches, DKMS's own key and dpkg's records; with sums of what is in /etc.
system_is() {
    find / -xdev \( -path /src -o -path /tmp -o -path /run -o -path /proc -o -path /sys -o -path /dev \
        -o -path /var/log -o -path /var/cache -o -path /var/lib/dpkg -o -path /var/lib/apt \
        -o -path '/var/lib/dkms/mok.*' -o -path "/usr/lib/modules/$kernel/modules.*" \) -prune -o -print | LC_ALL=C sort
    getent passwd
    getent group
    find /etc -xdev -type f -exec sha256sum {} + | LC_ALL=C sort
}

# later FROM TO: the packages again, under another version.
later() {
    local deb tree=$work/deb
    mkdir -p "$work/later"
    for deb in $first; do
        rm -rf "$tree"
        dpkg-deb -R "$deb" "$tree"
        sed -i "/^Version:/s/.*/Version: $2/; /^Depends:/s/= $1)/= $2)/g; /^Depends:/s/>= $1)/>= $2)/g" "$tree/DEBIAN/control"
        dpkg-deb -b "$tree" "$work/later" >/dev/null
    done
}

apt_install() { apt-get -q install -y --no-install-recommends "$@"; }
all_are() { [ "$(dpkg-query -W -f '${db:Status-Status} ${Version}\n' $packages | sort -u)" = "$1" ] || { dpkg-query -W $packages; false; }; }
module_is_there() { dkms status | grep "^mdev-vgpu/.*: installed" && modinfo -k "$kernel" mdev_vgpu >/dev/null; }
enabled() { systemctl is-enabled vgpu-registrar.service vgpud.service vgpu-meter.service; }
programs_run() { vgpu-engine --version && vgpuctl --version && vgpud --version && vgpu-meter --version && vgpu-arbiter --version && vgpu-registrar --version; }
units_are_right() { systemd-analyze verify --recursive-errors=no vgpud.service vgpu-meter.service vgpu-registrar.service; }
operators_stay() { [ "$(cat /etc/vgpu/gpus.conf)" = "# mine" ] && [ "$(cat /etc/mdevctl.d/0000:00:02.0/a-vgpu)" = "{}" ]; }

# apt forgets packages of no archive as soon as they are removed.
purge_rest() { dpkg --purge $(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $packages 2>/dev/null | sed -n 's/^config-files //p'); }

unchanged() {
    rm -rf /etc/vgpu /etc/mdevctl.d/0000:00:02.0
    system_is >"$work/after"
    diff "$work/before" "$work/after"
}

purge_refused() {
    local state=$work/state
    # A driver with a vGPU in use has files in sysfs that cannot be made here: the script with another path.
    mkdir -p "$state/devices/u1/vgpu" "$state/devices/u2/vgpu"
    echo 'device=running engine=ready' >"$state/devices/u1/vgpu/state"
    echo 'device=closed engine=ready' >"$state/devices/u2/vgpu/state"
    for package in vgpu-engine vgpu-registrar; do
        # /sys/bus/mdev has as many parts as /tmp/x/y.
        mkdir -p /tmp/x && ln -sfn "$state" /tmp/x/y
        sed 's,/sys/bus/mdev/,/tmp/x/y/,' "/var/lib/dpkg/info/$package.prerm" >"$work/prerm"
        if sh "$work/prerm" remove 2>"$work/said"; then echo "$package: it would be removed"; return 1; fi
        grep -q 'have these vGPUs open: u1; detach them' "$work/said" || { cat "$work/said"; return 1; }
        sh "$work/prerm" upgrade 9 || return 1
    done
    rm -rf /tmp/x
}

# The rig's trees leave manuals and documentation out, which belong to this test.
rm -f /etc/dpkg/dpkg.cfg.d/*
version=$(dpkg-deb -f build/deb/mdev-vgpu_*.deb Version)
other=$version.1
# The page needs Cockpit, and jobs need Slurm, which this tree does not have.
first=$(find "$PWD/build/deb" -maxdepth 2 -path '*/debug' -prune -o -name '*.deb' ! -name 'cockpit-*' ! -name 'vgpu-slurm*' ! -name 'vgpu-guest-cuda_*' -print)
packages=$(for deb in $first; do dpkg-deb -f "$deb" Package; done)
later "$version" "$other"
system_is >"$work/before"

echo "TAP version 13"
echo "1..17"
step "apt installs them, and DKMS builds the module" apt_install $first
step "all are configured" all_are "installed $version"
step "the module is there for $kernel" module_is_there
step "the registrar and vgpud are enabled" enabled
step "the programs run" programs_run
step "systemd finds no fault with the units" units_are_right
step "manuals are there" test -s /usr/share/man/man8/vgpud.8.gz
mkdir -p /etc/vgpu /etc/mdevctl.d/0000:00:02.0 /var/lib/vgpu
echo '# mine' >/etc/vgpu/gpus.conf
echo '{}' >/etc/mdevctl.d/0000:00:02.0/a-vgpu
echo 'state' >/var/lib/vgpu/state.db
step "a vGPU that a VM has keeps engine and registrar from being removed, not from being upgraded" purge_refused
step "upgraded to another build" apt_install "$work"/later/*.deb
step "all are configured" all_are "installed $other"
step "the module is there" module_is_there
step "removed" apt-get -q remove -y $packages
step "what vgpud knows is there still" test -s /var/lib/vgpu/state.db
step "purged" purge_rest
step "what vgpud knew is gone" test ! -e /var/lib/vgpu
step "what an operator wrote is there" operators_stay
step "nothing else is left" unchanged
rm -rf "$work"
