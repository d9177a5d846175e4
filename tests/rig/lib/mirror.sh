# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Where Debian packages come from: the mirror that this machine's own apt uses.

MIRROR_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# mirror_of LABEL: the first repository of that label in apt's lists, or nothing.
mirror_of() {
    apt-get indextargets --format '$(LABEL)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        sed -n "s/^$1|//p" | head -n 1
}

# mirrors: sets MIRROR and MIRROR_SECURITY. Images of machines often come without apt's lists. A machine whose apt knows no
# Debian, such as Ubuntu, gets Debian's own mirror.
mirrors() {
    MIRROR=$(mirror_of Debian)
    if [ -z "$MIRROR" ]; then
        say "apt knows no Debian yet: apt-get update"
        apt-get update >"$CACHE/log/outer-apt.log" 2>&1 </dev/null || true
        MIRROR=$(mirror_of Debian)
    fi
    MIRROR=${MIRROR:-http://deb.debian.org/debian}
    MIRROR_SECURITY=$(mirror_of Debian-Security)
    MIRROR_SECURITY=${MIRROR_SECURITY:-http://deb.debian.org/debian-security}
    outer_packages "$MIRROR_KEYRING:debian-archive-keyring"
}

# suites_of SUITE: the suites that an installed system of SUITE takes its packages from.
suites_of() {
    case $1 in
    sid | *-backports) echo "$1" ;;
    *) echo "$1 $1-updates $1-security" ;;
    esac
}

# debian_sources SUITE…: deb lines for these suites.
debian_sources() {
    local suite mirror
    mirrors
    for suite in "$@"; do
        mirror=$MIRROR
        case $suite in *-security) mirror=$MIRROR_SECURITY ;; esac
        printf 'deb [signed-by=%s] %s %s main\n' "$MIRROR_KEYRING" "$mirror" "$suite"
    done
}

# outer_packages PROGRAM-OR-FILE:PACKAGE…: installs on this machine what the rig needs and does not find.
outer_packages() { [ -z "$(outer_missing "$@")" ] || with_lock "$CACHE/lock/outer" outer_install "$@"; }

outer_missing() {
    local pair
    for pair in "$@"; do
        [ -e "${pair%%:*}" ] || command -v "${pair%%:*}" >/dev/null 2>&1 || echo "${pair#*:}"
    done
}

# Another part of the rig may have installed them meanwhile.
outer_install() {
    local missing log=$CACHE/log/outer-apt.log
    mapfile -t missing < <(outer_missing "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    need_root
    say "installing on this machine: ${missing[*]}"
    command -v apt-get >/dev/null 2>&1 ||
        fail "outer machine" "it has no apt-get to install ${missing[*]}: the rig needs Debian or Ubuntu"
    { apt-get update && DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null ||
        fail "outer machine" "cannot install ${missing[*]}" "$log"
}
