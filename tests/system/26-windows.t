#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# vGPUs with large windows: the firmware has room for them behind a hotplugged port, the guest sees all of the window, and
# computes.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Test;

my ($red) = baseline();
my $gpu = VGPU::Lab::gpu();
my $type = $red->{vgpu}{type} =~ s/half$/sixteenth/r;

# Sizes of the memory BARs that a device has in the guest.
sub bars {
    my ($vm, $address) = @_;
    my @ranges = $vm->run("cat /sys/bus/pci/devices/$address/resource") =~ /^0x([0-9a-f]+) 0x([0-9a-f]+) 0x[0-9a-f]*2[0-9a-f]{2}$/mg;
    my @sizes;
    while (my ($first, $last) = splice @ranges, 0, 2) { push @sizes, hex($last) - hex($first) + 1 }
    return @sizes;
}

for my $gib (1, 2, 4) {
    point("a window of $gib GiB", sub {
        my $vgpu = VGPU::Vgpu->new(30 + $gib, $type);
        my $bytes = $gib * 2**30;
        VGPU::Lab::host("mdevctl define -u $vgpu->{uuid} -p $gpu -t $type && "
            . "mdevctl modify -u $vgpu->{uuid} --addattr vgpu/window_bytes --value $bytes && mdevctl start -u $vgpu->{uuid}",
            timeout => 120);
        $vgpu->wait_engine;
        my $address = $red->attach($vgpu);
        my @bars = bars($red, $address);
        die "the guest sees BARs of @bars bytes\n" if !grep { $_ == $bytes } @bars;
        my $said = VGPU::Compute::verdict(VGPU::Compute::vulkan($red, $address)->wait(240));
        $red->detach($vgpu);
        $vgpu->remove;
        return "BARs of @bars bytes; $said";
    });
}

point("the VM's own vGPU computes as before", sub { return computes($red) });

done_testing();
