# shellcheck shell=bash
# SPDX-License-Identifier: MIT

usage() {
    cat <<'EOF'
rig [--name NAME] VERB …

  build [--kernel K] [--] CMD…     run CMD natively in L1's Debian tree, in the checkout (/src)
EOF
}
