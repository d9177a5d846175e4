# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# More guest images than Debian 13's: sid (its own kernel and Mesa), backports and bookworm (Debian 13 with the kernel of its
# backports, and with Debian 12's), cloud (Debian 13 that boots by itself, for VMs that libvirt starts). L1 gets their disks
# only when `rig up --image NAME` asks for them:
#   sid        guest-sid (the tree), boot-sid (kernel and initrd)
#   backports  kernel-backports (modules), boot-backports; the tree is that of `guest`
#   bookworm   kernel-bookworm, boot-bookworm; the same tree
#   cloud      cloud (lib/cloud.sh), the only one that can be written

IMAGES='trixie sid backports bookworm cloud'
SID_KEY=''

# image_name NAME: sets IMAGE_NAME.
image_name() {
    IMAGE_NAME=${1#trixie-}
    case " $IMAGES " in
    *" $IMAGE_NAME "*) ;;
    *) die_usage "unknown image $1: one of $IMAGES" ;;
    esac
}

# images_make: what UP_IMAGES names beside trixie, as IMAGE_DISKS, "SERIAL FILE" each.
images_make() {
    local name
    IMAGE_DISKS=()
    for name in $UP_IMAGES; do
        case $name in
        sid) image_sid ;;
        backports | bookworm) image_with_kernel "$name" ;;
        cloud) image_cloud ;;
        esac
    done
}

image_sid() {
    local image boot
    [ -n "$SID_KEY" ] || tree_key SID sid "$L2_LIST" "$CACHE/extra-none"
    # shellcheck disable=SC2153
    [ -d "$SID_TREE" ] || with_lock "$CACHE/lock/sid" tree_once sid "$SID_TREE" "$SID_TREE" "$L2_LIST" ''
    image=$CACHE/sid-$SID_KEY/disk.img
    boot=$CACHE/sid-$SID_KEY/boot-$(guest_boot_key).img
    [ -s "$image" ] ||
        with_lock "$CACHE/lock/sid" image_once "$SID_TREE" "$image" 6G "$CACHE/log/image-sid.log"
    [ -s "$boot" ] || with_lock "$CACHE/lock/sid" guest_boot_make "$SID_TREE" "$boot"
    IMAGE_DISKS+=("guest-sid $image" "boot-sid $boot")
}

# image_with_kernel NAME: Debian 13 with the kernel of that name. L1's own kernel is another matter: its variables stay as
# they are.
image_with_kernel() {
    local name=$1 boot KERNEL_NAME KERNEL_DIR KERNEL_ROOT KERNEL_IMAGE
    kernel_image "$name"
    boot=$KERNEL_DIR/boot-$(guest_boot_key).img
    [ -s "$boot" ] || with_lock "$CACHE/lock/kernel-$name" guest_boot_make "$KERNEL_ROOT" "$boot"
    IMAGE_DISKS+=("kernel-$name $KERNEL_IMAGE" "boot-$name $boot")
}
