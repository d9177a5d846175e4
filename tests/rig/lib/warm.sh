# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What the first systemd start of an L1 had to find out, kept for the later ones: AppArmor's
# compiled profiles and libvirt's knowledge of QEMU. Each checks itself whether it still fits.

warm_file() { echo "$CACHE/l1-$L1_KEY/warm-$(basename "$KERNEL_DIR").tar"; }

# warm_files DIR: into what the initrd lays over L1.
warm_files() {
    [ ! -s "$(warm_file)" ] || tar -xf "$(warm_file)" -C "$1"
}

warm_keep() {
    local file
    file=$(warm_file)
    [ "$UP_INIT" = systemd ] && [ ! -s "$file" ] || return 0
    say "keeping what libvirt and AppArmor found out, for later starts"
    remote_run l1 sh -c 'modprobe -q kvm_amd; virsh -q -c qemu:///system domcapabilities --virttype kvm >/dev/null' ||
        { say "libvirt does not answer in L1: nothing is kept"; return 0; }
    remote_run l1 tar -C / -cf - var/cache/apparmor var/cache/libvirt/qemu/capabilities >"$file.part" &&
        mv "$file.part" "$file" || rm -f "$file.part"
}
