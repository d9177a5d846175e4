# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Guests (L2): the image that L1 gets as a disk, and rig guest.

# guest_image: sets GUEST_IMAGE, a disk with the guests' tree, and GUEST_BOOT, a small one with
# the image's kernel and our initrd in boot/rig, for whoever starts a guest.
guest_image() {
    tree_l2
    key_once
    GUEST_IMAGE=$CACHE/l2-$L2_KEY/disk.img
    GUEST_BOOT=$CACHE/l2-$L2_KEY/boot-$(guest_boot_key).img
    [ -s "$GUEST_IMAGE" ] ||
        with_lock "$CACHE/lock/l2" image_once "$L2_TREE" "$GUEST_IMAGE" 6G "$CACHE/log/image-l2.log"
    [ -s "$GUEST_BOOT" ] || with_lock "$CACHE/lock/l2" guest_boot_make "$L2_TREE" "$GUEST_BOOT"
}

guest_boot_key() {
    key_of "$RIG_DIR"/l1/* "$RIG_DIR/lib/files.sh" "$RIG_DIR/lib/image.sh" "$CACHE/ssh/key.pub"
}

# guest_boot_make ROOT IMAGE: the kernel of ROOT with our initrd.
guest_boot_make() {
    local root=$1 boot=$2 dir=$2.dir version image
    [ ! -s "$boot" ] || return 0
    tree_l1
    version=$(basename "$(ls -d "$root"/usr/lib/modules/*)")
    rm -rf "$dir"
    mkdir -p "$dir/disk/boot/rig"
    outer_packages xz:xz-utils zstd:zstd
    # Debian's kernels have it in /boot, those of its backports beside their modules.
    image=$root/boot/vmlinuz-$version
    [ -e "$image" ] || image=$root/usr/lib/modules/$version/vmlinuz
    vmlinux_of "$image" "$dir/disk/boot/rig/vmlinux" || fail "guest image" "no vmlinux in $image"
    system_files "$dir/files" l2
    initrd_make "$dir/disk/boot/rig/initrd" "$root" "$version" "$dir/files" \
        "$RIG_DIR/l1/initrd-init" virtio_pci virtio_blk virtio_net ext4 crc32c_generic crc32c_intel
    image_of "$dir/disk" "$boot" 128M "$CACHE/log/image-boot.log"
    rm -rf "$dir"
}

verb_guest() {
    [ $# -ge 2 ] || die_usage "guest: NAME up|adopt|run|put|get|monitor|log|down"
    local name=$1 verb=$2
    shift 2
    check_name "$name"
    need_l1
    case $verb in
    up | adopt | run | put | get | monitor | log | down) "guest_$verb" "$name" "$@" ;;
    *) die_usage "guest: unknown verb $verb" ;;
    esac
}

guest_up() {
    local name=$1 memory=1G cpus=1 init=/usr/local/lib/rig/init number more=()
    shift
    while [ $# -gt 0 ]; do
        case $1 in
        --memory) need_value "$@"; memory=$2; shift 2 ;;
        --cpus) need_value "$@"; cpus=$2; shift 2 ;;
        --init)
            need_value "$@"
            case $2 in
            minimal) ;;
            systemd) init=/sbin/init ;;
            *) die_usage "guest up: --init minimal or systemd" ;;
            esac
            shift 2
            ;;
        --viommu) more+=(viommu); shift ;;
        --image) need_value "$@"; need_image "$2"; more+=("image=$IMAGE_NAME"); shift 2 ;;
        --) shift; break ;;
        *) die_usage "guest up: unknown option $1" ;;
        esac
    done
    number=$(guest_number "$name")
    mkdir -p "$RUN/guests/l2-$name"
    echo "10.77.0.$number" >"$RUN/guests/l2-$name/address"
    remote_run l1 /usr/local/lib/rig/guest up "$name" "$number" "$memory" "$cpus" "$init" \
        "${more[@]}" "$@" ||
        guest_failed "$name" "QEMU in L1 did not start"
    guest_wait "$name"
}

# need_image NAME: L1 got its disks when it was started.
need_image() {
    image_name "$1"
    [ "$IMAGE_NAME" != cloud ] || die_usage "guest up: the image cloud boots by firmware: give it to libvirt"
    status_options
    case " trixie $UP_IMAGES " in
    *" $IMAGE_NAME "*) ;;
    *) fail "guest" "L1 was started without the image $IMAGE_NAME: rig up --image $IMAGE_NAME" ;;
    esac
}

# guest_adopt NAME ADDRESS: a guest that someone else started in L1, as libvirt, gets the same
# run, put and get.
guest_adopt() {
    [[ ${2:-} =~ ^[0-9]+(\.[0-9]+){3}$ ]] || die_usage "guest adopt: an IPv4 address that L1 reaches"
    mkdir -p "$RUN/guests/l2-$1"
    echo "$2" >"$RUN/guests/l2-$1/address"
}

# guest_number NAME: 11 and up, by which guests have their addresses.
guest_number() {
    local number=11
    if [ -s "$RUN/guests/l2-$1/address" ]; then
        sed 's/.*\.//' "$RUN/guests/l2-$1/address"
        return
    fi
    while grep -qsx "10.77.0.$number" "$RUN"/guests/*/address; do number=$((number + 1)); done
    echo "$number"
}

guest_wait() {
    local name=$1 rc=0
    remote_run l1 /usr/local/lib/rig/guest wait "$name" "${RIG_GUEST_LIMIT:-240}" || rc=$?
    case $rc in
    0) ;;
    1) guest_failed "$name" "it ended while it booted" ;;
    *) guest_failed "$name" "no sign of life" ;;
    esac
    l1_ssh -f -N "l2-$name" </dev/null 2>"$RUN/ssh.log" ||
        fail "guest network" "ssh to $name does not connect" "$RUN/ssh.log"
    say "guest '$name' is up"
}

guest_failed() {
    local log=$CACHE/log/$RIG_NAME-guest-$1.log
    guest_log "$1" >"$log" 2>/dev/null || true
    remote_run l1 /usr/local/lib/rig/guest down "$1" || true
    rm -rf "$RUN/guests/l2-$1"
    fail "guest boot" "guest $1: $2" "$log"
}

need_guest() {
    [ -s "$RUN/guests/l2-$1/address" ] || fail "guest" "there is no guest '$1': rig guest $1 up"
}

guest_run() {
    local name=$1
    shift
    run_options "guest run" "$@"
    need_guest "$name"
    remote_limited "l2-$name" "${RUN_WORDS[@]}"
}

guest_put() { need_guest "$1"; copy_put "l2-$1" "${@:2}"; }
guest_get() { need_guest "$1"; copy_get "l2-$1" "${@:2}"; }

# A line for QEMU's monitor, as device_add or info pci; its answer without prompt and echo.
guest_monitor() {
    need_guest "$1"
    printf '%s\n' "${*:2}" |
        l1_ssh l1 "socat -t 2 - UNIX-CONNECT:/run/rig/guests/$1/monitor" |
        sed '1d' | tr -d '\r' | sed '/^(qemu)/d'
}

guest_log() {
    remote_run l1 sh -c "cat /run/rig/guests/$1/console.log; cat /run/rig/guests/$1/qemu.log"
}

guest_down() {
    l1_ssh -O exit "l2-$1" >/dev/null 2>&1 || true
    remote_run l1 /usr/local/lib/rig/guest down "$1"
    rm -rf "$RUN/guests/l2-$1"
}
