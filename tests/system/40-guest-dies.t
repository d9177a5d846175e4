#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Deaths in the guest do not harm the engine: its processes, its kernel, its VM's reboot.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Outside;
use VGPU::Test;

my ($red, $blue) = baseline();
my $vgpu = $blue->{vgpu};
my $engine = $vgpu->engine_pid;
my $idle = VGPU::Outside::renderer();

sub same_engine {
    my $now = $vgpu->engine_pid;
    die "the engine was $engine and is $now\n" if $now != $engine;
    return;
}

point('processes killed in the middle, five times over', sub {
    for my $delay (0.1, 0.4, 0.9, 1.7, 3) {
        my $gpu = $blue->gpu_of($vgpu);
        $blue->run(<<"SH", timeout => 60);
on-gpu $gpu vk-compute --forever >/dev/null & pids=\$!
on-gpu $gpu vk-compute --forever --fresh >/dev/null & pids="\$pids \$!"
sleep $delay
kill -KILL \$pids
wait
exit 0
SH
    }
    same_engine();
    return computes($blue);
});

point('their workers on the host have ended with them, and their contexts of the GPU', sub {
    my $left = '';
    for (1 .. 40) {
        $left = VGPU::Lab::host("systemd-cgls --no-pager -u $vgpu->{unit}");
        my $workers = () = $left =~ /virgl_render_server/g;
        my $outer = VGPU::Outside::renderer();
        return "render server only:\n${left}the GPU has $outer->{contexts} contexts\n"
            if $workers <= 1 && $outer->{contexts} <= $idle->{contexts};
        sleep 0.5;
    }
    die $left . 'the GPU has ' . VGPU::Outside::renderer()->{contexts} . " contexts, and had $idle->{contexts}\n";
});

point('the guest reboots with its vGPU and computes', sub {
    my $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($vgpu), '--forever');
    $job->expect(qr/^OK round 1:/m, 120);
    $blue->reboot;
    $job->stop;
    $blue->wait_up;
    $blue->find_gpu($vgpu) or die "no vGPU after the reboot\n";
    same_engine();
    return computes($blue);
});

point("the guest's kernel crashes, the VM is reset, and it computes", sub {
    my $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($vgpu), '--forever');
    $job->expect(qr/^OK round 1:/m, 120);
    $blue->crash;
    $job->stop;
    $blue->wait_up;
    $blue->find_gpu($vgpu) or die "no vGPU after the crash\n";
    same_engine();
    return computes($blue);
});

done_testing();
