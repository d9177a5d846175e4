# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# What can be known about a rig from outside: whether it has the known fault, and its logs.

# rig fault: status 0 and a sentence if a processor of L1 provably gets no interrupts of a class.
verb_fault() {
    if [ "${1:-}" = --recorded ]; then
        [ $# = 3 ] || die_usage "fault: --recorded FIRST SECOND"
        tree_l1
        in_tree_with_lib python3 /rig-lib/fault.py recorded /dev/stdin /dev/fd/9 <"$2" 9<"$3"
        return
    fi
    [ $# = 0 ] || die_usage "fault: unknown option $1"
    l1_alive || { say "the rig '$RIG_NAME' is not up"; return 1; }
    run_tree
    fault_now
}

# A QEMU that is being ended may never answer its monitor.
fault_now() { timeout -k 2 20 bash -c "$(in_tree_words python3 /rig-lib/fault.py live "$RUN/qmp")"; }

# rig logs DIR: all that tells what happened, also of a rig that is dead.
verb_logs() {
    [ $# = 1 ] || die_usage "logs: DIR"
    run_dir
    [ -d "$RUN" ] || fail "L1" "there is no rig '$RIG_NAME', neither up nor dead"
    mkdir -p "$1" || fail "outer machine" "cannot make $1"
    logs_to "$1"
}

logs_to() {
    local dir=$1 file
    for file in console.log qemu.log qemu.args options ssh.log reboot.log; do
        [ ! -s "$RUN/$file" ] || cp "$RUN/$file" "$dir/"
    done
    l1_alive || { echo "the rig '$RIG_NAME' is dead: $(last_words)" >"$dir/state"; return 0; }
    run_tree
    echo "the rig '$RIG_NAME' is up" >"$dir/state"
    logs_of_monitor "$dir"
    logs_of_qemu "$dir"
    logs_of_l1 "$dir" || l1_is_silent "$dir" >>"$dir/state"
}

# l1_is_silent DIR: whose fault it may be that L1 does not answer.
l1_is_silent() {
    echo "L1 did not answer: no dmesg, no guests' consoles"
    if grep -q '^CPU#' "$1/monitor-1"; then
        in_tree_with_lib python3 /rig-lib/fault.py tell /dev/stdin <"$1/monitor-1"
    else
        echo "QEMU's monitor: $(head -n 1 "$1/monitor-1"); QEMU's main thread:"
        head -n 5 "$1/threads"
    fi
    tail -n 3 "$1/console.log" 2>/dev/null | tr -d '\r' | sed 's/^/its console: /'
}

# What each thread of QEMU waits for: a main thread that waits for a GPU's program stops the whole of L1.
logs_of_qemu() {
    local thread qemu
    qemu=$(pgrep -o -f "^qemu-system-x86_64 -name rig-$RIG_NAME ") || return 0
    for thread in "/proc/$qemu/task"/*; do
        printf '%s: state %s, system call %s\n' "$(cat "$thread/comm")" \
            "$(sed 's/.*) //' "$thread/stat" | cut -c 1)" "$(cat "$thread/syscall")"
        head -n 4 "$thread/stack" | sed 's/^/    /' || true # it may have ended
    done >"$1/threads" 2>/dev/null
}

# Two looks, a second apart, from which `rig fault --recorded` judges later.
logs_of_monitor() {
    local number
    for number in 1 2; do
        timeout -k 2 20 bash -c "$(in_tree_words python3 /rig-lib/fault.py sample "$RUN/qmp")" \
            >"$1/monitor-$number" 2>&1 || break
        sleep 1.2
    done
}

logs_of_l1() {
    local dir=$1 L1_SSH_LIMIT=20
    l1_ssh -o ConnectTimeout=10 l1 dmesg >"$dir/dmesg" 2>"$dir/ssh.log" || return
    # shellcheck disable=SC2016
    l1_ssh l1 'cd / && for f in run/rig/guests/*/*.log var/log/libvirt/qemu/*.log; do
        [ ! -e "$f" ] || echo "$f"; done | tar -cf - -T -' 2>>"$dir/ssh.log" | tar -xf - -C "$dir" 2>/dev/null
}

# last_words: what a kernel that died said last about why.
last_words() {
    { grep -aE 'Kernel panic|BUG:|kernel BUG at|Oops|general protection fault' \
        "$RUN/console.log" 2>/dev/null || true; } | tail -n 1 | tr -d '\r' | sed 's/^\[ *[0-9.]*\] *//'
}
