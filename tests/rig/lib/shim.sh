# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The udmabuf shim of the outer render server, compiled in L1's tree.

udmabuf_shim() {
    local key out source=$RIG_DIR/lib/udmabuf-shim.c
    [ ! -e /dev/udmabuf ] || return 0
    key=$(key_of "$source")
    out=$CACHE/shim/udmabuf-$key.so
    if [ ! -s "$out" ]; then
        mkdir -p "$CACHE/shim"
        cp "$source" "$CACHE/shim/udmabuf-$key.c"
        in_tree gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC \
            -o "$out.part" "$CACHE/shim/udmabuf-$key.c" -ldl >"$CACHE/log/shim.log" 2>&1 ||
            fail "outer build" "the udmabuf shim does not compile" "$CACHE/log/shim.log"
        mv "$out.part" "$out"
    fi
    printf '%s\n' "$out"
}
