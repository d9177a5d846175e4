# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# rig up --accel: whether the outer QEMU runs L1 on the processor itself or emulates it.

# accel_choose: sets UP_ACCEL_WHY to the reason. Nobody has seen a run with KVM yet, so that it must be asked for.
accel_choose() {
    UP_ACCEL_WHY="asked for"
    case $UP_ACCEL in
    auto) UP_ACCEL=tcg UP_ACCEL_WHY="emulated; --accel kvm is not tested" ;;
    kvm) kvm_works || fail "outer machine" "--accel kvm: $KVM_WHY" ;;
    esac
}

# kvm_works: a device node alone says nothing, so a stock kernel has two seconds to say its name.
kvm_works() {
    local log=$CACHE/log/kvm.log nested
    if [ ! -c /dev/kvm ]; then
        KVM_WHY="this machine has no /dev/kvm"
        return 1
    fi
    nested=$(cat /sys/module/kvm_intel/parameters/nested /sys/module/kvm_amd/parameters/nested 2>/dev/null || true)
    case $nested in
    *[Y1]*) ;;
    *)
        KVM_WHY="/dev/kvm has no nested virtualization for guests in L1"
        return 1
        ;;
    esac
    rm -f "$log"
    in_tree timeout -k 1 2 qemu-system-x86_64 -accel kvm -cpu host -machine q35 -m 512 -nodefaults \
        -no-user-config -display none -no-reboot -serial "file:$log" \
        -kernel "$KERNEL_DIR/vmlinux" -append "console=ttyS0 panic=-1" >"$log.qemu" 2>&1 </dev/null || true
    ! grep -qs 'Linux version' "$log" || return 0
    KVM_WHY="a kernel did not boot with /dev/kvm within two seconds"
    return 1
}

# accel_args: the processor and who runs it. L1 has 46 bits of physical addresses, so that its
# guests can have them too: a guest whose BARs lie above what the nested page tables can reach dies
# at the first access. A real processor has the bits that it has.
accel_args() {
    if [ "$UP_ACCEL" = kvm ]; then
        QEMU_ARGS+=(-accel kvm -cpu host)
    else
        QEMU_ARGS+=(-accel "tcg,thread=multi,tb-size=512" -cpu "max,phys-bits=46,la57=off")
    fi
}
