# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# rig reboot: L1 ends in order and boots anew from its own disk, with the kernel that it has, or with another that was
# installed in it.

verb_reboot() {
    local kernel=
    while [ $# -gt 0 ]; do
        case $1 in
        --kernel) need_value "$@"; kernel=$2; shift 2 ;;
        *) die_usage "reboot: unknown option $1" ;;
        esac
    done
    [ -z "$kernel" ] || { kernel_name "$kernel"; kernel=$KERNEL_NAME; }
    need_l1
    # shellcheck source=/dev/null
    . "$RUN/options"
    [ "$UP_INIT" = systemd ] || fail "L1" "only one with --init systemd can be rebooted"
    if [ -n "$kernel" ]; then reboot_into "$kernel"; else reboot_same; fi
}

# QEMU ends when L1 would reboot, as it does when its kernel panics; but for this once.
reboot_same() {
    local times
    times=$(($(boots) + 1))
    qmp on-reboot reset >"$RUN/reboot.log" 2>&1 || fail "outer QEMU" "it does not take set-action" "$RUN/reboot.log"
    rm -f "$RUN/connected"
    remote_run l1 systemctl reboot --no-block
    hang_up_all
    up_wait "$times"
    qmp on-reboot shutdown >"$RUN/reboot.log" 2>&1 || fail "outer QEMU" "it does not take set-action" "$RUN/reboot.log"
    up_connect
}

# reboot_into KERNEL: as a boot loader would start what a package has installed. The modules are L1's own; only the kernel
# and the small initrd come from outside.
reboot_into() {
    local version
    UP_KERNEL=$1 UP_INCOMING=''
    up_images
    version=$(cat "$KERNEL_DIR/version")
    remote_run l1 test -d "/usr/lib/modules/$version" ||
        fail "L1" "the kernel $version is not installed in it: rig prepare --kernel $1 --debs DIR has its packages"
    UP_PRELOAD=$(shims)
    rm -f "$RUN/connected"
    remote_run l1 systemctl poweroff --no-block
    hang_up_all
    reboot_await_end
    cp "$KERNEL_DIR/version" "$RUN/release"
    printf '%s\n' "$KERNEL_IMAGE" >>"$RUN/uses"
    options_keep
    up_initrd
    up_start
    up_wait
    up_connect
}

reboot_await_end() {
    local begin=$SECONDS limit
    limit=$(boot_limit)
    while l1_alive; do
        [ $((SECONDS - begin)) -lt "$limit" ] || fail "L1" "it did not power off within $limit s" "$RUN/console.log"
        sleep 0.2
    done
}
