# shellcheck shell=bash
# SPDX-License-Identifier: MIT

# rig status: every rig of this cache, with its guests; saved states; the size of the cache.
verb_status() {
    local dir label
    case ${1:-} in
    '') ;;
    --json) status_json; return ;;
    *) die_usage "status: unknown option $1" ;;
    esac
    for dir in "$CACHE"/run/*/; do
        [ -d "$dir" ] || continue
        RIG_NAME=$(basename "$dir")
        status_of
    done
    for dir in "$CACHE"/state/*/; do
        [ -e "$dir/key" ] || continue
        label=$(basename "$dir")
        printf 'saved %s: kernel %s\n' "$label" "$(sed -n 's/^UP_KERNEL=//p' "$dir/options" | tr -d \")"
    done
    printf 'cache: %s, %s\n' "$CACHE" "$(du -sh "$CACHE" 2>/dev/null | cut -f1)"
}

status_of() {
    local guest pid port
    run_dir
    pid=$(l1_alive && alive_pid "$RUN/pid") || pid=''
    port=$(cat "$RUN/port" 2>/dev/null) || port=''
    if [ -z "$pid" ] || [ -z "$port" ]; then
        printf 'rig %s: dead%s; rig logs DIR keeps its logs\n' "$RIG_NAME" "$(last_words | sed 's/^/: /')"
        return
    fi
    status_options
    printf 'rig %s: up, pid %s, ssh port %s, kernel=%s (%s) gpu=%s gpus=%s init=%s memory=%s accel=%s\n' "$RIG_NAME" \
        "$pid" "$port" "$(cat "$RUN/release" 2>/dev/null)" \
        "$UP_KERNEL" "$UP_GPU" "$UP_GPUS" "$UP_INIT" "$UP_MEMORY" "$UP_ACCEL"
    for guest in "$RUN"/guests/l2-*/; do
        [ -s "$guest/address" ] || continue
        printf '    guest %s: %s\n' "$(basename "$guest" | sed 's/^l2-//')" "$(cat "$guest/address")"
    done
}

# A rig that ended while it was made may have none yet.
status_options() {
    UP_KERNEL='' UP_GPU='' UP_GPUS=0 UP_INIT='' UP_MEMORY='' UP_CPUS=0 UP_ACCEL='' UP_ACCEL_WHY='' UP_IMAGES=''
    # shellcheck source=/dev/null
    [ ! -s "$RUN/options" ] || . "$RUN/options"
}

# rig status --json: {"cache", "rigs": {NAME: {…}}, "saved": {LABEL: {…}}}.
status_json() {
    local dir comma=''
    printf '{"cache":%s,"rigs":{' "$(json "$CACHE")"
    for dir in "$CACHE"/run/*/; do
        [ -d "$dir" ] || continue
        RIG_NAME=$(basename "$dir")
        printf '%s%s:' "$comma" "$(json "$RIG_NAME")"
        json_rig
        comma=,
    done
    printf '},"saved":{'
    comma=''
    for dir in "$CACHE"/state/*/; do
        [ -e "$dir/key" ] || continue
        printf '%s%s:{"kernel":%s}' "$comma" "$(json "$(basename "$dir")")" \
            "$(json "$(sed -n 's/^UP_KERNEL=//p' "$dir/options" | tr -d \")")"
        comma=,
    done
    printf '}}\n'
}

json_rig() {
    local state=dead guest comma='' pid port
    run_dir
    # Asked once: the rig may be taken down meanwhile.
    pid=$(l1_alive && alive_pid "$RUN/pid") || pid=''
    port=$(cat "$RUN/port" 2>/dev/null) || port=''
    [ -z "$pid" ] || [ -z "$port" ] || state=up
    status_options
    printf '{"state":"%s","kernel":%s,"release":%s,"gpu":%s,"gpus":%s,"init":%s,"memory":%s,"cpus":%s' \
        "$state" "$(json "$UP_KERNEL")" "$(json "$(cat "$RUN/release" 2>/dev/null)")" "$(json "$UP_GPU")" \
        "$UP_GPUS" "$(json "$UP_INIT")" "$(json "$UP_MEMORY")" "$UP_CPUS"
    printf ',"accel":%s,"accel_why":%s,"images":[%s]' "$(json "$UP_ACCEL")" "$(json "$UP_ACCEL_WHY")" \
        "$(for image in trixie $UP_IMAGES; do json "$image"; done | sed 's/""/","/g')"
    if [ $state = up ]; then
        printf ',"pid":%s,"port":%s' "$pid" "$port"
    else
        printf ',"said":%s' "$(json "$(last_words)")"
    fi
    printf ',"guests":{'
    for guest in "$RUN"/guests/l2-*/; do
        [ -s "$guest/address" ] || continue
        printf '%s%s:{"address":%s}' "$comma" "$(json "$(basename "$guest" | sed 's/^l2-//')")" \
            "$(json "$(cat "$guest/address")")"
        comma=,
    done
    printf '}}'
}

# json TEXT: a string; what JSON has no plain character for is left out.
json() {
    local text
    text=$(printf '%s' "$1" | tr -d '\000-\037')
    text=${text//\\/\\\\}
    printf '"%s"' "${text//\"/\\\"}"
}

# rig monitor LINE: what L1's QEMU answers, also when L1 no longer does.
verb_monitor() {
    [ $# = 1 ] || die_usage "monitor: LINE"
    need_l1
    in_tree_with_lib python3 /rig-lib/qmp.py "$RUN/qmp" monitor "$1"
}
