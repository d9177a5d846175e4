#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Attach, compute, detach, and again: both ways of computing, in both VMs at the same time.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Test;

my ($red, $blue) = baseline();

point('the vGPU has a render node and no display in the guest', sub {
    my $nodes = $red->run('cat /sys/class/drm/renderD*/uevent; dmesg | grep -F "[drm]" | tail -n 12');
    die $nodes if $nodes !~ /KMS disabled/;
    return $nodes;
});

point('OpenCL and Vulkan in both at the same time are right', sub {
    my @jobs;
    for my $vm ($red, $blue) {
        my $gpu = $vm->gpu_of($vm->{vgpu});
        push @jobs, VGPU::Compute::opencl($vm, $gpu), VGPU::Compute::vulkan($vm, $gpu);
    }
    return join "\n", map { VGPU::Compute::verdict($_->wait($VGPU::Compute::opencl_limit + 60)) } @jobs;
});

for my $round (1, 2) {
    point("detach from a running VM and attach again, round $round", sub {
        $blue->detach($blue->{vgpu});
        die "the GPU is still there\n" if $blue->gpus;
        $blue->attach($blue->{vgpu});
        return computes($blue);
    });
}

point('detach while a program computes: it fails, it is not wrong, and the VM lives', sub {
    my $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($blue->{vgpu}), '--forever --timeout 30');
    $job->expect(qr/^OK round 2:/m, 120);
    $blue->detach($blue->{vgpu});
    $job->wait(120, fail => 1);
    VGPU::Compute::must_have_failed($job, unplugged => 1);
    $blue->attach($blue->{vgpu});
    return computes($blue);
});

done_testing();
