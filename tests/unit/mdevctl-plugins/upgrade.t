#!/bin/bash
# SPDX-License-Identifier: MIT
#
# TAP: at an upgrade from 0.2.0, whose types had no CUDA, vGPUs that are defined keep their window (vgpu-mdevctl.postinst).
# mdevctl is one that writes down how it is called.
cd "$(dirname "$0")/../../.." || exit 1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir "$root/bin"
printf '#!/bin/sh\necho "$*" >>"%s/calls"\n' "$root" >"$root/bin/mdevctl"
chmod +x "$root/bin/mdevctl"

# UUID TYPE ATTRIBUTES
define() {
    mkdir -p "$root/etc/mdevctl.d/0000:01:00.0"
    printf '{\n  "mdev_type": "%s",\n  "start": "auto",\n  "attrs": [%s]\n}\n' "$2" "$3" >"$root/etc/mdevctl.d/0000:01:00.0/$1"
}
define a nvidia-vgpu-half ''
define b nvidia-vgpu-half '{"vgpu/window_bytes": "1073741824"}'
define c nvidia-63 ''
define d amdgpu-vgpu-half ''
define e nvidia-2g ''

# Calls of an upgrade from VERSION.
upgrade() {
    : >"$root/calls"
    DPKG_ROOT=$root PATH=$root/bin:$PATH sh packaging/debian/vgpu-mdevctl.postinst configure "$1" >"$root/said" 2>&1 ||
        cat "$root/said" >>"$root/calls"
    sed 's/^/# /' "$root/calls"
}
kept() { printf 'modify --uuid %s --parent 0000:01:00.0 --addattr=vgpu/window_bytes --value=268435456\n' "$@"; }

number=0
is() {
    number=$((number + 1))
    [ "$1" = "$2" ] && echo "ok $number - $3" || echo "not ok $number - $3"
}
echo 1..4
upgrade 0.2.0
is "$(cat "$root/calls")" "$(kept a e)" 'from 0.2.0: those of our types that have none of their own'
upgrade 0.2.0+12.gabcdef01
is "$(cat "$root/calls")" '' 'from a later one: nobody'
upgrade ''
is "$(cat "$root/calls")" '' 'at the first installation: nobody'
rm -r "$root/etc"
upgrade 0.1.0
is "$(cat "$root/calls")" '' 'without definitions nothing fails'
