# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The faults that they mend were found in these versions, in the sources. In another one they may be
# mended, or be somewhere else: look there first, and read docs/upstream.md.
SHIMS_QEMU=10.0

# What is preloaded into the outer QEMU, compiled in L1's tree: see the sources.

# shim NAME: the library made of NAME-shim.c.
shim() {
    local key out source=$RIG_DIR/lib/$1-shim.c
    key=$(key_of "$source")
    out=$CACHE/shim/$1-$key.so
    if [ ! -s "$out" ]; then
        mkdir -p "$CACHE/shim"
        cp "$source" "$CACHE/shim/$1-$key.c"
        in_tree gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC \
            -o "$out.part" "$CACHE/shim/$1-$key.c" -ldl >"$CACHE/log/shim.log" 2>&1 ||
            fail "outer build" "the $1 shim does not compile" "$CACHE/log/shim.log"
        mv "$out.part" "$out"
    fi
    printf '%s\n' "$out"
}

# shims_fit: what the tree has is what the shims were made for. What each needs of QEMU's symbols it
# looks for itself when QEMU starts.
shims_fit() {
    local found dir=$L1_TREE/usr
    found=$(sed -n 's/^qemu-system-x86 [0-9]*:\([0-9]*\.[0-9]*\).*/\1/p' "$L1_TREE/../versions")
    [ "$found" = $SHIMS_QEMU ] ||
        fail "outer QEMU" "the shims are for QEMU $SHIMS_QEMU, and this one is ${found:-unknown}"
    [ "$UP_GPU" != pci ] || grep -q vkr-ring- "$dir/libexec/virgl_render_server" ||
        fail "outer QEMU" "the ring shim does not fit this render server: it has no threads vkr-ring-*"
}

# shims: LD_PRELOAD's value for the outer QEMU and its children.
shims() {
    local list
    shims_fit
    list=$(shim vring)
    [ "$UP_ACCEL" = kvm ] || list+=:$(shim svm)
    if [ "$UP_GPU" = pci ]; then
        list+=:$(shim ring)
        [ -e /dev/udmabuf ] || list+=:$(shim udmabuf)
    fi
    printf '%s\n' "$list"
}
