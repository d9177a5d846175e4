#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Two guests are isolated: red computes and checks all the time, whatever blue does.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use VGPU::Outside;
use VGPU::Test;

my ($red, $blue) = baseline();
my $blue_gpu = $blue->gpu_of($blue->{vgpu});
my $work = VGPU::Compute::vulkan($red, $red->gpu_of($red->{vgpu}), '--forever --seed 42');
$work->expect(qr/^OK round 1:/m, 120);
my $contexts = VGPU::Outside::renderer()->{contexts};

# The outer render server once the contexts of blue's programs have ended.
sub with_red_alone {
    my $end = time + 60;
    while (time < $end) {
        my $outer = VGPU::Outside::renderer();
        return $outer if $outer->{contexts} <= $contexts;
        sleep 1;
    }
    die "blue's programs have ended, and their contexts have not\n";
}

point('red is right while blue floods: many processes, contexts without end', sub {
    my $flood = $blue->job(<<"SH");
for seed in 1 2 3 4 5 6; do
    on-gpu $blue_gpu vk-compute --fresh --forever --size 16384 --iterations 65536 --seed \$seed &
done
wait
SH
    $flood->expect(qr/^OK round 2:/m, 240);
    my $seen = keeps_computing($work, 5, 240);
    $blue->run('pkill -KILL -x vk-compute', fail => 1);
    $flood->wait(60, fail => 1);
    my $others = () = $flood->output =~ /^OK round/mg;
    return "$seen of red; blue verified $others rounds in 6 processes";
});

point('blue, whose processes were killed in the middle, computes', sub { computes($blue) });

point('red is right while blue asks for more memory than its vGPU has: it is told so, and gets no more', sub {
    my $vram = $blue->{vgpu}->attribute('vram_bytes');
    my $idle = with_red_alone();
    # Five buffers of 256 MiB, and five of 16 MiB. The second goes on, so that what it has can be seen.
    my @jobs = map { VGPU::Compute::vulkan($blue, $blue_gpu, "--size $_ --iterations 1 --forever") } 67108864, 4194304;
    my ($most, $end) = (0, time + 240);
    while ($jobs[0]->running || $jobs[1]->running && VGPU::Compute::rounds($jobs[1]) < 2) {
        die "blue's programs have not come to an end in 240 s\n" if time > $end;
        my $now = VGPU::Outside::renderer()->{kib} - $idle->{kib};
        $most = $now if $now > $most;
    }
    VGPU::Compute::stop_right($blue, $jobs[1]);
    my $seen = keeps_computing($work, 3, 240);
    my $how = VGPU::Compute::how_it_ended($jobs[0]);
    die "$how: " . $jobs[0]->output if $how ne 'failed' || $jobs[0]->output !~ /OUT_OF_(?:DEVICE|HOST)_MEMORY/;
    # A context's memory besides its allocations: code, stacks, lavapipe's own.
    my $limit = $vram / 1024 + 2 * 98304;
    my $grew = sprintf 'the outer render server grew by %d MiB', $most / 1024;
    die sprintf "$grew, and the vGPU has %d MiB\n", $vram / 2**20 if $most > $limit;
    die "$grew, less than the program has that computes\n" if $most < 5 * 16384;
    return sprintf '%s of red; blue: %s; %s', $seen, ($jobs[0]->output =~ s/.*\n(?=.)//sr =~ s/\n//r), $grew;
});

point('red is right while blue is reset (virsh reset) in the middle of its work', sub {
    my $job = VGPU::Compute::vulkan($blue, $blue_gpu, '--forever');
    $job->expect(qr/^OK round 1:/m, 120);
    $blue->reset;
    my $seen = keeps_computing($work, 3, 240);
    $job->stop;
    $blue->wait_up;
    return $seen;
});

point('blue computes after its reset', sub {
    $blue->find_gpu($blue->{vgpu}) or die "blue has lost its vGPU\n";
    return computes($blue);
});

point('red is right while blue is destroyed in the middle of its work', sub {
    my $job = VGPU::Compute::vulkan($blue, $blue->gpu_of($blue->{vgpu}), '--forever');
    $job->expect(qr/^OK round 1:/m, 120);
    $blue->destroy;
    my $seen = keeps_computing($work, 3, 240);
    $job->stop;
    return $seen;
});

point("blue's engine is there for the next VM", sub {
    my $pid = $blue->{vgpu}->wait_engine;
    return "engine $pid, failure: '" . $blue->{vgpu}->attribute('failure') . q{'};
});

point('red has never had a wrong value', sub {
    return VGPU::Compute::stop_right($red, $work);
});

done_testing();
