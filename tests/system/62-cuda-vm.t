#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# CUDA in a VM: a guest with its stock kernel and our libcuda computes on the fake card in L1, by workers of its vGPU's
# engine. It has the vGPU's memory and no more; what ends ends alone, and leaves no worker behind. The other VM, whose
# engine offers Vulkan alone, has no CUDA.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Host;
use VGPU::Sandbox;
use VGPU::Slice;
use VGPU::Test;

my ($red, $blue) = baseline();
my $vgpu = $red->{vgpu};
my $gpu = VGPU::Lab::gpu();
my $libraries = '/usr/lib/x86_64-linux-gnu';
my $dropin = "/run/systemd/system/$vgpu->{unit}.d/cuda.conf";
my $client = 'LD_LIBRARY_PATH=/opt/cuda /opt/cuda/remote-client';
my $vram = $vgpu->attribute('vram_bytes');

sub host { return VGPU::Lab::host(@_) }
sub used { return VGPU::Slice::in_arbiter($gpu, $vgpu->{uuid})->{vram_used} }

# Of the engine.
sub workers {
    my $all = VGPU::Sandbox::processes($vgpu->{unit});
    return { map { $all->{$_}{command} =~ /^vgpu-cuda-worker / ? ($_ => $all->{$_}) : () } keys %$all };
}

sub nothing_left {
    VGPU::Slice::soon(sub { !%{ workers() } }, 'a worker is left');
    return VGPU::Slice::soon(sub { !used() }, 'something is charged still');
}

# A program in red, to its end; one that says "holding" and goes on.
sub in_guest { my ($case, %opt) = @_; return $red->run("$client $case 2>&1", timeout => 240, %opt) }

sub started {
    my ($case) = @_;
    my $job = $red->job("$client $case 2>&1");
    $job->expect(qr/^holding/m, 120);
    return $job;
}

point('an engine is told to offer CUDA, and says so', sub {
    VGPU::Command::run([VGPU::Lab::rig('build', '--kernel', $VGPU::Lab::kernel, '--', 'make', '-s', map { "build/$_" }
        qw(cuda-test/remote-client cuda-test/real/libcuda.so.1 cuda-test/real/libnvidia-ml.so.1 cuda-remote/libcuda.so.1 cuda-remote/vgpu-guest-cuda-check))],
        timeout => 900, name => '[build] make the programs');
    VGPU::Command::run([VGPU::Lab::rig('put', "build/cuda-test/real/$_.so.1", "$libraries/$_.so.570.1")]) for qw(libcuda libnvidia-ml);
    $red->detach($vgpu);
    host(<<"SH", timeout => 120);
set -e
ldconfig
mkdir -p /run/vgpu/nvidia \$(dirname $dropin)
ln -sf $libraries/libcuda.so.570.1 /run/vgpu/nvidia/libcuda.so.1
ln -sf $libraries/libnvidia-ml.so.570.1 /run/vgpu/nvidia/libnvidia-ml.so.1
cat >$dropin <<END
[Service]
ExecStart=
ExecStart=/usr/bin/vgpu-engine --fd=3 --shader-cache=/run/vgpu/shaders --cuda-worker=/usr/lib/mdev-vgpu/vgpu-cuda-worker --setenv=VGPU_GOVERNOR=1 --setenv=FAKE_CUDA_PCI=$gpu --setenv=FAKE_CUDA_TOTAL=8589934592 --setenv=FAKE_CUDA_CONTENT=1
END
systemctl daemon-reload
systemctl restart $vgpu->{unit}
vgpuctl vgpu set $vgpu->{uuid} --vram 64M
SH
    $vgpu->wait_engine;
    my $status = host("systemctl show -P StatusText $vgpu->{unit}");
    die $status if $status !~ /with CUDA/;
    $red->attach($vgpu);
    my $top = VGPU::Lab::top();
    for my $guest ($red, $blue) {
        $guest->run('mkdir -p /opt/cuda');
        $guest->put("$top/build/cuda-test/remote-client", "$top/build/cuda-remote/libcuda.so.1", "$top/build/cuda-remote/vgpu-guest-cuda-check", '/opt/cuda/');
        $guest->run('sync', timeout => 120);
    }
    return $status . $red->run('uname -r');
});

point('the guest computes, and what it computes is right', sub {
    return join '', map { in_guest($_) . "$_: right\n" } qw(compute threads graphs callbacks managed rows order facts);
});

point('what is in the package for VMs says that it works, and where not', sub {
    my $check = 'LD_LIBRARY_PATH=/opt/cuda /opt/cuda/vgpu-guest-cuda-check';
    my $said = $red->run($check, timeout => 120);
    die $said if $said !~ /a vGPU with CUDA,/ || $said !~ /, 64 MiB\nCUDA works in this VM\n\z/;
    my $not = $blue->run($check, timeout => 120, fail => 1);
    die $not if $not !~ /a vGPU without CUDA: its host does not offer it\n/ || $not !~ /\nCUDA does not work in this VM\n\z/;
    return $said . $not;
});

point('it is told of the memory of its vGPU, and gets no more', sub { in_guest('limit'); return nothing_left() });

point('a VM whose engine offers no CUDA has no device of it', sub {
    return $blue->run("$client refused 2>&1 && echo none", timeout => 120);
});

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

point('24 programs at the same time', sub {
    my $said = $red->run("for i in \$(seq 24); do $client objects & done; for i in \$(seq 24); do wait -n || exit 1; done; echo all", timeout => 600);
    die $said if $said !~ /^all$/m;
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

point('the vGPU is unplugged while a program computes: it ends, and no worker is left', sub {
    my $job = started('lost');
    $red->detach($vgpu);
    $job->wait(120, fail => 1);
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
    host(<<"SH", timeout => 120);
set -e
rm $dropin /run/vgpu/nvidia/libcuda.so.1 /run/vgpu/nvidia/libnvidia-ml.so.1
rm $libraries/libcuda.so.570.1 $libraries/libnvidia-ml.so.570.1
ldconfig
systemctl daemon-reload
systemctl restart $vgpu->{unit}
vgpuctl vgpu set $vgpu->{uuid} --vram $vram
SH
    $vgpu->wait_engine;
    $red->attach($vgpu);
    return computes($red);
});

done_testing();
