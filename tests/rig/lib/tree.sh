# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The two Debian trees, L1's and the guests', kept in the cache under keys of their inputs: the
# packages listed here, and those that `rig apt` added on this machine.

L1_LIST=$RIG_DIR/packages/l1.txt L1_EXTRA=$CACHE/extra-l1
L2_LIST=$RIG_DIR/packages/l2.txt L2_EXTRA=$CACHE/extra-l2

# tree_keys: where the trees are, for the extra lists as they are now.
tree_keys() {
    L1_BASE=$(key_of "$RIG_DIR/lib/mmdebstrap.sh" "$L1_LIST")
    L2_BASE=$(key_of "$RIG_DIR/lib/mmdebstrap.sh" "$L2_LIST")
    L1_KEY=$L1_BASE L2_KEY=$L2_BASE
    [ ! -s "$L1_EXTRA" ] || L1_KEY=$(key_of "$L1_BASE" "$L1_EXTRA")
    [ ! -s "$L2_EXTRA" ] || L2_KEY=$(key_of "$L2_BASE" "$L2_EXTRA")
    L1_TREE=$CACHE/l1-$L1_KEY/tree
    L2_TREE=$CACHE/l2-$L2_KEY/tree
}
tree_keys

tree_l1() {
    [ -d "$L1_TREE" ] || with_lock "$CACHE/lock/l1" \
        tree_once l1 "$CACHE/l1-$L1_BASE/tree" "$L1_TREE" "$L1_LIST" "$L1_EXTRA"
}

tree_l2() {
    [ -d "$L2_TREE" ] || with_lock "$CACHE/lock/l2" \
        tree_once l2 "$CACHE/l2-$L2_BASE/tree" "$L2_TREE" "$L2_LIST" "$L2_EXTRA"
}

# tree_once NAME BASE TREE LIST EXTRA
tree_once() {
    [ -d "$2" ] || tree_make "$2" trixie "$4" "$CACHE/log/tree-$1.log"
    [ -d "$3" ] || tree_extend "$2" "$3" "$5" "$CACHE/log/apt-$1.log"
}

# tree_extend BASE TREE EXTRA LOG: BASE with more packages; what did not change is shared with it.
# The packages' files stay in TREE/../debs for machines that run already.
tree_extend() {
    local base=$1 dir=$2 extra=$3 log=$4
    local part=$dir.part out
    out=$(dirname "$dir")
    say "adding $(paste -sd' ' "$extra"): $log"
    rm -rf --one-file-system "$out"
    mkdir -p "$out/debs" "$out/extra"
    cp "$extra" "$out/extra/list"
    tree_changes "$base" "$out" "$out/extra" "$log"
    # tar removes a file before it writes one of that name: the base keeps its own.
    { cp -al "$base" "$part" && tar -xf "$out/changes.tar" -C "$part"; } >>"$log" 2>&1 ||
        fail "tree build" "cannot copy $base" "$log"
    rm -f "$out/changes.tar"
    mv -T "$part" "$dir"
}

# tree_changes BASE DIR EXTRA LOG: what the packages of EXTRA/list change in BASE, as DIR/changes.tar; the packages' files
# go to DIR/debs.
tree_changes() {
    unshare --mount --propagation private bash "$RIG_DIR/lib/in-tree" "$(mount_point)" "$1" \
        "$2" /out "$2/debs" /var/cache/apt/archives "$3" /extra "$RIG_DIR/lib" /rig-lib \
        -- sh /rig-lib/apt-changes >"$4" 2>&1 ||
        fail "tree build" "apt-get cannot add $(paste -sd' ' "$3/list")" "$4"
}
