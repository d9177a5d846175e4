#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The shipped units, read by systemd: no unknown setting, no program that is not installed. And the settings that
# vgpud's unit needs so that it is always restarted.
cd "$(dirname "$0")/../../.." || exit 1
units=(engine/systemd/*.service engine/systemd/*.socket governor/arbiter/*.service governor/vault/*.service host-agent/systemd/*.service
    mdev-driver/registrar/*.service fleet/kubernetes/conf/*.service)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
count=0
failed=0

# point RESULT NAME [WHY]
point() {
    count=$((count + 1))
    [ "$1" = 0 ] && echo "ok $count - $2" && return
    failed=1
    echo "not ok $count - $2"
    printf '%s\n' "${3:-}" | sed 's/^/# /'
}

# Programs are replaced by fake ones in a separate folder, which the units name.
mkdir -p "$dir/units"
for program in sbin/vgpud sbin/vgpu-meter sbin/vgpu-kubelet sbin/vgpu-registrar bin/vgpu-engine bin/vgpu-guard bin/vgpu-arbiter bin/vgpu-vault bin/vgpuctl \
    lib/mdev-vgpu/vgpu-engine-user lib/mdev-vgpu/vgpu-device-limits; do
    install -D -m 755 /bin/true "$dir/usr/$program"
done
for unit in "${units[@]}"; do
    sed -E "s,/usr/(s?bin/vgpu|lib/mdev-vgpu/),$dir/usr/\\1,g" "$unit" >"$dir/units/$(basename "$unit")"
done

for unit in "${units[@]}"; do
    name=$(basename "$unit")
    said=$(SYSTEMD_UNIT_PATH="$dir/units:" systemd-analyze verify --man=no --recursive-errors=no "$dir/units/$name" 2>&1)
    status=$?
    [ -z "$said" ] || status=1
    point $status "systemd takes $unit as it is" "$said"
done

# TemporaryFileSystem= hides /run from commands with "+", too: a limit would not be found, and systemctl no systemd.
for unit in "${units[@]}"; do
    grep -q '^TemporaryFileSystem=/run:' "$unit" || continue
    said=$(grep -E '^Exec[A-Za-z]+=[-@:|]*\+' "$unit" | grep -vE '^Exec[A-Za-z]+=[-@:|]*\+/usr/bin/nsenter -t 1 -m ')
    [ -z "$said" ]
    point $? "privileged commands of $unit see the host's /run" "$said"
done

# The same check with a fault that it must report.
printf '[Service]\nExecStart=%s/usr/sbin/vgpud\nRestrat=always\n' "$dir" >"$dir/units/wrong.service"
said=$(SYSTEMD_UNIT_PATH="$dir/units:" systemd-analyze verify --man=no --recursive-errors=no "$dir/units/wrong.service" 2>&1)
grep -q Restrat <<<"$said"
point $? 'a setting that systemd does not know is told' "$said"

setting() { sed -n "s/^$1=//p" host-agent/systemd/vgpud.service; }
[ "$(setting StartLimitIntervalSec)" = 0 ]
point $? 'vgpud is started again however often it has died' "StartLimitIntervalSec=$(setting StartLimitIntervalSec)"
[[ $(setting Restart) =~ ^(on-failure|always)$ ]]
point $? 'vgpud is started again after each death' "Restart=$(setting Restart)"
longest=$(setting RestartMaxDelaySec)
[ "${longest:-25}" -lt 25 ]
point $? 'its longest wait is below the 25 s for which a caller on the bus waits' "RestartMaxDelaySec=$longest"

for unit in podman-restart docker containerd libvirtd virtqemud libvirt-guests; do
    setting Before | grep -qw "$unit.service"
    point $? "vgpud is there before $unit" "$(setting Before)"
done
[ "$(setting ConfigurationDirectory)" = mdevctl.d ]
point $? 'vgpud can write definitions, also if mdevctl is installed later'

# Statements of the documents about it.
for capability in $(setting CapabilityBoundingSet); do
    grep -q "$capability" docs/security.md
    point $? "docs/security.md names $capability"
done
patience=$(sed -n 's/^#define AGENT_PATIENCE_MS \([0-9]*\)000$/\1/p' lib/bus.h)
longest_call=$(sed -n 's/^#define CALL_TIMEOUT_MS \([0-9]*\)000$/\1/p' lib/bus.c)
start=$(sed -n 's/^#define AGENT_START_PATIENCE_MS \([0-9]*\)000$/\1/p' lib/bus.h)
[ "$patience" = 2 ] && grep -q "two seconds, or $start seconds if it is being started" qemu-hooks/vgpu-qemu-hook.8 &&
    grep -q "Each call has $longest_call seconds" qemu-hooks/vgpu-qemu-hook.8
point $? 'the manual of the hook says how long it waits' "$patience s, $start s at its start, $longest_call s for a call"
echo "1..$count"
exit $failed
