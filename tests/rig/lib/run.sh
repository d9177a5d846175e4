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

l1_alive() {
    run_dir
    alive_pid "$RUN/pid" >/dev/null
}

need_l1() {
    l1_alive || fail "L1" "the rig '$RIG_NAME' is not up: rig up" \
        "$([ ! -s "$RUN/console.log" ] || echo "$RUN/console.log")"
}

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

l1_ssh() { ssh -F "$RUN/ssh_config" "$@"; }

verb_run() {
    [ "${1:-}" != -- ] || shift
    [ $# -gt 0 ] || die_usage "run: no command"
    need_l1
    remote_run l1 "$@"
}

# remote_run HOST CMD…: the words reach the command as they are; its status comes back. ssh's own
# 255 is told from the command's by asking whether the connection still stands.
remote_run() {
    local host=$1 rc=0
    shift
    l1_ssh "$host" "$(quote "$@")" || rc=$?
    if [ $rc = 255 ] && ! l1_ssh -O check "$host" 2>/dev/null; then
        fail "$host network" "the connection to $host broke" "$RUN/console.log"
    fi
    return $rc
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
    kernel) kernel_root "${2:-6.12}" && echo "$KERNEL_ROOT" ;;
    cache) echo "$CACHE" ;;
    *) die_usage "path: run, tree, kernel [K] or cache" ;;
    esac
}
