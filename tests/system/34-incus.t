#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Incus: a VM takes a vGPU by gputype=mdev. Incus makes the mediated device when the VM starts and removes it when it
# stops; vgpud takes note of both, and the VM computes.
# Rig: --image cloud --packages tests/system/incus/packages.txt
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use JSON::PP;
use VGPU::Host;
use VGPU::Incus;
use VGPU::Slice;
use VGPU::Test;

my $boot_takes = 1500;
my $gpu = VGPU::Lab::gpu();
my $vm = VGPU::Incus->new('web');
my $type;

sub host { return VGPU::Lab::host(@_) }
sub vgpus { return @{ decode_json(host('vgpuctl -o json vgpu list')) } }

# Incus gives every VM a display of virtio's, too, which is a VGA controller.
sub both {
    ($vm->{display}) = $vm->run('lspci -Dn -d 1af4:1050:0300') =~ /^(\S+)/;
    my ($card, @more) = $vm->vgpus;
    die 'not one vGPU in the guest: ' . join(' ', $card // (), @more) . "\n" if !$card || @more;
    return join "\n", map { VGPU::Compute::verdict($_->($vm, $card)->wait(600)) } \&VGPU::Compute::vulkan, \&VGPU::Compute::opencl;
}

# The usual VMs are not needed here.
$_->destroy for map { VGPU::Tenant->new($_) } qw(red blue);
host("vgpuctl slice rm $_->{Uuid}", timeout => 120) for vgpus();
my $free = VGPU::Host::ledger();

point('Incus sees the types of the GPU', sub {
    VGPU::Incus::set_up();
    my $seen = host('incus info --resources');
    ($type) = $seen =~ /^\s*-\s*(\S+-vgpu-half)\b.*available/m or die "no type in:\n$seen";
    return $seen =~ s/^.*?(?=^GPU)//msr;
});

point('a VM with gputype=mdev starts', sub {
    $vm->install;
    host("incus config device add web gpu gpu gputype=mdev pci=$gpu mdev=$type");
    host('incus start web', timeout => 300);
    my ($seen, @more) = vgpus();
    die 'vgpud knows of ' . (@more + !!$seen) . " vGPUs\n" if !$seen || @more;
    return "$seen->{Uuid} $seen->{Type} $seen->{Device}";
});

my $up = point("Incus's VM boots, and computes on the vGPU", sub {
    my $said = $vm->wait_up($boot_takes);
    VGPU::Compute::install($vm);
    return "$said\n" . both();
});

point('one vGPU more than there is room for is refused', sub {
    my $two = VGPU::Incus->new('two');
    $two->install;
    host("incus config device add two gpu gpu gputype=mdev pci=$gpu mdev=" . $type =~ s/half$/full/r);
    my $said = VGPU::Slice::refused('incus start two', qr/No available mdev/i);
    host('incus delete two');
    return $said;
});

point('incus restart in the middle of its work: it has a vGPU again, and computes', sub {
    my $job = VGPU::Compute::vulkan($vm, ($vm->vgpus)[0], '--forever');
    $job->expect(qr/^OK round 1:/m, 240);
    my ($before) = map { $_->{Uuid} } vgpus();
    my $said = $vm->boots_anew(sub { host('incus restart web', timeout => 400) }, $boot_takes);
    $job->stop;
    my ($after, @more) = map { $_->{Uuid} } vgpus();
    die "after it: $after @more\n" if !$after || @more;
    return "$before, then $after; $said; " . both();
}) if $up;

point('incus stop: the vGPU is gone, and its room is free', sub {
    host('incus stop web --timeout 300 || incus stop -f web', timeout => 400);
    VGPU::Slice::soon(sub { !vgpus() }, 'the vGPU is there still');
    VGPU::Host::must_be_sane($free);
    return;
});

$vm->remove;
VGPU::Incus::tear_down();
done_testing();
