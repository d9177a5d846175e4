#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# A VM whose programs have lent memory to the GPU (as in 62-cuda-vm-lent.t), and what can become of it meanwhile: its kernel
# ends, it is reset, the vGPU is unplugged, the engine is killed. The GPU is out of the memory before the guest goes on.
# Rig: --gpus 2
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::GuestCuda;
use VGPU::Lender;
use VGPU::Slice;
use VGPU::Test;

my (undef, $blue) = baseline();
my $vm;

sub host { return VGPU::Lab::host(@_) }

sub reset_vm {
    my ($job) = @_;
    $blue->reset;
    $job->stop;
    $blue->wait_up;
    $blue->find_gpu($vm->{vgpu}) or die "no vGPU\n";
    $vm->nothing_left;
    return $vm->lends . $vm->memory_is_the_guests;
}

point('a vGPU with CUDA, for a VM whose memory is shared', sub {
    $vm = VGPU::Lender->new($blue);
    return $blue->run(VGPU::GuestCuda::program('/opt/cuda/vgpu-guest-cuda-check'), timeout => 120);
});

# As a kernel does that starts another one (kexec): PCI's command register, without bus mastering.
point('the guest disables bus mastering while a program lends: when that is done, the GPU has nothing of it', sub {
    my $job = $vm->holds;
    my $config = '/sys/bus/pci/devices/' . $blue->gpu_of($vm->{vgpu}) . '/config';
    $blue->run("printf '\\002' | dd of=$config bs=1 seek=4 conv=notrunc status=none");
    my @workers = $vm->workers;
    die "@workers: its worker is there\n" if @workers;
    return reset_vm($job);
});

point('the VM is reset while a program lends: nothing is left, and it lends again', sub { return reset_vm($vm->holds) });

point('the vGPU is unplugged while a program lends: it gets error 719, and nothing is left', sub {
    my $job = $vm->holds;
    $blue->detach($vm->{vgpu});
    $job->wait(120);
    VGPU::Slice::soon(sub { !$vm->workers }, 'a worker is left');
    $blue->attach($vm->{vgpu});
    return $vm->lends;
});

point('the engine is killed: its program gets error 719, and after the rebind it lends again', sub {
    my $job = $vm->holds;
    host('kill -9 ' . $vm->{vgpu}->engine_pid);
    $job->wait(120);
    $vm->{vgpu}->wait_engine;
    $blue->rebind($vm->{vgpu});
    return $vm->lends . $vm->memory_is_the_guests;
});

point('nothing is left', sub {
    $vm->end;
    return computes($blue);
});

done_testing();
