#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Memory of a VM's own that its CUDA programs lend to the GPU (on the fake card): the vGPU has it pinned while a worker has
# it, the window has nothing of it, and it is the guest's again when the program or its worker has ended. A VM whose memory
# cannot be lent has the window.
# Rig: --gpus 2
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::GuestCuda;
use VGPU::Lender;
use VGPU::Test;

use constant LENT => 40 * 2**20;

my (undef, $blue) = baseline();
my $vm;

sub host { return VGPU::Lab::host(@_) }

sub kill_program { my ($job) = @_; $blue->run('pkill -KILL remote-client'); $job->wait(120, fail => 1); return }

point('a vGPU with CUDA, for a VM whose memory is shared', sub {
    $vm = VGPU::Lender->new($blue);
    return $blue->run(VGPU::GuestCuda::program('/opt/cuda/vgpu-guest-cuda-check'), timeout => 120);
});

point('a program lends more than the window has, and what the GPU does with it is right', sub { return $vm->lends });

point('the vGPU has pinned it, its worker has it mapped, and the kernel lists what; killed, it leaves nothing', sub {
    my $job = $vm->holds;
    my $pinned = $vm->pinned;
    my ($worker) = $vm->workers;
    my $maps = host("grep -c vgpu-memory /proc/$worker/smaps");
    die "$pinned bytes are pinned, $maps mappings\n" if $pinned < LENT || $maps < 20;
    kill_program($job);
    return $vm->nothing_left . "$pinned bytes pinned, $maps mappings, " . $vm->memory_is_the_guests;
});

point('a worker that is killed: its program gets error 719, and the next one lends again', sub {
    my $engine = $vm->{vgpu}->engine_pid;
    my $job = $vm->holds;
    host('kill -9 ' . join ' ', $vm->workers);
    $job->wait(120);
    $vm->nothing_left;
    $vm->lends;
    die "another engine\n" if $vm->{vgpu}->engine_pid != $engine;
    return "by the same engine, $engine";
});

point('the caching of the window in the guest is measured', sub { return $blue->run('/opt/cuda/window-memory', timeout => 240, fail => 1) });

point('a VM with anonymous memory lends nothing, and has the window', sub {
    $blue->detach($vm->{vgpu});
    $vm->start_with('');
    VGPU::GuestCuda::run($blue, 'window', timeout => 400);
    my $pinned = $vm->pinned;
    die "$pinned bytes are pinned\n" if $pinned > 2**20;
    return VGPU::GuestCuda::run($blue, 'compute') . $vm->nothing_left;
});

point('nothing is left', sub {
    $vm->end;
    return computes($blue);
});

done_testing();
