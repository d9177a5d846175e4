#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# A guest with the oldest kernel that is tried, Debian 12's 6.1: blue, Debian 13 otherwise. Vulkan and CUDA (on the fake card)
# compute in it, and what ends ends alone. 11-guest-images.t has newer kernels.
# Rig: --image bookworm
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::GuestCuda;
use VGPU::Test;

# Before 6.4, virtio-gpu's driver takes no device without a display. Nobody has to look at it.
sub set_display {
    my ($vgpu, $on) = @_;
    return VGPU::Lab::host("vgpuctl slice set $vgpu->{uuid} --display $on", timeout => 120);
}

VGPU::Tenant->new('blue')->destroy;
my $vgpu = VGPU::Test::vgpu_of('blue');
set_display($vgpu, 'on');
my (undef, $blue) = baseline(blue => 'bookworm');

point('its kernel is 6.1', sub {
    my $kernel = $blue->run('uname -r');
    die $kernel if $kernel !~ /^6\.1\./;
    return $kernel;
});

point('Vulkan computes', sub { return computes($blue) });

point('CUDA computes', sub {
    VGPU::GuestCuda::install();
    $blue->detach($vgpu);
    VGPU::GuestCuda::offer($vgpu);
    $blue->attach($vgpu);
    VGPU::GuestCuda::put_programs($blue);
    return join '', map { VGPU::GuestCuda::run($blue, $_) . "$_: right\n" } qw(compute threads graphs callbacks managed waiting);
});

point('Vulkan beside CUDA', sub {
    my $job = VGPU::GuestCuda::start($blue, 'goes-on');
    my $said = computes($blue);
    $blue->run('pkill -TERM remote-client');
    $job->wait(60);
    return VGPU::GuestCuda::nothing_left($vgpu) . $said;
});

point('a worker is killed: its program gets error 719, and the next one computes', sub {
    my $job = VGPU::GuestCuda::start($blue, 'lost');
    VGPU::Lab::host('kill -9 ' . join ' ', keys %{ VGPU::GuestCuda::workers($vgpu) });
    $job->wait(60);
    return VGPU::GuestCuda::run($blue, 'compute') . VGPU::GuestCuda::nothing_left($vgpu) . 'it does';
});

point('the vGPU is unplugged while a program computes: it gets error 719 and lives on', sub {
    my $job = VGPU::GuestCuda::start($blue, 'lost-memory');
    $blue->detach($vgpu);
    $job->wait(120);
    VGPU::GuestCuda::nothing_left($vgpu);
    $blue->attach($vgpu);
    return $job->output . VGPU::GuestCuda::run($blue, 'compute');
});

point('the engine is killed: its program gets error 719, and after the rebind it computes again', sub {
    my $job = VGPU::GuestCuda::start($blue, 'lost');
    VGPU::Lab::host('kill -9 ' . $vgpu->engine_pid);
    $job->wait(120);
    $vgpu->wait_engine;
    $blue->rebind($vgpu);
    return $job->output . VGPU::GuestCuda::run($blue, 'compute');
});

point('nothing is left', sub {
    VGPU::GuestCuda::nothing_left($vgpu);
    $blue->detach($vgpu);
    VGPU::GuestCuda::withdraw($vgpu);
    VGPU::GuestCuda::remove();
    $blue->attach($vgpu);
    my $said = computes($blue);
    $blue->destroy;
    set_display($vgpu, 'off');
    return $said;
});

done_testing();
