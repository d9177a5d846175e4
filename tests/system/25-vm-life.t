#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Operations on a VM that computes: suspend and resume work. Saving and migrating, which a VM has to be
# defined for (28-save, 29-migrate), are refused with a reason, and the VM goes on.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Test;

my ($red, $blue) = baseline();
my @jobs = map { VGPU::Compute::vulkan($_, $_->gpu_of($_->{vgpu}), '--forever --pause 300') } $red, $blue;
$_->expect(qr/^OK round 1:/m, 120) for @jobs;

point('blue is suspended while it computes: it stands still, red goes on', sub {
    VGPU::Lab::host('virsh suspend blue');
    my $before = VGPU::Compute::rounds($jobs[1]);
    my $seen = keeps_computing($jobs[0], 3);
    my $after = VGPU::Compute::rounds($jobs[1]);
    # Its output may have been on its way.
    die "blue did rounds $before to $after while it was suspended\n" if $after > $before + 1;
    return "red: $seen, blue: round $after";
});

point('blue is resumed and goes on where it was', sub {
    VGPU::Lab::host('virsh resume blue');
    return keeps_computing($jobs[1], 3);
});

# Refused, and the message names the device that cannot be migrated, and the reason.
my %refused = (
    'virsh save' => 'virsh save blue /var/lib/libvirt/qemu/save/blue.test',
    'virsh managedsave' => 'virsh managedsave blue',
    'virsh migrate' => 'virsh migrate --live --unsafe blue qemu+unix:///system?socket=/run/libvirt/libvirt-sock tcp:127.0.0.1',
    'virsh snapshot-create, with memory' => 'virsh snapshot-create-as blue --name test --memspec /var/lib/libvirt/qemu/save/blue.snap',
    'migration to a file by QEMU itself' => q(virsh qemu-monitor-command blue --hmp 'migrate "exec:cat >/dev/null"' | grep . | (! grep -i error)),
);
for my $what (sort keys %refused) {
    point("$what is refused, and says why", sub {
        my $text = VGPU::Lab::host("$refused{$what} 2>&1", fail => 1, timeout => 120);
        die "it was done:\n$text" if $VGPU::Command::status == 0;
        die $text if $text !~ /VFIO device doesn't support device (?:and IOMMU )?dirty tracking/;
        return $text;
    });
}

point('both compute as before', sub {
    die "blue is " . $blue->state . "\n" if $blue->state ne 'running';
    return join "\n", map { keeps_computing($_, 2) } @jobs;
});

point('neither has had a wrong value', sub {
    return VGPU::Compute::stop_right($red, $jobs[0]) . '; ' . VGPU::Compute::stop_right($blue, $jobs[1]);
});

done_testing();
