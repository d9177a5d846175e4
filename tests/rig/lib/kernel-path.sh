# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# rig up --kernel DIRECTORY: a kernel of one's own, installed or unpacked into DIRECTORY, which has
# boot/vmlinuz-VERSION and lib/modules/VERSION (or usr/lib/modules) as a root file system has them.

# kernel_path_check DIR
kernel_path_check() {
    local count
    count=$(find "$1"/boot -maxdepth 1 -name 'vmlinuz-*' 2>/dev/null | wc -l)
    [ "$count" = 1 ] || die_usage "$1 has $count kernels: one boot/vmlinuz-VERSION is needed"
    [ -d "$(kernel_path_modules "$1")" ] ||
        die_usage "$1 has no modules of its kernel: lib/modules/VERSION is needed"
}

kernel_path_version() { basename "$(find "$1"/boot -maxdepth 1 -name 'vmlinuz-*')" | sed 's/^vmlinuz-//'; }

kernel_path_modules() {
    local place
    for place in usr/lib/modules lib/modules; do
        [ ! -d "$1/$place/$(kernel_path_version "$1")" ] || { echo "$1/$place/$(kernel_path_version "$1")"; return; }
    done
}

# kernel_path_key DIR: of the image, and of the modules by name, size and time.
kernel_path_key() {
    { cat "$1"/boot/vmlinuz-*; find "$(kernel_path_modules "$1")/" -printf '%P %s %T@\n' | sort; } |
        sha256sum | cut -c1-12
}

# kernel_path_unpack DIR OUT LOG
kernel_path_unpack() {
    local from=$1 dir=$2 log=$3 version
    version=$(kernel_path_version "$from")
    say "taking the kernel $version from $from: $log"
    mkdir -p "$dir/root/boot" "$dir/root/usr/lib/modules" "$dir/root/usr/src"
    cp "$from"/boot/vmlinuz-* "$dir/root/boot/" &&
        cp -a "$(kernel_path_modules "$from")" "$dir/root/usr/lib/modules/$version" ||
        fail "kernel unpack" "cannot copy $from"
    : >"$log"
    kernel_finish "$dir" "$log"
}
