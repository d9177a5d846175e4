# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
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

# shims: LD_PRELOAD's value for the outer QEMU and its children.
shims() {
    local list
    list=$(shim svm):$(shim vring)
    if [ "$UP_GPU" = pci ]; then
        list+=:$(shim ring)
        [ -e /dev/udmabuf ] || list+=:$(shim udmabuf)
    fi
    printf '%s\n' "$list"
}
