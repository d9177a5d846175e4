# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# rig build: runs a command natively in L1's Debian tree, with a kernel's headers in place.

verb_build() {
    local kernel=trixie list= layers
    while [ $# -gt 0 ]; do
        case $1 in
        --kernel) need_value "$@"; kernel=$2; shift 2 ;;
        --with) need_value "$@"; list=$2; shift 2 ;;
        --) shift; break ;;
        -*) die_usage "build: unknown option $1" ;;
        *) break ;;
        esac
    done
    [ $# -gt 0 ] || die_usage "build: no command"
    kernel_name "$kernel"
    need_root
    tree_l1
    kernel_root "$kernel"
    layers=$KERNEL_ROOT:$L1_TREE
    if [ -n "$list" ]; then
        tree_layer "$list"
        layers=$KERNEL_ROOT:$TREE_LAYER:$L1_TREE
    fi
    mkdir -p "$CACHE/ccache"
    exec unshare --mount --propagation private \
        bash "$RIG_DIR/lib/in-tree" "$(mount_point)" "$layers" "$REPO" /src "$CACHE/ccache" /ccache -- "$@"
}
