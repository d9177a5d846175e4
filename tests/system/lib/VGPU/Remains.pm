# SPDX-License-Identifier: MIT
# What programs hold of the GPU, by the kernels' statements, not vgpud's or the arbiter's: processes of the host that
# have the GPU's node open, the host's dma-bufs, and the memory of the render servers on the machine below, where the
# GPU's memory is.
#
#   my $before = VGPU::Remains::take($gpu);
#   ...
#   VGPU::Remains::none($gpu, $before);    # dies if something is left after some seconds
package VGPU::Remains;

use strict;
use warnings;

use Time::HiRes qw(sleep);
use VGPU::Lab;
use VGPU::Outside;

# Heaps of render servers that have worked do not return to exactly their earlier size.
my $slack_mib = 6;

my $script = <<'SH';
node=$(ls "/sys/bus/pci/devices/$gpu"/virtio*/drm "/sys/bus/pci/devices/$gpu/drm" 2>/dev/null | grep -m 1 '^renderD')
for process in $(find /proc/[0-9]*/fd -lname "*/dri/$node" 2>/dev/null | cut -d/ -f3 | sort -u); do
    echo "user $process $(cat "/proc/$process/comm" 2>/dev/null)"
done
sed -n 's/^Total \([0-9]*\) objects.*/buffers \1/p' /sys/kernel/debug/dma_buf/bufinfo
SH

# { users => { pid => name }, buffers => number, mib => size }
sub take {
    my ($gpu) = @_;
    my $text = VGPU::Lab::host("gpu=$gpu\n$script");
    my ($buffers) = $text =~ /^buffers (\d+)$/m or die "no bufinfo:\n$text";
    return { users => { $text =~ /^user (\d+) (.*)$/mg }, buffers => $buffers, mib => memory() };
}

# The memory of the rig's own GPU's render servers, in MiB.
sub memory { return int(VGPU::Outside::renderer()->{kib} / 1024) }

sub describe {
    my ($seen) = @_;
    my @users = map { "$_ $seen->{users}{$_}" } sort keys %{ $seen->{users} };
    return "$seen->{buffers} dma-bufs, $seen->{mib} MiB in render servers, open in: " . join(', ', @users) . "\n";
}

# More processes have the GPU's node open than before, or there are more buffers, or more memory.
sub is_more {
    my ($seen, $before) = @_;
    return (grep { !$before->{users}{$_} } keys %{ $seen->{users} })
        || $seen->{buffers} > $before->{buffers} || $seen->{mib} > $before->{mib} + $slack_mib;
}

# Waits until there is no more than before.
sub none {
    my ($gpu, $before) = @_;
    my $seen;
    for (1 .. 40) {
        $seen = take($gpu);
        return describe($seen) if !is_more($seen, $before);
        sleep 0.5;
    }
    die 'something is left: ' . describe($seen) . 'before: ' . describe($before);
}

1;
