#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# A guest with an IOMMU of its own: its driver maps all memory that the vGPU may reach, page by page and with
# permissions, and unmaps it again. The vGPU must work, and the host must keep no page of the guest pinned after that.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Host;
use VGPU::Test;

my ($red, $blue) = baseline();
my $vgpu = VGPU::Vgpu->new(78, $red->{vgpu}{type} =~ s/half$/sixteenth/r);
my $free = VGPU::Host::ledger();
my $green = bless { name => 'green', gpu => {}, vgpu => $vgpu }, 'VGPU::Tenant';
my $device = 'vfio-pci,id=gpu,bus=rp0,sysfsdev=/sys/bus/mdev/devices/' . $vgpu->{uuid};

# The guest runs under plain QEMU, without libvirt.
sub guest { return VGPU::Command::run([VGPU::Lab::rig('guest', 'green', @_)], timeout => 300) }

sub monitor {
    my $said = guest('monitor', @_);
    die $said if $said =~ /^Error/m;
    return;
}

# Guest pages that the host pins for devices; those of red and blue, which are idle, stay the same.
sub pinned {
    # Before, each processor has pages in its own count.
    my $pages = VGPU::Lab::host(q{echo 1 >/proc/sys/vm/stat_refresh; awk '$1 == "nr_foll_pin_acquired" { a = $2 } $1 == "nr_foll_pin_released" { r = $2 } }
        . q{END { print a - r }' /proc/vmstat});
    chomp $pages;
    return $pages;
}

my $pinned = pinned();

sub plug {
    my @before = $green->gpus;
    monitor("device_add $device");
    ($green->{gpu}{ $vgpu->{uuid} }) = $green->wait_gpus(@before);
    return;
}

sub unplug {
    monitor('device_del gpu');
    for (1 .. 120) {
        return if guest('monitor', 'info qtree') !~ /vfio-pci/;
        sleep 0.5;
    }
    die "60 s after device_del QEMU still has the vGPU\n";
}

point('a guest with a vIOMMU computes on a vGPU', sub {
    $vgpu->start(VGPU::Lab::gpu());
    $vgpu->wait_engine;
    guest('up', '--memory', '1G', '--init', 'minimal', '--viommu');
    VGPU::Compute::install($green);
    plug();
    my $gpu = $green->gpu_of($vgpu);
    my $group = $green->run("readlink -f /sys/bus/pci/devices/$gpu/iommu_group && cat /sys/bus/pci/devices/$gpu/iommu_group/type");
    die "no translation:\n$group" if $group !~ /DMA/;
    return $group . computes($green);
});

point("a guest's unbind releases its pages; bound again, and plugged again, the vGPU computes", sub {
    my $gpu = $green->gpu_of($vgpu);
    my $bound = pinned();
    $green->run("cd /sys/bus/pci/drivers/virtio-pci && echo $gpu >unbind", timeout => 60);
    my $unbound = pinned();
    die "$bound pages are pinned with the driver, $unbound without it, and were $pinned before there was a vGPU\n"
        if $unbound != $pinned || $bound <= $pinned;
    $green->run("sleep 1; cd /sys/bus/pci/drivers/virtio-pci && echo $gpu >bind", timeout => 60);
    my $seen = "pinned pages: $bound, without the driver $unbound\n" . computes($green);
    unplug();
    plug();
    return "$seen\n" . computes($green);
});

point('a VM that ends in the middle of its work leaves nothing behind', sub {
    my $job = VGPU::Compute::vulkan($green, $green->gpu_of($vgpu), '--forever --timeout 30');
    $job->expect(qr/^OK round 1:/m, 120);
    my @bad = VGPU::KernelLog::complaints('guest', $green->run(VGPU::KernelLog::unread()));
    die "its kernel complains:\n", map { "$_\n" } @bad if @bad;
    guest('down');
    $job->stop;
    $vgpu->remove;
    VGPU::Host::must_be_sane($free, $red->{vgpu}, $blue->{vgpu});
    return join "\n", map { computes($_) } $red, $blue;
});

done_testing();
