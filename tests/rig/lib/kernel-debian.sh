# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Debian's kernels, downloaded and unpacked beside the trees instead of installed into them.

# debs_fetch DIR SUITE REGEX PACKAGE…: downloads into DIR/debs the packages and those of their
# dependencies whose names match.
debs_fetch() {
    local dir=$1 suite=$2 regex=$3 names
    shift 3
    mkdir -p "$dir/debs"
    index_update "$suite"
    names=$(private_apt "$suite" apt-cache depends --recurse --no-recommends --no-suggests \
        --no-conflicts --no-breaks --no-replaces --no-enhances "$@" | grep -xE "$regex" | sort -u)
    # shellcheck disable=SC2086
    (cd "$dir/debs" && private_apt "$suite" apt-get -q download $names)
}

# kernel_fetch KERNEL DIR LOG: the packages of a kernel and of its headers, into DIR/debs.
kernel_fetch() {
    debs_fetch "$2" "$(kernel_suite "$1")" 'linux-(image|headers|kbuild|binary|modules|base)-[0-9].*' \
        linux-image-amd64 linux-headers-amd64 >"$3" 2>&1 ||
        fail "kernel download" "Debian's packages of kernel $1" "$3"
}

# kernel_debs KERNEL DIR: the same to be installed in L1. No kernel is installed there, so what a
# kernel depends on is added.
kernel_debs() {
    local suite
    case $1 in /* | *-debug) die_usage "prepare --debs: $1 is none of Debian's kernels" ;; esac
    mkdir -p "$2"
    suite=$(kernel_suite "$1")
    kernel_fetch "$1" "$(readlink -f "$2")" "$CACHE/log/kernel-debs.log"
    {
        debs_fetch "$(readlink -f "$2")" "$suite" linux-base linux-base &&
            debs_fetch "$(readlink -f "$2")" trixie \
                'initramfs-tools(-core|-bin)?|klibc-utils|libklibc|dracut-install|(gcc|cpp)-14-for-host' \
                initramfs-tools gcc-14-for-host
    } >>"$CACHE/log/kernel-debs.log" 2>&1 ||
        fail "kernel download" "what kernel $1 depends on" "$CACHE/log/kernel-debs.log"
}

kernel_unpack() {
    local kernel=$1 dir=$2 log=$3 deb
    say "unpacking Debian's kernel $kernel and its headers: $log"
    kernel_fetch "$kernel" "$dir/apt" "$log"
    mkdir "$dir/root"
    for deb in "$dir"/apt/debs/*.deb; do
        dpkg-deb -x "$deb" "$dir/root" >>"$log" 2>&1 || fail "kernel unpack" "$deb" "$log"
    done
    if [ -d "$dir/root/lib" ]; then
        mkdir -p "$dir/root/usr/lib"
        cp -al "$dir/root/lib/." "$dir/root/usr/lib/"
        rm -r "$dir/root/lib"
    fi
    rm -r "$dir/apt" "$dir/root/usr/share"
    kernel_finish "$dir" "$log"
}

# kernel_finish DIR LOG: what booting needs beside the files: the version, the module index, and
# the uncompressed image, which QEMU enters by PVH without a decompressor running under TCG.
kernel_finish() {
    local dir=$1 log=$2 version image
    version=$(basename "$(ls -d "$dir"/root/usr/lib/modules/*)")
    printf '%s\n' "$version" >"$dir/version"
    image=$(ls "$dir"/root/boot/vmlinuz-"$version" "$dir"/root/usr/lib/modules/"$version"/vmlinuz 2>/dev/null | head -n 1)
    [ -s "$dir/vmlinux" ] || vmlinux_of "$image" "$dir/vmlinux" ||
        fail "kernel unpack" "no vmlinux in $image" "$log"
    # This machine need not have kmod.
    unshare --mount --propagation private bash "$RIG_DIR/lib/in-tree" "$(mount_point)" "$L1_TREE" \
        "$dir/root/usr/lib/modules" /usr/lib/modules -- depmod "$version" >>"$log" 2>&1 ||
        fail "kernel unpack" "depmod $version" "$log"
}

# vmlinux_of BZIMAGE OUT: the payload that the x86 boot header describes.
vmlinux_of() {
    local sects offset length
    sects=$(od -An -tu1 -j497 -N1 "$1")
    offset=$(od -An -tu4 -j584 -N4 "$1")
    length=$(od -An -tu4 -j588 -N4 "$1")
    tail -c +$(((sects + 1) * 512 + offset + 1)) "$1" | head -c "$length" >"$2.packed"
    # The last four bytes are the size, which the decompressors take for trailing garbage.
    case $(od -An -tx1 -N4 "$2.packed" | tr -d ' ') in
    28b52ffd) zstd -dcq "$2.packed" >"$2" 2>/dev/null || true ;;
    fd377a58) xz -dc --single-stream "$2.packed" >"$2" 2>/dev/null || true ;;
    1f8b*) gzip -dc "$2.packed" >"$2" 2>/dev/null || true ;;
    *) mv "$2.packed" "$2" ;;
    esac
    rm -f "$2.packed"
    [ "$(od -An -tx1 -N4 "$2" | tr -d ' ')" = 7f454c46 ]
}
