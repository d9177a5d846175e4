# SPDX-License-Identifier: MIT
# TAP from bash: step NAME COMMAND...; a command that fails makes a red point, with the last of what it said.
number=0

step() {
    local name=$1 output
    shift
    number=$((number + 1))
    if output=$("$@" 2>&1); then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        printf '%s\n' "$output" | tail -n 40 | sed 's/^/# /'
    fi
}
