# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The kernels that L1 can run: Debian's own, and a debug build of 6.12. Each has a directory with
# its files as an installed system would have them (image, modules, headers, kbuild).

KERNELS='6.1 6.12 6.12-debug 7.2'

kernel_check() {
    case " $KERNELS " in
    *" $1 "*) ;;
    *) die_usage "unknown kernel $1: one of $KERNELS" ;;
    esac
}

kernel_suite() {
    case $1 in
    6.1) echo bookworm ;;
    6.12*) echo trixie ;;
    7.2) echo trixie-backports ;;
    esac
}

kernel_key() {
    case $1 in
    *-debug) key_of "$RIG_DIR/lib/kernel-debug.sh" "$RIG_DIR"/kernel/* ;;
    *) key_of "$RIG_DIR/lib/kernel-debian.sh" "$1" ;;
    esac
}

# kernel_root KERNEL: sets KERNEL_ROOT, making it first where it is not in the cache.
kernel_root() {
    KERNEL_DIR=$CACHE/kernel-$1-$(kernel_key "$1")
    KERNEL_ROOT=$KERNEL_DIR/root
    [ -d "$KERNEL_ROOT" ] || with_lock "$CACHE/lock/kernel-$1" kernel_make "$1"
}

kernel_make() {
    [ ! -d "$KERNEL_ROOT" ] || return 0
    local log=$CACHE/log/kernel-$1.log
    outer_packages xz:xz-utils zstd:zstd
    rm -rf "$KERNEL_DIR.part"
    mkdir -p "$KERNEL_DIR.part"
    case $1 in
    *-debug) kernel_build "$1" "$KERNEL_DIR.part" "$log" ;;
    *) kernel_unpack "$1" "$KERNEL_DIR.part" "$log" ;;
    esac
    rm -rf "$KERNEL_DIR"
    mv -T "$KERNEL_DIR.part" "$KERNEL_DIR"
}
