# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Packages that only some builds need: a layer over L1's tree, so that the tree, and the disk image that L1
# boots from, stay as they are.

# tree_layer LIST: sets TREE_LAYER to what the packages of LIST add to L1's tree.
tree_layer() {
    [ -s "$1" ] || die_usage "build: there is no list of packages $1"
    TREE_LAYER=$CACHE/layer-$L1_KEY-$(key_of "$1")/tree
    [ -d "$TREE_LAYER" ] || with_lock "$CACHE/lock/layer" layer_once "$1" "$TREE_LAYER"
}

layer_once() {
    local list=$1 layer=$2 dir log=$CACHE/log/layer.log
    [ ! -d "$layer" ] || return 0
    dir=$(dirname "$layer")
    say "adding the packages of $(basename "$list") for builds: $log"
    rm -rf --one-file-system "$dir"
    mkdir -p "$dir/debs" "$dir/extra" "$layer.part"
    package_list "$list" >"$dir/extra/list"
    tree_changes "$L1_TREE" "$dir" "$dir/extra" "$log"
    tar -xf "$dir/changes.tar" -C "$layer.part" >>"$log" 2>&1 || fail "tree build" "cannot unpack $dir" "$log"
    rm -rf "$dir/changes.tar" "$dir/debs" "$dir/extra"
    mv -T "$layer.part" "$layer"
}
