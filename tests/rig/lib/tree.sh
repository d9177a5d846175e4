# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The Debian trees, L1's and the guests', kept in the cache under keys of their inputs: the
# packages listed here, the versions that the mirror offers of them and of what they need, and the
# packages that `rig apt` added on this machine. DIR/versions beside a tree says what is in it.

L1_LIST='' L1_EXTRA=$CACHE/extra-l1
L2_LIST='' L2_EXTRA=$CACHE/extra-l2
L1_KEY='' L2_KEY=''

# tree_key NAME SUITE LIST EXTRA: sets NAME_BASE, NAME_KEY and NAME_TREE.
tree_key() {
    local -n base=$1_BASE key=$1_KEY tree=$1_TREE
    local versions
    versions=$(resolved "$2" "$3")
    base=$(key_of "$RIG_DIR/lib/mmdebstrap.sh" "$2" "$3" "$versions")
    key=$base
    [ ! -s "$4" ] || key=$(key_of "$base" "$4")
    # shellcheck disable=SC2034
    tree=$CACHE/${1,,}-$key/tree
}

# list_of NAME: the list of L1 or L2. With RIG_SMALL, which the demo sets, it is that of packages/small, on a machine
# that has no tree of the whole one.
list_of() {
    local dir
    for dir in "$CACHE/$1"-*/; do
        [ ! -d "$dir/tree" ] || [ -e "$dir/small" ] || { echo "$RIG_DIR/packages/$1.txt"; return; }
    done
    echo "$RIG_DIR/packages/${RIG_SMALL:+small/}$1.txt"
}

# tree_keys: the keys, with the mirror asked and with the extra lists as they are now.
tree_keys() {
    tree_key_l1
    tree_key_l2
}

tree_key_l1() {
    L1_LIST=$(list_of l1)
    tree_key L1 trixie "$L1_LIST" "$L1_EXTRA"
}

tree_key_l2() {
    L2_LIST=$(list_of l2)
    tree_key L2 trixie "$L2_LIST" "$L2_EXTRA"
}

tree_l1() {
    [ -n "$L1_KEY" ] || tree_key_l1
    [ -d "$L1_TREE" ] || with_lock "$CACHE/lock/l1" \
        tree_once trixie "$CACHE/l1-$L1_BASE/tree" "$L1_TREE" "$L1_LIST" "$L1_EXTRA"
}

tree_l2() {
    [ -n "$L2_KEY" ] || tree_key_l2
    [ -d "$L2_TREE" ] || with_lock "$CACHE/lock/l2" \
        tree_once trixie "$CACHE/l2-$L2_BASE/tree" "$L2_TREE" "$L2_LIST" "$L2_EXTRA"
}

# tree_once SUITE BASE TREE LIST EXTRA
tree_once() {
    local name
    name=$(basename "$4" .txt)
    case $4 in */small/*)
        mkdir -p "${2%/*}" && touch "${2%/*}/small"
        # Nothing boots by the initrd that Debian's kernel would get.
        export INITRD=No
        ;;
    esac
    [ -d "$2" ] || tree_make "$2" "$1" "$4" "$CACHE/log/tree-$name.log"
    [ -d "$3" ] || tree_extend "$2" "$3" "$5" "$CACHE/log/apt-$name.log"
    [ ! -e "${2%/*}/small" ] || touch "${3%/*}/small"
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
    package_list "$extra" >"$out/extra/list"
    tree_changes "$base" "$out" "$out/extra" "$log"
    # tar removes a file before it writes one of that name: the base keeps its own.
    { cp -al "$base" "$part" && tar -xf "$out/changes.tar" -C "$part"; } >>"$log" 2>&1 ||
        fail "tree build" "cannot copy $base" "$log"
    rm -f "$out/changes.tar"
    chroot "$part" dpkg-query -W -f '${Package} ${Version}\n' >"$out/versions"
    mv -T "$part" "$dir"
}

# tree_changes BASE DIR EXTRA LOG: what the packages of EXTRA/list change in BASE, as
# DIR/changes.tar; the packages' files go to DIR/debs.
tree_changes() {
    unshare --mount --propagation private bash "$RIG_DIR/lib/in-tree" "$(mount_point)" "$1" \
        "$2" /out "$2/debs" /var/cache/apt/archives "$3" /extra "$RIG_DIR/lib" /rig-lib \
        -- sh /rig-lib/apt-changes >"$4" 2>&1 ||
        fail "tree build" "apt-get cannot add $(paste -sd' ' "$3/list")" "$4"
}
