# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# How a Debian tree is made. The trees' keys hold this file: a change here makes all of them anew.

# tree_make DIR SUITE LIST LOG: one Debian tree with the packages of LIST. It appears under its
# name only when it is whole.
tree_make() {
    local dir=$1 suite=$2 list=$3 log=$4
    local part=$dir.part packages
    outer_packages mmdebstrap:mmdebstrap
    need_root
    mkdir -p "$(dirname "$dir")" "$(dirname "$log")"
    rm -rf --one-file-system "$part"
    packages=$(package_list "$list" | paste -sd,)
    say "making the $suite tree of $(basename "$list") (about two minutes): $log"
    # Without documentation and translations the tree is a third smaller, and faster to copy.
    # shellcheck disable=SC2046
    debian_sources $(suites_of "$suite") |
        mmdebstrap --mode=root --variant=apt --include="$packages" \
            --dpkgopt='path-exclude=/usr/share/man/*' \
            --dpkgopt='path-exclude=/usr/share/locale/*' \
            --dpkgopt='path-exclude=/usr/share/doc/*' \
            --dpkgopt='path-include=/usr/share/doc/*/copyright' \
            --aptopt='APT::Install-Recommends "false"' \
            --aptopt='Acquire::Check-Valid-Until "false"' \
            --setup-hook="$TREE_NO_DAEMONS" \
            "$suite" "$part" - >"$log" 2>&1 ||
        fail "tree build" "mmdebstrap could not make $suite from $list" "$log"
    chroot "$part" dpkg-query -W -f '${Package} ${Version}\n' >"$(dirname "$dir")/versions"
    mv -T "$part" "$dir"
}

# Packages must not start daemons while a tree is made; nor later, when `rig apt` adds to it.
# shellcheck disable=SC2016
TREE_NO_DAEMONS='mkdir -p "$1/usr/sbin" && printf "#!/bin/sh\nexit 101\n" >"$1/usr/sbin/policy-rc.d" && chmod 755 "$1/usr/sbin/policy-rc.d"'
