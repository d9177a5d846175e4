#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The module cannot be unloaded under a vGPU; after draining it can be replaced by another version, and
# vGPUs that were defined with autostart come back by themselves. The steps are those of docs/install.md,
# "Unload the module".
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Host;
use VGPU::Test;

my ($red, $blue) = baseline();
my @vgpus = map { $_->{vgpu} } $red, $blue;
my $free = VGPU::Host::ledger();
my $other = VGPU::Compute::vulkan($red, $red->gpu_of($red->{vgpu}), '--forever --pause 1000');
$other->expect(qr/^OK round 1:/m, 120);

sub unload_refused {
    my $text = VGPU::Lab::host('modprobe -r mdev_vgpu 2>&1', fail => 1);
    die "it was unloaded:\n$text" if $VGPU::Command::status == 0;
    die $text if $text !~ /in use/;
    return $text;
}

point('unloading is refused while guests compute', sub {
    return unload_refused() . keeps_computing($other, 2);
});

point('drain: the vGPUs are taken from the VMs', sub {
    my $seen = VGPU::Compute::stop_right($red, $other);
    $_->detach($_->{vgpu}) for $red, $blue;
    return $seen;
});

point('unloading is refused while there is a vGPU, though no VM has it', \&unload_refused);

point('drain: the vGPUs are stopped, their definitions stay', sub {
    return VGPU::Lab::host(join "\n", 'set -e',
        (map { "mdevctl modify -u $_->{uuid} --auto; mdevctl stop -u $_->{uuid}" } @vgpus),
        'mdevctl list --defined', 'for try in {1..60}; do [ "$(ls -A /dev/vgpu 2>/dev/null)" ] || break; sleep 0.5; done');
});

my $module = '/usr/lib/modules/$(uname -r)/updates/mdev_vgpu.ko';
my $old = VGPU::Lab::host('cat /sys/module/mdev_vgpu/version');
chomp $old;
(my $new = $old) =~ s/\d$/9/;

point('another version is loaded', sub {
    my $seen = VGPU::Lab::host(<<"SH", timeout => 120);
set -e
modprobe -r mdev_vgpu
! grep '^mdev_vgpu ' /proc/modules
cp $module /root/mdev_vgpu.old
sed -i 's/version=$old/version=$new/' $module
modprobe mdev_vgpu
cat /sys/module/mdev_vgpu/version
SH
    die $seen if $seen ne "$new\n";
    return $seen;
});

# Waits until mdevctl has started its vGPUs, and the engines exist.
sub all_back {
    for my $vgpu (@vgpus) {
        VGPU::Lab::host("timeout 60 sh -c 'until [ -e /dev/vgpu/$vgpu->{uuid} ]; do sleep 0.3; done'",
            timeout => 80);
        $vgpu->wait_engine;
    }
    VGPU::Host::must_be_sane($free, @vgpus);
    return VGPU::Lab::host('mdevctl list');
}

point('the registrar shares the GPU again, and the vGPUs come back by autostart', sub {
    VGPU::Lab::host('systemctl restart vgpu-registrar.service', timeout => 120);
    return all_back();
});

point('the VMs, which have run all the time, get them back and compute', sub {
    $_->attach($_->{vgpu}) for $red, $blue;
    return join "\n", map { computes($_) } $red, $blue;
});

point('back to the version before, the same way', sub {
    $_->detach($_->{vgpu}) for $red, $blue;
    VGPU::Lab::host(join("\n", 'set -e', (map { "mdevctl stop -u $_->{uuid}" } @vgpus),
        'for try in {1..60}; do [ "$(ls -A /dev/vgpu 2>/dev/null)" ] || break; sleep 0.5; done',
        'modprobe -r mdev_vgpu', "mv /root/mdev_vgpu.old $module", 'modprobe mdev_vgpu',
        'systemctl restart vgpu-registrar.service'), timeout => 120);
    my $seen = all_back();
    $_->attach($_->{vgpu}) for $red, $blue;
    return $seen . computes($red);
});

# The room of a vGPU with autostart stays reserved.
VGPU::Lab::host("mdevctl modify -u $_->{uuid} --manual") for @vgpus;
done_testing();
