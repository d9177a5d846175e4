#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# CUDA alone in a VM: a GPU at a driver called nvidia, which the fake driver serves, and which has no render node (as in
# 61-cuda-guarded.t). Its types have CUDA without a word on it, and the guest computes. With cuda=no the engine says what is
# missing.
# Rig: --gpus 2
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::FakeNvidia;
use VGPU::Sandbox;
use VGPU::Slice;
use VGPU::Test;

my (undef, $blue) = baseline();
my $libraries = $VGPU::FakeNvidia::libraries;
my $client = 'LD_LIBRARY_PATH=/opt/cuda /opt/cuda/remote-client';
my $gpu = VGPU::FakeNvidia::gpu();
my $vgpu;

sub host { return VGPU::Lab::host(@_) }
sub used { return VGPU::Slice::in_arbiter($gpu, $vgpu->{uuid})->{vram_used} }

sub workers {
    my $all = VGPU::Sandbox::processes($vgpu->{unit});
    return { map { $all->{$_}{command} =~ /^vgpu-cuda-worker / ? ($_ => $all->{$_}) : () } keys %$all };
}

sub type_called {
    my ($name) = @_;
    my ($type) = host("ls /sys/bus/pci/devices/$gpu/mdev_supported_types") =~ /^(\S+-$name)$/m;
    return $type // die "no type $name\n";
}

# By the driver: of the workers' processes.
sub states { return host(VGPU::FakeNvidia::env() . " FAKE_CUDA_CARD=$VGPU::FakeNvidia::card /usr/lib/mdev-vgpu/vgpu-suspend state @_") }

sub set_engine { return VGPU::FakeNvidia::set_unit($vgpu->{unit}, '/usr/bin/vgpu-engine --fd=3 --shader-cache=/run/vgpu/shaders', 'FAKE_CUDA_CONTENT=1') }

point('a GPU at a driver called nvidia is shared', sub {
    VGPU::Command::run([VGPU::Lab::rig('build', '--', 'make', '-s', 'guest-cuda')], timeout => 900, name => '[build] make guest-cuda');
    VGPU::FakeNvidia::install();
    host('cat >/etc/vgpu/types.d/60-plain.conf', stdin => "[type plain]\nvram=1/4\ncuda=no\ngpu=$gpu\n");
    return VGPU::FakeNvidia::share() . host("ls /sys/bus/pci/devices/$gpu/mdev_supported_types");
});

point('an engine starts, and offers CUDA alone', sub {
    $vgpu = VGPU::Vgpu->new(3, type_called('vgpu-quarter'));
    set_engine();
    $vgpu->start($gpu);
    $vgpu->wait_engine;
    host("vgpuctl slice set $vgpu->{uuid} --vram 64M", timeout => 120);
    my $status = host("systemctl show -P StatusText $vgpu->{unit}");
    die $status if $status !~ /with CUDA alone/;
    VGPU::Slice::soon(sub { host('readlink /run/vgpu/nvidia/libcuda.so.1', fail => 1) eq "$libraries/libcuda.so.570.1\n" }, 'the driver is not linked');
    # That the GPU has no Vulkan is known when vgpu-describe has looked.
    VGPU::Slice::soon(sub { host("vgpuctl slice show $vgpu->{uuid}") =~ /^CUDA: +yes, without Vulkan$/m }, 'CUDA alone is not shown');
    my $shown = host("vgpuctl slice show $vgpu->{uuid}");
    die $shown if $shown !~ /^Window: +4\.0 GiB$/m;
    return $status . host("journalctl -q --no-pager -o cat -n 5 -u $vgpu->{unit}");
});

point('its guest computes, is held to its memory, and leaves nothing', sub {
    $blue->detach($blue->{vgpu});
    $blue->attach($vgpu);
    my $top = VGPU::Lab::top();
    $blue->run('mkdir -p /opt/cuda');
    $blue->put((map { "$top/build/$_" } qw(cuda-test/remote-client cuda-remote/libcuda.so.1 cuda-remote/libnvidia-ml.so.1 cuda-remote/vgpu-guest-cuda-check)), '/opt/cuda/');
    my $said = $blue->run('LD_LIBRARY_PATH=/opt/cuda /opt/cuda/vgpu-guest-cuda-check', timeout => 120);
    $blue->run("$client $_ 2>&1", timeout => 240) for qw(compute graphs limit nvml-unit);
    VGPU::Slice::soon(sub { !%{ workers() } && !used() }, 'something is left');
    return $said;
});

point('a worker is confined, from outside', sub {
    my $job = $blue->job("$client goes-on 2>&1");
    $job->expect(qr/^holding/m, 120);
    my $workers = workers();
    die scalar(keys %$workers) . " workers\n" if keys %$workers != 1;
    VGPU::Sandbox::confined('the worker', $workers);
    $blue->run('pkill -TERM remote-client');
    $job->wait(60);
    return join "\n", map { $_->{command} } values %$workers;
});

# vgpud runs the driver's calls in a unit of their own.
point('slice suspend: its program waits, with nothing on the card, until slice resume', sub {
    VGPU::FakeNvidia::set_driver("vgpu-suspend-$vgpu->{uuid}.service");
    my $job = $blue->job("$client goes-on 2>&1");
    $job->expect(qr/^holding/m, 120);
    my @workers = keys %{ workers() };
    host("vgpuctl slice suspend $vgpu->{uuid}", timeout => 120);
    my $suspended = states(@workers) . host("vgpuctl slice show $vgpu->{uuid} | grep Suspended");
    die $suspended if $suspended !~ /\A(?:\d+ suspended\n)+Suspended: +yes\n\z/;
    # It ends by itself when it is told to, which it cannot do now.
    $blue->run('pkill -TERM remote-client; sleep 2; pgrep remote-client');
    $blue->run("! $client compute 2>&1", timeout => 240);
    host("vgpuctl slice resume $vgpu->{uuid}", timeout => 120);
    $job->wait(60);
    VGPU::Slice::soon(sub { !%{ workers() } && !used() }, 'something is left');
    return $suspended . $blue->run("$client compute 2>&1", timeout => 240);
});

point('of a type with cuda=no it does not start, and says what is missing', sub {
    $blue->detach($vgpu);
    $vgpu->remove;
    $vgpu = VGPU::Vgpu->new(3, type_called('plain'));
    $vgpu->start($gpu);
    VGPU::Slice::soon(sub { host("journalctl -q --no-pager -o cat -n 20 -u $vgpu->{unit}") =~ /no render node; modprobe nvidia-drm modeset=1/ }, 'it does not say so');
    return host("journalctl -q --no-pager -o cat -n 3 -u $vgpu->{unit}");
});

point('nothing is left', sub {
    $vgpu->remove;
    host('rm /etc/vgpu/types.d/60-plain.conf');
    VGPU::FakeNvidia::remove();
    $blue->attach($blue->{vgpu});
    return computes($blue);
});

done_testing();
