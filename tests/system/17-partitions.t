#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# SR-IOV: a device that gpus.conf names is divided into virtual functions and put together again, and no function is
# taken from a VM. QEMU has no GPU with SR-IOV; its igb, a network card, takes the same path.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Test;
use VGPU::Whole;

my (undef, $blue) = baseline();
my $in_use = 6;
my ($card) = VGPU::Lab::host('lspci -Dn -d 8086:10c9') =~ /^(\S+)/;
die "this rig has no igb\n" if !$card;

# The number of them.
sub functions {
    my @all = VGPU::Lab::host('lspci -Dn -d 8086:10ca') =~ /^(\S+)/mg;
    return @all;
}

VGPU::Lab::host("cp /etc/vgpu/gpus.conf /run/gpus.conf.before; printf '[gpu $card]\\nmode=host\\n' >>/etc/vgpu/gpus.conf; vgpuctl reload");

point('a device that gpus.conf names is in the list, whatever its class', sub {
    my $seen = VGPU::Whole::until_mode($card, 'host', 10);
    die "it can have $seen->{SriovTotal} functions\n" if $seen->{SriovTotal} != 7;
    return VGPU::Lab::host('vgpuctl gpu list');
});

point('partitioned: three functions, listed', sub {
    my $said = VGPU::Whole::mode("--partitions 3 $card partitioned");
    my $seen = VGPU::Whole::until_mode($card, 'partitioned');
    my @there = sort { $a cmp $b } functions();
    my @listed = sort @{ $seen->{Partitions} };
    die "there are @there, listed are @listed\n" if @there != 3 || "@there" ne "@listed";
    return $said . "@listed";
});

point('a VM has a function: the card is not put together', sub {
    my ($function) = functions();
    VGPU::Whole::plug($blue, $function, 'yes');
    my $said = VGPU::Whole::mode("$card host", status => $in_use);
    die $said if $said !~ m{VM blue .* of \Q$function\E open};
    my $more = VGPU::Whole::mode("--partitions 5 $card partitioned", status => $in_use);
    die 'there are ' . scalar(functions()) . "\n" if functions() != 3;
    my $inside = $blue->run('cat /sys/bus/pci/devices/*/device | grep -c 0x10ca', fail => 1);
    die "blue does not see it\n" if $inside < 1;
    VGPU::Whole::unplug($blue, $function, 'yes');
    return $said . $more;
});

point('the number of partitions is changed, and too many are refused', sub {
    my $said = VGPU::Whole::mode("--partitions 5 $card partitioned");
    die 'there are ' . scalar(functions()) . "\n" if functions() != 5;
    my $refused = VGPU::Whole::mode("--partitions 8 $card partitioned", status => 2);
    die 'there are ' . scalar(functions()) . "\n" if functions() != 5;
    return $said . $refused;
});

point('after kill -9 of vgpud the GPU is still partitioned, and wanted so', sub {
    VGPU::Lab::host('systemctl kill -s KILL vgpud');
    my $seen = VGPU::Whole::until_mode($card, 'partitioned');
    die "$seen->{WantedMode} is wanted, and there are " . scalar(functions()) . "\n"
        if $seen->{WantedMode} ne 'partitioned' || functions() != 5;
    return '';
});

point('host again: no functions', sub {
    my $said = VGPU::Whole::mode("$card host");
    die 'there are ' . scalar(functions()) . "\n" if functions();
    return $said;
});

VGPU::Lab::host('mv /run/gpus.conf.before /etc/vgpu/gpus.conf; rm -f /var/lib/vgpu/gpus.conf; vgpuctl reload');

point('blue computes as before', sub { computes($blue) });

done_testing();
