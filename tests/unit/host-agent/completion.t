#!/bin/bash
# SPDX-License-Identifier: MIT
# What bash offers for a vgpuctl command line. A stand-in for vgpud's answers is enough; the commands are those of
# the real vgpuctl's help.
here=$(cd "$(dirname "$0")/../../.." && pwd)
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
cat >"$bin/vgpuctl" <<SH
#!/bin/sh
case "\$*" in
'gpu list') printf 'GPU  MODE\n0000:01:00.0  shared\n0000:02:00.0  host\n' ;;
'vgpu list') printf 'VGPU  GPU\naaaa  0000:01:00.0\n' ;;
*) exec $here/build/host-agent/vgpuctl "\$@" ;;
esac
SH
chmod +x "$bin/vgpuctl"
PATH=$bin:$PATH
. "$here/host-agent/vgpuctl/vgpuctl.bash"

count=0
failed=0
# offers EXPECTED WORD…: what is offered for the last word
offers() {
    local expected=$1 got
    shift
    COMP_WORDS=(vgpuctl "$@")
    COMP_CWORD=$#
    COMPREPLY=()
    _vgpuctl
    got="${COMPREPLY[*]}"
    count=$((count + 1))
    if [ "$got" = "$expected" ]; then
        echo "ok $count - vgpuctl $*"
    else
        echo "not ok $count - vgpuctl $*"
        echo "# got '$got', expected '$expected'"
        failed=1
    fi
}

offers 'doctor events gpu topo type vgpu' ''
offers 'vgpu' v
offers 'list show' gpu ''
offers 'show' vgpu s
offers 'topo type' t
offers '0000:01:00.0 0000:02:00.0' gpu show ''
offers 'aaaa' vgpu show a
offers 'list show' -o json gpu ''
offers 'table json' -o ''
offers '--output' --o
offers '' topo ''
offers '' gpu show 0000:01:00.0 ''
echo "1..$count"
exit $failed
