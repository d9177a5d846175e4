#!/bin/bash
# SPDX-License-Identifier: MIT
# bash's completions of a vgpuctl command line. vgpud's answers are fake; the commands are those of the real vgpuctl's
# help.
here=$(cd "$(dirname "$0")/../../.." && pwd)
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
cat >"$bin/vgpuctl" <<SH
#!/bin/sh
case "\$*" in
'gpu list') printf 'GPU  MODE\n0000:01:00.0  shared\n0000:02:00.0  host\n' ;;
'tenant list') printf 'TENANT  VRAM\nred  1\n' ;;
'vgpu list') printf 'VGPU  GPU\naaaa  0000:01:00.0\n' ;;
'slice list') printf 'SLICE  NAME\ncccc  web\n' ;;
*) exec $here/build/host-agent/vgpuctl "\$@" ;;
esac
SH
printf '#!/bin/sh\nprintf "red\\nblue\\n\\n"\n' >"$bin/virsh"
chmod +x "$bin/vgpuctl" "$bin/virsh"
PATH=$bin:$PATH
. "$here/host-agent/vgpuctl/vgpuctl.bash"

count=0
failed=0
# offers EXPECTED WORD…: the completions of the last word
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

offers 'attach cdi detach doctor domain events gpu reload report run schedule slice tenant top topo type vgpu' ''
offers 'vgpu' v
offers 'clear drain list mode resume show users' gpu ''
offers 'create list remove set show' vgpu ''
offers 'set show' vgpu s
offers 'create list remove set show' slice ''
offers 'cccc' slice remove ''
offers '--door' slice create --do
offers 'generate list' cdi ''
offers '0000:01:00.0 0000:02:00.0' gpu mode ''
offers 'passthrough partitioned' gpu mode 0000:01:00.0 p
offers '--drain --dry-run' gpu mode --dr
offers 'tenant top topo type' t
offers '0000:01:00.0 0000:02:00.0' gpu show ''
offers 'aaaa' vgpu show a
offers 'prepare' domain ''
offers 'blue red' attach ''
offers 'aaaa' detach red ''
offers '--type' attach red --ty
offers 'clear drain list mode resume show users' -o json gpu ''
offers 'table json' -o ''
offers '--gpu' vgpu create --g
offers '--display' vgpu set --di
offers 'off on' vgpu create half --display ''
offers 'red' tenant remove ''
offers '--output' --o
offers '' topo ''
offers '' gpu show 0000:01:00.0 ''
echo "1..$count"
exit $failed
