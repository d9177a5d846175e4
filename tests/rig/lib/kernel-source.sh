# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The rig's own kernels: Debian's kernel source with our configurations (kernel/), built in L1's tree.

# kernel_build KERNEL DIR LOG
kernel_build() {
    local dir=$2 log=$3
    say "building kernel $1 (5 to 20 minutes, once): $log"
    debs_fetch "$dir/apt" trixie 'linux-source-[0-9].*' linux-source >"$log" 2>&1 ||
        fail "kernel download" "Debian's linux-source" "$log"
    mkdir "$dir/work" "$dir/root"
    dpkg-deb --fsys-tarfile "$dir"/apt/debs/linux-source-*.deb |
        tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
        tar -xJ -C "$dir/work" --strip-components=1 >>"$log" 2>&1 ||
        fail "kernel unpack" "Debian's linux-source" "$log"
    mkdir -p "$CACHE/mnt" "$CACHE/ccache"
    nice unshare --mount --propagation private bash "$RIG_DIR/lib/in-tree" "$CACHE/mnt" "$L1_TREE" \
        "$dir/work" /usr/src/linux "$dir/root" /out "$RIG_DIR/kernel" /config \
        "$CACHE/ccache" /ccache \
        -- sh /config/build.sh "${1#trixie-}" >>"$log" 2>&1 || fail "kernel build" "kernel $1" "$log"
    mv "$dir/root/vmlinux" "$dir/vmlinux"
    rm -rf "$dir/work" "$dir/apt"
    kernel_finish "$dir" "$log"
}
