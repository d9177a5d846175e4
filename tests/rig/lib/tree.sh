# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# The two Debian trees, kept in the cache under a key of their inputs: L1's, and the guests'.

L1_LIST=$RIG_DIR/packages/l1.txt
L1_KEY=$(key_of "$RIG_DIR/lib/mmdebstrap.sh" "$L1_LIST")
L1_TREE=$CACHE/l1-$L1_KEY/tree

tree_l1_unlocked() {
    [ -d "$L1_TREE" ] || tree_make "$L1_TREE" trixie "$L1_LIST" "$CACHE/log/tree-l1.log"
}

tree_l1() { [ -d "$L1_TREE" ] || with_lock "$CACHE/lock/l1" tree_l1_unlocked; }

L2_LIST=$RIG_DIR/packages/l2.txt
L2_KEY=$(key_of "$RIG_DIR/lib/mmdebstrap.sh" "$L2_LIST")
L2_TREE=$CACHE/l2-$L2_KEY/tree

tree_l2_unlocked() {
    [ -d "$L2_TREE" ] || tree_make "$L2_TREE" trixie "$L2_LIST" "$CACHE/log/tree-l2.log"
}

tree_l2() { [ -d "$L2_TREE" ] || with_lock "$CACHE/lock/l2" tree_l2_unlocked; }
