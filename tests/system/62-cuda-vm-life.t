#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# CUDA in VMs that are more than one vGPU and one life: two vGPUs in a guest, both VMs at the same time, and a VM that is
# saved while it computes. On the fake card.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::GuestCuda;
use VGPU::Saved;
use VGPU::Test;

my ($red, $blue) = baseline();
my @tenants = ($red, $blue);
my $file = '/var/lib/libvirt/images/blue.save';
my $vm = VGPU::Saved->new($blue);
my %vram = map { $_->{name} => $_->{vgpu}->attribute('vram_bytes') } @tenants;

sub host { return VGPU::Lab::host(@_) }
sub nothing_left { VGPU::GuestCuda::nothing_left($_->{vgpu}) for @tenants; return '' }

# Of the guest's programs, by the vGPU's node.
sub run_on {
    my ($tenant, $vgpu, $case) = @_;
    my $node = '/dev/dri/by-path/pci-' . $tenant->gpu_of($vgpu) . '-render';
    return $tenant->run("VGPU_CUDA_NODE=\$(readlink -f $node) " . VGPU::GuestCuda::program("/opt/cuda/remote-client $case"), timeout => 240);
}

point('the engines of two VMs offer CUDA, and both compute at the same time', sub {
    VGPU::GuestCuda::install();
    for my $tenant (@tenants) {
        $tenant->detach($tenant->{vgpu});
        host("vgpuctl slice set $tenant->{vgpu}{uuid} --vram 64M", timeout => 120);
        VGPU::GuestCuda::offer($tenant->{vgpu});
        $tenant->attach($tenant->{vgpu});
        VGPU::GuestCuda::put_programs($tenant);
    }
    my @jobs = map { VGPU::GuestCuda::start($_, 'goes-on') } @tenants;
    my @workers = map { scalar keys %{ VGPU::GuestCuda::workers($_->{vgpu}) } } @tenants;
    die "@workers workers\n" if "@workers" ne '1 1';
    my $said = join '', map { VGPU::GuestCuda::run($_, 'limit') . computes($_) } @tenants;
    $_->run('pkill -TERM remote-client') for @tenants;
    $_->wait(60) for @jobs;
    return nothing_left() . $said;
});

point('two vGPUs in one guest: a program has the one that it names, and its memory', sub {
    my ($first, $second) = map { $_->{vgpu} } @tenants;
    $blue->detach($second);
    $red->attach($second);
    my $job = VGPU::GuestCuda::start($red, 'goes-on');
    my @before = map { scalar keys %{ VGPU::GuestCuda::workers($_) } } $first, $second;
    die "@before workers\n" if join(' ', sort @before) ne '0 1';
    run_on($red, $_, 'limit') for $first, $second;
    my @jobs = map { $red->job('VGPU_CUDA_NODE=$(readlink -f /dev/dri/by-path/pci-' . $red->gpu_of($_) . '-render) ' . VGPU::GuestCuda::program('/opt/cuda/remote-client hold')) } $first, $second;
    $_->expect(qr/^holding/m, 120) for @jobs;
    my @used = map { VGPU::GuestCuda::used($_) } $first, $second;
    die "@used bytes\n" if grep { $_ < 32 * 2**20 } @used;
    $red->run('pkill -TERM remote-client', fail => 1);
    $_->wait(60, fail => 1) for @jobs;
    $job->wait(60);
    nothing_left();
    $red->detach($second);
    $blue->attach($second);
    return "@used bytes";
});

point('a VM is saved while a program computes: that one gets error 719, the VM runs on, and the next one computes', sub {
    $blue->destroy;
    $vm->display(1);
    $vm->start;
    my $boot = $vm->boot;
    VGPU::GuestCuda::put_programs($blue);
    VGPU::GuestCuda::start_that_is_lost($blue);
    host("virsh save blue $file; virsh restore $file", timeout => 300);
    my $up = $vm->must_be_back($boot);
    my $end = VGPU::GuestCuda::must_be_lost($blue);
    VGPU::GuestCuda::run($blue, 'compute');
    return nothing_left() . "$up\n$end" . computes($blue);
});

point('nothing is left', sub {
    nothing_left();
    $blue->destroy;
    host("rm -f $file; virsh -q define /run/blue.xml");
    $vm->display(0);
    VGPU::Tenant::start($blue);
    $blue->wait_up;
    VGPU::Compute::install($blue);
    $red->detach($red->{vgpu});
    for my $tenant (@tenants) {
        VGPU::GuestCuda::withdraw($tenant->{vgpu});
        host("vgpuctl slice set $tenant->{vgpu}{uuid} --vram $vram{$tenant->{name}}", timeout => 120);
    }
    VGPU::GuestCuda::remove();
    $_->attach($_->{vgpu}) for @tenants;
    return join '', map { computes($_) } @tenants;
});

done_testing();
