#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Render workers are killed under a guest's program that learns of its work's end by fences, timeline semaphores, events
# and, if the GPU's driver has them, sync_files, and checks each result: it fails or is aborted, and never takes wrong
# data for right. The engine and the guest's other programs go on. VGPU_WORKER_KILLS=N: number of kills.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Test;

my $kills = $ENV{VGPU_WORKER_KILLS} // 6;
my ($red, $blue) = baseline();
my $vgpu = $blue->{vgpu};
my $gpu = $blue->gpu_of($vgpu);
my $engine = $vgpu->engine_pid;
my $workers = "pgrep -P \$(pgrep -P $engine virgl_render)";

# Mesa reads memory of the GPU for the end of work, or asks its render worker.
my @ways = ('', 'env VN_PERF=no_fence_feedback,no_semaphore_feedback,no_event_feedback ');

$blue->put(VGPU::Lab::top() . '/build/guest/vk-waits', '/usr/local/bin/');

# By a sync_file only if the driver of the GPU has them; otherwise by a fence once more.
point('the program hears of the end in each way', sub {
    my $job = VGPU::Compute::on_gpu($blue, $gpu, 'vk-waits --rounds=4 --size=65536 --timeout=200');
    $job->wait(220);
    my @ways = $job->output =~ /^OK round \d:.* (\w+)$/mg;
    die "it heard by @ways\n" if "@ways" !~ /^fence timeline event (sync_file|fence)$/;
    return "@ways";
});

my $other = VGPU::Compute::vulkan($blue, $gpu, '--forever --size 65536');
$other->expect(qr/^OK round 1:/m, 120);
my %others = map { $_ => 1 } split ' ', VGPU::Lab::host($workers);

for my $number (1 .. $kills) {
    point("render worker killed, $number of $kills", sub {
        my $way = $ways[$number % @ways];
        my $job = VGPU::Compute::on_gpu($blue, $gpu, "${way}vk-waits --forever --size=1048576 --timeout=100 --seed=$number");
        $job->expect(qr/^OK round 3:/m, 200);
        sleep rand 1;
        my @its = grep { !$others{$_} } split ' ', VGPU::Lab::host($workers);
        die "it has the workers @its\n" if @its != 1;
        VGPU::Lab::host("kill -KILL $its[0]");
        $job->wait(150, fail => 1);
        return VGPU::Compute::must_have_failed($job);
    });
}

point('the same engine serves the other program, and new ones', sub {
    my $now = $vgpu->engine_pid;
    die "the engine was $engine and is $now\n" if $now != $engine;
    my $seen = keeps_computing($other, 1);
    return join '; ', $seen, VGPU::Compute::stop_right($blue, $other), computes($blue);
});

done_testing();
