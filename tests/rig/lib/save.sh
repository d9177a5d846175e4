# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Saved states: a booted L1, guests included, that comes back in a second.

# state_key: what a saved state stands on. Its disks' backing images are named by the same keys,
# so they are never rebuilt under it. A rig has the one that it was started with in its directory.
state_key() {
    key_of "$L1_KEY" "$(basename "$KERNEL_DIR")" "$L2_KEY" "$(basename "$GUEST_BOOT")" \
        "$RIG_DIR/lib/qemu.sh" "$UP_ACCEL" "$UP_IMAGES"
}

# in_tree_words CMD…: in_tree_with_lib as a line for a shell, for programs that run a program.
in_tree_words() {
    quote unshare --mount --propagation private bash "$RIG_DIR/lib/in-tree" "$(mount_point)" \
        "$L1_TREE" "$CACHE" "$CACHE" "$RIG_DIR/lib" /rig-lib -- "$@"
}

qmp() { in_tree_with_lib python3 /rig-lib/qmp.py "$RUN/qmp" "$@"; }

in_tree_with_lib() {
    unshare --mount --propagation private bash "$RIG_DIR/lib/in-tree" "$(mount_point)" "$L1_TREE" \
        "$CACHE" "$CACHE" "$RIG_DIR/lib" /rig-lib -- "$@"
}

verb_save() {
    [ $# = 1 ] || die_usage "save: LABEL"
    check_name "$1"
    need_l1
    local state=$CACHE/state/$1 log=$CACHE/log/save-$1.log
    # shellcheck source=/dev/null
    . "$RUN/options"
    [ "$UP_GPU" != pci ] || fail "outer QEMU" "the GPU of --gpu pci cannot be saved: use --gpu soft or none"
    case " $UP_IMAGES" in *' cloud '*) fail "saved state" "the disk of the image cloud is not kept: start without it" ;; esac
    rm -rf "$state" "$state.part"
    mkdir -p "$state.part"
    remote_run l1 sync
    qmp save "$state.part/ram" >"$log" 2>&1 || fail "outer QEMU" "the state was not saved" "$log"
    # Stopped, and its disks let go: their files are now what the saved memory believes.
    cp --sparse=always "$RUN/root.qcow2" "$RUN/kernel.qcow2" "$state.part/"
    cp -r "$RUN/guests" "$RUN/options" "$RUN/initrd" "$RUN/uses" "$RUN/key" "$state.part/"
    mv -T "$state.part" "$state"
    qmp_cont >>"$log" 2>&1 || fail "outer QEMU" "it does not go on after saving" "$log"
    say "saved as '$1': rig up --from $1"
}

qmp_cont() {
    in_tree sh -c "printf '%s\n' '{\"execute\":\"qmp_capabilities\"}' '{\"execute\":\"cont\"}' |
        socat -t 5 - UNIX-CONNECT:$RUN/qmp"
}

# up_restore: rig up --from. The options are those of the saved rig.
up_restore() {
    local state=$CACHE/state/$UP_FROM
    [ -d "$state" ] || fail "saved state" "there is none named '$UP_FROM': rig save $UP_FROM"
    # shellcheck source=/dev/null
    . "$state/options"
    up_images
    shims_fit
    UP_PRELOAD=$(shims)
    [ "$(state_key)" = "$(cat "$state/key")" ] ||
        fail "saved state" "'$UP_FROM' was saved with other images or hardware: save it anew"
    run_dir_make
    cp -r "$state/guests" "$state/options" "$RUN/"
    overlay_of "$state/root.qcow2" qcow2 "$RUN/root.qcow2"
    overlay_of "$state/kernel.qcow2" qcow2 "$RUN/kernel.qcow2"
    cp "$state/initrd" "$RUN/initrd"
    UP_INCOMING=1
    up_start
    up_wait_qmp
    qmp restore "$state/ram" >"$RUN/restore.log" 2>&1 ||
        up_failed "saved state" "QEMU does not take it" "$RUN/restore.log"
    up_connect
}

up_wait_qmp() {
    local begin=$SECONDS
    until [ -S "$RUN/qmp" ]; do
        l1_alive || up_died
        [ $((SECONDS - begin)) -lt 60 ] || up_failed "outer QEMU" "it opens no QMP socket" "$RUN/qemu.log"
        sleep 0.05
    done
}
