# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# rig prepare fills the cache; rig clean takes out what no key names any more.

verb_prepare() {
    local kernel=trixie debs=
    while [ $# -gt 0 ]; do
        case $1 in
        --kernel) need_value "$@"; kernel=$2 ;;
        --debs) need_value "$@"; debs=$2 ;;
        *) die_usage "prepare: unknown option $1" ;;
        esac
        shift 2
    done
    kernel_name "$kernel"
    need_root
    [ -z "$debs" ] || kernel_debs "$kernel" "$debs"
    # apt-get can install one at a time.
    outer_packages mmdebstrap:mmdebstrap mke2fs:e2fsprogs cpio:cpio xz:xz-utils zstd:zstd ssh:openssh-client setsid:util-linux
    tree_keys
    side_by_side guest_image "host_images $kernel"
    shim svm >/dev/null
    shim vring >/dev/null
    shim ring >/dev/null
    shim udmabuf >/dev/null
}

host_images() {
    kernel_root "$1"
    side_by_side l1_image "kernel_image $1"
}

# side_by_side CMD…: all at the same time; ends the rig if one fails.
side_by_side() {
    local command pids=() status=0
    for command; do
        ($command) &
        pids+=($!)
    done
    for command in "${pids[@]}"; do wait "$command" || status=$?; done
    [ $status = 0 ] || exit $status
}

# What a running rig or a saved state stands on stays, whatever its key.
verb_clean() {
    local dir keep kernel used
    need_root
    tree_keys
    # shellcheck disable=SC2153
    keep=" l1-$L1_BASE l1-$L1_KEY l2-$L2_BASE l2-$L2_KEY "
    RIG_SMALL=1 tree_keys
    keep+="l1-$L1_BASE l1-$L1_KEY l2-$L2_BASE l2-$L2_KEY "
    for kernel in $KERNELS; do
        ls -d "$CACHE/kernel-$kernel-"* >/dev/null 2>&1 || continue
        keep+="kernel-$kernel-$(kernel_key "$kernel") "
    done
    if ls -d "$CACHE"/sid-* >/dev/null 2>&1; then
        tree_key SID sid "$L2_LIST" "$CACHE/extra-none"
        keep+="sid-$SID_KEY "
    fi
    if ls -d "$CACHE"/cloud-* >/dev/null 2>&1; then
        tree_key CLOUD trixie "$CLOUD_LIST" "$CACHE/extra-none"
        keep+="cloud-$CLOUD_KEY "
    fi
    used=$(cat "$CACHE"/run/*/uses "$CACHE"/state/*/uses 2>/dev/null || true)
    for dir in "$CACHE"/l1-* "$CACHE"/l2-* "$CACHE"/sid-* "$CACHE"/cloud-* "$CACHE"/kernel-* "$CACHE"/layer-* "$CACHE"/test-*; do
        [ -d "$dir" ] || continue
        case $(basename "$dir") in "layer-$L1_KEY-"*) continue ;; esac
        case $keep in *" $(basename "$dir") "*) continue ;; esac
        case $used in *"$(basename "$dir")"*) continue ;; esac
        say "removing $dir"
        rm -rf --one-file-system "$dir"
    done
}
