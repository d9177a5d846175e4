#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# vgpud on the host with real udev, systemd and D-Bus: vgpuctl's description of the GPUs is true, also
# after changes; and the vGPUs go on without it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Slice;
use VGPU::Test;

my ($red, $blue) = baseline();
my $gpu = VGPU::Lab::gpu();

sub gpus { return decode_json(VGPU::Lab::host('vgpuctl -o json gpu list')) }

# vgpuctl's description of the GPU, once $code accepts it; dies after a while if it never does.
sub gpu_when {
    my ($code, $why) = @_;
    my $seen;
    for (1 .. 50) {
        ($seen) = grep { $_->{Address} eq $gpu } @{ gpus() };
        return $seen if $code->($seen);
        sleep 0.2;
    }
    die "$why: " . JSON::PP->new->canonical->pretty->encode($seen // {});
}

point('the first call starts vgpud, and it knows the GPU', sub {
    my $table = VGPU::Lab::host('vgpuctl gpu list');
    my $seen = gpu_when(sub { $_[0] }, 'not there');
    my $group = VGPU::Lab::host("basename \$(readlink -f /sys/bus/pci/devices/$gpu/iommu_group)");
    chomp $group;
    die "group $seen->{IommuGroup}, and sysfs says $group\n" if $seen->{IommuGroup} ne $group;
    die "mode $seen->{Mode}, and it is shared\n" if $seen->{Mode} ne 'shared';
    die "no types\n" if !@{ $seen->{MdevTypes} };
    return $table . VGPU::Lab::host("vgpuctl gpu show $gpu") . VGPU::Lab::host('vgpuctl topo');
});

point('vgpud knows both vGPUs, and their counters as the driver has them', sub {
    my @vgpus;
    # The meter begins after vgpud, which may have been started by the first call.
    VGPU::Slice::soon(sub {
        @vgpus = @{ decode_json(VGPU::Lab::host('vgpuctl -o json vgpu list')) };
        return !grep { exists $_->{Metered} } @vgpus;
    }, 'vgpu-meter does not answer');
    for my $tenant ($red, $blue) {
        my ($seen) = grep { $_->{Uuid} eq $tenant->{vgpu}{uuid} } @vgpus or die "$tenant->{name}'s is missing\n";
        die "it is $seen->{Device}, $seen->{Engine}\n" if "$seen->{Device} $seen->{Engine}" ne 'running ready';
        die "GPU $seen->{Gpu}\n" if $seen->{Gpu} ne $gpu;
        my ($before, $after) = ($seen->{Requests}, $tenant->{vgpu}->attribute('requests'));
        die "$before requests, and the driver has $after\n" if !$before || $before > $after;
    }
    return VGPU::Lab::host('vgpuctl vgpu list; vgpuctl type list');
});

point('a user without rights may look, and not own the name', sub {
    my $list = VGPU::Lab::host('setpriv --reuid 65534 --regid 65534 --clear-groups vgpuctl gpu list');
    die "nothing:\n$list" if $list !~ /$gpu/;
    my $said = VGPU::Lab::host('setpriv --reuid 65534 --regid 65534 --clear-groups vgpud 2>&1', fail => 1);
    die "it became vgpud\n" if $VGPU::Command::status != 1;
    return $said;
});

point('kill -9 of vgpud: both VMs compute on, the next call is answered', sub {
    my $job = VGPU::Compute::vulkan($red, $red->gpu_of($red->{vgpu}), '--forever');
    $job->expect(qr/^OK round 1:/m, 120);
    VGPU::Lab::host('systemctl kill -s KILL vgpud');
    my $seen = keeps_computing($job, 2);
    VGPU::Compute::stop_right($red, $job);
    gpu_when(sub { $_[0] }, 'not there');
    return "red: $seen; blue: " . computes($blue);
});

point('vgpuctl doctor has no problem with this host; on an empty one it names the Vulkan driver, and the module for VMs', sub {
    my $good = VGPU::Lab::host('vgpuctl doctor');
    my $bad = VGPU::Lab::host('mkdir -p /run/empty && vgpuctl doctor --root /run/empty 2>&1', fail => 1);
    die "status $VGPU::Command::status:\n$bad"
        if $VGPU::Command::status != 1 || $bad !~ /^info +driver: mdev_vgpu/m || $bad !~ /^problem +Vulkan:/m;
    return $good;
});

point('a network card that is removed and found again is not taken for a GPU', sub {
    my ($other) = VGPU::Lab::host('lspci -Dn -d 8086:10d3') =~ /^(\S+)/;
    my $known = sub { join ' ', sort map { $_->{Address} } @{ gpus() } };
    my $lines = 'journalctl -q -u vgpud -o cat | grep -c "^GPU" || true';
    my ($before, $said) = ($known->(), VGPU::Lab::host($lines));
    VGPU::Lab::host("echo 1 >/sys/bus/pci/devices/$other/remove && test ! -e /sys/bus/pci/devices/$other && "
        . "echo 1 >/sys/bus/pci/rescan && udevadm settle && test -e /sys/bus/pci/devices/$other");
    # vgpud has handled the card's events when it has handled a later one.
    VGPU::Lab::host("udevadm trigger --action=change --settle /sys/bus/pci/devices/$gpu");
    gpu_when(sub { $_[0]{Mode} eq 'shared' }, 'changed');
    die "GPUs were $before, and are " . $known->() . "\n" if $known->() ne $before;
    die "vgpud speaks of a GPU that came or went\n" if VGPU::Lab::host($lines) ne $said;
    return "GPUs: $before";
});

done_testing();
