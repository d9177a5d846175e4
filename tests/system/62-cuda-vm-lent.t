#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Memory of a VM's own that its CUDA programs lend to the GPU (as in 62-cuda-vm-alone.t, on the fake card): the vGPU has it
# pinned while a worker has it, the window has nothing of it, and it is the guest's again when the program, its worker, the
# engine or the boot has ended. A VM whose memory cannot be lent has the window.
# Rig: --gpus 2
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::FakeNvidia;
use VGPU::Sandbox;
use VGPU::Slice;
use VGPU::Test;

use constant LENT => 40 * 2**20;

my (undef, $blue) = baseline();
my $client = 'LD_LIBRARY_PATH=/opt/cuda /opt/cuda/remote-client';
my $gpu = VGPU::FakeNvidia::gpu();
my $vgpu;

sub host { return VGPU::Lab::host(@_) }
sub pinned { return $vgpu->attribute('pinned_bytes') }

sub workers {
    my $all = VGPU::Sandbox::processes($vgpu->{unit});
    return grep { $all->{$_}{command} =~ /^vgpu-cuda-worker / } keys %$all;
}

sub nothing_left {
    VGPU::Slice::soon(sub { !workers() }, 'a worker is left');
    VGPU::Slice::soon(sub { pinned() < 2**20 }, 'memory is pinned still');
    return '';
}

# A program that holds what it has lent.
sub holds {
    my $job = $blue->job("$client hold-lent 2>&1");
    $job->expect(qr/^holding/m, 120);
    return $job;
}

sub kill_program { my ($job) = @_; $blue->run('pkill -KILL remote-client'); $job->wait(120, fail => 1); return }

# The guest has all of its memory for itself: what a GPU still wrote there would be found.
sub guest_has_its_memory {
    return $blue->run('head -c 100M /dev/zero >/dev/shm/all && cmp -n 104857600 /dev/shm/all /dev/zero && rm /dev/shm/all && echo all zeros', timeout => 240);
}

sub start_with {
    my ($backing) = @_;
    my $xml = host("cat /run/$blue->{name}.xml");
    $xml =~ s{<vcpu>}{$backing<vcpu>} or die $xml;
    $blue->destroy;
    host('cat >/run/lent.xml && virsh -q define /run/lent.xml && virsh -q start ' . $blue->{name}, stdin => $xml, timeout => 240);
    $blue->wait_up;
    $blue->attach($vgpu);
    my $top = VGPU::Lab::top();
    $blue->run('mkdir -p /opt/cuda');
    $blue->put((map { "$top/build/$_" } qw(cuda-test/remote-client cuda-remote/libcuda.so.1 cuda-remote/vgpu-guest-cuda-check bench/window-memory)), '/opt/cuda/');
    return;
}

point('a vGPU with CUDA, for a VM whose memory is shared', sub {
    VGPU::Command::run([VGPU::Lab::rig('build', '--', 'make', '-s', 'guest-cuda', 'build/bench/window-memory')], timeout => 900, name => '[build] make guest-cuda');
    VGPU::FakeNvidia::install();
    host('cat >/etc/vgpu/types.d/60-lent.conf', stdin => "[type lent]\nvram=1/4\nwindow=32M\ngpu=$gpu\n");
    VGPU::FakeNvidia::share();
    my ($type) = host("ls /sys/bus/pci/devices/$gpu/mdev_supported_types") =~ /^(\S+-lent)$/m;
    $vgpu = VGPU::Vgpu->new(3, $type // die "no such type\n");
    VGPU::FakeNvidia::set_unit($vgpu->{unit}, '/usr/bin/vgpu-engine --fd=3 --shader-cache=/run/vgpu/shaders', 'FAKE_CUDA_CONTENT=1');
    $vgpu->start($gpu);
    $vgpu->wait_engine;
    host("vgpuctl vgpu set $vgpu->{uuid} --vram 64M", timeout => 120);
    $blue->detach($blue->{vgpu});
    start_with("<memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>");
    return $blue->run('LD_LIBRARY_PATH=/opt/cuda /opt/cuda/vgpu-guest-cuda-check', timeout => 120);
});

point('a program lends more than the window has, and what the GPU does with it is right', sub {
    $blue->run("$client lent 2>&1", timeout => 400);
    return nothing_left();
});

point('the vGPU has pinned it, and its worker has it mapped', sub {
    my $job = holds();
    my $pinned = pinned();
    my ($worker) = workers();
    my $maps = host("grep -c vgpu-memory /proc/$worker/maps");
    die "$pinned bytes are pinned, $maps mappings\n" if $pinned < LENT || $maps < 20;
    kill_program($job);
    nothing_left();
    return "$pinned bytes pinned, $maps mappings";
});

point('a program that is killed leaves nothing, and its memory is the guest\'s', sub {
    my $job = holds();
    kill_program($job);
    return nothing_left() . guest_has_its_memory();
});

point('a worker that is killed: its program gets error 719, and the next one lends again', sub {
    my $engine = $vgpu->engine_pid;
    my $job = holds();
    host('kill -9 ' . join ' ', workers());
    $job->wait(120);
    nothing_left();
    $blue->run("$client lent 2>&1", timeout => 400);
    die "another engine\n" if $vgpu->engine_pid != $engine;
    return nothing_left();
});

point('the VM is reset while a program lends: nothing is left, and it lends again', sub {
    my $job = holds();
    $blue->reset;
    $job->stop;
    $blue->wait_up;
    $blue->find_gpu($vgpu) or die "no vGPU\n";
    nothing_left();
    $blue->run("$client lent 2>&1", timeout => 400);
    return nothing_left() . guest_has_its_memory();
});

point('the vGPU is unplugged while a program lends: it gets error 719, and nothing is left', sub {
    my $job = holds();
    $blue->detach($vgpu);
    $job->wait(120);
    VGPU::Slice::soon(sub { !workers() }, 'a worker is left');
    $blue->attach($vgpu);
    $blue->run("$client lent 2>&1", timeout => 400);
    return nothing_left();
});

point('the engine is killed: its program gets error 719, and after the rebind it lends again', sub {
    my $job = holds();
    host('kill -9 ' . $vgpu->engine_pid);
    $job->wait(120);
    $vgpu->wait_engine;
    $blue->rebind($vgpu);
    $blue->run("$client lent 2>&1", timeout => 400);
    return nothing_left() . guest_has_its_memory();
});

point('the caching of the window in the guest is measured', sub { return $blue->run('/opt/cuda/window-memory', timeout => 240) });

point('a VM with anonymous memory lends nothing, and has the window', sub {
    $blue->detach($vgpu);
    start_with('');
    $blue->run("$client window 2>&1", timeout => 400);
    my $pinned = pinned();
    die "$pinned bytes are pinned\n" if $pinned > 2**20;
    return $blue->run("$client compute 2>&1", timeout => 240) . nothing_left();
});

point('nothing is left', sub {
    $blue->detach($vgpu);
    $vgpu->remove;
    host('rm /etc/vgpu/types.d/60-lent.conf');
    VGPU::FakeNvidia::remove();
    $blue->attach($blue->{vgpu});
    return computes($blue);
});

done_testing();
