# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The debug kernel: Debian's kernel source with our configuration, built in L1's tree.

# kernel_source DIR LOG [FOLDER…]: unpacks it, or these folders of it, into DIR/work.
kernel_source() {
    local dir=$1 log=$2
    shift 2
    debs_fetch "$dir/apt" trixie 'linux-source-[0-9].*' linux-source >"$log" 2>&1 ||
        fail "kernel download" "Debian's linux-source" "$log"
    mkdir -p "$dir/work" "$CACHE/mnt" "$CACHE/ccache"
    dpkg-deb --fsys-tarfile "$dir"/apt/debs/linux-source-*.deb |
        tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
        tar -xJ -C "$dir/work" --strip-components=1 --wildcards "${@/#/linux-source-*/}" >>"$log" 2>&1 ||
        fail "kernel unpack" "Debian's linux-source" "$log"
    rm -rf "$dir/apt"
}

# kernel_build DIR LOG: the debug kernel.
kernel_build() {
    local dir=$1 log=$2
    say "building the debug kernel (5 to 10 minutes, once): $log"
    kernel_source "$dir" "$log"
    mkdir "$dir/root"
    nice unshare --mount --propagation private bash "$RIG_DIR/lib/in-tree" "$CACHE/mnt" "$L1_TREE" \
        "$dir/work" /usr/src/linux "$dir/root" /out "$RIG_DIR/kernel" /config \
        "$CACHE/ccache" /ccache \
        -- sh /config/build.sh >>"$log" 2>&1 || fail "kernel build" "the debug kernel" "$log"
    mv "$dir/root/vmlinux" "$dir/vmlinux"
    rm -rf "$dir/work"
    kernel_finish "$dir" "$log"
}
