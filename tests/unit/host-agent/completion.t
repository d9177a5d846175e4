#!/bin/bash
# SPDX-License-Identifier: MIT
# What bash, zsh and fish offer for a vgpuctl command line. The scripts are vgpuctl's own; names come from the files of a
# small host. There is no bus, and virsh would be an error.
here=$(cd "$(dirname "$0")/../../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
root=$dir/root
mkdir -p "$dir/bin" "$root/sys/bus/pci/devices/0000:01:00.0" "$root/sys/bus/pci/devices/0000:02:00.0" \
    "$root/sys/bus/pci/devices/0000:03:00.0" "$root/sys/bus/mdev/devices/aaaa" "$root/etc/mdevctl.d/0000:01:00.0" \
    "$root/sys/class/mdev_bus/a/mdev_supported_types/vgpu-half" "$root/var/run/cdi" "$root/etc/vgpu/tenants.d" \
    "$root/etc/libvirt/qemu"
echo 0x030000 >"$root/sys/bus/pci/devices/0000:01:00.0/class"
echo 0x038000 >"$root/sys/bus/pci/devices/0000:02:00.0/class"
echo 0x020000 >"$root/sys/bus/pci/devices/0000:03:00.0/class"
echo '{}' >"$root/etc/mdevctl.d/0000:01:00.0/bbbb"
echo '{"kind":"mdev-vgpu.org/slice","devices":[{"name":"cccc"},{"name":"web"}]}' >"$root/var/run/cdi/mdev-vgpu.json"
touch "$root/etc/vgpu/tenants.d/red.conf" "$root/etc/libvirt/qemu/blue.xml" "$root/etc/libvirt/qemu/green.xml"
cat >"$dir/bin/vgpuctl" <<SH
#!/bin/sh
exec $here/build/host-agent/vgpuctl --root '$root' "\$@"
SH
printf '#!/bin/sh\ntouch %s/asked\n' "$dir" >"$dir/bin/virsh"
chmod +x "$dir/bin/vgpuctl" "$dir/bin/virsh"
export PATH=$dir/bin:$PATH DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nonexistent HOME=$dir
out=$here/build/host-agent

count=0
failed=0
# is NAME EXPECTED GOT
is() {
    count=$((count + 1))
    if [ "$3" = "$2" ]; then
        echo "ok $count - $1"
    else
        echo "not ok $count - $1"
        echo "# got '$3', expected '$2'"
        failed=1
    fi
}

# shellcheck source=/dev/null
. "$out/vgpuctl.bash"
# in_bash EXPECTED LINE: LINE is what is typed, a blank at its end included.
in_bash() {
    COMP_LINE=$2
    COMP_POINT=${#2}
    COMPREPLY=()
    _vgpuctl
    is "bash: '$2'" "$1" "${COMPREPLY[*]}"
}

in_bash 'gpu slice vgpu owner run cdi domain attach detach type tenant schedule operation config database topo events audit top report reload doctor completion' \
    'vgpuctl '
in_bash 'vgpu' 'vgpuctl v'
in_bash 'list show mode drain resume users clear pool' 'vgpuctl gpu '
in_bash 'show set start stop' 'vgpuctl vgpu s'
in_bash 'list' 'vgpuctl schedule '
in_bash '0000:01:00.0 0000:02:00.0 soft:a' 'vgpuctl gpu mode '
in_bash '01:00.0' 'vgpuctl gpu show 0000:01'
in_bash 'passthrough partitioned' 'vgpuctl gpu mode 0000:01:00.0 p'
in_bash '' 'vgpuctl gpu mode 0000:01:00.0 host '
in_bash '0000:01:00.0 0000:02:00.0 soft:a' 'vgpuctl gpu drain 0000:01:00.0 '
in_bash '--drain --dry-run' 'vgpuctl gpu mode --dr'
in_bash 'aaaa bbbb' 'vgpuctl vgpu remove '
in_bash 'bbbb' 'vgpuctl vgpu remove aaaa b'
in_bash 'aaaa bbbb cccc web' 'vgpuctl slice set '
in_bash 'vgpu-half' 'vgpuctl vgpu create '
in_bash 'blue green' 'vgpuctl attach '
in_bash 'aaaa bbbb' 'vgpuctl detach blue '
in_bash 'red' 'vgpuctl tenant show '
in_bash 'red' 'vgpuctl vgpu list --tenant '
in_bash 'table wide name yaml json' 'vgpuctl -o '
in_bash 'json' 'vgpuctl --output=j'
in_bash 'list show mode drain resume users clear pool' 'vgpuctl -o json gpu '
in_bash 'off' 'vgpuctl vgpu set aaaa --display of'
in_bash 'guaranteed' 'vgpuctl slice create --vram 2G --class g'
in_bash '' 'vgpuctl vgpu set aaaa --weight '
in_bash '' 'vgpuctl topo '
in_bash 'bash zsh fish' 'vgpuctl completion '

# in_fish EXPECTED LINE
in_fish() {
    local got
    got=$(fish -c "source $out/vgpuctl.fish; complete -C '$2'" 2>&1 | cut -f1 | paste -sd' ')
    is "fish: '$2'" "$1" "$got"
}

in_fish 'clear drain list mode pool resume show users' 'vgpuctl gpu '
in_fish 'list' 'vgpuctl schedule '
in_fish '0000:01:00.0 0000:02:00.0 soft:a' 'vgpuctl gpu show '
in_fish 'partitioned passthrough' 'vgpuctl gpu mode 0000:01:00.0 p'
in_fish 'aaaa bbbb' 'vgpuctl -o json vgpu show aaaa '
in_fish '--drain --dry-run' 'vgpuctl gpu mode --dr'
in_fish 'off on' 'vgpuctl vgpu set --display '
in_fish '' 'vgpuctl topo '

# The words that zsh's own completion adds: it runs in a terminal, with what it adds written to a file.
cat >"$dir/offer.zsh" <<'ZSH'
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "source $1/setup.zsh"
zpty -w -n z "$2"$'\t'
while zpty -r z line; do :; done
ZSH
cat >"$dir/setup.zsh" <<ZSH
PROMPT=
autoload -U compinit
compinit -u -D
source $out/vgpuctl.zsh
bindkey '^I' complete-word
zstyle ':completion:*' insert-tab false
# -O, -A and -D: completion asks itself what would match.
compadd() {
    typeset -a hits
    if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "\$@"
        return
    fi
    builtin compadd -A hits "\$@"
    print -l -- \$hits >>$dir/offered
}
leave() { exit }
comppostfuncs=(leave)
ZSH
# in_zsh EXPECTED LINE
in_zsh() {
    : >"$dir/offered"
    timeout 60 zsh -f "$dir/offer.zsh" "$dir" "$2" >/dev/null 2>&1
    is "zsh: '$2'" "$1" "$(sort -u "$dir/offered" | paste -sd' ')"
}

in_zsh 'clear drain list mode pool resume show users' 'vgpuctl gpu '
in_zsh 'list' 'vgpuctl schedule '
in_zsh '0000:01:00.0 0000:02:00.0 soft:a' 'vgpuctl gpu show '
in_zsh 'partitioned passthrough' 'vgpuctl gpu mode 0000:01:00.0 p'
in_zsh 'bbbb' 'vgpuctl vgpu show aaaa b'
in_zsh '--drain --dry-run' 'vgpuctl gpu mode --dr'
in_zsh 'table' 'vgpuctl -o t'

is 'libvirt is not asked' '' "$(ls "$dir/asked" 2>/dev/null)"
echo "1..$count"
exit $failed
