# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# rig up and rig down.

up_options() {
    UP_KERNEL=trixie UP_GPU=pci UP_GPUS='' UP_INIT=minimal UP_MEMORY=3G UP_CPUS=2 UP_APPEND='' UP_FROM='' UP_INCOMING=''
    UP_ACCEL=auto UP_ACCEL_WHY='' UP_PACKAGES='' UP_IMAGES=''
    while [ $# -gt 0 ]; do
        case $1 in
        --kernel) need_value "$@"; UP_KERNEL=$2 ;;
        --gpu) need_value "$@"; UP_GPU=$2 ;;
        --gpus) need_value "$@"; UP_GPUS=$2 ;;
        --init) need_value "$@"; UP_INIT=$2 ;;
        --memory) need_value "$@"; UP_MEMORY=$2 ;;
        --cpus) need_value "$@"; UP_CPUS=$2 ;;
        --append) need_value "$@"; UP_APPEND=$2 ;;
        --accel) need_value "$@"; UP_ACCEL=$2 ;;
        --packages) need_value "$@"; UP_PACKAGES=$2 ;;
        --image) need_value "$@"; image_name "$2"; UP_IMAGES+="$IMAGE_NAME " ;;
        --from) need_value "$@"; UP_FROM=$2 ;;
        *) die_usage "up: unknown option $1" ;;
        esac
        shift 2
    done
    kernel_name "$UP_KERNEL"
    UP_KERNEL=$KERNEL_NAME
    case $UP_ACCEL in auto | kvm | tcg) ;; *) die_usage "up: --accel auto, kvm or tcg" ;; esac
    [ -z "$UP_PACKAGES" ] || [ -s "$UP_PACKAGES" ] || die_usage "up: there is no list of packages $UP_PACKAGES"
    case $UP_GPU in pci | soft | none) ;; *) die_usage "up: --gpu pci, soft or none" ;; esac
    # How many PCI display functions there are in all, the GPU included.
    [ -n "$UP_GPUS" ] || { UP_GPUS=0; [ "$UP_GPU" != pci ] || UP_GPUS=1; }
    [[ $UP_GPUS =~ ^[0-9]{1,2}$ ]] || die_usage "up: --gpus takes a number below 100"
    case $UP_INIT in
    minimal) UP_INIT_PATH=/usr/local/lib/rig/init ;;
    systemd) UP_INIT_PATH=/sbin/init ;;
    *) die_usage "up: --init minimal or systemd" ;;
    esac
}

verb_up() {
    up_options "$@"
    need_root
    run_dir
    mkdir -p "$CACHE/lock"
    exec 7>"$CACHE/lock/run-$RIG_NAME"
    flock -n 7 || fail "outer machine" "another rig up of '$RIG_NAME' is at work"
    ! l1_alive || fail "outer machine" "the rig '$RIG_NAME' is up already: rig down first"
    if [ -n "$UP_FROM" ]; then up_restore; else up_fresh; fi
    exec 7>&-
}

# up_images: all that a rig of these options stands on, made if it is not in the cache.
up_images() {
    [ -z "$UP_PACKAGES" ] || up_packages
    l1_image
    kernel_image "$UP_KERNEL"
    guest_image
    images_make
}

# More packages in L1 for this start are a tree of their own, as those of `rig apt` are. The list is
# kept under its content, for `rig up --from`.
up_packages() {
    local list
    list=$CACHE/packages-$(key_of "$UP_PACKAGES" "$L1_EXTRA")
    { cat "$L1_EXTRA" 2>/dev/null || true; package_list "$UP_PACKAGES"; } | sort -u >"$list.$$"
    mv "$list.$$" "$list"
    L1_EXTRA=$list
    UP_PACKAGES=$list
}

up_fresh() {
    up_images
    accel_choose
    shims_fit
    UP_PRELOAD=$(shims)
    up_prepare
    up_start
    up_wait
    up_connect
    warm_keep
}

run_dir_make() {
    outer_packages setsid:util-linux ssh:openssh-client
    rm -rf "$RUN"
    mkdir -p "$RUN/guests"
    printf '%s\n' "$L1_IMAGE" "$KERNEL_IMAGE" "$GUEST_IMAGE" "${IMAGE_DISKS[@]}" "$CLOUD_IMAGE" >"$RUN/uses"
    printf '%s\n' "$L1_TREE" >"$RUN/tree"
    cp "$KERNEL_DIR/version" "$RUN/release"
    state_key >"$RUN/key"
    free_port >"$RUN/port"
    ssh_config >"$RUN/ssh_config"
    options_keep
}

options_keep() {
    declare -p UP_KERNEL UP_GPU UP_GPUS UP_INIT UP_INIT_PATH UP_MEMORY UP_CPUS UP_APPEND UP_ACCEL UP_ACCEL_WHY \
        UP_PACKAGES UP_IMAGES |
        sed 's/^declare -- //' >"$RUN/options"
}

# overlay_of BASE FORMAT FILE
overlay_of() {
    in_tree qemu-img create -q -f qcow2 -F "$2" -b "$1" "$3" >"$RUN/overlay.log" 2>&1 ||
        fail "disk image" "an overlay of $1" "$RUN/overlay.log"
}

# up_prepare: a fresh run directory, with overlays over the images and this start's initrd.
up_prepare() {
    run_dir_make
    overlay_of "$L1_IMAGE" raw "$RUN/root.qcow2"
    overlay_of "$KERNEL_IMAGE" raw "$RUN/kernel.qcow2"
    [ -z "$CLOUD_IMAGE" ] || overlay_of "$CLOUD_IMAGE" raw "$RUN/cloud.qcow2"
    up_initrd
}

up_initrd() {
    system_files "$RUN/files" l1
    l1_files "$RUN/files"
    warm_files "$RUN/files"
    initrd_make "$RUN/initrd" "$KERNEL_ROOT" "$(cat "$KERNEL_DIR/version")" "$RUN/files" \
        "$RIG_DIR/l1/initrd-init" virtio_pci virtio_blk virtio_net ext4 crc32c_generic crc32c_intel
    rm -rf "$RUN/files"
}

# A port that is free now: QEMU says so if it was taken in between.
free_port() {
    local port
    for _ in $(seq 100); do
        port=$((20000 + RANDOM % 12000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
    fail "outer machine" "no free loopback port found"
}

# in_tree CMD…: a command of L1's tree, which sees the cache at its own path.
in_tree() {
    unshare --mount --propagation private bash "$RIG_DIR/lib/in-tree" "$(mount_point)" "$L1_TREE" \
        "$CACHE" "$CACHE" -- "$@"
}

# up_start: the outer QEMU in a process namespace of its own: with its first process all of them
# end, the renderers' too.
up_start() {
    local env
    qemu_args
    env=(LD_PRELOAD="$UP_PRELOAD")
    [ "$UP_GPU" != pci ] || env+=(
        SDL_VIDEODRIVER=offscreen VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json
        LIBGL_ALWAYS_SOFTWARE=1
    )
    printf '%s\n' "${QEMU_ARGS[@]}" >"$RUN/qemu.args"
    : >"$RUN/console.log"
    setsid unshare --mount --propagation private --pid --fork --kill-child \
        bash "$RIG_DIR/lib/in-tree" "$(mount_point)" "$L1_TREE" "$CACHE" "$CACHE" \
        -- env "${env[@]}" "${QEMU_ARGS[@]}" >"$RUN/qemu.log" 2>&1 </dev/null 7>&- &
    up_pid $!
    disown
    trap 'trap - INT TERM EXIT; down_run; exit 130' INT TERM
    trap 'down_run' EXIT
}

# The file is there whole or not at all, for those who look at all rigs.
up_pid() {
    printf '%s %s\n' "$1" "$(process_start "$1")" >"$RUN/pid.part"
    mv "$RUN/pid.part" "$RUN/pid"
}

# boot_limit: the seconds that L1 may need to boot, or to end.
boot_limit() {
    case $UP_KERNEL in
    *-debug) echo "${RIG_BOOT_LIMIT:-1200}" ;;
    *) echo "${RIG_BOOT_LIMIT:-360}" ;;
    esac
}

# up_wait [TIMES]: until L1 answers after so many boots. Each way to fail has its layer.
up_wait() {
    local begin=$SECONDS limit
    limit=$(boot_limit)
    until [ "$(boots)" -ge "${1:-1}" ]; do
        l1_alive || up_died
        [ $((SECONDS - begin)) -lt "$limit" ] || up_silent "$limit"
        sleep 0.1
    done
}

# Nothing that L1 prints proves the rig's fault; QEMU's monitor does.
up_silent() {
    local reason
    if reason=$(fault_now); then
        up_failed "the rig, not in the tests" "$reason" "$RUN/console.log"
    fi
    up_failed "L1 boot" "no sign of life after $1 s" "$RUN/console.log"
}

boots() { grep -c 'rig: l1 is up' "$RUN/console.log" || true; }

# up_connect: the connection that later commands share.
up_connect() {
    l1_ssh -f -N l1 2>"$RUN/ssh.log" </dev/null ||
        up_failed "L1 network" "ssh does not connect" "$RUN/ssh.log"
    : >"$RUN/connected"
    trap - INT TERM EXIT
    say "L1 '$RIG_NAME' is up: kernel $(cat "$RUN/release"), gpu $UP_GPU, $UP_ACCEL ($UP_ACCEL_WHY)"
}

up_died() {
    local words
    words=$(last_words)
    [ -z "$words" ] || up_failed "L1 boot" "L1's kernel died: $words" "$RUN/console.log"
    if [ -s "$RUN/console.log" ]; then
        up_failed "L1 boot" "L1 ended while it booted" "$RUN/console.log"
    fi
    up_failed "outer QEMU" "it did not start" "$RUN/qemu.log"
}

# The logs outlive the rig that failed.
up_failed() {
    local dir=$CACHE/log/$RIG_NAME
    trap - INT TERM EXIT
    rm -rf "$dir"
    mkdir -p "$dir"
    [ ! -e "$3" ] || cp "$3" "$dir/"
    logs_to "$dir"
    down_run
    fail "$1" "$2" "$dir/$(basename "$3")"
}

verb_down() {
    run_dir
    down_run
}

hang_up_all() {
    local control
    for control in "$RUN"/ssh-*; do
        [ -S "$control" ] || continue
        l1_ssh -O exit "$(basename "$control" | sed 's/^ssh-//')" >/dev/null 2>&1 || true
    done
}

# down_run: ends the processes of this rig by their ids and removes its directory.
down_run() {
    local pid
    hang_up_all
    if pid=$(alive_pid "$RUN/pid"); then
        kill "$pid" 2>/dev/null || true
        kill -KILL "$pid" 2>/dev/null || true
        while [ -e "/proc/$pid/stat" ] && alive_pid "$RUN/pid" >/dev/null; do sleep 0.05; done
    fi
    rm -rf "$RUN"
}
