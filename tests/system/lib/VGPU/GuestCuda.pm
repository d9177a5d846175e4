# SPDX-License-Identifier: MIT
# CUDA in guests, with everything as it is installed but NVIDIA's part: engines that offer it over the fake driver
# (tests/fake-cuda), and in the guests our libcuda and programs that check what they compute (tests/cuda/remote/client).
package VGPU::GuestCuda;

use strict;
use warnings;

use VGPU::Command;
use VGPU::Lab;
use VGPU::Sandbox;
use VGPU::Slice;

my $libraries = '/usr/lib/x86_64-linux-gnu';
my @programs = qw(cuda-test/remote-client cuda-remote/libcuda.so.1 cuda-remote/libnvidia-ml.so.1 cuda-remote/vgpu-guest-cuda-check);
my $environment = 'LD_LIBRARY_PATH=/opt/cuda';
my $client = "$environment /opt/cuda/remote-client";

sub host { return VGPU::Lab::host(@_) }

# A program in the guest, with our libcuda.
sub program { my ($command) = @_; return "$environment $command 2>&1" }

# The driver in L1; and the programs are built.
sub install {
    VGPU::Command::run([VGPU::Lab::rig('build', '--kernel', $VGPU::Lab::kernel, '--', 'make', '-s',
        map { "build/$_" } @programs, qw(cuda-test/real/libcuda.so.1 cuda-test/real/libnvidia-ml.so.1))], timeout => 900, name => '[build] make the programs');
    VGPU::Command::run([VGPU::Lab::rig('put', "build/cuda-test/real/$_.so.1", "$libraries/$_.so.570.1")]) for qw(libcuda libnvidia-ml);
    host(<<"SH", timeout => 120);
set -e
ldconfig
mkdir -p /run/vgpu/nvidia
ln -sf $libraries/libcuda.so.570.1 /run/vgpu/nvidia/libcuda.so.1
ln -sf $libraries/libnvidia-ml.so.570.1 /run/vgpu/nvidia/libnvidia-ml.so.1
SH
    return;
}

sub put_programs { my ($tenant) = @_; return put($tenant, map { "build/$_" } @programs) }

sub put {
    my ($tenant, @files) = @_;
    my $top = VGPU::Lab::top();
    $tenant->run('mkdir -p /opt/cuda');
    $tenant->put((map { "$top/$_" } @files), '/opt/cuda/');
    $tenant->run('sync', timeout => 120);
    return;
}

# PyCUDA and its Python, as tests/cuda/real/check has packed them: 90 MB.
sub put_pycuda {
    my ($tenant, $file) = @_;
    $tenant->run('mkdir -p /opt/pycuda');
    VGPU::Command::run([VGPU::Lab::rig('guest', $tenant->{name}, 'put', VGPU::Lab::top() . "/$file", '/opt/')], timeout => 900);
    $tenant->run('tar xzf /opt/pycuda.tar.gz -C /opt/pycuda && rm /opt/pycuda.tar.gz && sync', timeout => 600);
    return;
}

# A program of Python's with it, and with our libcuda.
sub run_pycuda {
    my ($tenant, $words) = @_;
    my $libraries = join ':', '/opt/cuda', map { "/opt/pycuda/usr/lib/x86_64-linux-gnu$_" } '', '/blas', '/lapack';
    return $tenant->run("LD_LIBRARY_PATH=$libraries /opt/pycuda/usr/bin/python3 $words 2>&1", timeout => 600);
}

sub remove {
    return host("set -e; rm /run/vgpu/nvidia/libcuda.so.1 /run/vgpu/nvidia/libnvidia-ml.so.1 $libraries/libcuda.so.570.1"
            . " $libraries/libnvidia-ml.so.570.1; ldconfig");
}

sub dropin { my ($vgpu) = @_; return "/run/systemd/system/$vgpu->{unit}.d/cuda.conf" }

# The vGPU, which no VM has, offers CUDA beside Vulkan. Returns what its engine says.
sub offer {
    my ($vgpu) = @_;
    my $gpu = VGPU::Lab::gpu();
    my $file = dropin($vgpu);
    host(<<"SH", timeout => 120);
set -e
mkdir -p \$(dirname $file)
cat >$file <<END
[Service]
ExecStart=
ExecStart=/usr/bin/vgpu-engine --fd=3 --shader-cache=/run/vgpu/shaders --cuda-worker=/usr/lib/mdev-vgpu/vgpu-cuda-worker --setenv=VGPU_GOVERNOR=1 --setenv=FAKE_CUDA_PCI=$gpu --setenv=FAKE_CUDA_TOTAL=8589934592 --setenv=FAKE_CUDA_CONTENT=1
END
systemctl daemon-reload
systemctl restart $vgpu->{unit}
SH
    $vgpu->wait_engine;
    my $status = host("systemctl show -P StatusText $vgpu->{unit}");
    die $status if $status !~ /with CUDA/;
    return $status;
}

sub withdraw {
    my ($vgpu) = @_;
    host("rm @{[ dropin($vgpu) ]}; systemctl daemon-reload; systemctl restart $vgpu->{unit}", timeout => 120);
    $vgpu->wait_engine;
    return;
}

# Of its engine: by process.
sub workers {
    my ($vgpu) = @_;
    my $all = VGPU::Sandbox::processes($vgpu->{unit});
    return { map { $all->{$_}{command} =~ /^vgpu-cuda-worker / ? ($_ => $all->{$_}) : () } keys %$all };
}

# @gpu: another one than the lab's.
sub used { my ($vgpu, @gpu) = @_; return VGPU::Slice::in_arbiter($gpu[0] // VGPU::Lab::gpu(), $vgpu->{uuid})->{vram_used} }

sub nothing_left {
    my ($vgpu, @gpu) = @_;
    VGPU::Slice::soon(sub { !%{ workers($vgpu) } }, 'a worker is left');
    VGPU::Slice::soon(sub { !used($vgpu, @gpu) }, 'something is charged still');
    return '';
}

# A case of the client, to its end; one that says "holding" and goes on.
sub run { my ($tenant, $case, %opt) = @_; return $tenant->run("$client $case 2>&1", timeout => 240, %opt) }

sub start {
    my ($tenant, $case) = @_;
    my $job = $tenant->job("$client $case 2>&1");
    $job->expect(qr/^holding/m, 120);
    return $job;
}

# A program that loses its worker, whoever is connected to the guest meanwhile; and how it has ended: with error 719 from
# each of its calls, and by itself.
sub start_that_is_lost {
    my ($tenant) = @_;
    $tenant->run("setsid nohup sh -c '" . program('/opt/cuda/remote-client lost') . "; echo status \$?' </dev/null >/run/cuda 2>&1 &");
    $tenant->run('timeout 100 sh -c "until grep -q holding /run/cuda; do sleep 0.5; done"', timeout => 120);
    return;
}

sub must_be_lost {
    my ($tenant) = @_;
    my $end = $tenant->run('timeout 100 sh -c "until grep -q ^status /run/cuda; do sleep 0.5; done"; cat /run/cuda', timeout => 120);
    die $end if $end !~ /^status 0$/m;
    return $end;
}

# So many of a case at the same time.
sub run_many {
    my ($tenant, $case, $count) = @_;
    my $said = $tenant->run("for i in \$(seq $count); do $client $case & done; for i in \$(seq $count); do wait -n || exit 1; done; echo all", timeout => 900);
    die $said if $said !~ /^all$/m;
    return;
}

1;
