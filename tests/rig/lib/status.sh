# shellcheck shell=bash
# SPDX-License-Identifier: MIT

# rig status: every rig of this cache, with its guests; saved states; the size of the cache.
verb_status() {
    local dir label
    for dir in "$CACHE"/run/*/; do
        [ -d "$dir" ] || continue
        RIG_NAME=$(basename "$dir")
        status_of
    done
    for dir in "$CACHE"/state/*/; do
        [ -e "$dir/key" ] || continue
        label=$(basename "$dir")
        printf 'saved %s: kernel %s\n' "$label" "$(sed -n 's/^UP_KERNEL=//p' "$dir/options" | tr -d \")"
    done
    printf 'cache: %s, %s\n' "$CACHE" "$(du -sh "$CACHE" 2>/dev/null | cut -f1)"
}

status_of() {
    local guest
    if ! l1_alive; then
        printf 'rig %s: dead, its logs are in %s\n' "$RIG_NAME" "$RUN"
        return
    fi
    printf 'rig %s: up, pid %s, ssh port %s, %s\n' "$RIG_NAME" "$(alive_pid "$RUN/pid")" \
        "$(cat "$RUN/port")" "$(sed -n 's/^UP_\(KERNEL\|GPU\|GPUS\|INIT\|MEMORY\)=/\L\1\E=/p' "$RUN/options" 2>/dev/null | tr -d \" | paste -sd' ')"
    for guest in "$RUN"/guests/l2-*/; do
        [ -s "$guest/address" ] || continue
        printf '    guest %s: %s\n' "$(basename "$guest" | sed 's/^l2-//')" "$(cat "$guest/address")"
    done
}

# rig monitor LINE: what L1's QEMU answers, also when L1 no longer does.
verb_monitor() {
    [ $# = 1 ] || die_usage "monitor: LINE"
    need_l1
    in_tree_with_lib python3 /rig-lib/qmp.py "$RUN/qmp" monitor "$1"
}
