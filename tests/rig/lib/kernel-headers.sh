# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Headers alone of a kernel between Debian's suites, which Debian 13's backports have left behind: to build modules for, not
# to be started.

# headers_package SERIES: the newest of a series, as 7.2.
headers_package() {
    index_update trixie-backports
    private_apt trixie-backports apt-cache pkgnames "linux-headers-$1." | grep -xE 'linux-headers-[0-9.]+\+deb13-amd64' |
        sort -V | tail -n 1
}

# kernel_headers SERIES DIR LOG
kernel_headers() {
    local series=$1 dir=$2 log=$3 deb
    say "unpacking the headers of Debian's newest kernel $series: $log"
    debs_fetch "$dir/apt" trixie-backports "linux-(headers|kbuild)-$series\..*" "$(headers_package "$series")" >"$log" 2>&1 ||
        fail "kernel download" "the headers of kernel $series" "$log"
    mkdir "$dir/root"
    for deb in "$dir"/apt/debs/*.deb; do
        dpkg-deb -x "$deb" "$dir/root" >>"$log" 2>&1 || fail "kernel unpack" "$deb" "$log"
    done
    rm -r "$dir/apt" "$dir/root/usr/share"
}
