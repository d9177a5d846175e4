# shellcheck shell=bash disable=SC2054
# SPDX-License-Identifier: MIT
#
# The outer QEMU's command line: L1's hardware.

# qemu_args: fills QEMU_ARGS from the options of `rig up` (UP_…), the images and the run directory.
qemu_args() {
    local disk
    QEMU_ARGS=(
        qemu-system-x86_64 -name "rig-$RIG_NAME" -nodefaults -no-user-config -no-reboot
        -smp "$UP_CPUS"
        -machine q35,kernel-irqchip=split,memory-backend=ram,sata=off,smbus=off,i8042=off,vmport=off -m "$UP_MEMORY"
        -object "memory-backend-memfd,id=ram,size=$UP_MEMORY,share=on"
        -device "intel-iommu,intremap=on,eim=on,device-iotlb=on,caching-mode=on,aw-bits=48"
        -kernel "$KERNEL_DIR/vmlinux" -initrd "$RUN/initrd" -append "$(kernel_words)"
        -serial "file:$RUN/console.log" -qmp "unix:$RUN/qmp,server=on,wait=off"
        -object rng-random,id=rng,filename=/dev/urandom -device virtio-rng-pci,rng=rng
        -netdev "user,id=net0,hostfwd=tcp:127.0.0.1:$(cat "$RUN/port")-:22"
        -device virtio-net-pci,netdev=net0,romfile=
    )
    accel_args
    qemu_disk root "$RUN/root.qcow2" qcow2
    qemu_disk kernel "$RUN/kernel.qcow2" qcow2
    qemu_disk guest "$GUEST_IMAGE" raw ,read-only=on
    qemu_disk guestboot "$GUEST_BOOT" raw ,read-only=on
    for disk in "${IMAGE_DISKS[@]}"; do qemu_disk "${disk% *}" "${disk#* }" raw ,read-only=on; done
    [ -z "$CLOUD_IMAGE" ] || qemu_disk cloud "$RUN/cloud.qcow2" qcow2
    # A physical function for vfio-pci tests, alone behind its root port.
    qemu_port nic 0
    QEMU_ARGS+=(-netdev user,id=net1,net=10.0.3.0/24 -device e1000e,netdev=net1,bus=nic,romfile=)
    qemu_gpu
    qemu_sriov
    qemu_more_gpus
    [ -z "$UP_INCOMING" ] || QEMU_ARGS+=(-incoming defer)
}

kernel_words() {
    local words="console=ttyS0 panic=-1 net.ifnames=0 mitigations=off intel_iommu=on iommu=nopt"
    # With TCG's virtual GIF an interrupt was seen to reach a guest that had them off.
    words+=" kvm_amd.vgif=0 nokaslr tsc=reliable no_timer_check rig.net=10.0.2.15/24,10.0.2.2"
    words+=" rig.init=$UP_INIT_PATH modprobe.blacklist=lpc_ich,pcspkr,iTCO_wdt,i2c_i801,i2c_smbus,psmouse,ahci,ata_generic,aesni_intel,ghash_clmulni_intel,sha512_ssse3,sha256_ssse3,sha1_ssse3,crc32_pclmul,crct10dif_pclmul"
    case $UP_KERNEL in
    # Beside other work its services need minutes to start.
    *-debug) words+=" loglevel=6 kmemleak=on kasan_multi_shot systemd.default_timeout_start_sec=600" ;;
    *) words+=" quiet" ;;
    esac
    printf '%s %s' "$words" "$UP_APPEND"
}

# No device has event_idx: QEMU 10.0's virtqueue_pop() sets avail_event and reads the available index without a barrier in
# between, so that now and then a doorbell is lost, and whoever waits for that GPU or disk waits for ever.

# qemu_disk SERIAL FILE FORMAT [OPTIONS]
qemu_disk() {
    QEMU_ARGS+=(
        -blockdev "$3,node-name=disk-$1,file.driver=file,file.filename=$2,file.locking=off${4:-}"
        -device "virtio-blk-pci,drive=disk-$1,serial=$1,event_idx=off"
    )
}

# qemu_port ID NUMBER: a root port; eight share a slot, and ACS keeps what is behind them apart.
qemu_port() {
    QEMU_ARGS+=(-device "pcie-root-port,id=$1,chassis=$(($2 + 1)),multifunction=on,addr=$(
        printf '%x.%x' $((16 + $2 / 8)) $(($2 % 8)))${3:-}")
}

qemu_gpu() {
    if [ "$UP_GPU" = pci ]; then
        qemu_port gpu 1
        QEMU_ARGS+=(
            -device "virtio-gpu-gl-pci,bus=gpu,venus=on,blob=on,hostmem=1G,event_idx=off,iommu_platform=on,ats=on,disable-legacy=on"
            -display sdl,gl=on
        )
    else
        QEMU_ARGS+=(-display none)
    fi
}

# A device with SR-IOV: QEMU has no GPU that has it, so a network card stands in for one.
qemu_sriov() {
    [ "$UP_GPU" = pci ] || return 0
    qemu_port sriov 2
    QEMU_ARGS+=(-netdev user,id=net2,net=10.0.4.0/24,restrict=on -device igb,netdev=net2,bus=sriov,romfile=)
}

# More display functions, for scale and placement: plain virtio-gpu, which costs nothing idle.
qemu_more_gpus() {
    local i first=0
    [ "$UP_GPU" != pci ] || first=1
    for ((i = first; i < UP_GPUS; i++)); do
        # They start at function 0 of a slot: without it Linux does not look for the others.
        qemu_port "gpu$i" $((i - first + 8))
        QEMU_ARGS+=(-device "virtio-gpu-pci,bus=gpu$i,iommu_platform=on,ats=on,disable-legacy=on")
    done
}
