#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# CUDA in a VM (as in 62-cuda-vm.t), when a program, its worker, the vGPU or its engine ends, the VM is reset, and the window
# is full: what ends ends alone, and leaves no worker behind.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::GuestCuda;
use VGPU::Slice;
use VGPU::Test;

my ($red) = baseline();
my $vgpu = $red->{vgpu};
my $vram = $vgpu->attribute('vram_bytes');

sub host { return VGPU::Lab::host(@_) }
sub used { return VGPU::GuestCuda::used($vgpu) }
sub workers { return VGPU::GuestCuda::workers($vgpu) }
sub nothing_left { return VGPU::GuestCuda::nothing_left($vgpu) }
sub in_guest { return VGPU::GuestCuda::run($red, @_) }
sub started { return VGPU::GuestCuda::start($red, @_) }

point('an engine offers CUDA, and its guest computes', sub {
    VGPU::GuestCuda::install();
    VGPU::GuestCuda::put_programs($red);
    $red->detach($vgpu);
    host("vgpuctl slice set $vgpu->{uuid} --vram 64M", timeout => 120);
    my $status = VGPU::GuestCuda::offer($vgpu);
    $red->attach($vgpu);
    return $status . in_guest('compute');
});

point('a program that is killed leaves nothing', sub {
    my $job = started('hold');
    die 'it has ' . used() . "\n" if used() < 32 * 2**20;
    $red->run('pkill -KILL remote-client');
    $job->wait(60, fail => 1);
    return nothing_left();
});

point('a worker that is killed: its program gets error 719, the VM lives, the next one has a worker', sub {
    my $engine = $vgpu->engine_pid;
    my $job = started('lost');
    host('kill -9 ' . join ' ', keys %{ workers() });
    $job->wait(60);
    my $said = in_guest('compute') . computes($red);
    die "another engine\n" if $vgpu->engine_pid != $engine;
    nothing_left();
    return $said;
});

point('64 programs at the same time', sub {
    VGPU::GuestCuda::run_many($red, 'objects', 64);
    return nothing_left();
});

point('the window is full: no more memory for that program, and nothing else for the others', sub {
    my $job = started('goes-on');
    in_guest('window');
    my $said = computes($red);
    $red->run('pkill -TERM remote-client');
    $job->wait(60);
    nothing_left();
    return $said;
});

point('the VM is reset: no worker is left, and it computes again', sub {
    my $job = started('goes-on');
    $red->reset;
    $job->stop;
    $red->wait_up;
    $red->find_gpu($vgpu) or die "no vGPU\n";
    nothing_left();
    return in_guest('compute');
});

point('the vGPU is unplugged while a program computes: it gets error 719 and lives on, and no worker is left', sub {
    my $job = started('lost-memory');
    $red->detach($vgpu);
    $job->wait(120);
    VGPU::Slice::soon(sub { !%{ workers() } }, 'a worker is left');
    $red->attach($vgpu);
    return $job->output . in_guest('compute');
});

point('the engine is killed: its program gets error 719, and after the rebind it computes again', sub {
    my $job = started('lost');
    host('kill -9 ' . $vgpu->engine_pid);
    $job->wait(120);
    $vgpu->wait_engine;
    VGPU::Slice::soon(sub { !%{ workers() } }, 'a worker is left');
    $red->rebind($vgpu);
    return $job->output . in_guest('compute');
});

point('nothing is left', sub {
    nothing_left();
    $red->detach($vgpu);
    VGPU::GuestCuda::withdraw($vgpu);
    VGPU::GuestCuda::remove();
    host("vgpuctl slice set $vgpu->{uuid} --vram $vram", timeout => 120);
    $red->attach($vgpu);
    return computes($red);
});

done_testing();
