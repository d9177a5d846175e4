#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run.sh PROGRAM: a libFuzzer program as a TAP test. It is given the inputs of corpus/NAME.tar.gz and then as many as the table
# has for it, from one seed: the same ones each time, however fast the machine is.
# With FUZZ_SECONDS it runs for so long instead, from a seed of its own, and keeps what it finds in PROGRAM.found/.
set -u

program=$1
name=$(basename "$program")
corpus=$("$(dirname "$0")/inputs" unpack "$name") || { echo 1..1; echo "not ok 1 - $name has no inputs that are kept"; exit 1; }

# Inputs that take 5 to 8 s on a slow machine.
case $name in
agent-domain) runs=100000 ;;
agent-files) runs=30000 ;;
agent-requests) runs=500000 ;;
cuda-calls) runs=20000 ;;
cuda-ranges) runs=60000 ;;
edid) runs=60000 ;;
engine-commands) runs=140000 ;;
engine-cuda) runs=3000 ;;
engine-state) runs=60000 ;;
fleet-node) runs=200000 ;;
fleet-request) runs=120000 ;;
governor-messages) runs=10000 ;;
guard-vtest) runs=60000 ;;
kube-claim) runs=60000 ;;
kube-frames) runs=60000 ;;
kube-messages) runs=800000 ;;
migration-data) runs=400000 ;;
pci) runs=400000 ;;
queue) runs=350000 ;;
regs) runs=300000 ;;
uapi) runs=400000 ;;
*) echo 1..1; echo "not ok 1 - run.sh does not know how many inputs $name gets"; exit 1 ;;
esac

if [ -n "${FUZZ_SECONDS:-}" ]; then
    found=$program.found
    mkdir -p "$found"
    runs=1
    set -- -max_total_time="$FUZZ_SECONDS"
else
    found=$(mktemp -d)
    trap 'rm -rf "$found"' EXIT
    set -- -seed=1 -runs="$runs"
fi

# stat NAME: what libFuzzer counted.
stat() { sed -n "s/^stat::$1: *//p" "$program.log"; }

echo 1..1
"$program" "$@" -max_len=4096 -timeout=120 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$program." "$found" "$corpus" >"$program.log" 2>&1
status=$?
kept=$(find "$corpus" -type f | wc -l)
done=$(stat number_of_executed_units)
if [ $status = 0 ] && [ "$kept" -gt 0 ] && [ "${done:-0}" -ge "$runs" ]; then
    echo "ok 1 - $name: $done inputs, $kept of them kept ones"
    exit 0
fi
echo "not ok 1 - $name: exit status $status, ${done:-no} inputs of $runs, $kept kept ones"
tail -n 40 "$program.log" | sed 's/^/# /'
exit 1
