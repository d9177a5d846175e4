# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Where Debian packages come from: the mirror that this machine's own apt uses.

MIRROR_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# mirror_of LABEL: the first repository of that label in apt's configuration, or nothing.
mirror_of() {
    apt-get indextargets --format '$(LABEL)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        sed -n "s/^$1|//p" | head -n 1
}

# suites_of SUITE: the suites that an installed system of SUITE takes its packages from.
suites_of() {
    case $1 in
    sid | *-backports) echo "$1" ;;
    *) echo "$1 $1-updates $1-security" ;;
    esac
}

# debian_sources SUITE…: deb lines for these suites. Nothing if apt's configuration has no Debian,
# so that mmdebstrap falls back to its own default.
debian_sources() {
    local suite mirror
    for suite in "$@"; do
        case $suite in
        *-security) mirror=$(mirror_of Debian-Security) ;;
        *) mirror=$(mirror_of Debian) ;;
        esac
        [ -z "$mirror" ] || printf 'deb [signed-by=%s] %s %s main\n' "$MIRROR_KEYRING" "$mirror" "$suite"
    done
}

# outer_packages CMD:PACKAGE…: installs on this machine what the rig needs and does not find.
outer_packages() {
    local pair missing=()
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null 2>&1 || missing+=("${pair#*:}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    need_root
    say "installing on this machine: ${missing[*]}"
    local log=$CACHE/log/outer-apt.log
    command -v apt-get >/dev/null 2>&1 ||
        fail "outer machine" "it needs Debian 12 or 13 to install ${missing[*]}"
    { apt-get update && DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null ||
        fail "outer machine" "cannot install ${missing[*]}" "$log"
}
