# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# A rig that runs: its directory, whether it is alive, and commands in its L1 over ssh.

run_dir() { RUN=$CACHE/run/$RIG_NAME; }

# alive_pid FILE: the process in a pid file, where it still is the one that wrote it.
alive_pid() {
    local pid start
    [ -s "$1" ] || return 1
    read -r pid start <"$1"
    [ "$(process_start "$pid")" = "$start" ] && echo "$pid"
}

# The start time in the kernel's clock ticks tells a process from a later one with its number.
process_start() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

# A QEMU that ended closes its socket at once, and frees L1's memory for a second after that.
l1_alive() {
    run_dir
    alive_pid "$RUN/pid" >/dev/null && { [ ! -e "$RUN/connected" ] || [ -S "$RUN/qmp" ]; }
}

# A rig that runs has the tree that it was started with, whatever the mirror has by now.
need_l1() {
    l1_alive || fail "L1" "the rig '$RIG_NAME' is not up: rig up" \
        "$([ ! -s "$RUN/console.log" ] || echo "$RUN/console.log")"
    run_tree
}

run_tree() { L1_TREE=$(cat "$RUN/tree"); }

key_once() {
    [ -s "$CACHE/ssh/key" ] && return
    outer_packages ssh:openssh-client
    mkdir -p "$CACHE/ssh"
    rm -f "$CACHE/ssh/key.part" "$CACHE/ssh/key.part.pub"
    ssh-keygen -q -t ed25519 -N '' -C rig -f "$CACHE/ssh/key.part"
    mv "$CACHE/ssh/key.part.pub" "$CACHE/ssh/key.pub"
    mv "$CACHE/ssh/key.part" "$CACHE/ssh/key"
}

# ssh_config: what every connection of this rig uses. The host key is not checked: the port is a
# loopback port of our own QEMU.
ssh_config() {
    cat <<EOF
Host l1
    HostName 127.0.0.1
    Port $(cat "$RUN/port")
    ConnectTimeout 60
    ControlMaster auto
    ControlPath $RUN/ssh-%n
    ControlPersist yes
Host l2-*
    ProxyCommand ssh -F $RUN/ssh_config -W "\$(cat $RUN/guests/%n/address):22" l1
    ControlMaster auto
    ControlPath $RUN/ssh-%n
    ControlPersist yes
    ConnectTimeout 120
Host *
    User root
    IdentityFile $CACHE/ssh/key
    IdentitiesOnly yes
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
    GSSAPIAuthentication no
    KexAlgorithms curve25519-sha256
    ServerAliveInterval 0
EOF
}

# With L1_SSH_LIMIT set, ssh itself is ended after so many seconds.
L1_SSH_LIMIT=
l1_ssh() {
    if [ -n "$L1_SSH_LIMIT" ]; then
        timeout --foreground -k 2 "$L1_SSH_LIMIT" ssh -F "$RUN/ssh_config" "$@"
    else
        ssh -F "$RUN/ssh_config" "$@"
    fi
}

# rig ssh-command [GUEST]: what a program runs itself, with one quoted remote command appended.
verb_ssh_command() {
    local host=l1
    [ $# -le 1 ] || die_usage "ssh-command: [GUEST]"
    need_l1
    if [ $# = 1 ]; then
        need_guest "$1"
        host=l2-$1
    fi
    printf '%s\n' "$(quote ssh -F "$RUN/ssh_config" "$host")"
}

verb_run() {
    run_options run "$@"
    set -- "${RUN_WORDS[@]}"
    need_l1
    remote_limited l1 "$@"
}

# run_options VERB [--timeout S] [--] CMD…: sets RUN_LIMIT and RUN_WORDS.
run_options() {
    local verb=$1
    shift
    RUN_LIMIT=
    if [ "${1:-}" = --timeout ]; then
        need_value "$@"
        [[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || die_usage "$verb: --timeout takes seconds"
        RUN_LIMIT=$2
        shift 2
    fi
    [ "${1:-}" != -- ] || shift
    [ $# -gt 0 ] || die_usage "$verb: no command"
    RUN_WORDS=("$@")
}

# remote_limited HOST CMD…: within RUN_LIMIT seconds, else 124 as timeout(1) has it. The command is
# ended where it runs. A machine that no longer answers does not do that, so ssh has a limit too.
remote_limited() {
    local host=$1 rc=0
    shift
    [ -n "$RUN_LIMIT" ] || { remote_run "$host" "$@"; return; }
    L1_SSH_LIMIT=$((RUN_LIMIT + 10))
    remote_run "$host" timeout -k 5 "$RUN_LIMIT" "$@" || rc=$?
    L1_SSH_LIMIT=
    # A program that ignores SIGTERM is killed.
    [ $rc != 137 ] || [ $((SECONDS)) -lt "$RUN_LIMIT" ] || rc=124
    [ $rc != 124 ] || say "not done after $RUN_LIMIT s: $(quote "$@")"
    return $rc
}

# remote_run HOST CMD…: the words reach the command as they are; its status comes back. ssh's own
# 255 is told from the command's by asking whether the connection still stands.
remote_run() {
    local host=$1 rc=0
    shift
    l1_ssh "$host" "$(quote "$@")" || rc=$?
    if [ $rc = 255 ] && ! l1_ssh -O check "$host" 2>/dev/null; then
        connection_broke "$host"
    fi
    return $rc
}

connection_broke() {
    local words
    words=$(last_words)
    [ -z "$words" ] || fail "L1" "its kernel died: $words" "$RUN/console.log"
    l1_alive || fail "L1" "it has ended" "$RUN/console.log"
    fail "$1 network" "the connection to $1 broke" "$RUN/console.log"
}

verb_put() {
    [ $# -ge 2 ] || die_usage "put: FILE… PLACE"
    need_l1
    copy_put l1 "$@"
}

verb_get() {
    [ $# -ge 2 ] || die_usage "get: FILE… PLACE"
    need_l1
    copy_get l1 "$@"
}

copy_put() {
    local host=$1 last=${!#}
    shift
    scp -q -r -p -F "$RUN/ssh_config" "${@:1:$#-1}" "$host:$last"
}

copy_get() {
    local host=$1 last=${!#} file from=()
    shift
    for file in "${@:1:$#-1}"; do from+=("$host:$file"); done
    scp -q -r -p -F "$RUN/ssh_config" "${from[@]}" "$last"
}

verb_shell() {
    need_l1
    exec ssh -t -F "$RUN/ssh_config" l1
}

verb_log() {
    run_dir
    [ -s "$RUN/console.log" ] || fail "L1" "no console log of '$RIG_NAME'"
    cat "$RUN/console.log"
}

verb_path() {
    run_dir
    case ${1:-run} in
    run) echo "$RUN" ;;
    tree) tree_l1 && echo "$L1_TREE" ;;
    kernel) kernel_root "${2:-trixie}" && echo "$KERNEL_ROOT" ;;
    cache) echo "$CACHE" ;;
    *) die_usage "path: run, tree, kernel [K] or cache" ;;
    esac
}
