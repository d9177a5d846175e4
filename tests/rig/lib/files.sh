# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What the initrd lays over the root of L1 and of a guest. Nothing of the rig is in the images.

# system_files DIR HOSTNAME: what both have.
system_files() {
    local dir=$1 unit
    mkdir -p "$dir/usr/local/lib/rig" "$dir/etc/ssh/sshd_config.d" "$dir/root/.ssh" "$dir/var" \
        "$dir/etc/systemd/system/multi-user.target.wants"
    install -m 755 "$RIG_DIR/l1/init" "$dir/usr/local/lib/rig/init"
    install -m 644 "$RIG_DIR/l1/inittab" "$dir/etc/inittab"
    install -m 644 "$RIG_DIR/l1/sshd.conf" "$dir/etc/ssh/sshd_config.d/rig.conf"
    chmod 700 "$dir/root" "$dir/root/.ssh"
    install -m 600 "$CACHE/ssh/key.pub" "$dir/root/.ssh/authorized_keys"
    echo "$2" >"$dir/etc/hostname"
    printf '127.0.0.1 localhost %s\n' "$2" >"$dir/etc/hosts"
    echo 'nameserver 10.0.2.3' >"$dir/etc/resolv.conf"
    # With an id of its own, systemd does not take every start for the first one; with these two
    # files newer than /usr, not for the first after an update.
    key_of "$2" "$2" | sed 's/.*/&&/; s/$/00000000/' >"$dir/etc/machine-id"
    touch "$dir/etc/.updated" "$dir/var/.updated"
    install -m 644 "$RIG_DIR/l1/rig-ready.service" "$dir/etc/systemd/system/"
    ln -s ../rig-ready.service "$dir/etc/systemd/system/multi-user.target.wants/"
    for unit in serial-getty@ttyS0.service getty@tty1.service apt-daily.timer e2scrub_all.timer \
        apt-daily-upgrade.timer fstrim.timer logrotate.timer dpkg-db-backup.timer \
        systemd-pstore.service netavark-dhcp-proxy.socket libvirt-guests.service \
        systemd-networkd-wait-online.service e2scrub_reap.service; do
        ln -s /dev/null "$dir/etc/systemd/system/$unit"
    done
}

# l1_files DIR: what L1 has beside.
l1_files() {
    install -m 755 "$RIG_DIR/l1/guest" "$RIG_DIR/l1/end-interrupts" "$1/usr/local/lib/rig/"
    install -m 644 "$RIG_DIR/l1/rig-interrupts.service" "$1/etc/systemd/system/"
    ln -s ../rig-interrupts.service "$1/etc/systemd/system/multi-user.target.wants/"
    mkdir -p "$1/srv/rig" "$1/etc/modules-load.d"
    # Debian starts them at once; tests that want one start it, or their own.
    for unit in prometheus.service docker.service docker.socket containerd.service; do
        ln -s /dev/null "$1/etc/systemd/system/$unit"
    done
    # libvirt looks for KVM once, when it starts.
    printf '%s\n' kvm_amd kvm_intel tun vhost_net >"$1/etc/modules-load.d/rig.conf"
}
