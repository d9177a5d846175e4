# SPDX-License-Identifier: MIT
# Measurements of the GPU host alone: the cost of idle vGPUs, how many fit, and two guests at once.
package Bench::Host;

use strict;
use warnings;

use Bench::Place;
use Bench::Round;
use Bench::Stats;
use VGPU::Command;
use VGPU::Lab;

my $gpu = '0000:02:00.0';
my $many = 'virtio-pci-bench-many';

# A type of which 64 fit.
sub add_type {
    VGPU::Lab::host(<<'SH', timeout => 90);
mkdir -p /etc/vgpu/types.d
cat >/etc/vgpu/types.d/90-bench.conf <<'END'
[type bench-many]
description=64 of these at once
vram=8M
window=256M
END
systemctl reload vgpu-registrar
timeout 30 sh -c 'until [ -e /sys/class/mdev_bus/0000:02:00.0/mdev_supported_types/virtio-pci-bench-many ]; do sleep 0.1; done'
SH
    return;
}

# Creates vGPUs $from to $to by sysfs. With engines: how many ms each took until its engine was ready.
sub create {
    my ($from, $to, $engines) = @_;
    my $text = VGPU::Lab::host(<<"SH", timeout => 900);
timeout 60 sh -c 'until [ -e /sys/class/mdev_bus/$gpu/mdev_supported_types/$many/create ]; do sleep 0.1; done' || exit 1
for n in \$(seq $from $to); do
    uuid=\$(printf 'bec0ffee-0000-4000-8000-%012d' \$n)
    begin=\$(date +%s%N)
    echo \$uuid >/sys/class/mdev_bus/$gpu/mdev_supported_types/$many/create || exit 1
    if [ $engines = 1 ]; then
        timeout 60 sh -c "until grep -q engine=ready /sys/bus/mdev/devices/\$uuid/vgpu/state; do sleep 0.02; done" || exit 1
        echo took \$((\$(date +%s%N) - begin))
    fi
done
SH
    return map { $_ / 1e6 } $text =~ /^took (\d+)/mg;
}

sub remove {
    my ($from, $to) = @_;
    VGPU::Lab::host(<<"SH", timeout => 300, fail => 1);
for n in \$(seq $from $to); do
    echo 1 >/sys/bus/mdev/devices/\$(printf 'bec0ffee-0000-4000-8000-%012d' \$n)/remove
done
SH
    return;
}

# Kernel memory in KiB, all kinds that grow with a device: slabs, vmalloc, stacks, page tables, percpu.
sub kernel_memory {
    my $text = VGPU::Lab::host('sync; echo 2 >/proc/sys/vm/drop_caches; sleep 1; cat /proc/meminfo');
    my $sum = 0;
    $sum += $text =~ /^$_:\s+(\d+) kB/m ? $1 : 0 for qw(SUnreclaim VmallocUsed KernelStack PageTables Percpu);
    return $sum;
}

# Of a vGPU without its engine, so that processes do not count; the mean of 32.
sub idle_kernel {
    VGPU::Lab::host('systemctl mask --runtime vgpu-engine@.service');
    create(1, 2, 0);
    my $before = kernel_memory();
    create(3, 34, 0);
    my $each = (kernel_memory() - $before) / 32;
    remove(1, 34);
    VGPU::Lab::host('systemctl unmask --runtime vgpu-engine@.service');
    return $each;
}

# Memory that only this engine and its workers have, PSS, and how often they woke up in a minute.
sub idle_engine {
    my ($uuid) = @_;
    my $text = VGPU::Lab::host(<<"SH", timeout => 120);
group=/sys/fs/cgroup\$(systemctl show -P ControlGroup vgpu-engine\@$uuid)
switches() {
    for pid in \$(cat \$group/cgroup.procs); do cat /proc/\$pid/task/*/status; done |
        awk '/ctxt_switches/ { sum += \$2 } END { print "switches", sum }'
}
for pid in \$(cat \$group/cgroup.procs); do cat /proc/\$pid/smaps_rollup; done |
    awk '/^Private/ { private += \$2 } /^Pss:/ { pss += \$2 } END { print "memory", private, pss }'
switches; sleep 60; switches
SH
    my ($private, $pss) = $text =~ /^memory (\d+) (\d+)/m or die "no figures of the engine in:\n$text";
    my ($first, $last) = $text =~ /^switches (\d+)/mg;
    return { 'idle-private' => $private / 1024, 'idle-pss' => $pss / 1024, 'idle-wakeups' => ($last - $first) / 60 };
}

# The start of vGPU $number, beside what there is: ms, 20 times.
sub starts {
    my ($number) = @_;
    my $unit = sprintf 'vgpu-engine@bec0ffee-0000-4000-8000-%012d', $number;
    my @took;
    for (1 .. 20) {
        push @took, create($number, $number, 1);
        remove($number, $number);
        VGPU::Lab::host("timeout 30 sh -c 'while systemctl -q is-active $unit; do sleep 0.1; done'", timeout => 60);
    }
    return @took;
}

# 64 vGPUs with their engines: each must become ready, and the last takes no longer than one alone.
sub sixty_four {
    my @first = starts(1);
    create(1, 63, 1);
    my @last = starts(64);
    create(64, 64, 1);
    my $usable = VGPU::Lab::host("grep -l engine=ready /sys/bus/mdev/devices/bec0ffee-*/vgpu/state | wc -l");
    my %seen = ('vgpus-64' => 0 + $usable, 'vgpus-64-start' => Bench::Stats::median(@last) / Bench::Stats::median(@first));
    remove(1, 64);
    return \%seen;
}

# The heavy kernel in one guest, then in two at once: the sum compared with the one.
sub two_guests {
    my @places = map { Bench::Place->new('ours', $_)->open } 1, 2;
    my $speed = sub {
        my @jobs = map { $_->start('vk-bench --device-name Venus --repeat 6 heavy') } @_;
        my $sum = 0;
        for my $job (@jobs) {
            my ($samples) = $job->wait(180) =~ /"samples":\[([\d.,e+-]+)\]/ or die "no samples of heavy\n";
            my @all = split /,/, $samples;
            $sum += Bench::Stats::median(@all);
        }
        return $sum;
    };
    my @shares;
    for (1 .. 5) {
        my $one = $speed->($places[$_ % 2]);
        push @shares, $speed->(@places) / $one;
    }
    $_->close for @places;
    return @shares;
}

1;
