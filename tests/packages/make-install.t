#!/bin/bash
# SPDX-License-Identifier: MIT
#
# TAP: make install puts all below DESTDIR and PREFIX, units and rules name existing programs, and each part can be
# installed alone. Runs in the rig's tree: make check-deb.

set -u
. "$(dirname "$0")/../lib/steps.bash"
work=$(mktemp -d)

install_to() { make -s install DESTDIR="$work/$1" PREFIX="$1"; }

# Our programs that units, rules and the layer name, and that are missing.
missing() {
    grep -rhoE '/usr/[a-z0-9_/-]*(s?bin/vgpu[a-z-]*|lib/mdev-vgpu/[a-z-]+|libvgpu_governor\.so)' "$1/usr" --include='*.service' --include='*.rules' \
        --include='*.json' | sort -u | while read -r path; do [ -x "$1$path" ] || [ -r "$1$path" ] || echo "$path"; done
}

nothing_missing() {
    local names
    names=$(missing "$work/$1")
    [ -z "$names" ] || { echo "$names"; return 1; }
    grep -rqE "Exec[A-Za-z]*=$1/" "$work/$1$1/lib/systemd/system" || { echo "no unit names $1"; return 1; }
    [ "$1" = /usr ] || ! grep -rE '=/usr/s?bin/vgpu|/usr/lib/mdev-vgpu' "$work/$1$1/lib/systemd" "$work/$1$1/lib/udev"
}

# D-Bus, polkit, mdevctl, libvirt and DKMS have one place each.
outside() {
    find "$work/$1" -type f | sed "s,^$work/$1,," | grep -vE "^($1/|/usr/share/(dbus-1|polkit-1)/|/usr/lib/mdevctl/|/usr/src/)" && return 1
    return 0
}

alone() { make -s "install-$1" DESTDIR="$work/alone-$1" && find "$work/alone-$1" -type f | grep -q .; }

echo "TAP version 13"
echo "1..14"
step "all is built" make -s registrar engine host-agent mdevctl-plugins qemu-hooks governor
for prefix in /usr /usr/local; do
    step "make install PREFIX=$prefix" install_to $prefix
    step "$prefix: units, rules and the layer name what is there" nothing_missing $prefix
    step "$prefix: nothing is elsewhere" outside $prefix
done
for part in dkms registrar engine governor host-agent mdevctl-plugins qemu-hooks; do
    step "$part alone" alone $part
done
rm -rf "$work"
