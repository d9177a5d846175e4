#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# An engine is killed while its guest computes: the guest's program fails, and never takes wrong data for
# right; after its driver was rebound, the guest computes again, with the engine that systemd started.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Host;
use VGPU::Test;

my ($red, $blue) = baseline();
my $before = VGPU::Host::ledger();
my $other = VGPU::Compute::vulkan($red, $red->gpu_of($red->{vgpu}), '--forever');
$other->expect(qr/^OK round 1:/m, 120);

# So the GPU works nearly all the time, and the kill comes during work: the results are not finished, and
# nothing may say that they are.
my $heavy = '--forever --size 65536 --iterations 300000';

# So the program reads results nearly all the time. Finished results that were not read yet are lost with
# the engine: its check may find them missing, and must then fail.
my $light = '--forever --size 65536 --iterations 1';

# Kills the engine's main process, or its whole control group, while a program computes; returns how
# the program ended. No round takes more than $limit seconds.
sub kill_while {
    my ($program, $options, $how, $limit) = @_;
    my $vgpu = $blue->{vgpu};
    my $before = $vgpu->engine_pid;
    my $job = $program->($blue, $blue->gpu_of($vgpu), "$options --timeout $limit");
    $job->expect(qr/^OK round 2:/m, 2 * $limit);
    VGPU::Lab::host(sprintf $how, $before);
    my $begin = time;
    $job->wait($limit + 10, fail => 1);
    my $took = time - $begin;
    my $end = VGPU::Compute::must_have_failed($job, blank => $options ne $heavy);
    my $after = $vgpu->wait_engine;
    die "the engine is still $before\n" if $after == $before;
    my ($last) = (split /\n/, $job->output)[-1];
    return sprintf '%s after %.0f s; engine %d, then %d; last words: %s', $end, $took, $before, $after, $last;
}

sub rebind {
    my $gpu = $blue->gpu_of($blue->{vgpu});
    $blue->run("cd /sys/bus/pci/drivers/virtio-pci && echo $gpu >unbind && sleep 1 && echo $gpu >bind",
        timeout => 60);
    my ($again) = grep { $_ eq $gpu } $blue->gpus;
    die "no render node after rebinding:\n" . $blue->run('dmesg | tail -n 12') if !$again;
    return computes($blue);
}

point('engine killed while the guest computes with Vulkan: the program fails', sub {
    kill_while(\&VGPU::Compute::vulkan, $heavy, 'kill -KILL %d', 220);
});
point('until the rebind a new program fails too, and soon', sub {
    my $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($blue->{vgpu}), '--timeout 60');
    $job->wait(90, fail => 1);
    die "it ended with status 0:\n" . $job->output if $VGPU::Command::status == 0;
    return (split /\n/, $job->output)[-1];
});
point("after the guest's driver was rebound it computes again", \&rebind);

point('all its processes killed in the middle of short jobs: the program fails', sub {
    kill_while(\&VGPU::Compute::vulkan, $light,
        "systemctl kill -s KILL $blue->{vgpu}{unit} # %d", 220);
});
point("after the guest's driver was rebound it computes again, the second time", \&rebind);

point('engine killed while the guest computes with OpenCL: the program fails', sub {
    kill_while(\&VGPU::Compute::opencl, $heavy, 'kill -KILL %d', $VGPU::Compute::opencl_limit);
});
point("after the guest's driver was rebound it computes again, the third time", \&rebind);

point('the other guest has computed all the time, and nobody has what the dead engines had', sub {
    my $seen = keeps_computing($other, 1);
    VGPU::Host::must_be_sane($before, $red->{vgpu}, $blue->{vgpu});
    return $seen . '; ' . VGPU::Compute::stop_right($red, $other);
});

done_testing();
