#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Render workers are killed under a guest's program that learns of its work's end by fences, timeline semaphores, events
# and, if the GPU's driver has them, sync_files, and checks each result: it fails or is aborted, and never takes wrong
# data for right. The engine and the guest's other programs go on. red has Debian sid's Mesa, blue Debian 13's.
# VGPU_WORKER_KILLS=N: number of kills in each.
# Rig: --image sid
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Test;

my $kills = $ENV{VGPU_WORKER_KILLS} // 3;
$_->destroy for VGPU::Tenant->new('red');
my @tenants = baseline(red => 'sid');

# Mesa reads memory of the GPU for the end of work, or asks its render worker.
my @ways = ('', 'env VN_PERF=no_fence_feedback,no_semaphore_feedback,no_event_feedback ');

# The render workers of a tenant's vGPU.
sub workers {
    my ($tenant) = @_;
    my $engine = $tenant->{vgpu}->engine_pid;
    return split ' ', VGPU::Lab::host("pgrep -P \$(pgrep -P $engine virgl_render)");
}

# By a sync_file only if the driver of the GPU has them; otherwise by a fence once more.
sub hears_in_each_way {
    my ($tenant, $gpu) = @_;
    my $job = VGPU::Compute::on_gpu($tenant, $gpu, 'vk-waits --rounds=4 --size=65536 --timeout=200');
    $job->wait(220);
    my @heard = $job->output =~ /^OK round \d:.* (\w+)$/mg;
    die "it heard by @heard\n" if "@heard" !~ /^fence timeline event (sync_file|fence)$/;
    return "@heard";
}

sub kill_one {
    my ($tenant, $gpu, $number, $others) = @_;
    my $way = $ways[$number % @ways];
    my $job = VGPU::Compute::on_gpu($tenant, $gpu, "${way}vk-waits --forever --size=1048576 --timeout=100 --seed=$number");
    $job->expect(qr/^OK round 3:/m, 200);
    sleep rand 1;
    my @its = grep { !$others->{$_} } workers($tenant);
    die "it has the workers @its\n" if @its != 1;
    VGPU::Lab::host("kill -KILL $its[0]");
    $job->wait(150, fail => 1);
    return VGPU::Compute::must_have_failed($job);
}

for my $tenant (@tenants) {
    my $name = $tenant->{name};
    my $gpu = $tenant->gpu_of($tenant->{vgpu});
    my $engine = $tenant->{vgpu}->engine_pid;
    $tenant->put(VGPU::Lab::top() . '/build/guest/vk-waits', '/usr/local/bin/');
    point("$name: the program hears of the end in each way", sub { return hears_in_each_way($tenant, $gpu) });

    my $other = VGPU::Compute::vulkan($tenant, $gpu, '--forever --size 65536');
    $other->expect(qr/^OK round 1:/m, 120);
    my %others = map { $_ => 1 } workers($tenant);
    for my $number (1 .. $kills) {
        point("$name: render worker killed, $number of $kills", sub { return kill_one($tenant, $gpu, $number, \%others) });
    }

    point("$name: the same engine serves the other program, and new ones", sub {
        my $now = $tenant->{vgpu}->engine_pid;
        die "the engine was $engine and is $now\n" if $now != $engine;
        my $seen = keeps_computing($other, 1);
        return join '; ', $seen, VGPU::Compute::stop_right($tenant, $other), computes($tenant);
    });
}

done_testing();
