#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh SECONDS PROGRAM…: each libFuzzer program for so long, as a TAP test of its own. It starts from
# the inputs in corpus/<program>/ and keeps what it finds beside the program, out of the sources.
set -u
seconds=$1
shift
here=$(dirname "$0")

echo "1..$#"
failed=0
n=0
for program in "$@"; do
    n=$((n + 1))
    name=$(basename "$program")
    found=$program.found
    mkdir -p "$found"
    if "$program" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$program." "$found" "$here/corpus/$name" \
        >"$program.log" 2>&1; then
        echo "ok $n - $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$program.log") inputs"
    else
        failed=1
        echo "not ok $n - $name"
        tail -n 40 "$program.log" | sed 's/^/# /'
    fi
done
exit $failed
