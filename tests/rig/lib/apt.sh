# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# rig apt: more Debian packages in L1 or in the guests' image, from now on.

verb_apt() {
    local kind=l1 extra=$L1_EXTRA new before
    if [ "${1:-}" = --guest ]; then
        kind=l2 extra=$L2_EXTRA
        shift
    fi
    [ $# -gt 0 ] || die_usage "apt: no package"
    need_root
    mkdir -p "$CACHE"
    before=$(cat "$extra" 2>/dev/null || true)
    new=$extra.new-$$
    # A list that cannot be installed must not become the one that every start uses.
    printf '%s\n' "$before" "$@" | sed '/^$/d' | sort -u >"$new"
    if [ $kind = l1 ]; then L1_EXTRA=$new; else L2_EXTRA=$new; fi
    tree_keys
    (tree_$kind) || { rm -f "$new"; exit $RIG_FAILED; }
    mv "$new" "$extra"
    L1_EXTRA=$CACHE/extra-l1 L2_EXTRA=$CACHE/extra-l2
    if [ $kind = l1 ] && l1_alive; then apt_running; fi
}

# An L1 that runs has its image below it; it gets the same packages by hand.
apt_running() {
    local dir=/var/tmp/rig-debs
    say "installing in the running L1 '$RIG_NAME'"
    remote_run l1 mkdir -p "$dir"
    copy_put l1 "$CACHE/l1-$L1_KEY"/debs/*.deb "$dir/"
    remote_run l1 sh -c "dpkg -iE --force-confold $dir/*.deb >$dir/log 2>&1 && rm -r $dir || { tail -n 20 $dir/log; exit 1; }" ||
        fail "L1" "the packages do not install in the running L1; they are in the next one"
}
