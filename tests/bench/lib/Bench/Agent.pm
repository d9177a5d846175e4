# SPDX-License-Identifier: MIT
# Measurements of vgpud and vgpu-meter: GPUs without hardware, vGPUs without engines (which are not part of the agent), and the
# agent's own time, by its cgroup.
package Bench::Agent;

use strict;
use warnings;

use Bench::Stats;
use VGPU::Lab;

my $cgroup = '/sys/fs/cgroup/system.slice/vgpud.service';

# GPUs of 64 GiB by gpus.conf, each divided into 64.
sub make_gpus {
    my ($count) = @_;
    VGPU::Lab::host(<<"SH", timeout => 300);
set -e
mkdir -p /etc/vgpu/types.d /etc/udev/rules.d
ln -sf /dev/null /etc/udev/rules.d/60-vgpu.rules
udevadm control --reload
printf '[type tiny]\\nvram=1/64\\ncompute=1\\n' >/etc/vgpu/types.d/90-bench.conf
for n in \$(seq -w $count); do printf '[gpu soft:g%s]\\nmode=shared\\nvram=64G\\n' \$n; done >/etc/vgpu/gpus.conf
modprobe mdev_vgpu
systemctl enable --now vgpu-registrar vgpud
vgpuctl reload
vgpuctl gpu list | grep -c shared
SH
    return;
}

# CPU time in ms: of all in vgpud's cgroup, of vgpud itself, and of the meter.
sub cpu {
    my $text = VGPU::Lab::host("sed -n 's/usage_usec //p' $cgroup/cpu.stat; for name in vgpud vgpu-meter; do "
        . "cut -d ' ' -f 1 /proc/\$(systemctl show -P MainPID \$name)/schedstat; done");
    my ($all, $vgpud, $meter) = split /\s+/, $text;
    return { all => $all / 1000, vgpud => $vgpud / 1e6, meter => $meter / 1e6 };
}

# Makes this many vGPUs one by one: the CPU time of each.
sub create {
    my ($count) = @_;
    my @took;
    for (1 .. $count) {
        my $before = cpu();
        VGPU::Lab::host('vgpuctl vgpu create tiny', timeout => 120);
        my $after = cpu();
        push @took, { map { $_ => $after->{$_} - $before->{$_} } keys %$after };
    }
    return @took;
}

sub create_many {
    my ($count) = @_;
    while ($count > 0) {
        my $now = $count < 62 ? $count : 62;
        VGPU::Lab::host("vgpuctl vgpu create tiny -n $now", timeout => 900);
        $count -= $now;
    }
    return;
}

sub growth {
    my ($of, $first, $last) = @_;
    my ($early, $late) = map { Bench::Stats::summary(map { $_->{$of} } @$_)->{median} } $first, $last;
    return $late / $early;
}

# Lists on this machine's own processor, without L1: seconds.
sub native_lists {
    my ($vgpus) = @_;
    my %took;
    my $text = VGPU::Command::run(['tests/rig/rig', 'build', '--', 'sh', '-c',
        "make -s host-agent && tests/bench/agent-list --vgpus $vgpus"], timeout => 900);
    $took{$1} = [split ' ', $2] while $text =~ /^((?:list|shortest|wide|scraped|year)(?:-busy)?) ([\d. ]+)$/mg;
    return %took;
}

# Seconds of a command of vgpuctl in L1.
sub list_in_l1 {
    my ($command) = @_;
    my $text = VGPU::Lab::host("t0=\$(date +%s%N); vgpuctl $command | wc -l >&2; echo \$(( \$(date +%s%N) - t0 ))", timeout => 120);
    my ($ns) = $text =~ /^(\d{6,})$/m;
    return $ns / 1e9;
}

# A list and a scrape: seconds, and CPU time in ms.
sub questions {
    my $shortest = list_in_l1('type list');
    my $before = cpu();
    my $list = list_in_l1('vgpu list');
    my $between = cpu();
    # As Prometheus does: by a program that already runs, and has asked before. An answer is kept for a second.
    my $scrape = VGPU::Lab::host(<<'SH', timeout => 120);
python3 -c 'import time, urllib.request
for _ in range(2):
    time.sleep(1.5)
    t = time.monotonic()
    urllib.request.urlopen("http://127.0.0.1:9835/metrics").read()
print(time.monotonic() - t)'
SH
    my $after = cpu();
    my ($seconds) = $scrape =~ /([\d.e-]+)/;
    return ('list-emulated' => $list, 'shortest-emulated' => $shortest, scrape => $seconds,
        'list-cpu' => $between->{vgpud} - $before->{vgpud}, 'scrape-cpu' => ($after->{meter} - $between->{meter}) / 2);
}

# From its start to the name on the bus, which it takes when everything is there.
sub reconcile {
    my $text = VGPU::Lab::host('systemctl stop vgpud; t0=$(date +%s%N); systemctl start vgpud; echo $(( $(date +%s%N) - t0 ))', timeout => 120);
    my ($ns) = $text =~ /^(\d{6,})$/m;
    return $ns / 1e9;
}

sub idle {
    my ($seconds) = @_;
    my $text = VGPU::Lab::host(<<"SH", timeout => $seconds + 300);
sleep 150
pids="\$(systemctl show -P MainPID vgpud) \$(systemctl show -P MainPID vgpu-meter)"
now() {
    for pid in \$pids; do
        awk '{print \$1}' /proc/\$pid/schedstat; awk '/ctxt_switches/ {n += \$2} END {print n}' /proc/\$pid/task/*/status
    done
}
now; sleep $seconds; now
for pid in \$pids; do awk '/^VmRSS/ {print \$2}' /proc/\$pid/status; done
SH
    my @now = split /\s+/, $text;
    return map { my ($of, $at) = @$_; (
        "${of}idle-cpu" => ($now[$at + 4] - $now[$at]) / 1e6 / $seconds,
        "${of}idle-wakeups" => ($now[$at + 5] - $now[$at + 1]) / $seconds,
        "${of}rss" => $now[8 + $at / 2] / 1024,
    ) } (['', 0], ['meter-', 2]);
}

1;
