# SPDX-License-Identifier: MIT
# bash completion for vgpuctl(1): commands from its own help, GPUs and vGPUs from its lists.

# The first column of a list, without its head.
_vgpuctl_names() { vgpuctl "$@" 2>/dev/null | awk 'NR > 1 { print $1 }'; }

# The commands' words at a place: what stands after $1 in vgpuctl's help.
_vgpuctl_words() {
    vgpuctl --help 2>/dev/null |
        awk -v before="$1" '/^Commands:/ { on = 1; next } /^$/ { on = 0 }
            on && before == "" { print $1 }
            on && before != "" && $1 == before && $2 ~ /^[a-z]+$/ && /^  [a-z]+ [a-z]+ / { print $2 }' |
        sort -u
}

# The options of a command, from its own help.
_vgpuctl_options() {
    vgpuctl "$@" --help 2>/dev/null | grep -oE -- '(^| )--?[a-z][a-z-]*' | sort -u
}

_vgpuctl() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} word words=()

    case $previous in
    --display) mapfile -t COMPREPLY < <(compgen -W 'off on' -- "$current"); return ;;
    -o | --output) mapfile -t COMPREPLY < <(compgen -W 'table json' -- "$current"); return ;;
    esac
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case $word in
        -* | table | json) ;;
        *) words+=("$word") ;;
        esac
    done
    if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_vgpuctl_options "${words[@]:0:2}")" -- "$current")
        return
    fi
    case ${words[*]} in
    'gpu show' | 'gpu clear' | 'gpu mode' | 'gpu drain' | 'gpu resume' | 'gpu users') word=$(_vgpuctl_names gpu list) ;;
    'gpu mode '*) if ((${#words[@]} == 3)); then word='host passthrough partitioned shared'; else word=; fi ;;
    'vgpu show' | 'vgpu set' | 'vgpu remove') word=$(_vgpuctl_names vgpu list) ;;
    'slice show' | 'slice set' | 'slice remove') word=$(_vgpuctl_names slice list) ;;
    'vgpu create' | 'slice create') word=$(vgpuctl type list 2>/dev/null | awk 'NR > 1 { print $2 }' | sort -u) ;;
    'domain prepare' | attach | detach) word=$(virsh -q list --all --name 2>/dev/null | sort) ;;
    'detach '*) if ((${#words[@]} == 2)); then word=$(_vgpuctl_names vgpu list); else word=; fi ;;
    'tenant set' | 'tenant remove') word=$(_vgpuctl_names tenant list) ;;
    *) if ((${#words[@]} < 2)); then word=$(_vgpuctl_words "${words[0]}"); else word=; fi ;;
    esac
    # Addresses have colons, which bash takes for the ends of words.
    mapfile -t COMPREPLY < <(compgen -W "$word" -- "$current")
    declare -F __ltrim_colon_completions >/dev/null && __ltrim_colon_completions "$current"
}

complete -F _vgpuctl vgpuctl
