# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The guest image "cloud": a disk that boots by itself, partitioned and filled as Debian's cloud images are. OVMF finds
# shim in the EFI system partition, which starts Debian's signed grub, which finds the root by its label. L1 has it as the
# disk `cloud`, which can be written: the rig's own overlay.

CLOUD_LIST=$RIG_DIR/packages/cloud.txt
CLOUD_KEY='' CLOUD_IMAGE=''

# In MiB: where the two partitions begin, and the disk's size.
CLOUD_ESP=1 CLOUD_ROOT=65 CLOUD_SIZE=4096

image_cloud() {
    local disk
    tree_l1
    [ -n "$CLOUD_KEY" ] || tree_key CLOUD trixie "$CLOUD_LIST" "$CACHE/extra-none"
    # shellcheck disable=SC2153
    [ -d "$CLOUD_TREE" ] || with_lock "$CACHE/lock/cloud" \
        tree_once trixie "$CLOUD_TREE" "$CLOUD_TREE" "$CLOUD_LIST" ''
    disk=$CACHE/cloud-$CLOUD_KEY/disk-$(key_of "$RIG_DIR/lib/cloud.sh").img
    [ -s "$disk" ] || with_lock "$CACHE/lock/cloud" cloud_disk_once "$CLOUD_TREE" "$disk"
    CLOUD_IMAGE=$disk
}

cloud_disk_once() {
    [ -s "$2" ] || cloud_disk "$@"
}

# cloud_disk TREE DISK
cloud_disk() {
    local tree=$1 disk=$2 log=$CACHE/log/image-cloud.log
    say "making the disk image $(basename "$disk"): $log"
    outer_packages mke2fs:e2fsprogs
    cloud_files "$tree"
    { cloud_partitions "$disk.part" && cloud_root "$tree" "$disk.part" && cloud_esp "$tree" "$disk.part"; } >"$log" 2>&1 ||
        fail "disk image" "the disk of $tree" "$log"
    mv "$disk.part" "$disk"
}

cloud_partitions() {
    rm -f "$1"
    truncate -s "${CLOUD_SIZE}M" "$1"
    in_tree sgdisk \
        --new="1:${CLOUD_ESP}M:$((CLOUD_ROOT - 1))M" --typecode=1:ef00 --change-name=1:EFI \
        --new="2:${CLOUD_ROOT}M:0" --typecode=2:8304 --change-name=2:root "$1"
}

cloud_root() {
    mke2fs -q -F -t ext4 -L cloud -d "$1" -E "offset=$((CLOUD_ROOT << 20))" "$2" "$((CLOUD_SIZE - CLOUD_ROOT - 1))M"
}

# The EFI system partition: removable media's path, for there are no boot variables yet. The signed grub looks for its
# configuration in EFI/debian.
cloud_esp() {
    local tree=$1 disk=$2 files=$2.files esp=$2.esp
    rm -rf "$files" "$esp"
    mkdir -p "$files/EFI/BOOT" "$files/EFI/debian"
    cp "$tree/usr/lib/shim/shimx64.efi.signed" "$files/EFI/BOOT/BOOTX64.EFI" &&
        cp "$tree/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed" "$files/EFI/BOOT/grubx64.efi" || return 1
    cat >"$files/EFI/debian/grub.cfg" <<'GRUB'
search.fs_label cloud root
set prefix=($root)'/boot/grub'
configfile $prefix/grub.cfg
GRUB
    in_tree mkfs.vfat -n EFI -C "$esp" "$(((CLOUD_ROOT - CLOUD_ESP) * 1024 - 1024))" &&
        in_tree mcopy -i "$esp" -s "$files/EFI" :: &&
        dd if="$esp" of="$disk" bs=1M seek="$CLOUD_ESP" conv=notrunc,sparse status=none &&
        rm -rf "$files" "$esp"
}

# cloud_files TREE: what an installer would have written.
cloud_files() {
    local tree=$1 version
    version=$(basename "$(ls -d "$tree"/usr/lib/modules/*)")
    mkdir -p "$tree/boot/grub" "$tree/boot/efi"
    cat >"$tree/boot/grub/grub.cfg" <<GRUB
set timeout=0
menuentry 'Debian GNU/Linux' {
    search --no-floppy --label --set=root cloud
    linux /boot/vmlinuz-$version root=LABEL=cloud ro quiet
    initrd /boot/initrd.img-$version
}
GRUB
    cat >"$tree/etc/fstab" <<'FSTAB'
LABEL=cloud / ext4 rw,discard,errors=remount-ro 0 1
LABEL=EFI /boot/efi vfat umask=0077,noauto,x-systemd.automount 0 0
FSTAB
    # A first boot: cloud-init makes the host's keys, systemd its id.
    : >"$tree/etc/machine-id"
    rm -f "$tree/usr/sbin/policy-rc.d" "$tree"/etc/ssh/ssh_host_*
    echo localhost >"$tree/etc/hostname"
}
