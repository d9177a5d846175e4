# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The kernels that L1 can run: Debian's own, and two that are built from Debian 13's source. They are named by
# the suite that they come from, since a suite's version moves. Each has a directory with its files
# as an installed system would have them (image, modules, headers, kbuild).

KERNELS='bookworm trixie trixie-debug trixie-iommufd backports 7.2'

# kernel_name NAME: sets KERNEL_NAME to the suite's name. A release's version is good for its life.
kernel_name() {
    case $1 in
    6.1) KERNEL_NAME=bookworm ;;
    6.12) KERNEL_NAME=trixie ;;
    6.12-debug | 6.12-iommufd) KERNEL_NAME=trixie-${1#6.12-} ;;
    /*)
        kernel_path_check "$1"
        KERNEL_NAME=$1
        return
        ;;
    */*)
        kernel_path_check "$(readlink -f "$1")"
        KERNEL_NAME=$(readlink -f "$1")
        return
        ;;
    *) KERNEL_NAME=$1 ;;
    esac
    case " $KERNELS " in
    *" $KERNEL_NAME "*) ;;
    *) die_usage "unknown kernel $1: one of $KERNELS, or a directory" ;;
    esac
}

kernel_suite() {
    case $1 in
    backports | 7.2) echo trixie-backports ;;
    trixie-*) echo trixie ;;
    *) echo "$1" ;;
    esac
}

# kernel_key NAME: of how it is made, and of the version that the mirror offers.
kernel_key() {
    local suite
    case $1 in
    /*) kernel_path_key "$1"; return ;;
    esac
    suite=$(kernel_suite "$1")
    case $1 in
    *-debug) key_of "$RIG_DIR/lib/kernel-debug.sh" "$RIG_DIR"/kernel/{build.sh,debug.config} "$(offered "$suite" linux-source)" ;;
    7.2) key_of "$RIG_DIR/lib/kernel-headers.sh" "$(headers_package "$1")" ;;
    *-iommufd) key_of "$RIG_DIR/lib/kernel-iommufd.sh" "$RIG_DIR/kernel/iommufd.sh" "$(kernel_key trixie)" ;;
    *) key_of "$RIG_DIR/lib/kernel-debian.sh" "$1" "$(offered "$suite" linux-image-amd64)" ;;
    esac
}

# kernel_root KERNEL: sets KERNEL_ROOT, making it first if it is not in the cache.
kernel_root() {
    kernel_name "$1"
    KERNEL_LABEL=$KERNEL_NAME
    case $KERNEL_NAME in /*) KERNEL_LABEL=path ;; esac
    KERNEL_DIR=$CACHE/kernel-$KERNEL_LABEL-$(kernel_key "$KERNEL_NAME")
    KERNEL_ROOT=$KERNEL_DIR/root
    [ -d "$KERNEL_ROOT" ] || with_lock "$CACHE/lock/kernel-$KERNEL_LABEL" kernel_make "$KERNEL_NAME"
}

kernel_make() {
    [ ! -d "$KERNEL_ROOT" ] || return 0
    local log=$CACHE/log/kernel-$KERNEL_LABEL.log
    outer_packages xz:xz-utils zstd:zstd
    tree_l1
    rm -rf "$KERNEL_DIR.part"
    mkdir -p "$KERNEL_DIR.part"
    case $1 in
    /*) kernel_path_unpack "$1" "$KERNEL_DIR.part" "$log" ;;
    *-debug) kernel_build "$KERNEL_DIR.part" "$log" ;;
    7.2) kernel_headers "$1" "$KERNEL_DIR.part" "$log" ;;
    *-iommufd) kernel_iommufd "$KERNEL_DIR.part" "$log" ;;
    *) kernel_unpack "$1" "$KERNEL_DIR.part" "$log" ;;
    esac
    rm -rf "$KERNEL_DIR"
    mv -T "$KERNEL_DIR.part" "$KERNEL_DIR"
}
