# SPDX-License-Identifier: MIT
# Conditions that must hold on the GPU host whatever happened: checked after every fault.
package VGPU::Host;

use strict;
use warnings;

use Time::HiRes qw(sleep time);
use VGPU::Lab;
use VGPU::Outside;

# The host's state for must_be_sane(): how many more of the smallest vGPUs fit by the driver's ledger, and how many
# dma-bufs the kernel keeps that no process has.
sub ledger {
    my $gpu = VGPU::Lab::gpu();
    my $free = VGPU::Lab::host(
        "cat /sys/bus/pci/devices/$gpu/mdev_supported_types/*-vgpu-sixteenth/available_instances");
    chomp $free;
    return { free => $free, kept => scalar VGPU::Outside::kept_by_the_kernel(VGPU::Outside::look()) };
}

# Dies if the host has changed since ledger() was called: it must have these vGPUs and no others, and only engines and
# VMs may have files of vGPUs open.
sub must_be_sane {
    my ($before, @vgpus) = @_;
    my $complaints = VGPU::Lab::kernel_complaints();
    die "the host's kernel complains:\n$complaints" if $complaints =~ /\S/;
    $_->wait_engine for @vgpus;
    my $now = ledger();
    die "the ledger has room for $now->{free}, and had for $before->{free}\n" if $now->{free} != $before->{free};
    my @there = sort split ' ', VGPU::Lab::host('ls /sys/bus/mdev/devices');
    my @wanted = sort map { $_->{uuid} } @vgpus;
    die "vGPUs: @there, and there should be @wanted\n" if "@there" ne "@wanted";
    VGPU::Outside::must_be_clean($before->{kept}, @vgpus);
    return;
}

# libvirt answers: systemd has restarted it, or its socket does.
sub wait_libvirt {
    VGPU::Lab::host('timeout 90 sh -c "until virsh -q list >/dev/null 2>&1; do sleep 0.3; done"',
        timeout => 120);
    return;
}

# kill -9 of vgpud, as its first death: systemd waits longer before each next start, which is not tested here.
sub kill_vgpud {
    VGPU::Lab::host('systemctl reset-failed vgpud; systemctl kill -s KILL vgpud', fail => 1);
    return;
}

# While $code runs vgpud is down, and nothing starts it. Returns $code's result.
sub without_vgpud {
    my ($code) = @_;
    VGPU::Lab::host('systemctl mask --runtime --now vgpud', timeout => 120);
    my $seen = eval { $code->() };
    my $error = $@;
    VGPU::Lab::host('systemctl unmask --runtime vgpud && systemctl start vgpud', timeout => 120);
    die $error if $error;
    return $seen;
}

# Waits until the driver reports a state of the vGPU that $pattern matches.
sub wait_state {
    my ($vgpu, $pattern, $limit) = @_;
    my $end = time + ($limit // 60);
    my $state;
    while (1) {
        $state = $vgpu->attribute('state');
        return $state if $state =~ $pattern;
        last if time > $end;
        sleep 0.3;
    }
    die "$vgpu->{uuid} is '$state', not $pattern\n";
}

1;
