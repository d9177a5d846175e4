# SPDX-License-Identifier: MIT
# Counts what could be left behind on the GPU host when vGPUs are made and removed.
#
#   my $before = VGPU::Count::take('blue');
#   ...
#   VGPU::Count::compare($before, VGPU::Count::take('blue'), $rounds);    # dies if something was left
package VGPU::Count;

use strict;
use warnings;

use VGPU::Lab;
use VGPU::Outside;

# Name and number, a line each. A name with a unit is a size and may change a little.
my $script = <<'SH';
count() { echo "$1 $(wc -l)"; }
fds() { ls /proc/"$2"/fd 2>/dev/null | count "$1"; }
kib() { echo "$1 $(sed -n "s/^$2:[[:space:]]*\\([0-9]*\\) kB/\\1/p" "$3")"; }
libvirtd=$(systemctl show -P MainPID libvirtd.service)
udevd=$(systemctl show -P MainPID systemd-udevd.service)
qemu=$(cat /run/libvirt/qemu/$vm.pid)
# Its idle workers, each with three files of it, end some seconds after their last event.
udevadm settle
timeout 30 sh -c "while pgrep -P $udevd >/dev/null; do sleep 0.3; done"
sync
echo 3 >/proc/sys/vm/drop_caches
ls /sys/bus/mdev/devices | count mdevs
ls /sys/kernel/iommu_groups | count iommu-groups
ls -A /dev/vgpu 2>/dev/null | count nodes
ls /dev/vfio | count vfio-groups
cat /sys/module/mdev_vgpu/refcnt | sed 's/^/module-references /'
awk '$1 == "nr_foll_pin_acquired" { a = $2 } $1 == "nr_foll_pin_released" { r = $2 } END { print "pinned-pages", a - r }' /proc/vmstat
pgrep -c 'vgpu-engine|virgl_render' | sed 's/^/engine-processes /'
ls -d /run/systemd/system/vgpu-engine@* 2>/dev/null | count unit-drop-ins
systemctl list-units --all --plain --no-legend 'vgpu-*' | count units
systemctl list-units --failed --plain --no-legend | count failed-units
systemctl list-jobs --no-legend | count jobs
find /run/systemd/dynamic-uid -type f 2>/dev/null | count dynamic-users
ls -d /tmp/systemd-private-*vgpu* /var/tmp/systemd-private-*vgpu* 2>/dev/null | count private-directories
grep -c . /proc/self/mounts | sed 's/^/mounts /'
ls /sys/fs/cgroup/system.slice | grep -c vgpu | sed 's/^/control-groups /'
ls /etc/mdevctl.d/* | grep -c . | sed 's/^/definitions /'
sed -n 's/^Total \([0-9]*\) objects, \([0-9]*\) bytes.*/dma-bufs \1\ndma-buf-bytes \2/p' /sys/kernel/debug/dma_buf/bufinfo
fds qemu-files "$qemu"
fds systemd-files 1
fds udevd-files "$udevd"
kib qemu-locked-KiB VmLck /proc/$qemu/status
kib qemu-pinned-KiB VmPin /proc/$qemu/status
kib qemu-private-KiB RssAnon /proc/$qemu/status
kib systemd-private-KiB RssAnon /proc/1/status
kib udevd-private-KiB RssAnon /proc/$udevd/status
kib libvirtd-private-KiB RssAnon /proc/$libvirtd/status
kib slab-unreclaimable-KiB SUnreclaim /proc/meminfo
kib percpu-KiB Percpu /proc/meminfo
kib vmalloc-KiB VmallocUsed /proc/meminfo
SH

sub take {
    my ($vm) = @_;
    my $text = VGPU::Lab::host("vm=$vm\n$script", timeout => 120);
    my %count;
    for my $line (split /\n/, $text) {
        my ($name, $number) = $line =~ /^(\S+) (\d+)$/ or die "not counted: $line\n";
        $count{$name} = $number;
    }
    # A process that does not exist has no files, and a kernel without debugfs no dma-bufs: then there is nothing to
    # compare.
    my @missing = ((grep { !defined $count{$_} } 'dma-bufs'), grep { !$count{$_} } qw(qemu-files systemd-files udevd-files));
    die "not counted: @missing\n" if @missing;
    my $outer = VGPU::Outside::renderer();
    return { %count, 'outer-contexts' => $outer->{contexts}, 'outer-renderer-KiB' => $outer->{kib} };
}

# How much a size may have grown: caches fill and heaps are never quite full. More per round is a leak, of whatever
# kind.
my $slack_kib = 4096;
my $slack_kib_round = 8;

sub compare {
    my ($before, $after, $rounds) = @_;
    my (@table, @left);
    for my $name (sort keys %$before) {
        my ($was, $is) = ($before->{$name}, $after->{$name});
        if (!defined $is) {
            push @left, "$name is counted no more";
            next;
        }
        my $allowed = $name =~ /KiB$/ ? $slack_kib + $slack_kib_round * $rounds : 0;
        $allowed = 0 if $name =~ /locked|pinned/;
        $allowed *= 4 if $name =~ /^outer/;
        my $line = sprintf '%-24s %8d, then %8d', $name, $was, $is;
        push @table, $line;
        push @left, $line if $is - $was > $allowed;
    }
    die "left behind after $rounds rounds:\n" . join("\n", @left, '', 'all:', @table) . "\n" if @left;
    return join "\n", @table;
}

1;
