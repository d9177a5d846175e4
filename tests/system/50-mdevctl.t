#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Wrong uses of mdevctl: it fails as usual, and the reason is in our callout's message, or in the kernel's log.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Test;

my ($red) = baseline();
my $gpu = VGPU::Lab::gpu();
my ($driver) = $red->{vgpu}{type} =~ /^(.*)-vgpu-half$/;
my $uuid = 'bad0bad0-0000-4000-8000-000000000000';
my $marks = 0;

# Runs it in L1 and expects it to fail; returns its message, and the kernel's meanwhile.
sub refused {
    my ($command) = @_;
    my $mark = 'mdevctl test ' . ++$marks;
    VGPU::Lab::host("echo '$mark' >/dev/kmsg");
    my $text = VGPU::Lab::host("$command 2>&1", fail => 1);
    my $status = $VGPU::Command::status;
    my $kernel = VGPU::Lab::host("dmesg | sed '1,/$mark\$/d'");
    VGPU::Lab::host("mdevctl stop -u $uuid; mdevctl undefine -u $uuid", fail => 1);
    die "it did not fail:\n$text" if $status == 0;
    return ($text, $kernel);
}

point('unknown type', sub {
    my ($text) = refused("mdevctl start -u $uuid -p $gpu -t $driver-vgpu-golden");
    die $text if $text !~ /golden|type/i;
    return $text;
});

point('mdevctl start on a GPU that is not shared is refused', sub {
    my ($text) = refused("mdevctl start -u $uuid -p 0000:00:00.0 -t $driver-vgpu-half");
    die $text if $text !~ /0000:00:00\.0/ || $text !~ /not shared|not registered|does not support|not found|unable to find|no (?:mdev|such)/i;
    return $text;
});

point('without memory left mdevctl types says 0, and the kernel log names the vGPUs that have it', sub {
    my $types = VGPU::Lab::host('mdevctl types');
    die $types if $types !~ /vgpu-full\s+Available instances: 0/;
    my ($text, $kernel) = refused("mdevctl start -u $uuid -p $gpu -t $driver-vgpu-full");
    die "mdevctl: $text\nkernel: $kernel" if $kernel !~ /no vGPU of type vgpu-full left/
        && $text !~ /available|are free/i;
    return "$text$kernel";
});

point('none left, written to sysfs directly as KubeVirt does', sub {
    my ($text, $kernel) =
        refused("echo $uuid >/sys/bus/pci/devices/$gpu/mdev_supported_types/$driver-vgpu-full/create");
    die "$text\nkernel: $kernel" if $kernel !~ /no vGPU of type vgpu-full left: it needs/;
    return "$text$kernel";
});

point('an attribute that does not exist is refused', sub {
    my ($text) = refused(<<"SH");
set -e
mdevctl define -u $uuid -p $gpu -t $driver-vgpu-sixteenth
mdevctl modify -u $uuid --addattr vgpu/colour --value blue
mdevctl start -u $uuid
SH
    die $text if $text !~ /colour/;
    return $text;
});

for my $case (['vgpu/weight', 0], ['vgpu/cap', 101], ['vgpu/window_bytes', 12345], ['vgpu/tenant', '../x'], ['vgpu/class', 'firm']) {
    my ($attribute, $value) = @$case;
    (my $short = $attribute) =~ s,.*/,,;
    point("a bad value: $attribute=$value", sub {
        my ($text, $kernel) = refused(<<"SH");
set -e
mdevctl define -u $uuid -p $gpu -t $driver-vgpu-sixteenth
mdevctl modify -u $uuid --addattr $attribute --value $value
mdevctl start -u $uuid
SH
        die "$text\nkernel: $kernel" if "$text$kernel" !~ /$short must be/;
        return "$text$kernel";
    });
}

point('the same UUID twice', sub {
    my ($text) = refused("mdevctl start -u $red->{vgpu}{uuid} -p $gpu -t $driver-vgpu-sixteenth");
    my ($define) = refused("mdevctl define -u $red->{vgpu}{uuid} -p $gpu -t $driver-vgpu-half");
    return $text . $define;
});

point('attributes that are right are taken', sub {
    my $seen = VGPU::Lab::host(<<"SH");
set -e
mdevctl define -u $uuid -p $gpu -t $driver-vgpu-sixteenth
mdevctl modify -u $uuid --addattr vgpu/weight --value 77
mdevctl modify -u $uuid --addattr vgpu/cap --value 50
mdevctl start -u $uuid
cat /sys/bus/mdev/devices/$uuid/vgpu/weight /sys/bus/mdev/devices/$uuid/vgpu/cap
mdevctl stop -u $uuid
mdevctl undefine -u $uuid
SH
    # Without vgpud the callout says what it did not check.
    die $seen if $seen !~ /^77\n50\n\z/m;
    return $seen;
});

point('nothing of it is left, and red still computes', sub {
    my $list = VGPU::Lab::host('mdevctl list; ls /dev/vgpu');
    die $list if $list =~ /$uuid/;
    return computes($red);
});

done_testing();
