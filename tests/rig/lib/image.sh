# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Disk images of the trees, and the small initrd that finds them. All are read-only bases: what a
# rig writes goes to overlays in its run directory.

# image_of DIR IMAGE SIZE LOG: an ext4 image with the content of DIR.
image_of() {
    local dir=$1 image=$2 size=$3 log=$4
    outer_packages mke2fs:e2fsprogs
    say "making the disk image $(basename "$image"): $log"
    rm -f "$image.part"
    # No journal and few inode tables: nothing here outlives its rig.
    mke2fs -q -F -t ext4 -O ^has_journal,^resize_inode -m 0 -i 32768 -E lazy_itable_init=1 \
        -L rig -d "$dir" "$image.part" "$size" >"$log" 2>&1 ||
        fail "disk image" "mke2fs of $dir" "$log"
    mv "$image.part" "$image"
}

image_once() {
    [ -s "$2" ] || image_of "$@"
}

l1_image() {
    tree_l1
    L1_IMAGE=$CACHE/l1-$L1_KEY/disk.img
    [ -s "$L1_IMAGE" ] ||
        with_lock "$CACHE/lock/l1" image_once "$L1_TREE" "$L1_IMAGE" 12G "$CACHE/log/image-l1.log"
}

kernel_image() {
    kernel_root "$1"
    KERNEL_IMAGE=$KERNEL_DIR/disk.img
    [ -s "$KERNEL_IMAGE" ] || with_lock "$CACHE/lock/kernel-$KERNEL_LABEL" \
        image_once "$KERNEL_ROOT" "$KERNEL_IMAGE" 3G "$CACHE/log/image-kernel-$KERNEL_LABEL.log"
}

# module_files ROOT VERSION NAME…: the files of the modules and of what they need, in the order of
# loading, for those that the kernel does not have built in.
module_files() {
    local base=$1/usr/lib/modules/$2 name
    shift 2
    for name in "$@"; do
        name=${name//_/[-_]}
        grep -E "^[^:]*/$name\.ko(\.[a-z0-9]+)?:" "$base/modules.dep" |
            sed 's/://' | tr ' ' '\n' | tac | sed '/^$/d' || true
    done | awk '!seen[$0]++'
}

# initrd_make OUT KERNEL_ROOT VERSION FILES_DIR SCRIPT MODULE…: busybox, the modules, the script
# as init, and FILES_DIR, which the script copies over the root.
initrd_make() {
    local out=$1 root=$2 version=$3 files=$4 script=$5 dir module
    shift 5
    dir=$out.dir
    outer_packages cpio:cpio
    rm -rf "$dir"
    mkdir -p "$dir/bin" "$dir/modules" "$dir/proc" "$dir/sys" "$dir/dev" "$dir/root" "$dir/files"
    cp "$L1_TREE/bin/busybox" "$dir/bin/busybox"
    ln -s busybox "$dir/bin/sh"
    install -m 755 "$script" "$dir/init"
    [ -z "$files" ] || cp -a "$files/." "$dir/files/"
    module_files "$root" "$version" "$@" >"$dir/modules/list.in"
    while read -r module; do
        unpack_module "$root/usr/lib/modules/$version/$module" "$dir/modules"
    done <"$dir/modules/list.in"
    rm "$dir/modules/list.in"
    (cd "$dir" && find . | cpio -o -H newc --quiet -R 0:0) >"$out.part" ||
        fail "initrd" "cpio could not write $out.part"
    rm -rf "$dir"
    mv "$out.part" "$out"
}

unpack_module() {
    local name
    name=$(basename "$1")
    name=${name%%.*}.ko
    case $1 in
    *.xz) xz -dc "$1" >"$2/$name" ;;
    *.zst) zstd -dcq "$1" >"$2/$name" ;;
    *) cp "$1" "$2/$name" ;;
    esac
    printf '%s\n' "$name" >>"$2/list"
}
