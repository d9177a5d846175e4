#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs in L1's tree, in the kernel source: builds it into /out as an installed kernel would lie.

set -eu

make -s x86_64_defconfig
scripts/kconfig/merge_config.sh -m .config /config/debug.config >/dev/null
make -s olddefconfig

# An option that Kconfig drops silently would be a checker that never runs.
missing=0
for want in $(grep -E '^CONFIG_(KASAN|UBSAN|PROVE_LOCKING|DEBUG_ATOMIC_SLEEP|DEBUG_KMEMLEAK|FAILSLAB|FAIL_PAGE_ALLOC|FAULT_INJECTION|VFIO|IOMMUFD|TRANSPARENT_HUGEPAGE|KVM|UDMABUF|VIRTIO|INTEL_IOMMU|E1000E|DRM|PVH)[A-Z0-9_]*=' /config/debug.config); do
    grep -qx "$want" .config || { echo "Kconfig dropped $want"; missing=1; }
done
[ "$missing" = 0 ]

# PVH's entry, by which QEMU starts a vmlinux, calls memcmp before KASAN's shadow exists.
printf '\nKASAN_SANITIZE_string.o := n\n' >>lib/Makefile

make -j"$(nproc)" vmlinux modules
version=$(make -s kernelrelease)
make -s modules_install INSTALL_MOD_PATH=/out/usr INSTALL_MOD_STRIP=1
make -s run-command KBUILD_RUN_COMMAND="scripts/package/install-extmod-build /out/usr/src/linux-headers-$version"
rm -f "/out/usr/lib/modules/$version/build" "/out/usr/lib/modules/$version/source"
ln -s "/usr/src/linux-headers-$version" "/out/usr/lib/modules/$version/build"
mkdir -p /out/boot
cp .config "/out/boot/config-$version"
cp System.map "/out/boot/System.map-$version"
strip -g -o /out/vmlinux vmlinux
