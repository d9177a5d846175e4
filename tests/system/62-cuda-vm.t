#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# CUDA in a VM: a guest with its stock kernel and our libcuda computes on the fake card in L1, by workers of its vGPU's
# engine. It has the vGPU's memory and no more. The other VM, whose engine offers Vulkan alone, has no CUDA.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::GuestCuda;
use VGPU::Sandbox;
use VGPU::Test;

my ($red, $blue) = baseline();
my $vgpu = $red->{vgpu};
my $vram = $vgpu->attribute('vram_bytes');

sub host { return VGPU::Lab::host(@_) }
sub workers { return VGPU::GuestCuda::workers($vgpu) }
sub nothing_left { return VGPU::GuestCuda::nothing_left($vgpu) }
sub in_guest { return VGPU::GuestCuda::run($red, @_) }
sub started { return VGPU::GuestCuda::start($red, @_) }

point('an engine is told to offer CUDA, and says so', sub {
    VGPU::GuestCuda::install();
    VGPU::GuestCuda::put_programs($_) for $red, $blue;
    $red->detach($vgpu);
    host("vgpuctl slice set $vgpu->{uuid} --vram 64M", timeout => 120);
    my $status = VGPU::GuestCuda::offer($vgpu);
    $red->attach($vgpu);
    return $status . $red->run('uname -r');
});

point('the guest computes, and what it computes is right', sub {
    return join '', map { in_guest($_) . "$_: right\n" } qw(compute threads graphs callbacks managed rows order facts);
});

point('a program of nvcc\'s computes in the guest', sub {
    my @files = map { "build/cuda-real/$_" } qw(driver kernels.fatbin kernels.ptx);
    return 'skipped: tests/cuda/real/check has not made it' if grep { !-e } @files;
    VGPU::GuestCuda::put($red, @files);
    my $said = join '', map { $red->run(VGPU::GuestCuda::program("/opt/cuda/driver /opt/cuda/kernels.$_"), timeout => 240) } qw(fatbin ptx);
    die $said if $said !~ /\A(\N*\n)*64\n(\N*\n)*64\n\z/;
    return $said;
});

point('PyCUDA computes in the guest, and is held to its memory', sub {
    my @files = map { "build/cuda-real/$_" } qw(with_pycuda.py kernels.ptx);
    my $packed = 'build/cuda-real/pycuda.tar.gz';
    return 'skipped: tests/cuda/real/check has not made it' if grep { !-e } @files, $packed;
    VGPU::GuestCuda::put($red, @files);
    VGPU::GuestCuda::put_pycuda($red, $packed);
    my $said = VGPU::GuestCuda::run_pycuda($red, '/opt/cuda/with_pycuda.py /opt/cuda/kernels.ptx');
    die $said if $said ne "64\n";
    return $said . nothing_left();
});

point('what is in the package for VMs says that it works, and where not', sub {
    my $check = VGPU::GuestCuda::program('/opt/cuda/vgpu-guest-cuda-check');
    my $said = $red->run($check, timeout => 120);
    die $said if $said !~ /a vGPU with CUDA,/ || $said !~ /, 64 MiB\n.*\nNVML: driver \S+\nCUDA works in this VM\n\z/s;
    my $not = $blue->run($check, timeout => 120, fail => 1);
    die $not if $not !~ /a vGPU without CUDA: its host does not offer it\n/ || $not !~ /\nCUDA does not work in this VM\n\z/;
    return $said . $not;
});

point('it is told of the memory of its vGPU, and gets no more; the next program has all of it at once', sub {
    $red->run('for i in 1 2 3 4 5 6; do ' . VGPU::GuestCuda::program('/opt/cuda/remote-client limit') . ' || exit 1; done', timeout => 300);
    return nothing_left();
});

point('a VM whose engine offers no CUDA has no device of it', sub { return VGPU::GuestCuda::run($blue, 'refused') . 'none' });

point('Vulkan computes beside it in the same guest', sub {
    my $job = started('goes-on');
    my $said = computes($red);
    $red->run('pkill -TERM remote-client');
    $job->wait(60);
    nothing_left();
    return $said;
});

point('a worker is confined, from outside', sub {
    my $job = started('goes-on');
    my $workers = workers();
    die scalar(keys %$workers) . " workers\n" if keys %$workers != 1;
    VGPU::Sandbox::confined('the worker', $workers);
    $red->run('pkill -TERM remote-client');
    $job->wait(60);
    return join "\n", map { $_->{command} } values %$workers;
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
