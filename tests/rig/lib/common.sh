# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Messages, names and paths that every other part uses.

CACHE=${MDEV_VGPU_CACHE:-/var/cache/mdev-vgpu}
REPO=$(readlink -f "$RIG_DIR/../..")

# Progress for a person goes to stderr: stdout belongs to the command that is run.
say() { printf 'rig: %s\n' "$*" >&2; }

# The rig itself failed: EX_TEMPFAIL of sysexits.h, which neither podman, docker, ssh, env nor timeout
# uses for a failure of its own.
RIG_FAILED=75

# fail LAYER TEXT [LOG]: every failure names the layer that failed and where its log is.
fail() {
    printf 'rig: FAILED in %s: %s\n' "$1" "$2" >&2
    if [ -n "${3:-}" ]; then
        [ ! -s "$3" ] || tail -n 15 "$3" | sed 's/^/rig:   | /' >&2
        printf 'rig: log: %s\n' "$3" >&2
    fi
    exit $RIG_FAILED
}

die_usage() {
    printf 'rig: %s (see rig --help)\n' "$*" >&2
    exit 2
}

need_value() { [ $# -ge 2 ] || die_usage "$1 needs a value"; }

check_name() {
    [[ $1 =~ ^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$ ]] ||
        die_usage "'$1' is no name: letters, digits, - and _, at most 32"
}

need_root() { [ "$(id -u)" = 0 ] || fail "outer machine" "root is needed for mounts and chroot"; }

# key_of FILE-OR-WORD…: what a cached thing is made of, as 12 hex digits.
key_of() {
    local input
    for input in "$@"; do
        if [ -f "$input" ]; then cat "$input"; else printf '%s\n' "$input"; fi
    done | sha256sum | cut -c1-12
}

package_list() { sed 's/#.*//; s/ *$//; /^$/d' "$1"; }

# with_lock FILE CMD…: two starts at the same time build a cached thing once.
with_lock() {
    local lock=$1 rc=0
    shift
    mkdir -p "$(dirname "$lock")"
    exec 8>"$lock"
    if ! flock -n 8; then
        say "waiting for another part or rig that makes $(basename "$lock")"
        flock 8
    fi
    ("$@") 8>&- || rc=$?
    exec 8>&-
    return "$rc"
}

# quote WORD…: the words as one string that a remote shell reads back as they are.
quote() {
    local out='' word
    for word in "$@"; do out+="${word@Q} "; done
    printf '%s' "${out% }"
}

# An empty directory for in-tree, whose mounts only its own mount namespace sees.
mount_point() { mkdir -p "$CACHE/mnt" && echo "$CACHE/mnt"; }
