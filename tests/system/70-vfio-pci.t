#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# A physical PCI device passed through beside the vGPU, in both orders: QEMU then gives VFIO's type1 all
# of the guest's memory map, including the vGPU's window. Both devices must work.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Test;

my (undef, $blue) = baseline();
my ($nic) = VGPU::Lab::host('lspci -Dn -d 8086:10d3') =~ /^(\S+)/;
my ($bus, $slot, $function) = ($nic // '') =~ /^0000:(..):(..)\.(.)$/;
my $xml = <<"XML";
<hostdev mode='subsystem' type='pci' managed='yes'>
  <source><address domain='0x0000' bus='0x$bus' slot='0x$slot' function='0x$function'/></source>
</hostdev>
XML

sub plug {
    VGPU::Lab::host("virsh attach-device blue /dev/stdin --live", stdin => $xml, timeout => 300);
    return;
}

sub unplug {
    VGPU::Lab::host("virsh detach-device blue /dev/stdin --live", stdin => $xml, timeout => 120);
    for (1 .. 120) {
        return if VGPU::Lab::host("virsh dumpxml blue") !~ /type='pci' managed/;
        sleep 0.5;
    }
    die "the network card is still there\n";
}

# The card's DMA works if a ping through it is answered (by the outer QEMU's network).
sub card_works {
    return $blue->run(<<'SH', timeout => 120);
for try in $(seq 60); do
    card=$(grep -l 0x8086 /sys/class/net/*/device/vendor | cut -d/ -f5)
    [ -z "$card" ] || break
    sleep 0.5
done
ip addr replace 10.0.3.15/24 dev "$card" && ip link set "$card" up || exit 1
for try in $(seq 40); do
    /usr/local/lib/rig/busybox ping -c 1 -W 1 -I "$card" 10.0.3.2 && exit 0
    sleep 0.5
done
ip -s link show "$card"
exit 1
SH
}

point('vGPU first, then a vfio-pci device: both work', sub {
    plug();
    return computes($blue) . "\n" . card_works() . computes($blue);
});

point('the vfio-pci device goes, the vGPU stays', sub {
    unplug();
    return computes($blue);
});

point('vfio-pci device first, then the vGPU: both work', sub {
    $blue->detach($blue->{vgpu});
    plug();
    $blue->attach($blue->{vgpu});
    return computes($blue) . "\n" . card_works() . computes($blue);
});

point('the vGPU goes and comes while the vfio-pci device stays', sub {
    $blue->detach($blue->{vgpu});
    $blue->attach($blue->{vgpu});
    return card_works() . computes($blue);
});

point('back as it was', sub {
    unplug();
    return computes($blue);
});

done_testing();
